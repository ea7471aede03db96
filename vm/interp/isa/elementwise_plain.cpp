// Elementwise kernels compiled for the baseline of the target.
#include "vm/interp/isa/elementwise_isa.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vm/base/numeric.h"

#define TILE_SIMD 0

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

ElementwiseFn find_fast_plain(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  return find_fast(op, in, out, m);
}

ElementwiseFn find_streamed_plain(Opcode op, ElementType type, const Modifiers& m) {
  return find_streamed(op, type, m);
}

}  // namespace tile
