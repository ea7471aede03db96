// Small kernels built directly with DeviceOps, each with places where a defect can be planted, and what it takes to run
// them.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/emulate/emulate.h"
#include "backend/ptx/device.h"
#include "backend/ptx/jit.h"

namespace emulate_kit {
using namespace tile;

/// A kernel under construction. `bug` names the planted defect, "" for none.
struct Builder {
  DeviceOps& d;
  llvm::IRBuilder<>& b;
  Values params;
  std::string bug;

  [[nodiscard]] bool is(const char* name) const { return bug == name; }
  Value* i32(int64_t v) { return b.getInt32(static_cast<uint32_t>(v)); }
  Value* add(Value* x, Value* y) { return b.CreateAdd(x, y); }
  Value* add(Value* x, int64_t y) {
    return b.CreateAdd(x, llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(y)));
  }
  Value* mul(Value* x, int64_t y) {
    return b.CreateMul(x, llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(y)));
  }
  Value* mod(Value* x, int64_t y) { return b.CreateURem(x, i32(y)); }
  Value* div(Value* x, int64_t y) { return b.CreateUDiv(x, i32(y)); }
  Value* less(Value* x, int64_t y) { return b.CreateICmpULT(x, i32(y)); }
  /// Address of element i32 `index` of `size` bytes from parameter word `p`.
  Value* at(size_t p, Value* index, int64_t size) {
    return add(params[p], mul(b.CreateZExt(index, b.getInt64Ty()), size));
  }
  Value* shared(Value* index, int64_t size, int64_t first = 0) {
    return add(add(d.shared_base(), first), mul(index, size));
  }

  Value* load_global(llvm::Type* t, Value* addr, Value* pred = nullptr) {
    return d.load_global(t, 1, addr, MemOrder::Weak, MemScope::Block, pred)[0];
  }
  void store_global(Value* v, Value* addr, Value* pred = nullptr) {
    d.store_global(std::array{v}, addr, MemOrder::Weak, MemScope::Block, pred);
  }
  Value* load_shared(Value* addr, Value* pred = nullptr) { return d.load_shared(b.getInt32Ty(), 1, addr, pred)[0]; }
  void store_shared(Value* v, Value* addr, Value* pred = nullptr) { d.store_shared(std::array{v}, addr, pred); }

  llvm::BasicBlock* block() { return llvm::BasicBlock::Create(b.getContext(), "", b.GetInsertBlock()->getParent()); }
  void if_then(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise = {}) {
    auto *yes = block(), *no = block(), *after = block();
    b.CreateCondBr(condition, yes, no);
    b.SetInsertPoint(yes);
    then();
    if (!b.GetInsertBlock()->getTerminator()) b.CreateBr(after);
    b.SetInsertPoint(no);
    if (otherwise) otherwise();
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }
  /// Repeats `body` until it gives false (i1).
  void repeat(const std::function<Value*()>& body) {
    auto *top = block(), *after = block();
    b.CreateBr(top);
    b.SetInsertPoint(top);
    Value* again = body();
    b.CreateCondBr(again, top, after);
    b.SetInsertPoint(after);
  }
};

struct Kernel final : EmulatedKernel {
  CompiledKernel info;
  std::unique_ptr<LoadedCode> loaded;
  [[nodiscard]] const CompiledKernel& kernel() const override { return info; }
  [[nodiscard]] void* code() const override { return loaded->entry(); }
  [[nodiscard]] size_t frame_bytes() const override { return loaded->frame_bytes(); }
};

using Emit = void (*)(Builder&);

/// Compiles; `error` gets the diagnostics if that fails.
inline std::unique_ptr<Kernel> build(Emit emit, unsigned words, uint32_t threads, uint32_t shared_bytes,
                                     const std::string& bug, std::string& error, uint32_t cluster = 1) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("test", *context);
  set_up_host_module(*module);
  Target target;
  target.emulated = true;
  {
    auto device = make_host_device(*module, target);
    device->clusters = cluster > 1;
    Builder builder{*device, device->b, device->begin("kernel", words, threads, 1), bug};
    emit(builder);
    device->end();
  }
  Diagnostics diags;
  auto code = load_host_code(std::move(context), std::move(module), "kernel", diags);
  if (!code) {
    error = render(diags);
    return nullptr;
  }
  auto k = std::make_unique<Kernel>();
  k->info.threads = threads;
  k->info.shared_bytes = shared_bytes;
  k->info.cluster = cluster;
  k->loaded = std::move(*code);
  return k;
}

