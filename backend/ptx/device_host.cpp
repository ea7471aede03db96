// The device interface on the host: every operation is a call `emu_*(thread, site, ...)` into backend/emulate. The
// kernel becomes `void NAME(ptr thread, ptr params)`. No vector types and no address spaces: both would drop fast
// instruction selection.
#include "backend/emulate/emulate.h"
#include "backend/ptx/device_hopper.h"

namespace tile {
namespace {

using llvm::Type;

class HostDevice final : public DeviceOps, public HopperOps {
 public:
  using DeviceOps::DeviceOps;

  Values begin(const std::string& name, unsigned words, unsigned /*threads*/, unsigned /*blocks*/) override {
    function_ = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false),
                                       llvm::GlobalValue::ExternalLinkage, name, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("probe-stack", "inline-asm");  // a large frame must touch the guard page, not step over it
    thread_ = function_->getArg(0);
    buffers_.clear();
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", function_));
    Values out;
    for (unsigned i = 0; i < words; ++i)
      out.push_back(b.CreateLoad(b.getInt64Ty(), b.CreateConstGEP1_32(b.getInt64Ty(), function_->getArg(1), i)));
    shared_ = b.getInt32(kEmulatedSharedBase);  // a constant where it can be one: that makes shorter code
    if (clusters) shared_ = b.CreateAdd(shared_, b.CreateShl(cluster_rank(), b.getInt32(kEmulatedRankShift)));
    return out;
  }
  void end() override { b.CreateRetVoid(); }

  Value* thread_id() override { return call("emu_thread_id", b.getInt32Ty(), {}); }
  Value* block_id(unsigned axis) override { return call("emu_block_id", b.getInt32Ty(), {b.getInt32(axis)}); }
  Value* grid_size(unsigned axis) override { return call("emu_grid_size", b.getInt32Ty(), {b.getInt32(axis)}); }
  Value* shared_base() override { return shared_; }

  Values load_shared(Type* type, unsigned n, Value* addr, Value* pred) override {
    return load_all(type, n, call("emu_load_shared", b.getPtrTy(), {addr, bytes(type, n), flag(pred)}));
  }
  void store_shared(std::span<Value* const> values, Value* addr, Value* pred) override {
    store_all(values,
              call("emu_store_shared", b.getPtrTy(), {addr, bytes(values[0]->getType(), values.size()), flag(pred)}));
  }
  // Orders need nothing here: on x86-64 every load acquires and every store releases, and the calls keep the compiler
  // from reordering.
  Values load_global(Type* type, unsigned n, Value* addr, MemOrder, MemScope, Value* pred, Value* otherwise) override {
    Values out = load_all(type, n, call("emu_load_global", b.getPtrTy(), {addr, bytes(type, n), flag(pred)}));
    if (pred && otherwise)
      for (auto& v : out) v = b.CreateSelect(pred, v, otherwise);
    return out;
  }
  void store_global(std::span<Value* const> values, Value* addr, MemOrder, MemScope, Value* pred) override {
    store_all(values,
              call("emu_store_global", b.getPtrTy(), {addr, bytes(values[0]->getType(), values.size()), flag(pred)}));
  }
  Value* atomic_rmw(RmwOp op, Value* value, bool is_bf16, Value* addr, MemOrder, MemScope, Value* pred) override {
    Type* type = value->getType();
    Value* old =
        call("emu_atomic_rmw", b.getInt64Ty(),
             {b.getInt32(static_cast<uint32_t>(op)), bits(type), b.getInt32(is_bf16), wide(value), addr, flag(pred)});
    return b.CreateTrunc(old, type);
  }
  Value* atomic_cas(Value* expected, Value* desired, Value* addr, MemOrder, MemScope, Value* pred) override {
    Type* type = expected->getType();
    return b.CreateTrunc(
        call("emu_atomic_cas", b.getInt64Ty(), {bits(type), wide(expected), wide(desired), addr, flag(pred)}), type);
  }
  void fence(MemOrder, MemScope) override { call("emu_fence", {}); }

  void barrier() override { call("emu_barrier", {}); }
  Value* shuffle(ShuffleMode mode, Value* value, Value* lane_or_delta) override {
    return call("emu_shuffle", b.getInt32Ty(), {b.getInt32(static_cast<uint32_t>(mode)), value, lane_or_delta});
  }
  Value* any(Value* predicate) override { return b.CreateICmpNE(ballot(predicate), b.getInt32(0)); }
  Value* ballot(Value* predicate) override { return call("emu_ballot", b.getInt32Ty(), {flag(predicate)}); }

