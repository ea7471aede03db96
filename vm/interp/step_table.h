// What observers need to know about a plan: which steps stand for an operation, which operations have none, where
// values lie.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vm/interp/plan.h"

namespace tile {

/// A line of source; `line` 0: unknown.
struct LineRef {
  std::string file;
  uint32_t line = 0;
  [[nodiscard]] std::string text() const;  ///< "FILE:LINE" for a line of text; empty for line 0
};
/// The line of an operation: in the text that the module was read from, else that of its debug location.
[[nodiscard]] LineRef line_of(const Module& module, const Function& function, InstId i);
/// "%sum" as the module names the value, else "%12".
[[nodiscard]] std::string value_name(const Module& module, const Function& function, ValueId value);

/// One entry for each step of a plan.
class StepTable {
 public:
  struct Entry {
    bool in_body =
        false;  ///< inside reduce or scan: it runs for many positions at once, in an order of the machine's own
    bool preparation = false;  ///< belongs to the operation of a later step
    bool terminator = false;
    uint32_t depth = 0;          ///< regions around the operation
    RegionId opens = kNone;      ///< the region whose first step this is; not set inside reduce and scan
    std::vector<InstId> silent;  ///< operations without steps just before this one (constants, views, reshapes, tokens)
  };
  StepTable() = default;
  explicit StepTable(const Plan& plan);

  [[nodiscard]] static size_t index(const Plan& plan, const Step& step) {
    return static_cast<size_t>(&step - plan.steps().data());
  }
  [[nodiscard]] const Entry& operator[](size_t step) const { return entries_[step]; }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  /// The region that an operation stands in.
  [[nodiscard]] RegionId region_of(InstId i) const { return region_of_[i]; }

 private:
  std::vector<Entry> entries_;
  std::vector<RegionId> region_of_;
};

/// Slots of all values of an entry, kNoSlot for tokens. A value's bytes are there from its definition to its last use;
/// those of values inside reduce and scan are not told. Plans the entry a second time: planning is deterministic, and a
/// plan that nobody watches need not keep this table.
[[nodiscard]] std::vector<Slot> value_slots(const std::shared_ptr<const ValidModule>& module, const Function& function);

}  // namespace tile
