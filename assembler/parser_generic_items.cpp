// Modules, entries and globals in generic form: "cuda_tile.entry"() <{sym_name = "k"}> ({ ^bb0(...): ... }) : () -> ().
#include "assembler/parser.h"

namespace tile {

// The value of attribute `name`, out of those before and behind the regions; null if it is not there.
const Parser::AttrValue* Parser::generic_attr(const GenericItem& item, std::string_view name) const {
  for (const auto& [key, value] : item.attrs)
    if (m_.str(key) == name) return &value;
  return nullptr;
}

bool Parser::generic_string(const GenericItem& item, std::string_view name, bool required, StringId& out) {
  const AttrValue* value = generic_attr(item, name);
  if (!value) return !required || fail(Code::E0602, item.name, in_op("'" + std::string(name) + "' is missing"));
  if (value->kind != AttrValue::Kind::Attr || m_.attrs.get(value->id).tag != AttrTag::String)
    return fail(Code::E0601, value->span, in_op("'" + std::string(name) + "' is no string"));
  out = m_.attrs.get(value->id).string;
  return true;
}

// Attributes may stand in front of the regions and behind them, each once.
bool Parser::generic_attrs(GenericItem& item) {
  const size_t before = item.attrs.size();
  if (!parse_dict(item.attrs)) return false;
  for (size_t i = before; i < item.attrs.size(); ++i)
    for (size_t k = 0; k < before; ++k)
      if (item.attrs[i].first == item.attrs[k].first)
        return fail(Code::E0402, item.attrs[i].second.span,
                    "'" + std::string(m_.str(item.attrs[i].first)) + "' is given twice");
  return true;
}

// Behind the region: [dict] : () -> () [loc]
bool Parser::generic_tail(GenericItem& item) {
  if (at(Tok::LBrace) && !generic_attrs(item)) return false;
  return expect(Tok::Colon, "':'") && expect(Tok::LParen, "'('") && expect(Tok::RParen, "')'") &&
         expect(Tok::Arrow, "'->'") && expect(Tok::LParen, "'('") && expect(Tok::RParen, "')'") &&
         parse_trailing_location(item.loc);
}

// At the name.
bool Parser::generic_item(bool in_module) {
  const std::string word = unescape(text());
  const std::string_view plain = std::string_view(word).substr(word.starts_with("cuda_tile.") ? 10 : word.size());
  const OpDef* def = find_op(plain);
  const bool wrapper = word == "builtin.module";
  if (!def && !wrapper) return fail(Code::E0303, span(), "there is no operation " + std::string(text()));
  const bool module = def == &op_def(Opcode::Module);
  if ((def && def->effect != Effect::Symbol) || (in_module && (wrapper || module)))
    return fail(Code::E0702, span(),
                "found " + std::string(text()) + ", which is not allowed " +
                    (in_module ? "directly inside of a module" : "outside of an entry"));
  if (module && (module_seen_ || bare_items_))
    return fail(Code::E0702, span(), "found a second module, expected one in a file");
  if (!wrapper && !module && !in_module) {
    if (module_seen_)
      return fail(Code::E0702, span(), "found " + std::string(text()) + " beside a module, expected inside of it");
    bare_items_ = true;
  }
  if (wrapper && top_depth_ >= kMaxModuleDepth) return too_deep(span(), "modules", kMaxModuleDepth);
  GenericItem item;
  item.name = span();
  op_.def = def;
  unwinding_ = braces_skipped_ = false;
  advance();
  if (!expect(Tok::LParen, "'('") || !expect(Tok::RParen, "')'")) return false;
  if (accept(Tok::Less) && (!generic_attrs(item) || !expect(Tok::Greater, "'>'"))) return false;
  if (wrapper) return generic_module(item, nullptr);
  if (module) return generic_module(item, def);
  return def->regions > 0 ? generic_entry(item) : generic_global(item);
}

// ({ [^bb0:] items }) ...
bool Parser::generic_module(GenericItem& item, const OpDef* def) {
  module_seen_ = module_seen_ || def;
  if (!expect(Tok::LParen, "'('")) return false;
  const Token open = tok_;
  if (!expect(Tok::LBrace, "'{'")) return false;
  if (accept(Tok::Caret) && !expect(Tok::Colon, "':'")) return false;
  if (def) {
    if (!module_items(open)) return false;
  } else {
    ++top_depth_;
    top_level(true);
    --top_depth_;
    if (!stopped() && !at(Tok::RBrace)) unclosed(open);
    if (at(Tok::RBrace)) advance();
  }
  op_.def = def;
  if (stopped() || at(Tok::End)) return true;
  if (!expect(Tok::RParen, "')'") || !generic_tail(item)) return false;
  if (!def) return true;
  for (const auto& [key, value] : item.attrs)
    if (attr_index(*def, m_.str(key)) < 0)
      diags_.warn(place(value.span),
                  "attribute '" + std::string(m_.str(key)) + "' of a module has no meaning and is not kept");
  return generic_string(item, "sym_name", true, m_.name) && generic_string(item, "producer", false, m_.producer);
}

bool Parser::generic_global(GenericItem& item) {
  if (!generic_tail(item)) return false;
  Global g;
  g.span = item.name;
  if (!generic_string(item, "sym_name", true, g.name)) return false;
  const AttrValue* value = generic_attr(item, "value");
  if (!value) return fail(Code::E0602, item.name, in_op("'value' is missing"));
  if (value->kind != AttrValue::Kind::Attr || m_.attrs.get(value->id).tag != AttrTag::Dense)
    return fail(Code::E0601, value->span, in_op("'value' is no dense constant"));
  g.value = value->id;
  for (const auto& [key, attr] : item.attrs)
    if (m_.str(key) != "sym_name" && m_.str(key) != "value" && !global_attribute(g, m_.str(key), attr)) return false;
  return add_global(g, item.loc, item.name);
}

bool Parser::generic_entry(GenericItem& item) {
  if (!expect(Tok::LParen, "'('")) return false;
  Function f;
  f.name_span = item.name;
  if (!at(Tok::LBrace)) return unexpected("'{'");
  // The body is read from its brace on, which a label has been read behind then.
  const Token open = tok_;
  std::vector<Arg> args;
  advance();
  if (accept(Tok::Caret) && ((at(Tok::LParen) && !parse_args(args, false)) || !expect(Tok::Colon, "':'"))) return false;
  lexer_.seek(tok_.begin);
  tok_ = open;
  --open_braces_;
  return entry_body(f, args, Opcode::Module, &item);
}

// What stands behind the body, and what all attributes together say about the entry.
bool Parser::generic_entry_end(Function& f, const std::vector<Arg>& args, GenericItem& item) {
  if (!expect(Tok::RParen, "')'") || !generic_tail(item) || !generic_string(item, "sym_name", true, f.name))
    return false;
  f.loc = item.loc;
  for (const auto& [key, value] : item.attrs) {
    const std::string_view name = m_.str(key);
    const Attr* a = value.kind == AttrValue::Kind::Attr ? &m_.attrs.get(value.id) : nullptr;
    const Span where = value.span;
    const auto wrong = [this, name, where] {
      return fail(Code::E0601, where, in_op("'" + std::string(name) + "' cannot have this value"));
    };
    if (name == "sym_name") continue;
    if (name == "function_type") {
      if (!a || a->tag != AttrTag::Type || m_.types.get(a->type).kind != TypeKind::Function) return wrong();
      const Type& type = m_.types.get(a->type);
      if (!type.results.empty()) return fail(Code::E0704, value.span, in_op("the entry has results, expected none"));
      bool same = type.params.size() == args.size();
      for (size_t i = 0; same && i < args.size(); ++i) same = type.params[i] == args[i].type;
      if (!same)
        return fail(Code::E0501, value.span, in_op("'function_type' is not that of the arguments of the block"));
    } else if (name == "optimization_hints") {
      if (!a || a->tag != AttrTag::Dictionary) return wrong();
      f.hints = value.id;
    } else if (name == "arg_attrs") {
      bool fits = a && a->tag == AttrTag::Array && (a->items.empty() || a->items.size() == args.size());
      for (size_t i = 0; fits && i < a->items.size(); ++i) fits = m_.attrs.get(a->items[i]).tag == AttrTag::Dictionary;
      if (!fits) return wrong();
      bool any = false;
      for (const AttrId dict : a->items) any = any || !m_.attrs.get(dict).entries.empty();
      if (any) f.arg_attrs = value.id;
    } else {
      diags_.warn(place(value.span), in_op("attribute '" + std::string(name) + "' has no meaning and is not kept"));
    }
  }
  return true;
}

// (types) -> type, (types) -> (types)
bool Parser::parse_function_type(AttrId& out) {
  Type t;
  t.kind = TypeKind::Function;
  std::vector<Span> ignored;
  const auto list = [&](std::vector<TypeId>& types) {
    return expect(Tok::LParen, "'('") &&
           (accept(Tok::RParen) || (parse_type_list(types, ignored) && expect(Tok::RParen, "')'")));
  };
  if (!list(t.params) || !expect(Tok::Arrow, "'->'")) return false;
  if (at(Tok::LParen) ? !list(t.results) : !parse_type(t.results.emplace_back())) return false;
  out = m_.attrs.add({.tag = AttrTag::Type, .type = m_.types.add(t)});
  return true;
}

}  // namespace tile
