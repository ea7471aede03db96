// The parts of the checkers that can be tested alone: names, the token graph, shadow memory, walks over accesses.
// Whole checkers are tested by tests/cli/checkers_test.py.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "vm/interp/check_part.h"
#include "vm/interp/check_shadow.h"
#include "vm/interp/check_tiles.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/check_undef.h"

using namespace tile;

TEST_CASE("check: lists of names") {
  CHECK(parse_checks("all")->has(Check::Nan));
  CHECK(!parse_checks("default")->has(Check::Nan));
  CHECK(parse_checks("default")->has(Check::Assume));
  const auto two = parse_checks("race,bounds");
  REQUIRE(two);
  CHECK(two->has(Check::Race));
  CHECK(two->has(Check::Bounds));
  CHECK(!two->has(Check::Order));
  CHECK(parse_checks("default,nan")->has(Check::Nan));
  for (const char* bad : {"", "bound", "race,", ",race", "race bounds", "ALL"}) {
    CAPTURE(bad);
    CHECK(!parse_checks(bad));
  }
}

TEST_CASE("check: names of elements") {
  CHECK(element_name({}, 0) == "");
  CHECK(element_name({8}, 3) == "[3]");
  CHECK(element_name({4, 8}, 19) == "[2, 3]");
  CHECK(block_name({4, 3, 2}, 17) == "(1, 1, 1)");
}

TEST_CASE("check: the token graph agrees with a search of all paths") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const TokenGraph::Node first = 1 + random() % 1000;
    TokenGraph g(first);
    std::map<TokenGraph::Node, std::set<TokenGraph::Node>> before;  // all that a token waits for, itself included
    std::vector<TokenGraph::Node> tokens{0};
    before[0] = {};
    std::vector<TokenGraph::Node> events;
    for (int k = 0; k < 60; ++k) {
      const auto pick = [&] {
        return tokens[random() % 3 ? tokens.size() - 1 - random() % std::min<size_t>(tokens.size(), 4)
                                   : random() % tokens.size()];
      };
      if (random() % 3 == 0) {
        const std::vector<TokenGraph::Node> some{pick(), pick(), pick()};
        const auto n = g.join(some);
        auto all = before[n];
        for (const auto t : some) all.insert(before[t].begin(), before[t].end());
        before[n] = all;
        tokens.push_back(n);
      } else {
        const auto t = pick();
        const auto n = g.event(static_cast<InstId>(k), t);
        REQUIRE(g.inst(n) == static_cast<InstId>(k));
        before[n] = before[t];
        before[n].insert(n);
        tokens.push_back(n);
        events.push_back(n);
      }
    }
    for (const auto a : events)
      for (const auto b : events) REQUIRE(g.ordered(a, b) == (before[b].count(a) != 0));
    CHECK(!g.holds(first - 1));
    CHECK(!g.ordered(first == 1 ? 0 : first - 1, events.back()));
    g.restart(g.end());
    CHECK(!g.holds(events.back()));
  }
}

TEST_CASE("check: a chain of tokens through 100,000 accesses is followed at once") {
  TokenGraph g(1);
  TokenGraph::Node chain = 0, other = 0;
  for (int k = 0; k < 100000; ++k) {
    chain = g.event(0, chain);
    if (k % 100 == 0) other = g.event(1, 0);
  }
  CHECK(g.ordered(1, chain));
  CHECK(!g.ordered(other, chain));
}

