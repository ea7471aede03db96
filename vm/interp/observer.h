// What watches a launch: checkers, traces and profiles are observers, so that no evaluator knows of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tile {

class Exec;
struct Launch;
struct Step;

/// One access of global memory by a step: a box of elements, each at address + sum of index * stride. All of it lies inside one
/// allocation, unless the access is about to trap.
struct MemoryAccess {
  enum class Kind : uint8_t { Read, Write, Atomic };
  Kind kind = Kind::Read;
  uint64_t address = 0;              ///< of the first element, as in memory.h
  uint32_t element_bytes = 1;        ///< 1 also for elements of 4 bits, whose byte is named
  size_t rank = 0;                   ///< 0: one element
  const int64_t* shape = nullptr;    ///< elements along each dimension
  const int64_t* strides = nullptr;  ///< in elements of memory, never negative
  size_t first_element = 0;          ///< row-major number of the first element in the step's tile
  const int64_t* tile_strides = nullptr;  ///< distance in the tile between neighbours along each dimension; nullptr with rank 0
};

/// Several accesses of global memory by a step, in the order of their elements: pieces of neighbouring elements. All of them lie in
/// [begin, end), inside one allocation.
struct MemoryRuns {
  struct Run {
    uint64_t address = 0;
    uint32_t first = 0, n = 0;  ///< row-major number of the first element in the step's tile, and how many there are
  };
  MemoryAccess::Kind kind = MemoryAccess::Kind::Read;
  uint32_t element_bytes = 1;
  std::span<const Run> runs;
  uint64_t begin = 0, end = 0;
  size_t elements = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begin(const Launch&) {}
  enum Told : uint8_t { kTellBefore = 1, kTellAfter = 2 };
  /// For each step of the launch that has begun, which of before() and after() are of use; nullptr: both, for all of them.
  [[nodiscard]] virtual const uint8_t* told() const { return nullptr; }
  virtual void launch_end(const Launch&) {}
  // The following may come from several workers at once, each for its own block.
  virtual void block_begin(Exec&) {}
  virtual void block_end(Exec&) {}
  virtual void before(Exec&, const Step&) {}
  /// Not called after a step that trapped, returned or left a loop.
  virtual void after(Exec&, const Step&) {}
  virtual void access(Exec&, const Step&, const MemoryAccess&) {}
  /// Whether a lone observer may be told of all accesses of a step at once, before the first of them is made: by one access() if they are a box,
  /// else by accesses().
  [[nodiscard]] virtual bool takes_runs() const { return false; }
  /// False, and nothing done, if it wants them one after the other, each by access().
  virtual bool accesses(Exec&, const Step&, const MemoryRuns&) { return false; }
};

}  // namespace tile
