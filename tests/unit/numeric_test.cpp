// Conversions between element types and f64, judged by each format's definition: lists of all its values, built here.
#include "vm/base/numeric.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "vm/interp/kernel_types.h"

using namespace tile;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// What the definition of a format says, apart from the tables of the code under test.
struct Definition {
  ElementType type;
  int exponent_bits, mantissa_bits, bias;
  bool has_sign;
  int specials;  ///< patterns at the top of the magnitudes that are not finite
  bool has_inf, saturates;
};
const Definition kDefinitions[] = {
    {ElementType::F16, 5, 10, 15, true, 1024, true, false},     {ElementType::BF16, 8, 7, 127, true, 128, true, false},
    {ElementType::F8E4M3FN, 4, 3, 7, true, 1, false, true},     {ElementType::F8E5M2, 5, 2, 15, true, 4, true, true},
    {ElementType::F8E8M0FNU, 8, 0, 127, false, 1, false, true}, {ElementType::F4E2M1FN, 2, 1, 1, true, 0, false, true},
    {ElementType::NV8E5M3FNU, 5, 3, 15, false, 1, false, true},
};

double times_two_to(double x, int n) {
  for (; n > 0; --n) x *= 2;
  for (; n < 0; ++n) x /= 2;
  return x;
}

/// Value of a finite magnitude: the significand times a power of two, one step at a time.
double value_of(const Definition& d, int magnitude) {
  const int field = magnitude >> d.mantissa_bits, mantissa = magnitude & ((1 << d.mantissa_bits) - 1);
  if (d.mantissa_bits == 0) return times_two_to(1, field - d.bias);
  const int significand = field == 0 ? mantissa : mantissa + (1 << d.mantissa_bits);
  return times_two_to(significand, std::max(field, 1) - d.bias - d.mantissa_bits);
}

struct Format {
  Definition d;
  std::vector<double> finite;  ///< all finite magnitudes, ascending; the index is the bit pattern
  explicit Format(const Definition& def) : d(def) {
    const int count = (1 << (d.exponent_bits + d.mantissa_bits)) - d.specials;
    for (int i = 0; i < count; ++i) finite.push_back(value_of(d, i));
  }
  /// Bits of a number, chosen among its two neighbours by comparing with them and with their middle.
  uint64_t round(double x, Rounding mode) const {
    if (std::isnan(x))
      return d.type == ElementType::F16 || d.type == ElementType::BF16 ? 0x7FFF
             : d.has_sign                                              ? (d.type == ElementType::F4E2M1FN ? 7 : 0x7F)
                                                                       : 0xFF;
    const bool negative = d.has_sign && std::signbit(x);
    const uint64_t sign = negative ? 1ull << (d.exponent_bits + d.mantissa_bits) : 0;
    const double a = std::fabs(x), largest = finite.back();
    const uint64_t top = finite.size() - 1, over = d.saturates ? top : top + 1;
    if (a == kInf) return sign | over;
    const bool up = (mode == Rounding::PositiveInf && !negative) || (mode == Rounding::NegativeInf && negative);
    const bool nearest = mode == Rounding::NearestEven || mode == Rounding::NearestAway;
    if (a > largest) {
      if (d.saturates) return sign | top;
      const double middle = largest + (largest - finite[top - 1]) / 2;  // largest is odd: the tie goes up
      return sign | (up || (nearest && a >= middle) ? over : top);
    }
    const auto above = static_cast<size_t>(std::lower_bound(finite.begin(), finite.end(), a) - finite.begin());
    if (finite[above] == a || above == 0) return sign | above;
    const size_t below = above - 1;
    if (!nearest) return sign | (up ? above : below);
    const double middle = finite[below] + (finite[above] - finite[below]) / 2;
    if (a != middle) return sign | (a > middle ? above : below);
    return sign | (mode == Rounding::NearestAway || below % 2 == 1 ? above : below);
  }
};

const Rounding kModes[] = {Rounding::NearestEven, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf,
                           Rounding::NearestAway};

bool same_double(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || double_bits(a) == double_bits(b);
}

/// Number of mismatches of encode() at x in every mode.
int mismatches(const Format& f, double x) {
  int wrong = 0;
  for (const Rounding mode : kModes) wrong += encode(f.d.type, x, mode) != f.round(x, mode);
  return wrong;
}

}  // namespace

