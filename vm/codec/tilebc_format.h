// Numbers of the tilebc container that encoder and decoder share. Limits are named here and tested at and beyond their
// value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/ops/op_table.h"

namespace tile {

inline constexpr uint16_t kTilebcMajor = 1, kTilebcMinor = 0;
inline constexpr size_t kMinTilebcBytes = 8;                ///< offset of the root table and file identifier
inline constexpr size_t kMaxTilebcBytes = size_t{1} << 30;  ///< larger inputs are refused before anything is read
inline constexpr uint32_t kMaxTilebcTables = 1u << 24;      ///< of the FlatBuffers verifier
inline constexpr uint32_t kMaxTilebcDepth = 2;              ///< of tables in tables, for the verifier: what the schema has
/// Levels of regions, types, attributes, scopes and locations inside each other; later passes recurse over them.
inline constexpr uint32_t kMaxTilebcNesting = 400;
inline constexpr uint32_t kMaxTilebcRank = 64;     ///< extents, strides and dim_map entries of a type
inline constexpr uint32_t kMaxTilebcFused = 4096;  ///< locations that a fused location stands for
/// What records amount to when every use of a string or attribute counts as if it were written out: this, plus
/// kTilebcUsePerByte for each byte of the file. A small file cannot stand for an enormous module.
inline constexpr uint64_t kTilebcUseFloor = uint64_t{1} << 26, kTilebcUsePerByte = 64;

/// A field of a row that is newer than the Tile IR version of the file has no word and its default, so that rows can
/// grow.
constexpr bool tilebc_has(Version since, Version file) {
  return since <= file;
}

/// True if the words of an operation begin with a count for each operand group.
inline bool tilebc_segments(const OpDef& d, Version file) {
  int variable = 0;
  for (const OperandDef& o : d.operands) variable += o.arity != Arity::One && tilebc_has(o.since, file);
  return variable >= 2;
}

}  // namespace tile
