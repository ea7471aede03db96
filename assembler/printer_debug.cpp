// Collects and spells debug locations.
#include "assembler/printer_debug.h"

#include "assembler/printer_values.h"

namespace tile {
namespace {

using Kind = Loc::Kind;
using ScopeKind = DebugScope::Kind;

// Visits a graph whose edges lead to smaller numbers, parts first. No recursion: chains are as long as the input likes.
template <class Children, class Visit>
void post_order(uint32_t root, Children children, Visit visit) {
  struct Open {
    uint32_t id;
    std::vector<uint32_t> parts;
    size_t next;
  };
  std::vector<Open> open;
  open.push_back({root, children(root), 0});
  while (!open.empty()) {
    Open& o = open.back();
    if (o.next < o.parts.size()) {
      const uint32_t part = o.parts[o.next++];
      open.push_back({part, children(part), 0});
    } else {
      visit(o.id);
      open.pop_back();
    }
  }
}

std::string quoted(const Module& m, StringId id) {
  std::string out;
  put_string(out, id < m.strings.size() ? m.strings.get(id) : std::string_view());
  return out;
}

}  // namespace

DebugAliases::DebugAliases(const Module& m) : m_(m) {
  for (const Function& f : m.functions) {
    add(f.loc);
    for (const Inst& i : f.insts) add(i.loc);
  }
  for (const LocId id : locs_)
    if (m.locs.get(id).kind == Kind::Scoped) add_scope(m.locs.get(id).scope);
}

void DebugAliases::add(LocId root) {
  if (root >= m_.locs.size() || m_.locs.get(root).kind == Kind::Unknown || loc_numbers_.contains(root)) return;
  post_order(
      root, [this](LocId id) { return children(id); },
      [this](LocId id) {
        if (!loc_numbers_.try_emplace(id, static_cast<uint32_t>(locs_.size() + 1)).second) return;
        locs_.push_back(id);
      });
}

void DebugAliases::add_scope(ScopeId root) {
  if (root >= m_.locs.scope_count() || scope_names_.contains(root)) return;
  static constexpr const char* kNames[] = {"#file", "#unit", "#block", "#subprogram"};
  post_order(
      root, [this](ScopeId id) { return scope_children(id); },
      [this](ScopeId id) {
        if (scope_names_.contains(id)) return;
        const auto kind = static_cast<size_t>(m_.locs.scope(id).kind);
        scope_names_[id] = kNames[kind] + std::to_string(++counts_[kind]);
        scopes_.push_back(id);
      });
}

// Only what is not numbered yet, and only what stands earlier in the table, so that a walk ends.
std::vector<LocId> DebugAliases::children(LocId id) const {
  std::vector<LocId> found;
  if (loc_numbers_.contains(id)) return found;
  const Loc& l = m_.locs.get(id);
  const auto part = [&](LocId p) {
    if (p < id && m_.locs.get(p).kind != Kind::Unknown && !loc_numbers_.contains(p)) found.push_back(p);
  };
  part(l.callee);
  part(l.caller);
  for (const LocId p : l.parts) part(p);
  return found;
}

std::vector<ScopeId> DebugAliases::scope_children(ScopeId id) const {
  std::vector<ScopeId> found;
  if (scope_names_.contains(id)) return found;
  const DebugScope& s = m_.locs.scope(id);
  for (const ScopeId p : {s.file, s.compile_unit, s.scope})
    if (p < id && !scope_names_.contains(p)) found.push_back(p);
  return found;
}

std::string DebugAliases::loc_name(LocId id) const {
  const auto it = loc_numbers_.find(id);
  return it == loc_numbers_.end() ? "unknown" : "#loc" + std::to_string(it->second);
}

std::string DebugAliases::scope_name(ScopeId id) const {
  const auto it = scope_names_.find(id);
  return it == scope_names_.end() ? "unit" : it->second;
}

std::string DebugAliases::behind(LocId id) const {
  return loc_numbers_.contains(id) ? " loc(" + loc_name(id) + ")" : std::string();
}

std::string DebugAliases::loc_text(LocId id) const {
  const Loc& l = m_.locs.get(id);
  const std::string point = quoted(m_, l.file) + ":" + std::to_string(l.line) + ":" + std::to_string(l.column);
  switch (l.kind) {
    case Kind::Unknown:
      return "loc(unknown)";
    case Kind::FileLineCol:
      if (l.end_line == 0 && l.end_column == 0) return "loc(" + point + ")";
      return "loc(" + point + " to " + std::to_string(l.end_line) + ":" + std::to_string(l.end_column) + ")";
    case Kind::Scoped:
      return "#cuda_tile.di_loc<loc(" + point + ") in " + scope_name(l.scope) + ">";
    case Kind::CallSite:
      return "loc(callsite(" + loc_name(l.callee) + " at " + loc_name(l.caller) + "))";
    case Kind::Named:
      return "loc(" + quoted(m_, l.file) + (l.callee == kNone ? "" : "(" + loc_name(l.callee) + ")") + ")";
    case Kind::Fused: {
      std::string out = "loc(fused[";
      for (size_t i = 0; i < l.parts.size(); ++i) out += (i ? ", " : "") + loc_name(l.parts[i]);
      return out + "])";
    }
  }
  return "loc(unknown)";
}

std::string DebugAliases::scope_text(ScopeId id) const {
  const DebugScope& s = m_.locs.scope(id);
  const auto number = [](const char* field, uint32_t value) { return std::string(field) + std::to_string(value); };
  switch (s.kind) {
    case ScopeKind::File:
      return "#cuda_tile.di_file<" + quoted(m_, s.name) + " in " + quoted(m_, s.directory) + ">";
    case ScopeKind::CompileUnit:
      return "#cuda_tile.di_compile_unit<file = " + scope_name(s.file) + ">";
    case ScopeKind::LexicalBlock:
      return "#cuda_tile.di_lexical_block<scope = " + scope_name(s.scope) + ", file = " + scope_name(s.file) +
             number(", line = ", s.line) + (s.column ? number(", column = ", s.column) : "") + ">";
    case ScopeKind::Subprogram:
      return "#cuda_tile.di_subprogram<file = " + scope_name(s.file) + number(", line = ", s.line) +
             ", name = " + quoted(m_, s.name) + ", linkageName = " + quoted(m_, s.linkage_name) +
             ", compileUnit = " + scope_name(s.compile_unit) +
             (s.scope_line ? number(", scopeLine = ", s.scope_line) : "") + ">";
  }
  return "unit";
}

std::string DebugAliases::scope_definitions() const {
  std::string out;
  for (const ScopeId id : scopes_) out += scope_name(id) + " = " + scope_text(id) + "\n";
  return out;
}

std::string DebugAliases::loc_definitions() const {
  std::string out;
  for (const LocId id : locs_) out += loc_name(id) + " = " + loc_text(id) + "\n";
  return out;
}

}  // namespace tile
