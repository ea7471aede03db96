// Finds loops whose products can be fed by bulk tensor copies through a ring of stages. Everything is recognised by structure: what the
// operands are made of, which values the indices need, and that nothing in the loop writes memory.
#include <algorithm>
#include <optional>

#include "backend/plan/array_map.h"
#include "backend/plan/plan.h"

namespace tile {
namespace {

constexpr size_t kMaxRings = 8;                  // their barriers fill the first KiB
constexpr unsigned kMaxCopyStages = 4;           // of cp.async
constexpr unsigned kMaxBox = 256;                // elements along each dimension of a bulk copy
constexpr uint32_t kSingleStage = 32768;         // of products outside of loops in kernels without other rings

/// Of a product's accumulator, its left operand and what else lives then, in a thread: the assembler spills where there are more (128 x 128 by one
/// warpgroup has 192), and serialises all products (C7512).
constexpr unsigned kSingleRegisters = 192;

class RingFinder {
 public:
  RingFinder(const Module& m, const Function& f, const Target& target, bool bulk, KernelPlan& plan)
      : m_(m), f_(f), target_(target), bulk_(bulk), plan_(plan), def_(f.value_types.size(), kNone), uses_(f.value_types.size(), 0) {
    for (InstId i = 0; i < f.insts.size(); ++i) {
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
      for (const ValueId v : f.operands(i)) ++uses_[v];
    }
  }

  /// The ring of a loop; nullopt with the reason.
  std::optional<RingPlan> find(InstId loop, InstId* mma, std::string& why) {
    loop_ = loop;
    branch_ = kNone;
    RingPlan ring;
    ring.loop = loop;
    const Region& r = f_.region(loop);
    bool several = false;
    const auto look = [&](const Region& in) {
      for (InstId i = in.begin; i < in.end; i = f_.insts[i].next) {
        const Opcode op = f_.insts[i].op;
        if (!is_product(op)) continue;
        several = several || ring.mma != kNone;
        ring.mma = *mma = i;
      }
    };
    look(r);
    // Some trips may have no product. Bulk copies run too far ahead to know that.
    for (InstId i = r.begin; i < r.end && ring.mma == kNone; i = f_.insts[i].next)
      if (f_.insts[i].op == Opcode::If && f_.insts[i].result_count == 1) look(f_.region(i)), branch_ = ring.mma == kNone ? kNone : i;
    if (several) return fail(why, "the loop has several products");
    if (ring.mma == kNone) return std::nullopt;
    if (f_.insts[ring.mma].op == Opcode::MmaFScaled) return fail(why, "scaled products have no ring");
    if (branch_ != kNone && bulk_) return fail(why, "the product stands in an if");
    const auto others = [&](const Region& in) {
      for (InstId i = in.begin; i < in.end; i = f_.insts[i].next)
        if (i != ring.mma && i != branch_ && !harmless(i)) return "the loop also does " + std::string(f_.def(i).name);
      return std::string();
    };
    std::string also = others(r);
    if (also.empty() && branch_ != kNone) also = others(f_.region(branch_));
    if (also.empty() && branch_ != kNone) also = others(f_.region(branch_, 1));
    if (!also.empty()) return fail(why, also);
    if (!take_product(ring, why)) return std::nullopt;
    const auto operands = f_.operands(ring.mma);
    if (!carried(ring)) return fail(why, "the accumulator is used otherwise in the loop");
    element_bytes_ = ring.element_bytes;
    if (!operand(operands[0], ring.k_bits, ring.m_bits, false, ring.a, why) || !operand(operands[1], ring.n_bits, ring.k_bits, true, ring.b, why)) return std::nullopt;
    ring.copies = !bulk_;
    choose_unit(ring);
    if (ring.sync && ring.m_bits + ring.n_bits > (ring.element_bytes == 8 ? 14 : 15)) return fail(why, "the accumulator needs more than 128 registers a thread");
    for (const auto* o : {&ring.a, &ring.b}) {
      if (o->pointers) {
        if (!scalars(*o->pointers, ring.index_slice)) return fail(why, "an address depends on what the loop computes");
        continue;
      }
      for (const ValueId v : f_.group(o->load, 1))
        if (v != o->chosen && !index(v, ring.index_slice)) return fail(why, "an index depends on what the loop computes");
      if (!bulk_ && !view(f_.operand(o->load, 0), ring.index_slice)) return fail(why, "an operand's view depends on what the loop computes");
    }
    if (branch_ != kNone) {
      ring.condition = f_.operands(branch_)[0];
      if (ring.sync) return fail(why, "the product stands in an if");
      if (!index(ring.condition, ring.index_slice)) return fail(why, "a condition depends on what the loop computes");
    }
    std::sort(ring.index_slice.begin(), ring.index_slice.end());
    ring.index_slice.erase(std::unique(ring.index_slice.begin(), ring.index_slice.end()), ring.index_slice.end());
    ring.b.offset = (ring.a.bytes() + 1023) & ~1023u;
    ring.stage_bytes = (ring.b.offset + ring.b.bytes() + 1023) & ~1023u;
    if (!bulk_) return copy_stages(ring, why);
    if (plan_.rings.size() + plan_.streams.size() == kMaxRings) return fail(why, "the kernel has eight rings already");
    ring.barriers = static_cast<uint32_t>(plan_.rings.size() + plan_.streams.size()) * 16 * RingPlan::kMaxStages;
    ring.stages = std::min(RingPlan::kMaxStages, (RingPlan::kSharedBytes - RingPlan::kFirstStage) / ring.stage_bytes);
    if (ring.stages < 2) return fail(why, "two stages do not fit into shared memory");
    return ring;
  }

