// What stands around operations: files, modules, aliases, globals, entries.
#include <algorithm>

#include "assembler/parser.h"

namespace tile {
namespace {

const std::vector<std::string_view>& all_op_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const OpDef& op : op_rows()) {
      all.push_back(op.name);
      if (!op.alias.empty()) all.push_back(op.alias);
    }
    return all;
  }();
  return names;
}

}  // namespace

std::string_view Parser::op_word() const {
  std::string_view word = text();
  if (word.starts_with("cuda_tile.")) word.remove_prefix(10);
  return word;
}

bool Parser::starts_item() const {
  if (!at(Tok::BareId)) return false;
  const std::string_view word = op_word();
  return word == "entry" || word == "global";
}

void Parser::unclosed(const Token& open) {
  unwinding_ = true;
  if ((at(Tok::End) && end_reported_) || braces_skipped_) return;
  end_reported_ = end_reported_ || at(Tok::End);
  op_.def = nullptr;
  fail_with_note(Code::E0305, {open.begin, open.length}, "the region that begins here is not closed",
                 at(Tok::End) ? Span{tok_.begin, 0} : span(),
                 at(Tok::End) ? "the file ends here" : "the next item begins here");
}

// The current word is no operation that may stand here.
bool Parser::misplaced_op(std::string_view word, std::string_view where) {
  op_.def = nullptr;
  if (find_op(word))
    return fail(Code::E0702, span(), "found " + found() + ", which is not allowed " + std::string(where));
  const std::string near = nearest(word, all_op_names());
  return fail(Code::E0303, span(), "there is no operation " + found(),
              near.empty() ? "" : "did you mean '" + near + "'?");
}

void Parser::top_level(bool nested) {
  while (!at(Tok::End) && !(nested && at(Tok::RBrace)) && !stopped()) {
    const Statement statement = begin_statement();
    if (!top_op(nested)) recover(Level::Top, statement);
  }
}

bool Parser::top_op(bool nested) {
  if (at(Tok::Hash) || at(Tok::Bang)) {
    if (nested)
      return fail(Code::E0302, span(), "an alias is defined inside of a module, expected at the top of the file");
    return alias_definition();
  }
  if (at(Tok::String)) return generic_item(false);
  if (!at(Tok::BareId)) return unexpected("a module, an entry, a global or an alias definition");
  if (at_word("module") || at_word("builtin.module")) return builtin_module();
  if (at_word("cuda_tile.module")) return cuda_module();
  if (starts_item()) {
    if (module_seen_) return fail(Code::E0702, span(), "found " + found() + " beside a module, expected inside of it");
    bare_items_ = true;
    return item();
  }
  return misplaced_op(op_word(), "outside of an entry");
}

// #name = attribute, !name = type
bool Parser::alias_definition() {
  const Token name_token = tok_;
  const std::string_view name = text().substr(1);
  if (name.find('.') != std::string_view::npos) return fail(Code::E0302, span(), "the name of an alias has a point");
  advance();
  const Span where{name_token.begin, name_token.length};
  if (name_token.kind == Tok::Bang) {
    TypeId type = kNone;
    if (!expect(Tok::Equal, "'='") || !parse_type(type)) return false;
    const auto [it, added] = type_aliases_.emplace(name, TypeAlias{type, where});
    return added || fail_with_note(Code::E0402, where, "!" + std::string(name) + " is defined again", it->second.name,
                                   "it is defined here");
  }
  if (const auto it = attr_aliases_.find(name); it != attr_aliases_.end()) {
    if (it->second.name.begin != name_token.begin)
      return fail_with_note(Code::E0402, where, "#" + std::string(name) + " is defined again", it->second.name,
                            "it is defined here");
    if (it->second.broken) return false;
    restart(it->second.end);  // read ahead already
    return true;
  }
  return read_alias(name, where, false);
}

bool Parser::builtin_module() {
  if (top_depth_ >= kMaxModuleDepth) return too_deep(span(), "modules", kMaxModuleDepth);
  advance();
  if (at(Tok::Symbol)) advance();
  if (!module_attributes(false)) return false;
  const Token open = tok_;
  LocId ignored = kUnknownLoc;
  if (!expect(Tok::LBrace, "'{'")) return false;
  ++top_depth_;
  top_level(true);
  --top_depth_;
  if (stopped()) return true;
  if (!at(Tok::RBrace)) {
    unclosed(open);
    return true;
  }
  advance();
  return parse_trailing_location(ignored);
}

