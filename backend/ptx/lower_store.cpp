// Stores of products' tiles by bulk copies. A warpgroup writes a part of its fragments into its stage, in the form that the tensor map's
// swizzle reads, and goes on while the copy runs; the stage is used again once that copy has read it.
#include <algorithm>
#include <map>

#include "backend/ptx/device_hopper.h"
#include "backend/ptx/lower_turns.h"

namespace tile {
namespace {

/// How the words of a fragment go to shared memory: by stmatrix, or by stores of 2^run registers each.
struct Writer {
  unsigned run = 0;
  bool matrices = false, transposed = false;
  unsigned bits[2] = {};    ///< matrices: the two register bits that number the four of an instruction
};

Writer choose_writer(const StorePlan& s, unsigned inner_first) {
  const Layout& l = s.layout;
  Writer w;
  const auto inner = [&](int bit, unsigned k) { return bit == static_cast<int>(inner_first + k); };
  // Rows of eight elements: pairs in registers with two lane bits, or, transposed, three lane bits.
  const auto numbers_chunks = [&](int8_t bit) { return std::find(s.chunk_bits.begin(), s.chunk_bits.end(), bit) != s.chunk_bits.end(); };
  if (s.element_bytes == 2 && l.reg.size() >= 3 && !numbers_chunks(l.reg[1]) && !numbers_chunks(l.reg[2])) {
    const bool plain = inner(l.reg[0], 0) && inner(l.lane[0], 1) && inner(l.lane[1], 2);
    const bool across = inner(l.lane[2], 0) && inner(l.lane[3], 1) && inner(l.lane[4], 2);
    if (plain || across) {
      w.matrices = true;
      w.transposed = !plain;
      w.bits[0] = 1;
      w.bits[1] = 2;
      return w;
    }
  }
  // Neighbours along the row that the thread holds in its lowest registers... or in others, one after the other.
  while (s.element_bytes << (w.run + 1) <= 16 && l.register_bit(static_cast<int>(inner_first + w.run)) >= 0) ++w.run;
  return w;
}

}  // namespace

bool lower_bulk_store(Lowering& x, InstId i, const StorePlan& s) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  HopperOps& h = *hopper_ops(x.d);
  const ValueId tile = f.operand(i, 0), view = f.operand(i, 1);
  const ElementType e = x.element(tile);
  const Type& t = x.m.types.get(f.type(view));
  const auto indices = f.group(i, 2);
  const Layout& l = s.layout;
  const auto first = dim_bits(t.shape);
  const unsigned inner_first = first[static_cast<size_t>(s.inner)];

  const bool wait = x.order_bulk_store(i);
  // Other warpgroups may still read the stages of the ring, whose place this one's is.
  if (x.plan.stores_in_ring) {
    if (x.pending_.staged) h.bulk_wait(0, true);
    x.barrier();
    x.pending_.staged = true;
  }
  Value* group = x.consumer_group();
  Value* barrier = b.CreateAdd(group, x.i32(kGroupBarrier));
  Value* starts = b.CreateICmpEQ(b.CreateAnd(x.thread(), x.i32(127)), x.i32(0));
  const uint32_t place = x.plan.stores_in_ring ? RingPlan::kFirstStage : x.plan.ring_bytes + x.plan.left_bytes;
  Value* stage = b.CreateAdd(b.CreateAdd(x.shared_base(), x.i32(place)), b.CreateMul(group, x.i32(x.plan.group_store_bytes)));

