#!/usr/bin/env python3
"""Products of other shapes than peer_set.py's, which are timed beside other compilers in the same way (compare.py --set shapes): all
transpositions, ragged arrays and arrays that bulk copies cannot take, few rows, f64, work behind and between products, branches, gathered
operands, sums by atomics.

  python3 tools/bench/gpu/shape_set.py            # writes the texts to tools/bench/gpu/kernels/shapes
  python3 tools/bench/gpu/shape_set.py --check    # says which are not up to date (exit 1)

All take arrays as cuTile passes them: address, extents, strides; the last stride is one. `Plain` arrays promise nothing else."""
try:
    import numpy as np
except ImportError:
    np = None  # only the functions of small cases take it

from peer_set import Array, Kernel, Row, spread, texts_main, tile, up
from peer_set import KERNELS as PEER_KERNELS

KERNELS = PEER_KERNELS / "shapes"


class Plain(Array):
    """An array of which no alignment is known; with `skip`, its first elements and its last row are left out: the address is computed in the
    kernel, and odd."""

    def __init__(self, name, type, rank, skip=0):
        super().__init__(name, type, rank)
        self.skip = skip

    def view(self):
        n, lines = self.name, []
        for w in [f"n{d}" for d in range(self.rank)] + [f"s{d}" for d in range(self.rank - 1)]:
            lines.append(f"%{n}_{w}x = assume bounded<0, ?>, %{n}_{w} : tile<i32>")
        base, rows = f"%{n}", f"%{n}_n0x"
        if self.skip:
            rows = f"%{n}_rows"
            lines += [f"%{n}_last = constant <i32: 1> : tile<i32>", f"{rows} = subi %{n}_n0x, %{n}_last : tile<i32>",
                      f"%{n}_skip = constant <i32: {self.skip}> : tile<i32>",
                      f"%{n}_at = offset %{n}, %{n}_skip : tile<ptr<{self.type}>>, tile<i32> -> tile<ptr<{self.type}>>"]
            base = f"%{n}_at"
        shape = ", ".join([rows] + [f"%{n}_n{d}x" for d in range(1, self.rank)])
        strides = ", ".join([f"%{n}_s{d}x" for d in range(self.rank - 1)] + ["1"])
        lines.append(f"%v_{n} = make_tensor_view {base}, shape = [{shape}], strides = [{strides}] : tile<i32> -> !{n}")
        return lines


def constants(k, **numbers):
    for name, n in {"zero": 0, "one": 1, **numbers}.items():
        k.add(f"%{name} = constant <i32: {n}> : tile<i32>")


def operand(k, letter, element, rows, columns, how, major, minor):
    """A view of array `letter`, and the lines that load the tile %f_LETTER of rows x columns at tile (`major`, `minor`). `how`: "plain"; the
    array is stored transposed and the view says so, "map"; or the tile is loaded as stored and transposed by `permute`."""
    name = f"{letter}t"
    if how == "permute":
        k.partition(name, letter, (columns, rows), "zero")
        return f"""
%l_{letter}, %t_{letter} = load_view_tko weak %{name}[{minor}, {major}] : !{name}, tile<i32> -> {tile((columns, rows), element)}, token
%f_{letter} = permute %l_{letter} [1, 0] : {tile((columns, rows), element)} -> {tile((rows, columns), element)}"""
    k.partition(name, letter, (rows, columns), "zero", (1, 0) if how == "map" else None)
    return f"%f_{letter}, %t_{letter} = load_view_tko weak %{name}[{major}, {minor}] : !{name}, tile<i32> -> {tile((rows, columns), element)}, token"


def k_loop(k, result, tm, tn, tk, element, acc, loads, steps, start, operands=("%f_a", "%f_b"), low="%zero"):
    k.add(f"%{result} = for %k in ({low} to {steps}, step %one) : tile<i32> iter_values(%{result}_sum = {start}) -> ({tile((tm, tn), acc)}) {{", *loads,
          f"%{result}_next = mmaf {operands[0]}, {operands[1]}, %{result}_sum : {tile((tm, tk), element)}, {tile((tk, tn), element)}, {tile((tm, tn), acc)}",
          f"continue %{result}_next : {tile((tm, tn), acc)}", "}")


