// Counts the heap by replacing operator new, which works alike with and without AddressSanitizer.
#include "tests/fuzz/budget.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace tile::fuzz {
namespace {

// Targets use one thread; the constructors of static objects run before it does.
size_t live = 0, peak = 0;

void* take(size_t bytes, size_t alignment) {
  void* p = alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!p) return nullptr;
  live += malloc_usable_size(p);
  peak = std::max(peak, live);
  return p;
}

void* take_or_throw(size_t bytes, size_t alignment) {
  if (void* p = take(bytes == 0 ? 1 : bytes, alignment)) return p;
  throw std::bad_alloc();
}

void give(void* p) {
  if (!p) return;
  live -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

size_t live_bytes() { return live; }
void start_peak() { peak = live; }
size_t peak_bytes() { return peak; }

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void check(const char* stage, size_t input_bytes, size_t used_bytes, double seconds) {
  if (used_bytes > kFloorBytes + kBytesPerByte * input_bytes) {
    std::fprintf(stderr, "budget: %s took %zu bytes of memory for an input of %zu\n", stage, used_bytes, input_bytes);
    std::abort();
  }
  if (seconds > kSeconds) {
    std::fprintf(stderr, "budget: %s took %.2f s for an input of %zu bytes\n", stage, seconds, input_bytes);
    std::abort();
  }
}

}  // namespace tile::fuzz

// Freed blocks are kept back, and call stacks of allocations noted, only as far as one small input needs: with the
// defaults the targets ran at half the speed.
extern "C" __attribute__((used, visibility("default"))) const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=4";
}

using tile::fuzz::give;
using tile::fuzz::take;
using tile::fuzz::take_or_throw;

void* operator new(size_t n) { return take_or_throw(n, 0); }
void* operator new[](size_t n) { return take_or_throw(n, 0); }
void* operator new(size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<size_t>(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return take(n == 0 ? 1 : n, 0); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return take(n == 0 ? 1 : n, 0); }
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, size_t) noexcept { give(p); }
void operator delete[](void* p, size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give(p); }
