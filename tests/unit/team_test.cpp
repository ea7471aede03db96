// Steps of one block spread over threads: the bits of one thread for every number of threads, instruction set and way to run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/unit/observe_kit.h"
#include "vm/interp/check.h"
#include "vm/interp/isa/isa.h"
#include "vm/interp/team.h"
#include "vm/interp/trace.h"

namespace {

using namespace tile;

/// Watching is what makes a launch run step by step.
struct Watcher : Observer {};
enum class Watch { None, Step, Check, Trace };

struct Case {
  const char* name;
  std::string text;
  std::vector<std::string> arguments;
};

/// Launches until a helper has come, for 20 seconds at most: on a busy machine it may get no processor for a while. Returns the steps it helped with.
template <class F>
uint64_t until_helped(const F& launch) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  uint64_t shared = 0;
  while (shared == 0 && std::chrono::steady_clock::now() < until) shared = launch();
  return shared;
}

/// A kernel that reads 512 x 256 elements of x and y as %a and %b, and writes %r, of the same shape, to z.
std::string kernel(const std::string& element, const std::string& body) {
  std::string t = "!array = !cuda_tile.tensor_view<512x256x" + element + ", strides=[256,1]>\n!view = !cuda_tile.partition_view<tile=(512x256), !array>\n"
                  "!tile = !cuda_tile.tile<512x256x" + element + ">\n!row = !cuda_tile.tile<256x" + element + ">\n!column = !cuda_tile.tile<512x" + element +
                  ">\n!one = !cuda_tile.tile<" + element + ">\n!p = !cuda_tile.tile<ptr<" + element + ">>\n"
                  "cuda_tile.module @m {\n entry @k(%x: !p, %y: !p, %z: !p) {\n  %zero = constant <i32: 0> : tile<i32>\n  %one = constant <i32: 1> : tile<i32>\n";
  for (const std::string v : {"x", "y", "z"})
    t += "  %" + v + "v = make_tensor_view %" + v + ", shape = [512, 256], strides = [256, 1] : !array\n  %" + v + "p = make_partition_view %" + v + "v : !view\n";
  t += "  %a, %ta = load_view_tko weak %xp[%zero, %zero] : !view, tile<i32> -> !tile, token\n  %b, %tb = load_view_tko weak %yp[%zero, %zero] : !view, tile<i32> -> !tile, token\n";
  return t + body + "  %tz = store_view_tko weak %r, %zp[%zero, %zero] : !tile, !view, tile<i32> -> token\n  return\n } }\n";
}

