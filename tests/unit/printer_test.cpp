// Text made from modules: spelling, names, hidden terminators, debug information, and safety on modules that make no
// sense.
#include "assembler/printer.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "assembler/printer_values.h"
#include "vm/ir/function_builder.h"

using namespace tile;

namespace {

Module parsed(const std::string& text) {
  Diagnostics diags;
  auto m = parse_text(std::make_shared<const Source>("t.tile", text), diags);
  CAPTURE(render(diags));
  REQUIRE(m);
  return std::move(m.value());
}

// The body of an entry that is printed without its frame.
std::string body(const std::string& statements, const std::string& args = "") {
  const std::string text =
      print_text(parsed("cuda_tile.module @m {\nentry @k(" + args + ") {\n" + statements + "\n}\n}\n"));
  const std::string head = ") {\n", tail = "    return\n  }\n}\n";
  const size_t begin = text.find(head) + head.size();
  REQUIRE(text.ends_with(tail));
  std::string out;
  for (size_t at = begin; at < text.size() - tail.size();) {
    const size_t end = text.find('\n', at) + 1;
    out += text.substr(at + 4, end - at - 4);
    at = end;
  }
  return out;
}

std::string f32(float x) {
  return element_text(ElementType::F32, std::bit_cast<uint32_t>(x));
}
std::string f64(double x) {
  return element_text(ElementType::F64, std::bit_cast<uint64_t>(x));
}

void check_stable(const std::string& text, const PrintOptions& options = {}) {
  const std::string once = print_text(parsed(text), options);
  CHECK(print_text(parsed(once), options) == once);
}

}  // namespace

TEST_CASE("floats print with six digits where that is exact") {
  CHECK(f32(0.0f) == "0.000000e+00");
  CHECK(f32(-0.0f) == "-0.000000e+00");
  CHECK(f32(0.5f) == "5.000000e-01");
  CHECK(f32(65504.0f) == "6.550400e+04");
  CHECK(f32(0.1f) == "1.000000e-01");
  CHECK(f64(0.1) == "1.000000e-01");
  CHECK(f64(-1e300) == "-1.000000e+300");
  CHECK(f32(std::bit_cast<float>(1u)) == "1.401300e-45");
}

TEST_CASE("floats that need more digits print as short as the format allows") {
  CHECK(f32(3.40282347E+38f) == "3.40282347E+38");
  CHECK(f32(1e-5f) == "9.99999974E-6");  // cut, not rounded, to six digits first
  CHECK(f32(0x1p-24f) == "5.96046448E-8");
  CHECK(f32(3.14159274f) == "3.14159274");
  CHECK(f32(0.333333343f) == "0.333333343");
  CHECK(f32(0.00123456789f) == "0.00123456784");
  CHECK(f64(3.141592653589793) == "3.1415926535897931");
  CHECK(f32(1234567.0f) == "0x4996B438");  // the short form has no point
  CHECK(f32(123456789.0f) == "0x4CEB79A3");
}

TEST_CASE("values without a decimal spelling print as bits") {
  CHECK(f32(std::bit_cast<float>(0x7FC00000u)) == "0x7FC00000");
  CHECK(f64(std::bit_cast<double>(0xFFF0000000000000u)) == "0xFFF0000000000000");
  CHECK(element_text(ElementType::F16, 0x7C00) == "0x7C00");
  CHECK(element_text(ElementType::F8E4M3FN, 0x7F) == "0x7F");
  CHECK(element_text(ElementType::F8E8M0FNU, 0xFF) == "0xFF");
  CHECK(element_text(ElementType::TF32, 0x7F800000) == "0x3FC00");  // 19 bits
}

TEST_CASE("every value of the narrow formats reads back") {
  for (const ElementType t : {ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F8E8M0FNU, ElementType::F4E2M1FN,
                              ElementType::NV8E5M3FNU, ElementType::F16, ElementType::BF16}) {
    const uint64_t count = uint64_t{1} << info(t).bits, step = count > 256 ? 37 : 1;
    std::string values, again;
    for (uint64_t bits = 0; bits < count; bits += step) {
      const std::string type = std::string(info(t).name);
      const std::string text = "<" + type + ": " + element_text(t, bits) + "> : tile<" + type + ">";
      const Module m = parsed("cuda_tile.module @m { global @g " + text + " }");
      REQUIRE(m.globals.size() == 1);
      uint64_t got = 0;
      const std::string& bytes = m.attrs.get(m.globals[0].value).bytes;
      for (size_t k = bytes.size(); k-- > 0;) got = got << 8 | static_cast<uint8_t>(bytes[k]);
      CHECK_MESSAGE(got == bits, text);
    }
  }
}

