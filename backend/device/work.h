// How much a launch computes: operations of its matrix products, counted by following the kernel's integers without its tiles.
#pragma once

#include <optional>

#include "vm/ir/module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// Multiplications and additions of all mma operations of the launch: 2 * batch * m * n * k each time one runs.
/// No value where the number depends on what the kernel computes or loads, or counting takes more than a second or so.
[[nodiscard]] std::optional<double> launch_flops(const Module& module, const Function& entry, const LaunchGrid& grid, const LaunchArguments& args);

}  // namespace tile
