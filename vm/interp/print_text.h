// The text of a kernel's print: its format, and the elements that it prints. Every machine prints by these rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/element_type.h"

namespace tile {

/// Literal text, or a conversion from % to its letter.
struct PrintPiece {
  std::string text;
  int arg = -1;  ///< of a conversion: number of the operand
};
/// @param format  as the validator accepted it (E0606)
[[nodiscard]] std::vector<PrintPiece> parse_print_format(std::string_view format);

/// A tile: its elements in row-major order, each in the bytes of its type's storage.
struct PrintValue {
  ElementType element = ElementType::I32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
};
/// A conversion without its operand prints nothing.
[[nodiscard]] std::string print_text(std::span<const PrintPiece> pieces, std::span<const PrintValue> values);

}  // namespace tile
