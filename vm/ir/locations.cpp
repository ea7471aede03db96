// Interning of debug locations and scopes.
#include "vm/ir/locations.h"

#include "vm/ir/hash_mix.h"

namespace tile {
namespace {

constexpr int kMaxChain = 64;  // tables are interned bottom-up, so chains are acyclic; this only bounds the walk

}  // namespace

LocId LocTable::add(Loc l) {
  const auto pair = [](uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; };
  uint64_t h = mix(loc_index_.seed(), pair(l.file, l.line));
  h = mix(h, pair(l.column, static_cast<uint32_t>(l.kind)));
  h = mix(mix(h, pair(l.end_line, l.end_column)), pair(l.scope, l.callee));
  h = mix(h, l.caller);
  for (LocId p : l.parts) h = mix(h, p);
  const LocId next = static_cast<LocId>(locs_.size());
  const LocId known = loc_index_.find_or_add(h, next, [&](LocId id) { return locs_[id] == l; });
  if (known != kNone) return known;
  locs_.push_back(std::move(l));
  return next;
}

ScopeId LocTable::add_scope(DebugScope s) {
  uint64_t h = mix(scope_index_.seed(), static_cast<uint64_t>(s.kind));
  for (uint64_t x : {s.name, s.directory, s.linkage_name, s.file, s.scope, s.compile_unit, s.line, s.column, s.scope_line}) h = mix(h, x);
  const ScopeId next = static_cast<ScopeId>(scopes_.size());
  const ScopeId known = scope_index_.find_or_add(h, next, [&](ScopeId id) { return scopes_[id] == s; });
  if (known != kNone) return known;
  scopes_.push_back(s);
  return next;
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
