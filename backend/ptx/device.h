// The device interface: every operation of a GPU thread beyond plain arithmetic and control flow. The lowering sees this class
// only. PtxDevice emits NVPTX intrinsics and inline PTX; HostDevice emits calls `emu_*(thread, site, ...)` into backend/emulate.
// Conventions: shared addresses are i32 byte offsets, global addresses i64; predicates are i1 arguments (nullptr = true);
// accesses move lists of scalars, aligned to the whole; nothing returns before its result exists.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/plan/target.h"
#include "vm/base/diagnostics.h"
#include "vm/base/result.h"

namespace tile {

using llvm::Value;
using Values = std::vector<Value*>;

enum class MemOrder : uint8_t { Weak, Relaxed, Acquire, Release, AcqRel };
enum class MemScope : uint8_t { Block, Device, System };
enum class RmwOp : uint8_t { And, Or, Xor, Add, AddF, Max, Min, UMax, UMin, Xchg, MaxF, MinF };
enum class ShuffleMode : uint8_t { Xor, Up, Down, Index };
/// Approximate instructions of the GPU's special function unit (f32, no flush of subnormal results where PTX has the choice).
enum class ApproxOp : uint8_t { Ex2, Lg2, Rcp, Rsqrt, Sqrt, Sin, Cos, Tanh };
/// mma.sync shapes; fragments as backend/plan/layout.h lays them out, packed into 32-bit registers (f64: one double each). The shapes of
/// sm_75 are told by the number of words: F16F32 with two of A and one of B is m16n8k8, S8... with one each is m8n8k16.
enum class MmaKind : uint8_t {
  F16F32,    ///< m16n8k16 f16 x f16 + f32
  BF16F32,   ///< m16n8k16 bf16 x bf16 + f32
  F16F16,    ///< m16n8k16 f16 x f16 + f16 (accumulator: two packed registers)
  TF32F32,   ///< m16n8k8 tf32 x tf32 + f32
  S8, U8, S8U8, U8S8,  ///< m16n8k32 -> s32, A's type first
  F64,       ///< m8n8k4; with 2, 4, 8 of A m16n8k4, k8, k16 (sm_90 and newer)
  F8F32,     ///< m16n8k32 e4m3 or e5m2 (sm_89 and newer): formats in mma()'s arguments
};

class DeviceOps {
 public:
  DeviceOps(llvm::Module& m, const Target& t) : b(m.getContext()), module(m), target(t) {}
  virtual ~DeviceOps() = default;
  llvm::IRBuilder<> b;
  llvm::Module& module;
  const Target& target;
  /// Operation that the code being emitted belongs to; the emulation names it in reports.
  uint32_t site = 0;
  /// Launches may be of clusters; set before begin().
  bool clusters = false;

  // --- kernel shell ---
  /// Begins the kernel: parameters are 64-bit words. Gives their values (i64). Sets the insertion point. Registers are kept few enough for
  /// `blocks` blocks on an SM.
  virtual Values begin(const std::string& name, unsigned words, unsigned threads, unsigned blocks) = 0;
  virtual void end() = 0;                ///< returns from the kernel

  // --- identity, i32 ---
  virtual Value* thread_id() = 0;        ///< 0 .. threads-1
  virtual Value* block_id(unsigned axis) = 0;
  virtual Value* grid_size(unsigned axis) = 0;

  virtual Value* shared_base() = 0;      ///< i32: address of the dynamic shared memory, 1024-byte aligned

