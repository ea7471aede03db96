// Loops that compute with their products: right operands come through stages as in a ring, everything else is code like any other.
//
// A stream whose plan names a late product runs that one during the next trip: its first product is issued before the late one of the trip
// before, so that the matrix unit has work while the threads compute. What the late part needs of its own trip is carried over in variables.
#include <algorithm>
#include <optional>

#include "backend/ptx/lower_ring.h"

namespace tile {

namespace {

Value* barrier_at(Lowering& x, const StreamPlan& r, size_t load, bool is_empty, Value* s) {
  const uint32_t first = r.barriers + 8 * r.stages * static_cast<uint32_t>(2 * load + (is_empty ? 1 : 0));
  return x.b.CreateAdd(x.b.CreateAdd(x.shared_base(), x.i32(first)), x.b.CreateShl(s, x.i32(3)));
}

/// Fills the stages of a stream; by the producer.
struct StreamFill {
  Lowering& x;
  InstId loop;
  const StreamPlan& r;
  Trips trips;
  Value* base;               ///< number of the loop's first stage

  Value* number(Value* trip) const { return x.b.CreateAdd(base, trip); }
  Value* variable(Value* trip) const {
    llvm::Type* type = trips.lower->getType();
    return x.b.CreateAdd(trips.lower, x.b.CreateMul(x.b.CreateZExtOrTrunc(trip, type), trips.step));
  }
  /// The stage of a trip, or what one load has in it. Values of the body that the indices need are those of that trip only here. False after an error.
  bool fill(Value* trip, std::optional<size_t> load) const {
    llvm::IRBuilder<>& b = x.b;
    HopperOps& h = *hopper_ops(x.d);
    const ValueId counter = x.f.region(loop).first_arg;
    std::vector<std::pair<ValueId, Values>> saved{{counter, x.own(counter)}};
    for (const InstId k : r.index_slice)
      for (uint32_t n = 0; n < x.f.insts[k].result_count; ++n) saved.emplace_back(x.f.result(k, n), x.own(x.f.result(k, n)));
    x.set(counter, {variable(trip)});
    bool ok = true;
    for (const InstId k : r.index_slice) ok = x.one(k) && ok;
    Value *s = b.CreateURem(number(trip), x.i32(r.stages)), *round = b.CreateUDiv(number(trip), x.i32(r.stages));
    Value* address = stage(x, r, s);
    for (size_t k = load.value_or(0); k < (load ? *load + 1 : r.loads.size()); ++k) {
      const RingPlan::Operand& o = r.loads[k];
      Value* ready = barrier_at(x, r, k, false, s);
      x.if_then(b.CreateICmpNE(round, x.i32(0)), [&] { h.mbarrier_wait(barrier_at(x, r, k, true, s), b.CreateSub(round, x.i32(1))); });
      h.mbarrier_arrive_expect(ready, x.i32(o.bytes()));
      copy_operand(x, o, StreamPlan::element_bytes, address, ready);
    }
    for (auto& [v, regs] : saved) x.set(v, std::move(regs));
    return ok;
  }
};

}  // namespace

void prepare_stream(Lowering& x, const StreamPlan& r) {
  for (size_t load = 0; load < r.loads.size(); ++load)
    for (unsigned s = 0; s < r.stages; ++s) {
      hopper_ops(x.d)->mbarrier_init(barrier_at(x, r, load, false, x.i32(s)), 1);
      hopper_ops(x.d)->mbarrier_init(barrier_at(x, r, load, true, x.i32(s)), 1u << r.group_bits);
    }
}

class StreamRun {
 public:
  StreamRun(Lowering& x, InstId loop, const StreamPlan& r)
      : x_(x), b_(x.b), h_(*hopper_ops(x.d)), loop_(loop), r_(r), body_(x.f.region(loop)), trips_(loop_trips(x, loop)) {
    for (InstId i = body_.begin; i < body_.end; i = x.f.insts[i].next) {
      if (r.product(i)) straight_.push_back(i);
    }
    if (x.producing()) return;
    const auto inits = x.f.operands(loop).subspan(3);
    for (uint32_t k = 0; k < inits.size(); ++k) {
      args_.push_back(body_.first_arg + 1 + k);
      carried_.push_back(carried_vars(x, args_.back()));
    }
  }

