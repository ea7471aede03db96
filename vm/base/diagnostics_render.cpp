// Diagnostics as text for people: place, message, the source line with carets, notes and help. Nothing is printed here.
// All bytes that come from input (names, lines, messages) are escaped: input can neither steer a terminal nor forge
// lines.
#include <algorithm>
#include <cstdio>

#include "vm/base/diagnostic_limits.h"
#include "vm/base/diagnostics.h"
#include "vm/base/escape_text.h"

namespace tile {
namespace {

constexpr size_t kWindow = 110;  // cells of a source line that are shown
constexpr size_t kLead = 50;     // of these, cells before the marked place when the line is cut there
constexpr size_t kTabStop = 4;

// One piece of displayed text: `bytes` of input shown as `text`, `cells` wide.
struct Glyph {
  size_t bytes;
  std::string text;
  size_t cells;
};

// Length of the well-formed UTF-8 sequence at the start of `s` (RFC 3629), or 0. `value` receives the code point.
size_t utf8_length(std::string_view s, uint32_t& value) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return value = first, 1;
  const size_t length = first >= 0xF0 && first <= 0xF4 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || s.size() < length) return 0;
  value = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  const uint32_t smallest = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  return value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF) ? 0 : length;
}

// Control characters, and those that make a terminal show text in another order than it has (Unicode TR 36).
bool is_hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

// The glyph at the start of `s`, which is not empty. Tabs reach to the next stop after `column`; with column == npos
// they are escaped.
Glyph glyph_at(std::string_view s, size_t column) {
  char escaped[16];
  uint32_t c = 0;
  const size_t length = utf8_length(s, c);
  if (length == 0) {
    std::snprintf(escaped, sizeof escaped, "\\x%02X", static_cast<unsigned>(static_cast<uint8_t>(s[0])));
    return {1, escaped, 4};
  }
  if (c == '\t' && column != std::string::npos) {
    const size_t cells = kTabStop - column % kTabStop;
    return {1, std::string(cells, ' '), cells};
  }
  if (is_hidden(c)) {
    const char* named = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : nullptr;
    if (named) return {1, named, 2};
    std::snprintf(escaped, sizeof escaped, c < 0x80 ? "\\x%02X" : "\\u{%04X}", static_cast<unsigned>(c));
    const std::string text = escaped;
    return {length, text, text.size()};
  }
  return {length, std::string(s.substr(0, length)), 1};
}

}  // namespace

std::string escape_hidden(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const Glyph glyph = glyph_at(s, std::string::npos);
    out += glyph.text;
    s.remove_prefix(glyph.bytes);
  }
  return out;
}

namespace {

struct Paint {
  bool on;
  std::string operator()(const char* code, const std::string& text) const {
    return on && !text.empty() ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
  }
};
constexpr const char* kBold = "1";
constexpr const char* kRed = "1;31";
constexpr const char* kMagenta = "1;35";
constexpr const char* kCyan = "1;36";
constexpr const char* kGreen = "1;32";

// `line` and, below it, carets under `length` bytes from `begin` (at least one caret). Long lines are cut to a window
// around `begin`; the work depends on the window, not on the length of the line.
std::string snippet(const std::string& margin, std::string_view line, size_t begin, size_t length, const Paint& paint) {
  begin = std::min(begin, line.size());
  const size_t end = begin + std::min(length, line.size() - begin);
  std::string shown, marks;
  size_t first = begin > kWindow ? begin - kWindow : 0;
  // Start at a character, not inside one.
  for (int i = 0; i < 3 && first > 0 && (static_cast<uint8_t>(line[first]) & 0xC0) == 0x80; ++i) --first;
  size_t lead = 0;
  for (size_t at = first; at < begin;) {
    const Glyph glyph = glyph_at(line.substr(at, 4), 0);
    lead += glyph.cells;
    at += glyph.bytes;
  }
  if (first > 0 || lead > kWindow - kLead) {
    while (lead > kLead) {
      const Glyph glyph = glyph_at(line.substr(first, 4), 0);
      lead -= glyph.cells;
      first += glyph.bytes;
    }
  }
  if (first > 0) {
    shown = "...";
    marks = "   ";
  }
  size_t column = shown.size(), carets = 0;
  size_t at = first;
  while (at < line.size() && column < kWindow) {
    const Glyph glyph = glyph_at(line.substr(at, 4), column);
    const bool marked = at + glyph.bytes > begin && at < std::max(end, begin + 1);
    shown += glyph.text;
    if (marked) {
      marks += std::string(glyph.cells, '^');
      carets += glyph.cells;
    } else if (carets == 0) {
      marks += std::string(glyph.cells, ' ');
    }
    column += glyph.cells;
    at += glyph.bytes;
  }
  if (at < line.size()) shown += "...";
  if (carets == 0) marks += '^';  // the place is the end of the line
  while (shown.ends_with(' ')) shown.pop_back();
  const std::string blank(margin.size(), ' ');
  return margin + " |" + (shown.empty() ? "" : " " + shown) + "\n" + blank + " | " + paint(kGreen, marks) + "\n";
}

// Where operand `index` stands in a printed instruction: the index-th value name behind the results. The order of text
// and operands agrees except in operations with a body, which are left unmarked.
bool find_operand(std::string_view printed, std::string_view op, int64_t index, size_t& begin, size_t& length) {
  if (index < 0 || op == "for" || op == "loop" || op == "reduce" || op == "scan") return false;
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$' || c == '-';
  };
  size_t at = 0;
  if (printed.starts_with('%')) {
    at = printed.find(" = ");
    if (at == std::string_view::npos) return false;
  }
  for (int64_t seen = 0; (at = printed.find('%', at)) != std::string_view::npos; ++seen) {
    size_t stop = at + 1;
    while (stop < printed.size() && is_name(printed[stop])) ++stop;
    if (stop < printed.size() && printed[stop] == '#') {  // one of several results: %a#1
      ++stop;
      while (stop < printed.size() && is_name(printed[stop])) ++stop;
    }
    if (seen == index) {
      begin = at;
      length = stop - at;
      return true;
    }
    at = stop;
  }
  return false;
}

