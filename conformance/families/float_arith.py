"""Float arithmetic: rounding modes, flush_to_zero, NaN, signed zeros, infinities and subnormal numbers; comparisons."""

from families.case import Case
from families.kernel import elementwise, operation, paired, tile
from families.kernel import count as size
from families.shape import dims
from oracle import exact, values
from oracle.formats import BASE, F
from oracle.rng import Rng

IEEE = ("nearest_even", "zero", "negative_inf", "positive_inf")
KINDS = ("wide", "near", "tie", "limit")
BINARY = {"addf": exact.add, "subf": exact.sub, "mulf": exact.mul, "divf": exact.div}
SMOKE = (("addf", "f32"), ("divf", "f16"), ("mulf", "bf16"), ("subf", "f64"))
SHAPES = ([], [1], [2, 2, 8], [32], [8, 64])


def spell(mode, ftz):
    return (f" rounding<{mode}>" if mode else "") + (" flush_to_zero" if ftz else "")


def label(mode, ftz):
    return (mode or "default") + (".ftz" if ftz else "")


def border(result, toward_zero):
    """Whether flush_to_zero may give 0 though the rounded result is the smallest normal number: before rounding it was smaller (bounds.md)."""
    return result & 0x7FFFFFFF == 0x00800000 and toward_zero & 0x7FFFFFFF == 0


def binary(op, fn, t, shape, pairs, name, tier, mode=None, ftz=False, **how):
    out = [fn(t, a, b, mode=mode or "nearest_even", ftz=ftz) for a, b in pairs]
    if ftz and "free" not in how:
        how["free"] = [border(r, fn(t, a, b, mode="zero", ftz=True)) for r, (a, b) in zip(out, pairs)]
    case = Case("float_arith", name, tier, [op], [t])
    text = f"{op} {{0}}, {{1}}{spell(mode, ftz)} : {{D}}"
    return operation(case, text, paired(t, pairs), t, out, shape, **{"rule": "exact", **how})


def modes(t):
    """Every legal (mode, ftz) of the arithmetic."""
    for mode in (None,) + IEEE:
        yield mode, False
        if t == "f32":
            yield mode, True


def ftz_pairs(t, n, name):
    """Operands and results around the smallest normal number."""
    rng, f = Rng(name), F[t]
    low = 1 << f.man
    out = []
    for _ in range(n):
        pick = rng.below(4)
        a = rng.bits(f.man) if pick < 2 else low + rng.below(3 * low)
        b = (
            rng.bits(f.man)
            if pick == 0
            else low + rng.below(2 * low) if pick < 3 else values.near_exponent(t, rng, rng.between(-3, 1))
        )
        out.append((a | (f.sign_bit if rng.bits(1) else 0), b ^ (f.sign_bit if rng.bits(1) else 0)))
    return out


def binary_cases():
    for op, fn in BINARY.items():
        for t in BASE:
            for mode, ftz in modes(t):
                stem = f"{op}.{label(mode, ftz)}.{t}"
                tier = (
                    "smoke"
                    if mode == "negative_inf"
                    and not ftz
                    and (op, t) in SMOKE
                    or (ftz and mode is None and op in ("addf", "mulf"))
                    else "standard"
                )
                yield binary(
                    op, fn, t, [32, 32], values.pairs(t, 1024, f"edge {op} {t}"), stem + ".edges", tier, mode, ftz
                )
                for kind in KINDS if mode else ("wide",):
                    if ftz and kind in ("near", "tie"):
                        continue
                    pairs = values.float_pairs(t, 512, f"{op} {t} {kind}", kind)
                    yield binary(op, fn, t, [512], pairs, f"{stem}.{kind}", "standard" if mode else "full", mode, ftz)
                if ftz:
                    yield binary(
                        op, fn, t, [512], ftz_pairs(t, 512, f"ftz {op}"), stem + ".tiny", "standard", mode, ftz
                    )
            for shape in SHAPES:
                pairs = values.float_pairs(t, size(shape), f"shape {op} {t} {shape}", "near")
                yield binary(op, fn, t, shape, pairs, f"{op}.{t}.shape_{dims(shape)}", "standard")


def approx_cases():
    """divf approx and full: 2 ulp; approx within 2^-126 <= |rhs| <= 2^126 (bounds.md)."""
    for mode in ("approx", "full"):
        for ftz in (False, True):
            for kind in ("near", "wide"):
                pairs = values.float_pairs("f32", 512, f"divf {mode} {kind}", kind)
                free = []
                for a, b in pairs:
                    r = exact.div("f32", a, b)
                    tiny = r & 0x7FFFFFFF < 0x00800000
                    e = (b >> 23 & 255) - 127
                    free.append(
                        tiny
                        or not -126 <= e < 126
                        or a & 0x7FFFFFFF < 0x00800000
                        or mode == "full"
                        and r & 0x7FFFFFFF >= 0x7F000000
                    )
                yield binary(
                    "divf",
                    exact.div,
                    "f32",
                    [512],
                    pairs,
                    f"divf.{mode}{'.ftz' if ftz else ''}.f32.{kind}",
                    "standard",
                    mode,
                    ftz,
                    rule="ulp",
                    n=2,
                    strict="bits",
                    free=free,
                )


