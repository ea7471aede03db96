// Turns a planned entry into LLVM code through the device interface: one function per operation or family, in the lower_*.cpp files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/plan/plan.h"
#include "backend/ptx/device.h"
#include "backend/ptx/scalar.h"
#include "vm/ir/module.h"

namespace tile {

class StreamRun;

/// Barriers of a kernel with roles: of all consumers (and once of the whole block), of each warpgroup, and of those whose turn it is.
inline constexpr unsigned kConsumerBarrier = 1, kGroupBarrier = 2, kTurnBarrier = 10;
/// Of a producer's threads.
inline constexpr unsigned kProducerBarrier = 14;

class Lowering {
 public:
  Lowering(DeviceOps& d, const Module& m, const Function& f, const KernelPlan& plan, Diagnostics& diags);

  /// Emits the whole kernel. False after an error.
  [[nodiscard]] bool run(const std::string& symbol);
  [[nodiscard]] uint32_t shared_bytes() const { return shared_bytes_; }
  [[nodiscard]] size_t parameter_bytes() const { return params_.size() * 8; }
  /// Those of the operations, and for each loop how much its body moves through scratch space.
  [[nodiscard]] std::vector<Remark> take_remarks();

  DeviceOps& d;
  llvm::IRBuilder<>& b;
  const Module& m;
  const Function& f;
  const KernelPlan& plan;
  Diagnostics& diags;
  const LocalMemory local;

  /// A variable of the kernel; mem2reg makes a register of it.
  struct Var {
    llvm::Type* type;
    Value* slot;
  };
  struct View {
    Value* base = nullptr;    ///< i64
    Values shape, strides;    ///< i64, in elements
  };

  /// A load that is made one iteration early.
  struct Ahead {
    const AheadLoad* plan;
    ValueId counter;                      ///< of its loop
    std::vector<Var> next;                ///< the tile of the iteration to come
    Value* following = nullptr;           ///< the counter of the next iteration, and whether there is one (i1)
    Value* follows = nullptr;
  };
  std::map<InstId, Ahead> ahead;          ///< by load

  /// Told of every instruction before its code: sets the builder's source line. May be empty.
  std::function<void(InstId)> locate;
  /// The blocks of the launch lie along x, whatever the program's grid is, which four hidden parameters tell. Set before run().
  bool linear_grid = false;

  // --- facts about values ---
  [[nodiscard]] bool is_tile(ValueId v) const { return m.types.is_tile(f.type(v)); }
  [[nodiscard]] std::span<const int64_t> shape(ValueId v) const { return m.types.shape_of(f.type(v)); }
  [[nodiscard]] ElementType element(ValueId v) const { return m.types.element_of(f.type(v)); }
  [[nodiscard]] const Layout& layout(ValueId v) const { return plan.layout[v]; }

  // --- values: a list of registers per tile, numbered as the layout's register bits say ---
  /// Registers of a value in its own layout.
  [[nodiscard]] const Values& own(ValueId v) const { return values_[v]; }
  /// Registers of a value in any layout: as it is, made anew, taken from what it was made of, or converted.
  [[nodiscard]] Values get(ValueId v, const Layout& l);
  /// Whether a value is a constant of zeros (all bits).
  [[nodiscard]] bool is_zero(ValueId v) const;
  /// The one register of a rank-0 tile.
  [[nodiscard]] Value* scalar(ValueId v) { return values_[v][0]; }
  /// What iota, reshape, broadcast or permute make of their operand, in the result's own layout.
  [[nodiscard]] Values remade(ValueId v);
  /// A tile of rank 1 along dimension `dim` of `shape`, repeated along the others: one value per register of `l`.
  [[nodiscard]] Values spread(ValueId v, size_t dim, std::span<const int64_t> shape, const Layout& l);
  /// What makes a value; kNone for arguments.
  [[nodiscard]] InstId definition(ValueId v) const { return def_[v]; }
  void set(ValueId v, Values regs) { values_[v] = std::move(regs); }
  [[nodiscard]] View& view(ValueId v) { return views_[v]; }

