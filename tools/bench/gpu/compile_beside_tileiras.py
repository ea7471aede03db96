#!/usr/bin/env python3
"""Time from bytecode to cubin: tilevm beside NVIDIA's tileiras, in turn, on this machine; no GPU needed. Prints a Markdown table.

  python3 tools/bench/gpu/compile_beside_tileiras.py TILEVM FOLDER [--arch sm_90] [--rounds N]

FOLDER holds *.tileirbc. tileiras comes with the pip package nvidia-cuda-tileiras of the running Python; tilevm assembles with the ptxas that
TILEVM_PTXAS names or that it finds. The fastest of the rounds counts, start-up of both programs included; tilevm's cache is not used. Beside the time
from start to end stands the processor time of all processes, which other work on the machine changes less."""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time


def seconds(command, environment):
    """(from start to end, processor time of the process and its children)"""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}: {done.stderr[-300:]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilevm")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    package = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    tileiras = package / "bin" / "tileiras"
    if not os.access(tileiras, os.X_OK):
        sys.exit(f"{tileiras} is not there: pip install nvidia-cuda-tileiras")
    # With CUDA_HOME or CUDA_PATH set, tileiras takes another libNVVM.
    peer_environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH")}
    peer_environment |= {"PATH": f"{package / 'bin'}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(package / "lib")}
    kernels = sorted(options.folder.glob("*.tileirbc"))
    if not kernels:
        sys.exit(f"no *.tileirbc in {options.folder}")
    ratios = []
    print("| kernel | tilevm, s | tileiras, s | ratio | processor: tilevm, s | tileiras, s | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            ours, peers = [], []
            for _ in range(options.rounds):
                ours.append(seconds([options.tilevm, kernel, "--gpu", "--no-cache", "--target", options.arch + "a", "--emit", f"cubin={folder}/ours.cubin"], None))
                peers.append(seconds([tileiras, "--gpu-name", options.arch, kernel, "-o", f"{folder}/peer.cubin"], peer_environment))
            fastest = [[min(run[k] for run in runs) for runs in (ours, peers)] for k in (0, 1)]
            ratios.append([a / b for a, b in fastest])
            print(f"| {kernel.stem} | " + " | ".join(f"{a:.3f} | {b:.3f} | {a / b:.2f}" for a, b in fastest) + " |", flush=True)
    for k, what in ((0, "From start to end"), (1, "Processor time")):
        column = [r[k] for r in ratios]
        print(f"\n{what}: median {statistics.median(column):.2f}, largest {max(column):.2f}; above one half: {sum(r > 0.5 for r in column)} of {len(column)}.")


if __name__ == "__main__":
    main()