TEST_CASE("check: shadow memory agrees with one cell for each byte") {
  std::mt19937 random(11);
  Memory memory;
  const uint64_t sizes[2] = {100, 3 * Shadow::kChunk + 77};
  uint64_t base[2];
  for (int a = 0; a < 2; ++a) base[a] = memory.allocate(sizes[a], "test");
  for (const bool shared : {false, true}) {
    Shadow shadow;
    CHECK(!shadow.begin(memory, shared));
    std::vector<uint32_t> expected[2] = {std::vector<uint32_t>(sizes[0]), std::vector<uint32_t>(sizes[1])};
    for (uint32_t k = 1; k <= 3000; ++k) {
      const int a = random() % 8 == 0 ? 0 : 1;
      uint64_t at = random() % sizes[a], n = 1 + random() % (random() % 4 == 0 ? 40000 : 700);
      const uint64_t grain = uint64_t{1} << (random() % 13);  // words, pages and blocks are hit as a whole too
      at = at / grain * grain;
      n = std::min((n + grain - 1) / grain * grain, sizes[a] - at);
      bool right = true;
      uint64_t last = 0;
      shadow.update(base[a] + at, n, [&](const ShadowCell& c, uint64_t where) {
        const uint64_t offset = where - base[a];
        right = right && offset >= at && offset < at + n && offset >= last && c.write == expected[a][offset];
        last = offset;
        ShadowCell next = c;
        next.read = c.write;
        next.write = c.write * 5 + k;
        return next;
      });
      REQUIRE(right);
      for (uint64_t b = at; b < at + n; ++b) expected[a][b] = expected[a][b] * 5 + k;
    }
    // Every byte, asked for one by one.
    for (int a = 0; a < 2; ++a)
      for (uint64_t b = 0; b < sizes[a]; ++b)
        shadow.update(base[a] + b, 1, [&](const ShadowCell& c, uint64_t) {
          REQUIRE(c.write == expected[a][b]);
          return c;
        });
    CHECK(shadow.begin(memory, shared));
    CHECK(shadow.chunks() > 0);
    shadow.clear();
    CHECK(shadow.chunks() == 0);
    shadow.update(base[1] + sizes[1] - 1, 2, [](const ShadowCell& c, uint64_t) {
      FAIL("outside of the allocation");
      return c;
    });
  }
}

TEST_CASE("check: one cell for each tile agrees with one for each byte") {
  std::mt19937 random(17);
  int tiled = 0, left = 0;
  for (int round = 0; round < 600; ++round) {
    // An array of rows with a gap behind each, and tiles of it, those at the edges cut off.
    const int64_t rows = 1 + static_cast<int64_t>(random() % 70), columns = 1 + static_cast<int64_t>(random() % 90), stride = columns + static_cast<int64_t>(random() % 3);
    const uint32_t element = uint32_t{1} << random() % 4;
    const int64_t offset = static_cast<int64_t>(random() % 5);
    const uint64_t size = static_cast<uint64_t>(offset + rows * stride) * element;
    const bool one = random() % 3 == 0;  // dimension
    const int64_t tall = int64_t{1} << random() % 6, wide = random() % 8 ? int64_t{1} << random() % 7 : 1 + static_cast<int64_t>(random() % 30);
    Memory memory;
    const uint64_t base = memory.allocate(size, "test");
    TileShadow shadow;
    CHECK(!shadow.begin(memory, round % 2 == 1));
    std::vector<uint32_t> expected(size);
    const bool odd = random() % 2 == 0;  // some accesses are no tiles
    bool was = false;
    for (uint32_t k = 1; k <= 60; ++k) {
      MemoryAccess a;
      a.element_bytes = element;
      a.rank = one ? 1 : 2;
      int64_t shape[2], strides[2] = {stride, 1};
      int64_t first = 0;
      if (one) {
        const int64_t all = offset + rows * stride, at = static_cast<int64_t>(random() % static_cast<uint64_t>((all - offset + wide - 1) / wide)) * wide;
        first = offset + at;
        shape[0] = std::min(wide, all - first);
        strides[0] = 1;
      } else {
        const int64_t r = static_cast<int64_t>(random() % static_cast<uint64_t>((rows + tall - 1) / tall)) * tall,
                      c = static_cast<int64_t>(random() % static_cast<uint64_t>((columns + wide - 1) / wide)) * wide;
        first = offset + r * stride + c;
        shape[0] = std::min(tall, rows - r);
        shape[1] = std::min(wide, columns - c);
      }
      if (odd && random() % 40 == 0) {
        const int64_t most = static_cast<int64_t>(size / element);
        first = static_cast<int64_t>(random() % static_cast<uint64_t>(most));
        a.rank = 1;
        strides[0] = 1 + static_cast<int64_t>(random() % 3);
        shape[0] = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>((most - first - 1) / strides[0] + 1));
      }
      a.address = base + static_cast<uint64_t>(first) * element;
      a.shape = shape;
      a.strides = strides;
      bool right = true;
      shadow.update(a, [&](const ShadowCell& c, uint64_t where) {
        right = right && where >= base && where - base < size && c.write == expected[where - base];
        ShadowCell next = c;
        next.write = c.write * 5 + k;
        return next;
      });
      REQUIRE(right);
      const bool now = shadow.tiled(base);
      left += was && !now;
      was = now;
      for_each_run(a, [&](uint64_t at, uint64_t n) {
        for (uint64_t b = at - base; b < at - base + n; ++b) expected[b] = expected[b] * 5 + k;
      });
    }
    tiled += was;
    // Every byte, asked for one by one.
    for (uint64_t b = 0; b < size; ++b) {
      MemoryAccess a;
      a.address = base + b;
      shadow.update(a, [&](const ShadowCell& c, uint64_t) {
        REQUIRE(c.write == expected[b]);
        return c;
      });
    }
    CHECK(!shadow.tiled(base));
    CHECK(shadow.begin(memory, false));
    shadow.clear();
    MemoryAccess all;
    const int64_t count = static_cast<int64_t>(size), step = 1;
    all.address = base;
    all.rank = 1;
    all.shape = &count;
    all.strides = &step;
    shadow.update(all, [](const ShadowCell& c, uint64_t) {
      CHECK(c == ShadowCell{});
      return c;
    });
  }
  CHECK(tiled > 50);
  CHECK(left > 40);
}

