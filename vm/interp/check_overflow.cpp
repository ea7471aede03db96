// The check `assume`, second part: integer results that an overflow flag excludes.
#include <algorithm>

#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

using I128 = __int128;
constexpr uint32_t kNoSigned = 1, kNoUnsigned = 2;  // bits of the overflow flag

class OverflowCheck : public CheckPart {
 public:
  OverflowCheck(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {}

  unsigned wants(InstId i) const override {
    // A reduction may have no steps for its body: it is computed again here.
    const bool fold = f.insts[i].op == Opcode::Reduce || f.insts[i].op == Opcode::Scan;
    return (fold ? folded(i) != kNone : facts.attr(i, "overflow", 0) != 0) ? kBefore : kNever;
  }
  void before(Exec& x, const Step& s) override {
    if (const InstId body = folded(s.inst); body != kNone) {
      if (s.body[1] == 0) fold(x, s.inst, body);
      return;
    }
    const ElementInfo& t = info(facts.element(f.operands(s.inst)[0]));
    const ElementInfo& to = info(facts.element(f.result(s.inst)));
    const uint32_t flags = facts.attr(s.inst, "overflow", 0);
    const Opcode op = f.insts[s.inst].op;
    const std::byte *a = x.at<std::byte>(s.in[0]), *b = s.in[1] == kNoSlot ? nullptr : x.at<std::byte>(s.in[1]);
    for (size_t e = 0; e < s.n; ++e) {
      const uint64_t l = read_bits(a, t.storage, e), r = b ? read_bits(b, t.storage, e) : 0;
      const uint32_t broken = flags & violated(op, l, r, t.bits, to.bits);
      if (broken && findings.wanted(x, Code::T0117, s.inst))
        report(x, s.inst, op, l, r, t.bits, to.bits, broken, s.inst);
    }
  }

 private:
  /// The operation that a reduction folds with, if its body is that alone and it has an overflow flag.
  [[nodiscard]] InstId folded(InstId i) const {
    if (f.insts[i].op != Opcode::Reduce && f.insts[i].op != Opcode::Scan) return kNone;
    const Region& r = f.region(i);
    return r.end == r.begin + 2 && facts.attr(r.begin, "overflow", 0) != 0 && f.insts[r.begin].operand_count == 2
               ? r.begin
               : kNone;
  }
  void fold(Exec& x, InstId i, InstId body) {
    const ValueId v = f.operands(i)[0];
    const auto& shape = facts.type(v).shape;
    const size_t dim = static_cast<size_t>(facts.module.int_attr(f, i, 0));
    const bool reverse = f.insts[i].op == Opcode::Scan && facts.attr(i, "reverse", 0) != 0;
    size_t outer = 1, len = 1, inner = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : d == dim ? len : inner) *= static_cast<size_t>(shape[d]);
    const ElementInfo& t = info(facts.element(v));
    const uint32_t flags = facts.attr(body, "overflow", 0);
    const Opcode op = f.insts[body].op;
    const std::byte* data = facts.data(x, v);
    for (size_t o = 0; o < outer; ++o)
      for (size_t in = 0; in < inner; ++in) {
        uint64_t left = 0;
        for (size_t j = 0; j < len; ++j) {
          const uint64_t next = read_bits(data, t.storage, (o * len + (reverse ? len - 1 - j : j)) * inner + in);
          const uint32_t broken = j == 0 ? 0 : flags & violated(op, left, next, t.bits, t.bits);
          if (broken && findings.wanted(x, Code::T0117, body))
            report(x, body, op, left, next, t.bits, t.bits, broken, body);
          left = j == 0 ? next
                        : static_cast<uint64_t>(exact(op, static_cast<I128>(left), static_cast<I128>(next), t.bits));
          if (t.bits < 64) left &= (uint64_t{1} << t.bits) - 1;
        }
      }
  }

  /// The result without wrapping. Shifts by the width or more give no more than any wrapped number.
  [[nodiscard]] static I128 exact(Opcode op, I128 l, I128 r, unsigned bits) {
    switch (op) {
      case Opcode::AddI:
        return l + r;
      case Opcode::SubI:
        return l - r;
      case Opcode::MulI:
        return static_cast<I128>(static_cast<unsigned __int128>(l) * static_cast<unsigned __int128>(r));
      case Opcode::ShLI:
        return static_cast<I128>(static_cast<unsigned __int128>(l)
                                 << std::min<unsigned>(static_cast<unsigned>(r), bits));
      case Opcode::NegI:
        return -l;
      default:
        return l;  // trunci
    }
  }
  [[nodiscard]] static uint32_t violated(Opcode op, uint64_t l, uint64_t r, unsigned bits, unsigned to) {
    const I128 one = 1;
    const I128 shift = static_cast<I128>(std::min<uint64_t>(r, bits));
    const I128 s = exact(op, sign_extend(l, bits), op == Opcode::ShLI ? shift : sign_extend(r, bits), bits);
    uint32_t out = 0;
    if (s < -(one << (to - 1)) || s >= one << (to - 1)) out |= kNoSigned;
    // Two operands of 64 bits have a product below 2^128: compare it as unsigned.
    const auto u = static_cast<unsigned __int128>(
        exact(op, static_cast<I128>(l), op == Opcode::ShLI ? shift : static_cast<I128>(r), bits));
    if (op != Opcode::NegI && u >> to != 0) out |= kNoUnsigned;
    if (op == Opcode::NegI && l != 0) out |= kNoUnsigned;
    return out;
  }
  void report(const Exec& x, InstId at, Opcode op, uint64_t l, uint64_t r, unsigned bits, unsigned to, uint32_t broken,
              InstId) {
    const bool as_signed = (broken & kNoSigned) != 0;
    const auto text = [&](uint64_t v) { return as_signed ? std::to_string(sign_extend(v, bits)) : std::to_string(v); };
    const bool unary = op == Opcode::NegI || op == Opcode::TruncI;
    const char* sign = op == Opcode::AddI ? " + " : op == Opcode::SubI ? " - " : op == Opcode::MulI ? " * " : " << ";
    const std::string what = unary ? (op == Opcode::NegI ? "-(" + text(l) + ")" : text(l))
                                   : text(l) + sign + (op == Opcode::ShLI ? std::to_string(r) : text(r));
    findings.add(x, {Code::T0117,
                     at,
                     what + " does not fit " + (as_signed ? "signed" : "unsigned") + " i" + std::to_string(to) +
                         ", and the overflow flag excludes that",
                     {},
                     {}});
  }
};

}  // namespace

std::unique_ptr<CheckPart> make_overflow_check(const CheckFacts& facts, Findings& findings) {
  return std::make_unique<OverflowCheck>(facts, findings);
}

}  // namespace tile
