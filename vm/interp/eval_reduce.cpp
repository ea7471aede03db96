// Reductions and scans with any body. The body runs for many positions at once (lanes): its scalars become short vectors, and the order
// along the reduced dimension stays left to right. Bodies with tiles or regions of their own run one position at a time.
#include <algorithm>
#include <memory>
#include <optional>

#include "vm/interp/eval.h"
#include "vm/interp/fused.h"
#include "vm/interp/numerics_h200.h"
#include "vm/interp/numerics_h200_reduce.h"
#include "vm/interp/reduce_kernels.h"
#include "vm/interp/strided.h"

namespace tile {
namespace {

constexpr size_t kMaxLanes = 2048;        // a few vectors of this length stay in the first-level cache
constexpr size_t kBand = 16;              // rows that stay together: they are the lanes of a vector
constexpr size_t kMaxGathered = 1 << 16;  // elements of a transposed chunk

struct ReduceData : StepData {
  struct Operand {
    size_t size = 4;
    Slot in, out, left, current;
    Slot gathered = kNoSlot;              // [len][lanes], where positions are not neighbours in memory
    Slot table = kNoSlot;                 // [rows][lanes], where the order is that of an H200
  };
  std::vector<Operand> operands;
  std::vector<Move> yield;                // body results -> left
  Slot yield_temp = kNoSlot;
  size_t outer = 1, len = 1, inner = 1, lanes = 1;
  bool scan = false, reverse = false;
  CombinationOrder order;                 // of an H200; without steps the one of this machine
};

Flow eval_reduce(Exec& x, const Step& s) {
  const auto& d = static_cast<const ReduceData&>(*s.data);
  const int64_t inner = static_cast<int64_t>(d.inner), len = static_cast<int64_t>(d.len), lanes = static_cast<int64_t>(d.lanes);
  const size_t chunks = d.outer * d.inner / d.lanes;
  // A chunk is `rows` outer positions times `cols` inner ones.
  const int64_t rows = std::max<int64_t>(1, lanes / inner), cols = std::min(lanes, inner);
  const int64_t lane_box[2] = {rows, cols}, lane_strides[2] = {cols, 1}, tile_strides[2] = {len * inner, 1};
  for (size_t c = 0; c < chunks; ++c) {
    const size_t first = c * d.lanes;     // position in outer * inner
    const size_t base = first / d.inner * d.len * d.inner + first % d.inner;
    for (const auto& o : d.operands)
      if (o.gathered != kNoSlot) {        // inner is 1: rows of the tile become columns
        const int64_t box[2] = {rows, len}, to[2] = {1, lanes}, from[2] = {len, 1};
        strided_copy(o.size, x.at<std::byte>(o.gathered), to, x.at<std::byte>(o.in) + base * o.size, from, box);
      }
    const auto slice = [&](const ReduceData::Operand& o, size_t j, Slot to) {
      if (o.gathered != kNoSlot) {
        std::memcpy(x.at<std::byte>(to), x.at<std::byte>(o.gathered) + j * d.lanes * o.size, d.lanes * o.size);
      } else {
        strided_copy(o.size, x.at<std::byte>(to), lane_strides, x.at<std::byte>(o.in) + (base + j * d.inner) * o.size, tile_strides, lane_box);
      }
    };
    const auto emit = [&](size_t j) {
      for (const auto& o : d.operands) {
        if (o.gathered != kNoSlot) {
          std::memcpy(x.at<std::byte>(o.gathered) + j * d.lanes * o.size, x.at<std::byte>(o.left), d.lanes * o.size);
        } else {
          strided_copy(o.size, x.at<std::byte>(o.out) + (base + j * d.inner) * o.size, tile_strides, x.at<std::byte>(o.left), lane_strides, lane_box);
        }
      }
    };
    if (!d.order.steps.empty()) {
      const auto row = [&](const ReduceData::Operand& o, size_t i) { return x.at<std::byte>(o.table) + i * d.lanes * o.size; };
      const auto copy = [&](const ReduceData::Operand& o, std::byte* to, const std::byte* from) { std::memcpy(to, from, d.lanes * o.size); };
      for (size_t j = 0; j < d.len; ++j)
        for (const auto& o : d.operands) {
          slice(o, d.reverse ? d.len - 1 - j : j, o.current);
          copy(o, row(o, j), x.at<std::byte>(o.current));
        }
      for (const Combination& step : d.order.steps) {
        if (step.right == Combination::kNone) {
          for (const auto& o : d.operands) copy(o, row(o, step.to), row(o, step.left));
          continue;
        }
        for (const auto& o : d.operands) {
          copy(o, x.at<std::byte>(o.left), row(o, step.left));
          copy(o, x.at<std::byte>(o.current), row(o, step.right));
        }
        const Flow flow = x.run(s.body[0], s.body[1]);
        if (flow == Flow::Trap) return flow;
        x.copy(d.yield, d.yield_temp);
        for (const auto& o : d.operands) copy(o, row(o, step.to), x.at<std::byte>(o.left));
      }
      for (size_t j = 0; j < d.order.results.size(); ++j) {
        for (const auto& o : d.operands) copy(o, x.at<std::byte>(o.left), row(o, d.order.results[j]));
        if (d.scan) emit(d.reverse ? d.len - 1 - j : j);
      }
    }
    for (size_t step = 0; step < (d.order.steps.empty() ? d.len : 0); ++step) {
      const size_t j = d.reverse ? d.len - 1 - step : step;
      if (step == 0) {
        for (const auto& o : d.operands) slice(o, j, o.left);
      } else {
        for (const auto& o : d.operands) slice(o, j, o.current);
        const Flow flow = x.run(s.body[0], s.body[1]);
        if (flow == Flow::Trap) return flow;
        x.copy(d.yield, d.yield_temp);
      }
      if (d.scan) emit(j);
    }
    for (const auto& o : d.operands) {
      if (!d.scan) {
        std::memcpy(x.at<std::byte>(o.out) + first * o.size, x.at<std::byte>(o.left), d.lanes * o.size);
      } else if (o.gathered != kNoSlot) {
        const int64_t box[2] = {rows, len}, to[2] = {len, 1}, from[2] = {1, lanes};
        strided_copy(o.size, x.at<std::byte>(o.out) + base * o.size, to, x.at<std::byte>(o.gathered), from, box);
      }
    }
    if (x.launch.stop.load(std::memory_order_relaxed)) return Flow::Trap;
  }
  return Flow::Next;
}

/// A reduction or scan of one operand whose body is one operation that the kernels of reduce_kernels.h have.
struct FastData : FoldData {
  ReduceKind kind = ReduceKind::AddF;
  ElementType element = ElementType::F32;
  Modifiers modifiers;
  size_t inner = 1;
  bool scan = false, reverse = false;
  ElementwiseFn followed = nullptr;       // computes the operation where the numbers of an H200 are asked for
  CombinationOrder order;                 // in which it does

