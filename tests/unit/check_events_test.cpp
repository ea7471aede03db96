// What checkers are told at once against what they would be told one by one: accesses of a step, and margins of marks.
#include <cstring>
#include <map>
#include <random>

#include "tests/unit/observe_kit.h"
#include "vm/interp/check_part.h"
#include "vm/interp/check_undef.h"

namespace {

using namespace tile;
using Spot = std::pair<size_t, uint64_t>;  // element of the tile, address

/// Notes the elements of every access.
struct Listener : Observer {
  const bool at_once;
  size_t boxes = 0, lists = 0;
  std::map<std::pair<InstId, MemoryAccess::Kind>, std::map<Spot, int>> seen;
  explicit Listener(bool at_once) : at_once(at_once) {}
  bool takes_runs() const override { return at_once; }
  void access(Exec&, const Step& s, const MemoryAccess& a) override {
    boxes += a.rank > 1 ? 1 : 0;
    for_each_element_of(a, [&](size_t element, uint64_t address) { ++seen[{s.inst, a.kind}][{element, address}]; });
  }
  bool accesses(Exec&, const Step& s, const MemoryRuns& all) override {
    if (!at_once) return false;
    ++lists;
    size_t elements = 0;
    for (const MemoryRuns::Run& r : all.runs)
      for (uint32_t k = 0; k < r.n; ++k, ++elements) {
        const uint64_t address = r.address + uint64_t{k} * all.element_bytes;
        CHECK(address >= all.begin);
        CHECK(address + all.element_bytes <= all.end);
        ++seen[{s.inst, all.kind}][{r.first + k, address}];
      }
    CHECK(elements == all.elements);
    return true;
  }
};

}  // namespace