/// A case: kernel, input and output, and the output that is right.
struct Case {
  Emit emit;
  uint32_t threads, shared_bytes, blocks;
  std::vector<std::vector<uint32_t>> inputs;  ///< read-only, one parameter each
  std::vector<uint32_t> want;                 ///< of the last parameter
};

struct Outcome {
  bool ok = false;
  bool right = false;
  Code code{};
  std::string message;                        ///< of the first error, then of its notes
  EmulateStats stats;
};

inline Outcome run(const Kernel& kernel, const Case& c, const EmulateOptions& options) {
  auto inputs = c.inputs;
  std::vector<uint32_t> out(c.want.size(), 0);
  EmulatedMemory memory;
  std::vector<uint64_t> params;
  for (size_t i = 0; i < inputs.size(); ++i)
    params.push_back(memory.add(
        {reinterpret_cast<std::byte*>(inputs[i].data()), inputs[i].size() * 4, "input " + std::to_string(i), true}));
  params.push_back(memory.add({reinterpret_cast<std::byte*>(out.data()), out.size() * 4, "output", false}));
  Diagnostics diags;
  Outcome o;
  auto stats = run_emulated(kernel, {c.blocks, 1, 1}, params, memory, options, nullptr, nullptr, diags);
  o.ok = stats.ok();
  if (stats) o.stats = *stats;
  if (const Diagnostic* e = diags.first_error()) {
    o.code = e->code;
    o.message = e->message;
    for (const auto& n : e->notes) o.message += "\n" + n.message;
  }
  o.right = out == c.want;
  return o;
}

// --- kernels ---

/// Sum of 128 integers through a tree in shared memory; every thread of a block stores the sum. Word 0: input, 1:
/// output.
inline void emit_reduce(Builder& k) {
  auto& d = k.d;
  d.site = 1;
  Value* tid = d.thread_id();
  if (k.is("exit before barrier")) {
    k.if_then(k.less(tid, 3), [&] { k.b.CreateRetVoid(); });
  }
  Value* mine = k.shared(tid, 4);
  Value* x = k.load_global(k.b.getInt32Ty(), k.at(0, k.add(k.mul(d.block_id(0), 128), tid), 4));
  d.site = 2;
  if (k.is("misaligned shared")) mine = k.add(mine, 2);
  if (k.is("wrong address")) mine = k.shared(k.b.CreateAnd(tid, k.i32(126)), 4);
  if (k.is("shared out of bounds")) mine = k.shared(tid, 4, 16);
  if (k.is("before the base")) mine = k.shared(tid, 4, -4);
  k.store_shared(x, mine, k.is("half not written") ? k.less(tid, 64) : nullptr);
  for (int64_t step = 64; step >= 1; step /= 2) {
    d.site = static_cast<uint32_t>(100 + step);
    if (k.is("divergent barrier") && step == 32) {
      k.if_then(k.less(tid, 64), [&] { d.barrier(); }, [&] { d.barrier(); });
    } else if (k.is("part of the threads at a barrier") && step == 16) {
      k.if_then(k.less(tid, 96), [&] { d.barrier(); });
    } else if (!(k.is("no barrier in the loop") && step == 8) && !(k.is("no first barrier") && step == 64)) {
      d.barrier();
    }
    Value* on = k.less(tid, step);
    Value* sum = k.add(k.load_shared(k.shared(tid, 4), on),
                       k.load_shared(k.shared(k.b.CreateSelect(on, k.add(tid, step), k.i32(0)), 4), on));
    k.store_shared(sum, k.shared(tid, 4), on);
  }
  d.site = 3;
  if (!k.is("no last barrier")) d.barrier();
  Value* sum = k.load_shared(d.shared_base());
  if (k.is("no barrier before reuse")) k.store_shared(x, k.shared(tid, 4));
  d.site = 4;
  Value* to = k.at(1, k.add(k.mul(d.block_id(0), 128), tid), 4);
  if (k.is("global out of bounds")) to = k.add(to, 4);
  if (k.is("write to input")) to = k.at(0, tid, 4);
  if (k.is("misaligned global")) to = k.b.CreateAnd(k.add(to, 1), k.b.getInt64(~uint64_t{2}));
  k.store_global(sum, to);
}

