// Litmus tests of the memory model over many seeds: what the rules forbid never happens, what they allow is found where this machine shows it.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "observe_kit.h"
#include "vm/interp/check.h"
#include "vm/interp/seeded.h"

namespace tile {
namespace {

using observe_kit::Kernel;
using Outcomes = std::set<std::vector<int32_t>>;

constexpr uint64_t kSeeds = 400;

/// A kernel whose block k runs bodies[k]; x, y and z start at 0, and what blocks find they store in r.
std::string kernel_of(const std::vector<std::string>& bodies) {
  std::string out = R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %0 = constant <i32: 0> : tile<i32>
    %1 = constant <i32: 1> : tile<i32>
    %2 = constant <i32: 2> : tile<i32>
    %3 = constant <i32: 3> : tile<i32>
    %r0 = offset %r, %0 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %r1 = offset %r, %1 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %r2 = offset %r, %2 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %r3 = offset %r, %3 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %k = make_token : token
)";
  for (size_t b = 0; b < bodies.size(); ++b) {
    const std::string n = std::to_string(b);
    out += "    %is" + n + " = cmpi equal %bx, %" + n + ", signed : tile<i32> -> tile<i1>\n    if %is" + n + " {\n" + bodies[b] + "    }\n";
  }
  return out + "    return\n  }\n}\n";
}
std::string store(const std::string& token, const std::string& how, const std::string& to, const std::string& value, const std::string& after) {
  return "      %" + token + " = store_ptr_tko " + how + " %" + to + ", %" + value + " token=%" + after + " : tile<ptr<i32>>, tile<i32> -> token\n";
}
std::string load(const std::string& value, const std::string& token, const std::string& how, const std::string& from, const std::string& after) {
  return "      %" + value + ", %" + token + " = load_ptr_tko " + how + " %" + from + " token=%" + after + " : tile<ptr<i32>> -> tile<i32>, token\n";
}
std::string found(const std::string& value, const std::string& slot) {
  return "      %s" + slot + " = store_ptr_tko weak %" + slot + ", %" + value + " : tile<ptr<i32>>, tile<i32> -> token\n";
}

class Litmus {
 public:
  explicit Litmus(const std::string& text, uint32_t blocks) : kernel_(text, {"ptr:i32[1]=zeros", "ptr:i32[1]=zeros", "ptr:i32[1]=zeros", "ptr:i32[4]=zeros"}), blocks_(blocks) {}
  explicit Litmus(const std::vector<std::string>& bodies) : Litmus(kernel_of(bodies), static_cast<uint32_t>(bodies.size())) {}

  /// What r holds after a run.
  std::vector<int32_t> run(uint64_t seed, unsigned threads = 1) {
    for (const Array& a : kernel_.args.buffers) std::memset(const_cast<std::byte*>(reinterpret_cast<const std::byte*>(a.memory.data())), 0, a.memory.size());
    RunOptions options;
    options.threads = threads;
    options.schedule = seed;
    options.observers = observers;
    kernel_.prints.clear();
    options.print = [this](const std::string& text) { kernel_.prints += text; };
    const bool ok = kernel_.device->launch(*kernel_.entry, {blocks_, 1, 1}, kernel_.args, options, kernel_.diags).ok();
    INFO(render(kernel_.diags));
    CHECK(ok);
    std::vector<int32_t> out(4);
    std::memcpy(out.data(), kernel_.args.buffers[3].memory.data(), 16);
    return out;
  }
  /// All that some seed gives, the first `n` values of r.
  Outcomes explore(size_t n) {
    Outcomes out;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      auto r = run(seed);
      r.resize(n);
      out.insert(std::move(r));
    }
    return out;
  }
  std::vector<Observer*> observers;
  Kernel kernel_;

 private:
  uint32_t blocks_;
};

Outcomes message_passing(const std::string& data, const std::string& flag, bool release_waits, const std::string& look, bool data_waits) {
  return Litmus({store("a", data, "x", "1", "k") + store("b", flag, "y", "1", release_waits ? "a" : "k"),
                 load("f", "c", look, "y", "k") + load("d", "e", data, "x", data_waits ? "c" : "k") + found("f", "r0") + found("d", "r1")})
      .explore(2);
}
const std::vector<int32_t> kBroken{1, 0};  // the flag is seen, the data is not