def fma_cases():
    for t in BASE:
        for mode, ftz in modes(t):
            for kind in ("edges", "near", "cancel", "limit"):
                rng = Rng(f"fma {t} {kind}")
                if kind == "edges":
                    e = values.edges(t)
                    triples = values.fill([], 1024, lambda: (rng.choice(e), rng.choice(e), rng.choice(e)))
                elif (
                    kind == "cancel"
                ):  # z = -(x * y) rounded, and its neighbours: what fma keeps and a rounded product loses
                    triples = []
                    for a, b in values.float_pairs(t, 512, f"fma {t}", "near"):
                        c = exact.mul(t, a, b) ^ F[t].sign_bit
                        triples.append((a, b, c + rng.choice((0, 0, 1)) if c & ~F[t].sign_bit < F[t].top_bits else c))
                else:
                    pairs = values.float_pairs(t, 512, f"fma {t} {kind}", kind)
                    triples = [
                        (
                            a,
                            b,
                            (
                                values.moderate(t, rng)
                                if kind == "near"
                                else rng.choice((a, b, values.random_bits(t, rng)))
                            ),
                        )
                        for a, b in pairs
                    ]
                if not mode and kind != "edges":
                    continue
                out = [exact.fma(t, a, b, c, mode=mode or "nearest_even", ftz=ftz) for a, b, c in triples]
                case = Case(
                    "float_arith",
                    f"fma.{label(mode, ftz)}.{t}.{kind}",
                    "smoke" if mode == "zero" and kind == "cancel" and t == "f32" and not ftz else "standard",
                    ["fma"],
                    [t],
                )
                inputs = [(t, [x[i] for x in triples]) for i in range(3)]
                free = [
                    ftz and border(r, exact.fma(t, a, b, c, mode="zero", ftz=True)) for r, (a, b, c) in zip(out, triples)
                ]
                yield operation(
                    case, f"fma {{0}}, {{1}}, {{2}}{spell(mode, ftz)} : {{D}}", inputs, t, out, rule="exact", free=free
                )


def unary_sets(t):
    yield "edges", values.fill(values.edges(t), 256, lambda r=Rng(f"unary {t}"): values.random_bits(t, r))
    if t in ("f16", "bf16"):
        yield "all", values.all_bits(t)
    else:
        rng = Rng(f"unary random {t}")
        yield "random", [values.random_bits(t, rng) for _ in range(1024)]
        rng = Rng(f"unary near {t}")
        yield "moderate", [values.moderate(t, rng, 6) for _ in range(1024)]


def unary(op, fn, t, name, kind, bits, extra="", tier="standard", family="float_arith", shape=None, **how):
    case = Case(family, name, tier, [op], [t])
    out = [fn(t, b) for b in bits]
    return operation(case, f"{op} {{0}}{extra} : {{D}}", [(t, bits)], t, out, shape, **{"rule": "exact", **how})


def unary_cases():
    for t in BASE:
        for kind, bits in unary_sets(t):
            for mode, ftz in modes(t):
                if kind != "edges" and mode is None:
                    continue
                tier = "full" if kind == "all" and mode in ("zero", "positive_inf") else "standard"
                yield unary(
                    "sqrt",
                    lambda t, b, m=mode, z=ftz: exact.sqrt(t, b, mode=m or "nearest_even", ftz=z),
                    t,
                    f"sqrt.{label(mode, ftz)}.{t}.{kind}",
                    kind,
                    bits,
                    spell(mode, ftz),
                    "smoke" if kind == "edges" and mode == "positive_inf" and t == "f16" else tier,
                )
            for op, fn in (
                ("absf", exact.absolute),
                ("negf", exact.negate),
                ("ceil", lambda t, b: exact.to_integer(t, b, True)),
                ("floor", lambda t, b: exact.to_integer(t, b, False)),
            ):
                yield unary(
                    op,
                    fn,
                    t,
                    f"{op}.{t}.{kind}",
                    kind,
                    bits,
                    tier="smoke" if kind == "edges" and t == "f32" and op in ("negf", "ceil") else "standard",
                )
        rng = Rng(f"whole {t}")
        bits = [values.near_exponent(t, rng, rng.between(-3, F[t].man + 1)) for _ in range(512)]
        for op, up in (("ceil", True), ("floor", False)):
            yield unary(op, lambda t, b, u=up: exact.to_integer(t, b, u), t, f"{op}.{t}.fractions", "", bits)
    bits = [b for k, b in unary_sets("f32") if k == "moderate"][0]
    for ftz in (False, True):
        yield unary(
            "sqrt",
            lambda t, b, z=ftz: exact.sqrt(t, b, ftz=z),
            "f32",
            f"sqrt.approx{'.ftz' if ftz else ''}.f32.moderate",
            "",
            bits,
            " rounding<approx>" + (" flush_to_zero" if ftz else ""),
            rule="ulp",
            n=2,
            strict="bits",
        )


