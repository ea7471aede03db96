// Contexts, memory, loading, launching and timing.
#include "backend/cuda/launch.h"

#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tile::cuda {

Result<std::shared_ptr<Gpu>> Gpu::open(Diagnostics& diags, int ordinal) {
  const auto driver = Driver::load(diags);
  if (!driver) return Failed;
  const Driver& d = **driver;
  if (ordinal < 0) {
    ordinal = 0;
    if (const char* chosen = std::getenv("TILEVM_DEVICE"); chosen && *chosen) {
      char* end = nullptr;
      const long number = std::strtol(chosen, &end, 10);
      if (*end != 0 || number < 0 || number > 4095) return diags.error(Code::E0912, Place{}, std::string("TILEVM_DEVICE=") + chosen + " is not the number of a device", "tilevm devices lists them");
      ordinal = static_cast<int>(number);
    }
  }
  auto facts = d.device(ordinal, diags);
  if (!facts) return Failed;
  std::shared_ptr<Gpu> gpu(new Gpu(d, *std::move(facts)));
  if (!d.check(d.device_get(&gpu->device_, ordinal), "cuDeviceGet", diags)) return Failed;
  Context context = nullptr;
  if (!d.check(d.context_retain(&context, gpu->device_), "cuDevicePrimaryCtxRetain", diags)) return Failed;
  gpu->context_ = context;
  if (!gpu->enter(diags) || !gpu->make_stream(diags)) return Failed;
  return gpu;
}

Result<std::shared_ptr<Gpu>> Gpu::of_current_context(Diagnostics& diags) {
  const auto driver = Driver::load(diags);
  if (!driver) return Failed;
  const Driver& d = **driver;
  Context context = nullptr;
  if (!d.check(d.context_get(&context), "cuCtxGetCurrent", diags)) return Failed;
  if (!context) return diags.error(Code::E0912, Place{}, "no context of the driver is current in this thread", "make one current, or let the device's primary context be used");
  DeviceOrdinal device = 0;
  if (!d.check(d.context_device(&device), "cuCtxGetDevice", diags)) return Failed;
  auto facts = d.device(device, diags);
  if (!facts) return Failed;
  std::shared_ptr<Gpu> gpu(new Gpu(d, *std::move(facts)));
  gpu->device_ = device;
  gpu->context_ = context;
  gpu->callers_context_ = true;
  if (!gpu->make_stream(diags)) return Failed;
  return gpu;
}

