"""What the tests of emulated kernels share: calls of tilevm, and the run of all cases. Environment: TILEVM, TILEVM_PTXAS."""
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

TILEVM = os.environ.get("TILEVM", "tilevm")
SKIP = 77


def tilevm(*arguments):
    return subprocess.run([TILEVM, *map(str, arguments), "--color", "never"], capture_output=True, text=True, timeout=280, check=False)


def forced(plan):
    """"a=b c=d" as options of tilevm."""
    return [word for choice in plan.split() for word in ("--plan", choice)]


def why_skipped(probe):
    """Why no emulated kernel can run here, or "". `probe()` gives what a launch wrote as errors."""
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True, check=True).stdout:
        return "tilevm was built without the GPU part"
    return "this processor cannot run emulated kernels" if "E0916" in probe() else ""


def run_cases(probe, cases, agrees, code, launches):
    """Exit status of a test. probe(folder): as above; agrees(folder, case): what is wrong with a case; code(folder, ptxas): what is with the code;
    `launches`: how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        if why := why_skipped(lambda: probe(folder)):
            print("skipped:", why)
            return SKIP
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda case: agrees(folder, case), cases)
            problems = code(folder, os.environ.get("TILEVM_PTXAS") or shutil.which("ptxas"))
            problems += [p for some in found for p in some]
    for p in problems:
        print(p)
    print(f"{launches} launches, {len(problems)} problems")
    return 1 if problems else 0