TEST_CASE("integers print signed, i1 as words") {
  CHECK(element_text(ElementType::I8, 0x80) == "-128");
  CHECK(element_text(ElementType::I16, 0x7FFF) == "32767");
  CHECK(element_text(ElementType::I64, 0x8000000000000000u) == "-9223372036854775808");
  CHECK(element_text(ElementType::I1, 1) == "true");
  CHECK(element_text(ElementType::I1, 0) == "false");
}

TEST_CASE("strings and symbols escape what text cannot hold") {
  std::string out;
  put_string(out, std::string_view("a\"b\\c\n\0\xC3\xA9~", 10));
  CHECK(out == "\"a\\22b\\\\c\\0A\\00\\C3\\A9~\"");
  out.clear();
  put_symbol(out, "plain_name.0$");
  put_symbol(out, "a-b");
  put_symbol(out, "0x");
  CHECK(out == "@plain_name.0$@\"a-b\"@\"0x\"");
}

TEST_CASE("dense constants keep their nesting, and equal elements print once") {
  CHECK(body("%a = constant <i32: [[1, 2, 3, 4], [5, 6, 7, 8]]> : tile<2x4xi32>") ==
        "%a = constant <i32: [[1, 2, 3, 4], [5, 6, 7, 8]]> : tile<2x4xi32>\n");
  CHECK(body("%a = constant <i32: [[[1], [2]]]> : tile<1x2x1xi32>") ==
        "%a = constant <i32: [[[1], [2]]]> : tile<1x2x1xi32>\n");
  CHECK(body("%a = constant <i32: [7, 7]> : tile<2xi32>") == "%a = constant <i32: 7> : tile<2xi32>\n");
  CHECK(body("%a = constant <i1: [true, false]> : tile<2xi1>") == "%a = constant <i1: [true, false]> : tile<2xi1>\n");
}

TEST_CASE("more than a hundred elements print as hexadecimal bytes and read back") {
  for (const std::string type : {"i8", "i1", "f32", "tf32", "f64", "f4E2M1FN", "bf16"}) {
    std::string list;
    for (int i = 0; i < 128; ++i)
      list += (i ? ", " : "") + (type[0] == 'i' ? std::to_string(i % 2) : std::to_string(i % 4 / 2) + ".5");
    const std::string text =
        "cuda_tile.module @m { global @g <" + type + ": [" + list + "]> : tile<128x" + type + "> }";
    const Module m = parsed(text);
    const std::string once = print_text(m);
    CHECK(once.find("\"0x") != std::string::npos);
    const Module again = parsed(once);
    CHECK(again.attrs.get(again.globals[0].value).bytes == m.attrs.get(m.globals[0].value).bytes);
  }
}

TEST_CASE("names are kept, and made unique only where two would meet") {
  const std::string text = body(
      "%a = iota : tile<4xi32>\n"
      "if %c { %b = addi %a, %a : tile<4xi32> } else { %b = muli %a, %a : tile<4xi32> }\n"
      "%b = addi %a, %a : tile<4xi32>",
      "%c: tile<i1>");
  CHECK(text ==
        "%a = iota : tile<4xi32>\n"
        "if %c {\n  %b = addi %a, %a : tile<4xi32>\n} else {\n  %b = muli %a, %a : tile<4xi32>\n}\n"
        "%b = addi %a, %a : tile<4xi32>\n");
}

