// One worker's state while it runs blocks: storage, coordinates, what stopped it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vm/interp/memory.h"
#include "vm/interp/observer.h"
#include "vm/interp/plan.h"
#include "vm/interp/team.h"

namespace tile {

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
  static constexpr uint32_t kMax = (1u << 24) - 1;
  [[nodiscard]] uint64_t blocks() const { return uint64_t{x} * y * z; }
};

/// What stands for unspecified elements: masked loads and views without padding value, fresh allocas, old values of masked atomics.
enum class Filling : uint8_t {
  Zero,
  NaN,     ///< integers: all bits 1
  Random,  ///< by seed, block, operation and element; the same for every number of threads
};

struct RunOptions {
  unsigned threads = 0;                                     ///< 0: one per core
  uint64_t fuel = 0;                                        ///< steps for each block; 0: unlimited
  uint64_t max_storage = uint64_t{4} << 30;                 ///< bytes that the tiles of one block may take
  std::function<void(const std::string&)> print;            ///< receives whole texts of print_tko and failed assertions, one call at a time
  std::function<void(uint64_t done, uint64_t total)> progress;  ///< blocks; called every 0.1 s while the launch runs, never together with `print`
  const std::atomic<bool>* cancel = nullptr;                ///< set to true to stop early
  Filling unspecified = Filling::Zero;
  uint64_t unspecified_seed = 1;
  Numerics numerics = Numerics::Exact;
  std::optional<uint64_t> schedule;                         ///< blocks interleave by this seed, on one thread (interleaving.h)
  std::optional<uint64_t> order;                            ///< blocks are handed out in an order that follows from this seed
  std::optional<bool> around_caches;                        ///< stores go around the caches; unset: where the arrays are larger than the last cache
  std::vector<Observer*> observers;                         ///< told of steps and accesses; with none the fast path pays nothing
};

struct RunStats {
  uint64_t blocks = 0, steps = 0;
  double seconds = 0;
  unsigned threads = 0;
  uint64_t storage_bytes = 0;                               ///< of one worker
  uint64_t shared_steps = 0;                                ///< times that a thread without a block helped with a step
};

/// Blocks of a launch that are still to be run, [next, end), in a cache line of its own.
struct alignas(64) Share {
  std::atomic<uint64_t> next{0};
  uint64_t end = 0, size = 0;
  std::atomic<bool> begun{false};                           ///< its worker is at work
};

/// State shared by the workers of one launch.
struct Launch {
  const Plan* plan = nullptr;
  Memory* memory = nullptr;
  Grid grid;
  const RunOptions* options = nullptr;
  unsigned threads = 1;                                     ///< workers that run blocks
  size_t allocas = 0;                                       ///< allocations of all workers' allocas, the last ones in memory
  std::span<const uint64_t> globals;                        ///< base address of each global of the module
  std::vector<Share> shares;                                ///< one for each worker
  Team* team = nullptr;                                     ///< where steps may be shared with threads without a block
  bool around_caches = false;                               ///< RunOptions::around_caches, decided
  alignas(64) std::atomic<uint64_t> done{0};                ///< apart from what workers only read
  std::atomic<uint64_t> steps{0};
  alignas(64) std::atomic<bool> stop{false};
  std::mutex mutex;                                         ///< guards printing, diags and assert_failed
  Diagnostics* diags = nullptr;
  bool assert_failed = false;
};

struct FusedState;

class Exec {
 public:
  Exec(Launch& launch, std::byte* storage, std::byte* scratch, std::span<const uint64_t> allocas)
      : launch(launch), plan(*launch.plan), memory(*launch.memory), scratch(scratch), allocas(allocas),
        observed(!launch.options->observers.empty()),
        runs_wanted(launch.options->observers.size() == 1 && launch.options->observers[0]->takes_runs()), told_(launch.options->observers.size() == 1 ? launch.options->observers[0]->told() : nullptr),
        storage_(storage), constants_(launch.plan->constants_.data()) {}

