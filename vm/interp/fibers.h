// Flows of control of one thread that hand over to each other at places of their choice.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tile {

class Fibers {
 public:
  /// @param body  runs in each of the `n` fibers with its number; must not throw
  Fibers(size_t n, std::function<void(size_t)> body);
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers();
  /// False if the host has no memory for the stacks; then nothing else may be called.
  [[nodiscard]] bool ready() const;
  /// Runs fiber `first` until it ends or hands over, and so on; returns when next() has named no fiber.
  /// @param next  asked when a fiber ends: which one goes on; kNone: none is left
  void run(size_t first, std::function<size_t()> next);
  /// From within a fiber: lets fiber `to` go on; returns when somebody hands over to the caller again.
  void hand_over(size_t to);
  [[nodiscard]] size_t current() const;
  static constexpr size_t kNone = ~size_t{0};

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tile
