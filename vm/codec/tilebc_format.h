// Numbers of the tilebc container that encoder and decoder share. Limits are named here and tested at and beyond their value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tile {

inline constexpr uint16_t kTilebcMajor = 1, kTilebcMinor = 0;
inline constexpr size_t kMaxTilebcBytes = size_t{1} << 30;      ///< larger inputs are refused before anything is read
inline constexpr uint32_t kMaxTilebcNesting = 400;              ///< regions inside regions; later passes recurse over them
inline constexpr uint32_t kMaxTilebcTables = 1u << 24;          ///< of the FlatBuffers verifier
inline constexpr uint32_t kMaxTilebcDepth = 8;                  ///< of tables in tables

}  // namespace tile