Status Gpu::make_stream(Diagnostics& diags) {
  Stream stream = nullptr;
  if (!driver_.check(driver_.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate", diags)) return Failed;
  stream_ = stream;
  for (Event* event : {&start_, &stop_}) {
    Event made = nullptr;
    if (!driver_.check(driver_.event_create(&made, kEventDefault), "cuEventCreate", diags)) return Failed;
    *event = made;
  }
  return {};
}

unsigned LoadedKernel::blocks_per_sm(unsigned threads, unsigned shared_bytes) const {
  int blocks = 0;
  if (!gpu_ || !gpu_->driver_.blocks_per_sm) return 0;
  return gpu_->driver_.blocks_per_sm(&blocks, function_, static_cast<int>(threads), shared_bytes) == kSuccess && blocks > 0 ? static_cast<unsigned>(blocks) : 0;
}

bool LoadedKernel::holds_cluster(unsigned blocks, unsigned threads, unsigned shared_bytes) const {
  if (!gpu_ || !gpu_->driver_.active_clusters) return true;
  LaunchAttribute attribute{};
  attribute.id = kAttributeCluster;
  attribute.value.cluster = {blocks, 1, 1};
  const LaunchConfig config{{blocks, 1, 1}, {threads, 1, 1}, shared_bytes, nullptr, &attribute, 1};
  int clusters = 0;
  return gpu_->driver_.active_clusters(&clusters, function_, &config) != kSuccess || clusters > 0;
}

// Nothing can be done about errors in destructors, and after a kernel's fault every call fails.
Gpu::~Gpu() {
  if (start_) (void)driver_.event_destroy(start_);
  if (stop_) (void)driver_.event_destroy(stop_);
  if (stream_) (void)driver_.stream_destroy(stream_);
  if (context_ && !callers_context_) (void)driver_.context_release(device_);
}
DeviceMemory::~DeviceMemory() {
  if (address_) (void)gpu_->driver_.memory_free(address_);
}
SharedMemory::~SharedMemory() {
  if (data_) (void)gpu_->driver_.host_free(data_);
}
LoadedKernel::~LoadedKernel() {
  if (module_) (void)gpu_->driver_.module_unload(module_);
}

Status Gpu::enter(Diagnostics& diags) const { return driver_.check(driver_.context_set(context_), "cuCtxSetCurrent", diags); }

Result<DeviceMemory> Gpu::allocate(size_t bytes, const std::string& what, Diagnostics& diags) const {
  // An empty array needs an address too: pointers to it may be formed. What a failed call left in its result is not to be freed.
  DevicePtr address = 0;
  const DriverStatus status = driver_.memory_allocate(&address, bytes ? bytes : 1);
  if (status == kOutOfMemory) {
    size_t free = 0, total = 0;
    std::string left;
    if (driver_.memory_info(&free, &total) == kSuccess) left = "; " + std::to_string(free >> 20) + " MiB of " + std::to_string(total >> 20) + " are free";
    return diags.error(Code::E0914, Place{}, "the device has not enough memory for " + what + " of " + std::to_string(bytes) + " bytes" + left);
  }
  if (!driver_.check(status, "cuMemAlloc", diags)) return Failed;
  DeviceMemory memory;
  memory.gpu_ = this;
  memory.address_ = address;
  memory.size_ = bytes;
  return memory;
}

Result<SharedMemory> Gpu::allocate_shared(size_t bytes, Diagnostics& diags) const {
  void* data = nullptr;
  if (!driver_.check(driver_.host_allocate(&data, bytes, kHostAllocPortable | kHostAllocMapped), "cuMemHostAlloc", diags)) return Failed;
  SharedMemory memory;
  memory.gpu_ = this;
  memory.data_ = data;
  memory.size_ = bytes;
  std::memset(memory.data_, 0, bytes);
  if (!driver_.check(driver_.host_device_pointer(&memory.address_, memory.data_, 0), "cuMemHostGetDevicePointer", diags)) return Failed;
  return memory;
}

// The stream does not wait for the default stream, where plain copies run: so each copy is complete before it returns.
Status Gpu::upload(const DeviceMemory& to, const void* from, size_t bytes, Diagnostics& diags) const {
  if (bytes == 0) return {};
  if (!driver_.check(driver_.copy_to_device(to.address_, from, bytes), "cuMemcpyHtoD", diags)) return Failed;
  // A copy from memory that is not pinned may return when the data is staged; nullptr is the default stream that it runs in.
  return driver_.check(driver_.stream_synchronize(nullptr), "cuStreamSynchronize", diags);
}

Status Gpu::download(void* to, const DeviceMemory& from, size_t bytes, Diagnostics& diags) const {
  if (bytes == 0) return {};
  return kernel_status(driver_.copy_to_host(to, from.address_, bytes), "cuMemcpyDtoH", diags);
}

Status Gpu::fill(const DeviceMemory& to, uint8_t value, Diagnostics& diags) const {
  if (to.size_ == 0) return {};
  return driver_.check(driver_.memory_set(to.address_, value, to.size_, stream_), "cuMemsetD8Async", diags);
}

Result<LoadedKernel> Gpu::load(std::span<const uint8_t> cubin, const std::string& symbol, uint32_t shared_bytes, Diagnostics& diags, const char* what) const {
  ModuleHandle module = nullptr;
  const DriverStatus status = driver_.module_load(&module, cubin.data());
  if (status == kNoBinaryForGpu || status == kInvalidImage)
    return diags.error(Code::E0913, Place{}, std::string(what) + " cannot be loaded into " + facts_.name + " (sm_" + std::to_string(facts_.sm) + "): " + driver_.describe(status));
  if (!driver_.check(status, "cuModuleLoadData", diags)) return Failed;
  LoadedKernel kernel;
  kernel.gpu_ = this;
  kernel.module_ = module;
  const DriverStatus found = driver_.module_function(&kernel.function_, kernel.module_, symbol.c_str());
  if (found == kNotFound) return diags.error(Code::E0913, Place{}, std::string(what) + " has no kernel '" + symbol + "'");
  if (!driver_.check(found, "cuModuleGetFunction", diags)) return Failed;
  const auto attribute = [&](FunctionAttribute a) {
    int value = 0;
    return driver_.function_get(&value, a, kernel.function_) == kSuccess && value > 0 ? static_cast<unsigned>(value) : 0u;
  };
  kernel.registers_ = attribute(FunctionAttribute::Registers);
  kernel.local_bytes_ = attribute(FunctionAttribute::LocalBytes);
  kernel.static_shared_ = attribute(FunctionAttribute::SharedBytes);
  if (uint64_t{shared_bytes} + kernel.static_shared_ > facts_.max_shared)
    return diags.error(Code::E0808, Place{}, "the kernel needs " + std::to_string(shared_bytes + kernel.static_shared_) + " bytes of shared memory; a block of " + facts_.name + " can have " +
                                                 std::to_string(facts_.max_shared));
  if (shared_bytes > 0 && !driver_.check(driver_.function_set(kernel.function_, FunctionAttribute::MaxDynamicShared, static_cast<int>(shared_bytes)), "cuFuncSetAttribute", diags)) return Failed;
  return kernel;
}

Status Gpu::check_grid(const std::array<uint32_t, 3>& grid, Diagnostics& diags) const {
  constexpr uint32_t kMost[3] = {INT_MAX, 65535, 65535};
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0) return diags.error(Code::E0805, Place{}, "the grid is empty");
    if (grid[axis] > kMost[axis])
      return diags.error(Code::E0808, Place{}, std::string("the grid has ") + std::to_string(grid[axis]) + " blocks along " + "xyz"[axis] + "; a GPU launches at most " + std::to_string(kMost[axis]) + " there",
                         "run with --cpu");
  }
  return {};
}

