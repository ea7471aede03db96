// Kernels with mbarriers, bulk tensor copies and wgmma: clean runs, and planted defects that each run must find.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "backend/emulate/tensor_map.h"
#include "backend/ptx/device_hopper.h"
#include "tests/unit/backend_emulate_kit.h"
#include "vm/base/numeric.h"

namespace {
using namespace emulate_kit;

// C (60 x 32, f32) = A (60 x 176, f16) x B. Warps 0..3 multiply, thread 128 loads: tiles of 64 x 64 and 64 x 32, a ring
// of two stages. Rows 60.. and columns 176.. are filled with zeros or clipped. Words of the kernel: maps of A, B, C.
constexpr uint32_t kM = 60, kN = 32, kK = 176;
constexpr int64_t kStageA = 64 * 128, kStageB = 64 * 128, kStage = kStageA + kStageB, kOut = 2 * kStage,
                  kBars = kOut + 64 * 128;
constexpr uint32_t kShared = kBars + 64, kThreads = 160;

template <bool kRowMajorB>
void emit_gemm(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value *tid = d.thread_id(), *base = d.shared_base();
  const auto full = [&](int64_t s) { return k.add(base, kBars + s * 8); };
  const auto empty = [&](int64_t s) { return k.add(base, kBars + 16 + s * 8); };
  const uint32_t bytes = 64 * 128 + (kRowMajorB ? 64 * 64 : 32 * 128);
  d.site = 1;
  WgmmaAccumulator acc = h.wgmma_accumulator(MmaKind::F16F32, kN);
  k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
    for (int64_t s = 0; s < 2; ++s) {
      h.mbarrier_init(full(s), k.is("mbarrier for nobody") ? 0 : 1);
      if (k.is("initialised twice")) h.mbarrier_init(full(s), 1);
      h.mbarrier_init(empty(s), 1);
    }
    if (!k.is("no init fence")) h.fence_mbarrier_init();
  });
  d.site = 2;
  if (!k.is("no barrier after init")) d.barrier();
  k.if_then(k.b.CreateICmpEQ(tid, k.i32(128)), [&] {
    for (int64_t block = 0; block < 3; ++block) {
      d.site = static_cast<uint32_t>(100 + block);
      const int64_t s = block % 2;
      if (block >= 2 && !k.is("no empty wait")) h.mbarrier_wait(empty(s), k.i32(block / 2 - 1));
      h.mbarrier_arrive_expect(full(s), k.i32(bytes + (k.is("expects too many bytes")  ? 16
                                                       : k.is("expects too few bytes") ? -16
                                                                                       : 0)));
      Value* at_a[] = {k.i32(block * 64), k.i32(0), k.i32(0)};
      Value* map = k.is("no tensor map") ? k.b.CreateAdd(k.params[0], k.b.getInt64(64)) : k.is("misaligned tensor map") ? k.b.CreateAdd(k.params[0], k.b.getInt64(16)) : k.params[0];
      h.tma_load(map, std::span(at_a).first(k.is("another rank") ? 3 : 2), k.add(base, s * kStage + (k.is("misaligned tile") ? 512 : 0)), full(s));
      Value* at_b[] = {k.i32(kRowMajorB ? 0 : block * 64), k.i32(kRowMajorB ? block * 64 : 0)};
      h.tma_load(k.params[1], at_b, k.add(base, s * kStage + kStageA),
                 k.is("wrong mbarrier") && block == 1 ? k.add(base, kBars + 40) : full(s));
    }
  });
  k.if_then(k.less(tid, 128), [&] {
    for (int64_t block = 0; block < 3; ++block) {
      d.site = static_cast<uint32_t>(200 + block);
      const int64_t s = block % 2;
      const auto release = [&] { k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] { h.mbarrier_arrive(empty(s)); }); };
      if (!(k.is("no full wait") && block == 1))
        h.mbarrier_wait(full(s), k.i32(block / 2 + (k.is("wrong phase") && block == 1 ? 1 : k.is("a phase far ahead") && block == 1 ? 4 : 0)));
      if (k.is("registers not in eights") && block == 1) h.max_registers(true, 100);
      if (k.is("more registers than a thread has") && block == 1) h.max_registers(true, 264);
      if (!k.is("no wgmma fence")) h.wgmma_fence();
      if (k.is("part of a warpgroup") && block == 1) k.if_then(k.less(tid, 96), [&] { h.max_registers(true, 168); });
      const auto address = [&](int64_t at) {
        const bool rank = k.is("rank in both descriptors") || (k.is("rank in B's descriptor") && at % kStage >= kStageA);
        Value* place = rank ? base : k.b.CreateAnd(base, k.i32(0x3FFFF));
        return k.b.CreateZExt(k.b.CreateLShr(k.add(place, at), 4), k.b.getInt64Ty());
      };
      for (int64_t step = 0; step < 4; ++step) {
        const unsigned swizzle = k.is("wrong swizzle") ? 2 : 3;
        Value* a = k.b.CreateOr(address(s * kStage + step * 32 + (k.is("descriptor out of bounds") ? 2 * kStage : 0)),
                                k.b.getInt64(wgmma_descriptor(k.is("leading offset") ? 32 : 16, 1024, swizzle) | (k.is("base offset") ? uint64_t{1} << 49 : 0) |
                                               (k.is("bits of no field") ? uint64_t{1} << 60 : 0)));
        Value* b = kRowMajorB ? k.b.CreateOr(address(s * kStage + kStageA + step * 16 * 64),
                                             k.b.getInt64(wgmma_descriptor(0, 8 * 64, 2)))
                              : k.b.CreateOr(address(s * kStage + kStageA + step * 32),
                                             k.b.getInt64(wgmma_descriptor(16, 1024, 3)));
        h.wgmma(acc, {a, {}, false, false}, {b, {}, kRowMajorB, false}, k.b.getInt1(block + step != 0));
      }
      if (k.is("early release")) release();
      if (!k.is("no commit")) h.wgmma_commit();
      WgmmaAccumulator* all[] = {&acc};
      if (!(k.is("no wgmma wait") && block == 2)) h.wgmma_wait(0, all);
      if (!k.is("early release")) release();
    }
    d.site = 300;
    const Values c = h.wgmma_read(acc);
    Value *lane = k.mod(tid, 32), *row = k.add(k.mul(k.div(tid, 32), 16), k.div(lane, 4));
    for (int64_t i = 0; i < 16; i += 2) {
      Value* at = k.add(k.add(k.mul(k.add(row, i / 2 % 2 * 8), 32), k.mul(k.mod(lane, 4), 2)), i / 4 * 8);
      const std::array words{k.b.CreateBitCast(c[static_cast<size_t>(i)], k.b.getInt32Ty()),
                             k.b.CreateBitCast(c[static_cast<size_t>(i) + 1], k.b.getInt32Ty())};
      d.store_shared(words, k.shared(at, 4, k.is("overwrites an mbarrier") ? kBars - 8192 + 32 : kOut));
    }
    d.site = 301;
    if (!k.is("no proxy fence")) h.fence_proxy_async();
    if (k.is("counts of a barrier differ")) {
      k.if_then(k.less(tid, 64), [&] { h.named_barrier(1, 96); }, [&] { h.named_barrier(1, 128); });
    } else if (!k.is("no barrier before the store")) {
      h.named_barrier(k.is("no such named barrier") ? 16 : 1, k.is("barrier for part of a warp") ? 100 : k.is("barrier for more than the block") ? 256 : 128);
    }
    k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
      Value* at[] = {k.i32(0), k.i32(0)};
      d.site = 302;
      h.tma_store(k.params[2], at, k.add(base, kOut));
      h.bulk_commit();
      if (!k.is("store not waited for")) h.bulk_wait(0, true);
      if (k.is("source overwritten")) k.store_shared(k.i32(0), k.add(base, kOut));
    });
    if (k.is("source overwritten by another"))
      k.store_shared(k.i32(0), k.add(base, kOut), k.b.CreateICmpEQ(tid, k.i32(1)));
  });
}

