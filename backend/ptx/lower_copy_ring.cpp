// Loops of products fed by cp.async: all threads copy pieces of 16 bytes into a ring of stages in shared memory, ahead of the products by
// mma.sync or wgmma.
//
// With mma.sync:
// Stage n % stages holds trip n. In a trip the threads first start the copies of a later trip into the stage that the trip before has read,
// and at its last step of K wait for the next trip's stage: its one barrier says both that this stage is there for all warps and that all
// warps have read the one at hand. The fragments of a step are read while the step before is multiplied, across trips as well.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "backend/ptx/lower_fragments.h"
#include "backend/ptx/lower_memory.h"
#include "backend/ptx/lower_ring.h"
#include "backend/ptx/tile_source.h"

namespace tile {
namespace {

/// The threads that copy: all that compute, or the producer's.
struct Team {
  Value* thread;      ///< number of the thread among them, i32
  unsigned threads;
  bool apart;         ///< the producer's: nothing else takes its registers
};

/// Copies of one operand into a stage, of `piece` bytes each: piece number p lies in row p / pieces of a row, threads first.
class StageCopy {
 public:
  StageCopy(Lowering& x, const Team& team, const RingPlan& r, const RingPlan::Operand& o, const TileSource& source, unsigned piece)
      : x_(x), b_(x.b), team_(team), o_(o), source_(source), piece_(piece), element_bytes_(r.element_bytes), row_pieces_(o.row_bytes * o.panels / piece), threads_(team.threads) {
    const uint32_t all = o.bytes() / piece;
    count_ = std::max(1u, all / threads_);
    if (all < threads_) some_ = b_.CreateICmpULT(team.thread, x.i32(all));
    place_ = place(team.thread);
  }

  /// Copies of each thread.
  [[nodiscard]] unsigned count() const { return count_; }

  /// Starts the copies first .. last - 1 of this thread into `stage` where `when` is true. `whole`: nothing lies outside the array.
  void start(Value* stage, unsigned first, unsigned last, Value* when, bool whole = false) {
    if (some_) when = when ? b_.CreateAnd(when, some_) : some_;
    if (first == 0) {
      // Computed anew in each trip: kept all through the loop, the masks and addresses of all copies would fill the registers of threads
      // that multiply, too.
      std::tie(row_, byte_) = split(team_.apart && whole ? team_.thread : x_.d.opaque(team_.thread));
      if (some_) row_ = b_.CreateAnd(row_, x_.i32(o_.rows - 1));  // the others look rows up, too: such as there are
      sizes_.clear();
    }
    Value* to = b_.CreateAdd(stage, x_.i32(o_.offset));
    if (team_.apart && o_.chosen == kNone && threads_ % row_pieces_ == 0) {
      TileSource::Cursor at = source_.begin(row_);
      for (unsigned j = first; j < last; ++j) {
        if (j > first) source_.advance(at, threads_ / row_pieces_);
        Value* there = whole ? nullptr : source_.there(b_.CreateAdd(row_, x_.i32(j * threads_ / row_pieces_)));
        x_.d.cp_async(target(to, j * threads_), b_.CreateAdd(source_.address(at), b_.CreateZExt(byte_, b_.getInt64Ty())), piece_,
                      whole ? nullptr : b_.CreateSelect(there, size(0), x_.i32(0)), when);
      }
      return;
    }
    for (unsigned j = first; j < last; ++j) {
      // The number's parts have different bits, and so have rows, bytes and places made of them.
      const uint32_t number = j * threads_, row = number / row_pieces_, byte = number % row_pieces_ * piece_;
      const TileSource::Row at = source_.row(row_, row);
      x_.d.cp_async(target(to, number), b_.CreateAdd(at.address, b_.CreateAdd(b_.CreateZExt(byte_, b_.getInt64Ty()), x_.i64(byte))), piece_,
                    whole ? nullptr : b_.CreateSelect(at.there, size(byte), x_.i32(0)), when);
    }
  }

