// Rules for debug scopes: which subprogram an entry and its operations may name. Source: spec/text.md "Locations".
#include "vm/validate/checker.h"

namespace tile::validation {

// Parts stand before what is made of them, so one pass in ascending order finds the scope of every location; walking
// down from each operation would visit shared parts again and again.
void Checker::scan_scopes() {
  loc_scope_.assign(m.locs.size(), kNone);
  for (LocId id = 0; id < m.locs.size(); ++id) {
    const Loc& l = m.locs.get(id);
    const auto of = [&](LocId part) { return part < id ? loc_scope_[part] : kNone; };
    switch (l.kind) {
      case Loc::Kind::Scoped:
        loc_scope_[id] = l.scope < m.locs.scope_count() ? l.scope : kNone;
        break;
      case Loc::Kind::CallSite:
        loc_scope_[id] = of(l.caller);
        break;
      case Loc::Kind::Named:
        loc_scope_[id] = of(l.callee);
        break;
      case Loc::Kind::Fused:
        for (size_t i = 0; i < l.parts.size() && loc_scope_[id] == kNone; ++i) loc_scope_[id] = of(l.parts[i]);
        break;
      case Loc::Kind::Unknown:
      case Loc::Kind::FileLineCol:
        break;
    }
  }
  subprogram_.assign(m.locs.scope_count(), kNone);
  for (ScopeId id = 0; id < m.locs.scope_count(); ++id) {
    const DebugScope& s = m.locs.scope(id);
    if (s.kind == DebugScope::Kind::Subprogram) subprogram_[id] = id;
    if (s.kind == DebugScope::Kind::LexicalBlock && s.scope < id) subprogram_[id] = subprogram_[s.scope];
  }
}

void Checker::check_entry_scope(const Function& fn) {
  scope_reported_ = false;
  entry_scope_ = fn.loc < loc_scope_.size() ? loc_scope_[fn.loc] : kNone;
  const auto fail = [&](const std::string& what) {
    diags.error(Code::E0706, m.place(fn), "entry @" + std::string(m.str(fn.name)) + ": " + what);
    scope_reported_ = true;  // what its operations say about scopes would only follow
  };
  if (fn.loc < m.locs.size() && m.locs.get(fn.loc).kind == Loc::Kind::CallSite)
    return fail("its location is a call site, expected a place in a file");
  if (entry_scope_ == kNone) return;
  const DebugScope& scope = m.locs.scope(entry_scope_);
  if (scope.kind != DebugScope::Kind::Subprogram) return fail("its debug scope is not a subprogram");
  if (m.str(scope.linkage_name) != m.str(fn.name))
    return fail("its subprogram has the linkage name \"" + std::string(m.str(scope.linkage_name)) + "\", expected \"" +
                std::string(m.str(fn.name)) + "\"");
}

// At most one report an entry: the others would say the same.
void Checker::check_scope(InstId i) {
  const LocId loc = f->insts[i].loc;
  if (scope_reported_ || loc >= loc_scope_.size() || loc_scope_[loc] == kNone) return;
  const ScopeId subprogram = subprogram_[loc_scope_[loc]];
  if (entry_scope_ != kNone && subprogram == entry_scope_) return;
  scope_reported_ = true;
  if (entry_scope_ == kNone)
    diags.error(Code::E0706, m.place(*f, i),
                name() + ": it has a debug scope, but entry @" + std::string(m.str(f->name)) + " has none");
  else if (subprogram == kNone)
    diags.error(Code::E0706, m.place(*f, i), name() + ": its debug scope is in no subprogram");
  else
    diags.error(Code::E0706, m.place(*f, i),
                name() + ": its debug scope belongs to subprogram \"" +
                    std::string(m.str(m.locs.scope(subprogram).linkage_name)) + "\", expected \"" +
                    std::string(m.str(f->name)) + "\"");
}

}  // namespace tile::validation