TEST_CASE("check: accesses told at once are those told one by one") {
  const std::string text = R"(!table = !cuda_tile.tensor_view<64x32xf32, strides=[?,1]>
!rows = !cuda_tile.gather_scatter_view<tile=(16x16), !table, sparse_dim=0>
!columns = !cuda_tile.gather_scatter_view<tile=(16x16), !table, sparse_dim=1>
!boxes = !cuda_tile.partition_view<tile=(16x16), !table>
cuda_tile.module @m { entry @k(%a: tile<ptr<f32>>, %index: tile<ptr<i32>>, %mask: tile<ptr<i32>>, %r: tile<i32>, %c: tile<i32>, %stride: tile<i32>) {
  %lane = iota : tile<256xi32>
  %i1 = reshape %index : tile<ptr<i32>> -> tile<1xptr<i32>>
  %ib = broadcast %i1 : tile<1xptr<i32>> -> tile<256xptr<i32>>
  %ip = offset %ib, %lane : tile<256xptr<i32>>, tile<256xi32> -> tile<256xptr<i32>>
  %w, %t0 = load_ptr_tko weak %ip : tile<256xptr<i32>> -> tile<256xi32>, token
  %m1 = reshape %mask : tile<ptr<i32>> -> tile<1xptr<i32>>
  %mb = broadcast %m1 : tile<1xptr<i32>> -> tile<256xptr<i32>>
  %mp = offset %mb, %lane : tile<256xptr<i32>>, tile<256xi32> -> tile<256xptr<i32>>
  %mv, %t1 = load_ptr_tko weak %mp : tile<256xptr<i32>> -> tile<256xi32>, token
  %none = constant <i32: 0> : tile<256xi32>
  %m = cmpi not_equal %mv, %none, signed : tile<256xi32> -> tile<256xi1>
  %a1 = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
  %ab = broadcast %a1 : tile<1xptr<f32>> -> tile<256xptr<f32>>
  %p = offset %ab, %w : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
  %v, %t2 = load_ptr_tko weak %p, %m : tile<256xptr<f32>>, tile<256xi1> -> tile<256xf32>, token
  %t3 = store_ptr_tko weak %p, %v, %m token=%t2 : tile<256xptr<f32>>, tile<256xf32>, tile<256xi1> -> token
  %old, %t4 = atomic_rmw_tko relaxed device %p, addf, %v, %m token=%t3 : tile<256xptr<f32>>, tile<256xf32>, tile<256xi1> -> tile<256xf32>, token
  %tv = make_tensor_view %a, shape = [64, 32], strides = [%stride, 1] : tile<i32> -> !table
  %rows = make_gather_scatter_view %tv : !rows
  %columns = make_gather_scatter_view %tv : !columns
  %boxes = make_partition_view %tv : !boxes
  %zero = constant <i32: 0> : tile<i32>
  %which = extract %w[%zero] : tile<256xi32> -> tile<16xi32>
  %x0, %u0 = load_view_tko weak %rows[%which, %c] token=%t4 : !rows, tile<16xi32>, tile<i32> -> tile<16x16xf32>, token
  %u1 = store_view_tko weak %x0, %rows[%which, %c] token=%u0 : tile<16x16xf32>, !rows, tile<16xi32>, tile<i32> -> token
  %x1, %u2 = load_view_tko weak %columns[%r, %which] token=%u1 : !columns, tile<i32>, tile<16xi32> -> tile<16x16xf32>, token
  %u3 = store_view_tko weak %x1, %columns[%r, %which] token=%u2 : tile<16x16xf32>, !columns, tile<i32>, tile<16xi32> -> token
  %u4 = atomic_red_view_tko relaxed device %boxes[%r, %c], addf, %x1 token=%u3 : tile<16x16xf32>, !boxes, tile<i32> -> token
  return
} })";
  std::mt19937 random(5);
  size_t boxes = 0, lists = 0;
  for (int round = 0; round < 200; ++round) {
    const int stride = random() % 2 ? 32 : 40;
    const std::vector<std::string> arguments = {"ptr:f32[4096]=normal(seed=1)", "ptr:i32[256]=zeros",
                                                "ptr:i32[256]=zeros", "i32:" + std::to_string(random() % 4),
                                                "i32:" + std::to_string(random() % 2), "i32:" + std::to_string(stride)};
    std::vector<int32_t> index(256), mask(256);
    const int form = static_cast<int>(random() % 6), rows = 1 + static_cast<int>(random() % 16), columns = 1 + static_cast<int>(random() % 16);
    const int first = static_cast<int>(random() % 64), far = 1 + static_cast<int>(random() % 70), near = 1 + static_cast<int>(random() % 40);
    for (int k = 0; k < 256; ++k) {
      const int i = k / 16, j = k % 16;
      const int forms[] = {first + k,  // neighbours, rows, columns, two steps of any length, all the same, at random
                           first + i * far + j, first + j * far + i, first + i * far + j * near, first, static_cast<int>(random() % 2000)};
      index[static_cast<size_t>(k)] = forms[form];
      mask[static_cast<size_t>(k)] = random() % 4 == 0 && form == 5 ? 0 : i < rows && j < columns;
    }
    if (round % 3 == 0) std::fill(mask.begin(), mask.end(), 1);
    std::vector<std::map<std::pair<InstId, MemoryAccess::Kind>, std::map<Spot, int>>> seen;
    std::vector<std::vector<unsigned char>> after;
    for (const bool at_once : {false, true}) {
      observe_kit::Kernel kernel(text, arguments);
      std::memcpy(kernel.args.buffers[1].memory.data(), index.data(), 1024);
      std::memcpy(kernel.args.buffers[2].memory.data(), mask.data(), 1024);
      Listener listener(at_once);
      REQUIRE(kernel.run({&listener}));
      boxes += listener.at_once ? listener.boxes : 0;
      lists += listener.lists;
      seen.push_back(std::move(listener.seen));
      const auto& memory = kernel.args.buffers[0].memory;
      after.emplace_back(memory.data(), memory.data() + memory.size());
    }
    CAPTURE(round);
    CAPTURE(form);
    REQUIRE(seen[0].size() >= 5);
    REQUIRE(seen[0] == seen[1]);
    REQUIRE(after[0] == after[1]);
  }
  CHECK(boxes > 400);
  CHECK(lists > 400);
}

