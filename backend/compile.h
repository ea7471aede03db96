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
  bool optimise_host = false;                ///< opt_level also for code of the emulation, which is not optimised otherwise
  bool lineinfo = false;                     ///< source lines for profilers
  std::map<std::string, std::string> plan;   ///< choices forced by `--plan key=value`
  /// The value of a forced choice; empty: not forced.
  [[nodiscard]] std::string choice(const char* key) const {
    const auto it = plan.find(key);
    return it == plan.end() ? std::string() : it->second;
  }
  bool keep_llvm = false;                    ///< fill CompiledKernel::llvm
  bool instruction_lines = false;            ///< instead of source lines: line N of file "instructions" is instruction N - 1
};

/// One line of `--remarks`.
struct Remark {
  InstId inst = kNone;
  std::string what;                          ///< unit used: "mma.sync m16n8k16", "ld.global.v4"...
  std::string why;                           ///< why not a better one; may be empty
  uint32_t stages = 0;                       ///< of the ring that feeds it or that it fills; 0: none
};

/// A tensor map that the host encodes at launch from the entry's arguments, and whose address the kernel gets as a hidden parameter.
struct TensorMapSpec {
  struct Number {
    int64_t constant = 1;                    ///< counts if `param` is negative
    int32_t param = -1;                      ///< parameter of the entry, read as unsigned
  };
  uint32_t base = 0;                         ///< parameter with the address of element 0
  ElementType element = ElementType::F16;
  std::vector<Number> dims, strides;         ///< elements, innermost dimension first; strides[0] is one
  std::vector<uint32_t> box;                 ///< elements
  unsigned swizzle = 0;                      ///< 0 none, 1, 2, 3: 32, 64, 128 bytes
  bool round_tf32 = false;                   ///< f32 elements are rounded to tf32 on the way
};

/// A kernel's parameters as the device takes them: every parameter of the entry, in order, as one 64-bit word (the bits of a
/// scalar zero-extended, the address of a pointer), then the hidden ones: the mailbox's address, one word per global of the
/// module (its address), one word per tensor map (its address in device memory, a multiple of 64), and, only if
/// local_bytes_per_block is not zero, the address (a multiple of 256) of that many bytes for each block of the grid. A kernel with a
/// linear grid has four more: the extents of the program's grid along x, y and z, and the number of the launch's first block, x counting
/// fastest. It is launched with blocks along x only.
struct CompiledKernel {
  std::string entry;                         ///< symbol in the PTX
  std::string ptx;
  std::string llvm;                          ///< if asked for
  std::string plan;                          ///< printable plan
  std::string target;
  uint32_t threads = 128;                    ///< per block
  uint32_t shared_bytes = 0;                 ///< dynamic shared memory
  uint32_t cluster = 1;                      ///< CTAs per cluster along x, where that divides the grid
  uint64_t local_bytes_per_block = 0;        ///< of device memory, for the entry's allocas
  bool linear_grid = false;                  ///< made with the plan's "grid" set to "linear"
  bool loops = false;                        ///< made with "grid" set to "loop": has the parameters of a linear grid, and any number of blocks runs it
  std::vector<TensorMapSpec> maps;
  std::vector<Remark> remarks;
};

/// What a running kernel tells the host: written by the first block that fails, and by prints. Lives in memory that both see.
/// Layout is part of the kernel's ABI (backend/ptx/lower_print.cpp, backend/device/mailbox.cpp).
struct Mailbox {
  uint32_t trap;          ///< 0: none. Set by compare-and-swap from 0 to 1, then the fields below are written
  uint32_t code;          ///< numeric part of the T01xx diagnostic
  uint32_t inst;          ///< InstId
  uint32_t block[3];
  uint32_t ring_bytes;    ///< capacity of the print ring that follows the struct; records beyond it are lost and counted
  uint32_t lost;
  uint64_t head;          ///< bytes claimed so far (atomic add); a record is {u32 bytes, u32 inst, u32 block[3], u32 complete, payload}
};
static_assert(sizeof(Mailbox) == 40);

/// @error E0808 an operation, type or target that is not supported, with the reason, or a target that there is not
[[nodiscard]] Result<CompiledKernel> compile_ptx(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags);

/// From now on this process ends with `status` where memory is missing, in LLVM too, instead of aborting.
void exit_without_memory(int status);

/// What a launch must know of a kernel before it is compiled.
struct LaunchNeeds {
  /// Of the kernel that compile_ptx() makes from the same options. Where the host cannot encode one of them for a launch, it compiles the entry
  /// again with the plan's "store" set to "direct", and if that was not enough with "tma" set to "off".
  std::vector<TensorMapSpec> maps;
  /// It should be compiled and launched with the plan's "grid" set to "loop", if the grid has fewer than 2^31 blocks.
  bool loop_pays = false;
};
[[nodiscard]] Result<LaunchNeeds> launch_needs(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags);

/// Where the allocas of an entry lie in the device memory that each block has for them. A place is used again when the alloca runs again.
struct LocalMemory {
  std::map<InstId, uint64_t> offset;         ///< without allocas that the lowering refuses
  uint64_t bytes = 0;                        ///< for each block; a multiple of 256
};
[[nodiscard]] LocalMemory local_memory(const Module& module, const Function& entry);

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