  /// Type and sizes of a ring's product.
  bool take_product(RingPlan& ring, std::string& why) const {
    const auto operands = f_.operands(ring.mma);
    const auto shape_a = m_.types.shape_of(f_.type(operands[0])), shape_r = m_.types.shape_of(f_.type(f_.result(ring.mma)));
    if (shape_r.size() != 2) return bad(why, "the product has a batch dimension");
    const ElementType e = m_.types.element_of(f_.type(operands[0]));
    const ElementType acc = m_.types.element_of(f_.type(operands[2]));
    if (acc != ElementType::F32 && acc != ElementType::I32 && acc != ElementType::F64) return bad(why, "the accumulator is neither f32 nor i32");
    switch (e) {
      case ElementType::F16: case ElementType::BF16: case ElementType::TF32: case ElementType::I8: case ElementType::F8E4M3FN: case ElementType::F8E5M2: break;
      // In the long shapes of mma.sync, which no older target has.
      case ElementType::F64: if (!bulk_ && target_.sm >= 90) break; [[fallthrough]];
      default: return bad(why, "products of " + std::string(info(e).name) + " have no ring");
    }
    ring.element = e;
    ring.element_bytes = info(e).storage;
    ring.m_bits = log2_of(shape_r[0]);
    ring.n_bits = log2_of(shape_r[1]);
    ring.k_bits = log2_of(shape_a[1]);
    const unsigned k_step = ring.element_bytes == 8 ? 4 : 5 - log2_of(ring.element_bytes);  // an instruction takes 32 bytes of K, 128 of f64
    if (ring.m_bits < 4 || ring.n_bits < 3 || ring.k_bits < k_step) return bad(why, "the tile is smaller than one instruction");
    return true;
  }

  /// wgmma where one of its forms takes the operands as they lie in memory, else mma.sync.
  void choose_unit(RingPlan& ring) const {
    if (by_warps_only_ || !target_.wgmma()) return by_warps(ring);
    // Stages of cp.async are read as they are, by descriptors only.
    if (ring.copies && (ring.element_bytes != 2 || warps_forced_)) return by_warps(ring);
    if (ring.element_bytes == 2) {
      ring.swapped = ring.m_bits < 6 && ring.n_bits >= 6;
    } else {
      // Words and bytes must have K contiguous in shared memory; one operand at most comes through registers.
      ring.p_registers = ring.a.mn_major || ring.b.mn_major;
      ring.swapped = ring.b.mn_major || (!ring.a.mn_major && ring.m_bits < 6 && ring.n_bits >= 6);
      if (ring.a.mn_major && ring.b.mn_major) return by_warps(ring);
    }
    if (ring.p_bits() < 6) return by_warps(ring);
    const bool f8 = ring.element == ElementType::F8E4M3FN || ring.element == ElementType::F8E5M2;
    ring.promote = f8 && f_.attr(ring.mma, static_cast<size_t>(attr_index(f_.def(ring.mma), "fast_acc"))) == 0;
    // 128 accumulator registers a thread at most, sums of stages among them; two warpgroups where there are rows for both.
    ring.group_bits = ring.p_bits() >= 7 || ring.p_bits() + ring.q_bits() > 14 ? 1 : 0;
    // Of two that alternate each has a tile of its own.
    if (alternate_ && !ring.promote && (!ring.p_registers || in_registers_) && ring.p_bits() + ring.q_bits() <= 14 && ring.q_bits() <= 8) ring.group_bits = 0;
    if (ring.p_bits() + ring.q_bits() - 7 - ring.group_bits > (ring.promote ? 6 : 7) || ring.q_bits() - ring.q_groups() > 8 || ring.q_bits() - ring.q_groups() < 3)
      by_warps(ring);
  }
  static void by_warps(RingPlan& ring) {
    ring.sync = true;
    ring.swapped = ring.p_registers = ring.promote = false;
  }

