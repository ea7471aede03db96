// Loops of products fed by cp.async: all threads copy 16 bytes at a time into a ring of stages in shared memory, ahead of the products by
// mma.sync.
//
// Stage n % stages holds trip n. In a trip the threads first start the copies of a later trip into the stage that the trip before has read,
// and at its last step of K wait for the next trip's stage: its one barrier says both that this stage is there for all warps and that all
// warps have read the one at hand. The fragments of a step are read while the step before is multiplied, across trips as well.
#include <algorithm>
#include <map>

#include "backend/ptx/lower_fragments.h"
#include "backend/ptx/lower_ring.h"

namespace tile {
namespace {

constexpr unsigned kPiece = 16;  // bytes of one copy

/// Copies of one operand into a stage: piece number p lies in row p / pieces of a row, threads first.
class StageCopy {
 public:
  StageCopy(Lowering& x, const RingPlan& r, const RingPlan::Operand& o)
      : x_(x), b_(x.b), o_(o), view_(x.f.operand(o.load, 0)), type_(x.m.types.get(x.f.type(view_))),
        element_bytes_(r.element_bytes), row_pieces_(o.row_bytes * o.panels / kPiece), threads_(x.plan.threads()) {
    const uint32_t all = o.bytes() / kPiece;
    count_ = std::max(1u, all / threads_);
    if (all < threads_) some_ = b_.CreateICmpULT(x.thread(), x.i32(all));
    place_ = place(x.thread());
  }

  /// Copies of each thread.
  [[nodiscard]] unsigned count() const { return count_; }

  /// Looks at the trip that the loop's variable says: where its tile begins and how much of it lies inside the array. `stage` is to be filled.
  void aim(Value* stage) {
    stage_ = b_.CreateAdd(stage, x_.i32(o_.offset));
    const Lowering::View& v = x_.view(view_);
    const auto index = x_.f.group(o_.load, 1);
    llvm::Type* i64 = b_.getInt64Ty();
    Value *base = v.base, *alignment = v.base, *inside = b_.getTrue();
    Value* left[2] = {nullptr, nullptr};
    for (size_t k = 0; k < type_.shape.size(); ++k) {
      const auto d = static_cast<size_t>(type_.dim_map[k]);
      const bool inner = static_cast<int>(k) == o_.inner, outer = static_cast<int>(k) == o_.outer;
      Value* n = b_.CreateZExtOrTrunc(x_.scalar(index[k]), i64);
      // Beyond 2^40 tiles every array has ended; the product then stays within 64 bits.
      n = b_.CreateSelect(b_.CreateICmpULT(n, x_.i64(int64_t{1} << 40)), n, x_.i64(int64_t{1} << 40));
      Value* start = b_.CreateMul(n, x_.i64(type_.shape[k]));
      Value* begun = b_.CreateICmpULT(start, v.shape[d]);
      inside = b_.CreateAnd(inside, begun);
      Value* stride = b_.CreateMul(v.strides[d], x_.i64(element_bytes_));
      base = b_.CreateAdd(base, b_.CreateMul(start, stride));
      if (!inner) alignment = b_.CreateOr(alignment, stride);
      if (outer) stride_ = stride;
      if (!inner && !outer) continue;
      Value* rest = b_.CreateSub(v.shape[d], start);
      rest = b_.CreateSelect(b_.CreateICmpULT(rest, x_.i64(type_.shape[k])), rest, x_.i64(type_.shape[k]));
      left[inner ? 0 : 1] = b_.CreateTrunc(rest, b_.getInt32Ty());
    }
    // A tile that begins outside has no rows.
    rows_ = b_.CreateSelect(inside, left[1], x_.i32(0));
    bytes_ = b_.CreateMul(left[0], x_.i32(element_bytes_));
    base_ = base;
    aligned_ = b_.CreateICmpEQ(b_.CreateAnd(alignment, x_.i64(kPiece - 1)), x_.i64(0));
  }

  /// Where the array's address and strides let cp.async take 16 bytes; equal in all threads.
  [[nodiscard]] Value* aligned() const { return aligned_; }

