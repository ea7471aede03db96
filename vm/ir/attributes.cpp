// Interning of attributes.
#include "vm/ir/attributes.h"

#include "vm/ir/hash_mix.h"

#include <cstring>
#include <functional>
#include <string_view>

namespace tile {
namespace {

uint64_t hash(const Attr& a, uint64_t seed) {
  uint64_t h = mix(seed, static_cast<uint64_t>(a.tag) << 32 | a.type);
  h = mix(mix(mix(h, a.bits), a.flags), a.string);
  for (int64_t x : a.ints) h = mix(h, static_cast<uint64_t>(x));
  for (AttrId x : a.items) h = mix(h, x);
  for (const auto& [key, value] : a.entries) h = mix(mix(h, key), value);
  return mix(h, std::hash<std::string_view>{}(a.bytes));
}

}  // namespace

void make_splat(std::string& bytes, size_t size) {
  // Equal neighbours at distance `size` everywhere make all elements equal.
  if (bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0) bytes.resize(size);
}

AttrId AttrTable::add(Attr a) {
  const AttrId next = static_cast<AttrId>(items_.size());
  const AttrId known =
      index_.find_or_add(hash(a, index_.seed()), next, [&](AttrId id) { return items_[id] == a; });
  if (known != kNone) return known;
  items_.push_back(std::move(a));
  return next;
}

AttrId AttrTable::integer(TypeId type, uint64_t bits) { return add({.tag = AttrTag::Integer, .type = type, .bits = bits}); }
AttrId AttrTable::floating(TypeId type, uint64_t bits) { return add({.tag = AttrTag::Float, .type = type, .bits = bits}); }
AttrId AttrTable::boolean(bool value) { return add({.tag = AttrTag::Bool, .bits = value ? 1u : 0u}); }
AttrId AttrTable::string(StringId s) { return add({.tag = AttrTag::String, .string = s}); }
AttrId AttrTable::array(std::vector<AttrId> items) { return add({.tag = AttrTag::Array, .items = std::move(items)}); }
AttrId AttrTable::ints(AttrTag tag, std::vector<int64_t> values) { return add({.tag = tag, .ints = std::move(values)}); }

AttrId AttrTable::dense(const TypeTable& types, TypeId tile_type, std::string bytes) {
  // What is no constant is left as it is: the validator says so.
  if (types.is_tile(tile_type)) {
    const size_t size = info(types.element_of(tile_type)).storage;
    const auto count = static_cast<uint64_t>(types.element_count(tile_type));
    if (bytes.size() % size == 0 && bytes.size() / size == count) make_splat(bytes, size);
  }
  return add({.tag = AttrTag::Dense, .type = tile_type, .bytes = std::move(bytes)});
}

}  // namespace tile
