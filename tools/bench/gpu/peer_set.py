#!/usr/bin/env python3
"""The kernels that are timed beside other compilers: their texts, and launches of them.

  python3 tools/bench/gpu/peer_set.py             # writes the texts to tools/bench/gpu/kernels
  python3 tools/bench/gpu/peer_set.py --check     # says which are not up to date (exit 1)

All take arrays as cuTile passes them: address, extents, strides; the last stride is one, addresses, extents and other strides are multiples of 16."""
import dataclasses
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parent / "kernels"
GROUP = 8  # rows of tiles that are done together, so that their operands stay in the L2 cache


@dataclasses.dataclass
class Array:
    name: str
    type: str
    rank: int

    def params(self):
        words = [f"%{self.name}: tile<ptr<{self.type}>>"]
        words += [f"%{self.name}_n{d}: tile<i32>" for d in range(self.rank)]
        words += [f"%{self.name}_s{d}: tile<i32>" for d in range(self.rank)]
        return ", ".join(words)

    def view(self):
        """The array's assumptions and its tensor view %v_NAME of type !NAME; %NAME_eD are its extents."""
        n, lines = self.name, [f"%p_{self.name} = assume div_by<16>, %{self.name} : tile<ptr<{self.type}>>"]
        words = [f"n{d}" for d in range(self.rank)] + [f"s{d}" for d in range(self.rank - 1)]
        for w in words:
            lines.append(f"%{n}_{w}b = assume bounded<0, ?>, %{n}_{w} : tile<i32>")
            lines.append(f"%{n}_{w}x = assume div_by<16>, %{n}_{w}b : tile<i32>")
        shape = ", ".join(f"%{n}_n{d}x" for d in range(self.rank))
        strides = ", ".join([f"%{n}_s{d}x" for d in range(self.rank - 1)] + ["1"])
        lines.append(f"%v_{n} = make_tensor_view %p_{n}, shape = [{shape}], strides = [{strides}] : tile<i32> -> !{n}")
        return lines

    def alias(self):
        dims, strides = "x".join("?" * self.rank), ",".join(["?"] * (self.rank - 1) + ["1"])
        return f"!{self.name} = !cuda_tile.tensor_view<{dims}x{self.type}, strides=[{strides}]>"


def tile(shape, element):
    return f"tile<{'x'.join(map(str, shape))}x{element}>" if shape else f"tile<{element}>"


class Kernel:
    def __init__(self, name, about, arrays, hints=""):
        self.name, self.about, self.arrays, self.hints = name, about, arrays, hints
        self.aliases = [a.alias() for a in arrays]
        self.lines = [line for a in arrays for line in a.view()]

    def partition(self, name, array, shape, padding=None, order=None):
        """%NAME: partition view of type !NAME."""
        pad = f", padding_value = {padding}" if padding else ""
        dim_map = f", dim_map=[{', '.join(map(str, order))}]" if order else ""
        self.aliases.append(f"!{name} = !cuda_tile.partition_view<tile=({'x'.join(map(str, shape))}){pad}, !{array}{dim_map}>")
        self.add(f"%{name} = make_partition_view %v_{array} : !{name}")

    def add(self, *lines):
        self.lines += [line for text in lines for line in text.strip("\n").split("\n")]

    def text(self):
        hints = f" optimization_hints=<default = {{{self.hints}}}>" if self.hints else ""
        params = ",\n        ".join(a.params() for a in self.arrays)
        out = [f"// {line}" for line in self.about.split("\n")] + self.aliases
        out += ["cuda_tile.module @peers {", f"  entry @{self.name}({params}){hints} {{"]
        depth = 2
        for line in self.lines:
            line = line.strip()
            depth -= line.startswith("}")
            out.append("  " * depth + line)
            depth += line.endswith("{")
        return "\n".join(out + ["    return", "  }", "}"]) + "\n"


def accumulator(element):
    return "i32" if element == "i8" else "f32"


