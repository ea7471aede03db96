// What every checker needs to know about the operations of an entry: where values lie, what is carried where, how
// memory is accessed.
#pragma once

#include <memory>
#include <vector>

#include "vm/interp/exec.h"
#include "vm/interp/step_table.h"

namespace tile {

/// A value handed on by control flow.
struct Carry {
  ValueId from, to;
  bool token = false;  ///< it is one
};

class CheckFacts {
 public:
  struct Op {
    bool in_body = false;  ///< inside reduce or scan: not looked at one by one
    bool control = false;  ///< has regions, and is not reduce or scan
    AttrId inbounds = kNone;
    // Accesses of memory: operations with a memory ordering.
    bool memory = false, reads = false, writes = false;
    bool strong = false;  ///< not weak
    bool device = false;  ///< scope device or sys
    bool acquire = false, release = false;
    unsigned element_bits = 8;  ///< in memory
    uint32_t ordinal = 0;       ///< among the accesses of the entry
    // Operands by role; kNone where the operation has none.
    std::vector<ValueId> tokens;  ///< operands
    ValueId token = kNone;        ///< the result
    ValueId pointers = kNone, view = kNone, mask = kNone, padding = kNone, value = kNone, loaded = kNone;
    // Control flow: copies before the step runs (initial values, terminators) and after it is done (results of for).
    std::vector<Carry> before, after;
  };

  CheckFacts(const std::shared_ptr<const ValidModule>& module, const Plan& plan);

  const Module& module;
  const Function& f;
  const StepTable steps;
  [[nodiscard]] const Op& op(InstId i) const { return ops_[i]; }
  [[nodiscard]] uint32_t accesses() const { return accesses_; }
  [[nodiscard]] bool synchronises() const { return synchronises_; }  ///< some access orders other blocks
  [[nodiscard]] const Type& type(ValueId v) const { return module.types.get(f.type(v)); }
  [[nodiscard]] ElementType element(ValueId v) const { return elements_[v]; }
  [[nodiscard]] bool is_tile(ValueId v) const { return counts_[v] != 0; }
  [[nodiscard]] std::span<const ValueId> operands(InstId i) const {
    return operands_[i];
  }  ///< faster than f.operands(i)
  [[nodiscard]] bool is_token(ValueId v) const { return module.types.is_token(f.type(v)); }
  [[nodiscard]] size_t count(ValueId v) const { return counts_[v]; }  ///< elements of a tile
  [[nodiscard]] std::string name(ValueId v) const { return value_name(module, f, v); }
  /// A value's bytes, valid from its definition to its last use. Not for values inside reduce and scan.
  template <class T = std::byte>
  [[nodiscard]] const T* data(const Exec& x, ValueId v) const {
    return x.at<T>(slots_[v]);
  }
  /// An attribute by name; `absent` where the operation has no such attribute.
  [[nodiscard]] uint32_t attr(InstId i, std::string_view name, uint32_t absent = kNone) const;

 private:
  void carries();
  std::vector<Slot> slots_;
  std::vector<size_t> counts_;  // 0: not a tile
  std::vector<ElementType> elements_;
  std::vector<std::span<const ValueId>> operands_;
  std::vector<Op> ops_;
  uint32_t accesses_ = 0;
  bool synchronises_ = false;
};

}  // namespace tile
