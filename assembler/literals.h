// Number and dense literals to bits. Knows element types and nothing of tokens' places.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/lexer.h"
#include "vm/base/element_type.h"

namespace tile {

/// Bits of a literal, or why it has none. Bits are in the storage form of a tile (attributes.h).
struct Literal {
  uint64_t bits = 0;
  std::string error;  ///< empty if the literal is good; a phrase that follows "'1e9' ..."
  std::string help;
};

/// Value of a decimal (Tok::Int) or hexadecimal (Tok::Hex) literal with its sign; nothing outside -2^63 .. 2^63 - 1.
[[nodiscard]] std::optional<int64_t> int_literal(Tok kind, std::string_view digits, bool negative);

/// A number as an element of `type`, which is an integer or float type. Integers: the union of the signed and the
/// unsigned range, modulo 2^n. Floats: decimals go to f64 and from there to the type, both to nearest even;
/// hexadecimals are bits.
[[nodiscard]] Literal number_literal(ElementType type, Tok kind, std::string_view digits, bool negative);

/// Appends the storage form of one element.
void append_element(std::string& bytes, ElementType type, uint64_t bits);

/// Bytes of a "0x..." string as elements; `count` elements or a single one. Empty and `error` set if it does not fit.
[[nodiscard]] std::string blob_elements(std::string_view text, ElementType type, int64_t count, std::string& error);

}  // namespace tile
