// Special rules of tensor views, views, and accesses through them.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

const Type& tensor_view_of(Checker& c, size_t view) {
  return c.m.types.get(c.type(view).inner);
}

/// Indices of an access: as many as the view has dimensions, scalars of one type; gather/scatter views take a tile
/// along sparse_dim.
void check_indices(Checker& c, size_t view, bool one_type) {
  const Type& type = c.type(view);
  const size_t rank = type.shape.size(), index = c.group("index");
  const size_t n = c.count(index);
  if (n != rank)
    return c.error(Code::E0507, "has " + std::to_string(n) + (n == 1 ? " index" : " indices") + ", expected " +
                                    std::to_string(rank) + " (the rank of view)");
  TypeId common = kNone;
  for (size_t k = 0; k < n; ++k) {
    const Type& t = c.type(index, k);
    if (type.kind == TypeKind::GatherScatterView && k == type.sparse_dim) {
      if (t.shape.size() == 1 && t.shape[0] == type.shape[k]) continue;
      c.error_operand(Code::E0503, index, k,
                      c.role(index, k) + " has type " + c.type_text(c.type_id(index, k)) + ", expected a tile of " +
                          std::to_string(type.shape[k]) + " integers (along the sparse dimension of view)");
      continue;
    }
    if (!t.shape.empty()) {
      c.error_operand(
          Code::E0503, index, k,
          c.role(index, k) + " has type " + c.type_text(c.type_id(index, k)) + ", expected a tile of rank 0");
    } else if (common == kNone) {
      common = c.type_id(index, k);
    } else if (one_type && c.type_id(index, k) != common) {
      c.error_operand(Code::E0504, index, k,
                      c.role(index, k) + " has type " + c.type_text(c.type_id(index, k)) + ", expected " +
                          c.type_text(common) + " (the type of the indices before)");
    }
  }
  const size_t inbounds = c.attr("inbounds");
  if (const uint32_t w = c.word(inbounds); w != kNone) {
    const size_t flags = c.attr_value(inbounds).ints.size();
    if (flags != rank)
      c.error_attr(
          Code::E0601, inbounds,
          "inbounds has " + counted(flags, "value") + ", expected " + std::to_string(rank) + " (the rank of view)");
  }
}

}  // namespace

void check_make_tensor_view(Checker& c) {
  const Type& tv = c.result();
  const Type& pointer = c.m.types.get(c.type(0).inner);
  if (pointer.inner != tv.inner)
    c.error_operand(Code::E0504, 0, 0,
                    "base points to " + c.type_text(pointer.inner) + ", expected " + c.type_text(tv.inner) +
                        " (the element type of result)");
  else if (pointer.ptr_attr != tv.ptr_attr)
    c.error_result(Code::E0504, 0,
                   "result has type " + c.type_text(c.result_id()) + ", expected the pointer attribute of base, " +
                       c.type_text(c.type_id(0)));
  TypeId common = kNone;
  for (size_t g = 1; g <= 2; ++g) {
    size_t dynamic = 0;
    for (const int64_t x : g == 1 ? tv.shape : tv.strides) dynamic += x == kDynamic;
    if (c.count(g) != dynamic) {
      c.error(Code::E0507, "has " + counted(c.count(g), g == 1 ? "dynamic extent" : "dynamic stride") + ", expected " +
                               std::to_string(dynamic) + " (as many as the result type has ?)");
      continue;
    }
    for (size_t k = 0; k < dynamic; ++k) {
      if (common == kNone)
        common = c.type_id(g, k);
      else if (c.type_id(g, k) != common)
        c.error_operand(Code::E0504, g, k,
                        c.role(g, k) + " has type " + c.type_text(c.type_id(g, k)) + ", expected " +
                            c.type_text(common) + " (one type for all dynamic values)");
    }
  }
}

void check_make_view(Checker& c) {
  const auto is = [&](Opcode op) { return c.def().code == static_cast<uint16_t>(op); };
  const TypeKind want = is(Opcode::MakePartitionView) ? TypeKind::PartitionView
                        : is(Opcode::MakeStridedView) ? TypeKind::StridedView
                                                      : TypeKind::GatherScatterView;
  const Type& view = c.result();
  if (view.kind != want)
    return c.error_result(Code::E0506, 0,
                          "result has type " + c.type_text(c.result_id()) + ", expected a " +
                              (want == TypeKind::PartitionView ? "partition_view"
                               : want == TypeKind::StridedView ? "strided_view"
                                                               : "gather_scatter_view"));
  if (view.inner != c.type_id(0))
    c.error_operand(Code::E0504, 0, 0,
                    "tensor_view has type " + c.type_text(c.type_id(0)) + ", expected " + c.type_text(view.inner) +
                        " (the tensor_view of result)");
}

void check_get_shape(Checker& c) {
  const size_t rank = c.type(0).shape.size();
  if (c.result_count() != rank)
    return c.error(Code::E0507, "has " + counted(c.result_count(), "result") + ", expected " + std::to_string(rank) +
                                    " (the rank of src)");
  for (size_t r = 1; r < rank; ++r)
    if (c.result_id(r) != c.result_id(0))
      c.error_result(Code::E0504, r,
                     "result " + std::to_string(r) + " has type " + c.type_text(c.result_id(r)) + ", expected " +
                         c.type_text(c.result_id(0)) + " (the type of result 0)");
}

void check_view_indices(Checker& c) {
  check_indices(c, c.group("view"), true);
}

void check_atomic_red_view(Checker& c) {
  const size_t view = c.group("view");
  const Type& type = c.type(view);
  if (type.kind == TypeKind::GatherScatterView)
    return c.error_operand(
        Code::E0506, view, 0,
        "view has type " + c.type_text(c.type_id(view)) + ", expected a partition_view or strided_view");
  check_not_multicast(c);
  check_indices(c, view, false);
  check_mode(c, c.group("value"));
}

void check_multimem(Checker& c) {
  const size_t view = c.group("view");
  if (c.type(view).kind != TypeKind::PartitionView)
    return c.error_operand(Code::E0506, view, 0,
                           "view has type " + c.type_text(c.type_id(view)) + ", expected a partition_view");
  if (tensor_view_of(c, view).ptr_attr != kMulticast)
    c.error_operand(Code::E0506, view, 0,
                    "view has type " + c.type_text(c.type_id(view)) + ", expected one of multicast memory");
  check_indices(c, view, true);
  const int reduction = attr_index(c.def(), "reduction");
  if (reduction < 0) return;
  // Encodings: add, min, max, and the bitwise and unsigned ones. The row already holds values to the types of add.
  const uint32_t kind = c.word(static_cast<size_t>(reduction));
  constexpr ElementSet kWords = set_of(ElementType::I32, ElementType::I64);
  ElementSet set = kWords;
  if (kind == 0) return;
  if (kind <= 2 && c.def().code == static_cast<uint16_t>(Opcode::MultimemLoadReduceViewTko))
    set = kWords | set_of(ElementType::F16, ElementType::BF16);
  const TypeId element = tensor_view_of(c, view).inner;
  if (!set.has(c.m.types.get(element).element))
    c.error_attr(Code::E0601, static_cast<size_t>(reduction),
                 "reduction " + std::string(enum_word(EnumKind::MultimemKind, kind)) + " is used with element type " +
                     c.type_text(element) + ", expected " + set_text(set));
}

}  // namespace tile::validation
