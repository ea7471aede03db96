// Stores past the caches on x86-64 (SSE2, which every such processor has: wider ones are not faster, the processor collects a line either
// way); elsewhere plain copies.
#include "vm/interp/stream.h"

#include <cstring>
#include <fstream>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace tile {

void stream_copy(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__x86_64__)
  // Where chunks meet inside a line, both write their parts of it this way: a line of which the caches have a part is written slowly.
  constexpr size_t kLine = 64, kPart = 16;
  const size_t head = (kPart - reinterpret_cast<uintptr_t>(to) % kPart) % kPart;
  if (head + kLine > bytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(from + at);
    auto* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1), c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  for (; at + kPart <= bytes; at += kPart) _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  std::memcpy(to + at, from + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

void stream_end() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

uint64_t last_cache_bytes() {
  // From Linux, whose C library's sysconf() multiplies the size on some virtual machines.
  static const uint64_t found = [] {
    constexpr uint64_t kUsual = uint64_t{32} << 20;
    std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index3/size");
    uint64_t size = 0;
    char unit = 0;
    if (!(in >> size >> unit) || size == 0 || size >> 32) return kUsual;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : kUsual;
  }();
  return found;
}

}  // namespace tile
