// Elementwise operations: a kernel chosen when planning, one call over the whole tile.
#include "vm/interp/elementwise.h"

#include "vm/interp/eval.h"
#include "vm/interp/numerics_h200.h"

namespace tile {
namespace {

/// Bytes of an element of each operand and of the result.
struct ElementSizes : StepData {
  size_t in[3] = {0, 0, 0}, out = 0;
};

Flow eval_elementwise(Exec& x, const Step& s) {
  const auto& d = static_cast<const ElementSizes&>(*s.data);
  x.split(s.n, Exec::kSplit, [&](size_t begin, size_t end, std::byte*) {
    const void* in[3];
    for (int k = 0; k < 3 && s.in[k] != kNoSlot; ++k) in[k] = x.at<std::byte>(s.in[k]) + begin * d.in[k];
    s.kernel(x.at<std::byte>(s.out[0]) + begin * d.out, in, end - begin);
  });
  return Flow::Next;
}

struct OffsetData : StepData {
  OffsetFn fn = nullptr;
  uint64_t bytes = 0;
  size_t index = 0;  // bytes of an index
};

Flow eval_offset(Exec& x, const Step& s) {
  const auto& d = static_cast<const OffsetData&>(*s.data);
  x.split(s.n, Exec::kSplit, [&](size_t begin, size_t end, std::byte*) {
    d.fn(x.at<uint64_t>(s.out[0]) + begin, x.at<uint64_t>(s.in[0]) + begin, x.at<std::byte>(s.in[1]) + begin * d.index, end - begin, d.bytes);
  });
  return Flow::Next;
}

}  // namespace

Modifiers modifiers_of(const Function& f, InstId i) {
  Modifiers m;
  const OpDef& d = f.def(i);
  for (size_t a = 0; a < d.attrs.size(); ++a) {
    const uint32_t w = f.attr(i, a);
    switch (d.attrs[a].kind) {
      case AttrKind::Unit:
        if (d.attrs[a].name == "flush_to_zero") m.flush_to_zero = w != 0;
        if (d.attrs[a].name == "propagate_nan") m.propagate_nan = w != 0;
        if (d.attrs[a].name == "saturating") m.saturating = w != 0;
        break;
      case AttrKind::Enum:
        switch (d.attrs[a].enum_kind) {
          case EnumKind::Rounding: m.rounding = static_cast<Rounding>(w); break;
          case EnumKind::Signedness: m.signedness = static_cast<Signedness>(w); break;
          case EnumKind::Predicate: m.predicate = static_cast<Predicate>(w); break;
          case EnumKind::Ordering: m.ordering = static_cast<Ordering>(w); break;
          default: break;  // overflow flags promise something and change no value
        }
        break;
      default: break;
    }
  }
  return m;
}

namespace {

/// Whether all elements of a value are one constant of the kernel.
bool is_one_constant(const PlanBuilder& b, ValueId v) {
  for (InstId i = 0; i < b.f.insts.size(); ++i) {
    if (b.f.insts[i].result_count == 0 || b.f.result(i) != v) continue;
    const Opcode op = b.f.insts[i].op;
    if (op == Opcode::Broadcast || op == Opcode::Reshape) return is_one_constant(b, b.f.operands(i)[0]);
    return op == Opcode::Constant && b.module.attrs.get(b.f.attr(i, 0)).bytes.size() == b.storage(v);
  }
  return false;
}

ElementwiseFn kernel_of(const PlanBuilder& b, InstId i, ElementType in, ElementType out) {
  const Modifiers m = modifiers_of(b.f, i);
  if (b.numerics == Numerics::H200 && b.f.insts[i].op == Opcode::DivF && is_one_constant(b, b.f.operands(i)[1]))
    if (const ElementwiseFn known = find_quotient_by_constant(out, m)) return known;
  return find_elementwise(b.f.insts[i].op, in, out, m, b.numerics);
}

}  // namespace

bool compile_elementwise(PlanBuilder& b, InstId i) {
  const auto operands = b.f.operands(i);
  const ValueId result = b.f.result(i);
  const ElementType in = b.element(operands[operands.size() - 1]), out = b.element(result);
  const ElementwiseFn kernel = kernel_of(b, i, in, out);
  if (!kernel) {
    b.why = "element types " + std::string(info(in).name) + " -> " + std::string(info(out).name);
    return false;
  }
  Slot in_slots[3] = {kNoSlot, kNoSlot, kNoSlot};
  ElementSizes* d = b.data<ElementSizes>();
  d->out = b.storage(result);
  for (size_t k = 0; k < operands.size(); ++k) {
    in_slots[k] = b.slot(operands[k]);
    d->in[k] = b.storage(operands[k]);
  }
  const Slot to = b.define(result, operands);
  Step& s = b.step(i, eval_elementwise);
  std::copy(in_slots, in_slots + 3, s.in);
  s.out[0] = to;
  s.kernel = kernel;
  s.data = d;
  s.n = b.count(result);
  return true;
}

bool compile_offset(PlanBuilder& b, InstId i) {
  const auto operands = b.f.operands(i);
  const ValueId result = b.f.result(i);
  const TypeId pointee = b.module.types.pointee_of(b.f.type(operands[0]));
  const unsigned bits = info(b.module.types.element_of(pointee)).memory_bits;
  OffsetData* d = b.data<OffsetData>();
  d->fn = find_offset(b.element(operands[1]));
  d->bytes = bits / 8;
  d->index = b.storage(operands[1]);
  if (bits % 8 != 0 || !d->fn) {
    b.why = "pointers to elements of " + std::to_string(bits) + " bits cannot be moved by elements";
    return false;
  }
  const Slot in[2] = {b.slot(operands[0]), b.slot(operands[1])};
  const Slot to = b.define(result, operands);
  Step& s = b.step(i, eval_offset);
  s.in[0] = in[0];
  s.in[1] = in[1];
  s.out[0] = to;
  s.data = d;
  s.n = b.count(result);
  return true;
}

}  // namespace tile
