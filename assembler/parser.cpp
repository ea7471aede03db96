// Tokens, expectations, error messages and recovery of the parser, and its entry point.
#include "assembler/parser.h"

#include <algorithm>

#include "assembler/assembler.h"

namespace tile {
namespace {

constexpr size_t kLongestQuote = 40;  // longer pieces of input are cut in messages

bool is_word(std::string_view text) {
  return !text.empty() && ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z');
}

std::string quoted(std::string_view text) {
  if (text.size() > kLongestQuote) return "'" + std::string(text.substr(0, kLongestQuote)) + "...'";
  return "'" + std::string(text) + "'";
}

}  // namespace

Parser::Parser(std::shared_ptr<const Source> source, Diagnostics& diags)
    : source_(std::move(source)), diags_(diags), lexer_(source_->text()) {
  element_types_.fill(kNone);
}

Result<Module> Parser::run() {
  const size_t errors_before = diags_.error_count();
  m_.source = source_;
  m_.file = source_->name();
  advance();
  top_level(false);
  if (diags_.error_count() != errors_before) return Failed;
  if (m_.name == kNone) m_.name = m_.strings.add("kernels");
  return std::move(m_);
}

Token Parser::peek() {
  const uint32_t position = lexer_.position();
  const Token t = lexer_.next();
  lexer_.seek(position);
  return t;
}

bool Parser::accept(Tok kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!at_word(word)) {
    alternative(word);
    return false;
  }
  advance();
  return true;
}

bool Parser::expect(Tok kind, std::string_view what) {
  if (!at(kind)) return unexpected(what);
  advance();
  return true;
}

bool Parser::expect_word(std::string_view word) {
  if (!at_word(word)) {
    alternative(word);
    return unexpected({});
  }
  advance();
  return true;
}

void Parser::alternatives(EnumKind kind) {
  for (const EnumValue& v : enum_info(kind).values) alternative(v.word);
}

bool Parser::fail(Code code, Span span, std::string message, std::string help) {
  (void)diags_.error(code, place(span), std::move(message), std::move(help));
  return false;
}

bool Parser::fail_with_note(Code code, Span span, std::string message, Span note, std::string note_text,
                            std::string help) {
  Diagnostic d{code, place(span), std::move(message), {}, std::move(help), {}};
  if (note.valid()) d.notes.push_back({place(note), std::move(note_text)});
  (void)diags_.error(std::move(d));
  return false;
}

std::string Parser::found() const {
  if (at(Tok::End)) return "the end of the file";
  if (at(Tok::String)) return "a string";
  return quoted(text());
}

std::string Parser::in_op(std::string message) const {
  return op_.def ? std::string(op_.def->name) + ": " + message : message;
}

std::string Parser::wrong_count(size_t types, size_t expected, std::string_view of) {
  return "found " + std::to_string(types) + (types == 1 ? " type" : " types") + ", expected " +
         std::to_string(expected) + ", as many as " + std::string(of);
}

// `what` describes what is needed; the alternatives collected at this token come before it.
bool Parser::unexpected(std::string_view what, Code code) {
  if (at(Tok::Error)) return fail(Code::E0301, span(), lex_error_text(tok_.error, text()));
  std::string expected, help;
  std::vector<std::string_view> words;
  const size_t count = alternative_count_ + (what.empty() ? 0 : 1);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) expected += i + 1 == count ? " or " : ", ";
    if (i == alternative_count_) {
      expected += what;
      break;
    }
    expected += quoted(alternatives_[i]);
    if (is_word(alternatives_[i])) words.push_back(alternatives_[i]);
  }
  // What is missing at the end of a line is shown there, not at the beginning of the next one.
  const bool missing = (tok_.first_on_line || at(Tok::End)) && tok_.begin != statement_begin_;
  if (at(Tok::BareId) && !missing && !words.empty()) {
    if (code == Code::E0302) code = Code::E0306;
    if (const std::string near = nearest(text(), words); !near.empty()) help = "did you mean '" + near + "'?";
  }
  const Span where = missing ? Span{previous_end_, 0} : span();
  const std::string what_is_there = missing && !at(Tok::End) ? "the end of the line" : found();
  return fail(code, where, in_op("found " + what_is_there + ", expected " + expected), std::move(help));
}

bool Parser::too_deep(Span span, std::string_view what, uint32_t limit) {
  fatal_ = true;
  return fail(Code::L0102, span, std::string(what) + " nest deeper than " + std::to_string(limit) + " levels");
}

bool Parser::starts_statement(Level level) {
  if (!tok_.first_on_line) return false;
  if (at(Tok::Value)) return level == Level::Body;
  if (at(Tok::Hash) || at(Tok::Bang)) return level == Level::Top;
  if (at(Tok::String)) return level != Level::Body && text().starts_with("\"cuda_tile.");
  if (!at(Tok::BareId)) return false;
  if (starts_item()) return true;
  if (level != Level::Body) return op_word() == "module" || op_word() == "builtin.module";
  if (find_op(op_word())) return true;
  // A misspelt operation has operands or stands alone, unlike the words that continue one.
  const Token following = peek();
  return following.kind == Tok::Value || following.first_on_line;
}

Parser::Statement Parser::begin_statement() {
  statement_begin_ = tok_.begin;
  op_.def = nullptr;
  return {tok_.begin, open_braces_};
}

// Skips what an error spoils: to the next statement on a new line, or to the brace that closes the region.
void Parser::recover(Level level, const Statement& broken) {
  if (stopped()) return;
  // Without regions the only braces are those of dictionaries, which a statement never stands in.
  const bool only_dictionaries = level == Level::Body && op_.def && op_.def->regions == 0;
  for (; !at(Tok::End); advance()) {
    const bool outside = open_braces_ <= broken.open_braces;
    if (tok_.begin > broken.begin && (outside || only_dictionaries) && starts_statement(level)) return;
    if (outside && at(Tok::RBrace) && (level != Level::Top || top_depth_ > 0)) return;
    braces_skipped_ = braces_skipped_ || at(Tok::LBrace) || at(Tok::RBrace);
  }
}

Result<Module> parse_text(std::shared_ptr<const Source> source, Diagnostics& diags) {
  if (source->text().size() > kMaxTextSize) {
    return diags.error(Code::L0101, {.source = source, .span = {0, 0}},
                       "the text has " + std::to_string(source->text().size()) + " bytes, more than the limit of " +
                           std::to_string(kMaxTextSize));
  }
  return Parser(std::move(source), diags).run();
}

}  // namespace tile
