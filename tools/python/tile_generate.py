#!/usr/bin/env python3
"""Makes the arrays that tilevm's generators make, bit for bit.  Needs numpy alone.

  tile_generate.py 'f16[512,512]=normal(seed=1)' a.npy    writes the array
  tile_generate.py --digest 'bf16[1000]=uniform(seed=3)'  prints count and 64-bit FNV-1a hash of its stored elements

The formulas are those of spec/launch.md, "Generators".  As a module: array("f32[8]=arange(1, step=2)")."""
import math
import re
import sys

import numpy as np

# element type: bytes an element takes in a .npy file, numpy type there
INTS = {"i1": "u1", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}
# exponent bits, mantissa bits, bias, sign, bits of the largest finite number, bits of NaN
FLOATS = {"f16": (5, 10, 15, True, 0x7BFF, 0x7FFF), "bf16": (8, 7, 127, True, 0x7F7F, 0x7FFF),
          "f32": (8, 23, 127, True, 0x7F7FFFFF, 0x7FFFFFFF), "tf32": (8, 10, 127, True, 0x3FBFF, 0x3FFFF),
          "f64": (11, 52, 1023, True, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000000000),
          "f8E4M3FN": (4, 3, 7, True, 0x7E, 0x7F), "f8E5M2": (5, 2, 15, True, 0x7B, 0x7F),
          "f8E8M0FNU": (8, 0, 127, False, 0xFE, 0xFF), "f4E2M1FN": (2, 1, 1, True, 0x7, None),
          "fnv8E5M3FNU": (5, 3, 15, False, 0xFE, 0xFF)}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "tf32": 0x7F800000, "f64": 0x7FF0000000000000, "f8E5M2": 0x7C}
WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64,
         "f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8, "f4E2M1FN": 4, "fnv8E5M3FNU": 8}
PARAMETERS = {"zeros": {}, "ones": {}, "full": {"value": None}, "arange": {"start": "0", "step": "1"},
              "uniform": {"seed": "1", "lo": "0", "hi": "1"}, "normal": {"seed": "1", "mean": "0", "std": "1"},
              "randint": {"seed": "1", "lo": "0", "hi": None}, "bits": {"seed": "1"}, "eye": {}}
MASK = (1 << 64) - 1


def storage_type(t):
    """numpy type of the stored bits: unsigned, as wide as an element of a .npy file."""
    return np.dtype({1: "u1", 4: "u1", 8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}[WIDTH[t]])


def random_bits(seed, count):
    """The first `count` outputs of SplitMix64 started at `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype="u8") * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def multiply_high(a, b):
    """Upper 64 bits of the products of the array a with the number b."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    with np.errstate(over="ignore"):
        b = np.uint64(b)
        a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
        middle = a1 * b0 + ((a0 * b0) >> half)
        other = a0 * b1 + (middle & low)
        return a1 * b1 + (middle >> half) + (other >> half)


def plain_log(x):
    m, e = np.frexp(x)
    small = m < 0.70710678118654752440
    m, e = np.where(small, m * 2.0, m), np.where(small, e - 1, e)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    total = np.zeros_like(x)
    for k in range(23, 0, -2):
        total = total * z + 1.0 / k
    return e * 0.69314718055994530942 + 2.0 * s * total


