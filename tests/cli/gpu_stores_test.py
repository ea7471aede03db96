#!/usr/bin/env python3
"""Stores of products by bulk copies, blocks in a loop, warpgroups in turn, rings with one producer (backend/README.md): on the emulation every
program below gives the interpreter's bits, with every choice that --plan can force and whatever the order of threads and copies; and its PTX has what
the plan promises.

Skipped without the GPU part or a processor that runs its code. With ptxas (TILEVM_PTXAS or PATH), no register is spilled and no product
serialised. Environment: TILEVM, SOURCE_DIR, TILEVM_PTXAS."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from _gpu_kit import forced, run_cases, tilevm  # noqa: E402

ORDERS = [("early", 1), ("late", 2), ("random", 3), ("random", 4)]


def view(name, element, rank, strides):
    return f"!{name} = !cuda_tile.tensor_view<{'x'.join('?' * rank)}x{element}, strides=[{strides}]>\n"


def program(a, out, m, n, k, *, by_columns=False, loop=False, twice=False, again="", batch=False, middle="", guard=False, same=False):
    """A product of arrays of type `a` in tiles of m x n x k, its result as `out`. `loop`: blocks loop over tiles of a row, and tokens order their
    stores. `twice`: a second loop adds the product once more. `again`: what is done behind the store. `middle`: what is done with %sum to give
    %done. `guard`: the store stands in an `if`. `same`: with `loop`, all stores of a
    block go to one place, so that the last one counts."""
    acc = "i32" if a == "i8" else "f32"
    factor = "tf32" if a == "f32" else a
    mma = "mmai" if a == "i8" else "mmaf"
    signs = " signed signed" if a == "i8" else ""
    one, c_strides = ("1x", "?,?,1") if batch else ("", "1,?" if by_columns else "?,1")
    rank, b_strides, lead = (3, "?,?,1", "%z, ") if batch else (2, "?,1", "")
    text = view("a", a, rank, b_strides) + view("b", a, rank, b_strides) + view("c", out, rank, c_strides)
    text += f"!at = !cuda_tile.partition_view<tile=({one}{m}x{k}), padding_value = zero, !a>\n!bt = !cuda_tile.partition_view<tile=({one}{k}x{n}), padding_value = zero, !b>\n"
    text += f"!ct = !cuda_tile.partition_view<tile=({one}{m}x{n}), !c>\n"
    names = [f"%{x}: tile<ptr<{e}>>, " + ", ".join(f"%{x}{w}{d}: tile<i32>" for w in "ns" for d in range(rank)) for x, e in (("a", a), ("b", a), ("c", out))]
    text += f"cuda_tile.module @m {{\n  entry @k({', '.join(names)}) {{\n"
    for x in "abc":
        given = [f"%{x}s{d}" for d in range(rank)]
        given[0 if x == "c" and by_columns else rank - 1] = "1"
        text += f"    %v{x} = make_tensor_view %{x}, shape = [{', '.join(f'%{x}n{d}' for d in range(rank))}], strides = [{', '.join(given)}] : tile<i32> -> !{x}\n"
        text += f"    %p{x} = make_partition_view %v{x} : !{x}t\n"
    text += f"""    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %nothing = constant <{acc}: {'0' if acc == 'i32' else '0.0'}> : tile<{m}x{n}x{acc}>
    %x, %y0, %z = get_tile_block_id : tile<i32>
    %blocks:3 = get_num_tile_blocks : tile<i32>
    %steps:{rank} = get_index_space_shape %pa : !at -> tile<i32>
    %across:{rank} = get_index_space_shape %pc : !ct -> tile<i32>
    %start = make_token : token
