// What blocks see of each other's accesses where nothing orders them: writes that others see later than they happened, reads that give an
// older value. A subset of what the language allows: every value that a read gives is one that the rules permit.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "vm/interp/check_part.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/seeded.h"

namespace tile {

class WeakMemory {
 public:
  WeakMemory(const CheckFacts& facts, const TokenTracker& tokens, uint64_t seed);

  void launch_begin(const Launch& launch);
  void block_begin(Exec& x);
  /// Lets writes that wait become visible, each with some chance.
  void pass_time();
  /// What waits goes on waiting: the end of a block orders nothing.
  void block_end(const Exec& x);
  void launch_end();

  // Around a step that accesses memory, after its token is known.
  void before(Exec& x, InstId i);
  void access(Exec& x, InstId i, const MemoryAccess& a);
  void after(Exec& x, const Step& s);

 private:
  using Node = TokenGraph::Node;
  using Time = uint64_t;
  struct Piece {
    uint64_t address = 0;
    std::byte* host = nullptr;
    std::vector<std::byte> bytes;
    [[nodiscard]] bool overlaps(uint64_t at, uint64_t size) const { return address < at + size && at < address + bytes.size(); }
  };
  struct Waiting {  // a write that no other block sees yet
    unsigned worker = 0;  // kNobody: its block has ended
    Node node = 0;
    std::vector<Piece> pieces;
  };
  struct Change {  // what a write has replaced
    Time time = 0;
    Piece before;
  };
  struct Block {
    std::vector<std::pair<Node, Time>> acquires;
    std::unordered_map<uint64_t, Time> seen;  // by 4 bytes of memory: reads give nothing older
    Time floor = 0;                           // the same for all memory
    std::vector<Piece> writing;               // memory as it was before the running step
    std::vector<std::pair<size_t, uint64_t>> reading;  // elements of the running step that have been written lately, and their addresses
    std::vector<Time> times;                  // of changes that the running step need not see
    uint32_t element_bytes = 1;
  };
  static constexpr size_t kMostChanges = 1024, kMostBytes = 1 << 20, kMostSeen = 1 << 14, kMostAcquires = 64, kMostElements = 4096;
  static constexpr uint64_t kGranule = 4;
  static constexpr unsigned kNobody = ~0u;

  template <class F>
  void commit_own(unsigned worker, F&& which);
  void commit(const Waiting& w);
  void record(Piece before);
  void saw(Block& b, uint64_t address, uint64_t bytes, Time time);
  [[nodiscard]] Time floor_of(const Exec& x, const Block& b) const;

  const CheckFacts& facts_;
  const TokenTracker& tokens_;
  SeededNumbers numbers_;
  unsigned commit_ = 1, stale_ = 1;  // exponents: once in 2^k times
  bool delays_ = true, ages_ = true;
  std::vector<Block> blocks_;
  std::deque<Waiting> waiting_;
  std::deque<Change> changes_;
  size_t changed_bytes_ = 0;
  Time now_ = 1, oldest_ = 0;        // changes after oldest_ are known
};

}  // namespace tile
