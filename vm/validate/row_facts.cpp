// Resolves the rules of all rows to positions.
#include "vm/validate/row_facts.h"

#include <iterator>
#include <vector>

#include "vm/base/check.h"

namespace tile::validation {
namespace {

Position position_of(const OpDef& def, std::string_view name) {
  if (const int operand = operand_index(def, name); operand >= 0) return {false, static_cast<uint8_t>(operand)};
  const int result = result_index(def, name);
  TILE_CHECK(result >= 0);
  return {true, static_cast<uint8_t>(result)};
}

RowFacts resolve(const OpDef& def) {
  RowFacts facts;
  facts.def = &def;
  facts.segments = has_segments(def);
  for (size_t g = 0; g < def.operands.size(); ++g) {
    if (def.operands[g].arity == Arity::One)
      ++facts.single_operands;
    else
      facts.variable_group = static_cast<int8_t>(g);
  }
  facts.ordering = static_cast<int8_t>(attr_index(def, "memory_ordering_semantics"));
  facts.scope = static_cast<int8_t>(attr_index(def, "memory_scope"));
  facts.rounding = static_cast<int8_t>(attr_index(def, "rounding_mode"));
  facts.flush = static_cast<int8_t>(attr_index(def, "flush_to_zero"));
  for (const Rule& rule : def.rules) {
    if (!between_positions(rule.kind)) {
      TILE_CHECK(facts.whole_count < std::size(facts.whole));
      facts.whole[facts.whole_count] = operation_rule(rule.kind, static_cast<Opcode>(def.code));
      TILE_CHECK(facts.whole[facts.whole_count] != nullptr);
      ++facts.whole_count;
      continue;
    }
    RowRule& out = facts.rules[facts.rule_count++];
    out.kind = rule.kind;
    for (const std::string_view name : rule.at) out.at[out.count++] = position_of(def, name);
  }
  return facts;
}

struct Table {
  std::vector<RowFacts> rows;
  std::vector<uint16_t> by_code;

  Table() {
    for (const OpDef& def : op_rows()) {
      if (by_code.size() <= def.code) by_code.resize(def.code + 1u, 0);
      by_code[def.code] = static_cast<uint16_t>(rows.size());
      rows.push_back(resolve(def));
    }
  }
};

}  // namespace

const RowFacts& row_facts(Opcode op) {
  static const Table table;
  return table.rows[table.by_code[static_cast<size_t>(op)]];
}

}  // namespace tile::validation
