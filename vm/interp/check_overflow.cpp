// The check `assume`, second part: integer results that an overflow flag excludes.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"
#include "vm/interp/isa/isa.h"

namespace tile {
namespace {

using I128 = __int128;
constexpr uint32_t kNoSigned = 1, kNoUnsigned = 2;  // bits of the overflow flag

/// Whether an operation breaks one of its flags for some of n elements; told without their numbers, and fast. `to` is the width of a trunci.
using AnyBroken = bool (*)(const std::byte* a, const std::byte* b, size_t n, uint32_t flags, unsigned to);

/// kVector bytes of integers.
template <class T, size_t kVector>
struct Lanes {
  typedef T Unsigned [[gnu::vector_size(kVector)]];
  typedef std::make_signed_t<T> Signed [[gnu::vector_size(kVector)]];
};

/// Negative where an element breaks a flag. Macros: vectors as arguments of functions have no fixed form without their instruction set.
#define TILE_BROKEN(kOp, a, b, flags, out)                                                       \
  do {                                                                                           \
    using S = std::make_signed_t<T>;                                                             \
    constexpr T kBits = 8 * sizeof(T);                                                           \
    if constexpr (kOp == Opcode::AddI) {                                                         \
      const U s = a + b;                                                                         \
      if (flags & kNoSigned) out |= (V)((a ^ s) & (b ^ s));                                      \
      if (flags & kNoUnsigned) out |= (V)(s < a);                                                \
    } else if constexpr (kOp == Opcode::SubI) {                                                  \
      const U s = a - b;                                                                         \
      if (flags & kNoSigned) out |= (V)((a ^ b) & (a ^ s));                                      \
      if (flags & kNoUnsigned) out |= (V)(a < b);                                                \
    } else if constexpr (kOp == Opcode::NegI) {                                                  \
      if (flags & kNoSigned) out |= (V)(a & (0 - a));                                            \
      if (flags & kNoUnsigned) out |= (V)(a != 0);                                               \
    } else if constexpr (kOp == Opcode::ShLI) {                                                  \
      const U far = (U)(b >= kBits), r = b & ~far, s = a << r;                                   \
      if (flags & kNoSigned) out |= (V)(((V)s >> (V)r) != (V)a) | ((V)far & (V)(a != 0));        \
      if (flags & kNoUnsigned) out |= (V)((s >> r) != a) | ((V)far & (V)(a != 0));               \
    } else if constexpr (kOp == Opcode::TruncI) {                                                \
      const S up = static_cast<S>(kBits - to);                                                   \
      if (flags & kNoSigned) out |= (V)((((V)(a << static_cast<T>(up))) >> up) != (V)a);         \
      if (flags & kNoUnsigned) out |= (V)((a >> static_cast<T>(to)) != 0);                       \
    }                                                                                            \
  } while (false)

template <class T, Opcode kOp, size_t kVector>
[[gnu::always_inline]] inline bool any_broken_in(const std::byte* pa, const std::byte* pb, size_t n, uint32_t flags, [[maybe_unused]] unsigned to) {
  using U = typename Lanes<T, kVector>::Unsigned;
  using V = typename Lanes<T, kVector>::Signed;
  constexpr size_t kCount = kVector / sizeof(T);
  V out{};
  for (size_t i = 0; i < n; i += kCount) {
    const size_t bytes = std::min(kCount, n - i) * sizeof(T);
    U a{}, b{};
    if (bytes == kVector) {
      std::memcpy(&a, pa + i * sizeof(T), kVector);
      if (pb) std::memcpy(&b, pb + i * sizeof(T), kVector);
    } else {  // elements of 0 break nothing
      std::memcpy(&a, pa + i * sizeof(T), bytes);
      if (pb) std::memcpy(&b, pb + i * sizeof(T), bytes);
    }
    TILE_BROKEN(kOp, a, b, flags, out);
  }
  std::make_signed_t<T> each[kCount], any = 0;
  std::memcpy(each, &out, kVector);
  for (const auto one : each) any = static_cast<std::make_signed_t<T>>(any | (one < 0 ? 1 : 0));
  return any != 0;
}
#undef TILE_BROKEN

/// The bits of all elements, and of each element or its complement: no element and no magnitude is larger.
template <class T, size_t kVector>
[[gnu::always_inline]] inline std::pair<T, T> most_of(const std::byte* data, size_t n) {
  using U = typename Lanes<T, kVector>::Unsigned;
  using V = typename Lanes<T, kVector>::Signed;
  constexpr size_t kCount = kVector / sizeof(T);
  U bits{}, either{}, v{};
  size_t e = 0;
  for (; e + kCount <= n; e += kCount) {
    std::memcpy(&v, data + e * sizeof(T), sizeof v);
    bits |= v;
    either |= v ^ (U)((V)v >> static_cast<std::make_signed_t<T>>(8 * sizeof(T) - 1));
  }
  if (e < n) {
    v = U{};
    std::memcpy(&v, data + e * sizeof(T), (n - e) * sizeof(T));
    bits |= v;
    either |= v ^ (U)((V)v >> static_cast<std::make_signed_t<T>>(8 * sizeof(T) - 1));
  }
  std::pair<T, T> out{0, 0};
  T each[kCount];
  std::memcpy(each, &bits, kVector);
  for (const T one : each) out.first = static_cast<T>(out.first | one);
  std::memcpy(each, &either, kVector);
  for (const T one : each) out.second = static_cast<T>(out.second | one);
  return out;
}

/// Products: mostly none of small numbers is too large, else of elements below 64 bits in a wider type.
template <class T, size_t kVector>
[[gnu::always_inline]] inline bool any_broken_product_in(const std::byte* pa, const std::byte* pb, size_t n, uint32_t flags) {
  using S = std::make_signed_t<T>;
  using U128 = unsigned __int128;
  const auto [a_bits, a_most] = most_of<T, kVector>(pa, n);
  const auto [b_bits, b_most] = most_of<T, kVector>(pb, n);
  constexpr U128 kMost = T(~T{0});
  if ((!(flags & kNoSigned) || (U128{a_most} + 1) * (U128{b_most} + 1) <= kMost / 2) && (!(flags & kNoUnsigned) || U128{a_bits} * b_bits <= kMost)) return false;
  bool broken = false;
  if constexpr (sizeof(T) == 8) {
    for (size_t i = 0; i < n; ++i) {
      T a, b, u;
      S s;
      std::memcpy(&a, pa + i * sizeof(T), sizeof(T));
      std::memcpy(&b, pb + i * sizeof(T), sizeof(T));
      if (flags & kNoSigned) broken |= __builtin_mul_overflow(static_cast<S>(a), static_cast<S>(b), &s);
      if (flags & kNoUnsigned) broken |= __builtin_mul_overflow(a, b, &u);
    }
  } else {
    // Half a vector of elements, so that products fill a whole one.
    using W = std::conditional_t<sizeof(T) == 4, int64_t, std::conditional_t<sizeof(T) == 2, int32_t, int16_t>>;
    constexpr size_t kCount = kVector / sizeof(W);
    typedef S HalfSigned [[gnu::vector_size(kVector / 2)]];
    typedef T HalfUnsigned [[gnu::vector_size(kVector / 2)]];
    typedef W Wide [[gnu::vector_size(kVector)]];
    typedef std::make_unsigned_t<W> WideUnsigned [[gnu::vector_size(kVector)]];
    Wide out{};
    for (size_t i = 0; i < n; i += kCount) {
      HalfUnsigned a{}, b{};
      if (n - i >= kCount) {
        std::memcpy(&a, pa + i * sizeof(T), sizeof a);
        std::memcpy(&b, pb + i * sizeof(T), sizeof b);
      } else {
        std::memcpy(&a, pa + i * sizeof(T), (n - i) * sizeof(T));
        std::memcpy(&b, pb + i * sizeof(T), (n - i) * sizeof(T));
      }
      if (flags & kNoSigned) {
        const Wide p = __builtin_convertvector((HalfSigned)a, Wide) * __builtin_convertvector((HalfSigned)b, Wide);
        // Those that fit have the sign in all upper bits.
        out |= (p >> (8 * sizeof(T) - 1)) ^ (p >> (8 * sizeof(W) - 1));
      }
      if (flags & kNoUnsigned) {
        const WideUnsigned p = __builtin_convertvector(a, WideUnsigned) * __builtin_convertvector(b, WideUnsigned);
        out |= (Wide)(p >> (8 * sizeof(T)));
      }
    }
    W each[kCount], any = 0;
    std::memcpy(each, &out, kVector);
    for (const W one : each) any = static_cast<W>(any | one);
    broken = any != 0;
  }
  return broken;
}

template <class T, Opcode kOp, size_t kVector>
[[gnu::always_inline]] inline bool any_broken_of(const std::byte* a, const std::byte* b, size_t n, uint32_t flags, unsigned to) {
  if constexpr (kOp == Opcode::MulI) {
    return any_broken_product_in<T, kVector>(a, b, n, flags);
  } else {
    return any_broken_in<T, kOp, kVector>(a, b, n, flags, to);
  }
}

template <class T, Opcode kOp>
bool any_broken_plain(const std::byte* a, const std::byte* b, size_t n, uint32_t flags, unsigned to) {
  return any_broken_of<T, kOp, 16>(a, b, n, flags, to);
}
#if defined(__x86_64__)
template <class T, Opcode kOp>
[[gnu::target("avx2")]] bool any_broken_avx2(const std::byte* a, const std::byte* b, size_t n, uint32_t flags, unsigned to) {
  return any_broken_of<T, kOp, 32>(a, b, n, flags, to);
}
template <class T, Opcode kOp>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] bool any_broken_avx512(const std::byte* a, const std::byte* b, size_t n, uint32_t flags, unsigned to) {
  return any_broken_of<T, kOp, 64>(a, b, n, flags, to);
}
#endif
template <class T, Opcode kOp>
AnyBroken chosen() {
#if defined(__x86_64__)
  switch (current_isa()) {
    case Isa::Avx512: return any_broken_avx512<T, kOp>;
    case Isa::Avx2: return any_broken_avx2<T, kOp>;
    case Isa::Plain: break;
  }
#endif
  return any_broken_plain<T, kOp>;
}
template <class T>
AnyBroken chosen(Opcode op) {
  switch (op) {
    case Opcode::AddI: return chosen<T, Opcode::AddI>();
    case Opcode::SubI: return chosen<T, Opcode::SubI>();
    case Opcode::MulI: return chosen<T, Opcode::MulI>();
    case Opcode::ShLI: return chosen<T, Opcode::ShLI>();
    case Opcode::NegI: return chosen<T, Opcode::NegI>();
    case Opcode::TruncI: return chosen<T, Opcode::TruncI>();
    default: return nullptr;
  }
}
/// nullptr where elements do not fill their storage.
AnyBroken chosen(Opcode op, const ElementInfo& t) {
  switch (t.bits) {
    case 8: return chosen<uint8_t>(op);
    case 16: return chosen<uint16_t>(op);
    case 32: return chosen<uint32_t>(op);
    case 64: return chosen<uint64_t>(op);
    default: return nullptr;
  }
}

class OverflowCheck : public CheckPart {
 public:
  OverflowCheck(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {
    quick_.resize(f.insts.size());
    for (InstId i = 0; i < f.insts.size(); ++i)
      if (facts.attr(i, "overflow", 0) != 0 && !facts.op(i).in_body)
        quick_[i] = {chosen(f.insts[i].op, info(facts.element(f.operands(i)[0]))), facts.attr(i, "overflow", 0), info(facts.element(f.result(i))).bits};
  }

  unsigned wants(InstId i) const override {
    // A reduction may have no steps for its body: it is computed again here.
    const bool fold = f.insts[i].op == Opcode::Reduce || f.insts[i].op == Opcode::Scan;
    return (fold ? folded(i) != kNone : facts.attr(i, "overflow", 0) != 0) ? kBefore : kNever;
  }
  void before(Exec& x, const Step& s) override {
    if (const InstId body = folded(s.inst); body != kNone) {
      if (s.body[1] == 0) fold(x, s.inst, body);
      return;
    }
    const std::byte *a = x.at<std::byte>(s.in[0]), *b = s.in[1] == kNoSlot ? nullptr : x.at<std::byte>(s.in[1]);
    const Quick& quick = quick_[s.inst];
    if (quick.any && !quick.any(a, b, s.n, quick.flags, quick.to)) return;
    const ElementInfo& t = info(facts.element(f.operands(s.inst)[0]));
    const ElementInfo& to = info(facts.element(f.result(s.inst)));
    const uint32_t flags = quick.flags;
    const Opcode op = f.insts[s.inst].op;
    for (size_t e = 0; e < s.n; ++e) {
      const uint64_t l = read_bits(a, t.storage, e), r = b ? read_bits(b, t.storage, e) : 0;
      const uint32_t broken = flags & violated(op, l, r, t.bits, to.bits);
      if (broken && findings.wanted(x, Code::T0117, s.inst))
        report(x, s.inst, op, l, r, t.bits, to.bits, broken, s.inst);
    }
  }

 private:
  /// The operation that a reduction folds with, if its body is that alone and it has an overflow flag.
  [[nodiscard]] InstId folded(InstId i) const {
    if (f.insts[i].op != Opcode::Reduce && f.insts[i].op != Opcode::Scan) return kNone;
    const Region& r = f.region(i);
    return r.end == r.begin + 2 && facts.attr(r.begin, "overflow", 0) != 0 && f.insts[r.begin].operand_count == 2
               ? r.begin
               : kNone;
  }
  void fold(Exec& x, InstId i, InstId body) {
    const ValueId v = f.operands(i)[0];
    const auto& shape = facts.type(v).shape;
    const size_t dim = static_cast<size_t>(facts.module.int_attr(f, i, 0));
    const bool reverse = f.insts[i].op == Opcode::Scan && facts.attr(i, "reverse", 0) != 0;
    size_t outer = 1, len = 1, inner = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : d == dim ? len : inner) *= static_cast<size_t>(shape[d]);
    const ElementInfo& t = info(facts.element(v));
    const uint32_t flags = facts.attr(body, "overflow", 0);
    const Opcode op = f.insts[body].op;
    const std::byte* data = facts.data(x, v);
    if (op == Opcode::AddI && small_sums(data, outer * len * inner, len, t, flags)) return;
    for (size_t o = 0; o < outer; ++o)
      for (size_t in = 0; in < inner; ++in) {
        uint64_t left = 0;
        for (size_t j = 0; j < len; ++j) {
          const uint64_t next = read_bits(data, t.storage, (o * len + (reverse ? len - 1 - j : j)) * inner + in);
          const uint32_t broken = j == 0 ? 0 : flags & violated(op, left, next, t.bits, t.bits);
          if (broken && findings.wanted(x, Code::T0117, body))
            report(x, body, op, left, next, t.bits, t.bits, broken, body);
          left = j == 0 ? next
                        : static_cast<uint64_t>(exact(op, static_cast<I128>(left), static_cast<I128>(next), t.bits));
          if (t.bits < 64) left &= (uint64_t{1} << t.bits) - 1;
        }
      }
  }