# M. J. Wichura, Algorithm AS 241 (1988), PPND16: numerator and denominator, lowest power first.
CENTRAL = ((3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
            4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
           (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
            2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3))
MIDDLE = ((1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
           1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
          (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
           1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9))
FAR = ((6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
        2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
       (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15))


def polynomial(c, x):
    total = np.full_like(x, c[7])
    for i in range(6, -1, -1):
        total = total * x + c[i]
    return total


def normal_quantile(p):
    q = p - 0.5
    with np.errstate(all="ignore"):
        r = 0.180625 - q * q
        central = q * polynomial(CENTRAL[0], r) / polynomial(CENTRAL[1], r)
        r = np.sqrt(-plain_log(np.where(q < 0, p, 1.0 - p)))
        near = polynomial(MIDDLE[0], r - 1.6) / polynomial(MIDDLE[1], r - 1.6)
        far = polynomial(FAR[0], r - 5.0) / polynomial(FAR[1], r - 5.0)
    tail = np.where(r <= 5.0, near, far)
    return np.where(np.abs(q) <= 0.425, central, np.where(q < 0, -tail, tail))


def value_of(t, bits):
    """Value of one finite pattern of a float type."""
    e_bits, m_bits, bias, _, _, _ = FLOATS[t]
    m, e = bits & ((1 << m_bits) - 1), bits >> m_bits
    if m_bits and e == 0:
        return math.ldexp(m, 1 - bias - m_bits)
    return math.ldexp((1 << m_bits) + m, e - bias - m_bits)


def finite_bits(t, x):
    """Stored bits of the finite values of type t nearest to the doubles x, ties to even."""
    e_bits, m_bits, bias, signed, largest, _ = FLOATS[t]
    x = np.asarray(x, "f8")
    if t == "f8E8M0FNU":
        _, e = np.frexp(np.clip(x, 2.0**-127, 2.0**127))
        return (e + 126).astype("u8")
    top = value_of(t, largest)
    x = np.clip(x, -top, top)
    if not signed:
        x = np.where(x > 0, x, 0.0)
    if t == "f64":
        return x.view("u8")
    size = np.abs(x)
    _, e = np.frexp(size)
    e = np.where(size == 0, 1 - bias, np.maximum(e - 1, 1 - bias))
    # In units of the last place; a carry into the next power of two moves into the exponent field by itself.
    units = np.rint(np.ldexp(size, m_bits - e)).astype("u8")
    bits = units + ((e - (1 - bias)).astype("u8") << np.uint64(m_bits))
    bits = np.minimum(bits, np.uint64(largest))
    if signed:
        bits |= np.signbit(x).astype("u8") << np.uint64(e_bits + m_bits)
    return bits << np.uint64(13) if t == "tf32" else bits


def scalar_bits(t, text):
    """Stored bits of the value of full()."""
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if t in INTS:
        return {"true": 1, "false": 0}.get(text, None) if text in ("true", "false") else int(text) & ((1 << WIDTH[t]) - 1)
    x = float(text)
    if math.isnan(x):
        return 0x7FFFFFFF if t == "tf32" else FLOATS[t][5]
    if math.isinf(x):
        return INFINITY[t] | (int(x < 0) << WIDTH[t] - 1)
    return int(finite_bits(t, np.array([x]))[0])


def low_bits(t, z):
    if t == "tf32":
        return z & np.uint64(0xFFFFE000)
    return z & np.uint64((1 << WIDTH[t]) - 1)


def parse(text):
    """(element type, shape, strides or None, generator, {parameter: text})"""
    m = re.fullmatch(r"\s*(\w+)\[([^]]*)\](?::strides\(([^)]*)\))?=\s*(\w+)\s*(?:\((.*)\))?\s*", text)
    if not m:
        raise ValueError(f"{text!r} is not TYPE[SHAPE]=GENERATOR")
    t, shape, strides, name, inside = m.groups()
    if t not in WIDTH or name not in PARAMETERS:
        raise ValueError(f"unknown element type or generator in {text!r}")

    def numbers(s):
        return tuple(int(x) for x in s.split(",")) if s.strip() else ()
    given, parameters = {}, list(PARAMETERS[name])
    for i, part in enumerate(x for x in (inside or "").split(",") if x.strip()):
        key, _, value = part.rpartition("=")
        given[key.strip() or parameters[i]] = value.strip()
    if set(given) - set(parameters):
        raise ValueError(f"unknown parameter in {text!r}")
    values = {k: given.get(k, v) for k, v in PARAMETERS[name].items()}
    if None in values.values():
        raise ValueError(f"a parameter is missing in {text!r}")
    return t, numbers(shape), numbers(strides) if strides is not None else None, name, values


def elements(text):
    """Stored bits of all elements, row-major, as uint64; and the parsed form."""
    t, shape, strides, name, given = parse(text)
    n = math.prod(shape)
    seed = int(given.get("seed", "1"), 0)
    i = np.arange(n, dtype="u8")
    one = 1 if t in INTS else int(finite_bits(t, np.array([1.0]))[0])
    with np.errstate(over="ignore"):
        if name == "zeros":
            bits = np.zeros(n, "u8")
        elif name == "ones":
            bits = np.full(n, one, "u8")
        elif name == "full":
            bits = np.full(n, scalar_bits(t, given["value"]), "u8")
        elif name == "eye":
            columns = np.uint64(max(shape[1], 1))
            bits = np.where(i // columns == i % columns, np.uint64(one), np.uint64(0))
        elif name == "arange" and t in INTS:
            bits = low_bits(t, np.uint64(int(given["start"]) & MASK) + i * np.uint64(int(given["step"]) & MASK))
        elif name == "arange":
            bits = finite_bits(t, float(given["start"]) + i.astype("f8") * float(given["step"]))
        elif name == "uniform":
            lo, hi = float(given["lo"]), float(given["hi"])
            u = (random_bits(seed, n) >> np.uint64(11)).astype("f8") * 2.0**-53
            bits = finite_bits(t, lo + u * (hi - lo))
        elif name == "normal":
            p = ((random_bits(seed, n) >> np.uint64(12)).astype("f8") + 0.5) * 2.0**-52
            bits = finite_bits(t, float(given["mean"]) + float(given["std"]) * normal_quantile(p))
        elif name == "randint":
            lo, hi = int(given["lo"]), int(given["hi"])
            z = np.uint64(lo & MASK) + multiply_high(random_bits(seed, n), (hi - lo) & MASK)
            bits = low_bits(t, z) if t in INTS else finite_bits(t, z.view("i8").astype("f8"))
        else:
            bits = low_bits(t, random_bits(seed, n))
    return bits, t, shape, strides


def array(text):
    """The array as numpy holds it in a .npy file: numbers where numpy has the type, else unsigned bits; f4 one byte an element."""
    bits, t, shape, _ = elements(text)
    raw = bits.astype(storage_type(t)).reshape(shape)
    known = {**INTS, "i1": "?", "f16": "<f2", "f32": "<f4", "tf32": "<f4", "f64": "<f8"}
    return raw.view(known[t]) if t in known else raw


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--digest":
        bits, t, _, _ = elements(arguments[1])
        digest = 0xCBF29CE484222325
        for byte in bits.astype(storage_type(t)).tobytes():
            digest = (digest ^ byte) * 0x100000001B3 & MASK
        print(bits.size, f"0x{digest:016x}")
    elif len(arguments) == 2 and not arguments[0].startswith("-"):
        np.save(arguments[1], array(arguments[0]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
