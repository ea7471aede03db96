// What the parts of the scalar lowering share: modifiers of an operation, and the groups of operations by file.
// Where a function takes expressions, code goes to their builder and `d` only says which target and module it is for.
#pragma once

#include <optional>

#include "backend/ptx/scalar.h"
#include "backend/ptx/scalar_expr.h"

namespace tile {

/// Rounding modes with the values of the bytecode.
enum class Round : uint8_t { NearestEven, Zero, NegativeInf, PositiveInf, Approx, Full, IntToZero, NearestAway };

/// One operation on one element: types, modifiers, operands.
struct ScalarOp {
  DeviceOps& d;
  Opcode op{};
  ElementType in{}, out{};  ///< of the last operand (select: the values), of the result
  std::span<Value* const> x;
  Round round = Round::NearestEven;
  bool is_signed = true;
  uint32_t predicate = 0;
  bool ordered = true;
  bool ftz = false, propagate_nan = false, saturating = false;

  [[nodiscard]] Expr arg(size_t i) const { return {&d.b, x[i]}; }
  [[nodiscard]] bool directed() const {
    return round == Round::Zero || round == Round::NegativeInf || round == Round::PositiveInf;
  }
};

// Each gives nullptr for what is not its own or not legal.
[[nodiscard]] Value* lower_integer(const ScalarOp& s);
[[nodiscard]] Value* lower_arithmetic(const ScalarOp& s);
[[nodiscard]] Value* lower_conversion(const ScalarOp& s);
[[nodiscard]] Value* lower_math(const ScalarOp& s);

/// f16, bf16 as float, exactly; float and double as they are.
[[nodiscard]] Expr widened(DeviceOps& d, ElementType e, Expr x);
/// float rounded to f16 or bf16 to nearest even.
[[nodiscard]] Expr narrowed(DeviceOps& d, ElementType e, Expr x);
/// Any float type as float, or as double where it is f64. Exact.
[[nodiscard]] Expr decoded(DeviceOps& d, ElementType from, Expr x);
/// float or double rounded to any float type.
[[nodiscard]] Expr encoded(DeviceOps& d, ElementType to, Expr x, Round mode);
/// Subnormal floats replaced by the zero of their sign.
[[nodiscard]] Expr flushed(Expr x);

/// The functions of section 4 in double, within an ulp; each is an internal function of the module (math_f64.cpp).
[[nodiscard]] Expr math_f64(DeviceOps& d, Opcode op, std::span<const Expr> x);
/// The same in double with an error below 2^-40 of the value, for results that are rounded to float (math_wide.cpp).
[[nodiscard]] Expr math_wide(DeviceOps& d, Opcode op, std::span<const Expr> x);

}  // namespace tile