  // --- layouts at run time ---
  /// Bits of the element number that lane and warp contribute, i32.
  [[nodiscard]] Value* thread_element(const Layout& l);
  /// The same for one dimension of `shape`: its coordinate.
  [[nodiscard]] Value* thread_coordinate(const Layout& l, std::span<const int64_t> shape, size_t dim);
  /// Coordinate bits that a register contributes.
  [[nodiscard]] static uint32_t register_coordinate(const Layout& l, std::span<const int64_t> shape, size_t dim, unsigned reg);
  /// True in the threads that hold the first copy; nullptr where no lane or warp bit carries copies.
  [[nodiscard]] Value* owner(const Layout& l);
  /// Moves registers from one layout to another; `bits` = element bits of the tile.
  [[nodiscard]] Values convert(const Values& from_regs, ElementType e, const Layout& from, const Layout& to, unsigned bits);

  // --- shared memory ---
  /// Address (i32) of the scratch space, which holds at least `bytes`. Its contents are anybody's after the next call.
  [[nodiscard]] Value* scratch(uint32_t bytes);
  /// Writes a tile into the scratch space at byte `at` in row-major order with padded rows; no barriers.
  void write_shared(const Values& regs, ElementType e, const Layout& l, Value* base, uint32_t at);
  [[nodiscard]] Values read_shared(ElementType e, const Layout& l, Value* base, uint32_t at);
  /// A register's value and the number of the element that it is, in the threads where `when` holds (nullptr: all).
  struct Placed {
    Value* word;
    Value* number;
    Value* when;
  };
  /// The registers of a tile, one for each that is no copy of another.
  [[nodiscard]] std::vector<Placed> placed(const Values& regs, ElementType e, const Layout& l);
  /// Numbers of the elements in the registers of a layout.
  [[nodiscard]] Values numbers(const Layout& l);
  /// Elements pass between threads by their numbers, through scratch space that holds as many of a tile's 2^bits elements as there is `room` for,
  /// one part of them after the other. Each of `phases` is written behind a barrier, `wanted` read behind the last one. What a kernel does where all
  /// at once does not fit.
  [[nodiscard]] Values pass(ElementType e, unsigned bits, std::span<const std::vector<Placed>> phases, const Values& wanted);
  /// Bytes of scratch space that one operation may take. Set before run().
  uint32_t room = UINT32_MAX;
  bool cramped = false;                      ///< no places of their own for warps
  /// Address of a place that is used in this one way: each warp reads and writes only what `warps` (offset bits that the bits of its number
  /// add) give it. Behind the scratch space.
  [[nodiscard]] Value* warp_scratch(uint32_t bytes, const std::vector<uint32_t>& warps);
  /// Bytes of scratch space that cost the kernel nothing here: the stages of its rings.
  [[nodiscard]] uint32_t free_scratch() const;
  /// Before and after the scratch space is used.
  void barrier();

