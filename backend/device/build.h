// From an entry to a cubin: compile, assemble, and keep the result in the cache.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/compile.h"
#include "backend/cuda/cache.h"
#include "backend/cuda/cubin.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/link.h"
#include "backend/device/guarded.h"

namespace tile {

/// What an entry became.
struct BuiltKernel {
  cuda::CachedKernel kernel;
  cuda::CacheUse use = cuda::CacheUse::Off;
  std::string linker;                  ///< version
  double seconds = 0;                  ///< that compiling and assembling took; 0 if it came from the cache
  CompiledKernel compiled;             ///< empty if it came from the cache
  std::vector<std::string> info;       ///< of the assembler; empty if it came from the cache
  std::vector<Remark> lifted;          ///< the assembler's advice on speed, and spills if BuildOptions::verbose
  std::string target;                  ///< that it was compiled for
};

/// One line about the whole kernel: threads, registers, spills, shared memory, blocks of a multiprocessor and what limits them.
/// Spills are known only of a kernel that was built with BuildOptions::verbose.
struct ResourceRemark {
  unsigned threads = 0, shared_bytes = 0;
  std::optional<cuda::KernelNeeds> needs;
  std::optional<cuda::Spills> spills;
  std::optional<cuda::Occupancy> occupancy;
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] ResourceRemark resources(const BuiltKernel& built);

struct BuildOptions {
  CompileOptions compile;
  bool cache = true;    ///< off: neither read nor written
  bool anew = false;    ///< do not read the cache: what only a compilation tells is wanted
  bool verbose = false; ///< fill BuiltKernel::info
  CompileLimits limits;
};

/// Everything that building the entry depends on. E0801.. are not among its errors: only L0101, where the module is too large to be hashed.
[[nodiscard]] Result<cuda::CacheKey> kernel_key(const ValidModule& module, const Function& entry, const CompileOptions& options, const std::string& linker, Diagnostics& diags);

/// @error those of compile_ptx(), E0915
[[nodiscard]] Result<BuiltKernel> build_kernel(const ValidModule& module, const Function& entry, const BuildOptions& options, const cuda::Linker& linker,
                                               const cuda::Cache& cache, Diagnostics& diags);

/// The target for a device of this compute capability (90 for 9.0): the newest that it runs; empty where there is none.
[[nodiscard]] std::string target_for(unsigned sm);
/// Whether code for this target runs on a device of this compute capability.
[[nodiscard]] bool runs_on(const std::string& target, unsigned sm);

/// ptxas where it is found; else the driver's linker if `driver` is not null, whose context must be current. ptxas of a newer major
/// version than the driver's makes cubins that it does not load, and one that is older than `target` does not know it, so the driver's linker is taken then.
/// @param memory, ask  as for make_ptxas(); beside a driver, ptxas that nothing but the search chose is asked anyway
/// @error E0915 there is neither
[[nodiscard]] Result<std::unique_ptr<cuda::Linker>> choose_linker(const cuda::Driver* driver, unsigned device_sm, const std::string& target, Diagnostics& diags, const std::string& memory = {},
                                                                  bool ask = true);

/// Names this build of the program: version, commit and the linker's build id, so that a cache never answers for another compiler.
[[nodiscard]] const std::string& compiler_identity();

}  // namespace tile
