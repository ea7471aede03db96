// Elementwise kernels against exact integer arithmetic, and each instruction set's build against the others.
#include "vm/interp/elementwise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "vm/base/numeric.h"

using namespace tile;

namespace {

using Bytes = std::vector<uint8_t>;
using Words = std::vector<uint64_t>;
__extension__ using int128 = __int128;

constexpr double kInf = std::numeric_limits<double>::infinity();

Bytes pack(ElementType t, const Words& words) {
  const size_t size = info(t).storage;
  Bytes out(words.size() * size);
  for (size_t i = 0; i < words.size(); ++i) std::memcpy(&out[i * size], &words[i], size);
  return out;
}
Words unpack(ElementType t, const Bytes& bytes) {
  const size_t size = info(t).storage;
  Words out(bytes.size() / size);
  for (size_t i = 0; i < out.size(); ++i) std::memcpy(&out[i], &bytes[i * size], size);
  return out;
}

struct Restore {
  Isa isa = current_isa();
  ~Restore() { force_isa(isa); }
};
const Isa kBuilds[] = {Isa::Plain, Isa::Avx2, Isa::Avx512};

struct Operand {
  ElementType type;
  Words values;
};
/// Runs a kernel; `last` is the element type that find_elementwise() asks for.
Words run(Opcode op, ElementType out, const Modifiers& m, const std::vector<Operand>& operands) {
  const ElementwiseFn f = find_elementwise(op, operands.back().type, out, m);
  const bool found = f != nullptr;
  REQUIRE(found);
  std::vector<Bytes> bytes;
  std::vector<const void*> in;
  for (const Operand& o : operands) bytes.push_back(pack(o.type, o.values));
  for (const Bytes& b : bytes) in.push_back(b.data());
  const size_t n = operands[0].values.size();
  Bytes result(n * info(out).storage);
  f(result.data(), in.data(), n);
  return unpack(out, result);
}
Words run(Opcode op, ElementType t, const std::vector<Words>& operands, const Modifiers& m = {}) {
  std::vector<Operand> typed;
  for (const Words& w : operands) typed.push_back({t, w});
  return run(op, t, m, typed);
}
uint64_t one(Opcode op, ElementType t, std::initializer_list<uint64_t> operands, const Modifiers& m = {}) {
  std::vector<Words> words;
  for (const uint64_t x : operands) words.push_back({x});
  return run(op, t, words, m)[0];
}
uint64_t bits(ElementType t, double x) {
  return encode(t, x);
}
double apply(Opcode op, ElementType t, std::initializer_list<double> operands, const Modifiers& m = {}) {
  std::vector<Words> words;
  for (const double x : operands) words.push_back({bits(t, x)});
  return decode(t, run(op, t, words, m)[0]);
}

Modifiers rounded(Rounding r, bool ftz = false) {
  Modifiers m;
  m.rounding = r;
  m.flush_to_zero = ftz;
  return m;
}
const Rounding kIeee[] = {Rounding::NearestEven, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf};

bool is_nan(ElementType t, uint64_t w) {
  return std::isnan(decode(t, w));
}

/// Patterns worth trying of a type: zeros, subnormals, powers, neighbours of limits, NaNs, then random ones.
Words interesting(ElementType t, size_t count, uint32_t seed) {
  Words out;
  const unsigned width = info(t).storage * 8;
  const uint64_t mask = t == ElementType::I1                                 ? 1
                        : t == ElementType::I4 || t == ElementType::F4E2M1FN ? 15
                                                                             : ~0ull >> (64 - width);
  for (const uint64_t x :
       {0ull, 1ull, 2ull, 3ull, 5ull, 7ull, ~0ull, ~1ull, 1ull << (width - 1), (1ull << (width - 1)) - 1,
        (1ull << (width - 1)) + 1, width + 0ull, width - 1ull, width + 1ull}) {
    out.push_back(x & mask);
  }
  if (kAnyFloat.has(t)) {
    for (const double x :
         {0.0,      1.0,      1.5,       2.0,    0.5,     3.0,     0x1p-14,      0x1p-24,      0x1p-126,
          0x1p-133, 0x1p-149, 0x1p-1022, 5e-324, 65504.0, 65520.0, 448.0,        464.0,        57344.0,
          3e38,     1e300,    127.5,     128.0,  255.9,   32767.9, 2147483648.0, 4294967295.5, 9.3e18,
          1.9e19,   0.9,      1e5,       1e10,   88.7,    104.0,   710.0,        kInf}) {
      out.push_back(bits(t, x));
      out.push_back(bits(t, -x));
    }
    out.push_back(canonical_nan(t));
    if (width >= 16) out.push_back((bits(t, kInf) + 1) & mask);  // signalling
  }
  std::mt19937_64 random(seed);
  while (out.size() < count) {
    uint64_t x = random() & mask;
    if (kBaseFloat.has(t) && out.size() % 2 == 0)
      x = bits(t, std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 40) - 70));
    out.push_back(x);
  }
  out.resize(count);
  return out;
}

// --- an exact judge for f16: all numbers are multiples of 2^-24, held as integers ------------------

int128 f16_units(uint64_t h) {  // value * 2^24, for finite h
  const auto a = static_cast<int64_t>(h & 0x7FFF);
  const int64_t field = a >> 10, m = a & 1023;
  const int128 v = field == 0 ? m : static_cast<int128>(m + 1024) << (field - 1);
  return (h & 0x8000) != 0 ? -v : v;
}
/// Compares an exact magnitude with a number of `units` 2^-25 (so that middles are integers too): -1, 0 or 1.
using Compare = std::function<int(int128 units)>;

