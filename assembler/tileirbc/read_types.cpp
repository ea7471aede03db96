// Type records of tileirbc.
#include <limits>

#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {
namespace {

constexpr TypeId kActive = kNone - 1;  // in type_ids_: the record is being decoded

const ElementInfo* element_of_tag(uint64_t tag, ElementType& out) {
  for (size_t i = 0; i < kElementTypes; ++i) {
    out = static_cast<ElementType>(i);
    if (out != ElementType::Ptr && kElementInfo[i].tag == tag) return &kElementInfo[i];
  }
  return nullptr;
}

bool stands_for_a_value(TypeKind k) {
  return k != TypeKind::Function;
}

}  // namespace

bool Reader::type(Cursor& c, TypeId& out, const char* what, int depth) {
  const size_t at = c.pos();
  uint64_t index;
  if (!c.varint(index, what)) return false;
  if (index >= types_.count) {
    return fail(Code::E0108, at,
                std::string(what) + " is type " + std::to_string(index) + ", but there are only " +
                    std::to_string(types_.count));
  }
  if (raw_types_) {
    out = static_cast<TypeId>(index);
    return true;
  }
  if (layout_ && depth == 0) layout_->type_uses.push_back(static_cast<uint32_t>(index));
  const auto i = static_cast<size_t>(index);
  if (type_ids_[i] == kActive) return fail(Code::E0108, at, "type " + std::to_string(index) + " contains itself");
  if (type_ids_[i] == kNone) {
    if (depth >= kMaxTypeNesting)
      return fail(Code::L0102, at, "types nest more than " + std::to_string(kMaxTypeNesting) + " levels deep");
    type_ids_[i] = kActive;
    Cursor r = record(types_, index);
    Type t;
    if (!decode_type(r, t, depth + 1)) return false;
    if (r.left() != 0) {
      return fail(Code::E0108, r.pos(),
                  std::to_string(r.left()) + " bytes follow the fields of type " + std::to_string(index));
    }
    type_ids_[i] = module_.types.add(t);
  }
  out = type_ids_[i];
  return true;
}

bool Reader::value_type(Cursor& c, TypeId& out, const char* what) {
  const size_t at = c.pos();
  if (!type(c, out, what)) return false;
  return stands_for_a_value(module_.types.get(out).kind) ||
         fail(Code::E0108, at, std::string(what) + " is a function type, expected the type of a value");
}

bool Reader::decode_type(Cursor& c, Type& out, int depth) {
  const size_t at = c.pos();
  uint64_t tag;
  if (!c.varint(tag, "the tag of a type")) return false;
  ElementType element;
  if (const ElementInfo* e = element_of_tag(tag, element)) {
    if (e->since > version_) return fail(Code::E0113, at, std::string(e->name) + " is newer than the file's version");
    out.kind = TypeKind::Element;
    out.element = element;
    return true;
  }
  if (tag > UINT8_MAX) return fail(Code::E0108, at, "unknown type tag " + std::to_string(tag));
  switch (static_cast<TypeTag>(tag)) {
    case TypeTag::Ptr: {
      bool has_attr = false;
      if (version_ >= kSincePtrAttr && !flag_bit0(c, has_attr, "the flags of a ptr type")) return false;
      if (!inner_type(c, out, "the pointee", depth)) return false;
      out.kind = TypeKind::Ptr;
      out.element = ElementType::Ptr;
      return !has_attr || enum_value(c, EnumKind::PtrAttr, Code::E0108, out.ptr_attr);
    }
    case TypeTag::Tile:
      if (!inner_type(c, out, "the element type of a tile", depth)) return false;
      out.kind = TypeKind::Tile;
      return ints(c, 8, out.shape, "the shape of a tile");
    case TypeTag::TensorView: {
      bool has_attr = false;
      if (version_ >= kSincePtrAttr && !flag_bit0(c, has_attr, "the flags of a tensor_view type")) return false;
      if (!inner_type(c, out, "the element type of a tensor_view", depth)) return false;
      out.kind = TypeKind::TensorView;
      if (!ints(c, 8, out.shape, "the shape of a tensor_view") ||
          !ints(c, 8, out.strides, "the strides of a tensor_view"))
        return false;
      return !has_attr || enum_value(c, EnumKind::PtrAttr, Code::E0108, out.ptr_attr);
    }
    case TypeTag::PartitionView:
    case TypeTag::GatherScatterView:
    case TypeTag::StridedView:
      if (static_cast<TypeTag>(tag) != TypeTag::PartitionView && version_ < kSinceNewViews) {
        return fail(Code::E0113, at, "type tag " + std::to_string(tag) + " is newer than the file's version");
      }
      return decode_view(c, static_cast<TypeTag>(tag), out, depth);
    case TypeTag::Function:
      out.kind = TypeKind::Function;
      return type_list(c, out.params, "the parameters of a function type", depth) &&
             type_list(c, out.results, "the results of a function type", depth);
    case TypeTag::Token:
      out.kind = TypeKind::Token;
      return true;
  }
  return fail(Code::E0108, at, "unknown type tag " + std::to_string(tag));
}

