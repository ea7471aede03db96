// The check `assume`, first part: predicates of assume operations that do not hold.
#include <algorithm>

#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

class AssumeCheck : public CheckPart {
 public:
  AssumeCheck(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {
    promises_.resize(f.insts.size());
    std::vector<uint8_t> parameter(f.value_types.size(), 0);
    std::fill_n(parameter.begin(), f.param_count, uint8_t{1});
    for (InstId i = 0; i < f.insts.size(); ++i) {
      if (f.insts[i].op != Opcode::Assume) continue;
      Promise& p = promises_[i];
      p.value = f.operands(i)[0];
      p.attr = &facts.module.attrs.get(f.attr(i, 0));
      p.same_in_all_blocks = parameter[p.value] != 0;
      parameter[f.result(i)] = parameter[p.value];
      p.size = facts.is_tile(p.value) ? info(facts.element(p.value)).storage : sizeof(uint64_t);
      p.one = !facts.is_tile(p.value) || facts.count(p.value) == 1;
      if (!p.one) continue;
      if (facts.is_tile(p.value)) p.bits = info(facts.element(p.value)).bits;
      if (p.attr->tag == AttrTag::DivBy) p.low = static_cast<int64_t>(p.attr->bits - 1);  // the divisor is a power of two
      if (p.attr->tag == AttrTag::Bounded && (p.attr->flags & 1) != 0) p.least = p.attr->ints[0];
      if (p.attr->tag == AttrTag::Bounded && (p.attr->flags & 2) != 0) p.most = p.attr->ints[1];
    }
  }

  void launch_begin(const Launch& launch) override {
    held_.resize(launch.threads);
    for (std::vector<uint8_t>& h : held_) h.assign(f.insts.size(), 0);
  }
  unsigned wants(InstId i) const override { return f.insts[i].op == Opcode::Assume ? kBefore : kNever; }
  void silent(Exec& x, std::span<const InstId> insts) override {
    uint8_t& held = held_[x.worker][insts[0]];
    if (held) return;
    bool all = true;
    for (const InstId i : insts) all = (promises_[i].surely(facts, x) || holds(x, i)) && promises_[i].same_in_all_blocks && all;
    held = all;
  }

 private:
  struct Promise {
    ValueId value = kNone;
    const Attr* attr = nullptr;
    size_t size = 0;                  // of an element
    bool one = false;                 // has one element
    bool same_in_all_blocks = false;  // about a parameter
    // Of one element: it is kept if these bits are 0, and the number is neither less nor more.
    unsigned bits = 64;
    int64_t low = 0, least = INT64_MIN, most = INT64_MAX;
    /// True if it is kept; false does not say that it is not.
    [[nodiscard]] bool surely(const CheckFacts& facts, const Exec& x) const {
      if (!one) return false;
      const int64_t v = sign_extend(read_bits(facts.data(x, value), size), bits);
      return (v & low) == 0 && v >= least && v <= most;
    }
  };
  bool holds(Exec& x, InstId i) {
    const Promise& promise = promises_[i];
    const ValueId v = promise.value;
    const Attr& p = *promise.attr;
    switch (p.tag) {
      case AttrTag::DivBy:
        return divisible(x, i, v, p);
      case AttrTag::SameElements:
        return same(x, i, v, p);
      case AttrTag::Bounded:
        return bounded(x, i, v, p);
      default:
        return true;
    }
  }
  [[nodiscard]] uint64_t bits(const Exec& x, ValueId v, size_t e) const {
    return read_bits(facts.data(x, v), info(facts.element(v)).storage, e);
  }
  [[nodiscard]] std::string shown(const Exec& x, ValueId v, size_t e) const {
    const std::string which = facts.type(v).shape.empty()
                                  ? facts.name(v)
                                  : "element " + element_name(facts.type(v).shape, e) + " of " + facts.name(v);
    if (facts.element(v) == ElementType::Ptr) return which + " points to " + x.memory.describe(bits(x, v, e));
    return which + " is " + std::to_string(sign_extend(bits(x, v, e), info(facts.element(v)).bits));
  }
  void report(const Exec& x, InstId i, std::string message) {
    findings.add(x, {Code::T0103, i, std::move(message), {}, {}});
  }

  /// These give false where the promise is broken, and report it.
  bool divisible(const Exec& x, InstId i, ValueId v, const Attr& p) {
    const uint64_t low = p.bits - 1;  // the divisor is a power of two
    if (!facts.is_tile(v)) {
      const uint64_t base = *facts.data<uint64_t>(x, v);
      if ((base & low) == 0) return true;
      if (findings.wanted(x, Code::T0103, i))
        report(x, i,
               facts.name(v) + " starts at " + x.memory.describe(base) + ", assumed divisible by " +
                   std::to_string(p.bits));
      return false;
    }
    // Groups of `every` elements along one dimension: the first is divisible, the others follow it by steps of one
    // element.
    const auto& shape = facts.type(v).shape;
    const uint64_t every = p.ints.size() == 2 && p.ints[0] > 0 ? static_cast<uint64_t>(p.ints[0]) : 1;
    const size_t along = p.ints.size() == 2 ? static_cast<size_t>(p.ints[1]) : 0;
    uint64_t inner = 1;
    for (size_t d = along + 1; d < shape.size(); ++d) inner *= static_cast<uint64_t>(shape[d]);
    const uint64_t extent = shape.empty() ? 1 : static_cast<uint64_t>(shape[along]);
    const bool pointer = facts.element(v) == ElementType::Ptr;
    const uint64_t step =
        pointer ? std::max<uint64_t>(
                      1, info(facts.module.types.element_of(facts.module.types.pointee_of(f.type(v)))).memory_bits / 8)
                : 1;
    const unsigned width = info(facts.element(v)).bits;
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    for (size_t e = 0; e < facts.count(v); ++e) {
      const uint64_t k = e / inner % extent % every, value = bits(x, v, e);
      const uint64_t first = k == 0 ? value : bits(x, v, e - static_cast<size_t>(k * inner));
      const bool holds =
          k == 0
              ? (static_cast<uint64_t>(pointer ? value : static_cast<uint64_t>(sign_extend(value, width))) & low) == 0
              : value == ((first + k * step) & mask);
      if (holds) continue;
      if (!findings.wanted(x, Code::T0103, i)) return false;
      report(x, i,
             shown(x, v, e) + ", assumed " +
                 (k == 0 ? "divisible by " + std::to_string(p.bits)
                         : "to follow " + std::to_string(k) + " behind the first of its group"));
      return false;
    }
    return true;
  }
  bool same(const Exec& x, InstId i, ValueId v, const Attr& p) {
    const auto& shape = facts.type(v).shape;
    for (size_t e = 0; e < facts.count(v); ++e) {
      // The first element of the group that e is in.
      size_t rest = e, first = 0, stride = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        const size_t n = static_cast<size_t>(shape[d]), at = rest % n,
                     c = d < p.ints.size() && p.ints[d] > 0 ? static_cast<size_t>(p.ints[d]) : 1;
        first += at / c * c * stride;
        rest /= n;
        stride *= n;
      }
      if (bits(x, v, e) == bits(x, v, first)) continue;
      if (findings.wanted(x, Code::T0103, i)) report(x, i, shown(x, v, e) + " but " + shown(x, v, first) + ", assumed to be the same");
      return false;
    }
    return true;
  }
  bool bounded(const Exec& x, InstId i, ValueId v, const Attr& p) {
    const unsigned width = info(facts.element(v)).bits;
    for (size_t e = 0; e < facts.count(v); ++e) {
      const int64_t value = sign_extend(bits(x, v, e), width);
      const bool low = (p.flags & 1) != 0 && value < p.ints[0], high = (p.flags & 2) != 0 && value > p.ints[1];
      if (!low && !high) continue;
      if (!findings.wanted(x, Code::T0103, i)) return false;
      report(x, i,
             shown(x, v, e) + ", assumed " +
                 (low ? "at least " + std::to_string(p.ints[0]) : "at most " + std::to_string(p.ints[1])));
      return false;
    }
    return true;
  }

  std::vector<Promise> promises_;           // by instruction
  std::vector<std::vector<uint8_t>> held_;  // by worker and the first of some operations: these need no check in this launch any more
};

}  // namespace

std::unique_ptr<CheckPart> make_assume_check(const CheckFacts& facts, Findings& findings) {
  return std::make_unique<AssumeCheck>(facts, findings);
}

}  // namespace tile
