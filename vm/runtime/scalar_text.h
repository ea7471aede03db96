// Scalars as text: the numbers of launch arguments, generators and reports. Not the literals of the assembler, which
// know more forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vm/base/diagnostics.h"
#include "vm/base/element_type.h"

namespace tile {

/// A whole text as a number, in any locale: digits with an optional sign. No value for anything else or out of range.
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);
[[nodiscard]] std::optional<uint64_t> parse_unsigned(std::string_view text);
/// "0x" and 1 to 16 hexadecimal digits.
[[nodiscard]] std::optional<uint64_t> parse_hex(std::string_view text);
/// Decimal or exponent form, "inf" and "nan" with an optional sign, rounded to the nearest double; no value beyond its
/// range.
[[nodiscard]] std::optional<double> parse_double(std::string_view text);

/// The element type of this name; no value for unknown names.
[[nodiscard]] std::optional<ElementType> element_type_named(std::string_view name);
/// "did you mean f16?" for a near or foreign name (u8, float32, half...), or nothing.
[[nodiscard]] std::string suggest_type(std::string_view name);

/// Bits of a scalar of `type` as load_bits() gives them. Integers take signed and unsigned values of their width, i1
/// also true and false, floats what parse_double() takes, rounded to nearest even; hexadecimal digits are bits for
/// every type. E0804 for another text or a value that the type cannot hold.
[[nodiscard]] Result<uint64_t> parse_scalar(std::string_view text, ElementType type, const Place& place,
                                            Diagnostics& diags);

/// An integer's bits as its signed value (i1: 0 or 1).
[[nodiscard]] int64_t signed_value(ElementType type, uint64_t bits);
/// Storage bits of the value of a float type nearest to `value`, ties to even, and always finite: what is too large,
/// infinity too, becomes the largest finite number. Types without sign take their smallest number for negative values,
/// f8E8M0FNU the next lower power of two. `value` must not be NaN.
[[nodiscard]] uint64_t finite_bits(ElementType type, double value);
/// Largest finite value of a float type.
[[nodiscard]] double largest_finite(ElementType type);
/// Distance from |value| to the next larger magnitude of the type; 0 where value is not finite.
[[nodiscard]] double spacing(ElementType type, double value);

/// The shortest text that names the value: "-5", "0.1", "nan".
[[nodiscard]] std::string show_value(ElementType type, uint64_t bits);
/// "0x3c00", as many digits as the type has.
[[nodiscard]] std::string show_bits(ElementType type, uint64_t bits);
[[nodiscard]] std::string show_double(double value);

}  // namespace tile
