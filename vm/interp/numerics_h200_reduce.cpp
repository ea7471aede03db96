// Layout of tiles over threads, and the order of reductions and scans that follows from it.
#include "vm/interp/numerics_h200_reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tile {
namespace {

constexpr size_t kWarp = 32, kWarps = 4, kVectorBytes = 16;
constexpr size_t kBoxRows = 64, kBoxBytes = 16384, kBoxRowBytes = 128;  // of a copy from memory; a tile of one dimension has rows of so many bytes

/// Rows of `inner` elements in a buffer.
struct Rows {
  ElementwiseFn op;
  std::byte* data;
  size_t row, inner;

  [[nodiscard]] std::byte* at(size_t i) const { return data + i * row; }
  /// to = a op b
  void combine(size_t to, size_t a, size_t b) const {
    const void* operands[2] = {at(a), at(b)};
    op(at(to), operands, inner);
  }
};

}  // namespace

ThreadLayout thread_layout_h200(std::span<const int64_t> shape, size_t dim, size_t bytes) {
  while (dim > 0 && shape[0] == 1) {
    shape = shape.subspan(1);
    --dim;
  }
  const size_t rank = shape.size(), last = rank - 1;
  size_t elements = 1;
  for (const int64_t s : shape) elements *= static_cast<size_t>(s);
  const size_t vector = std::min({std::max<size_t>(1, elements / (kWarp * kWarps)), kVectorBytes / bytes, static_cast<size_t>(shape[last])});
  // Vectors run along the last dimension and so do threads; without vectors threads run along the first one.
  ThreadLayout found;
  size_t lanes = kWarp, warps = kWarps;
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = vector > 1 ? last - i : i;
    ThreadLayout s;
    size_t rest = static_cast<size_t>(shape[d]);
    const auto give = [&](size_t& part, size_t most) {
      part = std::min(rest, most);
      rest /= part;
    };
    give(s.thread, d == last ? vector : 1);
    give(s.lanes, lanes);
    lanes /= s.lanes;
    give(s.warps, warps);
    warps /= s.warps;
    s.rounds = rest;
    // Every thread stores the result, numbers of 8 bytes by half warps: the second one is last.
    s.upper = bytes == 8 && rank > 1 && s.lanes > 1 && lanes == 1 && s.warps == 1;
    if (d == dim) found = s;
  }
  // Boxes are cut along the first dimension.
  if (dim == 0) {
    const size_t all = static_cast<size_t>(shape[0]) * bytes;
    const size_t rows = rank == 1 ? std::max<size_t>(1, all / kBoxRowBytes) : static_cast<size_t>(shape[0]);
    const size_t row_bytes = rank == 1 ? kBoxRowBytes : elements * bytes / rows;
    const size_t box = std::min(kBoxRows, std::max<size_t>(1, kBoxBytes / row_bytes));
    found.boxes = row_bytes < kVectorBytes ? 0 : std::min(found.rounds, std::max<size_t>(1, rows / box));
  }
  return found;
}

std::vector<FoldStep> fold_steps_h200(const ThreadLayout& s) {
  const auto width = [](size_t n) { return std::countr_zero(n); };
  const int thread = width(s.thread), lanes = width(s.lanes), warps = width(s.warps), rounds = width(s.rounds);
  const int in_warp = thread + lanes, in_block = in_warp + warps, bits = in_block + rounds;
  std::vector<FoldStep> steps;
  uint32_t gone = 0;  // bits of the index that are folded away
  // Combines the elements that differ in these bits alone, one after the other.
  const auto fold = [&](int first, int count, bool swapped) {
    const uint32_t mask = ((uint32_t{1} << count) - 1) << first;
    gone |= mask;
    for (uint32_t i = 0; i < uint32_t{1} << bits; ++i)
      if ((i & gone) == 0)
        for (uint32_t k = (0 - mask) & mask; k != 0; k = (k - mask) & mask) steps.push_back({i, i | k, swapped});
  };
  // What one thread holds: a chain over boxes, or over rounds where there is one box, or neither; the rest as a tree from neighbours on.
  const int chain = s.boxes > 1 ? width(s.boxes) : s.boxes == 1 ? rounds : 0;
  if (chain > 0) fold(bits - chain, chain, false);
  for (int bit = 0; bit < thread; ++bit) fold(bit, 1, false);
  for (int bit = in_block; bit < bits - chain; ++bit) fold(bit, 1, false);
  // Threads and warps: halves first.
  for (int bit = in_warp; bit-- > thread;) fold(bit, 1, s.upper && bit == in_warp - 1);
  for (int bit = in_block; bit-- > in_warp;) fold(bit, 1, false);
  return steps;
}

void reduce_h200(ElementwiseFn op, size_t bytes, std::span<const FoldStep> steps, void* out, const void* in, size_t outer, size_t len, size_t inner) {
  const size_t row = inner * bytes;
  std::vector<std::byte> buffer(len * row);
  const Rows rows{op, buffer.data(), row, inner};
  for (size_t o = 0; o < outer; ++o) {
    std::memcpy(buffer.data(), static_cast<const std::byte*>(in) + o * len * row, len * row);
    for (const FoldStep& s : steps) rows.combine(s.to, s.swapped ? s.from : s.to, s.swapped ? s.to : s.from);
    std::memcpy(static_cast<std::byte*>(out) + o * row, buffer.data(), row);
  }
}

void scan_h200(ElementwiseFn op, size_t bytes, const ThreadLayout& s, bool reverse, void* out, const void* in, size_t outer, size_t len, size_t inner) {
  const size_t row = inner * bytes, threads = len / s.thread;
  // Elements, then what the threads of a warp up to each one have together, then what all up to each thread have.
  std::vector<std::byte> buffer((len + 2 * threads) * row);
  const Rows rows{op, buffer.data(), row, inner};
  const size_t sums = len, before = len + threads;
  for (size_t o = 0; o < outer; ++o) {
    const std::byte* from = static_cast<const std::byte*>(in) + o * len * row;
    for (size_t i = 0; i < len; ++i) std::memcpy(rows.at(i), from + (reverse ? len - 1 - i : i) * row, row);
    for (size_t i = 0; i < len; ++i)
      if (i % s.thread != 0) rows.combine(i, i - 1, i);
    for (size_t t = 0; t < threads; ++t) std::memcpy(rows.at(sums + t), rows.at(t * s.thread + s.thread - 1), row);
    for (size_t distance = 1; distance < s.lanes; distance *= 2)
      for (size_t t = threads; t-- > 0;)
        if (t % s.lanes >= distance) rows.combine(sums + t, sums + t - distance, sums + t);
    for (size_t t = 0; t < threads; ++t) {
      const size_t first = t / s.lanes * s.lanes;
      if (first == 0) {
        std::memcpy(rows.at(before + t), rows.at(sums + t), row);
      } else {
        rows.combine(before + t, before + first - 1, sums + t);
      }
    }
    std::byte* to = static_cast<std::byte*>(out) + o * len * row;
    for (size_t i = 0; i < len; ++i) {
      const size_t t = i / s.thread;
      size_t from_row = i;
      if (i % s.thread == s.thread - 1) {
        from_row = before + t;
      } else if (t > 0) {
        rows.combine(i, before + t - 1, i);
      }
      std::memcpy(to + (reverse ? len - 1 - i : i) * row, rows.at(from_row), row);
    }
  }
}

}  // namespace tile
