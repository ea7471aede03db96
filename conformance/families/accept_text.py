"""Texts that are unusual and legal: spellings, names, aliases, locations, empty things. Only read and checked."""

from families.case import Case

# fmt: off
# name: lines of a file, or lines of the body of an entry
FILES = {
    "empty_module": ["cuda_tile.module @m {", "}"],
    "empty_entry": ["cuda_tile.module @m {", "  entry @k() {}", "}"],
    "no_final_newline": ["cuda_tile.module @m { entry @k() { return } }"],
    "quoted_symbols": ['cuda_tile.module @"m" {', '  global @"g$1" <i32: 1> : tile<4xi32>', '  entry @"k_\\31"() {', '    %p = get_global @g$1 : tile<ptr<i32>>', "  }", "}"],
    "producer": ['cuda_tile.module @m attributes {producer = "hand \\41 written"} {', "  entry @k() {}", "}"],
    "builtin_module_around": ["module {", "  cuda_tile.module @m {", "    entry @k() {}", "  }", "}"],
    "global_after_use": ["cuda_tile.module @m {", "  entry @k() {", "    %p = get_global @g : tile<ptr<i8>>", "  }", "  global private constant @g alignment = 16 <i8: [1, 2, 3, 4]> : tile<4xi8>", "}"],
    "type_alias": ["!mat = !cuda_tile.tile<4x4xf32>", "cuda_tile.module @m {", "  entry @k() {", "    %z = constant <f32: 0.0> : !mat", "    %r = addf %z, %z : !mat", "  }", "}"],
    "attribute_alias": ["#dom = #cuda_tile.bounded<0, 31>", "cuda_tile.module @m {", "  entry @k(%i: tile<i32>) {", "    %a = assume #dom, %i : tile<i32>", "  }", "}"],
    "location_alias_behind": ["cuda_tile.module @m {", "  entry @k(%a: tile<i32>) {", "    %b = addi %a, %a : tile<i32> loc(#l)", "  }", "}", '#l = loc("k.py":3:7)'],
    "locations": ["cuda_tile.module @m {", "  entry @k(%a: tile<i32> loc(\"k.py\":3:7)) {", "    %b = addi %a, %a : tile<i32> loc(callsite(\"f\"(\"a.py\":1:2) at unknown))",
                  "    %c = addi %a, %b : tile<i32> loc(fused[\"a.py\":1:2, \"named\"])", "    %d = addi %a, %b : tile<i32> loc(\"a.py\":1:2 to 3:4)", "    return loc(unknown)", "  } loc(unknown)", "} loc(unknown)"],
    "prefix_everywhere": ["cuda_tile.module @m {", "  cuda_tile.entry @k(%a: !cuda_tile.tile<!cuda_tile.ptr<i32>>) {", "    %i = cuda_tile.iota : !cuda_tile.tile<4xi32>", "    cuda_tile.return", "  }", "}"],
    "names_are_free_again": ["cuda_tile.module @m {", "  entry @a(%x: tile<i1>) {", "    if %x {", "      %y = iota : tile<4xi32>", "    } else {", "      %y = iota : tile<8xi32>", "    }", "    %y = iota : tile<2xi32>", "  }",
                             "  entry @b(%x: tile<i32>) {", "  }", "}"],
    "empty_hints": ["cuda_tile.module @m {", "  entry @k() optimization_hints=<> {", "  }", "}"],
    "unknown_hints": ["cuda_tile.module @m {", "  entry @k() optimization_hints=<sm_1234 = {speed = 11, words = \"yes\", list = [1, 2]}> {", "  }", "}"],
    "debug_info": ['#f = #cuda_tile.di_file<"k.py" in "/src">', "#cu = #cuda_tile.di_compile_unit<file = #f>",
                   '#sp = #cuda_tile.di_subprogram<file = #f, line = 3, name = "k", linkageName = "k", compileUnit = #cu, scopeLine = 4>',
                   "#bl = #cuda_tile.di_lexical_block<scope = #sp, file = #f, line = 5, column = 2>", '#l0 = #cuda_tile.di_loc<loc("k.py":3:1) in #sp>', "cuda_tile.module @m {",
                   "  entry @k(%a: tile<i32>) {", "    %b = addi %a, %a : tile<i32> loc(#l1)", "    return loc(#l0)", "  } loc(#l0)", "}", '#l1 = #cuda_tile.di_loc<"k.py":6:9 in #bl>'],
}
BODIES = {
    "comments_and_blanks": ["// a comment", "%r\t=\taddi   %i ,%i:tile<i32>// behind", "", "  // another"],
    "names": ["%0 = iota : tile<4xi32>", "%a.b = iota : tile<4xi32>", "%-x = iota : tile<4xi32>", "%cst_-128_i8 = iota : tile<4xi32>", "%$ = iota : tile<4xi32>",
              "%r = addi %cst_-128_i8, %-x : tile<4xi32>"],
    "unused_results": ["addi %i, %i : tile<i32>", "get_tile_block_id : tile<i32>"],
    "packs": ["%x:3 = get_tile_block_id : tile<i32>", "%y, %z:2 = get_num_tile_blocks : tile<i32>", "%r = addi %x, %x#0 : tile<i32>", "%s = addi %z#1, %x#2 : tile<i32>"],
    "hexadecimal": ["%a = constant <i16: [[0x7F, -1], [65535, 0xFFFF]]> : tile<2x2xi16>", "%b = constant <i32: -0x10> : tile<i32>", "%e = constant <f32: 0x0000000000007F800000> : tile<f32>"],
    "spaces_in_angles": ["%r = addf %f, %f rounding < zero > flush_to_zero : tile < f32 >"],
    "float_forms": ["%a = constant <f32: [1., 1.e5, 1.5E-3, -0.0]> : tile<4xf32>"],
    "bools": ["%a = constant <i1: [true, 0, -1, false]> : tile<4xi1>"],
    "splat_of_one": ["%a = constant <i32: 5> : tile<1x1x1xi32>", "%b = constant <i32: [[[5]]]> : tile<1x1x1xi32>"],
    "rank_16": ["%a = constant <i32: 5> : tile<" + "1x" * 15 + "2xi32>", "%b = reshape %a : tile<" + "1x" * 15 + "2xi32> -> tile<2xi32>"],
    "largest_tile": ["%a = constant <i8: 1> : tile<16777216xi8>"],
    "empty_message": ['assert %c, "" : tile<i1>'],
    "escapes": ['assert %c, "\\22 \\\\ \\n \\t \\C3\\A9 %d" : tile<i1>'],
    "empty_print": ['%t = print_tko "" -> token', '%u = print_tko "%% %%" -> token', '%v = print_tko "%z hello d", %i : tile<i32> -> token'],
    "old_print": ['print "%i", %i : tile<i32>'],
    "empty_else": ["if %c {", "} else {", "}"],
    "empty_for": ["for %k in (%i to %i, step %i) : tile<i32> {}", "for unsigned %k in (%i to %i, step %i) : tile<i32> {}"],
    "loop_break": ["loop { break }"],
    "explicit_terminators": ["if %c {", "  yield", "} else {", "  yield", "}", "for %k in (%i to %i, step %i) : tile<i32> {", "  continue", "}", "return"],
    "return_in_loop": ["loop {", "  if %c {", "    return", "  }", "  break", "}"],
    "unneeded_overflow": ["%r = addi %i, %i overflow<none> : tile<i32>"],
    "default_rounding": ["%r = addf %f, %f rounding<nearest_even> : tile<f32>", "%s = exp %f rounding<full> : tile<f32>", "%t = divi %i, %i signed rounding<zero> : tile<i32>"],
    "fpowf": ["%r = fpowf %f, %f : tile<f32>", "%s = pow %f, %f : tile<f32>"],
    "attribute_dictionary": ["%r = addi %i, %i {mine = 1, other} : tile<i32>"],
    "generic": ['%r = "cuda_tile.addi"(%i, %i) <{overflow = #cuda_tile.overflow<none>}> : (!cuda_tile.tile<i32>, !cuda_tile.tile<i32>) -> !cuda_tile.tile<i32>'],
    "join_many": ["%t = make_token : token", "%u = join_tokens %t, %t, %t, %t : token"],
    "zero_rank_extract": ["%r = extract %i[] : tile<i32> -> tile<i32>"],
    "same_type_bitcast": ["%r = bitcast %f : tile<f32> -> tile<f32>"],
    "view_of_huge_array": ["%v = make_tensor_view %p, shape = [1099511627776, 2], strides = [2, 1] : tensor_view<1099511627776x2xf32, strides=[2,1]>",
                           "%w = make_partition_view %v : partition_view<tile=(16777216x1), tensor_view<1099511627776x2xf32, strides=[2,1]>>"],
    "tile_larger_than_tensor": ["%v = make_tensor_view %p, shape = [3], strides = [1] : tensor_view<3xf32, strides=[1]>", "%w = make_partition_view %v : partition_view<tile=(64), tensor_view<3xf32, strides=[1]>>"],
    "splat_index_type": ["%v = make_tensor_view %p, shape = [8, 16], strides = [16, 1] : tensor_view<8x16xf32, strides=[16,1]>",
                         "%w = make_partition_view %v : partition_view<tile=(4x4), tensor_view<8x16xf32, strides=[16,1]>>",
                         "%x, %t = load_view_tko weak %w[%i, %i] : partition_view<tile=(4x4), tensor_view<8x16xf32, strides=[16,1]>>, tile<i32>, tile<i32> -> tile<4x4xf32>, token"],
    "padding_without_need": ["%v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>",
                             "%w = make_partition_view %v : partition_view<tile=(4), padding_value = zero, tensor_view<8xf32, strides=[1]>, dim_map=[0]>"],
}

# fmt: on


def accept_text():
    head = "  entry @k(%p: tile<ptr<f32>>, %i: tile<i32>, %f: tile<f32>, %c: tile<i1>) {"
    for name, lines in {
        **FILES,
        **{
            n: ["cuda_tile.module @m {", head, *("    " + line for line in body), "  }", "}"]
            for n, body in BODIES.items()
        },
    }.items():
        case = Case("accept_text", name, "smoke" if name in ("names", "packs", "locations") else "standard")
        case.goal, case.kernel = "check", ("\n".join(lines) + ("" if name == "no_final_newline" else "\n")).encode()
        yield case


FAMILIES = {"accept_text": accept_text}
