// How rings share a kernel's shared memory, registers and warps: stages, a producer, blocks on an SM, warpgroups in turn.
#include <algorithm>
#include <bit>

#include "backend/plan/plan.h"

namespace tile {
namespace {

/// Makes one ring of those of all loops, which a producer can fill ahead of the end of a loop. False where their stages are left by different
/// numbers of readers.
bool share_ring(KernelPlan& plan) {
  RingPlan& first = plan.rings.begin()->second;
  uint32_t bytes = 0;
  for (const auto& [loop, r] : plan.rings) {
    if (r.sync || readers(r, plan.warp_bits) != readers(first, plan.warp_bits)) return false;
    bytes = std::max(bytes, r.stage_bytes);
  }
  const uint32_t barriers = first.barriers;
  for (auto& [loop, r] : plan.rings) {
    r.barriers = barriers;
    r.stage_bytes = bytes;
    r.stages = std::min(RingPlan::kMaxStages, (RingPlan::kSharedBytes - RingPlan::kFirstStage) / bytes);
  }
  return true;
}

/// Gives the rings a producer where they can have one, and leaves them as they are otherwise.
void take_producer(const Module& m, const Function& f, KernelPlan& plan) {
  const auto apart = plan.rings;
  if (plan.rings.size() == 1 || share_ring(plan)) plan.roles = find_roles(m, f, plan);
  if (!plan.roles) plan.rings = apart;
}

bool stands_in_loop(const Function& f, InstId inner) {
  for (InstId i = 0; i < inner; ++i)
    if ((f.insts[i].op == Opcode::For || f.insts[i].op == Opcode::Loop) && f.insts[i].next > inner) return true;
  return false;
}

/// The power of two that is known to divide a scalar expression.
uint64_t divisor(const Facts& facts, const ScalarNodes& s, int n) {
  if (n < 0) return Facts::kMost;
  const ScalarNodes::Node& node = s.nodes[static_cast<size_t>(n)];
  using K = ScalarNodes::Kind;
  if (node.kind == K::Value) return facts.divisor(node.value);
  if (node.kind == K::Constant) return std::min(uint64_t{1} << std::countr_zero(static_cast<uint64_t>(node.number)), Facts::kMost);
  const uint64_t a = divisor(facts, s, node.left), b = divisor(facts, s, node.right);
  return node.kind == K::Mul ? std::min(a * b, Facts::kMost) : std::min(a, b);
}

/// Whether all rows of an operand are known to begin at multiples of 16 bytes, so that its pieces are copied in these.
bool aligned(const Module& m, const Function& f, const Facts& facts, const RingPlan::Operand& o, unsigned element_bytes) {
  const uint64_t elements = 16 / element_bytes;
  if (o.pointers) {
    const auto whole = [&](int n) { return divisor(facts, o.pointers->scalars, n) >= elements; };
    const AffinePointers& p = o.pointers->pointers;
    bool all = facts.divisor(p.base) >= 16;
    for (const AffineTile& t : p.trips) all = all && whole(t.start);
    for (const AffineTile& t : p.moves) all = all && whole(t.start) && (t.splat() || whole(t.step[static_cast<size_t>(o.outer)]));
    return all;
  }
  const ValueId view = f.operand(o.load, 0);
  const Type& type = m.types.get(f.type(view));
  const bool gathers = type.kind == TypeKind::GatherScatterView;
  const Facts::Array& array = facts.array(view);
  bool all = array.base >= 16;
  for (size_t k = 0; k < type.shape.size(); ++k) {
    const auto d = gathers ? k : static_cast<size_t>(type.dim_map[k]);
    if (static_cast<int>(k) != o.inner) all = all && d < array.strides.size() && array.strides[d] >= elements;
    if (static_cast<int>(k) == o.inner && gathers) all = all && facts.divisor(f.group(o.load, 1)[k]) >= elements;
  }
  return all;
}

size_t count_products(const Function& f) {
  return static_cast<size_t>(std::count_if(f.insts.begin(), f.insts.end(), [](const Inst& i) { return is_product(i.op); }));
}

}  // namespace

bool is_product(Opcode op) { return op == Opcode::MmaF || op == Opcode::MmaI || op == Opcode::MmaFScaled; }

unsigned single_registers(const RingPlan& r) {
  const unsigned left = r.k_bits + (r.trips > 1 ? log2_of(r.trips) : 0);
  return (1u << (r.m_bits + r.n_bits - 7 - r.group_bits)) + (r.a_registers ? 1u << (r.m_bits + left - 8 - r.group_bits) : 0u);
}

unsigned forced_stages(const CompileOptions& options, unsigned most) {
  const std::string stages = options.choice("stages");
  return stages.empty() ? most : std::clamp(static_cast<unsigned>(std::atoi(stages.c_str())), std::min(2u, most), most);
}

uint32_t store_bytes(const Module& m, const Function& f, const KernelPlan& plan) {
  uint32_t most = 0;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const bool by_pointers = f.insts[i].op == Opcode::StorePtrTko;
    if ((f.insts[i].op != Opcode::StoreViewTko && !by_pointers) || plan.stores.contains(i)) continue;
    const TypeId type = f.type(f.operand(i, by_pointers ? 1 : 0));
    const auto shape = m.types.shape_of(type);
    const unsigned bytes = info(m.types.element_of(type)).storage;
    most = std::max(most, bytes << element_bits(shape));
  }
  return most;
}

