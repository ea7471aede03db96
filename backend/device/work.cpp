// A walk through the kernel for every block, with scalars of integers and the extents of views only; everything else is unknown.
#include "backend/device/work.h"

#include <cstring>
#include <optional>

namespace tile {
namespace {

using Known = std::optional<int64_t>;
constexpr uint64_t kMostSteps = 100'000'000;

enum class After : uint8_t { Next, Yield, Continue, Break, Return, Unknown };

class Counter {
 public:
  Counter(const Module& m, const Function& f, const LaunchGrid& grid, const LaunchArguments& args) : m_(m), f_(f), grid_(grid), scalars_(f.value_types.size()), extents_(f.value_types.size()), matters_(f.insts.size()) {
    for (size_t p = 0; p < args.params.size() && p < f.param_count; ++p)
      if (args.params[p].buffer < 0) set(static_cast<ValueId>(p), static_cast<int64_t>(args.params[p].bits));
    // Whether an operation holds a matrix product, or (conditions) leaves a region early.
    std::vector<InstId> open;
    for (InstId i = 0; i < f.insts.size(); ++i) {
      while (!open.empty() && f.insts[open.back()].next <= i) open.pop_back();
      const Opcode op = f.insts[i].op;
      const bool leaves = op == Opcode::Break || op == Opcode::Return || op == Opcode::Continue;
      if (leaves || product(op))
        for (const InstId outer : open)
          if (product(op) || op == Opcode::Return || f.insts[outer].op == Opcode::If) matters_[outer] = true;
      if (f.insts[i].next > i + 1) open.push_back(i);
    }
    any_ = false;
    for (const Inst& i : f.insts) any_ = any_ || product(i.op);
  }

  std::optional<double> count() {
    if (!any_) return 0.0;
    double total = 0;
    for (uint32_t z = 0; z < grid_[2]; ++z)
      for (uint32_t y = 0; y < grid_[1]; ++y)
        for (uint32_t x = 0; x < grid_[0]; ++x) {
          block_[0] = x, block_[1] = y, block_[2] = z;
          flops_ = 0;
          const After end = run(f_.regions[0]);
          if (end == After::Unknown || steps_ > kMostSteps) return std::nullopt;
          total += flops_;
          if (!used_block_) return flops_ * grid_[0] * grid_[1] * grid_[2];  // the same in every block
        }
    return total;
  }

