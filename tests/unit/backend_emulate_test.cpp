// Kernels without defects run clean and give the right bits under every policy and seed; operations one by one.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/backend_emulate_kit.h"
#include "vm/base/numeric.h"

namespace {
using namespace emulate_kit;

void check_clean(const Case& c) {
  std::string error;
  const auto kernel = build(c.emit, static_cast<unsigned>(c.inputs.size()) + 1, c.threads, c.shared_bytes, "", error);
  REQUIRE_MESSAGE(kernel, error);
  for (const auto policy : {EmulateOptions::Early, EmulateOptions::Late, EmulateOptions::Random})
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      CAPTURE(int{policy});
      CAPTURE(seed);
      EmulateOptions options;
      options.policy = policy;
      options.seed = seed;
      options.threads = 1 + seed % 2;
      options.hazards = seed % 5 != 0;
      const Outcome o = run(*kernel, c, options);
      REQUIRE_MESSAGE(o.ok, o.message);
      REQUIRE(o.right);
    }
}

TEST_CASE("emulation: a reduction runs clean under every policy and seed") { check_clean(reduce_case()); }
TEST_CASE("emulation: a transpose runs clean under every policy and seed") { check_clean(transpose_case()); }
TEST_CASE("emulation: a matmul pipeline runs clean under every policy and seed") { check_clean(matmul_case()); }
TEST_CASE("emulation: warp operations run clean under every policy and seed") { check_clean(shuffle_case()); }

TEST_CASE("emulation: addresses name their allocation") {
  std::vector<std::byte> a(100), b(200);
  EmulatedMemory m;
  const uint64_t x = m.add({a.data(), 100, "a", false}), y = m.add({b.data(), 200, "b", true});
  CHECK(x % 256 == 0);
  CHECK(m.resolve(x, 100) == a.data());
  CHECK(m.resolve(x + 99, 1) == a.data() + 99);
  CHECK(m.resolve(x + 97, 4) == nullptr);
  CHECK(m.resolve(x - 1, 1) == nullptr);
  CHECK(m.resolve(x + 100, 0) == a.data() + 100);
  CHECK(m.resolve(y + 4, ~uint64_t{0}) == nullptr);
  CHECK(m.resolve(0, 1) == nullptr);
  CHECK(m.resolve(~uint64_t{0}, 1) == nullptr);
  CHECK(m.describe(y - 4) == "offset -4 of b, which has 200 bytes");
  CHECK(m.describe(17) == "no allocation");
  CHECK(m.add({nullptr, EmulatedMemory::kMaxBytes + 1, "c", false}) == 0);
}

/// Runs a kernel of one parameter (the output) on one warp.
Outcome run_one(Emit emit, std::vector<uint32_t> want, EmulateOptions options = {}, uint32_t threads = 32,
                uint32_t blocks = 1) {
  std::string error;
  const auto kernel = build(emit, 1, threads, 64, "", error);
  REQUIRE_MESSAGE(kernel, error);
  return run(*kernel, {emit, threads, 64, blocks, {}, std::move(want)}, options);
}

