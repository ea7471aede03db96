// What a launch hands to a kernel besides its scalars: names of buffers, and the bytes of the module's globals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vm/interp/memory.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// "argument 0", by buffer.
[[nodiscard]] std::vector<std::string> buffer_names(const LaunchArguments& args);

/// The initial bytes of every global, in module order. They stay in `owner`.
[[nodiscard]] Result<std::vector<Memory::Allocation>> global_data(const Module& module, Memory& owner, Diagnostics& diags);

/// Bytes of local memory of all blocks of a launch.
/// @error E0808 more than this machine gives a launch
[[nodiscard]] Result<uint64_t> local_bytes(const Module& module, const Function& entry, uint64_t per_block, const LaunchGrid& grid, Diagnostics& diags);

}  // namespace tile
