"""Float arithmetic on bits, rounded once from the exact result (spec/semantics.md, sections 2, 3 and 5)."""

import math

from oracle.formats import F, INTS, nan_bits, signed


def flush(t, bits):
    """A subnormal number becomes the zero of its sign."""
    f = F[t]
    mag = bits & ~f.sign_bit
    return bits & f.sign_bit if 0 < mag < 1 << (f.man + f.shift) else bits


def _flushed(fn):
    def wrapped(t, *bits, mode="nearest_even", ftz=False):
        if not ftz:
            return fn(t, *bits, mode=mode)
        return flush(t, fn(t, *(flush(t, b) for b in bits), mode=mode))

    wrapped.__name__ = fn.__name__
    return wrapped


def _sum(f, a, b, mode):
    """Sum of two finite numbers (sign, m, e)."""
    (sa, ma, ea), (sb, mb, eb) = a, b
    e = min(ea, eb)
    x = (-ma if sa else ma) << (ea - e)
    x += (-mb if sb else mb) << (eb - e)
    if x == 0:
        if ma == 0 and mb == 0 and sa == sb:
            return f.zero(sa)
        return f.zero(mode == "negative_inf")
    return f.round(int(x < 0), abs(x), e, mode)


@_flushed
def add(t, a, b, mode):
    f = F[t]
    x, y = f.decode(a), f.decode(b)
    if x == "nan" or y == "nan":
        return nan_bits(t)
    if x[1] is None or y[1] is None:
        if x[1] is None and y[1] is None and x[0] != y[0]:
            return nan_bits(t)
        return f.infinity(x[0] if x[1] is None else y[0])
    return _sum(f, x, y, mode)


def sub(t, a, b, mode="nearest_even", ftz=False):
    return add(t, a, b ^ F[t].sign_bit, mode=mode, ftz=ftz)


@_flushed
def mul(t, a, b, mode):
    f = F[t]
    x, y = f.decode(a), f.decode(b)
    if x == "nan" or y == "nan":
        return nan_bits(t)
    s = x[0] ^ y[0]
    if x[1] is None or y[1] is None:
        return nan_bits(t) if x[1] == 0 or y[1] == 0 else f.infinity(s)
    return f.round(s, x[1] * y[1], x[2] + y[2], mode)


@_flushed
def div(t, a, b, mode):
    f = F[t]
    x, y = f.decode(a), f.decode(b)
    if x == "nan" or y == "nan":
        return nan_bits(t)
    s = x[0] ^ y[0]
    if x[1] is None:
        return nan_bits(t) if y[1] is None else f.infinity(s)
    if y[1] is None:
        return f.zero(s)
    if y[1] == 0:
        return nan_bits(t) if x[1] == 0 else f.infinity(s)
    if x[1] == 0:
        return f.zero(s)
    k = max(0, f.precision + 3 - x[1].bit_length() + y[1].bit_length())
    q, rest = divmod(x[1] << k, y[1])
    return f.round(s, q << 3, x[2] - y[2] - k - 3, mode, rest != 0)


@_flushed
def sqrt(t, a, mode):
    f = F[t]
    x = f.decode(a)
    if x == "nan":
        return nan_bits(t)
    if x[1] == 0:
        return a
    if x[0]:
        return nan_bits(t)
    if x[1] is None:
        return a
    m, e = x[1], x[2]
    k = 2 * f.precision + 6
    k += (e - k) & 1
    root = math.isqrt(m << k)
    return f.round(0, root << 3, (e - k) // 2 - 3, mode, root * root != m << k)


@_flushed
def fma(t, a, b, c, mode):
    f = F[t]
    x, y, z = f.decode(a), f.decode(b), f.decode(c)
    if "nan" in (x, y, z):
        return nan_bits(t)
    s = x[0] ^ y[0]
    if x[1] is None or y[1] is None:
        if x[1] == 0 or y[1] == 0 or (z[1] is None and z[0] != s):
            return nan_bits(t)
        return f.infinity(s)
    if z[1] is None:
        return c
    return _sum(f, (s, x[1] * y[1], x[2] + y[2]), z, mode)


def rem(t, a, b):
    """x - y * trunc(x / y), always exact."""
    f = F[t]
    x, y = f.decode(a), f.decode(b)
    if x == "nan" or y == "nan" or x[1] is None or y[1] == 0:
        return nan_bits(t)
    if y[1] is None:
        return a
    e = min(x[2], y[2])
    r = (x[1] << (x[2] - e)) % (y[1] << (y[2] - e))
    return f.round(x[0], r, e)


def absolute(t, a):
    if F[t].is_nan(a):
        return a if t == "f64" else nan_bits(t)
    return a & ~F[t].sign_bit


def negate(t, a):
    if F[t].is_nan(a):
        return a if t == "f64" else nan_bits(t)
    return a ^ F[t].sign_bit


def order(t, a):
    """A key that orders numbers, -0 below +0."""
    s = F[t].sign_bit
    return -(a & ~s) - 1 if a & s else a


def extreme(t, a, b, larger, propagate=False, ftz=False):
    """maxf and minf."""
    f = F[t]
    if ftz:
        a, b = flush(t, a), flush(t, b)
    if f.is_nan(a) or f.is_nan(b):
        if propagate or (f.is_nan(a) and f.is_nan(b)):
            return nan_bits(t)
        return b if f.is_nan(a) else a
    return max(a, b, key=lambda v: order(t, v)) if larger else min(a, b, key=lambda v: order(t, v))


PREDICATES = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less_than": lambda a, b: a < b,
    "less_than_or_equal": lambda a, b: a <= b,
    "greater_than": lambda a, b: a > b,
    "greater_than_or_equal": lambda a, b: a >= b,
}


