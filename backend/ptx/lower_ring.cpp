// Loops of products fed by bulk tensor copies: one thread keeps a ring of stages full, all warpgroups multiply from it.
//
// Stage numbers count on over all runs of the loop in the kernel, so that mbarrier phases never start anew: number n uses stage n % stages
// in its round n / stages.
#include "backend/ptx/device_hopper.h"
#include "backend/ptx/lowering.h"

namespace tile {
namespace {

/// Shared address of an element of the ring.
Value* at(Lowering& x, const RingPlan& r, uint32_t offset) { return x.b.CreateAdd(x.shared_base(), x.i32(r.offset + offset)); }
Value* stage(Lowering& x, const RingPlan& r, Value* s) { return x.b.CreateAdd(at(x, r, 0), x.b.CreateMul(s, x.i32(r.stage_bytes))); }
Value* full(Lowering& x, const RingPlan& r, Value* s) { return x.b.CreateAdd(at(x, r, r.barriers() - r.offset), x.b.CreateShl(s, x.i32(3))); }
Value* empty(Lowering& x, const RingPlan& r, Value* s) { return x.b.CreateAdd(full(x, r, s), x.i32(8 * r.stages)); }

/// First word of a matrix descriptor's address field for a shared address; the other fields come from wgmma_descriptor().
Value* descriptor(Lowering& x, Value* address, uint32_t offset, uint64_t fields) {
  Value* low = x.b.CreateLShr(x.b.CreateAdd(address, x.i32(offset)), x.i32(4));
  return x.b.CreateOr(x.b.CreateZExt(low, x.b.getInt64Ty()), x.b.getInt64(fields));
}

/// Descriptor fields and offsets of an operand: `block` counts 64 elements of M (or the warpgroup's columns of N), `k_step` 16 of K.
struct Walk {
  uint64_t fields;
  uint32_t k_step, block;    // bytes
  uint32_t panel_every = 0;  // K-major: k steps in a panel
  uint32_t panel = 0;
  [[nodiscard]] uint32_t offset(uint32_t k) const { return panel_every ? k / panel_every * panel + k % panel_every * k_step : k * k_step; }
};

Walk walk(const RingPlan::Operand& o, uint32_t block_elements) {
  Walk w{};
  const uint32_t row = o.row_bytes;
  if (o.mn_major) {
    // Rows run along K; a panel holds row / 2 elements of M or N. Unswizzled layouts are not made here, so the leading offset goes from panel to panel.
    w.fields = wgmma_descriptor(o.panel_bytes(), 8 * row, o.swizzle());
    w.k_step = 16 * row;
    w.block = block_elements * 2 / row * o.panel_bytes();
  } else {
    w.fields = wgmma_descriptor(16, 8 * row, o.swizzle());
    w.k_step = 32;
    w.panel_every = row / 32;
    w.panel = o.panel_bytes();
    w.block = block_elements * row;
  }
  return w;
}

}  // namespace

void prepare_rings(Lowering& x) {
  if (x.plan.rings.empty()) return;
  HopperOps& h = *hopper_ops(x.d);
  for (const auto& [loop, r] : x.plan.rings) {
    const auto v = x.var(x.b.getInt32Ty());
    x.store(v, x.i32(0));
    x.ring_position_.emplace(loop, v);
  }
  x.if_then(x.b.CreateICmpEQ(x.thread(), x.i32(0)), [&] {
    for (const auto& [loop, r] : x.plan.rings)
      for (unsigned s = 0; s < r.stages; ++s) {
        h.mbarrier_init(full(x, r, x.i32(s)), 1);
        h.mbarrier_init(empty(x, r, x.i32(s)), 1u << r.group_bits);
      }
    h.fence_mbarrier_init();
  });
  x.barrier();
}

bool lower_ring_loop(Lowering& x, InstId i, const RingPlan& r) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const auto operands = f.operands(i);
  const Region& body = f.region(i);
  const bool is_unsigned = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "unsignedCmp"))) != 0;
  Value *lower = x.scalar(operands[0]), *upper = x.scalar(operands[1]), *step = x.scalar(operands[2]);
  llvm::Type *i32 = b.getInt32Ty(), *type = lower->getType();
  const auto less = [&](Value* p, Value* q) { return is_unsigned ? b.CreateICmpULT(p, q) : b.CreateICmpSLT(p, q); };
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* runs = less(lower, upper);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(step);
  if (!known || (is_unsigned ? known->isZero() : !known->getValue().isStrictlyPositive())) {
    Value* zero = llvm::ConstantInt::get(type, 0);
    x.trap_if(b.CreateAnd(is_unsigned ? b.CreateICmpEQ(step, zero) : b.CreateICmpSLE(step, zero), runs), Code::T0106, i);
  }
  // The difference of two numbers of either reading is right as an unsigned one.
  Value* trips = b.CreateAdd(b.CreateUDiv(b.CreateSub(b.CreateSub(upper, lower), one), step), one);
  trips = b.CreateZExtOrTrunc(b.CreateSelect(runs, trips, llvm::ConstantInt::get(type, 0)), i32);

  x.settle_for_bulk_copies();
  Value* base = x.load(x.ring_position_.at(i));
  Value* producer = b.CreateICmpEQ(x.thread(), x.i32(0));
  bool ok = true;

  const auto issue = [&](Value* trip) {
    Value* number = b.CreateAdd(base, trip);
    Value* s = b.CreateURem(number, x.i32(r.stages));
    Value* round = b.CreateUDiv(number, x.i32(r.stages));
    x.if_then(b.CreateICmpNE(round, x.i32(0)), [&] { h.mbarrier_wait(empty(x, r, s), b.CreateSub(round, x.i32(1))); });
    h.mbarrier_arrive_expect(full(x, r, s), x.i32(r.a.bytes() + r.b.bytes()));
    x.set(body.first_arg, {b.CreateAdd(lower, b.CreateMul(b.CreateZExtOrTrunc(trip, type), step))});
    for (const InstId k : r.index_slice) ok = ok && x.one(k);
    for (const RingPlan::Operand* o : {&r.a, &r.b}) {
      const auto index = f.group(o->load, 1);
      const auto& tile = x.m.types.get(f.type(f.operand(o->load, 0))).shape;
      Values start;
      for (const int k : o->tile_dim) {
        if (k < 0) {
          start.push_back(x.i32(0));
          continue;
        }
        Value* n = b.CreateZExtOrTrunc(x.scalar(index[static_cast<size_t>(k)]), i32);
        start.push_back(b.CreateMul(n, x.i32(tile[static_cast<size_t>(k)])));
      }
      for (uint32_t p = 0; p < o->panels; ++p) {
        Values here = start;
        if (p > 0) here[0] = b.CreateAdd(here[0], x.i32(p * o->row_bytes / 2));
        h.tma_load(x.map_address(o->map), here, b.CreateAdd(stage(x, r, s), x.i32(o->offset + p * o->panel_bytes())), full(x, r, s));
      }
    }
  };

  // Fill the ring.
  x.if_then(producer, [&] {
    const auto k = x.var(i32);
    x.store(k, x.i32(0));
    llvm::BasicBlock *fill = x.block("fill"), *filled = x.block("filled");
    Value* first = b.CreateSelect(b.CreateICmpULT(trips, x.i32(r.stages)), trips, x.i32(r.stages));
    b.CreateCondBr(b.CreateICmpNE(first, x.i32(0)), fill, filled);
    b.SetInsertPoint(fill);
    Value* trip = x.load(k);
    issue(trip);
    Value* next = b.CreateAdd(trip, x.i32(1));
    x.store(k, next);
    b.CreateCondBr(b.CreateICmpULT(next, first), fill, filled);
    b.SetInsertPoint(filled);
  });
  h.warp_sync();

  // One accumulator for every 64 rows of this warpgroup.
  const unsigned groups_m = std::min(r.group_bits, r.m_bits - 6), groups_n = r.group_bits - groups_m;
  const unsigned blocks = 1u << (r.m_bits - 6 - groups_m), n = 1u << (r.n_bits - groups_n);
  const Layout& l = x.plan.mma.at(r.mma).result;
  // An accumulator that starts at zero is not written: the first product overwrites it.
  const bool from_zero = x.is_zero(operands[3 + r.carried]);
  const Values init = from_zero ? Values() : x.get(operands[3 + r.carried], l);
  std::vector<WgmmaAccumulator> acc;
  std::vector<WgmmaAccumulator*> in_flight;
  for (unsigned k = 0; k < blocks; ++k) acc.push_back(h.wgmma_accumulator(r.bf16 ? MmaKind::BF16F32 : MmaKind::F16F32, n));
  const size_t regs = acc[0].registers();
  for (unsigned k = 0; k < blocks; ++k) in_flight.push_back(&acc[k]);
  const Walk wa = walk(r.a, 64), wb = walk(r.b, n);
  Value* group = h.warp_uniform(b.CreateLShr(x.warp(), x.i32(2)));
  Value* my_a = groups_m ? b.CreateMul(group, x.i32(wa.block * blocks)) : x.i32(r.a.offset);
  Value* my_b = b.CreateAdd(x.i32(r.b.offset), groups_n ? b.CreateMul(group, x.i32(wb.block)) : static_cast<Value*>(x.i32(0)));
  Value* speaker = b.CreateICmpEQ(b.CreateAnd(x.thread(), x.i32(127)), x.i32(0));

  const auto trip_var = x.var(i32);
  x.store(trip_var, x.i32(0));
  // The products have one way in and one way out: where paths with and without them met before the wait, ptxas would serialise every
  // product of the kernel (its message C7514).
  std::vector<Lowering::Var> vars(blocks * regs);
  for (auto& v : vars) v = x.var(b.getFloatTy());
  llvm::BasicBlock *enter = x.block("products"), *skip = x.block("no.products"), *after = x.block("after.products");
  b.CreateCondBr(b.CreateICmpNE(trips, x.i32(0)), enter, skip);
  b.SetInsertPoint(skip);
  for (size_t k = 0; k < vars.size(); ++k) x.store(vars[k], from_zero ? llvm::ConstantFP::get(b.getFloatTy(), 0.0) : init[k]);
  b.CreateBr(after);
  b.SetInsertPoint(enter);
  for (unsigned k = 0; k < blocks; ++k)
    if (!from_zero) h.wgmma_write(acc[k], std::span(init).subspan(k * regs, regs));
  llvm::BasicBlock *top = x.block("ring"), *done = x.block("drained");
  b.CreateBr(top);
  b.SetInsertPoint(top);
  Value* trip = x.load(trip_var);
  Value* number = b.CreateAdd(base, trip);
  Value* s = b.CreateURem(number, x.i32(r.stages));
  h.mbarrier_wait(full(x, r, s), b.CreateUDiv(number, x.i32(r.stages)));
  h.wgmma_fence();
  Value* from = stage(x, r, s);
  Value* earlier = b.CreateICmpNE(trip, x.i32(0));
  Value *from_a = b.CreateAdd(from, my_a), *from_b = b.CreateAdd(from, my_b);
  for (uint32_t k = 0; k < 1u << (r.k_bits - 4); ++k)
    for (unsigned m = 0; m < blocks; ++m)
      h.wgmma(acc[m], {descriptor(x, from_a, wa.offset(k) + m * wa.block, wa.fields), {}, r.a.mn_major, false},
              {descriptor(x, from_b, wb.offset(k), wb.fields), {}, r.b.mn_major, false}, from_zero && k == 0 ? earlier : nullptr);
  h.wgmma_commit();
  // The products of the trip before are done: its stage is empty and can be filled for a later trip.
  h.wgmma_wait(1, in_flight);
  x.if_then(b.CreateAnd(speaker, earlier), [&] { h.mbarrier_arrive(empty(x, r, b.CreateURem(b.CreateSub(number, x.i32(1)), x.i32(r.stages)))); });
  Value* ahead = b.CreateAdd(trip, x.i32(r.stages - 1));
  x.if_then(b.CreateAnd(producer, b.CreateAnd(earlier, b.CreateICmpULT(ahead, trips))), [&] { issue(ahead); });
  h.warp_sync();
  Value* next = b.CreateAdd(trip, x.i32(1));
  x.store(trip_var, next);
  b.CreateCondBr(b.CreateICmpULT(next, trips), top, done);
  b.SetInsertPoint(done);
  h.wgmma_wait(0, in_flight);
  Value* end = b.CreateAdd(base, trips);
  x.if_then(speaker, [&] { h.mbarrier_arrive(empty(x, r, b.CreateURem(b.CreateSub(end, x.i32(1)), x.i32(r.stages)))); });
  h.warp_sync();
  x.store(x.ring_position_.at(i), end);
  size_t at_var = 0;
  for (auto& a : acc)
    for (Value* v : h.wgmma_read(a)) x.store(vars[at_var++], v);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  Values out;
  for (const auto& v : vars) out.push_back(x.load(v));
  const ValueId result = f.result(i, r.carried);
  x.set(result, x.convert(out, x.element(result), l, x.layout(result), element_bits(x.shape(result))));
  return ok;
}

}  // namespace tile
