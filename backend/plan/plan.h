// The plan of a kernel: how many warps a block has, the layout of every tile, the unit of every matrix product. Made from the IR alone,
// before any code is emitted; printable (`--emit plan`).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backend/compile.h"
#include "backend/plan/layout.h"
#include "backend/ptx/target.h"
#include "vm/ir/module.h"

namespace tile {

/// True for operations whose result element depends on the operands' elements at the same place only.
[[nodiscard]] bool is_elementwise(Opcode op);

enum class MmaUnit : uint8_t {
  Fma,   ///< operands in shared memory, one multiply-add per element and k
  Sync,  ///< mma.sync
};

struct MmaPlan {
  MmaUnit unit = MmaUnit::Fma;
  MmaShape shape;
  bool tf32_from_f32 = false;
  Layout a, b, result;        ///< a and b count for Sync
  std::string name;           ///< "mma.sync.m16n8k16.f16"
  std::string why;            ///< why not a better unit
};

struct KernelPlan {
  unsigned warp_bits = 2;                 ///< log2 of the warps of a block
  std::vector<Layout> layout;             ///< by ValueId; tiles only
  std::map<InstId, MmaPlan> mma;
  std::vector<Remark> remarks;

  [[nodiscard]] unsigned threads() const { return 32u << warp_bits; }
  [[nodiscard]] std::string print(const Module& m, const Function& f) const;
};

/// @error E0808 tiles that no layout of this machine can hold
[[nodiscard]] Result<KernelPlan> make_plan(const Module& m, const Function& f, const Target& target, const CompileOptions& options, Diagnostics& diags);

/// Order of a view's tile dimensions, the one with the smallest stride in memory first.
[[nodiscard]] std::vector<unsigned> memory_order(const Module& m, TypeId view);

}  // namespace tile
