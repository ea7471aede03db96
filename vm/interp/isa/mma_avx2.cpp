// The matrix kernel for AVX2 with FMA and F16C.
#include "vm/interp/isa/mma_job.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_INLINE_LAMBDA __attribute__((always_inline))

namespace tile::mma_impl {
namespace {

constexpr int kMaxRows = 6;

#include "vm/interp/isa/mma_transpose8.inc"
#include "vm/interp/isa/mma_words.inc"

alignas(32) constexpr int32_t kMaskSource[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
TILE_INLINE __m256i mask8(size_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskSource + 8 - n));
}
TILE_INLINE __m256i mask4(size_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskSource + 8 - 2 * n));
}

struct F32 {
  using Word = float;
  using Vec = __m256;
  static constexpr size_t W = 8;
  static constexpr bool kHasF16 = true;
  static TILE_INLINE Vec load(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
  static TILE_INLINE void store(void* p, Vec v) { _mm256_storeu_ps(static_cast<float*>(p), v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) {
    return _mm256_maskload_ps(static_cast<const float*>(p), mask8(n));
  }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) {
    _mm256_maskstore_ps(static_cast<float*>(p), mask8(n), v);
  }
  static TILE_INLINE Vec broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm256_fmadd_ps(a, b, s); }
  static TILE_INLINE Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static TILE_INLINE Vec canonical(Vec v) {
    const Vec nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
  static TILE_INLINE Vec load_f16(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static TILE_INLINE void store_f16(void* p, Vec v) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static TILE_INLINE Vec load_f16_n(const void* p, size_t n) {
    uint16_t half[8] = {};
    __builtin_memcpy(half, p, 2 * n);
    return load_f16(half);
  }
  static TILE_INLINE void store_f16_n(void* p, Vec v, size_t n) {
    uint16_t half[8];
    store_f16(half, v);
    __builtin_memcpy(p, half, 2 * n);
  }
  static TILE_INLINE void transpose(const float* block, float* dst, size_t ds) { transpose8(block, W, dst, ds); }
};

struct F64 {
  using Word = double;
  using Vec = __m256d;
  static constexpr size_t W = 4;
  static constexpr bool kHasF16 = false;
  static TILE_INLINE Vec load(const void* p) { return _mm256_loadu_pd(static_cast<const double*>(p)); }
  static TILE_INLINE void store(void* p, Vec v) { _mm256_storeu_pd(static_cast<double*>(p), v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) {
    return _mm256_maskload_pd(static_cast<const double*>(p), mask4(n));
  }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) {
    _mm256_maskstore_pd(static_cast<double*>(p), mask4(n), v);
  }
  static TILE_INLINE Vec broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm256_fmadd_pd(a, b, s); }
  static TILE_INLINE Vec canonical(Vec v) {
    const Vec nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FF8000000000000));
    return _mm256_blendv_pd(v, nan, _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
  }
  static TILE_INLINE void transpose(const double* block, double* dst, size_t ds) {
    for (size_t i = 0; i < W; ++i) {
      for (size_t j = 0; j < W; ++j) dst[j * ds + i] = block[i * W + j];
    }
  }
};

struct I8 {
  using Word = uint32_t;
  using Vec = __m256i;
  static constexpr size_t W = 8;
  static constexpr bool kHasF16 = false;
  static TILE_INLINE Vec load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static TILE_INLINE void store(void* p, Vec v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) {
    return _mm256_maskload_epi32(static_cast<const int*>(p), mask8(n));
  }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) {
    _mm256_maskstore_epi32(static_cast<int*>(p), mask8(n), v);
  }
  static TILE_INLINE Vec broadcast(const uint32_t* p) { return _mm256_set1_epi32(static_cast<int>(*p)); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm256_add_epi32(s, _mm256_madd_epi16(a, b)); }
  static TILE_INLINE Vec canonical(Vec v) { return v; }
  static TILE_INLINE void transpose(const uint32_t* block, uint32_t* dst, size_t ds) {
    transpose8(reinterpret_cast<const float*>(block), W, reinterpret_cast<float*>(dst), ds);
  }
};

TILE_INLINE __m128i load8(const unsigned char* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
TILE_INLINE __m128i load16(const unsigned char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

struct ManyTf32 {
  static TILE_INLINE __m256 get(const unsigned char* p) {
    return _mm256_and_ps(F32::load(p), _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFFFFE000u))));
  }
};
struct ManyBf16 {
  static TILE_INLINE __m256 get(const unsigned char* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(p)), 16));
  }
};
// The lower bits of f16 extend f8E5M2.
struct ManyE5M2 {
  static TILE_INLINE __m256 get(const unsigned char* p) {
    return _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(load8(p)), 8));
  }
};
// Shifted into f16 the value is 2^-8 of f8E4M3FN, subnormals included; its NaN is given the exponent of NaN.
struct ManyE4M3 {
  static TILE_INLINE __m256 get(const unsigned char* p) {
    const __m128i x = _mm_cvtepu8_epi16(load8(p)), low = _mm_and_si128(x, _mm_set1_epi16(0x7F));
    const __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(low, _mm_set1_epi16(0x7F)), _mm_set1_epi16(0x7C00));
    const __m128i sign = _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7F), x), 8);
    const __m128i half = _mm_or_si128(_mm_or_si128(sign, nan), _mm_slli_epi16(low, 7));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f));
  }
};
struct ManyE2M1 {
  static TILE_INLINE __m256 get(const unsigned char* p) {
    const __m256i x = _mm256_cvtepu8_epi32(load8(p));
    const __m256 magnitude = _mm256_permutevar8x32_ps(_mm256_loadu_ps(kE2M1.v), x);  // reads the low 3 bits of x
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(x, _mm256_set1_epi32(8)), 28);
    return _mm256_or_ps(magnitude, _mm256_castsi256_ps(sign));
  }
};
#include "vm/interp/isa/mma_from.inc"

template <bool Signed>
struct From8 : From8One<Signed> {
  static TILE_INLINE __m256i widen(__m128i bytes) {
    return Signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
  }
  static TILE_INLINE __m256i along(const unsigned char* p) { return widen(load16(p)); }
  static TILE_INLINE __m256i across(const unsigned char* p, size_t step) {
    return widen(_mm_unpacklo_epi8(load8(p), load8(p + step)));
  }
};
using FromS8 = From8<true>;
using FromU8 = From8<false>;

#include "vm/interp/isa/mma_kernel.inc"

}  // namespace

MmaFn mma_avx2() {
  return run_any;
}

}  // namespace tile::mma_impl

#else

namespace tile::mma_impl {
MmaFn mma_avx2() {
  return nullptr;
}
}  // namespace tile::mma_impl

#endif
