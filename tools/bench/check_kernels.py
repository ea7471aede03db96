"""Kernels of check_cost.py that go to each checker's dear places: gathers, edges, atomics, small tiles, flags."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

LINE = """!{name}v = !cuda_tile.tensor_view<{n}x{type}, strides=[1]>
!{name}s = !cuda_tile.partition_view<tile=({tile}), !{name}v>
"""


def module(views, arguments, body):
    return f"{views}cuda_tile.module @m {{ entry @k({arguments}) {{\n    %x, %y, %z = get_tile_block_id : tile<i32>\n{body}    return\n}} }}\n"


def line(name, pointer, tile, element, n):
    """A view of one dimension of an argument, and the type of its tiles."""
    return (LINE.format(name=name, n=n, type=element, tile=tile),
            f"    %{name}t = make_tensor_view %{pointer}, shape = [{n}], strides = [1] : !{name}v\n    %{name}p = make_partition_view %{name}t : !{name}s\n")


def gather_pointers(n=16384, tile=256):
    """out[i] = table[which[i]] through pointers."""
    iv, it = line("i", "which", tile, "i32", n)
    ov, ot = line("o", "out", tile, "f32", n)
    body = it + ot + f"""    %w, %t0 = load_view_tko weak %ip[%x] : !is, tile<i32> -> tile<{tile}xi32>, token
    %b1 = reshape %table : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b = broadcast %b1 : tile<1xptr<f32>> -> tile<{tile}xptr<f32>>
    %p = offset %b, %w : tile<{tile}xptr<f32>>, tile<{tile}xi32> -> tile<{tile}xptr<f32>>
    %v, %t1 = load_ptr_tko weak %p : tile<{tile}xptr<f32>> -> tile<{tile}xf32>, token
    %t2 = store_view_tko weak %v, %op[%x] : tile<{tile}xf32>, !os, tile<i32> -> token
"""
    return module(iv + ov, "%table: tile<ptr<f32>>, %which: tile<ptr<i32>>, %out: tile<ptr<f32>>", body)


def scatter_pointers(n=16384, tile=256):
    """out[(i * 2053) % n] = in[i] through pointers: every place once, far from its neighbours."""
    iv, it = line("i", "a", tile, "f32", n)
    body = it + f"""    %v, %t0 = load_view_tko weak %ip[%x] : !is, tile<i32> -> tile<{tile}xf32>, token
    %lane = iota : tile<{tile}xi32>
    %t = constant <i32: {tile}> : tile<i32>
    %first = muli %x, %t : tile<i32>
    %f1 = reshape %first : tile<i32> -> tile<1xi32>
    %f = broadcast %f1 : tile<1xi32> -> tile<{tile}xi32>
    %i = addi %f, %lane : tile<{tile}xi32>
    %odd = constant <i32: 2053> : tile<{tile}xi32>
    %far = muli %i, %odd : tile<{tile}xi32>
    %mask = constant <i32: {n - 1}> : tile<{tile}xi32>
    %w = andi %far, %mask : tile<{tile}xi32>
    %b1 = reshape %out : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b = broadcast %b1 : tile<1xptr<f32>> -> tile<{tile}xptr<f32>>
    %p = offset %b, %w : tile<{tile}xptr<f32>>, tile<{tile}xi32> -> tile<{tile}xptr<f32>>
    %t1 = store_ptr_tko weak %p, %v : tile<{tile}xptr<f32>>, tile<{tile}xf32> -> token
"""
    return module(iv, "%a: tile<ptr<f32>>, %out: tile<ptr<f32>>", body)


def histogram(n=16384, tile=256):
    """out[which[i]] += 1, atomically, through pointers."""
    iv, it = line("i", "which", tile, "i32", n)
    body = it + f"""    %w, %t0 = load_view_tko weak %ip[%x] : !is, tile<i32> -> tile<{tile}xi32>, token
    %one = constant <i32: 1> : tile<{tile}xi32>
    %b1 = reshape %out : tile<ptr<i32>> -> tile<1xptr<i32>>
    %b = broadcast %b1 : tile<1xptr<i32>> -> tile<{tile}xptr<i32>>
    %p = offset %b, %w : tile<{tile}xptr<i32>>, tile<{tile}xi32> -> tile<{tile}xptr<i32>>
    %old, %t1 = atomic_rmw_tko relaxed device %p, add, %one : tile<{tile}xptr<i32>>, tile<{tile}xi32> -> tile<{tile}xi32>, token