  /// True if no sum of `len` of the n elements leaves their type, because none of them is large.
  static bool small_sums(const std::byte* data, size_t n, size_t len, const ElementInfo& t, uint32_t flags) {
    const auto within = [&](auto zero) {
      using T = decltype(zero);
      const auto [all, magnitudes] = most_of<T, 16>(data, n);
      const auto most = static_cast<unsigned __int128>(T(~T{0}));
      const bool fits_unsigned = (static_cast<unsigned __int128>(all) + 1) * len <= most;
      const bool fits_signed = (static_cast<unsigned __int128>(magnitudes) + 1) * len <= most / 2;
      return (!(flags & kNoSigned) || fits_signed) && (!(flags & kNoUnsigned) || fits_unsigned);
    };
    switch (t.bits) {
      case 8: return within(uint8_t{});
      case 16: return within(uint16_t{});
      case 32: return within(uint32_t{});
      case 64: return within(uint64_t{});
      default: return false;
    }
  }

  /// The result without wrapping. Shifts by the width or more give no more than any wrapped number.
  [[nodiscard]] static I128 exact(Opcode op, I128 l, I128 r, unsigned bits) {
    switch (op) {
      case Opcode::AddI:
        return l + r;
      case Opcode::SubI:
        return l - r;
      case Opcode::MulI:
        return static_cast<I128>(static_cast<unsigned __int128>(l) * static_cast<unsigned __int128>(r));
      case Opcode::ShLI:
        return static_cast<I128>(static_cast<unsigned __int128>(l)
                                 << std::min<unsigned>(static_cast<unsigned>(r), bits));
      case Opcode::NegI:
        return -l;
      default:
        return l;  // trunci
    }
  }
  [[nodiscard]] static uint32_t violated(Opcode op, uint64_t l, uint64_t r, unsigned bits, unsigned to) {
    const I128 one = 1;
    const I128 shift = static_cast<I128>(std::min<uint64_t>(r, bits));
    const I128 s = exact(op, sign_extend(l, bits), op == Opcode::ShLI ? shift : sign_extend(r, bits), bits);
    uint32_t out = 0;
    if (s < -(one << (to - 1)) || s >= one << (to - 1)) out |= kNoSigned;
    // Two operands of 64 bits have a product below 2^128: compare it as unsigned.
    const auto u = static_cast<unsigned __int128>(
        exact(op, static_cast<I128>(l), op == Opcode::ShLI ? shift : static_cast<I128>(r), bits));
    if (op != Opcode::NegI && u >> to != 0) out |= kNoUnsigned;
    if (op == Opcode::NegI && l != 0) out |= kNoUnsigned;
    return out;
  }
  void report(const Exec& x, InstId at, Opcode op, uint64_t l, uint64_t r, unsigned bits, unsigned to, uint32_t broken,
              InstId) {
    const bool as_signed = (broken & kNoSigned) != 0;
    const auto text = [&](uint64_t v) { return as_signed ? std::to_string(sign_extend(v, bits)) : std::to_string(v); };
    const bool unary = op == Opcode::NegI || op == Opcode::TruncI;
    const char* sign = op == Opcode::AddI ? " + " : op == Opcode::SubI ? " - " : op == Opcode::MulI ? " * " : " << ";
    const std::string what = unary ? (op == Opcode::NegI ? "-(" + text(l) + ")" : text(l))
                                   : text(l) + sign + (op == Opcode::ShLI ? std::to_string(r) : text(r));
    findings.add(x, {Code::T0117,
                     at,
                     what + " does not fit " + (as_signed ? "signed" : "unsigned") + " i" + std::to_string(to) +
                         ", and the overflow flag excludes that",
                     {},
                     {}});
  }

  struct Quick {
    AnyBroken any = nullptr;
    uint32_t flags = 0;
    unsigned to = 0;
  };
  std::vector<Quick> quick_;  // by instruction
};

}  // namespace

std::unique_ptr<CheckPart> make_overflow_check(const CheckFacts& facts, Findings& findings) {
  return std::make_unique<OverflowCheck>(facts, findings);
}

}  // namespace tile
