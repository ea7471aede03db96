// Deterministic contents for arrays: every element is a function of generator, seed and index, the same on every
// machine. Formulas in spec/launch.md; tools/python/tile_generate.py computes the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vm/base/diagnostics.h"
#include "vm/runtime/array.h"

namespace tile {

struct Generator {
  enum class Kind : uint8_t { Zeros, Ones, Full, Arange, Uniform, Normal, Randint, Bits, Eye };
  Kind kind = Kind::Zeros;
  uint64_t seed = 1;
  uint64_t value = 0;            ///< Full, Ones, Eye: bits of the element
  double first = 0, second = 0;  ///< Arange: start, step; Uniform: lo, hi; Normal: mean, std (float types)
  uint64_t low = 0, range = 0;   ///< Arange of integers: start, step; Randint: lo, hi - lo (modulo 2^64)
};

/// Reads "normal(seed=1, std=2)" for elements of `type`: parameters by position or name, spaces allowed between words.
/// E0804 names the word that is wrong; E0803 a generator that the type does not have.
[[nodiscard]] Result<Generator> parse_generator(std::string_view text, ElementType type, const Place& place,
                                                Diagnostics& diags);

/// Element number `linear` (row-major) of an array whose last extent is `columns`, which only Eye needs.
[[nodiscard]] uint64_t generate_element(const Generator& g, ElementType type, uint64_t linear, uint64_t columns);

/// Fills the array; bytes of its memory that hold no element become 0xFF. Where strides overlap, the last index wins.
void generate(const Generator& g, Array& a);

/// Output number `index` of SplitMix64 started at `seed` (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
[[nodiscard]] uint64_t random_bits(uint64_t seed, uint64_t index);
/// Inverse of the normal distribution by additions, multiplications, divisions and square roots alone; 0 < p < 1, error
/// below 1e-14.
[[nodiscard]] double normal_quantile(double p);

}  // namespace tile
