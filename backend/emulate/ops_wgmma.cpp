// wgmma: groups of matrix products that a warpgroup has in flight, and who may touch their accumulators.
#include <algorithm>
#include <cstring>

#include "backend/emulate/block.h"

namespace tile::emu {
namespace {

void fence(Block&, Thread& t) { t.wg_fenced = true; }

void commit(Block&, Thread& t) {
  ++t.wg_committed;
  t.wg_open = false;
}

struct Arguments {
  Thread* thread;
  WgmmaShape shape;
  void* d;
  const uint32_t* a_registers;
  uint64_t a, b;
  bool scale;
};

void check_operand(Block& b, Thread& t, const char* name, uint64_t bits, bool mn_major, unsigned rows,
                   unsigned element_bytes, uint32_t group) {
  const MatrixDescriptor d(bits);
  if (d.base_offset != 0) b.hazard(t, "operand ", name, ": the descriptor's base offset is not 0");
  if (d.unused) b.hazard(t, "operand ", name, ": the descriptor has bits set that belong to no field");
  // A field that such operands do not need. The upper bits of a shared address that was not cut to those within its block get here.
  if (!mn_major && d.swizzle != TensorSwizzle::None && d.leading != 0 && d.leading != 16)
    b.hazard(t, "operand ", name, ": the descriptor's leading offset is ", d.leading, " bytes; it is 0 or 16 for a swizzled operand along K");
  const uint32_t warpgroup = b.group_of(t);
  Observer by(b.order, b.first_of_group(warpgroup), kWarpgroup);
  Access who{group, t.site, static_cast<uint16_t>(b.matrix_agent(warpgroup))};
  who.async = true;
  who.swizzle = static_cast<int8_t>(d.swizzle);
  each_chunk(d, mn_major, rows, element_bytes, [&](uint32_t addr, unsigned, unsigned) {
    const uint32_t at = b.own_shared(t, addr + t.rank_bits, 16, 16);
    if (b.options.hazards) b.report(t, b.shadow.read(by, at, 16, who));
  });
}

/// `flags`: bits 0, 1: A, B is e5m2; bits 2, 3: A, B is MN-major; bit 4: add to D.
void wgmma(Block& b, Thread& t, uint32_t kind, uint32_t n, uint32_t flags, void* d, uint64_t desc_a,
           const uint32_t* a_registers, uint64_t desc_b) {
  Arguments args{
      &t, {kind, flags & 3, n, (flags & 4) != 0, (flags & 8) != 0}, d, a_registers, desc_a, desc_b, (flags & 16) != 0};
  if (kind == kF64 || kind > kF8F32 || n < 8 || n > 256 || n % 8 != 0) b.hazard(t, "no wgmma has this shape");
  if ((args.shape.a_mn || args.shape.b_mn) && args.shape.element_bytes() != 2)
    b.hazard(t, "only 16-bit operands can be MN-major");
  if (b.group_of(t) == Block::kNoGroup) b.hazard(t, "by threads that are not a whole warpgroup");
  if (!t.wg_fenced) b.hazard(t, "accumulators were touched since the last wgmma fence");
  t.wg_open = true;
  const uint32_t group = t.wg_committed + 1;
  const auto slot =
      std::find_if(t.accumulators.begin(), t.accumulators.end(), [&](const auto& p) { return p.first == d; });
  if (slot == t.accumulators.end()) {
    t.accumulators.push_back({d, group});
  } else {
    slot->second = group;
  }
  b.meet_group(t, &args, [&](std::array<void*, kWarpgroup>& all) {
    if (b.options.hazards) b.order.expect_more();
    WgmmaOp op{args.shape, desc_a, desc_b, args.scale, group, {}, {}};
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& a = *static_cast<const Arguments*>(all[i]);
      if (a.a != desc_a || a.b != desc_b || a.scale != args.scale || a.thread->wg_committed + 1 != group)
        b.hazard(t, "threads ", b.name(t), " and ", b.name(*a.thread),
                 " differ in descriptors, in scale-d or in committed groups");
      op.d[i] = a.d;
      if (a.a_registers) op.a_registers.insert(op.a_registers.end(), a.a_registers, a.a_registers + 4);
    }
    const unsigned eb = args.shape.element_bytes();
    if (!a_registers) check_operand(b, t, "A", desc_a, args.shape.a_mn, 64, eb, group);
    check_operand(b, t, "B", desc_b, args.shape.b_mn, n, eb, group);
    b.wgmma[b.group_of(t)].push_back(std::move(op));
    if (b.at_once(3)) b.finish_wgmma(b.group_of(t), group);
  });
}

void wait(Block& b, Thread& t, uint32_t pending) {
  if (t.wg_open) b.hazard(t, "wgmma was issued since the last commit, which this wait cannot cover");
  if (b.group_of(t) == Block::kNoGroup) b.hazard(t, "by threads that are not a whole warpgroup");
  const uint32_t group = t.wg_committed - std::min(t.wg_committed, pending);
  b.finish_wgmma(b.group_of(t), group);
  t.wg_waited = std::max(t.wg_waited, group);
  if (b.options.hazards) b.order.learn(t.id, b.matrix_agent(b.group_of(t)), t.wg_waited);
}

/// Before ordinary code reads or writes an accumulator.
void touch(Block& b, Thread& t, const void* d) {
  t.wg_fenced = false;
  for (const auto& [slot, group] : t.accumulators)
    if (slot == d && group > t.wg_waited)
      b.hazard(t, "wgmma group ", group, " is in flight; the thread has waited for groups up to ", t.wg_waited);
}

void max_registers(Block& b, Thread& t, uint32_t n) {
  if (n % 8 != 0 || n < 24 || n > 256) b.hazard(t, n, " registers: not a multiple of 8 in 24..256");
  if (b.group_of(t) == Block::kNoGroup) b.hazard(t, "by threads that are not a whole warpgroup");
  b.meet_group(t, nullptr, [](std::array<void*, kWarpgroup>&) {});
}

}  // namespace

void Block::arrive_group(Thread& t, GroupMeeting& m) {
  if (m.arrived == 0) {
    m.first = t.id;
    return;
  }
  check_same_operation(t, threads[m.first], "warpgroup");
}

void Block::finish_wgmma(uint32_t warpgroup, uint32_t group, size_t at_most) {
  auto& queue = wgmma[warpgroup];
  for (; !queue.empty() && queue.front().group <= group && at_most != 0; --at_most) {
    const WgmmaOp& op = queue.front();
    execute_wgmma(op.shape, op.scale, shared + threads[first_of_group(warpgroup)].base, op.a, op.a_registers.empty() ? nullptr : op.a_registers.data(), op.b,
                  op.d);
    queue.pop_front();
  }
}

void Block::check_matrix_exit(const Thread& t) {
  if (t.wg_open || t.wg_waited < t.wg_committed) hazard(t, "the thread ends with a wgmma group in flight");
  if (t.bulk_issued > t.bulk_waited)
    fail({Code::I0002,
          t.bulk_site,
          text("bulk store by thread ", name(t), ": the thread ends without waiting for it to be read"),
          {}});
}

void add_wgmma_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_wgmma_fence", WgmmaFence, fence),
      TILE_EMU("emu_wgmma", Wgmma, wgmma),
      TILE_EMU("emu_wgmma_commit", WgmmaCommit, commit),
      TILE_EMU("emu_wgmma_wait", WgmmaWait, wait),
      TILE_EMU("emu_accumulator", Accumulator, touch),
      TILE_EMU("emu_max_registers", MaxRegisters, max_registers),
  });
}

}  // namespace tile::emu
