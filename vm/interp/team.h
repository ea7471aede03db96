// Threads of a launch that have no block to run help those that have one: a step whose work is large hands out pieces of itself.
// Pieces never depend on each other, so that the bits of a result do not depend on who computes what.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tile {

class Team {
 public:
  /// @param runners  threads that may run blocks, numbered from 0
  explicit Team(unsigned runners) : posts_(runners) {}

  /// This thread looks for blocks from now on.
  void enter() { running_.fetch_add(1); }
  /// This thread has found the last of its blocks and ended it. Afterwards it may help.
  void leave();
  /// Computes pieces until no thread looks for blocks any more. `scratch`: the memory that this thread hands to pieces.
  void help(std::byte* scratch);

  /// How often work was shared.
  [[nodiscard]] uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }
  [[nodiscard]] unsigned helpers() const { return helpers_.load(std::memory_order_relaxed); }

  using Piece = void (*)(const void* work, size_t piece, std::byte* scratch);
  /// Has `call(work, k, scratch of the thread)` called once for each k below `pieces`, on this thread (runner `number`) and on those
  /// that help; returns when all calls have ended.
  void share(unsigned number, size_t pieces, Piece call, const void* work, std::byte* scratch);

 private:
  struct alignas(64) Post {
    std::atomic<bool> open{false};
    std::atomic<uint32_t> users{0};     // helpers that look at the fields below
    std::atomic<size_t> next{0};
    size_t pieces = 0;
    Piece call = nullptr;
    const void* work = nullptr;
  };
  static bool take(Post& post, std::byte* scratch);

  std::vector<Post> posts_;             // one for each runner
  alignas(64) std::atomic<uint32_t> calls_{0};  // changes with each post and at the end
  std::atomic<uint64_t> shared_{0};
  std::atomic<unsigned> helpers_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> over_{false};
};

}  // namespace tile
