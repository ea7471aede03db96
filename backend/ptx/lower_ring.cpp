// Loops of products fed by bulk tensor copies: one thread keeps a ring of stages full, all warpgroups multiply from it.
//
// Stage numbers count on over all runs of the loop in the kernel, so that mbarrier phases never start anew: number n uses stage n % stages
// in its round n / stages.
#include <algorithm>
#include <functional>
#include <map>

#include "backend/ptx/lower_ring.h"

namespace tile {

void prepare_rings(Lowering& x) {
  if (x.plan.rings.empty() && x.plan.streams.empty()) return;
  HopperOps& h = *hopper_ops(x.d);
  const auto position = [&](InstId loop) {
    const auto v = x.var(x.b.getInt32Ty());
    x.store(v, x.i32(0));
    x.ring_position_.emplace(loop, v);
  };
  for (const auto& [loop, r] : x.plan.rings) position(loop);
  // Streams that share a ring go on counting where the one before has stopped.
  std::map<uint32_t, InstId> ring_of;
  for (const auto& [loop, r] : x.plan.streams) {
    const auto [it, is_new] = ring_of.emplace(r.barriers, loop);
    if (is_new) position(loop);
    if (!is_new) x.ring_position_.emplace(loop, x.ring_position_.at(it->second));
  }
  x.if_then(x.b.CreateICmpEQ(x.thread(), x.i32(0)), [&] {
    const auto init = [&](const auto& r, unsigned readers) {
      for (unsigned s = 0; s < r.stages; ++s) {
        h.mbarrier_init(full(x, r, x.i32(s)), 1);
        h.mbarrier_init(empty(x, r, x.i32(s)), readers);
      }
    };
    for (const auto& [loop, r] : x.plan.rings) init(r, r.sync || r.p_registers ? 1u << x.plan.warp_bits : 1u << r.group_bits);
    for (const auto& [barriers, loop] : ring_of) prepare_stream(x, x.plan.streams.at(loop));
    h.fence_mbarrier_init();
  });
  x.barrier();
}

namespace {

/// Products by mma.sync: every warp reads its fragments from the stage.
class SyncConsumer {
 public:
  SyncConsumer(Lowering& x, const RingPlan& r, InstId mma) : x_(x), b_(x.b), r_(r), mma_(mma), p_(x.plan.mma.at(mma)) {
    Layout warps = p_.result;
    for (int8_t& k : warps.lane) k = kCopies;
    const auto shape = x.shape(x.f.result(mma));
    warp_m_ = x.thread_coordinate(warps, shape, 0);
    warp_n_ = x.thread_coordinate(warps, shape, 1);
    const unsigned regs = p_.result.registers();
    // Register bits beyond the instruction's four accumulators count tiles along n, then along m.
    for (unsigned k = 0; k < regs; k += 4) {
      const uint32_t m = Lowering::register_coordinate(p_.result, shape, 0, k), n = Lowering::register_coordinate(p_.result, shape, 1, k);
      if (std::find(tiles_m_.begin(), tiles_m_.end(), m) == tiles_m_.end()) tiles_m_.push_back(m);
      if (std::find(tiles_n_.begin(), tiles_n_.end(), n) == tiles_n_.end()) tiles_n_.push_back(n);
    }
  }

  /// Adds the products of one stage to the accumulators.
  void stage(Value* from, const std::vector<Lowering::Var>& vars) {
    const unsigned steps = 1u << (r_.k_bits + log2_of(r_.element_bytes) - 5);
    const auto step = [&](Value* k) {
      widened_.clear();
      std::vector<Values> a, bb;
      for (const uint32_t m : tiles_m_) a.push_back(fragment(r_.a, from, b_.CreateAdd(warp_m_, x_.i32(m)), k, false));
      for (size_t n = 0; n < tiles_n_.size(); n += 2) {
        // Two neighbouring tiles of eight columns in one read.
        const bool pair = n + 1 < tiles_n_.size();
        const Values both = fragment(r_.b, from, b_.CreateAdd(warp_n_, x_.i32(tiles_n_[n])), k, true, pair);
        bb.push_back({both[0], both[1]});
        if (pair) bb.push_back({both[2], both[3]});
      }
      Values acc;
      for (const auto& v : vars) acc.push_back(x_.load(v));
      for (size_t m = 0; m < a.size(); ++m)
        for (size_t n = 0; n < bb.size(); ++n) product(a[m], bb[n], acc, (m * bb.size() + n) * 4);
      for (size_t k2 = 0; k2 < vars.size(); ++k2) x_.store(vars[k2], acc[k2]);
    };
    // Bytes that are gathered one by one are many loads; ahead of all steps at once they would fill the registers.
    if (r_.element_bytes == 1 && steps > 1) {
      x_.loop(steps, step);
    } else {
      for (unsigned k = 0; k < steps; ++k) step(x_.i32(k));
    }
  }