struct Gemm {
  std::vector<uint16_t> a, b;
  std::vector<float> want;
  bool row_major;

  explicit Gemm(bool row_major_b) : a(kM * kK), b(kK * kN), row_major(row_major_b) {
    const auto value = [](uint32_t i) { return static_cast<int>(noise(i) % 17) - 8; };
    for (uint32_t i = 0; i < a.size(); ++i) a[i] = half(value(i));
    for (uint32_t i = 0; i < b.size(); ++i) b[i] = half(value(i + 30000));
    for (uint32_t r = 0; r < kM; ++r)
      for (uint32_t n = 0; n < kN; ++n) {
        int sum = 0;
        for (uint32_t x = 0; x < kK; ++x)
          sum += value(r * kK + x) * value((row_major ? x * kN + n : n * kK + x) + 30000);
        want.push_back(static_cast<float>(sum));
      }
  }

  Outcome run(const Kernel& kernel, const EmulateOptions& options, const std::string& bug = {}, uint32_t blocks = 1) {
    std::vector<float> c(want.size(), -1);
    EmulatedMemory memory;
    const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
    const uint64_t pa = memory.add({bytes(a), a.size() * 2, "A", true}),
                   pb = memory.add({bytes(b), b.size() * 2, "B", true});
    const uint64_t pc = memory.add({bytes(c), c.size() * 4, "C", false});
    std::array<EmulatedTensorMap, 3> maps;
    const uint64_t rows = bug == "map larger than the memory" ? kM + 1 : kM;
    REQUIRE(encode_tensor_map({pa, 2, 2, {kK, rows}, {0, kK * 2}, {64, 64}, TensorSwizzle::B128}, maps[0]).empty());
    if (row_major) {
      REQUIRE(encode_tensor_map({pb, 2, 2, {kN, kK}, {0, kN * 2}, {32, 64}, TensorSwizzle::B64}, maps[1]).empty());
    } else {
      REQUIRE(encode_tensor_map({pb, 2, 2, {kK, kN}, {0, kK * 2}, {64, 32}, TensorSwizzle::B128}, maps[1]).empty());
    }
    REQUIRE(encode_tensor_map({pc, 2, 4, {kN, kM}, {0, kN * 4}, {32, 64}}, maps[2]).empty());
    const uint64_t pm = memory.add({reinterpret_cast<std::byte*>(maps.data()), sizeof maps, "tensor maps", true});
    const uint64_t params[] = {pm, pm + 128, pm + 256};
    Diagnostics diags;
    Outcome o;
    const auto stats = run_emulated(kernel, {blocks, 1, 1}, params, memory, options, nullptr, nullptr, diags);
    o.ok = stats.ok();
    if (const Diagnostic* e = diags.first_error()) {
      o.code = e->code;
      o.message = e->message;
      for (const auto& n : e->notes) o.message += "\n" + n.message;
    }
    o.right = c == want;
    return o;
  }
};

