#!/usr/bin/env python3
"""The elementary functions, roots and quotients of the CPU machine against mpmath: f32 and f64, all binades, edges and hard arguments.

f32: NumPy's f64 is the judge (its error is below 2^-25 units in the last place of f32); where it finds more than --recheck units, and for some thousand
samples of each function, mpmath decides. With --step 1 every f32 is an argument. f64: mpmath with 200 bits. `divf` and `sqrt` are compared bit for bit with
exact integer arithmetic, in all rounding modes.

The error is the distance to the exact value in units of the last place of that value (of the smallest normal number below it); infinity counts as the
number after the largest. Bounds: 0.51 units in f32, 1 in f64; exit status 1 where they do not hold.

  sample.py --tilevm build/tilevm                      everything
  sample.py --tilevm build/tilevm exp/f64 pow/f32      these only
  sample.py --write tests/functions/hard_cases.txt     no samples, but the cases of tests/unit/elementwise_hard_test.cpp

Needs NumPy and mpmath."""
import argparse
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

import mpmath
import numpy as np
from mpmath import mp, mpf

mp.prec = 200
INF = float("inf")


class Format:
    def __init__(self, name, numpy, digits, least, most):
        self.name, self.numpy, self.digits, self.least, self.most = name, numpy, digits, least, most  # exponents of 0x1.0pN
        self.bits = 32 if name == "f32" else 64
        self.uint = np.uint32 if name == "f32" else np.uint64
        self.sign = 1 << (self.bits - 1)
        self.infinity = ((1 << (self.bits - digits)) - 1) << (digits - 1)
        self.one = (self.infinity >> digits) << (digits - 1)

    def value(self, bits):
        return struct.unpack("<f" if self.bits == 32 else "<d", struct.pack("<I" if self.bits == 32 else "<Q", bits))[0]

    def of(self, value):
        """Bits of the nearest number."""
        return int(np.array(value, self.numpy).view(self.uint))

    def unit(self, exact):
        """The last place of an exact value, as its exponent of two."""
        if exact == 0:
            return self.least - self.digits + 1
        exponent = int(mpmath.frexp(exact)[1]) - 1
        return min(max(exponent, self.least), self.most) - self.digits + 1

    def nearest(self, exact):
        """The nearest number to an mpf, ties to even, as an mpf (2^(most + 1) stands for infinity), and the rest in units."""
        e = self.unit(exact)
        scaled = mpmath.ldexp(exact, -e)
        whole = mpmath.nint(scaled)
        return mpmath.ldexp(whole, e), scaled - whole


F32 = Format("f32", np.float32, 24, -126, 127)
F64 = Format("f64", np.float64, 53, -1022, 1023)


# --- functions ----------------------------------------------------------------------------------------------------------------------------------------

def exact_rsqrt(x):
    return 1 / mpmath.sqrt(x)


def exact_exp2(x):
    whole = mpmath.floor(x)
    return mpmath.ldexp(mpmath.exp((x - whole) * mpmath.log(2)), int(whole))


def exact_pow(x, y):
    """Finite x != 0, finite y; a whole y where x is negative. Where the power lies beyond all formats, a number that does so too."""
    magnitude = abs(x)
    if magnitude == 1:
        log = mpf(0)
    else:
        with mp.workprec(320):
            log = y * mpmath.log(magnitude)
            if abs(log) > 3000:
                log = mpf(3000) * mpmath.sign(log)
            result = mpmath.exp(log)
    result = mpf(1) if magnitude == 1 else result
    return -result if x < 0 and int(y) % 2 else result


UNARY = {
    "exp": (mpmath.exp, np.exp), "exp2": (exact_exp2, np.exp2), "log": (mpmath.log, np.log), "log2": (lambda x: mpmath.log(x, 2), np.log2),
    "rsqrt": (exact_rsqrt, lambda x: 1 / np.sqrt(x)), "sin": (mpmath.sin, np.sin), "cos": (mpmath.cos, np.cos), "tan": (mpmath.tan, np.tan),
    "sinh": (mpmath.sinh, np.sinh), "cosh": (mpmath.cosh, np.cosh), "tanh": (mpmath.tanh, np.tanh),
}
BINARY = {"pow": (exact_pow, np.power), "atan2": (mpmath.atan2, np.arctan2)}
POSITIVE = {"log", "log2", "rsqrt"}


