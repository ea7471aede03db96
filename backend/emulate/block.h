// State of one running block and the frame around every device operation. One OS thread runs a block.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

#include "backend/emulate/emulate.h"
#include "backend/emulate/happens_before.h"
#include "backend/emulate/shadow.h"
#include "backend/emulate/tensor_map.h"
#include "backend/emulate/mma.h"
#include "backend/emulate/wgmma.h"

namespace tile::emu {

struct Block;

/// Device operations by name, for messages.
#define TILE_DEVICE_OPS(X)                                                                                      \
  X(Start, "start") X(Poll, "loop") X(Identity, "identity") X(LoadShared, "load shared") X(StoreShared, "store shared")         \
  X(LoadGlobal, "load global") X(StoreGlobal, "store global") X(Atomic, "atomic") X(Fence, "fence")             \
  X(Barrier, "barrier") X(Shuffle, "shuffle") X(Vote, "vote") X(CpAsync, "cp.async")                            \
  X(CpAsyncCommit, "cp.async.commit") X(CpAsyncWait, "cp.async.wait") X(CpAsyncArrive, "cp.async arrive")       \
  X(Ldmatrix, "ldmatrix") X(Mma, "mma")                                                                         \
  X(WarpSync, "warp barrier") X(Uniform, "uniform value") X(Stmatrix, "stmatrix")                               \
  X(NamedBarrier, "named barrier") X(MbarrierInit, "mbarrier init") X(MbarrierArrive, "mbarrier arrive")        \
  X(MbarrierWait, "mbarrier wait") X(FenceAsync, "proxy fence") X(TmaLoad, "bulk load")                         \
  X(TmaStore, "bulk store") X(BulkCommit, "bulk commit") X(BulkWait, "bulk wait") X(Wgmma, "wgmma")             \
  X(WgmmaFence, "wgmma fence") X(WgmmaCommit, "wgmma commit") X(WgmmaWait, "wgmma wait")                        \
  X(Accumulator, "wgmma accumulator access") X(MaxRegisters, "setmaxnreg") X(Math, "math") X(Trap, "trap")      \
  X(BulkReduce, "bulk reduction") X(ClusterArrive, "cluster arrive") X(ClusterWait, "cluster wait")             \
  X(MapShared, "mapa") X(LoadCluster, "load shared of the cluster") X(StoreCluster, "store shared of the cluster") \
  X(AtomicCluster, "atomic shared of the cluster") X(ArriveCluster, "mbarrier arrive of the cluster")           \
  X(Exit, "exit")
enum class DeviceOp : uint8_t {
#define X(name, text) name,
  TILE_DEVICE_OPS(X)
#undef X
};
const char* op_name(DeviceOp op);

/// Thrown inside an operation after Block::fail has recorded why; never leaves it, since compiled frames cannot be
/// unwound.
struct Stop {};

enum class WaitFor : uint8_t { Nothing, Warp, Warpgroup, Barrier, NamedBarrier, Mbarrier, Cluster };

struct CpAsyncCopy {
  uint32_t addr, bytes, size, group, site;
  const std::byte* from;                              ///< of the first `size` bytes; zeros follow
  bool copied;
};

/// An arrival of a thread at an mbarrier that happens when the copies which the thread started before are done.
struct CpAsyncArrival {
  uint32_t mbarrier, phase, site;
  std::vector<CpAsyncCopy> copies;                    ///< those that no earlier arrival waits for
};

struct Thread {
  Block* block = nullptr;
  uint32_t id = 0;                                    ///< in the cluster: blocks one behind the other
  uint32_t local = 0, rank = 0;                       ///< in its block; the block's number in the cluster
  uint32_t base = 0;                                  ///< of its block's shared memory in that of the cluster
  uint32_t rank_bits = 0;                             ///< the rank as shared addresses of the block hold it
  uint32_t cluster_phase = 0;                         ///< of the cluster's barrier, at which the thread arrived
  bool cluster_arrived = false;                       ///< and has not waited yet
  uint32_t site = 0;                                  ///< operation of the program under way
  const void* pc = nullptr;                           ///< its place in the compiled code: tells calls of one site apart
  DeviceOp op = DeviceOp::Start;
  WaitFor wait = WaitFor::Nothing;
  bool done = false;
  boost::context::detail::fcontext_t context = nullptr;
  uint32_t cp_committed = 0;                          ///< groups
  std::vector<CpAsyncCopy> copies;                    ///< not yet waited for, oldest first; without those of `arrivals`
  std::deque<CpAsyncArrival> arrivals;                ///< still to come, oldest first
  uint32_t wait_for = 0, wait_phase = 0;              ///< number of the mbarrier or named barrier, for reports
  // wgmma: groups committed and waited for; an instruction issued since the last commit; no accumulator touched since
  // the last fence.
  uint32_t wg_committed = 0, wg_waited = 0;
  bool wg_open = false, wg_fenced = false;
  std::vector<std::pair<const void*, uint32_t>> accumulators;  ///< newest group that writes it
  uint32_t bulk_committed = 0, bulk_waited = 0, bulk_issued = 0,
           bulk_site = 0;  ///< groups of bulk stores; site of the last store
  void reset_matrix() {
    wg_committed = wg_waited = bulk_committed = bulk_waited = bulk_issued = 0;
    wg_open = wg_fenced = false;
    accumulators.clear();
  }
  [[nodiscard]] uint32_t warp() const { return id / 32; }  ///< of the cluster
  [[nodiscard]] uint32_t lane() const { return id % 32; }
};

/// The lanes of a warp coming together in one instruction; the last one executes it for all.
struct Meeting {
  uint32_t arrived = 0;
  uint32_t first = 0;                                 ///< thread that came first
  std::array<void*, 32> arg{};
};

inline constexpr uint32_t kWarpgroup = 128;             ///< threads

struct GroupMeeting {
  uint32_t arrived = 0, first = 0;
  std::array<void*, kWarpgroup> arg{};
};

struct NamedBarrier {
  uint32_t expected = 0, arrived = 0, first = 0;
  std::vector<uint32_t> waiting;
  std::vector<std::pair<uint32_t, const void*>> places;  ///< of each warp: its lanes must come to one place
  Clocks clocks;
};

struct Mbarrier {
  uint32_t addr, count, site, init_thread, init_clock;
  uint32_t pending;                                   ///< arrivals that the phase under way lacks
  uint32_t phase = 0;                                 ///< completed phases
  int64_t tx = 0;                                     ///< bytes announced and not yet come
  uint32_t loads = 0;                                 ///< bulk loads in flight for this phase
  uint32_t from_others = 0;                           ///< phase, plus one, in which threads of another block arrived last
  Clocks arrivals, done;                              ///< so far; of the last completed phase
  std::vector<uint32_t> waiting;                      ///< threads, for the end of the phase under way
};

struct BulkLoad {
  EmulatedTensorMap map;
  std::array<int32_t, 5> at;
  uint32_t addr, bytes, mbarrier, phase, site, thread;
};

/// A store, or a reduction of global memory by what is stored.
struct BulkStore {
  EmulatedTensorMap map;
  std::array<int32_t, 5> at;
  uint32_t addr, bytes, thread, group, site;
  uint32_t reduction;                                 ///< kind of RmwOp in backend/ptx/device.h; kStores: none
  uint64_t to;                                        ///< global address of plain copies, which have no map
  std::vector<std::byte> data;                        ///< what was read, once it was
  bool read = false;
};

inline constexpr uint32_t kStores = ~uint32_t{0};

/// A use of a block's shared memory by another block of its cluster: it must be over before the block ends.
struct RemoteUse {
  uint32_t rank, agent, clock, site, thread;
};

/// The barrier of all threads of a cluster.
struct ClusterBarrier {
  uint32_t phase = 0, missing = 0, arrived = 0;       ///< running threads that have not arrived; those that have
  Clocks arrivals, done;
  std::vector<uint32_t> waiting;
};

struct WgmmaOp {
  WgmmaShape shape;
  uint64_t a, b;                                      ///< descriptors; a: none if registers
  bool scale;
  uint32_t group;
  std::array<void*, kWarpgroup> d;
  std::vector<uint32_t> a_registers;                  ///< 4 words of each thread, or empty
};

/// What all blocks of a launch share.
struct Launch {
  const EmulatedKernel* kernel;
  std::array<uint32_t, 3> grid;
  const uint64_t* params;
  const EmulatedMemory* memory;
  const EmulateOptions* options;
  uint32_t threads, shared_bytes;                     ///< of a block
  uint32_t cluster = 1;                               ///< blocks of a cluster, neighbours along x
  std::atomic<bool> stop{false};
  /// Bytes from the shared memory of one block of a cluster to that of the next, where the emulation keeps them.
  [[nodiscard]] uint32_t window() const { return (kEmulatedSharedBase + shared_bytes + 1023) / 1024 * 1024; }
  [[nodiscard]] uint32_t all_threads() const { return threads * cluster; }
};

struct Failure {
  Code code = Code::I0002;
  uint32_t site = kNone;
  std::string message;
  std::vector<std::pair<uint32_t, std::string>> notes;  ///< site and text
  uint32_t rank = 0;                                    ///< of the block in its cluster; set by Block::record
  bool trapped = false;                                 ///< by the kernel's own trap
};

/// Builds a text once a rule is broken; built before, texts would cost more than the checks.
template <class... T>
[[gnu::noinline, gnu::cold]] std::string text(const T&... parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}
std::string hex(uint64_t v);
/// One block, or the blocks of a cluster.
struct Block {
  Block(Launch& launch, const std::vector<char*>& stacks, size_t stack_bytes);
  Block(const Block&) = delete;
  /// Runs block, or cluster, number `linear` of the grid; false if it failed (see failure) or was stopped.
  bool run(uint64_t linear);

