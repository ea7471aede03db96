"""Loads and stores through pointer tiles: masks, padding, orderings, scopes, address arithmetic; local memory; tokens."""

from families.case import Case, pack_bits
from families.kernel import Kernel, tile
from oracle import values
from oracle.formats import F, INT, INTS, memory_bits
from oracle.rng import Rng

TYPES = [t for t in list(INT) + list(F) if t != "f4E2M1FN"]
LOADS = ("weak", "relaxed tl_blk", "relaxed device", "relaxed sys", "acquire tl_blk", "acquire device", "acquire sys")
STORES = ("weak", "relaxed tl_blk", "relaxed device", "relaxed sys", "release tl_blk", "release device", "release sys")


def data(t, n, name):
    rng = Rng(f"{name} {t}")
    return [values.random_bits(t, rng) for _ in range(n)]


def pointer_tile(k, p, t, offsets_value, n, offset_type="i32", shape=None):
    shape = shape or [n]
    ps = k.splat(p, f"ptr<{t}>", shape)
    return k.v(
        f"offset {ps}, {offsets_value} : {tile(shape, f'ptr<{t}>')}, {tile(shape, offset_type)} -> {tile(shape, f'ptr<{t}>')}"
    )


def masked_load(t, n, words, kind, tier):
    """kind: padding, no_padding (lanes unspecified), all_off, all_on."""
    name = f"load.{words.replace(' ', '_')}.{kind}.{n}.{t}"
    case = Case("pointers", name, tier, ["load_ptr_tko"], [t])
    k = Kernel(case)
    bits, pad = data(t, n, "load"), data(t, n, "pad")
    rng = Rng(name)
    mask = [{"all_off": 0, "all_on": 1}.get(kind, rng.bits(1)) for _ in range(n)]
    case.input(t, bits)
    p = k.ptr_param("a", t)
    m = k.input("m", "i1", mask, [n])
    x = k.input("p", t, pad, [n]) if kind != "no_padding" else None
    ps = pointer_tile(k, p, t, k.v(f"iota : tile<{n}xi32>"), n)
    r = k.fresh()
    extra, types = (f", {m}, {x}", f", {tile([n], 'i1')}, {tile([n], t)}") if x else (f", {m}", f", {tile([n], 'i1')}")
    k.emit(
        f"{r}, {k.fresh()} = load_ptr_tko {words} {ps}{extra} : {tile([n], f'ptr<{t}>')}{types} -> {tile([n], t)}, token"
    )
    out = [b if on else (q if x else 0) for b, on, q in zip(bits, mask, pad)]
    k.output("o", r, t, [n], out, free=[not on for on in mask] if not x else None)
    return k.finish()


def masked_store(t, n, words, tier):
    name = f"store.{words.replace(' ', '_')}.masked.{n}.{t}"
    case = Case("pointers", name, tier, ["store_ptr_tko"], [t])
    k = Kernel(case)
    bits, before, rng = data(t, n, "store"), data(t, n, "before"), Rng(name)
    mask = [rng.bits(1) for _ in range(n)]
    x, m = k.input("a", t, bits, [n]), k.input("m", "i1", mask, [n])
    b = case.output(t, n, before)
    ps = pointer_tile(k, k.ptr_param("o", t), t, k.v(f"iota : tile<{n}xi32>"), n)
    k.emit(
        f"{k.fresh()} = store_ptr_tko {words} {ps}, {x}, {m} : {tile([n], f'ptr<{t}>')}, {tile([n], t)}, {tile([n], 'i1')} -> token"
    )
    case.results(b, t, [v if on else w for v, on, w in zip(bits, mask, before)])
    return k.finish()


def loads_and_stores():
    for t in TYPES:
        for kind in ("padding", "no_padding", "all_off", "all_on"):
            yield masked_load(t, 32, "weak", kind, "smoke" if t in ("f16", "i1") and kind == "padding" else "standard")
        yield masked_store(t, 32, "weak", "smoke" if t in ("f16", "i8") else "standard")
    for t in ("i32", "f32", "i64", "f16"):
        for words in LOADS[1:]:
            yield masked_load(t, 16, words, "padding", "standard")
        for words in STORES[1:]:
            yield masked_store(t, 16, words, "standard")
    for t in ("f32", "i8"):
        for n in (1, 2, 8, 256, 1024):
            yield masked_load(t, n, "weak", "padding", "standard")
            yield masked_store(t, n, "weak", "standard")


