// Numbers and permutations that follow from a seed alone, the same on every computer.
#pragma once

#include <bit>
#include <cstdint>

namespace tile {

/// SplitMix64 (spec/launch.md "Generators").
class SeededNumbers {
 public:
  explicit SeededNumbers(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix(state_ += kStep); }
  /// 0 .. n - 1, for n from 1.
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64); }
  /// True once in 2^k times.
  bool once_in(unsigned k) { return (next() >> (64 - 32)) >> (32 - k) == 0; }
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;

 private:
  uint64_t state_;
};

/// A permutation of 0 .. n - 1 that takes no memory: a Feistel network over the next power of four, walked until it is back in the range
/// (fewer than four steps on average).
class SeededOrder {
 public:
  SeededOrder(uint64_t seed, uint64_t n) : seed_(seed), n_(n) {
    const unsigned bits = n > 1 ? static_cast<unsigned>(std::bit_width(n - 1)) : 1;
    half_ = (bits + 1) / 2;
  }
  [[nodiscard]] uint64_t operator()(uint64_t i) const {
    if (n_ < 2) return i;
    do i = once(i);
    while (i >= n_);
    return i;
  }

 private:
  static constexpr unsigned kRounds = 4;
  [[nodiscard]] uint64_t once(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = i >> half_, right = i & mask;
    for (unsigned r = 0; r < kRounds; ++r) {
      const uint64_t next = left ^ (SeededNumbers::mix(seed_ + (right * kRounds + r + 1) * SeededNumbers::kStep) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }
  uint64_t seed_, n_;
  unsigned half_;
};

}  // namespace tile
