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
  /// @param threads  all threads; those beyond the runners have the next numbers
  Team(unsigned runners, unsigned threads) : posts_(runners), threads_(threads) {}
  static constexpr size_t kMostPieces = 64;

  /// This thread looks for blocks from now on.
  void enter() { running_.fetch_add(1); }
  /// This thread has found the last of its blocks and ended it. Afterwards it may help.
  void leave();
  /// Computes pieces until no thread looks for blocks any more. `scratch`: the memory that this thread (`number`) hands to pieces.
  void help(unsigned number, std::byte* scratch);

  /// How often a thread helped with a step.
  [[nodiscard]] uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }
  /// Threads that do not run blocks: they help, or will when they are awake.
  [[nodiscard]] unsigned helpers() const {
    const unsigned running = running_.load(std::memory_order_relaxed);
    return threads_ > running ? threads_ - running : 0;
  }

  using Piece = void (*)(const void* work, size_t piece, std::byte* scratch);
  /// Has `call(work, k, scratch of the thread)` called once for each k below `pieces` (at most kMostPieces), on this thread (runner
  /// `number`) and on those that help; returns when all calls have ended. Each thread begins with the pieces that are its own by number,
  /// so that from step to step it finds the same part of the tiles in its caches, then takes what is left.
  void share(unsigned number, size_t pieces, Piece call, const void* work, std::byte* scratch);

 private:
  struct alignas(64) Post {
    std::atomic<bool> open{false};
    std::atomic<uint32_t> users{0};     // helpers that look at the fields below
    std::atomic<uint64_t> taken{0};     // a bit for each piece
    size_t pieces = 0;
    Piece call = nullptr;
    const void* work = nullptr;
  };
  /// Computes pieces of the post that nobody has taken; false if there was none.
  bool compute(Post& post, unsigned number, std::byte* scratch) const;
  bool take(Post& post, unsigned number, std::byte* scratch);

  std::vector<Post> posts_;             // one for each runner
  const unsigned threads_;
  alignas(64) std::atomic<uint32_t> calls_{0};  // changes with each post and at the end
  std::atomic<uint64_t> shared_{0};
  std::atomic<unsigned> running_{0};
  std::atomic<bool> over_{false};
};

}  // namespace tile