  bool run() {
    // Copies of a loop whose stages were begun to be filled before are under way.
    if (x_.filled_before_ && x_.filled_before_->first == loop_) before_ = x_.filled_before_->second;
    x_.filled_before_.reset();
    if (!x_.plan.roles && !before_) x_.settle_for_bulk_copies();
    base_ = x_.load(x_.ring_position_.at(loop_));
    fills_.push_back({x_, loop_, r_, trips_, base_});
    for (InstId next = r_.next; next != kNone; next = x_.plan.streams.at(next).next)
      fills_.push_back({x_, next, x_.plan.streams.at(next), loop_trips(x_, next), b_.CreateAdd(fills_.back().base, fills_.back().trips.count)});
    if (x_.producing()) {
      fill_all(x_, trips_.count, [&](Value* trip) { fill(trip); });
      x_.store(x_.ring_position_.at(loop_), b_.CreateAdd(base_, trips_.count));
      return ok_;
    }
    speaker_ = b_.CreateICmpEQ(b_.CreateAnd(x_.thread(), x_.i32(127)), x_.i32(0));
    group_ = h_.warp_uniform(b_.CreateLShr(x_.warp(), x_.i32(2)));
    if (!x_.plan.roles) {
      producer_ = b_.CreateICmpEQ(x_.thread(), x_.i32(0));
      if (!before_) fill_first(x_, producer_, all_trips(), r_.stages, [&](Value* trip) { fill(trip); });
    }
    const StreamPlan* outer = x_.stream_;
    StreamRun* outer_run = x_.stream_run_;
    x_.stream_ = &r_;
    x_.stream_run_ = this;
    if (const auto chain = x_.plan.left_chains.find(loop_); chain != x_.plan.left_chains.end())
      for (const InstId i : chain->second) {
        if (!emit(i)) return false;
        if (x_.plan.lefts.contains(x_.f.result(i))) write_left(x_, x_.f.result(i));
      }
    const auto inits = x_.f.operands(loop_).subspan(3);
    for (uint32_t k = 0; k < inits.size(); ++k)
      if (x_.is_tile(args_[k])) store_carried(x_, args_[k], carried_[k], x_.get(inits[k], x_.layout(args_[k])));
    const Lowering::Pending before = x_.pending_;
    x_.pending_ = {true, before.writes, before.shared};  // what earlier trips may have done: the body writes nothing
    after_ = x_.block("endfor");
    const bool done = r_.late_product == kNone ? in_order() : rotated();
    if (!done || !ok_) return false;
    x_.pending_ = x_.pending_ | before;  // the body may not run at all
    // Other warps may still read this loop's stages. The next run of its ring waits for its empty barriers.
    for (const auto& [loop, other] : x_.plan.streams) x_.pending_.shared = x_.pending_.shared || other.barriers != r_.barriers;
    x_.pending_.shared = x_.pending_.shared || !x_.plan.rings.empty();
    x_.stream_ = outer;
    x_.stream_run_ = outer_run;
    b_.SetInsertPoint(after_);
    x_.store(x_.ring_position_.at(loop_), b_.CreateAdd(base_, trips_.count));
    if (r_.next != kNone) x_.filled_before_ = {r_.next, before_ ? b_.CreateAdd(before_, trips_.count) : trips_.count};
    for (uint32_t k = 0; k < x_.f.insts[loop_].result_count; ++k) {
      const ValueId result = x_.f.result(loop_, k);
      if (x_.is_tile(result))
        x_.set(result, x_.convert(load_carried(x_, args_[k], carried_[k]), x_.element(args_[k]), x_.layout(args_[k]), x_.layout(result), element_bits(x_.shape(args_[k]))));
    }
    return true;
  }

