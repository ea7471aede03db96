// Elementwise kernels without a vector form: directed rounding, division of integers, remainders, powers by integers,
// f64 functions, and conversions of rare types through exact decoding and encoding.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <utility>

#include "vm/base/numeric.h"
#include "vm/interp/isa/elementwise_isa.h"

namespace tile {

uint16_t bf16_of_tiny(double x) {
  return static_cast<uint16_t>(encode(ElementType::BF16, x));
}

namespace {

template <ElementType T>
struct StorageOf {
  using Type = uint8_t;
};
template <>
struct StorageOf<ElementType::I16> {
  using Type = uint16_t;
};
template <>
struct StorageOf<ElementType::I32> {
  using Type = uint32_t;
};
template <>
struct StorageOf<ElementType::I64> {
  using Type = uint64_t;
};
template <>
struct StorageOf<ElementType::F16> {
  using Type = uint16_t;
};
template <>
struct StorageOf<ElementType::BF16> {
  using Type = uint16_t;
};
template <>
struct StorageOf<ElementType::F32> {
  using Type = uint32_t;
};
template <>
struct StorageOf<ElementType::TF32> {
  using Type = uint32_t;
};
template <>
struct StorageOf<ElementType::F64> {
  using Type = uint64_t;
};
template <ElementType T>
using Storage = typename StorageOf<T>::Type;

template <ElementType T>
double load(const void* from, size_t i) {
  return decode(T, static_cast<const Storage<T>*>(from)[i]);
}
template <ElementType T>
void store(void* to, size_t i, uint64_t bits) {
  static_cast<Storage<T>*>(to)[i] = static_cast<Storage<T>>(bits);
}

// --- directed rounding --------------------------------------------------------------------------
// f16, bf16 and f32: the exact result rounded to odd in f64, then encoded once. Operands have at most 24 bits, so
// products are exact in f64 and the residual of a quotient or root is exact too.

/// The sum with its sign where it is an exact zero: negative when rounding down, unless both are +0.
double signed_sum(double a, double b, Rounding mode) {
  const double s = add_to_odd(a, b);
  if (s != 0) return s;
  if (std::signbit(a) == std::signbit(b)) return a;
  return mode == Rounding::NegativeInf ? -0.0 : 0.0;
}
template <Opcode Op>
double exact(double a, double b, double c, Rounding mode) {
  switch (Op) {
    case Opcode::AddF:
      return signed_sum(a, b, mode);
    case Opcode::SubF:
      return signed_sum(a, -b, mode);
    case Opcode::MulF:
      return a * b;
    case Opcode::Fma:
      return signed_sum(a * b, c, mode);
    case Opcode::DivF: {
      const double q = a / b, rest = -std::fma(q, b, -a);
      return round_to_odd(q, std::signbit(b) ? -rest : rest);
    }
    default: {  // Sqrt
      const double s = std::sqrt(a);
      return round_to_odd(s, -std::fma(s, s, -a));
    }
  }
}
constexpr int arity(Opcode op) {
  return op == Opcode::Sqrt ? 1 : op == Opcode::Fma ? 3 : 2;
}

template <bool Ftz>
uint64_t flush_bits(uint64_t u) {
  return Ftz && (u & 0x7F800000u) == 0 ? u & 0x80000000u : u;
}

template <ElementType T, Opcode Op, Rounding Mode, bool Ftz>
void directed(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    double x[3] = {};
    for (int k = 0; k < arity(Op); ++k) x[k] = decode(T, flush_bits<Ftz>(static_cast<const Storage<T>*>(in[k])[i]));
    store<T>(out, i, flush_bits<Ftz>(encode(T, exact<Op>(x[0], x[1], x[2], Mode), Mode)));
  }
}

/// f64: the processor's rounding mode around the loop. Volatile keeps the operations between the two mode changes.
template <Opcode Op, Rounding Mode>
void directed_f64(void* out, const void* const* in, size_t n) {
  const int saved = std::fegetround();
  std::fesetround(Mode == Rounding::Zero ? FE_TOWARDZERO : Mode == Rounding::NegativeInf ? FE_DOWNWARD : FE_UPWARD);
  auto* o = static_cast<volatile double*>(out);
  for (size_t i = 0; i < n; ++i) {
    double x[3] = {};
    for (int k = 0; k < arity(Op); ++k) x[k] = static_cast<const volatile double*>(in[k])[i];
    double r = 0;
    switch (Op) {
      case Opcode::AddF:
        r = x[0] + x[1];
        break;
      case Opcode::SubF:
        r = x[0] - x[1];
        break;
      case Opcode::MulF:
        r = x[0] * x[1];
        break;
      case Opcode::Fma:
        r = std::fma(x[0], x[1], x[2]);
        break;
      case Opcode::DivF:
        r = x[0] / x[1];
        break;
      default:
        r = std::sqrt(x[0]);
        break;
    }
    o[i] = r != r ? double_of(canonical_nan(ElementType::F64)) : r;
  }
  std::fesetround(saved);
}

template <Opcode Op, Rounding Mode>
ElementwiseFn find_directed_mode(ElementType type, bool ftz) {
  switch (type) {
    case ElementType::F16:
      return directed<ElementType::F16, Op, Mode, false>;
    case ElementType::BF16:
      return directed<ElementType::BF16, Op, Mode, false>;
    case ElementType::F32:
      return ftz ? directed<ElementType::F32, Op, Mode, true> : directed<ElementType::F32, Op, Mode, false>;
    case ElementType::F64:
      return directed_f64<Op, Mode>;
    default:
      return nullptr;
  }
}
template <Opcode Op>
ElementwiseFn find_directed(ElementType type, const Modifiers& m) {
  switch (m.rounding) {
    case Rounding::Zero:
      return find_directed_mode<Op, Rounding::Zero>(type, m.flush_to_zero);
    case Rounding::NegativeInf:
      return find_directed_mode<Op, Rounding::NegativeInf>(type, m.flush_to_zero);
    case Rounding::PositiveInf:
      return find_directed_mode<Op, Rounding::PositiveInf>(type, m.flush_to_zero);
    default:
      return nullptr;
  }
}

// --- remainders and functions -------------------------------------------------------------------

template <ElementType T>
void remainder(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i) store<T>(out, i, encode(T, std::fmod(load<T>(in[0], i), load<T>(in[1], i))));
}
ElementwiseFn find_remainder(ElementType type) {
  switch (type) {
    case ElementType::F16:
      return remainder<ElementType::F16>;
    case ElementType::BF16:
      return remainder<ElementType::BF16>;
    case ElementType::F32:
      return remainder<ElementType::F32>;
    case ElementType::F64:
      return remainder<ElementType::F64>;
    default:
      return nullptr;
  }
}

