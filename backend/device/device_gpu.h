// The machines of the GPU part: a GPU, and its emulation on the host.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/launch.h"
#include "backend/device/build.h"
#include "backend/device/prepared_launch.h"
#include "vm/runtime/device.h"

namespace tile {

struct GpuOptions {
  BuildOptions build;            ///< an empty target: that of the device; of the emulation: sm_90a
  int ordinal = -1;              ///< of the device; -1: TILEVM_DEVICE, else the first
  bool current_context = false;  ///< use the context that is current in the calling thread, and its device, not the device's primary context
  uint64_t emulate_seed = 1;     ///< order of threads and asynchronous copies
  std::string emulate_policy = "random";  ///< or "early", "late"
  /// Told of every entry that was built, before its first launch. May be empty.
  std::function<void(const Function&, const BuiltKernel&)> built;
  /// Told after every launch of a GPU what it spent its time on: names and seconds, in order. The first launch's begin with the driver. May be empty.
  std::function<void(const std::vector<std::pair<std::string, double>>&)> launched;
};

struct BenchOptions {
  unsigned rounds = 0;               ///< 0: as many as take about half a second, 10 to 200
  bool flush = true;                 ///< overwrite the L2 cache before every launch
  std::vector<uint8_t> peer_cubin;   ///< empty: none
  std::string peer_entry;
  std::array<uint32_t, 3> peer_grid{};   ///< zeros: the grid of ours
};

struct Timing {
  std::vector<double> seconds;       ///< of each round
  [[nodiscard]] double median() const;
  [[nodiscard]] double quantile(double q) const;
};

/// Matrix products of one type without loads or stores.
struct MatrixRate {
  std::string unit;                  ///< instruction; empty: the target has none for the type
  Timing timing;
  double flops = 0;                  ///< of one launch
  [[nodiscard]] double flops_per_second() const { return timing.median() > 0 ? flops / timing.median() : 0; }
};

struct BenchResult {
  Timing ours, peer, copy;
  MatrixRate mma;                    ///< of the type of the entry's first product
  uint64_t copy_bytes = 0;           ///< read and written by one copy
  std::vector<std::vector<uint8_t>> peer_buffers;  ///< the buffers after one launch of the peer, from the same inputs
  unsigned registers = 0, local_bytes = 0, shared_bytes = 0, threads = 0;
  unsigned blocks_per_sm = 0;        ///< of ours, as the driver says; 0 where it does not
};

class GpuDevice : public Device {
 public:
  [[nodiscard]] virtual const cuda::DeviceFacts& facts() const = 0;
  /// Builds an entry, or gives it as it was built. Pointers stay good as long as the device.
  [[nodiscard]] virtual Result<const BuiltKernel*> build(const Function& entry, Diagnostics& diags) = 0;
  /// Makes a launch ready that can be put into streams of the caller's again and again, and captured into CUDA graphs.
  /// @param params  one word for each parameter of the entry: addresses in device memory, bits of scalars. They hold for every repetition
  [[nodiscard]] virtual Result<std::unique_ptr<PreparedLaunch>> prepare_launch(const Function& entry, const LaunchGrid& grid, std::span<const uint64_t> params, Diagnostics& diags) = 0;
  /// Times launches, the peer's and plain copies in turn. One launch of ours is made first; afterwards `args` hold its results.
  [[nodiscard]] virtual Result<BenchResult> bench(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const BenchOptions& options, Diagnostics& diags) = 0;
};

/// @error E0910..E0914 no usable GPU, E0915 no assembler, E0808 a target that there is not, or that the device does not run
[[nodiscard]] Result<std::unique_ptr<GpuDevice>> make_gpu_device(std::shared_ptr<const ValidModule> module, GpuOptions options, Diagnostics& diags);
/// @error E0916 this processor cannot run it, E0808 bad target
[[nodiscard]] Result<std::unique_ptr<Device>> make_emulated_device(std::shared_ptr<const ValidModule> module, GpuOptions options, Diagnostics& diags);

}  // namespace tile
