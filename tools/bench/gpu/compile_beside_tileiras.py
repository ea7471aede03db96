#!/usr/bin/env python3
"""Time from bytecode to cubin: tilevm beside NVIDIA's tileiras, in turn, on this machine; no GPU needed. Prints a Markdown table.

  python3 tools/bench/gpu/compile_beside_tileiras.py TILEVM FOLDER [--arch sm_90] [--rounds N]

FOLDER holds *.tileirbc. tileiras comes with the pip package nvidia-cuda-tileiras of the running Python; tilevm assembles with the ptxas that
TILEVM_PTXAS names or that it finds. The fastest of the rounds counts, start-up of both programs included; tilevm's cache is not used."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time


def seconds(command, environment):
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


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
    print("| kernel | tilevm, s | tileiras, s | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            ours, peers = [], []
            for _ in range(options.rounds):
                ours.append(seconds([options.tilevm, kernel, "--gpu", "--no-cache", "--target", options.arch + "a", "--emit", f"cubin={folder}/ours.cubin"], None))
                peers.append(seconds([tileiras, "--gpu-name", options.arch, kernel, "-o", f"{folder}/peer.cubin"], peer_environment))
            ratios.append(min(ours) / min(peers))
            print(f"| {kernel.stem} | {min(ours):.3f} | {min(peers):.3f} | {ratios[-1]:.2f} |", flush=True)
    print(f"\nMedian {statistics.median(ratios):.2f}, largest {max(ratios):.2f}; above one half: {sum(r > 0.5 for r in ratios)} of {len(ratios)}.")


if __name__ == "__main__":
    main()
