// The closed list of rules between positions of a row.
#include <algorithm>

#include "vm/validate/checker.h"

namespace tile::validation {
namespace {

bool splats(const Type& from, const Type& to) {
  if (from.shape.size() != to.shape.size()) return false;
  for (size_t i = 0; i < from.shape.size(); ++i)
    if (from.shape[i] != 1 && from.shape[i] != to.shape[i]) return false;
  return true;
}

// `x` and `y` are legal types of the kinds that the row wants.
bool holds(const TypeTable& types, RuleKind kind, TypeId first, TypeId other) {
  if (kind == RuleKind::SameType) return first == other;
  const Type &x = types.get(first), &y = types.get(other);
  switch (kind) {
    case RuleKind::SameType:
      return first == other;
    case RuleKind::SameShape:
      return x.shape == y.shape;
    case RuleKind::SameElement:
      return x.inner == y.inner;
    case RuleKind::PointeeOf:
      return x.shape == y.shape && types.get(x.inner).inner == y.inner;
    case RuleKind::WiderThan:
      return info(y.element).bits > info(x.element).bits;
    case RuleKind::SameBits:
      return info(y.element).bits == info(x.element).bits;
    case RuleKind::SameCount:
      return types.element_count(first) == types.element_count(other);
    case RuleKind::SplatTo:
      return splats(x, y);
    case RuleKind::DifferentType:
      return x.inner != y.inner;
    case RuleKind::ViewTile:
      return y.inner == types.get(x.inner).inner && x.shape == y.shape;
    default:
      return true;
  }
  return true;
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + (shape[i] == kDynamic ? "?" : std::to_string(shape[i]));
  return out + "]";
}

void Checker::check_rules() {
  for (uint8_t r = 0; r < row->rule_count; ++r) check_rule(row->rules[r]);
}

// Compares with the first position that is there; what was found wrong before takes no part.
void Checker::check_rule(const RowRule& rule) {
  const Position first = rule.at[0];
  if (!present(first) || is_wrong(first)) return;
  for (uint8_t k = 1; k < rule.count; ++k) {
    const Position other = rule.at[k];
    if (present(other) && !is_wrong(other) && !holds(m.types, rule.kind, type_at(first), type_at(other)))
      broken_rule(rule.kind, first, other);
  }
}

void Checker::broken_rule(RuleKind kind, Position first, Position other) {
  const TypeId want = type_at(first), found = type_at(other);
  const Type &x = m.types.get(want), &y = m.types.get(found);
  const std::string a(name_at(first)), b(name_at(other));
  const auto type = [&](TypeId id) { return type_text(id); };
  const auto number = [](int64_t n) { return std::to_string(n); };
  const std::string shapes =
      b + " has shape " + shape_text(y.shape) + ", expected " + shape_text(x.shape) + " (the shape of " + a + ")";
  switch (kind) {
    case RuleKind::SameType: {
      std::string help;
      if (!other.is_result && x.kind == TypeKind::Tile && y.kind == TypeKind::Tile && x.shape == y.shape &&
          kBaseFloat.has(x.element) && kBaseFloat.has(y.element))
        help =
            "insert a conversion: ftof " + value_name(value(other.index)) + " : " + type(found) + " -> " + type(want);
      return error_at(other, Code::E0504,
                      b + " has type " + type(found) + ", expected " + type(want) + " (the type of " + a + ")", help);
    }
    case RuleKind::SameShape:
      return error_at(other, Code::E0503, shapes);
    case RuleKind::SameElement:
      return error_at(other, Code::E0504,
                      b + " has element type " + type(y.inner) + ", expected " + type(x.inner) +
                          " (the element type of " + a + ")");
    case RuleKind::PointeeOf: {
      if (x.shape != y.shape) return error_at(other, Code::E0503, shapes);
      const TypeId pointee = m.types.get(x.inner).inner;
      return error_at(
          other, Code::E0504,
          b + " has element type " + type(y.inner) + ", expected " + type(pointee) + " (the pointee of " + a + ")");
    }
    case RuleKind::WiderThan:
      return error_at(other, Code::E0502,
                      b + " has element type " + type(y.inner) + ", expected one wider than " + type(x.inner) +
                          " (the element type of " + a + ")");
    case RuleKind::SameBits:
      return error_at(other, Code::E0502,
                      b + " has element type " + type(y.inner) + " of " + number(info(y.element).bits) +
                          " bits, expected one of " + number(info(x.element).bits) + " bits (as " + a + ")");
    case RuleKind::SameCount:
      return error_at(other, Code::E0503,
                      b + " has " + number(m.types.element_count(found)) + " elements, expected " +
                          number(m.types.element_count(want)) + " (as " + a + ")");
    case RuleKind::SplatTo: {
      if (x.shape.size() != y.shape.size())
        return error_at(other, Code::E0503,
                        b + " has rank " + number(static_cast<int64_t>(y.shape.size())) + ", expected " +
                            number(static_cast<int64_t>(x.shape.size())) + " (the rank of " + a + ")",
                        "broadcast needs equal rank: reshape first");
      size_t i = 0;
      while (x.shape[i] == 1 || x.shape[i] == y.shape[i]) ++i;
      const std::string dim = "dimension " + std::to_string(i) + " of ";
      return error_at(
          other, Code::E0503,
          dim + b + " is " + number(y.shape[i]) + ", expected " + number(x.shape[i]) + " (" + dim + a + ")");
    }
    case RuleKind::DifferentType:
      return error_at(other, Code::E0502,
                      b + " has element type " + type(y.inner) + ", expected another than that of " + a);
    case RuleKind::ViewTile: {
      const TypeId tile = m.types.view_tile(want);
      return error_at(other, Code::E0504,
                      b + " has type " + type(found) + ", expected " + type(tile) + " (the tile of " + a + ")");
    }
    default:
      return;
  }
}

}  // namespace tile::validation
