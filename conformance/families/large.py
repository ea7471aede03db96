"""Arrays of more than 2^31 elements, of which a few pieces are looked at: places that do not fit into 32 bits, in every way to say them."""

from families.case import Case, pack_bits
from families.kernel import Kernel, tile
from families.views import Array, View
from oracle import values
from oracle.formats import memory_bits
from oracle.rng import Rng

N = 16  # elements of a tile
SIZE = (1 << 31) + 64


class Large:
    """A case over one such array: pieces of N elements, of which some are read and others written."""

    def __init__(self, name, t, elements, read, write, ops):
        self.case, self.t, self.rng = Case("large", f"{name}.{t}", "standard", ops, [t]), t, Rng(f"large {name}")
        self.width = memory_bits(t) // 8
        places = sorted([*read, *write])
        self.data = {p: [values.random_bits(t, self.rng) for _ in range(N)] for p in places}
        self.buffer = self.case.pieces(t, elements * self.width, [(p * self.width, pack_bits(t, self.data[p])) for p in places])
        self.k = Kernel(self.case)
        self.p = self.k.ptr_param("p", t)
        # A tile goes from the first place of `read` to the first of `write`, and so on.
        for source, target in zip(read, write):
            self.case.results(self.buffer, t, self.data[source], first=places.index(target) * N * self.width)

    def finish(self):
        return self.k.finish()


def by_view(name, t, sizes, moves, dynamic, index="i32", traversal=None):
    """Tiles of N elements along the last dimension, at (row, column of tiles) or (tile)."""
    strides, step = [], 1
    for d in reversed(sizes):
        strides.insert(0, step)
        step *= d
    place = lambda at: sum(i * s for i, s in zip(at[:-1], strides)) + at[-1] * (traversal or N)
    large = Large(name, t, step, [place(a) for a, _ in moves], [place(b) for _, b in moves], ["load_view_tko", "store_view_tko"])
    k = large.k
    d = range(len(sizes)) if dynamic else ()
    array = Array(t, sizes, None, 0, d, tuple(d)[:-1])
    shape = [1] * (len(sizes) - 1) + [N]
    v = View(array, shape, **({"kind": "strided", "traversal": [1] * (len(sizes) - 1) + [traversal]} if traversal else {}))
    w = v.emit(k, array.emit(k, large.p))
    T = tile(shape, t)
    for n, (source, target) in enumerate(moves):
        a, b = (", ".join(k.scalar(f"{c}{n}_{i}", index, x) for i, x in enumerate(at)) for c, at in (("a", source), ("b", target)))
        x = k.fresh()
        k.emit(f"{x}, {k.fresh()} = load_view_tko weak {w}[{a}] : {v.type_text()}, tile<{index}> -> {T}, token")
        k.emit(f"{k.fresh()} = store_view_tko weak {x}, {w}[{b}] : {T}, {v.type_text()}, tile<{index}> -> token")
    return large.finish()


def by_pointer(name, t, elements, source, target, index):
    """offset by elements: the product with their size does not fit into 32 bits either."""
    large = Large(name, t, elements, [source], [target], ["offset", "load_ptr_tko", "store_ptr_tko"])
    k, P, I = large.k, tile([N], f"ptr<{t}>"), tile([N], index)
    step = k.v(f"iota : {I}")

    def addresses(name, at):
        i = k.v(f"addi {step}, {k.splat(k.scalar(name, index, at), index, [N])} : {I}")
        return k.v(f"offset {k.splat(large.p, f'ptr<{t}>', [N])}, {i} : {P}, {I} -> {P}")

    x = k.fresh()
    k.emit(f"{x}, {k.fresh()} = load_ptr_tko weak {addresses('a', source)} : {P} -> {tile([N], t)}, token")
    k.emit(f"{k.fresh()} = store_ptr_tko weak {addresses('b', target)}, {x} : {P}, {tile([N], t)} -> token")
    return large.finish()


def gather(t, rows, columns, picks):
    """Rows far apart by a gather view, stored into the first rows."""
    reads, writes = [r * columns for r in picks], [i * columns for i in range(len(picks))]
    large = Large("gather", t, rows * columns, reads, writes, ["make_gather_scatter_view", "load_view_tko"])
    k, count = large.k, len(picks)
    array = Array(t, (rows, columns))
    v = View(array, (count, N), "gather_scatter", sparse=0)
    w = v.emit(k, array.emit(k, large.p))
    ix = k.input("i", "i32", picks + list(range(count)), [2, count])
    first, zero = k.const("i32", 0), k.const("i32", 0)
    two, one, flat = (tile(shape, "i32") for shape in ([2, count], [1, count], [count]))

    def row(n):
        part = k.v(f"extract {ix}[{n}, {first}] : {two} -> {one}")
        return k.v(f"reshape {part} : {one} -> {flat}")

    T, I = tile([count, N], t), tile([count], "i32")
    x = k.fresh()
    k.emit(f"{x}, {k.fresh()} = load_view_tko weak {w}[{row(first)}, {zero}] : {v.type_text()}, {I}, tile<i32> -> {T}, token")
    k.emit(f"{k.fresh()} = store_view_tko weak {x}, {w}[{row(k.const('i32', 1))}, {zero}] : {T}, {v.type_text()}, {I}, tile<i32> -> token")
    return large.finish()


def large():
    last = SIZE // N - 1
    for dynamic in (False, True):
        how = "dynamic" if dynamic else "static"
        yield by_view(f"view.{how}", "i8", (SIZE,), [((last,), (0,)), ((1,), (last - 1,))], dynamic)
        yield by_view(f"rows.{how}", "i8", (SIZE >> 6, 64), [((SIZE // 64 - 1, 3), (0, 1)), ((2, 0), ((1 << 25), 2))], dynamic)
    yield by_view("view.i64_index", "i8", (SIZE,), [((last,), (2,))], True, "i64")
    yield by_view("planes", "i8", (3, 1 << 15, 1 << 15), [((2, 0, 5), (0, 7, 0)), ((0, 0, 1), (2, (1 << 15) - 1, (1 << 11) - 1))], True)
    yield by_view("two_bytes", "f16", (SIZE,), [((last,), (0,)), ((3,), (last - 2,))], True)
    yield by_view("strided", "i8", (SIZE,), [((SIZE // 8 - 2,), (0,)), ((9,), (SIZE // 8 - 7,))], False, traversal=8)
    yield by_pointer("pointer.i64", "i8", SIZE, SIZE - N, 0, "i64")
    yield by_pointer("pointer.i64_to", "i8", SIZE, 64, (1 << 31) + 7, "i64")
    yield by_pointer("pointer.i32_of_f64", "f64", (1 << 28) + 64, 1 << 28, 32, "i32")
    yield by_pointer("pointer.i32_to_f64", "f64", (1 << 28) + 64, 16, (1 << 28) + 3, "i32")
    yield gather("i8", SIZE // 64, 64, [1 << 25, (1 << 25) - 3, 77, (1 << 24) + 1])


FAMILIES = {"large": large}