template <double (*F)(double)>
void unary_f64(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i)
    store<ElementType::F64>(out, i, encode(ElementType::F64, F(load<ElementType::F64>(in[0], i))));
}
template <double (*F)(double, double)>
void binary_f64(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double x = F(load<ElementType::F64>(in[0], i), load<ElementType::F64>(in[1], i));
    store<ElementType::F64>(out, i, encode(ElementType::F64, x));
  }
}
ElementwiseFn find_math_f64(Opcode op) {
  switch (op) {
    case Opcode::Exp:
      return unary_f64<exp_f64>;
    case Opcode::Exp2:
      return unary_f64<exp2_f64>;
    case Opcode::Log:
      return unary_f64<log_f64>;
    case Opcode::Log2:
      return unary_f64<log2_f64>;
    case Opcode::Rsqrt:
      return unary_f64<rsqrt_f64>;
    case Opcode::Sin:
      return unary_f64<sin_f64>;
    case Opcode::Cos:
      return unary_f64<cos_f64>;
    case Opcode::Tan:
      return unary_f64<tan_f64>;
    case Opcode::SinH:
      return unary_f64<sinh_f64>;
    case Opcode::CosH:
      return unary_f64<cosh_f64>;
    case Opcode::TanH:
      return unary_f64<tanh_f64>;
    case Opcode::FPowF:
      return binary_f64<pow_f64>;
    case Opcode::Atan2:
      return binary_f64<atan2_f64>;
    default:
      return nullptr;
  }
}

