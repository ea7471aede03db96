// Tensor maps encoded by the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/driver.h"
#include "vm/base/element_type.h"

namespace tile::cuda {

/// As the hardware reads it; 64-byte aligned in device memory.
struct alignas(64) TensorMap {
  std::array<uint64_t, 16> words{};
};
static_assert(sizeof(TensorMap) == 128);

struct TensorMapArguments {
  ElementType element = ElementType::F16;
  uint64_t address = 0;
  unsigned rank = 0;
  std::array<uint64_t, 5> dims{}, strides{};   ///< elements; bytes from [1] on
  std::array<uint32_t, 5> box{};
  unsigned swizzle = 0;
  bool fill_nan = false, round_tf32 = false;
};

/// False where the driver refuses: a base or stride that is no multiple of 16 bytes, for example, or a driver without tensor maps.
[[nodiscard]] bool encode_tensor_map(const Driver& driver, const TensorMapArguments& arguments, TensorMap& map);

}  // namespace tile::cuda
