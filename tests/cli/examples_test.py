#!/usr/bin/env python3
"""The examples give right results, with every number of threads the same bits; and run_examples.py notices wrong ones.

Environment: TILEVM, TILEASM, SOURCE_DIR.  Needs NumPy; exits with 77 without it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM, TILEASM = os.environ.get("TILEVM", "tilevm"), os.environ.get("TILEASM", "tileasm")
EXAMPLES = ROOT / "examples"
WANTED = 16  # a missing file must not look like success


def run_all():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "run_examples.py"), "--tilevm", TILEVM, "--tileasm", TILEASM,
                           str(EXAMPLES)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="")
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode or not last.startswith(f"{WANTED} right, 0 wrong"):
        yield f"run_examples.py ended with {done.returncode}, {last!r}, expected {WANTED} right results"


def same_bits(temporary):
    """One thread and seven give the same memory."""
    for job in sorted(EXAMPLES.glob("*.json")):
        results = []
        for threads in ("1", "7"):
            folder = temporary / f"{job.stem}_{threads}"
            done = subprocess.run([TILEVM, "run", str(job), "--threads", threads, "--dump", str(folder)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                yield f"tilevm run {job.name} --threads {threads} ended with {done.returncode}: {done.stdout.strip()}"
                break
            results.append({f.name: f.read_bytes() for f in folder.iterdir()})
        if len(results) == 2 and results[0] != results[1]:
            yield f"{job.name}: the results of 1 thread and of 7 threads differ"


def notices(temporary, examples, np):
    """Results made wrong on purpose, in small ways."""
    def judge(name, spoil):
        folder = temporary / f"{name}_1"
        for i, file in enumerate(sorted(folder.iterdir())):
            memory = np.load(file)
            raw = memory.view(f"u{memory.dtype.itemsize}").copy()
            spoil(i, raw)
            np.save(spoiled / file.name, raw)
        return examples.check(name, json.loads((EXAMPLES / f"{name}.json").read_text()), spoiled)[0]

    spoiled = temporary / "spoiled"
    spoiled.mkdir()

    def nothing(i, raw):
        pass

    def change(which, place, to):
        def spoil(i, raw):
            if i == which:
                raw[place] = to(int(raw[place]))
        return spoil

    def up(n):
        return lambda x: x + n

    cases = [("02_loop_over_k", nothing, False), ("02_loop_over_k", change(2, 77, up(1 << 14)), True),
             ("02_loop_over_k", change(0, 5, up(1)), True), ("04_f16", change(2, 77, up(2)), True),
             ("07_ragged", change(2, 4 * 128 + 8 + 100, up(1)), True), ("07_ragged", change(2, 0, up(1)), True),
             ("07_ragged", change(0, 300, lambda x: x - 1), True), ("11_i8", change(2, 3, up(1)), True),
             ("12_f8", change(2, 0, lambda x: 0x7FC00000), True), ("vector_add_views", change(2, 999, up(1)), True),
             ("softmax_rows", change(1, 9, up(1 << 12)), True)]
    for name, spoil, wanted in cases:
        problem = judge(name, spoil)
        if bool(problem) != wanted:
            yield f"{name}: {problem or 'a wrong result counts as right'}"
        elif problem:
            print(f"noticed: {name}: {problem}")


def main():
    try:
        import numpy as np
    except ImportError:
        print("numpy is missing")
        return 77
    sys.path.insert(0, str(ROOT / "tools"))
    import run_examples
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        temporary = pathlib.Path(name)
        for part in (run_all(), same_bits(temporary), notices(temporary, run_examples, np)):
            for problem in part:
                failed += 1
                print("FAILED", problem)
    print("ok" if not failed else f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