def factors(k, a, b, element, shapes):
    """Lines behind the loads %ta and %tb of an operand pair: to the two dimensions and the type that the product takes."""
    out, names = [], []
    for name, shape, two in ((a, shapes[0], shapes[0][-2:]), (b, shapes[1], shapes[1][-2:])):
        if len(shape) > 2:
            out.append(f"%{name}2 = reshape %{name} : {tile(shape, element)} -> {tile(two, element)}")
            name += "2"
        if element == "f32":
            out.append(f"%{name}t = ftof %{name} : {tile(two, 'f32')} -> {tile(two, 'tf32')}")
            name += "t"
        names.append(name)
    e, acc = "tf32" if element == "f32" else element, accumulator(element)
    op, signs = ("mmai", " signed signed") if element == "i8" else ("mmaf", "")
    ta, tb = shapes[0][-2:], shapes[1][-2:]
    out.append(f"%next = {op} %{names[0]}, %{names[1]}, %sum{signs} : {tile(ta, e)}, {tile(tb, e)}, {tile((ta[0], tb[1]), acc)}")
    k.add(*out, f"continue %next : {tile((ta[0], tb[1]), acc)}", "}")


def floor_remainder(result, a, b):
    """Of division rounded down, as Python's %: cuTile writes it so."""
    t = "tile<i32>"
    return f"""
%{result}_r = remi {a}, {b} signed : {t}
%{result}_x = cmpi less_than %{result}_r, %zero, signed : {t} -> tile<i1>
%{result}_y = cmpi less_than {b}, %zero, signed : {t} -> tile<i1>
%{result}_signs = xori %{result}_x, %{result}_y : tile<i1>
%{result}_rest = cmpi not_equal %{result}_r, %zero, signed : {t} -> tile<i1>
%{result}_fix = andi %{result}_signs, %{result}_rest : tile<i1>
%{result}_up = addi %{result}_r, {b} : {t}
%{result} = select %{result}_fix, %{result}_up, %{result}_r : tile<i1>, {t}"""


def to_result(k, element, result, shape):
    acc = accumulator(element)
    if acc == result:
        return "%product"
    k.add(f"%rounded = ftof %product : {tile(shape, acc)} -> {tile(shape, result)}")
    return "%rounded"


def matmul(name, element, result, tm, tn, tk, persistent, ctas=1):
    """C = A B. A block makes one tile of C, or, persistent, every tile whose number is its own modulo the number of blocks."""
    k = Kernel(name, f"C = A B with tiles of {tm} x {tn}, {tk} of K at a time; " + ("blocks that loop over tiles." if persistent else "a block for each tile."),
               [Array("a", element, 2), Array("b", element, 2), Array("c", result, 2)], f"num_cta_in_cga = {ctas}")
    acc = accumulator(element)
    k.partition("at", "a", (tm, tk), "zero")
    k.partition("bt", "b", (tk, tn), "zero")
    k.partition("ct", "c", (tm, tn))
    k.add(f"""
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%group = constant <i32: {GROUP}> : tile<i32>
%tm = constant <i32: {tm}> : tile<i32>
%tn = constant <i32: {tn}> : tile<i32>
%nothing = constant <{acc}: {'0' if acc == 'i32' else '0.0'}> : {tile((tm, tn), acc)}
%rows = divi %a_n0x, %tm signed rounding<positive_inf> : tile<i32>
%columns = divi %b_n1x, %tn signed rounding<positive_inf> : tile<i32>
%steps_m, %steps = get_index_space_shape %at : !at -> tile<i32>
%per_group = muli %group, %columns : tile<i32>
%block, %block_y, %block_z = get_tile_block_id : tile<i32>""")
    if persistent:
        k.add("""
%tiles = muli %rows, %columns : tile<i32>
%blocks, %blocks_y, %blocks_z = get_num_tile_blocks : tile<i32>
%start = make_token : token
%end = for %number in (%block to %tiles, step %blocks) : tile<i32> iter_values(%before = %start) -> (token) {""")
    number = "%number" if persistent else "%block"
    k.add(f"""
%g = divi {number}, %per_group signed rounding<negative_inf> : tile<i32>
%first = muli %g, %group : tile<i32>
%left = subi %rows, %first : tile<i32>
%height = mini %left, %group signed : tile<i32>""", floor_remainder("in_rows", number, "%height"), "%m = addi %first, %in_rows : tile<i32>",
          floor_remainder("in_group", number, "%per_group"), f"""
%n = divi %in_group, %height signed rounding<negative_inf> : tile<i32>
%product = for %k in (%zero to %steps, step %one) : tile<i32> iter_values(%sum = %nothing) -> ({tile((tm, tn), acc)}) {{
%ta, %t0 = load_view_tko weak %at[%m, %k] : !at, tile<i32> -> {tile((tm, tk), element)}, token
%tb, %t1 = load_view_tko weak %bt[%k, %n] : !bt, tile<i32> -> {tile((tk, tn), element)}, token""")
    factors(k, "ta", "tb", element, ((tm, tk), (tk, tn)))
    out = to_result(k, element, result, (tm, tn))
    token = " token = %before" if persistent else ""
    k.add(f"%t2 = store_view_tko weak {out}, %ct[%m, %n]{token} : {tile((tm, tn), result)}, !ct, tile<i32> -> token")
    if persistent:
        k.add("continue %t2 : token", "}")
    return k


