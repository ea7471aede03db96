// The frame of the lowering: values and layouts, conversions, shared scratch memory, dispatch.
#include "backend/ptx/lowering.h"

#include "backend/ptx/device_hopper.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tile {

Lowering::Lowering(DeviceOps& device, const Module& module, const Function& function, const KernelPlan& kernel_plan, Diagnostics& diagnostics)
    : d(device), b(device.b), m(module), f(function), plan(kernel_plan), diags(diagnostics), local(local_memory(module, function)), values_(function.value_types.size()),
      views_(function.value_types.size()), def_(function.value_types.size(), kNone) {
  for (InstId i = 0; i < f.insts.size(); ++i)
    for (uint32_t r = 0; r < f.insts[i].result_count; ++r) def_[f.result(i, r)] = i;
}

bool Lowering::run(const std::string& symbol) {
  const size_t hidden = 1 + m.globals.size() + plan.maps.size() + (local.bytes != 0 ? 1 : 0) + (has_grid_words() ? 4 : 0);
  params_ = d.begin(symbol, f.param_count + static_cast<unsigned>(hidden), plan.block_threads(), plan.blocks_per_sm);
  mailbox_ = params_[f.param_count];
  thread_ = d.thread_id();
  lane_ = b.CreateAnd(thread_, i32(31));
  warp_ = b.CreateLShr(thread_, i32(5));
  shared_ = d.shared_base();
  shared_bytes_ = plan.ring_bytes + plan.left_bytes + plan.store_bytes();
  if (has_grid_words()) {
    Value* const* words = &params_[params_.size() - 4];  // three extents, and the number of the launch's first block
    for (unsigned axis = 0; axis < 3; ++axis) grid_[axis] = b.CreateTrunc(words[axis], b.getInt32Ty());
    if (!plan.loops) find_block(b.CreateAdd(b.CreateZExt(d.block_id(0), b.getInt64Ty()), words[3]));
  }
  for (ValueId p = 0; p < f.param_count; ++p) {
    const ElementType e = element(p);
    Value* v = params_[p];
    if (e != ElementType::Ptr) {
      llvm::Type* word = memory_type(b.getContext(), e);
      v = from_memory(d, e, b.CreateTrunc(v, word));
    }
    set(p, {v});
  }
  if (plan.last_blocks_first && !linear_grid) order_blocks();
  start_rings(*this);
  if (!plan.roles) {
    prepare_rings(*this);
    if (!every_block()) return false;
    place_warp_scratch();
    return true;
  }
  if (!plan.loops && !before_roles()) return false;
  // Registers of a block that has 168 for each of 384 threads, as the producer leaves them.
  const bool copies = plan.copying_producer();
  constexpr unsigned kProducerRegisters = 40, kConsumerRegisters = 232;
  HopperOps& h = *hopper_ops(d);
  llvm::BasicBlock *produce = block("producer"), *fill = block("fill"), *idle = block("idle"), *consume = block("consumers");
  b.CreateCondBr(b.CreateICmpUGE(h.warp_uniform(warp_), i32(plan.consumers() / 32)), produce, consume);
  b.SetInsertPoint(produce);
  h.max_registers(false, kProducerRegisters);
  // The producer does not wait for the others before it begins.
  producing_ = true;
  prepare_rings(*this);
  b.CreateCondBr(copies ? b.getTrue() : b.CreateICmpEQ(thread_, i32(plan.consumers())), fill, idle);
  b.SetInsertPoint(idle);
  d.end();
  b.SetInsertPoint(fill);
  if (!every_block()) return false;
  producing_ = false;
  b.SetInsertPoint(consume);
  h.max_registers(true, kConsumerRegisters);
  consuming_ = true;
  pending_ = {};
  h.named_barrier(kConsumerBarrier, plan.block_threads());
  if (plan.alternate) {
    turn_ = h.warp_uniform(b.CreateLShr(warp_, i32(2)));
    for (llvm::BinaryOperator** offset : {&turn_scratch_, &turn_warp_scratch_})
      if (copies) *offset = b.Insert(llvm::BinaryOperator::CreateMul(turn_, i32(0)));
    thread_ = b.CreateAnd(thread_, i32(127));
    warp_ = b.CreateAnd(warp_, i32(3));
    // The first turn is the first group's.
    if_then(b.CreateICmpEQ(turn_, i32(1)), [&] { h.named_barrier_arrive(kTurnBarrier, 2 * plan.threads()); });
  }
  if (!every_block()) return false;
  place_warp_scratch();
  return true;
}

