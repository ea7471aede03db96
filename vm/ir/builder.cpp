// From names and values to the words of FunctionBuilder.
#include "vm/ir/builder.h"

#include <algorithm>

#include "vm/base/numeric.h"

namespace tile {
namespace {

template <class Rows>
std::string near(std::string_view word, const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  const std::string found = nearest(word, names);
  return found.empty() ? found : "did you mean '" + found + "'?";
}

std::string count(size_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

}  // namespace

Builder::Builder(std::string_view module_name, Diagnostics& diags) : diags_(diags), errors_before_(diags.error_count()) {
  m_.name = m_.strings.add(module_name);
}

void Builder::mistake(Code code, std::string message, std::string help) {
  Place place;
  if (b_) {
    place.function = m_.str(b_->function().name);
    place.instruction = static_cast<int64_t>(b_->function().insts.size());
  }
  place.op = op_;
  if (!op_.empty()) message = op_ + ": " + message;
  (void)diags_.error(code, std::move(place), std::move(message), std::move(help));
}

void Builder::entry(std::string_view name, const std::vector<Param>& params,
                    const std::function<void(const Values&)>& write) {
  op_.clear();
  if (b_) return mistake(Code::E0702, "entry @" + std::string(name) + " is begun inside of another");
  m_.order.push_back(static_cast<uint32_t>(m_.functions.size()));
  Function& f = m_.functions.emplace_back();
  f.name = m_.strings.add(name);
  f.loc = loc_;
  std::vector<TypeId> param_types;
  for (const Param& p : params) param_types.push_back(p.type);
  b_ = std::make_unique<FunctionBuilder>(f, param_types);
  Values values;
  for (uint32_t i = 0; i < params.size(); ++i) {
    values.push_back({b_->param(i), params[i].type});
    if (!params[i].name.empty()) b_->name_value(i, m_.strings.add(params[i].name));
  }
  write(values);
  const InstId last = f.insts.empty() ? kNone : f.last_of({.begin = 0, .end = static_cast<InstId>(f.insts.size())});
  if (last == kNone || !f.def(last).terminator) (void)op("return");
  b_->finish();
  b_.reset();
}

bool Builder::group_operands(const OpDef& row, const std::vector<Operand>& operands, std::vector<Values>& groups) {
  groups.assign(row.operands.size(), {});
  const auto variadic = std::find_if(row.operands.begin(), row.operands.end(),
                                     [](const OperandDef& d) { return d.arity == Arity::Variadic; });
  const bool one_variadic = variadic != row.operands.end() && variable_operands(row) == 1;
  size_t next = 0;
  bool known = true;
  for (const Operand& operand : operands) {
    size_t group = 0;
    if (!operand.name.empty()) {
      const int index = operand_index(row, operand.name);
      if (index < 0) {
        mistake(Code::E0306, "there is no operand '" + std::string(operand.name) + "'", near(operand.name, row.operands));
        return false;
      }
      group = static_cast<size_t>(index);
    } else {
      while (next < row.operands.size() && row.operands[next].arity != Arity::One) ++next;
      if (next == row.operands.size() && !one_variadic) {
        mistake(Code::E0507, "has more values than operands that take one; others are given by name");
        return false;
      }
      group = next < row.operands.size() ? next++ : static_cast<size_t>(variadic - row.operands.begin());
    }
    for (const Value& v : operand.values) {
      known = known && v.id != kNone;
      groups[group].push_back(v);
    }
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    const OperandDef& d = row.operands[g];
    if ((d.arity == Arity::One && groups[g].size() != 1) || (d.arity == Arity::Optional && groups[g].size() > 1)) {
      mistake(Code::E0507, "has " + count(groups[g].size(), "value") + " for " + std::string(d.name) + ", expected " +
                               (d.arity == Arity::One ? "1" : "at most 1"));
      return false;
    }
  }
  return known;  // what a wrong operation should have given was reported there
}

bool Builder::attribute_word(const AttrDef& def, const Attribute& given, uint32_t& word) {
  const auto* text = std::get_if<std::string_view>(&given.value);
  const auto* number = std::get_if<int64_t>(&given.value);
  const auto* numbers = std::get_if<std::vector<int64_t>>(&given.value);
  const auto* made = std::get_if<Attr>(&given.value);
  const auto wrong = [&](std::string_view want) {
    mistake(Code::E0601, std::string(def.name) + " is given another kind of value, expected " + std::string(want));
    return false;
  };
  switch (def.kind) {
    case AttrKind::Unit:
    case AttrKind::Bool:
      if (!number) return wrong("a truth value");
      word = *number != 0;
      return true;
    case AttrKind::Enum: {
      if (!text) return wrong("a word");
      const auto found = enum_value(def.enum_kind, *text);
      if (!found) {
        std::vector<std::string_view> words;
        for (const EnumValue& v : enum_info(def.enum_kind).values) words.push_back(v.word);
        const std::string help = nearest(*text, words);
        mistake(Code::E0306, std::string(def.name) + " has no value '" + std::string(*text) + "'",
                help.empty() ? help : "did you mean '" + help + "'?");
        return false;
      }
      word = *found;
      return true;
    }
    case AttrKind::Int:
      if (!number) return wrong("a number");
      word = m_.attrs.integer(m_.types.element(def.int_bits == 32 ? ElementType::I32 : ElementType::I64),
                              static_cast<uint64_t>(*number) & (def.int_bits == 32 ? UINT32_MAX : UINT64_MAX));
      return true;
    case AttrKind::String:
    case AttrKind::Symbol:
      if (!text) return wrong("a string");
      word = m_.strings.add(*text);
      return true;
    case AttrKind::I32Array:
    case AttrKind::BoolArray:
      if (!numbers) return wrong("numbers");
      word = m_.attrs.ints(def.kind == AttrKind::I32Array ? AttrTag::I32Array : AttrTag::BoolArray, *numbers);
      return true;
    default:
      if (!made) return wrong("a value made with Attr");
      word = made->tag == AttrTag::Dense ? m_.attrs.dense(m_.types, made->type, made->bytes) : m_.attrs.add(*made);
      return true;
  }
}

bool Builder::attribute_words(const OpDef& row, const std::vector<Attribute>& attributes, std::vector<uint32_t>& words) {
  bool ok = true;
  std::vector<bool> set(row.attrs.size());
  words.assign(row.attrs.size(), kNone);
  for (const Attribute& given : attributes) {
    const int index = attr_index(row, given.name);
    if (index < 0) {
      mistake(Code::E0306, "there is no attribute '" + std::string(given.name) + "'", near(given.name, row.attrs));
      ok = false;
      continue;
    }
    const auto a = static_cast<size_t>(index);
    set[a] = true;
    ok = attribute_word(row.attrs[a], given, words[a]) && ok;
  }
  for (size_t a = 0; a < words.size(); ++a) {
    const AttrDef& def = row.attrs[a];
    if (set[a] || def.optional || def.kind == AttrKind::BoolArray) continue;
    if (def.kind == AttrKind::Unit) {
      words[a] = 0;
    } else if (def.def == kRequired) {
      mistake(Code::E0602, std::string(def.name) + " is missing");
      ok = false;
    } else if (def.kind == AttrKind::Int) {
      ok = attribute_word(def, {def.name, def.def}, words[a]) && ok;
    } else {
      words[a] = static_cast<uint32_t>(def.def);
    }
  }
  return ok;
}

/// The type of a result that was not given; kNone if the row does not say.
TypeId Builder::inferred(const OpDef& row, const ResultDef& result, const std::vector<Values>& groups) {
  if (result.kind == ValueKind::Token) return m_.types.token();
  for (const Rule& rule : row.rules) {
    if (std::find(rule.at.begin(), rule.at.end(), result.name) == rule.at.end()) continue;
    for (const std::string_view name : rule.at) {
      const int index = operand_index(row, name);
      if (index < 0 || groups[static_cast<size_t>(index)].empty()) continue;
      const TypeId type = groups[static_cast<size_t>(index)].front().type;
      const uint32_t one = result.elements.bits;
      if (rule.kind == RuleKind::SameType) return type;
      if (rule.kind == RuleKind::ViewTile && m_.types.is_view(type)) return m_.types.view_tile(type);
      if (!m_.types.is_tile(type)) continue;
      const std::vector<int64_t> shape = m_.types.get(type).shape;
      if (rule.kind == RuleKind::PointeeOf && rule.at[0] == name)
        if (const TypeId pointee = m_.types.pointee_of(type); pointee != kNone) return m_.types.tile(pointee, shape);
      if (rule.kind == RuleKind::SameShape && one != 0 && (one & (one - 1)) == 0)  // one element type is possible
        for (size_t e = 0; e < kElementTypes; ++e)
          if (one >> e & 1 && static_cast<ElementType>(e) != ElementType::Ptr)
            return m_.types.tile(static_cast<ElementType>(e), shape);
    }
  }
  return kNone;
}

bool Builder::result_types(const OpDef& row, const std::vector<Values>& groups, std::vector<TypeId>& types) {
  size_t given = 0;
  std::vector<TypeId> out;
  for (const ResultDef& result : row.results) {
    if (result.arity == Arity::Variadic) {
      out.insert(out.end(), types.begin() + static_cast<std::ptrdiff_t>(given), types.end());
      given = types.size();
      continue;
    }
    // Types are given for all results, or for those that do not follow.
    TypeId type = types.size() == row.results.size() ? types[given++] : inferred(row, result, groups);
    if (type == kNone && given < types.size()) type = types[given++];
    if (type == kNone) {
      mistake(Code::E0507, "the type of " + std::string(result.name) + " does not follow from the operands");
      return false;
    }
    out.push_back(type);
  }
  if (given < types.size()) {
    // A type given for what follows as well stands in its place.
    if (types.size() - given <= out.size()) {
      std::copy(types.begin() + static_cast<std::ptrdiff_t>(given), types.end(), out.begin());
    } else {
      mistake(Code::E0507, "has " + count(types.size(), "result type") + ", expected " + std::to_string(row.results.size()));
      return false;
    }
  }
  types = std::move(out);
  return true;
}

Builder::Values Builder::op(std::string_view name, const std::vector<Operand>& operands,
                            const std::vector<Attribute>& attributes, const std::vector<TypeId>& results,
                            const std::vector<Body>& bodies) {
  op_ = name;
  const OpDef* row = find_op(name);
  if (!row || row->effect == Effect::Symbol) {
    op_.clear();
    mistake(Code::E0303, "there is no operation '" + std::string(name) + "'", near(name, op_rows()));
    return {Value{}};
  }
  if (!b_) {
    mistake(Code::E0702, "an operation stands outside of an entry");
    return {Value{}};
  }
  std::vector<Values> groups;
  std::vector<uint32_t> words, values, segments;
  std::vector<TypeId> types = results;
  // All of them, so that each reports what is wrong.
  bool ok = group_operands(*row, operands, groups);
  ok = attribute_words(*row, attributes, words) && ok;
  ok = ok && result_types(*row, groups, types);
  const bool optional_else = bodies.size() + 1 == row->regions;
  if (bodies.size() != row->regions && !(row->regions == 2 && optional_else)) {
    mistake(Code::E0507, "has " + (std::to_string(bodies.size()) + (bodies.size() == 1 ? " body" : " bodies")) + ", expected " + std::to_string(row->regions));
    ok = false;
  }
  if (!ok) return Values(std::max<size_t>(1, row->results.size()));
  for (const Values& group : groups) {
    if (has_segments(*row)) segments.push_back(static_cast<uint32_t>(group.size()));
    for (const Value& v : group) values.push_back(v.id);
  }
  const InstId inst = b_->op({.op = static_cast<Opcode>(row->code),
                              .operands = values,
                              .segments = segments,
                              .attrs = words,
                              .result_types = types,
                              .loc = loc_});
  Values out;
  for (size_t r = 0; r < types.size(); ++r) out.push_back({b_->function().result(inst, r), types[r]});
  for (size_t r = 0; r < row->regions; ++r) {
    if (r >= bodies.size()) {
      b_->absent_region();
      continue;
    }
    Values args;
    for (const TypeId type : bodies[r].types) args.push_back({b_->next_value() + static_cast<ValueId>(args.size()), type});
    (void)b_->begin_region(bodies[r].types);
    bodies[r].write(args);
    b_->end_region();
  }
  if (row->regions > 0) b_->end_op();
  return out;
}

Builder::Value Builder::value(std::string_view name, const std::vector<Operand>& operands,
                              const std::vector<Attribute>& attributes, const std::vector<TypeId>& results,
                              const std::vector<Body>& bodies) {
  const Values all = op(name, operands, attributes, results, bodies);
  return all.empty() ? Value{} : all.front();
}

Builder::Value Builder::constant_bytes(TypeId type, uint64_t bits) {
  std::string bytes;
  for (size_t i = 0; i < info(m_.types.element_of(type)).storage; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xFF);
  return value("constant", {}, {{"value", Attr{.tag = AttrTag::Dense, .type = type, .bytes = bytes}}}, {type});
}

Builder::Value Builder::constant(TypeId type, double number) {
  op_ = "constant";
  if (!m_.types.is_tile(type) || m_.types.element_of(type) == ElementType::Ptr) {
    mistake(Code::E0505, "has no tile of numbers for a type");
    return {};
  }
  const ElementType e = m_.types.element_of(type);
  if (info(e).is_float) return constant_bytes(type, encode(e, number));
  return constant(type, static_cast<int64_t>(number));
}

Builder::Value Builder::constant(TypeId type, int64_t number) {
  if (!m_.types.is_tile(type) || !info(m_.types.element_of(type)).is_int) return constant(type, static_cast<double>(number));
  const unsigned bits = info(m_.types.element_of(type)).bits;
  return constant_bytes(type, static_cast<uint64_t>(number) & (bits < 64 ? (uint64_t{1} << bits) - 1 : UINT64_MAX));
}

Builder::Values Builder::for_loop(Value lower, Value upper, Value step, const Values& carried,
                                  const std::function<Values(Value, const Values&)>& write) {
  std::vector<TypeId> types, args{lower.type};
  for (const Value& v : carried) types.push_back(v.type);
  args.insert(args.end(), types.begin(), types.end());
  const Body body{args, [&](const Values& values) {
                    const Values next = write(values.front(), Values(values.begin() + 1, values.end()));
                    (void)op("continue", {{"operands", next}});
                  }};
  return op("for", {lower, upper, step, {"initValues", carried}}, {}, types, {body});
}

void Builder::name(Value value, std::string_view name) {
  if (b_ && value.id != kNone) b_->name_value(value.id, m_.strings.add(name));
}

Result<Module> Builder::finish() {
  if (diags_.error_count() != errors_before_) return Failed;
  return std::move(m_);
}

}  // namespace tile
