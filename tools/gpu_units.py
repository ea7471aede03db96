#!/usr/bin/env python3
"""Which unit each target gives the products of each type, and what the GPU part refuses, from what the compiler itself says.

  python3 tools/gpu_units.py TILEVM --write spec/gpu-units.md
  python3 tools/gpu_units.py TILEVM --check spec/gpu-units.md     # exit 1 if the file is not what the compiler says now

Products: a single one, and one in a loop over K fed by views; atomics of every type; then programs that ask for what is known to be hard, and every
kernel of the corpus. Nothing is run."""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGETS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
PRODUCTS = [("f16", "f16"), ("f16", "f32"), ("bf16", "f32"), ("tf32", "f32"), ("f32", "f32"), ("f64", "f64"), ("f8E4M3FN", "f32"), ("f8E5M2", "f32"), ("i8", "i32")]
ATOMICS = [("add", "i32"), ("add", "i64"), ("addf", "f16"), ("addf", "bf16"), ("addf", "f32"), ("addf", "f64"), ("max", "i64"), ("umin", "i32"), ("xchg", "i64"), ("xor", "i32")]


def product(element, acc):
    op, signs = ("mmai", " signed signed") if element == "i8" else ("mmaf", "")
    one = "1" if element == "i8" else "1.0"
    zero = "0" if element == "i8" else "0.0"
    t, a = f"tile<64x64x{element}>", f"tile<64x64x{acc}>"
    return f"""cuda_tile.module @m {{ entry @e() {{
  %a = constant <{element}: {one}> : {t}
  %c = constant <{acc}: {zero}> : {a}
  %d = {op} %a, %a, %c{signs} : {t}, {t}, {a}
  return }} }}
"""


def loop(element, acc):
    """A product in a loop; tf32 comes from f32 in memory."""
    memory = "f32" if element == "tf32" else element
    op, signs = ("mmai", " signed signed") if element == "i8" else ("mmaf", "")
    zero = "0" if element == "i8" else "0.0"
    t, tm, a = f"tile<64x64x{element}>", f"tile<64x64x{memory}>", f"tile<64x64x{acc}>"
    convert = "".join(f"    %{x}t = ftof %{x} : {tm} -> {t}\n" for x in "xy") if element == "tf32" else ""
    names = "%xt, %yt" if element == "tf32" else "%x, %y"
    return f"""!v = !cuda_tile.tensor_view<?x?x{memory}, strides=[?,1]>
!p = !cuda_tile.partition_view<tile=(64x64), padding_value = zero, !v>
!w = !cuda_tile.tensor_view<?x?x{acc}, strides=[?,1]>
!q = !cuda_tile.partition_view<tile=(64x64), !w>
cuda_tile.module @m {{ entry @e(%a: tile<ptr<{memory}>>, %b: tile<ptr<{memory}>>, %c: tile<ptr<{acc}>>, %n: tile<i32>, %s: tile<i32>) {{
  %va = make_tensor_view %a, shape = [%n, %n], strides = [%s, 1] : tile<i32> -> !v
  %vb = make_tensor_view %b, shape = [%n, %n], strides = [%s, 1] : tile<i32> -> !v
  %vc = make_tensor_view %c, shape = [%n, %n], strides = [%s, 1] : tile<i32> -> !w
  %pa = make_partition_view %va : !p
  %pb = make_partition_view %vb : !p
  %pc = make_partition_view %vc : !q
  %0 = constant <i32: 0> : tile<i32>
  %1 = constant <i32: 1> : tile<i32>
  %id:3 = get_tile_block_id : tile<i32>
  %none = constant <{acc}: {zero}> : {a}
  %r = for %k in (%0 to %n, step %1) : tile<i32> iter_values(%sum = %none) -> ({a}) {{
    %x, %t0 = load_view_tko weak %pa[%id#0, %k] : !p, tile<i32> -> {tm}, token
    %y, %t1 = load_view_tko weak %pb[%k, %id#1] : !p, tile<i32> -> {tm}, token
{convert}    %next = {op} {names}, %sum{signs} : {t}, {t}, {a}
    continue %next : {a}
  }}
  %t2 = store_view_tko weak %r, %pc[%id#0, %id#1] : {a}, !q, tile<i32> -> token
  return }} }}
"""


def atomic(mode, element):
    return f"""cuda_tile.module @m {{ entry @e(%p: tile<ptr<{element}>>, %v: tile<{element}>) {{
  %r, %t = atomic_rmw_tko relaxed device %p, {mode}, %v : tile<ptr<{element}>>, tile<{element}> -> tile<{element}>, token
  return }} }}
"""


def body(header, lines):
    return f"cuda_tile.module @m {{ entry @e({header}) {{\n  " + "\n  ".join(lines) + "\n  return } }\n"


# Programs that ask for what is hard: one that is refused gives a row with the compiler's own words.
PROBES = {
    "a tile of 2^19 elements": body("", ["%a = iota : tile<1024xi32>", "%b = reshape %a : tile<1024xi32> -> tile<1x1024xi32>", "%c = broadcast %b : tile<1x1024xi32> -> tile<512x1024xi32>",
                                         "%d = addi %c, %c : tile<512x1024xi32>"]),
    "a product of f32 with 512 of K": body("", ["%a = constant <f32: 1.0> : tile<64x512xf32>", "%b = constant <f32: 1.0> : tile<512x64xf32>", "%c = constant <f32: 0.0> : tile<64x64xf32>",
                                                "%d = mmaf %a, %b, %c : tile<64x512xf32>, tile<512x64xf32>, tile<64x64xf32>"]),
    "elements of four bits through pointers": body("%p: tile<ptr<f4E2M1FN>>", ["%q = reshape %p : tile<ptr<f4E2M1FN>> -> tile<1xptr<f4E2M1FN>>", "%r = broadcast %q : tile<1xptr<f4E2M1FN>> -> tile<8xptr<f4E2M1FN>>",
                                                                       "%x, %t = load_ptr_tko weak %r : tile<8xptr<f4E2M1FN>> -> tile<8xf4E2M1FN>, token"]),
    "an alloca of 2^31 bytes": body("", ["%p = alloca num_elem = 2147483648, alignment = 16 : tile<ptr<i8>>"]),
}


