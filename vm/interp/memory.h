// Global memory of a launch: allocations with provenance. A pointer is a number that stands for the allocation << 40 | byte offset, so
// arithmetic that leaves an allocation does not reach another one, and every access is checked against the allocation that its address
// names. Neighbouring allocations have numbers far apart: steps of 2^40 bytes do not lead from one to the next either.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tile {

class Memory {
 public:
  static constexpr unsigned kOffsetBits = 40;
  static constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << (kOffsetBits - 1);  ///< of one allocation; leaves room for negative offsets
  static constexpr size_t kMaxAllocations = 1u << 20;

  struct Allocation {
    std::byte* data = nullptr;
    uint64_t size = 0;     ///< bytes
    std::string name;      ///< for messages: "argument 0 (a)", "global @g", "alloca"
  };

  Memory();
  /// Adds memory that the caller owns and keeps until this object is gone. Returns its base address, or 0 if there are too many
  /// allocations or it is larger than kMaxBytes.
  uint64_t add(std::byte* data, uint64_t size, std::string name);
  /// Adds zeroed memory owned by this object; 0 if the host has none.
  uint64_t allocate(uint64_t size, std::string name);

  /// Host address of [address, address + bytes), or nullptr if it is not inside one allocation.
  [[nodiscard]] std::byte* resolve(uint64_t address, uint64_t bytes) const {
    const uint64_t index = index_of(address);
    const uint64_t offset = address & kOffsetMask;
    if (index >= count_.load(std::memory_order_acquire)) return nullptr;
    const Allocation& a = chunk(index);
    if (offset > a.size || bytes > a.size - offset) return nullptr;
    return a.data + offset;
  }
  /// Bytes of all allocations together.
  [[nodiscard]] uint64_t bytes() const;
  [[nodiscard]] uint64_t count() const { return count_.load(std::memory_order_acquire); }
  /// Allocation number `index`, below count().
  [[nodiscard]] const Allocation& at(uint64_t index) const { return chunk(index); }
  /// The allocation that an address names, or nullptr.
  [[nodiscard]] const Allocation* find(uint64_t address) const;
  /// "offset 4096 of argument 0 (a), which has 4096 bytes": for messages.
  [[nodiscard]] std::string describe(uint64_t address) const;

  /// Base address of allocation number `index`, in the order of their addition.
  static constexpr uint64_t base_of(uint64_t index) { return (((index + 1) * kSpread) & kNumberMask) << kOffsetBits; }
  /// Number of the allocation that an address names; beyond every count where it names none.
  static constexpr uint64_t index_of(uint64_t address) {
    const uint64_t number = address >> kOffsetBits;
    return number > kNumberMask ? ~uint64_t{0} : ((number * inverse()) & kNumberMask) - 1;
  }

 private:
  // Number of an allocation in an address: (index + 1) * kSpread modulo 2^23. kSpread is odd, so it has an inverse.
  static constexpr uint64_t kNumberMask = (uint64_t{1} << 23) - 1;
  static constexpr uint64_t kSpread = 0x2F4A35;
  static constexpr uint64_t inverse() {
    uint64_t x = kSpread;  // right to 3 bits; each step doubles them
    for (int k = 0; k < 4; ++k) x *= 2 - kSpread * x;
    return x & kNumberMask;
  }
  static constexpr size_t kChunk = 1024;
  [[nodiscard]] const Allocation& chunk(uint64_t i) const { return (*chunks_[i / kChunk])[i % kChunk]; }
  using Chunk = std::array<Allocation, kChunk>;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // sized once, so that readers need no lock
  std::vector<std::unique_ptr<std::byte[]>> owned_;
  std::atomic<uint64_t> count_{0};
  std::mutex mutex_;
};

}  // namespace tile