std::string fold(const std::string& result, const std::string& op, const std::string& in, const std::string& attributes, const std::string& to) {
  return "  " + result + " = " + op + " " + in + " " + attributes + " : !tile -> " + to +
         "\n  (%l: !one, %m: !one) {\n    %s = addf %l, %m : !one\n    yield %s : !one\n  }\n";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* name, const std::string& element, const std::string& body) {
    const std::string array = "ptr:" + element + "[131072]=";
    const bool is_float = element[0] == 'f' || element[0] == 'b';
    const auto data = [&](int seed) { return array + (is_float ? "normal(seed=" : "randint(lo=-100,hi=100,seed=") + std::to_string(seed) + ")"; };
    all.push_back({name, kernel(element, body), {data(1), data(2), array + "zeros"}});
  };
  add("chain", "f32", "  %c = mulf %a, %b : !tile\n  %d = exp %c : !tile\n  %r = addf %d, %a : !tile\n");
  add("chain of halves", "f16", "  %c = mulf %a, %b : !tile\n  %r = addf %c, %a : !tile\n");
  add("conversions and selection", "f32",
      "  %n = ftof %a : !tile -> tile<512x256xf16>\n  %w = ftof %n : tile<512x256xf16> -> !tile\n  %c = cmpf less_than ordered %w, %b : !tile -> tile<512x256xi1>\n"
      "  %r = select %c, %w, %a : tile<512x256xi1>, !tile\n");
  add("numbers, rows and columns repeated", "f32",
      "  %i = constant <i32: 3> : tile<i32>\n  %o1 = extract %a[%i, %i] : !tile -> tile<1x1xf32>\n  %o = broadcast %o1 : tile<1x1xf32> -> !tile\n"
      "  %w1 = extract %a[%i, %zero] : !tile -> tile<1x256xf32>\n  %w = broadcast %w1 : tile<1x256xf32> -> !tile\n"
      "  %h1 = extract %a[%zero, %i] : !tile -> tile<512x1xf32>\n  %h = broadcast %h1 : tile<512x1xf32> -> !tile\n"
      "  %c = mulf %o, %w : !tile\n  %d = addf %c, %h : !tile\n  %r = subf %d, %b : !tile\n");
  add("sums of rows and columns", "f32",
      fold("%rows", "reduce", "%a", "dim=1 identities=[0.0 : f32]", "!column") + fold("%columns", "reduce", "%b", "dim=0 identities=[0.0 : f32]", "!row") +
          "  %rows1 = reshape %rows : !column -> tile<512x1xf32>\n  %rs = broadcast %rows1 : tile<512x1xf32> -> !tile\n"
          "  %columns1 = reshape %columns : !row -> tile<1x256xf32>\n  %cs = broadcast %columns1 : tile<1x256xf32> -> !tile\n  %r = addf %rs, %cs : !tile\n");
  add("scans of rows and columns", "f32",
      fold("%rows", "scan", "%a", "dim=1 reverse=true identities=[0.0 : f32]", "!tile") + fold("%r", "scan", "%rows", "dim=0 reverse=false identities=[0.0 : f32]", "!tile"));
  add("parts, order and places", "f32",
      "  %i = constant <i32: 1> : tile<i32>\n  %h = extract %a[%i, %zero] : !tile -> tile<256x256xf32>\n  %t = permute %h [1, 0] : tile<256x256xf32> -> tile<256x256xf32>\n"
      "  %j = cat %t, %h dim = 0 : tile<256x256xf32>, tile<256x256xf32> -> !tile\n  %p = permute %j [1, 0] : !tile -> tile<256x512xf32>\n"
      "  %q = permute %p [1, 0] : tile<256x512xf32> -> !tile\n  %r = addf %q, %b : !tile\n");
  add("product", "f32",
      "  %t = permute %b [1, 0] : !tile -> tile<256x512xf32>\n  %none = constant <f32: 0.0> : tile<512x512xf32>\n"
      "  %c = mmaf %a, %t, %none : !tile, tile<256x512xf32>, tile<512x512xf32>\n  %r = extract %c[%zero, %one] : tile<512x512xf32> -> !tile\n");
  add("product of bytes", "i8",
      "  %t = permute %b [1, 0] : !tile -> tile<256x512xi8>\n  %none = constant <i32: 0> : tile<512x512xi32>\n"
      "  %c = mmai %a, %t, %none signed signed : !tile, tile<256x512xi8>, tile<512x512xi32>\n"
      "  %e = extract %c[%zero, %one] : tile<512x512xi32> -> tile<512x256xi32>\n  %r = trunci %e : tile<512x256xi32> -> !tile\n");
  // Rows chosen by numbers, with some outside the array; pointers in a row; columns of a transposed view, with a border.
  const std::string gather = "!gather = !cuda_tile.gather_scatter_view<tile=(512x256), padding_value = zero, !array, sparse_dim=0>\n";
  const auto with = [](const std::string& aliases, std::string text) { return text.insert(text.find("cuda_tile.module @m"), aliases); };
  const std::vector<std::string> floats = {"ptr:f32[131072]=normal(seed=1)", "ptr:f32[131072]=normal(seed=2)", "ptr:f32[131072]=zeros"};
  all.push_back({"chosen rows",
                 with(gather, kernel("f32",
                                     "  %i = iota : tile<512xi32>\n  %f = constant <i32: 7> : tile<512xi32>\n  %m = muli %i, %f : tile<512xi32>\n  %n = constant <i32: 600> : tile<512xi32>\n"
                                     "  %k = remi %m, %n unsigned : tile<512xi32>\n  %xg = make_gather_scatter_view %xv : !gather\n"
                                     "  %g, %tg = load_view_tko weak %xg[%k, %zero] : !gather, tile<512xi32>, tile<i32> -> !tile, token\n  %r = addf %g, %b : !tile\n")),
                 floats});
  all.push_back({"pointers",
                 "!ps = !cuda_tile.tile<131072xptr<f32>>\n!f = !cuda_tile.tile<131072xf32>\n!n = !cuda_tile.tile<131072xi32>\n"
                 "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %z: tile<ptr<f32>>) {\n  %i = iota : !n\n"
                 "  %last = constant <i32: 131071> : !n\n  %back = subi %last, %i : !n\n"
                 "  %x1 = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>\n  %xs = broadcast %x1 : tile<1xptr<f32>> -> !ps\n  %xp = offset %xs, %back : !ps, !n -> !ps\n"
                 "  %z1 = reshape %z : tile<ptr<f32>> -> tile<1xptr<f32>>\n  %zs = broadcast %z1 : tile<1xptr<f32>> -> !ps\n  %zp = offset %zs, %i : !ps, !n -> !ps\n"
                 "  %a, %t0 = load_ptr_tko weak %xp : !ps -> !f, token\n  %s = addf %a, %a : !f\n  %t1 = store_ptr_tko weak %zp, %s : !ps, !f -> token\n  return\n } }\n",
                 floats});
  all.push_back({"a transposed view with a border",
                 "!from = !cuda_tile.tensor_view<300x400xf32, strides=[1,300]>\n!froms = !cuda_tile.partition_view<tile=(512x512), padding_value = neg_zero, !from>\n"
                 "!to = !cuda_tile.tensor_view<300x400xf32, strides=[400,1]>\n!tos = !cuda_tile.partition_view<tile=(512x512), !to>\n!tile = !cuda_tile.tile<512x512xf32>\n"
                 "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %z: tile<ptr<f32>>) {\n  %zero = constant <i32: 0> : tile<i32>\n"
                 "  %xv = make_tensor_view %x, shape = [300, 400], strides = [1, 300] : !from\n  %zv = make_tensor_view %z, shape = [300, 400], strides = [400, 1] : !to\n"
                 "  %xp = make_partition_view %xv : !froms\n  %zp = make_partition_view %zv : !tos\n"
                 "  %a, %t0 = load_view_tko weak %xp[%zero, %zero] : !froms, tile<i32> -> !tile, token\n"
                 "  %t1 = store_view_tko weak %a, %zp[%zero, %zero] : !tile, !tos, tile<i32> -> token\n  return\n } }\n",
                 floats});
  return all;
}

