// Matrix products as tileiras 13.5 compiles them for sm_90 and an H200 computes them (spec/semantics.md section 6).
#pragma once

#include <cstddef>

#include "vm/interp/mma.h"

namespace tile {

/// Which instructions the compiler makes of a product; the shape of the tile decides.
enum class ProductPath : uint8_t {
  Exact,   ///< the chain of mma.h
  Chain,   ///< the chain of mma.h with the NaN of f64
  Sum,     ///< the chain of mma.h from zero, then one addition to the accumulator
  Tensor,  ///< sums of several products at once, cut off
};
struct ProductDesc {
  MmaDesc mma;           ///< operands are contiguous
  bool fast = false;     ///< marked `fast_acc`
  bool batched = false;  ///< tiles of three dimensions, even if the first extent is 1
};
[[nodiscard]] ProductPath product_path_h200(const ProductDesc& desc);

/// Scratch memory for mma_rows_h200.
[[nodiscard]] size_t mma_scratch_bytes_h200(const MmaDesc& desc);

/// As mma_rows. The path must not be Exact.
void mma_rows_h200(const ProductDesc& desc, size_t row_begin, size_t row_end, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch);

}  // namespace tile
