#!/usr/bin/env python3
"""Kernels under NVIDIA's compute-sanitizer, on a machine with a GPU: memcheck, racecheck, synccheck and initcheck over the suite's whole algorithms
and the examples, and over planted defects that each tool must report.

  python3 tools/sanitize_gpu.py TILEVM --out FOLDER [--suite PATH ...] [--only GLOB ...] [--examples FOLDER] [--tools memcheck,racecheck]

FOLDER gets one log for each process, each with the tool's own summary as its last lines, and report.json. The exit status is 0 if every process
ended by itself with a summary of no errors and every planted defect was reported. Results are not compared here; `conformance run` does that.
Everything is compiled once before, without the sanitizer. Where the time (--seconds) is over, nothing new is begun; the report says what was left
out. Without --suite the smoke tier's cases count."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "conformance"))

from runner import execute, suite  # noqa: E402

TOOLS = {
    # tilevm asks the driver for tensor maps that it may refuse, and looks at the status of every call itself.
    "memcheck": ["--report-api-errors", "no"],
    "racecheck": ["--racecheck-report", "all"],
    "synccheck": [],
    "initcheck": [],
}
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")

# A tile of 64 x 64 that is transposed through shared memory, between barriers.
THROUGH_SHARED = """cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) {
  %i = iota : tile<4096xi32>
  %b = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
  %w = broadcast %b : tile<1xptr<f32>> -> tile<4096xptr<f32>>
  %q = offset %w, %i : tile<4096xptr<f32>>, tile<4096xi32> -> tile<4096xptr<f32>>
  %x, %t = load_ptr_tko weak %q : tile<4096xptr<f32>> -> tile<4096xf32>, token
  %m = reshape %x : tile<4096xf32> -> tile<64x64xf32>
  %y = permute %m [1, 0] : tile<64x64xf32> -> tile<64x64xf32>
  %z = reshape %y : tile<64x64xf32> -> tile<4096xf32>
  %t2 = store_ptr_tko weak %q, %z token=%t : tile<4096xptr<f32>>, tile<4096xf32> -> token
  return } }
"""
# A store PLACE elements behind the array's first.
STRAY = """cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) {
  %i = constant <i32: PLACE> : tile<i32>
  %q = offset %p, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %x = constant <f32: 1.0> : tile<f32>
  %t = store_ptr_tko weak %q, %x : tile<ptr<f32>>, tile<f32> -> token
  return } }
"""
# Memory of the block's own, which is read before WRITE.
UNWRITTEN = """cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) {
  %a = alloca num_elem = 64, alignment = 16 : tile<ptr<f32>>
WRITE
  %x, %t = load_ptr_tko weak %a TOKEN: tile<ptr<f32>> -> tile<f32>, token
  %t2 = store_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<f32> -> token
  return } }
"""
WRITE = """  %one = constant <f32: 1.0> : tile<f32>
  %w = store_ptr_tko weak %a, %one : tile<ptr<f32>>, tile<f32> -> token"""

# An assembler that changes the code before: "race" leaves out every barrier of the block, "diverge" lets one thread go past the first.
CHANGING_ASSEMBLER = """#!{python}
import os, re, subprocess, sys, tempfile
ptxas, arguments = {ptxas!r}, sys.argv[1:]
if "--version" in arguments:
    os.execv(ptxas, [ptxas, *arguments])
text = open("/proc/self/fd/3").read()
barrier = re.compile(r"(?:bar|barrier)\\.sync\\s+0;")
if {how!r} == "race":
    text, n = barrier.subn("", text)
else:
    text, n = barrier.subn("{{\\n.reg .pred past;\\n.reg .b32 self;\\nmov.u32 self, %tid.x;\\nsetp.ne.u32 past, self, 5;\\n@past bar.sync 0;\\n}}", text, count=1)
if n == 0:
    sys.exit("no barrier to change")
with tempfile.NamedTemporaryFile("w", suffix=".ptx") as changed:
    changed.write(text)
    changed.flush()
    sys.exit(subprocess.run([ptxas, *[changed.name if a == "/proc/self/fd/3" else a for a in arguments]], pass_fds=[4]).returncode)
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tilevm", type=pathlib.Path)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--suite", action="append", default=[], metavar="PATH", help="folder or zip file with cases")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="cases (algorithms/*, programs/*)")
    p.add_argument("--examples", type=pathlib.Path, default=ROOT / "examples")
    p.add_argument("--tools", default=",".join(TOOLS))
    p.add_argument("--sanitizer", default="compute-sanitizer", metavar="PROGRAM")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--group", type=int, default=12, metavar="N", help="cases of one process")
    p.add_argument("--seconds", type=float, default=600, help="nothing is begun later")
    a = p.parse_args()
    a.tools = a.tools.split(",")
    if not all(t in TOOLS for t in a.tools):
        p.error(f"the tools are {', '.join(TOOLS)}")
    a.tilevm = a.tilevm.resolve()
    return a


