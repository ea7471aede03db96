// Whole launches on the CPU machine: the kernels of tools/bench/kernels, warm, one launch an iteration.
// tools/bench/beside_torch.py runs this beside torch and the Triton interpreter.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>

#include "assembler/assembler.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/atomic_file.h"
#include "vm/runtime/device.h"

#ifndef TILE_BENCH_SOURCE_DIR
#error "TILE_BENCH_SOURCE_DIR names the source folder"
#endif

namespace {

struct Kernel {
  std::shared_ptr<const tile::ValidModule> module;
  std::unique_ptr<tile::Device> device;
  tile::LaunchArguments args;
  const tile::Function* entry = nullptr;
};

/// Loads a kernel and its arguments; says why and returns nothing where that fails.
std::unique_ptr<Kernel> load(const std::string& name, const std::vector<std::string>& texts) {
  tile::Diagnostics diags;
  const std::string path = std::string(TILE_BENCH_SOURCE_DIR) + "/tools/bench/kernels/" + name;
  auto kernel = std::make_unique<Kernel>();
  const auto bytes = tile::read_file(path, diags);
  if (bytes) {
    auto parsed = tile::parse_text(std::make_shared<tile::Source>(path, std::string(bytes->begin(), bytes->end())), diags);
    if (parsed) {
      auto valid = tile::validate(*std::move(parsed), diags);
      if (valid) kernel->module = std::make_shared<const tile::ValidModule>(*std::move(valid));
    }
  }
  if (kernel->module) {
    const tile::Module& m = **kernel->module;
    const auto entry = tile::find_entry(m, "", diags);
    const auto specs = tile::parse_args(texts, diags);
    if (entry && specs) {
      kernel->entry = *entry;
      auto args = tile::expand(*specs, tile::entry_params(m, **entry), {}, diags);
      auto device = tile::make_cpu_device(kernel->module, diags);
      if (args && device) {
        kernel->args = *std::move(args);
        kernel->device = *std::move(device);
        return kernel;
      }
    }
  }
  std::fputs(tile::render(diags).c_str(), stderr);
  return nullptr;
}

void launches(benchmark::State& state, Kernel* kernel, const tile::LaunchGrid& grid) {
  if (!kernel) {
    state.SkipWithError("the kernel cannot be loaded");
    return;
  }
  tile::RunOptions options;
  options.threads = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    if (!kernel->device->launch(*kernel->entry, grid, kernel->args, options, diags)) {
      state.SkipWithError(tile::render(diags).c_str());
      return;
    }
  }
}

void matmul(benchmark::State& state, const char* file, const char* type) {
  const std::string array = std::string("array:") + type + "[512,512]=";
  const auto kernel = load(file, {array + "normal(seed=1)", array + "normal(seed=2)", "array:f16[512,512]=zeros"});
  launches(state, kernel.get(), {4, 4, 1});
  state.counters["GFLOP/s"] = benchmark::Counter(2.0 * 512 * 512 * 512 * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(matmul, f16, "matmul_f16.tile", "f16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(matmul, f32, "matmul_f32.tile", "f32")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void vector_add(benchmark::State& state) {
  const std::string array = "ptr:f32[4194304]=";
  const auto kernel = load("vector_add.tile", {array + "uniform(seed=1)", array + "uniform(seed=2)", array + "zeros", "i32:4194304"});
  launches(state, kernel.get(), {1024, 1, 1});
  state.counters["GB/s"] = benchmark::Counter(12.0 * 4194304 * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(vector_add)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
