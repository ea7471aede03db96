// Runs random programs on the reference machine and on the emulation of GPUs and compares every byte of memory;
// compiles them for other targets. Usage: random_programs [--first SEED] [--count N] [--size N]
// [--product-loops PERCENT] [--targets T,T] [--ptx T,T]
// [--ptx-dir DIR] [--out DIR] [--reduce] [--seconds N] [--step N] [--json]. Exit status 1 if a difference was found; the programs in
// question are in DIR, also one that ended this process.
// tests/random/run_many.py runs many of them at once.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "assembler/assembler.h"
#include "backend/compile.h"
#include "backend/device/device_gpu.h"
#include "tests/random/launch_program.h"
#include "vm/random/random_program.h"
#include "tests/random/reduce_program.h"

namespace tile::random_program {
namespace {

struct Settings {
  uint64_t first = 1, count = 100, step = 1;
  unsigned size = 20, product_loops = 1;
  double seconds = 1e9;
  std::vector<std::string> targets, ptx;
  std::string ptx_dir, out;
  bool reduce = false, json = false;
};

struct Totals {
  uint64_t programs = 0, launches = 0, compiled = 0, unsupported = 0, faults = 0;
  std::map<std::string, uint64_t> compared, written, refused;  ///< by target; refusals by target and reason
};

/// The first line of an error without what differs from program to program: its place, and numbers.
std::string reason(const std::string& error) {
  std::string line = error.substr(0, error.find('\n')), out;
  if (const size_t at = line.find("error: "); at != std::string::npos) line.erase(0, at + 7);
  for (const char c : line)
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != 'N')
      out += 'N';
  return out;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Outcome emulated(const std::shared_ptr<const ValidModule>& module, const Program& program, const std::string& target,
                 uint64_t seed) {
  return launch(module, program, [&](std::shared_ptr<const ValidModule> m, Diagnostics& diags) {
    GpuOptions options;
    options.build.compile.target = target;
    options.emulate_seed = seed;
    return make_emulated_device(std::move(m), options, diags);
  });
}

std::shared_ptr<const ValidModule> valid(const Module& m) {
  Diagnostics diags;
  auto v = validate(m, diags);
  if (!v) return nullptr;
  return std::make_shared<const ValidModule>(*std::move(v));
}

/// What is wrong with a program on a target; empty: nothing, or the GPU part does not take it and `refusal` says why.
std::string fault(const std::shared_ptr<const ValidModule>& module, const Program& program, const Outcome& wanted,
                  const std::string& target, std::string* refusal) {
  const Outcome found = emulated(module, program, target, 1);
  if (refusal && found.unsupported) *refusal = reason(found.errors);
  return found.unsupported ? std::string() : difference(wanted, found);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

void report(const Settings& s, uint64_t seed, const std::string& target, const std::string& what,
            const Program& program) {
  std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(seed), target.c_str(), what.c_str());
  std::fflush(stdout);
  if (s.out.empty()) return;
  const std::string base = s.out + "/" + std::to_string(seed) + "_" + target;
  write(base + ".tile", print_text(program.module));
  write(base + ".json", program.job(std::to_string(seed) + "_" + target + ".tile"));
  if (!s.reduce) return;
  // Written after every step: reducing a large program takes minutes.
  (void)reduce(program.module, [&](const Module& m) {
    const auto module = valid(m);
    if (!module) return false;
    const Outcome wanted = launch_on_cpu(module, program, {1, true});
    if (!wanted.errors.empty() || fault(module, program, wanted, target, nullptr).empty()) return false;
    write(base + ".small.tile", print_text(m));
    write(base + ".small.json", program.job(std::to_string(seed) + "_" + target + ".small.tile"));
    return true;
  });
}

/// Leaves a program that ends this process: written before it runs, removed after.
class Running {
 public:
  Running(const Settings& s, uint64_t seed, const Program& program) {
    if (s.out.empty()) return;
    base_ = s.out + "/" + std::to_string(seed) + "_crashed";
    write(base_ + ".tile", print_text(program.module));
    write(base_ + ".json", program.job(std::to_string(seed) + "_crashed.tile"));
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (base_.empty()) return;
    std::filesystem::remove(base_ + ".tile");
    std::filesystem::remove(base_ + ".json");
  }

