// Job files: a kernel, its launch and what its arrays must hold afterwards, as JSON. Format: spec/launch.md "Job
// files".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/runtime/compare.h"
#include "vm/runtime/freedom.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// The array inside a buffer that holds more around it.
struct ArrayWindow {
  int64_t offset = 0;  ///< elements
  std::vector<int64_t> shape, strides;
};

struct Expectation {
  size_t argument = 0;     ///< pointer or array
  bool unchanged = false;  ///< the same as before the launch; `source` is that of the argument
  ArraySource source;      ///< generated ones without shape: that of the argument
  CompareRule rule;
  std::string bound_path;  ///< CompareRule::Kind::Bound
  /// Elements that the rule is for; all others of the buffer must have the expected bits.
  std::optional<ArrayWindow> window;
};

struct Job {
  std::string file;      ///< path of the job file, for messages
  std::string base_dir;  ///< its folder: where relative paths start
  std::string kernel;    ///< path as written
  std::string entry;     ///< empty: the only one
  LaunchGrid grid = {1, 1, 1};
  std::vector<ArgSpec> args;
  std::vector<OutSpec> outs;
  std::vector<Expectation> expectations;
  std::vector<std::string> prints;  ///< texts that the kernel must print, in any order; each may hold several lines
  std::optional<Code> outcome;      ///< the trap that must end the launch
  uint32_t threads = 0;             ///< 0: as many as the machine has
  FreedomChoice freedom;

  [[nodiscard]] std::string kernel_path() const { return path_in(base_dir, kernel); }
};

inline constexpr uint32_t kMaxJobThreads = 4096;

/// Reads a job file. E0901; E0807 for what is wrong in it, at its line and column; E0804, E0805 for arguments and grid.
[[nodiscard]] Result<Job> read_job(const std::string& path, Diagnostics& diags);
/// The same from a text; `name` is for messages.
[[nodiscard]] Result<Job> parse_job(std::string text, const std::string& name, const std::string& base_dir,
                                    Diagnostics& diags);

/// Reads a launch description in the flat form: parameters one by one, pointers as buffer and byte offset, arrays as
/// windows of buffers. A relative path of the bytecode starts at the folder of the file or at one of the two above it,
/// the first where it exists.
[[nodiscard]] Result<Job> read_launch_json(const std::string& path, Diagnostics& diags);
[[nodiscard]] Result<Job> parse_launch_json(std::string text, const std::string& name, const std::string& base_dir,
                                            Diagnostics& diags);

/// Compares the buffers after the launch with the job's expectations; reports every one that is not met as E0809.
/// Failed also where an expected file cannot be used (E0806, E0807, E0901).
[[nodiscard]] Status check_expectations(const Job& job, const LaunchArguments& after, Diagnostics& diags,
                                        const ArrayLimits& limits = {});

/// Writes the arrays of `job.outs`; paths start at job.base_dir. E0902.
[[nodiscard]] Status write_outs(const Job& job, const LaunchArguments& after, Diagnostics& diags);

/// Folder part of a path with its slash, "" where there is none.
[[nodiscard]] std::string folder_of(const std::string& path);

}  // namespace tile
