// Quotients that share a divisor, as in rows divided by their sums: its reciprocal is made once.
#include <bit>
#include <map>

#include "backend/ptx/lowering.h"

namespace tile {
namespace {

constexpr size_t kFewest = 8;                 // dividends for which it pays
constexpr double kSmall = 0x1p-60, kLarge = 0x1p60;  // where nothing below overflows, and no remainder is cut

constexpr size_t kAtOnce = 4, kFewestInLoop = 16;  // quotients of a trip of the slow way, of all its trips

/// i1: |x| of every number is in kSmall..kLarge; +0 is as good among dividends: the corrections leave its quotient alone, but turn that of -0
/// around. By integers, smallest and largest: a chain of conditions would take LLVM longer than the rest of most kernels.
Value* moderate(Lowering& x, Value* divisor, const Values& dividends) {
  llvm::IRBuilder<>& b = x.b;
  const auto bits = [](double n) { return std::bit_cast<uint32_t>(static_cast<float>(n)); };
  const auto size = [&](Value* v) { return b.CreateAnd(b.CreateBitCast(v, b.getInt32Ty()), x.i32(0x7FFFFFFF)); };
  Value *least = size(divisor), *most = least;
  for (Value* v : dividends) {
    Value* zero = b.CreateICmpEQ(b.CreateBitCast(v, b.getInt32Ty()), x.i32(0));
    least = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, least, b.CreateSelect(zero, x.i32(bits(kSmall)), size(v)));
    most = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, most, size(v));
  }
  return b.CreateAnd(b.CreateICmpUGE(least, x.i32(bits(kSmall))), b.CreateICmpULE(most, x.i32(bits(kLarge))));
}

/// The quotients by the instruction. A loop: its code is long, and few kernels come here.
void divide_each(Lowering& x, std::span<const Lowering::Var> vars, const Values& dividends, Value* divisor) {
  llvm::IRBuilder<>& b = x.b;
  const size_t n = dividends.size(), trips = n / kAtOnce;
  if (n < kFewestInLoop || n % kAtOnce != 0) {
    for (size_t k = 0; k < n; ++k) x.store(vars[k], b.CreateFDiv(dividends[k], divisor));
    return;
  }
  // Numbers move by kAtOnce places in each trip, dividends out at one end and quotients in at the other.
  llvm::BasicBlock *before = b.GetInsertBlock(), *loop = x.block("divide"), *after = x.block("divided");
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* trip = b.CreatePHI(b.getInt32Ty(), 2);
  trip->addIncoming(x.i32(0), before);
  std::vector<llvm::PHINode*> places;
  for (Value* v : dividends) {
    places.push_back(b.CreatePHI(b.getFloatTy(), 2));
    places.back()->addIncoming(v, before);
  }
  Values next(places.begin() + kAtOnce, places.end());
  for (size_t k = 0; k < kAtOnce; ++k) next.push_back(b.CreateFDiv(places[k], divisor));
  for (size_t k = 0; k < n; ++k) places[k]->addIncoming(next[k], loop);
  Value* count = b.CreateAdd(trip, x.i32(1));
  trip->addIncoming(count, loop);
  // Not to be unrolled: the bound is hidden.
  llvm::BranchInst* again = b.CreateCondBr(b.CreateICmpULT(count, x.d.opaque(x.i32(static_cast<uint32_t>(trips)))), loop, after);
  auto* off = llvm::MDNode::get(b.getContext(), llvm::MDString::get(b.getContext(), "llvm.loop.unroll.disable"));
  auto* notes = llvm::MDNode::getDistinct(b.getContext(), {nullptr, off});
  notes->replaceOperandWith(0, notes);
  again->setMetadata(llvm::LLVMContext::MD_loop, notes);
  b.SetInsertPoint(after);
  for (size_t k = 0; k < n; ++k) x.store(vars[k], next[k]);
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
    Values mine;
    for (const size_t k : members) mine.push_back(dividends[k]);
    Value* fine = b.CreateAnd(moderate(x, d, mine), b.CreateICmpNE(fraction, b.getInt32(0x7FFFFF)));
    std::vector<Lowering::Var> vars;
    for (size_t k = 0; k < members.size(); ++k) vars.push_back(x.var(b.getFloatTy()));
    x.if_then(
        fine,
        [&] {
          Value* minus = b.CreateFNeg(d);
          Value* y = x.d.approx(ApproxOp::Rcp, d);
          y = x.d.fma(y, x.d.fma(minus, y, llvm::ConstantFP::get(b.getFloatTy(), 1.0)), y);
          for (size_t k = 0; k < members.size(); ++k) {
            Value* a = mine[k];
            Value* q = b.CreateFMul(a, y);
            for (int step = 0; step < 2; ++step) q = x.d.fma(x.d.fma(minus, q, a), y, q);
            x.store(vars[k], q);
          }
        },
        [&] { divide_each(x, vars, mine, d); });
    for (size_t k = 0; k < members.size(); ++k) out[members[k]] = x.load(vars[k]);
  }
  return out;
}

}  // namespace tile
