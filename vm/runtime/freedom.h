// What of a launch the language leaves open and the user may choose: how blocks interleave, in which order they begin, whose numbers
// count. As words of the command line and of job files (spec/machine.md "Freedom").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/interp/exec.h"

namespace tile {

/// One seed, or the first of several to be tried one after the other.
struct SeedChoice {
  uint64_t seed = 0;
  uint32_t tries = 0;  ///< 0: this seed alone
  static constexpr uint32_t kMostTries = 1'000'000;

  bool operator==(const SeedChoice&) const = default;
};

/// Reads "7", "0x7", "explore:100" (seeds 0 to 99) or "explore:100:7" (seeds 7 to 106).
[[nodiscard]] std::optional<SeedChoice> parse_seed_choice(std::string_view text);
[[nodiscard]] std::string show(const SeedChoice& choice);

/// Reads "exact" or "h200".
[[nodiscard]] std::optional<Numerics> parse_numerics(std::string_view text);
[[nodiscard]] const char* numerics_name(Numerics numerics);

/// What is not said is as the machine does it.
struct FreedomChoice {
  std::optional<SeedChoice> schedule;  ///< how blocks interleave
  std::optional<SeedChoice> order;     ///< in which order blocks begin
  std::optional<Numerics> numerics;

  /// What `other` says and this does not is taken over.
  void complete(const FreedomChoice& other);
  /// Puts seeds and numbers into the options of a launch, `tried` further than the first seed.
  void apply(RunOptions& options, uint64_t tried = 0) const;
  /// Which of the two is tried with several seeds: "--schedule", "--order", or nullptr.
  [[nodiscard]] const char* explored() const;
  [[nodiscard]] const SeedChoice* exploration() const;
};

}  // namespace tile
