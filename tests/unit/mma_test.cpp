// Matrix kernels against the documented chain of fused multiply-adds, bit for bit, in every build that this machine can
// run.
#include "vm/interp/mma.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/isa/isa.h"
#include "vm/interp/kernel_types.h"

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

enum class Data { Moderate, AnyBits, Subnormal };

// Moderate: numbers of size about one. AnyBits: every pattern, so NaN and infinities are frequent. Subnormal: tiny
// numbers.
Bytes random_tile(ElementType t, size_t count, Data data, std::mt19937_64& rng) {
  Bytes v(count * info(t).storage);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t any = rng();
    if (data == Data::AnyBits || !info(t).is_float) {
      put_bits(v, t, i, t == ElementType::F4E2M1FN ? any & 15 : any);
      continue;
    }
    const double unit = static_cast<double>(static_cast<int64_t>(any)) * 0x1p-63;
    const double tiny = t == ElementType::F64   ? 0x1p-530
                        : t == ElementType::F16 ? 0x1p-14
                        : info(t).bits > 16     ? 0x1p-70
                                                : 0x1p-6;
    put_bits(v, t, i, encode(t, data == Data::Subnormal ? unit * tiny : unit * 3, Rounding::NearestEven));
  }
  return v;
}

float as_f32(ElementType t, uint64_t bits) {
  return static_cast<float>(decode(t, t == ElementType::TF32 ? bits & 0xFFFFE000 : bits));
}

double as_f64(uint64_t bits) {
  return std::bit_cast<double>(bits);
}

struct Operand {
  const Bytes& bytes;
  size_t rs, cs, bs;
  uint64_t at(ElementType t, size_t b, size_t row, size_t col) const {
    return bits_at(bytes, t, b * bs + row * rs + col * cs);
  }
};

Bytes reference(const MmaDesc& d, const Operand& lhs, const Operand& rhs, const Bytes& acc) {
  Bytes out(acc.size());
  for (size_t b = 0; b < d.batch; ++b) {
    for (size_t i = 0; i < d.m; ++i) {
      for (size_t j = 0; j < d.n; ++j) {
        const size_t at = (b * d.m + i) * d.n + j;
        const uint64_t start = bits_at(acc, d.acc, at);
        uint64_t result;
        if (d.lhs_rhs == ElementType::I8) {
          auto sum = static_cast<uint32_t>(start);
          for (size_t k = 0; k < d.k; ++k) {
            const uint64_t x = lhs.at(d.lhs_rhs, b, i, k), y = rhs.at(d.lhs_rhs, b, k, j);
            const int xv = d.lhs_signed ? static_cast<int8_t>(x) : static_cast<int>(x);
            const int yv = d.rhs_signed ? static_cast<int8_t>(y) : static_cast<int>(y);
            sum += static_cast<uint32_t>(xv * yv);
          }
          result = sum;
        } else if (d.lhs_rhs == ElementType::F64) {
          double s = as_f64(start);
          for (size_t k = 0; k < d.k; ++k)
            s = std::fma(as_f64(lhs.at(d.lhs_rhs, b, i, k)), as_f64(rhs.at(d.lhs_rhs, b, k, j)), s);
          result = std::isnan(s) ? 0x7FF8000000000000 : std::bit_cast<uint64_t>(s);
        } else {
          float s = as_f32(d.acc, start);
          for (size_t k = 0; k < d.k; ++k) {
            s = std::fma(as_f32(d.lhs_rhs, lhs.at(d.lhs_rhs, b, i, k)), as_f32(d.lhs_rhs, rhs.at(d.lhs_rhs, b, k, j)),
                         s);
          }
          if (std::isnan(s)) {
            result = d.acc == ElementType::F16 ? 0x7FFF : 0x7FFFFFFF;
          } else {
            result = d.acc == ElementType::F16 ? encode(d.acc, s, Rounding::NearestEven) : std::bit_cast<uint32_t>(s);
          }
        }
        put_bits(out, d.acc, at, result);
      }
    }
  }
  return out;
}

struct IsaScope {
  explicit IsaScope(Isa isa) { force_isa(isa); }
  ~IsaScope() { force_isa(best_isa()); }
};

template <class F>
void each_isa(F f) {
  for (int i = 0; i < kIsas; ++i) {
    const auto isa = static_cast<Isa>(i);
    if (isa > best_isa()) break;
    const IsaScope scope(isa);
    f(isa);
  }
}

