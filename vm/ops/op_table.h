// Access to the operation table: rows by opcode or name, and what follows from a row (record layout, resolved rules).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "vm/ops/op_def.h"

namespace tile {

/// All rows, in ascending opcode.
[[nodiscard]] std::span<const OpDef> op_rows();
/// The row of an opcode; nullptr if no version has it.
[[nodiscard]] const OpDef* find_op(uint32_t code);
[[nodiscard]] const OpDef* find_op(std::string_view name);  ///< by mnemonic or alias, without the dialect prefix
[[nodiscard]] inline const OpDef& op_def(Opcode op) { return *find_op(static_cast<uint32_t>(op)); }

/// Position of a name among the operands (0..) or results (of `results`) of a row; -1 if absent.
[[nodiscard]] int operand_index(const OpDef& op, std::string_view name);
[[nodiscard]] int result_index(const OpDef& op, std::string_view name);
[[nodiscard]] int attr_index(const OpDef& op, std::string_view name);

/// Number of operand groups that are optional or variadic.
[[nodiscard]] int variable_operands(const OpDef& op);
/// True if operands are stored in segments (two or more variable groups): see tileirbc, and Inst::segments.
[[nodiscard]] bool has_segments(const OpDef& op);
/// True if a record says how many results it has (a variadic operand or result).
[[nodiscard]] bool counts_results(const OpDef& op);

/// One bit of the flags word of a tileirbc record, in bit order.
struct FlagBit {
  bool is_operand = false;
  uint8_t index = 0;  ///< of the attribute or operand group
  Version since = v(13, 1);
};
/// The flags word of a row; empty if its records have none.
[[nodiscard]] std::span<const FlagBit> flag_bits(const OpDef& op);

}  // namespace tile
