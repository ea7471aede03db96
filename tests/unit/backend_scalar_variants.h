// Every variant of every elementwise operation that the interpreter has, operands to try, and when a result is right.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/elementwise.h"
#include "vm/interp/eval.h"
#include "vm/ir/function_builder.h"

namespace scalar_kit {
using namespace tile;

/// One operation with its types and attributes, in a module of its own.
struct Variant {
  std::string name;
  Opcode op{};
  ElementType out{};
  std::vector<ElementType> in;  ///< by operand
  std::vector<uint32_t> attrs;
  Modifiers modifiers;
  ElementwiseFn kernel = nullptr;  ///< of the interpreter
};

inline void make_function(const Variant& v, Module& m, Function& f) {
  std::vector<TypeId> params;
  for (const ElementType e : v.in)
    params.push_back(
        m.types.tile(e == ElementType::Ptr ? m.types.ptr(m.types.element(ElementType::I32)) : m.types.element(e)));
  const TypeId out =
      m.types.tile(v.out == ElementType::Ptr ? m.types.ptr(m.types.element(ElementType::I32)) : m.types.element(v.out));
  FunctionBuilder b(f, params);
  std::vector<ValueId> operands;
  for (uint32_t i = 0; i < params.size(); ++i) operands.push_back(b.param(i));
  b.op({.op = v.op, .operands = operands, .segments = {}, .attrs = v.attrs, .result_types = {&out, 1}});
  b.finish();
}

/// `offset` on pointers to i32.
template <ElementType I>
void offset_by(void* out, const void* const* in, size_t n) {
  find_offset(I)(out, in[0], in[1], n, 4);
}
template <ElementType I>
Variant offset_variant() {
  return {"offset_" + std::string(info(I).name),
          Opcode::Offset,
          ElementType::Ptr,
          {ElementType::Ptr, I},
          {},
          {},
          offset_by<I>};
}

/// All variants that the interpreter has.
inline std::vector<Variant> all_variants() {
  std::vector<Variant> list = {offset_variant<ElementType::I1>(), offset_variant<ElementType::I8>(),
                               offset_variant<ElementType::I16>(), offset_variant<ElementType::I32>(),
                               offset_variant<ElementType::I64>()};
  for (const OpDef& row : op_rows()) {
    const auto op = static_cast<Opcode>(row.code);
    const auto plain = [](const auto& o) { return o.arity == Arity::One && o.kind == ValueKind::Tile; };
    const bool elementwise =
        row.regions == 0 && row.results.size() == 1 && !row.operands.empty() && row.operands.size() <= 3 &&
        std::all_of(row.operands.begin(), row.operands.end(), plain) && plain(row.results[0]) &&
        std::all_of(row.attrs.begin(), row.attrs.end(),
                    [](const AttrDef& a) { return a.kind == AttrKind::Unit || a.kind == AttrKind::Enum; });
    if (!elementwise || op == Opcode::Offset) continue;
    // Every combination of attribute values; overflow flags only promise something.
    std::vector<std::vector<uint32_t>> words = {{}};
    for (const AttrDef& a : row.attrs) {
      std::vector<uint32_t> values;
      if (a.kind == AttrKind::Unit)
        values = {0, 1};
      else if (a.enum_kind == EnumKind::Overflow)
        values = {0};
      else
        for (uint32_t n = 0; n < enum_info(a.enum_kind).values.size(); ++n)
          if (a.allowed >> n & 1) values.push_back(n);
      std::vector<std::vector<uint32_t>> more;
      for (const auto& w : words)
        for (const uint32_t n : values) {
          more.push_back(w);
          more.back().push_back(n);
        }
      words = more;
    }
    for (size_t i = 0; i < kElementTypes; ++i)
      for (size_t o = 0; o < kElementTypes; ++o)
        for (const auto& w : words) {
          const auto in = static_cast<ElementType>(i), out = static_cast<ElementType>(o);
          Variant v{std::string(row.name), op, out, {}, w, {}, nullptr};
          for (size_t k = 0; k < row.operands.size(); ++k) v.in.push_back(in);
          if (op == Opcode::Select) v.in = {ElementType::I1, in, in};
          if (op == Opcode::FPowI) v.in = {out, in};
          if (op == Opcode::Select && in != out) continue;
          Module m;
          Function f;
          make_function(v, m, f);
          v.modifiers = modifiers_of(f, 0);
          v.kernel = find_elementwise(op, in, out, v.modifiers);
          if (!v.kernel) continue;
          v.name += "_" + std::string(info(in).name) + "_" + std::string(info(out).name);
          for (const uint32_t n : w) v.name += "_" + std::to_string(n);
          list.push_back(v);
        }
  }
  return list;
}

// --- operands -----------------------------------------------------------------------------------

/// Numbers where formats begin and end, ties, and what functions find special; as bits of `t`.
inline std::vector<uint64_t> awkward(ElementType t) {
  const ElementInfo& e = info(t);
  std::set<uint64_t> all;
  const unsigned bits = t == ElementType::TF32 ? 32 : e.bits;
  const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  if (bits <= 8) {
    for (uint64_t u = 0; u <= mask; ++u) all.insert(u);
  } else if (e.is_float) {
    const FloatFormat& f = float_format(t);
    const unsigned pad = t == ElementType::TF32 ? 13 : 0;
    const uint64_t max = f.max_finite << pad, least = 1ull << pad, hidden = (1ull << f.mantissa_bits) << pad,
                   sign = 1ull << (bits - 1);
    for (const uint64_t u : {uint64_t{0}, least, least * 2, hidden - least, hidden, hidden + least, max, max - least,
                             max + least, max + 2 * least}) {
      all.insert(u & mask);
      all.insert((u | sign) & mask);
    }
    for (const double x : {1.0,
                           0x1.fffffep-1,
                           0x1.000002p0,
                           0x1.fffffep0,
                           0x1.000002p-126,
                           0x1.fffffep-126,
                           0x1p-125,
                           0x1.2p-63,
                           0.5,
                           0.75,
                           1.5,
                           2.0,
                           2.5,
                           3.0,
                           3.5,
                           6.0,
                           7.0,
                           0.1,
                           100.0,
                           448.0,
                           464.0,
                           57344.0,
                           61440.0,
                           65504.0,
                           65519.0,
                           65520.0,
                           127.0,
                           128.0,
                           129.0,
                           255.0,
                           256.0,
                           32767.5,
                           65535.5,
                           2147483647.0,
                           2147483648.0,
                           4294967296.0,
                           9.2233720368547758e18,
                           1.8446744073709552e19,
                           1e-7,
                           5.9604644775390625e-8,
                           2.98e-8,
                           1e-30,
                           1e-38,
                           1e-40,
                           1e-44,
                           1e30,
                           3.3895e38,
                           3.4028236e38}) {
      for (const double y : {x, -x}) all.insert(encode(t, y));
    }
  } else {
    for (unsigned k = 0; k < bits; ++k)
      for (const uint64_t u : {1ull << k, (1ull << k) - 1, (1ull << k) + 1, ~(1ull << k), 0 - (1ull << k)})
        all.insert(u & mask);
    for (const uint64_t u : {3ull, 5ull, 7ull, 10ull, 100ull, 31ull, 33ull, 63ull, 65ull, 16777217ull, 33554433ull,
                             0x1FFFFFFull, 0x7FFFFFBFull, 0x7FFFFFC0ull}) {
      all.insert(u & mask);
      all.insert((0 - u) & mask);
    }
  }
  return {all.begin(), all.end()};
}

inline uint64_t random_bits(ElementType t, std::mt19937_64& random) {
  const ElementInfo& e = info(t);
  const unsigned bits = t == ElementType::TF32 ? 32 : e.bits;
  uint64_t u = bits == 64 ? random() : random() & ((1ull << bits) - 1);
  if (e.is_float && bits >= 16 && random() % 2 == 0) {
    // Of ordinary size, often with few digits.
    double x = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 24) - 53 - 12);
    if (random() % 2 == 0) x = std::floor(x * 8) / 8;
    u = encode(t, random() % 2 == 0 ? -x : x);
  } else if (e.is_int && bits >= 16 && random() % 2 == 0) {
    u &= (1ull << (random() % bits)) - 1;
  }
  return t == ElementType::TF32 ? u & ~0x1FFFull : u;
}

