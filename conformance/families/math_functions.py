"""Mathematical functions against mpmath, with the bounds of bounds.md; fpowi."""

from fractions import Fraction

import numpy as np

from families.case import Case, wanted
from families.float_arith import size
from families.kernel import elementwise, tile
from oracle import exact, functions, values
from oracle.formats import BASE, F, from_fraction, to_fraction, ulp
from oracle.rng import Rng

# Units in the last place that bounds.md allows, for f32 and f64. f16 and bf16 results come from f32: 1.
ULP = {
    "exp": (2, 1),
    "exp2": (2, 1),
    "log": (2, 1),
    "log2": (2, 1),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (4, 2),
    "sinh": (3, 2),
    "cosh": (2, 1),
    "tanh": (2, 2),
    "rsqrt": (2, 1),
    "pow": (4, 2),
    "atan2": (3, 2),
}


def allowance(name, t):
    return ULP[name][1] if t == "f64" else ULP[name][0] if t == "f32" else 1


def ranged(t, name, lo, hi, n):
    rng = Rng(f"{name} {t} {lo} {hi}")
    return [from_fraction(t, Fraction(rng.uniform(lo, hi)), sign=0) for _ in range(n)]


def log_range(t, name, lo, hi, n, both):
    rng = Rng(f"log {name} {t} {lo} {hi}")
    return [values.near_exponent(t, rng, rng.between(lo, hi)) & (~0 if both else ~F[t].sign_bit) for _ in range(n)]


def sets(t, name):
    """(kind, bits) of a function of one operand."""
    f = F[t]
    yield "edges", values.fill(values.edges(t), 256, lambda r=Rng(f"edges {name} {t}"): values.random_bits(t, r))
    top = float(f.top)
    if name in ("exp", "exp2", "sinh", "cosh", "tanh"):
        span = min(top, {"f16": 17, "bf16": 128, "f32": 128, "f64": 1024}[t] * (1 if name == "exp2" else 0.6931))
        yield "small", log_range(t, name, max(f.emin, -30), -1, 256, True)
        yield "middle", ranged(t, name, -4, 4, 512)
        yield "full_range", ranged(t, name, -span, span, 512)
    elif name in ("log", "log2", "rsqrt"):
        yield "near_one", [b for b in ranged(t, name, 0.75, 1.5, 256)]
        yield "full_range", log_range(t, name, f.emin, (1 << f.exp) - 2 - f.bias, 512, False)
        yield "subnormal", [1 + r for r in (Rng(f"sub {t}").below(1 << f.man) for _ in range(1))] * 2 + log_range(
            t, name, f.emin - f.man, f.emin - 1, 254, False
        )
    else:
        yield "small", log_range(t, name, max(f.emin, -30), -1, 256, True)
        yield "circle", ranged(t, name, -7, 7, 512)
        yield "large", log_range(t, name, 3, min(30, (1 << f.exp) - 2 - f.bias), 256, True)
        yield "huge", log_range(t, name, max(3, (1 << f.exp) - 2 - f.bias - 40), (1 << f.exp) - 2 - f.bias, 256, True)


def results(t, name, operands):
    """(bits, undecided) of correctly rounded results."""
    out, free = [], []
    for args in operands:
        try:
            out.append(functions.evaluate(t, name, *args))
            free.append(False)
        except functions.NearTie:
            out.append(0)
            free.append(True)
    return out, free


def case_of(name, t, operands, kind, tier, extra="", **how):
    """Operands whose result is next to a rounding boundary are replaced by 1."""
    one = F[t]._pattern(Fraction(1))
    out, free = results(t, name, operands)
    operands = [tuple(one for _ in a) if f else a for a, f in zip(operands, free)]
    if any(free):
        out, _ = results(t, name, operands)
    case = Case("math", f"{name}{extra and '.' + extra.split('<')[-1].strip(' >')}.{t}.{kind}", tier, [name], [t])
    shape = [min(1024, len(operands))]
    inputs = [(t, [a[i] for a in operands]) for i in range(len(operands[0]))]
    how = {"rule": "ulp", "n": allowance(name, t), "strict": "bits", **how}
    return (
        elementwise(
            case,
            shape,
            inputs,
            [(t, out, how)],
            lambda k, v, s: k.v(f"{name} {', '.join(v)}{extra} : {tile(s, t)}"),
            len(operands) // size(shape),
        ),
        operands,
        out,
    )


