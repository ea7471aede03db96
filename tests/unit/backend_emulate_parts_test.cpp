// Parts of the emulation by themselves: the shadow of shared memory against a plain history, wgmma's layouts and
// arithmetic against loops.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/emulate/mma.h"
#include "backend/emulate/shadow.h"
#include "backend/emulate/wgmma.h"
#include "backend/ptx/device_hopper.h"
#include "vm/base/numeric.h"

namespace {
using namespace tile;
using namespace tile::emu;

/// Every access to one byte since its last write, nothing forgotten.
struct PlainByte {
  Access write;
  std::vector<Access> reads;
};

uint32_t next(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

/// Random accesses of 64 threads to 32 bytes, some by whole warps, with barriers of the block and, if `handing_over`,
/// one-sided orders.
void compare_with_plain(uint32_t seed, bool handing_over) {
  HappensBefore order;
  order.reset(64, 64);
  if (handing_over) order.expect_more();
  Shadow shadow(order);
  shadow.reset(32);
  std::vector<PlainByte> plain(32);
  std::vector<Clocks> objects(4);
  uint32_t state = seed;
  for (int i = 0; i < 300; ++i) {
    const uint32_t what = next(state) % 100, thread = next(state) % 3 * 31 % 64 + next(state) % 2;
    if (what < 8) {
      order.barrier();
      continue;
    }
    if (handing_over && what < 40) {
      if (what < 24) {
        order.release(thread, objects[what % 4]);
      } else {
        order.acquire(thread, objects[what % 4]);
      }
      continue;
    }
    const uint32_t bytes = 1u << next(state) % 5, addr = next(state) % (32 / bytes) * bytes;
    const bool writes = next(state) % 5 == 0, by_warp = !writes && next(state) % 3 == 0;
    Access who{order.now(thread), static_cast<uint32_t>(i), static_cast<uint16_t>(thread)};
    who.warp_wide = by_warp;
    Observer by = by_warp ? Observer(order, thread / 32 * 32, 32) : Observer(order, thread);
    bool expect = false;
    for (uint32_t b = addr; b < addr + bytes; ++b) {
      const PlainByte& p = plain[b];
      Observer fresh = by_warp ? Observer(order, thread / 32 * 32, 32) : Observer(order, thread);
      const bool unknown_write = p.write.agent != kNobody && !fresh.knows(p.write);
      bool conflict = unknown_write || (!writes && p.write.agent == kNobody);
      if (writes)
        for (const auto& r : p.reads) conflict = conflict || !fresh.knows(r);
      expect = expect || conflict;
    }
    const Conflict c = writes ? shadow.write(by, addr, bytes, who) : shadow.read(by, addr, bytes, who);
    CAPTURE(seed);
    CAPTURE(i);
    REQUIRE((c.hazard != Hazard::None) == expect);
    if (expect && c.hazard != Hazard::Uninitialised) return;  // a run ends here
    if (expect) {
      // Make these bytes known, so that the run goes on. The shadow has taken the reads before the first byte that was
      // never written.
      order.barrier();
      Access init{order.now(0), 0, 0};
      Observer all(order, 0);
      REQUIRE(shadow.write(all, 0, 16, init).hazard == Hazard::None);
      REQUIRE(shadow.write(all, 16, 16, init).hazard == Hazard::None);
      for (auto& p : plain) p = {init, {}};
      order.barrier();
      continue;
    }
    for (uint32_t b = addr; b < addr + bytes; ++b) {
      if (writes) {
        plain[b] = {who, {}};
      } else {
        plain[b].reads.push_back(who);
      }
    }
  }
}

TEST_CASE("emulation: the shadow finds what a plain history of every byte finds") {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    compare_with_plain(seed, false);
    compare_with_plain(seed, true);
  }
}

TEST_CASE("emulation: an access in flight is known to nobody until it completes") {
  HappensBefore order;
  order.reset(32, 32);
  Shadow shadow(order);
  shadow.reset(16);
  const Access copy{kInFlight, 7, 3};
  Observer self(order, 3), other(order, 4);
  CHECK(shadow.write(self, 0, 16, copy).hazard == Hazard::None);
  const Access read{order.now(3), 8, 3};
  CHECK(shadow.read(self, 4, 4, read).hazard == Hazard::ReadOfWrite);
  shadow.complete(0, 16, copy, order.now(3));
  CHECK(shadow.read(self, 4, 4, read).hazard == Hazard::None);
  CHECK(shadow.read(other, 4, 4, {order.now(4), 9, 4}).hazard == Hazard::ReadOfWrite);
  order.barrier();
  CHECK(shadow.read(other, 4, 4, {order.now(4), 9, 4}).hazard == Hazard::None);
}

TEST_CASE("emulation: what the asynchronous proxy reads needs a fence") {
  HappensBefore order;
  order.reset(64, 65);
  Shadow shadow(order);
  shadow.reset(16);
  Observer writer(order, 0), issuer(order, 40);
  CHECK(shadow.write(writer, 0, 16, {order.now(0), 1, 0}).hazard == Hazard::None);
  Access copy{1, 2, 64};
  copy.async = true;
  order.barrier();
  CHECK(shadow.read(issuer, 0, 16, copy).hazard == Hazard::NotFenced);
  order.fence_async(0);
  CHECK(shadow.read(issuer, 0, 16, copy).hazard == Hazard::NotFenced);  // nobody told the issuer
  order.barrier();
  CHECK(shadow.read(issuer, 0, 16, copy).hazard == Hazard::None);
}

// --- wgmma ---

/// Where element (r, k) of an operand lies, written after the tables of layouts, independent of each_chunk.
uint32_t place(uint32_t start, uint32_t leading, uint32_t stride, unsigned swizzle, bool mn_major, unsigned eb,
               uint32_t r, uint32_t k) {
  const uint32_t w = 16u << swizzle, kb = k * eb, e = w / 2;
  uint32_t offset = 0;
  if (!mn_major && swizzle != 0) offset = r % 8 * w + r / 8 * stride + kb;
  if (!mn_major && swizzle == 0) offset = r % 8 * 16 + r / 8 * stride + kb / 16 * leading + kb % 16;
  if (mn_major && swizzle != 0) offset = r % e * 2 + r / e * leading + k % 8 * w + k / 8 * stride;
  if (mn_major && swizzle == 0) offset = r % 8 * 2 + r / 8 * stride + k % 8 * 16 + k / 8 * leading;
  const uint32_t a = start + offset;
  return a ^ (((a >> 7) & ((1u << swizzle) - 1)) << 4);
}

struct WgmmaTest {
  MmaKind kind;
  unsigned n;
  unsigned swizzle_a, swizzle_b;
  bool a_mn, b_mn, registers, scale;
};

void check_wgmma(const WgmmaTest& t) {
  const WgmmaShape shape{static_cast<uint32_t>(t.kind), 2, t.n, t.a_mn, t.b_mn};  // F8: A e4m3, B e5m2
  const unsigned eb = shape.element_bytes(), depth = shape.k(), bits = eb * 8;
  uint32_t state = 99 + t.n + static_cast<uint32_t>(t.kind) * 7;
  std::vector<std::byte> shared(96 * 1024);
  std::vector<uint32_t> a(64 * depth), b(t.n * depth), registers(512);
  std::vector<std::vector<uint32_t>> d(128, std::vector<uint32_t>(shape.registers()));
  // Exponents stay small, so that sums are finite and not all rounding.
  const uint32_t mask = bits == 8 ? 0xBF : bits == 16 ? (t.kind == MmaKind::BF16F32 ? 0xBFFF : 0xB7FF) : 0xBFFFFFFF;
  for (auto* v : {&a, &b})
    for (auto& x : *v) x = (next(state) << 12 ^ next(state)) & mask;
  const uint32_t start_a = 1024, start_b = 49152;
  // Dense offsets. K-major under a swizzle: rows of one atom's width; else blocks of 8 rows.
  const auto offsets = [&](bool mn, unsigned swizzle, unsigned rows) -> std::pair<uint32_t, uint32_t> {
    const uint32_t w = 16u << swizzle;
    if (!mn) return swizzle ? std::pair{16u, 8 * w} : std::pair{rows * 16, 128u};
    return swizzle ? std::pair{16 * w, 8 * w} : std::pair{rows * 16, 128u};
  };
  const auto [lead_a, stride_a] = offsets(t.a_mn, t.swizzle_a, 64);
  const auto [lead_b, stride_b] = offsets(t.b_mn, t.swizzle_b, t.n);
  for (uint32_t r = 0; r < 64; ++r)
    for (uint32_t k = 0; k < depth; ++k)
      std::memcpy(&shared[place(start_a, lead_a, stride_a, t.swizzle_a, t.a_mn, eb, r, k)], &a[r * depth + k], eb);
  for (uint32_t r = 0; r < t.n; ++r)
    for (uint32_t k = 0; k < depth; ++k)
      std::memcpy(&shared[place(start_b, lead_b, stride_b, t.swizzle_b, t.b_mn, eb, r, k)], &b[r * depth + k], eb);
  const unsigned per = 4 / eb;
  for (uint32_t th = 0; th < 128; ++th)
    for (uint32_t i = 0; i < 4; ++i)
      for (uint32_t e = 0; e < per; ++e)
        registers[th * 4 + i] |=
            a[(th / 32 * 16 + th % 32 / 4 + 8 * (i & 1)) * depth + th % 4 * per + e + 4 * per * (i >> 1)]
            << (e * bits % 32);
  const bool half = t.kind == MmaKind::F16F16, integer = t.kind >= MmaKind::S8 && t.kind <= MmaKind::U8S8;
  for (auto& v : d)
    for (auto& x : v)
      x = integer ? next(state) << 8
          : half  ? next(state) & 0x37FF37FF
                  : float_bits(static_cast<float>(next(state) % 1000) / 16);
  const auto before = d;
  std::array<void*, 128> pointers;
  for (size_t i = 0; i < 128; ++i) pointers[i] = d[i].data();
  execute_wgmma(shape, t.scale, shared.data(), start_a >> 4 | wgmma_descriptor(lead_a, stride_a, t.swizzle_a),
                t.registers ? registers.data() : nullptr,
                start_b >> 4 | wgmma_descriptor(lead_b, stride_b, t.swizzle_b), pointers);
  size_t wrong = 0;
  for (uint32_t th = 0; th < 128; ++th)
    for (uint32_t i = 0; i < t.n / 2; ++i) {
      const uint32_t row = th / 32 * 16 + th % 32 / 4 + 8 * (i >> 1 & 1), column = i / 4 * 8 + th % 4 * 2 + (i & 1);
      const auto word = [&](const std::vector<uint32_t>& v) {
        return half ? v[i / 2] >> (16 * (i & 1)) & 0xFFFF : v[i];
      };
      const uint32_t old = word(before[th]);
      float sum = !t.scale ? 0 : half ? f16_to_f32(static_cast<uint16_t>(old)) : float_of(old);
      uint32_t whole = t.scale ? old : 0;
      for (uint32_t k = 0; k < depth; ++k) {
        const float x = operand_value(shape.kind, shape.formats, false, a[row * depth + k]),
                    y = operand_value(shape.kind, shape.formats, true, b[column * depth + k]);
        sum = std::fma(x, y, sum);
        whole += static_cast<uint32_t>(static_cast<int32_t>(x) * static_cast<int32_t>(y));
      }
      wrong += word(d[th]) != (integer           ? whole
                               : half            ? f32_to_f16(sum)
                               : std::isnan(sum) ? 0x7FFFFFFF
                                                 : float_bits(sum));
    }
  CAPTURE(static_cast<int>(t.kind));
  CAPTURE(t.swizzle_a);
  CAPTURE(t.a_mn);
  CAPTURE(t.registers);
  CHECK(wrong == 0);
}

TEST_CASE("emulation: wgmma of every kind and layout agrees with plain loops") {
  for (unsigned swizzle = 0; swizzle < 4; ++swizzle) {
    for (const auto kind : {MmaKind::F16F32, MmaKind::BF16F32, MmaKind::F16F16, MmaKind::TF32F32, MmaKind::S8,
                            MmaKind::U8, MmaKind::S8U8, MmaKind::U8S8, MmaKind::F8F32})
      check_wgmma({kind, 32, swizzle, 3 - swizzle, false, false, false, swizzle != 2});
    for (const auto kind : {MmaKind::F16F32, MmaKind::BF16F32, MmaKind::F16F16}) {
      check_wgmma({kind, 128, swizzle, swizzle, true, true, false, true});
      check_wgmma({kind, 256, swizzle, swizzle, false, true, false, true});
    }
  }
  for (const auto kind : {MmaKind::F16F32, MmaKind::TF32F32, MmaKind::F8F32, MmaKind::S8U8})
    check_wgmma({kind, 8, 3, 3, false, false, true, true});
}

}  // namespace
