"""Conversions: exhaustive from sources of 4, 8 and 16 bits, edges and rounding boundaries from wider ones."""

from fractions import Fraction

from families.case import Case
from families.kernel import Kernel, count, operation
from families.shape import dims
from oracle import exact, values
from oracle.formats import F, INT, INTS, from_fraction, signed, to_fraction, value_bits
from oracle.rng import Rng

WORDS = {"nearest_even": 0, "zero": 1, "negative_inf": 2, "positive_inf": 3, "nearest_away": 7}
SMALL = ("f8E4M3FN", "f8E5M2", "f4E2M1FN")
ALL_MODES = tuple(WORDS)
TARGETS = ("f16", "bf16", "tf32", "f32", "f64")


def legal_modes(source, target):
    """(mode, version) of ftof; None is the default. More than nearest_even came with 13.4 (bounds.md, section 4)."""
    if target == "f8E8M0FNU":
        return [] if source == "f8E8M0FNU" else [("zero", None), ("positive_inf", None)]
    out = [(None, None), ("nearest_even", None)]
    if target in SMALL or target == "fnv8E5M3FNU":
        return out
    if source in SMALL:
        more = ALL_MODES
    elif source == "f8E8M0FNU":
        more = ALL_MODES if target == "f64" else ("zero",)
    elif source == "fnv8E5M3FNU":
        more = ("zero",) if target == "f16" else ALL_MODES
    elif source in ("f16", "bf16"):
        more = ("zero",) if target in ("f16", "bf16") else ALL_MODES
    elif source == "tf32":
        more = ("zero",) if target in ("f16", "bf16") else ALL_MODES
    elif source == "f32":
        more = {"f16": ("zero",), "bf16": ("zero",), "tf32": ("zero", "nearest_away"), "f64": ALL_MODES}[target]
    else:
        more = ("zero", "negative_inf", "positive_inf") if target == "f32" else ("zero",)
    return out + [(m, "13.4") for m in more if m != "nearest_even"]


def is_free(source, target, bits):
    """Where the language leaves ftof open: beyond the range of a saturating format, signs that the target lacks, zero and what is below 2^-127 for f8E8M0FNU."""
    f, g = F[source], F[target]
    x = f.decode(bits)
    if x == "nan":
        return g.nan is None
    if x[1] is None:
        return g.saturates
    if not g.signed and x[0]:
        return True
    q = abs(to_fraction(source, bits))
    if not g.has_zero and q < g.min_sub:
        return True
    return g.saturates and q > g.top


def midpoints(source, target, n, name):
    """Numbers of the source at, just below and just above the middle of two neighbours of the target, all over its range."""
    f, g, rng = F[source], F[target], Rng(name)
    out = []
    while len(out) < n:
        e = rng.between(g.emin - g.man - 1, (1 << g.exp) - 1 - g.bias)
        m = (1 << g.man) | rng.bits(g.man) if g.man else 1
        if e < g.emin:
            m >>= min(g.emin - e, g.man + 1)
            e = g.emin
        q = m + [0, 1, 1, 1][rng.below(4)] / 2 if rng.bits(1) else m + 0.5
        q = Fraction(q) * Fraction(2) ** (e - g.man)
        b = from_fraction(source, min(q, f.top))
        b = max(0, min(b + rng.choice((-1, 0, 0, 1)) * (1 << f.shift), f.top_bits))
        out.append(b | f.sign_bit if f.signed and rng.bits(1) else b)
    return out


