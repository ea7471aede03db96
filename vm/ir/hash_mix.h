// The hash step of the interned tables of a module. Not for anything that is stored: the value may change.
#pragma once

#include <cstdint>

namespace tile {

inline uint64_t mix(uint64_t h, uint64_t x) {
  h ^= x + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  return h * 0xBF58476D1CE4E5B9ull;
}

}  // namespace tile
