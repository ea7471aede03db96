// Reading, writing, validating and printing of modules, in instructions a second: a module of 200,000 instructions in
// 100 entries, with and without debug locations. `codec_bench --write FOLDER` writes its forms for other programs.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/atomic_file.h"

namespace {

constexpr int kEntries = 100, kRounds = 250;  // of 8 operations; the entries' returns come on top

void fail(const tile::Diagnostics& diags) {
  std::fputs(tile::render(diags).c_str(), stderr);
  std::exit(1);
}

/// Elementwise arithmetic, comparisons, constants, reductions and loads, each on a line of its own in the debug
/// information.
std::string text(bool locations) {
  std::string out;
  if (locations) out = "#f = #cuda_tile.di_file<\"k.py\" in \"/src\">\n#u = #cuda_tile.di_compile_unit<file = #f>\n";
  for (int e = 0; locations && e < kEntries; ++e) {
    const std::string n = std::to_string(e);
    out += "#s" + n + " = #cuda_tile.di_subprogram<file = #f, line = 1, name = \"k" + n + "\", linkageName = \"k" + n +
           "\", compileUnit = #u, scopeLine = 1>\n";
  }
  out += "cuda_tile.module @large {\n";
  int line = 0;
  std::string scope;
  const auto add = [&](std::string_view op) {
    out += "    ";
    out += op;
    if (locations) out += " loc(#cuda_tile.di_loc<loc(\"k.py\":" + std::to_string(++line) + ":5) in " + scope + ">)";
    out += "\n";
  };
  for (int e = 0; e < kEntries; ++e) {
    scope = "#s" + std::to_string(e);
    out += "  entry @k" + std::to_string(e) + "(%p: tile<ptr<f32>>, %n: tile<i32>) {\n";
    std::string x = "%n", f = "";
    for (int r = 0; r < kRounds; ++r) {
      const std::string n = std::to_string(r);
      add("%c" + n + " = constant <i32: " + std::to_string(r % 64) + "> : tile<i32>");
      add("%a" + n + " = addi " + x + ", %c" + n + " : tile<i32>");
      add("%m" + n + " = muli %a" + n + ", %n : tile<i32>");
      add("%o" + n + " = offset %p, %m" + n + " : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>");
      add("%l" + n + ", %t" + n + " = load_ptr_tko weak %o" + n + " : tile<ptr<f32>> -> tile<f32>, token");
      add("%f" + n + " = addf %l" + n + ", " + (f.empty() ? "%l" + n : f) + " rounding<nearest_even> : tile<f32>");
      add("%q" + n + " = cmpi less_than %m" + n + ", %n, signed : tile<i32> -> tile<i1>");
      add("%s" + n + " = select %q" + n + ", %a" + n + ", %m" + n + " : tile<i1>, tile<i32>");
      x = "%s" + n;
      f = "%f" + n;
    }
    add("return");
    out += "  }";
    if (locations) out += " loc(#cuda_tile.di_loc<loc(\"k.py\":1:1) in " + scope + ">)";
    out += "\n";
  }
  return out + "}\n";
}

struct Forms {
  std::string text;
  tile::Module module;
  std::vector<uint8_t> tilebc, tileirbc;
  int64_t instructions = 0;
};

tile::Module parse(const std::string& text) {
  tile::Diagnostics diags;
  auto module = tile::parse_text(std::make_shared<tile::Source>("large.tile", text), diags);
  if (!module) fail(diags);
  return *std::move(module);
}

const Forms& forms(bool locations) {
  static std::unique_ptr<Forms> made[2];
  std::unique_ptr<Forms>& f = made[locations];
  if (f) return *f;
  f = std::make_unique<Forms>();
  f->text = text(locations);
  tile::Diagnostics diags;
  const auto valid = tile::validate(parse(f->text), diags);
  if (!valid) fail(diags);
  f->module = **valid;
  for (const tile::Function& k : f->module.functions) f->instructions += static_cast<int64_t>(k.insts.size());
  const auto tilebc = tile::encode_tilebc(f->module, diags);
  const auto tileirbc = tile::write_tileirbc(f->module, tile::required_version(f->module), diags);
  if (!tilebc || !tileirbc) fail(diags);
  f->tilebc = *tilebc;
  f->tileirbc = *tileirbc;
  return *f;
}

void rate(benchmark::State& state) {
  state.counters["inst/s"] = benchmark::Counter(static_cast<double>(forms(state.range(0)).instructions),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void decode_tileirbc(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    const auto m = tile::read_tileirbc(f.tileirbc, "large", diags);
    if (!m) fail(diags);
    benchmark::DoNotOptimize(m->functions.data());
  }
  rate(state);
}

void decode_tilebc(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    const auto m = tile::decode_tilebc(f.tilebc, "large", diags);
    if (!m) fail(diags);
    benchmark::DoNotOptimize(m->functions.data());
  }
  rate(state);
}

void encode_tileirbc(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    benchmark::DoNotOptimize(tile::write_tileirbc(f.module, tile::required_version(f.module), diags)->data());
  }
  rate(state);
}

void encode_tilebc(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    benchmark::DoNotOptimize(tile::encode_tilebc(f.module, diags)->data());
  }
  rate(state);
}

void parse_text(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(parse(f.text).functions.data());
  rate(state);
}

/// Text to tileirbc without validating: what `tileasm as --no-validate --to tileirbc` does between its files.
void assemble(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    tile::Diagnostics diags;
    const tile::Module m = parse(f.text);
    benchmark::DoNotOptimize(tile::write_tileirbc(m, tile::required_version(m), diags)->data());
  }
  rate(state);
}

void validate(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    tile::Module m = f.module;
    state.ResumeTiming();
    tile::Diagnostics diags;
    auto valid = tile::validate(std::move(m), diags);
    if (!valid) fail(diags);
    state.PauseTiming();
    valid = tile::Failed;
    state.ResumeTiming();
  }
  rate(state);
}

void print_text(benchmark::State& state) {
  const Forms& f = forms(state.range(0));
  tile::PrintOptions options;
  options.debug_info = state.range(0) != 0;
  for (auto _ : state) benchmark::DoNotOptimize(tile::print_text(f.module, options).data());
  rate(state);
}

void both(benchmark::internal::Benchmark* b) {
  b->ArgName("locations")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK(decode_tileirbc)->Apply(both);
BENCHMARK(decode_tilebc)->Apply(both);
BENCHMARK(encode_tileirbc)->Apply(both);
BENCHMARK(encode_tilebc)->Apply(both);
BENCHMARK(parse_text)->Apply(both);
BENCHMARK(assemble)->Apply(both);
BENCHMARK(validate)->Apply(both);
BENCHMARK(print_text)->Apply(both);

void write(const std::string& folder, const std::string& name, std::span<const uint8_t> bytes) {
  tile::Diagnostics diags;
  if (!tile::write_file(folder + "/" + name, bytes, diags)) fail(diags);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--write") {
    for (const bool locations : {false, true}) {
      const Forms& f = forms(locations);
      const std::string name = locations ? "large_locations" : "large";
      write(argv[2], name + ".tile", {reinterpret_cast<const uint8_t*>(f.text.data()), f.text.size()});
      write(argv[2], name + ".tilebc", f.tilebc);
      write(argv[2], name + ".tileirbc", f.tileirbc);
    }
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
