// Functions of f64 as tileiras 13.5 computes them for sm_90: reductions of the argument and polynomials in f64 (spec/semantics.md section 6).
// Constants are those of its machine code, in the order of its operations. NaN of any bits; numerics_h200.cpp gives them theirs.
#include "vm/interp/numerics_h200_f64.h"

#include <algorithm>
#include <bit>

#include "vm/base/numeric.h"
#include "vm/interp/function_unit.h"

namespace tile::h200 {
namespace {

constexpr double kInfinity = __builtin_inf(), kQuarterTurn = 0x1.921fb54442d18p+0;

double fused(double x, double y, double z) { return __builtin_fma(x, y, z); }
uint32_t high_of(double x) { return static_cast<uint32_t>(double_bits(x) >> 32); }
double magnitude(double x) { return double_of(double_bits(x) & ~(uint64_t{1} << 63)); }
double signed_as(double x, double sign) { return __builtin_copysign(x, sign); }
/// The number with `n` added to its exponent field.
double scaled(double x, int32_t n) { return double_of(double_bits(x) + (static_cast<uint64_t>(static_cast<uint32_t>(n)) << 52)); }
double power_of_two(int32_t n) { return double_of(static_cast<uint64_t>(n + 1023) << 52); }

/// c[0] * x^(n - 1) + ... + c[n - 1] by Horner's rule.
template <size_t kCount>
double polynomial(double x, const double (&c)[kCount]) {
  double p = c[0];
  for (size_t i = 1; i < kCount; ++i) p = fused(p, x, c[i]);
  return p;
}

/// What the unit makes of the upper half of a number: its 20 bits of significand as an f32, of whose result as many stay.
double widened(uint32_t bits) {
  return double_of(double_bits(double{float_of(bits)}) & ~uint64_t{0xFFFFFFFF});
}
double first_reciprocal(double x) {
  const uint32_t high = high_of(x), exponent = high >> 20 & 0x7FF;
  return signed_as(widened(unit_reciprocal(0x3F800000 | (high & 0xFFFFF) << 3)) * power_of_two(1023 - static_cast<int32_t>(exponent)), x);
}
/// Of a positive normal number.
double first_inverse_root(double x) {
  const uint32_t high = high_of(x), odd = (high >> 20 & 1) ^ 1;
  const int32_t exponent = static_cast<int32_t>(high >> 20) - static_cast<int32_t>(odd) - 1023;
  return widened(unit_inverse_root((0x3F800000 + (odd << 23)) | (high & 0xFFFFF) << 3)) * power_of_two(-exponent / 2);
}
/// One step of Newton's method of third order.
double reciprocal(double x) {
  const double first = first_reciprocal(x), error = fused(-x, first, 1.0);
  return fused(first, fused(error, error, error), first);
}

/// The nearest integer, and the same as a number.
constexpr double kMagic = 0x1.8p+52;
struct Steps {
  int32_t count;
  double number;
};
Steps steps_of(double shifted) { return {static_cast<int32_t>(static_cast<uint32_t>(double_bits(shifted))), shifted - kMagic}; }

constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;

/// e^x for |x| below half of ln 2.
double small_exponential(double x) {
  static constexpr double kTerms[] = {0x1.ade1569ce2bdfp-26, 0x1.28af3fca213eap-22, 0x1.71dee62401315p-19, 0x1.a01997c89eb71p-16,
                                      0x1.a01a014761f65p-13, 0x1.6c16c1852b7afp-10, 0x1.1111111122322p-7,  0x1.55555555502a1p-5,
                                      0x1.5555555555511p-3,  0x1.000000000000bp-1,  1.0,                   1.0};
  return polynomial(x, kTerms);
}
/// x * 2^n by two factors, for results that may be subnormal or too large.
double scaled_twice(double x, int32_t n) {
  const int32_t half = n / 2;
  return scaled(x, half) * power_of_two(n - half);
}
double rest_of(double x, double steps) { return fused(steps, -kLn2Low, fused(steps, -kLn2, x)); }

}  // namespace

double exponential(double x) {
  const Steps s = steps_of(fused(x, kLog2E, kMagic));
  const double e = small_exponential(rest_of(x, s.number));
  const uint32_t high = high_of(magnitude(x));
  if (high < 0x4086232B) return scaled(e, s.count);
  if (high < 0x40874800) return scaled_twice(e, s.count);
  return x != x ? x : x < 0 ? 0 : kInfinity;
}

double binary_exponential(double x) {
  const Steps s = steps_of(x + kMagic);
  const double f = x - s.number, e = small_exponential(fused(f, kLn2, f * kLn2Low));
  const uint32_t high = high_of(magnitude(x));
  if (high < 0x408FF000) return scaled(e, s.count);
  if (high < 0x4090CC00) return scaled_twice(e, s.count);
  return x != x ? x : x < 0 ? 0 : kInfinity;
}

/// x = m * 2^e with m from about the root of 1/2 to that of 2; `exponent` is what x was scaled by, less the exponents' bias.
struct Parts {
  double m, e;
};
Parts parts_of(double x, int32_t exponent) {
  uint32_t high = high_of(x);
  exponent += static_cast<int32_t>(high >> 20);
  high = (high & 0xFFFFF) | 0x3FF00000;
  if (high >= 0x3FF6A09F) {
    high -= 0x100000;
    ++exponent;
  }
  return {double_of(uint64_t{high} << 32 | (double_bits(x) & 0xFFFFFFFF)), static_cast<double>(exponent)};
}

double logarithm(double x) {
  static constexpr double kTerms[] = {0x1.1380b3ae80f1ep-20, 0x1.0ee258b7a8b04p-18, 0x1.3b2669f02676fp-16, 0x1.745cba9ab0956p-14,
                                      0x1.c71c72d1b5154p-12, 0x1.24924923be72dp-9,  0x1.999999999a3c4p-7,  0x1.5555555555554p-4};
  int32_t exponent = -1023;
  if (static_cast<int32_t>(high_of(x)) <= 0xFFFFF) {
    x *= 0x1p54;
    exponent -= 54;
  }
  const uint32_t high = high_of(x);
  if (high - 1 > 0x7FEFFFFE) return (high & 0x7FFFFFFF) != 0 ? fused(x, kInfinity, kInfinity) : -kInfinity;
  const auto [m, e] = parts_of(x, exponent);
  const double inverse = reciprocal(m + 1), f = m - 1, half = f * inverse, q = half + half, square = q * q;
  const double missing = inverse * fused(f, -q, (f - q) + (f - q));
  const double sum = fused(e, kLn2, q), lost = fused(e, -kLn2, sum) - q;
  const double low = fused(q, square * polynomial(square, kTerms), missing) - lost;
  return sum + fused(e, kLn2Low, low);
}
double binary_logarithm(double x) {
  const double log = logarithm(x);
  return fused(log, kLog2E, log * 0x1.777d0ffda0d24p-56);
}

namespace {

/// An angle less the nearest multiple of a quarter turn, and which multiple that is, modulo 2^32.
struct Angle {
  double rest;
  uint32_t quarters;
};

/// Of large angles: the product of the significand with those bits of 2 / pi that matter.
Angle far_angle(double x) {
  static constexpr uint64_t kTwoOverPi[] = {0x6BFB5FB11F8D5D08, 0x3D0739F78A5292EA, 0x7527BAC7EBE5F17B, 0x4F463F669E5FEA2D, 0x6D367ECF27CB09B7,
                                            0xEF2F118B5A0A6D1F, 0x1FF897FFDE05980F, 0x9C845F8BBDF9283B, 0x3991D639835339F4, 0xE99C7026B45F7E41,
                                            0xE88235F52EBB4484, 0xFE1DEB1CB129A73E, 0x06492EEA09D1921C, 0xB7246E3A424DD2E0, 0xFE5163ABDEBBC561,
                                            0xDB6295993C439041, 0xFC2757D1F534DDC0, 0xA2F9836E4E441529};  // from the lowest word
  using Wide = unsigned __int128;
  const uint64_t bits = double_bits(x), significand = bits << 11 | uint64_t{1} << 63;
  const uint32_t field = static_cast<uint32_t>(bits >> 52) & 0x7FF, skip = (field - 1024) / 64, shift = field % 64;
  uint64_t words[5] = {};
  uint64_t carry = 0;
  size_t count = 0;
  for (uint32_t i = 15 - skip; i < std::min<uint32_t>(19 - skip, 18); ++i) {
    const Wide product = Wide{kTwoOverPi[i]} * significand + carry;
    words[count++] = static_cast<uint64_t>(product);
    carry = static_cast<uint64_t>(product >> 64);
  }
  words[count] = carry;
  uint64_t high = words[3], low = words[2];
  if (shift != 0) {
    high = high << shift | low >> (64 - shift);
    low = low << shift | words[1] >> (64 - shift);
  }
  // Two bits before the point; from one half on the next quarter is nearer.
  uint32_t quarters = static_cast<uint32_t>(high >> 62);
  Wide fraction = (Wide{high} << 64 | low) << 2;
  const bool above = (fraction >> 127) != 0, negative = (bits >> 63) != 0;
  if (above) {
    fraction = 0 - fraction;
    ++quarters;
  }
  high = static_cast<uint64_t>(fraction >> 64);
  const int leading = std::countl_zero(high);
  if (leading > 0) high = static_cast<uint64_t>(fraction << leading >> 64);
  const Wide product = Wide{high} * 0xC90FDAA22168C235;
  uint64_t result = static_cast<uint64_t>(product >> 64);
  int exponent = -leading;
  if (static_cast<int64_t>(result) > 0) {
    result = static_cast<uint64_t>(product >> 63);
    --exponent;
  }
  result = (((result + 1) >> 10) + 1) >> 1;
  result += static_cast<uint64_t>(static_cast<int64_t>(exponent) * 0x100000 + 0x3FE00000) << 32;
  if (above != negative) result |= uint64_t{1} << 63;
  return {double_of(result), negative ? 0 - quarters : quarters};
}

Angle angle_of(double x) {
  if (!(magnitude(x) < kInfinity)) return {x * 0.0, 0};
  if (magnitude(x) >= 0x1p31) return far_angle(x);
  const auto quarters = static_cast<int32_t>(__builtin_rint(x * 0x1.45f306dc9c883p-1));
  const double n = quarters;
  double rest = fused(n, -kQuarterTurn, x);
  rest = fused(n, -0x1.1a62633145c00p-54, rest);
  rest = fused(n, -0x1.b839a252049c0p-104, rest);
  return {rest, static_cast<uint32_t>(quarters)};
}

double sine_of(Angle a) {
  static constexpr double kSine[] = {0x1.5db65f9785ebap-33, -0x1.ae5f12cb0d246p-26, 0x1.71de369ace392p-19, -0x1.a01a019db62a1p-13,
                                     0x1.1111111110818p-7,  -0x1.5555555555554p-3,  0.0};
  static constexpr double kCosine[] = {-0x1.8ff8320fd8164p-37, 0x1.1eea7c1ef8528p-29, -0x1.27e4f8e06e6d9p-22, 0x1.a01a019ddbce9p-16,
                                       -0x1.6c16c16c15d47p-10, 0x1.5555555555551p-5,  -0.5};
  const double square = a.rest * a.rest;
  const double result = (a.quarters & 1) != 0 ? fused(square, polynomial(square, kCosine), 1.0) : fused(polynomial(square, kSine), a.rest, a.rest);
  return (a.quarters & 2) != 0 ? 0.0 - result : result;
}

}  // namespace

double sine(double x) { return sine_of(angle_of(x)); }
double cosine(double x) {
  Angle a = angle_of(x);
  ++a.quarters;
  return sine_of(a);
}
double tangent_of_angle(double x) {
  static constexpr double kTerms[] = {0x1.48dac2799bcb9p-17, -0x1.9757c5b27ebb1p-16, 0x1.980e90fd91e04p-15, -0x1.ae2b0417d7e1dp-16,
                                      0x1.19f5341bfba57p-14, 0x1.5e791a00f6919p-14,  0x1.ff2e7fadec73ap-13, 0x1.34bc1b206da62p-11,
                                      0x1.7db18ef2f83f9p-10, 0x1.d6d2e7ae49fbcp-9,   0x1.226e3a816a776p-7,  0x1.664f485d25660p-6,
                                      0x1.ba1ba1babf31dp-5,  0x1.11111111105d2p-3,   0x1.555555555555ep-2};
  const Angle a = angle_of(x);
  const double square = a.rest * a.rest, terms = square * polynomial(square, kTerms), result = fused(terms, a.rest, a.rest);
  if ((a.quarters & 1) == 0) return result;
  const double inverse = reciprocal(result), low = fused(terms, a.rest, -(result - a.rest));
  const double error = fused(low, -inverse, fused(result, -inverse, 1.0));
  return fused(-inverse, error, -inverse);
}

double hyperbolic_sine(double x) {
  static constexpr double kTerms[] = {0x1.b4c75ab274c53p-41, 0x1.611a561d87defp-33, 0x1.ae64671b18f5cp-26, 0x1.71de3a465b1e4p-19,
                                      0x1.a01a01a02899dp-13, 0x1.11111111110a6p-7,  0x1.5555555555556p-3};
  static constexpr double kExponential[] = {0x1.1f4076acd15b6p-29, 0x1.af86d8ebd13cdp-26, 0x1.27e5092ba033dp-22, 0x1.71dde6c5f9da1p-19,
                                            0x1.a01a018d034e6p-16, 0x1.a01a01b3b6940p-13, 0x1.6c16c16c1b5ddp-10, 0x1.111111110f74dp-7,
                                            0x1.555555555554dp-5,  0x1.5555555555557p-3,  0.5};
  const double size = magnitude(x);
  if (high_of(size) <= 0x3FEFFFFF) {
    const double square = size * size;
    return signed_as(fused(size, square * polynomial(square, kTerms), size), x);
  }
  if (!(size < 0x1.633ce8fb9f87ep+9)) return x != x ? x : signed_as(kInfinity, x);
  const Steps s = steps_of(fused(size, kLog2E, kMagic));
  const double rest = rest_of(size, s.number), above_one = fused(rest, rest * polynomial(rest, kExponential), rest);
  // (e^size - 1) / 2
  const bool largest = s.count - 1 == 0x400;
  const double scale = largest ? double_of(uint64_t{0x7FE00000} << 32) : power_of_two(s.count - 1);
  double half = fused(above_one, scale, scale - 0.5);
  if (largest) half = half + half;
  return signed_as(half + half / fused(half, 2.0, 1.0), x);
}
double hyperbolic_cosine(double x) {
  const double size = magnitude(x);
  if (high_of(size) > 0x408633CE) return x != x ? x : kInfinity;
  const Steps s = steps_of(fused(size, kLog2E, kMagic));
  const double quarter = scaled(small_exponential(rest_of(size, s.number)), s.count - 2);
  const double sum = fused(reciprocal(quarter), 0.0625, quarter);
  return sum + sum;
}
double hyperbolic_tangent(double x) {
  static constexpr double kTerms[] = {-0x1.0bc46e2f5e964p-16, 0x1.4359f420afc3dp-14, -0x1.df9f0728c5d84p-13, 0x1.337d1cec4f033p-11,
                                      -0x1.7d6e9674335b3p-10, 0x1.d6d000d7aad3dp-9,  -0x1.226e1f3cf1ef5p-7,  0x1.664f47ec0c8cfp-6,
                                      -0x1.ba1ba1b80ab40p-5,  0x1.111111110fa4ap-3,  -0x1.5555555555550p-2,  0.0};
  static constexpr double kExponential[] = {0x1.ae904a4741b81p-26, 0x1.28a27f89b6999p-22, 0x1.71de715ff7e07p-19, 0x1.a019a6b0ac45ap-16,
                                            0x1.a01a017eed94fp-13, 0x1.6c16c17f2a71bp-10, 0x1.11111111173c4p-7,  0x1.555555555211ap-5,
                                            0x1.5555555555540p-3,  0x1.0000000000005p-1};
  const double size = magnitude(x);
  if (!(size >= 0x1.4f92224dd2f1ap-1)) {
    const double square = x * x;
    return fused(x, polynomial(square, kTerms), x);
  }
  if (high_of(size) > 0x40330FC1) return signed_as(1.0, x);
  const double twice = size + size, steps = __builtin_rintf(static_cast<float>(twice) * 0x1.715476p+0f);
  const double rest = fused(steps, -kLn2, twice), scale = power_of_two(static_cast<int32_t>(steps));
  const double above_one = fused(rest, rest * polynomial(rest, kExponential), rest);
  const double sum = 2.0 - fused(-above_one, scale, 1.0 - scale);
  return signed_as(fused(reciprocal(sum), -2.0, 1.0), x);
}

double inverse_root(double x) {
  const uint32_t high = high_of(x);
  double factor = 1;
  if (high - 0x100000 >= 0x7FE00000) {
    if (x == 0) return signed_as(kInfinity, x);
    if (!(x > 0)) return __builtin_nan("");
    if (x == kInfinity) return 0;
    x *= 0x1p54;
    factor = 0x1p27;
  }
  const double first = first_inverse_root(x), error = fused(x, -(first * first), 1.0);
  return fused(fused(error, 0.375, 0.5), first * error, first) * factor;
}

namespace {

/// |x|^y for the numbers where no rule of its own holds: the logarithm as the sum of two numbers, its product with y likewise, and the power.
double positive_power(double x, double y) {
  static constexpr double kTerms[] = {0x1.0f5ff7d2cafe2p-20, 0x1.0f5d241ad3b5ap-18, 0x1.3b20a75488a3fp-16, 0x1.745cde4faecd5p-14,
                                      0x1.c71c7258a578bp-12, 0x1.249249242b910p-9,  0x1.9999999999dfbp-7};
  constexpr double kTwelfth = 0x1.5555555555555p-4, kTwelfthLow = -0x1.6a4cb00b9e7b0p-59;
  int32_t exponent = -1023;
  if (high_of(x) >> 20 == 0) {
    x *= 0x1p54;
    exponent -= 54;
  }
  const auto [m, e] = parts_of(x, exponent);
  // q = 2 (m - 1) / (m + 1) and what it lacks; its square and cube in two parts.
  const double inverse = reciprocal(m + 1), f = m - 1, half = f * inverse, q = half + half, square = q * q;
  const double lack = inverse * fused(f, -q, (f - q) + (f - q)), cube = q * square;
  const double square_low = fused(q, lack + lack, fused(q, q, -square));
  const double cube_low = fused(q, square_low, fused(square, lack, fused(q, square, -cube)));
  const double terms = square * polynomial(square, kTerms), rough = terms + kTwelfth;
  const double rough_low = (terms + (kTwelfth - rough)) + kTwelfthLow;
  const double factor = rough + rough_low, factor_low = rough_low + (rough - factor);
  const double product = factor * cube, product_low = fused(factor_low, cube, fused(factor, cube_low, fused(factor, cube, -product)));
  const double part = product + product_low, part_low = product_low + (product - part);
  const double fraction = q + part, fraction_low = lack + (part_low + (part + (q - fraction)));
  const double sum = fraction + fraction_low, sum_low = fraction_low + (fraction - sum);
  const double whole = fused(e, kLn2, sum), lost = fused(e, -kLn2, whole) - sum;
  const double whole_low = fused(e, kLn2Low, sum_low - lost);
  const double log = whole + whole_low, log_low = whole_low + (whole - log);

  // Exponents so large that the product would be infinite lose four bits of theirs.
  if ((high_of(y) << 1) > 0xFDFFFFFF) y = double_of(double_bits(y) & 0xFF0FFFFFFFFFFFFF);
  const double scaled_log = log * y, scaled_low = fused(log_low, y, fused(log, y, -scaled_log));
  const double t = scaled_log + scaled_low, t_low = scaled_low + (scaled_log - t);
  const double result = exponential(t);
  return magnitude(result) == kInfinity ? result : fused(t_low, result, result);
}

}  // namespace

double power(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return __builtin_nan("");
  const double size = magnitude(x), half = __builtin_trunc(y * 0.5);
  const bool whole = __builtin_trunc(y) == y, odd = whole && half + half != y;
  if (magnitude(y) == kInfinity) return size == 1 ? 1.0 : (size > 1) == (y > 0) ? kInfinity : 0.0;
  if (size == 0 || size == kInfinity) {
    const double result = (size == 0) == (y < 0) ? kInfinity : 0.0;
    return odd ? signed_as(result, x) : result;
  }
  const double result = positive_power(size, y);
  if (!(x < 0)) return result;
  if (!whole) return __builtin_nan("");
  return odd ? -result : result;
}

double angle_between(double y, double x) {
  static constexpr double kTerms[] = {-0x1.53e1d2a25ff7ep-16, 0x1.d3b63dbb65b49p-13, -0x1.312788dde082ep-10, 0x1.f9690c8249315p-9,
                                      -0x1.2cf5aabc7cf0dp-7,  0x1.162b0b2a3bfdep-6,  -0x1.a7256feb6fc6bp-6,  0x1.171560ce4a489p-5,
                                      -0x1.4f44d841450e4p-5,  0x1.7ee3d3f36bb95p-5,  -0x1.ad32ae04a9fd1p-5,  0x1.e17813d66954fp-5,
                                      -0x1.11089ca9a5bcdp-4,  0x1.3b12b2db51738p-4,  -0x1.745d022f8dc5cp-4,  0x1.c71c709dfe927p-4,
                                      -0x1.2492491fa1744p-3,  0x1.99999999840d2p-3,  -0x1.555555555544cp-2};
  const double both = magnitude(y) + magnitude(x);
  if (both != both) return both;
  const bool steep = magnitude(y) > magnitude(x), ahead = (double_bits(x) >> 63) == 0;
  const double larger = steep ? magnitude(y) : magnitude(x), smaller = steep ? magnitude(x) : magnitude(y);
  double angle = 0;
  if (larger == 0) {
    angle = ahead ? 0.0 : 2 * kQuarterTurn;
  } else if (larger == smaller) {
    angle = ahead ? kQuarterTurn / 2 : 0x1.2d97c7f3321d2p+1;
  } else {
    const double q = smaller / larger, square = q * q, near = fused(square * polynomial(square, kTerms), q, q);
    angle = steep ? (ahead ? -near : near) + kQuarterTurn : ahead ? near : -near + 2 * kQuarterTurn;
  }
  return signed_as(angle, y);
}

}  // namespace tile::h200
