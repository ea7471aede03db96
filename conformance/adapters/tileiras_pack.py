#!/usr/bin/env python3
"""Compiles the suite for NVIDIA's machine ahead of time: tileiras_pack.py --suite CACHE --out DIR [--arch sm_90] [--form tileirbc@13.4]

For a machine that has the GPU and the driver but neither tileiras nor tileasm. DIR gets suite.zip, cases whose kernels are tileirbc;
cubins.zip, what tileiras made of each or said to it, for TILEIRAS_CUBINS; skipped.json, a report of the cases that have no such form;
and all three as pack.tar.xz. Compiling takes about 0.15 s a case; DIR/compiled keeps what is done, so that a second call goes on.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

import tileiras_cuda  # noqa: E402
from runner import execute, export, report, suite  # noqa: E402


def options():
    p = argparse.ArgumentParser(description="Compiles the suite with tileiras for a machine that has only the driver.")
    p.add_argument("--suite", action="append", required=True, metavar="PATH", help="folder or zip file with cases")
    p.add_argument("--out", required=True, metavar="DIR")
    p.add_argument("--tier", choices=suite.TIERS, default="standard")
    p.add_argument("--only", action="append", default=[], metavar="GLOB")
    p.add_argument("--arch", default="sm_90")
    p.add_argument("--form", default="tileirbc@13.4")
    p.add_argument("--assembler", default=os.environ.get("TILEASM", "tileasm"), metavar="COMMAND")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return p.parse_args()


class Compiler:
    """What tileiras makes of a kernel, kept in a folder by the kernel's digest: a cubin, or json with the status that it stands for."""

    def __init__(self, folder, arch):
        self.folder, self.arch = folder, arch
        os.makedirs(folder, exist_ok=True)

    def base(self, case, files):
        digest = hashlib.sha256(f"{self.arch} {case['needs']['types']} ".encode() + files[case["kernel"]])
        return os.path.join(self.folder, digest.hexdigest()[:32])

    def __call__(self, item):
        case, files = item
        if not isinstance(case, dict):
            return item
        base = self.base(case, files)
        if os.path.exists(base + ".cubin") or os.path.exists(base + ".json"):
            return item
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, case["kernel"]), "wb") as f:
                f.write(files[case["kernel"]])
            manifest = {"needs": case["needs"], "kernel": case["kernel"], "form": case["form"], "timeout": 120}
            status = tileiras_cuda.compiled(folder, manifest, self.arch)
            # Through another name, so that what is cut off, or done twice at a time, leaves whole files.
            kind, half = ("json" if status else "cubin"), f"{base}.{threading.get_ident()}.half"
            if status is None:
                shutil.copyfile(os.path.join(folder, "kernel.cubin"), half)
            else:
                with open(half, "w", encoding="utf-8") as f:
                    json.dump(status, f)
            os.replace(half, f"{base}.{kind}")
        return item

    def results(self, case, files):
        """(file name, bytes) of a case that was compiled."""
        base, name = self.base(case, files), case["case"]
        kind = "cubin" if os.path.exists(base + ".cubin") else "json"
        with open(f"{base}.{kind}", "rb") as f:
            return f"{name}.{kind}", f.read()


def main():
    a = options()
    cases = suite.select(suite.find(a.suite, threading.Lock()), a.tier, a.only)
    os.makedirs(a.out, exist_ok=True)
    exporter = export.Exporter(a.form, execute.Assembler(a.assembler))
    compiler = Compiler(os.path.join(a.out, "compiled"), a.arch)
    path = lambda name: os.path.join(a.out, name)
    # Stored, because the archive around them compresses what cases have in common.
    cases_zip, cubins = export.ZipWriter(path("suite.zip"), stored=True), zipfile.ZipFile(path("cubins.zip"), "w")
    skipped, said, start = [], collections.Counter(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max(1, a.jobs)) as pool:
        # In portions, so that only these are in memory.
        for first in range(0, len(cases), 256):
            for case, files in pool.map(lambda ref: compiler(exporter.convert(ref)), cases[first : first + 256]):
                if not isinstance(case, dict):
                    ref = next(c for c in cases[first : first + 256] if c.name == case)
                    whole = ref.load()[0]
                    skipped.append({k: whole[k] for k in ("case", "tier", "ops", "types")})
                    skipped[-1].update(verdict="skipped", detail=files, seconds=0.0)
                    said["skipped"] += 1
                    continue
                cases_zip.add(case, files)
                name, data = compiler.results(case, files)
                cubins.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
                said["compiled" if name.endswith(".cubin") else json.loads(data)["status"]] += 1
            done = min(first + 256, len(cases))
            print(f"{done}/{len(cases)} cases, {time.monotonic() - start:.0f} s: {dict(said)}", flush=True)
    about = {"arch": a.arch, "version": tileiras_cuda.version(), "form": a.form, "counts": dict(said)}
    cubins.writestr("about.json", json.dumps(about))
    cubins.close()
    cases_zip.close()
    head = tileiras_cuda.description(a.arch)
    report.write(
        path("skipped.json"),
        json.dumps(
            report.made(
                {
                    "implementation": head["name"],
                    "implementation_version": head["version"],
                    "profile": head["profile"],
                    "form": a.form,
                    "tier": a.tier,
                    "only": a.only,
                    "shards": [],
                    "seconds": 0.0,
                },
                skipped,
            ),
            indent=1,
        ),
    )
    with tarfile.open(path("pack.tar.xz"), "w:xz", preset=6) as t:
        for name in ("suite.zip", "cubins.zip", "skipped.json"):
            t.add(path(name), name)
    print(f"{path('pack.tar.xz')}: {os.path.getsize(path('pack.tar.xz')) / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