def bmm(name, element, tm, tn, tk):
    k = Kernel(name, f"C = A B for each of a batch, with tiles of {tm} x {tn}, {tk} of K at a time.", [Array(n, element, 3) for n in "abc"], "num_cta_in_cga = 1")
    k.partition("at", "a", (1, tm, tk), "zero")
    k.partition("bt", "b", (1, tk, tn), "zero")
    k.partition("ct", "c", (1, tm, tn))
    k.add(f"""
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%nothing = constant <f32: 0.0> : {tile((tm, tn), 'f32')}
%m, %n, %batch = get_tile_block_id : tile<i32>
%steps_b, %steps_m, %steps = get_index_space_shape %at : !at -> tile<i32>
%product = for %k in (%zero to %steps, step %one) : tile<i32> iter_values(%sum = %nothing) -> ({tile((tm, tn), 'f32')}) {{
%ta, %t0 = load_view_tko weak %at[%batch, %m, %k] : !at, tile<i32> -> {tile((1, tm, tk), element)}, token
%tb, %t1 = load_view_tko weak %bt[%batch, %k, %n] : !bt, tile<i32> -> {tile((1, tk, tn), element)}, token""")
    factors(k, "ta", "tb", element, ((1, tm, tk), (1, tk, tn)))
    out = to_result(k, element, element, (tm, tn))
    k.add(f"%out = reshape {out} : {tile((tm, tn), element)} -> {tile((1, tm, tn), element)}",
          f"%t2 = store_view_tko weak %out, %ct[%batch, %m, %n] : {tile((1, tm, tn), element)}, !ct, tile<i32> -> token")
    return k


def reduction(result, operand, shape, op, identity):
    return f"""
%{result}1 = reduce %{operand} dim=1 identities=[{identity} : f32] : {tile(shape, 'f32')} -> {tile(shape[:1], 'f32')}
(%l: tile<f32>, %r: tile<f32>) {{
%both = {op} %l, %r : tile<f32>
yield %both : tile<f32>
}}
%{result} = reshape %{result}1 : {tile(shape[:1], 'f32')} -> {tile((shape[0], 1), 'f32')}"""


def spread(result, scalar, shape, element="f32"):
    return f"""
%{result}_1 = reshape %{scalar} : tile<{element}> -> {tile((1,) * len(shape), element)}
%{result} = broadcast %{result}_1 : {tile((1,) * len(shape), element)} -> {tile(shape, element)}"""


