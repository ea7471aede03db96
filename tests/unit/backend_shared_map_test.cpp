// Offsets of conversions through shared memory: every element has a place of its own, accesses walk along it, and the bank conflicts of
// typical pairs of layouts are counted and pinned.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "backend/plan/shared_map.h"

namespace {
using namespace tile;

/// As the count of a warp's wavefronts for one access, by hand: row-major without any rearrangement.
SharedMap row_major(unsigned bits, unsigned element_bytes, std::vector<unsigned> write_run, std::vector<unsigned> read_run) {
  SharedMap map;
  for (unsigned k = 0; k < bits; ++k) map.column.push_back(element_bytes << k);
  map.write_run = std::move(write_run);
  map.read_run = std::move(read_run);
  return map;
}

/// Layouts in which a tile of rows x columns is loaded along its rows, and those of the same elements when they are stored along columns.
struct Pair {
  Layout rows, columns;
};
Pair transposed(int64_t rows, int64_t columns, unsigned element_bytes, unsigned warp_bits, bool together) {
  const std::array<int64_t, 2> shape{rows, columns};
  const std::array<unsigned, 2> along_rows{1, 0}, along_columns{0, 1};
  const unsigned run = log2_of(16 / element_bytes), row = log2_of(columns);
  std::vector<int8_t> a, b;
  for (unsigned k = 0; k < run && together; ++k) a.push_back(static_cast<int8_t>(row + k)), b.push_back(static_cast<int8_t>(k));
  return {blocked_layout(shape, along_rows, run, warp_bits, a), blocked_layout(shape, along_columns, run, warp_bits, b)};
}

void check_places(const SharedMap& map, const Layout& from, const Layout& to, unsigned bits, unsigned bytes) {
  std::vector<bool> taken(size_t{1} << bits);
  bool right = true;
  for (uint32_t e = 0; e < 1u << bits; ++e) {
    const uint32_t at = map.offset(e);
    right = right && at % bytes == 0 && at < (bytes << bits) && !taken[at / bytes];
    if (right) taken[at / bytes] = true;
  }
  REQUIRE(right);
  const auto walks = [&](const Layout& l, const std::vector<unsigned>& run) {
    const unsigned width = bytes << run.size();
    REQUIRE(width <= 16);
    for (size_t k = 0; k < run.size(); ++k) REQUIRE(map.offset(1u << l.reg[run[k]]) == (bytes << k));
  };
  walks(from, map.write_run);
  walks(to, map.read_run);
}

TEST_CASE("shared map: conflicts are counted as the banks see them") {
  // 32 x 32 f32: a lane for each column, read with a lane for each row. All lanes of the reads meet in one bank.
  const Layout columns{{5, 6, 7, 8, 9}, {0, 1, 2, 3, 4}, {}}, rows{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, {}};
  const SharedMap plain = row_major(10, 4, {}, {});
  CHECK(write_traffic(plain, columns, 4).wavefronts == 32);
  CHECK(read_traffic(plain, rows, 4).wavefronts == 32 * 32);
  CHECK(read_traffic(plain, rows, 4).least == 32);
  // Four words at a time: eight lanes of a phase, all in the same four banks.
  const SharedMap wide = row_major(10, 4, {}, {0, 1});
  CHECK(read_traffic(wide, rows, 4).accesses == 8);
  CHECK(read_traffic(wide, rows, 4).wavefronts == 8 * 4 * 8);
  // Lanes that read one place share a wavefront; only one of them writes it.
  const Layout copies{{0}, {1, 2, kCopies, kCopies, kCopies}, {}};
  CHECK(read_traffic(row_major(3, 4, {}, {}), copies, 4).wavefronts == 2);
  CHECK(write_traffic(row_major(3, 4, {}, {}), copies, 4).wavefronts == 2);
}

TEST_CASE("shared map: transposes pass 16 bytes at a time without a conflict") {
  struct Case {
    int64_t rows, columns;
    unsigned bytes, warp_bits;
  };
  for (const Case& c : {Case{64, 64, 4, 2}, {128, 32, 4, 2}, {32, 128, 4, 2}, {64, 64, 2, 2}, {128, 128, 2, 3}, {128, 128, 1, 3}, {64, 64, 8, 2}, {32, 32, 4, 0}}) {
    CAPTURE(c.rows);
    CAPTURE(c.columns);
    CAPTURE(c.bytes);
    const unsigned bits = log2_of(c.rows) + log2_of(c.columns);
    const Pair p = transposed(c.rows, c.columns, c.bytes, c.warp_bits, true);
    for (const auto& [from, to] : {std::pair(p.rows, p.columns), std::pair(p.columns, p.rows)}) {
      const SharedMap map = shared_map(from, to, bits, c.bytes);
      check_places(map, from, to, bits, c.bytes);
      const unsigned bytes_of_warp = (32u * c.bytes) << from.reg.size();
      for (const Traffic& t : {write_traffic(map, from, c.bytes), read_traffic(map, to, c.bytes)}) {
        CHECK(t.accesses == bytes_of_warp / 512);
        CHECK(t.wavefronts == bytes_of_warp / 128);
        CHECK(t.wavefronts == t.least);
      }
    }
  }
}

TEST_CASE("shared map: layouts with nothing in common in registers meet no conflict either") {
  const Pair p = transposed(64, 64, 4, 2, false);
  const SharedMap map = shared_map(p.rows, p.columns, 12, 4);
  check_places(map, p.rows, p.columns, 12, 4);
  CHECK(write_traffic(map, p.rows, 4).wavefronts == 32);
  CHECK(read_traffic(map, p.columns, 4).wavefronts == 32);
}

TEST_CASE("shared map: results of products leave their fragments") {
  const std::array<int64_t, 2> shape{128, 256};
  const Layout result = wgmma_result_layout(7, 8, 1);
  for (const unsigned bytes : {2u, 4u}) {
    const Layout rows = blocked_layout(shape, log2_of(16 / bytes), 3);
    const SharedMap map = shared_map(result, rows, 15, bytes);
    check_places(map, result, rows, 15, bytes);
    const Traffic w = write_traffic(map, result, bytes), r = read_traffic(map, rows, bytes);
    CHECK(w.wavefronts == w.least);
    CHECK(r.wavefronts == r.least);
  }
}

TEST_CASE("shared map: any two layouts") {
  std::mt19937 random(7);
  for (int n = 0; n < 3000; ++n) {
    const unsigned warps = random() % 4, bits = 3 + random() % 11, bytes = 1u << random() % 4;
    const auto layout = [&] {
      std::vector<int8_t> order(bits);
      for (unsigned k = 0; k < bits; ++k) order[k] = static_cast<int8_t>(k);
      if (random() % 2) std::shuffle(order.begin(), order.end(), random);
      Layout l;
      for (unsigned k = 0; k < warps; ++k) l.warp.push_back(kCopies);
      l.lane.assign(5, kCopies);
      for (const int8_t bit : order) {
        const unsigned where = random() % 8;
        if (where < 5 && l.lane[where] == kCopies) {
          l.lane[where] = bit;
        } else if (where < 7 && warps > 0 && l.warp[where % warps] == kCopies) {
          l.warp[where % warps] = bit;
        } else {
          l.reg.push_back(bit);
        }
      }
      if (random() % 4 == 0) l.reg.insert(l.reg.begin() + static_cast<std::ptrdiff_t>(random() % (l.reg.size() + 1)), kCopies);
      return l;
    };
    const Layout from = layout(), to = layout();
    const SharedMap map = shared_map(from, to, bits, bytes);
    check_places(map, from, to, bits, bytes);
    for (const Traffic& t : {write_traffic(map, from, bytes), read_traffic(map, to, bytes)}) {
      REQUIRE(t.wavefronts >= t.accesses);
      // An access of up to four bytes, or a phase of a longer one, whose lanes all meet is the worst.
      REQUIRE(t.wavefronts <= t.accesses * 32);
    }
  }
}

}  // namespace
