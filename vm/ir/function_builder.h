// Appends operations to a function in pre-order and keeps the numbering of values. Used by every reader and by frontends.
// Checks nothing about types; that is the validator's.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "vm/ir/module.h"

namespace tile {

/// Everything that an operation holds besides its regions.
struct OpInit {
  Opcode op{};
  std::span<const ValueId> operands;     ///< flattened
  std::span<const uint32_t> segments;    ///< one count per operand group if has_segments(row), else empty
  std::span<const uint32_t> attrs;       ///< one word per attribute of the row
  std::span<const TypeId> result_types;
  LocId loc = kUnknownLoc;
};

/// Spans of an operation read from text, parallel to OpInit.
struct OpSpans {
  Span op;
  std::span<const Span> operands, attrs, results;
};

class FunctionBuilder {
 public:
  /// Starts a function with the given parameters. The function must outlive the builder and not move.
  FunctionBuilder(Function& function, std::span<const TypeId> params);

  /// Appends an operation; its regions, if the row has any, must follow: for each one begin_region ... end_region or absent_region,
  /// then end_op. Operations without regions are complete at once.
  InstId op(const OpInit& init, const OpSpans* spans = nullptr);
  /// Opens the next region of the innermost open operation; its arguments get the next value numbers.
  RegionId begin_region(std::span<const TypeId> arg_types);
  void end_region();
  void absent_region();
  void end_op();
  /// Closes the body. After this the function is complete.
  void finish();

  [[nodiscard]] ValueId param(uint32_t i) const { return i; }
  [[nodiscard]] ValueId next_value() const { return static_cast<ValueId>(f_.value_types.size()); }
  [[nodiscard]] size_t depth() const { return open_.size(); }
  [[nodiscard]] Function& function() { return f_; }
  void name_value(ValueId value, StringId name);
  void value_span(ValueId value, Span span);

 private:
  struct Open {
    InstId inst;
    uint32_t next_region;
    bool in_region;
  };
  Function& f_;
  std::vector<Open> open_;
};

}  // namespace tile
