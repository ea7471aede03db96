#include "backend/emulate/stacks.h"

#include <sys/mman.h>

#include <bit>

namespace tile::emu {
namespace {

constexpr size_t kGuard = 4096;
constexpr size_t kSmallest = 32 * 1024;
constexpr size_t kMostKept = size_t{512} << 20;  // address space; a stack's untouched pages take no memory

void release(char* stack, size_t bytes) { munmap(stack - kGuard, bytes + kGuard); }

}  // namespace

StackPool& StackPool::instance() {
  static auto* pool = new StackPool;  // never destroyed: workers may outlive static objects
  return *pool;
}

std::vector<char*> StackPool::take(size_t count, size_t& bytes) {
  bytes = std::bit_ceil(bytes < kSmallest ? kSmallest : bytes);  // few sizes, so that stacks are found again
  std::vector<char*> out;
  {
    const std::lock_guard lock(mutex_);
    auto& list = free_[bytes];
    while (!list.empty() && out.size() < count) {
      out.push_back(list.back());
      list.pop_back();
      kept_ -= bytes;
    }
  }
  while (out.size() < count) {
    void* p = mmap(nullptr, bytes + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      give(std::move(out), bytes);
      return {};
    }
    char* stack = static_cast<char*>(p) + kGuard;
    if (mprotect(p, kGuard, PROT_NONE) != 0) {
      release(stack, bytes);
      give(std::move(out), bytes);
      return {};
    }
    out.push_back(stack);
  }
  return out;
}

void StackPool::give(std::vector<char*> stacks, size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& list = free_[bytes];
  for (char* s : stacks) {
    if (kept_ + bytes > kMostKept) {
      release(s, bytes);
    } else {
      list.push_back(s);
      kept_ += bytes;
    }
  }
}

}  // namespace tile::emu
