#!/usr/bin/env python3
"""Judges an implementation of Tile IR: run.py --impl "COMMAND" [--tier smoke|standard|full]

The smoke tier is read from conformance/cases; larger tiers are made by generate.py into --cache the first time. Exit status: 0 nothing
failed, 5 something did, 2 usage, 3 the implementation or the suite cannot be used, 130 interrupted."""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

if __name__ == "__main__" and importlib.util.find_spec("numpy") is None:
    print(f"error: the runner needs numpy: {sys.executable} -m pip install numpy", file=sys.stderr)
    sys.exit(3)

from runner import execute, report, suite  # noqa: E402

DEFAULT_CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "tile-conformance"
)


def options(argv, prog):
    p = argparse.ArgumentParser(
        prog=prog,
        description="Judges an implementation of Tile IR by the conformance suite (protocol.md).",
        epilog="Exit status: 0 nothing failed, 5 something did, 2 usage, 3 the implementation or the suite cannot be used, 130 interrupted.",
    )
    p.add_argument(
        "--impl",
        metavar="IMPL",
        help="the implementation under test: a command, a shared library (.so), 'tilevm [--cpu|--gpu|--gpu=emulate]' or tileiras",
    )
    p.add_argument(
        "--tier", choices=suite.TIERS, help="cases of this tier and those below it (smoke; of --suite all of them)"
    )
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="cases, such as 'float_arith/addf.*'")
    p.add_argument("--shard", default="1/1", metavar="K/N", help="the k-th of n parts")
    p.add_argument(
        "--suite",
        action="append",
        default=[],
        metavar="PATH",
        help="folder or zip file with cases, instead of those of the tier",
    )
    p.add_argument("--cache", default=DEFAULT_CACHE, help=f"where generated cases are kept ({DEFAULT_CACHE})")
    p.add_argument("--form", default="text", help="form of the kernels: text, tilebc, tileirbc@13.3 ...")
    p.add_argument(
        "--assembler",
        metavar="COMMAND",
        default=os.environ.get("TILEASM", "tileasm"),
        help="makes other forms from text ($TILEASM, tileasm)",
    )
    p.add_argument(
        "--profile", choices=("language", "tilevm"), help="judge by this profile, whatever the implementation says"
    )
    p.add_argument("--timeout", type=float, default=20, metavar="S", help="seconds for one case")
    p.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run every case N times; the first failure counts"
    )
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument(
        "--no-batch",
        action="store_true",
        help="a process of the implementation for each case, even if it has a batch mode",
    )
    p.add_argument("--resume", action="store_true", help="leave out the cases that --log has already")
    p.add_argument("--log", metavar="FILE", help="one result a line as JSON, written as the run goes on")
    p.add_argument("--keep", metavar="DIR", help="keep the folders of cases that fail")
    p.add_argument("--junit", metavar="FILE")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--html", metavar="FILE")
    p.add_argument(
        "--diff",
        action="append",
        default=[],
        metavar="OLD.json",
        help="compare with another report, of an older run or another implementation; may be given several times",
    )
    p.add_argument("--merge", nargs="+", metavar="FILE.json", help="no run: put the reports of several shards together")
    p.add_argument("--list", action="store_true", help="no run: print the names of the cases")
    p.add_argument("--quiet", action="store_true", help="no progress, no list of failures")
    a = p.parse_args(argv)
    if not (a.impl or a.merge or a.list):
        p.error("--impl is needed")
    if a.resume and not a.log:
        p.error("--resume needs --log")
    a.shown_tier = a.tier or ("of the given cases" if a.suite else "smoke")
    a.tier = a.tier or ("full" if a.suite else "smoke")
    return a


