// The checkers of a launch: observers that find what a kernel does against the rules of the language. Rules:
// spec/checkers.md. Not the check of allocations, which the machine always makes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "vm/base/element_type.h"
#include "vm/interp/observer.h"
#include "vm/ir/valid_module.h"

namespace tile {

enum class Check : uint8_t { Bounds, Init, Race, Order, Undef, Assume, Nan };
inline constexpr size_t kChecks = 7;

class CheckSet {
 public:
  constexpr CheckSet() = default;
  [[nodiscard]] constexpr bool has(Check c) const { return bits_ >> static_cast<unsigned>(c) & 1; }
  constexpr void add(Check c) { bits_ |= 1u << static_cast<unsigned>(c); }
  constexpr void add(CheckSet o) { bits_ |= o.bits_; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] static constexpr CheckSet all() { return CheckSet((1u << kChecks) - 1); }
  /// Those that report errors: all but nan.
  [[nodiscard]] static constexpr CheckSet usual() {
    return CheckSet(all().bits_ & ~(1u << static_cast<unsigned>(Check::Nan)));
  }

 private:
  explicit constexpr CheckSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

/// "bounds,race", "default" (all but nan) or "all", in any combination; no value where a word is none of these.
[[nodiscard]] std::optional<CheckSet> parse_checks(std::string_view text);

/// The elements of a buffer that belong to an argument's array; what lies between and around them belongs to nobody.
struct CheckedArray {
  ElementType type = ElementType::I8;
  int64_t offset = 0;                   ///< of the first element, in elements
  std::vector<int64_t> shape, strides;  ///< in elements
};

struct CheckOptions {
  static constexpr size_t kMaxFindings = 64;  ///< that are reported

  CheckSet checks = CheckSet::usual();
  bool stop_at_unspecified = false;                 ///< the first finding of `undef` ends the launch
  std::vector<std::optional<CheckedArray>> arrays;  ///< by number of the allocation; none: the whole allocation
  std::vector<size_t> uninitialised;                ///< allocations whose contents count as never written
};

/// A checker for launches of entries of `module`, one launch at a time. Findings are added to the launch's diagnostics
/// when it ends: errors T0103 and T0110 to T0119, each kind and place once; of `nan` warnings W0002, each place once
/// for all launches.
[[nodiscard]] std::unique_ptr<Observer> make_checker(std::shared_ptr<const ValidModule> module, CheckOptions options);

}  // namespace tile
