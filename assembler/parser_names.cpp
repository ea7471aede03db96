// Names of values: what they are bound to, in which scope, and how operands and results are written.
#include "assembler/parser.h"

namespace tile {
namespace {

constexpr size_t kMaxCandidates = 4096;  // names looked at for a suggestion

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

StringId Parser::name_id(const Token& value) {
  const std::string_view name = lexer_.text(value).substr(1);
  StringId id = names_by_text_.find(name);
  if (id != TextMap::kMissing) return id;
  id = m_.strings.add(name);
  names_by_text_.insert(name, id);
  return id;
}

void Parser::scope_restore(size_t mark) {
  while (bound_.size() > mark) {
    bindings_[bound_.back().first] = bound_.back().second;
    bound_.pop_back();
  }
}

void Parser::define(StringId name, Span span, ValueId first, uint32_t count) {
  if (bindings_.size() <= name) bindings_.resize(name + 1);
  Binding& b = bindings_[name];
  if (b.count != 0 && b.first != kNone && first != kNone) {
    const std::string text = "%" + std::string(m_.str(name));
    fail_with_note(Code::E0402, span, text + " is defined again", b.span, text + " is defined here");
    return;
  }
  if (b.count != 0 && first == kNone) return;
  bound_.emplace_back(name, b);
  b = {first, count, span};
}

bool Parser::parse_operand(Operand& out) {
  if (!at(Tok::Value)) return unexpected("an operand");
  const StringId name = name_id(tok_);
  out.span = span();
  advance();
  uint64_t index = 0;
  if (at(Tok::Hash) && tok_.begin == previous_end_ && all_digits(text().substr(1))) {
    for (char c : text().substr(1)) index = index > UINT32_MAX ? index : index * 10 + static_cast<uint64_t>(c - '0');
    out.span.length += tok_.length;
    advance();
  }
  if (bindings_.size() <= name) bindings_.resize(name + 1);
  const Binding b = bindings_[name];
  if (b.count == 0) {
    std::vector<std::string_view> candidates;
    for (size_t i = bound_.size(); i > 0 && candidates.size() < kMaxCandidates; --i) {
      const StringId id = bound_[i - 1].first;
      if (bindings_[id].first != kNone) candidates.push_back(m_.str(id));
    }
    const std::string near = nearest(m_.str(name), candidates);
    fail(Code::E0401, out.span, in_op("%" + std::string(m_.str(name)) + " is not defined here"),
         near.empty() ? "" : "did you mean %" + near + "?");
    define(name, out.span, kNone, 1);  // one error for each name
    return true;
  }
  if (b.first == kNone) return true;
  if (index >= b.count) {
    const std::string text = "%" + std::string(m_.str(name));
    fail_with_note(Code::E0401, out.span,
                   in_op(text + "#" + std::to_string(index) + " is not defined, " + text + " has " +
                         std::to_string(b.count) + (b.count == 1 ? " value" : " values")),
                   b.span, text + " is defined here");
    return true;
  }
  out.value = b.first + static_cast<ValueId>(index);
  out.type = function_->value_types[out.value];
  return true;
}

bool Parser::parse_operands(uint8_t group) {
  do {
    Operand& o = op_.operands.emplace_back();
    o.group = group;
    if (!parse_operand(o)) return false;
  } while (accept(Tok::Comma));
  return true;
}

// %a, %b:2 = ; the names are put on names_.
bool Parser::parse_result_names() {
  do {
    if (!at(Tok::Value)) return unexpected("a result name");
    ResultName& r = names_.emplace_back(ResultName{name_id(tok_), span(), 1});
    advance();
    if (accept(Tok::Colon)) {
      if (!at(Tok::Int)) return unexpected("the number of results");
      uint64_t count = 0;
      for (char c : text()) count = count > UINT32_MAX ? count : count * 10 + static_cast<uint64_t>(c - '0');
      if (count == 0 || count > UINT32_MAX)
        return fail(Code::E0403, span(), "found " + found() + " results, expected at least 1");
      r.count = static_cast<uint32_t>(count);
      advance();
    }
  } while (accept(Tok::Comma));
  return expect(Tok::Equal, "'='");
}

bool Parser::check_count(size_t base) {
  if (names_.size() == base) return true;
  uint64_t count = 0;
  for (size_t i = base; i < names_.size(); ++i) count += names_[i].count;
  const size_t results = op_.results.size();
  if (count == results) return true;
  return fail(Code::E0403, names_[base].span,
              in_op("found " + std::to_string(count) + (count == 1 ? " result name" : " result names") + ", expected " +
                    (results == 0 ? "none" : std::to_string(results))));
}

void Parser::name_results(size_t base, InstId inst) {
  ValueId value = function_->insts[inst].first_result;
  for (size_t i = base; i < names_.size(); ++i) {
    define(names_[i].name, names_[i].span, value, names_[i].count);
    value += names_[i].count;
  }
  names_.resize(base);
}

void Parser::drop_results(size_t base) {
  for (size_t i = base; i < names_.size(); ++i) define(names_[i].name, names_[i].span, kNone, 1);
  names_.resize(base);
}

}  // namespace tile
