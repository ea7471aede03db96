#!/usr/bin/env python3
"""`tilevm conformance` and what stands behind it: the C interface, export, record, diff, merge and the pytest plugin.

Environment: TILEVM, TILEASM, SOURCE_DIR, BUILD_DIR.  Needs numpy (exit status 77 without it); pytest where it is there.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("skipped: the runner needs numpy")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", SOURCE / "build" / "ci"))
TILEVM = os.environ.get("TILEVM", "tilevm")
SUITE = SOURCE / "conformance"
LIBRARY = BUILD / "libtilevm_impl.so"
ENVIRONMENT = {**os.environ, "TILEVM_CONFORMANCE": str(SUITE), "TILEVM_PYTHON": sys.executable}
failures = []


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}: {detail}")


def run(words, expect, says="", **more):
    done = subprocess.run(
        [str(w) for w in words],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, **more.pop("env", {})},
        **more,
    )
    text = done.stdout + done.stderr
    check(
        " ".join(str(w) for w in words[1:6]),
        done.returncode == expect and says in text,
        f"exit status {done.returncode}, expected {expect} and {says!r}\n{text[-1500:]}",
    )
    return done


def suite(*words, expect=0, says="", **more):
    return run([TILEVM, "conformance", *words], expect, says, **more)


def test_front_end(folder):
    suite("--help", says="export")
    suite(expect=2)
    suite("judge", expect=2, says="'judge' is no command")
    suite("run", "--impl", "tilevm", "--only", "tokens/*", "--quiet", says="pass")
    suite("list", "--only", "mma/*", says="mma/")
    # A machine without Python, without numpy, without the suite.
    suite("run", expect=3, says="E0904", env={"TILEVM_PYTHON": "no-such-python"})
    bare = folder / "bare"
    (bare / "numpy").mkdir(parents=True)
    (bare / "numpy" / "__init__.py").write_text("raise ImportError('none')\n")
    suite("run", expect=3, says="numpy is missing", env={"PYTHONPATH": str(bare)})
    suite("run", expect=3, says="not installed", env={"TILEVM_CONFORMANCE": str(bare)})


def test_serve(folder):
    """Many cases in one process give what a process each gives."""
    found = {}
    for machine in ("", " --gpu=emulate"):
        for how in ([], ["--no-batch"]):
            report = folder / "served.json"
            done = run([TILEVM, "conformance", "run", "--impl", "tilevm" + machine, "--only", "traps/*", "--only", "large/*", "--only", "tokens/*",
                        "--only", "reject_text/*", "--json", report, "--quiet", *how], 0)
            if done.returncode == 0:
                found[machine, bool(how)] = {r["case"]: (r["verdict"], r["detail"]) for r in json.loads(report.read_text())["results"]}
        check(f"batch{machine}", found.get((machine, True)) == found.get((machine, False)), found)
    suite("serve", expect=2, says="expected one of FOLDER, --describe and --batch")
    suite("serve", "--describe", says='"batch":true')
    suite("serve", "--gpu=fast", "--describe", expect=2)
    suite("serve", folder)  # no manifest
    check("no manifest", json.loads((folder / "status.json").read_text())["status"] == "crash")
    (folder / "manifest.json").write_text('{"goal": "run", "kernel": 3}')
    suite("serve", folder)
    check("bad manifest", "manifest.json" in json.loads((folder / "status.json").read_text())["reason"])
    (folder / "manifest.json").unlink()


def test_library(folder):
    """Libraries with the C interface: this project's, the template, and those that break."""
    if LIBRARY.exists():
        report = folder / "library.json"
        suite("run", "--impl", LIBRARY, "--json", report, "--quiet")
        counts = json.loads(report.read_text())["counts"]
        check("library passes", set(counts) == {"pass"} and counts["pass"] >= 150, counts)
    compiler = shutil.which("cc")
    if not compiler:
        print("no C compiler: libraries not built")
        return
    template = (SUITE / "abi" / "template.c").read_text()
    body = "  impl->loaded = 0;\n"
    for name, line, verdicts in (
        ("template", "", {"unsupported", "skipped"}),
        ("crash", "  *(volatile int*)8 = 1;\n", {"crash", "skipped"}),
        ("hang", "  for (volatile int i = 1; i;) {}\n", {"hang"}),
        ("noise", '  puts("noise on standard output");\n', {"unsupported", "skipped"}),
    ):
        source = folder / f"{name}.c"
        source.write_text(template.replace(body, body + line))
        library = folder / f"lib{name}.so"
        strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"] if name == "template" else []
        run([compiler, *strict, "-shared", "-fPIC", "-I", SUITE / "abi", "-o", library, source], 0)
        report, only = folder / f"{name}.json", "tokens/store*" if name == "hang" else "tokens/*"
        words = [
            "run",
            "--impl",
            library,
            "--only",
            only,
            "--timeout",
            "1" if name == "hang" else "20",
            "--form",
            "tileirbc",
        ]
        suite(*words, "--json", report, "--quiet", expect=0 if "unsupported" in verdicts else 5)
        counts = json.loads(report.read_text())["counts"]
        check(f"library {name}", set(counts) <= verdicts and set(counts) & (verdicts - {"skipped"}), counts)
    suite("run", "--impl", folder / "none.so", expect=3, says="none.so")