  // Coordinates of the group's part: those of the tile, and what the bits add that tell groups apart.
  const auto dimension_of = [&](int bit) {
    const size_t outer = static_cast<size_t>(s.outer);
    return static_cast<unsigned>(bit) >= first[outer] && static_cast<unsigned>(bit) < first[outer] + log2_of(t.shape[outer]) ? s.outer : s.inner;
  };
  const auto step_of = [&](int bit) { return 1 << (static_cast<unsigned>(bit) - first[static_cast<size_t>(dimension_of(bit))]); };
  std::map<int, Value*> begin;
  for (const int k : {s.inner, s.outer}) begin[k] = x.i32(0);
  for (size_t k = 2; k < l.warp.size(); ++k) {
    Value* on = b.CreateAnd(b.CreateLShr(group, x.i32(static_cast<int64_t>(k) - 2)), x.i32(1));
    Value*& at = begin[dimension_of(l.warp[k])];
    at = b.CreateAdd(at, b.CreateMul(on, x.i32(step_of(l.warp[k]))));
  }
  Values start;
  for (const int k : s.tile_dim) {
    if (k < 0) {
      start.push_back(x.i32(0));
      continue;
    }
    // Coordinates are signed numbers of 32 bits; what lies beyond them lies outside of the array.
    const auto at = static_cast<size_t>(k);
    Value* n = b.CreateZExtOrTrunc(x.scalar(indices[at]), b.getInt64Ty());
    n = b.CreateSelect(b.CreateICmpULT(n, x.i64(int64_t{1} << 31)), b.CreateMul(n, x.i64(t.shape[at])), x.i64(0x7FFF0000));
    n = b.CreateTrunc(b.CreateSelect(b.CreateICmpULT(n, x.i64(0x7FFF0000)), n, x.i64(0x7FFF0000)), b.getInt32Ty());
    start.push_back(begin.contains(k) ? b.CreateAdd(n, begin[k]) : n);
  }

  // Where this thread's elements go within a chunk; the chunk's place is added to each.
  const auto columns = [&](std::span<const int8_t> bits) {
    std::vector<uint32_t> out;
    for (const int8_t bit : bits) out.push_back(bit == kCopies ? 0 : s.column[static_cast<size_t>(bit)]);
    return out;
  };
  const Writer w = choose_writer(s, inner_first);
  std::vector<int8_t> lanes = l.lane;
  if (w.matrices) {
    // Lane n gives the address of row n % 8 of matrix n / 8.
    lanes = w.transposed ? std::vector<int8_t>{l.reg[0], l.lane[0], l.lane[1]} : std::vector<int8_t>{l.lane[2], l.lane[3], l.lane[4]};
    for (const unsigned bit : w.bits) lanes.push_back(l.reg[bit]);
  }
  const auto lane_columns = columns(lanes), warp_columns = columns(std::span(l.warp).first(2));
  uint32_t moved = 0;   // bits that differ among threads
  for (const auto* c : {&lane_columns, &warp_columns})
    for (const uint32_t k : *c) moved |= k;
  Value* thread = b.CreateXor(mapped(x, x.lane(), lane_columns), mapped(x, b.CreateAnd(x.warp(), x.i32(3)), warp_columns));
  std::map<std::pair<uint32_t, uint32_t>, Value*> places;
  const auto place_of = [&](uint32_t at, uint32_t chunk) {
    Value*& from = places[{at & moved, 0}];
    if (!from) from = b.CreateAdd(stage, b.CreateXor(thread, x.i32(at & moved)));
    return b.CreateAdd(from, x.i32((at & ~moved) + chunk));
  };

  const auto number_of = [&](uint32_t element) {
    unsigned n = 0;
    for (size_t k = 0; k < s.chunk_bits.size(); ++k) n |= (element >> s.chunk_bits[k] & 1) << k;
    return n;
  };
  const auto offset_of = [&](uint32_t element) {
    uint32_t at = 0;
    for (size_t k = 0; k < s.column.size(); ++k)
      if (element >> k & 1) at ^= s.column[k];
    return at;
  };

