// Accesses through tiles of pointers, atomics, block-local memory, addresses of globals.
#include "backend/ptx/lower_memory.h"

namespace tile {
namespace {

uint32_t attr(Lowering& x, InstId i, const char* name) { return x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), name))); }

}  // namespace

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
  if (op == Opcode::Alloca) return x.unsupported(i, "block-local memory has no lowering");
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
