// Identity, barrier, and what a warp does in common: shuffles, votes, ldmatrix, mma.
#include <cstring>

#include "backend/emulate/block.h"
#include "backend/emulate/mma.h"

namespace tile::emu {
namespace {

void poll(Block&, Thread&) {}  // the operation's frame counts it
uint32_t thread_id(Block&, Thread& t) { return t.local; }
uint32_t block_id(Block& b, Thread& t, uint32_t axis) { return b.index[axis] + (axis == 0 ? t.rank : 0); }
uint32_t grid_size(Block& b, Thread&, uint32_t axis) { return b.launch.grid[axis]; }

void barrier(Block& b, Thread& t) {
  Block::BlockBarrier& m = b.barriers[t.rank];
  if (m.arrived == 0) {
    m.first = t.id;
  } else if (const Thread& other = b.threads[m.first]; other.pc != t.pc) {
    Failure f{Code::I0002,
              t.site,
              text("divergent barrier: thread ", b.name(t), " is here, thread ", b.name(other), " waits in another barrier"),
              {}};
    f.notes.push_back({other.site, text("the barrier in which thread ", b.name(other), " waits")});
    b.fail(std::move(f));
  }
  if (++m.arrived < b.launch.threads) return b.park(t, WaitFor::Barrier);
  m.arrived = 0;
  const uint32_t first = t.rank * b.launch.threads, end = first + b.launch.threads;
  if (b.options.hazards && b.launch.cluster == 1) {
    b.order.barrier();
  } else if (b.options.hazards) {
    Clocks all;
    for (uint32_t id = first; id < end; ++id) b.order.release(id, all);
    for (uint32_t id = first; id < end; ++id) b.order.acquire(id, all);
  }
  for (uint32_t id = first; id < end; ++id)
    if (id != t.id) b.wake(b.threads[id]);
}

// A barrier of the warp. Lanes also learn of each other's accesses.
void warp_sync(Block& b, Thread& t) {
  b.meet_warp(t, nullptr, [&](std::array<void*, 32>&) {
    if (!b.options.hazards) return;
    b.order.expect_more();
    Clocks all;
    for (uint32_t l = 0; l < 32; ++l) b.order.release(t.warp() * 32 + l, all);
    for (uint32_t l = 0; l < 32; ++l) b.order.acquire(t.warp() * 32 + l, all);
  });
}

// --- shuffles and votes ---

struct Word {
  uint32_t value, lane, out;
};

/// Kinds as backend/ptx/device.h numbers them (ShuffleMode). The lane or delta counts modulo 32, as in PTX.
enum Mode : uint32_t { kXor, kUp, kDown, kIndex };

uint32_t shuffle(Block& b, Thread& t, uint32_t mode, uint32_t value, uint32_t lane) {
  Word w{value, lane & 31, 0};
  b.meet_warp(t, &w, [&](std::array<void*, 32>& all) {
    for (uint32_t l = 0; l < 32; ++l) {
      auto& me = *static_cast<Word*>(all[l]);
      uint32_t from = l;
      switch (mode) {
        case kXor: from = l ^ me.lane; break;
        case kUp: from = l >= me.lane ? l - me.lane : l; break;
        case kDown: from = l + me.lane < 32 ? l + me.lane : l; break;
        default: from = me.lane; break;
      }
      me.out = static_cast<Word*>(all[from])->value;
    }
  });
  return w.out;
}

uint32_t ballot(Block& b, Thread& t, uint32_t predicate) {
  Word w{predicate, 0, 0};
  b.meet_warp(t, &w, [&](std::array<void*, 32>& all) {
    uint32_t bits = 0;
    for (uint32_t l = 0; l < 32; ++l) bits |= uint32_t{static_cast<Word*>(all[l])->value != 0} << l;
    for (void* p : all) static_cast<Word*>(p)->out = bits;
  });
  return w.out;
}

/// The value, which must be the same in all lanes.
uint32_t warp_uniform(Block& b, Thread& t, uint32_t value) {
  Word w{value, 0, value};
  b.meet_warp(t, &w, [&](std::array<void*, 32>& all) {
    for (const void* p : all)
      if (const uint32_t other = static_cast<const Word*>(p)->value; other != value)
        b.hazard(t, "not the same in all lanes: ", value, " and ", other);
  });
  return value;
}

// --- matrices ---

struct LdmatrixArgs {
  uint32_t addr;
  uint32_t* out;
};

/// Lane i gives the address of row i % 8 of matrix i / 8; lane l receives of matrix j the two 16-bit elements 2 (l %
/// 4), +1 of row l / 4, or with `transpose` rows 2 (l % 4), +1 of column l / 4.
void ldmatrix(Block& b, Thread& t, uint32_t matrices, uint32_t transpose, uint32_t addr, uint32_t* out) {
  if (t.lane() < matrices * 8) addr = b.own_shared(t, addr, 16, 16);
  LdmatrixArgs args{addr, out};
  b.meet_warp(t, &args, [&](std::array<void*, 32>& all) {
    const auto lane = [&](uint32_t l) -> LdmatrixArgs& { return *static_cast<LdmatrixArgs*>(all[l]); };
    const uint32_t first = t.warp() * 32;
    if (b.options.hazards) {
      // Every lane must know what is read, since any may receive it.
      Observer by(b.order, first, 32);
      for (uint32_t l = 0; l < matrices * 8; ++l) {
        const Thread& giver = b.threads[first + l];
        Access who = b.access(giver);
        who.warp_wide = true;
        b.report(giver, b.shadow.read(by, lane(l).addr, 16, who));
      }
    }
    for (uint32_t l = 0; l < 32; ++l) {
      for (uint32_t j = 0; j < matrices; ++j) {
        uint16_t pair[2];
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t row = transpose ? l % 4 * 2 + e : l / 4, column = transpose ? l / 4 : l % 4 * 2 + e;
          std::memcpy(&pair[e], b.shared + lane(j * 8 + row).addr + column * 2, 2);
        }
        lane(l).out[j] = pair[0] | uint32_t{pair[1]} << 16;
      }
    }
  });
}

struct StmatrixArgs {
  uint32_t addr;
  const uint32_t* in;
};

/// The inverse of ldmatrix.
void stmatrix(Block& b, Thread& t, uint32_t matrices, uint32_t transpose, uint32_t addr, const uint32_t* in) {
  if (t.lane() < matrices * 8) addr = b.own_shared(t, addr, 16, 16);
  StmatrixArgs args{addr, in};
  b.meet_warp(t, &args, [&](std::array<void*, 32>& all) {
    const auto lane = [&](uint32_t l) -> StmatrixArgs& { return *static_cast<StmatrixArgs*>(all[l]); };
    const uint32_t first = t.warp() * 32;
    Observer by(b.order, first, 32);
    for (uint32_t l = 0; l < matrices * 8; ++l) {
      const Thread& giver = b.threads[first + l];
      b.check_mbarriers(giver, lane(l).addr, 16);
      if (b.options.hazards) b.report(giver, b.shadow.write(by, lane(l).addr, 16, b.access(giver)));
    }
    for (uint32_t l = 0; l < 32; ++l) {
      for (uint32_t j = 0; j < matrices; ++j) {
        const uint16_t pair[2] = {static_cast<uint16_t>(lane(l).in[j]), static_cast<uint16_t>(lane(l).in[j] >> 16)};
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t row = transpose ? l % 4 * 2 + e : l / 4, column = transpose ? l / 4 : l % 4 * 2 + e;
          std::memcpy(b.shared + lane(j * 8 + row).addr + column * 2, &pair[e], 2);
        }
      }
    }
  });
}

