#include "backend/emulate/wgmma.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backend/emulate/mma.h"
#include "vm/base/numeric.h"

namespace tile::emu {

unsigned WgmmaShape::element_bytes() const {
  return kind == kTF32F32 ? 4 : kind == kF16F32 || kind == kBF16F32 || kind == kF16F16 ? 2 : 1;
}
unsigned WgmmaShape::registers() const { return kind == kF16F16 ? n / 4 : n / 2; }

namespace {

struct Tiles {
  alignas(32) float a[64][32], b[32][256], c[64][256];
};

/// Register 4 j + i of thread t: row 16 (t / 32) + t % 32 / 4 + 8 (i >> 1), column 8 j + 2 (t % 4) + (i & 1). Calls
/// f(first of two neighbours in the tile, thread, number of the pair).
template <class F>
void each_pair(Tiles& t, unsigned n, F&& f) {
  for (unsigned th = 0; th < 128; ++th)
    for (unsigned j = 0; j < n / 8; ++j)
      for (unsigned h = 0; h < 2; ++h) f(&t.c[th / 32 * 16 + th % 32 / 4 + 8 * h][8 * j + th % 4 * 2], th, 2 * j + h);
}

}  // namespace

void execute_wgmma(const WgmmaShape& s, bool scale, const std::byte* shared, uint64_t a, const uint32_t* a_registers,
                   uint64_t b, const std::array<void*, 128>& d) {
  const auto tiles = std::make_unique_for_overwrite<Tiles>();
  Tiles& t = *tiles;
  const unsigned eb = s.element_bytes();
  // Operands.
  const auto fetch = [&](uint32_t addr, bool second, float* out) {  // 16 bytes
    for (unsigned e = 0; e < 16 / eb; ++e) {
      uint32_t w = 0;
      std::memcpy(&w, shared + addr + e * eb, eb);
      out[e] = operand_value(s.kind, s.formats, second, w);
    }
  };
  float part[16];
  if (a_registers) {
    const unsigned per = 4 / eb;
    for (unsigned th = 0; th < 128; ++th)
      for (unsigned i = 0; i < 4; ++i)
        for (unsigned e = 0; e < per; ++e) {
          const uint32_t w = a_registers[th * 4 + i] >> (8 * eb * e % 32);
          t.a[th / 32 * 16 + th % 32 / 4 + 8 * (i & 1)][th % 4 * per + e + per * 4 * (i >> 1)] =
              operand_value(s.kind, s.formats, false, eb == 4 ? w : w & ((1u << (8 * eb)) - 1));
        }
  } else {
    each_chunk(MatrixDescriptor(a), s.a_mn, 64, eb, [&](uint32_t addr, unsigned row, unsigned k) {
      fetch(addr, false, part);
      for (unsigned e = 0; e < 16 / eb; ++e) (s.a_mn ? t.a[row + e][k] : t.a[row][k + e]) = part[e];
    });
  }
  each_chunk(MatrixDescriptor(b), s.b_mn, s.n, eb, [&](uint32_t addr, unsigned row, unsigned k) {
    fetch(addr, true, part);
    for (unsigned e = 0; e < 16 / eb; ++e) (s.b_mn ? t.b[k][row + e] : t.b[k + e][row]) = part[e];
  });

  // Sums of 32 products of 8-bit integers are exact in f32; they are added to D as integers, which wrap.
  const bool integer = s.kind >= kS8 && s.kind <= kU8S8;
  const bool half = s.kind == kF16F16;
  each_pair(t, s.n, [&](float* c, unsigned th, unsigned pair) {
    const char* from = static_cast<const char*>(d[th]);
    if (!scale || integer) {
      c[0] = c[1] = 0;
    } else if (half) {
      uint16_t h[2];
      std::memcpy(h, from + size_t{pair} * 4, 4);
      c[0] = f16_to_f32(h[0]), c[1] = f16_to_f32(h[1]);
    } else {
      std::memcpy(c, from + size_t{pair} * 8, 8);
    }
  });
  multiply_tiles(&t.a[0][0], 32, &t.b[0][0], 256, &t.c[0][0], 256, 64, s.k(), s.n);
  each_pair(t, s.n, [&](const float* c, unsigned th, unsigned pair) {
    char* to = static_cast<char*>(d[th]);
    if (half) {
      const uint16_t h[2] = {f32_to_f16(c[0]), f32_to_f16(c[1])};
      std::memcpy(to + size_t{pair} * 4, h, 4);
      return;
    }
    uint32_t w[2] = {0, 0};
    if (integer && scale) std::memcpy(w, to + size_t{pair} * 8, 8);
    for (unsigned e = 0; e < 2; ++e)
      w[e] = integer ? w[e] + static_cast<uint32_t>(static_cast<int32_t>(c[e])) : result_bits(c[e]);
    std::memcpy(to + size_t{pair} * 8, w, 8);
  });
}

}  // namespace tile::emu
