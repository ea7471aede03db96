// Copies between strided boxes of elements: the one routine behind permute, view accesses and reductions along inner dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tile {

/// dst[sum i_d * dst_strides[d]] = src[sum i_d * src_strides[d]] for all i in the box. Strides count elements and may be 0 for src.
/// @param size  bytes of an element: 1, 2, 4 or 8
void strided_copy(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, const std::byte* src, std::span<const int64_t> src_strides,
                  std::span<const int64_t> shape);

/// Fills `n` elements of `size` bytes with the low bytes of `pattern`.
void fill_elements(size_t size, std::byte* dst, uint64_t pattern, size_t n);
/// The same over a strided box.
void strided_fill(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, uint64_t pattern, std::span<const int64_t> shape);

/// Row-major strides of a shape.
template <class Shape, class Out>
void row_major(const Shape& shape, Out& out) {
  int64_t s = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = s;
    s *= shape[d];
  }
}

inline constexpr size_t kMaxRank = 64;  ///< ranks beyond this are refused when planning: 2^24 elements have at most 24 extents above 1

}  // namespace tile
