// Loads that run one iteration ahead of their loop: memory then works while the block computes.
#include <algorithm>
#include <optional>

#include "backend/plan/plan.h"

namespace tile {
namespace {

// Tiles that wait in registers, 32-bit words of a thread: more would cost the block its neighbours on the SM.
constexpr unsigned kMostWords = 32;

class AheadFinder {
 public:
  AheadFinder(const Module& m, const Function& f, const KernelPlan& plan, bool products) : m_(m), f_(f), plan_(plan), products_(products), def_(f.value_types.size(), kNone) {
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
  }

  std::vector<AheadLoad> find(InstId loop) {
    loop_ = loop;
    const Region& r = f_.region(loop);
    for (InstId i = r.begin; i < r.end; ++i)
      if (!may_be_passed(i)) return {};
    std::vector<AheadLoad> out;
    unsigned words = 0;
    for (InstId i = r.begin; i < r.end; i = f_.insts[i].next) {
      if (f_.insts[i].op != Opcode::LoadViewTko || std::binary_search(plan_.staged.begin(), plan_.staged.end(), i)) continue;
      auto load = ahead(i);
      const ValueId tile = f_.result(i);
      const unsigned n = plan_.layout[tile].registers() * ((info(m_.types.element_of(f_.type(tile))).storage + 3) / 4);
      if (!load || words + n > kMostWords) continue;
      words += n;
      out.push_back(*std::move(load));
    }
    return out;
  }

 private:
  bool inside(InstId i) const { return i != kNone && i > loop_ && i < f_.insts[loop_].next; }

  /// What a load may be moved across: nothing that waits for other blocks, or that takes the registers that it needs.
  bool may_be_passed(InstId i) const {
    switch (f_.insts[i].op) {
      case Opcode::AtomicRMWTko: case Opcode::AtomicCASTko: case Opcode::AtomicRedViewTko: case Opcode::MemoryFenceAliasTko: case Opcode::GdcWaitTko:
      case Opcode::GdcLaunchDependentsTko: case Opcode::Alloca: case Opcode::For: case Opcode::Loop:
        return false;
      case Opcode::MmaF: case Opcode::MmaI: case Opcode::MmaFScaled: return products_;
      case Opcode::LoadViewTko: case Opcode::StoreViewTko: case Opcode::LoadPtrTko: case Opcode::StorePtrTko:
        return f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "memory_ordering_semantics"))) == 0;
      default: return true;
    }
  }

  std::optional<AheadLoad> ahead(InstId i) const {
    AheadLoad out{i, {}};
    const ValueId view = f_.operand(i, 0);
    if (m_.types.get(f_.type(view)).kind == TypeKind::GatherScatterView) return std::nullopt;
    if (info(m_.types.element_of(f_.type(f_.result(i)))).memory_bits < 8) return std::nullopt;
    for (const ValueId v : f_.operands(i)) {
      // A token of the loop orders the load behind something in it.
      const bool token = m_.types.is_token(f_.type(v));
      if (token && inside(def_[v]) && f_.insts[def_[v]].op == Opcode::MakeToken) continue;
      if (token ? carried(v) || inside(def_[v]) : !computable(v, out.slice)) return std::nullopt;
    }
    std::sort(out.slice.begin(), out.slice.end());
    out.slice.erase(std::unique(out.slice.begin(), out.slice.end()), out.slice.end());
    return out;
  }

  bool carried(ValueId v) const {
    const Region& r = f_.region(loop_);
    return def_[v] == kNone && v >= r.first_arg + 1 && v < r.first_arg + r.arg_count;
  }

  /// Follows from the loop's counter and what does not change in the loop, by scalar operations and views made of them.
  bool computable(ValueId v, std::vector<InstId>& slice) const {
    const InstId i = def_[v];
    if (!inside(i)) return !carried(v);
    switch (f_.insts[i].op) {
      case Opcode::MakeTensorView: case Opcode::MakePartitionView: case Opcode::MakeStridedView: break;
      case Opcode::Constant: case Opcode::Assume: break;
      default:
        if (!is_elementwise(f_.insts[i].op)) return false;
    }
    if (m_.types.is_tile(f_.type(v)) && !m_.types.is_scalar(f_.type(v))) return false;
    for (const ValueId o : f_.operands(i))
      if (!computable(o, slice)) return false;
    slice.push_back(i);
    return true;
  }

  const Module& m_;
  const Function& f_;
  const KernelPlan& plan_;
  const bool products_;
  std::vector<InstId> def_;
  InstId loop_ = kNone;
};

}  // namespace

void plan_loads_ahead(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan) {
  const std::string how = options.choice("ahead");
  if (how == "off") return;
  AheadFinder finder(m, f, plan, how == "products");
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (f.insts[i].op != Opcode::For || plan.rings.contains(i) || plan.streams.contains(i)) continue;
    auto loads = finder.find(i);
    for (const AheadLoad& load : loads) plan.remarks.push_back({load.load, "loaded one iteration ahead", ""});
    if (!loads.empty()) plan.ahead.emplace(i, std::move(loads));
  }
}

}  // namespace tile