bool Reader::decode_view(Cursor& c, TypeTag tag, Type& out, int depth) {
  const bool flags_first = tag != TypeTag::PartitionView || version_ >= kSinceViewFlags;
  bool has_padding = false;
  if (flags_first && !flag_bit0(c, has_padding, "the flags of a view type")) return false;
  if (!ints(c, 4, out.shape, "the tile of a view")) return false;
  if (tag == TypeTag::StridedView && !ints(c, 4, out.strides, "the traversal strides of a view")) return false;
  if (!tensor_view(c, out, depth)) return false;
  if (tag == TypeTag::GatherScatterView) {
    out.kind = TypeKind::GatherScatterView;
    if (!c.varint32(out.sparse_dim, Code::E0108, "the sparse dimension of a view")) return false;
  } else {
    out.kind = tag == TypeTag::StridedView ? TypeKind::StridedView : TypeKind::PartitionView;
    if (!dim_map(c, out)) return false;
  }
  if (!flags_first) {
    uint8_t byte = 0;
    if (!c.byte(byte, "the padding mark of a view")) return false;
    has_padding = byte != 0;
  }
  return !has_padding || enum_value(c, EnumKind::Padding, Code::E0108, out.padding);
}

/// A type inside a tile, a tensor view or a pointer; sets the fields that TypeTable's makers set.
bool Reader::inner_type(Cursor& c, Type& out, const char* what, int depth) {
  const size_t at = c.pos();
  if (!type(c, out.inner, what, depth)) return false;
  if (raw_types_) return true;
  const Type& inner = module_.types.get(out.inner);
  if (inner.kind != TypeKind::Element && inner.kind != TypeKind::Ptr) {
    return fail(Code::E0505, at,
                std::string(what) + " is " + module_.types.print(out.inner) + ", expected a number or a pointer");
  }
  out.element = inner.element;
  return true;
}

bool Reader::tensor_view(Cursor& c, Type& out, int depth) {
  const size_t at = c.pos();
  if (!type(c, out.inner, "the tensor_view of a view", depth)) return false;
  return raw_types_ || module_.types.is_tensor_view(out.inner) ||
         fail(Code::E0108, at, "a view of " + module_.types.print(out.inner) + ", expected a tensor_view");
}

bool Reader::type_list(Cursor& c, std::vector<TypeId>& out, const char* what, int depth) {
  uint64_t count;
  if (!c.count(count, 1, Code::E0101, what)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = c.pos();
    TypeId t;
    if (!type(c, t, what, depth)) return false;
    if (!raw_types_ && !stands_for_a_value(module_.types.get(t).kind))
      return fail(Code::E0108, at, "a function type inside a function type");
    out.push_back(t);
  }
  return true;
}

/// An array of fixed-width signed integers, at most as many as a type may have dimensions.
bool Reader::ints(Cursor& c, size_t width, std::vector<int64_t>& out, const char* what) {
  const size_t at = c.pos();
  uint64_t count;
  if (!c.count(count, width, Code::E0101, what)) return false;
  if (count > kMaxRank)
    return fail(Code::E0108, at, std::string(what) + " has " + std::to_string(count) + " dimensions, the limit is 64");
  out.resize(static_cast<size_t>(count));
  for (int64_t& x : out)
    if (!c.fixed(x, width, what)) return false;
  return true;
}

bool Reader::dim_map(Cursor& c, Type& out) {
  std::vector<int64_t> wide;
  if (!ints(c, 4, wide, "the dim_map of a view")) return false;
  out.dim_map.assign(wide.begin(), wide.end());
  return true;
}

bool Reader::flag_bit0(Cursor& c, bool& out, const char* what) {
  const size_t at = c.pos();
  uint64_t flags;
  if (!c.varint(flags, what)) return false;
  out = flags & 1;
  return flags <= 1 || fail(Code::E0108, at, std::string(what) + " are " + std::to_string(flags) + ", expected 0 or 1");
}

bool Reader::enum_value(Cursor& c, EnumKind kind, Code outside, uint32_t& out) {
  const size_t at = c.pos();
  const EnumInfo& e = tile::enum_info(kind);
  uint64_t value;
  if (!c.varint(value, "a value of an enumeration")) return false;
  if (value >= e.values.size()) {
    return fail(outside, at,
                std::string(e.name) + " is " + std::to_string(value) + ", expected at most " +
                    std::to_string(e.values.size() - 1));
  }
  const EnumValue& word = e.values[static_cast<size_t>(value)];
  if (word.since > version_) {
    return fail(Code::E0113, at,
                std::string(e.name) + " " + std::string(word.word) + " is newer than the file's version");
  }
  out = static_cast<uint32_t>(value);
  return true;
}

}  // namespace tile::tileirbc
