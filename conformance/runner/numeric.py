"""Element types for the judge: bits of an array as values and as places on the number line."""

import numpy as np

# name: (memory bits, exponent bits, mantissa bits, bias, signed, first NaN magnitude or None)
FLOATS = {
    "f16": (16, 5, 10, 15, True, 0x7C01),
    "bf16": (16, 8, 7, 127, True, 0x7F81),
    "f32": (32, 8, 23, 127, True, 0x7F800001),
    "tf32": (32, 8, 23, 127, True, 0x7F800001),
    "f64": (64, 11, 52, 1023, True, 0x7FF0000000000001),
    "f8E4M3FN": (8, 4, 3, 7, True, 0x7F),
    "f8E5M2": (8, 5, 2, 15, True, 0x7D),
    "f8E8M0FNU": (8, 8, 0, 127, False, 0xFF),
    "f4E2M1FN": (4, 2, 1, 1, True, None),
    "fnv8E5M3FNU": (8, 5, 3, 15, False, 0xFF),
}
INTS = {"i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
WORDS = {8: np.dtype("<u1"), 16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}


def memory_bits(t):
    return FLOATS[t][0] if t in FLOATS else INTS[t]


def bits_of(t, data, count):
    """The first `count` elements of little-endian memory, one unsigned number each."""
    n = memory_bits(t)
    if n == 4:
        a = np.frombuffer(data, np.uint8)
        return np.stack([a & 15, a >> 4], 1).reshape(-1)[:count].astype(np.uint64)
    return np.frombuffer(data, WORDS[n], count).astype(np.uint64)


def is_nan(t, bits):
    if t not in FLOATS or FLOATS[t][5] is None:
        return np.zeros(len(bits), bool)
    n, _, _, _, signed, first = FLOATS[t]
    return (bits & np.uint64((1 << (n - 1)) - 1 if signed else (1 << n) - 1)) >= np.uint64(first)


def place(t, bits):
    """Neighbouring numbers have neighbouring places; the sign is apart: (negative, place of the magnitude)."""
    n, _, _, _, signed, _ = FLOATS[t]
    if not signed:
        return np.zeros(len(bits), bool), bits.astype(np.int64)
    top = np.uint64(1 << (n - 1))
    mag = (bits & (top - np.uint64(1))).astype(np.int64)
    return (bits & top) != 0, mag >> 13 if t == "tf32" else mag


def values(t, bits):
    """As f64; integers by their signed reading. Exact but for i64 beyond 2^53."""
    if t == "i1":
        return bits.astype(np.float64)
    if t in INTS:
        return bits.astype(WORDS[INTS[t]]).view(f"<i{INTS[t] // 8}").astype(np.float64)
    n, exp, man, bias, signed, _ = FLOATS[t]
    if t == "f64":
        return bits.view(np.float64)
    if t in ("f32", "tf32"):
        return bits.astype("<u4").view("<f4").astype(np.float64)
    sign = np.where(bits >> np.uint64(n - 1) & np.uint64(1), -1.0, 1.0) if signed else 1.0
    mag = (bits & np.uint64((1 << (exp + man)) - 1)).astype(np.int64)
    field, frac = mag >> man, mag & ((1 << man) - 1)
    if man == 0:
        out = np.ldexp(1.0, (field - bias).astype(np.int32))
    else:
        out = np.where(
            field == 0,
            np.ldexp(frac.astype(np.float64), 1 - bias - man),
            np.ldexp((frac + (1 << man)).astype(np.float64), (field - bias - man).astype(np.int32)),
        )
    out = out * sign
    if t in ("f16", "bf16", "f8E5M2"):
        out = np.where(mag == ((1 << exp) - 1) << man, sign * np.inf, out)
    return np.where(is_nan(t, bits), np.nan, out)
