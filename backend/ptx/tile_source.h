// Where the tiles of an operand lie that cp.async copies into a ring, trip by trip (lower_copy_ring.cpp): through a view, rows that a gather
// chose, or pointers.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>

#include "backend/ptx/lower_memory.h"
#include "backend/ptx/lower_ring.h"

namespace tile {

inline constexpr unsigned kPiece = 16;  // bytes of one copy; where memory is aligned less, 8 or 4

/// Where the elements of an operand's tile lie in memory, and which of them there are. A row has consecutive elements.
class TileSource {
 public:
  TileSource(Lowering& x, const RingPlan& r, const RingPlan::Operand& o) : x_(x), b_(x.b), o_(o), bytes_per_element_(r.element_bytes) {}

  /// The numbers of gathered rows go to a table in shared memory; before the loop.
  void prepare() {
    if (o_.chosen == kNone) return;
    const Layout& l = x_.layout(o_.chosen);
    Value* mine = x_.owner(l);
    Value* first = x_.thread_element(l);
    const Values& rows = x_.own(o_.chosen);
    for (unsigned k = 0; k < rows.size(); ++k) {
      Value* at = b_.CreateShl(b_.CreateOr(first, x_.i32(l.element_of_register(k))), x_.i32(2));
      x_.d.store_shared({&rows[k], 1}, b_.CreateAdd(table(), at), mine);
    }
  }

  /// Looks at the trip that the loop's variable says: where its tile begins and how much of it lies inside the array.
  void aim(Value* trip) { o_.pointers ? aim_pointers(trip) : aim_view(); }

  /// Whether rows and what lies in them begin at multiples of `bytes`; equal in all threads.
  [[nodiscard]] Value* aligned(unsigned bytes) const { return b_.CreateICmpEQ(b_.CreateAnd(alignment_, x_.i64(bytes - 1)), x_.i64(0)); }

  /// Whether all of the tile lies inside the array; equal in all threads.
  [[nodiscard]] Value* whole() const { return b_.CreateAnd(b_.CreateICmpUGE(rows_, x_.i32(o_.rows)), b_.CreateICmpUGE(bytes_, x_.i32(o_.row_bytes * o_.panels))); }

  /// Whether the 16 bytes, between multiples of 16, in which the last of `bytes` bytes from `first` on lies end before the array does. Of views.
  [[nodiscard]] Value* before_end(Value* first, Value* bytes) const {
    Value* last = b_.CreateAdd(first, b_.CreateSub(b_.CreateZExt(bytes, b_.getInt64Ty()), x_.i64(1)));
    return b_.CreateICmpULT(b_.CreateOr(last, x_.i64(kPiece - 1)), end_);
  }
  /// The same for the whole tile; equal in all threads.
  [[nodiscard]] Value* tile_before_end() const {
    if (o_.chosen != kNone) return b_.getFalse();
    Value* rows = b_.CreateSelect(b_.CreateICmpEQ(rows_, x_.i32(0)), x_.i32(0), b_.CreateSub(rows_, x_.i32(1)));
    return before_end(b_.CreateAdd(base_, b_.CreateMul(b_.CreateZExt(rows, b_.getInt64Ty()), stride_)), bytes_);
  }

  /// A row, i32, of which the part `known` is the number of a register: others add it to what is computed once.
  struct Row {
    Value* address;  ///< i64
    Value* there;    ///< i1
  };
  /// A place that goes from row to row: less to compute than for each row anew, and less to hold than what is computed once.
  struct Cursor {
    Value* address;   ///< of a view's rows
    Values moves;     ///< of pointers
  };
  [[nodiscard]] Cursor begin(Value* row) const {
    if (!o_.pointers) return {x_.d.opaque(b_.CreateAdd(base_, b_.CreateMul(b_.CreateZExt(row, b_.getInt64Ty()), stride_))), {}};
    Cursor c{base_, {}};
    for (const auto& [start, step] : moves_) c.moves.push_back(x_.d.opaque(b_.CreateAdd(start, b_.CreateMul(b_.CreateZExtOrTrunc(row, step->getType()), step))));
    return c;
  }
  void advance(Cursor& c, uint32_t rows) const {
    if (!o_.pointers) c.address = x_.d.opaque(b_.CreateAdd(c.address, b_.CreateMul(stride_, x_.i64(rows))));
    for (size_t k = 0; k < c.moves.size(); ++k) {
      Value* step = moves_[k].second;
      c.moves[k] = x_.d.opaque(b_.CreateAdd(c.moves[k], b_.CreateMul(step, llvm::ConstantInt::get(step->getType(), rows))));
    }
  }
  [[nodiscard]] Value* address(const Cursor& c) const {
    Value* at = c.address;
    for (Value* move : c.moves) at = b_.CreateAdd(at, b_.CreateMul(b_.CreateSExt(move, b_.getInt64Ty()), x_.i64(bytes_per_element_)));
    return at;
  }
  /// Whether there is a row.
  [[nodiscard]] Value* there(Value* row) const { return b_.CreateICmpULT(row, rows_); }

