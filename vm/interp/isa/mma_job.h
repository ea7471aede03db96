// One two-dimensional product as the builds of the matrix kernel take it, and the tables they share.
// Included by files compiled for different instruction sets: data and types only, no function that could be emitted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"

namespace tile::mma_impl {

/// out[m,n] = chain over k of a[m,k] * b[k,n] onto c[m,n]; strides in elements.
struct MmaJob {
  ElementType type;  // of a and b
  bool c_is_f16;     // else f32, f64, i32 as the type of a and b implies
  bool a_signed, b_signed;
  size_t m, n, k;
  const unsigned char *a, *b, *c;
  unsigned char* out;
  size_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
  // Decoded block scales, null without; strides over rows of a (columns of b) and over blocks of k.
  const float *a_scale, *b_scale;
  size_t a_scale_rs, a_scale_ks, b_scale_cs, b_scale_ks, block;
  unsigned char* scratch;  // 64-byte aligned, scratch_bytes(m, n, k, c_is_f16)
};

using MmaFn = void (*)(const MmaJob&);

// Null where the file was compiled without the instruction set.
MmaFn mma_plain();
MmaFn mma_avx2();
MmaFn mma_avx512();

// Blocking, in words (a word is one f32, one f64, or a pair of i8 widened to i16). KC x NR of b stay in L1, KC x NC in
// L2. A row of packed a takes kRowWords so that rows are at a constant distance that is not a multiple of 4096 bytes.
inline constexpr size_t kKc = 256, kRowWords = kKc + 16, kMc = 64, kNc = 256, kMaxNr = 64;

struct FloatTable {
  float v[256];
};

// Decodes an 8-bit float: sign bit if `is_signed`, `mantissa` bits, exponent bias `bias`, no infinities unless `ieee`.
// Without ieee only the pattern of all ones (sign aside) is NaN.
constexpr FloatTable make_table(bool is_signed, int mantissa, int bias, bool ieee, int bits) {
  FloatTable t{};
  const int magnitude_bits = bits - (is_signed ? 1 : 0);
  for (int i = 0; i < 256; ++i) {
    const int pattern = i & ((1 << bits) - 1), magnitude = pattern & ((1 << magnitude_bits) - 1);
    const int exponent = magnitude >> mantissa, fraction = magnitude & ((1 << mantissa) - 1);
    const int max_exponent = (1 << (magnitude_bits - mantissa)) - 1;
    const bool nan =
        bits == 8 && (ieee ? exponent == max_exponent && fraction != 0 : magnitude == (1 << magnitude_bits) - 1);
    float f = static_cast<float>(exponent ? fraction + (1 << mantissa) : fraction);
    for (int e = (exponent ? exponent : 1) - bias - mantissa; e != 0; e += e < 0 ? 1 : -1)
      f = e < 0 ? f * 0.5f : f * 2.0f;
    if (ieee && exponent == max_exponent) f = std::bit_cast<float>(0x7F800000u);
    if (nan) f = std::bit_cast<float>(0x7FFFFFFFu);
    t.v[i] = is_signed && pattern >> magnitude_bits ? -f : f;
  }
  return t;
}

constexpr FloatTable make_e8m0() {
  FloatTable t{};
  for (uint32_t i = 1; i < 255; ++i) t.v[i] = std::bit_cast<float>(i << 23);
  t.v[0] = std::bit_cast<float>(0x00400000u);  // 2^-127, subnormal in f32
  t.v[255] = std::bit_cast<float>(0x7FFFFFFFu);
  return t;
}

inline constexpr FloatTable kE4M3 = make_table(true, 3, 7, false, 8);
inline constexpr FloatTable kE5M2 = make_table(true, 2, 15, true, 8);
inline constexpr FloatTable kNvE5M3 = make_table(false, 3, 15, false, 8);
inline constexpr FloatTable kE2M1 = make_table(true, 1, 1, false, 4);
inline constexpr FloatTable kE8M0 = make_e8m0();

}  // namespace tile::mma_impl