 private:
  /// 32 bytes of K of 16 rows (B: of 8 or 16 columns), as 32-bit words: A's four, B's two for each 8 columns.
  Values fragment(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair = true) {
    return o.mn_major ? across(o, from, first, k, is_b, pair) : along(o, from, first, k, is_b, pair);
  }

  Value* place(const RingPlan::Operand& o, Value* from, Value* row, Value* byte) {
    return b_.CreateAdd(b_.CreateAdd(from, x_.i32(o.offset)), swizzled(x_, o, row, byte));
  }

  /// Rows run along K: ldmatrix moves 16 bytes of a row to four lanes, whatever the element type.
  Values along(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair) {
    Value* lane = x_.lane();
    Value *low = b_.CreateAnd(lane, x_.i32(7)), *bit3 = b_.CreateAnd(b_.CreateLShr(lane, x_.i32(3)), x_.i32(1)), *bit4 = b_.CreateLShr(lane, x_.i32(4));
    Value* row = b_.CreateAdd(low, b_.CreateShl(is_b ? bit4 : bit3, x_.i32(3)));
    if (is_b && !pair) row = low;
    Value* byte = b_.CreateAdd(b_.CreateShl(is_b ? bit3 : bit4, x_.i32(4)), b_.CreateShl(k, x_.i32(5)));
    return x_.d.ldmatrix(is_b && !pair ? 2 : 4, false, place(o, from, b_.CreateAdd(first, row), byte));
  }

  /// Rows run along M or N. 16-bit elements are transposed on the way; others are gathered one by one.
  Values across(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair) {
    const unsigned size = r_.element_bytes;
    Value* lane = x_.lane();
    if (size == 2) {
      Value *low = b_.CreateAnd(lane, x_.i32(7)), *bit3 = b_.CreateAnd(b_.CreateLShr(lane, x_.i32(3)), x_.i32(1)), *bit4 = b_.CreateLShr(lane, x_.i32(4));
      Value* row = b_.CreateAdd(b_.CreateAdd(low, b_.CreateShl(is_b ? bit3 : bit4, x_.i32(3))), b_.CreateShl(k, x_.i32(4)));
      Value* column = is_b && !pair ? first : b_.CreateAdd(first, b_.CreateShl(is_b ? bit4 : bit3, x_.i32(3)));
      return x_.d.ldmatrix(is_b && !pair ? 2 : 4, true, place(o, from, row, b_.CreateShl(column, x_.i32(1))));
    }
    Value *g = b_.CreateLShr(lane, x_.i32(2)), *t = b_.CreateAnd(lane, x_.i32(3));
    const unsigned per_word = 4 / size, k_half = 16 / size;  // elements of K in a word, and in half the fragment
    llvm::Type* type = b_.getIntNTy(8 * size);
    Values out;
    for (unsigned word = 0; word < (is_b && !pair ? 2u : 4u); ++word) {
      // A: rows first, then the second half of K; B: the halves of K, then the next eight columns.
      const unsigned half = is_b ? word & 1 : word >> 1, eight = is_b ? word >> 1 : word & 1;
      Value* column = b_.CreateAdd(b_.CreateAdd(first, g), x_.i32(8 * eight));
      Value* packed = nullptr;
      for (unsigned e = 0; e < per_word; ++e) {
        Value* row = b_.CreateAdd(b_.CreateAdd(b_.CreateMul(t, x_.i32(per_word)), b_.CreateMul(k, x_.i32(2 * k_half))), x_.i32(half * k_half + e));
        Value* v = b_.CreateZExt(x_.d.load_shared(type, 1, place(o, from, row, b_.CreateMul(column, x_.i32(size))))[0], b_.getInt32Ty());
        packed = packed ? b_.CreateOr(packed, b_.CreateShl(v, 8 * size * e)) : v;
      }
      out.push_back(packed);
    }
    return out;
  }

