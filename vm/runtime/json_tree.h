// JSON with the place of every value and key, so that each complaint can point at what it means. Not for large data:
// job files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/base/diagnostics.h"

namespace tile {

inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;
inline constexpr size_t kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonValues = 4'000'000;

struct JsonValue {
  enum class Kind : uint8_t { Null, Bool, Integer, Unsigned, Float, String, Array, Object };
  Kind kind = Kind::Null;
  uint32_t begin = 0;  ///< byte offset in the source
  bool boolean = false;
  int64_t integer = 0;                                 ///< Integer: negative numbers; Unsigned: the bits
  double number = 0;                                   ///< Float
  std::string text;                                    ///< String; numbers: as written
  std::vector<JsonValue> items;                        ///< Array, and values of an Object
  std::vector<std::pair<std::string, uint32_t>> keys;  ///< Object: name and byte offset of each item

  /// The value of `key`, or nullptr.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
};

/// "an object", "the number 3", "the text 'x'": what was found, for messages.
[[nodiscard]] std::string describe(const JsonValue& value);

/// Reads one JSON text. E0807 with line and column for broken syntax, a key given twice, or more than kMaxJsonDepth
/// levels; L0101 beyond kMaxJsonBytes or kMaxJsonValues.
[[nodiscard]] Result<JsonValue> parse_json(const std::shared_ptr<const Source>& source, Diagnostics& diags);

}  // namespace tile
