// Makes a program that shows a fault smaller: instructions are replaced by an operand or by zeros while the fault
// stays.
#pragma once

#include <functional>
#include <optional>

#include "vm/ir/module.h"

namespace tile::random_program {

/// What becomes of one instruction.
struct Edit {
  enum class Kind : uint8_t {
    None,
    Drop,       ///< its token result becomes its token operand; no other result of it is in use
    ToOperand,  ///< its results become operand number `operand`, of the same type
    ToZeros,    ///< its results become constants
  };
  InstId inst = kNone;
  Kind kind = Kind::None;
  uint32_t operand = 0;
};

/// The module with the edit made and, if `clean`, without what nobody uses then; no value where the edit cannot be
/// made.
[[nodiscard]] std::optional<Module> edited(const Module& m, const Edit& edit, bool clean);

/// The smallest module found for which `shows` is true. `shows` is asked only about modules that it may find invalid.
[[nodiscard]] Module reduce(Module m, const std::function<bool(const Module&)>& shows);

}  // namespace tile::random_program
