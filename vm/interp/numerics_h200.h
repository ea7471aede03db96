// The numbers of NVIDIA's compiler on an H200 where the language leaves them open and they are known: spec/semantics.md section 6.
#pragma once

#include "vm/interp/elementwise.h"

namespace tile {

/// As find_elementwise(), following `numerics`.
[[nodiscard]] ElementwiseFn find_elementwise(Opcode op, ElementType in, ElementType out, const Modifiers& m, Numerics numerics);

/// The kernel of a legal operation that is one instruction of the function unit with multiplications around it, else nullptr.
[[nodiscard]] ElementwiseFn find_unit_function(Opcode op, ElementType e, const Modifiers& m);

/// The kernel of `divf` with `approx` or `full` where the compiler knows the divisor, which is the same for all elements; else nullptr.
[[nodiscard]] ElementwiseFn find_quotient_by_constant(ElementType e, const Modifiers& m);

/// The kernel of a function without `approx` that is computed in f32 by reduction and polynomials, else nullptr.
[[nodiscard]] ElementwiseFn find_elementary(Opcode op, ElementType e);

/// The kernel that adds in atomics.
[[nodiscard]] ElementwiseFn find_atomic_add(ElementType e, Numerics numerics);

}  // namespace tile
