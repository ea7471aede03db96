"""Launches that must end in a trap, and launches that the language leaves undefined, which must neither crash nor hang."""

from families.case import Case
from families.kernel import Kernel, tile
from families.pointers import pointer_tile
from oracle import exact
from oracle.formats import INTS, memory_bits


def asserts():
    for name, bits, fails in (("true", 1, False), ("false", 0, True)):
        case = Case("traps", f"assert.scalar_{name}", "smoke", ["assert"])
        k = Kernel(case)
        k.scalar("c", "i1", bits)
        k.emit('assert %c, "a condition" : tile<i1>')
        k.finish()
        if fails:
            case.trap("assert", False)
        yield case
    for shape, position in (([16], 0), ([16], 15), ([4, 8], 13), ([2, 2, 2], 7), ([1024], 777)):
        for fails in (True, False):
            n = 1
            for d in shape:
                n *= d
            case = Case(
                "traps",
                f"assert.tile_{'x'.join(map(str, shape))}.{position if fails else f'{position}_true'}",
                "standard",
                ["assert"],
                ["i1"],
            )
            k = Kernel(case)
            x = k.input("x", "i1", [0 if fails and i == position else 1 for i in range(n)], shape)
            k.emit(f"assert {x}, \"element %d is 100% wrong\" : {tile(shape, 'i1')}")
            k.finish()
            if fails:
                case.trap("assert", False)
            yield case
    for blocks, bad in ((8, 5), (64, 63), (64, 0)):
        case = Case("traps", f"assert.block_{bad}_of_{blocks}", "standard", ["assert"])
        case.grid = [blocks, 1, 1]
        k = Kernel(case)
        c = k.v(f"cmpi not_equal {k.block()}, {k.const('i32', bad)}, signed : tile<i32> -> tile<i1>")
        k.emit(f'assert {c}, "" : tile<i1>')
        k.finish()
        case.trap("assert", False)
        yield case
    for trips, fails in ((3, False), (10, True)):
        case = Case("traps", f"assert.in_loop_{trips}", "standard", ["assert", "for"])
        k = Kernel(case)
        n = k.scalar("n", "i32", trips)
        zero, one, five = k.const("i32", 0), k.const("i32", 1), k.const("i32", 5)
        k.emit(f"for %i in ({zero} to {n}, step {one}) : tile<i32> {{")
        k.emit(f"  %ok = cmpi less_than %i, {five}, signed : tile<i32> -> tile<i1>")
        k.emit("  if %ok {")
        k.emit("  } else {")
        k.emit('    assert %ok, "i is too large" : tile<i1>')
        k.emit("  }")
        k.emit("}")
        k.finish()
        if fails:
            case.trap("assert", False)
        yield case


