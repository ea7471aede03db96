// Operations that need nothing but their row of the operation table: operands, element sets, relations, attributes.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "vm/random/generator.h"
#include "vm/ir/valid_module.h"

namespace tile::random_program {
namespace {

/// Positions of a row, operands first, and the sets of positions that share a shape or an element type.
struct RowShape {
  const OpDef* row = nullptr;
  std::vector<size_t> shape_class, element_class;  ///< by position: the lowest position of its class
};

size_t position_of(const OpDef& row, std::string_view name) {
  const int operand = operand_index(row, name);
  return operand >= 0 ? static_cast<size_t>(operand)
                      : row.operands.size() + static_cast<size_t>(result_index(row, name));
}

const OperandDef& at(const OpDef& row, size_t position) {
  return position < row.operands.size() ? row.operands[position] : row.results[position - row.operands.size()];
}

/// The row's classes; no row where the row does not say all: regions, tokens, views, shapes with rules of their own.
RowShape shape_of(const OpDef& row) {
  RowShape out;
  const size_t n = row.operands.size() + 1;
  const bool pure = row.effect == Effect::Pure || row.effect == Effect::NotSpeculatable;
  if (row.regions != 0 || row.terminator || !pure || row.results.size() != 1 || row.operands.empty()) return out;
  for (size_t p = 0; p < n; ++p) {
    const OperandDef& d = at(row, p);
    if (d.kind != ValueKind::Tile || d.arity != Arity::One || (d.elements.bits & kAny.bits & ~kPtr.bits) == 0)
      return out;
  }
  for (const AttrDef& a : row.attrs)
    if (a.kind != AttrKind::Unit && a.kind != AttrKind::Enum) return out;
  out.shape_class.resize(n);
  std::iota(out.shape_class.begin(), out.shape_class.end(), size_t{0});
  out.element_class = out.shape_class;
  const auto join = [](std::vector<size_t>& classes, size_t a, size_t b) {
    const size_t from = std::max(classes[a], classes[b]), to = std::min(classes[a], classes[b]);
    std::replace(classes.begin(), classes.end(), from, to);
  };
  std::vector<size_t> linked = out.shape_class;
  for (const Rule& rule : row.rules) {
    for (size_t k = 1; k < rule.at.size(); ++k) {
      const size_t a = position_of(row, rule.at[0]), b = position_of(row, rule.at[k]);
      const bool type = rule.kind == RuleKind::SameType;
      if (type || rule.kind == RuleKind::SameShape) join(out.shape_class, a, b);
      if (type || rule.kind == RuleKind::SameElement) join(out.element_class, a, b);
      if (type || rule.kind == RuleKind::SameShape || rule.kind == RuleKind::SplatTo ||
          rule.kind == RuleKind::SameCount)
        join(linked, a, b);
    }
  }
  if (std::any_of(linked.begin(), linked.end(), [](size_t c) { return c != 0; })) return out;
  out.row = &row;
  return out;
}

const std::vector<RowShape>& eligible_rows() {
  static const std::vector<RowShape> rows = [] {
    std::vector<RowShape> out;
    for (const OpDef& row : op_rows())
      if (RowShape s = shape_of(row); s.row) out.push_back(std::move(s));
    return out;
  }();
  return rows;
}

bool is(const OpDef& row, Opcode op) {
  return row.code == static_cast<uint16_t>(op);
}

}  // namespace

std::optional<Ids> Generator::choose_attrs(const OpDef& row) {
  Ids out;
  for (const AttrDef& a : row.attrs) {
    if (a.kind == AttrKind::Unit) {
      out.push_back(rng_.chance(25));
      continue;
    }
    std::vector<uint32_t> values;
    const auto words = enum_info(a.enum_kind).values;
    for (uint32_t v = 0; v < words.size(); ++v) {
      const bool loose = a.enum_kind == EnumKind::Rounding && (words[v].word == "approx" || words[v].word == "full");
      if ((a.allowed >> v & 1) && !(options_.exact && loose)) values.push_back(v);
    }
    if (values.empty()) return std::nullopt;
    if (a.def != kRequired && rng_.chance(50) &&
        std::find(values.begin(), values.end(), static_cast<uint32_t>(a.def)) != values.end())
      out.push_back(static_cast<uint32_t>(a.def));
    else
      out.push_back(rng_.of(values));
  }
  return out;
}

// What a rule of the whole operation says of element types and attributes is asked of the validator itself.
bool Generator::legal(const OpDef& row, const std::vector<ElementType>& elements, const Ids& attrs) {
  if (std::none_of(row.rules.begin(), row.rules.end(), [](const Rule& r) { return !between_positions(r.kind); }))
    return true;
  static std::mutex mutex;
  static std::map<std::vector<uint32_t>, bool> known;
  std::vector<uint32_t> key{row.code};
  for (const ElementType e : elements) key.push_back(static_cast<uint32_t>(e));
  key.insert(key.end(), attrs.begin(), attrs.end());
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  Module m;
  m.name = m.strings.add("probe");
  m.order.push_back(0);
  Function& f = m.functions.emplace_back();
  f.name = m.strings.add("k");
  FunctionBuilder b(f, {});
  Ids operands;
  const Shape two{2};
  for (size_t k = 0; k < row.operands.size(); ++k) {
    const bool four = elements[k] == ElementType::I4;
    const TypeId t = m.types.tile(four ? ElementType::I8 : elements[k], two);
    const Ids value{m.attrs.dense(m.types, t, std::string(info(four ? ElementType::I8 : elements[k]).storage, '\0'))}, type{t};
    operands.push_back(b.next_value());
    b.op({.op = Opcode::Constant, .operands = {}, .segments = {}, .attrs = value, .result_types = type});
    if (!four) continue;
    const Ids from{operands.back()}, wrap{0}, narrow{m.types.tile(ElementType::I4, two)};
    operands.back() = b.next_value();
    b.op({.op = Opcode::TruncI, .operands = from, .segments = {}, .attrs = wrap, .result_types = narrow});
  }
  const Ids result{m.types.tile(elements.back(), two)};
  b.op({.op = static_cast<Opcode>(row.code),
        .operands = operands,
        .segments = {},
        .attrs = attrs,
        .result_types = result});
  b.op({.op = Opcode::Return, .operands = {}, .segments = {}, .attrs = {}, .result_types = {}});
  b.finish();
  Diagnostics diags;
  return known[key] = validate(std::move(m), diags).ok();
}

/// Changes operands and attributes so that the operation is defined for every value. False: it cannot be.
bool Generator::guard(const OpDef& row, std::vector<Val>& operands, Ids& attrs, ElementType result) {
  const int sign = attr_index(row, "signedness");
  const bool is_signed = sign >= 0 && attrs[static_cast<size_t>(sign)] == 1;
  if (is(row, Opcode::DivI) || is(row, Opcode::RemI)) {
    const Val one = constant(operands[1].e, operands[1].shape, {1});
    if (is(row, Opcode::DivI) && is_signed) {
      if (operands[0].e == ElementType::I1) return false;
      operands[0] = binary(Opcode::ShRI, operands[0], one, {1});  // never the smallest number
    }
    operands[1] = binary(Opcode::OrI, operands[1], one);
  }
  if (is(row, Opcode::ShLI) || is(row, Opcode::ShRI)) operands[1] = masked(operands[1], info(operands[1].e).bits - 1);
  if (const int overflow = attr_index(row, "overflow"); overflow >= 0 && attrs[static_cast<size_t>(overflow)] != 0) {
    uint32_t& flag = attrs[static_cast<size_t>(overflow)];
    const bool narrow = info(operands[0].e).bits < 8 || info(result).bits < 8;
    if (narrow) {
      flag = 0;
    } else if (is(row, Opcode::ShLI)) {
      operands[0] = small(operands[0]);
      operands[1] = masked(operands[1], 3);
    } else {
      for (Val& v : operands) v = small(v);
      if (is(row, Opcode::SubI) || is(row, Opcode::NegI)) flag = 1;  // no_signed_wrap
    }
  }
  if (is(row, Opcode::FToI)) {
    uint32_t& saturating = attrs[static_cast<size_t>(attr_index(row, "saturating"))];
    const bool fits = operands[0].bound >= 0 && operands[0].bound <= kSmall && info(result).bits >= 8 && is_signed;
    if (!fits) saturating = 1;
  }
  return true;
}

double Generator::result_bound(const OpDef& row, const std::vector<Val>& v, ElementType result) {
  double out = kUnknown;
  for (const Val& x : v)
    if (x.bound < 0 && x.e != ElementType::I1) return kUnknown;
  const auto b = [&](size_t k) { return v[k].bound; };
  if (is(row, Opcode::AddF) || is(row, Opcode::SubF)) out = b(0) + b(1);
  if (is(row, Opcode::MulF)) out = b(0) * b(1);
  if (is(row, Opcode::Fma)) out = b(0) * b(1) + b(2);
  if (is(row, Opcode::NegF) || is(row, Opcode::AbsF) || is(row, Opcode::Ceil) || is(row, Opcode::Floor)) out = b(0);
  if (is(row, Opcode::MaxF) || is(row, Opcode::MinF)) out = std::max(b(0), b(1));
  if (is(row, Opcode::Select)) out = std::max(b(1), b(2));
  if (is(row, Opcode::Broadcast) || is(row, Opcode::Reshape)) return b(0);
  if (is(row, Opcode::FToF) || (is(row, Opcode::IToF) && v[0].e != ElementType::I1)) out = b(0);
  if (info(result).is_float && out > exact_limit(result)) return kUnknown;
  return info(result).is_float || is(row, Opcode::Select) ? out : kUnknown;
}

bool Generator::try_row(const OpDef& row) {
  const auto& rows = eligible_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const RowShape& s) { return s.row == &row; });
  if (found == rows.end()) return false;
  if (options_.exact && row.tolerance != Tolerance::Exact) return false;
  const size_t n = row.operands.size() + 1;

  // Element types by class, until every relation holds.
  std::vector<ElementType> elements(n);
  bool holds = false;
  std::optional<Ids> attrs;
  for (int attempt = 0; attempt < 60 && !holds; ++attempt) {
    for (size_t p = 0; p < n; ++p) {
      const size_t c = found->element_class[p];
      if (c != p) {
        elements[p] = elements[c];
        continue;
      }
      ElementSet set = ElementSet{kAny.bits & ~kPtr.bits};
      for (size_t q = 0; q < n; ++q)
        if (found->element_class[q] == c) set.bits &= at(row, q).elements.bits;
      elements[p] = random_element(set);
    }
    holds = true;
    for (const Rule& rule : row.rules) {
      if (rule.at.size() != 2) continue;
      const ElementInfo& a = info(elements[position_of(row, rule.at[0])]);
      const ElementInfo& b = info(elements[position_of(row, rule.at[1])]);
      if (rule.kind == RuleKind::WiderThan) holds = holds && b.bits > a.bits;
      if (rule.kind == RuleKind::SameBits) holds = holds && b.bits == a.bits;
      if (rule.kind == RuleKind::DifferentType) holds = holds && &a != &b;
    }
    if (!holds) continue;
    attrs = choose_attrs(row);
    holds = attrs && legal(row, elements, *attrs);
  }
  if (!holds) return false;

  // Shapes: one for the result and what it is linked to; others follow from their relation.
  Shape shape = random_shape();
  const bool four = std::find(elements.begin(), elements.end(), ElementType::F4E2M1FN) != elements.end();
  if (four && count_of(shape) == 1) {
    if (shape.empty()) shape.push_back(1);
    shape.back() = 2;
  }
  std::vector<Shape> shapes(n, shape);
  for (const Rule& rule : row.rules) {
    if (rule.kind == RuleKind::SplatTo) {
      Shape& source = shapes[position_of(row, rule.at[0])];
      for (int64_t& x : source)
        if (rng_.chance(50)) x = 1;
      if (four && count_of(source) == 1) source = shape;
    }
    if (rule.kind == RuleKind::SameCount) {
      int64_t left = count_of(shape);
      Shape& source = shapes[position_of(row, rule.at[0])];
      source.clear();
      while (left > 1 && source.size() < 3) {
        const int64_t part = source.size() == 2 ? left : std::min<int64_t>(left, int64_t{1} << rng_.below(5));
        source.push_back(part);
        left /= part;
      }
      if (left > 1) source.push_back(left);
      if (source.empty() && rng_.chance(50)) source.push_back(1);
    }
  }

  // The bits of a NaN are open: they stay out of integers.
  const bool bits_leave = options_.exact && is(row, Opcode::Bitcast) && info(elements[0]).is_float;
  const bool wants_small = bits_leave || (is(row, Opcode::FToI) && rng_.chance(60));
  std::vector<Val> operands;
  for (size_t k = 0; k + 1 < n; ++k)
    operands.push_back(get(elements[k], shapes[k], wants_small || (options_.exact && rng_.chance(30))));
  if (!guard(row, operands, *attrs, elements.back())) return false;
  Groups groups;
  for (const Val& v : operands) groups.push_back({v.id});
  const double bound = result_bound(row, operands, elements.back());
  const ValueId id = emit1(static_cast<Opcode>(row.code), groups, *attrs, {tile(elements.back(), shapes.back())});
  keep({id, elements.back(), shapes.back(), bound});
  return true;
}

void Generator::table_op() {
  const auto& rows = eligible_rows();
  for (int attempt = 0; attempt < 10; ++attempt) {
    const OpDef* row = rows[rng_.below(rows.size())].row;
    if (!options_.prefer.empty() && rng_.chance(50)) row = &op_def(rng_.of(options_.prefer));
    if (try_row(*row)) return;
  }
}

}  // namespace tile::random_program
