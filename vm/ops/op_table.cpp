// The table itself, and the facts derived from its rows.
#include "vm/ops/op_table.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

namespace tile {
namespace {

constexpr OpDef kRows[] = {
#define TILE_OP(id, opcode, ...) OpDef{.code = opcode, __VA_ARGS__},
#include "vm/ops/rows.inc"
#undef TILE_OP
};
constexpr size_t kRowCount = std::size(kRows);
constexpr uint32_t kCodeLimit = 0x80;

struct Tables {
  std::array<OpDef, kRowCount> sorted;
  std::array<int16_t, kCodeLimit> by_code;
  std::unordered_map<std::string_view, uint16_t> by_name;
  std::array<std::vector<FlagBit>, kRowCount> flags;

  Tables() {
    std::copy(std::begin(kRows), std::end(kRows), sorted.begin());
    std::sort(sorted.begin(), sorted.end(), [](const OpDef& a, const OpDef& b) { return a.code < b.code; });
    by_code.fill(-1);
    for (size_t i = 0; i < kRowCount; ++i) {
      by_code[sorted[i].code] = static_cast<int16_t>(i);
      by_name[sorted[i].name] = sorted[i].code;
      if (!sorted[i].alias.empty()) by_name[sorted[i].alias] = sorted[i].code;
      flags[i] = bits_of(sorted[i]);
    }
  }

  // Bits go by the version of their field, within a version attributes before operands, else by declaration.
  static std::vector<FlagBit> bits_of(const OpDef& op) {
    std::vector<FlagBit> bits;
    for (size_t i = 0; i < op.attrs.size(); ++i)
      if (op.attrs[i].kind == AttrKind::Unit || op.attrs[i].optional) bits.push_back({false, static_cast<uint8_t>(i), std::max(op.attrs[i].since, op.since)});
    if (has_segments(op))
      for (size_t i = 0; i < op.operands.size(); ++i)
        if (op.operands[i].arity == Arity::Optional) bits.push_back({true, static_cast<uint8_t>(i), std::max(op.operands[i].since, op.since)});
    std::stable_sort(bits.begin(), bits.end(), [](const FlagBit& a, const FlagBit& b) { return a.since < b.since; });
    return bits;
  }
};

const Tables& tables() {
  static const Tables t;
  return t;
}

template <class L>
int index_in(const L& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

std::span<const OpDef> op_rows() { return tables().sorted; }

const OpDef* find_op(uint32_t code) {
  if (code >= kCodeLimit || tables().by_code[code] < 0) return nullptr;
  return &tables().sorted[static_cast<size_t>(tables().by_code[code])];
}

const OpDef* find_op(std::string_view name) {
  const auto it = tables().by_name.find(name);
  return it == tables().by_name.end() ? nullptr : find_op(it->second);
}

int operand_index(const OpDef& op, std::string_view name) { return index_in(op.operands, name); }
int result_index(const OpDef& op, std::string_view name) { return index_in(op.results, name); }
int attr_index(const OpDef& op, std::string_view name) { return index_in(op.attrs, name); }

int variable_operands(const OpDef& op) {
  return static_cast<int>(std::count_if(op.operands.begin(), op.operands.end(), [](const OperandDef& o) { return o.arity != Arity::One; }));
}
bool has_segments(const OpDef& op) { return variable_operands(op) >= 2; }
bool counts_results(const OpDef& op) {
  const auto variadic = [](const OperandDef& o) { return o.arity == Arity::Variadic; };
  return std::any_of(op.operands.begin(), op.operands.end(), variadic) || std::any_of(op.results.begin(), op.results.end(), variadic);
}

std::span<const FlagBit> flag_bits(const OpDef& op) { return tables().flags[static_cast<size_t>(tables().by_code[op.code])]; }

}  // namespace tile
