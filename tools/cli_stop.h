// What ends a launch from outside: interrupts, the time limit, and `quit` at the stepping prompt.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tile::cli {

enum class StopReason : int { None, Interrupt, TimeLimit, Quit };

/// While it lives, an interrupt (SIGINT) or the end of the time limit asks the launch to stop instead of ending the
/// process. Launches look at stop_flag() between blocks and operations; a launch that has not ended kGraceSeconds later
/// is ended with the process, so that nothing is written. A second interrupt does that at once.
class StopGuard {
 public:
  static constexpr unsigned kGraceSeconds = 2;

  /// @param time_limit  seconds, 0: none
  /// @param program     for the last message
  /// @param last_words  the error that the time limit is, ready to be printed: a signal handler cannot format it
  StopGuard(double time_limit, const std::string& program, const std::string& last_words);
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;
  ~StopGuard();
};

[[nodiscard]] const std::atomic<bool>& stop_flag();
[[nodiscard]] StopReason stop_reason();
void request_stop(StopReason reason);
/// How far the launch is, for the message of an interrupt that ends the process.
void note_progress(uint64_t done, uint64_t total);

}  // namespace tile::cli
