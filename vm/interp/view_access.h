// One access of a tile through a view: which box of the array it touches, and moving that box.
#pragma once

#include <functional>
#include <vector>

#include "vm/interp/exec.h"
#include "vm/interp/fused.h"
#include "vm/interp/plan_builder.h"
#include "vm/interp/strided.h"

namespace tile {

struct ViewAccess : AccessData {
  TypeKind kind = TypeKind::PartitionView;
  ElementType element = ElementType::F32;
  size_t rank = 0;
  std::vector<int64_t> tile;           ///< extents of the tile, in tile order
  std::vector<int64_t> step;           ///< elements between neighbouring tiles, in tile order (gather/scatter: 1)
  std::vector<size_t> dim;             ///< tensor dimension of each tile dimension
  std::vector<int64_t> tile_strides;   ///< row-major
  size_t sparse = 0;                   ///< gather/scatter: tile dimension with the index tile
  bool padded = false;                 ///< the view has a padding value; else elements outside are unspecified
  uint64_t padding = 0;                ///< bits of the padding value
  struct Index {
    Slot slot;
    size_t size;
  };
  std::vector<Index> index;

  bool plan(PlanBuilder& b, InstId i, ValueId view, std::span<const ValueId> indices);
  /// in[0] the view, out[0] the tile.
  bool load(Exec& x, const Step& s) const;
  /// in[0] the view, in[1] the tile.
  bool store(Exec& x, const Step& s) const;
  bool in_place(Exec& x, const Step& s, MemoryAccess::Kind kind, MemoryRun& run) const override;
  /// Calls f(element number in the tile, host address) for every element inside the array; false after a trap.
  bool each(Exec& x, const Step& s, MemoryAccess::Kind kind, const std::function<void(size_t, std::byte*)>& f) const;

 private:
  struct Box {
    uint64_t start[kMaxRank];          // coordinates of the tile's first element, tensor order
    int64_t valid[kMaxRank];           // elements inside the array along each tile dimension
    bool empty = false;
  };
  void locate(const Exec& x, const uint64_t* view, Box& box) const;
  struct Span {
    std::byte* host = nullptr;         // of the box's first element; nullptr if the box is not inside one allocation, or misaligned
    uint64_t address = 0;
  };
  Span span_of(const Exec& x, const uint64_t* view, const Box& box) const;
  /// Gather/scatter: host address of the tile's row of index 0 if all rows of the array lie in one allocation; nullptr otherwise.
  std::byte* sparse_base(Exec& x, const uint64_t* view, const Box& box) const;
  /// Calls f(bytes from the tile's first element, bytes from the base) for every index inside the array, of those in [begin, end).
  template <class F>
  void sparse_rows(const Exec& x, const uint64_t* view, size_t begin, size_t end, const F& f) const;
  /// Moves the rows of a gather to `out` or those of a scatter from `in`; false if they have to go element by element.
  bool move_sparse(Exec& x, const Step& s, const uint64_t* view, const Box& box, std::byte* out, const std::byte* in) const;
  /// Host address of the box's first element if all of it lies in one allocation; nullptr otherwise.
  std::byte* whole(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind) const;
  bool tell_all(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind) const;
  bool elementwise(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind, const std::function<void(size_t, uint64_t, std::byte*, unsigned)>& f) const;
};

/// Bits of a padding value (an encoded padding_value, or kNone for the filling of unspecified elements) in tile storage.
[[nodiscard]] uint64_t padding_bits(ElementType e, uint32_t padding);

}  // namespace tile
