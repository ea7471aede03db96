// Values of a running block as text, for traces and the stepping prompt.
#pragma once

#include <cstddef>
#include <string>

#include "vm/interp/memory.h"
#include "vm/ir/module.h"

namespace tile {

struct ValueStyle {
  size_t whole = 16;  ///< tiles of at most so many elements are shown whole, as nested lists
  size_t first = 4;   ///< of larger ones this many elements, then least, greatest and the number of NaN
};

/// "3", "[1, 2]", "tile<64x64xf32> [0.5, 1, 2, 3, ...] min -1 max 9 nan 2", "argument 0+64", "view argument 0+0 [8, 8]
/// strides [8, 1]". Floats have the shortest text that names them, integers are signed, i1 is 0 or 1; only large tiles
/// state their type.
/// @param data  the value's storage; nullptr for tokens
[[nodiscard]] std::string value_text(const Module& module, const Memory& memory, TypeId type, const std::byte* data,
                                     const ValueStyle& style = {});
/// Bytes of a value's storage; 0 for tokens.
[[nodiscard]] size_t value_bytes(const Module& module, TypeId type);
/// "argument 0+64": the allocation that an address names and the bytes from its start; "0x..." where it names none.
[[nodiscard]] std::string address_text(const Memory& memory, uint64_t address);

}  // namespace tile