TEST_CASE("emulation: atomics of many blocks add up") {
  constexpr uint32_t kBlocks = 64;
  const auto emit = +[](Builder& k) {
    auto& d = k.d;
    Value* tid = d.thread_id();
    const auto rmw = [&](RmwOp op, Value* v, int64_t word, bool bf16 = false) {
      return d.atomic_rmw(op, v, bf16, k.add(k.params[0], word * 4), MemOrder::Relaxed, MemScope::Device, nullptr);
    };
    rmw(RmwOp::Add, k.i32(3), 0);
    rmw(RmwOp::AddF, k.b.getInt32(float_bits(0.5f)), 1);
    rmw(RmwOp::UMax, k.add(k.mul(d.block_id(0), 32), tid), 2);
    rmw(RmwOp::Or, k.b.CreateShl(k.i32(1), tid), 3);
    rmw(RmwOp::Min, k.b.CreateSub(k.i32(5), tid), 4);
    rmw(RmwOp::AddF, k.b.getInt64(double_bits(0.25)), 6);
    rmw(RmwOp::AddF, k.b.getInt16(f32_to_f16(0.25f)), 8);
    d.atomic_rmw(RmwOp::Add, k.i32(100), false, k.add(k.params[0], 36), MemOrder::Relaxed, MemScope::Device,
                 k.less(tid, 1));
    // One more by compare-and-swap, again until it succeeds.
    k.repeat([&] {
      Value* at = k.add(k.params[0], 40);
      Value* old = d.load_global(k.b.getInt32Ty(), 1, at, MemOrder::Relaxed, MemScope::Device)[0];
      return k.b.CreateICmpNE(d.atomic_cas(old, k.add(old, 1), at, MemOrder::AcqRel, MemScope::Device, nullptr), old);
    });
  };
  const uint64_t wide = double_bits(0.25 * kBlocks * 32);
  const std::vector<uint32_t> want = {3 * 32 * kBlocks,
                                      float_bits(16.0f * kBlocks),
                                      32 * kBlocks - 1,
                                      ~0u,
                                      static_cast<uint32_t>(-26),
                                      0,
                                      static_cast<uint32_t>(wide),
                                      static_cast<uint32_t>(wide >> 32),
                                      f32_to_f16(512.0f),
                                      100 * kBlocks,
                                      32 * kBlocks};
  for (unsigned threads : {1u, 2u, 4u}) {
    EmulateOptions options;
    options.threads = threads;
    const Outcome o = run_one(emit, want, options, 32, kBlocks);
    CHECK_MESSAGE(o.ok, o.message);
    CHECK(o.right);
    CHECK(o.stats.blocks == kBlocks);
  }
}

TEST_CASE("emulation: a thread that waits for another one's flag lets it run") {
  const auto emit = +[](Builder& k) {
    auto& d = k.d;
    k.if_then(
        k.less(d.thread_id(), 31),
        [&] {
          k.repeat([&] {
            return k.b.CreateICmpEQ(
                d.load_global(k.b.getInt32Ty(), 1, k.params[0], MemOrder::Acquire, MemScope::Device)[0], k.i32(0));
          });
        },
        [&] { k.store_global(k.i32(7), k.params[0]); });
  };
  for (const auto policy : {EmulateOptions::Early, EmulateOptions::Late, EmulateOptions::Random}) {
    EmulateOptions options;
    options.policy = policy;
    const Outcome o = run_one(emit, {7}, options);
    CHECK_MESSAGE(o.ok, o.message);
    CHECK(o.right);
  }
}

TEST_CASE("emulation: fuel and cancellation end a loop") {
  const auto emit = +[](Builder& k) {
    k.repeat([&] { return k.b.CreateICmpEQ(k.load_global(k.b.getInt32Ty(), k.params[0]), k.i32(0)); });
  };
  EmulateOptions options;
  options.fuel = 5000;
  Outcome o = run_one(emit, {0}, options);
  CHECK_FALSE(o.ok);
  CHECK(o.code == Code::L0104);
  const std::atomic<bool> cancel{true};
  options.fuel = 0;
  options.cancel = &cancel;
  o = run_one(emit, {0}, options);
  CHECK_FALSE(o.ok);
  CHECK(o.code == Code{});
  CHECK(o.message.empty());
}

TEST_CASE("emulation: traps of the kernel") {
  const auto emit = +[](Builder& k) {
    k.d.site = 12;
    k.if_then(k.b.CreateICmpEQ(k.d.thread_id(), k.i32(20)), [&] {
      k.d.trap(102, k.params[0]);
      k.b.CreateUnreachable();
    });
  };
  const Outcome o = run_one(emit, {0});
  CHECK_FALSE(o.ok);
  CHECK(o.code == Code::T0102);
}