uint64_t round_f16(bool negative, Rounding mode, const Compare& compare) {
  const uint64_t sign = negative ? 0x8000 : 0;
  const bool up = (mode == Rounding::PositiveInf && !negative) || (mode == Rounding::NegativeInf && negative);
  uint64_t low = 0, high = 0x7C00;  // largest h whose value does not exceed the magnitude
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    (compare(2 * f16_units(middle)) >= 0 ? low : high) = middle;
  }
  if (compare(2 * f16_units(low)) == 0) return sign | low;
  const int128 next = low == 0x7BFF ? static_cast<int128>(1) << 40 : f16_units(low + 1);  // 65536 after the largest
  if (mode != Rounding::NearestEven) return sign | (up ? low + 1 : low);
  const int to_middle = compare(f16_units(low) + next);
  return sign | (to_middle > 0 || (to_middle == 0 && low % 2 == 1) ? low + 1 : low);
}
int sign_of(int128 x) {
  return x < 0 ? -1 : x > 0;
}
int128 magnitude(int128 x) {
  return x < 0 ? -x : x;
}

/// a * b + c in units of 2^-48, rounded; the sign of an exact zero is the caller's.
uint64_t judge_fma(uint64_t a, uint64_t b, uint64_t c, Rounding mode, bool negative_zero) {
  const int128 x = f16_units(a) * f16_units(b) + (f16_units(c) << 24);
  if (x == 0) return negative_zero ? 0x8000 : 0;
  return round_f16(x < 0, mode, [&](int128 u) { return sign_of(magnitude(x) - (u << 23)); });
}
bool zero_sign(bool first, bool second, Rounding mode) {
  return first == second ? first : mode == Rounding::NegativeInf;
}

Words finite_f16(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Words out;
  while (out.size() < count) {
    uint64_t h = random() & 0xFFFF;
    if (out.size() % 4 == 1) h = (h & 0x83FF) | (14 + random() % 3) << 10;  // close exponents: cancellation and ties
    if (out.size() % 16 == 3) h &= 0x801F;                                  // subnormal
    if ((h & 0x7C00) != 0x7C00) out.push_back(h);
  }
  return out;
}

}  // namespace