  /// All copies of this thread, in a loop.
  void start_all(Value* stage) {
    in_turn(1, [&](Value* number) {
      const auto [row, byte] = split(number);
      const TileSource::Row at = source_.row(row, 0);
      x_.d.cp_async(b_.CreateAdd(b_.CreateAdd(stage, x_.i32(o_.offset)), place(number)), b_.CreateAdd(at.address, b_.CreateZExt(byte, b_.getInt64Ty())), piece_,
                    b_.CreateSelect(at.there, source_.size(byte, piece_), x_.i32(0)));
    });
  }

  /// The same for any alignment, done on return: each piece of 16 bytes is cut out of the two between multiples of 16 that it lies in. Several are
  /// under way at a time. Pieces whose last 16 bytes reach beyond the array are copied element by element.
  void copy_shifted(Value* stage) {
    x_.if_then(source_.whole(), [&] { shift_all(stage, false); }, [&] { shift_all(stage, true); });
    x_.if_then(b_.CreateNot(source_.tile_before_end()), [&] { copy_elements(stage, true); });
  }

  /// The same, element by element, done on return. `at_end`: only the pieces that copy_shifted() leaves out.
  void copy_elements(Value* stage, bool at_end = false) {
    llvm::Type* type = b_.getIntNTy(8 * element_bytes_);
    struct Made {
      Values words;
      Value *to, *wanted;
    };
    std::vector<Made> made;
    in_turn(
        at_end ? 1 : std::min(count_, kTogether * element_bytes_ / piece_),
        [&](Value* number) {
          const auto [row, byte] = split(number);
          const TileSource::Row at = source_.row(row, 0);
          Value* from = b_.CreateAdd(at.address, b_.CreateZExt(byte, b_.getInt64Ty()));
          Value *bytes = source_.bytes(at), *wanted = nullptr;
          if (at_end) {
            Value* n = b_.CreateSelect(at.there, source_.size(byte, piece_), x_.i32(0));
            wanted = b_.CreateAnd(b_.CreateICmpNE(n, x_.i32(0)), b_.CreateNot(source_.before_end(from, n)));
          }
          Values words;
          for (unsigned e = 0; e < piece_; e += element_bytes_) {
            Value* in = b_.CreateICmpULT(b_.CreateAdd(byte, x_.i32(e)), bytes);
            if (wanted) in = b_.CreateAnd(in, wanted);
            Value* v = b_.CreateZExt(x_.d.load_global(type, 1, b_.CreateAdd(from, x_.i64(e)), MemOrder::Weak, MemScope::Device, in)[0], b_.getInt32Ty());
            if (e % 4 == 0)
              words.push_back(v);
            else
              words.back() = b_.CreateOr(words.back(), b_.CreateShl(v, 8 * (e % 4)));
          }
          made.push_back({words, b_.CreateAdd(b_.CreateAdd(stage, x_.i32(o_.offset)), place(number)), wanted});
        },
        [&] {
          for (auto& [words, to, wanted] : made) x_.d.store_shared(words, to, wanted);
          made.clear();
        });
  }

 private:
  static constexpr unsigned kTogether = 16, kPieces = 4;  // loads under way, or pieces of two loads each

