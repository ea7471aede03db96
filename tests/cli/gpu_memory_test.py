#!/usr/bin/env python3
"""Kernels that only move memory, or nearly: transposes and loops over rows, with arrays that are aligned and ragged in every way, give the
interpreter's bits on the emulation; and their PTX has the accesses that the backend promises (backend/README.md).

Skipped without the GPU part or a processor that runs its code. Environment: TILEVM, SOURCE_DIR."""
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from _gpu_kit import SKIP, TILEVM, why_skipped  # noqa: E402

SIZES = {"f32": 4, "f16": 2, "i8": 1, "f64": 8}

# Y = transpose(X), tiles of R x C. "@" stands for what is assumed of addresses, extents and strides.
TRANSPOSE = """cuda_tile.module @m { entry @k(%x0: tile<ptr<T>>, %xr0: tile<i32>, %xc0: tile<i32>, %xs0: tile<i32>, %xu: tile<i32>,
                 %y0: tile<ptr<T>>, %yr0: tile<i32>, %yc0: tile<i32>, %ys0: tile<i32>, %yu: tile<i32>) {
  @%x, %xr, %xc, %xs, %y, %yr, %yc, %ys
  %X = make_tensor_view %x, shape = [%xr, %xc], strides = [%xs, 1] : tile<i32> -> tensor_view<?x?xT, strides=[?,1]>
  %Y = make_tensor_view %y, shape = [%yr, %yc], strides = [%ys, 1] : tile<i32> -> tensor_view<?x?xT, strides=[?,1]>
  %i, %j, %z = get_tile_block_id : tile<i32>
  %t = make_token : token
  %from = make_partition_view %X : partition_view<tile=(RxC), tensor_view<?x?xT, strides=[?,1]>>
  %to = make_partition_view %Y : partition_view<tile=(CxR), tensor_view<?x?xT, strides=[?,1]>>
  %a, %t1 = load_view_tko weak %from[%i, %j] token = %t : partition_view<tile=(RxC), tensor_view<?x?xT, strides=[?,1]>>, tile<i32> -> tile<RxCxT>, token
  %b = permute %a [1, 0] : tile<RxCxT> -> tile<CxRxT>
  %t2 = store_view_tko weak %b, %to[%j, %i] token = %t : tile<CxRxT>, partition_view<tile=(CxR), tensor_view<?x?xT, strides=[?,1]>>, tile<i32> -> token
  return
} }
"""
# Each block takes every n-th row, divides it by its largest element, and adds the row that lies `skip` further: two loads ahead.
ROWS = """cuda_tile.module @m { entry @k(%x0: tile<ptr<T>>, %xr0: tile<i32>, %xc0: tile<i32>, %xs0: tile<i32>, %xu: tile<i32>,
                 %y0: tile<ptr<T>>, %yr0: tile<i32>, %yc0: tile<i32>, %ys0: tile<i32>, %yu: tile<i32>) {
  @%x, %xr, %xc, %xs, %y, %yr, %yc, %ys
  %X = make_tensor_view %x, shape = [%xr, %xc], strides = [%xs, 1] : tile<i32> -> tensor_view<?x?xT, strides=[?,1]>
  %Y = make_tensor_view %y, shape = [%yr, %yc], strides = [%ys, 1] : tile<i32> -> tensor_view<?x?xT, strides=[?,1]>
  %first, %fy, %fz = get_tile_block_id : tile<i32>
  %n, %ny, %nz = get_num_tile_blocks : tile<i32>
  %t = make_token : token
  %zero = constant <i32: 0> : tile<i32>
  %skip = constant <i32: 3> : tile<i32>
  %from = make_partition_view %X : partition_view<tile=(1xC), padding_value = neg_inf, tensor_view<?x?xT, strides=[?,1]>>
  %to = make_partition_view %Y : partition_view<tile=(1xC), tensor_view<?x?xT, strides=[?,1]>>
  for %i in (%first to %xr, step %n) : tile<i32> {
    %a, %t1 = load_view_tko weak %from[%i, %zero] token = %t : partition_view<tile=(1xC), padding_value = neg_inf, tensor_view<?x?xT, strides=[?,1]>>, tile<i32> -> tile<1xCxT>, token
    %next = addi %i, %skip : tile<i32>
    %b, %t2 = load_view_tko weak %from[%next, %zero] token = %t : partition_view<tile=(1xC), padding_value = neg_inf, tensor_view<?x?xT, strides=[?,1]>>, tile<i32> -> tile<1xCxT>, token
    %m = reduce %a dim=1 identities=[0xFF800000 : f32] : tile<1xCxT> -> tile<1xT> (%p: tile<T>, %q: tile<T>) {
      %r = maxf %p, %q : tile<T>
      yield %r : tile<T>
    }
    %m1 = reshape %m : tile<1xT> -> tile<1x1xT>
    %m2 = broadcast %m1 : tile<1x1xT> -> tile<1xCxT>
    %d = divf %a, %m2 : tile<1xCxT>
    %s = addf %d, %b : tile<1xCxT>
    %t3 = store_view_tko weak %s, %to[%i, %zero] token = %t : tile<1xCxT>, partition_view<tile=(1xC), tensor_view<?x?xT, strides=[?,1]>>, tile<i32> -> token
  }
  return
} }
"""


