// Reductions and scans whose body is one operation, as loops over raw tiles in the documented order.
// Not a general reduce: bodies of several operations are evaluated step by step elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"
#include "vm/interp/kernel_types.h"

namespace tile {

/// The operation of the body: addf, mulf, maxf, minf, addi, muli, maxi, mini, andi, ori, xori.
enum class ReduceKind : uint8_t { AddF, MulF, MaxF, MinF, AddI, MulI, MaxI, MinI, AndI, OrI, XOrI };
inline constexpr int kReduceKinds = 11;

/// Where only a part of a tile is reduced or scanned, or one with gaps between its rows. 0: contiguous.
struct ReduceStrides {
  size_t pitch = 0;  ///< elements between neighbours along len, of both tiles; if given, inner is a multiple of kReduceColumns
  size_t row = 0;    ///< elements between neighbours along outer, of `in`
};
inline constexpr size_t kReduceColumns = 64;

/// Reduces [outer, len, inner] over len into [outer, inner]: r = x[0]; for j = 1 .. len-1: r = op(r, x[j]).
///
/// Each step gives the bits of the elementwise operation: rounded once to the element type, canonical NaN. With len = 1
/// the element is copied as it is. Operations whose result does not depend on the order may be computed in another one.
/// @param modifiers  propagate_nan (maxf, minf) and signedness (maxi, mini) are obeyed
/// @param out        must not overlap `in`
/// @return           false, with `out` untouched, where there is no fast kernel: element types other than i1, i8..i64,
/// f16, bf16,
///                   f32, f64, rounding other than nearest even, flush_to_zero
/// @thread_safety    any thread
[[nodiscard]] bool reduce_fast(ReduceKind kind, ElementType type, const Modifiers& modifiers, void* out, const void* in,
                               size_t outer, size_t len, size_t inner, ReduceStrides strides = {});

/// Inclusive scan of [outer, len, inner] along len: out[0] = x[0]; out[j] = op(out[j-1], x[j]); from the end if
/// `reverse`. Everything else as reduce_fast.
[[nodiscard]] bool scan_fast(ReduceKind kind, ElementType type, const Modifiers& modifiers, void* out, const void* in,
                             size_t outer, size_t len, size_t inner, bool reverse, ReduceStrides strides = {});

}  // namespace tile
