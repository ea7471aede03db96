// A warp that copies by cp.async hands stages to others by arrivals behind its copies: clean runs, and planted defects.
#include <doctest/doctest.h>

#include "backend/ptx/device_hopper.h"
#include "tests/unit/backend_emulate_kit.h"

namespace {
using namespace emulate_kit;

// Copies 8 x 512 bytes through a ring of two stages. Warp 4 fills; warps 0 to 3 read even trips by ordinary loads, thread 0 alone odd ones by
// bulk copies. Word 0: input, 1: output.
constexpr int64_t kTrips = 8, kStage = 512, kBars = 2 * kStage;
constexpr uint32_t kThreads = 160, kShared = kBars + 64;

void emit_ring(Builder& k) {
  auto& d = k.d;
  HopperOps& h = *hopper_ops(d);
  Value *tid = d.thread_id(), *base = d.shared_base();
  const auto full = [&](int64_t s) { return k.add(base, kBars + s * 8); };
  const auto empty = [&](int64_t s) { return k.add(base, kBars + 16 + s * 8); };
  d.site = 1;
  k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
    for (int64_t s = 0; s < 2; ++s) {
      h.mbarrier_init(full(s), 32);
      h.mbarrier_init(empty(s), 128);
    }
    h.fence_mbarrier_init();
  });
  d.barrier();
  k.if_then(k.less(tid, 128), [&] {
    for (int64_t trip = 0; trip < kTrips; ++trip) {
      d.site = static_cast<uint32_t>(200 + trip);
      const int64_t s = trip % 2;
      if (!(k.is("no full wait") && trip == 3)) h.mbarrier_wait(full(s), k.i32(trip / 2));
      if (trip % 2 == 0) {
        k.store_global(k.load_shared(k.shared(tid, 4, s * kStage)), k.at(1, k.add(tid, trip * 128), 4));
      } else {
        k.if_then(k.b.CreateICmpEQ(tid, k.i32(0)), [&] {
          if (!k.is("no proxy fence")) h.fence_proxy_async(true);
          h.bulk_reduce(RmwOp::Add, k.b.getInt32Ty(), false, k.at(1, k.i32(trip * 128), 4), k.add(base, s * kStage), k.i32(kStage));
          h.bulk_commit();
          h.bulk_wait(0, true);
        });
      }
      h.mbarrier_arrive(empty(s));
    }
  }, [&] {
    Value* lane = k.b.CreateSub(tid, k.i32(128));
    for (int64_t trip = 0; trip < kTrips; ++trip) {
      d.site = static_cast<uint32_t>(100 + trip);
      const int64_t s = trip % 2;
      if (trip >= 2 && !(k.is("no empty wait") && trip == 4)) h.mbarrier_wait(empty(s), k.i32(trip / 2 - 1));
      Value *from = k.at(0, k.add(k.mul(lane, 4), trip * 128), 4), *to = k.shared(lane, 16, s * kStage);
      if (k.is("stores behind the arrival") && trip == 5)
        d.store_shared(d.load_global(k.b.getInt32Ty(), 4, from, MemOrder::Weak, MemScope::Block), to);
      else
        d.cp_async(to, from, 16, nullptr);
      if (k.is("arrives before its copies") && trip == 5) {
        h.mbarrier_arrive(full(s));
      } else if (k.is("copies waited for") && trip == 5) {
        d.cp_async_commit();
        d.cp_async_wait(0);
        h.mbarrier_arrive(full(s));
      } else {
        h.cp_async_arrive(k.is("no such mbarrier") && trip == 5 ? k.add(base, kBars + 40) : full(s));
      }
      if (k.is("arrives twice") && trip == 5) h.cp_async_arrive(full(s));
    }
    d.site = 300;
    d.cp_async_commit();
    if (!k.is("ends in flight")) d.cp_async_wait(0);
  });
}

Case ring_case() {
  Case c{emit_ring, kThreads, kShared, 1, {{}}, {}};
  for (uint32_t i = 0; i < kTrips * 128; ++i) c.inputs[0].push_back(noise(i));
  c.want = c.inputs[0];
  return c;
}

TEST_CASE("emulation: a warp's cp.async are handed over by arrivals behind them") {
  const Case c = ring_case();
  for (const char* way : {"", "copies waited for"}) {
    std::string error;
    const auto kernel = build(c.emit, 2, c.threads, c.shared_bytes, way, error);
    REQUIRE_MESSAGE(kernel, error);
    each_policy(20, 1, [&](EmulateOptions options) {
      options.hazards = options.seed % 4 != 0;
      const Outcome o = run(*kernel, c, options);
      REQUIRE_MESSAGE(o.ok, o.message);
      REQUIRE(o.right);
    });
  }
}

TEST_CASE("emulation: defects of arrivals behind cp.async") {
  struct {
    const char* name;
    const char* expect;
  } const defects[] = {
      {"no full wait", "after the write|never written"},
      {"no empty wait", "after the read|after the other write|arrivals missing"},
      {"no proxy fence", "visible to the asynchronous proxy"},
      {"arrives before its copies", "after the write|never written"},
      {"stores behind the arrival", "after the write|never written"},
      {"no such mbarrier", "no mbarrier is initialised"},
      {"arrives twice", "arrivals missing|after the write|the parity"},
      {"ends in flight", "without waiting for it"},
  };
  const Case c = ring_case();
  for (const auto& defect : defects) {
    CAPTURE(std::string(defect.name));
    std::string error;
    const auto kernel = build(c.emit, 2, c.threads, c.shared_bytes, defect.name, error);
    REQUIRE_MESSAGE(kernel, error);
    const std::string name = defect.name;
    each_policy(6, 1, [&](const EmulateOptions& options) {
      // What is done at once cannot be in flight at the end.
      if (name == "ends in flight" && options.policy != EmulateOptions::Late) return;
      const Outcome o = run(*kernel, c, options);
      CHECK_FALSE(o.ok);
      CHECK_MESSAGE(o.code == Code::I0002, o.message);
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

}  // namespace