def ptxas_of(tilevm):
    """The assembler that tilevm would take."""
    found = json.loads(subprocess.run([tilevm, "devices", "--json"], capture_output=True, text=True).stdout or "{}")
    path = found.get("assembler", "").rpartition(", ")[2]
    return path if os.path.isabs(path) and os.access(path, os.X_OK) else None


def planted(folder, ptxas):
    """(tool, name, kernel, elements of its array, assembler, whether it must be reported): each defect, and the same without it."""
    def kernel(name, text):
        path = folder / f"{name}.tile"
        path.write_text(text)
        return path

    def assembler(how):
        path = folder / f"ptxas_{how}"
        path.write_text(CHANGING_ASSEMBLER.format(python=sys.executable, ptxas=ptxas, how=how))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    through = kernel("through_shared", THROUGH_SHARED)
    out = [
        ("memcheck", "stray store", kernel("stray", STRAY.replace("PLACE", "1048576")), 1, None, True),
        ("memcheck", "store inside", kernel("inside", STRAY.replace("PLACE", "0")), 1, None, False),
        ("initcheck", "unwritten memory", kernel("unwritten", UNWRITTEN.replace("WRITE\n", "").replace("TOKEN", "")), 1, None, True),
        ("initcheck", "written memory", kernel("written", UNWRITTEN.replace("WRITE", WRITE).replace("TOKEN", "token=%w ")), 1, None, False),
    ]
    if ptxas:
        for tool, how in (("racecheck", "race"), ("synccheck", "diverge")):
            out += [(tool, f"barriers changed: {how}", through, 4096, assembler(how), True), (tool, "barriers as they are", through, 4096, None, False)]
    return out


class Runs:
    def __init__(self, options):
        self.o, self.begun, self.lock = options, time.monotonic(), threading.Lock()
        self.results, self.left_out = [], []

    def environment(self, assembler=None):
        e = {**os.environ, "TILEVM_CACHE": str(self.o.out / "cache")}
        if assembler:
            e["TILEVM_PTXAS"] = str(assembler)
        return e

    def over(self):
        return time.monotonic() - self.begun > self.o.seconds

    def under(self, tool, name, command, stdin="", assembler=None, must=False):
        """One process. Its log is that of the tool."""
        if self.over():
            with self.lock:
                self.left_out.append(f"{tool}: {name}")
            return
        log = self.o.out / (re.sub(r"[^\w.]+", "_", f"{tool}-{name}") + ".log")
        words = [self.o.sanitizer, "--tool", tool, *TOOLS[tool], "--target-processes", "application-only", "--print-limit", "20", "--log-file", str(log), *map(str, command)]
        began = time.monotonic()
        try:
            done = subprocess.run(words, input=stdin, env=self.environment(assembler), capture_output=True, text=True, timeout=max(30, self.o.seconds))
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = None
        except OSError as e:
            sys.exit(f"{self.o.sanitizer}: {e}")
        text = log.read_text(errors="replace") if log.exists() else ""
        summaries = SUMMARY.findall(text)
        errors = int(summaries[-1]) if summaries else None
        # 2: a wrong command line, so that nothing ran.
        good = errors is not None and (errors > 0 and status != 2 if must else errors == 0 and status == 0)
        with self.lock:
            self.results.append({"tool": tool, "name": name, "planted": must, "exit": status, "errors": errors, "good": good, "seconds": round(time.monotonic() - began, 2), "log": log.name})
            last = [line for line in text.splitlines() if "SUMMARY" in line]
            print(f"{'ok  ' if good else 'FAIL'} {tool:9} {name}: {last[-1] if last else 'no summary'}" + ("" if good or must else f" (exit status {status})"), flush=True)


