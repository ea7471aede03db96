// The plan of a kernel: how many warps a block has, the layout of every tile, the unit of every matrix product. Made from the IR alone,
// before any code is emitted; printable (`--emit plan`).
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/compile.h"
#include "backend/plan/affine.h"
#include "backend/plan/facts.h"
#include "backend/plan/layout.h"
#include "backend/plan/target.h"
#include "vm/ir/module.h"

namespace tile {

/// True for operations whose result element depends on the operands' elements at the same place only.
[[nodiscard]] bool is_elementwise(Opcode op);

enum class MmaUnit : uint8_t {
  Fma,   ///< operands in shared memory, one multiply-add per element and k
  Sync,  ///< mma.sync
  Group, ///< wgmma: part of a ring (RingPlan)
};

struct MmaPlan {
  MmaUnit unit = MmaUnit::Fma;
  MmaShape shape;
  Layout a, b, result;        ///< a and b count for Sync
  std::string name;           ///< "mma.sync.m16n8k16.f16"
  std::string why;            ///< why not a better unit
};

/// A loop that multiplies tiles of two arrays and does nothing else: bulk copies fill a ring of stages in shared memory ahead of the
/// products, mbarriers say which stages are full and which are empty. Without bulk copies, cp.async of all threads fills them, and a
/// barrier in every trip says that one is full and another one empty.
struct RingPlan {
  struct Operand {
    InstId load = kNone;
    bool mn_major = false;            ///< the contiguous dimension in memory is M or N
    unsigned map = 0;                 ///< index into KernelPlan::maps; bulk copies only
    std::vector<InstId> chain;        ///< reshapes and permutations between the load and the product
    int inner = -1, outer = -1;       ///< dimensions of the view's tile: contiguous, and the other one longer than one
    bool rounds = false;              ///< f32 in memory, rounded to tf32 as fragments are read
    std::vector<int> tile_dim;        ///< for each dimension of the map, innermost first: dimension of the view's tile, -1: none
    std::optional<PointerLoad> pointers;  ///< of cp.async: a load through pointers instead of a view
    ValueId chosen = kNone;           ///< of cp.async: tile of the numbers of the rows, of a view that gathers
    uint32_t table = 0;               ///< offset in shared memory where these numbers stand
    uint32_t offset = 0;              ///< bytes from the start of a stage
    uint32_t row_bytes = 128;         ///< of a panel: the swizzle's span
    uint32_t rows = 0, panels = 0;
    [[nodiscard]] uint32_t panel_bytes() const { return rows * row_bytes; }
    [[nodiscard]] uint32_t bytes() const { return panel_bytes() * panels; }
    [[nodiscard]] unsigned swizzle() const { return row_bytes == 128 ? 3 : row_bytes == 64 ? 2 : 1; }
  };
  InstId loop = kNone, mma = kNone;
  /// A product outside of such loops: `loop` is the product itself, and its K is cut into `trips` stages.
  bool single = false;
  unsigned trips = 0;
  /// Of a single product: its left operand comes through registers, in the layout of an accumulator; `a` is unused.
  bool a_registers = false;
  unsigned carried = 0;               ///< position of the accumulator among the loop's carried values
  ValueId condition = kNone;          ///< of cp.async and wgmma: trips where this is false have no product
  bool copies = false;                ///< stages are filled by cp.async of all threads instead of bulk copies
  bool sync = false;                  ///< products by mma.sync from fragments read by every warp; else by wgmma
  /// wgmma: the rows of its M are columns of the result, whose transpose it computes: its first operand P is B.
  bool swapped = false;
  /// wgmma: P comes through registers, because its type has no form with M contiguous in shared memory.
  bool p_registers = false;
  /// wgmma of f8: the unit keeps about 14 bits of a sum, so the sums of each stage are added up outside it.
  bool promote = false;
  ElementType element = ElementType::F16;  ///< of the operands in shared memory; tf32 for f32 rounded on the way
  unsigned element_bytes = 2;
  unsigned m_bits = 0, n_bits = 0, k_bits = 0, group_bits = 0;
  Operand a, b;
  unsigned stages = 0;
  uint32_t barriers = 0;              ///< offset of the full barriers in shared memory; the empty ones follow. Equal: one ring for several loops
  uint32_t stage_bytes = 0;
  std::vector<InstId> index_slice;    ///< scalar instructions of the body that the loads' indices need, in order
  /// wgmma's operands: P has the rows of its M, Q those of its N.
  [[nodiscard]] const Operand& p() const { return swapped ? b : a; }
  [[nodiscard]] const Operand& q() const { return swapped ? a : b; }
  [[nodiscard]] unsigned p_bits() const { return swapped ? n_bits : m_bits; }
  [[nodiscard]] unsigned q_bits() const { return swapped ? m_bits : n_bits; }
  /// Warpgroups share out P's rows, and Q's where P has none left: log2.
  [[nodiscard]] unsigned p_groups() const { return std::min(group_bits, p_bits() - 6); }
  [[nodiscard]] unsigned q_groups() const { return group_bits - p_groups(); }
  [[nodiscard]] unsigned k_steps() const { return 1u << (k_bits + log2_of(element_bytes) - 5); }  ///< of a stage: 32 bytes of K each
  [[nodiscard]] Layout wgmma_layout() const;   ///< of the result
  /// Of the first stage: behind the barriers of all rings. Rings are never under way together, so their stages share memory, also with the
  /// scratch space.
  static constexpr uint32_t kFirstStage = 1024;
  static constexpr uint32_t kSharedBytes = 227 * 1024;  ///< of a block
  static constexpr uint32_t kReserved = 1024;           ///< that the system takes of each block
  static constexpr unsigned kMaxStages = 6;
  [[nodiscard]] uint32_t end() const { return kFirstStage + stages * stage_bytes; }
};

/// A loop that computes with products of streamed tiles, as attention does: bulk copies fill the stages as in a ring, each product waits for
/// its result, and the rest of the loop is code like any other. The left operand comes from registers.
struct StreamPlan {
  struct Product {
    InstId mma = kNone;
    size_t load = 0;                  ///< of the right operand: index into `loads`
    unsigned m_bits = 0, n_bits = 0, k_bits = 0;
    bool bf16 = false;
    bool shared_left = false;         ///< the left operand does not change in the loop and lies in KernelPlan::lefts
  };
  InstId loop = kNone;
  std::vector<RingPlan::Operand> loads;
  std::vector<Product> products;
  unsigned group_bits = 0;
  unsigned stages = 0;
  /// Every load has barriers of its own: behind `barriers` the full ones of the first load's stages, the empty ones, then the next load's.
  /// Streams with as many loads share a ring: equal barriers, stages and bytes of a stage.
  uint32_t barriers = 0, stage_bytes = 0;
  std::vector<InstId> index_slice;
  std::vector<InstId> skipped;        ///< loads and what leads from them to the products
  /// A product that runs while the next trip's first one is under way: only the next trip's same product reads its result. kNone: products
  /// run in the order of the program. See plan_rotation().
  InstId late_product = kNone;
  unsigned late_carried = 0;          ///< position of its accumulator among the carried values
  std::vector<InstId> late;           ///< what runs a trip late, in order; the product is the last
  std::vector<InstId> late_only;      ///< the part of it that nothing else needs
  std::vector<ValueId> crossing;      ///< values of a trip that `late` reads during the next one
  /// Without a producer: the stream that follows in the same ring, whose copies begin during the last trips of this one. kNone: none do.
  InstId next = kNone;
  bool refill_apart = false;          ///< without a producer: each load's part of a stage is filled again behind the issue of its own product
  static constexpr unsigned element_bytes = 2;
  [[nodiscard]] uint32_t end() const { return RingPlan::kFirstStage + stages * stage_bytes; }
  [[nodiscard]] const Product* product(InstId mma) const {
    for (const Product& p : products)
      if (p.mma == mma) return &p;
    return nullptr;
  }
};

/// A store of a product's tile by bulk copies: each warpgroup writes its part, a chunk at a time, to a stage of its own in shared memory, and
/// one of its threads starts the copies, which go on while the group does other things.
struct StorePlan {
  InstId store = kNone;
  unsigned map = 0;                   ///< index into KernelPlan::maps
  unsigned element_bytes = 2;
  Layout layout;                      ///< of the tile, as the product leaves it
  int inner = -1, outer = -1;         ///< dimensions of the view's tile: contiguous in memory, and the other one longer than one
  std::vector<int> tile_dim;          ///< for each dimension of the map, innermost first: dimension of the view's tile, -1: none
  uint32_t row_bytes = 128;           ///< of a panel: the swizzle's span
  uint32_t rows = 0, panels = 0;      ///< of a chunk; one copy for each panel
  uint32_t chunk_bytes = 0;
  unsigned chunks = 0;                ///< of a warpgroup's part
  std::vector<uint32_t> column;       ///< by element bit: what it adds (XOR) to an element's place in its chunk
  std::vector<int8_t> chunk_bits;     ///< element bits that number the chunks, lowest first
  unsigned halves = 1, batch = 1;     ///< of the stage: parts that are filled in turn, chunks in each
  [[nodiscard]] unsigned swizzle() const { return row_bytes == 128 ? 3 : row_bytes == 64 ? 2 : 1; }
};

/// A load of a loop's body that is made one iteration early, and the scalar instructions of the body that it needs, in order.
struct AheadLoad {
  InstId load = kNone;
  std::vector<InstId> slice;
};

struct KernelPlan {
  unsigned warp_bits = 2;                 ///< log2 of the warps of a block
  std::vector<Layout> layout;             ///< by ValueId; tiles only
  std::map<InstId, MmaPlan> mma;
  std::map<InstId, RingPlan> rings;       ///< by loop, or by product where it stands in none
  std::vector<InstId> staged;             ///< loads of products outside of loops, which bulk copies make, and what leads from these to the products
  std::map<InstId, StreamPlan> streams;   ///< by loop
  std::vector<TensorMapSpec> maps;
  std::map<InstId, std::vector<AheadLoad>> ahead;  ///< by loop
  Facts facts;
  bool whole_tiles = true;                ///< accesses have code without masks for tiles that lie inside their arrays
  bool shifted_pieces = false;            ///< rings of cp.async cut rows at any address out of pieces of 16 bytes
  uint32_t ring_bytes = 0;                ///< barriers and the longest ring
  /// Left operands of streams in shared memory, K-major; written where the value is made. Their offsets count from ring_bytes.
  std::map<ValueId, RingPlan::Operand> lefts;
  uint32_t left_bytes = 0;
  /// What makes left operands just before the first stream that reads them, by that loop: it runs behind the start of the loop's copies.
  std::map<InstId, std::vector<InstId>> left_chains;
  std::map<InstId, StorePlan> stores;     ///< by bulk copies
  std::map<InstId, std::string> why_direct;  ///< why other stores of products are not
  uint32_t group_store_bytes = 0;         ///< stage of each warpgroup
  bool stores_in_ring = false;            ///< the stages lie in those of the rings; else behind the left operands
  [[nodiscard]] uint32_t store_bytes() const { return stores_in_ring ? 0 : group_store_bytes * (consumers() / 128); }
  /// Warps of their own that fill the rings. They run the instructions `insts` only and know the values `values` only.
  struct Roles {
    std::vector<bool> insts;              ///< by InstId
    std::vector<bool> values;             ///< by ValueId
  };
  std::optional<Roles> roles;
  /// Whether the producer's threads all copy, by cp.async, instead of one that starts bulk copies.
  [[nodiscard]] bool copying_producer() const { return roles && !rings.empty() && rings.begin()->second.copies; }
  /// The kernel's blocks loop over the numbers of the program's blocks (`--plan grid=loop`), so that a producer is ahead over their ends, too.
  bool loops = false;
  /// Such a kernel's two warpgroups of consumers take the program's blocks in turn, each a block of its own: one stores its tile while the
  /// other multiplies. `warp_bits`, layouts and warp numbers are those of one warpgroup then.
  bool alternate = false;
  unsigned blocks_per_sm = 1;             ///< that registers and shared memory shall leave room for; 0: as the assembler likes
  /// Blocks begin from the end of the first axis, where they have the most to do, for a group of the second axis at a time.
  bool last_blocks_first = false;
  std::vector<Remark> remarks;

