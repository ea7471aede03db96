// A kernel that does nothing but matrix products on registers (wgmma: and on a small part of shared memory that stays the same): the most that
// a device's matrix units give for a type. What `tilevm bench` holds products against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tile::cuda {

/// Types of factors and sums whose products the units tell apart.
enum class MatrixType : uint8_t { F16F32, F16F16, BF16F32, TF32F32, F8F32, I8I32, F64F64 };

/// Factors are random, since the power that zeros take leaves clocks higher than they are in use. Parameters: u64 address of 4 bytes for every
/// thread of the grid, which get sums, so that nothing is left out; u32 repetitions.
struct MatrixRateKernel {
  std::string ptx, symbol;
  std::string unit;                 ///< "wgmma m64n256k16 f16"
  uint32_t threads = 256;           ///< of a block
  uint32_t blocks_per_sm = 1;       ///< that fill a multiprocessor
  double flops_per_repetition = 0;  ///< of one block: multiplications and additions
};

/// None where the target has no unit for the type. `sm`: 90 for sm_90a.
[[nodiscard]] std::optional<MatrixRateKernel> matrix_rate_kernel(MatrixType type, const std::string& target, unsigned sm, const std::string& ptx_version);

}  // namespace tile::cuda