def depth(k, extent, tk):
    k.add(f"%tk = constant <i32: {tk}> : tile<i32>", f"%steps = divi %{extent}x, %tk signed rounding<positive_inf> : tile<i32>")


def nothing(k, shape, acc="f32"):
    k.add(f"%nothing = constant <{acc}: 0.0> : {tile(shape, acc)}")


def blocks(k):
    k.add("%m, %n, %z = get_tile_block_id : tile<i32>")


def put(k, value, shape, element, view="ct", at="%m, %n"):
    k.add(f"%stored = store_view_tko weak {value}, %{view}[{at}] : {tile(shape, element)}, !{view}, tile<i32> -> token")


def narrow(k, value, shape, to="f16", acc="f32"):
    if to == acc:
        return value
    k.add(f"%narrow = ftof {value} : {tile(shape, acc)} -> {tile(shape, to)}")
    return "%narrow"


def product(name, about, tm, tn, tk, element="f16", result="f16", acc="f32", a="plain", b="plain", array=Array, ctas=1, persistent=False, **of_array):
    k = Kernel(name, about, [array("a", element, 2, **of_array), array("b", element, 2, **of_array), array("c", result, 2)], f"num_cta_in_cga = {ctas}")
    constants(k)
    loads = [operand(k, "a", element, tm, tk, a, "%m", "%k"), operand(k, "b", element, tk, tn, b, "%k", "%n")]
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn), acc)
    depth(k, "a_n1" if a == "plain" else "a_n0", tk)
    if not persistent:
        blocks(k)
    else:
        k.add(f"""
%tm = constant <i32: {tm}> : tile<i32>
%tn = constant <i32: {tn}> : tile<i32>
%rows = divi %c_n0x, %tm signed rounding<positive_inf> : tile<i32>
%columns = divi %c_n1x, %tn signed rounding<positive_inf> : tile<i32>
%tiles = muli %rows, %columns : tile<i32>
%block, %block_y, %block_z = get_tile_block_id : tile<i32>
%blocks, %blocks_y, %blocks_z = get_num_tile_blocks : tile<i32>
for %number in (%block to %tiles, step %blocks) : tile<i32> {{
%m = remi %number, %rows signed : tile<i32>
%n = divi %number, %rows signed : tile<i32>""")
    k_loop(k, "product", tm, tn, tk, element, acc, loads, "%steps", "%nothing")
    put(k, narrow(k, "%product", (tm, tn), result, acc), (tm, tn), result)
    if persistent:
        k.add("continue", "}")
    return k


def epilogue(name, tm, tn, tk):
    """bf16(gelu(A B + bias) + R): the bias is a row, the residual a tile of f16."""
    k = Kernel(name, "C = gelu(A B + bias) + R, as bf16; gelu by tanh.", [Array("a", "f16", 2), Array("b", "f16", 2), Array("bias", "f32", 1), Array("r", "f16", 2), Array("c", "bf16", 2)])
    constants(k)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("biast", "bias", (tn,), "zero")
    k.partition("rt", "r", (tm, tn), "zero")
    k.partition("ct", "c", (tm, tn))
    t, h = tile((tm, tn), "f32"), tile((tm, tn), "f16")
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k_loop(k, "product", tm, tn, tk, "f16", "f32", loads, "%steps", "%nothing")
    for what, x in (("half", 0.5), ("ones", 1.0), ("cubic", 0.044715), ("root", 0.7978845608028654)):
        k.add(f"%{what} = constant <f32: {x!r}> : {t}")
    k.add(f"""
%bias1, %t0 = load_view_tko weak %biast[%n] : !biast, tile<i32> -> {tile((tn,), 'f32')}, token
%bias2 = reshape %bias1 : {tile((tn,), 'f32')} -> {tile((1, tn), 'f32')}
%biases = broadcast %bias2 : {tile((1, tn), 'f32')} -> {t}
%x = addf %product, %biases : {t}
%x2 = mulf %x, %x : {t}
%x2c = fma %x2, %cubic, %ones : {t}
%x3 = mulf %x, %root : {t}
%inner = mulf %x3, %x2c : {t}
%tanh = tanh %inner : {t}
%above = addf %tanh, %ones : {t}
%xh = mulf %x, %half : {t}
%gelu = mulf %xh, %above : {t}
%r16, %t1 = load_view_tko weak %rt[%m, %n] : !rt, tile<i32> -> {h}, token
%r32 = ftof %r16 : {h} -> {t}
%all = addf %gelu, %r32 : {t}""")
    put(k, narrow(k, "%all", (tm, tn), "bf16"), (tm, tn), "bf16")
    return k


