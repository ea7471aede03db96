// Records of types and constants, and self-contained attributes.
#include "assembler/tileirbc/payload.h"
#include "assembler/tileirbc/writer.h"

namespace tile::tileirbc {
namespace {

void ints(Bytes& out, const auto& values, size_t width) {
  out.varint(values.size());
  for (auto x : values) out.fixed(static_cast<uint64_t>(static_cast<int64_t>(x)), width);
}

}  // namespace

uint32_t Writer::any_string(StringId s) {
  if (s == kNone) return strings_.add({});
  uint32_t& index = string_index_[s];
  if (index == kNone) index = strings_.add(m_.str(s));
  return index;
}

uint32_t Writer::string(StringId s) {
  return chosen(strings_, any_string(s), layout_->string_uses, uses_.strings);
}

uint32_t Writer::any_type(TypeId t) {
  if (type_index_[t] == kNone) type_index_[t] = any_type_of(m_.types.get(t));
  return type_index_[t];
}

uint32_t Writer::any_type_of(const Type& t) {
  Bytes record;
  write_type(record, t, [this](TypeId inner) { return any_type(inner); });
  return types_.add(record.view());
}

/// @param index  gives the index of a type inside of `t`
void Writer::write_type(Bytes& out, const Type& t, const std::function<uint32_t(TypeId)>& index) {
  const auto ptr_attr = [&](bool flags) {
    if (t.ptr_attr == kNone) {
      if (flags && target_ >= kSincePtrAttr) out.varint(0);
      return;
    }
    const EnumValue& word = enum_info(EnumKind::PtrAttr).values[t.ptr_attr];
    if (flags) {
      if (word.since > target_) unsupported("ptr_attr " + std::string(word.word), word.since);
      out.varint(1);
    } else {
      out.varint(t.ptr_attr);
    }
  };
  const bool padded = t.padding != kNone;
  switch (t.kind) {
    case TypeKind::Element: {
      const ElementInfo& e = tile::info(t.element);
      if (e.since > target_) unsupported("type " + std::string(e.name), e.since);
      out.varint(e.tag);
      break;
    }
    case TypeKind::Token:
      out.tag(TypeTag::Token);
      break;
    case TypeKind::Ptr: {
      const uint32_t inner = index(t.inner);
      out.tag(TypeTag::Ptr);
      ptr_attr(true);
      out.varint(inner);
      ptr_attr(false);
      break;
    }
    case TypeKind::Tile: {
      const uint32_t inner = index(t.inner);
      out.tag(TypeTag::Tile);
      out.varint(inner);
      ints(out, t.shape, 8);
      break;
    }
    case TypeKind::TensorView: {
      const uint32_t inner = index(t.inner);
      out.tag(TypeTag::TensorView);
      ptr_attr(true);
      out.varint(inner);
      ints(out, t.shape, 8);
      ints(out, t.strides, 8);
      ptr_attr(false);
      break;
    }
    case TypeKind::PartitionView:
    case TypeKind::StridedView:
    case TypeKind::GatherScatterView: {
      const bool partition = t.kind == TypeKind::PartitionView, gather = t.kind == TypeKind::GatherScatterView;
      if (!partition && target_ < kSinceNewViews)
        unsupported(gather ? "type gather_scatter_view" : "type strided_view", kSinceNewViews);
      const bool flags_first = !partition || target_ >= kSinceViewFlags;
      const uint32_t view = index(t.inner);
      out.tag(partition ? TypeTag::PartitionView : gather ? TypeTag::GatherScatterView : TypeTag::StridedView);
      if (flags_first) out.varint(padded ? 1 : 0);
      ints(out, t.shape, 4);
      if (t.kind == TypeKind::StridedView) ints(out, t.strides, 4);
      out.varint(view);
      if (gather) {
        out.varint(t.sparse_dim);
      } else {
        ints(out, t.dim_map, 4);
      }
      if (!flags_first) out.byte(padded ? 1 : 0);
      if (padded) out.varint(t.padding);
      break;
    }
    case TypeKind::Function: {
      std::vector<uint32_t> params, results;
      for (TypeId p : t.params) params.push_back(index(p));
      for (TypeId r : t.results) results.push_back(index(r));
      out.tag(TypeTag::Function);
      for (const auto* list : {&params, &results}) {
        out.varint(list->size());
        for (uint32_t p : *list) out.varint(p);
      }
      break;
    }
  }
}

uint32_t Writer::constant(AttrId dense) {
  if (uses_.constants < layout_->constant_uses.size()) {
    const uint32_t wanted = layout_->constant_uses[uses_.constants++];
    if (holds(wanted, dense)) return wanted;
  }
  return any_constant(dense);
}

uint32_t Writer::any_constant(AttrId dense) {
  const auto [it, is_new] = constant_index_.try_emplace(dense, kNone);
  if (is_new) {
    const Attr& a = m_.attrs.get(dense);
    Bytes record;
    const std::string payload = encode_payload(m_.types.get(a.type).element, a.bytes);
    record.varint(payload.size());
    record.append(payload);
    it->second = constants_.add(record.view());
  }
  return it->second;
}

void Writer::number(Bytes& out, const Attr& a) {
  const ElementType e = m_.types.get(a.type).element;
  const unsigned bits = tile::info(e).bits;
  out.tag(a.tag == AttrTag::Float ? AttrCode::Float : AttrCode::Integer);
  out.varint(type(a.type));
  const uint64_t value = e == ElementType::TF32 ? a.bits >> kTf32Shift : a.bits;
  if (a.tag == AttrTag::Float ? bits <= 8 : bits == 1) {
    out.byte(static_cast<uint8_t>(value));
  } else if (a.tag == AttrTag::Float) {
    out.zigzag(static_cast<int64_t>(value));
  } else {
    out.varint(value);
  }
}

void Writer::attribute(Bytes& out, AttrId id) {
  const Attr& a = m_.attrs.get(id);
  switch (a.tag) {
    case AttrTag::Integer:
    case AttrTag::Float:
      return number(out, a);
    case AttrTag::Bool:
      if (uses_.bools < layout_->bool_as_integer.size() && layout_->bool_as_integer[uses_.bools++]) {
        Type i1;
        i1.kind = TypeKind::Element;
        i1.element = ElementType::I1;
        out.tag(AttrCode::Integer);
        out.varint(type_of(i1));
      } else {
        out.tag(AttrCode::Bool);
      }
      out.byte(a.bits != 0);
      return;
    case AttrTag::Type:
      out.tag(AttrCode::Type);
      out.varint(type(a.type));
      return;
    case AttrTag::String:
      out.tag(AttrCode::String);
      out.varint(string(a.string));
      return;
    case AttrTag::Array:
      out.tag(AttrCode::Array);
      out.varint(a.items.size());
      for (AttrId item : a.items) attribute(out, item);
      return;
    case AttrTag::DivBy:
      out.tag(AttrCode::DivBy);
      out.varint(a.bits);
      out.byte(a.ints.empty() ? 0 : 3);
      for (int64_t x : a.ints) out.zigzag(x);
      return;
    case AttrTag::SameElements:
      out.tag(AttrCode::SameElements);
      ints(out, a.ints, 8);
      return;
    case AttrTag::Bounded:
      out.tag(AttrCode::Bounded);
      out.byte(a.flags & 3);
      for (size_t side = 0; side < a.ints.size() && side < 2; ++side)
        if (a.flags >> side & 1) out.zigzag(a.ints[side]);
      return;
    case AttrTag::Dictionary:
      out.tag(AttrCode::Dictionary);
      dictionary(out, a);
      return;
    case AttrTag::Dense:
    case AttrTag::I32Array:
    case AttrTag::BoolArray:
    case AttrTag::Opaque:
      break;
  }
  (void)diags_.error(Code::E0601, place(), "an attribute of this kind has no form in tileirbc");
}

void Writer::dictionary(Bytes& out, const Attr& a) {
  out.varint(a.entries.size());
  for (const auto& [key, value] : a.entries) {
    out.varint(string(key));
    attribute(out, value);
  }
}

}  // namespace tile::tileirbc
