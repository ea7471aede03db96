// Debug locations and scopes in text.
#include <algorithm>

#include "assembler/literals.h"
#include "assembler/parser.h"

namespace tile {

namespace {

/// Reads digits at `at`, at most as many as surely fit; false if there are none or more of them.
bool short_number(std::string_view text, size_t& at, uint32_t& out) {
  constexpr size_t kDigits = 9;
  const size_t begin = at;
  out = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && at - begin <= kDigits; ++at)
    out = out * 10 + static_cast<uint32_t>(text[at] - '0');
  return at > begin && at - begin <= kDigits;
}

bool starts_at(std::string_view text, size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

}  // namespace

bool Parser::parse_trailing_location(LocId& out) {
  out = kUnknownLoc;
  return !at_word("loc") || match_printed_location(out) || parse_location(out);
}

// loc(#cuda_tile.di_loc<loc("k.py":3:1) in #scope>), spelt exactly as printers do. Half of the tokens of a text with
// locations stand in it, so it is taken as one piece; false, and nothing read, where any character differs.
bool Parser::match_printed_location(LocId& out) {
  static constexpr std::string_view kOpen = "loc(#cuda_tile.di_loc<loc(\"", kIn = ") in #", kClose = ">)";
  const std::string_view text = lexer_.text();
  const size_t begin = tok_.begin;
  if (!starts_at(text, begin, kOpen)) return false;
  const size_t file = begin + kOpen.size();
  size_t at = file;
  while (at < text.size() && text[at] != '"' && text[at] != '\\' && static_cast<uint8_t>(text[at]) >= 0x20) ++at;
  if (!starts_at(text, at, "\":")) return false;
  const std::string_view file_name = text.substr(file, at - file);
  at += 2;
  Loc l;
  l.kind = Loc::Kind::Scoped;
  if (!short_number(text, at, l.line) || !starts_at(text, at, ":")) return false;
  if (!short_number(text, ++at, l.column) || !starts_at(text, at, kIn)) return false;
  const size_t name = at += kIn.size();
  while (at < text.size() && text[at] != '>' && text[at] != '\n') ++at;
  if (!starts_at(text, at, kClose)) return false;
  const std::string_view scope = text.substr(name, at - name);
  if (scope != last_scope_) {
    const auto alias = attr_aliases_.find(scope);
    if (alias == attr_aliases_.end() || alias->second.busy || alias->second.broken ||
        alias->second.value.kind != AttrValue::Kind::Scope)
      return false;
    const DebugScope::Kind kind = m_.locs.scope(alias->second.value.id).kind;
    if (kind != DebugScope::Kind::Subprogram && kind != DebugScope::Kind::LexicalBlock) return false;
    last_scope_ = scope;
    last_scope_id_ = alias->second.value.id;
  }
  l.scope = last_scope_id_;
  if (last_file_id_ == kNone || file_name != last_file_) {
    last_file_ = file_name;
    last_file_id_ = m_.strings.add(file_name);
  }
  l.file = last_file_id_;
  const auto end = static_cast<uint32_t>(at + kClose.size());
  tok_ = {Tok::RParen, LexError::None, false, end - 1, 1};
  lexer_.seek(end);
  advance();
  return add_location(std::move(l), span_from(static_cast<uint32_t>(begin)), out);
}

bool Parser::parse_location(LocId& out) {
  return expect_word("loc") && expect(Tok::LParen, "'('") && parse_location_body(out) && expect(Tok::RParen, "')'");
}

// loc(...) or what may stand inside of it.
bool Parser::parse_location_body(LocId& out) {
  if (loc_depth_ >= kMaxLocDepth) return too_deep(span(), "locations", kMaxLocDepth);
  ++loc_depth_;
  const bool ok = parse_location_inner(out);
  --loc_depth_;
  return ok;
}

bool Parser::parse_location_inner(LocId& out) {
  const uint32_t begin = tok_.begin;
  if (at_word("loc")) return parse_location(out);
  if (at(Tok::String)) return parse_file_location(out);
  if (at(Tok::Hash)) {
    if (text() == "#cuda_tile.di_loc") return parse_di_loc(out);
    AttrValue value;
    if (!parse_hash_attr(value, true)) return false;
    out = value.id;
    return value.kind == AttrValue::Kind::Loc || fail(Code::E0601, span_from(begin), "the alias is no location");
  }
  if (accept_word("unknown")) {
    out = kUnknownLoc;
    return true;
  }
  Loc l;
  if (accept_word("callsite")) {
    l.kind = Loc::Kind::CallSite;
    if (!expect(Tok::LParen, "'('") || !parse_location_body(l.callee) || !expect_word("at") ||
        !parse_location_body(l.caller) || !expect(Tok::RParen, "')'"))
      return false;
    return add_location(std::move(l), span_from(begin), out);
  }
  if (accept_word("fused")) {
    l.kind = Loc::Kind::Fused;
    if (accept(Tok::Less)) {
      AttrValue ignored;
      if (!parse_attr(ignored) || !expect(Tok::Greater, "'>'")) return false;
    }
    if (!expect(Tok::LBracket, "'['")) return false;
    if (!accept(Tok::RBracket)) {
      do {
        LocId part = kUnknownLoc;
        if (!parse_location_body(part)) return false;
        l.parts.push_back(part);
      } while (accept(Tok::Comma));
      if (!expect(Tok::RBracket, "']'")) return false;
    }
    return add_location(std::move(l), span_from(begin), out);
  }
  return unexpected("a location");
}

// "file":line:col, with an optional range, or "name" and "name"(location).
bool Parser::parse_file_location(LocId& out) {
  const uint32_t begin = tok_.begin;
  Loc l;
  return parse_file_location(l) && add_location(std::move(l), span_from(begin), out);
}

bool Parser::parse_file_location(Loc& l) {
  if (!parse_string(l.file)) return false;
  if (accept(Tok::Colon)) {
    l.kind = Loc::Kind::FileLineCol;
    if (!parse_u32(l.line) || !expect(Tok::Colon, "':'") || !parse_u32(l.column)) return false;
    if (accept_word("to")) {
      l.end_line = l.line;
      if (!at(Tok::Colon) && !parse_u32(l.end_line)) return false;
      if (!expect(Tok::Colon, "':'") || !parse_u32(l.end_column)) return false;
    }
  } else {
    l.kind = Loc::Kind::Named;
    if (accept(Tok::LParen) && (!parse_location_body(l.callee) || !expect(Tok::RParen, "')'"))) return false;
  }
  return true;
}

// #cuda_tile.di_loc<"k.py":3:1 in #scope>
bool Parser::parse_di_loc(LocId& out) {
  const uint32_t begin = tok_.begin;
  advance();
  if (!expect(Tok::Less, "'<'")) return false;
  const uint32_t inner_begin = tok_.begin;
  Loc l;
  // Written out, as printers do, the place inside need not become a location of the module: half of a large text's.
  const bool wrapped = at_word("loc") && peek().kind == Tok::LParen;
  const Position inner_start = position();
  if (wrapped) {
    advance();
    advance();
  }
  if (at(Tok::String)) {
    if (!parse_file_location(l) || (wrapped && !expect(Tok::RParen, "')'"))) return false;
  } else {
    go_to(inner_start);
    LocId inner = kUnknownLoc;
    if (!parse_location_body(inner)) return false;
    l = m_.locs.get(inner);
  }
  if (l.kind != Loc::Kind::FileLineCol || l.end_column != 0)
    return fail(Code::E0706, span_from(inner_begin),
                "the location inside of di_loc is not of the form \"file\":line:column");
  l.kind = Loc::Kind::Scoped;
  if (!expect_word("in") || !parse_scope_ref(l.scope, {DebugScope::Kind::Subprogram, DebugScope::Kind::LexicalBlock},
                                             "a subprogram or lexical block"))
    return false;
  return expect(Tok::Greater, "'>'") && add_location(std::move(l), span_from(begin), out);
}

bool Parser::parse_u32(uint32_t& out) {
  int64_t value = 0;
  if (!parse_sint(value, 0, UINT32_MAX)) return false;
  out = static_cast<uint32_t>(value);
  return true;
}

// Depth and size are kept with each location, because aliases let short texts describe deep and wide ones.
bool Parser::add_location(Loc loc, Span where, LocId& out) {
  uint32_t depth = 0;
  uint64_t nodes = 1;
  const auto part = [&](LocId id) {
    if (id == kNone || id >= loc_cost_.size()) return;
    depth = std::max<uint32_t>(depth, loc_cost_[id].first);
    nodes += loc_cost_[id].second;
  };
  part(loc.callee);
  part(loc.caller);
  for (const LocId id : loc.parts) part(id);
  if (++depth > kMaxLocDepth) return too_deep(where, "locations", kMaxLocDepth);
  if (nodes > kMaxLocNodes)
    return fail(Code::L0102, where, "the location stands for more than " + std::to_string(kMaxLocNodes) + " others");
  out = m_.locs.add(std::move(loc));
  if (loc_cost_.size() <= out) loc_cost_.resize(out + 1, {uint16_t{1}, 1u});
  loc_cost_[out] = {static_cast<uint16_t>(depth), static_cast<uint32_t>(nodes)};
  return true;
}

bool Parser::parse_scope_ref(ScopeId& out, std::initializer_list<DebugScope::Kind> kinds, std::string_view what) {
  AttrValue value;
  if (!parse_attr(value)) return false;
  if (value.kind == AttrValue::Kind::Scope) {
    out = value.id;
    if (std::find(kinds.begin(), kinds.end(), m_.locs.scope(out).kind) != kinds.end()) return true;
  }
  return fail(Code::E0706, value.span, "the attribute is not " + std::string(what));
}

bool Parser::add_scope(DebugScope scope, Span where, ScopeId& out) {
  uint32_t depth = 1;
  if (scope.scope != kNone) depth += scope_depth_[scope.scope];
  if (depth > kMaxLocDepth) return too_deep(where, "debug scopes", kMaxLocDepth);
  out = m_.locs.add_scope(scope);
  if (scope_depth_.size() <= out) scope_depth_.resize(out + 1, 1);
  scope_depth_[out] = static_cast<uint16_t>(depth);
  return true;
}

// #cuda_tile.di_file<...> and its kin; at the token, `word` without the prefix.
bool Parser::parse_scope_attr(std::string_view word, ScopeId& out) {
  using Kind = DebugScope::Kind;
  const uint32_t begin = tok_.begin;
  DebugScope s;
  struct Field {
    std::string_view name;
    StringId* string;
    uint32_t* number;
    ScopeId* scope;
    std::initializer_list<Kind> kinds;
    std::string_view what;
    bool optional, set;
  };
  static constexpr std::initializer_list<Kind> kFile = {Kind::File}, kUnit = {Kind::CompileUnit},
                                               kScope = {Kind::Subprogram, Kind::LexicalBlock};
  Field fields[] = {
      {"file", nullptr, nullptr, &s.file, kFile, "a di_file", false, false},
      {"line", nullptr, &s.line, nullptr, {}, {}, false, false},
      {"scope", nullptr, nullptr, &s.scope, kScope, "a di_subprogram or di_lexical_block", false, false},
      {"column", nullptr, &s.column, nullptr, {}, {}, true, false},
      {"name", &s.name, nullptr, nullptr, {}, {}, false, false},
      {"linkageName", &s.linkage_name, nullptr, nullptr, {}, {}, false, false},
      {"compileUnit", nullptr, nullptr, &s.compile_unit, kUnit, "a di_compile_unit", false, false},
      {"scopeLine", nullptr, &s.scope_line, nullptr, {}, {}, true, false},
  };
  uint32_t possible = 0;  // bits of the fields that this record has
  if (word == "di_file") {
    s.kind = Kind::File;
  } else if (word == "di_compile_unit") {
    s.kind = Kind::CompileUnit;
    possible = 0x01;
  } else if (word == "di_lexical_block") {
    s.kind = Kind::LexicalBlock;
    possible = 0x0F;
  } else if (word == "di_subprogram") {
    s.kind = Kind::Subprogram;
    possible = 0xF3;
  } else {
    return fail(Code::E0306, span(), "there is no attribute " + found());
  }
  advance();
  if (!expect(Tok::Less, "'<'")) return false;
  if (s.kind == Kind::File) {
    return parse_string(s.name) && expect_word("in") && parse_string(s.directory) && expect(Tok::Greater, "'>'") &&
           add_scope(s, span_from(begin), out);
  }
  do {
    Field* field = nullptr;
    for (size_t i = 0; i < std::size(fields); ++i) {
      if ((possible >> i & 1) == 0) continue;
      if (at_word(fields[i].name)) field = &fields[i];
      alternative(fields[i].name);
    }
    if (!field) return unexpected({});
    if (field->set) return fail(Code::E0402, span(), "'" + std::string(field->name) + "' is given twice");
    field->set = true;
    advance();
    if (!expect(Tok::Equal, "'='")) return false;
    if (field->string) {
      if (!parse_string(*field->string)) return false;
    } else if (field->number) {
      if (!parse_u32(*field->number)) return false;
    } else if (accept_word("unit")) {
      *field->scope = kNone;  // tileirbc has records that name none
    } else if (!parse_scope_ref(*field->scope, field->kinds, field->what)) {
      return false;
    }
  } while (accept(Tok::Comma));
  if (!expect(Tok::Greater, "'>'")) return false;
  for (size_t i = 0; i < std::size(fields); ++i) {
    if ((possible >> i & 1) != 0 && !fields[i].optional && !fields[i].set)
      return fail(Code::E0602, span_from(begin),
                  std::string(word) + " has no field '" + std::string(fields[i].name) + "'");
  }
  return add_scope(s, span_from(begin), out);
}

}  // namespace tile
