// Globals, grids, and the room of local memory.
#include "backend/device/launch_data.h"

#include <algorithm>

#include "vm/interp/exec.h"

namespace tile {

Result<std::vector<Memory::Allocation>> global_data(const Module& module, Memory& owner, Diagnostics& diags) {
  const auto bases = load_globals(module, owner, diags);
  if (!bases) return Failed;
  std::vector<Memory::Allocation> out;
  for (const uint64_t base : *bases) out.push_back(*owner.find(base));
  return out;
}

Result<std::vector<LaunchPart>> launch_parts(const LaunchGrid& grid, bool linear, Diagnostics& diags) {
  if (!linear) return std::vector<LaunchPart>{{{grid[0], grid[1], grid[2]}, 0}};
  // Extents are below 2^24, so two of them make no more than 2^48 and the third can be looked at before it is multiplied.
  const uint64_t plane = uint64_t{grid[0]} * grid[1];
  constexpr uint64_t kMost = uint64_t{1} << 48;
  if (plane > kMost || (plane != 0 && grid[2] > kMost / plane)) return diags.error(Code::E0808, Place{}, "the grid has more than 2^48 blocks", "use a smaller grid");
  std::vector<LaunchPart> parts;
  for (uint64_t first = 0, total = plane * grid[2]; first < total; first += kMostBlocks)
    parts.push_back({{static_cast<uint32_t>(std::min<uint64_t>(kMostBlocks, total - first)), 1, 1}, first});
  return parts;
}

void choose_ways(GridWay grid, BulkWay bulk, std::map<std::string, std::string>& plan) {
  if (grid == GridWay::Linear) plan["grid"] = "linear";
  if (grid == GridWay::Loop) plan["grid"] = "loop";
  if (const auto at = plan.find("grid"); grid == GridWay::Program && at != plan.end()) at->second = "program";
  if (bulk == BulkWay::Loads) plan["store"] = "direct";
  if (bulk == BulkWay::None) plan["tma"] = "off";
}

void add_grid_words(const LaunchGrid& grid, uint64_t first, std::vector<uint64_t>& to) { to.insert(to.end(), {grid[0], grid[1], grid[2], first}); }

Result<uint64_t> local_bytes(const Module& module, const Function& entry, uint64_t per_block, const LaunchGrid& grid, Diagnostics& diags) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  // Extents of a grid have 32 bits, so the total stays below 2^62 until it is looked at.
  uint64_t total = per_block;
  for (const uint64_t n : {uint64_t{grid[0]}, uint64_t{grid[1]}, uint64_t{grid[2]}}) {
    if (total > kMost) break;
    total *= n;
  }
  if (total <= kMost) return total;
  return diags.error(Code::E0808, module.place(entry),
                     "the alloca operations need " + std::to_string(per_block) + " bytes for each block, and the blocks of this grid together more than " +
                         std::to_string(kMost),
                     "use a smaller grid, or run with --cpu");
}

}  // namespace tile
