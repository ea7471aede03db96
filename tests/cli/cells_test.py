#!/usr/bin/env python3
"""Every operation of the table with every element type that the validator takes, and with every word of its attributes, runs on the interpreter: as tiles,
as scalars, and inside the body of a reduction where the row allows that; also under those checkers that a correct kernel cannot alarm, under a schedule and
with the numerics of a GPU. What comes out is the conformance suite's business.

Programs are drawn from spec/ops.json where a row needs nothing but tiles of one shape, and from the makers below otherwise. A row without either, and an
element type at a position that no accepted program has, fail unless EXCLUDED names them.

Environment: TILEVM, TILEASM, SOURCE_DIR."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TILEVM, TILEASM = os.environ.get("TILEVM", "tilevm"), os.environ.get("TILEASM", "tileasm")
SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", "."))
ROWS = {row["name"]: row for row in json.loads((SOURCE / "spec" / "ops.json").read_text())["operations"]}

INTS = ["i1", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "tf32", "f64", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f4E2M1FN", "fnv8E5M3FNU"]
NUM = INTS + FLOATS
ANY = NUM + ["i4", "ptr"]
MOVED = [e for e in NUM if e != "f4E2M1FN"]  # whose pointers can be moved and followed
WORDS = ["i32", "i64", "f16", "bf16", "f32", "f64"]  # of atomics
BITS = {"i1": 1, "i4": 4, "f4E2M1FN": 4, "i8": 8, "i16": 16, "f16": 16, "bf16": 16, "i64": 64, "f64": 64}
ORDERINGS = ["weak", "relaxed tl_blk", "relaxed device", "relaxed sys", "acquire device", "release sys", "acq_rel device"]
MODES = ["and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg"]
KINDS = ["add", "min", "max", "and", "or", "xor", "umin", "umax"]
PREDICATES = ["equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal"]

BYTES = {"i8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "fnv8E5M3FNU"}
NO_WORDS = set(NUM) - set(WORDS)  # the row of a view names every element; the tile's says which ones are left
# (operation, position): element types of the row that no valid program has there, or (4-bit elements through pointers) none that runs.
EXCLUDED = {
    ("assume", "value"): set(FLOATS), ("assume", "result"): set(FLOATS),
    ("exti", "from"): {"i64"}, ("exti", "to"): {"i1"}, ("trunci", "from"): {"i1"}, ("trunci", "to"): {"i64"},
    ("pack", "source"): BYTES, ("unpack", "result"): BYTES,
    **{(op, at): {"f4E2M1FN", "ptr"} for op in ("reduce", "scan") for at in ("operands", "results")},  # no scalar of f4E2M1FN, no identity of pointers
    ("return", "operands"): set(ANY), ("constant", "result"): {"ptr"},
    ("load_ptr_tko", "paddingValue"): {"f4E2M1FN"}, ("load_ptr_tko", "result"): {"f4E2M1FN"}, ("store_ptr_tko", "value"): {"f4E2M1FN"},
    **{(op, "view"): NO_WORDS for op in ("atomic_red_view_tko", "multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko")},
}


def bits(e):
    return BITS.get(e, 32 if e in ("i32", "f32", "tf32") else 64 if e == "ptr" else 8)


def name(e):
    """A tile's element in text."""
    return "ptr<f32>" if e == "ptr" else e


def tile(e, shape=(8,)):
    return "tile<" + "".join(f"{d}x" for d in shape) + name(e) + ">"


def value(to, e, shape=(8,)):
    """Lines that define a tile of any element type. Names that begin with %p are parameters; the others are one cell's own."""
    if e == "ptr":
        if not shape:
            return [f"{to} = ptr_to_ptr %p_f32 : tile<ptr<f32>> -> tile<ptr<f32>>"]
        ones = (1,) * len(shape)
        return [f"{to}a = reshape %p_f32 : tile<ptr<f32>> -> {tile(e, ones)}", f"{to} = broadcast {to}a : {tile(e, ones)} -> {tile(e, shape)}"]
    if e == "i4":
        return [f"{to}a = constant <i8: 1> : {tile('i8', shape)}", f"{to} = trunci {to}a : {tile('i8', shape)} -> {tile(e, shape)}"]
    return [f"{to} = constant <{e}: {'1' if e in INTS else '1.0'}> : {tile(e, shape)}"]