bool Parser::cuda_module() {
  if (module_seen_ || bare_items_) return fail(Code::E0702, span(), "found a second module, expected one in a file");
  module_seen_ = true;
  advance();
  if (!at(Tok::Symbol)) return unexpected("a name like @kernels");
  m_.name = m_.strings.add(unescape(text().substr(1)));
  advance();
  if (!module_attributes(true)) return false;
  const Token open = tok_;
  return expect(Tok::LBrace, "'{'") && module_items(open);
}

bool Parser::module_items(const Token& open) {
  while (!at(Tok::RBrace) && !stopped()) {
    if (at(Tok::End)) {
      unclosed(open);
      return true;
    }
    const Statement statement = begin_statement();
    bool ok = false;
    if (starts_item()) {
      ok = item();
    } else if (at(Tok::String)) {
      ok = generic_item(true);
    } else if (at(Tok::BareId)) {
      ok = misplaced_op(op_word(), "directly inside of a module");
    } else {
      ok = unexpected("entry, global or '}'");
    }
    if (!ok) recover(Level::Module, statement);
  }
  if (stopped()) return true;
  advance();
  LocId ignored = kUnknownLoc;
  return parse_trailing_location(ignored);
}

bool Parser::module_attributes(bool cuda) {
  if (!accept_word("attributes")) return true;
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  for (const auto& [key, value] : entries) {
    const std::string_view name = m_.str(key);
    if (cuda && name == "producer") {
      if (value.kind != AttrValue::Kind::Attr || m_.attrs.get(value.id).tag != AttrTag::String)
        return fail(Code::E0601, value.span, "the producer is no string");
      m_.producer = m_.attrs.get(value.id).string;
    } else {
      diags_.warn(place(value.span),
                  "attribute '" + std::string(name) + "' of a module has no meaning and is not kept");
    }
  }
  return true;
}

bool Parser::item() {
  const bool is_entry = op_word() == "entry";
  unwinding_ = braces_skipped_ = false;
  advance();
  return is_entry ? entry() : global();
}

// global private constant @name alignment = 16 <i8: 0> : tile<4xi8>
bool Parser::global() {
  const OpDef& def = op_def(Opcode::Global);
  op_.def = &def;
  Global g;
  LocId loc = kUnknownLoc;
  alternatives(EnumKind::Visibility);
  if (at(Tok::BareId)) {
    if (const auto visibility = enum_value(EnumKind::Visibility, text())) {
      g.visibility = *visibility;
      advance();
    }
  }
  g.constant = accept_word("constant");
  if (!at(Tok::Symbol)) return unexpected("a name like @lut");
  g.span = span();
  g.name = m_.strings.add(unescape(text().substr(1)));
  advance();
  if (accept_word("alignment")) {
    int64_t alignment = 0;
    if (!expect(Tok::Equal, "'='") || !parse_sint(alignment, 0)) return false;
    g.alignment = static_cast<uint64_t>(alignment);
  }
  if (at(Tok::LBrace) && !global_attributes(g)) return false;
  if (!parse_dense(g.value)) return false;
  const uint32_t loc_begin = tok_.begin;
  return parse_trailing_location(loc) && add_global(g, loc, span_from(loc_begin));
}

bool Parser::add_global(const Global& g, LocId loc, Span loc_span) {
  if (m_.locs.scope_of(loc) != kNone)
    return fail(Code::E0706, loc_span, in_op("the location of a global has a debug scope, expected none"));
  m_.order.push_back(static_cast<uint32_t>(m_.globals.size()) | Module::kGlobalBit);
  m_.globals.push_back(g);
  return true;
}

bool Parser::global_attributes(Global& g) {
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  for (const auto& [key, value] : entries)
    if (!global_attribute(g, m_.str(key), value)) return false;
  return true;
}

bool Parser::global_attribute(Global& g, std::string_view name, const AttrValue& value) {
  if (name == "symbol_visibility" && value.kind == AttrValue::Kind::Enum && value.enum_kind == EnumKind::Visibility) {
    g.visibility = value.id;
  } else if (name == "constant" && value.kind == AttrValue::Kind::Unit) {
    g.constant = true;
  } else if (name == "alignment" && value.kind == AttrValue::Kind::Attr &&
             m_.attrs.get(value.id).tag == AttrTag::Integer) {
    g.alignment = m_.attrs.get(value.id).bits;
  } else if (attr_index(op_def(Opcode::Global), name) >= 0) {
    return fail(Code::E0601, value.span, in_op("'" + std::string(name) + "' cannot have this value"));
  } else {
    diags_.warn(place(value.span), in_op("attribute '" + std::string(name) + "' has no meaning and is not kept"));
  }
  return true;
}

