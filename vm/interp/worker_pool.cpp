// One pool for the process, used by one launch at a time; a launch that finds it in use starts threads of its own. Threads look out for
// the next launch for a short while before they sleep, because launches often follow each other.
#include "vm/interp/worker_pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace tile {
namespace {

constexpr std::chrono::microseconds kNextLaunch{2000};  // that threads look out for the next launch
constexpr std::chrono::microseconds kOthersEnd{1000};   // that a launch looks out for the end of its threads

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Looks whether `done`, again and again; false after that time.
template <class F>
bool look_out(F done, std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  do {
    for (int k = 0; k < 64; ++k) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
      ++launch_;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  /// False, with nothing done, while another launch uses the pool.
  bool run(unsigned n, const std::function<void(unsigned)>& work) {
    if (in_use_.exchange(true, std::memory_order_acquire)) return false;
    while (threads_.size() + 1 < n) {
      try {
        threads_.emplace_back([this] { serve(); });
      } catch (const std::system_error&) {
        break;  // fewer threads do the same work
      }
    }
    work_ = &work;
    places_.store(uint64_t{n - 1} << 32, std::memory_order_release);
    {
      const std::lock_guard lock(mutex_);
      launch_.fetch_add(1, std::memory_order_release);
    }
    if (n > 1) wake_.notify_all();
    work(0);
    places_.fetch_and(kActive, std::memory_order_acq_rel);  // who has not begun need not
    const auto ended = [this] { return places_.load(std::memory_order_acquire) == 0; };
    if (!look_out(ended, kOthersEnd)) {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, ended);
    }
    in_use_.store(false, std::memory_order_release);
    return true;
  }

 private:
  static constexpr uint64_t kActive = 0xFFFFFFFF;

  void serve() {
    uint64_t seen = 0;
    for (;;) {
      const auto called = [&] { return launch_.load(std::memory_order_acquire) != seen; };
      if (!look_out(called, kNextLaunch)) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, called);
      }
      seen = launch_.load(std::memory_order_acquire);
      if (quit_) return;
      uint64_t p = places_.load(std::memory_order_acquire);
      while (p >> 32 != 0 && !places_.compare_exchange_weak(p, p - (uint64_t{1} << 32) + 1, std::memory_order_acq_rel)) continue;
      if (p >> 32 == 0) continue;
      (*work_)(static_cast<unsigned>(p >> 32));
      if (places_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard lock(mutex_);
        ended_.notify_one();
      }
    }
  }

  std::atomic<bool> in_use_{false};
  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> launch_{0};            // changes with each launch
  std::atomic<uint64_t> places_{0};            // high half: calls that nobody has taken, low half: calls that run
  const std::function<void(unsigned)>* work_ = nullptr;
  std::atomic<bool> quit_{false};
};

/// The pool of this process; a fork has none of its parent's threads and makes another.
Pool& pool() {
  struct Owned {
    std::unique_ptr<Pool> pool;
    long process = 0;
  };
  static std::mutex mutex;
  static Owned owned;
#if defined(__unix__) || defined(__APPLE__)
  const long process = static_cast<long>(getpid());
#else
  const long process = 1;
#endif
  const std::lock_guard lock(mutex);
  if (owned.process != process) {
    (void)owned.pool.release();  // its threads are not here to be joined
    owned.pool = std::make_unique<Pool>();
    owned.process = process;
  }
  return *owned.pool;
}

}  // namespace

void run_workers(unsigned n, const std::function<void(unsigned)>& work) {
  if (n <= 1) {
    work(0);
    return;
  }
  if (pool().run(n, work)) return;
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < n; ++t) {
    try {
      threads.emplace_back([&work, t] { work(t); });
    } catch (const std::system_error&) {
      break;
    }
  }
  work(0);
  for (std::thread& t : threads) t.join();
}

}  // namespace tile
