"""Matrix products: exact for integers, the chain of fused multiply-adds of spec/ops.md for floats, and the bounds of bounds.md, section 7."""

from fractions import Fraction

from oracle.exact import convert
from oracle.formats import F, nan_bits, to_fraction


def fma_mixed(w, x, y, z):
    """round_w(x * y + z) for decoded x, y and bits z of type w."""
    f = F[w]
    d = f.decode(z)
    if x == "nan" or y == "nan" or d == "nan":
        return nan_bits(w)
    s = x[0] ^ y[0]
    if x[1] is None or y[1] is None:
        if x[1] == 0 or y[1] == 0 or (d[1] is None and d[0] != s):
            return nan_bits(w)
        return f.infinity(s)
    if d[1] is None:
        return z
    m, e = x[1] * y[1], x[2] + y[2]
    low = min(e, d[2])
    total = ((-m if s else m) << (e - low)) + ((-d[1] if d[0] else d[1]) << (d[2] - low))
    if total == 0:
        return f.zero(s) if m == 0 and d[1] == 0 and s == d[0] else 0
    return f.round(int(total < 0), abs(total), low)


def chain(t, acc_t, a, b, c, m, n, k, scale=None):
    """mmaf of row-major bits; scale = (type, lhs bits, rhs bits, V) for mmaf_scaled."""
    w = "f64" if acc_t == "f64" else "f32"
    A, B = [F[t].decode(x) for x in a], [F[t].decode(x) for x in b]
    if scale:
        st, sa, sb, v = scale
        ks = k // v
        A = [_scaled(x, F[st].decode(sa[i // k * ks + i % k // v])) for i, x in enumerate(A)]
        B = [_scaled(x, F[st].decode(sb[i // n // v * n + i % n])) for i, x in enumerate(B)]
    out = []
    for i in range(m):
        for j in range(n):
            s = c[i * n + j] if acc_t == w else convert(acc_t, w, c[i * n + j])
            for q in range(k):
                s = fma_mixed(w, A[i * k + q], B[q * n + j], s)
            out.append(s if acc_t == w else convert(w, acc_t, s))
    return out


def _scaled(x, s):
    if x == "nan" or s == "nan":
        return "nan"
    if x[1] is None:
        return (x[0] ^ s[0], None, 0)
    return (x[0] ^ s[0], x[1] * s[1], x[2] + s[2])


def magnitudes(t, acc_t, a, b, c, m, n, k, scale=None):
    """sum |a b| + |c| of each element, as floats (a hair too large does no harm)."""
    A, B, C = ([abs(float(to_fraction(x, y))) for y in z] for x, z in ((t, a), (t, b), (acc_t, c)))
    if scale:
        st, sa, sb, v = scale
        ks = k // v
        A = [x * float(to_fraction(st, sa[i // k * ks + i % k // v])) for i, x in enumerate(A)]
        B = [x * float(to_fraction(st, sb[i // n // v * n + i % n])) for i, x in enumerate(B)]
    return [
        (sum(A[i * k + q] * B[q * n + j] for q in range(k)) + C[i * n + j]) * (1 + 2.0**-30)
        for i in range(m)
        for j in range(n)
    ]


def allowance(t, acc_t, k, fast=False):
    """Factor on the magnitude (bounds.md, section 7)."""
    if acc_t == "f64":
        return float((k + 4) * Fraction(1, 1 << 52))
    if acc_t == "f16":
        return float((k + 4) * Fraction(1, 1 << 10))
    return float((k + 4) * Fraction(1, 1 << (12 if fast else 22)))
