// Elementary functions of f32 and f64 at hard arguments: next to multiples of pi/2, to 1, to the ends of the range, and where the exact value lies
// next to the middle between two results. The expected values are mpmath's (tests/functions/sample.py --write).
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/elementwise.h"
#include "vm/interp/isa/isa.h"

using namespace tile;

namespace {

struct Case {
  std::string function;
  unsigned bits = 0;     ///< of the type
  uint64_t x = 0, y = 0; ///< operands; y is 0 where there is one only
  uint64_t nearest = 0;  ///< number to the exact value
  double rest = 0;       ///< exact value above it, in units of the last place
};
std::vector<Case> read_cases() {
  std::ifstream in(TILE_TEST_SOURCE_DIR "/tests/functions/hard_cases.txt");
  std::vector<Case> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Case c;
    words >> c.function >> c.bits >> std::hex >> c.x >> c.y >> c.nearest >> c.rest;
    REQUIRE(words);
    out.push_back(c);
  }
  return out;
}

const std::map<std::string, Opcode> kOpcodes = {
    {"exp", Opcode::Exp},   {"exp2", Opcode::Exp2}, {"log", Opcode::Log},   {"log2", Opcode::Log2}, {"rsqrt", Opcode::Rsqrt}, {"sin", Opcode::Sin},     {"cos", Opcode::Cos},
    {"tan", Opcode::Tan},   {"sinh", Opcode::SinH}, {"cosh", Opcode::CosH}, {"tanh", Opcode::TanH}, {"pow", Opcode::FPowF},   {"atan2", Opcode::Atan2},
};

template <class Bits>
std::vector<Bits> run(Opcode op, ElementType t, const std::vector<Bits>& x, const std::vector<Bits>& y) {
  const ElementwiseFn f = find_elementwise(op, t, t, Modifiers{});
  const bool found = f != nullptr;
  REQUIRE(found);
  std::vector<Bits> out(x.size());
  const void* in[] = {x.data(), y.data()};
  f(out.data(), in, x.size());
  return out;
}

struct Tally {
  size_t cases = 0, wrong = 0;
  std::string first;
};

template <class Bits>
Tally tally(const std::vector<Case>& all, const std::string& function, ElementType t) {
  std::vector<const Case*> cases;
  std::vector<Bits> x, y;
  for (const Case& c : all)
    if (c.function == function && c.bits == 8 * sizeof(Bits)) {
      cases.push_back(&c);
      x.push_back(static_cast<Bits>(c.x));
      y.push_back(static_cast<Bits>(c.y));
    }
  const std::vector<Bits> got = run(kOpcodes.at(function), t, x, y);
  // Nearer than this to a middle, the neighbour on the other side of it is right too: more than half a unit off by less than this.
  constexpr double kNear = 1e-6;
  Tally out;
  out.cases = cases.size();
  for (size_t k = 0; k < cases.size(); ++k) {
    const Case& c = *cases[k];
    bool right = got[k] == static_cast<Bits>(c.nearest);
    if (!right && 0.5 - std::fabs(c.rest) < kNear) {
      const bool negative = c.nearest >> (8 * sizeof(Bits) - 1) != 0;
      right = got[k] == static_cast<Bits>(c.nearest + ((c.rest > 0) != negative ? 1 : ~uint64_t{0}));
    }
    if (!right && out.wrong++ == 0) out.first = std::to_string(c.x) + ", " + std::to_string(c.y) + " gives " + std::to_string(got[k]) + " for " + std::to_string(c.nearest);
  }
  return out;
}

}  // namespace

TEST_CASE("functions at hard arguments are the exact value rounded") {
  const std::vector<Case> all = read_cases();
  const Isa before = current_isa();
  for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
    if (!force_isa(isa)) continue;
    for (const auto& [name, op] : kOpcodes) {
      for (const bool wide : {false, true}) {
        const Tally t = wide ? tally<uint64_t>(all, name, ElementType::F64) : tally<uint32_t>(all, name, ElementType::F32);
        const std::string what = name + (wide ? " f64: " : " f32: ") + t.first;
        CAPTURE(what);
        CHECK(t.cases >= 12);
        CHECK(t.wrong == 0);
      }
    }
  }
  force_isa(before);
}
