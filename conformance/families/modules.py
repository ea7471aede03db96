"""Globals, several entries, grids, assumptions, hints, printing: what surrounds the arithmetic."""

from families.case import Case
from families.kernel import Kernel, tile
from families.shape import literal
from oracle import exact, values
from oracle.formats import F, INT, INTS, to_fraction
from oracle.rng import Rng


def data(t, n, name):
    rng = Rng(f"{name} {t}")
    return [values.random_bits(t, rng) for _ in range(n)]


def global_cases():
    for t in list(INT) + [f for f in F if f != "f4E2M1FN"]:
        for form in ("", "private ", "constant ", "public constant "):
            n = 8
            bits = data(t, n, "global")
            case = Case(
                "modules",
                f"global.{form.strip().replace(' ', '_') or 'plain'}.{t}",
                "smoke" if t == "f32" and form == "constant " else "standard",
                ["get_global"],
                [t],
            )
            k = Kernel(case)
            k.globals.append(
                f"global {form}@g alignment = 64 <{t}: [{', '.join(literal(t, b) for b in bits)}]> : {tile([n], t)}"
            )
            p = k.v(f"get_global @g : tile<ptr<{t}>>")
            x = k.load(p, t, [n])
            k.output("o", x, t, [n], bits)
            yield k.finish()
    # a global that blocks write: memory of the module, one for all blocks
    case = Case("modules", "global.counter", "smoke", ["get_global", "atomic_rmw_tko"], ["i32"])
    case.grid = [16, 1, 1]
    k = Kernel(case)
    k.globals.append("global @counter <i32: [100]> : tile<1xi32>")
    p = k.v("get_global @counter : tile<ptr<i32>>")
    k.emit(
        f"%r, %t = atomic_rmw_tko relaxed device {p}, add, {k.const('i32', 1)} : tile<ptr<i32>>, tile<i32> -> tile<i32>, token"
    )
    k.output(
        "o",
        "%r",
        "i32",
        [],
        list(range(100, 116)),
        k.block(),
        rule="order_free",
        strict="order_free",
        permuted=16,
        unit=1,
    )
    yield k.finish()
    case = Case("modules", "global.two_are_apart", "standard", ["get_global"], ["i16"])
    k = Kernel(case)
    k.globals += [
        "global @a <i16: 7> : tile<4xi16>",
        "global private @b alignment = 256 <i16: [1, -2, 3, -4]> : tile<4xi16>",
    ]
    a, b = k.v("get_global @a : tile<ptr<i16>>"), k.v("get_global @b : tile<ptr<i16>>")
    x = k.load(b, "i16", [4])
    k.store(a, x, "i16", [4])
    k.output("o", k.load(b, "i16", [4]), "i16", [4], [1, 0xFFFE, 3, 0xFFFC])
    z = k.v(f"ptr_to_int {b} : tile<ptr<i16>> -> tile<i64>")
    k.output("p", k.v(f"andi {z}, {k.const('i64', 255)} : tile<i64>"), "i64", [], [0])
    yield k.finish()


def entries():
    """One module, several entries that share globals and differ in parameters; each run on its own."""
    text = """cuda_tile.module @many attributes {producer = "by hand"} {
  global @table <i32: [10, 20, 30, 40]> : tile<4xi32>
  entry @first(%o: tile<ptr<i32>>) {
    %x = constant <i32: 1> : tile<i32>
    %t = store_ptr_tko weak %o, %x : tile<ptr<i32>>, tile<i32> -> token
    return
  }
  entry @second(%o: tile<ptr<i32>>, %n: tile<i32>) {
    %g = get_global @table : tile<ptr<i32>>
    %p = offset %g, %n : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %x, %t = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<i32>, token
    %t2 = store_ptr_tko weak %o, %x : tile<ptr<i32>>, tile<i32> -> token
  }
  cuda_tile.entry @third(%o: tile<ptr<i32>>, %a: tile<i8>, %b: tile<f64>) {
    %f = ftoi %b signed : tile<f64> -> tile<i32>
    %e = exti %a signed : tile<i8> -> tile<i32>
    %x = addi %f, %e : tile<i32>
    %t = store_ptr_tko weak %o, %x : tile<ptr<i32>>, tile<i32> -> token
    return
  }
  entry @fourth() {}
}
"""
    for entry, scalars, want in (
        ("first", [], 1),
        ("second", [("i32", 2)], 30),
        ("third", [("i8", 0xFB), ("f64", 0x4059000000000000)], 95),
    ):
        case = Case("modules", f"entries.{entry}", "smoke" if entry == "third" else "standard", ["entry"], ["i32"])
        b = case.output("i32", 1)
        for t, bits in scalars:
            case.scalar(t, bits)
        case.results(b, "i32", [want])
        case.entry, case.kernel = entry, text.encode()
        yield case
    case = Case("modules", "entries.empty", "standard", ["entry"])
    case.entry, case.kernel = "fourth", text.encode()
    yield case