TEST_CASE("emulation: a ring of bulk loads and wgmma runs clean under every policy and seed") {
  for (const bool row_major : {false, true}) {
    std::string error;
    const auto kernel = build(row_major ? emit_gemm<true> : emit_gemm<false>, 3, kThreads, kShared, "", error);
    REQUIRE_MESSAGE(kernel, error);
    Gemm gemm(row_major);
    each_policy(30, 1, [&](EmulateOptions options) {
      options.hazards = options.seed % 4 != 0;
      const Outcome o = gemm.run(*kernel, options);
      REQUIRE_MESSAGE(o.ok, o.message);
      REQUIRE(o.right);
    });
  }
}

// Shared addresses of a cluster's blocks have the block's rank in their upper bits, for which a descriptor has no room.
TEST_CASE("emulation: matrix descriptors in a cluster hold addresses within the block") {
  for (const bool row_major : {false, true})
    for (const std::string bug : {"", "rank in both descriptors", "rank in B's descriptor"}) {
      // With N running along rows, all of B is one panel: no unit looks at the field that the rank would be in.
      if (row_major && bug == "rank in B's descriptor") continue;
      CAPTURE(bug);
      std::string error;
      const auto kernel = build(row_major ? emit_gemm<true> : emit_gemm<false>, 3, kThreads, kShared, bug, error, 2);
      REQUIRE_MESSAGE(kernel, error);
      Gemm gemm(row_major);
      each_policy(6, 1, [&](const EmulateOptions& options) {
        const Outcome o = gemm.run(*kernel, options, {}, 2);
        REQUIRE_MESSAGE(o.ok == bug.empty(), o.message);
        if (o.ok) {
          CHECK(o.right);
          return;
        }
        CHECK(o.code == Code::I0002);
        CHECK_MESSAGE((o.message.find("leading offset is 272") != std::string::npos || o.message.find("lie outside") != std::string::npos ||
                       o.message.find("never written") != std::string::npos || o.message.find("another swizzle") != std::string::npos), o.message);
      });
    }
}

