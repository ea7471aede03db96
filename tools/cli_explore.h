// One launch many times with different seeds: the first that ends badly, or with another result, is reported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "vm/runtime/device.h"
#include "vm/runtime/freedom.h"
#include "vm/runtime/job.h"

namespace tile::cli {

struct Exploration {
  const Job& job;
  const Function& entry;
  Device& device;
  LaunchArguments& args;    ///< afterwards as the last launch left them
  RunOptions& options;
  const FreedomChoice& choice;
  bool check = true;        ///< each launch must meet the job's expectations
  std::string& prints;      ///< of the launch that is under way
  std::function<void(uint64_t, uint64_t)> ended;  ///< called after each launch: how many have ended, of how many
};

struct Explored {
  uint64_t launches = 0;         ///< that came to an end
  std::optional<uint64_t> seed;  ///< the one that was found
  RunStats stats;                ///< of the first launch
  bool expected_trap = false;
};

/// Errors of the seed that was found get a note that names it.
/// @error  those of launches; E0809 for other results
[[nodiscard]] Explored explore(const Exploration& e, Diagnostics& diags);

/// "100 schedules, seeds 0 to 99, gave the same result"
[[nodiscard]] std::string explored_text(const FreedomChoice& choice, const Explored& found);

}  // namespace tile::cli
