// The elementary functions as tileiras 13.5 computes them in f32 for sm_90: reductions of the argument, polynomials, and the function unit
// (spec/semantics.md section 6). Constants are those of its machine code, in the order of its operations.
#include <cmath>

#include "vm/interp/numerics_h200.h"
#include "vm/interp/numerics_h200_kernels.h"

namespace tile {
namespace {

using namespace h200;

constexpr float kTwoTo23 = 0x1p23f, kPositiveInfinity = __builtin_inff();

/// c[0] * x^(n - 1) + ... + c[n - 1] by Horner's rule.
template <size_t kCount>
float polynomial(float x, const float (&c)[kCount]) {
  float p = c[0];
  for (size_t i = 1; i < kCount; ++i) p = fused(p, x, c[i]);
  return p;
}

/// 2^(low 9 bits of the number - 127), where the number is so large that its last bit is worth 1.
float scale_of(float number) { return float_of(float_bits(number) << 23); }

// The binary logarithm of e in two parts.
constexpr float kLog2E = 0x1.715476p+0f, kLog2ELow = 0x1.4ae0cp-26f;

float exponential(float x) {
  // The integer part of the exponent plus 126, between 0 and 252.
  const float portion = fused(x, float_of(0x3BBB989D), 0.5f);
  const float cut = portion > 0 ? (portion < 1 ? portion : 1.0f) : 0.0f;  // NaN becomes 0
  const float steps = static_cast<float>(std::floor(double{cut} * 252.0));
  const float whole = steps - 126.0f;
  const float rest = fused(x, kLog2ELow, fused(x, kLog2E, -whole));
  return product(scale_of(steps + 12582913.0f), power_of_two(rest));
}

/// The number as m * 2^k: m - 1, and k, where subnormal numbers were scaled by 2^23; `first` is the least m.
struct Parts {
  float scaled, fraction, exponent;
};
Parts parts_of(float x, uint32_t first) {
  const bool normal = !(x < 0x1p-126f);
  const float scaled = normal ? x : product(x, kTwoTo23);
  const uint32_t bits = float_bits(scaled), power = (bits - first) & 0xFF800000;
  const float exponent = fused(static_cast<float>(static_cast<int32_t>(power)), 0x1p-23f, normal ? 0.0f : -23.0f);
  return {scaled, sum(float_of(bits - power), -1.0f), exponent};
}
/// Of numbers that are not positive and finite the logarithm is infinite or NaN.
float of_any(const Parts& p, float logarithm) {
  if (float_bits(p.scaled) > 0x7F7FFFFF) logarithm = fused(p.scaled, kPositiveInfinity, kPositiveInfinity);
  return p.scaled == 0 ? -kPositiveInfinity : logarithm;
}

float logarithm(float x) {
  static constexpr float kTerms[] = {-0x1.0aa04ep-3f, 0x1.2073ecp-3f, -0x1.f19b98p-4f, 0x1.1e52aap-3f, -0x1.55b172p-3f,
                                     0x1.99da16p-3f, -0x1.fffe44p-3f, 0x1.5554fp-2f, -0.5f};
  const Parts p = parts_of(x, 0x3F2AAAAB);
  const float f = p.fraction;
  const float fraction = fused(f, product(f, polynomial(f, kTerms)), f);
  return of_any(p, fused(p.exponent, 0x1.62e43p-1f, fraction));
}

float binary_logarithm(float x) {
  static constexpr float kTerms[] = {0x1.8d64fep-4f, -0x1.58fe6p-3f, 0x1.5f9e54p-3f, -0x1.6e9c86p-3f, 0x1.a417e8p-3f,
                                     -0x1.ec7916p-3f, 0x1.277f32p-2f, -0x1.715492p-2f, 0x1.ec7094p-2f, -0x1.715476p-1f};
  const Parts p = parts_of(x, 0x3F3504F3);
  const float f = p.fraction;
  const float square = product(f, product(f, polynomial(f, kTerms)));
  return of_any(p, sum(p.exponent, fused(f, kLog2E, square)));
}

/// An argument less the nearest multiple of pi / 2, and which multiple that is, modulo 2^32.
struct Angle {
  float rest;
  uint32_t quarters;
};

/// Of large arguments: the product of the mantissa with those bits of 2 / pi that matter.
Angle far_angle(uint32_t bits) {
  static constexpr uint32_t kTwoOverPi[] = {0x3C439041, 0xDB629599, 0xF534DDC0, 0xFC2757D1, 0x4E441529, 0xA2F9836E};  // from the lowest word
  const uint32_t mantissa = bits << 8 | 0x80000000, exponent = bits >> 23 & 0xFF;
  uint32_t words[7];
  uint64_t carry = 0;
  for (size_t i = 0; i < 6; ++i) {
    carry += uint64_t{mantissa} * kTwoOverPi[i];
    words[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  words[6] = static_cast<uint32_t>(carry);
  const uint32_t skip = (exponent - 128) / 32, shift = exponent % 32;
  const uint64_t upper = uint64_t{words[6 - skip]} << 32 | words[5 - skip];
  const uint64_t fixed = shift == 0 ? upper : upper << shift | words[4 - skip] >> (32 - shift);
  // Two bits before the point; from one half on the next quarter is nearer.
  const uint64_t fraction = fixed << 2;
  const bool above = (fraction >> 63) != 0;
  const auto distance = static_cast<int64_t>(above ? ~fraction : fraction);
  const auto rest = static_cast<float>(static_cast<double>(distance) * 0x1.921fb54442d19p-64);
  const bool negative = (bits & kSign) != 0;
  const auto quarters = static_cast<uint32_t>(fixed >> 62) + (above ? 1 : 0);
  return {above != negative ? -rest : rest, negative ? 0 - quarters : quarters};
}

Angle angle_of(float x) {
  if (!(magnitude(x) >= 105615.0f)) {
    if (x != x) return {float_of(kNan), 0};
    const auto nearest = static_cast<int32_t>(__builtin_rintf(x * 0x1.45f306p-1f));
    const auto quarters = static_cast<float>(nearest);  // never -0, so that -0 stays itself
    float rest = fused(quarters, -0x1.921fb4p+0f, x);
    rest = fused(quarters, -0x1.4442dp-24f, rest);
    rest = fused(quarters, -0x1.84698ap-48f, rest);
    return {rest, static_cast<uint32_t>(nearest)};
  }
  if (magnitude(x) == kPositiveInfinity) return {float_of(kNan), 0};
  return far_angle(float_bits(x));
}

/// The sine of the rest plus so many quarters.
float sine_of(Angle a) {
  static constexpr float kSine[] = {-0x1.9a82a6p-13f, 0x1.110bc8p-7f, -0x1.55555p-3f};
  static constexpr float kCosine[] = {0x1.9758p-16f, -0x1.6c0fdap-10f, 0x1.555576p-5f, -0x1.fffffep-2f};
  const float square = product(a.rest, a.rest);
  const bool cosine = (a.quarters & 1) != 0;
  const float first = cosine ? 1.0f : a.rest, terms = cosine ? polynomial(square, kCosine) : polynomial(square, kSine);
  const float result = fused(fused(square, first, 0.0f), terms, first);
  return (a.quarters & 2) != 0 ? difference(0.0f, result) : result;
}
float sine(float x) { return sine_of(angle_of(x)); }
float cosine(float x) {
  Angle a = angle_of(x);
  ++a.quarters;
  return sine_of(a);
}
float tangent_of_angle(float x) {
  static constexpr float kTerms[] = {0x1.32p-7f, 0x1.acp-9f, 0x1.8ep-6f, 0x1.b6p-5f, 0x1.11287p-3f, 0x1.55551p-2f};
  const Angle a = angle_of(x);
  const float square = product(a.rest, a.rest);
  float result = a.rest;
  if (magnitude(a.rest) != 0x1.016878p-11f) result = fused(polynomial(square, kTerms), product(square, a.rest), a.rest);
  return (a.quarters & 1) != 0 ? reciprocal(negated(result)) : result;
}

/// e^|x| / 4.
float quarter_exponential(float x) {
  const float wanted = __builtin_truncf(product(magnitude(x), kLog2E)), whole = wanted > 126.0f ? 126.0f : wanted;
  const float rest = fused(whole, 0x1.05c61p-29f, fused(whole, -0x1.62e43p-1f, magnitude(x)));
  return product(scale_of(sum(whole, 12583037.0f)), power_of_two(product(rest, kLog2E)));
}
float flushed_eighth(float x) {
  const float y = product(x, 0.125f);
  return magnitude(y) < 0x1p-126f ? signed_as(0.0f, y) : y;
}
float hyperbolic_sine(float x) {
  static constexpr float kTerms[] = {0x1.7a15b4p-19f, 0x1.9ffe92p-13f, 0x1.111134p-7f, 0x1.555556p-3f};
  if (!(magnitude(x) >= 1.0f)) {
    const float square = product(x, x);
    return fused(x, product(square, polynomial(square, kTerms)), x);
  }
  const float e = quarter_exponential(x);
  return signed_as(fused(e, 2.0f, -flushed_eighth(reciprocal(e))), x);
}
float hyperbolic_cosine(float x) {
  const float e = quarter_exponential(x);
  return fused(e, 2.0f, flushed_eighth(reciprocal(e)));
}
float hyperbolic_tangent(float x) {
  static constexpr float kTerms[] = {0x1.01e104p-6f, -0x1.ac795cp-5f, 0x1.10b282p-3f, -0x1.5553dap-2f, 0.0f};
  if (!(magnitude(x) >= 0x1.333334p-1f)) {
    const float square = product(x, x);
    return fused(x, polynomial(square, kTerms), x);
  }
  if (magnitude(x) >= 0x1.205968p+3f) return signed_as(1.0f, x);
  const float e = power_of_two(product(magnitude(x), 0x1.715476p+1f));
  return signed_as(fused(reciprocal(sum(e, 1.0f)), -2.0f, 1.0f), x);
}

/// |x|^y for the numbers where no rule of its own holds.
float positive_power(float x, float y) {
  static constexpr float kLogarithm[] = {0x1.5865c8p-11f, 0x1.a5cfb6p-9f, 0x1.2776e6p-6f, 0x1.ec709ep-4f};
  static constexpr float kExponential[] = {0x1.3f971cp-13f, 0x1.5f0bdap-10f, 0x1.3b30acp-7f, 0x1.c6af76p-5f, 0x1.ebfbd8p-3f,
                                           0x1.62e43p-1f, 1.0f};
  const float size = magnitude(x);
  const bool normal = !(size < 0x1p-126f);
  const uint32_t bits = float_bits(normal ? size : product(size, 0x1p24f)), power = (bits - 0x3F3504F3) & 0xFF800000;
  const float m = float_of(bits - power), exponent = fused(static_cast<float>(static_cast<int32_t>(power)), 0x1p-23f, normal ? 0.0f : -24.0f);

  // The binary logarithm as high + low: s = 2 (m - 1) / (m + 1), and `missing` is what s lacks.
  const float f = sum(m, -1.0f), inverse = reciprocal(sum(m, 1.0f));
  const float s = product(inverse, sum(f, f)), square = product(s, s);
  const float twice = difference(f, s), missing = product(inverse, fused(f, -s, sum(twice, twice)));
  const float high = fused(s, kLog2E, exponent);
  float low = fused(s, kLog2E, difference(exponent, high));
  low = fused(missing, kLog2E, low);
  low = fused(s, 0x1.4abc68p-26f, low);
  const float terms = product(square, polynomial(square, kLogarithm));
  low = fused(missing, product(terms, 3.0f), low);
  low = fused(s, terms, low);
  const float log = sum(high, low), log_low = difference(low, difference(log, high));

  const float t = product(y, log), t_low = fused(y, log_low, fused(y, log, -t)), whole = __builtin_rintf(t);
  if (magnitude(t) > 152.0f) return t < 0 ? 0.0f : kPositiveInfinity;
  const float p = polynomial(sum(t_low, difference(t, whole)), kExponential);
  const uint32_t first = whole > 0 ? 0x7F000000 : 0x02000000, count = t == t ? static_cast<uint32_t>(static_cast<int32_t>(whole)) : 0;
  return product(product(p, float_of(first)), float_of((count << 23) - (first - 0x7F000000)));
}
float power(float x, float y) {
  if (x == 1.0f || y == 0) return 1.0f;
  if (x != x || y != y) return float_of(kNan);
  const float half = __builtin_truncf(product(y, 0.5f));
  const bool odd = magnitude(difference(y, half + half)) == 1.0f;
  if (x == 0 || magnitude(x) == kPositiveInfinity) {
    uint32_t bits = float_bits(x + x);
    if (y < 0) bits ^= kInfinity;
    return float_of(odd ? bits : bits & ~kSign);
  }
  if (x == -1.0f && magnitude(y) == kPositiveInfinity) return 1.0f;
  const float size = positive_power(x, y);
  if (!(x < 0)) return size;
  if (__builtin_truncf(y) != y) return float_of(kNan);
  return odd ? negated(size) : size;
}

/// The angle of the point (x, y).
float angle_between(float y, float x) {
  static constexpr float kTerms[] = {0x1.66e216p-9f,           -0x1.00ee9p-6f, 0x1.59b564p-5f, -0x1.325a2p-4f,
                                     0x1.b3d4d8p-4f, -0x1.22f962p-3f,  0x1.9979cp-3f,  -0x1.5554fap-2f};
  const float both = sum(magnitude(y), magnitude(x));
  if (both != both) return both;
  const bool steep = magnitude(y) > magnitude(x), ahead = (float_bits(x) & kSign) == 0;
  const float larger = steep ? magnitude(y) : magnitude(x), smaller = steep ? magnitude(x) : magnitude(y);
  float angle;
  if (larger == 0) {
    angle = ahead ? 0.0f : 0x1.921fb6p+1f;
  } else if (larger == smaller) {
    angle = ahead ? 0x1.921fb6p-1f : 0x1.2d97c8p+1f;
  } else {
    const float q = smaller / larger, square = product(q, q);
    const float near = fused(product(square, polynomial(square, kTerms)), q, q);
    if (ahead) {
      angle = steep ? fused(0x1.ddcb02p-1f, 0x1.aee9d6p+0f, -near) : near;
    } else {
      angle = fused(steep ? 0x1.ddcb02p-1f : 0x1.ddcb02p+0f, 0x1.aee9d6p+0f, steep ? near : -near);
    }
  }
  return signed_as(angle, y);
}

}  // namespace

ElementwiseFn find_elementary(Opcode op, ElementType e) {
  switch (op) {
    case Opcode::Exp: return by_type<exponential>(e);
    case Opcode::Log: return by_type<logarithm>(e);
    case Opcode::Log2: return by_type<binary_logarithm>(e);
    case Opcode::Sin: return by_type<sine>(e);
    case Opcode::Cos: return by_type<cosine>(e);
    case Opcode::Tan: return by_type<tangent_of_angle>(e);
    case Opcode::SinH: return by_type<hyperbolic_sine>(e);
    case Opcode::CosH: return by_type<hyperbolic_cosine>(e);
    case Opcode::TanH: return by_type<hyperbolic_tangent>(e);
    case Opcode::FPowF: return by_type<power, 2>(e);
    case Opcode::Atan2: return by_type<angle_between, 2>(e);
    default: return nullptr;
  }
}

}  // namespace tile
