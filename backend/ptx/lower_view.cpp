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

/// Addresses, masks and vector runs of a tile in layout `l`.
Access view_access(Lowering& x, InstId i, ValueId view, std::span<const ValueId> indices, const Layout& l) {
  llvm::IRBuilder<>& b = x.b;
  // Addresses of a large store that do not change in a loop around it would be kept in registers all through the loop.
  const bool pinned = x.f.insts[i].op == Opcode::StoreViewTko && l.registers() >= 32;
  const ViewShape s(x.m, x.f.type(view));
  const Lowering::View& v = x.view(view);
  Access a;
  a.element = x.m.types.element_of(x.f.type(view));
  const unsigned memory_bits = info(a.element).memory_bits;
  const bool packed = memory_bits < 8;
  const int64_t bytes = packed ? 1 : memory_bits / 8;
  const auto& shape = s.type.shape;
  llvm::Type* i64 = b.getInt64Ty();

  // Uniform part: start of the tile and, per dimension, how many of its elements lie inside.
  Value* base = x.i64(0);
  Values limit(s.rank), thread(s.rank), stride(s.rank);
  for (size_t k = 0; k < s.rank; ++k) {
    stride[k] = b.CreateMul(v.strides[s.dim(k)], x.i64(bytes));
    thread[k] = x.thread_coordinate(l, shape, k);
    if (pinned) thread[k] = x.d.opaque(thread[k]);
    if (s.gathers() && k == s.type.sparse_dim) continue;
    Value* extent = v.shape[s.dim(k)];
    Value* index = b.CreateZExtOrTrunc(x.scalar(indices[k]), i64);
    // Beyond 2^40 tiles every array has ended; the product then stays within 64 bits.
    index = b.CreateSelect(b.CreateICmpULT(index, x.i64(int64_t{1} << 40)), index, x.i64(int64_t{1} << 40));
    Value* start = b.CreateMul(index, x.i64(s.step(k)));
    Value* left = b.CreateSelect(b.CreateICmpULT(start, extent), b.CreateSub(extent, start), x.i64(0));
    left = b.CreateSelect(b.CreateICmpULT(left, x.i64(shape[k])), left, x.i64(shape[k]));
    limit[k] = b.CreateTrunc(left, b.getInt32Ty());
    base = b.CreateAdd(base, b.CreateMul(start, stride[k]));
  }
  for (size_t k = 0; k < s.rank; ++k) {
    if (s.gathers() && k == s.type.sparse_dim) continue;
    base = b.CreateAdd(base, b.CreateMul(b.CreateZExt(thread[k], i64), stride[k]));
  }
  if (!packed) base = b.CreateAdd(base, v.base);
  Values sparse;
  if (s.gathers()) sparse = x.spread(indices[s.type.sparse_dim], s.type.sparse_dim, shape, l);

  // One mask per coordinate and dimension, one product per coordinate: registers share them.
  std::vector<std::map<uint32_t, Value*>> inside(s.rank), offset(s.rank);
  const unsigned n = l.registers();
  for (unsigned r = 0; r < n; ++r) {
    Value* at = base;
    Value* mask = nullptr;
    for (size_t k = 0; k < s.rank; ++k) {
      Value *in = nullptr, *off = nullptr;
      if (s.gathers() && k == s.type.sparse_dim) {
        Value* c = b.CreateZExtOrTrunc(sparse[r], i64);
        in = b.CreateICmpULT(c, v.shape[s.dim(k)]);
        off = b.CreateMul(c, stride[k]);
      } else {
        const uint32_t c = Lowering::register_coordinate(l, shape, k, r);
        auto& known_in = inside[k][c];
        if (!known_in) known_in = b.CreateICmpULT(b.CreateOr(thread[k], x.i32(c)), limit[k]);
        in = known_in;
        auto& known_off = offset[k][c];
        if (!known_off) known_off = b.CreateMul(stride[k], x.i64(c));
        off = known_off;
      }
      mask = mask ? b.CreateAnd(mask, in) : in;
      at = b.CreateAdd(at, off);
    }
    if (packed) {
      a.nibble.push_back(b.CreateTrunc(at, b.getInt1Ty()));
      at = b.CreateAdd(v.base, b.CreateLShr(at, x.i64(1)));
    }
    a.address.push_back(at);
    a.mask.push_back(mask ? mask : static_cast<Value*>(b.getTrue()));
  }

  // Runs: register bits that walk along the dimension whose stride is one, as far as 16 bytes.
  const auto first = dim_bits(shape);
  for (size_t k = 0; k < s.rank && !packed; ++k) {
    if (s.tensor.strides[s.dim(k)] != 1 || shape[k] == 1 || (s.gathers() && k == s.type.sparse_dim)) continue;
    while (a.run < l.reg.size() && a.run < log2_of(shape[k]) && l.reg[a.run] == static_cast<int>(first[k] + a.run) && bytes << (a.run + 1) <= 16) ++a.run;
    if (a.run == 0) break;
    const int64_t size = bytes << a.run;
    Value* all = v.base;
    for (size_t j = 0; j < s.rank; ++j)
      if (j != k) all = b.CreateOr(all, stride[j]);
    if (s.step(k) % (int64_t{1} << a.run) != 0) all = b.CreateOr(all, x.i64(1));
    a.run_ok = b.CreateAnd(b.CreateICmpEQ(b.CreateAnd(all, x.i64(size - 1)), x.i64(0)),
                           b.CreateICmpEQ(b.CreateAnd(limit[k], x.i32((1 << a.run) - 1)), x.i32(0)));
    break;
  }
  const uint32_t order = x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), "memory_ordering_semantics")));
  const uint32_t scope = x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), "memory_scope")));
  a.order = memory_order_of(order);
  if (scope != kNone) a.scope = memory_scope_of(scope);
  return a;
}