def attention(name, d, tm, tn, causal):
    """O = softmax(Q K^T / sqrt(D)) V over heads of D, online: a block has TM queries and goes over the keys TN at a time."""
    k = Kernel(name, f"Attention of 16 heads of {d}, {'causal' if causal else 'full'}: {tm} queries a block, {tn} keys at a time.", [Array(n, "f16", 4) for n in "qkvo"])
    s, o, col = (tm, tn), (tm, d), (tm, 1)
    k.partition("qt", "q", (1, 1, tm, d))
    k.partition("kt", "k", (1, 1, d, tn), order=(0, 1, 3, 2))
    k.partition("vt", "v", (1, 1, tn, d))
    k.partition("ot", "o", (1, 1, tm, d))
    k.add(f"""
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%heads = constant <i32: 16> : tile<i32>
%tm = constant <i32: {tm}> : tile<i32>
%tn = constant <i32: {tn}> : tile<i32>
%scale = constant <f32: {d ** -0.5 * 1.4426950408889634!r}> : tile<f32>
%least = constant <f32: 0xFF800000> : {tile(col, 'f32')}
%none = constant <f32: 0.0> : {tile(col, 'f32')}
%empty = constant <f32: 0.0> : {tile(o, 'f32')}
%nothing = constant <f32: 0.0> : {tile(s, 'f32')}
%x, %y, %z = get_tile_block_id : tile<i32>
%batch = divi %y, %heads signed rounding<negative_inf> : tile<i32>
%head = remi %y, %heads signed : tile<i32>
%q4, %t0 = load_view_tko weak %qt[%batch, %head, %x, %zero] : !qt, tile<i32> -> {tile((1, 1, tm, d), 'f16')}, token
%q2 = reshape %q4 : {tile((1, 1, tm, d), 'f16')} -> {tile((tm, d), 'f16')}""")
    k.add(spread("scales", "scale", s), spread("scale_column", "scale", col))
    if causal:
        k.add(f"""
%iota_m = iota : {tile((tm,), 'i32')}
%from = muli %x, %tm : tile<i32>
%last_x = addi %x, %one : tile<i32>
%to = muli %last_x, %tm : tile<i32>""", spread("froms", "from", (tm,), "i32"), f"""
%queries1 = addi %froms, %iota_m : {tile((tm,), 'i32')}
%queries2 = reshape %queries1 : {tile((tm,), 'i32')} -> {tile(col, 'i32')}
%queries = broadcast %queries2 : {tile(col, 'i32')} -> {tile(s, 'i32')}
%iota_n = iota : {tile((tn,), 'i32')}
%keys1 = reshape %iota_n : {tile((tn,), 'i32')} -> {tile((1, tn), 'i32')}
%keys = broadcast %keys1 : {tile((1, tn), 'i32')} -> {tile(s, 'i32')}
%minus = constant <f32: 0xFF800000> : {tile(s, 'f32')}
%end = mini %to, %k_n2x signed : tile<i32>
%steps = divi %end, %tn signed rounding<positive_inf> : tile<i32>
%border = divi %from, %tn signed rounding<negative_inf> : tile<i32>
%unmasked = mini %border, %steps signed : tile<i32>""")
    else:
        k.add("%steps = divi %k_n2x, %tn signed rounding<positive_inf> : tile<i32>")

    def loop(name, low, high, start, masked):
        k.add(f"""
%{name}:3 = for %j in ({low} to {high}, step %one) : tile<i32> iter_values(%acc = {start[0]}, %total = {start[1]}, %m = {start[2]}) -> ({tile(o, 'f32')}, {tile(col, 'f32')}, {tile(col, 'f32')}) {{
%k4, %t1 = load_view_tko weak %kt[%batch, %head, %zero, %j] optimization_hints = <default = {{latency = 2}}> : !kt, tile<i32> -> {tile((1, 1, d, tn), 'f16')}, token
%k2 = reshape %k4 : {tile((1, 1, d, tn), 'f16')} -> {tile((d, tn), 'f16')}
%s{'_all' if masked else ''} = mmaf %q2, %k2, %nothing : {tile((tm, d), 'f16')}, {tile((d, tn), 'f16')}, {tile(s, 'f32')}""")
        if masked:
            k.add("%key0 = muli %j, %tn : tile<i32>", spread("key0s", "key0", s, "i32"), f"""
%key_numbers = addi %key0s, %keys : {tile(s, 'i32')}
%seen = cmpi greater_than_or_equal %queries, %key_numbers, signed : {tile(s, 'i32')} -> {tile(s, 'i1')}
%s = select %seen, %s_all, %minus : {tile(s, 'i1')}, {tile(s, 'f32')}""")
        k.add(reduction("greatest", "s", s, "maxf", "0xFF800000"), f"""
%scaled = mulf %greatest, %scale_column : {tile(col, 'f32')}
%m2 = maxf %m, %scaled : {tile(col, 'f32')}
%m2s = broadcast %m2 : {tile(col, 'f32')} -> {tile(s, 'f32')}
%minus_m2 = negf %m2s : {tile(s, 'f32')}
%shifted = fma %s, %scales, %minus_m2 : {tile(s, 'f32')}
%p = exp2 %shifted flush_to_zero : {tile(s, 'f32')}
%down = subf %m, %m2 : {tile(col, 'f32')}
%alpha = exp2 %down flush_to_zero : {tile(col, 'f32')}""", reduction("sum", "p", s, "addf", "0.0"), f"""
%total2 = fma %total, %alpha, %sum : {tile(col, 'f32')}
%alphas = broadcast %alpha : {tile(col, 'f32')} -> {tile(o, 'f32')}
%kept = mulf %acc, %alphas : {tile(o, 'f32')}
%v4, %t2 = load_view_tko weak %vt[%batch, %head, %j, %zero] optimization_hints = <default = {{latency = 4}}> : !vt, tile<i32> -> {tile((1, 1, tn, d), 'f16')}, token
%v2 = reshape %v4 : {tile((1, 1, tn, d), 'f16')} -> {tile((tn, d), 'f16')}
%p16 = ftof %p : {tile(s, 'f32')} -> {tile(s, 'f16')}
%acc2 = mmaf %p16, %v2, %kept : {tile(s, 'f16')}, {tile((tn, d), 'f16')}, {tile(o, 'f32')}
continue %acc2, %total2, %m2 : {tile(o, 'f32')}, {tile(col, 'f32')}, {tile(col, 'f32')}
}}""")
    start = ("%empty", "%none", "%least")
    if causal:
        loop("below", "%zero", "%unmasked", start, False)
        loop("all", "%unmasked", "%steps", ("%below#0", "%below#1", "%below#2"), True)
    else:
        loop("all", "%zero", "%steps", start, False)
    k.add(f"""
%sums = broadcast %all#1 : {tile(col, 'f32')} -> {tile(o, 'f32')}
%mean = divf %all#0, %sums rounding<approx> flush_to_zero : {tile(o, 'f32')}
%mean16 = ftof %mean : {tile(o, 'f32')} -> {tile(o, 'f16')}
%out = reshape %mean16 : {tile(o, 'f16')} -> {tile((1, 1, tm, d), 'f16')}
%t3 = store_view_tko weak %out, %ot[%batch, %head, %x, %zero] : {tile((1, 1, tm, d), 'f16')}, !ot, tile<i32> -> token""")
    return k


