#!/usr/bin/env python3
"""Times tilevm on the CPU beside torch and the Triton interpreter, in turn and in one run, and prints ratios.

  python3 tools/bench/beside_torch.py BUILD_DIR [--rounds N] [--only REGEX] [--json FILE]

BUILD_DIR holds kernel_bench and tilevm (cmake -DTILEVM_BENCH=ON). Needs torch and triton (pip). Each round times every
candidate once, warmed up; a figure is the median over the rounds, a ratio the median of the rounds' ratios, so that a machine
whose speed drifts gives fair ratios. Where memory is the limit, a loop by hand over arrays of the same size (kernel_bench's loop/...)
says what the machine gives, with all threads and with one. Workloads of one big block have no peer: what counts there is how much two
threads gain. Start to end of the program is measured on examples/07_ragged if it is there."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + (k + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


@triton.jit
def add(a, b, c, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(c + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, y, N: tl.constexpr, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * N + tl.arange(0, N)[None, :]
    rows = tl.load(x + i)
    e = tl.exp(rows - tl.max(rows, 1)[:, None])
    tl.store(y + i, e / tl.sum(e, 1)[:, None])


@triton.jit
def layernorm(x, w, b, y, N: tl.constexpr, B: tl.constexpr):
    j = tl.arange(0, N)[None, :]
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * N + j
    rows = tl.load(x + i)
    d = rows - (tl.sum(rows, 1) / N)[:, None]
    r = 1 / tl.sqrt(tl.sum(d * d, 1) / N + 1e-5)
    tl.store(y + i, d * r[:, None] * tl.load(w + j) + tl.load(b + j))


@triton.jit
def transpose(x, y, N: tl.constexpr, B: tl.constexpr):
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    t = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(y + j[:, None] * N + i[None, :], tl.trans(t))


@triton.jit
def reduce(x, y, N: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.sum(tl.load(x + i[:, None] * N + tl.arange(0, N)[None, :]), 1))


@triton.jit
def scan(x, y, N: tl.constexpr, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + i, tl.cumsum(tl.load(x + i), 1))


@triton.jit
def gather(x, index, y, N: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.arange(0, N)[None, :]
    tl.store(y + i[:, None] * N + j, tl.load(x + tl.load(index + i)[:, None] * N + j))


@triton.jit
def attention(q, k, v, y, N: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    j = tl.arange(0, D)[None, :]
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None] * D + j
    qs = tl.load(q + i) * 0.125
    acc = tl.zeros((B, D), tl.float32)
    most = tl.full((B,), float("-inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    for at in range(0, N, B):
        n = (at + tl.arange(0, B))[:, None] * D + j
        s = tl.dot(qs, tl.trans(tl.load(k + n)))
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(most - new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p, tl.load(v + n), acc * alpha[:, None])
        most = new
    tl.store(y + i, acc / total[:, None])


def median_time(f, warm, runs):
    for _ in range(warm):
        f()
    times = []
    for _ in range(runs):
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return statistics.median(times)


def workloads():
    """Name, work of one run, its unit, torch, Triton."""
    n, tile, step = 512, 128, 64
    for name, dtype in (("matmul/f16", torch.float16), ("matmul/f32", torch.float32)):
        a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
        c = torch.empty(n, n, dtype=torch.float16)
        yield (name, 2 * n**3 * 1e-9, "GFLOP/s", lambda a=a, b=b: a @ b,
               lambda a=a, b=b, c=c: matmul[(n // tile, n // tile)](a, b, c, n, n, n, tile, tile, step))
    size = 1 << 22
    x, y, z = torch.rand(size), torch.rand(size), torch.empty(size)
    yield ("vector_add", 12 * size * 1e-9, "GB/s", lambda: torch.add(x, y, out=z), lambda: add[(size // 4096,)](x, y, z, size, 4096))
    rows, columns = 2048, 1024
    m, o, w, b = torch.randn(rows, columns), torch.empty(rows, columns), torch.randn(columns), torch.randn(columns)
    moved = 4 * rows * columns * 1e-9
    yield ("softmax", 2 * moved, "GB/s", lambda: torch.softmax(m, 1), lambda: softmax[(rows // 32,)](m, o, columns, 32))
    yield ("layernorm", 2 * moved, "GB/s", lambda: torch.nn.functional.layer_norm(m, (columns,), w, b), lambda: layernorm[(rows // 32,)](m, w, b, o, columns, 32))
    s, t = torch.randn(2048, 2048), torch.empty(2048, 2048)
    yield ("transpose", 8 * 2048 * 2048e-9, "GB/s", lambda: t.copy_(s.t()), lambda: transpose[(32, 32)](s, t, 2048, 64))
    sums = torch.empty(rows)
    yield ("reduce", moved, "GB/s", lambda: torch.sum(m, 1, out=sums), lambda: reduce[(rows // 64,)](m, sums, columns, 64))
    yield ("scan", 2 * moved, "GB/s", lambda: torch.cumsum(m, 1, out=o), lambda: scan[(rows // 16,)](m, o, columns, 16))
    table, index, picked = torch.randn(65536, 64), torch.randint(0, 65536, (16384,), dtype=torch.int32), torch.empty(16384, 64)
    yield ("gather", 8 * 16384 * 64e-9, "GB/s", lambda: torch.index_select(table, 0, index, out=picked),
           lambda: gather[(64,)](table, index, picked, 64, 256))
    q, k, v, r = (torch.randn(1, 1, 1024, 64) for _ in range(4))
    yield ("attention", 4 * 1024 * 1024 * 64e-9, "GFLOP/s", lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
           lambda: attention[(8,)](q, k, v, r, 1024, 64, 128))


LOOPS = {"vector_add": ("loop/vector_add", "loop/vector_add_stream"), "reduce": ("loop/reduce",), "gather": ("loop/gather",)}
BIG = [("big_chain", 12 * 1024 * 1024e-9, "GB/s"), ("big_rows", 8 * 1024 * 1024e-9, "GB/s"), ("big_product", 2 * 512**3 * 1e-9, "GFLOP/s")]


def tilevm(build, name, threads=0):
    """Seconds of one launch: Google Benchmark's median of five repetitions; threads 0: all cores."""
    out = subprocess.run([str(build / "kernel_bench"), f"--benchmark_filter=^{name}/{threads}/real_time$", "--benchmark_repetitions=5",
                          "--benchmark_min_time=0.05", "--benchmark_report_aggregates_only=true", "--benchmark_format=json"],
                         capture_output=True, text=True, check=True).stdout
    runs = json.loads(out)["benchmarks"]
    return next(r["real_time"] for r in runs if r.get("aggregate_name") == "median") * 1e-3


