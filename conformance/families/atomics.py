"""Atomics: every mode, type, ordering and scope; masks; many lanes and blocks on one place; reductions through views."""

from fractions import Fraction

from families.case import Case
from families.kernel import Kernel, tile
from families.pointers import data, pointer_tile
from families.shape import coordinates, dims, index
from families.views import Array, View, block_indices, linear
from oracle import exact, values
from oracle.formats import F, INTS, from_fraction
from oracle.rng import Rng

ORDERINGS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("tl_blk", "device", "sys")
INT_MODES = ("and", "or", "xor", "add", "max", "min", "umax", "umin", "xchg")


def combine(mode, t, old, arg):
    if mode == "xchg":
        return arg
    if mode == "addf":
        return exact.add(t, old, arg)
    n = INTS[t]
    op = {
        "and": "andi",
        "or": "ori",
        "xor": "xori",
        "add": "addi",
        "max": "maxi",
        "min": "mini",
        "umax": "maxi",
        "umin": "mini",
    }[mode]
    return exact.integer(op, n, old, arg, mode in ("max", "min"))[0]


def modes():
    for t in ("i32", "i64"):
        for m in INT_MODES:
            yield m, t
    for t in ("f16", "bf16", "f32", "f64"):
        yield "addf", t
    for t in ("f32", "f64"):
        yield "xchg", t


def usual(t, n, name):
    """Operands; for floats no NaN, and nothing subnormal (bounds.md, section 8)."""
    if t in INTS:
        return [
            values.int_edges(INTS[t])[i % len(values.int_edges(INTS[t]))] if i % 2 else b
            for i, b in enumerate(data(t, n, name))
        ]
    rng = Rng(f"{name} {t}")
    return [values.moderate(t, rng, 3) for _ in range(n)]


def rmw_case(
    name,
    mode,
    t,
    ordering="relaxed",
    scope="device",
    n=16,
    masked=False,
    before=None,
    args=None,
    tier="standard",
    free=None,
):
    case = Case("atomics", name, tier, ["atomic_rmw_tko"], [t])
    k = Kernel(case)
    before = before or usual(t, n, "rmw before " + mode)
    args = args or usual(t, n, "rmw arg " + mode)
    mask = [Rng(name + str(i)).bits(1) for i in range(n)] if masked else [1] * n
    x = k.input("x", t, args, [n])
    m = k.input("k", "i1", mask, [n]) if masked else None
    b = case.output(t, n, before)
    ps = pointer_tile(k, k.ptr_param("m", t), t, k.v(f"iota : tile<{n}xi32>"), n)
    r = k.fresh()
    extra, types = (f", {m}", f", {tile([n], 'i1')}") if masked else ("", "")
    k.emit(
        f"{r}, {k.fresh()} = atomic_rmw_tko {ordering} {scope} {ps}, {mode}, {x}{extra} : {tile([n], f'ptr<{t}>')}, {tile([n], t)}{types} -> {tile([n], t)}, token"
    )
    after = [combine(mode, t, o, a) if on else o for o, a, on in zip(before, args, mask)]
    k.output(
        "o",
        r,
        t,
        [n],
        [o if on else 0 for o, on in zip(before, mask)],
        rule="exact",
        free=[not on for on in mask] if masked else None,
    )
    case.results(b, t, after, rule="exact", strict="bits", free=free)
    return k.finish()


def rmw():
    for mode, t in modes():
        yield rmw_case(
            f"rmw.{mode}.{t}",
            mode,
            t,
            tier=(
                "smoke"
                if (mode, t) in (("umax", "i32"), ("min", "i64"), ("addf", "f16"), ("xchg", "f32"))
                else "standard"
            ),
        )
        yield rmw_case(f"rmw.{mode}.masked.{t}", mode, t, n=32, masked=True)
        for ordering in ORDERINGS:
            for scope in SCOPES:
                if (ordering, scope) != ("relaxed", "device"):
                    yield rmw_case(f"rmw.{mode}.{ordering}_{scope}.{t}", mode, t, ordering, scope, n=4)
    for t in ("i32", "i64"):
        top = 1 << (INTS[t] - 1)
        edge = [top, 1, 2 * top - 1, 0, top - 1]
        pairs = [(a, b) for a in edge for b in edge] + [(0, 0)] * 7
        for mode in ("max", "min", "umax", "umin", "add"):
            yield rmw_case(
                f"rmw.{mode}.edges.{t}",
                mode,
                t,
                n=32,
                before=[a for a, _ in pairs],
                args=[b for _, b in pairs],
                tier="smoke" if t == "i32" and mode == "umin" else "standard",
            )
    for t in ("f16", "bf16", "f32", "f64"):
        f = F[t]
        big, one_ = f.top_bits, f._pattern(Fraction(1))
        pairs = [
            (f.nan, one_),
            (one_, f.nan),
            (f.inf_bits, one_),
            (f.inf_bits, f.inf_bits | f.sign_bit),
            (0, f.sign_bit),
            (f.sign_bit, f.sign_bit),
            (big, big),
            (big, one_),
        ]
        yield rmw_case(
            f"rmw.addf.special.{t}", "addf", t, n=8, before=[a for a, _ in pairs], args=[b for _, b in pairs]
        )
        rng = Rng("atomic ties " + t)
        ties = values.float_pairs(t, 32, "atomic " + t, "tie")
        yield rmw_case(f"rmw.addf.ties.{t}", "addf", t, n=32, before=[a for a, _ in ties], args=[b for _, b in ties])
        tiny = [(rng.bits(f.man), rng.bits(f.man)) for _ in range(16)]
        yield rmw_case(
            f"rmw.addf.subnormal.{t}",
            "addf",
            t,
            n=16,
            before=[a for a, _ in tiny],
            args=[b for _, b in tiny],
            free=[True] * 16,
        )


