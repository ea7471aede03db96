// What tileasm and tilevm have in common on the command line: shared options, reporting, exit status, version text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "vm/base/diagnostics.h"

namespace CLI {
class App;
class Validator;
}

namespace tile::cli {

/// Exit statuses besides those of failure classes (diagnostics.h).
inline constexpr int kOk = 0, kRejected = 1, kUsage = 2, kDiffers = 5, kInternal = 70;

struct CommonOptions {
  std::string diagnostics = "text";  ///< or "json"
  std::string color = "auto";        ///< or "always", "never"
  bool verbose = false;
};
/// Adds --diagnostics, --color and --verbose, which may stand before or after the name of a command.
void add_common_options(CLI::App& app, CommonOptions& options);

/// Prints what was collected to standard error and returns the exit status: that of the class of the first error, else
/// 0.
int report(const Diagnostics& diags, const CommonOptions& options);
/// A command line that cannot be understood: reports U0001.
int usage_error(const std::string& program, const std::string& message, const CommonOptions& options,
                const std::string& help = {});

/// The text of --version, without its last newline: program, version, commit, forms that it reads, compiler and options
/// of the build.
[[nodiscard]] std::string version_text(const std::string& program);

/// The version alone, "0.1.0".
[[nodiscard]] std::string build_version();

/// For options whose value is a number without sign: decimal or 0x and hexadecimal digits, `least` to 2^64 - 1 or what their type holds.
[[nodiscard]] CLI::Validator whole_number(uint64_t least = 0, uint64_t most = UINT64_MAX);

/// Parses the command line; no option takes an empty value. True: go on. False: leave with `status` (help and version were printed, or an error was
/// reported).
[[nodiscard]] bool parse_command_line(CLI::App& app, int argc, const char* const* argv, CommonOptions& options,
                                      int& status);

/// Runs a program: memory that runs out ends with status 3, any other exception with 70, a closed output pipe without a
/// word.
int run_program(const char* name, const std::function<int()>& body);

/// True if `fd` is a terminal.
[[nodiscard]] bool is_terminal(int fd);

/// A line on standard error, if --verbose was given.
void log(const CommonOptions& options, const std::string& line);

}  // namespace tile::cli