  [[nodiscard]] Value* bytes(const Row& row) const { return b_.CreateSelect(row.there, bytes_, x_.i32(0)); }
  /// How much of a piece of `piece` bytes at `byte` there is in the rows that there are.
  [[nodiscard]] Value* size(Value* byte, unsigned piece) const {
    Value* rest = b_.CreateSub(bytes_, byte);
    rest = b_.CreateSelect(b_.CreateICmpSLT(rest, x_.i32(0)), x_.i32(0), rest);
    return b_.CreateSelect(b_.CreateICmpSLT(rest, x_.i32(piece)), rest, x_.i32(piece));
  }
  [[nodiscard]] Row row(Value* thread, uint32_t known) const {
    Value* n = known ? b_.CreateAdd(thread, x_.i32(known)) : thread;
    Value* there = b_.CreateICmpULT(n, rows_);
    Value* address = base_;
    if (o_.chosen != kNone) {
      Value* chosen = b_.CreateZExt(x_.d.load_shared(b_.getInt32Ty(), 1, b_.CreateAdd(table(), b_.CreateShl(n, x_.i32(2))))[0], b_.getInt64Ty());
      there = b_.CreateICmpULT(chosen, extent_);
      address = b_.CreateAdd(address, b_.CreateMul(chosen, stride_));
    } else if (!o_.pointers) {
      address = b_.CreateAdd(b_.CreateAdd(address, b_.CreateMul(b_.CreateZExt(thread, b_.getInt64Ty()), stride_)), b_.CreateMul(stride_, x_.i64(known)));
    } else {
      for (const auto& [start, step] : moves_) {
        Value* move = b_.CreateAdd(start, b_.CreateMul(b_.CreateZExtOrTrunc(n, step->getType()), step));
        address = b_.CreateAdd(address, b_.CreateMul(b_.CreateSExt(move, b_.getInt64Ty()), x_.i64(bytes_per_element_)));
      }
    }
    return {address, there};
  }

 private:
  [[nodiscard]] Value* table() const { return b_.CreateAdd(x_.shared_base(), x_.i32(o_.table)); }

  void aim_view() {
    const ValueId view = x_.f.operand(o_.load, 0);
    const Type& type = x_.m.types.get(x_.f.type(view));
    const bool gathers = o_.chosen != kNone;
    const Lowering::View& v = x_.view(view);
    const auto index = x_.f.group(o_.load, 1);
    llvm::Type* i64 = b_.getInt64Ty();
    Value *base = v.base, *alignment = v.base, *inside = b_.getTrue();
    end_ = b_.CreateAdd(v.base, x_.i64(bytes_per_element_));
    for (size_t d = 0; d < v.shape.size(); ++d)
      end_ = b_.CreateAdd(end_, b_.CreateMul(b_.CreateMul(b_.CreateSub(v.shape[d], x_.i64(1)), v.strides[d]), x_.i64(bytes_per_element_)));
    Value* left[2] = {nullptr, nullptr};
    for (size_t k = 0; k < type.shape.size(); ++k) {
      const auto d = gathers ? k : static_cast<size_t>(type.dim_map[k]);
      const bool inner = static_cast<int>(k) == o_.inner, outer = static_cast<int>(k) == o_.outer;
      Value* stride = b_.CreateMul(v.strides[d], x_.i64(bytes_per_element_));
      if (!inner) alignment = b_.CreateOr(alignment, stride);
      if (outer) stride_ = stride;
      if (outer && gathers) {
        extent_ = v.shape[d];
        left[1] = x_.i32(o_.rows);
        continue;
      }
      Value* n = b_.CreateZExtOrTrunc(x_.scalar(index[k]), i64);
      // Beyond 2^40 tiles every array has ended; the product then stays within 64 bits.
      n = b_.CreateSelect(b_.CreateICmpULT(n, x_.i64(int64_t{1} << 40)), n, x_.i64(int64_t{1} << 40));
      Value* start = b_.CreateMul(n, x_.i64(gathers ? 1 : type.shape[k]));
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(start, v.shape[d]));
      base = b_.CreateAdd(base, b_.CreateMul(start, stride));
      if (inner && gathers) alignment = b_.CreateOr(alignment, b_.CreateMul(start, stride));  // counts elements
      if (!inner && !outer) continue;
      Value* rest = b_.CreateSub(v.shape[d], start);
      rest = b_.CreateSelect(b_.CreateICmpULT(rest, x_.i64(type.shape[k])), rest, x_.i64(type.shape[k]));
      left[inner ? 0 : 1] = b_.CreateTrunc(rest, b_.getInt32Ty());
    }
    // A tile that begins outside has no elements.
    rows_ = left[1];
    bytes_ = b_.CreateSelect(inside, b_.CreateMul(left[0], x_.i32(bytes_per_element_)), x_.i32(0));
    base_ = base;
    alignment_ = alignment;
  }

