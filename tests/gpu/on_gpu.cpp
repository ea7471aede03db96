// Launches through the C++ interface on the GPUs of this computer: on all of them at once from one thread each, on the caller's stream,
// repeated, captured into a CUDA graph, programmatic dependent ones, and of a grid with more blocks along z than a GPU launches.
// Prints one line of JSON for each GPU with the times of the host; status 1 if a result is wrong, 77 where there is no usable GPU.
//   on_gpu KERNEL.tile
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "assembler/assembler.h"
#include "backend/device/device_gpu.h"

namespace {

using namespace tile;
using Clock = std::chrono::steady_clock;

constexpr int kNoGpu = 77;
constexpr unsigned kBlock = 128;  // elements of a block of the kernels

std::mutex printing;
std::atomic<int> mistakes{0};
void check(bool ok, int ordinal, const char* what, const std::string& details = {}) {
  if (ok) return;
  ++mistakes;
  const std::scoped_lock lock(printing);
  std::printf("GPU %d: %s %s\n", ordinal, what, details.c_str());
}

// Of the driver's interface what the product does not use.
struct Graphs {
  int (*begin)(void* stream, int mode) = nullptr;
  int (*end)(void* stream, void** graph) = nullptr;
  int (*instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*launch)(void* executable, void* stream) = nullptr;
  explicit Graphs(const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    begin = reinterpret_cast<int (*)(void*, int)>(::dlsym(library, "cuStreamBeginCapture_v2"));
    end = reinterpret_cast<int (*)(void*, void**)>(::dlsym(library, "cuStreamEndCapture"));
    instantiate = reinterpret_cast<int (*)(void**, void*, unsigned long long)>(::dlsym(library, "cuGraphInstantiateWithFlags"));
    launch = reinterpret_cast<int (*)(void*, void*)>(::dlsym(library, "cuGraphLaunch"));
  }
  [[nodiscard]] bool usable() const { return begin && end && instantiate && launch; }
};

double seconds(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

/// All tests on one GPU. The array is longer than what a launch changes, so that a launch beyond its grid shows.
void run(const cuda::Driver& driver, const std::shared_ptr<const ValidModule>& module, int ordinal) {
  Diagnostics diags;
  GpuOptions options;
  options.ordinal = ordinal;
  const auto start = Clock::now();
  auto made = make_gpu_device(module, options, diags);
  check(static_cast<bool>(made), ordinal, "no device", render(diags));
  if (!made) return;
  GpuDevice& device = **made;
  check(device.facts().ordinal == ordinal, ordinal, "another device");
  const double device_seconds = seconds(start);

  constexpr unsigned kBlocks = 4096;
  const size_t count = size_t{kBlocks} * kBlock + kBlock;
  cuda::Context context = nullptr;
  check(driver.context_retain(&context, ordinal) == cuda::kSuccess && driver.context_set(context) == cuda::kSuccess, ordinal, "context");
  cuda::Stream stream = nullptr;
  cuda::DevicePtr array = 0;
  check(driver.stream_create(&stream, cuda::kStreamNonBlocking) == cuda::kSuccess && driver.memory_allocate(&array, count * 4) == cuda::kSuccess, ordinal, "memory");
  const auto clear = [&] { check(driver.memory_set(array, 0, count * 4, stream) == cuda::kSuccess, ordinal, "cuMemsetD8Async"); };
  const auto expect = [&](const char* what, float value) {
    std::vector<float> host(count);
    check(driver.stream_synchronize(stream) == cuda::kSuccess, ordinal, what, "cuStreamSynchronize");
    check(driver.copy_to_host(host.data(), array, count * 4) == cuda::kSuccess, ordinal, what, "cuMemcpyDtoH");
    for (size_t i = 0; i < count; ++i)
      if (host[i] != (i < count - kBlock ? value : 0.0F))
        return check(false, ordinal, what, "element " + std::to_string(i) + " is " + std::to_string(host[i]) + ", expected " + std::to_string(value));
  };
  const float one = 1.0F;
  uint32_t bits = 0;
  std::copy_n(reinterpret_cast<const unsigned char*>(&one), 4, reinterpret_cast<unsigned char*>(&bits));
  const uint64_t params[] = {array, bits};
  const auto prepare = [&](const char* entry, LaunchGrid grid) {
    auto found = find_entry(**module, entry, diags);
    auto launch = found ? device.prepare_launch(**found, grid, params, diags) : Result<std::unique_ptr<PreparedLaunch>>(Failed);
    check(static_cast<bool>(launch), ordinal, entry, render(diags));
    return launch ? std::move(*launch) : nullptr;
  };

  const auto before_build = Clock::now();
  auto add = prepare("add", {kBlocks, 1, 1});
  const double build_seconds = seconds(before_build);
  if (!add) return;
  std::vector<double> times(1000);
  clear();
  for (double& t : times) {
    const auto from = Clock::now();
    check(add->enqueue(stream, diags).ok(), ordinal, "enqueue", render(diags));
    t = seconds(from);
  }
  expect("repeated launches", 1000.0F);
  std::ranges::sort(times);

  // Captured once (calls of other threads do not matter), launched ten times.
  const Graphs graphs(driver.path());
  check(graphs.usable(), ordinal, "the driver has no graphs");
  if (graphs.usable()) {
    clear();
    void *graph = nullptr, *executable = nullptr;
    check(graphs.begin(stream, 1) == 0, ordinal, "cuStreamBeginCapture");
    for (int i = 0; i < 7; ++i) check(add->enqueue(stream, diags).ok(), ordinal, "capture", render(diags));
    check(graphs.end(stream, &graph) == 0 && graphs.instantiate(&executable, graph, 0) == 0, ordinal, "cuGraphInstantiate");
    expect("a captured launch ran", 0.0F);
    for (int i = 0; i < 10; ++i) check(graphs.launch(executable, stream) == 0, ordinal, "cuGraphLaunch");
    expect("graph", 70.0F);
  }

  // Each may start before the one ahead of it has ended, and waits for its results.
  if (auto chained = prepare("chained", {kBlocks, 1, 1})) {
    clear();
    for (int i = 0; i < 500; ++i) check(chained->enqueue(stream, diags).ok(), ordinal, "dependent launch", render(diags));
    expect("dependent launches", 500.0F);
  }
  // 70,000 blocks along z, the last of which count.
  if (auto tall = prepare("tall", {1, 1, 65536 + kBlocks})) {
    clear();
    check(tall->enqueue(stream, diags).ok(), ordinal, "tall grid", render(diags));
    expect("tall grid", 1.0F);
  }
  check(add->collect({}, diags).ok(), ordinal, "collect", render(diags));
  const std::scoped_lock lock(printing);
  std::printf("{\"gpu\": %d, \"name\": \"%s\", \"device_ms\": %.3f, \"prepare_ms\": %.3f, \"enqueue_us\": %.3f}\n", ordinal, device.facts().name.c_str(), device_seconds * 1e3,
              build_seconds * 1e3, times[times.size() / 2] * 1e6);
  (void)driver.memory_free(array);
  (void)driver.stream_destroy(stream);
  (void)driver.context_release(ordinal);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: on_gpu KERNEL.tile\n"), 2;
  Diagnostics diags;
  auto driver = cuda::Driver::load(diags);
  auto devices = driver ? (*driver)->devices(diags) : Result<std::vector<cuda::DeviceFacts>>(Failed);
  if (!devices || devices->empty()) return std::printf("no GPU: %s\n", render(diags).c_str()), kNoGpu;
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto parsed = parse_text(std::make_shared<const Source>(argv[1], text), diags);
  auto valid = parsed ? validate(*std::move(parsed), diags) : Result<ValidModule>(Failed);
  if (!valid) return std::printf("%s", render(diags).c_str()), 1;
  const auto module = std::make_shared<const ValidModule>(*std::move(valid));
  std::vector<std::thread> threads;
  for (const auto& facts : *devices) threads.emplace_back(run, std::cref(**driver), std::cref(module), facts.ordinal);
  for (auto& t : threads) t.join();
  return mistakes ? 1 : 0;
}
