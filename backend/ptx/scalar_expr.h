// Shorthand for arithmetic on LLVM values, so that functions read like the formulas they compute. Emits what is
// written, in order.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include <llvm/IR/Intrinsics.h>

#include "backend/ptx/device.h"

namespace tile {

/// A value and the builder that what is computed from it goes to. Comparisons and division of integers are unsigned;
/// comparisons of floats are false if an operand is NaN, but `!=` is true.
struct Expr {
  llvm::IRBuilder<>* b = nullptr;
  Value* v = nullptr;

  [[nodiscard]] llvm::Type* type() const { return v->getType(); }
  [[nodiscard]] bool is_float() const { return type()->isFloatingPointTy(); }
  [[nodiscard]] unsigned bits() const {
    return static_cast<unsigned>(type()->getPrimitiveSizeInBits().getFixedValue());
  }
  operator Value*() const { return v; }  // NOLINT: as good as the value

  /// A constant of the same type.
  [[nodiscard]] Expr number(double x) const {
    return {b, is_float() ? static_cast<Value*>(llvm::ConstantFP::get(type(), x))
                          : llvm::ConstantInt::get(type(), static_cast<uint64_t>(static_cast<int64_t>(x)))};
  }
  template <std::integral N>
  [[nodiscard]] Expr number(N n) const {
    if (is_float()) return number(static_cast<double>(n));
    return {b, llvm::ConstantInt::get(type(), static_cast<uint64_t>(n))};
  }
};

template <class N>
concept Number = std::integral<N> || std::floating_point<N>;

#define TILE_EXPR_OPERATOR(op, expression)  \
  inline Expr operator op(Expr x, Expr y) { \
    return {x.b, (expression)};             \
  }                                         \
  template <Number N>                       \
  inline Expr operator op(Expr x, N y) {    \
    return x op x.number(y);                \
  }                                         \
  template <Number N>                       \
  inline Expr operator op(N x, Expr y) {    \
    return y.number(x) op y;                \
  }
TILE_EXPR_OPERATOR(+, x.is_float() ? x.b->CreateFAdd(x, y) : x.b->CreateAdd(x, y))
TILE_EXPR_OPERATOR(-, x.is_float() ? x.b->CreateFSub(x, y) : x.b->CreateSub(x, y))
TILE_EXPR_OPERATOR(*, x.is_float() ? x.b->CreateFMul(x, y) : x.b->CreateMul(x, y))
TILE_EXPR_OPERATOR(/, x.is_float() ? x.b->CreateFDiv(x, y) : x.b->CreateUDiv(x, y))
TILE_EXPR_OPERATOR(%, x.b->CreateURem(x, y))
TILE_EXPR_OPERATOR(&, x.b->CreateAnd(x, y))
TILE_EXPR_OPERATOR(|, x.b->CreateOr(x, y))
TILE_EXPR_OPERATOR(^, x.b->CreateXor(x, y))
TILE_EXPR_OPERATOR(<<, x.b->CreateShl(x, y))
TILE_EXPR_OPERATOR(>>, x.b->CreateLShr(x, y))
TILE_EXPR_OPERATOR(==, x.is_float() ? x.b->CreateFCmpOEQ(x, y) : x.b->CreateICmpEQ(x, y))
TILE_EXPR_OPERATOR(!=, x.is_float() ? x.b->CreateFCmpUNE(x, y) : x.b->CreateICmpNE(x, y))
TILE_EXPR_OPERATOR(<, x.is_float() ? x.b->CreateFCmpOLT(x, y) : x.b->CreateICmpULT(x, y))
TILE_EXPR_OPERATOR(<=, x.is_float() ? x.b->CreateFCmpOLE(x, y) : x.b->CreateICmpULE(x, y))
TILE_EXPR_OPERATOR(>, x.is_float() ? x.b->CreateFCmpOGT(x, y) : x.b->CreateICmpUGT(x, y))
TILE_EXPR_OPERATOR(>=, x.is_float() ? x.b->CreateFCmpOGE(x, y) : x.b->CreateICmpUGE(x, y))
#undef TILE_EXPR_OPERATOR

inline Expr operator-(Expr x) {
  return {x.b, x.is_float() ? x.b->CreateFNeg(x) : x.b->CreateNeg(x)};
}
inline Expr operator~(Expr x) {
  return {x.b, x.b->CreateNot(x)};
}

inline Expr slt(Expr x, Expr y) {
  return {x.b, x.b->CreateICmpSLT(x, y)};
}
template <Number N>
Expr slt(Expr x, N y) {
  return slt(x, x.number(y));
}
template <Number N>
Expr slt(N x, Expr y) {
  return slt(y.number(x), y);
}
inline Expr select(Expr c, Expr x, Expr y) {
  return {c.b, c.b->CreateSelect(c, x, y)};
}
template <Number N>
Expr select(Expr c, N x, Expr y) {
  return select(c, y.number(x), y);
}
template <Number N>
Expr select(Expr c, Expr x, N y) {
  return select(c, x, x.number(y));
}
inline Expr umin(Expr x, Expr y) {
  return select(x < y, x, y);
}
template <Number N>
Expr umin(Expr x, N y) {
  return umin(x, x.number(y));
}
inline Expr is_nan(Expr x) {
  return x != x;
}

inline Expr cast(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateBitCast(x, to)};
}
inline Expr zext(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateZExt(x, to)};
}
inline Expr sext(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateSExt(x, to)};
}
inline Expr trunc(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateTrunc(x, to)};
}
/// The bits of a float as an integer of its width, and back to float (32 bits) or double (64).
inline Expr bits_of(Expr x) {
  return cast(x, x.b->getIntNTy(x.bits()));
}
inline Expr float_from(Expr x) {
  return cast(x, x.bits() == 32 ? x.b->getFloatTy() : x.b->getDoubleTy());
}
inline Expr to_double(Expr x) {
  return {x.b, x.b->CreateFPExt(x, x.b->getDoubleTy())};
}
inline Expr to_float(Expr x) {
  return {x.b, x.b->CreateFPTrunc(x, x.b->getFloatTy())};
}
inline Expr from_signed(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateSIToFP(x, to)};
}
inline Expr from_unsigned(Expr x, llvm::Type* to) {
  return {x.b, x.b->CreateUIToFP(x, to)};
}

