"""Views: every padding, ragged and prime sizes, overhang, strides, dim_map, strided and gather/scatter views."""

import itertools

from families.case import Case, pack_bits
from families.kernel import Kernel, count, tile
from families.shape import coordinates, dims, index
from oracle import values
from oracle.formats import F, INT, INTS, nan_bits
from oracle.rng import Rng

POISON = 0xFF  # what lies around an array: a NaN, or -1
PADDING = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")


def padding_bits(t, pad):
    if pad == "zero":
        return 0
    f = F[t]
    inf = f.inf_bits if f.inf else f.top_bits
    return {"neg_zero": f.sign_bit, "nan": nan_bits(t), "pos_inf": inf, "neg_inf": inf | f.sign_bit}[pad]


class Array:
    """A strided array of a case: its buffer's elements and how its view is written."""

    def __init__(self, t, sizes, strides=None, offset=0, dynamic_sizes=(), dynamic_strides=(), extra=0):
        self.t, self.sizes = t, list(sizes)
        if strides is None:
            strides, step = [], 1
            for d in reversed(sizes):
                strides.insert(0, step)
                step *= d
        self.strides, self.offset = list(strides), offset
        self.dynamic_sizes, self.dynamic_strides = set(dynamic_sizes), set(dynamic_strides)
        self.length = offset + sum((n - 1) * s for n, s in zip(self.sizes, self.strides)) + 1 + extra

    def at(self, c):
        """Element of the buffer at a coordinate; None outside of the array."""
        if any(not 0 <= x < n for x, n in zip(c, self.sizes)):
            return None
        return self.offset + sum(x * s for x, s in zip(c, self.strides))

    def places(self):
        return {self.at(c) for c in coordinates(self.sizes)}

    def type_text(self):
        shape = "".join(("?" if i in self.dynamic_sizes else str(n)) + "x" for i, n in enumerate(self.sizes))
        strides = ",".join("?" if i in self.dynamic_strides else str(s) for i, s in enumerate(self.strides))
        return f"tensor_view<{shape}{self.t}, strides=[{strides}]>"

    def emit(self, k, base, index_type="i64", names="n"):
        """make_tensor_view; the dynamic extents become parameters."""

        def operand(dynamic, i, v, letter):
            return k.scalar(f"{names}{letter}{i}", index_type, v) if i in dynamic else str(v)

        sizes = [operand(self.dynamic_sizes, i, n, "n") for i, n in enumerate(self.sizes)]
        strides = [operand(self.dynamic_strides, i, s, "s") for i, s in enumerate(self.strides)]
        dynamic = f"tile<{index_type}> -> " if self.dynamic_sizes or self.dynamic_strides else ""
        return k.v(
            f"make_tensor_view {base}, shape = [{', '.join(sizes)}], strides = [{', '.join(strides)}] : {dynamic}{self.type_text()}"
        )

    def contents(self, name):
        """Random elements of the array, poison around."""
        rng, bits = Rng(name), (1 << (F[self.t].memory_bits if self.t in F else INTS[self.t])) - 1
        out = [POISON * 0x0101010101010101 & bits] * self.length
        for p in sorted(self.places()):
            out[p] = values.random_bits(self.t, rng)
        return out


