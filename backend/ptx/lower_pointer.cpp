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
