// Debug records and the section that holds them.
#include "assembler/tileirbc/writer.h"

namespace tile::tileirbc {

/// 0, or 1 + the index of the location's record. Names and fusions have no record: what they name, or their first known
/// part, stands for them.
uint64_t Writer::location(LocId id) {
  if (id == kUnknownLoc || id == kNone) return 0;
  if (location_ref_[id] != kUnwritten) return location_ref_[id];
  const Loc& l = m_.locs.get(id);
  uint64_t reference = 0;
  Bytes record;
  switch (l.kind) {
    case Loc::Kind::Unknown:
      break;
    case Loc::Kind::Named:
      reference = location(l.callee);
      break;
    case Loc::Kind::Fused:
      for (size_t i = 0; i < l.parts.size() && reference == 0; ++i) reference = location(l.parts[i]);
      break;
    case Loc::Kind::FileLineCol:
      // NVIDIA's reader takes no location without a scope. A file that had some anyway keeps them.
      if (!follows_) {
        if (!warned_of_locations_) diags_.warn(place(), "locations without a scope are left out: readers reject them");
        warned_of_locations_ = true;
        break;
      }
      [[fallthrough]];
    case Loc::Kind::Scoped: {
      const uint64_t in = scope(l.scope);
      record.tag(DebugTag::Location);
      record.varint(in);
      record.varint(any_string(l.file));
      record.varint(l.line);
      record.varint(l.column);
      break;
    }
    case Loc::Kind::CallSite: {
      const uint64_t callee = location(l.callee), caller = location(l.caller);
      record.tag(DebugTag::CallSite);
      record.varint(callee);
      record.varint(caller);
      break;
    }
  }
  // Locations of the module differ, and so do their records where nothing is lost and no given record can be equal.
  const bool unique = l.kind == Loc::Kind::Scoped && l.end_line == 0 && l.end_column == 0 && !follows_;
  if (record.size() != 0)
    reference = 1 + uint64_t{unique ? debug_.add_unique(record.view()) : debug_.add(record.view())};
  return location_ref_[id] = reference;
}

uint64_t Writer::scope(ScopeId id) {
  if (id == kNone) return 0;
  if (const auto it = scope_ref_.find(id); it != scope_ref_.end()) return it->second;
  const DebugScope& s = m_.locs.scope(id);
  Bytes record;
  switch (s.kind) {
    case DebugScope::Kind::File:
      record.tag(DebugTag::File);
      record.varint(any_string(s.name));
      record.varint(any_string(s.directory));
      break;
    case DebugScope::Kind::CompileUnit: {
      const uint64_t file = scope(s.file);
      record.tag(DebugTag::CompileUnit);
      record.varint(file);
      break;
    }
    case DebugScope::Kind::LexicalBlock: {
      const uint64_t outer = scope(s.scope), file = scope(s.file);
      record.tag(DebugTag::LexicalBlock);
      record.varint(outer);
      record.varint(file);
      record.varint(s.line);
      record.varint(s.column);
      break;
    }
    case DebugScope::Kind::Subprogram: {
      const uint64_t file = scope(s.file), unit = scope(s.compile_unit);
      record.tag(DebugTag::Subprogram);
      record.varint(file);
      record.varint(s.line);
      record.varint(any_string(s.name));
      record.varint(any_string(s.linkage_name));
      record.varint(unit);
      record.varint(s.scope_line);
      if (target_ >= kSinceArgAttrs) record.varint(0);
      break;
    }
  }
  const uint64_t reference = 1 + uint64_t{debug_.add(record.view())};
  scope_ref_.emplace(id, reference);
  return reference;
}

void Writer::write_debug(Bytes& out) {
  place_other_lists();
  const uint8_t padding = layout_->padding;
  out.varint(debug_lists_.size());
  out.align(4, padding);
  uint64_t slots = 0;
  for (const auto& list : debug_lists_) {
    out.fixed(slots, 4);
    slots += list.size();
  }
  out.varint(slots);
  out.align(8, padding);
  for (const auto& list : debug_lists_)
    for (uint64_t reference : list) out.fixed(reference, 8);
  // Readers fail on an empty table; one record of an unknown location does no harm.
  if (debug_.empty()) (void)debug_.add({"", 1});
  // The padding inside the table counts from the start of the section, of which `out` is a multiple of 8 here.
  Bytes table;
  debug_.write(table, 4, padding);
  out.append(table);
}

}  // namespace tile::tileirbc
