// Bytes of input in lines of text.
#pragma once

#include <string>
#include <string_view>

namespace tile {

/// Bytes that steer a terminal, break the line or are no UTF-8 are written as `\n` or `\x1B`, all others stay.
[[nodiscard]] std::string escape_hidden(std::string_view s);

}  // namespace tile
