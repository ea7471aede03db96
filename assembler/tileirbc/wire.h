// Numbers of the tileirbc format that its reader and its writer share. Described in spec/tileirbc.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "vm/base/element_type.h"

namespace tile::tileirbc {

inline constexpr uint8_t kMagic[8] = {0x7F, 'T', 'i', 'l', 'e', 'I', 'R', 0};
inline constexpr size_t kHeaderBytes = 12;
inline constexpr uint8_t kPadding = 0xCB;
inline constexpr uint8_t kHasAlignment = 0x80;  ///< bit of a section's id

enum class Section : uint8_t { End, Strings, Functions, Debug, Constants, Types, Globals, Producer, kCount };
inline constexpr size_t kSections = static_cast<size_t>(Section::kCount);

struct SectionInfo {
  const char* name;
  uint8_t alignment;  ///< that it must declare a multiple of; 0: none
};
inline constexpr SectionInfo kSectionInfo[kSections] = {{"end", 0},    {"string", 4},   {"function", 8},
                                                        {"debug", 8},  {"constant", 8}, {"type", 4},
                                                        {"global", 0}, {"producer", 0}};
constexpr const SectionInfo& info(Section s) {
  return kSectionInfo[static_cast<size_t>(s)];
}

/// Tags of types that are not elements; those of elements stand in ElementInfo.
enum class TypeTag : uint8_t {
  Ptr = 12,
  Tile = 13,
  TensorView = 14,
  PartitionView = 15,
  Function = 16,
  Token = 17,
  GatherScatterView = 20,
  StridedView = 21
};

enum class AttrCode : uint8_t {
  Integer = 1,
  Float,
  Bool,
  Type,
  String,
  Array,
  Dense,
  DivBy,
  SameElements,
  Dictionary,
  Hints,
  Bounded,
  MultimemKind
};

enum class DebugTag : uint8_t { Unknown, CompileUnit, File, LexicalBlock, Location, Subprogram, CallSite };
/// Fields of a debug record: r reference (0, or 1 + the index of a record), s string, n number.
constexpr std::string_view debug_fields(uint32_t tag) {
  constexpr std::string_view kFields[] = {"", "r", "ss", "rrnn", "rsnn", "rnssrn", "rr"};
  return tag < std::size(kFields) ? kFields[tag] : "";
}
inline constexpr size_t kMaxDebugFields = 6;

// Bits of a function's flags byte.
inline constexpr uint8_t kPrivate = 1, kEntry = 2, kHasHints = 4;

// What came with which version.
inline constexpr Version kSinceViewFlags = v(13, 3);    ///< flags word of partition_view; before, a byte "has padding"
inline constexpr Version kSinceNewViews = v(13, 3);     ///< strided_view, gather_scatter_view
inline constexpr Version kSinceGlobalFlags = v(13, 3);  ///< visibility and constant of globals
inline constexpr Version kSinceProducer = v(13, 3);
inline constexpr Version kSincePtrAttr = v(13, 4);   ///< flags word of ptr and tensor_view
inline constexpr Version kSinceArgAttrs = v(13, 5);  ///< hints always, arg_attrs, flags of subprograms

/// Bytes of one element in a constant; i1 is packed by bits instead.
constexpr size_t payload_bytes(ElementType e) {
  return (tile::info(e).bits + 7u) / 8u;
}
/// Bits that the 32-bit storage form of tf32 has below its 19.
inline constexpr unsigned kTf32Shift = 13;
/// Up to this many i1 elements a byte holds them as bits; beyond, a single byte is a splat.
inline constexpr int64_t kPackedByte = 8;

}  // namespace tile::tileirbc
