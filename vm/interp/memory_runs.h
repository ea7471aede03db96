// Telling a checker of all accesses of a step at once: a gather of thousands of elements is one event, not one for each.
#pragma once

#include "vm/interp/exec.h"

namespace tile {

/// Collects the accesses of a step; one at a time for each Exec.
class RunCollector {
 public:
  RunCollector(Exec& x, MemoryAccess::Kind kind, size_t element_bytes) : x_(x), kind_(kind), size_(element_bytes) { x.runs.clear(); }
  /// `n` neighbours, the first of which is element `first` of the tile. Elements come in ascending order.
  void add(uint64_t address, size_t first, size_t n) { x_.runs.push_back({address, static_cast<uint32_t>(first), static_cast<uint32_t>(n)}); }
  /// As add(), joined to what came before where it follows it.
  void join(uint64_t address, size_t first) {
    if (!x_.runs.empty()) {
      MemoryRuns::Run& last = x_.runs.back();
      if (last.address + last.n * size_ == address && last.first + last.n == first) {
        ++last.n;
        return;
      }
    }
    add(address, first, 1);
  }
  /// False if the observer must be told of each access by itself: it asks for that, or they do not all lie in one allocation.
  /// @param aligned  false too if some element is not aligned to its size
  bool tell(const Step& s, bool aligned = false);

 private:
  bool tell_box(const Step& s);
  Exec& x_;
  const MemoryAccess::Kind kind_;
  const size_t size_;
};

}  // namespace tile
