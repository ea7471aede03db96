// Debug information of tileirbc: lists of locations by function, and the records that they name.
#include <algorithm>
#include <limits>

#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {

using ScopeKind = DebugScope::Kind;

bool Reader::read_debug() {
  context_.function.clear();
  context_.instruction = -1;
  context_.op = {};
  if (std::all_of(debug_lists_.begin(), debug_lists_.end(), [](uint64_t l) { return l == 0; })) return true;
  if (!find_debug()) return false;
  for (size_t i = 0; i < module_.functions.size(); ++i) {
    Function& f = module_.functions[i];
    if (debug_lists_[i] == 0) continue;
    context_.function = module_.str(f.name);
    context_.instruction = -1;
    if (!attempt("the other locations of the function are not decoded",
                 [&] { return locations(f, debug_lists_[i]); })) {
      return false;
    }
  }
  return true;
}

bool Reader::find_debug() {
  DebugInfo& d = debug_;
  if (!sections_[static_cast<size_t>(Section::Debug)].present) {
    return fail(Code::E0118, bytes_.size() - 1, "a function has locations, but there is no debug section");
  }
  Cursor c = payload(Section::Debug);
  const size_t origin = c.pos();
  if (!c.varint(d.lists, "the number of location lists") || !c.align(4, origin, "the starts of the location lists"))
    return false;
  if (d.lists > c.left() / 4)
    return fail(Code::E0106, origin, std::to_string(d.lists) + " location lists do not fit the debug section");
  d.starts_at = c.take(static_cast<size_t>(d.lists) * 4).pos();
  const size_t at = c.pos();
  if (!c.varint(d.slots, "the number of locations") || !c.align(8, origin, "the locations")) return false;
  if (d.slots > c.left() / 8)
    return fail(Code::E0106, at, std::to_string(d.slots) + " locations do not fit the debug section");
  d.slots_at = c.take(static_cast<size_t>(d.slots) * 8).pos();
  const size_t table_at = c.pos();
  if (!read_table(c, origin, Section::Debug, 4, d.table)) return false;
  if (d.table.count == 0) return fail(Code::E0106, table_at, "the debug table has no records");
  d.records.resize(static_cast<size_t>(d.table.count));
  d.found = true;
  return true;
}

/// Slots of a location list.
bool Reader::list_bounds(uint64_t list, uint64_t& start, uint64_t& end) {
  const DebugInfo& d = debug_;
  const Cursor c = payload(Section::Debug);
  const size_t start_at = d.starts_at + static_cast<size_t>(list) * 4;
  start = c.load(start_at, 4);
  end = list + 1 < d.lists ? c.load(start_at + 4, 4) : d.slots;
  return (start <= end && end <= d.slots) ||
         fail(Code::E0118, start_at, "location list " + std::to_string(list) + " lies outside the locations");
}

bool Reader::locations(Function& f, uint64_t list) {
  const DebugInfo& d = debug_;
  if (list > d.lists) {
    return fail(Code::E0118, d.starts_at,
                "location list " + std::to_string(list - 1) + ", but there are only " + std::to_string(d.lists));
  }
  uint64_t start, end;
  if (!list_bounds(list - 1, start, end)) return false;
  const size_t start_at = d.starts_at + static_cast<size_t>(list - 1) * 4;
  const Cursor c = payload(Section::Debug);
  if (end - start < f.insts.size() + 1) {
    return fail(Code::E0118, start_at,
                "location list " + std::to_string(list - 1) + " has " + std::to_string(end - start) +
                    " locations, expected one for the function and " + std::to_string(f.insts.size()) +
                    " for its operations");
  }
  for (size_t i = 0; i <= f.insts.size(); ++i) {
    const size_t at = d.slots_at + (static_cast<size_t>(start) + i) * 8;
    LocId& out = i == 0 ? f.loc : f.insts[i - 1].loc;
    context_.instruction = static_cast<int64_t>(i) - 1;
    if (!location(c.load(at, 8), at, out, 0)) return false;
  }
  return true;
}

/// The location that a slot or a field refers to: 0 is unknown, else 1 + the index of a record.
bool Reader::location(uint64_t reference, size_t at, LocId& out, int depth) {
  out = kUnknownLoc;
  if (reference == 0) return true;
  Record r;
  if (!debug_record(reference - 1, at, r, depth)) return false;
  if (r.state == RecordState::Scope) {
    return fail(Code::E0118, at,
                "debug record " + std::to_string(reference - 1) + " is a scope or a file, expected a location");
  }
  if (r.state == RecordState::Location) out = r.id;
  return true;
}

