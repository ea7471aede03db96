#!/usr/bin/env python3
"""Tests the suite: deliberately broken engines must be caught. mutants.py --impl "COMMAND" --suite CACHE [--write]

A mutant is the implementation with one fault put in front of it or behind it: the kernel is rewritten before the engine sees it (an engine
that ignores a modifier), or its outputs or status are corrupted afterwards (an engine that computes wrongly). Each is run on cases of the
families that should catch it. Mutants marked `legal` differ only where the language allows it and must not be caught in the language profile.
The score is kept in mutants.json."""

import argparse
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from runner import execute, report, suite  # noqa: E402

FLOATS = {
    "f16": (2, 0x8000, 0x7C00),
    "bf16": (2, 0x8000, 0x7F80),
    "f32": (4, 0x80000000, 0x7F800000),
    "tf32": (4, 0x80000000, 0x7F800000),
    "f64": (8, 1 << 63, 0x7FF0 << 48),
}
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, **{t: v[0] for t, v in FLOATS.items()}}


# Mutations of the kernel: pattern -> replacement
def rewrite(pattern, replacement, count=0):
    return ("text", lambda text: re.sub(pattern, replacement, text, count=count))


# Mutations of outputs: a function of (type, list of element bits) -> new list
def outputs(fn):
    return ("out", fn)


def each_float(fn):
    def change(t, bits):
        return [fn(b, *FLOATS[t][1:]) for b in bits] if t in FLOATS else bits

    return outputs(change)


def nan_sign(b, sign, inf):
    return b ^ sign if b & ~sign > inf else b


def nan_payload(b, sign, inf):
    return b ^ 1 if b & ~sign > inf + 3 else b


def status(fn):
    return ("status", fn)


