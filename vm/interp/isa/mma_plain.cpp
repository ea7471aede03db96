// The matrix kernel in portable C++: the same order of arithmetic as the vector builds, four elements at a time.
#include <cmath>

#include "vm/interp/isa/mma_job.h"

#define TILE_INLINE inline
#define TILE_INLINE_LAMBDA

namespace tile::mma_impl {
namespace {

constexpr int kMaxRows = 4;

inline uint16_t half_at(const unsigned char* p) {
  uint16_t h;
  __builtin_memcpy(&h, p, 2);
  return h;
}

inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, magnitude = h & 0x7FFF;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FF) << 13);
  // As an f32 pattern shifted by 13 the value is 2^112 times too small, subnormals included; the product is exact.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

// Nearest even, overflow to infinity; a NaN becomes 0x7FFF.
inline uint16_t f32_to_f16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f), magnitude = bits & 0x7FFFFFFF;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7F800000) return 0x7FFF;
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520, half way past the largest value
  if (magnitude < 0x38800000) {
    // Below 2^-14: adding 0.5 puts the last bit of f32 at 2^-24, the last bit of f16, and rounds to nearest even.
    const uint32_t rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
    return static_cast<uint16_t>(sign | rounded);
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

// Four elements and the loops over them, shared by the three kinds of words.
template <class Word_>
struct Quad {
  using Word = Word_;
  struct Vec {
    Word x[4];
  };
  static constexpr size_t W = 4;
  static Vec load_n(const void* p, size_t n) {
    Vec v{};
    __builtin_memcpy(&v, p, n * sizeof(Word));
    return v;
  }
  static void store_n(void* p, Vec v, size_t n) { __builtin_memcpy(p, &v, n * sizeof(Word)); }
  static Vec load(const void* p) { return load_n(p, W); }
  static void store(void* p, Vec v) { store_n(p, v, W); }
  static Vec broadcast(const Word* p) { return {{*p, *p, *p, *p}}; }
  static void transpose(const Word* block, Word* dst, size_t ds) {
    for (size_t i = 0; i < W; ++i) {
      for (size_t j = 0; j < W; ++j) dst[j * ds + i] = block[i * W + j];
    }
  }
};

struct F32 : Quad<float> {
  static constexpr bool kHasF16 = true;
  static Vec muladd(Vec a, Vec b, Vec s) {
    for (size_t i = 0; i < W; ++i) s.x[i] = std::fma(a.x[i], b.x[i], s.x[i]);
    return s;
  }
  static Vec mul(Vec a, Vec b) {
    for (size_t i = 0; i < W; ++i) a.x[i] *= b.x[i];
    return a;
  }
  static Vec canonical(Vec v) {
    for (float& x : v.x) x = x == x ? x : std::bit_cast<float>(0x7FFFFFFFu);
    return v;
  }
  static Vec load_f16_n(const unsigned char* p, size_t n) {
    Vec v{};
    for (size_t i = 0; i < n; ++i) v.x[i] = f16_to_f32(half_at(p + 2 * i));
    return v;
  }
  static void store_f16_n(unsigned char* p, Vec v, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const uint16_t h = f32_to_f16(v.x[i]);
      __builtin_memcpy(p + 2 * i, &h, 2);
    }
  }
  static Vec load_f16(const unsigned char* p) { return load_f16_n(p, W); }
  static void store_f16(unsigned char* p, Vec v) { store_f16_n(p, v, W); }
};

struct F64 : Quad<double> {
  static constexpr bool kHasF16 = false;
  static Vec muladd(Vec a, Vec b, Vec s) {
    for (size_t i = 0; i < W; ++i) s.x[i] = std::fma(a.x[i], b.x[i], s.x[i]);
    return s;
  }
  static Vec canonical(Vec v) {
    for (double& x : v.x) x = x == x ? x : std::bit_cast<double>(uint64_t{0x7FF8000000000000});
    return v;
  }
};

// A word is two i16, the lower half for the even k.
struct I8 : Quad<uint32_t> {
  static constexpr bool kHasF16 = false;
  static Vec muladd(Vec a, Vec b, Vec s) {
    for (size_t i = 0; i < W; ++i) {
      const int32_t low = static_cast<int16_t>(a.x[i]) * static_cast<int16_t>(b.x[i]);
      const int32_t high = static_cast<int16_t>(a.x[i] >> 16) * static_cast<int16_t>(b.x[i] >> 16);
      s.x[i] += static_cast<uint32_t>(low) + static_cast<uint32_t>(high);
    }
    return s;
  }
  static Vec canonical(Vec v) { return v; }
};

// Vectors of words from their scalar rule.
template <class T, class One, size_t Elem, size_t Pair>
struct From {
  static constexpr size_t kElem = Elem, kPair = Pair;
  static typename T::Word one(const unsigned char* p, size_t step, bool both) { return One::get(p, step, both); }
  static typename T::Vec along(const unsigned char* p) {
    typename T::Vec v;
    for (size_t i = 0; i < T::W; ++i) v.x[i] = One::get(p + i * Elem * Pair, Elem, true);
    return v;
  }
  static typename T::Vec across(const unsigned char* p, size_t step) {
    typename T::Vec v;
    for (size_t i = 0; i < T::W; ++i) v.x[i] = One::get(p + i * Elem, step, true);
    return v;
  }
};

#include "vm/interp/isa/mma_words.inc"

using FromF32 = From<F32, OneF32, 4, 1>;
using FromTf32 = From<F32, OneTf32, 4, 1>;
using FromBf16 = From<F32, OneBf16, 2, 1>;
struct OneF16 {
  static float get(const unsigned char* p, size_t, bool) { return f16_to_f32(half_at(p)); }
};
using FromF16 = From<F32, OneF16, 2, 1>;
using FromE4M3 = From<F32, OneE4M3, 1, 1>;
using FromE5M2 = From<F32, OneE5M2, 1, 1>;
using FromE2M1 = From<F32, OneE2M1, 1, 1>;
using FromF64 = From<F64, OneF64, 8, 1>;
using FromS8 = From<I8, OneS8, 1, 2>;
using FromU8 = From<I8, OneU8, 1, 2>;

#include "vm/interp/isa/mma_kernel.inc"

}  // namespace

MmaFn mma_plain() {
  return run_any;
}

}  // namespace tile::mma_impl
