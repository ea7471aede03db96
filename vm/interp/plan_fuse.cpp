// Finding groups of steps to run chunk by chunk. A group is a stretch of neighbouring steps of one region: loads, elementwise operations,
// broadcasts and stores of tiles of one size, with what computes their addresses in between. Steps that run before the chunks (addresses,
// loads) overtake elementwise ones, and tiles are written piece by piece; so a group ends where storage that is reused would be written
// before its old contents were read.
#include <algorithm>
#include <optional>

#include "vm/interp/elementwise.h"
#include "vm/interp/eval.h"
#include "vm/interp/fused.h"

namespace tile {
namespace {

using Role = FusedGroup::Role;

constexpr size_t kBufferBytes = 24 << 10;  // of all chunks that exist at a time: half of a first-level cache
constexpr size_t kMaxChunk = 4096;         // elements
constexpr int64_t kMinInner = 16;          // shorter rows are repeated by doubling, over the whole tile

class Fuser {
 public:
  explicit Fuser(PlanBuilder& b) : b_(b), f_(b.f) {}

  void run() {
    for (uint32_t begin = 0; begin < b_.step_count();) {
      const Step& s = b_.step_at(begin);
      const Opcode op = f_.insts[s.inst].op;
      if (op == Opcode::Reduce || op == Opcode::Scan) {  // a body runs for many positions at once, in storage of its own
        begin = std::max(begin + 1, s.next);
        continue;
      }
      uint32_t end = begin;
      while (end < b_.step_count() && end - begin < FusedGroup::kMaxItems && classify(end)) ++end;
      begin = group(begin, end);
    }
  }

 private:
  struct Range {
    ValueId root;
    size_t begin, end;
    size_t size;        // bytes of an element; 0: read as a whole
    bool late;          // read after the chunks
    [[nodiscard]] bool overlaps(const Range& o) const { return root != o.root && begin < o.end && o.begin < end; }
  };
  struct Made {         // a value of the group
    ValueId root;
    uint16_t item, reads = 0;
    bool chunked, whole = false, stored = false;
  };

  /// What the step could be in a group; nothing where groups end.
  [[nodiscard]] std::optional<Role> classify(uint32_t k) const {
    const Step& s = b_.step_at(k);
    const OpDef& d = f_.def(s.inst);
    if (f_.insts[s.inst].op == Opcode::Reduce) {
      const auto* fold = dynamic_cast<const FoldData*>(s.data);
      return fold && fold->rows() ? std::optional(Role::Fold) : std::nullopt;
    }
    if (d.regions > 0 || d.terminator) return std::nullopt;
    const int ordering = attr_index(d, "memory_ordering_semantics");
    const bool weak = ordering >= 0 && f_.attr(s.inst, static_cast<size_t>(ordering)) == 0;
    const CompileFn compile = compile_fn(f_.insts[s.inst].op);
    if (compile == compile_elementwise) return Role::Kernel;
    // A broadcast to the same type reads its operand's slot, which a load in place does not fill.
    if (compile == compile_broadcast)
      return f_.type(f_.operands(s.inst)[0]) == f_.type(f_.result(s.inst)) ? std::nullopt : std::optional(Role::Spread);
    if (compile == compile_load_view || compile == compile_load_ptr) return weak ? std::optional(Role::Load) : std::nullopt;
    if (compile == compile_store_view || compile == compile_store_ptr) return weak ? std::optional(Role::Store) : std::nullopt;
    // None of these can trap.
    if (compile == compile_offset || compile == compile_coordinates || compile == compile_get_global || compile == compile_make_tensor_view ||
        compile == compile_view_shape)
      return Role::Setup;
    return std::nullopt;
  }

  [[nodiscard]] ValueId stored_tile(InstId i) const { return f_.operand(i, compile_fn(f_.insts[i].op) == compile_store_view ? 0 : 1); }

  /// Makes the longest group at `begin`; gives the step at which to look on.
  uint32_t group(uint32_t begin, uint32_t end) {
    if (begin == end || classify(begin) == Role::Setup || classify(begin) == Role::Store) return begin + 1;
    while (end > begin + 1) {
      const uint32_t conflict = analyse(begin, end);
      if (conflict == end) return finish(begin, end) ? end : begin + 1;
      end = conflict;
    }
    return begin + 1;
  }

  [[nodiscard]] Made* made(ValueId value) {
    for (Made& m : made_)
      if (m.root == b_.root(value)) return &m;
    return nullptr;
  }
  [[nodiscard]] Made* chunked(ValueId value) {
    Made* m = made(value);
    return m && m->chunked ? m : nullptr;
  }

