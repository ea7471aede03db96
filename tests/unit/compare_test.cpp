// Comparison rules at the values where they differ.
#include "vm/runtime/compare.h"

#include <doctest/doctest.h>

#include <initializer_list>

namespace tile {
namespace {

using Kind = CompareRule::Kind;

Array array_of(ElementType type, std::initializer_list<uint64_t> bits) {
  Diagnostics diags;
  auto a = make_array(type, {static_cast<int64_t>(bits.size())}, {1}, {}, {}, diags);
  int64_t i = 0;
  for (uint64_t b : bits) store_bits(a->memory.data(), type, i++, b);
  return std::move(*a);
}

CompareReport report(const Array& got, const Array& want, const CompareRule& rule, const Array* bound = nullptr) {
  Diagnostics diags;
  const ArrayView limits = bound ? bound->view() : ArrayView{};
  auto r = compare(got.view(), want.view(), rule, bound ? &limits : nullptr, {}, diags);
  REQUIRE(r);
  return *r;
}

bool equal(ElementType type, uint64_t got, uint64_t want, const CompareRule& rule) {
  return report(array_of(type, {got}), array_of(type, {want}), rule).equal();
}

const CompareRule kBits{Kind::Bits, 0, 0, 0, 0, 1}, kExact{Kind::Exact, 0, 0, 0, 0, 1};
CompareRule ulp(double n) {
  return {Kind::Ulp, n, 0, 0, 0, 1};
}
CompareRule close(double abs, double rel) {
  return {Kind::Close, 0, abs, rel, 0, 1};
}

TEST_CASE("exact tells zeros apart and takes any NaN for a NaN") {
  const ElementType t = ElementType::F32;
  CHECK(equal(t, 0x7FC00000, 0x7FFFFFFF, kExact));
  CHECK(equal(t, 0xFFC00001, 0x7FFFFFFF, kExact));
  CHECK_FALSE(equal(t, 0x7FC00000, 0x7FFFFFFF, kBits));
  CHECK_FALSE(equal(t, 0x80000000, 0, kExact));
  CHECK_FALSE(equal(t, 0x7F800000, 0x7FC00000, kExact));
  CHECK_FALSE(equal(t, 0x7FC00000, 0, kExact));
  CHECK(equal(ElementType::F8E4M3FN, 0xFF, 0x7F, kExact));
  CHECK_FALSE(equal(ElementType::I32, 1, 2, kExact));
}

TEST_CASE("ulp counts spacings at the expected value") {
  CHECK(equal(ElementType::F32, 0x3F800002, 0x3F800000, ulp(2)));
  CHECK_FALSE(equal(ElementType::F32, 0x3F800003, 0x3F800000, ulp(2)));
  CHECK(equal(ElementType::F32, 0x3F7FFFFC, 0x3F800000, ulp(2)));  // below 1 the numbers lie twice as dense
  CHECK(equal(ElementType::F16, 0x0001, 0x8001, ulp(2)));
  CHECK(equal(ElementType::F16, 0x8000, 0x0000, ulp(1)));
  CHECK_FALSE(equal(ElementType::F16, 0x8000, 0x0000, ulp(0)));
  CHECK_FALSE(equal(ElementType::F16, 0x7C00, 0x7BFF, ulp(1000)));
  CHECK_FALSE(equal(ElementType::F16, 0x7BFF, 0x7C00, ulp(1000)));
  CHECK(equal(ElementType::F64, 0x3FF0000000000001, 0x3FF0000000000000, ulp(1)));
  CHECK(equal(ElementType::F64, 1, 0, ulp(1)));
  CHECK(equal(ElementType::BF16, 0x3F81, 0x3F80, ulp(1)));
  CHECK(equal(ElementType::TF32, 0x3F802000, 0x3F800000, ulp(1)));
  CHECK(equal(ElementType::F8E4M3FN, 0x39, 0x38, ulp(1)));
  CHECK(equal(ElementType::F4E2M1FN, 1, 2, ulp(1)));
  CHECK(equal(ElementType::F8E8M0FNU, 128, 127, ulp(1)));
  CHECK(equal(ElementType::F8E8M0FNU, 1, 0, ulp(1)));
  CHECK_FALSE(equal(ElementType::I32, 1, 2, ulp(5)));
}

TEST_CASE("close and bound allow differences of values") {
  CHECK(equal(ElementType::F32, 0x3F800000, 0x40000000, close(0, 0.5)));
  CHECK_FALSE(equal(ElementType::F32, 0x3F800000, 0x40000000, close(0, 0.49)));
  CHECK(equal(ElementType::F32, 0x3F800000, 0x40000000, close(1, 0)));
  CHECK_FALSE(equal(ElementType::F32, 0x80000000, 0, close(0, 1)));
  CHECK(equal(ElementType::I8, 0xFF, 1, close(2, 0)));
  CHECK_FALSE(equal(ElementType::I64, uint64_t{1} << 63, (uint64_t{1} << 63) - 1, close(1e18, 0)));
  const Array got = array_of(ElementType::F16, {0x3C01, 0x3C01, 0x7E00, 0xFC00}),
              want = array_of(ElementType::F16, {0x3C00, 0x3C00, 0x3C00, 0x3C00});
  const Array bound = array_of(ElementType::F64, {0x3F50000000000000, 0, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF});
  const auto r = report(got, want, {Kind::Bound, 0, 0, 0, 0, 1}, &bound);
  CHECK(r.different == 2);
  CHECK(r.first == 1);
}

TEST_CASE("reports name the first difference with both values") {
  const Array got = array_of(ElementType::F16, {0x3C00, 0x3800, 0x3400}),
              want = array_of(ElementType::F16, {0x3C00, 0x3400, 0x3800});
  const auto r = report(got, want, close(0.1, 0));
  CHECK(show_report(r, want.view(), close(0.1, 0)) ==
        "2 of 3 elements differ, first at [1]: 0.5 (0x3800), expected 0.25 (0x3400), allowed difference 0.1, rule "
        "close abs 0.1 rel 0");
  CHECK(show_report(report(got, got, kBits), got.view(), kBits) == "all 3 elements are as expected");
}

TEST_CASE("an order-free part is a set of runs") {
  const Array a = array_of(ElementType::I32, {1, 2, 3, 4, 9}), b = array_of(ElementType::I32, {3, 4, 1, 2, 9}),
              c = array_of(ElementType::I32, {3, 1, 4, 2, 9}), d = array_of(ElementType::I32, {3, 4, 1, 2, 8});
  const CompareRule pairs{Kind::Bits, 0, 0, 0, 4, 2};
  CHECK(report(a, b, pairs).equal());
  CHECK_FALSE(report(a, c, pairs).equal());
  CHECK(report(a, d, pairs).different == 1);
  CHECK(report(a, d, pairs).first == 4);
  Diagnostics diags;
  CHECK_FALSE(compare(a.view(), b.view(), {Kind::Bits, 0, 0, 0, 6, 2}, nullptr, {}, diags));
  CHECK_FALSE(compare(a.view(), b.view(), {Kind::Bits, 0, 0, 0, 3, 2}, nullptr, {}, diags));
  CHECK_FALSE(compare(a.view(), b.view(), {Kind::Bound, 0, 0, 0, 0, 1}, nullptr, {}, diags));
  CHECK_FALSE(compare(a.view(), array_of(ElementType::F32, {1, 2, 3, 4, 5}).view(), kBits, nullptr, {}, diags));
  CHECK_FALSE(compare(a.view(), array_of(ElementType::I32, {1}).view(), kBits, nullptr, {}, diags));
  CHECK(diags.error_count() == 5);
}

TEST_CASE("layouts do not matter, memory around the elements is compared apart") {
  uint8_t rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 4, 2, 5, 3, 6}, gaps[] = {9, 1, 2, 3, 9, 4, 5, 6, 9};
  const ArrayView r{ElementType::I8, {2, 3}, {3, 1}, 0, rows, 6}, c{ElementType::I8, {2, 3}, {1, 2}, 0, columns, 6},
      g{ElementType::I8, {2, 3}, {4, 1}, 1, gaps, 9};
  Diagnostics diags;
  CHECK(compare(r, c, kBits, nullptr, {}, diags)->equal());
  CHECK(compare(c, g, kBits, nullptr, {}, diags)->equal());
  uint8_t other[9];
  std::copy(gaps, gaps + 9, other);
  CHECK_FALSE(first_change_outside(g, other));
  other[5] = 0;
  CHECK_FALSE(first_change_outside(g, other));
  other[4] = 0;
  CHECK(first_change_outside(g, other) == 4);
}

}  // namespace
}  // namespace tile
