// Access maps: which cells get which blocks, overlaps, strides, and the picture.
#include "vm/interp/access_map.h"

#include "observe_kit.h"

namespace tile {
namespace {

using observe_kit::Kernel;

// Block (x, y) copies tile (x, y) of 4 x 8; with `shift` 0 all blocks write the first tile.
const char* const kCopy = R"(cuda_tile.module @m {
  entry @copy(%a: tile<ptr<f32>>, %r: tile<i32>, %c: tile<i32>, %s0: tile<i32>, %s1: tile<i32>, %b: tile<ptr<f32>>, %br: tile<i32>, %bc: tile<i32>, %bs0: tile<i32>, %bs1: tile<i32>, %shift: tile<i32>) {
    %x, %y, %z = get_tile_block_id : tile<i32>
    %av = make_tensor_view %a, shape = [%r, %c], strides = [%s0, %s1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,?]>
    %bv = make_tensor_view %b, shape = [%br, %bc], strides = [%bs0, %bs1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,?]>
    %ap = make_partition_view %av : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x?xf32, strides=[?,?]>>
    %bp = make_partition_view %bv : partition_view<tile=(4x8), tensor_view<?x?xf32, strides=[?,?]>>
    %v, %t = load_view_tko weak %ap[%y, %x] : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x?xf32, strides=[?,?]>>, tile<i32> -> tile<4x8xf32>, token
    %i = muli %y, %shift : tile<i32>
    %j = muli %x, %shift : tile<i32>
    %t2 = store_view_tko weak %v, %bp[%i, %j] : tile<4x8xf32>, partition_view<tile=(4x8), tensor_view<?x?xf32, strides=[?,?]>>, tile<i32> -> token
    return
  }
}
)";

std::vector<MappedArray> mapped(const Kernel& k) {
  std::vector<MappedArray> out;
  for (size_t b = 0; b < k.args.buffers.size(); ++b) {
    const Array& a = k.args.buffers[b];
    out.push_back({"array " + std::to_string(b), a.type, a.shape, a.strides, a.offset, b});
  }
  return out;
}

std::string blocks_of(const AccessMap::Cell& c) {
  std::string out;
  for (uint8_t k = 0; k < c.count; ++k) out += (k ? " " : "") + std::to_string(c.blocks[k]);
  return out + (c.more ? " more" : "") + (c.shared ? " shared" : "");
}

const AccessMap::Cell& cell(const AccessMap::Picture& p, bool write, int64_t row, int64_t column) {
  const auto& cells = write ? p.writes : p.reads;
  return cells[static_cast<size_t>(row / p.cell_rows * p.grid_columns + column / p.cell_columns)];
}

TEST_CASE("cells name the blocks that read and write them, for row-major and column-major arrays") {
  for (const char* layout : {"array:f32[8,16]=zeros", "array:f32[8,16]:strides(1,8)=zeros"}) {
    Kernel k(kCopy, {layout, layout, "i32:1"});
    AccessMap map(mapped(k));
    REQUIRE(k.run({&map}, {2, 2, 1}, 2));
    const auto& a = map.pictures()[0];
    const auto& b = map.pictures()[1];
    CHECK(a.grid_rows == 8);
    CHECK(a.grid_columns == 16);
    for (int64_t r = 0; r < 8; ++r) {
      for (int64_t c = 0; c < 16; ++c) {
        const std::string block = std::to_string(r / 4 * 2 + c / 8);
        CHECK(blocks_of(cell(a, false, r, c)) == block);
        CHECK(blocks_of(cell(a, true, r, c)).empty());
        CHECK(blocks_of(cell(b, true, r, c)) == block);
        CHECK(blocks_of(cell(b, false, r, c)).empty());
      }
    }
  }
}

TEST_CASE("several blocks that write one element are marked; those that only share a cell are not") {
  Kernel k(kCopy, {"array:f32[4,256]=zeros", "array:f32[4,256]=zeros", "i32:0"});
  AccessMap map(mapped(k));
  REQUIRE(k.run({&map}, {32, 1, 1}, 3));
  const auto& b = map.pictures()[1];
  CHECK(b.tracked);
  CHECK(blocks_of(cell(b, true, 0, 0)) == "0 1 2 3 4 5 6 7 8 9 10 11 more shared");

  // 1024 columns in 128 cells: 8 columns a cell, one block each; 2048: two blocks share a cell and no element.
  Kernel wide(kCopy, {"array:f32[4,2048]=zeros", "array:f32[4,2048]=zeros", "i32:1"});
  AccessMap shared(mapped(wide));
  REQUIRE(wide.run({&shared}, {256, 1, 1}, 3));
  CHECK(shared.pictures()[1].cell_columns == 16);
  CHECK(blocks_of(cell(shared.pictures()[1], true, 3, 40)) == "4 5");
}

TEST_CASE("extents, strides and elements that a map has to bend: rank 3, overlapping strides, f4, one row, none") {
  const auto picture = [](ElementType e, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return AccessMap({{"a", e, std::move(shape), std::move(strides), 0, 0}}).pictures()[0];
  };
  const auto cube = picture(ElementType::F32, {2, 3, 5}, {15, 5, 1});
  CHECK(cube.rows == 6);
  CHECK(cube.columns == 5);
  const auto overlap = picture(ElementType::F32, {4, 4}, {2, 1});
  CHECK(overlap.by_memory);
  CHECK(overlap.columns == 10);
  const auto packed = picture(ElementType::F4E2M1FN, {4, 8}, {8, 1});
  CHECK(packed.by_memory);
  CHECK(packed.columns == 16);
  CHECK_FALSE(packed.tracked);
  const auto row = picture(ElementType::I8, {100000}, {1});
  CHECK(row.grid_columns == (100000 + 255) / 256);
  CHECK(picture(ElementType::I8, {}, {}).columns == 1);
  CHECK(picture(ElementType::I8, {0, 4}, {4, 1}).rows == 1);
  const auto huge = picture(ElementType::F32, {int64_t{1} << 20, int64_t{1} << 12}, {1 << 12, 1});
  CHECK_FALSE(huge.tracked);
  CHECK(huge.reads.size() == 128 * 128);
}

TEST_CASE("the picture is the same for every number of threads, and names blocks, elements and overlaps") {
  std::string first;
  for (const unsigned threads : {1u, 4u}) {
    Kernel k(kCopy, {"a=array:f32[16,32]=zeros", "array:f32[16,32]=zeros", "i32:0"});
    AccessMap map(mapped(k));
    REQUIRE(k.run({&map}, {4, 4, 1}, threads));
    const std::string svg = map.svg("@copy <&>");
    if (first.empty()) first = svg;
    CHECK(svg == first);
  }
  CHECK(first.starts_with("<svg xmlns="));
  CHECK(first.find("@copy &lt;&amp;&gt;") != std::string::npos);
  CHECK(first.find("<title>rows 4..7, columns 8..15 read by block 1,1,0</title>") != std::string::npos);
  CHECK(first.find("and more; several blocks write the same element</title>") != std::string::npos);
  CHECK(first.find("class=\"b\">1,1</text>") != std::string::npos);
}

}  // namespace
}  // namespace tile