  void cp_async(Value* shared, Value* global, unsigned n, Value* size, Value* when) override {
    call("emu_cp_async", {shared, global, b.getInt32(n), size ? size : b.getInt32(n), flag(when)});
  }
  void cp_async_commit() override { call("emu_cp_async_commit", {}); }
  void cp_async_wait(unsigned pending) override { call("emu_cp_async_wait", {b.getInt32(pending)}); }

  Values ldmatrix(unsigned matrices, bool transpose, Value* row_addr) override {
    Value* out = buffer(0);
    call("emu_ldmatrix", {b.getInt32(matrices), b.getInt32(transpose), row_addr, out});
    return load_all(b.getInt32Ty(), matrices, out);
  }
  Values mma(MmaKind kind, std::span<Value* const> a, std::span<Value* const> bb, std::span<Value* const> c,
             bool a_e5m2, bool b_e5m2) override {
    Value *pa = buffer(0), *pb = buffer(1), *pc = buffer(2);
    store_all(a, pa);
    store_all(bb, pb);
    store_all(c, pc);
    // The shape is told by the number of words.
    const unsigned shape = kind == MmaKind::F64 ? static_cast<unsigned>(a.size()) << 4 : unsigned{bb.size() == 1} << 2;
    call("emu_mma", {b.getInt32(static_cast<uint32_t>(kind)), b.getInt32(unsigned{a_e5m2} | unsigned{b_e5m2} << 1 | shape), pa, pb, pc});
    return load_all(c[0]->getType(), static_cast<unsigned>(c.size()), pc);
  }

  Value* approx(ApproxOp op, Value* f32) override {
    return call("emu_approx", b.getFloatTy(), {b.getInt32(static_cast<uint32_t>(op)), f32});
  }
  Value* fma(Value* x, Value* y, Value* z) override {
    Type* type = x->getType();
    if (!type->isHalfTy() && !type->isBFloatTy()) return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
    const auto word = [&](Value* v) { return b.CreateZExt(b.CreateBitCast(v, b.getInt16Ty()), b.getInt32Ty()); };
    Value* r = call(type->isHalfTy() ? "emu_fma_f16" : "emu_fma_bf16", b.getInt32Ty(), {word(x), word(y), word(z)});
    return b.CreateBitCast(b.CreateTrunc(r, b.getInt16Ty()), type);
  }
  Value* sqrt(Value* x) override { return b.CreateIntrinsic(llvm::Intrinsic::sqrt, {x->getType()}, {x}); }
  Value* byte_permute(Value* low, Value* high, Value* selector) override {
    llvm::Type* i64 = b.getInt64Ty();
    Value* all = b.CreateOr(b.CreateZExt(low, i64), b.CreateShl(b.CreateZExt(high, i64), 32));
    Value* out = b.getInt32(0);
    for (unsigned k = 0; k < 4; ++k) {
      Value* which = b.CreateAnd(b.CreateLShr(selector, 4 * k), b.getInt32(7));
      Value* byte = b.CreateTrunc(b.CreateLShr(all, b.CreateZExt(b.CreateShl(which, 3), i64)), b.getInt8Ty());
      out = b.CreateOr(out, b.CreateShl(b.CreateZExt(byte, b.getInt32Ty()), 8 * k));
    }
    return out;
  }
  Value* clock() override { return call("emu_clock", b.getInt64Ty(), {}); }

  void poll() override { call("emu_poll", {}); }
  void trap(uint32_t code, Value* mailbox) override { call("emu_trap", {b.getInt32(code), mailbox}); }

  void named_barrier(unsigned id, unsigned count) override {
    call("emu_named_barrier", {b.getInt32(id), b.getInt32(count)});
  }
  void named_barrier_arrive(unsigned id, unsigned count) override {
    call("emu_named_barrier_arrive", {b.getInt32(id), b.getInt32(count)});
  }
  void named_barrier(Value* id, unsigned count) override { call("emu_named_barrier", {id, b.getInt32(count)}); }
  void named_barrier_arrive(Value* id, unsigned count) override { call("emu_named_barrier_arrive", {id, b.getInt32(count)}); }
  void warp_sync() override { call("emu_warp_sync", {}); }
  Value* warp_uniform(Value* v) override { return call("emu_warp_uniform", b.getInt32Ty(), {v}); }

