// Finding tiles of a grid, and leaving the grid.
#include "vm/interp/check_tiles.h"

#include <bit>

namespace tile {

bool TileShadow::begin(const Memory& memory, bool shared) {
  shared_ = shared;
  if (bytes_.begin(memory, shared)) return true;
  grids_.clear();
  for (uint64_t i = 0; const Memory::Allocation* a = memory.find(Memory::base_of(i)); ++i) {
    grids_.push_back(std::make_unique<Grid>());
    grids_.back()->base = Memory::base_of(i);
    grids_.back()->size = a->size;
  }
  return false;
}

void TileShadow::clear() {
  for (size_t a = 0; a < grids_.size(); ++a) clear(a);
}

void TileShadow::clear(size_t allocation) {
  bytes_.clear(allocation);
  if (allocation >= grids_.size()) return;
  Grid& g = *grids_[allocation];
  g.state = State::Untouched;
  tiles_.fetch_sub(g.tiles.size(), std::memory_order_relaxed);
  g.tiles.clear();
}

bool TileShadow::digits(const Grid& g, const AccessBox& box, uint64_t before, std::array<uint64_t, AccessBox::kMostDims>& out) {
  uint64_t rest = box.address - g.base;
  if (box.bytes > g.size || rest > g.size - box.bytes || rest % box.element_bytes != 0) return false;
  rest = rest / box.element_bytes + before;
  for (size_t d = 0; d < box.rank; ++d) {
    const uint64_t stride = static_cast<uint64_t>(box.strides[d]);
    out[d] = stride == 1 ? rest : rest / stride;
    rest -= out[d] * stride;
    if (d > 0 && (out[d] + static_cast<uint64_t>(box.shape[d])) * stride > static_cast<uint64_t>(box.strides[d - 1])) return false;
  }
  return true;
}

bool TileShadow::find_box(Grid& g, const MemoryAccess& a, Place& place) {
  AccessBox box;
  if (!box.set(a)) return false;
  if (g.state.load(std::memory_order_acquire) != State::Tiles && !start(g, box)) return false;
  if (box.rank != g.box.rank || box.element_bytes != g.box.element_bytes) return false;
  for (size_t d = 0; d < box.rank; ++d)
    if (box.strides[d] != g.box.strides[d] || box.shape[d] > g.box.shape[d]) return false;
  std::array<uint64_t, AccessBox::kMostDims> digit{};
  if (!digits(g, box, g.before, digit)) return false;
  place.tile = 0;
  for (size_t d = 0; d < box.rank; ++d) {
    const uint64_t extent = static_cast<uint64_t>(g.box.shape[d]), from = digit[d] + extent - g.phase[d], number = from / extent;
    if (number * extent != from) return false;
    place.tile = place.tile * static_cast<size_t>(g.count[d]) + static_cast<size_t>(number);
    place.shape[d] = static_cast<uint32_t>(box.shape[d]);
  }
  return true;
}

bool TileShadow::start(Grid& g, const AccessBox& box) {
  constexpr uint64_t kLeast = 64;  // bytes of a tile: smaller ones are no cheaper than their bytes
  uint64_t elements = 1;
  for (size_t d = 0; d < box.rank; ++d) elements *= static_cast<uint64_t>(box.shape[d]);
  std::array<uint64_t, AccessBox::kMostDims> digit{}, phase{}, count{};
  if (elements * box.element_bytes < kLeast || box.rank == 0 || box.strides[box.rank - 1] != 1) return false;
  const uint64_t largest = static_cast<uint64_t>(box.strides[0]), before = (largest - (box.address - g.base) / box.element_bytes % largest) % largest;
  if (!digits(g, box, before, digit)) return false;
  uint64_t tiles = 1;
  for (size_t d = 0; d < box.rank; ++d) {
    const uint64_t extent = static_cast<uint64_t>(box.shape[d]), stride = static_cast<uint64_t>(box.strides[d]);
    const uint64_t most = d == 0 ? (g.size / box.element_bytes + before) / stride : static_cast<uint64_t>(box.strides[d - 1]) / stride;
    phase[d] = digit[d] % extent;
    count[d] = most / extent + 2;
    if (count[d] > g.size || (tiles *= count[d]) > g.size / kLeast * 2 + kLeast) return false;
  }
  std::array<std::unique_lock<std::mutex>, kLocks> locks;
  if (shared_)
    for (size_t k = 0; k < kLocks; ++k) locks[k] = std::unique_lock(g.locks[k]);
  if (g.state != State::Untouched) return g.state == State::Tiles;
  g.box = box;
  g.before = before;
  g.phase = phase;
  g.count = count;
  const uint64_t row = static_cast<uint64_t>(box.shape[0]) * box.element_bytes;
  g.row_shift = box.rank == 1 && std::has_single_bit(row) ? static_cast<unsigned>(std::countr_zero(row)) : 64;
  g.row_phase = row - phase[0] * box.element_bytes;
  g.tiles.assign(static_cast<size_t>(tiles), {});
  tiles_.fetch_add(g.tiles.size(), std::memory_order_relaxed);
  g.state.store(State::Tiles, std::memory_order_release);
  return true;
}

void TileShadow::give_up(Grid& g) {
  std::array<std::unique_lock<std::mutex>, kLocks> locks;
  if (shared_)
    for (size_t k = 0; k < kLocks; ++k) locks[k] = std::unique_lock(g.locks[k]);
  if (g.state == State::Bytes) return;
  AccessBox box = g.box;
  for (size_t at = 0; at < g.tiles.size(); ++at) {
    const Tile& t = g.tiles[at];
    if (t.touched == 0) continue;
    uint64_t offset = 0;
    size_t rest = at;
    for (size_t d = box.rank; d-- > 0;) {
      const uint64_t number = rest % g.count[d];
      rest /= g.count[d];
      box.shape[d] = t.shape[d];
      offset += (number * static_cast<uint64_t>(g.box.shape[d]) + g.phase[d] - static_cast<uint64_t>(g.box.shape[d])) * static_cast<uint64_t>(box.strides[d]);
    }
    box.address = g.base + (offset - g.before) * box.element_bytes;
    for_each_run(box.access(), [&](uint64_t address, uint64_t bytes) { bytes_.update(address, bytes, [&](const ShadowCell&, uint64_t) { return t.cell; }); });
  }
  tiles_.fetch_sub(g.tiles.size(), std::memory_order_relaxed);
  g.tiles.clear();
  g.tiles.shrink_to_fit();
  g.state.store(State::Bytes, std::memory_order_release);
}

}  // namespace tile