def in_domain(name, x, y=None):
    """Finite arguments where the function has a finite value other than 0 by definition; the rest is for the tests of special values."""
    if not np.isfinite(x) or (y is not None and not np.isfinite(y)):
        return False
    if name in POSITIVE:
        return x > 0
    if name == "pow":
        return x != 0 and (x > 0 or y == np.floor(y))
    return name != "atan2" or x != 0


def exact_value(name, x, y=None):
    """As an mpf; beyond the range of every format some number that is so too, so that nothing of 2^60 digits is computed."""
    if y is not None:
        return BINARY[name][0](mpf(x), mpf(y))
    if name in ("exp", "exp2", "sinh", "cosh") and abs(x) > 3000:
        x = 3000.0 if x > 0 else -3000.0
    if name == "tanh" and abs(x) > 300:
        x = 300.0 if x > 0 else -300.0
    return UNARY[name][0](mpf(x))


# --- arguments ----------------------------------------------------------------------------------------------------------------------------------------

def near_quarter_turns(f):
    """Numbers of the format that come nearest to multiples of pi/2: for each exponent e, denominators q of the convergents of 2^e / (pi/2); q * 2^e is then
    near a multiple. The best known one of f64 is 6381956970095103 * 2^797 (Kahan; Ng, 1992)."""
    out = []
    with mp.workprec(1400):
        half_pi = mpmath.pi / 2
        for e in range(2 - f.digits, f.most - f.digits + 2):
            x = mpmath.ldexp(1, e) / half_pi
            q0, q1 = 1, 0  # denominators of convergents
            found = []
            while True:
                whole = int(mpmath.floor(x))
                q0, q1 = q1, whole * q1 + q0
                if q1 >> f.digits:
                    break
                found.append(q1)
                if x == whole:
                    break
                x = 1 / (x - whole)
            out += [f.of(float(mpmath.ldexp(q, e))) for q in found[-2:] if q >> (f.digits - 4)]
    return out


# Arguments whose exact value comes within 2^-55 units of the middle between two f64, from the searches that Lefevre and Muller began ("Worst cases for
# correct rounding of the elementary functions in double precision", ARITH 15, 2001).
WORST = {
    "exp": ["-0x1.12d31a20fb38bp+5", "0x1.9e9cbbfd6080bp-31"],
    "exp2": ["0x1.e4596526bf94dp-10", "0x1.e76049073067fp-10", "0x1.8fea81fb7512ep-6"],
    "log": ["0x1.fd15daa6ce332p+732", "0x1.be87838f1a47cp+774", "0x1.b7f71a488641ap+340"],
    "log2": ["0x1.1ba39ff28e3eap+7", "0x1.b4ebe40c95a01p+0"],
    "sin": ["0x1.598bae9e632f6p-7", "0x1.1fa4f6c3eb138p+10", "0x1.1c63df63d59dp-2"],
    "cos": ["0x1.34ec2f9fc9cp+1", "0x1.6b8a6273d7c21p+0"],
    "tan": ["0x1.67fffffffe845p-19", "0x1.50486b2f87014p-5", "0x1.ccaffe66878dbp+0"],
    "sinh": ["0x1.897374d74de2ap-13", "0x1.0dc68d5e8f959p-3"],
    "cosh": ["0x1.ea5f2f2e4b0c5p+1", "0x1.dea0b0c844078p-11"],
    "tanh": ["0x1.68000000017bbp-19", "0x1.ac343b179fec4p-3", "0x1.1375c272d441cp+1"],
    "rsqrt": ["0x1.a6a9cc15abccep+0", "0x1.c562b857453ddp+1"],
}


