// Unspecified elements of values, with where they come from, and how operations hand them on.
#pragma once

#include <array>
#include <memory>
#include <span>
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

/// 0: the element is specified.
using Mark = uint32_t;
using DenseMarks = std::shared_ptr<const std::vector<Mark>>;  ///< one for each element

/// The marks of a value. Few margins, as a tile at the edge of an array has them, or one mark for each element.
class Marks {
 public:
  static constexpr size_t kMost = 4;  ///< margins
  /// Elements whose index along one dimension is `from` or more; 0: all elements.
  struct Margin {
    uint32_t dim = 0, from = 0;
    Mark mark = 0;
  };
  Marks() = default;
  explicit Marks(DenseMarks dense) : dense_(std::move(dense)) {}
  /// True if some element may be marked; margins are never empty.
  explicit operator bool() const { return count_ != 0 || dense_; }
  [[nodiscard]] bool is_dense() const { return dense_ != nullptr; }
  /// An element has the mark of the first margin that it is in.
  [[nodiscard]] std::span<const Margin> margins() const { return {margins_.data(), count_}; }
  /// Adds a margin behind the others; false if there is no room. Not to dense marks.
  [[nodiscard]] bool add(const Margin& m);
  /// Adds the margins of another value of the same shape.
  [[nodiscard]] bool add(const Marks& o);
  /// One mark for each element of a value of this shape.
  [[nodiscard]] DenseMarks dense(const std::vector<int64_t>& shape) const;

 private:
  std::array<Margin, kMost> margins_;
  uint32_t count_ = 0;
  DenseMarks dense_;
};

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
  explicit UndefFlow(const CheckFacts& facts);
  /// True if the operation makes unspecified elements out of specified ones.
  [[nodiscard]] bool makes(InstId i) const;
  /// Marks of the one tile that an operation other than a load or atomic gives. Called before it runs: operands still
  /// have their values.
  [[nodiscard]] Marks result(const Exec& x, InstId i, const std::vector<Marks>& values) const;

 private:
  using Out = std::vector<Mark>;
  using In = std::vector<DenseMarks>;  // by operand
  struct Maker {                       // an operation that makes(), and its attributes
    Opcode op{};
    bool is_signed = false;
    ElementType from{};          // of the last operand
    unsigned bits = 0, size = 0;  // of that type
    unsigned result_bits = 0;
    bool never = false;  // the last operand is a constant for which it makes nothing
  };
  [[nodiscard]] bool by_margins(InstId i, const std::vector<Marks>& values, Marks& out) const;
  [[nodiscard]] bool makes_none(const Exec& x, InstId i) const;
  void elementwise(const Exec& x, InstId i, const In& in, Out& out) const;
  void select(const Exec& x, InstId i, const In& in, Out& out) const;
  void made(const Exec& x, InstId i, Out& out) const;
  [[nodiscard]] bool absorbs(const Exec& x, InstId i, ValueId other, size_t element) const;
  void shape(const Exec& x, InstId i, const In& in, Out& out) const;
  void matrix(InstId i, const In& in, Out& out) const;
  void reduction(InstId i, const In& in, Out& out) const;
  [[nodiscard]] std::vector<int64_t> slice_start(const Exec& x, InstId i, size_t first_index,
                                                 const std::vector<int64_t>& part) const;

  const CheckFacts& facts_;
  const Function& f_;
  std::vector<uint8_t> alike_;                  // by instruction: all operands have as many elements as the result
  std::vector<std::unique_ptr<Maker>> makers_;  // by instruction, nullptr for those that make nothing
};

}  // namespace tile
