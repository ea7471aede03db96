#!/usr/bin/env python3
"""Which unit each target gives the products of each type, and what the GPU part refuses, from what the compiler itself says.

  python3 tools/gpu_units.py TILEVM --write spec/gpu-units.md
  python3 tools/gpu_units.py TILEVM --check spec/gpu-units.md     # exit 1 if the file is not what the compiler says now

Every operation with every type that it takes, on every target; products alone and in a loop over K fed by views; programs that ask for what is known
to be hard, and every kernel of the corpus. Nothing is run. Needs the program compile_many of the tests beside TILEVM."""
import concurrent.futures
import itertools
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


# Everything in one process for each half of the programs: starting one for each would take most of the time.
class Compiler:
    def __init__(self, tilevm, folder):
        self.program = pathlib.Path(tilevm).resolve().parent / "compile_many"
        self.folder, self.made, self.wanted, self.answers = folder, 0, [], {}

    def add(self, text_or_path):
        """A name for a program, by which `answer` knows it."""
        path = text_or_path
        if isinstance(text_or_path, str):
            self.made += 1
            path = self.folder / f"k{self.made}.tile"
            path.write_text(text_or_path)
        self.wanted.append(str(path))
        return str(path)

    def run(self, targets=TARGETS):
        def half(paths):
            done = subprocess.run([self.program, ",".join(targets)], input="".join(f"{p}\n" for p in paths), capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{self.program} ended with status {done.returncode}: {done.stderr[-500:]}")
            return [json.loads(line) for line in done.stdout.splitlines()]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for lines in pool.map(half, (self.wanted[0::2], self.wanted[1::2])):
                for line in lines:
                    self.answers[line["file"], line.get("target")] = line
        self.wanted = []

    def valid(self, name):
        return (name, None) not in self.answers

    def answer(self, name, target):
        if not self.valid(name):
            raise SystemExit(f"{name} is not valid: {self.answers[name, None]['why']}\n{pathlib.Path(name).read_text() if name.endswith('.tile') else ''}")
        a = self.answers[name, target]
        refused = a["refused"]
        if refused and (refused["code"] != "E0808" or not refused["message"]):
            raise SystemExit(f"{name} on {target}: {refused}: every refusal is E0808 and has a reason")
        return a


def said(answer):
    """The reason, without the target's name, so that equal refusals of several stand in one row."""
    return re.sub(r" is not supported on sm_\d+a?:", ":", answer["refused"]["message"])


# --- every operation with every type ---

# Elements that a kernel cannot store one by one, and what they become for it.
UNSTORED = {"i4": ("exti {} signed", "i32"), "f4E2M1FN": ("ftof {}", "f32")}


def probe(row, operands, results, attributes, extent):
    """An entry whose parameters are the operation's operands; what it gives is stored where memory can hold it. Generic form, so that one text serves all rows."""
    shape = f"{extent}x" if extent else ""
    tile = lambda e: f"!cuda_tile.tile<{shape}{e}>"
    lines, names = [], []
    for n, e in enumerate(operands):
        if extent and e == "f4E2M1FN":  # which no scalar has
            lines += [f"%s{n} = reshape %p{n} : tile<f32> -> tile<1xf32>", f"%w{n} = broadcast %s{n} : tile<1xf32> -> tile<{extent}xf32>", f"%v{n} = ftof %w{n} : tile<{extent}xf32> -> tile<{extent}x{e}>"]
        elif extent:
            lines += [f"%s{n} = reshape %p{n} : tile<{e}> -> tile<1x{e}>", f"%v{n} = broadcast %s{n} : tile<1x{e}> -> tile<{extent}x{e}>"]
        names.append(f"%v{n}" if extent else f"%p{n}")
    words = ", ".join(f"{k} = {v}" for k, v in attributes.items())
    lines.append(f'%r = "cuda_tile.{row["name"]}"({", ".join(names)})' + (f" <{{{words}}}>" if words else "") + f' : ({", ".join(map(tile, operands))}) -> {tile(results)}')
    stored, value = results, "%r"
    if results in UNSTORED:
        operation, stored = UNSTORED[results]
        lines.append(f"%wide = {operation.format('%r')} : tile<{shape}{results}> -> tile<{shape}{stored}>")
        value = "%wide"
    to = "%out"
    if extent:
        lines += [f"%o1 = reshape %out : tile<ptr<{stored}>> -> tile<1xptr<{stored}>>", f"%o2 = broadcast %o1 : tile<1xptr<{stored}>> -> tile<{extent}xptr<{stored}>>"]
        to = "%o2"
    lines.append(f"%t = store_ptr_tko weak {to}, {value} : tile<{shape}ptr<{stored}>>, tile<{shape}{stored}> -> token")
    parameters = [f"%p{n}: tile<{'f32' if extent and e == 'f4E2M1FN' else e}>" for n, e in enumerate(operands)] + [f"%out: tile<ptr<{stored}>>"]
    return body(", ".join(parameters), lines)


def table_rows():
    """Programs of the rows that need nothing but tiles of one shape: (operation, types, type of the result, text)."""
    out = []
    for row in json.loads((ROOT / "spec" / "ops.json").read_text())["operations"]:
        positions = row["operands"] + row["results"]
        if row["regions"] or row["terminator"] or len(row["results"]) != 1 or not row["operands"] or any(p["kind"] != "tile" or p["arity"] != "one" for p in positions):
            continue
        attributes = {}
        for a in row["attributes"]:
            if a["kind"] == "enum" and "default" not in a:
                attributes[a["name"]] = f"#cuda_tile.{a['enum']}<{a['values'][0]}>"
        names = [p["name"] for p in positions]
        classes = list(range(len(names)))  # positions of one element type
        for rule in row["rules"]:
            if rule["kind"] in ("same type", "same element type", "same element"):
                at = [names.index(n) for n in rule["at"]]
                low = min(classes[k] for k in at)
                classes = [low if c in {classes[k] for k in at} else c for c in classes]
        free = sorted(set(classes))
        choices = [[e for e in positions[c]["elements"] if e not in ("ptr",)] for c in free]
        for chosen in itertools.product(*choices):
            element = dict(zip(free, chosen))
            types = [element[c] for c in classes]
            label = chosen[0] if len(free) == 1 else " to ".join(chosen) if len(free) == 2 else ", ".join(chosen)
            out.append((row["name"], label, types[-1], lambda extent, row=row, types=types, attributes=attributes: probe(row, types[:-1], types[-1], attributes, extent)))
    return out


def suite_rows(missing):
    """For the other operations the smallest kernel of the conformance suite's smoke tier that has the operation and the type."""
    best = {}
    for path in sorted((ROOT / "conformance" / "cases").glob("**/case.json")):
        case = json.loads(path.read_text())
        if case["goal"] != "run" or case["form"] != "text" or case["expect"]["outcome"] == "rejected":
            continue
        kernel = path.parent / case["kernel"]
        size = kernel.stat().st_size
        for op in case["ops"]:
            for element in case["types"]:
                if op in missing and size < best.get((op, element), (1 << 30, None))[0]:
                    best[op, element] = (size, kernel)
    return [(op, element, kernel) for (op, element), (_, kernel) in sorted(best.items())]


def how(answer, plain):
    """`plain`: of a kernel that only moves an element of the result's type; None where nothing is to be compared with."""
    if answer["refused"]:
        return "refused"
    if plain is None:
        return "yes"
    return "instruction" if answer["instructions"] - plain["instructions"] <= 4 else "software"


def grouped(cells):
    """(operation, types, cells): types with the same cells stand together."""
    out = {}
    for op, element, row in cells:
        out.setdefault((op, tuple(row)), []).append(element)
    return [(f"{op}: {', '.join(elements)}", list(row)) for (op, row), elements in out.items()]


def unit_of(answer):
    if answer["refused"]:
        return "refused"
    found = [u["unit"] for u in answer["units"] if u["op"].startswith("mma")]
    unit = found[0] if found else "?"
    return unit.split(" from a ring")[0].replace(" of the transposed product with an operand in registers", " (transposed)")


def table_text(head, rows):
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
    with tempfile.TemporaryDirectory() as name:
        c = Compiler(tilevm, pathlib.Path(name))
        single = [(f"{e} into {a}", c.add(product(e, a))) for e, a in PRODUCTS]
        loops = [(f"{e} into {a}", c.add(loop(e, a))) for e, a in PRODUCTS]
        atomics = [(f"{m} of {e}", c.add(atomic(m, e))) for m, e in ATOMICS]
        probes = [(label, c.add(text)) for label, text in PROBES.items()]
        # Scalars where the row takes them, else tiles.
        # Scalars where the row takes them, else tiles.
        scalars = [(op, element, result, c.add(text(0)), text) for op, element, result, text in table_rows()]
        c.run()
        table = [(op, element, result, name if c.valid(name) else c.add(text(16)), 0 if c.valid(name) else 16) for op, element, result, name, text in scalars]
        plain = {(result, extent): c.add(probe({"name": "reshape"}, [result], result, {}, extent)) for _, _, result, _, extent in table if result not in UNSTORED}
        c.run()
        corpus = [c.add(path) for path in sorted((ROOT / "tests" / "corpus" / "tileirbc").glob("*.tileirbc"))]
        c.run(["sm_75"])
        ops = {row["name"] for row in json.loads((ROOT / "spec" / "ops.json").read_text())["operations"]}
        by_suite = [(op, element, c.add(kernel)) for op, element, kernel in suite_rows(ops - {op for op, _, _, name, _ in table if c.valid(name)})]
        c.run()

        refusals = {}

        def cell(label, name, target, word):
            a = c.answer(name, target)
            if a["refused"]:
                refusals.setdefault(f"{label}: {said(a)}" if label else said(a), set()).add(target)
            return word(a)

        def rows(programs, word):
            return [(label, [cell(label, name, t, word) for t in TARGETS]) for label, name in programs]

        cells = []
        for op, element, result, name, extent in table:
            if c.valid(name):  # what the row's special rules exclude is no type of the operation
                cells.append((op, element, [cell(f"{op} of {element}", name, t, lambda a, t=t: how(a, None if "f4E2M1FN" in element or result in UNSTORED else c.answer(plain[result, extent], t))) for t in TARGETS]))
        suite_cells = [(op, element, [cell(f"{op} of {element}", name, t, lambda a: how(a, None)) for t in TARGETS]) for op, element, name in by_suite]
        for _, name in probes:
            c.answer(name, TARGETS[0])
        rows(probes, lambda a: "")
        looked = 0
        for name in corpus:
            if (name, "sm_75") in c.answers:  # neither invalid nor without entries
                looked += 1
                cell("", name, "sm_75", lambda a: "")
        if looked < 100 or len(cells) < 250 or len(suite_cells) < 50:
            raise SystemExit(f"only {looked} kernels of the corpus, {len(cells)} cells of the table and {len(suite_cells)} of the suite were compiled")
        shown = {op for op, *_ in cells + suite_cells}
        none = sorted(ops - shown)
        parts = [
            "# Units of the GPU targets",
            "Made by `tools/gpu_units.py` from remarks, errors and code of the compiler, and checked to be up to date by a test, which also fails where a refusal is not E0808 "
            "or gives no reason. What is refused in general, and why, is on `gpu.md`.",
            "## Products of one tile\n\n64 x 64 x 64. `fma`: multiply-adds of single elements, in software where the target has no unit for the type.",
            table_text("type", rows(single, unit_of)),
            "## Products in a loop over K\n\nOperands of 64 x 64 from views of row-major arrays.",
            table_text("type", rows(loops, unit_of)),
            "## Atomics\n\nThose that a target lacks are made of compare-and-swap.",
            table_text("operation", rows(atomics, lambda a: "refused" if a["refused"] else "yes")),
            f"## Operations on elements\n\n{len(cells)} operations with their types. *instruction*: at most four instructions of PTX more than it takes to move an element of the result's type; *software*: more than that; *yes*: not told apart, since the elements do not come alone.",
            table_text("operation: types", grouped(cells)),
            f"## Other operations\n\nThe smallest kernel of the conformance suite's smoke tier with the operation and the type, {len(suite_cells)} in all. Without a kernel: "
            + ", ".join(f"`{op}`" for op in none) + ".",
            table_text("operation: types", grouped(suite_cells)),
            f"## Refused\n\nOf the programs above, of {len(PROBES)} that ask for much, and of the corpus for sm_75, which has the least.",
            "| what | targets |\n| --- | --- |\n" + "\n".join(f"| {what.replace('|', '/')} | {', '.join(t for t in TARGETS if t in targets)} |" for what, targets in sorted(refusals.items())),
        ]
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