  void mbarrier_init(Value* bar, unsigned count) override { call("emu_mbarrier_init", {bar, b.getInt32(count)}); }
  void fence_mbarrier_init() override { call("emu_fence_async", {}); }
  void mbarrier_arrive(Value* bar) override { call("emu_mbarrier_arrive", {bar, b.getInt32(0)}); }
  void cp_async_arrive(Value* bar) override { call("emu_cp_async_arrive", {bar}); }
  void mbarrier_arrive_expect(Value* bar, Value* n) override { call("emu_mbarrier_arrive", {bar, n}); }
  void mbarrier_wait(Value* bar, Value* phase, bool cluster) override { call("emu_mbarrier_wait", {bar, phase, b.getInt32(cluster)}); }
  void fence_proxy_async(bool) override { call("emu_fence_async", {}); }

  void tma_load(Value* map, std::span<Value* const> at, Value* shared, Value* bar) override {
    store_all(at, buffer(0));
    call("emu_tma_load", {map, b.getInt32(static_cast<uint32_t>(at.size())), buffer(0), shared, bar});
  }
  void tma_store(Value* map, std::span<Value* const> at, Value* shared) override {
    store_all(at, buffer(0));
    call("emu_tma_store", {map, b.getInt32(static_cast<uint32_t>(at.size())), buffer(0), shared});
  }
  void tma_reduce(RmwOp op, Value* map, std::span<Value* const> at, Value* shared) override {
    store_all(at, buffer(0));
    call("emu_tma_reduce", {b.getInt32(static_cast<uint32_t>(op)), map, b.getInt32(static_cast<uint32_t>(at.size())), buffer(0), shared});
  }
  void bulk_reduce(RmwOp op, Type* type, bool is_bf16, Value* global, Value* shared, Value* n) override {
    call("emu_bulk_reduce", {b.getInt32(static_cast<uint32_t>(op)), bytes(type, 1), b.getInt32(is_bf16), global, shared, n});
  }
  void bulk_commit() override { call("emu_bulk_commit", {}); }
  void bulk_wait(unsigned pending, bool read) override {
    call("emu_bulk_wait", {b.getInt32(pending), b.getInt32(read)});
  }

  WgmmaAccumulator wgmma_accumulator(MmaKind kind, unsigned n) override {
    WgmmaAccumulator d{kind, n, {}, nullptr};
    d.base = entry_alloca(b.getInt32Ty(), d.registers());
    return d;
  }
  void wgmma_fence() override { call("emu_wgmma_fence", {}); }
  void wgmma(WgmmaAccumulator& d, const WgmmaOperand& a, const WgmmaOperand& bb, Value* scale_d) override {
    const uint32_t flags =
        unsigned{a.e5m2} | unsigned{bb.e5m2} << 1 | unsigned{a.mn_major} << 2 | unsigned{bb.mn_major} << 3;
    Value* all = scale_d ? b.CreateOr(b.CreateShl(flag(scale_d), 4), b.getInt32(flags)) : b.getInt32(flags | 16);
    Value* registers = llvm::ConstantPointerNull::get(b.getPtrTy());
    if (!a.registers.empty()) store_all(a.registers, registers = buffer(0));
    call("emu_wgmma", {b.getInt32(static_cast<uint32_t>(d.kind)), b.getInt32(d.n), all, d.base,
                       a.descriptor ? a.descriptor : b.getInt64(0), registers, bb.descriptor});
  }
  void wgmma_commit() override { call("emu_wgmma_commit", {}); }
  void wgmma_wait(unsigned pending, std::span<WgmmaAccumulator* const>, std::span<Value* const>) override {
    call("emu_wgmma_wait", {b.getInt32(pending)});
  }
  Values wgmma_read(WgmmaAccumulator& d) override {
    call("emu_accumulator", {d.base});
    return load_all(accumulator_type(d.kind), d.registers(), d.base);
  }
  void wgmma_forget(WgmmaAccumulator&) override {}
  void wgmma_write(WgmmaAccumulator& d, std::span<Value* const> values) override {
    call("emu_accumulator", {d.base});
    store_all(values, d.base);
  }
  void stmatrix(unsigned matrices, bool transpose, Value* row_addr, std::span<Value* const> words) override {
    store_all(words, buffer(0));
    call("emu_stmatrix", {b.getInt32(matrices), b.getInt32(transpose), row_addr, buffer(0)});
  }
  void max_registers(bool, unsigned n) override { call("emu_max_registers", {b.getInt32(n)}); }