  /// A product outside of loops with rings, whose right operand, and the left one if it is loaded for it alone, come through stages as in a
  /// ring. `limit`: bytes that a stage should have at most. `groups`: log2 of the warpgroups, where others have chosen it.
  std::optional<RingPlan> find_single(InstId mma, uint32_t limit, std::optional<unsigned> groups, std::string& why) {
    loop_ = branch_ = kNone;
    RingPlan ring;
    ring.loop = ring.mma = mma;
    ring.single = true;
    if (!target_.wgmma() || by_warps_only_) return fail(why, "--plan mma=sync");
    if (f_.insts[mma].op == Opcode::MmaFScaled) return fail(why, "scaled products have no ring");
    if (!take_product(ring, why)) return std::nullopt;
    element_bytes_ = ring.element_bytes;
    const auto operands = f_.operands(mma);
    if (!operand(operands[1], ring.n_bits, ring.k_bits, true, ring.b, why) || !may_wait(ring.b.load, mma, why)) return std::nullopt;
    std::string unused;
    const size_t maps = pending_.size();
    if (!operand(operands[0], ring.k_bits, ring.m_bits, false, ring.a, unused) || !may_wait(ring.a.load, mma, unused)) {
      pending_.resize(maps);
      ring.a = {};
      ring.a_registers = true;
    }
    if (!ring.a_registers) {
      choose_unit(ring);
      if (ring.sync) return fail(why, "no form of it takes the tile");
      if (groups && ring.group_bits != *groups) return fail(why, "a loop of the kernel uses another number of warpgroups");
    } else {
      if (ring.element_bytes != 2) return fail(why, "its left operand is not loaded, and has no elements of 16 bits");
      if (ring.m_bits < 6 || ring.n_bits > 8) return fail(why, "the tile does not fit wgmma");
      ring.group_bits = groups ? *groups : alternate_ && ring.m_bits + ring.n_bits <= 14 ? 0 : ring.m_bits >= 7 ? 1 : 0;
      if (ring.m_bits < 6 + ring.group_bits) return fail(why, "there are rows for one warpgroup only");
      if (ring.m_bits + ring.n_bits - 7 - ring.group_bits > 7) return fail(why, "the accumulator needs more than 128 registers a thread");
    }
    if (single_registers(ring) + registers_across(mma, 7 + ring.group_bits) > (computes_much(ring) ? kSingleRegisters - 64 : kSingleRegisters))
      return fail(why, "its operands and what is kept beside them need more registers than there are");
    // Pieces of K that a stage holds. Where K is contiguous, rows of 128 bytes stay whole.
    const unsigned all = ring.k_bits;
    const auto cut = [&](RingPlan::Operand& o, unsigned k_bits) {
      if (o.mn_major) {
        o.rows = 1u << k_bits;
      } else {
        o.panels = std::max(1u, (ring.element_bytes << k_bits) / 128);
      }
    };
    const auto bytes = [&](unsigned k_bits) {
      uint32_t sum = 0;
      for (RingPlan::Operand o : {ring.a, ring.b}) {
        if (o.load == kNone) continue;
        cut(o, k_bits);
        sum += (o.bytes() + 1023) & ~1023u;
      }
      return sum;
    };
    const bool rows = (!ring.a_registers && !ring.a.mn_major) || !ring.b.mn_major;
    const unsigned least = std::min(all, (rows ? 7 : 6) - log2_of(ring.element_bytes));
    while (ring.k_bits > least && bytes(ring.k_bits) > limit) --ring.k_bits;
    ring.trips = 1u << (all - ring.k_bits);
    for (auto* o : {&ring.a, &ring.b}) {
      if (o->load == kNone) continue;
      cut(*o, ring.k_bits);
      TensorMapSpec& map = pending_[o->map - plan_.maps.size()];
      for (size_t d = 0; d < o->tile_dim.size(); ++d)
        if (o->tile_dim[d] == o->outer) map.box[d] = o->rows;
    }
    ring.b.offset = (ring.a.bytes() + 1023) & ~1023u;
    ring.stage_bytes = (ring.b.offset + ring.b.bytes() + 1023) & ~1023u;
    if (plan_.rings.size() + plan_.streams.size() == kMaxRings) return fail(why, "the kernel has eight rings already");
    ring.barriers = static_cast<uint32_t>(plan_.rings.size() + plan_.streams.size()) * 16 * RingPlan::kMaxStages;
    ring.stages = std::min({RingPlan::kMaxStages, ring.trips, (RingPlan::kSharedBytes - RingPlan::kFirstStage) / ring.stage_bytes});
    if (ring.stages < std::min(2u, ring.trips)) return fail(why, "two stages do not fit into shared memory");
    return ring;
  }

  /// The stream of a loop whose body does more than one product; nullopt if no product of it can be streamed.
  std::optional<StreamPlan> find_stream(InstId loop, std::map<InstId, std::string>& why) {
    loop_ = loop;
    element_bytes_ = 2;
    StreamPlan stream;
    stream.loop = loop;
    const Region& r = f_.region(loop);
    for (InstId i = r.begin; i < r.end; ++i) {
      const Effect e = f_.def(i).effect;
      if (e == Effect::Write || e == Effect::ReadWrite) return std::nullopt;
    }
    for (InstId i = r.begin; i < r.end; i = f_.insts[i].next) {
      if (f_.insts[i].op != Opcode::MmaF) continue;
      std::string reason;
      if (!stream_product(i, stream, reason)) why[i] = reason;
    }
    if (stream.products.empty()) return std::nullopt;
    for (const RingPlan::Operand& o : stream.loads) {
      stream.skipped.push_back(o.load);
      stream.skipped.insert(stream.skipped.end(), o.chain.begin(), o.chain.end());
    }
    std::sort(stream.index_slice.begin(), stream.index_slice.end());
    stream.index_slice.erase(std::unique(stream.index_slice.begin(), stream.index_slice.end()), stream.index_slice.end());
    stream.stages = std::min(RingPlan::kMaxStages, (RingPlan::kSharedBytes - RingPlan::kFirstStage) / stream.stage_bytes);
    if (stream.stages < 2 || plan_.rings.size() + plan_.streams.size() == kMaxRings) return std::nullopt;
    return stream;
  }

 private:
  /// Stages of a ring of cp.async, which has no barriers in shared memory.
  std::optional<RingPlan> copy_stages(RingPlan& ring, std::string& why) const {
    const uint32_t all = target_.max_shared();
    const auto fit = [&](uint32_t bytes) { return bytes < RingPlan::kFirstStage ? 0 : (bytes - RingPlan::kFirstStage) / ring.stage_bytes; };
    ring.stages = std::min(ring.sync ? kMaxCopyStages : RingPlan::kMaxStages, fit(all));
    if (ring.stages < 2) return fail(why, "two stages do not fit into shared memory");
    uint32_t tables = 0;
    for (auto* o : {&ring.a, &ring.b}) {
      if (o->chosen == kNone) continue;
      o->table = tables;
      tables += 4 * o->rows;
    }
    if (tables > RingPlan::kFirstStage) return fail(why, "more than 256 rows are gathered");
    // With more accumulators than that a second block has no registers.
    if (!ring.sync && ring.p_bits() + ring.q_bits() - 7 - ring.group_bits > 6) return ring;
    if (!ring.sync && one_block_) return ring;
    // Two blocks on an SM hide each other's barriers.
    if (const uint32_t half = fit((all + RingPlan::kReserved) / 2 - RingPlan::kReserved); half >= 3) ring.stages = std::min(ring.stages, half);
    return ring;
  }

