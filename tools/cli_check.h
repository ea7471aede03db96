// The checkers on the command line: --check, --undef and --uninit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/cli_options.h"
#include "vm/interp/check.h"
#include "vm/interp/exec.h"
#include "vm/runtime/job.h"

namespace tile::cli {

struct CheckSettings {
  std::string checks;          ///< list for parse_checks(); empty: none
  std::string undef = "zero";  ///< zero, nan, random or trap
  uint64_t undef_seed = 1;
  std::vector<std::string> uninitialised;  ///< arguments, by name or number
};
void add_check_options(CLI::App& app, CheckSettings& settings);
/// Checks what the command line alone can tell; 0 or the exit status, with the error reported.
[[nodiscard]] int check_check_options(const CheckSettings& settings, const std::string& program,
                                      const CommonOptions& common);

/// Sets the filling of unspecified elements, and adds the checker to the observers if one is asked for.
/// @return the checker, which must outlive the launch; none where no check was asked for. E0804.
[[nodiscard]] Result<std::unique_ptr<Observer>> begin_checks(const CheckSettings& settings, const Job& job,
                                                             std::shared_ptr<const ValidModule> module,
                                                             const LaunchArguments& args, RunOptions& options,
                                                             Diagnostics& diags);

/// With --undef nan or random the arrays that --uninit names hold what stands for unspecified elements. Call it after begin_checks().
void fill_uninitialised(const CheckSettings& settings, const Job& job, LaunchArguments& args);

}  // namespace tile::cli