  /// Emits a product of the body.
  bool product(InstId i) {
    Issued p = issue(i);
    if (trip_ && straight(i)) refill_before(trip_, r_.product(i)->load);
    if (!behind_issue_) {
      finish(p, 0);
      return true;
    }
    const auto then = std::move(behind_issue_);
    behind_issue_ = nullptr;
    const unsigned more = then();
    finish(p, more);
    return true;
  }

 private:
  struct Issued {
    InstId mma;
    std::vector<WgmmaAccumulator> accumulators;
    Values left;
    std::vector<WgmmaAccumulator*> in_flight;
  };
  struct Crossing {
    ValueId value;
    bool pairs;                         ///< two 16-bit elements in a variable
    std::vector<Lowering::Var> vars;
  };

  Value* number(Value* trip) { return b_.CreateAdd(base_, trip); }
  /// Where a trip's tiles lie, and the round of its stage.
  struct Place {
    Value *stage, *round, *address;
  };
  Place place_of(Value* trip) {
    Value* s = b_.CreateURem(number(trip), x_.i32(r_.stages));
    return {s, b_.CreateUDiv(number(trip), x_.i32(r_.stages)), stage(x_, r_, s)};
  }
  bool straight(InstId product) const { return std::find(straight_.begin(), straight_.end(), product) != straight_.end(); }
  void wait(const StreamPlan::Product& p) { h_.mbarrier_wait(barrier_at(x_, r_, p.load, false, place_.stage), place_.round); }
  void enter(Value* trip) {
    x_.set(body_.first_arg, {fills_[0].variable(trip)});
    place_ = place_of(trip);
    // A product in a branch may not come to its wait; a stage that is not waited for is passed a phase early later on.
    for (const auto& p : r_.products)
      if (!straight(p.mma)) wait(p);
  }
  void release(const StreamPlan::Product& p, const Place& at) {
    x_.if_then(speaker_, [&] { h_.mbarrier_arrive(barrier_at(x_, r_, p.load, true, at.stage)); });
  }

  /// Fills the stage of a trip, or what one load has in it; of this loop, and behind its trips of those that its copies run on to. By the producer.
  void fill(Value* trip, std::optional<size_t> load = std::nullopt, size_t loop = 0) {
    const StreamFill& here = fills_[loop];
    if (loop + 1 == fills_.size()) {
      ok_ = here.fill(trip, load) && ok_;
      return;
    }
    x_.if_then(b_.CreateICmpULT(trip, here.trips.count), [&] { ok_ = here.fill(trip, load) && ok_; }, [&] { fill(b_.CreateSub(trip, here.trips.count), load, loop + 1); });
  }
  /// Trips of this loop and of those that its copies run on to.
  Value* all_trips() {
    Value* n = trips_.count;
    for (size_t k = 1; k < fills_.size(); ++k) n = b_.CreateAdd(n, fills_[k].trips.count);
    return n;
  }
  /// Fills the stage of trip - 1 again, where there was one and there is a trip for it. Its readers are done with it or soon will be.
  void refill_before(Value* trip, std::optional<size_t> load = std::nullopt) {
    Value* earlier = before_ ? b_.CreateAdd(trip, before_) : trip;
    refill(b_.CreateAdd(trip, x_.i32(r_.stages - 1)), b_.CreateICmpNE(earlier, x_.i32(0)), load);
  }
  void refill(Value* ahead, Value* condition, std::optional<size_t> load = std::nullopt) {
    if (!producer_) return;
    x_.if_then(b_.CreateAnd(producer_, b_.CreateAnd(condition, b_.CreateICmpULT(ahead, all_trips()))), [&] { fill(ahead, load); });
    h_.warp_sync();
  }

