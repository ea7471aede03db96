// Matrix products of an H200: checksums of results that products compiled by tileiras 13.5 for sm_90 gave on one.
#include "vm/interp/numerics_h200_mma.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "h200_recordings.h"
#include "vm/base/numeric.h"
#include "vm/interp/kernel_types.h"

namespace tile {
namespace {

using Bytes = std::vector<unsigned char>;

struct Recorded {
  ElementType type, acc;
  size_t m, n, k, steps;
  bool zero;        ///< the accumulator starts at zero
  size_t blocks;
  uint32_t plain, scaled;  ///< checksums: of numbers near 1, and of the same with powers of two from 2^-5 to 2^5
};

const Recorded kRecorded[] = {
    {ElementType::F16, ElementType::F32, 16, 16, 16, 1, false, 8, 0x6F756629, 0x969F6BE4},
    {ElementType::F16, ElementType::F32, 16, 16, 16, 4, true, 8, 0xAC493BE2, 0x470DEA40},
    {ElementType::F16, ElementType::F32, 16, 32, 16, 1, false, 8, 0xC2F4653E, 0x2344CDB5},
    {ElementType::F16, ElementType::F32, 16, 32, 16, 4, true, 8, 0x19B22B5D, 0x283299F2},
    {ElementType::F16, ElementType::F32, 32, 32, 32, 1, false, 8, 0x561A896E, 0xF0150720},
    {ElementType::F16, ElementType::F32, 32, 32, 32, 4, true, 8, 0xE3E51CFA, 0x90EC19E3},
    {ElementType::F16, ElementType::F32, 64, 64, 32, 1, false, 8, 0x6DB3B7F6, 0xF249FCBD},
    {ElementType::F16, ElementType::F32, 64, 64, 64, 1, false, 8, 0x28C33F2B, 0xB0311C61},
    {ElementType::F16, ElementType::F32, 128, 128, 32, 1, false, 4, 0x303A9E1F, 0x03D0F956},
    {ElementType::F16, ElementType::F32, 8, 16, 32, 1, false, 8, 0xF6F6F936, 0x5D79E3BC},
    {ElementType::F16, ElementType::F32, 8, 16, 32, 4, true, 8, 0xDE286183, 0x014A708F},
    {ElementType::F16, ElementType::F32, 16, 16, 32, 1, false, 8, 0xB7DB3AFB, 0x039488A0},
    {ElementType::F16, ElementType::F32, 16, 16, 32, 4, true, 8, 0x0B3CC943, 0x1C723BA6},
    {ElementType::F16, ElementType::F32, 32, 32, 16, 1, false, 8, 0xA716488E, 0x87DD479D},
    {ElementType::F16, ElementType::F32, 32, 32, 16, 4, true, 8, 0x50528BC6, 0xC3BC5EB3},
    {ElementType::F16, ElementType::F32, 64, 16, 16, 1, false, 8, 0x93317088, 0xB1CB0E71},
    {ElementType::F16, ElementType::F32, 64, 16, 16, 4, true, 8, 0x3E34B38C, 0x2958EAC6},
    {ElementType::F16, ElementType::F32, 16, 64, 16, 1, false, 8, 0xFF95BDCE, 0x83B0E70A},
    {ElementType::F16, ElementType::F32, 16, 64, 16, 4, true, 8, 0x6FEF502E, 0x93DE2851},
    {ElementType::BF16, ElementType::F32, 16, 16, 16, 1, false, 8, 0x4002851C, 0x2CB20559},
    {ElementType::BF16, ElementType::F32, 16, 16, 16, 4, true, 8, 0x0E6CB4D4, 0xE1A86AA6},
    {ElementType::BF16, ElementType::F32, 16, 32, 16, 1, false, 8, 0xAEA917D6, 0xCCBE6E68},
    {ElementType::BF16, ElementType::F32, 16, 32, 16, 4, true, 8, 0x7347F0C3, 0xA4250BE7},
    {ElementType::BF16, ElementType::F32, 32, 32, 32, 1, false, 8, 0x3CB3C943, 0xC57EE612},
    {ElementType::BF16, ElementType::F32, 32, 32, 32, 4, true, 8, 0x8E86431F, 0xDAB6A0D4},
    {ElementType::BF16, ElementType::F32, 64, 64, 32, 1, false, 8, 0x66B835E5, 0x01A0B5DE},
    {ElementType::BF16, ElementType::F32, 64, 64, 64, 1, false, 8, 0x63BE3FAC, 0x385852F0},
    {ElementType::BF16, ElementType::F32, 128, 128, 32, 1, false, 4, 0xF89B2FC2, 0x6AFC0D67},
    {ElementType::BF16, ElementType::F32, 8, 16, 32, 1, false, 8, 0x67D08016, 0x00A679D4},
    {ElementType::BF16, ElementType::F32, 8, 16, 32, 4, true, 8, 0x771F867A, 0x0B0A16CE},
    {ElementType::BF16, ElementType::F32, 16, 16, 32, 1, false, 8, 0x9843154A, 0x43BD978A},
    {ElementType::BF16, ElementType::F32, 16, 16, 32, 4, true, 8, 0x7601D506, 0x6D6CA3ED},
    {ElementType::BF16, ElementType::F32, 32, 32, 16, 1, false, 8, 0xC6640568, 0x5CCB367D},
    {ElementType::BF16, ElementType::F32, 32, 32, 16, 4, true, 8, 0x18354E35, 0x87A8EAF6},
    {ElementType::BF16, ElementType::F32, 64, 16, 16, 1, false, 8, 0xCCD323D6, 0xFDD5D47E},
    {ElementType::BF16, ElementType::F32, 64, 16, 16, 4, true, 8, 0x563242FA, 0x5E947EC0},
    {ElementType::BF16, ElementType::F32, 16, 64, 16, 1, false, 8, 0xF3CB33E2, 0x0311B535},
    {ElementType::BF16, ElementType::F32, 16, 64, 16, 4, true, 8, 0x7D4D1F0C, 0xAB6484D1},
    {ElementType::TF32, ElementType::F32, 16, 16, 8, 1, false, 8, 0x3ED02F62, 0xE7254A51},
    {ElementType::TF32, ElementType::F32, 16, 16, 8, 4, true, 8, 0x58CDC6EF, 0x821E05E8},
    {ElementType::TF32, ElementType::F32, 16, 32, 8, 1, false, 8, 0x53C8D040, 0x6A1B9D90},
    {ElementType::TF32, ElementType::F32, 16, 32, 8, 4, true, 8, 0x79600E18, 0x2A1687EC},
    {ElementType::TF32, ElementType::F32, 32, 32, 32, 1, false, 8, 0xF536259F, 0x6252070E},
    {ElementType::TF32, ElementType::F32, 32, 32, 32, 4, true, 8, 0x7B07EF64, 0x80EFF42C},
    {ElementType::TF32, ElementType::F32, 64, 64, 32, 1, false, 8, 0x4DC5F005, 0x54BF1662},
    {ElementType::TF32, ElementType::F32, 64, 64, 64, 1, false, 8, 0x83DCE7BA, 0x255AB66B},
    {ElementType::TF32, ElementType::F32, 128, 128, 32, 1, false, 4, 0x394427D9, 0x7A42AC40},
    {ElementType::F16, ElementType::F16, 16, 32, 16, 1, false, 8, 0xFCBADDF6, 0xC1259F0E},
    {ElementType::F16, ElementType::F16, 16, 32, 16, 4, true, 8, 0x5013D795, 0x3EE3C7F2},
    {ElementType::F16, ElementType::F16, 64, 64, 64, 1, false, 8, 0x944F14BD, 0xFEA11291},
    {ElementType::F32, ElementType::F32, 16, 16, 8, 1, false, 8, 0x4625CDB8, 0x7B1722AB},
    {ElementType::F32, ElementType::F32, 16, 16, 8, 4, true, 8, 0xDB31D2C8, 0x7ABE19D5},
    {ElementType::F32, ElementType::F32, 16, 32, 8, 1, false, 8, 0x873CA40D, 0xA04A2383},
    {ElementType::F32, ElementType::F32, 16, 32, 8, 4, true, 8, 0x8E77D529, 0x2947DB8B},
    {ElementType::F32, ElementType::F32, 32, 32, 32, 1, false, 8, 0xC0442CBF, 0x519A41E1},
    {ElementType::F32, ElementType::F32, 32, 32, 32, 4, true, 8, 0xD02B3067, 0x7176B4C4},
    {ElementType::F32, ElementType::F32, 64, 64, 32, 1, false, 8, 0x13B8DCC6, 0x82647BA2},
    {ElementType::F32, ElementType::F32, 64, 64, 64, 1, false, 8, 0xDC3638F3, 0x23C90583},
    {ElementType::F32, ElementType::F32, 128, 128, 32, 1, false, 4, 0x46750991, 0xEB3BA351},
    {ElementType::F64, ElementType::F64, 16, 16, 8, 1, false, 8, 0xF32049C1, 0x27B2353B},
    {ElementType::F64, ElementType::F64, 16, 16, 8, 4, true, 8, 0xFD6471F8, 0xB156F4C8},
    {ElementType::F64, ElementType::F64, 16, 32, 8, 1, false, 8, 0xBC860576, 0xD3CEEF72},
    {ElementType::F64, ElementType::F64, 16, 32, 8, 4, true, 8, 0xDB7C355F, 0xC56B7D5E},
    {ElementType::F64, ElementType::F64, 32, 32, 32, 1, false, 8, 0x31A54115, 0xEB5F7209},
    {ElementType::F64, ElementType::F64, 32, 32, 32, 4, true, 8, 0x1B54BCA0, 0x24387941},
    {ElementType::F64, ElementType::F64, 64, 64, 32, 1, false, 8, 0x08849554, 0xB24FB265},
    {ElementType::F64, ElementType::F64, 64, 64, 64, 1, false, 8, 0xF47A8ABC, 0x211544A0},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 16, 32, 1, false, 8, 0x2B0510F8, 0x1830884F},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 16, 32, 4, true, 8, 0xC7F992ED, 0xD962AD3A},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 32, 32, 1, false, 8, 0x3D237B83, 0x11B4E91D},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 32, 32, 4, true, 8, 0xEC4CF0C1, 0x3C250229},
    {ElementType::F8E4M3FN, ElementType::F32, 32, 32, 32, 1, false, 8, 0x44096219, 0xA1FEE774},
    {ElementType::F8E4M3FN, ElementType::F32, 32, 32, 32, 4, true, 8, 0x3B058227, 0x3C8FB6AE},
    {ElementType::F8E4M3FN, ElementType::F32, 64, 64, 32, 1, false, 8, 0x3A10D805, 0xA2428819},
    {ElementType::F8E4M3FN, ElementType::F32, 64, 64, 64, 1, false, 8, 0xC0550D3A, 0x96985CE1},
    {ElementType::F8E4M3FN, ElementType::F32, 128, 128, 32, 1, false, 4, 0xEFB6F7BC, 0xA3F3BAA5},
    {ElementType::F8E5M2, ElementType::F32, 16, 16, 32, 1, false, 8, 0x94E48ABC, 0x8ADBB1FF},
    {ElementType::F8E5M2, ElementType::F32, 16, 16, 32, 4, true, 8, 0x0C71331F, 0xE59B93C0},
    {ElementType::F8E5M2, ElementType::F32, 16, 32, 32, 1, false, 8, 0x1AB6881A, 0x3DD9244D},
    {ElementType::F8E5M2, ElementType::F32, 16, 32, 32, 4, true, 8, 0xB0FD8334, 0x85495BEF},
    {ElementType::F8E5M2, ElementType::F32, 32, 32, 32, 1, false, 8, 0xD1F9F9FA, 0x2AA36504},
    {ElementType::F8E5M2, ElementType::F32, 32, 32, 32, 4, true, 8, 0x72C1D405, 0x4990AB54},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 32, 1, false, 8, 0x95AB06D1, 0xF55315FA},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 64, 1, false, 8, 0xDE072FE2, 0x3A0DDB3E},
    {ElementType::F8E5M2, ElementType::F32, 128, 128, 32, 1, false, 4, 0x7EC14B1A, 0x79D640FF},
};

