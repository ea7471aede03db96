// Products by wgmma from the stages of a ring. The unit multiplies P (64 rows an instruction) by Q; P is the loop's left operand, or the right
// one when the transpose is computed. P comes from shared memory, or through registers where the unit could not read it as it lies there.
#include <algorithm>

#include "backend/ptx/lower_ring.h"

namespace tile {
namespace {

MmaKind kind_of(Lowering& x, const RingPlan& r) {
  switch (r.element) {
    case ElementType::F16: return MmaKind::F16F32;
    case ElementType::BF16: return MmaKind::BF16F32;
    case ElementType::TF32: return MmaKind::TF32F32;
    case ElementType::I8: return integer_kind(x, r.mma, r.swapped);
    default: return MmaKind::F8F32;
  }
}

/// Reads P's fragments, whose rows run along M in shared memory: words two at a time, bytes as pairs that ldmatrix transposes.
class Fragments {
 public:
  Fragments(Lowering& x, const RingPlan& r, Value* group, unsigned blocks) : x_(x), b_(x.b), r_(r) {
    const auto bit = [&](Value* v, unsigned k) { return b_.CreateAnd(b_.CreateLShr(v, x.i32(k)), x.i32(1)); };
    const auto shl = [&](Value* v, unsigned k) { return b_.CreateShl(v, x.i32(k)); };
    Value *lane = x.lane(), *warp = b_.CreateAnd(x.warp(), x.i32(3)), *t = b_.CreateAnd(lane, x.i32(3)), *g = b_.CreateLShr(lane, x.i32(2));
    Value* first = b_.CreateMul(group, x.i32(64 * blocks));
    const bool bytes = r.element_bytes == 1;
    const auto order = row_bits(bytes ? RowOrder::Bytes : RowOrder::Words);
    for (unsigned m = 0; m < blocks; ++m) {
      Value* row = b_.CreateAdd(first, x.i32(64 * m));
      for (unsigned k = 0; k < 2; ++k) row = b_.CreateAdd(row, shl(bit(warp, k), static_cast<unsigned>(order[4 + k])));
      if (bytes) {
        // Row r of matrix n: k = 4 (r / 2) + r % 2, the odd matrices two further; the two of a half are exchanged in rows 4 to 7, so that
        // the eight rows of one access lie in different banks.
        Value *in = b_.CreateAnd(lane, x.i32(7)), *matrix = b_.CreateLShr(lane, x.i32(3));
        Value* k = b_.CreateAdd(shl(b_.CreateLShr(in, x.i32(1)), 2), bit(in, 0));
        k = b_.CreateAdd(k, shl(b_.CreateXor(bit(matrix, 0), bit(in, 2)), 1));
        k = b_.CreateAdd(k, shl(bit(matrix, 1), 4));
        at_.push_back({swizzled(x, r.p(), k, row)});
      } else {
        for (unsigned k = 0; k < 3; ++k) row = b_.CreateAdd(row, shl(bit(g, k), static_cast<unsigned>(order[k])));
        Value* byte = shl(row, 2);
        at_.push_back({swizzled(x, r.p(), t, byte), swizzled(x, r.p(), b_.CreateAdd(t, x.i32(4)), byte)});
      }
    }
    if (bytes) {
      Value* low = b_.CreateICmpULT(t, x.i32(2));
      even_ = b_.CreateSelect(low, x.i32(0x6420), x.i32(0x2064));
      odd_ = b_.CreateSelect(low, x.i32(0x7531), x.i32(0x3175));
    }
  }

  /// Four words: 64 rows, 32 bytes of K.
  Values load(Value* stage, unsigned block, unsigned step) {
    const uint32_t ahead = r_.p().offset + step * (32 / r_.element_bytes) * r_.p().row_bytes;  // whole swizzle periods
    const auto at = [&](size_t k) { return b_.CreateAdd(b_.CreateAdd(stage, at_[block][k]), x_.i32(ahead)); };
    if (r_.element_bytes == 1) {
      const Values v = x_.d.ldmatrix(4, true, at(0));
      Values out;
      for (const size_t half : {0, 2})
        for (Value* selector : {even_, odd_}) out.push_back(x_.d.byte_permute(v[half], v[half + 1], selector));
      return out;
    }
    Values out = x_.d.load_shared(b_.getInt32Ty(), 2, at(0));
    for (Value* v : x_.d.load_shared(b_.getInt32Ty(), 2, at(1))) out.push_back(v);
    return out;
  }

