// Profiles: counts, bytes, arithmetic and slices; the same numbers with every number of threads.
#include "vm/interp/profile.h"

#include <map>

#include "observe_kit.h"

namespace tile {
namespace {

using observe_kit::Kernel;

const char* const kProduct = R"(cuda_tile.module @m {
  entry @product(%a: tile<ptr<f16>>, %b: tile<ptr<f16>>, %c: tile<ptr<f32>>, %n: tile<i32>) {
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %av = make_tensor_view %a, shape = [16, 8], strides = [8, 1] : tensor_view<16x8xf16, strides=[8,1]>
    %bv = make_tensor_view %b, shape = [8, 4], strides = [4, 1] : tensor_view<8x4xf16, strides=[4,1]>
    %cv = make_tensor_view %c, shape = [16, 4], strides = [4, 1] : tensor_view<16x4xf32, strides=[4,1]>
    %ap = make_partition_view %av : partition_view<tile=(16x8), tensor_view<16x8xf16, strides=[8,1]>>
    %bp = make_partition_view %bv : partition_view<tile=(8x4), tensor_view<8x4xf16, strides=[4,1]>>
    %cp = make_partition_view %cv : partition_view<tile=(16x4), tensor_view<16x4xf32, strides=[4,1]>>
    %acc0 = constant <f32: 0.0> : tile<16x4xf32>
    %sum = for %k in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %acc0) -> (tile<16x4xf32>) {
      %x, %t0 = load_view_tko weak %ap[%zero, %zero] : partition_view<tile=(16x8), tensor_view<16x8xf16, strides=[8,1]>>, tile<i32> -> tile<16x8xf16>, token
      %y, %t1 = load_view_tko weak %bp[%zero, %zero] : partition_view<tile=(8x4), tensor_view<8x4xf16, strides=[4,1]>>, tile<i32> -> tile<8x4xf16>, token
      %next = mmaf %x, %y, %acc : tile<16x8xf16>, tile<8x4xf16>, tile<16x4xf32>
      continue %next : tile<16x4xf32>
    }
    %twice = fma %sum, %sum, %sum : tile<16x4xf32>
    %row = reduce %twice dim=1 identities=[0.000000e+00 : f32] : tile<16x4xf32> -> tile<16xf32> (%l: tile<f32>, %r: tile<f32>) {
      %s = addf %l, %r : tile<f32>
      yield %s : tile<f32>
    }
    %half = ftof %row : tile<16xf32> -> tile<16xf16>
    %t2 = store_view_tko weak %sum, %cp[%zero, %zero] : tile<16x4xf32>, partition_view<tile=(16x4), tensor_view<16x4xf32, strides=[4,1]>>, tile<i32> -> token
    return
  }
}
)";
const std::vector<std::string> kArguments = {"ptr:f16[16,8]=ones", "ptr:f16[8,4]=ones", "ptr:f32[16,4]=zeros", "i32:3"};

std::map<std::string, ProfileCounts> by_op(const Profile& p) {
  std::map<std::string, ProfileCounts> out;
  for (const ProfileRow& r : p.instructions()) out[r.op] += r.counts;
  return out;
}

TEST_CASE("a profile counts executions, bytes and arithmetic") {
  for (const unsigned threads : {1u, 3u}) {
    Kernel k(kProduct, kArguments);
    Profile p;
    REQUIRE(k.run({&p}, {4, 1, 1}, threads));
    auto ops = by_op(p);
    CHECK(p.blocks() == 4);
    CHECK(p.launches() == 1);
    CHECK(ops["for"].count == 4);
    CHECK(ops["load_view_tko"].count == 2 * 3 * 4);
    CHECK(ops["load_view_tko"].bytes_read == (16 * 8 + 8 * 4) * 2 * 3 * 4);
    CHECK(ops["load_view_tko"].bytes_written == 0);
    CHECK(ops["store_view_tko"].bytes_written == 16 * 4 * 4 * 4);
    CHECK(ops["mmaf"].flops == 2 * 16 * 4 * 8 * 3 * 4);
    CHECK(ops["fma"].flops == 2 * 16 * 4 * 4);
    CHECK(ops["reduce"].flops == 16 * 3 * 4);
    CHECK(ops["reduce"].count == 4);
    CHECK(ops["ftof"].flops == 0);
    CHECK(ops.count("addf") == 0);  // inside the reduction
    CHECK(ops["mmaf"].nanoseconds > 0);
  }
}