def unary_cases():
    for name in functions.UNARY:
        for t in BASE:
            for kind, bits in sets(t, name):
                tier = "smoke" if kind == "edges" and t == "f32" else "standard"
                yield case_of(name, t, [(b,) for b in bits], kind, tier)[0]
            if t in ("f16", "bf16") and wanted("full"):
                yield case_of(name, t, [(b,) for b in values.all_bits(t)], "all", "full")[0]
            for shape in ([], [2, 4, 4]):
                bits = ranged(t, name + str(shape), 0.5, 2, size(shape))
                out, free = results(t, name, [(b,) for b in bits])
                if any(free):
                    continue
                case = Case(
                    "math", f"{name}.{t}.shape_" + ("x".join(map(str, shape)) or "scalar"), "standard", [name], [t]
                )
                yield elementwise(
                    case,
                    shape,
                    [(t, bits)],
                    [(t, out, {"rule": "ulp", "n": allowance(name, t), "strict": "bits"})],
                    lambda k, v, s, name=name, t=t: k.v(f"{name} {v[0]} : {tile(s, t)}"),
                )


def binary_cases():
    for name in functions.BINARY:
        for t in BASE:
            f = F[t]
            pairs = values.pairs(t, 1024, f"{name} {t}")
            yield case_of(name, t, pairs, "edges", "smoke" if t == "f32" else "standard")[0]
            rng = Rng(f"{name} {t}")
            if name == "pow":
                limit = 8 if t == "f16" else 60
                near = [
                    (
                        values.near_exponent(t, rng, rng.between(-2, 2)) & ~f.sign_bit,
                        from_fraction(t, Fraction(rng.uniform(-limit / 2, limit / 2))),
                    )
                    for _ in range(512)
                ]
                whole = [
                    (
                        values.near_exponent(t, rng, rng.between(-1, 1)),
                        from_fraction(t, Fraction(rng.between(-9, 9)), sign=0),
                    )
                    for _ in range(256)
                ]
            else:
                near = [
                    (values.near_exponent(t, rng, rng.between(-3, 3)), values.near_exponent(t, rng, rng.between(-3, 3)))
                    for _ in range(512)
                ]
                whole = values.float_pairs(t, 256, "atan2 wide " + t, "wide")
            yield case_of(name, t, near, "middle", "standard")[0]
            yield case_of(name, t, whole, "whole" if name == "pow" else "wide", "standard")[0]


