// Float arithmetic and comparisons: semantics.md sections 2 and 3.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "backend/ptx/scalar_parts.h"

namespace tile {
namespace {

namespace I = llvm::Intrinsic;

unsigned operand_count(Opcode op) {
  return op == Opcode::Sqrt ? 1 : op == Opcode::Fma ? 3 : 2;
}

struct PtxForms {
  I::ID f32, f32_ftz, f64;
};
#define TILE_FORMS(op, mode) \
  { I::nvvm_##op##_##mode##_f, I::nvvm_##op##_##mode##_ftz_f, I::nvvm_##op##_##mode##_d }
#define TILE_MODES(op) \
  { TILE_FORMS(op, rn), TILE_FORMS(op, rz), TILE_FORMS(op, rm), TILE_FORMS(op, rp) }
/// The instruction of a mode; a difference is the sum with the negated operand.
Expr ptx_rounded(Opcode op, Round mode, bool ftz, std::span<const Expr> x) {
  static constexpr PtxForms kAdd[] = TILE_MODES(add), kMul[] = TILE_MODES(mul), kDiv[] = TILE_MODES(div),
                            kFma[] = TILE_MODES(fma), kSqrt[] = TILE_MODES(sqrt);
  const PtxForms* forms = op == Opcode::MulF   ? kMul
                          : op == Opcode::DivF ? kDiv
                          : op == Opcode::Fma  ? kFma
                          : op == Opcode::Sqrt ? kSqrt
                                               : kAdd;
  const PtxForms& f = forms[static_cast<size_t>(mode)];
  Values arguments(x.begin(), x.end());
  if (op == Opcode::SubF) arguments[1] = -x[1];
  llvm::IRBuilder<>& b = *x[0].b;
  return {&b, b.CreateIntrinsic(x[0].bits() == 64 ? f.f64 : ftz ? f.f32_ftz : f.f32, {}, arguments)};
}
#undef TILE_FORMS
#undef TILE_MODES

/// On the host, the processor's rounding mode is changed around the operation. Constrained operations keep their place
/// between.
Expr host_directed(llvm::Module& module, Opcode op, Round mode, std::span<const Expr> x) {
  static constexpr I::ID kAdd = I::experimental_constrained_fadd, kSub = I::experimental_constrained_fsub,
                         kMul = I::experimental_constrained_fmul, kDiv = I::experimental_constrained_fdiv,
                         kFma = I::experimental_constrained_fma, kSqrt = I::experimental_constrained_sqrt;
  const I::ID id = op == Opcode::AddF   ? kAdd
                   : op == Opcode::SubF ? kSub
                   : op == Opcode::MulF ? kMul
                   : op == Opcode::DivF ? kDiv
                   : op == Opcode::Fma  ? kFma
                                        : kSqrt;
  const unsigned control = mode == Round::NegativeInf   ? 0x3F80
                           : mode == Round::PositiveInf ? 0x5F80
                                                        : 0x7F80;  // mxcsr, exceptions masked
  const std::string name = "tile_round_" + std::to_string(static_cast<unsigned>(op)) + "_" +
                           std::to_string(static_cast<int>(mode)) + "_f" + std::to_string(x[0].bits());
  const Body body = [&](std::span<const Expr> a) -> Expr {
    llvm::IRBuilder<>& b = *a[0].b;
    llvm::Function* f = b.GetInsertBlock()->getParent();
    f->addFnAttr(llvm::Attribute::StrictFP);
    f->removeFnAttr(llvm::Attribute::Memory);
    b.setIsFPConstrained(true);
    Value* saved = b.CreateAlloca(b.getInt32Ty());
    Value* wanted = b.CreateAlloca(b.getInt32Ty());
    b.CreateStore(b.getInt32(control), wanted);
    const auto mark = [](llvm::CallInst* c) { c->addFnAttr(llvm::Attribute::StrictFP); };
    mark(b.CreateIntrinsic(I::x86_sse_stmxcsr, {}, {saved}));
    mark(b.CreateIntrinsic(I::x86_sse_ldmxcsr, {}, {wanted}));
    const Values arguments(a.begin(), a.end());
    llvm::Function* operation = I::getDeclaration(&module, id, {a[0].type()});
    Value* r = b.CreateConstrainedFPCall(operation, arguments, "", llvm::RoundingMode::Dynamic, llvm::fp::ebStrict);
    mark(b.CreateIntrinsic(I::x86_sse_ldmxcsr, {}, {saved}));
    return {&b, r};
  };
  if (x.size() == 1) return call_shared(module, name, x[0].type(), {x[0]}, body);
  if (x.size() == 2) return call_shared(module, name, x[0].type(), {x[0], x[1]}, body);
  return call_shared(module, name, x[0].type(), {x[0], x[1], x[2]}, body);
}

/// To nearest even, float or double.
Expr nearest(Opcode op, std::span<const Expr> x) {
  switch (op) {
    case Opcode::AddF:
      return x[0] + x[1];
    case Opcode::SubF:
      return x[0] - x[1];
    case Opcode::MulF:
      return x[0] * x[1];
    case Opcode::DivF:
      return x[0] / x[1];
    case Opcode::Fma:
      return fused(x[0], x[1], x[2]);
    default:
      return unary(I::sqrt, x[0]);
  }
}

/// Multiplying by 1 is how an instruction flushes; constants mostly need nothing.
Expr flushed_for(const DeviceOps& d, Expr x) {
  if (d.target.emulated) return flushed(x);
  if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(x.v); c != nullptr && !c->getValueAPF().isDenormal()) return x;
  return {x.b, x.b->CreateIntrinsic(I::nvvm_mul_rn_ftz_f, {}, {x, x.number(1.0)})};
}

/// In nearest even or a directed mode. The .ftz forms of an instruction find out before rounding that a result is
/// subnormal (seen on sm_90): 2^-126 * (1 - 2^-24) gives 0, where the rounded product is a normal number. So they serve
/// where a subnormal result is never rounded, and elsewhere operands and result are flushed one by one.
Expr in_mode(DeviceOps& d, Opcode op, Round mode, bool ftz, std::span<const Expr> x) {
  const bool exact_below = op == Opcode::AddF || op == Opcode::SubF || op == Opcode::Sqrt;
  if (ftz && exact_below && !d.target.emulated) return ptx_rounded(op, mode, true, x);
  std::vector<Expr> y;
  for (const Expr& e : x) y.push_back(ftz ? flushed_for(d, e) : e);
  const Expr r = mode == Round::NearestEven ? nearest(op, y)
                 : d.target.emulated        ? host_directed(d.module, op, mode, y)
                                            : ptx_rounded(op, mode, false, y);
  return ftz ? flushed_for(d, r) : r;
}

Value* lower_f32(const ScalarOp& s, std::span<const Expr> x) {
  llvm::IRBuilder<>& b = s.d.b;
  if (s.directed()) return in_mode(s.d, s.op, s.round, s.ftz, x);
  const bool free = s.round == Round::Approx || s.round == Round::Full;
  if (!s.d.target.emulated) {
    if (free && s.op == Opcode::Sqrt && s.ftz) return b.CreateIntrinsic(I::nvvm_sqrt_approx_ftz_f, {}, {x[0]});
    if (free && s.op == Opcode::DivF && s.round == Round::Approx) {
      return b.CreateIntrinsic(s.ftz ? I::nvvm_div_approx_ftz_f : I::nvvm_div_approx_f, {}, {x[0], x[1]});
    }
    if (free && s.op == Opcode::DivF) {
      auto* type = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy(), b.getFloatTy()}, false);
      const char* text = s.ftz ? "div.full.ftz.f32 $0, $1, $2;" : "div.full.f32 $0, $1, $2;";
      return b.CreateCall(llvm::InlineAsm::get(type, text, "=f,f,f", false), {x[0], x[1]});
    }
  }
  if (free && s.op == Opcode::Sqrt) {
    const Expr root{&b, s.d.approx(ApproxOp::Sqrt, s.ftz ? flushed(x[0]) : x[0])};
    return s.ftz ? flushed(root) : root;
  }
  return in_mode(s.d, s.op, Round::NearestEven, s.ftz, x);
}

