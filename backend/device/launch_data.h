// What a launch hands to a kernel besides its scalars: the bytes of the module's globals, and how its grid is launched.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vm/interp/memory.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// The initial bytes of every global, in module order. They stay in `owner`.
[[nodiscard]] Result<std::vector<Memory::Allocation>> global_data(const Module& module, Memory& owner, Diagnostics& diags);

/// How a grid is launched: as it is, or, where it has more blocks along y or z than a GPU launches, along x, in parts if need be.
struct LaunchPart {
  std::array<uint32_t, 3> grid;
  uint64_t first = 0;  ///< number of its first block; only of a linear grid
};
/// How the blocks of a grid become blocks of a launch: each is one; the same, along x (the plan's grid=linear); those of the launch loop over
/// them (grid=loop).
enum class GridWay : uint8_t { Program, Linear, Loop };
/// Kernels of one entry: with bulk copies as the planner likes, without bulk stores, without any.
enum class BulkWay : uint8_t { All, Loads, None };
/// Forces the ways upon the plan.
void choose_ways(GridWay grid, BulkWay bulk, std::map<std::string, std::string>& plan);
/// Most blocks that a GPU launches along x, and along y and z.
inline constexpr uint32_t kMostBlocks = 0x7FFFFFFF, kMostBlocksYZ = 65535;
[[nodiscard]] inline bool needs_linear_grid(const LaunchGrid& grid) { return grid[1] > kMostBlocksYZ || grid[2] > kMostBlocksYZ; }
/// Whether blocks of a launch that loop over those of the grid can have several each, where `at_once` run at once.
[[nodiscard]] inline bool can_loop(const LaunchGrid& grid, uint32_t at_once) {
  const uint64_t plane = uint64_t{grid[0]} * grid[1];
  return plane <= kMostBlocks && plane * grid[2] <= kMostBlocks && plane * grid[2] > at_once;
}
/// @error E0808 more than 2^48 blocks
[[nodiscard]] Result<std::vector<LaunchPart>> launch_parts(const LaunchGrid& grid, bool linear, Diagnostics& diags);
/// Appends the hidden parameters of a linear grid.
void add_grid_words(const LaunchGrid& grid, uint64_t first, std::vector<uint64_t>& to);

/// Bytes of local memory of all blocks of a launch.
/// @error E0808 more than this machine gives a launch
[[nodiscard]] Result<uint64_t> local_bytes(const Module& module, const Function& entry, uint64_t per_block, const LaunchGrid& grid, Diagnostics& diags);

}  // namespace tile