  void aim_pointers(Value* trip) {
    const PointerLoad& load = *o_.pointers;
    const auto shape = x_.shape(x_.f.result(o_.load));
    const auto number = [&](int n, unsigned bits) { return scalar_value(x_, load.scalars, n, bits); };
    const auto moved = [&](Value* by) { return b_.CreateMul(b_.CreateSExt(by, b_.getInt64Ty()), x_.i64(bytes_per_element_)); };
    base_ = x_.scalar(load.pointers.base);
    for (const AffineTile& t : load.pointers.trips) base_ = b_.CreateAdd(base_, b_.CreateMul(moved(number(t.start, t.bits)), b_.CreateZExt(trip, b_.getInt64Ty())));
    moves_.clear();
    for (const AffineTile& t : load.pointers.moves)
      if (t.splat()) base_ = b_.CreateAdd(base_, moved(number(t.start, t.bits)));
    alignment_ = base_;
    for (const AffineTile& t : load.pointers.moves) {
      if (t.splat()) continue;
      Value *start = number(t.start, t.bits), *step = number(t.step[static_cast<size_t>(o_.outer)], t.bits);
      moves_.emplace_back(start, step);
      alignment_ = b_.CreateOr(alignment_, b_.CreateOr(moved(start), moved(step)));
    }
    // Masks count from the first element of the tile.
    Value* left[2] = {x_.i64(shape[static_cast<size_t>(o_.inner)]), x_.i64(shape[static_cast<size_t>(o_.outer)])};
    Value* none = b_.getFalse();
    for (const AffineLimit& l : load.limits) {
      const auto wide = [&](int n) { return b_.CreateSExt(number(n, l.bits), b_.getInt64Ty()); };
      Value* rest = b_.CreateSub(wide(l.limit), wide(l.start));
      rest = b_.CreateSelect(b_.CreateICmpSLT(rest, x_.i64(0)), x_.i64(0), rest);
      const int dim = static_cast<int>(l.dim);
      if (dim != o_.inner && dim != o_.outer) {
        none = b_.CreateOr(none, b_.CreateICmpEQ(rest, x_.i64(0)));
        continue;
      }
      Value*& least = left[dim == o_.outer];
      least = b_.CreateSelect(b_.CreateICmpSLT(rest, least), rest, least);
    }
    rows_ = b_.CreateTrunc(left[1], b_.getInt32Ty());
    bytes_ = b_.CreateSelect(none, x_.i32(0), b_.CreateMul(b_.CreateTrunc(left[0], b_.getInt32Ty()), x_.i32(bytes_per_element_)));
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const RingPlan::Operand& o_;
  const unsigned bytes_per_element_;
  // Of the trip at hand.
  Value *base_ = nullptr, *stride_ = nullptr, *extent_ = nullptr, *rows_ = nullptr, *bytes_ = nullptr, *alignment_ = nullptr, *end_ = nullptr;
  std::vector<std::pair<Value*, Value*>> moves_;
};

}  // namespace tile
