// Functions over their whole range: checksums of what they gave on an H200, compiled by tileiras 13.5 for sm_90.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "h200_recordings.h"
#include "vm/interp/numerics_h200.h"

namespace tile {
namespace {

constexpr size_t kChunk = 16384, kChunks = 64;

/// Checksum of the checksums of every `step`-th chunk of results.
template <class Operands>
uint32_t checksum(Opcode op, size_t step, const Operands& operands) {
  const ElementwiseFn kernel = find_elementwise(op, ElementType::F32, ElementType::F32, {}, Numerics::H200);
  std::vector<uint32_t> x(kChunk), y(kChunk), results(kChunk), sums;
  for (size_t c = 0; c < kChunks; ++c) {
    for (size_t i = 0; i < kChunk; ++i) operands(uint64_t{c * step * kChunk + i}, x[i], y[i]);
    const void* in[2] = {x.data(), y.data()};
    kernel(results.data(), in, kChunk);
    sums.push_back(crc32(results.data(), results.size() * sizeof(uint32_t)));
  }
  return crc32(sums.data(), sums.size() * sizeof(uint32_t));
}

/// One operand in each 256 neighbours.
uint32_t checksum_of_one(Opcode op) {
  return checksum(op, 16, [](uint64_t i, uint32_t& x, uint32_t&) { x = static_cast<uint32_t>(i * 256 + (mixed(i) & 255)); });
}
/// Positive bases from 2^-8 to 2^8 and exponents of both signs from 2^-7 to 2^5.
uint32_t checksum_of_two(Opcode op) {
  return checksum(op, 4, [](uint64_t i, uint32_t& x, uint32_t& y) {
    const uint64_t bits = mixed(i);
    const auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
    x = 0x3B800000 + (low & 0x07FFFFFF);
    y = (high & 0x80000000) | (0x3C000000 + (high & 0x7FFFFFFF) % 0x06000000);
  });
}

/// Any bits, of two numbers in three the exponent between -20 and 10.
uint32_t checksum_of_f64(Opcode op) {
  const ElementwiseFn kernel = find_elementwise(op, ElementType::F64, ElementType::F64, {}, Numerics::H200);
  std::vector<uint64_t> operands[2], results(65536);
  for (uint64_t k = 0; k < 2; ++k)
    for (uint64_t i = 0; i < results.size(); ++i) {
      const uint64_t bits = mixed(i + (k << 32)), more = mixed(bits), exponent = more % 3 == 0 ? bits >> 52 & 0x7FF : 1003 + (more >> 8) % 31;
      operands[k].push_back((bits & 0x800FFFFFFFFFFFFF) | exponent << 52);
    }
  const void* in[2] = {operands[0].data(), operands[1].data()};
  kernel(results.data(), in, results.size());
  return crc32(results.data(), results.size() * sizeof(uint64_t));
}

TEST_CASE("operations of f64 on an H200") {
  CHECK(checksum_of_f64(Opcode::Exp) == 0xAC6FEFF1);
  CHECK(checksum_of_f64(Opcode::Exp2) == 0x075B6386);
  CHECK(checksum_of_f64(Opcode::Log) == 0xAF505458);
  CHECK(checksum_of_f64(Opcode::Log2) == 0x41270F3B);
  CHECK(checksum_of_f64(Opcode::Sin) == 0xC3B3CC35);
  CHECK(checksum_of_f64(Opcode::Cos) == 0xC02A6F62);
  CHECK(checksum_of_f64(Opcode::Tan) == 0xEF53BCF3);
  CHECK(checksum_of_f64(Opcode::SinH) == 0xD200E437);
  CHECK(checksum_of_f64(Opcode::CosH) == 0x0C2B2F0B);
  CHECK(checksum_of_f64(Opcode::TanH) == 0x1CD66B66);
  CHECK(checksum_of_f64(Opcode::Rsqrt) == 0x30E76015);
  CHECK(checksum_of_f64(Opcode::Sqrt) == 0xC9FBE70D);
  CHECK(checksum_of_f64(Opcode::DivF) == 0x4592761D);
  CHECK(checksum_of_f64(Opcode::RemF) == 0xAE25B81C);
  CHECK(checksum_of_f64(Opcode::FPowF) == 0xAE8897AC);
  CHECK(checksum_of_f64(Opcode::Atan2) == 0x46A32AF3);
}

TEST_CASE("functions of one f32 on an H200") {
  CHECK(checksum_of_one(Opcode::Exp) == 0x1C3B1201);
  CHECK(checksum_of_one(Opcode::Log) == 0x96A22598);
  CHECK(checksum_of_one(Opcode::Log2) == 0xA90D10BF);
  CHECK(checksum_of_one(Opcode::Sin) == 0x6AE015E8);
  CHECK(checksum_of_one(Opcode::Cos) == 0xB6E36FF9);
  CHECK(checksum_of_one(Opcode::Tan) == 0xF2DE9BFE);
  CHECK(checksum_of_one(Opcode::SinH) == 0xD1A973D6);
  CHECK(checksum_of_one(Opcode::CosH) == 0x04BEE782);
  CHECK(checksum_of_one(Opcode::TanH) == 0xBE024F1E);
}

TEST_CASE("functions of two f32 on an H200") {
  CHECK(checksum_of_two(Opcode::FPowF) == 0xD204E2F9);
  CHECK(checksum_of_two(Opcode::Atan2) == 0xA8D5166F);
}

/// Both operands from zeros, infinities, two NaN, the least and the largest numbers and small whole ones.
uint32_t checksum_of_pairs(Opcode op) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const uint64_t each[] = {0, kSign, 0x3FF0000000000000, 0xBFF0000000000000, 0x4000000000000000, 0x3FE0000000000000,
                           0x4008000000000000, 0xC008000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001, 0xFFF0000000000123,
                           1, kSign | 1, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF};
  std::vector<uint64_t> operands[2], results(256);
  for (const uint64_t x : each)
    for (const uint64_t y : each) {
      operands[0].push_back(x);
      operands[1].push_back(y);
    }
  const void* in[2] = {operands[0].data(), operands[1].data()};
  find_elementwise(op, ElementType::F64, ElementType::F64, {}, Numerics::H200)(results.data(), in, results.size());
  return crc32(results.data(), results.size() * sizeof(uint64_t));
}

TEST_CASE("operations of f64 on infinities, NaN and zeros on an H200") {
  CHECK(checksum_of_pairs(Opcode::Exp) == 0x966D1193);
  CHECK(checksum_of_pairs(Opcode::Exp2) == 0x42D0E439);
  CHECK(checksum_of_pairs(Opcode::Log) == 0xFAD927E6);
  CHECK(checksum_of_pairs(Opcode::Log2) == 0x4FE5D43D);
  CHECK(checksum_of_pairs(Opcode::Sin) == 0x66A2DE21);
  CHECK(checksum_of_pairs(Opcode::Cos) == 0xBEA1CEC5);
  CHECK(checksum_of_pairs(Opcode::Tan) == 0xABFCF929);
  CHECK(checksum_of_pairs(Opcode::SinH) == 0x7E570BD3);
  CHECK(checksum_of_pairs(Opcode::CosH) == 0x7625B097);
  CHECK(checksum_of_pairs(Opcode::TanH) == 0xA03B5CF1);
  CHECK(checksum_of_pairs(Opcode::Rsqrt) == 0x4079704F);
  CHECK(checksum_of_pairs(Opcode::Sqrt) == 0x978A8E50);
  CHECK(checksum_of_pairs(Opcode::DivF) == 0xF8E14348);
  CHECK(checksum_of_pairs(Opcode::Atan2) == 0x1540E312);
  CHECK(checksum_of_pairs(Opcode::FPowF) == 0xFD742CFD);
  CHECK(checksum_of_pairs(Opcode::RemF) == 0x90005BC4);
}

/// Every exponent with corner significands in mixed order (a part of them), then random bits, numbers around 1 and near it.
std::vector<uint32_t> dividends() {
  constexpr uint64_t kCount = 65536, kSalt = 5;
  std::set<uint32_t> significands = {0, 1, 2, 3, 0x7FFFFF, 0x7FFFFE, 0x7FFFFD};
  for (int k = 0; k < 23; ++k) {
    significands.insert(uint32_t{1} << k);
    significands.insert(0x7FFFFF ^ uint32_t{1} << k);
  }
  std::vector<uint32_t> edges;
  for (uint32_t top = 0; top < 512; ++top)
    for (const uint32_t s : significands) edges.push_back(top << 23 | s);
  const size_t taken = std::min<size_t>(kCount / 4, edges.size()), step = std::max<size_t>(1, edges.size() / taken);
  std::vector<uint64_t> order(taken);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [](uint64_t a, uint64_t b) { return mixed(a + kSalt) < mixed(b + kSalt); });
  std::vector<uint32_t> found;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t bits = mixed(i + (kSalt << 32));
    const auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
    const uint32_t around = (low & 0x80000000) | (0x39000000 + (low & 0x7FFFFFFF) % 0x0C000000);
    const uint32_t others[] = {low, around, around, 0x3F000000 + low % 0x01800000};
    found.push_back(i < taken ? edges[order[i] * step] : others[high % 4]);
  }
  return found;
}

