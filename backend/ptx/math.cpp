// Elementary functions, semantics.md section 4, within the bounds of conformance/bounds.md. f32 here, in f32 where that
// is exact enough: polynomials are least-maximum fits of their own, their errors given. f16 and bf16 are f32 functions
// rounded once more.
#include <limits>

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/ptx/scalar_parts.h"

namespace tile {
namespace {

namespace I = llvm::Intrinsic;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 0x1.715476p+0, kLog2ELow = 0x1.4ae0c0p-26;  // the two together as exact as 48 bits

Expr polynomial(Expr x, std::initializer_list<double> from_highest) {
  Expr q;
  for (const double c : from_highest) q = q.v == nullptr ? x.number(c) : fused(q, x, c);
  return q;
}
Expr smaller(Expr x, double y) {
  return {x.b, x.b->CreateBinaryIntrinsic(I::minnum, x, x.number(y))};
}
Expr larger(Expr x, double y) {
  return {x.b, x.b->CreateBinaryIntrinsic(I::maxnum, x, x.number(y))};
}

/// 2^x; with `plain` the argument is known to be small, so that the instruction may flush subnormal numbers.
Expr power_of_2(DeviceOps& d, Expr x, bool plain = false) {
  if (plain && !d.target.emulated) return {x.b, x.b->CreateIntrinsic(I::nvvm_ex2_approx_ftz_f, {}, {x})};
  return {x.b, d.approx(ApproxOp::Ex2, x)};
}

/// e^x = 2^n * 2^f. n is kept within the exponents of float, where f takes what is left: too much for n overflows in
/// the last product, and results that are subnormal are rounded there, once.
Expr exp_f32(DeviceOps& d, Expr x) {
  constexpr double kShift = 0x1.8p23 + 127;  // adding it leaves the biased exponent in the low bits
  const Expr within = smaller(larger(x, -87.0), 88.0);
  const Expr shifted = fused(within, kLog2E, kShift), minus_n = kShift - shifted;
  const Expr f = fused(x, kLog2ELow, fused(x, kLog2E, minus_n));
  return power_of_2(d, f, true) * float_from(bits_of(shifted) << 23);
}

/// 1 / x for x that is no subnormal number, where one of the reciprocal does not matter.
Expr reciprocal(DeviceOps& d, Expr x) {
  if (!d.target.emulated) return {x.b, x.b->CreateIntrinsic(I::nvvm_rcp_approx_ftz_f, {}, {x})};
  return {x.b, d.approx(ApproxOp::Rcp, x)};
}

/// Odd polynomial to 2^-27.3 below 1, where 1 - 2 / (e^2x + 1) would cancel.
Expr tanh_f32(DeviceOps& d, Expr x) {
  const Expr a = magnitude(x), z = x * x;
  const Expr near = polynomial(z, {-0x1.77dcb2p-12, 0x1.2da4c0p-9, -0x1.0460b0p-7, 0x1.60098cp-6, -0x1.b96222p-5,
                                   0x1.110be2p-3, -0x1.55553cp-2});
  const Expr far = fused(reciprocal(d, power_of_2(d, a * (2 * kLog2E), true) + 1.0), -2.0, 1.0);
  return with_sign(select(a < 1, fused(near * z, a, a), far), x);
}

struct Logarithm {
  Expr exponent, f;  ///< ln x = exponent * ln 2 + ln(1 + f), -1/3 <= f <= 1/3
};
Logarithm split_log(Expr x) {
  const Expr tiny = x < 0x1p-126, u = bits_of(select(tiny, x * 0x1p23, x)) - 0x3F2AAAAB;
  const Expr m = float_from((u & 0x7FFFFF) + 0x3F2AAAAB);
  const Expr e = from_signed(Expr{x.b, x.b->CreateAShr(u, 23)}, x.type()) - select(tiny, x.number(23.0), 0.0);
  return {e, m - 1.0};
}
Expr log_special(Expr x, Expr y) {
  const Expr at_end =
      select(x == 0, -kInf, select(x == kInf, kInf, x.number(std::numeric_limits<double>::quiet_NaN())));
  return select((x > 0) & (x < kInf), y, at_end);
}
/// ln(1 + f) = f + f^2 p(f) to 2^-26.6.
Expr log_f32(Expr x) {
  const Logarithm l = split_log(x);
  const Expr p = polynomial(l.f, {-0x1.09312ep-3, 0x1.1ed14ap-3, -0x1.f25e30p-4, 0x1.1ebe66p-3, -0x1.55a750p-3,
                                  0x1.99d1f2p-3, -0x1.fffe84p-3, 0x1.555502p-2, -0x1.000000p-1});
  return log_special(x, fused(l.exponent, 0x1.62e430p-1, fused(l.f * l.f, p, l.f)));
}
/// log2(1 + f) = f log2(e) + f^2 p(f) to 2^-26.5, the first product in two parts.
Expr log2_f32(Expr x) {
  const Logarithm l = split_log(x);
  const Expr p = polynomial(l.f, {-0x1.7e9762p-3, 0x1.9dca4ep-3, -0x1.677f18p-3, 0x1.9daf0cp-3, -0x1.ece6e4p-3,
                                  0x1.279f6ap-2, -0x1.715364p-2, 0x1.ec7024p-2, -0x1.715476p-1});
  const Expr high = l.f * kLog2E, low = fused(l.f, kLog2ELow, fused(l.f, kLog2E, -high));
  return log_special(x, l.exponent + (high + fused(l.f * l.f, p, low)));
}

/// Up to 100000, pi/2 in three floats is enough: the first product leaves an exact difference, and no float so small
/// comes nearer to a multiple of pi/2 than 2^-30. Polynomials to 2^-26.8 (sine) and 2^-32.
Expr sine_f32(DeviceOps& d, Opcode op, Expr x) {
  return branch(
      magnitude(x) <= 100000,
      [&] {
        const Expr n = rounded(x * 0x1.45f306p-1);
        const Expr r = fused(n, 0x1.ee59dap-50, fused(n, 0x1.777a5cp-25, fused(-n, 0x1.921fb6p+0, x))), z = r * r;
        const Expr s = fused(polynomial(z, {-0x1.994220p-13, 0x1.110736p-7, -0x1.555546p-3}) * z, r, r);
        const Expr c =
            fused(z * z, polynomial(z, {0x1.99ea02p-16, -0x1.6c0c2ep-10, 0x1.55554ap-5}), fused(z, -0.5, 1.0));
        Expr quadrant{x.b, x.b->CreateFPToSI(n, x.b->getInt32Ty())};
        if (op == Opcode::Cos) quadrant = quadrant + 1;
        const Expr y = bits_of(select((quadrant & 1) != 0, c, s));
        const Expr turned = float_from(y ^ ((quadrant & 2) << 30));
        return op == Opcode::Sin ? select(x == 0, x, turned) : turned;
      },
      [&] {
        const Expr wide = to_double(x);
        return to_float(math_f64(d, op, {&wide, 1}));
      });
}

Value* flushing(const ScalarOp& s, Expr x, I::ID ptx, ApproxOp op) {
  if (!s.d.target.emulated) return x.b->CreateIntrinsic(ptx, {}, {x});
  return flushed({x.b, s.d.approx(op, flushed(x))});
}

// --- f16 and bf16: relative errors of 2^-16 and more are enough for an ulp --------------------------

/// The logarithm's error is multiplied by the exponent of the result: at most 133, which leaves 2^-16.
Expr pow_narrow(const ScalarOp& s, std::span<const Expr> x) {
  return branch((x[0] > 0) & (x[0] < kInf) & (magnitude(x[1]) < kInf),
                [&] {
                  const Expr l = call_shared(s.d.module, "tile_f32_log2", x[0].type(), {x[0]},
                                             [](std::span<const Expr> a) { return log2_f32(a[0]); });
                  return power_of_2(s.d, l * x[1]);
                },
                [&] { return math_wide(s.d, s.op, x); });
}
Expr sinh_cosh_narrow(const ScalarOp& s, Expr x) {
  const Expr a = magnitude(x), z = x * x;
  const Expr half = power_of_2(s.d, fused(a, kLog2E, -1.0), true), rest = reciprocal(s.d, half) * 0.25;
  if (s.op == Opcode::CosH) return half + rest;
  return with_sign(select(a < 1, fused(polynomial(z, {1.0 / 5040, 1.0 / 120, 1.0 / 6}) * z, a, a), half - rest), x);
}
/// atan w = w + w^3 p(w^2) to 2^-17.6 up to 1.
Expr atan2_narrow(const ScalarOp& s, std::span<const Expr> yx) {
  const Expr a = magnitude(yx[0]), b = magnitude(yx[1]);
  return branch((a < kInf) & (b < kInf) & (a + b > 0),
                [&] {
                  const Expr steep = a > b, w = select(steep, b, a) / select(steep, a, b), z = w * w;
                  const Expr near = fused(
                      polynomial(z, {-0x1.c94618p-7, 0x1.e17110p-5, -0x1.f5d1d6p-4, 0x1.91c85cp-3, -0x1.551548p-2}) * z,
                      w, w);
                  const Expr quadrant = select(steep, 0x1.921fb6p+0 - near, near);
                  return with_sign(select(slt(bits_of(yx[1]), 0), 0x1.921fb6p+1 - quadrant, quadrant), yx[0]);
                },
                [&] { return math_wide(s.d, s.op, yx); });
}

/// A function of float, or nullptr.
Value* function_f32(const ScalarOp& s, std::span<const Expr> x) {
  const auto shared = [&](const char* name, const Body& body) {
    return call_shared(s.d.module, name, x[0].type(), {x[0]}, body);
  };
  const auto sine = [&](Opcode op) {
    return shared(op == Opcode::Sin ? "tile_f32_sin" : "tile_f32_cos",
                  [&](std::span<const Expr> a) { return sine_f32(s.d, op, a[0]); });
  };
  const bool narrow = s.out != ElementType::F32;
  switch (s.op) {
    case Opcode::Exp:
      // The product's rounding grows with x: beyond float's bound, but far below what f16 and bf16 show.
      if (s.round == Round::Approx || narrow) return power_of_2(s.d, x[0] * kLog2E);
      return exp_f32(s.d, x[0]);
    case Opcode::Exp2:
      if (s.ftz) return flushing(s, x[0], I::nvvm_ex2_approx_ftz_f, ApproxOp::Ex2);
      return power_of_2(s.d, x[0]);
    case Opcode::Rsqrt:
      if (s.ftz) return flushing(s, x[0], I::nvvm_rsqrt_approx_ftz_f, ApproxOp::Rsqrt);
      return s.d.approx(ApproxOp::Rsqrt, x[0]);
    case Opcode::TanH:
      if (s.round == Round::Approx) return s.d.approx(ApproxOp::Tanh, x[0]);
      return tanh_f32(s.d, x[0]);
    case Opcode::Log:
      return shared("tile_f32_log", [](std::span<const Expr> a) { return log_f32(a[0]); });
    case Opcode::Log2:
      return shared("tile_f32_log2", [](std::span<const Expr> a) { return log2_f32(a[0]); });
    case Opcode::Sin:
    case Opcode::Cos:
      return sine(s.op);
    case Opcode::Tan:
      return narrow ? sine(Opcode::Sin) / sine(Opcode::Cos) : math_wide(s.d, s.op, x);
    case Opcode::SinH:
    case Opcode::CosH:
      return narrow ? sinh_cosh_narrow(s, x[0]) : math_wide(s.d, s.op, x);
    case Opcode::FPowF:
      return narrow ? pow_narrow(s, x) : math_wide(s.d, s.op, x);
    case Opcode::Atan2:
      return narrow ? atan2_narrow(s, x) : math_wide(s.d, s.op, x);
    default:
      return nullptr;
  }
}

/// x^n by squaring, every product rounded; a negative exponent takes the reciprocal at the end.
Expr power_by_squaring(Expr x, Expr exponent) {
  llvm::IRBuilder<>& b = *x.b;
  const Expr negative = slt(exponent, 0);
  const Values last = repeat(
      b, {x.number(1.0), x, select(negative, -exponent, exponent)},
      [&](const Values& v) {
        return Expr{&b, v[2]} != 0;
      },
      [&](const Values& v) -> Values {
        const Expr r{&b, v[0]}, square{&b, v[1]}, left{&b, v[2]};
        return {select((left & 1) != 0, r * square, r), square * square, left >> 1};
      });
  const Expr r{&b, last[0]};
  return select(negative, 1.0 / r, r);
}
Value* lower_fpowi(const ScalarOp& s) {
  if (!kBaseFloat.has(s.out) || !kInt.has(s.in) || s.in == ElementType::I64) return nullptr;
  const Expr x = widened(s.d, s.out, s.arg(0)), n = sext(s.arg(1), s.d.b.getInt32Ty());
  const Expr r = call_shared(s.d.module, x.bits() == 32 ? "tile_f32_fpowi" : "tile_f64_fpowi", x.type(), {x, n},
                             [](std::span<const Expr> a) { return power_by_squaring(a[0], a[1]); });
  return narrowed(s.d, s.out, r);
}

}  // namespace

Value* lower_math(const ScalarOp& s) {
  if (s.op == Opcode::FPowI) return lower_fpowi(s);
  // Of the operations on floats, functions are those whose results have no exact rule.
  if (op_def(s.op).tolerance != Tolerance::Ulp || !kBaseFloat.has(s.in) || (s.ftz && s.in != ElementType::F32))
    return nullptr;
  std::vector<Expr> x;
  for (size_t i = 0; i < s.x.size(); ++i) x.push_back(widened(s.d, s.in, s.arg(i)));
  if (s.in == ElementType::F64) return math_f64(s.d, s.op, x);
  Value* r = function_f32(s, x);
  return r ? narrowed(s.d, s.out, {&s.d.b, r}).v : nullptr;
}

}  // namespace tile
