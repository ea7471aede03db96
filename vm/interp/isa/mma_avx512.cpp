// The matrix kernel for AVX-512 (F, BW, DQ, VL).
#include "vm/interp/isa/mma_job.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#if !defined(__clang__)
// The intrinsics of gcc 12 start from a deliberately uninitialised vector and are blamed for it where they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_INLINE_LAMBDA __attribute__((always_inline))

namespace tile::mma_impl {
namespace {

constexpr int kMaxRows = 8;

#include "vm/interp/isa/mma_transpose8.inc"
#include "vm/interp/isa/mma_words.inc"

TILE_INLINE __mmask16 mask16(size_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
TILE_INLINE __mmask8 mask8(size_t n) {
  return static_cast<__mmask8>((1u << n) - 1);
}

struct F32 {
  using Word = float;
  using Vec = __m512;
  static constexpr size_t W = 16;
  static constexpr bool kHasF16 = true;
  static TILE_INLINE Vec load(const void* p) { return _mm512_loadu_ps(p); }
  static TILE_INLINE void store(void* p, Vec v) { _mm512_storeu_ps(p, v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) { return _mm512_maskz_loadu_ps(mask16(n), p); }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) { _mm512_mask_storeu_ps(p, mask16(n), v); }
  static TILE_INLINE Vec broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm512_fmadd_ps(a, b, s); }
  static TILE_INLINE Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static TILE_INLINE Vec canonical(Vec v) {
    const Vec nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7FFFFFFF));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
  }
  static TILE_INLINE Vec load_f16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static TILE_INLINE void store_f16(void* p, Vec v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static TILE_INLINE Vec load_f16_n(const void* p, size_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask16(n), p));
  }
  static TILE_INLINE void store_f16_n(void* p, Vec v, size_t n) {
    _mm256_mask_storeu_epi16(p, mask16(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static TILE_INLINE void transpose(const float* block, float* dst, size_t ds) {
    for (size_t i = 0; i < W; i += 8) {
      for (size_t j = 0; j < W; j += 8) transpose8(block + i * W + j, W, dst + j * ds + i, ds);
    }
  }
};

struct F64 {
  using Word = double;
  using Vec = __m512d;
  static constexpr size_t W = 8;
  static constexpr bool kHasF16 = false;
  static TILE_INLINE Vec load(const void* p) { return _mm512_loadu_pd(p); }
  static TILE_INLINE void store(void* p, Vec v) { _mm512_storeu_pd(p, v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) { return _mm512_maskz_loadu_pd(mask8(n), p); }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) { _mm512_mask_storeu_pd(p, mask8(n), v); }
  static TILE_INLINE Vec broadcast(const double* p) { return _mm512_set1_pd(*p); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm512_fmadd_pd(a, b, s); }
  static TILE_INLINE Vec canonical(Vec v) {
    const Vec nan = _mm512_castsi512_pd(_mm512_set1_epi64(0x7FF8000000000000));
    return _mm512_mask_mov_pd(v, _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q), nan);
  }
  static TILE_INLINE void transpose(const double* block, double* dst, size_t ds) {
    for (size_t i = 0; i < W; ++i) {
      for (size_t j = 0; j < W; ++j) dst[j * ds + i] = block[i * W + j];
    }
  }
};

struct I8 {
  using Word = uint32_t;
  using Vec = __m512i;
  static constexpr size_t W = 16;
  static constexpr bool kHasF16 = false;
  static TILE_INLINE Vec load(const void* p) { return _mm512_loadu_si512(p); }
  static TILE_INLINE void store(void* p, Vec v) { _mm512_storeu_si512(p, v); }
  static TILE_INLINE Vec load_n(const void* p, size_t n) { return _mm512_maskz_loadu_epi32(mask16(n), p); }
  static TILE_INLINE void store_n(void* p, Vec v, size_t n) { _mm512_mask_storeu_epi32(p, mask16(n), v); }
  static TILE_INLINE Vec broadcast(const uint32_t* p) { return _mm512_set1_epi32(static_cast<int>(*p)); }
  static TILE_INLINE Vec muladd(Vec a, Vec b, Vec s) { return _mm512_add_epi32(s, _mm512_madd_epi16(a, b)); }
  static TILE_INLINE Vec canonical(Vec v) { return v; }
  static TILE_INLINE void transpose(const uint32_t* block, uint32_t* dst, size_t ds) {
    F32::transpose(reinterpret_cast<const float*>(block), reinterpret_cast<float*>(dst), ds);
  }
};

TILE_INLINE __m128i load16(const unsigned char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
TILE_INLINE __m256i load32(const unsigned char* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

struct ManyTf32 {
  static TILE_INLINE __m512 get(const unsigned char* p) {
    return _mm512_and_ps(F32::load(p), _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xFFFFE000u))));
  }
};
struct ManyBf16 {
  static TILE_INLINE __m512 get(const unsigned char* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(p)), 16));
  }
};
// The lower bits of f16 extend f8E5M2.
struct ManyE5M2 {
  static TILE_INLINE __m512 get(const unsigned char* p) {
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(load16(p)), 8));
  }
};
// Shifted into f16 the value is 2^-8 of f8E4M3FN, subnormals included; its NaN is given the exponent of NaN.
struct ManyE4M3 {
  static TILE_INLINE __m512 get(const unsigned char* p) {
    const __m256i x = _mm256_cvtepu8_epi16(load16(p)), low = _mm256_and_si256(x, _mm256_set1_epi16(0x7F));
    const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi16(low, _mm256_set1_epi16(0x7F)), _mm256_set1_epi16(0x7C00));
    const __m256i sign = _mm256_slli_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0x7F), x), 8);
    const __m256i half = _mm256_or_si256(_mm256_or_si256(sign, nan), _mm256_slli_epi16(low, 7));
    return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
  }
};
struct ManyE2M1 {
  static TILE_INLINE __m512 get(const unsigned char* p) {
    return _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(load16(p)), _mm512_loadu_ps(kE2M1.v));  // reads the low 4 bits
  }
};
#include "vm/interp/isa/mma_from.inc"

template <bool Signed>
struct From8 : From8One<Signed> {
  static TILE_INLINE __m512i widen(__m256i bytes) {
    return Signed ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
  }
  static TILE_INLINE __m512i along(const unsigned char* p) { return widen(load32(p)); }
  static TILE_INLINE __m512i across(const unsigned char* p, size_t step) {
    const __m128i first = load16(p), second = load16(p + step);
    return widen(_mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second)));
  }
};
using FromS8 = From8<true>;
using FromU8 = From8<false>;

#include "vm/interp/isa/mma_kernel.inc"

}  // namespace

MmaFn mma_avx512() {
  return run_any;
}

}  // namespace tile::mma_impl

#else

namespace tile::mma_impl {
MmaFn mma_avx512() {
  return nullptr;
}
}  // namespace tile::mma_impl

#endif