/// x^n by squaring, every product rounded to F; a negative exponent takes the reciprocal at the end.
template <class F>
F power(F x, int32_t exponent) {
  uint32_t left = exponent < 0 ? 0u - static_cast<uint32_t>(exponent) : static_cast<uint32_t>(exponent);
  F r = 1;
  for (F square = x; left != 0; left >>= 1) {
    if ((left & 1) != 0) r *= square;
    square *= square;
  }
  return exponent < 0 ? 1 / r : r;
}
template <ElementType I>
int32_t signed_int(const void* from, size_t i) {
  if constexpr (I == ElementType::I1) return -static_cast<int32_t>(static_cast<const uint8_t*>(from)[i] & 1);
  if constexpr (I == ElementType::I8) return static_cast<const int8_t*>(from)[i];
  if constexpr (I == ElementType::I16) return static_cast<const int16_t*>(from)[i];
  return static_cast<const int32_t*>(from)[i];
}
template <ElementType T, ElementType I>
void integer_power(void* out, const void* const* in, size_t n) {
  using F = std::conditional_t<T == ElementType::F64, double, float>;
  for (size_t i = 0; i < n; ++i) {
    const F x = static_cast<F>(load<T>(in[0], i));
    store<T>(out, i, encode(T, static_cast<double>(power<F>(x, signed_int<I>(in[1], i)))));
  }
}
template <ElementType I>
ElementwiseFn find_integer_power(ElementType type) {
  switch (type) {
    case ElementType::F16:
      return integer_power<ElementType::F16, I>;
    case ElementType::BF16:
      return integer_power<ElementType::BF16, I>;
    case ElementType::F32:
      return integer_power<ElementType::F32, I>;
    case ElementType::F64:
      return integer_power<ElementType::F64, I>;
    default:
      return nullptr;
  }
}

// --- division of integers -----------------------------------------------------------------------

// Undefined cases have fixed results: x / 0 is all ones, x rem 0 is x, the smallest number / -1 is itself, with
// remainder 0.
template <class S, Rounding Mode>
S divide(S a, S b) {
  if (b == 0) return static_cast<S>(-1);
  if (S(-1) < S(0) && b == static_cast<S>(-1)) return static_cast<S>(0 - static_cast<std::make_unsigned_t<S>>(a));
  const S q = static_cast<S>(a / b), r = static_cast<S>(a % b);
  if (Mode == Rounding::Zero || r == 0) return q;
  const bool negative = (a < 0) != (b < 0);
  if (Mode == Rounding::NegativeInf) return static_cast<S>(q - (negative ? 1 : 0));
  return static_cast<S>(q + (negative ? 0 : 1));
}
template <class S>
S int_remainder(S a, S b) {
  if (b == 0) return a;
  if (S(-1) < S(0) && b == static_cast<S>(-1)) return 0;
  return static_cast<S>(a % b);
}
template <class S, Rounding Mode>
void int_divide(void* out, const void* const* in, size_t n) {
  const auto* a = static_cast<const S*>(in[0]);
  const auto* b = static_cast<const S*>(in[1]);
  for (size_t i = 0; i < n; ++i) static_cast<S*>(out)[i] = divide<S, Mode>(a[i], b[i]);
}
template <class S>
void int_rem(void* out, const void* const* in, size_t n) {
  const auto* a = static_cast<const S*>(in[0]);
  const auto* b = static_cast<const S*>(in[1]);
  for (size_t i = 0; i < n; ++i) static_cast<S*>(out)[i] = int_remainder<S>(a[i], b[i]);
}
template <class S>
ElementwiseFn find_division_of(Opcode op, Rounding mode) {
  if (op == Opcode::RemI) return int_rem<S>;
  switch (mode) {
    case Rounding::Zero:
      return int_divide<S, Rounding::Zero>;
    case Rounding::NegativeInf:
      return int_divide<S, Rounding::NegativeInf>;
    case Rounding::PositiveInf:
      return int_divide<S, Rounding::PositiveInf>;
    default:
      return nullptr;
  }
}
ElementwiseFn find_division(Opcode op, ElementType type, const Modifiers& m) {
  const bool is_signed = m.signedness == Signedness::Signed;
  switch (type) {
    case ElementType::I8:
      return is_signed ? find_division_of<int8_t>(op, m.rounding) : find_division_of<uint8_t>(op, m.rounding);
    case ElementType::I16:
      return is_signed ? find_division_of<int16_t>(op, m.rounding) : find_division_of<uint16_t>(op, m.rounding);
    case ElementType::I32:
      return is_signed ? find_division_of<int32_t>(op, m.rounding) : find_division_of<uint32_t>(op, m.rounding);
    case ElementType::I64:
      return is_signed ? find_division_of<int64_t>(op, m.rounding) : find_division_of<uint64_t>(op, m.rounding);
    default:
      return nullptr;
  }
}

