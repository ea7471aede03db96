// The hash step of the interned tables of a module. Not for anything that is stored: the value may change.
#pragma once

#include <cstdint>

namespace tile {

/// Both halves of a product. `h` starts with a seed that the input does not know, so differences between two inputs
/// cannot be made to cancel.
inline uint64_t mix(uint64_t h, uint64_t x) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(h ^ x) * 0x9E3779B97F4A7C15ull;
  return (static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) + 0xBF58476D1CE4E5B9ull;
}

}  // namespace tile