def generated(a):
    """Makes the cases of a tier unless they are in the cache."""
    with open(os.path.join(HERE, "families.json"), encoding="utf-8") as f:
        known = json.load(f)
    try:
        with open(os.path.join(a.cache, "made.json"), encoding="utf-8") as f:
            made = json.load(f)
        fresh = (
            suite.TIERS.index(made["tier"]) >= suite.TIERS.index(a.tier)
            and set(made["families"]) == set(known)
            and all(
                made["families"][n].get(t) == known[n].get(t)
                for n in known
                for t in suite.TIERS[: suite.TIERS.index(a.tier) + 1]
            )
        )
    except (OSError, ValueError, KeyError):
        fresh = False
    if not fresh:
        missing = [n for n in ("numpy", "ml_dtypes", "mpmath") if importlib.util.find_spec(n) is None]
        if missing:
            raise execute.Broken(
                f"cases beyond the smoke tier are made with {' and '.join(missing)}, which this Python lacks: "
                f"{sys.executable} -m pip install {' '.join(missing)}"
            )
        print(f"making the cases of tier {a.tier} in {a.cache}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "generate.py"), "--out", a.cache, "--tier", a.tier],
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise execute.Broken("generate.py failed (it needs numpy, ml_dtypes and mpmath)")
        if "differs from" in done.stdout:
            print("warning: " + done.stdout.strip().split("\n")[-1], file=sys.stderr)
    paths = [os.path.join(a.cache, n) for n in sorted(os.listdir(a.cache)) if n.endswith(".zip")]
    return [
        p
        for p in paths
        if suite.TIERS.index(p.rsplit(".", 2)[1]) <= suite.TIERS.index(a.tier)
        and os.path.basename(p).split(".")[0] in known
    ]


def case_paths(a):
    """Where the cases of a tier are. A folder that export.py made has them all in cases/."""
    exported = not os.path.exists(os.path.join(HERE, "generate.py"))
    return [os.path.join(HERE, "cases")] if a.tier == "smoke" or exported else generated(a)


class Progress:
    """One line that is written over where standard error is a terminal, else a line every tenth."""

    def __init__(self, total, quiet):
        self.total, self.quiet, self.start, self.terminal = total, quiet, time.monotonic(), sys.stderr.isatty()
        self.done = self.bad = self.shown = 0

    def update(self, result):
        self.done += 1
        failed = result["verdict"] in report.FAILURES
        self.bad += failed
        if self.quiet:
            return
        if failed and self.bad <= 50:
            clear = "\r\x1b[K" if self.terminal else ""
            print(
                f"{clear}{result['verdict'].upper():8} {result['case']}: {result['detail']}",
                file=sys.stderr,
                flush=True,
            )
        if self.terminal or self.done == self.total or self.done * 10 // self.total > self.shown:
            self.shown = self.done * 10 // self.total
            spent = time.monotonic() - self.start
            text = f"{self.done}/{self.total} cases, {self.bad} failed, {spent:.0f} s, about {spent / self.done * (self.total - self.done):.0f} s left"
            print(
                ("\r\x1b[K" + text) if self.terminal else text,
                end="" if self.terminal and self.done < self.total else "\n",
                file=sys.stderr,
                flush=True,
            )


def main(argv=None, prog=None):
    a = options(argv, prog)
    if a.merge:
        return report.finish(report.merged([report.load(p) for p in a.merge]), a)
    try:
        paths = a.suite or case_paths(a)
        cases = suite.select(suite.find(paths, threading.Lock()), a.tier, a.only, a.shard)
        if a.list:
            print("\n".join(c.name for c in cases))
            return 0
        a.impl = execute.command_of(a.impl)
        can = execute.describe(a.impl)
    except (execute.Broken, OSError, ValueError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 3
    if a.profile:
        can["profile"] = a.profile
    results = []
    if a.resume and os.path.exists(a.log):
        with open(a.log, encoding="utf-8") as f:
            results = [json.loads(line) for line in f if line.endswith("\n")]
        names = {c.name for c in cases}
        results = [r for r in results if r["case"] in names]
        done = {r["case"] for r in results}
        cases = [c for c in cases if c.name not in done]
    if not cases and not results:
        print("error: no case fits", file=sys.stderr)
        return 3
    progress = Progress(len(cases), a.quiet)
    log = open(a.log, "a" if a.resume else "w", encoding="utf-8") if a.log else None

    def on_result(r):
        results.append(r)
        if log:
            log.write(json.dumps(r) + "\n")
            log.flush()
        progress.update(r)

    if a.keep:
        os.makedirs(a.keep, exist_ok=True)
    setup = {
        "timeout": a.timeout,
        "form": a.form,
        "jobs": max(1, a.jobs),
        "keep": a.keep,
        "no_batch": a.no_batch,
        "repeat": max(1, a.repeat),
        "assembler": execute.Assembler(a.assembler),
        "tmp": "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None,
    }
    start = time.monotonic()
    try:
        execute.run_all(a.impl, can, cases, setup, on_result)
    except KeyboardInterrupt:
        print(
            f"\ninterrupted after {len(results)} cases" + (f"; --resume goes on from {a.log}" if a.log else ""),
            file=sys.stderr,
        )
        return 130
    finally:
        if log:
            log.close()
    head = {
        "implementation": can.get("name", a.impl),
        "implementation_version": can.get("version", ""),
        "profile": can.get("profile", "language"),
        "form": a.form,
        "tier": a.shown_tier,
        "only": a.only,
        "shards": [a.shard],
        "seconds": round(time.monotonic() - start, 2),
    }
    return report.finish(report.made(head, results), a)


if __name__ == "__main__":
    sys.exit(main())
