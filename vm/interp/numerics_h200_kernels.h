// What the kernels of an H200's numbers are written with: f32 arithmetic with that machine's one NaN, its function unit, loops over elements.
#pragma once

#include "vm/base/numeric.h"
#include "vm/interp/elementwise.h"
#include "vm/interp/function_unit.h"

namespace tile::h200 {

constexpr uint32_t kNan = 0x7FFFFFFF, kSign = 0x80000000, kInfinity = 0x7F800000;

inline float with_nan(float x) { return x != x ? float_of(kNan) : x; }
inline float product(float x, float y) { return with_nan(x * y); }
inline float sum(float x, float y) { return with_nan(x + y); }
inline float difference(float x, float y) { return with_nan(x - y); }
inline float fused(float x, float y, float z) { return with_nan(__builtin_fmaf(x, y, z)); }
inline float magnitude(float x) { return float_of(float_bits(x) & ~kSign); }
inline float negated(float x) { return float_of(float_bits(x) ^ kSign); }
/// `x` with the sign bit of `sign`, whatever they are.
inline float signed_as(float x, float sign) { return float_of((float_bits(x) & ~kSign) | (float_bits(sign) & kSign)); }

inline float reciprocal(float x) { return float_of(unit_reciprocal(float_bits(x))); }
inline float root(float x) { return float_of(unit_root(float_bits(x))); }
inline float inverse_root(float x) { return float_of(unit_inverse_root(float_bits(x))); }
inline float power_of_two(float x) { return float_of(unit_power_of_two(float_bits(x))); }
inline float tangent(float x) { return float_of(unit_hyperbolic_tangent(float_bits(x))); }

template <float (*kFunction)(float)>
void of_f32(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<float*>(out);
  const auto* x = static_cast<const float*>(in[0]);
  for (size_t i = 0; i < n; ++i) o[i] = kFunction(x[i]);
}
template <float (*kFunction)(float, float)>
void of_f32(void* out, const void* const* in, size_t n) {
  auto* o = static_cast<float*>(out);
  const auto *x = static_cast<const float*>(in[0]), *y = static_cast<const float*>(in[1]);
  for (size_t i = 0; i < n; ++i) o[i] = kFunction(x[i], y[i]);
}

/// Operands widened, the result rounded to nearest even.
template <auto kFunction, float (*kWiden)(uint16_t), uint16_t (*kNarrow)(float), size_t... kOperands>
void of_16_bits(void* out, const void* const* in, size_t n, std::index_sequence<kOperands...>) {
  auto* o = static_cast<uint16_t*>(out);
  for (size_t i = 0; i < n; ++i) o[i] = kNarrow(kFunction(kWiden(static_cast<const uint16_t*>(in[kOperands])[i])...));
}
inline float widen_f16(uint16_t x) { return f16_to_f32(x); }
inline float widen_bf16(uint16_t x) { return bf16_to_f32(x); }
inline uint16_t narrow_f16(float x) { return f32_to_f16(x); }
inline uint16_t narrow_bf16(float x) { return f32_to_bf16(x); }

template <auto kFunction, size_t kOperands = 1>
ElementwiseFn by_type(ElementType e) {
  using Operands = std::make_index_sequence<kOperands>;
  switch (e) {
    case ElementType::F32: return of_f32<kFunction>;
    case ElementType::F16: return [](void* out, const void* const* in, size_t n) { of_16_bits<kFunction, widen_f16, narrow_f16>(out, in, n, Operands()); };
    case ElementType::BF16: return [](void* out, const void* const* in, size_t n) { of_16_bits<kFunction, widen_bf16, narrow_bf16>(out, in, n, Operands()); };
    default: return nullptr;
  }
}

}  // namespace tile::h200