 private:
  static bool product(Opcode op) { return op == Opcode::MmaF || op == Opcode::MmaI || op == Opcode::MmaFScaled; }
  [[nodiscard]] unsigned bits(ValueId v) const { return info(m_.types.element_of(f_.type(v))).bits; }
  [[nodiscard]] uint32_t attr(InstId i, const char* name) const { return f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), name))); }

  /// Scalars of integers, sign-extended from their width.
  void set(ValueId v, Known value) {
    if (!m_.types.is_tile(f_.type(v)) || info(m_.types.element_of(f_.type(v))).is_float) value.reset();
    if (value && bits(v) < 64) {
      const unsigned shift = 64 - bits(v);
      value = bits(v) == 1 ? *value & 1 : static_cast<int64_t>(static_cast<uint64_t>(*value) << shift) >> shift;
    }
    scalars_[v] = value;
  }
  [[nodiscard]] Known get(ValueId v) const { return scalars_[v]; }
  [[nodiscard]] uint64_t low(ValueId v, int64_t value) const { return bits(v) >= 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t{1} << bits(v)) - 1); }

  void copy(ValueId from, ValueId to) {
    scalars_[to] = scalars_[from];
    extents_[to] = extents_[from];
  }
  /// Values that a terminator hands on, taken out before any is overwritten.
  void hand_on(const std::vector<Known>& scalars, const std::vector<std::vector<Known>>& extents, ValueId first) {
    for (size_t k = 0; k < scalars.size(); ++k) {
      scalars_[first + k] = scalars[k];
      extents_[first + k] = extents[k];
    }
  }
  void take(std::span<const ValueId> values, std::vector<Known>& scalars, std::vector<std::vector<Known>>& extents) const {
    scalars.clear();
    extents.clear();
    for (const ValueId v : values) {
      scalars.push_back(scalars_[v]);
      extents.push_back(extents_[v]);
    }
  }
  void forget(InstId i) {
    for (uint32_t r = 0; r < f_.insts[i].result_count; ++r) {
      scalars_[f_.result(i, r)].reset();
      extents_[f_.result(i, r)].clear();
    }
  }

  After run(const Region& region) {
    for (InstId i = region.begin; i < region.end; i = f_.insts[i].next) {
      if (++steps_ > kMostSteps) return After::Unknown;
      if (const After after = step(i); after != After::Next) return after;
    }
    return After::Next;
  }

  After step(InstId i) {
    const Inst& inst = f_.insts[i];
    const auto in = f_.operands(i);
    switch (inst.op) {
      case Opcode::Yield: case Opcode::Continue: case Opcode::Break:
        take(in, handed_, handed_extents_);
        return inst.op == Opcode::Yield ? After::Yield : inst.op == Opcode::Continue ? After::Continue : After::Break;
      case Opcode::Return: return After::Return;
      case Opcode::If: return run_if(i);
      case Opcode::For: return run_for(i);
      case Opcode::Loop: return run_loop(i);
      case Opcode::MmaF: case Opcode::MmaI: case Opcode::MmaFScaled: {
        const auto a = m_.types.shape_of(f_.type(in[0]));
        double n = 2.0 * static_cast<double>(m_.types.element_count(f_.type(inst.first_result)));
        if (!a.empty()) n *= static_cast<double>(a.back());
        flops_ += n;
        break;
      }
      case Opcode::GetTileBlockId:
        used_block_ = true;
        for (uint32_t r = 0; r < 3; ++r) set(f_.result(i, r), block_[r]);
        break;
      case Opcode::GetNumTileBlocks:
        for (uint32_t r = 0; r < 3; ++r) set(f_.result(i, r), grid_[r]);
        break;
      case Opcode::Assume: case Opcode::Reshape: case Opcode::MakePartitionView: case Opcode::MakeStridedView: copy(in[0], inst.first_result); break;
      case Opcode::Constant: {
        const Attr& value = m_.attrs.get(f_.attr(i, 0));
        uint64_t word = 0;
        const bool scalar = m_.types.is_scalar(f_.type(inst.first_result)) && value.bytes.size() <= sizeof word;
        if (scalar) std::memcpy(&word, value.bytes.data(), value.bytes.size());
        set(inst.first_result, scalar ? Known(static_cast<int64_t>(word)) : Known());
        break;
      }
      case Opcode::MakeTensorView: {
        auto& e = extents_[inst.first_result];
        e.clear();
        const auto dynamic = f_.group(i, 1);
        size_t next = 0;
        for (const int64_t n : m_.types.shape_of(f_.type(inst.first_result))) {
          if (n != kDynamic) {
            e.push_back(n);
          } else {
            const ValueId v = dynamic[next++];
            const Known k = get(v);
            e.push_back(k ? Known(static_cast<int64_t>(low(v, *k))) : Known());
          }
        }
        break;
      }
      case Opcode::GetTensorShape: case Opcode::GetIndexSpaceShape: shape_of(i); break;
      case Opcode::AddI: case Opcode::SubI: case Opcode::MulI: case Opcode::DivI: case Opcode::RemI: case Opcode::MinI: case Opcode::MaxI: case Opcode::CmpI: case Opcode::ShLI:
      case Opcode::AndI: case Opcode::OrI: case Opcode::XOrI: set(inst.first_result, binary(i)); break;
      case Opcode::ExtI: {
        const Known k = get(in[0]);
        const bool is_signed = attr(i, "signedness") != 0;
        // A signed i1 that is true stands for -1.
        set(inst.first_result, !k ? k : is_signed ? (bits(in[0]) == 1 ? -*k : *k) : static_cast<int64_t>(low(in[0], *k)));
        break;
      }
      case Opcode::TruncI: set(inst.first_result, get(in[0])); break;
      case Opcode::Select: {
        const Known c = get(in[0]);
        set(inst.first_result, c ? get(in[*c & 1 ? 1 : 2]) : Known());
        break;
      }
      default: forget(i);
    }
    return After::Next;
  }

  void shape_of(InstId i) {
    const ValueId view = f_.operands(i)[0];
    const Type& t = m_.types.get(f_.type(view));
    const auto& e = extents_[view];
    for (uint32_t r = 0; r < f_.insts[i].result_count; ++r) {
      Known value;
      size_t dim = r;
      int64_t step = 1;
      if (t.kind == TypeKind::PartitionView && r < t.dim_map.size()) dim = static_cast<size_t>(t.dim_map[r]), step = t.shape[r];
      if (t.kind == TypeKind::StridedView && r < t.dim_map.size()) dim = static_cast<size_t>(t.dim_map[r]), step = t.strides[r];
      if (dim < e.size() && e[dim] && step > 0) value = *e[dim] / step + (*e[dim] % step != 0);
      set(f_.result(i, r), value);
    }
  }

  Known binary(InstId i) {
    const auto in = f_.operands(i);
    const Known a = get(in[0]), b = get(in[1]);
    if (!a || !b) return {};
    const int sign = attr_index(f_.def(i), "signedness");
    const bool is_signed = sign < 0 || f_.attr(i, static_cast<size_t>(sign)) != 0;
    const uint64_t ua = static_cast<uint64_t>(*a), ub = static_cast<uint64_t>(*b), la = low(in[0], *a), lb = low(in[1], *b);
    const auto number = [](uint64_t v) { return Known(static_cast<int64_t>(v)); };
    switch (f_.insts[i].op) {
      case Opcode::AddI: return number(ua + ub);
      case Opcode::SubI: return number(ua - ub);
      case Opcode::MulI: return number(ua * ub);
      case Opcode::AndI: return number(ua & ub);
      case Opcode::OrI: return number(ua | ub);
      case Opcode::XOrI: return number(ua ^ ub);
      case Opcode::ShLI: return lb < 64 ? number(ua << lb) : Known();
      case Opcode::MinI: return is_signed ? std::min(*a, *b) : la < lb ? *a : *b;
      case Opcode::MaxI: return is_signed ? std::max(*a, *b) : la < lb ? *b : *a;
      case Opcode::RemI:
        if (*b == 0) return {};
        return is_signed ? (*b == -1 ? 0 : *a % *b) : static_cast<int64_t>(la % lb);
      case Opcode::DivI: {
        if (*b == 0 || *b == -1) return *b == 0 ? Known() : number(0 - ua);
        const uint32_t rounding = attr(i, "rounding");  // 1 zero, 2 down, 3 up
        if (!is_signed) return static_cast<int64_t>(la / lb + (rounding == 3 && la % lb != 0));
        const bool inexact = *a % *b != 0, negative = (*a < 0) != (*b < 0);
        return *a / *b - (rounding == 2 && inexact && negative) + (rounding == 3 && inexact && !negative);
      }
      case Opcode::CmpI: {
        const bool equal = *a == *b, less = is_signed ? *a < *b : la < lb;
        switch (attr(i, "comparison_predicate")) {
          case 0: return equal;
          case 1: return !equal;
          case 2: return less;
          case 3: return less || equal;
          case 4: return !less && !equal;
          default: return !less;
        }
      }
      default: return {};
    }
  }

  After run_if(InstId i) {
    const Known c = get(f_.operands(i)[0]);
    if (!c) {
      if (matters_[i]) return After::Unknown;
      forget(i);
      return After::Next;
    }
    const Region& r = f_.region(i, *c & 1 ? 0 : 1);
    if (!r.present) return After::Next;
    const After after = run(r);
    if (after == After::Yield) hand_on(handed_, handed_extents_, f_.insts[i].first_result);
    return after == After::Yield ? After::Next : after;
  }

  After run_for(InstId i) {
    const auto in = f_.operands(i);
    const Region& body = f_.region(i);
    const Known lower = get(in[0]), upper = get(in[1]), by = get(in[2]);
    if (!matters_[i] || !lower || !upper || !by || *by <= 0) {
      if (matters_[i]) return After::Unknown;
      forget(i);
      return After::Next;
    }
    std::vector<Known> scalars;
    std::vector<std::vector<Known>> extents;
    take(in.subspan(3), scalars, extents);
    const bool is_unsigned = attr(i, "unsignedCmp") != 0;
    for (int64_t iv = *lower; is_unsigned ? low(in[0], iv) < low(in[1], *upper) : iv < *upper;) {
      set(body.first_arg, iv);
      hand_on(scalars, extents, body.first_arg + 1);
      const After after = run(body);
      if (after == After::Unknown || after == After::Return) return after;
      scalars = handed_;
      extents = handed_extents_;
      if (after == After::Break) break;
      if (__builtin_add_overflow(iv, *by, &iv)) break;
    }
    hand_on(scalars, extents, f_.insts[i].first_result);
    return After::Next;
  }

  After run_loop(InstId i) {
    if (!matters_[i]) {
      forget(i);
      return After::Next;
    }
    const Region& body = f_.region(i);
    std::vector<Known> scalars;
    std::vector<std::vector<Known>> extents;
    take(f_.operands(i), scalars, extents);
    for (;;) {
      hand_on(scalars, extents, body.first_arg);
      const After after = run(body);
      if (after == After::Unknown || after == After::Return) return after;
      scalars = handed_;
      extents = handed_extents_;
      if (after == After::Break) break;
    }
    hand_on(scalars, extents, f_.insts[i].first_result);
    return After::Next;
  }

  const Module& m_;
  const Function& f_;
  const LaunchGrid& grid_;
  std::vector<Known> scalars_;
  std::vector<std::vector<Known>> extents_;  // of tensor views and views
  std::vector<bool> matters_;
  bool any_ = false, used_block_ = false;
  int64_t block_[3] = {0, 0, 0};
  double flops_ = 0;
  uint64_t steps_ = 0;
  std::vector<Known> handed_;
  std::vector<std::vector<Known>> handed_extents_;
};

}  // namespace

std::optional<double> launch_flops(const Module& module, const Function& entry, const LaunchGrid& grid, const LaunchArguments& args) { return Counter(module, entry, grid, args).count(); }

}  // namespace tile