  bool stream_product(InstId i, StreamPlan& stream, std::string& why) {
    const auto operands = f_.operands(i);
    const ValueId result = f_.result(i);
    const auto shape_a = m_.types.shape_of(f_.type(operands[0])), shape_r = m_.types.shape_of(f_.type(result));
    const ElementType e = m_.types.element_of(f_.type(operands[0]));
    if (shape_r.size() != 2) return bad(why, "the product has a batch dimension");
    if ((e != ElementType::F16 && e != ElementType::BF16) || m_.types.element_of(f_.type(result)) != ElementType::F32)
      return bad(why, "only f16 and bf16 with an f32 accumulator are streamed");
    StreamPlan::Product p{i, 0, log2_of(shape_r[0]), log2_of(shape_r[1]), log2_of(shape_a[1]), e == ElementType::BF16};
    if (p.m_bits < 6 || p.n_bits < 3 || p.k_bits < 4 || p.n_bits > 8) return bad(why, "the tile does not fit wgmma");
    const unsigned group_bits = p.m_bits >= 7 ? 1 : 0;
    if (p.m_bits + p.n_bits - 7 - group_bits > 7) return bad(why, "the accumulator needs more than 128 registers a thread");
    if (!stream.products.empty() && group_bits != stream.group_bits) return bad(why, "the loop's products have different numbers of rows");
    RingPlan::Operand b;
    const size_t maps = pending_.size();
    if (!operand(operands[1], p.n_bits, p.k_bits, true, b, why)) {
      pending_.resize(maps);
      return false;
    }
    std::vector<InstId> slice;
    for (const ValueId v : f_.group(b.load, 1))
      if (!index(v, slice)) {
        pending_.resize(maps);
        return bad(why, "an index depends on what the loop computes");
      }
    stream.index_slice.insert(stream.index_slice.end(), slice.begin(), slice.end());
    stream.group_bits = group_bits;
    b.offset = stream.stage_bytes;
    stream.stage_bytes += (b.bytes() + 1023) & ~1023u;
    p.load = stream.loads.size();
    stream.loads.push_back(std::move(b));
    stream.products.push_back(p);
    return true;
  }

  static std::nullopt_t fail(std::string& why, std::string text) {
    why = std::move(text);
    return std::nullopt;
  }

  /// Whether a load can be made where its product stands: nothing that writes, and could be ordered behind it, comes in between.
  bool may_wait(InstId load, InstId mma, std::string& why) const {
    if (uses_[f_.result(load, 1)] == 0) return true;
    for (InstId i = load; i < mma; ++i) {
      const Effect e = f_.def(i).effect;
      if (e == Effect::Write || e == Effect::ReadWrite || f_.def(i).regions != 0) return bad(why, "what follows the load of an operand comes before the product");
    }
    return true;
  }

  /// Registers of a thread, of 2^thread_bits, for tiles that are made before a product and read after it.
  unsigned registers_across(InstId mma, unsigned thread_bits) const {
    std::vector<bool> read(f_.value_types.size(), false);
    for (InstId i = mma + 1; i < f_.insts.size(); ++i)
      for (const ValueId v : f_.operands(i)) read[v] = true;
    unsigned sum = 0;
    for (InstId i = 0; i < mma; ++i) {
      if (f_.insts[i].op == Opcode::Constant || f_.insts[i].op == Opcode::Iota || f_.insts[i].op == Opcode::Broadcast) continue;
      for (uint32_t k = 0; k < f_.insts[i].result_count; ++k) {
        const ValueId v = f_.result(i, k);
        if (!read[v] || !m_.types.is_tile(f_.type(v))) continue;
        const unsigned bits = element_bits(m_.types.shape_of(f_.type(v)));
        if (bits > thread_bits) sum += 1u << (bits - thread_bits);
      }
    }
    return sum;
  }

  /// Whether the left operand is computed by functions that need registers of their own, beside its f32.
  bool computes_much(const RingPlan& ring) const {
    if (!ring.a_registers) return false;
    for (InstId i = 0; i < ring.mma; ++i) {
      switch (f_.insts[i].op) {
        case Opcode::FToF: case Opcode::AddF: case Opcode::SubF: case Opcode::MulF: case Opcode::Fma: case Opcode::MaxF: case Opcode::MinF: case Opcode::NegF:
        case Opcode::AbsF: case Opcode::Select: case Opcode::CmpF:
          continue;
        default: break;
      }
      if (!is_elementwise(f_.insts[i].op)) continue;
      const auto bits = element_bits(m_.types.shape_of(f_.type(f_.result(i))));
      if (bits + 1 >= ring.m_bits + ring.k_bits && m_.types.element_of(f_.type(f_.result(i))) == ElementType::F32) return true;
    }
    return false;
  }

  /// In the loop at hand; anywhere for a product outside of loops.
  bool inside(InstId i) const { return i != kNone && (loop_ == kNone || (i > loop_ && i < f_.insts[loop_].next)); }

  /// May stand in the loop beside the product: is not computed by it, or can be left out.
  bool harmless(InstId i) const {
    switch (f_.insts[i].op) {
      case Opcode::LoadViewTko: case Opcode::Reshape: case Opcode::Permute: case Opcode::Constant: case Opcode::MakeToken: case Opcode::JoinTokens:
      case Opcode::FToF: case Opcode::Continue: case Opcode::Yield: case Opcode::Assume: case Opcode::MakePartitionView: case Opcode::MakeTensorView:
        return true;
      // Addresses and masks of loads through pointers: sums that the copies' code makes anew.
      case Opcode::LoadPtrTko: case Opcode::Iota: case Opcode::Broadcast: return !bulk_;
      default:
        if (!bulk_ && is_elementwise(f_.insts[i].op)) return true;
        return is_elementwise(f_.insts[i].op) && m_.types.is_scalar(f_.type(f_.result(i)));
    }
  }

