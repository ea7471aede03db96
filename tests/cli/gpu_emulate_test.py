#!/usr/bin/env python3
"""The emulated GPU: every example and every launch of the corpus on sm_90a, the examples on sm_80 under each policy of asynchronous copies,
the smoke tier and a fixed shard of the standard tier of the conformance suite on both targets.

Skipped without the GPU part or a processor that runs its code. Environment: TILEVM, TILEASM, SOURCE_DIR."""
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
SHARD = "1/24"  # of the standard tier
SKIP = 77


def run(arguments):
    try:
        done = subprocess.run([TILEVM, *arguments], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "" if done.returncode == 0 else f"exit {done.returncode}: " + (done.stdout + done.stderr).strip()[-400:]


def jobs():
    for job in sorted((ROOT / "examples").glob("*.json")):
        yield ["run", str(job), "--gpu=emulate"]
        for policy in "early", "late":
            yield ["run", str(job), "--gpu=emulate", "--target", "sm_80" if policy == "late" else "sm_90a", "--emulate-policy", policy]
    corpus = ROOT / "tests" / "corpus"
    for launch in sorted(corpus.glob("launches/*/launch.json")):
        kernel = corpus / json.loads(launch.read_text())["bytecode"]
        yield ["run", str(launch), "--kernel", str(kernel), "--gpu=emulate"]


def suite(target, *arguments):
    command = [sys.executable, str(ROOT / "conformance" / "run.py"), "--impl", f"'{sys.executable}' '{ROOT / 'conformance' / 'adapters' / 'tilevm.py'}' --gpu=emulate", *arguments]
    environment = {**os.environ, "TILEVM_FLAGS": f"--target {target}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    return "" if done.returncode == 0 else f"exit {done.returncode}: " + done.stdout[-1500:] + done.stderr[-500:]


def main():
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True, check=True).stdout:
        print("skipped: tilevm was built without the GPU part")
        return SKIP
    first = run(["run", str(ROOT / "examples" / "01_one_tile.json"), "--gpu=emulate"])
    if "E0904" in first or "E0916" in first:
        print("skipped: this processor cannot run emulated kernels")
        return SKIP
    work = list(jobs())
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for arguments, problem in zip(work, pool.map(run, work)):
            if problem:
                bad += 1
                print(" ".join(arguments[1:]) + ": " + problem)
    done = len(work)
    if done < 170:
        bad += 1
        print(f"only {done} launches were found")
    try:
        import numpy  # noqa: F401, PLC0415
    except ImportError:
        print("the conformance suite was left out: no numpy")
    else:
        for target in "sm_90a", "sm_80":
            for arguments in (["--tier", "smoke"], ["--tier", "standard", "--shard", SHARD]):
                done += 1
                if problem := suite(target, *arguments):
                    bad += 1
                    print(f"conformance {target} {' '.join(arguments)}: {problem}")
    print(f"{done - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