  Launch& launch;
  const EmulateOptions& options;
  const std::vector<char*>& stacks;
  const size_t stack_bytes;
  uint32_t index[3] = {0, 0, 0};                      ///< of the cluster's first block
  bool failed = false;
  Failure failure;
  uint64_t operations = 0, switches = 0;              ///< of all blocks run so far

  // Random numbers: the same for a block whichever OS thread runs it.
  uint64_t random_state = 1;
  uint64_t random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
  }
  bool chance(unsigned one_in) { return random() % one_in == 0; }
  [[nodiscard]] bool at_once(unsigned one_in) {
    return options.policy == EmulateOptions::Early || (options.policy == EmulateOptions::Random && chance(one_in));
  }

  // Fibers.
  boost::context::detail::fcontext_t scheduler = nullptr;
  std::vector<Thread> threads;
  std::vector<uint32_t> ready;                        ///< ring of capacity 2^n
  uint32_t ready_head = 0, ready_count = 0;
  uint32_t live = 0;
  void wake(Thread& t) {
    t.wait = WaitFor::Nothing;
    ready[(ready_head + ready_count++) & (ready.size() - 1)] = t.id;
  }
  void park(Thread& t, WaitFor why);
  void leave(Thread& t);                              ///< parks for good
  void yield(Thread& t) {
    wake(t);
    park(t, WaitFor::Nothing);
  }
  void exit(Thread& t);
  void deadlock();

