// The reduction kernels for AVX-512 (F, BW, DQ, VL).
#include "vm/interp/isa/reduce_job.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#if !defined(__clang__)
// The intrinsics of gcc 12 start from a deliberately uninitialised vector and are blamed for it where they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_VECTOR_BYTES 64
#define TILE_F16C 1

namespace tile::reduce_impl {
namespace {
#include "vm/interp/isa/reduce_kernel.inc"
}  // namespace

ReduceFn find_reduce_avx512(const ReduceKey& key) {
  return find_reduce(key);
}

}  // namespace tile::reduce_impl

#else

namespace tile::reduce_impl {
ReduceFn find_reduce_avx512(const ReduceKey&) {
  return nullptr;
}
}  // namespace tile::reduce_impl

#endif