  /// What copy_shifted() makes of pieces that lie before the array's end; `cut`: parts of some lie outside of it.
  void shift_all(Value* stage, bool cut) {
    struct Made {
      Values low, high;
      Value *shift, *bytes, *to, *wanted;
    };
    std::vector<Made> made;
    llvm::Type* i32 = b_.getInt32Ty();
    in_turn(
        std::min(count_, kPieces),
        [&](Value* number) {
          const auto [row, byte] = split(number);
          const TileSource::Row at = source_.row(row, 0);
          Value* from = b_.CreateAdd(at.address, b_.CreateZExt(byte, b_.getInt64Ty()));
          Value* n = b_.CreateSelect(at.there, cut ? source_.size(byte, kPiece) : x_.i32(kPiece), x_.i32(0));
          Value* some = b_.CreateICmpNE(n, x_.i32(0));
          Value* here = b_.CreateAnd(some, source_.before_end(from, n));
          Value* shift = b_.CreateAnd(b_.CreateTrunc(from, i32), x_.i32(kPiece - 1));
          Value* first = b_.CreateAnd(from, x_.i64(-int64_t{kPiece}));
          Value* two = b_.CreateAnd(here, b_.CreateICmpUGT(b_.CreateAdd(shift, n), x_.i32(kPiece)));
          Made m{x_.d.load_global(i32, 4, first, MemOrder::Weak, MemScope::Device, here),
                 x_.d.load_global(i32, 4, b_.CreateAdd(first, x_.i64(kPiece)), MemOrder::Weak, MemScope::Device, two), shift, n,
                 b_.CreateAdd(b_.CreateAdd(stage, x_.i32(o_.offset)), place(number)), b_.CreateOr(here, b_.CreateNot(some))};
          made.push_back(std::move(m));
        },
        [&] {
          for (const Made& m : made) {
            Values w = m.low;
            w.insert(w.end(), m.high.begin(), m.high.end());
            for (const unsigned step : {2u, 1u}) {  // words
              Value* on = b_.CreateICmpNE(b_.CreateAnd(m.shift, x_.i32(4 * step)), x_.i32(0));
              for (size_t k = 0; k + step < w.size(); ++k) w[k] = b_.CreateSelect(on, w[k + step], w[k]);
              w.resize(w.size() - step);
            }
            Value* selector = b_.CreateAdd(x_.i32(0x3210), b_.CreateMul(b_.CreateAnd(m.shift, x_.i32(3)), x_.i32(0x1111)));
            for (size_t k = 0; k < 4; ++k) w[k] = x_.d.byte_permute(w[k], w[k + 1], selector);
            w.resize(4);
            for (unsigned k = 0; cut && k < 4; ++k) {
              Value* bits = b_.CreateShl(m.bytes, 3);
              Value* part = b_.CreateSub(b_.CreateShl(x_.i32(1), b_.CreateAnd(bits, x_.i32(31))), x_.i32(1));
              Value* mask = b_.CreateSelect(b_.CreateICmpUGE(bits, x_.i32(32 * (k + 1))), x_.i32(-1), b_.CreateSelect(b_.CreateICmpUGT(bits, x_.i32(32 * k)), part, x_.i32(0)));
              w[k] = b_.CreateAnd(w[k], mask);
            }
            x_.d.store_shared(w, m.to, m.wanted);
          }
          made.clear();
        });
  }

  /// `one` for the number of each piece of this thread, `together` of them in one trip of a loop, with `then` behind them.
  void in_turn(unsigned together, const std::function<void(Value*)>& one, const std::function<void()>& then = {}) {
    const auto all = [&] {
      const Lowering::Var number = x_.var(b_.getInt32Ty());
      x_.store(number, x_.d.opaque(team_.thread));
      llvm::BasicBlock *top = x_.block("pieces"), *done = x_.block("copied");
      b_.CreateBr(top);
      b_.SetInsertPoint(top);
      Value* first = x_.load(number);
      for (unsigned k = 0; k < together; ++k) one(b_.CreateAdd(first, x_.i32(k * threads_)));
      if (then) then();
      Value* next = b_.CreateAdd(first, x_.i32(together * threads_));
      x_.store(number, next);
      auto* again = b_.CreateCondBr(b_.CreateICmpULT(next, x_.i32(count_ * threads_)), top, done);
      // Not unrolled: the way is rare, and its registers would be those of the whole loop.
      llvm::LLVMContext& context = b_.getContext();
      llvm::MDNode* rolled = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
      llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, rolled});
      loop->replaceOperandWith(0, loop);
      again->setMetadata("llvm.loop", loop);
      b_.SetInsertPoint(done);
    };
    some_ ? x_.if_then(some_, all) : all();
  }
  std::pair<Value*, Value*> split(Value* number) { return {b_.CreateUDiv(number, x_.i32(row_pieces_)), b_.CreateMul(b_.CreateURem(number, x_.i32(row_pieces_)), x_.i32(piece_))}; }

  /// Of the trip at hand, for the pieces of this thread that lie `byte` bytes further in their rows.
  Value* size(uint32_t byte) {
    Value*& made = sizes_[byte];
    if (!made) made = source_.size(b_.CreateAdd(byte_, x_.i32(byte)), piece_);
    return made;
  }

