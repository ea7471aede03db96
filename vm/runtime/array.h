// Arrays of one element type in host memory: shape, strides, and bytes laid out as in a kernel's global memory.
// Not a math library: elements are bits here; numeric.h gives them values.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/base/element_type.h"

namespace tile {

static_assert(std::endian::native == std::endian::little, "a kernel's memory is little-endian and used in place");

inline constexpr size_t kMaxArrayRank = 32;

/// Bounds on what an input may make this process allocate.
struct ArrayLimits {
  uint64_t bytes =
      uint64_t{1} << 36;  ///< of one array; 64 GiB covers what the largest GPUs of a launch hold in one buffer
};

/// Owned bytes, zero at first, starting at a multiple of kAlignment. Moves only.
class AlignedBytes {
 public:
  static constexpr size_t kAlignment = 256;

  AlignedBytes() = default;
  AlignedBytes(AlignedBytes&& other) noexcept { swap(other); }
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  ~AlignedBytes();

  /// No value where the machine has not enough memory. Pages are touched by their first use, not here.
  [[nodiscard]] static std::optional<AlignedBytes> make(size_t size);

  [[nodiscard]] uint8_t* data() { return data_; }
  [[nodiscard]] const uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  void swap(AlignedBytes& other) noexcept;

  void* block_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Elements at `offset` + sum of index * stride in somebody else's bytes. All positions count elements, f4 too.
struct ArrayView {
  ElementType type = ElementType::I8;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
  const uint8_t* data = nullptr;
  size_t size = 0;  ///< bytes at `data`

  [[nodiscard]] int64_t count() const;
  /// The element of the index whose place in row-major order is `linear`, 0 <= linear < count().
  [[nodiscard]] int64_t position(int64_t linear) const;
  /// Whether every element lies inside `size`; false for negative strides and sums beyond 64 bits.
  [[nodiscard]] bool fits() const;
};

struct Array {
  ElementType type = ElementType::I8;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
  AlignedBytes memory;

  [[nodiscard]] ArrayView view() const { return {type, shape, strides, offset, memory.data(), memory.size()}; }
};

/// Product of the extents; no value where one is negative or the product passes 2^63 - 1.
[[nodiscard]] std::optional<int64_t> element_count(const std::vector<int64_t>& shape);
/// Bytes that `count` elements take, rounded up to whole bytes; no value beyond 2^63 - 1 or for types that memory
/// cannot hold.
[[nodiscard]] std::optional<int64_t> byte_count(ElementType type, int64_t count);

/// Strides of the two contiguous layouts, in elements. An extent 0 counts as 1. No value beyond 2^63 - 1.
[[nodiscard]] std::optional<std::vector<int64_t>> row_major_strides(const std::vector<int64_t>& shape);
[[nodiscard]] std::optional<std::vector<int64_t>> column_major_strides(const std::vector<int64_t>& shape);
/// Whether the elements lie one behind the other in that order; strides of extents 1 do not matter.
[[nodiscard]] bool is_row_major(const ArrayView& a);
[[nodiscard]] bool is_column_major(const ArrayView& a);

/// A zeroed array with exactly the memory that its elements span.
/// Errors: E0804 bad extents, strides or type; L0103 beyond `limits`; E0903 no memory.
[[nodiscard]] Result<Array> make_array(ElementType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
                                       const ArrayLimits& limits, const Place& place, Diagnostics& diags);

/// The stored bits of the element at `position`: i1 its byte, tf32 32 bits, f4 the nibble (even positions low), else as
/// wide as the type.
[[nodiscard]] uint64_t load_bits(const uint8_t* data, ElementType type, int64_t position);
void store_bits(uint8_t* data, ElementType type, int64_t position, uint64_t bits);

/// Calls f(linear, position) for every element, in row-major order of the index; the rank is at most kMaxArrayRank.
template <class F>
void for_each_element(const ArrayView& a, F&& f) {
  const size_t rank = a.shape.size();
  std::array<int64_t, kMaxArrayRank> index{};
  if (rank > index.size()) return;
  const int64_t count = a.count();
  int64_t position = a.offset;
  for (int64_t linear = 0; linear < count; ++linear) {
    f(linear, position);
    for (size_t d = rank; d-- > 0;) {
      position += a.strides[d];
      if (++index[d] < a.shape[d]) break;
      position -= a.strides[d] * a.shape[d];
      index[d] = 0;
    }
  }
}

/// "[512, 512]"
[[nodiscard]] std::string show_list(const std::vector<int64_t>& values);
/// The index of `linear` in row-major order, "[3, 17]"; "[]" for rank 0.
[[nodiscard]] std::string show_index(const std::vector<int64_t>& shape, int64_t linear);

}  // namespace tile
