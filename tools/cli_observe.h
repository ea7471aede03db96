// Everything by which a user watches a launch: options, the observers they ask for, and the files that come out.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli_options.h"
#include "vm/runtime/device.h"
#include "vm/runtime/launch_args.h"

namespace tile::cli {

struct ObserveSettings {
  std::string trace;  ///< file; "-": standard error; empty: no trace
  std::string trace_block;
  std::vector<std::string> trace_ops;
  uint32_t trace_line = 0;
  std::string profile;  ///< file for JSON; "-": the table only; empty: no profile
  std::string profile_trace;
  std::string access_map;
  bool ordered_prints = false, print_blocks = false;
  std::vector<std::string> breaks;
  std::string bundle;
  double time_limit = 0;  ///< seconds, 0: none
};
void add_observe_options(CLI::App& app, ObserveSettings& settings);
/// Checks what the command line alone can tell; 0 or the exit status, with the error reported.
[[nodiscard]] int check_observe_options(const ObserveSettings& settings, const std::string& program,
                                        const std::string& kernel, const CommonOptions& common);

/// The launch that is watched.
struct Watched {
  std::shared_ptr<const ValidModule> module;
  const Function* entry = nullptr;
  LaunchGrid grid = {1, 1, 1};
  std::span<const std::string> names;  ///< of the arguments
  const LaunchArguments* args = nullptr;
};

/// The observers of one launch. Without any option it adds none, and the launch pays nothing.
class Watch {
 public:
  Watch(const ObserveSettings& settings, Watched launch);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// Adds observers to the options, and changes threads and printing where an observer needs that. E0902.
  [[nodiscard]] Status begin(RunOptions& options, Diagnostics& diags);
  /// Prints tables and writes files after the launch, also after one that failed, but not where none began. E0902.
  /// @param whole  the launch came to its end: filters and breakpoints that met nothing are warned of
  [[nodiscard]] Status end(bool whole, Diagnostics& diags);

 private:
  struct Parts;
  const ObserveSettings& settings_;
  Watched launch_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tile::cli
