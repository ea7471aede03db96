// What the GPU part offers to the rest: an entry of a valid module compiled to PTX, or to host code for the emulation.
// No LLVM or driver type is seen here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vm/ir/valid_module.h"

namespace tile {

struct CompileOptions {
  std::string target = "sm_90a";             ///< sm_75, 80, 86, 89, 90, 90a, 100a, 103a, 120a
  unsigned opt_level = 3;                    ///< 0..3, LLVM's
  bool lineinfo = false;                     ///< source lines for profilers
  std::map<std::string, std::string> plan;   ///< choices forced by `--plan key=value`
  bool keep_llvm = false;                    ///< fill CompiledKernel::llvm
};

/// One line of `--remarks`.
struct Remark {
  InstId inst = kNone;
  std::string what;                          ///< unit used: "mma.sync m16n8k16", "ld.global.v4"...
  std::string why;                           ///< why not a better one; may be empty
};

/// A kernel's parameters as the device takes them: every parameter of the entry, in order, as one 64-bit word (the bits of a
/// scalar zero-extended, the address of a pointer), then the hidden ones: the mailbox's address, and one word per global of the
/// module (its address).
struct CompiledKernel {
  std::string entry;                         ///< symbol in the PTX
  std::string ptx;
  std::string llvm;                          ///< if asked for
  std::string plan;                          ///< printable plan
  std::string target;
  uint32_t threads = 128;                    ///< per block
  uint32_t shared_bytes = 0;                 ///< dynamic shared memory
  uint32_t cluster = 1;                      ///< CTAs per cluster along x
  std::vector<Remark> remarks;
};

/// What a running kernel tells the host: written by the first block that fails, and by prints. Lives in memory that both see.
/// Layout is part of the kernel's ABI (backend/ptx/lower_print.cpp, backend/cuda/mailbox.cpp, backend/emulate).
struct Mailbox {
  uint32_t trap;          ///< 0: none. Set by compare-and-swap from 0 to 1, then the fields below are written
  uint32_t code;          ///< numeric part of the T01xx diagnostic
  uint32_t inst;          ///< InstId
  uint32_t block[3];
  uint32_t ring_bytes;    ///< capacity of the print ring that follows the struct; records beyond it are lost and counted
  uint32_t lost;
  uint64_t head;          ///< bytes claimed so far (atomic add); a record is {u32 bytes, u32 inst, u32 block[3], u32 pad, payload}
};
static_assert(sizeof(Mailbox) == 40);

/// @error E0808 an operation, type or target that is not supported, with the reason; E0807 bad target
[[nodiscard]] Result<CompiledKernel> compile_ptx(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags);

/// A kernel compiled for the host emulation, loaded and ready.
class EmulatedKernel {
 public:
  virtual ~EmulatedKernel() = default;
  [[nodiscard]] virtual const CompiledKernel& kernel() const = 0;
  /// Address of `void kernel(ptr thread, ptr params)` and the bytes of stack it needs.
  [[nodiscard]] virtual void* code() const = 0;
  [[nodiscard]] virtual size_t frame_bytes() const = 0;
};
[[nodiscard]] Result<std::unique_ptr<EmulatedKernel>> compile_emulated(const ValidModule& module, const Function& entry, const CompileOptions& options,
                                                                       Diagnostics& diags);

}  // namespace tile