std::string_view first_line(std::string_view s) {
  return s.substr(0, s.find('\n'));
}

bool in_text(const Place& p) {
  return p.source && p.span.valid();
}

void append_part(std::string& out, const std::string& part, const char* separator = ": ") {
  if (!out.empty() && !part.empty()) out += separator;
  out += part;
}

// "file:line:col", "k.tilebc: @softmax inst 17 (max_f)", "k.tilebc: byte 24", "argument 3 (%c)", or what is known of
// it.
std::string place_text(const Place& p, bool operand_marked) {
  std::string out = escape_hidden(p.source ? p.source->name() : p.file);
  if (in_text(p)) {
    const auto [line, col] = p.source->line_col(p.span.begin);
    out += ":" + std::to_string(line) + ":" + std::to_string(col);
  } else {
    std::string where;
    if (!p.function.empty()) where = "@" + escape_hidden(p.function);
    if (p.instruction >= 0) append_part(where, "inst " + std::to_string(p.instruction), " ");
    if (!p.op.empty()) append_part(where, "(" + escape_hidden(p.op) + ")", " ");
    if (!operand_marked && (p.operand >= 0 || !p.operand_name.empty())) {
      std::string operand = "operand";
      if (p.operand >= 0) operand += " " + std::to_string(p.operand);
      if (!p.operand_name.empty()) operand += " (" + escape_hidden(p.operand_name) + ")";
      append_part(where, operand, " ");
    }
    if (p.byte_offset >= 0) append_part(where, "byte " + std::to_string(p.byte_offset), ", ");
    append_part(out, where);
  }
  append_part(out, escape_hidden(p.argument));
  return out;
}

std::string headline(const std::string& place, const char* word, const char* color, const std::string& message,
                     const Paint& paint) {
  std::string out = paint(kBold, place.empty() ? "" : place + ":");
  append_part(out, paint(color, std::string(word) + ":"), " ");
  return out + " " + escape_hidden(message);
}

std::string render_place(const Place& p, const Paint& paint) {
  if (in_text(p)) {
    const auto [line, col] = p.source->line_col(p.span.begin);
    std::string number = std::to_string(line);
    if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
    return snippet(number, p.source->line(line), col - 1, p.span.length, paint);
  }
  if (p.printed.empty()) return {};
  const std::string_view printed = first_line(p.printed);
  size_t begin = 0, length = 0;
  const bool marked = find_operand(printed, p.op, p.operand, begin, length);
  std::string text = snippet("     ", printed, begin, length, paint);
  if (!marked) text.erase(text.find('\n') + 1);
  return text;
}

}  // namespace

std::string render(const Diagnostic& d, bool color) {
  const Paint paint{color};
  const CodeInfo& info = code_info(d.code);
  const bool warning = info.cls == FailureClass::Warning;
  size_t begin = 0, length = 0;
  const bool marked = find_operand(first_line(d.place.printed), d.place.op, d.place.operand, begin, length);

  std::string out =
      headline(place_text(d.place, marked), warning ? "warning" : "error", warning ? kMagenta : kRed, d.message, paint);
  out += std::string(" [") + info.name + "]\n";
  out += render_place(d.place, paint);
  if (!d.place.debug_loc.empty()) {
    out += headline(escape_hidden(d.place.debug_loc), "note", kCyan, "the instruction was made from here", paint) + "\n";
  }
  for (const Note& note : d.notes) {
    out += headline(place_text(note.place, false), "note", kCyan, note.message, paint) + "\n";
  }
  if (!d.help.empty()) out += headline("", "help", kCyan, d.help, paint) + "\n";
  return out;
}

std::string render(const Diagnostics& d, bool color) {
  std::string out;
  size_t shown_errors = 0, shown = 0;
  for (const Diagnostic& one : d.all()) {
    if (out.size() >= kMaxRenderedDiagnostics) break;
    const std::string text = render(one, color);
    // Once, instead of in ever larger steps, which would take twice as much in between.
    if (out.size() + text.size() > out.capacity() && out.size() > kMaxRenderedDiagnostics / 8)
      out.reserve(kMaxRenderedDiagnostics + 2 * text.size());
    out += text;
    ++shown;
    if (code_info(one.code).cls != FailureClass::Warning) ++shown_errors;
  }
  std::string rest;
  if (d.error_count() > shown_errors) {
    rest = shown_errors == 1 ? "only the first error is shown" : "only the first " + std::to_string(shown_errors) + " errors are shown";
  } else if (const size_t more = d.warning_count() - (shown - shown_errors); more > 0) {
    rest = std::to_string(more) + (more == 1 ? " more warning is not shown" : " more warnings are not shown");
  }
  if (!rest.empty()) out += headline("", "note", kCyan, rest, Paint{color}) + "\n";
  return out;
}

}  // namespace tile
