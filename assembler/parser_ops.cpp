// Operations: bodies of regions, and the walk over a row's format.
#include <algorithm>

#include "assembler/parser.h"

namespace tile {

// At the brace; what is defined inside is forgotten behind it.
bool Parser::parse_body(Opcode implicit) {
  if (region_depth_ >= kMaxRegionDepth) return too_deep(span(), "regions", kMaxRegionDepth);
  ++region_depth_;
  const Token open = tok_;
  const size_t mark = scope_mark();
  advance();
  bool terminated = false;
  while (!at(Tok::RBrace)) {
    if (stopped()) break;
    if (at(Tok::End) || (tok_.first_on_line && starts_item())) {
      unclosed(open);
      break;
    }
    const Statement statement = begin_statement();
    if (!parse_op(terminated)) {
      recover(Level::Body, statement);
      terminated = true;
    }
    if (unwinding_) break;
  }
  scope_restore(mark);
  --region_depth_;
  if (stopped() || unwinding_) return true;
  if (!terminated && implicit != Opcode::Module) {
    OpSpans spans;
    spans.op = span();
    (void)builder_->op({.op = implicit}, &spans);
  }
  advance();
  return true;
}

bool Parser::parse_op(bool& terminator) {
  const size_t base = names_.size();
  terminator = false;
  op_.def = nullptr;
  const auto give_up = [&] {
    drop_results(base);
    return false;
  };
  if (at(Tok::Value) && !parse_result_names()) return give_up();
  if (at(Tok::String)) {
    const bool ok = parse_generic(base);
    terminator = op_.def && op_.def->terminator;
    return ok || give_up();
  }
  if (!at(Tok::BareId)) {
    unexpected("an operation");
    return give_up();
  }
  const std::string_view word = op_word();
  const OpDef* def = known_op(word);
  if (!def || def->effect == Effect::Symbol) {
    misplaced_op(word, "inside of an entry");
    return give_up();
  }
  start_op(*def, span(), word);
  terminator = def->terminator;
  advance();
  const std::vector<FormatNode>& format = op_format(*def);
  if (format.front().kind == FormatNode::Kind::Custom) return parse_custom(base) || give_up();
  InstId inst = kNone;
  if (!walk(format) || !parse_trailing_location(op_.loc) || !infer_results() || !default_attrs()) return give_up();
  if (!check_count(base)) {
    drop_results(base);
    return true;
  }
  if (!emit(base, inst)) return give_up();
  name_results(base, inst);
  return true;
}

const OpDef* Parser::known_op(std::string_view word) {
  const uint32_t code = ops_by_text_.find(word);
  if (code != TextMap::kMissing) return find_op(code);
  const OpDef* def = find_op(word);
  if (def) ops_by_text_.insert(word, def->code);
  return def;
}

void Parser::start_op(const OpDef& def, Span mnemonic, std::string_view word) {
  op_.def = &def;
  op_.mnemonic = mnemonic;
  op_.by_alias = word != def.name;
  op_.operands.clear();
  op_.attr_set.fill(false);
  op_.attr_spans.fill(Span{});
  op_.results.assign(def.results.size(), kNone);
  op_.extra.clear();
  op_.loc = kUnknownLoc;
}

size_t Parser::group_count(int group) const {
  return static_cast<size_t>(
      std::count_if(op_.operands.begin(), op_.operands.end(), [&](const Operand& o) { return o.group == group; }));
}

bool Parser::walk(const std::vector<FormatNode>& nodes) {
  using Kind = FormatNode::Kind;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const FormatNode& node = nodes[i];
    bool ok = true;
    switch (node.kind) {
      case Kind::Literal:
        if (text() == node.text) {
          advance();
        } else if (op_.by_alias && node.text == "->" && i + 1 < nodes.size() && nodes[i + 1].kind == Kind::Type &&
                   nodes[i + 1].targets[0].is_result &&
                   op_.def->results[static_cast<size_t>(nodes[i + 1].targets[0].index)].since > op_.def->since) {
          op_.results.clear();  // under its older name an operation may lack the result that it did not have then
          return true;
        } else {
          ok = unexpected("'" + node.text + "'");
        }
        break;
      case Kind::Operand:
        ok = walk_operand(node);
        break;
      case Kind::Attr:
        if (op_.def->attrs[static_cast<size_t>(node.index)].kind == AttrKind::Unit) {
          ok = walk_units(nodes, i);
        } else {
          ok = walk_attr(static_cast<size_t>(node.index));
        }
        break;
      case Kind::Group:
        ok = walk_group(node);
        break;
      case Kind::Type:
        ok = walk_type(node);
        break;
      case Kind::Types:
        ok = walk_types(node);
        break;
      case Kind::IndexTypes:
        ok = walk_index_types(node);
        break;
      case Kind::Dict:
        ok = !at(Tok::LBrace) || parse_op_dict();
        break;
      case Kind::Attributes:
        ok = !accept_word("attributes") || parse_op_dict();
        break;
      case Kind::Custom:
        break;
    }
    if (!ok) return false;
  }
  return true;
}