  // --- code ---
  [[nodiscard]] Value* i32(int64_t v) { return b.getInt32(static_cast<uint32_t>(v)); }
  [[nodiscard]] Value* i64(int64_t v) { return b.getInt64(static_cast<uint64_t>(v)); }
  [[nodiscard]] Var var(llvm::Type* type);
  [[nodiscard]] Value* load(const Var& v) { return b.CreateLoad(v.type, v.slot); }
  void store(const Var& v, Value* x) { b.CreateStore(x, v.slot); }
  [[nodiscard]] llvm::BasicBlock* block(const char* name);
  void if_then(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  /// for (i = 0; i < n; ++i) body(i), i32
  void loop(unsigned n, const std::function<void(Value*)>& body);
  void trap_if(Value* condition, Code code);  ///< at the operation being lowered
  [[nodiscard]] Value* thread() const { return thread_; }
  [[nodiscard]] Value* lane() const { return lane_; }
  [[nodiscard]] Value* warp() const { return warp_; }
  /// Coordinates of the block in the program's grid.
  [[nodiscard]] Value* block_id(unsigned axis) { return block_ids_.size() > axis ? block_ids_[axis] : d.block_id(axis); }
  /// Number of the warpgroup of consumers, where they alternate; else of the warpgroup within the block.
  [[nodiscard]] Value* consumer_group();
  [[nodiscard]] Value* mailbox() const { return mailbox_; }
  [[nodiscard]] Value* global_address(uint32_t index) const { return params_[f.param_count + 1 + index]; }

  // --- roles ---
  /// Whether the code being emitted is the producer's (KernelPlan::Roles), and whether it knows a value.
  [[nodiscard]] bool producing() const { return producing_; }
  /// Whether what the producer runs is emitted for consumers that only count the stages of a block that is not theirs.
  [[nodiscard]] bool skipping() const { return skipping_; }
  /// Whether warpgroups that alternate would meet in shared memory that is not made for that.
  [[nodiscard]] bool alternation_fails() const { return alternation_fails_; }
  /// The end of a block of the program.
  void end_block();
  [[nodiscard]] bool knows(ValueId v) const { return !producing_ || v < f.param_count || plan.roles->values[v]; }

  // --- regions ---
  /// Emits one instruction that is no terminator.
  [[nodiscard]] bool one(InstId i) {
    bool ended = false;
    return instruction(i, &ended);
  }
  [[nodiscard]] Value* shared_base() const { return shared_; }
  [[nodiscard]] Value* map_address(unsigned index) const { return params_[f.param_count + 1 + m.globals.size() + index]; }
  /// Address (i64) of all blocks' local memory; only if there is an alloca.
  [[nodiscard]] Value* local_address() const { return params_[f.param_count + 1 + m.globals.size() + plan.maps.size()]; }
  /// Extent of the program's grid.
  [[nodiscard]] Value* grid_size(unsigned axis) { return has_grid_words() ? grid_[axis] : d.grid_size(axis); }
  /// Accesses before this point that a bulk copy must not overtake are done, and visible to it; `ordered`: also what bulk stores write.
  void settle_for_bulk_copies(bool ordered = true);
  /// Emits the instructions of a region. `ended` is set if its end is not reached.
  [[nodiscard]] bool region(const Region& r, bool* ended = nullptr);
  /// Applies the body of a reduce or scan to rank-0 arguments (one register each) and gives what it yields.
  [[nodiscard]] std::optional<Values> apply(const Region& r, std::span<Value* const> args);
  [[nodiscard]] bool unsupported(InstId i, const std::string& why);
  void remark(InstId i, std::string what, std::string why = {}) { remarks_.push_back({i, std::move(what), std::move(why)}); }

  // --- order of memory accesses within the block ---
  /// Call before an access to global memory: emits a barrier where another thread's earlier access must be done first.
  void order_access(InstId i, bool reads, bool writes);
  /// Call before a store by bulk copies. True if the thread that starts them must wait until its earlier ones are done.
  [[nodiscard]] bool order_bulk_store(InstId i);
  /// What bulk stores write is done, for the threads that started them: before a barrier.
  void finish_bulk_stores();
  /// The same at the end of the kernel, whose shared memory must stay until the copies have read it.
  void leave_bulk_stores();
  /// What an access has a token for: one that other accesses have given.
  [[nodiscard]] bool has_order(InstId i) const;

 private:
  friend bool lower_control(Lowering&, InstId);
  bool instruction(InstId i, bool* ended);
  bool emit(InstId i, bool* ended);  ///< what instruction() does, without its accounts
  Values broadcast(ValueId source, std::span<const int64_t> from, std::span<const int64_t> to, const Layout& l);
  Values rematerialise(ValueId v, const Layout& l, bool* done);

  std::vector<Values> values_;
  std::vector<View> views_;
  std::vector<InstId> def_;               ///< by ValueId: defining instruction, kNone for arguments
  Values params_;
  void place_warp_scratch();
  Values block_ids_;                      ///< where they are not the device's
  void order_blocks();
  Value* thread_ = nullptr;
  Value* lane_ = nullptr;
  Value* warp_ = nullptr;
  Value* mailbox_ = nullptr;
  Value* shared_ = nullptr;
  bool producing_ = false, consuming_ = false;   ///< in code of one role
  std::vector<bool> shared_insts_;               ///< computed before the roles part; empty: none
  bool skipping_ = false, alternation_fails_ = false;
  Value* turn_ = nullptr;                 ///< which of two warpgroups that alternate this is, i32
  /// What is added to addresses of the scratch space where each of the two has its own; their distance is known when all is emitted.
  llvm::BinaryOperator *turn_scratch_ = nullptr, *turn_warp_scratch_ = nullptr;
  llvm::BasicBlock* latch_ = nullptr;     ///< where a block of the program ends in a kernel that loops over them
  [[nodiscard]] bool has_grid_words() const { return linear_grid || plan.loops; }
  void find_block(Value* number);
  [[nodiscard]] bool whole();
  [[nodiscard]] bool before_roles();
  [[nodiscard]] bool every_block();
  uint32_t shared_bytes_ = 0;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> warp_places_;   ///< offsets from warp_base_
  uint32_t warp_bytes_ = 0;
  llvm::BinaryOperator* warp_base_ = nullptr;    ///< its offset is known when all is emitted
  Value* grid_[3] = {};                   ///< extents, of a linear grid
  /// What other threads may still be doing when the code at hand runs. Where paths meet, all of them count.
  struct Pending {
    bool reads = false, writes = false;   ///< of global memory, since the last barrier
    bool shared = false;                  ///< of shared memory that the next ring's copies overwrite
    InstId writer = kNone;                ///< of all the writes, where there is one only
    bool bulk = false;                    ///< writes by bulk stores
    InstId bulk_writer = kNone;           ///< of all of them, where there is one only
    bool staged = false;                  ///< bulk stores that read the scratch space
    Pending operator|(const Pending& o) const {
      return {reads || o.reads, writes || o.writes, shared || o.shared, !writes ? o.writer : !o.writes || writer == o.writer ? writer : kNone,
              bulk || o.bulk, !bulk ? o.bulk_writer : !o.bulk || bulk_writer == o.bulk_writer ? bulk_writer : kNone, staged || o.staged};
    }
  } pending_;
  /// What an iteration of a loop may leave to the next.
  [[nodiscard]] Pending left_by(const Region& r) const;
  /// The most that can be.
  [[nodiscard]] Pending anything() const;
  /// Whether writes of store i never meet, in whatever iterations they are, unless one thread makes them.
  [[nodiscard]] bool writes_apart(InstId i) const;
  std::vector<Remark> remarks_;
  // Bytes that operations write to scratch space, to be read by other threads: by the innermost loop around them, and by operation, since a
  // body may be in the code more than once.
  std::map<InstId, std::map<InstId, uint64_t>> moved_;
  uint64_t moved_here_ = 0;                ///< by the operation that is being emitted
  InstId loop_here_ = kNone;               ///< around it

  friend bool lower_bulk_store(Lowering&, InstId, const StorePlan&);
  friend void start_rings(Lowering&);
  friend bool lower_copy_ring(Lowering&, InstId, const RingPlan&);
  friend bool lower_ring_loop(Lowering&, InstId, const RingPlan&);
  friend bool lower_single(Lowering&, InstId, const RingPlan&);
  friend class StreamRun;
  friend bool lower_stream_product(Lowering&, InstId);
  const StreamPlan* stream_ = nullptr;    ///< of the loop whose body is being emitted
  StreamRun* stream_run_ = nullptr;       ///< what emits it
  std::optional<std::pair<InstId, Value*>> filled_before_;   ///< stream that comes next and whose copies are under way; trips of the loops before (i32)
  std::map<InstId, Var> ring_position_;   ///< by loop: stages that were filled and used so far

  struct Frame {                          ///< of a loop or an if
    InstId inst;
    std::vector<std::vector<Var>> args, results;
    llvm::BasicBlock* next = nullptr;     ///< where continue goes
    llvm::BasicBlock* after = nullptr;
  };
  std::vector<Frame> loops_, ifs_;
};

/// A register bit and a lane bit that change places: half of the registers of each thread go to the lane that differs in the bit.
struct LaneExchange {
  unsigned reg_bit, lane_bit;
};
[[nodiscard]] Values exchange_lanes(Lowering& x, const Values& regs, ElementType e, std::span<const LaneExchange> steps);
[[nodiscard]] Layout exchanged_layout(Layout l, std::span<const LaneExchange> steps);

/// Offset bits that a number (lane or warp) adds, given those of its bits, lowest first.
[[nodiscard]] Value* mapped(Lowering& x, Value* number, std::span<const uint32_t> columns);

// Carried values live in variables that hold bits: a narrow float in a variable may pass through a wider type and change a NaN.
[[nodiscard]] std::vector<Lowering::Var> carried_vars(Lowering& x, ValueId v);   ///< none for tokens
void store_carried(Lowering& x, ValueId like, const std::vector<Lowering::Var>& vars, const Values& values);
[[nodiscard]] Values load_carried(Lowering& x, ValueId like, const std::vector<Lowering::Var>& vars);

/// Quotients of a tile whose registers share few divisors; nullopt where that is no gain.
[[nodiscard]] std::optional<Values> divide_by_few(Lowering& x, InstId i, const Values& dividends, const Values& divisors);

// Loads that are made ahead; false after an error.
bool load_first(Lowering& x, InstId loop, Value* counter, Value* runs);   ///< before the loop, if it runs (i1)
bool load_next(Lowering& x, InstId load, Values& tile);                   ///< the tile that waits; begins the next one
/// A weak load through a view, in the layout of its result.
[[nodiscard]] Values load_tile(Lowering& x, InstId load);

// One function per family; false after an error.
bool lower_control(Lowering&, InstId);
bool lower_shape(Lowering&, InstId);      ///< cat, extract, insert, pack, unpack, iota, constant, reshape, broadcast, permute
bool lower_view(Lowering&, InstId);       ///< make_*_view, shapes, load/store/reduce through views
bool lower_bulk_store(Lowering&, InstId, const StorePlan&);   ///< store_view_tko of a product's tile
bool lower_pointer(Lowering&, InstId);    ///< load/store/atomics through pointers, alloca, get_global
bool lower_reduce(Lowering&, InstId);     ///< reduce, scan
bool lower_stream_loop(Lowering&, InstId, const StreamPlan&);  ///< a `for` with streamed products
bool lower_stream_product(Lowering&, InstId);
void write_left(Lowering&, ValueId);      ///< a left operand of streams, just made, into its place in shared memory
bool lower_copy_ring(Lowering&, InstId, const RingPlan&);  ///< a `for` with a ring of cp.async
bool lower_ring_loop(Lowering&, InstId, const RingPlan&);  ///< a `for` with a ring of bulk copies
bool lower_single(Lowering&, InstId, const RingPlan&);     ///< a product outside of loops
void start_rings(Lowering&);              ///< their counters, at the start of the kernel
void prepare_rings(Lowering&);            ///< their mbarriers
bool lower_matrix(Lowering&, InstId);     ///< mmaf, mmai, mmaf_scaled
bool lower_print(Lowering&, InstId);      ///< print_tko, assert

}  // namespace tile
