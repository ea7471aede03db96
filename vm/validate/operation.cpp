// The generic pass over one operation: counts, kinds and element types of values, legality of attributes, all read from
// its row.
#include <algorithm>

#include "vm/validate/checker.h"

namespace tile::validation {
namespace {

const char* kind_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::Tile:
      return "a tile";
    case ValueKind::Scalar:
      return "a tile of rank 0";
    case ValueKind::TensorView:
      return "a tensor_view";
    case ValueKind::View:
      return "a partition, strided or gather/scatter view";
    case ValueKind::TileOrView:
      return "a tile or tensor_view";
    case ValueKind::Token:
      return "a token";
    case ValueKind::Any:
      return "a tile or token";
  }
  return "";
}

bool is_kind(ValueKind want, const Type& t) {
  switch (want) {
    case ValueKind::Tile:
      return t.kind == TypeKind::Tile;
    case ValueKind::Scalar:
      return t.kind == TypeKind::Tile && t.shape.empty();
    case ValueKind::TensorView:
      return t.kind == TypeKind::TensorView;
    case ValueKind::View:
      return t.kind == TypeKind::PartitionView || t.kind == TypeKind::StridedView ||
             t.kind == TypeKind::GatherScatterView;
    case ValueKind::TileOrView:
      return t.kind == TypeKind::Tile || t.kind == TypeKind::TensorView;
    case ValueKind::Token:
      return t.kind == TypeKind::Token;
    case ValueKind::Any:
      return t.kind == TypeKind::Tile || t.kind == TypeKind::Token;
  }
  return false;
}

Code code_of(EnumKind kind) {
  switch (kind) {
    case EnumKind::Rounding:
      return Code::E0605;
    case EnumKind::MemoryOrdering:
    case EnumKind::Scope:
      return Code::E0604;
    default:
      return Code::E0601;
  }
}

std::string allowed_words(const AttrDef& a) {
  const auto values = enum_info(a.enum_kind).values;
  std::string out;
  uint32_t left = a.allowed & ((1u << values.size()) - 1);
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (!(left >> i & 1)) continue;
    left &= ~(1u << i);
    if (!out.empty()) out += left == 0 ? " or " : ", ";
    out += values[i].word;
  }
  return out;
}

bool is_one_of(AttrTag tag, AttrKind kind) {
  switch (kind) {
    case AttrKind::Int:
      return tag == AttrTag::Integer;
    case AttrKind::Dense:
      return tag == AttrTag::Dense;
    case AttrKind::I32Array:
      return tag == AttrTag::I32Array;
    case AttrKind::BoolArray:
      return tag == AttrTag::BoolArray;
    case AttrKind::AttrArray:
      return tag == AttrTag::Array;
    case AttrKind::Hints:
      return tag == AttrTag::Dictionary;
    case AttrKind::Predicate:
      return tag == AttrTag::DivBy || tag == AttrTag::SameElements || tag == AttrTag::Bounded;
    default:
      return false;
  }
}

}  // namespace