struct IsaScope {
  explicit IsaScope(Isa isa) { force_isa(isa); }
  ~IsaScope() { force_isa(best_isa()); }
};

}  // namespace

TEST_CASE("a block whose steps are spread over threads leaves the memory that one thread leaves") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    observe_kit::Kernel reference(c.text, c.arguments);
    REQUIRE(reference.run({}));
    const auto& expected = reference.args.buffers[2].memory;
    CHECK(std::any_of(expected.data(), expected.data() + expected.size(), [](uint8_t byte) { return byte != 0; }));
    const auto trace_into = [](const observe_kit::Kernel& k, std::string& lines) {
      return Trace(k.module, *k.entry, {}, [&lines](std::string_view text) { lines += text; });
    };
    std::string expected_lines;
    {
      observe_kit::Kernel k(c.text, c.arguments);
      Trace trace = trace_into(k, expected_lines);
      REQUIRE(k.run({&trace}));
      CHECK_FALSE(expected_lines.empty());
    }
    uint64_t shared = 0;
    for (int i = 0; i < kIsas && static_cast<Isa>(i) <= best_isa(); ++i) {
      const IsaScope scope(static_cast<Isa>(i));
      observe_kit::Kernel k(c.text, c.arguments);
      std::vector<std::vector<uint8_t>> initial;
      for (const auto& b : k.args.buffers) initial.emplace_back(b.memory.data(), b.memory.data() + b.memory.size());
      for (const unsigned threads : {1u, 2u, 3u, 8u})
        for (const Watch watch : {Watch::None, Watch::Step, Watch::Check, Watch::Trace})
          for (const bool around_caches : {false, true}) {
            if (around_caches && watch != Watch::None) continue;  // single steps never are
            CAPTURE(i);
            CAPTURE(threads);
            CAPTURE(static_cast<int>(watch));
            CAPTURE(around_caches);
            for (size_t b = 0; b < initial.size(); ++b) std::copy(initial[b].begin(), initial[b].end(), k.args.buffers[b].memory.data());
            Watcher watcher;
            std::string lines;
            Trace trace = trace_into(k, lines);
            const auto checker = make_checker(k.module, {});
            RunOptions options;
            options.threads = threads;
            options.around_caches = around_caches;
            if (watch == Watch::Step) options.observers = {&watcher};
            if (watch == Watch::Check) options.observers = {checker.get()};
            if (watch == Watch::Trace) options.observers = {&trace};
            const auto stats = k.device->launch(*k.entry, {1, 1, 1}, k.args, options, k.diags);
            INFO(render(k.diags));
            REQUIRE(stats);
            if (watch == Watch::Trace) REQUIRE(lines == expected_lines);
            if (threads > 1) shared += stats->shared_steps;
            if (threads == 1) CHECK(stats->shared_steps == 0);
            const auto& memory = k.args.buffers[2].memory;
            REQUIRE(memory.size() == expected.size());
            REQUIRE(std::memcmp(memory.data(), expected.data(), memory.size()) == 0);
          }
    }
    const auto again = [&c]() -> uint64_t {
      observe_kit::Kernel k(c.text, c.arguments);
      RunOptions options;
      options.threads = 8;
      const auto stats = k.device->launch(*k.entry, {1, 1, 1}, k.args, options, k.diags);
      REQUIRE(stats);
      return stats->shared_steps;
    };
    CHECK((shared > 0 || until_helped(again) > 0));
  }
}

