"""Checks the formats against ml_dtypes and numpy: every value, and rounding of awkward numbers. Run by generate.py --self-test."""
from fractions import Fraction

import ml_dtypes
import numpy as np

from oracle.formats import F, from_float, nan_bits, to_fraction

NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
         "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "f4E2M1FN": ml_dtypes.float4_e2m1fn}
WORD = {4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32}


def run():
    checked = 0
    for name, t in NUMPY.items():
        f = F[name]
        n = min(1 << f.memory_bits, 65536)
        step = (1 << f.memory_bits) // n
        codes = np.arange(n, dtype=np.uint64) * step
        values = codes.astype(WORD[f.memory_bits]).view(t).astype(np.float64)
        for code, value in zip(codes.tolist(), values.tolist()):
            got = f.decode(code)
            if value != value:
                assert got == "nan", (name, hex(code))
            elif abs(value) == float("inf"):
                assert got[1] is None, (name, hex(code))
            else:
                assert to_fraction(name, code) == Fraction(value), (name, hex(code), value)
                assert f.round(got[0], got[1], got[2]) == code, (name, hex(code))
            checked += 1
        # Rounding: all halves and quarters between neighbours, away from the saturation that numpy does otherwise.
        if name in ("f8E8M0FNU",):
            continue
        # 2^-10 of a spacing survives ml_dtypes, which converts f64 by way of f32.
        rng = np.random.RandomState(7)
        pick = codes[rng.randint(0, n - 1, 4000)].tolist()
        for code in pick:
            a, b = f.decode(code), f.decode(code + step if code + step < 1 << f.memory_bits else code)
            if "nan" in (a, b) or a[1] is None or b[1] is None:
                continue
            lo, hi = to_fraction(name, code), to_fraction(name, code + step if code + step < 1 << f.memory_bits else code)
            if f.memory_bits == 32:
                hi = to_fraction(name, min(code + 1, f.top_bits))
            for k in (Fraction(1, 2), Fraction(1, 2) - Fraction(1, 2 ** 10), Fraction(1, 2) + Fraction(1, 2 ** 10), Fraction(1, 4)):
                x = lo + (hi - lo) * k
                y = float(x)
                if Fraction(y) != x or abs(y) > float(f.top):
                    continue
                with np.errstate(all="ignore"):
                    want = int(np.array([y]).astype(t).view(WORD[f.memory_bits])[0])
                assert from_float(name, y) == want, (name, y, hex(from_float(name, y)), hex(want))
                checked += 1
    assert nan_bits("f4E2M1FN") == 7
    return checked