TEST_CASE("interleaving: store buffering shows all four outcomes, also with release and acquire") {
  for (const auto& orders : {std::pair("weak", "weak"), {"relaxed device", "relaxed device"}, {"release device", "acquire device"}}) {
    // No structured binding: CAPTURE is a lambda, and C++20 as clang 14 knows it cannot capture one.
    const char* const write = orders.first;
    const char* const read = orders.second;
    CAPTURE(write);
    const Outcomes all = Litmus({store("a", write, "x", "1", "k") + load("p", "b", read, "y", "a") + found("p", "r0"),
                                 store("c", write, "y", "1", "k") + load("q", "d", read, "x", "c") + found("q", "r1")})
                             .explore(2);
    CHECK(all == Outcomes{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  }
}

TEST_CASE("interleaving: message passing holds with release, acquire and tokens, and fails where one of them is missing") {
  const Outcomes right = message_passing("weak", "release device", true, "acquire device", true);
  CHECK(right == Outcomes{{0, 0}, {0, 1}, {1, 1}});
  CHECK(message_passing("weak", "release sys", true, "acquire sys", true).count(kBroken) == 0);
  CHECK(message_passing("relaxed device", "release device", true, "acquire device", true).count(kBroken) == 0);
  CHECK(message_passing("weak", "relaxed device", true, "acquire device", true).count(kBroken) == 1);
  CHECK(message_passing("weak", "release device", false, "acquire device", true).count(kBroken) == 1);
  CHECK(message_passing("weak", "release device", true, "relaxed device", true).count(kBroken) == 1);
  CHECK(message_passing("weak", "release device", true, "acquire device", false).count(kBroken) == 1);
  CHECK(message_passing("weak", "release tl_blk", true, "acquire device", true).count(kBroken) == 1);
  CHECK(message_passing("weak", "release device", true, "acquire tl_blk", true).count(kBroken) == 1);
}

TEST_CASE("interleaving: release and acquire carry on through a third block") {
  const Outcomes all = Litmus({store("a", "weak", "x", "1", "k") + store("b", "release device", "y", "1", "a"),
                               load("f", "c", "acquire device", "y", "k") + store("d", "release device", "z", "f", "c"),
                               load("g", "e", "acquire device", "z", "k") + load("v", "h", "weak", "x", "e") + found("g", "r0") + found("v", "r1")})
                           .explore(2);
  CHECK(all == Outcomes{{0, 0}, {0, 1}, {1, 1}});
}

TEST_CASE("interleaving: one place is coherent") {
  // Two reads of a block never go back; its own write is not lost to it.
  const Outcomes reads = Litmus({store("a", "relaxed device", "x", "1", "k") + store("b", "relaxed device", "x", "2", "a"),
                                 load("p", "c", "relaxed device", "x", "k") + load("q", "d", "relaxed device", "x", "c") + found("p", "r0") + found("q", "r1")})
                             .explore(2);
  CHECK(reads == Outcomes{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}});
  const Outcomes own = Litmus({store("a", "relaxed device", "x", "1", "k") + load("p", "b", "relaxed device", "x", "a") + found("p", "r0"),
                               store("c", "relaxed device", "x", "2", "k")})
                           .explore(1);
  CHECK(own == Outcomes{{1}, {2}});
}

TEST_CASE("interleaving: load buffering gives no value out of nothing") {
  const Outcomes all = Litmus({load("p", "a", "relaxed device", "x", "k") + store("b", "relaxed device", "y", "p", "a") + found("p", "r0"),
                               load("q", "c", "relaxed device", "y", "k") + store("d", "relaxed device", "x", "q", "c") + found("q", "r1")})
                           .explore(2);
  CHECK(all == Outcomes{{0, 0}});
}

std::string add(const std::string& value, const std::string& token, const std::string& how, const std::string& to, const std::string& what, const std::string& after) {
  return "      %" + value + ", %" + token + " = atomic_rmw_tko " + how + " %" + to + ", add, %" + what + " token=%" + after + " : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n";
}

TEST_CASE("interleaving: two readers may see two writes in different orders, but not of one place") {
  const auto readers = [](const std::string& look, const std::string& first, const std::string& second) {
    return Litmus({store("a", "relaxed device", "x", "1", "k"), store("a", "relaxed device", second, second == "x" ? "2" : "1", "k"),
                   load("p", "b", look, first, "k") + load("q", "c", look, second, "b") + found("p", "r0") + found("q", "r1"),
                   load("p", "b", look, second, "k") + load("q", "c", look, first, "b") + found("p", "r2") + found("q", "r3")})
        .explore(4);
  };
  CHECK(readers("relaxed device", "x", "y").count({1, 0, 1, 0}) == 1);
  for (const auto& o : readers("relaxed device", "x", "x")) {
    CAPTURE(o);
    // Of one place: both see 1 and 2 in the same order, and 0 never again.
    CHECK(!(o[0] != 0 && o[1] == 0));
    CHECK(!(o[2] != 0 && o[3] == 0));
    CHECK(!(o[0] != 0 && o[1] != 0 && o[0] != o[1] && o[2] == o[1] && o[3] == o[0]));
  }
}

TEST_CASE("interleaving: a read-modify-write carries a release on") {
  // Block 1 adds 1 to the flag without any order; 2 in the flag says that it came after the release.
  const auto chain = [](const std::string& release) {
    return Litmus({store("a", "weak", "x", "1", "k") + store("b", release, "y", "1", "a"), add("o", "c", "relaxed device", "y", "1", "k"),
                   load("f", "d", "acquire device", "y", "k") + load("v", "e", "weak", "x", "d") + found("f", "r0") + found("v", "r1")})
        .explore(2);
  };
  const Outcomes right = chain("release device");
  CHECK(right.count({2, 0}) == 0);
  CHECK(right.count({2, 1}) == 1);
  CHECK(right.count({1, 0}) == 1);  // the addition came first, or the store
  CHECK(chain("relaxed device").count({2, 0}) == 1);
}

TEST_CASE("interleaving: what a block has read goes with its release") {
  const auto through = [](const std::string& release) {
    return Litmus({store("a", "relaxed device", "x", "1", "k"), load("p", "b", "relaxed device", "x", "k") + store("c", release, "y", "p", "b"),
                   load("q", "d", "acquire device", "y", "k") + load("v", "e", "relaxed device", "x", "d") + found("q", "r0") + found("v", "r1")})
        .explore(2);
  };
  CHECK(through("release device") == Outcomes{{0, 0}, {0, 1}, {1, 1}});
}

TEST_CASE("interleaving: two blocks that write two places may each stay with their first write") {
  const auto places = [](const std::string& second, const std::string& a, const std::string& b) {
    return Litmus({store("a", "relaxed device", "r0", "1", "k") + store("b", second, "r1", "2", a), store("c", "relaxed device", "r1", "1", "k") + store("d", second, "r0", "2", b)})
        .explore(2);
  };
  const Outcomes open = places("relaxed device", "k", "k");
  CHECK(open == Outcomes{{1, 1}, {1, 2}, {2, 1}, {2, 2}});
  // A release comes after what its tokens lead to, also in the order in which this machine lets others see it.
  CHECK(places("release device", "a", "c") == Outcomes{{1, 2}, {2, 1}, {2, 2}});
}

TEST_CASE("interleaving: one of many compare-and-swaps wins, through pointers and through views") {
  const std::string text = R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %0 = constant <i32: 0> : tile<i32>
    %1 = constant <i32: 1> : tile<i32>
    %me = addi %bx, %1 : tile<i32>
    %old, %t = atomic_cas_tko relaxed device %x, %0, %me : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    %won = cmpi equal %old, %0, signed : tile<i32> -> tile<i1>
    %one = exti %won unsigned : tile<i1> -> tile<i32>
    %w = reshape %one : tile<i32> -> tile<1xi32>
    %tv = make_tensor_view %r, shape = [2], strides = [1] : tensor_view<2xi32, strides=[1]>
    %v = make_partition_view %tv : partition_view<tile=(1), tensor_view<2xi32, strides=[1]>>
    %c = atomic_red_view_tko relaxed device %v[%0], add, %w : tile<1xi32>, partition_view<tile=(1), tensor_view<2xi32, strides=[1]>>, tile<i32> -> token
    %m = reshape %me : tile<i32> -> tile<1xi32>
    %d = atomic_red_view_tko relaxed device %v[%1], umax, %m : tile<1xi32>, partition_view<tile=(1), tensor_view<2xi32, strides=[1]>>, tile<i32> -> token
    return
  }
}
)";
  CHECK(Litmus(text, 6).explore(2) == Outcomes{{1, 6}});
}

