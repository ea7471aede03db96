#!/usr/bin/env python3
"""Runs every launch of tests/corpus/launches, in each bytecode version at hand: outputs, prints and outcome as recorded.

Environment: TILEVM, SOURCE_DIR.  Arguments: names of launches to run instead of all."""
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
CORPUS = ROOT / "tests" / "corpus"
FEWEST = 140  # a missing folder must not look like success


def runs_of(folder):
    """(label, command) of the launch as it stands, then of the other versions of its kernel."""
    launch = folder / "launch.json"
    data = json.loads(launch.read_text())
    yield folder.name, [TILEVM, "run", str(launch)]
    own = pathlib.Path(data["bytecode"]).name
    for version in data.get("versions", []):
        name = f"{data['kernel']}.{version}.tileirbc"
        file = CORPUS / "tileirbc" / name
        if name != own and file.exists():
            yield f"{folder.name} as {version}", [TILEVM, "run", str(launch), "--kernel", str(file)]


def run(job):
    label, command = job
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return label, "still running after 120 s"
    if done.returncode == 0:
        return label, None
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return label, f"exit {done.returncode}: " + "\n    ".join(lines[:6])


def main(wanted):
    folders = sorted(p.parent for p in CORPUS.glob("launches/*/launch.json") if not wanted or p.parent.name in wanted)
    jobs = [job for folder in folders for job in runs_of(folder)]
    passed = failed = 0
    with ThreadPoolExecutor(2) as pool:
        for label, problem in pool.map(run, jobs):
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {label}: {problem}", flush=True)
    if not wanted and len(folders) < FEWEST:
        print(f"only {len(folders)} launches found in {CORPUS / 'launches'}, expected at least {FEWEST}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
