// A hash table over byte strings that lie one after another.
#include "assembler/tileirbc/record_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tile::tileirbc {

uint32_t RecordTable::add(std::string_view record) {
  grow(used_ + 1);
  const uint64_t hash = std::hash<std::string_view>{}(record);
  Slot& slot = find(record, hash);
  if (slot.record == 0) {
    const Range bytes = store(record);
    records_.push_back({bytes, bytes, hash});
    slot = {tag(hash), static_cast<uint32_t>(records_.size())};
    ++used_;
  }
  return slot.record - 1;
}

uint32_t RecordTable::add_unique(std::string_view record) {
  const Range bytes = store(record);
  records_.push_back({bytes, bytes, 0});
  return static_cast<uint32_t>(records_.size()) - 1;
}

void RecordTable::reserve(size_t n) {
  records_.assign(n, {});
  standard_.resize(n);
  for (uint32_t i = 0; i < n; ++i) standard_[i] = i;
  grow(n);
}

uint32_t RecordTable::place(uint32_t at, std::string_view key, std::string_view record) {
  grow(used_ + 1);
  const uint64_t hash = std::hash<std::string_view>{}(key);
  Slot& slot = find(key, hash);
  Record& r = records_[at];
  r.bytes = store(record);
  if (slot.record == 0) {
    r.key = key == record ? r.bytes : store(key);
    r.hash = hash;
    slot = {tag(hash), at + 1};
    ++used_;
  }
  return standard_[at] = slot.record - 1;
}

RecordTable::Range RecordTable::store(std::string_view s) {
  const size_t begin = arena_.size();
  arena_ += s;
  return {begin, s.size()};
}

RecordTable::Slot& RecordTable::find(std::string_view key, uint64_t hash) {
  for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
    Slot& slot = slots_[i];
    if (slot.record == 0) return slot;
    if (slot.tag != tag(hash)) continue;
    if (const Record& r = records_[slot.record - 1]; r.hash == hash && view(r.key) == key) return slot;
  }
}

void RecordTable::grow(size_t records) {
  if (2 * records <= slots_.size()) return;
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(std::bit_ceil(std::max<size_t>(2 * records, 16)), {});  // small tables stay in the cache
  for (const Slot& slot : old) {
    if (slot.record == 0) continue;
    size_t i = records_[slot.record - 1].hash & (slots_.size() - 1);
    while (slots_[i].record != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

void RecordTable::write(Bytes& out, size_t width, uint8_t padding) const {
  out.varint(records_.size());
  if (records_.empty()) return;
  out.align(width, padding);
  uint64_t at = 0;
  for (const Record& r : records_) {
    out.fixed(at, width);
    at += r.bytes.size;
  }
  for (const Record& r : records_) out.append(view(r.bytes));
}

}  // namespace tile::tileirbc
