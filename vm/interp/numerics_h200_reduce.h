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
  bool ascending = false;  ///< what a thread holds is the whole extent, and is combined from first to last
  bool by_box = false;     ///< rounds are combined box by box
  size_t boxes = 1;    ///< copies from memory that the rounds are spread over; 0: each thread copies for itself
};
/// @param shape  of the tile: powers of two
/// @param bytes  of an element
[[nodiscard]] ThreadLayout thread_layout_h200(std::span<const int64_t> shape, size_t dim, size_t bytes);

/// Two elements that are combined next, or one that is copied. The elements of the dimension are the first rows of a table.
struct Combination {
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t to, left, right;  ///< rows; `right` kNone: a copy
};
struct CombinationOrder {
  size_t rows = 0;                        ///< of the table
  std::vector<Combination> steps;
  std::vector<uint32_t> results;          ///< rows: the one of a reduction, or each of a scan
};
[[nodiscard]] CombinationOrder reduction_order_h200(const ThreadLayout& layout);
/// Of an inclusive scan; one from the end has the last element in the first row.
[[nodiscard]] CombinationOrder scan_order_h200(const ThreadLayout& layout);

/// Reduces or scans [outer, len, inner] along len; `op` combines two rows of inner elements.
///
/// @param reverse  a scan from the end
void combine_h200(ElementwiseFn op, size_t bytes, const CombinationOrder& order, bool reverse, void* out, const void* in, size_t outer, size_t len,
                  size_t inner);

}  // namespace tile
