// Accesses through tiles of pointers, atomics, block-local memory, addresses of globals.
#include <algorithm>
#include <optional>

#include "backend/ptx/lower_memory.h"

namespace tile {
namespace {

uint32_t attr(Lowering& x, InstId i, const char* name) { return x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), name))); }

constexpr uint64_t kMostRoom = uint64_t{1} << 30, kMostAlignment = 256;

/// Bytes of an alloca and their alignment; the interpreter has the same limits. Nothing beyond them.
struct Room {
  uint64_t bytes, alignment;
};
std::optional<Room> room_of(const Module& m, const Function& f, InstId i) {
  const auto number = [&](const char* name) { return static_cast<uint64_t>(m.int_attr(f, i, static_cast<size_t>(attr_index(f.def(i), name)))); };
  const unsigned bits = info(m.types.element_of(m.types.pointee_of(f.type(f.result(i))))).memory_bits;
  const uint64_t n = number("num_elem"), alignment = number("alignment");
  if (alignment > kMostAlignment || n > kMostRoom || n * bits / 8 > kMostRoom) return std::nullopt;
  return Room{(n * bits + 7) / 8, std::max<uint64_t>(alignment, 1)};
}

/// Addresses and masks of a tile in any layout, from what they are sums of; runs along `inner`.
Access sums_access(Lowering& x, const PointerLoad& p, ElementType e, std::span<const int64_t> shape, size_t inner, const Layout& l) {
  llvm::IRBuilder<>& b = x.b;
  const unsigned bytes = info(e).memory_bits / 8;
  const auto number = [&x, &p](int n, unsigned bits) { return scalar_value(x, p.scalars, n, bits); };
  const auto moved = [&x, &b, bytes](Value* by) { return b.CreateMul(b.CreateSExt(by, b.getInt64Ty()), x.i64(bytes)); };
  Access a;
  a.element = e;
  // In a loop over blocks nothing of this shall be held in registers while products run.
  const auto coordinates = [&x, &l, shape] {
    Values thread;
    for (size_t k = 0; k < shape.size(); ++k) thread.push_back(x.d.opaque(x.thread_coordinate(l, shape, k)));
    return thread;
  };
  const auto one = [&x, &b, &p, &l, shape, number, moved](const Values& thread, unsigned r) {
    const auto coordinate = [&](size_t k, llvm::Type* type) {
      return b.CreateZExtOrTrunc(b.CreateOr(thread[k], x.i32(Lowering::register_coordinate(l, shape, k, r))), type);
    };
    Value* address = x.scalar(p.pointers.base);
    for (const AffineTile& t : p.pointers.moves) {
      Value* sum = number(t.start, t.bits);  // and what each coordinate adds
      for (size_t k = 0; k < shape.size(); ++k)
        if (t.step[k] >= 0) sum = b.CreateAdd(sum, b.CreateMul(coordinate(k, sum->getType()), number(t.step[k], t.bits)));
      address = b.CreateAdd(address, moved(sum));
    }
    Value* mask = b.getTrue();
    for (const AffineLimit& limit : p.limits) {
      Value* start = number(limit.start, limit.bits);
      mask = b.CreateAnd(mask, b.CreateICmpSLT(b.CreateAdd(start, coordinate(limit.dim, start->getType())), number(limit.limit, limit.bits)));
    }
    return std::pair(address, mask);
  };
  const Values thread = coordinates();
  for (unsigned r = 0; r < l.registers(); ++r) {
    const auto [address, mask] = one(thread, r);
    a.address.push_back(address);
    a.mask.push_back(mask);
  }
  const auto first = dim_bits(shape);
  while (a.run < l.reg.size() && a.run < log2_of(shape[inner]) && l.reg[a.run] == static_cast<int>(first[inner] + a.run) && bytes << (a.run + 1) <= 16) ++a.run;
  if (a.run == 0) return a;
  // Runs begin at multiples of their size, and no mask ends within one.
  Value* rest = x.scalar(p.pointers.base);
  for (const AffineTile& t : p.pointers.moves) {
    rest = b.CreateOr(rest, moved(number(t.start, t.bits)));
    for (size_t k = 0; k < shape.size(); ++k)
      if (k != inner && t.step[k] >= 0) rest = b.CreateOr(rest, moved(number(t.step[k], t.bits)));
  }
  for (const AffineLimit& limit : p.limits) {
    if (limit.dim != inner) continue;
    Value* n = b.CreateOr(number(limit.limit, limit.bits), number(limit.start, limit.bits));
    rest = b.CreateOr(rest, b.CreateMul(b.CreateSExt(n, b.getInt64Ty()), x.i64(bytes)));
  }
  a.single = [coordinates, one, kept = Values(), run = a.run](unsigned r) mutable {
    if (r % (1u << run) == 0) kept = coordinates();
    return one(kept, r);
  };
  a.run_ok = b.CreateICmpEQ(b.CreateAnd(rest, x.i64((int64_t{bytes} << a.run) - 1)), x.i64(0));
  return a;
}

