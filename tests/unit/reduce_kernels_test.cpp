// Fast reductions and scans against the documented left-to-right chain, bit for bit, in every build that this machine
// can run.
#include "vm/interp/reduce_kernels.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/isa/isa.h"

using namespace tile;

namespace {

using Bytes = std::vector<unsigned char>;

uint64_t bits_at(const Bytes& v, ElementType t, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v[i * info(t).storage], info(t).storage);
  return bits;
}

void put_bits(Bytes& v, ElementType t, size_t i, uint64_t bits) {
  std::memcpy(&v[i * info(t).storage], &bits, info(t).storage);
}

uint64_t float_op(ReduceKind kind, ElementType t, bool propagate, uint64_t a_bits, uint64_t b_bits) {
  const double a = decode(t, a_bits), b = decode(t, b_bits);
  if (kind == ReduceKind::MaxF || kind == ReduceKind::MinF) {
    const bool max = kind == ReduceKind::MaxF;
    if (std::isnan(a) || std::isnan(b)) {
      if (propagate || (std::isnan(a) && std::isnan(b))) return canonical_nan(t);
      return std::isnan(a) ? b_bits : a_bits;
    }
    if (a == b) return (std::signbit(a) == max) ? b_bits : a_bits;
    return (a > b) == max ? a_bits : b_bits;
  }
  if (t == ElementType::F64) {
    const double r = kind == ReduceKind::AddF ? a + b : a * b;
    return std::isnan(r) ? canonical_nan(t) : std::bit_cast<uint64_t>(r);
  }
  // The product of two numbers of at most 24 digits is exact in f64; the sum is rounded to odd, so encode() rounds
  // once.
  return encode(t, kind == ReduceKind::AddF ? add_to_odd(a, b) : a * b, Rounding::NearestEven);
}

uint64_t int_op(ReduceKind kind, ElementType t, bool is_signed, uint64_t a, uint64_t b) {
  const int shift = 64 - info(t).bits;
  const uint64_t mask = ~uint64_t{0} >> shift;
  const auto value = [&](uint64_t x) { return static_cast<int64_t>(x << shift) >> shift; };
  const bool less = is_signed ? value(a) < value(b) : (a & mask) < (b & mask);
  switch (kind) {
    case ReduceKind::AddI:
      return (a + b) & mask;
    case ReduceKind::MulI:
      return (a * b) & mask;
    case ReduceKind::MaxI:
      return less ? b : a;
    case ReduceKind::MinI:
      return less ? a : b;
    case ReduceKind::AndI:
      return a & b;
    case ReduceKind::OrI:
      return a | b;
    default:
      return a ^ b;
  }
}

struct Shape {
  size_t outer, len, inner;
};

enum class Data { Moderate, AnyBits, Special, AllNan };

Bytes random_tile(ElementType t, size_t count, Data data, std::mt19937_64& rng) {
  constexpr std::array<double, 8> kSpecial = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0, 0x1p-140};
  Bytes v(count * info(t).storage);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t any = rng();
    uint64_t bits = any & (~uint64_t{0} >> (64 - info(t).bits));
    if (info(t).is_float && data == Data::Moderate) {
      bits = encode(t, 1.0 + static_cast<double>(static_cast<int64_t>(any)) * 0x1p-63, Rounding::NearestEven);
    }
    if (info(t).is_float && data == Data::Special) bits = encode(t, kSpecial[any % 8], Rounding::NearestEven);
    // A NaN with sign and an odd payload.
    if (info(t).is_float && data == Data::AllNan) bits = ~uint64_t{0} >> (64 - info(t).bits) & ~uint64_t{2};
    put_bits(v, t, i, bits);
  }
  return v;
}

struct IsaScope {
  explicit IsaScope(Isa isa) { force_isa(isa); }
  ~IsaScope() { force_isa(best_isa()); }
};

void check(ReduceKind kind, ElementType t, const Modifiers& m, const Shape& s, Data data, std::mt19937_64& rng) {
  const Bytes in = random_tile(t, s.outer * s.len * s.inner, data, rng);
  Bytes reduced(s.outer * s.inner * info(t).storage), forward(in.size()), backward(in.size());
  const auto op = [&](uint64_t a, uint64_t b) {
    return info(t).is_float ? float_op(kind, t, m.propagate_nan, a, b)
                            : int_op(kind, t, m.signedness == Signedness::Signed, a, b);
  };
  for (size_t o = 0; o < s.outer; ++o) {
    for (size_t i = 0; i < s.inner; ++i) {
      const auto at = [&](size_t j) { return (o * s.len + j) * s.inner + i; };
      uint64_t r = bits_at(in, t, at(0)), back = bits_at(in, t, at(s.len - 1));
      put_bits(forward, t, at(0), r);
      put_bits(backward, t, at(s.len - 1), back);
      for (size_t j = 1; j < s.len; ++j) {
        r = op(r, bits_at(in, t, at(j)));
        back = op(back, bits_at(in, t, at(s.len - 1 - j)));
        put_bits(forward, t, at(j), r);
        put_bits(backward, t, at(s.len - 1 - j), back);
      }
      put_bits(reduced, t, o * s.inner + i, r);
    }
  }
  for (int i = 0; i < kIsas; ++i) {
    const auto isa = static_cast<Isa>(i);
    if (isa > best_isa()) break;
    const IsaScope scope(isa);
    INFO("isa ", i, " kind ", static_cast<int>(kind), " ", std::string(info(t).name), " ", s.outer, "x", s.len, "x",
         s.inner, " data ", static_cast<int>(data), " propagate ", m.propagate_nan, " signed ",
         static_cast<int>(m.signedness));
    Bytes out(reduced.size(), 0xEE);
    CHECK(reduce_fast(kind, t, m, out.data(), in.data(), s.outer, s.len, s.inner));
    CHECK(out == reduced);
    out.assign(in.size(), 0xEE);
    CHECK(scan_fast(kind, t, m, out.data(), in.data(), s.outer, s.len, s.inner, false));
    CHECK(out == forward);
    out.assign(in.size(), 0xEE);
    CHECK(scan_fast(kind, t, m, out.data(), in.data(), s.outer, s.len, s.inner, true));
    CHECK(out == backward);
  }
}