class Cell:
    """Lines of one program, and the element type at each position of the operation."""

    def __init__(self, op, at, lines, globals_=(), terminates=False):
        self.op, self.at, self.lines, self.globals, self.terminates = op, at, list(lines), list(globals_), terminates

    def text(self, number):
        """Its lines, with names of their own."""
        return [re.sub(r"%(?!p_|\d)(\w+)", rf"%\1_{number}", line) for line in self.lines]


def program(cells):
    """One entry of many cells."""
    parameters = ", ".join([f"%p_{e}: tile<ptr<{e}>>" for e in NUM] + [f"%p_m{e}: tile<ptr<{e}, <multicast>>>" for e in WORDS])
    lines = [f"  {g}" for c in cells for g in c.globals] + [f"  entry @k({parameters}) {{", "    %p_0 = constant <i32: 0> : tile<i32>", "    %p_1 = constant <i32: 1> : tile<i32>",
                                                              "    %p_b = constant <i1: true> : tile<i1>", "    %p_t = make_token : token"]
    for number, c in enumerate(cells):
        lines += ["    " + line for line in c.text(number)]
    if not any(c.terminates for c in cells):
        lines.append("    return")
    return "cuda_tile.module @m {\n" + "\n".join(lines) + "\n  }\n}\n"


ARGUMENTS = []
for element in NUM + WORDS:
    ARGUMENTS += ["--arg", f"ptr:{element}[4096]=zeros"]


# --- rows that need nothing but tiles of one shape ---

def words_of(row):
    """Attribute values: one set for each word of each attribute, the others being the first or left out."""
    usual = {a["name"]: f"#cuda_tile.{a['enum']}<{a['values'][0]}>" for a in row["attributes"] if a["kind"] == "enum" and "default" not in a}
    yield usual
    for a in row["attributes"]:
        if a["kind"] == "unit":
            yield {**usual, a["name"]: "unit"}
        elif a["kind"] == "enum":
            for word in a["values"]:
                yield {**usual, a["name"]: f"#cuda_tile.{a['enum']}<{word}>"}


def plain(row):
    positions = row["operands"] + row["results"]
    if row["regions"] or row["terminator"] or len(row["results"]) != 1 or not row["operands"] or any(p["kind"] != "tile" or p["arity"] != "one" for p in positions):
        return None
    names = [p["name"] for p in positions]
    classes = list(range(len(names)))  # positions of one element type
    for rule in row["rules"]:
        if rule["kind"] in ("same type", "same element type"):
            at = [names.index(n) for n in rule["at"]]
            low = min(classes[k] for k in at)
            classes = [low if c in {classes[k] for k in at} else c for c in classes]
    free = sorted(set(classes))
    out = []
    for chosen in itertools.product(*[positions[c]["elements"] for c in free]):
        types = [dict(zip(free, chosen))[c] for c in classes]
        at = dict(zip(names, types))
        for words in words_of(row):
            attributes = ", ".join(k if v == "unit" else f"{k} = {v}" for k, v in words.items())
            for shape in (8,), ():
                operands = [line for n, e in enumerate(types[:-1]) for line in value(f"%v{n}", e, shape)]
                generic = f'%r = "cuda_tile.{row["name"]}"(' + ", ".join(f"%v{n}" for n in range(len(types) - 1)) + ")" + (f" <{{{attributes}}}>" if attributes else "")
                generic += " : (" + ", ".join("!cuda_tile." + tile(e, shape) for e in types[:-1]) + ") -> !cuda_tile." + tile(types[-1], shape)
                out.append(Cell(row["name"], at, operands + [generic]))
                if not shape and row["in_reduce"]:
                    body = ["%z = iota : tile<8xi32>", "%s = reduce %z dim=0 identities=[0 : i32] : tile<8xi32> -> tile<i32>", "(%l: tile<i32>, %m: tile<i32>) {", *operands, generic,
                            "%y = addi %l, %m : tile<i32>", "yield %y : tile<i32>", "}"]
                    if "ptr" not in types:  # an entry's parameters are not seen as constants
                        out.append(Cell(row["name"], at, body))
    return out


