// The instruction set that the interpreter's kernels use: found once at start-up, may be forced lower by tests and
// options.
#pragma once

#include <cstdint>

namespace tile {

/// Builds of the kernels, in ascending order: a machine that can run one can run all before it.
enum class Isa : uint8_t { Plain, Avx2, Avx512 };
inline constexpr int kIsas = 3;

/// The best build that this machine can run (CPU and operating system both).
/// Avx2 stands for AVX2+FMA+F16C, Avx512 for AVX-512 F+BW+DQ+VL besides.
Isa best_isa();

/// The build that dispatch uses now: best_isa() unless force_isa() asked for a lower one.
Isa current_isa();

/// Selects the build for all later kernel calls of the process. Returns false, and changes nothing, for one above
/// best_isa().
/// @thread_safety any thread; kernels already running finish with the build they started with
bool force_isa(Isa isa);

}  // namespace tile
