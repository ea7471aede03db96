// Atomics: read-modify-write and compare-and-swap through pointers, reductions into views. Each element is one sequentially
// consistent host atomic, which is stronger than every ordering and scope of the language.
#include <algorithm>
#include <atomic>

#include "vm/interp/eval.h"
#include "vm/interp/memory_runs.h"
#include "vm/interp/numerics_h200.h"
#include "vm/interp/view_access.h"

namespace tile {
namespace {

enum class Mode : uint8_t { And, Or, Xor, Add, AddF, Max, Min, UMax, UMin, Xchg };

/// The words of a multimem reduction, in the order of their encodings; add is that of the element.
constexpr Mode kMultimem[] = {Mode::Add, Mode::Min, Mode::Max, Mode::And, Mode::Or, Mode::Xor, Mode::UMin, Mode::UMax};

struct AtomicData : ViewAccess {
  Mode mode = Mode::Add;
  size_t size = 4;
  ElementwiseFn add = nullptr;  // addf: the same rounding as the operation addf
};

template <class T>
T combine(const AtomicData& d, T old, T arg) {
  using S = std::make_signed_t<T>;
  switch (d.mode) {
    case Mode::And: return old & arg;
    case Mode::Or: return old | arg;
    case Mode::Xor: return old ^ arg;
    case Mode::Add: return static_cast<T>(old + arg);
    case Mode::Max: return static_cast<S>(old) > static_cast<S>(arg) ? old : arg;
    case Mode::Min: return static_cast<S>(old) < static_cast<S>(arg) ? old : arg;
    case Mode::UMax: return std::max(old, arg);
    case Mode::UMin: return std::min(old, arg);
    case Mode::Xchg: return arg;
    case Mode::AddF: {
      T out;
      const void* in[2] = {&old, &arg};
      d.add(&out, in, 1);
      return out;
    }
  }
  return old;
}

template <class T>
T update(const AtomicData& d, std::byte* host, T arg) {
  std::atomic_ref<T> at(*reinterpret_cast<T*>(host));
  T old = at.load();
  while (!at.compare_exchange_weak(old, combine(d, old, arg))) {
  }
  return old;
}

template <class F>
auto by_size(size_t size, F f) {
  switch (size) {
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

/// Host address of one element, aligned for an atomic; nullptr after a trap.
std::byte* element_at(Exec& x, const Step& s, uint64_t address, size_t size, size_t i, bool told) {
  std::byte* host = x.memory.resolve(address, size);
  const std::string op(x.plan.function().def(s.inst).name);
  if (!host) {
    (void)x.trap(Code::T0101, s, op + ": element " + std::to_string(i) + " accesses " + std::to_string(size) + " bytes at " + x.memory.describe(address));
    return nullptr;
  }
  if (reinterpret_cast<uintptr_t>(host) % size != 0) {
    (void)x.trap(Code::T0101, s, op + ": element " + std::to_string(i) + " is not aligned to " + std::to_string(size) + " bytes: " + x.memory.describe(address));
    return nullptr;
  }
  if (x.observed && !told) x.notify(s, {MemoryAccess::Kind::Atomic, address, static_cast<uint32_t>(size), 0, nullptr, nullptr, i, nullptr});
  return host;
}

/// Tells of all elements at once, where that is possible.
bool tell_all(Exec& x, const Step& s, const uint64_t* p, const uint8_t* mask, size_t size) {
  if (!x.runs_wanted) return false;
  RunCollector all(x, MemoryAccess::Kind::Atomic, size);
  for (size_t i = 0; i < s.n; ++i)
    if (!mask || mask[i]) all.join(p[i], i);
  return all.tell(s, true);
}

Flow eval_rmw(Exec& x, const Step& s) {
  const auto& d = static_cast<const AtomicData&>(*s.data);
  const uint64_t* p = x.at<uint64_t>(s.in[0]);
  const std::byte* arg = x.at<std::byte>(s.in[1]);
  const uint8_t* mask = s.in[2] == kNoSlot ? nullptr : x.at<uint8_t>(s.in[2]);
  std::byte* out = x.at<std::byte>(s.out[0]);
  const bool told = tell_all(x, s, p, mask, d.size);
  for (size_t i = 0; i < s.n; ++i) {
    if (mask && !mask[i]) {
      x.unspecified(s, d.element, out + i * d.size, 1, i);
      continue;
    }
    std::byte* host = element_at(x, s, p[i], d.size, i, told);
    if (!host) return Flow::Trap;
    by_size(d.size, [&](auto t) {
      using T = decltype(t);
      write_bits(out, d.size, update<T>(d, host, static_cast<T>(read_bits(arg, d.size, i))), i);
    });
  }
  return Flow::Next;
}

Flow eval_cas(Exec& x, const Step& s) {
  const auto& d = static_cast<const AtomicData&>(*s.data);
  const uint64_t* p = x.at<uint64_t>(s.in[0]);
  const std::byte *cmp = x.at<std::byte>(s.in[1]), *val = x.at<std::byte>(s.in[3]);
  const uint8_t* mask = s.in[2] == kNoSlot ? nullptr : x.at<uint8_t>(s.in[2]);
  std::byte* out = x.at<std::byte>(s.out[0]);
  const bool told = tell_all(x, s, p, mask, d.size);
  for (size_t i = 0; i < s.n; ++i) {
    const uint64_t expected = read_bits(cmp, d.size, i);
    if (mask && !mask[i]) {
      write_bits(out, d.size, expected, i);
      continue;
    }
    std::byte* host = element_at(x, s, p[i], d.size, i, told);
    if (!host) return Flow::Trap;
    by_size(d.size, [&](auto t) {
      using T = decltype(t);
      T old = static_cast<T>(expected);
      std::atomic_ref<T>(*reinterpret_cast<T*>(host)).compare_exchange_strong(old, static_cast<T>(read_bits(val, d.size, i)));
      write_bits(out, d.size, old, i);
    });
  }
  return Flow::Next;
}

Flow eval_red(Exec& x, const Step& s) {
  const auto& d = static_cast<const AtomicData&>(*s.data);
  const std::byte* arg = x.at<std::byte>(s.in[1]);
  bool aligned = true;
  const bool ok = d.each(x, s, MemoryAccess::Kind::Atomic, [&](size_t e, std::byte* host) {
    if (reinterpret_cast<uintptr_t>(host) % d.size != 0) {
      aligned = false;
      return;
    }
    by_size(d.size, [&](auto t) {
      using T = decltype(t);
      (void)update<T>(d, host, static_cast<T>(read_bits(arg, d.size, e)));
    });
  });
  if (ok && !aligned) return x.trap(Code::T0101, s, std::string(x.plan.function().def(s.inst).name) + ": the array is not aligned to its elements");
  return ok ? Flow::Next : Flow::Trap;
}

AtomicData* atomic_data(PlanBuilder& b, InstId i, ValueId arg) {
  AtomicData* d = b.data<AtomicData>();
  const ElementType e = b.element(arg);
  d->element = e;
  d->size = info(e).storage;
  if (const int mode = attr_index(b.f.def(i), "mode"); mode >= 0) d->mode = static_cast<Mode>(b.f.attr(i, static_cast<size_t>(mode)));
  if (const int kind = attr_index(b.f.def(i), "reduction"); kind >= 0) {
    d->mode = kMultimem[b.f.attr(i, static_cast<size_t>(kind))];
    if (d->mode == Mode::Add && info(e).is_float) d->mode = Mode::AddF;
  }
  if (d->mode == Mode::AddF) d->add = find_atomic_add(e, b.numerics);
  if ((d->mode == Mode::AddF && !d->add) || d->size < 2) {
    b.why = "element type " + std::string(info(e).name);
    return nullptr;
  }
  return d;
}

}  // namespace

bool compile_atomic_rmw(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  AtomicData* d = atomic_data(b, i, f.operand(i, 1));
  if (!d) return false;
  const Slot in[3] = {b.slot(f.operand(i, 0)), b.slot(f.operand(i, 1)), b.slot(f.operand(i, 2))};
  const Slot out = b.define(f.result(i));
  Step& s = b.step(i, eval_rmw);
  std::copy(in, in + 3, s.in);
  s.out[0] = out;
  s.data = d;
  s.n = b.count(f.result(i));
  return true;
}

bool compile_atomic_cas(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  AtomicData* d = atomic_data(b, i, f.operand(i, 1));
  if (!d) return false;
  const Slot in[4] = {b.slot(f.operand(i, 0)), b.slot(f.operand(i, 1)), b.slot(f.operand(i, 3)), b.slot(f.operand(i, 2))};
  const Slot out = b.define(f.result(i));
  Step& s = b.step(i, eval_cas);
  std::copy(in, in + 4, s.in);
  s.out[0] = out;
  s.data = d;
  s.n = b.count(f.result(i));
  return true;
}

bool compile_atomic_red(PlanBuilder& b, InstId i) {
  const OpDef& row = b.f.def(i);
  const int value = operand_index(row, "value");  // multimem_reduce_view_tko calls it a tile
  const ValueId view = b.f.operand(i, 0), arg = b.f.operand(i, static_cast<size_t>(value >= 0 ? value : operand_index(row, "tile")));
  AtomicData* d = atomic_data(b, i, arg);
  if (!d || !d->plan(b, i, view, b.f.group(i, static_cast<size_t>(operand_index(row, "index"))))) return false;
  Step& s = b.step(i, eval_red);
  s.in[0] = b.slot(view);
  s.in[1] = b.slot(arg);
  s.data = d;
  s.n = b.count(arg);
  return true;
}

}  // namespace tile