/// bf16 has the exponents of float, so a quotient that is subnormal in float has been rounded already: it is made again
/// in double.
Value* divide_bf16(const ScalarOp& s) {
  const Expr x = widened(s.d, s.in, s.arg(0)), y = widened(s.d, s.in, s.arg(1));
  const Expr bits = call_shared(s.d.module, "tile_divf_bf16", s.d.b.getInt16Ty(), {x, y}, [&](std::span<const Expr> a) {
    const Expr q = a[0] / a[1];
    return branch(
        magnitude(q) < 0x1p-125,
        [&] { return bits_of(encoded(s.d, s.in, to_double(a[0]) / to_double(a[1]), Round::NearestEven)); },
        [&] { return bits_of(narrowed(s.d, s.in, q)); });
  });
  return cast(bits, s.d.b.getBFloatTy());
}

/// x * y + z in bf16 where no instruction does it: the product is exact in double, its sum is rounded to odd there
/// (cut, with the last bit set if something was cut off), so that the rounding to bf16 sees which side of a tie it is
/// on.
Value* fma_bf16(const ScalarOp& s, std::span<const Expr> x) {
  const Expr bits =
      call_shared(s.d.module, "tile_fma_bf16", s.d.b.getInt16Ty(), {x[0], x[1], x[2]}, [&](std::span<const Expr> a) {
        const Expr p = to_double(a[0]) * to_double(a[1]), q = to_double(a[2]), sum = p + q, t = sum - p;
        const Expr error = (p - (sum - t)) + (q - t), u = bits_of(sum), opposite = (u ^ bits_of(error)) >> 63;
        const Expr odd = float_from(select(magnitude(error) > 0, (u - opposite) | 1, u));
        return bits_of(encoded(s.d, s.in, odd, Round::NearestEven));
      });
  return cast(bits, s.d.b.getBFloatTy());
}

