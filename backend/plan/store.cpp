// Which stores of a product's tile are made by bulk copies. Each warpgroup takes its part of the tile through a stage of its own in shared
// memory, chunk by chunk, in the form that a tensor map with a swizzle reads.
#include <algorithm>
#include <bit>

#include "backend/plan/array_map.h"
#include "backend/plan/plan.h"

namespace tile {
namespace {

constexpr uint32_t kChunkBytes = 8192;     // 64 rows of 128 bytes
constexpr unsigned kMaxStoreMaps = 8;

class StoreFinder {
 public:
  StoreFinder(const Module& m, const Function& f, const KernelPlan& plan) : m_(m), f_(f), plan_(plan), def_(f.value_types.size(), kNone) {
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
  }

  /// The ring whose result a value is made of, one element of one: through elementwise operations, and reshapes, which keep the layout.
  const RingPlan* source(ValueId v) {
    const auto [at, is_new] = sources_.emplace(v, nullptr);
    return is_new ? at->second = traced(v) : at->second;
  }
  const RingPlan* traced(ValueId v) {
    const InstId i = def_[v];
    if (i == kNone || !m_.types.is_tile(f_.type(v))) return nullptr;
    if (const auto it = plan_.rings.find(i); it != plan_.rings.end()) return v == f_.result(i, it->second.carried) && !it->second.sync ? &it->second : nullptr;
    if (f_.insts[i].op != Opcode::Reshape && !is_elementwise(f_.insts[i].op)) return nullptr;
    for (const ValueId o : f_.operands(i))
      if (const RingPlan* r = source(o)) return r;
    return nullptr;
  }

  /// How store `i` of a tile of `ring` is made; false with the reason.
  bool find(InstId i, const RingPlan& ring, StorePlan& out, TensorMapSpec& map, std::string& why) const {
    const auto bad = [&](const char* text) {
      why = text;
      return false;
    };
    const ValueId tile = f_.operand(i, 0), view = f_.operand(i, 1);
    if (f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "memory_ordering_semantics"))) != 0) return bad("the store is ordered");
    const Type& t = m_.types.get(f_.type(view));
    if (t.kind != TypeKind::PartitionView) return bad("the view is not a partition");
    const Type& tensor = m_.types.get(t.inner);
    if (tensor.shape.size() > 5) return bad("the array has more than five dimensions");
    const ElementType e = m_.types.element_of(f_.type(tile));
    const unsigned bytes = info(e).storage;
    if (info(e).memory_bits < 8 || bytes > 4) return bad("elements are neither of one, two nor four bytes");
    out.store = i;
    out.layout = ring.wgmma_layout();
    out.element_bytes = bytes;
    // Two dimensions of the tile are longer than one; the contiguous one is the inner one of the copy.
    for (size_t k = 0; k < t.shape.size(); ++k) {
      if (t.shape[k] == 1) continue;
      if (tensor.strides[static_cast<size_t>(t.dim_map[k])] == 1 && out.inner < 0) {
        out.inner = static_cast<int>(k);
      } else if (out.outer < 0) {
        out.outer = static_cast<int>(k);
      } else {
        return bad("the tile has more than two dimensions");
      }
    }
    if (out.inner < 0 || out.outer < 0) return bad("no dimension of the tile has stride one");
    const auto first = dim_bits(t.shape);
    const unsigned inner_first = first[static_cast<size_t>(out.inner)], outer_first = first[static_cast<size_t>(out.outer)];
    unsigned inner_bits = log2_of(t.shape[static_cast<size_t>(out.inner)]), outer_bits = log2_of(t.shape[static_cast<size_t>(out.outer)]);
    if (inner_bits + outer_bits != element_bits(m_.types.shape_of(f_.type(f_.result(ring.loop, ring.carried))))) return bad("the tile is not the product's");
    const auto is_inner = [&](int bit) { return static_cast<unsigned>(bit) >= inner_first && static_cast<unsigned>(bit) < inner_first + log2_of(t.shape[static_cast<size_t>(out.inner)]); };
    // A warpgroup's part: without the bits that tell warpgroups apart, which are the top ones of a dimension.
    for (size_t k = out.layout.warp.size(); k-- > 2;) {
      const int bit = out.layout.warp[k];
      if (is_inner(bit) && static_cast<unsigned>(bit) == inner_first + inner_bits - 1) {
        --inner_bits;
      } else if (!is_inner(bit) && static_cast<unsigned>(bit) == outer_first + outer_bits - 1) {
        --outer_bits;
      } else {
        return bad("warpgroups share rows of the tile");
      }
    }
    const unsigned e_bits = log2_of(bytes);
    out.row_bytes = std::min(bytes << inner_bits, 128u);
    if (out.row_bytes < 32) return bad("rows are shorter than 32 bytes");
    // A chunk holds at least what the lanes and warps of a group hold at once, whole panels and eight rows.
    unsigned inner = log2_of(out.row_bytes) - e_bits, outer = 3;
    const auto hold = [&](int bit) {
      if (bit == kCopies) return false;
      if (is_inner(bit))
        inner = std::max(inner, static_cast<unsigned>(bit) - inner_first + 1);
      else
        outer = std::max(outer, static_cast<unsigned>(bit) - outer_first + 1);
      return true;
    };
    for (const int8_t bit : out.layout.lane)
      if (!hold(bit)) return bad("threads hold copies of the tile");
    for (size_t k = 0; k < 2; ++k)
      if (!hold(out.layout.warp[k])) return bad("threads hold copies of the tile");
    if (outer > outer_bits) return bad("the tile has fewer than eight rows");
    while (outer < outer_bits && outer < 8 && (bytes << (inner + outer + 1)) <= kChunkBytes) ++outer;
    if (outer > 8) return bad("a box would have more than 256 rows");
    out.rows = 1u << outer;
    out.chunk_bytes = bytes << (inner + outer);
    out.chunks = 1u << (inner_bits + outer_bits - inner - outer);
    out.panels = (bytes << inner) / out.row_bytes;
    // Where each element bit goes in a chunk, and which bits number chunks.
    out.column.assign(inner_bits + outer_bits + out.layout.warp.size() - 2, 0);
    const uint32_t mask = (1u << out.swizzle()) - 1;
    for (unsigned k = 0; k < inner; ++k) {
      const unsigned at = k + e_bits;
      out.column[inner_first + k] = at < log2_of(out.row_bytes) ? 1u << at : (out.row_bytes << outer) << (at - log2_of(out.row_bytes));
    }
    for (unsigned k = 0; k < outer; ++k) {
      const uint32_t at = out.row_bytes << k;
      out.column[outer_first + k] = at ^ ((at >> 7 & mask) << 4);
    }
    for (unsigned k = inner; k < inner_bits; ++k) out.chunk_bits.push_back(static_cast<int8_t>(inner_first + k));
    for (unsigned k = outer; k < outer_bits; ++k) out.chunk_bits.push_back(static_cast<int8_t>(outer_first + k));
    map.element = e;
    map.swizzle = out.swizzle();
    if (!map_of_array(m_, f_, def_, view, static_cast<size_t>(t.dim_map[static_cast<size_t>(out.inner)]), "the", map, out.tile_dim, why)) return false;
    for (const int k : out.tile_dim) map.box.push_back(k == out.inner ? out.row_bytes / bytes : k == out.outer ? out.rows : 1);
    return true;
  }

  bool in_loop(InstId i) const {
    for (InstId k = 0; k < i; ++k)
      if ((f_.insts[k].op == Opcode::For || f_.insts[k].op == Opcode::Loop) && f_.insts[k].next > i) return true;
    return false;
  }

 private:
  const Module& m_;
  const Function& f_;
  const KernelPlan& plan_;
  std::vector<InstId> def_;
  std::map<ValueId, const RingPlan*> sources_;
};

}  // namespace

