// Approximate instructions, f16 fused multiply-add, the clock, and functions of the C library that compiled code may
// call.
#include <cmath>
#include <cstring>

#include "backend/emulate/block.h"
#include "vm/base/numeric.h"

namespace tile::emu {
namespace {

/// Kinds as backend/ptx/device.h numbers them (ApproxOp).
enum Approx : uint32_t { kEx2, kLg2, kRcp, kRsqrt, kSqrt, kSin, kCos, kTanh };

double exactly(uint32_t op, double x) {
  switch (op) {
    case kEx2: return std::exp2(x);
    case kLg2: return std::log2(x);
    case kRcp: return 1.0 / x;
    case kRsqrt: return 1.0 / std::sqrt(x);
    case kSqrt: return std::sqrt(x);
    case kSin: return std::sin(x);
    case kCos: return std::cos(x);
    default: return std::tanh(x);
  }
}

/// The instruction may return any value within its documented error. Under the random policy it returns a neighbour of
/// the nearest one, the same for the same argument throughout the run.
float approx(Block& b, Thread&, uint32_t op, float x) {
  const auto r = static_cast<float>(exactly(op, x));
  if (std::isnan(r)) return float_of(0x7FFFFFFF);
  if (b.options.policy != EmulateOptions::Random || r == 0 || std::isinf(r) || std::isinf(x) || x == 0) return r;
  uint64_t z = (b.options.seed * 8 + op) * 0x9E3779B97F4A7C15u + float_bits(x);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  const uint32_t step = static_cast<uint32_t>(z >> 40) % 3;
  const float moved = float_of(float_bits(r) + step - 1);
  return std::isinf(moved) ? r : moved;
}

/// The product of two f16 or bf16 is exact in f64; its sum with the third is rounded to odd there, so that the last
/// rounding counts.
uint32_t fma_f16(Block&, Thread&, uint32_t x, uint32_t y, uint32_t z) {
  const auto wide = [](uint32_t v) { return double{f16_to_f32(static_cast<uint16_t>(v))}; };
  return static_cast<uint32_t>(encode(ElementType::F16, add_to_odd(wide(x) * wide(y), wide(z))));
}

uint32_t fma_bf16(Block&, Thread&, uint32_t x, uint32_t y, uint32_t z) {
  const auto wide = [](uint32_t v) { return double{bf16_to_f32(static_cast<uint16_t>(v))}; };
  return static_cast<uint32_t>(encode(ElementType::BF16, add_to_odd(wide(x) * wide(y), wide(z))));
}

/// Counts device operations of the block, so that it is the same in every run.
uint64_t clock(Block& b, Thread&) { return b.operations + (b.slice_length - b.slice); }

// Conversions to and from half and bfloat that LLVM leaves to the compiler's library. Values of these types travel in
// the low 16 bits of a vector register, as the low bits of a float do; gcc 12 and clang 14 have no common spelling for
// the types themselves.
float low(uint64_t bits) { return float_of(static_cast<uint32_t>(bits)); }
uint16_t bits16(float x) { return static_cast<uint16_t>(float_bits(x)); }
float truncsfhf2(float x) { return low(f32_to_f16(x)); }
float truncdfhf2(double x) { return low(encode(ElementType::F16, x)); }
float extendhfsf2(float x) { return f16_to_f32(bits16(x)); }
float truncsfbf2(float x) { return low(f32_to_bf16(x)); }
float truncdfbf2(double x) { return low(encode(ElementType::BF16, x)); }

template <class F>
void* address(F* f) {
  return reinterpret_cast<void*>(f);
}
using F1 = float(float);
using F2 = float(float, float);
using D1 = double(double);
using D2 = double(double, double);

}  // namespace

extern "C" {
// In libgcc of every x86-64 system; division and remainder of 128-bit integers.
__int128 __divti3(__int128, __int128);
__int128 __modti3(__int128, __int128);
unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);
}

void add_math_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_approx", Math, approx),
      TILE_EMU("emu_fma_f16", Math, fma_f16),
      TILE_EMU("emu_fma_bf16", Math, fma_bf16),
      TILE_EMU("emu_clock", Identity, clock),
      {"__truncsfhf2", address(truncsfhf2)},
      {"__gnu_f2h_ieee", address(truncsfhf2)},
      {"__truncdfhf2", address(truncdfhf2)},
      {"__extendhfsf2", address(extendhfsf2)},
      {"__gnu_h2f_ieee", address(extendhfsf2)},
      {"__truncsfbf2", address(truncsfbf2)},
      {"__truncdfbf2", address(truncdfbf2)},
      {"__divti3", address(__divti3)},
      {"__modti3", address(__modti3)},
      {"__udivti3", address(__udivti3)},
      {"__umodti3", address(__umodti3)},
      {"memcpy", address(std::memcpy)},
      {"memmove", address(std::memmove)},
      {"memset", address(std::memset)},
      {"fmodf", address<F2>(::fmodf)},
      {"fmod", address<D2>(::fmod)},
      {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(::fmaf))},
      {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(::fma))},
      {"fminf", address<F2>(::fminf)},
      {"fmaxf", address<F2>(::fmaxf)},
      {"fmin", address<D2>(::fmin)},
      {"fmax", address<D2>(::fmax)},
      {"roundf", address<F1>(::roundf)},
      {"round", address<D1>(::round)},
      {"roundevenf", address<F1>(::rintf)},
      {"roundeven", address<D1>(::rint)},
  });
}

}  // namespace tile::emu
