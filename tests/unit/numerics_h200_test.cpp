// Numbers of an H200. Expected values are what the corpus' launches gave on one (half_precision_math, atomics_float), and the rule that follows.
#include "vm/interp/numerics_h200.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace tile {
namespace {

constexpr uint64_t kInfinity = 0x7FF0000000000000, kOne = 0x3FF0000000000000, kMinusOne = 0xBFF0000000000000;
constexpr uint64_t kNan = 0x7FF8000000000000, kInvalid = 0xFFF8000000000000, kPayload = 0xFFF8000000ABCDEF, kSignalling = 0x7FF0000000000001;

template <class T>
T of(ElementwiseFn f, std::vector<T> operands) {
  // Seventeen times, so that vectors and their rests come up.
  std::vector<std::vector<T>> in;
  std::vector<const void*> from;
  for (const T x : operands) in.emplace_back(17, x);
  for (const auto& x : in) from.push_back(x.data());
  std::vector<T> out(17);
  f(out.data(), from.data(), out.size());
  for (const T x : out) CHECK(x == out[0]);
  return out[0];
}

ElementwiseFn f64(Opcode op, Rounding r = Rounding::NearestEven, Numerics n = Numerics::H200) {
  Modifiers m;
  m.rounding = r;
  return find_elementwise(op, ElementType::F64, ElementType::F64, m, n);
}

TEST_CASE("f64 arithmetic on an H200: the first NaN made quiet, or the negative one where no operand is NaN") {
  for (const Rounding r : {Rounding::NearestEven, Rounding::Zero, Rounding::NegativeInf, Rounding::PositiveInf}) {
    for (const Opcode op : {Opcode::AddF, Opcode::SubF, Opcode::MulF, Opcode::DivF}) {
      CHECK(of<uint64_t>(f64(op, r), {kPayload, kOne}) == kPayload);
      CHECK(of<uint64_t>(f64(op, r), {kOne, kPayload}) == kPayload);
      CHECK(of<uint64_t>(f64(op, r), {kSignalling, kPayload}) == (kSignalling | kNan));
      CHECK(of<uint64_t>(f64(op, r), {kPayload, kSignalling}) == kPayload);
      CHECK(of<uint64_t>(f64(op, r, Numerics::Exact), {kPayload, kOne}) == kNan);
    }
    CHECK(of<uint64_t>(f64(Opcode::SubF, r), {kInfinity, kInfinity}) == kInvalid);
    CHECK(of<uint64_t>(f64(Opcode::MulF, r), {kInfinity, 0}) == kInvalid);
    CHECK(of<uint64_t>(f64(Opcode::DivF, r), {0, 0}) == kInvalid);
    CHECK(of<uint64_t>(f64(Opcode::Sqrt, r), {kMinusOne}) == kInvalid);
    CHECK(of<uint64_t>(f64(Opcode::Fma, r), {kOne, kPayload, kSignalling}) == kPayload);
    CHECK(of<uint64_t>(f64(Opcode::Fma, r), {kInfinity, 0, kOne}) == kInvalid);
    CHECK(of<uint64_t>(f64(Opcode::AddF, r), {kOne, kOne}) == kOne + (uint64_t{1} << 52));
  }
  CHECK(of<uint64_t>(f64(Opcode::RemF), {kOne, 0}) == kInvalid);
  CHECK(of<uint64_t>(f64(Opcode::RemF), {kPayload, kOne}) == kPayload);
}

TEST_CASE("f64 functions on an H200: the first NaN made quiet, or the negative one outside of their domain") {
  constexpr uint64_t kHalf = 0x3FE0000000000000;
  for (const Opcode op : {Opcode::Exp, Opcode::Exp2, Opcode::Log, Opcode::Log2, Opcode::Sin, Opcode::Cos, Opcode::Tan,
                          Opcode::SinH, Opcode::CosH, Opcode::TanH, Opcode::Rsqrt}) {
    CHECK(of<uint64_t>(f64(op), {kPayload}) == kPayload);
    CHECK(of<uint64_t>(f64(op), {kSignalling}) == (kSignalling | kNan));
  }
  for (const Opcode op : {Opcode::FPowF, Opcode::Atan2}) {
    CHECK(of<uint64_t>(f64(op), {kHalf, kPayload}) == kPayload);
    CHECK(of<uint64_t>(f64(op), {kPayload, kHalf}) == kPayload);
  }
  for (const Opcode op : {Opcode::Log, Opcode::Log2, Opcode::Rsqrt}) CHECK(of<uint64_t>(f64(op), {kMinusOne}) == kInvalid);
  CHECK(of<uint64_t>(f64(Opcode::FPowF), {kMinusOne, kHalf}) == kInvalid);
}

TEST_CASE("f32 atomic additions on an H200 flush subnormal numbers, no others do") {
  CHECK(of<uint32_t>(find_atomic_add(ElementType::F32, Numerics::H200), {1, 1}) == 0);
  CHECK(of<uint32_t>(find_atomic_add(ElementType::F32, Numerics::H200), {0x80000001, 0x80000000}) == 0x80000000);
  CHECK(of<uint32_t>(find_atomic_add(ElementType::F32, Numerics::Exact), {1, 1}) == 2);
  CHECK(of<uint16_t>(find_atomic_add(ElementType::F16, Numerics::H200), {1, 1}) == 2);
  CHECK(of<uint16_t>(find_atomic_add(ElementType::BF16, Numerics::H200), {1, 1}) == 2);
  CHECK(of<uint64_t>(find_atomic_add(ElementType::F64, Numerics::H200), {1, 1}) == 2);
}

TEST_CASE("types and operations of which nothing else is known have the exact kernels") {
  bool same = true;
  for (const ElementType t : {ElementType::F16, ElementType::BF16, ElementType::F32})
    for (const Opcode op : {Opcode::AddF, Opcode::MulF, Opcode::Sqrt, Opcode::DivF, Opcode::RemF, Opcode::Fma})
      same = same && find_elementwise(op, t, t, {}, Numerics::H200) == find_elementwise(op, t, t, {});
  CHECK(same);
  same = f64(Opcode::Floor) == f64(Opcode::Floor, Rounding::NearestEven, Numerics::Exact);
  CHECK(same);
}

}  // namespace
}  // namespace tile
