#!/usr/bin/env python3
"""-O0 to -O3 give right results: code of the emulation, optimised by the passes of each level, runs a fixed shard of the conformance suite's smoke tier and
the examples. Skipped without the GPU part, a processor that runs its code, or numpy. Environment: TILEVM, TILEASM, SOURCE_DIR."""
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
SHARD = "1/2"  # of the smoke tier
EXAMPLES = "03_tf32", "04_f16", "12_f8", "softmax_rows"


def main():
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True).stdout:
        print("skipped: tilevm was built without the GPU part")
        return 77
    if importlib.util.find_spec("numpy") is None:
        print("skipped: no numpy")
        return 77
    first = subprocess.run([TILEVM, "run", ROOT / "examples" / "01_one_tile.json", "--gpu=emulate"], capture_output=True, text=True)
    if "E0916" in first.stderr:
        print("skipped: this processor cannot run emulated kernels")
        return 77
    bad = 0
    impl = f"'{sys.executable}' '{ROOT / 'conformance' / 'adapters' / 'tilevm.py'}' --gpu=emulate"
    for level in range(4):
        for target in ("sm_90a", "sm_80") if level == 3 else ("sm_90a",):
            flags = f"--target {target} -O{level}"
            done = subprocess.run([sys.executable, ROOT / "conformance" / "run.py", "--impl", impl, "--shard", SHARD], capture_output=True, text=True, timeout=280, env={**os.environ, "TILEVM_FLAGS": flags})
            last = (done.stdout.strip().splitlines() or ["nothing"])[-1]
            print(f"{flags}: exit status {done.returncode}, {last}")
            if done.returncode:
                bad += 1
                print(done.stdout[-1500:] + done.stderr[-500:])
        for name in EXAMPLES:
            done = subprocess.run([TILEVM, "run", ROOT / "examples" / f"{name}.json", "--gpu=emulate", f"-O{level}"], capture_output=True, text=True, timeout=120)
            if done.returncode:
                bad += 1
                print(f"{name} -O{level}: exit status {done.returncode}: {done.stderr[-400:]}")
    # The levels are not the same code.
    texts = [subprocess.run([TILEVM, ROOT / "examples" / "04_f16.tile", "--gpu=emulate", f"-O{level}", "--emit", "llvm"], capture_output=True, text=True).stdout for level in (0, 1, 3)]
    if len(set(texts)) != 3 or not all("define" in t for t in texts):
        bad += 1
        print("the levels make the same code")
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