  /// Offset of a piece from the operand's part of the stage: panels of rows, whose address bits 4.. are exchanged with bits 7...
  Value* place(Value* number) {
    const uint32_t in_panel = o_.row_bytes / piece_;
    Value *row = b_.CreateUDiv(number, x_.i32(row_pieces_)), *column = b_.CreateURem(number, x_.i32(row_pieces_));
    Value* at = b_.CreateMul(b_.CreateUDiv(column, x_.i32(in_panel)), x_.i32(o_.panel_bytes()));
    at = b_.CreateAdd(at, b_.CreateMul(row, x_.i32(o_.row_bytes)));
    at = b_.CreateAdd(at, b_.CreateMul(b_.CreateURem(column, x_.i32(in_panel)), x_.i32(piece_)));
    return b_.CreateXor(at, b_.CreateShl(b_.CreateAnd(b_.CreateLShr(at, x_.i32(7)), x_.i32((1u << o_.swizzle()) - 1)), x_.i32(4)));
  }
  /// Address of the piece with the thread's number and `number`, which have different bits: only bits 4 to 6 of their places meet.
  Value* target(Value* to, uint32_t number) {
    const uint32_t row = number / row_pieces_, column = number % row_pieces_, in_panel = o_.row_bytes / piece_;
    uint32_t at = column / in_panel * o_.panel_bytes() + row * o_.row_bytes + column % in_panel * piece_;
    at ^= (at >> 7 & ((1u << o_.swizzle()) - 1)) << 4;
    const uint32_t meeting = at & 0x70;
    Value* thread = meeting != 0 ? b_.CreateXor(place_, x_.i32(meeting)) : place_;
    return b_.CreateAdd(b_.CreateAdd(to, thread), x_.i32(at - meeting));
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const Team team_;
  const RingPlan::Operand& o_;
  const TileSource& source_;
  const unsigned piece_, element_bytes_, row_pieces_, threads_;
  unsigned count_ = 1;
  Value* some_ = nullptr;                                       // the threads that copy; nullptr: all
  Value* place_ = nullptr;
  Value *row_ = nullptr, *byte_ = nullptr;                      // of the trip at hand
  std::map<uint32_t, Value*> sizes_;
};

/// An operand's way into the stages: pieces of 16 bytes where addresses allow it, else of 8 or 4, else elements.
class OperandCopy {
 public:
  OperandCopy(Lowering& x, const Team& team, const RingPlan& r, const RingPlan::Operand& o)
      : x_(x), o_(o), element_bytes_(r.element_bytes), source_(x, r, o), wide_(x, team, r, o, source_, kPiece) {
    const unsigned word = std::max(4u, r.element_bytes);
    if (word < 8) pieces_.emplace_back(8, StageCopy(x, team, r, o, source_, 8));
    // Cut out of pieces of 16 bytes where the end of the array is known: only that could lie at the end of what may be read.
    shifts_ = !r.sync && !o.pointers && x.plan.shifted_pieces;
    if (!shifts_) pieces_.emplace_back(word, StageCopy(x, team, r, o, source_, word));
  }
  OperandCopy(const OperandCopy&) = delete;
  OperandCopy& operator=(const OperandCopy&) = delete;

