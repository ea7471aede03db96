// Options of the GPU part, and what they answer in a build without it.
#include "tools/tilevm_gpu.h"

#include <CLI/CLI.hpp>

namespace tile::cli {

void add_gpu_options(CLI::App& app, GpuSettings& s) {
  constexpr char kGroup[] = "GPU options";
  app.add_option("--gpu", s.gpu, "Run on a GPU: auto, the number of a device, or emulate for its emulation on this computer")
      ->type_name("DEVICE")
      ->expected(0, 1)
      ->default_str("auto")
      ->group(kGroup);
  app.add_flag("--both", s.both, "Run on the GPU and on the reference interpreter, and show where results differ (exit 5)")->group(kGroup);
  app.add_option("--target", s.target, "Compile for this GPU: sm_75, 80, 86, 89, 90, 90a, 100a, 103a, 120a; default: the one that is there")
      ->type_name("SM")
      ->group(kGroup);
  app.add_option("-O", s.opt_level, "Optimisation: 0 to 3")->type_name("LEVEL")->check(CLI::Range(0u, 3u))->capture_default_str()->group(kGroup);
  app.add_option("--emit", s.emit, "Write plan, llvm, ptx, cubin or sass (FILE or standard output) instead of running")
      ->type_name("KIND[=FILE]")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--remarks", s.remarks, "Say on standard error which unit every operation uses, and why no better one: text or json")
      ->type_name("FORM")
      ->expected(0, 1)
      ->default_str("text")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kGroup);
  app.add_flag("--lineinfo", s.lineinfo, "Keep source lines for profilers")->group(kGroup);
  app.add_option("--plan", s.plan, "Force a choice of the planner, KEY=VALUE")->type_name("KEY=VALUE")->allow_extra_args(false)->group(kGroup);
  app.add_flag("--no-cache", s.no_cache, "Compile anew; neither read nor write the cache of compiled kernels")->group(kGroup);
  app.add_option("--compile-time-limit", s.compile_seconds, "Stop compiling for a GPU after so many seconds (exit 6); 0: no limit")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--compile-max-memory", s.compile_memory, "Most memory that the compiler, and the assembler, may take, such as 2G (exit 6); 0: no limit")->type_name("SIZE")->group(kGroup);
  app.add_option("--emulate-seed", s.emulate_seed, "Order of threads and copies in the emulation")->type_name("SEED")->check(whole_number())->capture_default_str()->group(kGroup);
  app.add_option("--emulate-policy", s.emulate_policy, "When the emulation's asynchronous copies happen")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"early", "late", "random"}))
      ->capture_default_str()
      ->group(kGroup);
}

int no_gpu_part(const std::string& what, const CommonOptions& common) {
  Diagnostics diags;
  (void)diags.error(Code::E0808, Place{}, what + ": this build has no GPU part", "configure with -DTILEVM_GPU=ON");
  return report(diags, common);
}

#ifndef TILEVM_WITH_GPU

int finish_gpu(const CLI::App& app, GpuSettings&, LaunchSettings&, const std::string&, const CommonOptions& common) {
  for (const char* name : {"--gpu", "--both", "--target", "-O", "--emit", "--remarks", "--lineinfo", "--plan", "--no-cache", "--compile-time-limit", "--compile-max-memory", "--emulate-seed", "--emulate-policy"})
    if (app.count(name) > 0) return no_gpu_part(name, common);
  return kOk;
}

int emit_job(const Job&, const GpuSettings&, const CommonOptions& common) { return no_gpu_part("--emit", common); }
int emit_bundle(const std::string&, const GpuSettings&, const CommonOptions& common) { return no_gpu_part("--emit", common); }
int devices_command(int, const char* const*) { return no_gpu_part("tilevm devices", {}); }
int cache_command(int, const char* const*) { return no_gpu_part("tilevm cache", {}); }
int bench_command(int, const char* const*) { return no_gpu_part("tilevm bench", {}); }
std::string gpu_version_text() { return "\ngpu: not in this build"; }

#endif

}  // namespace tile::cli
