// The history of every byte of a block's shared memory: last write, and the reads since that a later write must be
// ordered after.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/emulate/happens_before.h"

namespace tile::emu {

enum class Hazard : uint8_t { None, ReadOfWrite, WriteOfRead, WriteOfWrite, Uninitialised, NotFenced, WrongSwizzle };

struct Conflict {
  Hazard hazard = Hazard::None;
  Access other;
  uint32_t addr = 0;                                  ///< first byte concerned
};

/// One history per 16 bytes while these bytes share it; else one per 4 bytes; else one per byte.
class Shadow {
 public:
  explicit Shadow(const HappensBefore& order) : order_(order) {}
  void reset(uint32_t bytes);
  /// The access `who` to [addr, addr + bytes), which is inside the memory, on behalf of the observer's threads.
  Conflict read(Observer& by, uint32_t addr, uint32_t bytes, const Access& who);
  Conflict write(Observer& by, uint32_t addr, uint32_t bytes, const Access& who);
  /// Atomics do not conflict with each other, but with everything else.
  Conflict atomic(Observer& by, uint32_t addr, uint32_t bytes, const Access& who);
  /// Gives the clock of completion to an in-flight write, as far as nothing has overwritten it.
  void complete(uint32_t addr, uint32_t bytes, const Access& in_flight, uint32_t clock);
  /// The same, by another agent: who knows `done` of it knows the write.
  void hand_over(uint32_t addr, uint32_t bytes, const Access& in_flight, const Access& done);

 private:
  struct History {
    Access write;
    // Earlier atomics that the last one does not know are in more_[more], too.
    // Two readers are enough while only barriers order threads: whatever a third one of the same interval conflicts
    // with, one of these two does. Otherwise the rest goes to more_[more].
    std::array<Access, 2> reads;
    int32_t more = -1;
  };
  struct Granule {
    History whole;
    int32_t words = -1, bytes = -1;                   // number of an array of 4 or 16 histories, kept for the next time
    uint8_t level = 0;                                // 0: whole, 1: words, 2: bytes
  };
  template <class F>
  Conflict visit(uint32_t addr, uint32_t bytes, bool overwrites, F&& each);
  void split(Granule& g, uint8_t level);
  Conflict read_one(History& h, Observer& by, const Access& who);
  Conflict write_one(History& h, Observer& by, const Access& who);
  Conflict atomic_one(History& h, Observer& by, const Access& who);
  std::vector<Access>& more(History& h);
  void drop_reads(History& h);
  void keep_two(History& h, const Access& who);

  const HappensBefore& order_;
  std::vector<Granule> granules_;
  std::vector<std::array<History, 4>> words_;
  std::vector<std::array<History, 16>> bytes_;
  std::vector<std::vector<Access>> more_;
  std::vector<int32_t> free_more_;
};

}  // namespace tile::emu
