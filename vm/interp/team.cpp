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

bool Team::take(Post& post, std::byte* scratch) {
  if (!post.open.load(std::memory_order_relaxed)) return false;
  // Whoever closes a post first closes it, then waits until nobody uses it; so one of both sees the other.
  post.users.fetch_add(1);
  bool any = false;
  if (post.open.load()) {
    for (size_t k; (k = post.next.fetch_add(1, std::memory_order_relaxed)) < post.pieces; any = true) post.call(post.work, k, scratch);
  }
  post.users.fetch_sub(1, std::memory_order_release);
  return any;
}

void Team::help(std::byte* scratch) {
  helpers_.fetch_add(1);
  for (;;) {
    const uint32_t seen = calls_.load();
    if (over_.load()) break;
    bool any = false;
    for (Post& post : posts_) any = take(post, scratch) || any;
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
  helpers_.fetch_sub(1);
}

void Team::share(unsigned number, size_t pieces, Piece call, const void* work, std::byte* scratch) {
  Post& post = posts_[number];
  post.pieces = pieces;
  post.call = call;
  post.work = work;
  post.next.store(0, std::memory_order_relaxed);
  post.open.store(true);
  shared_.fetch_add(1, std::memory_order_relaxed);
  calls_.fetch_add(1);
  calls_.notify_all();
  for (size_t k; (k = post.next.fetch_add(1, std::memory_order_relaxed)) < pieces;) call(work, k, scratch);
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