Status Gpu::kernel_status(DriverStatus status, const char* call, Diagnostics& diags) const {
  switch (status) {
    case kSuccess:
      return {};
    case kIllegalAddress:
      return diags.error(Code::T0101, Place{}, "an access to an address that is not in the device's memory: " + driver_.describe(status),
                         "the GPU does not say which access; run with --cpu or --gpu=emulate to see it");
    case kMisalignedAddress:
      return diags.error(Code::T0101, Place{}, "an access to an address that is not a multiple of its size: " + driver_.describe(status),
                         "the GPU does not say which access; run with --cpu --check=assume to find a false assumption about alignment");
    case kLaunchTimeout:
      return diags.error(Code::L0106, Place{}, "the kernel ran longer than the system lets kernels run: " + driver_.describe(status));
    case kLaunchOutOfResources:
      return diags.error(Code::E0808, Place{}, "a block of the kernel needs more registers or threads than the device has: " + driver_.describe(status));
    default:
      return driver_.check(status, call, diags);
  }
}

Status Gpu::enqueue(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, Diagnostics& diags) const {
  if (!check_grid(shape.grid, diags)) return Failed;
  // Little-endian: the first bytes of a word are its low ones.
  std::vector<uint64_t> words;
  std::vector<void*> pointers;
  for (const LaunchParam& p : params) words.push_back(p.bits);
  for (uint64_t& w : words) pointers.push_back(&w);
  return enqueue_prepared(kernel, shape, pointers.data(), stream_, diags);
}

