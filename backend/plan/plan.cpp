// Layout assignment: values that meet in elementwise operations and control flow share a layout; matrix products and memory accesses
// choose it; reshaping operations pass it on; conversions are left where the choices differ.
#include "backend/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace tile {

bool is_elementwise(Opcode op) {
  switch (op) {
    case Opcode::Broadcast: case Opcode::Cat: case Opcode::MmaF: case Opcode::MmaI: case Opcode::MmaFScaled: case Opcode::Permute:
    case Opcode::Reshape: case Opcode::Pack: case Opcode::Unpack: case Opcode::Extract: case Opcode::Insert:
      return false;
    default: break;
  }
  const OpDef& row = op_def(op);
  if (row.regions != 0 || row.terminator || row.operands.empty() || row.results.size() != 1) return false;
  if (row.effect != Effect::Pure && row.effect != Effect::NotSpeculatable) return false;
  const auto plain = [](const OperandDef& o) { return o.kind == ValueKind::Tile && o.arity == Arity::One; };
  return std::all_of(row.operands.begin(), row.operands.end(), plain) && plain(row.results[0]);
}

std::vector<unsigned> memory_order(const Module& m, TypeId view) {
  const Type& t = m.types.get(view);
  const Type& tensor = m.types.get(t.inner);
  std::vector<unsigned> order(t.shape.size());
  const auto stride = [&](unsigned tile_dim) {
    const size_t d = t.kind == TypeKind::GatherScatterView ? tile_dim : static_cast<size_t>(t.dim_map[tile_dim]);
    return tensor.strides[d];
  };
  for (unsigned k = 0; k < order.size(); ++k) order[k] = static_cast<unsigned>(order.size() - 1 - k);
  // Only a static stride of one says for certain which dimension is contiguous.
  const auto one = std::find_if(order.begin(), order.end(), [&](unsigned k) { return stride(k) == 1 && t.shape[k] > 1; });
  if (one != order.end()) std::rotate(order.begin(), one, one + 1);
  return order;
}

bool adds_runs(const Module& m, const Function& f, const Target& target, InstId i) {
  if (target.sm < 90 || f.insts[i].op != Opcode::AtomicRedViewTko) return false;
  const ElementType e = m.types.element_of(f.type(f.operand(i, static_cast<size_t>(operand_index(f.def(i), "value")))));
  constexpr uint32_t kAddF = 4;  // of the mode
  return f.attr(i, static_cast<size_t>(attr_index(f.def(i), "mode"))) == kAddF && (e == ElementType::F32 || e == ElementType::F16 || e == ElementType::BF16);
}