/// What producer and consumers compute alike at the kernel's beginning is computed once for both where it holds a division: assembling a copy of one
/// takes milliseconds. Elsewhere it would only be held in registers.
bool Lowering::before_roles() {
  std::vector<InstId> alike;
  bool divides = false;
  const Region& r = f.regions[0];
  for (InstId i = r.begin; i < r.end; i = f.insts[i].next) {
    if (!plan.roles->insts[i]) continue;
    const Opcode op = f.insts[i].op;
    if (op == Opcode::For || op == Opcode::Loop || op == Opcode::If) break;
    alike.push_back(i);
    if (op != Opcode::DivI && op != Opcode::RemI) continue;
    const InstId by = def_[f.operand(i, 1)];
    divides = divides || by == kNone || f.insts[by].op != Opcode::Constant;
  }
  if (!divides) return true;
  shared_insts_.assign(f.insts.size(), false);
  for (const InstId i : alike) {
    d.site = i;
    if (locate) locate(i);
    bool stop = false;
    if (!instruction(i, &stop)) return false;
    shared_insts_[i] = true;
  }
  return true;
}

Value* Lowering::consumer_group() { return turn_ ? turn_ : hopper_ops(d)->warp_uniform(b.CreateLShr(warp_, i32(2))); }

void Lowering::find_block(Value* number) {
  block_ids_.clear();
  llvm::Type* type = number->getType();
  for (unsigned axis = 0; axis < 2; ++axis) {
    Value* extent = b.CreateZExtOrTrunc(grid_[axis], type);
    block_ids_.push_back(b.CreateTrunc(b.CreateURem(number, extent), b.getInt32Ty()));
    number = b.CreateUDiv(number, extent);
  }
  block_ids_.push_back(b.CreateTrunc(number, b.getInt32Ty()));
}

bool Lowering::whole() {
  bool ended = false;
  if (!region(f.regions[0], &ended)) return false;
  if (!ended) end_block();
  return true;
}

void Lowering::end_block() {
  if (latch_) {
    b.CreateBr(latch_);
    return;
  }
  leave_bulk_stores();
  if (producing_ && plan.copying_producer()) {
    d.cp_async_commit();
    d.cp_async_wait(0);
  }
  d.end();
}

bool Lowering::every_block() {
  if (!plan.loops) return whole();
  // The grid has fewer than 2^31 blocks, and there are no more of the launch than that.
  llvm::Type* type = b.getInt32Ty();
  Value* total = b.CreateMul(b.CreateMul(grid_[0], grid_[1]), grid_[2]);
  const Var at = var(type), mine = var(type);
  store(at, d.block_id(0));
  if (turn_) store(mine, turn_);
  llvm::BasicBlock *top = block("block"), *done = block("blocks.done");
  latch_ = block("next.block");
  b.CreateCondBr(b.CreateICmpULT(load(at), total), top, done);
  b.SetInsertPoint(top);
  find_block(load(at));
  if (turn_ && consuming_) {
    llvm::BasicBlock *skip = block("not.mine"), *run = block("mine");
    b.CreateCondBr(b.CreateICmpEQ(load(mine), i32(0)), run, skip);
    b.SetInsertPoint(skip);
    producing_ = skipping_ = true;
    if (!whole()) return false;
    producing_ = skipping_ = false;
    b.SetInsertPoint(run);
  }
  pending_ = left_by(f.regions[0]);
  Value* const same[] = {thread_, lane_, warp_};
  if (turn_scratch_ && consuming_) {
    // What follows a product is computed from these; done once for all blocks, it would be held in registers while products run.
    thread_ = d.opaque(thread_);
    lane_ = b.CreateAnd(thread_, i32(31));
    warp_ = b.CreateLShr(thread_, i32(5));
  }
  if (!whole()) return false;
  thread_ = same[0], lane_ = same[1], warp_ = same[2];
  b.SetInsertPoint(latch_);
  d.poll();
  if (turn_) store(mine, b.CreateXor(load(mine), i32(1)));
  Value* next = b.CreateAdd(load(at), d.grid_size(0));
  store(at, next);
  b.CreateCondBr(b.CreateICmpULT(next, total), top, done);
  b.SetInsertPoint(done);
  latch_ = nullptr;
  end_block();
  return true;
}

