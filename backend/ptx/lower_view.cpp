// Tensor views, the views of tiles made of them, and accesses through them.
#include <algorithm>

#include "backend/ptx/lower_memory.h"
#include "vm/base/numeric.h"

namespace tile {
namespace {

/// Bits of a padding value in a tile (view types, `padding_value`).
uint64_t padding_bits(ElementType e, uint32_t padding) {
  const ElementInfo& t = info(e);
  if (!t.is_float || padding == kNone || padding == 0) return 0;
  // Formats that saturate have no conversion that gives infinity; padding states its bits.
  const FloatFormat& format = float_format(e);
  const uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  const double inf = std::numeric_limits<double>::infinity();
  switch (padding) {
    case 1: return encode(e, -0.0);
    case 2: return encode(e, std::numeric_limits<double>::quiet_NaN());
    default:
      if (format.has_inf && format.saturates) return (((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits) | (padding == 4 ? sign : 0);
      return encode(e, padding == 3 ? inf : -inf);
  }
}

/// A view type with its numbers at hand.
struct ViewShape {
  const Type& type;
  const Type& tensor;
  size_t rank;

  ViewShape(const Module& m, TypeId id) : type(m.types.get(id)), tensor(m.types.get(type.inner)), rank(type.shape.size()) {}
  bool gathers() const { return type.kind == TypeKind::GatherScatterView; }
  size_t dim(size_t tile_dim) const { return gathers() ? tile_dim : static_cast<size_t>(type.dim_map[tile_dim]); }
  int64_t step(size_t tile_dim) const {
    return type.kind == TypeKind::PartitionView ? type.shape[tile_dim] : type.kind == TypeKind::StridedView ? type.strides[tile_dim] : 1;
  }
};

bool make_tensor_view(Lowering& x, InstId i) {
  const Function& f = x.f;
  const Type& t = x.m.types.get(f.type(f.result(i)));
  Lowering::View& v = x.view(f.result(i));
  v = {x.scalar(f.operand(i, 0)), {}, {}};
  const auto fill = [&](const std::vector<int64_t>& numbers, std::span<const ValueId> dynamic, Values& out) {
    size_t next = 0;
    for (const int64_t n : numbers) out.push_back(n == kDynamic ? x.b.CreateZExtOrTrunc(x.scalar(dynamic[next++]), x.b.getInt64Ty()) : x.i64(n));
  };
  fill(t.shape, f.group(i, 1), v.shape);
  fill(t.strides, f.group(i, 2), v.strides);
  return true;
}

bool index_space(Lowering& x, InstId i) {
  const Function& f = x.f;
  const ValueId source = f.operands(i)[0];
  const ViewShape s(x.m, f.type(source));
  for (uint32_t r = 0; r < f.insts[i].result_count; ++r) {
    Value* n = x.view(source).shape[s.dim(r)];
    const uint64_t step = static_cast<uint64_t>(s.step(r));
    if (step > 1) n = x.b.CreateAdd(x.b.CreateUDiv(n, x.i64(s.step(r))), x.b.CreateZExt(x.b.CreateICmpNE(x.b.CreateURem(n, x.i64(s.step(r))), x.i64(0)), x.b.getInt64Ty()));
    x.set(f.result(i, r), {x.b.CreateZExtOrTrunc(n, register_type(x.b.getContext(), x.element(f.result(i, r))))});
  }
  return true;
}

bool tensor_shape(Lowering& x, InstId i) {
  const Function& f = x.f;
  for (uint32_t r = 0; r < f.insts[i].result_count; ++r)
    x.set(f.result(i, r), {x.b.CreateZExtOrTrunc(x.view(f.operands(i)[0]).shape[r], register_type(x.b.getContext(), x.element(f.result(i, r))))});
  return true;
}

/// What is equal in all threads of an access through a view.
struct ViewStart {
  ViewShape s;
  ElementType element;
  int64_t bytes;               ///< of an element; 1 for four-bit ones, whose offsets count elements
  bool packed;
  Value* address;              ///< i64, of the tile's first element (four-bit: offset in elements)
  Values limit;                ///< i32 by dimension: how many of the tile's elements lie inside the array; nullptr for gathered ones
  Values stride;               ///< i64 by dimension, bytes
  MemOrder order = MemOrder::Weak;
  MemScope scope = MemScope::Device;
  bool pinned = false;         ///< the thread's part is computed anew each time

  bool sparse(size_t k) const { return s.gathers() && k == s.type.sparse_dim; }
};

ViewStart view_start(Lowering& x, InstId i, ValueId view, std::span<const ValueId> indices) {
  llvm::IRBuilder<>& b = x.b;
  const ElementType e = x.m.types.element_of(x.f.type(view));
  const unsigned memory_bits = info(e).memory_bits;
  ViewStart at{ViewShape(x.m, x.f.type(view)), e, memory_bits < 8 ? 1 : memory_bits / 8, memory_bits < 8, x.i64(0), {}, {}};
  const Lowering::View& v = x.view(view);
  llvm::Type* i64 = b.getInt64Ty();
  at.limit.resize(at.s.rank);
  for (size_t k = 0; k < at.s.rank; ++k) {
    at.stride.push_back(b.CreateMul(v.strides[at.s.dim(k)], x.i64(at.bytes)));
    if (at.sparse(k)) continue;
    const int64_t shape = at.s.type.shape[k];
    Value* extent = v.shape[at.s.dim(k)];
    Value* index = b.CreateZExtOrTrunc(x.scalar(indices[k]), i64);
    // Beyond 2^40 tiles every array has ended; the product then stays within 64 bits.
    index = b.CreateSelect(b.CreateICmpULT(index, x.i64(int64_t{1} << 40)), index, x.i64(int64_t{1} << 40));
    Value* start = b.CreateMul(index, x.i64(at.s.step(k)));
    Value* left = b.CreateSelect(b.CreateICmpULT(start, extent), b.CreateSub(extent, start), x.i64(0));
    left = b.CreateSelect(b.CreateICmpULT(left, x.i64(shape)), left, x.i64(shape));
    at.limit[k] = b.CreateTrunc(left, b.getInt32Ty());
    at.address = b.CreateAdd(at.address, b.CreateMul(start, at.stride[k]));
  }
  if (!at.packed) at.address = b.CreateAdd(at.address, v.base);
  at.order = memory_order_of(x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), "memory_ordering_semantics"))));
  const uint32_t scope = x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), "memory_scope")));
  if (scope != kNone) at.scope = memory_scope_of(scope);
  return at;
}

