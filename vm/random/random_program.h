// Random programs that are valid and whose results the language fixes: no undefined behaviour, no unspecified value in
// a result, no race. Operations, element types and attributes are drawn from the operation table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/ir/module.h"

namespace tile::random_program {

struct Options {
  uint64_t seed = 1;
  unsigned size = 24;  ///< actions; an action is one operation and what its operands need
  /// Only operations whose results are exact, and sums and products of small integers where the order of a sum is open:
  /// two machines must then agree in every bit.
  bool exact = false;
  bool local_memory = true;    ///< alloca
  unsigned product_loops = 1;  ///< percent of the actions that are loops of matrix products
  std::vector<Opcode> prefer;  ///< operations of the table that are drawn half of the time; empty: none
};

struct Program {
  Module module;                  ///< one entry, @k
  std::vector<std::string> args;  ///< of its launch, in the text form of spec/launch.md
  std::array<uint32_t, 3> grid = {1, 1, 1};

  /// The launch as a job file for the kernel file `kernel`.
  [[nodiscard]] std::string job(const std::string& kernel) const;
};

/// Equal options give equal programs.
[[nodiscard]] Program make(const Options& options);

}  // namespace tile::random_program
