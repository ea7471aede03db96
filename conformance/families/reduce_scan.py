"""reduce and scan. The language leaves the order open, so the data are such that every order gives the same bits, or there is a bound."""

import itertools
from fractions import Fraction

from families.case import Case
from families.kernel import Kernel, count, tile
from families.shape import coordinates, dims, index
from oracle import exact, values
from oracle.formats import BASE, F, INT, INTS, from_fraction, signed, to_fraction
from oracle.rng import Rng

INT_OPS = {
    "addi": ("", 0),
    "muli": ("", 1),
    "andi": ("", -1),
    "ori": ("", 0),
    "xori": ("", 0),
    "maxi": (" signed", None),
    "mini": (" signed", None),
    "maxi.unsigned": (" unsigned", 0),
    "mini.unsigned": (" unsigned", -1),
}
SHAPES = (
    ([16], 0),
    ([8, 16], 0),
    ([8, 16], 1),
    ([2, 4, 8], 0),
    ([2, 4, 8], 1),
    ([2, 4, 8], 2),
    ([1, 8], 0),
    ([1], 0),
    ([2], 0),
    ([4, 2, 2, 4], 2),
    ([512], 0),
    ([128, 32], 0),
)
FEW = (([16], 0), ([8, 16], 1), ([2, 4, 8], 1), ([512], 0))


def int_identity(op, n):
    value = INT_OPS[op][1]
    if value is None:
        value = -(1 << (n - 1)) if op == "maxi" else (1 << (n - 1)) - 1
    return value


def identity_text(t, bits):
    if t in INTS:
        if t == "i1":
            return "true" if bits & 1 else "false"
        return f"{signed(bits & ((1 << INTS[t]) - 1), INTS[t])} : {t}"
    return f"{hex(bits >> F[t].shift)} : {t}"


def along(shape, dim, bits):
    """Remaining coordinate -> the elements along dim, in order."""
    lines = {}
    for c in coordinates(shape):
        lines.setdefault(c[:dim] + c[dim + 1 :], []).append(bits[index(shape, c)])
    return lines


def written(k, op, operands, shape, dim, identities, body, reverse=None):
    """Emits a reduce or scan; operands are (value, type). body(k, left names, right names) -> yielded values. Results as a list."""
    types = [t for _, t in operands]
    results = [tile(shape[:dim] + shape[dim + 1 :] if op == "reduce" else shape, t) for t in types]
    names = [k.fresh() for _ in operands]
    args = [(f"%l{j}", f"%r{j}", t) for j, t in enumerate(types)]
    extra = "" if reverse is None else f" reverse={'true' if reverse else 'false'}"
    k.emit(
        f"{', '.join(names)} = {op} {', '.join(v for v, _ in operands)} dim={dim}{extra} identities=[{', '.join(identities)}] : "
        f"{', '.join(tile(shape, t) for t in types)} -> {', '.join(results)}"
    )
    k.emit("(" + ", ".join(f"{x}: tile<{t}>, {y}: tile<{t}>" for x, y, t in args) + ") {")
    k.indent += 1
    out = body(k, [x for x, _, _ in args], [y for _, y, _ in args])
    k.emit(f"yield {', '.join(out)} : {', '.join(f'tile<{t}>' for t in types)}")
    k.indent -= 1
    k.emit("}")
    return names


def single(k, op, x, t, shape, dim, identity, text, reverse=None):
    """A reduce or scan of one operand by one operation, whose text has {a}, {b} and the type {T}."""
    body = lambda k, a, b: [k.v(text.format(a=a[0], b=b[0], T=f"tile<{t}>"))]
    return written(k, op, [(x, t)], shape, dim, [identity], body, reverse)[0]


def folded(shape, dim, bits, fn, op, reverse):
    """What must come out, for a body fn of one operand that is associative and commutative on these data."""
    if op == "reduce":
        lines = along(shape, dim, bits)
        rest = shape[:dim] + shape[dim + 1 :]
        out = []
        for c in coordinates(rest):
            line = lines[c]
            total = line[0]
            for x in line[1:]:
                total = fn(total, x)
            out.append(total)
        return rest, out
    out = list(bits)
    order = range(shape[dim]) if not reverse else range(shape[dim] - 1, -1, -1)
    for c in coordinates(shape[:dim] + shape[dim + 1 :]):
        total = None
        for j in order:
            at = index(shape, c[:dim] + (j,) + c[dim:])
            total = bits[at] if total is None else fn(total, bits[at])
            out[at] = total
    return list(shape), out