TEST_CASE("nameless values are numbered, parameters and loop indices get names") {
  Module m;
  m.name = m.strings.add("m");
  Function& f = m.functions.emplace_back();
  f.name = m.strings.add("k");
  const TypeId i32 = m.types.tile(ElementType::I32);
  FunctionBuilder b(f, std::array{i32, i32});
  const std::array<ValueId, 2> sum{0, 1};
  const uint32_t no_overflow[] = {0};
  b.op({.op = Opcode::AddI, .operands = sum, .segments = {}, .attrs = no_overflow, .result_types = std::array{i32}});
  const std::array<ValueId, 3> bounds{0, 1, 2};
  const uint32_t is_signed[] = {0};
  b.op({.op = Opcode::For, .operands = bounds, .segments = {}, .attrs = is_signed, .result_types = {}});
  b.begin_region(std::array{i32});
  const std::array<ValueId, 1> index{3};
  b.op({.op = Opcode::AbsI, .operands = index, .segments = {}, .attrs = {}, .result_types = std::array{i32}});
  b.op({.op = Opcode::Continue, .operands = {}, .segments = {}, .attrs = {}, .result_types = {}});
  b.end_region();
  b.end_op();
  b.op({.op = Opcode::Return, .operands = {}, .segments = {}, .attrs = {}, .result_types = {}});
  b.finish();
  CHECK(print_text(m) ==
        "cuda_tile.module @m {\n"
        "  entry @k(%arg0: tile<i32>, %arg1: tile<i32>) {\n"
        "    %0 = addi %arg0, %arg1 : tile<i32>\n"
        "    for %i in (%arg0 to %arg1, step %0) : tile<i32> {\n"
        "      %1 = absi %i : tile<i32>\n"
        "    }\n"
        "    return\n"
        "  }\n"
        "}\n");
  PrintOptions numbered;
  numbered.pretty_names = false;
  numbered.module_wrapper = false;
  CHECK(print_text(m, numbered)
            .starts_with("entry @k(%0: tile<i32>, %1: tile<i32>) {\n  %2 = addi %0, %1 : tile<i32>\n"));
  CHECK(print_inst(m, f, 0) == "%0 = addi %arg0, %arg1 : tile<i32>");
  CHECK(print_inst(m, f, 1) == "for %i in (%arg0 to %arg1, step %0) : tile<i32>");

  // Names that text cannot hold, names twice, names that look like numbers.
  f.value_names = {m.strings.add("a b"), m.strings.add("a b"), m.strings.add("7"), m.strings.add("7x"),
                   m.strings.add("")};
  CHECK(print_text(m).find("entry @k(%a_b: tile<i32>, %a_b_1: tile<i32>) {\n    %0 = addi %a_b, %a_b_1") !=
        std::string::npos);
  CHECK(print_text(m).find("for %_7x in (") != std::string::npos);
  check_stable(print_text(m));
}

TEST_CASE("terminators hide where the text has them without being written") {
  CHECK(body("if %c { yield }\nloop { if %c { break } else { continue } continue }", "%c: tile<i1>") ==
        "if %c {\n}\nloop {\n  if %c {\n    break\n  } else {\n    continue\n  }\n}\n");
  CHECK(body("%r = if %c -> (tile<i1>) { yield %c : tile<i1> } else { yield %c : tile<i1> }", "%c: tile<i1>") ==
        "%r = if %c -> (tile<i1>) {\n  yield %c : tile<i1>\n} else {\n  yield %c : tile<i1>\n}\n");
}