def neighbours():
    """Halves of one word: the one beside the target must stay."""
    for t in ("f16", "bf16"):
        for parity in (0, 1):
            n = 16
            before = [
                F[t].nan | 0x8000 if i % 2 != parity else from_fraction(t, Fraction(i), sign=0) for i in range(2 * n)
            ]
            args = [from_fraction(t, Fraction(i + 1), sign=0) for i in range(n)]
            case = Case(
                "atomics",
                f"neighbour.{parity}.{t}",
                "smoke" if parity and t == "f16" else "standard",
                ["atomic_rmw_tko"],
                [t],
            )
            k = Kernel(case)
            x = k.input("x", t, args, [n])
            b = case.output(t, 2 * n, before)
            at = k.v(f"iota : tile<{n}xi32>")
            two = k.v(f"constant <i32: 2> : tile<{n}xi32>")
            at = k.v(f"muli {at}, {two} : tile<{n}xi32>")
            at = k.v(f"addi {at}, {k.v(f'constant <i32: {parity}> : tile<{n}xi32>')} : tile<{n}xi32>")
            ps = pointer_tile(k, k.ptr_param("m", t), t, at, n)
            k.emit(
                f"%r, %t = atomic_rmw_tko relaxed device {ps}, addf, {x} : {tile([n], f'ptr<{t}>')}, {tile([n], t)} -> {tile([n], t)}, token"
            )
            after = list(before)
            for i in range(n):
                after[2 * i + parity] = exact.add(t, before[2 * i + parity], args[i])
            case.results(b, t, after)
            yield k.finish()


