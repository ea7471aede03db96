// What a checker remembers about memory that blocks touch tile by tile: one cell for each tile of an array, as long as all accesses of the array
// are tiles of one grid; after that one for each byte (check_shadow.h).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "vm/interp/check_part.h"
#include "vm/interp/check_shadow.h"

namespace tile {

/// An access whose elements share no bytes: dimensions longer than 1, the largest stride first.
struct AccessBox {
  static constexpr size_t kMostDims = 3;
  uint64_t address = 0, bytes = 0;  ///< all of it lies in [address, address + bytes)
  uint32_t element_bytes = 1;
  uint32_t rank = 0;
  std::array<int64_t, kMostDims> shape{}, strides{};  ///< strides in elements

  /// False where elements may share bytes or there are too many dimensions.
  [[nodiscard]] bool set(const MemoryAccess& a);
  [[nodiscard]] bool meets(const AccessBox& b) const { return address < b.address + b.bytes && b.address < address + bytes; }
  [[nodiscard]] MemoryAccess access() const;  ///< refers to this box
};

inline bool AccessBox::set(const MemoryAccess& a) {
  address = a.address;
  element_bytes = a.element_bytes;
  rank = 0;
  if (a.rank == 1 && a.strides[0] == 1) {  // the usual case
    rank = 1;
    shape[0] = a.shape[0];
    strides[0] = 1;
    bytes = static_cast<uint64_t>(a.shape[0]) * a.element_bytes;
    return true;
  }
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.shape[d] == 1) continue;
    if (rank == kMostDims) return false;
    size_t k = rank++;
    for (; k > 0 && strides[k - 1] < a.strides[d]; --k) {
      strides[k] = strides[k - 1];
      shape[k] = shape[k - 1];
    }
    strides[k] = a.strides[d];
    shape[k] = a.shape[d];
  }
  int64_t reach = 1;  // elements from the first to behind the last
  for (size_t k = rank; k-- > 0;) {
    if (strides[k] < reach) return false;
    reach += (shape[k] - 1) * strides[k];
  }
  bytes = static_cast<uint64_t>(reach) * a.element_bytes;
  return true;
}

inline MemoryAccess AccessBox::access() const {
  MemoryAccess a;
  a.address = address;
  a.element_bytes = element_bytes;
  a.rank = rank;
  a.shape = shape.data();
  a.strides = strides.data();
  return a;
}

class TileShadow {
 public:
  /// As Shadow::begin().
  bool begin(const Memory& memory, bool shared);
  /// Forgets everything.
  void clear();
  /// Forgets one allocation. Not while others update it.
  void clear(size_t allocation);
  /// What there is to forget, in pieces of some KiB.
  [[nodiscard]] size_t chunks() const { return bytes_.chunks() + tiles_.load(std::memory_order_relaxed) / 256; }
  void prefetch(uint64_t address) const {
    const size_t n = allocation_of(address);
    if (n < grids_.size() && grids_[n]->state.load(std::memory_order_relaxed) == State::Bytes) bytes_.prefetch(address);
  }
  /// True while one cell stands for a tile of this address's allocation.
  [[nodiscard]] bool tiled(uint64_t address) const {
    const size_t n = allocation_of(address);
    return n < grids_.size() && grids_[n]->state.load(std::memory_order_acquire) == State::Tiles;
  }

  /// Replaces the cell of every byte of the access by next(cell, address of such a byte), as Shadow::update().
  template <class F>
  void update(const MemoryAccess& a, F&& next) {
    const size_t n = allocation_of(a.address);
    if (n >= grids_.size()) return;
    Grid& g = *grids_[n];
    if (g.state.load(std::memory_order_acquire) != State::Bytes) {
      Place place;
      if (find(g, a, place) && replace(g, place, a.address, next)) return;
      give_up(g);
    }
    Shadow::Pass pass;
    for_each_run(a, [&](uint64_t address, uint64_t bytes) { bytes_.update(address, bytes, next, pass); });
  }
  template <class F>
  void update(const MemoryRuns& all, F&& next) {
    const size_t n = allocation_of(all.begin);
    if (n >= grids_.size()) return;
    Grid& g = *grids_[n];
    size_t done = 0;
    if (g.state.load(std::memory_order_acquire) != State::Bytes) {
      for (; done < all.runs.size(); ++done) {
        const MemoryRuns::Run& r = all.runs[done];
        const int64_t count = r.n, one = 1;
        const MemoryAccess a{all.kind, r.address, all.element_bytes, 1, &count, &one, r.first, &one};
        Place place;
        if (!find(g, a, place) || !replace(g, place, a.address, next)) break;
      }
      if (done == all.runs.size()) return;
      give_up(g);
    }
    Shadow::Pass pass;
    for (; done < all.runs.size(); ++done) bytes_.update(all.runs[done].address, uint64_t{all.runs[done].n} * all.element_bytes, next, pass);
  }

