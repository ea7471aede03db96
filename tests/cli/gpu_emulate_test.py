#!/usr/bin/env python3
"""The emulated GPU: every example and every launch of the corpus on sm_90a, the examples on sm_80 under each policy of asynchronous copies,
the smoke tier and a fixed shard of the standard tier of the conformance suite on both targets. What kernels print, how they trap and
what their allocas hold is the same as with --cpu.

Skipped without the GPU part or a processor that runs its code. Environment: TILEVM, TILEASM, SOURCE_DIR."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
SHARD = "1/24"  # of the standard tier
# Moved, not computed with: the bits of NaNs stay. Traps in the middle make values pass from block to block of LLVM's code.
MOVES = "shape/insert*bf16"
SKIP = 77

PRINTS = """cuda_tile.module @m { entry @k() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %i = iota : tile<1024xi32>
  %f = itof %i signed : tile<1024xi32> -> tile<1024xf32>
  %t = make_token : token
  %p = print_tko "block %d: %d %f\\0A", %x, %i, %f token=%t : tile<i32>, tile<1024xi32>, tile<1024xf32> -> token
  %q = print_tko "again %d\\0A", %x token=%p : tile<i32> -> token
  return
} }
"""
# Prints, then fails in the second block.
TRAPS = """cuda_tile.module @m { entry @k() {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %i = iota : tile<64xi32>
  %p = print_tko "block %d: %d\\0A", %x, %i : tile<i32>, tile<64xi32> -> token
  %c = cmpi less_than %x, %one, signed : tile<i32> -> tile<i1>
  assert %c, "only one" : tile<i1>
  return
} }
"""
# Every block reverses a row in an alloca of a loop, and keeps its number in another.
ALLOCAS = """cuda_tile.module @m { entry @k(%o: tile<ptr<i32>>) {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %nx, %ny, %nz = get_num_tile_blocks : tile<i32>
  %b1 = muli %z, %ny : tile<i32>
  %b2 = addi %b1, %y : tile<i32>
  %b3 = muli %b2, %nx : tile<i32>
  %block = addi %b3, %x : tile<i32>
  %first = constant <i32: 0> : tile<i32>
  %end = constant <i32: 3> : tile<i32>
  %step = constant <i32: 1> : tile<i32>
  %i = iota : tile<256xi32>
  %last = constant <i32: 255> : tile<256xi32>
  %back = subi %last, %i : tile<256xi32>
  %zero = constant <i32: 0> : tile<256xi32>
  %keep = alloca num_elem = 3, alignment = 8 : tile<ptr<i64>>
  %wide = exti %block signed : tile<i32> -> tile<i64>
  %k1 = store_ptr_tko weak %keep, %wide : tile<ptr<i64>>, tile<i64> -> token
  %sum = for %n in (%first to %end, step %step) : tile<i32> iter_values(%acc = %zero) -> (tile<256xi32>) {
    %m = alloca num_elem = 256, alignment = 128 : tile<ptr<i32>>
    %m1 = reshape %m : tile<ptr<i32>> -> tile<1xptr<i32>>
    %m2 = broadcast %m1 : tile<1xptr<i32>> -> tile<256xptr<i32>>
    %to = offset %m2, %i : tile<256xptr<i32>>, tile<256xi32> -> tile<256xptr<i32>>
    %from = offset %m2, %back : tile<256xptr<i32>>, tile<256xi32> -> tile<256xptr<i32>>
    %n1 = addi %n, %block : tile<i32>
    %n2 = reshape %n1 : tile<i32> -> tile<1xi32>
    %n3 = broadcast %n2 : tile<1xi32> -> tile<256xi32>
    %v = muli %n3, %i : tile<256xi32>
    %t1 = store_ptr_tko weak %to, %v : tile<256xptr<i32>>, tile<256xi32> -> token
    %w, %t2 = load_ptr_tko weak %from token=%t1 : tile<256xptr<i32>> -> tile<256xi32>, token
    %new = addi %acc, %w : tile<256xi32>
    continue %new : tile<256xi32>
  }
  %kept, %k2 = load_ptr_tko weak %keep token=%k1 : tile<ptr<i64>> -> tile<i64>, token
  %narrow = trunci %kept : tile<i64> -> tile<i32>
  %r1 = reshape %narrow : tile<i32> -> tile<1xi32>
  %r2 = broadcast %r1 : tile<1xi32> -> tile<256xi32>
  %width = constant <i32: 256> : tile<256xi32>
  %at = muli %r2, %width : tile<256xi32>
  %at2 = addi %at, %i : tile<256xi32>
  %o1 = reshape %o : tile<ptr<i32>> -> tile<1xptr<i32>>
  %o2 = broadcast %o1 : tile<1xptr<i32>> -> tile<256xptr<i32>>
  %o3 = offset %o2, %at2 : tile<256xptr<i32>>, tile<256xi32> -> tile<256xptr<i32>>
  %t3 = store_ptr_tko weak %o3, %sum : tile<256xptr<i32>>, tile<256xi32> -> token
  return
} }
"""


# Ends neither by itself nor by a device operation that the emulation counts.
ENDLESS = """cuda_tile.module @m { entry @k() {
  loop {
    continue
  }
  return
} }
"""


def two_rings():
    """04_f16 with its loop over K twice: two rings, whose stages share their place in shared memory."""
    text = (ROOT / "examples" / "04_f16.tile").read_text()
    begin, end = text.index("    %sum = for"), text.index("    %ct = ftof")
    again = text[begin:end].replace("%acc0", "%sum").replace("%sum = for", "%both = for")
    return text[:end] + again + text[end:].replace("ftof %sum", "ftof %both")


def run(arguments):
    try:
        done = subprocess.run([TILEVM, *arguments], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "" if done.returncode == 0 else f"exit {done.returncode}: " + (done.stdout + done.stderr).strip()[-400:]


def jobs():
    for job in sorted((ROOT / "examples").glob("*.json")):
        yield ["run", str(job), "--gpu=emulate"]
        for policy in "early", "late":
            yield ["run", str(job), "--gpu=emulate", "--target", "sm_80" if policy == "late" else "sm_90a", "--emulate-policy", policy]
    # Products without rings and on sm_75; rings of cp.async with rows that it cannot copy, that end inside a copy, and of 4 aligned bytes.
    for name in "03_tf32", "04_f16", "05_bf16", "08_swizzled", "09_batched", "11_i8", "12_f8":
        job = str(ROOT / "examples" / f"{name}.json")
        yield ["run", job, "--gpu=emulate", "--target", "sm_75"]
        yield ["run", job, "--gpu=emulate", "--target", "sm_80", "--plan", "ring=off"]
        yield ["run", job, "--gpu=emulate", "--target", "sm_90a", "--plan", "tma=off"]
    for name, e in ("04_f16", "f16"), ("05_bf16", "bf16"), ("03_tf32", "f32"):
        for stride in 101, 102, 104:
            yield [str(ROOT / "examples" / f"{name}.tile"), "--gpu=emulate", "--both", "--target", "sm_86", "--grid", "2,2", "--arg", f"array:{e}[77,99]:strides({stride},1)=normal(seed=1)",
                   "--arg", f"array:{e}[99,70]:strides({stride},1)=normal(seed=2)", "--arg", f"array:{e}[77,70]=zeros"]
    corpus = ROOT / "tests" / "corpus"
    for launch in sorted(corpus.glob("launches/*/launch.json")):
        kernel = corpus / json.loads(launch.read_text())["bytecode"]
        yield ["run", str(launch), "--kernel", str(kernel), "--gpu=emulate"]


def available(name):
    return importlib.util.find_spec(name) is not None


def suite(target, *arguments):
    command = [sys.executable, str(ROOT / "conformance" / "run.py"), "--impl", f"'{sys.executable}' '{ROOT / 'conformance' / 'adapters' / 'tilevm.py'}' --gpu=emulate", *arguments]
    environment = {**os.environ, "TILEVM_FLAGS": f"--target {target}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    return "" if done.returncode == 0 else f"exit {done.returncode}: " + done.stdout[-1500:] + done.stderr[-500:]


def behaviour(folder):
    """Problems of what kernels print, of traps and of allocas."""
    folder = pathlib.Path(folder)
    for name, text in ("prints", PRINTS), ("traps", TRAPS), ("allocas", ALLOCAS), ("endless", ENDLESS), ("two rings", two_rings()):
        (folder / f"{name}.tile").write_text(text)

    def launch(name, *arguments):
        command = [TILEVM, str(folder / f"{name}.tile"), "--color", "never", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    problems = []

    def expect(good, what, done):
        if not good:
            problems.append(f"{what}: exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")

    def lines(done):
        return sorted(done.stdout.splitlines())

    expected = launch("prints", "--grid", "40", "--cpu")
    trap = launch("traps", "--grid", "2", "--threads", "1", "--cpu")
    array = ["--arg", "o=ptr:i32[3072]=zeros", "--grid", "2,3,2"]
    launch("allocas", *array, "--out", f"o={folder}/cpu.npy", "--cpu")
    for options in ["--target", "sm_80"], ["--emulate-policy", "early"], ["--emulate-policy", "late"]:
        where = " ".join(options)
        options = ["--gpu=emulate", *options]
        done = launch("prints", "--grid", "40", *options)
        expect(done.returncode == 0 and len(lines(done)) == 80 and lines(done) == lines(expected), f"prints, {where}", done)
        done = launch("traps", "--grid", "2", "--threads", "1", *options)
        # The interpreter prints the assertion as well.
        printed = [x for x in lines(trap) if "only one" not in x]
        expect(done.returncode == 4 and len(printed) == 2 and lines(done) == printed and done.stderr == trap.stderr, f"traps, {where}", done)
        done = launch("allocas", *array, "--out", f"o={folder}/gpu.npy", *options)
        expect(done.returncode == 0 and (folder / "gpu.npy").read_bytes() == (folder / "cpu.npy").read_bytes(), f"allocas, {where}", done)
    products = ["--both", "--grid", "3,3", *(w for a in ("192,320]=normal(seed=1)", "320,192]=normal(seed=2)", "192,192]=zeros") for w in ("--arg", f"array:f16[{a}"))]
    for plan in ["--plan", "roles=on"], ["--plan", "roles=off"]:
        done = launch("two rings", "--gpu=emulate", "--target", "sm_90a", *products, *plan)
        expect(done.returncode == 0, f"two rings, {plan[1]}", done)
    for limit, code in (["--fuel", "100000"], "L0104"), (["--time-limit", "0.5"], "L0106"):
        done = launch("endless", "--gpu=emulate", *limit)
        expect(done.returncode == 6 and code in done.stderr, f"an endless loop, {limit[0]}", done)
    done = launch("prints", "--grid", "600", "--gpu=emulate")  # 8 KB for each block, of 4 MB
    kept = len(lines(done))
    expect(done.returncode == 0 and 600 < kept < 1200 and f"{1200 - kept} prints did not fit" in done.stderr, "more prints than fit", done)
    expect(set(lines(done)) <= set(lines(launch("prints", "--grid", "600", "--cpu"))), "prints that fit", done)
    done = launch("allocas", "--arg", "o=ptr:i32[256]=zeros", "--grid", "1000000", "--gpu=emulate")
    expect(done.returncode == 1 and "E0808" in done.stderr and "1280 bytes" in done.stderr, "more alloca than there is", done)
    return problems


def main():
    if "gpu: LLVM" not in subprocess.run([TILEVM, "--version"], capture_output=True, text=True, check=True).stdout:
        print("skipped: tilevm was built without the GPU part")
        return SKIP
    first = run(["run", str(ROOT / "examples" / "01_one_tile.json"), "--gpu=emulate"])
    if "E0916" in first:
        print("skipped: this processor cannot run emulated kernels")
        return SKIP
    work = list(jobs())
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for arguments, problem in zip(work, pool.map(run, work)):
            if problem:
                bad += 1
                print(" ".join(arguments[1:]) + ": " + problem)
    with tempfile.TemporaryDirectory() as folder:
        for problem in behaviour(folder):
            bad += 1
            print(problem)
    done = len(work)
    if done < 200:
        bad += 1
        print(f"only {done} launches were found")
    # The committed cases need numpy; those of the standard tier are made here, and need what makes them.
    tiers = []
    if available("numpy"):
        tiers.append([])
        if available("ml_dtypes") and available("mpmath"):
            tiers += [["--tier", "standard", "--shard", SHARD], ["--tier", "standard", "--only", MOVES]]
    if len(tiers) < 3:
        print("left out, for want of numpy, ml_dtypes or mpmath: " + ("the standard tier" if tiers else "the conformance suite"))
    for target in "sm_90a", "sm_80":
        for arguments in tiers:
            done += 1
            if problem := suite(target, *arguments):
                bad += 1
                print(f"conformance {target} {' '.join(arguments)}: {problem}")
    print(f"{done - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
