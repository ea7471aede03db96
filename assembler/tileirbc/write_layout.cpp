// Writing a module as it was read: records go where the file had them, and lists and sections keep their order.
// Every choice is checked against the module, so that a layout can change how it is written, never what is written.
#include <algorithm>

#include "assembler/tileirbc/payload.h"
#include "assembler/tileirbc/writer.h"

namespace tile::tileirbc {
namespace {

// Deeper records are what nothing can use: the reader's limits are the same.
constexpr int kMaxPlacedNesting = 256;

constexpr Section kUsualOrder[] = {Section::Functions, Section::Globals,  Section::Constants, Section::Debug,
                                   Section::Types,     Section::Producer, Section::Strings};

}  // namespace

/// Equal records get one key, made of the keys of what they refer to, whichever of several equal records that is. Those
/// that are used come first, so that they are found.
void Writer::place_records() {
  const TileirbcLayout& l = *layout_;
  const auto used_first = [](size_t count, const std::vector<bool>& used, const auto& place) {
    for (const bool now : {true, false})
      for (uint32_t i = 0; i < count; ++i)
        if ((i < used.size() && used[i]) == now) place(i);
  };
  strings_.reserve(l.strings.size());
  used_first(l.strings.size(), l.string_used, [&](uint32_t i) { strings_.place(i, l.strings[i], l.strings[i]); });
  constants_.reserve(l.constants.size());
  for (uint32_t i = 0; i < l.constants.size(); ++i) {
    Bytes record;
    record.varint(l.constants[i].size());
    record.append(l.constants[i]);
    constants_.place(i, record.view(), record.view());
  }
  types_.reserve(l.types.size());
  type_standard_.assign(l.types.size(), kNone);
  used_first(l.types.size(), l.type_used, [&](uint32_t i) { place_type(i, 0); });
  debug_.reserve(l.debug.size());
  debug_standard_.assign(l.debug.size(), kUnwritten);
  used_first(l.debug.size(), l.debug_used, [&](uint32_t i) { place_debug(i, 0); });
  debug_lists_.resize(l.lists.size());
  list_written_.resize(l.lists.size());
}

/// The index by which type `i` of the layout is found; itself while it is being placed, as no used type contains
/// itself.
uint32_t Writer::place_type(uint32_t i, int depth) {
  uint32_t& standard = type_standard_[i];
  if (standard != kNone || depth >= kMaxPlacedNesting) return standard != kNone ? standard : i;
  standard = i;
  if (const auto& t = layout_->types[i]) {
    Bytes key, record;
    write_type(key, *t, [&](TypeId inner) { return place_type(inner, depth + 1); });
    write_type(record, *t, [](TypeId inner) { return inner; });
    standard = types_.place(i, key.view(), record.view());
  }
  return standard;
}

/// The reference by which debug record `i` of the layout is found; 0 if it means the unknown location.
uint64_t Writer::place_debug(uint32_t i, int depth) {
  uint64_t& standard = debug_standard_[i];
  if (standard != kUnwritten || depth >= kMaxPlacedNesting) return standard != kUnwritten ? standard : uint64_t{i} + 1;
  standard = uint64_t{i} + 1;
  const DebugRecord& r = layout_->debug[i];
  if (r.tag == DebugRecord::kUnreadable) return standard;
  Bytes key, record;
  for (Bytes* out : {&key, &record}) {
    out->varint(r.tag);
    size_t at = 0;
    for (char field : debug_fields(r.tag)) {
      const uint32_t value = r.fields[at++];
      if (out == &record || field == 'n' || (field == 'r' && value == 0)) {
        out->varint(value);
      } else if (field == 's') {
        out->varint(strings_.standard(value));
      } else {
        out->varint(place_debug(value - 1, depth + 1));
      }
    }
    const bool has_flags = r.tag == static_cast<uint32_t>(DebugTag::Subprogram) && target_ >= kSinceArgAttrs;
    if (has_flags) out->varint(0);
  }
  standard = uint64_t{debug_.place(i, key.view(), record.view())} + 1;
  if (debug_fields(r.tag).empty()) standard = 0;
  return standard;
}

/// Gives the locations of a function a list, and returns what the function's record says of it.
uint64_t Writer::place_list(size_t function, std::vector<uint64_t> list) {
  const auto append = [&] {
    debug_lists_.push_back(std::move(list));
    list_written_.push_back(true);
    return uint64_t{debug_lists_.size()};
  };
  if (function >= layout_->functions.size()) return append();
  const uint64_t location = layout_->functions[function].location;
  if (location == 0) {
    const bool unknown = std::all_of(list.begin(), list.end(), [](uint64_t reference) { return reference == 0; });
    return unknown ? 0 : append();
  }
  if (location > layout_->lists.size()) return append();
  const auto index = static_cast<size_t>(location - 1);
  const LocationList& wanted = layout_->lists[index];
  for (size_t i = wanted.skipped; i < list.size() && i - wanted.skipped < wanted.slots.size(); ++i) {
    const uint64_t slot = wanted.slots[i - wanted.skipped];
    const uint64_t standard = slot == 0 || slot > debug_standard_.size() ? 0 : debug_standard_[slot - 1];
    if (standard == list[i]) list[i] = slot;
  }
  std::vector<uint64_t>& written = debug_lists_[index];
  if (list_written_[index]) {
    // Functions may share a list, where one has the locations with which the other begins.
    const size_t common = std::min(written.size(), list.size());
    if (!std::equal(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(common), written.begin())) return append();
    if (list.size() > common) written = std::move(list);
  } else {
    written = std::move(list);
    list_written_[index] = true;
  }
  return location;
}

/// Slots behind those of the functions, and lists that no function has.
void Writer::place_other_lists() {
  for (size_t i = 0; i < layout_->lists.size(); ++i) {
    const LocationList& wanted = layout_->lists[i];
    std::vector<uint64_t>& list = debug_lists_[i];
    for (size_t at = list.size(); at >= wanted.skipped && at - wanted.skipped < wanted.slots.size(); ++at)
      list.push_back(wanted.slots[at - wanted.skipped]);
  }
}

/// True if a constant of the layout has the value `dense` when it is taken for one of that type.
bool Writer::holds(uint32_t constant, AttrId dense) {
  if (constant >= layout_->constants.size()) return false;
  const auto [it, is_new] = holds_.try_emplace(uint64_t{constant} << 32 | dense, false);
  if (is_new) {
    const Attr& a = m_.attrs.get(dense);
    std::string bytes;
    it->second = decode_payload(m_.types.get(a.type).element, m_.types.element_count(a.type),
                                layout_->constants[constant], bytes) &&
                 bytes == a.bytes;
  }
  return it->second;
}

bool Writer::had_section(Section s) const {
  return std::any_of(layout_->sections.begin(), layout_->sections.end(),
                     [s](const SectionChoice& c) { return c.section == s; });
}

std::vector<SectionChoice> Writer::section_order(const std::array<Bytes, kSections>& payloads) const {
  std::vector<SectionChoice> order = layout_->sections;
  for (Section s : kUsualOrder) {
    if (had_section(s)) continue;
    bool needed = true;
    if (s == Section::Globals || s == Section::Producer) needed = payloads[static_cast<size_t>(s)].size() != 0;
    if (s == Section::Debug) needed = follows_ ? !debug_lists_.empty() : !m_.functions.empty();
    if (follows_ && s == Section::Constants) needed = !constants_.empty();
    if (follows_ && s == Section::Types) needed = !types_.empty();
    if (needed) order.push_back({s, info(s).alignment});
  }
  return order;
}

}  // namespace tile::tileirbc
