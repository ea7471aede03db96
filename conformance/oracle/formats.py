"""Element types as numbers: decoding bits to exact values and rounding exact values to bits, by spec/types.md and spec/semantics.md."""

from fractions import Fraction

MODES = ("nearest_even", "zero", "negative_inf", "positive_inf", "nearest_away")


class Format:
    """One float format. Bits are held as in memory, except that tf32 is the 32-bit pattern that memory keeps."""

    def __init__(
        self, name, exp, man, bias, memory_bits, signed=True, inf=False, nan=None, saturates=True, top=None, shift=0
    ):
        self.name, self.exp, self.man, self.bias, self.signed, self.inf, self.saturates = (
            name,
            exp,
            man,
            bias,
            signed,
            inf,
            saturates,
        )
        self.memory_bits, self.shift, self.nan = memory_bits, shift, nan
        self.width = exp + man + (1 if signed else 0)  # value bits, without those below `shift`
        self.precision = man + 1
        self.emin = 1 - bias if man else -bias  # exponent of the smallest normal number
        self.has_zero = man > 0
        self.top = top if top is not None else ((2 << man) - 1) * Fraction(2) ** ((1 << exp) - 2 - bias - man)
        self.min_sub = Fraction(2) ** (self.emin - man)
        self.sign_bit = 1 << (exp + man + shift) if signed else 0
        self.inf_bits = ((1 << exp) - 1) << (man + shift) if inf else None
        self.top_bits = self._pattern(self.top)
        self.top_m, self.top_e = self.top.numerator, -(self.top.denominator.bit_length() - 1)

    def _pattern(self, q):
        """Bits of a non-negative representable number."""
        if q == 0:
            return 0
        m, e = q.numerator, -(q.denominator.bit_length() - 1)
        m_bits = m.bit_length()
        exponent = max(m_bits - 1 + e, self.emin)
        lsb = exponent - self.man
        keep = m << (e - lsb) if e >= lsb else m >> (lsb - e)
        return self.assemble(keep, lsb)

    def assemble(self, keep, lsb):
        """keep * 2^lsb, already rounded to the format, as bits without sign."""
        if not self.man:
            return lsb + self.bias
        if keep < 1 << self.man:  # subnormal
            return keep << self.shift
        return (((lsb + self.man + self.bias) << self.man) + keep - (1 << self.man)) << self.shift

    def is_nan(self, bits):
        mag = bits & ~self.sign_bit if self.signed else bits
        if self.inf:
            return mag > self.inf_bits
        return self.nan is not None and mag >= self.nan_from

    @property
    def nan_from(self):
        return {"f8E4M3FN": 0x7F, "f8E8M0FNU": 0xFF, "fnv8E5M3FNU": 0xFF}[self.name]

    def decode(self, bits):
        """'nan', or (sign, m, e) for (-1)^sign * m * 2^e, or (sign, None, 0) for an infinity."""
        sign = 1 if self.signed and bits & self.sign_bit else 0
        mag = bits & ~self.sign_bit if self.signed else bits
        if self.inf and mag >= self.inf_bits:
            return (sign, None, 0) if mag == self.inf_bits else "nan"
        if not self.inf and self.nan is not None and mag >= self.nan_from:
            return "nan"
        if not self.man:
            return (0, 1, mag - self.bias)
        # tf32 has the value of all its 32 bits
        man = self.man + self.shift
        field, frac = mag >> man, mag & ((1 << man) - 1)
        if field == 0:
            return (sign, frac, 1 - self.bias - man)
        return (sign, frac | 1 << man, field - self.bias - man)

    def infinity(self, sign):
        """An overflow that rounds outward, or an infinite operand."""
        bits = self.inf_bits if self.inf and not self.saturates else self.top_bits
        return bits | (self.sign_bit if sign else 0)

    def zero(self, sign):
        return self.sign_bit if sign else 0

    def round(self, sign, m, e, mode="nearest_even", sticky=False):
        """Bits of the number whose magnitude is m * 2^e, or between that and (m + 1) * 2^e where sticky."""
        s = self.sign_bit if sign and self.signed else 0
        if m == 0 and not sticky:
            return s
        up_mode = (mode == "positive_inf" and not sign) or (mode == "negative_inf" and sign)
        lsb = max(m.bit_length() - 1 + e, self.emin) - self.man
        shift = lsb - e
        if shift <= 0:
            assert not sticky, "not enough bits to round"
            keep, half, rest = m << -shift, 0, False
        else:
            keep, low = m >> shift, m & ((1 << shift) - 1)
            middle = 1 << (shift - 1)
            half = (low > middle or (low == middle and sticky)) - (low < middle)
            rest = low != 0 or sticky
            assert not sticky or shift >= 2, "not enough bits to round"
            if mode in ("nearest_even", "approx", "full"):
                keep += half > 0 or (half == 0 and keep & 1)
            elif mode == "nearest_away":
                keep += half >= 0
            elif up_mode and rest:
                keep += 1
            if keep.bit_length() > self.precision:
                keep >>= 1
                lsb += 1
        if not self.man and keep == 0:  # f8E8M0FNU has no zero
            return 0
        # The top exponent is at most 0, so that this is exact.
        if (
            lsb + keep.bit_length() > 0
            and (keep << (lsb - self.top_e) if lsb >= self.top_e else keep >> (self.top_e - lsb)) > self.top_m
        ):
            if self.saturates or mode == "zero" or (mode in ("positive_inf", "negative_inf") and not up_mode):
                return self.top_bits | s
            return self.inf_bits | s
        return self.assemble(keep, lsb) | s


