// The generic form of operations: "cuda_tile.name"(operands) <{attributes}> (regions) {attributes} : (types) -> types.
#include "assembler/parser.h"

namespace tile {

// At the sign before the values of dense<...>: moves behind its partner.
bool Parser::skip_dense() {
  const Span where = span();
  const Position begin = position();
  if (!at(Tok::Less)) return unexpected("'<'");
  while (!at(Tok::Greater) && !at(Tok::End)) advance();
  if (accept(Tok::Greater)) return true;
  go_to(begin);
  return fail(Code::E0305, where, in_op("the list of values that begins here is not closed"));
}

// At the parenthesis of a list of regions. The ends of the lists inside are kept, so that each token is skipped once.
bool Parser::skip_regions() {
  if (const auto known = regions_end_.find(tok_.begin); known != regions_end_.end()) {
    go_to(known->second);
    return true;
  }
  const Span where = span();
  const Position begin = position();
  std::vector<uint32_t> open;
  while (!at(Tok::End)) {
    const bool closes = at(Tok::RParen), behind_brace = lexer_.text()[previous_end_ - 1] == '}';
    if (at(Tok::LParen)) open.push_back(tok_.begin);
    advance();
    if (!closes) continue;
    if (behind_brace) regions_end_.emplace(open.back(), position());
    open.pop_back();
    if (open.empty()) return true;
  }
  go_to(begin);
  return fail(Code::E0305, where, in_op("the list of regions that begins here is not closed"));
}

bool Parser::parse_generic_dict(std::vector<uint32_t>& sizes) {
  std::vector<std::pair<StringId, AttrValue>> entries;
  if (!parse_dict(entries)) return false;
  for (const auto& [key, value] : entries) {
    AttrId id = kNone;
    if (m_.str(key) == "operandSegmentSizes") {
      const Attr* a = value.kind == AttrValue::Kind::Attr ? &m_.attrs.get(value.id) : nullptr;
      if (!a || a->tag != AttrTag::I32Array)
        return fail(Code::E0601, value.span, in_op("'operandSegmentSizes' is no array<i32: ...>"));
      for (const int64_t n : a->ints) sizes.push_back(n < 0 || n > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(n));
    } else if (const int index = attr_index(*op_.def, m_.str(key)); index >= 0) {
      if (!set_attr(static_cast<size_t>(index), value, kNone)) return false;
    } else {
      if (!to_attr(value, id)) return false;
      op_.extra.emplace_back(key, id);
    }
  }
  return true;
}

// Says to which group each operand belongs: by the sizes if they are given, else the one variable group takes what is
// left.
bool Parser::group_operands(std::vector<uint32_t> sizes, Span where) {
  const auto& groups = op_.def->operands;
  if (sizes.empty() && !has_segments(*op_.def)) {
    const size_t fixed = groups.size() - static_cast<size_t>(variable_operands(*op_.def));
    const size_t rest = op_.operands.size() < fixed ? 0 : op_.operands.size() - fixed;
    for (const OperandDef& g : groups) sizes.push_back(g.arity == Arity::One ? 1 : static_cast<uint32_t>(rest));
  }
  uint64_t total = 0;
  bool fits = sizes.size() == groups.size();
  for (size_t g = 0; fits && g < groups.size(); ++g) {
    total += sizes[g];
    fits = groups[g].arity == Arity::Variadic || sizes[g] == 1 || (sizes[g] == 0 && groups[g].arity == Arity::Optional);
  }
  if (!fits || total != op_.operands.size())
    return fail(Code::E0507, where,
                in_op("found " + std::to_string(op_.operands.size()) + " operands, which do not fit the operation" +
                      (has_segments(*op_.def) ? " or its operandSegmentSizes" : "")));
  size_t next = 0;
  for (size_t g = 0; g < sizes.size(); ++g)
    for (uint32_t k = 0; k < sizes[g]; ++k) op_.operands[next++].group = static_cast<uint8_t>(g);
  return true;
}

// { ^bb0(%a: T): operations }; an empty region has no block.
bool Parser::parse_generic_region() {
  if (!at(Tok::LBrace)) return unexpected("'{'");
  if (peek().kind == Tok::RBrace) {
    advance();
    advance();
    builder_->absent_region();
    return true;
  }
  const Token open = tok_;
  std::vector<Arg> args;
  advance();
  const bool labelled = at(Tok::Caret);
  if (labelled) {
    advance();
    if ((at(Tok::LParen) && !parse_args(args, false)) || !expect(Tok::Colon, "':'")) return false;
  }
  // The body is read from its brace on, which a label has been read behind.
  lexer_.seek(tok_.begin);
  tok_ = open;
  --open_braces_;
  return parse_region(args, Opcode::Module);
}

// At the name. Types stand behind the regions but are needed before them, so they are read first.
bool Parser::parse_generic(size_t base) {
  const Token name = tok_;
  std::string word = unescape(text());
  const OpDef* def = word.starts_with("cuda_tile.") ? find_op(std::string_view(word).substr(10)) : nullptr;
  if (!def) return fail(Code::E0303, span(), "there is no operation " + std::string(text()));
  if (def->effect == Effect::Symbol)
    return fail(Code::E0702, span(), "found " + std::string(text()) + ", which is not allowed inside of an entry");
  start_op(*def, span(), def->name);
  op_.results.clear();
  advance();
  const uint32_t operands_begin = tok_.begin;
  if (!expect(Tok::LParen, "'('") || (at(Tok::Value) && !parse_operands(0)) || !expect(Tok::RParen, "')'"))
    return false;
  const Span operands_span = span_from(operands_begin);
  std::vector<uint32_t> sizes;
  if (accept(Tok::Less) && (!parse_generic_dict(sizes) || !expect(Tok::Greater, "'>'"))) return false;
  const Position regions = position();
  if (at(Tok::LParen) && !skip_regions()) return false;
  if (at(Tok::LBrace) && !parse_generic_dict(sizes)) return false;
  if (!group_operands(std::move(sizes), operands_span)) return false;

  std::vector<TypeId> types;
  std::vector<Span> spans, ignored;
  const auto type_list = [&](std::vector<TypeId>& out, std::vector<Span>& places) {
    if (!expect(Tok::LParen, "'('")) return false;
    return accept(Tok::RParen) || (parse_type_list(out, places) && expect(Tok::RParen, "')'"));
  };
  if (!expect(Tok::Colon, "':'")) return false;
  const uint32_t types_begin = tok_.begin;
  if (!type_list(types, spans)) return false;
  if (types.size() != op_.operands.size())
    return fail(Code::E0507, span_from(types_begin), in_op(wrong_count(types.size(), op_.operands.size(), "operands")));
  for (size_t i = 0; i < types.size(); ++i) (void)check_type(op_.operands[i], types[i], spans[i]);
  if (!expect(Tok::Arrow, "'->'")) return false;
  const uint32_t results_begin = tok_.begin;
  if (at(Tok::LParen) ? !type_list(op_.results, ignored) : !parse_type(op_.results.emplace_back())) return false;
  bool variadic = false;
  for (const ResultDef& r : def->results) variadic = variadic || r.arity == Arity::Variadic;
  if (!variadic && op_.results.size() != def->results.size())
    return fail(Code::E0507, span_from(results_begin),
                in_op(wrong_count(op_.results.size(), def->results.size(), "results")));
  if (!parse_trailing_location(op_.loc) || !default_attrs() || !check_count(base)) return false;
  const Position end = position();
  if ((regions.tok.kind == Tok::LParen) != (def->regions > 0))
    return fail(Code::E0701, {name.begin, name.length},
                in_op(def->regions > 0 ? "the regions are missing" : "found regions, expected none"));

  InstId inst = kNone;
  if (!emit(base, inst)) return false;
  if (def->regions > 0) {
    bool ok = true;
    go_to(regions);
    advance();
    for (uint8_t r = 0; r < def->regions; ++r) {
      if (ok && r > 0) ok = expect(Tok::Comma, "','");
      if (ok) {
        ok = parse_generic_region();
      } else {
        builder_->absent_region();
      }
      op_.def = def;
    }
    ok = ok && !stopped() && !unwinding_ && expect(Tok::RParen, "')'");
    builder_->end_op();
    if (!ok) return stopped() || unwinding_ ? (drop_results(base), true) : false;
    go_to(end);
  }
  name_results(base, inst);
  return true;
}

// array<i32: 1, 2>, array<i1: true>, dense<[1, 2]> : type
bool Parser::parse_generic_list(AttrValue& out) {
  const bool dense = at_word("dense");
  advance();
  if (dense) {
    const Position less = position();
    TypeId type = kNone;
    if (!skip_dense() || !expect(Tok::Colon, "':'")) return false;
    const uint32_t type_begin = tok_.begin;
    if (!parse_type(type)) return false;
    const ElementType element = m_.types.is_tile(type) ? m_.types.get(type).element : ElementType::Ptr;
    if (!kNum.has(element))
      return fail(Code::E0502, span_from(type_begin), "found type " + type_text(type) + ", expected a tile of numbers");
    const Position end = position();
    go_to(less);
    if (!parse_dense_list(type, out.id)) return false;
    go_to(end);
    return true;
  }
  std::vector<int64_t> values;
  if (!expect(Tok::Less, "'<'")) return false;
  const bool bools = at_word("i1");
  if (!bools && !at_word("i32")) {
    alternative("i1");
    alternative("i32");
    return unexpected({});
  }
  advance();
  if (accept(Tok::Colon)) {
    do {
      bool flag = false;
      int64_t& value = values.emplace_back();
      if (bools ? !parse_bool(flag) : !parse_sint(value, INT32_MIN, INT32_MAX)) return false;
      if (bools) value = flag ? 1 : 0;
    } while (accept(Tok::Comma));
  }
  out.id = m_.attrs.ints(bools ? AttrTag::BoolArray : AttrTag::I32Array, std::move(values));
  return expect(Tok::Greater, "'>'");
}

}  // namespace tile
