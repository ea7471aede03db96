// Tensor maps that the host can encode: the array behind a view comes from the entry's arguments and constants.
#pragma once

#include <string>
#include <vector>

#include "backend/compile.h"
#include "vm/ir/module.h"

namespace tile {

/// Fills base, extents and strides of `map`, innermost dimension first: `inner_dim` of the array, then the others from the last. `tile_dim`
/// gets for each of them the dimension of the view's tile, -1 where the tile has none. `def` has each value's instruction. False with the
/// reason, which calls the array `whose` ("an operand's").
[[nodiscard]] bool map_of_array(const Module& m, const Function& f, const std::vector<InstId>& def, ValueId view, size_t inner_dim, const std::string& whose,
                                TensorMapSpec& map, std::vector<int>& tile_dim, std::string& why);

}  // namespace tile
