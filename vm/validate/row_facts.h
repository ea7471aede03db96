// What the validator needs of a row of the operation table, resolved once from names to positions.
#pragma once

#include <cstdint>

#include "vm/ops/op_table.h"

namespace tile::validation {

class Checker;

/// A rule of a whole operation; runs only for operations in which no rule between positions is broken.
using OperationRule = void (*)(Checker&);
/// The hand-written rule of an operation; nullptr if it has none.
[[nodiscard]] OperationRule special_rule(Opcode op);
/// What stands behind a kind of rule that is not between positions.
[[nodiscard]] OperationRule operation_rule(RuleKind kind, Opcode op);

/// An operand group or a result of a row.
struct Position {
  bool is_result = false;
  uint8_t index = 0;
};

struct RowRule {
  RuleKind kind = RuleKind::Special;
  uint8_t count = 0;
  Position at[5];
};

struct RowFacts {
  const OpDef* def = nullptr;
  bool segments = false;
  uint8_t single_operands = 0;  ///< groups with exactly one value
  int8_t variable_group = -1;   ///< the one that takes what the single ones leave, in rows without segments
  int8_t ordering = -1, scope = -1, rounding = -1, flush = -1;  ///< attributes by index
  uint8_t rule_count = 0;
  RowRule rules[5];
  uint8_t whole_count = 0;
  OperationRule whole[2] = {};
};

/// Facts of an operation. The table is made on first use; thread safe.
[[nodiscard]] const RowFacts& row_facts(Opcode op);

}  // namespace tile::validation