def gathers():
    """Loaded indices, permuted and repeated; scatter to distinct places; offsets of every width, which are signed."""
    for t in ("i32", "f16", "i8", "f64", "i1", "tf32"):
        for it in ("i8", "i16", "i32", "i64"):
            n, size = 32, 64
            rng = Rng(f"gather {t} {it}")
            at = [rng.between(-20, 40) for _ in range(n)]
            bits = data(t, size, "gather")
            case = Case(
                "pointers",
                f"gather.{it}.{t}",
                "smoke" if (t, it) == ("i32", "i8") else "standard",
                ["load_ptr_tko", "offset"],
                [t, it],
            )
            k = Kernel(case)
            case.buffer(
                t, pack_bits(t, bits), 20 * memory_bits(t) // 8
            )  # the pointer is at element 20: offsets below 0 are inside
            p = k.ptr_param("a", t)
            ix = k.input("i", it, [v & ((1 << INTS[it]) - 1) for v in at], [n])
            ps = pointer_tile(k, p, t, ix, n, it)
            x = k.fresh()
            k.emit(f"{x}, {k.fresh()} = load_ptr_tko weak {ps} : {tile([n], f'ptr<{t}>')} -> {tile([n], t)}, token")
            k.output("o", x, t, [n], [bits[20 + v] for v in at])
            yield k.finish()
        rng = Rng(f"scatter {t}")
        places = rng.shuffled(range(64))[:32]
        before, bits = data(t, 64, "scatter before"), data(t, 32, "scatter")
        case = Case("pointers", f"scatter.{t}", "standard", ["store_ptr_tko", "offset"], [t])
        k = Kernel(case)
        ix, x = k.input("i", "i32", places, [4, 8]), k.input("a", t, bits, [4, 8])
        b = case.output(t, 64, before)
        ps = pointer_tile(k, k.ptr_param("o", t), t, ix, 32, "i32", [4, 8])
        k.emit(f"{k.fresh()} = store_ptr_tko weak {ps}, {x} : {tile([4, 8], f'ptr<{t}>')}, {tile([4, 8], t)} -> token")
        after = list(before)
        for p, v in zip(places, bits):
            after[p] = v
        case.results(b, t, after)
        yield k.finish()
    # an offset of i1 reads 0 or -1
    case = Case("pointers", "gather.i1_is_minus_one", "standard", ["offset"], ["i1"])
    k = Kernel(case)
    case.buffer("i32", pack_bits("i32", [11, 22]), 4)
    p = k.ptr_param("a", "i32")
    ix = k.input("i", "i1", [0, 1, 1, 0], [4])
    x = k.fresh()
    k.emit(
        f"{x}, {k.fresh()} = load_ptr_tko weak {pointer_tile(k, p, 'i32', ix, 4, 'i1')} : tile<4xptr<i32>> -> tile<4xi32>, token"
    )
    k.output("o", x, "i32", [4], [22, 11, 11, 22])
    yield k.finish()
    # one place written by many lanes: any of the values may win
    case = Case("pointers", "scatter.one_place", "standard", ["store_ptr_tko"], ["i32"])
    k = Kernel(case)
    x = k.input("a", "i32", [5, 6, 7, 8], [4])
    b = case.output("i32", 1)
    ps = k.splat(k.ptr_param("o", "i32"), "ptr<i32>", [4])
    k.emit(f"{k.fresh()} = store_ptr_tko weak {ps}, {x} : tile<4xptr<i32>>, tile<4xi32> -> token")
    e = case.results(b, "i32", [5])
    for v in (6, 7, 8):
        case.alternative(e, [v])
    yield k.finish()


def bytes_of_i1():
    """Any byte but 0 loads as 1; a store writes 0 or 1."""
    raw = bytes([0, 1, 2, 255, 128, 0, 64, 3])
    case = Case("pointers", "i1.bytes", "smoke", ["load_ptr_tko", "store_ptr_tko"], ["i1"])
    k = Kernel(case)
    case.buffer("i1", raw)
    x = k.load(k.ptr_param("a", "i1"), "i1", [8])
    y = k.v(f"exti {x} unsigned : tile<8xi1> -> tile<8xi32>")
    z = k.v(f"exti {x} signed : tile<8xi1> -> tile<8xi8>")
    on = [1 if v else 0 for v in raw]
    k.output("o", x, "i1", [8], on)
    k.output("p", y, "i32", [8], on)
    k.output("q", z, "i8", [8], [255 * v for v in on])
    yield k.finish()


