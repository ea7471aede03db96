// Functions of f64 in double-double arithmetic: errors stay near 2^-85 of the result, so nearly all are the exact value
// rounded. The methods are those of the interpreter (vm/interp/elementwise_math.cpp), with fused operations.
#include <limits>

#include "backend/ptx/scalar_parts.h"

namespace tile {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmall = 0x1p-27;  // below, the first two terms of a series are enough

struct Number2 {
  double high, low;
};
/// An unevaluated sum, |low| at most half a unit in the last place of `high`.
struct Double2 {
  Expr high, low;
};

Double2 quick_sum(Expr a, Expr b) {  // |a| >= |b|
  const Expr s = a + b;
  return {s, b - (s - a)};
}
Double2 two_sum(Expr a, Expr b) {
  const Expr s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
Double2 two_product(Expr a, Expr b) {
  const Expr p = a * b;
  return {p, fused(a, b, -p)};
}
Double2 number2(Expr like, Number2 n) {
  return {like.number(n.high), like.number(n.low)};
}
Double2 plain(Expr x) {
  return {x, x.number(0.0)};
}
Double2 operator+(Double2 a, Double2 b) {
  const Double2 s = two_sum(a.high, b.high), t = two_sum(a.low, b.low);
  const Double2 u = quick_sum(s.high, s.low + t.high);
  return quick_sum(u.high, u.low + t.low);
}
Double2 operator+(Double2 a, Expr b) {
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
  return quick_sum(p.high, p.low + fused(a.high, b.low, a.low * b.high));
}
Double2 operator*(Double2 a, Expr b) {
  const Double2 p = two_product(a.high, b);
  return quick_sum(p.high, fused(a.low, b, p.low));
}
Double2 operator/(Double2 a, Double2 b) {
  const Expr q = a.high / b.high;
  const Double2 r = a - b * q;
  const Expr q2 = r.high / b.high;
  const Double2 r2 = r - b * q2, s = quick_sum(q, q2);
  return s + r2.high / b.high;
}
Double2 scaled(Double2 a, Expr power_of_two) {
  return {a.high * power_of_two, a.low * power_of_two};
}
Double2 scaled(Double2 a, double power_of_two) {
  return scaled(a, a.high.number(power_of_two));
}
Double2 select2(Expr c, Double2 a, Double2 b) {
  return {select(c, a.high, b.high), select(c, a.low, b.low)};
}

// 1/2!, 1/3!, ... 1/28!
constexpr Number2 kInverseFactorial[] = {
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
constexpr Number2 inverse_factorial(int n) {
  return kInverseFactorial[n - 2];
}

constexpr double kLn2Part1 = 0x1.62e42fefa2p-1, kLn2Part2 = 0x1.9ef35793c6p-41, kLn2Part3 = 0x1.673007e5ed5e8p-81;
constexpr Number2 kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
                  kLog2E = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56},
                  kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
                  kPi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

/// x * 2^k rounded once, x normalised and between 1/2 and 4; |k| < 2100.
Expr finish(Double2 x, Expr k) {
  const Expr e = ((bits_of(x.high) >> 52) & 0x7FF) - 1023;
  const Expr place = k + e;
  return branch(
      slt(place, -1021),
      [&] {
        // Subnormal: all bits of the sum in an integer of 62 bits, with the last one sticky, cut at 2^-1074.
        const Expr up = power_of_two(60 - e), low = x.low * up, whole = unary(llvm::Intrinsic::floor, low);
        const Expr sum = to_i64(x.high * up) + to_i64(whole), drop = umin(60 - 1074 - place, 62);
        const Expr bits = sum | zext(low != whole, sum.type());
        const Expr add = (sum.number(1) << (drop - 1)) - 1 + ((bits >> drop) & 1);
        return float_from((bits + add) >> drop);
      },
      [&] {
        // In two steps: the power itself may be out of range where the result is not.
        const Expr half = Expr{x.high.b, x.high.b->CreateAShr(k, 1)};
        return x.high * power_of_two(half) * power_of_two(k - half);
      });
}

// --- exponentials -------------------------------------------------------------------------------

/// e^r - 1 for |r| <= 0.35.
Double2 expm1_reduced(Double2 r) {
  const Double2 t = scaled(r, 0x1p-4);
  // Terms below 2^-37 of the first one need no second half.
  Expr tail = r.high.number(inverse_factorial(14).high);
  for (int n = 13; n >= 6; --n) tail = fused(tail, t.high, inverse_factorial(n).high);
  Double2 q = plain(tail);
  for (int n = 5; n >= 2; --n) q = q * t + number2(tail, inverse_factorial(n));
  Double2 e = t + t * t * q;
  for (int i = 0; i < 4; ++i) e = scaled(e, 2.0) + e * e;  // e^(2t) - 1 from e^t - 1
  return e;
}

struct Scaled {
  Double2 rest;  ///< e^x = 2^k * (1 + rest)
  Expr k;
};
Scaled exp_parts(Expr x) {  // |x| < 2000
  const Expr n = rounded(x * kLog2E.high);
  // The products with the first two parts are exact: n has 11 bits.
  const Double2 r = two_sum(x, -n * kLn2Part1) + -n * kLn2Part2 + -two_product(n, n.number(kLn2Part3));
  return {expm1_reduced(r), to_i64(n)};
}
/// e^x - 1 for 0 <= x < 100.
Double2 expm1_parts(Expr x) {
  const Scaled e = exp_parts(x);
  const Expr power = power_of_two(e.k);
  return scaled(e.rest, power) + two_sum(power, power.number(-1.0));
}

/// 2^k * e^(r + low) for |r| <= 0.35 to 0.6 ulp: a series to r^13, whose rest is 2^-57 of the result, and one rounding
/// at 1.
Expr exp_scaled(Expr r, Expr low, Expr k) {
  Expr q = r.number(inverse_factorial(13).high);
  for (int n = 12; n >= 2; --n) q = fused(q, r, inverse_factorial(n).high);
  const Expr y = 1.0 + (r + fused(q, r * r, low));
  // In two steps: the power itself may be out of range where the result is not.
  const Expr half = Expr{r.b, r.b->CreateAShr(k, 1)};
  return y * power_of_two(half) * power_of_two(k - half);
}
Expr exp_of(Expr x) {
  const Expr c = clamped(x, -750.0, 712.0), n = rounded(c * kLog2E.high);
  // The first product is exact: n has 11 bits.
  const Expr w = fused(-n, kLn2Part1, c), p = n * 0x1.9ef35793c7673p-41, r = w - p;
  return select(is_nan(x), kNan, exp_scaled(r, (w - r) - p, to_i64(n)));
}
Expr exp2_of(Expr x) {
  const Expr c = clamped(x, -1080.0, 1024.0), n = rounded(c);
  const Double2 r = number2(x, kLn2) * (c - n);
  return select(is_nan(x), kNan, exp_scaled(r.high, r.low, to_i64(n)));
}
Expr sinh_of(Expr x) {
  const Expr a = magnitude(x);
  const Expr y = branch(
      a > 40,
      [&] {
        const Scaled e = exp_parts(clamped(a, 0.0, 712.0));
        return finish(e.rest + x.number(1.0), e.k - 1);
      },
      [&] {
        const Double2 t = expm1_parts(clamped(a, 0.0, 40.0));
        return scaled(t + t / (t + x.number(1.0)), 0.5).high;
      });
  return select(is_nan(x), kNan, with_sign(select(a < kSmall, fused(x, x * x / 6, x), y), x));
}
Expr cosh_of(Expr x) {
  const Expr a = magnitude(x), one = x.number(1.0);
  const Scaled e = exp_parts(clamped(a, 0.0, 712.0));
  const Expr y = branch(
      a > 40, [&] { return finish(e.rest + one, e.k - 1); },
      [&] {
        const Double2 p = scaled(e.rest + one, power_of_two(e.k));
        return scaled(p + plain(one) / p, 0.5).high;
      });
  return select(is_nan(x), kNan, y);
}
Expr tanh_of(Expr x) {
  const Expr a = magnitude(x);
  const Double2 t = expm1_parts(clamped(a * 2, 0.0, 48.0));
  const Expr y = select(a > 22, 1.0, (t / (t + x.number(2.0))).high);
  return select(is_nan(x), kNan, with_sign(select(a < kSmall, fused(-x, x * x / 3, x), y), x));
}

// --- logarithms ---------------------------------------------------------------------------------

struct LogParts {
  Expr exponent;  ///< ln x = exponent * ln 2 + rest; a double
  Double2 rest;
};
LogParts log_parts(Expr x) {  // positive and finite; else anything
  const Expr tiny = x < 0x1p-1022, grown = select(tiny, x * 0x1p54, x);
  // The mantissa is taken from [sqrt(1/2), sqrt(2)): adding the distance of sqrt(1/2) from 1 carries into the exponent.
  const Expr u = bits_of(grown) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  const Expr m = float_from((u & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
  const Expr e = from_signed((u >> 52) - 1023, x.type()) - select(tiny, x.number(54.0), 0.0);
  const Expr f = m - 1.0;
  const std::vector<Expr> rest = branches(
      magnitude(f) < 0x1p-5,
      [&]() -> std::vector<Expr> {
        const Double2 s = plain(f) / two_sum(m, m.number(1.0)), z = s * s;
        Expr tail = x.number(1.0 / 19);
        for (int n = 17; n >= 7; n -= 2) tail = fused(tail, z.high, 1.0 / n);
        Double2 q = z * tail + number2(x, {0x1.999999999999ap-3, -0x1.999999999999ap-57});  // 1/5
        q = q * z + number2(x, {0x1.5555555555555p-2, 0x1.5555555555555p-56});              // 1/3
        q = q * z + x.number(1.0);
        const Double2 r = scaled(s * q, 2.0);
        return {r.high, r.low};
      },
      [&]() -> std::vector<Expr> {
        const Expr s = f / (m + 1.0), z = s * s;
        Expr q = x.number(1.0 / 27);
        for (int n = 25; n >= 1; n -= 2) q = fused(q, z, 1.0 / n);
        const Expr guess = s * 2 * q;
        // One step: m = e^guess * (1 + t), and t is so small that t - t^2/2 is ln(1 + t).
        const Double2 t = expm1_reduced(plain(-guess)) * m + f;
        const Double2 r = (t - scaled(t * t, 0.5)) + guess;
        return {r.high, r.low};
      });
  return {e, {rest[0], rest[1]}};
}
Double2 log2_parts(Expr x) {
  const LogParts l = log_parts(x);
  return l.rest * number2(x, kLog2E) + l.exponent;
}
/// NaN and negative numbers give NaN, zeros and infinity what they should.
Expr log_special(Expr x, Expr y) {
  const Expr at_end = select(x == 0, -kInf, select(x == kInf, kInf, x.number(kNan)));
  return select((x > 0) & (x < kInf), y, at_end);
}
Expr log_of(Expr x) {
  const LogParts l = log_parts(x);
  const Expr e = l.exponent;
  return log_special(x, (l.rest + two_sum(e * kLn2Part1, e * kLn2Part2) + two_product(e, e.number(kLn2Part3))).high);
}
Expr log2_of(Expr x) {
  return log_special(x, log2_parts(x).high);
}

// --- angles -------------------------------------------------------------------------------------

// 2/pi after the binary point, 1280 bits: enough for the largest exponent and 200 bits beyond; a word of zeros on both
// sides.
constexpr uint64_t kTwoOverPi[22] = {
    0,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
    0,
};
Expr two_over_pi_word(DeviceOps& d, Expr index) {
  llvm::IRBuilder<>& b = *index.b;
  llvm::GlobalVariable* table = d.module.getGlobalVariable("tile_two_over_pi", true);
  if (table == nullptr) {
    auto* data = llvm::ConstantDataArray::get(d.module.getContext(), llvm::ArrayRef<uint64_t>(kTwoOverPi));
    table = new llvm::GlobalVariable(d.module, data->getType(), true, llvm::GlobalValue::InternalLinkage, data,
                                     "tile_two_over_pi", nullptr, llvm::GlobalValue::NotThreadLocal,
                                     d.target.emulated ? 0 : 4);
    table->setAlignment(llvm::Align(8));
  }
  return {&b, b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), table, {index.v}))};
}

struct Angle {
  Expr quadrant;  ///< low two bits
  Double2 rest;   ///< |rest| <= pi/4
};
Angle reduce_angle(DeviceOps& d, Expr x) {  // finite; else anything
  const Expr a = magnitude(x);
  const Expr zero = bits_of(x).number(0);
  const std::vector<Expr> r = branches(
      (a <= 0x1.921fb54442d18p-1) | (a == kInf) | is_nan(x),
      [&]() -> std::vector<Expr> {
        return {zero, x, x.number(0.0)};
      },
      [&]() -> std::vector<Expr> {
        llvm::IRBuilder<>& b = *x.b;
        const Expr u = bits_of(a), m = (u & 0xFFFFFFFFFFFFF) | 0x10000000000000, e = (u >> 52) - 1075;  // a = m * 2^e
        // Bits of 2/pi whose product with a is a multiple of 4 are left out: the first one kept has weight 2^(1-e).
        const Expr from = e + (64 - 2), word = from >> 6, shift = from & 63;
        Expr w[5], product[4];
        for (int i = 0; i < 5; ++i) w[i] = two_over_pi_word(d, word + i);
        Expr carry = zero;
        llvm::Type* wide = b.getInt128Ty();
        for (int i = 3; i >= 0; --i) {
          const Expr bits = (w[i] << shift) | ((w[i + 1] >> 1) >> (63 - shift));
          const Expr p = zext(m, wide) * zext(bits, wide) + zext(carry, wide);
          product[i] = trunc(p, b.getInt64Ty());
          carry = trunc(p >> 64, b.getInt64Ty());
        }
        Expr quadrant = product[0] >> 62;
        Expr f[4];  // the fraction of a quarter turn, 256 bits
        for (int i = 0; i < 4; ++i) f[i] = i < 3 ? (product[i] << 2) | (product[i + 1] >> 62) : product[i] << 2;
        const Expr upper = (f[0] >> 63) != 0;  // nearer to the next quadrant
        quadrant = quadrant + zext(upper, zero.type());
        // Two's complement where it is.
        const Expr flip = sext(upper, zero.type());
        Expr borrow = zext(upper, zero.type());
        for (int i = 3; i >= 0; --i) {
          f[i] = (f[i] ^ flip) + borrow;
          borrow = select(f[i] == 0, borrow, 0);
        }
        Expr zeros = zero;
        for (int pass = 0; pass < 3; ++pass) {
          const Expr empty = f[0] == 0;
          for (int i = 0; i < 4; ++i) f[i] = select(empty, i < 3 ? f[i + 1] : zero, f[i]);
          zeros = zeros + select(empty, zero.number(64), 0);
        }
        const Expr up = leading_zeros(f[0] | 1);
        for (int i = 0; i < 3; ++i) f[i] = (f[i] << up) | ((f[i + 1] >> 1) >> (63 - up));
        zeros = zeros + up;
        const Expr high = from_signed(f[0] >> 11, x.type()),
                   low = from_signed(((f[0] & 0x7FF) << 53) >> 1 | f[1] >> 12, x.type());
        // `low` holds 63 bits, one less than there are, so that it is positive as a signed number.
        const Expr scale = power_of_two(zero - 53 - zeros);
        const Double2 fraction = quick_sum(high * scale, low * scale * 0x1p-63);
        Double2 rest = fraction * number2(x, kHalfPi);
        const Expr negative = x < 0;
        rest = select2(upper ^ negative, -rest, rest);
        return {select(negative, zero - quadrant, quadrant), rest.high, rest.low};
      });
  return {r[0] & 3, {r[1], r[2]}};
}
Double2 sin_reduced(Double2 r) {
  const Double2 z = r * r;
  Expr tail = r.high.number(inverse_factorial(27).high);
  for (int n = 25; n >= 15; n -= 2) tail = fused(-tail, z.high, inverse_factorial(n).high);
  Double2 q = plain(tail);
  for (int n = 13; n >= 3; n -= 2) q = number2(tail, inverse_factorial(n)) - q * z;
  return r - r * (z * q);
}
Double2 cos_reduced(Double2 r) {
  const Double2 z = r * r;
  Expr tail = r.high.number(inverse_factorial(28).high);
  for (int n = 26; n >= 14; n -= 2) tail = fused(-tail, z.high, inverse_factorial(n).high);
  Double2 q = plain(tail);
  for (int n = 12; n >= 2; n -= 2) q = number2(tail, inverse_factorial(n)) - q * z;
  return -(z * q) + tail.number(1.0);
}
/// Sine and cosine of the whole angle.
struct Turn {
  Double2 sine, cosine;
};
Turn turn(const Angle& a) {
  const Double2 s = sin_reduced(a.rest), c = cos_reduced(a.rest);
  const Expr swapped = (a.quadrant & 1) != 0, down = (a.quadrant & 2) != 0, left = ((a.quadrant + 1) & 2) != 0;
  const Double2 sine = select2(swapped, c, s), cosine = select2(swapped, s, c);
  return {select2(down, -sine, sine), select2(left, -cosine, cosine)};
}
Expr trigonometric(DeviceOps& d, Opcode op, Expr x) {
  const Turn t = turn(reduce_angle(d, x));
  Expr y;
  if (op == Opcode::Cos) {
    y = t.cosine.high;
  } else {
    y = op == Opcode::Sin ? t.sine.high : (t.sine / t.cosine).high;
    const Expr near = op == Opcode::Sin ? fused(-x, x * x / 6, x) : fused(x, x * x / 3, x);
    y = select(magnitude(x) < kSmall, with_sign(near, x), y);
  }
  return select(is_nan(x) | (magnitude(x) == kInf), kNan, y);
}

Expr atan2_of(Expr y, Expr x) {
  const Expr left = bits_of(x) >> 63 != 0, u = magnitude(y), v = magnitude(x);
  const Expr steep = u > v, most = select(steep, u, v);
  // Both sizes are moved towards 1, so that products and their low parts stay in range.
  const Expr scale = select(most < 0x1p-500, x.number(0x1p600), select(most > 0x1p500, x.number(0x1p-600), 1.0));
  const Expr big = most * scale, small = select(steep, v, u) * scale;
  const Expr ratio = small / big, far = ratio < 0x1p-60;
  const Expr ordinary = (most < kInf) & (most > 0) & (ratio >= 0x1p-60);
  const Expr p = select(ordinary, small, 0.5), q = select(ordinary, big, 1.0);
  const Expr t0 = p / q, diagonal = t0 > 0.4142135623730951;
  const Expr t = select(diagonal, (t0 - 1.0) / (t0 + 1.0), t0),
             base = select(diagonal, x.number(0x1.921fb54442d18p-1), 0.0);
  const Expr z = t * t;
  Expr c = x.number(1.0 / 33);
  for (int n = 31; n >= 1; n -= 2) c = fused(-c, z, 1.0 / n);
  const Expr guess = fused(t, c, base);
  // One step: turning the point back by `guess` leaves an angle so small that it equals its tangent.
  const Double2 sine = sin_reduced(plain(guess)), cosine = cos_reduced(plain(guess));
  Double2 angle = (cosine * p - sine * q) / (cosine * q + sine * p) + guess;
  angle = select2(steep, number2(x, kHalfPi) - angle, angle);
  angle = select2(left, number2(x, kPi) - angle, angle);
  // Off the diagonal by more than 2^60 the angle is that of an axis, or the quotient.
  const Expr flat = select(left, kPi.high, u / v);
  Expr r = select(far & (most < kInf), select(steep, kHalfPi.high, flat), angle.high);
  r = select(u == 0, select(left, x.number(kPi.high), 0.0), r);
  const Expr both = select(left, x.number(0x1.2d97c7f3321d2p+1), 0x1.921fb54442d18p-1);
  const Expr one = select(u == kInf, kHalfPi.high, select(left, x.number(kPi.high), 0.0));
  r = select(most == kInf, select(u == v, both, one), r);
  return select(is_nan(x) | is_nan(y), kNan, with_sign(r, y));
}

Expr rsqrt_of(Expr x) {
  // A step of Newton's method on the rounded root, its residual exact.
  const Expr r = 1.0 / unary(llvm::Intrinsic::sqrt, x);
  const Double2 p = two_product(x, r);
  const Expr residual = fused(-r, p.high, 1.0) - r * p.low;
  const Expr y = fused(r * 0.5, residual, r);
  return select((x > 0) & (x < kInf), y, r);
}

Expr pow_of(Expr x, Expr y) {
  const Expr a = magnitude(x), size = magnitude(y);
  const Expr whole = unary(llvm::Intrinsic::floor, y) == y;
  const Expr half = y * 0.5, odd = whole & (size < 0x1p53) & (unary(llvm::Intrinsic::floor, half) != half);
  const Expr sign = select(odd, x, 1.0);
  // The logarithm of any number but 1 is at least 2^-53: beyond 2^66 the result is out of range either way.
  const Expr ordinary = (a > 0) & (a < kInf);
  Double2 p = log2_parts(select(ordinary, a, 1.0)) * clamped(y, -0x1p66, 0x1p66);
  const Expr above = p.high > 1025, below = p.high < -1080;
  p = select2(above | below, plain(x.number(0.0)), p);
  const Expr n = rounded(p.high);
  const Double2 e = expm1_reduced((p + -n) * number2(x, kLn2));
  Expr r = finish(e + x.number(1.0), to_i64(n));
  r = select(above, kInf, select(below, 0.0, r));
  r = select(ordinary, r, select((a == 0) ^ (y > 0), x.number(kInf), 0.0));
  r = with_sign(r, sign);
  r = select((x < 0) & (a < kInf) & ~whole, kNan, r);
  r = select(size == kInf, select(a == 1, 1.0, select((a > 1) ^ (y > 0), x.number(0.0), kInf)), r);
  r = select(is_nan(x) | is_nan(y), kNan, r);
  return select((y == 0) | (x == 1), 1.0, r);
}

}  // namespace

Expr math_f64(DeviceOps& d, Opcode op, std::span<const Expr> x) {
  const std::string name = "tile_f64_" + std::string(op_def(op).name);
  llvm::Type* type = x[0].type();
  const Body body = [&](std::span<const Expr> a) {
    switch (op) {
      case Opcode::Exp:
        return exp_of(a[0]);
      case Opcode::Exp2:
        return exp2_of(a[0]);
      case Opcode::Log:
        return log_of(a[0]);
      case Opcode::Log2:
        return log2_of(a[0]);
      case Opcode::SinH:
        return sinh_of(a[0]);
      case Opcode::CosH:
        return cosh_of(a[0]);
      case Opcode::TanH:
        return tanh_of(a[0]);
      case Opcode::Rsqrt:
        return rsqrt_of(a[0]);
      case Opcode::FPowF:
        return pow_of(a[0], a[1]);
      case Opcode::Atan2:
        return atan2_of(a[0], a[1]);
      default:
        return trigonometric(d, op, a[0]);
    }
  };
  return x.size() == 1 ? call_shared(d.module, name, type, {x[0]}, body)
                       : call_shared(d.module, name, type, {x[0], x[1]}, body);
}

}  // namespace tile
