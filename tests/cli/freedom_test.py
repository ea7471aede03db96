#!/usr/bin/env python3
"""--schedule, --order, --numerics and --uninit with --undef: same seed same launch, what the memory model allows is shown and what it forbids never,
exploring finds the seed that fails, job files and bundles hold all of it, options that exclude each other say so.

Environment: TILEVM, SOURCE_DIR."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TILEVM = os.environ.get("TILEVM", "tilevm")

HEAD = """cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %b, %by, %bz = get_tile_block_id : tile<i32>
    %0 = constant <i32: 0> : tile<i32>
    %1 = constant <i32: 1> : tile<i32>
    %r1 = offset %r, %1 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %first = cmpi equal %b, %0, signed : tile<i32> -> tile<i1>
"""
TAIL = "    return\n  }\n}\n"


# Sums and a body that is not associative over a tile of 4 x 8, and what they gave on an H200.
FOLDED = """0x1.6e7897d044a6bp-1 0x1.a5e5edea1e4d6p+0 -0x1.68b555c0de043p+1 -0x1.c839455ef43bcp+0 -0x1.6498fddfc6294p-5 0x1.eb1c81ce0315fp-2 -0x1.855979221cebdp+0 0x1.4c79c0dce7c21p-1
-0x1.8d8e07378f438p+0 -0x1.ad2ef0df54a7ap-2 0x1.118ff11f6bcf4p-3 0x1.6f046e8b41253p-5 0x1.6753e31cc5f83p+0 -0x1.6ae9c2917e975p-1 0x1.4b558703f5d48p+0 -0x1.52fd01b198a09p-1
0x1.50c20e3b9b51fp-3 0x1.d572067616cb5p-4 -0x1.d5347ca6fb222p-1 0x1.c4f49a7313a66p-3 0x1.1eaeb3eedaac5p+0 0x1.da978a54b6f6ep-4 -0x1.699df5914bd23p+0 0x1.793b0c762ae6cp-1
0x1.76809c3b4c142p+0 -0x1.6bb8dabab0e64p-1 0x1.0585489c0ba46p+0 -0x1.50d00302d8f45p+0 0x1.0d567b24d2b36p+0 0x1.739b16ab3717cp-1 -0x1.e4520629b2166p-3 0x1.2c0f09b673d84p+0"""
FOLDS = ["-0x1.55fdfb9ecb0d1p+1", "-0x1.dde6675fb2e68p-2", "0x1.265ba33d4bbd0p-3", "0x1.960121f16912ep+1",
         "-0x1.6e7897d044a6bp-1", "0x1.118ff11f6bcf4p-3", "-0x1.50c20e3b9b51fp-3", "-0x1.76809c3b4c142p+0"]
FOLD = """!in = !cuda_tile.tensor_view<4x8xf64, strides=[8,1]>
!tile = !cuda_tile.partition_view<tile=(4x8), !in>
!out = !cuda_tile.tensor_view<8xf64, strides=[1]>
!part = !cuda_tile.partition_view<tile=(4), !out>
cuda_tile.module @m {
  entry @k(%a: tile<ptr<f64>>, %r: tile<ptr<f64>>) {
    %0 = constant <i32: 0> : tile<i32>
    %1 = constant <i32: 1> : tile<i32>
    %av = make_tensor_view %a, shape = [4, 8], strides = [8, 1] : !in
    %ap = make_partition_view %av : !tile
    %x, %t = load_view_tko weak %ap[%0, %0] : !tile, tile<i32> -> tile<4x8xf64>, token
    %s = reduce %x dim=1 identities=[0.0 : f64] : tile<4x8xf64> -> tile<4xf64>
    (%l: tile<f64>, %q: tile<f64>) {
      %y = addf %l, %q : tile<f64>
      yield %y : tile<f64>
    }
    %m = reduce %x dim=1 identities=[0.0 : f64] : tile<4x8xf64> -> tile<4xf64>
    (%l: tile<f64>, %q: tile<f64>) {
      %n = negf %q : tile<f64>
      %y = minf %l, %n : tile<f64>
      yield %y : tile<f64>
    }
    %rv = make_tensor_view %r, shape = [8], strides = [1] : !out
    %rp = make_partition_view %rv : !part
    %u = store_view_tko weak %s, %rp[%0] : tile<4xf64>, !part, tile<i32> -> token
    %v = store_view_tko weak %m, %rp[%1] : tile<4xf64>, !part, tile<i32> -> token
    return
  }
}
"""


def branches(one, other):
    return HEAD + "    if %first {\n" + one + "    } else {\n" + other + "    }\n" + TAIL


def store(token, how, to, value, after=""):
    return f"      %{token} = store_ptr_tko {how} %{to}, %{value}{after and f' token=%{after}'} : tile<ptr<i32>>, tile<i32> -> token\n"


def load(value, token, how, source, after=""):
    return f"      %{value}, %{token} = load_ptr_tko {how} %{source}{after and f' token=%{after}'} : tile<ptr<i32>> -> tile<i32>, token\n"


# Store buffering: each block stores to one place and reads the other; both may read the old value.
BUFFERING = branches(store("a", "relaxed device", "x", "1") + load("p", "c", "relaxed device", "y", "a") + store("d", "weak", "r", "p"),
                     store("e", "relaxed device", "y", "1") + load("q", "f", "relaxed device", "x", "e") + store("g", "weak", "r1", "q"))


def message(release, acquire):
    """One block writes x and then raises the flag y; r is the flag that the other saw, r + 1 the data."""
    return branches(store("a", "weak", "x", "1") + store("c", release, "y", "1", "a"),
                    load("p", "d", acquire, "y") + load("q", "e", "weak", "x", "d") + store("g", "weak", "r", "p") + store("h", "weak", "r1", "q"))


# Sums of f16 that become f32, and a body with two operands; what they gave on an H200.
WIDENED, PRODUCTS, STEPS = (0x425D66B8, 0x42DE9FFA, 0x4287C10E, 0x42B26709), (0x3A13BBB1, 0x3C736F6F), (0x420CE69D, 0xC230DA65)
WIDEN = """!in = !cuda_tile.tensor_view<4096xf16, strides=[1]>
!tile = !cuda_tile.partition_view<tile=(1024), !in>
!out = !cuda_tile.tensor_view<4xf32, strides=[1]>
!part = !cuda_tile.partition_view<tile=(1), !out>
cuda_tile.module @m {
  entry @k(%a: tile<ptr<f16>>, %r: tile<ptr<f32>>) {
    %b, %by, %bz = get_tile_block_id : tile<i32>
    %a1 = assume div_by<16>, %a : tile<ptr<f16>>
    %av = make_tensor_view %a1, shape = [4096], strides = [1] : !in
    %ap = make_partition_view %av : !tile
    %x, %t = load_view_tko weak %ap[%b] : !tile, tile<i32> -> tile<1024xf16>, token
    %w = ftof %x : tile<1024xf16> -> tile<1024xf32>
    %s = reduce %w dim=0 identities=[0.0 : f32] : tile<1024xf32> -> tile<f32>
    (%l: tile<f32>, %q: tile<f32>) {
      %y = addf %l, %q : tile<f32>
      yield %y : tile<f32>
    }
    %s1 = reshape %s : tile<f32> -> tile<1xf32>
    %rv = make_tensor_view %r, shape = [4], strides = [1] : !out
    %rp = make_partition_view %rv : !part
    %u = store_view_tko weak %s1, %rp[%b] : tile<1xf32>, !part, tile<i32> -> token
    return
  }
}
"""
PAIR = """!in = !cuda_tile.tensor_view<2048xf32, strides=[1]>
!tile = !cuda_tile.partition_view<tile=(1024), !in>
!out = !cuda_tile.tensor_view<2xf32, strides=[1]>
!part = !cuda_tile.partition_view<tile=(1), !out>
cuda_tile.module @m {
  entry @k(%a: tile<ptr<f32>>, %c: tile<ptr<f32>>, %r: tile<ptr<f32>>, %s: tile<ptr<f32>>) {
    %b, %by, %bz = get_tile_block_id : tile<i32>
    %a1 = assume div_by<16>, %a : tile<ptr<f32>>
    %av = make_tensor_view %a1, shape = [2048], strides = [1] : !in
    %ap = make_partition_view %av : !tile
    %c1 = assume div_by<16>, %c : tile<ptr<f32>>
    %cv = make_tensor_view %c1, shape = [2048], strides = [1] : !in
    %cp = make_partition_view %cv : !tile
    %x, %t = load_view_tko weak %ap[%b] : !tile, tile<i32> -> tile<1024xf32>, token
    %y, %u = load_view_tko weak %cp[%b] : !tile, tile<i32> -> tile<1024xf32>, token
    %p, %q = reduce %x, %y dim=0 identities=[1.0 : f32, 0.0 : f32] : tile<1024xf32>, tile<1024xf32> -> tile<f32>, tile<f32>
    (%al: tile<f32>, %ar: tile<f32>, %bl: tile<f32>, %br: tile<f32>) {
      %m = mulf %al, %ar : tile<f32>
      %n = fma %bl, %ar, %br : tile<f32>
      yield %m, %n : tile<f32>, tile<f32>
    }
    %p1 = reshape %p : tile<f32> -> tile<1xf32>
    %q1 = reshape %q : tile<f32> -> tile<1xf32>
    %rv = make_tensor_view %r, shape = [2], strides = [1] : !out
    %rp = make_partition_view %rv : !part
    %v = store_view_tko weak %p1, %rp[%b] : tile<1xf32>, !part, tile<i32> -> token
    %sv = make_tensor_view %s, shape = [2], strides = [1] : !out
    %sp = make_partition_view %sv : !part
    %w = store_view_tko weak %q1, %sp[%b] : tile<1xf32>, !part, tile<i32> -> token
    return
  }
}
"""


MASK = 2**64 - 1


def mixed(i):
    """Well mixed bits of a number."""
    z = (i + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def about_normal(i, salt):
    return sum((mixed(i + (salt << 40) + half) >> k & 0xFFFF) / 65536 - 0.5 for half in (0, 1 << 39) for k in (0, 16, 32, 48)) * 1.2


def scaled(i):
    return about_normal(i, 101) * 2.0**(mixed(i + 7) % 9 - 4)


KERNELS = {
    "fold.tile": FOLD,
    "widen.tile": WIDEN,
    "pair.tile": PAIR,
    "buffering.tile": BUFFERING,
    "message.tile": message("release device", "acquire device"),
    "broken.tile": message("relaxed device", "relaxed device"),
    # Each block writes its number: the last one stays.
    "last.tile": HEAD + store("a", "weak", "r", "b") + '    %t = print_tko "block %d\\0A", %b : tile<i32> -> token\n' + TAIL,
    # Block 0 waits for block 1, whatever the number of threads.
    "wait.tile": branches("""      %w = loop iter_values(%t = %0) : tile<i32> -> tile<i32> {
        %f, %u = load_ptr_tko acquire device %y : tile<ptr<i32>> -> tile<i32>, token
        %set = cmpi equal %f, %1, signed : tile<i32> -> tile<i1>
        if %set {
          break %f : tile<i32>
        }
        continue %f : tile<i32>
      }