void Lowering::order_blocks() {
  // Of every group of rows of the grid the last column begins, then the one before. What the blocks of a group read should stay in the L2
  // cache: on an H200, causal attention of (4, 16, 4096, 128) is best with 512 blocks a group, (8, 16, 1024, 64) with all its 1,024, two of
  // which share an SM (8,16,1024,64: 349 TFLOP/s, row by row 301).
  constexpr int64_t kBlocks = 512;
  Value *nx = d.grid_size(0), *ny = d.grid_size(1);
  Value* rows = b.CreateUDiv(i32(kBlocks * std::max(1u, plan.blocks_per_sm)), nx);
  rows = b.CreateSelect(b.CreateICmpEQ(rows, i32(0)), i32(1), rows);
  rows = b.CreateSelect(b.CreateICmpULT(rows, ny), rows, ny);
  // The device begins blocks along x, then y. 2^31 blocks are the most along x, so that the numbers of all in a layer need 64 bits.
  llvm::Type* wide = b.getInt64Ty();
  const auto w = [&](Value* v) { return b.CreateZExt(v, wide); };
  Value* number = b.CreateAdd(b.CreateMul(w(d.block_id(1)), w(nx)), w(d.block_id(0)));
  Value* per_group = b.CreateMul(w(nx), w(rows));
  Value* group = b.CreateTrunc(b.CreateUDiv(number, per_group), b.getInt32Ty());
  Value* first = b.CreateMul(group, rows);
  Value* left = b.CreateSub(ny, first);
  Value* here = b.CreateSelect(b.CreateICmpULT(left, rows), left, rows);
  Value* within = b.CreateURem(number, per_group);
  Value* column = b.CreateTrunc(b.CreateUDiv(within, w(here)), b.getInt32Ty());
  block_ids_ = {b.CreateSub(b.CreateSub(nx, i32(1)), column), b.CreateAdd(first, b.CreateTrunc(b.CreateURem(within, w(here)), b.getInt32Ty()))};
}

bool Lowering::region(const Region& r, bool* ended) {
  bool stop = false;
  for (InstId i = r.begin; i < r.end && !stop; i = f.insts[i].next) {
    d.site = i;
    if (locate) locate(i);
    const Opcode op = f.insts[i].op;
    if (!shared_insts_.empty() && shared_insts_[i]) continue;
    const bool leaves = op == Opcode::Continue || op == Opcode::Yield || op == Opcode::Return;
    if (producing_ && !leaves && !plan.roles->insts[i]) continue;
    if (std::any_of(plan.left_chains.begin(), plan.left_chains.end(), [&](const auto& c) { return std::find(c.second.begin(), c.second.end(), i) != c.second.end(); })) continue;
    if (!instruction(i, &stop)) return false;
    for (uint32_t k = 0; k < f.insts[i].result_count && !plan.lefts.empty() && !producing_; ++k)
      if (plan.lefts.contains(f.result(i, k))) write_left(*this, f.result(i, k));
  }
  if (ended) *ended = stop;
  return true;
}

bool Lowering::instruction(InstId i, bool* ended) {
  const bool loop = f.insts[i].op == Opcode::For || f.insts[i].op == Opcode::Loop;
  const uint64_t moved = std::exchange(moved_here_, 0);
  const InstId around = std::exchange(loop_here_, loop ? i : loop_here_);
  if (loop) moved_[i];
  const bool done = emit(i, ended);
  loop_here_ = around;
  if (uint64_t& most = moved_[around][i]; most < moved_here_) most = moved_here_;
  moved_here_ = moved;
  return done;
}