TEST_CASE("emulation: defects of a ring of bulk loads and wgmma") {
  struct {
    const char* name;
    const char* expect;
  } const defects[] = {
      {"no init fence", "visible to the asynchronous proxy"},
      {"no barrier after init", "nothing orders this after the initialisation|no mbarrier is initialised"},
      {"no empty wait", "after the read|has all 1 arrivals|after the other write"},
      {"expects too many bytes", "and 16 bytes"},
      {"expects too few bytes", "more bytes than were announced"},
      {"misaligned tile", "is not a multiple of 1024"},
      {"wrong mbarrier", "no mbarrier is initialised"},
      {"no full wait", "after the write|never written"},
      {"wrong phase", "the parity lets it pass|deadlock"},
      {"no wgmma fence", "since the last wgmma fence"},
      {"part of a warpgroup", "by part of a warpgroup|deadlock"},
      {"wrong swizzle", "another swizzle"},
      {"descriptor out of bounds", "lie outside|never written"},
      {"early release", "after the read|after the other write|the parity"},
      {"no commit", "since the last commit"},
      {"no wgmma wait", "is in flight"},
      {"overwrites an mbarrier", "after the read|part of an mbarrier|after the other write"},
      {"no proxy fence", "visible to the asynchronous proxy"},
      {"counts of a barrier differ", "expects 96|expects 128"},
      {"no barrier before the store", "after the write|never written|visible"},
      {"store not waited for", "without waiting for it to be read"},
      {"source overwritten by another", "after the read|after the other write|visible|after the write"},
      {"map larger than the memory", "outside the allocation"},
      {"mbarrier for nobody", "an mbarrier for 0 arrivals"},
      {"initialised twice", "is part of an mbarrier"},
      {"no tensor map", "is not a tensor map"},
      {"misaligned tensor map", "there is no tensor map at address"},
      {"another rank", "3 coordinates for a tensor map of rank 2"},
      {"a phase far ahead", "waits for phase 4 of the mbarrier"},
      {"registers not in eights", "100 registers: not a multiple of 8 in 24..256"},
      {"more registers than a thread has", "264 registers: not a multiple of 8 in 24..256"},
      {"leading offset", "the descriptor's leading offset is 32 bytes"},
      {"base offset", "the descriptor's base offset is not 0"},
      {"bits of no field", "the descriptor has bits set that belong to no field"},
      {"no such named barrier", "there is no named barrier 16"},
      {"barrier for part of a warp", "barrier 1 for 100 threads: not a multiple of 32"},
      {"barrier for more than the block", "barrier 1 for 256 threads: not a multiple of 32 up to the block's 160"},
  };
  for (const auto& defect : defects) {
    CAPTURE(std::string(defect.name));
    std::string error;
    const auto kernel = build(emit_gemm<false>, 3, kThreads, kShared, defect.name, error);
    REQUIRE_MESSAGE(kernel, error);
    Gemm gemm(false);
    each_policy(6, 1, [&](const EmulateOptions& options) {
      const Outcome o = gemm.run(*kernel, options, defect.name);
      CHECK_FALSE(o.ok);
      CHECK_MESSAGE((o.code == Code::I0002 || o.code == Code::T0101), o.message);
      std::string expect = defect.expect;
      bool found = false;
      for (size_t bar = 0; bar != std::string::npos; expect.erase(0, bar == std::string::npos ? bar : bar + 1)) {
        bar = expect.find('|');
        found = found || o.message.find(expect.substr(0, bar)) != std::string::npos;
      }
      CHECK_MESSAGE(found, o.message);
    });
  }
}

TEST_CASE("emulation: the source of a bulk store may be written after the wait for its reading") {
  std::string error;
  const auto kernel = build(emit_gemm<false>, 3, kThreads, kShared, "source overwritten", error);
  REQUIRE_MESSAGE(kernel, error);
  Gemm gemm(false);
  each_policy(10, 1, [&](const EmulateOptions& options) {
    const Outcome o = gemm.run(*kernel, options);
    CHECK_MESSAGE(o.ok, o.message);
    CHECK(o.right);
  });
}

