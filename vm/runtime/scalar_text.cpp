// Text to bits and back for every element type, without locale and without exceptions.
#include "vm/runtime/scalar_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "vm/base/numeric.h"

namespace tile {
namespace {

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}

template <class T>
std::optional<T> parse_all(std::string_view text) {
  text = without_plus(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int width(ElementType type) {
  return type == ElementType::TF32 ? 32 : info(type).bits;
}

std::string a_type(ElementType type) {
  return std::string(info(type).name);
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_all<int64_t>(text);
}
std::optional<uint64_t> parse_unsigned(std::string_view text) {
  return parse_all<uint64_t>(text);
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  // 1,100 characters hold every double exactly; brackets are those of nan(...), whose inside can be anything.
  if (text.size() > 1100 || text.find('(') != std::string_view::npos) return std::nullopt;
  const auto value = parse_f64(text);
  const bool written = text.find_first_of("iI") != std::string_view::npos;
  if (value && std::isinf(*value) && !written) return std::nullopt;
  return value;
}

std::optional<ElementType> element_type_named(std::string_view name) {
  for (size_t i = 0; i < kElementTypes; ++i) {
    if (kElementInfo[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::string suggest_type(std::string_view name) {
  static constexpr struct {
    std::string_view foreign, ours;
  } kForeign[] = {
      {"u8", "i8"},
      {"u16", "i16"},
      {"u32", "i32"},
      {"u64", "i64"},
      {"s8", "i8"},
      {"s16", "i16"},
      {"s32", "i32"},
      {"s64", "i64"},
      {"uint8", "i8"},
      {"uint16", "i16"},
      {"uint32", "i32"},
      {"uint64", "i64"},
      {"int8", "i8"},
      {"int16", "i16"},
      {"int32", "i32"},
      {"int64", "i64"},
      {"int", "i32"},
      {"long", "i64"},
      {"bool", "i1"},
      {"half", "f16"},
      {"float", "f32"},
      {"double", "f64"},
      {"float16", "f16"},
      {"float32", "f32"},
      {"float64", "f64"},
      {"bfloat16", "bf16"},
      {"float8_e4m3fn", "f8E4M3FN"},
      {"float8_e5m2", "f8E5M2"},
      {"float8_e8m0fnu", "f8E8M0FNU"},
      {"float4_e2m1fn", "f4E2M1FN"},
      {"f8e4m3", "f8E4M3FN"},
      {"e4m3", "f8E4M3FN"},
      {"f8e5m2", "f8E5M2"},
      {"e5m2", "f8E5M2"},
      {"f8e8m0", "f8E8M0FNU"},
      {"e8m0", "f8E8M0FNU"},
      {"f4e2m1", "f4E2M1FN"},
      {"e2m1", "f4E2M1FN"},
  };
  for (const auto& entry : kForeign) {
    if (entry.foreign == name) return "did you mean " + std::string(entry.ours) + "?";
  }
  std::vector<std::string_view> names;
  for (const auto& element : kElementInfo) names.push_back(element.name);
  const std::string near = nearest(name, names);
  return near.empty() ? "" : "did you mean " + near + "?";
}

Result<uint64_t> parse_scalar(std::string_view text, ElementType type, const Place& place, Diagnostics& diags) {
  auto bad = [&](const std::string& why) {
    return diags.error(Code::E0804, place, "'" + std::string(text.substr(0, 60)) + "' " + why);
  };
  if (type == ElementType::Ptr) return bad("cannot be a pointer");
  const int bits = width(type);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (text.size() > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    const auto value = parse_hex(text);
    if (!value) return bad("is not a hexadecimal number of at most 16 digits");
    if (*value & ~mask) return bad("has more bits than the " + std::to_string(bits) + " of " + a_type(type));
    if (type == ElementType::TF32 && (*value & 0x1FFF))
      return bad("has bits below the 19 of tf32, the upper bits of an f32");
    return *value;
  }
  if (info(type).is_int) {
    if (type == ElementType::I1 && (text == "true" || text == "false")) return uint64_t{text == "true"};
    if (const auto value = parse_int(text); value && *value < 0) {
      if (type == ElementType::I1 || (bits < 64 && *value < -(int64_t{1} << (bits - 1)))) {
        return bad("is too small for " + a_type(type) + ", the smallest is " +
                   std::to_string(type == ElementType::I1 ? 0 : -(int64_t{1} << (bits - 1))));
      }
      return static_cast<uint64_t>(*value) & mask;
    }
    if (const auto value = parse_unsigned(text)) {
      if (*value & ~mask) return bad("is too large for " + a_type(type) + ", the largest is " + std::to_string(mask));
      return *value;
    }
    return bad(type == ElementType::I1
                   ? "is not an i1, expected true, false, 0 or 1"
                   : "is not an integer of 64 bits, expected one such as -5 or 0x1F for " + a_type(type));
  }
  const auto value = parse_double(text);
  if (!value) return bad("is not a number, expected one such as 0.5, -1e3, inf or nan, or bits such as 0x3c00");
  const FloatFormat& format = float_format(type);
  if (std::isfinite(*value)) {
    if (!format.has_sign && (std::signbit(*value) || (type == ElementType::F8E8M0FNU && *value == 0))) {
      return bad("has no form in " + a_type(type) + ", which has " +
                 (type == ElementType::F8E8M0FNU ? "positive numbers only" : "no negative numbers"));
    }
    // What rounds down to the largest number is inside: up to half a unit beyond it.
    const double largest = largest_finite(type);
    if (type != ElementType::F64 && std::fabs(*value) >= largest + spacing(type, largest) / 2) {
      return bad("is too large for " + a_type(type) + ", the largest is " + show_double(largest));
    }
    return finite_bits(type, *value);
  }
  const bool representable = std::isnan(*value) ? type != ElementType::F4E2M1FN : format.has_inf;
  if (!representable) return bad("has no form in " + a_type(type));
  // Types that saturate have infinity in memory all the same.
  if (std::isinf(*value) && type == ElementType::F8E5M2) return uint64_t{std::signbit(*value) ? 0xFCu : 0x7Cu};
  return encode(type, *value);
}

int64_t signed_value(ElementType type, uint64_t bits) {
  const int n = info(type).bits;
  if (n == 1) return static_cast<int64_t>(bits & 1);
  return static_cast<int64_t>(bits << (64 - n)) >> (64 - n);
}

uint64_t finite_bits(ElementType type, double value) {
  if (type == ElementType::F8E8M0FNU) {
    if (!(value > 0x1p-127)) return 0;
    return static_cast<uint64_t>(std::min(std::ilogb(std::min(value, 0x1p127)) + 127, 254));
  }
  if (!float_format(type).has_sign && value <= 0) return 0;
  const double largest = largest_finite(type);
  return encode(type, std::clamp(value, -largest, largest));
}

double largest_finite(ElementType type) {
  return decode(type, float_format(type).max_finite << (type == ElementType::TF32 ? 13 : 0));
}

double spacing(ElementType type, double value) {
  if (!std::isfinite(value)) return 0;
  const FloatFormat& f = float_format(type);
  // f8E8M0FNU has a number for exponent field 0 and no subnormals.
  const int smallest = f.mantissa_bits == 0 ? -f.bias : 1 - f.bias;
  const int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(1.0, exponent - f.mantissa_bits);
}

std::string show_double(double value) {
  if (std::isnan(value)) return "nan";
  char text[64];
  const auto done = std::to_chars(text, text + sizeof text, value);
  return std::string(text, done.ptr);
}

std::string show_value(ElementType type, uint64_t bits) {
  if (type == ElementType::I1) return std::to_string(bits);
  if (info(type).is_int) return std::to_string(signed_value(type, bits));
  if (!info(type).is_float) return show_bits(type, bits);
  const double value = decode(type, bits);
  if (type != ElementType::F32 || !std::isfinite(value)) return show_double(value);
  char text[64];
  const auto done = std::to_chars(text, text + sizeof text, static_cast<float>(value));
  return std::string(text, done.ptr);
}

std::string show_bits(ElementType type, uint64_t bits) {
  const int digits = type == ElementType::I1 ? 2 : std::max(width(type) / 4, 1);
  std::string text = "0x";
  for (int i = digits - 1; i >= 0; --i) text += "0123456789abcdef"[bits >> (4 * i) & 15];
  return text;
}

}  // namespace tile