  /// Starts the copies first .. last - 1 of this thread where `when` is true.
  void start(unsigned first, unsigned last, Value* when) {
    if (some_) when = b_.CreateAnd(when, some_);
    if (first == 0) {
      // Computed anew in each trip: kept all through the loop, the masks and addresses of all copies would fill the registers.
      Value* thread = x_.d.opaque(x_.thread());
      row_ = b_.CreateUDiv(thread, x_.i32(row_pieces_));
      byte_ = b_.CreateMul(b_.CreateURem(thread, x_.i32(row_pieces_)), x_.i32(kPiece));
      Value* offset = b_.CreateAdd(b_.CreateMul(b_.CreateZExt(row_, b_.getInt64Ty()), stride_), b_.CreateZExt(byte_, b_.getInt64Ty()));
      address_ = b_.CreateAdd(base_, offset);
      sizes_.clear();
    }
    for (unsigned j = first; j < last; ++j) {
      // The number's parts have different bits, and so have rows, bytes and places made of them.
      const uint32_t number = j * threads_, row = number / row_pieces_, byte = number % row_pieces_ * kPiece;
      Value*& size = sizes_[byte];
      if (!size) {
        Value* rest = b_.CreateSub(bytes_, b_.CreateAdd(byte_, x_.i32(byte)));
        rest = b_.CreateSelect(b_.CreateICmpSLT(rest, x_.i32(0)), x_.i32(0), rest);
        size = b_.CreateSelect(b_.CreateICmpSLT(rest, x_.i32(kPiece)), rest, x_.i32(kPiece));
      }
      Value* mine = b_.CreateSelect(b_.CreateICmpULT(b_.CreateAdd(row_, x_.i32(row)), rows_), size, x_.i32(0));
      Value* from = b_.CreateAdd(address_, b_.CreateAdd(b_.CreateMul(stride_, x_.i64(row)), x_.i64(byte)));
      x_.d.cp_async(target(place_, number), from, kPiece, mine, when);
    }
  }

  /// The same copies for any alignment, element by element, done on return.
  void copy_elements() {
    llvm::Type* word = b_.getIntNTy(8 * element_bytes_);
    const auto body = [&](Value* j) {
      Value* number = b_.CreateAdd(b_.CreateMul(j, x_.i32(threads_)), x_.thread());
      Value *row = b_.CreateUDiv(number, x_.i32(row_pieces_)), *byte = b_.CreateMul(b_.CreateURem(number, x_.i32(row_pieces_)), x_.i32(kPiece));
      Value* from = b_.CreateAdd(base_, b_.CreateAdd(b_.CreateMul(b_.CreateZExt(row, b_.getInt64Ty()), stride_), b_.CreateZExt(byte, b_.getInt64Ty())));
      Value* in_row = b_.CreateICmpULT(row, rows_);
      Values words(kPiece / 4, x_.i32(0));
      for (unsigned at = 0; at < kPiece; at += element_bytes_) {
        Value* in = b_.CreateAnd(in_row, b_.CreateICmpULT(b_.CreateAdd(byte, x_.i32(at)), bytes_));
        Value* v = x_.d.load_global(word, 1, b_.CreateAdd(from, x_.i64(at)), MemOrder::Weak, MemScope::Device, in)[0];
        words[at / 4] = b_.CreateOr(words[at / 4], b_.CreateShl(b_.CreateZExt(v, b_.getInt32Ty()), 8 * (at % 4)));
      }
      x_.d.store_shared(words, b_.CreateAdd(stage_, place(number)));
    };
    const auto all = [&] { x_.loop(count_, body); };
    some_ ? x_.if_then(some_, all) : all();
  }

