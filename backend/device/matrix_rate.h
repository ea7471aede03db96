// How fast the device's matrix units are with the type of an entry's products, measured.
#pragma once

#include <optional>
#include <string>

#include "backend/cuda/launch.h"
#include "backend/cuda/link.h"
#include "backend/cuda/matrix_rate.h"
#include "backend/device/device_gpu.h"

namespace tile {

/// The type of the entry's first matrix product; none where it has no products or no unit has the type (f32, scaled products).
[[nodiscard]] std::optional<cuda::MatrixType> product_type(const Module& module, const Function& entry);

/// Times a kernel that fills the device with products of this type, in launches of about a millisecond, each after `flush` was overwritten, as
/// launches of other kernels are timed. Its `unit` is empty where the target has no unit for the type.
[[nodiscard]] Result<MatrixRate> measure_matrix_rate(const cuda::Gpu& gpu, const cuda::Linker& linker, cuda::MatrixType type, const std::string& target,
                                                     const cuda::DeviceMemory& flush, Diagnostics& diags);

}  // namespace tile
