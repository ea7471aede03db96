#!/usr/bin/env python3
"""Runs the kernels of a folder of examples and checks every result against NumPy.

  run_examples.py --tilevm build/release/tilevm --tileasm build/release/tileasm examples [NAME ...]

Each example is a kernel NAME.tile with a job NAME.json. It is assembled to tilebc and run; the arrays of the job come
from generators, which tools/python/tile_generate.py makes again bit for bit, and the expected result is computed from
them in float64.  What must hold, element by element:

  products of matrices   |error| <= (K + 1) 2^-24 sum |a| |b|, which any order of K additions in f32 keeps (the + 1 stands
                         for terms of second order and for the float64 reference), plus half a unit in the last place
                         where the result is rounded to a smaller type; integers exactly
  sums of two vectors    exactly: the data are small multiples of 1/2
  softmax                see softmax_bound()
  memory                 inputs, gaps between rows and what lies around the result keep every bit

Ends with status 0 if all results are right, 1 if not, 2 for a wrong command line, 3 if a program or NumPy is missing."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Callable, Optional

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))
try:
    import numpy as np
    import tile_generate as gen
except ImportError as error:
    print(f"run_examples: {error}; on Debian: apt install python3-numpy", file=sys.stderr)
    sys.exit(3)

# Exponent bits, mantissa bits, bias, whether all exponent bits set mean infinity and NaN (else only the topmost pattern is NaN).
FORMATS = {"f16": (5, 10, 15, True), "bf16": (8, 7, 127, True), "f8E4M3FN": (4, 3, 7, False), "f8E5M2": (5, 2, 15, True)}
REPEAT = 20


def values(t, bits):
    """The numbers, as float64, that stored bits of type t stand for; integers as int64."""
    if t in ("i8", "i16", "i32", "i64"):
        return bits.view(f"i{bits.itemsize}").astype("i8")
    if t in ("f32", "tf32", "f64"):
        return bits.view(f"f{bits.itemsize}").astype("f8")
    e_bits, m_bits, bias, ieee = FORMATS[t]
    b = bits.astype("i8")
    mantissa, exponent = b & ((1 << m_bits) - 1), (b >> m_bits) & ((1 << e_bits) - 1)
    size = np.where(exponent == 0, np.ldexp(mantissa.astype("f8"), 1 - bias - m_bits),
                    np.ldexp((mantissa + (1 << m_bits)).astype("f8"), exponent - bias - m_bits))
    top = (1 << e_bits) - 1
    if ieee:
        size = np.where(exponent == top, np.where(mantissa == 0, np.inf, np.nan), size)
    else:
        size = np.where((exponent == top) & (mantissa == (1 << m_bits) - 1), np.nan, size)
    return np.where(b >> (e_bits + m_bits) & 1, -size, size)


def half_ulp(t, size):
    """Half the distance between numbers of type t near `size`: the most that rounding to nearest moves one."""
    _, m_bits, bias, _ = FORMATS[t]
    _, e = np.frexp(size)
    return np.ldexp(0.5, np.maximum(e - 1, 1 - bias) - m_bits)


def round_tf32(x):
    """f32 numbers rounded to 10 bits of mantissa, ties to even."""
    mantissa, e = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, 11)), e - 11)


@dataclass
class Buffer:
    """The memory of one argument before the launch: flat stored bits, and where its elements lie."""
    name: str
    type: str
    memory: np.ndarray
    shape: tuple
    strides: tuple
    offset: int = 0  # in elements, of the place the pointer leads to

    def positions(self):
        at = np.full(self.shape, self.offset, "i8")
        for d, (n, s) in enumerate(zip(self.shape, self.strides)):
            at += (np.arange(n, dtype="i8") * s).reshape((n,) + (1,) * (len(self.shape) - d - 1))
        return at

    def read(self, memory=None):
        return (self.memory if memory is None else memory)[self.positions()]


def read_args(job):
    """The buffers of a job in order, and its scalars by name. Understands what the examples use: generators and integers."""
    buffers, scalars = [], {}
    for arg in job["args"]:
        extra = 0
        if isinstance(arg, dict):
            kind, = set(arg) - {"name", "offset"}
            name, body, extra = arg.get("name", ""), str(arg[kind]), arg.get("offset", 0)
        else:
            name, kind, body = re.fullmatch(r"(?:(\w+)=)?(\w+):(.*)", arg).groups()
        if kind not in ("ptr", "array", "array64"):
            scalars[name] = int(body)
            continue
        bits, t, shape, strides = gen.elements(body)
        if strides is None:
            strides = tuple(int(np.prod(shape[d + 1:], dtype="i8")) for d in range(len(shape)))
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        stored = gen.storage_type(t)
        memory = np.full(span, np.iinfo(stored).max, stored)  # gaps hold 0xFF
        buffer = Buffer(name, t, memory, shape, strides)
        memory[buffer.positions()] = bits.astype(stored).reshape(shape)
        buffer.offset = extra // stored.itemsize
        buffers.append(buffer)
    return buffers, scalars


@dataclass
class Judgement:
    expected: np.ndarray
    bound: np.ndarray  # most that a right result may be off; 0: exactly the expected number
    flops: int
    shapes: str


def product(a, b, out, rounded=None):
    """c = a b: a sum of K products in f32, in any order."""
    x, y = values(a.type, a.read()), values(b.type, b.read())
    if rounded:
        x, y = rounded(x), rounded(y)
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    shapes = f"{m} x {n} x {k}"
    flops = 2 * m * n * k
    if x.ndim == 3:
        shapes, flops = f"{x.shape[0]} of {shapes}", flops * x.shape[0]
    if out.type.startswith("i"):
        exact = np.matmul(x, y)
        wrapped = (exact + (1 << 31)) % (1 << 32) - (1 << 31)
        return Judgement(wrapped, np.zeros(wrapped.shape), flops, shapes)
    exact = np.matmul(x, y)
    bound = (k + 1) * 2.0**-24 * np.matmul(np.abs(x), np.abs(y))
    if out.type != "f32":
        bound = bound + half_ulp(out.type, np.abs(exact) + bound)
    return Judgement(exact, bound, flops, shapes)


def vector_sum(a, b, out):
    exact = values(a.type, a.read()) + values(b.type, b.read())
    return Judgement(exact, np.zeros(exact.shape), exact.size, f"{exact.size}")


def softmax_bound(shifted):
    """Relative, in units of 2^-24: |x - max| for the rounded difference in the exponent; 4 for exp, 2 units in the last
    place, in the numerator and as much in the sum's terms; the largest |x - max| of terms that count in the sum is at
    most ln(2^24 n) < 24; n for the sum itself; 1 for the division; 1 for second order."""
    return np.abs(shifted) + 4 + 4 + 24 + shifted.shape[1] + 1 + 1


def softmax(x, out):
    v = values(x.type, x.read())
    shifted = v - v.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    exact = e / e.sum(axis=1, keepdims=True)
    return Judgement(exact, softmax_bound(shifted) * 2.0**-24 * exact, 5 * v.size, f"{v.shape[0]} x {v.shape[1]}")


@dataclass
class Example:
    tiles: str  # as text, for the table: M x N x K of matrix products
    judge: Callable = product
    window: Optional[Callable] = None  # (buffer, scalars): where the result lies in a buffer that is larger


def scalar_window(buffer, s):
    buffer.shape = (s["c_rows"], s["c_cols"])
    buffer.strides = (s["c_stride0"], s["c_stride1"])


EXAMPLES = {
    "01_one_tile": Example("64x64x64"),
    "02_loop_over_k": Example("64x64x32"),
    "03_tf32": Example("64x64x32", lambda a, b, c: product(a, b, c, round_tf32)),
    "04_f16": Example("64x64x32"),
    "05_bf16": Example("64x64x32"),
    "06_non_square": Example("32x128x16"),
    "07_ragged": Example("64x32x32", window=scalar_window),
    "08_swizzled": Example("32x32x32"),
    "09_batched": Example("2 of 32x32x32"),
    "10_persistent": Example("32x32x32"),
    "11_i8": Example("64x64x64"),
    "12_f8": Example("64x64x64"),
    "13_hints": Example("64x64x32"),
    "vector_add_pointers": Example("256", vector_sum),
    "vector_add_views": Example("256", vector_sum),
    "softmax_rows": Example("8x256", softmax),
}


def compare(judgement, out, after):
    """(problem or None, text for the table) of the output's memory after the launch."""
    inside = np.zeros(after.shape, bool)
    inside[out.positions()] = True
    changed = np.flatnonzero((after != out.memory) & ~inside)
    if changed.size:
        return f"{changed.size} elements outside of {out.name} changed, the first at {changed[0]} of its buffer", "FAILED"
    got = values(out.type, out.read(after))
    with np.errstate(invalid="ignore"):
        error = np.abs(got - judgement.expected)
    wrong = ~(error <= judgement.bound)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        return (f"{wrong.sum()} of {wrong.size} elements are wrong, the first {out.name}{list(at)}: {got[at]!s}, "
                f"expected {judgement.expected[at]!s} +- {judgement.bound[at]:.3g}"), "FAILED"
    if not judgement.bound.any():
        return None, "exact"
    share = np.max(np.divide(error, judgement.bound, out=np.zeros(error.shape), where=judgement.bound > 0))
    return None, f"within {share:.3f} of bound"


