"""Programs in text form that must be rejected: element types by table, everything else by hand. `<<` marks the line that is wrong."""

from families.case import Case
from oracle.formats import BASE, F, INT

ALL = list(INT) + ["i4"] + list(F)
ARGS = "%p: tile<ptr<f32>>, %q: tile<ptr<i32>>, %i: tile<i32>, %j: tile<i64>, %f: tile<f32>, %h: tile<f16>, %d: tile<f64>, %c: tile<i1>, %b: tile<i8>"
I, S = ("invalid",), ("malformed",)
EITHER = ("malformed", "invalid")  # the rule may be applied while reading or afterwards
TV = "tensor_view<8x16xf32, strides=[16,1]>"
PV = f"partition_view<tile=(4x4), {TV}>"

# Operations of one type: (text, legal element types)
ONE_TYPE = [(f"{op} %a, %b : T", INT) for op in ("addi", "subi", "muli", "mulhii", "shli", "andi", "ori", "xori")]
ONE_TYPE += [(f"{op} %a, %b signed : T", INT) for op in ("divi", "remi", "maxi", "mini", "shri")]
ONE_TYPE += [(f"{op} %a : T", INT) for op in ("absi", "negi")]
ONE_TYPE += [
    (f"{op} %a, %b : T", BASE) for op in ("addf", "subf", "mulf", "divf", "remf", "maxf", "minf", "pow", "atan2")
]
ONE_TYPE += [
    (f"{op} %a : T", BASE)
    for op in (
        "absf",
        "negf",
        "ceil",
        "floor",
        "sqrt",
        "rsqrt",
        "exp",
        "exp2",
        "log",
        "log2",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
    )
]
ONE_TYPE += [
    ("fma %a, %b, %a : T", BASE),
    ("cmpi less_than %a, %b, signed : T -> tile<i1>", INT),
    ("cmpf less_than ordered %a, %b : T -> tile<i1>", BASE),
    ("fpowi %a, %n : T, tile<i32>", BASE),
]


def module(body, args=ARGS, head=()):
    """Text, and the number of the marked line."""
    lines = (
        ["cuda_tile.module @m {", *[f"  {h}" for h in head], f"  entry @k({args}) {{"]
        + ["    " + line for line in body]
        + ["  }", "}"]
    )
    at = [i for i, line in enumerate(lines) if line.rstrip().endswith("<<")]
    text = "\n".join(line.rstrip().removesuffix("<<").rstrip() for line in lines) + "\n"
    return text, at[0] + 1 if at else None


def case(name, classes, text, line, ops=(), types=(), tier="standard"):
    c = Case("reject_text", name, tier, ops, types)
    c.kernel = text.encode()
    c.reject(classes, line)
    return c


def by_element_type():
    for text, legal in ONE_TYPE:
        op = text.split()[0]
        for t in ALL:
            if t in legal:
                continue
            # types of one family are alike; keep those that a mistake would let through
            if (
                legal is INT
                and t not in ("i4", "f32", "f16", "f8E4M3FN")
                or legal is BASE
                and t not in ("i32", "i1", "tf32", "f8E5M2", "f8E8M0FNU")
            ):
                continue
            body, line = module(
                [f"%r = {text.replace('T', f'tile<{t}>', 1)}  <<"], f"%a: tile<{t}>, %b: tile<{t}>, %n: tile<i32>"
            )
            yield case(
                f"element.{op}.{t}",
                I,
                body,
                line,
                [op],
                [t],
                "smoke" if (op, t) in (("addi", "f32"), ("addf", "i32")) else "standard",
            )


def by_conversion():
    rows = []
    for op, a, b, words in (
        ("exti", "i32", "i32", " signed"),
        ("exti", "i32", "i8", " signed"),
        ("exti", "f32", "i64", " signed"),
        ("exti", "i8", "f32", " unsigned"),
        ("trunci", "i8", "i8", ""),
        ("trunci", "i8", "i32", ""),
        ("trunci", "f32", "i8", ""),
        ("ftof", "f32", "f32", ""),
        ("ftof", "i32", "f32", ""),
        ("ftof", "f32", "i32", ""),
        ("ftoi", "i32", "i32", " signed"),
        ("ftoi", "f32", "f64", " signed"),
        ("ftoi", "f32", "i4", " signed"),
        ("itof", "f32", "f32", " signed"),
        ("itof", "i32", "i64", " signed"),
        ("itof", "i32", "f8E8M0FNU", " signed"),
        ("itof", "i4", "f32", " signed"),
        ("bitcast", "i32", "f64", ""),
        ("bitcast", "f32", "tf32", ""),
        ("bitcast", "i8", "i1", ""),
        ("bitcast", "i4", "f4E2M1FN", ""),
        ("bitcast", "ptr<f32>", "i64", ""),
        ("bitcast", "i64", "ptr<f32>", ""),
        ("int_to_ptr", "i32", "ptr<f32>", ""),
        ("int_to_ptr", "i64", "i64", ""),
        ("ptr_to_int", "ptr<f32>", "i32", ""),
        ("ptr_to_int", "i64", "i64", ""),
        ("ptr_to_ptr", "ptr<f32>", "i64", ""),
        ("ptr_to_ptr", "i64", "ptr<f32>", ""),
        ("ftof", "f32", "f8E8M0FNU", ""),
        ("ftof", "f32", "f8E8M0FNU", " rounding<negative_inf>"),
        ("ftof", "f32", "f16", " rounding<approx>"),
        ("ftof", "f32", "f16", " rounding<full>"),
        ("ftof", "f32", "f8E4M3FN", " rounding<zero>"),
        ("ftoi", "f32", "i32", " signed rounding<nearest_even>"),
        ("itof", "i32", "f32", " signed rounding<zero>"),
    ):
        rows.append(
            (
                f"convert.{op}.{a.replace('<', '_').replace('>', '')}.{b.replace('<', '_').replace('>', '')}{words.replace(' ', '.').replace('<', '_').replace('>', '')}",
                op,
                f"{op} %a{words} : tile<{a}> -> tile<{b}>",
                a,
            )
        )
    for name, op, text, a in rows:
        body, line = module([f"%r = {text}  <<"], f"%a: tile<{a}>")
        yield case(name, EITHER if "rounding" in text else I, body, line, [op])


