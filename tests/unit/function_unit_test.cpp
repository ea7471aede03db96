// The model of the function unit against what an H200 gave: tests/golden/function_unit_h200.txt, hashes of whole ranges of its results, and the
// operations that are made of it.
#include "vm/interp/function_unit.h"

#include <doctest/doctest.h>
#include <xxhash.h>

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/numerics_h200.h"

namespace tile {
namespace {

using UnitFn = uint32_t (*)(uint32_t);
const std::map<std::string, UnitFn>& unit_functions() {
  static const std::map<std::string, UnitFn> all = {{"reciprocal", unit_reciprocal},
                                                    {"root", unit_root},
                                                    {"inverse_root", unit_inverse_root},
                                                    {"power_of_two", unit_power_of_two},
                                                    {"hyperbolic_tangent", unit_hyperbolic_tangent}};
  return all;
}

/// Results of a range of operands in the order of their bits, as the GPU's were hashed.
uint64_t hash_of(UnitFn f, uint32_t first, size_t count) {
  std::vector<uint32_t> results(count);
  for (size_t i = 0; i < count; ++i) results[i] = f(first + static_cast<uint32_t>(i));
  return XXH3_64bits(results.data(), count * sizeof(uint32_t));
}

/// A section of tests/golden/operations_h200.txt: the kernel that its name asks for.
struct Measured {
  ElementwiseFn kernel = nullptr, exact = nullptr;
  bool wide = true;  ///< f32, else 16 bits
  explicit Measured(const std::string& name) {
    static const std::map<std::string, Opcode> ops = {
        {"atan2", Opcode::Atan2}, {"cos", Opcode::Cos}, {"cosh", Opcode::CosH}, {"divf", Opcode::DivF}, {"exp", Opcode::Exp},   {"exp2", Opcode::Exp2},
        {"log", Opcode::Log},     {"log2", Opcode::Log2}, {"pow", Opcode::FPowF}, {"rsqrt", Opcode::Rsqrt}, {"sin", Opcode::Sin}, {"sinh", Opcode::SinH},
        {"sqrt", Opcode::Sqrt},   {"tan", Opcode::Tan}, {"tanh", Opcode::TanH}};
    static const std::map<std::string, ElementType> types = {{"f32", ElementType::F32}, {"f16", ElementType::F16}, {"bf16", ElementType::BF16}};
    std::istringstream words(name);
    std::string op, type;
    words >> op >> type;
    Modifiers m;
    for (std::string word; words >> word;) {
      if (word == "approx") m.rounding = Rounding::Approx;
      if (word == "full") m.rounding = Rounding::Full;
      if (word == "flush_to_zero") m.flush_to_zero = true;
    }
    const ElementType t = types.at(type);
    wide = t == ElementType::F32;
    kernel = find_elementwise(ops.at(op), t, t, m, Numerics::H200);
    exact = find_elementwise(ops.at(op), t, t, m);
  }

  uint32_t result(const std::vector<uint32_t>& operands) const {
    uint32_t out = 0;
    const void* in[2] = {&operands[0], operands.size() > 1 ? &operands[1] : nullptr};
    kernel(&out, in, 1);  // the low half of a word is where a computer of this byte order has its 16 bits
    return wide ? out : out & 0xFFFF;
  }
};

TEST_CASE("single results of the function unit") {
  std::ifstream file(std::string(TILE_TEST_SOURCE_DIR) + "/tests/golden/function_unit_h200.txt");
  UnitFn f = nullptr;
  std::string name;
  std::map<std::string, size_t> right, wrong;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("[")) {
      name = line.substr(1, line.size() - 2);
      f = unit_functions().at(name);
      continue;
    }
    uint32_t x = 0, y = 0;
    REQUIRE((std::istringstream(line) >> std::hex >> x >> y));
    if (f(x) == y) {
      ++right[name];
      continue;
    }
    if (++wrong[name] <= 5) FAIL_CHECK(name << " of " << std::hex << x << " is " << f(x) << ", an H200 gives " << y);
  }
  REQUIRE(right.size() == unit_functions().size());
  for (const auto& found : right) CHECK(found.second > 1500);
}

TEST_CASE("every result of the function unit in whole binades") {
  constexpr size_t kBinade = size_t{1} << 23;
  CHECK(hash_of(unit_reciprocal, 0x3F800000, kBinade) == 0x77562BEBD4C1D704);     // [1, 2)
  CHECK(hash_of(unit_inverse_root, 0x3F800000, kBinade) == 0x5B4C7535354F3719);   // [1, 2)
  CHECK(hash_of(unit_inverse_root, 0x40000000, kBinade) == 0x54227603034B815A);   // [2, 4)
  CHECK(hash_of(unit_root, 0x3F800000, kBinade) == 0x1EA90A7E5C783268);           // [1, 2)
  CHECK(hash_of(unit_root, 0x40000000, kBinade) == 0xF99335092CBC8EFA);           // [2, 4)
  CHECK(hash_of(unit_power_of_two, 0x3F800000, kBinade) == 0x090EB25452189A1A);   // [1, 2)
  CHECK(hash_of(unit_power_of_two, 0xBF800000, kBinade) == 0x44EC298E5A45C801);   // (-2, -1]
  CHECK(hash_of(unit_hyperbolic_tangent, 0x3E000000, kBinade) == 0x9AA7D7541BE5D85C);  // [1/8, 1/4)
  CHECK(hash_of(unit_hyperbolic_tangent, 0x3F000000, kBinade) == 0xCED354697142A3A6);  // [1/2, 1)
  CHECK(hash_of(unit_hyperbolic_tangent, 0x3F800000, kBinade) == 0xB8F87AC37FCBDB07);  // [1, 2)
  CHECK(hash_of(unit_hyperbolic_tangent, 0x40000000, kBinade) == 0x61D94AC4EBC3724C);  // [2, 4)
}

TEST_CASE("operations made of the function unit, as compiled and run on an H200") {
  std::ifstream file(std::string(TILE_TEST_SOURCE_DIR) + "/tests/golden/operations_h200.txt");
  std::optional<Measured> measured;
  std::string name;
  size_t sections = 0, wrong = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("[")) {
      name = line.substr(1, line.size() - 2);
      measured.emplace(name);
      const bool follows = measured->kernel != measured->exact;
      REQUIRE_MESSAGE(follows, name);
      ++sections;
      continue;
    }
    std::istringstream words(line);
    std::vector<uint32_t> operands;
    for (uint32_t word = 0; words >> std::hex >> word;) operands.push_back(word);
    REQUIRE(operands.size() > 1);
    const uint32_t wanted = operands.back();
    operands.pop_back();
    if (measured->result(operands) != wanted && ++wrong <= 10)
      FAIL_CHECK(name << ": " << line << ", but found " << std::hex << measured->result(operands));
  }
  CHECK(sections >= 3);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace tile
