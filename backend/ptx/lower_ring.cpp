// Loops of products fed by bulk tensor copies: one thread keeps a ring of stages full, all warpgroups multiply from it.
//
// Stage numbers count on over all runs of the loop in the kernel, so that mbarrier phases never start anew: number n uses stage n % stages
// in its round n / stages.
#include <algorithm>
#include <functional>
#include <map>

#include "backend/ptx/lower_fragments.h"
#include "backend/ptx/lower_ring.h"

namespace tile {

namespace {

/// One loop of each ring, by the place of its barriers: loops that share a ring go on counting where the one before has stopped.
template <class Loops>
std::map<uint32_t, InstId> rings_of(const Loops& loops) {
  std::map<uint32_t, InstId> out;
  for (const auto& [loop, r] : loops) out.emplace(r.barriers, loop);
  return out;
}

bool has_mbarriers(const KernelPlan& plan) {
  // Rings of cp.async need none without a producer; where one ring is of them, all are.
  return !plan.streams.empty() || (!plan.rings.empty() && (!plan.rings.begin()->second.copies || plan.roles));
}

}  // namespace

void start_rings(Lowering& x) {
  if (!has_mbarriers(x.plan)) return;
  const auto positions = [&](const auto& loops) {
    const auto rings = rings_of(loops);
    for (const auto& [barriers, loop] : rings) {
      const auto v = x.var(x.b.getInt32Ty());
      x.store(v, x.i32(0));
      x.ring_position_.emplace(loop, v);
    }
    for (const auto& [loop, r] : loops) x.ring_position_.emplace(loop, x.ring_position_.at(rings.at(r.barriers)));
  };
  positions(x.plan.rings);
  positions(x.plan.streams);
}

void prepare_rings(Lowering& x) {
  if (!has_mbarriers(x.plan)) return;
  HopperOps& h = *hopper_ops(x.d);
  x.if_then(x.b.CreateICmpEQ(x.thread(), x.i32(x.producing() ? x.plan.consumers() : 0)), [&] {
    for (const auto& [barriers, loop] : rings_of(x.plan.rings)) {
      const RingPlan& r = x.plan.rings.at(loop);
      for (unsigned s = 0; s < r.stages; ++s) {
        h.mbarrier_init(full(x, r, x.i32(s)), r.copies ? KernelPlan::kProducers : 1);
        h.mbarrier_init(empty(x, r, x.i32(s)), readers(r, x.plan.warp_bits));
      }
    }
    for (const auto& [barriers, loop] : rings_of(x.plan.streams)) prepare_stream(x, x.plan.streams.at(loop));
    h.fence_mbarrier_init();
  });
  if (!x.producing()) return x.barrier();
  h.warp_sync();
  if (x.plan.copying_producer()) h.named_barrier(kProducerBarrier, KernelPlan::kProducers);
  h.named_barrier_arrive(kConsumerBarrier, x.plan.block_threads());
}

namespace {

Values multiply_by_warp(Lowering& x, const RingPlan& r, const RingRun& run) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  llvm::Type* i32 = b.getInt32Ty();
  StageFragments consumer(x, r);
  std::vector<Lowering::Var> vars;
  for (Value* v : run.init) {
    vars.push_back(x.var(v->getType()));
    x.store(vars.back(), v);
  }
  Value* speaker = b.CreateICmpEQ(x.lane(), x.i32(0));
  const auto trip_var = x.var(i32);
  x.store(trip_var, x.i32(0));
  llvm::BasicBlock *top = x.block("ring"), *done = x.block("drained");
  b.CreateCondBr(b.CreateICmpNE(run.trips, x.i32(0)), top, done);
  b.SetInsertPoint(top);
  Value* trip = x.load(trip_var);
  Value* number = b.CreateAdd(run.base, trip);
  Value* s = b.CreateURem(number, x.i32(r.stages));
  h.mbarrier_wait(full(x, r, s), b.CreateUDiv(number, x.i32(r.stages)));
  consumer.stage(stage(x, r, s), vars);
  h.warp_sync();
  x.if_then(speaker, [&] { h.mbarrier_arrive(empty(x, r, s)); });
  // The stage of the trip before is refilled: by now the other warps have left it, too, or soon will.
  Value* ahead = b.CreateAdd(trip, x.i32(r.stages - 1));
  x.if_then(b.CreateAnd(run.producer, b.CreateAnd(b.CreateICmpNE(trip, x.i32(0)), b.CreateICmpULT(ahead, run.trips))), [&] { run.issue(ahead); });
  h.warp_sync();
  Value* next = b.CreateAdd(trip, x.i32(1));
  x.store(trip_var, next);
  b.CreateCondBr(b.CreateICmpULT(next, run.trips), top, done);
  b.SetInsertPoint(done);
  Values out;
  for (const auto& v : vars) out.push_back(x.load(v));
  return out;
}

}  // namespace

Value* swizzled(Lowering& x, const RingPlan::Operand& o, Value* row, Value* byte) {
  // Panels of row_bytes; the swizzle exchanges address bits 4.. with bits 7...
  llvm::IRBuilder<>& b = x.b;
  Value* panel = b.CreateMul(b.CreateUDiv(byte, x.i32(o.row_bytes)), x.i32(o.panel_bytes()));
  Value* at = b.CreateAdd(b.CreateAdd(panel, b.CreateMul(row, x.i32(o.row_bytes))), b.CreateURem(byte, x.i32(o.row_bytes)));
  const uint32_t mask = (1u << o.swizzle()) - 1;
  return b.CreateXor(at, b.CreateShl(b.CreateAnd(b.CreateLShr(at, x.i32(7)), x.i32(mask)), x.i32(4)));
}

