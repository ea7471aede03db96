// tilevm: runs kernels. `tilevm KERNEL --arg ...` and `tilevm run JOB` are the two ways to say what to launch.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli_launch.h"
#include "tools/cli_options.h"
#include "vm/runtime/launch_args.h"

namespace tile::cli {
namespace {

constexpr const char* kFooter = R"(Arguments, one --arg for each, in order; an optional name and = may stand before:
  i32:128  f32:0.5  i1:true  f16:0x3c00     scalars (hexadecimal: the bits)
  ptr:a.npy  ptr:f32[64]=zeros              a bare pointer to an array
  array:a.npy  array:f16[512,512]=normal    an array as cuTile passes it: pointer, extents, strides
Generators: zeros ones full(v) arange uniform normal randint bits eye; see spec/launch.md.

Examples:
  tilevm add.tile --grid 4 --arg ptr:a.npy --arg ptr:b.npy --arg c=ptr:f32[4096]=zeros --out c=c.npy
  tilevm matmul.tilebc --entry matmul --grid 4,4 --arg array:f16[512,512]=normal(seed=1) \
         --arg array:f16[512,512]=normal(seed=2) --arg c=array:f32[512,512]=zeros --show c --stats
  tilevm run examples/02_loop_over_k.json

Exit status: 0 ok, 1 input rejected, 2 usage, 3 environment, 4 trap, 5 results differ, 6 limit reached,
70 internal fault, 130 interrupted.)";

struct Settings {
  LaunchSettings launch;
  bool cpu = false;
  std::string gpu, max_memory = "4G";
};

void add_launch_options(CLI::App& app, Settings& s) {
  app.add_flag("--cpu", s.cpu, "Run on the exact reference interpreter (the default)");
  app.add_option("--gpu", s.gpu, "Run on a GPU: not part of this version")->expected(0, 1)->default_str("auto");
  app.add_option("--threads", s.launch.threads, "Worker threads; 0: one for each core")->check(CLI::Range(0u, kMaxJobThreads));
  app.add_option("--fuel", s.launch.fuel, "Most steps of one block before the run is stopped (exit 6); 0: unlimited");
  app.add_option("--max-memory", s.max_memory, "Most memory that one block's tiles may take, e.g. 512M, 4G")->capture_default_str();
  app.add_option("--repeat", s.launch.repeat, "Launch so many times and report the fastest")->check(CLI::Range(1u, 1000000u));
  app.add_option("--show", s.launch.show, "Print the first elements of this argument's array afterwards (by name or number from 0)");
  app.add_flag("--stats", s.launch.stats, "Print blocks, steps, memory and time on standard error");
  app.add_flag("--json", s.launch.json, "Print a report as JSON on standard output; kernel prints go into it");
  add_observe_options(app, s.launch.observe);
  add_check_options(app, s.launch.checks);
}

/// "512M" in bytes; 0 if it cannot be read.
uint64_t parse_bytes(const std::string& text) {
  uint64_t value = 0;
  size_t at = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && value < (uint64_t{1} << 40)) value = value * 10 + static_cast<uint64_t>(text[at++] - '0');
  if (at == 0) return 0;
  const std::string_view unit = std::string_view(text).substr(at);
  for (const auto& [name, shift] : {std::pair{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}})
    if (unit == name) return value << shift;
  return 0;
}

/// Checks options that CLI11 cannot; 0 or the exit status.
int finish(Settings& s, const CLI::App& app, const std::string& kernel, const CommonOptions& common) {
  if (app.count("--gpu") > 0) {
    Diagnostics diags;
    (void)diags.error(Code::E0808, Place{}, "--gpu: this version has no GPU part", "run with --cpu");
    return report(diags, common);
  }
  s.launch.max_memory = parse_bytes(s.max_memory);
  if (s.launch.max_memory == 0) return usage_error("tilevm", "--max-memory: '" + s.max_memory + "' is not a size", common, "write it as 512M or 4G");
  if (const int status = check_check_options(s.launch.checks, "tilevm", common)) return status;
  return check_observe_options(s.launch.observe, "tilevm", kernel, common);
}