 private:
  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const RingPlan& r_;
  std::vector<Values> at_;   ///< by block: offsets in the operand
  Value *even_ = nullptr, *odd_ = nullptr;
};

}  // namespace

Values multiply_by_group(Lowering& x, const RingPlan& r, const RingRun& run) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  llvm::Type* i32 = b.getInt32Ty();
  Value *base = run.base, *trips = run.trips, *producer = run.producer;
  // One accumulator for every 64 rows of this warpgroup.
  const unsigned blocks = 1u << (r.p_bits() - 6 - r.p_groups()), n = 1u << (r.q_bits() - r.q_groups()), steps = r.k_steps();
  const MmaKind kind = kind_of(x, r);
  llvm::Type* type = r.element == ElementType::I8 ? static_cast<llvm::Type*>(i32) : b.getFloatTy();
  // An accumulator that starts at zero is not written: the first product overwrites it.
  const Values& init = run.init;
  const bool from_zero = init.empty();
  std::vector<WgmmaAccumulator> acc;
  std::vector<WgmmaAccumulator*> in_flight;
  for (unsigned k = 0; k < blocks; ++k) acc.push_back(h.wgmma_accumulator(kind, n));
  const size_t regs = acc[0].registers();
  for (unsigned k = 0; k < blocks; ++k) in_flight.push_back(&acc[k]);
  const Walk wp = walk(r.p(), 64), wq = walk(r.q(), n);
  Value* group = h.warp_uniform(b.CreateLShr(x.warp(), x.i32(2)));
  const auto share = [&](unsigned groups, uint32_t bytes) { return groups ? b.CreateMul(group, x.i32(bytes)) : static_cast<Value*>(x.i32(0)); };
  Value* my_p = b.CreateAdd(x.i32(r.p().offset), share(r.p_groups(), wp.block * blocks));
  Value* my_q = b.CreateAdd(x.i32(r.q().offset), share(r.q_groups(), wq.block));
  std::optional<Fragments> fragments;
  if (r.p_registers) fragments.emplace(x, r, r.p_groups() ? group : static_cast<Value*>(x.i32(0)), blocks);
  // Who says that a stage is read: each warp of those that it has loaded from, else the warpgroup, as its products are.
  Value* speaker = b.CreateICmpEQ(r.p_registers ? x.lane() : b.CreateAnd(x.thread(), x.i32(127)), x.i32(0));
  const auto release = [&](Value* when, Value* number) {
    h.warp_sync();
    x.if_then(when ? b.CreateAnd(speaker, when) : speaker, [&] { h.mbarrier_arrive(empty(x, r, b.CreateURem(number, x.i32(r.stages)))); });
  };

  const auto trip_var = x.var(i32);
  x.store(trip_var, x.i32(0));
  // Results, or with `promote` the sums so far. The products have one way in and one way out: where paths with and without them met before
  // the wait, ptxas would serialise every product of the kernel (its message C7514).
  std::vector<Lowering::Var> vars(blocks * regs);
  for (auto& v : vars) v = x.var(type);
  const auto start = [&](size_t k) { return from_zero ? llvm::Constant::getNullValue(type) : init[k]; };
  llvm::BasicBlock *enter = x.block("products"), *skip = x.block("no.products"), *after = x.block("after.products");
  b.CreateCondBr(b.CreateICmpNE(trips, x.i32(0)), enter, skip);
  b.SetInsertPoint(skip);
  if (run.last_issued) run.last_issued();
  for (size_t k = 0; k < vars.size(); ++k) x.store(vars[k], start(k));
  b.CreateBr(after);
  b.SetInsertPoint(enter);
  for (unsigned k = 0; k < blocks; ++k) {
    if (r.promote || from_zero)
      h.wgmma_forget(acc[k]);
    else
      h.wgmma_write(acc[k], std::span(init).subspan(k * regs, regs));
  }
  if (r.promote)
    for (size_t k = 0; k < vars.size(); ++k) x.store(vars[k], start(k));
  // Operands in registers are loaded half a stage at a time: one half while the products of the other run. Those of a stage's last products
  // must keep their registers until the next stage's wait, so they pass through variables to it.
  const unsigned parts = r.p_registers && steps > 1 ? 2 : 1, per = steps / parts;
  std::vector<Lowering::Var> held;
  if (r.p_registers && !r.promote)
    for (unsigned k = 0; k < blocks * per * 4; ++k) {
      held.push_back(x.var(i32));
      x.store(held.back(), x.i32(0));
    }
  const auto still_held = [&] {
    Values out;
    for (const auto& v : held) out.push_back(x.load(v));
    return out;
  };

