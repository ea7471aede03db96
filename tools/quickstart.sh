#!/bin/sh
# From an empty Debian machine to a running kernel: installs what is missing, builds tileasm and tilevm, runs the examples.
set -eu
cd "$(dirname "$0")/.."
jobs=${TILEVM_JOBS:-$(nproc 2>/dev/null || echo 2)}

tools/setup.sh build
echo "quickstart: building (about a minute)"
cmake --preset release
cmake --build --preset release -j "$jobs"
# The interpreter with NumPy need not be the first one on the path.
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
"$python" tools/run_examples.py --tilevm build/release/tilevm --tileasm build/release/tileasm examples
