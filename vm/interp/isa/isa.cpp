// CPU detection for the interpreter's kernels.
#include "vm/interp/isa/isa.h"

#include <atomic>

namespace tile {
namespace {

Isa detect() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  // The builtins also ask XGETBV whether the operating system saves the wide registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // Every processor with AVX2 has F16C; gcc 12 and clang 14 disagree on the feature's name, so it is not asked for.
  if (!avx2) return Isa::Plain;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::Avx512 : Isa::Avx2;
#else
  return Isa::Plain;
#endif
}

std::atomic<Isa>& forced() {
  static std::atomic<Isa> isa{best_isa()};
  return isa;
}

}  // namespace

Isa best_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa current_isa() {
  return forced().load(std::memory_order_relaxed);
}

bool force_isa(Isa isa) {
  if (isa > best_isa()) return false;
  forced().store(isa, std::memory_order_relaxed);
  return true;
}

}  // namespace tile
