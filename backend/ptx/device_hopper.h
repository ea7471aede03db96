// The device interface's part for sm_90 and newer: mbarriers, bulk tensor copies, wgmma, and finer barriers. A device
// that has these units implements both classes; hopper_ops() finds the second. Conventions as in device.h. Nothing of a
// handle's contents may be used before the wait that covers it.
#pragma once

#include <span>
#include <vector>

#include "backend/ptx/device.h"

namespace tile {

/// Accumulator of wgmma m64nN in one thread. A slot, not values: between issue and wait the matrix unit owns these
/// registers. On PTX mem2reg makes registers of the slots.
struct WgmmaAccumulator {
  MmaKind kind = MmaKind::F16F32;
  unsigned n = 0;
  std::vector<Value*> slots;                 ///< pointer to each register (PTX)
  Value* base = nullptr;                     ///< pointer to all of them (host)
  /// n / 2 floats or i32; F16F16: n / 4 packed i32. Register 4 j + i of warp w: row 16 w + g + 8 (i >> 1), column 8 j +
  /// 2 t + (i & 1).
  [[nodiscard]] unsigned registers() const { return kind == MmaKind::F16F16 ? n / 4 : n / 2; }
};

/// A or B of wgmma: in shared memory as its descriptor says, or (A only) in registers, laid out as A of mma.sync for
/// rows 16 w...
struct WgmmaOperand {
  Value* descriptor = nullptr;               ///< i64
  Values registers;                          ///< 4 x i32
  bool mn_major = false;                     ///< 16-bit types in shared memory only
  bool e5m2 = false;
};

class HopperOps {
 public:
  virtual ~HopperOps() = default;

  // --- barriers of some threads. Whole warps; `count` is the number of threads, a multiple of 32; `id` 1 to 15 ---
  virtual void named_barrier(unsigned id, unsigned count) = 0;
  virtual void named_barrier_arrive(unsigned id, unsigned count) = 0;           ///< does not wait
  /// The same where `id` (i32) is known at run time.
  virtual void named_barrier(Value* id, unsigned count) = 0;
  virtual void named_barrier_arrive(Value* id, unsigned count) = 0;
  virtual void warp_sync() = 0;
  /// The value, the same in all lanes, in a form that the assembler knows to be so.
  virtual Value* warp_uniform(Value* i32) = 0;

  // --- mbarriers: 8 bytes of shared memory each ---
  virtual void mbarrier_init(Value* bar, unsigned count) = 0;
  /// After the initialisations, by the thread that made them, before a barrier of the block.
  virtual void fence_mbarrier_init() = 0;
  virtual void mbarrier_arrive(Value* bar) = 0;
  /// Does not wait: the thread arrives when all its cp.async are done. Publishes these alone, not what else the thread did.
  virtual void cp_async_arrive(Value* bar) = 0;
  virtual void mbarrier_arrive_expect(Value* bar, Value* bytes) = 0;  ///< arrives, and announces bytes of bulk loads
  /// Waits for the end of phase number `phase` (i32, the first is 0). PTX takes its lowest bit: the number must be that
  /// of the phase under way or of the one before. A ring's first wait for an empty stage is left out, not asked with
  /// phase -1. `cluster`: threads of other blocks arrive at it, too, and what they did before is to be seen.
  virtual void mbarrier_wait(Value* bar, Value* phase, bool cluster = false) = 0;
  /// Makes this thread's writes to shared memory, and those it knows of, visible to bulk copies and wgmma; those to global memory, too, unless
  /// `shared_only`.
  virtual void fence_proxy_async(bool shared_only = false) = 0;

