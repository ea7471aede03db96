// The element types of Tile IR and their facts: widths, storage, bytecode tags, versions, spelling.
// Numeric conversion lives in numeric.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tile {

/// Bytecode version "13.minor"; major is always 13 in public Tile IR.
struct Version {
  uint8_t major = 13, minor = 1;
  constexpr auto operator<=>(const Version&) const = default;
};
constexpr Version v(int major, int minor) { return {static_cast<uint8_t>(major), static_cast<uint8_t>(minor)}; }
inline constexpr Version kOldestVersion = v(13, 1), kNewestVersion = v(13, 5), kNewestStableVersion = v(13, 4);

enum class ElementType : uint8_t {
  I1, I4, I8, I16, I32, I64, F16, BF16, F32, TF32, F64, F8E4M3FN, F8E5M2, F8E8M0FNU, F4E2M1FN, NV8E5M3FNU, Ptr, kCount
};
inline constexpr size_t kElementTypes = static_cast<size_t>(ElementType::kCount);

struct ElementInfo {
  std::string_view name;   ///< spelling in text
  uint8_t bits;            ///< width of the value: 1 for i1, 19 for tf32, 64 for pointers
  uint8_t storage;         ///< bytes an element takes in a tile of the interpreter: i1, i4, f4 take one byte each
  uint8_t memory_bits;     ///< bits an element takes in global memory: i1 8, tf32 32, f4 4; 0 = cannot be in memory (i4)
  uint8_t tag;             ///< type tag in tileirbc; 12 for pointers
  bool is_int, is_float;
  Version since;
};

inline constexpr std::array<ElementInfo, kElementTypes> kElementInfo = {{
    {"i1", 1, 1, 8, 0, true, false, v(13, 1)},
    {"i4", 4, 1, 0, 22, true, false, v(13, 3)},
    {"i8", 8, 1, 8, 1, true, false, v(13, 1)},
    {"i16", 16, 2, 16, 2, true, false, v(13, 1)},
    {"i32", 32, 4, 32, 3, true, false, v(13, 1)},
    {"i64", 64, 8, 64, 4, true, false, v(13, 1)},
    {"f16", 16, 2, 16, 5, false, true, v(13, 1)},
    {"bf16", 16, 2, 16, 6, false, true, v(13, 1)},
    {"f32", 32, 4, 32, 7, false, true, v(13, 1)},
    {"tf32", 19, 4, 32, 8, false, true, v(13, 1)},
    {"f64", 64, 8, 64, 9, false, true, v(13, 1)},
    {"f8E4M3FN", 8, 1, 8, 10, false, true, v(13, 1)},
    {"f8E5M2", 8, 1, 8, 11, false, true, v(13, 1)},
    {"f8E8M0FNU", 8, 1, 8, 18, false, true, v(13, 2)},
    {"f4E2M1FN", 4, 1, 4, 19, false, true, v(13, 3)},
    {"fnv8E5M3FNU", 8, 1, 8, 130, false, true, v(13, 4)},
    {"ptr", 64, 8, 64, 12, false, false, v(13, 1)},
}};

constexpr const ElementInfo& info(ElementType t) { return kElementInfo[static_cast<size_t>(t)]; }

/// A set of element types, for the operation table.
struct ElementSet {
  uint32_t bits = 0;
  constexpr bool has(ElementType t) const { return bits >> static_cast<unsigned>(t) & 1; }
  constexpr ElementSet operator|(ElementSet o) const { return {bits | o.bits}; }
  constexpr ElementSet operator-(ElementSet o) const { return {bits & ~o.bits}; }
  constexpr bool operator==(const ElementSet&) const = default;
};
constexpr ElementSet set_of(ElementType t) { return {1u << static_cast<unsigned>(t)}; }
template <class... T>
constexpr ElementSet set_of(ElementType first, T... rest) { return set_of(first) | set_of(rest...); }

// The sets that the reference names (spec/types.md).
inline constexpr ElementSet kInt = set_of(ElementType::I1, ElementType::I8, ElementType::I16, ElementType::I32, ElementType::I64);
inline constexpr ElementSet kInt4 = kInt | set_of(ElementType::I4);
inline constexpr ElementSet kBaseFloat = set_of(ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64);
inline constexpr ElementSet kAnyFloat =
    kBaseFloat | set_of(ElementType::TF32, ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F8E8M0FNU,
                        ElementType::F4E2M1FN, ElementType::NV8E5M3FNU);
inline constexpr ElementSet kNum = kInt | kAnyFloat;
inline constexpr ElementSet kPtr = set_of(ElementType::Ptr);
inline constexpr ElementSet kAny = kNum | kPtr | set_of(ElementType::I4);

}  // namespace tile