/// Storage bits as they were recorded: rounded to nearest in f16, f32 and f64, else cut off.
uint64_t stored(ElementType t, double x) {
  if (t == ElementType::TF32) return f32_to_tf32(static_cast<float>(x));
  if (t == ElementType::BF16) return float_bits(static_cast<float>(x)) >> 16;
  if (t == ElementType::F8E5M2) return encode(ElementType::F16, x) >> 8;
  return encode(t, x, t == ElementType::F8E4M3FN ? Rounding::Zero : Rounding::NearestEven);
}

/// `which` 1: multiplied by powers of two.
Bytes operand(ElementType t, size_t count, uint64_t salt, bool scaled, uint64_t scale_salt, double factor) {
  const size_t size = info(t).storage;
  Bytes bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    double x = about_normal(i, salt + (scaled ? 1 : 0));
    if (scaled) x = x * std::ldexp(1.0, static_cast<int>(mixed(i + scale_salt) % 11) - 5) * factor;
    const uint64_t bits = stored(t, x);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

/// All blocks; `acc` becomes the result.
void multiply(const Recorded& r, bool fast, const Bytes& lhs, const Bytes& rhs, Bytes& acc) {
  const size_t depth = r.k * r.steps, size = info(r.type).storage, row = r.k * size;
  if (r.zero) acc.assign(acc.size(), 0);
  ProductDesc p;
  p.fast = fast;
  MmaDesc& d = p.mma;
  d.lhs_rhs = r.type;
  d.acc = r.acc;
  d.m = r.m;
  d.n = r.n;
  d.k = r.k;
  const bool exact = product_path_h200(p) == ProductPath::Exact;
  const size_t result = r.m * r.n * info(r.acc).storage;
  Bytes scratch(exact ? mma_scratch_bytes(d) : mma_scratch_bytes_h200(d)), left(r.m * row);
  for (size_t b = 0; b < r.blocks; ++b)
    for (size_t s = 0; s < r.steps; ++s) {
      for (size_t i = 0; i < r.m; ++i) std::memcpy(&left[i * row], &lhs[((b * r.m + i) * depth + s * r.k) * size], row);
      const unsigned char* right = &rhs[(b * depth + s * r.k) * r.n * size];
      unsigned char* to = &acc[b * result];
      if (exact) {
        mma(d, to, left.data(), right, to, scratch.data());
      } else {
        mma_rows_h200(p, 0, r.m, to, left.data(), right, to, scratch.data());
      }
    }
}

uint32_t checksum(const Recorded& r, bool scaled) {
  const size_t depth = r.k * r.steps;
  const Bytes lhs = operand(r.type, r.blocks * r.m * depth, 10, scaled, 1, 1), rhs = operand(r.type, r.blocks * depth * r.n, 20, scaled, 2, 1);
  Bytes acc = operand(r.acc, r.blocks * r.m * r.n, 30, scaled, 3, 4);
  multiply(r, false, lhs, rhs, acc);
  return crc32(acc.data(), acc.size());
}

struct Special {
  ElementType type, acc;
  size_t m, n, k, steps;
  bool zero, fast;
  size_t blocks;
  uint32_t results;  ///< checksum of those of all sixteen sets
};

/// Recorded with infinities, NaN, subnormal numbers and zeros among the operands.
const Special kSpecial[] = {
    {ElementType::F16, ElementType::F32, 16, 16, 16, 1, false, false, 8, 0x89D3D180},
    {ElementType::F16, ElementType::F32, 16, 32, 16, 1, false, false, 8, 0x9D08E9D1},
    {ElementType::F16, ElementType::F32, 64, 64, 16, 1, false, false, 4, 0x255DA311},
    {ElementType::F16, ElementType::F32, 16, 32, 8, 1, false, false, 8, 0xEA438D46},
    {ElementType::F16, ElementType::F32, 64, 64, 8, 1, false, false, 4, 0x01C6B4EB},
    {ElementType::F16, ElementType::F32, 64, 32, 64, 2, false, false, 8, 0x412203EF},
    {ElementType::BF16, ElementType::F32, 16, 16, 16, 1, false, false, 8, 0x0D267704},
    {ElementType::BF16, ElementType::F32, 16, 32, 16, 1, false, false, 8, 0x1328C799},
    {ElementType::BF16, ElementType::F32, 64, 64, 16, 1, false, false, 4, 0xA6BC6AFF},
    {ElementType::BF16, ElementType::F32, 16, 32, 8, 1, false, false, 8, 0x933CF10A},
    {ElementType::BF16, ElementType::F32, 64, 64, 8, 1, false, false, 4, 0x3D8F5808},
    {ElementType::TF32, ElementType::F32, 16, 16, 8, 1, false, false, 8, 0x3E80005C},
    {ElementType::TF32, ElementType::F32, 16, 32, 8, 1, false, false, 8, 0x935B3E1E},
    {ElementType::TF32, ElementType::F32, 64, 64, 8, 1, false, false, 4, 0x6A791944},
    {ElementType::TF32, ElementType::F32, 64, 32, 64, 2, false, false, 8, 0x39208DE8},
    {ElementType::F32, ElementType::F32, 16, 16, 8, 1, false, false, 8, 0x23AB8224},
    {ElementType::F64, ElementType::F64, 8, 8, 8, 1, false, false, 8, 0xCD45CA55},
    {ElementType::F64, ElementType::F64, 16, 16, 8, 1, false, false, 8, 0xDE45C354},
    {ElementType::F64, ElementType::F64, 64, 64, 16, 1, false, false, 4, 0x02F85A37},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 16, 32, 1, false, false, 8, 0x8220287B},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 32, 32, 1, false, false, 8, 0x0603D5BB},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 32, 8, 1, false, false, 8, 0xE666B550},
    {ElementType::F8E4M3FN, ElementType::F32, 64, 64, 32, 1, false, false, 4, 0x7404437C},
    {ElementType::F8E4M3FN, ElementType::F32, 64, 64, 16, 1, false, false, 4, 0xB4FB0D2E},
    {ElementType::F8E4M3FN, ElementType::F32, 64, 64, 32, 1, false, true, 4, 0x16DFB7AC},
    {ElementType::F8E4M3FN, ElementType::F32, 16, 32, 32, 2, false, true, 8, 0x25F79FEB},
    {ElementType::F8E4M3FN, ElementType::F16, 16, 16, 32, 1, false, false, 8, 0xDFC99DEF},
    {ElementType::F8E4M3FN, ElementType::F16, 16, 32, 32, 1, false, false, 8, 0xFB133578},
    {ElementType::F8E4M3FN, ElementType::F16, 16, 32, 8, 1, false, false, 8, 0x728364BD},
    {ElementType::F8E4M3FN, ElementType::F16, 64, 64, 32, 1, false, false, 4, 0x0DE9EDCF},
    {ElementType::F8E4M3FN, ElementType::F16, 64, 64, 16, 1, false, false, 4, 0xF1A18033},
    {ElementType::F8E4M3FN, ElementType::F16, 64, 64, 32, 1, false, true, 4, 0x0DE9EDCF},
    {ElementType::F8E4M3FN, ElementType::F16, 16, 32, 32, 2, false, true, 8, 0x5272A486},
    {ElementType::F8E5M2, ElementType::F32, 16, 16, 32, 1, false, false, 8, 0xCD0DD3BB},
    {ElementType::F8E5M2, ElementType::F32, 16, 32, 32, 1, false, false, 8, 0x22A15D2A},
    {ElementType::F8E5M2, ElementType::F32, 16, 32, 8, 1, false, false, 8, 0x2FDCFA2A},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 32, 1, false, false, 4, 0x5605E91A},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 16, 1, false, false, 4, 0xE09CC2D1},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 64, 2, false, false, 4, 0x61D49D94},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 32, 1, false, true, 4, 0x060E3A74},
    {ElementType::F8E5M2, ElementType::F32, 64, 64, 64, 2, false, true, 4, 0x96F1592D},
    {ElementType::F8E5M2, ElementType::F32, 16, 32, 32, 2, false, true, 8, 0x05495C4B},
    {ElementType::F8E5M2, ElementType::F16, 16, 16, 32, 1, false, false, 8, 0xEBF46CE5},
    {ElementType::F8E5M2, ElementType::F16, 16, 32, 32, 1, false, false, 8, 0xC58D7908},
    {ElementType::F8E5M2, ElementType::F16, 16, 32, 8, 1, false, false, 8, 0x3CE250FE},
    {ElementType::F8E5M2, ElementType::F16, 64, 64, 32, 1, false, false, 4, 0x3A87C4A4},
    {ElementType::F8E5M2, ElementType::F16, 64, 64, 16, 1, false, false, 4, 0xD42714B2},
    {ElementType::F8E5M2, ElementType::F16, 64, 64, 64, 2, false, false, 4, 0x1EACED5A},
    {ElementType::F8E5M2, ElementType::F16, 64, 64, 32, 1, false, true, 4, 0x3A87C4A4},
    {ElementType::F8E5M2, ElementType::F16, 64, 64, 64, 2, false, true, 4, 0x1EACED5A},
    {ElementType::F8E5M2, ElementType::F16, 16, 32, 32, 2, false, true, 8, 0x61D92719},
    {ElementType::F16, ElementType::F16, 8, 16, 16, 1, false, false, 8, 0x4BF72D3A},
    {ElementType::F16, ElementType::F16, 16, 16, 16, 1, false, false, 8, 0x39F3019C},
    {ElementType::F16, ElementType::F16, 16, 32, 16, 1, false, false, 8, 0xE01D23DA},
    {ElementType::F16, ElementType::F16, 16, 32, 8, 1, false, false, 8, 0xEF346BF5},
    {ElementType::F16, ElementType::F16, 64, 64, 16, 1, false, false, 4, 0xDDA73E14},
    {ElementType::F16, ElementType::F16, 64, 64, 8, 1, false, false, 4, 0x61510BD1},
    {ElementType::F16, ElementType::F16, 8, 32, 4, 1, false, false, 8, 0xCC754A49},
    {ElementType::F16, ElementType::F16, 16, 16, 16, 4, true, false, 8, 0x03DE1CB5},
    {ElementType::F16, ElementType::F16, 64, 64, 64, 2, false, false, 4, 0xA77FF7A5},
};