def kernel(text, element, rows, columns, divisor):
    """The text for a type and tile; with divisor 0 nothing is assumed."""
    def assumptions(match):
        names = match.group(1).split(", ")
        out = []
        for name in names:
            type_ = f"tile<ptr<{element}>>" if name in ("%x", "%y") else "tile<i32>"
            by = max(divisor, SIZES[element]) if name in ("%x", "%y") else max(divisor, 1)
            out.append(f"{name} = assume div_by<{by}>, {name}0 : {type_}")
        return "\n  ".join(out)
    text = re.sub(r"@(%x, .*)", assumptions, text)
    text = text.replace("RxC", f"{rows}x{columns}").replace("CxR", f"{columns}x{rows}").replace("1xC", f"1x{columns}")
    return re.sub(r"\bT\b|(?<=x)T\b", element, text)


def launches():
    """(name, text, grid, arguments, further options)"""
    for element, rows, columns in ("f32", 64, 64), ("f32", 128, 32), ("f32", 32, 16), ("f16", 64, 64), ("f16", 32, 128), ("i8", 64, 64), ("f64", 32, 32), ("f16", 8, 8):
        for height, width in (96, 160), (97, 161), (100, 164), (98, 162), (61, 256):
            arrays = [f"array:{element}[{height},{width}]=bits", f"array:{element}[{width},{height}]=zeros"]
            grid = f"{-(-height // rows)},{-(-width // columns)}"
            for divisor in (0, 16) if height == 96 else (0,):
                yield f"transpose {element} {rows}x{columns} of {height}x{width}, divisor {divisor}", kernel(TRANSPOSE, element, rows, columns, divisor), grid, arrays, []
    for columns, width in (1024, 1024), (1024, 1000), (1024, 999), (2048, 1031), (128, 100), (32, 7):
        for options in [], ["--target", "sm_80"], ["--plan", "ahead=off"], ["--plan", "whole=off"], ["--plan", "warps=8"]:
            arrays = [f"array:f32[13,{width}]=normal", f"array:f32[13,{width}]=zeros"]
            yield f"rows of {width} in {columns} {' '.join(options)}", kernel(ROWS, "f32", 1, columns, 0), "4", arrays, options


def quotients(folder):
    """Rows divided by their largest element, 32 or 16 to a thread: some rows take the slow way for one element or for their divisor."""
    width = 4096
    ordinary = [0.5 + (37 * k % 101) / 64 for k in range(width)]
    rows = [ordinary, [-x for x in ordinary]]
    for special in 0.0, -0.0, 2.0**-149, -2.0**-130, 2.0**-61, 3.5 * 2.0**-100, math.inf, -math.inf, math.nan, 2.0**61, 2.0**100, 4.0 - 2.0**-22, 2.0**-126:
        for places in (7,), range(0, width, 3):
            row = list(ordinary)
            for k in places:
                row[k] = special
            rows.append(row)
    for scale in 2.0**-140, 2.0**-120, 2.0**70, 2.0**120, 0.0:
        rows.append([x * scale for x in ordinary])
    path = pathlib.Path(folder) / "rows.npy"
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {width}), }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(struct.pack(f"<{width}f", *row) for row in rows))
    for options in [], ["--plan", "warps=8"]:
        yield f"quotients {' '.join(options)}", kernel(ROWS, "f32", 1, width, 0), "4", [f"array:{path}", f"array:f32[{len(rows)},{width}]=zeros"], options


def tilevm(folder, name, text, *arguments):
    path = os.path.join(folder, re.sub(r"\W+", "_", name) + ".tile")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return subprocess.run([TILEVM, path, "--color", "never", *arguments], capture_output=True, text=True, timeout=120, check=False)


