// Turns a function into steps. Evaluator files register one compile function per operation; this class gives them slots.
#pragma once

#include <map>
#include <string>
#include <span>
#include <utility>
#include <vector>

#include "vm/interp/plan.h"

namespace tile {

class PlanBuilder;
/// Appends the steps of an instruction. Returns false if this machine does not execute this form of the operation; `why` says which.
using CompileFn = bool (*)(PlanBuilder&, InstId);
/// The compile function of an operation; nullptr where it is not executed. Defined in eval_table.cpp.
[[nodiscard]] CompileFn compile_fn(Opcode op);

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<const ValidModule> module, const Function& function, Plan& plan, Diagnostics& diags, size_t max_bytes,
              Numerics numerics = Numerics::Exact);
  [[nodiscard]] bool build();

  const Module& module;
  const Function& f;
  const Numerics numerics;  ///< of the values; has no influence on slots
  std::string why;  ///< set by a compile function that returns false

  // Types.
  [[nodiscard]] const Type& type(ValueId value) const { return module.types.get(f.type(value)); }
  [[nodiscard]] ElementType element(ValueId value) const { return module.types.element_of(f.type(value)); }
  [[nodiscard]] size_t storage(ValueId value) const { return info(element(value)).storage; }
  /// Elements of a tile value, times the lanes of a vectorised reduction body.
  [[nodiscard]] size_t count(ValueId value) const;
  [[nodiscard]] size_t bytes(ValueId value) const;  ///< 0 for tokens

  // Slots.
  [[nodiscard]] Slot slot(ValueId value) const;     ///< of an operand; kNoSlot for tokens and kNone
  /// Storage for a result. `reuse` lists operands whose storage the operation may overwrite while it reads them.
  Slot define(ValueId value, std::span<const ValueId> reuse = {});
  void alias(ValueId value, ValueId of);            ///< same bytes
  Slot constant(ValueId value, const void* data, size_t bytes);  ///< makes `value` a constant
  void scratch(size_t bytes);                       ///< this step needs that much scratch
  [[nodiscard]] size_t lanes() const { return lanes_; }

  /// The value whose bytes these are: another one for results that alias their operand.
  [[nodiscard]] ValueId root(ValueId value) const { return root_[value]; }
  /// Position of the last read of a root and its aliases, lifted to the region of its definition; -1 without one.
  [[nodiscard]] int64_t last_use(ValueId root) const { return last_use_[root]; }

  // Steps.
  Step& step(InstId i, EvalFn fn);                  ///< appended; the reference is valid until the next call
  template <class T>
  T* data() {
    return static_cast<T*>(keep(std::make_unique<T>()));
  }
  StepData* keep(std::unique_ptr<StepData> data) { return plan_.data_.emplace_back(std::move(data)).get(); }
  uint32_t step_count() const { return static_cast<uint32_t>(plan_.steps_.size()); }
  Step& step_at(uint32_t i) { return plan_.steps_[i]; }
  [[nodiscard]] const std::byte* constant_at(Slot s) const { return plan_.constants_.data() + (s & ~kConstSlot); }
  uint32_t add_alloca(uint64_t bytes);

  // Regions.
  bool region(const Region& r);                     ///< compiles what is directly and indirectly inside
  void set_lanes(size_t lanes) { lanes_ = lanes; }  ///< inside a vectorised reduction body every scalar is that many elements
  [[nodiscard]] RegionId home(ValueId value) const { return home_[value]; }  ///< the region that defines a value
  void bind(ValueId value, Slot s) { slots_[value] = s; }  ///< storage managed by the caller
  Slot allocate(size_t bytes);                      ///< until released
  void release(Slot s, size_t bytes);
  /// Storage for the argument of a loop that also holds `result` afterwards (kNone: it does not). Takes over the storage of `init`
  /// where that is not read any more.
  Slot define_carried(ValueId arg, ValueId result, ValueId init, InstId loop);
  /// Storage for a result of a region operation, written by terminators inside it.
  Slot define_result(ValueId result, InstId op);
  /// The result of a region operation is read from now on.
  void settle(ValueId result);
  [[nodiscard]] std::vector<Move> moves(std::span<const ValueId> from, std::span<const Slot> to, Slot* temp);
  /// Values that the terminators of the region at hand will hand to these slots: results are placed there where possible.
  void prefer(ValueId value, Slot s) { preferred_[value] = s; }

  struct LoopFrame {
    InstId inst;
    std::vector<Slot> args, results;
  };
  std::vector<LoopFrame> loops;                     ///< innermost last
  std::vector<LoopFrame> yields;                    ///< targets of yield, innermost last

 private:
  struct Record {                                   // one piece of storage
    size_t offset, bytes;
    int64_t busy_until;                             // last position where the value that holds it is read
    int64_t lives_until;                            // released after this position
  };
  void analyse();
  [[nodiscard]] InstId lifted(InstId use, RegionId home) const;
  bool reuse_record(ValueId value, ValueId operand, int64_t last);
  uint32_t add_record(size_t bytes, int64_t busy_until, int64_t lives_until);
  void hold(ValueId value, uint32_t record, int64_t last);
  void release_up_to(int64_t position);
  size_t allocate_bytes(size_t bytes);
  void free_bytes(size_t offset, size_t bytes);

  Plan& plan_;
  Diagnostics& diags_;
  size_t max_bytes_;
  uint64_t alloca_bytes_ = 0;  // of all allocas together
  size_t lanes_ = 1;
  std::vector<Slot> slots_;
  std::vector<ValueId> root_;
  std::vector<int64_t> last_use_;
  std::vector<RegionId> home_;                      // region that defines a value
  std::vector<RegionId> region_of_;                 // region of an instruction
  std::vector<uint32_t> record_of_;                 // by root value
  std::vector<Record> records_;
  std::map<int64_t, std::vector<uint32_t>> expiring_;
  std::map<size_t, size_t> free_;                   // offset -> bytes
  std::map<ValueId, Slot> preferred_;
  std::map<Slot, uint32_t> record_at_;              // the live record of a slot
  InstId current_ = 0;
};

}  // namespace tile
