// A machine that runs entries of a valid module. The CPU device interprets; others compile. Arguments come from launch_args.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vm/interp/exec.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// The entry named `name`, or the only one if `name` is empty. E0801 with the names there are.
[[nodiscard]] Result<const Function*> find_entry(const Module& module, std::string_view name, Diagnostics& diags);
/// What the entry takes, for expand().
[[nodiscard]] std::vector<ParamType> entry_params(const Module& module, const Function& entry);

/// A loaded module: its globals keep their values between launches.
class Device {
 public:
  virtual ~Device() = default;
  /// Runs an entry once per block of the grid and returns when all are done; the arguments' buffers are read and written in place.
  ///
  /// @param args  as expand() made them for this entry
  /// @error       E08xx, T01xx, L01xx, E0903; after an error the buffers are unspecified
  /// @thread_safety  one launch at a time
  [[nodiscard]] virtual Result<RunStats> launch(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const RunOptions& options,
                                                Diagnostics& diags) = 0;
};

/// The exact reference machine.
[[nodiscard]] Result<std::unique_ptr<Device>> make_cpu_device(std::shared_ptr<const ValidModule> module, Diagnostics& diags);

}  // namespace tile