def test_template(folder):
    """The Python template, as it is and with a machine that accepts everything and computes nothing."""
    text = (SUITE / "adapters" / "template.py").read_text()
    report = folder / "template.json"
    for name, load, execute, verdicts in (
        ("empty", None, None, {"unsupported", "skipped"}),
        ("idle", "return path.read_text()", "return None", {"wrong", "accepted", "no_trap", "pass", "skipped"}),
        ("trapping", "return path.read_text()", "raise ArithmeticError", {"trapped", "accepted", "pass", "skipped"}),
    ):
        parts = text.split("raise NotImplementedError\n")
        filled = (load or "raise NotImplementedError").join([parts[0], "\n" + parts[1]])
        filled = (execute or "raise NotImplementedError").join([filled, "\n" + parts[2]])
        (folder / f"{name}.py").write_text(filled)
        impl = f"'{sys.executable}' '{folder / name}.py'"
        only = [w for pattern in ("tokens/*", "traps/*", "reject_text/name*") for w in ("--only", pattern)]
        done = subprocess.run([TILEVM, "conformance", "run", "--impl", impl, *only, "--json", report, "--quiet"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
        counts = json.loads(report.read_text())["counts"] if done.returncode in (0, 5) else {}
        check(f"template {name}", counts and set(counts) <= verdicts, (counts, done.stderr))


def test_export(folder):
    out = folder / "exported"
    suite("export", "--to", "tileirbc@13.3", "--only", "tokens/*", "--only", "mma/*", out, says="as tileirbc@13.3")
    cases = json.loads((out / "cases.json").read_text())
    check("exported forms", len(cases) >= 10 and all(c[2] == "tileirbc" for c in cases), cases[:3])
    some = json.loads((out / "cases" / cases[0][0] / "case.json").read_text())
    names = [some["kernel"], *(b["file"] for b in some["buffers"]), *(b["file"] for b in some["expect"]["buffers"])]
    check("exported files", all((out / "cases" / cases[0][0] / n).is_file() for n in names), names)
    # The folder judges by itself.
    adapter = f"'{sys.executable}' '{SUITE / 'adapters' / 'tilevm.py'}'"
    run([sys.executable, out / "run.py", "--impl", adapter, "--quiet"], 0, f"{len(cases)} pass", cwd=folder)
    suite("export", "--only", "tokens/*", out, says="as text")
    suite("export", "--to", "tileirbc@12.0", out, expect=3, says="is no form")
    suite("export", SOURCE, expect=3, says="not of this making")


KERNEL = """cuda_tile.module @m {
  entry @twice(%a: tile<ptr<f32>>, %c: tile<ptr<f32>>) {
    %i = iota : tile<64xi32>
    %a1 = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %a2 = broadcast %a1 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %a3 = offset %a2, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %x, %t = load_ptr_tko weak %a3 : tile<64xptr<f32>> -> tile<64xf32>, token
    %y = addf %x, %x rounding<nearest_even> : tile<64xf32>
    %c1 = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %c2 = broadcast %c1 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %c3 = offset %c2, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %s = store_ptr_tko weak %c3, %y : tile<64xptr<f32>>, tile<64xf32> -> token
    return
  }
}
"""

ORACLE = """#!/usr/bin/env python3
import json, pathlib, sys
import numpy as np
if sys.argv[1] == "--describe":
    print(json.dumps({"protocol": 1, "name": "numpy", "forms": ["text"]}))
else:
    folder = pathlib.Path(sys.argv[1])
    b = json.loads((folder / "manifest.json").read_text())["buffers"]
    a = np.fromfile(folder / b[0]["file"], "<f4")
    a.tofile(folder / b[0]["out"])
    (a * np.float32(FACTOR)).tofile(folder / b[1]["out"])
    (folder / "status.json").write_text(json.dumps({"status": "ok"}))
"""


def test_record(folder):
    (folder / "twice.tile").write_text(KERNEL)
    args = [{"name": "a", "ptr": "f32[64]=normal(seed=3)"}, {"name": "c", "ptr": "f32[64]=full(7)"}]
    job = {"kernel": "twice.tile", "args": args}
    (folder / "bare.json").write_text(json.dumps(job))
    job["expect"] = [{"arg": "c", "generate": "normal(seed=3,std=2)"}, {"arg": "a", "unchanged": True}]
    (folder / "good.json").write_text(json.dumps(job))
    job["expect"] = [{"arg": "c", "generate": "zeros"}]
    (folder / "bad.json").write_text(json.dumps(job))
    for name, factor in (("right", 2), ("wrong", 3)):
        (folder / f"{name}.py").write_text(ORACLE.replace("FACTOR", str(factor)))
    oracle = lambda name: f"'{sys.executable}' '{folder / name}.py'"
    out = folder / "recorded"
    record = lambda launch, name, *more, **expect: suite(
        "record", folder / launch, "--name", f"mine/{name}", "--out", out, *more, **expect
    )
    record("bare.json", "alone", expect=5, says="one engine alone makes no case")
    record("good.json", "by_job", says="confirmed by the job's expectations")
    record("bad.json", "contradicted", expect=5)
    record("bare.json", "by_oracle", "--against", oracle("right"), says="confirmed by numpy")
    record("bare.json", "contradicted", "--against", oracle("wrong"), expect=5, says="does not agree")
    run([TILEVM, "run", folder / "bare.json", "--bundle", folder / "b.bundle"], 0)
    record("b.bundle", "by_bundle", "--against", oracle("right"), "--rule", "ulp:1", says="confirmed by numpy")
    record("b.bundle", "x", "--rule", "ulp", expect=2)
    found = sorted(p.name for p in (out / "mine").iterdir())
    check("recorded", found == ["by_bundle", "by_job", "by_oracle"], found)
    case = json.loads((out / "mine" / "by_job" / "case.json").read_text())
    check("recorded ops", "addf" in case["ops"] and case["types"] == ["f32", "i32"], case["ops"])
    check("recorded version", case["needs"]["version"] == "13.1", case["needs"])
    suite("run", "--impl", "tilevm", "--suite", out, "--quiet", says="3 pass")
    suite("run", "--impl", oracle("wrong"), "--suite", out, "--tier", "full", "--quiet", expect=5, says="3 wrong")


def test_reports(folder):
    one, two, part = folder / "one.json", folder / "two.json", folder / "part.json"
    wrong = f"'{sys.executable}' '{folder / 'wrong.py'}'"
    recorded = ["--suite", folder / "recorded", "--tier", "full", "--quiet"]
    suite("run", "--impl", "tilevm", *recorded, "--json", one)
    suite("run", "--impl", wrong, *recorded, "--json", two, expect=5)
    suite("diff", one, one, says="0 verdicts differ")
    suite("diff", one, two, "--html", folder / "d.html", expect=5, says="pass -> wrong: mine/by_job")
    page = (folder / "d.html").read_text()
    check("page of a diff", "numpy" in page and "tilevm --cpu" in page and "3/3<br>" not in page, page[:400])
    suite("diff", one, expect=2)
    suite("run", "--impl", "tilevm", *recorded, "--shard", "1/2", "--json", part)
    rest = folder / "rest.json"
    suite("run", "--impl", "tilevm", *recorded, "--shard", "2/2", "--json", rest)
    suite("merge", part, rest, "--junit", folder / "m.xml", says="3 pass")
    suite("merge", folder / "none.json", expect=3)


def test_pytest(folder):
    if importlib.util.find_spec("pytest") is None:
        print("no pytest: the plugin was not tried")
        return
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_tile_conformance",
        "-q",
        "--tile-impl",
    ]
    more = {"cwd": folder, "env": {"PYTHONPATH": str(SUITE / "pytest_plugin")}}
    run([*words, "tilevm", "--tile-only", "tokens/*"], 0, "5 passed", **more)
    run([*words, "tilevm", "-k", "mmaf and not scaled"], 0, "passed", **more)
    wrong = f"'{sys.executable}' '{folder / 'wrong.py'}'"
    run([*words, wrong, "--tile-suite", folder / "recorded", "--tile-tier", "full"], 1, "3 failed", **more)
    run([*words, "no-such-program"], 4, "no-such-program", **more)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for test in (test_front_end, test_serve, test_library, test_template, test_export, test_record, test_reports, test_pytest):
            test(folder)
    print("ok" if not failures else f"{len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