  /// The slot of a value; nothing for constants and tokens, which nobody overwrites.
  [[nodiscard]] std::optional<Range> range(ValueId value, bool chunked, bool late) const {
    const Slot slot = b_.slot(value);
    if (slot == kNoSlot || (slot & kConstSlot)) return std::nullopt;
    return Range{b_.root(value), slot, slot + b_.bytes(value), chunked ? b_.storage(value) : 0, late};
  }

  /// Decides what each step in [begin, end) is. Gives `end`, or the first step that cannot be in the group.
  uint32_t analyse(uint32_t begin, uint32_t end) {
    const size_t count = end - begin;
    roles_.assign(count, Role::Setup);
    n_ = 0;
    for (uint32_t k = begin; k < end && n_ == 0; ++k)
      if (const Role r = *classify(k); r != Role::Setup && r != Role::Load && b_.step_at(k).n >= FusedGroup::kMinElements) n_ = b_.step_at(k).n;
    if (n_ == 0 || b_.step_at(begin).n != n_) return begin;
    bool stored = false;
    for (size_t k = 0; k < count; ++k) {
      const Step& s = b_.step_at(begin + static_cast<uint32_t>(k));
      const Role r = *classify(begin + static_cast<uint32_t>(k));
      if (r == Role::Load && stored) return begin + static_cast<uint32_t>(k);
      if (r == Role::Store && s.n != n_) return begin + static_cast<uint32_t>(k);
      if ((r == Role::Kernel || r == Role::Spread || r == Role::Fold) && s.n > n_) return begin + static_cast<uint32_t>(k);
      stored = stored || r == Role::Store;
      if ((r != Role::Setup && s.n == n_) || r == Role::Fold) roles_[k] = r;
    }
    // What addresses are computed from runs before the chunks.
    std::vector<ValueId> needed;
    const auto need = [&](InstId i, ValueId except) {
      for (const ValueId v : f_.operands(i))
        if (v != except) needed.push_back(b_.root(v));
    };
    for (size_t k = count; k-- > 0;) {
      const InstId i = b_.step_at(begin + static_cast<uint32_t>(k)).inst;
      if ((roles_[k] == Role::Kernel || roles_[k] == Role::Spread) &&
          (std::count(needed.begin(), needed.end(), f_.result(i)) > 0 || (roles_[k] == Role::Spread && short_rows(i))))
        roles_[k] = Role::Setup;
      if (roles_[k] == Role::Setup || roles_[k] == Role::Load) need(i, kNone);
      if (roles_[k] == Role::Store) need(i, stored_tile(i));
    }
    made_.clear();
    const int64_t last = b_.step_at(end - 1).inst;
    for (size_t k = 0; k < count; ++k) {
      if (roles_[k] == Role::Setup || roles_[k] == Role::Store || roles_[k] == Role::Fold) continue;
      const ValueId root = f_.result(b_.step_at(begin + static_cast<uint32_t>(k)).inst);
      Made m{root, static_cast<uint16_t>(k), 0, roles_[k] != Role::Load};
      m.whole = b_.last_use(root) > last || std::count(needed.begin(), needed.end(), root) > 0;
      made_.push_back(m);
    }
    for (size_t k = 0; k < count; ++k) {
      const InstId i = b_.step_at(begin + static_cast<uint32_t>(k)).inst;
      if (roles_[k] == Role::Store)
        if (Made* m = made(stored_tile(i))) m->stored = true, ++m->reads;
      if (roles_[k] == Role::Kernel || roles_[k] == Role::Spread)
        for (const ValueId v : f_.operands(i))
          if (Made* m = made(v)) ++m->reads;
    }
    return check_storage(begin, end);
  }

  /// Looks for storage that the order of a group would spoil.
  uint32_t check_storage(uint32_t begin, uint32_t end) {
    std::vector<Range> reads, before, pieces;  // reads by chunks, writes before them, writes by chunks
    const auto clash = [](const std::vector<Range>& with, const Range& r) {
      return std::any_of(with.begin(), with.end(), [&](const Range& o) { return o.overlaps(r); });
    };
    for (uint32_t k = begin; k < end; ++k) {
      const Role role = roles_[k - begin];
      const InstId i = b_.step_at(k).inst;
      if (role == Role::Setup || role == Role::Load || role == Role::Fold) {
        for (const ValueId v : f_.operands(i))
          if (chunked(v)) return k;
        for (uint32_t r = 0; r < f_.insts[i].result_count; ++r)
          if (const auto out = range(f_.result(i, r), false, false)) {
            if (clash(reads, *out) || clash(pieces, *out)) return k;
            before.push_back(*out);
          }
        continue;
      }
      const ValueId tile = role == Role::Store ? stored_tile(i) : kNone;
      for (const ValueId v : f_.operands(i)) {
        if (role == Role::Spread && chunked(v)) return k;  // of another size
        if (chunked(v) || (role == Role::Spread && uniform(i) && !held(i))) continue;  // numbers are repeated before the chunks
        if (const auto in = range(v, role == Role::Kernel || v == tile, role == Role::Store)) reads.push_back(*in);
      }
      if (role == Role::Store) continue;
      if (!held(i)) continue;
      const auto out = range(f_.result(i), true, false);
      if (!out) continue;
      for (const Range& r : reads)
        if (r.overlaps(*out) && (r.late || r.begin != out->begin || r.size != out->size)) return k;
      if (clash(pieces, *out)) return k;
      pieces.push_back(*out);
    }
    return end;
  }