TEST_CASE("a few blocks are helped by the threads that have none") {
  // Three blocks, each a band of 256 rows, long enough for a helper to come.
  const std::string text =
      "!array = !cuda_tile.tensor_view<768x256xf32, strides=[256,1]>\n!view = !cuda_tile.partition_view<tile=(256x256), !array>\n!tile = !cuda_tile.tile<256x256xf32>\n"
      "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>) {\n  %zero = constant <i32: 0> : tile<i32>\n  %one = constant <i32: 1> : tile<i32>\n  %n = constant <i32: 20> : tile<i32>\n"
      "  %c = constant <f32: 0.5> : !tile\n  %i, %j, %k = get_tile_block_id : tile<i32>\n  %v = make_tensor_view %x, shape = [768, 256], strides = [256, 1] : !array\n"
      "  %p = make_partition_view %v : !view\n  %a, %t0 = load_view_tko weak %p[%i, %zero] : !view, tile<i32> -> !tile, token\n"
      "  %r = for %s in (%zero to %n, step %one) : tile<i32> iter_values(%u = %a) -> (!tile) {\n    %e = exp %u : !tile\n    %f = mulf %e, %c : !tile\n    %g = subf %f, %c : !tile\n    continue %g : !tile\n  }\n"
      "  %t1 = store_view_tko weak %r, %p[%i, %zero] : !tile, !view, tile<i32> -> token\n  return\n } }\n";
  const std::vector<std::string> arguments = {"ptr:f32[196608]=normal(seed=1)"};
  observe_kit::Kernel reference(text, arguments);
  REQUIRE(reference.run({}, {3, 1, 1}));
  const auto launch = [&](unsigned threads) -> uint64_t {
    CAPTURE(threads);
    observe_kit::Kernel k(text, arguments);
    RunOptions options;
    options.threads = threads;
    const auto stats = k.device->launch(*k.entry, {3, 1, 1}, k.args, options, k.diags);
    REQUIRE(stats);
    CHECK(stats->blocks == 3);
    CHECK(stats->threads == std::min(threads, 3u));
    REQUIRE(std::memcmp(k.args.buffers[0].memory.data(), reference.args.buffers[0].memory.data(), reference.args.buffers[0].memory.size()) == 0);
    return stats->shared_steps;
  };
  uint64_t shared = 0;
  for (const unsigned threads : {2u, 3u, 4u, 8u})
    for (int round = 0; round < 4; ++round) shared += launch(threads);
  CHECK((shared > 0 || until_helped([&] { return launch(8); }) > 0));
}

TEST_CASE("each piece of shared work is done once, whoever comes and goes") {
  constexpr unsigned kRunners = 2, kHelpers = 3;
  constexpr size_t kPieces = 37;
  Team team(kRunners, kRunners + kHelpers);
  std::atomic<bool> wrong{false};
  std::atomic<uint64_t> by_helpers{0};
  std::byte own{}, other{};
  struct Work {
    std::atomic<int> done[kPieces];
    std::atomic<uint64_t>* by_helpers;
    const std::byte* own;
  };
  const auto runner = [&](unsigned number) {
    team.enter();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int round = 0; round < 2000 || (by_helpers == 0 && std::chrono::steady_clock::now() < until); ++round) {
      Work work{};
      work.by_helpers = &by_helpers;
      work.own = &own;
      team.share(
          number, kPieces,
          [](const void* p, size_t k, std::byte* scratch) {
            Work& w = *const_cast<Work*>(static_cast<const Work*>(p));
            ++w.done[k];
            if (scratch != w.own) ++*w.by_helpers;
          },
          &work, &own);
      for (const auto& n : work.done)
        if (n != 1) wrong = true;
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // helpers fall asleep
    }
    team.leave();
  };
  std::vector<std::thread> threads;
  for (unsigned h = 0; h < kHelpers; ++h) threads.emplace_back([&, h] { team.help(kRunners + h, &other); });
  for (unsigned r = 0; r < kRunners; ++r) threads.emplace_back([&, r] { runner(r); });
  for (std::thread& t : threads) t.join();
  CHECK_FALSE(wrong);
  CHECK(by_helpers > 0);
  CHECK(team.shared() > 0);
}
