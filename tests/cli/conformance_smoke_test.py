#!/usr/bin/env python3
"""The smoke tier of the conformance suite on tilevm, through its protocol; and that the runner tells right from wrong.

Environment: TILEVM, TILEASM, SOURCE_DIR.  Without numpy nothing can be judged: the test says so and passes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: the runner needs numpy")
    sys.exit(0)

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SUITE = SOURCE / "conformance"
ADAPTER = f"'{sys.executable}' '{SUITE / 'adapters' / 'tilevm.py'}'"
failures = []


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}: {detail}")


def run(*args, expect):
    done = subprocess.run([sys.executable, str(SUITE / "run.py"), *args], capture_output=True, text=True, check=False)
    check(
        " ".join(args[-4:]),
        done.returncode == expect,
        f"exit status {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}",
    )
    return done


WRONG = """#!/usr/bin/env python3
import json, pathlib, sys
if sys.argv[1] == "--describe":
    print(json.dumps({"protocol": 1, "name": "does nothing", "forms": ["text"]}))
else:
    folder = pathlib.Path(sys.argv[1])
    m = json.loads((folder / "manifest.json").read_text())
    for b in m.get("buffers", []):
        (folder / b["out"]).write_bytes((folder / b["file"]).read_bytes())
    if "crash" in MODE:
        sys.exit(3)
    (folder / "status.json").write_text(json.dumps({"status": "ok"}))
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        report = folder / "report.json"
        run(
            "--impl",
            ADAPTER,
            "--json",
            str(report),
            "--junit",
            str(folder / "r.xml"),
            "--html",
            str(folder / "r.html"),
            expect=0,
        )
        first = json.loads(report.read_text())
        check(
            "cases",
            len(first["results"]) >= 150 and first["counts"].get("pass", 0) == len(first["results"]),
            first["counts"],
        )
        check("junit", "<testsuites" in (folder / "r.xml").read_text())
        check("html", "Operations and types" in (folder / "r.html").read_text())

        # Every process on its own; bytecode; shards that merge; a run that goes on.
        run("--impl", ADAPTER, "--no-batch", "--only", "tokens/*", "--quiet", expect=0)
        run("--impl", ADAPTER, "--form", "tileirbc@13.4", "--only", "views/*", "--quiet", expect=0)
        parts = []
        for k in (1, 2):
            parts.append(str(folder / f"part{k}.json"))
            run("--impl", ADAPTER, "--only", "int_*", "--shard", f"{k}/2", "--json", parts[-1], "--quiet", expect=0)
        run("--merge", *parts, "--json", str(folder / "whole.json"), expect=0)
        whole = json.loads((folder / "whole.json").read_text())
        check("merged", len(whole["results"]) == sum(r["case"].startswith("int_") for r in first["results"]))
        log = folder / "log"
        run("--impl", ADAPTER, "--only", "int_*", "--shard", "1/2", "--log", str(log), "--quiet", expect=0)
        done = run("--impl", ADAPTER, "--only", "int_*", "--log", str(log), "--resume", expect=0)
        check("resumed", f"{len(whole['results'])} pass" in done.stdout, done.stdout)

        # Implementations that do nothing, or crash, are not taken for right ones.
        for mode, verdict in (("idle", "wrong"), ("crash", "crash")):
            script = folder / f"{mode}.py"
            script.write_text(f"MODE = '{mode}'\n" + WRONG)
            run(
                "--impl",
                f"'{sys.executable}' '{script}'",
                "--only",
                "int_arith/*",
                "--json",
                str(report),
                "--quiet",
                expect=5,
            )
            counts = json.loads(report.read_text())["counts"]
            check(mode, set(counts) == {verdict}, counts)
        done = run(
            "--impl",
            f"'{sys.executable}' '{folder / 'idle.py'}'",
            "--only",
            "reject_text/*",
            "--json",
            str(report),
            "--quiet",
            expect=5,
        )
        check("accepts", set(json.loads(report.read_text())["counts"]) == {"accepted"}, done.stdout)
        run("--impl", "no-such-program", expect=3)
        run("--impl", ADAPTER, "--only", "nothing/*", expect=3)
        run(expect=2)
    print("ok" if not failures else f"{len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