def prepare(name, job):
    """(buffers, judgement) of an example; the last buffer is its output."""
    buffers, scalars = read_args(job)
    example = EXAMPLES[name]
    if example.window:
        example.window(buffers[-1], scalars)
    return buffers, example.judge(*buffers)


def check(name, job, dump):
    """(problem or None, text for the table, judgement) from the dumped buffers."""
    buffers, judgement = prepare(name, job)
    after = []
    for i, buffer in enumerate(buffers):
        memory = np.load(dump / f"buffer_{i}.npy")
        if memory.shape != buffer.memory.shape or memory.dtype.itemsize != buffer.memory.dtype.itemsize:
            return f"buffer {i} came back as {memory.dtype}{list(memory.shape)}", "FAILED", judgement
        after.append(memory.view(buffer.memory.dtype))
        if buffer is not buffers[-1] and not np.array_equal(after[-1], buffer.memory):
            return f"the input {buffer.name} was changed", "FAILED", judgement
    problem, text = compare(judgement, buffers[-1], after[-1])
    return problem, text, judgement


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip() or "no output"
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {lines}")
    return done.stdout


def run_one(name, folder, temporary, tools):
    """(problem or None, text for the table, judgement or None, seconds)"""
    code, dump = temporary / f"{name}.tilebc", temporary / name
    job_file = folder / f"{name}.json"
    try:
        call([tools.tileasm, "as", str(folder / f"{name}.tile"), "-o", str(code)])
        printed = call([tools.tilevm, "run", str(job_file), "--kernel", str(code), "--dump", str(dump), "--json",
                        "--repeat", str(REPEAT)])
        try:
            seconds = json.loads(printed)["seconds"]
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"tilevm run --json printed no report: {error}") from error
        problem, text, judgement = check(name, json.loads(job_file.read_text()), dump)
    except (RuntimeError, OSError) as error:
        return str(error), "FAILED", None, 0.0
    return problem, text, judgement, seconds


