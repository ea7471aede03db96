// Who knows of whose accesses: a clock for each agent (thread or asynchronous unit), raised whenever the agent
// publishes what it did. A barrier of the whole block tells everything to everybody, so it raises a common floor
// instead of every thread's vector.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace tile::emu {

inline constexpr uint32_t kInFlight = ~uint32_t{0};   ///< clock of an access that nobody knows yet
inline constexpr uint16_t kNobody = 0xFFFF;

/// An access as others see it.
struct Access {
  uint32_t clock = 0;
  uint32_t site = 0;
  uint16_t agent = kNobody;
  bool warp_wide : 1 = false;  ///< a read made by a whole warp in one instruction: all its lanes know it
  bool async : 1 = false;                             ///< through the asynchronous proxy
  bool atomic : 1 = false;                            ///< conflicts with accesses that are not
  int8_t swizzle = -1;                                ///< layout of the tile that it belongs to, -1: not said
  bool operator==(const Access&) const = default;
};

/// What a synchronisation object passes on from those who release to those who acquire. Empty: nothing.
struct Clocks {
  std::vector<uint32_t> known, visible;
};

class HappensBefore {
 public:
  void reset(uint32_t threads, uint32_t agents) {
    threads_ = threads;
    agents_ = agents;
    own_.assign(threads, 1);
    known_ = {std::vector<uint32_t>(agents, 0), {}};
    visible_ = {std::vector<uint32_t>(agents, 0), {}};
  }
  /// True until something other than a barrier of the whole block may pass knowledge on.
  [[nodiscard]] bool only_barriers() const { return known_.rows.empty(); }
  void expect_more() {
    if (known_.rows.empty()) known_.rows.assign(size_t{threads_} * agents_, 0);
  }
  [[nodiscard]] uint32_t now(uint32_t thread) const { return own_[thread]; }

  /// Newest clock of the agent that the thread knows.
  [[nodiscard]] uint32_t known(uint32_t thread, uint32_t agent) const {
    return agent == thread ? own_[thread] : get(known_, thread, agent);
  }
  [[nodiscard]] bool knows(uint32_t thread, const Access& a) const {
    if (a.clock <= known_.floor[a.agent]) return true;
    if (a.agent == thread) return a.clock != kInFlight;
    if (a.warp_wide && a.agent / 32 == thread / 32) return true;
    return !known_.rows.empty() && a.clock <= known_.rows[size_t{thread} * agents_ + a.agent];
  }
  [[nodiscard]] bool known_to_all(const Access& a) const { return a.clock <= known_.floor[a.agent]; }
  /// Newest clock of the agent of which the thread knows that the asynchronous proxy sees it.
  [[nodiscard]] uint32_t visible(uint32_t thread, uint32_t agent) const { return get(visible_, thread, agent); }

  void barrier() {
    for (uint32_t t = 0; t < threads_; ++t) known_.floor[t] = own_[t]++;
    raise_floor(known_);
    raise_floor(visible_);
  }
  /// Adds all that the thread knows to `to`, and starts its next interval.
  void release(uint32_t thread, Clocks& to) {
    add(known_, thread, to.known);
    add(visible_, thread, to.visible);
    to.known[thread] = own_[thread]++;
  }
  void acquire(uint32_t thread, const Clocks& from) {
    if (from.known.empty()) return;
    uint32_t* v = row(known_, thread);
    for (uint32_t i = 0; i < agents_; ++i) v[i] = std::max(v[i], from.known[i]);
    if (from.visible.empty()) return;
    v = row(visible_, thread);
    for (uint32_t i = 0; i < agents_; ++i) v[i] = std::max(v[i], from.visible[i]);
  }
  /// Makes the thread know the agent's accesses up to `clock`.
  void learn(uint32_t thread, uint32_t agent, uint32_t clock) {
    uint32_t& v = row(known_, thread)[agent];
    v = std::max(v, clock);
  }
  /// All that the thread knows becomes visible to the asynchronous proxy. Its next interval begins, so that later
  /// writes do not count.
  void fence_async(uint32_t thread) {
    uint32_t* v = row(visible_, thread);
    for (uint32_t i = 0; i < agents_; ++i) v[i] = std::max(v[i], get(known_, thread, i));
    v[thread] = own_[thread]++;
  }

 private:
  struct Matrix {
    std::vector<uint32_t> floor, rows;                // one entry per agent; one row per thread, or none
  };
  [[nodiscard]] uint32_t get(const Matrix& m, uint32_t thread, uint32_t agent) const {
    return m.rows.empty() ? m.floor[agent] : std::max(m.floor[agent], m.rows[size_t{thread} * agents_ + agent]);
  }
  uint32_t* row(Matrix& m, uint32_t thread) {
    if (m.rows.empty()) m.rows.assign(size_t{threads_} * agents_, 0);
    return &m.rows[size_t{thread} * agents_];
  }
  void add(const Matrix& m, uint32_t thread, std::vector<uint32_t>& to) {
    to.resize(agents_);
    for (uint32_t i = 0; i < agents_; ++i) to[i] = std::max(to[i], get(m, thread, i));
  }
  void raise_floor(Matrix& m) {
    for (size_t t = 0; t < m.rows.size(); t += agents_)
      for (uint32_t i = 0; i < agents_; ++i) m.floor[i] = std::max(m.floor[i], m.rows[t + i]);
  }
  uint32_t threads_ = 0, agents_ = 0;
  std::vector<uint32_t> own_;
  Matrix known_, visible_;
};

/// The threads on whose behalf an access is made, `count` from `first` on: all must know what it conflicts with.
class Observer {
 public:
  Observer(const HappensBefore& order, uint32_t first, uint32_t count = 1)
      : order_(order), first_(first), count_(count) {
    if (count > 1) known_.fill({~uint32_t{0}, 0}), visible_.fill({~uint32_t{0}, 0});
  }
  [[nodiscard]] bool knows(const Access& a) {
    if (order_.known_to_all(a)) return true;
    if (count_ == 1) return order_.knows(first_, a);
    if (a.clock == kInFlight) return false;
    if (a.warp_wide) {
      for (uint32_t t = first_; t < first_ + count_; ++t)
        if (!order_.knows(t, a)) return false;
      return true;
    }
    return a.clock <= least(known_, a.agent, [&](uint32_t t) { return order_.known(t, a.agent); });
  }
  /// Known, and made visible to the asynchronous proxy on the way.
  [[nodiscard]] bool sees(const Access& a) {
    if (count_ == 1) return a.clock <= order_.visible(first_, a.agent);
    return a.clock <= least(visible_, a.agent, [&](uint32_t t) { return order_.visible(t, a.agent); });
  }

 private:
  struct Cached {
    uint32_t agent, value;
  };
  // Neighbouring bytes mostly have the same writer: a small cache makes 128 threads as cheap as one.
  template <class F>
  uint32_t least(std::array<Cached, 8>& cache, uint32_t agent, F&& of) {
    Cached& c = cache[agent % cache.size()];
    if (c.agent != agent) {
      c = {agent, ~uint32_t{0}};
      for (uint32_t t = first_; t < first_ + count_; ++t) c.value = std::min(c.value, of(t));
    }
    return c.value;
  }
  const HappensBefore& order_;
  uint32_t first_, count_;
  std::array<Cached, 8> known_, visible_;             // not set up for a single thread, which needs none
};

}  // namespace tile::emu
