// Signal handlers and their timer. Everything that a handler touches is atomic or was written before it was installed.
#include "tools/cli_stop.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "vm/base/diagnostics.h"

namespace tile::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> reason{0};
std::atomic<uint64_t> blocks_done{0}, blocks_total{0};
char words_interrupt[256], words_limit[2048];

void write_all(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(STDERR_FILENO, text, size);
    if (n <= 0) return;
    text += n;
    size -= static_cast<size_t>(n);
  }
}
void write_text(const char* text) {
  write_all(text, std::strlen(text));
}
void write_number(uint64_t n) {
  char digits[24];
  size_t at = sizeof digits;
  do {
    digits[--at] = static_cast<char>('0' + n % 10);
    n /= 10;
  } while (n > 0);
  write_all(digits + at, sizeof digits - at);
}

[[noreturn]] void end_process() {
  if (reason.load() == static_cast<int>(StopReason::TimeLimit)) {
    write_text(words_limit);
    _exit(exit_code(FailureClass::Exhausted));
  }
  write_text(words_interrupt);
  if (blocks_total.load() > 0) {
    write_text(" after at least ");
    write_number(blocks_done.load());
    write_text(" of ");
    write_number(blocks_total.load());
    write_text(" blocks");
  }
  write_text("; nothing was written\n");
  _exit(130);
}

void set_timer(double seconds) {
  itimerval timer{};
  const double whole = std::floor(std::min(seconds, 1e9));
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>((std::min(seconds, 1e9) - whole) * 1e6);
  if (seconds > 0 && timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) timer.it_value.tv_usec = 1;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void ask(StopReason why) {
  int none = 0;
  reason.compare_exchange_strong(none, static_cast<int>(why));
  stop.store(true);
}

void on_interrupt(int) {
  if (stop.load()) end_process();
  ask(StopReason::Interrupt);
  set_timer(StopGuard::kGraceSeconds);
}

void on_timer(int) {
  if (stop.load()) end_process();
  ask(StopReason::TimeLimit);
  set_timer(StopGuard::kGraceSeconds);
}

struct sigaction interrupt_before {
}, timer_before{};

}  // namespace

StopGuard::StopGuard(double time_limit, const std::string& program, const std::string& last_words) {
  std::strncpy(words_interrupt, (program + ": interrupted").c_str(), sizeof words_interrupt - 1);
  std::strncpy(words_limit, last_words.c_str(), sizeof words_limit - 1);
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, &interrupt_before);
  action.sa_handler = on_timer;
  sigaction(SIGALRM, &action, &timer_before);
  if (time_limit > 0) set_timer(time_limit);
}

StopGuard::~StopGuard() {
  set_timer(0);
  sigaction(SIGINT, &interrupt_before, nullptr);
  sigaction(SIGALRM, &timer_before, nullptr);
}

const std::atomic<bool>& stop_flag() {
  return stop;
}
StopReason stop_reason() {
  return static_cast<StopReason>(reason.load());
}
void request_stop(StopReason why) {
  ask(why);
}
void note_progress(uint64_t done, uint64_t total) {
  blocks_done.store(done, std::memory_order_relaxed);
  blocks_total.store(total, std::memory_order_relaxed);
}

}  // namespace tile::cli
