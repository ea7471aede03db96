// Loads, stores, atomics, fences and cp.async. A load or store checks and gives the host address; compiled code then
// does the access.
#include <algorithm>
#include <cstring>

#include "backend/emulate/atomics.h"
#include "backend/emulate/block.h"

namespace tile::emu {
namespace {

std::byte* nowhere(Block& b) {
  std::memset(b.sink, 0, sizeof b.sink);
  return b.sink;
}

std::byte* load_shared(Block& b, Thread& t, uint32_t addr, uint32_t bytes, uint32_t pred) {
  if (!pred) return nowhere(b);
  addr = b.own_shared(t, addr, bytes, bytes);
  b.check_mbarriers(t, addr, bytes);
  if (b.options.hazards) {
    Observer by(b.order, t.id);
    b.report(t, b.shadow.read(by, addr, bytes, b.access(t)));
  }
  return b.shared + addr;
}

std::byte* store_shared(Block& b, Thread& t, uint32_t addr, uint32_t bytes, uint32_t pred) {
  if (!pred) return nowhere(b);
  addr = b.own_shared(t, addr, bytes, bytes);
  b.check_mbarriers(t, addr, bytes);
  if (b.options.hazards) {
    Observer by(b.order, t.id);
    b.report(t, b.shadow.write(by, addr, bytes, b.access(t)));
  }
  return b.shared + addr;
}

std::byte* load_global(Block& b, Thread& t, uint64_t addr, uint32_t bytes, uint32_t pred) {
  return pred ? b.global(t, addr, bytes, false) : nowhere(b);
}

std::byte* store_global(Block& b, Thread& t, uint64_t addr, uint32_t bytes, uint32_t pred) {
  return pred ? b.global(t, addr, bytes, true) : nowhere(b);
}

uint64_t atomic_rmw(Block& b, Thread& t, uint32_t op, uint32_t bits, uint32_t is_bf16, uint64_t value, uint64_t addr,
                    uint32_t pred) {
  if (!pred) return 0;
  std::byte* p = b.global(t, addr, bits / 8, true);
  if (bits != 16 && bits != 32 && bits != 64) b.hazard(t, "no atomic operation has ", bits, " bits");
  return rmw(p, op, bits, is_bf16 != 0, value);
}

uint64_t atomic_cas(Block& b, Thread& t, uint32_t bits, uint64_t expected, uint64_t desired, uint64_t addr,
                    uint32_t pred) {
  if (!pred) return 0;
  std::byte* p = b.global(t, addr, bits / 8, true);
  switch (bits) {
    case 16: return cas<uint16_t>(p, expected, desired);
    case 32: return cas<uint32_t>(p, expected, desired);
    case 64: return cas<uint64_t>(p, expected, desired);
    default: b.hazard(t, "no atomic operation has ", bits, " bits");
  }
}

void fence(Block&, Thread&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

// --- cp.async ---

void cp_async(Block& b, Thread& t, uint32_t addr, uint64_t from, uint32_t bytes, uint32_t size, uint32_t pred) {
  if (!pred) return;
  addr = b.own_shared(t, addr, bytes, bytes);
  b.check_mbarriers(t, addr, bytes);
  if (size > bytes) b.hazard(t, "copies ", size, " bytes into ", bytes);
  // Memory beyond `size` is not touched; the address is a multiple of `bytes` all the same.
  if (size != 0 && from % bytes != 0) b.hazard(t, "global address ", hex(from), " is not a multiple of ", bytes);
  const std::byte* source = size == 0 ? nullptr : b.global_bytes(t, from, size);
  if (b.options.hazards) {
    Access who = b.access(t);
    who.clock = kInFlight;
    Observer by(b.order, t.id);
    b.report(t, b.shadow.write(by, addr, bytes, who));
  }
  t.copies.push_back({addr, bytes, size, t.cp_committed + 1, t.site, source, false});
  if (b.at_once(2)) {
    b.finish(t.copies.back());
  } else {
    std::memset(b.shared + addr, 0xFE, bytes);  // what is in flight must not be read: make that show
  }
}

void cp_async_commit(Block&, Thread& t) { ++t.cp_committed; }

void cp_async_wait(Block& b, Thread& t, uint32_t pending) {
  const uint32_t group = t.cp_committed - std::min(t.cp_committed, pending);
  size_t n = 0;
  for (; n < t.copies.size() && t.copies[n].group <= group; ++n) {
    CpAsyncCopy& c = t.copies[n];
    b.finish(c);
    if (b.options.hazards) {
      Access was = b.access(t);
      was.clock = kInFlight;
      was.site = c.site;
      b.shadow.complete(c.addr, c.bytes, was, b.order.now(t.id));
    }
  }
  t.copies.erase(t.copies.begin(), t.copies.begin() + static_cast<std::ptrdiff_t>(n));
  for (CpAsyncArrival& a : t.arrivals)
    for (CpAsyncCopy& c : a.copies)
      if (c.group <= group) b.finish(c);
  b.deliver_arrivals(t);
  if (b.failed) throw Stop{};
}

/// The thread arrives at an mbarrier when all copies that it has started are done; it does not wait. Those who wait for the phase know
/// the copies then, but not what else the thread did.
void cp_async_arrive(Block& b, Thread& t, uint32_t addr) {
  Mbarrier& m = b.find_mbarrier(t, b.own_shared(t, addr, 8, 8));
  const auto number = static_cast<uint32_t>(&m - b.mbarriers.data());
  if (b.options.hazards)
    for (const CpAsyncCopy& c : t.copies) {
      Access was = b.access(t);
      was.clock = kInFlight;
      was.site = c.site;
      b.shadow.hand_over(c.addr, c.bytes, was, {m.phase + 1, c.site, static_cast<uint16_t>(b.mbarrier_agent(number))});
    }
  t.arrivals.push_back({number, m.phase, t.site, std::move(t.copies)});
  t.copies.clear();
  if (b.at_once(4))
    for (CpAsyncArrival& a : t.arrivals)
      for (CpAsyncCopy& c : a.copies) b.finish(c);
  b.deliver_arrivals(t);
  if (b.failed) throw Stop{};
}

}  // namespace

// May run outside of all fibers: records a failure, does not throw.
void Block::deliver_arrivals(Thread& t) {
  while (!t.arrivals.empty() && std::all_of(t.arrivals.front().copies.begin(), t.arrivals.front().copies.end(), [](const CpAsyncCopy& c) { return c.copied; })) {
    const CpAsyncArrival a = std::move(t.arrivals.front());
    t.arrivals.pop_front();
    Mbarrier& m = mbarriers[a.mbarrier];
    if (m.phase != a.phase || m.pending == 0)
      return record({Code::I0002,
                     a.site,
                     text("the arrival behind copies of thread ", name(t), ", issued in phase ", a.phase, " of the mbarrier at ",
                          shared_text(m.addr), ", comes in phase ", m.phase, " with ", m.pending, " arrivals missing"),
                     {}});
    --m.pending;
    try_complete(m);
  }
}

void Block::finish(CpAsyncCopy& c) {
  if (c.copied) return;
  c.copied = true;
  if (c.from) std::memcpy(shared + c.addr, c.from, c.size);
  std::memset(shared + c.addr + c.size, 0, c.bytes - c.size);
}

void add_memory_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_load_shared", LoadShared, load_shared),
      TILE_EMU("emu_store_shared", StoreShared, store_shared),
      TILE_EMU("emu_load_global", LoadGlobal, load_global),
      TILE_EMU("emu_store_global", StoreGlobal, store_global),
      TILE_EMU("emu_atomic_rmw", Atomic, atomic_rmw),
      TILE_EMU("emu_atomic_cas", Atomic, atomic_cas),
      TILE_EMU("emu_fence", Fence, fence),
      TILE_EMU("emu_cp_async", CpAsync, cp_async),
      TILE_EMU("emu_cp_async_commit", CpAsyncCommit, cp_async_commit),
      TILE_EMU("emu_cp_async_wait", CpAsyncWait, cp_async_wait),
      TILE_EMU("emu_cp_async_arrive", CpAsyncArrive, cp_async_arrive),
  });
}

}  // namespace tile::emu