# fmt: off
# name: (mutation, families or case patterns, legal)
MUTANTS = {
    # integers
    "int.add_for_sub": (rewrite(r"\bsubi\b", "addi"), ["int_arith/subi.*"]),
    "int.signedness": (rewrite(r"\bsigned\b", "unsigned"), ["int_arith/*signed*", "int_compare/*"]),
    "int.shift_masks_amount": (rewrite(r"= shli (%\w+), (%\w+)", r"= addi \1, \2"), ["int_arith/shli.*"]),
    "int.divides_toward_zero": (rewrite(r" rounding<(negative|positive)_inf>", ""), ["int_arith/divi.*_inf*"]),
    "int.remainder_is_floor": (rewrite(r"= remi (%\w+), (%\w+) signed", r"= remi \1, \2 unsigned"), ["int_arith/remi.signed.*"]),
    "int.high_for_low": (rewrite(r"\bmulhii\b", "muli"), ["int_arith/mulhii.*", "programs/philox*"]),
    "int.or_for_xor": (rewrite(r"\bxori\b", "ori"), ["int_arith/xori.*"]),
    "int.abs_of_minimum": (outputs(lambda t, b: [v - 1 if SIZES.get(t) and v == 1 << (8 * SIZES[t] - 1) else v for v in b]), ["int_arith/absi.*", "int_arith/negi.*"]),
    "int.compare_off_by_equal": (rewrite(r"cmpi less_than ", "cmpi less_than_or_equal "), ["int_compare/cmpi.less_than.*"]),
    # floats
    "float.rounds_to_nearest_only": (rewrite(r" rounding<(zero|negative_inf|positive_inf)>", ""), ["float_arith/*.zero.*", "float_arith/*.negative_inf.*", "float_arith/*.positive_inf.*"]),
    "float.up_for_down": (rewrite(r"rounding<negative_inf>", "rounding<positive_inf>"), ["float_arith/*negative_inf*"]),
    "float.truncates": (rewrite(r" rounding<nearest_even>", " rounding<zero>"), ["float_arith/*.nearest_even.*"]),
    "float.ignores_flush": (rewrite(r" flush_to_zero", ""), ["float_arith/*ftz*", "math/*flush*"]),
    "float.always_flushes": (each_float(lambda b, s, i: b & s if 0 < b & ~s < (i & -i) else b), ["float_arith/addf.*", "float_arith/mulf.*", "float_arith/sqrt.*", "float_arith/maxf.*"]),
    "float.drops_sign_of_zero": (each_float(lambda b, s, i: 0 if b == s else b), ["float_arith/*", "reduce_scan/*maxf*", "convert/ftof*"]),
    "float.nan_becomes_zero": (each_float(lambda b, s, i: 0 if b & ~s > i else b), ["float_arith/*edges*", "math/*edges*", "mma/*nan*"]),
    "float.inf_becomes_max": (each_float(lambda b, s, i: b - 1 if b & ~s == i else b), ["float_arith/*edges*", "math/*edges*", "convert/ftof*"]),
    "float.last_bit": (each_float(lambda b, s, i: b ^ 1 if b & ~s < i and b % 13 == 5 else b), ["float_arith/*"]),
    "float.fma_is_two_roundings": (rewrite(r"(%\w+) = fma (%\w+), (%\w+), (%\w+)( rounding<\w+>)?( flush_to_zero)? : (\S+)",
                                           lambda m: f"{m[1]}m = mulf {m[2]}, {m[3]}{m[5] or ''}{m[6] or ''} : {m[7]}\n    {m[1]} = addf {m[1]}m, {m[4]}{m[5] or ''}{m[6] or ''} : {m[7]}"),
                                   ["float_arith/fma.*"]),
    "float.ignores_propagate_nan": (rewrite(r" propagate_nan", ""), ["float_arith/maxf.propagate*", "float_arith/minf.propagate*", "reduce_scan/*propagate*"]),
    "float.max_for_min": (rewrite(r"\bminf\b", "maxf"), ["float_arith/minf.*"]),
    "float.ceil_for_floor": (rewrite(r"\bfloor\b", "ceil"), ["float_arith/floor.*"]),
    "float.unordered_is_ordered": (rewrite(r" unordered ", " ordered "), ["float_compare/*unordered*edges"]),
    "float.equal_by_bits": (rewrite(r"cmpf equal ordered", "cmpf less_than_or_equal ordered"), ["float_compare/cmpf.equal.ordered*"]),
    "float.nan_sign": (each_float(nan_sign), ["float_arith/add*", "math/*edges*"], "legal"),
    "float.nan_payload": (each_float(nan_payload), ["float_arith/mul*", "math/*edges*"], "legal"),
    # functions
    "math.exp_for_exp2": (rewrite(r"\bexp2\b", "exp"), ["math/exp2.*"]),
    "math.eight_ulp": (each_float(lambda b, s, i: b + 8 if i >> 3 < b & ~s < i - 8 else b), ["math/*full_range*", "math/*middle*", "math/*circle*"]),
    "math.one_ulp": (each_float(lambda b, s, i: b ^ 1 if i >> 3 < b & ~s < i - 8 else b), ["math/sin.f32*", "math/exp.f32*", "math/pow.f32*"], "legal"),
    "math.swapped_operands": (rewrite(r"= (pow|atan2) (%\w+), (%\w+)", r"= \1 \3, \2"), ["math/pow.*", "math/atan2.*"]),
    "math.power_by_function": (rewrite(r"= fpowi (%\w+), (%\w+) : (\S+), (\S+)", r"= absf \1 : \3"), ["math/fpowi.*"]),
    # conversions
    "convert.always_signed": (rewrite(r"\bunsigned\b", "signed"), ["convert/exti*", "convert/itof*", "convert/ftoi*"]),
    "convert.ignores_mode": (rewrite(r"(ftof .*) rounding<(zero|negative_inf|positive_inf|nearest_away)>", r"\1"), ["convert/ftof*f32*"]),
    "convert.truncates": (rewrite(r"(= ftof %\w+)( rounding<nearest_even>)?( : tile<1024xf(32|64)> -> tile<1024x(f16|bf16|tf32)>)", r"\1 rounding<zero>\3"), ["convert/ftof.f32.bf16.nearest_even*", "convert/ftof.f64.f16.nearest_even*", "convert/ftof.f32.tf32.nearest_even*"]),
    "convert.ignores_saturating": (rewrite(r" saturating", ""), ["convert/ftoi.*.i8.*saturating*", "convert/ftoi.*.i1.*saturating*"]),
    "convert.by_way_of_f32": (rewrite(r"(%\w+) = ftof (%\w+) : tile<(\w+)xf64> -> tile<(\w+)xf16>", r"\1w = ftof \2 : tile<\3xf64> -> tile<\3xf32>\n    \1 = ftof \1w : tile<\3xf32> -> tile<\4xf16>"),
                              ["convert/*double_rounding*", "convert/ftof.f64.f16.default*"]),
    "convert.swaps_bytes": (outputs(lambda t, b: [int.from_bytes(v.to_bytes(2, "big"), "little") if SIZES.get(t) == 2 else v for v in b]), ["convert/bitcast.*16*"]),
    # shapes
    "shape.identity_permutation": (rewrite(r"permute (%\w+) \[1, 0\] : tile<(\w+)> -> tile<(\w+)>", r"reshape \1 : tile<\2> -> tile<\3>"), ["shape/permute.10.*"]),
    "shape.permutation_inverted": (rewrite(r"permute (%\w+) \[1, 2, 0\] : tile<(\w+)> -> tile<(\w+)>", r"reshape \1 : tile<\2> -> tile<\3>"), ["shape/permute.120.*"]),
    "shape.cat_swaps": (rewrite(r"= cat (%\w+), (%\w+)", r"= cat \2, \1"), ["shape/cat.*"]),
    "shape.select_inverted": (rewrite(r"= select (%\w+), (%\w+), (%\w+)", r"= select \1, \3, \2"), ["shape/select.*"]),
    "shape.extract_first": (rewrite(r"(%\w+) = extract (%\w+)\[%\w+\]", r"%first = constant <i32: 0> : tile<i32>\n    \1 = extract \2[%first]"), ["shape/extract.16_4.*"]),
    "shape.one_element_off": (outputs(lambda t, b: b[1:] + b[:1] if len(b) > 1 else b), ["shape/*"]),
    "pack.reversed": (outputs(lambda t, b: b[::-1]), ["pack/*"]),
    "pack.swaps_nibbles": (outputs(lambda t, b: [v >> 4 | (v & 15) << 4 for v in b] if t == "i8" else b), ["pack/pack.*.i4", "pack/pack.*.f4*", "pack/unpack.*.i4"]),
    # reductions
    "reduce.dimension": (rewrite(r"dim=0 (identities.* : tile<8x8x)", r"dim=1 \1"), ["reduce_scan/reduce.arg*8x8*", "reduce_scan/reduce.three*8x8*"]),
    "reduce.drops_last": (outputs(lambda t, b: [v ^ 1 if i % 3 == 0 and t in ("i8", "i16", "i32", "i64") else v for i, v in enumerate(b)]), ["reduce_scan/reduce.*i32", "reduce_scan/scan.*i32"]),
    "scan.ignores_reverse": (rewrite(r"reverse=true", "reverse=false"), ["reduce_scan/scan_reverse*"]),
    "scan.exclusive": (outputs(lambda t, b: [0] + b[:-1]), ["reduce_scan/scan.addi.16*", "reduce_scan/scan.addi.512*"]),
    "reduce.min_for_max": (rewrite(r"\bmaxi\b", "mini"), ["reduce_scan/*maxi*"]),
    "reduce.sum_in_f16": (outputs(lambda t, b: [v & ~0x1FFF for v in b] if t == "f32" else b), ["reduce_scan/*random_sum*f32", "reduce_scan/reduce.addf*f32"]),
    # matrix products
    "mma.drops_accumulator": (rewrite(r"(%\w+) = mmai (%\w+), (%\w+), %\w+ (.*) (tile<\w+xi32>)", r"%no = constant <i32: 0> : \5\n    \1 = mmai \2, \3, %no \4 \5"), ["mma/mmai.random*"]),
    "mma.signedness": (rewrite(r"(mmai .*) signed unsigned", r"\1 signed signed"), ["mma/mmai.*.signed.unsigned"]),
    "mma.f32_as_tf32": (rewrite(r"(%\w+) = mmaf (%\w+), (%\w+), (%\w+) : tile<(\w+)xf32>, tile<(\w+)xf32>, (\S+)",
                                r"\1a = ftof \2 : tile<\5xf32> -> tile<\5xtf32>\n    \1b = ftof \3 : tile<\6xf32> -> tile<\6xtf32>\n    \1 = mmaf \1a, \1b, \4 : tile<\5xtf32>, tile<\6xtf32>, \7"),
                        ["mma/mmaf.random.*.f32.f32"]),
    "mma.low_precision_sum": (outputs(lambda t, b: [v & ~0xFFF for v in b] if t == "f32" else b), ["mma/mmaf.random.*.f16.f32", "mma/mmaf.random.*.bf16.f32", "mma/mmaf.random.*.tf32.f32"]),
    "mma.transposed": (outputs(lambda t, b: b[::-1]), ["mma/*exact*"]),
    "mma.no_scales": (rewrite(r"(%\w+) = mmaf_scaled (%\w+, %\w+, %\w+), %\w+, (%\w+ : .*, )(tile<\w+xf8E8M0FNU>)(, tile<\w+xf8E8M0FNU>)",
                              r"%one = constant <f8E8M0FNU: 0x7F> : \4\n    \1 = mmaf_scaled \2, %one, \3\4\5"), ["mma/mmaf_scaled.*4x4x*"]),
    "mma.sum_order": (each_float(lambda b, s, i: b ^ 1 if i >> 3 < b & ~s < i - 8 else b), ["mma/mmaf.random.*.f16.f32", "mma/mmaf.random.*.bf16.f32"], "legal"),
    # views
    "view.pads_with_zero": (rewrite(r"padding_value = (neg_zero|nan|pos_inf|neg_inf)", "padding_value = zero"), ["views/*padding_n*", "views/*padding_p*", "views/*strided*nan*", "views/gather*nan*"]),
    "view.ignores_map": (rewrite(r", dim_map=\[1, 0\]", ""), ["views/*dim_map_10.6x10*", "views/*dim_map_10.7x5*"]),
    "view.step_is_tile": (rewrite(r"strided_view<tile=\((\d+)x(\d+)\), traversal_strides=\[\d+, \d+\]", r"strided_view<tile=(\1x\2), traversal_strides=[\1, \2]"), ["views/*strided_*x*.f32", "views/*strided_*x*.i32"]),
    "view.store_overhangs": (outputs(lambda t, b: b + ["guard"]), ["views/copy.ragged*"]),
    "view.index_off_by_one": (rewrite(r"(load_view_tko weak %\w+\[)%bx", r"\1%by"), ["views/load.*2d*", "views/load.ragged*x*"]),
    "view.row_for_column": (outputs(lambda t, b: b[:1] + b[2:] + b[1:2] if len(b) > 2 else b), ["views/load.*", "views/copy.*"]),
    "view.shape_swapped": (rewrite(r"%ix#0", "%ix#1"), ["views/shape_of*mapped*"]),
    # memory
    "pointer.ignores_mask_of_load": (rewrite(r"(load_ptr_tko [\w ]*%\w+), %\w+, %\w+ : (\S+), tile<\w+>, tile<\w+> ->", r"\1 : \2 ->"), ["pointers/load.*.padding*"]),
    "pointer.ignores_mask_of_store": (rewrite(r"(store_ptr_tko [\w ]*%\w+, %\w+), %\w+ : (\S+, tile<\w+>), tile<\w+> ->", r"\1 : \2 ->"), ["pointers/store.*masked*"]),
    "pointer.offset_unsigned": (rewrite(r"(%\w+) = offset (%\w+), (%\w+) : (\S+), tile<32xi8> ->", r"\1x = exti \3 unsigned : tile<32xi8> -> tile<32xi32>\n    \1 = offset \2, \1x : \4, tile<32xi32> ->"), ["pointers/gather.i8*"]),
    "atomic.signed_for_unsigned": (rewrite(r", umax,", ", max,"), ["atomics/*umax*"]),
    "atomic.not_atomic": (rewrite(r"(%\w+), %\w+ = atomic_rmw_tko relaxed device (%\w+), add, (%\w+) : (\S+), (\S+) -> (\S+), token",
                                  r"\1, %q1 = load_ptr_tko weak \2 : \4 -> \6, token\n    \1n = addi \1, \3 : \6\n    %q2 = store_ptr_tko weak \2, \1n token=%q1 : \4, \6 -> token"), ["atomics/contended.add.*"]),
    "atomic.returns_new": (outputs(lambda t, b: [v + 1 & 0xFF for v in b] if t in ("i32", "i64") else b), ["atomics/rmw.add*", "atomics/rmw.xor*"]),
    "atomic.float_compare": (outputs(lambda t, b: [0 if v in (1 << 31, 1 << 63) else v for v in b]), ["atomics/cas.*f32", "atomics/cas.*f64"]),
    "atomic.clobbers_neighbour": (outputs(lambda t, b: [v & ~0x8000 if t in ("f16", "bf16") and v & 0x7FFF > 0x7F80 else v for v in b]), ["atomics/neighbour*"]),
    "token.dropped_store": (rewrite(r"(%t\d = )?store_ptr_tko weak %\w+, %\w+ token=%t2 .*", "%t3 = make_token : token"), ["tokens/store_load_store.weak*"]),
    # control flow
    "control.one_trip_less": (rewrite(r"(?m)^( *)(.*= for (?:unsigned )?%\w+ in \(%\w+ to )(%\w+)(, step )(%\w+)(\) : (tile<i\d+>).*)$",
                                       r"\1%less = subi \3, \5 : \7\n\1\2%less\4\5\6"), ["control/for.signed*"]),
    "control.unsigned_loop_signed": (rewrite(r"for unsigned ", "for "), ["control/for.unsigned.m1*"]),
    "control.else_for_then": (rewrite(r"cmpi less_than (.*) signed", r"cmpi greater_than_or_equal \1 signed"), ["control/random*", "control/if_without_else", "control/return_in_if"]),
    "control.carries_swapped": (rewrite(r"(?m)continue (%\w+), (%\w+) : (\S+), \3$", r"continue \2, \1 : \3, \3"), ["control/random*", "control/carried_tiles", "control/for*"]),
    # modules and programs
    "module.global_zero": (outputs(lambda t, b: [0] * len(b)), ["modules/global*", "modules/entries*", "modules/argument*"]),
    "module.block_order": (rewrite(r"%x, %y, %z = get_tile_block_id", "%y, %x, %z = get_tile_block_id"), ["modules/grid.3x5x2", "modules/grid.13x17x1"]),
    "module.runs_twice": (outputs(lambda t, b: [2 * v for v in b]), ["modules/grid*", "programs/persistent*"]),
    "program.low_precision_exp": (outputs(lambda t, b: [v & ~0xFFF for v in b] if t == "f32" else b), ["programs/softmax*", "programs/attention*"]),
    "stress.lock_loses_update": (rewrite(r"(%tc = store_ptr_tko relaxed device \S+), %new ", r"\1, %old "), ["stress/split_k.*"]),
    "stress.stale_accumulator": (rewrite(r"continue (%\w+), (%\w+)(.*) : tile<32x16xf32>", r"continue \2, \2\3 : tile<32x16xf32>"), ["stress/accumulators.*"]),
    "stress.short_division": (rewrite(r"\bdivf\b", "mulf"), ["stress/short.f*", "stress/short.bf16*"]),
    "program.skips_last_k": (rewrite(r"for %q in \((%\w+) to %steps, step", r"for %q in (\1 to %m, step"), ["programs/matmul.13x17x23*", "programs/matmul.33x9x40*"]),
    "algorithm.low_precision_products": (outputs(lambda t, b: [v & ~0xFFF for v in b] if t == "f32" else b), ["algorithms/fft*"]),
    "algorithm.sign_of_root": (rewrite(r"= negf ", "= absf "), ["algorithms/fft*"]),
    "algorithm.mask_takes_one_more": (rewrite(r"cmpi less_than ", "cmpi less_than_or_equal "), ["algorithms/vector_add.pointers.*"]),
    "algorithm.last_band_full": (rewrite(r"= mini (%\w+), (%\w+) signed", r"= maxi \1, \2 signed"), ["algorithms/banded*"]),
    "algorithm.transposes_tiles_only": (rewrite(r"(store_view_tko weak %\w+, %\w+)\[%by, %bx\]", r"\1[%bx, %by]"), ["algorithms/transpose*"]),
    "large.offset_of_32_bits": (rewrite(r"(%\w+) = offset (%\w+), (%\w+) : (\S+), tile<16xi64> ->",
                                        r"\1x = trunci \3 : tile<16xi64> -> tile<16xi32>\n    \1 = offset \2, \1x : \4, tile<16xi32> ->"), ["large/pointer.i64*"]),
    # outcomes
    "status.accepts_everything": (status(lambda s: {"status": "ok"} if s["status"] == "rejected" else s), ["reject_text/*", "reject_bytes/*"]),
    "status.rejects_everything": (status(lambda s: {"status": "rejected", "class": "invalid", "line": 1}), ["accept_bytes/*", "accept_text/*", "modules/*"]),
    "status.wrong_class": (status(lambda s: {**s, "class": "exhausted"} if "class" in s else s), ["reject_text/*", "reject_bytes/*", "traps/*"]),
    "status.wrong_line": (status(lambda s: {**s, "line": (s.get("line") or 0) + 1}), ["reject_text/*"]),
    "status.no_traps": (status(lambda s: {"status": "ok"} if s["status"] == "trap" else s), ["traps/*"]),
    "status.always_traps": (status(lambda s: {"status": "trap", "class": "assert"} if s["status"] == "ok" else s), ["traps/*", "tokens/*"]),
    "status.crashes": (status(lambda s: {"status": "crash"}), ["undefined/*", "reject_text/*"]),
    "status.no_outputs": (outputs(None), ["tokens/*", "control/*"]),
    "status.writes_inputs": (outputs(lambda t, b: ["input"] + b), ["int_arith/addi*", "views/load*"]),
}