def agrees(folder, launch):
    name, text, grid, arrays, options = launch
    arguments = [x for a in arrays for x in ("--arg", a)]
    done = tilevm(folder, name, text, "--gpu=emulate", "--both", "--no-cache", "--grid", grid, *arguments, *options)
    return "" if done.returncode == 0 else f"{name}: exit {done.returncode}: {(done.stdout + done.stderr)[-500:]}"


def code(folder):
    """Problems of the PTX."""
    problems = []

    def ptx(name, text, *options):
        done = tilevm(folder, name, text, "--emit", "ptx", "--emit", "plan", "--target", "sm_90a", *options)
        if done.returncode:
            problems.append(f"{name}: {done.stderr[-300:]}")
        return done.stdout

    def count(name, text, pattern, expected):
        found = len(re.findall(pattern, text))
        if found != expected:
            problems.append(f"{name}: {found} of '{pattern}', expected {expected}")

    # 32 registers a thread: eight accesses of 16 bytes each way, without masks and with.
    aligned = ptx("aligned", kernel(TRANSPOSE, "f32", 64, 64, 16))
    count("aligned transpose", aligned, r"st\.shared\.v4", 8)
    count("aligned transpose", aligned, r"ld\.shared\.v4", 8)
    count("aligned transpose", aligned, r"(?:ld|st)\.shared\.(?!v4)", 0)
    count("aligned transpose", aligned, r"ld\.global\.v4", 16)
    count("aligned transpose", aligned, r"ld\.global\.(?!v4)", 0)
    count("aligned transpose", aligned, r"@p st\.global\.v4", 8)
    count("aligned transpose", aligned, r"address 16, shape \[16 16\], strides \[16 1\]", 2)
    masked = ptx("masked", kernel(TRANSPOSE, "f32", 64, 64, 16), "--plan", "whole=off")
    count("transpose with masks alone", masked, r"ld\.global\.v4", 8)
    ragged = ptx("ragged", kernel(TRANSPOSE, "f32", 64, 64, 0))
    count("ragged transpose", ragged, r"ld\.global\.b32", 32)
    count("ragged transpose", ragged, r"ld\.global\.v2", 16)
    # Loads and stores exchange one bit of their registers with lanes for runs of 8 bytes, two for single elements.
    count("ragged transpose", ragged, r"shfl\.sync\.bfly", 2 * 16 + 2 * 32)
    # Facts follow arithmetic: a base moved by 64 elements, rows of 4 * (a multiple of 8) elements.
    moved = kernel(TRANSPOSE, "f32", 64, 64, 16).replace("  %X = make", """  %four = constant <i32: 4> : tile<i32>
  %eight = assume div_by<8>, %xu : tile<i32>
  %pitch = muli %eight, %four : tile<i32>
  %sixty = constant <i32: 65> : tile<i32>
  %less = subi %pitch, %sixty : tile<i32>
  %base = offset %x, %pitch : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %X = make""").replace("make_tensor_view %x, shape = [%xr, %xc], strides = [%xs", "make_tensor_view %base, shape = [%xr, %less], strides = [%pitch")
    count("facts", ptx("facts", moved), r"address 16, shape \[16 1\], strides \[32 1\]", 1)
    # The load before the loop, and the one in it.
    rows = ptx("rows", kernel(ROWS, "f32", 1, 1024, 16))
    count("rows", rows, r"@p ld\.global\.v4", 2 * 2 * 2)
    count("rows", rows, r"div\.rn\.f32", 8)
    count("rows", rows, r"rcp\.approx", 1)
    long_rows = ptx("long rows", kernel(ROWS, "f32", 1, 4096, 16))
    count("long rows", long_rows, r"div\.rn\.f32", 4)
    count("rows without loads ahead", ptx("rows", kernel(ROWS, "f32", 1, 1024, 16), "--plan", "ahead=off"), r"@p ld\.global\.v4", 2 * 2)
    done = tilevm(folder, "rows", kernel(ROWS, "f32", 1, 1024, 16), "--gpu", "--remarks", "--emit", "plan", "--target", "sm_90a")
    count("rows", done.stderr, "loaded one iteration ahead", 2)
    return problems


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = list(launches()) + list(quotients(folder))
        if why := why_skipped(lambda: agrees(folder, work[0])):
            print("skipped:", why)
            return SKIP
        problems = code(folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            problems += [p for p in pool.map(lambda launch: agrees(folder, launch), work) if p]
    for p in problems:
        print(p)
    print(f"{len(work)} launches, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
