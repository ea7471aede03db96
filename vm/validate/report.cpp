// How the validator says what is wrong: places, roles, names, notes at definitions.
#include "vm/validate/checker.h"

namespace tile::validation {

std::string counted(size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string set_text(ElementSet set) {
  if (set == kAny) return "an element type";
  if (set == kNum) return "a number type";
  if (set == kPtr) return "a pointer";
  if (set == kAnyFloat) return "a float type";
  // All but a few are named by what is missing.
  const uint32_t missing = kAny.bits & ~set.bits;
  const bool by_missing = (set.bits & ~kAny.bits) == 0 && __builtin_popcount(missing) <= 2;
  std::string out;
  uint32_t left = by_missing ? missing : set.bits;
  for (size_t i = 0; i < kElementTypes; ++i) {
    if (!(left >> i & 1)) continue;
    left &= ~(1u << i);
    if (!out.empty()) out += left == 0 ? " or " : ", ";
    out += kElementInfo[i].name;
  }
  return by_missing ? "an element type other than " + out : out;
}

std::string Checker::value_name(ValueId v) const {
  if (v < f->value_names.size() && f->value_names[v] != kNone) return "%" + std::string(m.str(f->value_names[v]));
  return "%" + std::to_string(v);
}

std::string Checker::type_text(TypeId id) const {
  // Legal types nest three deep (view, tensor view, pointer). A reader may hand over nonsense that nests as deep as its
  // file is long.
  constexpr int kDeepest = 8;
  TypeId inner = id;
  for (int depth = 0; inner < m.types.size(); inner = m.types.get(inner).inner)
    if (++depth > kDeepest) return "<deeply nested type>";
  return m.types.print(id);
}

std::string Checker::role(size_t group, size_t k) const {
  std::string out(def().operands[group].name);
  if (def().operands[group].arity == Arity::Variadic) out += "[" + std::to_string(k) + "]";
  return out;
}

void Checker::report(Code code, Place place, const std::string& what, std::string help, ValueId defined) {
  Diagnostic d{code, std::move(place), name() + ": " + what, {}, std::move(help), {}};
  if (defined != kNone) d.notes.push_back({m.place_value(*f, defined), value_name(defined) + " is defined here"});
  diags.error(std::move(d));
}

void Checker::error(Code code, const std::string& what, std::string help) {
  wrong_ |= kOtherBit;
  report(code, m.place(*f, inst), what, std::move(help), kNone);
}

void Checker::error_operand(Code code, size_t group, size_t k, const std::string& what, std::string help) {
  wrong_ |= 1u << group;
  report(code, m.place_operand(*f, inst, first_[group] + k), what, std::move(help), value(group, k));
}

void Checker::error_result(Code code, size_t r, const std::string& what, std::string help) {
  wrong_ |= r < 3 ? 1u << (8 + r) : kOtherBit;
  Place place = m.place(*f, inst);
  const ValueId v = f->result(inst, r);
  if (m.source && v < f->value_spans.size() && f->value_spans[v].valid()) {
    place.source = m.source;
    place.span = f->value_spans[v];
  }
  report(code, std::move(place), what, std::move(help), kNone);
}

void Checker::error_attr(Code code, size_t attr, const std::string& what, std::string help) {
  wrong_ |= kOtherBit;
  report(code, m.place_attr(*f, inst, attr), what, std::move(help), kNone);
}

void Checker::error_with(Code code, const std::string& what, InstId other, const std::string& note, std::string help) {
  wrong_ |= kOtherBit;
  Diagnostic d{code, m.place(*f, inst), name() + ": " + what, {}, std::move(help), {}};
  d.notes.push_back({other == kNone ? m.place(*f) : m.place(*f, other), note});
  diags.error(std::move(d));
}

void Checker::warn_attr(size_t attr, const std::string& what, ValueId defined) {
  report(Code::W0001, m.place_attr(*f, inst, attr), what, {}, defined);
}

void Checker::error_at(Position p, Code code, const std::string& what, std::string help) {
  if (p.is_result)
    error_result(code, p.index, what, std::move(help));
  else
    error_operand(code, p.index, 0, what, std::move(help));
}

int64_t Checker::int_attr(size_t attr) const {
  const unsigned shift = 64u - def().attrs[attr].int_bits;
  return static_cast<int64_t>(attr_value(attr).bits << shift) >> shift;
}

const Attr* Checker::constant_of(ValueId v) const {
  const AttrId id = constants_[v];
  if (id == kNone || id >= m.attrs.size()) return nullptr;
  const Attr& a = m.attrs.get(id);
  return a.tag == AttrTag::Dense ? &a : nullptr;
}

}  // namespace tile::validation