def carried(name, tm, tn, tk):
    """C = A B + D E: the accumulator of the first loop goes on in the second."""
    k = Kernel(name, "C = A B + D E, with one accumulator for two loops.", [Array(x, "f16", 2) for x in "abdec"])
    constants(k)
    loads = [operand(k, x, "f16", *((tm, tk) if x in "ad" else (tk, tn)), "plain", *(("%m", "%k") if x in "ad" else ("%k", "%n"))) for x in "abde"]
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    k.add("%steps2 = divi %d_n1x, %tk signed rounding<positive_inf> : tile<i32>")
    blocks(k)
    k_loop(k, "first", tm, tn, tk, "f16", "f32", loads[:2], "%steps", "%nothing")
    k_loop(k, "second", tm, tn, tk, "f16", "f32", loads[2:], "%steps2", "%first", ("%f_d", "%f_e"))
    put(k, narrow(k, "%second", (tm, tn)), (tm, tn), "f16")
    return k


def nested(name, tm, tn, tk, chunk):
    """C = A B with K cut into chunks: the accumulator goes through a loop of loops."""
    k = Kernel(name, f"C = A B, K in chunks of {chunk} tiles: a loop around the loop carries the accumulator.", [Array(x, "f16", 2) for x in "abc"])
    constants(k, chunk=chunk)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k.add(f"""
%all = for %low in (%zero to %steps, step %chunk) : tile<i32> iter_values(%before = %nothing) -> ({tile((tm, tn), 'f32')}) {{
%behind = addi %low, %chunk : tile<i32>
%high = mini %behind, %steps signed : tile<i32>""")
    k_loop(k, "product", tm, tn, tk, "f16", "f32", loads, "%high", "%before", low="%low")
    k.add(f"continue %product : {tile((tm, tn), 'f32')}", "}")
    put(k, narrow(k, "%all", (tm, tn)), (tm, tn), "f16")
    return k


def two_layers(name, tm, d, th):
    """C = relu(X W) V: the middle has d columns at most at a time, X's rows and C's are of d."""
    k = Kernel(name, f"C = relu(A B) D, {th} columns of the middle at a time; rows of A and C are of {d}.", [Array(x, "f16", 2) for x in "abdc"])
    constants(k)
    k.partition("at", "a", (tm, d), "zero")
    loads = [operand(k, "b", "f16", d, th, "plain", "%zero", "%j"), operand(k, "d", "f16", th, d, "plain", "%j", "%zero")]
    k.partition("ct", "c", (tm, d))
    nothing(k, (tm, th))
    k.add(f"%empty = constant <f32: 0.0> : {tile((tm, d), 'f32')}")
    k.add(f"%th = constant <i32: {th}> : tile<i32>", "%steps = divi %b_n1x, %th signed rounding<positive_inf> : tile<i32>")
    blocks(k)
    k.add(f"""
%f_a, %t_a = load_view_tko weak %at[%m, %zero] : !at, tile<i32> -> {tile((tm, d), 'f16')}, token
%all = for %j in (%zero to %steps, step %one) : tile<i32> iter_values(%sum = %empty) -> ({tile((tm, d), 'f32')}) {{""", loads[0], f"""
%h = mmaf %f_a, %f_b, %nothing : {tile((tm, d), 'f16')}, {tile((d, th), 'f16')}, {tile((tm, th), 'f32')}
%positive = maxf %h, %nothing : {tile((tm, th), 'f32')}
%h16 = ftof %positive : {tile((tm, th), 'f32')} -> {tile((tm, th), 'f16')}""", loads[1], f"""
%next = mmaf %h16, %f_d, %sum : {tile((tm, th), 'f16')}, {tile((th, d), 'f16')}, {tile((tm, d), 'f32')}
continue %next : {tile((tm, d), 'f32')}
}}""")
    put(k, narrow(k, "%all", (tm, d)), (tm, d), "f16")
    return k