namespace {

class Planner {
 public:
  Planner(const Module& m, const Function& f, const Target& target, const CompileOptions& options, Diagnostics& diags)
      : m_(m), f_(f), target_(target), options_(options), diags_(diags), parent_(f.value_types.size()), layouts_(f.value_types.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  Result<KernelPlan> run() {
    for (ValueId v = 0; v < f_.value_types.size(); ++v)
      if (tile(v) && element_bits(shape(v)) > kMaxBits)
        return diags_.error(Code::E0808, m_.place_value(f_, v),
                            "a tile of " + std::to_string(int64_t{1} << element_bits(shape(v))) + " elements; the GPU part takes up to " +
                                std::to_string(1 << kMaxBits),
                            "cut the tile into smaller ones");
    plan_.facts = Facts(m_, f_);
    plan_.whole_tiles = options_.choice("whole") != "off";
    plan_.shifted_pieces = options_.choice("unaligned") == "pieces";
    choose_warps();
    plan_.loops = options_.choice("grid") == "loop" && blocks_may_follow(m_, f_);
    plan_rings(m_, f_, target_, options_, plan_, why_no_ring_);
    for (const auto& [loop, ring] : plan_.rings) ring_of_[ring.mma] = &ring;
    for (InstId i = 0; i < f_.insts.size(); ++i) unite(i);
    for (InstId i = 0; i < f_.insts.size(); ++i) plan_mma(i);
    remark_copies();
    for (InstId i = 0; i < f_.insts.size(); ++i) hand_on(i);
    if (options_.choice("together") != "off") find_companions();
    for (InstId i = 0; i < f_.insts.size(); ++i) anchor_view(i);
    for (InstId i = 0; i < f_.insts.size(); ++i) anchor_pointers(i);
    propagate();
    for (ValueId v = 0; v < f_.value_types.size(); ++v)
      if (tile(v)) assign(v, blocked_layout(shape(v), 2, plan_.warp_bits));
    plan_.layout.resize(f_.value_types.size());
    for (ValueId v = 0; v < f_.value_types.size(); ++v)
      if (tile(v)) plan_.layout[v] = *layouts_[find(v)];
    keep_bulk_stores();
    plan_loads_ahead(m_, f_, options_, plan_);
    // Room for one block would let the assembler take all registers, and kernels that wait for memory live by the number of their warps
    // (softmax of 4096 x 4096 in 528 blocks of 128 threads on an H200: 3.46 TB/s with 127 registers, 3.10 with 139, when three fit on an SM).
    if (plan_.rings.empty() && plan_.streams.empty()) plan_.blocks_per_sm = static_cast<unsigned>(std::clamp(std::atoi(options_.choice("blocks").c_str()), 0, 32));
    return std::move(plan_);
  }

 private:
  static constexpr size_t kMostCompanions = 8;  // runs of 16 bytes along two dimensions
  static constexpr unsigned kMaxBits = 18;  // 1,024 threads hold 256 elements each

  bool tile(ValueId v) const { return m_.types.is_tile(f_.type(v)); }
  std::span<const int64_t> shape(ValueId v) const { return m_.types.shape_of(f_.type(v)); }
  ElementType element(ValueId v) const { return m_.types.element_of(f_.type(v)); }
  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void unite(ValueId a, ValueId b) {
    if (a == kNone || b == kNone || !tile(a) || !tile(b)) return;
    if (!std::ranges::equal(shape(a), shape(b)) || cheap(a) || cheap(b)) return;
    parent_[find(a)] = find(b);
  }
  /// Values that are made anew where another layout is wanted.
  bool cheap(ValueId v) const { return v < cheap_.size() && cheap_[v]; }
  bool assign(ValueId v, Layout l) {
    auto& at = layouts_[find(v)];
    if (at) return false;
    at = std::move(l);
    return true;
  }
  bool assigned(ValueId v) { return layouts_[find(v)].has_value(); }

  void choose_warps() {
    unsigned bits = 0;
    bool large_mma = false;
    for (InstId i = 0; i < f_.insts.size(); ++i) {
      const Inst& inst = f_.insts[i];
      for (uint32_t r = 0; r < inst.result_count; ++r)
        if (tile(f_.result(i, r))) bits = std::max(bits, element_bits(shape(f_.result(i, r))));
      for (const ValueId v : f_.operands(i))
        if (tile(v)) bits = std::max(bits, element_bits(shape(v)));
      if (is_mma(inst.op) && element_bits(shape(f_.result(i))) >= 14) large_mma = true;
    }
    plan_.warp_bits = bits <= 7 ? 0 : bits <= 9 ? 1 : bits <= 13 ? 2 : 3;
    if (bits >= 17) plan_.warp_bits = bits - 13;
    if (large_mma) plan_.warp_bits = std::max(plan_.warp_bits, 3u);
    if (const auto it = options_.plan.find("warps"); it != options_.plan.end()) plan_.warp_bits = log2_of(std::clamp(std::atoi(it->second.c_str()), 1, 32));
    // A value that is cheap must be known before classes are formed; operations stand in pre-order, so operands come first.
    cheap_.assign(f_.value_types.size(), false);
    for (InstId i = 0; i < f_.insts.size(); ++i) {
      const Opcode op = f_.insts[i].op;
      if (op == Opcode::Constant || op == Opcode::Iota) cheap_[f_.result(i)] = true;
      if (op == Opcode::Reshape || op == Opcode::Broadcast || op == Opcode::Permute) {
        const ValueId s = f_.operands(i)[0];
        cheap_[f_.result(i)] = cheap_[s] || element_bits(shape(s)) == 0;
      }
    }
  }

  static bool is_mma(Opcode op) { return op == Opcode::MmaF || op == Opcode::MmaI || op == Opcode::MmaFScaled; }

  void unite(InstId i) {
    const Inst& inst = f_.insts[i];
    const auto operands = f_.operands(i);
    switch (inst.op) {
      case Opcode::For: {
        const Region& r = f_.region(i);
        for (uint32_t k = 0; k < inst.result_count; ++k) {
          unite(f_.result(i, k), r.first_arg + 1 + k);
          unite(operands[3 + k], f_.result(i, k));
        }
        loops_.push_back(i);
        return;
      }
      case Opcode::Loop: {
        const Region& r = f_.region(i);
        for (uint32_t k = 0; k < r.arg_count; ++k) unite(operands[k], r.first_arg + k);
        loops_.push_back(i);
        return;
      }
      case Opcode::If: ifs_.push_back(i); return;
      case Opcode::Continue: {
        const InstId loop = enclosing(loops_, i);
        const Region& r = f_.region(loop);
        const uint32_t skip = f_.insts[loop].op == Opcode::For ? 1 : 0;
        for (uint32_t k = 0; k < operands.size(); ++k) unite(operands[k], r.first_arg + skip + k);
        return;
      }
      case Opcode::Break: {
        const InstId loop = enclosing(loops_, i);
        for (uint32_t k = 0; k < operands.size(); ++k) unite(operands[k], f_.result(loop, k));
        return;
      }
      case Opcode::Yield: {
        const InstId at = enclosing(ifs_, i);
        if (at == kNone || f_.insts[at].result_count != operands.size()) return;
        for (uint32_t k = 0; k < operands.size(); ++k) unite(operands[k], f_.result(at, k));
        return;
      }
      case Opcode::MmaF: case Opcode::MmaI: case Opcode::MmaFScaled: unite(operands[2], f_.result(i)); return;
      case Opcode::Assume: unite(operands[0], f_.result(i)); return;
      case Opcode::LoadPtrTko: case Opcode::StorePtrTko: case Opcode::AtomicRMWTko: case Opcode::AtomicCASTko: {
        for (const ValueId v : operands) unite(operands[0], v);
        if (inst.result_count > 1) unite(operands[0], f_.result(i));
        return;
      }
      case Opcode::Scan:
        for (uint32_t k = 0; k < inst.result_count; ++k) {
          unite(operands[k], operands[0]);
          unite(f_.result(i, k), operands[0]);
        }
        return;
      case Opcode::Reduce:
        for (const ValueId v : operands) unite(v, operands[0]);
        for (uint32_t k = 1; k < inst.result_count; ++k) unite(f_.result(i, k), f_.result(i));
        return;
      default:
        if (!is_elementwise(inst.op)) return;
        for (const ValueId v : operands) unite(v, f_.result(i));
    }
  }

  /// The innermost of `stack` (in pre-order) that contains instruction i.
  InstId enclosing(const std::vector<InstId>& stack, InstId i) const {
    for (size_t k = stack.size(); k-- > 0;)
      if (stack[k] < i && i < f_.insts[stack[k]].next) return stack[k];
    return kNone;
  }

  void plan_mma(InstId i) {
    if (!is_mma(f_.insts[i].op)) return;
    const auto operands = f_.operands(i);
    const auto sa = shape(operands[0]), sr = shape(f_.result(i));
    const size_t rank = sr.size();
    const unsigned batch = rank == 3 ? log2_of(sr[0]) : 0, mb = log2_of(sr[rank - 2]), nb = log2_of(sr[rank - 1]), kb = log2_of(sa[rank - 1]);
    MmaPlan p;
    for (const auto& [loop, stream] : plan_.streams)
      if (const auto* product = stream.product(i)) {
        p.unit = MmaUnit::Group;
        p.name = "wgmma m64n" + std::to_string(1u << product->n_bits) + "k16 of a stream of " + std::to_string(stream.stages) + " stages";
        p.result = wgmma_result_layout(product->m_bits, product->n_bits, stream.group_bits);
        p.a = wgmma_a_layout(product->m_bits, product->k_bits, stream.group_bits);
        assign(f_.result(i), p.result);
        if (!product->shared_left) assign(operands[0], p.a);
        if (stream.late_product == i) p.name += ", during the next trip";
        plan_.remarks.push_back({i, p.name, "", stream.stages});
        plan_.mma.emplace(i, std::move(p));
        return;
      }
    const auto ring_at = ring_of_.find(i);
    if (ring_at != ring_of_.end() && !ring_at->second->sync) {
      const RingPlan& ring = *ring_at->second;
      p.unit = MmaUnit::Group;
      p.name = "wgmma m64n" + std::to_string(1u << (ring.q_bits() - ring.q_groups())) + "k" + std::to_string(32 / ring.element_bytes) +
               (ring.swapped ? " of the transposed product" : "") + (ring.p_registers ? " with an operand in registers" : "") +
               (ring.a_registers ? " with the left operand in registers" : "") + (ring.promote ? ", sums of each stage added in f32" : "") +
               (ring.single ? " from " + std::to_string(ring.trips) + (ring.trips == 1 ? " stage" : " stages") : "") + (ring.single ? " of" : " from") + " a ring of " +
               std::to_string(ring.stages) + (ring.stages == 1 ? "" : " stages") + (ring.copies ? " by cp.async" : "") +
               (plan_.copying_producer() ? " of a producer" : "");
      if (const auto it = why_no_ring_.find(i); it != why_no_ring_.end()) p.why = "no bulk copies: " + it->second;
      p.result = ring.wgmma_layout();
      assign(f_.result(i), p.result);
      if (ring.a_registers) {
        p.a = wgmma_a_layout(mb, kb, ring.group_bits);
        // A tile that is loaded keeps the layout of its load: the fragments' own would make many small accesses.
        if (!loaded(operands[0])) assign(operands[0], p.a);
      }
      plan_.remarks.push_back({i, p.name, p.why, ring.stages});
      plan_.mma.emplace(i, std::move(p));
      return;
    }
    const ElementType ea = element(operands[0]), er = element(f_.result(i));
    // sm_75 has half as long products, of f16 and i8 only.
    const bool turing = target_.sm < 80;
    const MmaShape f16 = turing ? MmaShape{4, 3, 3, 1} : MmaShape{4, 3, 4, 1};
    const std::string f16_name = turing ? "mma.sync.m16n8k8.f16" : "mma.sync.m16n8k16.f16";
    switch (f_.insts[i].op) {
      case Opcode::MmaI:
        p.shape = turing ? MmaShape{3, 3, 4, 2} : MmaShape{4, 3, 5, 2};
        p.name = turing ? "mma.sync.m8n8k16.s8" : "mma.sync.m16n8k32.s8";
        break;
      case Opcode::MmaF:
        if (ea == ElementType::F16) {
          p.shape = f16;
          p.name = f16_name + (er == ElementType::F16 ? ".f16" : "");
        } else if (ea == ElementType::BF16 && target_.bf16()) {
          p.shape = {4, 3, 4, 1};
          p.name = "mma.sync.m16n8k16.bf16";
        } else if (ea == ElementType::TF32 && target_.bf16()) {
          p.shape = {4, 3, 3, 0};
          p.name = "mma.sync.m16n8k8.tf32";
        } else if (ea == ElementType::F64 && target_.sm >= 80) {
          // Twice as fast in long shapes, where the target has them.
          const bool rows = target_.sm >= 90 && mb >= 4 && kb >= 2;
          p.shape = rows ? MmaShape{4, 3, std::min(kb, 4u), 0} : MmaShape{3, 3, 2, 0};
          p.name = rows ? "mma.sync.m16n8k" + std::to_string(1u << p.shape.k_bits) + ".f64" : "mma.sync.m8n8k4.f64";
        } else if (ea == ElementType::F8E4M3FN || ea == ElementType::F8E5M2) {
          // As f16: both formats are subsets of it, products stay exact and the unit is as fast as the f8 one before sm_89.
          p.shape = f16;
          p.name = f16_name + (er == ElementType::F16 ? ".f16 of widened f8" : " of widened f8");
        } else {
          p.why = "the tensor cores of " + target_.name + " have no product of " + std::string(info(ea).name);
        }
        break;
      default: p.why = "scaled products are computed without tensor cores"; break;
    }
    if (!p.name.empty() && (mb < p.shape.m_bits || nb < p.shape.n_bits || kb < p.shape.k_bits)) {
      p.why = "the tile is smaller than one " + p.name;
      p.name.clear();
    }
    if (options_.choice("mma") == "fma" && ring_at == ring_of_.end()) {
      p.why = "--plan mma=fma";
      p.name.clear();
    }
    const unsigned w = plan_.warp_bits;
    if (p.name.empty()) {
      p.unit = MmaUnit::Fma;
      p.name = "fma";
      p.result = fma_layout(batch, mb, nb);
    } else {
      p.unit = MmaUnit::Sync;
      unsigned wm = 0, wn = 0, wb = 0, idle = 0;
      for (unsigned k = 0; k < w; ++k) {
        const bool m_fits = mb > p.shape.m_bits + wm, n_fits = nb > p.shape.n_bits + wn;
        if (batch > wb && batch >= 2) {
          ++wb;
        } else if (m_fits && (!n_fits || mb - wm >= nb - wn)) {
          ++wm;
        } else if (n_fits) {
          ++wn;
        } else if (batch > wb) {
          ++wb;
        } else {
          ++idle;  // more warps than work: copies
        }
      }
      p.result = mma_result_layout(p.shape, batch, mb, nb, wm, wn, wb);
      p.a = mma_a_layout(p.shape, batch, mb, kb, wm, wn, wb);
      p.b = mma_b_layout(p.shape, batch, kb, nb, wm, wn, wb);
      for (Layout* l : {&p.result, &p.a, &p.b}) l->warp.insert(l->warp.end(), idle, kCopies);
    }
    if (ring_at != ring_of_.end()) {
      p.name += std::string(" from a ring of ") + std::to_string(ring_at->second->stages) + " stages" + (ring_at->second->copies ? " by cp.async" : "");
      p.why = "";
    }
    if (const auto it = why_no_ring_.find(i); it != why_no_ring_.end() && p.why.empty()) p.why = (target_.wgmma() ? "no wgmma: " : "no ring: ") + it->second;
    assign(f_.result(i), p.result);
    plan_.remarks.push_back({i, p.name, p.why, ring_at != ring_of_.end() ? ring_at->second->stages : 0});
    plan_.mma.emplace(i, std::move(p));
  }

  /// Of the loads that fill stages; the others' remarks come from their lowering.
  void remark_copies() {
    const auto remark = [this](const RingPlan::Operand& o, unsigned stages, bool copies) {
      if (o.load == kNone) return;
      const std::string swizzle = o.swizzle() == 0 ? "" : ", swizzled by " + std::to_string(o.row_bytes) + " bytes";
      plan_.remarks.push_back({o.load, copies ? "cp.async of 16 bytes, or fewer where addresses are no multiples of that" : "bulk tensor copies" + swizzle, "", stages});
    };
    for (const auto& [loop, ring] : plan_.rings) {
      if (!ring.a_registers) remark(ring.a, ring.stages, ring.copies);
      remark(ring.b, ring.stages, ring.copies);
    }
    for (const auto& [loop, stream] : plan_.streams)
      for (const RingPlan::Operand& o : stream.loads) remark(o, stream.stages, false);
  }

  /// Whether a tile is as a load left it, or reshaped.
  bool loaded(ValueId v) const {
    for (InstId i = 0; i < f_.insts.size(); ++i)
      for (uint32_t r = 0; r < f_.insts[i].result_count; ++r) {
        if (f_.result(i, r) != v) continue;
        const Opcode op = f_.insts[i].op;
        return op == Opcode::Reshape ? loaded(f_.operands(i)[0]) : op == Opcode::LoadViewTko || op == Opcode::LoadPtrTko;
      }
    return false;
  }

  /// Small rectangles of the result in each thread, so that a value of A and of B serves several products.
  Layout fma_layout(unsigned batch, unsigned mb, unsigned nb) const {
    Layout out;
    std::vector<int8_t> n, rest;
    const unsigned vn = std::min(nb, 2u), ln = std::min(nb - vn, 3u);
    unsigned at = 0;
    for (; at < vn; ++at) out.reg.push_back(static_cast<int8_t>(at));
    for (; at < vn + ln; ++at) out.lane.push_back(static_cast<int8_t>(at));
    for (unsigned k = 0; k < mb; ++k) rest.push_back(static_cast<int8_t>(nb + k));
    for (; at < nb; ++at) rest.push_back(static_cast<int8_t>(at));
    for (unsigned k = 0; k < batch; ++k) rest.push_back(static_cast<int8_t>(nb + mb + k));
    size_t from = 0;
    while (out.lane.size() < 5) out.lane.push_back(from < rest.size() ? rest[from++] : kCopies);
    const size_t mine = std::min<size_t>(rest.size() - from, plan_.warp_bits);
    while (rest.size() - from > mine) out.reg.push_back(rest[from++]);
    for (unsigned k = 0; k < plan_.warp_bits; ++k) out.warp.push_back(from < rest.size() ? rest[from++] : kCopies);
    return out;
  }

  /// The tile that an access through a view loads or stores; kNone for other operations.
  ValueId accessed(InstId i) const {
    const char* operand = nullptr;
    switch (f_.insts[i].op) {
      case Opcode::LoadViewTko: return f_.result(i);
      case Opcode::StoreViewTko: operand = "tile"; break;
      case Opcode::AtomicRedViewTko: operand = "value"; break;
      default: return kNone;
    }
    return f_.operand(i, static_cast<size_t>(operand_index(f_.def(i), operand)));
  }
  TypeId view_type(InstId i) const { return f_.type(f_.operand(i, static_cast<size_t>(operand_index(f_.def(i), "view")))); }
  /// Runs of 16 bytes; of one element for atomics, unless the target adds several floats at once.
  unsigned run_bits(InstId i) const { return f_.insts[i].op == Opcode::AtomicRedViewTko && !adds_runs(m_, f_, target_, i) ? 0 : log2_of(16 / info(element(accessed(i))).storage); }

  /// A tile that is loaded along one dimension and stored along another passes through shared memory. Where both sides have the neighbours
  /// along both dimensions in registers, it does so 16 bytes at a time: the runs of each access are asked of the other's layout, too.
  void find_companions() {
    const auto add = [&](ValueId v, int8_t bit) {
      auto& list = companions_[find(v)];
      if (list.size() >= kMostCompanions || std::find(list.begin(), list.end(), bit) != list.end()) return false;
      list.push_back(bit);
      return true;
    };
    for (InstId i = 0; i < f_.insts.size(); ++i) {
      const ValueId v = accessed(i);
      if (v == kNone || cheap(v)) continue;
      const auto order = memory_order(m_, view_type(i));
      if (order.empty()) continue;
      const unsigned first = dim_bits(shape(v))[order[0]];
      for (unsigned k = 0; k < std::min(run_bits(i), log2_of(shape(v)[order[0]])); ++k) add(v, static_cast<int8_t>(first + k));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (InstId i = 0; i < f_.insts.size(); ++i) {
        const Opcode op = f_.insts[i].op;
        if (op != Opcode::Reshape && op != Opcode::Permute) continue;
        const ValueId s = f_.operands(i)[0], r = f_.result(i);
        if (cheap(r)) continue;
        Layout identity;  // carries element bit k of the source in register bit k
        for (unsigned k = 0; k < element_bits(shape(s)); ++k) identity.reg.push_back(static_cast<int8_t>(k));
        const Layout moved = op == Opcode::Permute ? permuted_layout(identity, shape(s), permutation(i)) : identity;
        for (const int8_t bit : std::vector<int8_t>(companions_[find(s)])) changed |= add(r, moved.reg[static_cast<size_t>(bit)]);
        for (const int8_t bit : std::vector<int8_t>(companions_[find(r)])) changed |= add(s, static_cast<int8_t>(moved.register_bit(bit)));
      }
    }
  }

  /// Views say which dimension is contiguous in memory: 16 bytes of it for each thread.
  void anchor_view(InstId i) {
    const ValueId v = accessed(i);
    if (v == kNone || assigned(v)) return;
    const auto with = companions_.find(find(v));
    assign(v, blocked_layout(shape(v), memory_order(m_, view_type(i)), run_bits(i), plan_.warp_bits,
                             with == companions_.end() ? std::span<const int8_t>() : with->second));
  }

  /// Pointers in one thread are rarely neighbours that one access takes: lanes are.
  void anchor_pointers(InstId i) {
    switch (f_.insts[i].op) {
      case Opcode::LoadPtrTko: case Opcode::StorePtrTko: case Opcode::AtomicRMWTko: case Opcode::AtomicCASTko:
        assign(f_.operands(i)[0], blocked_layout(shape(f_.operands(i)[0]), 0, plan_.warp_bits));
        break;
      default: break;
    }
  }

  /// A bulk store takes the tile as the product leaves it.
  void keep_bulk_stores() {
    for (auto at = plan_.stores.begin(); at != plan_.stores.end();) {
      const auto& [i, store] = *at;
      const Layout& l = plan_.layout[f_.operand(i, 0)];
      if (l == store.layout) {
        ++at;
        continue;
      }
      plan_.why_direct.emplace(i, "the tile is laid out otherwise than the product");
      at = plan_.stores.erase(at);
    }
  }

  /// What a product's tile is reshaped to keeps the product's layout up to the store, which rearranges it when it is narrow already.
  void hand_on(InstId i) {
    const Opcode op = f_.insts[i].op;
    if (const auto it = plan_.mma.find(i); it != plan_.mma.end() && it->second.unit == MmaUnit::Group) products_.push_back(find(f_.result(i)));
    if (op != Opcode::Reshape) return;
    const ValueId s = f_.operands(i)[0], r = f_.result(i);
    if (std::find(products_.begin(), products_.end(), find(s)) == products_.end() || assigned(r) || !assigned(s)) return;
    assign(r, *layouts_[find(s)]);
    products_.push_back(find(r));
  }

  void propagate() {
    for (bool changed = true; changed;) {
      changed = false;
      for (InstId i = 0; i < f_.insts.size(); ++i) {
        const Opcode op = f_.insts[i].op;
        if (op != Opcode::Reshape && op != Opcode::Broadcast && op != Opcode::Permute && op != Opcode::Reduce) continue;
        const ValueId s = f_.operands(i)[0], r = f_.result(i);
        const auto from = shape(s), to = shape(r);
        if (assigned(s) == assigned(r) && !(op == Opcode::Reduce && !assigned(r))) continue;
        if (assigned(s)) {
          const Layout& l = *layouts_[find(s)];
          if (op == Opcode::Reshape) changed |= assign(r, l);
          if (op == Opcode::Permute) changed |= assign(r, permuted_layout(l, from, permutation(i)));
          if (op == Opcode::Reduce) changed |= assign(r, reduced_layout(l, from, static_cast<unsigned>(m_.int_attr(f_, i, 0))));
        } else if (assigned(r)) {
          const Layout& l = *layouts_[find(r)];
          if (op == Opcode::Reshape) changed |= assign(s, l);
          if (op == Opcode::Permute) changed |= assign(s, unpermuted_layout(l, from, permutation(i)));
          if (op == Opcode::Broadcast) changed |= assign(s, broadcast_source(l, from, to));
        }
      }
    }
  }

  std::vector<int32_t> permutation(InstId i) const {
    const auto& ints = m_.attrs.get(f_.attr(i, 0)).ints;
    return {ints.begin(), ints.end()};
  }

  const Module& m_;
  const Function& f_;
  const Target& target_;
  const CompileOptions& options_;
  Diagnostics& diags_;
  KernelPlan plan_;
  std::vector<ValueId> parent_;
  std::vector<std::optional<Layout>> layouts_;  // by class representative
  std::vector<bool> cheap_;
  std::map<ValueId, std::vector<int8_t>> companions_;   // by class representative: element bits that registers had better hold
  std::map<InstId, const RingPlan*> ring_of_;
  std::map<InstId, std::string> why_no_ring_;
  std::vector<InstId> loops_, ifs_;
  std::vector<ValueId> products_;  // representatives of classes that hold tiles of wgmma
};

}  // namespace

Result<KernelPlan> make_plan(const Module& m, const Function& f, const Target& target, const CompileOptions& options, Diagnostics& diags) {
  return Planner(m, f, target, options, diags).run();
}

std::string KernelPlan::print(const Module& m, const Function& f) const {
  std::string out = "entry " + std::string(m.str(f.name)) + ": " + std::to_string(consumers()) + " threads" + (roles ? " and a producer" : "") + (loops ? ", looping over blocks" : "") +
                    (alternate ? ", warpgroups in turn" : "") + "\n";
  for (InstId i = 0; i < f.insts.size(); ++i) {
    std::string line;
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r) {
      const ValueId v = f.result(i, r);
      if (m.types.is_tile(f.type(v)) && !m.types.is_scalar(f.type(v))) line += " " + m.types.print(f.type(v)) + " " + layout[v].print();
    }
    const auto unit = mma.find(i);
    if (f.insts[i].op == Opcode::MakeTensorView) line += " divisible: " + Facts::print(facts.array(f.result(i)));
    if (unit != mma.end()) line += " by " + unit->second.name + (unit->second.why.empty() ? "" : " (" + unit->second.why + ")");
    if (!line.empty()) out += "  " + std::to_string(i) + " " + std::string(f.def(i).name) + ":" + line + "\n";
  }
  return out;
}

}  // namespace tile
