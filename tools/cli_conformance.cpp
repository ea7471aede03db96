// Finds the conformance suite and Python, and hands the command line over.
#include "tools/cli_conformance.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli_docs.h"
#include "tools/cli_files.h"
#include "tools/cli_options.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/atomic_file.h"
#include "vm/runtime/bundle.h"
#include "vm/runtime/device.h"
#include "vm/runtime/job.h"

extern char** environ;

namespace tile::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The folder of this program; empty where the system does not say.
fs::path own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

/// The suite: where TILEVM_CONFORMANCE points; share/tilevm/conformance of this installation; conformance/ of the source tree that the
/// program was built in, at most three folders up; conformance/ of the working folder. Empty: nowhere.
fs::path find_suite() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("TILEVM_CONFORMANCE"); named != nullptr && *named != '\0') {
    places = {named};
  } else {
    const fs::path own = own_folder();
    if (!own.empty()) {
      places.push_back(own / "../share/tilevm/conformance");
      for (const char* up : {"conformance", "../conformance", "../../conformance", "../../../conformance"}) places.push_back(own / up);
    }
    places.push_back("conformance");
  }
  std::error_code error;
  for (const fs::path& p : places)
    if (fs::exists(p / "cli.py", error)) return p.lexically_normal();
  return {};
}

/// Exit status of a program, -1 if it cannot be started or is ended by a signal.
int run_and_wait(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int missing(const std::string& what, const std::string& help) {
  Diagnostics diags;
  Place place;
  place.file = "tilevm conformance";
  (void)diags.error(Code::E0904, std::move(place), what, help);
  return report(diags, {});
}

/// Sets a variable of the environment unless it is set.
void default_variable(const char* name, const fs::path& value) {
  std::error_code error;
  if (fs::exists(value, error)) setenv(name, value.c_str(), 0);
}

/// What record.py starts from: the case without expectations, its kernel as it was, and every buffer as before the launch.
/// @param checked  buffers with expectations of the launch's own; nullptr: the launch has none
Status write_case(const std::string& folder, std::span<const uint8_t> kernel, const std::string& entry, const LaunchGrid& grid, const LaunchArguments& args,
                  const std::vector<int32_t>* checked, Diagnostics& diags) {
  const InputKind kind = recognise(kernel);
  ordered_json j;
  j["goal"] = "run";
  j["form"] = kind_name(kind);
  j["kernel"] = std::string("kernel.") + (kind == InputKind::Text ? "tile" : kind_name(kind));
  j["entry"] = entry;
  j["grid"] = grid;
  j["params"] = ordered_json::array();
  for (const FlatParam& p : args.params) {
    ordered_json one;
    if (p.buffer < 0) {
      char bits[24];
      std::snprintf(bits, sizeof bits, "0x%llx", static_cast<unsigned long long>(p.bits));
      one = {{"kind", "scalar"}, {"type", info(p.type).name}, {"bits", bits}};
    } else {
      one = {{"kind", "pointer"}, {"type", info(args.buffers[static_cast<size_t>(p.buffer)].type).name}, {"buffer", p.buffer}, {"offset", p.byte_offset}};
    }
    j["params"].push_back(std::move(one));
  }
  j["buffers"] = ordered_json::array();
  for (size_t b = 0; b < args.buffers.size(); ++b) {
    const Array& a = args.buffers[b];
    const std::string name = "b" + std::to_string(b) + ".bin";
    j["buffers"].push_back({{"type", info(a.type).name}, {"file", name}, {"bytes", a.memory.size()}});
    if (!write_file(folder + "/" + name, {a.memory.data(), a.memory.size()}, diags)) return Failed;
  }
  j["checked"] = checked ? ordered_json(*checked) : ordered_json();
  if (!write_file(folder + "/" + j["kernel"].get<std::string>(), kernel, diags)) return Failed;
  const std::string text = j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  return write_file(folder + "/case.json", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, diags);
}

Status unpack_job(const std::string& path, const std::string& folder, Diagnostics& diags) {
  const auto job = path.ends_with("launch.json") ? read_launch_json(path, diags) : read_job(path, diags);
  if (!job) return Failed;
  const auto bytes = read_input(job->kernel_path(), diags);
  if (!bytes) return Failed;
  auto loaded = read_module(*bytes, job->kernel_path(), diags);
  if (!loaded) return Failed;
  const auto module = validate(std::move(loaded->module), diags);
  if (!module) return Failed;
  const auto entry = find_entry(**module, job->entry, diags);
  if (!entry) return Failed;
  const std::string name((*module)->str((*entry)->name));
  const auto args = expand(job->args, entry_params(**module, **entry), {job->base_dir, name, {}}, diags);
  if (!args) return Failed;
  // Buffers that the job itself says something about.
  std::vector<int32_t> checked;
  for (const Expectation& e : job->expectations) checked.push_back(args->bindings[e.argument].buffer);
  const bool expects = !checked.empty() || !job->prints.empty() || job->outcome.has_value();
  return write_case(folder, *bytes, name, job->grid, *args, expects ? &checked : nullptr, diags);
}

Status unpack_bundle(std::span<const uint8_t> bytes, const std::string& path, const std::string& folder, Diagnostics& diags) {
  const auto bundle = read_bundle(bytes, path, diags);
  if (!bundle) return Failed;
  return write_case(folder, bundle->kernel, bundle->entry, bundle->grid, bundle->args, nullptr, diags);
}

/// `unpack LAUNCH DIR`: a job file, a launch.json or a bundle, told apart by its first bytes.
int unpack(int argc, const char* const* argv) {
  if (argc != 3) return usage_error("tilevm conformance unpack", "expected LAUNCH DIR", {}, "LAUNCH is a job file, a launch.json or a bundle");
  const std::string path = argv[1], folder = argv[2];
  Diagnostics diags;
  std::error_code error;
  fs::create_directories(folder, error);
  const auto bytes = read_input(path, diags);
  if (!bytes) return report(diags, {});
  size_t first = 0;
  while (first < bytes->size() && std::string_view(" \t\r\n").find(static_cast<char>((*bytes)[first])) != std::string_view::npos) ++first;
  const bool json = first < bytes->size() && (*bytes)[first] == '{';
  (void)(json ? unpack_job(path, folder, diags) : unpack_bundle(*bytes, path, folder, diags));
  return report(diags, {});
}

constexpr std::pair<const char*, const char*> kSuiteCommands[] = {
    {"run", "Judge an implementation"},
    {"list", "Print the names of the cases that run would take"},
    {"export", "Write the cases as a folder of portable tests"},
    {"record", "Make a case of a launch, checked by a second engine or an oracle"},
    {"merge", "Put reports of shards together"},
    {"diff", "Compare reports"},
    {"unpack", "Write a launch's kernel and arrays into a folder"},
    {"serve", "Be an implementation under test, many cases in one process"},
};

}  // namespace

