// What blocks of a cluster do with each other: their barrier, and accesses to each other's shared memory.
#include "backend/emulate/atomics.h"
#include "backend/emulate/block.h"

namespace tile::emu {
namespace {

uint32_t cluster_rank(Block&, Thread& t) { return t.rank; }
uint32_t cluster_size(Block& b, Thread&) { return b.launch.cluster; }

void cluster_arrive(Block& b, Thread& t) {
  if (t.cluster_arrived) b.hazard(t, "arrives twice without a wait between");
  b.meet_warp(t, nullptr, [](std::array<void*, 32>&) {});  // the instruction is for whole warps
  t.cluster_arrived = true;
  t.cluster_phase = b.cluster.phase;
  if (b.options.hazards) {
    b.order.expect_more();
    b.order.release(t.id, b.cluster.arrivals);
  }
  ++b.cluster.arrived;
  --b.cluster.missing;
  b.complete_cluster_barrier();
}

void cluster_wait(Block& b, Thread& t) {
  if (!t.cluster_arrived) b.hazard(t, "waits without having arrived");
  b.meet_warp(t, nullptr, [](std::array<void*, 32>&) {});
  t.cluster_arrived = false;
  if (t.cluster_phase == b.cluster.phase) {
    b.cluster.waiting.push_back(t.id);
    return b.park(t, WaitFor::Cluster);
  }
  // Nobody arrives for the next phase's end before this thread does, so that `done` is still that of its phase.
  if (b.options.hazards) b.order.acquire(t.id, b.cluster.done);
}

uint32_t map_shared(Block& b, Thread& t, uint32_t addr, uint32_t rank) {
  if (rank >= b.launch.cluster) b.hazard(t, "a cluster of ", b.launch.cluster, " blocks has no block ", rank);
  if (addr >> kEmulatedRankShift != t.rank) b.hazard(t, "the address is one of another block already");
  return addr - t.rank_bits + (rank << kEmulatedRankShift);
}

std::byte* load_cluster(Block& b, Thread& t, uint32_t addr, uint32_t bytes) {
  addr = b.cluster_shared(t, addr, bytes, bytes);
  if (b.options.hazards) {
    Observer by(b.order, t.id);
    b.report(t, b.shadow.read(by, addr, bytes, b.access(t)));
  }
  return b.shared + addr;
}

std::byte* store_cluster(Block& b, Thread& t, uint32_t addr, uint32_t bytes) {
  addr = b.cluster_shared(t, addr, bytes, bytes);
  if (b.options.hazards) {
    Observer by(b.order, t.id);
    b.report(t, b.shadow.write(by, addr, bytes, b.access(t)));
  }
  return b.shared + addr;
}

uint64_t atomic_cluster(Block& b, Thread& t, uint32_t op, uint32_t bits, uint64_t value, uint32_t addr) {
  if (bits != 32 && bits != 64) b.hazard(t, "no atomic operation on shared memory has ", bits, " bits");
  addr = b.cluster_shared(t, addr, bits / 8, bits / 8);
  if (b.options.hazards) {
    b.order.expect_more();
    Access who = b.access(t);
    who.atomic = true;
    Observer by(b.order, t.id);
    b.report(t, b.shadow.atomic(by, addr, bits / 8, who));
  }
  return rmw(b.shared + addr, op, bits, false, value);
}

}  // namespace

void Block::use_remote(const Thread& t, uint32_t rank) {
  if (!options.hazards || rank == t.rank) return;
  const uint32_t first = rank * launch.threads;
  for (uint32_t u = first; u < first + launch.threads; ++u)
    if (order.known(t.id, u) >= 1) return;
  hazard(t, "nothing orders this after the start of block ", rank, " of the cluster, whose shared memory it uses");
}

uint32_t Block::cluster_shared(const Thread& t, uint32_t addr, uint32_t bytes, uint32_t align) {
  const uint32_t rank = addr >> kEmulatedRankShift;
  if (rank >= launch.cluster) bad_shared(t, addr, bytes, align);
  addr = own_shared(t, addr - (rank << kEmulatedRankShift) + t.rank_bits, bytes, align) - t.base + rank * launch.window();
  check_mbarriers_of(t, addr, bytes);
  if (rank == t.rank || !options.hazards) return addr;
  use_remote(t, rank);
  const uint32_t now = order.now(t.id);
  for (RemoteUse& u : remote)
    if (u.rank == rank && u.agent == t.id) {
      u.clock = now, u.site = t.site;
      return addr;
    }
  remote.push_back({rank, t.id, now, t.site, t.id});
  return addr;
}

void Block::check_mbarriers_of(const Thread& t, uint32_t addr, uint32_t bytes) {
  if (t.op != DeviceOp::ArriveCluster) check_mbarriers(t, addr, bytes);
}

// May run outside of all fibers.
void Block::complete_cluster_barrier() {
  if (cluster.missing != 0 || cluster.arrived == 0) return;
  ++cluster.phase;
  cluster.arrived = 0;
  cluster.missing = live;
  cluster.done = std::move(cluster.arrivals);
  cluster.arrivals = {};
  for (const uint32_t id : cluster.waiting) {
    if (options.hazards) order.acquire(id, cluster.done);
    wake(threads[id]);
  }
  cluster.waiting.clear();
}

/// A block's shared memory is gone once its last thread has ended. So one of its threads must know of each use by others, in whatever order they ran.
void Block::check_remote_uses() {
  if (!options.hazards || failed) return;
  for (const RemoteUse& u : remote) {
    bool known = false;
    const uint32_t first = u.rank * launch.threads;
    for (uint32_t id = first; id < first + launch.threads && !known; ++id) known = order.known(id, u.agent) >= u.clock;
    if (known) continue;
    running = u.thread;
    return record({Code::I0002,
                   u.site,
                   text("thread ", name(u.thread), " uses the shared memory of block ", u.rank,
                        ", and nothing keeps that block from ending before"),
                   {}});
  }
}

void add_cluster_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_cluster_rank", Identity, cluster_rank),
      TILE_EMU("emu_cluster_size", Identity, cluster_size),
      TILE_EMU("emu_cluster_arrive", ClusterArrive, cluster_arrive),
      TILE_EMU("emu_cluster_wait", ClusterWait, cluster_wait),
      TILE_EMU("emu_map_shared", MapShared, map_shared),
      TILE_EMU("emu_load_cluster", LoadCluster, load_cluster),
      TILE_EMU("emu_store_cluster", StoreCluster, store_cluster),
      TILE_EMU("emu_atomic_cluster", AtomicCluster, atomic_cluster),
  });
}

}  // namespace tile::emu
