// Exact conversion between the bits of every float element type and f64.
#include "vm/base/numeric.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "vm/base/check.h"

namespace tile {
namespace {

// Values of the bytecode (spec/types.md); the enumerators are declared where the kernels are.
constexpr Rounding kZero{1}, kNegativeInf{2}, kPositiveInf{3}, kNearestAway{7};

constexpr size_t index_of(ElementType t) {
  return static_cast<size_t>(t);
}

constexpr std::array<FloatFormat, kElementTypes> make_formats() {
  std::array<FloatFormat, kElementTypes> f{};
  f[index_of(ElementType::F16)] = {5, 10, 15, true, true, false, 0x7BFF, 0x7FFF};
  f[index_of(ElementType::BF16)] = {8, 7, 127, true, true, false, 0x7F7F, 0x7FFF};
  f[index_of(ElementType::F32)] = {8, 23, 127, true, true, false, 0x7F7FFFFF, 0x7FFFFFFF};
  f[index_of(ElementType::TF32)] = {8, 10, 127, true, true, false, 0x3FBFF, 0x3FFFF};
  f[index_of(ElementType::F64)] = {11, 52, 1023, true, true, false, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000000000};
  f[index_of(ElementType::F8E4M3FN)] = {4, 3, 7, true, false, true, 0x7E, 0x7F};
  f[index_of(ElementType::F8E5M2)] = {5, 2, 15, true, true, true, 0x7B, 0x7F};
  f[index_of(ElementType::F8E8M0FNU)] = {8, 0, 127, false, false, true, 0xFE, 0xFF};
  f[index_of(ElementType::F4E2M1FN)] = {2, 1, 1, true, false, true, 0x7, 0x7};
  f[index_of(ElementType::NV8E5M3FNU)] = {5, 3, 15, false, false, true, 0xFE, 0xFF};
  return f;
}
constexpr std::array<FloatFormat, kElementTypes> kFormats = make_formats();

constexpr unsigned kTf32Pad = 13;  // a tf32 is stored as the upper bits of an f32

/// Whether the magnitude is raised by one unit; `rest` is what was cut off, in units where half a place is `half`.
bool rounds_up(Rounding mode, bool negative, bool odd, uint64_t rest, uint64_t half) {
  if (rest == 0) return false;
  switch (mode) {
    case kZero:
      return false;
    case kNegativeInf:
      return negative;
    case kPositiveInf:
      return !negative;
    case kNearestAway:
      return rest >= half;
    default:
      return rest > half || (rest == half && odd);
  }
}

/// Whether a number beyond the largest finite one stays finite in this mode.
bool stays_finite(Rounding mode, bool negative) {
  return mode == kZero || (mode == kNegativeInf && !negative) || (mode == kPositiveInf && negative);
}

/// f8E8M0FNU: the magnitude's exponent alone; there is no zero, so the smallest number stands for all below it.
uint64_t encode_e8m0(int exponent, uint64_t fraction, uint64_t half, Rounding mode) {
  if (exponent < -127) return 0;
  const auto field = static_cast<uint64_t>(exponent + 127);
  const uint64_t up = rounds_up(mode, false, field & 1, fraction, half) ? 1 : 0;
  return field + up > 0xFE ? 0xFE : field + up;
}

}  // namespace

const FloatFormat& float_format(ElementType t) {
  TILE_CHECK(index_of(t) < kElementTypes && kFormats[index_of(t)].exponent_bits != 0);
  return kFormats[index_of(t)];
}

uint64_t canonical_nan(ElementType t) {
  return t == ElementType::TF32 ? 0x7FFFFFFF : float_format(t).nan;
}

double decode(ElementType t, uint64_t bits) {
  switch (t) {
    case ElementType::F64:
      return double_of(bits);
    case ElementType::F32:
    case ElementType::TF32:
      return static_cast<double>(float_of(static_cast<uint32_t>(bits)));
    case ElementType::F16:
      return static_cast<double>(f16_to_f32(static_cast<uint16_t>(bits)));
    case ElementType::BF16:
      return static_cast<double>(bf16_to_f32(static_cast<uint16_t>(bits)));
    default:
      break;
  }
  const FloatFormat& f = float_format(t);
  const unsigned value_bits = f.exponent_bits + f.mantissa_bits;
  const uint64_t magnitude = bits & ((1ull << value_bits) - 1);
  const bool negative = f.has_sign && (bits >> value_bits & 1) != 0;
  double x;
  if (magnitude > f.max_finite) {
    const bool inf = f.has_inf && magnitude == f.max_finite + 1;
    x = inf ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto mantissa = static_cast<int>(magnitude & ((1ull << f.mantissa_bits) - 1));
    const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    const bool subnormal = exponent == 0 && f.mantissa_bits != 0;
    const int significand = subnormal ? mantissa : mantissa + (1 << f.mantissa_bits);
    x = std::ldexp(significand, (subnormal ? 1 : exponent) - f.bias - f.mantissa_bits);
  }
  return negative ? -x : x;
}

uint64_t encode(ElementType t, double value, Rounding mode) {
  if (value != value) return canonical_nan(t);
  const uint64_t source = double_bits(value);
  if (t == ElementType::F64) return source;

  const FloatFormat& f = float_format(t);
  const bool negative = f.has_sign && source >> 63 != 0;
  const unsigned pad = t == ElementType::TF32 ? kTf32Pad : 0;
  const uint64_t sign = negative ? 1ull << (f.exponent_bits + f.mantissa_bits) : 0;
  const auto with_sign = [&](uint64_t magnitude) { return (sign | magnitude) << pad; };

  const uint64_t fraction = source & 0xFFFFFFFFFFFFFull;
  const auto field = static_cast<int>(source >> 52 & 0x7FF);
  if (field == 0x7FF) return with_sign(f.saturates ? f.max_finite : f.max_finite + 1);
  if (field == 0 && fraction == 0) return with_sign(0);

  // |value| = significand * 2^(exponent - 52), bit 52 of the significand set.
  uint64_t significand = field == 0 ? fraction : fraction | 1ull << 52;
  int exponent = field == 0 ? -1022 : field - 1023;
  if (field == 0) {
    const int shift = std::countl_zero(significand) - 11;
    significand <<= shift;
    exponent -= shift;
  }
  if (t == ElementType::F8E8M0FNU) {
    return encode_e8m0(exponent, significand & 0xFFFFFFFFFFFFFull, 1ull << 51, mode);
  }

  const int smallest = 1 - f.bias;  // exponent of the smallest normal number
  const bool subnormal = exponent < smallest;
  int shift = 52 - f.mantissa_bits + (subnormal ? smallest - exponent : 0);
  if (shift > 62) shift = 62;  // the significand has 53 bits: all of it is already less than half a place
  const uint64_t half = 1ull << (shift - 1);
  const uint64_t rest = significand & ((1ull << shift) - 1);
  uint64_t kept = significand >> shift;
  if (rounds_up(mode, negative, kept & 1, rest, half)) ++kept;
  // A carry out of the mantissa moves into the exponent field, from subnormal to normal as well.
  uint64_t magnitude = kept;
  if (!subnormal) {
    magnitude += (static_cast<uint64_t>(exponent + f.bias) - 1) << f.mantissa_bits;
  }
  if (magnitude > f.max_finite) {
    const bool finite = f.saturates || stays_finite(mode, negative);
    magnitude = finite ? f.max_finite : f.max_finite + 1;
  }
  return with_sign(magnitude);
}

double odd_from_u64(uint64_t x) {
  const int extra = 11 - std::countl_zero(x | 1);  // bits beyond the 53 of f64
  if (extra <= 0) return static_cast<double>(x);
  const uint64_t cut = x & ((1ull << extra) - 1);
  uint64_t kept = x - cut;
  if (cut != 0) kept |= 1ull << extra;
  return static_cast<double>(kept);
}

double odd_from_i64(int64_t x) {
  const auto u = static_cast<uint64_t>(x);
  return x < 0 ? -odd_from_u64(0 - u) : odd_from_u64(u);
}

std::optional<double> parse_f64(std::string_view text) {
  std::string_view body = text;
  const bool negative = !body.empty() && body.front() == '-';
  if (!body.empty() && (body.front() == '-' || body.front() == '+')) body.remove_prefix(1);
  if (body.empty() || body.front() == '-' || body.front() == '+') return std::nullopt;

  double value = 0;
  const char* const end = body.data() + body.size();
  const auto [stop, error] = std::from_chars(body.data(), end, value, std::chars_format::general);
  if (error == std::errc::invalid_argument || stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Decimal exponent of the first non-zero digit decides; far from both limits, so a saturating count is enough.
    constexpr int64_t kFar = 1'000'000'000;
    const size_t mark = body.find_first_of("eE");
    const std::string_view digits = body.substr(0, mark);
    const size_t point = digits.find('.') == digits.npos ? digits.size() : digits.find('.');
    const size_t first = digits.find_first_of("123456789");
    int64_t power = static_cast<int64_t>(point) - static_cast<int64_t>(first);
    if (mark != body.npos) {
      std::string_view written = body.substr(mark + 1);
      if (!written.empty() && written.front() == '+') written.remove_prefix(1);
      int64_t exponent = 0;
      const auto r = std::from_chars(written.data(), written.data() + written.size(), exponent);
      const bool huge = r.ec == std::errc::result_out_of_range;
      const bool down = !written.empty() && written.front() == '-';
      if (huge || exponent > kFar || exponent < -kFar) exponent = down ? -kFar : kFar;
      power += exponent;
    }
    value = power > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  }
  return negative ? -value : value;
}

}  // namespace tile