  bool in_order() {
    Lowering::Frame frame{loop_, carried_, {}, x_.block("latch"), after_};
    const auto trip_var = x_.var(b_.getInt32Ty());
    x_.store(trip_var, x_.i32(0));
    llvm::BasicBlock* top = x_.block("stream");
    b_.CreateCondBr(b_.CreateICmpNE(trips_.count, x_.i32(0)), top, after_);
    b_.SetInsertPoint(top);
    Value* trip = x_.load(trip_var);
    for (size_t k = 0; k < args_.size(); ++k) x_.set(args_[k], load_carried(x_, args_[k], carried_[k]));
    enter(trip);
    // A stage is filled again behind the issue of the next trip's first product; or what each load has in it behind its own product, so that the
    // thread that fills does not wait for a warpgroup that is less than a trip behind. A product in a branch would leave its refill there.
    const bool straight_first = first_is_straight();
    if (r_.refill_apart)
      trip_ = trip;
    else if (straight_first)
      behind_issue_ = [&] {
        refill_before(trip);
        return 0u;
      };
    x_.loops_.push_back(frame);
    bool ended = false;
    if (!x_.region(body_, &ended)) return false;
    x_.loops_.pop_back();
    trip_ = nullptr;
    if (!ended) b_.CreateBr(frame.next);
    b_.SetInsertPoint(frame.next);
    // Every product has waited for its result, so the stage is read.
    for (const auto& p : r_.products)
      if (!straight(p.mma)) release(p, place_);
    if (r_.refill_apart) {
      for (const auto& p : r_.products)
        if (!straight(p.mma)) refill_before(trip, p.load);
    } else if (!straight_first) {
      refill_before(trip);
    }
    h_.warp_sync();
    Value* next = b_.CreateAdd(trip, x_.i32(1));
    x_.store(trip_var, next);
    b_.CreateCondBr(b_.CreateICmpULT(next, trips_.count), top, after_);
    return true;
  }

  bool first_is_straight() const {
    for (InstId i = body_.begin; i < body_.end; i = x_.f.insts[i].next) {
      if (r_.product(i)) return true;
      if (x_.f.insts[i].op == Opcode::If || x_.f.insts[i].op == Opcode::For || x_.f.insts[i].op == Opcode::Loop) return false;
    }
    return false;
  }

  bool rotated() {
    for (const ValueId v : r_.crossing) {
      Crossing c{v, x_.is_tile(v) && info(x_.element(v)).storage == 2 && x_.layout(v).registers() % 2 == 0, {}};
      const size_t n = x_.layout(v).registers();
      for (size_t k = 0; k < (c.pairs ? n / 2 : n); ++k) c.vars.push_back(x_.var(c.pairs ? b_.getInt32Ty() : memory_type(b_.getContext(), x_.element(v))));
      crossing_.push_back(std::move(c));
    }
    const auto trip_var = x_.var(b_.getInt32Ty());
    x_.store(trip_var, x_.i32(0));
    llvm::BasicBlock *first = x_.block("stream.first"), *top = x_.block("stream"), *last = x_.block("stream.last");
    b_.CreateCondBr(b_.CreateICmpNE(trips_.count, x_.i32(0)), first, after_);

    b_.SetInsertPoint(first);
    load_early_args();
    enter(x_.i32(0));
    if (!early()) return false;
    store_early();
    Value* final = b_.CreateSub(trips_.count, x_.i32(1));
    b_.CreateCondBr(b_.CreateICmpNE(final, x_.i32(0)), top, last);

    // Trip `trip` in its late part, trip + 1 in its early one.
    b_.SetInsertPoint(top);
    Value* trip = x_.load(trip_var);
    Value* next = b_.CreateAdd(trip, x_.i32(1));
    const auto crossed = load_crossing();
    load_early_args();
    enter(next);
    Issued late{};
    behind_issue_ = [&] {
      late = issue_late(trip, crossed);
      // Of two stages, both are in use until the late part is done.
      if (r_.stages > 2) refill_before(trip);
      return 1u;
    };
    if (!early()) return false;
    finish_late(late);
    store_early();
    if (r_.stages == 2) refill(b_.CreateAdd(trip, x_.i32(2)), b_.getTrue());
    h_.warp_sync();
    x_.store(trip_var, next);
    b_.CreateCondBr(b_.CreateICmpULT(next, final), top, last);

    b_.SetInsertPoint(last);
    Issued rest = issue_late(final, load_crossing());
    finish_late(rest);
    h_.warp_sync();
    b_.CreateBr(after_);
    return true;
  }