  [[nodiscard]] unsigned threads() const { return 32u << warp_bits; }   ///< that compute a block of the program
  static constexpr unsigned kProducers = 128;   ///< threads: registers are moved between whole warpgroups
  [[nodiscard]] unsigned consumers() const { return threads() << (alternate ? 1 : 0); }
  [[nodiscard]] unsigned block_threads() const { return consumers() + (roles ? kProducers : 0); }
  [[nodiscard]] std::string print(const Module& m, const Function& f) const;
};

/// @error E0808 tiles that no layout of this machine can hold
[[nodiscard]] Result<KernelPlan> make_plan(const Module& m, const Function& f, const Target& target, const CompileOptions& options, Diagnostics& diags);

/// Warps or warpgroups that say of each stage that they have read it.
[[nodiscard]] unsigned readers(const RingPlan& r, unsigned warp_bits);

/// The rings that a kernel's loops can have: of bulk tensor copies on a target with wgmma, else of cp.async; fills `rings`, `maps`,
/// `ring_bytes` and warp_bits. Leaves `why` for products that it looked at in vain.
void plan_rings(const Module& m, const Function& f, const Target& target, const CompileOptions& options, KernelPlan& plan, std::map<InstId, std::string>& why);

/// How the rings share the SM: a producer of its own and all the memory for one block, or two blocks that hide each other's beginning and
/// end (f16 4096^3 in plain tiles of 128x128x64 on an H200: 548 instead of 513 TFLOP/s for one block without a producer).
void plan_occupancy(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan);

/// Rings of cp.async: a producer whose threads all copy into as many stages as there is room for, or none, and stages of two blocks on an SM.
void plan_copies(const Module& m, const Function& f, const Target& target, const CompileOptions& options, KernelPlan& plan);

/// Whether warpgroups can take turns: with the program's blocks, where all that a block does is products in one loop and behind it, and what follows
/// from them; or with the iterations of the program's loop around that loop, where both can run what stands outside of it, nothing but tokens goes
/// from one iteration to the next, and each makes one store.
[[nodiscard]] bool may_alternate(const Module& m, const Function& f, const CompileOptions& options, const KernelPlan& plan);

/// Whether warpgroups can each have a tile of its own, once rings are found.
[[nodiscard]] bool take_turns(const KernelPlan& plan);

/// What these two cannot know before stages are planned: each stage that a tile has behind its loop is full before the other warpgroup begins, no
/// product meets others in shared memory, and a program's own loop loads nothing else.
[[nodiscard]] bool turns_fit(const Function& f, const KernelPlan& plan);

[[nodiscard]] bool is_product(Opcode op);

/// Of a product outside of loops: registers of a thread for its accumulator and left operand.
[[nodiscard]] unsigned single_registers(const RingPlan& r);

/// The loads of loops that are made ahead; fills `ahead`. After layouts, rings and streams are known. `--plan ahead=off` for none,
/// ahead=products for loops with products, too.
void plan_loads_ahead(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan);

/// Decides which part of a stream's body runs a trip late; leaves `late_product` alone if none can.
void plan_rotation(const Module& m, const Function& f, StreamPlan& stream);

/// Where the left operands of streams lie, how many stages they leave, how many blocks an SM holds.
void plan_stream_resources(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan);

/// Bytes of a warpgroup's stage for stores by bulk copies, where it is not taken from the rings: two chunks.
inline constexpr uint32_t kStoreBytes = 16384;

/// The stores of products' tiles that bulk copies make; fills `stores`, `maps` and `why_direct`. After the rings are found.
void plan_stores(const Module& m, const Function& f, const CompileOptions& options, KernelPlan& plan);

/// Where their stages lie. After roles and stages of rings are known.
void place_stores(const Module& m, const Function& f, KernelPlan& plan);

/// Shared memory for the way of a product's tile to a store that no bulk copy makes.
[[nodiscard]] uint32_t store_bytes(const Module& m, const Function& f, const KernelPlan& plan);

/// Stages of a ring or stream: at most `most`, or as `--plan stages=N` says.
[[nodiscard]] unsigned forced_stages(const CompileOptions& options, unsigned most);

/// What a producer of the plan's rings would have to run; nullopt if the kernel cannot have one.
[[nodiscard]] std::optional<KernelPlan::Roles> find_roles(const Module& m, const Function& f, const KernelPlan& plan);

/// Whether the trips of the plan's loops grow along the grid's first axis, in a kernel that cannot tell in which order its blocks run.
[[nodiscard]] bool last_blocks_are_longest(const Module& m, const Function& f, const KernelPlan& plan);

/// Whether an atomic reduction into a view adds runs of neighbours with one instruction.
[[nodiscard]] bool adds_runs(const Module& m, const Function& f, const Target& target, InstId i);

/// Whether one block may run a kernel's blocks one after the other: nothing in it tells, or waits for, the others.
[[nodiscard]] bool blocks_may_follow(const Module& m, const Function& f);

/// Whether it pays that they do: bulk copies feed a loop of products, and no loop stands around it.
[[nodiscard]] bool blocks_should_follow(const Module& m, const Function& f, const KernelPlan& plan);

/// Order of a view's tile dimensions, the one with the smallest stride in memory first.
[[nodiscard]] std::vector<unsigned> memory_order(const Module& m, TypeId view);

}  // namespace tile
