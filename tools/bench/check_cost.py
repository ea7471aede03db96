#!/usr/bin/env python3
"""What the checkers cost: launches without checks, with --check=default and with --check=all, in turn, on one thread.

  check_cost.py [TILEVM] [--rounds N] [--only REGEX] [--prefix "chrt -r 10"] [--corpus FOLDER] [--most TIMES]

Of each the fastest launch of all rounds counts. --prefix is put before every command: real-time priority keeps other work away.
--corpus measures the launches that lie in a folder (tests/corpus/launches) instead of those of this script, each as often as fits into 50 ms,
and shows the dearest first; launches that must end with an error are left out. Exit status 1 if a launch with all checks takes more than --most times."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import check_kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 131072

TWO = """!view = !cuda_tile.tensor_view<{rows}x{columns}x{type}, strides=[{columns},1]>
!tiles = !cuda_tile.partition_view<tile=({tile}), !view>
cuda_tile.module @m {{ entry @k(%a: tile<ptr<{type}>>, %b: tile<ptr<{type}>>, %c: tile<ptr<{type}>>) {{
    %x, %y, %z = get_tile_block_id : tile<i32>
    %av = make_tensor_view %a, shape = [{rows},{columns}], strides = [{columns},1] : !view
    %bv = make_tensor_view %b, shape = [{rows},{columns}], strides = [{columns},1] : !view
    %cv = make_tensor_view %c, shape = [{rows},{columns}], strides = [{columns},1] : !view
    %ap = make_partition_view %av : !tiles
    %bp = make_partition_view %bv : !tiles
    %cp = make_partition_view %cv : !tiles
    %at, %t0 = load_view_tko weak %ap[%x,%y] : !tiles, tile<i32> -> tile<{tile}x{type}>, token
    %bt, %t1 = load_view_tko weak %bp[%x,%y] : !tiles, tile<i32> -> tile<{tile}x{type}>, token
    %sum = addf %at, %bt : tile<{tile}x{type}>
    %t2 = store_view_tko weak %sum, %cp[%x,%y] : tile<{tile}x{type}>, !tiles, tile<i32> -> token
    return
}} }}
"""

LOOP = """!view = !cuda_tile.tensor_view<131072xf32, strides=[1]>
!tiles = !cuda_tile.partition_view<tile=(256), !view>
cuda_tile.module @m { entry @k(%a: tile<ptr<f32>>, %c: tile<ptr<f32>>) {
    %x, %y, %z = get_tile_block_id : tile<i32>
    %av = make_tensor_view %a, shape = [131072], strides = [1] : !view
    %cv = make_tensor_view %c, shape = [131072], strides = [1] : !view
    %ap = make_partition_view %av : !tiles
    %cp = make_partition_view %cv : !tiles
    %from = constant <i32: 0> : tile<i32>
    %step = constant <i32: 1> : tile<i32>
    %to = constant <i32: 32> : tile<i32>
    %first = muli %x, %to : tile<i32>
    %zero = constant <f32: 0.0> : tile<256xf32>
    %sum = for %i in (%from to %to, step %step) : tile<i32> iter_values(%acc = %zero) -> (tile<256xf32>) {
      %at = addi %first, %i : tile<i32>
      %v, %t0 = load_view_tko weak %ap[%at] : !tiles, tile<i32> -> tile<256xf32>, token
      %next = addf %acc, %v : tile<256xf32>
      continue %next : tile<256xf32>
    }
    %t2 = store_view_tko weak %sum, %cp[%x] : tile<256xf32>, !tiles, tile<i32> -> token
    return
} }
"""


def cases(folder):
    """Name, arguments, launches of one run."""
    def kernel(name, text):
        (folder / name).write_text(text)
        return str(folder / name)

    def of_size(example, n):
        return kernel(f"{example}_{n}.tile", (ROOT / "examples" / f"{example}.tile").read_text().replace("256", str(n)))

    def arrays(form, shape, element="f32", generator="ones"):
        return [w for g in (generator, generator, "zeros") for w in ("--arg", f"{form}:{element}[{shape}]={g}")]

    for n in (128, 256, 512, 1024):
        yield f"vector add, views of {n}", [of_size("vector_add_views", n), "--grid", str(COUNT // n), *arrays("array", COUNT)], 400
    for n in (128, 256):
        yield f"vector add, pointers, {n}", [of_size("vector_add_pointers", n), "--grid", str(COUNT // n), *arrays("ptr", COUNT), "--arg", f"i32:{COUNT}"], 100
    for what, rows, columns, element, tile, grid in (("", 512, 256, "f32", "16x16", "32,16"), ("", 512, 256, "f16", "16x16", "32,16"),
                                                     (" of rows of 250", 512, 250, "f32", "16x16", "32,15"), ("", 512, 256, "f32", "32x8", "16,32")):
        text = TWO.format(rows=rows, columns=columns, type=element, tile=tile)
        name = f"add, views of {tile} {element}{what}"
        yield name, [kernel(f"two_{tile}_{element}_{columns}.tile", text), "--grid", grid, *arrays("ptr", f"{rows},{columns}", element)], 200
    yield "sum over 32 views of 256", [kernel("loop.tile", LOOP), "--grid", "16", "--arg", f"ptr:f32[{COUNT}]=ones", "--arg", f"ptr:f32[{COUNT}]=zeros"], 400
    yield "softmax, 512 rows of 200", [str(ROOT / "examples/softmax_rows.tile"), "--grid", "64", "--arg", "array:f32[512,200]=normal(seed=1)", "--arg",
                                       "array:f32[512,200]=zeros"], 60
    yield "vector add, 4096", [str(ROOT / "tools/bench/kernels/vector_add.tile"), "--grid", "32", *arrays("ptr", COUNT, generator="normal(seed=1)"), "--arg",
                               f"i32:{COUNT}"], 400
    yield "matmul 512 x 512 x 512, 128x128x64", [str(ROOT / "tools/bench/kernels/matmul_f32.tile"), "--grid", "4,4", "--arg", "array:f32[512,512]=normal(seed=1)", "--arg",
                                                 "array:f32[512,512]=normal(seed=2)", "--arg", "array:f16[512,512]=zeros"], 12
    for name, arguments in check_kernels.rows(kernel):
        yield name, arguments, None


def corpus(folder):
    """As cases(), of recorded launches; the number of launches is found out by measuring."""
    for launch in sorted(folder.glob("*/launch.json")):
        if json.loads(launch.read_text()).get("outcome", "ok") == "ok":
            yield launch.parent.name, ["run", str(launch), "--no-check"], None


def seconds(tilevm, prefix, arguments, repeat, check):
    command = [*prefix.split(), tilevm, *arguments, "--threads", "1", "--repeat", str(repeat), "--json", *(["--check", check] if check else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["seconds"]


def measure(o, arguments, repeat):
    """Microseconds without checks, then how many times as long with them."""
    rounds = o.rounds
    if repeat is None:
        repeat = int(min(max(0.05 / seconds(o.tilevm, o.prefix, arguments, 3, ""), 5), 2000))
        try:
            seconds(o.tilevm, o.prefix, arguments, 2, "all")
        except RuntimeError:  # right once only: it finds its arrays as a launch before left them
            repeat, rounds = 1, 10 * rounds
            seconds(o.tilevm, o.prefix, arguments, 1, "all")
    best = {}
    for _ in range(rounds):
        for check in ("", "default", "all"):
            best[check] = min(best.get(check, 1e9), seconds(o.tilevm, o.prefix, arguments, repeat, check))
    return best[""] * 1e6, best["default"] / best[""], best["all"] / best[""]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tilevm", nargs="?", default=str(ROOT / "build/tilevm"))
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--only", default="")
    p.add_argument("--prefix", default="")
    p.add_argument("--corpus", type=pathlib.Path)
    p.add_argument("--most", type=float, default=3.0)
    o = p.parse_args()

    def show(row):
        what, us, default, every = row
        print(f"| {what} | {us:.1f} | {default:.2f} | {every:.2f} |", flush=True)

    print("| launch | without, us | `default` | `all` |\n| --- | --- | --- | --- |", flush=True)
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as name:
        for what, arguments, repeat in corpus(o.corpus) if o.corpus else cases(pathlib.Path(name)):
            if not re.search(o.only, what):
                continue
            try:
                rows.append((what, *measure(o, arguments, repeat)))
            except RuntimeError as e:
                print(f"{what} is not measured: {e}", file=sys.stderr)
                failed += 1
                continue
            if not o.corpus:
                show(rows[-1])
    if o.corpus:
        for row in sorted(rows, key=lambda r: -r[3]):
            show(row)
    above = [r for r in rows if r[3] > o.most]
    print(f"\n{len(rows)} launches, {len(above)} with all checks above {o.most:.1f}, {failed} not measured")
    return 1 if above or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