class View:
    """A partition, strided or gather/scatter view: type text, index space, and the coordinate of each element."""

    def __init__(self, array, tile_shape, kind="partition", pad=None, traversal=None, dim_map=None, sparse=None):
        self.array, self.tile, self.kind, self.pad = array, list(tile_shape), kind, pad
        self.step = list(traversal or tile_shape)
        self.map = list(dim_map or range(len(tile_shape)))
        self.sparse = sparse
        self.mapped = dim_map is not None

    def type_text(self):
        shape = "x".join(map(str, self.tile))
        pad = f"padding_value = {self.pad}, " if self.pad else ""
        tail = f", dim_map=[{', '.join(map(str, self.map))}]" if self.mapped else ""
        tv = self.array.type_text()
        if self.kind == "partition":
            return f"partition_view<tile=({shape}), {pad}{tv}{tail}>"
        if self.kind == "strided":
            return (
                f"strided_view<tile=({shape}), traversal_strides=[{', '.join(map(str, self.step))}], {pad}{tv}{tail}>"
            )
        return f"gather_scatter_view<tile=({shape}), {pad}{tv}, sparse_dim={self.sparse}>"

    def space(self):
        return [-(-self.array.sizes[self.map[i]] // s) for i, s in enumerate(self.step)]

    def coordinate(self, at, e):
        """Coordinate in the tensor of element e of the tile at index `at` (a list of numbers, the sparse one a list)."""
        c = [0] * len(e)
        for i, x in enumerate(e):
            if self.kind == "gather_scatter":
                c[i] = at[i][x] if i == self.sparse else at[i] + x
            else:
                c[self.map[i]] = at[i] * self.step[i] + x
        return c

    def emit(self, k, tv):
        word = {
            "partition": "make_partition_view",
            "strided": "make_strided_view",
            "gather_scatter": "make_gather_scatter_view",
        }[self.kind]
        return k.v(f"{word} {tv} : {self.type_text()}")

    def load(self, mem, at):
        """(bits, unspecified) of the tile: outside without padding, and infinite padding of a type without infinity."""
        loose = self.pad is None or self.pad.endswith("inf") and not F[self.array.t].inf
        out, free = [], []
        for e in coordinates(self.tile):
            p = self.array.at(self.coordinate(at, e))
            out.append(mem[p] if p is not None else padding_bits(self.array.t, self.pad) if self.pad else 0)
            free.append(p is None and loose)
        return out, free


def block_indices(k, space):
    """Values of the block numbers, one for each dimension of the index space; the grid is the index space."""
    rank = len(space)
    k.case.grid = (list(space) + [1, 1])[:3]
    k.emit("%bx, %by, %bz = get_tile_block_id : tile<i32>")
    if rank <= 3:
        return ["%bx", "%by", "%bz"][:rank]
    raise ValueError("at most three dimensions in a grid")


def linear(k, space):
    """Number of the block in row-major order, times nothing."""
    names = ["%bx", "%by", "%bz"][: len(space)]
    total = names[0]
    for n, v in zip(space[1:], names[1:]):
        row = k.v(f"muli {total}, {k.const('i32', n)} : tile<i32>")
        total = k.v(f"addi {row}, {v} : tile<i32>")
    return total


def load_op(k, view, v, indices, index_types, words="weak", tail=""):
    x = k.fresh()
    types = index_types[0] if len(set(index_types)) == 1 else ", ".join(index_types)
    k.emit(
        f"{x}, {k.fresh()} = load_view_tko {words} {v}[{', '.join(indices)}]{tail} : {view.type_text()}, {types} -> {tile(view.tile, view.array.t)}, token"
    )
    return x


def store_op(k, view, v, x, indices, index_types, words="weak", tail=""):
    types = index_types[0] if len(set(index_types)) == 1 else ", ".join(index_types)
    k.emit(
        f"{k.fresh()} = store_view_tko {words} {x}, {v}[{', '.join(indices)}]{tail} : {tile(view.tile, view.array.t)}, {view.type_text()}, {types} -> token"
    )


def load_case(name, array, view, tier="standard", what="", index_type="i32", tail="", extent_type="i64"):
    """Every tile of the index space is loaded by a block of its own and stored densely."""
    ops = ["load_view_tko", f"make_{view.kind}_view", "make_tensor_view"]
    case = Case("views", name, tier, ops, [array.t], what)
    k = Kernel(case)
    mem = array.contents(name)
    case.buffer(array.t, pack_bits(array.t, mem), 0)
    tv = array.emit(k, k.ptr_param("a", array.t) if not array.offset else _offset(k, array), extent_type)
    v = view.emit(k, tv)
    space = view.space()
    at = block_indices(k, space)
    if index_type != "i32":
        op = "exti" if INTS[index_type] > 32 else "trunci"
        at = [k.v(f"{op} {x}{' unsigned' if op == 'exti' else ''} : tile<i32> -> tile<{index_type}>") for x in at]
    x = load_op(k, view, v, at, [f"tile<{index_type}>"] * len(at), tail=tail)
    n = count(view.tile)
    base = k.v(f"muli {linear(k, space)}, {k.const('i32', n)} : tile<i32>")
    bits, free = [], []
    for block in coordinates(space):
        b, f = view.load(mem, block)
        bits += b
        free += f
    b = case.output(array.t, len(bits)) if array.t != "f4E2M1FN" else None
    if b is None:
        k.output("o", x, array.t, view.tile, bits, base)
        return k.finish()
    k.store(k.ptr_param("o", array.t), x, array.t, view.tile, base)
    e = case.results(
        b,
        array.t,
        bits,
        rule="exact" if array.t in F else "bits",
        strict="exact" if array.t in F else "bits",
        free=free,
    )
    if "free" in e and not view.pad:
        e["free_strict"] = True
    if view.pad and view.pad.endswith("inf") and not F[array.t].inf:
        case.expect["strict_only"] = True  # what infinite padding of a type without infinity is
    return k.finish()


def _offset(k, array):
    p = k.ptr_param("a", array.t)
    return k.v(f"offset {p}, {k.const('i32', array.offset)} : tile<ptr<{array.t}>>, tile<i32> -> tile<ptr<{array.t}>>")


def copy_case(name, source, target, tier="standard", what="", tail=""):
    """Each block loads a tile of one view and stores it through another of the same index space: no byte but the array's elements may change."""
    array, out = source.array, target.array
    case = Case("views", name, tier, ["load_view_tko", "store_view_tko", f"make_{target.kind}_view"], [array.t], what)
    k = Kernel(case)
    mem = array.contents(name)
    case.buffer(array.t, pack_bits(array.t, mem), 0)
    a = array.emit(k, k.ptr_param("a", array.t) if not array.offset else _offset(k, array), names="a")
    va = source.emit(k, a)
    before = Array(out.t, out.sizes, out.strides, out.offset).contents(name + " target")
    before += [0] * (out.length - len(before))
    b = case.output(out.t, out.length, before)
    p = k.ptr_param("o", out.t)
    if out.offset:
        p = k.v(f"offset {p}, {k.const('i32', out.offset)} : tile<ptr<{out.t}>>, tile<i32> -> tile<ptr<{out.t}>>")
    vo = target.emit(k, out.emit(k, p, names="o"))
    space = target.space()
    at = block_indices(k, space)
    x = load_op(k, source, va, at, ["tile<i32>"] * len(at))
    store_op(k, target, vo, x, at, ["tile<i32>"] * len(at), tail=tail)
    after = list(before)
    for block in coordinates(space):
        for e in coordinates(target.tile):
            s, d = array.at(source.coordinate(block, e)), out.at(target.coordinate(block, e))
            if d is not None:
                assert s is not None or source.pad, name
                after[d] = mem[s] if s is not None else padding_bits(array.t, source.pad)
    case.results(b, out.t, after, rule="exact" if out.t in F else "bits", strict="exact" if out.t in F else "bits")
    return k.finish()


SIZES1 = ((7, 4), (13, 8), (16, 16), (17, 1), (31, 32), (97, 16), (5, 64))
SIZES2 = (
    ((5, 7), (4, 4)),
    ((13, 11), (8, 4)),
    ((8, 8), (8, 8)),
    ((3, 17), (2, 16)),
    ((1, 23), (1, 8)),
    ((19, 1), (4, 1)),
    ((2, 2), (8, 8)),
    ((64, 3), (16, 4)),
)
SIZES3 = (((3, 5, 7), (2, 4, 4)), ((2, 3, 13), (1, 2, 8)), ((5, 1, 9), (4, 1, 2)))
FLOATS = tuple(t for t in F if t not in ("f4E2M1FN",))


def paddings():
    for t in list(INT) + list(F):
        for pad in PADDING if t in F else ("zero",):
            if t == "f4E2M1FN":
                yield (
                    load_case(
                        f"load.padding_{pad}.2d.{t}",
                        Array(t, (5, 6)),
                        View(Array(t, (5, 6)), (4, 4), pad=pad),
                        index_type="i32",
                    )
                    if pad == "zero"
                    else None
                )
                continue
            if not F.get(t) or F[t].signed or pad in ("zero",):
                array = Array(t, (13, 11), extra=3)
                yield load_case(
                    f"load.padding_{pad}.2d.{t}",
                    array,
                    View(array, (8, 4), pad=pad),
                    "smoke" if t == "f32" and pad != "pos_inf" or t == "i8" else "standard",
                )
                array = Array(t, (7,))
                yield load_case(f"load.padding_{pad}.1d.{t}", array, View(array, (8,), pad=pad))
        array = Array(t, (5, 7) if t != "f4E2M1FN" else (5, 8))
        if t != "f4E2M1FN":
            yield load_case(f"load.no_padding.2d.{t}", array, View(array, (4, 4)))


def sizes():
    for t in ("i32", "f16", "i8", "f64"):
        for n, s in SIZES1:
            array = Array(t, (n,))
            yield load_case(f"load.ragged.{n}_by_{s}.{t}", array, View(array, (s,), pad="zero"))
            yield copy_case(
                f"copy.ragged.{n}_by_{s}.{t}", View(Array(t, (n,)), (s,)), View(Array(t, (n,), extra=5), (s,))
            )
        for ns, ss in SIZES2 + SIZES3:
            array = Array(t, ns)
            yield load_case(
                f"load.ragged.{dims(ns)}_by_{dims(ss)}.{t}",
                array,
                View(array, ss, pad="zero"),
                "smoke" if t == "f16" and ns == (13, 11) else "standard",
            )
            yield copy_case(
                f"copy.ragged.{dims(ns)}_by_{dims(ss)}.{t}",
                View(Array(t, ns), ss),
                View(Array(t, ns), ss),
                "smoke" if t == "i8" and ns == (3, 5, 7) else "standard",
            )


def strides():
    """Gaps between rows, column-major, strides that skip, negative-free overlaps, an offset base; static and dynamic."""
    layouts = (
        ("row_gap", (5, 7), (16, 1), 0),
        ("column_major", (6, 5), (1, 6), 0),
        ("column_gap", (6, 5), (1, 11), 0),
        ("step2", (5, 7), (14, 2), 0),
        ("step3", (4, 6), (20, 3), 0),
        ("offset", (5, 7), (9, 1), 13),
        ("permuted3", (3, 4, 5), (5, 15, 1), 0),
        ("plane_gap", (2, 3, 5), (64, 9, 1), 2),
        ("huge_of_one", (1, 9), (1 << 40, 1), 0),
        ("row_of_one", (9, 1), (1, 1 << 33), 0),
    )
    for name, ns, ss, offset in layouts:
        shape = (4, 4) if len(ns) == 2 else (2, 2, 4)
        for t in ("i32", "f16", "i8", "f64"):
            for dynamic in ("static", "dynamic", "mixed"):
                ds = range(len(ns)) if dynamic == "dynamic" else (0,) if dynamic == "mixed" else ()
                dn = range(len(ns)) if dynamic == "dynamic" else (len(ns) - 1,) if dynamic == "mixed" else ()
                make = lambda: Array(t, ns, ss, offset, dn, ds)
                array = make()
                yield load_case(
                    f"load.{name}.{dynamic}.{t}",
                    array,
                    View(array, shape, pad="zero"),
                    (
                        "smoke"
                        if t == "i32" and dynamic == "mixed" and name in ("row_gap", "column_major", "offset", "step3")
                        else "standard"
                    ),
                )
                if t in ("i32", "f16"):
                    yield copy_case(f"copy.{name}.{dynamic}.{t}", View(make(), shape), View(make(), shape))
                if name in ("row_gap", "column_major") and t == "i32":
                    yield copy_case(
                        f"copy.{name}_to_rows.{dynamic}.{t}", View(make(), shape), View(Array(t, ns), shape)
                    )
    for index_type in ("i8", "i16", "i32"):
        array = Array("f32", (5, 7), (8, 1), 0, (0, 1), (0, 1))
        yield load_case(
            f"load.extents_{index_type}.f32", array, View(array, (4, 4), pad="zero"), extent_type=index_type
        )


def dim_maps():
    for t in ("i32", "f16", "i8"):
        for ns, shape in (((6, 10), (4, 8)), ((7, 5), (2, 4)), ((3, 4, 6), (2, 4, 2))):
            for m in itertools.permutations(range(len(ns))):
                array = Array(t, ns)
                view = View(array, shape, pad="zero", dim_map=m)
                yield load_case(
                    f"load.dim_map_{''.join(map(str, m))}.{dims(ns)}.{t}",
                    array,
                    view,
                    "smoke" if m == (1, 0) and t == "f16" and shape == (2, 4) else "standard",
                )
                yield copy_case(
                    f"copy.dim_map_{''.join(map(str, m))}.{dims(ns)}.{t}",
                    View(Array(t, ns), shape, dim_map=m),
                    View(Array(t, ns), shape, dim_map=m),
                )
        yield copy_case(
            f"copy.transpose.{t}", View(Array(t, (8, 4)), (2, 4), dim_map=(1, 0)), View(Array(t, (4, 8)), (2, 4))
        )


def strided_views():
    for t in ("i32", "f16", "f32", "i8", "f64"):
        for ns, shape, step in (
            ((16,), (4,), (2,)),
            ((17,), (8,), (3,)),
            ((10,), (2,), (5,)),
            ((9, 7), (4, 2), (1, 1)),
            ((9, 7), (4, 2), (3, 2)),
            ((8, 10), (2, 4), (4, 3)),
            ((6, 6), (4, 4), (2, 6)),
            ((3, 5, 6), (2, 2, 4), (1, 3, 2)),
        ):
            for pad in ("zero",) + (("nan", "neg_inf") if t in F else ()):
                array = Array(t, ns)
                yield load_case(
                    f"load.strided_{dims(step)}.{dims(ns)}_by_{dims(shape)}.{pad}.{t}",
                    array,
                    View(array, shape, "strided", pad, step),
                    "smoke" if t == "f32" and step == (3, 2) and pad != "neg_inf" else "standard",
                )
            yield copy_case(
                f"copy.strided_{dims(step)}.{dims(ns)}_by_{dims(shape)}.{t}",
                View(Array(t, ns), shape, "strided", None, step),
                View(Array(t, ns), shape, "strided", None, step),
            )
        array = Array(t, (12, 7))
        yield load_case(f"load.strided_mapped.{t}", array, View(array, (4, 2), "strided", "zero", (3, 5), (1, 0)))
        array = Array(t, (16, 9), (12, 1))
        yield load_case(f"load.strided_gap.{t}", array, View(array, (4, 4), "strided", "zero", (4, 3)))


def gather_case(
    name, array, shape, sparse, rows, starts, pad, store=False, tier="standard", index_type="i32", row_type=None
):
    """One block; the sparse index is an array in memory, the others are parameters."""
    view = View(array, shape, "gather_scatter", pad, sparse=sparse)
    row_type = row_type or index_type
    case = Case(
        "views", name, tier, ["make_gather_scatter_view", "store_view_tko" if store else "load_view_tko"], [array.t]
    )
    k = Kernel(case)
    mask = (1 << INTS[row_type]) - 1
    rows_v = k.input("r", row_type, [r & mask for r in rows], [shape[sparse]])
    at, types = [], []
    for d in range(len(shape)):
        at.append(rows_v if d == sparse else k.scalar(f"s{d}", index_type, starts[d]))
        types.append(tile([shape[sparse]], row_type) if d == sparse else f"tile<{index_type}>")
    numbers = [rows if d == sparse else starts[d] for d in range(len(shape))]
    mem = array.contents(name)
    types_text = ", ".join(types)
    if not store:
        case.buffer(array.t, pack_bits(array.t, mem), 0)
        v = view.emit(k, array.emit(k, k.ptr_param("a", array.t)))
        x = k.fresh()
        k.emit(
            f"{x}, {k.fresh()} = load_view_tko weak {v}[{', '.join(at)}] : {view.type_text()}, {types_text} -> {tile(shape, array.t)}, token"
        )
        bits, free = view.load(mem, numbers)
        e = k.output(
            "o",
            x,
            array.t,
            shape,
            bits,
            rule="exact" if array.t in F else "bits",
            strict="exact" if array.t in F else "bits",
            free=free,
        )
        if "free" in e:
            e["free_strict"] = True
        return k.finish()
    rng = Rng(name)
    data = [values.random_bits(array.t, rng) for _ in range(count(shape))]
    x = k.input("x", array.t, data, shape)
    b = case.output(array.t, array.length, mem)
    v = view.emit(k, array.emit(k, k.ptr_param("o", array.t)))
    k.emit(
        f"{k.fresh()} = store_view_tko weak {x}, {v}[{', '.join(at)}] : {tile(shape, array.t)}, {view.type_text()}, {types_text} -> token"
    )
    after = list(mem)
    for e in coordinates(shape):
        p = array.at(view.coordinate(numbers, e))
        if p is not None:
            after[p] = data[index(shape, e)]
    case.results(b, array.t, after)
    return k.finish()


def gathers():
    for t in ("i32", "f16", "f32", "i8", "i64", "bf16"):
        pads = ("zero", "nan") if t in F else ("zero",)
        for pad in pads:
            yield gather_case(
                f"gather.rows.{pad}.{t}",
                Array(t, (11, 9)),
                (8, 4),
                0,
                [3, 0, 10, 3, 7, 1, 1, 9],
                [None, 2],
                pad,
                tier="smoke" if t == "f32" else "standard",
            )
            yield gather_case(
                f"gather.rows_beyond.{pad}.{t}",
                Array(t, (11, 9)),
                (8, 4),
                0,
                [3, 11, 10, 200, 7, 1, 2**31 - 1, 9],
                [None, 0],
                pad,
            )
            yield gather_case(
                f"gather.columns_beyond.{pad}.{t}", Array(t, (11, 9)), (4, 8), 0, [5, 0, 2, 10], [None, 5], pad
            )
            yield gather_case(
                f"gather.dim1.{pad}.{t}", Array(t, (6, 13)), (4, 8), 1, [12, 0, 5, 5, 3, 2, 9, 1], [1, None], pad
            )
            yield gather_case(
                f"gather.strided.{pad}.{t}", Array(t, (7, 5), (16, 2)), (4, 4), 0, [6, 1, 0, 3], [None, 1], pad
            )
            yield gather_case(
                f"gather.three.{pad}.{t}", Array(t, (3, 7, 4)), (2, 4, 4), 1, [6, 2, 0, 5], [1, None, 0], pad
            )
            yield gather_case(
                f"gather.one_d.{pad}.{t}", Array(t, (31,)), (8,), 0, [30, 1, 0, 7, 7, 31, 12, 29], [None], pad
            )
        yield gather_case(f"gather.no_padding.{t}", Array(t, (11, 9)), (4, 4), 0, [3, 0, 10, 5], [None, 4], None)
        for row_type in ("i8", "i16", "i64"):
            yield gather_case(
                f"gather.index_{row_type}.{t}",
                Array(t, (11, 9)),
                (4, 4),
                0,
                [3, 0, 10, 5],
                [None, 3],
                "zero",
                row_type=row_type,
            )
        yield gather_case(
            f"scatter.rows.{t}",
            Array(t, (11, 9)),
            (8, 4),
            0,
            [3, 0, 10, 2, 7, 1, 5, 9],
            [None, 2],
            None,
            True,
            tier="smoke" if t == "f16" else "standard",
        )
        yield gather_case(
            f"scatter.rows_beyond.{t}",
            Array(t, (11, 9)),
            (8, 4),
            0,
            [3, 11, 10, 200, 7, 1, 2**31 - 1, 9],
            [None, 7],
            None,
            True,
        )
        yield gather_case(
            f"scatter.dim1.{t}", Array(t, (6, 13)), (4, 8), 1, [12, 0, 5, 6, 3, 2, 9, 1], [2, None], None, True
        )
        yield gather_case(
            f"scatter.strided.{t}", Array(t, (7, 5), (16, 2)), (4, 4), 0, [6, 1, 0, 3], [None, 1], None, True
        )


def index_types():
    """Indices are unsigned at every width: an i8 index of 200 is tile 200."""
    for it in ("i8", "i16", "i32", "i64"):
        array = Array("f32", (250, 3))
        yield load_case(
            f"load.index_{it}.all",
            array,
            View(array, (1, 4), pad="zero"),
            "smoke" if it == "i8" else "standard",
            index_type=it,
        )
    for words in ("relaxed device", "acquire sys", "relaxed tl_blk", "acquire device", "relaxed sys"):
        case = Case("views", f"load.ordering.{words.replace(' ', '_')}", "standard", ["load_view_tko"], ["i32"])
        k = Kernel(case)
        array = Array("i32", (8, 8))
        view = View(array, (4, 4))
        mem = array.contents(words)
        case.buffer("i32", pack_bits("i32", mem), 0)
        v = view.emit(k, array.emit(k, k.ptr_param("a", "i32")))
        one = k.const("i32", 1)
        x = load_op(k, view, v, [one, one], ["tile<i32>"] * 2, words)
        k.output("o", x, "i32", [4, 4], view.load(mem, (1, 1))[0])
        yield k.finish()
    for words in ("relaxed device", "release sys", "relaxed tl_blk", "release device"):
        case = Case("views", f"store.ordering.{words.replace(' ', '_')}", "standard", ["store_view_tko"], ["i32"])
        k = Kernel(case)
        array = Array("i32", (8, 8))
        view = View(array, (4, 4))
        x = k.input("x", "i32", list(range(16)), [4, 4])
        mem = array.contents(words)
        b = case.output("i32", 64, mem)
        v = view.emit(k, array.emit(k, k.ptr_param("o", "i32")))
        one = k.const("i32", 1)
        store_op(k, view, v, x, [one, one], ["tile<i32>"] * 2, words)
        after = list(mem)
        for e in coordinates([4, 4]):
            after[array.at(view.coordinate((1, 1), e))] = index([4, 4], e)
        case.results(b, "i32", after)
        yield k.finish()


def in_bounds():
    """The promise changes nothing where it holds."""
    for flags in ("[true, true]", "[true, false]", "[false, true]", "[false, false]"):
        name = flags.strip("[]").replace(", ", "_")
        array = Array("f32", (8, 12))
        yield load_case(f"load.inbounds_{name}", array, View(array, (4, 4), pad="zero"), tail=f" inbounds = {flags}")
        yield copy_case(
            f"copy.inbounds_{name}",
            View(Array("f32", (8, 12)), (4, 4)),
            View(Array("f32", (8, 12)), (4, 4)),
            tail=f" inbounds = {flags}",
        )


def shape_queries():
    """get_tensor_shape and get_index_space_shape, by static and dynamic extents, of every kind of view."""
    for it in ("i8", "i16", "i32", "i64"):
        for ns, shape, step, m in (
            ((13, 7), (4, 4), None, None),
            ((100, 3, 17), (8, 2, 16), None, (2, 0, 1)),
            ((64, 16), (4, 2), (4, 3), (1, 0)),
            ((5,), (8,), (3,), None),
            ((31, 9), (4, 4), (1, 5), None),
        ):
            for dynamic in (False, True):
                array = Array("f32", ns, None, 0, range(len(ns)) if dynamic else (), ())
                view = View(array, shape, "strided" if step else "partition", None, step, m)
                name = (
                    f"shape_of.{dims(ns)}.{view.kind}{'.mapped' if m else ''}.{'dynamic' if dynamic else 'static'}.{it}"
                )
                case = Case(
                    "views",
                    name,
                    "smoke" if it == "i32" and m == (1, 0) else "standard",
                    ["get_tensor_shape", "get_index_space_shape"],
                    [it],
                )
                k = Kernel(case)
                case.input("f32", [0] * 4)
                tv = array.emit(k, k.ptr_param("a", "f32"))
                v = view.emit(k, tv)
                r = len(ns)
                k.emit(f"%sh:{r} = get_tensor_shape {tv} : {array.type_text()} -> tile<{it}>")
                k.emit(f"%ix:{r} = get_index_space_shape {v} : {view.type_text()} -> tile<{it}>")
                for i in range(r):
                    k.output(f"s{i}", f"%sh#{i}", it, [], [ns[i]])
                    k.output(f"x{i}", f"%ix#{i}", it, [], [view.space()[i]])
                yield k.finish()
    for sparse in (0, 1):
        array = Array("i32", (13, 7))
        view = View(array, (4, 2), "gather_scatter", None, sparse=sparse)
        case = Case("views", f"shape_of.gather.{sparse}", "standard", ["get_index_space_shape"], ["i32"])
        k = Kernel(case)
        case.input("i32", [0])
        v = view.emit(k, array.emit(k, k.ptr_param("a", "i32")))
        k.emit(f"%ix:2 = get_index_space_shape {v} : {view.type_text()} -> tile<i32>")
        for i in range(2):  # one compiler's rule; the text does not say
            k.output(f"x{i}", f"%ix#{i}", "i32", [], [array.sizes[i]], free=[True])
        yield k.finish()


def views():
    for part in (paddings, sizes, strides, dim_maps, strided_views, gathers, index_types, in_bounds, shape_queries):
        yield from (c for c in part() if c is not None)


FAMILIES = {"views": views}