"""
    return module(iv, "%which: tile<ptr<i32>>, %out: tile<ptr<i32>>", body)


def reduction_view(n=16384, tile=256):
    """out[i % tile] += in[i], atomically, through a view."""
    iv, it = line("i", "a", tile, "f32", n)
    ov, ot = line("o", "out", tile, "f32", tile)
    body = it + ot + f"""    %zero = constant <i32: 0> : tile<i32>
    %v, %t0 = load_view_tko weak %ip[%x] : !is, tile<i32> -> tile<{tile}xf32>, token
    %t1 = atomic_red_view_tko relaxed device %op[%zero], addf, %v : tile<{tile}xf32>, !os, tile<i32> -> token
"""
    return module(iv + ov, "%a: tile<ptr<f32>>, %out: tile<ptr<f32>>", body)


def gather_scatter_rows(rows=1024, width=64, tile=64):
    """out[to[i], :] = table[from[i], :] with views of gathered rows."""
    fv, ft = line("f", "from", tile, "i32", rows)
    views = f"""!tv = !cuda_tile.tensor_view<{rows}x{width}xf32, strides=[{width},1]>
!rows = !cuda_tile.gather_scatter_view<tile=({tile}x{width}), !tv, sparse_dim=0>
"""
    body = ft + f"""    %zero = constant <i32: 0> : tile<i32>
    %tt = make_tensor_view %table, shape = [{rows},{width}], strides = [{width},1] : !tv
    %ot = make_tensor_view %out, shape = [{rows},{width}], strides = [{width},1] : !tv
    %tr = make_gather_scatter_view %tt : !rows
    %or = make_gather_scatter_view %ot : !rows
    %w, %t0 = load_view_tko weak %fp[%x] : !fs, tile<i32> -> tile<{tile}xi32>, token
    %v, %t1 = load_view_tko weak %tr[%w, %zero] : !rows, tile<{tile}xi32>, tile<i32> -> tile<{tile}x{width}xf32>, token
    %lane = iota : tile<{tile}xi32>
    %t = constant <i32: {tile}> : tile<i32>
    %first = muli %x, %t : tile<i32>
    %f1 = reshape %first : tile<i32> -> tile<1xi32>
    %f = broadcast %f1 : tile<1xi32> -> tile<{tile}xi32>
    %i = addi %f, %lane : tile<{tile}xi32>
    %last = constant <i32: {rows - 1}> : tile<{tile}xi32>
    %to = subi %last, %i : tile<{tile}xi32>
    %t2 = store_view_tko weak %v, %or[%to, %zero] : tile<{tile}x{width}xf32>, !rows, tile<{tile}xi32>, tile<i32> -> token
"""
    return module(fv + views, "%table: tile<ptr<f32>>, %from: tile<ptr<i32>>, %out: tile<ptr<f32>>", body)


def matmul(element, m, n, k, tile_m, tile_n, tile_k):
    """Without padding: what lies outside the arrays has no specified value. k is a multiple of tile_k."""
    views = "".join(f"""!{name}v = !cuda_tile.tensor_view<{rows}x{columns}x{t}, strides=[{columns},1]>
!{name}s = !cuda_tile.partition_view<tile=({tr}x{tc}), !{name}v>
""" for name, rows, columns, t, tr, tc in (("a", m, k, element, tile_m, tile_k), ("b", k, n, element, tile_k, tile_n), ("c", m, n, "f32", tile_m, tile_n)))
    body = "".join(f"""    %{name}t = make_tensor_view %{name}, shape = [{rows},{columns}], strides = [{columns},1] : !{name}v
    %{name}p = make_partition_view %{name}t : !{name}s
