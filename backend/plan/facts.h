// What is known of scalars before a kernel runs: which powers of two divide them. It comes from constants, from `assume` (assumptions are
// believed) and from the arithmetic between them; addresses count bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vm/ir/module.h"

namespace tile {

class Facts {
 public:
  Facts() = default;
  Facts(const Module& m, const Function& f);

  /// The largest power of two that is known to divide an integer or a pointer of rank 0; 1 where nothing is known. 0 counts as divisible
  /// by kMost.
  [[nodiscard]] uint64_t divisor(ValueId v) const { return v < divisor_.size() ? divisor_[v] : 1; }
  static constexpr uint64_t kMost = uint64_t{1} << 30;

  /// Of an array, by the tensor view that describes it.
  struct Array {
    uint64_t base = 1;                     ///< divides the address
    std::vector<uint64_t> shape, strides;  ///< divide extents and strides, in elements
  };
  [[nodiscard]] const Array& array(ValueId view) const;
  [[nodiscard]] static std::string print(const Array& a);

 private:
  std::vector<uint64_t> divisor_;
  std::vector<int> array_of_;              ///< by ValueId, -1: none
  std::vector<Array> arrays_;
};

}  // namespace tile
