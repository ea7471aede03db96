// What a checker remembers about each byte of global memory: who touched it. Pages that are touched alike take one
// cell, and so do blocks of pages; pages that are not take one for each line, word or byte, as their accesses need.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vm/interp/memory.h"
#include "vm/interp/observer.h"

namespace tile {

/// Numbers of accesses, 0 for none; what they mean is the checker's business.
struct ShadowCell {
  uint32_t write = 0, other = 0, read = 0, read2 = 0;
  bool operator==(const ShadowCell& o) const {  // in one piece: compared for every page of every access
    unsigned __int128 a, b;
    std::memcpy(&a, this, sizeof a);
    std::memcpy(&b, &o, sizeof b);
    return a == b;
  }
};
static_assert(sizeof(ShadowCell) == 16);

class Shadow {
 public:
  static constexpr uint64_t kLine = 32, kPage = 256, kBlock = 4096;  ///< bytes that one cell can stand for
  static constexpr uint64_t kPagesOfChunk = 256, kPagesOfBlock = kBlock / kPage, kLinesOfPage = kPage / kLine;
  static constexpr uint64_t kChunk = kPage * kPagesOfChunk;

  /// @param shared  several threads call update(): each chunk is locked while its cells change
  /// @return true if the allocations have the sizes they had before: the cells are still there
  bool begin(const Memory& memory, bool shared);
  /// Forgets one allocation. Not while others update it.
  void clear(size_t allocation);
  /// Forgets everything.
  void clear();
  /// Fetches the cells around an address into the cache.
  void prefetch(uint64_t address) const {
    const size_t allocation = static_cast<size_t>(Memory::index_of(address));
    const uint64_t at = address & Memory::kOffsetMask;
    if (allocation >= tables_.size() || at >= tables_[allocation].size) return;
    const Chunk* c = tables_[allocation].chunks[at / kChunk].load(std::memory_order_acquire);
    if (!c) return;
    __builtin_prefetch(&c->split, 1);
    __builtin_prefetch(&c->form[at / kPage % kPagesOfChunk], 1);
    __builtin_prefetch(&c->pages[at / kPage % kPagesOfChunk], 1);
  }
  [[nodiscard]] size_t chunks() const { return made_.load(std::memory_order_relaxed); }

  /// Replaces the cell of every byte of [address, address + bytes) by next(cell, address of such a byte). `next`
  /// depends on the cell alone: for a run of equal cells it is asked once. Bytes outside of all allocations are left
  /// out.
  template <class F>
  void update(uint64_t address, uint64_t bytes, F&& next) {
    Pass pass;
    update(address, bytes, next, pass);
  }

 private:
  enum class Form : uint8_t { Page, Lines, Words, Bytes };  // what a cell stands for
  struct Chunk {
    std::mutex mutex;
    std::array<bool, kPagesOfChunk / kPagesOfBlock> split{};
    std::array<ShadowCell, kPagesOfChunk / kPagesOfBlock> blocks;  // of every byte of a block that is not split
    std::array<Form, kPagesOfChunk> form{};
    std::array<ShadowCell, kPagesOfChunk> pages;  // of every byte of a page, in Form::Page
    std::unique_ptr<std::array<ShadowCell, kPagesOfChunk * kLinesOfPage>> lines;           // of pages in Form::Lines
    std::unique_ptr<std::array<std::unique_ptr<ShadowCell[]>, kPagesOfChunk>> small_cells;  // of pages in Form::Words and Form::Bytes
  };