def rate(flops, seconds):
    return f"{flops / seconds * 1e-9:.2f}" if seconds > 0 else "-"


def main(arguments):
    parser = argparse.ArgumentParser(description="Runs examples and checks their results against NumPy.")
    parser.add_argument("--tilevm", required=True, help="the program tilevm")
    parser.add_argument("--tileasm", required=True, help="the program tileasm")
    parser.add_argument("folder", type=pathlib.Path, help="folder with kernels (.tile) and their jobs (.json)")
    parser.add_argument("names", nargs="*", help="examples to run, all if none is given")
    tools = parser.parse_args(arguments)
    for program in (tools.tilevm, tools.tileasm):
        if not os.access(program, os.X_OK):
            print(f"run_examples: {program} is not a program; build first (tools/quickstart.sh)", file=sys.stderr)
            return 3
    found = sorted(p.stem for p in tools.folder.glob("*.tile"))
    unknown = [n for n in tools.names if n not in found]
    unjudged = [n for n in found if n not in EXAMPLES or not (tools.folder / f"{n}.json").exists()]
    if unknown or unjudged or not found:
        if not found:
            print(f"run_examples: no kernels in {tools.folder}", file=sys.stderr)
        for n in unknown:
            print(f"run_examples: there is no example {n}; there are: {', '.join(found)}", file=sys.stderr)
        for n in unjudged:
            print(f"run_examples: {n}.tile has no job {n}.json or no row in EXAMPLES", file=sys.stderr)
        return 2
    failed = 0
    row = "{:<20} {:<18} {:<14} {:<21} {:>9} {:>9}"
    print(row.format("kernel", "shape", "tiles", "result", "ms", "GFLOP/s"))
    with tempfile.TemporaryDirectory() as temporary:
        for name in tools.names or found:
            if sys.stdout.isatty():
                print(f"{name} ...", end="\r", flush=True)
            problem, text, judgement, seconds = run_one(name, tools.folder, pathlib.Path(temporary), tools)
            print(row.format(name, judgement.shapes if judgement else "", EXAMPLES[name].tiles, text, f"{seconds * 1e3:.3f}",
                             rate(judgement.flops, seconds) if judgement else "-"), flush=True)
            if problem:
                failed += 1
                print("    " + problem.replace("\n", "\n    "), flush=True)
    count = len(tools.names or found)
    print(f"{count - failed} right, {failed} wrong; time: fastest of {REPEAT} launches on the CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