inline Expr unary(llvm::Intrinsic::ID id, Expr x) {
  return {x.b, x.b->CreateUnaryIntrinsic(id, x)};
}
inline Expr fused(Expr x, Expr y, Expr z) {
  return {x.b, x.b->CreateIntrinsic(llvm::Intrinsic::fma, {x.type()}, {x, y, z})};
}
template <Number N>
Expr fused(Expr x, Expr y, N z) {
  return fused(x, y, x.number(z));
}
template <Number N>
Expr fused(Expr x, N y, Expr z) {
  return fused(x, x.number(y), z);
}
template <Number N, Number M>
Expr fused(Expr x, N y, M z) {
  return fused(x, x.number(y), x.number(z));
}
inline Expr magnitude(Expr x) {
  return unary(llvm::Intrinsic::fabs, x);
}
/// To the nearest integer, ties to even.
inline Expr rounded(Expr x) {
  return unary(llvm::Intrinsic::roundeven, x);
}
/// NaN gives `low`.
inline Expr clamped(Expr x, double low, double high) {
  const Expr a = select(x > low, x, low);
  return select(a < high, a, high);
}
/// The integer that a float within the range of i64 holds.
inline Expr to_i64(Expr x) {
  return {x.b, x.b->CreateFPToSI(x, x.b->getInt64Ty())};
}
/// 2^k as a double, -1022 <= k <= 1023.
inline Expr power_of_two(Expr k) {
  return float_from((k + 1023) << 52);
}
/// Leading zero bits; the width for 0.
inline Expr leading_zeros(Expr x) {
  return {x.b, x.b->CreateIntrinsic(llvm::Intrinsic::ctlz, {x.type()}, {x, x.b->getFalse()})};
}
/// The magnitude of x with the sign of `sign`, in integer operations.
inline Expr with_sign(Expr x, Expr sign) {
  const Expr u = bits_of(x), s = bits_of(sign);
  const uint64_t top = 1ull << (u.bits() - 1);
  return cast((u & (top - 1)) | (s & top), x.type());
}

/// `condition ? then() : otherwise()` with control flow, for several values at once.
template <class A, class B>
std::vector<Expr> branches(Expr condition, A then, B otherwise) {
  llvm::IRBuilder<>& b = *condition.b;
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(b.getContext(), "", f);
  auto* no = llvm::BasicBlock::Create(b.getContext(), "", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "", f);
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  const std::vector<Expr> x = then();
  auto* yes_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(no);
  const std::vector<Expr> y = otherwise();
  auto* no_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  std::vector<Expr> result;
  for (size_t i = 0; i < x.size(); ++i) {
    llvm::PHINode* phi = b.CreatePHI(x[i].type(), 2);
    phi->addIncoming(x[i], yes_end);
    phi->addIncoming(y[i], no_end);
    result.push_back({&b, phi});
  }
  return result;
}
template <class A, class B>
Expr branch(Expr condition, A then, B otherwise) {
  return branches(
      condition, [&] { return std::vector<Expr>{then()}; }, [&] { return std::vector<Expr>{otherwise()}; })[0];
}
/// Repeats `step` on the variables while `condition` holds; gives their last values.
Values repeat(llvm::IRBuilder<>& b, Values start, const std::function<Value*(const Values&)>& condition,
              const std::function<Values(const Values&)>& step);

using Body = std::function<Expr(std::span<const Expr>)>;
/// Calls the internal function `name` of the module, which `body` fills at its first use. One such function serves all
/// uses; it is not inlined, has no side effects, and must not use the device interface, whose calls may depend on the
/// kernel.
[[nodiscard]] Expr call_shared(llvm::Module& module, const std::string& name, llvm::Type* result,
                               std::initializer_list<Expr> arguments, const Body& body);

}  // namespace tile
