#!/usr/bin/env python3
"""One program for the suite: cli.py run|list|export|record|merge|diff ...; `tilevm conformance` is the same."""

import argparse
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

USAGE = """usage: {prog} COMMAND ... (each with --help)

  run      judge an implementation: --impl IMPL [--tier smoke|standard|full] [--only GLOB] [--shard K/N] [--resume] ...
  list     print the names of the cases that run would take
  export   write the cases as a folder of portable tests: --to tileirbc@13.3 DIR
  record   make a case of a launch: JOB.json, launch.json or a bundle, checked by a second engine or an oracle
  merge    put reports of shards together: A.json B.json ... [--json F] [--junit F] [--html F]
  diff     compare reports: OLD.json NEW.json [OTHER.json ...] [--html F]
"""


def merge(argv, prog):
    from runner import report

    p = argparse.ArgumentParser(prog=prog, description="Puts the reports of one run's shards together.")
    p.add_argument("reports", nargs="+", metavar="REPORT.json")
    for name in ("json", "junit", "html"):
        p.add_argument("--" + name, metavar="FILE")
    a = p.parse_args(argv)
    a.diff = []
    return report.finish(report.merged([report.load(path) for path in a.reports]), a)


def diff(argv, prog):
    from runner import report

    p = argparse.ArgumentParser(
        prog=prog,
        description="Compares the reports of two runs, or of several implementations with the first.",
        epilog="Exit status: 0 the same verdicts, 5 other ones.",
    )
    p.add_argument("reports", nargs="+", metavar="REPORT.json", help="the old one first")
    p.add_argument("--html", metavar="FILE", help="a page with operations, types and all the runs")
    a = p.parse_args(argv)
    if len(a.reports) < 2:
        p.error("two reports are needed")
    runs = [report.load(path) for path in a.reports]
    found = [report.show_changes(runs[0], new) for new in runs[1:]]
    if a.html:
        report.write(a.html, report.page(runs[-1], runs[:-1]))
    return 5 if any(found) else 0


def main(argv, prog):
    if importlib.util.find_spec("numpy") is None:
        print(f"error: the runner needs numpy: {sys.executable} -m pip install numpy", file=sys.stderr)
        return 3
    words = dict(enumerate(argv))
    command = words.get(0)
    if command in (None, "-h", "--help"):
        (sys.stdout if command else sys.stderr).write(USAGE.format(prog=prog))
        return 0 if command else 2
    rest, name = argv[1:], f"{prog} {command}"
    if command in ("run", "list"):
        import run

        return run.main(rest + (["--list"] if command == "list" else []), name)
    if command == "export":
        import export

        return export.main(rest, name)
    if command == "record":
        import record

        return record.main(rest, name)
    if command in ("merge", "diff"):
        return {"merge": merge, "diff": diff}[command](rest, name)
    sys.stderr.write(f"{prog}: '{command}' is no command\n\n" + USAGE.format(prog=prog))
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], os.environ.get("TILE_CONFORMANCE_PROG", os.path.basename(sys.argv[0]))))
    except (OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
