// Arrays from and to .npy files; which NumPy type holds which element type is told in spec/launch.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/runtime/array.h"

namespace tile {

/// The array in a .npy file's bytes. Fortran order becomes column-major strides, big-endian numbers are swapped.
///
/// @param as  element type; needed for types that NumPy does not know (bf16, f8*, f4*, tf32), otherwise taken from the
/// file
/// @error     E0806 broken header, data of another length, a NumPy type that does not hold `as`; L0103, E0903 memory
[[nodiscard]] Result<Array> read_npy(std::span<const uint8_t> bytes, std::optional<ElementType> as, const Place& place,
                                     Diagnostics& diags, const ArrayLimits& limits = {});
/// The same from a file; E0901 where it cannot be read. The data is read straight into the array's memory.
[[nodiscard]] Result<Array> load_npy(const std::string& path, std::optional<ElementType> as, const Place& place,
                                     Diagnostics& diags, const ArrayLimits& limits = {});

/// The bytes of a .npy file: column-major arrays in Fortran order, all others in C order, gaps between rows left out.
/// `a` must fit its memory. A reader given a.type gets the same bits.
[[nodiscard]] std::vector<uint8_t> write_npy(const ArrayView& a);
/// The same into a file, whole or not at all; E0902.
[[nodiscard]] Status save_npy(const std::string& path, const ArrayView& a, Diagnostics& diags);

}  // namespace tile
