// The driver's encoder with the defaults that this project uses: no interleave, 256-byte promotion in the L2 cache.
#include "backend/cuda/tensor_map.h"

namespace tile::cuda {
namespace {

/// CUtensorMapDataType of the driver's interface.
int data_type(ElementType e, bool round_tf32) {
  if (round_tf32) return 11;
  switch (e) {
    case ElementType::F16: return 6;
    case ElementType::BF16: return 9;
    case ElementType::F32: case ElementType::TF32: return 7;
    case ElementType::F64: return 8;
    case ElementType::I16: return 1;
    case ElementType::I32: return 2;
    case ElementType::I64: return 4;
    default: return 0;
  }
}

}  // namespace

bool encode_tensor_map(const Driver& driver, const TensorMapArguments& a, TensorMap& map) {
  if (!driver.tensor_map_encode || a.address == 0) return false;
  constexpr uint32_t kSteps[5] = {1, 1, 1, 1, 1};
  constexpr int kNoInterleave = 0, kPromote256 = 3;
  return driver.tensor_map_encode(&map, data_type(a.element, a.round_tf32), a.rank, a.address, a.dims.data(), a.strides.data() + 1, a.box.data(), kSteps, kNoInterleave,
                                  static_cast<int>(a.swizzle), kPromote256, a.fill_nan ? 1 : 0) == kSuccess;
}

}  // namespace tile::cuda
