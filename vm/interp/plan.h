// A validated entry turned into dense steps: operand slots resolved, storage reused by liveness, constants laid out.
// Made once, run for every block of every launch. Building is in plan_builder.h, running in exec.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vm/interp/kernel_types.h"
#include "vm/ir/valid_module.h"

namespace tile {

class Exec;
struct FusedGroup;
struct Step;

/// Where a value lives: byte offset into the block's storage, or into the plan's constants if the top bit is set.
using Slot = uint64_t;
inline constexpr Slot kConstSlot = uint64_t{1} << 63;
inline constexpr Slot kNoSlot = ~uint64_t{0};

/// How a step or a run of steps ended.
enum class Flow : uint8_t { Next, Break, Continue, Return, Trap };

using EvalFn = Flow (*)(Exec&, const Step&);

/// Data of a step beyond slots; each evaluator that needs some derives from it.
struct StepData {
  virtual ~StepData() = default;
};

struct Move {
  Slot from, to;
  size_t bytes;
};

struct Step {
  EvalFn fn = nullptr;
  uint32_t next = 0;                      ///< index of the step after this one and its bodies
  InstId inst = kNone;
  size_t n = 0;                           ///< elements of the result, or as the evaluator says
  Slot in[6] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot out[3] = {kNoSlot, kNoSlot, kNoSlot};
  const StepData* data = nullptr;         ///< owned by the plan
  ElementwiseFn kernel = nullptr;
  uint32_t body[3] = {0, 0, 0};           ///< steps of the regions: [body[0], body[1]) and [body[1], body[2])
  const FusedGroup* fused = nullptr;      ///< the group that begins here (fused.h), where nobody observes the launch
};

/// A run-time view: what make_tensor_view left in a slot. Extents and strides follow: shape[0..r), strides[0..r), int64 each.
struct ViewHeader {
  uint64_t base;
};
inline constexpr size_t view_bytes(size_t rank) { return sizeof(ViewHeader) + 16 * rank; }

class Plan {
 public:
  [[nodiscard]] const Module& module() const { return **module_; }
  [[nodiscard]] const Function& function() const { return *function_; }
  [[nodiscard]] size_t storage_bytes() const { return storage_bytes_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// True if some step may be worth the work of several threads.
  [[nodiscard]] bool large() const { return storage_bytes_ + constants_.size() >= kLarge; }

  /// Plans an entry.
  /// @error E0808 an operation that this machine knows but does not execute; L0103 tiles larger than `max_bytes` in one block
  [[nodiscard]] static Result<std::shared_ptr<const Plan>> make(std::shared_ptr<const ValidModule> module, const Function& function, Diagnostics& diags,
                                                                size_t max_bytes = size_t{4} << 30, Numerics numerics = Numerics::Exact);

 private:
  friend class PlanBuilder;
  friend class Exec;
  friend class Launcher;
  static constexpr size_t kLarge = size_t{64} << 10;  // bytes of tiles
  std::shared_ptr<const ValidModule> module_;
  const Function* function_ = nullptr;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<StepData>> data_;
  std::vector<std::byte> constants_;
  std::vector<Slot> params_;
  size_t storage_bytes_ = 0;
  size_t scratch_bytes_ = 0;              ///< shared by all steps of one block, contents do not outlive a step
  std::vector<uint64_t> alloca_bytes_;    ///< one entry for each alloca in the entry
};

}  // namespace tile
