// Functions in f64 whose results are rounded to f32 or less: polynomials cut where the rest is below 2^-40 of the
// result.
#include <limits>

#include "backend/ptx/scalar_parts.h"

namespace tile {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2High = 0x1.62e42fefap-1;  // 36 bits: products with |n| < 2^16 are exact
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kLog2E = 0x1.71547652b82fep+0;

Expr polynomial(Expr x, std::initializer_list<double> from_highest) {
  Expr q;
  for (const double c : from_highest) q = q.v == nullptr ? x.number(c) : fused(q, x, c);
  return q;
}

/// e^r - 1 for |r| <= 0.35.
Expr expm1_reduced(Expr r) {
  return polynomial(r, {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                        1.0 / 24, 1.0 / 6, 0.5, 1.0}) *
         r;
}
struct Reduced {
  Expr scale, rest;  ///< e^x = scale * (1 + e^rest - 1)
};
Reduced reduce_exp(Expr x) {
  const Expr n = rounded(x * kLog2E);
  return {power_of_two(to_i64(n)), fused(-n, kLn2Low, fused(-n, kLn2High, x))};
}

Expr sinh_of(Expr x) {
  const Reduced r = reduce_exp(clamped(magnitude(x), 0.0, 700.0));
  const Expr t = fused(r.scale, expm1_reduced(r.rest), r.scale - 1.0);
  return with_sign((t + t / (t + 1.0)) * 0.5, x);
}
Expr cosh_of(Expr x) {
  const Reduced r = reduce_exp(clamped(magnitude(x), 0.0, 700.0));
  const Expr e = fused(r.scale, expm1_reduced(r.rest), r.scale);
  return (e + 1.0 / e) * 0.5;
}

/// The binary logarithm of a normal positive number.
Expr log2_of(Expr x) {
  const Expr u = bits_of(x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  const Expr f = float_from((u & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD);
  const Expr e = from_signed((u >> 52) - 1023, x.type());
  const Expr s = (f - 1.0) / (f + 1.0);
  const Expr q =
      polynomial(s * s, {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
  return fused(s * 2.0 * q, kLog2E, e);
}
Expr pow_of(DeviceOps& d, Expr x, Expr y) {
  return branch((x > 0) & (x < kInf) & (magnitude(y) < kInf),
                [&] {
                  const Expr c = clamped(log2_of(x) * y, -1000.0, 1000.0), n = rounded(c);
                  const Expr scale = power_of_two(to_i64(n));
                  return fused(scale, expm1_reduced((c - n) * 0x1.62e42fefa39efp-1), scale);
                },
                [&] {
                  const Expr both[] = {x, y};
                  return math_f64(d, Opcode::FPowF, both);
                });
}

/// For |x| <= 100000; pi/2 in parts of 33, 33 and 53 bits, so that the first two products are exact.
Expr tan_near(Expr x) {
  const Expr n = rounded(x * 0x1.45f306dc9c883p-1);
  const Expr r = fused(-n, 0x1.3198a2e037073p-69, fused(-n, 0x1.0b4611a6p-34, fused(-n, 0x1.921fb544p+0, x))),
             z = r * r;
  const Expr s = polynomial(z, {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                                1.0 / 120, -1.0 / 6, 1.0}) *
                 r;
  const Expr c = polynomial(
      z, {-1.0 / 87178291200.0, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
  const Expr odd = (to_i64(n) & 1) != 0;
  return select(x == 0, x, select(odd, -c, s) / select(odd, s, c));
}
Expr tan_of(DeviceOps& d, Expr x) {
  return branch(
      magnitude(x) <= 100000, [&] { return tan_near(x); },
      [&] {
        return math_f64(d, Opcode::Tan, {&x, 1});
      });
}

Expr atan2_of(DeviceOps& d, Expr y, Expr x) {
  const Expr a = magnitude(y), b = magnitude(x);
  return branch((a < kInf) & (b < kInf) & (a + b > 0),
                [&] {
                  const Expr steep = a > b, u = select(steep, b, a), v = select(steep, a, b);
                  const Expr upper = u > v * 0.4142135623730951;  // tan(pi/8): turn by pi/4
                  const Expr w = select(upper, u - v, u) / select(upper, u + v, v);
                  const Expr q =
                      polynomial(w * w, {1.0 / 29, -1.0 / 27, 1.0 / 25, -1.0 / 23, 1.0 / 21, -1.0 / 19, 1.0 / 17,
                                         -1.0 / 15, 1.0 / 13, -1.0 / 11, 1.0 / 9, -1.0 / 7, 1.0 / 5, -1.0 / 3, 1.0});
                  const Expr octant = fused(w, q, select(upper, w.number(0x1.921fb54442d18p-1), 0.0));
                  const Expr quadrant = select(steep, 0x1.921fb54442d18p+0 - octant, octant);
                  return with_sign(select(slt(bits_of(x), 0), 0x1.921fb54442d18p+1 - quadrant, quadrant), y);
                },
                [&] {
                  const Expr both[] = {y, x};
                  return math_f64(d, Opcode::Atan2, both);
                });
}

}  // namespace

Expr math_wide(DeviceOps& d, Opcode op, std::span<const Expr> x) {
  const std::string name = "tile_f32_" + std::string(op_def(op).name);
  llvm::Type* type = x[0].type();
  const Body body = [&](std::span<const Expr> a) {
    const Expr p = to_double(a[0]);
    switch (op) {
      case Opcode::SinH:
        return to_float(select(is_nan(p), p, sinh_of(p)));
      case Opcode::CosH:
        return to_float(select(is_nan(p), p, cosh_of(p)));
      case Opcode::Tan:
        return to_float(tan_of(d, p));
      case Opcode::FPowF:
        return to_float(pow_of(d, p, to_double(a[1])));
      default:
        return to_float(atan2_of(d, p, to_double(a[1])));
    }
  };
  return x.size() == 1 ? call_shared(d.module, name, type, {x[0]}, body)
                       : call_shared(d.module, name, type, {x[0], x[1]}, body);
}

}  // namespace tile
