#include "backend/emulate/tensor_map.h"

namespace tile {

std::string encode_tensor_map(const TensorMapRequest& r, EmulatedTensorMap& map) {
  if (r.rank < 1 || r.rank > 5) return "the rank is not in 1..5";
  if (r.element_bytes != 1 && r.element_bytes != 2 && r.element_bytes != 4 && r.element_bytes != 8)
    return "the element size is not 1, 2, 4 or 8 bytes";
  if (r.address % 16 != 0) return "the address is not a multiple of 16";
  if (r.round_tf32 && r.element_bytes != 4) return "only 4-byte elements are rounded to tf32";
  uint64_t bytes = r.element_bytes;
  for (unsigned d = 0; d < r.rank; ++d) {
    if (r.dims[d] < 1 || r.dims[d] > uint64_t{1} << 32) return "a dimension is not in 1..2^32";
    if (r.box[d] < 1 || r.box[d] > 256) return "a side of the box is not in 1..256";
    if (d > 0 && (r.strides[d] % 16 != 0 || r.strides[d] >= uint64_t{1} << 40))
      return "a stride is not a multiple of 16 below 2^40";
    bytes *= r.box[d];
  }
  const uint64_t row = uint64_t{r.box[0]} * r.element_bytes;
  if (row % 16 != 0) return "a row of the box is not a multiple of 16 bytes";
  if (bytes > 227 * 1024) return "the box does not fit shared memory";
  // Narrower rows are possible on the GPU, but how they lie in shared memory was not studied.
  if (r.swizzle != TensorSwizzle::None && row != uint64_t{16} << static_cast<unsigned>(r.swizzle))
    return "a row of the box is not as long as the swizzle's";
  map = {};
  map.rank = static_cast<uint8_t>(r.rank);
  map.element_bytes = static_cast<uint8_t>(r.element_bytes);
  map.swizzle = r.swizzle;
  map.fill_nan = r.fill_nan;
  map.round_tf32 = r.round_tf32;
  map.is_bf16 = r.is_bf16;
  map.address = r.address;
  map.box.fill(1);
  for (unsigned d = 0; d < r.rank; ++d) {
    map.strides[d] = d == 0 ? r.element_bytes : r.strides[d];
    map.dims[d] = static_cast<uint32_t>(r.dims[d] - 1);
    map.box[d] = static_cast<uint16_t>(r.box[d]);
  }
  return {};
}

}  // namespace tile