bool Lowering::emit(InstId i, bool* ended) {
  const Opcode op = f.insts[i].op;
  if (std::binary_search(plan.staged.begin(), plan.staged.end(), i)) return true;
  if (stream_ && std::find(stream_->skipped.begin(), stream_->skipped.end(), i) != stream_->skipped.end()) return true;
  if (is_elementwise(op)) {
    const ValueId r = f.result(i);
    const auto operands = f.operands(i);
    std::vector<Values> in;
    for (const ValueId v : operands) in.push_back(get(v, layout(r)));
    if (op == Opcode::DivF)
      if (auto quotients = divide_by_few(*this, i, in[0], in[1])) {
        set(r, *std::move(quotients));
        return true;
      }
    Values out(layout(r).registers()), args(operands.size());
    if (narrowed_in_pairs(d, m, f, i, in[0], out)) {
      set(r, std::move(out));
      return true;
    }
    for (size_t k = 0; k < out.size(); ++k) {
      for (size_t a = 0; a < args.size(); ++a) args[a] = in[a][k];
      std::string why;
      out[k] = lower_scalar(d, m, f, i, args, why);
      if (!out[k]) return unsupported(i, why);
    }
    set(r, std::move(out));
    return true;
  }
  switch (op) {
    case Opcode::Break: case Opcode::Continue: case Opcode::Yield: case Opcode::Return: *ended = true; [[fallthrough]];
    case Opcode::For:
      if (const auto it = plan.rings.find(i); it != plan.rings.end()) return lower_ring_loop(*this, i, it->second);
      if (const auto it = plan.streams.find(i); it != plan.streams.end()) return lower_stream_loop(*this, i, it->second);
      return lower_control(*this, i);
    case Opcode::If: case Opcode::Loop: case Opcode::MakeToken: case Opcode::JoinTokens: case Opcode::GetTileBlockId:
    case Opcode::GetNumTileBlocks: case Opcode::Assume: case Opcode::MemoryFenceAliasTko: case Opcode::GdcWaitTko:
    case Opcode::GdcLaunchDependentsTko:
      return lower_control(*this, i);
    case Opcode::Constant: case Opcode::Iota: case Opcode::Reshape: case Opcode::Broadcast: case Opcode::Permute: case Opcode::Cat:
    case Opcode::Extract: case Opcode::Insert: case Opcode::Pack: case Opcode::Unpack:
      return lower_shape(*this, i);
    case Opcode::MakeTensorView: case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::MakeGatherScatterView:
    case Opcode::GetTensorShape: case Opcode::GetIndexSpaceShape: case Opcode::LoadViewTko: case Opcode::StoreViewTko:
    case Opcode::AtomicRedViewTko:
      return lower_view(*this, i);
    case Opcode::LoadPtrTko: case Opcode::StorePtrTko: case Opcode::AtomicRMWTko: case Opcode::AtomicCASTko: case Opcode::Alloca:
    case Opcode::GetGlobal:
      return lower_pointer(*this, i);
    case Opcode::Reduce: case Opcode::Scan: return lower_reduce(*this, i);
    case Opcode::MmaF: case Opcode::MmaI: case Opcode::MmaFScaled: return lower_matrix(*this, i);
    case Opcode::PrintTko: case Opcode::Assert: return lower_print(*this, i);
    default: return unsupported(i, "the operation has no lowering");
  }
}

bool Lowering::unsupported(InstId i, const std::string& why) {
  (void)diags.error(Code::E0808, m.place(f, i), std::string(f.def(i).name) + " is not supported on " + d.target.name + ": " + why,
                    "run it with --cpu");
  return false;
}

// --- values ---