  /// All of the body but what is late only.
  bool early() {
    for (InstId i = body_.begin; i < body_.end; i = x_.f.insts[i].next) {
      if (x_.f.insts[i].op == Opcode::Continue) break;
      if (std::find(r_.late_only.begin(), r_.late_only.end(), i) != r_.late_only.end()) continue;
      if (!emit(i)) return false;
    }
    return true;
  }
  bool emit(InstId i) {
    x_.d.site = i;
    if (x_.locate) x_.locate(i);
    return x_.one(i);
  }
  void load_early_args() {
    for (size_t k = 0; k < args_.size(); ++k)
      if (k != r_.late_carried) x_.set(args_[k], load_carried(x_, args_[k], carried_[k]));
  }
  /// What the trip carries over, and what its late part will need. All is read before any is written.
  void store_early() {
    InstId end = body_.begin;
    while (x_.f.insts[end].op != Opcode::Continue) end = x_.f.insts[end].next;
    const auto next = x_.f.operands(end);
    std::vector<Values> values(args_.size());
    for (size_t k = 0; k < args_.size(); ++k)
      if (k != r_.late_carried && x_.is_tile(args_[k])) values[k] = x_.get(next[k], x_.layout(args_[k]));
    for (const Crossing& c : crossing_) {
      const Values& regs = x_.own(c.value);
      for (size_t k = 0; k < c.vars.size(); ++k) x_.store(c.vars[k], c.pairs ? pair(regs[2 * k], regs[2 * k + 1]) : to_memory(x_.d, x_.element(c.value), regs[k]));
    }
    for (size_t k = 0; k < args_.size(); ++k)
      if (k != r_.late_carried && x_.is_tile(args_[k])) store_carried(x_, args_[k], carried_[k], values[k]);
  }
  std::vector<std::pair<ValueId, Values>> load_crossing() {
    std::vector<std::pair<ValueId, Values>> out;
    for (const Crossing& c : crossing_) {
      Values regs;
      const ElementType e = x_.element(c.value);
      for (const auto& v : c.vars) {
        Value* word = x_.load(v);
        if (!c.pairs) {
          regs.push_back(from_memory(x_.d, e, word));
          continue;
        }
        regs.push_back(from_memory(x_.d, e, b_.CreateTrunc(word, b_.getInt16Ty())));
        regs.push_back(from_memory(x_.d, e, b_.CreateTrunc(b_.CreateLShr(word, 16), b_.getInt16Ty())));
      }
      out.emplace_back(c.value, std::move(regs));
    }
    return out;
  }

  /// The late part of a trip up to its product, which is issued. The values of other trips are left as they were.
  Issued issue_late(Value* trip, const std::vector<std::pair<ValueId, Values>>& crossed) {
    const ValueId accumulator = args_[r_.late_carried];
    std::vector<std::pair<ValueId, Values>> saved;
    for (const auto& [v, regs] : crossed) {
      saved.emplace_back(v, x_.own(v));
      x_.set(v, regs);
    }
    for (const InstId i : r_.late) saved.emplace_back(x_.f.result(i), x_.own(x_.f.result(i)));
    x_.set(accumulator, load_carried(x_, accumulator, carried_[r_.late_carried]));
    const Place early = place_;
    place_ = late_place_ = place_of(trip);
    Issued out{};
    for (const InstId i : r_.late) {
      if (i == r_.late_product) {
        x_.d.site = i;
        out = issue(i);
      } else {
        ok_ = emit(i) && ok_;
      }
    }
    place_ = early;
    for (auto& [v, regs] : saved) x_.set(v, std::move(regs));
    return out;
  }
  void finish_late(Issued& late) {
    const ValueId accumulator = args_[r_.late_carried], result = x_.f.result(r_.late_product);
    const Place early = place_;
    place_ = late_place_;
    finish(late, 0);
    place_ = early;
    store_carried(x_, accumulator, carried_[r_.late_carried], x_.get(result, x_.layout(accumulator)));
  }