def arguments():
    """Scalars of every type, NaN patterns too; pointers into the middle; many parameters; one buffer twice."""
    for t in list(INT) + [f for f in F if f != "f4E2M1FN"]:
        chosen = (values.edges(t) + data(t, 8, "argument"))[:8] if t != "i1" else [0, 1]
        for i, bits in enumerate(chosen[:: max(1, len(chosen) // 4)]):
            case = Case("modules", f"argument.{t}.{i}", "standard", ["entry"], [t])
            k = Kernel(case)
            x = k.scalar("x", t, bits)
            k.output("o", x, t, [], [bits])
            yield k.finish()
    for n in (32, 100):
        case = Case("modules", f"argument.many_{n}", "standard", ["entry"], ["i32", "i8"])
        k = Kernel(case)
        total = 0
        names = []
        for i in range(n):
            t = ("i32", "i8", "i64", "i16")[i % 4]
            v = (i * 37 + 5) % 120
            total += v * (i + 1)
            names.append((k.scalar(f"x{i}", t, v), t))
        acc = k.const("i64", 0)
        for i, (x, t) in enumerate(names):
            w = x if t == "i64" else k.v(f"exti {x} signed : tile<{t}> -> tile<i64>")
            factor = k.const("i64", i + 1)
            product = k.v(f"muli {w}, {factor} : tile<i64>")
            acc = k.v(f"addi {acc}, {product} : tile<i64>")
        k.output("o", acc, "i64", [], [total])
        yield k.finish()
    case = Case("modules", "argument.one_buffer_twice", "standard", ["entry"], ["i32", "f32"])
    k = Kernel(case)
    b = case.output("i32", 4, [0x3F800000, 2, 3, 4])
    k.ptr_param("p", "i32")
    case.pointer("i32", b, 64 + 8)
    k.ptr_param("q", "i32")
    k.emit("%x, %t1 = load_ptr_tko weak %q : tile<ptr<i32>> -> tile<i32>, token")
    k.emit("%t2 = store_ptr_tko weak %p, %x token=%t1 : tile<ptr<i32>>, tile<i32> -> token")
    case.results(b, "i32", [3, 2, 3, 4])
    yield k.finish()


def grids():
    for grid in ((1, 1, 1), (7, 1, 1), (1, 5, 1), (1, 1, 3), (3, 5, 2), (13, 17, 1), (131, 1, 1), (2, 2, 31)):
        case = Case(
            "modules",
            "grid." + "x".join(map(str, grid)),
            "smoke" if grid == (3, 5, 2) else "standard",
            ["get_tile_block_id", "get_num_tile_blocks"],
            ["i32"],
        )
        case.grid = list(grid)
        k = Kernel(case)
        k.emit("%x, %y, %z = get_tile_block_id : tile<i32>")
        k.emit("%nx, %ny, %nz = get_num_tile_blocks : tile<i32>")
        k.emit("%a = muli %z, %ny : tile<i32>")
        k.emit("%b = addi %a, %y : tile<i32>")
        k.emit("%c = muli %b, %nx : tile<i32>")
        k.emit("%n = addi %c, %x : tile<i32>")
        k.emit(f"%h = muli %x, {k.const('i32', 10000)} : tile<i32>")
        k.emit(f"%i = muli %y, {k.const('i32', 100)} : tile<i32>")
        k.emit("%j = addi %h, %i : tile<i32>")
        k.emit("%v = addi %j, %z : tile<i32>")
        out = [x * 10000 + y * 100 + z for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        b = case.output("i32", len(out), [0] * len(out))
        p = k.ptr_param("o", "i32")
        # each block runs exactly once: it adds to its own place
        q = k.v(f"offset {p}, %n : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
        k.emit(f"%r, %t = atomic_rmw_tko relaxed device {q}, add, %v : tile<ptr<i32>>, tile<i32> -> tile<i32>, token")
        case.results(b, "i32", out)
        for d, v in zip("xyz", grid):
            k.output(f"count_{d}", f"%n{d}", "i32", [], [v])
        yield k.finish()


def assumptions():
    """True assumptions change nothing."""
    rows = (
        ("div_by<4>", "i32", [], [8]),
        ("div_by<16>", "i64", [4], [16, -32, 0, 64]),
        ("div_by<4, every 4 along 0>", "i32", [8], [4, 5, 6, 7, 12, 13, 14, 15]),
        ("div_by<2, every 1 along 0>", "i16", [4], [2, 4, 8, -2]),
        ("same_elements<[4]>", "i32", [8], [3, 3, 3, 3, 9, 9, 9, 9]),
        ("same_elements<[2, 2]>", "i8", [2, 4], [1, 1, 5, 5, 1, 1, 5, 5]),
        ("bounded<0, 31>", "i32", [4], [0, 31, 7, 8]),
        ("bounded<?, 7>", "i8", [4], [-128, 7, 0, -1]),
        ("bounded<-5, ?>", "i64", [2], [-5, 1 << 40]),
        ("bounded<?, ?>", "i16", [], [77]),
        ("same_elements<[0]>", "i32", [4], [1, 2, 3, 4]),
        ("bounded<-1, 0>", "i1", [2], [0, -1]),
        ("div_by<1>", "i1", [2], [1, 0]),
    )
    for i, (predicate, t, shape, numbers) in enumerate(rows):
        bits = [v & ((1 << INTS[t]) - 1) for v in numbers]
        case = Case("modules", f"assume.{i:02}.{predicate.split('<')[0]}", "standard", ["assume"], [t])
        k = Kernel(case)
        x = k.input("a", t, bits, shape)
        y = k.v(f"assume {predicate}, {x} : {tile(shape, t)}")
        k.output("o", y, t, shape, bits)
        yield k.finish()
    case = Case("modules", "assume.pointer", "smoke", ["assume"], ["f32"])
    k = Kernel(case)
    bits = data("f32", 16, "assume")
    case.input("f32", bits)
    p = k.ptr_param("a", "f32")
    p = k.v(f"assume div_by<16>, {p} : tile<ptr<f32>>")
    tv = "tensor_view<4x4xf32, strides=[4,1]>"
    v = k.v(f"make_tensor_view {p}, shape = [4, 4], strides = [4, 1] : {tv}")
    v = k.v(f"assume div_by<16>, {v} : {tv}")
    w = k.v(f"make_partition_view {v} : partition_view<tile=(4x4), {tv}>")
    z = k.const("i32", 0)
    k.emit(
        f"%x, %t = load_view_tko weak {w}[{z}, {z}] : partition_view<tile=(4x4), {tv}>, tile<i32> -> tile<4x4xf32>, token"
    )
    k.output("o", "%x", "f32", [4, 4], bits)
    yield k.finish()


def hints():
    """Hints never change results: known, unknown and odd ones."""
    for i, (entry, load) in enumerate(
        (
            ("<sm_90 = {occupancy = 2}>", "<sm_90 = {latency = 4}>"),
            ("<default = {num_cta_in_cga = 1}, sm_100 = {num_cta_in_cga = 4}>", "<default = {latency = 1}>"),
            ("<sm_90 = {occupancy = 99}>", "<sm_90 = {latency = 77}>"),
            ("<sm_999 = {nonsense = 1}>", "<sm_90 = {nonsense = true}>"),
            ("<>", "<>"),
            (
                "<sm_90 = {num_worker_warps_per_cta = 8}, sm_80 = {occupancy = 1}>",
                "<sm_90 = {latency = 10}, sm_80 = {latency = 1}, default = {latency = 3}>",
            ),
        )
    ):
        bits = data("i32", 8, "hints")
        case = Case("modules", f"hints.{i}", "smoke" if i == 0 else "standard", ["entry", "load_ptr_tko"], ["i32"])
        case.input("i32", bits)
        b = case.output("i32", 8)
        case.results(b, "i32", bits)
        case.kernel = f"""cuda_tile.module @m {{
  entry @k(%a: tile<ptr<i32>>, %o: tile<ptr<i32>>) optimization_hints={entry} {{
    %i = iota : tile<8xi32>
    %a1 = reshape %a : tile<ptr<i32>> -> tile<1xptr<i32>>
    %a8 = broadcast %a1 : tile<1xptr<i32>> -> tile<8xptr<i32>>
    %as = offset %a8, %i : tile<8xptr<i32>>, tile<8xi32> -> tile<8xptr<i32>>
    %x, %t = load_ptr_tko weak %as optimization_hints={load} : tile<8xptr<i32>> -> tile<8xi32>, token
    %tv = make_tensor_view %o, shape = [8], strides = [1] : tensor_view<8xi32, strides=[1]>
    %v = make_partition_view %tv : partition_view<tile=(8), tensor_view<8xi32, strides=[1]>>
    %z = constant <i32: 0> : tile<i32>
    %t2 = store_view_tko weak %x, %v[%z] optimization_hints=<sm_90 = {{allow_tma = {'true' if i % 2 else 'false'}, latency = 3}}> : tile<8xi32>, partition_view<tile=(8), tensor_view<8xi32, strides=[1]>>, tile<i32> -> token
    return
  }}
}}
""".encode()
        yield case


def prints():
    """Judged where the implementation gives what was printed."""
    rows = (
        ("int", "%r = constant <i32: -7> : tile<i32>", '"%i\\0A", %r : tile<i32>', ["-7"]),
        (
            "two",
            "%r = constant <i32: 5> : tile<i32>\n    %s = constant <f32: 1.5> : tile<f32>",
            '"a=%d b=%f!\\0A", %r, %s : tile<i32>, tile<f32>',
            ["a=5 b=1.500000!"],
        ),
        ("row", "%r = iota : tile<4xi32>", '"%i\\0A", %r : tile<4xi32>', ["[0, 1, 2, 3]"]),
        (
            "matrix",
            "%r = constant <f32: [[0.0, 1.0], [2.0, 3.0]]> : tile<2x2xf32>",
            '"%.1f\\0A", %r : tile<2x2xf32>',
            ["[[0.0, 1.0], [2.0, 3.0]]"],
        ),
        (
            "hex",
            "%r = constant <i32: 255> : tile<i32>",
            '"%x %08X %%\\0A", %r, %r : tile<i32>, tile<i32>',
            ["ff 000000FF %"],
        ),
        ("half", "%r = constant <f16: 0.5> : tile<f16>", '"%g\\0A", %r : tile<f16>', ["0.5"]),
        ("nothing", "", '"plain\\0A"', ["plain"]),
        ("long", "%r = constant <i64: 1099511627776> : tile<i64>", '"%lld\\0A", %r : tile<i64>', ["1099511627776"]),
        ("i1", "%r = constant <i1: [true, false]> : tile<2xi1>", '"%i\\0A", %r : tile<2xi1>', ["[1, 0]"]),
    )
    for name, define, operands, want in rows:
        case = Case("modules", f"print.{name}", "standard", ["print_tko"])
        define = f"    {define}\n" if define else ""
        case.kernel = f"cuda_tile.module @m {{\n  entry @k() {{\n{define}    %t = print_tko {operands} -> token\n    return\n  }}\n}}\n".encode()
        case.expect["prints"] = want
        yield case
    case = Case("modules", "print.blocks", "standard", ["print_tko"])
    case.grid = [6, 1, 1]
    case.kernel = b'cuda_tile.module @m {\n  entry @k() {\n    %x, %y, %z = get_tile_block_id : tile<i32>\n    %t = print_tko "block %i\\0A", %x : tile<i32> -> token\n    return\n  }\n}\n'
    case.expect["prints"] = [f"block {i}" for i in range(6)]
    yield case


def folded():
    """Operations on constants, which compilers compute beforehand, give what they give on loaded values."""
    f32 = values.float_edges("f32")[:16]
    rows = []
    for mode in ("nearest_even", "zero", "negative_inf", "positive_inf"):
        for op, fn in (("addf", exact.add), ("mulf", exact.mul), ("divf", exact.div)):
            rows.append(
                (
                    f"{op}.{mode}",
                    [("f32", f32), ("f32", f32[::-1])],
                    "f32",
                    f"{op} {{0}}, {{1}} rounding<{mode}> : {{T}}",
                    [fn("f32", a, b, mode=mode) for a, b in zip(f32, f32[::-1])],
                )
            )
    for predicate in exact.PREDICATES:
        for ordered in (True, False):
            both = [("f32", f32 + values.nans("f32")[:4] + f32[:12]), ("f32", values.nans("f32")[:4] + f32 + f32[:12])]
            rows.append(
                (
                    f"cmpf.{predicate}.{'ordered' if ordered else 'unordered'}",
                    both,
                    "i1",
                    f"cmpf {predicate} {'ordered' if ordered else 'unordered'} {{0}}, {{1}} : {{T}} -> {{R}}",
                    [exact.compare("f32", a, b, predicate, ordered) for a, b in zip(both[0][1], both[1][1])],
                )
            )
    for target in ("f16", "bf16", "tf32", "f64", "f8E4M3FN", "f8E5M2"):
        bits = [
            b
            for b in values.float_edges("f32")
            if b & 0x7FFFFFFF < 0x7F800000 and abs(to_fraction("f32", b)) <= F[target].top
        ][:16]
        rows.append(
            (
                f"ftof.{target}",
                [("f32", bits)],
                target,
                "ftof {0} : {T} -> {R}",
                [exact.convert("f32", target, b) for b in bits],
            )
        )
    half = [0x3E00, 0x3C01, 0x0001, 0xBBFF, 0x5640, 0x8000, 0x2E66, 0x4248] * 2
    for target in ("f8E4M3FN", "f8E5M2", "tf32", "bf16"):
        rows.append(
            (
                f"ftof.f16.{target}",
                [("f16", half)],
                target,
                "ftof {0} : {T} -> {R}",
                [exact.convert("f16", target, b) for b in half],
            )
        )
    i32 = values.int_edges(32)[:16]
    for op in ("addi", "subi", "muli", "mulhii", "xori"):
        rows.append(
            (
                op,
                [("i32", i32), ("i32", i32[::-1])],
                "i32",
                f"{op} {{0}}, {{1}} : {{T}}",
                [exact.integer(op, 32, a, b)[0] for a, b in zip(i32, i32[::-1])],
            )
        )
    for name, inputs, target, text, out in rows:
        n = len(out)
        case = Case("modules", f"folded.{name}", "standard", [name.split(".")[0]], [inputs[0][0]])
        k = Kernel(case)
        v = [k.v(f"constant <{t}: [{', '.join(literal(t, b) for b in bits)}]> : {tile([n], t)}") for t, bits in inputs]
        r = k.v(text.format(*v, T=tile([n], inputs[0][0]), R=tile([n], target)))
        k.output("o", r, target, [n], out, rule="exact")
        yield k.finish()


def modules():
    for part in (global_cases, entries, arguments, grids, assumptions, hints, prints, folded):
        yield from part()


FAMILIES = {"modules": modules}
