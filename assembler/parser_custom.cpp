// Operations whose rows say @custom: those with regions, and those with lists of their own.
#include "assembler/parser.h"

namespace tile {

bool Parser::parse_custom(size_t base) {
  switch (static_cast<Opcode>(op_.def->code)) {
    case Opcode::Reduce:
    case Opcode::Scan:
      return parse_reduce(base);
    case Opcode::If:
      return parse_if(base);
    case Opcode::For:
      return parse_for(base);
    case Opcode::Loop:
      return parse_loop(base);
    case Opcode::MakeTensorView:
      return parse_make_tensor_view(base);
    default:
      return parse_shape_query(base);
  }
}

bool Parser::parse_type_list(std::vector<TypeId>& types, std::vector<Span>& spans) {
  do {
    const uint32_t begin = tok_.begin;
    if (!parse_type(types.emplace_back())) return false;
    spans.push_back(span_from(begin));
  } while (accept(Tok::Comma));
  return true;
}

// At the brace, behind the operation that owns the region.
bool Parser::parse_region(const std::vector<Arg>& args, Opcode implicit) {
  std::vector<TypeId> types;
  for (const Arg& a : args) types.push_back(a.type);
  const RegionId region = builder_->begin_region(types);
  const size_t mark = scope_mark();
  ValueId value = function_->regions[region].first_arg;
  for (const Arg& a : args) {
    builder_->name_value(value, a.name);
    builder_->value_span(value, a.span);
    define(a.name, a.span, value++, 1);
  }
  const bool ok = parse_body(implicit);
  scope_restore(mark);
  builder_->end_region();
  return ok;
}

// Dictionary and location behind the regions, if these were read (`parsed`), then the names of the results become visible. An operation
// that was begun is ended in any case: the builder's operations nest.
bool Parser::finish_region_op(bool parsed, InstId inst, size_t base) {
  builder_->end_op();
  if (!parsed) return false;
  if (stopped() || unwinding_) {
    drop_results(base);
    return true;
  }
  op_.def = &function_->def(inst);
  op_.extra.clear();
  if (at(Tok::LBrace) && !parse_op_dict(inst)) return false;
  LocId loc = kUnknownLoc;
  if (!parse_trailing_location(loc)) return false;
  function_->insts[inst].loc = loc;
  name_results(base, inst);
  return true;
}

bool Parser::parse_reduce(size_t base) {
  const OpDef& def = *op_.def;
  const auto attr = [&](std::string_view name) {
    return expect_word(name) && expect(Tok::Equal, "'='") && walk_attr(static_cast<size_t>(attr_index(def, name)));
  };
  if (!parse_operands(0)) return false;
  if (at(Tok::LBrace) && !parse_op_dict()) return false;
  if (!attr("dim") || (attr_index(def, "reverse") >= 0 && !attr("reverse")) || !attr("identities")) return false;
  FormatNode types;
  types.kind = FormatNode::Kind::Types;
  types.index = 0;
  std::vector<Span> spans;
  op_.results.clear();
  std::vector<Arg> args;
  if (!expect(Tok::Colon, "':'") || !walk_types(types) || !expect(Tok::Arrow, "'->'") ||
      !parse_type_list(op_.results, spans) || !parse_args(args, false))
    return false;
  if (!at(Tok::LBrace)) return unexpected("'{'");
  if (!default_attrs() || !check_count(base)) return false;
  InstId inst = kNone;
  return emit(base, inst) && finish_region_op(parse_region(args, Opcode::Module), inst, base);
}

// if %c -> (types) {} else {}
bool Parser::parse_if(size_t base) {
  Operand& condition = op_.operands.emplace_back();
  op_.results.clear();
  std::vector<Span> spans;
  if (!parse_operand(condition)) return false;
  if (accept(Tok::Arrow) &&
      (!expect(Tok::LParen, "'('") || !parse_type_list(op_.results, spans) || !expect(Tok::RParen, "')'")))
    return false;
  if (!at(Tok::LBrace)) {
    if (op_.results.empty()) alternative("->");
    return unexpected("'{'");
  }
  if (!default_attrs() || !check_count(base)) return false;
  InstId inst = kNone;
  if (!emit(base, inst)) return false;
  bool ok = parse_region({}, Opcode::Yield);
  if (ok && !unwinding_ && accept_word("else")) {
    if (at(Tok::LBrace)) {
      ok = parse_region({}, Opcode::Yield);
    } else {
      op_.def = &function_->def(inst);
      ok = unexpected("'{'");
      builder_->absent_region();
    }
  } else {
    builder_->absent_region();
  }
  return finish_region_op(ok, inst, base);
}

// ( %a = %x, ... ) behind iter_values
bool Parser::parse_assignments(uint8_t group, std::vector<Arg>& args) {
  if (!expect(Tok::LParen, "'('")) return false;
  do {
    if (!at(Tok::Value)) return unexpected("an argument name");
    Arg& arg = args.emplace_back();
    arg.name = name_id(tok_);
    arg.span = span();
    advance();
    if (!expect(Tok::Equal, "'='")) return false;
    Operand& init = op_.operands.emplace_back();
    init.group = group;
    if (!parse_operand(init)) return false;
  } while (accept(Tok::Comma));
  return expect(Tok::RParen, "')'");
}

bool Parser::parse_carried_types(uint8_t group, size_t first_arg, std::vector<Arg>& args, std::vector<TypeId>& types) {
  std::vector<Span> spans;
  if (!parse_type_list(types, spans)) return false;
  const size_t count = group_count(group);
  if (types.size() != count) {
    const Span all{spans.front().begin, spans.back().begin + spans.back().length - spans.front().begin};
    return fail(Code::E0507, all, in_op(wrong_count(types.size(), count, "iter_values")));
  }
  size_t i = 0;
  for (const Operand& o : op_.operands) {
    if (o.group != group) continue;
    (void)check_type(o, types[i], spans[i]);
    args[first_arg + i].type = types[i];
    ++i;
  }
  return true;
}

// for unsigned %i in (%lo to %hi, step %st) : T iter_values(%a = %x) -> (types) {}
bool Parser::parse_for(size_t base) {
  op_.results.clear();
  const Span word = span();
  if (accept_word("unsigned")) mark_attr(0, 1, word);
  if (!at(Tok::Value)) return unexpected("the name of the induction variable");
  std::vector<Arg> args(1);
  args[0].name = name_id(tok_);
  args[0].span = span();
  advance();
  if (!expect_word("in") || !expect(Tok::LParen, "'('")) return false;
  for (uint8_t group = 0; group < 3; ++group) {
    if (group == 1 && !expect_word("to")) return false;
    if (group == 2 && !(expect(Tok::Comma, "','") && expect_word("step"))) return false;
    Operand& o = op_.operands.emplace_back();
    o.group = group;
    if (!parse_operand(o)) return false;
  }
  if (!expect(Tok::RParen, "')'") || !expect(Tok::Colon, "':'")) return false;
  const uint32_t begin = tok_.begin;
  if (!parse_type(args[0].type)) return false;
  for (const Operand& o : op_.operands)
    if (!check_type(o, args[0].type, span_from(begin))) break;
  if (accept_word("iter_values")) {
    if (!parse_assignments(3, args) || !expect(Tok::Arrow, "'->'") || !expect(Tok::LParen, "'('") ||
        !parse_carried_types(3, 1, args, op_.results) || !expect(Tok::RParen, "')'"))
      return false;
  }
  if (!at(Tok::LBrace)) return unexpected("'{'");
  if (!default_attrs() || !check_count(base)) return false;
  InstId inst = kNone;
  return emit(base, inst) && finish_region_op(parse_region(args, Opcode::Continue), inst, base);
}

// loop iter_values(%a = %x) : types -> types {}, loop : types {}, loop {}
bool Parser::parse_loop(size_t base) {
  op_.results.clear();
  std::vector<Arg> args;
  std::vector<TypeId> carried;
  std::vector<Span> spans;
  if (accept_word("iter_values")) {
    if (!parse_assignments(0, args) || !expect(Tok::Colon, "':'") || !parse_carried_types(0, 0, args, carried))
      return false;
    if (accept(Tok::Arrow)) {
      if (!parse_type_list(op_.results, spans)) return false;
    } else {
      alternative("->");
    }
  } else if (accept(Tok::Colon)) {
    if (!parse_type_list(op_.results, spans)) return false;
  } else {
    alternative(":");
  }
  if (!at(Tok::LBrace)) return unexpected("'{'");
  if (!default_attrs() || !check_count(base)) return false;
  InstId inst = kNone;
  return emit(base, inst) && finish_region_op(parse_region(args, Opcode::Continue), inst, base);
}

// , shape = [%n, 64]: numbers and operands of `group`.
bool Parser::parse_extents(std::string_view word, uint8_t group, std::vector<std::pair<int64_t, Span>>& out) {
  if (!expect(Tok::Comma, "','") || !expect_word(word) || !expect(Tok::Equal, "'='") || !expect(Tok::LBracket, "'['"))
    return false;
  if (accept(Tok::RBracket)) return true;
  do {
    const Span where = span();
    if (at(Tok::Value)) {
      Operand& o = op_.operands.emplace_back();
      o.group = group;
      if (!parse_operand(o)) return false;
      out.emplace_back(kDynamic, o.span);
    } else {
      int64_t value = 0;
      if (!at(Tok::Int) && !at(Tok::Hex)) return unexpected("an integer or an operand");
      if (!parse_sint(value, 1)) return false;
      out.emplace_back(value, where);
    }
  } while (accept(Tok::Comma));
  return expect(Tok::RBracket, "']'");
}

// What is written in the lists must be what the type says; only text states it twice.
bool Parser::check_extents(const std::vector<std::pair<int64_t, Span>>& written, std::span<const int64_t> expected,
                           Span list, std::string_view what) {
  if (written.size() != expected.size()) {
    return fail(Code::E0503, list,
                in_op("found " + std::to_string(written.size()) + " values for " + std::string(what) + ", expected " +
                      std::to_string(expected.size()) + " as in the type"));
  }
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i].first == expected[i]) continue;
    const auto number = [](int64_t x) { return x == kDynamic ? std::string("an operand") : std::to_string(x); };
    return fail(Code::E0503, written[i].second,
                in_op("found " + number(written[i].first) + " in " + std::string(what) + ", expected " +
                      number(expected[i]) + " as in the type"));
  }
  return true;
}

