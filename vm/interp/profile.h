// Measures a launch: how often each operation ran, how long, how many bytes it moved and how much arithmetic it did.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vm/interp/observer.h"
#include "vm/interp/step_table.h"

namespace tile {

struct ProfileCounts {
  uint64_t count = 0;                          ///< executions
  int64_t nanoseconds = 0;                     ///< without the operations inside; summed over workers
  uint64_t bytes_read = 0, bytes_written = 0;  ///< of global memory; atomics count as both
  uint64_t flops = 0;                          ///< spec/tools.md "Profile"

  ProfileCounts& operator+=(const ProfileCounts& o);
};

struct ProfileRow {
  InstId inst = kNone;
  std::string op;
  LineRef line;
  ProfileCounts counts;
};

/// Floating-point operations of one execution, as spec/tools.md "Profile" counts them.
[[nodiscard]] uint64_t flops_of(const Module& module, const Function& function, InstId i);

class Profile : public Observer {
 public:
  /// One slice of time of a worker: an operation, or a whole block where `inst` is kNone.
  struct Event {
    int64_t start = 0, duration = 0;  ///< nanoseconds since the first launch began
    InstId inst = kNone;
    uint64_t block = 0;  ///< linear number
  };

  /// @param max_events  slices of operations that are kept, all workers together; as many again of blocks; 0: none
  explicit Profile(size_t max_events = 0) : max_events_(max_events) {}

  void launch_begin(const Launch& launch) override;
  void launch_end(const Launch& launch) override;
  void block_begin(Exec& x) override;
  void block_end(Exec& x) override;
  void before(Exec& x, const Step& s) override;
  void after(Exec& x, const Step& s) override;
  void access(Exec& x, const Step& s, const MemoryAccess& a) override;

  // Afterwards, while the device that planned the entry lives; several launches of one entry add up.
  [[nodiscard]] std::vector<ProfileRow> instructions() const;  ///< in the order of the program; only those that ran
  [[nodiscard]] const std::vector<Event>& events(unsigned worker) const { return workers_[worker]->events; }
  [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(workers_.size()); }
  [[nodiscard]] uint64_t dropped_events() const;
  [[nodiscard]] uint64_t blocks() const;
  [[nodiscard]] double seconds() const { return seconds_; }  ///< of the launches, by the clock
  [[nodiscard]] uint64_t launches() const { return launches_; }

 private:
  struct Open {
    size_t step = 0;
    int64_t start = 0;
  };
  struct Counter {
    uint64_t count = 0;
    int64_t nanoseconds = 0;
    uint64_t bits_read = 0, bits_written = 0;
  };
  struct alignas(64) Worker {  // a cache line of its own: workers write all the time
    std::vector<Counter> counters;
    std::vector<Open> open;
    std::vector<Event> events;
    int64_t last = 0, block_start = 0;
    uint64_t block = 0, blocks = 0, step_events = 0, block_events = 0, dropped = 0;
  };
  [[nodiscard]] int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  void charge(Worker& w, int64_t time);
  void close(Worker& w, int64_t time);

  size_t max_events_, events_each_ = 0;
  const Plan* plan_ = nullptr;
  StepTable table_;
  std::vector<uint8_t> element_bits_;  // by step: width in memory of what it accesses
  std::vector<std::unique_ptr<Worker>> workers_;
  std::chrono::steady_clock::time_point start_{};
  std::chrono::steady_clock::time_point launch_start_{};
  double seconds_ = 0;
  uint64_t launches_ = 0;
};

}  // namespace tile
