// The comparison rules, one function an element.
#include "vm/runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

using Kind = CompareRule::Kind;

/// |a - b| of the signed values, which can pass 2^63.
double integer_distance(int64_t a, int64_t b) {
  const uint64_t distance =
      a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
  return static_cast<double>(distance);
}

double allowance(const CompareRule& rule, ElementType type, double expected, double bound) {
  switch (rule.kind) {
    case Kind::Ulp:
      return info(type).is_float ? rule.ulps * spacing(type, expected) : 0;
    case Kind::Close:
      return rule.abs + rule.rel * std::fabs(expected);
    case Kind::Bound:
      return bound;
    default:
      return 0;
  }
}

bool same(ElementType type, uint64_t got, uint64_t expected, const CompareRule& rule, double bound, double& allowed) {
  allowed = 0;
  if (got == expected) return true;
  if (rule.kind == Kind::Bits) return false;
  if (!info(type).is_float) {
    const int64_t x = signed_value(type, got), y = signed_value(type, expected);
    allowed = allowance(rule, type, static_cast<double>(y), bound);
    return allowed > 0 && integer_distance(x, y) <= allowed;
  }
  const double x = decode(type, got), y = decode(type, expected);
  allowed = allowance(rule, type, y, bound);
  if (std::isnan(x) && std::isnan(y)) return true;
  if (rule.kind == Kind::Bound && bound == HUGE_VAL) return true;
  // An allowance of 0 asks for the same zero as well, and one that is NaN allows nothing.
  return std::isfinite(y) && allowed > 0 && std::fabs(x - y) <= allowed;
}

using Run = std::vector<uint64_t>;

/// The first `count` elements in sorted runs of `unit`.
std::vector<Run> sorted_runs(const ArrayView& a, int64_t count, int64_t unit) {
  std::vector<Run> runs(static_cast<size_t>(count / unit));
  for (int64_t i = 0; i < count; ++i)
    runs[static_cast<size_t>(i / unit)].push_back(load_bits(a.data, a.type, a.position(i)));
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace

Result<CompareReport> compare(const ArrayView& got, const ArrayView& expected, const CompareRule& rule,
                              const ArrayView* bound, const Place& place, Diagnostics& diags) {
  if (got.type != expected.type) {
    return diags.error(Code::E0809, place,
                       "the element type is " + std::string(info(got.type).name) + ", expected " +
                           std::string(info(expected.type).name));
  }
  if (got.shape != expected.shape) {
    return diags.error(Code::E0809, place,
                       "the shape is " + show_list(got.shape) + ", expected " + show_list(expected.shape));
  }
  if (rule.kind == Kind::Bound) {
    if (bound == nullptr) return diags.error(Code::E0807, place, "the rule bound has no file of allowances");
    const bool floats =
        bound->type == ElementType::F16 || bound->type == ElementType::F32 || bound->type == ElementType::F64;
    if (!floats || bound->shape != expected.shape) {
      return diags.error(Code::E0807, place,
                         "the allowances are " + std::string(info(bound->type).name) + show_list(bound->shape) +
                             ", expected floats of shape " + show_list(expected.shape));
    }
  }
  CompareReport report;
  report.elements = expected.count();
  if (rule.free_count < 0 || rule.free_unit < 1 || rule.free_count % rule.free_unit != 0 ||
      rule.free_count > report.elements) {
    return diags.error(Code::E0807, place,
                       "the order-free part is " + std::to_string(rule.free_count) + " elements in runs of " +
                           std::to_string(rule.free_unit) + ", the array has " + std::to_string(report.elements));
  }
  if (rule.free_count > 0) {
    report.order_free_differs =
        sorted_runs(got, rule.free_count, rule.free_unit) != sorted_runs(expected, rule.free_count, rule.free_unit);
  }
  const ArrayView none{ElementType::F64, {0}, {1}, 0, nullptr, 0};
  const ArrayView& limits = rule.kind == Kind::Bound ? *bound : none;
  const bool got_plain = is_row_major(got);
  const bool limits_plain = is_row_major(limits);
  for_each_element(expected, [&](int64_t linear, int64_t position) {
    if (linear < rule.free_count) return;
    const int64_t from = got_plain ? got.offset + linear : got.position(linear);
    const uint64_t x = load_bits(got.data, got.type, from), y = load_bits(expected.data, expected.type, position);
    double limit = 0, allowed = 0;
    if (rule.kind == Kind::Bound) {
      const int64_t at = limits_plain ? limits.offset + linear : limits.position(linear);
      limit = decode(limits.type, load_bits(limits.data, limits.type, at));
    }
    if (same(expected.type, x, y, rule, limit, allowed)) return;
    if (report.different++ == 0) {
      report.first = linear;
      report.got = x;
      report.expected = y;
      report.allowed = allowed;
    }
  });
  return report;
}

std::optional<int64_t> first_change_outside(const ArrayView& a, const uint8_t* other) {
  const int64_t bits = info(a.type).memory_bits;
  const int64_t positions = static_cast<int64_t>(a.size) * 8 / bits;
  std::vector<bool> inside(static_cast<size_t>(positions), false);
  for_each_element(a, [&](int64_t, int64_t position) { inside[static_cast<size_t>(position)] = true; });
  for (int64_t i = 0; i < positions; ++i) {
    if (!inside[static_cast<size_t>(i)] && load_bits(a.data, a.type, i) != load_bits(other, a.type, i)) return i;
  }
  return std::nullopt;
}

std::string show_rule(const CompareRule& rule) {
  std::string text;
  switch (rule.kind) {
    case Kind::Bits:
      text = "bits";
      break;
    case Kind::Exact:
      text = "exact";
      break;
    case Kind::Ulp:
      text = "ulp " + show_double(rule.ulps);
      break;
    case Kind::Close:
      text = "close abs " + show_double(rule.abs) + " rel " + show_double(rule.rel);
      break;
    case Kind::Bound:
      text = "bound";
      break;
  }
  if (rule.free_count > 0) text += ", the first " + std::to_string(rule.free_count) + " elements in any order";
  return text;
}

std::string show_report(const CompareReport& report, const ArrayView& expected, const CompareRule& rule) {
  std::string text;
  if (report.order_free_differs) {
    text = "the first " + std::to_string(rule.free_count) + " elements are not the expected ones in another order";
  }
  if (report.different == 0)
    return text.empty() ? "all " + std::to_string(report.elements) + " elements are as expected" : text;
  const ElementType type = expected.type;
  if (!text.empty()) text += "; ";
  text += std::to_string(report.different) + " of " + std::to_string(report.elements) +
          (report.elements == 1 ? " element" : " elements") + (report.different == 1 ? " differs" : " differ") +
          ", first at " + show_index(expected.shape, report.first) + ": " + show_value(type, report.got) + " (" +
          show_bits(type, report.got) + "), expected " + show_value(type, report.expected) + " (" +
          show_bits(type, report.expected) + ")";
  if (report.allowed > 0) text += ", allowed difference " + show_double(report.allowed);
  return text + ", rule " + show_rule(rule);
}

}  // namespace tile
