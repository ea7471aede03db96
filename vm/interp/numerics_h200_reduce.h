// The order in which `reduce` and `scan` combine elements as tileiras 13.5 compiles them for sm_90 (spec/semantics.md section 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vm/interp/kernel_types.h"

namespace tile {

/// How the elements of a tile are spread over 128 threads, along one dimension. All numbers are powers of two.
struct ThreadLayout {
  size_t thread = 1;   ///< neighbours that one thread holds
  size_t lanes = 1;    ///< threads of a warp next to each other
  size_t warps = 1;    ///< warps next to each other
  size_t rounds = 1;   ///< how often all this is repeated
  bool upper = false;  ///< the thread of the upper half of a warp keeps the result
  size_t boxes = 1;    ///< copies from memory that the rounds are spread over; 0: each thread copies for itself
};
/// @param shape  of the tile: powers of two
/// @param bytes  of an element
[[nodiscard]] ThreadLayout thread_layout_h200(std::span<const int64_t> shape, size_t dim, size_t bytes);

/// Elements of the dimension that are combined next; the result takes the place of `to`.
struct FoldStep {
  uint32_t to, from;
  bool swapped;        ///< `from` is the left operand
};
/// All combinations of a reduction, in order; what is left is the element 0.
[[nodiscard]] std::vector<FoldStep> fold_steps_h200(const ThreadLayout& layout);

/// Reduces [outer, len, inner] along len into [outer, inner]; `op` combines two rows of inner elements.
void reduce_h200(ElementwiseFn op, size_t bytes, std::span<const FoldStep> steps, void* out, const void* in, size_t outer, size_t len, size_t inner);

/// Inclusive scan along len, from the end if `reverse`.
void scan_h200(ElementwiseFn op, size_t bytes, const ThreadLayout& layout, bool reverse, void* out, const void* in, size_t outer, size_t len, size_t inner);

}  // namespace tile