// Leaves nothing to check where counts are wrong: roles could not be told apart. Readers of binary forms reject most of
// this before.
bool Checker::check_arity() {
  const OpDef& d = def();
  const size_t groups = d.operands.size();
  const uint32_t total = f->insts[inst].operand_count;
  const auto fail = [&](const std::string& what) {
    // No place_operand and no printed form: both rely on the counts.
    Place p = m.place(*f);
    p.instruction = inst;
    p.op = d.name;
    if (m.source && inst < f->inst_spans.size()) p.span = f->inst_spans[inst];
    report(Code::E0507, std::move(p), what, {}, kNone);
    wrong_ |= kOtherBit;
    return false;
  };
  first_[0] = 0;
  if (row->segments) {
    const uint32_t* segment = f->words.data() + f->insts[inst].word;
    uint64_t sum = 0;
    for (size_t g = 0; g < groups; ++g) {
      const Arity arity = d.operands[g].arity;
      if ((arity == Arity::One && segment[g] != 1) || (arity == Arity::Optional && segment[g] > 1))
        return fail("has " + counted(segment[g], "value") + " for " + std::string(d.operands[g].name) + ", expected " +
                    (arity == Arity::One ? "1" : "at most 1"));
      sum += segment[g];
      if (sum > total) break;
      first_[g + 1] = static_cast<uint32_t>(sum);
    }
    if (sum != total) return fail("has " + counted(total, "operand") + ", but its groups have " + std::to_string(sum));
  } else {
    const size_t single = row->single_operands;
    const bool variable = row->variable_group >= 0;
    const bool optional = variable && d.operands[static_cast<size_t>(row->variable_group)].arity == Arity::Optional;
    if (total < single || (!variable && total > single) || (optional && total > single + 1))
      return fail("has " + counted(total, "operand") + ", expected " + (total < single && variable ? "at least " : "") +
                  std::to_string(single));
    for (size_t g = 0; g < groups; ++g)
      first_[g + 1] =
          first_[g] + (static_cast<int>(g) == row->variable_group ? total - static_cast<uint32_t>(single) : 1u);
  }
  size_t fixed = 0, least = 0;
  bool variadic = false;
  for (const ResultDef& r : d.results) {
    if (r.arity == Arity::Variadic)
      variadic = true;
    else
      ++fixed;
    // A result that came later than its operation is missing in older files.
    if (r.arity == Arity::One && !(r.since > d.since && (!m.version || *m.version < r.since))) ++least;
  }
  const size_t results = f->insts[inst].result_count;
  if (!variadic && (results < least || results > fixed))
    return fail("has " + counted(results, "result") + ", expected " + std::to_string(fixed));
  return true;
}

void Checker::check_value(const OperandDef& want, TypeId id, Position at, size_t k) {
  const Type& t = m.types.get(id);
  const auto fail = [&](Code code, const std::string& what) {
    // Positions that share a type and its fault, as lhs, rhs and result do, have one fault between them.
    if (blamed_type_ == id && blamed_.kind == want.kind && blamed_.elements == want.elements &&
        blamed_.name != want.name) {
      wrong_ |= 1u << bit(at);
      return;
    }
    blamed_type_ = id;
    blamed_ = want;
    if (at.is_result)
      error_result(code, at.index + k,
                   (want.arity == Arity::Variadic ? "result " + std::to_string(k) : std::string(want.name)) + what);
    else
      error_operand(code, at.index, k, role(at.index, k) + what);
  };
  if (!is_kind(want.kind, t))
    return fail(Code::E0506, " has type " + type_text(id) + ", expected " + kind_text(want.kind));
  if (want.elements.bits == 0 || t.kind == TypeKind::Token) return;
  if (!want.elements.has(m.types.element_of(id)))
    return fail(Code::E0502,
                " has element type " +
                    type_text(t.kind == TypeKind::Tile || t.kind == TypeKind::TensorView ? t.inner
                                                                                         : m.types.get(t.inner).inner) +
                    ", expected " + set_text(want.elements));
}

bool Checker::check_dominance(size_t group, size_t k, ValueId v) {
  if (v >= f->value_types.size()) {
    wrong_ |= 1u << group;
    report(Code::E0405, m.place_operand(*f, inst, first_[group] + k),
           role(group, k) + " is a value that does not exist", {}, kNone);
    return false;
  }
  const RegionId region = region_of_[v];
  if (region == kNone) {
    error_operand(Code::E0405, group, k, role(group, k) + " " + value_name(v) + " is used before its definition");
    return false;
  }
  if (!region_open_[region]) {
    error_operand(Code::E0405, group, k,
                  role(group, k) + " " + value_name(v) + " is defined in a region that does not contain this use");
    return false;
  }
  return true;
}

void Checker::check_operands() {
  const OpDef& d = def();
  const auto values = f->operands(inst);
  for (size_t g = 0; g < d.operands.size(); ++g) {
    for (uint32_t k = first_[g]; k < first_[g + 1]; ++k) {
      const ValueId v = values[k];
      if (!check_dominance(g, k - first_[g], v)) continue;
      // A value of an illegal type was reported where it is defined.
      if (!legal_value(v)) wrong_ |= 1u << g;
      // What a terminator hands over is compared with what its parent takes; a kind that is wrong there is reported
      // there.
      else if (!d.terminator)
        check_value(d.operands[g], f->type(v), {false, static_cast<uint8_t>(g)}, k - first_[g]);
    }
  }
}