/// f16 and bf16. Sums, products, quotients and roots may pass through float: it has more than twice the digits and two
/// more, so rounding twice is rounding once, where the float is not subnormal.
Value* lower_narrow(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  std::vector<Expr> x;
  for (size_t i = 0; i < s.x.size(); ++i) x.push_back(widened(s.d, s.in, s.arg(i)));
  // Two roundings in one direction are one: the numbers of the narrow type are among the floats.
  if (s.directed()) return encoded(s.d, s.in, in_mode(s.d, s.op, s.round, false, x), s.round);
  const bool no_fma = s.in == ElementType::BF16 && !s.d.target.emulated && !s.d.target.bf16();
  if (s.op == Opcode::Fma) return no_fma ? fma_bf16(s, x) : s.d.fma(s.x[0], s.x[1], s.x[2]);
  if (s.in == ElementType::BF16) {
    if (s.op == Opcode::DivF) return divide_bf16(s);
    if (s.op == Opcode::MulF && no_fma) {
      const Expr all[] = {x[0], x[1], x[0].number(-0.0)};
      return fma_bf16(s, all);
    }
    if (s.op == Opcode::MulF) return s.d.fma(s.x[0], s.x[1], s.arg(0).number(-0.0));
    if (s.d.target.bf16() && s.op == Opcode::AddF) return s.d.fma(s.x[0], s.arg(0).number(1.0), s.x[1]);
    if (s.d.target.bf16() && s.op == Opcode::SubF) return s.d.fma(s.x[1], s.arg(0).number(-1.0), s.x[0]);
  } else if (!s.d.target.emulated) {
    if (s.op == Opcode::AddF) return b.CreateFAdd(s.x[0], s.x[1]);
    if (s.op == Opcode::SubF) return b.CreateFSub(s.x[0], s.x[1]);
    if (s.op == Opcode::MulF) return b.CreateFMul(s.x[0], s.x[1]);
  }
  return narrowed(s.d, s.in, nearest(s.op, x));
}