// --- conversions --------------------------------------------------------------------------------

template <ElementType From, ElementType To, Rounding Mode>
void float_to_float(void* out, const void* const* in, size_t n) {
  constexpr bool kKeepsNanSign = From == ElementType::F64 && (To == ElementType::F16 || To == ElementType::BF16 ||
                                                              To == ElementType::F32 || To == ElementType::TF32);
  for (size_t i = 0; i < n; ++i) {
    const double x = load<From>(in[0], i);
    uint64_t bits = encode(To, x, Mode);
    if (kKeepsNanSign && x != x && std::signbit(x)) bits |= 1ull << (sizeof(Storage<To>) * 8 - 1);
    store<To>(out, i, bits);
  }
}

template <ElementType From, ElementType To, bool Signed, bool Saturate>
void float_to_int(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double x = std::trunc(load<From>(in[0], i));
    uint64_t bits = 0;
    if constexpr (To == ElementType::I1) {
      const double limit = Signed ? -1.0 : 1.0;
      bits = Saturate ? (Signed ? x <= limit : x >= limit) : x != 0;  // x != 0 holds for NaN
    } else {
      constexpr int kBits = sizeof(Storage<To>) * 8;
      // Without saturation i8 keeps the low bits of a 32-bit result.
      constexpr int kRange = kBits == 8 && !Saturate ? 32 : kBits;
      const double low = Signed ? -std::ldexp(1.0, kRange - 1) : 0.0,
                   high = std::ldexp(1.0, Signed ? kRange - 1 : kRange);
      constexpr uint64_t kLargest = Signed ? (1ull << (kRange - 1)) - 1 : ~0ull >> (64 - kRange);
      if (x >= high)
        bits = kLargest;
      else if (x >= low)
        bits = x < 0 ? static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
      else if (x < low)
        bits = Signed ? 1ull << (kRange - 1) : 0;
    }
    store<To>(out, i, bits);
  }
}

template <ElementType From, ElementType To, bool Signed>
void int_to_float(void* out, const void* const* in, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    double x = 0;
    if constexpr (From == ElementType::I64) {
      const uint64_t u = static_cast<const uint64_t*>(in[0])[i];
      // The f64 result itself is made by the fast kernels: odd rounding is for narrower targets.
      x = Signed ? odd_from_i64(static_cast<int64_t>(u)) : odd_from_u64(u);
    } else if constexpr (Signed) {
      x = signed_int<From>(in[0], i);
    } else {
      x = static_cast<const Storage<From>*>(in[0])[i];
    }
    store<To>(out, i, encode(To, x));
  }
}

constexpr ElementType kFloats[] = {
    ElementType::F16,      ElementType::BF16,   ElementType::F32,       ElementType::TF32,     ElementType::F64,
    ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F8E8M0FNU, ElementType::F4E2M1FN, ElementType::NV8E5M3FNU};
constexpr size_t kFloatCount = std::size(kFloats);
constexpr ElementType kInts[] = {ElementType::I1, ElementType::I8, ElementType::I16, ElementType::I32,
                                 ElementType::I64};
constexpr size_t kIntCount = std::size(kInts);

template <size_t N>
constexpr size_t position(const ElementType (&list)[N], ElementType t) {
  for (size_t i = 0; i < N; ++i) {
    if (list[i] == t) return i;
  }
  return N;
}

template <Rounding Mode, size_t... I>
ElementwiseFn ftof_entry(size_t i, std::index_sequence<I...>) {
  static constexpr ElementwiseFn kTable[] = {
      float_to_float<kFloats[I / kFloatCount], kFloats[I % kFloatCount], Mode>...};
  return kTable[i];
}
template <Rounding Mode>
ElementwiseFn ftof_entry(size_t i) {
  return ftof_entry<Mode>(i, std::make_index_sequence<kFloatCount * kFloatCount>());
}

