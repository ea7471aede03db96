// Strided copies: dimensions of extent 1 dropped, mergeable ones merged, then rows, or blocked transposes where the unit strides differ.
#include "vm/interp/strided.h"

#include <algorithm>
#include <iterator>
#include <cstdlib>
#include <cstring>

namespace tile {
namespace {

struct Dim {
  int64_t n, dst, src;
};

template <class T>
void rows(T* dst, const T* src, const Dim* dims, size_t rank) {
  if (rank == 0) {
    *dst = *src;
    return;
  }
  if (rank == 1) {
    const Dim d = dims[0];
    if (d.dst == 1 && d.src == 1) {
      std::memcpy(dst, src, static_cast<size_t>(d.n) * sizeof(T));
    } else if (d.dst == 1 && d.src == 0) {
      std::fill_n(dst, d.n, *src);
    } else {
      for (int64_t i = 0; i < d.n; ++i) dst[i * d.dst] = src[i * d.src];
    }
    return;
  }
  if (rank == 2 && dims[1].src != 1 && dims[0].src == 1 && dims[1].dst == 1) {
    // A transpose: square blocks keep both sides in cache lines that are used whole.
    constexpr int64_t kBlock = 64 / sizeof(T) > 16 ? 16 : 64 / sizeof(T);
    const Dim a = dims[0], b = dims[1];
    for (int64_t i0 = 0; i0 < a.n; i0 += kBlock)
      for (int64_t j0 = 0; j0 < b.n; j0 += kBlock) {
        const int64_t i1 = std::min(a.n, i0 + kBlock), j1 = std::min(b.n, j0 + kBlock);
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < j1; ++j) dst[i * a.dst + j] = src[i + j * b.src];
      }
    return;
  }
  for (int64_t i = 0; i < dims[0].n; ++i) rows(dst + i * dims[0].dst, src + i * dims[0].src, dims + 1, rank - 1);
}

size_t normalise(Dim* dims, size_t rank) {
  size_t n = 0;
  for (size_t d = 0; d < rank; ++d)
    if (dims[d].n != 1) dims[n++] = dims[d];
  // Merge an outer dimension into the inner one where both sides step over whole inner rows.
  size_t out = 0;
  for (size_t d = 0; d < n; ++d) {
    if (out > 0 && dims[out - 1].dst == dims[d].n * dims[d].dst && dims[out - 1].src == dims[d].n * dims[d].src) {
      dims[out - 1] = {dims[out - 1].n * dims[d].n, dims[d].dst, dims[d].src};
    } else {
      dims[out++] = dims[d];
    }
  }
  return out;
}

template <class F>
void by_size(size_t size, F f) {
  switch (size) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    default: f(uint64_t{}); break;
  }
}

}  // namespace

void strided_copy(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, const std::byte* src, std::span<const int64_t> src_strides,
                  std::span<const int64_t> shape) {
  if (shape.size() == 1 && dst_strides[0] == 1 && src_strides[0] == 1) {  // the usual case
    std::memcpy(dst, src, static_cast<size_t>(shape[0]) * size);
    return;
  }
  Dim dims[kMaxRank];
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return;
    dims[d] = {shape[d], dst_strides[d], src_strides[d]};
  }
  const size_t rank = normalise(dims, shape.size());
  // For a transpose the dimension that is contiguous in the source goes next to the innermost one.
  if (rank > 2 && dims[rank - 1].src != 1)
    for (size_t d = 0; d + 2 < rank; ++d)
      if (dims[d].src == 1) std::rotate(dims + d, dims + d + 1, dims + rank - 1);
  by_size(size, [&](auto t) {
    using T = decltype(t);
    rows(reinterpret_cast<T*>(dst), reinterpret_cast<const T*>(src), dims, rank);
  });
}

void fill_elements(size_t size, std::byte* dst, uint64_t pattern, size_t n) {
  // A line of 64 bytes in registers, stored again and again. (A loop that copies by memcpy becomes string instructions, which start slowly.)
  typedef uint64_t Quarter __attribute__((vector_size(16), aligned(1), may_alias));
  alignas(64) std::byte line[64];
  by_size(size, [&](auto t) {
    using T = decltype(t);
    std::fill_n(reinterpret_cast<T*>(line), std::size(line) / sizeof(T), static_cast<T>(pattern));
  });
  const Quarter q = *reinterpret_cast<const Quarter*>(line);
  const size_t bytes = n * size;
  size_t k = 0;
  for (; k + 64 <= bytes; k += 64) {
    Quarter* to = reinterpret_cast<Quarter*>(dst + k);
    to[0] = q;
    to[1] = q;
    to[2] = q;
    to[3] = q;
  }
  std::memcpy(dst + k, line, bytes - k);
}

void strided_fill(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, uint64_t pattern, std::span<const int64_t> shape) {
  constexpr int64_t kZero[kMaxRank] = {};
  strided_copy(size, dst, dst_strides, reinterpret_cast<const std::byte*>(&pattern), std::span(kZero, shape.size()), shape);
}

}  // namespace tile
