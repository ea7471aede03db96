#include "vm/interp/team.h"

#include <chrono>
#include <thread>

namespace tile {
namespace {

constexpr std::chrono::microseconds kNextPost{50};  // that a helper looks out for the next post before it sleeps

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Team::leave() {
  if (running_.fetch_sub(1) != 1) return;
  over_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
}

bool Team::compute(Post& post, unsigned number, std::byte* scratch) const {
  const size_t pieces = post.pieces, first = pieces * (number % threads_) / threads_;
  bool any = false;
  for (size_t k = 0; k < pieces; ++k) {
    const size_t piece = (first + k) % pieces;
    const uint64_t bit = uint64_t{1} << piece;
    if ((post.taken.load(std::memory_order_relaxed) & bit) != 0 || (post.taken.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) continue;
    post.call(post.work, piece, scratch);
    any = true;
  }
  return any;
}

bool Team::take(Post& post, unsigned number, std::byte* scratch) {
  if (!post.open.load(std::memory_order_relaxed)) return false;
  // Whoever closes a post first closes it, then waits until nobody uses it; so one of both sees the other.
  post.users.fetch_add(1);
  const bool any = post.open.load() && compute(post, number, scratch);
  post.users.fetch_sub(1, std::memory_order_release);
  if (any) shared_.fetch_add(1, std::memory_order_relaxed);
  return any;
}

void Team::help(unsigned number, std::byte* scratch) {
  for (;;) {
    const uint32_t seen = calls_.load();
    if (over_.load()) break;
    bool any = false;
    for (Post& post : posts_) any = take(post, number, scratch) || any;
    if (any) continue;
    const auto until = std::chrono::steady_clock::now() + kNextPost;
    bool called = false;
    do {
      for (int k = 0; k < 64 && !called; ++k) {
        called = calls_.load(std::memory_order_relaxed) != seen;
        pause();
      }
    } while (!called && std::chrono::steady_clock::now() < until);
    if (!called) calls_.wait(seen);
  }
}

void Team::share(unsigned number, size_t pieces, Piece call, const void* work, std::byte* scratch) {
  Post& post = posts_[number];
  post.pieces = pieces;
  post.call = call;
  post.work = work;
  post.taken.store(0, std::memory_order_relaxed);
  post.open.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
  (void)compute(post, number, scratch);
  post.open.store(false);
  for (int k = 0; post.users.load(std::memory_order_acquire) != 0; ++k) {
    if (k < 1024) {
      pause();
    } else {
      std::this_thread::yield();  // the processor may be needed by the thread that is waited for
    }
  }
}

}  // namespace tile
