// Unspecified elements of values, with where they come from, and how operations hand them on.
#pragma once

#include <memory>
#include <vector>

#include "vm/interp/check_part.h"

namespace tile {

/// Where an unspecified element comes from.
enum class Origin : uint8_t {
  OutsideArray,
  Masked,
  Unwritten,
  DivideByZero,
  DivideOverflow,
  Shift,
  FloatToInt,
  MaskedAtomic,
  kCount
};

/// One mark for each element of a value, 0 where the element is specified. A null pointer: all are.
using Mark = uint32_t;
using Marks = std::shared_ptr<const std::vector<Mark>>;

[[nodiscard]] constexpr Mark mark_of(InstId inst, Origin o) {
  return 1 + inst * static_cast<Mark>(Origin::kCount) + static_cast<Mark>(o);
}
[[nodiscard]] constexpr InstId inst_of(Mark m) {
  return (m - 1) / static_cast<Mark>(Origin::kCount);
}
[[nodiscard]] constexpr Origin origin_of(Mark m) {
  return static_cast<Origin>((m - 1) % static_cast<Mark>(Origin::kCount));
}
[[nodiscard]] const char* origin_text(Origin o);

/// How the operations of an entry hand marks on. Knows no blocks: marks of operands come in, those of the result go
/// out.
class UndefFlow {
 public:
  explicit UndefFlow(const CheckFacts& facts) : facts_(facts), f_(facts.f) {}
  /// True if the operation makes unspecified elements out of specified ones.
  [[nodiscard]] bool makes(InstId i) const;
  /// Marks of the one tile that an operation other than a load or atomic gives. Called before it runs: operands still
  /// have their values.
  [[nodiscard]] Marks result(const Exec& x, InstId i, const std::vector<Marks>& values) const;

 private:
  using Out = std::vector<Mark>;
  void elementwise(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const;
  void select(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const;
  void made(const Exec& x, InstId i, Out& out) const;
  [[nodiscard]] bool absorbs(const Exec& x, InstId i, ValueId other, size_t element) const;
  void shape(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const;
  void matrix(InstId i, const std::vector<Marks>& values, Out& out) const;
  void reduction(InstId i, const std::vector<Marks>& values, Out& out) const;
  [[nodiscard]] std::vector<int64_t> slice_start(const Exec& x, InstId i, size_t first_index,
                                                 const std::vector<int64_t>& part) const;

  const CheckFacts& facts_;
  const Function& f_;
};

}  // namespace tile
