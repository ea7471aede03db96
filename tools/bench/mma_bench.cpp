// Speed of the matrix kernels per element type, build and shape, beside the peak of fused multiply-adds that this core
// reaches.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "vm/interp/isa/isa.h"
#include "vm/interp/mma.h"

namespace {

using tile::ElementType;
using tile::Isa;

// The pattern of 1.0 (or the integer 1), so that no sum overflows or becomes subnormal.
std::vector<unsigned char> ones(ElementType type, size_t count) {
  uint64_t bits = 1;
  switch (type) {
    case ElementType::F16:
      bits = 0x3C00;
      break;
    case ElementType::BF16:
      bits = 0x3F80;
      break;
    case ElementType::F32:
    case ElementType::TF32:
      bits = 0x3F800000;
      break;
    case ElementType::F64:
      bits = 0x3FF0000000000000;
      break;
    case ElementType::F8E4M3FN:
      bits = 0x38;
      break;
    case ElementType::F8E5M2:
      bits = 0x3C;
      break;
    case ElementType::F8E8M0FNU:
      bits = 127;
      break;
    case ElementType::F4E2M1FN:
      bits = 2;
      break;
    default:
      break;
  }
  const size_t size = tile::info(type).storage;
  std::vector<unsigned char> v(count * size);
  for (size_t i = 0; i < count; ++i) std::memcpy(&v[i * size], &bits, size);
  return v;
}

const char* build_name(Isa isa) {
  return isa == Isa::Plain ? "plain" : isa == Isa::Avx2 ? "avx2" : "avx512";
}

void count_flops(benchmark::State& state, double per_iteration) {
  state.counters["flop/s"] =
      benchmark::Counter(per_iteration * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void run_mma(benchmark::State& state, Isa isa, tile::MmaDesc d) {
  tile::force_isa(isa);
  const auto lhs = ones(d.lhs_rhs, d.batch * d.m * d.k), rhs = ones(d.lhs_rhs, d.batch * d.k * d.n);
  auto acc = ones(d.acc, d.batch * d.m * d.n);
  std::vector<unsigned char> out(acc.size()), scratch(tile::mma_scratch_bytes(d));
  for (auto _ : state) {
    tile::mma(d, out.data(), lhs.data(), rhs.data(), acc.data(), scratch.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, 2.0 * static_cast<double>(d.batch * d.m * d.n * d.k));
  tile::force_isa(tile::best_isa());
}

void run_scaled(benchmark::State& state, Isa isa, tile::MmaScaledDesc d) {
  tile::force_isa(isa);
  const auto lhs = ones(d.lhs_rhs, d.m * d.k), rhs = ones(d.lhs_rhs, d.k * d.n);
  const auto lhs_scale = ones(d.scale, d.m * d.k / d.block), rhs_scale = ones(d.scale, d.n * d.k / d.block);
  auto acc = ones(ElementType::F32, d.m * d.n);
  std::vector<unsigned char> out(acc.size()), scratch(tile::mma_scaled_scratch_bytes(d));
  for (auto _ : state) {
    tile::mma_scaled(d, out.data(), lhs.data(), rhs.data(), acc.data(), lhs_scale.data(), rhs_scale.data(),
                     scratch.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, 2.0 * static_cast<double>(d.m * d.n * d.k));
  tile::force_isa(tile::best_isa());
}

#if defined(__x86_64__)
// Twelve independent chains of fused multiply-adds in registers: the peak to compare with.
#define TILE_CHAINS(op, r)                                                                                             \
  op " %%" r "0, %%" r "1, %%" r "4\n" op " %%" r "0, %%" r "1, %%" r "5\n" op " %%" r "0, %%" r "1, %%" r "6\n" op    \
     " %%" r "0, %%" r "1, %%" r "7\n" op " %%" r "0, %%" r "1, %%" r "8\n" op " %%" r "0, %%" r "1, %%" r "9\n" op    \
     " %%" r "0, %%" r "1, %%" r "10\n" op " %%" r "0, %%" r "1, %%" r "11\n" op " %%" r "0, %%" r "1, %%" r "12\n" op \
     " %%" r "0, %%" r "1, %%" r "13\n" op " %%" r "0, %%" r "1, %%" r "14\n" op " %%" r "0, %%" r "1, %%" r "15\n"
#define TILE_PEAK(name, op, r, lanes)                                                                                  \
  void name(benchmark::State& state) {                                                                                 \
    constexpr uint64_t kSteps = 4096;                                                                                  \
    for (auto _ : state) {                                                                                             \
      uint64_t left = kSteps;                                                                                          \
      asm volatile("vzeroall\n1:\n" TILE_CHAINS(op, r) "dec %0\njnz 1b\nvzeroupper"                                    \
                   : "+r"(left)::"cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                     "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                            \
    }                                                                                                                  \
    count_flops(state, 2.0 * (lanes)*12 * static_cast<double>(kSteps));                                                \
  }
TILE_PEAK(peak_avx2_f32, "vfmadd231ps", "ymm", 8)
TILE_PEAK(peak_avx2_f64, "vfmadd231pd", "ymm", 4)
TILE_PEAK(peak_avx512_f32, "vfmadd231ps", "zmm", 16)
TILE_PEAK(peak_avx512_f64, "vfmadd231pd", "zmm", 8)
#endif

struct Combination {
  ElementType in, acc;
};
constexpr Combination kCombinations[] = {
    {ElementType::F32, ElementType::F32},    {ElementType::TF32, ElementType::F32},
    {ElementType::BF16, ElementType::F32},   {ElementType::F16, ElementType::F32},
    {ElementType::F16, ElementType::F16},    {ElementType::F8E4M3FN, ElementType::F32},
    {ElementType::F8E5M2, ElementType::F16}, {ElementType::F64, ElementType::F64},
    {ElementType::I8, ElementType::I32},
};

void add_all() {
#if defined(__x86_64__)
  if (tile::best_isa() >= Isa::Avx512) {
    benchmark::RegisterBenchmark("mma/avx512/peak_f32", peak_avx512_f32);
    benchmark::RegisterBenchmark("mma/avx512/peak_f64", peak_avx512_f64);
  }
  if (tile::best_isa() >= Isa::Avx2) {
    benchmark::RegisterBenchmark("mma/avx2/peak_f32", peak_avx2_f32);
    benchmark::RegisterBenchmark("mma/avx2/peak_f64", peak_avx2_f64);
  }
#endif
  for (int i = tile::kIsas - 1; i >= 0; --i) {
    const auto isa = static_cast<Isa>(i);
    if (isa > tile::best_isa()) continue;
    for (const Combination& c : kCombinations) {
      for (const auto& [batch, m, n, k] : {std::array<size_t, 4>{1, 128, 128, 64},
                                           {1, 64, 64, 32},
                                           {1, 256, 256, 1024},
                                           {1, 16, 16, 16},
                                           {1, 1, 128, 128},
                                           {1, 128, 1, 128},
                                           {64, 4, 4, 4}}) {
        if (isa == Isa::Plain && m * n * k > 1 << 21) continue;
        tile::MmaDesc d;
        d.lhs_rhs = c.in;
        d.acc = c.acc;
        d.batch = batch;
        d.m = m;
        d.n = n;
        d.k = k;
        const std::string name = "mma/" + std::string(build_name(isa)) + "/" + std::string(tile::info(c.in).name) +
                                 "_" + std::string(tile::info(c.acc).name) + "/" + std::to_string(batch) + "x" +
                                 std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
        benchmark::RegisterBenchmark(name.c_str(), run_mma, isa, d);
        if (m == 128 && n == 128) {
          d.rhs_rs = 1;
          d.rhs_cs = k;
          benchmark::RegisterBenchmark((name + "/rhs_transposed").c_str(), run_mma, isa, d);
          d.rhs_rs = d.rhs_cs = 0;
          d.lhs_rs = 1;
          d.lhs_cs = m;
          benchmark::RegisterBenchmark((name + "/lhs_transposed").c_str(), run_mma, isa, d);
        }
      }
    }
    for (const ElementType in : {ElementType::F8E4M3FN, ElementType::F4E2M1FN}) {
      tile::MmaScaledDesc d;
      d.lhs_rhs = in;
      d.m = d.n = 128;
      d.k = 64;
      benchmark::RegisterBenchmark(
          ("mma/" + std::string(build_name(isa)) + "/scaled_" + std::string(tile::info(in).name) + "/1x128x128x64")
              .c_str(),
          run_scaled, isa, d);
    }
  }
}

[[maybe_unused]] const bool added = (add_all(), true);

}  // namespace