TEST_CASE("emulation: barriers of a warp and of some warps order accesses") {
  const auto emit = +[](Builder& k) {
    auto& d = k.d;
    HopperOps& h = *hopper_ops(d);
    Value* tid = d.thread_id();
    k.store_shared(h.warp_uniform(k.div(tid, 32)), k.shared(tid, 4));
    if (!k.is("no warp barrier")) h.warp_sync();
    Value* neighbour = k.load_shared(k.shared(k.b.CreateXor(tid, k.i32(1)), 4));
    // The upper two warps hand over to the lower two, which alone wait.
    k.if_then(k.less(tid, 64), [&] {
      if (!k.is("no handing over")) h.named_barrier(2, 128);
      k.store_global(k.add(k.load_shared(k.shared(k.add(tid, 64), 4)), k.mul(neighbour, 10)), k.at(0, tid, 4));
    }, [&] { h.named_barrier_arrive(2, 128); });
  };
  Case c{emit, 128, 512, 1, {}, {}};
  for (uint32_t t = 0; t < 64; ++t) c.want.push_back(t / 32 + 2 + t / 32 * 10);
  for (const char* bug : {"", "no warp barrier", "no handing over"}) {
    CAPTURE(std::string(bug));
    std::string error;
    const auto kernel = build(c.emit, 1, c.threads, c.shared_bytes, bug, error);
    REQUIRE_MESSAGE(kernel, error);
    each_policy(10, 1, [&](const EmulateOptions& options) {
      const Outcome o = run(*kernel, c, options);
      CHECK_MESSAGE(o.ok == (*bug == 0), o.message);
      if (o.ok) CHECK(o.right);
    });
  }
}

TEST_CASE("emulation: stmatrix is the inverse of ldmatrix") {
  for (const bool transpose : {false, true}) {
    const auto emit = transpose ? +[](Builder& k) {
      HopperOps& h = *hopper_ops(k.d);
      Value *lane = k.d.thread_id(), *row = k.shared(lane, 16);
      Values words;
      for (int64_t i = 0; i < 4; ++i) words.push_back(k.add(k.mul(lane, 4), i));
      h.stmatrix(4, true, row, words);
      k.d.barrier();
      const Values back = k.d.ldmatrix(4, true, row);
      for (size_t i = 0; i < 4; ++i)
        k.store_global(back[i], k.at(0, k.add(k.mul(lane, 4), static_cast<int64_t>(i)), 4));
    } : +[](Builder& k) {
      HopperOps& h = *hopper_ops(k.d);
      Value *lane = k.d.thread_id(), *row = k.shared(lane, 16);
      Values words;
      for (int64_t i = 0; i < 4; ++i) words.push_back(k.add(k.mul(lane, 4), i));
      h.stmatrix(4, false, row, words);
      k.d.barrier();
      const Values back = k.d.ldmatrix(4, false, row);
      for (size_t i = 0; i < 4; ++i)
        k.store_global(back[i], k.at(0, k.add(k.mul(lane, 4), static_cast<int64_t>(i)), 4));
    };
    Case c{emit, 32, 512, 1, {}, {}};
    for (uint32_t i = 0; i < 128; ++i) c.want.push_back(i);
    std::string error;
    const auto kernel = build(c.emit, 1, c.threads, c.shared_bytes, "", error);
    REQUIRE_MESSAGE(kernel, error);
    const Outcome o = run(*kernel, c, {});
    CHECK_MESSAGE(o.ok, o.message);
    CHECK(o.right);
  }
}

TEST_CASE("emulation: tensor maps are refused as the driver refuses them") {
  const TensorMapRequest good{4096, 2, 2, {100, 50}, {0, 256}, {64, 8}, TensorSwizzle::B128};
  EmulatedTensorMap map;
  CHECK(encode_tensor_map(good, map).empty());
  const auto refused = [&](auto&& change) {
    TensorMapRequest r = good;
    change(r);
    return !encode_tensor_map(r, map).empty();
  };
  CHECK(refused([](auto& r) { r.address = 4104; }));
  CHECK(refused([](auto& r) { r.rank = 6; }));
  CHECK(refused([](auto& r) { r.rank = 0; }));
  CHECK(refused([](auto& r) { r.strides[1] = 264; }));
  CHECK(refused([](auto& r) { r.strides[1] = uint64_t{1} << 40; }));
  CHECK(refused([](auto& r) { r.dims[1] = 0; }));
  CHECK(refused([](auto& r) { r.box[1] = 257; }));
  CHECK(refused([](auto& r) { r.box[0] = 12; }));
  CHECK(refused([](auto& r) { r.box[0] = 128; }));
  CHECK_FALSE(refused([](auto& r) { r.strides[1] = 0; }));
  CHECK_FALSE(refused([](auto& r) { r.box = {128, 8}, r.swizzle = TensorSwizzle::None; }));
}

}  // namespace
