"""What breaks compilers more than semantics: many live values, long chains over large tiles, short tiles of every type, many blocks on one result."""

from fractions import Fraction

from families.case import Case
from families.kernel import Kernel, elementwise, tile
from families.mma import limit_of, product, small_ints
from families.pointers import data
from families.programs import numbers
from families.reduce_scan import single
from oracle import exact, values
from oracle.formats import BASE, INT, INTS, from_fraction
from oracle.rng import Rng


def accumulators(count, trips, t="tf32"):
    """`count` products live across two loops, a store and an if."""
    m, n, depth = 32, 16, 8
    rng = Rng(f"accumulators {count} {trips} {t}")
    limit = max(1, limit_of(t, "f32", depth * max(1, trips)) // 2)
    a = small_ints(t, rng, m * depth, limit)
    bs = [small_ints(t, rng, depth * n, limit) for _ in range(count)]
    ints = lambda bits: [int(x) for x in numbers(t, bits)]
    # Every accumulator gains A B_i once a trip in each loop, and is doubled in between by the if.
    sums = [product(ints(a), ints(b), [0] * (m * n), m, n, depth) for b in bs]
    early = [trips * x for x in sums[0]]
    late = [[(2 * trips + trips) * x for x in s] for s in sums]
    as_bits = lambda vs: [from_fraction("f32", Fraction(v), sign=0) for v in vs]
    case = Case("stress", f"accumulators.{count}.trips_{trips}.{t}", "standard", ["mmaf", "for", "if"], [t])
    k = Kernel(case)
    T, TA, TB = tile([m, n], "f32"), tile([m, depth], t), tile([depth, n], t)
    x = k.input("a", t, a, [m, depth])
    ys = [k.input(f"b{i}", t, b, [depth, n]) for i, b in enumerate(bs)]
    steps = k.scalar("n", "i32", trips)
    zero, one = k.const("i32", 0), k.const("i32", 1)
    accs = [k.v(f"constant <f32: 0.0> : {T}") for _ in range(count)]
    types = ", ".join([T] * count)

    def loop(accs):
        names = [k.fresh() for _ in accs]
        args = [k.fresh() for _ in accs]
        inits = ", ".join(f"{p} = {q}" for p, q in zip(args, accs))
        index = k.fresh()
        k.emit(
            f"{', '.join(names)} = for {index} in ({zero} to {steps}, step {one}) : tile<i32> iter_values({inits}) -> ({types}) {{"
        )
        k.indent += 1
        sums = [k.v(f"mmaf {x}, {y}, {p} : {TA}, {TB}, {T}") for y, p in zip(ys, args)]
        k.emit(f"continue {', '.join(sums)} : {types}")
        k.indent -= 1
        k.emit("}")
        return names

    accs = loop(accs)
    k.output("early", accs[0], "f32", [m, n], as_bits(early), rule="exact")
    c = k.v(f"cmpi greater_than_or_equal {steps}, {zero}, signed : tile<i32> -> tile<i1>")
    names = [k.fresh() for _ in accs]
    k.emit(f"{', '.join(names)} = if {c} -> ({types}) {{")
    k.indent += 1
    doubled = [k.v(f"addf {p}, {p} : {T}") for p in accs]
    k.emit(f"yield {', '.join(doubled)} : {types}")
    k.indent -= 1
    k.emit("} else {")
    k.emit(f"  yield {', '.join(accs)} : {types}")
    k.emit("}")
    accs = loop(names)
    for i, (p, v) in enumerate(zip(accs, late)):
        k.output(f"o{i}", p, "f32", [m, n], as_bits(v), rule="exact")
    return k.finish()


def split_k(t, blocks, tier="standard"):
    """Each block multiplies its part of k and adds it to the result under a lock; tokens order what the lock protects."""
    m, n, depth = 8, 8, 16
    rng = Rng(f"split_k {t} {blocks}")
    limit = limit_of(t, "f32", depth * blocks)
    a, b = small_ints(t, rng, m * depth * blocks, limit), small_ints(t, rng, depth * n * blocks, limit)
    ia, ib = [int(x) for x in numbers(t, a)], [int(x) for x in numbers(t, b)]
    total = [0] * (m * n)
    for part in range(blocks):
        total = product(
            ia[part * m * depth : (part + 1) * m * depth],
            ib[part * depth * n : (part + 1) * depth * n],
            total,
            m,
            n,
            depth,
        )
    ops = ["mmaf", "atomic_cas_tko", "loop", "load_ptr_tko", "store_ptr_tko"]
    case = Case("stress", f"split_k.{blocks}.{t}", tier, ops, [t, "f32", "i32"])
    case.grid = [blocks, 1, 1]
    k = Kernel(case)
    x = k.input("a", t, a, [m, depth], k.base(m * depth))
    y = k.input("b", t, b, [depth, n], k.base(depth * n))
    lock = case.output("i32", 1, [0])
    k.ptr_param("l", "i32")
    out = case.output("f32", m * n, [0] * (m * n))
    T = tile([m, n], "f32")
    ps, shape = k.addresses(k.ptr_param("c", "f32"), "f32", m * n)
    P, V = tile(shape, "ptr<f32>"), tile(shape, "f32")
    zero, one = k.const("i32", 0), k.const("i32", 1)
    part = k.v(
        f"mmaf {x}, {y}, {k.v(f'constant <f32: 0.0> : {T}')} : {tile([m, depth], t)}, {tile([depth, n], t)}, {T}"
    )
    part = k.reshaped(part, "f32", [m, n], list(shape))
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
    k.emit(f"%old, %tb = load_ptr_tko relaxed device {ps} token=%t : {P} -> {V}, token")
    k.emit(f"%new = addf %old, {part} : {V}")
    k.emit(f"%tc = store_ptr_tko relaxed device {ps}, %new token=%tb : {P}, {V} -> token")
    k.emit(f"%td = store_ptr_tko release device %l, {zero} token=%tc : tile<ptr<i32>>, tile<i32> -> token")
    case.results(lock, "i32", [0])
    case.results(out, "f32", [from_fraction("f32", Fraction(v), sign=0) for v in total], rule="exact")
    return k.finish()


def chain(elements, length, tier):
    """A long chain of operations over a large tile: compile time must follow the operations, not the elements."""
    n, M = 1024, 0xFFFFFFFF
    rng = Rng(f"chain {elements}")
    row = [rng.bits(32) for _ in range(n)]
    case = Case("stress", f"chain.{length}.tile_{elements}", tier, ["addi", "xori", "muli", "reduce"], ["i32"])
    k = Kernel(case)
    x = k.input("x", "i32", row, [1, n])
    shape = [elements // n, n]
    T = tile(shape, "i32")
    x = k.v(f"broadcast {x} : {tile([1, n], 'i32')} -> {T}")
    i = k.v(f"iota : {tile([elements // n], 'i32')}")
    i = k.v(f"reshape {i} : {tile([elements // n], 'i32')} -> {tile([elements // n, 1], 'i32')}")
    i = k.v(f"broadcast {i} : {tile([elements // n, 1], 'i32')} -> {T}")
    y = x
    for step in range(length):
        y = k.v(f"{('addi', 'muli', 'xori')[step % 3]} {y}, {(i, x)[step % 2]} : {T}")
    sums = single(k, "reduce", y, "i32", shape, 0, "0 : i32", "addi {a}, {b} : {T}")
    out = [0] * n
    for r in range(elements // n):
        for c, a in enumerate(row):
            v = a
            for step in range(length):
                w = a if step % 2 else r
                v = (v + w if step % 3 == 0 else v * w if step % 3 == 1 else v ^ w) & M
            out[c] = out[c] + v & M
    k.output("o", sums, "i32", [n], out)
    return k.finish()


FLOAT_STEPS = (
    ("addf {0}, {1}", lambda t, a, b: exact.add(t, a, b)),
    ("mulf {0}, {1}", lambda t, a, b: exact.mul(t, a, b)),
    ("divf {0}, {1}", lambda t, a, b: exact.div(t, a, b)),
    ("fma {0}, {1}, {0}", lambda t, a, b: exact.fma(t, a, b, a)),
    ("maxf {0}, {1}", lambda t, a, b: exact.extreme(t, a, b, True)),
    ("negf {0}", lambda t, a, b: exact.negate(t, a)),
    ("sqrt {1}", lambda t, a, b: exact.sqrt(t, b)),
)
INT_STEPS = (
    ("addi {0}, {1}", "addi", False),
    ("muli {0}, {1}", "muli", False),
    ("xori {0}, {1}", "xori", False),
    ("maxi {0}, {1} signed", "maxi", True),
    ("mini {0}, {1} unsigned", "mini", False),
    ("andi {0}, {1}", "andi", False),
)


def short(t, n):
    """Every tile of n elements: what a back end makes of vectors that are shorter than its registers."""
    a, b = data(t, n, f"short a {n}"), data(t, n, f"short b {n}")
    if t in INT:
        steps = [(text, [exact.integer(op, INTS[t], x, y, s)[0] for x, y in zip(a, b)]) for text, op, s in INT_STEPS]
        compare, word = (
            lambda x, y: exact.integer("maxi", INTS[t], x, y, False)[0] == x and x != y,
            "cmpi greater_than {0}, {1}, unsigned",
        )
    else:
        rng = Rng(f"short {t} {n}")
        a, b = ([values.moderate(t, rng, 3) for _ in range(n)] for _ in range(2))
        steps = [(text, [fn(t, x, y) for x, y in zip(a, b)]) for text, fn in FLOAT_STEPS]
        compare, word = lambda x, y: exact.compare(t, x, y, "greater_than", True), "cmpf greater_than ordered {0}, {1}"
    chosen = [x if compare(x, y) else y for x, y in zip(a, b)]
    ops = sorted({text.split()[0] for text, _ in steps} | {word.split()[0], "select"})
    case = Case("stress", f"short.{t}.x{n}", "standard", ops, [t])

    def body(k, v, s):
        T = tile(s, t)
        out = [k.v(text.format(*v) + f" : {T}") for text, _ in steps]
        mask = k.v(word.format(*v) + f" : {T} -> {tile(s, 'i1')}")
        return out + [k.v(f"select {mask}, {v[0]}, {v[1]} : {tile(s, 'i1')}, {T}")]

    outputs = [(t, bits, {"rule": "exact"} if t not in INT else {}) for _, bits in steps] + [(t, chosen, {})]
    return elementwise(case, [n], [(t, a), (t, b)], outputs, body)


def stress():
    for count in (1, 2, 4, 8, 16):
        for trips in (0, 1, 7):
            yield accumulators(count, trips)
    for t in ("f16", "f32"):
        for blocks in (1, 8, 64):
            yield split_k(t, blocks)
    yield split_k("bf16", 500)
    for elements, tier in ((1 << 10, "standard"), (1 << 14, "standard"), (1 << 17, "full"), (1 << 20, "full")):
        yield chain(elements, 64, tier)
    for t in tuple(INT) + tuple(BASE):
        for n in (1, 2, 4, 8):
            yield short(t, n)


FAMILIES = {"stress": stress}
