// Runs a program in this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/random/random_program.h"
#include "vm/runtime/device.h"

namespace tile::random_program {

using MakeDevice = std::function<Result<std::unique_ptr<Device>>(std::shared_ptr<const ValidModule>, Diagnostics&)>;

/// What a launch left in memory: the bytes of every array.
struct Outcome {
  std::vector<std::vector<uint8_t>> arrays;
  std::vector<ElementType> types;  ///< of the arrays
  std::string errors;              ///< rendered; empty: it ended well
  bool unsupported = false;        ///< E0808
};

struct LaunchOptions {
  unsigned threads = 1;
  bool check = false;  ///< with the checkers of spec/checkers.md, as far as they report errors
};

[[nodiscard]] Outcome launch(const std::shared_ptr<const ValidModule>& module, const Program& program,
                             const MakeDevice& make, const LaunchOptions& options = {});
[[nodiscard]] Outcome launch_on_cpu(const std::shared_ptr<const ValidModule>& module, const Program& program,
                                    const LaunchOptions& options = {});

/// Where two outcomes differ first, "array 3 of f32, element 4: 00000001 and 00000000"; empty where they are equal. Any
/// NaN equals any other: the language leaves its bits open.
[[nodiscard]] std::string difference(const Outcome& a, const Outcome& b);

}  // namespace tile::random_program
