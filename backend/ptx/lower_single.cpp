// Products outside of loops, whose loaded operands come through the ring that loops of the kernel have, too: a producer fills their stages behind
// those of the loop before, while its last products run. The left operand may come from registers: there the tile of a product lies as the fragments
// of wgmma's left operand do.
#include <algorithm>
#include <set>

#include "backend/ptx/lower_ring.h"

namespace tile {
namespace {

/// The tile of a product before that the left operand of product `mma` was computed from, one element of one, if nothing reads it later: its registers are
/// free. Empty where there is none.
Values spent(Lowering& x, InstId mma, const Layout& l) {
  const auto read_later = [&](ValueId v) {
    for (InstId i = mma + 1; i < x.f.insts.size(); ++i)
      if (std::ranges::count(x.f.operands(i), v) != 0) return true;
    return false;
  };
  std::vector<ValueId> work{x.f.operands(mma)[0]};
  std::set<ValueId> seen;
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    const InstId i = x.definition(v);
    if (i == kNone || !x.is_tile(v) || !seen.insert(v).second) continue;
    if (x.plan.rings.contains(i)) {
      if (x.element(v) == ElementType::F32 && x.layout(v) == l && !read_later(v)) return x.own(v);
    } else if (x.f.insts[i].op == Opcode::Reshape || is_elementwise(x.f.insts[i].op)) {
      const auto operands = x.f.operands(i);
      work.insert(work.end(), operands.begin(), operands.end());
    }
  }
  return {};
}

/// The product with its left operand in registers.
Values multiply_from_registers(Lowering& x, const RingPlan& r, const RingRun& run, const Values& a) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const MmaPlan& plan = x.plan.mma.at(r.mma);
  const unsigned blocks = 1u << (r.m_bits - 6 - r.group_bits), n = 1u << r.n_bits, steps = r.k_steps();
  // Two elements of K in a word; the bits that follow count the fragment's words, then steps of K, then blocks of 64 rows.
  Values words;
  for (size_t k = 0; k < a.size(); k += 2) words.push_back(pair_of(x, a[k], a[k + 1]));
  const auto fragment = [&](unsigned trip, unsigned step, unsigned block) {
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(((block * r.trips + trip) * steps + step) * 4);
    return Values(at, at + 4);
  };
  const Values& init = run.init;
  const bool from_zero = init.empty();
  std::vector<WgmmaAccumulator> acc;
  for (unsigned k = 0; k < blocks; ++k) acc.push_back(h.wgmma_accumulator(r.element == ElementType::BF16 ? MmaKind::BF16F32 : MmaKind::F16F32, n));
  std::vector<WgmmaAccumulator*> in_flight;
  for (auto& one : acc) in_flight.push_back(&one);
  const size_t regs = acc[0].registers();
  // An accumulator that starts at zero is not read. Named the registers that the left operand came from, the assembler gives it these; else it may
  // find no others (C7512).
  const Values free = from_zero ? spent(x, r.mma, plan.a) : Values();
  for (unsigned k = 0; k < blocks; ++k) {
    if (free.size() >= blocks * regs)
      h.wgmma_write(acc[k], std::span(free).subspan(k * (free.size() / blocks), regs));
    else if (from_zero)
      h.wgmma_forget(acc[k]);
    else
      h.wgmma_write(acc[k], std::span(init).subspan(k * regs, regs));
  }
  const Walk w = walk(r.b, n);
  Value* speaker = b.CreateICmpEQ(b.CreateAnd(x.thread(), x.i32(127)), x.i32(0));
  const auto at = [&](unsigned trip) { return b.CreateURem(b.CreateAdd(run.base, x.i32(trip)), x.i32(r.stages)); };
  /// Issues what a stage gives to the blocks from `first` on.
  const auto issue = [&](unsigned trip, unsigned first, unsigned end) {
    if (first == 0) h.mbarrier_wait(full(x, r, at(trip)), b.CreateUDiv(b.CreateAdd(run.base, x.i32(trip)), x.i32(r.stages)));
    Value* from = b.CreateAdd(stage(x, r, at(trip)), x.i32(r.b.offset));
    h.wgmma_fence();
    for (unsigned k = 0; k < steps; ++k)
      for (unsigned m = first; m < end; ++m)
        h.wgmma(acc[m], {nullptr, fragment(trip, k, m), false, false}, {descriptor(x, from, w.offset(k), w.fields), {}, r.b.mn_major, false},
                from_zero && trip == 0 && k == 0 ? static_cast<Value*>(b.getFalse()) : nullptr);
    h.wgmma_commit();
  };
  const auto wait = [&](unsigned trip, unsigned first, unsigned end, unsigned pending) {
    Values held;
    for (unsigned k = 0; k < steps; ++k)
      for (unsigned m = first; m < end; ++m)
        for (Value* v : fragment(trip, k, m)) held.push_back(v);
    h.wgmma_wait(pending, std::span(in_flight).subspan(first, end - first), held);
  };
  const auto release = [&](unsigned trip) {
    h.warp_sync();
    x.if_then(speaker, [&] { h.mbarrier_arrive(empty(x, r, at(trip))); });
  };
  Values out;
  if (blocks > 1 && r.trips < r.stages) {
    // One block of 64 rows after the other: the result of one is narrowed before the accumulator of the next is needed.
    for (unsigned m = 0; m < blocks; ++m) {
      for (unsigned trip = 0; trip < r.trips; ++trip) {
        issue(trip, m, m + 1);
        if (trip > 0) wait(trip - 1, m, m + 1, 1);
      }
      wait(r.trips - 1, m, m + 1, 0);
      for (Value* v : h.wgmma_read(acc[m])) out.push_back(v);
    }
    for (unsigned trip = 0; trip < r.trips; ++trip) release(trip);
    return out;
  }
  for (unsigned trip = 0; trip < r.trips; ++trip) {
    issue(trip, 0, blocks);
    if (trip > 0) {
      wait(trip - 1, 0, blocks, 1);
      release(trip - 1);
    }
    const unsigned ahead = trip + r.stages - 1;
    if (run.producer && trip > 0 && ahead < r.trips) {
      x.if_then(run.producer, [&] { run.issue(x.i32(ahead)); });
      h.warp_sync();
    }
  }
  wait(r.trips - 1, 0, blocks, 0);
  release(r.trips - 1);
  for (auto& one : acc)
    for (Value* v : h.wgmma_read(one)) out.push_back(v);
  return out;
}

}  // namespace

