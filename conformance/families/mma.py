"""mmaf, mmai and mmaf_scaled: exact small integers over many shapes, random data with a derived bound, special values."""

from fractions import Fraction

import numpy as np

from families.case import Case
from families.kernel import Kernel, tile
from oracle import matmul, values
from oracle.formats import F, from_fraction, signed, to_fraction
from oracle.rng import Rng

COMBOS = (
    ("f16", "f32"),
    ("f16", "f16"),
    ("bf16", "f32"),
    ("tf32", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("f8E4M3FN", "f32"),
    ("f8E4M3FN", "f16"),
    ("f8E5M2", "f32"),
    ("f8E5M2", "f16"),
)
SHAPES = (
    (1, 1, 1),
    (1, 1, 16),
    (2, 2, 2),
    (4, 8, 2),
    (8, 4, 16),
    (16, 8, 8),
    (8, 16, 32),
    (16, 16, 16),
    (32, 8, 4),
    (1, 32, 8),
    (32, 1, 16),
    (2, 64, 4),
    (16, 32, 64),
    (64, 16, 8),
    (8, 8, 128),
    (4, 4, 256),
    (64, 64, 16),
    (32, 64, 32),
)
BATCHED = ((1, 4, 4, 8), (2, 8, 8, 8), (4, 2, 8, 16), (2, 16, 8, 32))
LARGE = ((64, 64, 64), (128, 32, 32), (32, 128, 64))


def label(shape):
    return "x".join(map(str, shape))


def small_ints(t, rng, n, limit):
    return [from_fraction(t, Fraction(rng.between(-limit, limit)), sign=0) for _ in range(n)]


def limit_of(t, acc_t, k):
    """Integers so small that every partial sum is exact."""
    top = 2 ** F[acc_t].precision
    want = {"f8E4M3FN": 8, "f8E5M2": 4, "f16": 32, "bf16": 16, "tf32": 64, "f32": 100, "f64": 1000}[t]
    while want > 1 and k * want * want + 100 > top:
        want -= 1
    return want


def product(ints_a, ints_b, ints_c, m, n, k):
    rows = [ints_a[i * k : i * k + k] for i in range(m)]
    columns = [ints_b[j::n] for j in range(n)]
    return [
        sum(x * y for x, y in zip(r, col)) + ints_c[i * n + j]
        for i, r in enumerate(rows)
        for j, col in enumerate(columns)
    ]


def emit(case, op, types, shapes, data, out, words="", scales=None, **how):
    """types and shapes of (lhs, rhs, acc)."""
    k = Kernel(case)
    v = [k.input(n, t, bits, s) for n, t, bits, s in zip("abc", types, data, shapes)]
    named = ", ".join(tile(s, t) for s, t in zip(shapes, types))
    if scales:
        for name, t, bits, s in scales:
            v.append(k.input(name, t, bits, s))
            named += ", " + tile(s, t)
    r = k.v(f"{op} {', '.join(v)}{words} : {named}")
    k.output("o", r, types[2], shapes[2], out, **how)
    return k.finish()


def exact_case(t, acc_t, shape, batch=0, words="", tier="standard"):
    m, n, k = shape
    rng = Rng(f"mma {t} {acc_t} {shape} {batch}")
    nb = batch or 1
    limit = limit_of(t, acc_t, k)
    a, b, c = (
        small_ints(t, rng, nb * m * k, limit),
        small_ints(t, rng, nb * k * n, limit),
        small_ints(acc_t, rng, nb * m * n, 50),
    )
    ia, ib, ic = ([int(to_fraction(x, v)) for v in z] for x, z in ((t, a), (t, b), (acc_t, c)))
    out = []
    for q in range(nb):
        out += [
            from_fraction(acc_t, Fraction(v), sign=0)
            for v in product(
                ia[q * m * k : (q + 1) * m * k],
                ib[q * k * n : (q + 1) * k * n],
                ic[q * m * n : (q + 1) * m * n],
                m,
                n,
                k,
            )
        ]
    lead = [batch] if batch else []
    name = f"mmaf.exact.{label(lead + [m, n, k])}{'.fast_acc' if words else ''}.{t}.{acc_t}"
    case = Case("mma", name, tier, ["mmaf"], [t])
    return emit(
        case, "mmaf", (t, t, acc_t), (lead + [m, k], lead + [k, n], lead + [m, n]), (a, b, c), out, words, rule="exact"
    )


def random_case(t, acc_t, shape, words="", spread=3, tier="standard"):
    m, n, k = shape
    rng = Rng(f"mma random {t} {acc_t} {shape} {spread}")
    a, b, c = ([values.moderate(x, rng, spread) for _ in range(s)] for x, s in ((t, m * k), (t, k * n), (acc_t, m * n)))
    out = matmul.chain(t, acc_t, a, b, c, m, n, k)
    factor = matmul.allowance(t, acc_t, k, bool(words))
    bound = [x * factor for x in matmul.magnitudes(t, acc_t, a, b, c, m, n, k)]
    case = Case(
        "mma",
        f"mmaf.random.{label(shape)}.spread{spread}{'.fast_acc' if words else ''}.{t}.{acc_t}",
        tier,
        ["mmaf"],
        [t],
    )
    return emit(case, "mmaf", (t, t, acc_t), ([m, k], [k, n], [m, n]), (a, b, c), out, words, rule="bound", bound=bound)


def large_case(t, acc_t, shape):
    """Compared with an f64 product; its own error is far below the bound."""
    m, n, k = shape
    rng = Rng(f"mma large {t} {acc_t} {shape}")
    a, b, c = ([values.moderate(x, rng, 2) for _ in range(s)] for x, s in ((t, m * k), (t, k * n), (acc_t, m * n)))
    A, B, C = (
        np.array([float(to_fraction(x, v)) for v in z]).reshape(s)
        for x, z, s in ((t, a, (m, k)), (t, b, (k, n)), (acc_t, c, (m, n)))
    )
    factor = matmul.allowance(t, acc_t, k)
    # numpy's product may be summed in any order: both sums stay within the bound of the exact one, which is rounded here from integers
    scale = 2.0**60
    exact = [[sum(int(x * scale) * int(y * scale) for x, y in zip(r, col)) for col in B.T] for r in A]
    out = [
        from_fraction(acc_t, Fraction(exact[i][j], int(scale) ** 2) + Fraction(C[i, j]), sign=0)
        for i in range(m)
        for j in range(n)
    ]
    bound = ((np.abs(A) @ np.abs(B) + np.abs(C)) * factor).reshape(-1).tolist()
    case = Case("mma", f"mmaf.large.{label(shape)}.{t}.{acc_t}", "full", ["mmaf"], [t])
    return emit(
        case, "mmaf", (t, t, acc_t), ([m, k], [k, n], [m, n]), (a, b, c), out, rule="bound", strict="bound", bound=bound
    )


def special_case(t, acc_t, kind):
    """inf and NaN go through; subnormal operands count (language: free); overflow of the accumulator."""
    m = n = 4
    k = 8
    rng = Rng(f"mma special {t} {acc_t} {kind}")
    a, b, c = small_ints(t, rng, m * k, 2), small_ints(t, rng, k * n, 2), small_ints(acc_t, rng, m * n, 2)
    one = from_fraction(t, Fraction(1))
    free = None
    if kind == "nan":
        a[0], b[5] = F[t].nan, F[t].nan
    elif kind == "inf":
        a[0], b[0:4] = F[t].inf_bits, [one] * 4
        a[k], b[1] = F[t].inf_bits | F[t].sign_bit, one
        a[2 * k : 3 * k] = [F[t].inf_bits, F[t].inf_bits | F[t].sign_bit] + [one] * 6
        b = [one] * (k * n)
        a[3 * k] = F[t].inf_bits
        b[0] = 0
    elif kind == "acc":
        c[0], c[5], c[10] = F[acc_t].inf_bits, F[acc_t].nan, F[acc_t].inf_bits | F[acc_t].sign_bit
    elif kind == "subnormal":
        a = [rng.bits(F[t].man) << F[t].shift for _ in range(m * k)]
        free = [True] * (m * n)
    out = matmul.chain(t, acc_t, a, b, c, m, n, k)
    case = Case("mma", f"mmaf.{kind}.{t}.{acc_t}", "standard", ["mmaf"], [t])
    return emit(case, "mmaf", (t, t, acc_t), ([m, k], [k, n], [m, n]), (a, b, c), out, rule="exact", free=free)


def mmai_case(shape, ls, rs, kind, batch=0, tier="standard"):
    m, n, k = shape
    nb = batch or 1
    rng = Rng(f"mmai {shape} {ls} {rs} {kind} {batch}")
    a, b = (
        [rng.bits(8) if kind != "extreme" else rng.choice((0x80, 0x7F, 0xFF)) for _ in range(nb * s)]
        for s in (m * k, k * n)
    )
    c = [rng.bits(32) if kind == "wrap" else rng.bits(16) for _ in range(nb * m * n)]
    if kind == "wrap":
        c = [x | 0x7FFF0000 if i % 2 else x for i, x in enumerate(c)]
    ia, ib = [signed(x, 8) if ls == "signed" else x for x in a], [signed(x, 8) if rs == "signed" else x for x in b]
    out = []
    for q in range(nb):
        out += [
            v & 0xFFFFFFFF
            for v in product(
                ia[q * m * k : (q + 1) * m * k],
                ib[q * k * n : (q + 1) * k * n],
                c[q * m * n : (q + 1) * m * n],
                m,
                n,
                k,
            )
        ]
    free = None
    if kind == "wrap":  # the text leaves overflow open
        exact = product(ia, ib, [signed(x, 32) for x in c], m, n, k)
        free = [not -(2**31) <= v < 2**31 for v in exact]
    lead = [batch] if batch else []
    case = Case("mma", f"mmai.{kind}.{label(lead + [m, n, k])}.{ls}.{rs}", tier, ["mmai"], ["i8"])
    return emit(
        case,
        "mmai",
        ("i8", "i8", "i32"),
        (lead + [m, k], lead + [k, n], lead + [m, n]),
        (a, b, c),
        out,
        f" {ls} {rs}",
        free=free,
    )


def scaled_case(t, st, v, shape, kind, batch=0):
    m, n, k = shape
    nb, ks = batch or 1, k // v
    rng = Rng(f"scaled {t} {st} {v} {shape} {kind}")
    if kind == "exact":
        a, b, c = (
            small_ints(t, rng, nb * m * k, 2),
            small_ints(t, rng, nb * k * n, 2),
            small_ints("f32", rng, nb * m * n, 10),
        )
        sa, sb = (
            [from_fraction(st, Fraction(2) ** rng.between(0, 2)) for _ in range(nb * s)] for s in (m * ks, ks * n)
        )
    else:
        a, b, c = (
            [values.moderate(x, rng, 1) for _ in range(nb * s)] for x, s in ((t, m * k), (t, k * n), ("f32", m * n))
        )
        sa, sb = (
            [
                from_fraction(
                    st,
                    Fraction(2) ** rng.between(-4, 4) * (1 if st == "f8E8M0FNU" else Fraction(rng.between(8, 15), 8)),
                )
                for _ in range(nb * s)
            ]
            for s in (m * ks, ks * n)
        )
    out, bound = [], []
    for q in range(nb):
        part = (a[q * m * k : (q + 1) * m * k], b[q * k * n : (q + 1) * k * n], c[q * m * n : (q + 1) * m * n])
        scale = (st, sa[q * m * ks : (q + 1) * m * ks], sb[q * ks * n : (q + 1) * ks * n], v)
        out += matmul.chain(t, "f32", *part, m, n, k, scale)
        bound += [x * matmul.allowance(t, "f32", k) for x in matmul.magnitudes(t, "f32", *part, m, n, k, scale)]
    lead = [batch] if batch else []
    case = Case(
        "mma",
        f"mmaf_scaled.{kind}.{label(lead + [m, n, k])}.v{v}.{t}.{st}",
        (
            "smoke"
            if (t, st, v, kind) == ("f8E4M3FN", "f8E8M0FNU", 32, "exact") and (m, k, batch) == (4, 64, 0)
            else "standard"
        ),
        ["mmaf_scaled"],
        [t, st],
    )
    how = {"rule": "exact"} if kind == "exact" else {"rule": "bound", "bound": bound}
    return emit(
        case,
        "mmaf_scaled",
        (t, t, "f32"),
        (lead + [m, k], lead + [k, n], lead + [m, n]),
        (a, b, c),
        out,
        scales=[("sa", st, sa, lead + [m, ks]), ("sb", st, sb, lead + [ks, n])],
        **how,
    )


def mma():
    for t, acc_t in COMBOS:
        for shape in SHAPES:
            yield exact_case(
                t,
                acc_t,
                shape,
                tier="smoke" if shape == (8, 4, 16) and t in ("bf16", "f16", "f64", "f8E5M2") else "standard",
            )
        for batch, m, n, k in BATCHED:
            yield exact_case(t, acc_t, (m, n, k), batch)
        for shape in ((4, 4, 4), (8, 8, 16), (16, 4, 64), (2, 2, 256)):
            yield random_case(
                t,
                acc_t,
                shape,
                tier="smoke" if shape == (8, 8, 16) and (t, acc_t) in (("f32", "f32"), ("f16", "f16")) else "standard",
            )
        yield random_case(t, acc_t, (8, 8, 8), spread=6 if acc_t != "f16" else 2)
        for shape in LARGE:
            yield large_case(t, acc_t, shape)
        for kind in ("nan", "inf", "acc", "subnormal"):
            if kind != "inf" or F[t].inf:
                yield special_case(t, acc_t, kind)
        if t.startswith("f8"):
            for shape in ((16, 16, 32), (8, 8, 128)):
                yield exact_case(t, acc_t, shape, words=" fast_acc")
            yield random_case(t, acc_t, (8, 8, 32), " fast_acc")
    for ls in ("signed", "unsigned"):
        for rs in ("signed", "unsigned"):
            for shape in SHAPES[:16]:
                yield mmai_case(
                    shape, ls, rs, "random", tier="smoke" if shape == (8, 4, 16) and ls != rs else "standard"
                )
            for shape in ((4, 4, 32), (8, 8, 256)):
                yield mmai_case(shape, ls, rs, "extreme")
            yield mmai_case((4, 8, 16), ls, rs, "wrap")
            yield mmai_case((4, 4, 16), ls, rs, "random", 2)
            yield mmai_case((64, 64, 64), ls, rs, "random")
    for t, st, v in (
        ("f8E4M3FN", "f8E8M0FNU", 32),
        ("f8E5M2", "f8E8M0FNU", 32),
        ("f4E2M1FN", "f8E8M0FNU", 16),
        ("f4E2M1FN", "f8E8M0FNU", 32),
        ("f4E2M1FN", "f8E4M3FN", 16),
        ("f4E2M1FN", "fnv8E5M3FNU", 16),
    ):
        for mult in (1, 2, 4, 8):
            for m, n in ((4, 4), (8, 16), (2, 32)):
                if mult * v <= 128 or m == 4:
                    yield scaled_case(t, st, v, (m, n, v * mult), "exact")
        for mult in (1, 2):
            yield scaled_case(t, st, v, (4, 4, v * mult), "random")
        yield scaled_case(t, st, v, (4, 4, v * 2), "exact", 2)


FAMILIES = {"mma": mma}
