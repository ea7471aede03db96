// Elementwise kernels of the interpreter: which function computes an operation on arrays of given element types.
// Not broadcasting, shapes or memory: callers hand over contiguous arrays of equal length. Rules: spec/semantics.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"
#include "vm/interp/isa/isa.h"
#include "vm/interp/kernel_types.h"
#include "vm/ops/opcode.h"

namespace tile {

/// The kernel of an elementwise operation, or nullptr where the operation is not elementwise or types or modifiers are
/// illegal.
///
/// @param in   element type of the last operand: for `select` that of the values, for `fpowi` that of the exponent
/// @param out  element type of the result
/// @param m    modifiers that the operation has; the others are ignored. exp and tanh take NearestEven for Full
/// @thread_safety  any thread; the kernels keep no state
///
/// The result has the same bits on every computer, compiler and instruction set. `offset` has its own function below.
[[nodiscard]] ElementwiseFn find_elementwise(Opcode op, ElementType in, ElementType out, const Modifiers& m);

/// The kernel that gives the same and writes it around the caches, for `out` aligned to 64 bytes and n a multiple of 64; stream_end() orders
/// what it wrote. nullptr where there is none.
[[nodiscard]] ElementwiseFn find_streamed(Opcode op, ElementType type, const Modifiers& m);

/// out[i] = in[0][0] for i < n: the kernel that repeats a number of this type.
[[nodiscard]] ElementwiseFn find_splat(ElementType e);

/// out[i] = pointers[i] + bytes * (indices[i] as a signed number), modulo 2^64.
using OffsetFn = void (*)(void* out, const void* pointers, const void* indices, size_t n, uint64_t bytes);
/// The kernel of `offset` for indices of this type, or nullptr where it is not an integer type of memory.
[[nodiscard]] OffsetFn find_offset(ElementType index);

/// Name of the instruction set that find_elementwise() hands out kernels for (isa.h): "plain", "avx2" or "avx512".
[[nodiscard]] const char* isa_name();

}  // namespace tile
