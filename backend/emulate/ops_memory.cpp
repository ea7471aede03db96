// Loads, stores, atomics, fences and cp.async. A load or store checks and gives the host address; compiled code then
// does the access.
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
}

}  // namespace

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
  });
}

}  // namespace tile::emu
