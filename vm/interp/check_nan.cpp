// The check `nan`: the first NaN or infinity that an operation makes out of finite numbers. A remark, never an error.
#include <cstring>

#include "vm/base/numeric.h"
#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"
#include "vm/interp/isa/isa.h"

namespace tile {
namespace {

/// True if some element has a magnitude of `exponent` or more, the pattern of the smallest infinity or NaN: those are the
/// largest magnitudes. No branch, so that this runs as fast as memory is read.
template <class T, size_t kBytes>
[[gnu::always_inline]] inline bool any_special_in(const std::byte* p, size_t n, T exponent) {
  using Signed = std::make_signed_t<T>;  // wider vectors compare signed numbers faster
  constexpr size_t kLanes = kBytes / sizeof(T);
  typedef Signed Lanes [[gnu::vector_size(kBytes)]];
  constexpr Signed kMagnitude = static_cast<Signed>(static_cast<T>(~T{0}) >> 1);
  const Signed least = static_cast<Signed>(exponent);
  if (n < kLanes) {
    bool found = false;
    for (size_t i = 0; i < n; ++i) {
      Signed one;
      std::memcpy(&one, p + i * sizeof(T), sizeof one);
      found |= (one & kMagnitude) >= least;
    }
    return found;
  }
  Lanes found{}, v;
  for (size_t i = 0; i + kLanes <= n; i += kLanes) {
    std::memcpy(&v, p + i * sizeof(T), sizeof v);
    found |= (v & kMagnitude) >= least;
  }
  std::memcpy(&v, p + (n - kLanes) * sizeof(T), sizeof v);  // the last ones, some of them again
  found |= (v & kMagnitude) >= least;
  uint64_t words[kBytes / 8], any = 0;
  std::memcpy(words, &found, sizeof words);
  for (const uint64_t w : words) any |= w;
  return any != 0;
}

template <class T>
bool any_special_plain(const std::byte* p, size_t n, T exponent) {
  return any_special_in<T, 16>(p, n, exponent);
}
#if defined(__x86_64__)
// For wider vectors: this check reads every float that a launch makes, and with it all that the launch does otherwise fits caches.
template <class T>
[[gnu::target("avx2")]] bool any_special_avx2(const std::byte* p, size_t n, T exponent) {
  return any_special_in<T, 32>(p, n, exponent);
}
template <class T>
[[gnu::target("avx512f,avx512bw,avx512vl")]] bool any_special_avx512(const std::byte* p, size_t n, T exponent) {
  return any_special_in<T, 64>(p, n, exponent);
}
#endif
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

using AnySpecial = bool (*)(ElementType e, const std::byte* p, size_t n);
template <class T, T kExponent>
AnySpecial chosen() {
#if defined(__x86_64__)
  switch (current_isa()) {
    case Isa::Avx512: return [](ElementType, const std::byte* p, size_t n) { return any_special_avx512<T>(p, n, kExponent); };
    case Isa::Avx2: return [](ElementType, const std::byte* p, size_t n) { return any_special_avx2<T>(p, n, kExponent); };
    case Isa::Plain: break;
  }
#endif
  return [](ElementType, const std::byte* p, size_t n) { return any_special_plain<T>(p, n, kExponent); };
}

/// How tiles of a type are looked at.
AnySpecial any_special_of(ElementType e) {
  switch (e) {
    case ElementType::F32:
    case ElementType::TF32:
      return chosen<uint32_t, 0x7F800000u>();
    case ElementType::F64:
      return chosen<uint64_t, 0x7FF0000000000000u>();
    case ElementType::F16:
      return chosen<uint16_t, 0x7C00u>();
    case ElementType::BF16:
      return chosen<uint16_t, 0x7F80u>();
    case ElementType::F8E5M2:
      return chosen<uint8_t, 0x7C>();
    case ElementType::F8E4M3FN:
      return chosen<uint8_t, 0x7F>();
    default:
      return any_special_byte;
  }
}

class NanCheck : public CheckPart {
 public:
  NanCheck(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {
    known_.assign(f.value_types.size(), kFinite);
    std::fill_n(known_.begin(), f.param_count, kUnknown);
    for (InstId i = 0; i < f.insts.size(); ++i)
      if (f.insts[i].op == Opcode::Constant && is_float(f.result(i))) {
        const Attr& a = facts.module.attrs.get(f.attr(i, 0));
        const ElementType e = facts.element(f.result(i));
        std::vector<uint64_t> copy(a.bytes.size() / 8 + 1);  // aligned
        std::memcpy(copy.data(), a.bytes.data(), a.bytes.size());
        known_[f.result(i)] = any_special_of(e)(e, reinterpret_cast<const std::byte*>(copy.data()), a.bytes.size() / info(e).storage) ? kSome : kFinite;
      }
    results_.resize(f.insts.size());
    computes_.resize(f.insts.size());
    keeps_.resize(f.insts.size());
    for (InstId i = 0; i < f.insts.size(); ++i) {
      computes_[i] = computes(i);
      keeps_[i] = keeps(i);
      for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
        if (const ValueId v = f.result(i, k); is_float(v)) results_[i].push_back({v, facts.element(v), any_special_of(facts.element(v)), facts.count(v)});
    }
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
  enum Special : uint8_t { kFinite, kSome, kUnknown };  // elements that are infinite or NaN
  struct Worker {
    std::vector<Special> special, moved;  // by value
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

  /// Operations whose result has no infinity or NaN if no operand has one: they move elements, or choose them.
  [[nodiscard]] bool keeps(InstId i) const {
    switch (f.insts[i].op) {
      case Opcode::Assume:
      case Opcode::Reshape:
      case Opcode::Broadcast:
      case Opcode::Permute:
      case Opcode::Cat:
      case Opcode::Extract:
      case Opcode::Insert:
      case Opcode::Select:
      case Opcode::NegF:
      case Opcode::AbsF:
        return true;
      case Opcode::FToF: {
        // Wider: everything finite stays so.
        const ElementType from = facts.element(f.operand(i, 0)), to = facts.element(f.result(i));
        const auto narrow = [](ElementType e) { return e == ElementType::F16 || e == ElementType::BF16; };
        return (narrow(from) && (to == ElementType::F32 || to == ElementType::F64)) || (from == ElementType::F32 && to == ElementType::F64);
      }
      default:
        return false;
    }
  }

  void scan(Exec& x, InstId i) {
    Worker& w = workers_[x.worker];
    bool given = false, unknown = false;
    if (computes_[i])
      for (const ValueId o : facts.operands(i)) {
        given = given || w.special[o] == kSome;
        unknown = unknown || w.special[o] == kUnknown;
      }
    if (keeps_[i] && !given && !unknown) {
      for (const Result& r : results_[i]) w.special[r.value] = kFinite;
      return;
    }
    for (const Result& r : results_[i]) {
      const bool special = r.any_special(r.element, facts.data(x, r.value), r.n);
      w.special[r.value] = special ? kSome : kFinite;
      if (special && computes_[i] && !given && findings.wanted(x, Code::W0002, i)) report(x, i, r.value, r.n);
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

  struct Result {
    ValueId value = kNone;
    ElementType element{};
    AnySpecial any_special = nullptr;
    size_t n = 0;
  };
  std::vector<Special> known_;  // of constants, and what is not looked at
  std::vector<std::vector<Result>> results_;  // by instruction: those of floats
  std::vector<uint8_t> computes_, keeps_;     // by instruction
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_nan_check(const CheckFacts& facts, Findings& findings) {
  return std::make_unique<NanCheck>(facts, findings);
}

}  // namespace tile