TEST_CASE("every build of every kernel gives the same bits, in place too") {
  const Restore restore;
  const ElementType types[] = {ElementType::I1,         ElementType::I4,        ElementType::I8,
                               ElementType::I16,        ElementType::I32,       ElementType::I64,
                               ElementType::F16,        ElementType::BF16,      ElementType::F32,
                               ElementType::TF32,       ElementType::F64,       ElementType::F8E4M3FN,
                               ElementType::F8E5M2,     ElementType::F8E8M0FNU, ElementType::F4E2M1FN,
                               ElementType::NV8E5M3FNU, ElementType::Ptr};
  std::vector<Modifiers> variants;
  for (int r = 0; r < 8; ++r) {
    for (int k = 0; k < 8; ++k) {
      Modifiers m;
      m.rounding = static_cast<Rounding>(r);
      m.signedness = static_cast<Signedness>(k & 1);
      m.flush_to_zero = m.saturating = (k & 2) != 0;
      m.propagate_nan = (k & 4) != 0;
      m.ordering = static_cast<Ordering>(k >> 1 & 1);
      m.predicate = static_cast<Predicate>((r + k) % 6);
      variants.push_back(m);
    }
  }
  constexpr size_t kCount = 1103;  // more than two blocks, and a rest
  int kernels = 0, wrong = 0;
  std::vector<ElementwiseFn> seen;
  for (int code = 0; code < 0x7A; ++code) {
    const auto op = static_cast<Opcode>(code);
    const bool is_select = op == Opcode::Select, is_powi = op == Opcode::FPowI;
    for (const ElementType in : types) {
      for (const ElementType out : types) {
        for (const Modifiers& m : variants) {
          force_isa(Isa::Plain);
          const ElementwiseFn reference = find_elementwise(op, in, out, m);
          if (reference == nullptr || std::find(seen.begin(), seen.end(), reference) != seen.end()) continue;
          seen.push_back(reference);
          ++kernels;
          const Bytes a = pack(is_select ? ElementType::I1
                               : is_powi ? out
                                         : in,
                               interesting(is_select ? ElementType::I1
                                           : is_powi ? out
                                                     : in,
                                           kCount, 1));
          const ElementType second = is_select ? out : in;
          Words other = interesting(second, kCount, 2);
          std::rotate(other.begin(), other.begin() + 37, other.end());
          const Bytes b = pack(second, other), c = pack(second, interesting(second, kCount, 3));
          const void* operands[] = {a.data(), b.data(), c.data()};
          Bytes expected(kCount * info(out).storage);
          reference(expected.data(), operands, kCount);
          for (const Isa isa : kBuilds) {
            if (!force_isa(isa)) continue;
            const ElementwiseFn f = find_elementwise(op, in, out, m);
            Bytes got(expected.size());
            f(got.data(), operands, kCount);
            bool same = got == expected;
            if (a.size() == got.size()) {
              got = a;
              const void* in_place[] = {got.data(), b.data(), c.data()};
              f(got.data(), in_place, kCount);
              same = same && got == expected;
            }
            if (!same) {
              ++wrong;
              MESSAGE("opcode " << code << " " << info(in).name << " -> " << info(out).name << " differs on "
                                << isa_name());
            }
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(kernels > 600);
}

TEST_CASE("f16 add, sub, mul and fma are rounded once in every mode") {
  const Words a = finite_f16(60000, 1), b = finite_f16(60000, 2), c = finite_f16(60000, 3);
  constexpr uint64_t kOne = 0x3C00;
  for (const Rounding mode : kIeee) {
    const Modifiers m = rounded(mode);
    const Words sum = run(Opcode::AddF, ElementType::F16, {a, b}, m),
                difference = run(Opcode::SubF, ElementType::F16, {a, b}, m);
    const Words product = run(Opcode::MulF, ElementType::F16, {a, b}, m),
                fused = run(Opcode::Fma, ElementType::F16, {a, b, c}, m);
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool sa = a[i] >> 15, sb = b[i] >> 15, sc = c[i] >> 15;
      wrong += sum[i] != judge_fma(a[i], kOne, b[i], mode, zero_sign(sa, sb, mode));
      wrong += difference[i] != judge_fma(a[i], kOne, b[i] ^ 0x8000, mode, zero_sign(sa, !sb, mode));
      wrong += product[i] != judge_fma(a[i], b[i], 0, mode, sa != sb);
      wrong += fused[i] != judge_fma(a[i], b[i], c[i], mode, zero_sign(sa != sb, sc, mode));
    }
    CAPTURE(static_cast<int>(mode));
    CHECK(wrong == 0);
  }
}

TEST_CASE("f16 division and square root are rounded once in every mode") {
  const Words a = finite_f16(40000, 4), b = finite_f16(40000, 5);
  for (const Rounding mode : kIeee) {
    const Words quotient = run(Opcode::DivF, ElementType::F16, {a, b}, rounded(mode)),
                root = run(Opcode::Sqrt, ElementType::F16, {a}, rounded(mode));
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const int128 x = f16_units(a[i]), y = f16_units(b[i]);
      const bool negative = (a[i] ^ b[i]) >> 15 != 0;
      if (y != 0) {  // |x / y| against u * 2^-25
        const uint64_t expected =
            round_f16(negative, mode, [&](int128 u) { return sign_of((magnitude(x) << 25) - u * magnitude(y)); });
        wrong += quotient[i] != expected;
      }
      if (x >= 0) {  // x * 2^-24 against u^2 * 2^-50
        const uint64_t expected = round_f16(false, mode, [&](int128 u) { return sign_of((x << 26) - u * u); });
        wrong += root[i] != (a[i] == 0x8000 ? 0x8000 : expected);
      }
    }
    CAPTURE(static_cast<int>(mode));
    CHECK(wrong == 0);
  }
}

TEST_CASE("bf16 fma keeps a tiny addend that decides a tie") {
  const Restore restore;
  const ElementType t = ElementType::BF16;
  for (const Isa isa : kBuilds) {
    if (!force_isa(isa)) continue;
    // 1.0078125 * 1.5 = 1.51171875 is the middle of two bf16 numbers.
    CHECK(one(Opcode::Fma, t, {0x3F81, 0x3FC0, 0x0000}) == 0x3FC2);
    CHECK(one(Opcode::Fma, t, {0x3F81, 0x3FC0, bits(t, 0x1p-120)}) == 0x3FC2);
    CHECK(one(Opcode::Fma, t, {0x3F81, 0x3FC0, bits(t, -0x1p-120)}) == 0x3FC1);
    // A product beyond f32's range that the addend brings back, and one far below it.
    CHECK(decode(t, one(Opcode::Fma, t, {bits(t, 0x1p127), bits(t, 4), bits(t, -0x1.fep127)})) == kInf);
    CHECK(decode(t, one(Opcode::Fma, t, {bits(t, 0x1p127), bits(t, 2), bits(t, -0x1p127)})) == 0x1p127);
    CHECK(one(Opcode::Fma, t, {bits(t, 0x1p-100), bits(t, 0x1p-100), 0x0001}) == 0x0001);
    // Half of the smallest bf16 number is a tie; the tiny addend lies far below f32's smallest.
    CHECK(one(Opcode::Fma, t, {bits(t, 0x1p-67), bits(t, 0x1p-67), 0}) == 0);
    CHECK(one(Opcode::Fma, t, {bits(t, 0x1.02p-67), bits(t, 0x1p-67), 0}) == 1);
    CHECK(one(Opcode::Fma, t, {bits(t, 0x1.02p-67), bits(t, 0x1p-67), 0x8001}) == 0x8000);
  }
}

TEST_CASE("bf16 arithmetic agrees with f64 sums rounded once, where those are exact") {
  std::mt19937 random(6);
  Words a, b, c;
  for (int i = 0; i < 60000; ++i) {
    const auto number = [&] { return (random() & 0x807F) | (118 + random() % 18) << 7; };
    a.push_back(number());
    b.push_back(number());
    c.push_back(number());
  }
  const ElementType t = ElementType::BF16;
  for (const Rounding mode : kIeee) {
    const Words sum = run(Opcode::AddF, t, {a, b}, rounded(mode)),
                product = run(Opcode::MulF, t, {a, b}, rounded(mode));
    const Words fused = run(Opcode::Fma, t, {a, b, c}, rounded(mode));
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = decode(t, a[i]), y = decode(t, b[i]),
                   z = decode(t, c[i]);  // 18 binades, 16-bit products: 53 bits hold all
      if (x + y != 0) wrong += sum[i] != encode(t, x + y, mode);
      wrong += product[i] != encode(t, x * y, mode);
      if (x * y + z != 0) wrong += fused[i] != encode(t, x * y + z, mode);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("f32 directed results bracket the exact ones, and nearest is the processor's") {
  const ElementType t = ElementType::F32;
  const Words a = interesting(t, 20000, 7), b = [&] {
    Words w = interesting(t, 20000, 8);
    std::reverse(w.begin(), w.end());
    return w;
  }();
  for (const Opcode op : {Opcode::AddF, Opcode::SubF, Opcode::MulF, Opcode::DivF}) {
    const Words near = run(op, t, {a, b}), down = run(op, t, {a, b}, rounded(Rounding::NegativeInf));
    const Words up = run(op, t, {a, b}, rounded(Rounding::PositiveInf)),
                cut = run(op, t, {a, b}, rounded(Rounding::Zero));
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const float x = float_of(static_cast<uint32_t>(a[i])), y = float_of(static_cast<uint32_t>(b[i]));
      const float r = op == Opcode::AddF ? x + y : op == Opcode::SubF ? x - y : op == Opcode::MulF ? x * y : x / y;
      if (std::isnan(r)) {
        wrong += near[i] != 0x7FFFFFFF || down[i] != near[i] || up[i] != near[i] || cut[i] != near[i];
        continue;
      }
      const float lo = float_of(static_cast<uint32_t>(down[i])), hi = float_of(static_cast<uint32_t>(up[i]));
      wrong += near[i] != float_bits(r) || !(lo <= r && r <= hi);
      wrong += lo != hi && std::nextafterf(lo, std::numeric_limits<float>::infinity()) != hi;
      if (r != 0) wrong += cut[i] != (std::signbit(r) ? up[i] : down[i]);
    }
    CAPTURE(static_cast<int>(op));
    CHECK(wrong == 0);
  }
}

TEST_CASE("f64 directed rounding moves by one unit where the result is inexact") {
  const ElementType t = ElementType::F64;
  CHECK(apply(Opcode::AddF, t, {1, 0x1p-80}, rounded(Rounding::PositiveInf)) == 1 + 0x1p-52);
  CHECK(apply(Opcode::AddF, t, {1, 0x1p-80}, rounded(Rounding::Zero)) == 1);
  CHECK(apply(Opcode::SubF, t, {1, 0x1p-80}, rounded(Rounding::Zero)) == 1 - 0x1p-53);
  CHECK(apply(Opcode::DivF, t, {1, 3}, rounded(Rounding::PositiveInf)) >
        apply(Opcode::DivF, t, {1, 3}, rounded(Rounding::NegativeInf)));
  CHECK(apply(Opcode::Sqrt, t, {2}, rounded(Rounding::PositiveInf)) >
        apply(Opcode::Sqrt, t, {2}, rounded(Rounding::Zero)));
  CHECK(apply(Opcode::Fma, t, {1 + 0x1p-52, 1 + 0x1p-52, -1}, rounded(Rounding::NegativeInf)) == 0x1p-51);
  CHECK(apply(Opcode::MulF, t, {1e308, 10}, rounded(Rounding::Zero)) == std::numeric_limits<double>::max());
  CHECK(std::signbit(apply(Opcode::SubF, t, {5, 5}, rounded(Rounding::NegativeInf))));
  CHECK(1.0 / 3 == apply(Opcode::DivF, t, {1, 3}));  // the mode does not leak
}

TEST_CASE("flush_to_zero keeps signs, of operands and results") {
  const ElementType t = ElementType::F32;
  const Modifiers ftz = rounded(Rounding::NearestEven, true), down = rounded(Rounding::NegativeInf, true);
  CHECK(one(Opcode::AddF, t, {0x80000001, 0x80000001}, ftz) == 0x80000000);
  CHECK(one(Opcode::MulF, t, {bits(t, 0x1p-100), bits(t, -0x1p-100)}, ftz) == 0x80000000);
  CHECK(one(Opcode::MulF, t, {0x007FFFFF, bits(t, 0x1p100)}, ftz) == 0);
  CHECK(one(Opcode::MulF, t, {bits(t, 0x1p-100), bits(t, -0x1p-40)}, down) == 0x80000000);
  CHECK(one(Opcode::MaxF, t, {0x00000001, 0x80000000}, ftz) == 0);
  CHECK(one(Opcode::Sqrt, t, {0x00000001}, ftz) == 0);
  CHECK(one(Opcode::Rsqrt, t, {0x80000001}, ftz) == 0xFF800000);
  CHECK(one(Opcode::Exp2, t, {bits(t, -130)}, ftz) == 0);
  CHECK(one(Opcode::Exp2, t, {bits(t, -130)}) == 1u << 19);
}

TEST_CASE("maxf and minf order signed zeros and treat NaN as asked") {
  for (const ElementType t : {ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64}) {
    const uint64_t plus = bits(t, 0.0), minus = bits(t, -0.0), five = bits(t, 5), nan = canonical_nan(t),
                   signalling = bits(t, kInf) + 1;
    Modifiers propagate;
    propagate.propagate_nan = true;
    CHECK(one(Opcode::MaxF, t, {plus, minus}) == plus);
    CHECK(one(Opcode::MaxF, t, {minus, plus}) == plus);
    CHECK(one(Opcode::MinF, t, {plus, minus}) == minus);
    CHECK(one(Opcode::MinF, t, {minus, plus}) == minus);
    for (const Opcode op : {Opcode::MaxF, Opcode::MinF}) {
      CHECK(one(op, t, {signalling, five}) == five);
      CHECK(one(op, t, {five, signalling}) == five);
      CHECK(one(op, t, {signalling, signalling}) == nan);
      CHECK(one(op, t, {signalling, five}, propagate) == nan);
      CHECK(one(op, t, {five, signalling}, propagate) == nan);
    }
    CHECK(one(Opcode::MaxF, t, {five, bits(t, -kInf)}) == five);
    CHECK(one(Opcode::NegF, t, {minus}) == plus);
    CHECK(one(Opcode::AbsF, t, {minus}) == plus);
    CHECK(one(Opcode::NegF, t, {signalling}) == (t == ElementType::F64 ? signalling : nan));
  }
}

TEST_CASE("cmpf follows the ordering with NaN") {
  for (const ElementType t : {ElementType::F16, ElementType::F32, ElementType::F64}) {
    const double values[] = {-kInf, -1, -0.0, 0.0, 2, std::nan("")};
    for (int p = 0; p < 6; ++p) {
      for (const Ordering ordering : {Ordering::Ordered, Ordering::Unordered}) {
        Modifiers m;
        m.predicate = static_cast<Predicate>(p);
        m.ordering = ordering;
        for (const double x : values) {
          for (const double y : values) {
            const bool results[] = {x == y, x < y || x > y, x<y, x <= y, x> y, x >= y};
            const bool expected = std::isnan(x) || std::isnan(y) ? ordering == Ordering::Unordered : results[p];
            CHECK(run(Opcode::CmpF, ElementType::I1, m, {{t, {bits(t, x)}}, {t, {bits(t, y)}}})[0] == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("remf, ceil and floor") {
  const ElementType t = ElementType::F32;
  CHECK(apply(Opcode::RemF, t, {5.5, -2}) == 1.5);
  CHECK(std::signbit(apply(Opcode::RemF, t, {-4, 2})));
  CHECK(one(Opcode::RemF, t, {bits(t, 1), 0}) == 0x7FFFFFFF);
  CHECK(apply(Opcode::RemF, t, {3, kInf}) == 3);
  CHECK(apply(Opcode::RemF, t, {3e38, 3e-45}) == 0);
  CHECK(one(Opcode::Ceil, t, {bits(t, -0.5)}) == 0x80000000);
  CHECK(one(Opcode::Floor, t, {0x80000000}) == 0x80000000);
  CHECK(apply(Opcode::Floor, t, {-0.5}) == -1);
  CHECK(apply(Opcode::Ceil, ElementType::BF16, {-1.5}) == -1);
  CHECK(apply(Opcode::Ceil, t, {8388609}) == 8388609);
  CHECK(apply(Opcode::Floor, t, {-kInf}) == -kInf);
}

TEST_CASE("integer operations wrap, on all pairs of i8 and samples of the wider types") {
  for (const ElementType t : {ElementType::I8, ElementType::I16, ElementType::I32, ElementType::I64}) {
    const unsigned n = info(t).bits;
    const uint64_t mask = ~0ull >> (64 - n);
    Words a, b;
    if (t == ElementType::I8) {
      for (uint64_t i = 0; i < 65536; ++i) {
        a.push_back(i & 255);
        b.push_back(i >> 8);
      }
    } else {
      const Words values = interesting(t, 150, n);
      for (const uint64_t x : values) {
        for (const uint64_t y : values) {
          a.push_back(x);
          b.push_back(y);
        }
      }
    }
    const auto as_signed = [&](uint64_t x) {
      return static_cast<int128>(static_cast<int64_t>(x << (64 - n)) >> (64 - n));
    };
    const auto check = [&](Opcode op, Modifiers m, ElementType out,
                           const std::function<int128(uint64_t, uint64_t)>& f) {
      const Words got = run(op, out, m, {{t, a}, {t, b}});
      const uint64_t out_mask = out == ElementType::I1 ? 1 : mask;
      int wrong = 0;
      for (size_t i = 0; i < a.size(); ++i) wrong += got[i] != (static_cast<uint64_t>(f(a[i], b[i])) & out_mask);
      CAPTURE(static_cast<int>(op));
      CAPTURE(n);
      CHECK(wrong == 0);
    };
    const auto both = [&](uint64_t x, uint64_t y, bool s, auto f) {
      return s ? f(as_signed(x), as_signed(y)) : f(static_cast<int128>(x), static_cast<int128>(y));
    };
    check(Opcode::AddI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x) + y; });
    check(Opcode::SubI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x) - y; });
    check(Opcode::MulI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x * y); });
    __extension__ using Wide = unsigned __int128;
    check(Opcode::MulhiI, {}, t,
          [&](uint64_t x, uint64_t y) { return static_cast<int128>(static_cast<Wide>(x) * y >> n); });
    check(Opcode::AndI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x & y); });
    check(Opcode::OrI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x | y); });
    check(Opcode::XOrI, {}, t, [](uint64_t x, uint64_t y) { return static_cast<int128>(x ^ y); });
    check(Opcode::ShLI, {}, t, [&](uint64_t x, uint64_t y) { return static_cast<int128>(y >= n ? 0 : x << y); });
    for (const bool s : {false, true}) {
      Modifiers m;
      m.signedness = s ? Signedness::Signed : Signedness::Unsigned;
      check(Opcode::MaxI, m, t,
            [&](uint64_t x, uint64_t y) { return both(x, y, s, [](int128 p, int128 q) { return std::max(p, q); }); });
      check(Opcode::MinI, m, t,
            [&](uint64_t x, uint64_t y) { return both(x, y, s, [](int128 p, int128 q) { return std::min(p, q); }); });
      check(Opcode::ShRI, m, t, [&](uint64_t x, uint64_t y) {
        const int128 v = s ? as_signed(x) : static_cast<int128>(x);
        return v >> std::min<uint64_t>(y, 64);
      });
      check(Opcode::RemI, m, t, [&](uint64_t x, uint64_t y) {
        return y == 0 ? static_cast<int128>(x) : both(x, y, s, [](int128 p, int128 q) { return p % q; });
      });
      for (const Rounding mode : {Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf}) {
        if (mode == Rounding::NegativeInf && !s) continue;
        m.rounding = mode;
        check(Opcode::DivI, m, t, [&](uint64_t x, uint64_t y) {
          if (y == 0) return static_cast<int128>(-1);
          return both(x, y, s, [&](int128 p, int128 q) {
            int128 r = p / q;
            if (r * q != p && mode == Rounding::NegativeInf && (p < 0) != (q < 0)) --r;
            if (r * q != p && mode == Rounding::PositiveInf && (p < 0) == (q < 0)) ++r;
            return r;
          });
        });
      }
      m.rounding = Rounding::NearestEven;
      for (int p = 0; p < 6; ++p) {
        m.predicate = static_cast<Predicate>(p);
        check(Opcode::CmpI, m, ElementType::I1, [&](uint64_t x, uint64_t y) {
          return both(x, y, s, [&](int128 u, int128 v) {
            const bool results[] = {u == v, u != v, u<v, u <= v, u> v, u >= v};
            return static_cast<int128>(results[p]);
          });
        });
      }
    }
    Words expected;
    for (const uint64_t x : a) expected.push_back((0 - x) & mask);
    CHECK(run(Opcode::NegI, t, {a}) == expected);
    for (size_t i = 0; i < a.size(); ++i) expected[i] = as_signed(a[i]) < 0 ? expected[i] : a[i];
    CHECK(run(Opcode::AbsI, t, {a}) == expected);
  }
}

TEST_CASE("i1 computes modulo 2 and reads 1 as -1") {
  const ElementType t = ElementType::I1;
  const Words a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  Modifiers s, u;
  u.signedness = Signedness::Unsigned;
  s.rounding = u.rounding = Rounding::Zero;
  const auto check = [&](Opcode op, const Modifiers& m, const Words& expected) {
    CAPTURE(static_cast<int>(op));
    CHECK(run(op, t, {a, b}, m) == expected);
  };
  for (const Opcode op : {Opcode::AddI, Opcode::SubI, Opcode::XOrI}) check(op, s, {0, 1, 1, 0});
  for (const Opcode op : {Opcode::MulI, Opcode::AndI}) check(op, s, {0, 0, 0, 1});
  check(Opcode::OrI, s, {0, 1, 1, 1});
  check(Opcode::MulhiI, s, {0, 0, 0, 0});
  check(Opcode::MaxI, s, {0, 0, 0, 1});
  check(Opcode::MaxI, u, {0, 1, 1, 1});
  check(Opcode::MinI, s, {0, 1, 1, 1});
  check(Opcode::MinI, u, {0, 0, 0, 1});
  check(Opcode::ShLI, s, {0, 0, 1, 0});
  check(Opcode::ShRI, u, {0, 0, 1, 0});
  check(Opcode::ShRI, s, {0, 0, 1, 1});
  check(Opcode::DivI, s, {1, 0, 1, 1});
  check(Opcode::RemI, s, {0, 0, 1, 0});
  s.predicate = u.predicate = Predicate::LessThan;
  check(Opcode::CmpI, s, {0, 0, 1, 0});
  check(Opcode::CmpI, u, {0, 1, 0, 0});
  CHECK(run(Opcode::NegI, t, {a}) == a);
  CHECK(run(Opcode::AbsI, t, {a}) == a);
}

TEST_CASE("ftof agrees with decoding and encoding for every pattern of 8 and 16 bits") {
  const Restore restore;
  const ElementType types[] = {ElementType::F16,       ElementType::BF16,      ElementType::F32,
                               ElementType::TF32,      ElementType::F64,       ElementType::F8E4M3FN,
                               ElementType::F8E5M2,    ElementType::F8E8M0FNU, ElementType::F4E2M1FN,
                               ElementType::NV8E5M3FNU};
  for (const Isa isa : kBuilds) {
    if (!force_isa(isa)) continue;
    for (const ElementType in : types) {
      Words source;
      if (info(in).storage > 2) {
        source = interesting(in, 30000, 9);
        for (uint64_t h = 0; h < 65536; h += 3)
          source.push_back(encode(in, static_cast<double>(f16_to_f32(static_cast<uint16_t>(h))) * (1 + 0x1p-12)));
      } else {
        const unsigned width = in == ElementType::F4E2M1FN ? 4 : info(in).bits;
        for (uint64_t w = 0; w < 1ull << width; ++w) source.push_back(w);
      }
      for (const ElementType out : types) {
        for (const Rounding mode : {Rounding::NearestEven, Rounding::Zero, Rounding::PositiveInf, Rounding::NegativeInf,
                                    Rounding::NearestAway}) {
          if (find_elementwise(Opcode::FToF, in, out, rounded(mode)) == nullptr) continue;
          const Words got = run(Opcode::FToF, out, rounded(mode), {{in, source}});
          const bool copies = in == ElementType::TF32 && out == ElementType::F32;
          int wrong = 0;
          for (size_t i = 0; i < source.size(); ++i) {
            uint64_t expected = encode(out, decode(in, source[i]), mode);
            if (copies) expected = source[i];
            if (is_nan(in, source[i]) && in == ElementType::F64 && info(out).bits >= 16) {
              expected |= source[i] >> 63 << (info(out).storage * 8 - 1);
            }
            wrong += got[i] != expected;
          }
          CAPTURE(info(in).name);
          CAPTURE(info(out).name);
          CAPTURE(static_cast<int>(mode));
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("ftoi cuts toward zero, clamps or wraps outside the range, and gives 0 for NaN") {
  const auto convert = [](double x, ElementType out, bool is_signed, bool saturating = false,
                          ElementType in = ElementType::F64) {
    Modifiers m;
    m.rounding = Rounding::NearestIntToZero;
    m.signedness = is_signed ? Signedness::Signed : Signedness::Unsigned;
    m.saturating = saturating;
    return run(Opcode::FToI, out, m, {{in, {bits(in, x)}}})[0];
  };
  for (const ElementType in : {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::F8E4M3FN}) {
    CHECK(convert(-3.75, ElementType::I32, true, false, in) == 0xFFFFFFFD);
    CHECK(convert(3.75, ElementType::I64, true, false, in) == 3);
    CHECK(convert(std::nan(""), ElementType::I32, true, false, in) == 0);
    CHECK(convert(std::nan(""), ElementType::I8, false, true, in) == 0);
    CHECK(convert(-0.9, ElementType::I32, false, false, in) == 0);
    CHECK(convert(208, ElementType::I8, true, false, in) == 208);
  }
  CHECK(convert(1e30, ElementType::I32, true) == 0x7FFFFFFF);
  CHECK(convert(-1e30, ElementType::I32, true) == 0x80000000);
  CHECK(convert(4294967295.9, ElementType::I32, false) == 0xFFFFFFFF);
  CHECK(convert(2147483649.5, ElementType::I32, false) == 0x80000001);
  CHECK(convert(-5, ElementType::I32, false) == 0);
  CHECK(convert(kInf, ElementType::I64, true) == 0x7FFFFFFFFFFFFFFF);
  CHECK(convert(-kInf, ElementType::I64, true) == 0x8000000000000000);
  CHECK(convert(1.8e19, ElementType::I64, false) == 18000000000000000000ull);
  CHECK(convert(1e20, ElementType::I64, false) == ~0ull);
  CHECK(convert(70000, ElementType::I16, false) == 65535);
  CHECK(convert(-70000, ElementType::I16, true) == 0x8000);
  CHECK(convert(300, ElementType::I8, true) == 44);
  CHECK(convert(-129, ElementType::I8, true) == 127);
  CHECK(convert(300, ElementType::I8, false) == 44);
  CHECK(convert(-5, ElementType::I8, false) == 0);
  CHECK(convert(1e20, ElementType::I8, false) == 255);
  CHECK(convert(300, ElementType::I8, true, true) == 127);
  CHECK(convert(-300, ElementType::I8, true, true) == 0x80);
  CHECK(convert(300, ElementType::I8, false, true) == 255);
  CHECK(convert(0.9, ElementType::I1, false) == 0);
  CHECK(convert(2, ElementType::I1, false) == 1);
  CHECK(convert(std::nan(""), ElementType::I1, true) == 1);
  CHECK(convert(std::nan(""), ElementType::I1, true, true) == 0);
  CHECK(convert(5, ElementType::I1, true, true) == 0);
  CHECK(convert(-5, ElementType::I1, true, true) == 1);
}

TEST_CASE("itof rounds once to nearest even") {
  const auto convert = [](uint64_t x, ElementType in, ElementType out, bool is_signed) {
    Modifiers m;
    m.signedness = is_signed ? Signedness::Signed : Signedness::Unsigned;
    return run(Opcode::IToF, out, m, {{in, {x}}})[0];
  };
  CHECK(convert(1, ElementType::I1, ElementType::F32, true) == 0xBF800000);
  CHECK(convert(1, ElementType::I1, ElementType::F16, false) == 0x3C00);
  CHECK(convert(0xFF, ElementType::I8, ElementType::BF16, true) == 0xBF80);
  CHECK(convert(0xFFFFFFFF, ElementType::I32, ElementType::F32, false) == 0x4F800000);
  CHECK(convert(0x80000000, ElementType::I32, ElementType::F64, true) == double_bits(-2147483648.0));
  CHECK(convert(65520, ElementType::I32, ElementType::F16, true) == 0x7C00);
  CHECK(convert(65519, ElementType::I32, ElementType::F16, true) == 0x7BFF);
  // 2^53 + 2^45 + 1 lies just above a bf16 middle that f64 cannot tell from it after 2^54.
  CHECK(convert((1ull << 60) + (1ull << 52) + 1, ElementType::I64, ElementType::BF16, true) == 0x5D81);
  CHECK(convert((1ull << 60) + (1ull << 52), ElementType::I64, ElementType::BF16, true) == 0x5D80);
  CHECK(convert(0x0100000180000001, ElementType::I64, ElementType::F32, false) == float_bits(0x1.000002p56f));
  CHECK(convert(1000, ElementType::I16, ElementType::F8E4M3FN, true) == 0x7E);
  CHECK(convert(0xFFFFFFFF80000000, ElementType::I64, ElementType::F8E5M2, true) == 0xFB);
  CHECK(convert(3, ElementType::I32, ElementType::F4E2M1FN, true) == 5);
  std::mt19937_64 random(10);
  Words x;
  for (int i = 0; i < 20000; ++i) x.push_back((random() >> (random() % 32)) & 0xFFFFFFFF);
  for (const ElementType out : {ElementType::F16, ElementType::BF16, ElementType::F32}) {
    const Words got = run(Opcode::IToF, out, {}, {{ElementType::I32, x}});
    int wrong = 0;
    for (size_t i = 0; i < x.size(); ++i)
      wrong += got[i] != encode(out, static_cast<double>(static_cast<int32_t>(x[i])));
    CHECK(wrong == 0);
  }
}

TEST_CASE("exti, trunci, bitcast, select and offset move bits") {
  Modifiers s, u;
  u.signedness = Signedness::Unsigned;
  CHECK(run(Opcode::ExtI, ElementType::I8, s, {{ElementType::I1, {0, 1}}}) == Words{0, 255});
  CHECK(run(Opcode::ExtI, ElementType::I64, u, {{ElementType::I1, {0, 1}}}) == Words{0, 1});
  CHECK(run(Opcode::ExtI, ElementType::I4, s, {{ElementType::I1, {1}}}) == Words{15});
  CHECK(run(Opcode::ExtI, ElementType::I16, s, {{ElementType::I4, {7, 8, 15}}}) == Words{7, 0xFFF8, 0xFFFF});
  CHECK(run(Opcode::ExtI, ElementType::I64, s, {{ElementType::I32, {0x80000000}}}) == Words{0xFFFFFFFF80000000});
  CHECK(run(Opcode::ExtI, ElementType::I64, u, {{ElementType::I32, {0x80000000}}}) == Words{0x80000000});
  CHECK(run(Opcode::TruncI, ElementType::I1, s, {{ElementType::I32, {6, 7}}}) == Words{0, 1});
  CHECK(run(Opcode::TruncI, ElementType::I4, s, {{ElementType::I8, {0xA5}}}) == Words{5});
  CHECK(run(Opcode::TruncI, ElementType::I16, s, {{ElementType::I64, {0x123456789ABCDEF0}}}) == Words{0xDEF0});
  CHECK(run(Opcode::Bitcast, ElementType::F32, {}, {{ElementType::I32, {0x7FA00001}}}) == Words{0x7FA00001});
  CHECK(run(Opcode::Select, ElementType::F64, {},
            {{ElementType::I1, {0, 1}}, {ElementType::F64, {1, 2}}, {ElementType::F64, {3, 4}}}) == Words{3, 2});
  const uint64_t pointers[] = {1000, 1000};
  const int8_t indices[] = {-3, 100};
  uint64_t out[2];
  find_offset(ElementType::I8)(out, pointers, indices, 2, 4);
  CHECK(out[0] == 988);
  CHECK(out[1] == 1400);
  const uint8_t bit[] = {1, 0};
  find_offset(ElementType::I1)(out, pointers, bit, 2, 8);
  CHECK(out[0] == 992);
  const bool floats_are_indices = find_offset(ElementType::F32) != nullptr;
  CHECK_FALSE(floats_are_indices);
}

TEST_CASE("illegal types and modifiers have no kernel") {
  const auto none = [](Opcode op, ElementType in, ElementType out, const Modifiers& m = {}) {
    return find_elementwise(op, in, out, m) == nullptr;
  };
  CHECK(none(Opcode::AddF, ElementType::I32, ElementType::I32));
  CHECK(none(Opcode::AddF, ElementType::F32, ElementType::F16));
  CHECK(none(Opcode::AddF, ElementType::F16, ElementType::F16, rounded(Rounding::NearestEven, true)));
  CHECK(none(Opcode::AddF, ElementType::F32, ElementType::F32, rounded(Rounding::Approx)));
  CHECK(none(Opcode::DivF, ElementType::F64, ElementType::F64, rounded(Rounding::Full)));
  CHECK(none(Opcode::Sqrt, ElementType::F32, ElementType::F32, rounded(Rounding::Full)));
  CHECK(none(Opcode::Exp, ElementType::F16, ElementType::F16, rounded(Rounding::Approx)));
  CHECK(none(Opcode::DivI, ElementType::I32, ElementType::I32));
  CHECK(none(Opcode::AddI, ElementType::I4, ElementType::I4));
  CHECK(none(Opcode::Bitcast, ElementType::TF32, ElementType::F32));
  CHECK(none(Opcode::FToF, ElementType::F32, ElementType::F8E8M0FNU));
  CHECK(none(Opcode::FToF, ElementType::F32, ElementType::F32));
  CHECK(none(Opcode::IToF, ElementType::I32, ElementType::F8E8M0FNU));
  CHECK(none(Opcode::FPowI, ElementType::I64, ElementType::F32));
  CHECK(none(Opcode::ExtI, ElementType::I32, ElementType::I32));
  CHECK(none(Opcode::Reshape, ElementType::F32, ElementType::F32));
}