namespace {

/// Gives operations margins at random and compares what comes out with what comes out of one mark for each element.
struct MarginProbe : Observer {
  std::unique_ptr<CheckFacts> facts;
  std::unique_ptr<UndefFlow> flow;
  std::shared_ptr<const ValidModule> module;
  std::mt19937 random{23};
  std::map<Opcode, size_t> compact, compared;
  void launch_begin(const Launch& launch) override {
    facts = std::make_unique<CheckFacts>(module, *launch.plan);
    flow = std::make_unique<UndefFlow>(*facts);
  }
  void before(Exec& x, const Step& s) override {
    const InstId i = s.inst;
    const auto operands = facts->operands(i);
    if (facts->op(i).in_body || facts->op(i).memory || facts->f.insts[i].result_count == 0 || operands.empty() || !facts->is_tile(facts->f.result(i)) ||
        facts->count(facts->f.result(i)) == 1)
      return;
    for (int round = 0; round < 200; ++round) {
      std::vector<Marks> margins(facts->f.value_types.size()), dense = margins;
      for (const ValueId v : operands) {
        const auto& shape = facts->type(v).shape;
        for (size_t n = random() % 3; n-- > 0 && !shape.empty();) {
          const uint32_t dim = static_cast<uint32_t>(random() % shape.size()), extent = static_cast<uint32_t>(shape[dim]);
          REQUIRE(margins[v].add({dim, random() % 6 == 0 ? 0 : static_cast<uint32_t>(random() % extent), 1 + static_cast<Mark>(random() % 5)}));
        }
        if (margins[v]) dense[v] = Marks(margins[v].dense(shape));
      }
      const Marks one = flow->result(x, i, margins), other = flow->result(x, i, dense);
      const auto& shape = facts->type(facts->f.result(i)).shape;
      REQUIRE(static_cast<bool>(one) == static_cast<bool>(other));
      if (!one) continue;
      const DenseMarks l = one.dense(shape), r = other.dense(shape);
      CAPTURE(facts->f.def(i).name);
      REQUIRE(*l == *r);
      ++compared[facts->f.insts[i].op];
      if (!one.is_dense()) ++compact[facts->f.insts[i].op];
    }
  }
};

}  // namespace

TEST_CASE("check: margins of marks agree with one mark for each element") {
  const std::string text = R"(cuda_tile.module @m { entry @k(%out: tile<ptr<f32>>) {
  %a = constant <f32: 1.5> : tile<2x8x4xf32>
  %b = constant <f32: 0.5> : tile<2x4x16xf32>
  %c = constant <f32: 0.25> : tile<2x8x16xf32>
  %d = mmaf %a, %b, %c : tile<2x8x4xf32>, tile<2x4x16xf32>, tile<2x8x16xf32>
  %e = addf %d, %c : tile<2x8x16xf32>
  %f = fma %e, %d, %c : tile<2x8x16xf32>
  %g = permute %f [2, 0, 1] : tile<2x8x16xf32> -> tile<16x2x8xf32>
  %h = reduce %f dim=1 identities=[0.0 : f32] : tile<2x8x16xf32> -> tile<2x16xf32>
  (%l: tile<f32>, %r: tile<f32>) {
    %s = addf %l, %r : tile<f32>
    yield %s : tile<f32>
  }
  %i = scan %f dim=2 reverse=false identities=[0.0 : f32] : tile<2x8x16xf32> -> tile<2x8x16xf32>
  (%l: tile<f32>, %r: tile<f32>) {
    %s = addf %l, %r : tile<f32>
    yield %s : tile<f32>
  }
  %j = scan %i dim=0 reverse=true identities=[0.0 : f32] : tile<2x8x16xf32> -> tile<2x8x16xf32>
  (%l: tile<f32>, %r: tile<f32>) {
    %s = addf %l, %r : tile<f32>
    yield %s : tile<f32>
  }
  %k = reshape %h : tile<2x16xf32> -> tile<2x1x16xf32>
  %n = broadcast %k : tile<2x1x16xf32> -> tile<2x8x16xf32>
  %o = cmpf greater_than ordered %n, %j : tile<2x8x16xf32> -> tile<2x8x16xi1>
  %p = select %o, %n, %j : tile<2x8x16xi1>, tile<2x8x16xf32>
  %q = ftoi %p signed rounding<nearest_int_to_zero> : tile<2x8x16xf32> -> tile<2x8x16xi32>
  %t = divi %q, %q signed : tile<2x8x16xi32>
  %u = muli %t, %q : tile<2x8x16xi32>
  return
} })";
  observe_kit::Kernel kernel(text, {"ptr:f32[16]=zeros"});
  MarginProbe probe;
  probe.module = kernel.module;
  REQUIRE(kernel.run({&probe}));
  INFO(render(kernel.diags));
  for (const Opcode op : {Opcode::MmaF, Opcode::AddF, Opcode::Fma, Opcode::Permute, Opcode::Reduce, Opcode::Scan, Opcode::Broadcast, Opcode::CmpF}) {
    CAPTURE(static_cast<int>(op));
    CHECK(probe.compact[op] > 20);
  }
  for (const Opcode op : {Opcode::Select, Opcode::MulI, Opcode::DivI}) CHECK(probe.compared[op] > 20);
}