bool Reader::debug_record(uint64_t index, size_t at, Record& out, int depth) {
  if (index >= debug_.table.count) {
    return fail(Code::E0118, at,
                "debug record " + std::to_string(index) + ", but there are only " + std::to_string(debug_.table.count));
  }
  Record& r = debug_.records[static_cast<size_t>(index)];
  if (r.state == RecordState::Active)
    return fail(Code::E0118, at, "debug record " + std::to_string(index) + " contains itself");
  if (r.state == RecordState::New) {
    if (depth >= kMaxDebugNesting)
      return fail(Code::L0102, at, "debug records nest more than " + std::to_string(kMaxDebugNesting) + " levels deep");
    r.state = RecordState::Active;
    Record found;
    if (!decode_debug(record(debug_.table, index), found, depth + 1)) return false;
    r = found;
  }
  out = r;
  return true;
}

bool Reader::scope_ref(Cursor& c, std::span<const ScopeKind> kinds, const char* what, ScopeId& out, int depth) {
  const size_t at = c.pos();
  uint64_t reference;
  if (!c.varint(reference, what)) return false;
  out = kNone;
  if (reference == 0) return true;
  Record r;
  if (!debug_record(reference - 1, at, r, depth)) return false;
  const bool fits = r.state == RecordState::Scope &&
                    std::find(kinds.begin(), kinds.end(), module_.locs.scope(r.id).kind) != kinds.end();
  if (!fits)
    return fail(Code::E0118, at,
                std::string(what) + " is debug record " + std::to_string(reference - 1) + ", which is of another kind");
  out = r.id;
  return true;
}

bool Reader::decode_debug(Cursor c, Record& out, int depth) {
  static constexpr ScopeKind kFile[] = {ScopeKind::File}, kUnit[] = {ScopeKind::CompileUnit},
                             kScopes[] = {ScopeKind::Subprogram, ScopeKind::LexicalBlock};
  const auto number = [&c](uint32_t& n, const char* what) { return c.varint32(n, Code::E0118, what); };
  uint64_t tag;
  if (!c.varint(tag, "the tag of a debug record")) return false;
  DebugScope s;
  switch (tag <= static_cast<uint64_t>(DebugTag::CallSite) ? static_cast<DebugTag>(tag) : DebugTag::Unknown) {
    case DebugTag::Unknown:
      out = {RecordState::Unknown, 0};
      return true;
    case DebugTag::CompileUnit:
      s.kind = ScopeKind::CompileUnit;
      if (!scope_ref(c, kFile, "the file of a compile unit", s.file, depth)) return false;
      break;
    case DebugTag::File:
      s.kind = ScopeKind::File;
      if (!string(c, s.name, "a file name") || !string(c, s.directory, "a directory")) return false;
      break;
    case DebugTag::LexicalBlock:
      s.kind = ScopeKind::LexicalBlock;
      if (!scope_ref(c, kScopes, "the scope of a lexical block", s.scope, depth) ||
          !scope_ref(c, kFile, "the file of a lexical block", s.file, depth) || !number(s.line, "a line") ||
          !number(s.column, "a column")) {
        return false;
      }
      break;
    case DebugTag::Subprogram:
      s.kind = ScopeKind::Subprogram;
      if (!scope_ref(c, kFile, "the file of a subprogram", s.file, depth) || !number(s.line, "a line") ||
          !string(c, s.name, "the name of a subprogram") ||
          !string(c, s.linkage_name, "the linkage name of a subprogram") ||
          !scope_ref(c, kUnit, "the compile unit of a subprogram", s.compile_unit, depth) ||
          !number(s.scope_line, "a scope line")) {
        return false;
      }
      if (version_ >= kSinceArgAttrs) {
        uint64_t flags;
        if (!c.varint(flags, "the flags of a subprogram")) return false;
      }
      break;
    case DebugTag::Location: {
      Loc l;
      if (!scope_ref(c, kScopes, "the scope of a location", l.scope, depth) || !string(c, l.file, "a file name") ||
          !number(l.line, "a line") || !number(l.column, "a column")) {
        return false;
      }
      l.kind = l.scope == kNone ? Loc::Kind::FileLineCol : Loc::Kind::Scoped;
      out = {RecordState::Location, module_.locs.add(std::move(l))};
      return true;
    }
    case DebugTag::CallSite: {
      Loc l;
      l.kind = Loc::Kind::CallSite;
      for (LocId* side : {&l.callee, &l.caller}) {
        const size_t at = c.pos();
        uint64_t reference;
        if (!c.varint(reference, "a side of a call site") || !location(reference, at, *side, depth)) return false;
      }
      out = {RecordState::Location, module_.locs.add(std::move(l))};
      return true;
    }
  }
  out = {RecordState::Scope, module_.locs.add_scope(s)};
  return true;
}

}  // namespace tile::tileirbc