// Runs all builds on one random product and compares with the reference.
void check(MmaDesc d, Data data, std::mt19937_64& rng) {
  const Bytes lhs = random_tile(d.lhs_rhs, d.batch * d.m * d.k, data, rng),
              rhs = random_tile(d.lhs_rhs, d.batch * d.k * d.n, data, rng);
  const Bytes acc = random_tile(d.acc, d.batch * d.m * d.n, data, rng);
  const bool lhs_dense = d.lhs_rs == 0, rhs_dense = d.rhs_rs == 0;
  const Operand left{lhs, lhs_dense ? d.k : d.lhs_rs, lhs_dense ? 1 : d.lhs_cs, d.lhs_bs ? d.lhs_bs : d.m * d.k};
  const Operand right{rhs, rhs_dense ? d.n : d.rhs_rs, rhs_dense ? 1 : d.rhs_cs, d.rhs_bs ? d.rhs_bs : d.k * d.n};
  const Bytes want = reference(d, left, right, acc);
  each_isa([&](Isa isa) {
    Bytes scratch(mma_scratch_bytes(d)), out(acc.size(), 0xEE);
    mma(d, out.data(), lhs.data(), rhs.data(), acc.data(), scratch.data());
    size_t wrong = 0, first = 0;
    for (size_t i = out.size() / info(d.acc).storage; i-- > 0;) {
      if (bits_at(out, d.acc, i) != bits_at(want, d.acc, i)) ++wrong, first = i;
    }
    INFO("isa ", static_cast<int>(isa), " ", std::string(info(d.lhs_rhs).name), " -> ", std::string(info(d.acc).name),
         " ", d.batch, "x", d.m, "x", d.n, "x", d.k, " data ", static_cast<int>(data), " strides ", d.lhs_rs, ",",
         d.lhs_cs, " ", d.rhs_rs, ",", d.rhs_cs, " first ", first, ": ", bits_at(out, d.acc, first), " expected ",
         bits_at(want, d.acc, first));
    CHECK(wrong == 0);
    // In place, and split into rows at an awkward point.
    Bytes place = acc;
    const size_t split = d.batch * d.m / 3;
    mma_rows(d, split, d.batch * d.m, place.data(), lhs.data(), rhs.data(), place.data(), scratch.data());
    mma_rows(d, 0, split, place.data(), lhs.data(), rhs.data(), place.data(), scratch.data());
    CHECK(place == want);
  });
}

struct Types {
  ElementType in, acc;
};
constexpr Types kTypes[] = {
    {ElementType::F8E4M3FN, ElementType::F16}, {ElementType::F8E4M3FN, ElementType::F32},
    {ElementType::F8E5M2, ElementType::F16},   {ElementType::F8E5M2, ElementType::F32},
    {ElementType::F16, ElementType::F16},      {ElementType::F16, ElementType::F32},
    {ElementType::BF16, ElementType::F32},     {ElementType::TF32, ElementType::F32},
    {ElementType::F32, ElementType::F32},      {ElementType::F64, ElementType::F64},
    {ElementType::I8, ElementType::I32},
};

MmaDesc make(Types t, size_t batch, size_t m, size_t n, size_t k) {
  MmaDesc d;
  d.lhs_rhs = t.in;
  d.acc = t.acc;
  d.batch = batch;
  d.m = m;
  d.n = n;
  d.k = k;
  return d;
}

}  // namespace

TEST_CASE("mma supports the combinations of the operation table and no others") {
  size_t count = 0;
  for (size_t i = 0; i < kElementTypes; ++i) {
    for (size_t j = 0; j < kElementTypes; ++j)
      count += mma_supported(static_cast<ElementType>(i), static_cast<ElementType>(j));
  }
  CHECK(count == std::size(kTypes));
  for (const Types& t : kTypes) CHECK(mma_supported(t.in, t.acc));
}

TEST_CASE("mma gives the bits of the chain of fused multiply-adds, for all types, shapes and builds") {
  std::mt19937_64 rng(1);
  for (const Types& t : kTypes) {
    for (const auto& [m, n, k] : {std::array<size_t, 3>{1, 1, 1},
                                  {1, 1, 64},
                                  {2, 1, 4},
                                  {1, 2, 8},
                                  {4, 4, 4},
                                  {8, 2, 16},
                                  {2, 8, 1},
                                  {16, 16, 16},
                                  {64, 1, 32},
                                  {64, 2, 2},
                                  {64, 4, 8},
                                  {1, 64, 32},
                                  {2, 64, 16},
                                  {8, 32, 64},
                                  {32, 8, 8},
                                  {64, 64, 64},
                                  {7, 33, 5},
                                  {13, 17, 31},
                                  {3, 65, 9},
                                  {27, 3, 11}}) {
      for (const Data data : {Data::Moderate, Data::AnyBits, Data::Subnormal}) check(make(t, 1, m, n, k), data, rng);
    }
    check(make(t, 3, 5, 8, 16), Data::Moderate, rng);
    check(make(t, 16, 4, 4, 2), Data::Moderate, rng);
    check(make(t, 4, 16, 2, 8), Data::AnyBits, rng);
  }
}