MmaKind integer_kind(Lowering& x, InstId mma, bool swapped) {
  const auto sign = [&](const char* name) { return x.f.attr(mma, static_cast<size_t>(attr_index(x.f.def(mma), name))) != 0; };
  const bool a = sign(swapped ? "signedness_rhs" : "signedness_lhs"), b = sign(swapped ? "signedness_lhs" : "signedness_rhs");
  return a ? (b ? MmaKind::S8 : MmaKind::S8U8) : b ? MmaKind::U8S8 : MmaKind::U8;
}

Trips loop_trips(Lowering& x, InstId i) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  const auto operands = f.operands(i);
  const bool is_unsigned = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "unsignedCmp"))) != 0;
  Value *lower = x.scalar(operands[0]), *upper = x.scalar(operands[1]), *step = x.scalar(operands[2]);
  llvm::Type* type = lower->getType();
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* zero = llvm::ConstantInt::get(type, 0);
  Value* runs = is_unsigned ? b.CreateICmpULT(lower, upper) : b.CreateICmpSLT(lower, upper);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(step);
  if (!known || (is_unsigned ? known->isZero() : !known->getValue().isStrictlyPositive()))
    x.trap_if(b.CreateAnd(is_unsigned ? b.CreateICmpEQ(step, zero) : b.CreateICmpSLE(step, zero), runs), Code::T0106);
  // The difference of two numbers of either reading is right as an unsigned one.
  Value* trips = b.CreateAdd(b.CreateUDiv(b.CreateSub(b.CreateSub(upper, lower), one), step), one);
  return {lower, step, b.CreateZExtOrTrunc(b.CreateSelect(runs, trips, zero), b.getInt32Ty())};
}

void fill_all(Lowering& x, Value* trips, const std::function<void(Value*)>& issue) {
  llvm::IRBuilder<>& b = x.b;
  const auto k = x.var(b.getInt32Ty());
  x.store(k, x.i32(0));
  llvm::BasicBlock *fill = x.block("fill"), *filled = x.block("filled");
  b.CreateCondBr(b.CreateICmpNE(trips, x.i32(0)), fill, filled);
  b.SetInsertPoint(fill);
  Value* trip = x.load(k);
  issue(trip);
  Value* next = b.CreateAdd(trip, x.i32(1));
  x.store(k, next);
  b.CreateCondBr(b.CreateICmpULT(next, trips), fill, filled);
  b.SetInsertPoint(filled);
}

void fill_first(Lowering& x, Value* producer, Value* trips, unsigned stages, const std::function<void(Value*)>& issue) {
  llvm::IRBuilder<>& b = x.b;
  x.if_then(producer, [&] { fill_all(x, b.CreateSelect(b.CreateICmpULT(trips, x.i32(stages)), trips, x.i32(stages)), issue); });
  hopper_ops(x.d)->warp_sync();
}

Values initial(Lowering& x, const RingPlan& r, ValueId v) { return x.is_zero(v) ? Values() : x.get(v, x.plan.mma.at(r.mma).result); }

bool lower_ring_loop(Lowering& x, InstId i, const RingPlan& r) {
  if (r.copies && !x.plan.roles) return lower_copy_ring(x, i, r);
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  const auto operands = f.operands(i);
  const Trips trips = loop_trips(x, i);
  Values init;
  if (!x.producing()) init = r.sync ? x.get(operands[3 + r.carried], x.plan.mma.at(r.mma).result) : initial(x, r, operands[3 + r.carried]);
  if (!x.plan.roles) x.settle_for_bulk_copies(x.has_order(r.a.load) || x.has_order(r.b.load));
  Value* base = x.load(x.ring_position_.at(i));
  bool ok = true;
  const RingPlan::Operand* loads[] = {&r.a, &r.b};
  const auto issue = [&](Value* trip) { ok = fill_stage(x, r, loads, trips, base, trip) && ok; };
  if (x.producing()) {
    if (!x.skipping()) {
      if (r.copies)
        ok = produce_copies(x, i, r, trips, base);
      else
        fill_all(x, trips.count, issue);
    }
    x.store(x.ring_position_.at(i), b.CreateAdd(base, trips.count));
    return ok;
  }
  Value* producer = x.plan.roles ? nullptr : b.CreateICmpEQ(x.thread(), x.i32(0));
  if (producer) fill_first(x, producer, trips.count, r.stages, issue);
  RingRun run{base, trips.count, std::move(init), producer, issue, {}};
  const Layout& l = x.plan.mma.at(r.mma).result;
  if (x.plan.alternate) {
    // A warpgroup begins when all stages of the other have been full, those of products behind the loop among them: before, a wait for a stage could
    // see the round before last.
    HopperOps& h = *hopper_ops(x.d);
    Value* turn = x.consumer_group();
    h.named_barrier(b.CreateAdd(turn, x.i32(kTurnBarrier)), 2 * x.plan.threads());
    run.last_issued = [&x, &h, turn, i, end = b.CreateAdd(base, trips.count)] {
      await_singles(x, i, end);
      h.named_barrier_arrive(x.b.CreateSub(x.i32(kTurnBarrier + 1), turn), 2 * x.plan.threads());
    };
  }
  const Values out = r.sync ? multiply_by_warp(x, r, run) : multiply_by_group(x, r, run);
  x.store(x.ring_position_.at(i), b.CreateAdd(base, trips.count));
  // Other warps may still read this loop's stages, which the next ring's copies overwrite. This ring's own next run waits for its empty
  // barriers.
  if (!x.plan.roles && x.plan.rings.size() + x.plan.streams.size() > 1) x.pending_.shared = true;
  const ValueId result = f.result(i, r.carried);
  x.set(result, x.convert(out, x.element(result), l, x.layout(result), element_bits(x.shape(result))));
  return ok;
}

}  // namespace tile
