// Whole launches on the CPU machine: the kernels of tools/bench/kernels, warm, one launch an iteration; beside them what a loop by hand
// gets from the memory of this machine (loop/...). tools/bench/beside_torch.py runs this beside torch and the Triton interpreter.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "assembler/assembler.h"
#include "vm/interp/worker_pool.h"
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

constexpr int kWarm = 5;  // runs before the measured ones: the first ones find untouched pages

void launches(benchmark::State& state, Kernel* kernel, const tile::LaunchGrid& grid, unsigned threads) {
  if (!kernel) {
    state.SkipWithError("the kernel cannot be loaded");
    return;
  }
  tile::RunOptions options;
  options.threads = threads;
  const auto launch = [&] {
    tile::Diagnostics diags;
    const bool ok = kernel->device->launch(*kernel->entry, grid, kernel->args, options, diags).ok();
    if (!ok) state.SkipWithError(tile::render(diags).c_str());
    return ok;
  };
  for (int k = 0; k < kWarm; ++k)
    if (!launch()) return;
  for (auto _ : state)
    if (!launch()) return;
}

/// One kernel of tools/bench/kernels; `work` is what one launch does, in thousands of millions of `unit`.
struct Bench {
  const char* name;
  const char* file;
  std::vector<std::string> args;
  tile::LaunchGrid grid;
  double work;
  const char* unit;
};

std::string random(const std::string& shape, const char* type = "f32", int seed = 1) {
  return std::string("ptr:") + type + "[" + shape + "]=normal(seed=" + std::to_string(seed) + ")";
}
std::string zeros(const std::string& shape) { return "ptr:f32[" + shape + "]=zeros"; }

std::vector<Bench> benches() {
  const auto array = [](const char* type, const char* data) { return std::string("array:") + type + "[512,512]=" + data; };
  const double rows = 2048.0 * 1024 * 4e-9;  // bytes of an array of 2048 rows of 1024 floats
  return {
      {"matmul/f16", "matmul_f16.tile", {array("f16", "normal(seed=1)"), array("f16", "normal(seed=2)"), array("f16", "zeros")}, {4, 4, 1}, 2.0 * 512 * 512 * 512e-9, "FLOP"},
      {"matmul/f32", "matmul_f32.tile", {array("f32", "normal(seed=1)"), array("f32", "normal(seed=2)"), array("f16", "zeros")}, {4, 4, 1}, 2.0 * 512 * 512 * 512e-9, "FLOP"},
      {"vector_add", "vector_add.tile", {random("4194304"), random("4194304", "f32", 2), zeros("4194304"), "i32:4194304"}, {1024, 1, 1}, 12.0 * 4194304e-9, "B"},
      {"softmax", "softmax.tile", {random("2048,1024"), zeros("2048,1024")}, {64, 1, 1}, 2 * rows, "B"},
      {"layernorm", "layernorm.tile", {random("2048,1024"), random("1024"), random("1024"), zeros("2048,1024")}, {64, 1, 1}, 2 * rows, "B"},
      {"transpose", "transpose.tile", {random("2048,2048"), zeros("2048,2048")}, {32, 32, 1}, 8.0 * 2048 * 2048e-9, "B"},
      {"reduce", "reduce.tile", {random("2048,1024"), zeros("2048")}, {32, 1, 1}, rows, "B"},
      {"scan", "scan.tile", {random("2048,1024"), zeros("2048,1024")}, {128, 1, 1}, 2 * rows, "B"},
      {"gather", "gather.tile", {random("65536,64"), "ptr:i32[16384]=randint(seed=3,hi=65536)", zeros("16384,64")}, {64, 1, 1}, 8.0 * 16384 * 64e-9, "B"},
      {"attention", "attention.tile", {random("1024,64"), random("1024,64", "f32", 2), random("1024,64", "f32", 3), zeros("1024,64")}, {8, 1, 1}, 4.0 * 1024 * 1024 * 64e-9, "FLOP"},
      // One block: its steps are spread over the threads.
      {"big_chain", "big_chain.tile", {random("1024,1024"), random("1024,1024", "f32", 2), zeros("1024,1024")}, {1, 1, 1}, 12.0 * 1024 * 1024e-9, "B"},
      {"big_rows", "big_rows.tile", {random("1024,1024"), zeros("1024,1024")}, {1, 1, 1}, 8.0 * 1024 * 1024e-9, "B"},
      {"big_product", "big_product.tile", {random("512,512"), random("512,512", "f32", 2), zeros("512,512")}, {1, 1, 1}, 2.0 * 512 * 512 * 512e-9, "FLOP"},
  };
}

