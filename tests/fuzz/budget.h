// What a stage of a fuzz target may take: memory in proportion to the input, and a second. Beyond it the target stops
// with the stage's name, as for any other failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tile::fuzz {

inline constexpr size_t kBytesPerByte = 64;
/// What even an empty input may take: a module's tables, the first rendered messages.
inline constexpr size_t kFloorBytes = size_t{64} << 10;
inline constexpr double kSeconds = 1;

/// Bytes of the heap in use by this program, and the most of them since start_peak().
size_t live_bytes();
void start_peak();
size_t peak_bytes();

/// Processor time of this thread, in seconds.
double thread_seconds();

void check(const char* stage, size_t input_bytes, size_t used_bytes, double seconds);

/// Runs f() and aborts where it took more than an input of this size is worth.
template <class F>
auto within(const char* stage, size_t input_bytes, F&& f) {
  struct Watch {
    const char* stage;
    size_t input_bytes, before = live_bytes();
    double began = thread_seconds();
    ~Watch() { check(stage, input_bytes, peak_bytes() - before, thread_seconds() - began); }
  };
  start_peak();
  const Watch watch{stage, input_bytes};
  return std::forward<F>(f)();
}

}  // namespace tile::fuzz
