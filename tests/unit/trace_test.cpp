// Traces: golden texts, filters, and values as text.
#include "vm/interp/trace.h"

#include <cmath>

#include "observe_kit.h"
#include "vm/codec/tilebc.h"

namespace tile {
namespace {

using observe_kit::Kernel;

const char* const kLoop = R"(cuda_tile.module @m {
  entry @loop(%p: tile<ptr<f32>>, %n: tile<i32>) {
    %x, %y, %z = get_tile_block_id : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %v, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %sum = for %k in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %v) -> (tile<f32>) {
      %first = cmpi equal %k, %zero, signed : tile<i32> -> tile<i1>
      %w = if %first -> (tile<f32>) {
        %a = addf %acc, %v : tile<f32>
        yield %a : tile<f32>
      } else {
        %b = mulf %acc, %v : tile<f32>
        yield %b : tile<f32>
      }
      continue %w : tile<f32>
    }
    %t2 = store_ptr_tko weak %p, %sum : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
)";

std::string traced(Kernel& k, TraceFilter filter = {}, LaunchGrid grid = {1, 1, 1}) {
  std::string out;
  Trace trace(k.module, *k.entry, std::move(filter), [&](std::string_view text) { out += text; });
  (void)k.run({&trace}, grid);
  return out;
}

TEST_CASE("a trace tells every operation with its values, loops by iteration and branches by the way taken") {
  Kernel k(kLoop, {"a=ptr:f32[1]=full(3)", "i32:2"});
  CHECK(traced(k) ==
        "[0,0,0] entry @loop %p = argument 0 (p)+0, %n = 2\n"
        "[0,0,0] k.tile:3: get_tile_block_id -> %x = 0, %y = 0, %z = 0\n"
        "[0,0,0] k.tile:4: constant -> %zero = 0\n"
        "[0,0,0] k.tile:5: constant -> %one = 1\n"
        "[0,0,0] k.tile:6: load_ptr_tko %p = argument 0 (p)+0 -> %v = 3\n"
        "[0,0,0] k.tile:7: for %zero = 0, %n = 2, %one = 1, %v = 3\n"
        "[0,0,0] k.tile:7: for iteration %k = 0, %acc = 3\n"
        "[0,0,0] k.tile:8:   cmpi %k = 0, %zero = 0 -> %first = 1\n"
        "[0,0,0] k.tile:9:   if %first = 1\n"
        "[0,0,0] k.tile:9:   if then\n"
        "[0,0,0] k.tile:10:     addf %acc = 3, %v = 3 -> %a = 6\n"
        "[0,0,0] k.tile:11:     yield %a = 6\n"
        "[0,0,0] k.tile:9:   if done -> %w = 6\n"
        "[0,0,0] k.tile:16:   continue %w = 6\n"
        "[0,0,0] k.tile:7: for iteration %k = 1, %acc = 6\n"
        "[0,0,0] k.tile:8:   cmpi %k = 1, %zero = 0 -> %first = 0\n"
        "[0,0,0] k.tile:9:   if %first = 0\n"
        "[0,0,0] k.tile:9:   if else\n"
        "[0,0,0] k.tile:13:     mulf %acc = 6, %v = 3 -> %b = 18\n"
        "[0,0,0] k.tile:14:     yield %b = 18\n"
        "[0,0,0] k.tile:9:   if done -> %w = 18\n"
        "[0,0,0] k.tile:16:   continue %w = 18\n"
        "[0,0,0] k.tile:7: for done -> %sum = 18\n"
        "[0,0,0] k.tile:18: store_ptr_tko %p = argument 0 (p)+0, %sum = 18\n"
        "[0,0,0] k.tile:19: return\n");
}

TEST_CASE("filters of a trace: block, operations, line, and all together") {
  Kernel k(kLoop, {"a=ptr:f32[1]=full(1)", "i32:1"});
  TraceFilter block;
  block.block = {1, 2, 0};
  const std::string one = traced(k, block, {2, 3, 1});
  CHECK(one.starts_with("[1,2,0] entry @loop"));
  CHECK(one.find("[0,") == std::string::npos);

  Kernel again(kLoop, {"a=ptr:f32[1]=full(1)", "i32:2"});
  TraceFilter ops;
  ops.ops = {"addf", "mulf"};
  CHECK(traced(again, ops) ==
        "[0,0,0] k.tile:10:     addf %acc = 1, %v = 1 -> %a = 2\n[0,0,0] k.tile:13:     mulf %acc = 2, %v = 1 -> %b = "
        "2\n");

  Kernel third(kLoop, {"a=ptr:f32[1]=full(1)", "i32:1"});
  TraceFilter line;
  line.line = 4;
  CHECK(traced(third, line, {2, 1, 1}) ==
        "[0,0,0] k.tile:4: constant -> %zero = 0\n[1,0,0] k.tile:4: constant -> %zero = 0\n");
  line.block = {1, 0, 0};
  line.ops = {"constant", "for"};
  CHECK(traced(third, line, {2, 1, 1}) == "[1,0,0] k.tile:4: constant -> %zero = 0\n");
}

TEST_CASE("the operation that traps is the last line of a trace") {
  Kernel k(R"(cuda_tile.module @m {
  entry @bad(%p: tile<ptr<f32>>, %n: tile<i32>) {
    %q = offset %p, %n : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %v, %t = load_ptr_tko weak %q : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
)",
           {"ptr:f32[2]=zeros", "i32:2"});
  CHECK(traced(k) ==
        "[0,0,0] entry @bad %p = argument 0 (p)+0, %n = 2\n"
        "[0,0,0] k.tile:3: offset %p = argument 0 (p)+0, %n = 2 -> %q = argument 0 (p)+8\n"
        "[0,0,0] k.tile:4: load_ptr_tko %q = argument 0 (p)+8 -> stopped\n");
  CHECK(k.diags.first_error()->code == Code::T0101);
}

TEST_CASE("an access outside every array names the element, the bytes, the argument, its size, the block and the place") {
  const auto message = [](const std::string& by) {
    Kernel k(R"(cuda_tile.module @m {
  entry @bad(%p: tile<ptr<f32>>, %n: tile<i64>) {
    %i = iota : tile<2xi64>
    %n1 = reshape %n : tile<i64> -> tile<1xi64>
    %n2 = broadcast %n1 : tile<1xi64> -> tile<2xi64>
    %j = addi %i, %n2 : tile<2xi64>
    %p1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
    %p2 = broadcast %p1 : tile<1xptr<f32>> -> tile<2xptr<f32>>
    %q = offset %p2, %j : tile<2xptr<f32>>, tile<2xi64> -> tile<2xptr<f32>>
    %v, %t = load_ptr_tko weak %q : tile<2xptr<f32>> -> tile<2xf32>, token
    return
  }
}
)",
             {"ptr:f32[3]=zeros", "i64:" + by});
    CHECK(!k.run({}));
    CHECK(k.diags.first_error()->code == Code::T0101);
    const std::string text = render(k.diags);
    return text.substr(0, text.find('\n'));
  };
  const std::string who = "k.tile:10:14: error: load_ptr_tko: element ", whose = " of argument 0 (p), which has 12 bytes, in block (0, 0, 0) [T0101]";
  CHECK(message("2") == who + "1 accesses 4 bytes at byte 12" + whose);
  CHECK(message("-1") == who + "0 accesses 4 bytes at byte -4" + whose);
  CHECK(message("1000") == who + "0 accesses 4 bytes at byte 4000" + whose);
  CHECK(message("-1000") == who + "0 accesses 4 bytes at byte -4000" + whose);
}

