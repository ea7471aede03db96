// Conversions between float formats and integers: semantics.md section 5.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/ptx/scalar_parts.h"
#include "vm/base/numeric.h"

namespace tile {
namespace {

uint64_t ones(unsigned n) {
  return (1ull << n) - 1;
}

/// Bits of a float (32) or double (64) rounded to another format, as a byte, word... of the format's storage. Works on
/// the significand as an integer, so that each mode is what is added before the shift.
Expr encode_bits(ElementType to, Expr u, Round mode) {
  llvm::IRBuilder<>& b = *u.b;
  const FloatFormat& f = float_format(to);
  const unsigned width = u.bits(), mantissa = width == 32 ? 23 : 52;
  const int bias = width == 32 ? 127 : 1023;
  const uint64_t infinity = width == 32 ? 0x7F800000u : 0x7FF0000000000000u;
  const Expr size = u & ones(width - 1), exponent = size >> mantissa;
  const Expr negative = f.has_sign ? (u >> (width - 1)) != 0 : Expr{&b, b.getFalse()};
  Expr result;
  if (to == ElementType::F8E8M0FNU) {
    // The format is an exponent alone; it has no zero, so its smallest number stands for all below it. `u` is a
    // double's.
    const uint64_t least = static_cast<uint64_t>(bias - f.bias);
    const uint64_t add = mode == Round::PositiveInf ? ones(mantissa) : mode == Round::Zero ? 0 : 1ull << (mantissa - 1);
    Expr sum = size + add;
    // To even: a tie stays where the exponent is even.
    if (mode == Round::NearestEven) sum = size + (add - 1) + ((exponent - least) & 1);
    result = select(exponent < least, 0, umin((sum >> mantissa) - least, f.max_finite));
  } else {
    const auto smallest =
        static_cast<uint64_t>(bias - f.bias + 1);  // exponent field of the target's smallest normal number
    const Expr one_up = select(exponent == 0, 1, exponent);
    const Expr significand = (size & ones(mantissa)) | select(exponent == 0, 0, u.number(1ull << mantissa));
    const Expr below = select(one_up < smallest, smallest - one_up, 0);
    const Expr shift = umin(below + (mantissa - f.mantissa_bits), width - 2);
    const Expr unit = u.number(1) << shift;
    Expr add;
    switch (mode) {
      case Round::Zero:
        add = u.number(0);
        break;
      case Round::NegativeInf:
        add = select(negative, unit - 1, 0);
        break;
      case Round::PositiveInf:
        add = select(negative, 0, unit - 1);
        break;
      case Round::NearestAway:
        add = unit >> 1;
        break;
      default:
        add = (unit >> 1) - 1 + ((significand >> shift) & 1);
    }
    // A carry out of the mantissa moves into the exponent, from subnormal to normal as well.
    const Expr rounded =
        ((significand + add) >> shift) + select(one_up < smallest, 0, (one_up - smallest) << f.mantissa_bits);
    Expr beyond = u.number(f.saturates ? f.max_finite : f.max_finite + 1);
    if (!f.saturates) {
      const Expr finite = u.number(f.max_finite);
      if (mode == Round::Zero) beyond = finite;
      if (mode == Round::NegativeInf) beyond = select(negative, beyond, finite);
      if (mode == Round::PositiveInf) beyond = select(negative, finite, beyond);
    }
    result = select(rounded > f.max_finite, beyond, rounded);
    if (!f.saturates) result = select(size == infinity, f.max_finite + 1, result);
    if (f.has_sign) result = result | select(negative, u.number(1ull << (f.exponent_bits + f.mantissa_bits)), 0);
  }
  result = select(size > infinity, f.nan, result);
  if (to == ElementType::TF32) result = result << 13;
  const unsigned storage = info(to).storage * 8u;
  return storage == width ? result : trunc(result, b.getIntNTy(storage));
}

Expr encode_shared(DeviceOps& d, ElementType to, Expr x, Round mode) {
  if (to == ElementType::F8E8M0FNU && x.bits() == 32) x = to_double(x);
  llvm::LLVMContext& c = d.module.getContext();
  const std::string name = "tile_round_f" + std::to_string(x.bits()) + "_" + std::string(info(to).name) + "_" +
                           std::to_string(static_cast<int>(mode));
  const Expr bits = call_shared(d.module, name, memory_type(c, to), {x},
                                [&](std::span<const Expr> a) { return encode_bits(to, bits_of(a[0]), mode); });
  return cast(bits, register_type(c, to));
}

/// float to bf16 or tf32 to nearest even, which have its exponents: a carry from the cut bits is all there is.
Expr cut_mantissa(ElementType to, Expr x) {
  const unsigned cut = to == ElementType::BF16 ? 16 : 13;
  const Expr u = bits_of(x);
  const Expr rounded = u + ((u >> cut) & 1) + ones(cut - 1);
  const Expr r = select(is_nan(x), to == ElementType::BF16 ? 0x7FFF0000u : 0x7FFFFFFFu, rounded);
  if (to == ElementType::BF16) return cast(trunc(r >> 16, x.b->getInt16Ty()), x.b->getBFloatTy());
  return float_from(select(is_nan(x), r, r & ~ones(13)));
}

Expr inline_ptx(Expr x, llvm::Type* result, const char* text, const char* constraints) {
  auto* type = llvm::FunctionType::get(result, {x.type()}, false);
  return {x.b, x.b->CreateCall(llvm::InlineAsm::get(type, text, constraints, false), {x.v})};
}

/// The instructions that convert the two signed f8 formats work on pairs; both halves are the same element here.
Expr encode_f8(ElementType to, Expr x) {
  const Expr pair = inline_ptx(x, x.b->getInt16Ty(),
                               to == ElementType::F8E4M3FN ? "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $1;"
                                                           : "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $1;",
                               "=h,f");
  return trunc(pair, x.b->getInt8Ty());
}
Expr decode_f8(ElementType from, Expr x) {
  const Expr pair =
      inline_ptx(zext(x, x.b->getInt16Ty()), x.b->getInt32Ty(),
                 from == ElementType::F8E4M3FN ? "cvt.rn.f16x2.e4m3x2 $0, $1;" : "cvt.rn.f16x2.e5m2x2 $0, $1;", "=r,h");
  const Expr half = cast(trunc(pair, x.b->getInt16Ty()), x.b->getHalfTy());
  return {x.b, x.b->CreateFPExt(half, x.b->getFloatTy())};
}

bool has_f8_instructions(const DeviceOps& d, ElementType e) {
  return !d.target.emulated && d.target.fp8_cvt() && (e == ElementType::F8E4M3FN || e == ElementType::F8E5M2);
}

/// The instruction stops at the ends of the range. NaN becomes 0 in 32 bits; in 64 bits it does not. Inline, since LLVM takes its own
/// intrinsics of these for fptosi, which is undefined outside the range, and drops the code that makes a NaN.
Value* convert_instruction(const ScalarOp& s, Expr x) {
  const bool wide = s.out == ElementType::I64;
  const std::string name = std::string("cvt.rzi.") + (s.is_signed ? "s" : "u") + (wide ? "64" : "32") + (x.bits() == 64 ? ".f64" : ".f32") + " $0, $1;";
  const Expr r = inline_ptx(x, wide ? x.b->getInt64Ty() : x.b->getInt32Ty(), name.c_str(),
                            x.bits() == 64 ? (wide ? "=l,d" : "=r,d") : wide ? "=l,f" : "=r,f");
  return wide || x.bits() == 64 ? select(is_nan(x), 0, r) : r;
}

Value* float_to_int(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  const Expr x = decoded(s.d, s.in, s.arg(0));
  if (s.out == ElementType::I1) {
    if (!s.saturating) return b.CreateFCmpUGE(magnitude(x), x.number(1));  // true for NaN
    return s.is_signed ? x <= -1 : x >= 1;
  }
  if (!s.d.target.emulated && (s.out == ElementType::I32 || s.out == ElementType::I64))
    return convert_instruction(s, x);
  // i8 without saturation takes the low bits of a conversion to 32 bits.
  llvm::Type* to = register_type(b.getContext(), s.out);
  llvm::Type* range = s.out == ElementType::I8 && !s.saturating ? static_cast<llvm::Type*>(b.getInt32Ty()) : to;
  const auto id = s.is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateTrunc(b.CreateIntrinsic(id, {range, x.type()}, {x}), to);
}

/// An integer as a float that rounds to bf16 and tf32 as the integer itself would: beyond 24 bits it is cut with the
/// last bit sticky.
Expr odd_float(DeviceOps& d, Expr x, bool is_signed) {
  llvm::IRBuilder<>& b = *x.b;
  x = is_signed ? sext(x, b.getInt64Ty()) : zext(x, b.getInt64Ty());
  return call_shared(
      d.module, is_signed ? "tile_odd_signed" : "tile_odd_unsigned", b.getFloatTy(), {x}, [&](std::span<const Expr> a) {
        llvm::IRBuilder<>& in = *a[0].b;
        const Expr negative = slt(a[0], is_signed ? a[0].number(0) : a[0].number(INT64_MIN));
        const Expr size = is_signed ? select(negative, -a[0], a[0]) : a[0];
        const Expr zeros = leading_zeros(size), shift = select(zeros < 40, 40 - zeros, 0), kept = size >> shift;
        const Expr sticky = kept | zext((kept << shift) != size, in.getInt64Ty());
        const Expr scale = float_from(trunc((shift + 127) << 23, in.getInt32Ty()));
        const Expr r = from_signed(trunc(sticky, in.getInt32Ty()), in.getFloatTy()) * scale;
        return is_signed ? select(negative, -r, r) : r;
      });
}

Value* int_to_float(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  Expr x = s.arg(0);
  if (s.in == ElementType::I1 || s.in == ElementType::I8)
    x = s.is_signed ? sext(x, b.getInt32Ty()) : zext(x, b.getInt32Ty());
  const auto as = [&](llvm::Type* t) { return s.is_signed ? from_signed(x, t) : from_unsigned(x, t); };
  if (s.out == ElementType::F64) return as(b.getDoubleTy());
  if (s.out == ElementType::F32) return as(b.getFloatTy());
  // Only bf16 and tf32 reach beyond 2^24, where float no longer holds every integer; the other formats overflow long
  // before.
  const bool far =
      (s.out == ElementType::BF16 || s.out == ElementType::TF32) && x.bits() >= 32 && info(s.in).bits >= 32;
  return encoded(s.d, s.out, far ? odd_float(s.d, x, s.is_signed) : as(b.getFloatTy()), Round::NearestEven);
}

}  // namespace

Expr widened(DeviceOps&, ElementType e, Expr x) {
  llvm::IRBuilder<>& b = *x.b;
  if (e == ElementType::F16) return {&b, b.CreateFPExt(x, b.getFloatTy())};
  if (e == ElementType::BF16) return float_from(zext(bits_of(x), b.getInt32Ty()) << 16);
  return x;
}

Expr narrowed(DeviceOps& d, ElementType e, Expr x) {
  if (e == ElementType::F16) return {x.b, x.b->CreateFPTrunc(x, x.b->getHalfTy())};
  if (e != ElementType::BF16) return x;
  if (d.target.emulated || !d.target.bf16()) return cut_mantissa(e, x);
  return {x.b, x.b->CreateFPTrunc(x, x.b->getBFloatTy())};
}

Expr decoded(DeviceOps& d, ElementType from, Expr x) {
  llvm::IRBuilder<>& b = *x.b;
  llvm::Type* word = b.getInt32Ty();
  if (from == ElementType::TF32 || kBaseFloat.has(from)) return widened(d, from, x);
  if (has_f8_instructions(d, from)) return decode_f8(from, x);
  const FloatFormat& f = float_format(from);
  const Expr u = zext(x, word);
  if (from == ElementType::F8E8M0FNU) {
    // A float's exponent; its smallest number is a subnormal float.
    const Expr r = select(u == 0, 0x00400000u, u << 23);
    return float_from(select(u == 0xFF, 0x7FFFFFFFu, r));
  }
  // Moved to the place of a float's exponent and mantissa the number is off by the difference of the biases.
  const unsigned value_bits = f.exponent_bits + f.mantissa_bits;
  const Expr size = f.has_sign ? u & ones(value_bits) : u;
  const Expr scale = float_from(u.number((254u - static_cast<unsigned>(f.bias)) << 23));
  Expr r = bits_of(float_from(size << (23 - f.mantissa_bits)) * scale);
  if (f.has_inf)
    r = select(size > f.max_finite, u.number(0x7F800000u) | (size << 21), r);
  else if (f.max_finite < ones(value_bits))
    r = select(size > f.max_finite, 0x7FFFFFFFu, r);
  if (f.has_sign) r = r | ((u >> value_bits) << 31);
  return float_from(r);
}

Expr encoded(DeviceOps& d, ElementType to, Expr x, Round mode) {
  llvm::IRBuilder<>& b = *x.b;
  const bool from_double = x.bits() == 64, nearest = mode == Round::NearestEven;
  if (to == ElementType::F64) return from_double ? x : to_double(x);
  if (to == ElementType::F32 && !from_double) return x;
  if (nearest) {
    if (to == ElementType::F32) return to_float(x);
    if (to == ElementType::F16 && (!from_double || !d.target.emulated)) return {&b, b.CreateFPTrunc(x, b.getHalfTy())};
    if (to == ElementType::BF16 && !from_double) return narrowed(d, to, x);
    if (to == ElementType::TF32 && !from_double) return cut_mantissa(to, x);
    if (!from_double && has_f8_instructions(d, to)) return encode_f8(to, x);
  }
  return encode_shared(d, to, x, mode);
}

Value* lower_conversion(const ScalarOp& s) {
  switch (s.op) {
    case Opcode::FToF: {
      if (!kAnyFloat.has(s.in) || !kAnyFloat.has(s.out) || s.in == s.out) return nullptr;
      if (s.round == Round::Approx || s.round == Round::Full || s.round == Round::IntToZero) return nullptr;
      return encoded(s.d, s.out, decoded(s.d, s.in, s.arg(0)), s.round);
    }
    case Opcode::FToI:
      return kAnyFloat.has(s.in) && kInt.has(s.out) ? float_to_int(s) : nullptr;
    case Opcode::IToF:
      return kInt.has(s.in) && kAnyFloat.has(s.out) && s.out != ElementType::F8E8M0FNU ? int_to_float(s) : nullptr;
    default:
      return nullptr;
  }
}

bool narrowed_in_pairs(DeviceOps& d, const Module& m, const Function& f, InstId i, const Values& in, Values& out) {
  if (f.insts[i].op != Opcode::FToF || d.target.emulated || d.target.sm < 80 || out.size() % 2 != 0) return false;
  const ElementType from = m.types.element_of(f.type(f.operands(i)[0])), to = m.types.element_of(f.type(f.result(i)));
  if (from != ElementType::F32 || (to != ElementType::F16 && to != ElementType::BF16)) return false;
  if (f.attr(i, static_cast<size_t>(attr_index(f.def(i), "rounding_mode"))) != static_cast<uint32_t>(Round::NearestEven)) return false;
  llvm::IRBuilder<>& b = d.b;
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getFloatTy(), b.getFloatTy()}, false);
  auto* code = llvm::InlineAsm::get(type, to == ElementType::F16 ? "cvt.rn.f16x2.f32 $0, $2, $1;" : "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f", false);
  for (size_t k = 0; k < out.size(); k += 2) {
    auto* pair = b.CreateCall(code, {in[k], in[k + 1]});
    pair->setDoesNotAccessMemory();
    out[k] = b.CreateBitCast(b.CreateTrunc(pair, b.getInt16Ty()), register_type(b.getContext(), to));
    out[k + 1] = b.CreateBitCast(b.CreateTrunc(b.CreateLShr(pair, 16), b.getInt16Ty()), register_type(b.getContext(), to));
  }
  return true;
}

}  // namespace tile
