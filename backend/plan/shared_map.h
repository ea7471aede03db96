// Where the elements of a tile lie in shared memory while it passes from one layout to another: a linear map over GF(2) from element bits to
// offset bits, chosen from both layouts so that neither side's accesses meet in a bank.
//
// Shared memory has 32 banks of four bytes. An access of up to 4 bytes a lane is served for all 32 lanes at once, one of 8 bytes for 16, one
// of 16 bytes for 8; each such phase takes as many wavefronts as there are different words in one bank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/plan/layout.h"

namespace tile {

struct SharedMap {
  std::vector<uint32_t> column;            ///< bytes that each element bit adds to the offset, by XOR
  std::vector<unsigned> write_run, read_run;  ///< register bits of the source and the target that walk along one access, lowest first

  [[nodiscard]] uint32_t offset(uint32_t element) const;
  /// Offsets that the bits of a number (of a register, lane or warp) add, lowest first; 0 for copies.
  [[nodiscard]] std::vector<uint32_t> columns(std::span<const int8_t> bits) const;
};

/// The map for 2^bits elements. Bits that both sides have in registers come lowest, as long as 16 bytes have room for them; then the banks
/// are given to the lanes of a phase. A lane bit of one side may share its bank bit with one of the other: the second of them is XORed in.
[[nodiscard]] SharedMap shared_map(const Layout& from, const Layout& to, unsigned bits, unsigned element_bytes);

struct Traffic {
  unsigned accesses = 0;    ///< instructions of a warp
  unsigned wavefronts = 0;  ///< of all of them
  unsigned least = 0;       ///< wavefronts that the bytes alone take
};
[[nodiscard]] Traffic write_traffic(const SharedMap& map, const Layout& from, unsigned element_bytes);
[[nodiscard]] Traffic read_traffic(const SharedMap& map, const Layout& to, unsigned element_bytes);

}  // namespace tile