  // An operation takes one unit of its thread's slice; the end of a slice looks at fuel and cancellation, and may give
  // way.
  uint32_t slice = 0, slice_length = 0;
  uint64_t fuel = 0;
  void tick(Thread& t) {
    if (--slice == 0) slice_end(t);
  }
  void slice_end(Thread& t);
  void new_slice();

  // Failing.
  void record(Failure f);
  [[noreturn]] void fail(Failure f) {
    record(std::move(f));
    throw Stop{};
  }
  /// A broken rule of the machine: a fault of the code generator.
  template <class... T>
  [[noreturn, gnu::noinline, gnu::cold]] void hazard(const Thread& t, const T&... parts) {
    fail({Code::I0002, t.site, text(op_name(t.op), " by thread ", name(t), ": ", parts...), {}});
  }
  /// "5", or "5 of block 1" where there are several.
  [[nodiscard]] std::string name(const Thread& t) const;
  [[nodiscard]] std::string name(uint32_t id) const { return name(threads[id]); }
  /// "byte 64", counted from the block's first, or "byte 64 of block 1".
  [[nodiscard]] std::string shared_text(uint32_t addr) const;
  uint32_t running = 0;                               ///< the thread that runs now, or ran last

  // Shared memory: addresses of compiled code are counted from kEmulatedSharedBase on, with the block's rank above. Here the blocks of a
  // cluster lie one window behind the other.
  std::unique_ptr<std::byte[]> storage;
  std::byte* shared = nullptr;                        ///< host address of shared address 0
  HappensBefore order;
  Shadow shadow{order};
  alignas(16) std::byte sink[64];                     ///< where accesses with a false predicate go
  [[nodiscard]] Access access(const Thread& t) const { return {order.now(t.id), t.site, static_cast<uint16_t>(t.id)}; }
  /// An address in the thread's own block, as one in the cluster's windows.
  [[nodiscard]] uint32_t own_shared(const Thread& t, uint32_t addr, uint32_t bytes, uint32_t align) {
    addr -= t.rank_bits;
    if (addr < kEmulatedSharedBase || uint64_t{addr} + bytes > kEmulatedSharedBase + launch.shared_bytes ||
        addr % align != 0) [[unlikely]]
      bad_shared(t, addr + t.rank_bits, bytes, align);
    return t.base + addr;
  }
  /// The same for an address of mapa, or one in the thread's own block. Notes the use.
  [[nodiscard]] uint32_t cluster_shared(const Thread& t, uint32_t addr, uint32_t bytes, uint32_t align);
  /// Of another block: whose shared memory exists only after a barrier of the cluster, and until the block ends.
  void use_remote(const Thread& t, uint32_t rank);
  std::vector<RemoteUse> remote;
  ClusterBarrier cluster;
  void complete_cluster_barrier();
  void check_remote_uses();
  [[noreturn]] void bad_shared(const Thread& t, uint32_t addr, uint32_t bytes, uint32_t align);
  void report(const Thread& t, const Conflict& c) {
    if (c.hazard != Hazard::None) [[unlikely]] conflict(t, c);
  }
  [[noreturn]] void conflict(const Thread& t, const Conflict& c);

