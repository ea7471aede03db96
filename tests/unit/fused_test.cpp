// Groups of steps against the same steps one by one: random kernels over views of one array that overlap in all ways.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/unit/observe_kit.h"
#include "vm/interp/fused.h"
#include "vm/interp/isa/isa.h"
#include "vm/interp/plan.h"

namespace {

using namespace tile;

/// Watching is what makes a launch run step by step.
struct Watcher : Observer {};

constexpr int kRows = 16, kColumns = 256, kElements = 16384;

std::string tile_type(const char* element) { return "tile<" + std::to_string(kRows) + "x" + std::to_string(kColumns) + "x" + element + ">"; }

/// A kernel of random loads, stores and elementwise operations. The same seed gives the same kernel.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string text() {
    std::string t = "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>) {\n  %zero = constant <i32: 0> : tile<i32>\n  %one = constant <i32: 1> : tile<i32>\n"
                    "  %two = constant <i32: 2> : tile<i32>\n  %half = constant <f32: 0.5> : " + tile_type("f32") + "\n";
    for (int v = 0; v < 4; ++v) {
      const int offsets[] = {0, 0, 1, 16, 256, 2048, 4096};
      const int strides[] = {256, 256, 257, 512};
      const std::string n = std::to_string(v), stride = std::to_string(pick(strides));
      const std::string tensor = "tensor_view<16x256xf32, strides=[" + stride + ",1]>";
      types_[v] = "partition_view<tile=(16x256), " + tensor + ">";
      t += "  %o" + n + " = constant <i32: " + std::to_string(pick(offsets)) + "> : tile<i32>\n  %x" + n + " = offset %x, %o" + n +
           " : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n  %v" + n + " = make_tensor_view %x" + n + ", shape = [16, 256], strides = [" + stride + ", 1] : " + tensor +
           "\n  %p" + n + " = make_partition_view %v" + n + " : " + types_[v] + "\n";
    }
    tiles_ = {"%half"};
    t += body(6);
    if (below(2) == 0) {
      const std::string from = any();
      const std::string type = tile_type("f32");
      t += "  %loop = for %i in (%zero to %two, step %one) : tile<i32> iter_values(%carried = " + from + ") -> (" + type + ") {\n";
      const auto outside = tiles_;
      tiles_.push_back("%carried");
      t += body(8);
      t += "  continue " + any() + " : " + type + "\n  }\n";
      tiles_ = outside;
      tiles_.push_back("%loop");
    }
    t += body(6);
    return t + "  return\n } }\n";
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  template <size_t N>
  int pick(const int (&from)[N]) {
    return from[below(N)];
  }
  std::string any() { return tiles_[tiles_.size() - 1 - below(static_cast<unsigned>(std::min<size_t>(tiles_.size(), 5)))]; }
  std::string fresh() { return "%t" + std::to_string(next_++); }

  std::string body(int operations) {
    std::string t;
    const std::string f32 = tile_type("f32"), f16 = tile_type("f16"), i1 = tile_type("i1");
    for (int k = 0; k < operations; ++k) {
      const std::string r = fresh(), v = std::to_string(below(4)), access = "[%zero, %zero]";
      const std::string type = types_[v[0] - '0'];
      switch (below(10)) {
        case 0: case 1: case 2:
          t += "  " + r + ", %k" + std::to_string(next_++) + " = load_view_tko weak %p" + v + access + " : " + type + ", tile<i32> -> " + f32 + ", token\n";
          tiles_.push_back(r);
          break;
        case 3: case 4:
          t += "  %k" + std::to_string(next_++) + " = store_view_tko weak " + any() + ", %p" + v + access + " : " + f32 + ", " + type + ", tile<i32> -> token\n";
          break;
        case 5: {
          const std::string narrow = fresh();
          t += "  " + narrow + " = ftof " + any() + " : " + f32 + " -> " + f16 + "\n  " + r + " = ftof " + narrow + " : " + f16 + " -> " + f32 + "\n";
          tiles_.push_back(r);
          break;
        }
        case 6: {
          const std::string mask = fresh();
          t += "  " + mask + " = cmpf less_than ordered " + any() + ", " + any() + " : " + f32 + " -> " + i1 + "\n  " + r + " = select " + mask + ", " + any() + ", " + any() +
               " : " + i1 + ", " + f32 + "\n";
          tiles_.push_back(r);
          break;
        }
        case 7: {
          // A number, a row or a column, repeated.
          const int way = static_cast<int>(below(3));
          const std::string shape = way == 0 ? "1x1" : way == 1 ? "1x256" : "16x1", small = fresh(), index = fresh();
          t += "  " + index + " = constant <i32: 0> : tile<i32>\n  " + small + " = extract " + any() + "[" + index + ", " + index + "] : " + f32 + " -> tile<" + shape + "xf32>\n  " +
               r + " = broadcast " + small + " : tile<" + shape + "xf32> -> " + f32 + "\n";
          tiles_.push_back(r);
          break;
        }
        case 8: {
          // Sums or maxima of rows, repeated.
          const std::string row = fresh(), column = fresh(), n = std::to_string(next_++);
          t += "  " + row + " = reduce " + any() + " dim=1 identities=[0.0 : f32] : " + f32 + " -> tile<16xf32>\n  (%l" + n + ": tile<f32>, %m" + n + ": tile<f32>) {\n    %s" + n +
               (below(2) == 0 ? " = addf" : " = maxf") + " %l" + n + ", %m" + n + " : tile<f32>\n    yield %s" + n + " : tile<f32>\n  }\n  " + column + " = reshape " + row +
               " : tile<16xf32> -> tile<16x1xf32>\n  " + r + " = broadcast " + column + " : tile<16x1xf32> -> " + f32 + "\n";
          tiles_.push_back(r);
          break;
        }
        default: {
          const char* const names[] = {"addf", "subf", "mulf", "maxf"};
          t += "  " + r + " = " + names[below(4)] + " " + any() + ", " + any() + " : " + f32 + "\n";
          tiles_.push_back(r);
        }
      }
    }
    return t;
  }

