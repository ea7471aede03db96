"""Mathematical functions: special arguments by Annex F of C99, everything else by mpmath, rounded once to nearest even."""

from fractions import Fraction

import mpmath

from oracle.formats import F, nan_bits, to_fraction

UNARY = ("exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "rsqrt")
BINARY = ("pow", "atan2")


class NearTie(Exception):
    """The exact value is so near a rounding boundary that this oracle does not decide."""


def _round(t, x, guard):
    """mpf to bits; guard: that many bits behind the last one must not look like a boundary."""
    s, m, e, bits = x._mpf_
    f = F[t]
    if m == 0:
        return f.zero(s)
    exact = bits < mpmath.mp.prec - 24  # a short mantissa is an exact result
    lsb = max(bits - 1 + e, f.emin) - f.man
    shift = lsb - e
    if exact:
        # Half way between two numbers every error decides: 7^4 is such a case in f16.
        if shift > 0 and m & ((1 << shift) - 1) == 1 << (shift - 1):
            raise NearTie
        return f.round(s, m, e)
    if 0 < shift:
        low, middle = m & ((1 << shift) - 1), 1 << (shift - 1)
        if abs(low - middle) >> max(0, shift - guard) == 0:
            raise NearTie
    m = m << 8 if shift < 3 else m
    return f.round(s, m, e - (8 if shift < 3 else 0), sticky=True)


def _mpf(t, bits):
    s, m, e = F[t].decode(bits)
    return mpmath.mpf((s, mpmath.libmp.MPZ(m), e, m.bit_length())) if m else mpmath.mpf(0)


def _mp_value(name, args):
    if name == "exp2":
        return mpmath.power(2, args[0])
    if name == "log2":
        x = args[0]
        if x > 0 and x.man == 1:
            return mpmath.mpf(x.exp)
        # log(x)/log(2) loses bits near 1; mpmath's log there is accurate to working precision
        return mpmath.log(x) / mpmath.log(2)
    if name == "rsqrt":
        return 1 / mpmath.sqrt(args[0])
    if name == "pow":
        return mpmath.power(args[0], args[1])
    return getattr(mpmath, name)(*args)


def _tiny_or_huge(f, name, args):
    """Results far outside of the format, which mpmath must not try to compute: (sign, 'inf' or 0) or None."""
    if name in ("exp", "exp2"):
        if abs(args[0]) > 4 * (1 << (f.exp + 2)):
            return (0, "inf" if args[0] > 0 else 0)
    if name in ("sinh", "cosh") and abs(args[0]) > 4 * (1 << (f.exp + 2)):
        return (int(name == "sinh" and args[0] < 0), "inf")
    if name == "pow":
        size = args[1] * mpmath.log(abs(args[0]), 2)
        if abs(size) > 4 * (1 << (f.exp + 2)):
            odd = args[1].exp == 0 and args[1].man & 1
            return (int(args[0] < 0 and odd), "inf" if size > 0 else 0)
    return None


def special(t, name, bits):
    """The result where an operand is NaN, infinite or zero, or outside of the domain; else None."""
    f = F[t]
    x = f.decode(bits[0])
    one, inf = f._pattern(Fraction(1)), f.inf_bits
    if name == "pow":
        return _pow_special(t, bits, one)
    if name == "atan2":
        return _atan2_special(t, bits)
    if x == "nan":
        return nan_bits(t)
    s, m, _ = x
    if name in ("exp", "exp2"):
        return one if m == 0 else None if m is not None else (f.zero(0) if s else inf)
    if name in ("log", "log2"):
        if m == 0:
            return inf | f.sign_bit
        return nan_bits(t) if s else inf if m is None else None
    if name in ("sin", "tan", "cos"):
        return nan_bits(t) if m is None else (one if name == "cos" else bits[0]) if m == 0 else None
    if name == "sinh":
        return bits[0] if m is None or m == 0 else None
    if name == "cosh":
        return inf if m is None else one if m == 0 else None
    if name == "tanh":
        return (one | (f.sign_bit if s else 0)) if m is None else bits[0] if m == 0 else None
    if name == "rsqrt":
        if m == 0:
            return inf | (f.sign_bit if s else 0)
        return nan_bits(t) if s else f.zero(0) if m is None else None
    raise KeyError(name)


def _pow_special(t, bits, one):
    f = F[t]
    x, y = f.decode(bits[0]), f.decode(bits[1])
    if bits[0] == one or (y != "nan" and y[1] == 0):
        return one
    if x == "nan" or y == "nan":
        return nan_bits(t)
    y_int = y[1] is not None and (y[2] >= 0 or y[1] & ((1 << -y[2]) - 1) == 0)
    y_odd = y_int and y[1] is not None and y[2] <= 0 and bool(y[1] >> -y[2] & 1)
    sign = f.sign_bit if x[0] and y_odd else 0
    if y[1] is None:
        if x[1] is not None and to_fraction(t, bits[0] & ~f.sign_bit) == 1:
            return one
        big = x[1] is None or to_fraction(t, bits[0] & ~f.sign_bit) > 1
        return f.inf_bits if big != bool(y[0]) else f.zero(0)
    if x[1] == 0:
        return (f.inf_bits if y[0] else 0) | sign
    if x[1] is None:
        return (0 if y[0] else f.inf_bits) | sign
    if x[0] and not y_int:
        return nan_bits(t)
    return None


def _atan2_special(t, bits):
    f = F[t]
    y, x = f.decode(bits[0]), f.decode(bits[1])
    if x == "nan" or y == "nan":
        return nan_bits(t)
    pi = None
    if y[1] == 0:
        if x[0]:
            pi = mpmath.pi
        else:
            return bits[0]
    elif x[1] == 0:
        pi = mpmath.pi / 2
    elif y[1] is None:
        pi = (3 * mpmath.pi / 4 if x[0] else mpmath.pi / 4) if x[1] is None else mpmath.pi / 2
    elif x[1] is None:
        if not x[0]:
            return f.zero(y[0])
        pi = mpmath.pi
    if pi is None:
        return None
    with mpmath.workprec(200):
        return _round(t, +pi, 40) | (f.sign_bit if y[0] else 0)


def evaluate(t, name, *bits):
    """Correctly rounded result; NearTie where 40 (f64: 24) more bits do not decide."""
    f = F[t]
    found = special(t, name, bits)
    if found is not None:
        return found
    with mpmath.workprec(240 if t == "f64" else 160):
        args = [_mpf(t, b) for b in bits]
        far = _tiny_or_huge(f, name, args)
        if far is not None:
            sign = f.sign_bit if far[0] else 0
            return (f.inf_bits if far[1] == "inf" else 0) | sign
        x = _mp_value(name, args)
        if name in ("sinh", "tanh", "sin", "tan", "atan2") and x == 0:
            return f.zero(0)
        return _round(t, x, 24 if t == "f64" else 36)


def power_int(t, bits, n):
    """fpowi by binary products, each rounded (f64 in f64, else in f32), as spec/semantics.md says."""
    from oracle.exact import convert, div, mul

    if n == 0:
        return F[t]._pattern(Fraction(1))
    w = "f64" if t == "f64" else "f32"
    s = bits if w == t else convert(t, w, bits)
    r, k = F[w]._pattern(Fraction(1)), abs(n)
    while k:
        if k & 1:
            r = mul(w, r, s)
        k >>= 1
        if k:
            s = mul(w, s, s)
    if n < 0:
        r = div(w, F[w]._pattern(Fraction(1)), r)
    return r if w == t else convert(w, t, r)


def exact_power_int(t, bits, n):
    """x^n rounded once, for a bound on fpowi; None where x is not finite or not zero to a negative power."""
    x = F[t].decode(bits)
    if x == "nan" or x[1] is None or (x[1] == 0 and n < 0):
        return None
    return to_fraction(t, bits) ** n
