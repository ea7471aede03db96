// Loops that compute with their products: right operands come through stages as in a ring, everything else is code like any other.
#include <algorithm>

#include "backend/ptx/lower_ring.h"

namespace tile {

bool lower_stream_loop(Lowering& x, InstId i, const StreamPlan& r) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const auto inits = f.operands(i).subspan(3);
  const Region& body = f.region(i);
  const Trips trips = loop_trips(x, i);
  x.settle_for_bulk_copies();
  Value* base = x.load(x.ring_position_.at(i));
  Value* producer = b.CreateICmpEQ(x.thread(), x.i32(0));
  bool ok = true;
  std::vector<const RingPlan::Operand*> loads;
  for (const auto& o : r.loads) loads.push_back(&o);
  const auto issue = [&](Value* trip) { ok = fill_stage(x, r, loads, trips, base, trip) && ok; };
  fill_first(x, producer, trips.count, r.stages, issue);

  Lowering::Frame frame{i, {}, {}, x.block("latch"), x.block("endfor")};
  std::vector<ValueId> args;
  for (uint32_t k = 0; k < inits.size(); ++k) {
    args.push_back(body.first_arg + 1 + k);
    frame.args.push_back(carried_vars(x, args.back()));
  }
  for (uint32_t k = 0; k < inits.size(); ++k)
    if (x.is_tile(args[k])) store_carried(x, args[k], frame.args[k], x.get(inits[k], x.layout(args[k])));
  const auto trip_var = x.var(b.getInt32Ty());
  x.store(trip_var, x.i32(0));
  llvm::BasicBlock* top = x.block("stream");
  b.CreateCondBr(b.CreateICmpNE(trips.count, x.i32(0)), top, frame.after);
  b.SetInsertPoint(top);
  Value* trip = x.load(trip_var);
  llvm::Type* type = trips.lower->getType();
  Value* iv = b.CreateAdd(trips.lower, b.CreateMul(b.CreateZExtOrTrunc(trip, type), trips.step));
  x.set(body.first_arg, {iv});
  for (size_t k = 0; k < args.size(); ++k) x.set(args[k], load_carried(x, args[k], frame.args[k]));
  Value* number = b.CreateAdd(base, trip);
  Value* s = b.CreateURem(number, x.i32(r.stages));
  h.mbarrier_wait(full(x, r, s), b.CreateUDiv(number, x.i32(r.stages)));
  const StreamPlan* outer = x.stream_;
  Value* outer_stage = x.stream_stage_;
  x.stream_ = &r;
  x.stream_stage_ = stage(x, r, s);
  const Lowering::Pending before = x.pending_;
  x.pending_ = {true, true, true};
  x.loops_.push_back(frame);
  bool ended = false;
  if (!x.region(body, &ended)) return false;
  x.loops_.pop_back();
  x.pending_ = x.pending_ | before;  // the body may not run at all
  x.pending_.shared = true;          // other warps may still read this loop's stages
  x.stream_ = outer;
  x.stream_stage_ = outer_stage;
  if (!ended) b.CreateBr(frame.next);
  b.SetInsertPoint(frame.next);
  // Every product has waited for its result, so the stage is read.
  x.if_then(b.CreateICmpEQ(b.CreateAnd(x.thread(), x.i32(127)), x.i32(0)), [&] { h.mbarrier_arrive(empty(x, r, s)); });
  Value* ahead = b.CreateAdd(trip, x.i32(r.stages - 1));
  x.if_then(b.CreateAnd(producer, b.CreateAnd(b.CreateICmpNE(trip, x.i32(0)), b.CreateICmpULT(ahead, trips.count))), [&] { issue(ahead); });
  h.warp_sync();
  Value* next = b.CreateAdd(trip, x.i32(1));
  x.store(trip_var, next);
  b.CreateCondBr(b.CreateICmpULT(next, trips.count), top, frame.after);
  b.SetInsertPoint(frame.after);
  x.store(x.ring_position_.at(i), b.CreateAdd(base, trips.count));
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
    if (x.is_tile(f.result(i, k))) x.set(f.result(i, k), x.convert(load_carried(x, args[k], frame.args[k]), x.element(args[k]), x.layout(args[k]), x.layout(f.result(i, k)), element_bits(x.shape(args[k]))));
  return ok;
}

bool lower_stream_product(Lowering& x, InstId i) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const StreamPlan& r = *x.stream_;
  const StreamPlan::Product& p = *r.product(i);
  const MmaPlan& plan = x.plan.mma.at(i);
  const auto operands = x.f.operands(i);
  // Two elements of K in a word; the bits that follow count the fragment's words, then steps of K, then blocks of 64 rows.
  const Values a = x.get(operands[0], plan.a);
  Values words;
  for (size_t k = 0; k < a.size(); k += 2) {
    const auto bits = [&](Value* v) { return b.CreateZExt(b.CreateBitCast(v, b.getInt16Ty()), b.getInt32Ty()); };
    words.push_back(b.CreateOr(bits(a[k]), b.CreateShl(bits(a[k + 1]), 16)));
  }
  const unsigned steps = 1u << (p.k_bits - 4), blocks = 1u << (p.m_bits - 6 - r.group_bits), n = 1u << p.n_bits;
  const bool from_zero = x.is_zero(operands[2]);
  std::vector<WgmmaAccumulator> acc;
  std::vector<WgmmaAccumulator*> in_flight;
  for (unsigned k = 0; k < blocks; ++k) acc.push_back(h.wgmma_accumulator(p.bf16 ? MmaKind::BF16F32 : MmaKind::F16F32, n));
  const size_t regs = acc[0].registers();
  const Values init = from_zero ? Values() : x.get(operands[2], plan.result);
  for (unsigned k = 0; k < blocks; ++k) {
    if (!from_zero) h.wgmma_write(acc[k], std::span(init).subspan(k * regs, regs));
    in_flight.push_back(&acc[k]);
  }
  const RingPlan::Operand& o = r.loads[p.load];
  const Walk w = walk(o, n);
  Value* from = b.CreateAdd(x.stream_stage_, x.i32(o.offset));
  h.wgmma_fence();
  for (unsigned k = 0; k < steps; ++k)
    for (unsigned m = 0; m < blocks; ++m) {
      const size_t at = (size_t{m} * steps + k) * 4;
      h.wgmma(acc[m], {nullptr, Values(words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(at + 4)), false, false},
              {descriptor(x, from, w.offset(k), w.fields), {}, o.mn_major, false}, from_zero && k == 0 ? static_cast<Value*>(b.getFalse()) : nullptr);
    }
  h.wgmma_commit();
  h.wgmma_wait(0, in_flight);
  Values out;
  for (auto& one : acc)
    for (Value* v : h.wgmma_read(one)) out.push_back(v);
  const ValueId result = x.f.result(i);
  x.set(result, x.convert(out, x.element(result), plan.result, x.layout(result), element_bits(x.shape(result))));
  return true;
}

}  // namespace tile
