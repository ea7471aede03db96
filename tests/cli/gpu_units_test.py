#!/usr/bin/env python3
"""spec/gpu-units.md is what the compiler says of every target. Skipped without the GPU part. Environment: TILEVM, SOURCE_DIR."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")

if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True).stdout:
    print("skipped: tilevm was built without the GPU part")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, ROOT / "tools" / "gpu_units.py", TILEVM, "--check", ROOT / "spec" / "gpu-units.md"]).returncode)