  /// The accumulator comes in as a carried value, goes out as the next, and nothing else looks at it; no other tile is carried.
  bool carried(RingPlan& ring) const {
    const Region& r = f_.region(ring.loop);
    const ValueId acc = f_.operands(ring.mma)[2];
    ValueId result = f_.result(ring.mma);
    if (acc < r.first_arg + 1 || acc >= r.first_arg + r.arg_count || uses_[acc] != (branch_ == kNone ? 1u : 2u) || uses_[result] != 1) return false;
    if (branch_ != kNone) {
      // The other way hands the accumulator on as it is.
      const auto yields = [&](size_t way, ValueId v) {
        const InstId last = f_.last_of(f_.region(branch_, way));
        return last != kNone && f_.insts[last].op == Opcode::Yield && f_.operands(last)[0] == v;
      };
      if (!yields(0, result) || !yields(1, acc)) return false;
      result = f_.result(branch_);
      if (uses_[result] != 1) return false;
    }
    ring.carried = acc - r.first_arg - 1;
    const InstId last = f_.last_of(r);
    if (last == kNone || f_.insts[last].op != Opcode::Continue || f_.operands(last)[ring.carried] != result) return false;
    for (uint32_t k = 1; k < r.arg_count; ++k) {
      if (k - 1 == ring.carried || m_.types.is_token(f_.type(r.first_arg + k))) continue;
      // Pointers that move on: the copies' code computes them from the trip.
      if (bulk_ || uses_[f_.result(ring.loop, k - 1)] != 0) return false;
    }
    return true;
  }

  /// Follows an operand (rows x columns, `minor_bits` for columns) back to its load.
  bool operand(ValueId v, unsigned minor_bits, unsigned major_bits, bool is_b, RingPlan::Operand& out, std::string& why) {
    // to[bit of the value at hand] = bit of the operand.
    std::vector<int> to(minor_bits + major_bits);
    bool rounds = false;
    for (size_t k = 0; k < to.size(); ++k) to[k] = static_cast<int>(k);
    for (;;) {
      const InstId i = def_[v];
      if (!inside(i) || uses_[v] != 1) return bad(why, loop_ == kNone ? "the right operand is not loaded for the product alone" : "an operand is not loaded in the loop for the product alone");
      const Opcode op = f_.insts[i].op;
      if (op == Opcode::LoadViewTko || (op == Opcode::LoadPtrTko && !bulk_)) {
        out.load = i;
        break;
      }
      out.chain.push_back(i);
      if (op == Opcode::Permute) {
        const ValueId s = f_.operands(i)[0];
        const auto& ints = m_.attrs.get(f_.attr(i, 0)).ints;
        Layout probe;  // carries bit k of the source in register bit k
        for (size_t k = 0; k < to.size(); ++k) probe.reg.push_back(static_cast<int8_t>(k));
        const Layout moved = permuted_layout(probe, m_.types.shape_of(f_.type(s)), std::vector<int32_t>(ints.begin(), ints.end()));
        std::vector<int> next(to.size());
        for (size_t k = 0; k < to.size(); ++k) next[k] = to[static_cast<size_t>(moved.reg[k])];
        to = next;
      } else if (op == Opcode::FToF && m_.types.element_of(f_.type(v)) == ElementType::TF32 && m_.types.element_of(f_.type(f_.operands(i)[0])) == ElementType::F32 &&
                 f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "rounding_mode"))) == 0) {
        rounds = true;  // bulk copies round to nearest even on the way; else fragments are rounded
      } else if (op != Opcode::Reshape) {
        return bad(why, "an operand passes through " + std::string(f_.def(i).name));
      }
      v = f_.operands(i)[0];
    }
    const InstId load = out.load;
    const auto& row = f_.def(load);
    if (f_.attr(load, static_cast<size_t>(attr_index(row, "memory_ordering_semantics"))) != 0) return bad(why, "an operand's load is ordered");
    const ValueId view = f_.operand(load, 0);
    const bool by_pointers = f_.insts[load].op == Opcode::LoadPtrTko;
    if (by_pointers) {
      out.pointers = AffineFinder(m_, f_, def_, loop_).load(load);
      if (!out.pointers) return bad(why, "an operand's pointers or its mask are no sums over rows and columns");
    }
    const Type& t = m_.types.get(f_.type(by_pointers ? f_.result(load) : view));
    const bool gathers = t.kind == TypeKind::GatherScatterView;
    if (!by_pointers && t.kind != TypeKind::PartitionView && (bulk_ || !gathers)) return bad(why, "an operand's view is not a partition");
    if (!by_pointers && t.padding != kNone && t.padding != 0) return bad(why, "an operand's padding is not zero");
    const size_t rank = t.shape.size();
    if (bulk_ && rank > 5) return bad(why, "an array has more than five dimensions");
    if (gathers) {
      out.chosen = f_.group(load, 1)[t.sparse_dim];
      if (inside(def_[out.chosen]) || (def_[out.chosen] == kNone && out.chosen >= f_.region(loop_).first_arg)) return bad(why, "the rows that are gathered are chosen in the loop");
      if (m_.types.element_of(f_.type(out.chosen)) != ElementType::I32) return bad(why, "the rows that are gathered have no numbers of 32 bits");
    }
    const auto stride_is_one = [&](size_t k) {
      if (by_pointers) {
        // One of the moves walks along the dimension, one element at a time.
        int walking = 0;
        for (const AffineTile& move : out.pointers->pointers.moves)
          if (move.step[k] >= 0) walking = out.pointers->scalars.known(move.step[k]) == 1 ? walking + 1 : 2;
        return walking == 1;
      }
      if (gathers && k == t.sparse_dim) return false;
      return m_.types.get(t.inner).strides[gathers ? k : static_cast<size_t>(t.dim_map[k])] == 1;
    };