/// Four blocks that add 1 under a lock.
std::string locked(const std::string& unlock_after) {
  return R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %0 = constant <i32: 0> : tile<i32>
    %1 = constant <i32: 1> : tile<i32>
    %k = make_token : token
    %in = loop iter_values(%tk = %k) : token -> token {
      %old, %tc = atomic_cas_tko acquire device %x, %0, %1 token=%tk : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
      %got = cmpi equal %old, %0, signed : tile<i32> -> tile<i1>
      if %got {
        break %tc : token
      }
      continue %tc : token
    }
    %v, %a = load_ptr_tko weak %r token=%in : tile<ptr<i32>> -> tile<i32>, token
    %s = addi %v, %1 : tile<i32>
    %b = store_ptr_tko weak %r, %s token=%a : tile<ptr<i32>>, tile<i32> -> token
    %o, %c = atomic_rmw_tko release device %x, xchg, %0 token=%)" +
         unlock_after + R"( : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    return
  }
}
)";
}

TEST_CASE("interleaving: a lock protects, and one that is released too early does not") {
  CHECK(Litmus(locked("b"), 4).explore(1) == Outcomes{{4}});
  const Outcomes early = Litmus(locked("in"), 4).explore(1);
  CHECK(early.count({4}) == 1);
  CHECK(early.size() > 1);
}

