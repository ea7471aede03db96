// Which arrays a launch writes, and how: where nothing is written, or all accesses are atomics, no two accesses can conflict.
#pragma once

#include <atomic>
#include <vector>

#include "vm/interp/check_part.h"

namespace tile {

/// Where the addresses of an operation may come from: entry parameters and globals, one bit each.
struct AddressRoots {
  uint64_t bits = 0;
  bool any = false;  ///< nobody knows: made of integers, or loaded
  bool operator|=(const AddressRoots& o) {
    const uint64_t before = bits;
    const bool known = !any;
    bits |= o.bits;
    any = any || o.any;
    return bits != before || (known && any);
  }
};

/// What the operations of an entry may do to each array of a launch. Pointers do not leave their allocation by arithmetic (memory.h), unless by
/// steps of 2^40 bytes: where that happens, everything may happen to every array from then on.
class ArrayUse : public CheckPart {
 public:
  ArrayUse(const CheckFacts& facts, Findings& findings);
  void launch_begin(const Launch& launch) override;
  void block_begin(Exec& x) override {
    if (!workers_[x.worker].known) learn(x);
  }
  /// To be told of every write.
  void wrote(const Exec& x, uint64_t address) {
    if (!(flags(x, address) & kWritten)) surprise();
  }
  /// Accesses of one block to the array of this address may conflict.
  [[nodiscard]] bool order(const Exec& x, uint64_t address) const { return flags(x, address) & kOrder; }
  /// Accesses of two blocks may.
  [[nodiscard]] bool race(const Exec& x, uint64_t address) const { return flags(x, address) & kRace; }
  /// Accesses of two blocks to some array may, as far as the operations tell.
  [[nodiscard]] bool any_race(const Exec& x) const { return workers_[x.worker].any_race; }

  /// Where a value that holds addresses may have them from.
  [[nodiscard]] const AddressRoots& roots(ValueId v) const { return roots_[v]; }

 private:
  // What some operation does to a root or an array.
  enum : uint8_t {
    kWritten = 1,
    kWeak = 2,    ///< an access of another block is not ordered by itself
    kSloppy = 4,  ///< an access of the same block is not, or one step may write a place twice
    kOrder = 8,
    kRace = 16,
    kAll = 31
  };
  struct Worker {
    bool known = false, any_race = false;
    std::vector<uint8_t> flags;  // by allocation
  };
  [[nodiscard]] uint8_t flags(const Exec& x, uint64_t address) const {
    const auto& known = workers_[x.worker].flags;
    const size_t a = allocation_of(address);
    return a < known.size() && !surprised_.load(std::memory_order_relaxed) ? known[a] : uint8_t{kAll};
  }
  void find_roots();
  void learn(const Exec& x);
  void surprise();

  std::vector<AddressRoots> roots_;  // by value
  std::vector<uint8_t> of_root_;     // by bit
  std::vector<ValueId> params_;      // those that hold addresses
  uint8_t of_any_ = 0;
  std::vector<Worker> workers_;
  std::atomic<bool> surprised_{false};
};

}  // namespace tile