  Value* cluster_rank() override { return call("emu_cluster_rank", b.getInt32Ty(), {}); }
  Value* cluster_size() override { return call("emu_cluster_size", b.getInt32Ty(), {}); }
  void cluster_arrive() override { call("emu_cluster_arrive", {}); }
  void cluster_wait() override { call("emu_cluster_wait", {}); }
  Value* map_shared(Value* addr, Value* rank) override { return call("emu_map_shared", b.getInt32Ty(), {addr, rank}); }
  Values load_cluster(Type* type, unsigned n, Value* addr) override {
    return load_all(type, n, call("emu_load_cluster", b.getPtrTy(), {addr, bytes(type, n)}));
  }
  void store_cluster(std::span<Value* const> values, Value* addr) override {
    store_all(values, call("emu_store_cluster", b.getPtrTy(), {addr, bytes(values[0]->getType(), values.size())}));
  }
  Value* atomic_cluster(RmwOp op, Value* value, Value* addr) override {
    Type* type = value->getType();
    return b.CreateTrunc(call("emu_atomic_cluster", b.getInt64Ty(), {b.getInt32(static_cast<uint32_t>(op)), bits(type), wide(value), addr}), type);
  }
  void mbarrier_arrive_cluster(Value* bar, Value* n) override { call("emu_mbarrier_arrive_cluster", {bar, n ? n : b.getInt32(0)}); }
  void tma_load_multicast(Value* map, std::span<Value* const> at, Value* shared, Value* bar, Value* mask) override {
    store_all(at, buffer(0));
    call("emu_tma_load_multicast", {map, b.getInt32(static_cast<uint32_t>(at.size())), buffer(0), shared, bar, mask});
  }

 private:
  llvm::Function* function_ = nullptr;
  Value *thread_ = nullptr, *shared_ = nullptr;
  Values buffers_;  // one of a kind is enough: it is read before the next operation fills it

  Value* call(const char* name, Type* result, Values args) {
    args.insert(args.begin(), {thread_, b.getInt32(site)});
    std::vector<Type*> types;
    for (const Value* v : args) types.push_back(v->getType());
    auto callee = module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
    // Which threads make it must stay as it is. Both are marked: InstCombine takes the mark off calls of functions without it.
    llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::Convergent);
    auto* made = b.CreateCall(callee, args);
    made->addFnAttr(llvm::Attribute::Convergent);
    return made;
  }
  void call(const char* name, Values args) { call(name, b.getVoidTy(), std::move(args)); }

  Value* flag(Value* pred) { return pred ? b.CreateZExt(pred, b.getInt32Ty()) : b.getInt32(1); }
  Value* wide(Value* v) { return b.CreateZExt(v, b.getInt64Ty()); }
  Value* bits(Type* type) { return b.getInt32(static_cast<uint32_t>(type->getPrimitiveSizeInBits())); }
  Value* bytes(Type* type, size_t n) {
    return b.getInt32(static_cast<uint32_t>(n * type->getPrimitiveSizeInBits() / 8));
  }

  /// Memory for an operation's lists, 64 bytes: 16 words or 8 doubles, more than any fragment. In the entry block, so
  /// that it is part of the frame.
  Value* buffer(size_t which) {
    if (buffers_.empty())
      for (int i = 0; i < 3; ++i) buffers_.push_back(entry_alloca(b.getInt64Ty(), 8));
    return buffers_[which];
  }
  Value* entry_alloca(Type* type, unsigned n) {
    llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    auto* slot = entry.CreateAlloca(llvm::ArrayType::get(type, n));
    slot->setAlignment(llvm::Align(16));
    return slot;
  }
  Type* accumulator_type(MmaKind kind) {
    switch (kind) {
      case MmaKind::F16F16:
      case MmaKind::S8:
      case MmaKind::U8:
      case MmaKind::S8U8:
      case MmaKind::U8S8:
        return b.getInt32Ty();
      default: return b.getFloatTy();
    }
  }
  Value* element(Type* type, Value* p, size_t i) {
    return i == 0 ? p : b.CreateConstInBoundsGEP1_32(type, p, static_cast<unsigned>(i));
  }
  void store_all(std::span<Value* const> values, Value* p) {
    for (size_t i = 0; i < values.size(); ++i) b.CreateStore(values[i], element(values[i]->getType(), p, i));
  }
  Values load_all(Type* type, unsigned n, Value* p) {
    Values out;
    for (unsigned i = 0; i < n; ++i) out.push_back(b.CreateLoad(type, element(type, p, i)));
    return out;
  }
};

}  // namespace

std::unique_ptr<DeviceOps> make_host_device(llvm::Module& module, const Target& target) {
  return std::make_unique<HostDevice>(module, target);
}

}  // namespace tile
