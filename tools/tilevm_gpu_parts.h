// What the commands of the GPU part share. Only in builds that have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/device/device_gpu.h"
#include "tools/tilevm_gpu.h"

namespace tile::cli {

[[nodiscard]] CompileLimits compile_limits(const GpuSettings& settings);
[[nodiscard]] CompileOptions compile_options(const GpuSettings& settings);
[[nodiscard]] GpuOptions gpu_options(const GpuSettings& settings, std::shared_ptr<const ValidModule> module, const CommonOptions& common);
/// @param built  of the same kernel, if it was assembled: what it needs is said, too
void print_remarks(const CompiledKernel& kernel, const BuiltKernel* built, const Module& module, const Function& entry, bool json);
void print_remarks(const std::vector<Remark>& remarks, const Module& module, const Function& entry, bool json);

/// An entry of a module in a file.
struct Picked {
  std::shared_ptr<const ValidModule> module;
  const Function* entry = nullptr;
};
/// The job's module without an entry.
[[nodiscard]] Result<Picked> pick_all(const Job& job, const CommonOptions& common, Diagnostics& diags);
[[nodiscard]] Result<Picked> pick_entry(const Job& job, const CommonOptions& common, Diagnostics& diags);

/// The assembler, with the GPU if there is one, and the target to compile for.
struct Linking {
  std::shared_ptr<cuda::Gpu> gpu;  ///< may be null; its context is current
  std::unique_ptr<cuda::Linker> linker;
  std::string target;
};
/// @param cache  whether the cache's folder may be used to remember the assembler's version
[[nodiscard]] Result<Linking> find_linking(const std::string& wanted_target, Diagnostics& diags, bool cache = true, bool version = true);

/// The machine code of a cubin as text. E0904 where nvdisasm is missing.
[[nodiscard]] Result<std::string> disassemble(const std::vector<uint8_t>& cubin, Diagnostics& diags);

}  // namespace tile::cli
