// Growth of the index and the seed of its hashes.
#include "vm/ir/hash_index.h"

#include <algorithm>
#include <cstring>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tile {

uint64_t hash_seed() {
  uint64_t seed = 0x9E3779B97F4A7C15ull;
#if defined(__linux__)
  // 16 random bytes that the kernel gives to every process.
  if (const auto* random = reinterpret_cast<const void*>(getauxval(AT_RANDOM))) std::memcpy(&seed, random, sizeof seed);
#endif
  return seed;
}

void HashIndex::grow() {
  std::vector<Slot> old(std::max<size_t>(2 * slots_.size(), 16));  // small tables stay in the cache
  old.swap(slots_);
  for (const Slot& s : old) {
    if (s.id == kNone) continue;
    size_t i = s.key & (slots_.size() - 1);
    while (slots_[i].id != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = s;
  }
}

}  // namespace tile
