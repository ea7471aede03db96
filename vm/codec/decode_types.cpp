// Type records of tilebc. Only the fields that a kind has are read.
#include <algorithm>

#include "vm/codec/decoder.h"

namespace tile {
namespace {

bool is_view(TypeKind k) {
  return k == TypeKind::PartitionView || k == TypeKind::StridedView || k == TypeKind::GatherScatterView;
}

template <class V>
bool fits_rank(const V* v) {
  return !v || v->size() <= kMaxTilebcRank;
}

}  // namespace

bool TilebcDecoder::types() {
  const auto* all = root_.types();
  for (uint32_t i = 0; all && i < all->size(); ++i)
    if (!type_record(*all->Get(i), i)) return false;
  return true;
}

bool TilebcDecoder::type_record(const bc::Type& t, uint32_t index) {
  const auto broken = [&](const std::string& why) { return record_fault(Code::E0210, "type", index, why); };
  if (t.kind() > static_cast<uint8_t>(TypeKind::Token)) return broken("unknown kind " + std::to_string(t.kind()));
  if (!fits_rank(t.shape()) || !fits_rank(t.strides()) || !fits_rank(t.dim_map()))
    return broken("more than " + std::to_string(kMaxTilebcRank) + " dimensions");
  if (!charge(sizeof(Type)) || !charge_vector(t.dim_map(), sizeof(int32_t))) return false;
  Type out;
  out.kind = static_cast<TypeKind>(t.kind());
  type_depth_.push_back(1);
  switch (out.kind) {
    case TypeKind::Token:
    case TypeKind::Function:
      break;
    case TypeKind::Element: {
      const auto* end = kElementInfo.end() - 1;  // the last is ptr, which is a kind of its own
      const auto* e =
          std::find_if(kElementInfo.begin(), end, [&](const ElementInfo& x) { return x.tag == t.element(); });
      if (e == end) return broken("unknown element type tag " + std::to_string(t.element()));
      out.element = static_cast<ElementType>(e - kElementInfo.begin());
      break;
    }
    case TypeKind::Ptr:
    case TypeKind::Tile:
    case TypeKind::TensorView:
    case TypeKind::PartitionView:
    case TypeKind::StridedView:
    case TypeKind::GatherScatterView:
      if (!inner_type(t, index, out)) return false;
      break;
  }
  const bool view = is_view(out.kind);
  const bool has_shape = view || out.kind == TypeKind::Tile || out.kind == TypeKind::TensorView;
  if (has_shape && !numbers(t.shape(), out.shape)) return false;
  const bool has_strides = out.kind == TypeKind::TensorView || out.kind == TypeKind::StridedView;
  if (has_strides && !numbers(t.strides(), out.strides)) return false;
  const bool has_dim_map = out.kind == TypeKind::PartitionView || out.kind == TypeKind::StridedView;
  if (has_dim_map && t.dim_map()) out.dim_map.assign(t.dim_map()->begin(), t.dim_map()->end());
  if (out.kind == TypeKind::GatherScatterView) out.sparse_dim = t.sparse_dim();
  if (view) out.padding = t.padding();
  if (out.kind == TypeKind::Ptr || out.kind == TypeKind::TensorView) out.ptr_attr = t.ptr_attr();
  if (out.padding != kNone && out.padding >= enum_info(EnumKind::Padding).values.size())
    return broken("unknown padding value " + std::to_string(out.padding));
  if (out.ptr_attr != kNone && out.ptr_attr >= enum_info(EnumKind::PtrAttr).values.size())
    return broken("unknown pointer attribute " + std::to_string(out.ptr_attr));
  type_ids_.push_back(m_.types.add(out));
  return true;
}

/// Sets `inner`, and `element` as TypeTable's makers do.
bool TilebcDecoder::inner_type(const bc::Type& t, uint32_t index, Type& out) {
  const auto broken = [&](const std::string& why) { return record_fault(Code::E0210, "type", index, why); };
  if (t.inner() >= type_ids_.size()) {
    return broken(t.inner() == kNone
                      ? std::string("its inner type is missing")
                      : "its inner type is type " + std::to_string(t.inner()) + ", expected an earlier one");
  }
  out.inner = type_ids_[t.inner()];
  type_depth_.back() = static_cast<uint16_t>(type_depth_[t.inner()] + 1);
  if (!nested(type_depth_.back(), "types")) return false;
  const Type& inner = m_.types.get(out.inner);
  if (is_view(out.kind))
    return inner.kind == TypeKind::TensorView ||
           broken("a view of " + m_.types.print(out.inner) + ", expected a tensor_view");
  if (out.kind == TypeKind::Ptr) {
    out.element = ElementType::Ptr;
    return true;  // of anything: which pointees are legal is the validator's
  }
  out.element = inner.element;
  return inner.kind == TypeKind::Element || inner.kind == TypeKind::Ptr ||
         broken("its elements are " + m_.types.print(out.inner) + ", expected a number or a pointer");
}

}  // namespace tile