def pointers():
    """Beyond either end of an array, by one and by much; masked lanes do not count."""
    for t in ("i32", "f16", "i8", "f64", "i1", "tf32"):
        size = memory_bits(t) // 8
        for kind in ("load", "store", "rmw"):
            if kind == "rmw" and t not in ("i32", "f16", "f64"):
                continue
            for place in (-1, 16, 1 << 20, -(1 << 20), 1 << 40):
                for masked in (False, True):
                    name = f"{kind}.at_{place}{'.masked' if masked else ''}.{t}".replace("-", "m")
                    case = Case(
                        "traps",
                        name,
                        "smoke" if t == "f16" and place == 16 and kind != "rmw" else "standard",
                        [{"load": "load_ptr_tko", "store": "store_ptr_tko", "rmw": "atomic_rmw_tko"}[kind]],
                        [t],
                    )
                    k = Kernel(case)
                    places = [0, 15, 7, place]
                    before = b"\x01" * (16 * size)
                    b = case.buffer(t, before)
                    p = k.ptr_param("p", t)
                    at = k.input("i", "i64", [v & (1 << 64) - 1 for v in places], [4])
                    ps = pointer_tile(k, p, t, at, 4, "i64")
                    m = k.input("m", "i1", [1, 1, 1, 0 if masked else 1], [4])
                    T, X = tile([4], f"ptr<{t}>"), tile([4], t)
                    x = k.v(f"constant <{t}: {('true' if t == 'i1' else '1') if t in INTS else '1.0'}> : {X}")
                    if kind == "load":
                        k.emit(f"%r, %t = load_ptr_tko weak {ps}, {m}, {x} : {T}, {tile([4], 'i1')}, {X} -> {X}, token")
                    elif kind == "store":
                        k.emit(f"%t = store_ptr_tko weak {ps}, {x}, {m} : {T}, {X}, {tile([4], 'i1')} -> token")
                    else:
                        mode = "add" if t in INTS else "addf"
                        k.emit(
                            f"%r, %t = atomic_rmw_tko relaxed device {ps}, {mode}, {x}, {m} : {T}, {X}, {tile([4], 'i1')} -> {X}, token"
                        )
                    k.finish()
                    if not masked:
                        case.trap("out_of_bounds")
                    elif kind == "load":
                        pass
                    else:
                        one = {
                            "i32": 1,
                            "i8": 1,
                            "i1": 1,
                            "f16": 0x3C00,
                            "f64": 0x3FF0000000000000,
                            "tf32": 0x3F800000,
                        }[t]
                        old = int.from_bytes(b"\x01" * size, "little")
                        new = (
                            one
                            if kind == "store"
                            else exact.integer("addi", INTS[t], old, one)[0] if t in INTS else exact.add(t, old, one)
                        )
                        case.results(b, t, [new if i in (0, 15, 7) else old for i in range(16)], first=0)
                    yield case
    for t in ("i32", "f64"):
        size = memory_bits(t) // 8
        for kind in ("load", "store", "rmw", "cas"):
            # the last element, aligned, begins inside of the buffer and ends beyond it
            op = {"load": "load_ptr_tko", "store": "store_ptr_tko", "rmw": "atomic_rmw_tko", "cas": "atomic_cas_tko"}[
                kind
            ]
            case = Case("traps", f"{kind}.cut_off.{t}", "standard", [op, "ptr_to_ptr"], [t])
            k = Kernel(case)
            case.buffer("i8", bytes(4 * size - size // 2))
            p = k.v(f"ptr_to_ptr {k.ptr_param('p', 'i8')} : tile<ptr<i8>> -> tile<ptr<{t}>>")
            ps = pointer_tile(k, p, t, k.v("iota : tile<4xi32>"), 4)
            T, X = tile([4], f"ptr<{t}>"), tile([4], t)
            x = k.v(f"constant <{t}: {'1' if t in INTS else '1.0'}> : {X}")
            if kind == "load":
                k.emit(f"%r, %t = load_ptr_tko weak {ps} : {T} -> {X}, token")
            elif kind == "store":
                k.emit(f"%t = store_ptr_tko weak {ps}, {x} : {T}, {X} -> token")
            elif kind == "rmw":
                mode = "add" if t in INTS else "addf"
                k.emit(f"%r, %t = atomic_rmw_tko relaxed device {ps}, {mode}, {x} : {T}, {X} -> {X}, token")
            else:
                k.emit(f"%r, %t = atomic_cas_tko relaxed device {ps}, {x}, {x} : {T}, {X} -> {X}, token")
            k.finish()
            case.trap("out_of_bounds")
            yield case
    for what in ("straddling", "other_argument", "bumped_unused", "null", "made_up"):
        case = Case("traps", f"pointer.{what}", "standard", ["load_ptr_tko"], ["i32"])
        k = Kernel(case)
        case.buffer("i32", bytes(64), 2 if what == "straddling" else 0)
        p = k.ptr_param("p", "i32")
        case.buffer("i32", bytes(64))
        q = k.ptr_param("q", "i32")
        if what == "straddling":  # the last two bytes of the element are outside
            a = k.v(f"offset {p}, {k.const('i32', 15)} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
        elif what == "other_argument":  # an address inside of q that is reached from p
            x, y = (k.v(f"ptr_to_int {v} : tile<ptr<i32>> -> tile<i64>") for v in (p, q))
            d = k.v(f"subi {y}, {x} : tile<i64>")
            d = k.v(f"shri {d}, {k.const('i64', 2)} signed : tile<i64>")
            a = k.v(f"offset {p}, {d} : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>>")
        elif what == "bumped_unused":
            k.v(f"offset {p}, {k.const('i32', 1000)} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
            a = p
        else:
            a = k.v(
                f"int_to_ptr {k.const('i64', 0 if what == 'null' else 0x123456789000)} : tile<i64> -> tile<ptr<i32>>"
            )
        k.emit(f"%r, %t = load_ptr_tko weak {a} : tile<ptr<i32>> -> tile<i32>, token")
        k.finish()
        if what == "other_argument":
            case.expect = {"outcome": "survives", "strict_only": True}
        elif what != "bumped_unused":
            case.trap("out_of_bounds")
        yield case


def indices():
    for op in ("extract", "insert"):
        for index, bad in ((0, False), (3, False), (4, True), (-1, True), (2**31 - 1, True)):
            case = Case(
                "traps", f"{op}.index_{index}".replace("-", "m"), "smoke" if index == 4 else "standard", [op], ["i32"]
            )
            k = Kernel(case)
            x = k.input("x", "i32", list(range(16)), [16])
            i = k.scalar("i", "i32", index & 0xFFFFFFFF)
            if op == "extract":
                r = k.v(f"extract {x}[{i}] : tile<16xi32> -> tile<4xi32>")
                k.output("o", r, "i32", [4], [4 * index + j if not bad else 0 for j in range(4)])
            else:
                s = k.v("constant <i32: 99> : tile<4xi32>")
                r = k.v(f"insert {s}, {x}[{i}] : tile<4xi32>, tile<16xi32>")
                k.output("o", r, "i32", [16], [99 if not bad and j // 4 == index else j for j in range(16)])
            k.finish()
            if bad:
                case.trap("index")
            yield case
    for step in (1, 0, -1):
        case = Case("traps", f"for.step_{step}".replace("-", "m"), "standard", ["for"], ["i32"])
        k = Kernel(case)
        s = k.scalar("s", "i32", step & 0xFFFFFFFF)
        zero, ten = k.const("i32", 0), k.const("i32", 10)
        k.emit(f"for %i in ({zero} to {ten}, step {s}) : tile<i32> {{")
        k.emit("}")
        k.finish()
        if step <= 0:
            case.trap("step")
        yield case
    case = Case("traps", "alloca.too_large", "standard", ["alloca"], ["f64"])
    k = Kernel(case)
    k.v(f"alloca num_elem = {1 << 60}, alignment = 8 : tile<ptr<f64>>")
    k.finish()
    case.trap("alloca")
    yield case
    case = Case("traps", "alloca.beyond", "standard", ["alloca"], ["i32"])
    k = Kernel(case)
    p = k.v("alloca num_elem = 4, alignment = 4 : tile<ptr<i32>>")
    q = k.v(f"offset {p}, {k.scalar('n', 'i32', 4)} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
    k.emit(f"%t = store_ptr_tko weak {q}, {k.const('i32', 1)} : tile<ptr<i32>>, tile<i32> -> token")
    k.finish()
    case.trap("out_of_bounds")
    yield case
    for at, bad in ((3, False), (4, True), (-1, True)):
        case = Case("traps", f"global.at_{at}".replace("-", "m"), "standard", ["get_global"], ["i32"])
        k = Kernel(case)
        k.globals.append("global @g <i32: [1, 2, 3, 4]> : tile<4xi32>")
        p = k.v("get_global @g : tile<ptr<i32>>")
        q = k.v(f"offset {p}, {k.scalar('n', 'i32', at & 0xFFFFFFFF)} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
        k.emit(f"%x, %t = load_ptr_tko weak {q} : tile<ptr<i32>> -> tile<i32>, token")
        k.output("o", "%x", "i32", [], [4 if not bad else 0])
        k.finish()
        if bad:
            case.trap("out_of_bounds")
        yield case


def views():
    """A view that claims more than the memory has: in-range tiles are fine, others trap; padding does not help, since the array is said to be there."""
    for sizes, claimed, at, bad in (((8,), 8, 1, False), ((8,), 12, 2, True), ((8,), 1 << 40, 1 << 20, True)):
        case = Case("traps", f"view.claims_{claimed}.at_{at}", "standard", ["load_view_tko"], ["i32"])
        k = Kernel(case)
        case.input("i32", list(range(sizes[0])))
        p = k.ptr_param("p", "i32")
        n = k.scalar("n", "i64", claimed)
        tv = "tensor_view<?xi32, strides=[1]>"
        pv = f"partition_view<tile=(4), padding_value = zero, {tv}>"
        v = k.v(f"make_tensor_view {p}, shape = [{n}], strides = [1] : tile<i64> -> {tv}")
        w = k.v(f"make_partition_view {v} : {pv}")
        i = k.scalar("i", "i64", at)
        k.emit(f"%x, %t = load_view_tko weak {w}[{i}] : {pv}, tile<i64> -> tile<4xi32>, token")
        k.output("o", "%x", "i32", [4], [4 * at + j if not bad else 0 for j in range(4)])
        k.finish()
        if bad:
            case.trap("out_of_bounds")
        yield case


def undefined():
    """Undefined by the language: whatever happens, it is neither a crash nor a hang."""

    def survive(name, ops):
        case = Case("undefined", name, "standard", ops)
        return case, Kernel(case)

    for t in ("i8", "i32", "i64", "i1"):
        n = INTS[t]
        for op in ("divi", "remi"):
            for sign in ("signed", "unsigned"):
                case, k = survive(f"{op}.{sign}.by_zero.{t}", [op])
                low = 1 << (n - 1)
                x, y = k.input("a", t, [5 & low * 2 - 1, low, 0, low], [4]), k.input(
                    "b", t, [0, 2 * low - 1, 0, 0], [4]
                )
                k.output("o", k.v(f"{op} {x}, {y} {sign} : {tile([4], t)}"), t, [4], [0] * 4)
                k.finish()
                case.expect = {"outcome": "survives"}
                yield case
    for size, stride in ((0, 1), (-5, 1), (8, 0), (8, -1), (8, -(1 << 62)), ((1 << 63) - 1, 1 << 62), (-(1 << 63), -1)):
        for op in ("load", "store", "red", "shape"):
            case, k = survive(f"view.{op}.size_{size}.stride_{stride}".replace("-", "m"), ["make_tensor_view"])
            case.output("i32", 64, [0] * 64)
            p = k.ptr_param("p", "i32")
            s, r = k.scalar("n", "i64", size & (1 << 64) - 1), k.scalar("s", "i64", stride & (1 << 64) - 1)
            tv = "tensor_view<?xi32, strides=[?]>"
            pv = f"partition_view<tile=(4), {tv}>"
            v = k.v(f"make_tensor_view {p}, shape = [{s}], strides = [{r}] : tile<i64> -> {tv}")
            w = k.v(f"make_partition_view {v} : {pv}")
            i = k.scalar("i", "i32", 1)
            if op == "load":
                k.emit(f"%x, %t = load_view_tko weak {w}[{i}] : {pv}, tile<i32> -> tile<4xi32>, token")
            elif op == "shape":
                k.emit(f"%x = get_index_space_shape {w} : {pv} -> tile<i8>")
                k.emit(f"%y = get_tensor_shape {v} : {tv} -> tile<i8>")
            else:
                x = k.v("iota : tile<4xi32>")
                if op == "store":
                    k.emit(f"%t = store_view_tko weak {x}, {w}[{i}] : tile<4xi32>, {pv}, tile<i32> -> token")
                else:
                    k.emit(
                        f"%t = atomic_red_view_tko relaxed device {w}[{i}], add, {x} : tile<4xi32>, {pv}, tile<i32> -> token"
                    )
            k.finish()
            case.expect = {"outcome": "survives"}
            yield case
    for at in (-1, 100, 1 << 31, 1 << 62, (1 << 63) - 1):
        for pad in ("", "padding_value = zero, "):
            case, k = survive(f"view.index_{at}{'.padded' if pad else ''}".replace("-", "m"), ["load_view_tko"])
            case.input("i32", list(range(64)))
            p = k.ptr_param("p", "i32")
            tv = "tensor_view<8x8xi32, strides=[8,1]>"
            pv = f"partition_view<tile=(4x4), {pad}{tv}>"
            v = k.v(f"make_tensor_view {p}, shape = [8, 8], strides = [8, 1] : {tv}")
            w = k.v(f"make_partition_view {v} : {pv}")
            i = k.scalar("i", "i64", at & (1 << 64) - 1)
            k.emit(f"%x, %t = load_view_tko weak {w}[{i}, {i}] : {pv}, tile<i64> -> tile<4x4xi32>, token")
            k.finish()
            case.expect = {"outcome": "survives"}
            yield case
    for name, predicate, bits in (("div_by", "div_by<16>", 7), ("bounded", "bounded<0, 3>", 9)):
        case, k = survive(f"assume.{name}", ["assume"])
        x = k.scalar("x", "i32", bits)
        y = k.v(f"assume {predicate}, {x} : tile<i32>")
        k.output("o", y, "i32", [], [bits])
        k.finish()
        case.expect = {"outcome": "survives"}
        yield case


def nesting():
    """Deep and wide texts: accepted or rejected, but neither a crash nor a hang."""

    def text(name, body, args="%c: tile<i1>, %i: tile<i32>"):
        case = Case("undefined", f"nesting.{name}", "standard")
        case.goal, case.kernel = (
            "check",
            ("cuda_tile.module @m {\n  entry @k(" + args + ") {\n" + body + "\n  }\n}\n").encode(),
        )
        case.expect = {"outcome": "survives"}
        return case

    for n in (100, 1000, 20000):
        yield text(f"if.{n}", "if %c {\n" * n + "}\n" * n)
        yield text(f"if_not_closed.{n}", "if %c {\n" * n)
        yield text(
            f"for.{n}", "".join(f"for %i{j} in (%i to %i, step %i) : tile<i32> {{\n" for j in range(n)) + "}\n" * n
        )
        yield text(f"loop.{n}", "loop {\n" * n + "}\n" * n)
        yield text(
            f"reduce.{n}",
            "%z = constant <i32: 0> : tile<2xi32>\n"
            + "%s = reduce %z dim=0 identities=[0 : i32] : tile<2xi32> -> tile<i32>\n(%l: tile<i32>, %r: tile<i32>) {\n"
            * n
            + "}\n" * n,
        )
        yield text(f"types.{n}", "%x = ptr_to_ptr %c : " + "tile<ptr<" * n + "f32" + ">>" * n + " -> tile<ptr<f32>>")
        yield text(f"lists.{n}", "%x = constant <i32: " + "[" * n + "1" + "]" * n + "> : tile<1xi32>")
        yield text(f"attributes.{n}", "%x = addi %i, %i {a = " + "[" * n + "]" * n + "} : tile<i32>")
        yield text(
            f"locations.{n}",
            "%x = addi %i, %i : tile<i32> loc(" + "callsite(unknown at " * n + "unknown" + ")" * n + ")",
        )
        yield text(
            f"operations.{n}",
            "\n".join(f"%v{j} = addi %{'i' if j == 0 else f'v{j - 1}'}, %i : tile<i32>" for j in range(n)),
        )
        yield text(f"dimensions.{n}", "%x = constant <i32: 0> : tile<" + "1x" * n + "i32>")
    yield text("long_name", "%" + "a" * 100000 + " = addi %i, %i : tile<i32>")
    yield text("long_string", 'assert %c, "' + "x" * 1000000 + '" : tile<i1>')
    yield text("long_number", "%x = constant <i32: " + "0" * 100000 + "1> : tile<i32>")


def traps():
    for part in (asserts, pointers, indices, views):
        yield from part()


FAMILIES = {"traps": traps, "undefined": lambda: (c for part in (undefined, nesting) for c in part())}
