// What rings and streams share: addresses of stages and their barriers, matrix descriptors, filling of stages.
#pragma once

#include <functional>

#include "backend/ptx/device_hopper.h"
#include "backend/ptx/lowering.h"

namespace tile {

/// Shared addresses.
template <class Ring>
Value* stage(Lowering& x, const Ring& r, Value* s) {
  return x.b.CreateAdd(x.b.CreateAdd(x.shared_base(), x.i32(RingPlan::kFirstStage)), x.b.CreateMul(s, x.i32(r.stage_bytes)));
}
template <class Ring>
Value* full(Lowering& x, const Ring& r, Value* s) { return x.b.CreateAdd(x.b.CreateAdd(x.shared_base(), x.i32(r.barriers)), x.b.CreateShl(s, x.i32(3))); }
template <class Ring>
Value* empty(Lowering& x, const Ring& r, Value* s) { return x.b.CreateAdd(full(x, r, s), x.i32(8 * r.stages)); }

/// Bits of a shared address within its block. Those above hold the number of the block in its cluster.
inline constexpr uint32_t kSharedAddressBits = 0x3FFFF;

/// First word of a matrix descriptor's address field for a shared address; the other fields come from wgmma_descriptor().
inline Value* descriptor(Lowering& x, Value* address, uint32_t offset, uint64_t fields) {
  Value* low = x.b.CreateLShr(x.b.CreateAdd(x.b.CreateAnd(address, x.i32(kSharedAddressBits)), x.i32(offset)), x.i32(4));
  return x.b.CreateOr(x.b.CreateZExt(low, x.b.getInt64Ty()), x.b.getInt64(fields));
}

/// Descriptor fields and offsets of an operand: `block` counts 64 elements of M (or the warpgroup's columns of N), `k_step` 32 bytes of K.
struct Walk {
  uint64_t fields;
  uint32_t k_step, block;    // bytes
  uint32_t panel_every = 0;  // K-major: k steps in a panel
  uint32_t panel = 0;
  [[nodiscard]] uint32_t offset(uint32_t k) const { return panel_every ? k / panel_every * panel + k % panel_every * k_step : k * k_step; }
};

inline Walk walk(const RingPlan::Operand& o, uint32_t block_elements) {
  Walk w{};
  const uint32_t row = o.row_bytes;
  if (o.mn_major) {
    // Elements of 16 bits, as wgmma has no others here. Rows run along K; a panel holds row / 2 elements of M or N. Unswizzled layouts are not made here, so the leading offset goes from panel to panel.
    w.fields = wgmma_descriptor(o.panel_bytes(), 8 * row, o.swizzle());
    w.k_step = 16 * row;
    w.block = block_elements * 2 / row * o.panel_bytes();
  } else {
    w.fields = wgmma_descriptor(16, 8 * row, o.swizzle());
    w.k_step = 32;
    w.panel_every = row / 32;
    w.panel = o.panel_bytes();
    w.block = block_elements * row;
  }
  return w;
}

/// The numbers of a loop: what it adds, and how often it runs (i32).
struct Trips {
  Value *lower, *step, *count;
};

[[nodiscard]] Trips loop_trips(Lowering& x, InstId i);

/// Starts the copies of an operand to a stage; the values that its indices need are at hand. `further` (i32, may be null): elements along K that come
/// before those of the stage.
inline void copy_operand(Lowering& x, const RingPlan::Operand& o, unsigned element_bytes, Value* to, Value* full, Value* further = nullptr) {
  llvm::IRBuilder<>& b = x.b;
  const auto index = x.f.group(o.load, 1);
  const auto& tile = x.m.types.get(x.f.type(x.f.operand(o.load, 0))).shape;
  Values start;
  for (const int k : o.tile_dim) {
    if (k < 0) {
      start.push_back(x.i32(0));
      continue;
    }
    Value* n = b.CreateZExtOrTrunc(x.scalar(index[static_cast<size_t>(k)]), b.getInt32Ty());
    start.push_back(b.CreateMul(n, x.i32(tile[static_cast<size_t>(k)])));
    if (further && k == (o.mn_major ? o.outer : o.inner)) start.back() = b.CreateAdd(start.back(), further);
  }
  for (uint32_t p = 0; p < o.panels; ++p) {
    Values here = start;
    if (p > 0) here[0] = b.CreateAdd(here[0], x.i32(p * o.row_bytes / element_bytes));
    hopper_ops(x.d)->tma_load(x.map_address(o.map), here, b.CreateAdd(to, x.i32(o.offset + p * o.panel_bytes())), full);
  }
}

/// Fills the stage of a trip; by the producer. False after an error. `trips`: of the loop; unused for a product that stands in none.
inline bool fill_stage(Lowering& x, const RingPlan& r, std::span<const RingPlan::Operand* const> loads, const Trips& trips, Value* base, Value* trip) {
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  Value* number = b.CreateAdd(base, trip);
  Value* s = b.CreateURem(number, x.i32(r.stages));
  Value* round = b.CreateUDiv(number, x.i32(r.stages));
  x.if_then(b.CreateICmpNE(round, x.i32(0)), [&] { h.mbarrier_wait(empty(x, r, s), b.CreateSub(round, x.i32(1))); });
  uint32_t bytes = 0;
  for (const auto* o : loads) bytes += o->bytes();
  h.mbarrier_arrive_expect(full(x, r, s), x.i32(bytes));
  bool ok = true;
  if (!r.single) {
    llvm::Type* type = trips.lower->getType();
    x.set(x.f.region(r.loop).first_arg, {b.CreateAdd(trips.lower, b.CreateMul(b.CreateZExtOrTrunc(trip, type), trips.step))});
    for (const InstId k : r.index_slice) ok = ok && x.one(k);
  }
  Value* further = r.single && r.trips > 1 ? b.CreateShl(trip, x.i32(r.k_bits)) : nullptr;
  for (const RingPlan::Operand* o : loads) copy_operand(x, *o, r.element_bytes, stage(x, r, s), full(x, r, s), further);
  return ok;
}

/// What the consumers of a ring need of the loop around them.
struct RingRun {
  Value *base, *trips;
  Values init;                         ///< of the accumulator, in the product's layout; empty: zeros
  Value* producer;                     ///< true in the thread that refills stages beside its other work; nullptr: none does
  std::function<void(Value*)> issue;   ///< fills the stage of a trip; by the producer
  std::function<void()> last_issued;   ///< called once behind the start of the last products, or where there are none; may be empty
};

/// What a product's accumulator starts with, for RingRun. Before copies are started: another layout comes by way of their stages.
[[nodiscard]] Values initial(Lowering& x, const RingPlan& r, ValueId v);

/// The word of two elements of 16 bits.
inline Value* pair_of(Lowering& x, Value* low, Value* high) {
  const auto bits = [&](Value* v) { return x.b.CreateZExt(x.b.CreateBitCast(v, x.b.getInt16Ty()), x.b.getInt32Ty()); };
  return x.b.CreateOr(bits(low), x.b.CreateShl(bits(high), 16));
}

/// Waits for the stages of the products behind a loop, whose own end at number `end`.
void await_singles(Lowering& x, InstId loop, Value* end);

/// Products by wgmma from the stages.
[[nodiscard]] Values multiply_by_group(Lowering& x, const RingPlan& r, const RingRun& run);

/// Signedness of an integer product's operands, the first of the unit first.
[[nodiscard]] MmaKind integer_kind(Lowering& x, InstId mma, bool swapped);

/// Where byte `byte` of row `row` of an operand lies, from the start of the operand's panels, which are 1,024-byte aligned.
[[nodiscard]] Value* swizzled(Lowering& x, const RingPlan::Operand& o, Value* row, Value* byte);

/// Initialises the barriers of a stream's ring; by one thread.
void prepare_stream(Lowering& x, const StreamPlan& r);

/// Fills the stages of all trips by cp.async; by all threads of the producer. `base`: number of the first stage. False after an error.
[[nodiscard]] bool produce_copies(Lowering& x, InstId i, const RingPlan& r, const Trips& trips, Value* base);

/// The stages of `trips` trips, by the thread that runs this.
void fill_all(Lowering& x, Value* trips, const std::function<void(Value*)>& issue);
/// The first stages, before the loop; in the producer's thread.
void fill_first(Lowering& x, Value* producer, Value* trips, unsigned stages, const std::function<void(Value*)>& issue);

}  // namespace tile