/// Register bits that walk along the dimension whose stride is one, from the lowest, as far as 16 bytes; `dim` is that dimension.
unsigned run_along(const ViewStart& at, const Layout& l, size_t* dim) {
  const auto& shape = at.s.type.shape;
  const auto first = dim_bits(shape);
  for (size_t k = 0; k < at.s.rank && !at.packed; ++k) {
    if (at.s.tensor.strides[at.s.dim(k)] != 1 || shape[k] == 1 || at.sparse(k)) continue;
    unsigned run = 0;
    while (run < l.reg.size() && run < log2_of(shape[k]) && l.reg[run] == static_cast<int>(first[k] + run) && at.bytes << (run + 1) <= 16) ++run;
    *dim = k;
    return run;
  }
  return 0;
}

/// i1: runs of 2^run elements along `dim` begin at multiples of their size. What is known of the array decides it before the kernel runs.
Value* runs_aligned(Lowering& x, const ViewStart& at, ValueId view, size_t dim, unsigned run) {
  llvm::IRBuilder<>& b = x.b;
  if (at.s.step(dim) % (int64_t{1} << run) != 0) return b.getFalse();
  const auto size = static_cast<uint64_t>(at.bytes) << run;
  const Facts::Array& known = x.plan.facts.array(view);
  const Lowering::View& v = x.view(view);
  Value* all = known.base >= size ? x.i64(0) : v.base;
  for (size_t j = 0; j < at.s.rank; ++j)
    if (j != dim && (known.strides.empty() || known.strides[at.s.dim(j)] * static_cast<uint64_t>(at.bytes) < size)) all = b.CreateOr(all, at.stride[j]);
  return b.CreateICmpEQ(b.CreateAnd(all, x.i64(static_cast<int64_t>(size) - 1)), x.i64(0));
}

