// Cuts text into tokens on demand. Knows characters and nothing of the grammar; dimension lists are cut by the parser's
// wish.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tile {

enum class Tok : uint8_t {
  End,
  Error,
  BareId,  ///< cuda_tile.addi, x8xf32
  Value,
  Hash,
  Bang,
  Caret,   ///< %name, #name, !name, ^name
  Symbol,  ///< @name or @"name"
  Int,
  Hex,
  Float,
  String,
  LParen,
  RParen,
  LBrace,
  RBrace,
  LBracket,
  RBracket,
  Less,
  Greater,
  Comma,
  Colon,
  ColonColon,
  Equal,
  Question,
  Star,
  Plus,
  Minus,
  Slash,
  Pipe,
  Arrow
};

enum class LexError : uint8_t { None, Character, Name, StringEnd, StringControl, Escape };

struct Token {
  Tok kind = Tok::End;
  LexError error = LexError::None;
  bool first_on_line = false;  ///< a newline stands between the token before and this one
  uint32_t begin = 0;
  uint32_t length = 0;
  [[nodiscard]] uint32_t end() const { return begin + length; }
};

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Lexer {
 public:
  /// `text` must be shorter than 4 GiB and outlive the lexer. A byte order mark of UTF-8 in front is passed over.
  explicit Lexer(std::string_view text) : text_(text), at_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0) {}

  /// The next token; End again and again after the last. An Error token covers what is wrong.
  Token next();

  /// Where the next token is looked for.
  [[nodiscard]] uint32_t position() const { return at_; }
  void seek(uint32_t position) { at_ = position; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string_view text(const Token& t) const { return text_.substr(t.begin, t.length); }

 private:
  Token string(Token t);
  Token number(Token t);
  Token name(Token t, Tok kind);
  Token symbol(Token t);

  std::string_view text_;
  uint32_t at_ = 0;
};

/// Bytes of a string token whose escapes are legal, which is so for every String and Symbol token that the lexer hands
/// out.
[[nodiscard]] std::string unescape(std::string_view quoted);

/// What is wrong with an Error token that covers `piece`.
[[nodiscard]] std::string lex_error_text(LexError error, std::string_view piece);

}  // namespace tile