def product_of_product(name, tm, tn, tk):
    """C = f16(A B) D for a D of tn x tn: a product behind the loop of another."""
    k = Kernel(name, f"C = (A B) D, D of {tn} x {tn}.", [Array(x, "f16", 2) for x in "abdc"])
    constants(k)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("dt", "d", (tn, tn), "zero")
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k_loop(k, "product", tm, tn, tk, "f16", "f32", loads, "%steps", "%nothing")
    k.add(f"""
%p16 = ftof %product : {tile((tm, tn), 'f32')} -> {tile((tm, tn), 'f16')}
%f_d, %t_d = load_view_tko weak %dt[%zero, %zero] : !dt, tile<i32> -> {tile((tn, tn), 'f16')}, token
%second = mmaf %p16, %f_d, %nothing : {tile((tm, tn), 'f16')}, {tile((tn, tn), 'f16')}, {tile((tm, tn), 'f32')}""")
    put(k, narrow(k, "%second", (tm, tn)), (tm, tn), "f16")
    return k


def lower_triangle(name, tm, tn, tk):
    """C = A B in the tiles on and below the diagonal, 0 above: the loop of products stands in an `if`."""
    k = Kernel(name, "C = A B on and below the diagonal of tiles, 0 above.", [Array(x, "f16", 2) for x in "abc"])
    constants(k)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k.add("%below = cmpi greater_than_or_equal %m, %n, signed : tile<i32> -> tile<i1>", f"%all = if %below -> ({tile((tm, tn), 'f32')}) {{")
    k_loop(k, "product", tm, tn, tk, "f16", "f32", loads, "%steps", "%nothing")
    k.add(f"yield %product : {tile((tm, tn), 'f32')}", "} else {", f"yield %nothing : {tile((tm, tn), 'f32')}", "}")
    put(k, narrow(k, "%all", (tm, tn)), (tm, tn), "f16")
    return k


def block_sparse(name, tm, tn, tk):
    """C = A B where tiles of A whose flag is 0 are left out: the product stands in an `if` in its loop."""
    k = Kernel(name, "C = A B without the tiles of A whose flag is 0.", [Array("a", "f16", 2), Array("b", "f16", 2), Array("flags", "i32", 2), Array("c", "f16", 2)])
    constants(k)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("ft", "flags", (1, 1), "zero")
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    t = tile((tm, tn), "f32")
    k.add(f"""
%product = for %k in (%zero to %steps, step %one) : tile<i32> iter_values(%sum = %nothing) -> ({t}) {{
%flag2, %t0 = load_view_tko weak %ft[%m, %k] : !ft, tile<i32> -> tile<1x1xi32>, token
%flag = reshape %flag2 : tile<1x1xi32> -> tile<i32>
%there = cmpi not_equal %flag, %zero, signed : tile<i32> -> tile<i1>
%next = if %there -> ({t}) {{""", *loads, f"""
%more = mmaf %f_a, %f_b, %sum : {tile((tm, tk), 'f16')}, {tile((tk, tn), 'f16')}, {t}
yield %more : {t}
}} else {{
yield %sum : {t}
}}
continue %next : {t}
}}""")
    put(k, narrow(k, "%product", (tm, tn)), (tm, tn), "f16")
    return k


def gathered(name, tm, tn, tk):
    """C = A[rows] B: rows of A are chosen by an array of indices."""
    k = Kernel(name, "C = A[rows] B, rows by an array of indices.", [Array("a", "f16", 2), Array("b", "f16", 2), Array("rows", "i32", 1), Array("c", "f16", 2)])
    constants(k)
    k.aliases.append(f"!at = !cuda_tile.gather_scatter_view<tile=({tm}x{tk}), padding_value = zero, !a, sparse_dim=0>")
    k.add("%at = make_gather_scatter_view %v_a : !at")
    k.partition("rowst", "rows", (tm,), "zero")
    load_b = operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k.add(f"%chosen, %t0 = load_view_tko weak %rowst[%m] : !rowst, tile<i32> -> {tile((tm,), 'i32')}, token")
    load_a = f"""
%from = muli %k, %tk : tile<i32>
%f_a, %t_a = load_view_tko weak %at[%chosen, %from] : !at, {tile((tm,), 'i32')}, tile<i32> -> {tile((tm, tk), 'f16')}, token"""
    k_loop(k, "product", tm, tn, tk, "f16", "f32", [load_a, load_b], "%steps", "%nothing")
    put(k, narrow(k, "%product", (tm, tn)), (tm, tn), "f16")
    return k