TEST_CASE("debug locations print as aliases, and print again the same") {
  const std::string text = R"(#f = #cuda_tile.di_file<"k.py" in "/src">
#cu = #cuda_tile.di_compile_unit<file = #f>
#sp = #cuda_tile.di_subprogram<file = #f, line = 3, name = "k", linkageName = "k", compileUnit = #cu, scopeLine = 4>
#bl = #cuda_tile.di_lexical_block<scope = #sp, file = #f, line = 5, column = 2>
#l0 = #cuda_tile.di_loc<loc("k.py":3:1) in #sp>
cuda_tile.module @dbg {
  entry @k(%a: tile<i32>) {
    %b = addi %a, %a : tile<i32> loc(#l1)
    %c = muli %b, %a : tile<i32> loc(callsite(#l1 at #l0))
    if %d { yield loc("y.py":1:2 to 3:4) } loc("x":0:0)
    return loc(fused[#l0, "named"(#l1)])
  } loc(#l0)
}
#l1 = #cuda_tile.di_loc<"k.py":6:9 in #bl>
)";
  const std::string with_condition =
      std::string(text).replace(text.find("%a: tile<i32>)"), 14, "%a: tile<i32>, %d: tile<i1>)");
  PrintOptions debug;
  debug.debug_info = true;
  const std::string once = print_text(parsed(with_condition), debug);
  CHECK(once.find("#file1 = #cuda_tile.di_file<\"k.py\" in \"/src\">\n#unit1 = ") == 0);
  CHECK(once.find("#subprogram1 = #cuda_tile.di_subprogram<file = #file1, line = 3, name = \"k\", linkageName = \"k\", "
                  "compileUnit = #unit1, "
                  "scopeLine = 4>\n") != std::string::npos);
  CHECK(once.find("yield loc(#loc") != std::string::npos);
  CHECK(once.find(" = loc(callsite(#loc") != std::string::npos);
  CHECK(once.find(" = loc(\"y.py\":1:2 to 3:4)\n") != std::string::npos);
  check_stable(with_condition, debug);
  CHECK(print_text(parsed(with_condition)).find("loc(") == std::string::npos);
}

TEST_CASE("attributes print as operations spell them") {
  Module m;
  const TypeId i32 = m.types.element(ElementType::I32), i64 = m.types.element(ElementType::I64),
               f32_type = m.types.element(ElementType::F32);
  CHECK(print_attr(m, m.attrs.integer(i32, 0xFFFFFFFF)) == "-1 : i32");
  CHECK(print_attr(m, m.attrs.integer(i64, 5)) == "5");
  CHECK(print_attr(m, m.attrs.floating(f32_type, 0xFF800000)) == "0xFF800000 : f32");
  CHECK(print_attr(m, m.attrs.floating(m.types.element(ElementType::F64), std::bit_cast<uint64_t>(0.5))) ==
        "5.000000e-01");
  CHECK(print_attr(m, m.attrs.floating(m.types.element(ElementType::F64), std::bit_cast<uint64_t>(HUGE_VAL))) ==
        "0x7FF0000000000000 : f64");
  CHECK(print_attr(m, m.attrs.boolean(true)) == "true");
  CHECK(print_attr(m, m.attrs.ints(AttrTag::I32Array, {1, 0})) == "[1, 0]");
  CHECK(print_attr(m, m.attrs.ints(AttrTag::BoolArray, {1, 0})) == "[true, false]");
  CHECK(print_attr(m, m.attrs.add({.tag = AttrTag::DivBy, .bits = 8, .ints = {4, 1}})) == "div_by<8, every 4 along 1>");
  CHECK(print_attr(m, m.attrs.add({.tag = AttrTag::Bounded, .flags = 2, .ints = {0, 7}})) == "bounded<?, 7>");
  CHECK(print_attr(m, m.attrs.array({m.attrs.ints(AttrTag::SameElements, {2}), m.attrs.ints(AttrTag::I32Array, {})})) ==
        "[#cuda_tile.same_elements<[2]>, array<i32>]");
  CHECK(print_attr(m, 1000) == "unit");
}

TEST_CASE("values that share their parts do not print without end") {
  Module m;
  AttrId attr = m.attrs.boolean(true);
  for (int i = 0; i < 60; ++i) attr = m.attrs.array({attr, attr});
  CHECK(print_attr(m, attr).size() < (size_t{2} << 20));
}

TEST_CASE("modules that make no sense print something") {
  Module m;
  m.name = 99;
  m.producer = 99;
  m.order = {0, 5, Module::kGlobalBit, Module::kGlobalBit | 7};
  m.globals.push_back({});
  Function& f = m.functions.emplace_back();
  f.param_count = 3;
  f.hints = 77;
  f.arg_attrs = 77;
  CHECK_FALSE(print_text(m).empty());
  for (const OpDef& op : op_rows()) {
    for (uint32_t filler : {0u, 1u, 7u, 0xFFFFFFFFu}) {
      Function g;
      Inst inst;
      inst.op = static_cast<Opcode>(op.code);
      inst.next = filler;
      inst.operand_count = filler;
      inst.result_count = filler;
      inst.first_result = filler;
      inst.first_region = filler == 1 ? 0 : filler;
      inst.loc = filler;
      g.insts.assign(3, inst);
      g.words.assign(9, filler);
      g.value_types.assign(2, filler);
      g.regions.assign(
          2,
          Region{
              .parent = filler, .first_arg = filler, .arg_count = filler, .begin = 1, .end = filler, .present = true});
      g.regions[0].begin = 0;
      g.regions[0].end = 3;
      Module broken;
      broken.functions.push_back(g);
      CHECK_FALSE(print_inst(broken, broken.functions[0], 0).empty());
      CHECK(print_inst(broken, broken.functions[0], 9).empty());
    }
  }
}

TEST_CASE("an operation of regions that contain themselves ends") {
  Module m;
  Function& f = m.functions.emplace_back();
  Inst inst;
  inst.op = Opcode::Loop;
  inst.next = 1;
  f.insts.assign(1, inst);
  f.words.assign(4, 0);
  f.regions.assign(1, Region{.parent = 0, .first_arg = 0, .arg_count = 0, .begin = 0, .end = 1, .present = true});
  CHECK(print_text(m).find("{ ... }") != std::string::npos);
}

TEST_CASE("anchors say which line an operation is on") {
  const Module m = parsed("cuda_tile.module @m {\n  entry @k() {\n    %a = iota : tile<4xi32>\n  }\n}\n");
  std::vector<Anchor> anchors;
  const std::string text = print_text(m, {}, anchors);
  REQUIRE(anchors.size() >= 2);
  CHECK(m.source->text().substr(anchors[0].source).starts_with("@k"));
  CHECK(text.substr(anchors[0].output).starts_with("  entry @k"));
  CHECK(m.source->text().substr(anchors[1].source).starts_with("iota"));
  CHECK(text.substr(anchors[1].output).starts_with("    %a = iota"));
}