/// i1: each run is wholly inside or outside of the array.
Value* runs_whole(Lowering& x, const ViewStart& at, ValueId view, size_t dim, unsigned run) {
  const Facts::Array& known = x.plan.facts.array(view);
  if (!known.shape.empty() && known.shape[at.s.dim(dim)] >= uint64_t{1} << run) return x.b.getTrue();
  return x.b.CreateICmpEQ(x.b.CreateAnd(at.limit[dim], x.i32((1 << run) - 1)), x.i32(0));
}

/// i1: the whole tile is inside.
Value* tile_inside(Lowering& x, const ViewStart& at) {
  Value* all = x.b.getTrue();
  for (size_t k = 0; k < at.s.rank; ++k) {
    if (at.sparse(k)) return x.b.getFalse();
    all = x.b.CreateAnd(all, x.b.CreateICmpEQ(at.limit[k], x.i32(at.s.type.shape[k])));
  }
  return all;
}

/// Addresses and masks of the registers of a tile in layout `l`.
Access access_at(Lowering& x, const ViewStart& at, ValueId view, std::span<const ValueId> indices, const Layout& l, bool masked) {
  llvm::IRBuilder<>& b = x.b;
  llvm::Type* i64 = b.getInt64Ty();
  const ViewShape& s = at.s;
  const auto& shape = s.type.shape;
  Access a;
  a.element = at.element;
  a.order = at.order;
  a.scope = at.scope;
  Values thread(s.rank);
  Value* base = at.address;
  for (size_t k = 0; k < s.rank; ++k) {
    thread[k] = x.thread_coordinate(l, shape, k);
    if (at.pinned) thread[k] = x.d.opaque(thread[k]);
    if (!at.sparse(k)) base = b.CreateAdd(base, b.CreateMul(b.CreateZExt(thread[k], i64), at.stride[k]));
  }
  Values sparse;
  if (s.gathers()) sparse = x.spread(indices[s.type.sparse_dim], s.type.sparse_dim, shape, l);
  // One mask per coordinate and dimension, one product per coordinate: registers share them.
  std::vector<std::map<uint32_t, Value*>> inside(s.rank), offset(s.rank);
  for (unsigned r = 0; r < l.registers(); ++r) {
    Value* address = base;
    Value* mask = nullptr;
    for (size_t k = 0; k < s.rank; ++k) {
      Value *in = nullptr, *off = nullptr;
      if (at.sparse(k)) {
        Value* c = b.CreateZExtOrTrunc(sparse[r], i64);
        in = b.CreateICmpULT(c, x.view(view).shape[s.dim(k)]);
        off = b.CreateMul(c, at.stride[k]);
      } else {
        const uint32_t c = Lowering::register_coordinate(l, shape, k, r);
        if (masked) {
          auto& known_in = inside[k][c];
          if (!known_in) known_in = b.CreateICmpULT(b.CreateOr(thread[k], x.i32(c)), at.limit[k]);
          in = known_in;
        }
        auto& known_off = offset[k][c];
        if (!known_off) known_off = b.CreateMul(at.stride[k], x.i64(c));
        off = known_off;
      }
      mask = mask && in ? b.CreateAnd(mask, in) : in ? in : mask;
      address = b.CreateAdd(address, off);
    }
    if (at.packed) {
      a.nibble.push_back(b.CreateTrunc(address, b.getInt1Ty()));
      address = b.CreateAdd(x.view(view).base, b.CreateLShr(address, x.i64(1)));
    }
    a.address.push_back(address);
    if (masked) a.mask.push_back(mask ? mask : static_cast<Value*>(b.getTrue()));
  }
  return a;
}

/// A way to make a weak access: all of them move the same elements.
struct Way {
  Value* when = nullptr;                     ///< i1, equal in all threads; nullptr: always
  unsigned run = 0;                          ///< log2 of the elements of one access
  bool masked = true;
  Layout layout;                             ///< in which it is made
  std::vector<LaneExchange> steps;           ///< that lead from there to the tile's layout, and back
};

bool is_constant(Value* v, bool value) {
  const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(v);
  return known && known->isOne() == value;
}