def pointers(name, tm, tn, tk):
    """C = A B by tiles of pointers with masks, as Triton's programs do it."""
    k = Kernel(name, "C = A B, loaded and stored through tiles of pointers.", [Array(x, "f16", 2) for x in "abc"])
    constants(k, tm=tm, tn=tn)
    blocks(k)
    depth(k, "a_n1", tk)
    nothing(k, (tm, tn))

    def line(result, start, n, axis, shape):
        """Tile of numbers start, start + 1... along `axis` of `shape`."""
        column = (n, 1) if axis == 0 else (1, n)
        k.add(f"%{result}_i = iota : {tile((n,), 'i32')}", spread(f"{result}_s", start, (n,), "i32"), f"""
%{result}_n = addi %{result}_s, %{result}_i : {tile((n,), 'i32')}
%{result}_c = reshape %{result}_n : {tile((n,), 'i32')} -> {tile(column, 'i32')}
%{result} = broadcast %{result}_c : {tile(column, 'i32')} -> {tile(shape, 'i32')}""")

    def pointer_tile(result, array, element, rows, columns, stride, shape):
        t, p = tile(shape, "i32"), tile(shape, f"ptr<{element}>")
        k.add(spread(f"{result}_stride", stride, shape, "i32"), f"""
%{result}_r = muli {rows}, %{result}_stride : {t}
%{result}_o = addi %{result}_r, {columns} : {t}""", spread(f"{result}_b", array, shape, f"ptr<{element}>"), f"%{result} = offset %{result}_b, %{result}_o : {p}, {t} -> {p}")

    k.add("%m0 = muli %m, %tm : tile<i32>", "%n0 = muli %n, %tn : tile<i32>")
    sa, sb, sc = (tm, tk), (tk, tn), (tm, tn)
    line("am", "m0", tm, 0, sa)
    line("ak", "zero", tk, 1, sa)
    line("bk", "zero", tk, 0, sb)
    line("bn", "n0", tn, 1, sb)
    pointer_tile("pa", "p_a", "f16", "%am", "%ak", "a_s0x", sa)
    pointer_tile("pb", "p_b", "f16", "%bk", "%bn", "b_s0x", sb)
    k.add("%stride_k = muli %b_s0x, %tk : tile<i32>", spread("step_a", "tk", sa, "i32"), spread("step_b", "stride_k", sb, "i32"))
    pa, pb = tile(sa, "ptr<f16>"), tile(sb, "ptr<f16>")
    t = tile(sc, "f32")
    k.add(f"%za = constant <f16: 0.0> : {tile(sa, 'f16')}", f"%zb = constant <f16: 0.0> : {tile(sb, 'f16')}")
    k.add(f"""
%product, %last_a, %last_b = for %k in (%zero to %steps, step %one) : tile<i32> iter_values(%sum = %nothing, %at_a = %pa, %at_b = %pb) -> ({t}, {pa}, {pb}) {{
%gone = muli %k, %tk : tile<i32>
%rest = subi %a_n1x, %gone : tile<i32>""", spread("rest_a", "rest", sa, "i32"), spread("rest_b", "rest", sb, "i32"), f"""
%in_a = cmpi less_than %ak, %rest_a, signed : {tile(sa, 'i32')} -> {tile(sa, 'i1')}
%in_b = cmpi less_than %bk, %rest_b, signed : {tile(sb, 'i32')} -> {tile(sb, 'i1')}
%f_a, %t_a = load_ptr_tko weak %at_a, %in_a, %za : {pa}, {tile(sa, 'i1')}, {tile(sa, 'f16')} -> {tile(sa, 'f16')}, token
%f_b, %t_b = load_ptr_tko weak %at_b, %in_b, %zb : {pb}, {tile(sb, 'i1')}, {tile(sb, 'f16')} -> {tile(sb, 'f16')}, token
%next = mmaf %f_a, %f_b, %sum : {tile(sa, 'f16')}, {tile(sb, 'f16')}, {t}
%next_a = offset %at_a, %step_a : {pa}, {tile(sa, 'i32')} -> {pa}
%next_b = offset %at_b, %step_b : {pb}, {tile(sb, 'i32')} -> {pb}
continue %next, %next_a, %next_b : {t}, {pa}, {pb}
}}""")
    line("cm", "m0", tm, 0, sc)
    line("cn", "n0", tn, 1, sc)
    pointer_tile("pc", "p_c", "f16", "%cm", "%cn", "c_s0x", sc)
    value = narrow(k, "%product", sc)
    k.add(spread("c_rows", "c_n0x", sc, "i32"), spread("c_columns", "c_n1x", sc, "i32"), f"""
%in_m = cmpi less_than %cm, %c_rows, signed : {tile(sc, 'i32')} -> {tile(sc, 'i1')}
%in_n = cmpi less_than %cn, %c_columns, signed : {tile(sc, 'i32')} -> {tile(sc, 'i1')}
%in_c = andi %in_m, %in_n : {tile(sc, 'i1')}
%stored = store_ptr_tko weak %pc, {value}, %in_c : {tile(sc, 'ptr<f16>')}, {tile(sc, 'f16')}, {tile(sc, 'i1')} -> token""")
    return k


