// wgmma of one warpgroup: where its operands lie in shared memory, and its arithmetic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/emulate/tensor_map.h"

namespace tile::emu {

/// m64 nN, 32 bytes of k. `kind` as backend/ptx/device.h numbers them (MmaKind); `formats`: bit 0, bit 1: A, B is e5m2.
struct WgmmaShape {
  uint32_t kind, formats, n;
  bool a_mn, b_mn;                                    ///< operand is MN-major in shared memory (16-bit types only)
  [[nodiscard]] unsigned element_bytes() const;
  [[nodiscard]] unsigned k() const { return 32 / element_bytes(); }
  [[nodiscard]] unsigned registers() const;           ///< of D in one thread, 32 bits each
};

/// A matrix descriptor, decoded.
struct MatrixDescriptor {
  explicit MatrixDescriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3FFF) << 4), leading(static_cast<uint32_t>(bits >> 16 & 0x3FFF) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3FFF) << 4), base_offset(static_cast<uint32_t>(bits >> 49 & 7)),
        swizzle(static_cast<TensorSwizzle>((4 - (bits >> 62)) % 4)),
        unused((bits & ~(uint64_t{0x3FFF} | uint64_t{0x3FFF} << 16 | uint64_t{0x3FFF} << 32 | uint64_t{7} << 49 | uint64_t{3} << 62)) != 0) {}
  uint32_t start, leading, stride, base_offset;
  TensorSwizzle swizzle;
  bool unused;                                        ///< bits of no field are set
};

/// Calls f(shared address, row, k) for every 16 bytes of an operand of `rows` rows or columns: K-major, they are
/// elements k, k + 1... of one row; MN-major, rows row .. row + 7 of one k.
template <class F>
void each_chunk(const MatrixDescriptor& d, bool mn_major, unsigned rows, unsigned element_bytes, F&& f) {
  const uint32_t width = 16u << static_cast<unsigned>(d.swizzle);
  const bool plain = d.swizzle == TensorSwizzle::None;
  if (!mn_major) {
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned c = 0; c < 2; ++c)
        f(swizzled(d.start + r % 8 * width + r / 8 * d.stride + c * (plain ? d.leading : 16), d.swizzle), r,
          c * 16 / element_bytes);
    return;
  }
  const unsigned panel = width / 2;
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned r = 0; r < rows; r += 8) {
      const uint32_t offset = plain ? r / 8 * d.stride + k % 8 * 16 + k / 8 * d.leading
                                    : r % panel * 2 + r / panel * d.leading + k % 8 * width + k / 8 * d.stride;
      f(swizzled(d.start + offset, d.swizzle), r, k);
    }
}

/// D = A x B (+ D if `scale`). `a_registers`: 4 words of each of the 128 threads, instead of `a`; else nullptr.
/// `shared`: address 0.
void execute_wgmma(const WgmmaShape& shape, bool scale, const std::byte* shared, uint64_t a,
                   const uint32_t* a_registers, uint64_t b, const std::array<void*, 128>& d);

}  // namespace tile::emu