/// The first whose condition holds is taken: without masks where the tile lies inside, with masks, in runs of 8 bytes instead of 16, and in
/// single elements where runs are not aligned or the array ends within one. For shorter runs lanes take neighbours instead of registers:
/// otherwise each lane's line would be touched once for every part of a long run.
std::vector<Way> find_ways(Lowering& x, const ViewStart& at, ValueId view, const Layout& l) {
  llvm::IRBuilder<>& b = x.b;
  size_t dim = 0;
  const unsigned run = run_along(at, l, &dim);
  std::vector<Way> ways;
  if (x.plan.whole_tiles) ways.push_back({b.CreateAnd(run > 0 ? runs_aligned(x, at, view, dim, run) : b.getTrue(), tile_inside(x, at)), run, false, l, {}});
  const bool lanes_follow = run > 0 && l.lane[0] == l.reg[run - 1] + 1 && std::find(l.lane.begin(), l.lane.end(), kCopies) == l.lane.end();
  for (unsigned part = run; part > 0; --part) {
    if (part != run && at.bytes << part != 8) continue;
    Way way{b.CreateAnd(runs_aligned(x, at, view, dim, part), runs_whole(x, at, view, dim, part)), part, true, l, {}};
    for (unsigned k = part; lanes_follow && k < run; ++k) way.steps.push_back({k, 5 - run + k});
    way.layout = exchanged_layout(l, way.steps);
    ways.push_back(std::move(way));
  }
  Way single{nullptr, 0, true, l, {}};
  for (unsigned k = 0; lanes_follow && k < run; ++k) single.steps.push_back({k, 5 - run + k});
  single.layout = exchanged_layout(l, single.steps);
  ways.push_back(std::move(single));
  return ways;
}

Access access_by(Lowering& x, const Way& way, ViewStart at, ValueId view, std::span<const ValueId> indices) {
  // Masks and addresses of ways with many accesses that do not change in a loop must not wait in registers through the loop.
  at.pinned = at.pinned || (way.masked && (way.layout.registers() >> way.run) >= 16);
  Access a = access_at(x, at, view, indices, way.layout, way.masked);
  a.run = way.run;
  if (way.run > 0) a.run_ok = x.b.getTrue();
  return a;
}

void take_way(Lowering& x, std::span<const Way> ways, const std::function<void(const Way&)>& emit) {
  const Way& first = ways.front();
  if (!first.when || is_constant(first.when, true)) return emit(first);
  if (is_constant(first.when, false)) return take_way(x, ways.subspan(1), emit);
  x.if_then(first.when, [&] { emit(first); }, [&] { take_way(x, ways.subspan(1), emit); });
}

Values padding(Lowering& x, ValueId view, const Layout& l) {
  const ElementType e = x.m.types.element_of(x.f.type(view));
  return Values(l.registers(), constant_bits(x.d, e, padding_bits(e, x.m.types.get(x.f.type(view)).padding)));
}

/// How wide an access through a view is at best, and why not wider.
void remark_width(Lowering& x, InstId i, const std::string& what, const ViewStart& at, const Layout& l, unsigned run, std::string why = {}) {
  if (run == 0 && why.empty()) why = l.registers() == 1 ? "a thread has one element of the tile" : "no dimension of the array has stride one along the registers";
  x.remark(i, what + (run > 0 ? " of " + std::to_string(at.bytes << run) + " bytes" : " of one element"), std::move(why));
}
constexpr char kOneByOne[] = "ordered accesses, and elements of four bits, are moved one by one";

void store_view(Lowering& x, InstId i, const ViewStart& at, ValueId view, std::span<const ValueId> indices, const Layout& l, const Values& regs) {
  const auto ways = find_ways(x, at, view, l);
  const auto no_bulk = x.plan.why_direct.find(i);
  remark_width(x, i, "global stores", at, l, ways.front().run, no_bulk == x.plan.why_direct.end() ? "" : "no bulk store: " + no_bulk->second);
  take_way(x, ways, [&](const Way& way) {
    store_access(x, way.layout, access_by(x, way, at, view, indices), way.steps.empty() ? regs : exchange_lanes(x, regs, at.element, way.steps));
  });
}

