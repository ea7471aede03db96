// Tokens of the text form (spec/text.md, "Tokens").
#include "assembler/lexer.h"

#include <array>

namespace tile {
namespace {

enum CharClass : uint8_t {
  kBlank = 1,
  kNewline = 2,
  kDigit = 4,
  kHexDigit = 8,
  kIdStart = 16,
  kId = 32,
  kSuffixStart = 64,
  kSuffix = 128
};

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> c{};
  c[' '] = c['\t'] = c['\r'] = kBlank;
  c['\n'] = kNewline;
  for (int i = '0'; i <= '9'; ++i) c[static_cast<size_t>(i)] = kDigit | kHexDigit | kId | kSuffix;
  for (int i = 0; i < 26; ++i) {
    const uint8_t letter = kIdStart | kId | kSuffixStart | kSuffix;
    c[static_cast<size_t>('a' + i)] = c[static_cast<size_t>('A' + i)] =
        static_cast<uint8_t>(letter | (i < 6 ? kHexDigit : 0));
  }
  c['_'] = kIdStart | kId | kSuffixStart | kSuffix;
  c['$'] = c['.'] = kId | kSuffixStart | kSuffix;
  c['-'] = kSuffixStart | kSuffix;
  return c;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool is(char c, uint8_t classes) {
  return (kClasses[static_cast<uint8_t>(c)] & classes) != 0;
}

int hex_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

}  // namespace

Token Lexer::next() {
  Token t;
  const char* const data = text_.data();
  const uint32_t size = static_cast<uint32_t>(text_.size());
  for (;;) {
    if (at_ >= size) {
      t.begin = size;
      return t;
    }
    const char c = data[at_];
    if (is(c, kBlank)) {
      ++at_;
    } else if (c == '\n') {
      t.first_on_line = true;
      ++at_;
    } else if (c == '/' && at_ + 1 < size && data[at_ + 1] == '/') {
      while (at_ < size && data[at_] != '\n') ++at_;
    } else {
      break;
    }
  }
  t.begin = at_;
  const char c = data[at_];
  if (is(c, kIdStart)) {
    uint32_t end = at_ + 1;
    while (end < size && is(data[end], kId)) ++end;
    t.kind = Tok::BareId;
    t.length = end - at_;
    at_ = end;
    return t;
  }
  const auto sign = [&](Tok kind, uint32_t length) {
    t.kind = kind;
    t.length = length;
    at_ += length;
    return t;
  };
  const char following = at_ + 1 < size ? data[at_ + 1] : '\0';
  switch (c) {
    case '%':
      return name(t, Tok::Value);
    case '#':
      return name(t, Tok::Hash);
    case '!':
      return name(t, Tok::Bang);
    case '^':
      return name(t, Tok::Caret);
    case '@':
      return symbol(t);
    case '"':
      return string(t);
    case '(':
      return sign(Tok::LParen, 1);
    case ')':
      return sign(Tok::RParen, 1);
    case '{':
      return sign(Tok::LBrace, 1);
    case '}':
      return sign(Tok::RBrace, 1);
    case '[':
      return sign(Tok::LBracket, 1);
    case ']':
      return sign(Tok::RBracket, 1);
    case '<':
      return sign(Tok::Less, 1);
    case '>':
      return sign(Tok::Greater, 1);
    case ',':
      return sign(Tok::Comma, 1);
    case ':':
      return following == ':' ? sign(Tok::ColonColon, 2) : sign(Tok::Colon, 1);
    case '=':
      return sign(Tok::Equal, 1);
    case '?':
      return sign(Tok::Question, 1);
    case '*':
      return sign(Tok::Star, 1);
    case '+':
      return sign(Tok::Plus, 1);
    case '-':
      return following == '>' ? sign(Tok::Arrow, 2) : sign(Tok::Minus, 1);
    case '/':
      return sign(Tok::Slash, 1);
    case '|':
      return sign(Tok::Pipe, 1);
    default:
      break;
  }
  if (is(c, kDigit)) return number(t);
  // A run of bytes beyond ASCII is one wrong piece, so that a word in another script gives one error.
  t.kind = Tok::Error;
  t.error = LexError::Character;
  t.length = 1;
  if (static_cast<uint8_t>(c) >= 0x80)
    while (t.end() < size && static_cast<uint8_t>(data[t.end()]) >= 0x80) ++t.length;
  at_ = t.end();
  return t;
}

Token Lexer::number(Token t) {
  const uint32_t size = static_cast<uint32_t>(text_.size());
  uint32_t end = at_;
  const auto digits = [&](uint8_t classes) {
    while (end < size && is(text_[end], classes)) ++end;
  };
  t.kind = Tok::Int;
  if (text_[end] == '0' && end + 2 < size && text_[end + 1] == 'x' && is(text_[end + 2], kHexDigit)) {
    t.kind = Tok::Hex;
    end += 2;
    digits(kHexDigit);
  } else {
    digits(kDigit);
    if (end < size && text_[end] == '.') {
      t.kind = Tok::Float;
      ++end;
      digits(kDigit);
      if (end < size && (text_[end] | 0x20) == 'e') {
        uint32_t exponent = end + 1;
        if (exponent < size && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
        if (exponent < size && is(text_[exponent], kDigit)) {
          end = exponent;
          digits(kDigit);
        }
      }
    }
  }
  t.length = end - at_;
  at_ = end;
  return t;
}

Token Lexer::name(Token t, Tok kind) {
  const uint32_t size = static_cast<uint32_t>(text_.size());
  uint32_t end = at_ + 1;
  if (end < size && is(text_[end], kDigit)) {
    while (end < size && is(text_[end], kDigit)) ++end;
  } else if (end < size && is(text_[end], kSuffixStart)) {
    while (end < size && is(text_[end], kSuffix)) ++end;
  } else {
    kind = Tok::Error;
    t.error = LexError::Name;
  }
  t.kind = kind;
  t.length = end - at_;
  at_ = end;
  return t;
}

Token Lexer::symbol(Token t) {
  const uint32_t size = static_cast<uint32_t>(text_.size());
  uint32_t end = at_ + 1;
  if (end < size && text_[end] == '"') {
    ++at_;
    const Token quoted = string(t);
    if (quoted.kind == Tok::Error) return quoted;
    t.kind = Tok::Symbol;
    t.length = at_ - t.begin;
    return t;
  }
  if (end < size && is(text_[end], kIdStart)) {
    while (end < size && is(text_[end], kId)) ++end;
    t.kind = Tok::Symbol;
  } else {
    t.kind = Tok::Error;
    t.error = LexError::Name;
  }
  t.length = end - at_;
  at_ = end;
  return t;
}

// At the opening quote; t.begin may lie before it (symbols).
Token Lexer::string(Token t) {
  const uint32_t size = static_cast<uint32_t>(text_.size());
  uint32_t end = at_ + 1, wrong = 0, wrong_length = 0;
  LexError error = LexError::None;
  const auto remember = [&](LexError what, uint32_t begin, uint32_t length) {
    if (error != LexError::None) return;
    error = what;
    wrong = begin;
    wrong_length = length;
  };
  for (;;) {
    if (end >= size || text_[end] == '\n') {
      // The rest of the line belongs to the string that nobody closed.
      t.kind = Tok::Error;
      t.error = LexError::StringEnd;
      t.length = end - t.begin;
      if (t.length > 1 && text_[end - 1] == '\r') --t.length;
      at_ = end;
      return t;
    }
    const char c = text_[end];
    if (c == '"') break;
    if (c == '\v' || c == '\f') {
      remember(LexError::StringControl, end, 1);
    } else if (c == '\\') {
      const char e = end + 1 < size ? text_[end + 1] : '\n';
      if (e == '"' || e == '\\' || e == 'n' || e == 't') {
        ++end;
      } else if (is(e, kHexDigit) && end + 2 < size && is(text_[end + 2], kHexDigit)) {
        end += 2;
      } else {
        remember(LexError::Escape, end, e == '\n' ? 1 : 2);
      }
    }
    ++end;
  }
  at_ = end + 1;
  t.kind = Tok::String;
  t.length = at_ - t.begin;
  if (error != LexError::None) {
    t.kind = Tok::Error;
    t.error = error;
    t.begin = wrong;
    t.length = wrong_length;
  }
  return t;
}

std::string unescape(std::string_view quoted) {
  if (!quoted.empty() && quoted[0] == '@') quoted.remove_prefix(1);
  if (quoted.size() < 2 || quoted[0] != '"') return std::string(quoted);
  quoted = quoted.substr(1, quoted.size() - 2);
  std::string out;
  out.reserve(quoted.size());
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\' || i + 1 >= quoted.size()) {
      out += quoted[i];
      continue;
    }
    const char e = quoted[++i];
    if (e == '"' || e == '\\') {
      out += e;
    } else if (e == 'n') {
      out += '\n';
    } else if (e == 't') {
      out += '\t';
    } else if (i + 1 < quoted.size()) {
      out += static_cast<char>(hex_value(e) << 4 | hex_value(quoted[i + 1]));
      ++i;
    }
  }
  return out;
}

std::string lex_error_text(LexError error, std::string_view piece) {
  switch (error) {
    case LexError::Name:
      return "'" + std::string(piece) + "' is not followed by a name";
    case LexError::StringEnd:
      return "a string is not closed on its line, expected '\"'";
    case LexError::StringControl:
      return "a vertical tab or form feed stands in a string, expected an escape like \\0B";
    case LexError::Escape:
      return "'" + std::string(piece) + "' is no escape, expected \\\\, \\\", \\n, \\t or two hexadecimal digits";
    case LexError::Character:
    case LexError::None:
      break;
  }
  const uint8_t c = piece.empty() ? 0 : static_cast<uint8_t>(piece[0]);
  if (piece.starts_with("\xFF\xFE") || piece.starts_with("\xFE\xFF")) return "the text looks like UTF-16, expected UTF-8 or ASCII";
  if (c >= 0x80) return "text beyond ASCII stands outside of a string";
  if (c > 0x20 && c < 0x7F) return "'" + std::string(1, static_cast<char>(c)) + "' is not a sign of the language";
  constexpr std::string_view digits = "0123456789ABCDEF";
  return std::string("byte 0x") + digits[c >> 4] + digits[c & 15] + " is not part of the language";
}

}  // namespace tile