  [[nodiscard]] Spread spread_of(InstId i) const {
    const auto& to = b_.type(f_.result(i)).shape;
    const auto& from = b_.type(f_.operands(i)[0]).shape;
    Spread out;
    out.splat = find_splat(b_.element(f_.result(i)));
    int64_t stride = 1;
    for (size_t d = to.size(); d-- > 0; stride *= from[d]) {
      if (to[d] == 1) continue;
      const int64_t step = from[d] == 1 ? 0 : stride;
      if (!out.dims.empty() && step == out.dims.back().n * out.dims.back().stride) {
        out.dims.back().n *= to[d];
      } else {
        out.dims.push_back({to[d], step});
      }
    }
    std::reverse(out.dims.begin(), out.dims.end());
    return out;
  }
  [[nodiscard]] bool short_rows(InstId i) const {
    const Spread s = spread_of(i);
    return s.dims.empty() || s.dims.back().n < kMinInner;
  }

  [[nodiscard]] bool uniform(InstId i) const {
    const Spread s = spread_of(i);
    return s.dims.size() == 1 && s.dims[0].stride == 0;
  }
  /// True if the result may have to exist in its slot.
  [[nodiscard]] bool held(InstId i) {
    const Made* m = made(f_.result(i));
    return m && (m->whole || m->stored);
  }

  uint16_t value(FusedGroup& g, std::vector<ValueId>& roots, ValueId v) const {
    const ValueId root = b_.root(v);
    const auto at = std::find(roots.begin(), roots.end(), root);
    if (at != roots.end()) return static_cast<uint16_t>(at - roots.begin());
    FusedGroup::Value out;
    out.slot = b_.slot(v);
    out.size = out.advance = b_.storage(v);
    if (out.slot & kConstSlot && out.slot != kNoSlot) {
      const std::byte* p = b_.constant_at(out.slot);
      if (std::memcmp(p, p + out.size, b_.bytes(v) - out.size) == 0) out.advance = 0;
    }
    roots.push_back(root);
    g.values.push_back(out);
    return static_cast<uint16_t>(roots.size() - 1);
  }

  /// Makes the group of what analyse() found, unless it is not worth it.
  bool finish(uint32_t begin, uint32_t end) {
    size_t kernels = 0, accesses = 0;
    for (const Role r : roles_) kernels += r == Role::Kernel || r == Role::Spread, accesses += r == Role::Load || r == Role::Store;
    const auto stores = std::count(roles_.begin(), roles_.end(), Role::Store), folds = std::count(roles_.begin(), roles_.end(), Role::Fold);
    if (kernels + accesses < 2 && folds == 0) return false;
    if (kernels == 0 && stores == 0 && folds == 0) return false;
    auto g = std::make_unique<FusedGroup>();
    std::vector<ValueId> roots;
    for (uint32_t k = begin; k < end; ++k) {
      const Step& s = b_.step_at(k);
      FusedGroup::Item item;
      item.role = roles_[k - begin];
      item.step = k;
      if (item.role == Role::Kernel || item.role == Role::Spread)
        for (const ValueId v : f_.operands(s.inst)) item.in[item.inputs++] = value(*g, roots, v);
      if (item.role == Role::Store) item.in[item.inputs++] = value(*g, roots, stored_tile(s.inst));
      if (item.role == Role::Fold) item.in[0] = value(*g, roots, f_.operands(s.inst)[0]);  // not chunk by chunk
      if (item.role == Role::Load || item.role == Role::Kernel || item.role == Role::Spread) item.out = value(*g, roots, f_.result(s.inst));
      for (size_t j = 0; j < item.inputs; ++j) {
        g->values[item.in[j]].last = static_cast<uint16_t>(k - begin);
        g->values[item.in[j]].read = true;
      }
      if (item.out != FusedGroup::kNone) {
        const Made& m = *made(f_.result(s.inst));
        g->values[item.out].whole = m.whole;
        if (item.role == Role::Spread) {
          item.spread = spread_of(s.inst);
          const Spread::Dim inner = item.spread.dims.back();
          if (!held(s.inst) && uniform(s.inst)) item.role = Role::Uniform;
          if (!held(s.inst) && inner.stride == 1 && inner.n >= static_cast<int64_t>(FusedGroup::kMinElements) && item.spread.dims.size() <= MemoryRun::kMaxOuter + 1)
            item.role = Role::Rows;
        }
      }
      if (item.role == Role::Store)
        if (const Made* m = chunked(stored_tile(s.inst))) {
          item.sole = !m->whole && m->reads == 1;
          item.adjacent = true;
          for (size_t j = m->item + size_t{1}; j < g->items.size(); ++j)
            item.adjacent = item.adjacent && (g->items[j].role == Role::Setup || g->items[j].role == Role::Load || g->items[j].role == Role::Fold);
          FusedGroup::Item& maker = g->items[m->item];
          if (item.sole && maker.role == Role::Kernel && (maker.streamed = streamed(b_.step_at(maker.step)))) item.maker = m->item;
        }
      g->items.push_back(std::move(item));
      if (g->values.size() > FusedGroup::kMaxValues) return false;
    }
    g->n = n_;
    g->end = end;
    g->last = ends_block(*g);
    place_buffers(*g);
    b_.step_at(begin).fused = static_cast<const FusedGroup*>(b_.keep(std::move(g)));
    return true;
  }

