// Launches through the C++ interface against the driver of fake_cuda.cpp: on a caller's stream and context, repeated without allocations,
// captured, on two devices from two threads. Prints what went wrong; status 1 then.
//   launch_api FAKE_CUDA_LIBRARY KERNEL.tile LOG
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "assembler/assembler.h"
#include "backend/device/device_gpu.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0}, locks{0};
}  // namespace

// gcc takes std::free in a replaced operator delete for a mistake once it has inlined one of the two.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

/// Stands before the C library's.
extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> next{nullptr};
  if (!next) next = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counting.load(std::memory_order_relaxed)) locks.fetch_add(1, std::memory_order_relaxed);
  return next.load()(mutex);
}

namespace {

using namespace tile;

int failed = 0;
void check(bool ok, const char* what, const std::string& details = {}) {
  if (ok) return;
  ++failed;
  std::printf("%s %s\n", what, details.c_str());
}

std::vector<std::string> lines_of(const std::string& path, size_t from = 0) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  out.erase(out.begin(), out.begin() + static_cast<ptrdiff_t>(std::min(from, out.size())));
  return out;
}

template <class F>
F* driver_function(void* library, const char* name) {
  return reinterpret_cast<F*>(::dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string log = argv[3];
  ::setenv("TILEVM_DRIVER", argv[1], 1);
  ::setenv("TILEVM_PTXAS", "driver", 1);
  ::setenv("FAKE_CUDA_LOG", log.c_str(), 1);
  ::setenv("FAKE_CUDA_COUNT", "2", 1);
  void* library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return 2;
  Diagnostics diags;
  std::ifstream file(argv[2]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto parsed = parse_text(std::make_shared<const Source>(argv[2], text), diags);
  if (!parsed) return std::printf("%s", render(diags).c_str()), 1;
  auto valid = validate(*std::move(parsed), diags);
  if (!valid) return std::printf("%s", render(diags).c_str()), 1;
  const auto module = std::make_shared<const ValidModule>(*std::move(valid));
  const auto entry_of = [&](const char* name) { return *find_entry(**module, name, diags); };
  const Function &plain = *entry_of("plain"), &chained = *entry_of("chained");
  const uint64_t params[] = {0x1000, 1};

  {  // repeated without anything but launches
    const GpuOptions defaults;
    auto device = make_gpu_device(module, defaults, diags);
    check(static_cast<bool>(device), "device", render(diags));
    if (!device) return 1;
    auto launch = (*device)->prepare_launch(plain, {3, 2, 1}, params, diags);
    check(static_cast<bool>(launch), "prepare", render(diags));
    if (!launch) return 1;
    const size_t before = lines_of(log).size();
    // The fake writes its log with calls that allocate in the C library, not by operator new.
    counting = true;
    bool good = true;
    for (int i = 0; i < 100; ++i) good = good && (*launch)->enqueue(nullptr, diags).ok();
    counting = false;
    check(good, "enqueue", render(diags));
    check(locks == 0, "locks on the warm path:", std::to_string(locks.load()));
    check(allocations == 0, "allocations on the warm path:", std::to_string(allocations.load()));
    const auto seen = lines_of(log, before);
    counting = true;
    static std::mutex mutex;
    { const std::lock_guard lock(mutex); }
    counting = false;
    check(locks == 1, "a lock is not seen");
    check(seen.size() == 100, "calls of the driver on the warm path:", std::to_string(seen.size()));
    for (const auto& s : seen) check(s.starts_with("cuLaunchKernel grid 3 2 1 "), "call", s);
    check((*launch)->collect({}, diags).ok(), "collect", render(diags));

    // The same while a stream is captured, when the fake refuses every call that is forbidden then.
    driver_function<int(void*, int)>(library, "cuStreamBeginCapture_v2")(nullptr, 0);
    check((*launch)->enqueue(nullptr, diags).ok(), "capture", render(diags));
    auto forbidden = (*device)->prepare_launch(plain, {1, 1, 1}, params, diags);
    check(!forbidden && diags.has_errors(), "the fake allows allocations during a capture");
    diags.clear();
    void* graph = nullptr;
    check(driver_function<int(void*, void**)>(library, "cuStreamEndCapture")(nullptr, &graph) == 0, "end of capture");

    // A kernel that waits for the grids before it may be launched before they end.
    auto dependent = (*device)->prepare_launch(chained, {1, 1, 1}, params, diags);
    check(static_cast<bool>(dependent), "prepare the dependent", render(diags));
    if (dependent) {
      const size_t mark = lines_of(log).size();
      check((*dependent)->enqueue(nullptr, diags).ok(), "enqueue the dependent", render(diags));
      const auto calls = lines_of(log, mark);
      check(calls.size() == 1 && calls[0] == "cuLaunchKernelEx grid 1 1 1 attribute 6 1", "programmatic launch", calls.empty() ? "" : calls[0]);
    }
    // More blocks along z than a GPU launches: along x.
    auto tall = (*device)->prepare_launch(plain, {2, 1, 70000}, params, diags);
    check(static_cast<bool>(tall), "prepare a tall grid", render(diags));
    if (tall) {
      const size_t mark = lines_of(log).size();
      check((*tall)->enqueue(nullptr, diags).ok(), "enqueue a tall grid", render(diags));
      const auto calls = lines_of(log, mark);
      check(calls.size() == 1 && calls[0].starts_with("cuLaunchKernel grid 140000 1 1 "), "tall grid", calls.empty() ? "" : calls[0]);
    }
    check(!(*device)->prepare_launch(plain, {1, 1, 1}, std::span(params, 1), diags), "too few parameters are taken");
    diags.clear();
  }
  {  // a context of the caller's: it is used, and not given back
    GpuOptions options;
    options.current_context = true;
    driver_function<int(void*)>(library, "cuCtxSetCurrent")(nullptr);
    check(!make_gpu_device(module, options, diags) && diags.first_error() && diags.first_error()->code == Code::E0912, "no context", render(diags));
    diags.clear();
    void* own = nullptr;
    driver_function<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&own, 1);
    driver_function<int(void*)>(library, "cuCtxSetCurrent")(own);
    const size_t mark = lines_of(log).size();
    {
      auto device = make_gpu_device(module, options, diags);
      check(static_cast<bool>(device), "device of the caller's context", render(diags));
      if (device) {
        check((*device)->facts().ordinal == 1, "the context's device");
        void* stream = nullptr;
        driver_function<int(void**, unsigned)>(library, "cuStreamCreate")(&stream, 0);
        auto launch = (*device)->prepare_launch(plain, {1, 1, 1}, params, diags);
        check(launch && (*launch)->enqueue(static_cast<cuda::Stream>(stream), diags).ok(), "launch in the caller's context and stream", render(diags));
      }
    }
    for (const auto& s : lines_of(log, mark)) check(!s.starts_with("cuDevicePrimaryCtx"), "the caller's context is touched:", s);
  }
  {  // two devices at once
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int ordinal = 0; ordinal < 2; ++ordinal)
      threads.emplace_back([&, ordinal] {
        Diagnostics own;
        GpuOptions options;
        options.ordinal = ordinal;
        auto device = make_gpu_device(module, options, own);
        if (!device || (*device)->facts().ordinal != ordinal) return check(false, "second device", render(own));
        for (int i = 0; i < 20; ++i) {
          LaunchArguments args;
          const LaunchGrid grid = {1, 1, 1};
          args.params = {{ElementType::Ptr, 0x1000, -1, 0}, {ElementType::I1, 1, -1, 0}};
          RunOptions run;
          if (!(*device)->launch(plain, grid, args, run, own)) return check(false, "launch on two devices", render(own));
        }
        ++good;
      });
    for (auto& t : threads) t.join();
    check(good == 2, "two devices");
  }
  return failed ? 1 : 0;
}
