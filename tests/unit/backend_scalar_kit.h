// Variants of elementwise operations as LLVM functions i64 f(i64, i64, i64) on storage bits, for one target.
#pragma once

#include <string>

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include "backend/ptx/scalar.h"
#include "tests/unit/backend_scalar_variants.h"

namespace scalar_kit {

/// The arithmetic part of a device: as PTX, or on the host with calls for what x86 cannot do.
class ArithmeticDevice final : public DeviceOps {
 public:
  using DeviceOps::DeviceOps;
  Value* approx(ApproxOp op, Value* x) override {
    namespace I = llvm::Intrinsic;
    static constexpr I::ID kIds[] = {I::nvvm_ex2_approx_f,   I::nvvm_lg2_approx_f,  I::nvvm_rcp_approx_ftz_f,
                                     I::nvvm_rsqrt_approx_f, I::nvvm_sqrt_approx_f, I::nvvm_sin_approx_f,
                                     I::nvvm_cos_approx_f};
    static constexpr const char* kNames[] = {"host_ex2",  "host_lg2", "host_rcp", "host_rsqrt",
                                             "host_sqrt", "host_sin", "host_cos", "host_tanh"};
    if (target.emulated) return call(kNames[static_cast<int>(op)], b.getFloatTy(), {x});
    if (op != ApproxOp::Tanh) return b.CreateIntrinsic(kIds[static_cast<int>(op)], {}, {x});
    auto* type = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy()}, false);
    return b.CreateCall(llvm::InlineAsm::get(type, "tanh.approx.f32 $0, $1;", "=f,f", false), {x});
  }
  Value* fma(Value* x, Value* y, Value* z) override {
    llvm::Type* t = x->getType();
    if (!target.emulated || t->isFloatTy() || t->isDoubleTy())
      return b.CreateIntrinsic(llvm::Intrinsic::fma, {t}, {x, y, z});
    const auto word = [&](Value* v) { return b.CreateZExt(b.CreateBitCast(v, b.getInt16Ty()), b.getInt32Ty()); };
    Value* r = call(t->isHalfTy() ? "host_fma_f16" : "host_fma_bf16", b.getInt32Ty(), {word(x), word(y), word(z)});
    return b.CreateBitCast(b.CreateTrunc(r, b.getInt16Ty()), t);
  }
  Value* sqrt(Value* x) override { return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }

  Values begin(const std::string&, unsigned, unsigned, unsigned) override { return {}; }
  void end() override {}
  Value* thread_id() override { return nullptr; }
  Value* block_id(unsigned) override { return nullptr; }
  Value* grid_size(unsigned) override { return nullptr; }
  Value* shared_base() override { return nullptr; }
  Values load_shared(llvm::Type*, unsigned, Value*, Value*) override { return {}; }
  void store_shared(std::span<Value* const>, Value*, Value*) override {}
  Values load_global(llvm::Type*, unsigned, Value*, MemOrder, MemScope, Value*, Value*) override { return {}; }
  void store_global(std::span<Value* const>, Value*, MemOrder, MemScope, Value*) override {}
  Value* atomic_rmw(RmwOp, Value*, bool, Value*, MemOrder, MemScope, Value*) override { return nullptr; }
  Value* atomic_cas(Value*, Value*, Value*, MemOrder, MemScope, Value*) override { return nullptr; }
  void fence(MemOrder, MemScope) override {}
  void barrier() override {}
  Value* shuffle(ShuffleMode, Value*, Value*) override { return nullptr; }
  Value* any(Value*) override { return nullptr; }
  Value* ballot(Value*) override { return nullptr; }
  void cp_async(Value*, Value*, unsigned, Value*, Value*) override {}
  void cp_async_commit() override {}
  void cp_async_wait(unsigned) override {}
  Values ldmatrix(unsigned, bool, Value*) override { return {}; }
  Values mma(MmaKind, std::span<Value* const>, std::span<Value* const>, std::span<Value* const>, bool, bool) override {
    return {};
  }
  Value* byte_permute(Value*, Value*, Value*) override { return nullptr; }
  Value* clock() override { return nullptr; }
  void trap(uint32_t, Value*) override {}

 private:
  Value* call(const char* name, llvm::Type* result, const Values& x) {
    std::vector<llvm::Type*> types;
    for (Value* v : x) types.push_back(v->getType());
    return b.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), x);
  }
};

/// Adds i64 NAME(i64, i64, i64); false with the reason in `why` if the lowering declines.
inline bool add_function(DeviceOps& d, const Variant& v, std::string& why) {
  Module m;
  Function f;
  make_function(v, m, f);
  llvm::LLVMContext& c = d.module.getContext();
  llvm::Type* word = d.b.getInt64Ty();
  auto* fn = llvm::Function::Create(llvm::FunctionType::get(word, {word, word, word}, false),
                                    llvm::GlobalValue::ExternalLinkage, v.name, d.module);
  d.b.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", fn));
  Values x;
  for (size_t k = 0; k < v.in.size(); ++k)
    x.push_back(
        from_memory(d, v.in[k], d.b.CreateTrunc(fn->getArg(static_cast<unsigned>(k)), memory_type(c, v.in[k]))));
  Value* r = lower_scalar(d, m, f, 0, x, why);
  if (!d.target.emulated) fn->setLinkage(llvm::GlobalValue::InternalLinkage);
  if (r)
    d.b.CreateRet(d.b.CreateZExt(to_memory(d, v.out, r), word));
  else
    d.b.CreateUnreachable();
  return r != nullptr;
}

/// Adds a kernel NAME_k(operands, results, count) on arrays of words, three operands an element.
inline void add_kernel(DeviceOps& d, const Variant& v) {
  llvm::LLVMContext& c = d.module.getContext();
  llvm::IRBuilder<>& b = d.b;
  llvm::Type *word = b.getInt64Ty(), *pointer = b.getPtrTy(1), *index = b.getInt32Ty();
  auto* fn = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, index}, false),
                                    llvm::GlobalValue::ExternalLinkage, v.name + "_k", d.module);
  auto* mark = d.module.getOrInsertNamedMetadata("nvvm.annotations");
  mark->addOperand(llvm::MDNode::get(c, {llvm::ConstantAsMetadata::get(fn), llvm::MDString::get(c, "kernel"),
                                         llvm::ConstantAsMetadata::get(b.getInt32(1))}));
  auto* entry = llvm::BasicBlock::Create(c, "", fn);
  auto* work = llvm::BasicBlock::Create(c, "", fn);
  auto* done = llvm::BasicBlock::Create(c, "", fn);
  b.SetInsertPoint(entry);
  const auto special = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(id, {}, {}); };
  Value* i = b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                                     special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x)),
                         special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
  b.CreateCondBr(b.CreateICmpULT(i, fn->getArg(2)), work, done);
  b.SetInsertPoint(work);
  Values x;
  for (unsigned k = 0; k < 3; ++k) {
    Value* at = b.CreateAdd(b.CreateMul(b.CreateZExt(i, word), b.getInt64(3)), b.getInt64(k));
    x.push_back(b.CreateLoad(word, b.CreateGEP(word, fn->getArg(0), {at})));
  }
  b.CreateStore(b.CreateCall(d.module.getFunction(v.name), x),
                b.CreateGEP(word, fn->getArg(1), {b.CreateZExt(i, word)}));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

inline Target make_target(unsigned sm, bool emulated) {
  Target t;
  t.sm = sm;
  t.llvm_cpu = "sm_" + std::to_string(sm);
  t.emulated = emulated;
  return t;
}

}  // namespace scalar_kit