void mma(Block& b, Thread& t, uint32_t kind, uint32_t formats, const void* a, const void* bb, void* c) {
  MmaOperands args{a, bb, c};
  b.meet_warp(t, &args, [&](std::array<void*, 32>& all) {
    std::array<MmaOperands, 32> lanes;
    for (size_t l = 0; l < 32; ++l) lanes[l] = *static_cast<MmaOperands*>(all[l]);
    execute_mma(kind, formats, lanes);
  });
}

void trap(Block& b, Thread& t, uint32_t code, uint64_t) {
  const std::string name = text("T", code / 1000, code / 100 % 10, code / 10 % 10, code % 10);
  Failure f{Code::I0001, t.site, text("a trap with the unknown code ", code), {}};
  f.trapped = true;
  for (size_t i = 0; i < static_cast<size_t>(Code::kCount); ++i)
    if (name == code_info(static_cast<Code>(i)).name)
      f.code = static_cast<Code>(i), f.message = code_info(f.code).meaning;
  b.fail(std::move(f));
}

}  // namespace

void add_warp_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_poll", Poll, poll),
      TILE_EMU("emu_thread_id", Identity, thread_id),
      TILE_EMU("emu_block_id", Identity, block_id),
      TILE_EMU("emu_grid_size", Identity, grid_size),
      TILE_EMU("emu_barrier", Barrier, barrier),
      TILE_EMU("emu_warp_sync", WarpSync, warp_sync),
      TILE_EMU("emu_shuffle", Shuffle, shuffle),
      TILE_EMU("emu_warp_uniform", Uniform, warp_uniform),
      TILE_EMU("emu_ballot", Vote, ballot),
      TILE_EMU("emu_ldmatrix", Ldmatrix, ldmatrix),
      TILE_EMU("emu_stmatrix", Stmatrix, stmatrix),
      TILE_EMU("emu_mma", Mma, mma),
      TILE_EMU("emu_trap", Trap, trap),
  });
}

}  // namespace tile::emu
