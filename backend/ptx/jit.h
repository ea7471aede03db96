// Loads a module made for the host emulation: machine code for x86-64, linked against the functions of backend/emulate.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "vm/base/diagnostics.h"
#include "vm/base/result.h"

namespace tile {

/// Machine code in memory; freed with the object.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  [[nodiscard]] virtual void* entry() const = 0;
  /// Frames of all functions of the module together: enough for any chain of calls without recursion.
  [[nodiscard]] virtual size_t frame_bytes() const = 0;
};

/// Prepares an empty module: triple and data layout.
void set_up_host_module(llvm::Module& module);

/// Compiles without optimisation: kernels of the emulation run once or twice, and their time goes into the device
/// operations.
/// @error I0001 the module is not valid, or does not link
[[nodiscard]] Result<std::unique_ptr<LoadedCode>> load_host_code(std::unique_ptr<llvm::LLVMContext> context,
                                                                 std::unique_ptr<llvm::Module> module,
                                                                 const std::string& entry, Diagnostics& diags);

}  // namespace tile
