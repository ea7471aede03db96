// tilevm: runs kernels. `tilevm KERNEL --arg ...`, `tilevm run JOB` and `tilevm replay BUNDLE` say what to launch.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli_conformance.h"
#include "tools/cli_docs.h"
#include "tools/cli_files.h"
#include "tools/cli_launch.h"
#include "tools/cli_options.h"
#include "tools/tilevm_gpu.h"
#include "vm/runtime/launch_args.h"

namespace tile::cli {
namespace {

constexpr char kAbout[] =
    "Runs kernels of Tile IR\n"
    "Reads text, tilebc and tileirbc, recognised by content, and runs one launch. What to launch is said\n"
    "by arguments, by a job file (tilevm run), or by a recorded bundle (tilevm replay).";

constexpr char kFooter[] = R"(Launch arguments:
  One --arg for each argument of the kernel, in order; an optional name and = may stand before.
  i32:128  f32:0.5  i1:true  f16:0x3c00     scalars (hexadecimal: the bits)
  ptr:a.npy  ptr:f32[64]=zeros              a bare pointer to an array
  array:a.npy  array:f16[512,512]=normal    an array as cuTile passes it: pointer, extents, strides
  Generators: zeros ones full(v) arange uniform normal randint bits eye; see spec/launch.md.

Examples:
  tilevm add.tile --grid 4 --arg ptr:a.npy --arg ptr:b.npy --arg c=ptr:f32[4096]=zeros --out c=c.npy
  tilevm matmul.tilebc --entry matmul --grid 4,4 --arg array:f16[512,512]=normal(seed=1) \
         --arg array:f16[512,512]=normal(seed=2) --arg c=array:f32[512,512]=zeros --show c --stats
  tilevm k.tile --arg ptr:f32[64]=zeros --check default --uninit 0 --undef nan
  tilevm k.tile --undef random --undef-seed 7
  tilevm k.tile --grid 64 --arg c=ptr:f32[64]=zeros --schedule 7 --check race
  tilevm k.tile --schedule explore:1000 --uninit c --undef nan
  tilevm k.tile --order explore:20 --numerics h200
  tilevm k.tile --trace=k.trace --trace-block 1,0 --trace-op addf,mulf --trace-line 12
  tilevm k.tile --profile=k.json --profile-trace k.trace.json --repeat 10 --threads 1
  tilevm k.tile --grid 8 --print
  tilevm k.tile --access-map k.svg --ordered-prints --print-blocks
  tilevm k.tile --break mmaf --break @2,0
  tilevm k.tile --bundle k.bundle --json
  tilevm k.tile --cpu --fuel 1000000 --time-limit 10 --max-memory 512M
  tilevm k.tile --gpu --remarks --stats
  tilevm k.tile --gpu=emulate --emulate-seed 2 --emulate-policy late
  tilevm k.tile --gpu --both --no-cache -O 2 --plan warps=4
  tilevm k.tile --emit ptx=k.ptx --emit plan --target sm_90a --lineinfo
  tilevm k.tile --emit cubin=k.cubin --compile-time-limit 60 --compile-max-memory 4G
  tilevm --diagnostics json --color never -v k.tile
  tilevm --version
  tilevm run examples/02_loop_over_k.json

Exit status:
  0 ok; 1 input rejected; 2 command line not understood; 3 file or memory; 4 trap; 5 results differ;
  6 limit reached; 70 fault of this program; 130 interrupted.)";

constexpr char kRunAbout[] =
    "Run a job file: a kernel, its launch and what its arrays must hold afterwards (spec/launch.md)";
constexpr char kRunFooter[] = R"(Examples:
  tilevm run examples/02_loop_over_k.json
  tilevm run job.json --json --threads 1
  tilevm run job.json --kernel changed.tile
  tilevm run job.json --schedule explore:100
  tilevm run launch.json --dump out --no-check

Options of the launch have their examples in tilevm --help.)";

constexpr char kReplayAbout[] = "Repeat a launch that --bundle recorded, and say whether the outputs are bit-equal";
constexpr char kReplayFooter[] = R"(Options of the launch are those recorded unless given here.

Exit status:
  0: the same outputs, or the same trap; 5: different ones; else as for a launch.

Examples:
  tilevm softmax.tile --arg ... --bundle run.bundle
  tilevm replay run.bundle
  tilevm replay run.bundle --dump arrays
  tilevm replay run.bundle --trace=run.trace --stats)";

struct Settings {
  LaunchSettings launch;
  GpuSettings gpu;
  bool cpu = false;
  std::string max_memory = "4G";
};

/// What each way to launch takes besides the options that all have.
struct LaunchLine {
  CommonOptions common;
  Settings settings;
  std::string kernel, entry, grid = "1";
  std::vector<std::string> args, outs;
};
struct RunLine {
  CommonOptions common;
  Settings settings;
  std::string path, kernel;
  bool no_check = false;
};
struct ReplayLine {
  CommonOptions common;
  Settings settings;
  std::string path;
};