# fmt: on


def load_elements(data, size):
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data) - size + 1, size)]


def store_elements(bits, size):
    return b"".join((v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in bits)


def corrupt(folder, manifest, fn):
    """Applies an output mutation to the array of every buffer that the launch changed."""
    for b in manifest.get("buffers", []):
        path = os.path.join(folder, b["out"])
        if not os.path.exists(path):
            continue
        if fn is None:
            os.remove(path)
            continue
        with open(path, "rb") as f:
            after = f.read()
        with open(os.path.join(folder, b["file"]), "rb") as f:
            before = f.read()
        size = SIZES.get(b["type"], 1)
        guarded = before[:64] == b"\xa5" * 64 and before[-64:] == b"\xa5" * 64 and len(before) > 128
        if not guarded:
            if fn("i32", [1])[:1] == ["input"] and after == before and after:
                after = bytes([after[0] ^ 1]) + after[1:]
        else:
            bits = load_elements(after[64:-64], size)
            new = fn(b["type"], bits)
            if new and new[0] == "input":
                continue
            tail = after[-64:]
            if new and new[-1] == "guard":
                new, tail = new[:-1], b"\x00" + tail[1:]
            after = after[:64] + store_elements(new, size) + tail
        with open(path, "wb") as f:
            f.write(after)


def serve(name, command):
    """The mutant as an implementation with a batch mode."""
    kind, fn = MUTANTS[name][0]
    if sys.argv[-1] == "--describe":
        can = execute.describe(command)
        can.update(name=f"{can.get('name')} with {name}", batch=True)
        if len(MUTANTS[name]) > 2 and MUTANTS[name][2] == "legal":
            can["profile"] = "language"
        print(json.dumps(can))
        return
    inner = subprocess.Popen(
        shlex.split(command) + ["--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for line in sys.stdin:
        folder = line.rstrip("\n")
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            manifest = json.load(f)
        changed = kind != "text"
        kernel = os.path.join(folder, manifest["kernel"])
        if kind == "text" and manifest["form"] == "text":
            with open(kernel, encoding="utf-8") as f:
                text = f.read()
            new = fn(text)
            changed = new != text
            with open(kernel, "w", encoding="utf-8") as f:
                f.write(new)
        inner.stdin.write(line)
        inner.stdin.flush()
        inner.stdout.readline()
        path = os.path.join(folder, "status.json")
        with open(path, encoding="utf-8") as f:
            status_ = json.load(f)
        if kind == "out" and status_["status"] == "ok":
            corrupt(folder, manifest, fn)
        elif kind == "status":
            status_ = fn(status_)
        elif not changed:
            status_ = {"status": "unsupported", "reason": "not mutated"}
        elif status_["status"] == "rejected" and manifest["goal"] == "run":
            # the rewritten kernel is no legal program: such a mutant says nothing
            status_ = {"status": "unsupported", "reason": "mutation is not legal here: " + str(status_.get("reason"))}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(status_, f)
        print("done", flush=True)


def main():
    p = argparse.ArgumentParser(description="Runs deliberately broken engines through the suite.")
    p.add_argument("--impl", required=True, metavar="COMMAND", help="a correct implementation with a batch mode")
    p.add_argument("--suite", action="append", required=True, metavar="PATH")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="mutants")
    p.add_argument("--most", type=int, default=60, help="cases for each mutant and pattern")
    p.add_argument("--write", action="store_true", help="write mutants.json")
    p.add_argument("--serve", metavar="MUTANT", help=argparse.SUPPRESS)
    p.add_argument("--batch", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    a.impl = execute.command_of(a.impl)
    if a.serve:
        serve(a.serve, a.impl)
        return 0
    lock = threading.Lock()
    everything = suite.find(a.suite, lock)
    # a case that the implementation itself fails says nothing about a mutant
    scores, missed, start = {}, [], time.time()
    options = {
        "timeout": 20,
        "form": "text",
        "jobs": os.cpu_count() or 1,
        "keep": None,
        "assembler": None,
        "tmp": "/dev/shm" if os.path.isdir("/dev/shm") else None,
    }
    healthy = {}

    def run(command, cases):
        out = {}
        execute.run_all(
            command, execute.describe(command), cases, options, lambda r: out.__setitem__(r["case"], r["verdict"])
        )
        return out

    for name, (mutation, patterns, *rest) in MUTANTS.items():
        if a.only and not any(fnmatch.fnmatchcase(name, g) for g in a.only):
            continue
        chosen = {}
        for pattern in patterns:
            some = [c for c in everything if fnmatch.fnmatchcase(c.name, pattern)]
            step = max(1, len(some) // a.most)
            chosen.update({c.name: c for c in some[::step][: a.most]})
        cases = [chosen[n] for n in sorted(chosen)]
        unknown = [c for c in cases if c.name not in healthy]
        if unknown:
            healthy.update(run(a.impl, unknown))
        cases = [c for c in cases if healthy[c.name] == "pass"]
        command = shlex.join(
            [sys.executable, os.path.abspath(__file__), "--impl", a.impl, "--suite", "none", "--serve", name]
        )
        verdicts = run(command, cases)
        judged = [v for v in verdicts.values() if v not in ("unsupported", "skipped")]
        caught = sum(v in report.FAILURES for v in judged)
        legal = "legal" in rest
        good = (caught == 0 and judged) if legal else caught > 0
        families = sorted({n.split("/")[0] for n, v in verdicts.items() if v in report.FAILURES})
        scores[name] = {
            "cases": len(judged),
            "caught": caught,
            "families": families,
            **({"legal": True} if legal else {}),
        }
        if not good:
            missed.append(name)
        print(
            f"{'ok    ' if good else 'MISSED'} {name:32} {caught} of {len(judged)}"
            + (" (legal: none may be)" if legal else ""),
            flush=True,
        )
    bare = sorted({c.name.split("/")[0] for c in everything} - {f for s in scores.values() for f in s["families"]})
    if bare and not a.only:
        print(f"families in which no mutant was caught: {', '.join(bare)}")
        missed += bare
    print(
        f"{len(scores) - len([m for m in missed if m in scores])} of {len(scores)} mutants judged rightly in {time.time() - start:.0f} s"
        + (f"; not: {', '.join(missed)}" if missed else "")
    )
    if a.write:
        if a.only:  # the scores of the others stay
            with open(os.path.join(HERE, "mutants.json"), encoding="utf-8") as f:
                scores = {**json.load(f), **scores}
        scores = {name: scores[name] for name in MUTANTS if name in scores}
        with open(os.path.join(HERE, "mutants.json"), "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(s)}" for n, s in scores.items()) + "\n}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