"""
    if loop:
        text += f"    %end = for %y in (%y0 to %across#{rank - 1}, step %blocks#1) : tile<i32> iter_values(%before = %start) -> (token) {{\n"
    y, order = ("%y", " token = %before") if loop else ("%y0", "")

    def product(name, start):
        factors = {}
        body = f"    %{name} = for %k in (%zero to %steps#{rank - 1}, step %one) : tile<i32> iter_values(%so_far = %{start}) -> (tile<{m}x{n}x{acc}>) {{\n"
        for t, index, shape in (("a", "%x, %k", f"{m}x{k}"), ("b", f"%k, {y}", f"{k}x{n}")):
            body += f"      %l{t}, %t{t} = load_view_tko weak %p{t}[{lead}{index}] : !{t}t, tile<i32> -> tile<{one}{shape}x{a}>, token\n"
            last = f"%l{t}"
            if batch:
                body += f"      %r{t} = reshape {last} : tile<{one}{shape}x{a}> -> tile<{shape}x{a}>\n"
                last = f"%r{t}"
            if factor != a:
                body += f"      %c{t} = ftof {last} : tile<{shape}x{a}> -> tile<{shape}x{factor}>\n"
                last = f"%c{t}"
            factors[t] = last
        body += f"      %next = {mma} {factors['a']}, {factors['b']}, %so_far{signs} : tile<{m}x{k}x{factor}>, tile<{k}x{n}x{factor}>, tile<{m}x{n}x{acc}>\n"
        return body + f"      continue %next : tile<{m}x{n}x{acc}>\n    }}\n"

    text += product("sum", "nothing")
    last = "%sum"
    if twice:
        text += product("both", "sum")
        last = "%both"
    if middle:
        text += middle.format(last=last, t=f"tile<{m}x{n}x{acc}>")
        last = "%done"
    if out != acc:
        cast = "trunci" if acc == "i32" else "ftof"
        text += f"    %cast = {cast} {last} : tile<{m}x{n}x{acc}> -> tile<{m}x{n}x{out}>\n"
        last = "%cast"
    if batch:
        text += f"    %shaped = reshape {last} : tile<{m}x{n}x{out}> -> tile<{one}{m}x{n}x{out}>\n"
        last = "%shaped"
    if guard:
        text += f"    %some = cmpi less_than %x, %y0, signed : tile<i32> -> tile<i1>\n    if %some {{\n"
    text += f"    %stored = store_view_tko weak {last}, %pc[{lead}%x, {'%y0' if same else y}]{order} : tile<{one}{m}x{n}x{out}>, !ct, tile<i32> -> token\n"
    text += again.format(tile=last, t=f"tile<{one}{m}x{n}x{out}>", at=f"%pc[{lead}%x, {y}]", e=out)
    if guard:
        text += "    }\n"
    if loop:
        text += "    continue %stored : token\n    }\n"
    return text + "    return\n  }\n}\n"


# What follows the store in token order: the tile that was stored is read and stored again, by other ways; twice in the same place; read and
# stored elsewhere.
ADD_AGAIN = """    %back, %got = load_view_tko weak {at} token = %stored : !ct, tile<i32> -> {t}, token
    %more = addf %back, {tile} : {t}
    %stored2 = store_view_tko weak %more, {at} token = %got : {t}, !ct, tile<i32> -> token
"""
OVERWRITE = """    %more = addf {tile}, {tile} : {t}
    %stored2 = store_view_tko weak %more, {at} token = %stored : {t}, !ct, tile<i32> -> token