def arithmetic():
    """offset in steps, of 64 bits, of strided addresses from loaded rows (a row stride times a loaded index)."""
    for stride in (1, 3, 17, 64):
        rows, columns = [5, 0, 7, 2, 2, 6, 1, 3], 8
        bits = data("f16", 7 * stride + columns, f"rows {stride}")
        case = Case("pointers", f"rows.stride_{stride}", "standard", ["offset", "load_ptr_tko"], ["f16"])
        k = Kernel(case)
        case.input("f16", bits)
        p = k.ptr_param("a", "f16")
        r = k.input("r", "i32", rows, [8, 1])
        s = k.scalar("s", "i32", stride)
        r = k.v(f"muli {r}, {k.splat(s, 'i32', [8, 1])} : tile<8x1xi32>")
        r = k.v(f"broadcast {r} : tile<8x1xi32> -> tile<8x{columns}xi32>")
        i = k.v(f"iota : tile<{columns}xi32>")
        i = k.v(f"reshape {i} : tile<{columns}xi32> -> tile<1x{columns}xi32>")
        i = k.v(f"broadcast {i} : tile<1x{columns}xi32> -> tile<8x{columns}xi32>")
        at = k.v(f"addi {r}, {i} : tile<8x{columns}xi32>")
        ps = pointer_tile(k, p, "f16", at, 0, "i32", [8, columns])
        x = k.fresh()
        k.emit(
            f"{x}, {k.fresh()} = load_ptr_tko weak {ps} : tile<8x{columns}xptr<f16>> -> tile<8x{columns}xf16>, token"
        )
        k.output("o", x, "f16", [8, columns], [bits[q * stride + c] for q in rows for c in range(columns)])
        yield k.finish()
    case = Case("pointers", "offset.steps_cancel", "standard", ["offset"], ["i64"])
    k = Kernel(case)
    bits = data("i32", 8, "steps")
    case.input("i32", bits)
    p = k.ptr_param("a", "i32")
    far, back = k.scalar("far", "i64", 1 << 40), k.scalar("back", "i64", (-(1 << 40) + 3) & (1 << 64) - 1)
    q = k.v(f"offset {p}, {far} : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>>")
    q = k.v(f"offset {q}, {back} : tile<ptr<i32>>, tile<i64> -> tile<ptr<i32>>")
    k.output("o", k.load(q, "i32", []), "i32", [], [bits[3]])
    yield k.finish()
    # selected pointers, pointers carried by a loop
    case = Case("pointers", "select_pointers", "standard", ["select", "load_ptr_tko"], ["i32"])
    k = Kernel(case)
    a, b = data("i32", 8, "sel a"), data("i32", 8, "sel b")
    case.input("i32", a)
    pa = k.ptr_param("a", "i32")
    case.input("i32", b)
    pb = k.ptr_param("b", "i32")
    mask = [1, 0, 0, 1, 1, 1, 0, 0]
    m = k.input("m", "i1", mask, [8])
    i = k.v("iota : tile<8xi32>")
    s = k.v(
        f"select {m}, {pointer_tile(k, pa, 'i32', i, 8)}, {pointer_tile(k, pb, 'i32', i, 8)} : tile<8xi1>, tile<8xptr<i32>>"
    )
    x = k.fresh()
    k.emit(f"{x}, {k.fresh()} = load_ptr_tko weak {s} : tile<8xptr<i32>> -> tile<8xi32>, token")
    k.output("o", x, "i32", [8], [p if on else q for p, q, on in zip(a, b, mask)])
    yield k.finish()