TEST_CASE("a reduction is one operation of a trace, with and without a fast form of its body") {
  for (const char* body :
       {"%s = addf %l, %r : tile<f32>", "%d = addf %l, %r : tile<f32>\n      %s = addf %d, %outside : tile<f32>"}) {
    Kernel k(std::string(R"(cuda_tile.module @m {
  entry @sum(%p: tile<ptr<f32>>) {
    %outside = constant <f32: 0.0> : tile<f32>
    %i = iota : tile<32xi32>
    %f = itof %i signed : tile<32xi32> -> tile<32xf32>
    %total = reduce %f dim=0 identities=[0.000000e+00 : f32] : tile<32xf32> -> tile<f32> (%l: tile<f32>, %r: tile<f32>) {
      )") + body +
                 R"(
      yield %s : tile<f32>
    }
    return
  }
}
)",
             {"ptr:f32[1]=zeros"});
    CHECK(traced(k).find(
              "k.tile:6: reduce %f = tile<32xf32> [0, 1, 2, 3, ...] min 0 max 31 -> %total = 496\n[0,0,0] k.tile:") !=
          std::string::npos);
  }
}

TEST_CASE("a trace of bytecode: numbers for operations, debug locations where there are some") {
  Diagnostics diags;
  auto parsed = parse_text(std::make_shared<const Source>("k.tile", R"(cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %zero = constant <f32: 0.5> : tile<f32> loc("source.py":7:3)
    %one = addf %zero, %zero : tile<f32> loc("source.py":8:3)
    %two = mulf %one, %one : tile<f32>
    return
  }
}
)"),
                           diags);
  INFO(render(diags));
  REQUIRE(parsed);
  auto decoded = decode_tilebc(encode_tilebc(*parsed), "k.tilebc", diags);
  REQUIRE(decoded);
  Kernel k(std::move(decoded.value()), {"ptr:f32[1]=zeros"});
  const std::string text = traced(k);
  CHECK(text.find("] source.py:7: constant -> %zero = 0.5\n") != std::string::npos);
  CHECK(text.find("] @k#2: mulf %one = 1, %one = 1 -> %two = 1\n") != std::string::npos);
  TraceFilter line;
  line.line = 8;
  CHECK(traced(k, line) == "[0,0,0] source.py:8: addf %zero = 0.5, %zero = 0.5 -> %one = 1\n");
}