Layout memory_layout(Lowering& x, ValueId tile, ValueId view) {
  const unsigned bytes = info(x.element(tile)).storage;
  return blocked_layout(x.shape(tile), memory_order(x.m, x.f.type(view)), log2_of(16 / bytes), x.plan.warp_bits);
}

/// Row length for the conversion to `better` before a store; 0 where it is not worth it or its memory is not free.
uint32_t worth_rearranging(Lowering& x, ValueId tile, ValueId view, const Layout& better) {
  const Layout& l = x.layout(tile);
  if (l.registers() < 16 || convert_kind(l, better) != ConvertKind::Shared || info(x.element(tile)).memory_bits < 8) return 0;
  const auto order = memory_order(x.m, x.f.type(view));
  const ViewShape s(x.m, x.f.type(view));
  if (order.empty() || s.tensor.strides[s.dim(order[0])] != 1) return 0;
  const int low = static_cast<int>(dim_bits(x.shape(tile))[order[0]]);
  unsigned run = 0;
  while (run < l.reg.size() && l.reg[run] == low + static_cast<int>(run)) ++run;
  const unsigned bytes = info(x.element(tile)).storage;
  if (bytes << run >= 16) return 0;
  const uint32_t row = std::max<uint32_t>(128, static_cast<uint32_t>(order[0] + 1 == x.shape(tile).size() ? x.shape(tile)[order[0]] * bytes : 128));
  return convert_bytes(element_bits(x.shape(tile)), bytes, row) <= std::max(x.free_scratch(), 32u * 1024) ? row : 0;
}

}  // namespace

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
      const Access a = view_access(x, i, view, f.group(i, 1), l);
      const Type& t = x.m.types.get(f.type(view));
      const Values otherwise(l.registers(), constant_bits(x.d, a.element, padding_bits(a.element, t.padding)));
      before_access(x, i, a, true, false);
      x.set(r, load_access(x, l, a, otherwise, element_bits(x.shape(r))));
      after_access(x, a);
      x.remark(i, a.run_ok ? "global loads of " + std::to_string((info(a.element).memory_bits / 8) << a.run) + " bytes" : "global loads of one element",
               a.run_ok ? "" : "no dimension of the array has stride one along the registers");
      return true;
    }
    case Opcode::StoreViewTko: {
      const ValueId tile = f.operand(i, 0), view = f.operand(i, 1);
      // A tile whose registers are not neighbours in memory (of a matrix product, say) is rearranged first where shared memory for that is
      // at hand: full lines are worth it.
      const Layout *chosen = &x.layout(tile), better = memory_layout(x, tile, view);
      Values rearranged;
      if (const uint32_t row = worth_rearranging(x, tile, view, better)) {
        rearranged = x.convert(x.own(tile), x.element(tile), x.layout(tile), better, element_bits(x.shape(tile)), row);
        chosen = &better;
      }
      const Layout& l = *chosen;
      const Access a = view_access(x, i, view, f.group(i, 2), l);
      if (!a.nibble.empty()) {
        const auto order = memory_order(x.m, f.type(view));
        const bool pairs = !l.reg.empty() && l.reg[0] == static_cast<int>(dim_bits(x.shape(tile))[order[0]]);
        if (!pairs && l.registers() > 1) return x.unsupported(i, "stores of four-bit elements whose neighbours lie in different threads");
      }
      before_access(x, i, a, false, true);
      store_access(x, l, a, chosen == &better ? rearranged : x.own(tile));
      after_access(x, a);
      return true;
    }
    default: {
      const ValueId view = f.operand(i, 0), value = f.operand(i, 2);
      const Layout& l = x.layout(value);
      const Access a = view_access(x, i, view, f.group(i, 1), l);
      const uint32_t mode = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "mode")));
      before_access(x, i, a, true, true);
      (void)atomic_access(x, l, a, static_cast<RmwOp>(mode), x.own(value), false, element_bits(x.shape(value)));
      after_access(x, a);
      return true;
    }
  }
}

}  // namespace tile