    // Two dimensions of the tile are longer than one; the contiguous one is the inner one of the copy.
    const auto first = dim_bits(t.shape);
    int inner = -1, outer = -1;
    for (size_t k = 0; k < rank; ++k) {
      if (t.shape[k] == 1) continue;
      if (stride_is_one(k) && inner < 0) {
        inner = static_cast<int>(k);
      } else if (outer < 0) {
        outer = static_cast<int>(k);
      } else {
        return bad(why, "an operand's tile has more than two dimensions");
      }
    }
    if (inner < 0 || outer < 0) return bad(why, "an operand has no dimension with stride one");
    if (gathers && outer != static_cast<int>(t.sparse_dim)) return bad(why, "single rows are gathered");
    const auto contiguous_at = [&](int dim, unsigned start) {
      for (unsigned k = 0; k < log2_of(t.shape[static_cast<size_t>(dim)]); ++k)
        if (to[first[static_cast<size_t>(dim)] + k] != static_cast<int>(start + k)) return false;
      return true;
    };
    const bool inner_is_minor = contiguous_at(inner, 0) && contiguous_at(outer, minor_bits);
    if (!inner_is_minor && !(contiguous_at(inner, minor_bits) && contiguous_at(outer, 0))) return bad(why, "an operand's elements are rearranged");
    // A is M x K, so its minor dimension is K; B is K x N.
    out.mn_major = inner_is_minor == is_b;
    const int64_t inner_bytes = t.shape[static_cast<size_t>(inner)] * element_bytes_;
    if (inner_bytes < 32) return bad(why, "an operand's rows are shorter than 32 bytes");
    out.row_bytes = static_cast<uint32_t>(std::min<int64_t>(inner_bytes, 128));
    out.panels = static_cast<uint32_t>(inner_bytes / out.row_bytes);
    out.rows = static_cast<uint32_t>(t.shape[static_cast<size_t>(outer)]);
    out.inner = inner;
    out.outer = outer;
    if (!bulk_) {
      out.rounds = rounds;
      return out.rows >= 8 || bad(why, "an operand's tile has fewer than 8 rows");
    }
    if (out.rows > kMaxBox || out.rows < 8) return bad(why, "an operand's tile has more than 256 or fewer than 8 rows");

    TensorMapSpec map;
    map.element = m_.types.element_of(f_.type(view));
    map.swizzle = out.swizzle();
    map.round_tf32 = rounds;
    if (!map_of_array(m_, f_, def_, view, static_cast<size_t>(t.dim_map[static_cast<size_t>(inner)]), "an operand's", map, out.tile_dim, why)) return false;
    // Innermost first: the contiguous dimension, then the others from the last.
    for (size_t d = 0; d < out.tile_dim.size(); ++d) {
      const int k = out.tile_dim[d];
      map.box.push_back(k == inner ? out.row_bytes / element_bytes_ : k == outer ? out.rows : 1);
    }
    out.map = static_cast<unsigned>(plan_.maps.size() + pending_.size());
    pending_.push_back(std::move(map));
    return true;
  }

  static bool bad(std::string& why, std::string text) {
    why = std::move(text);
    return false;
  }

  /// An index that can be computed for a later iteration: from the induction variable and what the loop does not change.
  /// `counting`: the induction variable may be among what it is made of.
  bool index(ValueId v, std::vector<InstId>& slice, bool counting = true) const {
    const Region& r = f_.region(loop_);
    const InstId i = def_[v];
    if (i == kNone) return (counting && v == r.first_arg) || v < r.first_arg || v >= r.first_arg + r.arg_count;
    if (!inside(i)) return true;
    const Opcode op = f_.insts[i].op;
    if (!bulk_ && element_bits(m_.types.shape_of(f_.type(v))) == 0) {
      // All threads compute the indices, so that these may be loaded, too.
      if (op == Opcode::LoadViewTko && m_.types.get(f_.type(f_.operand(i, 0))).kind == TypeKind::PartitionView &&
          f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "memory_ordering_semantics"))) == 0) {
        if (!view(f_.operand(i, 0), slice)) return false;
        for (const ValueId o : f_.group(i, 1))
          if (!index(o, slice, counting)) return false;
        slice.push_back(i);
        return true;
      }
      if (op == Opcode::Reshape) {
        if (!index(f_.operands(i)[0], slice, counting)) return false;
        slice.push_back(i);
        return true;
      }
    }
    if (op != Opcode::Constant && op != Opcode::Assume && !is_elementwise(op)) return false;
    if (!m_.types.is_scalar(f_.type(v))) return false;
    for (const ValueId o : f_.operands(i))
      if (!index(o, slice, counting)) return false;
    slice.push_back(i);
    return true;
  }

  /// Whether the scalars of pointers and their masks can be computed for a later iteration; the moves of a trip are those of any.
  bool scalars(const PointerLoad& load, std::vector<InstId>& slice) const {
    std::vector<int> fixed;
    for (const AffineTile& t : load.pointers.trips) fixed.push_back(t.start);
    for (size_t k = 0; k < fixed.size(); ++k) {
      if (fixed[k] < 0) continue;
      const auto& node = load.scalars.nodes[static_cast<size_t>(fixed[k])];
      if (node.kind == ScalarNodes::Kind::Value && !index(node.value, slice, false)) return false;
      if (node.left >= 0) fixed.push_back(node.left);
      if (node.right >= 0) fixed.push_back(node.right);
    }
    for (const auto& node : load.scalars.nodes)
      if (node.kind == ScalarNodes::Kind::Value && !index(node.value, slice)) return false;
    return index(load.pointers.base, slice);
  }

  /// A view that can be made for a later iteration.
  bool view(ValueId v, std::vector<InstId>& slice) const {
    const Region& r = f_.region(loop_);
    const InstId i = def_[v];
    if (i == kNone) return v < r.first_arg || v >= r.first_arg + r.arg_count;
    if (!inside(i)) return true;
    switch (f_.insts[i].op) {
      case Opcode::MakePartitionView: case Opcode::MakeGatherScatterView: case Opcode::Assume:
        if (!view(f_.operands(i)[0], slice)) return false;
        break;
      case Opcode::MakeTensorView:
        for (const ValueId o : f_.operands(i))
          if (!index(o, slice)) return false;
        break;
      default: return false;
    }
    slice.push_back(i);
    return true;
  }

  const Module& m_;
  const Function& f_;
  const Target& target_;
  const bool bulk_;
  KernelPlan& plan_;
  std::vector<InstId> def_;
  std::vector<uint32_t> uses_;
  InstId loop_ = kNone, branch_ = kNone;   ///< branch_: the `if` in it that holds the product
  unsigned element_bytes_ = 2;

 public:
  bool by_warps_only_ = false;          ///< --plan mma=sync
  bool warps_forced_ = false;           ///< --plan warps=N
  bool alternate_ = false;              ///< warpgroups alternate (KernelPlan::alternate)
  bool one_block_ = false;              ///< --plan blocks=1
  bool in_registers_ = false;           ///< also with an operand in registers: --plan alternate=on
  std::vector<TensorMapSpec> pending_;  ///< maps of the ring just found
};

