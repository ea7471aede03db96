// One launch from start to end, for every command that runs kernels: load, validate, expand arguments, run, check, write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli_check.h"
#include "tools/cli_freedom.h"
#include "tools/cli_observe.h"
#include "tools/cli_options.h"
#include "vm/interp/exec.h"
#include "vm/runtime/bundle.h"
#include "vm/runtime/device.h"
#include "vm/runtime/job.h"

namespace tile::cli {

struct LaunchSettings {
  std::string program = "tilevm";
  unsigned threads = 0;        ///< overrides the job's where not 0
  uint64_t fuel = 0;
  uint64_t max_memory = uint64_t{4} << 30;
  ArrayLimits arrays;          ///< of the arguments together
  bool stats = false;          ///< table on standard error
  bool json = false;           ///< report on standard output
  bool check = true;           ///< compare with the job's expectations
  std::vector<std::string> show;  ///< arguments whose arrays are printed
  std::string dump;            ///< folder for buffer_<i>.npy of every buffer, or empty
  unsigned repeat = 1;         ///< launches; the fastest is reported
  ObserveSettings observe;
  CheckSettings checks;
  FreedomSettings freedom;
  /// Makes the machine and says its name; the interpreter where it is empty.
  std::function<Result<std::unique_ptr<Device>>(std::shared_ptr<const ValidModule>, std::string& name, Diagnostics&)> make_device;
  bool both = false;           ///< run on the interpreter too and compare
  std::shared_ptr<std::vector<std::pair<std::string, double>>> phases;  ///< of the first launch on a GPU, once it was made; may be null
};

/// Runs the job's launch. Kernel prints go to standard output, or into the report with --json.
/// @return exit status: 0, 5 if a result differs, else that of the class of the first error; 130 if interrupted
[[nodiscard]] int run_launch(const Job& job, const LaunchSettings& settings, const CommonOptions& common);

/// Whether a launch ended before it began, by a fault or a limit of the compiler or the assembler: the arrays are as they were.
[[nodiscard]] bool compiler_failed(const Diagnostics& diags);
/// Writes a bundle of a launch into the folder for temporary files, and adds a note about it to the first error.
void keep_for_replay(const ValidModule& module, const std::string& entry, const Job& job, const LaunchArguments& args, const BundleOptions& options, Diagnostics& diags);

/// Repeats the launch that a bundle holds and compares with what it recorded.
/// @param settings  fuel and max_memory 0: as recorded
/// @return exit status as above; 5 where outputs, prints or the trap differ from the recorded ones
[[nodiscard]] int run_replay(const std::string& path, LaunchSettings settings, const CommonOptions& common);

}  // namespace tile::cli
