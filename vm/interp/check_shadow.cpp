// Making and splitting the pages of shadow memory.
#include "vm/interp/check_shadow.h"

namespace tile {

bool Shadow::begin(const Memory& memory, bool shared) {
  shared_ = shared;
  const auto allocation = [&](uint64_t i) { return memory.find((i + 1) << Memory::kOffsetBits); };
  size_t same = 0;
  while (same < tables_.size() && allocation(same) && allocation(same)->size == tables_[same].size) ++same;
  if (same > 0 && same == tables_.size() && !allocation(same)) return true;
  tables_.clear();
  made_ = 0;
  for (uint64_t i = 0; const Memory::Allocation* a = allocation(i); ++i) {
    Table t;
    t.size = a->size;
    t.count = static_cast<size_t>(a->size / kChunk + 1);
    t.chunks = std::make_unique<std::atomic<Chunk*>[]>(t.count);
    tables_.push_back(std::move(t));
  }
  return false;
}

void Shadow::clear(size_t allocation) {
  if (allocation >= tables_.size() || tables_[allocation].owned.empty()) return;
  Table& t = tables_[allocation];
  made_.fetch_sub(t.owned.size());
  t.owned.clear();
  for (size_t k = 0; k < t.count; ++k) t.chunks[k].store(nullptr, std::memory_order_relaxed);
}

void Shadow::clear() {
  for (size_t a = 0; a < tables_.size(); ++a) clear(a);
}

Shadow::Chunk& Shadow::chunk_at(size_t allocation, uint64_t index) {
  Table& t = tables_[allocation];
  if (Chunk* c = t.chunks[index].load(std::memory_order_acquire)) return *c;
  const std::lock_guard lock(mutex_);
  if (Chunk* c = t.chunks[index].load(std::memory_order_relaxed)) return *c;
  t.owned.push_back(std::make_unique<Chunk>());
  made_.fetch_add(1, std::memory_order_relaxed);
  t.chunks[index].store(t.owned.back().get(), std::memory_order_release);
  return *t.owned.back();
}

void Shadow::unfold(Page& p, bool bytes) {
  if (p.cells && (p.bytes || !bytes)) return;
  const size_t n = bytes ? kPage : kPage / 4;
  auto cells = std::make_unique<ShadowCell[]>(n);
  for (size_t k = 0; k < n; ++k) cells[k] = p.cells ? p.cells[k / 4] : p.all;
  p.cells = std::move(cells);
  p.bytes = bytes;
}

}  // namespace tile
