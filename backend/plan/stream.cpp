// How a stream runs: which product waits a trip, where left operands lie, what fits into registers and shared memory.
#include <algorithm>
#include <set>

#include "backend/plan/plan.h"

namespace tile {
namespace {

constexpr uint32_t kSharedOfSm = 228 * 1024;

/// Registers that a block's threads have beside accumulators and operands: addresses, counters, row statistics.
constexpr unsigned kOtherRegisters = 25;

bool moves_only(Opcode op) { return op == Opcode::Reshape || op == Opcode::Broadcast || op == Opcode::Permute; }

class Rotation {
 public:
  Rotation(const Module& m, const Function& f, StreamPlan& stream) : m_(m), f_(f), stream_(stream), def_(f.value_types.size(), kNone) {
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
  }

  void run() {
    const Region& r = f_.region(stream_.loop);
    for (InstId i = r.begin; i < r.end; i = f_.insts[i].next) {
      // Code that branches between a product and its wait costs more than the overlap gives.
      if (f_.insts[i].op == Opcode::If || f_.insts[i].op == Opcode::For || f_.insts[i].op == Opcode::Loop) return;
      body_.push_back(i);
    }
    if (body_.empty() || f_.insts[body_.back()].op != Opcode::Continue || stream_.products.size() < 2) return;
    for (size_t k = stream_.products.size(); k-- > 0;)
      if (candidate(stream_.products[k].mma)) return;
  }

 private:
  bool inside(ValueId v) const {
    const Region& r = f_.region(stream_.loop);
    if (v >= r.first_arg && v < r.first_arg + r.arg_count) return true;
    return def_[v] != kNone && std::binary_search(body_.begin(), body_.end(), def_[v]);
  }

  /// Everything that depends on the carried accumulator must lead to this product alone, and the product to the next trip alone.
  bool candidate(InstId product) {
    const Region& r = f_.region(stream_.loop);
    const InstId last = body_.back();
    const auto next = f_.operands(last);
    const auto at = std::find(next.begin(), next.end(), f_.result(product));
    if (at == next.end() || std::count(next.begin(), next.end(), f_.result(product)) != 1) return false;
    const auto slot = static_cast<unsigned>(at - next.begin());
    const ValueId accumulator = r.first_arg + 1 + slot;
    std::set<ValueId> late_values{accumulator};
    std::set<InstId> late;
    for (const InstId i : body_) {
      if (i == last) continue;
      const auto operands = f_.operands(i);
      if (std::none_of(operands.begin(), operands.end(), [&](ValueId v) { return late_values.contains(v); })) continue;
      if (i != product && !is_elementwise(f_.insts[i].op) && !moves_only(f_.insts[i].op)) return false;
      if (i != product && late.contains(product)) return false;
      late.insert(i);
      late_values.insert(f_.result(i));
    }
    if (!late.contains(product) || late_values.contains(f_.operands(product)[0])) return false;
    for (size_t k = 0; k < next.size(); ++k)
      if (k != slot && late_values.contains(next[k])) return false;
    if (late.size() + 1 >= body_.size() || first_product() == product) return false;
    // What only moves values about is done again, so that fewer of them cross.
    for (auto work = std::vector<InstId>(late.begin(), late.end()); !work.empty();) {
      const InstId i = work.back();
      work.pop_back();
      for (const ValueId v : f_.operands(i))
        if (inside(v) && def_[v] != kNone && moves_only(f_.insts[def_[v]].op) && late.insert(def_[v]).second) work.push_back(def_[v]);
    }
    stream_.late.assign(late.begin(), late.end());
    std::set<ValueId> crossing;
    for (const InstId i : stream_.late)
      for (const ValueId v : f_.operands(i)) {
        const InstId from = def_[v];
        if (v == accumulator || !inside(v) || (from != kNone && (late.contains(from) || f_.insts[from].op == Opcode::Constant || skipped(from)))) continue;
        if (!m_.types.is_tile(f_.type(v))) return false;
        crossing.insert(v);
      }
    // An instruction whose results only late ones read is late only.
    for (size_t k = stream_.late.size(); k-- > 0;) {
      const InstId i = stream_.late[k];
      const ValueId v = f_.result(i);
      bool needed = false;
      for (const InstId user : body_) {
        const auto operands = f_.operands(user);
        if (std::find(operands.begin(), operands.end(), v) == operands.end() || (user == last && i == product)) continue;
        if (std::find(stream_.late_only.begin(), stream_.late_only.end(), user) == stream_.late_only.end()) needed = true;
      }
      if (!needed) stream_.late_only.push_back(i);
    }
    stream_.crossing.assign(crossing.begin(), crossing.end());
    stream_.late_product = product;
    stream_.late_carried = slot;
    return true;
  }