TEST_CASE("decode gives the value that the format defines, for every pattern of 4, 8 and 16 bits") {
  for (const Definition& d : kDefinitions) {
    const Format f(d);
    const int magnitudes = 1 << (d.exponent_bits + d.mantissa_bits);
    int wrong = 0;
    for (int bits = 0; bits < magnitudes * (d.has_sign ? 2 : 1); ++bits) {
      const int magnitude = bits % magnitudes;
      const auto index = static_cast<size_t>(magnitude);
      double expected = index < f.finite.size()                 ? f.finite[index]
                        : d.has_inf && index == f.finite.size() ? kInf
                                                                : std::nan("");
      if (bits >= magnitudes) expected = -expected;
      wrong += !same_double(decode(d.type, static_cast<uint64_t>(bits)), expected);
    }
    CAPTURE(info(d.type).name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("encode rounds every f16 and bf16 number, and every number of the small formats, to every narrow type") {
  for (const Definition& d : kDefinitions) {
    const Format to(d);
    int wrong = 0;
    for (const Definition& s : kDefinitions) {
      const uint64_t patterns = 1ull << (s.exponent_bits + s.mantissa_bits + (s.has_sign ? 1 : 0));
      for (uint64_t bits = 0; bits < patterns; ++bits) wrong += mismatches(to, decode(s.type, bits));
    }
    CAPTURE(info(d.type).name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("encode decides at the middles between neighbours and next to them") {
  for (const Definition& d : kDefinitions) {
    const Format f(d);
    int wrong = 0;
    for (size_t i = 0; i < f.finite.size(); ++i) {
      const double next = i + 1 < f.finite.size() ? f.finite[i + 1] : 2 * f.finite[i] - f.finite[i - 1];
      const double middle = f.finite[i] + (next - f.finite[i]) / 2;
      for (const double x : {f.finite[i], middle, next}) {
        for (const double y : {std::nextafter(x, -kInf), x, std::nextafter(x, kInf)})
          wrong += mismatches(f, y) + mismatches(f, -y);
      }
    }
    for (const double x : {0.0, 5e-324, 1e-310, 1e300, 1e39, kInf}) wrong += mismatches(f, x) + mismatches(f, -x);
    wrong += mismatches(f, std::nan(""));
    CAPTURE(info(d.type).name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("encode to f32 agrees with the processor to nearest, and brackets the number in the directed modes") {
  std::mt19937_64 random(1);
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    const uint64_t exponent = 1023 - 160 + random() % 300;
    uint64_t bits = (random() & 0x800FFFFFFFFFFFFFull) | exponent << 52;
    if (i % 3 == 0) bits &= ~0xFFFFFFFull;  // ties
    if (i % 7 == 0) bits = random();        // any pattern at all
    const double x = double_of(bits);
    if (std::isnan(x)) continue;
    const auto f32 = [&](Rounding mode) { return float_of(static_cast<uint32_t>(encode(ElementType::F32, x, mode))); };
    wrong += float_bits(f32(Rounding::NearestEven)) != float_bits(static_cast<float>(x));
    const auto down = static_cast<double>(f32(Rounding::NegativeInf)),
               up = static_cast<double>(f32(Rounding::PositiveInf));
    wrong += !(down <= x && x <= up);
    const double step_up = std::nextafterf(static_cast<float>(down), std::numeric_limits<float>::infinity());
    wrong += down != up && up != step_up;
    wrong += float_bits(f32(Rounding::Zero)) != float_bits(static_cast<float>(x < 0 ? up : down)) && x != 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("encode to f32 breaks ties away from zero and treats the edges of the range") {
  const auto away = [](double x) { return encode(ElementType::F32, x, Rounding::NearestAway); };
  CHECK(away(1 + 0x1p-24) == 0x3F800001);
  CHECK(encode(ElementType::F32, 1 + 0x1p-24) == 0x3F800000);
  CHECK(away(0x1p-150) == 1);
  CHECK(encode(ElementType::F32, 0x1p-150) == 0);
  CHECK(encode(ElementType::F32, std::nextafter(0x1p-150, 1.0)) == 1);
  CHECK(encode(ElementType::F32, -0x1p-150) == 0x80000000);
  CHECK(encode(ElementType::F32, 0x1.ffffffp127) == 0x7F800000);
  CHECK(encode(ElementType::F32, std::nextafter(0x1.ffffffp127, 0.0)) == 0x7F7FFFFF);
  CHECK(encode(ElementType::F32, 1e300, Rounding::Zero) == 0x7F7FFFFF);
  CHECK(encode(ElementType::F32, -1e300, Rounding::PositiveInf) == 0xFF7FFFFF);
  CHECK(encode(ElementType::F32, -1e300, Rounding::NegativeInf) == 0xFF800000);
  CHECK(encode(ElementType::F32, std::nan("")) == 0x7FFFFFFF);
}

TEST_CASE("tf32 keeps ten mantissa bits in the layout of f32") {
  CHECK(encode(ElementType::TF32, static_cast<double>(0.3f)) == 0x3E99A000);
  CHECK(encode(ElementType::TF32, 1 + 0x1p-11) == 0x3F800000);
  CHECK(encode(ElementType::TF32, 1 + 3 * 0x1p-11) == 0x3F804000);
  CHECK(encode(ElementType::TF32, 0x1p-136) == 0x00002000);
  CHECK(encode(ElementType::TF32, 0x1p-137) == 0);
  CHECK(encode(ElementType::TF32, 0x1.ffep127) == 0x7F800000);
  CHECK(encode(ElementType::TF32, std::nan("")) == 0x7FFFFFFF);
  CHECK(encode(ElementType::TF32, -kInf) == 0xFF800000);
  CHECK(decode(ElementType::TF32, 0x3F800001) == 1 + 0x1p-23);
  std::mt19937 random(2);
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const float x = float_of(static_cast<uint32_t>(random()));
    wrong += f32_to_tf32(x) != encode(ElementType::TF32, static_cast<double>(x));
  }
  CHECK(wrong == 0);
}

TEST_CASE("f64 passes through, its NaN becomes canonical") {
  CHECK(encode(ElementType::F64, -0.0) == 0x8000000000000000);
  CHECK(encode(ElementType::F64, double_of(0xFFF0000000000001)) == 0x7FF8000000000000);
  CHECK(decode(ElementType::F64, 0x4009000000000000) == 3.125);
}

TEST_CASE("the inline f16 and bf16 conversions agree with the general ones") {
  int wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    wrong += !same_double(static_cast<double>(f16_to_f32(half)), decode(ElementType::F16, h));
    const bool nan16 = (h & 0x7FFF) > 0x7C00, nan_b = (h & 0x7FFF) > 0x7F80;
    wrong += f32_to_f16(f16_to_f32(half)) != (nan16 ? 0x7FFF : half);
    wrong += f32_to_bf16(bf16_to_f32(half)) != (nan_b ? 0x7FFF : half);
    for (const uint32_t low :
         {0x0000u, 0x0001u, 0x0FFFu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float x = float_of(h << 16 | low);
      wrong += f32_to_f16(x) != encode(ElementType::F16, static_cast<double>(x));
      wrong += f32_to_bf16(x) != encode(ElementType::BF16, static_cast<double>(x));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a sum rounded to odd rounds once more like the exact sum") {
  // 1 + 2^-8 is the middle between two bf16 numbers; the tiny rest decides, though f64 nearest would lose it.
  const double middle = 1 + 0x1p-8;
  CHECK(encode(ElementType::BF16, add_to_odd(middle, 0x1p-100)) == 0x3F81);
  CHECK(encode(ElementType::BF16, add_to_odd(middle, -0x1p-100)) == 0x3F80);
  CHECK(encode(ElementType::BF16, middle) == 0x3F80);
  CHECK(encode(ElementType::BF16, add_to_odd(-middle, -0x1p-100)) == 0xBF81);
  CHECK(add_to_odd(kInf, 1) == kInf);
  CHECK(std::isnan(add_to_odd(kInf, -kInf)));
  CHECK(odd_from_u64(~0ull) == std::nextafter(0x1p64, 0.0));
  CHECK(odd_from_u64(0x8000000000000401) == 0x1p63 + 0x1p11);
  CHECK(odd_from_i64(INT64_MIN) == -0x1p63);
  CHECK(odd_from_i64(-5) == -5);
}

TEST_CASE("decimal literals are read to the nearest f64") {
  CHECK(parse_f64("0.1") == 0.1);
  CHECK(parse_f64("+1.5e+3") == 1500.0);
  CHECK(parse_f64("-2") == -2.0);
  CHECK(std::signbit(*parse_f64("-0.0")));
  CHECK(parse_f64("1e400") == kInf);
  CHECK(parse_f64("-1e99999999999999999999999") == -kInf);
  CHECK(parse_f64("1e-400") == 0.0);
  CHECK(parse_f64("0.001e-99999999999999999999999") == 0.0);
  CHECK(parse_f64("4.9e-324") == 5e-324);
  CHECK(parse_f64("inf") == kInf);
  CHECK(std::isnan(*parse_f64("nan")));
  for (const char* bad : {"", "-", "+-1", "1x", "0x10", " 1", "1 ", "e5", "--1"})
    CHECK_FALSE(parse_f64(bad).has_value());
}