def sources(t, target=None):
    """(kind, bits) of a source type."""
    if t in F:
        if F[t].memory_bits <= 16:
            return [("all", values.all_bits(t))]
        rng = Rng(f"convert {t} {target}")
        out = [
            ("edges", values.fill(values.edges(t), 256, lambda: values.random_bits(t, rng))),
            ("random", [values.random_bits(t, rng) for _ in range(512)]),
        ]
        if target in F:
            out.append(("middles", midpoints(t, target, 1024, f"middles {t} {target}")))
        elif target:
            n = INTS[target]
            bits = []
            while len(bits) < 512:
                bits.append(values.near_exponent(t, rng, rng.between(-2, n + 1)))
            out.append(("range", bits))
        return out
    if INTS[t] <= 16:
        return [("all", values.all_bits(t))]
    rng = Rng(f"convert {t} {target}")
    bits = values.int_edges(INTS[t])
    near = []
    if target in F:  # integers beside the middle of two floats
        for _ in range(512):
            shift = rng.between(0, INTS[t] - F[target].precision - 1) if INTS[t] > F[target].precision + 1 else 0
            m = (1 << F[target].man | rng.bits(F[target].man)) << 1 | 1
            near.append(((m << shift) + rng.choice((-1, 0, 1))) * (-1 if rng.bits(1) else 1) & (1 << INTS[t]) - 1)
    return [
        ("edges", values.fill(bits, 256, lambda: rng.bits(INTS[t]))),
        ("random", values.fill(near, 1024, lambda: rng.bits(rng.between(1, INTS[t])))),
    ]


def make(name, op, source, target, bits, text, out, free=None, tier="standard", version=None, family="convert", **how):
    case = Case(family, name, tier, [op], [source, target])
    case.version = version
    return operation(case, f"{op} {{0}}{text} : {{S}} -> {{D}}", [(source, bits)], target, out, free=free, **how)


def ftof():
    for source in F:
        for target in F:
            if source == target:
                continue
            for mode, version in legal_modes(source, target):
                for kind, bits in sources(source, target):
                    out = [exact.convert(source, target, b, mode or "nearest_even") for b in bits]
                    free = [is_free(source, target, b) for b in bits]
                    if mode is None and kind != "edges" and target not in ("f8E4M3FN", "f32"):
                        continue
                    tier = (
                        "smoke"
                        if mode == "nearest_even"
                        and (source, target)
                        in (
                            ("f8E4M3FN", "f16"),
                            ("f32", "bf16"),
                            ("f32", "f8E5M2"),
                            ("f64", "f16"),
                            ("f4E2M1FN", "f32"),
                        )
                        and kind in ("all", "middles")
                        else "standard"
                    )
                    yield make(
                        f"ftof.{source}.{target}.{mode or 'default'}.{kind}",
                        "ftof",
                        source,
                        target,
                        bits,
                        f" rounding<{mode}>" if mode else "",
                        out,
                        free,
                        tier,
                        version,
                        rule="exact",
                    )


def ftoi():
    for source in F:
        for target in INT:
            for sign in ("signed", "unsigned"):
                for saturating in (False, True):
                    for kind, bits in sources(source, target):
                        pairs = [exact.to_int(source, target, b, sign == "signed", saturating) for b in bits]
                        tier = "smoke" if (source, target) == ("f32", "i32") and kind == "range" else "standard"
                        yield make(
                            f"ftoi.{source}.{target}.{sign}{'.saturating' if saturating else ''}.{kind}",
                            "ftoi",
                            source,
                            target,
                            bits,
                            f" {sign}" + (" saturating" if saturating else ""),
                            [p[0] for p in pairs],
                            [p[1] for p in pairs],
                            tier,
                        )


def itof():
    for source in INT:
        for target in F:
            if target == "f8E8M0FNU":
                continue
            for sign in ("signed", "unsigned"):
                for kind, bits in sources(source, target):
                    read = [signed(b, INTS[source]) if sign == "signed" else b for b in bits]
                    out = [exact.from_int(target, v) for v in read]
                    g = F[target]
                    free = [g.saturates and abs(v) > g.top or not g.signed and v < 0 for v in read]
                    tier = "smoke" if (source, target) == ("i64", "f32") and kind == "random" else "standard"
                    yield make(
                        f"itof.{source}.{target}.{sign}.{kind}",
                        "itof",
                        source,
                        target,
                        bits,
                        f" {sign}",
                        out,
                        free,
                        tier,
                    )


