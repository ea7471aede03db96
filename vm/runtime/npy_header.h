// The header of a .npy file: versions 1.0, 2.0 and 3.0, any bytes. Not its data; npy.h reads that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"

namespace tile {

/// Longest header dictionary that is read. NumPy itself stops at 10,000 characters.
inline constexpr size_t kMaxNpyHeader = 65536;
/// Bytes that hold magic, version and length field of every version.
inline constexpr size_t kNpyPrefix = 12;

struct NpyHeader {
  std::string descr;      ///< as written, "<f4"; of a structured type only its first characters
  char order = '|';       ///< '<', '>' or '|'
  char kind = 0;          ///< 'b', 'i', 'u', 'f', 'V', or another letter of NumPy; 0 for structured types
  int64_t item_size = 0;  ///< bytes
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_begin = 0;  ///< bytes before the first element
};

/// Bytes from the start of the file to the end of its header, from the first kNpyPrefix bytes of the file (fewer where
/// it is shorter). E0806 for another magic or version, a cut file, or a header beyond kMaxNpyHeader.
[[nodiscard]] Result<size_t> npy_header_end(std::span<const uint8_t> prefix, const Place& place, Diagnostics& diags);

/// Reads the header at the start of `bytes`. E0806 with what was found and expected.
[[nodiscard]] Result<NpyHeader> parse_npy_header(std::span<const uint8_t> bytes, const Place& place,
                                                 Diagnostics& diags);

/// The bytes of a header as NumPy writes it, padded so that the data starts at a multiple of 64.
[[nodiscard]] std::string format_npy_header(std::string_view descr, bool fortran_order,
                                            const std::vector<int64_t>& shape);

}  // namespace tile