/// Transpose of 32 x 32 words by 128 threads, which load 4 words at a time and store 1.
inline void emit_transpose(Builder& k) {
  auto& d = k.d;
  Value* tid = d.thread_id();
  const int64_t pitch = 33;
  for (int64_t part = 0; part < 2; ++part) {
    d.site = static_cast<uint32_t>(10 + part);
    Value* at = k.mul(k.add(tid, part * 128), 4);
    Values v = d.load_global(k.b.getInt32Ty(), 4, k.at(0, at, 4), MemOrder::Weak, MemScope::Block);
    Value *row = k.div(at, 32), *column = k.mod(at, 32);
    for (int64_t e = 0; e < 4; ++e)
      k.store_shared(v[static_cast<size_t>(e)],
                     k.shared(k.add(k.mul(row, k.is("pitch too small") ? 31 : pitch), k.add(column, e)), 4));
  }
  d.site = 20;
  if (!k.is("no barrier")) d.barrier();
  for (int64_t part = 0; part < 8; ++part) {
    Value* at = k.add(tid, part * 128);
    k.store_global(k.load_shared(k.shared(k.add(k.mul(k.mod(at, 32), pitch), k.div(at, 32)), 4)), k.at(1, at, 4));
  }
}

/// C (64 x 16, f32) = A (64 x 64, f16) x B (64 x 16, f16), 4 warps, two stages of cp.async, 16 of k each.
/// A stage holds 64 rows of 32 bytes, then 16 rows of 32 bytes of B.
inline void emit_matmul(Builder& k) {
  auto& d = k.d;
  const int64_t stage_bytes = 64 * 32 + 16 * 32;
  Value *tid = d.thread_id(), *lane = k.mod(tid, 32), *warp = k.div(tid, 32);
  const auto fill = [&](int64_t step) {
    d.site = static_cast<uint32_t>(100 + step);
    const int64_t base = step % 2 * stage_bytes;
    Value *row = k.div(tid, 2), *half = k.mod(tid, 2);
    Value* to = k.shared(tid, 16, base);
    if (k.is("misaligned copy")) to = k.add(to, 8);
    Value* copied = k.is("size beyond the copy") ? k.i32(32) : nullptr;
    Value* when = k.is("copy left out") && step == 1 ? k.less(tid, 100) : nullptr;
    const int64_t start = step * 32 + (k.is("source misaligned") ? 4 : 0);
    d.cp_async(to, k.add(k.at(0, k.add(k.mul(row, 128), k.mul(half, 16)), 1), start), 16, copied, when);
    Value* first = k.less(tid, 32);
    Value* source = k.add(k.at(1, k.mul(k.mod(tid, 32), 16), 1),
                          step * 16 * 32 + (k.is("copy out of bounds") && step == 3 ? 16 : 0));
    k.if_then(first, [&] { d.cp_async(k.shared(tid, 16, base + 64 * 32), source, 16, nullptr); });
    if (!(k.is("no commit") && step == 1)) d.cp_async_commit();
  };
  Values acc[2];
  for (auto& a : acc) a = Values(4, llvm::ConstantFP::get(k.b.getFloatTy(), 0));
  fill(0);
  for (int64_t step = 0; step < 4; ++step) {
    d.site = static_cast<uint32_t>(200 + step);
    if (step + 1 < 4) fill(step + 1);
    d.site = static_cast<uint32_t>(200 + step);
    if (!(k.is("no wait") && step == 2)) d.cp_async_wait(step + 1 < 4 ? 1 : k.is("wait too short") ? 1 : 0);
    d.site = static_cast<uint32_t>(300 + step);
    if (!(k.is("no barrier after wait") && step == 1)) d.barrier();
    const int64_t base = (k.is("wrong stage") && step == 1 ? step + 1 : step) % 2 * stage_bytes;
    Value* a_row = k.add(k.mul(warp, 16), k.mod(lane, 16));
    Value* a_addr = k.add(k.shared(a_row, 32, base), k.mul(k.div(lane, 16), 16));
    Value* b_addr = k.add(k.shared(k.mod(lane, 16), 32, base + 64 * 32), k.mul(k.div(lane, 16), 16));
    if (k.is("ldmatrix out of bounds")) a_addr = k.add(a_addr, 2 * stage_bytes);
    if (k.is("ldmatrix misaligned")) a_addr = k.add(a_addr, 8);
    Values a, bb;
    const auto compute = [&] {
      a = d.ldmatrix(4, false, a_addr);
      bb = d.ldmatrix(4, true, b_addr);
      for (size_t n = 0; n < 2; ++n) acc[n] = d.mma(MmaKind::F16F32, a, std::array{bb[2 * n], bb[2 * n + 1]}, acc[n]);
    };
    d.site = static_cast<uint32_t>(400 + step);
    if (k.is("divergent ldmatrix") && step == 1) {
      k.if_then(k.less(lane, 16), [&] { (void)d.ldmatrix(4, false, a_addr); });
    } else if (k.is("divergent mma") && step == 1) {
      const Values zero(4, k.i32(0));
      k.if_then(k.less(lane, 31), [&] { (void)d.mma(MmaKind::F16F32, zero, std::array{zero[0], zero[1]}, acc[0]); });
    }
    compute();
    d.site = static_cast<uint32_t>(500 + step);
    if (!(k.is("no barrier before refill") && step == 1)) d.barrier();
  }
  if (k.is("never waited for")) fill(4 - 1);
  d.site = 600;
  Value *group = k.div(lane, 4), *in_group = k.mod(lane, 4);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t i = 0; i < 4; ++i) {
      Value* row = k.add(k.add(k.mul(warp, 16), group), i >= 2 ? 8 : 0);
      Value* column = k.add(k.add(k.mul(in_group, 2), i % 2), n * 8);
      k.store_global(k.b.CreateBitCast(acc[static_cast<size_t>(n)][static_cast<size_t>(i)], k.b.getInt32Ty()),
                     k.at(2, k.add(k.mul(row, 16), column), 4));
    }
}