TEST_CASE("mma keeps the order along k across its blocks") {
  std::mt19937_64 rng(2);
  for (const Types& t : kTypes) {
    check(make(t, 1, 70, 20, 600), Data::Moderate, rng);
    check(make(t, 1, 2, 300, 1024), Data::Moderate, rng);
    check(make(t, 2, 16, 2, 1024), Data::Moderate, rng);
  }
}

TEST_CASE("mma of i8 reads each side with its own signedness and wraps") {
  std::mt19937_64 rng(3);
  for (int mode = 0; mode < 4; ++mode) {
    for (const auto& [m, n, k] : {std::array<size_t, 3>{1, 1, 1}, {16, 32, 64}, {64, 2, 3}, {5, 7, 9}, {4, 16, 1024}}) {
      MmaDesc d = make({ElementType::I8, ElementType::I32}, 2, m, n, k);
      d.lhs_signed = mode & 1;
      d.rhs_signed = mode & 2;
      check(d, Data::AnyBits, rng);
    }
  }
  // 2^31 - 1 + 255 * 255 * 2
  MmaDesc d = make({ElementType::I8, ElementType::I32}, 1, 1, 1, 2);
  d.lhs_signed = d.rhs_signed = false;
  const unsigned char full[2] = {255, 255};
  const uint32_t acc = 0x7FFFFFFF;
  Bytes scratch(mma_scratch_bytes(d));
  each_isa([&](Isa) {
    uint32_t out = 0;
    mma(d, &out, full, full, &acc, scratch.data());
    CHECK(out == 0x7FFFFFFFu + 130050u);
  });
}

TEST_CASE("mma reads operands through strides") {
  std::mt19937_64 rng(4);
  for (const Types& t : kTypes) {
    for (const auto& [m, n, k] :
         {std::array<size_t, 3>{16, 32, 16}, {9, 21, 37}, {64, 2, 16}, {1, 1, 1}, {2, 64, 300}}) {
      for (int mode = 1; mode < 4; ++mode) {
        MmaDesc d = make(t, 2, m, n, k);
        if (mode & 1) d.lhs_rs = 1, d.lhs_cs = m;
        if (mode & 2) d.rhs_rs = 1, d.rhs_cs = k;
        check(d, Data::Moderate, rng);
      }
      // Batch innermost: no side is contiguous.
      MmaDesc d = make(t, 2, m, n, k);
      d.lhs_rs = 2 * k, d.lhs_cs = 2, d.lhs_bs = 1;
      d.rhs_rs = 2 * n, d.rhs_cs = 2, d.rhs_bs = 1;
      check(d, Data::Moderate, rng);
    }
  }
}

TEST_CASE("mma widens an f16 accumulator and rounds it once") {
  // 2048 + 1 + 1: one rounding gives 2050, rounding after each step would stay at 2048.
  MmaDesc d = make({ElementType::F16, ElementType::F16}, 1, 1, 1, 2);
  const uint16_t one[2] = {0x3C00, 0x3C00}, acc = 0x6800;
  Bytes scratch(mma_scratch_bytes(d));
  each_isa([&](Isa) {
    uint16_t out = 0;
    mma(d, &out, one, one, &acc, scratch.data());
    CHECK(out == 0x6801);
    // 65504 * 1 + 16: half way to 65536, rounds to infinity.
    const uint16_t big[2] = {0x7BFF, 0x4C00};
    const uint16_t zero = 0;
    mma(d, &out, big, one, &zero, scratch.data());
    CHECK(out == 0x7C00);
  });
}

TEST_CASE("mma decodes every pattern of the 8-bit formats") {
  for (const Types& t : {kTypes[1], kTypes[3]}) {
    for (const bool across : {false, true}) {
      // 256 x 1 by 1 x 1 reads the patterns along rows, 1 x 1 by 1 x 256 along columns.
      MmaDesc d = make(t, 1, across ? 1 : 256, across ? 256 : 1, 1);
      Bytes all(256), one{static_cast<unsigned char>(encode(t.in, 1.0, Rounding::NearestEven))}, acc(256 * 4),
          scratch(mma_scratch_bytes(d));
      for (size_t i = 0; i < 256; ++i) {
        all[i] = static_cast<unsigned char>(i);
        put_bits(acc, ElementType::F32, i, 0x80000000);  // -0 keeps the sign of a zero product
      }
      each_isa([&](Isa) {
        Bytes out(256 * 4);
        mma(d, out.data(), across ? one.data() : all.data(), across ? all.data() : one.data(), acc.data(),
            scratch.data());
        for (size_t i = 0; i < 256; ++i) {
          const float want = as_f32(t.in, i);
          const uint32_t bits = std::isnan(want) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(want);
          CHECK(bits_at(out, ElementType::F32, i) == bits);
        }
      });
    }
  }
}

