// Attribute values, dictionaries, predicates, hints.
#include <algorithm>
#include <unordered_set>

#include "assembler/literals.h"
#include "assembler/parser.h"

namespace tile {
namespace {

constexpr std::string_view kPrefix = "cuda_tile.";
constexpr size_t kCharactersPerNode = 16;  // what a string counts in the size of an alias

const EnumKind* enum_by_name(std::string_view name) {
  static constexpr EnumKind kinds[] = {EnumKind::Signedness, EnumKind::Overflow, EnumKind::Rounding,
                                       EnumKind::Predicate,  EnumKind::Ordering, EnumKind::Padding,
                                       EnumKind::Visibility, EnumKind::PtrAttr,  EnumKind::MultimemKind};
  for (const EnumKind& k : kinds)
    if (enum_info(k).name == name) return &k;
  return nullptr;
}

// The keys of one dictionary. Few are compared one by one; a set takes over before that costs too much.
class Keys {
 public:
  bool add(StringId key) {
    if (few_.size() < kFew) {
      if (std::find(few_.begin(), few_.end(), key) != few_.end()) return false;
      few_.push_back(key);
      return true;
    }
    return std::find(few_.begin(), few_.end(), key) == few_.end() && many_.insert(key).second;
  }

 private:
  static constexpr size_t kFew = 16;
  std::vector<StringId> few_;
  std::unordered_set<StringId> many_;
};

}  // namespace

bool Parser::parse_attr(AttrValue& out) {
  if (attr_depth_ >= kMaxAttrDepth) return too_deep(span(), "attributes", kMaxAttrDepth);
  ++attr_depth_;
  ++expanded_;
  const uint32_t begin = tok_.begin;
  const bool ok = parse_attr_inner(out);
  --attr_depth_;
  out.span = span_from(begin);
  return ok;
}

bool Parser::parse_attr_inner(AttrValue& out) {
  using Kind = AttrValue::Kind;
  out.kind = Kind::Attr;
  switch (tok_.kind) {
    case Tok::String: {
      StringId id = kNone;
      TypeId ignored = kNone;
      expanded_ += tok_.length / kCharactersPerNode;
      if (!parse_string(id)) return false;
      out.id = m_.attrs.string(id);
      return !accept(Tok::Colon) || parse_type(ignored);
    }
    case Tok::Int:
    case Tok::Hex:
    case Tok::Float:
    case Tok::Minus:
      return parse_number_attr(out.id);
    case Tok::LBracket: {
      std::vector<AttrId> items;
      if (!parse_array_attr(items)) return false;
      out.id = m_.attrs.array(std::move(items));
      return true;
    }
    case Tok::LBrace:
      return parse_dict_attr(out.id);
    case Tok::Symbol:
      out.kind = Kind::Symbol;
      out.id = m_.strings.add(unescape(text().substr(1)));
      advance();
      if (at(Tok::ColonColon)) return unexpected("a symbol without '::', because modules do not nest");
      return true;
    case Tok::Hash:
      return parse_hash_attr(out, false);
    case Tok::LParen:
      return parse_function_type(out.id);
    case Tok::Bang: {
      TypeId type = kNone;
      if (!parse_type(type)) return false;
      out.id = m_.attrs.add({.tag = AttrTag::Type, .type = type});
      return true;
    }
    case Tok::BareId:
      break;
    default:
      return unexpected("an attribute value");
  }
  if (at_word("true") || at_word("false")) {
    bool value = false;
    TypeId type = kNone;
    if (!parse_bool(value)) return false;
    out.id = m_.attrs.boolean(value);
    if (!accept(Tok::Colon)) return true;
    const Span where = span();
    if (!parse_type(type)) return false;
    return type == element_type(ElementType::I1) ||
           fail(Code::E0304, where, "found type " + type_text(type) + " for true or false, expected i1");
  }
  if (accept_word("unit")) {
    out.kind = Kind::Unit;
    return true;
  }
  if (at_word("loc")) {
    out.kind = Kind::Loc;
    return parse_location(out.id);
  }
  if ((at_word("array") || at_word("dense")) && peek().kind == Tok::Less) return parse_generic_list(out);
  TypeId type = kNone;
  alternative("true");
  alternative("false");
  if (!parse_type(type)) return false;
  out.id = m_.attrs.add({.tag = AttrTag::Type, .type = type});
  return true;
}

// -3, 0xFF800000 : f32, 1.5
bool Parser::parse_number_attr(AttrId& out) {
  const uint32_t begin = tok_.begin;
  const bool negative = accept(Tok::Minus);
  if (!at(Tok::Int) && !at(Tok::Hex) && !at(Tok::Float)) return unexpected("a number");
  const Token number = tok_;
  advance();
  const Span where = span_from(begin);
  ElementType type = number.kind == Tok::Float ? ElementType::F64 : ElementType::I64;
  if (in_hints_ && number.kind == Tok::Int) {
    // Numbers in hints are written without a type and are 32 bits wide where that is enough.
    const std::optional<int64_t> value = int_literal(number.kind, lexer_.text(number), negative);
    if (value && *value >= INT32_MIN && *value <= INT32_MAX) type = ElementType::I32;
  }
  if (accept(Tok::Colon)) {
    const Span type_span = span();
    TypeId written = kNone;
    if (!parse_type(written)) return false;
    const Type& t = m_.types.get(written);
    if (t.kind != TypeKind::Element)
      return fail(Code::E0304, type_span,
                  "found type " + type_text(written) + " for a number, expected an element type");
    type = t.element;
  }
  const Literal literal = number_literal(type, number.kind, lexer_.text(number), negative);
  if (!literal.error.empty())
    return fail(Code::E0304, where,
                std::string(lexer_.text().substr(where.begin, std::min(where.length, 40u))) + " " + literal.error,
                literal.help);
  if (type == ElementType::I1) {
    out = m_.attrs.boolean(literal.bits != 0);
  } else {
    const TypeId id = element_type(type);
    out = info(type).is_int ? m_.attrs.integer(id, literal.bits) : m_.attrs.floating(id, literal.bits);
  }
  return true;
}

bool Parser::parse_array_attr(std::vector<AttrId>& items) {
  if (!expect(Tok::LBracket, "'['")) return false;
  if (accept(Tok::RBracket)) return true;
  do {
    AttrValue value;
    AttrId id = kNone;
    if (!parse_attr(value) || !to_attr(value, id)) return false;
    items.push_back(id);
  } while (accept(Tok::Comma));
  return expect(Tok::RBracket, "']'");
}

// A bare name or a string; `what` is expected otherwise.
bool Parser::parse_key(StringId& key, const char* what) {
  if (at(Tok::String)) return parse_string(key);
  if (!at(Tok::BareId)) return unexpected(what);
  key = m_.strings.add(text());
  advance();
  return true;
}

bool Parser::parse_dict(std::vector<std::pair<StringId, AttrValue>>& entries) {
  if (!expect(Tok::LBrace, "'{'")) return false;
  if (accept(Tok::RBrace)) return true;
  Keys keys;
  do {
    const Span where = span();
    StringId key = kNone;
    if (!parse_key(key, "a name")) return false;
    if (!keys.add(key)) return fail(Code::E0402, where, "'" + std::string(m_.str(key)) + "' is given twice");
    AttrValue value;
    value.kind = AttrValue::Kind::Unit;
    value.span = where;
    if (accept(Tok::Equal) && !parse_attr(value)) return false;
    entries.emplace_back(key, value);
  } while (accept(Tok::Comma));
  return expect(Tok::RBrace, "'}'");
}

bool Parser::parse_dict_attr(AttrId& out) {
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  Attr dict{.tag = AttrTag::Dictionary};
  for (const auto& [key, value] : entries) {
    AttrId id = kNone;
    if (!to_attr(value, id)) return false;
    dict.entries.emplace_back(key, id);
  }
  out = m_.attrs.add(std::move(dict));
  return true;
}

// The value as something that a dictionary or array can hold; words that mean nothing there are kept as text.
bool Parser::to_attr(const AttrValue& value, AttrId& out) {
  std::string kept;
  switch (value.kind) {
    case AttrValue::Kind::Attr:
      out = value.id;
      return true;
    case AttrValue::Kind::Enum:
      kept = "#cuda_tile." + std::string(enum_info(value.enum_kind).name) + "<" +
             std::string(enum_word(value.enum_kind, value.id)) + ">";
      break;
    case AttrValue::Kind::Unit:
      kept = "unit";
      break;
    case AttrValue::Kind::Symbol:
      kept = std::string(lexer_.text().substr(value.span.begin, value.span.length));
      break;
    case AttrValue::Kind::Loc:
    case AttrValue::Kind::Scope:
      return fail(Code::E0601, value.span, "debug information is not possible inside of an attribute value");
  }
  out = m_.attrs.add({.tag = AttrTag::Opaque, .string = m_.strings.add(kept)});
  return true;
}

// #alias or #cuda_tile.word<...>
bool Parser::parse_hash_attr(AttrValue& out, bool ahead) {
  std::string_view word = text().substr(1);
  const Span where = span();
  if (word.find('.') == std::string_view::npos) {
    AttrAlias* alias = nullptr;
    advance();
    if (!use_alias(word, where, ahead, alias)) return false;
    expanded_ += alias->nodes;
    out = alias->value;
    return true;
  }
  if (!word.starts_with(kPrefix))
    return fail(Code::E0306, where, "found " + found() + ", expected an attribute of cuda_tile");
  word.remove_prefix(kPrefix.size());
  return parse_dialect_attr(word, out);
}

bool Parser::parse_dialect_attr(std::string_view word, AttrValue& out) {
  using Kind = AttrValue::Kind;
  const Span where = span();
  if (word == "div_by" || word == "same_elements" || word == "bounded") return parse_predicate_body(word, out.id);
  if (word == "optimization_hints") {
    advance();
    if (!parse_hints(out.id)) return false;
    if (out.id == kNone) out.id = m_.attrs.add({.tag = AttrTag::Dictionary});
    return true;
  }
  if (const EnumKind* kind = enum_by_name(word)) {
    advance();
    out.kind = Kind::Enum;
    out.enum_kind = *kind;
    return parse_enum_in_angles(*kind, out.id);
  }
  if (word == "di_loc") {
    out.kind = Kind::Loc;
    return parse_di_loc(out.id);
  }
  if (word.starts_with("di_")) {
    out.kind = Kind::Scope;
    return parse_scope_attr(word, out.id);
  }
  return fail(Code::E0306, where, "there is no attribute " + found());
}

// div_by<16>, #cuda_tile.bounded<0, ?>, #alias
bool Parser::parse_predicate(AttrId& out) {
  if (at(Tok::BareId)) {
    if (at_word("div_by") || at_word("same_elements") || at_word("bounded")) return parse_predicate_body(text(), out);
  } else if (at(Tok::Hash)) {
    AttrValue value;
    if (!parse_attr(value)) return false;
    if (value.kind == AttrValue::Kind::Attr) {
      const AttrTag tag = m_.attrs.get(value.id).tag;
      out = value.id;
      if (tag == AttrTag::DivBy || tag == AttrTag::SameElements || tag == AttrTag::Bounded) return true;
    }
    return fail(Code::E0601, value.span,
                in_op("the attribute is no predicate, expected div_by, same_elements or bounded"));
  }
  for (const std::string_view word : {"div_by", "same_elements", "bounded"}) alternative(word);
  return unexpected({});
}

// At the word, with or without its prefix.
bool Parser::parse_predicate_body(std::string_view word, AttrId& out) {
  advance();
  if (!expect(Tok::Less, "'<'")) return false;
  Attr a;
  if (word == "div_by") {
    int64_t divisor = 0;
    a.tag = AttrTag::DivBy;
    if (!parse_sint(divisor)) return false;
    a.bits = static_cast<uint64_t>(divisor);
    if (accept(Tok::Comma)) {
      a.ints.resize(2);
      if (!expect_word("every") || !parse_sint(a.ints[0]) || !expect_word("along") || !parse_sint(a.ints[1]))
        return false;
    }
  } else if (word == "same_elements") {
    a.tag = AttrTag::SameElements;
    if (!parse_sint_list(a.ints)) return false;
    expanded_ += static_cast<uint32_t>(a.ints.size());
  } else {
    a.tag = AttrTag::Bounded;
    a.ints.resize(2);
    for (size_t i = 0; i < 2; ++i) {
      if (i == 1 && !expect(Tok::Comma, "','")) return false;
      if (accept(Tok::Question)) continue;
      alternative("?");
      if (!parse_sint(a.ints[i])) return false;
      a.flags |= static_cast<uint8_t>(1u << i);
    }
  }
  out = m_.attrs.add(std::move(a));
  return expect(Tok::Greater, "'>'");
}

bool Parser::parse_hints(AttrId& out) {
  const bool outer = in_hints_;
  in_hints_ = true;
  const bool ok = parse_hints_inner(out);
  in_hints_ = outer;
  return ok;
}

// <sm_90 = {...}, default = {...}>; kNone for <>.
bool Parser::parse_hints_inner(AttrId& out) {
  out = kNone;
  if (!expect(Tok::Less, "'<'")) return false;
  if (accept(Tok::Greater)) return true;
  Attr hints{.tag = AttrTag::Dictionary};
  Keys keys;
  do {
    const Span where = span();
    StringId key = kNone;
    if (!parse_key(key, "a target like sm_90 or default")) return false;
    if (!keys.add(key)) return fail(Code::E0402, where, "hints for '" + std::string(m_.str(key)) + "' are given twice");
    if (!expect(Tok::Equal, "'='")) return false;
    if (!at(Tok::LBrace)) return unexpected("a dictionary {...} of hints");
    AttrValue value;
    if (!parse_attr(value)) return false;
    hints.entries.emplace_back(key, value.id);
  } while (accept(Tok::Comma));
  out = m_.attrs.add(std::move(hints));
  return expect(Tok::Greater, "'>'");
}

bool Parser::parse_string(StringId& out) {
  if (!at(Tok::String)) return unexpected("a string");
  out = m_.strings.add(unescape(text()));
  advance();
  return true;
}

bool Parser::parse_bool(bool& out) {
  out = at_word("true");
  if (!out && !at_word("false")) {
    alternative("true");
    alternative("false");
    return unexpected({});
  }
  advance();
  return true;
}

}  // namespace tile
