"""Awkward values of every element type, and sets of them for one, two and three operands."""

from fractions import Fraction

from oracle.formats import F, INTS, from_fraction
from oracle.rng import Rng


def int_edges(n):
    """Bits of integers at which something may turn over."""
    top = 1 << (n - 1)
    some = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        10,
        15,
        16,
        31,
        32,
        63,
        64,
        100,
        127,
        128,
        255,
        256,
        1000,
        32767,
        32768,
        65535,
        65536,
        0x55555555_55555555,
        0xAAAAAAAA_AAAAAAAA,
        0x01234567_89ABCDEF,
        top - 2,
        top - 1,
        top,
        top + 1,
        top + 2,
        -1,
        -2,
        -3,
        -7,
        -8,
        -10,
        -127,
        -128,
        -129,
        -256,
        -32768,
        -32769,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
        n - 1,
        n,
        n + 1,
        top >> 1,
        -(top >> 1),
    ]
    seen, mask = [], (1 << n) - 1
    for v in some:
        if v & mask not in seen:
            seen.append(v & mask)
    return seen


def float_edges(t):
    """Bits of numbers at which something may turn over, NaNs at the end."""
    f = F[t]
    lsb = 1 << f.shift
    mags = [0, lsb, 2 * lsb, 3 * lsb]
    if f.man:
        first_normal = 1 << (f.man + f.shift)
        mags += [first_normal - lsb, first_normal, first_normal + lsb, 2 * first_normal]
    for q in (
        Fraction(1, 4),
        Fraction(1, 3),
        Fraction(1, 2),
        Fraction(3, 4),
        Fraction(1),
        Fraction(3, 2),
        Fraction(2),
        Fraction(5, 2),
        Fraction(3),
        Fraction(4),
        Fraction(5),
        Fraction(7),
        Fraction(10),
        Fraction(100),
        Fraction(127),
        Fraction(255),
        Fraction(1025, 1024),
        Fraction(65504),
        Fraction(2) ** 31,
        Fraction(2) ** 32,
        Fraction(2) ** 63,
        Fraction(2) ** 64,
    ):
        if q <= f.top:
            mags.append(from_fraction(t, q, "zero"))
    one = from_fraction(t, Fraction(1))
    mags += [one - lsb, one + lsb, f.top_bits, f.top_bits - lsb, f.top_bits - 2 * lsb]
    if f.inf:
        mags.append(f.inf_bits)
    out = []
    for m in mags:
        for b in ((m, m | f.sign_bit) if f.signed else (m,)):
            if b not in out:
                out.append(b)
    return out + nans(t)


def nans(t):
    f = F[t]
    if f.nan is None:
        return []
    out = [f.nan]
    if f.signed:
        out.append(f.nan | f.sign_bit)
    if f.inf:
        quiet = 1 << (f.man + f.shift - 1)
        out += [f.inf_bits | quiet, f.inf_bits | f.sign_bit | quiet]
        if f.man > 2:
            out += [f.inf_bits | 1 << f.shift, f.inf_bits | f.sign_bit | 5 << f.shift]  # signalling
    return [b for i, b in enumerate(out) if b not in out[:i]]


def edges(t):
    return float_edges(t) if t in F else int_edges(INTS[t])


def random_bits(t, rng):
    if t in INTS:
        return rng.bits(INTS[t])
    f = F[t]
    return rng.bits(f.width) << f.shift


def all_bits(t):
    """Every value of a type of at most 16 bits."""
    return list(range(1 << (F[t].memory_bits if t in F else INTS[t])))


def moderate(t, rng, spread=3):
    """A number whose exponent is near 0: sums and products neither overflow nor vanish."""
    f = F[t]
    e = rng.between(-spread, spread)
    m = (1 << f.man) | rng.bits(f.man) if f.man else 1
    q = Fraction(m) * Fraction(2) ** (e - f.man)
    b = from_fraction(t, min(q, f.top), "zero")
    return b | f.sign_bit if f.signed and rng.bits(1) else b


def near_exponent(t, rng, e):
    f = F[t]
    q = Fraction((1 << f.man) | rng.bits(f.man)) * Fraction(2) ** (e - f.man)
    b = from_fraction(t, min(q, f.top), "zero")
    return b | f.sign_bit if f.signed and rng.bits(1) else b


def fill(items, n, more):
    """n items: those given first, then more()."""
    items = list(items)[:n]
    while len(items) < n:
        items.append(more())
    return items


def pairs(t, n, name):
    """n pairs: edges against edges, shuffled so that a prefix is a fair sample, then random ones."""
    rng = Rng(name)
    e = edges(t)
    both = rng.shuffled([(a, b) for a in e for b in e])
    return fill(both, n, lambda: (random_bits(t, rng), random_bits(t, rng)))


def float_pairs(t, n, name, kind):
    """Random pairs: 'wide' any bits, 'near' similar exponents, 'tie' sums at or beside a rounding boundary, 'limit' beside overflow and underflow."""
    rng, f = Rng(name), F[t]
    out = []
    for _ in range(n):
        if kind == "wide":
            out.append((random_bits(t, rng), random_bits(t, rng)))
        elif kind == "near":
            a = moderate(t, rng)
            e = F[t].decode(a)
            out.append((a, near_exponent(t, rng, e[1].bit_length() - 1 + e[2] + rng.between(-f.precision - 2, 2))))
        elif kind == "tie":
            a = moderate(t, rng, 2)
            s, m, e = f.decode(a)
            half = Fraction(2) ** (m.bit_length() - 2 - f.man + e)
            q = (
                half
                * rng.choice((1, 1, 3, Fraction(1, 2)))
                * rng.choice((1, 1 + Fraction(1, 1 << f.man), 1 - Fraction(1, 2 << f.man)))
            )
            b = from_fraction(t, q)
            out.append((a, b | f.sign_bit if rng.bits(1) else b))
        else:
            big = rng.bits(1)
            hi, lo = (1 << f.exp) - 2 - f.bias, f.emin
            total = hi if big else lo - rng.between(0, f.man + 1)
            ea = rng.between(lo, hi)
            eb = total - ea + rng.between(-1, 1)
            out.append((near_exponent(t, rng, ea), near_exponent(t, rng, max(lo - f.man, min(hi, eb)))))
    return out
