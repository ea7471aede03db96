// Finding boxes in lists of accesses.
#include "vm/interp/memory_runs.h"

#include <algorithm>

namespace tile {

bool RunCollector::tell(const Step& s, bool aligned) {
  const auto& runs = x_.runs;
  if (runs.empty()) return true;
  MemoryRuns all{kind_, static_cast<uint32_t>(size_), runs, ~uint64_t{0}, 0, 0};
  uint64_t off = 0;  // bits in which addresses differ
  for (const MemoryRuns::Run& r : runs) {
    all.begin = std::min(all.begin, r.address);
    all.end = std::max(all.end, r.address + r.n * size_);
    all.elements += r.n;
    off |= r.address ^ runs[0].address;
  }
  const std::byte* host = x_.memory.resolve(all.begin, all.end - all.begin);
  if (!host) return false;
  if (aligned && ((off & (size_ - 1)) != 0 || reinterpret_cast<uintptr_t>(host) % size_ != 0)) return false;
  return tell_box(s) || x_.notify(s, all);
}

// Runs of the same length whose addresses count in one or two steps, without two of them sharing bytes.
bool RunCollector::tell_box(const Step& s) {
  const auto& runs = x_.runs;
  const size_t total = runs.size();
  const MemoryRuns::Run& first = runs[0];
  const int64_t one = 1, n = first.n, size = static_cast<int64_t>(size_);
  MemoryAccess a{kind_, first.address, static_cast<uint32_t>(size_), 1, &n, &one, first.first, &one};
  if (total == 1) {
    x_.notify(s, a);
    return true;
  }
  const auto apart = [](const MemoryRuns::Run& from, const MemoryRuns::Run& to) { return static_cast<int64_t>(to.address - from.address); };
  const int64_t step = apart(first, runs[1]), tile_step = int64_t{runs[1].first} - first.first;
  const auto follows = [&](size_t k, int64_t by, int64_t tile_by, size_t back) {
    return runs[k].n == first.n && apart(runs[k - back], runs[k]) == by && int64_t{runs[k].first} - runs[k - back].first == tile_by;
  };
  size_t inner = 1;
  while (inner < total && follows(inner, step, tile_step, 1)) ++inner;
  if (inner == 1 || total % inner != 0 || step <= 0 || step % size != 0) return false;
  const size_t outer = total / inner;
  const int64_t far = outer > 1 ? apart(first, runs[inner]) : 0, tile_far = outer > 1 ? int64_t{runs[inner].first} - first.first : 0;
  for (size_t k = inner; k < total; ++k)
    if (!follows(k, far, tile_far, inner)) return false;
  const int64_t count[2] = {static_cast<int64_t>(outer), static_cast<int64_t>(inner)};
  if (outer > 1 && (far <= 0 || far % size != 0)) return false;
  // The smaller stride steps over a run, the larger one over all that the smaller one reaches.
  const int64_t run = n * size;
  const bool nested = far > step || outer == 1 ? step >= run && (outer == 1 || far >= (count[1] - 1) * step + run) : far >= run && step >= (count[0] - 1) * far + run;
  if (!nested) return false;
  const int64_t shape[3] = {count[0], count[1], n}, strides[3] = {far / size, step / size, 1}, in_tile[3] = {tile_far, tile_step, 1};
  const size_t skip = outer == 1 ? 1 : 0;
  a.rank = 3 - skip;
  a.shape = shape + skip;
  a.strides = strides + skip;
  a.tile_strides = in_tile + skip;
  x_.notify(s, a);
  return true;
}

}  // namespace tile
