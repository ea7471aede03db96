#!/usr/bin/env python3
"""The example of the C++ builder makes a kernel that runs and gives the right result."""
import os
import pathlib
import subprocess
import sys
import tempfile

TILEVM, TILEASM = os.environ["TILEVM"], os.environ["TILEASM"]
PROGRAM = pathlib.Path(os.environ["BUILD_DIR"]) / "build_kernel"


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "dot.tilebc"
    run(PROGRAM, file)
    run(TILEASM, "check", file)
    # 192 products of i and 2 are 2 * 191 * 192 / 2, which is exact in f32.
    shown = run(TILEVM, file, "--arg", "ptr:f32[192]=arange", "--arg", "ptr:f32[192]=full(2)", "--arg", "result=ptr:f32[1]=zeros",
                "--arg", "i32:3", "--show", "result")
    if "36672" not in shown:
        sys.exit(f"expected 36672, found {shown!r}")
    # What it prints is the same kernel.
    text = pathlib.Path(folder) / "dot.tile"
    text.write_text(run(PROGRAM))
    run(TILEASM, "diff", file, text)
print("1 passed, 0 failed")