bool Parser::walk_group(const FormatNode& group) {
  const FormatNode& first = group.children.front();
  bool present = false;
  if (first.kind == FormatNode::Kind::Literal) {
    present = text() == first.text;
    if (!present) alternative(first.text);
  } else {
    present = at(Tok::Value) && !(tok_.first_on_line && definition_ahead());
  }
  if (present) return walk(group.children);
  // The types of operands that are there cannot be left out.
  for (const FormatNode& child : group.children) {
    if (child.kind == FormatNode::Kind::Types && group_count(child.index) > 0) return unexpected({});
    if (child.kind != FormatNode::Kind::Type) continue;
    for (const FormatNode::Target& t : child.targets)
      if (!t.is_result && group_count(t.index) > 0 &&
          op_.def->operands[static_cast<size_t>(t.index)].kind != ValueKind::Token)
        return unexpected("the type of " + std::string(op_.def->operands[static_cast<size_t>(t.index)].name));
  }
  return true;
}

// True if `%a, %b:2 =` begins here: behind a terminator the next line is no operand list.
bool Parser::definition_ahead() {
  Lexer lexer = lexer_;
  for (;;) {
    Token t = lexer.next();
    if (t.kind == Tok::Equal) return true;
    if (t.kind == Tok::Colon) return lexer.next().kind == Tok::Int;
    if (t.kind != Tok::Comma || lexer.next().kind != Tok::Value) return false;
  }
}

// Neighbouring unit attributes stand in any order, each at most once.
bool Parser::walk_units(const std::vector<FormatNode>& nodes, size_t& i) {
  const auto is_unit = [&](const FormatNode& n) {
    return n.kind == FormatNode::Kind::Attr && op_.def->attrs[static_cast<size_t>(n.index)].kind == AttrKind::Unit;
  };
  size_t end = i;
  while (end < nodes.size() && is_unit(nodes[end])) ++end;
  for (bool again = true; again;) {
    again = false;
    for (size_t k = i; k < end; ++k) {
      const size_t attr = static_cast<size_t>(nodes[k].index);
      if (op_.attr_set[attr]) continue;
      const Span where = span();
      if (!accept_word(op_.def->attrs[attr].name)) continue;
      mark_attr(attr, 1, where);
      again = true;
    }
  }
  i = end - 1;
  return true;
}

bool Parser::walk_operand(const FormatNode& node) {
  const uint8_t group = static_cast<uint8_t>(node.index);
  const Arity arity = op_.def->operands[group].arity;
  if (arity == Arity::Variadic) {
    if (at(Tok::Value)) return parse_operands(group);
    alternative("%");
    return true;
  }
  Operand& o = op_.operands.emplace_back();
  o.group = group;
  return parse_operand(o);
}

bool Parser::check_type(const Operand& operand, TypeId written, Span where) {
  if (operand.type == kNone || operand.type == written) return true;
  const std::string name(lexer_.text().substr(operand.span.begin, operand.span.length));
  const Span note = operand.value < function_->value_spans.size() ? function_->value_spans[operand.value] : Span{};
  return fail_with_note(
      Code::E0501, where,
      in_op("found type " + type_text(written) + ", expected " + type_text(operand.type) + ", the type of " + name),
      note, name + " is defined here");
}

bool Parser::walk_type(const FormatNode& node) {
  const uint32_t begin = tok_.begin;
  TypeId type = kNone;
  if (!parse_type(type)) return false;
  const Span where = span_from(begin);
  bool reported = false;
  for (const FormatNode::Target& t : node.targets) {
    if (t.is_result) {
      op_.results[static_cast<size_t>(t.index)] = type;
      continue;
    }
    bool any = false;
    for (const Operand& o : op_.operands) {
      if (o.group != t.index) continue;
      any = true;
      if (!reported) reported = !check_type(o, type, where);
    }
    if (!any)
      return fail(Code::E0507, where,
                  in_op("found a type for " + std::string(op_.def->operands[static_cast<size_t>(t.index)].name) +
                        ", which is absent"));
  }
  return true;
}