  [[nodiscard]] unsigned count() const { return wide_.count(); }
  void prepare() { source_.prepare(); }
  /// What cannot be copied 16 bytes at a time is copied here, where `there` is true. Gives where copies of 16 bytes are left to start.
  Value* aim(Value* trip, Value* stage, Value* there) {
    x_.d.site = o_.load;
    stage_ = stage;
    source_.aim(trip);
    Value* aligned = source_.aligned(kPiece);
    x_.if_then(x_.b.CreateAnd(there, x_.b.CreateNot(aligned)), [&] { narrow(0); });
    return x_.b.CreateAnd(there, aligned);
  }
  void start(unsigned first, unsigned last, Value* when) {
    x_.d.site = o_.load;
    wide_.start(stage_, first, last, when);
  }
  /// Where a producer finds the trip's tile.
  void look(Value* trip, Value* stage) {
    x_.d.site = o_.load;
    stage_ = stage;
    source_.aim(trip);
  }
  /// Whether that is 16 bytes at a time without masks; equal in all threads.
  [[nodiscard]] Value* plain() const {
    return x_.plan.whole_tiles && o_.chosen == kNone ? x_.b.CreateAnd(source_.aligned(kPiece), source_.whole()) : static_cast<Value*>(x_.b.getFalse());
  }
  void fetch_plain() {
    x_.d.site = o_.load;
    wide_.start(stage_, 0, wide_.count(), nullptr, true);
  }
  /// The trip's tile as a producer fetches it otherwise: which of the ways is taken is equal in all threads, so that each is code of its own.
  /// Gives whether it was written by stores, which no arrival behind copies publishes.
  Value* fetch() {
    x_.d.site = o_.load;
    x_.if_then(source_.aligned(kPiece), [&] { wide_.start(stage_, 0, wide_.count(), nullptr); }, [&] { narrow(0); });
    return x_.b.CreateNot(source_.aligned(shifts_ ? 8 : std::max(4u, element_bytes_)));
  }

 private:
  void narrow(size_t k) {
    if (k == pieces_.size()) return shifts_ ? wide_.copy_shifted(stage_) : pieces_.back().second.copy_elements(stage_);
    // Elements lie at multiples of their size: those of a word or more are never copied alone.
    if (pieces_[k].first == element_bytes_) return pieces_[k].second.start_all(stage_);
    x_.if_then(source_.aligned(pieces_[k].first), [&] { pieces_[k].second.start_all(stage_); }, [&] { narrow(k + 1); });
  }

  Lowering& x_;
  const RingPlan::Operand& o_;
  const unsigned element_bytes_;
  TileSource source_;
  StageCopy wide_;
  std::vector<std::pair<unsigned, StageCopy>> pieces_;
  bool shifts_ = false;
  Value* stage_ = nullptr;
};

/// The whole loop.
class CopyRing {
 public:
  /// `shared`: other warps may still use shared memory.
  CopyRing(Lowering& x, InstId i, const RingPlan& r, bool shared)
      : x_(x), b_(x.b), i_(i), r_(r), trips_(loop_trips(x, i)), a_(x, {x.thread(), x.plan.threads(), false}, r, r.a), bb_(x, {x.thread(), x.plan.threads(), false}, r, r.b),
        first_(b_.CreateAdd(x.shared_base(), x.i32(RingPlan::kFirstStage))), end_(b_.CreateAdd(first_, x.i32(r.stages * r.stage_bytes))) {
    if (r.a.chosen != kNone || r.b.chosen != kNone) {
      if (shared) x.barrier();
      for (OperandCopy* c : {&a_, &bb_}) c->prepare();
      x.barrier();
    }
    if (!r.sync) {
      const ValueId init = x.f.operands(i)[3 + r.carried];
      if (!x.is_zero(init)) init_ = x.get(init, x.plan.mma.at(r.mma).result);
      return;
    }
    fragments_.emplace(x, r);
    for (Value* v : x.get(x.f.operands(i)[3 + r.carried], x.plan.mma.at(r.mma).result)) {
      acc_.push_back(x.var(v->getType()));
      x.store(acc_.back(), v);
    }
  }

