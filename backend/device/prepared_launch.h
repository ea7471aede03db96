// A launch made ready once and repeated without preparations: on the caller's memory, in the caller's stream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/launch.h"
#include "backend/device/mailbox.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// What one launch needs; its memory lives as long as this object. The device must live longer.
class PreparedLaunch {
 public:
  /// Puts the launch into a stream of the device's context; nullptr: the default stream. The context must be current in the calling thread.
  /// Allocates nothing, takes no lock of ours and waits for nothing, so that it may be captured into a CUDA graph; graphs that were
  /// captured need this object as long as they are launched.
  /// @error those of a launch, and of launches before it that have failed since; memory is allocated to say so
  [[nodiscard]] Status enqueue(cuda::Stream stream, Diagnostics& diags) const;

  /// What the launches since the last call left: prints, and whether one trapped. Call it when they are done.
  /// @error T01xx, I0001
  [[nodiscard]] Status collect(const std::function<void(const std::string&)>& print, Diagnostics& diags);

 private:
  friend class GpuDeviceImpl;
  struct Part {
    cuda::LaunchShape shape;
    std::vector<uint64_t> words;
    std::vector<void*> pointers;  ///< to the words
    uint64_t first = 0;           ///< block
  };
  const cuda::Gpu* gpu_ = nullptr;
  const cuda::LoadedKernel* kernel_ = nullptr;
  std::shared_ptr<const ValidModule> module_;
  const Function* entry_ = nullptr;
  LaunchGrid grid_ = {1, 1, 1};
  bool linear_ = false;
  std::vector<Part> parts_;
  cuda::SharedMemory mailbox_;
  cuda::DeviceMemory maps_, local_;
};

}  // namespace tile