def one(family, name, t, shape, dim, bits, text, fn, identity, op, reverse, tier="standard", ops=(), **how):
    case = Case("reduce_scan", name, tier, [op, *ops], [t])
    k = Kernel(case)
    x = k.input("a", t, bits, shape)
    r = single(k, op, x, t, shape, dim, identity, text, reverse)
    rest, out = folded(shape, dim, bits, fn, op, reverse)
    k.output("o", r, t, rest, out, **how)
    return k.finish()


def forms():
    """reduce, and scan in both directions."""
    return (("reduce", None), ("scan", False), ("scan", True))


def label(op, reverse):
    return op if reverse is None else "scan_reverse" if reverse else "scan"


def integer_cases():
    for name, (sign, _) in INT_OPS.items():
        base = name.split(".")[0]
        for t in INT:
            n = INTS[t]
            for op, reverse in forms():
                for shape, dim in (
                    SHAPES if t == "i32" and name in ("addi", "maxi") else FEW if t in ("i8", "i32", "i64") else FEW[:2]
                ):
                    rng = Rng(f"reduce {name} {t} {shape}")
                    bits = [rng.bits(n) | (1 if base == "muli" else 0) for _ in range(count(shape))]
                    if base == "andi":
                        bits = [b | rng.bits(n) | rng.bits(n) for b in bits]
                    if base == "ori":
                        bits = [b & rng.bits(n) & rng.bits(n) for b in bits]
                    fn = lambda a, b: exact.integer(base, n, a, b, "unsigned" not in sign)[0]
                    yield one(
                        "reduce_scan",
                        f"{label(op, reverse)}.{name}.{dims(shape)}.dim{dim}.{t}",
                        t,
                        shape,
                        dim,
                        bits,
                        f"{base} {{a}}, {{b}}{sign} : {{T}}",
                        fn,
                        identity_text(t, int_identity(name, n)),
                        op,
                        reverse,
                        (
                            "smoke"
                            if t == "i32" and shape == [8, 16] and dim == 1 and name in ("addi", "mini.unsigned")
                            else "standard"
                        ),
                        [base],
                    )


