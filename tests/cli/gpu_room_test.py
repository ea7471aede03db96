#!/usr/bin/env python3
"""Tiles that shared memory does not hold at once (backend/README.md): products of multiply-adds take K in parts, and what else passes between threads
does so in parts. Emulated on targets with little shared memory, every result is the interpreter's; ptxas takes the code where it is installed.

Skipped without the GPU part. Environment: TILEVM, TILEVM_PTXAS."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from _gpu_kit import run_cases, tilevm  # noqa: E402


def tile(element, *shape):
    return f"tile<{'x'.join(map(str, shape))}x{element}>"


def view(element, shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    tensor = f"tensor_view<{'x'.join(map(str, shape))}x{element}, strides=[{','.join(map(str, strides))}]>"
    return f"shape = [{', '.join(map(str, shape))}], strides = [{', '.join(map(str, strides))}] : {tensor}", f"partition_view<tile=({'x'.join(map(str, shape))}), {tensor}>"


def module(arrays, body, results, before=""):
    """`arrays` are loaded as %NAME, tiles %RESULT of the body are stored: pairs of name and (element, extents)."""
    text = "cuda_tile.module @m { entry @e(" + ", ".join(f"%p_{name}: tile<ptr<{element}>>" for name, (element, *_) in [*arrays, *results]) + ") {\n  %z = constant <i32: 0> : tile<i32>\n"
    for name, (element, *shape) in [*arrays, *results]:
        made, part = view(element, shape)
        text += f"  %t_{name} = make_tensor_view %p_{name}, {made}\n  %v_{name} = make_partition_view %t_{name} : {part}\n"
    for name, (element, *shape) in arrays:
        text += f"  %{name}, %l_{name} = load_view_tko weak %v_{name}[{', '.join(['%z'] * len(shape))}] : {view(element, shape)[1]}, tile<i32> -> {tile(element, *shape)}, token\n"
    text += before + body
    for name, (element, *shape) in results:
        text += f"  %s_{name} = store_view_tko weak %{name}, %v_{name}[{', '.join(['%z'] * len(shape))}] : {tile(element, *shape)}, {view(element, shape)[1]}, tile<i32> -> token\n"
    return text + "  return } }\n"


def product(element, result, m, n, k, batch=()):
    shapes = [(element, *batch, m, k), (element, *batch, k, n), (result, *batch, m, n)]
    zero, op, signs = ("0.0", "mmaf", "") if result[0] == "f" else ("0", "mmai", " signed unsigned")
    body = f"  %c = constant <{result}: {zero}> : {tile(*shapes[2])}\n  %r = {op} %a, %b, %c{signs} : " + ", ".join(tile(*s) for s in shapes) + "\n"
    return module([("a", shapes[0]), ("b", shapes[1])], body, [("r", shapes[2])]), "randint(lo=-3,hi=4)"


def scaled(m, n, k, block):
    f8, scale = "f8E4M3FN", "f8E8M0FNU"
    shapes = [(f8, m, k), (f8, k, n), ("f32", m, n), (scale, m, k // block), (scale, k // block, n)]
    body = f"  %c = constant <f32: 0.0> : {tile(*shapes[2])}\n  %r = mmaf_scaled %a, %b, %c, %p, %q : " + ", ".join(tile(*s) for s in shapes) + "\n"
    return module([("a", shapes[0]), ("b", shapes[1]), ("p", shapes[3]), ("q", shapes[4])], body, [("r", shapes[2])]), "bits"


def permuted(element, m, n):
    return module([("a", (element, m, n))], f"  %r = permute %a [1, 0] : {tile(element, m, n)} -> {tile(element, n, m)}\n", [("r", (element, n, m))]), "bits"


def packed(element, count, size):
    body = f"  %r = pack %a : {tile(element, count)} -> {tile('i8', count * size)}\n  %u = unpack %r : {tile('i8', count * size)} -> {tile(element, count)}\n"
    return module([("a", (element, count))], body, [("r", ("i8", count * size)), ("u", (element, count))]), "bits"


def narrow(element, count, in_byte):
    body = f"  %n = unpack %a : {tile('i8', count // in_byte)} -> {tile(element, count)}\n  %r = pack %n : {tile(element, count)} -> {tile('i8', count // in_byte)}\n"
    return module([("a", ("i8", count // in_byte))], body, [("r", ("i8", count // in_byte))]), "bits"


INDICES = "  %one = constant <i32: 1> : tile<i32>\n  %three = constant <i32: 3> : tile<i32>\n"
WHOLE, PART, HALF, SQUARE = ("f32", 256, 256), ("f32", 128, 64), ("f32", 256, 128), ("f32", 128, 128)
CASES = {
    "product of f32": product("f32", "f32", 256, 1, 64),
    "product of f64 whose operand is rearranged": product("f64", "f64", 256, 8, 128),
    "product of tf32": product("tf32", "f32", 128, 128, 256),
    "product of i8": product("i8", "i32", 2, 256, 256, (2,)),
    "products of a batch, long": product("f32", "f32", 2, 2, 8192, (2,)),
    "scaled product": scaled(64, 64, 512, 32),
    "transpose": permuted("f32", 128, 256),
    "transpose of f64": permuted("f64", 256, 128),
    "transpose of all that a block holds": permuted("f32", 512, 512),
    "pack": packed("f32", 2 ** 15, 4),
    "four bits": narrow("i4", 2 ** 18, 2),
    "single bits": narrow("i1", 2 ** 18, 8),
    "extract": (module([("a", WHOLE)], f"  %r = extract %a[%one, %three] : {tile(*WHOLE)} -> {tile(*PART)}\n", [("r", PART)], INDICES), "bits"),
    "insert": (module([("a", WHOLE), ("b", PART)], f"  %r = insert %b, %a[%one, %three] : {tile(*PART)}, {tile(*WHOLE)}\n", [("r", WHOLE)], INDICES), "bits"),
    "cat": (module([("a", HALF), ("b", HALF)], f"  %r = cat %a, %b dim = 1 : {tile(*HALF)}, {tile(*HALF)} -> {tile(*WHOLE)}\n", [("r", WHOLE)]), "bits"),
    # Several operations that leave each other less than all.
    "one after the other": (module([("a", SQUARE)], f"  %t = permute %a [1, 0] : {tile(*SQUARE)} -> {tile(*SQUARE)}\n  %w = mulf %a, %t : {tile(*SQUARE)}\n" +
                                   f"  %u = permute %w [1, 0] : {tile(*SQUARE)} -> {tile(*SQUARE)}\n  %c = constant <f32: 0.0> : {tile(*SQUARE)}\n" +
                                   f"  %r = mmaf %w, %u, %c : {tile(*SQUARE)}, {tile(*SQUARE)}, {tile(*SQUARE)}\n", [("r", SQUARE), ("u", SQUARE)]), "randint(lo=-3,hi=4)"),
}
TARGETS = "sm_75", "sm_86"
ASSEMBLED = "product of f32", "transpose of f64", "extract", "one after the other"


def arguments(text, generator):
    """One array for each parameter; those that the kernel writes hold zeros."""
    for word in text[text.index("@e(") + 3:text.index(") {")].split(", "):
        name, element = word[3:].split(": tile<ptr<")
        made = next(line for line in text.splitlines() if line.startswith(f"  %t_{name} = "))
        count = 1
        for extent in made[made.index("[") + 1:made.index("]")].split(", "):
            count *= int(extent)
        yield "--arg"
        yield f"ptr:{element[:-2]}[{count}]=" + (generator if f" %v_{name}[" in text and f"%l_{name} = " in text else "zeros")


def write(folder, name, user):
    path = pathlib.Path(folder) / f"{name} {user}.tile".replace(" ", "_")  # several run at once
    path.write_text(CASES[name][0])
    return path


def agrees(folder, case):
    name, target = case
    done = tilevm(write(folder, name, target), "--gpu=emulate", "--both", "--target", target, *arguments(*CASES[name]))
    return [] if done.returncode == 0 and "agree" in done.stderr else [f"{name} on {target}: exit {done.returncode}: {done.stderr[:600]}"]


def code(folder, ptxas):
    problems = []
    said = tilevm(write(folder, "product of f32", "remarks"), "--target", "sm_75", "--emit", "plan", "--remarks").stderr
    if "mmaf: fma of parts of 32 of K; shared memory does not hold all of both operands" not in said:
        problems.append(f"no remark on parts of a product: {said}")
    for name in ASSEMBLED if ptxas else ():
        out = pathlib.Path(folder) / "k.ptx"
        done = tilevm(write(folder, name, "code"), "--target", "sm_75", "--emit", f"ptx={out}")
        if done.returncode == 0:
            done = subprocess.run([ptxas, "-arch=sm_75", "-o", f"{folder}/k.cubin", out], capture_output=True, text=True, timeout=200, check=False)
        if done.returncode != 0:
            problems.append(f"{name}: {done.stdout}{done.stderr}"[:400])
    return problems


def probe(folder):
    return tilevm(write(folder, "extract", "probe"), "--gpu=emulate", *arguments(*CASES["extract"])).stderr


if __name__ == "__main__":
    cases = [(name, target) for name in CASES for target in TARGETS]
    sys.exit(run_cases(probe, cases, agrees, code, len(cases)))
