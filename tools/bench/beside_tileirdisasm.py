#!/usr/bin/env python3
"""tileasm beside NVIDIA's tileirdisasm: bytecode to text, per file with the start of the program included, and on a
module of 200,000 instructions.

    beside_tileirdisasm.py BUILD_DIR TILEIRDISASM [--rounds N] [--files FOLDER]

BUILD_DIR is a build with -DTILEVM_BENCH=ON; tileirdisasm is part of the Python package nvidia-cuda-tileiras. Both print
to a pipe that is read. A figure is the median over interleaved rounds, for small files over all files of the folder
that both programs read; ratios are medians of the rounds' ratios. "cpu" is user and system time of the process.
"""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH")}


def once(command):
    """Seconds by the clock, processor seconds, bytes of output; None if the program fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (wall, cpu, len(done.stdout)) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("tileirdisasm")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--files", type=pathlib.Path, default=ROOT / "tests" / "corpus" / "tileirbc")
    args = parser.parse_args()
    tileasm = str(args.build / "tileasm")

    def compare(name, files, rounds):
        ours, theirs = [], []
        for _ in range(rounds):
            # File by file, so that what else the machine does meets both.
            pairs = [(once([tileasm, "dis", f]), once([args.tileirdisasm, f])) for f in files]
            ours.append([a for a, _ in pairs])
            theirs.append([b for _, b in pairs])
        for k, what in ((0, "clock"), (1, "cpu")):
            a = [statistics.mean(x[k] for x in r) * 1e3 for r in ours]
            b = [statistics.mean(x[k] for x in r) * 1e3 for r in theirs]
            ratio = statistics.median(y / x for x, y in zip(a, b))
            print(f"| {name}, {what} | {statistics.median(a):.2f} | {min(a):.2f} | {statistics.median(b):.2f} | {min(b):.2f} | {ratio:.2f} |")

    found = sorted(str(f) for f in args.files.rglob("*") if f.is_file() and f.read_bytes()[:4] == b"\x7fTil")
    files = [f for f in found if once([tileasm, "dis", f]) and once([args.tileirdisasm, f])]
    if not files:
        sys.exit(f"{args.files}: no file that both programs read")
    print("| | tileasm, ms | least | tileirdisasm, ms | least | their time / ours |\n| --- | --- | --- | --- | --- | --- |")
    start = [once([tileasm, "explain", "E0501"])[0] * 1e3 for _ in range(50)]
    compare(f"{len(files)} of {len(found)} files, mean of one", files, args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(args.build / "codec_bench"), "--write", folder], check=True)
        for name in ("large", "large_locations"):
            path = str(pathlib.Path(folder) / f"{name}.tileirbc")
            if once([args.tileirdisasm, path]) is None:
                print(f"| {name}: tileirdisasm fails | | | | | |")
                continue
            compare(f"200,000 instructions{', with locations in the file' if 'locations' in name else ''}", [path], max(3, args.rounds // 3))
    print(f"\nStart-up of tileasm (`explain E0501`): least {min(start):.2f} ms, median {statistics.median(start):.2f} ms")


if __name__ == "__main__":
    main()
