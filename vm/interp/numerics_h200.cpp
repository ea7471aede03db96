// Which kernels follow an H200; the NaN of f64, on top of the exact kernels and of its functions.
#include "vm/interp/numerics_h200.h"

#include <algorithm>
#include <cstring>

#include "vm/base/numeric.h"
#include "vm/interp/numerics_h200_f64.h"

namespace tile {
namespace {

constexpr uint64_t kInfinity = 0x7FF0000000000000, kQuiet = 0x0008000000000000, kInvalid = 0xFFF8000000000000;

bool is_nan(uint64_t bits) { return (bits & ~(uint64_t{1} << 63)) > kInfinity; }

/// The NaN of an operation: the first or the last operand that is one, made quiet, or kInvalid.
template <bool kLast, size_t kOperands>
uint64_t nan_of(const uint64_t (&operands)[kOperands]) {
  uint64_t found = kInvalid;
  for (size_t k = kOperands; k-- > 0;) {
    const uint64_t x = operands[kLast ? kOperands - 1 - k : k];
    if (is_nan(x)) found = x | kQuiet;
  }
  return found;
}

/// The exact kernel with those NaN.
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
      uint64_t of_one[kOperands];
      for (size_t k = 0; k < kOperands; ++k) of_one[k] = operands[k][i];
      results[i] = nan_of<kOp == Opcode::RemF>(of_one);
    }
    std::memcpy(static_cast<char*>(out) + first * kSize, results, count * kSize);
  }
}

template <size_t kOperands, auto kFunction>
void of_numbers(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<uint64_t*>(out);
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits[kOperands];
    for (size_t k = 0; k < kOperands; ++k) bits[k] = static_cast<const uint64_t*>(in[k])[i];
    double result = 0;
    if constexpr (kOperands == 1) {
      result = kFunction(double_of(bits[0]));
    } else {
      result = kFunction(double_of(bits[0]), double_of(bits[1]));
    }
    o[i] = result != result ? nan_of<kOperands == 2>(bits) : double_bits(result);
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

ElementwiseFn of_f64(Opcode op, Rounding r) {
  switch (op) {
    case Opcode::AddF: return by_rounding<Opcode::AddF, 2>(r);
    case Opcode::SubF: return by_rounding<Opcode::SubF, 2>(r);
    case Opcode::MulF: return by_rounding<Opcode::MulF, 2>(r);
    case Opcode::DivF: return by_rounding<Opcode::DivF, 2>(r);
    case Opcode::Fma: return by_rounding<Opcode::Fma, 3>(r);
    case Opcode::Sqrt: return by_rounding<Opcode::Sqrt, 1>(r);
    case Opcode::RemF: return with_nan<Opcode::RemF, Rounding::NearestEven, 2>;
    case Opcode::Exp: return of_numbers<1, h200::exponential>;
    case Opcode::Exp2: return of_numbers<1, h200::binary_exponential>;
    case Opcode::Log: return of_numbers<1, h200::logarithm>;
    case Opcode::Log2: return of_numbers<1, h200::binary_logarithm>;
    case Opcode::Sin: return of_numbers<1, h200::sine>;
    case Opcode::Cos: return of_numbers<1, h200::cosine>;
    case Opcode::Tan: return of_numbers<1, h200::tangent_of_angle>;
    case Opcode::SinH: return of_numbers<1, h200::hyperbolic_sine>;
    case Opcode::CosH: return of_numbers<1, h200::hyperbolic_cosine>;
    case Opcode::TanH: return of_numbers<1, h200::hyperbolic_tangent>;
    case Opcode::Rsqrt: return of_numbers<1, h200::inverse_root>;
    case Opcode::FPowF: return of_numbers<2, h200::power>;
    case Opcode::Atan2: return of_numbers<2, h200::angle_between>;
    default: return nullptr;
  }
}

}  // namespace

ElementwiseFn find_elementwise(Opcode op, ElementType in, ElementType out, const Modifiers& m, Numerics numerics) {
  const ElementwiseFn exact = find_elementwise(op, in, out, m);
  if (!exact || numerics == Numerics::Exact || in != out) return exact;
  if (in == ElementType::F64) {
    const ElementwiseFn other = of_f64(op, m.rounding);
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