def float_cases():
    for t in BASE:
        f = F[t]
        one_, small = f._pattern(Fraction(1)), {"f16": 3, "bf16": 1, "f32": 100, "f64": 1000}[t]
        for op, reverse in forms():
            for shape, dim in SHAPES if t == "f32" else FEW:
                rng = Rng(f"reduce add {t} {shape}")
                length = shape[dim]
                limit = max(1, min(small, ((1 << f.precision) - 1) // length))
                bits = [from_fraction(t, Fraction(rng.between(-limit, limit)), sign=0) for _ in range(count(shape))]
                if length > (1 << f.precision) // 2:  # partial sums must stay exact
                    bits = [
                        from_fraction(t, Fraction(rng.between(-1, 1) if i % 16 == 0 else 0), sign=0)
                        for i in range(count(shape))
                    ]
                tier = "smoke" if t == "f32" and shape == [8, 16] and dim == 1 else "standard"
                yield one(
                    "reduce_scan",
                    f"{label(op, reverse)}.addf.{dims(shape)}.dim{dim}.{t}",
                    t,
                    shape,
                    dim,
                    bits,
                    "addf {a}, {b} : {T}",
                    lambda a, b: exact.add(t, a, b),
                    identity_text(t, 0),
                    op,
                    reverse,
                    tier,
                    ["addf"],
                    rule="exact",
                )
            for shape, dim in FEW:
                rng = Rng(f"reduce mul {t} {shape}")
                length = shape[dim]
                bits = [
                    from_fraction(t, Fraction(2) ** (rng.between(-1, 1) if length <= 16 else 0))
                    | (f.sign_bit if rng.bits(1) else 0)
                    for _ in range(count(shape))
                ]
                yield one(
                    "reduce_scan",
                    f"{label(op, reverse)}.mulf.{dims(shape)}.dim{dim}.{t}",
                    t,
                    shape,
                    dim,
                    bits,
                    "mulf {a}, {b} : {T}",
                    lambda a, b: exact.mul(t, a, b),
                    identity_text(t, one_),
                    op,
                    reverse,
                    "standard",
                    ["mulf"],
                )
                for larger in (True, False):
                    for prop in (False, True):
                        bits = [values.random_bits(t, rng) for _ in range(count(shape))]
                        bits = [b if not f.is_nan(b) else one_ for b in bits]
                        # NaN in some places, never all along a line; zeros of both signs
                        bits = [
                            (
                                f.nan
                                if i % 7 == 3 and (i // length) % 2
                                else f.sign_bit if i % 11 == 5 else 0 if i % 11 == 6 else b
                            )
                            for i, b in enumerate(bits)
                        ]
                        name = "maxf" if larger else "minf"
                        fn = lambda a, b: exact.extreme(t, a, b, larger, prop)
                        inf = f.inf_bits | (f.sign_bit if larger else 0)
                        # a scan over a leading NaN without propagate_nan would show whether the identity was combined
                        first_nan = op == "scan" and not prop
                        if first_nan:
                            bits = _numbers_first(shape, dim, bits, f, one_, reverse)
                        yield one(
                            "reduce_scan",
                            f"{label(op, reverse)}.{name}{'.propagate' if prop else ''}.{dims(shape)}.dim{dim}.{t}",
                            t,
                            shape,
                            dim,
                            bits,
                            name + " {a}, {b}" + (" propagate_nan" if prop else "") + " : {T}",
                            fn,
                            identity_text(t, inf),
                            op,
                            reverse,
                            "smoke" if t == "bf16" and shape == [2, 4, 8] and prop == larger else "standard",
                            [name],
                            rule="exact",
                        )


def _numbers_first(shape, dim, bits, f, one_, reverse):
    bits = list(bits)
    for c in coordinates(shape[:dim] + shape[dim + 1 :]):
        at = index(shape, c[:dim] + ((shape[dim] - 1) if reverse else 0,) + c[dim:])
        if f.is_nan(bits[at]):
            bits[at] = one_
    return bits


def bounded_sums():
    """Random data: |error| <= (n - 1) u sum |x| (1 + n u), whatever the order (bounds.md, section 6)."""
    for t in BASE:
        u = Fraction(1, 1 << F[t].precision)
        for shape, dim in (([64], 0), ([8, 32], 1), ([32, 4], 0), ([1024], 0)):
            for op, reverse in forms():
                rng = Rng(f"sum {t} {shape}")
                bits = [values.moderate(t, rng, 2) for _ in range(count(shape))]
                numbers = [to_fraction(t, b) for b in bits]
                rest, sums = folded(shape, dim, numbers, lambda a, b: a + b, op, reverse)
                _, sizes = folded(shape, dim, [abs(x) for x in numbers], lambda a, b: a + b, op, reverse)
                n = shape[dim]
                limits = [float(s * n * u * (1 + 2 * n * u)) if n * u < 1 else float(s * n * u * 4) for s in sizes]
                case = Case(
                    "reduce_scan",
                    f"{label(op, reverse)}.random_sum.{dims(shape)}.dim{dim}.{t}",
                    "standard",
                    [op, "addf"],
                    [t],
                )
                k = Kernel(case)
                x = k.input("a", t, bits, shape)
                r = single(k, op, x, t, shape, dim, identity_text(t, 0), "addf {a}, {b} : {T}", reverse)
                out = [from_fraction(t, s, sign=0) for s in sums]
                k.output("o", r, t, rest, out, rule="bound", strict="bound", bound=limits)
                yield k.finish()


def argument_cases():
    """Value and place of the largest and smallest: ties go to the lowest index, NaN wins or loses by the body."""
    for t in ("f32", "f16", "i32", "i64", "f64"):
        for largest in (True, False):
            for shape, dim in (([32], 0), ([4, 16], 1), ([8, 8], 0), ([2, 512], 1)):
                for special in ("plain", "equal", "zeros", "nan") if t in F else ("plain", "equal"):
                    rng = Rng(f"arg {t} {shape} {special}")
                    n = count(shape)
                    if t in F:
                        one_ = F[t]._pattern(Fraction(1))
                        bits = [from_fraction(t, Fraction(rng.between(-9, 9)), sign=0) for _ in range(n)]
                        if special == "equal":
                            bits = [one_] * n
                        elif special == "zeros":
                            bits = [F[t].sign_bit if rng.bits(1) else 0 for _ in range(n)]
                        elif special == "nan":
                            bits = [F[t].nan if i % 5 == 2 else b for i, b in enumerate(bits)]
                    else:
                        bits = [
                            rng.between(-9, 9) & ((1 << INTS[t]) - 1) if special == "plain" else 7 for _ in range(n)
                        ]
                    places = [i % shape[-1] if dim == len(shape) - 1 else i // shape[-1] for i in range(n)]
                    name = f"reduce.{'argmax' if largest else 'argmin'}.{special}.{dims(shape)}.dim{dim}.{t}"
                    case = Case(
                        "reduce_scan",
                        name,
                        "smoke" if t == "f32" and shape == [4, 16] and largest and special == "nan" else "standard",
                        ["reduce", "select"],
                        [t, "i32"],
                    )
                    k = Kernel(case)
                    x, p = k.input("a", t, bits, shape), k.input("p", "i32", places, shape)
                    identity = (
                        (F[t].inf_bits | (F[t].sign_bit if largest else 0))
                        if t in F
                        else (-(1 << (INTS[t] - 1)) if largest else (1 << (INTS[t] - 1)) - 1)
                    )

                    def body(k, a, b, t=t, largest=largest):
                        T = f"tile<{t}>"
                        word = "greater_than" if largest else "less_than"
                        if t in F:
                            better = k.v(f"cmpf {word} ordered {a[0]}, {b[0]} : {T} -> tile<i1>")
                            equal = k.v(f"cmpf equal ordered {a[0]}, {b[0]} : {T} -> tile<i1>")
                            an, bn = (k.v(f"cmpf not_equal unordered {v}, {v} : {T} -> tile<i1>") for v in (a[0], b[0]))
                            both = k.v(f"andi {an}, {bn} : tile<i1>")
                            equal = k.v(f"ori {equal}, {both} : tile<i1>")
                            only = k.v(f"cmpi greater_than {an}, {bn}, unsigned : tile<i1> -> tile<i1>")
                            better = k.v(f"ori {better}, {only} : tile<i1>")  # NaN wins
                        else:
                            better = k.v(f"cmpi {word} {a[0]}, {b[0]}, signed : {T} -> tile<i1>")
                            equal = k.v(f"cmpi equal {a[0]}, {b[0]}, signed : {T} -> tile<i1>")
                        first = k.v(f"cmpi less_than {a[1]}, {b[1]}, signed : tile<i32> -> tile<i1>")
                        tie = k.v(f"andi {equal}, {first} : tile<i1>")
                        take = k.v(f"ori {better}, {tie} : tile<i1>")
                        return [
                            k.v(f"select {take}, {a[0]}, {b[0]} : tile<i1>, {T}"),
                            k.v(f"select {take}, {a[1]}, {b[1]} : tile<i1>, tile<i32>"),
                        ]

                    r = written(
                        k,
                        "reduce",
                        [(x, t), (p, "i32")],
                        shape,
                        dim,
                        [identity_text(t, identity), "2147483647 : i32"],
                        body,
                    )

                    def key(b, t=t, largest=largest):
                        if t in INTS:
                            v = signed(b, INTS[t])
                        elif F[t].is_nan(b):
                            return (0, 0)
                        else:
                            v = to_fraction(t, b)
                        return (1, -v if largest else v)

                    rest = shape[:dim] + shape[dim + 1 :]
                    best, where = [], []
                    lines = along(shape, dim, bits)
                    for c in coordinates(rest):
                        line = lines[c]
                        i = min(range(len(line)), key=lambda j: (key(line[j]), j))
                        best.append(line[i])
                        where.append(i)
                    k.output("o", r[0], t, rest, best, rule="exact")
                    k.output("w", r[1], "i32", rest, where)
                    yield k.finish()


def affine_scans():
    """Composition of x -> a x + b: associative, not commutative. The language does not say which argument comes first: two results are right."""
    for shape, dim, reverse in itertools.chain(
        (([n], 0, rev) for n in (4, 32, 128) for rev in (False, True)), (([4, 16], 1, False), ([16, 4], 0, False))
    ):
        rng = Rng(f"affine {shape}")
        a = [rng.bits(32) | 1 for _ in range(count(shape))]
        b = [rng.bits(32) for _ in range(count(shape))]
        case = Case(
            "reduce_scan",
            f"scan{'_reverse' if reverse else ''}.affine.{dims(shape)}.dim{dim}",
            "smoke" if shape == [32] else "standard",
            ["scan", "muli", "addi"],
            ["i32"],
        )
        k = Kernel(case)
        x, y = k.input("a", "i32", a, shape), k.input("b", "i32", b, shape)

        def body(k, left, right):
            p = k.v(f"muli {right[0]}, {left[0]} : tile<i32>")
            q = k.v(f"muli {right[0]}, {left[1]} : tile<i32>")
            return [p, k.v(f"addi {q}, {right[1]} : tile<i32>")]

        r = written(k, "scan", [(x, "i32"), (y, "i32")], shape, dim, ["1 : i32", "0 : i32"], body, reverse)
        M = 0xFFFFFFFF
        pairs = list(zip(a, b))
        _, normal = folded(shape, dim, pairs, lambda l, c: (c[0] * l[0] & M, (c[0] * l[1] + c[1]) & M), "scan", reverse)
        _, swapped = folded(
            shape, dim, pairs, lambda l, c: (l[0] * c[0] & M, (l[0] * c[1] + l[1]) & M), "scan", reverse
        )
        for name, value, j in (("o", r[0], 0), ("p", r[1], 1)):
            e = k.output(name, value, "i32", shape, [v[j] for v in normal])
            if j:
                case.alternative(e, [v[j] for v in swapped])
        yield k.finish()


def body_cases():
    """Bodies with several operations, values from outside, three operands, and a reduction behind a reduction."""
    for shape, dim in FEW:
        rng = Rng(f"body {shape}")
        bits = [rng.bits(32) for _ in range(count(shape))]
        for op, reverse in forms():
            case = Case(
                "reduce_scan",
                f"{label(op, reverse)}.outer_value.{dims(shape)}.dim{dim}",
                "standard",
                [op, "addi", "andi"],
                ["i32"],
            )
            k = Kernel(case)
            x = k.input("a", "i32", bits, shape)
            mask = k.scalar("mask", "i32", 0xFFFF)
            x = k.v(f"andi {x}, {k.splat(mask, 'i32', shape)} : {tile(shape, 'i32')}")
            r = written(
                k,
                op,
                [(x, "i32")],
                shape,
                dim,
                ["0 : i32"],
                lambda k, a, b, m=mask: [k.v(f"andi {k.v(f'addi {a[0]}, {b[0]} : tile<i32>')}, {m} : tile<i32>")],
                reverse,
            )[0]
            rest, out = folded(shape, dim, [b & 0xFFFF for b in bits], lambda a, b: (a + b) & 0xFFFF, op, reverse)
            k.output("o", r, "i32", rest, out)
            yield k.finish()
    for shape, dim in (([8, 8], 0), ([64], 0)):
        case = Case("reduce_scan", f"reduce.three_operands.{dims(shape)}", "smoke", ["reduce"], ["i32", "f32", "i8"])
        k = Kernel(case)
        rng = Rng("three")
        a, b, c = (
            [rng.bits(32) for _ in range(64)],
            [from_fraction("f32", Fraction(rng.between(-50, 50)), sign=0) for _ in range(64)],
            [rng.bits(8) for _ in range(64)],
        )
        xs = [
            (k.input("a", "i32", a, shape), "i32"),
            (k.input("b", "f32", b, shape), "f32"),
            (k.input("c", "i8", c, shape), "i8"),
        ]
        r = written(
            k,
            "reduce",
            xs,
            shape,
            dim,
            ["0 : i32", "0.0 : f32", "0 : i8"],
            lambda k, l, m: [
                k.v(f"xori {l[0]}, {m[0]} : tile<i32>"),
                k.v(f"addf {l[1]}, {m[1]} : tile<f32>"),
                k.v(f"maxi {l[2]}, {m[2]} unsigned : tile<i8>"),
            ],
        )
        for name, value, t, bits, fn in (
            ("o", r[0], "i32", a, lambda p, q: p ^ q),
            ("p", r[1], "f32", b, lambda p, q: exact.add("f32", p, q)),
            ("q", r[2], "i8", c, max),
        ):
            rest, out = folded(shape, dim, bits, fn, "reduce", None)
            k.output(name, value, t, rest, out)
        yield k.finish()
    shape = [2, 4, 8, 4]
    rng = Rng("axes")
    bits = [rng.bits(16) for _ in range(count(shape))]
    for order in itertools.permutations(range(4), 2):
        case = Case("reduce_scan", f"reduce.axes.{order[0]}{order[1]}", "standard", ["reduce"], ["i32"])
        k = Kernel(case)
        x, left, dims_left, want = k.input("a", "i32", bits, shape), list(shape), list(range(4)), bits
        for axis in order:
            d = dims_left.index(axis)
            x = single(k, "reduce", x, "i32", left, d, "0 : i32", "addi {a}, {b} : {T}")
            left, want = folded(left, d, want, lambda a, b: a + b & 0xFFFFFFFF, "reduce", None)
            dims_left.remove(axis)
        k.output("o", x, "i32", left, want)
        yield k.finish()


def reduce_scan():
    for part in (integer_cases, float_cases, bounded_sums, argument_cases, affine_scans, body_cases):
        yield from part()


FAMILIES = {"reduce_scan": reduce_scan}
