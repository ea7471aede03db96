// Exact conversion between the bits of every float element type and f64, in every rounding mode.
// Not arithmetic: the elementwise kernels live in vm/interp. Rules: spec/semantics.md "Numbers".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vm/base/element_type.h"

// Inlined at every optimisation level: files compiled for several instruction sets use these functions, and an
// out-of-line copy made for a newer one must never be what the linker keeps.
#define TILE_FORCE_INLINE [[gnu::always_inline]] inline

namespace tile {

/// Rounding modes with the values of the bytecode; 0 is nearest_even. vm/interp/kernel_types.h has the enumerators.
enum class Rounding : uint8_t;

/// Layout of a float element type: sign (if any), exponent, mantissa from the top bit down.
struct FloatFormat {
  uint8_t exponent_bits, mantissa_bits;
  int16_t bias;
  bool has_sign, has_inf;
  bool saturates;       ///< what is too large, infinity too, becomes the largest finite number
  uint64_t max_finite;  ///< bits of the largest finite number
  uint64_t nan;         ///< canonical NaN; f4E2M1FN has none and takes its largest number
};
/// Layout of `t`, which must be a float type. tf32 is described by its 19 bits, canonical NaN included.
[[nodiscard]] const FloatFormat& float_format(ElementType t);

/// Bits of the NaN that arithmetic of type `t` makes, in the storage form of a tile (tf32: 32 bits).
[[nodiscard]] uint64_t canonical_nan(ElementType t);

/// Value of an element. Exact, and NaN for NaN; tf32 takes all 32 bits of its storage.
[[nodiscard]] double decode(ElementType t, uint64_t bits);

/// Storage bits of `value` rounded to `t`. NaN gives the canonical NaN, formats without sign take the magnitude.
/// A value that is the round-to-odd image of an exact number is rounded as that number would be, except to f64 itself.
[[nodiscard]] uint64_t encode(ElementType t, double value, Rounding rounding = Rounding{});

/// f64 number of the text of a decimal literal (sign, digits, point, exponent; inf and nan), nearest even.
/// Nothing where the text is not such a literal. Too large gives infinity, too small gives zero.
[[nodiscard]] std::optional<double> parse_f64(std::string_view text);

TILE_FORCE_INLINE uint32_t float_bits(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
TILE_FORCE_INLINE float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
TILE_FORCE_INLINE uint64_t double_bits(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
TILE_FORCE_INLINE double double_of(uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}

/// The exact sum nearest + error, rounded to odd: cut toward zero with the last bit set when something was cut off.
/// `nearest` must be that sum rounded to nearest; infinities, and NaN in either, pass through as `nearest`.
TILE_FORCE_INLINE double round_to_odd(double nearest, double error) {
  const uint64_t bits = double_bits(nearest), e = double_bits(error);
  const uint64_t opposite = (bits ^ e) >> 63;
  const bool inexact = (error < 0) | (error > 0);
  return double_of(inexact ? (bits - opposite) | 1 : bits);
}

/// a + b rounded to odd; |a + b| must not overflow unless an operand is infinite.
TILE_FORCE_INLINE double add_to_odd(double a, double b) {
  const double s = a + b, t = s - a;
  return round_to_odd(s, (a - (s - t)) + (b - t));
}

/// An integer rounded to odd, so that encode() rounds it once.
[[nodiscard]] double odd_from_u64(uint64_t x);
[[nodiscard]] double odd_from_i64(int64_t x);

/// f16 to f32, exact; payloads of NaN are kept.
TILE_FORCE_INLINE float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, a = h & 0x7FFFu;
  const uint32_t special = a >= 0x7C00u ? 112u << 23 : 0u;
  const uint32_t normal = (a << 13) + (112u << 23) + special;
  const uint32_t tiny = float_bits(static_cast<float>(static_cast<int32_t>(a)) * 0x1p-24f);
  return float_of(sign | (a < 0x400u ? tiny : normal));
}

/// f32 to f16, nearest even, overflow to infinity, canonical NaN.
TILE_FORCE_INLINE uint16_t f32_to_f16(float x) {
  const uint32_t u = float_bits(x), a = u & 0x7FFFFFFFu;
  // Adding 0.5 leaves a unit of 2^-24 in the last place, the spacing of subnormal f16.
  const uint32_t tiny = float_bits(float_of(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3F000000u;
  const uint32_t normal = (a - (112u << 23) + 0xFFFu + (a >> 13 & 1u)) >> 13;
  uint32_t h = a < 0x38800000u ? tiny : normal;
  h = a >= 0x477FF000u ? 0x7C00u : h;  // 65520, half way beyond the largest
  h |= u >> 16 & 0x8000u;
  return static_cast<uint16_t>(a > 0x7F800000u ? 0x7FFFu : h);
}

TILE_FORCE_INLINE float bf16_to_f32(uint16_t h) {
  return float_of(static_cast<uint32_t>(h) << 16);
}

/// f32 to bf16, nearest even, canonical NaN.
TILE_FORCE_INLINE uint16_t f32_to_bf16(float x) {
  const uint32_t u = float_bits(x);
  const uint32_t h = (u + 0x7FFFu + (u >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : h);
}

/// f32 to the storage form of tf32: nearest even at 10 mantissa bits, canonical NaN.
TILE_FORCE_INLINE uint32_t f32_to_tf32(float x) {
  const uint32_t u = float_bits(x);
  const uint32_t h = (u + 0xFFFu + (u >> 13 & 1u)) & ~0x1FFFu;
  return (u & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFFFFFu : h;
}

}  // namespace tile
