// The check `nan`: the first NaN or infinity that an operation makes out of finite numbers. A remark, never an error.
#include "vm/base/numeric.h"
#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"
#include "vm/interp/isa/isa.h"

namespace tile {
namespace {

/// True if some element has a magnitude of `exponent` or more, the pattern of the smallest infinity or NaN: those are the
/// largest magnitudes. No branch, so that this runs as fast as memory is read.
template <class T>
[[gnu::always_inline]] inline bool any_special_in(const std::byte* p, size_t n, T exponent) {
  using Signed = std::make_signed_t<T>;  // wider vectors compare signed numbers faster
  const T* v = reinterpret_cast<const T*>(p);
  constexpr T kMagnitude = static_cast<T>(static_cast<T>(~T{0}) >> 1);
  constexpr size_t kLanes = 128 / sizeof(T);  // independent of each other
  Signed most[kLanes] = {};
  const auto take = [&](size_t lane, T bits) {
    const Signed m = static_cast<Signed>(bits & kMagnitude);
    most[lane] = m > most[lane] ? m : most[lane];
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) take(k, v[i + k]);
  for (; i < n; ++i) take(0, v[i]);
  Signed all = 0;
  for (const Signed one : most) all = one > all ? one : all;
  return static_cast<T>(all) >= exponent;
}

template <class T>
bool any_special_plain(const std::byte* p, size_t n, T exponent) {
  return any_special_in(p, n, exponent);
}
#if defined(__x86_64__)
// For wider vectors: this check reads every float that a launch makes, and with it all that the launch does otherwise fits caches.
template <class T>
[[gnu::target("avx2")]] bool any_special_avx2(const std::byte* p, size_t n, T exponent) {
  return any_special_in(p, n, exponent);
}
template <class T>
[[gnu::target("avx512f,avx512bw,avx512vl")]] bool any_special_avx512(const std::byte* p, size_t n, T exponent) {
  return any_special_in(p, n, exponent);
}
#endif
template <class T>
bool any_special(const std::byte* p, size_t n, T exponent) {
#if defined(__x86_64__)
  switch (current_isa()) {
    case Isa::Avx512: return any_special_avx512(p, n, exponent);
    case Isa::Avx2: return any_special_avx2(p, n, exponent);
    case Isa::Plain: break;
  }
#endif
  return any_special_plain(p, n, exponent);
}

/// For types of one byte: whether each pattern is special, and whether any is.
struct Patterns {
  bool special[256] = {}, any = false;
};
Patterns patterns_of(ElementType e) {
  Patterns out;
  for (unsigned k = 0; k < 256; ++k) {
    const double v = decode(e, k);
    out.special[k] = !(v - v == 0);
    out.any = out.any || out.special[k];
  }
  return out;
}
bool any_special_byte(ElementType e, const std::byte* p, size_t n) {
  static const std::vector<Patterns> all = [] {
    std::vector<Patterns> out(kElementTypes);
    for (size_t t = 0; t < kElementTypes; ++t)
      if (info(static_cast<ElementType>(t)).is_float && info(static_cast<ElementType>(t)).storage == 1) out[t] = patterns_of(static_cast<ElementType>(t));
    return out;
  }();
  const Patterns& known = all[static_cast<size_t>(e)];
  if (!known.any) return false;
  bool found = false;
  for (size_t i = 0; i < n; ++i) found |= known.special[static_cast<uint8_t>(p[i])];
  return found;
}

bool any_special(ElementType e, const std::byte* p, size_t n) {
  switch (e) {
    case ElementType::F32:
    case ElementType::TF32:
      return any_special<uint32_t>(p, n, 0x7F800000u);
    case ElementType::F64:
      return any_special<uint64_t>(p, n, 0x7FF0000000000000u);
    case ElementType::F16:
      return any_special<uint16_t>(p, n, 0x7C00u);
    case ElementType::BF16:
      return any_special<uint16_t>(p, n, 0x7F80u);
    case ElementType::F8E5M2:
      return any_special<uint8_t>(p, n, 0x7C);
    case ElementType::F8E4M3FN:
      return any_special<uint8_t>(p, n, 0x7F);
    default:
      return any_special_byte(e, p, n);
  }
}

class NanCheck : public CheckPart {
 public:
  NanCheck(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {
    known_.assign(f.value_types.size(), 0);
    for (InstId i = 0; i < f.insts.size(); ++i)
      if (f.insts[i].op == Opcode::Constant && is_float(f.result(i))) {
        const Attr& a = facts.module.attrs.get(f.attr(i, 0));
        const ElementType e = facts.element(f.result(i));
        std::vector<uint64_t> copy(a.bytes.size() / 8 + 1);  // aligned
        std::memcpy(copy.data(), a.bytes.data(), a.bytes.size());
        known_[f.result(i)] =
            any_special(e, reinterpret_cast<const std::byte*>(copy.data()), a.bytes.size() / info(e).storage);
      }
    results_.resize(f.insts.size());
    for (InstId i = 0; i < f.insts.size(); ++i)
      for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
        if (is_float(f.result(i, k))) results_[i].push_back(f.result(i, k));
  }

  void launch_begin(const Launch& launch) override {
    workers_.resize(launch.threads);
    for (Worker& w : workers_) w.special = known_;
  }
  unsigned wants(InstId i) const override {
    if (facts.op(i).in_body || f.insts[i].op == Opcode::Constant || facts.op(i).control) return kNever;
    return results_[i].empty() ? kNever : kAfter;
  }
  void silent(Exec& x, std::span<const InstId> insts) override {
    for (const InstId i : insts) scan(x, i);
  }
  void after(Exec& x, const Step& s) override { scan(x, s.inst); }
  void carry(Exec& x, std::span<const Carry> moves) override {
    Worker& w = workers_[x.worker];
    w.moved.clear();
    for (const Carry& m : moves) w.moved.push_back(w.special[m.from]);
    for (size_t k = 0; k < moves.size(); ++k) w.special[moves[k].to] = w.moved[k];
  }

 private:
  struct Worker {
    std::vector<uint8_t> special, moved;  // by value: some element is infinite or NaN
  };
  [[nodiscard]] bool is_float(ValueId v) const { return facts.is_tile(v) && info(facts.element(v)).is_float; }
  /// Operations that compute: not those that fetch or move elements.
  [[nodiscard]] bool computes(InstId i) const {
    switch (f.insts[i].op) {
      case Opcode::Bitcast:
      case Opcode::Unpack:
        return false;
      default:
        return !facts.op(i).memory;
    }
  }

  void scan(Exec& x, InstId i) {
    Worker& w = workers_[x.worker];
    for (const ValueId v : results_[i]) {
      const size_t n = facts.count(v);
      const bool special = any_special(facts.element(v), facts.data(x, v), n);
      w.special[v] = special;
      if (!special || !computes(i)) continue;
      bool given = false;
      for (const ValueId o : facts.operands(i)) given = given || w.special[o];
      if (!given && findings.wanted(x, Code::W0002, i)) report(x, i, v, n);
    }
  }
  void report(Exec& x, InstId i, ValueId v, size_t n) {
    const ElementInfo& t = info(facts.element(v));
    for (size_t e = 0; e < n; ++e) {
      const double value = decode(facts.element(v), read_bits(facts.data(x, v), t.storage, e));
      if (value - value == 0) continue;
      const char* what = value != value ? "NaN" : value > 0 ? "inf" : "-inf";
      findings.add(x,
                   {Code::W0002,
                    i,
                    (facts.type(v).shape.empty() ? "the result" : "element " + element_name(facts.type(v).shape, e)) +
                        " is " + what + ", and no operand has an infinity or NaN",
                    {},
                    {}});
      return;
    }
  }

  std::vector<uint8_t> known_;  // of constants
  std::vector<std::vector<ValueId>> results_;  // by instruction: those of floats
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_nan_check(const CheckFacts& facts, Findings& findings) {
  return std::make_unique<NanCheck>(facts, findings);
}

}  // namespace tile
