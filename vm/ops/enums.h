// Spellings of the enumerations of Tile IR; a value's encoding is its position.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "vm/ops/op_def.h"

namespace tile {

struct EnumValue {
  std::string_view word;
  Version since = v(13, 1);
};

struct EnumInfo {
  std::string_view name;  ///< spelling in generic form, e.g. "rounding"
  std::span<const EnumValue> values;
};

[[nodiscard]] const EnumInfo& enum_info(EnumKind kind);
[[nodiscard]] std::optional<uint32_t> enum_value(EnumKind kind, std::string_view word);
/// The word of a value; "?" beyond the list.
[[nodiscard]] std::string_view enum_word(EnumKind kind, uint32_t value);

}  // namespace tile