/// Which exponents the bits of an operand have. Ones: mostly zeros of both signs instead.
enum class Exponents { Any, LowestQuarter, Ones, LowestFour, UpperQuarter, Middle };

struct Format {
  int exponent, significand;  ///< bits
};
Format format_of(ElementType t) {
  switch (t) {
    case ElementType::F16: return {5, 10};
    case ElementType::BF16: return {8, 7};
    case ElementType::F64: return {11, 52};
    case ElementType::F8E4M3FN: return {4, 3};
    case ElementType::F8E5M2: return {5, 2};
    default: return {8, 23};
  }
}

struct Range {
  uint64_t first, count;
};
Range range_of(Exponents which, uint64_t all) {
  switch (which) {
    case Exponents::LowestQuarter: return {0, all / 4};
    case Exponents::Ones: return {all / 2 - 1, 1};
    case Exponents::LowestFour: return {0, 4};
    case Exponents::UpperQuarter: return {all * 3 / 4 - 1, all / 4};
    default: return {all / 2 - 2, 4};
  }
}

Bytes special_operand(ElementType t, size_t count, Exponents which, uint64_t salt, uint64_t sparse_salt) {
  const size_t size = info(t).storage;
  const Format f = format_of(t);
  const uint64_t all = ~uint64_t{0} >> (64 - size * 8);
  const Range range = range_of(which, uint64_t{1} << f.exponent);
  Bytes bytes(count * size);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t r = mixed(i + (salt << 40)), s = mixed(i + ((salt + 1) << 40)), sign = (r >> 60 & 1) << (size * 8 - 1);
    uint64_t significand = r & ((uint64_t{1} << f.significand) - 1);
    if (t == ElementType::TF32) significand &= 0x7FE000;
    uint64_t bits = sign | (range.first + s % range.count) << f.significand | significand;
    if (which == Exponents::Any) bits = r & all;
    if (which == Exponents::Ones) bits = (s >> 20) % 8 < 6 ? sign : sign | range.first << f.significand;
    if (sparse_salt != 0 && mixed(i + (sparse_salt << 40)) % 8 != 0) bits = 0;
    if (t == ElementType::TF32) bits = f32_to_tf32(float_of(static_cast<uint32_t>(bits)));
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

uint32_t checksum(const Special& s) {
  using E = Exponents;
  constexpr E kSets[][3] = {{E::Any, E::Any, E::Any},
                            {E::LowestQuarter, E::LowestQuarter, E::LowestQuarter},
                            {E::Ones, E::Ones, E::Ones},
                            {E::LowestFour, E::Middle, E::LowestFour},
                            {E::LowestFour, E::UpperQuarter, E::Middle},
                            {E::UpperQuarter, E::Middle, E::UpperQuarter},
                            {E::Middle, E::Middle, E::Any},
                            {E::LowestQuarter, E::Middle, E::Ones}};
  const Recorded r{s.type, s.acc, s.m, s.n, s.k, s.steps, s.zero, s.blocks, 0, 0};
  const size_t depth = s.k * s.steps;
  Bytes all;
  for (uint64_t number = 0; number < 2 * std::size(kSets); ++number) {
    const E(&set)[3] = kSets[number % std::size(kSets)];
    const uint64_t salt = 16 * number, sparse = number < std::size(kSets) ? 0 : 22 + salt;
    const Bytes lhs = special_operand(s.type, s.blocks * s.m * depth, set[0], 10 + salt, sparse);
    const Bytes rhs = special_operand(s.type, s.blocks * depth * s.n, set[1], 14 + salt, 0);
    Bytes acc = special_operand(s.acc, s.blocks * s.m * s.n, set[2], 18 + salt, 0);
    multiply(r, s.fast, lhs, rhs, acc);
    all.insert(all.end(), acc.begin(), acc.end());
  }
  return crc32(all.data(), all.size());
}

TEST_CASE("matrix products of infinities, NaN, subnormal numbers and zeros have the bits of an H200") {
  for (const Special& s : kSpecial) {
    CAPTURE(info(s.type).name);
    CAPTURE(info(s.acc).name);
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    CAPTURE(s.steps);
    CAPTURE(s.fast);
    CHECK(checksum(s) == s.results);
  }
}

TEST_CASE("matrix products have the bits of an H200") {
  for (const Recorded& r : kRecorded) {
    CAPTURE(info(r.type).name);
    CAPTURE(info(r.acc).name);
    CAPTURE(r.m);
    CAPTURE(r.n);
    CAPTURE(r.k);
    CAPTURE(r.steps);
    CHECK(checksum(r, false) == r.plain);
    CHECK(checksum(r, true) == r.scaled);
  }
}

TEST_CASE("rows of a product of an H200 can be computed apart") {
  for (const auto& [type, k] : {std::pair{ElementType::F16, size_t{16}}, std::pair{ElementType::F32, size_t{8}}}) {
    ProductDesc p;
    p.batched = true;
    MmaDesc& d = p.mma;
    d.lhs_rhs = type;
    d.batch = 2;
    d.m = d.n = 32;
    d.k = k;
    const Bytes lhs = operand(type, 2 * 32 * k, 10, true, 1, 1), rhs = operand(type, 2 * k * 32, 20, true, 2, 1);
    const Bytes acc = operand(ElementType::F32, 2 * 32 * 32, 30, true, 3, 4);
    Bytes whole(acc.size()), parts(acc.size()), scratch(mma_scratch_bytes_h200(d));
    mma_rows_h200(p, 0, 64, whole.data(), lhs.data(), rhs.data(), acc.data(), scratch.data());
    for (const size_t begin : {size_t{0}, size_t{5}, size_t{40}}) {
      const size_t end = begin == 0 ? 5 : begin == 5 ? 40 : 64;
      mma_rows_h200(p, begin, end, parts.data(), lhs.data(), rhs.data(), acc.data(), scratch.data());
    }
    const bool same = whole == parts;
    CHECK(same);
  }
}

TEST_CASE("the shape of a product decides which instructions compute it") {
  const auto path = [](ElementType t, size_t m, size_t n, size_t k, size_t batch = 0) {
    ProductDesc p;
    p.batched = batch > 0;
    MmaDesc& d = p.mma;
    d.batch = std::max<size_t>(1, batch);
    d.lhs_rhs = t;
    d.m = m;
    d.n = n;
    d.k = k;
    return product_path_h200(p);
  };
  CHECK(path(ElementType::F32, 128, 128, 64) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 16, 16, 64) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 32, 8, 16) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 8, 128, 16) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 128, 4, 16) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 32, 16, 4) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 32, 16, 8) == ProductPath::Tensor);
  CHECK(path(ElementType::F16, 64, 8, 16) == ProductPath::Tensor);
  CHECK(path(ElementType::TF32, 16, 32, 4) == ProductPath::Tensor);
  CHECK(path(ElementType::F64, 8, 8, 4) == ProductPath::Sum);
  CHECK(path(ElementType::F64, 8, 32, 4) == ProductPath::Chain);
  CHECK(path(ElementType::F16, 16, 16, 16, 2) == ProductPath::Tensor);
  CHECK(path(ElementType::F16, 16, 8, 16, 2) == ProductPath::Sum);
  CHECK(path(ElementType::F16, 8, 16, 16, 16) == ProductPath::Sum);
  CHECK(path(ElementType::F64, 8, 8, 8, 4) == ProductPath::Chain);
  CHECK(path(ElementType::F64, 8, 8, 8, 2) == ProductPath::Sum);
  CHECK(path(ElementType::F64, 8, 16, 4) == ProductPath::Sum);
  CHECK(path(ElementType::I8, 64, 64, 32) == ProductPath::Exact);
}

}  // namespace
}  // namespace tile