struct Quotients {
  uint32_t divisor;
  uint32_t sums[4];  ///< approx, full, and both with flush_to_zero
};
const Quotients kQuotients[] = {
    {0x40400000, {0xE02FC83F, 0xE02FC83F, 0x74E7AFC4, 0x74E7AFC4}},
    {0xC0400000, {0x2BABA348, 0x2BABA348, 0xBF63C4B3, 0xBF63C4B3}},
    {0x40000000, {0x2A1D383D, 0x2A1D383D, 0x371C7323, 0x371C7323}},
    {0x00000005, {0x922E2999, 0x922E2999, 0x66AAAAB0, 0x66AAAAB0}},
    {0x00200000, {0x7010FD37, 0x7010FD37, 0x66AAAAB0, 0x66AAAAB0}},
    {0x7F000000, {0xC94BC991, 0xBE48EFC2, 0xC94BC991, 0x3330029E}},
    {0x7EC00000, {0xC94BC991, 0x9460ACA7, 0xC94BC991, 0x0C37FFD0}},
    {0x7F7FFFFF, {0xC94BC991, 0x17584E82, 0xC94BC991, 0x2567D3DB}},
    {0x00000000, {0x0E4783F5, 0x0E4783F5, 0x66AAAAB0, 0x66AAAAB0}},
    {0x7F800000, {0xC94BC991, 0xC94BC991, 0xC94BC991, 0xC94BC991}},
    {0x7FC00001, {0x0D06E6AF, 0x0D06E6AF, 0x0D06E6AF, 0x0D06E6AF}},
    {0x41200000, {0xB72797B0, 0xB72797B0, 0xF739EE40, 0xF739EE40}},
    {0x00800001, {0x418F2D2F, 0x418F2D2F, 0xE7F9A502, 0xE7F9A502}},
    {0x7E800001, {0xC94BC991, 0x7C3912EF, 0xC94BC991, 0x953FF0C6}},
};

TEST_CASE("quotients by a constant on an H200") {
  const std::vector<uint32_t> x = dividends();
  std::vector<uint32_t> results(x.size());
  for (const Quotients& q : kQuotients)
    for (int how = 0; how < 4; ++how) {
      CAPTURE(q.divisor);
      CAPTURE(how);
      Modifiers m;
      m.rounding = how % 2 == 0 ? Rounding::Approx : Rounding::Full;
      m.flush_to_zero = how >= 2;
      const std::vector<uint32_t> y(x.size(), q.divisor);
      const void* in[2] = {x.data(), y.data()};
      find_quotient_by_constant(ElementType::F32, m)(results.data(), in, x.size());
      CHECK(crc32(results.data(), results.size() * sizeof(uint32_t)) == q.sums[how]);
    }
}

}  // namespace
}  // namespace tile