void plan_stores(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan) {
  if (plan.rings.empty() || !plan.streams.empty()) return;
  StoreFinder finder(m, f, plan);
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (f.insts[i].op != Opcode::StoreViewTko) continue;
    const RingPlan* ring = finder.source(f.operand(i, 0));
    if (!ring) continue;
    StorePlan store;
    TensorMapSpec map;
    std::string why;
    if (options.choice("store") == "direct") {
      why = "--plan store=direct";
    } else if (plan.stores.size() == kMaxStoreMaps) {
      why = "the kernel has eight such stores already";
    } else if (finder.find(i, *ring, store, map, why)) {
      store.map = static_cast<unsigned>(plan.maps.size());
      plan.maps.push_back(std::move(map));
      plan.stores.emplace(i, std::move(store));
      continue;
    }
    plan.why_direct.emplace(i, why);
  }
}

void place_stores(const Module& m, const Function& f, KernelPlan& plan) {
  const StoreFinder finder(m, f, plan);
  bool repeated = plan.roles.has_value() || plan.loops;
  for (const auto& [i, s] : plan.stores) repeated = repeated || finder.in_loop(i);
  const uint32_t groups = plan.consumers() / 128;
  // Where nothing is under way any more the stages of rings are free.
  const uint32_t free = plan.ring_bytes - RingPlan::kFirstStage;
  plan.stores_in_ring = !repeated;
  uint32_t most = 0;
  for (auto& [i, s] : plan.stores) {
    const uint32_t room = repeated ? kStoreBytes : free / groups & ~1023u;
    s.halves = s.chunks * s.chunk_bytes <= room ? 1 : 2;
    s.batch = s.halves == 1 ? s.chunks : std::bit_floor(std::max(1u, room / 2 / s.chunk_bytes));
    most = std::max(most, s.halves * s.batch * s.chunk_bytes);
  }
  plan.group_store_bytes = (most + 1023) & ~1023u;
  if (plan.stores_in_ring && plan.group_store_bytes * groups > free) plan.stores_in_ring = false;
}

}  // namespace tile