/// maxf and minf where no instruction does it. Equal operands are combined bit by bit: +0 is larger than -0.
Expr extreme(Expr x, Expr y, bool larger, bool propagate) {
  const Expr u = bits_of(x), v = bits_of(y);
  Expr r = larger ? select(x > y, x, y) : select(x < y, x, y);
  r = select(x == y, cast(larger ? u & v : u | v, x.type()), r);
  return propagate ? select(is_nan(x), x, r) : select(is_nan(y), x, r);
}

Value* lower_extreme(const ScalarOp& s) {
  llvm::IRBuilder<>& b = s.d.b;
  const bool larger = s.op == Opcode::MaxF;
  const Expr x = s.arg(0), y = s.arg(1);
  const Target& t = s.d.target;
  if (!t.emulated) {
    if (s.ftz && (!s.propagate_nan || t.sm >= 80)) {
      const I::ID id = larger ? (s.propagate_nan ? I::nvvm_fmax_ftz_nan_f : I::nvvm_fmax_ftz_f)
                              : (s.propagate_nan ? I::nvvm_fmin_ftz_nan_f : I::nvvm_fmin_ftz_f);
      return b.CreateIntrinsic(id, {}, {x, y});
    }
    const bool wide = s.in == ElementType::F32 || s.in == ElementType::F64;
    if (!s.ftz && s.propagate_nan && t.sm >= 80 && s.in != ElementType::F64) {
      return b.CreateBinaryIntrinsic(larger ? I::maximum : I::minimum, x, y);
    }
    if (!s.ftz && !s.propagate_nan && (wide || t.sm >= 80))
      return b.CreateBinaryIntrinsic(larger ? I::maxnum : I::minnum, x, y);
  }
  Expr p = widened(s.d, s.in, x), q = widened(s.d, s.in, y);
  if (s.ftz) {
    p = flushed(p);
    q = flushed(q);
  }
  return narrowed(s.d, s.in, extreme(p, q, larger, s.propagate_nan));
}

Value* compare(const ScalarOp& s) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P kOrdered[] = {P::FCMP_OEQ, P::FCMP_ONE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  static constexpr P kUnordered[] = {P::FCMP_UEQ, P::FCMP_UNE, P::FCMP_ULT, P::FCMP_ULE, P::FCMP_UGT, P::FCMP_UGE};
  if (s.predicate >= std::size(kOrdered)) return nullptr;
  const bool native = s.in == ElementType::F16 && !s.d.target.emulated;
  const Expr x = native ? s.arg(0) : widened(s.d, s.in, s.arg(0)), y = native ? s.arg(1) : widened(s.d, s.in, s.arg(1));
  return s.d.b.CreateFCmp((s.ordered ? kOrdered : kUnordered)[s.predicate], x, y);
}

Value* change_sign(const ScalarOp& s, bool negate) {
  const Expr x = s.arg(0);
  if (x.bits() != 16) return negate ? -x : magnitude(x);
  const Expr u = bits_of(x);
  return cast(negate ? u ^ 0x8000u : u & 0x7FFFu, x.type());
}