TEST_CASE("scaled mma rounds each scaled element to f32 and chains") {
  std::mt19937_64 rng(5);
  constexpr std::array<std::array<ElementType, 2>, 5> kScaled = {{{ElementType::F8E4M3FN, ElementType::F8E8M0FNU},
                                                                  {ElementType::F8E5M2, ElementType::F8E8M0FNU},
                                                                  {ElementType::F4E2M1FN, ElementType::F8E8M0FNU},
                                                                  {ElementType::F4E2M1FN, ElementType::F8E4M3FN},
                                                                  {ElementType::F4E2M1FN, ElementType::NV8E5M3FNU}}};
  for (const auto& types : kScaled) {
    const ElementType in = types[0], scale = types[1];
    CHECK(mma_scaled_supported(in, scale));
    for (const size_t block : {16, 32}) {
      for (const auto& shape : {std::array<size_t, 4>{1, 1, 1, 32},
                                {1, 16, 32, 64},
                                {2, 5, 7, 96},
                                {2, 64, 2, 64},
                                {1, 2, 64, 320},
                                {3, 4, 4, 544}}) {
        const size_t batch = shape[0], m = shape[1], n = shape[2], k = shape[3];
        for (const Data data : {Data::Moderate, Data::AnyBits}) {
          MmaScaledDesc d;
          d.lhs_rhs = in, d.scale = scale, d.batch = batch, d.m = m, d.n = n, d.k = k, d.block = block;
          const size_t blocks = k / block;
          const Bytes lhs = random_tile(in, batch * m * k, data, rng), rhs = random_tile(in, batch * k * n, data, rng);
          Bytes lhs_scale = random_tile(scale, batch * m * blocks, Data::AnyBits, rng);
          Bytes rhs_scale = random_tile(scale, batch * blocks * n, Data::AnyBits, rng);
          if (data == Data::Moderate) {
            for (unsigned char& b : lhs_scale)
              b = static_cast<unsigned char>(scale == ElementType::F8E8M0FNU ? 120 + b % 14 : b % 0x70);
            for (unsigned char& b : rhs_scale)
              b = static_cast<unsigned char>(scale == ElementType::F8E8M0FNU ? 120 + b % 14 : b % 0x70);
          }
          const Bytes acc = random_tile(ElementType::F32, batch * m * n, data, rng);
          Bytes want(acc.size());
          for (size_t b = 0; b < batch; ++b) {
            for (size_t i = 0; i < m; ++i) {
              for (size_t j = 0; j < n; ++j) {
                float s = as_f32(ElementType::F32, bits_at(acc, ElementType::F32, (b * m + i) * n + j));
                for (size_t p = 0; p < k; ++p) {
                  const float x = as_f32(in, bits_at(lhs, in, (b * m + i) * k + p)) *
                                  as_f32(scale, bits_at(lhs_scale, scale, (b * m + i) * blocks + p / block));
                  const float y = as_f32(in, bits_at(rhs, in, (b * k + p) * n + j)) *
                                  as_f32(scale, bits_at(rhs_scale, scale, (b * blocks + p / block) * n + j));
                  s = std::fma(x, y, s);
                }
                put_bits(want, ElementType::F32, (b * m + i) * n + j,
                         std::isnan(s) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(s));
              }
            }
          }
          each_isa([&](Isa isa) {
            Bytes scratch(mma_scaled_scratch_bytes(d)), out = acc;
            const size_t split = batch * m / 2;
            mma_scaled_rows(d, 0, split, out.data(), lhs.data(), rhs.data(), out.data(), lhs_scale.data(),
                            rhs_scale.data(), scratch.data());
            mma_scaled_rows(d, split, batch * m, out.data(), lhs.data(), rhs.data(), out.data(), lhs_scale.data(),
                            rhs_scale.data(), scratch.data());
            INFO("isa ", static_cast<int>(isa), " ", std::string(info(in).name), " by ", std::string(info(scale).name),
                 " V ", block, " ", batch, "x", m, "x", n, "x", k, " data ", static_cast<int>(data));
            CHECK(out == want);
          });
        }
      }
    }
  }
}
