// Reductions and scans in the order of an H200: checksums of what kernels compiled by tileiras 13.5 for sm_90 gave on one.
#include "vm/interp/numerics_h200_reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "h200_recordings.h"
#include "vm/base/numeric.h"
#include "vm/interp/numerics_h200.h"

namespace tile {
namespace {

enum class How { Sum, Product, Scan, ReverseScan };

struct Recorded {
  How how;
  ElementType type;
  std::vector<int64_t> shape;  ///< of the tile that one block loads
  size_t dim, blocks;
  uint32_t plain, scaled;      ///< checksums: of numbers near 1, and of other ones times powers of two from 2^-4 to 2^4
};

const std::vector<Recorded>& recorded() {
  static const std::vector<Recorded> all = {
      {How::Sum, ElementType::F32, {8}, 0, 64, 0xD5C15EA9, 0xB9DD8167},
      {How::Sum, ElementType::F32, {16}, 0, 64, 0x9018820E, 0xA1DD21B2},
      {How::Sum, ElementType::F32, {32}, 0, 64, 0x42C7BD7E, 0x9042464E},
      {How::Sum, ElementType::F32, {64}, 0, 64, 0xE0A7DAD3, 0x630D0A28},
      {How::Sum, ElementType::F32, {128}, 0, 64, 0x716534E3, 0x97E2A65B},
      {How::Sum, ElementType::F32, {256}, 0, 64, 0x02C11171, 0x29D79BA6},
      {How::Sum, ElementType::F32, {512}, 0, 64, 0x51CD5824, 0xC65BC4C9},
      {How::Sum, ElementType::F32, {1024}, 0, 64, 0xAAF88342, 0xED84F18F},
      {How::Sum, ElementType::F32, {2048}, 0, 64, 0x607F9FFB, 0x032196CC},
      {How::Sum, ElementType::F32, {4096}, 0, 64, 0x66A8DE33, 0x40C381AB},
      {How::Sum, ElementType::F32, {8192}, 0, 64, 0xD3E8E181, 0x37B143D3},
      {How::Sum, ElementType::F32, {4, 8}, 1, 64, 0x9748A26F, 0xB713B99F},
      {How::Sum, ElementType::F32, {8, 32}, 1, 64, 0x69E6DFB2, 0x88C1B1BC},
      {How::Sum, ElementType::F32, {16, 16}, 1, 64, 0xBE96109E, 0xA3EDFFBC},
      {How::Sum, ElementType::F32, {2, 64}, 1, 64, 0x472F0703, 0x40B1C767},
      {How::Sum, ElementType::F32, {1, 64}, 1, 64, 0xE0A7DAD3, 0x630D0A28},
      {How::Sum, ElementType::F32, {128, 128}, 0, 64, 0x9603BE1A, 0x8A67A7AF},
      {How::Sum, ElementType::F32, {64, 64}, 1, 64, 0xA3D03F04, 0xFAD141EE},
      {How::Sum, ElementType::F32, {64, 64}, 0, 64, 0x6D4DAA3D, 0x4985860A},
      {How::Sum, ElementType::F32, {4, 8}, 0, 64, 0xF4D34930, 0x71C698DC},
      {How::Sum, ElementType::F32, {8, 32}, 0, 64, 0x31FB630A, 0xCE0732A6},
      {How::Sum, ElementType::F32, {16, 16}, 0, 64, 0x1B31812F, 0x872E2B33},
      {How::Sum, ElementType::F32, {2, 64}, 0, 64, 0x11792C0F, 0xF39E2188},
      {How::Sum, ElementType::F32, {32, 4}, 0, 64, 0x0F3DDFA2, 0x7CE01D89},
      {How::Sum, ElementType::F32, {32, 32}, 0, 64, 0x83FBF028, 0xD411D1BA},
      {How::Sum, ElementType::F32, {32, 32}, 1, 64, 0xF0E7E6C5, 0x1B7C9BEF},
      {How::Sum, ElementType::F32, {1, 32}, 1, 64, 0x42C7BD7E, 0x9042464E},
      {How::Sum, ElementType::F32, {1, 128}, 1, 64, 0x716534E3, 0x97E2A65B},
      {How::Sum, ElementType::F32, {1, 256}, 1, 64, 0x02C11171, 0x29D79BA6},
      {How::Sum, ElementType::F32, {1, 1024}, 1, 64, 0xAAF88342, 0xED84F18F},
      {How::Sum, ElementType::F32, {1, 4096}, 1, 64, 0x66A8DE33, 0x40C381AB},
      {How::Sum, ElementType::F32, {8, 1024}, 1, 64, 0x84836199, 0xD0FA8226},
      {How::Sum, ElementType::F32, {4, 256}, 1, 64, 0xCDB569DE, 0xF15608F6},
      {How::Sum, ElementType::F32, {64, 32}, 1, 64, 0xD0651279, 0xDEE8E239},
      {How::Sum, ElementType::F32, {256, 16}, 0, 64, 0x43D03930, 0x618A86BB},
      {How::Sum, ElementType::F32, {1024, 2}, 0, 64, 0x9E366841, 0x93938834},
      {How::Sum, ElementType::F32, {16, 64}, 1, 64, 0x676109B6, 0x9CB4EAEF},
      {How::Sum, ElementType::F32, {64, 16}, 1, 64, 0xD51E6483, 0xAD075EEE},
      {How::Sum, ElementType::F32, {2, 2}, 1, 64, 0x850DEA40, 0xF7B3AA6D},
      {How::Sum, ElementType::F32, {128, 2}, 1, 64, 0x8997D543, 0x5C93166E},
      {How::Sum, ElementType::F32, {128, 64}, 1, 64, 0xC39C3B43, 0x38838411},
      {How::Sum, ElementType::F32, {128, 32}, 1, 64, 0x3E380E8C, 0x38EA6F2B},
      {How::Sum, ElementType::F32, {64, 128}, 1, 64, 0x6B90D0F6, 0xAA43458F},
      {How::Sum, ElementType::F32, {4, 4, 16}, 2, 64, 0xBE96109E, 0xA3EDFFBC},
      {How::Sum, ElementType::F32, {4, 4, 16}, 1, 64, 0x4CCFE64F, 0x18225F16},
      {How::Sum, ElementType::F32, {4, 4, 16}, 0, 64, 0x4D9F645C, 0x06006E22},
      {How::Sum, ElementType::F32, {2, 8, 64}, 1, 64, 0x6AB5ED24, 0x1888EF26},
      {How::Sum, ElementType::F16, {16}, 0, 64, 0xD34BC9F2, 0x8CC8DD4C},
      {How::Sum, ElementType::F16, {64}, 0, 64, 0xD90752F7, 0x3717FA5C},
      {How::Sum, ElementType::F16, {128}, 0, 64, 0x19FE1A30, 0xFB96A84A},
      {How::Sum, ElementType::F16, {256}, 0, 64, 0xB8B3F313, 0xB12E21CC},
      {How::Sum, ElementType::F16, {512}, 0, 64, 0x0516EE4E, 0xEB2841AA},
      {How::Sum, ElementType::F16, {1024}, 0, 64, 0x5E8C1B6F, 0xBC3C2DA4},
      {How::Sum, ElementType::F16, {4096}, 0, 64, 0x7914D907, 0xCC2C2E1B},
      {How::Sum, ElementType::F16, {4, 8}, 1, 64, 0x4901B050, 0x54BB18FF},
      {How::Sum, ElementType::F16, {8, 32}, 1, 64, 0x79655E3D, 0xE0279DF9},
      {How::Sum, ElementType::F16, {16, 16}, 1, 64, 0xB815C107, 0x93FEB113},
      {How::Sum, ElementType::F16, {2, 64}, 1, 64, 0x485C7F0D, 0x36015C7D},
      {How::Sum, ElementType::F16, {1, 64}, 1, 64, 0xD90752F7, 0x3717FA5C},
      {How::Sum, ElementType::F16, {64, 64}, 1, 64, 0xCCB038A3, 0x6E3A8F9C},
      {How::Sum, ElementType::F16, {64, 64}, 0, 64, 0x53011619, 0x9E826E73},
      {How::Sum, ElementType::BF16, {16}, 0, 64, 0x10E55EDA, 0x92DBE045},
      {How::Sum, ElementType::BF16, {64}, 0, 64, 0xA7670BA6, 0x4402C314},
      {How::Sum, ElementType::BF16, {128}, 0, 64, 0x0F418B77, 0x3141DA4F},
      {How::Sum, ElementType::BF16, {256}, 0, 64, 0x37CE22BB, 0x038FB850},
      {How::Sum, ElementType::BF16, {512}, 0, 64, 0x0055B9B5, 0x54BDFB27},
      {How::Sum, ElementType::BF16, {1024}, 0, 64, 0x0DE292B9, 0x8433D38C},
      {How::Sum, ElementType::BF16, {4096}, 0, 64, 0xBC42042D, 0xED692476},
      {How::Sum, ElementType::BF16, {4, 8}, 1, 64, 0x5FF2C16C, 0x305F8D6C},
      {How::Sum, ElementType::BF16, {8, 32}, 1, 64, 0xA5D401AF, 0x0EE6D9DF},
      {How::Sum, ElementType::BF16, {16, 16}, 1, 64, 0x76A13536, 0xD54498F3},
      {How::Sum, ElementType::BF16, {2, 64}, 1, 64, 0x4F772769, 0x6F331DA5},
      {How::Sum, ElementType::BF16, {1, 64}, 1, 64, 0xA7670BA6, 0x4402C314},
      {How::Sum, ElementType::BF16, {64, 64}, 1, 64, 0x4CC95410, 0xC5AF6902},
      {How::Sum, ElementType::BF16, {64, 64}, 0, 64, 0x48F873F0, 0xD18D1835},
      {How::Sum, ElementType::F64, {16}, 0, 64, 0xE10358C4, 0x0EC04B53},
      {How::Sum, ElementType::F64, {64}, 0, 64, 0xF2D05763, 0x1AB74505},
      {How::Sum, ElementType::F64, {128}, 0, 64, 0xA83DF627, 0x5B3BF6BD},
      {How::Sum, ElementType::F64, {256}, 0, 64, 0x2C0B59FF, 0xC2F552E5},
      {How::Sum, ElementType::F64, {512}, 0, 64, 0xD99781B1, 0xAC64D59C},
      {How::Sum, ElementType::F64, {1024}, 0, 64, 0xB4943649, 0x7DF9CB6A},
      {How::Sum, ElementType::F64, {4096}, 0, 64, 0xE59EDC36, 0xF3011BDF},
      {How::Sum, ElementType::F64, {4, 8}, 1, 64, 0xA686B9C3, 0xC617C1CB},
      {How::Sum, ElementType::F64, {8, 32}, 1, 64, 0x95F16F4A, 0x3816CCAA},
      {How::Sum, ElementType::F64, {16, 16}, 1, 64, 0xC78D0EE7, 0x903BBFBC},
      {How::Sum, ElementType::F64, {2, 64}, 1, 64, 0x674ECBD4, 0xF100297B},
      {How::Sum, ElementType::F64, {1, 64}, 1, 64, 0xF2D05763, 0x1AB74505},
      {How::Sum, ElementType::F64, {128, 128}, 1, 64, 0xD38D9E84, 0x232503DD},
      {How::Sum, ElementType::F64, {64, 64}, 1, 64, 0x0B2BDC1E, 0x2F667BE4},
      {How::Sum, ElementType::F64, {64, 64}, 0, 64, 0x1552FC43, 0xCE68841E},
      {How::Product, ElementType::F32, {32}, 0, 8, 0x472EBBD9, 0x68EA6099},
      {How::Product, ElementType::F32, {256}, 0, 8, 0x3380CEB8, 0x7397358D},
      {How::Product, ElementType::F32, {8, 32}, 1, 8, 0x4BC847BF, 0x681D56C5},
      {How::Product, ElementType::F32, {128, 128}, 1, 8, 0xE9389580, 0xA3A9F148},
      {How::Scan, ElementType::F32, {16}, 0, 64, 0x2CAE885B, 0x974FEBBB},
      {How::ReverseScan, ElementType::F32, {16}, 0, 64, 0xE2B44FEB, 0x3E492374},
      {How::Scan, ElementType::F32, {64}, 0, 64, 0xB35D4E1A, 0x11E00EAD},
      {How::ReverseScan, ElementType::F32, {64}, 0, 64, 0x63A91361, 0x93976F5D},
      {How::Scan, ElementType::F32, {256}, 0, 64, 0x67E9673B, 0x7AA2BDDA},
      {How::ReverseScan, ElementType::F32, {256}, 0, 64, 0x199F9781, 0x23CA43C6},
      {How::Scan, ElementType::F32, {1024}, 0, 64, 0xCE828C88, 0xE0794EBD},
      {How::ReverseScan, ElementType::F32, {1024}, 0, 64, 0x982B16EA, 0x273A04C0},
      {How::Scan, ElementType::F32, {4096}, 0, 64, 0xC921ED9B, 0x30482D27},
      {How::ReverseScan, ElementType::F32, {4096}, 0, 64, 0xA3071BF7, 0xAA0A00C2},
      {How::Scan, ElementType::F32, {2, 16}, 1, 64, 0x6A3A758C, 0x82D012AA},
      {How::ReverseScan, ElementType::F32, {2, 16}, 1, 64, 0x89935AE6, 0x5BE5364C},
      {How::Scan, ElementType::F32, {8, 32}, 1, 64, 0x40BEC7FC, 0x5FDEF3C9},
      {How::ReverseScan, ElementType::F32, {8, 32}, 1, 64, 0xAE49B5DE, 0x952D02D1},
      {How::Scan, ElementType::F32, {32, 8}, 0, 64, 0x136C6D73, 0x9371E09A},
      {How::ReverseScan, ElementType::F32, {32, 8}, 0, 64, 0x934889A7, 0x68D8A47F},
      {How::Scan, ElementType::F32, {64, 64}, 1, 64, 0xD0BDCC72, 0x51EF4A59},
      {How::ReverseScan, ElementType::F32, {64, 64}, 1, 64, 0x0EB63A6F, 0x6B3E54C0},
      {How::Scan, ElementType::F32, {64, 64}, 0, 64, 0x2BB7ADB4, 0x895FD76E},
      {How::ReverseScan, ElementType::F32, {64, 64}, 0, 64, 0x34B7EC24, 0xF1DE8A6B},
      {How::Scan, ElementType::F32, {16, 16}, 1, 64, 0x24BF7090, 0x92A7335C},
      {How::ReverseScan, ElementType::F32, {16, 16}, 1, 64, 0xBFF2EA26, 0x2E4CE742},
      {How::Scan, ElementType::F32, {16, 16}, 0, 64, 0xA12B4186, 0xFCA3AC5A},
      {How::ReverseScan, ElementType::F32, {16, 16}, 0, 64, 0x65125177, 0x04925782},
      {How::Scan, ElementType::F32, {4, 256}, 1, 64, 0xE7474A93, 0x67AC01FE},
      {How::ReverseScan, ElementType::F32, {4, 256}, 1, 64, 0x5B7A0847, 0x3278763A},
      {How::Scan, ElementType::F64, {64}, 0, 64, 0xD94A7E42, 0x2649ADBA},
      {How::ReverseScan, ElementType::F64, {64}, 0, 64, 0x5EF8B99A, 0x45FFA879},
      {How::Scan, ElementType::F64, {8, 32}, 1, 64, 0xB34B096F, 0x7720B3A1},
      {How::ReverseScan, ElementType::F64, {8, 32}, 1, 64, 0x6ED06B48, 0xD47BFEC2},
      {How::Scan, ElementType::F16, {64}, 0, 64, 0x8CD52656, 0x34042832},
      {How::ReverseScan, ElementType::F16, {64}, 0, 64, 0xE94DE916, 0x0CFCE385},
      {How::Scan, ElementType::F16, {8, 32}, 1, 64, 0x7C1782FA, 0x63818013},
      {How::ReverseScan, ElementType::F16, {8, 32}, 1, 64, 0x27541E6E, 0xEAE56813},
  };
  return all;
}

uint32_t checksum(const Recorded& r, bool scaled) {
  size_t outer = r.blocks, inner = 1;
  const auto len = static_cast<size_t>(r.shape[r.dim]);
  for (size_t d = 0; d < r.shape.size(); ++d)
    if (d != r.dim) (d < r.dim ? outer : inner) *= static_cast<size_t>(r.shape[d]);
  const size_t size = info(r.type).storage, count = outer * len * inner;
  std::vector<unsigned char> in(count * size), out(in.size());
  for (size_t i = 0; i < count; ++i) {
    double x = about_normal(i, scaled ? 101 : 100);
    if (r.how == How::Product) {
      x = 1 + x / 8;
    } else if (scaled) {
      x = x * std::ldexp(1.0, static_cast<int>(mixed(i + 7) % 9) - 4);
    }
    const uint64_t bits = r.type == ElementType::BF16 ? float_bits(static_cast<float>(x)) >> 16 : encode(r.type, x);
    std::memcpy(&in[i * size], &bits, size);
  }
  const ElementwiseFn op = find_elementwise(r.how == How::Product ? Opcode::MulF : Opcode::AddF, r.type, r.type, {}, Numerics::H200);
  const ThreadLayout layout = thread_layout_h200(r.shape, r.dim, size);
  const bool scan = r.how == How::Scan || r.how == How::ReverseScan;
  combine_h200(op, size, scan ? scan_order_h200(layout) : reduction_order_h200(layout), r.how == How::ReverseScan, out.data(), in.data(), outer, len, inner);
  if (!scan) out.resize(outer * inner * size);
  return crc32(out.data(), out.size());
}

TEST_CASE("reductions and scans have the bits of an H200") {
  for (const Recorded& r : recorded()) {
    CAPTURE(static_cast<int>(r.how));
    CAPTURE(info(r.type).name);
    CAPTURE(r.shape.front());
    CAPTURE(r.shape.back());
    CAPTURE(r.dim);
    CHECK(checksum(r, false) == r.plain);
    CHECK(checksum(r, true) == r.scaled);
  }
}

TEST_CASE("a reduction of an H200 takes every element once") {
  for (const Recorded& r : recorded()) {
    const auto len = static_cast<size_t>(r.shape[r.dim]);
    std::vector<bool> gone(len);
    bool alive = true;
    for (const Combination& c : reduction_order_h200(thread_layout_h200(r.shape, r.dim, info(r.type).storage)).steps) {
      alive = alive && !gone[c.left] && !gone[c.right] && c.to == std::min(c.left, c.right);
      gone[std::max(c.left, c.right)] = true;
    }
    CHECK(alive);
    CHECK(std::count(gone.begin(), gone.end(), true) == static_cast<std::ptrdiff_t>(len) - 1);
    CHECK(!gone[0]);
  }
}

}  // namespace
}  // namespace tile