 private:
  /// Offset of a piece from the operand's part of the stage: panels of rows, whose address bits 4.. are exchanged with bits 7...
  Value* place(Value* number) {
    const uint32_t in_panel = o_.row_bytes / kPiece;
    Value *row = b_.CreateUDiv(number, x_.i32(row_pieces_)), *column = b_.CreateURem(number, x_.i32(row_pieces_));
    Value* at = b_.CreateMul(b_.CreateUDiv(column, x_.i32(in_panel)), x_.i32(o_.panel_bytes()));
    at = b_.CreateAdd(at, b_.CreateMul(row, x_.i32(o_.row_bytes)));
    at = b_.CreateAdd(at, b_.CreateMul(b_.CreateURem(column, x_.i32(in_panel)), x_.i32(kPiece)));
    return b_.CreateXor(at, b_.CreateShl(b_.CreateAnd(b_.CreateLShr(at, x_.i32(7)), x_.i32((1u << o_.swizzle()) - 1)), x_.i32(4)));
  }
  /// Address of the piece with the thread's number and `number`, which have different bits: only bits 4 to 6 of their places meet.
  Value* target(Value* thread_place, uint32_t number) {
    const uint32_t row = number / row_pieces_, column = number % row_pieces_, in_panel = o_.row_bytes / kPiece;
    uint32_t at = column / in_panel * o_.panel_bytes() + row * o_.row_bytes + column % in_panel * kPiece;
    at ^= (at >> 7 & ((1u << o_.swizzle()) - 1)) << 4;
    const uint32_t meeting = at & 0x70;
    Value* thread = meeting != 0 ? b_.CreateXor(thread_place, x_.i32(meeting)) : thread_place;
    return b_.CreateAdd(b_.CreateAdd(stage_, thread), x_.i32(at - meeting));
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const RingPlan::Operand& o_;
  const ValueId view_;
  const Type& type_;
  const unsigned element_bytes_, row_pieces_, threads_;
  unsigned count_ = 1;
  Value* some_ = nullptr;                                       // the threads that copy; nullptr: all
  Value* place_ = nullptr;
  // Of the trip at hand.
  Value *stage_ = nullptr, *base_ = nullptr, *stride_ = nullptr, *rows_ = nullptr, *bytes_ = nullptr, *aligned_ = nullptr;
  Value *row_ = nullptr, *byte_ = nullptr, *address_ = nullptr;
  std::map<uint32_t, Value*> sizes_;
};

/// The whole loop.
class CopyRing {
 public:
  CopyRing(Lowering& x, InstId i, const RingPlan& r)
      : x_(x), b_(x.b), i_(i), r_(r), trips_(loop_trips(x, i)), fragments_(x, r), a_(x, r, r.a), bb_(x, r, r.b),
        first_(b_.CreateAdd(x.shared_base(), x.i32(RingPlan::kFirstStage))), end_(b_.CreateAdd(first_, x.i32(r.stages * r.stage_bytes))) {
    for (Value* v : x.get(x.f.operands(i)[3 + r.carried], x.plan.mma.at(r.mma).result)) {
      acc_.push_back(x.var(v->getType()));
      x.store(acc_.back(), v);
    }
  }

  void run() {
    x_.if_then(b_.CreateICmpNE(trips_.count, x_.i32(0)), [&] { multiply(); });
  }

  /// Sets the loop's result. False after an error.
  bool finish() {
    const Layout& l = x_.plan.mma.at(r_.mma).result;
    Values out;
    for (const auto& v : acc_) out.push_back(x_.load(v));
    const ValueId result = x_.f.result(i_, r_.carried);
    x_.set(result, x_.convert(out, x_.element(result), l, x_.layout(result), element_bits(x_.shape(result))));
    return ok_;
  }

 private:
  /// Makes ready to fill `stage` for a trip, which may lie beyond the last: then nothing is copied. True where there is something to copy by
  /// cp.async; what it cannot take is copied at once.
  Value* aim(Value* trip, Value* stage) {
    Value* there = b_.CreateICmpULT(trip, trips_.count);
    Value* known = b_.CreateSelect(there, trip, b_.CreateSub(trips_.count, x_.i32(1)));
    llvm::Type* type = trips_.lower->getType();
    x_.set(x_.f.region(i_).first_arg, {b_.CreateAdd(trips_.lower, b_.CreateMul(b_.CreateZExtOrTrunc(known, type), trips_.step))});
    for (const InstId k : r_.index_slice) ok_ = ok_ && x_.one(k);
    for (StageCopy* c : {&a_, &bb_}) c->aim(stage);
    Value* aligned = b_.CreateAnd(a_.aligned(), bb_.aligned());
    x_.d.site = r_.a.load;
    x_.if_then(b_.CreateAnd(there, b_.CreateNot(aligned)), [&] {
      for (StageCopy* c : {&a_, &bb_}) c->copy_elements();
    });
    return b_.CreateAnd(there, aligned);
  }

  /// Starts the share of step `k` of all `steps` of a trip's copies.
  void start(unsigned k, unsigned steps, Value* when) {
    const unsigned all = a_.count() + bb_.count(), from = k * all / steps, to = (k + 1) * all / steps;
    x_.d.site = r_.a.load;
    if (from < a_.count()) a_.start(from, std::min(to, a_.count()), when);
    x_.d.site = r_.b.load;
    if (to > a_.count()) bb_.start(std::max(from, a_.count()) - a_.count(), to - a_.count(), when);
  }

  Value* following(Value* stage) {
    Value* next = b_.CreateAdd(stage, x_.i32(r_.stage_bytes));
    return b_.CreateSelect(b_.CreateICmpEQ(next, end_), first_, next);
  }