int launch_command(int argc, const char* const* argv) {
  CommonOptions common;
  Settings s;
  std::string kernel, entry, grid = "1";
  std::vector<std::string> args, outs;
  CLI::App app{"Runs a kernel of Tile IR: text, tilebc or tileirbc, recognised by content.\nAlso: tilevm run JOB.json, tilevm replay BUNDLE (each with --help).", "tilevm"};
  app.footer(kFooter);
  app.set_version_flag("--version", version_text("tilevm"));
  app.add_option("KERNEL", kernel, "File with the kernel; - for standard input")->required();
  app.add_option("--entry", entry, "Entry to run; may be left out if there is only one");
  app.add_option("--grid", grid, "Tile blocks along x, y, z: X[,Y[,Z]]")->capture_default_str();
  app.add_option("--arg", args, "An argument, see below")->allow_extra_args(false);
  app.add_option("--out", outs, "ARG=FILE.npy: write this argument's array afterwards (by name or number from 0)")->allow_extra_args(false);
  add_launch_options(app, s);
  add_common_options(app, common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  if (status = finish(s, app, kernel, common); status != 0) return status;

  Diagnostics diags;
  Job job;
  job.kernel = kernel;
  job.entry = entry;
  const auto parsed_grid = parse_grid(grid, diags);
  const auto specs = parse_args(args, diags);
  if (specs)
    for (const std::string& text : outs)
      if (const auto out = parse_out(text, *specs, diags)) job.outs.push_back(*out);
  if (diags.has_errors()) return report(diags, common);
  job.grid = *parsed_grid;
  job.args = *specs;
  return run_launch(job, s.launch, common);
}

int run_command(int argc, const char* const* argv) {
  CommonOptions common;
  Settings s;
  std::string path, kernel;
  bool no_check = false;
  CLI::App app{"Runs a job file: a kernel, its launch and what its arrays must hold afterwards (spec/launch.md).", "tilevm run"};
  app.footer("Examples:\n  tilevm run examples/02_loop_over_k.json\n  tilevm run job.json --json --threads 1\n  tilevm run launch.json --dump out --no-check");
  app.add_option("JOB", path, "Job file, or a launch description named launch.json")->required();
  app.add_option("--kernel", kernel, "Run this file instead of the job's kernel");
  app.add_option("--dump", s.launch.dump, "Write every buffer, whole, as buffer_<number>.npy into this folder");
  app.add_flag("--no-check", no_check, "Do not compare with the expected values");
  add_launch_options(app, s);
  add_common_options(app, common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  if (status = finish(s, app, kernel, common); status != 0) return status;
  s.launch.check = !no_check;
  Diagnostics diags;
  const bool launch = path.size() >= 11 && path.compare(path.size() - 11, 11, "launch.json") == 0;
  auto job = launch ? read_launch_json(path, diags) : read_job(path, diags);
  if (!job) return report(diags, common);
  if (!kernel.empty()) {
    job->kernel = kernel.front() == '/' || kernel == "-" ? kernel : std::string();
    if (job->kernel.empty()) {  // a path given on the command line starts at the working folder, not at the job's
      char* absolute = realpath(kernel.c_str(), nullptr);
      job->kernel = absolute ? absolute : kernel;
      std::free(absolute);
    }
  }
  return run_launch(*job, s.launch, common);
}

int replay_command(int argc, const char* const* argv) {
  CommonOptions common;
  Settings s;
  std::string path;
  CLI::App app{"Repeats a launch that --bundle recorded, and says whether the outputs are bit-equal.", "tilevm replay"};
  app.footer("Exit status 0: the same outputs, or the same trap; 5: different ones. Options of the launch are those recorded unless given here.\n\n"
             "Examples:\n  tilevm softmax.tile --arg ... --bundle run.bundle\n  tilevm replay run.bundle\n  tilevm replay run.bundle --trace=run.trace --stats");
  app.add_option("BUNDLE", path, "File that --bundle wrote")->required();
  add_launch_options(app, s);
  add_common_options(app, common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  if (status = finish(s, app, path, common); status != 0) return status;
  if (app.count("--max-memory") == 0) s.launch.max_memory = 0;
  return run_replay(path, s.launch, common);
}

}  // namespace
}  // namespace tile::cli

int main(int argc, char** argv) {
  return tile::cli::run_program("tilevm", [&] {
    if (argc > 1 && std::string_view(argv[1]) == "run") return tile::cli::run_command(argc - 1, argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "replay") return tile::cli::replay_command(argc - 1, argv + 1);
    return tile::cli::launch_command(argc, argv);
  });
}