void plan_occupancy(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan) {
  if (plan.rings.empty()) return;
  bool nested = false, large = false, small = plan.streams.empty(), few = false;
  uint32_t stage_bytes = 0;
  // A product outside of loops has its operands and sums in registers, besides those of the ring's tile.
  small = small && count_products(f) == plan.rings.size();
  for (const auto& [loop, r] : plan.rings) {
    nested = nested || stands_in_loop(f, loop);
    const unsigned registers = r.sync ? 128 : r.a_registers ? single_registers(r) : 1u << (r.p_bits() + r.q_bits() - 7 - r.group_bits + (r.promote ? 1 : 0));
    large = large || registers > 64;
    small = small && !r.sync && registers <= 64;
    stage_bytes = std::max(stage_bytes, r.stage_bytes);
    few = few || (!r.single && std::min(r.m_bits, r.n_bits) <= 6);
  }
  const uint32_t half = (RingPlan::kSharedBytes / 2 - RingPlan::kFirstStage) / stage_bytes;
  const uint32_t stores = std::min(store_bytes(m, f, plan), RingPlan::kSharedBytes / 2) + (plan.stores.empty() ? 0 : kStoreBytes * (plan.consumers() / 128));
  const uint32_t beside = (RingPlan::kSharedBytes - RingPlan::kFirstStage - stores) / stage_bytes;
  const std::string roles = options.choice("roles");
  unsigned most = RingPlan::kMaxStages;
  if (roles != "off" && (nested || large || plan.loops || roles == "on") && beside >= 3) take_producer(m, f, plan);
  if (plan.roles) {
    most = beside;
  } else if (small && !nested && half >= (few ? 4u : 3u)) {
    // Products of few rows wait for memory, often in fewer blocks than there are SMs: one block with all stages then has more on its way.
    most = half;
    plan.blocks_per_sm = 2;
  }
  for (auto& [loop, r] : plan.rings) {
    r.stages = forced_stages(options, std::min(r.stages, most));
    plan.ring_bytes = std::max(plan.ring_bytes, r.end());
  }
  place_stores(m, f, plan);
}

