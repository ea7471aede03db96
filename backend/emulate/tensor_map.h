// Tensor maps of the emulation: what a bulk tensor copy is told of a tensor in global memory, in a form of our own.
// The rules are those that the driver's encoder was seen to apply.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace tile {

enum class TensorSwizzle : uint8_t { None, B32, B64, B128 };

/// 128 bytes like the driver's; kernels get its device address. Dimensions are numbered from the innermost.
struct alignas(64) EmulatedTensorMap {
  static constexpr uint32_t kMagic = 0x54454E53;
  uint32_t magic = kMagic;
  uint8_t rank = 0;
  uint8_t element_bytes = 0;                 ///< 1, 2, 4 or 8
  TensorSwizzle swizzle = TensorSwizzle::None;
  bool fill_nan = false;                     ///< what loads find outside the tensor: NaN (bytes F7 7F), else zero
  bool round_tf32 = false;                   ///< loads round f32 to tf32, nearest even
  bool is_bf16 = false;                      ///< of two bytes: reductions of floats need to know
  uint64_t address = 0;                      ///< device address of element 0
  std::array<uint64_t, 5> strides{};         ///< bytes; [0] is the element size
  std::array<uint32_t, 5> dims{};            ///< elements, minus one
  std::array<uint16_t, 5> box{};             ///< elements
};
static_assert(sizeof(EmulatedTensorMap) == 128);

struct TensorMapRequest {
  uint64_t address = 0;
  unsigned rank = 0, element_bytes = 0;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 5> strides{};         ///< bytes, from [1] on
  std::array<uint32_t, 5> box{};
  TensorSwizzle swizzle = TensorSwizzle::None;
  bool fill_nan = false, round_tf32 = false, is_bf16 = false;
};

/// Fills `map`; if the request is refused, gives the reason, else an empty text.
[[nodiscard]] std::string encode_tensor_map(const TensorMapRequest& request, EmulatedTensorMap& map);

namespace emu {

/// Mask of the address bits that a swizzle exchanges: bits 4.. with bits 7...
constexpr uint32_t swizzle_mask(TensorSwizzle s) { return (1u << static_cast<unsigned>(s)) - 1; }
constexpr uint32_t swizzled(uint32_t addr, TensorSwizzle s) { return addr ^ (((addr >> 7) & swizzle_mask(s)) << 4); }

}  // namespace emu
}  // namespace tile
