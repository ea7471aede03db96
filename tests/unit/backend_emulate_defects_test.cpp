// Defects planted into small kernels: each must be found in every run, whatever the policy and seed.
#include <doctest/doctest.h>

#include "tests/unit/backend_emulate_kit.h"

namespace {
using namespace emulate_kit;

struct Defect {
  const char* name;
  Code code;
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

void check_all(const Case& c, std::initializer_list<Defect> defects) {
  for (const Defect& d : defects) {
    CAPTURE(std::string(d.name));
    std::string error;
    const auto kernel =
        build(c.emit, static_cast<unsigned>(c.inputs.size()) + 1, c.threads, c.shared_bytes, d.name, error);
    REQUIRE_MESSAGE(kernel, error);
    for (const auto policy : {EmulateOptions::Early, EmulateOptions::Late, EmulateOptions::Random})
      for (uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(int{policy});
        CAPTURE(seed);
        EmulateOptions options;
        options.policy = policy;
        options.seed = seed;
        options.threads = 1 + seed % 2;
        const Outcome o = run(*kernel, c, options);
        CHECK_FALSE(o.ok);
        CHECK_MESSAGE(o.code == d.code, o.message);
        CHECK_MESSAGE(contains_one(o.message, d.expect), o.message);
        if (o.ok || o.code != d.code) break;
      }
  }
}

constexpr Code kHazard = Code::I0002;

TEST_CASE("emulation: defects of a reduction through shared memory") {
  check_all(reduce_case(), {
      {"no first barrier", kHazard, "after the write|never written|after the read"},
      {"no barrier in the loop", kHazard, "after the write|after the read"},
      {"no last barrier", kHazard, "after the write|after the read"},
      {"no barrier before reuse", kHazard, "after the read|after the write"},
      {"half not written", kHazard, "never written"},
      {"wrong address", kHazard, "after the other write"},
      {"shared out of bounds", kHazard, "lie outside the block's 512 bytes"},
      {"before the base", kHazard, "lie outside the block's 512 bytes"},
      {"misaligned shared", kHazard, "is not a multiple of 4"},
      {"divergent barrier", kHazard, "divergent barrier"},
      {"part of the threads at a barrier", kHazard, "deadlock|divergent barrier"},
      {"exit before barrier", kHazard, "3 threads have ended: 0..2"},
      {"global out of bounds", Code::T0101, "which has 1536 bytes, are outside"},
      {"misaligned global", kHazard, "is not a multiple of 4"},
      {"write to input", Code::T0118, "input 0"},
  });
}

TEST_CASE("emulation: defects of a transpose through shared memory") {
  check_all(transpose_case(), {
      {"no barrier", kHazard, "after the write|never written"},
      {"pitch too small", kHazard, "after the other write"},
  });
}

TEST_CASE("emulation: defects of a pipeline of cp.async, ldmatrix and mma") {
  check_all(matmul_case(), {
      {"no wait", kHazard, "still in flight"},
      {"wait too short", kHazard, "still in flight"},
      {"no commit", kHazard, "still in flight"},
      {"no barrier after wait", kHazard, "after the write"},
      {"no barrier before refill", kHazard, "after the read|after the write"},
      {"misaligned copy", kHazard, "is not a multiple of 16"},
      {"copy out of bounds", Code::T0101, "input 1, which has 2048 bytes"},
      {"never waited for", kHazard, "ends without waiting"},
      {"wrong stage", kHazard, "still in flight"},
      {"copy left out", kHazard, "never written"},
      {"size beyond the copy", kHazard, "copies 32 bytes into 16"},
      {"source misaligned", kHazard, "is not a multiple of 16"},
      {"ldmatrix out of bounds", kHazard, "lie outside"},
      {"ldmatrix misaligned", kHazard, "is not a multiple of 16"},
      {"divergent ldmatrix", kHazard, "by part of a warp"},
      {"divergent mma", kHazard, "by part of a warp"},
  });
}

TEST_CASE("emulation: defects of warp operations") {
  check_all(shuffle_case(), {
      {"divergent shuffle", kHazard, "by part of a warp"},
      {"divergent ballot", kHazard, "by part of a warp"},
      {"lane has ended", kHazard, "has ended"},
      {"shuffle against barrier", kHazard, "deadlock|by part of a warp"},
  });
}

TEST_CASE("emulation: without the checks of hazards the other rules still hold") {
  std::string error;
  const Case c = reduce_case(1);
  EmulateOptions options;
  options.hazards = false;
  for (const char* bug : {"shared out of bounds", "divergent barrier", "exit before barrier", "misaligned shared"}) {
    const auto kernel = build(c.emit, 2, c.threads, c.shared_bytes, bug, error);
    REQUIRE_MESSAGE(kernel, error);
    CHECK_FALSE(run(*kernel, c, options).ok);
  }
  const auto kernel = build(c.emit, 2, c.threads, c.shared_bytes, "half not written", error);
  REQUIRE_MESSAGE(kernel, error);
  CHECK(run(*kernel, c, options).ok);
}

}  // namespace
