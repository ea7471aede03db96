// Matrix multiply-accumulate on raw tiles: exact order of arithmetic, register-blocked builds chosen at run time.
//
// Order of arithmetic (the same bits on every machine, build and number of threads). For each element of the result
//   s = acc;  for k ascending: s = fma(lhs[k], rhs[k], s);  result = s
// - in f32, inputs decoded exactly (tf32: the low 13 bits of the f32 pattern are ignored); in f64 for f64;
// - an f16 accumulator is widened, chained in f32, and rounded once at the end (nearest even, overflow to infinity);
// - scaled: s = fma(lhs[k] * lhs_scale[k/V], rhs[k] * rhs_scale[k/V], s), the two products each rounded once to f32,
// which is
//   exact for all legal formats unless it leaves the range of f32;
// - i8: exact, wraps modulo 2^32;
// - subnormals are kept; a NaN result is 0x7FFFFFFF (f32), 0x7FFF (f16) or 0x7FF8000000000000 (f64).
#pragma once

#include <cstddef>

#include "vm/base/element_type.h"

namespace tile {

/// What to multiply: lhs [batch,m,k], rhs [batch,k,n], acc and result [batch,m,n]; no size is zero.
/// Legal types (lhs_rhs -> acc): f8E4M3FN, f8E5M2, f16 -> f16 or f32; bf16, tf32, f32 -> f32; f64 -> f64; i8 -> i32.
struct MmaDesc {
  ElementType lhs_rhs = ElementType::F32;
  ElementType acc = ElementType::F32;
  size_t batch = 1, m = 1, n = 1, k = 1;
  bool lhs_signed = true, rhs_signed = true;  ///< i8 only
  // Strides in elements between rows, columns and batch entries, so that a caller can read a permuted tile in place.
  // Row and column stride both 0: row-major contiguous. Batch stride 0: m*k (k*n).
  size_t lhs_rs = 0, lhs_cs = 0, lhs_bs = 0;
  size_t rhs_rs = 0, rhs_cs = 0, rhs_bs = 0;
};

/// What to multiply with block scales: besides MmaDesc, lhs_scale [batch,m,k/V] and rhs_scale [batch,k/V,n]; acc is
/// f32. Legal types (lhs_rhs, scale): f8E4M3FN or f8E5M2 with f8E8M0FNU; f4E2M1FN with f8E8M0FNU, f8E4M3FN,
/// fnv8E5M3FNU.
struct MmaScaledDesc {
  ElementType lhs_rhs = ElementType::F8E4M3FN;
  ElementType scale = ElementType::F8E8M0FNU;
  size_t batch = 1, m = 1, n = 1, k = 32;
  size_t block = 32;  ///< V, elements of k per scale: 16 or 32; divides k
};

/// Whether mma() / mma_scaled() implement the combination of element types (operations table: mmaf, mmai, mmaf_scaled).
bool mma_supported(ElementType lhs_rhs, ElementType acc);
bool mma_scaled_supported(ElementType lhs_rhs, ElementType scale);

/// Bytes of scratch memory that a call with this description needs, for whole results and for any range of rows.
size_t mma_scratch_bytes(const MmaDesc& desc);
size_t mma_scaled_scratch_bytes(const MmaScaledDesc& desc);

/// Computes the whole result on the calling thread; the combination of types must be supported.
///
/// @param out      contiguous; may be the same array as acc, else must not overlap any input
/// @param scratch  mma_scratch_bytes(desc) bytes of any alignment, not shared with a concurrent call
/// @thread_safety  any thread; see mma_rows for splitting one product
void mma(const MmaDesc& desc, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch);
void mma_scaled(const MmaScaledDesc& desc, void* out, const void* lhs, const void* rhs, const void* acc,
                const void* lhs_scale, const void* rhs_scale, void* scratch);

/// Computes only the rows [row_begin, row_end) of the result, rows counted over the batch (0 .. batch*m).
/// The pointers are those of the whole product; disjoint ranges may run at the same time, each with its own scratch.
void mma_rows(const MmaDesc& desc, size_t row_begin, size_t row_end, void* out, const void* lhs, const void* rhs,
              const void* acc, void* scratch);
void mma_scaled_rows(const MmaScaledDesc& desc, size_t row_begin, size_t row_end, void* out, const void* lhs,
                     const void* rhs, const void* acc, const void* lhs_scale, const void* rhs_scale, void* scratch);

}  // namespace tile
