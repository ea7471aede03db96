// Debug locations and scopes of a module, interned. They say where a frontend's source line is, never where tileasm's input is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "vm/ir/hash_index.h"
#include "vm/ir/ids.h"

namespace tile {

using ScopeId = uint32_t;

/// A debug scope or file record.
struct DebugScope {
  enum class Kind : uint8_t { File, CompileUnit, LexicalBlock, Subprogram } kind = Kind::File;
  StringId name = kNone;            ///< File: file name. Subprogram: name
  StringId directory = kNone;       ///< File
  StringId linkage_name = kNone;    ///< Subprogram
  ScopeId file = kNone;             ///< CompileUnit, LexicalBlock, Subprogram: a File
  ScopeId scope = kNone;            ///< LexicalBlock: enclosing block or subprogram
  ScopeId compile_unit = kNone;     ///< Subprogram
  uint32_t line = 0, column = 0;    ///< LexicalBlock both, Subprogram line
  uint32_t scope_line = 0;          ///< Subprogram
  bool operator==(const DebugScope&) const = default;
};

/// A location. Id 0 of the table is always the unknown location.
struct Loc {
  enum class Kind : uint8_t { Unknown, FileLineCol, Scoped, CallSite, Named, Fused } kind = Kind::Unknown;
  StringId file = kNone;            ///< FileLineCol, Scoped: file name. Named: the name
  uint32_t line = 0, column = 0;
  uint32_t end_line = 0, end_column = 0;  ///< FileLineCol with a range; 0 = none
  ScopeId scope = kNone;            ///< Scoped
  LocId callee = kNone;             ///< CallSite; Named: the location named, or kNone
  LocId caller = kNone;             ///< CallSite
  std::vector<LocId> parts;         ///< Fused
  bool operator==(const Loc&) const = default;
};

class LocTable {
 public:
  LocTable() { (void)add(Loc{}); }
  LocId add(Loc l);
  ScopeId add_scope(DebugScope s);
  [[nodiscard]] const Loc& get(LocId id) const { return locs_[id]; }
  [[nodiscard]] const DebugScope& scope(ScopeId id) const { return scopes_[id]; }
  [[nodiscard]] size_t size() const { return locs_.size(); }
  [[nodiscard]] size_t scope_count() const { return scopes_.size(); }
  /// The innermost FileLineCol or Scoped location of `id`, following callee, name and first fused part; kNone if unknown.
  [[nodiscard]] LocId line_of(LocId id) const;
  /// Scope of a location: through names, fused parts (first hit) and the caller of call sites; kNone if it has none, or if none of the
  /// first 4096 locations met has one (parts may be shared without bound).
  [[nodiscard]] ScopeId scope_of(LocId id) const;
  /// The subprogram around a scope; kNone if there is none.
  [[nodiscard]] ScopeId subprogram_of(ScopeId scope) const;

 private:
  std::deque<Loc> locs_;
  std::deque<DebugScope> scopes_;
  HashIndex loc_index_, scope_index_;
};

inline constexpr LocId kUnknownLoc = 0;

}  // namespace tile
