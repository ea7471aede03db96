#!/usr/bin/env python3
"""PTX for every target of every entry of the corpus and the examples is accepted by ptxas, without external calls in it.

Skipped without the GPU part, or without ptxas (TILEVM_PTXAS, PATH, or the pip package nvidia-cuda-nvcc).
Environment: TILEVM, SOURCE_DIR, PTX_TARGETS (comma-separated). Arguments: names of kernels instead of all."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
TARGETS = os.environ.get("PTX_TARGETS", "sm_75,sm_80,sm_86,sm_89,sm_90a,sm_100a,sm_103a,sm_120a").split(",")
SKIP = 77
def find_ptxas():
    named = os.environ.get("TILEVM_PTXAS")
    if named:
        return named
    if on_path := shutil.which("ptxas"):
        return on_path
    for where in sysconfig.get_path("purelib"), sysconfig.get_path("platlib"):
        for part in "nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas":
            if os.access(pathlib.Path(where) / part, os.X_OK):
                return str(pathlib.Path(where) / part)
    return None


def newest(folder):
    """The newest bytecode version of each kernel."""
    kernels = {}
    for path in sorted(folder.glob("*.tileirbc")):
        kernels[path.name.split(".")[0]] = path
    return list(kernels.values())


def entries(kernel):
    """Names of the entries; [None] where there is one. At most 12 of a module: more are alike."""
    done = subprocess.run([TILEVM, str(kernel), "--gpu", "--emit", "plan", "--color", "never"], capture_output=True, text=True, timeout=60, check=False)
    if match := re.search(r"the module has \d+ entries: (.*) \[E0801\]", done.stderr):
        return match.group(1).split(", ")[:12]
    return [] if "the module has no entry" in done.stderr else [None]


def check(job):
    kernel, entry, target, ptxas = job
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "k.ptx"
        done = subprocess.run([TILEVM, str(kernel), "--gpu", "--emit", f"ptx={ptx}", "--target", target, "--color", "never", *(["--entry", entry] if entry else [])], capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode != 0:
            message = done.stderr.strip().splitlines()
            if done.returncode == 1 and "E0808" in done.stderr:
                return "refused", message[0] if message else ""
            return "tilevm", f"exit {done.returncode}: " + "\n".join(message[:3])
        text = ptx.read_text()
        if match := re.search(r"^\.extern \.func.*$", text, re.M):
            return "external call", match.group(0)
        done = subprocess.run([ptxas, "-arch", target, "-o", f"{folder}/k.cubin", str(ptx)], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            return "ptxas", (done.stdout + done.stderr).strip()[:600]
    return "ok", ""


def main(names):
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True, check=True).stdout:
        print("skipped: tilevm was built without the GPU part")
        return SKIP
    ptxas = find_ptxas()
    if not ptxas:
        print("skipped: no ptxas (pip install nvidia-cuda-nvcc, or set TILEVM_PTXAS)")
        return SKIP
    kernels = newest(ROOT / "tests" / "corpus" / "tileirbc") + sorted((ROOT / "examples").glob("*.tile"))
    if names:
        kernels = [k for k in kernels if k.name.split(".")[0] in names]
    jobs = [(k, e, t, ptxas) for k in kernels for e in entries(k) for t in TARGETS]
    wrong, refused = 0, {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (kernel, entry, target, _), (result, text) in zip(jobs, pool.map(check, jobs)):
            if result == "refused":
                refused.setdefault(text, []).append(f"{kernel.name} {entry or ''} {target}")
            elif result != "ok":
                wrong += 1
                print(f"{kernel.name} {entry or ''} {target}: {result}: {text}")
    for text, where in sorted(refused.items()):
        print(f"refused {len(where)} times: {text} ({where[0]}, ...)")
    print(f"{len(jobs) - wrong} passed, {wrong} failed")
    return 1 if wrong or not jobs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