bool lower_single(Lowering& x, InstId i, const RingPlan& r) {
  llvm::IRBuilder<>& b = x.b;
  std::vector<const RingPlan::Operand*> loads;
  bool ordered = false;
  for (const auto* o : {&r.a, &r.b}) {
    if (o->load == kNone) continue;
    loads.push_back(o);
    ordered = ordered || x.has_order(o->load);
  }
  // Both may come by way of the stages.
  Values init, left;
  if (!x.producing()) {
    init = initial(x, r, x.f.operands(i)[2]);
    if (r.a_registers) left = x.get(x.f.operands(i)[0], x.plan.mma.at(i).a);
  }
  if (!x.plan.roles) x.settle_for_bulk_copies(ordered);
  Value* base = x.load(x.ring_position_.at(i));
  const auto issue = [&](Value* trip) { (void)fill_stage(x, r, loads, {}, base, trip); };
  x.store(x.ring_position_.at(i), b.CreateAdd(base, x.i32(r.trips)));
  if (x.producing()) {
    if (!x.skipping()) fill_all(x, x.i32(r.trips), issue);
    return true;
  }
  Value* producer = x.plan.roles ? nullptr : b.CreateICmpEQ(x.thread(), x.i32(0));
  if (producer) fill_first(x, producer, x.i32(r.trips), r.stages, issue);
  const RingRun run{base, x.i32(r.trips), std::move(init), producer, issue, {}};
  const Values out = r.a_registers ? multiply_from_registers(x, r, run, left) : multiply_by_group(x, r, run);
  if (!x.plan.roles && x.plan.rings.size() > 1) x.pending_.shared = true;
  const ValueId result = x.f.result(i);
  x.set(result, x.convert(out, x.element(result), x.plan.mma.at(i).result, x.layout(result), element_bits(x.shape(result))));
  return true;
}

void await_singles(Lowering& x, InstId loop, Value* end) {
  llvm::IRBuilder<>& b = x.b;
  for (const auto& [i, r] : x.plan.rings) {
    if (!r.single || i < loop) continue;
    for (unsigned trip = 0; trip < r.trips; ++trip) {
      hopper_ops(x.d)->mbarrier_wait(full(x, r, b.CreateURem(end, x.i32(r.stages))), b.CreateUDiv(end, x.i32(r.stages)));
      end = b.CreateAdd(end, x.i32(1));
    }
  }
}

}  // namespace tile