int conformance_command(int argc, const char* const* argv) {
  if (describing()) {
    // The suite's own program, written in Python, reads the command line; here is what manual pages and completions say of it.
    CLI::App app{"Judge implementations of Tile IR", "tilevm conformance"};
    for (const auto& [name, about] : kSuiteCommands) app.add_subcommand(name, about);
    take_description(app);
    return 0;
  }
  if (argc > 1 && std::string_view(argv[1]) == "unpack") return unpack(argc - 1, argv + 1);
  const fs::path suite = find_suite();
  if (suite.empty())
    return missing("the conformance suite is not installed", "set TILEVM_CONFORMANCE to the folder conformance of tilevm's sources");
  const char* named = std::getenv("TILEVM_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  if (const int status = run_and_wait({python, "-c", "import sys; sys.exit(77 if sys.version_info < (3, 9) else 0)"}); status != 0)
    return missing(python + (status == 77 ? " is older than 3.9" : " cannot be started"), "install Python 3.9 or newer, or set TILEVM_PYTHON");
  if (run_and_wait({python, "-c", "import numpy"}) != 0)
    return missing("numpy is missing in " + python, "run: " + python + " -m pip install numpy (larger tiers also need ml_dtypes and mpmath)");
  const fs::path own = own_folder();
  if (!own.empty()) {
    default_variable("TILEVM", own / "tilevm");
    default_variable("TILEASM", own / "tileasm");
  }
  setenv("TILE_CONFORMANCE_PROG", "tilevm conformance", 1);
  std::vector<std::string> words = {python, (suite / "cli.py").string()};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> raw;
  for (std::string& w : words) raw.push_back(w.data());
  raw.push_back(nullptr);
  execvp(raw[0], raw.data());
  return missing(python + " cannot be started", "set TILEVM_PYTHON");
}

}  // namespace tile::cli