  Value* pair(Value* low, Value* high) { return pair_of(x_, low, high); }

  /// Issues a product from the stage at hand.
  Issued issue(InstId i) {
    const StreamPlan::Product& p = *r_.product(i);
    const MmaPlan& plan = x_.plan.mma.at(i);
    const auto operands = x_.f.operands(i);
    const unsigned steps = 1u << (p.k_bits - 4), blocks = 1u << (p.m_bits - 6 - r_.group_bits), n = 1u << p.n_bits;
    Issued out{i, {}, {}, {}};
    Walk left{};
    Value* left_at = nullptr;
    if (p.shared_left) {
      const RingPlan::Operand& o = x_.plan.lefts.at(operands[0]);
      left = walk(o, 64);
      left_at = b_.CreateAdd(left_base(x_, o), b_.CreateMul(group_, x_.i32(left.block * blocks)));
    } else {
      // Two elements of K in a word; the bits that follow count the fragment's words, then steps of K, then blocks of 64 rows.
      const Values a = x_.get(operands[0], plan.a);
      for (size_t k = 0; k < a.size(); k += 2) out.left.push_back(pair(a[k], a[k + 1]));
    }
    const bool from_zero = x_.is_zero(operands[2]);
    for (unsigned k = 0; k < blocks; ++k) out.accumulators.push_back(h_.wgmma_accumulator(p.bf16 ? MmaKind::BF16F32 : MmaKind::F16F32, n));
    const size_t regs = out.accumulators[0].registers();
    const Values init = from_zero ? Values() : x_.get(operands[2], plan.result);
    for (unsigned k = 0; k < blocks; ++k) {
      if (from_zero)
        h_.wgmma_forget(out.accumulators[k]);
      else
        h_.wgmma_write(out.accumulators[k], std::span(init).subspan(k * regs, regs));
    }
    const RingPlan::Operand& o = r_.loads[p.load];
    const Walk w = walk(o, n);
    Value* from = b_.CreateAdd(place_.address, x_.i32(o.offset));
    if (straight(i)) wait(p);
    h_.wgmma_fence();
    for (unsigned k = 0; k < steps; ++k)
      for (unsigned m = 0; m < blocks; ++m) {
        WgmmaOperand a;
        if (p.shared_left) {
          a.descriptor = descriptor(x_, left_at, left.offset(k) + m * left.block, left.fields);
        } else {
          const auto at = out.left.begin() + static_cast<std::ptrdiff_t>((size_t{m} * steps + k) * 4);
          a.registers.assign(at, at + 4);
        }
        h_.wgmma(out.accumulators[m], a, {descriptor(x_, from, w.offset(k), w.fields), {}, o.mn_major, false},
                 from_zero && k == 0 ? static_cast<Value*>(b_.getFalse()) : nullptr);
      }
    h_.wgmma_commit();
    return out;
  }

  /// Waits until at most `pending` later products are under way, and takes the result.
  void finish(Issued& p, unsigned pending) {
    const MmaPlan& plan = x_.plan.mma.at(p.mma);
    std::vector<WgmmaAccumulator*> in_flight;
    for (auto& a : p.accumulators) in_flight.push_back(&a);
    h_.wgmma_wait(pending, in_flight, p.left);
    if (straight(p.mma)) release(*r_.product(p.mma), place_);
    Values out;
    for (auto& one : p.accumulators)
      for (Value* v : h_.wgmma_read(one)) out.push_back(v);
    const ValueId result = x_.f.result(p.mma);
    x_.set(result, x_.convert(out, x_.element(result), plan.result, x_.layout(result), element_bits(x_.shape(result))));
  }

