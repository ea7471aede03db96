// Strings, numbers, constants and attribute values as text.
#include "assembler/printer_values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "vm/base/numeric.h"

namespace tile {
namespace {

constexpr int kMaxAttrDepth = 64;           // deeper values print as `...`; readers refuse them long before
constexpr size_t kMaxListedElements = 100;  // larger constants print as a string of hexadecimal bytes
constexpr char kHex[] = "0123456789ABCDEF";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_bare_id(std::string_view s) {
  if (s.empty() || !is_letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; });
}

int64_t sign_extended(uint64_t bits, unsigned width) {
  const unsigned shift = 64 - width;
  return static_cast<int64_t>(bits << shift) >> shift;
}

std::string hex_text(ElementType t, uint64_t bits) {
  if (t == ElementType::TF32) bits >>= 13;
  if (t == ElementType::F4E2M1FN) bits &= 0xF;
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
  std::transform(buffer, end, buffer, [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  return "0x" + std::string(buffer, end);
}

bool reads_back(ElementType t, uint64_t bits, const std::string& text) {
  const std::optional<double> value = parse_f64(text);
  return value && encode(t, *value) == bits;
}

// A number too long for the machine, least significant part first. Made for m * 5^n and m * 2^n up to the range of f64.
struct Long {
  std::vector<uint32_t> parts;

  explicit Long(uint64_t x) : parts{static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)} {}
  void multiply(uint32_t factor) {
    uint64_t carry = 0;
    for (uint32_t& p : parts) {
      carry += uint64_t{p} * factor;
      p = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) parts.push_back(static_cast<uint32_t>(carry));
  }
  [[nodiscard]] int bits() const {
    size_t n = parts.size();
    while (n > 0 && parts[n - 1] == 0) --n;
    return n == 0 ? 0 : static_cast<int>(n * 32) - std::countl_zero(parts[n - 1]);
  }
  /// Decimal digits, most significant first; consumes the number.
  [[nodiscard]] std::string digits() {
    std::string out;
    for (bool more = true; more;) {
      uint64_t rest = 0;
      more = false;
      for (size_t k = parts.size(); k-- > 0;) {
        rest = rest << 32 | parts[k];
        parts[k] = static_cast<uint32_t>(rest / 1'000'000'000);
        rest %= 1'000'000'000;
        more = more || parts[k] != 0;
      }
      for (int d = 0; d < 9; ++d, rest /= 10) out += static_cast<char>('0' + rest % 10);
    }
    while (out.size() > 1 && out.back() == '0') out.pop_back();
    std::reverse(out.begin(), out.end());
    return out;
  }
};

// |value| = d.ddd * 10^exponent with the digits, which end in none but a lone zero.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

// `x` in about `precision` digits, as NVIDIA's printer finds them: the exact digits are first cut where the bits of
// `precision` digits end, which may leave fewer digits than a rounding needs, and then rounded half up.
Decimal decimal(double x, int precision) {
  if (x == 0) return {"0", 0};
  int exponent;
  auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
  exponent -= 53;
  const int zeros = std::countr_zero(mantissa);
  mantissa >>= zeros;
  exponent += zeros;
  Long exact(mantissa);
  for (int k = 0; k < std::abs(exponent); ++k) exact.multiply(exponent > 0 ? 2 : 5);
  int last = std::min(exponent, 0);  // decimal exponent of the last digit
  const int spare = exact.bits() - (precision * 196 + 58) / 59;
  const int cut = spare > 0 ? spare * 59 / 196 : 0;
  std::string digits = exact.digits();
  digits.resize(digits.size() - std::min(static_cast<size_t>(cut), digits.size() - 1));
  last += cut;

  if (digits.size() > static_cast<size_t>(precision)) {
    const bool up = digits[static_cast<size_t>(precision)] >= '5';
    last += static_cast<int>(digits.size()) - precision;
    digits.resize(static_cast<size_t>(precision));
    if (up) {
      while (!digits.empty() && digits.back() == '9') {
        digits.pop_back();
        ++last;
      }
      if (digits.empty()) {
        digits = "1";
      } else {
        ++digits.back();
      }
    }
  }
  while (digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    ++last;
  }
  return {digits, last + static_cast<int>(digits.size()) - 1};
}

// The forms and their choice are those of NVIDIA's printer: six significant digits and a zero where that is exact
// enough; else as many digits as the format can need, plain if the number is neither long nor small; else the bits.
std::string float_text(ElementType t, uint64_t bits) {
  const double x = decode(t, bits);
  if (!std::isfinite(x)) return hex_text(t, bits);
  const std::string sign = std::signbit(x) ? "-" : "";
  {
    constexpr int kShort = 6;
    const auto [digits, first] = decimal(x, kShort);
    char exponent[16];
    std::snprintf(exponent, sizeof exponent, "e%c%02d", first < 0 ? '-' : '+', std::abs(first));
    const std::string text =
        sign + digits[0] + "." + digits.substr(1) + std::string(kShort + 1 - digits.size(), '0') + exponent;
    if (reads_back(t, bits, text)) return text;
  }
  constexpr int kPadding = 3;  // zeros that may stand between the point and the digits
  const int precision = 2 + (float_format(t).mantissa_bits + 1) * 59 / 196;
  const auto [digits, first] = decimal(x, precision);
  const int count = static_cast<int>(digits.size());
  const int last = first - (count - 1);  // decimal exponent of the last digit
  std::string text = sign;
  if (last >= 0 && last <= kPadding && count + last <= precision) return hex_text(t, bits);  // no point in it
  if (last < 0 && first >= 0) {
    text += digits.substr(0, static_cast<size_t>(first) + 1) + "." + digits.substr(static_cast<size_t>(first) + 1);
  } else if (last < 0 && -first <= kPadding) {
    text += "0." + std::string(static_cast<size_t>(-first - 1), '0') + digits;
  } else {
    text += digits.substr(0, 1) + "." + (count == 1 ? "0" : digits.substr(1)) + "E" + (first < 0 ? "-" : "+") +
            std::to_string(std::abs(first));
  }
  return reads_back(t, bits, text) ? text : hex_text(t, bits);
}

uint64_t element_bits(const std::string& bytes, size_t index, size_t size) {
  uint64_t bits = 0;
  for (size_t k = 0; k < size; ++k)
    bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[index * size + k])) << (8 * k);
  return bits;
}

}  // namespace

