// The device interface for real GPUs: NVPTX intrinsics where LLVM 19 has them, inline PTX elsewhere. No other file holds PTX.
#include <algorithm>

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Support/ErrorHandling.h>

#include "backend/compile.h"
#include "backend/ptx/device_hopper.h"

namespace tile {
namespace {

using llvm::Type;

/// How `n` elements of a type travel in one access: as words of at most 32 bits, or one or two of 64.
struct Container {
  Type* word;          ///< register type of one part
  unsigned parts;
  const char* suffix;  ///< ".b32", ".v4.b32"...
  const char* constraint;
  unsigned per_part;   ///< elements in one part; 0: an element takes several parts
};

class PtxDevice final : public DeviceOps, public HopperOps {
 public:
  PtxDevice(llvm::Module& m, const Target& t) : DeviceOps(m, t) {}

  Values begin(const std::string& name, unsigned words, unsigned threads, unsigned blocks) override {
    llvm::LLVMContext& c = module.getContext();
    std::vector<Type*> params(words, b.getInt64Ty());
    function_ = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), params, false), llvm::GlobalValue::ExternalLinkage, name, module);
    function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    auto* notes = module.getOrInsertNamedMetadata("nvvm.annotations");
    const auto note = [&](const char* key, unsigned value) {
      notes->addOperand(llvm::MDNode::get(c, {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(c, key),
                                              llvm::ConstantAsMetadata::get(b.getInt32(value))}));
    };
    note("kernel", 1);
    note("reqntidx", threads);
    note("reqntidy", 1);
    note("reqntidz", 1);
    if (blocks != 0) note("minctasm", blocks);
    b.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", function_));
    auto* type = llvm::ArrayType::get(b.getInt8Ty(), 0);
    auto* shared = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, "shared_memory", nullptr,
                                            llvm::GlobalValue::NotThreadLocal, 3);
    shared->setAlignment(llvm::Align(1024));
    shared_ = b.CreateTrunc(b.CreatePtrToInt(shared, b.getInt64Ty()), b.getInt32Ty());
    Values out;
    for (auto& a : function_->args()) out.push_back(&a);
    return out;
  }
  void end() override { b.CreateRetVoid(); }

  Value* thread_id() override { return special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x); }
  Value* block_id(unsigned axis) override {
    return special(axis == 0   ? llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x
                   : axis == 1 ? llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y
                               : llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z);
  }
  Value* grid_size(unsigned axis) override {
    return special(axis == 0   ? llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x
                   : axis == 1 ? llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y
                               : llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z);
  }
  Value* shared_base() override { return shared_; }
  void grid_dependency(bool wait) override {
    if (target.sm >= 90) asm_call(b.getVoidTy(), wait ? "griddepcontrol.wait;" : "griddepcontrol.launch_dependents;", "~{memory}", {}, true);
  }

  Values load_shared(Type* type, unsigned n, Value* addr, Value* pred) override { return load(type, n, addr, "ld.shared", pred, nullptr, false); }
  void store_shared(std::span<Value* const> values, Value* addr, Value* pred) override { store(values, addr, "st.shared", pred, false); }
  Values load_global(Type* type, unsigned n, Value* addr, MemOrder order, MemScope scope, Value* pred, Value* otherwise) override {
    if (order == MemOrder::Weak) return load(type, n, addr, "ld.global", pred, otherwise, true);
    return load(type, n, addr, std::string("ld") + (order == MemOrder::Relaxed ? ".relaxed" : ".acquire") + scope_text(scope) + ".global", pred, otherwise, true);
  }
  void store_global(std::span<Value* const> values, Value* addr, MemOrder order, MemScope scope, Value* pred) override {
    if (order == MemOrder::Weak) return store(values, addr, "st.global", pred, true);
    store(values, addr, std::string("st") + (order == MemOrder::Relaxed ? ".relaxed" : ".release") + scope_text(scope) + ".global", pred, true);
  }

  Value* atomic_rmw(RmwOp op, Value* value, bool is_bf16, Value* addr, MemOrder order, MemScope scope, Value* pred) override {
    const unsigned bits = value->getType()->getIntegerBitWidth();
    if (bits == 16 && (op == RmwOp::Xchg || (is_bf16 && target.sm < 90))) return cas_loop(op, value, is_bf16, addr, order, scope, pred);
    std::string name;
    const std::string u = "u" + std::to_string(bits), s = "s" + std::to_string(bits), raw = "b" + std::to_string(bits);
    switch (op) {
      case RmwOp::And: name = "and." + raw; break;
      case RmwOp::Or: name = "or." + raw; break;
      case RmwOp::Xor: name = "xor." + raw; break;
      case RmwOp::Add: name = "add." + u; break;
      case RmwOp::Max: name = "max." + s; break;
      case RmwOp::Min: name = "min." + s; break;
      case RmwOp::UMax: name = "max." + u; break;
      case RmwOp::UMin: name = "min." + u; break;
      case RmwOp::Xchg: name = "exch." + raw; break;
      case RmwOp::AddF: name = bits == 16 ? (is_bf16 ? "add.noftz.bf16" : "add.noftz.f16") : "add.f" + std::to_string(bits); break;
      default: llvm::report_fatal_error("atomic mode without an instruction");
    }
    // Float additions name registers of the bits' type; the assembler takes untyped ones.
    const std::string r = reg(bits);
    return predicated(value->getType(), "atom" + order_text(order) + scope_text(scope) + ".global." + name + " $0, [$A], $B;", {addr, value}, "l," + r, pred);
  }
  void reduce_add(std::span<Value* const> values, bool is_bf16, Value* addr, MemOrder order, MemScope scope, Value* pred) override {
    const unsigned bits = values[0]->getType()->getIntegerBitWidth();
    if (values.size() == 1 || target.sm < 90) return DeviceOps::reduce_add(values, is_bf16, addr, order, scope, pred);
    Values args{addr};
    if (bits == 32) {
      args.insert(args.end(), values.begin(), values.end());
    } else {
      for (size_t k = 0; k < values.size(); k += 2)
        args.push_back(b.CreateOr(b.CreateZExt(values[k], b.getInt32Ty()), b.CreateShl(b.CreateZExt(values[k + 1], b.getInt32Ty()), 16)));
    }
    const size_t n = args.size() - 1;
    std::string list, constraints = "l";
    for (size_t k = 1; k <= n; ++k) {
      list += (k > 1 ? ", $" : "$") + std::to_string(k);
      constraints += ",r";
    }
    if (n > 1) list = "{" + list + "}";
    std::string text = "red" + order_text(order) + scope_text(scope) + ".global.add" + (bits == 32 ? "" : ".noftz") + (n > 1 ? ".v" + std::to_string(n) : "") +
                       (bits == 32 ? ".f32" : is_bf16 ? ".bf16x2" : ".f16x2") + " [$0], " + list + ";";
    if (pred) {
      text = "{\n.reg .pred p;\nsetp.ne.b32 p, $" + std::to_string(n + 1) + ", 0;\n@p " + text + "\n}";
      constraints += ",r";
      args.push_back(b.CreateZExt(pred, b.getInt32Ty()));
    }
    asm_call(b.getVoidTy(), text, constraints + ",~{memory}", args, true);
  }
  Value* atomic_cas(Value* expected, Value* desired, Value* addr, MemOrder order, MemScope scope, Value* pred) override {
    const unsigned bits = expected->getType()->getIntegerBitWidth();
    const std::string r = reg(bits);
    return predicated(expected->getType(), "atom" + order_text(order) + scope_text(scope) + ".global.cas.b" + std::to_string(bits) + " $0, [$A], $B, $C;",
                      {addr, expected, desired}, "l," + r + "," + r, pred);
  }
  void fence(MemOrder, MemScope scope) override { asm_call(b.getVoidTy(), "fence.acq_rel" + scope_text(scope) + ";", "~{memory}", {}, true); }

  void barrier() override { b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }
  Value* shuffle(ShuffleMode mode, Value* value, Value* by) override {
    const auto id = mode == ShuffleMode::Xor    ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32
                    : mode == ShuffleMode::Up   ? llvm::Intrinsic::nvvm_shfl_sync_up_i32
                    : mode == ShuffleMode::Down ? llvm::Intrinsic::nvvm_shfl_sync_down_i32
                                                : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
    return b.CreateIntrinsic(id, {}, {b.getInt32(~0u), value, by, b.getInt32(mode == ShuffleMode::Up ? 0 : 31)});
  }
  Value* any(Value* p) override { return b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {b.getInt32(~0u), p}); }
  Value* ballot(Value* p) override { return b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {}, {b.getInt32(~0u), p}); }

  void cp_async(Value* shared, Value* global, unsigned bytes, Value* size, Value* when) override {
    const std::string copy = std::string("cp.async.") + (bytes == 16 ? "cg" : "ca") + ".shared.global [$0], [$1], " + std::to_string(bytes) + ", $2;";
    if (!size) size = b.getInt32(bytes);
    if (!when) return (void)asm_call(b.getVoidTy(), copy, "r,l,r,~{memory}", {shared, global, size}, true);
    asm_call(b.getVoidTy(), "{\n.reg .pred p;\nsetp.ne.b32 p, $3, 0;\n@p " + copy + "\n}", "r,l,r,r,~{memory}",
             {shared, global, size, b.CreateZExt(when, b.getInt32Ty())}, true);
  }
  void cp_async_commit() override { asm_call(b.getVoidTy(), "cp.async.commit_group;", "~{memory}", {}, true); }
  void cp_async_wait(unsigned pending) override { asm_call(b.getVoidTy(), "cp.async.wait_group " + std::to_string(pending) + ";", "~{memory}", {}, true); }

  Values ldmatrix(unsigned matrices, bool transpose, Value* addr) override {
    std::string outs, constraints;
    for (unsigned k = 0; k < matrices; ++k) {
      outs += (k ? ", $" : "$") + std::to_string(k);
      constraints += "=r,";
    }
    return split(asm_call(words(b.getInt32Ty(), matrices),
                          "ldmatrix.sync.aligned.m8n8.x" + std::to_string(matrices) + (transpose ? ".trans" : "") + ".shared.b16 {" + outs + "}, [$" +
                              std::to_string(matrices) + "];",
                          constraints + "r,~{memory}", {addr}, true),
                 matrices);
  }
  Values mma(MmaKind kind, std::span<Value* const> a, std::span<Value* const> bb, std::span<Value* const> c, bool a_e5m2, bool b_e5m2) override {
    const std::string fa = a_e5m2 ? "e5m2" : "e4m3", fb = b_e5m2 ? "e5m2" : "e4m3";
    std::string name;
    const char* acc = "f";
    const char* in = "r";
    const std::string ints = a.size() == 1 ? "m8n8k16.row.col.s32." : "m16n8k32.row.col.s32.";
    switch (kind) {
      case MmaKind::F16F32: name = a.size() == 2 ? "m16n8k8.row.col.f32.f16.f16.f32" : "m16n8k16.row.col.f32.f16.f16.f32"; break;
      case MmaKind::BF16F32: name = "m16n8k16.row.col.f32.bf16.bf16.f32"; break;
      case MmaKind::F16F16: name = "m16n8k16.row.col.f16.f16.f16.f16"; acc = "r"; break;
      case MmaKind::TF32F32: name = "m16n8k8.row.col.f32.tf32.tf32.f32"; break;
      case MmaKind::S8: name = ints + "s8.s8.s32"; acc = "r"; break;
      case MmaKind::U8: name = ints + "u8.u8.s32"; acc = "r"; break;
      case MmaKind::S8U8: name = ints + "s8.u8.s32"; acc = "r"; break;
      case MmaKind::U8S8: name = ints + "u8.s8.s32"; acc = "r"; break;
      case MmaKind::F64: name = (a.size() == 1 ? "m8n8k4" : "m16n8k" + std::to_string(2 * a.size())) + std::string(".row.col.f64.f64.f64.f64"); acc = "d"; in = "d"; break;
      case MmaKind::F8F32: name = "m16n8k32.row.col.f32." + fa + "." + fb + ".f32"; break;
    }
    std::string text = "mma.sync.aligned." + name + " ", constraints;
    unsigned at = 0;
    const auto list = [&](size_t n) {
      std::string s = "{";
      for (size_t k = 0; k < n; ++k) s += (k ? ", $" : "$") + std::to_string(at++);
      return s + "}";
    };
    text += list(c.size()) + ", ";
    text += list(a.size()) + ", ";
    text += list(bb.size()) + ", ";
    text += list(c.size()) + ";";
    Values args;
    for (size_t k = 0; k < c.size(); ++k) constraints += std::string("=") + acc + ",";
    for (Value* v : a) args.push_back(v), constraints += std::string(in) + ",";
    for (Value* v : bb) args.push_back(v), constraints += std::string(in) + ",";
    for (Value* v : c) args.push_back(v), constraints += std::string(acc) + ",";
    constraints.pop_back();
    return split(asm_call(words(c[0]->getType(), static_cast<unsigned>(c.size())), text, constraints, args, false), static_cast<unsigned>(c.size()));
  }

  Value* approx(ApproxOp op, Value* f32) override {
    static constexpr const char* kNames[] = {"ex2.approx.f32", "lg2.approx.f32", "rcp.approx.f32", "rsqrt.approx.f32", "sqrt.approx.f32", "sin.approx.f32",
                                             "cos.approx.f32", "tanh.approx.f32"};
    auto* call = asm_call(b.getFloatTy(), std::string(kNames[static_cast<int>(op)]) + " $0, $1;", "=f,f", {f32}, false);
    return call;
  }
  Value* fma(Value* x, Value* y, Value* z) override { return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z}); }
  Value* sqrt(Value* x) override { return b.CreateIntrinsic(llvm::Intrinsic::sqrt, {x->getType()}, {x}); }
  Value* opaque(Value* v) override {
    const bool wide = v->getType()->isIntegerTy(64);
    return asm_call(v->getType(), wide ? "mov.b64 $0, $1;" : "mov.b32 $0, $1;", wide ? "=l,l" : "=r,r", {v}, true);
  }
  Value* byte_permute(Value* low, Value* high, Value* selector) override { return b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {}, {low, high, selector}); }
  Value* clock() override { return asm_call(b.getInt64Ty(), "mov.u64 $0, %clock64;", "=l", {}, true); }

  void trap(uint32_t code, Value* mailbox) override {
    b.CreateCall(trap_function(), {mailbox, b.getInt32(code), b.getInt32(site)});
  }

  // --- hopper units ---
  void named_barrier(unsigned id, unsigned count) override {
    asm_call(b.getVoidTy(), "bar.sync " + std::to_string(id) + ", " + std::to_string(count) + ";", "~{memory}", {}, true);
  }
  void named_barrier_arrive(unsigned id, unsigned count) override {
    asm_call(b.getVoidTy(), "bar.arrive " + std::to_string(id) + ", " + std::to_string(count) + ";", "~{memory}", {}, true);
  }
  void named_barrier(Value* id, unsigned count) override {
    asm_call(b.getVoidTy(), "bar.sync $0, " + std::to_string(count) + ";", "r,~{memory}", {id}, true);
  }
  void named_barrier_arrive(Value* id, unsigned count) override {
    asm_call(b.getVoidTy(), "bar.arrive $0, " + std::to_string(count) + ";", "r,~{memory}", {id}, true);
  }
  void warp_sync() override { asm_call(b.getVoidTy(), "bar.warp.sync 0xffffffff;", "~{memory}", {}, true); }
  Value* warp_uniform(Value* v) override { return shuffle(ShuffleMode::Index, v, b.getInt32(0)); }

  void mbarrier_init(Value* bar, unsigned count) override {
    asm_call(b.getVoidTy(), "mbarrier.init.shared::cta.b64 [$0], " + std::to_string(count) + ";", "r,~{memory}", {bar}, true);
  }
  void fence_mbarrier_init() override { asm_call(b.getVoidTy(), "fence.mbarrier_init.release.cluster;", "~{memory}", {}, true); }
  void cp_async_arrive(Value* bar) override { asm_call(b.getVoidTy(), "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r,~{memory}", {bar}, true); }
  void mbarrier_arrive(Value* bar) override { asm_call(b.getVoidTy(), "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {bar}, true); }
  void mbarrier_arrive_expect(Value* bar, Value* bytes) override {
    asm_call(b.getVoidTy(), "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", {bar, bytes}, true);
  }
  void mbarrier_wait(Value* bar, Value* phase, bool cluster) override {
    asm_call(b.getVoidTy(),
             std::string("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.") + (cluster ? "acquire.cluster." : "") + "shared::cta.b64 p, [$0], $1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}",
             "r,r,~{memory}", {bar, b.CreateAnd(phase, 1)}, true);
  }
  void fence_proxy_async(bool shared_only) override {
    asm_call(b.getVoidTy(), shared_only ? "fence.proxy.async.shared::cta;" : "fence.proxy.async;", "~{memory}", {}, true);
  }

  void tma_load(Value* map, std::span<Value* const> at, Value* shared, Value* bar) override {
    tensor_copy("cp.async.bulk.tensor", "shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$C}], [$2];", "r,l,r", {shared, map, bar}, at);
  }
  void tma_load_multicast(Value* map, std::span<Value* const> at, Value* shared, Value* bar, Value* mask) override {
    tensor_copy("cp.async.bulk.tensor", "shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$C}], [$2], $3;", "r,l,r,h",
                {shared, map, bar, b.CreateTrunc(mask, b.getInt16Ty())}, at);
  }
  void tma_store(Value* map, std::span<Value* const> at, Value* shared) override {
    tensor_copy("cp.async.bulk.tensor", "global.shared::cta.tile.bulk_group [$0, {$C}], [$1];", "l,r", {map, shared}, at);
  }
  void tma_reduce(RmwOp op, Value* map, std::span<Value* const> at, Value* shared) override {
    tensor_copy("cp.reduce.async.bulk.tensor", "global.shared::cta." + reduction_text(op) + ".tile.bulk_group [$0, {$C}], [$1];", "l,r", {map, shared}, at);
  }
  void bulk_reduce(RmwOp op, Type* type, bool is_bf16, Value* global, Value* shared, Value* bytes) override {
    const std::string bits = std::to_string(type->getIntegerBitWidth());
    const bool half = op == RmwOp::AddF && type->isIntegerTy(16);
    const std::string name = op == RmwOp::AddF                               ? (half ? (is_bf16 ? "noftz.bf16" : "noftz.f16") : "f" + bits)
                             : op == RmwOp::Max || op == RmwOp::Min          ? "s" + bits
                             : op == RmwOp::And || op == RmwOp::Or || op == RmwOp::Xor ? "b" + bits
                                                                             : "u" + bits;
    asm_call(b.getVoidTy(), "cp.reduce.async.bulk.global.shared::cta.bulk_group." + reduction_text(op) + "." + name + " [$0], [$1], $2;", "l,r,r,~{memory}", {global, shared, bytes}, true);
  }
  void bulk_commit() override { asm_call(b.getVoidTy(), "cp.async.bulk.commit_group;", "~{memory}", {}, true); }
  void bulk_wait(unsigned pending, bool read) override {
    asm_call(b.getVoidTy(), std::string("cp.async.bulk.wait_group") + (read ? ".read " : " ") + std::to_string(pending) + ";", "~{memory}", {}, true);
  }

  WgmmaAccumulator wgmma_accumulator(MmaKind kind, unsigned n) override {
    WgmmaAccumulator d{kind, n, {}, nullptr};
    llvm::BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> at(&entry, entry.begin());
    for (unsigned k = 0; k < d.registers(); ++k) d.slots.push_back(at.CreateAlloca(accumulator_type(kind)));
    return d;
  }
  void wgmma_fence() override { asm_call(b.getVoidTy(), "wgmma.fence.sync.aligned;", "~{memory}", {}, true); }
  void wgmma(WgmmaAccumulator& d, const WgmmaOperand& a, const WgmmaOperand& bb, Value* scale_d) override {
    struct Spelling {
      const char* types;
      unsigned k;
      bool transposes, scales;
    };
    const std::string f8 = std::string("f32.") + (a.e5m2 ? "e5m2" : "e4m3") + (bb.e5m2 ? ".e5m2" : ".e4m3");
    const Spelling s = d.kind == MmaKind::F16F32    ? Spelling{"f32.f16.f16", 16, true, true}
                       : d.kind == MmaKind::BF16F32 ? Spelling{"f32.bf16.bf16", 16, true, true}
                       : d.kind == MmaKind::F16F16  ? Spelling{"f16.f16.f16", 16, true, true}
                       : d.kind == MmaKind::TF32F32 ? Spelling{"f32.tf32.tf32", 8, false, true}
                       : d.kind == MmaKind::F8F32   ? Spelling{f8.c_str(), 32, false, true}
                       : d.kind == MmaKind::S8      ? Spelling{"s32.s8.s8", 32, false, false}
                       : d.kind == MmaKind::U8      ? Spelling{"s32.u8.u8", 32, false, false}
                       : d.kind == MmaKind::S8U8    ? Spelling{"s32.s8.u8", 32, false, false}
                                                    : Spelling{"s32.u8.s8", 32, false, false};
    const size_t n = d.registers();
    // Products of one accumulator whose operands lie in shared memory become one statement: LLVM takes long for each of its registers.
    if (!a.registers.empty() || run_.commit || !extends_run(d)) run_ = {};
    const Products before = std::move(run_);
    run_ = {};
    std::string outs, text = before.text, inputs = before.inputs;
    Values args = before.args;
    for (size_t k = 0; k < n; ++k) outs += (k ? ", $" : "$") + std::to_string(k);
    size_t at = n + args.size();
    std::string a_text;
    if (a.registers.empty()) {
      a_text = "$" + std::to_string(at++);
      inputs += "l,";
      args.push_back(a.descriptor);
    } else {
      for (Value* v : a.registers) {
        a_text += (a_text.empty() ? "{$" : ", $") + std::to_string(at++);
        inputs += "r,";
        args.push_back(v);
      }
      a_text += "}";
    }
    const std::string b_text = "$" + std::to_string(at++), scale_text = "$" + std::to_string(at++);
    inputs += "l,r,";
    args.push_back(bb.descriptor);
    args.push_back(scale_d ? b.CreateZExt(scale_d, b.getInt32Ty()) : b.getInt32(1));
    std::string tail;
    if (s.scales) tail += ", 1, 1";
    if (s.transposes) tail += a.registers.empty() ? std::string(a.mn_major ? ", 1" : ", 0") + (bb.mn_major ? ", 1" : ", 0") : std::string(bb.mn_major ? ", 1" : ", 0");
    text += (text.empty() ? "{\n.reg .pred p;\nsetp.ne.b32 p, " : "\n{\n.reg .pred p;\nsetp.ne.b32 p, ") + scale_text + ", 0;\nwgmma.mma_async.sync.aligned.m64n" +
            std::to_string(d.n) + "k" + std::to_string(s.k) + "." + s.types + " {" + outs + "}, " + a_text + ", " + b_text + ", p" + tail + ";\n}";
    Products run = products(d, before, text, inputs, args, "");
    run.products = before.products + 1;
    if (a.registers.empty()) run_ = std::move(run);
  }
  void wgmma_commit() override {
    auto* commit = asm_call(b.getVoidTy(), kCommit, "~{memory}", {}, true);
    if (run_.call) run_.commit = run_.commit ? nullptr : commit;
  }
  void wgmma_wait(unsigned pending, std::span<WgmmaAccumulator* const> in_flight, std::span<Value* const> held) override {
    const std::string wait_text = "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";";
    // The same where the wait follows the products at once.
    if (in_flight.size() == 1 && held.empty() && run_.commit && extends_run(*in_flight[0])) {
      const Products before = std::move(run_);
      run_ = {};
      (void)products(*in_flight[0], before, before.text + "\n" + kCommit + "\n" + wait_text, before.inputs, before.args, ",~{memory}");
      before.commit->eraseFromParent();
      return;
    }
    // The accumulators pass through the wait, so that nothing that reads them is moved above it.
    std::string constraints;
    Values args;
    std::vector<Type*> types;
    for (WgmmaAccumulator* d : in_flight)
      for (Value* slot : d->slots) {
        Type* type = accumulator_type(d->kind);
        types.push_back(type);
        args.push_back(b.CreateLoad(type, slot));
        constraints += type->isFloatTy() ? "=f," : "=r,";
      }
    for (size_t k = 0; k < args.size(); ++k) constraints += std::to_string(k) + ",";
    const size_t results = args.size();
    for (Value* v : held) {
      args.push_back(v);
      constraints += "r,";
    }
    if (args.empty()) {
      asm_call(b.getVoidTy(), wait_text, "~{memory}", {}, true);
      return;
    }
    Type* result = types.size() == 1 ? types[0] : llvm::StructType::get(b.getContext(), types);
    const Values parts = split(asm_call(result, wait_text, constraints + "~{memory}", args, true), static_cast<unsigned>(results));
    size_t at = 0;
    for (WgmmaAccumulator* d : in_flight)
      for (Value* slot : d->slots) b.CreateStore(parts[at++], slot);
  }
  Values wgmma_read(WgmmaAccumulator& d) override {
    Values out;
    for (Value* slot : d.slots) out.push_back(b.CreateLoad(accumulator_type(d.kind), slot));
    return out;
  }
  void wgmma_forget(WgmmaAccumulator& d) override {
    for (Value* slot : d.slots) b.CreateStore(llvm::UndefValue::get(accumulator_type(d.kind)), slot);
  }
  void wgmma_write(WgmmaAccumulator& d, std::span<Value* const> values) override {
    for (size_t k = 0; k < d.slots.size(); ++k) b.CreateStore(values[k], d.slots[k]);
  }

  void stmatrix(unsigned matrices, bool transpose, Value* row_addr, std::span<Value* const> values) override {
    std::string ins, constraints = "r";
    Values args{row_addr};
    for (unsigned k = 0; k < matrices; ++k) {
      ins += (k ? ", $" : "$") + std::to_string(k + 1);
      constraints += ",r";
      args.push_back(values[k]);
    }
    asm_call(b.getVoidTy(), "stmatrix.sync.aligned.m8n8.x" + std::to_string(matrices) + (transpose ? ".trans" : "") + ".shared.b16 [$0], {" + ins + "};",
             constraints + ",~{memory}", args, true);
  }
  void max_registers(bool raise, unsigned n) override {
    asm_call(b.getVoidTy(), std::string("setmaxnreg.") + (raise ? "inc" : "dec") + ".sync.aligned.u32 " + std::to_string(n) + ";", "~{memory}", {}, true);
  }


  // --- clusters ---
  Value* cluster_rank() override { return asm_call(b.getInt32Ty(), "mov.u32 $0, %cluster_ctarank;", "=r", {}, false); }
  Value* cluster_size() override { return asm_call(b.getInt32Ty(), "mov.u32 $0, %cluster_nctarank;", "=r", {}, false); }
  void cluster_arrive() override { asm_call(b.getVoidTy(), "barrier.cluster.arrive.aligned;", "~{memory}", {}, true); }
  void cluster_wait() override { asm_call(b.getVoidTy(), "barrier.cluster.wait.aligned;", "~{memory}", {}, true); }
  Value* map_shared(Value* addr, Value* rank) override { return asm_call(b.getInt32Ty(), "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {addr, rank}, false); }
  Values load_cluster(Type* type, unsigned n, Value* addr) override { return load(type, n, addr, "ld.shared::cluster", nullptr, nullptr, false); }
  void store_cluster(std::span<Value* const> values, Value* addr) override { store(values, addr, "st.shared::cluster", nullptr, false); }
  Value* atomic_cluster(RmwOp op, Value* value, Value* addr) override {
    const unsigned bits = value->getType()->getIntegerBitWidth();
    const std::string n = std::to_string(bits), r = reg(bits);
    const std::string name = op == RmwOp::Xchg                                       ? "exch.b" + n
                             : op == RmwOp::And || op == RmwOp::Or || op == RmwOp::Xor ? reduction_text(op) + ".b" + n
                             : op == RmwOp::Max || op == RmwOp::Min                   ? reduction_text(op) + ".s" + n
                                                                                      : reduction_text(op) + ".u" + n;
    return asm_call(value->getType(), "atom.relaxed.cluster.shared::cluster." + name + " $0, [$1], $2;", "=" + r + ",r," + r + ",~{memory}", {addr, value}, true);
  }
  void mbarrier_arrive_cluster(Value* bar, Value* bytes) override {
    if (!bytes) return (void)asm_call(b.getVoidTy(), "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r,~{memory}", {bar}, true);
    asm_call(b.getVoidTy(), "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", "r,r,~{memory}", {bar, bytes}, true);
  }

 private:
  /// NAME.Nd.REST with the coordinates for $C.
  void tensor_copy(const std::string& name, std::string rest, std::string constraints, Values args, std::span<Value* const> at) {
    std::string coordinates;
    for (Value* c : at) {
      coordinates += (coordinates.empty() ? "$" : ", $") + std::to_string(args.size());
      constraints += ",r";
      args.push_back(c);
    }
    rest.replace(rest.find("$C"), 2, coordinates);
    asm_call(b.getVoidTy(), name + "." + std::to_string(at.size()) + "d." + rest, constraints + ",~{memory}", args, true);
  }
  static std::string reduction_text(RmwOp op) {
    switch (op) {
      case RmwOp::And: return "and";
      case RmwOp::Or: return "or";
      case RmwOp::Xor: return "xor";
      case RmwOp::Add:
      case RmwOp::AddF: return "add";
      case RmwOp::Max:
      case RmwOp::UMax: return "max";
      case RmwOp::Min:
      case RmwOp::UMin: return "min";
      default: llvm::report_fatal_error("reduction without an instruction");
    }
  }
  Type* accumulator_type(MmaKind kind) {
    switch (kind) {
      case MmaKind::F16F32: case MmaKind::BF16F32: case MmaKind::TF32F32: case MmaKind::F8F32: return b.getFloatTy();
      default: return b.getInt32Ty();
    }
  }
  Value* special(llvm::Intrinsic::ID id) { return b.CreateIntrinsic(id, {}, {}); }
  static std::string scope_text(MemScope s) { return s == MemScope::Block ? ".cta" : s == MemScope::Device ? ".gpu" : ".sys"; }
  static std::string order_text(MemOrder o) {
    switch (o) {
      case MemOrder::Acquire: return ".acquire";
      case MemOrder::Release: return ".release";
      case MemOrder::AcqRel: return ".acq_rel";
      default: return ".relaxed";
    }
  }
  static const char* reg(unsigned bits) { return bits <= 16 ? "h" : bits == 32 ? "r" : "l"; }
  Type* words(Type* word, unsigned n) {
    if (n == 1) return word;
    return llvm::StructType::get(b.getContext(), std::vector<Type*>(n, word));
  }
  /// Products issued one behind the other, as one statement; what was made of its results, and its inputs but for the accumulator.
  struct Products {
    llvm::CallInst *call = nullptr, *commit = nullptr;
    Values results;
    std::vector<llvm::Instruction*> stores;
    std::string text, inputs;
    Values args;
    unsigned products = 0;
  };
  Products run_;
  static constexpr const char* kCommit = "wgmma.commit_group.sync.aligned;";
  /// Whether a product of `d` issued here may join run_: nothing but arithmetic lies between.
  bool extends_run(const WgmmaAccumulator& d) const {
    constexpr unsigned kMostProducts = 8;
    if (!run_.call || run_.call->getParent() != b.GetInsertBlock() || run_.products == kMostProducts || run_.stores.size() != d.slots.size()) return false;
    for (size_t k = 0; k < d.slots.size(); ++k)
      if (run_.stores[k]->getOperand(1) != d.slots[k]) return false;
    if (b.GetInsertPoint() != b.GetInsertBlock()->end()) return false;
    for (auto i = std::next(run_.call->getIterator()); i != b.GetInsertBlock()->end(); ++i) {
      if (&*i == run_.commit || std::find(run_.stores.begin(), run_.stores.end(), &*i) != run_.stores.end()) continue;
      const auto* load = llvm::dyn_cast<llvm::LoadInst>(&*i);
      const bool own = load && llvm::isa<llvm::AllocaInst>(load->getPointerOperand()) &&
                       std::find(d.slots.begin(), d.slots.end(), load->getPointerOperand()) == d.slots.end();
      if (!own && (i->mayHaveSideEffects() || i->mayReadFromMemory())) return false;
    }
    return true;
  }
  /// Makes the statement that stands for `before`, too, and for its inputs and results.
  Products products(WgmmaAccumulator& d, const Products& before, const std::string& text, const std::string& inputs, const Values& inputs_given, const char* clobbered) {
    Type* type = accumulator_type(d.kind);
    const size_t n = d.registers();
    Products run{nullptr, nullptr, {}, {}, text, inputs, inputs_given, 0};
    std::string constraints;
    for (size_t k = 0; k < n; ++k) constraints += type->isFloatTy() ? "=f," : "=r,";
    constraints += inputs;
    Values args = inputs_given;
    for (size_t k = 0; k < n; ++k) {
      constraints += std::to_string(k) + ",";
      args.push_back(before.call ? before.call->getArgOperand(static_cast<unsigned>(before.args.size() + k)) : b.CreateLoad(type, d.slots[k]));
    }
    constraints.pop_back();
    run.call = asm_call(words(type, static_cast<unsigned>(n)), text, constraints + clobbered, args, true);
    run.results = split(run.call, static_cast<unsigned>(n));
    for (size_t k = 0; k < n; ++k) run.stores.push_back(b.CreateStore(run.results[k], d.slots[k]));
    for (llvm::Instruction* store : before.stores) store->eraseFromParent();
    for (Value* result : before.results)
      if (result != before.call) llvm::cast<llvm::Instruction>(result)->eraseFromParent();
    if (before.call) before.call->eraseFromParent();
    return run;
  }
  Values split(Value* v, unsigned n) {
    if (n == 1) return {v};
    Values out;
    for (unsigned k = 0; k < n; ++k) out.push_back(b.CreateExtractValue(v, k));
    return out;
  }
  llvm::CallInst* asm_call(Type* result, const std::string& text, const std::string& constraints, llvm::ArrayRef<Value*> args, bool effects) {
    std::vector<Type*> types;
    for (Value* v : args) types.push_back(v->getType());
    auto* code = llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text, constraints, effects);
    auto* call = b.CreateCall(code, args);
    call->addFnAttr(llvm::Attribute::Convergent);
    call->addFnAttr(llvm::Attribute::NoUnwind);
    if (!effects) call->setDoesNotAccessMemory();
    return call;
  }

  Container container(Type* type, unsigned n) {
    const unsigned bits = type->getIntegerBitWidth(), total = bits * n / 8;
    Type* i32 = b.getInt32Ty();
    switch (total) {
      case 1: return {b.getInt16Ty(), 1, ".u8", "h", 1};
      case 2: return {b.getInt16Ty(), 1, ".b16", "h", 16 / bits};
      case 4: return {i32, 1, ".b32", "r", 32 / bits};
      case 8: return bits == 64 ? Container{b.getInt64Ty(), 1, ".b64", "l", 1} : Container{i32, 2, ".v2.b32", "r", 32 / bits};
      default: return bits == 64 ? Container{b.getInt64Ty(), 2, ".v2.b64", "l", 1} : Container{i32, 4, ".v4.b32", "r", 32 / bits};
    }
  }
  Values unpack(const Values& parts, Type* type, const Container& c) {
    Values out;
    const unsigned bits = type->getIntegerBitWidth();
    for (Value* p : parts)
      for (unsigned k = 0; k < c.per_part; ++k) out.push_back(b.CreateTrunc(k ? b.CreateLShr(p, k * bits) : p, type));
    return out;
  }
  Values pack(std::span<Value* const> values, const Container& c) {
    Values out;
    const unsigned bits = values[0]->getType()->getIntegerBitWidth();
    for (unsigned p = 0; p < c.parts; ++p) {
      Value* word = nullptr;
      for (unsigned k = 0; k < c.per_part; ++k) {
        Value* v = b.CreateZExt(values[p * c.per_part + k], c.word);
        word = word ? b.CreateOr(word, b.CreateShl(v, k * bits)) : v;
      }
      out.push_back(word);
    }
    return out;
  }

  /// A constant that is added to an address becomes part of the instruction ("+64"): the address of a tile's other registers then needs no
  /// register of its own.
  static std::string take_offset(Value*& addr) {
    const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(addr);
    if (!sum || sum->getOpcode() != llvm::Instruction::Add) return "";
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(1));
    if (!number || !number->getValue().isSignedIntN(23)) return "";
    addr = sum->getOperand(0);
    const int64_t n = number->getSExtValue();
    return n == 0 ? "" : (n > 0 ? "+" : "") + std::to_string(n);
  }
  Value* pointer(Value* addr, bool global) { return b.CreateIntToPtr(addr, b.getPtrTy(global ? 1 : 3)); }

  Values load(Type* type, unsigned n, Value* addr, const std::string& op, Value* pred, Value* otherwise, bool global) {
    const Container c = container(type, n);
    const unsigned bytes = type->getIntegerBitWidth() * n / 8;
    const bool always = !pred || (llvm::isa<llvm::ConstantInt>(pred) && llvm::cast<llvm::ConstantInt>(pred)->isOne());
    if (always && (op == "ld.global" || op == "ld.shared")) {
      Type* word = bytes == 1 ? b.getInt8Ty() : c.word;
      if (c.parts == 1) return unpack({b.CreateAlignedLoad(word, pointer(addr, global), llvm::Align(bytes))}, type, c);
      Value* v = b.CreateAlignedLoad(llvm::FixedVectorType::get(word, c.parts), pointer(addr, global), llvm::Align(bytes));
      Values parts;
      for (unsigned k = 0; k < c.parts; ++k) parts.push_back(b.CreateExtractElement(v, k));
      return unpack(parts, type, c);
    }
    std::string outs, constraints, before;
    for (unsigned k = 0; k < c.parts; ++k) {
      outs += (k ? ", $" : "$") + std::to_string(k);
      constraints += std::string("=&") + c.constraint + ",";
    }
    if (c.parts > 1) outs = "{" + outs + "}";
    const std::string plus = take_offset(addr);
    Values args{addr};
    constraints += global ? "l" : "r";
    std::string text;
    if (always) {
      text = op + c.suffix + " " + outs + ", [$" + std::to_string(c.parts) + plus + "];";
    } else {
      args.push_back(b.CreateZExt(pred, b.getInt32Ty()));
      constraints += ",r";
      Values fill;
      if (otherwise) fill = pack(Values(n, otherwise), c);
      unsigned next = c.parts + 2;
      for (unsigned k = 0; k < c.parts; ++k) {
        const std::string mov = c.constraint[0] == 'h' ? "mov.b16 $" : c.constraint[0] == 'r' ? "mov.b32 $" : "mov.b64 $";
        if (otherwise) {
          before += mov + std::to_string(k) + ", $" + std::to_string(next++) + ";\n";
          args.push_back(fill[k]);
          constraints += std::string(",") + c.constraint;
        } else {
          before += mov + std::to_string(k) + ", 0;\n";
        }
      }
      text = "{\n.reg .pred p;\nsetp.ne.b32 p, $" + std::to_string(c.parts + 1) + ", 0;\n" + before + "@p " + op + c.suffix + " " + outs + ", [$" +
             std::to_string(c.parts) + plus + "];\n}";
    }
    const bool weak_global = op == "ld.global";
    // Weak loads may move among themselves but not across stores, barriers and fences: they read memory and have no other effect.
    auto* call = asm_call(words(c.word, c.parts), text, constraints + (weak_global ? "" : ",~{memory}"), args, true);
    return unpack(split(call, c.parts), type, c);
  }

  void store(std::span<Value* const> values, Value* addr, const std::string& op, Value* pred, bool global) {
    Type* type = values[0]->getType();
    const unsigned n = static_cast<unsigned>(values.size());
    const Container c = container(type, n);
    const unsigned bytes = type->getIntegerBitWidth() * n / 8;
    const bool always = !pred || (llvm::isa<llvm::ConstantInt>(pred) && llvm::cast<llvm::ConstantInt>(pred)->isOne());
    const Values parts = pack(values, c);
    if (always && (op == "st.global" || op == "st.shared")) {
      if (bytes == 1) {
        b.CreateAlignedStore(values[0], pointer(addr, global), llvm::Align(1));
      } else if (c.parts == 1) {
        b.CreateAlignedStore(parts[0], pointer(addr, global), llvm::Align(bytes));
      } else {
        Value* v = llvm::PoisonValue::get(llvm::FixedVectorType::get(c.word, c.parts));
        for (unsigned k = 0; k < c.parts; ++k) v = b.CreateInsertElement(v, parts[k], k);
        b.CreateAlignedStore(v, pointer(addr, global), llvm::Align(bytes));
      }
      return;
    }
    std::string ins, constraints = global ? "l" : "r";
    const std::string plus = take_offset(addr);
    Values args{addr};
    for (unsigned k = 0; k < c.parts; ++k) {
      ins += (k ? ", $" : "$") + std::to_string(k + 1);
      constraints += std::string(",") + c.constraint;
      args.push_back(parts[k]);
    }
    if (c.parts > 1) ins = "{" + ins + "}";
    std::string text = op + c.suffix + " [$0" + plus + "], " + ins + ";";
    if (!always) {
      args.push_back(b.CreateZExt(pred, b.getInt32Ty()));
      constraints += ",r";
      text = "{\n.reg .pred p;\nsetp.ne.b32 p, $" + std::to_string(c.parts + 1) + ", 0;\n@p " + text + "\n}";
    }
    asm_call(b.getVoidTy(), text, constraints + ",~{memory}", args, true);
  }

  /// One result, zero where the predicate is false. $A, $B, $C stand for the arguments.
  Value* predicated(Type* type, std::string text, Values args, const std::string& constraints, Value* pred) {
    for (size_t k = 0; k < args.size(); ++k) {
      const std::string name = std::string("$") + static_cast<char>('A' + k);
      if (const size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), "$" + std::to_string(k + 1));
    }
    const unsigned bits = type->getIntegerBitWidth();
    std::string all = std::string("=&") + reg(bits) + "," + constraints;
    if (pred) {
      args.push_back(b.CreateZExt(pred, b.getInt32Ty()));
      text = "{\n.reg .pred p;\nsetp.ne.b32 p, $" + std::to_string(args.size()) + ", 0;\nmov.b" + std::to_string(bits) + " $0, 0;\n@p " + text + "\n}";
      all += ",r";
    }
    return asm_call(type, text, all + ",~{memory}", args, true);
  }

  /// Modes that have no instruction for 16 bits here.
  Value* cas_loop(RmwOp op, Value* value, bool is_bf16, Value* addr, MemOrder order, MemScope scope, Value* pred) {
    Type* type = value->getType();
    llvm::BasicBlock* from = b.GetInsertBlock();
    auto* start = llvm::BasicBlock::Create(b.getContext(), "rmw", function_);
    auto* again = llvm::BasicBlock::Create(b.getContext(), "rmw.try", function_);
    auto* after = llvm::BasicBlock::Create(b.getContext(), "rmw.done", function_);
    if (pred) {
      b.CreateCondBr(pred, start, after);
    } else {
      b.CreateBr(start);
    }
    b.SetInsertPoint(start);
    Value* first = load_global(type, 1, addr, MemOrder::Relaxed, scope, nullptr, nullptr)[0];
    b.CreateBr(again);
    b.SetInsertPoint(again);
    auto* old = b.CreatePHI(type, 2);
    old->addIncoming(first, start);
    Value* next = value;
    if (op == RmwOp::AddF) {
      // bfloat16 bits are the upper half of an f32; the sum is rounded to nearest even by hand.
      (void)is_bf16;
      const auto wide = [&](Value* v) { return b.CreateBitCast(b.CreateShl(b.CreateZExt(v, b.getInt32Ty()), 16), b.getFloatTy()); };
      Value* sum = b.CreateBitCast(b.CreateFAdd(wide(old), wide(value)), b.getInt32Ty());
      Value* bias = b.CreateAdd(b.getInt32(0x7FFF), b.CreateAnd(b.CreateLShr(sum, 16), 1));
      Value* rounded = b.CreateTrunc(b.CreateLShr(b.CreateAdd(sum, bias), 16), type);
      Value* nan = b.CreateICmpUGT(b.CreateAnd(sum, 0x7FFFFFFF), b.getInt32(0x7F800000));
      next = b.CreateSelect(nan, llvm::ConstantInt::get(type, 0x7FC0), rounded);
    }
    Value* seen = atomic_cas(old, next, addr, order, scope, nullptr);
    old->addIncoming(seen, b.GetInsertBlock());
    llvm::BasicBlock* last = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpEQ(seen, old), after, again);
    b.SetInsertPoint(after);
    auto* result = b.CreatePHI(type, 2);
    result->addIncoming(seen, last);
    if (pred) result->addIncoming(llvm::ConstantInt::get(type, 0), from);
    return result;
  }

  /// void trap(mailbox, code, site): the first caller fills the mailbox; the kernel ends with an error.
  llvm::Function* trap_function() {
    if (trap_) return trap_;
    Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
    trap_ = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {i64, i32, i32}, false), llvm::GlobalValue::InternalLinkage, "report_trap", module);
    trap_->addFnAttr(llvm::Attribute::NoInline);
    trap_->addFnAttr(llvm::Attribute::NoUnwind);
    trap_->addFnAttr(llvm::Attribute::NoReturn);
    const auto saved = b.saveIP();
    const llvm::DebugLoc line = b.getCurrentDebugLocation();
    b.SetCurrentDebugLocation(llvm::DebugLoc());
    llvm::Function* kernel = function_;
    function_ = trap_;
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", trap_));
    Value* box = trap_->getArg(0);
    Value* old = atomic_cas(b.getInt32(0), b.getInt32(1), box, MemOrder::Relaxed, MemScope::System, nullptr);
    auto* won = llvm::BasicBlock::Create(b.getContext(), "won", trap_);
    auto* stop = llvm::BasicBlock::Create(b.getContext(), "stop", trap_);
    b.CreateCondBr(b.CreateICmpEQ(old, b.getInt32(0)), won, stop);
    b.SetInsertPoint(won);
    Value* words[] = {trap_->getArg(1), trap_->getArg(2), block_id(0), block_id(1), block_id(2)};
    const unsigned at[] = {offsetof(Mailbox, code), offsetof(Mailbox, inst), offsetof(Mailbox, block), offsetof(Mailbox, block) + 4, offsetof(Mailbox, block) + 8};
    for (unsigned k = 0; k < 5; ++k) store_global({&words[k], 1}, b.CreateAdd(box, b.getInt64(at[k])), MemOrder::Relaxed, MemScope::System, nullptr);
    asm_call(b.getVoidTy(), "membar.sys;", "~{memory}", {}, true);
    b.CreateBr(stop);
    b.SetInsertPoint(stop);
    // Threads that lost wait for the one that writes, so that the mailbox is complete when the grid dies.
    asm_call(b.getVoidTy(), "nanosleep.u32 100000;\ntrap;", "~{memory}", {}, true);
    b.CreateUnreachable();
    function_ = kernel;
    b.restoreIP(saved);
    b.SetCurrentDebugLocation(line);
    return trap_;
  }

  llvm::Function* function_ = nullptr;
  llvm::Function* trap_ = nullptr;
  Value* shared_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceOps> make_ptx_device(llvm::Module& m, const Target& t) { return std::make_unique<PtxDevice>(m, t); }

}  // namespace tile