def compile_all(o, runs, jobs, cases, worker):
    """Fills the cache without the sanitizer; gives the cases that run, which may be fewer than all where a target refuses some."""
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        done = list(pool.map(lambda j: subprocess.run([o.tilevm, "run", j, "--gpu"], env=runs.environment(), capture_output=True, text=True), jobs))
        groups = [cases[k :: o.jobs] for k in range(min(o.jobs, len(cases)))]
        for _ in pool.map(lambda g: subprocess.run([o.tilevm, "conformance", "serve", "--gpu", "--batch"], input="".join(f"{f}\n" for _, f in g), env=runs.environment(), capture_output=True, text=True), groups):
            pass
    for j, d in zip(jobs, done):
        if d.returncode != 0:
            print(f"{j.name}: exit status {d.returncode} without the sanitizer, too: {d.stderr.strip()[-200:]}")
    good = []
    for name, folder in cases:
        status = worker.status(folder) or {"status": "none"}
        if status.get("status") == "ok":
            good.append((name, folder))
        else:
            print(f"{name}: {status.get('status')} without the sanitizer, left out: {str(status.get('reason'))[:200]}")
    return good, [j for j, d in zip(jobs, done) if d.returncode == 0]


def main():
    o = arguments()
    o.out.mkdir(parents=True, exist_ok=True)
    o.out = o.out.resolve()
    runs = Runs(o)
    paths = o.suite or [str(ROOT / "conformance" / "cases")]
    refs = suite.select(suite.find(paths, threading.Lock()), "full", o.only or ["algorithms/*", "programs/*"])
    jobs = sorted(o.examples.glob("*.json"))
    worker = execute.Worker("unused", {"forms": ["text", "tilebc", "tileirbc"]}, {"form": "text", "timeout": 60, "tmp": None})
    try:
        cases = []
        for ref in refs:
            case, files = ref.load()
            if case["goal"] != "run" or case["expect"]["outcome"] != "ok":
                continue
            folder, problem = worker.prepare(case, files)
            if not problem:
                cases.append((case["case"], folder))
        cases, jobs = compile_all(o, runs, jobs, cases, worker)
        print(f"{len(cases)} cases and {len(jobs)} examples run without the sanitizer, {time.monotonic() - runs.begun:.0f} s", flush=True)
        ptxas = ptxas_of(o.tilevm)
        if not ptxas:
            print("no ptxas: races and divergence cannot be planted")
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            waiting = []
            for tool, what, kernel, elements, assembler, must in planted(pathlib.Path(name), ptxas):
                if tool in o.tools:
                    command = [o.tilevm, kernel, "--gpu", "--no-cache", "--arg", f"ptr:f32[{elements}]=zeros", "--time-limit", "20"]
                    waiting.append(pool.submit(runs.under, tool, what, command, "", assembler, must))
            # By turns, so that no tool is left out where the time is over.
            groups = [cases[k : k + o.group] for k in range(0, len(cases), o.group)]
            for k, group in enumerate(groups):
                for tool in o.tools:
                    # Names of cases in the log's own order, for whoever looks for the kernel of a report.
                    (o.out / f"cases_{k}.txt").write_text("".join(f"{n}\n" for n, _ in group))
                    waiting.append(pool.submit(runs.under, tool, f"cases {k}", [o.tilevm, "conformance", "serve", "--gpu", "--batch"], "".join(f"{f}\n" for _, f in group)))
            for j in jobs:
                for tool in o.tools:
                    waiting.append(pool.submit(runs.under, tool, j.stem, [o.tilevm, "run", j, "--gpu"]))
            for w in waiting:
                w.result()
    finally:
        worker.close()
    print()
    bad = [r for r in runs.results if not r["good"]]
    for tool in o.tools:
        mine = [r for r in runs.results if r["tool"] == tool]
        clean, defects = [r for r in mine if not r["planted"]], [r for r in mine if r["planted"]]
        print(f"{tool}: {len(clean)} processes, {sum(r['errors'] or 0 for r in clean)} errors, {sum(r['errors'] is None for r in clean)} without a summary; "
              f"planted defects reported: {sum(r['good'] for r in defects)} of {len(defects)}")
    for what in runs.left_out:
        print(f"left out, the time was over: {what}")
    proved = {r["tool"] for r in runs.results if r["planted"] and r["good"]}
    for tool in o.tools:
        if tool not in proved:
            print(f"{tool}: nothing shows that it looks at these kernels")
    report = {"cases": [n for n, _ in cases], "examples": [j.name for j in jobs], "results": runs.results, "left_out": runs.left_out}
    (o.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"{time.monotonic() - runs.begun:.0f} s")
    return 1 if bad or runs.left_out or len(proved) != len(o.tools) else 0


if __name__ == "__main__":
    sys.exit(main())
