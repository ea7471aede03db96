// Spelling of strings, names, numbers and attribute values in the text form. Operations are in printer.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vm/ir/module.h"

namespace tile {

/// `"..."` with quotes, backslashes, control bytes and bytes above 0x7E escaped.
void put_string(std::string& out, std::string_view bytes);
/// `@name`, quoted where it is not a plain identifier.
void put_symbol(std::string& out, std::string_view name);
/// A dictionary key: bare where it can be.
void put_key(std::string& out, std::string_view key);

/// An element as `constant` spells it; `bits` in the storage form of a tile.
[[nodiscard]] std::string element_text(ElementType t, uint64_t bits);

/// Writes attribute values of one module. Stops adding to `out` beyond `limit` bytes, because values can be shared and
/// nest.
class AttrWriter {
 public:
  AttrWriter(const Module& m, std::string& out, size_t limit) : m_(m), out_(out), limit_(limit) {}

  /// A value in the short spelling that operation formats use: `[1, 0]`, `div_by<8>`, `<i32: 5> : tile<i32>`.
  void in_format(AttrId id);
  /// A value as the right side of a dictionary entry or as an item of an array.
  void nested(AttrId id, int depth = 0);
  /// `<sm_90 = {...}>` of a dictionary.
  void hints(AttrId id);
  /// `key = value` entries of a dictionary, sorted by key; `first` says whether no comma is needed before the first.
  void entries(const Attr& dictionary, bool first = true, int depth = 0);
  /// `<f32: values> : tile<...>`
  void dense(const Attr& a);

  bool elide_large = false;  ///< `...` in place of the elements of large constants

 private:
  void dense_values(const Attr& a, ElementType t);
  void blob(const Attr& a, ElementType t);
  void ints(const Attr& a, bool as_bool);
  bool predicate(const Attr& a);
  void typed_number(const Attr& a);
  void long_type(TypeId id);
  [[nodiscard]] bool full() const { return out_.size() > limit_; }
  [[nodiscard]] const Attr* find(AttrId id) const { return id < m_.attrs.size() ? &m_.attrs.get(id) : nullptr; }
  [[nodiscard]] std::string_view text(StringId id) const {
    return id < m_.strings.size() ? m_.strings.get(id) : std::string_view();
  }

  const Module& m_;
  std::string& out_;
  size_t limit_;
  bool in_hints_ = false;
};

}  // namespace tile