# name, classes, lines of the body; one case a line
# fmt: off
BODIES = [
    # Names and structure
    ("name.undefined", I, ["%r = addi %i, %nowhere : tile<i32>  <<"]),
    ("name.used_before", I, ["%r = addi %i, %s : tile<i32>  <<", "%s = addi %i, %i : tile<i32>"]),
    ("name.twice", I, ["%r = addi %i, %i : tile<i32>", "%r = addi %i, %i : tile<i32>  <<"]),
    ("name.twice_in_region", I, ["%r = addi %i, %i : tile<i32>", "if %c {", "  %r = addi %i, %i : tile<i32>  <<", "}"]),
    ("name.of_parameter", I, ["%i = addi %j, %j : tile<i64>  <<"]),
    ("name.from_inner_region", I, ["if %c {", "  %s = addi %i, %i : tile<i32>", "}", "%r = addi %s, %i : tile<i32>  <<"]),
    ("name.from_other_branch", I, ["if %c {", "  %s = addi %i, %i : tile<i32>", "} else {", "  %r = addi %s, %i : tile<i32>  <<", "}"]),
    ("name.too_few_results", I, ["%x, %y = get_tile_block_id : tile<i32>  <<"]),
    ("name.too_many_results", I, ["%x, %y = addi %i, %i : tile<i32>  <<"]),
    ("name.result_of_none", I, ["%x = assert %c, \"no\" : tile<i1>  <<"]),
    ("name.selector_beyond", I, ["%x:3 = get_tile_block_id : tile<i32>", "%r = addi %x#3, %i : tile<i32>  <<"]),
    ("syntax.unknown_operation", S, ["%r = addq %i, %i : tile<i32>  <<"]),
    ("syntax.missing_comma", S, ["%r = addi %i %i : tile<i32>  <<"]),
    ("syntax.missing_type", S, ["%r = addi %i, %i  <<"]),
    ("syntax.missing_operand", S, ["%r = addi %i, : tile<i32>  <<"]),
    ("syntax.extra_operand", S, ["%r = addi %i, %i, %i : tile<i32>  <<"]),
    ("syntax.unknown_modifier", S, ["%r = addi %i, %i saturating : tile<i32>  <<"]),
    ("syntax.unknown_overflow", S, ["%r = addi %i, %i overflow<wrap> : tile<i32>  <<"]),
    ("syntax.two_roundings", S, ["%r = addf %f, %f rounding<zero, nearest_even> : tile<f32>  <<"]),
    ("syntax.unknown_rounding", S, ["%r = addf %f, %f rounding<up> : tile<f32>  <<"]),
    ("syntax.missing_signedness.maxi", EITHER, ["%r = maxi %i, %i : tile<i32>  <<"]),
    ("syntax.missing_signedness.divi", EITHER, ["%r = divi %i, %i : tile<i32>  <<"]),
    ("syntax.missing_signedness.shri", EITHER, ["%r = shri %i, %i : tile<i32>  <<"]),
    ("syntax.missing_signedness.exti", EITHER, ["%r = exti %i : tile<i32> -> tile<i64>  <<"]),
    ("syntax.missing_signedness.itof", EITHER, ["%r = itof %i : tile<i32> -> tile<f32>  <<"]),
    ("syntax.missing_signedness.ftoi", EITHER, ["%r = ftoi %f : tile<f32> -> tile<i32>  <<"]),
    ("syntax.missing_signedness.cmpi", EITHER, ["%r = cmpi equal %i, %i : tile<i32> -> tile<i1>  <<"]),
    ("syntax.unknown_signedness", S, ["%r = maxi %i, %i sign : tile<i32>  <<"]),
    ("syntax.unknown_predicate", S, ["%r = cmpi less %i, %i, signed : tile<i32> -> tile<i1>  <<"]),
    ("syntax.missing_predicate", EITHER, ["%r = cmpi %i, %i, signed : tile<i32> -> tile<i1>  <<"]),
    ("syntax.missing_ordering", EITHER, ["%r = cmpf equal %f, %f : tile<f32> -> tile<i1>  <<"]),
    ("syntax.signed_float", S, ["%r = addf %f, %f signed : tile<f32>  <<"]),
    ("syntax.memory_ordering", S, ["%x, %t = load_ptr_tko strong %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("syntax.memory_scope", S, ["%x, %t = load_ptr_tko relaxed gpu %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("syntax.missing_ordering_word", EITHER, ["%x, %t = load_ptr_tko %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("syntax.rmw_mode", S, ["%x, %t = atomic_rmw_tko relaxed device %q, nand, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    ("syntax.string_not_closed", S, ["assert %c, \"no : tile<i1>  <<"]),
    ("syntax.bad_escape", S, ["assert %c, \"a\\qb\" : tile<i1>  <<"]),
    ("syntax.character", S, ["%r = addi %i, %i ; tile<i32>  <<"]),
    ("syntax.missing_message", S, ["assert %c : tile<i1>  <<"]),
    ("syntax.selector_not_number", S, ["%x:3 = get_tile_block_id : tile<i32>", "%r = addi %x#a, %i : tile<i32>  <<"]),
    # Types
    ("type.three", EITHER, ["%r = constant <f32: 0.0> : tile<3xf32>  <<"]),
    ("type.zero", EITHER, ["%r = constant <f32: 0.0> : tile<0xf32>  <<"]),
    ("type.negative", S, ["%r = constant <f32: 0.0> : tile<-4xf32>  <<"]),
    ("type.dynamic_tile", S, ["%r = constant <f32: 0.0> : tile<?xf32>  <<"]),
    ("type.too_large", EITHER, ["%r = constant <f32: 0.0> : tile<33554432xf32>  <<"]),
    ("type.product_too_large", EITHER, ["%r = constant <f32: 0.0> : tile<8192x4096xf32>  <<"]),
    ("type.product_overflows", EITHER, ["%r = constant <f32: 0.0> : tile<8589934592x8589934592xf32>  <<"]),
    ("type.extent_overflows", EITHER, ["%r = constant <f32: 0.0> : tile<18446744073709551616xf32>  <<"]),
    ("type.unknown_element", S, ["%r = constant <f31: 0.0> : tile<4xf31>  <<"]),
    ("type.i2", S, ["%r = addi %i, %i : tile<i2>  <<"]),
    ("type.f4_scalar", EITHER, ["%r = constant <f4E2M1FN: 0x0> : tile<f4E2M1FN>  <<"]),
    ("type.f4_of_ones", EITHER, ["%r = constant <f4E2M1FN: 0x0> : tile<1x1xf4E2M1FN>  <<"]),
    ("type.ptr_of_i4", EITHER, ["%r = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<i4>>  <<"]),
    ("type.ptr_of_ptr", EITHER, ["%r = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<ptr<f32>>>  <<"]),
    ("type.view_without_strides", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32>  <<"]),
    ("type.view_too_few_strides", EITHER, ["%v = make_tensor_view %p, shape = [8, 8], strides = [1] : tensor_view<8x8xf32, strides=[1]>  <<"]),
    ("type.view_stride_zero", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [0] : tensor_view<8xf32, strides=[0]>  <<"]),
    ("type.view_stride_negative", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [-1] : tensor_view<8xf32, strides=[-1]>  <<"]),
    ("type.view_size_zero", EITHER, ["%v = make_tensor_view %p, shape = [0], strides = [1] : tensor_view<0xf32, strides=[1]>  <<"]),
    ("type.partition_three", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>",
                                      "%w = make_partition_view %v : partition_view<tile=(3), tensor_view<8xf32, strides=[1]>>  <<"]),
    ("type.partition_rank", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>",
                                     "%w = make_partition_view %v : partition_view<tile=(2x2), tensor_view<8xf32, strides=[1]>>  <<"]),
    ("type.partition_padding_of_int", EITHER, ["%v = make_tensor_view %q, shape = [8], strides = [1] : tensor_view<8xi32, strides=[1]>",
                                               "%w = make_partition_view %v : partition_view<tile=(4), padding_value = nan, tensor_view<8xi32, strides=[1]>>  <<"]),
    ("type.partition_padding_word", S, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>",
                                        "%w = make_partition_view %v : partition_view<tile=(4), padding_value = one, tensor_view<8xf32, strides=[1]>>  <<"]),
    ("type.partition_map_twice", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_partition_view %v : partition_view<tile=(4x4), {TV}, dim_map=[0, 0]>  <<"]),
    ("type.partition_map_beyond", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_partition_view %v : partition_view<tile=(4x4), {TV}, dim_map=[0, 2]>  <<"]),
    ("type.partition_map_short", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_partition_view %v : partition_view<tile=(4x4), {TV}, dim_map=[0]>  <<"]),
    ("type.strided_step_zero", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_strided_view %v : strided_view<tile=(4x4), traversal_strides=[0,4], {TV}>  <<"]),
    ("type.strided_steps_short", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_strided_view %v : strided_view<tile=(4x4), traversal_strides=[4], {TV}>  <<"]),
    ("type.gather_sparse_beyond", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_gather_scatter_view %v : gather_scatter_view<tile=(4x4), {TV}, sparse_dim=2>  <<"]),
    ("type.gather_without_sparse", S, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_gather_scatter_view %v : gather_scatter_view<tile=(4x4), {TV}>  <<"]),
    ("type.view_without_tensor", EITHER, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", "%w = make_partition_view %v : partition_view<tile=(4x4), tile<8x16xf32>>  <<"]),
    ("type.other_than_value", I, ["%r = addi %j, %j : tile<i32>  <<"]),
    ("type.shapes_differ", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = addi %i, %x : tile<i32>  <<"]),
    # Literals
    ("literal.i8_300", S, ["%r = constant <i8: 300> : tile<i8>  <<"]),
    ("literal.i8_m129", S, ["%r = constant <i8: -129> : tile<i8>  <<"]),
    ("literal.i16_65536", S, ["%r = constant <i16: 65536> : tile<i16>  <<"]),
    ("literal.i1_2", S, ["%r = constant <i1: 2> : tile<i1>  <<"]),
    ("literal.i64_too_large", S, ["%r = constant <i64: 9223372036854775808> : tile<i64>  <<"]),
    ("literal.i64_hex_too_large", S, ["%r = constant <i64: 0xFFFFFFFFFFFFFFFF> : tile<i64>  <<"]),
    ("literal.float_for_int", S, ["%r = constant <i32: 1.0> : tile<i32>  <<"]),
    ("literal.int_for_float", S, ["%r = constant <f32: 1> : tile<f32>  <<"]),
    ("literal.true_for_i8", S, ["%r = constant <i8: true> : tile<i8>  <<"]),
    ("literal.nan_word", S, ["%r = constant <f32: nan> : tile<f32>  <<"]),
    ("literal.inf_word", S, ["%r = constant <f32: inf> : tile<f32>  <<"]),
    ("literal.hex_too_wide", S, ["%r = constant <f16: 0x10000> : tile<f16>  <<"]),
    ("literal.hex_f4_too_wide", S, ["%r = constant <f4E2M1FN: 0x10> : tile<2xf4E2M1FN>  <<"]),
    ("literal.hex_tf32_too_wide", S, ["%r = constant <tf32: 0x80000> : tile<tf32>  <<"]),
    ("literal.hex_negative", S, ["%r = constant <f32: -0x3F800000> : tile<f32>  <<"]),
    ("literal.exponent_without_digits", S, ["%r = constant <f32: 1.0e> : tile<f32>  <<"]),
    ("literal.hex_without_digits", S, ["%r = constant <i32: 0x> : tile<i32>  <<"]),
    ("literal.underscore", S, ["%r = constant <i32: 1_000> : tile<i32>  <<"]),
    ("literal.too_few", EITHER, ["%r = constant <i32: [1, 2, 3]> : tile<4xi32>  <<"]),
    ("literal.too_many", EITHER, ["%r = constant <i32: [1, 2, 3, 4, 5]> : tile<4xi32>  <<"]),
    ("literal.ragged", EITHER, ["%r = constant <i32: [[1, 2], [3]]> : tile<2x2xi32>  <<"]),
    ("literal.too_deep", EITHER, ["%r = constant <i32: [[1], [2]]> : tile<2xi32>  <<"]),
    ("literal.too_flat", EITHER, ["%r = constant <i32: [1, 2, 3, 4]> : tile<2x2xi32>  <<"]),
    ("literal.empty", EITHER, ["%r = constant <i32: []> : tile<1xi32>  <<"]),
    ("literal.list_for_scalar", EITHER, ["%r = constant <i32: [1]> : tile<i32>  <<"]),
    ("literal.element_differs", EITHER, ["%r = constant <i32: 1> : tile<4xi64>  <<"]),
    ("literal.i4", EITHER, ["%r = constant <i4: 1> : tile<2xi4>  <<"]),
    ("literal.ptr", EITHER, ["%r = constant <ptr<f32>: 0> : tile<ptr<f32>>  <<"]),
    # Modifiers
    ("modifier.ftz_f16", I, ["%r = addf %h, %h flush_to_zero : tile<f16>  <<"]),
    ("modifier.ftz_f64", I, ["%r = mulf %d, %d flush_to_zero : tile<f64>  <<"]),
    ("modifier.ftz_exp2_f16", I, ["%r = exp2 %h flush_to_zero : tile<f16>  <<"]),
    ("modifier.ftz_maxf_f64", I, ["%r = maxf %d, %d flush_to_zero : tile<f64>  <<"]),
    ("modifier.approx_addf", EITHER, ["%r = addf %f, %f rounding<approx> : tile<f32>  <<"]),
    ("modifier.full_mulf", EITHER, ["%r = mulf %f, %f rounding<full> : tile<f32>  <<"]),
    ("modifier.approx_divf_f64", EITHER, ["%r = divf %d, %d rounding<approx> : tile<f64>  <<"]),
    ("modifier.full_divf_f16", EITHER, ["%r = divf %h, %h rounding<full> : tile<f16>  <<"]),
    ("modifier.full_sqrt", EITHER, ["%r = sqrt %f rounding<full> : tile<f32>  <<"]),
    ("modifier.approx_sqrt_f64", EITHER, ["%r = sqrt %d rounding<approx> : tile<f64>  <<"]),
    ("modifier.zero_exp", EITHER, ["%r = exp %f rounding<zero> : tile<f32>  <<"]),
    ("modifier.approx_exp_f16", EITHER, ["%r = exp %h rounding<approx> : tile<f16>  <<"]),
    ("modifier.nearest_tanh", EITHER, ["%r = tanh %f rounding<nearest_even> : tile<f32>  <<"]),
    ("modifier.approx_tanh_f64", EITHER, ["%r = tanh %d rounding<approx> : tile<f64>  <<"]),
    ("modifier.divi_unsigned_floor", EITHER, ["%r = divi %i, %i unsigned rounding<negative_inf> : tile<i32>  <<"]),
    ("modifier.divi_nearest", EITHER, ["%r = divi %i, %i signed rounding<nearest_even> : tile<i32>  <<"]),
    ("modifier.negi_unsigned_wrap", EITHER, ["%r = negi %i overflow<no_unsigned_wrap> : tile<i32>  <<"]),
    ("modifier.propagate_twice", S, ["%r = maxf %f, %f propagate_nan propagate_nan : tile<f32>  <<"]),
    ("modifier.ftz_integer", S, ["%r = addi %i, %i flush_to_zero : tile<i32>  <<"]),
    # Comparisons and selections
    ("compare.result_not_i1", I, ["%r = cmpi equal %i, %i, signed : tile<i32> -> tile<i32>  <<"]),
    ("compare.result_shape", I, ["%r = cmpi equal %i, %i, signed : tile<i32> -> tile<4xi1>  <<"]),
    ("select.condition_not_i1", I, ["%r = select %i, %f, %f : tile<i32>, tile<f32>  <<"]),
    ("select.scalar_condition", I, ["%x = constant <f32: 1.0> : tile<4xf32>", "%r = select %c, %x, %x : tile<i1>, tile<4xf32>  <<"]),
    ("select.branches_differ", I, ["%r = select %c, %f, %d : tile<i1>, tile<f32>  <<"]),
    # Shapes
    ("shape.iota_rank", I, ["%r = iota : tile<2x4xi32>  <<"]),
    ("shape.iota_scalar", I, ["%r = iota : tile<i32>  <<"]),
    ("shape.iota_float", I, ["%r = iota : tile<4xf32>  <<"]),
    ("shape.iota_i8_512", I, ["%r = iota : tile<512xi8>  <<"]),
    ("shape.iota_i1_4", I, ["%r = iota : tile<4xi1>  <<"]),
    ("shape.broadcast_rank", I, ["%r = broadcast %i : tile<i32> -> tile<4xi32>  <<"]),
    ("shape.broadcast_two_to_four", I, ["%x = constant <i32: 1> : tile<2xi32>", "%r = broadcast %x : tile<2xi32> -> tile<4xi32>  <<"]),
    ("shape.broadcast_shrink", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = broadcast %x : tile<4xi32> -> tile<1xi32>  <<"]),
    ("shape.broadcast_element", I, ["%x = constant <i32: 1> : tile<1xi32>", "%r = broadcast %x : tile<1xi32> -> tile<4xi64>  <<"]),
    ("shape.reshape_count", I, ["%x = constant <i32: 1> : tile<8xi32>", "%r = reshape %x : tile<8xi32> -> tile<4x4xi32>  <<"]),
    ("shape.reshape_element", I, ["%x = constant <i32: 1> : tile<8xi32>", "%r = reshape %x : tile<8xi32> -> tile<8xf32>  <<"]),
    ("shape.permute_rank_1", I, ["%x = constant <i32: 1> : tile<8xi32>", "%r = permute %x [0] : tile<8xi32> -> tile<8xi32>  <<"]),
    ("shape.permute_length", I, ["%x = constant <i32: 1> : tile<2x4xi32>", "%r = permute %x [1] : tile<2x4xi32> -> tile<4x2xi32>  <<"]),
    ("shape.permute_twice", I, ["%x = constant <i32: 1> : tile<2x4xi32>", "%r = permute %x [1, 1] : tile<2x4xi32> -> tile<4x2xi32>  <<"]),
    ("shape.permute_beyond", I, ["%x = constant <i32: 1> : tile<2x4xi32>", "%r = permute %x [1, 2] : tile<2x4xi32> -> tile<4x2xi32>  <<"]),
    ("shape.permute_result", I, ["%x = constant <i32: 1> : tile<2x4xi32>", "%r = permute %x [1, 0] : tile<2x4xi32> -> tile<2x4xi32>  <<"]),
    ("shape.cat_dim_beyond", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = cat %x, %x dim = 1 : tile<4xi32>, tile<4xi32> -> tile<8xi32>  <<"]),
    ("shape.cat_dim_negative", EITHER, ["%x = constant <i32: 1> : tile<4xi32>", "%r = cat %x, %x dim = -1 : tile<4xi32>, tile<4xi32> -> tile<8xi32>  <<"]),
    ("shape.cat_sum", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = cat %x, %x dim = 0 : tile<4xi32>, tile<4xi32> -> tile<16xi32>  <<"]),
    ("shape.cat_other_dim", I, ["%x = constant <i32: 1> : tile<4x2xi32>", "%y = constant <i32: 1> : tile<4x4xi32>", "%r = cat %x, %y dim = 0 : tile<4x2xi32>, tile<4x4xi32> -> tile<8x4xi32>  <<"]),
    ("shape.cat_element", I, ["%x = constant <i32: 1> : tile<4xi32>", "%y = constant <i64: 1> : tile<4xi64>", "%r = cat %x, %y dim = 0 : tile<4xi32>, tile<4xi64> -> tile<8xi32>  <<"]),
    ("shape.extract_rank", I, ["%x = constant <i32: 1> : tile<4x4xi32>", "%r = extract %x[%i, %i] : tile<4x4xi32> -> tile<2xi32>  <<"]),
    ("shape.extract_divide", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = extract %x[%i] : tile<4xi32> -> tile<8xi32>  <<"]),
    ("shape.extract_index_count", I, ["%x = constant <i32: 1> : tile<4x4xi32>", "%r = extract %x[%i] : tile<4x4xi32> -> tile<2x2xi32>  <<"]),
    ("shape.extract_index_type", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = extract %x[%j] : tile<4xi32> -> tile<2xi32>  <<"]),
    ("shape.extract_element", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = extract %x[%i] : tile<4xi32> -> tile<2xi64>  <<"]),
    ("shape.insert_divide", I, ["%x = constant <i32: 1> : tile<8xi32>", "%y = constant <i32: 1> : tile<4xi32>", "%r = insert %x, %y[%i] : tile<8xi32>, tile<4xi32>  <<"]),
    ("shape.insert_element", I, ["%x = constant <i64: 1> : tile<2xi64>", "%y = constant <i32: 1> : tile<4xi32>", "%r = insert %x, %y[%i] : tile<2xi64>, tile<4xi32>  <<"]),
    ("shape.insert_index_type", I, ["%x = constant <i32: 1> : tile<2xi32>", "%y = constant <i32: 1> : tile<4xi32>", "%r = insert %x, %y[%j] : tile<2xi32>, tile<4xi32>  <<"]),
    ("shape.pack_rank", I, ["%x = constant <i32: 1> : tile<2x2xi32>", "%r = pack %x : tile<2x2xi32> -> tile<16xi8>  <<"]),
    ("shape.pack_i8", I, ["%x = constant <i8: 1> : tile<4xi8>", "%r = pack %x : tile<4xi8> -> tile<4xi8>  <<"]),
    ("shape.pack_count", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = pack %x : tile<4xi32> -> tile<8xi8>  <<"]),
    ("shape.pack_result", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = pack %x : tile<4xi32> -> tile<8xi16>  <<"]),
    ("shape.pack_bits", I, ["%x = constant <i1: 1> : tile<4xi1>", "%r = pack %x : tile<4xi1> -> tile<1xi8>  <<"]),
    ("shape.unpack_source", I, ["%x = constant <i16: 1> : tile<4xi16>", "%r = unpack %x : tile<4xi16> -> tile<2xi32>  <<"]),
    ("shape.unpack_count", I, ["%x = constant <i8: 1> : tile<8xi8>", "%r = unpack %x : tile<8xi8> -> tile<4xi32>  <<"]),
    ("shape.conversion_shape", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = itof %x signed : tile<4xi32> -> tile<2x2xf32>  <<"]),
    ("shape.offset_shape", I, ["%x = constant <i32: 1> : tile<4xi32>", "%r = offset %p, %x : tile<ptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>  <<"]),
    ("shape.offset_float", I, ["%r = offset %p, %f : tile<ptr<f32>>, tile<f32> -> tile<ptr<f32>>  <<"]),
    ("shape.offset_result", I, ["%r = offset %p, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<i32>>  <<"]),
    ("shape.offset_of_int", I, ["%r = offset %j, %i : tile<i64>, tile<i32> -> tile<i64>  <<"]),
    ("shape.block_id_i64", I, ["%x, %y, %z = get_tile_block_id : tile<i64>  <<"]),
    ("shape.grid_i8", I, ["%x, %y, %z = get_num_tile_blocks : tile<i8>  <<"]),
    # Memory
    ("memory.load_shape", I, ["%x, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<4xf32>, token  <<"]),
    ("memory.load_element", I, ["%x, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<i32>, token  <<"]),
    ("memory.load_release", EITHER, ["%x, %t = load_ptr_tko release device %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("memory.load_acq_rel", EITHER, ["%x, %t = load_ptr_tko acq_rel device %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("memory.load_weak_scope", EITHER, ["%x, %t = load_ptr_tko weak device %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("memory.load_relaxed_no_scope", EITHER, ["%x, %t = load_ptr_tko relaxed %p : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("memory.load_mask_type", I, ["%x, %t = load_ptr_tko weak %p, %i : tile<ptr<f32>>, tile<i32> -> tile<f32>, token  <<"]),
    ("memory.load_mask_shape", I, ["%m = constant <i1: 1> : tile<4xi1>", "%x, %t = load_ptr_tko weak %p, %m : tile<ptr<f32>>, tile<4xi1> -> tile<f32>, token  <<"]),
    ("memory.load_padding_type", I, ["%x, %t = load_ptr_tko weak %p, %c, %d : tile<ptr<f32>>, tile<i1>, tile<f64> -> tile<f32>, token  <<"]),
    ("memory.load_of_int", I, ["%x, %t = load_ptr_tko weak %j : tile<i64> -> tile<i64>, token  <<"]),
    ("memory.load_token_type", I, ["%x, %t = load_ptr_tko weak %p token=%i : tile<ptr<f32>> -> tile<f32>, token  <<"]),
    ("memory.store_acquire", EITHER, ["%t = store_ptr_tko acquire device %p, %f : tile<ptr<f32>>, tile<f32> -> token  <<"]),
    ("memory.store_weak_scope", EITHER, ["%t = store_ptr_tko weak sys %p, %f : tile<ptr<f32>>, tile<f32> -> token  <<"]),
    ("memory.store_release_no_scope", EITHER, ["%t = store_ptr_tko release %p, %f : tile<ptr<f32>>, tile<f32> -> token  <<"]),
    ("memory.store_element", I, ["%t = store_ptr_tko weak %p, %i : tile<ptr<f32>>, tile<i32> -> token  <<"]),
    ("memory.store_shape", I, ["%x = constant <f32: 1.0> : tile<4xf32>", "%t = store_ptr_tko weak %p, %x : tile<ptr<f32>>, tile<4xf32> -> token  <<"]),
    ("memory.store_mask", I, ["%t = store_ptr_tko weak %p, %f, %b : tile<ptr<f32>>, tile<f32>, tile<i8> -> token  <<"]),
    ("memory.join_one", I, ["%t = make_token : token", "%u = join_tokens %t : token  <<"]),
    ("memory.join_tile", I, ["%t = make_token : token", "%u = join_tokens %t, %i : token  <<"]),
    ("memory.alloca_alignment", I, ["%a = alloca num_elem = 4, alignment = 3 : tile<ptr<f32>>  <<"]),
    ("memory.alloca_alignment_small", I, ["%a = alloca num_elem = 4, alignment = 2 : tile<ptr<f32>>  <<"]),
    ("memory.alloca_alignment_zero", I, ["%a = alloca num_elem = 4, alignment = 0 : tile<ptr<f32>>  <<"]),
    ("memory.alloca_negative", EITHER, ["%a = alloca num_elem = -1, alignment = 4 : tile<ptr<f32>>  <<"]),
    ("memory.alloca_rank", I, ["%a = alloca num_elem = 4, alignment = 4 : tile<2xptr<f32>>  <<"]),
    ("memory.alloca_not_pointer", I, ["%a = alloca num_elem = 4, alignment = 4 : tile<f32>  <<"]),
    # Views
    ("view.base_element", I, ["%v = make_tensor_view %q, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>  <<"]),
    ("view.base_tile", I, ["%x = constant <i64: 0> : tile<2xi64>", "%y = int_to_ptr %x : tile<2xi64> -> tile<2xptr<f32>>", "%v = make_tensor_view %y, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>  <<"]),
    ("view.constant_differs", EITHER, ["%v = make_tensor_view %p, shape = [7], strides = [1] : tensor_view<8xf32, strides=[1]>  <<"]),
    ("view.stride_differs", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [2] : tensor_view<8xf32, strides=[1]>  <<"]),
    ("view.dynamic_missing", EITHER, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<?xf32, strides=[1]>  <<"]),
    ("view.dynamic_extra", EITHER, ["%v = make_tensor_view %p, shape = [%i], strides = [1] : tile<i32> -> tensor_view<8xf32, strides=[1]>  <<"]),
    ("view.dynamic_types_differ", I, ["%v = make_tensor_view %p, shape = [%i, %j], strides = [8, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[8,1]>  <<"]),
    ("view.dynamic_float", I, ["%v = make_tensor_view %p, shape = [%f], strides = [1] : tile<f32> -> tensor_view<?xf32, strides=[1]>  <<"]),
    ("view.partition_of_tile", I, [f"%w = make_partition_view %f : {PV}  <<"]),
    ("view.partition_of_other", I, ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>", f"%w = make_partition_view %v : {PV}  <<"]),
    ("view.shape_count", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%a = get_tensor_shape %v : {TV} -> tile<i64>  <<"]),
    ("view.shape_of_view", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_partition_view %v : {PV}", f"%a, %e = get_tensor_shape %w : {PV} -> tile<i64>  <<"]),
    ("view.space_of_tensor", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%a, %e = get_index_space_shape %v : {TV} -> tile<i64>  <<"]),
    ("view.shape_float", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%a, %e = get_tensor_shape %v : {TV} -> tile<f32>  <<"]),
]


def with_view(*lines):
    return [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_partition_view %v : {PV}", *lines]


GV = f"gather_scatter_view<tile=(4x4), {TV}, sparse_dim=0>"


def with_gather(*lines):
    return [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%w = make_gather_scatter_view %v : {GV}", "%r4 = iota : tile<4xi32>", "%r8 = iota : tile<8xi32>", *lines]


BODIES += [
    ("view.load_index_count", I, with_view(f"%x, %t = load_view_tko weak %w[%i] : {PV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.load_index_types", I, with_view(f"%x, %t = load_view_tko weak %w[%i, %j] : {PV}, tile<i32>, tile<i64> -> tile<4x4xf32>, token  <<")),
    ("view.load_index_float", I, with_view(f"%x, %t = load_view_tko weak %w[%f, %f] : {PV}, tile<f32> -> tile<4x4xf32>, token  <<")),
    ("view.load_index_rank", I, with_view("%r = iota : tile<4xi32>", f"%x, %t = load_view_tko weak %w[%r, %r] : {PV}, tile<4xi32> -> tile<4x4xf32>, token  <<")),
    ("view.load_tile_shape", I, with_view(f"%x, %t = load_view_tko weak %w[%i, %i] : {PV}, tile<i32> -> tile<8x4xf32>, token  <<")),
    ("view.load_tile_element", I, with_view(f"%x, %t = load_view_tko weak %w[%i, %i] : {PV}, tile<i32> -> tile<4x4xf16>, token  <<")),
    ("view.load_release", EITHER, with_view(f"%x, %t = load_view_tko release device %w[%i, %i] : {PV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.load_weak_scope", EITHER, with_view(f"%x, %t = load_view_tko weak device %w[%i, %i] : {PV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.load_relaxed_no_scope", EITHER, with_view(f"%x, %t = load_view_tko relaxed %w[%i, %i] : {PV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.load_of_tensor", I, with_view(f"%x, %t = load_view_tko weak %v[%i, %i] : {TV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.load_inbounds_count", EITHER, with_view(f"%x, %t = load_view_tko weak %w[%i, %i] inbounds = [true] : {PV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.store_shape", I, with_view(f"%t = store_view_tko weak %f, %w[%i, %i] : tile<f32>, {PV}, tile<i32> -> token  <<")),
    ("view.store_acquire", EITHER, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = store_view_tko acquire device %x, %w[%i, %i] : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.store_index_count", I, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = store_view_tko weak %x, %w[%i, %i, %i] : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.gather_scalar_index", I, with_gather(f"%x, %t = load_view_tko weak %w[%i, %i] : {GV}, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.gather_index_length", I, with_gather(f"%x, %t = load_view_tko weak %w[%r8, %i] : {GV}, tile<8xi32>, tile<i32> -> tile<4x4xf32>, token  <<")),
    ("view.gather_dense_tile_index", I, with_gather(f"%x, %t = load_view_tko weak %w[%r4, %r4] : {GV}, tile<4xi32> -> tile<4x4xf32>, token  <<")),
    ("view.red_gather", I, with_gather("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko relaxed device %w[%r4, %i], addf, %x : tile<4x4xf32>, {GV}, tile<4xi32>, tile<i32> -> token  <<")),
    ("view.red_xchg", EITHER, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko relaxed device %w[%i, %i], xchg, %x : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.red_acquire", EITHER, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko acquire device %w[%i, %i], addf, %x : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.red_sys", EITHER, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko relaxed sys %w[%i, %i], addf, %x : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.red_add_float", I, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko relaxed device %w[%i, %i], add, %x : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    ("view.red_no_scope", EITHER, with_view("%x = constant <f32: 1.0> : tile<4x4xf32>", f"%t = atomic_red_view_tko relaxed %w[%i, %i], addf, %x : tile<4x4xf32>, {PV}, tile<i32> -> token  <<")),
    # Atomics
    ("atomic.weak", EITHER, ["%x, %t = atomic_rmw_tko weak device %q, add, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    ("atomic.no_scope", EITHER, ["%x, %t = atomic_rmw_tko relaxed %q, add, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    ("atomic.add_float", I, ["%x, %t = atomic_rmw_tko relaxed device %p, add, %f : tile<ptr<f32>>, tile<f32> -> tile<f32>, token  <<"]),
    ("atomic.addf_int", I, ["%x, %t = atomic_rmw_tko relaxed device %q, addf, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    ("atomic.max_float", I, ["%x, %t = atomic_rmw_tko relaxed device %p, max, %f : tile<ptr<f32>>, tile<f32> -> tile<f32>, token  <<"]),
    ("atomic.value_type", I, ["%x, %t = atomic_rmw_tko relaxed device %q, add, %j : tile<ptr<i32>>, tile<i64> -> tile<i64>, token  <<"]),
    ("atomic.mask", I, ["%x, %t = atomic_rmw_tko relaxed device %q, add, %i, %i : tile<ptr<i32>>, tile<i32>, tile<i32> -> tile<i32>, token  <<"]),
    ("atomic.i8", I, ["%y = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<i8>>", "%x, %t = atomic_rmw_tko relaxed device %y, add, %b : tile<ptr<i8>>, tile<i8> -> tile<i8>, token  <<"]),
    ("atomic.xchg_f16", I, ["%y = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<f16>>", "%x, %t = atomic_rmw_tko relaxed device %y, xchg, %h : tile<ptr<f16>>, tile<f16> -> tile<f16>, token  <<"]),
    ("atomic.cas_f16", I, ["%y = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<f16>>", "%x, %t = atomic_cas_tko relaxed device %y, %h, %h : tile<ptr<f16>>, tile<f16> -> tile<f16>, token  <<"]),
    ("atomic.cas_i8", I, ["%y = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<i8>>", "%x, %t = atomic_cas_tko relaxed device %y, %b, %b : tile<ptr<i8>>, tile<i8> -> tile<i8>, token  <<"]),
    ("atomic.cas_weak", EITHER, ["%x, %t = atomic_cas_tko weak device %q, %i, %i : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    ("atomic.cas_types", I, ["%x, %t = atomic_cas_tko relaxed device %q, %i, %j : tile<ptr<i32>>, tile<i32> -> tile<i32>, token  <<"]),
    # Matrix products
    ("mma.k_differs", I, ["%x = constant <f16: 0.0> : tile<4x8xf16>", "%y = constant <f16: 0.0> : tile<4x4xf16>", "%z = constant <f32: 0.0> : tile<4x4xf32>",
                          "%r = mmaf %x, %y, %z : tile<4x8xf16>, tile<4x4xf16>, tile<4x4xf32>  <<"]),
    ("mma.m_differs", I, ["%x = constant <f16: 0.0> : tile<4x8xf16>", "%y = constant <f16: 0.0> : tile<8x4xf16>", "%z = constant <f32: 0.0> : tile<8x4xf32>",
                          "%r = mmaf %x, %y, %z : tile<4x8xf16>, tile<8x4xf16>, tile<8x4xf32>  <<"]),
    ("mma.rank", I, ["%x = constant <f16: 0.0> : tile<8xf16>", "%z = constant <f32: 0.0> : tile<8xf32>", "%r = mmaf %x, %x, %z : tile<8xf16>, tile<8xf16>, tile<8xf32>  <<"]),
    ("mma.rank_mixed", I, ["%x = constant <f16: 0.0> : tile<1x4x4xf16>", "%y = constant <f16: 0.0> : tile<4x4xf16>", "%z = constant <f32: 0.0> : tile<4x4xf32>",
                           "%r = mmaf %x, %y, %z : tile<1x4x4xf16>, tile<4x4xf16>, tile<4x4xf32>  <<"]),
    ("mma.batch", I, ["%x = constant <f16: 0.0> : tile<2x4x4xf16>", "%y = constant <f16: 0.0> : tile<4x4x4xf16>", "%z = constant <f32: 0.0> : tile<2x4x4xf32>",
                      "%r = mmaf %x, %y, %z : tile<2x4x4xf16>, tile<4x4x4xf16>, tile<2x4x4xf32>  <<"]),
]
for _a, _b, _c in (("f16", "bf16", "f32"), ("bf16", "bf16", "f16"), ("f32", "f32", "f16"), ("f64", "f64", "f32"), ("tf32", "tf32", "tf32"), ("f8E4M3FN", "f8E5M2", "f32"), ("f16", "f16", "f64"),
                   ("f8E8M0FNU", "f8E8M0FNU", "f32"), ("f4E2M1FN", "f4E2M1FN", "f32"), ("i8", "i8", "i32"), ("f8E4M3FN", "f8E4M3FN", "bf16")):
    BODIES.append((f"mma.types.{_a}.{_b}.{_c}", I, [f"%x = constant <{_a}: {'0' if _a == 'i8' else '0x0'}> : tile<4x4x{_a}>", f"%y = constant <{_b}: {'0' if _b == 'i8' else '0x0'}> : tile<4x4x{_b}>",
                                                    f"%z = constant <{_c}: {'0' if _c == 'i32' else '0x0'}> : tile<4x4x{_c}>",
                                                    f"%r = mmaf %x, %y, %z : tile<4x4x{_a}>, tile<4x4x{_b}>, tile<4x4x{_c}>  <<"]))
for _a, _b, _c in (("i16", "i16", "i32"), ("i8", "i8", "i64"), ("i8", "i16", "i32"), ("i8", "i8", "f32")):
    BODIES.append((f"mma.int_types.{_a}.{_b}.{_c}", I, [f"%x = constant <{_a}: 0> : tile<4x4x{_a}>", f"%y = constant <{_b}: 0> : tile<4x4x{_b}>", f"%z = constant <{_c}: {'0.0' if _c == 'f32' else '0'}> : tile<4x4x{_c}>",
                                                        f"%r = mmai %x, %y, %z signed signed : tile<4x4x{_a}>, tile<4x4x{_b}>, tile<4x4x{_c}>  <<"]))
for _t, _s, _v in (("f8E4M3FN", "f8E8M0FNU", 16), ("f8E4M3FN", "f8E4M3FN", 32), ("f4E2M1FN", "f8E4M3FN", 32), ("f16", "f8E8M0FNU", 32), ("f4E2M1FN", "f8E8M0FNU", 8)):
    BODIES.append((f"mma.scaled.{_t}.{_s}.{_v}", I, [f"%x = constant <{_t}: 0x0> : tile<4x64x{_t}>", f"%y = constant <{_t}: 0x0> : tile<64x4x{_t}>", "%z = constant <f32: 0.0> : tile<4x4xf32>",
                                                     f"%s = constant <{_s}: 0x0> : tile<4x{64 // _v}x{_s}>", f"%u = constant <{_s}: 0x0> : tile<{64 // _v}x4x{_s}>",
                                                     f"%r = mmaf_scaled %x, %y, %z, %s, %u : tile<4x64x{_t}>, tile<64x4x{_t}>, tile<4x4xf32>, tile<4x{64 // _v}x{_s}>, tile<{64 // _v}x4x{_s}>  <<"]))

REDUCE = "%x = constant <i32: 1> : tile<4x8xi32>"


def reducing(op, tail, *body):
    return [REDUCE, f"%r = {op} %x dim=1 {tail}", *body]


SUM = ("  %s = addi %l, %m : tile<i32>", "  yield %s : tile<i32>", "}")
BODIES += [
    ("reduce.dim_beyond", I, [REDUCE, "%r = reduce %x dim=2 identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM]),
    ("reduce.dim_negative", EITHER, [REDUCE, "%r = reduce %x dim=-1 identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM]),
    ("reduce.result_shape", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<8xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.result_element", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi64>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.identity_count", I, reducing("reduce", "identities=[0 : i32, 0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.identity_type", I, reducing("reduce", "identities=[0.0 : f32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.identity_untyped", I, reducing("reduce", "identities=[0] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.argument_count", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>) {", "  yield %l : tile<i32>", "}")),
    ("reduce.argument_type", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i64>, %m: tile<i64>) {", "  %s = addi %l, %m : tile<i64>",
                                         "  yield %s : tile<i64>", "}")),
    ("reduce.yield_count", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {", "  yield %l, %m : tile<i32>, tile<i32>  <<", "}")),
    ("reduce.yield_type", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {", "  yield %j : tile<i64>  <<", "}")),
    ("reduce.no_yield", EITHER, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {", "  %s = addi %l, %m : tile<i32>", "}")),
    ("reduce.no_identities", S, reducing("reduce", ": tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("reduce.load_in_body", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {",
                                        "  %y, %t = load_ptr_tko weak %q : tile<ptr<i32>> -> tile<i32>, token  <<", *SUM)),
    ("reduce.store_in_body", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {",
                                         "  %t = store_ptr_tko weak %q, %l : tile<ptr<i32>>, tile<i32> -> token  <<", *SUM)),
    ("reduce.assert_in_body", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {", "  assert %c, \"no\" : tile<i1>  <<", *SUM)),
    ("reduce.return_in_body", I, reducing("reduce", "identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>", "(%l: tile<i32>, %m: tile<i32>) {", "  return  <<", "}")),
    ("scan.no_reverse", S, reducing("scan", "identities=[0 : i32] : tile<4x8xi32> -> tile<4x8xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("scan.result_shape", I, reducing("scan", "reverse=false identities=[0 : i32] : tile<4x8xi32> -> tile<4xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM)),
    ("scan.dim_beyond", I, [REDUCE, "%r = scan %x dim=2 reverse=false identities=[0 : i32] : tile<4x8xi32> -> tile<4x8xi32>  <<", "(%l: tile<i32>, %m: tile<i32>) {", *SUM]),
    # Control flow
    ("if.condition", I, ["if %i {  <<", "}"]),
    ("if.condition_tile", I, ["%m = constant <i1: 1> : tile<4xi1>", "if %m {  <<", "}"]),
    ("if.results_without_else", I, ["%r = if %c -> (tile<i32>) {  <<", "  yield %i : tile<i32>", "}"]),
    ("if.yield_type", I, ["%r = if %c -> (tile<i32>) {", "  yield %i : tile<i32>", "} else {", "  yield %j : tile<i64>  <<", "}"]),
    ("if.yield_count", I, ["%r = if %c -> (tile<i32>) {", "  yield %i, %i : tile<i32>, tile<i32>  <<", "} else {", "  yield %i : tile<i32>", "}"]),
    ("if.yield_missing", I, ["%r = if %c -> (tile<i32>) {", "  yield %i : tile<i32>", "} else {", "}"]),
    ("if.view_result", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%r = if %c -> ({TV}) {{  <<", f"  yield %v : {TV}", "} else {", f"  yield %v : {TV}", "}"]),
    ("for.bounds_differ", I, ["for %k in (%i to %j, step %i) : tile<i32> {  <<", "}"]),
    ("for.bounds_float", I, ["for %k in (%f to %f, step %f) : tile<f32> {  <<", "}"]),
    ("for.bounds_tile", I, ["%x = constant <i32: 1> : tile<4xi32>", "for %k in (%x to %x, step %x) : tile<4xi32> {  <<", "}"]),
    ("for.continue_type", I, ["%r = for %k in (%i to %i, step %i) : tile<i32> iter_values(%a = %i) -> (tile<i32>) {", "  continue %j : tile<i64>  <<", "}"]),
    ("for.continue_count", I, ["%r = for %k in (%i to %i, step %i) : tile<i32> iter_values(%a = %i) -> (tile<i32>) {", "  continue  <<", "}"]),
    ("for.result_type", I, ["%r = for %k in (%i to %i, step %i) : tile<i32> iter_values(%a = %i) -> (tile<i64>) {  <<", "  continue %j : tile<i64>", "}"]),
    ("for.break", I, ["for %k in (%i to %i, step %i) : tile<i32> {", "  break  <<", "}"]),
    ("for.break_in_if", I, ["for %k in (%i to %i, step %i) : tile<i32> {", "  if %c {", "    break  <<", "  }", "}"]),
    ("for.return", I, ["for %k in (%i to %i, step %i) : tile<i32> {", "  return  <<", "}"]),
    ("for.return_in_if", I, ["for %k in (%i to %i, step %i) : tile<i32> {", "  if %c {", "    return  <<", "  }", "}"]),
    ("for.yield", I, ["for %k in (%i to %i, step %i) : tile<i32> {", "  yield  <<", "}"]),
    ("for.break_of_outer_loop", I, ["loop {", "  for %k in (%i to %i, step %i) : tile<i32> {", "    break  <<", "  }", "  break", "}"]),
    ("for.view_value", I, [f"%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : {TV}", f"%r = for %k in (%i to %i, step %i) : tile<i32> iter_values(%a = %v) -> ({TV}) {{  <<",
                           f"  continue %a : {TV}", "}"]),
    ("loop.break_type", I, ["%r = loop iter_values(%a = %i) : tile<i32> -> tile<i64> {", "  break %a : tile<i32>  <<", "}"]),
    ("loop.break_count", I, ["%r = loop iter_values(%a = %i) : tile<i32> -> tile<i32> {", "  break  <<", "}"]),
    ("loop.continue_type", I, ["%r = loop iter_values(%a = %i) : tile<i32> -> tile<i32> {", "  if %c {", "    break %a : tile<i32>", "  }", "  continue %j : tile<i64>  <<", "}"]),
    ("loop.yield", I, ["loop {", "  yield  <<", "}"]),
    ("loop.types_missing", S, ["loop : {  <<", "  break", "}"]),
    ("break.outside", I, ["break  <<"]),
    ("continue.outside", I, ["continue  <<"]),
    ("yield.outside", I, ["yield  <<"]),
    ("continue.in_if", I, ["if %c {", "  continue  <<", "}"]),
    ("return.operand", EITHER, ["return %i : tile<i32>  <<"]),
    ("return.then_more", I, ["return", "%r = addi %i, %i : tile<i32>  <<"]),
    ("break.then_more", I, ["loop {", "  break", "  %r = addi %i, %i : tile<i32>  <<", "}"]),
    ("assert.not_i1", I, ["assert %i, \"no\" : tile<i32>  <<"]),
    ("entry.nested", EITHER, ["entry @inner() {}"]),
    # Assumptions and printing
    ("assume.div_by_3", I, ["%r = assume div_by<3>, %i : tile<i32>  <<"]),
    ("assume.div_by_0", I, ["%r = assume div_by<0>, %i : tile<i32>  <<"]),
    ("assume.div_by_float", I, ["%r = assume div_by<4>, %f : tile<f32>  <<"]),
    ("assume.div_by_every_scalar", I, ["%r = assume div_by<4, every 1 along 0>, %i : tile<i32>  <<"]),
    ("assume.div_by_along_beyond", I, ["%x = iota : tile<4xi32>", "%r = assume div_by<4, every 1 along 1>, %x : tile<4xi32>  <<"]),
    ("assume.div_by_every_too_large", I, ["%x = iota : tile<4xi32>", "%r = assume div_by<4, every 8 along 0>, %x : tile<4xi32>  <<"]),
    ("assume.same_elements_rank", I, ["%x = iota : tile<4xi32>", "%r = assume same_elements<[1, 1]>, %x : tile<4xi32>  <<"]),
    ("assume.same_elements_beyond", I, ["%x = iota : tile<4xi32>", "%r = assume same_elements<[8]>, %x : tile<4xi32>  <<"]),
    ("assume.same_elements_negative", I, ["%x = iota : tile<4xi32>", "%r = assume same_elements<[-1]>, %x : tile<4xi32>  <<"]),
    ("assume.same_elements_float", I, ["%x = constant <f32: 1.0> : tile<4xf32>", "%r = assume same_elements<[4]>, %x : tile<4xf32>  <<"]),
    ("assume.bounded_empty", I, ["%r = assume bounded<7, 3>, %i : tile<i32>  <<"]),
    ("assume.bounded_too_wide", I, ["%r = assume bounded<0, 200>, %b : tile<i8>  <<"]),
    ("assume.bounded_float", I, ["%r = assume bounded<0, 3>, %f : tile<f32>  <<"]),
    ("assume.unknown", S, ["%r = assume positive, %i : tile<i32>  <<"]),
    ("print.too_few", I, ["%t = print_tko \"%i %i\", %i : tile<i32> -> token  <<"]),
    ("print.too_many", I, ["%t = print_tko \"%i\", %i, %i : tile<i32>, tile<i32> -> token  <<"]),
    ("print.open_conversion", I, ["%t = print_tko \"100%\", %i : tile<i32> -> token  <<"]),
    ("print.none_taken", I, ["%t = print_tko \"%i\" -> token  <<"]),
    # Symbols
    ("global.missing", I, ["%g = get_global @nowhere : tile<ptr<i32>>  <<"]),
    ("global.is_entry", I, ["%g = get_global @k : tile<ptr<i32>>  <<"]),
]

# name, classes, lines of the whole file
FILES = [
    ("file.no_module_end", S, ["cuda_tile.module @m {", "  entry @k() {", "    return", "  }"]),
    ("file.no_entry_end", S, ["cuda_tile.module @m {", "  entry @k() {", "    return", "}"]),
    ("file.two_closing", S, ["cuda_tile.module @m {", "  entry @k() {}", "}", "}  <<"]),
    ("file.garbage", S, ["this is not Tile IR  <<"]),
    ("file.operation_in_module", EITHER, ["cuda_tile.module @m {", "  %r = iota : tile<4xi32>  <<", "}"]),
    ("file.entry_twice", I, ["cuda_tile.module @m {", "  entry @k() {}", "  entry @k() {}  <<", "}"]),
    ("file.entry_and_global", I, ["cuda_tile.module @m {", "  entry @k() {}", "  global @k <i32: 1> : tile<4xi32>  <<", "}"]),
    ("file.entry_result", EITHER, ["cuda_tile.module @m {", "  entry @k() -> (tile<i32>) {  <<", "  }", "}"]),
    ("file.entry_tile_argument", I, ["cuda_tile.module @m {", "  entry @k(%a: tile<4xi32>) {}  <<", "}"]),
    ("file.entry_view_argument", I, ["cuda_tile.module @m {", f"  entry @k(%a: {TV}) {{}}  <<", "}"]),
    ("file.entry_token_argument", I, ["cuda_tile.module @m {", "  entry @k(%a: token) {}  <<", "}"]),
    ("file.entry_word_before_name", S, ["cuda_tile.module @m {", "  entry public @k() {}  <<", "}"]),
    ("file.entry_argument_twice", I, ["cuda_tile.module @m {", "  entry @k(%a: tile<i32>, %a: tile<i32>) {}  <<", "}"]),
    ("file.entry_sees_no_other", I, ["cuda_tile.module @m {", "  entry @a(%x: tile<i32>) {}", "  entry @b() {", "    %r = addi %x, %x : tile<i32>  <<", "  }", "}"]),
    ("file.entry_yield", I, ["cuda_tile.module @m {", "  entry @k() {", "    yield  <<", "  }", "}"]),
    ("file.global_rank_0", I, ["cuda_tile.module @m {", "  global @g <i32: 1> : tile<i32>  <<", "}"]),
    ("file.global_rank_2", I, ["cuda_tile.module @m {", "  global @g <i32: 1> : tile<2x2xi32>  <<", "}"]),
    ("file.global_element", I, ["cuda_tile.module @m {", "  global @g <i32: 1> : tile<4xi32>", "  entry @k() {", "    %p = get_global @g : tile<ptr<f32>>  <<", "  }", "}"]),
    ("file.global_visibility", S, ["cuda_tile.module @m {", "  global hidden @g <i32: 1> : tile<4xi32>  <<", "}"]),
    ("file.global_quoted_visibility", S, ["cuda_tile.module @m {", "  global \"private\" @g <i32: 1> : tile<4xi32>  <<", "}"]),
    ("file.alias_twice", EITHER, ["!t = !cuda_tile.tile<i32>", "!t = !cuda_tile.tile<i64>  <<", "cuda_tile.module @m {", "  entry @k() {}", "}"]),
    ("file.alias_missing", EITHER, ["cuda_tile.module @m {", "  entry @k(%a: !t) {}  <<", "}"]),
    ("file.hint_not_dictionary", EITHER, ["cuda_tile.module @m {", "  entry @k() optimization_hints=<sm_90 = 3> {}  <<", "}"]),
    ("file.hint_twice", EITHER, ["cuda_tile.module @m {", "  entry @k() optimization_hints=<sm_90 = {occupancy = 1}, sm_90 = {occupancy = 2}> {}  <<", "}"]),
    ("file.module_in_entry", EITHER, ["cuda_tile.module @m {", "  entry @k() {", "    module @n {}  <<", "  }", "}"]),
]

# fmt: on


def reject_text():
    yield from by_element_type()
    yield from by_conversion()
    for name, classes, lines in BODIES:
        text, line = module(lines)
        words = [w for w in lines[-1].replace("<<", "").split() if w[0].isalpha()][:1]
        yield case(
            name, classes, text, line, words if "=" in lines[-1] else (), (), "smoke" if name in SMOKE else "standard"
        )
    for name, classes, lines in FILES:
        at = [i + 1 for i, line in enumerate(lines) if line.endswith("<<")]
        text = "\n".join(line.removesuffix("<<").rstrip() for line in lines) + "\n"
        yield case(name, classes, text, at[0] if at else None)


SMOKE = {
    "name.undefined",
    "syntax.unknown_operation",
    "syntax.missing_signedness.maxi",
    "type.three",
    "literal.i8_300",
    "modifier.ftz_f16",
    "shape.permute_twice",
    "memory.load_release",
    "view.load_index_count",
    "atomic.weak",
    "mma.k_differs",
    "reduce.load_in_body",
    "for.break",
    "if.results_without_else",
    "assume.div_by_3",
    "print.too_few",
}
FAMILIES = {"reject_text": reject_text}