/// Whether the trips of the loops around a product, and that it is come to at all, are those of rings: no loop stands around it but such as hold a
/// loop with a ring, too.
bool beside_rings(const Function& f, const KernelPlan& plan, InstId mma) {
  for (InstId i = 0; i < mma; ++i) {
    if ((f.insts[i].op != Opcode::For && f.insts[i].op != Opcode::Loop) || f.insts[i].next <= mma) continue;
    const bool holds = std::any_of(plan.rings.begin(), plan.rings.end(), [&](const auto& r) { return !r.second.single && r.first > i && r.first < f.insts[i].next; });
    if (plan.rings.contains(i) || plan.streams.contains(i) || !holds) return false;
  }
  return true;
}

/// Warps for a ring of cp.async, as log2. 64 x 64 elements of the result for each where two blocks share an SM: fragments are then read least
/// often. Else twice as many warps, which hide each other's waits. Other products and larger tiles of the kernel may want more.
unsigned copy_warps(const Module& m, const Function& f, const Target& target, const RingPlan& ring, unsigned chosen, bool first) {
  const bool two = 2 * (ring.end() + RingPlan::kReserved) <= target.max_shared() + RingPlan::kReserved;
  const unsigned bits = ring.m_bits + ring.n_bits, elements = ring.element_bytes == 8 ? 10 : two && bits < 15 ? 12 : 11;
  const unsigned mine = std::clamp(bits, elements + 2, elements + 3) - elements;
  unsigned products = 0, largest = 0;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const Opcode op = f.insts[i].op;
    products += is_product(op) ? 1 : 0;
    if (i > ring.loop && i < f.insts[ring.loop].next) continue;
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r)
      if (const TypeId t = f.type(f.result(i, r)); m.types.is_tile(t)) largest = std::max(largest, element_bits(m.types.shape_of(t)));
  }
  return first && products == 1 && largest <= bits ? mine : std::max(chosen, mine);
}

}  // namespace

Layout RingPlan::wgmma_layout() const {
  const RowOrder order = !p_registers ? RowOrder::Plain : element_bytes == 1 ? RowOrder::Bytes : RowOrder::Words;
  return tile::wgmma_layout(order, swapped ? 0 : n_bits, p_bits(), swapped ? n_bits : 0, q_bits(), group_bits);
}

unsigned readers(const RingPlan& r, unsigned warp_bits) { return r.sync || r.p_registers ? 1u << warp_bits : 1u << r.group_bits; }