def around(f, bits, count):
    return [b for b in range(bits - count, bits + count + 1) if 0 <= b < f.infinity]


def thresholds(name, f):
    """Arguments where results begin to overflow, to be subnormal, or to be 0."""
    biggest, tiny = mpmath.ldexp(1, f.most + 1), mpmath.ldexp(1, f.least)
    least = mpmath.ldexp(1, f.least - f.digits + 1)
    values = {
        "exp": [mpmath.log(biggest), -mpmath.log(tiny), -mpmath.log(least), -mpmath.log(least / 2)],
        "exp2": [mpf(f.most + 1), mpf(-f.least), mpf(-f.least + f.digits - 1), mpf(-f.least + f.digits)],
        "sinh": [mpmath.asinh(biggest)], "cosh": [mpmath.acosh(biggest)],
        "tanh": [mpmath.atanh(1 - mpmath.ldexp(1, -f.digits)), mpmath.atanh(1 - mpmath.ldexp(1, -f.digits - 1))],
    }.get(name, [])
    return [f.of(float(v)) for v in values]


def hard(name, f):
    """Bits of arguments that are known to be hard, or lie at an edge; a few hundred at most, but for angles."""
    out = [1, 2, 3, (1 << (f.digits - 1)) - 1, 1 << (f.digits - 1), (1 << (f.digits - 1)) + 1, f.infinity - 1, f.infinity - 2, f.one]
    for t in thresholds(name, f):
        out += around(f, t, 3)
    if name in ("log", "log2", "exp", "exp2", "rsqrt"):
        out += around(f, f.one, 8)
        for k in range(2, f.digits):
            out += [f.of(1 + 2.0**-k), f.of(1 - 2.0**-k)]
    if name in ("sin", "cos", "tan"):
        out += near_quarter_turns(f)
        with mp.workprec(1400):
            for n in list(range(1, 40)) + [10**k + 1 for k in range(2, 16)]:
                out += around(f, f.of(float(mpmath.pi / 2 * n)), 1)
    if f is F64:
        out += [f.of(float.fromhex(h)) for h in WORST[name]]
    return sorted(set(b for b in out if 0 < b & (f.sign - 1) < f.infinity))