  /// The kernel of a step that writes around the caches, where there is one.
  [[nodiscard]] ElementwiseFn streamed(const Step& s) const {
    const Opcode op = f_.insts[s.inst].op;
    const ElementType in = b_.element(f_.operands(s.inst)[0]), out = b_.element(f_.result(s.inst));
    const Modifiers m = modifiers_of(f_, s.inst);
    // Not where the numbers are those of another machine.
    return in == out && s.kernel == find_elementwise(op, in, out, m) ? find_streamed(op, out, m) : nullptr;
  }

  /// True if only the block's return follows, and the group is of the kind that run_put_off() knows.
  [[nodiscard]] bool ends_block(const FusedGroup& g) const {
    if (g.end + 1 != b_.step_count() || n_ > FusedGroup::kLastElements || g.values.size() > FusedGroup::kLastValues) return false;
    size_t stores = 0;
    for (const FusedGroup::Item& item : g.items) {
      if (item.role == Role::Uniform || item.role == Role::Rows || item.role == Role::Spread || item.role == Role::Fold) return false;
      stores += item.role == Role::Store;
      const InstId i = b_.step_at(item.step).inst;
      if (f_.insts[i].result_count > 0 && b_.home(f_.result(i)) != 0) return false;  // the end of a loop's body
    }
    return stores <= FusedGroup::kLastStores;
  }

  /// Gives chunks to the values that need not exist as a whole; a chunk is reused after the last read.
  void place_buffers(FusedGroup& g) {
    struct Buffer {
      size_t size;
      uint16_t busy_until;
    };
    std::vector<Buffer> buffers;
    std::vector<std::pair<uint16_t, size_t>> users;  // value, buffer
    for (size_t i = 0; i < g.items.size(); ++i) {
      const FusedGroup::Item& item = g.items[i];
      if (item.out == FusedGroup::kNone || item.role == Role::Load || item.role == Role::Rows || g.values[item.out].whole) continue;
      const auto& v = g.values[item.out];
      // Kernels may write over an operand that is read for the last time; what is filled once lives as long as the group.
      const bool uniform = item.role == Role::Uniform;
      size_t k = 0;
      while (k < buffers.size() && (uniform || buffers[k].size != v.size || buffers[k].busy_until > i)) ++k;
      if (k == buffers.size()) buffers.push_back({v.size, 0});
      buffers[k].busy_until = uniform ? FusedGroup::kNone : std::max(v.last, static_cast<uint16_t>(i));
      users.emplace_back(item.out, k);
    }
    size_t bytes = 0;
    for (const Buffer& b : buffers) bytes += b.size;
    g.chunk = kMaxChunk;
    while (g.chunk > FusedGroup::kMinElements && g.chunk * bytes > kBufferBytes) g.chunk /= 2;
    g.chunk = std::min(g.chunk, g.n);
    std::vector<size_t> offsets;
    size_t total = 0;
    for (const Buffer& b : buffers) {
      offsets.push_back(total);
      total += (g.chunk * b.size + 63) & ~size_t{63};
    }
    for (const auto& [v, k] : users) g.values[v].buffer = offsets[k];
    b_.scratch(total);
  }

  PlanBuilder& b_;
  const Function& f_;
  std::vector<Role> roles_;
  std::vector<Made> made_;
  size_t n_ = 0;
};

}  // namespace

void fuse_steps(PlanBuilder& b) { Fuser(b).run(); }

}  // namespace tile
