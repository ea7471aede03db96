// The common form of the single checkers, and the functions that make them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "vm/interp/check.h"
#include "vm/interp/check_facts.h"
#include "vm/interp/check_findings.h"

namespace tile {

/// One checker of one launch. Calls for a block come from one thread at a time, whose number is Exec::worker.
class CheckPart {
 public:
  CheckPart(const CheckFacts& facts, Findings& findings) : facts(facts), f(facts.f), findings(findings) {}
  virtual ~CheckPart() = default;
  CheckPart(const CheckPart&) = delete;
  CheckPart& operator=(const CheckPart&) = delete;

  virtual void launch_begin(const Launch&) {}
  virtual void block_begin(Exec&) {}
  enum Wants : unsigned { kNever = 0, kBefore = 1, kAfter = 2, kBeforeAwake = 4 };
  /// Which of before() and after() are of use for this operation, and whether silent() is; asked once. kBeforeAwake: before() is, but only while
  /// the part is awake.
  [[nodiscard]] virtual unsigned wants(InstId) const { return kNever; }
  /// A number that is 0 as long as the part sleeps, valid until the next launch begins.
  [[nodiscard]] virtual const size_t* awake(unsigned worker) const { (void)worker; return nullptr; }
  /// Operations without a step that it wants, in their order: at some time between their definition and the next step of their region.
  virtual void silent(Exec&, std::span<const InstId>) {}
  virtual void before(Exec&, const Step&) {}
  virtual void after(Exec&, const Step&) {}
  /// Whether access() is of use in the launch that has begun.
  [[nodiscard]] virtual bool watches_memory() const { return false; }
  virtual void access(Exec&, const Step&, const MemoryAccess&) {}
  /// False if these are to come one by one; asked before accesses(), and nothing is remembered then.
  [[nodiscard]] virtual bool takes(Exec&, const Step&, const MemoryRuns&) { return true; }
  /// As access() for each of them.
  virtual void accesses(Exec& x, const Step& s, const MemoryRuns& all) {
    constexpr int64_t kOne = 1;
    for (const MemoryRuns::Run& r : all.runs) {
      const int64_t n = r.n;
      access(x, s, {all.kind, r.address, all.element_bytes, 1, &n, &kOne, r.first, &kOne});
    }
  }
  /// A large access() comes soon: what it needs may be fetched into the cache.
  virtual void expect(const Exec&, uint64_t) const {}
  /// Control flow hands values on, all at once.
  virtual void carry(Exec&, std::span<const Carry>) {}

 protected:
  const CheckFacts& facts;
  const Function& f;
  Findings& findings;
};

class ArrayUse;
class TokenTracker;
class WrittenMemory;

std::unique_ptr<CheckPart> make_bounds_check(const CheckFacts&, Findings&, const CheckOptions&);
std::unique_ptr<CheckPart> make_init_check(const CheckFacts&, Findings&, WrittenMemory&);
std::unique_ptr<CheckPart> make_order_check(const CheckFacts&, Findings&, TokenTracker&, const ArrayUse&);
std::unique_ptr<CheckPart> make_race_check(const CheckFacts&, Findings&, TokenTracker&, const ArrayUse&);
std::unique_ptr<CheckPart> make_undef_check(const CheckFacts&, Findings&, WrittenMemory&, bool stop);
std::unique_ptr<CheckPart> make_assume_check(const CheckFacts&, Findings&);
std::unique_ptr<CheckPart> make_overflow_check(const CheckFacts&, Findings&);
std::unique_ptr<CheckPart> make_nan_check(const CheckFacts&, Findings&);

/// Calls fn(address, bytes) for the runs of neighbouring bytes that an access touches, until it returns false.
template <class F>
void for_each_run_until(const MemoryAccess& a, F&& fn) {
  if (a.rank == 0 || (a.rank == 1 && a.strides[0] == 1)) {  // the usual case
    (void)fn(a.address, (a.rank == 0 ? 1 : static_cast<uint64_t>(a.shape[0])) * a.element_bytes);
    return;
  }
  constexpr size_t kMost = 32;  // dimensions longer than 1: a tile has fewer than 2^24 elements
  int64_t n[kMost], stride[kMost], at[kMost];
  size_t rank = 0;
  for (size_t d = 0; d < a.rank && rank < kMost; ++d)
    if (a.shape[d] != 1) {
      n[rank] = a.shape[d];
      at[rank] = 0;
      stride[rank++] = a.strides[d];
    }
  // The largest stride outermost.
  for (size_t i = 1; i < rank; ++i)
    for (size_t j = i; j > 0 && stride[j] > stride[j - 1]; --j) {
      std::swap(stride[j], stride[j - 1]);
      std::swap(n[j], n[j - 1]);
    }
  int64_t run = 1;
  while (rank > 0 && stride[rank - 1] == run) run *= n[--rank];
  uint64_t address = a.address;
  const uint64_t bytes = static_cast<uint64_t>(run) * a.element_bytes;
  for (;;) {
    if (!fn(address, bytes)) return;
    size_t d = rank;
    while (d-- > 0) {
      address += static_cast<uint64_t>(stride[d]) * a.element_bytes;
      if (++at[d] < n[d]) break;
      address -= static_cast<uint64_t>(stride[d] * n[d]) * a.element_bytes;
      at[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

template <class F>
void for_each_run(const MemoryAccess& a, F&& fn) {
  for_each_run_until(a, [&](uint64_t address, uint64_t bytes) {
    fn(address, bytes);
    return true;
  });
}

/// Calls fn(element of the tile, address) for each element of an access.
template <class F>
void for_each_element_of(const MemoryAccess& a, F&& fn) {
  std::vector<int64_t> at(a.rank, 0);
  size_t element = a.first_element;
  uint64_t address = a.address;
  for (;;) {
    fn(element, address);
    size_t d = a.rank;
    while (d-- > 0) {
      element += static_cast<size_t>(a.tile_strides[d]);
      address += static_cast<uint64_t>(a.strides[d]) * a.element_bytes;
      if (++at[d] < a.shape[d]) break;
      element -= static_cast<size_t>(a.tile_strides[d] * a.shape[d]);
      address -= static_cast<uint64_t>(a.strides[d] * a.shape[d]) * a.element_bytes;
      at[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

[[nodiscard]] inline uint64_t elements_of(const MemoryAccess& a) {
  uint64_t n = 1;
  for (size_t d = 0; d < a.rank; ++d) n *= static_cast<uint64_t>(a.shape[d]);
  return n;
}

[[nodiscard]] inline size_t allocation_of(uint64_t address) {
  return static_cast<size_t>(Memory::index_of(address));
}
/// Memory that the block has for itself: a worker's allocas are neighbours.
[[nodiscard]] inline bool is_alloca(const Exec& x, uint64_t address) {
  if (x.allocas.empty()) return false;
  const size_t a = allocation_of(address);
  return a >= allocation_of(x.allocas.front()) && a <= allocation_of(x.allocas.back());
}

}  // namespace tile
