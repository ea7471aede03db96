// Debug locations and scopes as aliases: `#file1 = ...` before the module, `#loc1 = ...` at the end of the file.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "vm/ir/module.h"

namespace tile {

class DebugAliases {
 public:
  /// Collects what the functions of `m` use, in the order of first use.
  explicit DebugAliases(const Module& m);

  [[nodiscard]] std::string scope_definitions() const;
  [[nodiscard]] std::string loc_definitions() const;
  /// ` loc(#loc3)` behind an operation; nothing for the unknown location.
  [[nodiscard]] std::string behind(LocId id) const;

 private:
  void add(LocId root);
  void add_scope(ScopeId root);
  [[nodiscard]] std::vector<LocId> children(LocId id) const;
  [[nodiscard]] std::vector<ScopeId> scope_children(ScopeId id) const;
  [[nodiscard]] std::string loc_name(LocId id) const;
  [[nodiscard]] std::string scope_name(ScopeId id) const;
  [[nodiscard]] std::string loc_text(LocId id) const;
  [[nodiscard]] std::string scope_text(ScopeId id) const;

  const Module& m_;
  std::unordered_map<LocId, uint32_t> loc_numbers_;
  std::unordered_map<ScopeId, std::string> scope_names_;
  std::vector<LocId> locs_;      // parts before what they are parts of
  std::vector<ScopeId> scopes_;  // likewise
  uint32_t counts_[4] = {};      // of scopes, by kind
};

}  // namespace tile
