// Allocations of a launch and the addresses that name them.
#include "vm/interp/memory.h"

#include <new>

namespace tile {

Memory::Memory() : chunks_(kMaxAllocations / kChunk) {}

uint64_t Memory::add(std::byte* data, uint64_t size, std::string name) {
  const std::lock_guard lock(mutex_);
  const uint64_t i = count_.load(std::memory_order_relaxed);
  if (i >= kMaxAllocations || size > kMaxBytes) return 0;
  auto& c = chunks_[i / kChunk];
  if (!c) c = std::make_unique<Chunk>();
  (*c)[i % kChunk] = {data, size, std::move(name)};
  count_.store(i + 1, std::memory_order_release);
  return base_of(i);
}

uint64_t Memory::allocate(uint64_t size, std::string name) {
  if (size > kMaxBytes) return 0;
  constexpr std::size_t kAlign = 256;
  std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[size + kAlign]());
  if (!block) return 0;
  void* p = block.get();
  std::size_t space = size + kAlign;
  std::byte* aligned = static_cast<std::byte*>(std::align(kAlign, size, p, space));
  const uint64_t base = add(aligned, size, std::move(name));
  const std::lock_guard lock(mutex_);
  owned_.push_back(std::move(block));
  return base;
}

uint64_t Memory::bytes() const {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count_.load(std::memory_order_acquire); ++i) sum += chunk(i).size;
  return sum;
}

const Memory::Allocation* Memory::find(uint64_t address) const {
  const uint64_t index = index_of(address);
  return index < count_.load(std::memory_order_acquire) ? &chunk(index) : nullptr;
}

std::string Memory::describe(uint64_t address) const {
  if (const Allocation* a = find(address)) {
    return "byte " + std::to_string(address & kOffsetMask) + " of " + a->name + ", which has " + std::to_string(a->size) + " bytes";
  }
  // An address just below an allocation carries a borrow: name the allocation it came from.
  if (const Allocation* a = find(address + (uint64_t{1} << (kOffsetBits - 1)))) {
    const int64_t below = static_cast<int64_t>(address & kOffsetMask) - (int64_t{1} << kOffsetBits);
    return "byte " + std::to_string(below) + " of " + a->name + ", which has " + std::to_string(a->size) + " bytes";
  }
  return "address " + std::to_string(address) + ", which belongs to no allocation";
}

}  // namespace tile
