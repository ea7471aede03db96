// Debug scopes and locations of tilebc. Records name earlier records only; only the fields that a kind has are read.
#include <algorithm>
#include <initializer_list>

#include "vm/codec/decoder.h"

namespace tile {

using ScopeKind = DebugScope::Kind;
using LocKind = Loc::Kind;

bool TilebcDecoder::scopes() {
  const auto* all = root_.scopes();
  for (uint32_t i = 0; all && i < all->size(); ++i)
    if (!scope_record(*all->Get(i), i)) return false;
  return true;
}

bool TilebcDecoder::scope_record(const bc::Scope& s, uint32_t index) {
  if (s.kind() > static_cast<uint8_t>(ScopeKind::Subprogram))
    return record_fault(Code::E0205, "scope", index, "unknown kind " + std::to_string(s.kind()));
  if (!charge(sizeof(DebugScope))) return false;
  DebugScope out;
  out.kind = static_cast<ScopeKind>(s.kind());
  uint16_t depth = 1;
  const auto part = [&](uint32_t i, const char* what, std::initializer_list<ScopeKind> kinds, ScopeId& id) {
    if (!find(i, scope_ids_, "scope", id, true)) return false;
    if (id == kNone) return true;
    depth = std::max(depth, static_cast<uint16_t>(scope_depth_[i] + 1));
    if (std::find(kinds.begin(), kinds.end(), m_.locs.scope(id).kind) != kinds.end()) return true;
    return record_fault(Code::E0205, "scope", index,
                        std::string("its ") + what + " is scope " + std::to_string(i) + ", which is of another kind");
  };
  if (out.kind == ScopeKind::File) {
    if (!string(s.name(), "string", out.name, true) || !string(s.directory(), "string", out.directory, true))
      return false;
  } else if (!part(s.file(), "file", {ScopeKind::File}, out.file)) {
    return false;
  }
  if (out.kind == ScopeKind::LexicalBlock) {
    if (!part(s.scope(), "scope", {ScopeKind::LexicalBlock, ScopeKind::Subprogram}, out.scope)) return false;
    out.column = s.column();
  }
  if (out.kind == ScopeKind::Subprogram) {
    if (!part(s.compile_unit(), "compile unit", {ScopeKind::CompileUnit}, out.compile_unit) ||
        !string(s.name(), "string", out.name, true) || !string(s.linkage_name(), "string", out.linkage_name, true))
      return false;
    out.scope_line = s.scope_line();
  }
  if (out.kind == ScopeKind::LexicalBlock || out.kind == ScopeKind::Subprogram) out.line = s.line();
  if (!nested(depth, "debug scopes")) return false;
  scope_depth_.push_back(depth);
  scope_ids_.push_back(m_.locs.add_scope(out));
  return true;
}

bool TilebcDecoder::locs() {
  const auto* all = root_.locs();
  for (uint32_t i = 0; all && i < all->size(); ++i)
    if (!loc_record(*all->Get(i), i)) return false;
  if (loc_ids_.empty()) loc_ids_.push_back(kUnknownLoc);
  return true;
}

bool TilebcDecoder::loc_record(const bc::Loc& l, uint32_t index) {
  if (l.kind() > static_cast<uint8_t>(LocKind::Fused))
    return record_fault(Code::E0205, "location", index, "unknown kind " + std::to_string(l.kind()));
  if (index == 0 && l.kind() != 0)
    return record_fault(Code::E0205, "location", index, "it is not the unknown location");
  if (!charge(sizeof(Loc)) || !charge_vector(l.parts(), 4)) return false;
  Loc out;
  out.kind = static_cast<LocKind>(l.kind());
  uint16_t depth = 1;
  uint64_t stands_for = 1;
  const auto part = [&](uint32_t i, LocId& id, bool optional = false) {
    if (!find(i, loc_ids_, "location", id, optional)) return false;
    if (id == kNone) return true;
    depth = std::max(depth, static_cast<uint16_t>(loc_depth_[i] + 1));
    stands_for =
        out.kind == LocKind::Fused ? stands_for + loc_parts_[i] : std::max<uint64_t>(stands_for, loc_parts_[i]);
    return true;
  };
  const bool point = out.kind == LocKind::FileLineCol || out.kind == LocKind::Scoped;
  if ((point || out.kind == LocKind::Named) && !string(l.file(), "string", out.file)) return false;
  if (point) {
    out.line = l.line();
    out.column = l.column();
  }
  switch (out.kind) {
    case LocKind::Unknown:
      break;
    case LocKind::FileLineCol:
      out.end_line = l.end_line();
      out.end_column = l.end_column();
      break;
    case LocKind::Scoped:
      if (!find(l.scope(), scope_ids_, "scope", out.scope)) return false;
      if (const ScopeKind k = m_.locs.scope(out.scope).kind; k != ScopeKind::LexicalBlock && k != ScopeKind::Subprogram)
        return record_fault(Code::E0205, "location", index,
                            "its scope is scope " + std::to_string(l.scope()) + ", which is of another kind");
      break;
    case LocKind::CallSite:
      if (!part(l.callee(), out.callee) || !part(l.caller(), out.caller)) return false;
      break;
    case LocKind::Named:
      if (!part(l.callee(), out.callee, true)) return false;
      break;
    case LocKind::Fused:
      for (uint32_t k = 0; l.parts() && k < l.parts()->size(); ++k)
        if (!part(l.parts()->Get(k), out.parts.emplace_back())) return false;
      break;
  }
  if (!nested(depth, "locations")) return false;
  if (stands_for > kMaxTilebcFused)
    return fail(Code::L0102, "location " + std::to_string(index) + " stands for more than " +
                                 std::to_string(kMaxTilebcFused) + " others");
  loc_depth_.push_back(depth);
  loc_parts_.push_back(static_cast<uint32_t>(stands_for));
  loc_ids_.push_back(m_.locs.add(std::move(out)));
  return true;
}

}  // namespace tile
