// Functions over their whole range: checksums of what they gave on an H200, compiled by tileiras 13.5 for sm_90.
#include <doctest/doctest.h>

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

}  // namespace
}  // namespace tile
