// The fingerprint by which the writer sees that a module is still the one that was read.
#include "assembler/tileirbc/layout.h"

#include <cstring>

namespace tile::tileirbc {
namespace {

class Hash {
 public:
  void number(uint64_t x) {
    h_ = (h_ ^ x) * 0x9E3779B97F4A7C15ull;
    h_ ^= h_ >> 32;
  }
  void numbers(const std::vector<uint32_t>& v) {
    number(v.size());
    size_t i = 0;
    for (; i + 2 <= v.size(); i += 2) number(v[i] | uint64_t{v[i + 1]} << 32);
    if (i < v.size()) number(v[i]);
  }
  [[nodiscard]] uint64_t value() const { return h_; }

 private:
  uint64_t h_ = 0xCBF29CE484222325ull;
};

}  // namespace

uint64_t fingerprint(const Module& m) {
  Hash h;
  const auto pair = [&h](uint32_t a, uint32_t b) { h.number(a | uint64_t{b} << 32); };
  pair(m.producer, static_cast<uint32_t>(m.globals.size()));
  for (const Global& g : m.globals) {
    pair(g.name, g.value);
    h.number(g.alignment);
    pair(g.visibility, g.constant);
  }
  h.number(m.functions.size());
  for (const Function& f : m.functions) {
    pair(f.name, f.loc);
    pair(f.hints, f.arg_attrs);
    pair(f.param_count, static_cast<uint32_t>(f.insts.size()));
    for (const Inst& i : f.insts) {
      pair(static_cast<uint32_t>(i.op), i.next);
      pair(i.word, i.operand_count);
      pair(i.result_count, i.first_result);
      pair(i.first_region, i.loc);
    }
    h.number(f.regions.size());
    for (const Region& r : f.regions) {
      pair(r.parent, r.first_arg);
      pair(r.arg_count, r.begin);
      pair(r.end, r.present);
    }
    h.numbers(f.words);
    h.numbers(f.value_types);
  }
  return h.value();
}

}  // namespace tile::tileirbc