constexpr Shape kShapes[] = {{1, 1, 1},   {1, 2, 1},   {3, 1, 5},   {1, 300, 1}, {5, 33, 1}, {70, 64, 1}, {64, 4, 1},
                             {2, 256, 1}, {9, 17, 2},  {40, 8, 4},  {3, 70, 3},  {2, 5, 16}, {1, 9, 64},  {2, 3, 100},
                             {1, 40, 37}, {130, 2, 1}, {1, 2, 256}, {32, 64, 1}, {48, 16, 1}, {17, 35, 7}, {4, 16, 32}};
constexpr ElementType kFloats[] = {ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64};
constexpr ElementType kInts[] = {ElementType::I1, ElementType::I8, ElementType::I16, ElementType::I32,
                                 ElementType::I64};

}  // namespace

TEST_CASE("fast float reductions and scans give the bits of the left-to-right chain") {
  std::mt19937_64 rng(1);
  for (const ElementType t : kFloats) {
    for (const Shape& s : kShapes) {
      for (const Data data : {Data::Moderate, Data::AnyBits, Data::Special, Data::AllNan}) {
        check(ReduceKind::AddF, t, {}, s, data, rng);
        check(ReduceKind::MulF, t, {}, s, data, rng);
        for (const bool propagate : {false, true}) {
          Modifiers m;
          m.propagate_nan = propagate;
          check(ReduceKind::MaxF, t, m, s, data, rng);
          check(ReduceKind::MinF, t, m, s, data, rng);
        }
      }
    }
  }
}

TEST_CASE("fast integer reductions and scans give the bits of the left-to-right chain") {
  std::mt19937_64 rng(2);
  for (const ElementType t : kInts) {
    for (const Shape& s : kShapes) {
      for (const Signedness signedness : {Signedness::Unsigned, Signedness::Signed}) {
        Modifiers m;
        m.signedness = signedness;
        for (int kind = static_cast<int>(ReduceKind::AddI); kind < kReduceKinds; ++kind) {
          check(static_cast<ReduceKind>(kind), t, m, s, Data::AnyBits, rng);
        }
      }
    }
  }
}

TEST_CASE("f16 and bf16 sums and products of two are rounded once, for many pairs of patterns") {
  std::mt19937_64 rng(3);
  for (const ElementType t : {ElementType::F16, ElementType::BF16}) {
    for (const ReduceKind kind : {ReduceKind::AddF, ReduceKind::MulF})
      check(kind, t, {}, {1, 2, 1 << 15}, Data::AnyBits, rng);
  }
}

TEST_CASE("reductions without a fast kernel are refused and leave the output alone") {
  const std::array<unsigned char, 64> in{};
  std::array<unsigned char, 64> out{};
  out.fill(0xEE);
  const auto refused = [&](ReduceKind kind, ElementType t, const Modifiers& m) {
    return !reduce_fast(kind, t, m, out.data(), in.data(), 1, 8, 1) &&
           !scan_fast(kind, t, m, out.data(), in.data(), 1, 8, 1, false);
  };
  Modifiers ftz, upward;
  ftz.flush_to_zero = true;
  upward.rounding = Rounding::PositiveInf;
  for (const ReduceKind kind : {ReduceKind::AddF, ReduceKind::MulF, ReduceKind::MaxF, ReduceKind::MinF}) {
    CHECK(refused(kind, ElementType::F32, ftz));
    CHECK(refused(kind, ElementType::TF32, {}));
    CHECK(refused(kind, ElementType::F8E4M3FN, {}));
    CHECK(refused(kind, ElementType::I32, {}));
  }
  CHECK(refused(ReduceKind::AddF, ElementType::F32, upward));
  CHECK(refused(ReduceKind::MulF, ElementType::F16, upward));
  for (int kind = static_cast<int>(ReduceKind::AddI); kind < kReduceKinds; ++kind) {
    for (const ElementType t : {ElementType::F32, ElementType::I4, ElementType::Ptr}) {
      CHECK(refused(static_cast<ReduceKind>(kind), t, {}));
    }
  }
  for (const unsigned char byte : out) CHECK(byte == 0xEE);
}