void add_launch_options(CLI::App& app, Settings& s) {
  app.add_flag("--cpu", s.cpu, "Run on the exact reference interpreter (the default)");
  app.add_option("--threads", s.launch.threads, "Worker threads; 0: one for each core")->type_name("N")->check(CLI::Range(0u, kMaxJobThreads));
  app.add_option("--fuel", s.launch.fuel, "Most steps of one block before the run is stopped (exit 6); 0: unlimited")->type_name("STEPS")->check(whole_number());
  app.add_option("--max-memory", s.max_memory, "Most memory that one block's tiles may take, such as 512M or 4G, and, where given, all arrays together (exit 6)")->type_name("SIZE")->capture_default_str();
  app.add_option("--repeat", s.launch.repeat, "Launch so many times and report the fastest")->type_name("N")->check(CLI::Range(1u, 1000000u));
  app.add_option("--show", s.launch.show, "Print the first elements of this argument's array afterwards (by name or number from 0)")->type_name("ARG");
  app.add_flag("--stats", s.launch.stats, "Print blocks, steps, memory and time on standard error");
  app.add_flag("--json", s.launch.json, "Print a report as JSON on standard output; kernel prints go into it");
  add_observe_options(app, s.launch.observe);
  add_check_options(app, s.launch.checks);
  add_freedom_options(app, s.launch.freedom);
  add_gpu_options(app, s.gpu);
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
  if (const int status = finish_gpu(app, s.gpu, s.launch, "tilevm", common)) return status;
  s.launch.max_memory = parse_bytes(s.max_memory);
  if (s.launch.max_memory == 0) return usage_error("tilevm", "--max-memory: '" + s.max_memory + "' is not a size", common, "write it as 512M or 4G");
  if (app.count("--max-memory") > 0) s.launch.arrays.bytes = s.launch.max_memory;
  if (const int status = check_check_options(s.launch.checks, "tilevm", common)) return status;
  if (const int status = check_freedom_options(s.launch.freedom, "tilevm", common)) return status;
  return check_observe_options(s.launch.observe, "tilevm", kernel, common);
}

void describe_launch(CLI::App& app, LaunchLine& line) {
  use_help_text(app);
  app.footer(kFooter);
  app.set_version_flag("--version", [] { return version_text("tilevm") + gpu_version_text(); }, "Print version, forms and build");
  app.add_option("KERNEL", line.kernel, "File with the kernel; - for standard input")->required();
  app.add_option("--entry", line.entry, "Entry to run; may be left out if there is only one")->type_name("NAME");
  app.add_option("--grid", line.grid, "Tile blocks along x, y, z: X[,Y[,Z]]")->type_name("GRID")->capture_default_str();
  app.add_option("--arg", line.args, "An argument, see below")->type_name("ARG")->allow_extra_args(false);
  app.add_option("--out", line.outs, "Write this argument's array afterwards: ARG=FILE.npy, by name or number from 0")
      ->type_name("ARG=FILE")
      ->allow_extra_args(false);
  add_launch_options(app, line.settings);
  add_common_options(app, line.common);
}

void add_dump_option(CLI::App& app, LaunchSettings& s) {
  app.add_option("--dump", s.dump, "Write every buffer, whole, as buffer_<number>.npy into this folder")->type_name("DIR");
}

void describe_run(CLI::App& app, RunLine& line) {
  use_help_text(app);
  app.footer(kRunFooter);
  app.add_option("JOB", line.path, "Job file, or a launch description named launch.json")->required();
  app.add_option("--kernel", line.kernel, "Run this file instead of the job's kernel")->type_name("FILE");
  add_dump_option(app, line.settings.launch);
  app.add_flag("--no-check", line.no_check, "Do not compare with the expected values");
  add_launch_options(app, line.settings);
  add_common_options(app, line.common);
}

void describe_replay(CLI::App& app, ReplayLine& line) {
  use_help_text(app);
  app.footer(kReplayFooter);
  app.add_option("BUNDLE", line.path, "File that --bundle wrote")->required();
  add_dump_option(app, line.settings.launch);
  add_launch_options(app, line.settings);
  add_common_options(app, line.common);
}

DocCommand describe_all();

/// The help of the program itself names its commands too.
class ProgramHelp : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App*, std::string, CLI::AppFormatMode) const override {
    return help_text(describe_all(), "tilevm");
  }
};

