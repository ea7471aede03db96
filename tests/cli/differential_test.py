#!/usr/bin/env python3
"""Random programs give the same bits on the reference machine and on the emulation of GPUs, and ptxas takes their PTX.

Skipped without the GPU part. The part with ptxas is left out where there is none (TILEVM_PTXAS, PATH, or the pip package
nvidia-cuda-nvcc). Environment: BUILD_DIR, RANDOM_FIRST and RANDOM_COUNT (seeds, 1 and 300), RANDOM_PTXAS (programs for ptxas, 10)."""
import json
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


# Stands for random_programs: seed 25 differs, seed 31 crashes, seed 47 is refused.
STAND_IN = """#!{python}
import json, os, sys
value = dict(zip(sys.argv[2::2], sys.argv[3::2]))
seeds = range(int(value["--first"]), int(value["--first"]) + int(value["--count"]))
if 31 in seeds:
    os.abort()
if 25 in seeds:
    open(value["--out"] + "/25_sm_80.tile", "w").write("the program")
    print("seed 25, sm_80: array 0 differs")
print(json.dumps({{"programs": len(seeds), "compared": {{"sm_80": len(seeds)}}, "ptx": {{}}, "refused": {{"sm_80: too large": 1}} if 47 in seeds else {{}},
                  "faults": int(25 in seeds), "seconds": 1}}))
"""


def many(folder, program, *arguments):
    out = pathlib.Path(folder) / "summary.json"
    done = subprocess.run([sys.executable, pathlib.Path(__file__).resolve().parents[1] / "random" / "run_many.py", program, out, *map(str, arguments)],
                          capture_output=True, text=True)
    return done.returncode, json.loads(out.read_text()) if out.exists() else {"kept": done.stderr}


def found_before():
    """Programs that once showed a fault (tests/random/found, reduced): they agree, and become PTX."""
    tilevm, good = PROGRAM.parent / "tilevm", True
    for job in sorted((pathlib.Path(__file__).resolve().parents[1] / "random" / "found").glob("*.json")):
        for words in [["--gpu=emulate", "--both", "--target", t, "--emulate-policy", p] for t in ("sm_90a", "sm_80") for p in ("early", "late", "random")] + [
                ["--gpu", "--emit", f"ptx={os.devnull}", "--target", t] for t in ("sm_90a", "sm_80")]:
            done = subprocess.run([tilevm, "run", job, *words], capture_output=True, text=True, timeout=100, check=False)
            if done.returncode:
                print(job.name, *words, done.stdout[-300:], done.stderr[-900:], file=sys.stderr)
                good = False
    return good


def finds_faults(folder):
    """run_many.py keeps what differs, and finds the seed of a crash."""
    program = pathlib.Path(folder) / "stand_in"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    status, found = many(folder, program, "--mix", "20:1:60", "--jobs", 2)
    kept = found["kept"]
    good = (status == 1 and found["programs"] == 59 and found["faults"] == 1 and len(kept) == 2 and found["refused"] == {"sm_80: too large": 1} and
            any(k["files"] == {"25_sm_80.tile": "the program"} for k in kept) and any(k["what"].startswith("seed 31,") for k in kept))
    if not good:
        print(f"run_many.py: exit status {status}, {found}", file=sys.stderr)
    return good


def main():
    if not PROGRAM.exists():
        print("no GPU part")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        status, found = many(folder, PROGRAM, "--mix", f"20:1:{COUNT}", "--first", FIRST, "--ptx", "sm_75")
        print(found)
        good = status == 0 and found["programs"] == COUNT
        good = finds_faults(folder) and good
        good = found_before() and good
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
