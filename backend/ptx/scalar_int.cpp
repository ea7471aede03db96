// Integer operations, comparisons of integers included: semantics.md section 1.
#include "backend/ptx/scalar_parts.h"

namespace tile {
namespace {

/// i1 by logic: modulo 2 a sum is xor and a product is and; the signed reading of 1 is -1.
Value* lower_bit(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  const Expr x = s.arg(0);
  const auto y = [&] { return s.arg(1); };
  switch (s.op) {
    case Opcode::AbsI:
    case Opcode::NegI:
      return x;
    case Opcode::AddI:
    case Opcode::SubI:
    case Opcode::XOrI:
      return x ^ y();
    case Opcode::MulI:
    case Opcode::AndI:
      return x & y();
    case Opcode::OrI:
      return x | y();
    case Opcode::MulhiI:
      return b.getFalse();
    case Opcode::DivI:
      return x | ~y();  // x / 0 is all ones, x / 1 is x
    case Opcode::RemI:
    case Opcode::ShLI:
      return x & ~y();
    case Opcode::ShRI:
      return s.is_signed ? x : x & ~y();
    case Opcode::MaxI:
      return s.is_signed ? x & y() : x | y();
    case Opcode::MinI:
      return s.is_signed ? x | y() : x & y();
    default:
      return nullptr;
  }
}

/// Nothing that LLVM leaves undefined is executed: a divisor of 0 or -1 is replaced by 1.
Value* divide(const ScalarOp& s, bool remainder) {
  llvm::IRBuilder<>& b = s.d.b;
  const Expr x = s.arg(0), y = s.arg(1), by_zero = y == 0;
  if (!s.is_signed) {
    const Expr safe = select(by_zero, 1, y);
    if (remainder) return select(by_zero, x, x % safe);
    Expr q = x / safe;
    if (s.round == Round::PositiveInf) q = q + zext(q * safe != x, q.type());
    return select(by_zero, -1, q);
  }
  const Expr by_minus_one = y == -1, safe = select(by_zero | by_minus_one, 1, y);
  const Expr q{&b, b.CreateSDiv(x, safe)}, r = x - q * safe;
  if (remainder) return select(by_minus_one, 0, select(by_zero, x, r));
  Expr result = q;
  if (s.round != Round::Zero) {
    const Expr opposite = slt(x ^ safe, 0), off = r != 0;
    result = s.round == Round::NegativeInf ? q - zext(off & opposite, q.type()) : q + zext(off & ~opposite, q.type());
  }
  return select(by_zero, -1, select(by_minus_one, -x, result));
}

Value* shift(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  const Expr x = s.arg(0), y = s.arg(1), inside = y < x.bits(), amount = y & (x.bits() - 1);
  if (s.op == Opcode::ShLI) return select(inside, x << amount, 0);
  if (!s.is_signed) return select(inside, x >> amount, 0);
  return b.CreateAShr(x, umin(y, x.bits() - 1));
}

Value* multiply_high(const ScalarOp& s) {
  const Expr x = s.arg(0), y = s.arg(1);
  llvm::Type* wide = s.d.b.getIntNTy(2 * x.bits());
  return trunc((zext(x, wide) * zext(y, wide)) >> x.bits(), x.type());
}

Value* compare(const ScalarOp& s) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P kSigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  static constexpr P kUnsigned[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  if (s.predicate >= std::size(kSigned)) return nullptr;
  Expr x = s.arg(0), y = s.arg(1);
  if (s.in == ElementType::I1) {
    llvm::Type* byte = s.d.b.getInt8Ty();
    x = s.is_signed ? sext(x, byte) : zext(x, byte);
    y = s.is_signed ? sext(y, byte) : zext(y, byte);
  }
  return s.d.b.CreateICmp((s.is_signed ? kSigned : kUnsigned)[s.predicate], x, y);
}

/// The value of a register is kept in its low bits: i4 is held in a byte whose upper half is zero.
Value* extend(const ScalarOp& s) {
  if (!kInt4.has(s.in) || !kInt4.has(s.out) || info(s.in).bits >= info(s.out).bits) return nullptr;
  llvm::IRBuilder<>& b = s.d.b;
  Expr x = s.arg(0);
  if (s.in == ElementType::I4 && s.is_signed) x = {&b, b.CreateAShr(x << 4, 4)};
  llvm::Type* to = register_type(b.getContext(), s.out);
  x = s.is_signed ? sext(x, to) : zext(x, to);
  return s.out == ElementType::I4 ? x & 15 : x;
}
Value* cut(const ScalarOp& s) {
  if (!kInt4.has(s.in) || !kInt4.has(s.out) || info(s.in).bits <= info(s.out).bits) return nullptr;
  const Expr x = trunc(s.arg(0), register_type(s.d.b.getContext(), s.out));
  return s.out == ElementType::I4 ? x & 15 : x;
}

}  // namespace

Value* lower_integer(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  if (s.op == Opcode::ExtI) return extend(s);
  if (s.op == Opcode::TruncI) return cut(s);
  if (!kInt.has(s.in)) return nullptr;
  if (s.op == Opcode::CmpI) return compare(s);
  if (s.in == ElementType::I1) return lower_bit(s);
  switch (s.op) {
    case Opcode::AbsI:
      return select(slt(s.arg(0), 0), -s.arg(0), s.arg(0));
    case Opcode::NegI:
      return -s.arg(0);
    case Opcode::AddI:
      return s.arg(0) + s.arg(1);
    case Opcode::SubI:
      return s.arg(0) - s.arg(1);
    case Opcode::MulI:
      return s.arg(0) * s.arg(1);
    case Opcode::MulhiI:
      return multiply_high(s);
    case Opcode::DivI:
      return divide(s, false);
    case Opcode::RemI:
      return divide(s, true);
    case Opcode::MaxI:
      return b.CreateSelect(s.is_signed ? b.CreateICmpSGT(s.x[0], s.x[1]) : b.CreateICmpUGT(s.x[0], s.x[1]), s.x[0],
                            s.x[1]);
    case Opcode::MinI:
      return b.CreateSelect(s.is_signed ? b.CreateICmpSLT(s.x[0], s.x[1]) : b.CreateICmpULT(s.x[0], s.x[1]), s.x[0],
                            s.x[1]);
    case Opcode::AndI:
      return s.arg(0) & s.arg(1);
    case Opcode::OrI:
      return s.arg(0) | s.arg(1);
    case Opcode::XOrI:
      return s.arg(0) ^ s.arg(1);
    case Opcode::ShLI:
    case Opcode::ShRI:
      return shift(s);
    default:
      return nullptr;
  }
}

}  // namespace tile