  std::mt19937 random_;
  std::string types_[4];
  std::vector<std::string> tiles_;
  int next_ = 0;
};

}  // namespace

TEST_CASE("groups of steps give the memory that the steps give one by one") {
  size_t groups = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const std::string text = Writer(seed).text();
    CAPTURE(seed);
    CAPTURE(text);
    const std::vector<std::string> arguments = {"ptr:f32[" + std::to_string(kElements) + "]=normal(seed=" + std::to_string(seed) + ")"};
    observe_kit::Kernel together(text, arguments), apart(text, arguments), around(text, arguments);
    Watcher watcher;
    REQUIRE(together.run({}));
    REQUIRE(apart.run({&watcher}));
    RunOptions options;
    options.threads = 1;
    options.around_caches = true;
    REQUIRE(around.device->launch(*around.entry, {1, 1, 1}, around.args, options, around.diags));
    const auto &a = together.args.buffers[0].memory, &b = apart.args.buffers[0].memory, &c = around.args.buffers[0].memory;
    REQUIRE(a.size() == b.size());
    REQUIRE(std::memcmp(a.data(), b.data(), a.size()) == 0);
    REQUIRE(std::memcmp(c.data(), b.data(), c.size()) == 0);
    Diagnostics diags;
    const auto plan = Plan::make(together.module, *together.entry, diags);
    REQUIRE(plan);
    for (const Step& s : (*plan)->steps()) groups += s.fused != nullptr;
  }
  CHECK(groups > 400);  // the kernels are of the kind that is grouped
}