bool Lowering::is_zero(ValueId v) const {
  const InstId i = def_[v];
  if (i == kNone || f.insts[i].op != Opcode::Constant) return false;
  const std::string& bytes = m.attrs.get(f.attr(i, 0)).bytes;
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

Values Lowering::get(ValueId v, const Layout& l) {
  if (layout(v) == l) return values_[v];
  bool done = false;
  Values made = rematerialise(v, l, &done);
  if (done) return made;
  return convert(values_[v], element(v), layout(v), l, element_bits(shape(v)));
}

Values Lowering::broadcast(ValueId source, std::span<const int64_t> from, std::span<const int64_t> to, const Layout& l) {
  const Values in = get(source, broadcast_source(l, from, to));
  // Register bits whose element bit belongs to a repeated dimension choose nothing in the source.
  std::vector<bool> kept(element_bits(to));
  const auto first = dim_bits(to);
  for (size_t dim = 0; dim < to.size(); ++dim)
    for (unsigned k = 0; k < log2_of(to[dim]); ++k) kept[first[dim] + k] = from[dim] == to[dim];
  Values out(l.registers());
  for (unsigned r = 0; r < out.size(); ++r) {
    unsigned source_reg = 0, at = 0;
    for (size_t k = 0; k < l.reg.size(); ++k) {
      if (l.reg[k] == kCopies || !kept[static_cast<size_t>(l.reg[k])]) continue;
      if (r >> k & 1) source_reg |= 1u << at;
      ++at;
    }
    out[r] = in[source_reg];
  }
  return out;
}

Values Lowering::spread(ValueId v, size_t dim, std::span<const int64_t> to, const Layout& l) {
  std::vector<int64_t> from(to.size(), 1);
  from[dim] = to[dim];
  return broadcast(v, from, to, l);
}

Values Lowering::rematerialise(ValueId v, const Layout& l, bool* done) {
  const InstId i = def_[v];
  if (i == kNone) return {};
  if (element_bits(shape(v)) == 0 && !values_[v].empty()) {  // one element: every register of the layout is it
    *done = true;
    return Values(l.registers(), values_[v][0]);
  }
  switch (f.insts[i].op) {
    case Opcode::Constant: {
      const Attr& a = m.attrs.get(f.attr(i, 0));
      if (a.bytes.size() != info(element(v)).storage) return {};
      *done = true;
      return Values(l.registers(), values_[v][0]);
    }
    case Opcode::Iota: {
      *done = true;
      Values out(l.registers());
      llvm::Type* type = register_type(b.getContext(), element(v));
      Value* t = b.CreateZExtOrTrunc(thread_element(l), type);
      for (unsigned r = 0; r < out.size(); ++r) out[r] = b.CreateOr(t, llvm::ConstantInt::get(type, l.element_of_register(r)));
      return out;
    }
    case Opcode::Reshape: *done = true; return get(f.operands(i)[0], l);
    case Opcode::Permute: {
      const ValueId s = f.operands(i)[0];
      const auto& ints = m.attrs.get(f.attr(i, 0)).ints;
      *done = true;
      return get(s, unpermuted_layout(l, shape(s), std::vector<int32_t>(ints.begin(), ints.end())));
    }
    case Opcode::Broadcast: {
      const ValueId s = f.operands(i)[0];
      *done = true;
      return broadcast(s, shape(s), shape(v), l);
    }
    default: return {};
  }
}

Values Lowering::remade(ValueId v) {
  bool done = false;
  const InstId i = def_[v];
  if (element_bits(shape(v)) == 0 && !f.operands(i).empty()) return get(f.operands(i)[0], layout(v));
  return rematerialise(v, layout(v), &done);
}

// --- layouts at run time ---

Value* Lowering::thread_element(const Layout& l) {
  Value* sum = i32(0);
  const auto add = [&](const std::vector<int8_t>& bits, Value* number) {
    // Neighbouring bits that move by the same distance are moved together.
    for (size_t k = 0; k < bits.size();) {
      if (bits[k] == kCopies) {
        ++k;
        continue;
      }
      size_t n = 1;
      while (k + n < bits.size() && bits[k + n] == bits[k] + static_cast<int>(n)) ++n;
      Value* part = b.CreateAnd(number, i32(((int64_t{1} << n) - 1) << k));
      const int shift = bits[k] - static_cast<int>(k);
      part = shift >= 0 ? b.CreateShl(part, i32(shift)) : b.CreateLShr(part, i32(-shift));
      sum = b.CreateOr(sum, part);
      k += n;
    }
  };
  add(l.lane, lane_);
  add(l.warp, warp_);
  return sum;
}

namespace {

/// The bits of one dimension, moved down to the coordinate.
Layout only_dimension(const Layout& l, std::span<const int64_t> shape, size_t dim) {
  const unsigned low = dim_bits(shape)[dim], n = log2_of(shape[dim]);
  Layout out = l;
  for (auto* bits : {&out.reg, &out.lane, &out.warp})
    for (int8_t& x : *bits) x = x != kCopies && static_cast<unsigned>(x) >= low && static_cast<unsigned>(x) < low + n ? static_cast<int8_t>(x - static_cast<int>(low)) : kCopies;
  return out;
}

}  // namespace

Value* Lowering::thread_coordinate(const Layout& l, std::span<const int64_t> shape, size_t dim) {
  return thread_element(only_dimension(l, shape, dim));
}

uint32_t Lowering::register_coordinate(const Layout& l, std::span<const int64_t> shape, size_t dim, unsigned reg) {
  return only_dimension(l, shape, dim).element_of_register(reg);
}

Value* Lowering::owner(const Layout& l) {
  const auto copies = [](const std::vector<int8_t>& bits) {
    uint32_t mask = 0;
    for (size_t k = 0; k < bits.size(); ++k)
      if (bits[k] == kCopies) mask |= 1u << k;
    return mask;
  };
  const uint32_t mask = copies(l.lane) | copies(l.warp) << 5;
  return mask == 0 ? nullptr : b.CreateICmpEQ(b.CreateAnd(thread_, i32(mask)), i32(0));
}

// --- shared memory ---

std::vector<Remark> Lowering::take_remarks() {
  for (const auto& [loop, operations] : moved_) {
    if (loop == kNone) continue;
    uint64_t bytes = 0;
    for (const auto& [i, moved] : operations) bytes += moved;
    remarks_.push_back({loop, std::to_string(bytes) + " bytes a trip through scratch space", bytes == 0 ? "" : "where threads exchange tiles whose layouts differ, operands of products, sums over warps"});
  }
  // A body that is in the code twice says everything twice.
  std::vector<Remark> once;
  std::unordered_map<InstId, std::vector<size_t>> of;  // an operation has few, a module many
  for (Remark& r : remarks_) {
    std::vector<size_t>& same = of[r.inst];
    if (std::any_of(same.begin(), same.end(), [&](size_t o) { return once[o].what == r.what && once[o].why == r.why; })) continue;
    same.push_back(once.size());
    once.push_back(std::move(r));
  }
  return once;
}

Value* Lowering::scratch(uint32_t bytes) {
  moved_here_ += bytes;
  // The body of a streamed loop uses the scratch space while stages are in flight, and a producer keeps them in flight always. Left operands
  // and the stages of bulk stores lie behind the stages.
  const uint32_t end = plan.ring_bytes + plan.left_bytes + plan.store_bytes();
  alternation_fails_ = alternation_fails_ || (plan.alternate && !turn_scratch_);
  if (pending_.staged) hopper_ops(d)->bulk_wait(0, true);
  pending_.staged = false;  // the barrier that follows hands it on
  uint32_t first = plan.ring_bytes == 0 ? 0 : RingPlan::kFirstStage;
  if (stream_ || filled_before_ || plan.roles || (end != plan.ring_bytes && first + bytes > plan.ring_bytes)) first = end;
  shared_bytes_ = std::max(shared_bytes_, first + bytes);
  pending_.shared = true;
  Value* at = first == 0 ? shared_ : b.CreateAdd(shared_, i32(first));
  return turn_scratch_ ? b.CreateAdd(at, turn_scratch_) : at;
}

Value* Lowering::warp_scratch(uint32_t bytes, const std::vector<uint32_t>& warps) {
  moved_here_ += bytes;
  alternation_fails_ = alternation_fails_ || (plan.alternate && !turn_scratch_);
  if (!warp_base_) {
    llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    auto* base = llvm::dyn_cast<llvm::Instruction>(shared_);
    warp_base_ = llvm::BinaryOperator::CreateAdd(shared_, i32(0), "warps", base ? base->getIterator() : entry.getFirstInsertionPt());
    if (base) warp_base_->moveAfter(base);
  }
  const auto [at, fresh] = warp_places_.emplace(std::pair(bytes, warps), warp_bytes_);
  if (fresh) warp_bytes_ += (bytes + 127) & ~127u;
  Value* base = turn_warp_scratch_ ? b.CreateAdd(warp_base_, turn_warp_scratch_) : warp_base_;
  return b.CreateAdd(base, i32(at->second));
}

void Lowering::place_warp_scratch() {
  if (turn_scratch_) {
    const uint32_t begin = plan.ring_bytes + plan.left_bytes + plan.store_bytes(), each = (shared_bytes_ - begin + 127) & ~127u;
    turn_scratch_->setOperand(1, i32(each));
    shared_bytes_ = begin + 2 * each;
  }
  if (!warp_base_) return;
  shared_bytes_ = (shared_bytes_ + 1023) & ~1023u;
  warp_base_->setOperand(1, i32(shared_bytes_));
  shared_bytes_ += warp_bytes_ << (turn_warp_scratch_ ? 1 : 0);
  if (turn_warp_scratch_) turn_warp_scratch_->setOperand(1, i32(warp_bytes_));
}

uint32_t Lowering::free_scratch() const {
  if (plan.roles) return (d.target.max_shared() - plan.ring_bytes - plan.left_bytes - plan.store_bytes()) >> (turn_scratch_ ? 1 : 0);
  return stream_ || filled_before_ || plan.ring_bytes == 0 ? 0 : plan.ring_bytes - RingPlan::kFirstStage;
}

void Lowering::barrier() {
  if (consuming_) {
    if (turn_)
      hopper_ops(d)->named_barrier(b.CreateAdd(turn_, i32(kGroupBarrier)), plan.threads());
    else
      hopper_ops(d)->named_barrier(kConsumerBarrier, plan.threads());
  } else {
    d.barrier();
  }
  pending_.reads = pending_.writes = false;
}

namespace {

/// Number of register bits, from the lowest, that carry element bits 0, 1, 2...: runs that one access can take.
unsigned run_bits(const Layout& l, unsigned element_bytes) {
  unsigned n = 0;
  while (n < l.reg.size() && l.reg[n] == static_cast<int>(n) && (element_bytes << (n + 1)) <= 16) ++n;
  return n;
}

}  // namespace

void Lowering::write_shared(const Values& regs, ElementType e, const Layout& l, Value* base, uint32_t at) {
  const unsigned bytes = memory_type(b.getContext(), e)->getIntegerBitWidth() / 8, run = run_bits(l, bytes);
  Value* mine = owner(l);
  Value* t = b.CreateMul(thread_element(l), i32(bytes));
  t = b.CreateAdd(b.CreateAdd(base, t), b.CreateShl(b.CreateLShr(t, i32(7)), i32(4)));
  // Runs are found through the number of the register bit; registers are then consecutive.
  for (unsigned r = 0; r < regs.size(); r += 1u << run) {
    Values words;
    for (unsigned k = 0; k < 1u << run; ++k) words.push_back(to_memory(d, e, regs[r + k]));
    d.store_shared(words, b.CreateAdd(t, i32(at + padded_offset(l.element_of_register(r) * bytes))), mine);
  }
}

Values Lowering::read_shared(ElementType e, const Layout& l, Value* base, uint32_t at) {
  llvm::Type* type = memory_type(b.getContext(), e);
  const unsigned bytes = type->getIntegerBitWidth() / 8, run = run_bits(l, bytes);
  Value* t = b.CreateMul(thread_element(l), i32(bytes));
  t = b.CreateAdd(b.CreateAdd(base, t), b.CreateShl(b.CreateLShr(t, i32(7)), i32(4)));
  Values out(l.registers());
  for (unsigned r = 0; r < out.size(); r += 1u << run) {
    const Values words = d.load_shared(type, 1u << run, b.CreateAdd(t, i32(at + padded_offset(l.element_of_register(r) * bytes))));
    for (unsigned k = 0; k < words.size(); ++k) out[r + k] = from_memory(d, e, words[k]);
  }
  return out;
}

// --- code ---

Lowering::Var Lowering::var(llvm::Type* type) {
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  return {type, at.CreateAlloca(type)};
}

llvm::BasicBlock* Lowering::block(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent()); }