/// x - y * trunc(x / y) by division of significands: what is left is shifted up by as many bits as fit and divided
/// again, until it stands at the exponent of y. At most 2046 / 11 rounds for double, 253 / 40 for float.
Expr remainder(Expr x, Expr y) {
  llvm::IRBuilder<>& b = *x.b;
  const unsigned width = x.bits(), mantissa = width == 32 ? 23 : 52, step = width == 32 ? 40 : 11;
  const uint64_t infinity = width == 32 ? 0x7F800000u : 0x7FF0000000000000u, hidden = 1ull << mantissa;
  llvm::Type* word = b.getInt64Ty();
  const auto size_of = [&](Expr e) {
    const Expr u = bits_of(e) & ((1ull << (width - 1)) - 1);
    return width == 32 ? zext(u, word) : u;
  };
  const Expr p = size_of(x), q = size_of(y);
  const Expr invalid = (p >= infinity) | (q == 0) | (q > infinity);
  const auto exponent_of = [&](Expr u) { return select(u < hidden, 1, u >> mantissa); };
  const auto significand_of = [&](Expr u) { return (u & (hidden - 1)) | select(u < hidden, 0, u.number(hidden)); };
  return branch(
      invalid | (p < q),
      [&] {
        return select(invalid, float_from(bits_of(x).number(width == 32 ? 0x7FFFFFFFu : 0x7FF8000000000000u)), x);
      },
      [&] {
        const Expr at = exponent_of(q), m = significand_of(q);
        const Values last = repeat(
            b, {significand_of(p) % m, exponent_of(p) - at},
            [&](const Values& v) {
              return Expr{&b, v[1]} != 0;
            },
            [&](const Values& v) -> Values {
              const Expr r{&b, v[0]}, left{&b, v[1]}, n = umin(left, step);
              return {(r << n) % m, left - n};
            });
        const Expr r{&b, last[0]};
        // Back to a float at exponent `at`, or below as far as the hidden bit wants and subnormal numbers allow.
        const Expr up = umin(leading_zeros(r) - (63 - mantissa), at - 1);
        Expr bits = select(r == 0, 0, (r << up) + ((at - up - 1) << mantissa));
        if (width == 32) bits = trunc(bits, b.getInt32Ty());
        return with_sign(float_from(bits), x);
      });
}

Value* lower_remainder(const ScalarOp& s) {
  const Expr x = widened(s.d, s.in, s.arg(0)), y = widened(s.d, s.in, s.arg(1));
  const Expr r = call_shared(s.d.module, x.bits() == 32 ? "tile_remf_f32" : "tile_remf_f64", x.type(), {x, y},
                             [](std::span<const Expr> a) { return remainder(a[0], a[1]); });
  return narrowed(s.d, s.in, r);
}

Value* round_to_integer(const ScalarOp& s) {
  const I::ID id = s.op == Opcode::Ceil ? I::ceil : I::floor;
  if (s.in == ElementType::F16 && !s.d.target.emulated) return unary(id, s.arg(0));
  return narrowed(s.d, s.in, unary(id, widened(s.d, s.in, s.arg(0))));
}

}  // namespace

Expr flushed(Expr x) {
  const Expr u = bits_of(x);
  return float_from(select((u & 0x7F800000u) == 0, u & 0x80000000u, u));
}

Value* lower_arithmetic(const ScalarOp& s) {
  if (!kBaseFloat.has(s.in) || (s.ftz && s.in != ElementType::F32)) return nullptr;
  switch (s.op) {
    case Opcode::AddF:
    case Opcode::SubF:
    case Opcode::MulF:
    case Opcode::DivF:
    case Opcode::Fma:
    case Opcode::Sqrt: {
      const bool approx = s.op == Opcode::DivF || s.op == Opcode::Sqrt;
      if (s.round > Round::PositiveInf && !(approx && s.in == ElementType::F32 && s.round <= Round::Full))
        return nullptr;
      if (s.in == ElementType::F16 || s.in == ElementType::BF16) return lower_narrow(s);
      std::vector<Expr> x;
      for (unsigned i = 0; i < operand_count(s.op); ++i) x.push_back(s.arg(i));
      if (s.in == ElementType::F32) return lower_f32(s, x);
      return s.directed() ? in_mode(s.d, s.op, s.round, false, x) : nearest(s.op, x);
    }
    case Opcode::AbsF:
      return change_sign(s, false);
    case Opcode::NegF:
      return change_sign(s, true);
    case Opcode::MaxF:
    case Opcode::MinF:
      return lower_extreme(s);
    case Opcode::CmpF:
      return compare(s);
    case Opcode::RemF:
      return lower_remainder(s);
    case Opcode::Ceil:
    case Opcode::Floor:
      return round_to_integer(s);
    default:
      return nullptr;
  }
}

}  // namespace tile