def ask(tilevm, text_or_path, target, folder, name):
    """Remarks and the refusal of a kernel, as the compiler gives them; None where the program is not valid."""
    path = text_or_path
    if isinstance(text_or_path, str):
        path = folder / f"{name}.tile"
        path.write_text(text_or_path)
    done = subprocess.run([tilevm, path, "--emit", "plan", "--target", target, "--remarks=json", "--diagnostics", "json"], capture_output=True, text=True, timeout=120)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    refused = [d for d in lines if d.get("severity") == "error" and d["code"] == "E0808"]
    if done.returncode != 0 and not refused:
        return None, lines
    return refused, lines


def said(diagnostic):
    """Without the target's name, so that equal refusals of several stand in one row."""
    return re.sub(r" is not supported on sm_\d+a?:", ":", diagnostic["message"])


def unit_of(answer):
    refused, lines = answer
    if refused is None:
        raise SystemExit(f"a program of this script is not valid: {lines}")
    if refused:
        return "refused"
    found = [r for r in lines if r.get("op", "").startswith("mma")]
    unit = found[0]["unit"] if found else "?"
    return unit.split(" from a ring")[0].replace(" of the transposed product with an operand in registers", " (transposed)")


def table(head, rows):
    """Columns that say the same stand together."""
    groups = []
    for c in range(len(TARGETS)):
        if groups and all(row[1][c] == row[1][groups[-1][0]] for row in rows):
            groups[-1].append(c)
        else:
            groups.append([c])
    lines = ["| " + " | ".join([head] + [", ".join(TARGETS[c] for c in g) for g in groups]) + " |", "| --- " * (len(groups) + 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join([name] + [cells[g[0]] for g in groups]) + " |" for name, cells in rows])


def make(tilevm):
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        number = iter(range(10**6))

        def rows(programs):
            jobs = [(label, [pool.submit(ask, tilevm, text, t, folder, f"k{next(number)}") for t in TARGETS]) for label, text in programs]
            return [(label, [j.result() for j in answers]) for label, answers in jobs]

        single = rows([(f"{e} into {a}", product(e, a)) for e, a in PRODUCTS])
        loops = rows([(f"{e} into {a}", loop(e, a)) for e, a in PRODUCTS])
        atomics = rows([(f"{m} of {e}", atomic(m, e)) for m, e in ATOMICS])
        probes = rows(list(PROBES.items()))
        corpus = []
        for path in sorted((ROOT / "tests" / "corpus" / "tileirbc").glob("*.tileirbc")):
            corpus.append((path.name, pool.submit(ask, tilevm, path, "sm_75", folder, "")))
        refusals = {}
        for label, answers in probes:
            for t, (refused, lines) in zip(TARGETS, answers):
                if refused is None:
                    raise SystemExit(f"{label}: not valid: {lines}")
                for d in refused:
                    refusals.setdefault(f"{label}: {said(d)}", set()).add(t)
        for label, answers in single + loops + atomics:
            for t, (refused, _) in zip(TARGETS, answers):
                for d in refused or []:
                    refusals.setdefault(f"{label}: {said(d)}", set()).add(t)
        looked = 0
        for _, *answers in corpus:
            for t, answer in zip(("sm_75",), answers):
                refused, _ = answer.result()
                looked += refused is not None
                for d in refused or []:
                    refusals.setdefault(said(d), set()).add(t)
        atomic_rows = [(label, ["refused" if a[0] else "yes" for a in answers]) for label, answers in atomics]
        parts = [
            "# Units of the GPU targets",
            "Made by `tools/gpu_units.py` from remarks and errors of the compiler, and checked to be up to date by a test. What is refused in general, and why, is on `gpu.md`.",
            "## Products of one tile\n\n64 x 64 x 64. `fma`: multiply-adds of single elements, in software where the target has no unit for the type.",
            table("type", [(label, [unit_of(a) for a in answers]) for label, answers in single]),
            "## Products in a loop over K\n\nOperands of 64 x 64 from views of row-major arrays.",
            table("type", [(label, [unit_of(a) for a in answers]) for label, answers in loops]),
            "## Atomics\n\nThose that a target lacks are made of compare-and-swap.",
            table("operation", atomic_rows),
            f"## Refused\n\nOf the programs above, of {len(PROBES)} that ask for much, and of the corpus for sm_75, which has the least.",
            "| what | targets |\n| --- | --- |\n" + "\n".join(f"| {what.replace('|', '/')} | {', '.join(t for t in TARGETS if t in targets)} |" for what, targets in sorted(refusals.items())),
        ]
        if looked < 100:
            raise SystemExit(f"only {looked} kernels of the corpus were compiled")
        return "\n\n".join(parts) + "\n"


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("--write", "--check"):
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[3])
    text = make(sys.argv[1])
    if sys.argv[2] == "--write":
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        sys.exit(f"{path} is not what the compiler says; write it again with tools/gpu_units.py TILEVM --write {path}")


if __name__ == "__main__":
    main()
