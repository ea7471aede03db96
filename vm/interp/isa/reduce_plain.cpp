// The reduction kernels with vectors of 16 bytes, which every supported machine has.
#include "vm/interp/isa/reduce_job.h"

#define TILE_INLINE inline __attribute__((always_inline))
#define TILE_VECTOR_BYTES 16
#define TILE_F16C 0

namespace tile::reduce_impl {
namespace {
#include "vm/interp/isa/reduce_kernel.inc"
}  // namespace

ReduceFn find_reduce_plain(const ReduceKey& key) {
  return find_reduce(key);
}

}  // namespace tile::reduce_impl
