// Layout of tiles over threads, and the order of reductions and scans that follows from it.
#include "vm/interp/numerics_h200_reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tile {
namespace {

constexpr size_t kWarp = 32, kWarps = 4, kVectorBytes = 16;
// Of a copy from memory; a box of three dimensions has half the bytes, a tile of one dimension has rows of so many bytes.
constexpr size_t kBoxRows = 64, kBoxBytes = 16384, kBoxRowBytes = 128;

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
  // A tile of one element for each thread whose rows are too short for boxes is loaded in the order of memory.
  const bool last_first = vector > 1 || (elements == kWarp * kWarps && rank == 2 && static_cast<size_t>(shape[last]) * bytes < kVectorBytes);
  ThreadLayout found;
  size_t lanes = kWarp, warps = kWarps;
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = last_first ? last - i : i;
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
    s.ascending = d == last && rank > 1 && s.thread == static_cast<size_t>(shape[last]) && elements == kWarp * kWarps * s.thread;
    if (d == dim) found = s;
  }
  // Boxes are cut along the first dimension.
  if (dim == 0) {
    const size_t all = static_cast<size_t>(shape[0]) * bytes;
    const size_t rows = rank == 1 ? std::max<size_t>(1, all / kBoxRowBytes) : static_cast<size_t>(shape[0]);
    const size_t row_bytes = rank == 1 ? kBoxRowBytes : elements * bytes / rows;
    const size_t box = std::min(kBoxRows, std::max<size_t>(1, (rank > 2 ? kBoxBytes / 2 : kBoxBytes) / row_bytes));
    found.boxes = row_bytes < kVectorBytes ? 0 : std::min(found.rounds, std::max<size_t>(1, rows / box));
    // Where a row takes all threads: of each box first where it takes them once, else as if there were one box.
    constexpr size_t kAllThreads = kVectorBytes * kWarp * kWarps;
    if (rank > 1 && found.boxes > 1 && row_bytes > kAllThreads) found.boxes = 1;
    found.by_box = rank > 1 && found.boxes > 1 && found.boxes <= 4 && row_bytes == kAllThreads;
  }
  return found;
}

CombinationOrder reduction_order_h200(const ThreadLayout& s) {
  const auto width = [](size_t n) { return std::countr_zero(n); };
  const int thread = width(s.thread), lanes = width(s.lanes), warps = width(s.warps), rounds = width(s.rounds);
  const int in_warp = thread + lanes, in_block = in_warp + warps, bits = in_block + rounds;
  CombinationOrder order;
  order.rows = size_t{1} << bits;
  order.results = {0};
  uint32_t gone = 0;  // bits of the index that are folded away
  // Combines the elements that differ in these bits alone, one after the other.
  const auto fold = [&](int first, int count, bool swapped) {
    const uint32_t mask = ((uint32_t{1} << count) - 1) << first;
    gone |= mask;
    for (uint32_t i = 0; i < order.rows; ++i)
      if ((i & gone) == 0)
        for (uint32_t k = (0 - mask) & mask; k != 0; k = (k - mask) & mask) order.steps.push_back({i, swapped ? i | k : i, swapped ? i : i | k});
  };
  // What one thread holds: a chain over boxes, or over rounds where there is one box, or neither; the rest as a tree from neighbours on.
  const int chain = s.boxes > 1 ? width(s.boxes) : s.boxes == 1 ? rounds : 0;
  if (s.by_box) fold(in_block, bits - chain - in_block, false);
  if (chain > 0) fold(bits - chain, chain, false);
  if (s.ascending) fold(0, thread, false);
  for (int bit = 0; bit < thread && !s.ascending; ++bit) fold(bit, 1, false);
  for (int bit = in_block; bit < bits - chain && !s.by_box; ++bit) fold(bit, 1, false);
  // Threads and warps: halves first.
  for (int bit = in_warp; bit-- > thread;) fold(bit, 1, s.upper && bit == in_warp - 1);
  for (int bit = in_block; bit-- > in_warp;) fold(bit, 1, false);
  return order;
}

CombinationOrder scan_order_h200(const ThreadLayout& s) {
  const auto thread = static_cast<uint32_t>(s.thread), lanes = static_cast<uint32_t>(s.lanes);
  const auto threads = static_cast<uint32_t>(s.lanes * s.warps * s.rounds), len = threads * thread;
  CombinationOrder order;
  // Behind the elements: what the threads of a warp up to each one have together, and what all up to each thread have.
  const uint32_t sums = len, before = len + threads;
  order.rows = before + threads;
  for (uint32_t i = 0; i < len; ++i)
    if (i % thread != 0) order.steps.push_back({i, i - 1, i});
  for (uint32_t t = 0; t < threads; ++t) order.steps.push_back({sums + t, t * thread + thread - 1, Combination::kNone});
  for (uint32_t distance = 1; distance < lanes; distance *= 2)
    for (uint32_t t = threads; t-- > 0;)
      if (t % lanes >= distance) order.steps.push_back({sums + t, sums + t - distance, sums + t});
  for (uint32_t t = 0; t < threads; ++t) {
    const uint32_t first = t / lanes * lanes;
    order.steps.push_back({before + t, first == 0 ? sums + t : before + first - 1, first == 0 ? Combination::kNone : sums + t});
  }
  for (uint32_t i = 0; i < len; ++i) {
    const uint32_t t = i / thread;
    const bool last = i % thread == thread - 1;
    if (!last && t > 0) order.steps.push_back({i, before + t - 1, i});
    order.results.push_back(last ? before + t : i);
  }
  return order;
}

void combine_h200(ElementwiseFn op, size_t bytes, const CombinationOrder& order, bool reverse, void* out, const void* in, size_t outer, size_t len,
                  size_t inner) {
  const size_t row = inner * bytes, results = order.results.size();
  std::vector<std::byte> table(order.rows * row);
  const auto at = [&](size_t i) { return table.data() + i * row; };
  for (size_t o = 0; o < outer; ++o) {
    const std::byte* from = static_cast<const std::byte*>(in) + o * len * row;
    std::byte* to = static_cast<std::byte*>(out) + o * results * row;
    for (size_t i = 0; i < len; ++i) std::memcpy(at(i), from + (reverse ? len - 1 - i : i) * row, row);
    for (const Combination& c : order.steps) {
      if (c.right == Combination::kNone) {
        std::memcpy(at(c.to), at(c.left), row);
      } else {
        const void* operands[2] = {at(c.left), at(c.right)};
        op(at(c.to), operands, inner);
      }
    }
    for (size_t i = 0; i < results; ++i) std::memcpy(to + (reverse ? results - 1 - i : i) * row, at(order.results[i]), row);
  }
}

}  // namespace tile