/// Loops by hand over arrays of the size that the kernels have, each thread its own part: what the machine can give.
struct Loop {
  using Body = void (*)(float* out, const float* a, const float* b, const int32_t* index, size_t begin, size_t end);
  const char* name;
  Body body;
  size_t out, in;   // elements of the result and of each operand
  size_t count;     // what threads divide among them
  double bytes;
};

void add_loop(float* out, const float* a, const float* b, const int32_t*, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
}
#if defined(__x86_64__)
void stream_loop(float* out, const float* a, const float* b, const int32_t*, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i += 4) _mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
  _mm_sfence();
}
#endif
void read_loop(float* out, const float* a, const float*, const int32_t*, size_t begin, size_t end) {
  uint32_t bits[16] = {};  // a sum of floats would wait for its own last addition
  for (size_t i = begin; i < end; i += 16)
    for (size_t k = 0; k < 16; ++k) {
      uint32_t word;
      __builtin_memcpy(&word, a + i + k, sizeof word);
      bits[k] ^= word;
    }
  for (const uint32_t word : bits) benchmark::DoNotOptimize(word);
  benchmark::DoNotOptimize(out);
}
void gather_loop(float* out, const float* a, const float*, const int32_t* index, size_t begin, size_t end) {
  for (size_t row = begin; row < end; ++row) __builtin_memcpy(out + row * 64, a + static_cast<size_t>(index[row]) * 64, 64 * sizeof(float));
}

void loops(benchmark::State& state, const Loop& loop, unsigned threads) {
  static const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  if (threads == 0) threads = processors;
  std::mt19937 numbers(1);
  // Numbers as kernels have them: some machines move equal ones faster.
  const auto some = [&](size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = 1.0f + static_cast<float>(numbers() >> 9) * 0x1p-23f;
    return v;
  };
  std::vector<float> out(loop.out + 16);
  const std::vector<float> a = some(loop.in), b = some(loop.in);
  float* const aligned = out.data() + (64 - reinterpret_cast<uintptr_t>(out.data()) % 64) % 64 / sizeof(float);
  std::vector<int32_t> index(16384);
  for (int32_t& i : index) i = static_cast<int32_t>(numbers() % 65536);
  const auto run = [&] {
    // A thread that is late leaves its part to the others.
    std::atomic<unsigned> next{0};
    tile::run_workers(threads, [&](unsigned) {
      const auto border = [&](unsigned t) { return loop.count / 16 * t / threads * 16; };
      for (unsigned t; (t = next.fetch_add(1)) < threads;) loop.body(aligned, a.data(), b.data(), index.data(), border(t), border(t + 1));
    });
    benchmark::ClobberMemory();
  };
  for (int k = 0; k < kWarm; ++k) run();
  for (auto _ : state) run();
  state.counters["GB/s"] = benchmark::Counter(loop.bytes * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

std::vector<Loop> all_loops() {
  constexpr size_t kLong = 4194304, kRows = 2048 * 1024;
  return {
      {"loop/vector_add", add_loop, kLong, kLong, kLong, 12.0 * kLong},
#if defined(__x86_64__)
      {"loop/vector_add_stream", stream_loop, kLong, kLong, kLong, 12.0 * kLong},
#endif
      {"loop/reduce", read_loop, 16, kRows, kRows, 4.0 * kRows},
      {"loop/gather", gather_loop, size_t{16384} * 64, size_t{65536} * 64, 16384, 8.0 * 16384 * 64},
  };
}

}  // namespace

int main(int argc, char** argv) {
  for (const Bench& b : benches())
    for (const int threads : {0, 1})
      benchmark::RegisterBenchmark((std::string(b.name) + "/" + std::to_string(threads)).c_str(),
                                   [b, threads](benchmark::State& state) {
                                     const auto kernel = load(b.file, b.args);
                                     launches(state, kernel.get(), b.grid, static_cast<unsigned>(threads));
                                     state.counters[std::string("G") + b.unit + "/s"] =
                                         benchmark::Counter(b.work * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
                                   })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  for (const Loop& loop : all_loops())
    for (const unsigned threads : {0u, 1u})
      benchmark::RegisterBenchmark((std::string(loop.name) + "/" + std::to_string(threads)).c_str(),
                                   [loop, threads](benchmark::State& state) { loops(state, loop, threads); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
