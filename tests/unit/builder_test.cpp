// The builder for frontends: what it infers, what it reports, and that a mistake is reported once.
#include <doctest/doctest.h>

#include "assembler/assembler.h"
#include "vm/ir/builder.h"
#include "vm/ir/valid_module.h"

using namespace tile;

namespace {

/// The text of an entry with these parameters, or what was reported.
std::string built(const std::function<void(Builder&)>& write) {
  Diagnostics diags;
  Builder b("m", diags);
  write(b);
  auto module = b.finish();
  const auto valid = module ? validate(*std::move(module), diags) : Result<ValidModule>(Failed);
  if (valid) return print_text(**valid, {.module_wrapper = false});
  std::string out;
  for (const Diagnostic& d : diags.all()) {
    out += std::string(code_info(d.code).name) + " " + d.message;
    if (!d.help.empty()) out += " (" + d.help + ")";
    out += "\n";
  }
  return out;
}

using Values = Builder::Values;
using Value = Builder::Value;

}  // namespace

TEST_CASE("builder: types of results, defaults of attributes, optional operands, regions") {
  CHECK(built([](Builder& b) {
          const TypeId i32 = b.tile(ElementType::I32), pointers = b.pointers(ElementType::F32);
          b.entry("k", {{"p", pointers}, {"n", i32}}, [&](const Values& p) {
            const Value more = b.value("cmpi", {p[1], b.constant(i32, 3)},
                                       {{"comparison_predicate", "greater_than"}, {"signedness", "signed"}});
            const Values loaded = b.op("load_ptr_tko", {{"source", p[0]}, {"mask", more}, {"paddingValue", b.constant(b.tile(ElementType::F32), 1.5)}},
                                       {{"memory_ordering_semantics", "weak"}});
            b.op("if", {more}, {}, {}, {{{}, [&](const Values&) {
                   b.op("store_ptr_tko", {p[0], loaded[0], {"token", loaded[1]}}, {{"memory_ordering_semantics", "weak"}});
                   b.op("yield");
                 }}});
            // Made one by one: the order in which arguments are evaluated is the compiler's.
            const Value zero = b.constant(i32, 0), one = b.constant(i32, 1), first = b.constant(i32, -1);
            const Value sum = b.for_loop(zero, p[1], one, {first},
                                         [&](Value i, const Values& c) -> Values { return {b.value("addi", {c[0], i})}; })[0];
            b.name(sum, "sum");
          });
        }) == R"(entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {
  %0 = constant <i32: 3> : tile<i32>
  %1 = cmpi greater_than %n, %0, signed : tile<i32> -> tile<i1>
  %2 = constant <f32: 1.500000e+00> : tile<f32>
  %3, %4 = load_ptr_tko weak %p, %1, %2 : tile<ptr<f32>>, tile<i1>, tile<f32> -> tile<f32>, token
  if %1 {
    %5 = store_ptr_tko weak %p, %3 token=%4 : tile<ptr<f32>>, tile<f32> -> token
  }
  %6 = constant <i32: 0> : tile<i32>
  %7 = constant <i32: 1> : tile<i32>
  %8 = constant <i32: -1> : tile<i32>
  %sum = for %i in (%6 to %n, step %7) : tile<i32> iter_values(%9 = %8) -> (tile<i32>) {
    %10 = addi %9, %i : tile<i32>
    continue %10 : tile<i32>
  }
  return
}
)");
}

TEST_CASE("builder: mistakes are reported with what was meant, and once") {
  const auto body = [](const std::function<void(Builder&, Value)>& write) {
    return built([&](Builder& b) {
      b.entry("k", {{"x", b.tile(ElementType::F32)}}, [&](const Values& p) { write(b, p[0]); });
    });
  };
  CHECK(body([](Builder& b, Value x) { b.op("negf", {b.value("adf", {x, x})}); }) ==
        "E0303 there is no operation 'adf' (did you mean 'addf'?)\n");
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x}); }) == "E0507 addf: has 0 values for rhs, expected 1\n");
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x, x, x}); }).starts_with("E0507 addf: has more values"));
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x, x}, {{"rounding_mode", "nearest_evn"}}); }) ==
        "E0306 addf: rounding_mode has no value 'nearest_evn' (did you mean 'nearest_even'?)\n");
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x, x}, {{"rounding", "nearest_even"}}); }).starts_with("E0306 addf: there is no attribute 'rounding'"));
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x, x}, {{"rounding_mode", 1}}); }) ==
        "E0601 addf: rounding_mode is given another kind of value, expected a word\n");
  CHECK(body([](Builder& b, Value x) { b.op("cmpf", {x, x}); }) ==
        "E0602 cmpf: comparison_predicate is missing\nE0602 cmpf: comparison_ordering is missing\n");
  CHECK(body([](Builder& b, Value x) { b.op("ftof", {x}); }) == "E0507 ftof: the type of to does not follow from the operands\n");
  CHECK(body([](Builder& b, Value x) { b.op("addf", {x, {"lsh", x}}); }) ==
        "E0306 addf: there is no operand 'lsh' (did you mean 'lhs'?)\n");
  CHECK(body([](Builder& b, Value) { b.op("loop"); }) == "E0507 loop: has 0 bodies, expected 1\n");
  CHECK(built([](Builder& b) { b.op("return"); }) == "E0702 return: an operation stands outside of an entry\n");
  // What the language forbids is the validator's.
  CHECK(body([](Builder& b, Value x) { b.op("addi", {x, x}); }).starts_with("E0502 addi: lhs has element type f32"));
}
