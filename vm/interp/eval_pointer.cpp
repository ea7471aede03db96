// Loads and stores through tiles of pointers, and memory of a block.
#include <algorithm>

#include "vm/interp/eval.h"
#include "vm/interp/fused.h"
#include "vm/interp/memory_runs.h"

namespace tile {
namespace {

struct PointerData : AccessData {
  ElementType element = ElementType::F32;
  size_t size = 4;

  bool in_place(Exec& x, const Step& s, MemoryAccess::Kind kind, MemoryRun& run) const override {
    if (element == ElementType::I1 && kind == MemoryAccess::Kind::Read) return false;
    const uint64_t* p = x.at<uint64_t>(s.in[0]);
    uint64_t off = 0;  // bits that are set where an element is not next to the one before
    for (size_t i = 0; i < s.n; ++i) off |= p[i] ^ (p[0] + i * size);
    if (off != 0) return false;
    if (s.in[1] != kNoSlot && std::memchr(x.at(s.in[1]), 0, s.n)) return false;
    run.host = x.memory.resolve(p[0], s.n * size);
    run.length = s.n;
    run.span = s.n * size;
    return run.host && reinterpret_cast<uintptr_t>(run.host) % size == 0;
  }
};

/// Calls f(first element, count, host address) for runs of neighbouring active elements; false after a trap.
template <class F>
bool runs(Exec& x, const Step& s, Slot pointers, Slot mask_slot, size_t size, MemoryAccess::Kind kind, F f) {
  const uint64_t* p = x.at<uint64_t>(pointers);
  const uint8_t* mask = mask_slot == kNoSlot ? nullptr : x.at<uint8_t>(mask_slot);
  const auto end_of_run = [&](size_t i) {
    size_t j = i + 1;
    while (j < s.n && p[j] == p[j - 1] + size && (!mask || mask[j])) ++j;
    return j;
  };
  if (x.runs_wanted) {
    RunCollector all(x, kind, size);
    for (size_t i = 0, j; i < s.n; i = j) {
      j = i + 1;
      if (mask && !mask[i]) continue;
      j = end_of_run(i);
      all.add(p[i], i, j - i);
    }
    if (all.tell(s)) {  // then every element lies in memory
      for (const MemoryRuns::Run& r : x.runs) f(r.first, r.n, x.memory.resolve(r.address, r.n * size));
      return true;
    }
  }
  for (size_t i = 0; i < s.n;) {
    if (mask && !mask[i]) {
      ++i;
      continue;
    }
    const size_t j = end_of_run(i);
    std::byte* host = x.memory.resolve(p[i], (j - i) * size);
    if (!host) {
      // Some element of the run lies outside: name the first.
      while (x.memory.resolve(p[i], size)) ++i;
      (void)x.trap(Code::T0101, s,
                   std::string(x.plan.function().def(s.inst).name) + ": element " + std::to_string(i) + " accesses " + std::to_string(size) + " bytes at " +
                       x.memory.describe(p[i]),
                   "mask out the elements outside the array");
      return false;
    }
    if (x.observed) {
      const int64_t n = static_cast<int64_t>(j - i), one = 1;
      x.notify(s, {kind, p[i], static_cast<uint32_t>(size), 1, &n, &one, i, &one});
    }
    f(i, j - i, host);
    i = j;
  }
  return true;
}

Flow eval_load_ptr(Exec& x, const Step& s) {
  const auto& d = static_cast<const PointerData&>(*s.data);
  std::byte* out = x.at<std::byte>(s.out[0]);
  if (s.in[1] != kNoSlot) {
    // Masked elements take the padding value; without one they are unspecified.
    if (s.in[2] != kNoSlot) {
      std::memcpy(out, x.at<std::byte>(s.in[2]), s.n * d.size);
    } else {
      x.unspecified(s, d.element, out, s.n);
    }
  }
  const bool ok = runs(x, s, s.in[0], s.in[1], d.size, MemoryAccess::Kind::Read, [&](size_t first, size_t n, const std::byte* host) {
    std::memcpy(out + first * d.size, host, n * d.size);
    if (d.element == ElementType::I1)
      for (size_t k = first; k < first + n; ++k) out[k] = out[k] != std::byte{0} ? std::byte{1} : std::byte{0};
  });
  return ok ? Flow::Next : Flow::Trap;
}

Flow eval_store_ptr(Exec& x, const Step& s) {
  const auto& d = static_cast<const PointerData&>(*s.data);
  const std::byte* in = x.at<std::byte>(s.in[3]);
  const bool ok = runs(x, s, s.in[0], s.in[1], d.size, MemoryAccess::Kind::Write,
                       [&](size_t first, size_t n, std::byte* host) { std::memcpy(host, in + first * d.size, n * d.size); });
  return ok ? Flow::Next : Flow::Trap;
}

PointerData* pointer_data(PlanBuilder& b, ValueId pointers) {
  const TypeId pointee = b.module.types.pointee_of(b.f.type(pointers));
  PointerData* d = b.data<PointerData>();
  d->element = b.module.types.element_of(pointee);
  d->size = info(d->element).storage;
  if (info(d->element).memory_bits % 8 != 0) {
    b.why = "pointers to elements of " + std::to_string(info(d->element).memory_bits) + " bits";
    return nullptr;
  }
  return d;
}

struct AllocaData : StepData {
  ElementType element = ElementType::F32;
  size_t index = 0, bytes = 0;
  std::string too_much;  // what is wanted, where that is beyond the limits
};

Flow eval_alloca_too_much(Exec& x, const Step& s) {
  return x.trap(Code::T0104, s, "alloca: room for " + static_cast<const AllocaData&>(*s.data).too_much + "; the limits are 2^30 bytes and 256");
}

Flow eval_alloca(Exec& x, const Step& s) {
  const auto& d = static_cast<const AllocaData&>(*s.data);
  const uint64_t address = x.allocas[d.index];
  // Elements below a byte are filled byte by byte.
  const bool packed = info(d.element).memory_bits < 8;
  x.unspecified(s, packed ? ElementType::I8 : d.element, x.memory.resolve(address, d.bytes), packed ? d.bytes : d.bytes / info(d.element).storage);
  *x.at<uint64_t>(s.out[0]) = address;
  return Flow::Next;
}

}  // namespace

bool compile_load_ptr(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  PointerData* d = pointer_data(b, f.operand(i, 0));
  if (!d) return false;
  const Slot in[3] = {b.slot(f.operand(i, 0)), b.slot(f.operand(i, 1)), b.slot(f.operand(i, 2))};
  const Slot out = b.define(f.result(i));
  Step& s = b.step(i, eval_load_ptr);
  std::copy(in, in + 3, s.in);
  s.out[0] = out;
  s.data = d;
  s.n = b.count(f.result(i));
  return true;
}

bool compile_store_ptr(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  PointerData* d = pointer_data(b, f.operand(i, 0));
  if (!d) return false;
  Step& s = b.step(i, eval_store_ptr);
  s.in[0] = b.slot(f.operand(i, 0));
  s.in[1] = b.slot(f.operand(i, 2));
  s.in[3] = b.slot(f.operand(i, 1));
  s.data = d;
  s.n = b.count(f.operand(i, 1));
  return true;
}

bool compile_alloca(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const auto attr = [&](const char* name) { return b.module.int_attr(f, i, static_cast<size_t>(attr_index(f.def(i), name))); };
  const ElementType e = b.module.types.element_of(b.module.types.pointee_of(f.type(f.result(i))));
  const uint64_t n = static_cast<uint64_t>(attr("num_elem")), align = static_cast<uint64_t>(attr("alignment"));
  constexpr uint64_t kLimit = uint64_t{1} << 30;  // bytes of one alloca; a block's local memory on a GPU is far smaller
  AllocaData* d = b.data<AllocaData>();
  if (align > 256 || n > kLimit || n * info(e).memory_bits / 8 > kLimit) {
    // A trap only where a block comes here.
    d->too_much = std::to_string(n) + " elements of " + std::string(info(e).name) + " aligned to " + std::to_string(align);
    const Slot out = b.define(f.result(i));
    Step& s = b.step(i, eval_alloca_too_much);
    s.out[0] = out;
    s.data = d;
    return true;
  }
  d->element = e;
  d->bytes = (n * info(e).memory_bits + 7) / 8;
  d->index = b.add_alloca(d->bytes);
  const Slot out = b.define(f.result(i));
  Step& s = b.step(i, eval_alloca);
  s.out[0] = out;
  s.data = d;
  return true;
}

}  // namespace tile
