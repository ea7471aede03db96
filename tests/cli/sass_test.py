#!/usr/bin/env python3
"""What machine code the kernels of tools/bench/gpu become: the intended units, wide accesses, and no spills in those that are listed.
Remarks about the whole kernel agree with the code.

Skipped where ptxas or a disassembler is missing. Environment: TILEVM, SOURCE_DIR; TILEVM_PTXAS, TILEVM_NVDISASM."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
KERNELS = ROOT / "tools" / "bench" / "gpu" / "kernels"
failures = []

# Kernel, target and choices: patterns of the code that must be there, behind a minus those that must not. None must spill.
EXPECTED = {
    ("mm_f16_128x256x64_c2_p0", "sm_90a"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM"],
    ("mm_f16_128x256x64_c2_p0", "sm_90a grid=loop"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG"],
    ("mm_f16_128x256x64_c2_p1", "sm_90a"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG"],
    ("mm_f16_128x256x64_c2_p1", "sm_90a store=direct"): ["HGMMA", "UTMALDG", r"STG\.E\.128"],
    ("mm_f16_128x128x64_c1_p0", "sm_90a"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM"],
    ("mm_f16_128x128x64_c1_p0", "sm_90a grid=loop"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG"],
    ("mm_f16_128x128x64_c1_p1", "sm_90a"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM"],
    ("mm_bf16_128x256x64_c2_p0", "sm_90a grid=loop"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM"],
    ("mm_tf32_128x128x32_c1_p0", "sm_90a"): ["UTMALDG", "HGMMA|HMMA", "UTMASTG"],
    ("mm_tf32_128x128x32_c1_p0", "sm_90a grid=loop"): ["UTMALDG", "HGMMA", "UTMASTG", r"STS\.64"],
    ("mm_e4m3_128x128x128_c1_p0", "sm_90a"): ["UTMALDG", "[HQ]GMMA|HMMA", "UTMASTG"],
    ("mm_e4m3_128x128x128_c1_p0", "sm_90a grid=loop"): ["UTMALDG", "[HQ]GMMA", "UTMASTG"],
    ("mm_i8_128x128x128_c1_p0", "sm_90a"): ["UTMALDG", "IGMMA|IMMA", "LDSM", "UTMASTG"],
    ("mm_i8_128x128x128_c1_p0", "sm_90a grid=loop"): ["UTMALDG", "IGMMA", "LDSM", "UTMASTG"],
    ("bmm_f16_128x128x64", "sm_90a"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM"],
    ("bmm_f16_128x128x64", "sm_90a grid=loop"): ["HGMMA", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG"],
    ("bmm_tf32_128x128x32", "sm_90a grid=loop"): ["HGMMA", "UTMALDG", "UTMASTG"],
    ("attention_d64_128x64_full", "sm_90a"): ["HGMMA", "UTMALDG", "MUFU.EX2"],
    ("attention_d128_128x128_full", "sm_90a"): ["HGMMA", "UTMALDG", "MUFU.EX2"],
    ("attention_d128_128x128_causal", "sm_90a"): ["HGMMA", "UTMALDG", "MUFU.EX2"],
    ("shapes/mm_a_permute_b_permute", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("shapes/mm_skip", "sm_90a"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128"],
    ("shapes/mm_ragged", "sm_90a tma=off unaligned=pieces"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128", r"LDGSTS\.E\.64", r"LDG\.E\.128", r"STS\.128"],
    ("shapes/mm_gathered", "sm_90a"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128"],
    ("shapes/mm_pointers", "sm_90a"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128", r"STG\.E\.128"],
    ("shapes/mm_pointers", "sm_90a grid=loop alternate=on"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128", r"ARRIVES\.LDGSTSBAR", "USETMAXREG", r"STG\.E\.128"],
    ("shapes/mm_pointers", "sm_90a grid=loop"): ["HGMMA", r"ARRIVES\.LDGSTSBAR", "USETMAXREG"],
    ("shapes/mm_sparse", "sm_90a"): ["HGMMA", r"LDGSTS\.E\.BYPASS\.128"],
    ("shapes/mm_lower", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("shapes/mm_nested", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("shapes/mm_two_loops", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("shapes/mm_two_layers", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("shapes/mm_of_mm", "sm_90a"): [r"HGMMA\.64x128x16\.F32 R\d+, R\d+, gdesc", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG", "-HMMA", "-LDSM", "-STS"],
    ("shapes/mm_of_mm", "sm_90a grid=loop"): [r"HGMMA\.64x128x16\.F32 R\d+, R\d+, gdesc", "UTMALDG", "UTMASTG", "STSM", "USETMAXREG", "-HMMA", "-LDSM", "-STS"],
    ("shapes/mm_of_mm", "sm_90a single=off"): ["HGMMA", "UTMALDG", "HMMA"],
    ("shapes/mm_gelu_128x256", "sm_90a"): ["HGMMA", "UTMALDG", r"MUFU\.(TANH|EX2)"],
    ("shapes/mm_f64_64x64x16", "sm_90a"): [r"DMMA\.16x8x16", "LDGSTS"],
    ("shapes/mm_f64_128x64x16", "sm_90"): [r"DMMA\.16x8x16", "LDGSTS"],
    ("shapes/mm_split_f32", "sm_90a"): ["HGMMA", r"REDG?\.E\.ADD\.F32x4"],
    ("shapes/mm_split_f16", "sm_90a"): ["HGMMA", r"REDG?\.E\.ADD\.F16x8"],
    ("shapes/mm_skinny_16_b_plain", "sm_90a"): ["HGMMA", "UTMALDG"],
    ("vadd_4096", "sm_90a"): [r"LDG\.E\.128", r"STG\.E\.128"],
    ("softmax_4096", "sm_90a"): [r"LDG\.E\.128|UBLKCP|UTMALDG", r"STG\.E\.128"],
    ("layernorm_4096", "sm_90a"): [r"LDG\.E\.128|UBLKCP|UTMALDG", r"STG\.E\.128"],
    ("transpose_64x64", "sm_90a"): [r"LDG\.E\.128|UTMALDG", r"STG\.E\.128|UTMASTG"],
    ("mm_f16_128x128x64_c1_p0", "sm_80"): ["HMMA.16816"],
    ("mm_tf32_128x128x32_c1_p0", "sm_80"): ["HMMA.1688.F32.TF32"],
    ("mm_i8_128x128x128_c1_p0", "sm_80"): ["IMMA.16832"],
    ("bmm_f16_128x128x64", "sm_80"): ["HMMA.16816"],
    ("vadd_4096", "sm_80"): [r"LDG\.E\.128", r"STG\.E\.128"],
    ("softmax_4096", "sm_80"): [r"LDG\.E\.128", r"STG\.E\.128"],
    ("transpose_64x64", "sm_80"): [r"LDG\.E\.128", r"STG\.E\.128"],
}


def look(kernel, target, folder, *plan):
    """Machine code, and the remark about the whole kernel."""
    target, *choices = target.split()
    path = folder / f"{'.'.join([kernel.replace('/', '.'), target, *choices])}.sass"
    plan = [*plan, *(w for c in choices for w in ("--plan", c))]
    done = subprocess.run([TILEVM, KERNELS / f"{kernel}.tile", "--emit", f"sass={path}", "--target", target, "--no-cache", "--remarks=json", *plan], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return None, done.stderr
    if said := re.findall(r".*\(C75\d\d\).*", done.stderr):  # what the assembler changes in groups of products
        return None, said[0]
    whole = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return path.read_text(), next((r for r in whole if r["unit"] == "kernel"), {})


def judge(kernel, target, folder):
    code, whole = look(kernel, target, folder)
    if code is None:
        return [f"{kernel} {target}: {whole[-600:]}"]
    wrong = []
    lacking = [p for p in EXPECTED[kernel, target] if p[0] != "-" and not re.search(rf"\b(?:{p})", code)]
    if extra := [p[1:] for p in EXPECTED[kernel, target] if p[0] == "-" and re.search(rf"\b{p[1:]}\b", code)]:
        wrong.append(f"{kernel} {target}: the code has {', '.join(extra)}")
    if lacking:
        wrong.append(f"{kernel} {target}: the code has no {', '.join(lacking)}")
    if spilled := len(re.findall(r"\b(?:STL|LDL)\b", code)):
        wrong.append(f"{kernel} {target}: {spilled} accesses of local memory")
    if whole.get("spill_store_bytes") != 0 or whole.get("local_bytes") != 0:
        wrong.append(f"{kernel} {target}: remark says of spills: {whole}")
    # The highest register that the code names is one below what the remark says, or a few: they are given out in eights. Where warps give
    # registers to others, the remark says what all have at first.
    highest = max(int(n) for n in re.findall(r"\bR(\d+)\b", code))
    if "USETMAXREG" in code:
        return wrong
    if not highest + 1 <= whole.get("registers", 0) <= 255 or whole["registers"] > highest + 9:
        wrong.append(f"{kernel} {target}: register R{highest} is used, the remark says {whole.get('registers')}")
    if not (whole.get("blocks_per_multiprocessor", 0) >= 1 and 0 < whole["occupancy"] <= 1 and whole["limited_by"]):
        wrong.append(f"{kernel} {target}: occupancy {whole}")
    return wrong


def main():
    probe = subprocess.run([TILEVM, KERNELS / "vadd_2048.tile", "--emit", "sass", "--target", "sm_90a", "--no-cache"], capture_output=True, text=True)
    if probe.returncode != 0:
        if re.search(r"\[(E0808|E0915|E0904)\]", probe.stderr):
            print(f"skipped: {probe.stderr.strip()}")
            return 77
        print(probe.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        for wrong in pool.map(lambda key: judge(*key, folder), EXPECTED):
            failures.extend(wrong)
        # Every level of optimisation makes code that the assembler takes.
        levels = [(ROOT / "examples" / f"{k}.tile", t, o) for k in ("04_f16", "02_loop_over_k", "softmax_rows") for t in ("sm_90a", "sm_80") for o in range(4)]
        done = pool.map(lambda x: subprocess.run([TILEVM, x[0], "--emit", f"cubin={folder}/{x[0].stem}.{x[1]}.{x[2]}", "--target", x[1], f"-O{x[2]}", "--no-cache"], capture_output=True, text=True), levels)
        for level, result in zip(levels, done):
            if result.returncode != 0:
                failures.append(f"{level}: {result.stderr[-300:]}")
        # A kernel without enough registers for its accumulators spills, and both the code and the remark say so.
        code, whole = look("mm_f16_128x256x64_c2_p0", "sm_80", folder, "--plan", "ring=off", "--plan", "warps=4")
        if code is None or not re.search(r"\bSTL\b", code) or not whole.get("spill_store_bytes"):
            failures.append(f"spills are not seen: {whole}")
    # Without a disassembler: a clear error.
    env = {**os.environ, "TILEVM_NVDISASM": "/no/such/nvdisasm"}
    done = subprocess.run([TILEVM, KERNELS / "vadd_2048.tile", "--emit", "sass", "--target", "sm_90a"], capture_output=True, text=True, env=env)
    if done.returncode != 3 or "TILEVM_NVDISASM" not in done.stderr:
        failures.append(f"no disassembler: {done.returncode} {done.stderr}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
