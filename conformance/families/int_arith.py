"""Integer arithmetic, bitwise operations and integer comparisons: every type, modifier and awkward pair."""

from families.case import Case
from families.kernel import count, operation, paired
from families.shape import dims
from oracle import exact, values
from oracle.formats import INT, INTS, signed

SHAPES = ([], [1], [16], [4, 8], [2, 4, 8], [2, 1, 4, 2])
OVERFLOW = ("", " overflow<no_signed_wrap>", " overflow<no_unsigned_wrap>", " overflow<no_wrap>")

# name, operands, the spellings of its modifiers, what may be said about signs and rounding
BINARY = [(op, [(m, False, "zero") for m in OVERFLOW]) for op in ("addi", "subi", "muli", "shli")]
BINARY += [(op, [("", False, "zero")]) for op in ("mulhii", "andi", "ori", "xori")]
BINARY += [(op, [(" signed", True, "zero"), (" unsigned", False, "zero")]) for op in ("maxi", "mini", "shri", "remi")]
BINARY += [
    (
        "divi",
        [
            (" signed", True, "zero"),
            (" unsigned", False, "zero"),
            (" signed rounding<zero>", True, "zero"),
            (" signed rounding<negative_inf>", True, "negative_inf"),
            (" signed rounding<positive_inf>", True, "positive_inf"),
            (" unsigned rounding<positive_inf>", False, "positive_inf"),
        ],
    )
]
UNARY = [("negi", ("", " overflow<no_signed_wrap>")), ("absi", ("",))]


def label(m):
    return m.strip().replace("overflow<", "").replace("rounding<", "").replace(">", "").replace(" ", "_") or "plain"


def wraps(op, a, b, n, m):
    """Whether an overflow flag is violated: then the language leaves the result open."""
    if "wrap" not in m:
        return False
    x, y = signed(a, n), signed(b, n)
    s, u = {
        "addi": (x + y, a + b),
        "subi": (x - y, a - b),
        "muli": (x * y, a * b),
        "shli": (x << min(b, 64), a << min(b, 64)),
        "negi": (-x, -a),
    }[op]
    bad_s, bad_u = not -(1 << (n - 1)) <= s < 1 << (n - 1), not 0 <= u < 1 << n
    return "unsigned" not in m and bad_s or "no_signed" not in m and bad_u


def binary_case(op, m, is_signed, rounding, t, shape, pairs, name, tier):
    n = INTS[t]
    out, free = [], []
    for a, b in pairs:
        r, f = exact.integer(op, n, a, b, is_signed, rounding)
        out.append(r)
        free.append(f or wraps(op, a, b, n, m))
    case = Case("int_arith", name, tier, [op], [t])
    return operation(case, f"{op} {{0}}, {{1}}{m} : {{D}}", paired(t, pairs), t, out, shape, free=free)


def int_arith():
    for op, modifiers in BINARY:
        for m, is_signed, rounding in modifiers:
            for t in INT:
                stem = f"{op}.{label(m)}.{t}"
                first = m in ("", " signed")
                n = 1024 if t != "i1" else 4
                shape = [32, 32] if t != "i1" else [4]
                pairs = values.pairs(t, n, f"int {op} {t}") if t != "i1" else [(a, b) for a in (0, 1) for b in (0, 1)]
                if op in ("shli", "shri") and t != "i1":
                    pairs = [(a, b % (INTS[t] + 3)) if i % 3 else (a, b) for i, (a, b) in enumerate(pairs)]
                yield binary_case(
                    op,
                    m,
                    is_signed,
                    rounding,
                    t,
                    shape,
                    pairs,
                    stem + ".edges",
                    (
                        "smoke"
                        if first
                        and t == ("i8" if op in ("subi", "mulhii", "andi", "ori", "xori", "mini", "shri") else "i32")
                        else "standard"
                    ),
                )
                if t == "i8":
                    every = [(a, b) for a in range(256) for b in range(256)]
                    yield binary_case(op, m, is_signed, rounding, t, [64, 64], every, stem + ".all_pairs", "standard")
                if t in ("i16", "i32", "i64"):
                    some = values.pairs(t, 4096, f"int more {op} {t}")[1024:]
                    yield binary_case(
                        op, m, is_signed, rounding, t, [1024], some, stem + ".random", "standard" if first else "full"
                    )
                if first:
                    for shape in SHAPES if t in ("i1", "i32") else (SHAPES[0], SHAPES[4]):
                        some = values.pairs(t, count(shape), f"int shape {op} {t} {shape}")
                        yield binary_case(
                            op,
                            m,
                            is_signed,
                            rounding,
                            t,
                            shape,
                            some,
                            f"{stem}.shape_{dims(shape)}",
                            "standard",
                        )
    for op, modifiers in UNARY:
        for m in modifiers:
            for t in INT:
                n = INTS[t]
                bits = (
                    list(range(1 << n))
                    if n <= 16
                    else values.fill(values.int_edges(n), 1024, lambda r=values.Rng(op + t), n=n: r.bits(n))
                )
                case = Case(
                    "int_arith", f"{op}.{label(m)}.{t}", "smoke" if t == "i32" and not m else "standard", [op], [t]
                )
                out = [exact.integer(op, n, a)[0] for a in bits]
                free = [wraps(op, a, 0, n, m) for a in bits]
                yield operation(case, f"{op} {{0}}{m} : {{D}}", [(t, bits)], t, out, free=free)


def int_compare():
    for predicate, test in exact.PREDICATES.items():
        for sign in ("signed", "unsigned"):
            for t in INT:
                n = INTS[t]
                pairs = values.pairs(t, 1024, f"cmp {t}") if t != "i1" else [(a, b) for a in (0, 1) for b in (0, 1)]
                shape = [len(pairs)] if t == "i1" else [8, 128]
                read = (lambda v, n=n: signed(v, n)) if sign == "signed" else (lambda v: v)
                out = [int(test(read(a), read(b))) for a, b in pairs]
                case = Case(
                    "int_compare",
                    f"cmpi.{predicate}.{sign}.{t}",
                    "smoke" if t == "i16" and predicate == "less_than" else "standard",
                    ["cmpi"],
                    [t],
                )
                text = f"cmpi {predicate} {{0}}, {{1}}, {sign} : {{S}} -> {{D}}"
                yield operation(case, text, paired(t, pairs), "i1", out, shape)
                shape = [] if t == "i64" else [2, 2, 2]
                some = values.pairs(t, count(shape), f"cmp small {t} {predicate} {sign}")
                case = Case("int_compare", f"cmpi.{predicate}.{sign}.{t}.small", "standard", ["cmpi"], [t])
                yield operation(
                    case, text, paired(t, some), "i1", [int(test(read(a), read(b))) for a, b in some], shape
                )


FAMILIES = {"int_arith": int_arith, "int_compare": int_compare}
