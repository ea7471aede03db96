#!/usr/bin/env python3
"""tools/sanitize_gpu.py with a driver that executes nothing and a sanitizer that is a script: what it runs under each tool, and that it fails where a
process has errors or no summary, and where a planted defect is not reported. Environment: TILEVM, SOURCE_DIR, BUILD_DIR."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = pathlib.Path(os.environ["TILEVM"])
FAKE = pathlib.Path(os.environ["BUILD_DIR"]) / "libfake_cuda.so"

# Runs the program, and knows of the planted defects by what the program is started with.
SANITIZER = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
tool, log = words[words.index("--tool") + 1], words[words.index("--log-file") + 1]
program = words[words.index("--log-file") + 2:]
if "--target-processes" not in words or words[words.index("--target-processes") + 1] != "application-only":
    sys.exit("wrong arguments")
status = subprocess.run(program).returncode
text = " ".join(program)
defect = {{"memcheck": "stray.tile" in text, "initcheck": "unwritten.tile" in text, "racecheck": os.environ.get("TILEVM_PTXAS", "").endswith("ptxas_race"),
          "synccheck": os.environ.get("TILEVM_PTXAS", "").endswith("ptxas_diverge")}}[tool]
how = os.environ.get("FAKE_SANITIZER", "")
errors = 1 if (defect and how != "sees nothing") or (how == "false alarm" and "01_one_tile" in text) else 0
with open(log, "w") as f:
    f.write("========= COMPUTE-SANITIZER\\n")
    if how != "no summary":
        f.write(f"========= RACECHECK SUMMARY: {{errors}} hazards displayed ({{errors}} errors, 0 warnings)\\n" if tool == "racecheck" else f"========= ERROR SUMMARY: {{errors}} errors\\n")
sys.exit(status)
"""
# An assembler that takes any text with or without barriers, and tells which it was.
PTXAS = """#!{python}
import os, sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release 13.0, V13.0.88")
    sys.exit(0)
source = [a for a in sys.argv[1:] if a.endswith(".ptx") or a.endswith("/3")][0]
text = open(source).read()
with open(os.environ["FAKE_PTXAS_LOG"], "a") as f:
    f.write(f"barriers {{text.count('bar.sync')}} predicated {{text.count('@past bar.sync')}}\\n")
os.write(4, b"\\x7fELF" + bytes(60))
"""
failures = []


def check(what, good, seen=""):
    if not good:
        failures.append(f"{what}: {str(seen)[-1500:]}")


def main():
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True).stdout:
        print("skipped: tilevm was built without the GPU part")
        return 77
    try:
        import numpy  # noqa: F401  the conformance suite's runner needs it
    except ImportError:
        print("skipped: no numpy")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in (("sanitizer", SANITIZER), ("ptxas", PTXAS)):
            (folder / file).write_text(text.format(python=sys.executable))
            (folder / file).chmod(0o755)
        examples = folder / "examples"
        examples.mkdir()
        for n in ("01_one_tile.json", "01_one_tile.tile", "vector_add_views.json", "vector_add_views.tile"):
            shutil.copy(ROOT / "examples" / n, examples / n)
        log = folder / "assembled"

        def run(how="", *options):
            out = folder / "out"
            shutil.rmtree(out, ignore_errors=True)
            log.write_text("")
            environment = {**os.environ, "TILEVM_DRIVER": str(FAKE), "TILEVM_PTXAS": str(folder / "ptxas"), "FAKE_PTXAS_LOG": str(log), "FAKE_SANITIZER": how, "TMPDIR": name}
            done = subprocess.run([sys.executable, ROOT / "tools" / "sanitize_gpu.py", TILEVM, "--out", out, "--sanitizer", folder / "sanitizer", "--examples", examples,
                                   "--only", "algorithms/*", "--jobs", "2", *options], env=environment, capture_output=True, text=True, timeout=240)
            return done, json.loads((out / "report.json").read_text()) if (out / "report.json").exists() else {}

        # The fake computes nothing, so an example's own comparison fails: it is said, and the example is left out.
        done, report = run()
        check("the fake's examples are left out", "without the sanitizer, too" in done.stdout, done.stdout + done.stderr)
        results = report.get("results", [])
        planted = [r for r in results if r["planted"]]
        check("every tool has a planted defect that it reports", sorted(r["tool"] for r in planted) == ["initcheck", "memcheck", "racecheck", "synccheck"] and all(r["good"] for r in planted), results)
        check("and the same without the defect", len([r for r in results if r["name"] in ("store inside", "written memory", "barriers as they are") and r["errors"] == 0]) == 4, results)
        check("cases run under every tool", report.get("cases") and {r["tool"] for r in results if r["name"].startswith("cases ") and r["good"]} == {"initcheck", "memcheck", "racecheck", "synccheck"}, report)
        check("exit status", done.returncode == 0, done.stdout + done.stderr)
        assembled = log.read_text().splitlines()
        check("a kernel without its barriers was assembled", "barriers 0 predicated 0" in assembled, assembled)
        check("a kernel with a barrier for some threads was assembled", any(line.endswith("predicated 1") for line in assembled), assembled)
        done, _ = run("sees nothing")
        check("a tool that reports no planted defect", done.returncode == 1 and "racecheck: nothing shows that it looks at these kernels" in done.stdout, done.stdout)
        done, report = run("no summary")
        check("a log without a summary", done.returncode == 1 and all(r["errors"] is None for r in report["results"]), done.stdout)
        done, report = run("", "--seconds", "0")
        check("no time", done.returncode == 1 and report["left_out"] and not report["results"], done.stdout)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