/// Warp sums by shuffles of every kind and a ballot; five words for each of 64 threads.
inline void emit_shuffle(Builder& k) {
  auto& d = k.d;
  Value *tid = d.thread_id(), *lane = k.mod(tid, 32);
  d.site = 1;
  Value* x = k.load_global(k.b.getInt32Ty(), k.at(0, tid, 4));
  if (k.is("lane has ended")) {
    k.if_then(k.b.CreateICmpEQ(tid, k.i32(40)), [&] { k.b.CreateRetVoid(); });
  }
  d.site = 2;
  if (k.is("divergent shuffle")) {
    k.if_then(k.less(lane, 16), [&] { (void)d.shuffle(ShuffleMode::Xor, x, k.i32(1)); });
  }
  if (k.is("shuffle against barrier")) {
    k.if_then(k.less(lane, 16), [&] { (void)d.shuffle(ShuffleMode::Xor, x, k.i32(1)); }, [&] { d.barrier(); });
  }
  Value* sum = x;
  for (int64_t step = 1; step < 32; step *= 2) sum = k.add(sum, d.shuffle(ShuffleMode::Xor, sum, k.i32(step)));
  d.site = 3;
  Value* out[5] = {sum, d.shuffle(ShuffleMode::Up, x, k.i32(3)), d.shuffle(ShuffleMode::Down, x, k.i32(5)),
                   d.shuffle(ShuffleMode::Index, x, k.add(lane, 7)), nullptr};
  if (k.is("divergent ballot")) {
    k.if_then(k.b.CreateICmpNE(lane, k.i32(9)), [&] { (void)d.ballot(k.less(x, 100)); });
  }
  Value* low = k.less(x, 100);
  out[4] = k.b.CreateXor(d.ballot(low), k.b.CreateZExt(d.any(low), k.b.getInt32Ty()));
  for (int64_t i = 0; i < 5; ++i) k.store_global(out[i], k.at(1, k.add(k.mul(tid, 5), i), 4));
}

