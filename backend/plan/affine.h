// Tiles of integers and of pointers whose elements follow from their places by sums: what Triton-like programs compute their addresses and
// masks with. Sums wrap as the program's do, in the width of its integers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vm/ir/module.h"

namespace tile {

/// Expressions of scalars, by number; -1 stands for 0.
struct ScalarNodes {
  enum class Kind : uint8_t { Constant, Value, Add, Sub, Mul };
  struct Node {
    Kind kind = Kind::Constant;
    int64_t number = 0;
    ValueId value = kNone;
    int left = -1, right = -1;
  };
  std::vector<Node> nodes;
  int constant(int64_t n);
  int value(ValueId v);
  int combine(Kind kind, int left, int right);
  [[nodiscard]] std::optional<int64_t> known(int n) const;   ///< if it is a constant
};

/// Element (i, j...) is start + i * step[0] + j * step[1] + ... modulo 2^bits.
struct AffineTile {
  int start = -1;
  std::vector<int> step;
  unsigned bits = 32;
  [[nodiscard]] bool splat() const;
};

/// Where `start` + the number of an element along dimension `dim` is less than `limit`, both signed; the sum is believed not to wrap.
struct AffineLimit {
  size_t dim;
  int start, limit;
  unsigned bits;
};

/// A tile of pointers, as the base plus moves of elements: each is sign-extended.
struct AffinePointers {
  ValueId base = kNone;
  std::vector<AffineTile> moves;
  std::vector<AffineTile> trips;   ///< splats: the moves of each trip of the loop
};

/// A load through such pointers.
struct PointerLoad {
  ScalarNodes scalars;
  AffinePointers pointers;
  std::vector<AffineLimit> limits;
};

/// Finds them for loads in the loop `loop`.
class AffineFinder {
 public:
  AffineFinder(const Module& m, const Function& f, std::span<const InstId> def, InstId loop) : m_(m), f_(f), def_(def), loop_(loop) {}
  [[nodiscard]] std::optional<PointerLoad> load(InstId i);

 private:
  std::optional<AffineTile> integers(ValueId v);
  std::optional<AffinePointers> pointers(ValueId v, bool carried);
  bool mask(ValueId v, std::vector<AffineLimit>& out);
  [[nodiscard]] std::optional<std::vector<int>> same_dims(ValueId from, ValueId to, Opcode op, InstId i) const;
  AffineTile moved(const AffineTile& t, std::span<const int> from_dim) const;

  const Module& m_;
  const Function& f_;
  std::span<const InstId> def_;
  const InstId loop_;
  PointerLoad out_;
};

}  // namespace tile
