// Arithmetic: for each element, in ascending k, the exact product is added with one rounding to f32 (f64: f64); an f16
// accumulator is rounded once, at the end; integers wrap. A NaN result is the canonical one, as on the GPU.
#include "backend/emulate/mma.h"

#include <cmath>
#include <cstring>

#include "vm/base/numeric.h"

namespace tile::emu {
namespace {

struct Tiles {
  float a[16][32], b[32][8], c[16][8];
};

void multiply(Tiles& t, unsigned k) { multiply_tiles(&t.a[0][0], 32, &t.b[0][0], 8, &t.c[0][0], 8, 16, k, 8); }

const std::array<float, 256>& f8_values(bool e5m2) {
  const auto make = [](ElementType e) {
    std::array<float, 256> v{};
    for (unsigned i = 0; i < 256; ++i) v[i] = static_cast<float>(decode(e, i));
    return v;
  };
  static const std::array<float, 256> e4 = make(ElementType::F8E4M3FN), e5 = make(ElementType::F8E5M2);
  return e5m2 ? e5 : e4;
}

uint32_t word(const void* p, unsigned i) {
  uint32_t w;
  std::memcpy(&w, static_cast<const char*>(p) + size_t{i} * 4, 4);
  return w;
}

/// Calls f(row, k, value) for the A fragment (16 rows) and g(k, n, value) for B, elements of `bits` bits of which each
/// register packs 32 / bits. Register i of A holds row g + 8 (i & 1); its k starts at (32 / bits) t, in the upper half
/// of k for i >= 2. Of A there are `a_words`, of B `b_words`; the rest of the tiles is left alone.
template <class Convert>
void gather(Tiles& t, unsigned bits, unsigned a_words, unsigned b_words, const std::array<MmaOperands, 32>& lanes,
            Convert&& convert) {
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const unsigned per = 32 / bits, half = per * 4;
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned group = l / 4, first = l % 4 * per;
    for (unsigned i = 0; i < a_words; ++i) {
      const uint32_t w = word(lanes[l].a, i);
      for (unsigned e = 0; e < per; ++e)
        t.a[group + 8 * (i & 1)][first + e + half * (i >> 1)] = convert(w >> (bits * e) & mask, false);
    }
    for (unsigned i = 0; i < b_words; ++i) {
      const uint32_t w = word(lanes[l].b, i);
      for (unsigned e = 0; e < per; ++e) t.b[first + e + half * i][group] = convert(w >> (bits * e) & mask, true);
    }
  }
}

/// Calls f(lane, row, column of the first of two neighbours, index of the pair) for the C fragment of a 16 x 8 tile.
template <class F>
void each_pair(F&& f, unsigned halves = 2) {
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned h = 0; h < halves; ++h) f(l, l / 4 + 8 * h, l % 4 * 2, h);
}

void multiply_f32(Tiles& t, unsigned k, const std::array<MmaOperands, 32>& lanes) {
  each_pair([&](unsigned l, unsigned r, unsigned c, unsigned h) {
    for (unsigned e = 0; e < 2; ++e) t.c[r][c + e] = float_of(word(lanes[l].c, 2 * h + e));
  });
  multiply(t, k);
  each_pair([&](unsigned l, unsigned r, unsigned c, unsigned h) {
    const uint32_t d[2] = {result_bits(t.c[r][c]), result_bits(t.c[r][c + 1])};
    std::memcpy(static_cast<char*>(lanes[l].c) + size_t{h} * 8, d, 8);
  });
}

void multiply_f16(Tiles& t, const std::array<MmaOperands, 32>& lanes) {
  each_pair([&](unsigned l, unsigned r, unsigned c, unsigned h) {
    const uint32_t w = word(lanes[l].c, h);
    t.c[r][c] = f16_to_f32(static_cast<uint16_t>(w));
    t.c[r][c + 1] = f16_to_f32(static_cast<uint16_t>(w >> 16));
  });
  multiply(t, 16);
  each_pair([&](unsigned l, unsigned r, unsigned c, unsigned h) {
    const uint32_t w = f32_to_f16(t.c[r][c]) | uint32_t{f32_to_f16(t.c[r][c + 1])} << 16;
    std::memcpy(static_cast<char*>(lanes[l].c) + size_t{h} * 4, &w, 4);
  });
}

// A sum of 32 products of 8-bit integers is exact in f32; it is added to C as an integer, which wraps.
void multiply_int(Tiles& t, unsigned k, unsigned halves, const std::array<MmaOperands, 32>& lanes) {
  std::memset(t.c, 0, sizeof t.c);
  multiply(t, k);
  each_pair([&](unsigned l, unsigned r, unsigned c, unsigned h) {
    uint32_t d[2];
    for (unsigned e = 0; e < 2; ++e)
      d[e] = word(lanes[l].c, 2 * h + e) + static_cast<uint32_t>(static_cast<int32_t>(t.c[r][c + e]));
    std::memcpy(static_cast<char*>(lanes[l].c) + size_t{h} * 8, d, 8);
  }, halves);
}

