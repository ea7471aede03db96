// Elementwise kernels compiled for AVX2, FMA and F16C.
#include "vm/interp/isa/elementwise_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "vm/base/numeric.h"

#define TILE_SIMD 2

namespace tile {
namespace {
// Each file uses the ones before it.
// clang-format off
#include "vm/interp/isa/elementwise_lanes.inc"
#include "vm/interp/isa/elementwise_int.inc"
#include "vm/interp/isa/elementwise_float.inc"
#include "vm/interp/isa/elementwise_math.inc"
#include "vm/interp/isa/elementwise_convert.inc"
#include "vm/interp/isa/elementwise_find.inc"
// clang-format on
}  // namespace

ElementwiseFn find_fast_avx2(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  return find_fast(op, in, out, m);
}

ElementwiseFn find_streamed_avx2(Opcode op, ElementType type, const Modifiers& m) {
  return find_streamed(op, type, m);
}

}  // namespace tile
#endif
