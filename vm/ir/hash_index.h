// An index over the entries of an interned table: which entry has this content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/ir/ids.h"

namespace tile {

/// The number that hashes of one process start from. Input that is made to collide must guess it.
[[nodiscard]] uint64_t hash_seed();

/// Open addressing with linear probing, at most half full. Slots hold half of the hash, so that entries with other
/// content are rarely looked at.
class HashIndex {
 public:
  HashIndex() : seed_(hash_seed()) {}
  /// What the hash of an entry must start with.
  [[nodiscard]] uint64_t seed() const { return seed_; }
  /// The entry with this hash for which `same(id)` holds; if there is none, `next` becomes one and kNone is returned.
  template <class Same>
  uint32_t find_or_add(uint64_t hash, uint32_t next, const Same& same) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const auto key = static_cast<uint32_t>(hash ^ (hash >> 32));
    size_t i = key & (slots_.size() - 1);
    for (; slots_[i].id != kNone; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].key == key && same(slots_[i].id)) return slots_[i].id;
    slots_[i] = {key, next};
    ++used_;
    return kNone;
  }

 private:
  struct Slot {
    uint32_t key = 0, id = kNone;
  };
  void grow();

  std::vector<Slot> slots_;  // none, or a power of two
  size_t used_ = 0;
  uint64_t seed_;
};

}  // namespace tile
