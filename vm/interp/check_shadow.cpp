// Making and splitting the pages of shadow memory.
#include "vm/interp/check_shadow.h"

namespace tile {

bool Shadow::begin(const Memory& memory, bool shared) {
  shared_ = shared;
  const uint64_t count = memory.count();
  size_t same = 0;
  if (tables_.size() == count)
    while (same < count && memory.at(same).size == tables_[same].size) ++same;
  if (same > 0 && same == count) return true;
  tables_.clear();
  made_ = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Table t;
    t.size = memory.at(i).size;
    t.count = static_cast<size_t>(t.size / kChunk + 1);
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

Shadow::Chunk& Shadow::make_chunk(size_t allocation, uint64_t index) {
  Table& t = tables_[allocation];
  const std::lock_guard lock(mutex_);
  if (Chunk* c = t.chunks[index].load(std::memory_order_relaxed)) return *c;
  t.owned.push_back(std::make_unique<Chunk>());
  made_.fetch_add(1, std::memory_order_relaxed);
  t.chunks[index].store(t.owned.back().get(), std::memory_order_release);
  return *t.owned.back();
}

Shadow::Cells Shadow::unfold(Chunk& chunk, size_t page, uint64_t ends) {
  constexpr unsigned kShifts[] = {8, 5, 2, 0};  // by form
  static_assert(kPage == 1 << 8 && kLine == 1 << 5);
  const Form have = chunk.form[page], form = std::max(have, ends % kLine == 0 ? Form::Lines : ends % 4 == 0 ? Form::Words : Form::Bytes);
  const unsigned shift = kShifts[static_cast<size_t>(form)];
  const auto cells = [&](Form f) {
    return f == Form::Page ? &chunk.pages[page] : f == Form::Lines ? lines_of(chunk, page).cells : (*chunk.small_cells)[page].get();
  };
  if (form == have) return {cells(form), shift};
  const unsigned coarser = kShifts[static_cast<size_t>(have)] - shift;
  const auto fill = [&](ShadowCell* to) {
    const ShadowCell* from = cells(have);
    for (size_t k = 0; k < kPage >> shift; ++k) to[k] = from[k >> coarser];
  };
  if (form == Form::Lines) {
    if (!chunk.lines) chunk.lines = std::make_unique<std::array<ShadowCell, kPagesOfChunk * kLinesOfPage>>();
    fill(lines_of(chunk, page).cells);
  } else {
    if (!chunk.small_cells) chunk.small_cells = std::make_unique<std::array<std::unique_ptr<ShadowCell[]>, kPagesOfChunk>>();
    auto made = std::make_unique<ShadowCell[]>(kPage >> shift);
    fill(made.get());
    (*chunk.small_cells)[page] = std::move(made);
  }
  chunk.form[page] = form;
  return {cells(form), shift};
}

void Shadow::fold(Chunk& chunk, size_t page, const ShadowCell& cell) {
  chunk.pages[page] = cell;
  if (chunk.form[page] > Form::Lines) (*chunk.small_cells)[page].reset();
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
