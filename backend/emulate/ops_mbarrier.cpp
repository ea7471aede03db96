// Named barriers, mbarriers, and the fence between ordinary accesses and the asynchronous proxy.
#include "backend/emulate/block.h"

namespace tile::emu {
namespace {

void arrive_named(Block& b, Thread& t, uint32_t id, uint32_t count, bool waits) {
  if (id < 1 || id > 15) b.hazard(t, "there is no named barrier ", id, "; they are 1 to 15");
  NamedBarrier& n = b.named[t.rank * 16 + id];
  t.wait_for = id;
  if (count == 0 || count % 32 != 0 || count > b.launch.threads)
    b.hazard(t, "barrier ", id, " for ", count, " threads: not a multiple of 32 up to the block's ", b.launch.threads);
  if (n.arrived == 0) {
    n.expected = count;
    n.first = t.id;
    n.clocks = {};
  } else if (n.expected != count) {
    b.hazard(t, "barrier ", id, ": thread ", b.name(t), " expects ", count, " threads, thread ", b.name(n.first),
             " expects ", n.expected);
  }
  bool seen = false;
  for (const auto& [warp, place] : n.places) {
    if (warp != t.warp()) continue;
    if (place != t.pc)
      b.hazard(t, "divergent barrier ", id, ": lanes of warp ", warp, " come to it at different places");
    seen = true;
  }
  if (!seen) n.places.push_back({t.warp(), t.pc});
  if (b.options.hazards) {
    b.order.expect_more();
    b.order.release(t.id, n.clocks);
  }
  if (waits) n.waiting.push_back(t.id);
  if (++n.arrived < n.expected) {
    if (waits) b.park(t, WaitFor::NamedBarrier);
    return;
  }
  for (const uint32_t id_waiting : n.waiting) {
    if (b.options.hazards) b.order.acquire(id_waiting, n.clocks);
    if (id_waiting != t.id) b.wake(b.threads[id_waiting]);
  }
  n.arrived = 0;
  n.waiting.clear();
  n.places.clear();
}

void named_barrier(Block& b, Thread& t, uint32_t id, uint32_t count) { arrive_named(b, t, id, count, true); }
void named_barrier_arrive(Block& b, Thread& t, uint32_t id, uint32_t count) { arrive_named(b, t, id, count, false); }

void fence_async(Block& b, Thread& t) {
  if (b.options.hazards) b.order.fence_async(t.id);
}


void mbarrier_init(Block& b, Thread& t, uint32_t addr, uint32_t count) {
  addr = b.own_shared(t, addr, 8, 8);
  b.bad_if_mbarrier(t, addr, 8);
  if (b.mbarriers.size() == size_t{Block::kMostMbarriers} * b.launch.cluster)
    b.hazard(t, "more than ", Block::kMostMbarriers, " mbarriers in a block");
  if (count == 0 || count >= 1u << 20) b.hazard(t, "an mbarrier for ", count, " arrivals");
  if (b.options.hazards) {
    b.order.expect_more();
    Observer by(b.order, t.id);
    b.report(t, b.shadow.write(by, addr, 8, b.access(t)));
  }
  Mbarrier m{};
  m.addr = addr;
  m.count = m.pending = count;
  m.site = t.site;
  m.init_thread = t.id;
  m.init_clock = b.options.hazards ? b.order.now(t.id) : 0;
  b.mbarriers.push_back(std::move(m));
}

void mbarrier_arrive(Block& b, Thread& t, uint32_t addr, uint32_t bytes) {
  b.arrive_mbarrier(t, b.find_mbarrier(t, b.own_shared(t, addr, 8, 8)), bytes);
}

/// On an mbarrier of any block of the cluster.
void arrive_cluster(Block& b, Thread& t, uint32_t addr, uint32_t bytes) {
  Mbarrier& m = b.find_mbarrier(t, b.cluster_shared(t, addr, 8, 8));
  if (m.addr / b.launch.window() != t.rank) m.from_others = m.phase + 1;
  b.arrive_mbarrier(t, m, bytes);
}

/// Takes the number of the phase, not its parity as the instruction does: so a wait that the parity would let pass too
/// early, or not at all, is seen.
void mbarrier_wait(Block& b, Thread& t, uint32_t addr, uint32_t phase, uint32_t cluster) {
  addr = b.own_shared(t, addr, 8, 8);
  Mbarrier& m = b.find_mbarrier(t, addr);
  const auto pass = [&] {
    if (b.options.hazards && !cluster && m.from_others == phase + 1)
      b.hazard(t, "waits with the scope of the block for the mbarrier at ", b.shared_text(addr), ", at which threads of another block arrived");
  };
  if (m.phase < phase)
    b.hazard(t, "waits for phase ", phase, " of the mbarrier at ", b.shared_text(addr), ", which is in phase ", m.phase,
             ": the parity lets it pass at once");
  if (m.phase > phase + 1)
    b.hazard(t, "waits for phase ", phase, " of the mbarrier at ", b.shared_text(addr), ", which is in phase ", m.phase,
             " already: the parity blocks it");
  if (m.phase > phase) {
    if (b.options.hazards) b.order.acquire(t.id, m.done);
    return pass();
  }
  t.wait_for = static_cast<uint32_t>(&m - b.mbarriers.data());
  t.wait_phase = phase;
  m.waiting.push_back(t.id);
  b.park(t, WaitFor::Mbarrier);
  pass();
}

}  // namespace

Mbarrier& Block::find_mbarrier(Thread& t, uint32_t addr) {
  for (auto& m : mbarriers) {
    if (m.addr != addr) continue;
    if (options.hazards && !order.knows(t.id, {m.init_clock, m.site, static_cast<uint16_t>(m.init_thread)}))
      hazard(t, "nothing orders this after the initialisation of the mbarrier at ", shared_text(addr), " by thread ",
             name(m.init_thread));
    return m;
  }
  hazard(t, "no mbarrier is initialised at ", shared_text(addr));
}

void Block::arrive_mbarrier(Thread& t, Mbarrier& m, uint32_t bytes) {
  if (m.pending == 0)
    hazard(t, "the mbarrier at ", shared_text(m.addr), " has all ", m.count, " arrivals of phase ", m.phase, " already");
  m.tx += bytes;
  --m.pending;
  if (options.hazards) order.release(t.id, m.arrivals);
  try_complete(m);
  if (failed) throw Stop{};
}

void Block::bad_if_mbarrier(const Thread& t, uint32_t addr, uint32_t bytes) {
  for (const auto& m : mbarriers)
    if (addr < m.addr + 8 && m.addr < addr + bytes) hazard(t, shared_text(addr), " is part of an mbarrier");
}

// May run outside of all fibers: records a failure, does not throw.
void Block::try_complete(Mbarrier& m) {
  if (m.pending != 0) return;
  // All arrivals are in, and only arrivals announce bytes.
  if (m.tx < 0 || (m.tx == 0 && m.loads != 0))
    return record({Code::I0002,
                   m.site,
                   text("bulk loads bring more bytes than were announced in phase ", m.phase, " of the mbarrier at ",
                        shared_text(m.addr)),
                   {}});
  if (m.tx != 0) return;
  ++m.phase;
  m.pending = m.count;
  m.done = m.arrivals;
  if (options.hazards) m.done.known.resize(agents());  // arrivals behind copies alone publish nothing else
  if (options.hazards) m.done.known[mbarrier_agent(static_cast<size_t>(&m - mbarriers.data()))] = m.phase;
  // Waiters learn what this phase published now, not when they run: by then a later phase may be complete.
  for (const uint32_t id : m.waiting) {
    if (options.hazards) order.acquire(id, m.done);
    wake(threads[id]);
  }
  m.waiting.clear();
}

void add_mbarrier_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_named_barrier", NamedBarrier, named_barrier),
      TILE_EMU("emu_named_barrier_arrive", NamedBarrier, named_barrier_arrive),
      TILE_EMU("emu_fence_async", FenceAsync, fence_async),
      TILE_EMU("emu_mbarrier_init", MbarrierInit, mbarrier_init),
      TILE_EMU("emu_mbarrier_arrive", MbarrierArrive, mbarrier_arrive),
      TILE_EMU("emu_mbarrier_arrive_cluster", ArriveCluster, arrive_cluster),
      TILE_EMU("emu_mbarrier_wait", MbarrierWait, mbarrier_wait),
  });
}

}  // namespace tile::emu
