// Raw-array kernels of the interpreter: signatures shared by the evaluators and the per-instruction-set builds.
// Arrays are row-major and contiguous, elements stored as element_type.h says (i1 as 0/1 bytes, i4/f4 one byte, tf32 as f32 bits).
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"

namespace tile {

// Enumerations with the values of the bytecode (spec/types.md).
enum class Rounding : uint8_t { NearestEven, Zero, NegativeInf, PositiveInf, Approx, Full, NearestIntToZero, NearestAway };
enum class Signedness : uint8_t { Unsigned, Signed };
enum class Predicate : uint8_t { Equal, NotEqual, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual };
enum class Ordering : uint8_t { Unordered, Ordered };

/// Whose numbers, where the language leaves them open.
enum class Numerics : uint8_t {
  Exact,  ///< this machine's own, spec/semantics.md
  H200,   ///< those of NVIDIA's compiler on an H200 as far as they are known (numerics_h200.h)
};

/// What selects a variant of an elementwise kernel besides its operation and element type.
struct Modifiers {
  Rounding rounding = Rounding::NearestEven;
  Signedness signedness = Signedness::Signed;
  Predicate predicate = Predicate::Equal;
  Ordering ordering = Ordering::Ordered;
  bool flush_to_zero = false;
  bool propagate_nan = false;
  bool saturating = false;
};

/// out[i] = f(in[0][i], in[1][i], ...) for i < n. `out` may be equal to any input of the same element size, else must not overlap.
using ElementwiseFn = void (*)(void* out, const void* const* in, size_t n);

/// C[m,n] = sum over k of A[m,k] * B[k,n] chained onto C, row-major, leading dimensions in elements.
struct MmaShape {
  size_t m, n, k;
};

}  // namespace tile
