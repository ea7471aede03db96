// Global memory of a launch: allocations with provenance. A pointer is (allocation + 1) << 40 | byte offset, so arithmetic that
// leaves an allocation never reaches another one, and every access is checked against the allocation that its address names.
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
    const uint64_t index = (address >> kOffsetBits) - 1;
    const uint64_t offset = address & kOffsetMask;
    if (index >= count_.load(std::memory_order_acquire)) return nullptr;
    const Allocation& a = chunk(index);
    if (offset > a.size || bytes > a.size - offset) return nullptr;
    return a.data + offset;
  }
  /// The allocation that an address names, or nullptr.
  [[nodiscard]] const Allocation* find(uint64_t address) const;
  /// "offset 4096 of argument 0 (a), which has 4096 bytes": for messages.
  [[nodiscard]] std::string describe(uint64_t address) const;

 private:
  static constexpr size_t kChunk = 1024;
  [[nodiscard]] const Allocation& chunk(uint64_t i) const { return (*chunks_[i / kChunk])[i % kChunk]; }
  using Chunk = std::array<Allocation, kChunk>;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // sized once, so that readers need no lock
  std::vector<std::unique_ptr<std::byte[]>> owned_;
  std::atomic<uint64_t> count_{0};
  std::mutex mutex_;
};

}  // namespace tile
