// Builds a kernel with vm/ir/builder.h and writes it as tilebc: build_kernel FILE. Without FILE it prints the kernel.
//
// @dot adds the products of two arrays of blocks * 64 floats: a loop over blocks of 64 elements, a sum of each, and one
// store of the result.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "assembler/assembler.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/builder.h"
#include "vm/ir/valid_module.h"

int main(int argc, char** argv) {
  using namespace tile;
  Diagnostics diags;
  Builder b("example", diags);
  using Value = Builder::Value;
  using Values = Builder::Values;

  const TypeId number = b.tile(ElementType::I32), numbers = b.tile(ElementType::I32, {64});
  const TypeId sum_type = b.tile(ElementType::F32);
  const TypeId pointer = b.pointers(ElementType::F32), pointers = b.pointers(ElementType::F32, {64});

  b.entry("dot", {{"x", pointer}, {"y", pointer}, {"result", pointer}, {"blocks", number}}, [&](const Values& p) {
    // A pointer to each of 64 neighbours, from a pointer to the first one.
    const auto neighbours = [&](Value first, Value offsets) {
      const Value one = b.value("reshape", {first}, {}, {b.pointers(ElementType::F32, {1})});
      return b.value("offset", {b.value("broadcast", {one}, {}, {pointers}), offsets});
    };
    const Value lanes = b.value("iota", {}, {}, {numbers});
    const Value sum = b.for_loop(b.constant(number, 0), p[3], b.constant(number, 1), {b.constant(sum_type, 0.0)},
                                 [&](Value block, const Values& carried) -> Values {
      const Value start = b.value("muli", {block, b.constant(number, 64)});
      const Value starts = b.value("broadcast", {b.value("reshape", {start}, {}, {b.tile(ElementType::I32, {1})})}, {}, {numbers});
      const Value offsets = b.value("addi", {starts, lanes});
      const auto load = [&](Value first) {
        return b.value("load_ptr_tko", {{"source", neighbours(first, offsets)}}, {{"memory_ordering_semantics", "weak"}});
      };
      const Value products = b.value("mulf", {load(p[0]), load(p[1])});
      const Value added = b.value(
          "reduce", {products},
          {{"dim", 0}, {"identities", Attr{.tag = AttrTag::Array, .items = {b.attrs().floating(b.types().element(ElementType::F32), 0)}}}},
          {sum_type}, {{{sum_type, sum_type}, [&](const Values& v) { b.op("yield", {b.value("addf", {v[0], v[1]})}); }}});
      return {b.value("addf", {carried[0], added})};
    })[0];
    b.name(sum, "sum");
    b.op("store_ptr_tko", {{"destination", p[2]}, {"value", sum}}, {{"memory_ordering_semantics", "weak"}});
  });

  auto module = b.finish();
  const auto valid = module ? validate(*std::move(module), diags) : Result<ValidModule>(Failed);
  if (!valid) {
    std::fputs(render(diags).c_str(), stderr);
    return 1;
  }
  if (argc < 2) {
    std::fputs(print_text(**valid).c_str(), stdout);
    return 0;
  }
  const auto bytes = encode_tilebc(**valid, diags);
  if (!bytes) return 1;
  std::ofstream(argv[1], std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  return 0;
}
