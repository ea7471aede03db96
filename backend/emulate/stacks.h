// Stacks of fibers, each with a guard page below it, kept for the next block or launch.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace tile::emu {

class StackPool {
 public:
  static StackPool& instance();
  /// `count` stacks of at least `bytes` each (rounded up in place); fewer, and nothing kept, if the system gives no
  /// more.
  [[nodiscard]] std::vector<char*> take(size_t count, size_t& bytes);
  void give(std::vector<char*> stacks, size_t bytes);

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<char*>> free_;  // by size
  size_t kept_ = 0;                            // bytes in free_
};

}  // namespace tile::emu