TEST_CASE("interleaving: atomics lose nothing, loads and stores do") {
  const std::string head = R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %1 = constant <i32: 1> : tile<i32>
)";
  const std::string tail = "    return\n  }\n}\n";
  CHECK(Litmus(head + "    %o, %t = atomic_rmw_tko relaxed device %r, add, %1 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n" + tail, 8).explore(1) == Outcomes{{8}});
  const Outcomes lost = Litmus(head + R"(    %v, %a = load_ptr_tko relaxed device %r : tile<ptr<i32>> -> tile<i32>, token
    %s = addi %v, %1 : tile<i32>
    %b = store_ptr_tko relaxed device %r, %s token=%a : tile<ptr<i32>>, tile<i32> -> token
)" + tail, 8).explore(1);
  CHECK(lost.count({8}) == 1);
  CHECK(lost.count({1}) == 1);
}

TEST_CASE("interleaving: a seed gives one launch, whatever the number of threads; a wait for a later block ends") {
  const std::string wait = "      %w = loop iter_values(%t = %k) : token -> token {\n  " + load("f", "l", "acquire device", "y", "t") +
                           "        %set = cmpi equal %f, %1, signed : tile<i32> -> tile<i1>\n        if %set {\n          break %l : token\n        }\n"
                           "        continue %l : token\n      }\n" + load("d", "e", "weak", "x", "w") + found("d", "r0") + "      print_tko \"seen\\n\" -> token\n";
  Litmus l({wait, "      print_tko \"sent\\n\" -> token\n" + store("a", "weak", "x", "3", "k") + store("b", "release device", "y", "1", "a")});
  std::set<std::string> printed;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    const auto first = l.run(seed, 1);
    CHECK(first[0] == 3);
    const std::string prints = l.kernel_.prints;
    printed.insert(prints);
    CHECK(l.run(seed, 4) == first);
    CHECK(l.kernel_.prints == prints);
  }
  CHECK(printed.size() == 1);
}

