#!/usr/bin/env python3
"""NVIDIA's tileirdisasm and tileiras accept what `tileasm convert --to tileirbc@V` writes, and show the same module.

The tools come with the package nvidia-cuda-tileiras. They are looked for where TILE_TILEIRAS points (the program tileiras;
tileirdisasm stands beside it), in this Python's packages and on the PATH. Exits with 77 without them.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TILEASM = os.environ["TILEASM"]
# Targets by version: what tileiras compiles for one needs a version of its time.
TARGETS = {"13.1": "sm_100", "13.2": "sm_100", "13.3": "sm_90", "13.4": "sm_90"}
# What a target lacks is no fault of the file; anything else that tileiras says is.
LIMIT = re.compile(r"Incompatibility with architecture '\w+': (.*)")
PRODUCER = re.compile(r' attributes \{producer = ("(?:[^"\\]|\\.)*")\}')
# The tools look for a toolkit there first, and one that does not fit stops them.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH")}


def find_tools():
    places = [pathlib.Path(p) for p in (os.environ.get("TILE_TILEIRAS"), shutil.which("tileiras")) if p]
    places += sorted(t for p in sys.path for t in pathlib.Path(p or ".").glob("nvidia/cu*/bin/tileiras"))
    for tileiras in places:
        tileirdisasm = tileiras.with_name("tileirdisasm")
        if tileiras.is_file() and tileirdisasm.is_file():
            return str(tileiras), str(tileirdisasm)
    return None


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=250, check=False,
                          env=ENVIRONMENT)


class Case:
    """One input at one version; `failures` and `notes` say what came of it."""

    def __init__(self, tools, source, version, folder):
        self.tileiras, self.tileirdisasm = tools
        self.source, self.version = source, version
        self.name = f"{source.name} as {version}"
        self.base = folder / f"{source.name}.{version}"
        self.failures, self.notes, self.written = [], [], False

    def fail(self, what, done):
        self.failures.append(f"{self.name}: {what}: {(done.stderr or done.stdout).strip()[:600]}")
        return self

    def check(self):
        code = str(self.base) + ".tileirbc"
        done = run(TILEASM, "convert", "--to", f"tileirbc@{self.version}", str(self.source), "-o", code)
        if done.returncode:
            if "[E0607]" not in done.stderr:
                return self.fail("tileasm convert", done)
            reason = next(line for line in done.stderr.splitlines() if "[E0607]" in line)
            self.notes.append(f"{self.name}: not expressible: {reason}")
            return self
        self.written = True
        return self.check_text(code).check_compiler(code)

    def check_text(self, code):
        text = str(self.base) + ".txt"
        done = run(self.tileirdisasm, "--print-debug-info", code)
        if done.returncode:
            return self.fail("tileirdisasm refuses it", done)
        pathlib.Path(text).write_text(done.stdout)
        theirs = run(TILEASM, "dis", "--debug-info", "--no-names", text)
        if theirs.returncode:
            return self.fail("the text of tileirdisasm does not parse", theirs)
        ours = run(TILEASM, "dis", "--debug-info", "--no-names", code)
        if ours.returncode:
            return self.fail("tileasm dis", ours)
        expected = ours.stdout
        # Their text says the producer in a comment only.
        producer = PRODUCER.search(expected)
        if producer:
            expected = expected.replace(producer.group(0), "", 1)
            if f"// Producer: {producer.group(1)[1:-1]}" not in done.stdout:
                self.failures.append(f"{self.name}: tileirdisasm does not show the producer")
        if theirs.stdout != expected:
            pairs = zip(expected.splitlines() + [""], theirs.stdout.splitlines() + [""])
            where = next(((a, b) for a, b in pairs if a != b), ("", "more lines"))
            self.failures.append(f"{self.name}: tileirdisasm shows another module:\n  {where[0]}\n  {where[1]}")
        return self

    def check_compiler(self, code):
        target = TARGETS[self.version]
        done = run(self.tileiras, f"--gpu-name={target}", "-o", str(self.base) + ".cubin", code)
        if done.returncode:
            limit = LIMIT.search(done.stderr)
            if not limit:
                return self.fail(f"tileiras refuses it for {target}", done)
            self.notes.append(f"{self.name}: tileiras refuses it for {target}: {limit.group(1)}")
        return self


def main():
    tools = find_tools()
    if not tools:
        print("tileiras and tileirdisasm are missing; install nvidia-cuda-tileiras or set TILE_TILEIRAS")
        return 77
    sources = sorted([*ROOT.glob("examples/*.tile"), *ROOT.glob("tests/corpus/text/*.txt"),
                      *ROOT.glob("tests/corpus/text/*.tile")])
    if len(sources) < 20:
        print(f"only {len(sources)} inputs found")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        cases = [Case(tools, s, v, pathlib.Path(folder)) for s in sources for v in TARGETS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            cases = list(pool.map(Case.check, cases))
    for case in cases:
        for line in case.notes + case.failures:
            print(line)
    failed = sum(1 for c in cases if c.failures)
    written = sum(1 for c in cases if c.written)
    print(f"{written} files of {len(cases)} written, {failed} failed")
    return 1 if failed or written < len(sources) else 0


if __name__ == "__main__":
    sys.exit(main())