ElementwiseFn find_ftof(ElementType in, ElementType out, Rounding mode) {
  const size_t i = position(kFloats, in) * kFloatCount + position(kFloats, out);
  if (i >= kFloatCount * kFloatCount) return nullptr;
  switch (mode) {
    case Rounding::NearestEven:
      return ftof_entry<Rounding::NearestEven>(i);
    case Rounding::Zero:
      return ftof_entry<Rounding::Zero>(i);
    case Rounding::NegativeInf:
      return ftof_entry<Rounding::NegativeInf>(i);
    case Rounding::PositiveInf:
      return ftof_entry<Rounding::PositiveInf>(i);
    case Rounding::NearestAway:
      return ftof_entry<Rounding::NearestAway>(i);
    default:
      return nullptr;
  }
}

template <bool Signed, bool Saturate, size_t... I>
ElementwiseFn ftoi_entry(size_t i, std::index_sequence<I...>) {
  static constexpr ElementwiseFn kTable[] = {
      float_to_int<kFloats[I / kIntCount], kInts[I % kIntCount], Signed, Saturate>...};
  return kTable[i];
}
ElementwiseFn find_ftoi(ElementType in, ElementType out, const Modifiers& m) {
  constexpr auto kAll = std::make_index_sequence<kFloatCount * kIntCount>();
  const size_t i = position(kFloats, in) * kIntCount + position(kInts, out);
  if (i >= kFloatCount * kIntCount) return nullptr;
  if (m.signedness == Signedness::Signed)
    return m.saturating ? ftoi_entry<true, true>(i, kAll) : ftoi_entry<true, false>(i, kAll);
  return m.saturating ? ftoi_entry<false, true>(i, kAll) : ftoi_entry<false, false>(i, kAll);
}

template <bool Signed, size_t... I>
ElementwiseFn itof_entry(size_t i, std::index_sequence<I...>) {
  static constexpr ElementwiseFn kTable[] = {int_to_float<kInts[I / kFloatCount], kFloats[I % kFloatCount], Signed>...};
  return kTable[i];
}
ElementwiseFn find_itof(ElementType in, ElementType out, const Modifiers& m) {
  constexpr auto kAll = std::make_index_sequence<kIntCount * kFloatCount>();
  const size_t i = position(kInts, in) * kFloatCount + position(kFloats, out);
  if (i >= kIntCount * kFloatCount) return nullptr;
  return m.signedness == Signedness::Signed ? itof_entry<true>(i, kAll) : itof_entry<false>(i, kAll);
}

}  // namespace

ElementwiseFn find_scalar(Opcode op, ElementType in, ElementType out, const Modifiers& m) {
  switch (op) {
    case Opcode::AddF:
      return find_directed<Opcode::AddF>(in, m);
    case Opcode::SubF:
      return find_directed<Opcode::SubF>(in, m);
    case Opcode::MulF:
      return find_directed<Opcode::MulF>(in, m);
    case Opcode::DivF:
      return find_directed<Opcode::DivF>(in, m);
    case Opcode::Fma:
      return find_directed<Opcode::Fma>(in, m);
    case Opcode::Sqrt:
      return find_directed<Opcode::Sqrt>(in, m);
    case Opcode::RemF:
      return find_remainder(in);
    case Opcode::DivI:
    case Opcode::RemI:
      return find_division(op, in, m);
    case Opcode::FToF:
      return find_ftof(in, out, m.rounding);
    case Opcode::FToI:
      return find_ftoi(in, out, m);
    case Opcode::IToF:
      return find_itof(in, out, m);
    case Opcode::FPowI:
      switch (in) {
        case ElementType::I1:
          return find_integer_power<ElementType::I1>(out);
        case ElementType::I8:
          return find_integer_power<ElementType::I8>(out);
        case ElementType::I16:
          return find_integer_power<ElementType::I16>(out);
        case ElementType::I32:
          return find_integer_power<ElementType::I32>(out);
        default:
          return nullptr;
      }
    default:
      return in == ElementType::F64 ? find_math_f64(op) : nullptr;
  }
}

}  // namespace tile