def integers():
    order = ("i1", "i4", "i8", "i16", "i32", "i64")
    for i, narrow in enumerate(order):
        for wide in order[i + 1 :]:
            n, w = INTS[narrow], INTS[wide]
            for sign in ("signed", "unsigned"):
                bits = (
                    values.all_bits(narrow)
                    if n <= 16
                    else values.fill(values.int_edges(n), 256, lambda r=Rng(f"exti {narrow}"), n=n: r.bits(n))
                )
                out = [(signed(b, n) if sign == "signed" else b) & ((1 << w) - 1) for b in bits]
                yield make(
                    f"exti.{narrow}.{wide}.{sign}",
                    "exti",
                    narrow,
                    wide,
                    bits,
                    f" {sign}",
                    out,
                    tier="smoke" if (narrow, wide) == ("i4", "i16") else "standard",
                )
            for flag in ("", "no_signed_wrap", "no_unsigned_wrap", "no_wrap"):
                bits = (
                    values.all_bits(wide)
                    if w <= 16
                    else values.fill(values.int_edges(w), 256, lambda r=Rng(f"trunci {wide}"), w=w: r.bits(w))
                )
                out = [b & ((1 << n) - 1) for b in bits]
                free = [
                    flag in ("no_signed_wrap", "no_wrap")
                    and signed(b, w) != signed(o, n)
                    or flag in ("no_unsigned_wrap", "no_wrap")
                    and b != o
                    for b, o in zip(bits, out)
                ]
                yield make(
                    f"trunci.{wide}.{narrow}.{flag or 'plain'}",
                    "trunci",
                    wide,
                    narrow,
                    bits,
                    f" overflow<{flag}>" if flag else "",
                    out,
                    free,
                )


def bitcasts():
    types = [t for t in list(INT) + list(F)]
    for a in types:
        for b in types:
            if value_bits(a) == value_bits(b):
                bits = (
                    values.all_bits(a)
                    if value_bits(a) <= 16
                    else values.fill(values.edges(a), 256, lambda r=Rng(f"bitcast {a}"), a=a: values.random_bits(a, r))
                )
                yield make(
                    f"bitcast.{a}.{b}",
                    "bitcast",
                    a,
                    b,
                    bits,
                    "",
                    bits,
                    tier="smoke" if (a, b) == ("f32", "i32") else "standard",
                )


def shapes():
    """Conversions of other shapes than one row."""
    for op, source, target, text in (
        ("ftof", "f32", "f16", ""),
        ("ftoi", "f64", "i32", " signed"),
        ("itof", "i8", "bf16", " unsigned"),
        ("exti", "i8", "i64", " signed"),
        ("trunci", "i32", "i8", ""),
        ("bitcast", "i16", "bf16", ""),
        ("ftof", "bf16", "f64", ""),
    ):
        for shape in ([], [1, 1], [4, 2, 8], [2, 2, 2, 2]):
            rng = Rng(f"{op} {source} {shape}")
            bits = [
                values.moderate(source, rng) if source in F else rng.bits(INTS[source]) for _ in range(count(shape))
            ]
            out = {
                "ftof": lambda b: exact.convert(source, target, b),
                "ftoi": lambda b: exact.to_int(source, target, b, True)[0],
                "itof": lambda b: exact.from_int(target, b),
                "exti": lambda b: signed(b, INTS[source]) & ((1 << INTS[target]) - 1),
                "trunci": lambda b: b & 255,
                "bitcast": lambda b: b,
            }[op]
            case = Case(
                "convert",
                f"{op}.{source}.{target}.shape_{dims(shape)}",
                "standard",
                [op],
                [source, target],
            )
            yield operation(
                case, f"{op} {{0}}{text} : {{S}} -> {{D}}", [(source, bits)], target, [out(b) for b in bits], shape
            )


