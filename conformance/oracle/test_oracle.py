"""Checks the oracles against numpy and ml_dtypes: every value of the small formats, rounding, arithmetic, functions. Run by generate.py --self-test."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

from oracle import exact, functions, matmul
from oracle.formats import F, from_float, from_fraction, nan_bits, to_fraction
from oracle.rng import Rng
from oracle.values import float_edges, moderate, random_bits

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
WORD = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def decoding():
    """Every value of the small formats, every 65536th of f32."""
    checked = 0
    for name, t in NUMPY.items():
        f = F[name]
        n = min(1 << f.memory_bits, 65536)
        step = (1 << f.memory_bits) // n
        codes = np.arange(n, dtype=np.uint64) * np.uint64(step)
        values = codes.astype(WORD[f.memory_bits]).view(t).astype(np.float64)
        for code, value in zip(codes.tolist(), values.tolist()):
            got = f.decode(code)
            if value != value:
                assert got == "nan", (name, hex(code))
            elif math.isinf(value):
                assert got[1] is None, (name, hex(code))
            else:
                assert to_fraction(name, code) == Fraction(value), (name, hex(code), value)
                assert f.round(got[0], got[1], got[2]) == code, (name, hex(code))
            checked += 1
    return checked


def rounding():
    """Halves, quarters and what is beside a half, away from saturation, where ml_dtypes does otherwise."""
    checked = 0
    for name, t in NUMPY.items():
        f, rng = F[name], Rng("rounding " + name)
        if name == "f8E8M0FNU":
            continue
        for _ in range(3000):
            code = rng.below(f.top_bits)
            lo, hi = to_fraction(name, code), to_fraction(name, code + 1)
            # 2^-10 of a spacing survives ml_dtypes, which converts f64 by way of f32
            for k in (
                Fraction(1, 2),
                Fraction(1, 2) - Fraction(1, 1024),
                Fraction(1, 2) + Fraction(1, 1024),
                Fraction(1, 4),
            ):
                y = float(lo + (hi - lo) * k)
                if Fraction(y) != lo + (hi - lo) * k:
                    continue
                want = int(np.array([y]).astype(t).view(WORD[f.memory_bits])[0])
                assert from_float(name, y) == want, (name, y, hex(from_float(name, y)), hex(want))
                checked += 1
    return checked


def same(t, a, b):
    return a == b or F[t].is_nan(a) and F[t].is_nan(b)


def arithmetic():
    checked = 0
    for t, d in (("f16", np.float16), ("f32", np.float32), ("f64", np.float64)):
        rng, u = Rng("arithmetic " + t), WORD[F[t].memory_bits]
        bits = float_edges(t) + [random_bits(t, rng) for _ in range(100)] + [moderate(t, rng, 6) for _ in range(60)]
        x = np.array(bits, dtype=u).view(d)
        for name, fn in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("div", np.divide),
            ("rem", np.fmod),
        ):
            for i, a in enumerate(bits):
                for b, want in zip(bits, fn(x[i], x).view(u).tolist()):
                    got = getattr(exact, name)(t, a, b)
                    assert same(t, got, want), (t, name, hex(a), hex(b), hex(got), hex(want))
                    checked += 1
        for name, fn in (("sqrt", np.sqrt),):
            for a, want in zip(bits, fn(x).view(u).tolist()):
                assert same(t, exact.sqrt(t, a), want), (t, name, hex(a))
                checked += 1
        for a in bits:
            for b in bits[::7]:
                for mode in ("zero", "negative_inf", "positive_inf"):
                    directed(t, a, b, mode)
                    checked += 1
    return checked


def directed(t, a, b, mode):
    """A directed sum and product are the nearest number on the right side of the exact value."""
    f = F[t]
    x, y = f.decode(a), f.decode(b)
    if "nan" in (x, y) or x[1] is None or y[1] is None:
        return
    for fn, value in (
        (exact.add, to_fraction(t, a) + to_fraction(t, b)),
        (exact.mul, to_fraction(t, a) * to_fraction(t, b)),
    ):
        got = f.decode(fn(t, a, b, mode=mode))
        if got[1] is None:
            assert abs(value) > f.top, (t, mode, hex(a), hex(b))
            continue
        r = to_fraction(t, fn(t, a, b, mode=mode))
        if mode == "zero":
            assert abs(r) <= abs(value)
        else:
            assert r <= value if mode == "negative_inf" else r >= value
        if r != value and abs(value) < f.top:
            other = from_fraction(t, value, "negative_inf" if r > value else "positive_inf")
            assert (
                abs((other & ~f.sign_bit) - (fn(t, a, b, mode=mode) & ~f.sign_bit)) <= 1
                or r == 0
                or to_fraction(t, other) == 0
            )


def fused():
    """fma in f32 against exact rationals."""
    rng, checked = Rng("fma"), 0
    for t in ("f16", "bf16", "f32", "f64"):
        for _ in range(2000):
            a, b, c = (moderate(t, rng, 4) for _ in range(3))
            want = from_fraction(t, to_fraction(t, a) * to_fraction(t, b) + to_fraction(t, c), sign=0)
            assert exact.fma(t, a, b, c) == want and matmul.fma_mixed(t, F[t].decode(a), F[t].decode(b), c) == want
            checked += 1
    return checked


def transcendental():
    """Within one unit of what the C library gives in f64, and its special cases exactly."""
    table = {
        "exp": math.exp,
        "exp2": lambda x: 2.0**x,
        "log": math.log,
        "log2": math.log2,
        "rsqrt": lambda x: 1 / math.sqrt(x),
    }
    checked = 0
    for name in functions.UNARY:
        fn = table.get(name) or getattr(math, name)
        rng = Rng("functions " + name)
        for _ in range(300):
            x = rng.uniform(0.01, 3.0)
            got = to_fraction("f64", functions.evaluate("f64", name, from_float("f64", x)))
            want = Fraction(fn(x))
            assert abs(got - want) <= abs(want) * Fraction(4, 1 << 52), (name, x)
            checked += 1
    for x in float_edges("f64"):
        for y in float_edges("f64"):
            a, b = (np.array([v], dtype=np.uint64).view(np.float64) for v in (x, y))
            for name, fn in (("pow", np.power), ("atan2", np.arctan2)):
                found = functions.special("f64", name, (x, y))
                if found is not None:
                    want = int(fn(a, b).view(np.uint64)[0])
                    assert same("f64", found, want) or abs(found - want) <= 1, (
                        name,
                        hex(x),
                        hex(y),
                        hex(found),
                        hex(want),
                    )
                    checked += 1
    return checked


def run():
    assert nan_bits("f4E2M1FN") == 7
    with np.errstate(all="ignore"):
        return decoding() + rounding() + arithmetic() + fused() + transcendental()