def extreme_cases():
    for op, larger in (("maxf", True), ("minf", False)):
        for t in BASE:
            for prop in (False, True):
                for ftz in ((False, True) if t == "f32" else (False,)):
                    words = (" flush_to_zero" if ftz else "") + (" propagate_nan" if prop else "")
                    for kind in ("edges", "wide"):
                        pairs = (
                            values.pairs(t, 1024, f"edge {op} {t}")
                            if kind == "edges"
                            else values.float_pairs(t, 512, f"{op} {t}", "wide")
                        )
                        if ftz:
                            pairs = pairs[:512] + ftz_pairs(t, 512, f"ftz {op}")
                        out = [exact.extreme(t, a, b, larger, prop, ftz) for a, b in pairs]
                        case = Case(
                            "float_arith",
                            f"{op}{'.propagate' if prop else ''}{'.ftz' if ftz else ''}.{t}.{kind}",
                            "smoke" if kind == "edges" and t == "f32" and prop != ftz else "standard",
                            [op],
                            [t],
                        )
                        yield operation(
                            case, f"{op} {{0}}, {{1}}{words} : {{D}}", paired(t, pairs), t, out, rule="exact"
                        )


def rem_cases():
    for t in BASE:
        for kind in ("edges", "wide", "near"):
            pairs = (
                values.pairs(t, 1024, f"remf {t}")
                if kind == "edges"
                else values.float_pairs(t, 512, f"remf {t} {kind}", kind)
            )
            out = [exact.rem(t, a, b) for a, b in pairs]
            case = Case(
                "float_arith",
                f"remf.{t}.{kind}",
                "smoke" if kind == "edges" and t == "f16" else "standard",
                ["remf"],
                [t],
            )
            yield operation(case, "remf {0}, {1} : {D}", paired(t, pairs), t, out, rule="exact")


def nan_cases():
    """Any NaN for a NaN, and the number where only one operand of maxf and minf is NaN; that NaNs survive where bits are only moved."""
    for t in BASE:
        bits = values.fill(
            values.nans(t), 64, lambda r=Rng("nan " + t), t=t: F[t].inf_bits | 1 + r.below((1 << F[t].man) - 1)
        )
        case = Case("float_arith", f"nan_bits_moved.{t}", "standard", ["select", "bitcast", "permute"], [t])
        mask = [i & 1 for i in range(64)]
        word = f"i{F[t].memory_bits}"

        def body(k, v, s, t=t, word=word):
            x = k.v(f"select {v[1]}, {v[0]}, {v[0]} : {tile(s, 'i1')}, {tile(s, t)}")
            x = k.v(f"bitcast {x} : {tile(s, t)} -> {tile(s, word)}")
            x = k.v(f"bitcast {x} : {tile(s, word)} -> {tile(s, t)}")
            x = k.v(f"permute {x} [1, 0] : {tile(s, t)} -> {tile(s, t)}")
            return k.v(f"permute {x} [1, 0] : {tile(s, t)} -> {tile(s, t)}")

        yield elementwise(case, [8, 8], [(t, bits), ("i1", mask)], [(t, bits, {})], body)


def float_arith():
    yield from binary_cases()
    yield from approx_cases()
    yield from fma_cases()
    yield from unary_cases()
    yield from extreme_cases()
    yield from rem_cases()
    yield from nan_cases()


def float_compare():
    for t in BASE:
        for predicate in exact.PREDICATES:
            for ordered in (True, False):
                word = "ordered" if ordered else "unordered"
                for kind in ("edges", "near"):
                    pairs = (
                        values.pairs(t, 1024, f"cmpf {t}")
                        if kind == "edges"
                        else values.float_pairs(t, 256, f"cmpf {t}", "near")
                    )
                    if kind == "near":
                        pairs = [(a, a if i % 3 == 0 else a ^ 1 if i % 3 == 1 else b) for i, (a, b) in enumerate(pairs)]
                    out = [exact.compare(t, a, b, predicate, ordered) for a, b in pairs]
                    case = Case(
                        "float_compare",
                        f"cmpf.{predicate}.{word}.{t}.{kind}",
                        "smoke" if predicate == "not_equal" and kind == "edges" and t == "bf16" else "standard",
                        ["cmpf"],
                        [t],
                    )
                    yield operation(
                        case, f"cmpf {predicate} {word} {{0}}, {{1}} : {{S}} -> {{D}}", paired(t, pairs), "i1", out
                    )


FAMILIES = {"float_arith": float_arith, "float_compare": float_compare}
