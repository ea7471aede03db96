#!/usr/bin/env python3
"""Attention, whose loops compute with their products (backend/README.md, Streams): every way to run it that --plan can force gives the same
bits on the emulation, whatever the order of threads and copies, close to the interpreter's; and its PTX has what the plan promises. What
loops of products move through shared memory, because layouts do not agree, is pinned, too.

Skipped without the GPU part or a processor that runs its code. With ptxas (TILEVM_PTXAS or PATH), no register is spilled and no product
serialised. Environment: TILEVM, SOURCE_DIR, TILEVM_PTXAS."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from _gpu_kit import forced, run_cases, tilevm  # noqa: E402

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
KERNELS = ROOT / "tools" / "bench" / "gpu" / "kernels"
# Kernel, its keys in a tile, positions, grid: one or two heads of 16, with loops of no, one, two and more trips.
CASES = [("attention_d128_128x128_full", 128, 384, "1,2"), ("attention_d128_128x64_causal", 128, 384, "3,1"), ("attention_d64_128x128_causal", 64, 640, "5,1"),
         ("attention_d64_128x64_full", 64, 256, "2,1")]
PLANS = ["roles=off", "rotate=off", "roles=on", "roles=on rotate=off", "blocks=1 roles=off", "stages=2 rotate=on", "stages=2 rotate=on roles=off blocks=1",
         "left=registers", "left=early", "order=program", "refill=stage", "refill=apart", "refill=apart roles=off rotate=off stages=2", "refill=next",
         "refill=next roles=off rotate=off", "refill=next roles=off rotate=off stages=2"]
ORDERS = [("early", 1), ("late", 2), ("random", 3)]


def result(folder, case, name, *more):
    kernel, depth, positions, grid = case
    arrays = [w for seed in (1, 2, 3) for w in ("--arg", f"array:f16[1,16,{positions},{depth}]=normal(seed={seed})")]
    out = pathlib.Path(folder) / f"{kernel}.{name}.npy"
    done = tilevm(KERNELS / f"{kernel}.tile", "--grid", grid, *arrays, "--arg", f"array:f16[1,16,{positions},{depth}]=zeros", "--out", f"3={out}", *more)
    return (out.read_bytes(), "") if done.returncode == 0 else (None, done.stderr)


def emulated(folder, case, plan, order):
    policy, seed = order
    return result(folder, case, f"{plan}.{seed}".replace(" ", "_"), "--gpu=emulate", "--target", "sm_90a", "--emulate-policy", policy, "--emulate-seed", seed, *forced(plan))


def halves(npy):
    begin = 10 + struct.unpack("<H", npy[8:10])[0]
    return struct.unpack(f"<{(len(npy) - begin) // 2}e", npy[begin:])


def agrees(folder, case):
    """What is wrong with a case."""
    expected, said = result(folder, case, "cpu", "--cpu")
    if expected is None:
        return [f"{case[0]} on the interpreter: {said}"]
    # Approximations of the emulated unit depend on policy and seed, so runs are compared that have both in common.
    problems, first = [], {}
    for number, plan in enumerate([""] * len(ORDERS) + PLANS):
        order = ORDERS[number % len(ORDERS)]
        out, said = emulated(folder, case, plan, order)
        if out is None:
            problems.append(f"{case[0]} with {plan or 'no choice'}, {order}: {said}")
        elif order not in first:
            first[order] = out
            worst = max(abs(a - b) for a, b in zip(halves(expected), halves(out)))
            if not worst < 2e-3:
                problems.append(f"{case[0]} {order}: differs from the interpreter by {worst}")
        elif out != first[order]:
            problems.append(f"{case[0]} with {plan}, {order}: other bits than with no choice")
    return problems


def code(ptxas):
    """What is wrong with the PTX."""
    problems = []

    def expect(what, text, pattern, n):
        found = len(re.findall(pattern, text))
        if found != n if n else found:
            problems.append(f"{what}: {found} of {pattern}, not {n}")

    # Of 128: eight steps of K for each of the two products; the first one is in the code twice, and so is the late one.
    for kernel, plan, products, threads, blocks in (
            ("attention_d128_128x128_full", "", 32, 384, 1), ("attention_d128_128x128_full", "rotate=off", 16, 384, 1), ("attention_d128_128x128_full", "roles=off", 32, 256, 1),
            ("attention_d128_128x128_causal", "", 64, 384, 1), ("attention_d64_128x128_full", "", 12, 256, 2), ("attention_d64_128x64_causal", "", 16, 256, 2),
            ("attention_d64_128x128_causal", "roles=on", 48, 384, 1)):
        what = f"{kernel} {plan}"
        ptx = tilevm(KERNELS / f"{kernel}.tile", "--gpu", "--target", "sm_90a", "--emit", "ptx", *forced(plan)).stdout
        expect(what, ptx, r"wgmma\.mma_async", products)
        expect(what, ptx, r"reqntid " + str(threads), 1)
        expect(what, ptx, r"minnctapersm " + str(blocks), 1)
        expect(what, ptx, r"setmaxnreg", 2 if threads == 384 else 0)
        expect(what, ptx, r"cvt\.rn\.f16\.f32", 0)  # one at a time they take as long as the exponentials
        if ptxas:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "k.ptx"
                path.write_text(ptx)
                done = subprocess.run([ptxas, "-v", "-arch", "sm_90a", "-o", f"{folder}/k.cubin", str(path)], capture_output=True, text=True, timeout=200, check=False)
            said = done.stdout + done.stderr
            expect(what, said, r"C75\d\d", 0)
            expect(what, said, r"[^0-9]0 bytes spill stores, 0 bytes spill loads", 1)
    return problems


def traffic():
    """What a trip of each loop moves through scratch space, where layouts do not agree: nothing in loops of products, streamed or not, on sm_90a. The last
    three have to: without rings operands become fragments there, and sums go over warps."""
    wanted = [(path, "sm_90a", "", ["0"]) for path in sorted(KERNELS.rglob("*.tile")) if path.stem.startswith(("mm_", "bmm_", "attention_"))]
    wanted += [(KERNELS / "attention_d128_128x128_full.tile", "sm_90a", plan, ["0"]) for plan in PLANS]
    wanted += [(ROOT / "examples" / "04_f16.tile", "sm_80", "ring=off", ["8192"]), (ROOT / "examples" / "11_i8.tile", "sm_90a", "ring=off", ["8192"]),
               (KERNELS / "softmax_4096.tile", "sm_90a", "", ["32"])]

    def said(case):
        path, target, plan, _ = case
        done = tilevm(path, "--gpu", "--target", target, "--emit", f"ptx={os.devnull}", "--remarks", *forced(plan))
        return done, sorted(set(re.findall(r"remark: (?:for|loop): (\d+) bytes a trip through scratch space", done.stderr)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(said, wanted))
    return [f"{path.stem} for {target} {plan}: {moved} bytes a trip, not {expected}: {done.stderr[-200:]}" for (path, target, plan, expected), (done, moved) in zip(wanted, found)
            if done.returncode or moved != expected]


def probe(folder):
    return emulated(folder, CASES[-1], "", ORDERS[0])[1]


if __name__ == "__main__":
    sys.exit(run_cases(probe, CASES, agrees, lambda _, ptxas: code(ptxas) + traffic(), len(CASES) * (len(PLANS) + len(ORDERS))))
