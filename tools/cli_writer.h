// Which block of a launch wrote an element.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "vm/runtime/device.h"

namespace tile::cli {

struct ElementWriter {
  uint32_t block[3] = {0, 0, 0};
  InstId inst = kNone;
};

/// Runs the launch on the interpreter and looks for the last write of an element.
/// @param args      as before the launch; changed by it
/// @param buffer    number in args.buffers
/// @param position  of the element in the buffer's memory, in elements
/// @return nothing where no block writes it, or the launch does not come to its end
[[nodiscard]] std::optional<ElementWriter> writer_of(const std::shared_ptr<const ValidModule>& module, const Function& entry, const LaunchGrid& grid, LaunchArguments& args, size_t buffer,
                                                     int64_t position, RunOptions options);

}  // namespace tile::cli
