// What tileiras 13.5 makes of approximate variants and functions for sm_90 where that is one instruction of the function unit and
// multiplications around it: the operand is scaled out of the subnormal numbers, the result scaled back (spec/semantics.md section 6).
#include "vm/base/numeric.h"
#include "vm/interp/function_unit.h"
#include "vm/interp/numerics_h200.h"

namespace tile {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;
constexpr uint32_t kNan = 0x7FFFFFFF, kSign = 0x80000000, kInfinity = 0x7F800000;

float flushed(float x) {
  const uint32_t bits = float_bits(x);
  return (bits & kInfinity) == 0 ? float_of(bits & kSign) : x;
}
/// A product with the one NaN of f32.
float product(float x, float y) {
  const float p = x * y;
  return p != p ? float_of(kNan) : p;
}
float flushed_product(float x, float y) { return flushed(product(flushed(x), flushed(y))); }

float reciprocal(float x) { return float_of(unit_reciprocal(float_bits(x))); }
float root(float x) { return float_of(unit_root(float_bits(x))); }
float inverse_root(float x) { return float_of(unit_inverse_root(float_bits(x))); }
float power_of_two(float x) { return float_of(unit_power_of_two(float_bits(x))); }
float tangent(float x) { return float_of(unit_hyperbolic_tangent(float_bits(x))); }

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

float approximate_quotient(float x, float y) {
  if (is_tiny(y)) return product(reciprocal(product(y, 0x1p24f)), product(x, 0x1p24f));
  return product(reciprocal(y), x);
}
float approximate_quotient_ftz(float x, float y) { return flushed_product(x, reciprocal(y)); }

/// Reciprocals of what is larger are subnormal, which the unit takes for zeros.
constexpr float kLarge = 0x1p126f;
float full_quotient(float x, float y) {
  if (__builtin_fabsf(y) > kLarge) return product(reciprocal(product(y, 0.25f)), product(x, 0.25f));
  return approximate_quotient(x, y);
}
float full_quotient_ftz(float x, float y) {
  if (__builtin_fabsf(y) > kLarge) return flushed_product(reciprocal(flushed_product(y, 0.25f)), flushed_product(x, 0.25f));
  return flushed_product(reciprocal(y), x);
}

template <float (*kFunction)(float)>
void of_f32(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<float*>(out);
  const auto* x = static_cast<const float*>(in[0]);
  for (size_t i = 0; i < n; ++i) o[i] = kFunction(x[i]);
}
template <float (*kFunction)(float, float)>
void of_two_f32(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<float*>(out);
  const auto *x = static_cast<const float*>(in[0]), *y = static_cast<const float*>(in[1]);
  for (size_t i = 0; i < n; ++i) o[i] = kFunction(x[i], y[i]);
}
template <float (*kFunction)(float)>
void of_f16(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<uint16_t*>(out);
  const auto* x = static_cast<const uint16_t*>(in[0]);
  for (size_t i = 0; i < n; ++i) o[i] = f32_to_f16(kFunction(f16_to_f32(x[i])));
}
template <float (*kFunction)(float)>
void of_bf16(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<uint16_t*>(out);
  const auto* x = static_cast<const uint16_t*>(in[0]);
  for (size_t i = 0; i < n; ++i) o[i] = f32_to_bf16(kFunction(bf16_to_f32(x[i])));
}

template <float (*kFunction)(float)>
ElementwiseFn by_type(ElementType e) {
  switch (e) {
    case ElementType::F32: return of_f32<kFunction>;
    case ElementType::F16: return of_f16<kFunction>;
    case ElementType::BF16: return of_bf16<kFunction>;
    default: return nullptr;
  }
}

}  // namespace

ElementwiseFn find_unit_function(Opcode op, ElementType e, const Modifiers& m) {
  const bool approximate = m.rounding == Rounding::Approx && e == ElementType::F32, full = m.rounding == Rounding::Full && e == ElementType::F32;
  switch (op) {
    case Opcode::Exp2: return m.flush_to_zero ? of_f32<power_of_two> : by_type<scaled_power_of_two>(e);
    case Opcode::Rsqrt: return m.flush_to_zero ? of_f32<inverse_root> : by_type<scaled_inverse_root>(e);
    case Opcode::Exp: return approximate ? of_f32<approximate_exponential> : nullptr;
    case Opcode::TanH: return approximate ? of_f32<tangent> : nullptr;
    case Opcode::Sqrt: return !approximate ? nullptr : m.flush_to_zero ? of_f32<root> : of_f32<scaled_root>;
    case Opcode::DivF:
      if (approximate) return m.flush_to_zero ? of_two_f32<approximate_quotient_ftz> : of_two_f32<approximate_quotient>;
      if (full) return m.flush_to_zero ? of_two_f32<full_quotient_ftz> : of_two_f32<full_quotient>;
      return nullptr;
    default: return nullptr;
  }
}

}  // namespace tile