/// A large tile, of a product, whose pointers are sums over rows and columns: stored in full lines, as it would be through a view. False: not such a
/// store.
bool store_rows(Lowering& x, InstId i) {
  const ValueId pointers = x.f.operand(i, 0), value = x.f.operand(i, 1);
  const ElementType e = x.element(value);
  const auto shape = x.shape(value);
  const Layout& l = x.layout(value);
  if (info(e).memory_bits % 8 != 0 || l.registers() < 16 || attr(x, i, "memory_ordering_semantics") != 0) return false;
  std::vector<InstId> definitions;
  for (ValueId v = 0; v < x.f.value_types.size(); ++v) definitions.push_back(x.definition(v));
  const auto found = AffineFinder(x.m, x.f, definitions, kNone).load(i);
  if (!found) return false;
  // One of the moves counts elements along the dimension.
  const auto contiguous = [&](size_t dim) {
    int counting = 0;
    for (const AffineTile& move : found->pointers.moves)
      if (move.step[dim] >= 0) counting = found->scalars.known(move.step[dim]) == 1 ? counting + 1 : 2;
    return counting == 1;
  };
  const auto first = dim_bits(shape);
  size_t inner = shape.size();
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k] > 1 && contiguous(k)) inner = k;
  if (inner == shape.size()) return false;
  // Where neighbouring lanes hold neighbours already, nothing is gained.
  const unsigned bytes = info(e).memory_bits / 8;
  unsigned run = 0, lanes = 0;
  while (run < l.reg.size() && l.reg[run] == static_cast<int>(first[inner] + run)) ++run;
  while (lanes < 5 && l.lane[lanes] == static_cast<int>(first[inner] + run + lanes)) ++lanes;
  if (bytes << run >= 16 || bytes << (run + lanes) >= 64) return false;
  if ((bytes << element_bits(shape)) > std::max(x.free_scratch(), 32u * 1024)) return false;
  std::vector<unsigned> order{static_cast<unsigned>(inner)};
  for (unsigned k = static_cast<unsigned>(shape.size()); k-- > 0;)
    if (k != inner) order.push_back(k);
  const Layout better = blocked_layout(shape, order, log2_of(16 / bytes), x.plan.warp_bits, l.reg);
  const Values regs = x.convert(x.own(value), e, l, better, element_bits(shape));
  Access a = sums_access(x, *found, x.m.types.element_of(x.m.types.pointee_of(x.f.type(pointers))), shape, inner, better);
  if (a.run > 0)
    x.remark(i, "global stores of " + std::to_string(bytes << a.run) + " bytes in full lines");
  else
    x.remark(i, "global stores of one element in full lines");
  before_access(x, i, a, false, true);
  store_access(x, better, a, regs);
  return true;
}

bool lower_alloca(Lowering& x, InstId i) {
  const auto at = x.local.offset.find(i);
  if (at == x.local.offset.end())
    return x.unsupported(i, "room for more than " + std::to_string(kMostRoom) + " bytes, or aligned to more than " + std::to_string(kMostAlignment));
  // The memory of an alloca that runs again is new memory to the program, so no token orders its uses after those of the time before.
  x.barrier();
  llvm::IRBuilder<>& b = x.b;
  const auto wide = [&](Value* v) { return b.CreateZExt(v, b.getInt64Ty()); };
  Value* block = b.CreateAdd(wide(x.block_id(1)), b.CreateMul(wide(x.block_id(2)), wide(x.grid_size(1))));
  block = b.CreateAdd(wide(x.block_id(0)), b.CreateMul(block, wide(x.grid_size(0))));
  Value* part = b.CreateAdd(x.local_address(), b.CreateMul(block, x.i64(static_cast<int64_t>(x.local.bytes))));
  x.set(x.f.result(i), {b.CreateAdd(part, x.i64(static_cast<int64_t>(at->second)))});
  return true;
}

}  // namespace

