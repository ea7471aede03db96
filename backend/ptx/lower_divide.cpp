// Quotients that share a divisor, as in rows divided by their sums: its reciprocal is made once.
#include <map>

#include "backend/ptx/lowering.h"

namespace tile {
namespace {

constexpr size_t kFewest = 8;                 // dividends for which it pays
constexpr double kSmall = 0x1p-60, kLarge = 0x1p60;  // where nothing below overflows, and no remainder is cut

/// |x| in kSmall..kLarge, or +0 where that is as good: the corrections leave its quotient alone, but turn that of -0 around.
Value* moderate(llvm::IRBuilder<>& b, Value* x, bool or_zero) {
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  const auto number = [&](double n) { return llvm::ConstantFP::get(b.getFloatTy(), n); };
  Value* least = b.CreateFCmpOGE(size, number(kSmall));
  if (or_zero) least = b.CreateOr(least, b.CreateICmpEQ(b.CreateBitCast(x, b.getInt32Ty()), b.getInt32(0)));
  return b.CreateAnd(least, b.CreateFCmpOLE(size, number(kLarge)));
}

}  // namespace

std::optional<Values> divide_by_few(Lowering& x, InstId i, const Values& dividends, const Values& divisors) {
  const Function& f = x.f;
  if (f.insts[i].op != Opcode::DivF || x.element(f.result(i)) != ElementType::F32) return std::nullopt;
  for (const char* name : {"rounding_mode", "flush_to_zero"})
    if (const int at = attr_index(f.def(i), name); at >= 0)
      if (const uint32_t word = f.attr(i, static_cast<size_t>(at)); word != 0 && word != kNone) return std::nullopt;
  std::map<Value*, std::vector<size_t>> by_divisor;
  for (size_t r = 0; r < divisors.size(); ++r) by_divisor[divisors[r]].push_back(r);
  if (by_divisor.size() * kFewest > divisors.size()) return std::nullopt;

  llvm::IRBuilder<>& b = x.b;
  Values out(dividends.size());
  // In the order of registers, so that the code does not depend on addresses.
  for (size_t r = 0; r < divisors.size(); ++r) {
    const auto& members = by_divisor[divisors[r]];
    if (members[0] != r) continue;
    Value* d = divisors[r];
    // A reciprocal within one unit of the last place becomes the nearest number by one step of Newton's, unless all bits of the divisor's
    // fraction are set. With it, two corrections of the quotient round as the division does (Markstein).
    Value* fraction = b.CreateAnd(b.CreateBitCast(d, b.getInt32Ty()), b.getInt32(0x7FFFFF));
    Value* fine = b.CreateAnd(moderate(b, d, false), b.CreateICmpNE(fraction, b.getInt32(0x7FFFFF)));
    for (const size_t k : members) fine = b.CreateAnd(fine, moderate(b, dividends[k], true));
    std::vector<Lowering::Var> vars;
    for (size_t k = 0; k < members.size(); ++k) vars.push_back(x.var(b.getFloatTy()));
    x.if_then(
        fine,
        [&] {
          Value* minus = b.CreateFNeg(d);
          Value* y = x.d.approx(ApproxOp::Rcp, d);
          y = x.d.fma(y, x.d.fma(minus, y, llvm::ConstantFP::get(b.getFloatTy(), 1.0)), y);
          for (size_t k = 0; k < members.size(); ++k) {
            Value* a = dividends[members[k]];
            Value* q = b.CreateFMul(a, y);
            for (int step = 0; step < 2; ++step) q = x.d.fma(x.d.fma(minus, q, a), y, q);
            x.store(vars[k], q);
          }
        },
        [&] {
          for (size_t k = 0; k < members.size(); ++k) x.store(vars[k], b.CreateFDiv(dividends[members[k]], d));
        });
    for (size_t k = 0; k < members.size(); ++k) out[members[k]] = x.load(vars[k]);
  }
  return out;
}

}  // namespace tile