  bool skipped(InstId i) const { return std::find(stream_.skipped.begin(), stream_.skipped.end(), i) != stream_.skipped.end(); }
  InstId first_product() const {
    for (const InstId i : body_)
      if (stream_.product(i)) return i;
    return kNone;
  }

  const Module& m_;
  const Function& f_;
  StreamPlan& stream_;
  std::vector<InstId> def_, body_;
};

/// Registers of a thread for the accumulators and operands of a stream's products that live at the same time.
unsigned registers(const Function& f, const std::vector<InstId>& def, const StreamPlan& s, bool rotated, bool shared_left) {
  unsigned sum = kOtherRegisters, largest = 0;
  const unsigned threads = 7 + s.group_bits;
  for (const auto& p : s.products) {
    const unsigned result = 1u << (p.m_bits + p.n_bits - threads), left = 1u << (p.m_bits + p.k_bits - threads - 1);
    const InstId start = def[f.operands(p.mma)[2]];
    if (p.mma == s.late_product && rotated) sum += left;
    // Results turn into the next product's left operand as they are used up; accumulators that begin with something else stay.
    if (p.mma == s.late_product || start == kNone || f.insts[start].op != Opcode::Constant) {
      sum += result;
    } else {
      largest = std::max(largest, result);
    }
    const InstId from = def[f.operands(p.mma)[0]];
    if (from != kNone && from < s.loop && !shared_left) sum += left;
  }
  return sum + largest;
}

/// The load behind a left operand and what leads from there, if both can wait for the loop: nothing else reads them, and only operations
/// without effects stand between.
std::vector<InstId> left_chain(const Function& f, const std::vector<InstId>& def, const KernelPlan& plan, ValueId v, InstId loop) {
  std::vector<InstId> chain;
  const auto readers_are = [&](ValueId read, const auto& allowed) {
    for (InstId i = 0; i < f.insts.size(); ++i) {
      const auto operands = f.operands(i);
      if (std::find(operands.begin(), operands.end(), read) != operands.end() && !allowed(i)) return false;
    }
    return true;
  };
  const auto is_product = [&](InstId i) {
    return std::any_of(plan.streams.begin(), plan.streams.end(), [&](const auto& s) { return s.second.product(i) && s.second.product(i)->shared_left && f.operands(i)[0] == v; });
  };
  if (!readers_are(v, is_product)) return {};
  for (InstId i = def[v];; i = def[f.operands(i)[0]]) {
    if (i == kNone) return {};
    chain.push_back(i);
    if (f.insts[i].op == Opcode::LoadViewTko) break;
    const InstId reader = i;
    if (f.insts[i].op != Opcode::Reshape || !readers_are(f.operands(i)[0], [&](InstId k) { return k == reader; })) return {};
  }
  std::reverse(chain.begin(), chain.end());
  if (f.attr(chain[0], static_cast<size_t>(attr_index(f.def(chain[0]), "memory_ordering_semantics"))) != 0 || !readers_are(f.result(chain[0], 1), [](InstId) { return false; }))
    return {};
  for (InstId i = chain[0]; i < loop; i = f.insts[i].next) {
    const Effect e = f.def(i).effect;
    if (e == Effect::Write || e == Effect::ReadWrite || f.def(i).regions != 0) return {};
    if (f.insts[i].next > loop) return {};
  }
  return chain;
}

/// Whether the copies of stream `next` may begin before `first` ends: nothing but operations without effects stands between the two, and all that bounds
/// and indices are made of is there before.
bool runs_on(const Module& m, const Function& f, const std::vector<InstId>& def, const StreamPlan& first, const StreamPlan& next) {
  if (first.barriers != next.barriers || first.late_product != kNone || next.late_product != kNone) return false;
  InstId i = f.insts[first.loop].next;
  for (; i < next.loop; i = f.insts[i].next) {
    const Effect e = f.def(i).effect;
    if (f.def(i).regions != 0 || f.def(i).terminator || e == Effect::Read || e == Effect::Write || e == Effect::ReadWrite) return false;
  }
  if (i != next.loop) return false;
  const Region& r = f.region(next.loop);
  const auto early = [&](ValueId v) {
    if (m.types.is_token(f.type(v))) return def[v] != kNone && f.insts[def[v]].op == Opcode::MakeToken;
    return def[v] == kNone ? v < r.first_arg || v >= r.first_arg + r.arg_count : def[v] < first.loop;
  };
  const auto computed = [&](ValueId v) { return v == r.first_arg || std::binary_search(next.index_slice.begin(), next.index_slice.end(), def[v]) || early(v); };
  for (size_t k = 0; k < 3; ++k)
    if (!early(f.operands(next.loop)[k])) return false;
  for (const RingPlan::Operand& o : next.loads)
    for (const ValueId v : f.operands(o.load))
      if (m.types.is_token(f.type(v)) && !early(v)) return false;
  for (const RingPlan::Operand& o : next.loads)
    for (const ValueId v : f.group(o.load, 1))
      if (!computed(v)) return false;
  for (const InstId k : next.index_slice)
    for (const ValueId v : f.operands(k))
      if (!computed(v)) return false;
  return true;
}

}  // namespace

void plan_rotation(const Module& m, const Function& f, StreamPlan& stream) { Rotation(m, f, stream).run(); }

void plan_stream_resources(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan) {
  if (plan.streams.empty()) return;
  // Left operands that are made before the loop.
  std::map<ValueId, RingPlan::Operand> lefts;
  uint32_t left_bytes = 0;
  std::vector<InstId> def(f.value_types.size(), kNone);
  for (InstId i = 0; i < f.insts.size(); ++i)
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def[f.result(i, r)] = i;
  for (auto& [loop, s] : plan.streams) {
    plan_rotation(m, f, s);
    for (auto& p : s.products) {
      const ValueId v = f.operands(p.mma)[0];
      if (options.choice("left") == "registers" || def[v] == kNone || def[v] >= loop || f.insts[def[v]].op == Opcode::Constant) continue;
      p.shared_left = true;
      if (lefts.contains(v)) continue;
      RingPlan::Operand o;
      const uint32_t row = 2u << p.k_bits;
      o.row_bytes = std::min(row, 128u);
      o.panels = row / o.row_bytes;
      o.rows = 1u << p.m_bits;
      o.offset = left_bytes;
      left_bytes += (o.bytes() + 1023) & ~1023u;
      lefts.emplace(v, std::move(o));
    }
  }
  // Streams with equally many loads share a ring.
  std::map<size_t, uint32_t> stage_bytes;
  unsigned demand = 0, late_demand = 0;
  uint32_t largest = 0;
  // The rings' barriers come first: loops that share a ring have one place, and streams that were found between them leave no gap.
  std::map<uint32_t, uint32_t> places;
  for (auto& [loop, r] : plan.rings) r.barriers = places.emplace(r.barriers, static_cast<uint32_t>(places.size()) * 16 * RingPlan::kMaxStages).first->second;
  const uint32_t barriers = static_cast<uint32_t>(places.size()) * 16 * RingPlan::kMaxStages;
  for (const auto& [loop, s] : plan.streams) {
    uint32_t& bytes = stage_bytes[s.loads.size()];
    bytes = std::max(bytes, s.stage_bytes);
    largest = std::max(largest, bytes);
    demand = std::max(demand, registers(f, def, s, false, options.choice("left") != "registers"));
    late_demand = std::max(late_demand, registers(f, def, s, true, options.choice("left") != "registers"));
  }
  // Two blocks of an SM hide each other's waits where registers and shared memory suffice for both; one block needs to overlap its own
  // products with the rest of its work, and a producer.
  const uint32_t half = kSharedOfSm / 2 - RingPlan::kReserved;
  const bool fits = plan.rings.empty() && plan.threads() <= 256 && RingPlan::kFirstStage + left_bytes + 3 * largest <= half;
  const bool two = options.choice("blocks") == "2" || (options.choice("blocks") != "1" && options.choice("roles") != "on" && demand * 2 * plan.threads() <= 65536);
  if (plan.rings.empty()) plan.blocks_per_sm = fits && two ? 2 : 1;
  const uint32_t whole = plan.blocks_per_sm == 2 ? half : RingPlan::kSharedBytes;
  if (RingPlan::kFirstStage + 2 * largest + left_bytes > whole || plan.ring_bytes + left_bytes > whole) {
    lefts.clear();
    left_bytes = 0;
    for (auto& [loop, s] : plan.streams)
      for (auto& p : s.products) p.shared_left = false;
  }
  for (auto& [loop, s] : plan.streams) {
    s.barriers = barriers;
    for (const auto& [loads, bytes] : stage_bytes) s.barriers += loads < s.loads.size() ? static_cast<uint32_t>(loads) * 16 * RingPlan::kMaxStages : 0;
    s.stage_bytes = stage_bytes.at(s.loads.size());
  }
  uint32_t end = barriers;
  for (const auto& [loads, bytes] : stage_bytes) end += static_cast<uint32_t>(loads) * 16 * RingPlan::kMaxStages;
  if (end > RingPlan::kFirstStage) {
    plan.streams.clear();
    return;
  }
  const uint32_t beside = std::min(store_bytes(m, f, plan), RingPlan::kSharedBytes / 2);
  if (plan.blocks_per_sm == 1 && options.choice("roles") != "off" && RingPlan::kFirstStage + 2 * largest + left_bytes + beside <= whole) plan.roles = find_roles(m, f, plan);
  const uint32_t limit = whole - left_bytes - (plan.roles ? beside : 0);
  plan.lefts = std::move(lefts);
  if (options.choice("left") != "early" && !plan.roles)
    for (const auto& [v, o] : plan.lefts)
      for (const auto& [loop, s] : plan.streams) {  // the first one that reads it
        if (std::none_of(s.products.begin(), s.products.end(), [&, value = v](const auto& p) { return p.shared_left && f.operands(p.mma)[0] == value; })) continue;
        const auto chain = left_chain(f, def, plan, v, loop);
        auto& of_loop = plan.left_chains[loop];
        of_loop.insert(of_loop.end(), chain.begin(), chain.end());
        break;
      }
  plan.left_bytes = left_bytes;
  plan.last_blocks_first = options.choice("order") != "program" && last_blocks_are_longest(m, f, plan);
  const std::string refill = options.choice("refill");
  for (auto& [loop, s] : plan.streams) {
    s.stages = std::clamp((limit - RingPlan::kFirstStage) / s.stage_bytes, 2u, RingPlan::kMaxStages);
    s.stages = forced_stages(options, s.stages);
    s.refill_apart = refill == "apart" || refill == "next";
    plan.ring_bytes = std::max(plan.ring_bytes, s.end());
    const bool room = (plan.roles || s.stages > 2) && late_demand <= (plan.roles ? 224 : 240);
    if (options.choice("rotate") == "off" || (options.choice("rotate") != "on" && (plan.blocks_per_sm == 2 || !room))) s.late_product = kNone;
  }
  if (plan.roles || !(refill.empty() || refill == "next")) return;
  // Worth it where a loop follows: causal attention of (8, 16, 1024, 64) 305 instead of 293 TFLOP/s on an H200, with half as many keys in a tile 271
  // instead of 267. One loop alone: 400 instead of 407, and 365 instead of 371.
  bool follows = false;
  for (auto at = plan.streams.begin(); at != plan.streams.end(); ++at)
    if (const auto behind = std::next(at); behind != plan.streams.end() && runs_on(m, f, def, at->second, behind->second)) {
      at->second.next = behind->first;
      follows = true;
    }
  if (follows)
    for (auto& [loop, s] : plan.streams) s.refill_apart = true;
}

}  // namespace tile
