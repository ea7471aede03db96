// Aliases of attributes and locations, which locations may use before they are defined.
#include "assembler/parser.h"

namespace tile {

// `ahead`: the alias may be defined behind this place.
bool Parser::use_alias(std::string_view name, Span span, bool ahead, AttrAlias*& out) {
  ahead = ahead || reading_ahead_;
  auto it = attr_aliases_.find(name);
  if (it == attr_aliases_.end() && ahead) {
    index_aliases_ahead();
    if (const auto place = ahead_.find(name); place != ahead_.end()) {
      const Position saved = position();
      const bool saved_reading = reading_ahead_;
      const uint32_t saved_expanded = expanded_;
      reading_ahead_ = true;
      restart(place->second.end());
      const bool ok = read_alias(name, {place->second.begin, place->second.length}, true);
      reading_ahead_ = saved_reading;
      expanded_ = saved_expanded;
      go_to(saved);
      if (!ok) return false;
      it = attr_aliases_.find(name);
    }
  }
  const std::string text = "alias #" + std::string(name);
  if (it == attr_aliases_.end())
    return fail(Code::E0401, span, text + (ahead ? " is not defined" : " is not defined before this use"));
  if (it->second.busy) return fail(Code::E0401, span, text + " is defined by itself");
  if (it->second.broken) return false;
  out = &it->second;
  return true;
}

// At the equal sign of `#name = value`.
bool Parser::read_alias(std::string_view name, Span name_span, bool ahead) {
  AttrAlias& alias = attr_aliases_[name];  // stays where it is while others are added
  alias.name = name_span;
  alias.busy = alias.broken = true;
  const uint32_t outer = expanded_;
  expanded_ = 0;
  const bool ok = expect(Tok::Equal, "'='") && parse_attr(alias.value);
  alias.busy = false;
  alias.nodes = expanded_;
  alias.end = ahead ? previous_end_ : 0;
  expanded_ = outer;
  if (!ok) return false;
  if (alias.nodes > kMaxAliasNodes && alias.value.kind != AttrValue::Kind::Loc) {
    return fail(Code::L0102, name_span,
                "alias #" + std::string(name) + " stands for more than " + std::to_string(kMaxAliasNodes) + " values");
  }
  alias.broken = false;
  return true;
}

// `#name =` stands nowhere but in definitions, so that a look at the tokens finds them all.
void Parser::index_aliases_ahead() {
  if (ahead_known_) return;
  ahead_known_ = true;
  Lexer lexer = lexer_;
  lexer.seek(tok_.begin);
  for (Token t = lexer.next(); t.kind != Tok::End;) {
    const Token following = lexer.next();
    if (t.kind == Tok::Hash && following.kind == Tok::Equal) ahead_.emplace(lexer.text(t).substr(1), t);
    t = following;
  }
}

}  // namespace tile