void Lowering::if_then(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  llvm::BasicBlock* yes = block("then");
  llvm::BasicBlock* no = otherwise ? block("else") : nullptr;
  llvm::BasicBlock* after = block("endif");
  b.CreateCondBr(condition, yes, no ? no : after);
  // What one way leaves pending, or has waited for, says nothing of the other.
  const Pending before = pending_;
  b.SetInsertPoint(yes);
  then();
  if (!b.GetInsertBlock()->getTerminator()) b.CreateBr(after);
  const Pending left = std::exchange(pending_, before);
  if (no) {
    b.SetInsertPoint(no);
    otherwise();
    if (!b.GetInsertBlock()->getTerminator()) b.CreateBr(after);
  }
  pending_ = pending_ | left;
  b.SetInsertPoint(after);
}

void Lowering::loop(unsigned n, const std::function<void(Value*)>& body) {
  const Var i = var(b.getInt32Ty());
  store(i, i32(0));
  llvm::BasicBlock* top = block("loop");
  llvm::BasicBlock* after = block("done");
  b.CreateBr(top);
  b.SetInsertPoint(top);
  Value* at = load(i);
  body(at);
  Value* next = b.CreateAdd(at, i32(1));
  store(i, next);
  b.CreateCondBr(b.CreateICmpULT(next, i32(n)), top, after);
  b.SetInsertPoint(after);
}

