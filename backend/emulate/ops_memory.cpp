// Loads, stores, atomics, fences and cp.async. A load or store checks and gives the host address; compiled code then
// does the access.
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/emulate/block.h"
#include "vm/base/numeric.h"

namespace tile::emu {
namespace {

std::byte* nowhere(Block& b) {
  std::memset(b.sink, 0, sizeof b.sink);
  return b.sink;
}

std::byte* load_shared(Block& b, Thread& t, uint32_t addr, uint32_t bytes, uint32_t pred) {
  if (!pred) return nowhere(b);
  b.check_shared(t, addr, bytes, bytes);
  b.check_mbarriers(t, addr, bytes);
  if (b.options.hazards) {
    Observer by(b.order, t.id);
    b.report(t, b.shadow.read(by, addr, bytes, b.access(t)));
  }
  return b.shared + addr;
}

std::byte* store_shared(Block& b, Thread& t, uint32_t addr, uint32_t bytes, uint32_t pred) {
  if (!pred) return nowhere(b);
  b.check_shared(t, addr, bytes, bytes);
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

// --- atomics: real ones, since blocks run on several OS threads. All are sequentially consistent, the strongest order
// ---

/// Kinds as backend/ptx/device.h numbers them (RmwOp).
enum Rmw : uint32_t { kAnd, kOr, kXor, kAdd, kAddF, kMax, kMin, kUMax, kUMin, kXchg, kMaxF, kMinF };

float add_f16(float x, float y) {
  return x + y;
}  // the f32 sum of two f16 or bf16 is rounded to them as the exact sum is

uint64_t float_rmw(uint32_t op, uint32_t bits, bool is_bf16, uint64_t x, uint64_t y) {
  if (bits == 64) {
    const double a = double_of(x), c = double_of(y);
    return double_bits(op == kAddF ? a + c : op == kMaxF ? std::fmax(a, c) : std::fmin(a, c));
  }
  if (bits == 32) {
    const float a = float_of(static_cast<uint32_t>(x)), c = float_of(static_cast<uint32_t>(y));
    return float_bits(op == kAddF ? a + c : op == kMaxF ? std::fmax(a, c) : std::fmin(a, c));
  }
  const auto wide = [&](uint64_t v) {
    return is_bf16 ? bf16_to_f32(static_cast<uint16_t>(v)) : f16_to_f32(static_cast<uint16_t>(v));
  };
  const float a = wide(x), c = wide(y),
              r = op == kAddF   ? add_f16(a, c)
                  : op == kMaxF ? std::fmax(a, c)
                                : std::fmin(a, c);
  return is_bf16 ? f32_to_bf16(r) : f32_to_f16(r);
}

template <class U>
U apply(uint32_t op, bool is_bf16, U x, U y) {
  using S = std::make_signed_t<U>;
  switch (op) {
    case kAnd: return x & y;
    case kOr: return x | y;
    case kXor: return x ^ y;
    case kAdd: return static_cast<U>(x + y);
    case kMax: return static_cast<S>(x) > static_cast<S>(y) ? x : y;
    case kMin: return static_cast<S>(x) < static_cast<S>(y) ? x : y;
    case kUMax: return x > y ? x : y;
    case kUMin: return x < y ? x : y;
    case kXchg: return y;
    default: return static_cast<U>(float_rmw(op, sizeof(U) * 8, is_bf16, x, y));
  }
}

template <class U>
uint64_t rmw(std::byte* p, uint32_t op, bool is_bf16, uint64_t value) {
  auto* at = reinterpret_cast<U*>(p);
  const U operand = static_cast<U>(value);
  U old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(at, &old, apply<U>(op, is_bf16, old, operand), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

template <class U>
uint64_t cas(std::byte* p, uint64_t expected, uint64_t desired) {
  U old = static_cast<U>(expected);
  __atomic_compare_exchange_n(reinterpret_cast<U*>(p), &old, static_cast<U>(desired), false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  return old;
}

uint64_t atomic_rmw(Block& b, Thread& t, uint32_t op, uint32_t bits, uint32_t is_bf16, uint64_t value, uint64_t addr,
                    uint32_t pred) {
  if (!pred) return 0;
  std::byte* p = b.global(t, addr, bits / 8, true);
  switch (bits) {
    case 16: return rmw<uint16_t>(p, op, is_bf16 != 0, value);
    case 32: return rmw<uint32_t>(p, op, is_bf16 != 0, value);
    case 64: return rmw<uint64_t>(p, op, is_bf16 != 0, value);
    default: b.hazard(t, "no atomic operation has ", bits, " bits");
  }
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
  b.check_shared(t, addr, bytes, bytes);
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
