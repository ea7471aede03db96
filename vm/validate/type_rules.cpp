// Which types are legal. Source: spec/types.md.
#include <algorithm>

#include "vm/validate/checker.h"

namespace tile::validation {
namespace {

constexpr int64_t kMaxTileElements = int64_t{1} << 24;
/// Bound on the rank of tiles and tensor views. The language has none; with it the work for one operation is bounded.
constexpr size_t kMaxRank = 64;

bool power_of_two(int64_t x) {
  return x >= 1 && (x & (x - 1)) == 0;
}

std::string dim(const char* what, size_t i, int64_t found, const char* expected) {
  return std::string(what) + " " + std::to_string(i) + " is " +
         (found == kDynamic ? "dynamic" : std::to_string(found)) + ", expected " + expected;
}

/// Why a type cannot be the element of a tensor view or the pointee of a pointer, or empty.
std::string number_fault(const TypeTable& types, TypeId id, const char* role) {
  if (id < types.size() && types.get(id).kind == TypeKind::Element && kNum.has(types.get(id).element)) return {};
  return std::string(role) + " must be a number type other than i4";
}

std::string extents_fault(const std::vector<int64_t>& shape, ElementType element) {
  if (shape.size() > kMaxRank)
    return "rank is " + std::to_string(shape.size()) + ", at most " + std::to_string(kMaxRank) + " is supported";
  int64_t elements = 1;
  bool even = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!power_of_two(shape[i])) return dim("dimension", i, shape[i], "a power of two");
    if (shape[i] > kMaxTileElements / elements) return "it has more than 16777216 elements";
    elements *= shape[i];
    even |= shape[i] > 1;
  }
  if (element == ElementType::F4E2M1FN && !even) return "a tile of f4E2M1FN needs an even number of elements";
  return {};
}

std::string tile_fault(Checker& c, const Type& t) {
  const TypeTable& types = c.m.types;
  if (t.inner >= types.size()) return "it has no element type";
  const Type& inner = types.get(t.inner);
  if (inner.kind == TypeKind::Ptr) {
    if (std::string fault = number_fault(types, inner.inner, "the pointee"); !fault.empty()) return fault;
    if (!t.shape.empty() && types.get(inner.inner).element == ElementType::F4E2M1FN && c.version() >= v(13, 5))
      return "a tile of pointers to f4E2M1FN must have rank 0";
  } else if (inner.kind != TypeKind::Element) {
    return "the element must be a number type or a pointer";
  }
  return extents_fault(t.shape, inner.element);
}

std::string tensor_view_fault(const TypeTable& types, const Type& t) {
  if (std::string fault = number_fault(types, t.inner, "the element"); !fault.empty()) return fault;
  if (t.shape.size() > kMaxRank)
    return "rank is " + std::to_string(t.shape.size()) + ", at most " + std::to_string(kMaxRank) + " is supported";
  if (t.shape.size() != t.strides.size())
    return "it has " + counted(t.strides.size(), "stride") + ", expected " + std::to_string(t.shape.size()) +
           " (its rank)";
  for (size_t i = 0; i < t.shape.size(); ++i) {
    if (t.shape[i] < 1 && t.shape[i] != kDynamic) return dim("dimension", i, t.shape[i], "at least 1");
    if (t.strides[i] < 1 && t.strides[i] != kDynamic) return dim("stride", i, t.strides[i], "at least 1");
  }
  return {};
}

std::string dim_map_fault(const Type& t) {
  const size_t rank = t.shape.size();
  if (t.dim_map.size() != rank)
    return "dim_map has " + counted(t.dim_map.size(), "value") + ", expected " + std::to_string(rank) + " (the rank)";
  uint64_t seen = 0;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t d = t.dim_map[i];
    if (d < 0 || d >= static_cast<int64_t>(rank)) return dim("dim_map value", i, d, "a dimension below the rank");
    if (seen >> d & 1) return "dim_map has dimension " + std::to_string(d) + " twice";
    seen |= uint64_t{1} << d;
  }
  return {};
}

std::string view_fault(const TypeTable& types, const Type& t) {
  if (t.inner >= types.size() || types.get(t.inner).kind != TypeKind::TensorView) return "it must have a tensor_view";
  const Type& tv = types.get(t.inner);
  if (std::string fault = tensor_view_fault(types, tv); !fault.empty()) return "its tensor_view is illegal: " + fault;
  const size_t rank = t.shape.size();
  if (rank == 0) return "its tile has rank 0, expected at least 1";
  if (rank != tv.shape.size())
    return "its tile has rank " + std::to_string(rank) + ", expected " + std::to_string(tv.shape.size()) +
           " (the rank of its tensor_view)";
  if (std::string fault = extents_fault(t.shape, tv.element); !fault.empty()) return "its tile is illegal: " + fault;
  if (t.padding != kNone && t.padding != kPaddingZero && !info(tv.element).is_float)
    return "padding_value is " + std::string(enum_word(EnumKind::Padding, t.padding)) + ", expected zero for " +
           std::string(info(tv.element).name);
  if (t.kind == TypeKind::GatherScatterView) {
    if (t.sparse_dim >= rank)
      return "sparse_dim is " + std::to_string(t.sparse_dim) + ", expected a dimension below the rank " +
             std::to_string(rank);
    return {};
  }
  if (t.kind == TypeKind::StridedView) {
    if (t.strides.size() != rank)
      return "it has " + counted(t.strides.size(), "traversal stride") + ", expected " + std::to_string(rank) +
             " (its rank)";
    for (size_t i = 0; i < rank; ++i)
      if (t.strides[i] < 1 || t.strides[i] > INT32_MAX)
        return dim("traversal stride", i, t.strides[i], t.strides[i] < 1 ? "at least 1" : "at most 2147483647");
  }
  return dim_map_fault(t);
}

std::string fault_of(Checker& c, TypeId id) {
  const TypeTable& types = c.m.types;
  if (id >= types.size()) return "there is no such type";
  const Type& t = types.get(id);
  switch (t.kind) {
    case TypeKind::Tile:
      return tile_fault(c, t);
    case TypeKind::TensorView:
      return tensor_view_fault(types, t);
    case TypeKind::PartitionView:
    case TypeKind::StridedView:
    case TypeKind::GatherScatterView:
      return view_fault(types, t);
    case TypeKind::Token:
      return {};
    case TypeKind::Element:
    case TypeKind::Ptr:
    case TypeKind::Function:
      return "a value must be a tile, a view or a token";
  }
  return {};
}

}  // namespace

bool Checker::legal_type(TypeId id, const std::function<Place()>& place) {
  if (id < type_state_.size() && type_state_[id] != 0) return type_state_[id] == 1;
  const std::string fault = fault_of(*this, id);
  if (type_state_.size() < m.types.size()) type_state_.resize(m.types.size());
  if (id < type_state_.size()) type_state_[id] = fault.empty() ? 1 : 2;
  if (!fault.empty()) diags.error(Code::E0505, place(), "illegal type " + type_text(id) + ": " + fault);
  return fault.empty();
}

bool Checker::legal_value(ValueId value) {
  const TypeId id = f->type(value);
  if (id < type_state_.size() && type_state_[id] != 0) return type_state_[id] == 1;
  return legal_type(id, [this, value] { return m.place_value(*f, value); });
}

}  // namespace tile::validation