void plan_copies(const Module& m, const Function& f, const Target& target, const CompileOptions& options, KernelPlan& plan) {
  if (plan.rings.empty()) return;
  const std::string roles = options.choice("roles");
  bool nested = false, sync = false, large = false, whole_pieces = true;
  uint32_t stage_bytes = 0;
  for (const auto& [loop, r] : plan.rings) {
    // The producer's threads are half as many as those that multiply: too few for pieces of 8 bytes and less.
    for (const auto* o : {&r.a, &r.b}) whole_pieces = whole_pieces && aligned(m, f, plan.facts, *o, r.element_bytes);
    nested = nested || stands_in_loop(f, loop);
    sync = sync || r.sync;
    large = large || (!r.sync && r.p_bits() + r.q_bits() - 7 - r.group_bits > 6);
    stage_bytes = std::max(stage_bytes, r.stage_bytes);
  }
  const uint32_t stores = std::min(store_bytes(m, f, plan) << (plan.alternate ? 1 : 0), RingPlan::kSharedBytes / 2);
  const uint32_t beside = (RingPlan::kSharedBytes - RingPlan::kFirstStage - stores) / stage_bytes;
  if (!sync && target.wgmma() && roles != "off" && ((whole_pieces && (nested || large || plan.loops)) || roles == "on") && beside >= 3)
    take_producer(m, f, plan);
  for (auto& [loop, r] : plan.rings) {
    if (plan.roles) r.stages = std::min(RingPlan::kMaxStages, beside);
    r.stages = forced_stages(options, r.stages);
    plan.ring_bytes = std::max(plan.ring_bytes, r.end());
  }
  if (!plan.roles && !sync && !large && 2 * (plan.ring_bytes + RingPlan::kReserved) <= target.max_shared() + RingPlan::kReserved) plan.blocks_per_sm = 2;
}

bool may_alternate(const Module& m, const Function& f, const CompileOptions& options, const KernelPlan& plan) {
  if (options.choice("alternate") == "off" || options.choice("roles") == "off" || options.choice("store") == "direct") return false;
  std::vector<InstId> loops;
  unsigned stores = 0;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const Opcode op = f.insts[i].op;
    if (op == Opcode::For) loops.push_back(i);
    if (op == Opcode::If || op == Opcode::Loop) return false;
    stores += op == Opcode::StoreViewTko ? 1 : 0;
  }
  if (plan.loops) return loops.size() == 1;
  if (loops.size() != 2 || loops[1] > f.insts[loops[0]].next || stores != 1) return false;
  const Region& r = f.region(loops[0]);
  for (uint32_t k = 1; k < r.arg_count; ++k)
    if (!m.types.is_token(f.type(r.first_arg + k))) return false;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (i > loops[1] && i < f.insts[loops[1]].next) continue;
    const bool inside = i > loops[0] && i < f.insts[loops[0]].next;
    const Effect e = f.def(i).effect;
    if ((e == Effect::Read || e == Effect::Write || e == Effect::ReadWrite) && !(inside && (f.insts[i].op == Opcode::StoreViewTko || f.insts[i].op == Opcode::LoadViewTko))) return false;
  }
  return true;
}

bool take_turns(const KernelPlan& plan) {
  size_t loops = 0;
  for (const auto& [loop, r] : plan.rings) {
    if (r.sync || r.group_bits != 0 || (r.single && loops == 0)) return false;
    loops += r.single ? 0 : 1;
  }
  return loops == 1;
}

bool turns_fit(const Function& f, const KernelPlan& plan) {
  unsigned behind = 0, stages = 0;
  for (const auto& [loop, r] : plan.rings) behind += r.single ? r.trips : 0, stages = r.stages;
  if (behind != 0 && behind >= stages) return false;
  if (count_products(f) != plan.rings.size()) return false;
  if (plan.loops) return true;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (plan.rings.contains(i)) i = f.insts[i].next - 1;
    else if (f.insts[i].op == Opcode::LoadViewTko && !std::binary_search(plan.staged.begin(), plan.staged.end(), i)) return false;
  }
  return true;
}

}  // namespace tile