int launch_command(int argc, const char* const* argv) {
  LaunchLine line;
  CLI::App app{kAbout, "tilevm"};
  describe_launch(app, line);
  app.formatter(std::make_shared<ProgramHelp>());
  const CommonOptions& common = line.common;
  Settings& s = line.settings;
  int status = 0;
  if (!parse_command_line(app, argc, argv, line.common, status)) return status;
  if (status = finish(s, app, line.kernel, common); status != 0) return status;

  Diagnostics diags;
  Job job;
  job.kernel = line.kernel;
  job.entry = line.entry;
  const auto parsed_grid = parse_grid(line.grid, diags);
  const auto specs = parse_args(line.args, diags);
  if (specs)
    for (const std::string& text : line.outs)
      if (const auto out = parse_out(text, *specs, diags)) job.outs.push_back(*out);
  if (diags.has_errors()) return report(diags, common);
  job.grid = *parsed_grid;
  job.args = *specs;
  if (!s.gpu.emit.empty()) return emit_job(job, s.gpu, common);
  return run_launch(job, s.launch, common);
}

int run_command(int argc, const char* const* argv) {
  RunLine line;
  CLI::App app{kRunAbout, "tilevm run"};
  describe_run(app, line);
  const CommonOptions& common = line.common;
  Settings& s = line.settings;
  const std::string &path = line.path, &kernel = line.kernel;
  int status = 0;
  if (!parse_command_line(app, argc, argv, line.common, status)) return status;
  if (status = finish(s, app, kernel, common); status != 0) return status;
  s.launch.check = !line.no_check;
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
  if (!s.gpu.emit.empty()) return emit_job(*job, s.gpu, common);
  return run_launch(*job, s.launch, common);
}

int replay_command(int argc, const char* const* argv) {
  ReplayLine line;
  CLI::App app{kReplayAbout, "tilevm replay"};
  describe_replay(app, line);
  Settings& s = line.settings;
  int status = 0;
  if (!parse_command_line(app, argc, argv, line.common, status)) return status;
  if (status = finish(s, app, line.path, line.common); status != 0) return status;
  if (!s.gpu.emit.empty()) return emit_bundle(line.path, s.gpu, line.common);
  if (app.count("--max-memory") == 0) s.launch.max_memory = 0;
  return run_replay(line.path, s.launch, line.common);
}

int docs_command(int argc, const char* const* argv) {
  CommonOptions common;
  std::string shell, output = "-";
  CLI::App app{"", "tilevm"};
  use_help_text(app);
  add_common_options(app, common);
  add_docs_commands(app, shell, output);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  Diagnostics diags;
  DocCommand doc = describe_all();
  for (DocCommand* c : {&doc, &doc.command("run"), &doc.command("replay")})
    for (DocOption& o : c->options)
      if (o.names[0] == "--undef") {
        o.choices = {"zero", "nan", "random", "trap"};
      } else if (o.names[0] == "--numerics") {
        o.choices = {"exact", "h200"};
      }
  const bool man = app.get_subcommands()[0]->get_name() == "man";
  (void)write_output(output, man ? man_page(doc, build_version()) : completion_script(doc, shell), diags).ok();
  return report(diags, common);
}

int suite_command(int argc, const char* const* argv) {
  if (argc > 1 && std::string_view(argv[1]) == "serve") return serve_command(argc - 1, argv + 1);
  return conformance_command(argc, argv);
}

struct Command {
  const char* name;
  const char* summary;
  int (*run)(int argc, const char* const* argv);
};
constexpr Command kCommands[] = {
    {"run", kRunAbout, run_command},
    {"replay", kReplayAbout, replay_command},
    {"conformance", "Answer the cases of the conformance suite", suite_command},
    {"devices", "List the GPUs and what they can run", devices_command},
    {"cache", "Show or empty the cache of compiled kernels", cache_command},
    {"bench", "Measure a launch", bench_command},
};

/// The whole program. Only help, `completions` and `man` need it as one.
DocCommand describe_all() {
  CLI::App docs{"", "tilevm"};
  std::string ignored;
  add_docs_commands(docs, ignored, ignored);
  DocCommand doc = *describe_command(launch_command, "tilevm");
  for (const Command& c : kCommands) {
    DocCommand command = describe_command(c.run, c.name).value_or(DocCommand{});
    command.name = c.name;
    command.about = c.summary;
    doc.commands.push_back(std::move(command));
  }
  for (DocCommand& c : describe(docs).commands) doc.commands.push_back(std::move(c));
  return doc;
}

}  // namespace
}  // namespace tile::cli

int main(int argc, char** argv) {
  return tile::cli::run_program("tilevm", [&] {
    const std::string_view first = argc > 1 ? argv[1] : "";
    for (const auto& c : tile::cli::kCommands)
      if (first == c.name) return c.run(argc - 1, argv + 1);
    if (first == "completions" || first == "man") return tile::cli::docs_command(argc, argv);
    return tile::cli::launch_command(argc, argv);
  });
}
