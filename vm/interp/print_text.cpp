// Conversions follow C printf; a tile prints as nested brackets with the conversion applied to each element.
#include "vm/interp/print_text.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "vm/base/numeric.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

template <class... A>
std::string formatted(const std::string& spec, A... a) {
  char buffer[512];
  const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), a...);
  return n < 0 ? std::string() : std::string(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
}

// Flags, width and precision of a conversion, without its length modifiers; bounded so that no field can be huge.
std::string flags_of(const std::string& spec) {
  std::string out = "%";
  int digits = 0;
  for (size_t k = 1; k + 1 < spec.size(); ++k) {
    const char c = spec[k];
    const bool digit = c >= '0' && c <= '9';
    if (digit && ++digits > 2) continue;
    if (!digit) digits = 0;
    if (digit || c == '-' || c == '+' || c == ' ' || c == '#' || c == '.') out += c;
  }
  return out;
}

std::string element_text(const std::string& spec, ElementType e, uint64_t bits) {
  const char conversion = spec.back();
  const std::string flags = flags_of(spec);
  const ElementInfo& t = info(e);
  const bool wants_float = std::string_view("eEfFgGaA").find(conversion) != std::string_view::npos;
  if (t.is_float) {
    const double value = decode(e, bits);
    if (wants_float) return formatted(flags + conversion, value);
    return formatted(flags + "g", value);  // a mismatched conversion has no defined output: show the value
  }
  // Narrow integers are promoted to 32 bits with their sign, as the language's printing does; i1 prints 0 or 1.
  const int64_t value = e == ElementType::I1 || e == ElementType::Ptr ? static_cast<int64_t>(bits) : sign_extend(bits, t.bits);
  if (wants_float) return formatted(flags + conversion, static_cast<double>(value));
  switch (conversion) {
    case 'd': case 'i': return formatted(flags + PRId64, value);
    case 'c': return formatted(flags + "c", static_cast<int>(value));
    case 'p': return formatted("0x%" PRIx64, static_cast<uint64_t>(bits));
    case 's': case 'S': case 'C': case 'n': return formatted(flags + PRId64, value);  // would fault on a number: show it instead
    default: {
      const uint64_t raw = t.bits > 32 ? bits : static_cast<uint32_t>(value);
      const std::string wide = conversion == 'u' ? PRIu64 : conversion == 'o' ? PRIo64 : conversion == 'X' ? PRIX64 : PRIx64;
      return formatted(flags + wide, raw);
    }
  }
}

void tile_text(std::string& out, const std::string& spec, const PrintValue& a, size_t dim, size_t& at) {
  if (dim == a.shape.size()) {
    out += element_text(spec, a.element, read_bits(a.data, info(a.element).storage, at++));
    return;
  }
  out += "[";
  for (int64_t k = 0; k < a.shape[dim]; ++k) {
    if (k > 0) out += ", ";
    tile_text(out, spec, a, dim + 1, at);
  }
  out += "]";
}

}  // namespace

std::vector<PrintPiece> parse_print_format(std::string_view str) {
  std::vector<PrintPiece> pieces;
  constexpr std::string_view kEnds = "diuoxXeEfFgGaAcsSpn%";
  std::string text;
  int arg = 0;
  for (size_t k = 0; k < str.size();) {
    if (str[k] != '%') {
      text += str[k++];
      continue;
    }
    const size_t end = str.find_first_of(kEnds, k + 1);
    if (end == k + 1 && str[end] == '%') {
      text += '%';
    } else {
      if (!text.empty()) pieces.push_back({text, -1});
      text.clear();
      pieces.push_back({std::string(str.substr(k, end - k + 1)), arg++});
      if (str[end] == '%') {  // a percent sign that ends a conversion also starts the next one
        k = end;
        continue;
      }
    }
    k = end + 1;
  }
  if (!text.empty()) pieces.push_back({text, -1});
  return pieces;
}

std::string print_text(std::span<const PrintPiece> pieces, std::span<const PrintValue> values) {
  std::string out;
  for (const PrintPiece& piece : pieces) {
    if (piece.arg < 0) {
      out += piece.text;
    } else if (static_cast<size_t>(piece.arg) < values.size()) {
      size_t at = 0;
      tile_text(out, piece.text, values[static_cast<size_t>(piece.arg)], 0, at);
    }
  }
  return out;
}

}  // namespace tile
