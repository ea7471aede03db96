// What a row of the operation table can say. No row is here; see rows_*.inc.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "vm/base/element_type.h"
#include "vm/ops/opcode.h"

namespace tile {

/// A list of at most N items that a constexpr row can hold.
template <class T, size_t N>
class List {
 public:
  constexpr List() = default;
  constexpr List(std::initializer_list<T> items) {
    for (const T& item : items) items_[size_++] = item;
  }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return items_[i]; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }

 private:
  T items_[N]{};
  uint8_t size_ = 0;
};

enum class Arity : uint8_t { One, Optional, Variadic };

/// What kind of value a position takes.
enum class ValueKind : uint8_t {
  Tile,        ///< tile of any rank
  Scalar,      ///< tile of rank 0
  TensorView,
  View,        ///< partition, strided or gather/scatter view
  TileOrView,  ///< tile or tensor_view (assume)
  Token,
  Any,         ///< tiles and tokens; what control flow carries
};

struct OperandDef {
  std::string_view name;
  ElementSet elements = kAny;  ///< for tiles and tensor views
  Arity arity = Arity::One;
  ValueKind kind = ValueKind::Tile;
  Version since = v(13, 1);
};
using ResultDef = OperandDef;

enum class AttrKind : uint8_t {
  Unit, Enum, Int, Bool, String, Symbol, Dense, I32Array, BoolArray, AttrArray, Hints, Predicate
};

/// The enumerations of Tile IR; encodings and spellings in enums.h.
enum class EnumKind : uint8_t {
  None, Signedness, Overflow, Rounding, Predicate, Ordering, RmwMode, Scope, MemoryOrdering, Padding, Visibility, PtrAttr, MultimemKind
};

inline constexpr int64_t kRequired = INT64_MIN;  ///< the attribute has no default

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::Unit;
  EnumKind enum_kind = EnumKind::None;
  int64_t def = kRequired;     ///< default of enums, ints and bools
  uint32_t allowed = ~0u;      ///< enums: bit set of legal values
  bool optional = false;       ///< may be absent, which is no value of its own (a flag bit in tileirbc)
  Version since = v(13, 1);    ///< older files have no field and the default
  uint8_t int_bits = 64;       ///< width of Int attributes
};

/// Type relations between positions, named as in the row. Positions are operands and results.
enum class RuleKind : uint8_t {
  SameType,      ///< all named values have one type
  SameShape,     ///< all named tiles have one shape (views: the shape of the tile they select)
  SameElement,   ///< all named tiles have one element type
  PointeeOf,     ///< first is a tile of pointers whose pointee is the element of the second, shapes equal
  WiderThan,     ///< element of the second is wider than that of the first
  SameBits,      ///< element widths are equal
  SameCount,     ///< element counts are equal
  SplatTo,       ///< same rank, each extent of the first is 1 or that of the second
  DifferentType, ///< element types differ
  ViewTile,      ///< first is a view, the second the tile that it selects
  // Of the whole operation, without positions. Each is shared by operations of a kind.
  FloatModifiers,   ///< approx, full and flush_to_zero need f32
  HandsOver,        ///< a terminator gives what its parent takes; return nothing
  Combines,         ///< operands, results, identities and body of a reduction belong together
  Slices,           ///< the smaller tile is one of the equal parts of the larger one, which the indices name
  PackedBits,       ///< vectors of equally many bits, of different widths
  Product,          ///< M x K, K x N and M x N, and the accumulator's element type for that of the sides
  SeveralTokens,    ///< two or more
  NotMulticast,     ///< pointers or view are not multicast
  Multicast,        ///< a partition view of multicast memory, its indices, and the reduction for its element type
  ModeFitsElement,  ///< the mode of an atomic operation is one for its element type
  MakesView,        ///< the result is a view of the operation's kind, of the operand
  OnePerDimension,  ///< as many results as dimensions, of one type
  Indices,          ///< an index for each dimension of the view
  Special,          ///< a hand-written rule of this operation alone
};
/// Whether a rule says something of positions that it names.
[[nodiscard]] constexpr bool between_positions(RuleKind kind) { return kind < RuleKind::FloatModifiers; }
struct Rule {
  RuleKind kind = RuleKind::SameType;
  List<std::string_view, 5> at;
};

enum class Effect : uint8_t { Pure, NotSpeculatable, Read, Write, ReadWrite, Token, Control, Symbol };

/// How exactly a result is fixed by the language; decides how two machines are compared.
enum class Tolerance : uint8_t { Exact, Ulp, Sum, None };

struct OpDef {
  uint16_t code = 0;
  std::string_view name;                 ///< mnemonic in text
  std::string_view alias = {};           ///< other accepted mnemonic
  Version since = v(13, 1);
  std::string_view summary = {};         ///< one sentence
  std::string_view semantics = {};       ///< the precise rule, in the words of spec/semantics.md
  List<OperandDef, 6> operands = {};
  List<AttrDef, 6> attrs = {};
  List<ResultDef, 3> results = {};
  List<Rule, 5> rules = {};
  uint8_t regions = 0;
  bool terminator = false;
  bool in_reduce = false;                ///< legal inside the body of reduce and scan (13.3 rule)
  Effect effect = Effect::Pure;
  Tolerance tolerance = Tolerance::Exact;
  std::string_view format = {};          ///< text form after the mnemonic; grammar in assembler/format.h
};

}  // namespace tile