namespace {

/// What plan_rings() leaves in the plan and in `why`. `singles`: products outside of loops, too.
void find_rings(const Module& m, const Function& f, const Target& target, const CompileOptions& options, bool bulk, bool alternate, bool singles, KernelPlan& plan,
                std::map<InstId, std::string>& why) {
  RingFinder finder(m, f, target, bulk, plan);
  const bool warps_forced = options.plan.contains("warps");
  finder.alternate_ = alternate;
  finder.in_registers_ = options.choice("alternate") == "on";
  finder.by_warps_only_ = options.choice("mma") == "sync";
  finder.warps_forced_ = warps_forced;
  finder.one_block_ = options.choice("blocks") == "1";
  unsigned group_bits = 0;
  bool groups_chosen = false;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (f.insts[i].op != Opcode::For) continue;
    InstId mma = kNone;
    std::string reason;
    finder.pending_.clear();
    auto ring = finder.find(i, &mma, reason);
    if (!ring) {
      if (mma != kNone && !why.contains(mma)) why[mma] = reason;
      finder.pending_.clear();
      auto stream = bulk ? finder.find_stream(i, why) : std::nullopt;
      if (!stream || (groups_chosen && stream->group_bits != group_bits)) continue;
      for (const auto& p : stream->products) why.erase(p.mma);
      group_bits = stream->group_bits;
      groups_chosen = true;
      plan.warp_bits = 2 + group_bits;
      plan.maps.insert(plan.maps.end(), finder.pending_.begin(), finder.pending_.end());
      plan.streams.emplace(i, *std::move(stream));
      continue;
    }
    if (!ring->sync && groups_chosen && ring->group_bits != group_bits) {
      why[mma] = "another loop of the kernel uses another number of warpgroups";
      continue;
    }
    // A product by all warps of a ring before it may need more of them.
    const auto crowded = [&](const auto& other) { return other.second.copies && other.second.sync && other.second.m_bits + other.second.n_bits > 2 + ring->group_bits + 12; };
    if (!ring->sync && std::any_of(plan.rings.begin(), plan.rings.end(), crowded)) {
      why[mma] = "another loop of the kernel needs more warps";
      continue;
    }
    // Warpgroups of a product before it settle how many warps there are.
    const bool warps_settled = warps_forced || groups_chosen;
    if (ring->copies && ring->sync && warps_settled && ring->m_bits + ring->n_bits > plan.warp_bits + 12) {
      why[mma] = "the accumulator needs more than 128 registers a thread";
      continue;
    }
    if (ring->copies && ring->sync && !warps_settled) plan.warp_bits = copy_warps(m, f, target, *ring, plan.warp_bits, plan.rings.empty());
    if (!ring->sync) {
      group_bits = ring->group_bits;
      groups_chosen = true;
      plan.warp_bits = 2 + group_bits;
    }
    plan.maps.insert(plan.maps.end(), finder.pending_.begin(), finder.pending_.end());
    plan.rings.emplace(i, *std::move(ring));
  }
  if (!bulk) {
    plan.alternate = alternate && take_turns(plan);
    plan_copies(m, f, target, options, plan);
    return;
  }
  // Stages are cut so that those of loops stay as many as they are.
  uint32_t limit = 0;
  bool by_warps = false;
  for (const auto& [loop, r] : plan.rings) limit = std::max(limit, r.stage_bytes), by_warps = by_warps || r.sync;
  if (singles && !by_warps && plan.streams.empty() && (!plan.rings.empty() || options.choice("single") == "on"))
    for (InstId i = 0; i < f.insts.size(); ++i) {
      if (!is_product(f.insts[i].op) || !beside_rings(f, plan, i)) continue;
      finder.pending_.clear();
      std::string reason;
      auto ring = finder.find_single(i, limit == 0 ? kSingleStage : limit, groups_chosen ? std::optional(group_bits) : std::nullopt, reason);
      if (!ring) {
        why[i] = reason;
        continue;
      }
      why.erase(i);
      group_bits = ring->group_bits;
      groups_chosen = true;
      plan.warp_bits = 2 + group_bits;
      for (const auto* o : {&ring->a, &ring->b}) {
        if (o->load == kNone) continue;
        plan.staged.push_back(o->load);
        plan.staged.insert(plan.staged.end(), o->chain.begin(), o->chain.end());
      }
      plan.maps.insert(plan.maps.end(), finder.pending_.begin(), finder.pending_.end());
      plan.rings.emplace(i, *std::move(ring));
    }
  std::sort(plan.staged.begin(), plan.staged.end());
  plan.alternate = alternate && take_turns(plan);
  plan_stores(m, f, options, plan);
  plan_occupancy(m, f, options, plan);
  plan_stream_resources(m, f, options, plan);
}

/// Whether cp.async can feed loops of products, and bulk copies none. Then `why` says what keeps bulk copies from it.
bool copies_only(const Module& m, const Function& f, const Target& target, const CompileOptions& options, KernelPlan& plan, std::map<InstId, std::string>& why) {
  RingFinder by_bulk(m, f, target, true, plan), by_copies(m, f, target, false, plan);
  by_bulk.by_warps_only_ = by_copies.by_warps_only_ = options.choice("mma") == "sync";
  std::map<InstId, std::string> reasons;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (f.insts[i].op != Opcode::For) continue;
    InstId mma = kNone;
    std::string reason, unused;
    by_bulk.pending_.clear();
    if (by_bulk.find(i, &mma, reason)) return false;
    if (mma == kNone) continue;
    if (!by_copies.find(i, &mma, unused)) return false;
    reasons[mma] = reason;
  }
  why.insert(reasons.begin(), reasons.end());
  return !reasons.empty();
}

}  // namespace

void plan_rings(const Module& m, const Function& f, const Target& target, const CompileOptions& options, KernelPlan& plan, std::map<InstId, std::string>& why) {
  if (options.choice("ring") == "off") return;
  const bool bulk = target.wgmma() && target.tma() && options.choice("tma") != "off" && !options.plan.contains("warps");
  if (!bulk && !target.cp_async()) return;
  // Loops that bulk copies cannot feed have rings of cp.async where no loop of the kernel can be fed by them.
  const auto tried = [&](bool by_bulk, bool alternate, bool singles) {
    std::pair<KernelPlan, std::map<InstId, std::string>> out{plan, why};
    find_rings(m, f, target, options, by_bulk, alternate, singles, out.first, out.second);
    return out;
  };
  const auto take = [&](auto&& found) {
    plan = std::move(found.first);
    why = std::move(found.second);
  };
  if (!bulk || copies_only(m, f, target, options, plan, why)) {
    // Turns on request: three measurements of f16 4096 through pointers on an H200 gave 0.91 to 1.02 of the peer's rate with them, 0.95 to 0.99 without.
    if (target.wgmma() && plan.loops && options.choice("alternate") == "on" && may_alternate(m, f, options, plan))
      if (auto found = tried(false, true, false); found.first.alternate && found.first.roles) return take(std::move(found));
    return take(tried(false, false, false));
  }
  const bool singles = options.choice("single") != "off";
  if (may_alternate(m, f, options, plan)) {
    // The two meet nowhere but at their barriers: each needs the producer, and stores from a stage of its own.
    const auto good = [&](const KernelPlan& p) { return p.alternate && p.roles && p.why_direct.empty() && !p.stores.empty() && turns_fit(f, p); };
    for (const bool with : {true, false}) {
      if (with && !singles) continue;
      if (auto found = tried(true, true, with); good(found.first)) return take(std::move(found));
    }
  }
  auto found = tried(true, false, singles);
  // A producer is worth more than a product outside of the loops that it feeds.
  if (!found.first.staged.empty() && !found.first.roles)
    if (auto without = tried(true, false, false); without.first.roles) return take(std::move(without));
  take(std::move(found));
}

}  // namespace tile