struct Tuple {
  uint64_t x[3] = {};
};
inline std::vector<Tuple> operands(const Variant& v) {
  std::mt19937_64 random(7);
  std::vector<Tuple> list;
  std::vector<std::vector<uint64_t>> values;
  for (const ElementType t : v.in) {
    values.push_back(awkward(t));
    if (v.in.size() == 1 && info(t).bits == 16) {
      values[0].clear();
      for (uint64_t u = 0; u < 65536; ++u) values[0].push_back(u);
    }
    if (v.in.size() == 2 && values.back().size() > 140) {
      std::shuffle(values.back().begin(), values.back().end(), random);
      if (info(t).bits > 8) values.back().resize(140);
    }
    if (v.in.size() == 3 && values.back().size() > 24) {
      std::shuffle(values.back().begin(), values.back().end(), random);
      values.back().resize(24);
    }
  }
  const std::vector<uint64_t> one = {0};
  for (const uint64_t a : values[0])
    for (const uint64_t b : values.size() > 1 ? values[1] : one)
      for (const uint64_t c : values.size() > 2 ? values[2] : one) list.push_back({{a, b, c}});
  for (int i = 0; i < 8000; ++i) {
    Tuple t;
    for (size_t k = 0; k < v.in.size(); ++k) t.x[k] = random_bits(v.in[k], random);
    list.push_back(t);
  }
  return list;
}

