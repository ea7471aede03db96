// Attributes of operations: the words of the format, dictionaries, defaults.
#include <algorithm>

#include "assembler/parser.h"

namespace tile {

void Parser::mark_attr(size_t index, uint32_t word, Span where) {
  op_.attrs[index] = word;
  op_.attr_spans[index] = where;
  op_.attr_set[index] = true;
}

AttrId Parser::int_attr(const AttrDef& def, int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  if (def.int_bits == 32) return m_.attrs.integer(element_type(ElementType::I32), bits & 0xFFFFFFFFu);
  return m_.attrs.integer(element_type(ElementType::I64), bits);
}

bool Parser::walk_attr(size_t index) {
  const AttrDef& def = op_.def->attrs[index];
  const uint32_t begin = tok_.begin;
  uint32_t word = kNone;
  if (op_.attr_set[index]) return fail(Code::E0402, span(), in_op("'" + std::string(def.name) + "' is given twice"));
  if (def.kind == AttrKind::Enum) {
    alternatives(def.enum_kind);
    const std::optional<uint32_t> value = at(Tok::BareId) ? enum_value(def.enum_kind, text()) : std::nullopt;
    if (!value) {
      if (def.optional) return true;
      return unexpected({}, at(Tok::BareId) || at(Tok::Error) ? Code::E0302 : Code::E0602);
    }
    word = *value;
    advance();
  } else if (!parse_attr_word(def, word)) {
    return false;
  }
  mark_attr(index, word, span_from(begin));
  return true;
}

// What the format says about an attribute that is no word.
bool Parser::parse_attr_word(const AttrDef& def, uint32_t& word) {
  switch (def.kind) {
    case AttrKind::Unit:
    case AttrKind::Enum:
      return unexpected("'" + std::string(def.name) + "'");
    case AttrKind::Int: {
      int64_t value = 0;
      if (!(def.int_bits == 32 ? parse_sint(value, INT32_MIN, INT32_MAX) : parse_sint(value))) return false;
      word = int_attr(def, value);
      return true;
    }
    case AttrKind::Bool: {
      bool value = false;
      if (!parse_bool(value)) return false;
      word = value ? 1 : 0;
      return true;
    }
    case AttrKind::String:
      return parse_string(word);
    case AttrKind::Symbol:
      if (!at(Tok::Symbol)) return unexpected("a name like @lut");
      word = m_.strings.add(unescape(text().substr(1)));
      advance();
      return true;
    case AttrKind::Dense:
      return parse_dense(word);
    case AttrKind::I32Array: {
      std::vector<int64_t> values;
      const Span where = span();
      if (!parse_sint_list(values)) return false;
      for (const int64_t v : values)
        if (v < INT32_MIN || v > INT32_MAX)
          return fail(Code::E0304, where, in_op("found " + std::to_string(v) + ", which does not fit 32 bits"));
      word = m_.attrs.ints(AttrTag::I32Array, std::move(values));
      return true;
    }
    case AttrKind::BoolArray: {
      std::vector<int64_t> values;
      if (!expect(Tok::LBracket, "'['")) return false;
      if (!at(Tok::RBracket)) {
        do {
          bool value = false;
          if (!parse_bool(value)) return false;
          values.push_back(value ? 1 : 0);
        } while (accept(Tok::Comma));
      }
      const bool any = std::find(values.begin(), values.end(), 1) != values.end();
      word = any ? m_.attrs.ints(AttrTag::BoolArray, std::move(values)) : kNone;
      return expect(Tok::RBracket, "']'");
    }
    case AttrKind::AttrArray: {
      std::vector<AttrId> items;
      if (!parse_array_attr(items)) return false;
      word = m_.attrs.array(std::move(items));
      return true;
    }
    case AttrKind::Hints:
      if (!parse_hints(word)) return false;
      // Binary forms tell an empty dictionary of an operation from none.
      if (word == kNone) word = m_.attrs.add({.tag = AttrTag::Dictionary});
      return true;
    case AttrKind::Predicate:
      return parse_predicate(word);
  }
  return false;
}

// At the brace. Names of the row's attributes set them, others are kept. `inst` is an operation that is emitted
// already.
bool Parser::parse_op_dict(InstId inst) {
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  for (const auto& [key, value] : entries) {
    if (const int index = attr_index(*op_.def, m_.str(key)); index >= 0) {
      if (!set_attr(static_cast<size_t>(index), value, inst)) return false;
      continue;
    }
    AttrId id = kNone;
    if (!to_attr(value, id)) return false;
    op_.extra.emplace_back(key, id);
  }
  if (inst != kNone) add_extra(inst);
  return true;
}

bool Parser::set_attr(size_t index, const AttrValue& value, InstId inst) {
  const AttrDef& def = op_.def->attrs[index];
  const bool given =
      inst == kNone ? op_.attr_set[index] : function_->word_spans[function_->attr_word(inst) + index].valid();
  if (given) return fail(Code::E0402, value.span, in_op("'" + std::string(def.name) + "' is given twice"));
  uint32_t word = kNone;
  if (!attr_word(def, value, word))
    return fail(Code::E0601, value.span, in_op("'" + std::string(def.name) + "' cannot have this value"));
  if (inst == kNone) {
    mark_attr(index, word, value.span);
  } else {
    const uint32_t at = function_->attr_word(inst) + static_cast<uint32_t>(index);
    function_->words[at] = word;
    function_->word_spans[at] = value.span;
  }
  return true;
}

// The word of an attribute of the row from a value in a dictionary; false if the kinds differ.
bool Parser::attr_word(const AttrDef& def, const AttrValue& value, uint32_t& word) {
  using Kind = AttrValue::Kind;
  word = value.id;
  if (value.kind == Kind::Enum) return def.kind == AttrKind::Enum && value.enum_kind == def.enum_kind;
  if (value.kind == Kind::Symbol) return def.kind == AttrKind::Symbol;
  if (value.kind == Kind::Unit) {
    word = 1;
    return def.kind == AttrKind::Unit;
  }
  if (value.kind != Kind::Attr) return false;
  const Attr& a = m_.attrs.get(value.id);
  switch (def.kind) {
    case AttrKind::Enum:
      word = static_cast<uint32_t>(a.bits);
      return a.tag == AttrTag::Integer && a.bits < enum_info(def.enum_kind).values.size();
    case AttrKind::Int: {
      if (a.tag != AttrTag::Integer) return false;
      const unsigned width = info(m_.types.get(a.type).element).bits;
      const int64_t number =
          width == 64 ? static_cast<int64_t>(a.bits) : static_cast<int64_t>(a.bits << (64 - width)) >> (64 - width);
      if (def.int_bits == 32 && (number < INT32_MIN || number > INT32_MAX)) return false;
      word = int_attr(def, number);
      return true;
    }
    case AttrKind::Bool:
      word = static_cast<uint32_t>(a.bits);
      return a.tag == AttrTag::Bool;
    case AttrKind::String:
      word = a.string;
      return a.tag == AttrTag::String;
    case AttrKind::Dense:
      return a.tag == AttrTag::Dense;
    case AttrKind::I32Array:
      return a.tag == AttrTag::I32Array;
    case AttrKind::BoolArray:
      if (a.tag == AttrTag::BoolArray && std::find(a.ints.begin(), a.ints.end(), 1) == a.ints.end()) word = kNone;
      return a.tag == AttrTag::BoolArray;
    case AttrKind::AttrArray:
      return a.tag == AttrTag::Array;
    case AttrKind::Hints:
      return a.tag == AttrTag::Dictionary;
    case AttrKind::Predicate:
      return a.tag == AttrTag::DivBy || a.tag == AttrTag::SameElements || a.tag == AttrTag::Bounded;
    case AttrKind::Unit:
    case AttrKind::Symbol:
      return false;
  }
  return false;
}

bool Parser::default_attrs() {
  for (size_t i = 0; i < op_.def->attrs.size(); ++i) {
    if (op_.attr_set[i]) continue;
    const AttrDef& def = op_.def->attrs[i];
    uint32_t& word = op_.attrs[i];
    if (def.optional) {
      word = kNone;
    } else if (def.kind == AttrKind::Unit) {
      word = 0;
    } else if (def.def == kRequired) {
      return fail(Code::E0602, op_.mnemonic, in_op("'" + std::string(def.name) + "' is missing"));
    } else if (def.kind == AttrKind::Int) {
      word = int_attr(def, def.def);
    } else if (def.kind == AttrKind::BoolArray) {
      word = kNone;
    } else {
      word = static_cast<uint32_t>(def.def);
    }
  }
  return true;
}

}  // namespace tile