  void keep(const StageFragments::Step& s) {
    Values words;
    for (const auto* list : {&s.a, &s.b})
      for (const Values& v : *list) words.insert(words.end(), v.begin(), v.end());
    for (Value* w : words)
      if (kept_.size() < words.size()) kept_.push_back(x_.var(w->getType()));
    for (size_t k = 0; k < words.size(); ++k) x_.store(kept_[k], words[k]);
  }
  StageFragments::Step kept(StageFragments::Step like) {
    size_t at = 0;
    for (auto* list : {&like.a, &like.b})
      for (Values& v : *list)
        for (Value*& w : v) w = x_.load(kept_[at++]);
    return like;
  }

  void multiply() {
    llvm::Type* i32 = b_.getInt32Ty();
    const bool ahead = !fragments_.gathers();  // fragments that are gathered are too many to be read early
    x_.loop(r_.stages - 1, [&](Value* trip) {
      Value* when = aim(trip, b_.CreateAdd(first_, b_.CreateMul(trip, x_.i32(r_.stage_bytes))));
      start(0, 1, when);
      x_.d.cp_async_commit();
    });
    const Lowering::Var trip_var = x_.var(i32), read_var = x_.var(i32), fill_var = x_.var(i32);
    x_.store(trip_var, x_.i32(0));
    x_.store(read_var, first_);
    x_.store(fill_var, b_.CreateSub(end_, x_.i32(r_.stage_bytes)));
    x_.d.cp_async_wait(r_.stages - 2);
    x_.d.barrier();
    x_.d.site = r_.mma;
    StageFragments::Step shape;
    if (ahead) keep(shape = fragments_.load(first_, 0));
    llvm::BasicBlock *top = x_.block("ring"), *done = x_.block("drained");
    b_.CreateBr(top);
    b_.SetInsertPoint(top);
    Value *trip = x_.load(trip_var), *from = x_.load(read_var), *fill = x_.load(fill_var);
    Value* next_trip = b_.CreateAdd(trip, x_.i32(1));
    Value* more = b_.CreateICmpULT(next_trip, trips_.count);
    Value* when = aim(b_.CreateAdd(trip, x_.i32(r_.stages - 1)), fill);
    // Beyond the last trip the fragments at hand are read once more, and dropped.
    Value* next = b_.CreateSelect(more, following(from), from);
    const unsigned steps = fragments_.steps();
    if (ahead) {
      Values acc;
      for (const auto& v : acc_) acc.push_back(x_.load(v));
      StageFragments::Step now = kept(shape);
      for (unsigned k = 0; k < steps; ++k) {
        start(k, steps, when);
        if (k + 1 == steps) turn();
        x_.d.site = r_.mma;
        StageFragments::Step then = k + 1 < steps ? fragments_.load(from, k + 1) : fragments_.load(next, 0);
        fragments_.multiply(now, acc);
        now = std::move(then);
      }
      keep(now);
      for (size_t k = 0; k < acc.size(); ++k) x_.store(acc_[k], acc[k]);
    } else {
      start(0, 1, when);
      x_.d.site = r_.mma;
      fragments_.stage(from, acc_);
      turn();
    }
    x_.store(trip_var, next_trip);
    x_.store(read_var, next);
    x_.store(fill_var, following(fill));
    b_.CreateCondBr(more, top, done);
    b_.SetInsertPoint(done);
    x_.d.cp_async_wait(0);
  }

  /// The end of a trip's reads: the next trip's stage is complete for all threads.
  void turn() {
    x_.d.cp_async_commit();
    x_.d.cp_async_wait(r_.stages - 2);
    x_.d.barrier();
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const InstId i_;
  const RingPlan& r_;
  const Trips trips_;
  StageFragments fragments_;
  StageCopy a_, bb_;
  Value *first_, *end_;
  std::vector<Lowering::Var> acc_, kept_;
  bool ok_ = true;
};

}  // namespace

bool lower_copy_ring(Lowering& x, InstId i, const RingPlan& r) {
  CopyRing ring(x, i, r);
  // What the block wrote before may be what the copies read, and the stages lie where it has scratch space.
  if (x.pending_.writes || x.pending_.shared) x.barrier();
  ring.run();
  x.pending_.reads = true;
  x.pending_.shared = true;  // other warps may still read the stages
  return ring.finish();
}

}  // namespace tile
