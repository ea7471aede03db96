// The index of interned tables.
#include <doctest/doctest.h>

#include <vector>

#include "vm/ir/hash_index.h"
#include "vm/ir/locations.h"
#include "vm/ir/types.h"

using namespace tile;

TEST_CASE("entries are found by their content") {
  HashIndex index;
  std::vector<uint64_t> items;
  const auto add = [&](uint64_t hash, uint64_t item) {
    const auto next = static_cast<uint32_t>(items.size());
    const uint32_t known = index.find_or_add(hash, next, [&](uint32_t id) { return items[id] == item; });
    if (known == kNone) items.push_back(item);
    return known == kNone ? next : known;
  };
  // Every hash is shared by four entries, and all of them by a few slots.
  for (uint64_t i = 0; i < 4000; ++i) CHECK(add((i / 4) << 40, i) == i);
  for (uint64_t i = 0; i < 4000; ++i) CHECK(add((i / 4) << 40, i) == i);
  CHECK(items.size() == 4000);
}

TEST_CASE("tables keep one entry for equal content, also in copies") {
  LocTable locs;
  std::vector<LocId> ids;
  const auto loc = [](uint32_t i) {
    Loc l;
    l.kind = Loc::Kind::FileLineCol;
    l.file = i % 3;
    l.line = i;
    return l;
  };
  for (uint32_t i = 0; i < 5000; ++i) ids.push_back(locs.add(loc(i)));
  LocTable copy = locs;
  for (uint32_t i = 0; i < 5000; ++i) {
    CHECK(locs.add(loc(i)) == ids[i]);
    CHECK(copy.add(loc(i)) == ids[i]);
  }
  CHECK(locs.size() == 5001);
  CHECK(copy.add(loc(5000)) == 5001);
  CHECK(locs.size() == 5001);

  // Fields that could be mistaken for one another.
  TypeTable types;
  const TypeId f = types.element(ElementType::F32);
  const int64_t a[] = {2, 4}, b[] = {4, 2}, c[] = {8}, d[] = {2, 4, 1};
  const TypeId tiles[] = {types.tile(f, a), types.tile(f, b), types.tile(f, c), types.tile(f, d), types.tile(f)};
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < i; ++k) CHECK(tiles[i] != tiles[k]);
  CHECK(types.tile(f, a) == tiles[0]);
}