def rounds(name, count, f):
    """What f gives in each round."""
    out = []
    for k in range(count):
        if sys.stderr.isatty():
            print(f"\r{name}: round {k + 1} of {count} ", end="", file=sys.stderr, flush=True)
        out.append(f())
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return out


def beside(build, count, name, work, unit, run_torch, run_triton):
    def once():
        t = {"tilevm": tilevm(build, name), "torch": median_time(run_torch, 5, 15), "triton": median_time(run_triton, 0, 1), "one": tilevm(build, name, 1)}
        loops = [(tilevm(build, loop), tilevm(build, loop, 1)) for loop in LOOPS.get(name, ())]
        if loops:
            t["loop"], t["loop_one"] = (min(times) for times in zip(*loops))
        return t
    times = rounds(name, count, once)
    middle = {key: statistics.median(t[key] for t in times) for key in times[0]}
    ratio = lambda a, b: statistics.median(t[a] / t[b] for t in times)
    row = {"name": name, "unit": unit, "tilevm": work / middle["tilevm"], "torch": work / middle["torch"], "triton_interpreter": work / middle["triton"],
           "of_torch": ratio("torch", "tilevm"), "times_triton": ratio("triton", "tilevm"), "of_one_thread": ratio("one", "tilevm")}
    text = (f"{name:12} tilevm {row['tilevm']:8.1f} {unit:8} torch {row['torch']:8.1f}  Triton interpreter {row['triton_interpreter']:8.3f}   "
            f"{row['of_torch']:.2f} x torch, {row['times_triton']:.0f} x interpreter, {row['of_one_thread']:.2f} x one thread")
    if "loop" in middle:
        row["loop"], row["loop_of_one_thread"] = work / middle["loop"], ratio("loop_one", "loop")
        text += f"; a loop by hand {row['loop']:.1f}, {row['loop_of_one_thread']:.2f} x one thread"
    print(text, flush=True)
    return row


def big(build, count, name, work, unit):
    times = rounds(name, count, lambda: (tilevm(build, name), tilevm(build, name, 1)))
    row = {"name": name, "unit": unit, "tilevm": work / statistics.median(t[0] for t in times), "of_one_thread": statistics.median(t[1] / t[0] for t in times)}
    print(f"{name:12} tilevm {row['tilevm']:8.1f} {unit:8} one block, {row['of_one_thread']:.2f} x one thread", flush=True)
    return row


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--only", default="", help="names of workloads, a regular expression")
    ap.add_argument("--json", type=pathlib.Path)
    args = ap.parse_args()
    report = {"torch": torch.__version__, "triton": triton.__version__, "threads": torch.get_num_threads(), "rounds": args.rounds,
              "load_before": os.getloadavg(), "rows": []}
    report["rows"] += [beside(args.build, args.rounds, *w) for w in workloads() if re.search(args.only, w[0])]
    report["rows"] += [big(args.build, args.rounds, *w) for w in BIG if re.search(args.only, w[0])]
    job = next(iter(sorted(pathlib.Path(__file__).resolve().parents[2].glob("examples/07*.json"))), None)
    if job and not args.only:
        t = median_time(lambda: subprocess.run([str(args.build / "tilevm"), "run", str(job)], capture_output=True, check=True), 2, 15)
        report["start_to_end_ms"] = t * 1e3
        print(f"start to end of {job.name}: {t * 1e3:.1f} ms")
    report["load_after"] = os.getloadavg()
    print(f"load average {report['load_before'][0]:.1f} before, {report['load_after'][0]:.1f} after")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