TEST_CASE("the ends of many blocks, put off and around the caches, give what the blocks give one by one") {
  struct Body {
    const char *element, *text;
  };
  const Body bodies[] = {
      {"f32", "  %r = addf %a, %b : !tile\n"},
      {"f32", "  %r = subf %a, %b : !tile\n"},
      {"f32", "  %r = mulf %a, %b rounding<zero> : !tile\n"},
      {"f64", "  %r = mulf %a, %b : !tile\n"},
      {"f64", "  %r = addf %a, %b : !tile\n"},
      {"f16", "  %r = addf %a, %b : !tile\n"},
      {"i32", "  %r = addi %a, %b : !tile\n"},
      {"f32", "  %c = mulf %a, %half : !tile\n  %r = subf %c, %b : !tile\n"},
      {"f32", "  %c = addf %a, %b : !tile\n  %tc = store_view_tko weak %c, %yp[%i] : !tile, !view, tile<i32> -> token\n  %r = mulf %c, %b : !tile\n"},
      {"i32", "  %r = reshape %a : !tile -> !tile\n"},
  };
  // The result lies `gap` elements behind the start of its array: at lines of the cache or not. With n = 50000 the last block has a border.
  const auto text = [](const Body& body, int gap, bool in_place) {
    const std::string e = body.element, number = e[0] == 'i' ? e + ": 1" : e + ": 0.5";
    std::string t = "!array = !cuda_tile.tensor_view<?x" + e + ", strides=[1]>\n!view = !cuda_tile.partition_view<tile=(512), !array>\n!tile = !cuda_tile.tile<512x" + e +
                    ">\n!p = !cuda_tile.tile<ptr<" + e + ">>\ncuda_tile.module @m {\n entry @k(%x: !p, %y: !p, %w: !p, %n: tile<i32>) {\n  %gap = constant <i32: " +
                    std::to_string(gap) + "> : tile<i32>\n  %half = constant <" + number + "> : !tile\n  %z = offset " + (in_place ? "%x" : "%w") +
                    ", %gap : !p, tile<i32> -> !p\n  %i, %j, %k = get_tile_block_id : tile<i32>\n";
    for (const std::string v : {"x", "y", "z"})
      t += "  %" + v + "v = make_tensor_view %" + v + ", shape = [%n], strides = [1] : tile<i32> -> !array\n  %" + v + "p = make_partition_view %" + v + "v : !view\n";
    return t + "  %a, %ta = load_view_tko weak %xp[%i] : !view, tile<i32> -> !tile, token\n  %b, %tb = load_view_tko weak %yp[%i] : !view, tile<i32> -> !tile, token\n" + body.text +
           "  %tz = store_view_tko weak %r, %zp[%i] : !tile, !view, tile<i32> -> token\n  return\n } }\n";
  };
  for (const Body& body : bodies)
    for (const int gap : {0, 1, 16})
      for (const bool in_place : {false, true})
        for (const char* n : {"i32:51200", "i32:50000"}) {
          if (in_place && gap != 0) continue;  // blocks would write what others read
          CAPTURE(body.text);
          CAPTURE(body.element);
          CAPTURE(gap);
          CAPTURE(in_place);
          const std::string array = std::string("ptr:") + body.element + "[51216]=", data = body.element[0] == 'i' ? "randint(lo=-100,hi=100,seed=" : "normal(seed=";
          const std::vector<std::string> arguments = {array + data + "1)", array + data + "2)", array + "zeros", n};
          observe_kit::Kernel apart(text(body, gap, in_place), arguments);
          Watcher watcher;
          INFO(render(apart.diags));
          REQUIRE(apart.run({&watcher}, {100, 1, 1}));
          for (int isa = 0; isa < kIsas && static_cast<Isa>(isa) <= best_isa(); ++isa) {
            observe_kit::Kernel together(text(body, gap, in_place), arguments);
            std::vector<std::vector<uint8_t>> initial;
            for (const auto& b : together.args.buffers) initial.emplace_back(b.memory.data(), b.memory.data() + b.memory.size());
            for (const unsigned threads : {1u, 3u})
              for (const bool around : {false, true}) {
                for (size_t b = 0; b < initial.size(); ++b) std::copy(initial[b].begin(), initial[b].end(), together.args.buffers[b].memory.data());
                force_isa(static_cast<Isa>(isa));
                RunOptions options;
                options.threads = threads;
                options.around_caches = around;
                const bool ok = together.device->launch(*together.entry, {100, 1, 1}, together.args, options, together.diags).ok();
                force_isa(best_isa());
                REQUIRE(ok);
                for (size_t k = 0; k < 3; ++k) {
                  const auto &a = together.args.buffers[k].memory, &b = apart.args.buffers[k].memory;
                  REQUIRE(std::memcmp(a.data(), b.data(), a.size()) == 0);
                }
              }
          }
        }
}