def double_rounding():
    """Values that two roundings get wrong; each by the way of the format that tempts."""
    rows = (
        ("f32", "f8E4M3FN", 0x3F880001, 0x39),
        ("f64", "bf16", 0x3FF0100000001000, 0x3F81),
        ("f32", "tf32", 0x44801000, 0x44800000),
        ("f32", "tf32", 0x44803000, 0x44804000),
        ("f64", "f16", 0x3FF0020000000001, 0x3C01),
        ("f64", "f32", 0x3FF0000010000001, 0x3F800001),
        ("f64", "f8E5M2", 0x3FF2000000000001, 0x3D),
    )
    for i, (source, target, bits, want) in enumerate(rows):
        assert exact.convert(source, target, bits) == want, (source, target, hex(exact.convert(source, target, bits)))
        yield make(
            f"double_rounding.{i}.{source}.{target}",
            "ftof",
            source,
            target,
            [bits] * 16,
            "",
            [want] * 16,
            tier="smoke" if i in (0, 1, 3) else "standard",
            rule="exact",
        )
    for i, (source, target, value) in enumerate(
        (("i64", "f32", 2**60 + 2**36 + 1), ("i64", "f16", 2049), ("i32", "bf16", 2**24 + 2**16 + 1))
    ):
        want = exact.from_int(target, value)
        yield make(
            f"double_rounding.int_{i}.{source}.{target}",
            "itof",
            source,
            target,
            [value] * 16,
            " signed",
            [want] * 16,
            tier="smoke" if i == 0 else "standard",
        )


def pointers():
    """ptr_to_int and int_to_ptr: differences of addresses, and a way there and back."""
    for t, size in (("i8", 1), ("f16", 2), ("i32", 4), ("f64", 8), ("i1", 1), ("tf32", 4), ("f8E5M2", 1)):
        case = Case(
            "convert",
            f"ptr_to_int.{t}",
            "smoke" if t == "i32" else "standard",
            ["ptr_to_int", "int_to_ptr", "offset"],
            [t],
        )
        k = Kernel(case)
        n = 16
        bits = (
            [i % 2 if t == "i1" else i for i in range(n)] if t in INTS else values.fill(values.edges(t), n, lambda: 0)
        )
        case.input(t, bits)
        p = k.ptr_param("a", t)
        i = k.v(f"iota : tile<{n}xi32>")
        ps = k.v(
            f"offset {k.splat(p, f'ptr<{t}>', [n])}, {i} : tile<{n}xptr<{t}>>, tile<{n}xi32> -> tile<{n}xptr<{t}>>"
        )
        a = k.v(f"ptr_to_int {ps} : tile<{n}xptr<{t}>> -> tile<{n}xi64>")
        a0 = k.v(f"ptr_to_int {p} : tile<ptr<{t}>> -> tile<i64>")
        d = k.v(f"subi {a}, {k.splat(a0, 'i64', [n])} : tile<{n}xi64>")
        k.output("o", d, "i64", [n], [j * size for j in range(n)])
        q = k.v(f"int_to_ptr {a} : tile<{n}xi64> -> tile<{n}xptr<{t}>>")
        x = k.fresh()
        k.emit(f"{x}, {k.fresh()} = load_ptr_tko weak {q} : tile<{n}xptr<{t}>> -> tile<{n}x{t}>, token")
        k.output("x", x, t, [n], bits)
        yield k.finish()
    for a, b, size in (("i32", "f32", 4), ("i8", "i32", 4), ("f64", "i8", 1), ("i16", "bf16", 2), ("f32", "i64", 8)):
        case = Case("convert", f"ptr_to_ptr.{a}.{b}", "standard", ["ptr_to_ptr"], [a, b])
        k = Kernel(case)
        raw = bytes(range(1, 129))
        case.buffer(a, raw)
        p = k.ptr_param("a", a)
        q = k.v(f"ptr_to_ptr {p} : tile<ptr<{a}>> -> tile<ptr<{b}>>")
        n = 8
        x = k.load(q, b, [n])
        k.output("o", x, b, [n], [int.from_bytes(raw[i * size : i * size + size], "little") for i in range(n)])
        yield k.finish()


def convert():
    yield from ftof()
    yield from ftoi()
    yield from itof()
    yield from integers()
    yield from bitcasts()
    yield from shapes()
    yield from double_rounding()
    yield from pointers()


FAMILIES = {"convert": convert}