def contended():
    """All lanes of all blocks on one place: the sum, and old values that are every partial sum in some order."""
    for mode, t, arg, start in (
        ("add", "i32", 1, 5),
        ("add", "i64", 3, 0),
        ("addf", "f32", None, 0),
        ("addf", "f64", None, 0),
        ("addf", "f16", None, 0),
        ("addf", "bf16", None, 0),
        ("xor", "i32", 1, 0),
        ("umax", "i32", None, 0),
        ("min", "i64", None, 7),
        ("or", "i32", None, 0),
    ):
        for blocks, n in ((1, 32), (8, 16), (64, 4)):
            total = blocks * n
            if mode == "addf":
                one_ = F[t]._pattern(Fraction(1))
                if total > 1 << F[t].precision:
                    total, blocks, n = 128, 8, 16
                args = [one_] * total
            elif arg is not None:
                args = [arg] * total
            else:
                rng = Rng(f"contended {mode} {t}")
                args = [rng.bits(INTS[t]) if mode != "or" else 1 << (i % 32) for i in range(total)]
            name = f"contended.{mode}.{blocks}x{n}.{t}"
            case = Case(
                "atomics",
                name,
                "smoke" if blocks == 8 and (mode, t) in (("add", "i32"), ("addf", "f16")) else "standard",
                ["atomic_rmw_tko"],
                [t],
            )
            case.grid = [blocks, 1, 1]
            k = Kernel(case)
            base = k.base(n)
            x = k.input("x", t, args, [n], base)
            b = case.output(t, 1, [start])
            ps = k.splat(k.ptr_param("m", t), f"ptr<{t}>", [n])
            k.emit(
                f"%r, %t = atomic_rmw_tko relaxed device {ps}, {mode}, {x} : {tile([n], f'ptr<{t}>')}, {tile([n], t)} -> {tile([n], t)}, token"
            )
            value, olds = start, []
            for a in args:
                olds.append(value)
                value = combine(mode, t, value, a)
            if len(set(args)) == 1:  # any order gives the same old values, permuted
                k.output("o", "%r", t, [n], olds, base, rule="order_free", strict="order_free", permuted=total, unit=1)
            case.results(b, t, [value])
            yield k.finish()
    for t, start in (("f16", 0x6800), ("bf16", 0x4380), ("f32", 0x4B800000)):
        # the number from which adding 1 is a tie that goes back: it stays
        case = Case("atomics", f"contended.addf.full.{t}", "standard", ["atomic_rmw_tko"], [t])
        case.grid = [16, 1, 1]
        k = Kernel(case)
        b = case.output(t, 1, [start])
        ps = k.splat(k.ptr_param("m", t), f"ptr<{t}>", [16])
        one = k.v(f"constant <{t}: 1.0> : {tile([16], t)}")
        k.emit(
            f"%r, %t = atomic_rmw_tko relaxed device {ps}, addf, {one} : {tile([16], f'ptr<{t}>')}, {tile([16], t)} -> {tile([16], t)}, token"
        )
        k.output("o", "%r", t, [16], [start] * 256, k.base(16))
        case.results(b, t, [start])
        yield k.finish()
    for blocks in (1, 7, 64):
        # exchange: what is in memory at the end and the old values together are the start and all that was stored
        case = Case("atomics", f"contended.xchg.{blocks}", "standard", ["atomic_rmw_tko"], ["i32"])
        case.grid = [blocks, 1, 1]
        k = Kernel(case)
        b = case.output("i32", 1, [0])
        k.ptr_param("m", "i32")
        v = k.v(f"addi {k.block()}, {k.const('i32', 1)} : tile<i32>")
        k.emit(f"%r, %t = atomic_rmw_tko acq_rel device %m, xchg, {v} : tile<ptr<i32>>, tile<i32> -> tile<i32>, token")
        # the sum of the old values and the last one is 1 + ... + blocks: add both into another place
        s = case.output("i32", 1, [0])
        k.ptr_param("s", "i32")
        k.emit("%q, %u = atomic_rmw_tko relaxed device %s, add, %r : tile<ptr<i32>>, tile<i32> -> tile<i32>, token")
        e = case.results(b, "i32", [blocks])
        f = case.results(s, "i32", [blocks * (blocks + 1) // 2 - blocks])
        # one alternative for each possible last block; both buffers are checked on their own
        for last in range(1, blocks):
            case.alternative(e, [last])
            case.alternative(f, [blocks * (blocks + 1) // 2 - last])
        yield k.finish()


def cas():
    for t in ("i32", "i64", "f32", "f64"):
        n = 16
        for masked in (False, True):
            for ordering in ORDERINGS:
                for scope in SCOPES if ordering == "acq_rel" else ("device",):
                    name = f"cas.{ordering}_{scope}{'.masked' if masked else ''}.{t}"
                    case = Case(
                        "atomics",
                        name,
                        "smoke" if t == "f32" and ordering == "relaxed" else "standard",
                        ["atomic_cas_tko"],
                        [t],
                    )
                    k = Kernel(case)
                    if t in INTS:
                        before = data(t, n, "cas")
                        compare = [b if i % 2 else b ^ 1 for i, b in enumerate(before)]
                    else:  # by bits: -0 is not +0, a NaN equals itself
                        f = F[t]
                        before = (
                            [0, f.sign_bit, f.nan, f.nan, f.inf_bits, f._pattern(Fraction(1)), 1, f.top_bits] * 2
                        )[:n]
                        compare = (
                            [
                                f.sign_bit,
                                f.sign_bit,
                                f.nan,
                                f.nan ^ f.sign_bit,
                                f.inf_bits,
                                f._pattern(Fraction(1)) ^ 1,
                                1,
                                f.top_bits,
                            ]
                            * 2
                        )[:n]
                    new = data(t, n, "cas new")
                    mask = [i % 3 != 1 for i in range(n)] if masked else [True] * n
                    c, x = k.input("c", t, compare, [n]), k.input("x", t, new, [n])
                    m = k.input("k", "i1", [int(v) for v in mask], [n]) if masked else None
                    b = case.output(t, n, before)
                    ps = pointer_tile(k, k.ptr_param("m", t), t, k.v(f"iota : tile<{n}xi32>"), n)
                    extra, types = (f", {m}", f", {tile([n], 'i1')}") if masked else ("", "")
                    k.emit(
                        f"%r, %t = atomic_cas_tko {ordering} {scope} {ps}, {c}, {x}{extra} : {tile([n], f'ptr<{t}>')}, {tile([n], t)}{types} -> {tile([n], t)}, token"
                    )
                    k.output("o", "%r", t, [n], [o if on else q for o, q, on in zip(before, compare, mask)])
                    case.results(b, t, [v if on and o == q else o for o, q, v, on in zip(before, compare, new, mask)])
                    yield k.finish()
    for blocks in (1, 8, 32):
        # a lock taken by compare and swap protects a plain counter
        case = Case(
            "atomics", f"cas.lock.{blocks}", "smoke" if blocks == 8 else "standard", ["atomic_cas_tko", "loop"], ["i32"]
        )
        case.grid = [blocks, 1, 1]
        k = Kernel(case)
        lock = case.output("i32", 1, [0])
        k.ptr_param("l", "i32")
        c = case.output("i32", 1, [0])
        k.ptr_param("c", "i32")
        zero, one = k.const("i32", 0), k.const("i32", 1)
        k.emit("%t0 = make_token : token")
        k.emit("%t = loop iter_values(%tk = %t0) : token -> token {")
        k.emit(
            f"  %r, %ta = atomic_cas_tko acquire device %l, {zero}, {one} token=%tk : tile<ptr<i32>>, tile<i32> -> tile<i32>, token"
        )
        k.emit(f"  %got = cmpi equal %r, {zero}, signed : tile<i32> -> tile<i1>")
        k.emit("  if %got {")
        k.emit("    break %ta : token")
        k.emit("  }")
        k.emit("  continue %ta : token")
        k.emit("}")
        k.emit("%x, %tb = load_ptr_tko relaxed device %c token=%t : tile<ptr<i32>> -> tile<i32>, token")
        k.emit(f"%y = addi %x, {one} : tile<i32>")
        k.emit("%tc = store_ptr_tko relaxed device %c, %y token=%tb : tile<ptr<i32>>, tile<i32> -> token")
        k.emit(f"%td = store_ptr_tko release device %l, {zero} token=%tc : tile<ptr<i32>>, tile<i32> -> token")
        case.results(lock, "i32", [0])
        case.results(c, "i32", [blocks])
        yield k.finish()


def view_reductions():
    for mode, t in [(m, t) for m, t in modes() if m != "xchg"]:
        for ns, shape in (((7,), (4,)), ((5, 7), (4, 4)), ((8, 8), (4, 4))):
            for scope in ("device",) if t != "i32" else ("device", "tl_blk"):
                array = Array(t, ns, (9, 1) if ns == (5, 7) else None)
                view = View(array, shape)
                name = f"red_view.{mode}.{dims(ns)}.{scope}.{t}"
                case = Case(
                    "atomics",
                    name,
                    "smoke" if (mode, t) == ("add", "i32") and ns == (5, 7) else "standard",
                    ["atomic_red_view_tko"],
                    [t],
                )
                k = Kernel(case)
                space = view.space()
                at = block_indices(k, space)
                n = 1
                for d in shape:
                    n *= d
                blocks = 1
                for d in space:
                    blocks *= d
                args = usual(t, n * blocks, "red " + mode)
                base = k.v(f"muli {linear(k, space)}, {k.const('i32', n)} : tile<i32>")
                x = k.input("x", t, args, list(shape), base)
                before = [0xA5A5A5A5A5A5A5A5 & (1 << (F[t].memory_bits if t in F else INTS[t])) - 1] * array.length
                start = usual(t, array.length, "red start " + mode)
                for p in array.places():
                    before[p] = start[p]
                b = case.output(t, array.length, before)
                v = view.emit(k, array.emit(k, k.ptr_param("m", t)))
                k.emit(
                    f"%t = atomic_red_view_tko relaxed {scope} {v}[{', '.join(at)}], {mode}, {x} : {tile(shape, t)}, {view.type_text()}, tile<i32> -> token"
                )
                after = list(before)
                for number, block in enumerate(coordinates(space)):
                    for e in coordinates(shape):
                        p = array.at(view.coordinate(block, e))
                        if p is not None:
                            after[p] = combine(mode, t, after[p], args[number * n + index(shape, e)])
                case.results(b, t, after, rule="exact" if t in F else "bits", strict="bits")
                yield k.finish()
    # overlapping tiles of a strided view: every element counts the tiles that hold it
    array = Array("i32", (10,))
    view = View(array, (4,), "strided", None, (2,))
    case = Case("atomics", "red_view.overlap", "smoke", ["atomic_red_view_tko"], ["i32"])
    k = Kernel(case)
    at = block_indices(k, view.space())
    b = case.output("i32", 10, [0] * 10)
    v = view.emit(k, array.emit(k, k.ptr_param("m", "i32")))
    one = k.v("constant <i32: 1> : tile<4xi32>")
    k.emit(
        f"%t = atomic_red_view_tko relaxed device {v}[{at[0]}], add, {one} : tile<4xi32>, {view.type_text()}, tile<i32> -> token"
    )
    after = [0] * 10
    for block in coordinates(view.space()):
        for e in coordinates((4,)):
            p = array.at(view.coordinate(block, e))
            if p is not None:
                after[p] += 1
    case.results(b, "i32", after)
    yield k.finish()


def atomics():
    for part in (rmw, neighbours, contended, cas, view_reductions):
        yield from part()


FAMILIES = {"atomics": atomics}
