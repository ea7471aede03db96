#!/usr/bin/env python3
"""Makes the cases of the conformance suite: generate.py --out FOLDER [--tier standard] [--only FAMILY ...]

One zip file for each family and tier. families.json in this folder has the number of cases and a SHA-256 of each, so that a change of
the generator shows; --check compares, --write-manifest writes them anew. Needs numpy, ml_dtypes and mpmath."""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import importlib
import json
import os
import pkgutil
import shutil
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import families  # noqa: E402
from families.case import TIERS, set_wanted  # noqa: E402


def all_families():
    """Name of a family -> name of its module."""
    out = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(families.__path__)):
        for name in getattr(importlib.import_module("families." + module), "FAMILIES", {}):
            out[name] = module
    return out


def write_zip(path, cases):
    """Deterministic but for the compressor; the digests are of the contents."""
    with zipfile.ZipFile(path + ".tmp", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:

        def put(name, data):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, data)

        put("index.json", json.dumps([[f"{c.family}/{c.name}", c.tier, c.name] for c in cases]))
        for c in cases:
            for name, data in c.entries():
                put(f"{c.name}/{name}", data)
    os.replace(path + ".tmp", path)


def write_folders(root, cases):
    """A case as a folder of files, as the smoke tier is kept in the repository."""
    for c in cases:
        folder = os.path.join(root, c.family, c.name)
        os.makedirs(folder, exist_ok=True)
        for name, data in c.entries():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)


def make(job):
    """One family; returns its line of the manifest."""
    name, module, tier, out, folders = job
    set_wanted(tier)
    start, by_tier, names = time.time(), {t: [] for t in TIERS[: TIERS.index(tier) + 1]}, set()
    for c in getattr(importlib.import_module("families." + module), "FAMILIES")[name]():
        if c.name in names:
            raise ValueError(f"two cases {name}/{c.name}")
        names.add(c.name)
        if c.tier in by_tier:
            by_tier[c.tier].append(c)
    line = {}
    for t, cases in by_tier.items():
        if not cases:
            continue
        h = hashlib.sha256()
        for c in cases:
            h.update(c.digest().encode())
        line[t] = {"cases": len(cases), "sha256": h.hexdigest()}
        if out:
            write_zip(os.path.join(out, f"{name}.{t}.zip"), cases)
        if folders and t == "smoke":
            write_folders(folders, cases)
    return name, line, time.time() - start


def main():
    p = argparse.ArgumentParser(description="Makes the cases of the conformance suite.")
    p.add_argument("--out", help="folder for the zip files; without it only the digests are computed")
    p.add_argument("--tier", choices=TIERS, default="standard", help="this tier and those below it")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="families")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--check", action="store_true", help="fail where the digests differ from families.json")
    p.add_argument("--write-manifest", action="store_true", help="write families.json")
    p.add_argument("--smoke-folders", metavar="DIR", help="write the smoke tier as folders (for conformance/cases)")
    p.add_argument(
        "--self-test", action="store_true", help="check the oracles against numpy and ml_dtypes, make nothing"
    )
    a = p.parse_args()
    if a.self_test:
        from oracle import test_oracle

        print(f"{test_oracle.run()} values checked")
        return 0
    if a.out:
        os.makedirs(a.out, exist_ok=True)
    if a.smoke_folders:
        shutil.rmtree(a.smoke_folders, ignore_errors=True)
    jobs = [
        (n, m, a.tier, a.out, a.smoke_folders)
        for n, m in all_families().items()
        if not a.only or any(fnmatch.fnmatchcase(n, g) for g in a.only)
    ]
    lines = {}
    with concurrent.futures.ProcessPoolExecutor(max(1, a.jobs)) as pool:
        for name, line, seconds in pool.map(make, jobs):
            lines[name] = line
            print(
                f"{name:20} " + "  ".join(f"{t} {line[t]['cases']}" for t in line) + f"  ({seconds:.1f} s)", flush=True
            )
    total = {t: sum(line.get(t, {}).get("cases", 0) for line in lines.values()) for t in TIERS}
    print("total " + ", ".join(f"{t} {n}" for t, n in total.items() if n))
    path = os.path.join(HERE, "families.json")
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            known = json.load(f)
    differ = [f"{n}.{t}" for n, line in lines.items() for t in line if known.get(n, {}).get(t) != line[t]]
    if a.write_manifest:
        for n, line in lines.items():
            known.setdefault(n, {}).update(line)
        for n in [n for n in known if n not in all_families()]:
            del known[n]
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(known, indent=1, sort_keys=True) + "\n")
    elif differ:
        print("differs from families.json: " + ", ".join(differ))
    if a.out:
        with open(os.path.join(a.out, "made.json"), "w", encoding="utf-8") as f:
            json.dump({"tier": a.tier, "families": lines}, f)
    return 1 if a.check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
