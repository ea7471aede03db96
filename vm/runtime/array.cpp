// Layout arithmetic of host arrays, every step checked against 64 bits.
#include "vm/runtime/array.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tile {
namespace {

std::string word(int64_t v) {
  return std::to_string(v);
}

std::optional<std::vector<int64_t>> contiguous(const std::vector<int64_t>& shape, bool last_first) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t d = last_first ? shape.size() - 1 - i : i;
    strides[d] = step;
    if (shape[d] < 0 || __builtin_mul_overflow(step, std::max<int64_t>(shape[d], 1), &step)) return std::nullopt;
  }
  return strides;
}

bool contiguous_as(const ArrayView& a, bool last_first) {
  if (a.count() == 0) return true;
  int64_t step = 1;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const size_t d = last_first ? a.shape.size() - 1 - i : i;
    if (a.shape[d] == 1) continue;
    if (a.strides[d] != step) return false;
    step *= a.shape[d];
  }
  return true;
}

/// Elements from `offset` to the last one, both included; 0 for an empty array.
std::optional<int64_t> span_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t span = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || strides[d] < 0) return std::nullopt;
    if (shape[d] == 0) return 0;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) || __builtin_add_overflow(span, reach, &span)) {
      return std::nullopt;
    }
  }
  return span;
}

template <class T>
uint64_t load_as(const uint8_t* data, int64_t position) {
  T value;
  std::memcpy(&value, data + position * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store_as(uint8_t* data, int64_t position, uint64_t bits) {
  const T value = static_cast<T>(bits);
  std::memcpy(data + position * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  AlignedBytes taken(std::move(other));
  swap(taken);
  return *this;
}

AlignedBytes::~AlignedBytes() {
  std::free(block_);
}

void AlignedBytes::swap(AlignedBytes& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

std::optional<AlignedBytes> AlignedBytes::make(size_t size) {
  if (size > SIZE_MAX - kAlignment) return std::nullopt;
  AlignedBytes bytes;
  // calloc, not aligned_alloc and memset: large blocks come as untouched zero pages.
  bytes.block_ = std::calloc(size + kAlignment, 1);
  if (bytes.block_ == nullptr) return std::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(bytes.block_);
  bytes.data_ = static_cast<uint8_t*>(bytes.block_) + (kAlignment - address % kAlignment) % kAlignment;
  bytes.size_ = size;
  return bytes;
}

int64_t ArrayView::count() const {
  return element_count(shape).value_or(0);
}

int64_t ArrayView::position(int64_t linear) const {
  int64_t at = offset;
  for (size_t d = shape.size(); d-- > 0;) {
    at += linear % shape[d] * strides[d];
    linear /= shape[d];
  }
  return at;
}

bool ArrayView::fits() const {
  if (strides.size() != shape.size() || offset < 0 || !element_count(shape)) return false;
  const auto span = span_of(shape, strides);
  int64_t end = 0;
  if (!span || __builtin_add_overflow(offset, *span, &end)) return false;
  if (*span == 0) return true;
  const auto bytes = byte_count(type, end);
  return bytes && static_cast<uint64_t>(*bytes) <= size;
}

std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty |= extent == 0;
  }
  if (empty) return 0;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> byte_count(ElementType type, int64_t count) {
  const int64_t bits = info(type).memory_bits;
  if (bits == 0 || count < 0) return std::nullopt;
  if (bits == 4) return count / 2 + count % 2;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, bits / 8, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<std::vector<int64_t>> row_major_strides(const std::vector<int64_t>& shape) {
  return contiguous(shape, true);
}
std::optional<std::vector<int64_t>> column_major_strides(const std::vector<int64_t>& shape) {
  return contiguous(shape, false);
}
bool is_row_major(const ArrayView& a) {
  return contiguous_as(a, true);
}
bool is_column_major(const ArrayView& a) {
  return contiguous_as(a, false);
}

Result<Array> make_array(ElementType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
                         const ArrayLimits& limits, const Place& place, Diagnostics& diags) {
  if (info(type).memory_bits == 0 || type == ElementType::Ptr) {
    return diags.error(Code::E0804, place, "element type " + std::string(info(type).name) + " cannot be in an array");
  }
  if (shape.size() > kMaxArrayRank) {
    return diags.error(Code::E0804, place,
                       "rank is " + std::to_string(shape.size()) + ", the largest is " + std::to_string(kMaxArrayRank));
  }
  if (strides.size() != shape.size()) {
    return diags.error(Code::E0804, place,
                       std::to_string(strides.size()) + " strides are given, expected " + std::to_string(shape.size()) +
                           ", one per dimension");
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) {
      return diags.error(Code::E0804, place,
                         "extent " + std::to_string(d) + " is " + word(shape[d]) + ", expected at least 0");
    }
    if (strides[d] < 0) {
      return diags.error(Code::E0804, place,
                         "stride " + std::to_string(d) + " is " + word(strides[d]) + ", expected at least 0");
    }
  }
  const auto span = span_of(shape, strides);
  const auto bytes = span && element_count(shape) ? byte_count(type, *span) : std::nullopt;
  if (!bytes || static_cast<uint64_t>(*bytes) > limits.bytes) {
    return diags.error(Code::L0103, place,
                       "an array of " + std::string(info(type).name) + show_list(shape) + " with strides " +
                           show_list(strides) + " takes " + (bytes ? word(*bytes) : "more than 2^63") +
                           " bytes, the limit is " + std::to_string(limits.bytes));
  }
  auto memory = AlignedBytes::make(static_cast<size_t>(*bytes));
  if (!memory) return diags.error(Code::E0903, place, "no memory for an array of " + word(*bytes) + " bytes");
  return Array{type, std::move(shape), std::move(strides), 0, std::move(*memory)};
}

uint64_t load_bits(const uint8_t* data, ElementType type, int64_t position) {
  switch (info(type).memory_bits) {
    case 4:
      return data[position / 2] >> (position % 2 * 4) & 15;
    case 8:
      return data[position];
    case 16:
      return load_as<uint16_t>(data, position);
    case 32:
      return load_as<uint32_t>(data, position);
    default:
      return load_as<uint64_t>(data, position);
  }
}

void store_bits(uint8_t* data, ElementType type, int64_t position, uint64_t bits) {
  switch (info(type).memory_bits) {
    case 4: {
      const int shift = static_cast<int>(position % 2 * 4);
      uint8_t& byte = data[position / 2];
      byte = static_cast<uint8_t>((byte & ~(15 << shift)) | (bits & 15) << shift);
      return;
    }
    case 8:
      data[position] = static_cast<uint8_t>(bits);
      return;
    case 16:
      store_as<uint16_t>(data, position, bits);
      return;
    case 32:
      store_as<uint32_t>(data, position, bits);
      return;
    default:
      store_as<uint64_t>(data, position, bits);
      return;
  }
}

std::string show_list(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + word(values[i]);
  return text + "]";
}

std::string show_index(const std::vector<int64_t>& shape, int64_t linear) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = linear % shape[d];
    linear /= shape[d];
  }
  return show_list(index);
}

}  // namespace tile
