// Loads that are made one iteration early (backend/plan/ahead.cpp): the first before the loop, each later one where the loop takes the tile
// of the one before.
#include "backend/ptx/lowering.h"

namespace tile {
namespace {

/// Makes the load for iteration `counter` into the variables. What the body has computed for its own iteration stays.
bool fetch(Lowering& x, const Lowering::Ahead& ahead, Value* counter) {
  const Function& f = x.f;
  std::vector<std::pair<ValueId, Values>> kept{{ahead.counter, x.own(ahead.counter)}};
  std::vector<std::pair<ValueId, Lowering::View>> views;
  for (const InstId i : ahead.plan->slice)
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r) {
      kept.emplace_back(f.result(i, r), x.own(f.result(i, r)));
      views.emplace_back(f.result(i, r), x.view(f.result(i, r)));
    }
  x.set(ahead.counter, {counter});
  for (const InstId i : ahead.plan->slice) {
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r) x.view(f.result(i, r)) = {};
    if (!x.one(i)) return false;
  }
  store_carried(x, f.result(ahead.plan->load), ahead.next, load_tile(x, ahead.plan->load));
  for (auto& [v, regs] : kept) x.set(v, std::move(regs));
  for (auto& [v, view] : views) x.view(v) = std::move(view);
  return true;
}

}  // namespace

bool load_first(Lowering& x, InstId loop, Value* counter, Value* runs) {
  const auto loads = x.plan.ahead.find(loop);
  if (loads == x.plan.ahead.end()) return true;
  bool ok = true;
  for (const AheadLoad& load : loads->second) {
    Lowering::Ahead ahead{&load, x.f.region(loop).first_arg, carried_vars(x, x.f.result(load.load))};
    // mem2reg wants a value on every path, also where the loop does not run.
    for (const auto& v : ahead.next) x.store(v, llvm::PoisonValue::get(v.type));
    x.if_then(runs, [&] { ok = ok && fetch(x, ahead, counter); });
    x.ahead[load.load] = std::move(ahead);
  }
  return ok;
}

bool load_next(Lowering& x, InstId i, Values& tile) {
  const Lowering::Ahead& ahead = x.ahead.at(i);
  tile = load_carried(x, x.f.result(i), ahead.next);
  bool ok = true;
  x.if_then(ahead.follows, [&] { ok = fetch(x, ahead, ahead.following); });
  return ok;
}

}  // namespace tile
