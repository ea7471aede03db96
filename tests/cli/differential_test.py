#!/usr/bin/env python3
"""Random programs give the same bits on the reference machine and on the emulation of GPUs, and ptxas takes their PTX.

Skipped without the GPU part. The part with ptxas is left out where there is none (TILEVM_PTXAS, PATH, or the pip package
nvidia-cuda-nvcc). Environment: BUILD_DIR, RANDOM_FIRST and RANDOM_COUNT (seeds, 1 and 300), RANDOM_PTXAS (programs for ptxas, 10)."""
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from ptx_targets_test import find_ptxas  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("BUILD_DIR", "build")) / "random_programs"
FIRST = int(os.environ.get("RANDOM_FIRST", "1"))
COUNT = int(os.environ.get("RANDOM_COUNT", "300"))
PTXAS_COUNT = int(os.environ.get("RANDOM_PTXAS", "10"))
SKIP = 77


def run(*arguments):
    done = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode:
        print(done.stderr)
        print(f"exit status {done.returncode} of random_programs {' '.join(map(str, arguments))}", file=sys.stderr)
    return done.returncode == 0


def assemble(ptxas, path):
    target = path.name.split(".")[1]
    done = subprocess.run([ptxas, "-arch", target, "-o", os.devnull, str(path)], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{path.name}: {done.stderr[:500]}"


def main():
    if not PROGRAM.exists():
        print("no GPU part")
        return SKIP
    good = run("--first", FIRST, "--count", COUNT, "--targets", "sm_90a,sm_80", "--ptx", "sm_75")
    with tempfile.TemporaryDirectory() as folder:
        good = run("--first", FIRST, "--count", PTXAS_COUNT, "--ptx", "sm_75,sm_80,sm_90a", "--ptx-dir", folder) and good
        ptxas = find_ptxas()
        if not ptxas:
            print("no ptxas")
            return 0 if good else 1
        paths = sorted(pathlib.Path(folder).glob("*.ptx"))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            refused = [text for text in pool.map(lambda p: assemble(ptxas, p), paths) if text]
    print(f"{len(paths)} PTX files, {len(refused)} refused by ptxas")
    for text in refused:
        print(text, file=sys.stderr)
    return 0 if good and not refused else 1


if __name__ == "__main__":
    sys.exit(main())
