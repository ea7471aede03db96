// The reduction kernels for AVX2 with F16C.
#include "vm/interp/isa/reduce_job.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_VECTOR_BYTES 32
#define TILE_F16C 1

namespace tile::reduce_impl {
namespace {
#include "vm/interp/isa/reduce_kernel.inc"
}  // namespace

ReduceFn find_reduce_avx2(const ReduceKey& key) {
  return find_reduce(key);
}

}  // namespace tile::reduce_impl

#else

namespace tile::reduce_impl {
ReduceFn find_reduce_avx2(const ReduceKey&) {
  return nullptr;
}
}  // namespace tile::reduce_impl

#endif
