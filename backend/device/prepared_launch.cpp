// Repeating a launch, and reading what it left.
#include "backend/device/prepared_launch.h"

namespace tile {

Status PreparedLaunch::enqueue(cuda::Stream stream, Diagnostics& diags) const {
  for (const Part& part : parts_)
    if (!gpu_->enqueue_prepared(*kernel_, part.shape, part.pointers.data(), stream, diags)) return Failed;
  return {};
}

Status PreparedLaunch::collect(const std::function<void(const std::string&)>& print, Diagnostics& diags) {
  const std::span<std::byte> box{mailbox_.data(), mailbox_.size()};
  // Which part a trap of several is from is not known; the first is taken.
  const LinearGrid numbers{{grid_[0], grid_[1], grid_[2]}, parts_.front().first};
  const bool trapped = report_trap(box, **module_, *entry_, diags, linear_ ? &numbers : nullptr);
  deliver_prints(box, **module_, *entry_, print, diags);
  reset_mailbox(box);
  if (trapped) return Failed;
  return {};
}

}  // namespace tile