TEST_CASE("check: the runs of an access are its bytes") {
  std::mt19937 random(13);
  for (int round = 0; round < 500; ++round) {
    const size_t rank = random() % 4;
    int64_t shape[4], strides[4], tile_strides[4];
    int64_t step = 1;
    for (size_t d = rank; d-- > 0;) {
      shape[d] = 1 + static_cast<int64_t>(random() % 5);
      tile_strides[d] = step;
      strides[d] = random() % 3 ? step : static_cast<int64_t>(random() % 40);
      step *= shape[d];
    }
    if (rank > 1 && random() % 2) std::swap(strides[0], strides[rank - 1]);
    MemoryAccess a;
    a.address = 1000;
    a.element_bytes = uint32_t{1} << random() % 4;
    a.rank = rank;
    a.shape = shape;
    a.strides = strides;
    a.first_element = 3;
    a.tile_strides = tile_strides;
    std::multiset<uint64_t> bytes, by_element;
    std::set<size_t> elements;
    for_each_run(a, [&](uint64_t at, uint64_t n) {
      for (uint64_t b = 0; b < n; ++b) bytes.insert(at + b);
    });
    for_each_element_of(a, [&](size_t e, uint64_t at) {
      elements.insert(e);
      for (uint64_t b = 0; b < a.element_bytes; ++b) by_element.insert(at + b);
    });
    CHECK(bytes == by_element);
    CHECK(elements.size() == elements_of(a));
    CHECK(*elements.begin() == 3);
  }
}

TEST_CASE("check: marks name operation and origin") {
  for (const InstId i : {0u, 1u, 1000000u})
    for (uint8_t o = 0; o < static_cast<uint8_t>(Origin::kCount); ++o) {
      const Mark m = mark_of(i, static_cast<Origin>(o));
      CHECK(m != 0);
      CHECK(inst_of(m) == i);
      CHECK(origin_of(m) == static_cast<Origin>(o));
      CHECK(std::string(origin_text(static_cast<Origin>(o))) != "");
    }
}
