// What a grid of matrix products should take on a GPU with wgmma, by a model of waves of tiles. It ranks tile shapes, which are the program's
// choice: `tilevm bench` says which one it expects more of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vm/ir/module.h"

namespace tile {

struct ProductGrid {
  unsigned rows = 128, columns = 128;  ///< of a tile of the result
  uint64_t tiles = 0;                  ///< of all blocks
  double k_blocks = 0;                 ///< of a tile: its depth in 128 bytes of an operand's row
  bool wide_result = false;            ///< elements of 32 bits are stored
  bool overlapped = false;             ///< a tile of at most 128 x 128 is stored while the next one is computed, as warpgroups in turn do it
};

/// Microseconds of a launch on a GPU of `multiprocessors`, clocks warm, L2 empty.
/// @source fitted to launches on an H200 (132 multiprocessors, 700 W): 4.1 to launch, 4.6 to fill the ring and to store a tile of 128 x 256, 0.65 for
/// 64 x 256 x 128 bytes of K, or 0.78 once the chip's power decides, in longer launches. Its error there: conformance/results, 2026-11-30-product-model.md
[[nodiscard]] double expected_microseconds(const ProductGrid& grid, unsigned multiprocessors);

/// The same products in tiles of another shape, if one should be faster by more than the model's error: 10 %.
[[nodiscard]] std::optional<ProductGrid> better_tiles(const ProductGrid& grid, unsigned multiprocessors);

/// The grid of a launch whose entry makes one product that wgmma can do, in its only loop: a tile for each block.
/// @param blocks  of the launch along x, y, z
/// @param flops   operations of the launch
[[nodiscard]] std::optional<ProductGrid> product_grid(const Module& m, const Function& f, const std::array<uint32_t, 3>& blocks, double flops);

}  // namespace tile
