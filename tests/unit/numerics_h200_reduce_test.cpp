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

enum class How { Sum, Product, Scan, ReverseScan, Widened };  // Widened: loaded elements become f32, then Sum

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
      {How::Sum, ElementType::F32, {16384}, 0, 64, 0x30B08DA7, 0xB17AC4C9},
      {How::Sum, ElementType::F16, {32}, 0, 64, 0xF6536442, 0x0CEF3140},
      {How::Sum, ElementType::F16, {16384}, 0, 64, 0x1744776D, 0x49DCF5C3},
      {How::Sum, ElementType::F64, {2}, 0, 64, 0x34E21225, 0x0B6FB32C},
      {How::Sum, ElementType::F64, {2048}, 0, 64, 0x3352CA63, 0x08294B94},
      {How::Sum, ElementType::F32, {2, 32}, 1, 64, 0xBCDE4914, 0xFDD7F4E2},
      {How::Sum, ElementType::F32, {2, 256}, 0, 64, 0x4493D3BA, 0x77222310},
      {How::Sum, ElementType::F32, {2, 512}, 1, 64, 0xCC21C3CA, 0x98DB3B05},
      {How::Sum, ElementType::F32, {4, 4}, 0, 64, 0x857372DA, 0x7273AD58},
      {How::Sum, ElementType::F32, {4, 16}, 1, 64, 0x5653ADB2, 0x3D252132},
      {How::Sum, ElementType::F32, {4, 64}, 0, 64, 0x4D9F645C, 0x06006E22},
      {How::Sum, ElementType::F32, {4, 128}, 1, 64, 0xD23090AD, 0x8952D721},
      {How::Sum, ElementType::F32, {4, 512}, 1, 64, 0xE7906A93, 0xEFF2C610},
      {How::Sum, ElementType::F32, {8, 4}, 0, 64, 0xBEC5C155, 0x903CBCC0},
      {How::Sum, ElementType::F32, {8, 8}, 1, 64, 0xF7112BE2, 0x1495B698},
      {How::Sum, ElementType::F32, {8, 64}, 0, 64, 0x74B46557, 0xAF014AC4},
      {How::Sum, ElementType::F32, {8, 128}, 1, 64, 0x7949A427, 0x560CF0D6},
      {How::Sum, ElementType::F32, {8, 512}, 0, 64, 0xE0EA0EAD, 0x562023BA},
      {How::Sum, ElementType::F32, {8, 1024}, 0, 64, 0xB03F0C57, 0x83C3A7F0},
      {How::Sum, ElementType::F32, {16, 4}, 0, 64, 0x154F0B06, 0xD80137E6},
      {How::Sum, ElementType::F32, {16, 8}, 1, 64, 0xDA2EB030, 0x704CF13D},
      {How::Sum, ElementType::F32, {16, 64}, 0, 64, 0x2AD72A23, 0x34AE790F},
      {How::Sum, ElementType::F32, {16, 256}, 0, 64, 0x714BFF7A, 0x73B229F0},
      {How::Sum, ElementType::F32, {16, 512}, 0, 64, 0xB5ED0921, 0x06D9D0A7},
      {How::Sum, ElementType::F32, {16, 512}, 1, 64, 0x4AD709EE, 0x401F46D5},
      {How::Sum, ElementType::F32, {16, 1024}, 0, 64, 0x9D8FDD0B, 0xA9847885},
      {How::Sum, ElementType::F32, {32, 2}, 0, 64, 0x8DEC2116, 0xAF1476A7},
      {How::Sum, ElementType::F32, {32, 8}, 0, 64, 0x9A70A833, 0x281F9AC9},
      {How::Sum, ElementType::F32, {32, 16}, 1, 64, 0x84158F9E, 0x0CC991A7},
      {How::Sum, ElementType::F32, {32, 128}, 0, 64, 0x6D6E17A0, 0x2BC43903},
      {How::Sum, ElementType::F32, {32, 256}, 1, 64, 0x7F36D689, 0x8AB62D92},
      {How::Sum, ElementType::F32, {32, 512}, 0, 64, 0x7CDF5639, 0xC53ED00C},
      {How::Sum, ElementType::F32, {64, 2}, 0, 64, 0x7CA3A3C9, 0x087ABDAD},
      {How::Sum, ElementType::F32, {64, 4}, 1, 64, 0x71A1E76A, 0x7FF2D22E},
      {How::Sum, ElementType::F32, {64, 16}, 0, 64, 0xD58AD90A, 0xF41D6A2B},
      {How::Sum, ElementType::F32, {64, 256}, 0, 64, 0x93EC5B39, 0xE8941500},
      {How::Sum, ElementType::F32, {128, 4}, 0, 64, 0x0407F424, 0xB21F7A3D},
      {How::Sum, ElementType::F32, {128, 4}, 1, 64, 0x4C77A3D2, 0x7A161AB4},
      {How::Sum, ElementType::F32, {128, 8}, 1, 64, 0xA9F7BB1A, 0xF2D8B6E7},
      {How::Sum, ElementType::F32, {128, 32}, 0, 64, 0x5E3B7C9A, 0xE8736CB8},
      {How::Sum, ElementType::F32, {256, 2}, 1, 64, 0x74A6376E, 0xBA5FC7A3},
      {How::Sum, ElementType::F32, {256, 8}, 0, 64, 0xFA0BFF2F, 0x6830CC26},
      {How::Sum, ElementType::F32, {256, 32}, 0, 64, 0xA22220DD, 0x9BA04F2C},
      {How::Sum, ElementType::F32, {512, 2}, 0, 64, 0x51878D44, 0xFBD809EB},
      {How::Sum, ElementType::F32, {512, 4}, 1, 64, 0x213FFD1E, 0x0F1E6F29},
      {How::Sum, ElementType::F32, {512, 16}, 0, 64, 0x8D3B2F20, 0xC721C2B4},
      {How::Sum, ElementType::F32, {512, 32}, 1, 64, 0x721C9917, 0x6433AA0E},
      {How::Sum, ElementType::F32, {1024, 4}, 1, 64, 0x010621BD, 0xE9BA7E59},
      {How::Sum, ElementType::F32, {1024, 16}, 0, 64, 0x7A73A886, 0x8403A440},
      {How::Sum, ElementType::F16, {4, 4}, 1, 64, 0xDDA62B4E, 0x74E7ECBB},
      {How::Sum, ElementType::F16, {4, 32}, 0, 64, 0xD4FF47BB, 0xC0E517EE},
      {How::Sum, ElementType::F16, {4, 64}, 1, 64, 0x1FB80E29, 0x9E82450F},
      {How::Sum, ElementType::F16, {4, 256}, 0, 64, 0x74ABB4F1, 0xEF6A12F3},
      {How::Sum, ElementType::F16, {4, 512}, 1, 64, 0xD5B413B9, 0x6E949EBF},
      {How::Sum, ElementType::F16, {16, 16}, 0, 64, 0x45891965, 0x497343E6},
      {How::Sum, ElementType::F16, {16, 64}, 0, 64, 0x4681C516, 0x274030AF},
      {How::Sum, ElementType::F16, {16, 128}, 1, 64, 0x51176170, 0x74F88A9F},
      {How::Sum, ElementType::F16, {16, 512}, 0, 64, 0x8A290E7C, 0x161DBF8D},
      {How::Sum, ElementType::F16, {32, 4}, 0, 64, 0xAD5632E9, 0x156AD44C},
      {How::Sum, ElementType::F16, {32, 4}, 1, 64, 0xC7164548, 0xA04417DD},
      {How::Sum, ElementType::F16, {32, 32}, 0, 64, 0x42AFB26A, 0x609E5C07},
      {How::Sum, ElementType::F16, {32, 64}, 1, 64, 0x12BDCAFA, 0x2DB12EB5},
      {How::Sum, ElementType::F16, {32, 256}, 0, 64, 0x31B8494B, 0xC8A14427},
      {How::Sum, ElementType::F16, {32, 512}, 0, 64, 0x745B367F, 0x153E33C5},
      {How::Sum, ElementType::F16, {32, 512}, 1, 64, 0x819653D1, 0x61F272D0},
      {How::Sum, ElementType::F16, {64, 16}, 0, 64, 0x7DC29F06, 0xACA8C120},
      {How::Sum, ElementType::F16, {64, 32}, 1, 64, 0x71A9E70A, 0x3549D090},
      {How::Sum, ElementType::F16, {64, 256}, 0, 64, 0x65627FEE, 0x7B2EB02A},
      {How::Sum, ElementType::F16, {256, 4}, 1, 64, 0x096555B1, 0xA718B9E3},
      {How::Sum, ElementType::F16, {256, 32}, 0, 64, 0xC308599B, 0x9D36D647},
      {How::Sum, ElementType::F16, {256, 64}, 1, 64, 0xB07CC088, 0x6BE5B686},
      {How::Sum, ElementType::F64, {4, 16}, 0, 64, 0x9B928D8B, 0x282FBF7A},
      {How::Sum, ElementType::F64, {4, 32}, 1, 64, 0x6B7A64CB, 0x0DDD9F36},
      {How::Sum, ElementType::F64, {4, 128}, 0, 64, 0xFDC5E2EF, 0x3070C4FC},
      {How::Sum, ElementType::F64, {4, 256}, 1, 64, 0xEAF011F6, 0x9ADD6ADA},
      {How::Sum, ElementType::F64, {16, 4}, 0, 64, 0x898167E6, 0xAD5573B8},
      {How::Sum, ElementType::F64, {16, 32}, 0, 64, 0x54052DB4, 0x616320FE},
      {How::Sum, ElementType::F64, {16, 64}, 1, 64, 0x7248BC6B, 0xB5C31BF7},
      {How::Sum, ElementType::F64, {16, 256}, 0, 64, 0x414048BE, 0x90C29E71},
      {How::Sum, ElementType::F64, {16, 512}, 0, 64, 0x805363AC, 0xF56729D0},
      {How::Sum, ElementType::F64, {16, 512}, 1, 64, 0x6F7FF2EC, 0x6A8C5CB3},
      {How::Sum, ElementType::F64, {32, 16}, 0, 64, 0x79488571, 0xDAA0CD1E},
      {How::Sum, ElementType::F64, {32, 32}, 1, 64, 0xAEA9349F, 0x62FE8157},
      {How::Sum, ElementType::F64, {32, 128}, 0, 64, 0xC72D329F, 0x289B00FF},
      {How::Sum, ElementType::F64, {32, 256}, 0, 64, 0x313357F3, 0xD312A151},
      {How::Sum, ElementType::F64, {32, 256}, 1, 64, 0xBFC3B382, 0xDB458446},
      {How::Sum, ElementType::F64, {32, 512}, 0, 64, 0xCB7DB3AE, 0xE9B4ECCF},
      {How::Sum, ElementType::F64, {64, 4}, 0, 64, 0x88F33C99, 0x5A94C8D2},
      {How::Sum, ElementType::F64, {64, 16}, 1, 64, 0xB2831D5C, 0x4810EAF4},
      {How::Sum, ElementType::F64, {64, 128}, 0, 64, 0x28463C20, 0xA6E90AFA},
      {How::Sum, ElementType::F64, {64, 256}, 0, 64, 0x975BE5D3, 0xBB2E8EAA},
      {How::Sum, ElementType::F64, {64, 256}, 1, 64, 0xD10CE594, 0xB8EB1A33},
      {How::Sum, ElementType::F64, {256, 16}, 0, 64, 0xA8E9318F, 0x039362A7},
      {How::Sum, ElementType::F64, {256, 32}, 1, 64, 0xA549390E, 0xEA3398AB},
      {How::Sum, ElementType::F32, {2, 64, 64}, 0, 64, 0xF7A2EE38, 0xD5815D29},
      {How::Sum, ElementType::F32, {4, 16, 64}, 0, 64, 0xEDA84B6E, 0x433FAEB0},
      {How::Sum, ElementType::F32, {8, 8, 8}, 0, 64, 0x74B46557, 0xAF014AC4},
      {How::Sum, ElementType::F32, {32, 4, 32}, 0, 64, 0x998243C7, 0x6F6BA1D6},
      {How::Sum, ElementType::F32, {16, 16, 16}, 0, 64, 0xB7BDA7E5, 0xAEED8A83},
      {How::Widened, ElementType::F16, {256}, 0, 64, 0xDB0BF8AA, 0x4EC9E6F7},
      {How::Widened, ElementType::BF16, {256}, 0, 64, 0xCFBFE5E3, 0x3D67DFBF},
      {How::Widened, ElementType::F16, {1024}, 0, 64, 0xBA5B3D95, 0xEE35A13A},
      {How::Widened, ElementType::BF16, {1024}, 0, 64, 0x6632BDBF, 0xE4BDD0F4},
      {How::Widened, ElementType::F16, {4096}, 0, 64, 0x5C84D966, 0xD5D1989D},
      {How::Widened, ElementType::BF16, {4096}, 0, 64, 0x0F6FE878, 0x3DD4804C},
      {How::Widened, ElementType::F16, {8, 32}, 1, 64, 0xA596EAE3, 0x2D719995},
      {How::Widened, ElementType::BF16, {8, 32}, 1, 64, 0xEB26C62F, 0xBA852560},
      {How::Widened, ElementType::F16, {64, 64}, 1, 64, 0x2A803044, 0xFDCE8266},
      {How::Widened, ElementType::BF16, {64, 64}, 1, 64, 0x585BBDB5, 0x66EE3E0A},
      {How::Widened, ElementType::F16, {64, 64}, 0, 64, 0x89B5AC53, 0xCD7C7EB1},
      {How::Widened, ElementType::BF16, {64, 64}, 0, 64, 0xA41FDD47, 0x751A88CB},
      {How::Widened, ElementType::F16, {1, 1024}, 1, 64, 0xBA5B3D95, 0xEE35A13A},
      {How::Widened, ElementType::BF16, {1, 1024}, 1, 64, 0x6632BDBF, 0xE4BDD0F4},
      {How::Widened, ElementType::F16, {4, 256}, 1, 64, 0xB507F1FC, 0x1920D17F},
      {How::Widened, ElementType::BF16, {4, 256}, 1, 64, 0x013102B7, 0x7706B3DB},
      {How::Widened, ElementType::F16, {16, 64}, 1, 64, 0x2EC3F04F, 0xFCEF0FBF},
      {How::Widened, ElementType::BF16, {16, 64}, 1, 64, 0xC3095DFC, 0x45CC9C85},
      {How::Widened, ElementType::F16, {64, 16}, 0, 64, 0x4685EC63, 0x672AB2D7},
      {How::Widened, ElementType::BF16, {64, 16}, 0, 64, 0xC207A740, 0x83E44525},
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
  const ElementType type = r.how == How::Widened ? ElementType::F32 : r.type;
  const size_t width = info(type).storage;
  if (r.how == How::Widened) {
    std::vector<unsigned char> wide(count * width);
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, &in[i * size], size);
      bits = encode(type, decode(r.type, bits));
      std::memcpy(&wide[i * width], &bits, width);
    }
    in = out = wide;
  }
  const ElementwiseFn op = find_elementwise(r.how == How::Product ? Opcode::MulF : Opcode::AddF, type, type, {}, Numerics::H200);
  const ThreadLayout layout = thread_layout_h200(r.shape, r.dim, size);
  const bool scan = r.how == How::Scan || r.how == How::ReverseScan;
  const CombinationOrder order = scan ? scan_order_h200(layout) : reduction_order_h200(layout);
  combine_h200(op, width, order, r.how == How::ReverseScan, out.data(), in.data(), outer, len, inner);
  if (!scan) out.resize(outer * inner * width);
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