// (%a: tile<i32> {attribute} loc(...), ...)
bool Parser::parse_args(std::vector<Arg>& args, bool names_optional) {
  if (!expect(Tok::LParen, "'('")) return false;
  if (accept(Tok::RParen)) return true;
  do {
    Arg& arg = args.emplace_back();
    LocId ignored = kUnknownLoc;
    if (at(Tok::Value)) {
      arg.span = span();
      arg.name = name_id(tok_);
      advance();
      if (!expect(Tok::Colon, "':'")) return false;
    } else if (!names_optional) {
      return unexpected("an argument name");
    }
    if (!parse_type(arg.type)) return false;
    if (at(Tok::LBrace) && !parse_dict_attr(arg.attrs)) return false;
    if (!parse_trailing_location(ignored)) return false;
  } while (accept(Tok::Comma));
  return expect(Tok::RParen, "')'");
}

bool Parser::entry() {
  op_.def = &op_def(Opcode::Entry);
  if (!at(Tok::Symbol)) return unexpected("a name like @kernel");
  Function f;
  f.name_span = span();
  f.name = m_.strings.add(unescape(text().substr(1)));
  advance();
  std::vector<Arg> args;
  if (!parse_args(args, true)) return false;
  if (accept(Tok::Arrow)) {
    if (!at(Tok::LParen) || peek().kind != Tok::RParen)
      return fail(Code::E0704, span(), in_op("the entry has results, expected none"));
    advance();
    advance();
  }
  if (accept_word("optimization_hints") && (!expect(Tok::Equal, "'='") || !parse_hints(f.hints))) return false;
  if (!at(Tok::LBrace)) return unexpected("'{'");
  return entry_body(f, args, Opcode::Return, nullptr);
}

// At the brace. `item`: in generic form, whose attributes may stand behind the body.
bool Parser::entry_body(Function& f, const std::vector<Arg>& args, Opcode implicit, GenericItem* item) {
  std::vector<TypeId> types;
  bool with_attrs = false;
  for (const Arg& a : args) {
    types.push_back(a.type);
    with_attrs = with_attrs || (a.attrs != kNone && !m_.attrs.get(a.attrs).entries.empty());
  }
  if (with_attrs) {
    std::vector<AttrId> dicts;
    for (const Arg& a : args) dicts.push_back(a.attrs != kNone ? a.attrs : m_.attrs.add({.tag = AttrTag::Dictionary}));
    f.arg_attrs = m_.attrs.array(std::move(dicts));
  }
  FunctionBuilder builder(f, types);
  builder_ = &builder;
  function_ = &f;
  const size_t mark = scope_mark();
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == kNone) continue;
    const ValueId value = builder.param(static_cast<uint32_t>(i));
    define(args[i].name, args[i].span, value, 1);
    builder.name_value(value, args[i].name);
    builder.value_span(value, args[i].span);
  }
  bool ok = parse_body(implicit);
  scope_restore(mark);
  op_.def = &op_def(Opcode::Entry);
  ok = ok && (unwinding_ || (item ? generic_entry_end(f, args, *item)
                                  : entry_attributes(f) && parse_trailing_location(f.loc)));
  unwinding_ = false;
  builder_ = nullptr;
  function_ = nullptr;
  regions_end_.clear();
  if (!ok || stopped()) return ok;
  builder.finish();
  // Region operations carry their dictionary behind the region and so add it late.
  std::stable_sort(f.extra_attrs.begin(), f.extra_attrs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  m_.order.push_back(static_cast<uint32_t>(m_.functions.size()));
  m_.functions.push_back(std::move(f));
  return true;
}

bool Parser::entry_attributes(Function& f) {
  if (!at(Tok::LBrace)) return true;
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  for (const auto& [key, value] : entries) {
    const std::string_view name = m_.str(key);
    if (name == "optimization_hints") {
      if (value.kind != AttrValue::Kind::Attr || m_.attrs.get(value.id).tag != AttrTag::Dictionary)
        return fail(Code::E0601, value.span, in_op("'optimization_hints' cannot have this value"));
      if (f.hints != kNone) return fail(Code::E0402, value.span, in_op("'optimization_hints' is given twice"));
      f.hints = value.id;
    } else {
      diags_.warn(place(value.span), in_op("attribute '" + std::string(name) + "' has no meaning and is not kept"));
    }
  }
  return true;
}

}  // namespace tile
