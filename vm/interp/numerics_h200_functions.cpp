// What tileiras 13.5 makes of approximate variants and functions for sm_90 where that is one instruction of the function unit and
// multiplications around it: the operand is scaled out of the subnormal numbers, the result scaled back (spec/semantics.md section 6).
#include "vm/interp/numerics_h200.h"
#include "vm/interp/numerics_h200_kernels.h"

namespace tile {
namespace {

using namespace h200;

constexpr float kSmallestNormal = 0x1p-126f;

float flushed(float x) {
  const uint32_t bits = float_bits(x);
  return (bits & kInfinity) == 0 ? float_of(bits & kSign) : x;
}
/// Zero where the product, rounded to 24 bits whatever its exponent is, is subnormal.
float flushed_product(float x, float y) {
  const float result = product(flushed(x), flushed(y));
  if (__builtin_fabsf(result) == kSmallestNormal) {
    const double scaled = double{flushed(x)} * double{flushed(y)} * 0x1p64;
    if (__builtin_fabsf(static_cast<float>(scaled)) < kSmallestNormal * 0x1p64f) return float_of(float_bits(result) & kSign);
  }
  return flushed(result);
}

bool is_tiny(float x) { return __builtin_fabsf(x) < kSmallestNormal; }

float scaled_root(float x) { return is_tiny(x) ? product(root(product(x, 0x1p24f)), 0x1p-12f) : root(x); }
float scaled_inverse_root(float x) { return is_tiny(x) ? product(inverse_root(product(x, 0x1p24f)), 0x1p12f) : inverse_root(x); }
/// Below -126 the square of the power of half of x, so that subnormal results come out.
float scaled_power_of_two(float x) {
  if (!(x < -126.0f)) return power_of_two(x);
  const float half = power_of_two(x * 0.5f);
  return product(half, half);
}
float approximate_exponential(float x) { return scaled_power_of_two(product(x, 0x1.715476p+0f)); }

/// The reciprocal of a number that the compiler knows: rounded to nearest even, with zeros for subnormal operands and results.
float known_reciprocal(float y) { return flushed(with_nan(1.0f / flushed(y))); }

template <float (*kReciprocal)(float)>
float approximate_quotient(float x, float y) {
  if (is_tiny(y)) return product(kReciprocal(product(y, 0x1p24f)), product(x, 0x1p24f));
  return product(kReciprocal(y), x);
}
template <float (*kReciprocal)(float)>
float approximate_quotient_ftz(float x, float y) {
  return flushed_product(x, kReciprocal(y));
}

/// Reciprocals of what is larger are subnormal, which the unit takes for zeros.
constexpr float kLarge = 0x1p126f;
template <float (*kReciprocal)(float)>
float full_quotient(float x, float y) {
  if (__builtin_fabsf(y) > kLarge) return product(kReciprocal(product(y, 0.25f)), product(x, 0.25f));
  return approximate_quotient<kReciprocal>(x, y);
}
template <float (*kReciprocal)(float)>
float full_quotient_ftz(float x, float y) {
  if (__builtin_fabsf(y) > kLarge) return flushed_product(kReciprocal(flushed_product(y, 0.25f)), flushed_product(x, 0.25f));
  return flushed_product(kReciprocal(y), x);
}

template <float (*kReciprocal)(float)>
ElementwiseFn quotient(ElementType e, const Modifiers& m) {
  if (e != ElementType::F32) return nullptr;
  if (m.rounding == Rounding::Approx) return m.flush_to_zero ? of_f32<approximate_quotient_ftz<kReciprocal>> : of_f32<approximate_quotient<kReciprocal>>;
  if (m.rounding == Rounding::Full) return m.flush_to_zero ? of_f32<full_quotient_ftz<kReciprocal>> : of_f32<full_quotient<kReciprocal>>;
  return nullptr;
}

}  // namespace

ElementwiseFn find_unit_function(Opcode op, ElementType e, const Modifiers& m) {
  const bool approximate = m.rounding == Rounding::Approx && e == ElementType::F32;
  switch (op) {
    case Opcode::Exp2: return m.flush_to_zero ? of_f32<power_of_two> : by_type<scaled_power_of_two>(e);
    case Opcode::Rsqrt: return m.flush_to_zero ? of_f32<inverse_root> : by_type<scaled_inverse_root>(e);
    case Opcode::Exp: return approximate ? of_f32<approximate_exponential> : nullptr;
    case Opcode::TanH: return approximate ? of_f32<tangent> : nullptr;
    case Opcode::Sqrt: return !approximate ? nullptr : m.flush_to_zero ? of_f32<root> : of_f32<scaled_root>;
    case Opcode::DivF: return quotient<reciprocal>(e, m);
    default: return nullptr;
  }
}

ElementwiseFn find_quotient_by_constant(ElementType e, const Modifiers& m) { return quotient<known_reciprocal>(e, m); }

}  // namespace tile