TEST_CASE("values as text") {
  Module m;
  Memory memory;
  const auto text = [&](ElementType e, std::vector<int64_t> shape, const auto& values) {
    return value_text(m, memory, m.types.tile(e, shape), reinterpret_cast<const std::byte*>(values.data()));
  };
  CHECK(text(ElementType::F32, {}, std::vector<float>{0.1f}) == "0.1");
  CHECK(text(ElementType::F64, {}, std::vector<double>{0.1}) == "0.1");
  CHECK(text(ElementType::F16, {2}, std::vector<uint16_t>{0x3C00, 0xFC00}) == "[1, -inf]");
  CHECK(text(ElementType::I8, {2, 2}, std::vector<int8_t>{-128, 1, 2, 3}) == "[[-128, 1], [2, 3]]");
  CHECK(text(ElementType::I1, {2}, std::vector<uint8_t>{1, 0}) == "[1, 0]");
  CHECK(text(ElementType::I4, {2}, std::vector<uint8_t>{15, 7}) == "[-1, 7]");

  std::vector<float> f(32, 1.0f);
  f[0] = NAN;
  f[5] = -2.5f;
  f[6] = 4.0f;
  f[31] = -NAN;
  CHECK(text(ElementType::F32, {4, 8}, f) == "tile<4x8xf32> [nan, 1, 1, 1, ...] min -2.5 max 4 nan 2");
  f.assign(32, NAN);
  CHECK(text(ElementType::F32, {32}, f) == "tile<32xf32> [nan, nan, nan, nan, ...] nan 32");
  std::vector<uint8_t> bits(64, 0);
  bits[3] = bits[40] = 1;
  CHECK(text(ElementType::I1, {64}, bits) == "tile<64xi1> [0, 0, 0, 1, ...] ones 2");

  std::vector<std::byte> bytes(16);
  const uint64_t base = memory.add(bytes.data(), bytes.size(), "argument 0 (a)");
  CHECK(address_text(memory, base + 12) == "argument 0 (a)+12");
  CHECK(address_text(memory, 5) == "0x5");
  const int64_t shape[2] = {kDynamic, 8}, strides[2] = {8, 1};
  const TypeId view = m.types.tensor_view(m.types.element(ElementType::F32), shape, strides);
  const std::vector<uint64_t> words = {base + 4, 3, 8, 8, 1};
  CHECK(value_text(m, memory, view, reinterpret_cast<const std::byte*>(words.data())) ==
        "view argument 0 (a)+4 [3, 8] strides [8, 1]");
  CHECK(value_text(m, memory, m.types.token(), nullptr) == "token");
}

}  // namespace
}  // namespace tile