  // Global memory.
  std::byte* global(const Thread& t, uint64_t addr, uint32_t bytes, bool writes) {
    std::byte* p = launch.memory->resolve(addr, bytes);
    if (!p || (addr & (bytes - 1)) != 0 || (writes && launch.memory->find(addr)->read_only)) [[unlikely]]
      bad_global(t, addr, bytes, writes);
    return p;
  }
  /// To be read; any number of bytes, whatever their alignment.
  const std::byte* global_bytes(const Thread& t, uint64_t addr, uint32_t bytes) {
    const std::byte* p = launch.memory->resolve(addr, bytes);
    if (!p) [[unlikely]] bad_global(t, addr, bytes, false);
    return p;
  }
  [[noreturn]] void bad_global(const Thread& t, uint64_t addr, uint32_t bytes, bool writes);

  // Meetings.
  std::vector<Meeting> meetings;                      ///< one per warp
  struct BlockBarrier {
    uint32_t arrived = 0, first = 0;                  ///< threads waiting; the one that came first
  };
  std::vector<BlockBarrier> barriers;                 ///< one per block
  template <class F>
  void meet_warp(Thread& t, void* arg, F&& execute) {
    Meeting& m = meetings[t.warp()];
    arrive_warp(t, m);
    m.arg[t.lane()] = arg;
    m.arrived |= uint32_t{1} << t.lane();
    if (m.arrived != ~uint32_t{0}) return park(t, WaitFor::Warp);
    m.arrived = 0;
    execute(m.arg);
    for (uint32_t l = 0; l < 32; ++l)
      if (l != t.lane()) wake(threads[t.warp() * 32 + l]);
  }
  void arrive_warp(Thread& t, Meeting& m);            ///< checks that the lanes come to the same place