def vadd(name, n):
    k = Kernel(name, f"C = A + B, {n} elements a block.", [Array(x, "f32", 1) for x in "abc"])
    for x in "abc":
        k.partition(f"{x}t", x, (n,))
    t = tile((n,), "f32")
    k.add(f"""
%x, %y, %z = get_tile_block_id : tile<i32>
%ta, %t0 = load_view_tko weak %at[%x] : !at, tile<i32> -> {t}, token
%tb, %t1 = load_view_tko weak %bt[%x] : !bt, tile<i32> -> {t}, token
%sum = addf %ta, %tb : {t}
%t2 = store_view_tko weak %sum, %ct[%x] : {t}, !ct, tile<i32> -> token""")
    return k


def softmax(name, n):
    k = Kernel(name, f"Softmax of rows of up to {n}; blocks loop over rows.", [Array("x", "f32", 2), Array("y", "f32", 2)])
    k.partition("xt", "x", (1, n), "neg_inf")
    k.partition("yt", "y", (1, n))
    row, one = tile((1, n), "f32"), tile((1, 1), "f32")
    k.add(f"""
%zero = constant <i32: 0> : tile<i32>
%bx, %by, %bz = get_tile_block_id : tile<i32>
%nx, %ny, %nz = get_num_tile_blocks : tile<i32>
for %row in (%bx to %x_n0x, step %nx) : tile<i32> {{
%in, %t0 = load_view_tko weak %xt[%row, %zero] : !xt, tile<i32> -> {row}, token""", reduction("greatest", "in", (1, n), "maxf", "0xFF800000"), f"""
%greatests = broadcast %greatest : {one} -> {row}
%shifted = subf %in, %greatests : {row}
%e = exp %shifted : {row}""", reduction("sum", "e", (1, n), "addf", "0.0"), f"""
%sums = broadcast %sum : {one} -> {row}
%out = divf %e, %sums : {row}
%t1 = store_view_tko weak %out, %yt[%row, %zero] : {row}, !yt, tile<i32> -> token
}}""")
    return k