def split(name, tm, tn, tk, result, parts):
    """C += A B, each of `parts` blocks along z a part of K."""
    k = Kernel(name, f"C += A B in {result}, K shared out among {parts} blocks, which add by atomics.", [Array("a", "f16", 2), Array("b", "f16", 2), Array("c", result, 2)])
    constants(k, parts=parts)
    loads = [operand(k, "a", "f16", tm, tk, "plain", "%m", "%k"), operand(k, "b", "f16", tk, tn, "plain", "%k", "%n")]
    k.partition("ct", "c", (tm, tn))
    nothing(k, (tm, tn))
    depth(k, "a_n1", tk)
    blocks(k)
    k.add("""
%share = divi %steps, %parts signed rounding<positive_inf> : tile<i32>
%low = muli %z, %share : tile<i32>
%behind = addi %low, %share : tile<i32>
%high = mini %behind, %steps signed : tile<i32>""")
    k_loop(k, "product", tm, tn, tk, "f16", "f32", loads, "%high", "%nothing", low="%low")
    value = narrow(k, "%product", (tm, tn), result)
    k.add(f"%stored = atomic_red_view_tko relaxed device %ct[%m, %n], addf, {value} : {tile((tm, tn), result)}, !ct, tile<i32> -> token")
    return k


# ---- rows and small cases


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x)))


