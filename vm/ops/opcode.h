// Numbers of the operations, as public Tile IR fixes them. Generated from the rows; the facts are in op_table.h.
#pragma once

#include <cstdint>

namespace tile {

enum class Opcode : uint16_t {
#define TILE_OP(id, code, ...) id = code,
#include "vm/ops/rows.inc"
#undef TILE_OP
};

}  // namespace tile