// --- judgement ----------------------------------------------------------------------------------

/// Position of a number among the numbers of its type, for distances.
inline int64_t position(ElementType t, uint64_t bits) {
  const unsigned width = info(t).storage * 8u;
  const uint64_t sign = 1ull << (width - 1), size = bits & (sign - 1);
  return (bits & sign) != 0 ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
}

/// Units in the last place that a result may be off (conformance/bounds.md); 0: exact.
inline int64_t allowed(const Variant& v) {
  if (v.op == Opcode::DivF || v.op == Opcode::Sqrt)
    return v.modifiers.rounding == Rounding::Approx || v.modifiers.rounding == Rounding::Full ? 2 : 0;
  if (op_def(v.op).tolerance != Tolerance::Ulp || v.op == Opcode::FPowI) return 0;
  if (v.out == ElementType::F16 || v.out == ElementType::BF16) return 1;
  const bool f64 = v.out == ElementType::F64;
  switch (v.op) {
    case Opcode::Sin:
    case Opcode::Cos:
      return 2;
    case Opcode::Tan:
    case Opcode::FPowF:
      return f64 ? 2 : 4;
    case Opcode::SinH:
    case Opcode::Atan2:
      return f64 ? 2 : 3;
    case Opcode::TanH:
      return 2;
    default:
      return f64 ? 1 : 2;
  }
}

inline bool right(const Variant& v, uint64_t got, uint64_t expected, const Tuple& t) {
  if (got == expected) return true;
  if (!info(v.out).is_float) return false;
  const double x = decode(v.out, got), y = decode(v.out, expected);
  // Where bits are moved a NaN keeps its own.
  if (x != x && y != y) return v.op != Opcode::Bitcast && v.op != Opcode::Select;
  const int64_t off = allowed(v);
  if (off == 0) return false;
  if (v.op == Opcode::DivF) {
    // The language gives bounds for divisors of 2^-126 to 2^126, and with `full` below 2^127 for the quotient.
    const double divisor = std::fabs(decode(v.in[0], t.x[1]));
    if (v.modifiers.rounding == Rounding::Approx ? divisor > 0x1p126 : std::fabs(y) >= 0x1p127) return true;
    if (std::fabs(y) < 0x1p-126 || std::fabs(decode(v.in[0], t.x[0])) < 0x1p-126 || divisor < 0x1p-126) return true;
  }
  if (x != x || y != y) return false;
  if (v.modifiers.rounding == Rounding::Approx && v.op == Opcode::TanH) return std::fabs(x - y) <= 7e-4 * std::fabs(y);
  if (v.modifiers.rounding == Rounding::Approx && v.op == Opcode::Exp) {
    const double a = std::fabs(decode(v.in[0], t.x[0]));
    if (std::isinf(x) != std::isinf(y)) return std::fabs(a - 88.72) < 0.01;
    return std::fabs(x - y) <= (2 + 2 * std::max(a, 1.0)) * 0x1p-23 * std::fabs(y) + 0x1p-126;
  }
  if (v.modifiers.flush_to_zero && std::fabs(x) <= 0x1p-125 && std::fabs(y) <= 0x1p-125) return true;
  return std::signbit(x) == std::signbit(y) && std::abs(position(v.out, got) - position(v.out, expected)) <= off;
}

}  // namespace scalar_kit