""" + store("d", "weak", "r", "w"), store("a", "release device", "y", "1")),
    # f64 sums and products of NaN; f32 atomic addition of subnormal numbers.
    "numbers.tile": """cuda_tile.module @m {
  entry @k(%a: tile<ptr<f64>>, %b: tile<ptr<f64>>, %out: tile<ptr<f64>>, %s: tile<ptr<f32>>) {
    %i = iota : tile<8xi32>
    %ra = reshape %a : tile<ptr<f64>> -> tile<1xptr<f64>>
    %rb = reshape %b : tile<ptr<f64>> -> tile<1xptr<f64>>
    %ro = reshape %out : tile<ptr<f64>> -> tile<1xptr<f64>>
    %ba = broadcast %ra : tile<1xptr<f64>> -> tile<8xptr<f64>>
    %bb = broadcast %rb : tile<1xptr<f64>> -> tile<8xptr<f64>>
    %bo = broadcast %ro : tile<1xptr<f64>> -> tile<8xptr<f64>>
    %pa = offset %ba, %i : tile<8xptr<f64>>, tile<8xi32> -> tile<8xptr<f64>>
    %pb = offset %bb, %i : tile<8xptr<f64>>, tile<8xi32> -> tile<8xptr<f64>>
    %po = offset %bo, %i : tile<8xptr<f64>>, tile<8xi32> -> tile<8xptr<f64>>
    %x, %t = load_ptr_tko weak %pa : tile<8xptr<f64>> -> tile<8xf64>, token
    %y, %u = load_ptr_tko weak %pb : tile<8xptr<f64>> -> tile<8xf64>, token
    %z = addf %x, %y rounding<nearest_even> : tile<8xf64>
    %v = store_ptr_tko weak %po, %z : tile<8xptr<f64>>, tile<8xf64> -> token
    %tiny = constant <f32: 0x00000001> : tile<f32>
    %old, %w = atomic_rmw_tko relaxed device %s, addf, %tiny : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
    return
  }
}
""",
    "read.tile": HEAD + load("p", "c", "weak", "x") + store("d", "weak", "r", "p") + TAIL,
}
ARRAYS = ["--arg", "x=ptr:i32[1]=zeros", "--arg", "y=ptr:i32[1]=zeros", "--arg", "r=ptr:i32[2]=zeros"]
NAN, QUIET, SIGNALLING = 0x7FF8000000000000, 0xFFF8000000001234, 0x7FF0000000000042
INFINITY, MINUS_INFINITY, ONE = 0x7FF0000000000000, 0xFFF0000000000000, 0x3FF0000000000000
A = [ONE, QUIET, ONE, SIGNALLING, INFINITY, QUIET, NAN, 0]
B = [ONE, ONE, QUIET, ONE, MINUS_INFINITY, SIGNALLING, QUIET, 0]
# What an H200 gives: the first NaN, made quiet; for an invalid operation the negative NaN.
SUMS = [0x4000000000000000, QUIET, QUIET, SIGNALLING | 1 << 51, 0xFFF8000000000000, QUIET, NAN, 0]

WRONG = [
    (["--schedule", "x"], "is not a seed"), (["--schedule", "explore:0"], "is not a seed"), (["--order", "-1"], "is not a seed"),
    (["--order", "explore:5:"], "is not a seed"), (["--schedule", "18446744073709551616"], "is not a seed"), (["--numerics", "h100"], "exact or h200"),
    (["--schedule", "1", "--threads", "4"], "--schedule and --threads exclude each other"),
    (["--schedule", "1", "--profile"], "--schedule and --profile exclude each other"),
    (["--schedule", "explore:5", "--order", "explore:5"], "cannot both explore"),
    (["--schedule", "explore:5", "--trace"], "--schedule=explore:5 and --trace exclude each other"),
    (["--order", "explore:5", "--bundle", "never"], "--order=explore:5 and --bundle exclude each other"),
    (["--order", "explore:5", "--repeat", "2"], "and --repeat exclude each other"),
    (["--order", "explore:5", "--access-map", "never.svg"], "and --access-map exclude each other"),
]
WRONG_ON_GPU = [(["--gpu=emulate", "--schedule", "1"], "--schedule and --gpu exclude each other"), (["--gpu=emulate", "--order", "1"], "--order and --gpu"),
                (["--gpu=emulate", "--numerics", "h200"], "--numerics and --gpu")]


class Checker:
    def __init__(self, folder):
        self.folder, self.passed, self.failed = folder, 0, 0

    def that(self, name, right, found=""):
        if right:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {found}", flush=True)

    def run(self, *arguments, text=True, **how):
        return subprocess.run([TILEVM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=text, timeout=120, check=False, **how)

    def result(self, kernel, *options, grid="2"):
        """What r holds afterwards."""
        done = self.run(kernel, "--grid", grid, *ARRAYS, "--show", "r", *options)
        found = re.search(r"^r: i32\[2\] = (-?\d+), (-?\d+)$", done.stdout, re.M)
        return (int(found[1]), int(found[2])) if done.returncode == 0 and found else f"exit {done.returncode} {done.stdout} {done.stderr}"

    def outcomes(self, kernel, seeds):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda seed: self.result(kernel, "--schedule", str(seed)), range(seeds)))


def schedules(c):
    once = c.outcomes("buffering.tile", 60)
    c.that("same seed, same launch", once == c.outcomes("buffering.tile", 60), once)
    c.that("store buffering shows every outcome", set(once) == {(0, 0), (0, 1), (1, 0), (1, 1)}, set(once))
    c.that("a seed in hexadecimal is the same number", c.result("buffering.tile", "--schedule", "0x1f") == once[31])
    right = c.outcomes("message.tile", 60)
    c.that("release and acquire carry the message", set(right) == {(0, 0), (0, 1), (1, 1)}, set(right))
    c.that("without them it can be lost", (1, 0) in c.outcomes("broken.tile", 60))
    c.that("a wait for a later block ends", c.result("wait.tile", "--schedule", "3") == (1, 0), c.result("wait.tile", "--schedule", "3"))
    waits = c.run("wait.tile", "--grid", "2", *ARRAYS, "--threads", "1", "--fuel", "100000")
    c.that("and without interleaving it does not", waits.returncode == 6 and "L0104" in waits.stderr, waits.stderr)


def exploring(c):
    broken = c.run("broken.tile", "--grid", "2", *ARRAYS, "--schedule", "explore:200")
    seed = re.search(r"--schedule=(\d+) against --schedule=0: ", broken.stderr)
    c.that("exploring finds a schedule with another result", broken.returncode == 5 and seed and "argument 2 (r)" in broken.stderr and
           f"--schedule={seed[1]} repeats it; {seed[1]} seed" in broken.stderr, f"{broken.returncode} {broken.stderr}")
    if seed:
        c.that("the seed that it names gives that result", c.result("broken.tile", "--schedule", seed[1]) != c.result("broken.tile", "--schedule", "0"))
    # A job decides by its expectations: all but the lost message are right.
    job = {"kernel": "message.tile", "grid": [2], "args": [a for a in ARRAYS if a != "--arg"], "expect": [{"arg": "x", "generate": "ones"}, {"arg": "r", "generate": "i32[2]=arange",
           "compare": {"rule": "close", "abs": 1, "rel": 0}}]}
    (c.folder / "job.json").write_text(json.dumps({**job, "schedule": "explore:60"}))
    done = c.run("run", "job.json")
    c.that("a job that every schedule satisfies", done.returncode == 0 and "60 schedules, seeds 0 to 59, gave the same result" in done.stderr, f"{done.returncode} {done.stderr}")
    report = json.loads(c.run("run", "job.json", "--json").stdout)
    c.that("report", (report["result"], report["schedule"], report["explored"]) == ("ok", "explore:60", {"launches": 60}), report)
    (c.folder / "bad.json").write_text(json.dumps({**job, "kernel": "broken.tile", "schedule": "explore:200:1", "expect": [{"arg": "r", "generate": "zeros"}]}))
    done = c.run("run", "bad.json", "--json")
    report = json.loads(done.stdout)
    c.that("a job that a schedule breaks", done.returncode == 5 and report["explored"]["found"] >= 1 and
           "repeats it" in report["diagnostics"][0]["notes"][0]["message"], done.stdout)
    done = c.run("broken.tile", "--grid", "2", *ARRAYS, "--schedule", "explore:50", "--check", "race")
    c.that("a checker that fires", done.returncode == 4 and "T0114" in done.stderr and "--schedule=0 repeats it" in done.stderr, done.stderr)
    done = c.run("last.tile", "--grid", "8", *ARRAYS, "--order", "explore:20")
    c.that("exploring orders", done.returncode == 5 and re.search(r"--order=\d+ against --order=0: 1 of 2 elements differ", done.stderr), f"{done.returncode} {done.stderr}")
    done = c.run("read.tile", *ARRAYS, "--order", "explore:20")
    c.that("one block has one order", done.returncode == 0 and "20 orders, seeds 0 to 19, gave the same result" in done.stderr, done.stderr)


def orders(c):
    plain = c.run("last.tile", "--grid", "50", *ARRAYS, "--threads", "1").stdout
    c.that("blocks begin with the first", plain == "".join(f"block {i}\n" for i in range(50)), plain)
    one, other = (c.run("last.tile", "--grid", "50", *ARRAYS, "--order", seed).stdout for seed in ("1", "2"))
    c.that("every block once", sorted(one.splitlines()) == sorted(other.splitlines()) == sorted(plain.splitlines()), one)
    c.that("orders differ", len({plain, one, other}) == 3)
    c.that("the same seed gives the same order", one == c.run("last.tile", "--grid", "50", *ARRAYS, "--order", "1").stdout)
    shown = c.run("last.tile", "--grid", "50", *ARRAYS, "--order", "1", "--ordered-prints").stdout
    c.that("prints in the order of blocks all the same", shown == plain, shown)
    for seed in ("3", "4"):
        shown = c.run("last.tile", "--grid", "50", *ARRAYS, "--schedule", seed, "--ordered-prints", "--print-blocks").stdout
        c.that("also of interleaved blocks", shown == "".join(f"[block {i},0,0] block {i}\n" for i in range(50)), shown)


def seeing(c):
    def trace(seed):
        return c.run("buffering.tile", "--grid", "2", *ARRAYS, "--schedule", str(seed), "--trace").stderr

    def turns(text):
        """The blocks in the order of their lines, each run of lines once."""
        blocks = re.findall(r"^\[(\d),0,0\]", text, re.M)
        return [b for k, b in enumerate(blocks) if k == 0 or blocks[k - 1] != b]
    seed = next((s for s in range(40) if len(turns(trace(s))) > 2), 0)
    traced = [trace(seed) for _ in range(2)]
    alone = ["\n".join(line for line in traced[0].splitlines() if line.startswith(f"[{b},0,0]")) for b in (0, 1)]
    c.that("the same trace", traced[0] == traced[1])
    c.that("blocks mix in it", len(turns(traced[0])) > 2 and len(set(turns(traced[0]))) == 2, traced[0])
    c.that("each block is whole", all(t.count("load_ptr_tko") == 1 and t.count("store_ptr_tko") == 2 and t.endswith("return") for t in alone), traced[0])
    done = c.run("buffering.tile", "--grid", "2", *ARRAYS, "--schedule", "7", "--break", "load_ptr_tko", input="print b\nnext\nnext\nprint b\ncontinue\nprint b\ncontinue\n")
    shown = re.findall(r"^%b : tile<i32> = (\d)$", done.stderr, re.M)
    c.that("steps follow their block", done.returncode == 0 and len(shown) == 3 and shown[0] == shown[1] != shown[2], done.stderr)


def numbers(c):
    folded = [int.from_bytes(struct.pack("<d", float.fromhex(x)), "little") for x in FOLDED.split()]
    for name, bits in (("a", A), ("b", B), ("folded", folded)):
        header = b"{'descr': '<u8', 'fortran_order': False, 'shape': (%d,), }" % len(bits)
        header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
        (c.folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(bits)}Q", *bits))
    arguments = ["numbers.tile", "--arg", "ptr:f64:a.npy", "--arg", "ptr:f64:b.npy", "--arg", "out=ptr:f64[8]=zeros", "--arg", "s=ptr:f32[1]=full(0x00000002)",
                 "--out", "out=out.npy", "--out", "s=s.npy"]

    def found(*options):
        done = c.run(*arguments, *options)
        c.that("numbers", done.returncode == 0, done.stderr)
        return list(struct.unpack("<8Q", (c.folder / "out.npy").read_bytes()[-64:])), struct.unpack("<I", (c.folder / "s.npy").read_bytes()[-4:])[0]
    exact = [s if s in (0x4000000000000000, 0) else NAN for s in SUMS]
    c.that("this machine's own numbers", found() == found("--numerics", "exact") == (exact, 3), found())
    c.that("those of an H200", found("--numerics", "h200") == (SUMS, 0), [hex(x) for x in found("--numerics", "h200")[0]])

    def folds(*options):
        done = c.run("fold.tile", "--arg", "ptr:f64:folded.npy", "--arg", "r=ptr:f64[8]=zeros", "--out", "r=r.npy", *options)
        c.that("folds", done.returncode == 0, done.stderr)
        return struct.unpack("<8d", (c.folder / "r.npy").read_bytes()[-64:])
    wanted = tuple(float.fromhex(x) for x in FOLDS)
    c.that("the order of an H200", folds("--numerics", "h200") == wanted, [x.hex() for x in folds("--numerics", "h200")])
    c.that("another order than this machine's", folds()[0] != wanted[0] and folds()[4] != wanted[4], folds())

    values = {"x.npy": ("e", [scaled(i) for i in range(4096)]), "near_one.npy": ("f", [1 + about_normal(i, 100) / 8 for i in range(2048)]), "y.npy": ("f", [scaled(i) for i in range(2048)])}
    for name, (kind, numbers_of) in values.items():
        header = b"{'descr': '<f%d', 'fortran_order': False, 'shape': (%d,), }" % (struct.calcsize(kind), len(numbers_of))
        header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
        (c.folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(numbers_of)}{kind}", *numbers_of))

    def sums(kernel, *options, outs):
        done = c.run(kernel, *options, *(word for o in outs for word in ("--out", f"{o}={o}.npy")))
        c.that(kernel, done.returncode == 0, done.stderr)
        return [struct.unpack("<%dI" % n, (c.folder / f"{o}.npy").read_bytes()[-4 * n:]) for o, n in outs.items()]
    widen = ("widen.tile", "--grid", "4", "--arg", "ptr:f16:x.npy", "--arg", "r=ptr:f32[4]=zeros")
    pair = ("pair.tile", "--grid", "2", "--arg", "ptr:f32:near_one.npy", "--arg", "ptr:f32:y.npy", "--arg", "p=ptr:f32[2]=zeros", "--arg", "q=ptr:f32[2]=zeros")
    for arguments, outs, wanted in ((widen, {"r": 4}, [WIDENED]), (pair, {"p": 2, "q": 2}, [PRODUCTS, STEPS])):
        h200, own = sums(*arguments, "--numerics", "h200", outs=outs), sums(*arguments, outs=outs)
        c.that(f"{arguments[0]} on an H200", h200 == wanted, h200)
        c.that(f"{arguments[0]} in another order", own != wanted, own)


def uninitialised(c):
    def shown(*options):
        done = c.run("read.tile", "--arg", "x=ptr:i32[1]=full(5)", *ARRAYS[2:], "--show", "r", *options)
        return done.stdout.strip() if done.returncode == 0 else f"{done.returncode} {done.stderr}"
    c.that("contents as given", shown() == shown("--uninit", "x") == "r: i32[2] = 5, 0", shown("--uninit", "x"))
    c.that("poisoned", shown("--uninit", "x", "--undef", "nan") == "r: i32[2] = -1, 0", shown("--uninit", "x", "--undef", "nan"))
    one, two = (shown("--uninit", "x", "--undef", "random", "--undef-seed", seed) for seed in ("1", "2"))
    c.that("random", len({one, two, "r: i32[2] = 5, 0"}) == 3 and one == shown("--uninit", "x", "--undef", "random"), f"{one} {two}")
    done = c.run("read.tile", *ARRAYS, "--uninit", "x", "--undef", "random", "--check", "init")
    c.that("and found", done.returncode == 4 and "T0113" in done.stderr and "argument 0 (x)" in done.stderr, done.stderr)


def bundles(c):
    done = c.run("buffering.tile", "--grid", "2", *ARRAYS, "--schedule", "11", "--order", "5", "--numerics", "h200", "--uninit", "r", "--undef", "random", "--bundle", "b.bundle")
    c.that("bundle", done.returncode == 0, done.stderr)
    done = c.run("replay", "b.bundle", "--json")
    report = json.loads(done.stdout)
    c.that("replay", done.returncode == 0 and "bit-equal" in report["replay"] and (report["schedule"], report["order"], report["numerics"]) == ("11", "5", "h200"), done.stdout)
    # A seed with another result shows that it is the recorded one that is repeated.
    results = c.outcomes("buffering.tile", 40)
    then = results.index((0, 0))
    other = next(s for s, r in enumerate(results) if r != (0, 0))
    done = c.run("buffering.tile", "--grid", "2", *ARRAYS, "--schedule", str(then), "--bundle", "s.bundle")
    c.that("bundle of a schedule", done.returncode == 0, done.stderr)
    done = c.run("replay", "s.bundle", "--show", "r")
    c.that("replay of a schedule", done.returncode == 0 and "r: i32[2] = 0, 0" in done.stdout, f"{done.stdout} {done.stderr}")
    done = c.run("replay", "s.bundle", "--schedule", str(other))
    done = c.run("replay", "s.bundle", "--schedule", str(other), "--dump", "others")
    dumped = (c.folder / "others" / "buffer_2.npy").read_bytes()[-8:] if (c.folder / "others").exists() else b""
    c.that("its arrays", dumped == struct.pack("<2i", *results[other]), dumped)
    c.that("with another one", done.returncode == 5 and "argument 2 (r) differs" in done.stderr, f"{done.returncode} {done.stderr}")


def jobs(c):
    job = {"kernel": "buffering.tile", "grid": [2], "args": [a for a in ARRAYS if a != "--arg"]}
    wanted = c.result("buffering.tile", "--schedule", "9")
    for name, fields in (("number", {"schedule": 9}), ("text", {"schedule": "0x9", "order": "9", "numerics": "h200"})):
        (c.folder / "seed.json").write_text(json.dumps({**job, **fields}))
        done = c.run("run", "seed.json", "--show", "r")
        c.that(f"seed of a job as {name}", done.returncode == 0 and f"= {wanted[0]}, {wanted[1]}" in done.stdout, f"{done.stdout} {done.stderr}")
    report = json.loads(c.run("run", "seed.json", "--json", "--schedule", "2", "--numerics", "exact").stdout)
    c.that("the command line decides", (report["schedule"], report["order"], report["numerics"]) == ("2", "9", "exact"), report)
    for fields, words in (({"schedule": -1}, "schedule is the number -1, expected a seed"), ({"order": True}, "order is"), ({"numerics": "fast"}, "expected exact or h200"), ({"schedule": 1.5}, "expected a seed")):
        (c.folder / "wrong.json").write_text(json.dumps({**job, **fields}))
        done = c.run("run", "wrong.json")
        c.that(f"wrong in a job: {fields}", done.returncode == 1 and "E0807" in done.stderr and words in done.stderr, done.stderr)
    (c.folder / "both.json").write_text(json.dumps({**job, "schedule": 1}))
    done = c.run("run", "both.json", "--threads", "3")
    c.that("a job's schedule excludes threads, too", done.returncode == 2 and "exclude each other" in done.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in KERNELS.items():
            (folder / file).write_text(text)
        c = Checker(folder)
        for part in (schedules, exploring, orders, seeing, numbers, uninitialised, bundles, jobs):
            part(c)
        wrong = list(WRONG)
        if "gpu: not in this build" not in c.run("--version").stdout:
            wrong += WRONG_ON_GPU
        for options, words in wrong:
            done = c.run("buffering.tile", "--grid", "2", *ARRAYS, *options)
            c.that(f"wrong: {' '.join(options)}", done.returncode == 2 and words in done.stderr and not [f for f in os.listdir(folder) if "never" in f], f"{done.returncode} {done.stderr}")
    print(f"{c.passed} passed, {c.failed} failed")
    return 1 if c.failed else 0


if __name__ == "__main__":
    sys.exit(main())
