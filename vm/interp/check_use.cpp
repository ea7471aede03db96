// Following addresses from parameters and globals to the operations that use them.
#include "vm/interp/check_use.h"

namespace tile {
namespace {

constexpr size_t kMostRoots = 64;

}  // namespace

ArrayUse::ArrayUse(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {
  find_roots();
  of_root_.assign(kMostRoots, 0);
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const auto& op = facts.op(i);
    if (!op.memory) continue;
    const AddressRoots& from = roots_[op.view != kNone ? op.view : op.pointers];
    const uint8_t does = static_cast<uint8_t>((op.writes ? kWritten : 0) | (op.device ? 0 : kWeak) | (!op.strong || (op.writes && !op.reads) ? kSloppy : 0));
    if (from.any) of_any_ |= does;
    for (size_t r = 0; r < kMostRoots; ++r)
      if (from.bits >> r & 1) of_root_[r] |= does;
  }
  for (ValueId p = 0; p < f.param_count; ++p)
    if (roots_[p].bits != 0) params_.push_back(p);
}

void ArrayUse::find_roots() {
  roots_.resize(f.value_types.size());
  const auto holds_addresses = [&](ValueId v) {
    return !facts.is_token(v) && (!facts.is_tile(v) || facts.element(v) == ElementType::Ptr);
  };
  const auto root = [](size_t number) {
    AddressRoots out;
    if (number < kMostRoots) out.bits = uint64_t{1} << number;
    out.any = number >= kMostRoots;
    return out;
  };
  for (ValueId p = 0; p < f.param_count; ++p)
    if (holds_addresses(p)) roots_[p] = root(p);
  for (bool changed = true; changed;) {  // loops hand addresses back
    changed = false;
    const auto flow = [&](ValueId to, const AddressRoots& from) {
      const bool more = roots_[to] |= from;
      changed = changed || more;
    };
    for (InstId i = 0; i < f.insts.size(); ++i) {
      const auto& op = facts.op(i);
      for (const Carry& c : op.before)
        if (holds_addresses(c.to)) flow(c.to, roots_[c.from]);
      for (const Carry& c : op.after)
        if (holds_addresses(c.to)) flow(c.to, roots_[c.from]);
      if (op.control) continue;
      AddressRoots from;
      switch (f.insts[i].op) {
        case Opcode::Alloca:  // memory of the block's own, which is always looked at
          continue;
        case Opcode::GetGlobal: {
          const Global* g = facts.module.find_global(facts.module.str(f.attr(i, 0)));
          from = root(f.param_count + static_cast<size_t>(g - facts.module.globals.data()));
          break;
        }
        case Opcode::Assume:
        case Opcode::Offset:
        case Opcode::Reshape:
        case Opcode::Broadcast:
        case Opcode::Permute:
        case Opcode::Cat:
        case Opcode::Extract:
        case Opcode::Insert:
        case Opcode::Select:
        case Opcode::PtrToPtr:
        case Opcode::MakeTensorView:
        case Opcode::MakePartitionView:
        case Opcode::MakeStridedView:
        case Opcode::MakeGatherScatterView:
          for (const ValueId v : f.operands(i))
            if (holds_addresses(v)) from |= roots_[v];
          break;
        default:
          from.any = true;
      }
      for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
        if (holds_addresses(f.result(i, k))) flow(f.result(i, k), from);
    }
  }
}

void ArrayUse::launch_begin(const Launch& launch) {
  surprised_.store(false, std::memory_order_relaxed);
  workers_.resize(launch.threads);
  for (Worker& w : workers_) w.known = false;
}

void ArrayUse::learn(const Exec& x) {
  Worker& w = workers_[x.worker];
  w.known = true;
  w.any_race = of_any_ != 0;
  w.flags.clear();
  const auto add = [&](uint64_t address, uint8_t does) {
    const size_t a = allocation_of(address);
    if (a >= Memory::kMaxAllocations || (a >= w.flags.size() && !x.memory.find(address))) return;
    if (a >= w.flags.size()) w.flags.resize(a + 1, of_any_);
    w.flags[a] |= does;
  };
  for (const ValueId p : params_)
    add(*facts.data<uint64_t>(x, p), static_cast<size_t>(p) < kMostRoots ? of_root_[p] : of_any_);
  for (size_t g = 0; g < x.launch.globals.size(); ++g)
    add(x.launch.globals[g], f.param_count + g < kMostRoots ? of_root_[f.param_count + g] : of_any_);
  for (uint8_t& a : w.flags) {
    if (!(a & kWritten)) continue;
    if (a & kWeak) a |= kRace;
    if (a & kSloppy) a |= kOrder;
    w.any_race = w.any_race || (a & kRace) != 0;
  }
}

void ArrayUse::surprise() {
  if (surprised_.exchange(true)) return;
  findings.remark("a pointer was moved from one allocation to another; what was done there before is not compared with what is done from now on");
}

}  // namespace tile