LocalMemory local_memory(const Module& module, const Function& entry) {
  LocalMemory local;
  const auto up = [](uint64_t n, uint64_t to) { return (n + to - 1) / to * to; };
  for (InstId i = 0; i < entry.insts.size(); ++i) {
    if (entry.insts[i].op != Opcode::Alloca) continue;
    const auto room = room_of(module, entry, i);
    if (!room) continue;
    local.offset[i] = local.bytes = up(local.bytes, room->alignment);
    local.bytes += std::max<uint64_t>(room->bytes, 1);  // even an empty one has its own address, and the kernel its word
  }
  local.bytes = up(local.bytes, kMostAlignment);
  return local;
}

bool lower_pointer(Lowering& x, InstId i) {
  const Function& f = x.f;
  const Opcode op = f.insts[i].op;
  if (op == Opcode::GetGlobal) {
    const auto name = x.m.str(f.attr(i, 0));
    for (uint32_t g = 0; g < x.m.globals.size(); ++g)
      if (x.m.str(x.m.globals[g].name) == name) {
        x.set(f.result(i), {x.global_address(g)});
        return true;
      }
    return x.unsupported(i, "there is no such global");
  }
  if (op == Opcode::Alloca) return lower_alloca(x, i);
  if (op == Opcode::StorePtrTko && store_rows(x, i)) return true;
  const ValueId pointers = f.operands(i)[0];
  const Layout& l = x.layout(pointers);
  const unsigned bits = element_bits(x.shape(pointers));
  Access a;
  a.element = x.m.types.element_of(x.m.types.pointee_of(f.type(pointers)));
  if (info(a.element).memory_bits % 8 != 0) return x.unsupported(i, "pointers to elements of " + std::to_string(info(a.element).memory_bits) + " bits");
  a.address = x.own(pointers);
  a.order = memory_order_of(attr(x, i, "memory_ordering_semantics"));
  const uint32_t scope = attr(x, i, "memory_scope");
  if (scope != kNone) a.scope = memory_scope_of(scope);
  const auto take_mask = [&](size_t group) {
    if (const ValueId v = f.operand(i, group); v != kNone) a.mask = x.get(v, l);
  };
  const char* what = op == Opcode::LoadPtrTko ? "global loads" : op == Opcode::StorePtrTko ? "global stores" : "atomic operations";
  x.remark(i, std::string(what) + " of one element", l.registers() == 1 ? "" : "every element of a tile of pointers has an address of its own");
  switch (op) {
    case Opcode::LoadPtrTko: {
      take_mask(1);
      Values otherwise;
      if (const ValueId v = f.operand(i, 2); v != kNone) otherwise = x.get(v, l);
      before_access(x, i, a, true, false);
      x.set(f.result(i), load_access(x, l, a, otherwise, bits));
      break;
    }
    case Opcode::StorePtrTko: {
      take_mask(2);
      const Values regs = x.get(f.operand(i, 1), l);
      before_access(x, i, a, false, true);
      store_access(x, l, a, regs);
      break;
    }
    case Opcode::AtomicRMWTko: {
      take_mask(2);
      const Values regs = x.get(f.operand(i, 1), l);
      before_access(x, i, a, true, true);
      x.set(f.result(i), atomic_access(x, l, a, static_cast<RmwOp>(attr(x, i, "mode")), regs, true, bits));
      break;
    }
    default: {
      take_mask(3);
      const Values expected = x.get(f.operand(i, 1), l), desired = x.get(f.operand(i, 2), l);
      before_access(x, i, a, true, true);
      x.set(f.result(i), cas_access(x, l, a, expected, desired, bits));
      break;
    }
  }
  after_access(x, a);
  return true;
}

}  // namespace tile
