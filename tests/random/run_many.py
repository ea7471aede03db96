#!/usr/bin/env python3
"""Many random programs on all cores: the reference machine against the emulation of GPUs, every byte, and their PTX. Writes a summary as JSON.

  run_many.py PROGRAM OUT.json [--mix SIZE:PRODUCT_LOOPS:COUNT,...] [--first SEED] [--targets T,T] [--ptx T,T] [--jobs N]
              [--seconds N] [--ptxas PROGRAM --ptxas-every N]

PROGRAM is random_programs. A process runs 20 programs; one that crashes or hangs is run again program by program, so that the seed is known.
With --ptxas the PTX of every Nth process is assembled as well. Exit status 1 if anything is wrong. Python's standard library is enough."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 20
KEPT = 1 << 20  # bytes of failing programs and messages


class Run:
    def __init__(self, options, folder):
        self.options, self.folder, self.lock = options, pathlib.Path(folder), threading.Lock()
        self.end = time.monotonic() + options.seconds
        self.total = collections.Counter()
        self.parts = collections.defaultdict(collections.Counter)
        self.failures, self.kept = [], 0

    def fail(self, text, files=()):
        with self.lock:
            self.total["failures"] += 1
            failure = {"what": text[:4000], "files": {f.name: f.read_text(errors="replace") for f in files}}
            self.kept += len(json.dumps(failure))
            if self.kept <= KEPT:
                self.failures.append(failure)

    def assemble(self, ptx):
        target = ptx.name.split(".")[1]
        done = subprocess.run([self.options.ptxas, "-arch", target, "-o", os.devnull, str(ptx)], capture_output=True, text=True)
        with self.lock:
            self.parts["assembled"][target] += 1
        if done.returncode:
            self.fail(f"{ptx.name}: ptxas: {done.stderr[:500]}", [ptx])

    def chunk(self, number, part, seed, count, size, loops):
        if time.monotonic() > self.end:
            return
        out = self.folder / f"{seed}.{count}"
        out.mkdir()
        line = [self.options.program, "--json", "--first", seed, "--count", count, "--size", size, "--product-loops", loops, "--targets", self.options.targets,
                "--ptx", self.options.ptx or self.options.targets, "--out", out]
        assembled = self.options.ptxas and number % self.options.ptxas_every == 0
        if assembled:
            line += ["--ptx-dir", out / "ptx"]
        try:
            done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=60 + 10 * count)
            status = f"exit status {done.returncode}: {done.stderr[-500:]}"
            found = json.loads(done.stdout.splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as problem:
            if not isinstance(problem, (ValueError, IndexError)):
                status = "no end"
            if count == 1:
                return self.fail(f"seed {seed}, size {size}, product loops {loops}: {status}")
            for k in range(count):
                self.chunk(number, part, seed + k, 1, size, loops)
            return
        with self.lock:
            for key in ("programs", "faults"):
                self.total[key] += found[key]
            self.parts["programs by size:product loops"][part] += found["programs"]
            self.parts["processor seconds by size:product loops"][part] += found["seconds"]
            for key in ("compared", "ptx", "refused"):
                self.parts[key].update(found[key])
        if found["faults"]:
            self.fail(done.stdout, sorted(out.glob("*.*")))
        for ptx in sorted((out / "ptx").glob("*.ptx")) if assembled else []:
            self.assemble(ptx)
            ptx.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("summary")
    parser.add_argument("--mix", default="20:1:300")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--targets", default="sm_90a,sm_80")
    parser.add_argument("--ptx", help="targets to write PTX for; default: those of --targets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="no process begins later")
    parser.add_argument("--ptxas")
    parser.add_argument("--ptxas-every", type=int, default=1)
    options = parser.parse_args()
    chunks, seed = [], options.first
    for part in options.mix.split(","):
        size, loops, count = map(int, part.split(":"))
        for begin in range(0, count, AT_ONCE):
            chunks.append((f"{size}:{loops}", seed + begin, min(AT_ONCE, count - begin), size, loops))
        seed += count
    # Every part is begun early, so that a run that is cut short has some of each.
    chunks.sort(key=lambda c: (c[1] - options.first) % 7919)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, folder)
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(run.chunk, n, *c) for n, c in enumerate(chunks)]:
                done.result()
    result = {"targets": options.targets, "first seed": options.first, "last seed": seed - 1, "mix": options.mix, "jobs": options.jobs,
              "seconds": round(time.monotonic() - started, 1), "programs": run.total["programs"], "faults": run.total["faults"], "failures": run.total["failures"]}
    result |= {k: {name: round(n, 1) for name, n in sorted(v.items())} for k, v in sorted(run.parts.items())}
    pathlib.Path(options.summary).write_text(json.dumps(result | {"kept": run.failures}, indent=1) + "\n")
    print(json.dumps(result))
    return 1 if run.total["faults"] or run.total["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
