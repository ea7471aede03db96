// Clusters and bulk reductions in the emulation: clean runs under every policy and seed, defects that each run must find, and the same kernels as
// PTX for the assembler.
#include <doctest/doctest.h>

#include <cstring>

#include "backend/cuda/link.h"
#include "backend/emulate/tensor_map.h"
#include "backend/ptx/device_hopper.h"
#include "tests/unit/backend_emulate_kit.h"

namespace {
using namespace emulate_kit;

struct Defect {
  const char* name;
  const char* expect;  ///< alternatives separated by |, one of which the message must contain
};

bool contains_one(const std::string& message, std::string expect) {
  for (size_t bar = 0; bar != std::string::npos;) {
    bar = expect.find('|');
    if (message.find(expect.substr(0, bar)) != std::string::npos) return true;
    if (bar != std::string::npos) expect.erase(0, bar + 1);
  }
  return false;
}

/// Runs the case clean, then with each defect. Words of the kernel: one for each input, maps of `map` over the first input or the output, output.
struct ClusterCase {
  Case c;
  uint32_t cluster;
  std::function<std::string(uint64_t input, uint64_t output, EmulatedTensorMap&)> map;

  [[nodiscard]] unsigned words() const { return static_cast<unsigned>(c.inputs.size()) + 1 + (map ? 1 : 0); }
  [[nodiscard]] Outcome run(const Kernel& kernel, const EmulateOptions& options) const {
    auto inputs = c.inputs;
    std::vector<uint32_t> out(c.want.size(), 0);
    EmulatedMemory memory;
    std::vector<uint64_t> params;
    for (auto& in : inputs) params.push_back(memory.add({reinterpret_cast<std::byte*>(in.data()), in.size() * 4, "input", true}));
    const uint64_t output = memory.add({reinterpret_cast<std::byte*>(out.data()), out.size() * 4, "output", false});
    EmulatedTensorMap tensor;
    if (map) {
      REQUIRE(map(params.empty() ? 0 : params[0], output, tensor).empty());
      params.push_back(memory.add({reinterpret_cast<std::byte*>(&tensor), sizeof tensor, "tensor map", true}));
    }
    params.push_back(output);
    Diagnostics diags;
    Outcome o;
    o.ok = run_emulated(kernel, {c.blocks, 1, 1}, params, memory, options, nullptr, nullptr, diags).ok();
    if (const Diagnostic* e = diags.first_error()) {
      o.code = e->code;
      o.message = e->message;
      for (const auto& n : e->notes) o.message += "\n" + n.message;
    }
    o.right = out == c.want;
    return o;
  }
  [[nodiscard]] std::unique_ptr<Kernel> make(const char* bug) const {
    std::string error;
    auto kernel = build(c.emit, words(), c.threads, c.shared_bytes, bug, error, cluster);
    REQUIRE_MESSAGE(kernel, error);
    return kernel;
  }
  void check_all(std::initializer_list<Defect> defects) const {
    const auto clean = make("");
    each_policy(20, 2, [&](EmulateOptions options) {
      options.hazards = options.seed % 4 != 0;
      const Outcome o = run(*clean, options);
      REQUIRE_MESSAGE(o.ok, o.message);
      REQUIRE(o.right);
    });
    for (const Defect& d : defects) {
      CAPTURE(std::string(d.name));
      const auto kernel = make(d.name);
      each_policy(6, 2, [&](const EmulateOptions& options) {
        const Outcome o = run(*kernel, options);
        CHECK_FALSE(o.ok);
        CHECK_MESSAGE(contains_one(o.message, d.expect), o.message);
      });
    }
    // The same kernel as PTX, which says whether the instructions are spelled right.
    Target target = *find_target("sm_90a");
    Diagnostics diags;
    const auto ptx = ptx_of([&](llvm::Module& module) {
      auto device = make_ptx_device(module, target);
      Builder builder{*device, device->b, device->begin("kernel", words(), c.threads, 1), ""};
      c.emit(builder);
      device->end();
    }, target, diags);
    REQUIRE_MESSAGE(ptx, render(diags));
    const auto ptxas = cuda::find_ptxas(diags);
    if (!ptxas || ptxas->empty()) {
      MESSAGE("no ptxas: the PTX was not assembled");
      return;
    }
    const auto linker = cuda::make_ptxas(*ptxas, diags);
    REQUIRE_MESSAGE(linker, render(diags));
    CHECK_MESSAGE((*linker)->link({"kernel", *ptx, "sm_90a"}, diags), render(diags));
  }
};

/// Every thread reads its neighbour's word in the other block, and adds to a counter there.
void emit_exchange(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value *tid = d.thread_id(), *rank = h.cluster_rank(), *base = d.shared_base();
  Value* other = k.b.CreateSub(k.b.CreateSub(h.cluster_size(), k.i32(1)), rank);
  Value* counter = k.add(base, 256);
  d.site = 1;
  k.store_shared(k.add(k.mul(d.block_id(0), 1000), tid), k.shared(tid, 4));
  k.store_shared(k.i32(0), counter, k.b.CreateICmpEQ(tid, k.i32(0)));
  d.site = 2;
  if (k.is("arrives twice")) h.cluster_arrive();
  if (!k.is("no first barrier") && !k.is("waits without arriving")) h.cluster_arrive();
  if (k.is("half of a warp arrives")) k.if_then(k.less(k.mod(tid, 32), 16), [&] { h.cluster_wait(); h.cluster_arrive(); });
  if (!k.is("no first barrier")) h.cluster_wait();
  d.site = 3;
  Value* place = h.map_shared(k.shared(tid, 4), k.is("no such block") ? k.i32(2) : other);
  if (k.is("beyond its shared memory")) place = k.add(place, 300);
  Value* theirs = k.is("ordinary load") ? k.load_shared(place) : h.load_cluster(k.b.getInt32Ty(), 1, place)[0];
  d.site = 4;
  if (k.is("overwrites what is read")) h.store_cluster(std::array{theirs}, h.map_shared(k.shared(k.b.CreateXor(tid, k.i32(1)), 4), other));
  (void)h.atomic_cluster(RmwOp::Add, k.add(tid, 1), h.map_shared(counter, other));
  d.site = 5;
  if (k.is("one block waits only")) {
    h.cluster_arrive();
    k.if_then(k.b.CreateICmpEQ(rank, k.i32(0)), [&] { h.cluster_wait(); });
  } else if (k.is("barrier of the block at the end")) {
    d.barrier();
  } else if (!k.is("no last barrier")) {
    h.cluster_arrive();
    h.cluster_wait();
  }
  d.site = 6;
  Value* sum = k.load_shared(counter);
  k.store_global(k.add(theirs, k.mul(sum, 10000)), k.at(0, k.add(k.mul(d.block_id(0), 64), tid), 4));
}

TEST_CASE("emulation: blocks of a cluster read and count in each other's shared memory") {
  ClusterCase c{{emit_exchange, 64, 272, 6, {}, {}}, 2, {}};
  for (uint32_t block = 0; block < 6; ++block)
    for (uint32_t t = 0; t < 64; ++t) c.c.want.push_back((block ^ 1) * 1000 + t + 64 * 65 / 2 * 10000);
  c.check_all({
      {"no first barrier", "after the start of block|never written"},
      {"arrives twice", "arrives twice"},
      {"waits without arriving", "without having arrived"},
      {"half of a warp arrives", "by part of a warp|deadlock"},
      {"no such block", "has no block 2"},
      {"beyond its shared memory", "lie outside|part of"},
      {"ordinary load", "is one of block"},
      {"overwrites what is read", "after the read|after the other write|after the write"},
      {"one block waits only", "nothing orders this after|nothing keeps that block from ending"},
      {"barrier of the block at the end", "nothing orders this after|nothing keeps that block from ending"},
      {"no last barrier", "nothing orders this after|nothing keeps that block from ending"},
  });
}

TEST_CASE("emulation: a grid that a cluster does not divide runs without clusters") {
  const auto emit = +[](Builder& k) {
    k.store_global(k.add(k.mul(hopper_ops(k.d)->cluster_size(), 100), k.d.block_id(0)), k.at(0, k.d.block_id(0), 4), k.b.CreateICmpEQ(k.d.thread_id(), k.i32(0)));
  };
  for (const uint32_t blocks : {5u, 8u}) {
    ClusterCase c{{emit, 32, 0, blocks, {}, {}}, 4, {}};
    for (uint32_t b = 0; b < blocks; ++b) c.c.want.push_back((blocks % 4 == 0 ? 400 : 100) + b);
    const Outcome o = c.run(*c.make(""), {});
    CHECK_MESSAGE(o.ok, o.message);
    CHECK(o.right);
  }
}

// Two blocks share their loads: in trip n block r loads tile 2 n + r of 64 words and gives it to both. A stage has both tiles; its full barrier
// counts the block's own arrival and 512 bytes, its empty barrier one arrival of each block.
constexpr int64_t kStage = 512, kBars = 2 * kStage;

void emit_multicast(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value *tid = d.thread_id(), *rank = h.cluster_rank(), *base = d.shared_base(), *map = k.params[1];
  const auto full = [&](int64_t s) { return k.add(base, kBars + s * 8); };
  const auto empty = [&](int64_t s) { return k.add(base, kBars + 16 + s * 8); };
  Value* first = k.b.CreateICmpEQ(tid, k.i32(0));
  d.site = 1;
  k.if_then(first, [&] {
    for (int64_t s = 0; s < 2; ++s) {
      h.mbarrier_init(full(s), 1);
      h.mbarrier_init(empty(s), k.is("released by its own block alone") ? 1 : 2);
    }
    if (!k.is("no init fence")) h.fence_mbarrier_init();
  });
  d.site = 2;
  if (k.is("barrier of the block after init")) {
    d.barrier();
  } else {
    h.cluster_arrive();
    h.cluster_wait();
  }
  Value* sum = k.i32(0);
  for (int64_t trip = 0; trip < 4; ++trip) {
    const int64_t s = trip % 2;
    d.site = static_cast<uint32_t>(100 + trip);
    k.if_then(first, [&] {
      if (trip >= 2 && !k.is("no empty wait")) h.mbarrier_wait(empty(s), k.i32(trip / 2 - 1), !k.is("wait of the block's scope"));
      h.mbarrier_arrive_expect(full(s), k.i32(k.is("expects its own tile alone") ? 256 : 512));
      Value* at[] = {k.add(k.mul(rank, 64), trip * 128)};
      Value* to = k.add(k.mul(rank, 256), k.add(base, s * kStage));
      h.tma_load_multicast(map, at, to, full(s), k.i32(k.is("mask of three blocks") ? 7 : 3));
    });
    d.site = static_cast<uint32_t>(200 + trip);
    if (k.is("early release")) k.if_then(first, [&] {
      for (int64_t r = 0; r < 2; ++r) h.mbarrier_arrive_cluster(h.map_shared(empty(s), k.i32(r)));
    });
    h.mbarrier_wait(full(s), k.i32(trip / 2));
    sum = k.add(sum, k.add(k.load_shared(k.shared(tid, 4, s * kStage)), k.load_shared(k.shared(tid, 4, s * kStage + 256))));
    d.site = static_cast<uint32_t>(300 + trip);
    d.barrier();
    if (!k.is("early release")) k.if_then(first, [&] {
      if (k.is("released by its own block alone")) return h.mbarrier_arrive(empty(s));
      for (int64_t r = 0; r < 2; ++r) h.mbarrier_arrive_cluster(h.map_shared(empty(s), k.i32(r)));
    });
  }
  d.site = 400;
  if (!k.is("no last barrier")) {
    h.cluster_arrive();
    h.cluster_wait();
  }
  k.store_global(sum, k.at(2, k.add(k.mul(d.block_id(0), 64), tid), 4));
}

TEST_CASE("emulation: bulk loads for all blocks of a cluster") {
  ClusterCase c{{emit_multicast, 64, kBars + 64, 4, {{}}, {}}, 2, [](uint64_t input, uint64_t, EmulatedTensorMap& map) {
                  return encode_tensor_map({input, 1, 4, {512}, {}, {64}}, map);
                }};
  for (uint32_t i = 0; i < 512; ++i) c.c.inputs[0].push_back(noise(i));
  for (uint32_t block = 0; block < 4; ++block)
    for (uint32_t t = 0; t < 64; ++t) {
      uint32_t sum = 0;
      for (uint32_t tile = 0; tile < 8; ++tile) sum += noise(tile * 64 + t);
      c.c.want.push_back(sum);
    }
  c.check_all({
      {"no init fence", "visible to the asynchronous proxy"},
      {"barrier of the block after init", "after the start of block|no mbarrier is initialised|visible to the asynchronous proxy"},
      {"no empty wait", "after the read|after the other write|nothing orders this after phase|has all 1 arrivals"},
      {"wait of the block's scope", "with the scope of the block"},
      {"expects its own tile alone", "more bytes than were announced|the parity|after the write|never written|after phase|deadlock|ends in phase"},
      {"mask of three blocks", "the mask 0x7"},
      {"early release", "after the read|after the other write|the parity|after phase|has all"},
      {"released by its own block alone", "after the read|after the other write|after phase|ends in phase"},
      {"no last barrier", "nothing keeps that block from ending"},
  });
}

/// Every block adds 64 words to the same 64 of the output.
void emit_bulk_reduce(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value* tid = d.thread_id();
  const auto source = [&](int64_t add) { return k.add(k.mul(d.block_id(0), 100), k.add(tid, add)); };
  d.site = 1;
  k.store_shared(source(0), k.shared(tid, 4));
  if (!k.is("no proxy fence")) h.fence_proxy_async(true);
  if (!k.is("no barrier")) d.barrier();
  d.site = 2;
  k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
    Value* to = k.is("misaligned") ? k.add(k.params[0], 4) : k.is("out of bounds") ? k.add(k.params[0], 16) : k.params[0];
    h.bulk_reduce(RmwOp::Add, k.b.getInt32Ty(), false, to, d.shared_base(), k.i32(k.is("not whole rows of 16 bytes") ? 252 : 256));
    h.bulk_commit();
    if (!k.is("not waited for")) h.bulk_wait(0, false);
  });
  d.site = 3;
  if (k.is("source overwritten")) k.store_shared(tid, k.shared(tid, 4));
}