  template <class T = void>
  [[nodiscard]] T* at(Slot s) const {
    std::byte* p = (s & kConstSlot) ? const_cast<std::byte*>(constants_) + (s & ~kConstSlot) : storage_ + s;
    return reinterpret_cast<T*>(p);
  }
  /// Runs steps [begin, end) of the plan.
  Flow run(uint32_t begin, uint32_t end) { return observed ? run_steps<true>(begin, end) : run_steps<false>(begin, end); }
  void run_block(uint64_t linear);

  /// Reports a trap at the step's place and gives Flow::Trap.
  Flow trap(Code code, const Step& step, std::string message, std::string help = {});
  void print(const std::string& text);
  /// Fills elements whose values the language leaves open; `first` is the number of the first in the step's tile.
  void unspecified(const Step& step, ElementType e, std::byte* out, size_t n, size_t first = 0) const;
  void copy(const std::vector<Move>& moves, Slot temp) const;
  /// strided_copy() by several threads. Elements of the destination must not share memory.
  void copy_box(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, const std::byte* src, std::span<const int64_t> src_strides,
                std::span<const int64_t> shape);
  static constexpr size_t kSplit = 1 << 14;  ///< elements whose computation is worth another thread: some microseconds
  /// Calls f(begin, end, scratch) for ranges that together are [0, n), on this thread and others at the same time, each with scratch memory
  /// of its own; returns when all calls have ended. Ranges have at least `least` elements; f must not trap or call observers.
  /// @param each  ranges for each thread: more than one where a thread may be late, one where each range costs something
  template <class F>
  void split(size_t n, size_t least, const F& f, size_t each = 4) {
    const size_t threads = n >= 2 * least && launch.team ? launch.team->helpers() + size_t{1} : 1;
    if (threads == 1) return f(size_t{0}, n, scratch);
    struct Work {
      const F& f;
      size_t n, pieces;
    } const work{f, n, std::min({n / least, threads * each, Team::kMostPieces})};
    launch.team->share(
        worker, work.pieces,
        [](const void* p, size_t k, std::byte* with) {
          const Work& w = *static_cast<const Work*>(p);
          w.f(w.n / w.pieces * k + std::min(k, w.n % w.pieces), w.n / w.pieces * (k + 1) + std::min(k + 1, w.n % w.pieces), with);
        },
        &work, scratch);
  }
  /// Tells the observers of an access; call only if `observed`.
  void notify(const Step& step, const MemoryAccess& access);
  /// Tells the observer of several accesses; call only if `runs_wanted`. False: it wants them one by one.
  bool notify(const Step& step, const MemoryRuns& accesses);

  Launch& launch;
  const Plan& plan;
  Memory& memory;
  std::byte* scratch;
  std::span<const uint64_t> allocas;
  uint32_t block[3] = {0, 0, 0};
  const bool observed;
  const bool runs_wanted;                 ///< the only observer takes all accesses of a step at once
  std::vector<MemoryRuns::Run> runs;      ///< of the step that runs
  unsigned worker = 0;                    ///< number of the thread that runs this block
  std::shared_ptr<FusedState> fused;      ///< working memory of run_fused(), kept from group to group
  bool put_off = false;                   ///< groups that end a block may wait for run_put_off()
  uint64_t steps = 0;
  uint64_t fuel_left = ~uint64_t{0};

 private:
  template <bool kObserved>
  Flow run_steps(uint32_t begin, uint32_t end);
  const uint8_t* told_;                   ///< of the only observer
  std::byte* storage_;
  const std::byte* constants_;
  uint64_t last_block_ = 0;
};

/// Runs the plan once for each block of the grid.
/// @param params   one per entry parameter: the bits of a scalar, or the address of a pointer
/// @param globals  base addresses, one per global of the module
/// @error T01xx, L0104 fuel, E0903 no memory for the workers
[[nodiscard]] Result<RunStats> run_plan(const Plan& plan, Memory& memory, std::span<const uint64_t> globals, Grid grid, std::span<const uint64_t> params,
                                        const RunOptions& options, Diagnostics& diags);

/// Adds the module's globals to `memory`, initialised; gives their base addresses in module order.
[[nodiscard]] Result<std::vector<uint64_t>> load_globals(const Module& module, Memory& memory, Diagnostics& diags);

}  // namespace tile