"""
ACTIVATE = "    %most = maxf {last}, %nothing : {t}\n    %done = addf %most, %most : {t}\n"
# Nearly all of these launches have more than three blocks, so that the blocks of the launch loop without being told to.
TURNS = ["alternate=off", "roles=off", "grid=program", "roles=on grid=program", "store=direct", "store=direct grid=program", "stages=2", "grid=loop stages=2 alternate=off"]
FEW = ["alternate=off", "grid=program", "roles=on grid=program"]

# Name, text, extents of A, B and C, more of C's argument, choices.
CASES = {
    "f16": (program("f16", "f16", 128, 128, 64), (256, 160), (160, 264), "", TURNS),
    "f16 ragged": (program("f16", "f16", 64, 64, 32), (200, 104), (104, 136), "", TURNS),
    "f16 128x256": (program("f16", "f16", 128, 256, 64), (200, 136), (136, 520), "", FEW),
    "f16 to f32": (program("f16", "f32", 128, 128, 32), (136, 72), (72, 256), "", FEW),
    "f16 to f8": (program("f16", "f8E4M3FN", 128, 128, 32), (136, 72), (72, 256), "", FEW),
    "f16 by columns": (program("f16", "f16", 128, 64, 32, by_columns=True), (136, 72), (72, 136), ":strides(1,144)", FEW),
    "f16 transposed": (program("f16", "f16", 16, 128, 64), (40, 72), (72, 264), "", FEW),
    "f16 loop": (program("f16", "f16", 128, 128, 32, loop=True), (136, 72), (72, 520), "", ["alternate=off", "roles=off", "store=direct", "stages=2", "grid=loop"]),
    "f16 loop same": (program("f16", "f16", 128, 128, 32, loop=True, same=True), (136, 72), (72, 776), "", ["alternate=off", "roles=off", "store=direct", "stages=2", "grid=loop"]),
    "f16 loop of no trips": (program("f16", "f16", 128, 128, 32, loop=True), (136, 0), (0, 520), "", ["alternate=off", "roles=off"]),
    "tf32 loop": (program("f32", "f32", 128, 128, 32, loop=True), (136, 72), (72, 520), "", ["alternate=on"]),
    "f16 twice": (program("f16", "f16", 128, 128, 32, twice=True), (136, 136), (136, 264), "", FEW + ["stages=3", "roles=off"]),
    "f16 loop twice": (program("f16", "f16", 64, 128, 32, loop=True, twice=True), (136, 136), (136, 520), "", ["roles=off", "roles=on", "stages=2", "store=direct"]),
    "f16 add again": (program("f16", "f16", 128, 128, 32, again=ADD_AGAIN), (136, 72), (72, 264), "", FEW + ["roles=off"]),
    "f16 overwrite": (program("f16", "f16", 128, 128, 32, again=OVERWRITE), (136, 72), (72, 264), "", FEW + ["roles=off"]),
    "f16 loop overwrite": (program("f16", "f16", 128, 128, 32, loop=True, again=OVERWRITE), (136, 72), (72, 520), "", ["roles=off", "store=direct"]),
    "f16 activate": (program("f16", "f16", 128, 128, 32, middle=ACTIVATE), (136, 72), (72, 264), "", FEW),
    "f16 guarded": (program("f16", "f16", 128, 128, 32, guard=True), (264, 72), (72, 264), "", FEW),
    "f16 batched": (program("f16", "f16", 128, 128, 64, batch=True), (3, 136, 72), (3, 72, 264), "", FEW),
    "f16 no map": (program("f16", "f16", 128, 128, 32), (136, 72), (72, 264), ":strides(267,1)", FEW),
    "bf16": (program("bf16", "bf16", 128, 128, 64), (256, 136), (136, 264), "", FEW),
    "tf32": (program("f32", "f32", 128, 128, 32), (136, 72), (72, 264), "", TURNS + ["alternate=on"]),
    "tf32 128x256": (program("f32", "f32", 128, 256, 32), (136, 72), (72, 264), "", FEW),
    "f8": (program("f8E4M3FN", "f16", 128, 128, 64), (136, 144), (144, 272), "", FEW),
    "i8": (program("i8", "i32", 128, 128, 64), (136, 144), (144, 272), "", TURNS + ["alternate=on"]),
    "i8 twice": (program("i8", "i32", 128, 128, 64, twice=True), (136, 144), (144, 272), "", FEW),
}


def launch(path, case, plan, order):
    text, a, b, more, _ = CASES[case]
    element = [re.search(rf"!{x} = !cuda_tile.tensor_view<[?x]*x(\w+)", text).group(1) for x in "abc"]
    c = (*a[:-1], b[-1])
    m, n = (int(x) for x in re.search(r"!ct = !cuda_tile.partition_view<tile=\((?:1x)?(\d+)x(\d+)\)", text).groups())
    grid = [-(-c[-2] // m), 2 if "%before" in text else -(-c[-1] // n), *c[:-2]]
    words = lambda shape: ",".join(map(str, shape))
    arrays = [f"array:{element[0]}[{words(a)}]=randint(seed=1,lo=-3,hi=4)", f"array:{element[1]}[{words(b)}]=randint(seed=2,lo=-3,hi=4)", f"array:{element[2]}[{words(c)}]{more}=zeros"]
    return tilevm(path, "--gpu=emulate", "--target", "sm_90a", "--both", "--grid", words(grid), "--emulate-policy", order[0], "--emulate-seed", order[1],
                  *(w for x in arrays for w in ("--arg", x)), *forced(plan))


def agrees(folder, case):
    """What is wrong with a case."""
    path = pathlib.Path(folder) / f"{case.replace(' ', '_')}.tile"
    path.write_text(CASES[case][0])
    problems = []
    for number, plan in enumerate(["", "", *CASES[case][4]]):
        order = ORDERS[(number + len(case)) % len(ORDERS)]
        done = launch(path, case, plan, order)
        if done.returncode != 0:
            problems.append(f"{case} with {plan or 'no choice'}, {order}: exit {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return problems


# Case, choices, then how often PTX has bulk stores, stmatrix, named barriers for turns, threads, and what a remark says.
CODE = [
    ("f16", "grid=loop", 4, 16, 384, "bulk stores of 8192 bytes by each warpgroup, written by stmatrix"),
    ("f16", "grid=program", 2, 8, 256, "bulk stores of 8192 bytes by each warpgroup, written by stmatrix"),
    ("f16", "grid=program store=direct", 0, 0, 256, "no bulk store: --plan store=direct"),
    ("f16 to f32", "grid=program", 4, 0, 256, "written by st.shared of 8 bytes"),
    ("f16 by columns", "grid=program", 1, 4, 256, "written by stmatrix"),
    ("f16 transposed", "grid=program", 1, 1, 256, "written by stmatrix"),
    ("tf32", "grid=loop", 8, 0, 384, "written by st.shared of 8 bytes"),
    ("tf32", "grid=loop alternate=on", 16, 0, 384, "written by st.shared of 8 bytes"),
    ("f8", "grid=loop", 2, 0, 384, "written by st.shared of 4 bytes"),
    ("i8 twice", "grid=loop", 8, 0, 384, "written by st.shared of 8 bytes"),
    ("f16 twice", "grid=loop", 2, 8, 384, "written by stmatrix"),
    ("f16 loop", "", 4, 16, 384, "written by stmatrix"),
    ("f16 loop", "alternate=off", 2, 8, 384, "written by stmatrix"),
]


def code(folder, ptxas):
    """What is wrong with the PTX."""
    problems = []

    def expect(what, text, pattern, n):
        found = len(re.findall(pattern, text))
        if found != n:
            problems.append(f"{what}: {found} of {pattern}, not {n}")

    for case, plan, stores, matrices, threads, remark in CODE:
        what = f"{case}, {plan or 'no choice'}"
        path = pathlib.Path(folder) / f"code_{case.replace(' ', '_')}.tile"
        path.write_text(CASES[case][0])
        done = tilevm(path, "--gpu", "--target", "sm_90a", "--emit", "ptx", "--remarks", *forced(plan))
        expect(what, done.stdout, r"cp\.async\.bulk\.tensor\.\dd\.global", stores)
        expect(what, done.stdout, r"stmatrix", matrices)
        expect(what, done.stdout, r"reqntid " + str(threads), 1)
        if remark not in done.stderr:
            problems.append(f"{what}: no remark says '{remark}': {done.stderr[-400:]}")
        if ptxas:
            ptx = pathlib.Path(folder) / "k.ptx"
            ptx.write_text(done.stdout)
            done = subprocess.run([ptxas, "-v", "-arch", "sm_90a", "-o", f"{folder}/k.cubin", str(ptx)], capture_output=True, text=True, timeout=200, check=False)
            said = done.stdout + done.stderr
            expect(what, said, r"C75\d\d", 0)
            expect(what, said, r"[^0-9]0 bytes spill stores, 0 bytes spill loads", 1)
    return problems


def probe(folder):
    path = pathlib.Path(folder) / "probe.tile"
    path.write_text(CASES["i8"][0])
    return launch(path, "i8", "", ORDERS[0]).stderr


if __name__ == "__main__":
    sys.exit(run_cases(probe, CASES, agrees, code, sum(2 + len(c[4]) for c in CASES.values())))
