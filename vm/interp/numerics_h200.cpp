// Which kernels follow an H200; NaN patterns of f64 arithmetic, on top of the exact kernels.
#include "vm/interp/numerics_h200.h"

#include <algorithm>
#include <cstring>

namespace tile {
namespace {

constexpr uint64_t kInfinity = 0x7FF0000000000000, kQuiet = 0x0008000000000000, kInvalid = 0xFFF8000000000000;

bool is_nan(uint64_t bits) { return (bits & ~(uint64_t{1} << 63)) > kInfinity; }

/// The exact kernel with other NaN: the first NaN operand, made quiet, or kInvalid.
template <Opcode kOp, Rounding kRounding, size_t kOperands>
void with_nan(void* out, const void* const* in, size_t n) {
  static const ElementwiseFn exact = [] {
    Modifiers m;
    m.rounding = kRounding;
    return find_elementwise(kOp, ElementType::F64, ElementType::F64, m);
  }();
  constexpr size_t kChunk = 64, kSize = sizeof(uint64_t);
  uint64_t results[kChunk], operands[kOperands][kChunk];
  for (size_t first = 0; first < n; first += kChunk) {
    const size_t count = std::min(kChunk, n - first);
    const void* from[kOperands];
    for (size_t k = 0; k < kOperands; ++k) {
      std::memcpy(operands[k], static_cast<const char*>(in[k]) + first * kSize, count * kSize);
      from[k] = operands[k];
    }
    exact(results, from, count);
    for (size_t i = 0; i < count; ++i) {
      if (!is_nan(results[i])) continue;
      results[i] = kInvalid;
      for (size_t k = kOperands; k-- > 0;)
        if (is_nan(operands[k][i])) results[i] = operands[k][i] | kQuiet;
    }
    std::memcpy(static_cast<char*>(out) + first * kSize, results, count * kSize);
  }
}

template <Opcode kOp, size_t kOperands>
ElementwiseFn by_rounding(Rounding r) {
  switch (r) {
    case Rounding::Zero: return with_nan<kOp, Rounding::Zero, kOperands>;
    case Rounding::NegativeInf: return with_nan<kOp, Rounding::NegativeInf, kOperands>;
    case Rounding::PositiveInf: return with_nan<kOp, Rounding::PositiveInf, kOperands>;
    default: return with_nan<kOp, Rounding::NearestEven, kOperands>;
  }
}

ElementwiseFn f64_with_nan(Opcode op, Rounding r) {
  switch (op) {
    case Opcode::AddF: return by_rounding<Opcode::AddF, 2>(r);
    case Opcode::SubF: return by_rounding<Opcode::SubF, 2>(r);
    case Opcode::MulF: return by_rounding<Opcode::MulF, 2>(r);
    case Opcode::DivF: return by_rounding<Opcode::DivF, 2>(r);
    case Opcode::Fma: return by_rounding<Opcode::Fma, 3>(r);
    case Opcode::Sqrt: return by_rounding<Opcode::Sqrt, 1>(r);
    case Opcode::RemF: return with_nan<Opcode::RemF, Rounding::NearestEven, 2>;
    case Opcode::Exp: return with_nan<Opcode::Exp, Rounding::NearestEven, 1>;
    case Opcode::Exp2: return with_nan<Opcode::Exp2, Rounding::NearestEven, 1>;
    case Opcode::Log: return with_nan<Opcode::Log, Rounding::NearestEven, 1>;
    case Opcode::Log2: return with_nan<Opcode::Log2, Rounding::NearestEven, 1>;
    case Opcode::Sin: return with_nan<Opcode::Sin, Rounding::NearestEven, 1>;
    case Opcode::Cos: return with_nan<Opcode::Cos, Rounding::NearestEven, 1>;
    case Opcode::Tan: return with_nan<Opcode::Tan, Rounding::NearestEven, 1>;
    case Opcode::SinH: return with_nan<Opcode::SinH, Rounding::NearestEven, 1>;
    case Opcode::CosH: return with_nan<Opcode::CosH, Rounding::NearestEven, 1>;
    case Opcode::TanH: return with_nan<Opcode::TanH, Rounding::NearestEven, 1>;
    case Opcode::Rsqrt: return with_nan<Opcode::Rsqrt, Rounding::NearestEven, 1>;
    case Opcode::FPowF: return with_nan<Opcode::FPowF, Rounding::NearestEven, 2>;
    case Opcode::Atan2: return with_nan<Opcode::Atan2, Rounding::NearestEven, 2>;
    default: return nullptr;
  }
}

}  // namespace

ElementwiseFn find_elementwise(Opcode op, ElementType in, ElementType out, const Modifiers& m, Numerics numerics) {
  const ElementwiseFn exact = find_elementwise(op, in, out, m);
  if (!exact || numerics == Numerics::Exact || in != out) return exact;
  if (in == ElementType::F64) {
    const ElementwiseFn other = f64_with_nan(op, m.rounding);
    return other ? other : exact;
  }
  if (const ElementwiseFn unit = find_unit_function(op, in, m)) return unit;
  const ElementwiseFn elementary = find_elementary(op, in);
  return elementary ? elementary : exact;
}

ElementwiseFn find_atomic_add(ElementType e, Numerics numerics) {
  Modifiers m;
  m.flush_to_zero = numerics == Numerics::H200 && e == ElementType::F32;
  return find_elementwise(Opcode::AddF, e, e, m, numerics);
}

}  // namespace tile
