#!/usr/bin/env python3
"""tools/bench/gpu: its kernels are those of peer_set.py and shape_set.py, valid, and right on the interpreter; table, chart and README from a recorded run;
a whole run against a driver that executes nothing, whose results must be called wrong.

Environment: TILEVM, TILEASM, BUILD_DIR, SOURCE_DIR."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", "."))
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "."))
BENCH = SOURCE / "tools" / "bench" / "gpu"
TILEVM = os.environ.get("TILEVM", "tilevm")
TILEASM = os.environ.get("TILEASM", "tileasm")
sys.path.insert(0, str(BENCH))
try:
    import compare
    import peer_set
    import shape_set
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

failures = []


def check(what, condition, details=""):
    if not condition:
        failures.append(f"{what}: {details}")


def kernels():
    for script in ("peer_set.py", "shape_set.py"):
        done = subprocess.run([sys.executable, BENCH / script, "--check"], capture_output=True, text=True)
        check(f"texts of {script}", done.returncode == 0, done.stderr)
    done = subprocess.run([TILEASM, "check", BENCH / "kernels"], capture_output=True, text=True)
    check("tileasm check", done.returncode == 0, done.stderr[-600:])
    options = argparse.Namespace(tilevm=TILEVM, plan=[], limit=120)
    seen = set()
    for row in peer_set.build()[1] + shape_set.build()[1]:
        if row.kernel not in seen:
            seen.add(row.kernel)
            wrong = compare.check(row, options, ("--cpu",))
            check(row.kernel, not wrong, wrong)
    # A check that could not fail would show nothing: the same results against another function.
    row = next(r for r in peer_set.build()[1] if r.kernel == "vadd_2048")
    genuine = compare.small_case
    compare.small_case = lambda r: (*genuine(r)[:2], lambda a, b, c: a - b)
    check("a wrong result is seen", "from NumPy" in compare.check(row, options, ("--cpu",)))
    compare.small_case = genuine


def recorded(folder):
    record = SOURCE / "tests" / "cli" / "gpu_table_record.json"
    table = json.loads(record.read_text())
    target = folder / "README.md"
    target.write_text(f"before\n{compare.BEGIN}\nold\n{compare.END}\nbehind\n")
    line = [sys.executable, BENCH / "compare.py", "--from", record, "--out", folder, "--readme", target]
    done = subprocess.run(line, capture_output=True, text=True)
    # The record has a failed row and a wrong one.
    check("status", done.returncode == 1 and "softmax_4096" in done.stderr and "vadd_2048" in done.stderr, done.stderr)
    check("json", json.loads((folder / "gpu-table.json").read_text()) == table)
    text = (folder / "gpu-table.md").read_text()
    for part in ("Test GPU", "2026-01-02", "| matmul f16 4096 | 600 TFLOP/s | 640 | 0.94 | 660 |  |", "| vector add 2^26 f32 | 3000 GB/s |  |  |  | 75 % |", "128x128 | failed",
                 "| 0.2291 (0.2, 0.3) | 600 TFLOP/s |", "| 1.25 | 12 by 0.0005 of the largest |", "- vadd_2048: largest difference 1"):
        check("markdown", part in text or part.replace("128x128", "528") in text, f"no '{part}' in\n{text}")
    shown = target.read_text()
    check("readme", shown.startswith("before\n") and shown.endswith(f"{compare.END}\nbehind\n") and "old" not in shown and "| matmul f16 4096 | 600 TFLOP/s |" in shown, shown)
    again = subprocess.run(line, capture_output=True, text=True)
    check("readme twice", target.read_text() == shown, again.stderr)
    target.write_text("no marks\n")
    check("readme without marks", subprocess.run(line, capture_output=True, text=True).returncode == 1 and target.read_text() == "no marks\n")
    svg = xml.etree.ElementTree.parse(folder / "gpu-table.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    bars = [r for r in svg.iter(f"{space}rect") if r.get("x") == "270"]
    check("bars", len(bars) == 4, len(bars))  # three of the product, one of the addition
    check("longest bar", max(float(b.get("width")) for b in bars) == 420.0, [b.get("width") for b in bars])
    height = float(svg.get("height"))
    check("bars in the picture", all(float(b.get("y")) + float(b.get("height")) <= height for b in bars))


def whole_run(folder):
    fake = BUILD / "libfake_cuda.so"
    if not fake.exists():
        return
    peers = folder / "peers"
    peers.mkdir()
    (peers / "bmm_f16_128x128x64.cubin").write_bytes(b"\x7fELF" + bytes(64))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TILEVM_", "FAKE_CUDA"))} | {"TILEVM_DRIVER": str(fake), "TILEVM_PTXAS": "driver", "TILEVM_CACHE": str(folder / "cache")}
    done = subprocess.run([sys.executable, BENCH / "compare.py", TILEVM, "--peers", peers, "--only", "bmm_f16*", "--rounds", "2", "--out", folder], env=env, capture_output=True, text=True, timeout=200)
    table = json.loads((folder / "gpu-table.json").read_text())
    rows = {r["kernel"]: r for r in table["rows"]}
    check("rows", set(rows) == {"bmm_f16_128x128x64", "bmm_f16_128x128x32"} and "peer" in rows["bmm_f16_128x128x64"] and "peer" not in rows["bmm_f16_128x128x32"], done.stderr)
    check("results that nothing wrote are wrong", done.returncode == 1 and set(table["wrong"]) == set(rows), done.stderr)


with tempfile.TemporaryDirectory() as name:
    kernels()
    recorded(pathlib.Path(name))
    whole_run(pathlib.Path(name))
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