void put_string(std::string& out, std::string_view bytes) {
  out += '"';
  for (const char c : bytes) {
    const auto u = static_cast<uint8_t>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '"' || u < 0x20 || u > 0x7E) {
      out += '\\';
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void put_symbol(std::string& out, std::string_view name) {
  out += '@';
  if (is_bare_id(name)) {
    out += name;
  } else {
    put_string(out, name);
  }
}

void put_key(std::string& out, std::string_view key) {
  if (is_bare_id(key)) {
    out += key;
  } else {
    put_string(out, key);
  }
}

std::string element_text(ElementType t, uint64_t bits) {
  if (t == ElementType::I1) return bits & 1 ? "true" : "false";
  if (info(t).is_float) return float_text(t, bits);
  return std::to_string(sign_extended(bits, info(t).bits));
}

void AttrWriter::ints(const Attr& a, bool as_bool) {
  for (size_t i = 0; i < a.ints.size() && !full(); ++i) {
    if (i) out_ += ", ";
    out_ += as_bool ? (a.ints[i] ? "true" : "false") : std::to_string(a.ints[i]);
  }
}

bool AttrWriter::predicate(const Attr& a) {
  const auto bound = [&](size_t i) {
    return a.flags >> i & 1 && i < a.ints.size() ? std::to_string(a.ints[i]) : std::string("?");
  };
  switch (a.tag) {
    case AttrTag::DivBy:
      out_ += "div_by<" + std::to_string(static_cast<int64_t>(a.bits));
      if (a.ints.size() >= 2) out_ += ", every " + std::to_string(a.ints[0]) + " along " + std::to_string(a.ints[1]);
      out_ += ">";
      return true;
    case AttrTag::SameElements:
      out_ += "same_elements<[";
      ints(a, false);
      out_ += "]>";
      return true;
    case AttrTag::Bounded:
      out_ += "bounded<" + bound(0) + ", " + bound(1) + ">";
      return true;
    default:
      return false;
  }
}

// Numbers carry their type except where the text gives it to a bare number: i64, decimal f64, true and false. Integers
// of hints never carry it: writers use i32 and i64 there and mean the same.
void AttrWriter::typed_number(const Attr& a) {
  const ElementType t = a.type < m_.types.size() ? m_.types.get(a.type).element : ElementType::I64;
  const bool fits = a.tag == AttrTag::Float ? info(t).is_float : info(t).is_int;
  if (!fits) {
    out_ += std::to_string(static_cast<int64_t>(a.bits));
    return;
  }
  const std::string number = element_text(t, a.bits);
  out_ += number;
  const bool bare_int = t == ElementType::I64 || (in_hints_ && a.tag == AttrTag::Integer);
  const bool bare = bare_int || t == ElementType::I1 || (t == ElementType::F64 && !number.starts_with("0x"));
  if (!bare) out_ += " : " + std::string(info(t).name);
}

// Attribute values need the prefix on the types of the language, not on element types.
void AttrWriter::long_type(TypeId id) {
  const bool plain =
      id < m_.types.size() && (m_.types.get(id).kind == TypeKind::Element ||
                               m_.types.get(id).kind == TypeKind::Function || m_.types.get(id).kind == TypeKind::Token);
  if (!plain) out_ += "!cuda_tile.";
  out_ += m_.types.print(id);
}

void AttrWriter::in_format(AttrId id) {
  const Attr* a = find(id);
  if (!a) {
    out_ += "unit";
  } else if (a->tag == AttrTag::Dense) {
    dense(*a);
  } else if (a->tag == AttrTag::I32Array || a->tag == AttrTag::BoolArray) {
    out_ += '[';
    ints(*a, a->tag == AttrTag::BoolArray);
    out_ += ']';
  } else if (!predicate(*a)) {
    nested(id);
  }
}

void AttrWriter::nested(AttrId id, int depth) {
  const Attr* a = find(id);
  if (!a) {
    out_ += "unit";
    return;
  }
  if (full() || depth > kMaxAttrDepth) {
    out_ += "...";
    return;
  }
  switch (a->tag) {
    case AttrTag::Integer:
    case AttrTag::Float:
      typed_number(*a);
      break;
    case AttrTag::Bool:
      out_ += a->bits ? "true" : "false";
      break;
    case AttrTag::Type:
      long_type(a->type);
      break;
    case AttrTag::String:
      put_string(out_, text(a->string));
      break;
    case AttrTag::Array:
      out_ += '[';
      for (size_t i = 0; i < a->items.size() && !full(); ++i) {
        if (i) out_ += ", ";
        nested(a->items[i], depth + 1);
      }
      out_ += ']';
      break;
    case AttrTag::Dense:
      out_ += "dense<";
      dense_values(*a, m_.types.is_tile(a->type) ? m_.types.get(a->type).element : ElementType::I8);
      out_ += "> : ";
      long_type(a->type);
      break;
    case AttrTag::DivBy:
    case AttrTag::SameElements:
    case AttrTag::Bounded:
      out_ += "#cuda_tile.";
      (void)predicate(*a);
      break;
    case AttrTag::Dictionary:
      out_ += '{';
      entries(*a, true, depth + 1);
      out_ += '}';
      break;
    case AttrTag::I32Array:
    case AttrTag::BoolArray:
      out_ += a->tag == AttrTag::I32Array ? "array<i32" : "array<i1";
      if (!a->ints.empty()) out_ += ": ";
      ints(*a, a->tag == AttrTag::BoolArray);
      out_ += '>';
      break;
    case AttrTag::Opaque:
      out_ += text(a->string);
      break;
  }
}

void AttrWriter::entries(const Attr& dictionary, bool first, int depth) {
  std::vector<std::pair<std::string_view, AttrId>> sorted;
  sorted.reserve(dictionary.entries.size());
  for (const auto& [key, value] : dictionary.entries) sorted.emplace_back(text(key), value);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, value] : sorted) {
    if (full()) return;
    if (!first) out_ += ", ";
    first = false;
    put_key(out_, key);
    if (value == kNone) continue;
    out_ += " = ";
    nested(value, depth);
  }
}

