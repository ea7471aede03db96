// The GPU part on the command line. This header and its options exist in every build; without the GPU part all of them answer E0808.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/cli_launch.h"
#include "tools/cli_options.h"

namespace tile::cli {

struct GpuSettings {
  std::string gpu;                 ///< "auto", "emulate", or the number of a device; empty: not asked for
  std::string target;
  unsigned opt_level = 3;
  bool opt_given = false;          ///< -O on the command line: the emulation's code is optimised, too
  std::vector<std::string> emit;   ///< "ptx" or "ptx=FILE"
  std::string remarks;             ///< "text", "json", or empty
  bool lineinfo = false, no_cache = false, both = false;
  std::vector<std::string> plan;   ///< "key=value"
  double compile_seconds = 300;    ///< 0: no limit
  std::string compile_memory = "0";
  uint64_t emulate_seed = 1;
  std::string emulate_policy = "random";

  [[nodiscard]] bool emulate() const { return gpu == "emulate"; }
};

/// Adds --gpu and all that belongs to it.
void add_gpu_options(CLI::App& app, GpuSettings& settings);

/// Checks the options and makes `launch` run where they say; 0 or the exit status, with the error reported.
[[nodiscard]] int finish_gpu(const CLI::App& app, GpuSettings& settings, LaunchSettings& launch, const std::string& program, const CommonOptions& common);

/// With --emit: writes what was asked for and gives the exit status. Call it instead of running the job.
[[nodiscard]] int emit_job(const Job& job, const GpuSettings& settings, const CommonOptions& common);

/// The same with the kernel and entry of a bundle.
[[nodiscard]] int emit_bundle(const std::string& path, const GpuSettings& settings, const CommonOptions& common);

/// `tilevm devices`, `tilevm cache` and `tilevm bench`; the first word is the command's name.
[[nodiscard]] int devices_command(int argc, const char* const* argv);
[[nodiscard]] int cache_command(int argc, const char* const* argv);
[[nodiscard]] int bench_command(int argc, const char* const* argv);

/// Lines about the GPU part for --version, each with a newline before it.
[[nodiscard]] std::string gpu_version_text();

/// The error of a build without the GPU part.
[[nodiscard]] int no_gpu_part(const std::string& what, const CommonOptions& common);

}  // namespace tile::cli