/// The layout that suits a store best.
Layout memory_layout(Lowering& x, ValueId tile, ValueId view) {
  const unsigned bytes = info(x.element(tile)).storage;
  // What the tile has in registers now had better be in registers then.
  return blocked_layout(x.shape(tile), memory_order(x.m, x.f.type(view)), log2_of(16 / bytes), x.plan.warp_bits, x.layout(tile).reg);
}

/// Whether a tile is converted to `better` before a store: not where it gains nothing or its memory is not free.
bool worth_rearranging(Lowering& x, ValueId tile, ValueId view, const Layout& better) {
  const Layout& l = x.layout(tile);
  const ConvertKind kind = convert_kind(l, better);
  if (l.registers() < 16 || kind == ConvertKind::None || kind == ConvertKind::Registers || info(x.element(tile)).memory_bits < 8) return false;
  const auto order = memory_order(x.m, x.f.type(view));
  const ViewShape s(x.m, x.f.type(view));
  if (order.empty() || s.tensor.strides[s.dim(order[0])] != 1) return false;
  const int low = static_cast<int>(dim_bits(x.shape(tile))[order[0]]);
  unsigned run = 0;
  while (run < l.reg.size() && l.reg[run] == low + static_cast<int>(run)) ++run;
  const unsigned bytes = info(x.element(tile)).storage;
  if (bytes << run >= 16) return false;
  return (bytes << element_bits(x.shape(tile))) <= std::max(x.free_scratch(), 32u * 1024);
}

/// Floats are added in runs, as they are stored.
void add_view(Lowering& x, InstId i, ValueId view, ValueId value) {
  const Layout better = memory_layout(x, value, view);
  const bool rearrange = worth_rearranging(x, value, view, better);
  const Layout& l = rearrange ? better : x.layout(value);
  const Values regs = rearrange ? x.convert(x.own(value), x.element(value), x.layout(value), better, element_bits(x.shape(value))) : x.own(value);
  const auto indices = x.f.group(i, 1);
  ViewStart at = view_start(x, i, view, indices);
  at.pinned = l.registers() >= 32;
  x.order_access(i, true, true);
  const auto ways = find_ways(x, at, view, l);
  remark_width(x, i, "vector reductions", at, l, ways.front().run);
  take_way(x, ways, [&](const Way& way) {
    const Access a = access_by(x, way, at, view, indices);
    const Values mine = way.steps.empty() ? regs : exchange_lanes(x, regs, at.element, way.steps);
    add_access(x, way.layout, a, mine);
  });
}

}  // namespace

Values load_tile(Lowering& x, InstId i) {
  const ValueId r = x.f.result(i), view = x.f.operand(i, 0);
  const auto indices = x.f.group(i, 1);
  // A tile that meets a product's (a residual) is loaded in full lines and rearranged, where the memory for that is there: the stages of rings.
  const Layout better = memory_layout(x, r, view);
  const uint32_t bytes = static_cast<uint32_t>(info(x.element(r)).storage) << element_bits(x.shape(r));
  const bool rearrange = bytes <= x.free_scratch() && worth_rearranging(x, r, view, better);
  const Layout& l = rearrange ? better : x.layout(r);
  const ViewStart at = view_start(x, i, view, indices);
  const Values otherwise = padding(x, view, l);
  x.order_access(i, true, false);
  const auto ways = find_ways(x, at, view, l);
  std::vector<Lowering::Var> vars;
  for (unsigned k = 0; k < l.registers(); ++k) vars.push_back(x.var(memory_type(x.b.getContext(), x.element(r))));
  take_way(x, ways, [&](const Way& way) {
    Values regs = load_access(x, way.layout, access_by(x, way, at, view, indices), otherwise, 0);
    if (!way.steps.empty()) regs = exchange_lanes(x, regs, at.element, way.steps);
    store_carried(x, r, vars, regs);
  });
  remark_width(x, i, "global loads", at, l, ways.front().run);
  const Values loaded = load_carried(x, r, vars);
  return rearrange ? x.convert(loaded, x.element(r), better, x.layout(r), element_bits(x.shape(r))) : loaded;
}