def compare(t, a, b, predicate, ordered):
    f = F[t]
    if f.is_nan(a) or f.is_nan(b):
        return 0 if ordered else 1
    a, b = (0 if v & ~f.sign_bit == 0 else order(t, v) for v in (a, b))
    return int(PREDICATES[predicate](a, b))


def to_integer(t, a, up):
    """ceil and floor."""
    f = F[t]
    x = f.decode(a)
    if x == "nan":
        return nan_bits(t)
    if x[1] is None or x[1] == 0:
        return a
    s, m, e = x
    if e >= 0:
        return a
    whole, rest = m >> -e, m & ((1 << -e) - 1)
    return f.round(s, whole + (1 if rest and bool(s) != up else 0), 0)


def convert(source, target, a, mode="nearest_even"):
    """ftof."""
    f, g = F[source], F[target]
    if source == "tf32" and target == "f32":
        return a
    x = f.decode(a)
    if x == "nan":
        bits = nan_bits(target)
        if source == "f64" and target in ("f16", "bf16", "tf32", "f32"):
            bits |= g.sign_bit if a & f.sign_bit else 0
        return bits
    if x[1] is None:
        return g.infinity(x[0]) if g.signed else g.top_bits
    if not g.has_zero and x[1] == 0:
        return 0
    # a format without sign takes the magnitude
    return g.round(x[0] if g.signed else 0, x[1], x[2], mode)


def from_int(target, value):
    """itof of a Python integer."""
    g = F[target]
    return g.round(int(value < 0), abs(value), 0)


def to_int(source, target, a, is_signed, saturating=False):
    """ftoi. Returns (bits, free): free where the language leaves the result open."""
    n = INTS[target]
    lo, hi = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if is_signed else (0, (1 << n) - 1)
    x = F[source].decode(a)
    mask = (1 << n) - 1
    if x != "nan" and x[1] is not None:
        s, m, e = x
        whole = m << e if e >= 0 else m >> -e
        whole = -whole if s else whole
        if lo <= whole <= hi:
            return whole & mask, False
        if saturating:
            return max(lo, min(hi, whole)) & mask, False
    else:
        if saturating:
            return (0 if x == "nan" else (lo if x[0] else hi) & mask), False
        whole = None if x == "nan" else (-1 << 200 if x[0] else 1 << 200)
    if n == 1:
        return 1, True
    if whole is None:
        return 0, True
    if n == 8:
        lo, hi = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
    return max(lo, min(hi, whole)) & mask, True


def integer(op, n, a, b=0, is_signed=False, rounding="zero"):
    """Integer operations on bits; (bits, free)."""
    mask = (1 << n) - 1
    x, y = (signed(a, n), signed(b, n)) if is_signed else (a, b)
    low = -(1 << (n - 1))
    if op in ("divi", "remi"):
        if b == 0:
            return (mask, True) if op == "divi" else (a, True)
        if is_signed and x == low and y == -1:
            return (a, True) if op == "divi" else (0, True)
        if op == "remi":
            r = abs(x) % abs(y)
            return (-r if x < 0 else r) & mask, False
        q, r = divmod(x, y)  # floor
        if rounding == "positive_inf":
            q += r != 0
        elif rounding == "zero" and r and (x < 0) != (y < 0):
            q += 1
        return q & mask, False
    if op == "shli":
        return (0, True) if b >= n else (a << b & mask, False)
    if op == "shri":
        return ((mask if x < 0 else 0), True) if b >= n else (x >> b & mask, False)
    if op == "addi":
        r = a + b
    elif op == "subi":
        r = a - b
    elif op == "muli":
        r = a * b
    elif op == "andi":
        r = a & b
    elif op == "ori":
        r = a | b
    elif op == "xori":
        r = a ^ b
    elif op == "maxi":
        r = max(x, y)
    elif op == "mini":
        r = min(x, y)
    elif op == "mulhii":
        r = a * b >> n
    elif op == "negi":
        r = -a
    else:
        assert op == "absi", op
        r = abs(signed(a, n))
    return r & mask, False
