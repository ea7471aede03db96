// The tensor maps of a launch: numbers of a specification replaced by the launch's arguments.
#pragma once

#include <functional>
#include <string>

#include "backend/compile.h"
#include "backend/emulate/tensor_map.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// What one map of the kernel asks for in this launch. `address_of` gives a pointer parameter's device address.
/// The text says why no map can be made; empty: none.
[[nodiscard]] std::string tensor_map_request(const TensorMapSpec& spec, const LaunchArguments& args, const std::function<uint64_t(const FlatParam&)>& address_of,
                                             TensorMapRequest& request);

}  // namespace tile
