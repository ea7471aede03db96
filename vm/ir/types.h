// Types of Tile IR, interned per module. Holds what a form of input can state, legal or not; legality is the validator's.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "vm/base/element_type.h"
#include "vm/ir/hash_index.h"
#include "vm/ir/ids.h"

namespace tile {

enum class TypeKind : uint8_t { Element, Ptr, Tile, TensorView, PartitionView, StridedView, GatherScatterView, Token, Function };

inline constexpr int64_t kDynamic = INT64_MIN;  ///< extent or stride written `?`

/// One type. Fields that a kind does not use stay at their defaults.
struct Type {
  TypeKind kind = TypeKind::Token;
  ElementType element = ElementType::I32;  ///< Element: itself. Ptr: ElementType::Ptr
  TypeId inner = kNone;                    ///< Ptr: pointee. Tile, TensorView: element type (Element or Ptr). Views: their tensor view
  std::vector<int64_t> shape;              ///< Tile, TensorView: extents. Views: tile extents
  std::vector<int64_t> strides;            ///< TensorView: strides in elements. StridedView: traversal strides
  std::vector<int32_t> dim_map;            ///< PartitionView, StridedView
  uint32_t padding = kNone;                ///< views: padding_value or kNone
  uint32_t sparse_dim = 0;                 ///< GatherScatterView
  uint32_t ptr_attr = kNone;               ///< Ptr, TensorView: ptr_attr or kNone (which is not the value "none")
  std::vector<TypeId> params, results;     ///< Function

  bool operator==(const Type&) const = default;
};

class TypeTable {
 public:
  TypeId add(const Type& t);  ///< interned: equal types have equal ids
  [[nodiscard]] const Type& get(TypeId id) const { return items_[id]; }
  [[nodiscard]] size_t size() const { return items_.size(); }

  // Makers for the common types.
  TypeId element(ElementType e);
  TypeId ptr(TypeId pointee, uint32_t attr = kNone);
  TypeId tile(TypeId element, std::span<const int64_t> shape = {});
  TypeId tile(ElementType e, std::span<const int64_t> shape = {}) { return tile(element(e), shape); }
  TypeId token();
  TypeId tensor_view(TypeId element, std::span<const int64_t> shape, std::span<const int64_t> strides, uint32_t ptr_attr = kNone);
  TypeId with_shape(TypeId tile_type, std::span<const int64_t> shape);  ///< same element, other shape

  // Questions.
  [[nodiscard]] bool is_tile(TypeId id) const { return id < size() && get(id).kind == TypeKind::Tile; }
  [[nodiscard]] bool is_token(TypeId id) const { return id < size() && get(id).kind == TypeKind::Token; }
  [[nodiscard]] bool is_tensor_view(TypeId id) const { return id < size() && get(id).kind == TypeKind::TensorView; }
  [[nodiscard]] bool is_view(TypeId id) const;  ///< partition, strided or gather/scatter view
  [[nodiscard]] bool is_scalar(TypeId id) const { return is_tile(id) && get(id).shape.empty(); }
  /// Element type of a tile, tensor view, view (through its tensor view), pointer or element type.
  [[nodiscard]] ElementType element_of(TypeId id) const;
  /// Pointee of a tile of pointers (or of a pointer); kNone otherwise.
  [[nodiscard]] TypeId pointee_of(TypeId id) const;
  /// Extents of a tile or tensor view; tile extents of a view.
  [[nodiscard]] std::span<const int64_t> shape_of(TypeId id) const { return get(id).shape; }
  /// Tile type that a view loads and stores; made on demand.
  TypeId view_tile(TypeId view);
  /// Elements of a tile; saturates at INT64_MAX.
  [[nodiscard]] int64_t element_count(TypeId id) const;

  /// Text form, short spelling: tile<4x8xf32>.
  [[nodiscard]] std::string print(TypeId id) const;

 private:
  std::deque<Type> items_;
  HashIndex index_;
};

}  // namespace tile