def layernorm(name, n):
    k = Kernel(name, f"Layer normalisation of rows of {n}, a block for each row.", [Array("x", "f32", 2), Array("w", "f32", 1), Array("b", "f32", 1), Array("y", "f32", 2)])
    k.partition("xt", "x", (1, n), "zero")
    k.partition("wt", "w", (n,))
    k.partition("bt", "b", (n,))
    k.partition("yt", "y", (1, n))
    row, one = tile((1, n), "f32"), tile((1, 1), "f32")
    k.add(f"""
%zero = constant <i32: 0> : tile<i32>
%epsilon = constant <f32: 0x3727C5AC> : {one}
%row, %row_y, %row_z = get_tile_block_id : tile<i32>
%in, %t0 = load_view_tko weak %xt[%row, %zero] : !xt, tile<i32> -> {row}, token
%count_f = itof %x_n1x signed : tile<i32> -> tile<f32>
%count = reshape %count_f : tile<f32> -> {one}""", reduction("sum", "in", (1, n), "addf", "0.0"), f"""
%mean = divf %sum, %count : {one}
%means = broadcast %mean : {one} -> {row}
%d = subf %in, %means : {row}
%dd = mulf %d, %d : {row}""", reduction("square", "dd", (1, n), "addf", "0.0"), f"""
%variance = divf %square, %count : {one}
%w1, %t1 = load_view_tko weak %wt[%zero] : !wt, tile<i32> -> {tile((n,), 'f32')}, token
%ws = reshape %w1 : {tile((n,), 'f32')} -> {row}
%b1, %t2 = load_view_tko weak %bt[%zero] : !bt, tile<i32> -> {tile((n,), 'f32')}, token
%bs = reshape %b1 : {tile((n,), 'f32')} -> {row}
%above = addf %variance, %epsilon : {one}
%inverse = rsqrt %above : {one}
%inverses = broadcast %inverse : {one} -> {row}
%normal = mulf %d, %inverses : {row}
%out = fma %normal, %ws, %bs : {row}
%t3 = store_view_tko weak %out, %yt[%row, %zero] : {row}, !yt, tile<i32> -> token""")
    return k


def transpose(name, tm, tn):
    k = Kernel(name, f"Y = X transposed, tiles of {tm} x {tn}.", [Array("x", "f32", 2), Array("y", "f32", 2)])
    k.partition("xt", "x", (tm, tn))
    k.partition("yt", "y", (tn, tm))
    k.add(f"""
%i, %j, %z = get_tile_block_id : tile<i32>
%in, %t0 = load_view_tko weak %xt[%i, %j] : !xt, tile<i32> -> {tile((tm, tn), 'f32')}, token
%out = permute %in [1, 0] : {tile((tm, tn), 'f32')} -> {tile((tn, tm), 'f32')}
%t1 = store_view_tko weak %out, %yt[%j, %i] : {tile((tn, tm), 'f32')}, !yt, tile<i32> -> token""")
    return k


@dataclasses.dataclass
class Row:
    """One launch of a kernel. `workload` is what several kernels do in different ways."""
    kernel: str
    workload: str
    grid: tuple
    args: list          # of the kernel's arrays: type, shape, generator, and how many elements lie between rows, if any
    unit: str           # "TFLOP/s" or "GB/s"
    work: float         # operations, or bytes that must be moved
    tolerance: float    # largest difference of two right results, as a part of the largest value
    persistent: bool = False  # the grid is at most the number of multiprocessors, divided by the kernel's CTAs
    ctas: int = 1
    text: pathlib.Path = None     # of the kernel, where it is none of KERNELS
    small: object = None          # gives shapes, grid and NumPy function of a small case, where compare.py does not know them

    def path(self):
        return self.text or KERNELS / f"{self.kernel}.tile"