// --- their data ---

inline uint32_t noise(uint32_t i) { return (i * 2654435761u >> 7) % 1000; }

inline Case reduce_case(uint32_t blocks = 3) {
  Case c{emit_reduce, 128, 512, blocks, {{}}, {}};
  for (uint32_t b = 0; b < blocks; ++b) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 128; ++i) c.inputs[0].push_back(noise(b * 128 + i)), sum += c.inputs[0].back();
    c.want.insert(c.want.end(), 128, sum);
  }
  return c;
}

inline Case transpose_case() {
  Case c{emit_transpose, 128, 32 * 33 * 4, 1, {{}}, std::vector<uint32_t>(1024)};
  for (uint32_t i = 0; i < 1024; ++i) c.inputs[0].push_back(noise(i));
  for (uint32_t i = 0; i < 1024; ++i) c.want[i] = c.inputs[0][i % 32 * 32 + i / 32];
  return c;
}

/// f16 bits of a small integer.
inline uint16_t half(int v) {
  uint32_t f = 0;
  const auto x = static_cast<float>(v);
  std::memcpy(&f, &x, 4);
  return v == 0 ? 0 : static_cast<uint16_t>((f >> 16 & 0x8000) | (((f >> 23 & 0xFF) - 112) << 10) | (f >> 13 & 0x3FF));
}

inline Case matmul_case() {
  Case c{emit_matmul, 128, 2 * (64 * 32 + 16 * 32), 1, {{}, {}}, {}};
  std::vector<int> a(64 * 64), b(64 * 16);
  for (uint32_t i = 0; i < a.size(); ++i) a[i] = static_cast<int>(noise(i) % 17) - 8;
  for (uint32_t i = 0; i < b.size(); ++i) b[i] = static_cast<int>(noise(i + 5000) % 17) - 8;
  for (size_t i = 0; i < a.size(); i += 2) c.inputs[0].push_back(half(a[i]) | uint32_t{half(a[i + 1])} << 16);
  for (size_t i = 0; i < b.size(); i += 2) c.inputs[1].push_back(half(b[i]) | uint32_t{half(b[i + 1])} << 16);
  for (size_t r = 0; r < 64; ++r)
    for (size_t n = 0; n < 16; ++n) {
      int sum = 0;
      for (size_t x = 0; x < 64; ++x) sum += a[r * 64 + x] * b[x * 16 + n];
      const auto f = static_cast<float>(sum);
      uint32_t bits = 0;
      std::memcpy(&bits, &f, 4);
      c.want.push_back(bits);
    }
  return c;
}

inline Case shuffle_case() {
  Case c{emit_shuffle, 64, 16, 1, {{}}, {}};
  for (uint32_t i = 0; i < 64; ++i) c.inputs[0].push_back(noise(i));
  for (uint32_t t = 0; t < 64; ++t) {
    const uint32_t *x = &c.inputs[0][t / 32 * 32], l = t % 32;
    uint32_t sum = 0, votes = 0;
    for (uint32_t i = 0; i < 32; ++i) sum += x[i], votes |= uint32_t{x[i] < 100} << i;
    for (uint32_t v :
         {sum, l >= 3 ? x[l - 3] : x[l], l + 5 < 32 ? x[l + 5] : x[l], x[(l + 7) % 32], votes ^ (votes != 0)})
      c.want.push_back(v);
  }
  return c;
}

/// Calls f with every policy and `seeds` seeds, by 1 to `threads` threads of the host in turn.
template <class F>
void each_policy(uint64_t seeds, unsigned threads, F&& f) {
  for (const auto policy : {tile::EmulateOptions::Early, tile::EmulateOptions::Late, tile::EmulateOptions::Random})
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(int{policy});
      CAPTURE(seed);
      tile::EmulateOptions options;
      options.policy = policy;
      options.seed = seed;
      options.threads = static_cast<unsigned>(1 + seed % threads);
      f(options);
    }
}

}  // namespace emulate_kit