def build():
    """All kernels, and the rows of the table."""
    kernels, rows = [], []

    def row(k, workload, grid, args, work, tolerance, small, function, small_grid, unit="TFLOP/s", **more):
        """`small`: shapes of the small case. `args`: type, shape, generator, and elements between rows if there are any."""
        if k.name not in (other.name for other in kernels):
            kernels.append(k)
        rows.append(Row(k.name, workload, grid, args, unit, work, tolerance, text=KERNELS / f"{k.name}.tile", small=lambda: (small, small_grid, function), **more))

    def random(element, shape, seed, gap=0):
        return (element, shape, f"normal({seed},0,0.5)", gap)

    f16, n = 2**-9, 4096

    def plain(k, workload, m, n, kk, tm, tn, tk, element="f16", result="f16", a="plain", b="plain", gap=0, tolerance=f16, small=None, more=(0, 0), **other):
        """A launch of product(): arrays `more` larger than the product wants along rows and columns, for kernels that skip elements."""
        def shapes(m, n, kk):
            return [(m, kk) if a == "plain" else (kk, m), (kk, n) if b == "plain" else (n, kk), (m, n)]

        big, small = shapes(m, n, kk), small or (tm + 16, tn + 48, 2 * tk + 16)

        def f(x, y, _):
            return (x if a == "plain" else x.T) @ (y if b == "plain" else y.T)

        grid = lambda m, n: (up(m, tm) * up(n, tn), 1) if other.get("persistent") else (up(m, tm), up(n, tn))
        args = [random(element, big[0], 1, gap), random(element, big[1], 2, gap), (result, big[2], "zeros", gap)]
        row(k, workload, grid(m, n), args, 2.0 * m * n * kk, tolerance, shapes(*small), other.pop("function", f), (2, 1) if other.get("persistent") else grid(*small[:2]), **other)

    tile_ = (128, 128, 64)
    for a, b in (("map", "plain"), ("plain", "map"), ("map", "map"), ("permute", "plain"), ("plain", "permute"), ("permute", "permute")):
        name = f"mm_a_{a}_b_{b}"
        k = product(name, f"C = A B of f16; A is {'row-major' if a == 'plain' else 'transposed by ' + a}, B {'row-major' if b == 'plain' else 'transposed by ' + b}.", *tile_, a=a, b=b)
        plain(k, f"f16 4096, A {a}, B {b}", n, n, n, *tile_, a=a, b=b)
    # What no tensor map describes.
    ragged = product("mm_ragged", "C = A B of f16 arrays of any extents and strides.", *tile_, array=Plain)
    plain(ragged, "f16 4096, nothing promised", n, n, n, *tile_)
    plain(ragged, "f16 4093x4099x4091", 4093, 4099, 4091, *tile_, small=(131, 137, 149))
    for gap in (1, 2, 4):
        plain(ragged, f"f16 4096, rows of 4096 + {gap}", n, n, n, *tile_, gap=gap)
    small = product("mm_ragged_64", "C = A B of f16 arrays of any extents and strides, small tiles.", 64, 64, 32, array=Plain)
    plain(small, "f16 200x100x300", 200, 100, 300, 64, 64, 32, small=(200, 100, 300))
    skip = product("mm_skip", "C = A B of f16 arrays whose first element is left out, so that addresses are odd.", *tile_, array=lambda x, e, r, **_: Plain(x, e, r, skip=0 if x == "c" else 1))

    def skipped(a, b, c):
        a, b = (x.ravel()[1:1 + x.size - x.shape[1]].reshape(-1, x.shape[1]) for x in (a, b))
        return a @ b

    row(skip, "f16 4096, odd addresses", (32, 32), [random("f16", (n + 1, n), 1), random("f16", (n + 1, n), 2), ("f16", (n, n), "zeros", 0)], 2.0 * n**3, f16,
        [(145, 144), (145, 176), (144, 176)], skipped, (2, 2))
    # Few rows.
    for m, tm in ((1, 16), (16, 16), (32, 32), (64, 64)):
        for b in ("plain", "map"):
            k = product(f"mm_skinny_{tm}_b_{b}", f"C = A B for up to {tm} rows of f16; B {'row-major' if b == 'plain' else 'column-major'}.", tm, 64, 128, b=b)
            plain(k, f"f16 {m}x8192x8192, B {b}", m, 8192, 8192, tm, 64, 128, b=b, small=(m, 112, 272))
    for tm, tn, tk in ((64, 64, 16), (128, 64, 16)):
        k = product(f"mm_f64_{tm}x{tn}x{tk}", "C = A B of f64.", tm, tn, tk, "f64", "f64", "f64")
        plain(k, "f64 4096", n, n, n, tm, tn, tk, "f64", "f64", tolerance=2**-40, small=(tm + 16, tn + 48, 2 * tk + 16))
    # Work behind the product.
    for tn in (128, 256):
        k = epilogue(f"mm_gelu_128x{tn}", 128, tn, 64)
        row(k, "f16 4096, bias, gelu, residual, bf16", (32, n // tn), [random("f16", (n, n), 1), random("f16", (n, n), 2), random("f32", (n,), 3), random("f16", (n, n), 4), ("bf16", (n, n), "zeros", 0)],
            2.0 * n**3, 2**-7, [(144, 144), (144, tn + 48), (tn + 48,), (144, tn + 48), (144, tn + 48)], lambda a, b, bias, r, c: gelu(a @ b + bias) + r, (2, 2))
    two = [random("f16", (n, n // 2), 1), random("f16", (n // 2, n), 2), random("f16", (n, n // 2), 3), random("f16", (n // 2, n), 4), ("f16", (n, n), "zeros", 0)]
    row(carried("mm_two_loops", *tile_), "f16 4096, A B + D E", (32, 32), two, 2.0 * n**3, f16, [(144, 144), (144, 176), (144, 80), (80, 176), (144, 176)],
        lambda a, b, d, e, c: a @ b + d @ e, (2, 2))
    square = [random("f16", (n, n), 1), random("f16", (n, n), 2), ("f16", (n, n), "zeros", 0)]
    usual = [(144, 400), (400, 176), (144, 176)]
    row(nested("mm_nested", *tile_, 4), "f16 4096, a loop of loops", (32, 32), square, 2.0 * n**3, f16, usual, lambda a, b, c: a @ b, (2, 2))
    row(two_layers("mm_two_layers", 128, 128, 64), "f16 relu(A B) D, 32768x128x4096x128", (256, 1), [random("f16", (32768, 128), 1), random("f16", (128, 4096), 2), random("f16", (4096, 128), 3), ("f16", (32768, 128), "zeros", 0)],
        4.0 * 32768 * 128 * 4096, 2**-7, [(144, 128), (128, 208), (208, 128), (144, 128)], lambda a, b, d, c: np.maximum(a @ b, 0) @ d, (2, 1))
    row(product_of_product("mm_of_mm", *tile_), "f16 4096, (A B) D", (32, 32), [*square[:2], random("f16", (128, 128), 3), square[2]], 2.0 * n**3 + 2.0 * n * n * 128, 2**-7,
        [(144, 144), (144, 128), (128, 128), (144, 128)], lambda a, b, d, c: (a @ b) @ d, (2, 1))
    row(lower_triangle("mm_lower", *tile_), "f16 4096, lower triangle", (32, 32), square, 1.0 * n**3 * 33 / 32, f16, usual,
        lambda a, b, c: np.where(np.arange(144)[:, None] // 128 >= np.arange(176) // 128, a @ b, 0), (2, 2))

    def sparse(a, b, flags, c):
        return (a * (np.kron(flags, np.ones((128, 64)))[:144, :400] != 0)) @ b

    row(block_sparse("mm_sparse", *tile_), "f16 4096, half the tiles of A", (32, 32), [*square[:2], ("i32", (32, 64), "randint(3,0,2)", 0), square[2]], 1.0 * n**3, f16,
        [(144, 400), (400, 176), (2, 7), (144, 176)], sparse, (2, 2))
    row(gathered("mm_gathered", *tile_), "f16 4096, gathered rows", (32, 32), [*square[:2], ("i32", (n,), f"randint(3,0,{n})", 0), square[2]], 2.0 * n**3, f16,
        [(4096, 144), (144, 176), (144,), (144, 176)], lambda a, b, r, c: a[r] @ b, (2, 2))
    row(pointers("mm_pointers", *tile_), "f16 4096, pointers", (32, 32), square, 2.0 * n**3, f16, [(256, 144), (144, 256), (256, 256)], lambda a, b, c: a @ b, (2, 2))
    for result, tolerance in (("f32", 2**-18), ("f16", 2**-7)):
        k = split(f"mm_split_{result}", 128, 128, 64, result, 4)
        # Sums go on from launch to launch, which both kernels do as often; the tolerance is of a sum of one launch.
        row(k, f"{result} 1024x1024x16384, K in 4 parts", (8, 8, 4), [random("f16", (1024, 16384), 1), random("f16", (16384, 1024), 2), (result, (1024, 1024), "zeros", 0)], 2.0 * 1024 * 1024 * 16384, tolerance,
            usual, lambda a, b, c: a @ b, (2, 2, 4))
    for persistent in (False, True):
        k = product(f"mm_c2_p{int(persistent)}", "C = A B of f16 by clusters of two; " + ("blocks that loop over tiles." if persistent else "a block for each tile."), *tile_, ctas=2, persistent=persistent)
        plain(k, "f16 4096, clusters of two", n, n, n, *tile_, persistent=persistent, ctas=2)
    return kernels, rows


if __name__ == "__main__":
    texts_main(build()[0], KERNELS, "shape_set.py")