TEST_CASE("emulation: bulk reductions add to what global memory holds") {
  ClusterCase c{{emit_bulk_reduce, 64, 256, 5, {}, {}}, 1, {}};
  for (uint32_t t = 0; t < 64; ++t) c.c.want.push_back(5 * t + (0 + 1 + 2 + 3 + 4) * 100);
  c.check_all({
      {"no proxy fence", "visible to the asynchronous proxy"},
      {"no barrier", "after the write|never written"},
      {"misaligned", "is not a multiple of 16"},
      {"out of bounds", "outside the allocation"},
      {"not whole rows of 16 bytes", "not a multiple of 16"},
      {"not waited for", "without waiting"},
      {"source overwritten", "after the read|after the write"},
  });
}

/// Every block adds a tile of 8 x 8 floats to an array of 7 x 6 of which it is the only tile: what lies outside is dropped.
void emit_tensor_reduce(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value* tid = d.thread_id();
  k.store_shared(k.b.CreateBitCast(k.b.CreateUIToFP(k.add(tid, 1), k.b.getFloatTy()), k.b.getInt32Ty()), k.shared(tid, 4));
  if (!k.is("no proxy fence")) h.fence_proxy_async(true);
  d.barrier();
  k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
    Value* at[] = {k.i32(0), k.i32(0)};
    h.tma_reduce(RmwOp::AddF, k.params[0], at, k.is("misaligned tile") ? k.add(d.shared_base(), 64) : d.shared_base());
    if (!k.is("no commit")) h.bulk_commit();
    h.bulk_wait(0, false);
  });
}

TEST_CASE("emulation: bulk tensor reductions drop what lies outside") {
  ClusterCase c{{emit_tensor_reduce, 64, 512, 3, {}, {}}, 1, [](uint64_t, uint64_t output, EmulatedTensorMap& map) {
                  return encode_tensor_map({output, 2, 4, {6, 7}, {0, 32}, {8, 8}}, map);
                }};
  for (uint32_t row = 0; row < 7; ++row)
    for (uint32_t column = 0; column < 8; ++column) {
      const float sum = column < 6 ? 3.0f * static_cast<float>(row * 8 + column + 1) : 0.0f;
      uint32_t bits = 0;
      std::memcpy(&bits, &sum, 4);
      c.c.want.push_back(bits);
    }
  c.check_all({
      {"no proxy fence", "visible to the asynchronous proxy"},
      {"misaligned tile", "is not a multiple of 128"},
      {"no commit", "without waiting"},
  });
}

}  // namespace
