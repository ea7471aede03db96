// Atomic operations on host memory: real ones, since blocks run on several OS threads. All are sequentially consistent, the strongest order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "vm/base/numeric.h"

namespace tile::emu {

/// Kinds as backend/ptx/device.h numbers them (RmwOp).
enum RmwKind : uint32_t { kAnd, kOr, kXor, kAdd, kAddF, kMax, kMin, kUMax, kUMin, kXchg, kMaxF, kMinF };

inline uint64_t float_rmw(uint32_t op, uint32_t bits, bool is_bf16, uint64_t x, uint64_t y) {
  if (bits == 64) {
    const double a = double_of(x), c = double_of(y);
    return double_bits(op == kAddF ? a + c : op == kMaxF ? std::fmax(a, c) : std::fmin(a, c));
  }
  if (bits == 32) {
    const float a = float_of(static_cast<uint32_t>(x)), c = float_of(static_cast<uint32_t>(y));
    return float_bits(op == kAddF ? a + c : op == kMaxF ? std::fmax(a, c) : std::fmin(a, c));
  }
  const auto wide = [&](uint64_t v) {
    return is_bf16 ? bf16_to_f32(static_cast<uint16_t>(v)) : f16_to_f32(static_cast<uint16_t>(v));
  };
  // The f32 sum of two f16 or bf16 is rounded to them as the exact sum is.
  const float a = wide(x), c = wide(y), r = op == kAddF ? a + c : op == kMaxF ? std::fmax(a, c) : std::fmin(a, c);
  return is_bf16 ? f32_to_bf16(r) : f32_to_f16(r);
}

template <class U>
U apply(uint32_t op, bool is_bf16, U x, U y) {
  using S = std::make_signed_t<U>;
  switch (op) {
    case kAnd: return x & y;
    case kOr: return x | y;
    case kXor: return x ^ y;
    case kAdd: return static_cast<U>(x + y);
    case kMax: return static_cast<S>(x) > static_cast<S>(y) ? x : y;
    case kMin: return static_cast<S>(x) < static_cast<S>(y) ? x : y;
    case kUMax: return x > y ? x : y;
    case kUMin: return x < y ? x : y;
    case kXchg: return y;
    default: return static_cast<U>(float_rmw(op, sizeof(U) * 8, is_bf16, x, y));
  }
}

template <class U>
uint64_t rmw(std::byte* p, uint32_t op, bool is_bf16, uint64_t value) {
  auto* at = reinterpret_cast<U*>(p);
  const U operand = static_cast<U>(value);
  U old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(at, &old, apply<U>(op, is_bf16, old, operand), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

template <class U>
uint64_t cas(std::byte* p, uint64_t expected, uint64_t desired) {
  U old = static_cast<U>(expected);
  __atomic_compare_exchange_n(reinterpret_cast<U*>(p), &old, static_cast<U>(desired), false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  return old;
}

/// Old value; `bits`: 16, 32 or 64.
inline uint64_t rmw(std::byte* p, uint32_t op, uint32_t bits, bool is_bf16, uint64_t value) {
  switch (bits) {
    case 16: return rmw<uint16_t>(p, op, is_bf16, value);
    case 32: return rmw<uint32_t>(p, op, is_bf16, value);
    default: return rmw<uint64_t>(p, op, is_bf16, value);
  }
}

}  // namespace tile::emu
