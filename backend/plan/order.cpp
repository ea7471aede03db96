// In which order the blocks of a grid begin. The language orders blocks by nothing, so a kernel whose later blocks have more to do may begin
// with those: the short ones then fill the end of the grid.
#include <algorithm>
#include <array>

#include "backend/plan/plan.h"

namespace tile {
namespace {

/// How a number follows a block's coordinates: with them, against them, unknown.
using Slopes = std::array<int, 3>;
constexpr int kUnknown = 2;

class OrderFinder {
 public:
  OrderFinder(const Module& m, const Function& f) : m_(m), f_(f), def_(f.value_types.size(), kNone) {
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
  }

  /// Whether a kernel cannot tell in which order its blocks run.
  bool indifferent() const {
    for (InstId i = 0; i < f_.insts.size(); ++i)
      if (!indifferent(i)) return false;
    return true;
  }

  /// Whether no block has longer loops of products than others, as far as their numbers tell, or leaves them out.
  bool even(const KernelPlan& plan) const {
    for (const auto& [loop, r] : plan.rings) {
      for (InstId i = 0; i < loop; ++i)
        if (f_.insts[i].op == Opcode::If && f_.insts[i].next > loop) return false;
      for (size_t bound = 0; bound < 2 && !r.single; ++bound)
        if (slopes(f_.operands(loop)[bound]) != Slopes{}) return false;
    }
    return true;
  }

  bool last_are_longest(const KernelPlan& plan) {
    if (!indifferent()) return false;
    bool found = false;
    const auto look = [&](InstId loop) {
      const auto operands = f_.operands(loop);
      const Slopes from = slopes(operands[0]), to = slopes(operands[1]);
      if (from[0] == kUnknown || to[0] == kUnknown || to[0] == -1) return false;
      found = found || (to[0] == 1 && from[0] == 0);
      return true;
    };
    for (const auto& [loop, s] : plan.streams)
      if (!look(loop)) return false;
    for (const auto& [loop, r] : plan.rings)
      if (!r.single && !look(loop)) return false;
    return found;
  }

 private:
  /// Blocks that wait for each other may count on an order. Traps and prints name the block.
  bool indifferent(InstId i) const {
    const auto& row = f_.def(i);
    switch (f_.insts[i].op) {
      case Opcode::Assert: case Opcode::PrintTko: case Opcode::Extract: case Opcode::Loop: case Opcode::MemoryFenceAliasTko: case Opcode::Alloca: return false;
      case Opcode::For: return constant(f_.operands(i)[2]) > 0;
      case Opcode::LoadViewTko: case Opcode::StoreViewTko: case Opcode::LoadPtrTko: case Opcode::StorePtrTko:
        return f_.attr(i, static_cast<size_t>(attr_index(row, "memory_ordering_semantics"))) == 0;
      default: return row.effect != Effect::Write && row.effect != Effect::ReadWrite && row.effect != Effect::Read;
    }
  }

  /// Of a scalar constant; 0 for everything else.
  int64_t constant(ValueId v) const {
    while (def_[v] != kNone && f_.insts[def_[v]].op == Opcode::Assume) v = f_.operands(def_[v])[0];
    if (def_[v] == kNone || f_.insts[def_[v]].op != Opcode::Constant || !m_.types.is_scalar(f_.type(v))) return 0;
    const std::string& bytes = m_.attrs.get(f_.attr(def_[v], 0)).bytes;
    uint64_t out = 0;
    for (size_t k = 0; k < bytes.size() && k < 8; ++k) out |= uint64_t{static_cast<uint8_t>(bytes[k])} << (8 * k);
    const auto bits = static_cast<unsigned>(8 * std::min<size_t>(bytes.size(), 8));
    return bits == 0 ? 0 : static_cast<int64_t>(out << (64 - bits)) >> (64 - bits);
  }

  static Slopes joined(const Slopes& a, const Slopes& b, int sign = 1) {
    Slopes out;
    for (size_t k = 0; k < 3; ++k) {
      const int other = b[k] == kUnknown ? kUnknown : sign * b[k];
      out[k] = a[k] == 0 ? other : other == 0 || other == a[k] ? a[k] : kUnknown;
    }
    return out;
  }

  Slopes slopes(ValueId v) const {
    constexpr Slopes unknown{kUnknown, kUnknown, kUnknown};
    const InstId i = def_[v];
    if (i == kNone) return v < f_.param_count ? Slopes{} : unknown;
    const auto operands = f_.operands(i);
    const auto of = [&](size_t k) { return slopes(operands[k]); };
    switch (f_.insts[i].op) {
      case Opcode::Constant: case Opcode::GetNumTileBlocks: case Opcode::GetTensorShape: case Opcode::GetIndexSpaceShape: return {};
      case Opcode::GetTileBlockId: {
        Slopes out{};
        out[v - f_.result(i)] = 1;
        return out;
      }
      case Opcode::Assume: return of(0);
      case Opcode::AddI: case Opcode::MaxI: case Opcode::MinI: return joined(of(0), of(1));
      case Opcode::SubI: return joined(of(0), of(1), -1);
      case Opcode::MulI:
        for (size_t k = 0; k < 2; ++k)
          if (const int64_t c = constant(operands[k]); c != 0) return joined({}, of(1 - k), c > 0 ? 1 : -1);
        break;
      case Opcode::DivI: case Opcode::ShRI:
        if (constant(operands[1]) > 0) return of(0);
        break;
      default: break;
    }
    // What does not depend on the block has no slope, whatever is done with it.
    Slopes out{};
    for (size_t k = 0; k < operands.size(); ++k) {
      const Slopes s = of(k);
      for (size_t axis = 0; axis < 3; ++axis)
        if (s[axis] != 0) out[axis] = kUnknown;
    }
    return is_elementwise(f_.insts[i].op) ? out : unknown;
  }

  const Module& m_;
  const Function& f_;
  std::vector<InstId> def_;
};

}  // namespace

bool blocks_may_follow(const Module& m, const Function& f) { return OrderFinder(m, f).indifferent(); }

bool blocks_should_follow(const Module& m, const Function& f, const KernelPlan& plan) {
  if (plan.rings.empty() || !plan.streams.empty() || !plan.roles) return false;
  const OrderFinder order(m, f);
  if (!order.indifferent()) return false;
  // Which block gets which is settled before any begins: with blocks of different length some would end late (a lower triangle of 4096^2 on an
  // H200: 377 TFLOP/s, and 493 with the blocks that the program has).
  if (!order.even(plan)) return false;
  for (InstId i = 0; i < f.insts.size(); ++i)
    if ((f.insts[i].op == Opcode::For || f.insts[i].op == Opcode::Loop) && !plan.rings.contains(i)) return false;
  return true;
}

bool last_blocks_are_longest(const Module& m, const Function& f, const KernelPlan& plan) { return OrderFinder(m, f).last_are_longest(plan); }

}  // namespace tile