namespace {

/// 102 for T0102.
uint32_t trap_number(Code code) {
  uint32_t n = 0;
  for (const char c : std::string_view(code_info(code).name))
    if (c >= '0' && c <= '9') n = n * 10 + static_cast<uint32_t>(c - '0');
  return n;
}

}  // namespace

void Lowering::trap_if(Value* condition, Code code) {
  if_then(condition, [&] {
    d.trap(trap_number(code), mailbox_);
    b.CreateUnreachable();
  });
}

std::optional<Values> Lowering::apply(const Region& r, std::span<Value* const> args) {
  for (uint32_t k = 0; k < r.arg_count; ++k) set(r.first_arg + k, {args[k]});
  Values out;
  for (InstId i = r.begin; i < r.end; i = f.insts[i].next) {
    const Opcode op = f.insts[i].op;
    if (op == Opcode::Yield) {
      for (const ValueId v : f.operands(i)) out.push_back(scalar(v));
      break;
    }
    // Threads run the body each for its own elements, so nothing in it may need the whole block.
    bool whole = !is_elementwise(op) && op != Opcode::Constant && op != Opcode::GetTileBlockId && op != Opcode::GetNumTileBlocks;
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k) whole = whole || !m.types.is_scalar(f.type(f.result(i, k)));
    for (const ValueId v : f.operands(i)) whole = whole || !m.types.is_scalar(f.type(v));
    if (whole) {
      (void)unsupported(i, "the body of a reduction computes with scalars only");
      return std::nullopt;
    }
    bool ended = false;
    if (!instruction(i, &ended)) {
      return std::nullopt;
    }
  }
  return out;
}