void Checker::check_results() {
  const OpDef& d = def();
  const size_t n = f->insts[inst].result_count;
  for (size_t r = 0; r < n; ++r) {
    const size_t at = std::min(r, d.results.size() - 1);
    const ValueId v = f->result(inst, r);
    const unsigned wrong_bit = r < 3 ? 1u << (8 + r) : kOtherBit;
    if (!legal_value(v))
      wrong_ |= wrong_bit;
    else
      check_value(d.results[at], f->type(v), {true, static_cast<uint8_t>(at)}, r - at);
  }
}

void Checker::check_attributes() {
  const OpDef& d = def();
  for (size_t a = 0; a < d.attrs.size(); ++a) {
    const AttrDef& want = d.attrs[a];
    const uint32_t w = word(a);
    const bool absent = w == kNone;
    if (absent && (want.optional || want.kind == AttrKind::BoolArray)) continue;
    if (absent) {
      error_attr(Code::E0602, a, std::string(want.name) + " is missing");
      continue;
    }
    switch (want.kind) {
      case AttrKind::Unit:
      case AttrKind::Bool:
        if (w > 1)
          error_attr(Code::E0601, a, std::string(want.name) + " is " + std::to_string(w) + ", expected 0 or 1");
        break;
      case AttrKind::Enum: {
        const auto values = enum_info(want.enum_kind).values;
        if (w >= values.size() || !(want.allowed >> w & 1))
          error_attr(code_of(want.enum_kind), a,
                     std::string(want.name) + " is " + std::string(enum_word(want.enum_kind, w)) + ", expected " +
                         allowed_words(want));
        else if (values[w].since > kOldestVersion && values[w].since > version())
          error_attr(Code::E0607, a,
                     std::string(want.name) + " is " + std::string(values[w].word) + ", which needs version 13." +
                         std::to_string(values[w].since.minor));
        break;
      }
      case AttrKind::String:
      case AttrKind::Symbol:
        if (w >= m.strings.size()) error_attr(Code::E0602, a, std::string(want.name) + " is missing");
        break;
      default:
        if (w >= m.attrs.size()) {
          error_attr(Code::E0602, a, std::string(want.name) + " is missing");
        } else if (want.kind == AttrKind::Hints) {
          if (!hints_state_[w]) check_hints(w, [&] { return m.place_attr(*f, inst, a); });
        } else if (!is_one_of(m.attrs.get(w).tag, want.kind)) {
          error_attr(Code::E0601, a, std::string(want.name) + " is an attribute of another kind");
        }
    }
  }
}

void Checker::check_ordering() {
  if (row->ordering < 0 || row->scope < 0) return;
  const size_t ordering = static_cast<size_t>(row->ordering), scope = static_cast<size_t>(row->scope);
  if (!def().attrs[scope].optional) return;  // a missing one was reported as such
  const uint32_t o = word(ordering), s = word(scope);
  if (o == kWeak && s != kNone)
    error_attr(Code::E0604, scope,
               "weak access has scope " + std::string(enum_word(EnumKind::Scope, s)) + ", expected none",
               "a scope needs relaxed or a stronger ordering");
  else if (o != kWeak && o != kNone && s == kNone)
    error_attr(
        Code::E0604, ordering,
        std::string(enum_word(EnumKind::MemoryOrdering, o)) + " access has no scope, expected tl_blk, device or sys");
}

void Checker::check_operation(InstId i) {
  inst = i;
  row = &row_facts(f->insts[i].op);
  wrong_ = 0;
  blamed_type_ = kNone;
  if (!check_arity()) return;
  check_operands();
  check_results();
  check_attributes();
  check_ordering();
  check_rules();
  if (!wrong_)
    for (uint8_t k = 0; k < row->whole_count; ++k) row->whole[k](*this);
  check_scope(i);
}

}  // namespace tile::validation