  // --- memory. `type` is an integer of 8, 16, 32 or 64 bits; n * its size is 1, 2, 4, 8 or 16 bytes ---
  virtual Values load_shared(llvm::Type* type, unsigned n, Value* addr, Value* pred = nullptr) = 0;  ///< 0 where pred is false
  virtual void store_shared(std::span<Value* const> values, Value* addr, Value* pred = nullptr) = 0;
  /// Elements are `otherwise` (same type) where pred is false; nullptr: 0.
  virtual Values load_global(llvm::Type* type, unsigned n, Value* addr, MemOrder order, MemScope scope, Value* pred = nullptr,
                             Value* otherwise = nullptr) = 0;
  virtual void store_global(std::span<Value* const> values, Value* addr, MemOrder order, MemScope scope, Value* pred = nullptr) = 0;
  /// Old value (0 where pred is false). `type`: i16 (only AddF, with is_bf16 or not, and Xchg), i32, i64; AddF on i32/i64 words is f32/f64.
  virtual Value* atomic_rmw(RmwOp op, Value* value, bool is_bf16, Value* addr, MemOrder order, MemScope scope, Value* pred) = 0;
  virtual Value* atomic_cas(Value* expected, Value* desired, Value* addr, MemOrder order, MemScope scope, Value* pred) = 0;
  /// Adds floats (f32 as i32, f16 or bf16 as i16) to neighbours in memory, each atomically on its own; an access of 2 to 16 bytes.
  virtual void reduce_add(std::span<Value* const> values, bool is_bf16, Value* addr, MemOrder order, MemScope scope, Value* pred) {
    for (size_t k = 0; k < values.size(); ++k) {
      const auto bytes = static_cast<uint64_t>(values[k]->getType()->getIntegerBitWidth() / 8);
      atomic_rmw(RmwOp::AddF, values[k], is_bf16, b.CreateAdd(addr, b.getInt64(k * bytes)), order, scope, pred);
    }
  }
  virtual void fence(MemOrder order, MemScope scope) = 0;

  // --- threads ---
  virtual void barrier() = 0;                                                     ///< all threads of the block
  virtual Value* shuffle(ShuffleMode mode, Value* value, Value* lane_or_delta) = 0;   ///< i32 among the 32 lanes; out of range: own value
  virtual Value* any(Value* predicate) = 0;                                       ///< of the warp
  virtual Value* ballot(Value* predicate) = 0;                                    ///< i32, one bit per lane

  // --- asynchronous copies, sm_80 and newer ---
  /// Fills 4, 8 or 16 bytes of shared memory: `size` (i32; nullptr: all) from global memory, the rest with zeros. Nothing where `when` is
  /// false.
  virtual void cp_async(Value* shared, Value* global, unsigned bytes, Value* size, Value* when = nullptr) = 0;
  virtual void cp_async_commit() = 0;
  virtual void cp_async_wait(unsigned pending) = 0;

  // --- matrices ---
  virtual Values ldmatrix(unsigned matrices, bool transpose, Value* row_addr) = 0;    ///< 1, 2 or 4; i32 each
  /// D = A x B + C. A, B: i32 words (F64: doubles); C, D: floats (S8...: i32; F16F16: i32 packed; F64: doubles).
  virtual Values mma(MmaKind kind, std::span<Value* const> a, std::span<Value* const> bb, std::span<Value* const> c, bool a_e5m2 = false,
                     bool b_e5m2 = false) = 0;

  // --- arithmetic that LLVM has no portable spelling for ---
  virtual Value* approx(ApproxOp op, Value* f32) = 0;
  /// x * y + z rounded once, in half, bfloat, float or double.
  virtual Value* fma(Value* x, Value* y, Value* z) = 0;
  virtual Value* sqrt(Value* x) = 0;                                              ///< float or double, correctly rounded
  /// The same i32 or i64, in a form that no optimisation moves or takes apart: what is computed from it stays where it is used.
  virtual Value* opaque(Value* v) { return v; }
  /// Four of the eight bytes of two i32, low first; each of the selector's lower four nibbles (0..7) chooses one.
  virtual Value* byte_permute(Value* low, Value* high, Value* selector) = 0;
  virtual Value* clock() = 0;                                                     ///< i64
  /// In every loop of the program: where the emulation stops those that do not end and use no other device operation.
  virtual void poll() {}

  // --- launches of one stream ---
  /// wait: until the grids before this one are done. Else: the grids behind it may start. Nothing where launches are not chained.
  virtual void grid_dependency([[maybe_unused]] bool wait) {}

  // --- ends ---
  /// Writes the trap into the mailbox (first one wins) and ends the thread. The block after it is unreachable.
  virtual void trap(uint32_t code, Value* mailbox) = 0;

  // --- hopper units; fatal on targets without them ---
  // Declared in device_hopper.h as they come into use.
};

/// PTX of a module that `fill` makes with make_ptx_device(), optimised as at -O3.
[[nodiscard]] Result<std::string> ptx_of(const std::function<void(llvm::Module&)>& fill, const Target& target, Diagnostics& diags);

std::unique_ptr<DeviceOps> make_ptx_device(llvm::Module&, const Target&);
std::unique_ptr<DeviceOps> make_host_device(llvm::Module&, const Target&);

}  // namespace tile
