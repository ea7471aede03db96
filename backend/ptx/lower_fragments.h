// Operands of mma.sync from tiles in shared memory, as ldmatrix delivers them.
#pragma once

#include <map>
#include <optional>

#include "backend/ptx/lowering.h"

namespace tile {

/// An operand's tile on its way through the scratch space to ldmatrix.
struct MatrixRead {
  ValueId value = kNone;          ///< what is written: the operand, or what it was reshaped or permuted from
  Layout rows;                    ///< element where the row of each lane begins; registers count groups of matrices
  unsigned matrices = 4;          ///< of one read
  bool transpose = false;
  /// In shared memory the tile is row-major; bits 4 to 6 of an offset are exchanged with the bits from this one on, which count rows, so that
  /// eight rows of a matrix lie in different banks.
  unsigned exchange = 7;
  uint32_t bytes = 0;             ///< of scratch space
};
/// How to get the fragments `to` (2^pack_bits elements in a word) of a product's operand by ldmatrix; none where that is not possible, or
/// not needed because the threads have their elements.
[[nodiscard]] std::optional<MatrixRead> matrix_read(Lowering& x, ValueId operand, const Layout& to, unsigned pack_bits);
/// Writes the tile to the scratch space at `base`, a multiple of 128; no barriers.
void write_matrices(Lowering& x, const MatrixRead& r, Value* base);
/// The fragments' words, from a tile that stands in the scratch space at `base`: those of `count` reads from number `first` on.
[[nodiscard]] Values read_matrices(Lowering& x, const MatrixRead& r, Value* base, unsigned first, unsigned count);

/// The products of one stage of a ring, by mma.sync: every warp reads the fragments that it needs.
class StageFragments {
 public:
  StageFragments(Lowering& x, const RingPlan& r);

  /// Fragments of 32 bytes of K: for each 16 rows of A four words, for each 8 columns of B two. Of f64: of 128 bytes, eight and four doubles.
  struct Step {
    std::vector<Values> a, b;
  };
  [[nodiscard]] unsigned steps() const { return 1u << (r_.k_bits + log2_of(r_.element_bytes) - (doubles() ? 7 : 5)); }
  /// Whether some fragments must be gathered element by element: rows along M or N whose elements are not 16 bits wide.
  [[nodiscard]] bool gathers() const { return r_.element_bytes != 2 && !doubles() && (r_.a.mn_major || r_.b.mn_major); }
  /// Whether there are registers for the fragments of two steps.
  [[nodiscard]] bool early() const { return !gathers() && (!doubles() || 8 * tiles_m_.size() + 4 * tiles_n_.size() + 2 * tiles_m_.size() * tiles_n_.size() <= 40); }
  /// `from`: shared address of the stage. Without gathering.
  [[nodiscard]] Step load(Value* from, unsigned k);
  /// accumulators += the step's products
  void multiply(const Step& s, Values& acc);
  /// Adds the products of a whole stage to the accumulators in `vars`.
  void stage(Value* from, const std::vector<Lowering::Var>& vars);

 private:
  Step load_any(Value* from, Value* k);
  [[nodiscard]] bool doubles() const { return r_.element_bytes == 8; }
  Values of_doubles(const RingPlan::Operand& o, Value* from, uint32_t first, unsigned k, bool is_b);
  Values matrices(const RingPlan::Operand& o, Value* from, uint32_t first, unsigned k, bool is_b, bool pair);
  Value* place(const RingPlan::Operand& o, Value* from, Value* row, Value* byte);
  Values along(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair);
  Values across(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair);
  Values rounded(const RingPlan::Operand& o, Values words);
  void product(const Values& a, const Values& bb, Values& acc, size_t at);
  Value* wide(Value* word, unsigned upper);
  [[nodiscard]] bool pairs() const { return tiles_n_.size() > 1; }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const RingPlan& r_;
  Value *warp_m_ = nullptr, *warp_n_ = nullptr;
  Value* place_[2] = {nullptr, nullptr};   ///< the thread's part of a row's place in A and B, swizzled
  std::vector<uint32_t> tiles_m_, tiles_n_;
  std::map<std::pair<Value*, unsigned>, Value*> widened_;
};

}  // namespace tile