TEST_CASE("interleaving: the check of races looks on") {
  const auto checked = [](bool release_waits, uint64_t seed) {
    Litmus l({store("a", "weak", "x", "1", "k") + store("b", "release device", "y", "1", release_waits ? "a" : "k"),
              "      %w = loop iter_values(%t = %k) : token -> token {\n  " + load("f", "l", "acquire device", "y", "t") +
                  "        %set = cmpi equal %f, %1, signed : tile<i32> -> tile<i1>\n        if %set {\n          break %l : token\n        }\n"
                  "        continue %l : token\n      }\n" + load("d", "e", "weak", "x", "w") + found("d", "r0")});
    CheckOptions o;
    o.checks = *parse_checks("race,order,init,undef,bounds");
    o.arrays.resize(4);
    const auto checker = make_checker(l.kernel_.module, std::move(o));
    RunOptions options;
    options.schedule = seed;
    options.observers = {checker.get()};
    const bool ok = l.kernel_.device->launch(*l.kernel_.entry, {2, 1, 1}, l.kernel_.args, options, l.kernel_.diags).ok();
    if (!ok) CHECK(l.kernel_.diags.first_error()->code == Code::T0114);
    return ok;
  };
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    CHECK(checked(true, seed));
    CHECK(!checked(false, seed));
  }
}

TEST_CASE("interleaving: more blocks than are under way at a time, and blocks that trap") {
  const std::string text = R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>, %z: tile<ptr<i32>>, %r: tile<ptr<i32>>) {
    %1 = constant <i32: 1> : tile<i32>
    %o, %t = atomic_rmw_tko relaxed device %r, add, %1 : tile<ptr<i32>>, tile<i32> -> tile<i32>, token
    return
  }
}
)";
  CHECK(Litmus(text, 1000).run(3)[0] == 1000);
  Kernel bad(R"(cuda_tile.module @m {
  entry @k(%x: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %p = offset %x, %bx : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %t = store_ptr_tko weak %p, %bx : tile<ptr<i32>>, tile<i32> -> token
    return
  }
}
)", {"ptr:i32[3]=zeros"});
  RunOptions options;
  options.schedule = 5;
  CHECK(!bad.device->launch(*bad.entry, {4, 1, 1}, bad.args, options, bad.diags));
  CHECK(bad.diags.first_error()->code == Code::T0101);
}

TEST_CASE("order: a permutation of every length, another one for another seed") {
  for (const uint64_t n : {1, 2, 3, 5, 16, 17, 100, 1000, 4097}) {
    std::vector<uint64_t> seen(n);
    const SeededOrder order(7, n), other(8, n);
    bool differs = false, moved = false;
    for (uint64_t i = 0; i < n; ++i) {
      REQUIRE(order(i) < n);
      ++seen[order(i)];
      differs = differs || order(i) != other(i);
      moved = moved || order(i) != i;
    }
    CAPTURE(n);
    CHECK(std::all_of(seen.begin(), seen.end(), [](uint64_t c) { return c == 1; }));
    if (n > 4) CHECK(differs);
    if (n > 4) CHECK(moved);
  }
  const uint64_t large = uint64_t{1} << 62;
  std::set<uint64_t> some;
  const SeededOrder order(1, large);
  for (uint64_t i = 0; i < 100; ++i) some.insert(order(i));
  CHECK(some.size() == 100);
  CHECK(*some.rbegin() < large);
}

TEST_CASE("order: blocks run in an order that follows from the seed") {
  Kernel k(R"(cuda_tile.module @m {
  entry @k() {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    print_tko "%d ", %bx : tile<i32> -> token
    return
  }
}
)", {});
  const auto run = [&](std::optional<uint64_t> seed) {
    RunOptions options;
    options.threads = 1;
    options.order = seed;
    k.prints.clear();
    options.print = [&](const std::string& text) { k.prints += text; };
    REQUIRE(k.device->launch(*k.entry, {6, 1, 1}, k.args, options, k.diags));
    return k.prints;
  };
  CHECK(run({}) == "0 1 2 3 4 5 ");
  CHECK(run(1) == run(1));
  CHECK(run(1) != run({}));
  CHECK(run(1) != run(2));
}

}  // namespace
}  // namespace tile
