// Elementary functions of f64 in double-double arithmetic, and the cases that the vector forms leave out.
// Errors stay near 2^-85 of the result, so nearly every result is the exact one rounded once. Nothing fused and no
// calls of the C library's own versions: the same bits on every computer.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "vm/base/numeric.h"
#include "vm/interp/isa/elementwise_isa.h"

namespace tile {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// An unevaluated sum, |low| at most half a unit in the last place of `high`.
struct Double2 {
  double high, low;
};

Double2 quick_sum(double a, double b) {  // |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}
Double2 two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
Double2 two_product(double a, double b) {  // Dekker; |a|, |b| < 2^990
  constexpr double kSplit = 134217729.0;
  const double ca = kSplit * a, cb = kSplit * b;
  const double ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
  const double p = a * b;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
Double2 operator+(Double2 a, Double2 b) {
  const Double2 s = two_sum(a.high, b.high), t = two_sum(a.low, b.low);
  const Double2 u = quick_sum(s.high, s.low + t.high);
  return quick_sum(u.high, u.low + t.low);
}
Double2 operator+(Double2 a, double b) {
  const Double2 s = two_sum(a.high, b);
  return quick_sum(s.high, s.low + a.low);
}
Double2 operator-(Double2 a) {
  return {-a.high, -a.low};
}
Double2 operator-(Double2 a, Double2 b) {
  return a + -b;
}
Double2 operator*(Double2 a, Double2 b) {
  const Double2 p = two_product(a.high, b.high);
  return quick_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
Double2 operator*(Double2 a, double b) {
  const Double2 p = two_product(a.high, b);
  return quick_sum(p.high, p.low + a.low * b);
}
Double2 operator/(Double2 a, Double2 b) {
  const double q = a.high / b.high;
  const Double2 r = a - b * q;
  const double q2 = r.high / b.high;
  const Double2 r2 = r - b * q2;
  const Double2 s = quick_sum(q, q2);
  return s + r2.high / b.high;
}
Double2 scaled(Double2 a, double power_of_two) {
  return {a.high * power_of_two, a.low * power_of_two};
}

// 1/2!, 1/3!, ... 1/28!
constexpr Double2 kInverseFactorial[] = {
    {0x1p-1, 0.0},
    {0x1.5555555555555p-3, 0x1.5555555555555p-57},
    {0x1.5555555555555p-5, 0x1.5555555555555p-59},
    {0x1.1111111111111p-7, 0x1.1111111111111p-63},
    {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
    {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
    {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
    {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
    {0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76},
    {0x1.ae64567f544e4p-26, -0x1.c062e06d1f209p-80},
    {0x1.1eed8eff8d898p-29, -0x1.2aec959e14c06p-83},
    {0x1.6124613a86d09p-33, 0x1.f28e0cc748ebep-87},
    {0x1.93974a8c07c9dp-37, 0x1.05d6f8a2efd1fp-92},
    {0x1.ae7f3e733b81fp-41, 0x1.1d8656b0ee8cbp-97},
    {0x1.ae7f3e733b81fp-45, 0x1.1d8656b0ee8cbp-101},
    {0x1.952c77030ad4ap-49, 0x1.ac981465ddc6cp-103},
    {0x1.6827863b97d97p-53, 0x1.eec01221a8b0bp-107},
    {0x1.2f49b46814157p-57, 0x1.2650f61dbdcb4p-112},
    {0x1.e542ba4020225p-62, 0x1.ea72b4afe3c2fp-120},
    {0x1.71b8ef6dcf572p-66, -0x1.d043ae40c4647p-120},
    {0x1.0ce396db7f853p-70, -0x1.aebcdbd20331cp-124},
    {0x1.761b41316381ap-75, -0x1.3423c7d91404fp-130},
    {0x1.f2cf01972f578p-80, -0x1.9ada5fcc1ab14p-135},
    {0x1.3f3ccdd165fa9p-84, -0x1.58ddadf344487p-139},
    {0x1.88e85fc6a4e5ap-89, -0x1.71c37ebd16540p-143},
    {0x1.d1ab1c2dccea3p-94, 0x1.054d0c78aea14p-149},
    {0x1.0a18a2635085dp-98, 0x1.b9e2e28e1aa54p-153},
};
constexpr Double2 inverse_factorial(int n) {
  return kInverseFactorial[n - 2];
}

constexpr double kLn2Part1 = 0x1.62e42fefa2p-1, kLn2Part2 = 0x1.9ef35793c6p-41, kLn2Part3 = 0x1.673007e5ed5e8p-81;
constexpr Double2 kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Double2 kLog2E = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr Double2 kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr Double2 kPi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
constexpr double kSmall = 0x1p-27;  // below, the first two terms of a series are enough

/// x * 2^k rounded once, x normalised and near 1.
double finish(Double2 x, int k) {
  const int e = std::ilogb(x.high);
  if (k + e >= -1021) return std::ldexp(x.high, k);
  // Subnormal: all bits of the sum in an integer of 62 bits, with the last one sticky, cut at 2^-1074.
  const int drop = 60 - 1074 - (k + e);
  if (drop > 62) return 0;
  const double low = std::ldexp(x.low, 60 - e), whole = std::floor(low);
  const int64_t sum = static_cast<int64_t>(std::ldexp(x.high, 60 - e)) + static_cast<int64_t>(whole);
  const uint64_t bits = static_cast<uint64_t>(sum) | (low != whole ? 1 : 0);
  const uint64_t half = 1ull << (drop - 1), rest = bits & ((half << 1) - 1), kept = bits >> drop;
  const bool up = rest > half || (rest == half && (kept & 1) != 0);
  return std::ldexp(static_cast<double>(kept + (up ? 1 : 0)), -1074);
}
double signed_as(double magnitude, double sign) {
  return std::copysign(magnitude, sign);
}

// --- exponentials -------------------------------------------------------------------------------

/// e^r - 1 for |r| <= 0.35.
Double2 expm1_reduced(Double2 r) {
  const Double2 t = scaled(r, 0x1p-4);
  // Terms below 2^-37 of the first one need no second half.
  double tail = inverse_factorial(14).high;
  for (int n = 13; n >= 6; --n) tail = tail * t.high + inverse_factorial(n).high;
  Double2 q = {tail, 0};
  for (int n = 5; n >= 2; --n) q = q * t + inverse_factorial(n);
  Double2 e = t + t * t * q;
  for (int i = 0; i < 4; ++i) e = scaled(e, 2) + e * e;  // e^(2t) - 1 from e^t - 1
  return e;
}

struct Scaled {
  Double2 rest;  ///< e^x = 2^k * (1 + rest)
  int k;
};
Scaled exp_parts(double x) {  // |x| < 2000
  const double n = std::nearbyint(x * kLog2E.high);
  // The products with the first two parts are exact: n has 11 bits.
  const Double2 r = two_sum(x, -n * kLn2Part1) + -n * kLn2Part2 + -two_product(n, kLn2Part3);
  return {expm1_reduced(r), static_cast<int>(n)};
}
/// e^x - 1 for 0 <= x < 100.
Double2 expm1_parts(double x) {
  const Scaled e = exp_parts(x);
  const double power = std::ldexp(1.0, e.k);
  return scaled(e.rest, power) + two_sum(power, -1.0);
}

// --- logarithms ---------------------------------------------------------------------------------

struct LogParts {
  int exponent;  ///< ln x = exponent * ln 2 + rest
  Double2 rest;
};
LogParts log_parts(double x) {  // positive and finite
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --e;
  }
  const double f = m - 1;
  if (std::fabs(f) < 0x1p-5) {
    const Double2 s = Double2{f, 0} / two_sum(m, 1.0), z = s * s;
    double tail = 1.0 / 19;
    for (int n = 17; n >= 7; n -= 2) tail = tail * z.high + 1.0 / n;
    Double2 q = z * tail + Double2{0x1.999999999999ap-3, -0x1.999999999999ap-57};  // 1/5
    q = q * z + Double2{0x1.5555555555555p-2, 0x1.5555555555555p-56};              // 1/3
    q = q * z + 1.0;
    return {e, scaled(s * q, 2)};
  }
  const double s = f / (m + 1), z = s * s;
  double q = 1.0 / 27;
  for (int n = 25; n >= 1; n -= 2) q = q * z + 1.0 / n;
  const double guess = 2 * s * q;
  // One step: m = e^guess * (1 + t), and t is so small that t - t^2/2 is ln(1 + t).
  const Double2 t = expm1_reduced({-guess, 0}) * m + f;
  return {e, (t - scaled(t * t, 0.5)) + guess};
}
Double2 log2_parts(double x) {
  const LogParts l = log_parts(x);
  return l.rest * kLog2E + static_cast<double>(l.exponent);
}
bool log_special(double x, double& y) {
  if (x > 0 && x < kInf) return false;
  y = x == 0 ? -kInf : x > 0 ? kInf : kNan;
  return true;
}

// --- angles -------------------------------------------------------------------------------------

// 2/pi after the binary point, 1280 bits: enough for the largest exponent and 200 bits beyond.
constexpr uint64_t kTwoOverPi[20] = {
    0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
};
uint64_t two_over_pi_bits(int from) {  // 64 bits from this position on; bits before the point are zero
  if (from < 0) return from <= -64 ? 0 : kTwoOverPi[0] >> -from;
  const int word = from / 64, shift = from % 64;
  const uint64_t next = word + 1 < 20 ? kTwoOverPi[word + 1] : 0;
  return shift == 0 ? kTwoOverPi[word] : kTwoOverPi[word] << shift | next >> (64 - shift);
}

struct Angle {
  unsigned quadrant;
  Double2 rest;  ///< |rest| <= pi/4
};
Angle reduce_angle(double x) {  // finite
  const double a = std::fabs(x);
  if (a <= 0x1.921fb54442d18p-1) return {0, {x, 0}};
  int e = 0;
  const auto m = static_cast<uint64_t>(std::ldexp(std::frexp(a, &e), 53));
  e -= 53;  // a = m * 2^e
  // Bits of 2/pi whose product with a is a multiple of 4 are left out: the first one kept has weight 2^(1-e).
  uint64_t product[4];
  uint64_t carry = 0;
  for (int i = 3; i >= 0; --i) {
    __extension__ using Wide = unsigned __int128;
    const Wide p = static_cast<Wide>(m) * two_over_pi_bits(e - 2 + 64 * i) + carry;
    product[i] = static_cast<uint64_t>(p);
    carry = static_cast<uint64_t>(p >> 64);
  }
  unsigned quadrant = static_cast<unsigned>(product[0] >> 62);
  uint64_t f[4];  // the fraction of a quarter turn, 256 bits
  for (int i = 0; i < 4; ++i) f[i] = product[i] << 2 | (i < 3 ? product[i + 1] >> 62 : 0);
  const bool upper = f[0] >> 63 != 0;  // nearer to the next quadrant
  if (upper) {
    ++quadrant;
    uint64_t borrow = 1;
    for (int i = 3; i >= 0; --i) {
      f[i] = ~f[i] + borrow;
      borrow = borrow != 0 && f[i] == 0 ? 1 : 0;
    }
  }
  int zeros = 0;
  while (f[0] == 0 && zeros < 192) {
    f[0] = f[1];
    f[1] = f[2];
    f[2] = f[3];
    f[3] = 0;
    zeros += 64;
  }
  const int shift = std::countl_zero(f[0] | 1);
  if (shift != 0) {
    for (int i = 0; i < 3; ++i) f[i] = f[i] << shift | f[i + 1] >> (64 - shift);
  }
  zeros += shift;
  const double high = static_cast<double>(f[0] >> 11), low = static_cast<double>((f[0] & 0x7FF) << 53 | f[1] >> 11);
  const Double2 fraction = quick_sum(std::ldexp(high, -53 - zeros), std::ldexp(low, -117 - zeros));
  Double2 r = fraction * kHalfPi;
  if (upper != (x < 0)) r = -r;
  if (x < 0) quadrant = 0 - quadrant;
  return {quadrant & 3, r};
}
Double2 sin_reduced(Double2 r) {
  const Double2 z = r * r;
  double tail = inverse_factorial(27).high;
  for (int n = 25; n >= 15; n -= 2) tail = inverse_factorial(n).high - tail * z.high;
  Double2 q = {tail, 0};
  for (int n = 13; n >= 3; n -= 2) q = inverse_factorial(n) - q * z;
  return r - r * (z * q);
}
Double2 cos_reduced(Double2 r) {
  const Double2 z = r * r;
  double tail = inverse_factorial(28).high;
  for (int n = 26; n >= 14; n -= 2) tail = inverse_factorial(n).high - tail * z.high;
  Double2 q = {tail, 0};
  for (int n = 12; n >= 2; n -= 2) q = inverse_factorial(n) - q * z;
  return -(z * q) + 1.0;
}
Double2 sin_quadrant(const Angle& a) {
  const Double2 s = (a.quadrant & 1) != 0 ? cos_reduced(a.rest) : sin_reduced(a.rest);
  return (a.quadrant & 2) != 0 ? -s : s;
}

bool is_odd(double y) {  // y is an integer
  return std::fabs(y) < 0x1p53 && std::fmod(y, 2.0) != 0;
}

}  // namespace

double exp_f64(double x) {
  if (x != x) return kNan;
  if (x > 710) return kInf;
  if (x < -746) return 0;
  const Scaled e = exp_parts(x);
  return finish(e.rest + 1.0, e.k);
}

double exp2_f64(double x) {
  if (x != x) return kNan;
  if (x >= 1024) return kInf;
  if (x < -1080) return 0;
  const double n = std::nearbyint(x);
  return finish(expm1_reduced(kLn2 * (x - n)) + 1.0, static_cast<int>(n));
}

double log_f64(double x) {
  double special = 0;
  if (log_special(x, special)) return special;
  const LogParts l = log_parts(x);
  const double e = l.exponent;
  return (l.rest + two_sum(e * kLn2Part1, e * kLn2Part2) + two_product(e, kLn2Part3)).high;
}

double log2_f64(double x) {
  double special = 0;
  return log_special(x, special) ? special : log2_parts(x).high;
}

double sin_f64(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  if (std::fabs(x) < kSmall) return x == 0 ? x : x - x * (x * x / 6);
  return sin_quadrant(reduce_angle(x)).high;
}

double cos_f64(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  Angle a = reduce_angle(x);
  ++a.quadrant;
  return sin_quadrant(a).high;
}

double tan_f64(double x) {
  if (!(std::fabs(x) < kInf)) return kNan;
  if (std::fabs(x) < kSmall) return x + x * (x * x / 3);
  const Angle a = reduce_angle(x);
  const Angle next = {a.quadrant + 1, a.rest};
  return (sin_quadrant(a) / sin_quadrant(next)).high;
}

double sinh_f64(double x) {
  const double a = std::fabs(x);
  if (x != x) return kNan;
  if (a < kSmall) return x + x * (x * x / 6);
  if (a > 711) return signed_as(kInf, x);
  if (a > 40) {
    const Scaled e = exp_parts(a);
    return signed_as(finish(e.rest + 1.0, e.k - 1), x);
  }
  const Double2 t = expm1_parts(a);
  return signed_as(scaled(t + t / (t + 1.0), 0.5).high, x);
}

double cosh_f64(double x) {
  const double a = std::fabs(x);
  if (x != x) return kNan;
  if (a > 711) return kInf;
  const Scaled e = exp_parts(a);
  if (a > 40) return finish(e.rest + 1.0, e.k - 1);
  const Double2 p = scaled(e.rest + 1.0, std::ldexp(1.0, e.k));
  return scaled(p + Double2{1, 0} / p, 0.5).high;
}

double tanh_f64(double x) {
  const double a = std::fabs(x);
  if (x != x) return kNan;
  if (a < kSmall) return x == 0 ? x : x - x * (x * x / 3);
  if (a > 22) return signed_as(1, x);
  const Double2 t = expm1_parts(2 * a);
  return signed_as((t / (t + 2.0)).high, x);
}

double rsqrt_f64(double x) {
  if (x == 0) return signed_as(kInf, x);
  if (!(x > 0)) return kNan;
  if (x == kInf) return 0;
  int e = 0;
  double m = std::frexp(x, &e);
  if (e % 2 != 0) {
    m *= 2;
    --e;
  }
  const double s = std::sqrt(m);
  const Double2 root = quick_sum(s, (-two_product(s, s) + m).high / (2 * s));
  return finish(Double2{1, 0} / root, -e / 2);
}

double pow_f64(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNan;
  const double a = std::fabs(x);
  if (std::fabs(y) == kInf) return a == 1 ? 1 : (a > 1) == (y > 0) ? kInf : 0;
  const bool whole = std::floor(y) == y, odd = whole && is_odd(y);
  const double sign = odd ? x : 1.0;
  if (a == 0 || a == kInf) return signed_as((a == 0) == (y > 0) ? 0 : kInf, sign);
  if (x < 0 && !whole) return kNan;
  // The logarithm of any number but 1 is at least 2^-53: beyond 2^66 the result is out of range either way.
  const Double2 p = log2_parts(a) * std::clamp(y, -0x1p66, 0x1p66);
  if (p.high > 1025) return signed_as(kInf, sign);
  if (p.high < -1080) return signed_as(0, sign);
  const double n = std::nearbyint(p.high);
  const Double2 e = expm1_reduced((p + -n) * kLn2);
  return signed_as(finish(e + 1.0, static_cast<int>(n)), sign);
}

double atan2_f64(double y, double x) {
  if (x != x || y != y) return kNan;
  const bool left = std::signbit(x);
  double u = std::fabs(y), v = std::fabs(x);
  if (u == 0) return signed_as(left ? kPi.high : 0, y);
  if (v == kInf || u == kInf) {
    if (v != u) return signed_as(u == kInf ? kHalfPi.high : left ? kPi.high : 0, y);
    return signed_as(left ? 0x1.2d97c7f3321d2p+1 : 0x1.921fb54442d18p-1, y);
  }
  if (v == 0) return signed_as(kHalfPi.high, y);
  const int ahead = std::ilogb(u) - std::ilogb(v);
  if (ahead > 60) return signed_as(kHalfPi.high, y);  // off by less than the rounding of pi/2
  if (ahead < -60) return signed_as(left ? kPi.high : u / v, y);
  const int scale = -std::ilogb(v);
  u = std::ldexp(u, scale);
  v = std::ldexp(v, scale);
  const bool steep = u > v;
  if (steep) std::swap(u, v);

  double t = u / v, base = 0;
  if (t > 0.4142135623730951) {
    t = (t - 1) / (t + 1);
    base = 0x1.921fb54442d18p-1;
  }
  double q = 1.0 / 33;
  for (int n = 31; n >= 1; n -= 2) q = 1.0 / n - q * (t * t);
  const double guess = base + t * q;
  // One step: turning the point back by `guess` leaves an angle so small that it equals its tangent.
  const Double2 s = sin_reduced({guess, 0}), c = cos_reduced({guess, 0});
  Double2 angle = (c * u - s * v) / (c * v + s * u) + guess;
  if (steep) angle = kHalfPi - angle;
  if (left) angle = kPi - angle;
  return signed_as(angle.high, y);
}

}  // namespace tile