# --- the others ---

def each(op, position, elements, lines):
    return [Cell(op, {position: e}, lines(e)) for e in elements]


def views(e):
    """Views over 64 elements: (definitions, view, type, index operands, index types, type of the tile)."""
    tensor = f"tensor_view<8x8x{e}, strides=[8,1]>"
    make = [f"%tv = make_tensor_view %p_{e}, shape = [8, 8], strides = [8, 1] : {tensor}"]
    part, strided, gather = f"partition_view<tile=(4x4), {tensor}>", f"strided_view<tile=(4x4), traversal_strides=[2, 2], {tensor}>", f"gather_scatter_view<tile=(4x4), {tensor}, sparse_dim=0>"
    return [(make + [f"%v = make_partition_view %tv : {part}"], part, "%p_0, %p_0", "tile<i32>"),
            (make + [f"%v = make_strided_view %tv : {strided}"], strided, "%p_0, %p_0", "tile<i32>"),
            (make + [f"%v = make_gather_scatter_view %tv : {gather}", "%ix = iota : tile<4xi32>"], gather, "%ix, %p_0", "tile<4xi32>, tile<i32>")]


def makers():
    """Cells of the operations that are not plain."""
    out = {op: [] for op in ROWS}

    def add(op, at, lines, **more):
        out[op].append(Cell(op, at, lines, **more))

    for e in ANY:
        shape8, v = tile(e), value("%v", e)
        # An identity is an attribute; what has none cannot be reduced.
        identity = f"{'0.0' if e in FLOATS else '0'} : {'i64' if e == 'ptr' else e}"
        if e != "ptr":
            add("constant", {"result": e}, [f"%c = constant <{e}: {'1.0' if e in FLOATS else '1'}> : {shape8}"])
        for p in "div_by<1>", "same_elements<[8]>", "bounded<-1, 0>" if e == "i1" else "bounded<0, 1>":
            add("assume", {"value": e, "result": e}, v + [f"%r = assume {p}, %v : {shape8}"])
        one = value("%v", e, (1, 2))
        add("broadcast", {"source": e, "result": e}, one + [f"%r = broadcast %v : {tile(e, (1, 2))} -> {tile(e, (8, 2))}"])
        add("cat", {"lhs": e, "rhs": e, "result": e}, v + [f"%r = cat %v, %v dim = 0 : {shape8}, {shape8} -> {tile(e, (16,))}"])
        add("extract", {"source": e, "indices": "i32", "result": e}, v + [f"%r = extract %v[%p_1] : {shape8} -> {tile(e, (4,))}"])
        add("insert", {"source": e, "destination": e, "indices": "i32", "result": e}, v + value("%w", e, (4,)) + [f"%r = insert %w, %v[%p_1] : {tile(e, (4,))}, {shape8}"])
        square = value("%v", e, (2, 4))
        add("permute", {"source": e, "result": e}, square + [f"%r = permute %v [1, 0] : {tile(e, (2, 4))} -> {tile(e, (4, 2))}"])
        add("reshape", {"source": e, "result": e}, square + [f"%r = reshape %v : {tile(e, (2, 4))} -> {shape8}"])
        add("print_tko", {"args": e}, v + [f'%k = print_tko "%d\\0A", %v : {shape8} -> token'])
        add("for", {"initValues": e, "results": e}, v + [f"%r = for %i in (%p_0 to %p_1, step %p_1) : tile<i32> iter_values(%a = %v) -> ({shape8}) {{", f"continue %a : {shape8}", "}"])
        add("continue", {"operands": e}, out["for"][-1].lines)
        add("loop", {"initValues": e, "results": e}, v + [f"%r = loop iter_values(%a = %v) : {shape8} -> {shape8} {{", f"break %a : {shape8}", "}"])
        add("break", {"operands": e}, out["loop"][-1].lines)
        add("if", {"results": e}, v + [f"%r = if %p_b -> ({shape8}) {{", f"yield %v : {shape8}", "} else {", f"yield %v : {shape8}", "}"])
        add("yield", {"operands": e}, out["if"][-1].lines)
        for op, extra, result in ("reduce", "", tile(e, ())), ("scan", " reverse=false", shape8), ("scan", " reverse=true", shape8):
            add(op, {"operands": e, "results": e},
                v + [f"%r = {op} %v dim=0{extra} identities=[{identity}] : {shape8} -> {result}", f"(%l: {tile(e, ())}, %m: {tile(e, ())}) {{", f"yield %l : {tile(e, ())}", "}"])
        add("pack", {"source": e, "result": "i8"}, v + [f"%r = pack %v : {shape8} -> tile<{bits(e)}xi8>"])
        add("unpack", {"source": "i8", "result": e}, [f"%v = constant <i8: 1> : tile<{bits(e)}xi8>", f"%r = unpack %v : tile<{bits(e)}xi8> -> {shape8}"])
    for e in INTS:
        add("iota", {"result": e}, [f"%r = iota : tile<{2 if e == 'i1' else 8}x{e}>"])
        one = [f"%z = constant <{e}: {'false' if e == 'i1' else 0}> : tile<{e}>", f"%o = constant <{e}: {'true' if e == 'i1' else 1}> : tile<{e}>"]
        for unsigned in "", "unsigned ":
            add("for", {"lowerBound": e, "upperBound": e, "step": e}, one + [f"for {unsigned}%i in (%z to %o, step %o) : tile<{e}> {{", "continue", "}"])
        for element in NUM:
            for make, view, _, _ in views(element):
                add("get_index_space_shape", {"src": element, "results": e}, make + [f"%a, %b = get_index_space_shape %v : {view} -> tile<{e}>"])
            add("get_tensor_shape", {"src": element, "results": e}, views(element)[0][0] + [f"%a, %b = get_tensor_shape %tv : tensor_view<8x8x{element}, strides=[8,1]> -> tile<{e}>"])
        dynamic = "tensor_view<?xf32, strides=[?]>"
        add("make_tensor_view", {"dynamicShape": e, "dynamicStrides": e}, one + [f"%tv = make_tensor_view %p_f32, shape = [%o], strides = [%o] : tile<{e}> -> {dynamic}"])
        for element in MOVED:
            add("offset", {"ptr": "ptr", "offset": e, "result": "ptr"}, one + [f"%r = offset %p_{element}, %o : tile<ptr<{element}>>, tile<{e}> -> tile<ptr<{element}>>"])
    for e in NUM:
        p, t = f"tile<8xptr<{e}>>", f"tile<8x{e}>"
        many = [f"%q1 = reshape %p_{e} : tile<ptr<{e}>> -> tile<1xptr<{e}>>", f"%q = broadcast %q1 : tile<1xptr<{e}>> -> {p}"]
        add("make_tensor_view", {"base": "ptr", "result": e}, views(e)[0][0])
        for maker, (make, _, _, _) in zip(("make_partition_view", "make_strided_view", "make_gather_scatter_view"), views(e)):
            add(maker, {"tensor_view": e, "result": e}, make)
        add("alloca", {"result": "ptr"}, [f"%r = alloca num_elem = 8, alignment = 16 : tile<ptr<{e}>>"])
        add("ptr_to_ptr", {"source": "ptr", "result": "ptr"}, many + [f"%r = ptr_to_ptr %q : {p} -> tile<8xptr<i8>>"])
        add("ptr_to_int", {"source": "ptr", "result": "i64"}, many + [f"%r = ptr_to_int %q : {p} -> tile<8xi64>"])
        add("int_to_ptr", {"source": "i64", "result": "ptr"}, [f"%v = constant <i64: 0> : tile<8xi64>", f"%r = int_to_ptr %v : tile<8xi64> -> {p}"])
        add("global", {}, [], globals_=[f"global @g_{e} alignment = 16 <{e}: {'1' if e in INTS else '1.0'}> : tile<8x{e}>"])
        add("get_global", {"result": "ptr"}, [f"%r = get_global @h_{e} : tile<ptr<{e}>>"], globals_=[f"global @h_{e} alignment = 16 <{e}: {'1' if e in INTS else '1.0'}> : tile<8x{e}>"])
        for ordering in ORDERINGS:
            mask = ["%b = constant <i1: true> : tile<8xi1>"]
            at = {"source": "ptr", "result": e}
            if e in MOVED:
                add("load_ptr_tko", at, many + [f"%r, %k = load_ptr_tko {ordering} %q : {p} -> {t}, token"])
                add("load_ptr_tko", {**at, "mask": "i1", "paddingValue": e}, many + mask + value("%v", e) + [f"%r, %k = load_ptr_tko {ordering} %q, %b, %v token=%p_t : {p}, tile<8xi1>, {t} -> {t}, token"])
                add("store_ptr_tko", {"destination": "ptr", "value": e, "mask": "i1"}, many + mask + value("%v", e) + [f"%k = store_ptr_tko {ordering} %q, %v, %b token=%p_t : {p}, {t}, tile<8xi1> -> token"])
            for make, view, index, types in views(e):
                add("load_view_tko", {"view": e, "tile": e}, make + [f"%r, %k = load_view_tko {ordering} %v[{index}] token=%p_t : {view}, {types} -> tile<4x4x{e}>, token"])
                add("store_view_tko", {"view": e, "tile": e}, make + value("%w", e, (4, 4)) + [f"%k = store_view_tko {ordering} %w, %v[{index}] : tile<4x4x{e}>, {view}, {types} -> token"])
    for e in INTS:
        tensor = "tensor_view<8x8xi32, strides=[8,1]>"
        multi = "tensor_view<8x8xi32, strides=[8,1], #cuda_tile.ptr_attr<multicast>>"
        part, many = f"partition_view<tile=(4x4), {tensor}>", f"partition_view<tile=(4x4), {multi}>"
        make = [f"%i = constant <{e}: {'false' if e == 'i1' else 0}> : tile<{e}>", *value("%w", "i32", (4, 4)),
                f"%tv = make_tensor_view %p_i32, shape = [8, 8], strides = [8, 1] : {tensor}", f"%v = make_partition_view %tv : {part}",
                f"%tm = make_tensor_view %p_mi32, shape = [8, 8], strides = [8, 1] : tile<ptr<i32, <multicast>>> -> {multi}", f"%m = make_partition_view %tm : {many}"]
        at, t, index = {"index": e}, "tile<4x4xi32>", f"tile<{e}>"
        add("load_view_tko", at, make + [f"%r, %k = load_view_tko weak %v[%i, %i] : {part}, {index} -> {t}, token"])
        add("store_view_tko", at, make + [f"%k = store_view_tko weak %w, %v[%i, %i] : {t}, {part}, {index} -> token"])
        add("atomic_red_view_tko", at, make + [f"%k = atomic_red_view_tko relaxed device %v[%i, %i], add, %w : {t}, {part}, {index} -> token"])
        add("multimem_load_reduce_view_tko", at, make + [f"%r, %k = multimem_load_reduce_view_tko weak %m[%i, %i] : {many}, {index} -> {t}, token"])
        add("multimem_reduce_view_tko", at, make + [f"%k = multimem_reduce_view_tko relaxed device %m, %w[%i, %i] : {many}, {t}, {index} -> token"])
        add("multimem_store_view_tko", at, make + [f"%k = multimem_store_view_tko weak %m, %w[%i, %i] : {many}, {t}, {index} -> token"])
    for e in WORDS:
        p, t = f"tile<8xptr<{e}>>", f"tile<8x{e}>"
        many = [f"%q1 = reshape %p_{e} : tile<ptr<{e}>> -> tile<1xptr<{e}>>", f"%q = broadcast %q1 : tile<1xptr<{e}>> -> {p}", "%b = constant <i1: true> : tile<8xi1>", *value("%w", e)]
        for ordering in ORDERINGS[1:]:
            add("atomic_cas_tko", {"pointers": "ptr", "cmp": e, "val": e, "mask": "i1", "result": e}, many + [f"%r, %k = atomic_cas_tko {ordering} %q, %w, %w, %b token=%p_t : {p}, {t}, tile<8xi1> -> {t}, token"])
            for mode in MODES:
                add("atomic_rmw_tko", {"pointers": "ptr", "arg": e, "mask": "i1", "result": e}, many + [f"%r, %k = atomic_rmw_tko {ordering} %q, {mode}, %w, %b : {p}, {t}, tile<8xi1> -> {t}, token"])
        for scope, mode, (make, view, index, types) in itertools.product(("tl_blk", "device"), MODES, views(e)):
            add("atomic_red_view_tko", {"view": e, "value": e}, make + value("%w", e, (4, 4)) + [f"%k = atomic_red_view_tko relaxed {scope} %v[{index}], {mode}, %w : tile<4x4x{e}>, {view}, {types} -> token"])
        tensor = f"tensor_view<8x{e}, strides=[1], #cuda_tile.ptr_attr<multicast>>"
        view = f"partition_view<tile=(8), {tensor}>"
        make = [f"%tv = make_tensor_view %p_m{e}, shape = [8], strides = [1] : tile<ptr<{e}, <multicast>>> -> {tensor}", f"%v = make_partition_view %tv : {view}"]
        for ordering in ORDERINGS:
            add("multimem_store_view_tko", {"view": e, "tile": e}, make + value("%w", e) + [f"%k = multimem_store_view_tko {ordering} %v, %w[%p_0] : {view}, {t}, tile<i32> -> token"])
            for kind in KINDS:
                word = f"attributes {{reduction = #cuda_tile.multimem_reduction_kind<{kind}>}}"
                add("multimem_load_reduce_view_tko", {"view": e, "reduced_values": e}, make + [f"%r, %k = multimem_load_reduce_view_tko {ordering} %v[%p_0] {word} : {view}, tile<i32> -> {t}, token"])
                add("multimem_reduce_view_tko", {"view": e, "tile": e}, make + value("%w", e) + [f"%k = multimem_reduce_view_tko {ordering} %v, %w[%p_0] {word} : {view}, {t}, tile<i32> -> token"])
    for lhs, rhs, batch in itertools.product(NUM, NUM, ((), (2,))):
        for acc in ("f16", "f32", "f64", "i32"):
            if acc == "i32":
                lines = [f"%r = mmai %x, %y, %z {a} {b} : " for a, b in itertools.product(("signed", "unsigned"), repeat=2)] if lhs == "i8" and rhs == "i8" else []
            else:
                lines = [f"%r = mmaf %x, %y, %z{fast} : " for fast in ("", " fast_acc")] if lhs in FLOATS and lhs == rhs else []
            for line in lines:
                op, x, y, z = "mmai" if acc == "i32" else "mmaf", (*batch, 8, 16), (*batch, 16, 8), (*batch, 8, 8)
                add(op, {"lhs": lhs, "rhs": rhs, "acc": acc, "result": acc}, value("%x", lhs, x) + value("%y", rhs, y) + value("%z", acc, z) + [f"{line}{tile(lhs, x)}, {tile(rhs, y)}, {tile(acc, z)}"])
        if lhs in FLOATS and rhs in FLOATS:  # here the type of the factors and that of the scales
            for block in 16, 32:
                shapes = [(*batch, *s) for s in ((8, 64), (64, 8), (8, 8), (8, 64 // block), (64 // block, 8))]
                types = [tile(e, s) for e, s in zip((lhs, lhs, "f32", rhs, rhs), shapes)]
                add("mmaf_scaled", {"lhs": lhs, "rhs": lhs, "acc": "f32", "result": "f32", "lhs_scale": rhs, "rhs_scale": rhs},
                    [line for n, (e, s) in enumerate(zip((lhs, lhs, "f32", rhs, rhs), shapes)) for line in value(f"%v{n}", e, s)] + ["%r = mmaf_scaled %v0, %v1, %v2, %v3, %v4 : " + ", ".join(types)])
    add("if", {"condition": "i1"}, ["if %p_b {", "} else {", "}"])
    add("assert", {"condition": "i1"}, ['assert %p_b, "never" : tile<i1>'])
    add("get_tile_block_id", {f"blockId_{d}": "i32" for d in "xyz"}, ["%a, %b, %c = get_tile_block_id : tile<i32>"])
    add("get_num_tile_blocks", {f"gridSize_{d}": "i32" for d in "xyz"}, ["%a, %b, %c = get_num_tile_blocks : tile<i32>"])
    add("make_token", {}, ["%k = make_token : token"])
    add("join_tokens", {}, ["%k = join_tokens %p_t, %p_t : token"])
    add("memory_fence_alias_tko", {}, ["%k = memory_fence_alias_tko %p_t"])
    for op in "gdc_wait_tko", "gdc_launch_dependents_tko":
        add(op, {}, [f"%k = {op} -> token", f"%m = {op} token=%k -> token"])
    add("return", {}, ["return"], terminates=True)
    for op in "entry", "module":
        add(op, {}, [])
    return out


def accepted(folder, cells):
    """Those that are valid; the others must be refused by the validator, not by the reader."""
    wrong = []
    for number, c in enumerate(cells):
        (folder / f"{number:05}.tile").write_text(program([c]))
    done = subprocess.run([TILEASM, "check", "--diagnostics", "json", str(folder)], capture_output=True, text=True, check=False)
    refused = {}
    for line in done.stderr.splitlines():
        d = json.loads(line)
        if d.get("severity") == "error":
            refused.setdefault(int(pathlib.Path(d["file"]).stem), d)
    for number, d in refused.items():
        if not re.fullmatch(r"E0[567]\d\d", d["code"]):
            wrong.append(f"{d['code']} {d['message']}\n    " + "\n    ".join(cells[number].lines))
    return [c for n, c in enumerate(cells) if n not in refused], wrong


def run(folder, op, cells):
    path = folder / f"{op}.tile"
    path.write_text(program(cells))
    for options in (), ("--check", "bounds,init,race,undef,nan"), ("--schedule", "1"), ("--numerics", "h200"):
        done = subprocess.run([TILEVM, str(path), *ARGUMENTS, *options], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            return f"{op} {' '.join(options)}: exit {done.returncode}: {done.stderr[:600]}"
    return ""


def main():
    made, failures = makers(), []
    for row in ROWS.values():
        if not made[row["name"]]:
            made[row["name"]] = plain(row) or []
    with tempfile.TemporaryDirectory() as name_:
        folder = pathlib.Path(name_)
        (folder / "cells").mkdir()
        valid, wrong = accepted(folder / "cells", [c for cells in made.values() for c in cells])
        failures += wrong
        by_op = {}
        for c in valid:
            by_op.setdefault(c.op, []).append(c)
        for op, row in ROWS.items():
            if op not in by_op:
                failures.append(f"{op}: no program of it is valid")
                continue
            for p in row["operands"] + row["results"]:
                ran = {c.at[p["name"]] for c in by_op[op] if p["name"] in c.at}
                missing = set(p.get("elements", ())) - ran - EXCLUDED.get((op, p["name"]), set())
                if missing:
                    failures.append(f"{op}: no program with {', '.join(sorted(missing))} as {p['name']}")
                if EXCLUDED.get((op, p["name"]), set()) & ran:
                    failures.append(f"{op}: {p['name']} is excluded, but valid")
        with ThreadPoolExecutor(2) as pool:
            failures += [f for f in pool.map(lambda item: run(folder, *item), by_op.items()) if f]
    for f in failures:
        print("FAILED", f)
    print(f"{len(valid)} cells of {len(by_op)} operations, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