  llvm::BasicBlock *top = x.block("ring"), *done = x.block("drained");
  b.CreateBr(top);
  b.SetInsertPoint(top);
  Value* trip = x.load(trip_var);
  Value* number = b.CreateAdd(base, trip);
  Value* s = b.CreateURem(number, x.i32(r.stages));
  h.mbarrier_wait(full(x, r, s), b.CreateUDiv(number, x.i32(r.stages)));
  if (r.copies) h.fence_proxy_async(true);  // the copies are ordinary writes of the producer's threads
  Value* from = stage(x, r, s);
  Value* earlier = b.CreateICmpNE(trip, x.i32(0));
  Value *from_p = b.CreateAdd(from, my_p), *from_q = b.CreateAdd(from, my_q);
  const bool e5m2 = r.element == ElementType::F8E5M2;
  Values loaded;   // by the part before
  for (unsigned part = 0; part < parts; ++part) {
    std::vector<Values> words;
    if (fragments)
      for (unsigned k = 0; k < per; ++k)
        for (unsigned m = 0; m < blocks; ++m) words.push_back(fragments->load(from, m, part * per + k));
    h.wgmma_fence();
    for (unsigned j = 0; j < per; ++j)
      for (unsigned m = 0; m < blocks; ++m) {
        const uint32_t k = part * per + j;
        WgmmaOperand p{nullptr, {}, r.p().mn_major, e5m2};
        if (fragments) {
          p = {nullptr, words[j * blocks + m], false, e5m2};
        } else {
          p.descriptor = descriptor(x, from_p, wp.offset(k) + m * wp.block, wp.fields);
        }
        Value* add = k > 0 ? nullptr : r.promote ? static_cast<Value*>(b.getFalse()) : from_zero ? earlier : nullptr;
        h.wgmma(acc[m], p, {descriptor(x, from_q, wq.offset(k), wq.fields), {}, r.q().mn_major, e5m2}, add);
      }
    h.wgmma_commit();
    Values mine;
    for (const Values& w : words) mine.insert(mine.end(), w.begin(), w.end());
    if (part > 0) {
      h.wgmma_wait(1, in_flight, loaded);
    } else if (!r.promote) {
      // The products of the trip before are done: its stage is empty and can be filled for a later trip.
      h.wgmma_wait(1, in_flight, still_held());
      release(earlier, b.CreateSub(number, x.i32(1)));
    }
    loaded = std::move(mine);
  }
  if (r.promote) {
    h.wgmma_wait(0, in_flight, loaded);
    release(nullptr, number);
    size_t at = 0;
    for (auto& a : acc)
      for (Value* v : h.wgmma_read(a)) {
        x.store(vars[at], b.CreateFAdd(x.load(vars[at]), v));
        ++at;
      }
  }
  for (size_t k = 0; k < held.size(); ++k) x.store(held[k], loaded[k]);
  if (producer) {
    Value* ahead = b.CreateAdd(trip, x.i32(r.stages - 1));
    x.if_then(b.CreateAnd(producer, b.CreateAnd(earlier, b.CreateICmpULT(ahead, trips))), [&] { run.issue(ahead); });
  }
  h.warp_sync();
  Value* next = b.CreateAdd(trip, x.i32(1));
  x.store(trip_var, next);
  b.CreateCondBr(b.CreateICmpULT(next, trips), top, done);
  b.SetInsertPoint(done);
  if (run.last_issued) run.last_issued();
  if (!r.promote) {
    h.wgmma_wait(0, in_flight, still_held());
    release(nullptr, b.CreateSub(b.CreateAdd(base, trips), x.i32(1)));
    size_t at_var = 0;
    for (auto& a : acc)
      for (Value* v : h.wgmma_read(a)) x.store(vars[at_var++], v);
  }
  h.warp_sync();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  Values out;
  for (const auto& v : vars) out.push_back(x.load(v));
  return out;
}

}  // namespace tile
