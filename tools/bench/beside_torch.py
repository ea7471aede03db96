#!/usr/bin/env python3
"""Times tilevm on the CPU beside torch and the Triton interpreter, in turn and in one run, and prints ratios.

  python3 tools/bench/beside_torch.py BUILD_DIR [--rounds N] [--json FILE]

BUILD_DIR holds kernel_bench and tilevm (cmake -DTILEVM_BENCH=ON). Needs torch and triton (pip). Each round times every
candidate once, warmed up; a figure is the median over the rounds, a ratio the median of the rounds' ratios, so that a machine
whose speed drifts gives fair ratios. Start to end of the program is measured on examples/07_ragged if it is there."""
import argparse
import json
import os
import pathlib
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


def median_time(f, warm, runs):
    for _ in range(warm):
        f()
    times = []
    for _ in range(runs):
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return statistics.median(times)


def tilevm(build, name):
    """Seconds of one launch: Google Benchmark's median of five repetitions, all cores."""
    out = subprocess.run([str(build / "kernel_bench"), f"--benchmark_filter=^{name}/0/real_time$", "--benchmark_repetitions=5",
                          "--benchmark_min_time=0.1", "--benchmark_report_aggregates_only=true", "--benchmark_format=json"],
                         capture_output=True, text=True, check=True).stdout
    runs = json.loads(out)["benchmarks"]
    return next(r["real_time"] for r in runs if r.get("aggregate_name") == "median") * 1e-3


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--json", type=pathlib.Path)
    args = ap.parse_args()
    n, tile, step = 512, 128, 64
    rows = []
    for name, dtype in (("matmul/f16", torch.float16), ("matmul/f32", torch.float32)):
        a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
        c = torch.empty(n, n, dtype=torch.float16)
        rows.append((name, 2 * n**3 * 1e-9, "GFLOP/s", lambda a=a, b=b: median_time(lambda: a @ b, 5, 15),
                     lambda a=a, b=b, c=c: median_time(lambda: matmul[(n // tile, n // tile)](a, b, c, n, n, n, tile, tile, step), 0, 1)))
    size = 1 << 22
    x, y, z = torch.rand(size), torch.rand(size), torch.empty(size)
    rows.append(("vector_add", 12 * size * 1e-9, "GB/s", lambda: median_time(lambda: torch.add(x, y, out=z), 5, 15),
                 lambda: median_time(lambda: add[(size // 4096,)](x, y, z, size, 4096), 0, 1)))
    report = {"torch": torch.__version__, "triton": triton.__version__, "threads": torch.get_num_threads(), "rounds": args.rounds, "rows": []}
    for name, work, unit, run_torch, run_triton in rows:
        times = []
        for k in range(args.rounds):
            print(f"\r{name}: round {k + 1} of {args.rounds} ", end="", file=sys.stderr, flush=True)
            times.append((tilevm(args.build, name), run_torch(), run_triton()))
        print("\r\033[K", end="", file=sys.stderr)
        ours, theirs, interpreter = (statistics.median(t[i] for t in times) for i in range(3))
        row = {"name": name, "unit": unit, "tilevm": work / ours, "torch": work / theirs, "triton_interpreter": work / interpreter,
               "of_torch": statistics.median(t[1] / t[0] for t in times), "times_triton": statistics.median(t[2] / t[0] for t in times)}
        report["rows"].append(row)
        print(f"{name:12} tilevm {row['tilevm']:8.1f} {unit:8} torch {row['torch']:8.1f}  Triton interpreter {row['triton_interpreter']:8.3f}   "
              f"{row['of_torch']:.2f} x torch, {row['times_triton']:.0f} x interpreter", flush=True)
    job = next(iter(sorted(pathlib.Path(__file__).resolve().parents[2].glob("examples/07*.json"))), None)
    if job:
        t = median_time(lambda: subprocess.run([str(args.build / "tilevm"), "run", str(job)], capture_output=True, check=True), 2, 15)
        report["start_to_end_ms"] = t * 1e3
        print(f"start to end of {job.name}: {t * 1e3:.1f} ms")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
