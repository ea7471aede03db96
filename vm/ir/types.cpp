// Interning and printing of types.
#include "vm/ir/types.h"

#include "vm/ir/hash_mix.h"
#include "vm/ops/enums.h"

namespace tile {
namespace {

uint64_t hash(const Type& t, uint64_t seed) {
  uint64_t h = mix(seed, static_cast<uint64_t>(t.kind) << 8 | static_cast<uint64_t>(t.element));
  h = mix(mix(mix(mix(h, t.inner), t.padding), t.sparse_dim), t.ptr_attr);
  for (int64_t x : t.shape) h = mix(h, static_cast<uint64_t>(x));
  h = mix(h, t.shape.size());
  for (int64_t x : t.strides) h = mix(h, static_cast<uint64_t>(x));
  for (int32_t x : t.dim_map) h = mix(h, static_cast<uint32_t>(x));
  for (TypeId x : t.params) h = mix(h, x);
  h = mix(h, t.params.size());
  for (TypeId x : t.results) h = mix(h, x);
  return h;
}

void print_dims(std::string& out, std::span<const int64_t> shape) {
  for (int64_t d : shape) out += (d == kDynamic ? "?" : std::to_string(d)) + "x";
}

template <class Items>
std::string bracketed(const Items& items) {
  std::string out = "[";
  bool first = true;
  for (const auto x : items) {
    if (!first) out += ", ";
    first = false;
    out += static_cast<int64_t>(x) == kDynamic ? "?" : std::to_string(x);
  }
  return out + "]";
}

bool is_identity(const std::vector<int32_t>& map) {
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<int32_t>(i)) return false;
  return true;
}

}  // namespace

TypeId TypeTable::add(const Type& t) {
  const TypeId next = static_cast<TypeId>(items_.size());
  const TypeId known =
      index_.find_or_add(hash(t, index_.seed()), next, [&](TypeId id) { return items_[id] == t; });
  if (known != kNone) return known;
  items_.push_back(t);
  return next;
}

TypeId TypeTable::element(ElementType e) {
  Type t;
  t.kind = TypeKind::Element;
  t.element = e;
  return add(t);
}

TypeId TypeTable::ptr(TypeId pointee, uint32_t attr) {
  Type t;
  t.kind = TypeKind::Ptr;
  t.element = ElementType::Ptr;
  t.inner = pointee;
  t.ptr_attr = attr;
  return add(t);
}

TypeId TypeTable::tile(TypeId element, std::span<const int64_t> shape) {
  Type t;
  t.kind = TypeKind::Tile;
  t.inner = element;
  t.element = get(element).element;
  t.shape.assign(shape.begin(), shape.end());
  return add(t);
}

TypeId TypeTable::token() {
  Type t;
  t.kind = TypeKind::Token;
  return add(t);
}

TypeId TypeTable::tensor_view(TypeId element, std::span<const int64_t> shape, std::span<const int64_t> strides, uint32_t ptr_attr) {
  Type t;
  t.kind = TypeKind::TensorView;
  t.inner = element;
  t.element = get(element).element;
  t.shape.assign(shape.begin(), shape.end());
  t.strides.assign(strides.begin(), strides.end());
  t.ptr_attr = ptr_attr;
  return add(t);
}

TypeId TypeTable::with_shape(TypeId tile_type, std::span<const int64_t> shape) {
  const TypeId inner = get(tile_type).inner;
  const std::vector<int64_t> copy(shape.begin(), shape.end());  // the span may point into the table
  return tile(inner, copy);
}

bool TypeTable::is_view(TypeId id) const {
  if (id >= size()) return false;
  const TypeKind k = get(id).kind;
  return k == TypeKind::PartitionView || k == TypeKind::StridedView || k == TypeKind::GatherScatterView;
}

ElementType TypeTable::element_of(TypeId id) const {
  const Type& t = get(id);
  if (is_view(id)) return get(t.inner).element;
  return t.element;
}

TypeId TypeTable::pointee_of(TypeId id) const {
  if (id >= size()) return kNone;
  const Type& t = get(id);
  if (t.kind == TypeKind::Ptr) return t.inner;
  if (t.kind == TypeKind::Tile && get(t.inner).kind == TypeKind::Ptr) return get(t.inner).inner;
  return kNone;
}

TypeId TypeTable::view_tile(TypeId view) {
  const Type& t = get(view);
  const TypeId element = get(t.inner).inner;
  const std::vector<int64_t> shape = t.shape;
  return tile(element, shape);
}

int64_t TypeTable::element_count(TypeId id) const {
  int64_t n = 1;
  for (int64_t d : get(id).shape)
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) return INT64_MAX;
  return n;
}

std::string TypeTable::print(TypeId id) const {
  if (id >= size()) return "<no type>";
  const Type& t = get(id);
  std::string out;
  const auto view_tail = [&](bool with_map) {
    if (t.padding != kNone) out += "padding_value = " + std::string(enum_word(EnumKind::Padding, t.padding)) + ", ";
    out += print(t.inner);
    if (with_map && !is_identity(t.dim_map)) out += ", dim_map=" + bracketed(t.dim_map);
  };
  const auto tile_dims = [&] {
    std::string dims;
    for (size_t i = 0; i < t.shape.size(); ++i) dims += (i ? "x" : "") + std::to_string(t.shape[i]);
    return "tile=(" + dims + "), ";
  };
  switch (t.kind) {
    case TypeKind::Element:
      return std::string(info(t.element).name);
    case TypeKind::Ptr:
      out = "ptr<" + print(t.inner);
      if (t.ptr_attr != kNone) out += ", <" + std::string(enum_word(EnumKind::PtrAttr, t.ptr_attr)) + ">";
      return out + ">";
    case TypeKind::Tile:
      out = "tile<";
      print_dims(out, t.shape);
      return out + print(t.inner) + ">";
    case TypeKind::TensorView:
      out = "tensor_view<";
      print_dims(out, t.shape);
      out += print(t.inner);
      if (!t.shape.empty() || !t.strides.empty()) {
        std::string strides = bracketed(t.strides);
        std::erase(strides, ' ');
        out += ", strides=" + strides;
      }
      if (t.ptr_attr != kNone) out += ", #cuda_tile.ptr_attr<" + std::string(enum_word(EnumKind::PtrAttr, t.ptr_attr)) + ">";
      return out + ">";
    case TypeKind::PartitionView:
      out = "partition_view<" + tile_dims();
      view_tail(true);
      return out + ">";
    case TypeKind::StridedView:
      out = "strided_view<" + tile_dims() + "traversal_strides=" + bracketed(t.strides) + ", ";
      view_tail(true);
      return out + ">";
    case TypeKind::GatherScatterView:
      out = "gather_scatter_view<" + tile_dims();
      view_tail(false);
      return out + ", sparse_dim=" + std::to_string(t.sparse_dim) + ">";
    case TypeKind::Token:
      return "token";
    case TypeKind::Function: {
      out = "(";
      for (size_t i = 0; i < t.params.size(); ++i) out += (i ? ", " : "") + print(t.params[i]);
      out += ") -> (";
      for (size_t i = 0; i < t.results.size(); ++i) out += (i ? ", " : "") + print(t.results[i]);
      return out + ")";
    }
  }
  return out;
}

}  // namespace tile
