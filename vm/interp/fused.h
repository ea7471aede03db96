// Runs of steps that are executed together, a chunk of elements at a time, so that tiles between them stay in the first-level cache and
// arrays are read and written where they lie. Found when planning (plan_fuse.cpp), run by fused.cpp. A group gives the same bits and
// traps as its steps one by one; launches that are observed run the steps. A group that ends a block may be put off until some more blocks
// have computed their addresses: their memory is then walked without the pauses in which nothing is under way from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/interp/exec.h"

namespace tile {

class PlanBuilder;

/// A tile in memory: rows of neighbouring elements, in up to kMaxOuter dimensions around them, rows in ascending order and disjoint.
struct MemoryRun {
  static constexpr size_t kMaxOuter = 4;
  struct Dim {
    int64_t n, stride;               ///< rows, bytes between them
  };
  std::byte* host;                   ///< of the first element
  size_t span;                       ///< bytes from there to the end of the last element
  size_t length;                     ///< elements of a row
  size_t outer;                      ///< dimensions in use, outermost first
  Dim dims[kMaxOuter];

  /// Host address of element `first` of the tile.
  [[nodiscard]] std::byte* at(size_t first, size_t size) const {
    if (outer == 0) return host + first * size;
    std::byte* p = host + first % length * size;
    size_t row = first / length;
    for (size_t d = outer; d-- > 0; row /= static_cast<size_t>(dims[d].n)) p += static_cast<int64_t>(row % static_cast<size_t>(dims[d].n)) * dims[d].stride;
    return p;
  }
  [[nodiscard]] bool overlaps(const MemoryRun& o) const { return host < o.host + o.span && o.host < host + span; }
  [[nodiscard]] bool same_layout(const MemoryRun& o) const;
};

/// Data of a step that reads or writes a tile in memory.
struct AccessData : StepData {
  /// Finds the memory of the whole tile. False if that is not a MemoryRun inside one allocation, if elements are masked or outside the
  /// array, if reading changes bits, or if the memory is not aligned to its elements. Reports nothing.
  virtual bool in_place(Exec& x, const Step& s, MemoryAccess::Kind kind, MemoryRun& run) const = 0;
};

/// Data of a reduction of rows, [outer, len] into [outer], by a kernel of reduce_kernels.h.
struct FoldData : StepData {
  size_t outer = 1, len = 1;
  /// The reduction with `row` elements between the starts of rows.
  virtual void fold(Exec& x, std::byte* out, const std::byte* in, size_t row) const = 0;
  [[nodiscard]] virtual bool rows() const = 0;  ///< it is such a reduction
};

/// A tile that is repeated along dimensions. Dimensions of extent 1 are dropped and mergeable ones merged.
struct Spread {
  struct Dim {
    int64_t n, stride;               ///< extent, elements of the source between neighbours (0: repeated)
  };
  std::vector<Dim> dims;
  ElementwiseFn splat = nullptr;     ///< repeats a number
  /// Writes elements [first, first + count) of the result.
  void write(size_t size, std::byte* out, const std::byte* source, size_t first, size_t count) const;
};

struct FusedGroup : StepData {
  static constexpr size_t kMaxItems = 48, kMaxValues = 64;
  static constexpr size_t kMinElements = 256;  ///< of tiles worth a group, and of rows worth reading in place
  static constexpr size_t kLastValues = 16, kLastStores = 4, kLastElements = 1 << 14;  ///< of groups that may be put off
  static constexpr uint16_t kNone = 0xFFFF;

  enum class Role : uint8_t {
    Setup,    ///< a step that runs once, before all chunks
    Load,     ///< read in place, else a step that runs once
    Fold,     ///< a reduction of rows that runs once, before all chunks, and reads rows where they lie
    Kernel,   ///< elementwise, in chunks
    Uniform,  ///< a number repeated: filled once, the same for every chunk
    Rows,     ///< rows repeated: read in place
    Spread,   ///< any other broadcast, in chunks
    Store,    ///< written in place, else a step that runs after all chunks
  };
  struct Value {
    Slot slot = kNoSlot;
    size_t size = 1;               ///< bytes of an element
    size_t advance = 0;            ///< bytes between neighbours in the slot: size, or 0 where all elements are equal
    size_t buffer = ~size_t{0};    ///< offset in scratch where the value need not exist as a whole
    uint16_t last = 0;             ///< last item that reads the value chunk by chunk
    bool read = false;             ///< some item reads the value chunk by chunk; if none does, its slot may have another owner by then
    bool whole = false;            ///< read outside the group: has to exist in its slot
  };
  struct Item {
    Role role = Role::Setup;
    uint8_t inputs = 0;
    bool sole = false;             ///< store: the tile is made in the group and not used otherwise
    bool adjacent = false;         ///< store: nothing is computed between that and the store
    ElementwiseFn streamed = nullptr;  ///< kernel: the one that writes around the caches
    uint16_t maker = kNone;        ///< store: the item that makes the tile, if that could write it where it goes, around the caches
    uint32_t step = 0;
    uint16_t in[3] = {kNone, kNone, kNone}, out = kNone;  ///< values; a store has the tile in in[0]
    Spread spread;
  };
  std::vector<Value> values;
  std::vector<Item> items;
  size_t n = 0;                    ///< elements of the tiles
  size_t chunk = 0;                ///< most elements at a time
  uint32_t end = 0;                ///< step after the group
  bool last = false;               ///< the end of a block, small and simple: may wait until those of other blocks are ready
};

/// Runs what run_fused() has put off (Exec::put_off).
void run_put_off(Exec& x);

/// Finds the groups of a plan whose steps are all there.
void fuse_steps(PlanBuilder& b);

/// Runs a group; `x` must not be observed.
Flow run_fused(Exec& x, const FusedGroup& g);

}  // namespace tile
