// What the per-instruction-set builds of the elementwise kernels export, and the few scalar functions they call.
// Include nothing here that has inline functions unless they are forced inline: see TILE_FORCE_INLINE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"
#include "vm/interp/kernel_types.h"
#include "vm/ops/opcode.h"

namespace tile {

// Kernels that vectorise; nullptr for every other legal combination. Types and modifiers are legal already. `broadcast` repeats the first
// element of its operand.
[[nodiscard]] ElementwiseFn find_fast_plain(Opcode op, ElementType in, ElementType out, const Modifiers& m);
[[nodiscard]] ElementwiseFn find_fast_avx2(Opcode op, ElementType in, ElementType out, const Modifiers& m);
[[nodiscard]] ElementwiseFn find_fast_avx512(Opcode op, ElementType in, ElementType out, const Modifiers& m);
// The same for few kernels, those that wait for memory only: they write their result around the caches (stream.h). `out` is aligned to 64
// bytes and apart from the operands, n is a multiple of 64. nullptr for all others, and where the processor has no such stores.
[[nodiscard]] ElementwiseFn find_streamed_plain(Opcode op, ElementType type, const Modifiers& m);
[[nodiscard]] ElementwiseFn find_streamed_avx2(Opcode op, ElementType type, const Modifiers& m);
[[nodiscard]] ElementwiseFn find_streamed_avx512(Opcode op, ElementType type, const Modifiers& m);
// Kernels without a vector form, compiled once.
[[nodiscard]] ElementwiseFn find_scalar(Opcode op, ElementType in, ElementType out, const Modifiers& m);

// f64 functions computed in double-double arithmetic, error below 0.5001 units in the last place; C99 special values.
double exp_f64(double x);
double exp2_f64(double x);
double log_f64(double x);
double log2_f64(double x);
double sin_f64(double x);
double cos_f64(double x);
double tan_f64(double x);
double sinh_f64(double x);
double cosh_f64(double x);
double tanh_f64(double x);
double rsqrt_f64(double x);
double pow_f64(double x, double y);
double atan2_f64(double y, double x);

/// Bits of bf16 of a number below the normal range of f32, rounded once.
uint16_t bf16_of_tiny(double x);

}  // namespace tile
