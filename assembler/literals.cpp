// Bits of literals (spec/text.md, "Numbers" and "Constants").
#include "assembler/literals.h"


#include "vm/base/numeric.h"

namespace tile {
namespace {

constexpr unsigned kTf32Shift = 13;  // tf32 is stored as the f32 that it is the upper part of

int digit_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

std::optional<uint64_t> magnitude(Tok kind, std::string_view digits) {
  const uint64_t base = kind == Tok::Hex ? 16 : 10;
  if (kind == Tok::Hex) digits.remove_prefix(2);
  uint64_t value = 0;
  for (char c : digits)
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit_value(c)), &value))
      return std::nullopt;
  return value;
}

Literal failed(std::string error, std::string help = {}) {
  return {0, std::move(error), std::move(help)};
}

Literal int_bits(ElementType type, Tok kind, std::string_view digits, bool negative) {
  const std::string name(info(type).name);
  if (kind == Tok::Float) return failed("is not an integer, expected a value of " + name);
  const unsigned width = info(type).bits;
  const std::optional<int64_t> value = int_literal(kind, digits, negative);
  const int64_t low = width == 64 ? INT64_MIN : -(int64_t{1} << (width - 1));
  const int64_t high = width == 64 ? INT64_MAX : (int64_t{1} << width) - 1;
  if (!value || *value < low || *value > high)
    return failed("does not fit " + name + ", expected " + std::to_string(low) + " to " + std::to_string(high));
  if (type == ElementType::I1) return {*value != 0 ? uint64_t{1} : uint64_t{0}, {}, {}};
  const uint64_t bits = static_cast<uint64_t>(*value);
  return {width == 64 ? bits : bits & ((uint64_t{1} << width) - 1), {}, {}};
}

Literal float_bits(ElementType type, Tok kind, std::string_view digits, bool negative) {
  const std::string name(info(type).name);
  if (kind == Tok::Int) {
    return failed("is an integer, expected a number with a point or hexadecimal bits for " + name,
                  "write " + std::string(negative ? "-" : "") + std::string(digits) + ".0");
  }
  if (kind == Tok::Hex) {
    if (negative) return failed("has a minus sign before the bits of a float, expected bits that include the sign");
    const std::optional<uint64_t> bits = magnitude(kind, digits);
    const unsigned width = info(type).bits;
    if (!bits || (width < 64 && *bits >> width != 0))
      return failed("has more than the " + std::to_string(width) + " bits of " + name);
    return {type == ElementType::TF32 ? *bits << kTf32Shift : *bits, {}, {}};
  }
  const std::optional<double> value = parse_f64(digits);
  if (!value) return failed("is not a number");
  return {encode(type, negative ? -*value : *value), {}, {}};
}

}  // namespace

std::optional<int64_t> int_literal(Tok kind, std::string_view digits, bool negative) {
  const std::optional<uint64_t> value = magnitude(kind, digits);
  constexpr uint64_t lowest = uint64_t{1} << 63;
  if (!value || *value > lowest || (*value == lowest && !negative)) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - *value : *value);
}

Literal number_literal(ElementType type, Tok kind, std::string_view digits, bool negative) {
  return info(type).is_int ? int_bits(type, kind, digits, negative) : float_bits(type, kind, digits, negative);
}

void append_element(std::string& bytes, ElementType type, uint64_t bits) {
  char little[8];
  for (size_t i = 0; i < 8; ++i) little[i] = static_cast<char>(bits >> (8 * i) & 0xFF);
  bytes.append(little, info(type).storage);
}

std::string blob_elements(std::string_view text, ElementType type, int64_t count, std::string& error) {
  error.clear();
  if (text.size() < 4 || text.substr(0, 2) != "0x" || text.size() % 2 != 0) {
    error = "the string is no list of bytes, expected \"0x\" and pairs of hexadecimal digits";
    return {};
  }
  text.remove_prefix(2);
  std::string raw;
  raw.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    if (!is_hex(text[i]) || !is_hex(text[i + 1])) {
      error = "the string is no list of bytes, expected \"0x\" and pairs of hexadecimal digits";
      return {};
    }
    raw += static_cast<char>(digit_value(text[i]) << 4 | digit_value(text[i + 1]));
  }
  // In a list of bytes tf32 takes as many bytes as its 19 bits need, everything else what it takes in a tile.
  const bool packed_tf32 = type == ElementType::TF32;
  const size_t size = packed_tf32 ? 3 : info(type).storage;
  const size_t elements = raw.size() / size;
  if (raw.size() % size != 0 || (elements != 1 && static_cast<int64_t>(elements) != count)) {
    error = "the string holds " + std::to_string(raw.size()) + " bytes, expected " + std::to_string(size) +
            " for each of " + std::to_string(count) + " elements";
    return {};
  }
  std::string bytes;
  bytes.reserve(elements * info(type).storage);
  for (size_t i = 0; i < elements; ++i) {
    uint64_t bits = 0;
    for (size_t k = 0; k < size; ++k) bits |= uint64_t{static_cast<uint8_t>(raw[i * size + k])} << (8 * k);
    if (type == ElementType::I1) {
      bits = bits != 0;
    } else if (const unsigned width = info(type).bits; width < 64 && bits >> width != 0) {
      error = "element " + std::to_string(i) + " has more than the " + std::to_string(width) + " bits of " +
              std::string(info(type).name);
      return {};
    }
    append_element(bytes, type, packed_tf32 ? bits << kTf32Shift : bits);
  }
  return bytes;
}

}  // namespace tile