  // Asynchronous work. Agents of the happens-before order: threads, mbarriers (for the loads that complete on them;
  // clock = phase), matrix units of warpgroups (clock = wgmma group), threads as issuers of bulk stores (clock = bulk
  // group).
  static constexpr uint32_t kMostMbarriers = 64, kMostBulkThreads = 32;  // of a block
  std::vector<Mbarrier> mbarriers;
  std::vector<NamedBarrier> named;                    ///< 16 of each block
  std::vector<GroupMeeting> group_meetings;           ///< one per whole warpgroup
  static constexpr uint32_t kNoGroup = ~uint32_t{0};
  [[nodiscard]] uint32_t group_of(const Thread& t) const {
    const uint32_t groups = launch.threads / kWarpgroup;
    return t.local / kWarpgroup < groups ? t.rank * groups + t.local / kWarpgroup : kNoGroup;
  }
  [[nodiscard]] uint32_t first_of_group(uint32_t group) const {
    const uint32_t groups = launch.threads / kWarpgroup;
    return group / groups * launch.threads + group % groups * kWarpgroup;
  }
  std::vector<std::deque<WgmmaOp>> wgmma;             ///< per warpgroup, in order
  std::vector<BulkLoad> loads;
  std::vector<BulkStore> stores;
  std::vector<uint32_t> bulk_threads;
  [[nodiscard]] uint32_t mbarrier_agent(size_t i) const { return launch.all_threads() + static_cast<uint32_t>(i); }
  [[nodiscard]] uint32_t matrix_agent(uint32_t warpgroup) const {
    return launch.all_threads() + kMostMbarriers * launch.cluster + warpgroup;
  }
  [[nodiscard]] uint32_t bulk_agent(size_t i) const {
    return matrix_agent(launch.threads / kWarpgroup * launch.cluster) + static_cast<uint32_t>(i);
  }
  [[nodiscard]] uint32_t agents() const { return bulk_agent(size_t{kMostBulkThreads} * launch.cluster); }
  void reset_async();
  void end_of_block();                                ///< what is in flight ends
  void check_matrix_exit(const Thread& t);
  void check_mbarriers(const Thread& t, uint32_t addr, uint32_t bytes) {
    if (!mbarriers.empty()) [[unlikely]] bad_if_mbarrier(t, addr, bytes);
  }
  void bad_if_mbarrier(const Thread& t, uint32_t addr, uint32_t bytes);
  void check_mbarriers_of(const Thread& t, uint32_t addr, uint32_t bytes);  ///< unless the access is an arrival
  void finish(CpAsyncCopy& c);
  void deliver_arrivals(Thread& t);                   ///< the oldest ones, as far as their copies are done
  void finish_something();                            ///< lets some asynchronous work happen
  bool finish_waking();                               ///< only that which may wake a thread; false if there is none
  void finish_load(size_t i);
  void read_store(BulkStore& s);
  void finish_store(size_t i);
  void finish_wgmma(uint32_t warpgroup, uint32_t group, size_t at_most = ~size_t{0});
  [[nodiscard]] Mbarrier& find_mbarrier(Thread& t, uint32_t addr);  ///< initialised, and the thread knows it
  void arrive_mbarrier(Thread& t, Mbarrier& m, uint32_t bytes);
  void try_complete(Mbarrier& m);
  [[nodiscard]] std::string agent_text(const Access& a) const;

  template <class F>
  void meet_group(Thread& t, void* arg, F&& execute) {
    const uint32_t group = group_of(t), first = first_of_group(group);
    GroupMeeting& m = group_meetings[group];
    arrive_group(t, m);
    m.arg[t.local % kWarpgroup] = arg;
    if (++m.arrived < kWarpgroup) return park(t, WaitFor::Warpgroup);
    m.arrived = 0;
    execute(m.arg);
    for (uint32_t i = 0; i < kWarpgroup; ++i)
      if (first + i != t.id) wake(threads[first + i]);
  }
  /// Threads that meet must be in the same operation; `group` names who meets.
  void check_same_operation(const Thread& t, const Thread& other, const char* group);
  void arrive_group(Thread& t, GroupMeeting& m);
};

/// What compiled code calls: `emu_*(thread, site, ...)`. A failing operation is an exception inside it, so that its
/// locals are destroyed; the fiber then stops for good.
template <DeviceOp kOp, auto F>
struct Entry;
template <DeviceOp kOp, class R, class... A, R (*F)(Block&, Thread&, A...)>
struct Entry<kOp, F> {
  [[gnu::noinline]] static R call(Thread* t, uint32_t site, A... a) noexcept {
    Block& b = *t->block;
    t->site = site;
    t->pc = __builtin_return_address(0);
    t->op = kOp;
    try {
      b.tick(*t);
      return F(b, *t, a...);
    } catch (const Stop&) {
    } catch (const std::bad_alloc&) {
      b.record({Code::E0903, site, {}, {}});
    }
    b.leave(*t);
    __builtin_unreachable();
  }
};

void add_memory_symbols(std::vector<EmulationSymbol>& out);
void add_warp_symbols(std::vector<EmulationSymbol>& out);
void add_math_symbols(std::vector<EmulationSymbol>& out);
void add_mbarrier_symbols(std::vector<EmulationSymbol>& out);
void add_bulk_symbols(std::vector<EmulationSymbol>& out);
void add_wgmma_symbols(std::vector<EmulationSymbol>& out);
void add_cluster_symbols(std::vector<EmulationSymbol>& out);
#define TILE_EMU(name, op, function)                                     \
  EmulationSymbol {                                                      \
    name, reinterpret_cast<void*>(&Entry<DeviceOp::op, &function>::call) \
  }

}  // namespace tile::emu