def modifier_cases():
    """flush_to_zero of exp2 and rsqrt; approx and full of exp and tanh."""
    t = "f32"
    for name in ("exp2", "rsqrt"):
        bits = (
            values.fill(values.edges(t), 256, lambda r=Rng("ftz " + name): values.random_bits(t, r))
            + [b for k, b in sets(t, name) if k == "full_range"][0][:256]
        )
        bits += (
            [values.near_exponent(t, r, 6) | 0x80000000 for r in [Rng("ftz exp2")] for _ in range(512)]
            if name == "exp2"
            else [(i * 0x4001) & 0x7FFFFF for i in range(512)]
        )
        flushed = [(exact.flush(t, b),) for b in bits]
        out, free = results(t, name, flushed)
        out = [exact.flush(t, o) for o in out]
        # an error of an ulp may carry a result over the edge of the normal numbers
        edge = [0 < abs((o & 0x7FFFFFFF) - 0x800000) <= 4 or f for o, f in zip(out, free)]
        case = Case("math", f"{name}.flush_to_zero.f32", "smoke", [name], [t])
        yield elementwise(
            case,
            [1024],
            [(t, bits)],
            [(t, out, {"rule": "ulp", "n": allowance(name, t), "strict": "bits", "free": edge})],
            lambda k, v, s, name=name: k.v(f"{name} {v[0]} flush_to_zero : {tile(s, t)}"),
        )
    for name in ("exp", "tanh"):
        for t2 in BASE:
            for kind in ("edges", "middle"):
                bits = [b for k, b in sets(t2, name) if k == kind][0]
                yield case_of(name, t2, [(b,) for b in bits], kind, "standard", " rounding<full>")[0]
        for kind in ("middle", "full_range"):
            bits = [b for k, b in sets(t, name) if k == kind][0]
            case, operands, out = case_of(
                name,
                t,
                [(b,) for b in bits],
                kind,
                "standard",
                " rounding<approx>",
                rule="bound",
                bound=[0.0] * len(bits),
            )
            limits = []
            for (b,), o in zip(operands, out):
                x, r = abs(to_fraction(t, b)), abs(to_fraction(t, o)) if o & 0x7F800000 != 0x7F800000 else None
                if r is None:
                    limits.append(float("inf"))
                elif name == "exp":  # 2^(x log2 e): 2 ulp, and an ulp of x * log2(e) becomes that times ln 2
                    limits.append(float(r * ((2 + 2 * max(x, 1)) * Fraction(1, 1 << 23)) + Fraction(2) ** -126))
                else:  # 2^-10.5 relative, as the instruction promises 2^-11
                    limits.append(float(r * Fraction(7, 10000)))
            case.files[case.expect["buffers"][0]["bound"]] = np.array(limits, "<f8").tobytes()
            yield case


def fpowi_cases():
    for t in BASE:
        for it, n in (("i8", 8), ("i16", 16), ("i32", 32), ("i1", 1)):
            rng = Rng(f"fpowi {t} {it}")
            bases = values.edges(t)
            exps = [e for e in (0, 1, 2, 3, 4, 5, 7, 10, 16, -1, -2, -3, -5) if it != "i1" or e in (0, -1)]
            rows = values.fill(
                rng.shuffled([(b, e) for b in bases for e in exps]),
                512,
                lambda: (values.near_exponent(t, rng, rng.between(-1, 1)), rng.choice(exps)),
            )
            out, limits = [], []
            for b, e in rows:
                r = functions.power_int(t, b, e)
                out.append(r)
                q = functions.exact_power_int(t, b, e)
                limits.append(_fpowi_limit(t, q, e, r))
            case = Case(
                "math", f"fpowi.{t}.{it}", "smoke" if t == "f32" and it == "i8" else "standard", ["fpowi"], [t, it]
            )
            yield elementwise(
                case,
                [512],
                [(t, [b for b, _ in rows]), (it, [e & ((1 << n) - 1) for _, e in rows])],
                [(t, out, {"rule": "bound", "bound": limits, "strict": "bits"})],
                lambda k, v, s, t=t, it=it: k.v(f"fpowi {v[0]}, {v[1]} : {tile(s, t)}, {tile(s, it)}"),
            )


def _fpowi_limit(t, q, e, r):
    """Allowed difference: every product may lose an ulp. inf where a power overflows or is subnormal on the way."""
    if e in (0, 1):
        return 0.0
    if q is None or F[t].is_nan(r):
        return 0.0
    w = "f64" if t == "f64" else "f32"
    a = abs(q)
    if a == 0:
        return 0.0
    hi, lo = F[w].top, Fraction(2) ** F[w].emin
    size_of = max(a, 1 / a)
    if size_of >= min(hi, 1 / lo) / 4 or a > F[t].top / 2:
        return float("inf")
    return float(
        2 * ulp(t, r if r & ~F[t].sign_bit < (F[t].inf_bits or 0) else F[t].top_bits)
        + a * (2 * abs(e)) * Fraction(1, 1 << F[w].man)
    )


def math_family():
    yield from unary_cases()
    yield from binary_cases()
    yield from modifier_cases()
    yield from fpowi_cases()


FAMILIES = {"math": math_family}
