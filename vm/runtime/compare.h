// Comparison of an array with its expected values, by a rule that says how exact they must be (spec/launch.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vm/base/diagnostics.h"
#include "vm/runtime/array.h"

namespace tile {

struct CompareRule {
  enum class Kind : uint8_t {
    Bits,   ///< every bit
    Exact,  ///< equal values, zeros with their sign, any NaN for a NaN
    Ulp,    ///< at most `ulps` spacings of the type at the expected value
    Close,  ///< at most abs + rel * |expected|
    Bound   ///< at most the allowance of each element: 0 as exact, infinity anything
  };
  Kind kind = Kind::Exact;
  double ulps = 0, abs = 0, rel = 0;
  /// The first `free_count` elements may be permuted in runs of `free_unit`, by their bits; the rule holds for the
  /// others.
  int64_t free_count = 0, free_unit = 1;
};

struct CompareReport {
  int64_t elements = 0;
  int64_t different = 0;
  int64_t first = -1;  ///< row-major number of the first element that differs; -1 where only the order-free part does
  uint64_t got = 0, expected = 0;
  double allowed = 0;  ///< largest difference allowed there
  bool order_free_differs = false;

  [[nodiscard]] bool equal() const { return different == 0 && !order_free_differs; }
};

/// Compares element by element; shapes must be equal, strides may differ.
///
/// @param bound  allowances for CompareRule::Kind::Bound, floats of the same shape
/// @error        E0809 other types or shapes; E0807 a rule that lacks its bound or has a count that does not fit
[[nodiscard]] Result<CompareReport> compare(const ArrayView& got, const ArrayView& expected, const CompareRule& rule,
                                            const ArrayView* bound, const Place& place, Diagnostics& diags);

/// Bytes that hold no element of `a`, compared bit for bit between two memories of the size a.size.
/// The number of the first that differs, in elements; no value where all are equal. nullptr entries are not allowed.
[[nodiscard]] std::optional<int64_t> first_change_outside(const ArrayView& a, const uint8_t* other);

/// "exact", "ulp 2", "close abs 0.1 rel 0.001"
[[nodiscard]] std::string show_rule(const CompareRule& rule);
/// "3 of 512 elements differ, first at [0, 7]: 0.5 (0x3800), expected 0.25 (0x3400), allowed 0.1"
[[nodiscard]] std::string show_report(const CompareReport& report, const ArrayView& expected, const CompareRule& rule);

}  // namespace tile
