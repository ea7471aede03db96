// Resolves tensor map specifications against launch arguments.
#include "backend/device/tensor_maps.h"

namespace tile {

std::string tensor_map_request(const TensorMapSpec& spec, const LaunchArguments& args, const std::function<uint64_t(const FlatParam&)>& address_of,
                               TensorMapRequest& request) {
  const auto number = [&](const TensorMapSpec::Number& n) {
    return n.param < 0 ? static_cast<uint64_t>(n.constant) : args.params[static_cast<size_t>(n.param)].bits;
  };
  request = {};
  request.address = address_of(args.params[spec.base]);
  request.rank = static_cast<unsigned>(spec.dims.size());
  request.element_bytes = info(spec.element).memory_bits / 8u;
  request.swizzle = static_cast<TensorSwizzle>(spec.swizzle);
  request.round_tf32 = spec.round_tf32;
  request.is_bf16 = spec.element == ElementType::BF16;
  if (number(spec.strides[0]) != 1) return "the innermost stride is not one";
  for (size_t d = 0; d < spec.dims.size(); ++d) {
    request.dims[d] = number(spec.dims[d]);
    const uint64_t stride = number(spec.strides[d]);
    // Extents and strides that no map can state; the product with the element's size must not wrap.
    if (request.dims[d] == 0 || request.dims[d] > uint64_t{1} << 32) return "an extent is 0 or above 2^32";
    if (stride >> 40) return "a stride is too long";
    request.strides[d] = stride * request.element_bytes;
    request.box[d] = spec.box[d];
  }
  return {};
}

}  // namespace tile