bool Parser::walk_types(const FormatNode& node) {
  std::vector<TypeId> types;
  std::vector<Span> spans;
  if (!parse_type_list(types, spans)) return false;
  const size_t count = group_count(node.index);
  if (types.size() != count) {
    const Span all{spans.front().begin, spans.back().begin + spans.back().length - spans.front().begin};
    return fail(Code::E0507, all, in_op(wrong_count(types.size(), count, "operands")));
  }
  size_t i = 0;
  for (const Operand& o : op_.operands)
    if (o.group == node.index) {
      (void)check_type(o, types[i], spans[i]);
      ++i;
    }
  return true;
}

// ", T" for all indices together or for each of them.
bool Parser::walk_index_types(const FormatNode& node) {
  const size_t count = group_count(node.index);
  if (count == 0) return true;
  if (!at(Tok::Comma)) return unexpected("',' and the type of the indices");
  std::vector<TypeId> types;
  std::vector<Span> spans;
  while (at(Tok::Comma) && types.size() < count) {
    // A token type belongs to what follows: indices are never tokens.
    if (const Token following = peek();
        !types.empty() && (lexer_.text(following) == "token" || lexer_.text(following) == "!cuda_tile.token"))
      break;
    advance();
    const uint32_t begin = tok_.begin;
    if (!parse_type(types.emplace_back())) return false;
    spans.push_back(span_from(begin));
  }
  if (types.size() != 1 && types.size() != count) {
    const Span all{spans.front().begin, spans.back().begin + spans.back().length - spans.front().begin};
    return fail(
        Code::E0507, all,
        in_op("found " + std::to_string(types.size()) + " index types, expected 1 or " + std::to_string(count)));
  }
  size_t i = 0;
  for (const Operand& o : op_.operands) {
    if (o.group != node.index) continue;
    if (!check_type(o, types[i], spans[i]) && types.size() == 1) break;
    if (types.size() > 1) ++i;
  }
  return true;
}

// Types that are not written: tokens, and those that a rule makes equal to an operand's.
bool Parser::infer_results() {
  const OpDef& def = *op_.def;
  for (size_t r = 0; r < op_.results.size() && r < def.results.size(); ++r) {
    if (op_.results[r] != kNone || def.results[r].arity == Arity::Variadic) continue;
    if (def.results[r].kind == ValueKind::Token) {
      op_.results[r] = token_type();
      continue;
    }
    for (const Rule& rule : def.rules) {
      if (rule.kind != RuleKind::SameType ||
          std::find(rule.at.begin(), rule.at.end(), def.results[r].name) == rule.at.end())
        continue;
      for (const std::string_view name : rule.at)
        for (const Operand& o : op_.operands)
          if (def.operands[o.group].name == name && o.type != kNone) op_.results[r] = o.type;
    }
    for (size_t a = 0; a < def.attrs.size(); ++a)
      if (def.attrs[a].kind == AttrKind::Dense && op_.attr_set[a]) op_.results[r] = m_.attrs.get(op_.attrs[a]).type;
  }
  return true;
}

// Puts everything but the regions into the function.
bool Parser::emit(size_t names_base, InstId& inst) {
  const OpDef& def = *op_.def;
  const auto by_group = [](const Operand& a, const Operand& b) { return a.group < b.group; };
  if (!std::is_sorted(op_.operands.begin(), op_.operands.end(), by_group))
    std::stable_sort(op_.operands.begin(), op_.operands.end(), by_group);
  value_words_.clear();
  operand_spans_.clear();
  result_spans_.clear();
  segments_.clear();
  if (has_segments(def)) segments_.assign(def.operands.size(), 0);
  for (const Operand& o : op_.operands) {
    value_words_.push_back(o.value);
    operand_spans_.push_back(o.span);
    if (!segments_.empty()) ++segments_[o.group];
  }
  for (size_t i = names_base; i < names_.size(); ++i)
    result_spans_.insert(result_spans_.end(), names_[i].count, names_[i].span);
  const size_t attrs = def.attrs.size();
  const OpSpans spans{op_.mnemonic, operand_spans_, std::span(op_.attr_spans).first(attrs), result_spans_};
  inst = builder_->op({.op = static_cast<Opcode>(def.code),
                       .operands = value_words_,
                       .segments = segments_,
                       .attrs = std::span(op_.attrs).first(attrs),
                       .result_types = op_.results,
                       .loc = op_.loc},
                      &spans);
  ValueId value = function_->insts[inst].first_result;
  for (size_t i = names_base; i < names_.size(); ++i)
    for (uint32_t k = 0; k < names_[i].count; ++k) builder_->name_value(value++, names_[i].name);
  add_extra(inst);
  return true;
}

void Parser::add_extra(InstId inst) {
  if (op_.extra.empty()) return;
  Attr dict{.tag = AttrTag::Dictionary};
  dict.entries = std::move(op_.extra);
  op_.extra.clear();
  function_->extra_attrs.emplace_back(inst, m_.attrs.add(std::move(dict)));
}

}  // namespace tile
