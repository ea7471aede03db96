#!/usr/bin/env python3
"""Writes the suite as a folder of portable tests: export.py --to tileirbc@13.3 DIR

DIR gets the cases, their kernels in the wanted form, with inputs and expected memory as plain files; the rules (protocol.md); and the runner,
so that the folder needs nothing else of this project but Python and numpy. Needs tileasm for other forms than text."""

import argparse
import collections
import json
import os
import shutil
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import run  # noqa: E402
from runner import execute, export, suite  # noqa: E402

# What the folder carries of the suite's own files: enough to judge an implementation.
CARRIED = (
    "run.py",
    "protocol.md",
    "bounds.md",
    "abi/tile_impl.h",
    "abi/template.c",
    "adapters/template.py",
    "adapters/library.py",
    "pytest_plugin/pytest_tile_conformance.py",
)

README = """# Conformance cases of Tile IR, kernels as {form}

{count} cases of tier {tier}, made by `conformance export`. `cases/FAMILY/NAME/` holds `case.json`, the kernel, the memory of every buffer before the launch
and the arrays that must be there afterwards, all raw and little-endian. `protocol.md` says what the keys mean (sections 2, 5, 6) and when a
result is right; `cases.json` lists [name, tier, kernel form, goal, outcome] of every case.

With the runner that lies here (Python and numpy):

    python3 run.py --tier {tier} --impl "COMMAND"          or a shared library: abi/tile_impl.h

As tests of a project that uses pytest:

    pytest -p pytest_tile_conformance --tile-suite DIR --tile-impl "COMMAND"          with DIR/pytest_plugin in PYTHONPATH

Without either: for each case read `case.json`, load the kernel, place the buffers in memory, launch `entry` over `grid` with `params`, and
compare by the rules of `expect`.

Left out: {left_out}.
"""


def options(argv, prog):
    p = argparse.ArgumentParser(prog=prog, description="Writes the suite as a folder of portable tests.")
    p.add_argument("dir", metavar="DIR", help="must not exist, or be such a folder")
    p.add_argument("--to", default="text", metavar="FORM", help="text, tilebc, tileirbc@13.1 to tileirbc@13.5 (text)")
    p.add_argument("--tier", choices=suite.TIERS, default="smoke", help="this tier and those below it (smoke)")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="cases")
    p.add_argument("--suite", action="append", default=[], metavar="PATH", help="cases instead of those of the tier")
    p.add_argument("--cache", default=run.DEFAULT_CACHE, help="where generated cases are kept")
    p.add_argument("--zip", action="store_true", help="one zip file for each family instead of folders")
    p.add_argument("--assembler", metavar="COMMAND", default=os.environ.get("TILEASM", "tileasm"))
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return p.parse_args(argv)


def main(argv=None, prog=None):
    a = options(argv, prog)
    try:
        exporter = export.Exporter(a.to, execute.Assembler(a.assembler))
        paths = a.suite or run.case_paths(a)
        refs = suite.select(suite.find(paths, threading.Lock()), a.tier, a.only)
    except (execute.Broken, OSError, ValueError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 3
    if not refs:
        print("error: no case fits", file=sys.stderr)
        return 3
    index = os.path.join(a.dir, "cases.json")
    if os.path.exists(a.dir) and os.listdir(a.dir) and not os.path.exists(index):
        print(f"error: {a.dir} is there and not of this making", file=sys.stderr)
        return 3
    shutil.rmtree(os.path.join(a.dir, "cases"), ignore_errors=True)
    root = os.path.join(a.dir, "cases")
    os.makedirs(root, exist_ok=True)
    left, listed, zips = collections.Counter(), [], {}
    for case, files in exporter.all(refs, a.jobs):
        if not isinstance(case, dict):
            left[files] += 1
            continue
        listed.append([case["case"], case["tier"], case["form"], case["goal"], case["expect"]["outcome"]])
        if a.zip:
            family = case["case"].split("/")[0]
            if family not in zips:
                zips[family] = export.ZipWriter(os.path.join(root, f"{family}.zip"))
            zips[family].add(case, files)
        else:
            export.write_folder(root, case, files)
    for z in zips.values():
        z.close()
    for name in CARRIED:
        target = os.path.join(a.dir, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(HERE, name), target)
    os.makedirs(os.path.join(a.dir, "runner"), exist_ok=True)
    for name in sorted(os.listdir(os.path.join(HERE, "runner"))):
        if name.endswith(".py"):
            shutil.copyfile(os.path.join(HERE, "runner", name), os.path.join(a.dir, "runner", name))
    why = "; ".join(f"{n}: {reason}" for reason, n in left.most_common()) or "nothing"
    with open(os.path.join(a.dir, "README.md"), "w", encoding="utf-8") as f:
        f.write(README.format(form=a.to, count=len(listed), tier=a.tier, left_out=why))
    with open(index, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in listed) + "\n]\n")
    print(f"{a.dir}: {len(listed)} cases as {a.to}" + (f"; left out: {why}" if left else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