  void product(const Values& a, const Values& bb, Values& acc, size_t at) {
    const auto add = [&](MmaKind kind, const Values& p, const Values& q) {
      const Values c(acc.begin() + static_cast<std::ptrdiff_t>(at), acc.begin() + static_cast<std::ptrdiff_t>(at + 4));
      const Values d = x_.d.mma(kind, p, q, c);
      std::copy(d.begin(), d.end(), acc.begin() + static_cast<std::ptrdiff_t>(at));
    };
    switch (r_.element) {
      case ElementType::F16: return add(MmaKind::F16F32, a, bb);
      case ElementType::BF16: return add(MmaKind::BF16F32, a, bb);
      case ElementType::TF32: return add(MmaKind::TF32F32, a, bb);
      case ElementType::I8: return add(integer_kind(x_, mma_, false), a, bb);
      default: {
        // f8 as f16: a word's two pairs become the two halves of K of one product. K is rearranged alike in both operands.
        add(MmaKind::F16F32, {wide(a[0], 0), wide(a[1], 0), wide(a[0], 1), wide(a[1], 1)}, {wide(bb[0], 0), wide(bb[0], 1)});
        add(MmaKind::F16F32, {wide(a[2], 0), wide(a[3], 0), wide(a[2], 1), wide(a[3], 1)}, {wide(bb[1], 0), wide(bb[1], 1)});
      }
    }
  }

  /// Two f8 of a word, the lower or the upper ones, as two f16.
  Value* wide(Value* word, unsigned upper) {
    const auto key = std::pair(word, upper);
    if (const auto it = widened_.find(key); it != widened_.end()) return it->second;
    Value* out = nullptr;
    for (unsigned k = 0; k < 2; ++k) {
      Value* byte = b_.CreateTrunc(b_.CreateLShr(word, 16 * upper + 8 * k), b_.getInt8Ty());
      Value* half = b_.CreateZExt(b_.CreateBitCast(convert_float(x_.d, r_.element, ElementType::F16, byte), b_.getInt16Ty()), b_.getInt32Ty());
      out = out ? b_.CreateOr(out, b_.CreateShl(half, 16)) : half;
    }
    return widened_[key] = out;
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const RingPlan& r_;
  InstId mma_;
  const MmaPlan& p_;
  Value *warp_m_ = nullptr, *warp_n_ = nullptr;
  std::vector<uint32_t> tiles_m_, tiles_n_;
  std::map<std::pair<Value*, unsigned>, Value*> widened_;
};

Values multiply_by_warp(Lowering& x, const RingPlan& r, const RingRun& run, ValueId init_value) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  llvm::Type* i32 = b.getInt32Ty();
  SyncConsumer consumer(x, r, r.mma);
  const Values init = x.get(init_value, x.plan.mma.at(r.mma).result);
  std::vector<Lowering::Var> vars;
  for (Value* v : init) {
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

bool lower_ring_loop(Lowering& x, InstId i, const RingPlan& r) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  const auto operands = f.operands(i);
  const Trips trips = loop_trips(x, i);
  if (!x.plan.roles) x.settle_for_bulk_copies();
  Value* base = x.load(x.ring_position_.at(i));
  bool ok = true;
  const RingPlan::Operand* loads[] = {&r.a, &r.b};
  const auto issue = [&](Value* trip) { ok = fill_stage(x, r, loads, trips, base, trip) && ok; };
  if (x.producing()) {
    fill_all(x, trips.count, issue);
    x.store(x.ring_position_.at(i), b.CreateAdd(base, trips.count));
    return ok;
  }
  Value* producer = x.plan.roles ? nullptr : b.CreateICmpEQ(x.thread(), x.i32(0));
  if (producer) fill_first(x, producer, trips.count, r.stages, issue);
  const RingRun run{base, trips.count, producer, issue};
  const Layout& l = x.plan.mma.at(r.mma).result;
  const Values out = r.sync ? multiply_by_warp(x, r, run, operands[3 + r.carried]) : multiply_by_group(x, r, run, operands[3 + r.carried]);
  x.store(x.ring_position_.at(i), b.CreateAdd(base, trips.count));
  // Other warps may still read this loop's stages, which the next ring's copies overwrite. This ring's own next run waits for its empty
  // barriers.
  if (!x.plan.roles && x.plan.rings.size() + x.plan.streams.size() > 1) x.pending_.shared = true;
  const ValueId result = f.result(i, r.carried);
  x.set(result, x.convert(out, x.element(result), l, x.layout(result), element_bits(x.shape(result))));
  return ok;
}

}  // namespace tile