void AttrWriter::hints(AttrId id) {
  const Attr* a = find(id);
  out_ += '<';
  in_hints_ = true;
  if (a && a->tag == AttrTag::Dictionary) entries(*a);
  in_hints_ = false;
  out_ += '>';
}

void AttrWriter::dense(const Attr& a) {
  const ElementType t = m_.types.is_tile(a.type) ? m_.types.get(a.type).element : ElementType::I8;
  out_ += "<" + (m_.types.is_tile(a.type) ? m_.types.print(m_.types.get(a.type).inner) : "i8") + ": ";
  dense_values(a, t);
  out_ += "> : " + m_.types.print(a.type);
}

void AttrWriter::dense_values(const Attr& a, ElementType t) {
  const size_t size = info(t).storage;
  const size_t count = a.bytes.size() / size;
  const bool whole = m_.types.is_tile(a.type) && count > 0 && count * size == a.bytes.size();
  // Equal elements print as one: every element equals the one before it.
  if (whole && std::equal(a.bytes.begin() + static_cast<std::ptrdiff_t>(size), a.bytes.end(), a.bytes.begin())) {
    out_ += element_text(t, element_bits(a.bytes, 0, size));
    return;
  }
  const bool fits = whole && m_.types.element_count(a.type) == static_cast<int64_t>(count);
  if (!fits || count > kMaxListedElements) {
    if (elide_large) {
      out_ += "...";
    } else {
      blob(a, t);
    }
    return;
  }
  const auto shape = m_.types.shape_of(a.type);
  for (size_t e = 0; e < count; ++e) {
    if (e) out_ += ", ";
    size_t opened = 0,
           block = 1;  // a bracket opens at each multiple of the elements of a dimension and those behind it
    for (size_t d = shape.size(); d-- > 0 && e % (block *= static_cast<size_t>(shape[d])) == 0;) ++opened;
    out_.append(opened, '[');
    out_ += element_text(t, element_bits(a.bytes, e, size));
    size_t closed = 0;
    block = 1;
    for (size_t d = shape.size(); d-- > 0 && (e + 1) % (block *= static_cast<size_t>(shape[d])) == 0;) ++closed;
    out_.append(closed, ']');
  }
}

// Elements take as many bytes as their width needs: tf32 three, without the low bits that its storage form adds.
void AttrWriter::blob(const Attr& a, ElementType t) {
  const size_t stored = info(t).storage, width = (info(t).bits + 7u) / 8;
  out_ += "\"0x";
  const auto put = [&](uint8_t u) {
    out_ += kHex[u >> 4];
    out_ += kHex[u & 15];
  };
  if (a.bytes.size() % stored != 0) {
    for (const char c : a.bytes) put(static_cast<uint8_t>(c));
  } else {
    for (size_t e = 0; e < a.bytes.size() / stored && !full(); ++e) {
      uint64_t bits = element_bits(a.bytes, e, stored);
      if (t == ElementType::TF32) bits >>= 13;
      for (size_t k = 0; k < width; ++k) put(static_cast<uint8_t>(bits >> (8 * k)));
    }
  }
  out_ += '"';
}

}  // namespace tile