void Lowering::settle_for_bulk_copies(bool ordered) {
  const bool bulk = pending_.bulk && ordered;
  if (!pending_.writes && !pending_.shared && !pending_.staged && !bulk) return;
  if (bulk) {
    finish_bulk_stores();
  } else if (pending_.staged) {
    hopper_ops(d)->bulk_wait(0, true);
  }
  pending_.shared = pending_.staged = false;
  if (auto* hopper = hopper_ops(d)) hopper->fence_proxy_async();
  barrier();
}

bool Lowering::has_order(InstId i) const {
  // An access without a token, or with a fresh one, is ordered after nothing.
  for (const ValueId v : f.operands(i))
    if (m.types.is_token(f.type(v)) && (def_[v] == kNone || f.insts[def_[v]].op != Opcode::MakeToken)) return true;
  return false;
}

void Lowering::order_access(InstId i, bool reads, bool writes) {
  const bool apart = pending_.writes && pending_.writer == i && !reads && writes_apart(i);
  if (has_order(i) && ((pending_.writes && !apart) || pending_.bulk || (writes && pending_.reads))) {
    finish_bulk_stores();
    barrier();
  }
  if (writes) pending_.writer = !pending_.writes || pending_.writer == i ? i : kNone;
  pending_.reads = pending_.reads || reads;
  pending_.writes = pending_.writes || writes;
}

bool Lowering::order_bulk_store(InstId i) {
  // The same thread starts the copies of an element each time. Copies are ordered by waiting alone, other accesses by barriers, too.
  const bool ordered = has_order(i), apart = pending_.bulk && pending_.bulk_writer == i && writes_apart(i);
  if (ordered && (pending_.writes || pending_.reads || (pending_.bulk && !apart))) {
    finish_bulk_stores();
    hopper_ops(d)->fence_proxy_async();
    barrier();
  }
  const bool wait = ordered && pending_.bulk;
  pending_.bulk_writer = !pending_.bulk || pending_.bulk_writer == i ? i : kNone;
  pending_.bulk = true;
  return wait;
}

void Lowering::finish_bulk_stores() {
  if (!pending_.bulk) return;
  hopper_ops(d)->bulk_wait(0, false);
  pending_.bulk = pending_.staged = false;
}

void Lowering::leave_bulk_stores() {
  if (!producing_ && !plan.stores.empty()) hopper_ops(d)->bulk_wait(0, true);
}

Lowering::Pending Lowering::anything() const {
  const bool bulk = !plan.stores.empty();
  return {true, true, true, kNone, bulk, kNone, bulk && plan.stores_in_ring};
}

Lowering::Pending Lowering::left_by(const Region& r) const {
  Pending all{false, false, true, kNone};
  for (InstId i = r.begin; i < r.end; ++i) {
    // Bulk copies of rings and streams have been waited for when what they brought is used.
    if (plan.rings.contains(i)) {
      i = f.insts[i].next - 1;
      continue;
    }
    if (plan.stores.contains(i)) {
      all = all | Pending{false, false, false, kNone, true, i, plan.stores_in_ring};
      continue;
    }
    const Effect e = f.def(i).effect;
    const bool writes = e == Effect::Write || e == Effect::ReadWrite;
    all = all | Pending{e == Effect::Read || e == Effect::ReadWrite, writes, false, writes ? i : kNone};
  }
  return all;
}

bool Lowering::writes_apart(InstId i) const {
  // Tiles of a partition do not overlap, and a tile has the same layout each time, so that each element is one thread's. The view must be
  // the same in all iterations.
  if (f.insts[i].op != Opcode::StoreViewTko) return false;
  const ValueId view = f.operand(i, 1);
  if (m.types.get(f.type(view)).kind != TypeKind::PartitionView || def_[view] == kNone) return false;
  for (InstId k = 0; k < def_[view]; ++k)
    if ((f.insts[k].op == Opcode::For || f.insts[k].op == Opcode::Loop) && f.insts[k].next > def_[view]) return false;
  return true;
}

}  // namespace tile