 private:
  enum class State : uint8_t { Untouched, Tiles, Bytes };
  static constexpr size_t kLocks = 16;
  using Extents = std::array<uint32_t, AccessBox::kMostDims>;
  struct Tile {
    ShadowCell cell;
    uint32_t touched = 0;
    Extents shape{};  // less than the grid's at the edges of an array
  };
  struct Place {
    size_t tile = 0;
    Extents shape{};
  };
  /// Tiles of `shape` elements with these strides, one of which begins at the digits `phase`: an offset in elements is a number whose digits
  /// count strides, and a tile takes an interval of each digit.
  struct Grid {
    std::atomic<State> state{State::Untouched};
    uint64_t base = 0, size = 0;  // of the allocation
    AccessBox box;
    uint64_t before = 0;          // elements added to an offset, so that the first box has no digit but the largest
    std::array<uint64_t, AccessBox::kMostDims> phase{}, count{};
    unsigned row_shift = 64;      // rank 1: a tile has 2^row_shift bytes; 64: another number, or another rank
    uint64_t row_phase = 0;       // rank 1: bytes to be added to an offset
    std::vector<Tile> tiles;
    std::array<std::mutex, kLocks> locks;
  };
  /// The tile that an access is, making the first one of an allocation a tile; false if it is none.
  [[nodiscard]] bool find(Grid& g, const MemoryAccess& a, Place& place) {
    if (a.rank == 1 && a.strides[0] == 1 && g.state.load(std::memory_order_acquire) == State::Tiles && g.row_shift < 64 && a.element_bytes == g.box.element_bytes) {
      const uint64_t from = a.address - g.base + g.row_phase;
      place.tile = static_cast<size_t>(from >> g.row_shift);
      place.shape[0] = static_cast<uint32_t>(a.shape[0]);
      return place.tile << g.row_shift == from && a.shape[0] <= g.box.shape[0] && place.tile < g.count[0];
    }
    return find_box(g, a, place);
  }
  [[nodiscard]] bool find_box(Grid& g, const MemoryAccess& a, Place& place);
  template <class F>
  [[nodiscard]] bool replace(Grid& g, const Place& place, uint64_t address, F& next) {
    std::unique_lock<std::mutex> lock;
    if (shared_) lock = std::unique_lock(g.locks[place.tile % kLocks]);
    if (g.state.load(std::memory_order_relaxed) != State::Tiles) return false;
    Tile& t = g.tiles[place.tile];
    if (t.touched == 0) {
      t.touched = 1;
      t.shape = place.shape;
    } else if (t.shape[0] != place.shape[0] || t.shape[1] != place.shape[1] || t.shape[2] != place.shape[2]) {
      return false;
    }
    t.cell = next(t.cell, address);
    return true;
  }
  /// Makes the first box of an allocation one of its tiles; false if it is none.
  [[nodiscard]] bool start(Grid& g, const AccessBox& box);
  /// The digits of a box's first element; false if an element of it has digits beyond those of the first plus its index.
  [[nodiscard]] static bool digits(const Grid& g, const AccessBox& box, uint64_t before, std::array<uint64_t, AccessBox::kMostDims>& out);
  /// One cell for each byte from now on.
  void give_up(Grid& g);

  Shadow bytes_;
  std::vector<std::unique_ptr<Grid>> grids_;  // by allocation
  std::atomic<size_t> tiles_{0};
  bool shared_ = false;
};

}  // namespace tile