 public:
  static Value* left_base(Lowering& x, const RingPlan::Operand& o) { return x.b.CreateAdd(x.shared_base(), x.i32(x.plan.ring_bytes + o.offset)); }

 private:
  Lowering& x_;
  llvm::IRBuilder<>& b_;
  HopperOps& h_;
  InstId loop_;
  const StreamPlan& r_;
  const Region& body_;
  Trips trips_;
  std::vector<InstId> straight_;            ///< products that every trip comes to
  Place place_{}, late_place_{};
  std::vector<ValueId> args_;
  std::vector<std::vector<Lowering::Var>> carried_;
  std::vector<Crossing> crossing_;
  Value* trip_ = nullptr;                   ///< whose products are being emitted, where each refills what its load had in the stage before
  std::function<unsigned()> behind_issue_;  ///< runs once behind the next product's issue; gives the number of groups it has issued itself
  std::vector<StreamFill> fills_;           ///< of this loop, and of those that its copies run on to
  Value* before_ = nullptr;                 ///< trips of the loops before whose copies have run on to this one; nullptr: there are none
  Value *base_ = nullptr, *producer_ = nullptr, *speaker_ = nullptr, *group_ = nullptr;
  llvm::BasicBlock* after_ = nullptr;
  bool ok_ = true;
};

bool lower_stream_loop(Lowering& x, InstId i, const StreamPlan& r) { return StreamRun(x, i, r).run(); }

bool lower_stream_product(Lowering& x, InstId i) { return x.stream_run_->product(i); }

void write_left(Lowering& x, ValueId v) {
  const RingPlan::Operand& o = x.plan.lefts.at(v);
  const Layout& l = x.layout(v);
  const Values& regs = x.own(v);
  llvm::IRBuilder<>& b = x.b;
  const unsigned k_bits = log2_of(o.row_bytes * o.panels / 2);
  // Bits of the element number go to bits of the place, so that the places of thread and register are joined by exclusive or; the swizzle
  // of the join is the join of the swizzles.
  const uint32_t in_panel = o.row_bytes - 1, mask = (1u << o.swizzle()) - 1;
  const auto place = [&](uint32_t element) {
    const uint32_t byte = (element & ((1u << k_bits) - 1)) * 2, row = element >> k_bits;
    const uint32_t at = byte / o.row_bytes * o.panel_bytes() + row * o.row_bytes + (byte & in_panel);
    return at ^ ((at >> 7 & mask) << 4);
  };
  Value* e = x.thread_element(l);
  Value *byte = b.CreateShl(b.CreateAnd(e, x.i32((1 << k_bits) - 1)), 1), *row = b.CreateLShr(e, k_bits);
  Value* at = b.CreateOr(b.CreateMul(b.CreateUDiv(byte, x.i32(o.row_bytes)), x.i32(o.panel_bytes())),
                         b.CreateOr(b.CreateMul(row, x.i32(o.row_bytes)), b.CreateAnd(byte, x.i32(in_panel))));
  at = b.CreateXor(at, b.CreateShl(b.CreateAnd(b.CreateLShr(at, 7), x.i32(mask)), 4));
  unsigned run = 0;
  while (run < 3 && run < l.reg.size() && l.reg[run] == static_cast<int>(run)) ++run;
  // Products of an earlier trip of a loop around may have read what lies there.
  x.barrier();
  Value* mine = x.owner(l);
  Value* base = StreamRun::left_base(x, o);
  for (unsigned r = 0; r < regs.size(); r += 1u << run) {
    Values words;
    for (unsigned k = 0; k < 1u << run; ++k) words.push_back(to_memory(x.d, x.element(v), regs[r + k]));
    x.d.store_shared(words, b.CreateAdd(base, b.CreateXor(at, x.i32(place(l.element_of_register(r))))), mine);
  }
  hopper_ops(x.d)->fence_proxy_async(true);
  x.barrier();
}

}  // namespace tile
