"""Numbers of the element types, and .npy files, for filetest.py. Standard library only."""
import ast
import math
import re
import struct
from fractions import Fraction

# name: (exponent bits, mantissa bits, bias, has sign, has infinity). Bits are those of the element, tf32 as an f32.
FLOATS = {
    "f16": (5, 10, 15, True, True),
    "bf16": (8, 7, 127, True, True),
    "f32": (8, 23, 127, True, True),
    "tf32": (8, 10, 127, True, True),
    "f64": (11, 52, 1023, True, True),
    "f8E4M3FN": (4, 3, 7, True, False),
    "f8E5M2": (5, 2, 15, True, True),
    "f4E2M1FN": (2, 1, 1, True, False),
    "fnv8E5M3FNU": (5, 3, 15, False, False),
}
INTS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
# Bytes of an element in a file, and the type letter of the file.
NPY = {"i1": (1, "|b1"), "i8": (1, "|i1"), "i16": (2, "<i2"), "i32": (4, "<i4"), "i64": (8, "<i8"), "f16": (2, "<f2"),
       "bf16": (2, "<V2"), "f32": (4, "<f4"), "tf32": (4, "<f4"), "f64": (8, "<f8"), "f8E4M3FN": (1, "|V1"), "f8E5M2": (1, "|V1"),
       "f8E8M0FNU": (1, "|V1"), "f4E2M1FN": (1, "|V1"), "fnv8E5M3FNU": (1, "|V1")}


class ValueError_(Exception):
    """A value or file that cannot be used; the text says why."""


def pad(kind):
    return 13 if kind == "tf32" else 0


def decode(kind, bits):
    """Value of an element's bits: an int, or a float that may be nan or infinite."""
    if kind in INTS:
        width = INTS[kind]
        return bits & 1 if kind == "i1" else bits - (1 << width) if bits >> (width - 1) & 1 else bits
    if kind == "f8E8M0FNU":
        return math.nan if bits == 0xFF else 2.0 ** (bits - 127)
    exponent_bits, mantissa_bits, bias, has_sign, has_inf = FLOATS[kind]
    bits >>= pad(kind)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    sign = -1.0 if has_sign and bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    top = exponent == (1 << exponent_bits) - 1
    if top and has_inf:
        return sign * math.inf if mantissa == 0 else math.nan
    if top and kind in ("f8E4M3FN", "fnv8E5M3FNU") and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


def encode(kind, text):
    """Bits of a value as a test file writes it: decimal, nan, inf, true, false, or 0x and the bits."""
    text = text.strip()
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        return int(text, 16)
    if kind in INTS:
        words = {"true": 1, "false": 0}
        try:
            return words[text] if text in words else int(text) & ((1 << INTS[kind]) - 1)
        except ValueError:
            raise ValueError_(f"'{text}' is no {kind}") from None
    if kind not in FLOATS:
        raise ValueError_(f"values of {kind} are written as 0x and their bits")
    exponent_bits, mantissa_bits, bias, has_sign, has_inf = FLOATS[kind]
    sign = 1 << (exponent_bits + mantissa_bits) if text.startswith("-") else 0
    top = ((1 << exponent_bits) - 1) << mantissa_bits
    body = text.lstrip("+-")
    if sign and not has_sign:
        raise ValueError_(f"{kind} has no sign, found '{text}'")
    if body == "nan":
        quiet = (1 << mantissa_bits) - 1 if not has_inf else 1 << (mantissa_bits - 1)
        return (sign | top | quiet) << pad(kind)
    if body == "inf":
        if not has_inf:
            raise ValueError_(f"{kind} has no infinity")
        return (sign | top) << pad(kind)
    try:
        x = Fraction(body)
    except ValueError:
        raise ValueError_(f"'{text}' is no {kind}") from None
    if x == 0:
        return sign << pad(kind)
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > x:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    units = round(x / Fraction(2) ** (exponent - mantissa_bits))  # to nearest even
    magnitude = units + ((exponent + bias - 1) << mantissa_bits)
    if magnitude >= top + (0 if has_inf else 1 << mantissa_bits):
        raise ValueError_(f"'{text}' is too large for {kind}")
    return (sign | magnitude) << pad(kind)


def values(kind, text, count):
    """The bits of `count` elements from a list; one value alone fills all."""
    if text.strip() == "iota":
        return [encode(kind, f"{i}" if kind in INTS else f"{i}.0") for i in range(count)]
    items = [item for item in text.replace("[", " ").replace("]", " ").split(",")]
    bits = [encode(kind, item) for item in items]
    if len(bits) == 1:
        bits *= count
    if len(bits) != count:
        raise ValueError_(f"{len(bits)} values for {count} elements")
    return bits


def show(kind, bits):
    return f"{decode(kind, bits)!r} (0x{bits:X})"


def spacing(kind, bits):
    """Distance from a finite value to the next larger magnitude."""
    _, mantissa_bits, bias, _, _ = FLOATS[kind]
    x = abs(decode(kind, bits))
    exponent = max(math.frexp(x)[1] - 1, 1 - bias) if x else 1 - bias
    return math.ldexp(1.0, exponent - mantissa_bits)


def same(kind, found, expected, rule, allowed):
    """Compares two elements under a rule: bits, exact, ulp, rel or abs."""
    if found == expected:
        return True
    if rule == "bits" or kind in INTS:
        return False
    a, b = decode(kind, found), decode(kind, expected)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b) or rule == "exact":
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    bound = allowed * (spacing(kind, expected) if rule == "ulp" else abs(b) if rule == "rel" else 1.0)
    return abs(Fraction(a) - Fraction(b)) <= bound


def write_npy(path, kind, shape, bits):
    size, letters = NPY[kind]
    dims = "".join(f"{d}, " for d in shape) if len(shape) == 1 else ", ".join(str(d) for d in shape)
    header = f"{{'descr': '{letters}', 'fortran_order': False, 'shape': ({dims.rstrip() if len(shape) == 1 else dims}), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    data = b"".join(b.to_bytes(size, "little") for b in bits)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path, kind):
    """The shape and the bits of a file's elements."""
    with open(path, "rb") as f:
        raw = f.read()
    if raw[:6] != b"\x93NUMPY":
        raise ValueError_("the output is no .npy file")
    length, start = (struct.unpack("<H", raw[8:10])[0], 10) if raw[6] == 1 else (struct.unpack("<I", raw[8:12])[0], 12)
    head = ast.literal_eval(raw[start:start + length].decode("latin1"))
    size = NPY[kind][0]
    if int(re.sub(r"\D", "", head["descr"])) != size:
        raise ValueError_(f"the output has elements of type {head['descr']}, expected {kind}")
    if head["fortran_order"] and len(head["shape"]) > 1:
        raise ValueError_("the output is in Fortran order")
    data = raw[start + length:]
    return tuple(head["shape"]), [int.from_bytes(data[i:i + size], "little") for i in range(0, len(data), size)]
