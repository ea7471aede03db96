// What the user may choose where the language leaves a launch open: --schedule, --order and --numerics.
#pragma once

#include <functional>
#include <string>

#include "tools/cli_options.h"
#include "tools/cli_observe.h"
#include "vm/runtime/freedom.h"

namespace tile::cli {

/// Words of the command line; empty where nothing was said.
struct FreedomSettings {
  std::string schedule, order, numerics;
  FreedomChoice choice;  ///< what they mean, after check_freedom_options()
};
void add_freedom_options(CLI::App& app, FreedomSettings& settings);
/// Reads the words; 0 or the exit status, with the error reported.
[[nodiscard]] int check_freedom_options(FreedomSettings& settings, const std::string& program,
                                        const CommonOptions& common);

/// What else a launch was asked to do, as far as it may not go together with a choice.
struct FreedomPartners {
  unsigned threads = 0, repeat = 1;
  bool gpu = false, both = false;
  const ObserveSettings* observe = nullptr;
};
/// Reports options that exclude each other as U0001. Both may come from a job file or a bundle.
[[nodiscard]] Status check_freedom_partners(const FreedomChoice& choice, const FreedomPartners& partners,
                                            Diagnostics& diags);

}  // namespace tile::cli