def local_memory():
    for t in TYPES:
        n = 16
        bits = data(t, n, "local")
        case = Case("pointers", f"alloca.{t}", "smoke" if t == "f32" else "standard", ["alloca"], [t])
        k = Kernel(case)
        x = k.input("a", t, bits, [n])
        size = max(1, memory_bits(t) // 8)
        p = k.v(f"alloca num_elem = {n}, alignment = {max(size, 4)} : tile<ptr<{t}>>")
        ps = pointer_tile(k, p, t, k.v(f"iota : tile<{n}xi32>"), n)
        k.emit(f"%t1 = store_ptr_tko weak {ps}, {x} : {tile([n], f'ptr<{t}>')}, {tile([n], t)} -> token")
        y = k.fresh()
        k.emit(f"{y}, %t2 = load_ptr_tko weak {ps} token=%t1 : {tile([n], f'ptr<{t}>')} -> {tile([n], t)}, token")
        k.output("o", y, t, [n], bits)
        yield k.finish()
    # each block has memory of its own
    case = Case("pointers", "alloca.blocks", "standard", ["alloca"], ["i32"])
    case.grid = [64, 1, 1]
    k = Kernel(case)
    b = k.block()
    p = k.v("alloca num_elem = 1, alignment = 4 : tile<ptr<i32>>")
    k.emit(f"%t1 = store_ptr_tko weak {p}, {b} : tile<ptr<i32>>, tile<i32> -> token")
    x = k.fresh()
    k.emit(f"{x}, %t2 = load_ptr_tko weak {p} token=%t1 : tile<ptr<i32>> -> tile<i32>, token")
    k.output("o", x, "i32", [], list(range(64)), b)
    yield k.finish()
    # alignment of what is given out
    for align in (1, 16, 64, 256):
        case = Case("pointers", f"alloca.alignment_{align}", "standard", ["alloca", "ptr_to_int"], ["i8"])
        k = Kernel(case)
        k.v("alloca num_elem = 3, alignment = 1 : tile<ptr<i8>>")
        p = k.v(f"alloca num_elem = 5, alignment = {align} : tile<ptr<i8>>")
        a = k.v(f"ptr_to_int {p} : tile<ptr<i8>> -> tile<i64>")
        k.output("o", k.v(f"andi {a}, {k.const('i64', align - 1)} : tile<i64>"), "i64", [], [0])
        yield k.finish()


def tokens():
    """Chains that fix an order: store, load, overwrite of one place; joined tokens; through if, for and loop."""
    for words in (("weak", "weak"), ("release device", "acquire device"), ("relaxed sys", "relaxed sys")):
        for n in (1, 16):
            case = Case(
                "tokens",
                f"store_load_store.{words[0].replace(' ', '_')}.{n}",
                "smoke" if words[0] == "weak" and n == 16 else "standard",
                ["store_ptr_tko", "load_ptr_tko"],
                ["i32"],
            )
            k = Kernel(case)
            a, b = data("i32", n, "chain a"), data("i32", n, "chain b")
            x, y = k.input("a", "i32", a, [n]), k.input("b", "i32", b, [n])
            m = case.output("i32", n)
            p = k.ptr_param("m", "i32")
            ps = pointer_tile(k, p, "i32", k.v(f"iota : tile<{n}xi32>"), n)
            T = tile([n], "ptr<i32>")
            k.emit(f"%t1 = store_ptr_tko {words[0]} {ps}, {x} : {T}, {tile([n], 'i32')} -> token")
            k.emit(f"%x1, %t2 = load_ptr_tko {words[1]} {ps} token=%t1 : {T} -> {tile([n], 'i32')}, token")
            k.emit(f"%t3 = store_ptr_tko {words[0]} {ps}, {y} token=%t2 : {T}, {tile([n], 'i32')} -> token")
            k.emit(f"%x2, %t4 = load_ptr_tko {words[1]} {ps} token=%t3 : {T} -> {tile([n], 'i32')}, token")
            k.output("o", "%x1", "i32", [n], a)
            k.output("p", "%x2", "i32", [n], b)
            case.results(m, "i32", b)
            yield k.finish()
    case = Case("tokens", "join", "smoke", ["join_tokens", "make_token"], ["i32"])
    k = Kernel(case)
    b = case.output("i32", 4, [1, 2, 3, 4])
    p = k.ptr_param("m", "i32")
    one = k.const("i32", 1)
    q = k.v(f"offset {p}, {one} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
    k.emit("%t0 = make_token : token")
    k.emit(f"%t1 = store_ptr_tko weak {p}, {k.const('i32', 100)} token=%t0 : tile<ptr<i32>>, tile<i32> -> token")
    k.emit(f"%t2 = store_ptr_tko weak {q}, {k.const('i32', 200)} token=%t0 : tile<ptr<i32>>, tile<i32> -> token")
    k.emit("%t3 = join_tokens %t1, %t2, %t0 : token")
    k.emit(f"%x1, %t4 = load_ptr_tko weak {p} token=%t3 : tile<ptr<i32>> -> tile<i32>, token")
    k.emit(f"%x2, %t5 = load_ptr_tko weak {q} token=%t3 : tile<ptr<i32>> -> tile<i32>, token")
    k.output("o", k.v("addi %x1, %x2 : tile<i32>"), "i32", [], [300])
    case.results(b, "i32", [100, 200, 3, 4])
    yield k.finish()
    for trips in (0, 1, 8):
        # a token carried by a loop: every iteration adds to one place, and stores its number at (i + 1) / 2: the last writer wins
        case = Case(
            "tokens",
            f"carried.{trips}",
            "smoke" if trips == 8 else "standard",
            ["for", "load_ptr_tko", "store_ptr_tko"],
            ["i32"],
        )
        k = Kernel(case)
        b = case.output("i32", 8, [0] * 8)
        p = k.ptr_param("m", "i32")
        n = k.scalar("n", "i32", trips)
        zero, one = k.const("i32", 0), k.const("i32", 1)
        k.emit("%t0 = make_token : token")
        k.emit(f"%t = for %i in ({zero} to {n}, step {one}) : tile<i32> iter_values(%tk = %t0) -> (token) {{")
        k.indent += 1
        k.emit(f"%j = addi %i, {one} : tile<i32>")
        k.emit(f"%h = shri %j, {one} unsigned : tile<i32>")
        k.emit("%q = offset %m, %h : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
        k.emit("%x, %ta = load_ptr_tko weak %q token=%tk : tile<ptr<i32>> -> tile<i32>, token")
        k.emit("%y = muli %x, %j : tile<i32>")
        k.emit("%z = addi %y, %j : tile<i32>")
        k.emit("%tb = store_ptr_tko weak %q, %z token=%ta : tile<ptr<i32>>, tile<i32> -> token")
        k.emit("continue %tb : token")
        k.indent -= 1
        k.emit("}")
        mem = [0] * 8
        for i in range(trips):
            mem[(i + 1) // 2] = mem[(i + 1) // 2] * (i + 1) + i + 1
        case.results(b, "i32", mem)
        yield k.finish()
    for on in (0, 1):
        case = Case("tokens", f"through_if.{on}", "standard", ["if"], ["i32"])
        k = Kernel(case)
        b = case.output("i32", 1, [7])
        k.ptr_param("m", "i32")
        k.scalar("c", "i1", on)
        k.emit("%t0 = make_token : token")
        k.emit("%t = if %c -> (token) {")
        k.emit(f"  %t1 = store_ptr_tko weak %m, {'%k'} token=%t0 : tile<ptr<i32>>, tile<i32> -> token")
        k.emit("  yield %t1 : token")
        k.emit("} else {")
        k.emit("  yield %t0 : token")
        k.emit("}")
        k.lines.insert(0, "    %k = constant <i32: 42> : tile<i32>")
        k.emit("%x, %t2 = load_ptr_tko weak %m token=%t : tile<ptr<i32>> -> tile<i32>, token")
        k.output("o", "%x", "i32", [], [42 if on else 7])
        case.results(b, "i32", [42 if on else 7])
        yield k.finish()
    # a store through a view and a load through a pointer of the same memory
    for words in ("weak", "release device"):
        case = Case(
            "tokens",
            f"view_then_pointer.{words.replace(' ', '_')}",
            "smoke",
            ["store_view_tko", "load_ptr_tko"],
            ["f32"],
        )
        k = Kernel(case)
        bits = data("f32", 16, "view then pointer")
        x = k.input("a", "f32", bits, [4, 4])
        b = case.output("f32", 16)
        p = k.ptr_param("m", "f32")
        tv = "tensor_view<4x4xf32, strides=[4,1]>"
        v = k.v(f"make_tensor_view {p}, shape = [4, 4], strides = [4, 1] : {tv}")
        w = k.v(f"make_partition_view {v} : partition_view<tile=(4x4), {tv}>")
        z = k.const("i32", 0)
        k.emit(
            f"%t1 = store_view_tko {words} {x}, {w}[{z}, {z}] : tile<4x4xf32>, partition_view<tile=(4x4), {tv}>, tile<i32> -> token"
        )
        ps = pointer_tile(k, p, "f32", k.v("iota : tile<16xi32>"), 16)
        k.emit(f"%y, %t2 = load_ptr_tko weak {ps} token=%t1 : tile<16xptr<f32>> -> tile<16xf32>, token")
        k.output("o", "%y", "f32", [16], bits)
        case.results(b, "f32", bits)
        yield k.finish()
    for op in ("memory_fence_alias_tko", "gdc_wait_tko", "gdc_launch_dependents_tko"):
        case = Case("tokens", f"pass_through.{op}", "standard", [op], ["i32"])
        k = Kernel(case)
        b = case.output("i32", 1, [7])
        k.ptr_param("m", "i32")
        k.emit(f"%t1 = store_ptr_tko weak %m, {k.const('i32', 9)} : tile<ptr<i32>>, tile<i32> -> token")
        k.emit(f"%t2 = {op} %t1" if op == "memory_fence_alias_tko" else f"%t2 = {op} token=%t1 -> token")
        k.emit("%x, %t3 = load_ptr_tko weak %m token=%t2 : tile<ptr<i32>> -> tile<i32>, token")
        k.output("o", "%x", "i32", [], [9])
        case.results(b, "i32", [9])
        yield k.finish()


def pointers():
    for part in (loads_and_stores, gathers, bytes_of_i1, arithmetic, local_memory):
        yield from part()


FAMILIES = {"pointers": pointers, "tokens": tokens}