TEST_CASE("emulation: a frame much larger than a page has room on the fiber's stack") {
  const auto emit = +[](Builder& k) {
    constexpr unsigned kWords = 50000;
    Value* array = k.b.CreateAlloca(k.b.getInt32Ty(), k.i32(kWords));
    Value* tid = k.d.thread_id();
    const auto at = [&](unsigned i) { return k.b.CreateConstGEP1_32(k.b.getInt32Ty(), array, i); };
    for (unsigned i = 0; i < kWords; i += 9999) k.b.CreateStore(k.add(tid, i), at(i));
    k.d.barrier();
    Value* sum = k.i32(0);
    for (unsigned i = 0; i < kWords; i += 9999) sum = k.add(sum, k.b.CreateLoad(k.b.getInt32Ty(), at(i)));
    k.store_global(sum, k.at(0, tid, 4));
  };
  std::vector<uint32_t> want;
  for (uint32_t t = 0; t < 64; ++t) want.push_back(6 * t + 9999 * 15);
  const Outcome o = run_one(emit, want, {}, 64);
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

TEST_CASE("emulation: identity and predicates") {
  const auto emit = +[](Builder& k) {
    auto& d = k.d;
    Value *tid = d.thread_id(), *block = d.block_id(0), *odd = k.b.CreateTrunc(tid, k.b.getInt1Ty());
    Value* at = k.add(k.mul(block, 32), tid);
    Value* x = k.add(k.mul(d.grid_size(0), 1000), k.add(k.mul(block, 100), tid));
    k.store_global(x, k.at(0, at, 4), odd);
    // A false predicate loads zero or the other value, wherever the address points.
    Value* far = k.b.CreateSelect(odd, k.at(0, at, 4), k.b.getInt64(12345));
    Value* y = d.load_global(k.b.getInt32Ty(), 1, far, MemOrder::Weak, MemScope::Block, odd, k.i32(55))[0];
    Value* z = k.load_global(k.b.getInt32Ty(), far, odd);
    Value* w = k.load_shared(k.i32(3), k.b.getInt1(false));
    k.store_global(k.add(k.add(y, z), w), k.at(0, at, 4));
  };
  std::vector<uint32_t> want;
  for (uint32_t b = 0; b < 2; ++b)
    for (uint32_t t = 0; t < 32; ++t) want.push_back(t % 2 ? 2 * (2000 + b * 100 + t) : 55);
  const Outcome o = run_one(emit, want, {}, 32, 2);
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

TEST_CASE("emulation: cp.async fills with zeros what it does not read, and may be left out") {
  const auto emit = +[](Builder& k) {
    auto& d = k.d;
    Value *tid = d.thread_id(), *at = k.shared(tid, 16);
    for (int64_t i = 0; i < 4; ++i) k.store_shared(k.i32(7), k.add(at, 4 * i));
    // Thread n copies n % 17 bytes, the last 8 threads nothing.
    Value* from = k.at(0, k.mul(tid, 4), 4);
    d.cp_async(at, from, 16, k.mod(tid, 17), k.less(tid, 24));
    d.cp_async_commit();
    d.cp_async_wait(0);
    for (int64_t i = 0; i < 4; ++i) k.store_global(k.load_shared(k.add(at, 4 * i)), k.at(1, k.add(k.mul(tid, 4), i), 4));
  };
  std::vector<uint32_t> in, want;
  for (uint32_t i = 0; i < 32 * 4; ++i) in.push_back(0x01010101u * (1 + i));
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t bytes = t % 17 > 4 * i ? std::min(t % 17 - 4 * i, 4u) : 0;
      want.push_back(t >= 24 ? 7 : bytes == 4 ? in[t * 4 + i] : in[t * 4 + i] & ((1u << (8 * bytes)) - 1));
    }
  std::string error;
  const auto kernel = build(emit, 2, 32, 512, "", error);
  REQUIRE_MESSAGE(kernel, error);
  const Outcome o = run(*kernel, {emit, 32, 512, 1, {in}, want}, {});
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

TEST_CASE("emulation: fused multiply-add rounds once") {
  const auto emit = +[](Builder& k) {
    const auto half_value = [&](uint16_t bits, llvm::Type* t) { return k.b.CreateBitCast(k.b.getInt16(bits), t); };
    const auto put = [&](Value* v, int64_t word) {
      k.store_global(k.b.CreateZExt(k.b.CreateBitCast(v, k.b.getInt16Ty()), k.b.getInt32Ty()), k.at(0, k.i32(word), 4));
    };
    auto *h = k.b.getHalfTy(), *bf = k.b.getBFloatTy();
    // (1 + 2^-10)(1 + 2^-10) - 1 = 2^-9 + 2^-20: the product alone would lose its last bit.
    put(k.d.fma(half_value(0x3C01, h), half_value(0x3C01, h), half_value(0xBC00, h)), 0);
    // 2^-24 x 2^-24 added to 1 + 2^-11, half way between two f16: the tiny part decides.
    put(k.d.fma(half_value(0x0001, h), half_value(0x0001, h), half_value(0x3C00, h)), 1);
    put(k.d.fma(half_value(0x3F81, bf), half_value(0x3F81, bf), half_value(0xBF80, bf)), 2);
    Value* f =
        k.d.fma(llvm::ConstantFP::get(k.b.getFloatTy(), 1 + 0x1p-23),
                llvm::ConstantFP::get(k.b.getFloatTy(), 1 + 0x1p-23), llvm::ConstantFP::get(k.b.getFloatTy(), -1));
    k.store_global(k.b.CreateBitCast(f, k.b.getInt32Ty()), k.at(0, k.i32(3), 4));
    k.store_global(k.b.CreateBitCast(k.d.sqrt(llvm::ConstantFP::get(k.b.getFloatTy(), 2)), k.b.getInt32Ty()),
                   k.at(0, k.i32(4), 4));
  };
  const Outcome o =
      run_one(emit, {f32_to_f16(0x1p-9f + 0x1p-20f), 0x3C00, f32_to_bf16(0x1p-6f + 0x1p-14f),
                     float_bits(std::fma(1 + 0x1p-23f, 1 + 0x1p-23f, -1.0f)), float_bits(std::sqrt(2.0f))});
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

TEST_CASE("emulation: approximate instructions stay within one unit in the last place") {
  const auto emit = +[](Builder& k) {
    for (uint32_t op = 0; op < 8; ++op) {
      Value* r = k.d.approx(static_cast<ApproxOp>(op), llvm::ConstantFP::get(k.b.getFloatTy(), 0.7f));
      k.store_global(k.b.CreateBitCast(r, k.b.getInt32Ty()), k.at(0, k.i32(op), 4));
    }
  };
  const double x = 0.7f;
  const double exact[] = {std::exp2(x), std::log2(x), 1 / x,       1 / std::sqrt(x),
                          std::sqrt(x), std::sin(x),  std::cos(x), std::tanh(x)};
  std::vector<uint32_t> want;
  for (const double v : exact) want.push_back(float_bits(static_cast<float>(v)));
  EmulateOptions options;
  options.policy = EmulateOptions::Late;
  const Outcome o = run_one(emit, want, options);
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

// --- mma of every kind, against plain loops; the fragments' places as the PTX manual gives them ---

struct MmaShape {
  MmaKind kind;
  unsigned k, bits;    ///< depth; of an input element
};

/// Registers of the fragments: 4 of A, 2 of B in words 0..5 of each lane's 16 in parameter 0, C in 8 and on; D goes to
/// parameter 1. kShort: the shapes of sm_75, half as deep.
template <MmaKind kKind, bool kShort = false>
void emit_mma(Builder& k) {
  Value* lane = k.d.thread_id();
  const auto in = [&](int64_t word) {
    return k.load_global(k.b.getInt32Ty(), k.at(0, k.add(k.mul(lane, 16), word), 4));
  };
  const auto in64 = [&](int64_t word) {
    return k.b.CreateBitCast(k.load_global(k.b.getInt64Ty(), k.at(0, k.add(k.mul(lane, 16), word), 4)),
                             k.b.getDoubleTy());
  };
  Values a, b, c;
  if constexpr (kKind == MmaKind::F64) {
    a = {in64(0)}, b = {in64(4)}, c = {in64(8), in64(10)};
  } else {
    constexpr bool kInt =
        kKind == MmaKind::S8 || kKind == MmaKind::U8 || kKind == MmaKind::S8U8 || kKind == MmaKind::U8S8;
    for (int64_t i = 0; i < (kShort ? kInt ? 1 : 2 : 4); ++i) a.push_back(in(i));
    for (int64_t i = 0; i < (kShort ? 1 : 2); ++i) b.push_back(in(4 + i));
    for (int64_t i = 0; i < (kKind == MmaKind::F16F16 || (kShort && kInt) ? 2 : 4); ++i)
      c.push_back(kInt || kKind == MmaKind::F16F16 ? in(8 + i) : k.b.CreateBitCast(in(8 + i), k.b.getFloatTy()));
  }
  const Values d = k.d.mma(kKind, a, b, c, true, false);
  for (size_t i = 0; i < d.size(); ++i) {
    const bool wide = kKind == MmaKind::F64;
    k.store_global(k.b.CreateBitCast(d[i], wide ? k.b.getInt64Ty() : k.b.getInt32Ty()),
                   k.at(1, k.add(k.mul(lane, 4), static_cast<int64_t>(wide ? 2 * i : i)), 4));
  }
}

template <MmaKind kKind, bool kShort = false>
void check_mma(unsigned depth, unsigned bits, double (*a_value)(uint32_t), double (*b_value)(uint32_t), uint32_t mask) {
  Case c{emit_mma<kKind, kShort>, 32, 16, 1, {{}}, std::vector<uint32_t>(128)};
  uint32_t state = 12345;
  for (unsigned i = 0; i < 32 * 16; ++i) {
    state = state * 1664525 + 1013904223;
    c.inputs[0].push_back(state & mask);
  }
  const unsigned per = 32 / bits;
  const auto element = [&](unsigned lane, unsigned word, unsigned e) {
    const uint32_t w = c.inputs[0][lane * 16 + word];
    return bits == 32 ? w : w >> (bits * e) & ((1u << bits) - 1);
  };
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned i = 0; i < (kShort && bits == 8 ? 2u : 4u); ++i) {
      const unsigned row = l / 4 + (i >= 2 ? 8 : 0), column = l % 4 * 2 + i % 2;
      constexpr bool kHalf = kKind == MmaKind::F16F16;
      const uint32_t old =
          kHalf ? c.inputs[0][l * 16 + 8 + i / 2] >> (16 * (i % 2)) & 0xFFFF : c.inputs[0][l * 16 + 8 + i];
      float sum = kHalf ? f16_to_f32(static_cast<uint16_t>(old)) : float_of(old);
      uint32_t whole = old;
      for (unsigned x = 0; x < depth; ++x) {
        const unsigned half = kShort ? 0 : x / (depth / 2), in = kShort ? x : x % (depth / 2);
        const double av = a_value(element(row % 8 * 4 + in / per, row / 8 + 2 * half, in % per));
        const double bv = b_value(element(column * 4 + in / per, 4 + half, in % per));
        sum = std::fma(static_cast<float>(av), static_cast<float>(bv), sum);
        whole += static_cast<uint32_t>(static_cast<int64_t>(av * bv));
      }
      constexpr bool kInt =
          kKind == MmaKind::S8 || kKind == MmaKind::U8 || kKind == MmaKind::S8U8 || kKind == MmaKind::U8S8;
      const uint32_t f32 = std::isnan(sum) ? 0x7FFFFFFF : float_bits(sum);
      if (kHalf) c.want[l * 4 + i / 2] |= uint32_t{f32_to_f16(sum)} << (16 * (i % 2));
      else c.want[l * 4 + i] = kInt ? whole : f32;
    }
  std::string error;
  const auto kernel = build(c.emit, 2, 32, 16, "", error);
  REQUIRE_MESSAGE(kernel, error);
  const Outcome o = run(*kernel, c, {});
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

double from_f16(uint32_t v) { return f16_to_f32(static_cast<uint16_t>(v)); }
double from_bf16(uint32_t v) { return bf16_to_f32(static_cast<uint16_t>(v)); }
double from_tf32(uint32_t v) { return float_of(v & ~0x1FFFu); }
double from_s8(uint32_t v) { return static_cast<int8_t>(v); }
double from_u8(uint32_t v) { return static_cast<uint8_t>(v); }
double from_e5m2(uint32_t v) { return decode(ElementType::F8E5M2, v); }
double from_e4m3(uint32_t v) { return decode(ElementType::F8E4M3FN, v); }

TEST_CASE("emulation: mma of every kind agrees with plain loops") {
  const uint32_t finite = 0xBFFFBFFF;  // no exponent of all ones
  check_mma<MmaKind::F16F32>(16, 16, from_f16, from_f16, finite);
  check_mma<MmaKind::F16F32>(16, 16, from_f16, from_f16, ~0u);  // with infinities and NaN
  check_mma<MmaKind::BF16F32>(16, 16, from_bf16, from_bf16, finite);
  check_mma<MmaKind::F16F16>(16, 16, from_f16, from_f16, 0xB7FFB7FF);
  check_mma<MmaKind::TF32F32>(8, 32, from_tf32, from_tf32, finite);
  check_mma<MmaKind::S8>(32, 8, from_s8, from_s8, ~0u);
  check_mma<MmaKind::U8>(32, 8, from_u8, from_u8, ~0u);
  check_mma<MmaKind::S8U8>(32, 8, from_s8, from_u8, ~0u);
  check_mma<MmaKind::U8S8>(32, 8, from_u8, from_s8, ~0u);
  check_mma<MmaKind::F16F32, true>(8, 16, from_f16, from_f16, ~0u);
  check_mma<MmaKind::S8, true>(16, 8, from_s8, from_s8, ~0u);
  check_mma<MmaKind::U8, true>(16, 8, from_u8, from_u8, ~0u);
  check_mma<MmaKind::S8U8, true>(16, 8, from_s8, from_u8, ~0u);
  check_mma<MmaKind::U8S8, true>(16, 8, from_u8, from_s8, ~0u);
  check_mma<MmaKind::F8F32>(32, 8, from_e5m2, from_e4m3, 0xBFBFBFBF);
}

TEST_CASE("emulation: mma of f64") {
  Case c{emit_mma<MmaKind::F64>, 32, 16, 1, {std::vector<uint32_t>(512)}, std::vector<uint32_t>(128)};
  const auto put = [](std::vector<uint32_t>& v, size_t at, double x) { std::memcpy(&v[at], &x, 8); };
  const auto get = [&](size_t at) {
    double x = 0;
    std::memcpy(&x, &c.inputs[0][at], 8);
    return x;
  };
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t w : {0u, 4u, 8u, 10u}) put(c.inputs[0], l * 16 + w, noise(l * 16 + w) / 7.0);
  for (size_t l = 0; l < 32; ++l)
    for (size_t e = 0; e < 2; ++e) {
      double sum = get(l * 16 + 8 + 2 * e);
      for (size_t x = 0; x < 4; ++x)
        sum = std::fma(get((l / 4 * 4 + x) * 16), get(((l % 4 * 2 + e) * 4 + x) * 16 + 4), sum);
      put(c.want, l * 4 + 2 * e, sum);
    }
  std::string error;
  const auto kernel = build(c.emit, 2, 32, 16, "", error);
  REQUIRE_MESSAGE(kernel, error);
  const Outcome o = run(*kernel, c, {});
  CHECK_MESSAGE(o.ok, o.message);
  CHECK(o.right);
}

TEST_CASE("emulation: an invalid module or an unknown function is reported") {
  for (const bool known : {false, true}) {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("test", *context);
    set_up_host_module(*module);
    {
      const Target target;
      const auto device = make_host_device(*module, target);
      device->begin("kernel", 1, 32, 1);
      if (!known) {
        device->b.CreateCall(
            module->getOrInsertFunction("no_such_function", llvm::FunctionType::get(device->b.getVoidTy(), false)));
        device->end();
      }  // else the kernel has no end
    }
    Diagnostics diags;
    CHECK_FALSE(load_host_code(std::move(context), std::move(module), "kernel", diags));
    REQUIRE(diags.first_error());
    CHECK(diags.first_error()->code == Code::I0001);
  }
}

}  // namespace
