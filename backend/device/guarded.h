// Compiling in a process of its own, so that limits of time and memory can end it, and a crash of LLVM ends only that process.
#pragma once

#include <functional>

#include "backend/compile.h"

namespace tile {

struct CompileLimits {
  double seconds = 300;      ///< of compiling, and of the assembler; 0: no limit
  uint64_t memory_bytes = 0; ///< that either may take beyond what this program has; 0: no limit
};

/// compile_ptx() in a forked process. `meanwhile`, if not empty, is called once here while that process works.
/// @error those of compile_ptx(); L0106 time, L0103 memory, I0001 the process crashed
[[nodiscard]] Result<CompiledKernel> compile_guarded(const ValidModule& module, const Function& entry, const CompileOptions& options, const CompileLimits& limits,
                                                     Diagnostics& diags, const std::function<void()>& meanwhile = {});

}  // namespace tile