/// m8n8k4: A is (g, t), B is (k = t, n = g), C is (g, 2 t), (g, 2 t + 1). m16n8k4 and longer ones: A is (g + 8 (i & 1), t + 4 (i >> 1)), B is
/// (k = t + 4 i, n = g), C has the same in row g + 8, too.
void multiply_f64(const std::array<MmaOperands, 32>& lanes, unsigned of_a) {
  const unsigned halves = of_a == 1 ? 1 : 2, steps = of_a / halves;
  double a[16][16], b[16][8];
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned i = 0; i < of_a; ++i) std::memcpy(&a[l / 4 + 8 * (i % halves)][l % 4 + 4 * (i / halves)], static_cast<const char*>(lanes[l].a) + 8 * i, 8);
    for (unsigned i = 0; i < steps; ++i) std::memcpy(&b[l % 4 + 4 * i][l / 4], static_cast<const char*>(lanes[l].b) + 8 * i, 8);
  }
  for (unsigned l = 0; l < 32; ++l) {
    double d[4];
    std::memcpy(d, lanes[l].c, 16 * halves);
    for (unsigned e = 0; e < 2 * halves; ++e) {
      for (unsigned k = 0; k < 4 * steps; ++k) d[e] = std::fma(a[l / 4 + 8 * (e / 2)][k], b[k][l % 4 * 2 + e % 2], d[e]);
      if (std::isnan(d[e])) d[e] = double_of(0x7FF8000000000000u);
    }
    std::memcpy(lanes[l].c, d, 16 * halves);
  }
}

}  // namespace

float operand_value(uint32_t kind, uint32_t formats, bool second, uint32_t bits) {
  const auto byte = static_cast<uint8_t>(bits);
  const auto integer = [&](bool is_signed) {
    return static_cast<float>(is_signed ? int{static_cast<int8_t>(byte)} : int{byte});
  };
  switch (kind) {
    case kF16F32:
    case kF16F16: return f16_to_f32(static_cast<uint16_t>(bits));
    case kBF16F32: return bf16_to_f32(static_cast<uint16_t>(bits));
    case kTF32F32: return float_of(bits & ~0x1FFFu);
    case kF8F32: return f8_values((formats >> unsigned{second} & 1) != 0)[byte];
    case kS8: return integer(true);
    case kU8: return integer(false);
    case kS8U8: return integer(!second);
    default: return integer(second);
  }
}

uint32_t result_bits(float x) { return std::isnan(x) ? 0x7FFFFFFFu : float_bits(x); }

// Fused multiply-add does it. Written so that eight columns stay in a vector register.
#ifdef __x86_64__
[[gnu::target("avx2,fma")]]
#endif
void multiply_tiles(const float* a, unsigned a_pitch, const float* b, unsigned b_pitch, float* c, unsigned c_pitch,
                    unsigned rows, unsigned k, unsigned n) {
  for (unsigned r = 0; r < rows; ++r) {
    for (unsigned n0 = 0; n0 < n; n0 += 8) {
      float acc[8];
      float* to = c + size_t{r} * c_pitch + n0;
      for (unsigned i = 0; i < 8; ++i) acc[i] = to[i];
      for (unsigned x = 0; x < k; ++x) {
        const float left = a[size_t{r} * a_pitch + x];
        const float* right = b + size_t{x} * b_pitch + n0;
        for (unsigned i = 0; i < 8; ++i) acc[i] = __builtin_fmaf(left, right[i], acc[i]);
      }
      for (unsigned i = 0; i < 8; ++i) to[i] = acc[i];
    }
  }
}

void execute_mma(uint32_t kind, uint32_t formats, const std::array<MmaOperands, 32>& lanes) {
  if (kind == kF64) return multiply_f64(lanes, formats >> 4);
  const unsigned bits = kind == kTF32F32 ? 32 : kind == kF16F32 || kind == kBF16F32 || kind == kF16F16 ? 16 : 8;
  const bool integers = kind >= kS8 && kind <= kU8S8, half = (formats & 4) != 0;
  const unsigned k = 256 / bits / (half ? 2 : 1), halves = half && integers ? 1 : 2;
  Tiles t;
  if (halves == 1) std::memset(t.a, 0, sizeof t.a);  // eight rows only
  gather(t, bits, half ? halves : 4, half ? 1 : 2, lanes,
         [&](uint32_t w, bool second) { return operand_value(kind, formats, second, w); });
  if (kind == kF16F16) return multiply_f16(t, lanes);
  if (integers) return multiply_int(t, k, halves, lanes);
  multiply_f32(t, k, lanes);
}

}  // namespace tile::emu
