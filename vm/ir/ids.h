// Handles into the tables of a module. All are plain indices; none is valid across modules.
#pragma once

#include <cstdint>

namespace tile {

using TypeId = uint32_t;
using AttrId = uint32_t;
using StringId = uint32_t;
using LocId = uint32_t;
using ValueId = uint32_t;   ///< inside one function
using InstId = uint32_t;    ///< inside one function, in pre-order
using RegionId = uint32_t;  ///< inside one function

inline constexpr uint32_t kNone = 0xFFFFFFFFu;

}  // namespace tile
