// The model of products' times, against times that were measured on an H200 (conformance/results/2026-11-30-product-model.md).
#include "backend/plan/cost.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "assembler/assembler.h"

using namespace tile;

namespace {

ProductGrid grid(unsigned rows, unsigned columns, uint64_t m, uint64_t n, uint64_t k_bytes, bool overlapped = false) {
  ProductGrid g;
  g.rows = rows;
  g.columns = columns;
  g.tiles = m / rows * (n / columns);
  g.k_blocks = static_cast<double>(k_bytes) / 128;
  g.overlapped = overlapped;
  return g;
}

}  // namespace

TEST_CASE("expected times are near measured ones") {
  struct Row {
    ProductGrid grid;
    double measured;
  };
  // f16 of 2048, 4096, 8192 in two tiles, 8 x 1024 x 512 x 2048 of f16, i8 of 4096.
  const Row rows[] = {{grid(128, 256, 2048, 2048, 4096), 27.5},         {grid(128, 256, 4096, 4096, 8192), 216},         {grid(128, 256, 8192, 8192, 16384), 1701},
                      {grid(128, 128, 2048, 2048, 4096, true), 27.6},   {grid(128, 128, 4096, 4096, 8192, true), 222},   {grid(128, 128, 8192, 8192, 16384, true), 1744},
                      {grid(128, 128, 8192, 2048, 1024, true), 31.1},   {grid(128, 128, 4096, 4096, 4096), 116.8}};
  for (const Row& r : rows) {
    CAPTURE(r.measured);
    CHECK(std::abs(expected_microseconds(r.grid, 132) / r.measured - 1) < 0.1);
  }
}

TEST_CASE("waves that are nearly empty call for other tiles") {
  // 1024^3 in tiles of 128 x 256 has 32 blocks for 132 multiprocessors; smaller tiles use more of them.
  const auto other = better_tiles(grid(128, 256, 1024, 1024, 2048), 132);
  REQUIRE(other);
  CHECK(other->tiles == 128);
  CHECK(expected_microseconds(*other, 132) < expected_microseconds(grid(128, 256, 1024, 1024, 2048), 132));
  // A large product in tiles of 64 x 64 is bound by shared memory; one in 128 x 256 has no better tile.
  const auto large = better_tiles(grid(64, 64, 8192, 8192, 16384), 132);
  REQUIRE(large);
  CHECK(large->rows * large->columns == 128 * 256);
  CHECK(!better_tiles(grid(128, 256, 8192, 8192, 16384), 132));
}

TEST_CASE("the grid of a kernel with one product in one loop") {
  const auto grid_of = [](const std::string& name, const std::array<uint32_t, 3>& blocks, double flops) {
    std::ifstream file(std::filesystem::path(TILE_TEST_SOURCE_DIR) / "tools/bench/gpu/kernels" / (name + ".tile"));
    std::stringstream text;
    text << file.rdbuf();
    Diagnostics diags;
    auto module = parse_text(std::make_shared<const Source>(name, text.str()), diags);
    REQUIRE(module);
    return product_grid(*module, module->functions[0], blocks, flops);
  };
  const auto f16 = grid_of("mm_f16_128x256x64_c2_p0", {512, 1, 1}, 2.0 * 4096 * 4096 * 4096);
  REQUIRE(f16);
  CHECK(f16->rows == 128);
  CHECK(f16->columns == 256);
  CHECK(f16->tiles == 512);
  CHECK(f16->k_blocks == 64);
  CHECK(f16->overlapped);
  CHECK(!f16->wide_result);
  const auto i8 = grid_of("mm_i8_128x128x128_c1_p0", {1024, 1, 1}, 2.0 * 4096 * 4096 * 4096);
  REQUIRE(i8);
  CHECK(i8->k_blocks == 32);
  CHECK(!i8->overlapped);
  CHECK(i8->wide_result);
  // A tile for each trip of a loop around it, a product more, or none.
  CHECK(!grid_of("mm_f16_128x256x64_c2_p1", {132, 1, 1}, 2.0 * 4096 * 4096 * 4096));
  CHECK(!grid_of("shapes/mm_of_mm", {32, 32, 1}, 2.0 * 4096 * 4096 * 4096));
  CHECK(!grid_of("vadd_2048", {32, 1, 1}, 1e9));
}