TEST_CASE("tiles of pointers in a row are moved as the pointers one by one") {
  // y[k + to] = x[k + from] + x[k] where the mask allows; all in one array, so that ranges overlap in all ways.
  const auto text = [](int from, int to, int limit) {
    const std::string p = "tile<1024xptr<f32>>", f = "tile<1024xf32>", n = "tile<1024xi32>";
    return "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>) {\n  %i = iota : " + n + "\n  %from = constant <i32: " + std::to_string(from) + "> : " + n +
           "\n  %to = constant <i32: " + std::to_string(to) + "> : " + n + "\n  %limit = constant <i32: " + std::to_string(limit) + "> : " + n +
           "\n  %x1 = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>\n  %xs = broadcast %x1 : tile<1xptr<f32>> -> " + p + "\n  %base = offset %xs, %i : " + p + ", " + n +
           " -> " + p + "\n  %ps = offset %base, %from : " + p + ", " + n + " -> " + p + "\n  %pd = offset %base, %to : " + p + ", " + n + " -> " + p +
           "\n  %mask = cmpi less_than %i, %limit, signed : " + n + " -> tile<1024xi1>\n  %a, %t0 = load_ptr_tko weak %ps, %mask : " + p + ", tile<1024xi1> -> " + f +
           ", token\n  %b, %t1 = load_ptr_tko weak %base : " + p + " -> " + f + ", token\n  %c = addf %a, %b : " + f + "\n  %t2 = store_ptr_tko weak %pd, %c, %mask : " + p +
           ", " + f + ", tile<1024xi1> -> token\n  return\n } }\n";
  };
  for (const int from : {0, 1, 17, 1024})
    for (const int to : {0, 1, 16, 17, 512, 1024, 2048})
      for (const int limit : {1024, 1000, 1, 0}) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(limit);
        observe_kit::Kernel together(text(from, to, limit), {"ptr:f32[3072]=normal(seed=1)"}), apart(text(from, to, limit), {"ptr:f32[3072]=normal(seed=1)"});
        Watcher watcher;
        REQUIRE(together.run({}));
        REQUIRE(apart.run({&watcher}));
        const auto &a = together.args.buffers[0].memory, &b = apart.args.buffers[0].memory;
        REQUIRE(std::memcmp(a.data(), b.data(), a.size()) == 0);
      }
}

TEST_CASE("rows of a gather and of a scatter are moved as their elements one by one") {
  const auto text = [](int sparse, int at) {
    const std::string pad = "padding_value = neg_inf, ", tensor = "tensor_view<40x24xf32, strides=[24,1]>", shape = sparse == 0 ? "32x8" : "8x32";
    const std::string view = "gather_scatter_view<tile=(" + shape + "), " + pad + tensor + ", sparse_dim=" + std::to_string(sparse) + ">";
    const std::string tile = "tile<" + shape + "xf32>", line = "partition_view<tile=(32), tensor_view<32xi32, strides=[1]>>";
    const std::string index = sparse == 0 ? "[%which, %at]" : "[%at, %which]", types = sparse == 0 ? "tile<32xi32>, tile<i32>" : "tile<i32>, tile<32xi32>";
    return "cuda_tile.module @m {\n entry @k(%x: tile<ptr<f32>>, %n: tile<ptr<i32>>, %y: tile<ptr<f32>>) {\n  %zero = constant <i32: 0> : tile<i32>\n  %at = constant <i32: " +
           std::to_string(at) + "> : tile<i32>\n  %xv = make_tensor_view %x, shape = [40, 24], strides = [24, 1] : " + tensor +
           "\n  %yv = make_tensor_view %y, shape = [40, 24], strides = [24, 1] : " + tensor + "\n  %nv = make_tensor_view %n, shape = [32], strides = [1] : " +
           "tensor_view<32xi32, strides=[1]>\n  %np = make_partition_view %nv : " + line + "\n  %xg = make_gather_scatter_view %xv : " + view +
           "\n  %yg = make_gather_scatter_view %yv : " + view + "\n  %which, %t0 = load_view_tko weak %np[%zero] : " + line +
           ", tile<i32> -> tile<32xi32>, token\n  %r, %t1 = load_view_tko weak %xg" + index + " : " + view + ", " + types + " -> " + tile +
           ", token\n  %t2 = store_view_tko weak %r, %yg" + index + " : " + tile + ", " + view + ", " + types + " -> token\n  return\n } }\n";
  };
  for (const int sparse : {0, 1})
    for (const int at : {0, 4, 17, 36, 40})
      for (const char* indices : {"randint(seed=1,hi=24)", "randint(seed=2,lo=-3,hi=60)", "arange", "full(5)", "full(1000)"}) {
        CAPTURE(sparse);
        CAPTURE(at);
        CAPTURE(indices);
        const std::vector<std::string> arguments = {"ptr:f32[960]=normal(seed=1)", std::string("ptr:i32[32]=") + indices, "ptr:f32[960]=zeros"};
        observe_kit::Kernel together(text(sparse, at), arguments), apart(text(sparse, at), arguments);
        Watcher watcher;
        REQUIRE(together.run({}));
        REQUIRE(apart.run({&watcher}));
        const auto &a = together.args.buffers[2].memory, &b = apart.args.buffers[2].memory;
        REQUIRE(std::memcmp(a.data(), b.data(), a.size()) == 0);
      }
}
