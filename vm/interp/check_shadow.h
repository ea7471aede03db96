// What a checker remembers about each byte of global memory: who touched it. Pages that are touched alike take one
// cell, and so do blocks of pages.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "vm/interp/memory.h"

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
  static constexpr uint64_t kPage = 256, kBlock = 4096;  ///< bytes that one cell can stand for
  static constexpr uint64_t kPagesOfChunk = 256, kPagesOfBlock = kBlock / kPage;
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
    const size_t allocation = static_cast<size_t>(Memory::index_of(address));
    if (allocation >= tables_.size()) return;
    const uint64_t base = address & ~Memory::kOffsetMask;
    uint64_t at = address & Memory::kOffsetMask;
    const uint64_t end = at + bytes;
    if (end > tables_[allocation].size) return;
    ShadowCell known, answer;
    bool asked = false;
    const auto step = [&](ShadowCell& c, uint64_t where) {
      if (!asked || !(c == known)) {
        known = c;
        answer = next(c, base + where);
        asked = true;
      }
      c = answer;
    };
    while (at < end) {
      Chunk& chunk = chunk_at(allocation, at / kChunk);
      const uint64_t stop = std::min(end, (at / kChunk + 1) * kChunk);
      std::unique_lock<std::mutex> lock;
      if (shared_) lock = std::unique_lock(chunk.mutex);
      for (; at < stop;) {
        const size_t block = static_cast<size_t>(at / kBlock % (kChunk / kBlock));
        if (!chunk.split[block]) {
          if (at % kBlock == 0 && stop - at >= kBlock) {
            step(chunk.blocks[block], at);
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
          for (; k < last && chunk.form[k] == Form::Page; ++k) step(chunk.pages[k], at + (k - number) * kPage);
          at += (k - number) * kPage;
          if (k == (block + 1) * kPagesOfBlock) join(chunk, block);
          continue;
        } else {
          ShadowCell* cells = unfold(chunk, number, (at | until) % 4 != 0);
          const unsigned shift = chunk.form[number] == Form::Bytes ? 0 : 2;
          bool alike = whole;
          for (uint64_t b = (at - page) >> shift; b < (until - page) >> shift; ++b) {
            step(cells[b], page + (b << shift));
            alike = alike && cells[b] == cells[0];
          }
          if (alike) fold(chunk, number);
        }
        at = until;
      }
    }
  }

 private:
  enum class Form : uint8_t { Page, Words, Bytes };  // what a cell stands for
  using Cells = std::array<std::unique_ptr<ShadowCell[]>, kPagesOfChunk>;
  struct Chunk {
    std::mutex mutex;
    std::array<bool, kPagesOfChunk / kPagesOfBlock> split{};
    std::array<ShadowCell, kPagesOfChunk / kPagesOfBlock> blocks;  // of every byte of a block that is not split
    std::array<Form, kPagesOfChunk> form{};
    std::array<ShadowCell, kPagesOfChunk> pages;  // of every byte of a page, in Form::Page
    std::unique_ptr<Cells> cells;                 // of the other pages
  };
  struct Table {
    uint64_t size = 0;
    std::unique_ptr<std::atomic<Chunk*>[]> chunks;
    size_t count = 0;
    std::vector<std::unique_ptr<Chunk>> owned;
  };
  Chunk& chunk_at(size_t allocation, uint64_t index);
  static ShadowCell* unfold(Chunk& chunk, size_t page, bool bytes);
  static void fold(Chunk& chunk, size_t page);
  static void split(Chunk& chunk, size_t block);
  static void join(Chunk& chunk, size_t block);

  std::vector<Table> tables_;
  std::mutex mutex_;
  std::atomic<size_t> made_{0};
  bool shared_ = false;
};

}  // namespace tile