def up(a, b):
    return -(-a // b)


# name in kernels, spelling in the text, result, generator of inputs, tolerance: two units in the last place of the result, or of a sum in tf32
_PRODUCTS = {"f16": ("f16", "f16", "normal({s},0,0.5)", 2**-10), "bf16": ("bf16", "bf16", "normal({s},0,0.5)", 2**-7), "tf32": ("f32", "f32", "normal({s},0,0.5)", 2**-12),
             "e4m3": ("f8E4M3FN", "f16", "normal({s},0,0.5)", 2**-9), "i8": ("i8", "i32", "randint({s},-3,4)", 0)}
_TILES = {"f16": [(128, 256, 64, 2), (128, 128, 64, 1)], "bf16": [(128, 256, 64, 2), (128, 128, 64, 1)], "tf32": [(128, 128, 32, 1)], "e4m3": [(128, 128, 128, 1)], "i8": [(128, 128, 128, 1)]}
_SIZES = {"f16": (2048, 4096, 8192), "bf16": (4096, 8192), "tf32": (4096,), "e4m3": (4096,), "i8": (4096,)}


def build():
    """All kernels, and the rows of the table."""
    kernels, rows = [], []
    for short, (element, result, inputs, tolerance) in _PRODUCTS.items():
        for tm, tn, tk, ctas in _TILES[short]:
            for persistent in (False, True) if short != "i8" else (False,):
                name = f"mm_{short}_{tm}x{tn}x{tk}_c{ctas}_p{int(persistent)}"
                kernels.append(matmul(name, element, result, tm, tn, tk, persistent, ctas))
                for n in _SIZES[short]:
                    args = [(element, (n, n), inputs.format(s=1)), (element, (n, n), inputs.format(s=2)), (result, (n, n), "zeros")]
                    rows.append(Row(name, f"matmul {short} {n}", (up(n, tm) * up(n, tn),), args, "TFLOP/s", 2.0 * n**3, tolerance, persistent, ctas))
    for short, tk in (("f16", 64), ("f16", 32), ("tf32", 32), ("tf32", 64)):
        element, _, inputs, tolerance = _PRODUCTS[short]
        name = f"bmm_{short}_128x128x{tk}"
        kernels.append(bmm(name, element, 128, 128, tk))
        shapes = ((8, 1024, 512), (8, 512, 2048), (8, 1024, 2048))
        args = [(element, shape, inputs.format(s=1 + i) if i < 2 else "zeros") for i, shape in enumerate(shapes)]
        rows.append(Row(name, f"batched matmul {short} 8x1024x512x2048", (8, 16, 8), args, "TFLOP/s", 2.0 * 8 * 1024 * 512 * 2048, tolerance))
    for d, b, s in ((64, 8, 1024), (128, 4, 4096)):
        for causal in (False, True):
            for tn in (128, 64):
                name = f"attention_d{d}_128x{tn}_{'causal' if causal else 'full'}"
                kernels.append(attention(name, d, 128, tn, causal))
                args = [("f16", (b, 16, s, d), f"normal({i},0,0.5)" if i < 4 else "zeros") for i in range(1, 5)]
                rows.append(Row(name, f"attention f16 ({b},16,{s},{d}) {'causal' if causal else 'full'}", (up(s, 128), b * 16), args, "TFLOP/s", 4.0 * b * 16 * s * s * d * (0.5 if causal else 1), 2**-9))
    for n in (2048, 4096):
        kernels.append(vadd(f"vadd_{n}", n))
        total = 1 << 26
        rows.append(Row(f"vadd_{n}", "vector add 2^26 f32", (total // n,), [("f32", (total,), "normal(1)"), ("f32", (total,), "normal(2)"), ("f32", (total,), "zeros")], "GB/s", 3.0 * 4 * total, 0))
    square, bytes_ = (4096, 4096), 2.0 * 4 * 4096 * 4096
    kernels.append(softmax("softmax_4096", 4096))
    for blocks in (528, 4096):
        rows.append(Row("softmax_4096", f"softmax 4096x4096 f32, {blocks} blocks", (blocks,), [("f32", square, "normal(1)"), ("f32", square, "zeros")], "GB/s", bytes_, 2**-18))
    kernels.append(layernorm("layernorm_4096", 4096))
    rows.append(Row("layernorm_4096", "layernorm 4096x4096 f32", (4096,), [("f32", square, "normal(1)"), ("f32", (4096,), "normal(2)"), ("f32", (4096,), "normal(3)"), ("f32", square, "zeros")], "GB/s", bytes_, 2**-18))
    for tm, tn in ((64, 64), (128, 32)):
        kernels.append(transpose(f"transpose_{tm}x{tn}", tm, tn))
        n = 8192
        rows.append(Row(f"transpose_{tm}x{tn}", "transpose 8192x8192 f32", (n // tm, n // tn), [("f32", (n, n), "normal(1)"), ("f32", (n, n), "zeros")], "GB/s", 2.0 * 4 * n * n, 0))
    return kernels, rows


def texts_main(kernels, folder, script):
    texts = {f"{k.name}.tile": k.text() for k in kernels}
    if sys.argv[1:] == ["--check"]:
        stale = [n for n, t in texts.items() if not (folder / n).exists() or (folder / n).read_text() != t] + [p.name for p in folder.glob("*.tile") if p.name not in texts]
        if stale:
            sys.exit(f"not up to date, run tools/bench/gpu/{script}: " + " ".join(stale))
        return
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    texts_main(build()[0], KERNELS, "peer_set.py")