 public:
  /// What calls of update() for one access hand on, all of them in one allocation: what was asked for one is not asked again for the next.
  struct Pass {
    ShadowCell known, answer;  // the last one
    bool asked = false;
    uint64_t index = ~uint64_t{0};
    Chunk* chunk = nullptr;  // the last one, and its lock
    std::unique_lock<std::mutex> lock;
  };
  template <class F>
  void update(uint64_t address, uint64_t bytes, F&& next, Pass& pass) {
    const size_t allocation = static_cast<size_t>(Memory::index_of(address));
    if (allocation >= tables_.size()) return;
    const uint64_t base = address & ~Memory::kOffsetMask;
    uint64_t at = address & Memory::kOffsetMask;
    const uint64_t end = at + bytes;
    if (end > tables_[allocation].size) return;
    if (pass.index == at / kChunk && bytes == 4 && at % 4 == 0) {  // the usual case of a list of accesses: a cell that is like the last one
      const size_t number = static_cast<size_t>(at / kPage % kPagesOfChunk);
      if (pass.chunk->split[number / kPagesOfBlock] && pass.chunk->form[number] == Form::Words) {
        ShadowCell& cell = (*pass.chunk->small_cells)[number][at % kPage / 4];
        if (pass.asked && cell == pass.known) {
          cell = pass.answer;
          return;
        }
      }
    }
    // `n` cells, each of `size` bytes from `where` on.
    const auto step = [&](ShadowCell* cells, size_t n, uint64_t where, uint64_t size) {
      for (size_t k = 0; k < n;) {
        if (!pass.asked || !(cells[k] == pass.known)) {
          pass.known = cells[k];
          pass.answer = next(pass.known, base + where + k * size);
          pass.asked = true;
        }
        do {
          cells[k++] = pass.answer;
        } while (k < n && cells[k] == pass.known);
      }
    };
    while (at < end) {
      if (pass.index != at / kChunk) {
        pass.lock = {};
        pass.index = at / kChunk;
        pass.chunk = &chunk_at(allocation, pass.index);
        if (shared_) pass.lock = std::unique_lock(pass.chunk->mutex);
      }
      Chunk& chunk = *pass.chunk;
      const uint64_t stop = std::min(end, (pass.index + 1) * kChunk);
      for (; at < stop;) {
        const size_t block = static_cast<size_t>(at / kBlock % (kChunk / kBlock));
        if (!chunk.split[block]) {
          if (at % kBlock == 0 && stop - at >= kBlock) {
            step(&chunk.blocks[block], 1, at, kBlock);
            at += kBlock;
            continue;
          }
          split(chunk, block);
        }
        const uint64_t page = at / kPage * kPage, until = std::min(stop, page + kPage);
        const size_t number = static_cast<size_t>(at / kPage % kPagesOfChunk);
        const bool whole = at == page && until == page + kPage;
        if (whole && chunk.form[number] == Form::Page) {
          // The common case: pages one after the other.
          const size_t last = std::min((block + 1) * kPagesOfBlock, number + static_cast<size_t>((stop - at) / kPage));
          size_t k = number;
          while (k < last && chunk.form[k] == Form::Page) ++k;
          step(&chunk.pages[number], k - number, at, kPage);
          at += (k - number) * kPage;
          if (k == (block + 1) * kPagesOfBlock) join(chunk, block);
          continue;
        }
        const Cells part =
            chunk.form[number] == Form::Lines && (at | until) % kLine == 0 ? lines_of(chunk, number) : unfold(chunk, number, at | until);
        const uint64_t first = (at - page) >> part.shift;
        step(part.cells + first, ((until - page) >> part.shift) - first, at, uint64_t{1} << part.shift);
        if (whole && std::all_of(part.cells, part.cells + (kPage >> part.shift), [&](const ShadowCell& c) { return c == part.cells[0]; }))
          fold(chunk, number, part.cells[0]);
        at = until;
      }
    }
  }

 private:
  struct Cells {  // of one page
    ShadowCell* cells;
    unsigned shift;  // one stands for 2^shift bytes
  };
  struct Table {
    uint64_t size = 0;
    std::unique_ptr<std::atomic<Chunk*>[]> chunks;
    size_t count = 0;
    std::vector<std::unique_ptr<Chunk>> owned;
  };
  Chunk& chunk_at(size_t allocation, uint64_t index) {
    Chunk* c = tables_[allocation].chunks[index].load(std::memory_order_acquire);
    return c ? *c : make_chunk(allocation, index);
  }
  Chunk& make_chunk(size_t allocation, uint64_t index);
  static Cells lines_of(Chunk& chunk, size_t page) { return {&(*chunk.lines)[page * kLinesOfPage], 5}; }
  /// The cells of a page for an access; `ends` has the bits of its first address and of the one behind it.
  static Cells unfold(Chunk& chunk, size_t page, uint64_t ends);
  static void fold(Chunk& chunk, size_t page, const ShadowCell& cell);
  static void split(Chunk& chunk, size_t block);
  static void join(Chunk& chunk, size_t block);

  std::vector<Table> tables_;
  std::mutex mutex_;
  std::atomic<size_t> made_{0};
  bool shared_ = false;
};

}  // namespace tile
