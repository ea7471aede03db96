// One GPU of this machine: its memory, cubins loaded into it, launches and their times. Every call of the driver is checked; errors
// of a kernel come back as the diagnostics that other devices give for the same fault.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/driver.h"
#include "vm/base/diagnostics.h"

namespace tile::cuda {

class Gpu;

/// Memory of the device. Freed with this object.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory();
  [[nodiscard]] DevicePtr address() const { return address_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  friend class Gpu;
  void swap(DeviceMemory& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
  }
  const Gpu* gpu_ = nullptr;
  DevicePtr address_ = 0;
  size_t size_ = 0;
};

/// Memory of the host that kernels see too: what they write is seen after the launch, and even if the kernel faulted.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SharedMemory();
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] DevicePtr address() const { return address_; }

 private:
  friend class Gpu;
  void swap(SharedMemory& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(data_, other.data_);
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
  }
  const Gpu* gpu_ = nullptr;
  void* data_ = nullptr;
  DevicePtr address_ = 0;
  size_t size_ = 0;
};

/// A cubin loaded into the device, and one function of it.
class LoadedKernel {
 public:
  LoadedKernel() = default;
  LoadedKernel(LoadedKernel&& other) noexcept { swap(other); }
  LoadedKernel& operator=(LoadedKernel&& other) noexcept {
    swap(other);
    return *this;
  }
  ~LoadedKernel();
  [[nodiscard]] FunctionHandle function() const { return function_; }
  [[nodiscard]] unsigned registers() const { return registers_; }
  [[nodiscard]] unsigned local_bytes() const { return local_bytes_; }
  [[nodiscard]] unsigned static_shared_bytes() const { return static_shared_; }
  /// Blocks of so many threads and bytes of dynamic shared memory that one multiprocessor holds; 0 where the driver does not say.
  [[nodiscard]] unsigned blocks_per_sm(unsigned threads, unsigned shared_bytes) const;
  /// Whether the device can hold a cluster of so many blocks at once. True where the driver does not say.
  [[nodiscard]] bool holds_cluster(unsigned blocks, unsigned threads, unsigned shared_bytes) const;

 private:
  friend class Gpu;
  void swap(LoadedKernel& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(module_, other.module_);
    std::swap(function_, other.function_);
    std::swap(registers_, other.registers_);
    std::swap(local_bytes_, other.local_bytes_);
    std::swap(static_shared_, other.static_shared_);
  }
  const Gpu* gpu_ = nullptr;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr;
  unsigned registers_ = 0, local_bytes_ = 0, static_shared_ = 0;
};

/// How a function is launched.
struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  uint32_t threads = 128;       ///< of a block, all along x
  uint32_t shared_bytes = 0;    ///< dynamic
  uint32_t cluster = 1;         ///< blocks of a cluster along x, where that divides the grid; 1: none
  bool programmatic = false;    ///< may start while the launch before it in its stream still runs: it waits itself
};

/// A kernel's parameters: the values in order, each `bytes` long and aligned to that.
struct LaunchParam {
  uint64_t bits = 0;
  uint32_t bytes = 8;  ///< 1, 2, 4 or 8
};

class Gpu {
 public:
  /// Opens a device: that of this number, or of TILEVM_DEVICE, or the first. Its primary context becomes current in this thread.
  /// @error E0910..E0914
  [[nodiscard]] static Result<std::shared_ptr<Gpu>> open(Diagnostics& diags, int ordinal = -1);
  /// The device of the context that is current in the calling thread; that context is used, and stays the caller's.
  /// @error E0912 there is none; E0910..E0914
  [[nodiscard]] static Result<std::shared_ptr<Gpu>> of_current_context(Diagnostics& diags);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  [[nodiscard]] const Driver& driver() const { return driver_; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  /// Makes the context current in the calling thread; every thread that uses this object needs it once.
  [[nodiscard]] Status enter(Diagnostics& diags) const;

  [[nodiscard]] Result<DeviceMemory> allocate(size_t bytes, const std::string& what, Diagnostics& diags) const;
  [[nodiscard]] Result<SharedMemory> allocate_shared(size_t bytes, Diagnostics& diags) const;
  [[nodiscard]] Status upload(const DeviceMemory& to, const void* from, size_t bytes, Diagnostics& diags) const;
  [[nodiscard]] Status download(void* to, const DeviceMemory& from, size_t bytes, Diagnostics& diags) const;
  [[nodiscard]] Status fill(const DeviceMemory& to, uint8_t value, Diagnostics& diags) const;

  /// Loads a cubin. `shared_bytes`: dynamic shared memory that its launches will use.
  [[nodiscard]] Result<LoadedKernel> load(std::span<const uint8_t> cubin, const std::string& symbol, uint32_t shared_bytes, Diagnostics& diags,
                                          const char* what = "the compiled kernel") const;

  /// What a grid must fit in: x below 2^31, y and z below 65,536. @error E0808
  [[nodiscard]] Status check_grid(const std::array<uint32_t, 3>& grid, Diagnostics& diags) const;

  /// Launches and waits. The kernel's time on the device in seconds.
  /// @param cancel  may be null; once true, the kernel is not waited for any longer: Failed without an error
  /// @error E0808 grid; E0913; T0101 an access to an address that is none. After an error of the kernel the device is unusable for this
  ///        process (the driver keeps answering with the same error)
  [[nodiscard]] Result<double> launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, const std::atomic<bool>* cancel,
                                      Diagnostics& diags) const;
  /// Puts one launch into the stream, without waiting.
  [[nodiscard]] Status enqueue(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, Diagnostics& diags) const;

  /// The same into a stream of the caller's, with pointers to the parameters. Allocates nothing and waits for nothing unless it fails.
  [[nodiscard]] Status enqueue_prepared(const LoadedKernel& kernel, const LaunchShape& shape, void* const* params, Stream stream, Diagnostics& diags) const;

  /// The time of one launch after `flush` was overwritten, so that nothing of its data is in the L2 cache. In seconds.
  [[nodiscard]] Result<double> time_launch(const LoadedKernel& kernel, const LaunchShape& shape, std::span<const LaunchParam> params, const DeviceMemory& flush,
                                           Diagnostics& diags) const;
  /// The time of one copy on the device, flushed in the same way. In seconds.
  [[nodiscard]] Result<double> time_copy(const DeviceMemory& to, const DeviceMemory& from, size_t bytes, const DeviceMemory& flush, Diagnostics& diags) const;

  /// Waits for all that was enqueued. Errors of a kernel become those of launch().
  [[nodiscard]] Status synchronize(Diagnostics& diags) const;

 private:
  Gpu(const Driver& driver, DeviceFacts facts) : driver_(driver), facts_(std::move(facts)) {}
  friend class DeviceMemory;
  friend class SharedMemory;
  friend class LoadedKernel;
  [[nodiscard]] Status kernel_status(DriverStatus status, const char* call, Diagnostics& diags) const;
  template <class Work>
  [[nodiscard]] Result<double> timed(const DeviceMemory& flush, Work&& work, Diagnostics& diags) const;

  const Driver& driver_;
  DeviceFacts facts_;
  DeviceOrdinal device_ = 0;
  Context context_ = nullptr;
  bool callers_context_ = false;
  [[nodiscard]] Status make_stream(Diagnostics& diags);
  Stream stream_ = nullptr;
  Event start_ = nullptr, stop_ = nullptr;
};

}  // namespace tile::cuda