// make_tensor_view %p, shape = [...], strides = [...] : [tile<ptr<E, attr>>,] [Tdyn ->] Tview
bool Parser::parse_make_tensor_view(size_t base) {
  std::vector<std::pair<int64_t, Span>> shape, strides;
  Operand& pointer = op_.operands.emplace_back();
  if (!parse_operand(pointer)) return false;
  const uint32_t lists_begin = tok_.begin;
  if (!parse_extents("shape", 1, shape) || !parse_extents("strides", 2, strides)) return false;
  const Span lists = span_from(lists_begin);
  if (at(Tok::LBrace) && !parse_op_dict()) return false;
  if (!expect(Tok::Colon, "':'")) return false;
  const bool dynamic = op_.operands.size() > 1;
  uint32_t begin = tok_.begin;
  TypeId type = kNone;
  if (!parse_type(type)) return false;
  bool pointer_written = false, dynamic_written = false;
  if (m_.types.pointee_of(type) != kNone && m_.types.is_tile(type)) {
    pointer_written = true;
    (void)check_type(op_.operands[0], type, span_from(begin));
    if (accept(Tok::Comma)) {
      begin = tok_.begin;
      if (!parse_type(type)) return false;
      dynamic_written = true;
    }
  } else {
    dynamic_written = !m_.types.is_tensor_view(type);
  }
  if (dynamic_written) {
    const Span where = span_from(begin);
    if (!dynamic)
      return fail(Code::E0507, where, in_op("found a type for operands among the extents, but there are none"));
    for (size_t i = 1; i < op_.operands.size(); ++i)
      if (!check_type(op_.operands[i], type, where)) break;
  } else if (dynamic) {
    if (pointer_written) return unexpected("',' and the type of the operands among the extents");
    return fail(
        Code::E0507, span_from(begin),
        in_op(
            "the type of the operands among the extents is missing, expected it and '->' before the type of the view"));
  }
  if (pointer_written || dynamic_written) {
    if (!expect(Tok::Arrow, "'->'")) return false;
    begin = tok_.begin;
    if (!parse_type(type)) return false;
  }
  if (!m_.types.is_tensor_view(type))
    return fail(Code::E0506, span_from(begin), in_op("found type " + type_text(type) + ", expected a tensor_view"));
  if (!parse_trailing_location(op_.loc)) return false;
  const std::vector<int64_t> view_shape = m_.types.get(type).shape, view_strides = m_.types.get(type).strides;
  if (check_extents(shape, view_shape, lists, "shape")) (void)check_extents(strides, view_strides, lists, "strides");
  op_.results[0] = type;
  InstId inst = kNone;
  if (!default_attrs() || !check_count(base) || !emit(base, inst)) return false;
  name_results(base, inst);
  return true;
}

// get_tensor_shape %v : T -> tile<i32>; the type is that of every result, and there are as many as the view has
// dimensions.
bool Parser::parse_shape_query(size_t base) {
  Operand& source = op_.operands.emplace_back();
  TypeId type = kNone, result = kNone;
  if (!parse_operand(source) || !expect(Tok::Colon, "':'")) return false;
  const uint32_t begin = tok_.begin;
  if (!parse_type(type)) return false;
  (void)check_type(source, type, span_from(begin));
  if (!expect(Tok::Arrow, "'->'") || !parse_type(result) || !parse_trailing_location(op_.loc)) return false;
  if (!m_.types.is_tensor_view(type) && !m_.types.is_view(type))
    return fail(Code::E0506, span_from(begin), in_op("found type " + type_text(type) + ", expected a view"));
  op_.results.assign(m_.types.shape_of(type).size(), result);
  InstId inst = kNone;
  if (!default_attrs() || !check_count(base) || !emit(base, inst)) return false;
  name_results(base, inst);
  return true;
}

}  // namespace tile
