// Chooses the kernel of an elementwise operation: legality, then the instruction set, then the scalar fallback.
#include "vm/interp/elementwise.h"

#include "vm/interp/isa/elementwise_isa.h"

namespace tile {
namespace {

ElementwiseFn find_fast(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  switch (current_isa()) {
#if defined(__x86_64__)
    case Isa::Avx512:
      return find_fast_avx512(op, in, out, m);
    case Isa::Avx2:
      return find_fast_avx2(op, in, out, m);
#endif
    default:
      return find_fast_plain(op, in, out, m);
  }
}

constexpr ElementSet kOneBit = set_of(ElementType::I1);

bool is_ieee_mode(Rounding r) {
  return r <= Rounding::PositiveInf;
}
bool legal_ftof(ElementType in, ElementType out, Rounding mode) {
  if (in == out || !kAnyFloat.has(in) || !kAnyFloat.has(out)) return false;
  if (out == ElementType::F8E8M0FNU) return mode == Rounding::Zero || mode == Rounding::PositiveInf;
  return is_ieee_mode(mode) || mode == Rounding::NearestAway;
}

/// Types and modifiers as spec/semantics.md lists them; what only concerns versions is the validator's.
bool legal(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  const bool same = in == out;
  const bool base = same && kBaseFloat.has(in), f32 = in == ElementType::F32, ftz_fits = f32 || !m.flush_to_zero;
  switch (op) {
    case Opcode::AbsI:
    case Opcode::AddI:
    case Opcode::SubI:
    case Opcode::MulI:
    case Opcode::MulhiI:
    case Opcode::NegI:
    case Opcode::RemI:
    case Opcode::MaxI:
    case Opcode::MinI:
    case Opcode::ShLI:
    case Opcode::ShRI:
    case Opcode::AndI:
    case Opcode::OrI:
    case Opcode::XOrI:
      return same && kInt.has(in);
    case Opcode::DivI:
      return same && kInt.has(in) &&
             (m.rounding == Rounding::Zero || m.rounding == Rounding::PositiveInf ||
              (m.rounding == Rounding::NegativeInf && m.signedness == Signedness::Signed));
    case Opcode::CmpI:
      return kInt.has(in) && kOneBit.has(out);
    case Opcode::AddF:
    case Opcode::SubF:
    case Opcode::MulF:
    case Opcode::Fma:
      return base && ftz_fits && is_ieee_mode(m.rounding);
    case Opcode::DivF:
      return base && ftz_fits &&
             (is_ieee_mode(m.rounding) || (f32 && (m.rounding == Rounding::Approx || m.rounding == Rounding::Full)));
    case Opcode::Sqrt:
      return base && ftz_fits && (is_ieee_mode(m.rounding) || (f32 && m.rounding == Rounding::Approx));
    case Opcode::Exp:
    case Opcode::TanH:
      return base && (m.rounding == Rounding::NearestEven || m.rounding == Rounding::Full ||
                      (f32 && m.rounding == Rounding::Approx));
    case Opcode::Exp2:
    case Opcode::Rsqrt:
    case Opcode::MaxF:
    case Opcode::MinF:
      return base && ftz_fits;
    case Opcode::AbsF:
    case Opcode::NegF:
    case Opcode::RemF:
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::Cos:
    case Opcode::Sin:
    case Opcode::Tan:
    case Opcode::CosH:
    case Opcode::SinH:
    case Opcode::Log:
    case Opcode::Log2:
    case Opcode::FPowF:
    case Opcode::Atan2:
      return base;
    case Opcode::FPowI:
      return kBaseFloat.has(out) && kInt.has(in) && in != ElementType::I64;
    case Opcode::CmpF:
      return kBaseFloat.has(in) && kOneBit.has(out);
    case Opcode::Select:
      return kAny.has(out) && out != ElementType::F4E2M1FN;
    case Opcode::Bitcast:
      return kNum.has(in) && kNum.has(out) && info(in).bits == info(out).bits;
    case Opcode::ExtI:
      return kInt4.has(in) && kInt4.has(out) && info(in).bits < info(out).bits;
    case Opcode::TruncI:
      return kInt4.has(in) && kInt4.has(out) && info(in).bits > info(out).bits;
    case Opcode::FToF:
      return legal_ftof(in, out, m.rounding);
    case Opcode::FToI:
      return kAnyFloat.has(in) && kInt.has(out);
    case Opcode::IToF:
      return kInt.has(in) && kAnyFloat.has(out) && out != ElementType::F8E8M0FNU;
    case Opcode::IntToPtr:
      return in == ElementType::I64 && out == ElementType::Ptr;
    case Opcode::PtrToInt:
      return in == ElementType::Ptr && out == ElementType::I64;
    case Opcode::PtrToPtr:
      return in == ElementType::Ptr && out == ElementType::Ptr;
    default:
      return false;
  }
}

template <class I, bool OneBit>
void offset_pointers(void* out, const void* pointers, const void* indices, size_t n, uint64_t bytes) {
  auto* o = static_cast<uint64_t*>(out);
  const auto* p = static_cast<const uint64_t*>(pointers);
  const auto* x = static_cast<const I*>(indices);
  for (size_t i = 0; i < n; ++i) {
    const int64_t index = OneBit ? -static_cast<int64_t>(x[i] & 1) : static_cast<int64_t>(x[i]);
    o[i] = p[i] + static_cast<uint64_t>(index) * bytes;
  }
}

}  // namespace

const char* isa_name() {
  switch (current_isa()) {
    case Isa::Avx2:
      return "avx2";
    case Isa::Avx512:
      return "avx512";
    default:
      return "plain";
  }
}

ElementwiseFn find_elementwise(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  if (!legal(op, in, out, m)) return nullptr;
  if (op == Opcode::FToF && in == ElementType::TF32 && out == ElementType::F32) {
    // All 32 bits are kept whatever the mode; the nearest-even kernel is that copy.
    Modifiers copy = m;
    copy.rounding = Rounding::NearestEven;
    return find_fast(op, in, out, copy);
  }
  const ElementwiseFn fast = find_fast(op, in, out, m);
  return fast != nullptr ? fast : find_scalar(op, in, out, m);
}

ElementwiseFn find_streamed(Opcode op, ElementType type, const Modifiers& m) {
  if (!legal(op, type, type, m)) return nullptr;
  switch (current_isa()) {
#if defined(__x86_64__)
    case Isa::Avx512:
      return find_streamed_avx512(op, type, m);
    case Isa::Avx2:
      return find_streamed_avx2(op, type, m);
#endif
    default:
      return find_streamed_plain(op, type, m);
  }
}

ElementwiseFn find_splat(ElementType e) {
  return find_fast(Opcode::Broadcast, e, e, {});
}

OffsetFn find_offset(ElementType index) {
  switch (index) {
    case ElementType::I1:
      return offset_pointers<uint8_t, true>;
    case ElementType::I8:
      return offset_pointers<int8_t, false>;
    case ElementType::I16:
      return offset_pointers<int16_t, false>;
    case ElementType::I32:
      return offset_pointers<int32_t, false>;
    case ElementType::I64:
      return offset_pointers<int64_t, false>;
    default:
      return nullptr;
  }
}

}  // namespace tile
