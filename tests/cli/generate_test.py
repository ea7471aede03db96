#!/usr/bin/env python3
"""The digests in tests/unit/generate_test.cpp are those of tools/python/tile_generate.py.  Needs numpy; exits with 77 without it."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWIN = ROOT / "tools" / "python" / "tile_generate.py"
GOLDEN = re.compile(r'\{"([^"]+)",\s*(\d+),\s*(0x[0-9a-f]+)\}')


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("numpy is missing")
        return 77
    cases = GOLDEN.findall((ROOT / "tests" / "unit" / "generate_test.cpp").read_text())
    if len(cases) < 30:
        print(f"only {len(cases)} digests found in generate_test.cpp")
        return 1
    wrong = 0
    for source, count, digest in cases:
        run = subprocess.run([sys.executable, str(TWIN), "--digest", source], stdout=subprocess.PIPE, text=True, check=False)
        if run.stdout.split() != [count, digest]:
            wrong += 1
            print(f"{source}: {run.stdout.strip() or 'no output'}, expected {count} {digest}")
    print(f"{len(cases) - wrong} of {len(cases)} digests agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
