// Elementwise kernels compiled for AVX-512 F, BW, DQ and VL.
#include "vm/interp/isa/elementwise_isa.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// The intrinsics of gcc 12 start from a deliberately uninitialised vector and are blamed for it where they are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "vm/base/numeric.h"

#define TILE_SIMD 512

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

ElementwiseFn find_fast_avx512(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  return find_fast(op, in, out, m);
}

ElementwiseFn find_streamed_avx512(Opcode op, ElementType type, const Modifiers& m) {
  return find_streamed(op, type, m);
}

}  // namespace tile
#endif
