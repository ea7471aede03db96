// How results of an H200 were recorded: operands made of mixed numbers, checksums of what came back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tile {

/// Well mixed bits of a number.
inline uint64_t mixed(uint64_t i) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

/// About normally distributed, of standard deviation near 1: eight mixed numbers of 16 bits.
inline double about_normal(uint64_t i, uint64_t salt) {
  double sum = 0;
  for (const uint64_t bits : {mixed(i + (salt << 40)), mixed(i + (salt << 40) + (uint64_t{1} << 39))})
    for (int k = 0; k < 64; k += 16) sum += static_cast<double>(bits >> k & 0xFFFF) / 65536 - 0.5;
  return sum * 1.2;
}

/// CRC-32 as zlib has it.
inline uint32_t crc32(const void* data, size_t bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ ((t[i] & 1) != 0 ? 0xEDB88320 : 0);
    }
    return t;
  }();
  uint32_t crc = 0xFFFFFFFF;
  for (size_t i = 0; i < bytes; ++i) crc = table[(crc ^ static_cast<const uint8_t*>(data)[i]) & 0xFF] ^ crc >> 8;
  return ~crc;
}

}  // namespace tile