  void run() {
    if (!r_.sync) return multiply_by_group();
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
  /// Makes ready to fill `stage` for a trip, which may lie beyond the last: then nothing is copied. What cp.async cannot take 16 bytes at a
  /// time is copied at once; gives where A and B are left to start.
  std::pair<Value*, Value*> aim(Value* trip, Value* stage) { return aim(look(trip), stage); }
  /// The first half: what the trip's indices and its condition are.
  struct Trip {
    Value *known, *there;   ///< its number, or that of the last; whether there is something to copy
  };
  Trip look(Value* trip) {
    Value* there = b_.CreateICmpULT(trip, trips_.count);
    Value* known = b_.CreateSelect(there, trip, b_.CreateSub(trips_.count, x_.i32(1)));
    llvm::Type* type = trips_.lower->getType();
    x_.set(x_.f.region(i_).first_arg, {b_.CreateAdd(trips_.lower, b_.CreateMul(b_.CreateZExtOrTrunc(known, type), trips_.step))});
    for (const InstId k : r_.index_slice) ok_ = ok_ && x_.one(k);
    if (r_.condition != kNone) {
      Value* holds = b_.CreateZExtOrTrunc(x_.scalar(r_.condition), b_.getInt1Ty());
      there = b_.CreateAnd(there, holds);
      Value* bit = b_.CreateAnd(trip, x_.i32(31));  // also beyond the last trip, whose own stays
      Value* others = b_.CreateAnd(x_.load(*products_), b_.CreateNot(b_.CreateShl(x_.i32(1), bit)));
      x_.store(*products_, b_.CreateOr(others, b_.CreateShl(b_.CreateZExt(there, b_.getInt32Ty()), bit)));
    }
    return {known, there};
  }
  std::pair<Value*, Value*> aim(const Trip& t, Value* stage) {
    Value* a = a_.aim(t.known, stage, t.there);
    return {a, bb_.aim(t.known, stage, t.there)};
  }

  /// Starts the share of step `k` of all `steps` of a trip's copies.
  void start(unsigned k, unsigned steps, std::pair<Value*, Value*> when) {
    const unsigned all = a_.count() + bb_.count(), from = k * all / steps, to = (k + 1) * all / steps;
    if (from < a_.count()) a_.start(from, std::min(to, a_.count()), when.first);
    if (to > a_.count()) bb_.start(std::max(from, a_.count()) - a_.count(), to - a_.count(), when.second);
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
    const bool ahead = fragments_->early();  // fragments that are gathered are too many for that
    x_.loop(r_.stages - 1, [&](Value* trip) {
      const auto when = aim(trip, b_.CreateAdd(first_, b_.CreateMul(trip, x_.i32(r_.stage_bytes))));
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
    if (ahead) keep(shape = fragments_->load(first_, 0));
    llvm::BasicBlock *top = x_.block("ring"), *done = x_.block("drained");
    b_.CreateBr(top);
    b_.SetInsertPoint(top);
    Value *trip = x_.load(trip_var), *from = x_.load(read_var), *fill = x_.load(fill_var);
    Value* next_trip = b_.CreateAdd(trip, x_.i32(1));
    Value* more = b_.CreateICmpULT(next_trip, trips_.count);
    const auto when = aim(b_.CreateAdd(trip, x_.i32(r_.stages - 1)), fill);
    // Beyond the last trip the fragments at hand are read once more, and dropped.
    Value* next = b_.CreateSelect(more, following(from), from);
    const unsigned steps = fragments_->steps();
    if (ahead) {
      Values acc;
      for (const auto& v : acc_) acc.push_back(x_.load(v));
      StageFragments::Step now = kept(shape);
      for (unsigned k = 0; k < steps; ++k) {
        start(k, steps, when);
        if (k + 1 == steps) turn();
        x_.d.site = r_.mma;
        StageFragments::Step then = k + 1 < steps ? fragments_->load(from, k + 1) : fragments_->load(next, 0);
        fragments_->multiply(now, acc);
        now = std::move(then);
      }
      keep(now);
      for (size_t k = 0; k < acc.size(); ++k) x_.store(acc_[k], acc[k]);
    } else {
      start(0, 1, when);
      x_.d.site = r_.mma;
      fragments_->stage(from, acc_);
      turn();
    }
    x_.store(trip_var, next_trip);
    x_.store(read_var, next);
    x_.store(fill_var, following(fill));
    b_.CreateCondBr(more, top, done);
    b_.SetInsertPoint(done);
    x_.d.cp_async_wait(0);
  }

  /// Products by wgmma. At the top of a trip all warps have ended the products of the trip before the last one (with few stages, of the last
  /// one), whose stage is filled while the trip's own products run. The products have one way in and one way out (see multiply_by_group()).
  void multiply_by_group() {
    llvm::Type* i32 = b_.getInt32Ty();
    HopperOps& h = *hopper_ops(x_.d);
    const bool conditional = r_.condition != kNone;
    const unsigned lag = r_.stages >= 4 && !conditional ? 1 : 0, ahead = r_.stages - 1 - lag;
    const unsigned blocks = 1u << (r_.p_bits() - 6 - r_.p_groups()), n = 1u << (r_.q_bits() - r_.q_groups()), steps = r_.k_steps();
    const MmaKind kind = r_.element == ElementType::BF16 ? MmaKind::BF16F32 : MmaKind::F16F32;
    const bool from_zero = init_.empty() && !conditional;
    std::vector<WgmmaAccumulator> acc;
    for (unsigned k = 0; k < blocks; ++k) acc.push_back(h.wgmma_accumulator(kind, n));
    std::vector<WgmmaAccumulator*> in_flight;
    for (auto& a : acc) in_flight.push_back(&a);
    const size_t regs = acc[0].registers();
    if (init_.empty() && conditional) init_.assign(blocks * regs, llvm::Constant::getNullValue(b_.getFloatTy()));
    if (conditional) {
      products_ = x_.var(i32);
      x_.store(*products_, x_.i32(0));
    }
    acc_.resize(blocks * regs);
    for (auto& v : acc_) v = x_.var(b_.getFloatTy());
    const Walk wp = walk(r_.p(), 64), wq = walk(r_.q(), n);
    Value* group = h.warp_uniform(b_.CreateLShr(x_.warp(), x_.i32(2)));
    const auto share = [&](unsigned groups, uint32_t bytes) { return groups ? b_.CreateMul(group, x_.i32(bytes)) : static_cast<Value*>(x_.i32(0)); };
    Value* my_p = b_.CreateAdd(x_.i32(r_.p().offset), share(r_.p_groups(), wp.block * blocks));
    Value* my_q = b_.CreateAdd(x_.i32(r_.q().offset), share(r_.q_groups(), wq.block));

    llvm::BasicBlock *enter = x_.block("products"), *skip = x_.block("no.products"), *after = x_.block("after.products");
    b_.CreateCondBr(b_.CreateICmpNE(trips_.count, x_.i32(0)), enter, skip);
    b_.SetInsertPoint(skip);
    for (size_t k = 0; k < acc_.size(); ++k) x_.store(acc_[k], from_zero ? llvm::Constant::getNullValue(b_.getFloatTy()) : init_[k]);
    b_.CreateBr(after);
    b_.SetInsertPoint(enter);
    for (unsigned k = 0; k < blocks; ++k) {
      if (from_zero)
        h.wgmma_forget(acc[k]);
      else
        h.wgmma_write(acc[k], std::span(init_).subspan(k * regs, regs));
    }
    x_.loop(ahead, [&](Value* trip) {
      start(0, 1, aim(trip, b_.CreateAdd(first_, b_.CreateMul(trip, x_.i32(r_.stage_bytes)))));
      x_.d.cp_async_commit();
    });
    const Lowering::Var trip_var = x_.var(i32), read_var = x_.var(i32), fill_var = x_.var(i32);
    x_.store(trip_var, x_.i32(0));
    x_.store(read_var, first_);
    x_.store(fill_var, b_.CreateAdd(first_, x_.i32(ahead * r_.stage_bytes)));
    llvm::BasicBlock *top = x_.block("ring"), *done = x_.block("drained");
    b_.CreateBr(top);
    b_.SetInsertPoint(top);
    Value *trip = x_.load(trip_var), *from = x_.load(read_var), *fill = x_.load(fill_var);
    // What is loaded for a later trip's indices arrives while this one waits.
    const Trip later = look(b_.CreateAdd(trip, x_.i32(ahead)));
    x_.d.site = r_.mma;
    x_.d.cp_async_wait(ahead - 1);
    h.fence_proxy_async(true);
    x_.d.barrier();
    Value* earlier = b_.CreateICmpNE(trip, x_.i32(0));
    const auto products = [&] {
      h.wgmma_fence();
      Value *from_p = b_.CreateAdd(from, my_p), *from_q = b_.CreateAdd(from, my_q);
      for (unsigned k = 0; k < steps; ++k)
        for (unsigned m = 0; m < blocks; ++m)
          h.wgmma(acc[m], {descriptor(x_, from_p, wp.offset(k) + m * wp.block, wp.fields), {}, r_.p().mn_major}, {descriptor(x_, from_q, wq.offset(k), wq.fields), {}, r_.q().mn_major},
                  k == 0 && from_zero ? earlier : nullptr);
      h.wgmma_commit();
    };
    const auto copies = [&] {
      start(0, 1, aim(later, fill));
      x_.d.cp_async_commit();
      x_.d.site = r_.mma;
    };
    if (conditional) {
      // Products and their wait on one way, else ptxas would not see that the accumulators are at rest where the ways meet.
      copies();
      x_.if_then(b_.CreateTrunc(b_.CreateLShr(x_.load(*products_), b_.CreateAnd(trip, x_.i32(31))), b_.getInt1Ty()), [&] {
        products();
        h.wgmma_wait(0, in_flight, {});
      });
    } else {
      products();
      copies();
      h.wgmma_wait(lag, in_flight, {});
    }
    Value* next = b_.CreateAdd(trip, x_.i32(1));
    x_.store(trip_var, next);
    x_.store(read_var, following(from));
    x_.store(fill_var, following(fill));
    b_.CreateCondBr(b_.CreateICmpULT(next, trips_.count), top, done);
    b_.SetInsertPoint(done);
    if (lag > 0) h.wgmma_wait(0, in_flight, {});
    x_.d.cp_async_wait(0);
    size_t at = 0;
    for (auto& a : acc)
      for (Value* v : h.wgmma_read(a)) x_.store(acc_[at++], v);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
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
  std::optional<StageFragments> fragments_;   // of mma.sync
  OperandCopy a_, bb_;
  Value *first_, *end_;
  std::vector<Lowering::Var> acc_, kept_;
  std::optional<Lowering::Var> products_;       // bit n: a trip whose number ends in these five bits has a product
  Values init_;                                 // of accumulators of wgmma; empty: zeros
  bool ok_ = true;
};

}  // namespace

bool produce_copies(Lowering& x, InstId i, const RingPlan& r, const Trips& trips, Value* base) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const Team team{b.CreateSub(x.thread(), x.i32(x.plan.consumers())), KernelPlan::kProducers, true};
  OperandCopy copies[] = {{x, team, r, r.a}, {x, team, r, r.b}};
  bool ok = true;
  fill_all(x, trips.count, [&](Value* trip) {
    Value* number = b.CreateAdd(base, trip);
    Value *s = b.CreateURem(number, x.i32(r.stages)), *round = b.CreateUDiv(number, x.i32(r.stages));
    x.set(x.f.region(i).first_arg, {b.CreateAdd(trips.lower, b.CreateMul(b.CreateZExtOrTrunc(trip, trips.lower->getType()), trips.step))});
    for (const InstId k : r.index_slice) ok = ok && x.one(k);
    Value* plain = b.getTrue();
    for (OperandCopy& c : copies) {
      c.look(trip, stage(x, r, s));
      plain = b.CreateAnd(plain, c.plain());
    }
    x.if_then(b.CreateICmpNE(round, x.i32(0)), [&] { h.mbarrier_wait(empty(x, r, s), b.CreateSub(round, x.i32(1))); });
    // What most trips do is one piece of code: the addresses of one operand are computed while copies of the other start.
    x.if_then(plain, [&] {
      for (OperandCopy& c : copies) c.fetch_plain();
      h.cp_async_arrive(full(x, r, s));
    }, [&] {
      Value* stored = b.getFalse();
      for (OperandCopy& c : copies) stored = b.CreateOr(stored, c.fetch());
      x.if_then(stored, [&] {
        x.d.cp_async_commit();
        x.d.cp_async_wait(0);
        h.mbarrier_arrive(full(x, r, s));
      }, [&] { h.cp_async_arrive(full(x, r, s)); });
    });
  });
  return ok;
}

bool lower_copy_ring(Lowering& x, InstId i, const RingPlan& r) {
  CopyRing ring(x, i, r, x.pending_.shared);
  // What the block wrote before may be what the copies read, and the stages lie where it has scratch space.
  if (x.pending_.writes || x.pending_.shared) x.barrier();
  ring.run();
  x.pending_.reads = true;
  x.pending_.shared = true;  // other warps may still read the stages
  return ring.finish();
}

}  // namespace tile