""" for name, rows, columns in (("a", m, k), ("b", k, n), ("c", m, n))) + f"""    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %steps = constant <i32: {k // tile_k}> : tile<i32>
    %none = constant <f32: 0.0> : tile<{tile_m}x{tile_n}xf32>
    %sum = for %i in (%zero to %steps, step %one) : tile<i32> iter_values(%acc = %none) -> (tile<{tile_m}x{tile_n}xf32>) {{
      %l, %t0 = load_view_tko weak %ap[%x, %i] : !as, tile<i32> -> tile<{tile_m}x{tile_k}x{element}>, token
      %r, %t1 = load_view_tko weak %bp[%i, %y] : !bs, tile<i32> -> tile<{tile_k}x{tile_n}x{element}>, token
      %next = mmaf %l, %r, %acc : tile<{tile_m}x{tile_k}x{element}>, tile<{tile_k}x{tile_n}x{element}>, tile<{tile_m}x{tile_n}xf32>
      continue %next : tile<{tile_m}x{tile_n}xf32>
    }}
    %t2 = store_view_tko weak %sum, %cp[%x, %y] : tile<{tile_m}x{tile_n}xf32>, !cs, tile<i32> -> token
"""
    return module(views, f"%a: tile<ptr<{element}>>, %b: tile<ptr<{element}>>, %c: tile<ptr<f32>>", body)


def many_small(tile, turns=64):
    """A loop of loads, some operations and stores of small tiles."""
    n = tile * turns * 16
    av, at = line("a", "in", tile, "f32", n)
    ov, ot = line("o", "out", tile, "f32", n)
    body = at + ot + f"""    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %turns = constant <i32: {turns}> : tile<i32>
    %half = constant <f32: 0.5> : tile<{tile}xf32>
    %first = muli %x, %turns : tile<i32>
    for %i in (%zero to %turns, step %one) : tile<i32> {{
      %here = addi %first, %i : tile<i32>
      %v, %t0 = load_view_tko weak %ap[%here] : !as, tile<i32> -> tile<{tile}xf32>, token
      %h = mulf %v, %half : tile<{tile}xf32>
      %s = addf %h, %v : tile<{tile}xf32>
      %m = maxf %s, %h : tile<{tile}xf32>
      %d = subf %m, %v : tile<{tile}xf32>
      %t1 = store_view_tko weak %d, %op[%here] : tile<{tile}xf32>, !os, tile<i32> -> token
      continue
    }}
"""
    return module(av + ov, "%in: tile<ptr<f32>>, %out: tile<ptr<f32>>", body)


def no_wrap(n=16384, tile=1024):
    """Integers with flags that exclude an overflow."""
    av, at = line("a", "in", tile, "i32", n)
    ov, ot = line("o", "out", tile, "i32", n)
    body = at + ot + f"""    %three = constant <i32: 3> : tile<{tile}xi32>
    %v, %t0 = load_view_tko weak %ap[%x] : !as, tile<i32> -> tile<{tile}xi32>, token
    %m = muli %v, %three overflow<no_signed_wrap> : tile<{tile}xi32>
    %s = addi %m, %v overflow<no_wrap> : tile<{tile}xi32>
    %d = subi %s, %three overflow<no_signed_wrap> : tile<{tile}xi32>
    %l = shli %d, %three overflow<no_signed_wrap> : tile<{tile}xi32>
    %t1 = store_view_tko weak %l, %op[%x] : tile<{tile}xi32>, !os, tile<i32> -> token
"""
    return module(av + ov, "%in: tile<ptr<i32>>, %out: tile<ptr<i32>>", body)


def first_nan(n=16384, tile=1024):
    """A logarithm of numbers of which some are negative, and operations that carry the NaN on."""
    av, at = line("a", "in", tile, "f32", n)
    ov, ot = line("o", "out", tile, "f32", n)
    body = at + ot + f"""    %half = constant <f32: 0.5> : tile<{tile}xf32>
    %v, %t0 = load_view_tko weak %ap[%x] : !as, tile<i32> -> tile<{tile}xf32>, token
    %l = log %v : tile<{tile}xf32>
    %h = mulf %l, %half : tile<{tile}xf32>
    %s = addf %h, %v : tile<{tile}xf32>
    %d = subf %s, %half : tile<{tile}xf32>
    %t1 = store_view_tko weak %d, %op[%x] : tile<{tile}xf32>, !os, tile<i32> -> token
"""
    return module(av + ov, "%in: tile<ptr<f32>>, %out: tile<ptr<f32>>", body)


def rows(write):
    """Name and arguments of each launch. write(name, text) gives the path of a kernel."""
    def args(*every):
        return [word for one in every for word in ("--arg", one)]

    def kernel(name, text, grid, *arguments):
        return [write(f"{name}.tile", text), "--grid", grid, *args(*arguments)]

    n = 16384
    yield "gather, pointers at random", kernel("gather_pointers", gather_pointers(), "64", f"ptr:f32[{n}]=normal(seed=1)", f"ptr:i32[{n}]=randint(seed=2,hi={n})", f"ptr:f32[{n}]=zeros")
    yield "scatter, pointers far apart", kernel("scatter_pointers", scatter_pointers(), "64", f"ptr:f32[{n}]=normal(seed=1)", f"ptr:f32[{n}]=zeros")
    yield "gather and scatter of rows, views", kernel("rows", gather_scatter_rows(), "16", "ptr:f32[1024,64]=normal(seed=1)", "ptr:i32[1024]=randint(seed=2,hi=1024)", "ptr:f32[1024,64]=zeros")
    yield "atomic add, pointers at random", kernel("histogram", histogram(), "64", f"ptr:i32[{n}]=randint(seed=2,hi=512)", "ptr:i32[512]=zeros")
    yield "atomic add, view", kernel("reduction_view", reduction_view(), "64", f"ptr:f32[{n}]=ones", "ptr:f32[256]=zeros")
    for element in ("f16", "f32"):
        yield f"matmul 200 x 100 x 288 with edges, {element}", kernel(f"ragged_{element}", matmul(element, 200, 100, 288, 64, 64, 32), "4,2", f"ptr:{element}[200,288]=normal(seed=1)",
                                                                     f"ptr:{element}[288,100]=normal(seed=2)", "ptr:f32[200,100]=zeros")
    yield "matmul 32 x 32 x 32", kernel("small", matmul("f16", 32, 32, 32, 32, 32, 16), "1", "ptr:f16[32,32]=normal(seed=1)", "ptr:f16[32,32]=normal(seed=2)", "ptr:f32[32,32]=zeros")
    for tile in (32, 64, 128):
        yield f"loop over tiles of {tile}", kernel(f"loop_{tile}", many_small(tile), "16", f"ptr:f32[{tile * 1024}]=normal(seed=1)", f"ptr:f32[{tile * 1024}]=zeros")
    yield "integers that must not wrap", kernel("no_wrap", no_wrap(), "16", f"ptr:i32[{n}]=randint(seed=1,hi=1000)", f"ptr:i32[{n}]=zeros")
    yield "floats that become NaN", kernel("first_nan", first_nan(), "16", f"ptr:f32[{n}]=normal(seed=1)", f"ptr:f32[{n}]=zeros")
    bench = ROOT / "tools/bench/kernels"
    yield "transpose 2048 x 2048", [str(bench / "transpose.tile"), "--grid", "32,32", *args("ptr:f32[2048,2048]=normal(seed=1)", "ptr:f32[2048,2048]=zeros")]
    yield "scan, 2048 rows of 1024", [str(bench / "scan.tile"), "--grid", "128", *args("ptr:f32[2048,1024]=normal(seed=1)", "ptr:f32[2048,1024]=zeros")]
    yield "layernorm, 2048 rows of 1024", [str(bench / "layernorm.tile"), "--grid", "64",
                                           *args("ptr:f32[2048,1024]=normal(seed=1)", "ptr:f32[1024]=ones", "ptr:f32[1024]=zeros", "ptr:f32[2048,1024]=zeros")]
    yield "batched matmul", ["run", str(ROOT / "examples/09_batched.json"), "--no-check"]
    yield "matmul of a window, edges", ["run", str(ROOT / "examples/07_ragged.json"), "--no-check"]
    for launch in ("attention_causal-2", "im2col_conv-1", "matmul_block_scaled-1", "matmul_persistent-1"):
        yield f"{launch} of the corpus", ["run", str(ROOT / "tests/corpus/launches" / launch / "launch.json"), "--no-check"]
