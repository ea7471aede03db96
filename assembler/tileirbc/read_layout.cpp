// Keeps what the file chose where the form leaves a choice. Looks at everything, used or not, but adds nothing to the
// module: what cannot be read here was not needed.
#include <algorithm>

#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {
namespace {

/// True if no two used records of a table are equal, so that a use has nothing to choose.
/// @param ids    by index in the table; kNone if nothing uses it
/// @param limit  above all ids
bool is_plain(const std::vector<uint32_t>& ids, size_t limit) {
  std::vector<bool> seen(limit);
  for (uint32_t id : ids) {
    if (id == kNone) continue;
    if (seen[id]) return false;
    seen[id] = true;
  }
  return true;
}

std::vector<bool> used(const std::vector<uint32_t>& ids) {
  std::vector<bool> out(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) out[i] = ids[i] != kNone;
  return out;
}

}  // namespace

UseStarts Reader::here() const {
  return {layout_->string_uses.size(), layout_->type_uses.size(), layout_->constant_uses.size(),
          layout_->bool_as_integer.size()};
}

/// Ends the streams, and drops those that have nothing to say. Strings of debug records come after.
void Reader::keep_uses() {
  TileirbcLayout& l = *layout_;
  if (is_plain(type_ids_, module_.types.size())) l.type_uses.clear();
  if (!constants_differ_) l.constant_uses.clear();
  if (std::find(l.bool_as_integer.begin(), l.bool_as_integer.end(), true) == l.bool_as_integer.end())
    l.bool_as_integer.clear();
  l.type_uses.shrink_to_fit();
  l.constant_uses.shrink_to_fit();
  l.bool_as_integer.shrink_to_fit();
  string_uses_end_ = l.string_uses.size();
}

void Reader::keep_layout() {
  TileirbcLayout& l = *layout_;
  l.version = version_;
  l.sections = section_order_;
  l.string_uses.resize(string_uses_end_);
  if (is_plain(string_ids_, module_.strings.size())) l.string_uses.clear();
  l.string_uses.shrink_to_fit();
  l.string_used = used(string_ids_);
  for (uint64_t i = 0; i < strings_.count; ++i) {
    const Cursor r = record(strings_, i);
    l.strings.add({reinterpret_cast<const char*>(r.data()), r.left()});
  }

  Diagnostics ignored;
  Diagnostics* const outer = std::exchange(context_.diags, &ignored);
  for (uint64_t i = 0; i < constants_.count; ++i) {
    Cursor r = record(constants_, i);
    uint64_t length;
    // Nothing uses a record without a payload, so an empty one may stand in its place.
    const bool readable = r.varint(length, "") && length <= r.left();
    l.constants.add({reinterpret_cast<const char*>(r.data()), readable ? static_cast<size_t>(length) : 0});
    ignored.clear();
  }
  const bool kept = keep_types() && keep_debug();
  context_.diags = outer;
  if (!kept) return;
  if (!context_.mixed_padding && context_.padding >= 0) l.padding = static_cast<uint8_t>(context_.padding);
  l.fingerprint = fingerprint(module_);
  module_.tileirbc_layout = std::move(layout_);
}

bool Reader::keep_types() {
  if (types_.count > kMaxLayoutTypes) return false;
  layout_->type_used = used(type_ids_);
  raw_types_ = true;
  for (uint64_t i = 0; i < types_.count; ++i) {
    Cursor r = record(types_, i);
    Type t;
    const bool readable = decode_type(r, t, 0) && r.left() == 0;
    layout_->types.push_back(readable ? std::optional(std::move(t)) : std::nullopt);
    context_.diags->clear();
  }
  raw_types_ = false;
  return true;
}

bool Reader::keep_debug() {
  DebugInfo& d = debug_;
  if (!sections_[static_cast<size_t>(Section::Debug)].present) return true;
  // If no function has locations, the section may be damaged; it is left out then.
  if (!d.found && !find_debug()) {
    std::erase_if(layout_->sections, [](const SectionChoice& s) { return s.section == Section::Debug; });
    return true;
  }
  if (d.table.count > kMaxLayoutDebugRecords) return false;
  std::vector<uint32_t> ids;  // locations even, scopes odd
  bool unknown = false;       // a record that means the unknown location is used
  for (uint64_t i = 0; i < d.table.count; ++i) {
    DebugRecord out;
    if (!raw_debug(record(d.table, i), out)) out.tag = DebugRecord::kUnreadable;
    layout_->debug.push_back(out);
    context_.diags->clear();
    const Record& r = d.records[static_cast<size_t>(i)];
    const bool scope = r.state == RecordState::Scope;
    ids.push_back(scope || r.state == RecordState::Location ? r.id << 1 | static_cast<uint32_t>(scope) : kNone);
    unknown |= r.state == RecordState::Unknown;
  }
  layout_->debug_used = used(ids);
  // The unknown location has a reference of its own, 0, besides the records that mean it.
  const bool plain = !unknown && is_plain(ids, 2 * std::max(module_.locs.size(), module_.locs.scope_count()));

  // Of a list that a function uses, the slots of its operations follow from the module, unless there is a choice.
  std::vector<uint64_t> needed(static_cast<size_t>(d.lists));
  for (size_t i = 0; i < debug_lists_.size(); ++i)
    if (const uint64_t list = debug_lists_[i]; list != 0) {
      uint64_t& n = needed[static_cast<size_t>(list - 1)];
      n = std::max(n, uint64_t{module_.functions[i].insts.size()} + 1);
    }
  const Cursor c = payload(Section::Debug);
  uint64_t covered = 0;
  for (uint64_t list = 0; list < d.lists; ++list) {
    LocationList out;
    uint64_t start, end;
    if (!list_bounds(list, start, end) || start < covered) {
      // Out of order: what nothing uses is dropped, and the same slots are not kept twice.
      context_.diags->clear();
      start = end = covered;
    }
    covered = end;
    out.skipped = static_cast<uint32_t>(plain ? needed[static_cast<size_t>(list)] : 0);
    for (uint64_t slot = start + out.skipped; slot < end; ++slot) {
      const uint64_t reference = c.load(d.slots_at + static_cast<size_t>(slot) * 8, 8);
      out.slots.push_back(reference <= d.table.count ? static_cast<uint32_t>(reference) : 0);
    }
    layout_->lists.push_back(std::move(out));
  }
  return true;
}

bool Reader::raw_debug(Cursor c, DebugRecord& out) {
  uint64_t tag;
  if (!c.varint(tag, "")) return false;
  out.tag = tag < DebugRecord::kUnreadable ? static_cast<uint32_t>(tag) : 0;
  size_t at = 0;
  for (char field : debug_fields(out.tag)) {
    uint64_t value;
    const uint64_t most = field == 'r' ? debug_.table.count : field == 's' ? strings_.count - 1 : uint64_t{UINT32_MAX};
    if (!c.varint(value, "") || value > most || (field == 's' && strings_.count == 0)) return false;
    out.fields[at++] = static_cast<uint32_t>(value);
  }
  return true;
}

}  // namespace tile::tileirbc
