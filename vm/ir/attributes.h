// Attribute values that are more than a number, interned per module: dense constants, dictionaries, predicates, arrays.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "vm/base/element_type.h"
#include "vm/ir/hash_index.h"
#include "vm/ir/ids.h"
#include "vm/ir/types.h"

namespace tile {

enum class AttrTag : uint8_t {
  Integer,      ///< `type` (element type id), `bits` zero-extended from its width
  Float,        ///< `type` (element type id), `bits`
  Bool,         ///< `bits` 0 or 1
  Type,         ///< `type`
  String,       ///< `string`
  Array,        ///< `items`
  Dense,        ///< `type` (tile type id), `bytes`: see below
  DivBy,        ///< `bits` divisor; `ints` = {every, along} or empty
  SameElements, ///< `ints`
  Bounded,      ///< `ints` = {lower, upper}, `flags` bit 0 lower present, bit 1 upper present
  Dictionary,   ///< `entries`, in the order of the input
  I32Array,     ///< `ints`
  BoolArray,    ///< `ints` of 0 and 1
  Opaque,       ///< `string`: text that is carried but not interpreted
};

/// A Dense value's `bytes` are elements in row-major order, each stored as in a tile of the interpreter
/// (element_type.h `storage` bytes, little-endian: i1 one byte 0/1, tf32 four bytes as f32 bits with 13 low zero bits, f4 one byte);
/// one element alone is a splat,
/// and the only way to say that all are equal.
struct Attr {
  AttrTag tag = AttrTag::Integer;
  TypeId type = kNone;
  uint64_t bits = 0;
  uint8_t flags = 0;
  StringId string = kNone;
  std::vector<int64_t> ints;
  std::vector<AttrId> items;
  std::vector<std::pair<StringId, AttrId>> entries;
  std::string bytes;

  bool operator==(const Attr&) const = default;
};

/// Elements of `size` bytes: all of them equal become one.
void make_splat(std::string& bytes, size_t size);

class AttrTable {
 public:
  AttrId add(Attr a);  ///< interned; a Dense value comes through dense()
  [[nodiscard]] const Attr& get(AttrId id) const { return items_[id]; }
  [[nodiscard]] size_t size() const { return items_.size(); }

  AttrId integer(TypeId type, uint64_t bits);
  AttrId floating(TypeId type, uint64_t bits);
  AttrId boolean(bool value);
  AttrId string(StringId s);
  AttrId array(std::vector<AttrId> items);
  AttrId ints(AttrTag tag, std::vector<int64_t> values);
  /// All elements of the tile or one; equal ones become one, so that equal values are one attribute.
  AttrId dense(const TypeTable& types, TypeId tile_type, std::string bytes);

 private:
  std::deque<Attr> items_;
  HashIndex index_;
};

}  // namespace tile
