#!/usr/bin/env python3
"""Checkers through tilevm: each seeded defect of tests/defects is found by the right checker at the right place, the near misses of
tests/defects/clean and every launch of the corpus are silent.

A defect says what must be found at the end of a line: `// EXPECT T0115` (twice for two findings of one line); lines with `// ALSO` are the
other places that a finding must show. `// OPTIONS ...` at the top adds options.
Environment: TILEVM, SOURCE_DIR.  Arguments: names of defects to run instead of everything."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
DEFECTS = ROOT / "tests" / "defects"
FEWEST = {"defects": 63, "near misses": 22, "launches": 140}  # a missing folder must not look like success
CHECK_OF = {"T0103": "assume", "T0110": "bounds", "T0111": "bounds", "T0112": "bounds", "T0113": "init", "T0114": "race", "T0115": "order",
            "T0116": "undef", "T0117": "assume", "T0118": "bounds", "T0119": "bounds", "W0002": "nan"}
CHECKS = ["bounds", "init", "race", "order", "undef", "assume", "nan"]

# Launches of the corpus that do break a rule: both blocks exchange one word by an atomic whose scope is a single block.
FOUND_IN_CORPUS = {"load_store_orders-1": [("T0114", 44)]}


def launch(job, *options):
    command = [TILEVM, "run", str(job), "--no-check", "--diagnostics=json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    text = done.stderr.decode(errors="replace").strip()
    try:
        return done.returncode, [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError:
        return done.returncode, [{"code": "?", "line": 0, "message": text}]


def expectations(kernel):
    wanted, also, options = Counter(), set(), []
    for number, line in enumerate(kernel.read_text().splitlines(), 1):
        comment = line.partition("//")[2]
        for code in re.findall(r"EXPECT (\w+)", comment):
            wanted[(code, number)] += 1
        if "ALSO" in comment:
            also.add(number)
        if match := re.match(r"// OPTIONS (.*)", line):
            options = shlex.split(match.group(1))
    return wanted, also, options


def found(diagnostics):
    return Counter((d["code"], d.get("line", 0)) for d in diagnostics)


def defect(job):
    """Problems with one seeded defect: all checks together, the right one alone, all others."""
    wanted, also, options = expectations(job.with_suffix(".tile"))
    if not wanted:
        return [f"{job.stem}: nothing is expected"]
    codes = {code for code, _ in wanted}
    right = sorted({CHECK_OF[code] for code in codes})
    errors = any(code.startswith("T") for code in codes)
    problems = []
    for threads in ("1", "4"):
        status, diagnostics = launch(job, "--check=all", "--threads", threads, *options)
        if found(diagnostics) != wanted:
            problems.append(f"{job.stem}: expected {dict(wanted)}, found {[(d['code'], d.get('line'), d['message']) for d in diagnostics]}")
        if status != (4 if errors else 0):
            problems.append(f"{job.stem}: exit status {status}")
        shown = {n.get("line") for d in diagnostics for n in d.get("notes", [])}
        if not also <= shown:
            problems.append(f"{job.stem}: the lines {sorted(also - shown)} are not shown")
    if found(launch(job, "--check=" + ",".join(right), *options)[1]) != wanted:
        problems.append(f"{job.stem}: not found by {right} alone")
    if rest := found(launch(job, "--check=" + ",".join(c for c in CHECKS if c not in right), *options)[1]):
        problems.append(f"{job.stem}: the other checks found {dict(rest)}")
    if rest := found(launch(job, *options)[1]):
        problems.append(f"{job.stem}: without checks {dict(rest)}")
    return problems


def near_miss(job):
    problems = []
    for threads in ("1", "4"):
        status, diagnostics = launch(job, "--check=all", "--threads", threads)
        if status or diagnostics:
            problems.append(f"clean/{job.stem}: exit status {status}, {[(d['code'], d.get('line'), d['message']) for d in diagnostics]}")
    return problems


def corpus(job):
    name = job.parent.name
    status, diagnostics = launch(job, "--check=default")
    wanted = FOUND_IN_CORPUS.get(name, [])
    if json.loads(job.read_text()).get("outcome") == "assert":
        diagnostics = [d for d in diagnostics if d["code"] != "T0102"]
        status = 4 if diagnostics else 0
    errors = [(d["code"], d.get("instruction")) for d in diagnostics if d["code"] not in ("W0001", "W0002")]
    if errors != wanted or status != (4 if wanted else 0):
        return [f"launch {name}: exit status {status}, {[(d['code'], d.get('instruction'), d['message']) for d in diagnostics]}"]
    return []


def undef_modes():
    """--undef: fillings that show in the output, the same for every number of threads, and the one that stops."""
    problems = []
    job = DEFECTS / "undef_view_without_padding.json"
    shown = {}
    for mode in ("zero", "nan", "random"):
        outputs = set()
        for threads in ("1", "4"):
            command = [TILEVM, "run", str(job), "--undef", mode, "--show", "b", "--threads", threads]
            outputs.add(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False).stdout.decode())
        if len(outputs) != 1:
            problems.append(f"--undef {mode} depends on the number of threads")
        shown[mode] = outputs.pop()
    if not shown["zero"].endswith("1, 1, 0, 0\n") or not shown["nan"].endswith("nan, nan\n") or shown["random"] in (shown["zero"], shown["nan"]):
        problems.append(f"--undef: {shown}")
    status, diagnostics = launch(job, "--undef", "trap")
    if status != 4 or [d["code"] for d in diagnostics] != ["T0116"]:
        problems.append(f"--undef trap: exit status {status}, {diagnostics}")
    for options in (["--check", "bound"], ["--check", "race,"], ["--undef", "poison"]):
        status, _ = launch(job, *options)
        if status != 2:
            problems.append(f"{options}: exit status {status}, expected 2")
    return problems


def main(wanted):
    jobs = {"defects": (defect, sorted(DEFECTS.glob("*.json"))), "near misses": (near_miss, sorted((DEFECTS / "clean").glob("*.json"))),
            "launches": (corpus, sorted((ROOT / "tests" / "corpus" / "launches").glob("*/launch.json")))}
    failed = []
    for kind, (run, files) in jobs.items():
        if wanted:
            files = [f for f in files if f.stem in wanted or f.parent.name in wanted]
        elif len(files) < FEWEST[kind]:
            failed.append(f"only {len(files)} {kind}, expected at least {FEWEST[kind]}")
        with ThreadPoolExecutor(2) as pool:
            problems = [p for some in pool.map(run, files) for p in some]
        bad = len({p.partition(":")[0] for p in problems})
        print(f"{kind}: {len(files) - bad} of {len(files)} as expected")
        failed += problems
    if not wanted:
        failed += undef_modes()
    for problem in failed:
        print("FAILED " + problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
