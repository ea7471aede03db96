// Interning of debug locations and scopes.
#include "vm/ir/locations.h"

#include "vm/ir/hash_mix.h"

namespace tile {
namespace {

constexpr int kMaxChain = 64;  // tables are interned bottom-up, so chains are acyclic; this only bounds the walk

}  // namespace

LocId LocTable::add(Loc l) {
  uint64_t h = static_cast<uint64_t>(l.kind);
  for (uint64_t x : {l.file, l.line, l.column, l.end_line, l.end_column, l.scope, l.callee, l.caller}) h = mix(h, x);
  for (LocId p : l.parts) h = mix(h, p);
  const auto [first, last] = loc_index_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (locs_[it->second] == l) return it->second;
  const LocId id = static_cast<LocId>(locs_.size());
  locs_.push_back(std::move(l));
  loc_index_.emplace(h, id);
  return id;
}

ScopeId LocTable::add_scope(DebugScope s) {
  uint64_t h = static_cast<uint64_t>(s.kind);
  for (uint64_t x : {s.name, s.directory, s.linkage_name, s.file, s.scope, s.compile_unit, s.line, s.column, s.scope_line}) h = mix(h, x);
  const auto [first, last] = scope_index_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (scopes_[it->second] == s) return it->second;
  const ScopeId id = static_cast<ScopeId>(scopes_.size());
  scopes_.push_back(s);
  scope_index_.emplace(h, id);
  return id;
}

LocId LocTable::line_of(LocId id) const {
  for (int i = 0; i < kMaxChain && id < locs_.size(); ++i) {
    const Loc& l = locs_[id];
    switch (l.kind) {
      case Loc::Kind::FileLineCol:
      case Loc::Kind::Scoped: return id;
      case Loc::Kind::CallSite:
      case Loc::Kind::Named: id = l.callee; break;
      case Loc::Kind::Fused: id = l.parts.empty() ? kNone : l.parts[0]; break;
      case Loc::Kind::Unknown: return kNone;
    }
  }
  return kNone;
}

ScopeId LocTable::scope_of(LocId id) const {
  constexpr int kMaxVisits = 4096;
  std::vector<LocId> pending{id};  // depth first, the first part on top
  for (int visits = 0; visits < kMaxVisits && !pending.empty(); ++visits) {
    const LocId at = pending.back();
    pending.pop_back();
    if (at >= locs_.size()) continue;
    const Loc& l = locs_[at];
    switch (l.kind) {
      case Loc::Kind::Scoped: return l.scope;
      case Loc::Kind::CallSite: pending.push_back(l.caller); break;
      case Loc::Kind::Named: pending.push_back(l.callee); break;
      case Loc::Kind::Fused: pending.insert(pending.end(), l.parts.rbegin(), l.parts.rend()); break;
      default: break;
    }
  }
  return kNone;
}

ScopeId LocTable::subprogram_of(ScopeId scope) const {
  for (int i = 0; i < kMaxChain && scope < scopes_.size(); ++i) {
    if (scopes_[scope].kind == DebugScope::Kind::Subprogram) return scope;
    if (scopes_[scope].kind != DebugScope::Kind::LexicalBlock) return kNone;
    scope = scopes_[scope].scope;
  }
  return kNone;
}

}  // namespace tile
