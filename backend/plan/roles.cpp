// Whether a kernel gets a producer: warps of their own that fill its rings, ahead of the consumers also from one run of a loop to the next.
// The producer runs the kernel's control flow around the rings and the scalar code that the copies' indices need, and nothing else.
#include <algorithm>

#include "backend/plan/plan.h"

namespace tile {
namespace {

class RoleFinder {
 public:
  RoleFinder(const Module& m, const Function& f, const KernelPlan& plan) : m_(m), f_(f), plan_(plan), def_(f.value_types.size(), kNone) {
    roles_.insts.assign(f.insts.size(), false);
    roles_.values.assign(f.value_types.size(), false);
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
  }

  std::optional<KernelPlan::Roles> find() {
    if (leaves_early()) return std::nullopt;
    std::map<InstId, std::vector<const RingPlan::Operand*>> loads;
    for (const auto& [loop, ring] : plan_.rings) {
      // The producer is ahead by whole runs of a loop, so that several must share one ring: their stages lie in the same place.
      if (ring.sync || ring.barriers != plan_.rings.begin()->second.barriers) return std::nullopt;
      if (ring.condition != kNone) return std::nullopt;
      loads[loop] = {&ring.b};
      if (!ring.a_registers) loads[loop].push_back(&ring.a);
    }
    // Streams may be several if they share one ring of stages and barriers.
    for (const auto& [loop, stream] : plan_.streams) {
      if (!plan_.rings.empty() || stream.barriers != plan_.streams.begin()->second.barriers) return std::nullopt;
      for (const auto& o : stream.loads) loads[loop].push_back(&o);
    }
    for (const auto& [loop, of_loop] : loads) {
      if (!frame(loop)) return std::nullopt;
      for (const auto* o : of_loop)
        if (ordered(o->load) || o->chosen != kNone) return std::nullopt;
    }
    for (const auto& [loop, of_loop] : loads) {
      roles_.insts[loop] = true;
      const bool is_loop = f_.insts[loop].op == Opcode::For;
      for (size_t k = 0; k < 3 && is_loop; ++k)
        if (!need(f_.operands(loop)[k])) return std::nullopt;
      inside_ = is_loop ? loop : kNone;
      const auto ring = plan_.rings.find(loop);
      const bool copies = ring != plan_.rings.end() && ring->second.copies;
      for (const auto* o : of_loop)
        if (!(o->pointers ? sums(*o->pointers) : indices(o->load, copies))) return std::nullopt;
      inside_ = kNone;
    }
    return std::move(roles_);
  }

 private:
  bool within(InstId i, InstId outer) const { return i > outer && i < f_.insts[outer].next; }

  /// A way out of a region from inside an `if` is control flow that only the whole program knows.
  bool leaves_early() const {
    for (InstId i = 0; i < f_.insts.size(); ++i) {
      if (f_.insts[i].op != Opcode::If) continue;
      for (InstId k = i + 1; k < f_.insts[i].next; ++k) {
        const Opcode op = f_.insts[k].op;
        if (op == Opcode::Break || op == Opcode::Return) return true;
        if (op == Opcode::Continue && !in_loop_of(k, i)) return true;
      }
    }
    return false;
  }
  /// Whether a loop inside `outer` contains i.
  bool in_loop_of(InstId i, InstId outer) const {
    for (InstId k = outer + 1; k < i; ++k)
      if ((f_.insts[k].op == Opcode::For || f_.insts[k].op == Opcode::Loop) && within(i, k)) return true;
    return false;
  }

  /// The copies run ahead, so that nothing may come before them.
  bool ordered(InstId load) const {
    for (const ValueId v : f_.operands(load))
      if (m_.types.is_token(f_.type(v)) && (def_[v] == kNone || f_.insts[def_[v]].op != Opcode::MakeToken)) return true;
    return false;
  }

  /// What stands around a ring.
  bool frame(InstId loop) {
    for (InstId i = 0; i < loop; ++i) {
      if (!within(loop, i)) continue;
      const Opcode op = f_.insts[i].op;
      if (op != Opcode::For && op != Opcode::If) return false;
      roles_.insts[i] = true;
      for (size_t k = 0; k < (op == Opcode::For ? 3u : 1u); ++k)
        if (!need(f_.operands(i)[k])) return false;
    }
    return true;
  }

  /// What says where a tile lies. Bulk copies know the array from its tensor map.
  bool indices(InstId load, bool view) {
    for (const ValueId v : f_.group(load, 1))
      if (!need(v)) return false;
    return !view || need(f_.operand(load, 0));
  }
  bool sums(const PointerLoad& load) {
    for (const auto& node : load.scalars.nodes)
      if (node.kind == ScalarNodes::Kind::Value && !need(node.value)) return false;
    return need(load.pointers.base);
  }

  bool need(ValueId v) {
    if (v < f_.param_count || roles_.values[v]) return true;
    if (m_.types.is_token(f_.type(v))) return true;
    roles_.values[v] = true;
    const InstId i = def_[v];
    if (i == kNone) return argument(v);
    switch (f_.insts[i].op) {
      case Opcode::Constant: case Opcode::Assume: case Opcode::GetTileBlockId: case Opcode::GetNumTileBlocks: case Opcode::MakeTensorView:
      case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::GetTensorShape: case Opcode::GetIndexSpaceShape:
        break;
      default:
        if (!is_elementwise(f_.insts[i].op)) return false;
    }
    if (m_.types.is_tile(f_.type(v)) && !m_.types.is_scalar(f_.type(v))) return false;
    roles_.insts[i] = true;
    for (const ValueId o : f_.operands(i))
      if (!need(o)) return false;
    return true;
  }

  /// An argument of a region: the number of a loop around, or what it carries.
  bool argument(ValueId v) {
    for (InstId i = 0; i < f_.insts.size(); ++i) {
      if (f_.insts[i].op != Opcode::For) continue;
      const Region& r = f_.region(i);
      if (v < r.first_arg || v >= r.first_arg + r.arg_count) continue;
      if (i == inside_) return v == r.first_arg;
      if (!roles_.insts[i] || plan_.rings.contains(i) || plan_.streams.contains(i)) return false;
      if (v == r.first_arg) return true;
      const uint32_t k = v - r.first_arg - 1;
      const InstId last = f_.last_of(r);
      return m_.types.is_scalar(f_.type(v)) && last != kNone && f_.insts[last].op == Opcode::Continue && need(f_.operands(i)[3 + k]) && need(f_.operands(last)[k]);
    }
    return false;
  }

  const Module& m_;
  const Function& f_;
  const KernelPlan& plan_;
  std::vector<InstId> def_;
  KernelPlan::Roles roles_;
  InstId inside_ = kNone;   ///< ring whose indices are looked at
};

}  // namespace

std::optional<KernelPlan::Roles> find_roles(const Module& m, const Function& f, const KernelPlan& plan) { return RoleFinder(m, f, plan).find(); }

}  // namespace tile