F = {
    f.name: f
    for f in (
        Format("f16", 5, 10, 15, 16, inf=True, nan=0x7FFF, saturates=False),
        Format("bf16", 8, 7, 127, 16, inf=True, nan=0x7FFF, saturates=False),
        Format("f32", 8, 23, 127, 32, inf=True, nan=0x7FFFFFFF, saturates=False),
        Format("f64", 11, 52, 1023, 64, inf=True, nan=0x7FF8000000000000, saturates=False),
        Format("tf32", 8, 10, 127, 32, inf=True, nan=0x7FFFFFFF, saturates=False, shift=13),
        Format("f8E4M3FN", 4, 3, 7, 8, nan=0x7F, top=Fraction(448)),
        Format("f8E5M2", 5, 2, 15, 8, inf=True, nan=0x7F, top=Fraction(57344)),
        Format("f8E8M0FNU", 8, 0, 127, 8, signed=False, nan=0xFF, top=Fraction(2) ** 127),
        Format("f4E2M1FN", 2, 1, 1, 4, nan=None, top=Fraction(6)),
        Format("fnv8E5M3FNU", 5, 3, 15, 8, signed=False, nan=0xFF, top=Fraction(114688)),
    )
}
INTS = {"i1": 1, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
BASE = ("f16", "bf16", "f32", "f64")
INT = ("i1", "i8", "i16", "i32", "i64")


def memory_bits(t):
    """Bits of an element in a buffer; f4E2M1FN is dense."""
    return F[t].memory_bits if t in F else max(8, INTS[t]) if t != "i4" else None


def value_bits(t):
    """Bits that bitcast and pack count (tf32: 19 for bitcast)."""
    return 19 if t == "tf32" else F[t].memory_bits if t in F else INTS[t]


def nan_bits(t):
    """The canonical NaN; a format without NaN gives its largest number."""
    return F[t].nan if F[t].nan is not None else F[t].top_bits


def signed(x, n):
    return x - (1 << n) if x >> (n - 1) & 1 else x


def to_fraction(t, bits):
    """Exact value of a finite number."""
    s, m, e = F[t].decode(bits)
    q = Fraction(m) * Fraction(2) ** e
    return -q if s else q


def from_fraction(t, q, mode="nearest_even", sign=None):
    """An exact rational rounded to type t; sign matters for zero only."""
    f = F[t]
    s = sign if sign is not None and q == 0 else int(q < 0)
    n, d = abs(q.numerator), q.denominator
    if n == 0:
        return f.zero(s)
    if d & (d - 1) == 0:
        return f.round(s, n, -(d.bit_length() - 1), mode)
    k = max(0, f.precision + 4 - (n.bit_length() - d.bit_length())) + max(0, 0)
    # at least precision + 3 bits, and below the last bit of subnormal numbers
    k = max(k, f.man - f.emin + 3) if n.bit_length() - d.bit_length() < f.emin + 2 else k
    m, rest = divmod(n << k, d)
    return f.round(s, m, -k, mode, rest != 0)


def from_float(t, x, mode="nearest_even"):
    """A Python float rounded to type t."""
    import math

    if x != x:
        return nan_bits(t)
    if math.isinf(x):
        return F[t].infinity(x < 0)
    return from_fraction(t, Fraction(x), mode, sign=int(math.copysign(1, x) < 0))


def ulp(t, bits):
    """Spacing at a number: the distance to the next larger magnitude of its binade."""
    s, m, e = F[t].decode(bits)
    if m == 0:
        return F[t].min_sub
    return Fraction(2) ** (max(m.bit_length() - 1 + e, F[t].emin) - F[t].man)
