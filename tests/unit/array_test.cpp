// Host arrays: layout arithmetic, limits and the packing of elements.
#include "vm/runtime/array.h"

#include <doctest/doctest.h>

namespace tile {
namespace {

TEST_CASE("element and byte counts are checked against 64 bits") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({3, 4}) == 12);
  CHECK(element_count({INT64_MAX, INT64_MAX, 0}) == 0);
  CHECK(element_count({INT64_MAX, 1}) == INT64_MAX);
  CHECK_FALSE(element_count({INT64_MAX, 2}));
  CHECK_FALSE(element_count({4, -1}));
  CHECK(byte_count(ElementType::F4E2M1FN, 5) == 3);
  CHECK(byte_count(ElementType::I1, 5) == 5);
  CHECK(byte_count(ElementType::TF32, 5) == 20);
  CHECK_FALSE(byte_count(ElementType::I64, INT64_MAX / 4));
  CHECK_FALSE(byte_count(ElementType::I4, 4));
}

TEST_CASE("arrays take what their elements span, aligned, and nothing beyond the limit") {
  Diagnostics diags;
  const auto a = make_array(ElementType::F32, {2, 3}, {8, 1}, {}, {}, diags);
  REQUIRE(a);
  CHECK(a->memory.size() == (8 + 2 + 1) * 4);
  CHECK(reinterpret_cast<uintptr_t>(a->memory.data()) % 256 == 0);
  CHECK(make_array(ElementType::F32, {256}, {1}, ArrayLimits{1024}, {}, diags));
  CHECK(diags.all().empty());
  CHECK_FALSE(make_array(ElementType::F32, {257}, {1}, ArrayLimits{1024}, {}, diags));
  CHECK(diags.first_error()->code == Code::L0103);
  diags.clear();
  CHECK_FALSE(make_array(ElementType::F32, {INT64_MAX, INT64_MAX}, {INT64_MAX, 1}, {}, {}, diags));
  CHECK_FALSE(make_array(ElementType::F32, {2}, {-1}, {}, {}, diags));
  CHECK_FALSE(make_array(ElementType::F32, {2, 2}, {1}, {}, {}, diags));
  CHECK_FALSE(make_array(ElementType::I4, {2}, {1}, {}, {}, diags));
  CHECK_FALSE(make_array(ElementType::Ptr, {2}, {1}, {}, {}, diags));
  CHECK(diags.error_count() == 5);
  CHECK(make_array(ElementType::F32, {0, 5}, {5, 1}, {}, {}, diags)->memory.size() == 0);
}

TEST_CASE("f4 elements share bytes, the even one in the low half") {
  uint8_t bytes[2] = {0xFF, 0xFF};
  store_bits(bytes, ElementType::F4E2M1FN, 0, 1);
  store_bits(bytes, ElementType::F4E2M1FN, 1, 2);
  store_bits(bytes, ElementType::F4E2M1FN, 3, 0x13);
  CHECK(bytes[0] == 0x21);
  CHECK(bytes[1] == 0x3F);
  CHECK(load_bits(bytes, ElementType::F4E2M1FN, 1) == 2);
}

TEST_CASE("elements are visited in row-major order of the index whatever the strides") {
  const ArrayView view{ElementType::I8, {2, 3}, {1, 10}, 5, nullptr, 0};
  std::vector<int64_t> positions;
  for_each_element(view, [&](int64_t linear, int64_t position) {
    CHECK(linear == static_cast<int64_t>(positions.size()));
    CHECK(position == view.position(linear));
    positions.push_back(position);
  });
  CHECK(positions == std::vector<int64_t>{5, 15, 25, 6, 16, 26});
  CHECK(show_index(view.shape, 4) == "[1, 1]");
}

TEST_CASE("a view fits only where its last element does") {
  uint8_t bytes[16] = {};
  ArrayView view{ElementType::I16, {2, 2}, {4, 1}, 2, bytes, sizeof bytes};
  CHECK(view.fits());
  view.offset = 3;
  CHECK_FALSE(view.fits());
  view.offset = INT64_MAX;
  CHECK_FALSE(view.fits());
  view = {ElementType::I16, {2, 2}, {-4, 1}, 4, bytes, sizeof bytes};
  CHECK_FALSE(view.fits());
  view = {ElementType::I16, {0}, {1}, 100, bytes, sizeof bytes};
  CHECK(view.fits());
}

TEST_CASE("contiguous orders are recognised where extents 1 and 0 have any stride") {
  CHECK(is_row_major({ElementType::I8, {4, 1, 3}, {3, 77, 1}, 0, nullptr, 0}));
  CHECK(is_column_major({ElementType::I8, {4, 1, 3}, {1, 77, 4}, 0, nullptr, 0}));
  CHECK_FALSE(is_row_major({ElementType::I8, {4, 3}, {4, 1}, 0, nullptr, 0}));
  CHECK(is_row_major({ElementType::I8, {0, 3}, {9, 9}, 0, nullptr, 0}));
  CHECK_FALSE(row_major_strides({INT64_MAX, INT64_MAX, 8}));
}

}  // namespace
}  // namespace tile