def hard_pairs(name, f):
    """Pairs of bits, signs included."""
    out = []
    edges = [1, (1 << (f.digits - 1)) - 1, 1 << (f.digits - 1), f.one - 1, f.one, f.one + 1, f.infinity - 1]
    if name == "atan2":
        for a in edges:
            for b in edges:
                out += [(a, b), (a | f.sign, b | f.sign), (a, b | f.sign)]
        return out
    span = f.most + 1 - f.least
    # Bases next to 1 with exponents that bring the power to the edges of the range.
    for k in (-9, -3, -2, -1, 1, 2, 3, 9):
        base = mpf(f.value(f.one + k))
        for edge in (f.most + 1, f.least, f.least - f.digits + 1, f.least - f.digits, 3, -1):
            y = f.of(float(edge * mpmath.log(2) / mpmath.log(base)))
            out += [(f.one + k, y + d) for d in (-1, 0, 1)]
    # Bases of all sizes, the same.
    rng = random.Random(7)
    for _ in range(40):
        bits = rng.randrange(1, f.infinity)
        base = mpf(f.value(bits))
        for edge in (f.most + 1, f.least, f.least - f.digits + 1, f.least - f.digits, rng.uniform(f.least, f.most)):
            y = f.of(float(edge * mpmath.log(2) / mpmath.log(base)))
            out += [(bits, y + d) for d in (-1, 0, 1)]
    # Exact powers, and powers in the middle between two numbers: odd * 2^k to a small whole number, roots of squares.
    for odd, y in [(3, 2), (3, 3), (5, 5), (7, 9), (3, 33), (3, 34), (5, 23), (11, 15), ((1 << (f.digits // 2 + 1)) - 1, 2), ((1 << (f.digits // 3 + 1)) - 1, 3)]:
        for scale in (0, 5, -5):
            out += [(f.of(float(odd) * 2.0**scale), f.of(float(y))), (f.of(float(odd) * 2.0**scale) | f.sign, f.of(float(y)))]
        out.append((f.of(float(odd * odd)), f.of(0.5)))
    for y in (0.5, -0.5, 1, -1, 2, -2, 3, -3, 1.5, span):
        for b in edges:
            out.append((b, f.of(float(y))))
    return [(a, b) for a, b in out if 0 <= a & (f.sign - 1) < f.infinity and 0 <= b & (f.sign - 1) < f.infinity]


def samples(name, f, count, rng):
    """Arguments of a function of one operand: all binades alike, the range where it is not constant densely, and the hard ones."""
    parts = []
    low = rng.integers(0, f.infinity, count // 2, dtype=np.uint64)  # every binade as likely as another, subnormal numbers too
    parts.append(low.astype(f.uint).view(f.numpy))
    binades = np.arange(f.infinity >> (f.digits - 1), dtype=np.uint64)
    for offset in (0, 1, (1 << (f.digits - 1)) - 1, 1 << (f.digits - 2)):
        parts.append(((binades << np.uint64(f.digits - 1)) | np.uint64(offset)).astype(f.uint).view(f.numpy))
    width = {"exp": 710 if f is F64 else 89, "exp2": 1024 if f is F64 else 128, "sinh": 711 if f is F64 else 90, "cosh": 711 if f is F64 else 90, "tanh": 23,
             "sin": 1000, "cos": 1000, "tan": 1000}.get(name)
    n = count // 4
    if width:
        parts.append((rng.uniform(0, width * 1.06, n)).astype(f.numpy))
        parts.append((rng.uniform(0, 2, n)).astype(f.numpy))
    else:
        parts.append((1 + rng.uniform(-0.5, 1, n)).astype(f.numpy))
        parts.append((1 + rng.uniform(-1, 1, n) * 2.0 ** -rng.uniform(1, f.digits - 1, n)).astype(f.numpy))
    for t in thresholds(name, f):
        parts.append((t + rng.integers(-2000, 2000, 1000)).astype(f.uint).view(f.numpy))
    parts.append(np.array(hard(name, f), f.uint).view(f.numpy))
    x = np.concatenate(parts)
    if name not in POSITIVE:
        x = np.where(rng.integers(0, 2, len(x)) == 1, -x, x)
    return x


def sample_pairs(name, f, count, rng):
    def any_of(n):
        return rng.integers(0, f.infinity, n, dtype=np.uint64).astype(f.uint).view(f.numpy)

    n = count // 4
    pairs = []
    if name == "atan2":
        pairs.append((any_of(n), any_of(n)))
        base = any_of(n)
        with np.errstate(over="ignore"):
            pairs.append((base, (base * rng.uniform(0.2, 5, n).astype(f.numpy)).astype(f.numpy)))
            pairs.append((base, (base * (1 + rng.uniform(-1, 1, n) * 2.0 ** -rng.uniform(1, f.digits, n))).astype(f.numpy)))
            pairs.append((base, (base * 2.0 ** rng.uniform(-70, 70, n)).astype(f.numpy)))
    else:
        with np.errstate(all="ignore"):
            def powers(base):  # exponents that spread the powers over the whole range and a little beyond
                edge = rng.uniform(f.least - f.digits - 3, f.most + 3, len(base))
                return (base, (edge / np.log2(base.astype(np.float64))).astype(f.numpy))

            pairs.append(powers(any_of(n)))
            pairs.append(powers((1 + rng.uniform(-1, 1, n) * 2.0 ** -rng.uniform(0.1, f.digits, n)).astype(f.numpy)))
            pairs.append(((rng.uniform(0.3, 3, n)).astype(f.numpy), rng.uniform(-30, 30, n).astype(f.numpy)))
            pairs.append(((-rng.uniform(0.3, 30, n)).astype(f.numpy), rng.integers(-40, 40, n).astype(f.numpy)))
    hard_bits = np.array(hard_pairs(name, f), f.uint)
    x = np.concatenate([p[0] for p in pairs] + [hard_bits[:, 0].view(f.numpy)])
    y = np.concatenate([p[1] for p in pairs] + [hard_bits[:, 1].view(f.numpy)])
    if name == "atan2":
        x = np.where(rng.integers(0, 2, len(x)) == 1, -x, x)
        y = np.where(rng.integers(0, 2, len(y)) == 1, -y, y)
    return x, y


# --- the machine --------------------------------------------------------------------------------------------------------------------------------------

class Machine:
    TILE = 1024

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()

    def run(self, expression, f, x, y=None):
        """Results of `expression` ("exp %x", "divf %x, %y rounding<zero>") for arrays of arguments."""
        n = -(-len(x) // self.TILE) * self.TILE
        folder = pathlib.Path(self.folder.name)
        t, tile = f.name, f"tile<{self.TILE}x{f.name}>"
        names = ["x"] + (["y"] if y is not None else [])
        lines = [f"!view = !cuda_tile.tensor_view<{n}x{t}, strides=[1]>", f"!tiles = !cuda_tile.partition_view<tile=({self.TILE}), !view>",
                 "cuda_tile.module @m {", "entry @k(" + ", ".join(f"%{a}p: tile<ptr<{t}>>" for a in names + ["o"]) + ") {",
                 "%i, %j, %k = get_tile_block_id : tile<i32>"]
        for a in names + ["o"]:
            lines += [f"%{a}v = make_tensor_view %{a}p, shape = [{n}], strides = [1] : !view", f"%{a}t = make_partition_view %{a}v : !tiles"]
        for a in names:
            lines.append(f"%{a}, %{a}k = load_view_tko weak %{a}t[%i] : !tiles, tile<i32> -> {tile}, token")
        lines += [f"%r = {expression} : {tile}", f"%ok = store_view_tko weak %r, %ot[%i] : {tile}, !tiles, tile<i32> -> token", "return", "}", "}"]
        (folder / "k.tile").write_text("\n".join(lines))
        command = [self.program, "--cpu", str(folder / "k.tile"), "--grid", str(n // self.TILE)]
        for a, values in zip(names, (x, y)):
            padded = np.ones(n, f.numpy)
            padded[: len(x)] = values
            np.save(folder / f"{a}.npy", padded)
            command += ["--arg", f"ptr:{folder}/{a}.npy"]
        command += ["--arg", f"o=ptr:{t}[{n}]=zeros", "--out", f"o={folder}/o.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{expression} {t}: exit {done.returncode}\n{done.stderr}")
        return np.load(folder / "o.npy")[: len(x)]


# --- judging ------------------------------------------------------------------------------------------------------------------------------------------

def error_of(name, f, got, x, y=None):
    """In units, by mpmath; infinite where the result is NaN or of the wrong sign."""
    exact = exact_value(name, x, y)
    if got != got:
        return INF
    result = mpmath.ldexp(1, f.most + 1) * (1 if got > 0 else -1) if abs(got) == INF else mpf(got)
    limit = mpmath.ldexp(1, f.most + 1)
    if abs(exact) > limit:
        exact = limit * mpmath.sign(exact)  # infinity is the result for all of these
    if result != 0 and exact != 0 and (result > 0) != (exact > 0):
        return INF
    return float(abs(mpmath.ldexp(result - exact, -f.unit(exact))))


def shown(f, *values):
    return ", ".join(float(v).hex() for v in values if v is not None)


class Worst:
    def __init__(self):
        self.count, self.error, self.where, self.over_half = 0, 0.0, None, 0

    def take(self, error, where):
        self.over_half += error > 0.5
        if error > self.error:
            self.error, self.where = error, where


def judge_f64(name, machine, x, y, worst):
    keep = [i for i in range(len(x)) if in_domain(name, x[i], None if y is None else y[i])]
    x = x[keep]
    y = None if y is None else y[keep]
    got = machine.run(f"{name} %x" + (", %y" if y is not None else ""), F64, x, y)
    for i in range(len(x)):
        b = None if y is None else float(y[i])
        worst.take(error_of(name, F64, float(got[i]), float(x[i]), b), (float(x[i]), b))
    worst.count += len(x)


def judge_f32(name, machine, x, y, worst, recheck, rng):
    with np.errstate(all="ignore"):
        x64 = x.astype(np.float64)
        y64 = None if y is None else y.astype(np.float64)
        keep = np.isfinite(x)
        if name in POSITIVE:
            keep &= x > 0
        if y is not None:
            keep &= np.isfinite(y)
            keep &= (x != 0) & ((x > 0) | (y == np.floor(y)) | (name == "atan2"))
        x, x64 = x[keep], x64[keep]
        if y is not None:
            y, y64 = y[keep], y64[keep]
        got = machine.run(f"{name} %x" + (", %y" if y is not None else ""), F32, x, y).astype(np.float64)
        reference = (UNARY[name][1](x64) if y is None else BINARY[name][1](x64, y64))
        limit = 2.0**128
        reference = np.clip(reference, -limit, limit)
        got = np.where(np.isinf(got), np.copysign(limit, got), got)
        exponent = np.clip(np.frexp(reference)[1] - 1, -126, 127)
        error = np.abs(got - reference) / np.ldexp(1.0, exponent - 23)
        error[~(error == error)] = INF
    worst.count += len(x)
    ask = set(np.flatnonzero(error > recheck)[:20000].tolist())  # mpmath decides these
    ask |= set(np.argsort(error)[-300:].tolist())
    ask |= set(rng.integers(0, len(x), 300).tolist())
    for i in ask:
        b = None if y is None else float(y[i])
        g = float(got[i])
        exact = error_of(name, F32, INF * np.sign(g) if abs(g) == limit else g, float(x[i]), b)
        if abs(exact - error[i]) > 1e-6 and not (exact == INF and error[i] == INF):
            print(f"  {name}/f32: NumPy is off at {shown(F32, x[i], b)}: {error[i]} units by it, {exact} by mpmath")
        worst.take(exact, (float(x[i]), b))
    rest = np.ones(len(x), bool)
    rest[list(ask)] = False
    worst.over_half += int(np.count_nonzero(error[rest] > 0.5))


# Roots and quotients: exact integers. Every finite f is m * 2^e.

def parts(f, bits):
    exponent, m = bits >> (f.digits - 1), bits & ((1 << (f.digits - 1)) - 1)
    return (m, f.least - f.digits + 1) if exponent == 0 else (m | 1 << (f.digits - 1), exponent - 1 + f.least - f.digits + 1)


def rounded(f, negative, whole, sticky, e, mode):
    """Bits of (whole + something in (0, 1) if sticky) * 2^e; whole has more than digits + 2 bits."""
    drop = max(whole.bit_length() - f.digits, (f.least - f.digits + 1) - e)
    kept, rest, half = whole >> drop, (whole & ((1 << drop) - 1)) * 2 + sticky, 1 << drop
    up = {"nearest_even": rest > half or (rest == half and kept & 1), "zero": False, "positive_inf": rest > 0 and not negative, "negative_inf": rest > 0 and negative}[mode]
    kept += bool(up)
    e += drop
    if kept >> f.digits:
        kept >>= 1
        e += 1
    if kept >> (f.digits - 1):
        biased = e + f.digits - 1 - f.least + 1
        if biased >= (f.infinity >> (f.digits - 1)):
            outward = mode == "nearest_even" or (mode == "positive_inf" and not negative) or (mode == "negative_inf" and negative)
            return (f.infinity if outward else f.infinity - 1) | (f.sign if negative else 0)
        return (biased << (f.digits - 1) | (kept & ((1 << (f.digits - 1)) - 1))) | (f.sign if negative else 0)
    return kept | (f.sign if negative else 0)


def quotient(f, a, b, mode):
    (ma, ea), (mb, eb) = parts(f, a & (f.sign - 1)), parts(f, b & (f.sign - 1))
    negative = ((a ^ b) & f.sign) != 0
    if ma == 0:
        return f.sign if negative else 0
    shift = 2 * f.digits + 4
    whole, rest = divmod(ma << shift, mb)
    return rounded(f, negative, whole, 1 if rest else 0, ea - eb - shift, mode)


def root(f, a, mode):
    m, e = parts(f, a)
    shift = 2 * f.digits + 8 + (e & 1)
    m <<= shift
    e -= shift
    whole = math.isqrt(m)
    return rounded(f, False, whole, 1 if whole * whole != m else 0, e // 2, mode)


def exact_rounding(machine, f, count, rng, report):
    a = rng.integers(1, f.infinity, count, dtype=np.uint64)
    b = rng.integers(1, f.infinity, count, dtype=np.uint64)
    near = a + rng.integers(0, 64, count, dtype=np.uint64)
    third = count // 3
    b[:third] = np.minimum(near[:third], np.uint64(f.infinity - 1))  # quotients near 1
    scale = np.uint64(f.digits - 1)
    b[third:2 * third] = (b[third:2 * third] & np.uint64((1 << (f.digits - 1)) - 1)) | ((a[third:2 * third] >> scale) << scale)  # of one binade
    edges = np.array([1, 2, 3, (1 << (f.digits - 1)) - 1, 1 << (f.digits - 1), (1 << (f.digits - 1)) + 1, f.one - 1, f.one, f.one + 1, f.infinity - 1], np.uint64)
    a = np.concatenate([a, np.repeat(edges, len(edges))])
    b = np.concatenate([b, np.tile(edges, len(edges))])
    signs = rng.integers(0, 4, len(a))
    sa = (a | np.where(signs & 1, np.uint64(f.sign), np.uint64(0))).astype(f.uint)
    sb = (b | np.where(signs & 2, np.uint64(f.sign), np.uint64(0))).astype(f.uint)
    modes = ["nearest_even", "zero", "negative_inf", "positive_inf"]
    for op in ("divf", "sqrt"):
        for mode in modes + (["approx"] + (["full"] if op == "divf" else []) if f is F32 else []):
            judge = "nearest_even" if mode in ("approx", "full") else mode
            modifier = "" if mode == "nearest_even" else f" rounding<{mode}>"
            if op == "divf":
                got = machine.run(f"divf %x, %y{modifier}", f, sa.view(f.numpy), sb.view(f.numpy)).view(f.uint)
                want = [quotient(f, int(p), int(q), judge) for p, q in zip(sa, sb)]
            else:
                squares = np.concatenate([a, (rng.integers(1, 1 << (f.digits // 2), 2000).astype(np.float64) ** 2).astype(f.numpy).view(f.uint).astype(np.uint64)])
                got = machine.run(f"sqrt %x{modifier}", f, squares.astype(f.uint).view(f.numpy)).view(f.uint)
                want = [root(f, int(p), judge) for p in squares]
            wrong = int(np.count_nonzero(got != np.array(want, f.uint)))
            report(f"{op} {mode}", f, len(want), "bit for bit" if wrong == 0 else f"{wrong} WRONG", "", wrong == 0)


# --- output -------------------------------------------------------------------------------------------------------------------------------------------

def write_cases(path):
    """The hard arguments with the nearest result and the rest, for tests/unit/elementwise_hard_test.cpp."""
    lines = ["# Made by sample.py --write with mpmath: function, bits of the type, operands (second 0 where there is one), the number nearest to the exact value, and",
             "# what the exact value is above that number in units of the last place."]
    for f in (F32, F64):
        for name in list(UNARY) + list(BINARY):
            pairs = [(b, None) for b in hard(name, f)] if name in UNARY else hard_pairs(name, f)
            if name in ("sin", "cos", "tan"):  # the nearest to multiples of pi/2 of them
                order = sorted((b for b, _ in pairs), key=lambda b: abs(mpmath.sin(2 * mpf(f.value(b)))))
                pairs = [(b, None) for b in sorted(set(order[:60] + order[60::20] + [f.of(float.fromhex(h)) for h in WORST[name] if f is F64]))]
            for a, b in pairs:
                x, y = f.value(a), None if b is None else f.value(b)
                if not in_domain(name, x, y):
                    continue
                exact = exact_value(name, x, y)
                if abs(exact) > mpmath.ldexp(1, f.most + 1):
                    exact = mpmath.ldexp(1, f.most + 1) * mpmath.sign(exact)
                nearest, rest = f.nearest(exact)
                bits = f.of(float(nearest)) if abs(nearest) < mpmath.ldexp(1, f.most + 1) else f.infinity | (f.sign if nearest < 0 else 0)
                if nearest == 0 and exact < 0:
                    bits = f.sign
                lines.append(f"{name} {f.bits} {a:X} {b or 0:X} {bits:X} {float(rest):.6g}")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 2} cases")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="*", help="FUNCTION/TYPE; sqrt and divf are `exact/TYPE`")
    p.add_argument("--tilevm", default="build/tilevm")
    p.add_argument("--f32", type=int, default=8000000, help="samples of a function in f32")
    p.add_argument("--f64", type=int, default=120000, help="samples of a function in f64")
    p.add_argument("--step", type=int, default=0, help="f32 functions of one operand: every so many of all f32 instead of samples")
    p.add_argument("--arguments", help="f64: hexadecimal floats, one a line (pairs with a comma), instead of samples")
    p.add_argument("--recheck", type=float, default=0.5005)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--write", help="write the cases of the unit test and end")
    o = p.parse_args()
    if o.write:
        return write_cases(o.write)
    machine = Machine(str(pathlib.Path(o.tilevm).resolve()))
    bad = []

    def report(name, f, count, error, where, good):
        print(f"| {name} | {f.name} | {count} | {error} | {where} |", flush=True)
        if not good:
            bad.append(name)

    print("| function | type | samples | largest error in units | at |\n|---|---|---|---|---|")
    for f in (F32, F64):
        for name in list(UNARY) + list(BINARY) + ["exact"]:
            if o.what and f"{name}/{f.name}" not in o.what:
                continue
            rng = np.random.default_rng(o.seed)
            if name == "exact":
                exact_rounding(machine, f, 100000, rng, report)
                continue
            worst = Worst()
            start = time.time()
            count = o.f32 if f is F32 else o.f64
            chunks = []
            if f is F32 and o.step and name in UNARY:
                at = np.arange(0, 1 << 32, o.step, dtype=np.uint64)
                chunks = [(c.astype(np.uint32).view(np.float32), None) for c in np.array_split(at, max(1, len(at) >> 23))]
            elif o.arguments and f is F64:
                values = [line.split("#")[0].strip().split(",") for line in open(o.arguments)]
                values = [[float.fromhex(t) for t in v] for v in values if v != [""] ]
                columns = [np.array(c) for c in zip(*values)]
                chunks = [(columns[0], columns[1] if name in BINARY else None)]
            elif name in UNARY:
                chunks = [(samples(name, f, count, rng), None)]
            else:
                chunks = [sample_pairs(name, f, count, rng)]
            for x, y in chunks:
                if f is F32:
                    judge_f32(name, machine, x, y, worst, o.recheck, rng)
                else:
                    judge_f64(name, machine, x, y, worst)
            good = worst.error <= (0.51 if f is F32 else 1)
            report(name, f, worst.count, f"{worst.error:.8f}" + (f", {worst.over_half} above 1/2" if worst.over_half else ""), shown(f, *(worst.where or ())), good)
            print(f"  {time.time() - start:.1f} s", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