 private:
  std::string base_;
};

void one(const Settings& s, uint64_t seed, Totals& totals) {
  Options options;
  options.seed = seed;
  options.size = s.size;
  options.exact = true;
  options.local_memory = false;
  options.product_loops = s.product_loops;
  const Program program = make(options);
  const Running running(s, seed, program);
  Diagnostics diags;
  auto checked = validate(program.module, diags);
  if (!checked) {
    ++totals.faults;
    return report(s, seed, "validate", render(diags), program);
  }
  const auto module = std::make_shared<const ValidModule>(*std::move(checked));
  ++totals.programs;
  const Outcome wanted = launch_on_cpu(module, program);
  if (!wanted.errors.empty()) {
    ++totals.faults;
    return report(s, seed, "cpu", wanted.errors, program);
  }
  for (const std::string& target : s.targets) {
    std::string refusal;
    const std::string what = fault(module, program, wanted, target, &refusal);
    ++totals.launches;
    if (refusal.empty()) {
      ++totals.compared[target];
    } else {
      ++totals.unsupported;
      ++totals.refused[target + ": " + refusal];
    }
    if (what.empty()) continue;
    ++totals.faults;
    report(s, seed, target, what, program);
  }
  for (const std::string& target : s.ptx) {
    CompileOptions compile;
    compile.target = target;
    Diagnostics compile_diags;
    const auto made = compile_ptx(*module, (*module)->functions[0], compile, compile_diags);
    if (!made && compile_diags.first_error() && compile_diags.first_error()->code != Code::E0808) {
      ++totals.faults;
      report(s, seed, target, render(compile_diags), program);
    }
    if (!made) {
      if (compile_diags.first_error()) ++totals.refused["PTX for " + target + ": " + reason(compile_diags.first_error()->message)];
      continue;
    }
    ++totals.compiled;
    ++totals.written[target];
    if (!s.ptx_dir.empty()) write(s.ptx_dir + "/" + std::to_string(seed) + "." + target + ".ptx", made->ptx);
  }
}

int run(const Settings& s) {
  if (!s.out.empty()) std::filesystem::create_directories(s.out);
  if (!s.ptx_dir.empty()) std::filesystem::create_directories(s.ptx_dir);
  Totals totals;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t k = 0;
  for (; k < s.count && elapsed() < s.seconds; ++k) one(s, s.first + k * s.step, totals);
  if (s.json) {
    const nlohmann::json line = {{"programs", totals.programs}, {"compared", totals.compared}, {"ptx", totals.written}, {"refused", totals.refused}, {"faults", totals.faults}, {"seconds", elapsed()}};
    std::printf("%s\n", line.dump().c_str());
    return totals.faults != 0;
  }
  std::printf(
      "%llu programs (seeds %llu to %llu), %llu launches compared, %llu not supported, %llu compiled to PTX, %llu "
      "faults, %.0f s\n",
      static_cast<unsigned long long>(totals.programs), static_cast<unsigned long long>(s.first),
      static_cast<unsigned long long>(s.first + (k ? k - 1 : 0) * s.step),
      static_cast<unsigned long long>(totals.launches), static_cast<unsigned long long>(totals.unsupported),
      static_cast<unsigned long long>(totals.compiled), static_cast<unsigned long long>(totals.faults), elapsed());
  return totals.faults != 0;
}

}  // namespace
}  // namespace tile::random_program

int main(int argc, char** argv) {
  tile::random_program::Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--reduce") {
      s.reduce = true;
      continue;
    }
    if (name == "--json") {
      s.json = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "%s: unknown or without a value\n", name.c_str());
      return 2;
    }
    const std::string value = argv[++i];
    if (name == "--first")
      s.first = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--count")
      s.count = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--step")
      s.step = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--size")
      s.size = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "--product-loops")
      s.product_loops = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (name == "--seconds")
      s.seconds = std::strtod(value.c_str(), nullptr);
    else if (name == "--targets")
      s.targets = tile::random_program::split(value);
    else if (name == "--ptx")
      s.ptx = tile::random_program::split(value);
    else if (name == "--ptx-dir")
      s.ptx_dir = value;
    else if (name == "--out")
      s.out = value;
    else {
      std::fprintf(stderr, "%s: unknown\n", name.c_str());
      return 2;
    }
  }
  return tile::random_program::run(s);
}