bool lower_view(Lowering& x, InstId i) {
  const Function& f = x.f;
  switch (f.insts[i].op) {
    case Opcode::MakeTensorView: return make_tensor_view(x, i);
    case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::MakeGatherScatterView:
      x.view(f.result(i)) = x.view(f.operands(i)[0]);
      return true;
    case Opcode::GetTensorShape: return tensor_shape(x, i);
    case Opcode::GetIndexSpaceShape: return index_space(x, i);
    case Opcode::LoadViewTko: {
      const ValueId r = f.result(i), view = f.operand(i, 0);
      const Layout& l = x.layout(r);
      if (x.ahead.contains(i)) {
        Values tile;
        if (!load_next(x, i, tile)) return false;
        x.set(r, std::move(tile));
        return true;
      }
      const bool in_bytes = info(x.m.types.element_of(f.type(view))).memory_bits >= 8;
      if (in_bytes && memory_order_of(f.attr(i, static_cast<size_t>(attr_index(f.def(i), "memory_ordering_semantics")))) == MemOrder::Weak) {
        x.set(r, load_tile(x, i));
        return true;
      }
      const ViewStart at = view_start(x, i, view, f.group(i, 1));
      const Access a = access_at(x, at, view, f.group(i, 1), l, true);
      remark_width(x, i, "global loads", at, l, 0, kOneByOne);
      before_access(x, i, a, true, false);
      x.set(r, load_access(x, l, a, padding(x, view, l), element_bits(x.shape(r))));
      after_access(x, a);
      return true;
    }
    case Opcode::StoreViewTko: {
      const ValueId tile = f.operand(i, 0), view = f.operand(i, 1);
      if (const auto bulk = x.plan.stores.find(i); bulk != x.plan.stores.end()) return lower_bulk_store(x, i, bulk->second);
      // A tile whose registers are not neighbours in memory (of a matrix product, say) is rearranged first where shared memory for that is
      // at hand: full lines are worth it.
      const Layout *chosen = &x.layout(tile), better = memory_layout(x, tile, view);
      Values rearranged;
      if (worth_rearranging(x, tile, view, better)) {
        rearranged = x.convert(x.own(tile), x.element(tile), x.layout(tile), better, element_bits(x.shape(tile)));
        chosen = &better;
      }
      const Layout& l = *chosen;
      const Values& regs = chosen == &better ? rearranged : x.own(tile);
      ViewStart at = view_start(x, i, view, f.group(i, 2));
      // Addresses of a large store that do not change in a loop around it would be kept in registers all through the loop.
      at.pinned = l.registers() >= 32;
      if (at.order == MemOrder::Weak && !at.packed) {
        x.order_access(i, false, true);
        store_view(x, i, at, view, f.group(i, 2), l, regs);
        return true;
      }
      const Access a = access_at(x, at, view, f.group(i, 2), l, true);
      if (!a.nibble.empty()) {
        const auto order = memory_order(x.m, f.type(view));
        const bool pairs = !l.reg.empty() && l.reg[0] == static_cast<int>(dim_bits(x.shape(tile))[order[0]]);
        if (!pairs && l.registers() > 1) return x.unsupported(i, "stores of four-bit elements whose neighbours lie in different threads");
      }
      remark_width(x, i, "global stores", at, l, 0, kOneByOne);
      before_access(x, i, a, false, true);
      store_access(x, l, a, regs);
      after_access(x, a);
      return true;
    }
    default: {
      const ValueId view = f.operand(i, 0), value = f.operand(i, 2);
      if (adds_runs(x.m, f, x.d.target, i)) {
        add_view(x, i, view, value);
        return true;
      }
      const Layout& l = x.layout(value);
      const ViewStart at = view_start(x, i, view, f.group(i, 1));
      const Access a = access_at(x, at, view, f.group(i, 1), l, true);
      remark_width(x, i, "atomic operations", at, l, 0, "only sums of f32, f16 and bf16 are made in runs, from sm_90 on");
      const uint32_t mode = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "mode")));
      before_access(x, i, a, true, true);
      (void)atomic_access(x, l, a, static_cast<RmwOp>(mode), x.own(value), false, element_bits(x.shape(value)));
      after_access(x, a);
      return true;
    }
  }
}

}  // namespace tile