Status Gpu::enqueue_prepared(const LoadedKernel& kernel, const LaunchShape& shape, void* const* params, Stream stream, Diagnostics& diags) const {
  const auto& g = shape.grid;
  void** const pointers = const_cast<void**>(params);  // the driver only reads them
  LaunchAttribute attributes[2] = {};
  unsigned count = 0;
  // A cluster is what a hint asks for; no kernel needs one. Drivers without cuLaunchKernelEx know none.
  if (shape.cluster > 1 && driver_.launch_ex && g[0] % shape.cluster == 0) {
    attributes[count].id = kAttributeCluster;
    attributes[count++].value.cluster = {shape.cluster, 1, 1};
  }
  // Older drivers run the launches one behind the other, which is as right.
  if (shape.programmatic && driver_.launch_ex) {
    attributes[count].id = kAttributeProgrammatic;
    attributes[count++].value.programmatic = 1;
  }
  if (count == 0) return kernel_status(driver_.launch(kernel.function_, g[0], g[1], g[2], shape.threads, 1, 1, shape.shared_bytes, stream, pointers, nullptr), "cuLaunchKernel", diags);
  const LaunchConfig config{{g[0], g[1], g[2]}, {shape.threads, 1, 1}, shape.shared_bytes, stream, attributes, count};
  return kernel_status(driver_.launch_ex(&config, kernel.function_, pointers, nullptr), "cuLaunchKernelEx", diags);
}

Result<double> Gpu::launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, const std::atomic<bool>* cancel, Diagnostics& diags) const {
  if (!driver_.check(driver_.event_record(start_, stream_), "cuEventRecord", diags)) return Failed;
  if (!enqueue(kernel, shape, params, diags)) return Failed;
  if (!kernel_status(driver_.event_record(stop_, stream_), "cuEventRecord", diags)) return Failed;
  if (cancel) {
    // Short kernels are waited for by asking, so that their end is seen at once; then with sleep between.
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const DriverStatus status = driver_.event_query(stop_);
      if (status == kSuccess) break;
      if (status != kNotReady) {
        if (kernel_status(status, "cuEventQuery", diags)) break;
        return Failed;
      }
      if (cancel->load(std::memory_order_relaxed)) return Failed;
      if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  if (!kernel_status(driver_.event_synchronize(stop_), "cuEventSynchronize", diags)) return Failed;
  float milliseconds = 0;
  if (!driver_.check(driver_.event_milliseconds(&milliseconds, start_, stop_), "cuEventElapsedTime", diags)) return Failed;
  return static_cast<double>(milliseconds) * 1e-3;
}

template <class Work>
Result<double> Gpu::timed(const DeviceMemory& flush, Work&& work, Diagnostics& diags) const {
  if (!fill(flush, 0, diags)) return Failed;
  if (!driver_.check(driver_.event_record(start_, stream_), "cuEventRecord", diags)) return Failed;
  if (!work()) return Failed;
  if (!kernel_status(driver_.event_record(stop_, stream_), "cuEventRecord", diags)) return Failed;
  if (!kernel_status(driver_.event_synchronize(stop_), "cuEventSynchronize", diags)) return Failed;
  float milliseconds = 0;
  if (!driver_.check(driver_.event_milliseconds(&milliseconds, start_, stop_), "cuEventElapsedTime", diags)) return Failed;
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<double> Gpu::time_launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, const DeviceMemory& flush, Diagnostics& diags) const {
  return timed(flush, [&] { return enqueue(kernel, shape, params, diags); }, diags);
}

Result<double> Gpu::time_copy(const DeviceMemory& to, const DeviceMemory& from, size_t bytes, const DeviceMemory& flush, Diagnostics& diags) const {
  return timed(flush, [&] { return driver_.check(driver_.copy_on_device(to.address_, from.address_, bytes, stream_), "cuMemcpyDtoDAsync", diags); }, diags);
}

Status Gpu::synchronize(Diagnostics& diags) const { return kernel_status(driver_.stream_synchronize(stream_), "cuStreamSynchronize", diags); }

}  // namespace tile::cuda
