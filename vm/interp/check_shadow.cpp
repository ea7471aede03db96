// Making and splitting the pages of shadow memory.
#include "vm/interp/check_shadow.h"

namespace tile {

bool Shadow::begin(const Memory& memory, bool shared) {
  shared_ = shared;
  const auto allocation = [&](uint64_t i) { return memory.find(Memory::base_of(i)); };
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

ShadowCell* Shadow::unfold(Chunk& chunk, size_t page, bool bytes) {
  if (!chunk.cells) chunk.cells = std::make_unique<Cells>();
  auto& have = (*chunk.cells)[page];
  if (chunk.form[page] == Form::Bytes || (chunk.form[page] == Form::Words && !bytes)) return have.get();
  const size_t n = bytes ? kPage : kPage / 4;
  auto cells = std::make_unique<ShadowCell[]>(n);
  for (size_t k = 0; k < n; ++k) cells[k] = have ? have[k / 4] : chunk.pages[page];
  have = std::move(cells);
  chunk.form[page] = bytes ? Form::Bytes : Form::Words;
  return have.get();
}

void Shadow::fold(Chunk& chunk, size_t page) {
  auto& cells = (*chunk.cells)[page];
  chunk.pages[page] = cells[0];
  cells.reset();
  chunk.form[page] = Form::Page;
}

void Shadow::split(Chunk& chunk, size_t block) {
  chunk.split[block] = true;
  for (size_t k = 0; k < kPagesOfBlock; ++k) {
    chunk.form[block * kPagesOfBlock + k] = Form::Page;
    chunk.pages[block * kPagesOfBlock + k] = chunk.blocks[block];
  }
}

// If all pages of the block are alike, one cell stands for them again.
void Shadow::join(Chunk& chunk, size_t block) {
  const size_t first = block * kPagesOfBlock;
  for (size_t k = first; k < first + kPagesOfBlock; ++k)
    if (chunk.form[k] != Form::Page || !(chunk.pages[k] == chunk.pages[first])) return;
  chunk.blocks[block] = chunk.pages[first];
  chunk.split[block] = false;
}

}  // namespace tile