TEST_CASE("rows of a profile stand in the order of the program and name their lines; launches add up") {
  Kernel k(kProduct, kArguments);
  Profile p;
  REQUIRE(k.run({&p}));
  REQUIRE(k.run({&p}, {2, 1, 1}, 2));
  CHECK(p.launches() == 2);
  CHECK(p.blocks() == 3);
  std::string text;
  for (const ProfileRow& r : p.instructions())
    text += r.op + " " + r.line.text() + " " + std::to_string(r.counts.count) + "\n";
  CHECK(text ==
        "make_tensor_view k.tile:5 3\nmake_tensor_view k.tile:6 3\nmake_tensor_view k.tile:7 3\nfor k.tile:12 "
        "3\nload_view_tko k.tile:13 9\n"
        "load_view_tko k.tile:14 9\nmmaf k.tile:15 9\ncontinue k.tile:16 9\nfma k.tile:18 3\nreduce k.tile:19 3\nftof "
        "k.tile:23 3\n"
        "store_view_tko k.tile:24 3\nreturn k.tile:25 3\n");
}

TEST_CASE("atomics count as reads and writes; elements of four bits as half a byte") {
  Kernel k(R"(cuda_tile.module @m {
  entry @k(%p: tile<ptr<i32>>, %q: tile<ptr<f4E2M1FN>>) {
    %one = constant <i32: 1> : tile<i32>
    %zero = constant <i32: 0> : tile<i32>
    %old, %t = atomic_rmw_tko relaxed device %p, add, %one : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %v = make_tensor_view %q, shape = [16], strides = [1] : tensor_view<16xf4E2M1FN, strides=[1]>
    %pv = make_partition_view %v : partition_view<tile=(16), tensor_view<16xf4E2M1FN, strides=[1]>>
    %x, %t1 = load_view_tko weak %pv[%zero] : partition_view<tile=(16), tensor_view<16xf4E2M1FN, strides=[1]>>, tile<i32> -> tile<16xf4E2M1FN>, token
    return
  }
}
)",
           {"ptr:i32[1]=zeros", "ptr:f4E2M1FN[16]=zeros"});
  Profile p;
  REQUIRE(k.run({&p}));
  auto ops = by_op(p);
  CHECK(ops["atomic_rmw_tko"].bytes_read == 4);
  CHECK(ops["atomic_rmw_tko"].bytes_written == 4);
  CHECK(ops["load_view_tko"].bytes_read == 8);
}

TEST_CASE("slices lie inside their blocks, in order, and beyond the limit they are counted") {
  Kernel k(kProduct, kArguments);
  Profile p(1000);
  REQUIRE(k.run({&p}, {4, 1, 1}, 1));
  REQUIRE(p.workers() == 1);
  std::map<uint64_t, Profile::Event> blocks;
  size_t steps = 0;
  for (const auto& e : p.events(0))
    if (e.inst == kNone) blocks[e.block] = e;
  CHECK(blocks.size() == 4);
  for (const auto& e : p.events(0)) {
    if (e.inst == kNone) continue;
    ++steps;
    const auto& b = blocks.at(e.block);
    CHECK(e.start >= b.start);
    CHECK(e.start + e.duration <= b.start + b.duration);
  }
  CHECK(steps == 4 * (3 + 1 + 3 * 4 + 5));
  CHECK(p.dropped_events() == 0);

  Profile small(5);
  REQUIRE(k.run({&small}, {4, 1, 1}, 1));
  CHECK(small.events(0).size() == 5 + 4);
  CHECK(small.dropped_events() == steps - 5);
}

}  // namespace
}  // namespace tile
