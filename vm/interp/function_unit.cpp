// Each function is one parabola a piece of its range, in integers: value + slope * low + curvature * square(low), where the leading bits
// of the operand choose the piece and `low` are the rest. Form and coefficients follow from measurements (spec/semantics.md section 6).
#include "vm/interp/function_unit.h"

#include <bit>

#include "vm/interp/function_unit_tables.h"

namespace tile {
namespace {

constexpr uint32_t kInfinity = 0x7F800000, kNan = 0x7FFFFFFF, kSign = 0x80000000, kHidden = 0x00800000;

/// x^2 / 2^19 for x of 17 bits, from partial products that lose what is below 2^-1 of that unit.
int64_t square(uint32_t x) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < 17; ++i) sum += (0 - (x >> i & 1)) & (x >> (18 - i));
  return sum >> 1;
}

/// The bits of the number 1.`fraction` * 2^(exponent - 127), or zero where they would be subnormal; fraction may be 2^23.
uint32_t packed(int exponent, int64_t fraction) {
  const int64_t bits = static_cast<int64_t>(exponent) * kHidden + fraction;
  return bits < int64_t{kHidden} ? 0 : static_cast<uint32_t>(bits);
}

bool is_nan(uint32_t x) { return (x & ~kSign) > kInfinity; }

}  // namespace

uint32_t unit_reciprocal(uint32_t x) {
  const uint32_t sign = x & kSign, exponent = x >> 23 & 0xFF, low = x & 0xFFFF;
  if (is_nan(x)) return kNan;
  if (exponent == 0xFF) return sign;
  if (exponent == 0) return sign | kInfinity;
  const UnitPiece& p = kReciprocal[x >> 16 & 0x7F];
  const int64_t sum = (int64_t{p.value} << 13) + int64_t{p.slope} * low + int64_t{p.curvature} * square(low << 1) + 0x47E7;
  return sign | packed(253 - static_cast<int>(exponent), (sum >> 15) - kHidden);
}

uint32_t unit_inverse_root(uint32_t x) {
  const int exponent = static_cast<int>(x >> 23 & 0xFF) - 127, even = exponent & ~1;
  if (is_nan(x)) return kNan;
  if (exponent == -127) return (x & kSign) | kInfinity;
  if ((x & kSign) != 0) return kNan;
  if (exponent == 128) return 0;
  const uint32_t fraction = (x & 0x7FFFFF) | static_cast<uint32_t>(exponent & 1) << 23, low = fraction & 0x1FFFF;
  if (fraction == 0) return packed(127 - even / 2, 0);
  const UnitPiece& p = kInverseRoot[fraction >> 17];
  const int64_t sum = (int64_t{p.value} << 14) + int64_t{p.slope} * low + int64_t{p.curvature} * square(low) * 4 + 0x7FFF;
  return packed(126 - even / 2, (sum >> 16) - kHidden);
}

uint32_t unit_root(uint32_t x) {
  const int exponent = static_cast<int>(x >> 23 & 0xFF) - 127, even = exponent & ~1;
  if (is_nan(x)) return kNan;
  if (exponent == -127) return x & kSign;
  if ((x & kSign) != 0) return kNan;
  if (exponent == 128) return x;
  const uint32_t fraction = (x & 0x7FFFFF) | static_cast<uint32_t>(exponent & 1) << 23, low = fraction & 0x1FFFF;
  const UnitPiece& p = kRoot[fraction >> 17];
  const int64_t sum = (int64_t{p.value} << 15) + int64_t{p.slope} * low + int64_t{p.curvature} * square(low) * 2 + 0x7FFF;
  return packed(127 + even / 2, (sum >> 17) - kHidden);
}

uint32_t unit_power_of_two(uint32_t x) {
  const bool negative = (x & kSign) != 0;
  const int exponent = static_cast<int>(x >> 23 & 0xFF) - 127;
  if (is_nan(x)) return kNan;
  if (exponent >= 7) return negative ? 0 : kInfinity;
  // 7 bits before the point and 23 behind it.
  const uint32_t mantissa = (x & 0x7FFFFF) | kHidden;
  int64_t fixed = exponent >= 0 ? int64_t{mantissa} << exponent : exponent >= -23 ? mantissa >> -exponent : 0;
  // The complement stands for the negative, except for integers.
  if (negative) fixed = (fixed & 0x7FFFFF) == 0 ? -fixed : ~fixed;
  const uint32_t low = fixed & 0x1FFFF;
  const UnitPiece& p = kPowerOfTwo[fixed >> 17 & 0x3F];
  const int64_t sum = (int64_t{p.value} << 13) + int64_t{p.slope} * low + int64_t{p.curvature} * square(low) + 0x77E2;
  const int power = 127 + static_cast<int>(fixed >> 23);
  return power > 254 ? kInfinity : packed(power, (sum >> 15) - kHidden);
}

uint32_t unit_hyperbolic_tangent(uint32_t x) {
  // By the exponent from -8 on: the first piece and the binary logarithm of their number.
  static constexpr struct {
    uint8_t first, log2_pieces;
  } kBinades[] = {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 2}, {11, 2}, {15, 2}, {19, 3}, {27, 4}, {43, 3}};
  const uint32_t sign = x & kSign;
  const int exponent = static_cast<int>(x >> 23 & 0xFF) - 127;
  if (is_nan(x)) return kNan;
  if (exponent < -8) return x;
  if (exponent >= 3) return sign | 127 << 23;
  const auto b = kBinades[exponent + 8];
  const uint32_t mantissa = x & 0x7FFFFF;
  const UnitPiece& p = kHyperbolicTangent[b.first + (mantissa >> (23 - b.log2_pieces))];
  const uint32_t low = mantissa >> (6 - b.log2_pieces) & 0x1FFFF;
  const int64_t sum = (int64_t{p.value} << 15) + int64_t{p.slope} * low + int64_t{p.curvature} * square(low) * 2;
  // The sum is in units of 2^-39; what does not fit behind its leading bit is cut off.
  const int leading = 63 - std::countl_zero(static_cast<uint64_t>(sum));
  return sign | packed(leading - 39 + 127, (sum >> (leading - 23)) - kHidden);
}

}  // namespace tile