  const Values& regs = x.own(tile);
  Values words;
  for (Value* v : regs) words.push_back(to_memory(x.d, e, v));
  // Registers that one access takes: those of a run, or the pairs of four matrices.
  std::vector<unsigned> together;
  if (w.matrices) {
    together = {0, w.bits[0], w.bits[1]};
  } else {
    for (unsigned k = 0; k < w.run; ++k) together.push_back(static_cast<unsigned>(l.register_bit(static_cast<int>(inner_first + k))));
  }
  uint32_t skip = 0;
  for (const unsigned bit : together) skip |= 1u << bit;
  const auto write = [&](unsigned chunk, uint32_t at) {
    for (unsigned r = 0; r < words.size(); ++r) {
      const uint32_t element = l.element_of_register(r);
      if ((r & skip) != 0 || number_of(element) != chunk) continue;
      Values taken;
      for (unsigned n = 0; n < 1u << together.size(); ++n) {
        unsigned reg = r;
        for (size_t k = 0; k < together.size(); ++k)
          if (n >> k & 1) reg |= 1u << together[k];
        taken.push_back(words[reg]);
      }
      Value* to = place_of(offset_of(element), at);
      if (!w.matrices) {
        x.d.store_shared(taken, to);
        continue;
      }
      Values pairs;
      for (size_t k = 0; k < taken.size(); k += 2)
        pairs.push_back(b.CreateOr(b.CreateZExt(taken[k], b.getInt32Ty()), b.CreateShl(b.CreateZExt(taken[k + 1], b.getInt32Ty()), x.i32(16))));
      h.stmatrix(4, w.transposed, to, pairs);
    }
  };

  // Iterations in turn: the other warpgroup's store of the iteration before is done before this one begins.
  const bool in_order = x.plan.alternate && !x.plan.loops;
  Value* first_warp = b.CreateICmpEQ(x.warp(), x.i32(0));
  const unsigned steps = s.chunks / s.batch;
  for (unsigned step = 0; step < steps; ++step) {
    const uint32_t half = step % s.halves * s.batch * s.chunk_bytes;
    if (step == 0 || step >= s.halves) {
      // The copies that read this part of the stage are done with it; in the first step, those of the tile before.
      if (step > 0) {
        h.bulk_wait(s.halves - 1, true);
      } else if (wait || !x.plan.stores_in_ring) {
        h.bulk_wait(0, !wait);
      }
      if (step > 0 || !x.plan.stores_in_ring) h.named_barrier(barrier, 128);
    }
    for (unsigned k = 0; k < s.batch; ++k) write(step * s.batch + k, half + k * s.chunk_bytes);
    h.fence_proxy_async(true);
    h.named_barrier(barrier, 128);
    if (step == 0 && in_order) x.if_then(first_warp, [&] { h.named_barrier(b.CreateAdd(group, x.i32(kOrderBarrier)), kOrderThreads); });
    x.if_then(starts, [&] {
      for (unsigned k = 0; k < s.batch; ++k) {
        const unsigned chunk = step * s.batch + k;
        std::map<int, int64_t> further;
        for (size_t bit = 0; bit < s.chunk_bits.size(); ++bit)
          if (chunk >> bit & 1) further[dimension_of(s.chunk_bits[bit])] += step_of(s.chunk_bits[bit]);
        for (uint32_t panel = 0; panel < s.panels; ++panel) {
          Values at = start;
          for (size_t d = 0; d < at.size(); ++d) {
            int64_t more = further.contains(s.tile_dim[d]) ? further[s.tile_dim[d]] : 0;
            if (s.tile_dim[d] == s.inner) more += panel * (s.row_bytes / s.element_bytes);
            if (more != 0) at[d] = b.CreateAdd(at[d], x.i32(more));
          }
          h.tma_store(x.map_address(s.map), at, b.CreateAdd(stage, x.i32(half + k * s.chunk_bytes + panel * s.row_bytes * s.rows)));
        }
      }
      h.bulk_commit();
    });
    h.warp_sync();
  }
  if (in_order)
    x.if_then(first_warp, [&] {
      h.bulk_wait(0, false);
      h.warp_sync();
      h.named_barrier_arrive(b.CreateSub(x.i32(kOrderBarrier + 1), group), kOrderThreads);
    });
  x.remark(i, "bulk stores of " + std::to_string(s.row_bytes * s.rows) + " bytes by each warpgroup, written by " +
                  (w.matrices ? std::string("stmatrix") : "st.shared of " + std::to_string(s.element_bytes << w.run) + " bytes"));
  return true;
}

}  // namespace tile
