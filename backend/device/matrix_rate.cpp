#include "backend/device/matrix_rate.h"

#include <algorithm>
#include <cmath>

#include "backend/plan/target.h"

namespace tile {

using cuda::MatrixType;

std::optional<MatrixType> product_type(const Module& module, const Function& entry) {
  for (InstId i = 0; i < entry.insts.size(); ++i) {
    if (entry.insts[i].op == Opcode::MmaI) return MatrixType::I8I32;
    if (entry.insts[i].op != Opcode::MmaF) continue;
    const bool f16_sums = module.types.element_of(entry.type(entry.insts[i].first_result)) == ElementType::F16;
    switch (module.types.element_of(entry.type(entry.operands(i)[0]))) {
      case ElementType::F16: return f16_sums ? MatrixType::F16F16 : MatrixType::F16F32;
      case ElementType::BF16: return MatrixType::BF16F32;
      case ElementType::TF32: return MatrixType::TF32F32;
      case ElementType::F64: return MatrixType::F64F64;
      case ElementType::F8E4M3FN:
      case ElementType::F8E5M2: return MatrixType::F8F32;
      default: return std::nullopt;
    }
  }
  return std::nullopt;
}

Result<MatrixRate> measure_matrix_rate(const cuda::Gpu& gpu, const cuda::Linker& linker, MatrixType type, const std::string& target, const cuda::DeviceMemory& flush, Diagnostics& diags) {
  constexpr unsigned kRounds = 20;
  constexpr double kSeconds = 1e-3;          // of one launch: short enough that power does not lower the clocks, long beside its start
  constexpr uint32_t kFirst = 64, kMost = 1u << 24;
  MatrixRate rate;
  const auto t = find_target(target);
  if (!t) return rate;
  const auto kernel = cuda::matrix_rate_kernel(type, target, t->sm, t->ptx_version);
  if (!kernel) return rate;
  const auto linked = linker.link({kernel->symbol, kernel->ptx, target}, diags);
  if (!linked) return Failed;
  const auto loaded = gpu.load(linked->cubin, kernel->symbol, 0, diags);
  if (!loaded) return Failed;
  const uint32_t blocks = kernel->blocks_per_sm * std::max(1u, gpu.facts().sm_count);
  const auto out = gpu.allocate(size_t{4} * blocks * kernel->threads, "measuring the rate of matrix products", diags);
  if (!out) return Failed;
  const cuda::LaunchShape shape{{blocks, 1, 1}, kernel->threads, 0, 1};
  uint32_t repetitions = kFirst;
  const auto once = [&] {
    const cuda::LaunchParam params[] = {{out->address(), 8}, {repetitions, 4}};
    return gpu.time_launch(*loaded, shape, params, flush, diags);
  };
  for (int i = 0; i < 3; ++i) {              // the first launch may be a slow one, and a short one is mostly its start
    const auto took = once();
    if (!took) return Failed;
    repetitions = static_cast<uint32_t>(std::clamp(repetitions * kSeconds / std::max(*took, 1e-6), double{kFirst}, double{kMost}));
  }
  for (unsigned r = 0; r < kRounds; ++r) {
    const auto took = once();
    if (!took) return Failed;
    rate.timing.seconds.push_back(*took);
  }
  rate.unit = kernel->unit;
  rate.flops = kernel->flops_per_repetition * repetitions * blocks;
  return rate;
}

}  // namespace tile