  // --- bulk tensor copies, by one thread. `map`: i64, address of the tensor map; coordinates i32, innermost first ---
  virtual void tma_load(Value* map, std::span<Value* const> at, Value* shared, Value* bar) = 0;
  virtual void tma_store(Value* map, std::span<Value* const> at, Value* shared) = 0;
  /// Combines global memory with the tile, each element atomically: And, Or, Xor, Add, AddF, Max, Min, UMax, UMin. Waited for as a store.
  virtual void tma_reduce(RmwOp op, Value* map, std::span<Value* const> at, Value* shared) = 0;
  /// The same for `bytes` (i32) bytes, a multiple of 16, of elements of the integer type `type`; with AddF floats of its size, bf16 if `is_bf16`.
  virtual void bulk_reduce(RmwOp op, llvm::Type* type, bool is_bf16, Value* global, Value* shared, Value* bytes) = 0;
  virtual void bulk_commit() = 0;
  virtual void bulk_wait(unsigned pending, bool read) = 0;  ///< read: until the sources may be overwritten

  // --- wgmma, by all threads of a warpgroup ---
  virtual WgmmaAccumulator wgmma_accumulator(MmaKind kind, unsigned n) = 0;
  virtual void
  wgmma_fence() = 0;  ///< before the first wgmma, and after each ordinary access to an accumulator or A registers
  virtual void wgmma(WgmmaAccumulator& d, const WgmmaOperand& a, const WgmmaOperand& b,
                     Value* scale_d = nullptr) = 0;  ///< false: D = A x B
  virtual void wgmma_commit() = 0;
  /// `in_flight`: all accumulators of groups not yet waited for. `held`: registers of A that the groups waited for read,
  /// which may be used for other things from here on.
  virtual void wgmma_wait(unsigned pending, std::span<WgmmaAccumulator* const> in_flight,
                          std::span<Value* const> held = {}) = 0;
  virtual Values wgmma_read(WgmmaAccumulator& d) = 0;
  virtual void wgmma_write(WgmmaAccumulator& d, std::span<Value* const> values) = 0;
  /// What the accumulator holds is not wanted: the next wgmma overwrites it (scale_d is false). Without this, a loop around
  /// would carry it, in registers, through all that it does besides.
  virtual void wgmma_forget(WgmmaAccumulator& d) = 0;

  virtual void stmatrix(unsigned matrices, bool transpose, Value* row_addr, std::span<Value* const> words) = 0;
  virtual void max_registers(bool raise, unsigned n) = 0;

  // --- clusters: blocks that run at the same time and reach each other's shared memory. A block may use another's once a barrier of the
  // cluster has shown that it runs, and it must be kept from ending before. All work without clusters, too ---
  virtual Value* cluster_rank() = 0;                    ///< i32: number of the block in its cluster
  virtual Value* cluster_size() = 0;                    ///< i32
  /// Barrier of all threads of the cluster, in two parts; by whole warps.
  virtual void cluster_arrive() = 0;
  virtual void cluster_wait() = 0;
  /// i32: the address that block `rank` has for this place of its shared memory. For the operations below alone.
  virtual Value* map_shared(Value* addr, Value* rank) = 0;
  virtual Values load_cluster(llvm::Type* type, unsigned n, Value* addr) = 0;
  virtual void store_cluster(std::span<Value* const> values, Value* addr) = 0;
  /// i32 or i64, no floats; old value. Seen by the cluster, orders nothing.
  virtual Value* atomic_cluster(RmwOp op, Value* value, Value* addr) = 0;
  /// `bytes`: announced, or nullptr.
  virtual void mbarrier_arrive_cluster(Value* bar, Value* bytes = nullptr) = 0;
  /// tma_load to the same place of all blocks whose bits `mask` (i32) has; each part completes on the mbarrier at the place of `bar`.
  virtual void tma_load_multicast(Value* map, std::span<Value* const> at, Value* shared, Value* bar, Value* mask) = 0;
};

/// nullptr if the device has no such units.
inline HopperOps* hopper_ops(DeviceOps& d) { return dynamic_cast<HopperOps*>(&d); }

/// Descriptor of a tile in shared memory, as far as it is constant: add (address >> 4). `swizzle` as tensor maps number
/// it: 0 none, 1, 2, 3 = 32, 64, 128 bytes. Offsets in bytes.
constexpr uint64_t wgmma_descriptor(uint32_t leading, uint32_t stride, unsigned swizzle) {
  return uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 | uint64_t{(4 - swizzle) % 4} << 62;
}

}  // namespace tile