  [[nodiscard]] bool run(void* out, const void* in) const { return run(out, in, outer, inner, {}); }
  [[nodiscard]] bool run(void* out, const void* in, size_t rows, size_t columns, ReduceStrides strides) const {
    return scan ? scan_fast(kind, element, modifiers, out, in, rows, len, columns, reverse, strides)
                : reduce_fast(kind, element, modifiers, out, in, rows, len, columns, strides);
  }

  [[nodiscard]] bool rows() const override { return !scan && !followed && inner == 1; }
  void fold(Exec& x, std::byte* out, const std::byte* in, size_t row) const override { run(x, out, in, row); }

  /// The same by several threads: bands of rows, `row` elements apart, or of columns where there is but one row.
  void run(Exec& x, std::byte* out, const std::byte* in, size_t row) const {
    const size_t size = info(element).storage, results = scan ? len : 1;
    if (outer % kBand == 0 || row != len * inner) {
      const size_t band = outer % kBand == 0 ? kBand : outer;
      x.split(outer / band, std::max<size_t>(1, Exec::kSplit / (band * len * inner)), [&](size_t begin, size_t end, std::byte*) {
        (void)run(out + begin * band * results * inner * size, in + begin * band * row * size, (end - begin) * band, inner, {0, row});
      });
    } else if (outer == 1 && inner % kReduceColumns == 0) {
      x.split(inner / kReduceColumns, std::max<size_t>(1, Exec::kSplit / (kReduceColumns * len)), [&](size_t begin, size_t end, std::byte*) {
        const size_t skip = begin * kReduceColumns * size;
        (void)run(out + skip, in + skip, 1, (end - begin) * kReduceColumns, {inner, 0});
      });
    } else {
      (void)run(out, in);
    }
  }
};

Flow eval_fast(Exec& x, const Step& s) {
  const auto& d = static_cast<const FastData&>(*s.data);
  if (d.followed) {
    combine_h200(d.followed, info(d.element).storage, d.order, d.reverse, x.at<std::byte>(s.out[0]), x.at<std::byte>(s.in[0]), d.outer, d.len, d.inner);
  } else {
    d.run(x, x.at<std::byte>(s.out[0]), x.at<std::byte>(s.in[0]), d.len * d.inner);
  }
  return Flow::Next;
}

std::optional<ReduceKind> fast_kind(Opcode op) {
  switch (op) {
    case Opcode::AddF: return ReduceKind::AddF;
    case Opcode::MulF: return ReduceKind::MulF;
    case Opcode::MaxF: return ReduceKind::MaxF;
    case Opcode::MinF: return ReduceKind::MinF;
    case Opcode::AddI: return ReduceKind::AddI;
    case Opcode::MulI: return ReduceKind::MulI;
    case Opcode::MaxI: return ReduceKind::MaxI;
    case Opcode::MinI: return ReduceKind::MinI;
    case Opcode::AndI: return ReduceKind::AndI;
    case Opcode::OrI: return ReduceKind::OrI;
    case Opcode::XOrI: return ReduceKind::XOrI;
    default: return std::nullopt;
  }
}

/// Bytes of the elements as they were loaded: what is widened keeps the layout.
size_t loaded_bytes(const PlanBuilder& b, ValueId v) {
  for (InstId i = 0; i < b.f.insts.size(); ++i) {
    if (b.f.insts[i].op != Opcode::FToF || b.f.result(i) != v) continue;
    const ValueId from = b.f.operands(i)[0];
    return std::min(info(b.element(v)).storage, info(b.element(from)).storage);
  }
  return info(b.element(v)).storage;
}

CombinationOrder order_h200(const PlanBuilder& b, InstId i, const ReduceData& d) {
  const auto dim = static_cast<size_t>(b.module.int_attr(b.f, i, 0));
  const ValueId first = b.f.operands(i)[0];
  ThreadLayout layout = thread_layout_h200(b.type(first).shape, dim, loaded_bytes(b, first));
  if (d.operands.size() > 1) layout.boxes = 0;
  return d.scan ? scan_order_h200(layout) : reduction_order_h200(layout);
}

/// Plans the fast form if the body is `yield op(a, b)` with the two arguments in either order (all these operations commute).
bool compile_fast(PlanBuilder& b, InstId i, const Region& r, const ReduceData& d) {
  const Function& f = b.f;
  if (d.operands.size() != 1 || f.insts[r.begin].next != r.begin + 1 || r.end != r.begin + 2) return false;
  const auto kind = fast_kind(f.insts[r.begin].op);
  const auto args = f.operands(r.begin);
  const ValueId a = r.first_arg, c = r.first_arg + 1;
  if (!kind || !((args[0] == a && args[1] == c) || (args[0] == c && args[1] == a)) || f.operands(r.begin + 1)[0] != f.result(r.begin)) return false;
  auto fast = std::make_unique<FastData>();
  fast->kind = *kind;
  fast->element = b.element(f.operands(i)[0]);
  fast->modifiers = modifiers_of(f, r.begin);
  fast->outer = d.outer;
  fast->len = d.len;
  fast->inner = d.inner;
  fast->scan = d.scan;
  fast->reverse = d.reverse;
  // The kernels say themselves which types and modifiers they have: ask with one element.
  FastData probe = *fast;
  probe.outer = probe.len = probe.inner = 1;
  uint64_t in = 0, out = 0;
  if (!probe.run(&out, &in)) return false;
  if (b.numerics == Numerics::H200 && (*kind == ReduceKind::AddF || *kind == ReduceKind::MulF)) {
    fast->followed = find_elementwise(f.insts[r.begin].op, fast->element, fast->element, fast->modifiers, b.numerics);
    fast->order = order_h200(b, i, d);
  }
  const Slot from = d.operands[0].in, to = d.operands[0].out;
  Step& s = b.step(i, eval_fast);
  s.in[0] = from;
  s.out[0] = to;
  s.n = fast->outer * fast->len * fast->inner;
  s.data = b.keep(std::move(fast));
  return true;
}

Flow eval_spread(Exec& x, const Step& s) {
  const size_t size = s.body[0];
  fill_elements(size, x.at<std::byte>(s.out[0]), read_bits(x.at(s.in[0]), size), s.n);
  return Flow::Next;
}

/// True if every value of the body is a scalar and every operation works element by element on them.
bool vectorisable(const PlanBuilder& b, const Region& r) {
  const Function& f = b.f;
  const auto scalar = [&](ValueId v) {
    const Type& t = b.module.types.get(f.type(v));
    return t.kind == TypeKind::Token || (t.kind == TypeKind::Tile && t.shape.empty());
  };
  for (InstId i = r.begin; i < r.end; ++i) {
    if (f.def(i).regions > 0 || f.insts[i].op == Opcode::Extract || f.insts[i].op == Opcode::Insert) return false;
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
      if (!scalar(f.result(i, k))) return false;
    for (const ValueId v : f.operands(i))
      if (!scalar(v)) return false;
  }
  return true;
}

}  // namespace

bool compile_reduce(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const auto operands = f.operands(i);
  const Region& r = f.region(i);
  const auto& shape = b.type(operands[0]).shape;
  if (b.lanes() > 1) {
    b.why = "a reduction inside the vectorised body of another";
    return false;
  }
  ReduceData* d = b.data<ReduceData>();
  d->scan = f.insts[i].op == Opcode::Scan;
  if (d->scan) d->reverse = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "reverse"))) != 0;
  const size_t dim = static_cast<size_t>(b.module.int_attr(f, i, 0));
  for (size_t k = 0; k < shape.size(); ++k) (k < dim ? d->outer : k == dim ? d->len : d->inner) *= static_cast<size_t>(shape[k]);
  const size_t positions = d->outer * d->inner;
  const bool vector = vectorisable(b, r);
  d->lanes = vector ? std::min(positions, kMaxLanes) : 1;
  const bool gather = d->inner == 1 && d->lanes > 1, follow = b.numerics == Numerics::H200;
  if (gather || follow)
    while (d->lanes > 16 && d->lanes * d->len > kMaxGathered) d->lanes /= 2;

  for (size_t k = 0; k < operands.size(); ++k) {
    // The operands stay readable until the end; the results get storage of their own.
    ReduceData::Operand o;
    o.size = b.storage(operands[k]);
    o.in = b.slot(operands[k]);
    o.out = b.define(f.result(i, k));
    d->operands.push_back(o);
  }
  if (compile_fast(b, i, r, *d)) return true;
  if (follow) d->order = order_h200(b, i, *d);

  std::vector<std::pair<Slot, size_t>> temporary;
  const auto scratch_slot = [&](size_t bytes) {
    const Slot s = b.allocate(bytes);
    temporary.emplace_back(s, bytes);
    return s;
  };
  std::vector<Slot> lefts;
  for (size_t k = 0; k < operands.size(); ++k) {
    ReduceData::Operand& o = d->operands[k];
    o.left = scratch_slot(d->lanes * o.size);
    o.current = scratch_slot(d->lanes * o.size);
    if (!d->order.steps.empty()) o.table = scratch_slot(d->lanes * d->order.rows * o.size);
    if (gather) o.gathered = scratch_slot(d->lanes * d->len * o.size);
    b.bind(r.first_arg + static_cast<ValueId>(2 * k), o.left);
    b.bind(r.first_arg + static_cast<ValueId>(2 * k + 1), o.current);
    lefts.push_back(o.left);
  }

  // Scalars from outside become vectors once, before the body runs.
  std::vector<std::pair<ValueId, Slot>> outside;
  if (d->lanes > 1)
    for (InstId u = r.begin; u < r.end; ++u)
      for (const ValueId v : f.operands(u)) {
        if (b.home(v) == f.insts[i].first_region || b.bytes(v) == 0) continue;
        if (std::any_of(outside.begin(), outside.end(), [&](const auto& p) { return p.first == v; })) continue;
        const size_t size = b.storage(v);
        const Slot from = b.slot(v), to = scratch_slot(d->lanes * size);
        Step& s = b.step(i, eval_spread);
        s.in[0] = from;
        s.out[0] = to;
        s.n = d->lanes;
        s.body[0] = static_cast<uint32_t>(size);
        outside.emplace_back(v, from);
        b.bind(v, to);
      }

  const uint32_t at = b.step_count();
  {
    Step& s = b.step(i, eval_reduce);
    s.data = d;
  }
  b.set_lanes(d->lanes);
  b.yields.push_back({i, {}, {}});  // the moves of this yield belong to the reduction, which runs them after each pass
  const bool ok = b.region(r);
  b.yields.pop_back();
  if (ok) d->yield = b.moves(f.operands(f.last_of(r)), lefts, &d->yield_temp);
  b.set_lanes(1);
  if (!ok) return false;
  for (const auto& [v, slot] : outside) b.bind(v, slot);
  for (const auto& [slot, bytes] : temporary) b.release(slot, bytes);
  Step& s = b.step_at(at);
  s.body[0] = at + 1;
  s.body[1] = s.next = b.step_count();
  return true;
}

}  // namespace tile
