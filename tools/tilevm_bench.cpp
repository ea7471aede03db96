// tilevm bench: how long launches take on the GPU, next to a copy on the same device and, if asked for, another compiler's kernel.
#ifdef TILEVM_WITH_GPU

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "backend/device/work.h"
#include "backend/plan/cost.h"
#include "tools/cli_docs.h"
#include "tools/cli_files.h"
#include "tools/tilevm_gpu_parts.h"
#include "vm/base/numeric.h"

namespace tile::cli {
namespace {

using Json = nlohmann::ordered_json;

struct BenchLine {
  CommonOptions common;
  GpuSettings gpu;
  std::string kernel, entry, grid = "1", peer_cubin, peer_entry, peer_grid;
  std::vector<std::string> args;
  unsigned rounds = 0;
  double flops = 0, bytes = 0;
  bool json = false, no_flush = false, no_check = false;
};

constexpr char kFooter[] =
    "How it measures:\n"
    "  Clocks are warmed up by launches without pause. Then every round overwrites the L2 cache and times one launch by events of the\n"
    "  device; the peer's launch and a copy of memory follow in the same round. Shown are median, and 10th to 90th percentile.\n"
    "  GB/s counts every array of the arguments once, unless --bytes says how many bytes the kernel must move.\n"
    "  TFLOP/s stand beside those of a kernel that only multiplies, on registers, with the unit that the device has for the type of the\n"
    "  entry's first product; it is timed behind the other rounds.\n"
    "  For an entry with one product in one loop, a tile for each block, a model of waves of tiles (fitted to an H200) says what it expects,\n"
    "  and of which other tile it expects more than a tenth less time.\n"
    "  A peer is a cubin of another compiler that takes the same arguments as cuTile passes them and knows its number of threads.\n\n"
    "Examples:\n"
    "  tilevm bench add.tile --grid 4096 --arg ptr:f32[4194304]=normal --arg ptr:f32[4194304]=normal --arg ptr:f32[4194304]=zeros\n"
    "  tilevm bench job.json --rounds 50 --json\n"
    "  tilevm bench mm.tilebc --grid 512 --arg ... --peer-cubin mm.cubin --peer-entry matmul --flops 137438953472";

/// What the kernel's rates stand beside.
struct Ceilings {
  double copy = 0, mma = 0;  // bytes and operations a second; 0: not measured
};

Json as_json(const Timing& t) {
  return {{"rounds", t.seconds.size()}, {"median_s", t.median()}, {"p10_s", t.quantile(0.1)}, {"p90_s", t.quantile(0.9)}, {"best_s", t.quantile(0)}};
}

std::string time_text(double s) {
  char text[32];
  if (s < 1e-3)
    std::snprintf(text, sizeof text, "%.2f us", s * 1e6);
  else
    std::snprintf(text, sizeof text, "%.3f ms", s * 1e3);
  return text;
}

std::string row(const char* name, const Timing& t, double bytes, double flops, const Ceilings& most) {
  char text[256];
  std::snprintf(text, sizeof text, "%-7s %12s  (%s to %s)", name, time_text(t.median()).c_str(), time_text(t.quantile(0.1)).c_str(), time_text(t.quantile(0.9)).c_str());
  std::string out = text;
  if (bytes > 0 && t.median() > 0) {
    std::snprintf(text, sizeof text, "  %8.1f GB/s", bytes / t.median() * 1e-9);
    out += text;
    if (most.copy > 0) {
      std::snprintf(text, sizeof text, " (%.0f %% of a copy)", 100 * bytes / t.median() / most.copy);
      out += text;
    }
  }
  if (flops > 0 && t.median() > 0) {
    std::snprintf(text, sizeof text, "  %8.1f TFLOP/s", flops / t.median() * 1e-12);
    out += text;
    if (most.mma > 0) {
      std::snprintf(text, sizeof text, " (%.0f %% of the unit)", 100 * flops / t.median() / most.mma);
      out += text;
    }
  }
  return out + "\n";
}

Json as_json(const ProductGrid& g, unsigned multiprocessors) {
  return {{"rows", g.rows}, {"columns", g.columns}, {"tiles", g.tiles}, {"waves", (g.tiles + multiprocessors - 1) / multiprocessors}, {"us", expected_microseconds(g, multiprocessors)}};
}

std::string model_row(const ProductGrid& g, unsigned multiprocessors) {
  char text[256];
  std::snprintf(text, sizeof text, "model   %12s  for %llu tiles of %u x %u", time_text(expected_microseconds(g, multiprocessors) * 1e-6).c_str(),
                static_cast<unsigned long long>(g.tiles), g.rows, g.columns);
  std::string out = text;
  if (const auto other = better_tiles(g, multiprocessors)) {
    std::snprintf(text, sizeof text, "; %s for %llu of %u x %u", time_text(expected_microseconds(*other, multiprocessors) * 1e-6).c_str(),
                  static_cast<unsigned long long>(other->tiles), other->rows, other->columns);
    out += text;
  }
  return out + "\n";
}

Result<Job> read(const BenchLine& line, const CLI::App& app, Diagnostics& diags) {
  const std::string& path = line.kernel;
  if (path.ends_with(".json")) {
    auto job = path.ends_with("launch.json") ? read_launch_json(path, diags) : read_job(path, diags);
    if (job && !line.entry.empty()) job->entry = line.entry;
    if (job && app.count("--grid") > 0) {
      const auto grid = parse_grid(line.grid, diags);
      if (!grid) return Failed;
      job->grid = *grid;
    }
    return job;
  }
  Job job;
  job.kernel = path;
  job.entry = line.entry;
  const auto grid = parse_grid(line.grid, diags);
  auto specs = parse_args(line.args, diags);
  if (!grid || !specs) return Failed;
  job.grid = *grid;
  job.args = *std::move(specs);
  return job;
}

/// Says in which arrays the peer's results differ: largest difference, and the first element.
void compare_with_peer(const Job& job, const LaunchArguments& ours, const std::vector<std::vector<uint8_t>>& peer, Json& j, std::string& text, Diagnostics& diags) {
  j = Json::array();
  for (size_t b = 0; b < ours.buffers.size(); ++b) {
    std::string name = "buffer " + std::to_string(b);
    CompareRule rule;
    for (size_t a = job.args.size(); a-- > 0;) {
      if (ours.bindings[a].buffer != static_cast<int32_t>(b)) continue;
      name = argument_label(a, job.args[a].name);
      for (const Expectation& e : job.expectations)
        if (e.argument == a && !e.unchanged && !e.window && e.rule.kind != CompareRule::Kind::Bound) rule = e.rule;
    }
    const ArrayView view = ours.buffers[b].view();
    // Arrays that are the same in every byte need no rule; large inputs are.
    if (const auto& bytes = ours.buffers[b].memory; bytes.size() == peer[b].size() && (bytes.size() == 0 || std::memcmp(bytes.data(), peer[b].data(), bytes.size()) == 0)) {
      j.push_back({{"array", name}, {"equal", true}, {"different", 0}, {"elements", view.count()}, {"largest_difference", 0.0}});
      continue;
    }
    ArrayView other = view;
    other.data = peer[b].data();
    const auto result = compare(view, other, rule, nullptr, Place{}, diags);
    if (!result) return;
    double largest = 0, scale = 0;
    if (info(view.type).is_float)
      for_each_element(view, [&](int64_t, int64_t position) {
        const double x = decode(view.type, load_bits(view.data, view.type, position)), y = decode(view.type, load_bits(other.data, view.type, position));
        if (x - x == 0 && y - y == 0) {
          largest = std::max(largest, std::abs(x - y));
          scale = std::max(scale, std::abs(y));
        }
      });
    j.push_back({{"array", name}, {"equal", result->equal()}, {"different", result->different}, {"elements", result->elements}, {"largest_difference", largest}, {"largest_value", scale}});
    if (!result->equal()) {
      char more[96];
      std::snprintf(more, sizeof more, "; largest difference %.4g of largest value %.4g\n", largest, scale);
      text += "peer    " + name + ": " + show_report(*result, other, rule) + more;
    }
  }
  if (text.empty()) text = "peer    all arrays are equal\n";
}

}  // namespace

int bench_command(int argc, const char* const* argv) {
  BenchLine line;
  CLI::App app{"Time a kernel on the GPU", "tilevm bench"};
  use_help_text(app);
  app.footer(kFooter);
  app.add_option("KERNEL", line.kernel, "File with the kernel, or a job file (.json)")->required();
  app.add_option("--entry", line.entry, "Entry to run; may be left out if there is only one")->type_name("NAME");
  app.add_option("--grid", line.grid, "Tile blocks along x, y, z: X[,Y[,Z]]")->type_name("GRID")->capture_default_str();
  app.add_option("--arg", line.args, "An argument, as for tilevm")->type_name("ARG")->allow_extra_args(false);
  app.add_option("--rounds", line.rounds, "Timed rounds; 0: as many as take about half a second, 10 to 200")->type_name("N")->check(CLI::Range(0u, 100000u));
  app.add_flag("--no-flush", line.no_flush, "Leave the L2 cache as the launch before left it");
  app.add_option("--flops", line.flops, "Operations of one launch, for TFLOP/s; default: those of its matrix products")->type_name("N")->check(CLI::NonNegativeNumber);
  app.add_option("--bytes", line.bytes, "Bytes that one launch must move, for GB/s")->type_name("N")->check(CLI::NonNegativeNumber);
  app.add_option("--peer-cubin", line.peer_cubin, "Time this cubin too, in turn with ours, and compare its results")->type_name("FILE");
  app.add_option("--peer-grid", line.peer_grid, "Blocks of its launch; default: those of ours")->type_name("GRID");
  app.add_option("--peer-entry", line.peer_entry, "Its kernel; default: the name of ours")->type_name("NAME");
  app.add_flag("--json", line.json, "Print JSON");
  add_gpu_options(app, line.gpu);
  add_common_options(app, line.common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, line.common, status)) return status;
  if (line.gpu.gpu.empty()) line.gpu.gpu = "auto";
  if (line.gpu.emulate()) return usage_error("tilevm bench", "--gpu=emulate: times of the emulation say nothing of a GPU", line.common);
  LaunchSettings unused;
  if (status = finish_gpu(app, line.gpu, unused, "tilevm bench", line.common); status != 0) return status;

  Diagnostics diags;
  const auto work = [&]() -> Status {
    const auto job = read(line, app, diags);
    if (!job) return Failed;
    const auto picked = pick_entry(*job, line.common, diags);
    if (!picked) return Failed;
    const std::string entry((**picked->module).str(picked->entry->name));
    auto args = expand(job->args, entry_params(**picked->module, *picked->entry), {job->base_dir, entry, {}}, diags);
    if (!args) return Failed;
    BenchOptions options;
    options.rounds = line.rounds;
    options.flush = !line.no_flush;
    if (!line.peer_cubin.empty()) {
      auto bytes = read_input(line.peer_cubin, diags);
      if (!bytes) return Failed;
      // The driver takes other things, too, and no length.
      constexpr std::string_view kElf = "\177ELF";
      if (bytes->size() < 64 || !std::equal(kElf.begin(), kElf.end(), bytes->begin())) {
        Place place;
        place.file = line.peer_cubin;
        return diags.error(Code::E0901, place, "this is no cubin", "tileiras and ptxas write cubins");
      }
      options.peer_cubin = *std::move(bytes);
      if (!line.peer_grid.empty()) {
        const auto peer_grid = parse_grid(line.peer_grid, diags);
        if (!peer_grid) return Failed;
        options.peer_grid = *peer_grid;
      }
      options.peer_entry = line.peer_entry.empty() ? entry : line.peer_entry;
    }
    auto device = make_gpu_device(picked->module, gpu_options(line.gpu, picked->module, line.common), diags);
    if (!device) return Failed;
    const auto built = (*device)->build(*picked->entry, diags);
    if (!built) return Failed;
    const double compile_seconds = (*built)->seconds;
    const bool hit = (*built)->use == cuda::CacheUse::Hit;
    const auto result = (*device)->bench(*picked->entry, job->grid, *args, options, diags);
    if (!result) return Failed;
    double bytes = line.bytes;
    if (bytes == 0)
      for (const Array& a : args->buffers) bytes += static_cast<double>(a.memory.size());
    const double flops = line.flops > 0 ? line.flops : launch_flops(**picked->module, *picked->entry, job->grid, *args).value_or(0);
    const Ceilings most{result->copy.median() > 0 ? static_cast<double>(result->copy_bytes) / result->copy.median() : 0, result->mma.flops_per_second()};
    const double seconds = result->ours.median();
    const unsigned multiprocessors = (*device)->facts().sm_count;
    const auto model = (*built)->target == "sm_90a" && flops > 0 && multiprocessors > 0 ? product_grid(**picked->module, *picked->entry, job->grid, flops) : std::nullopt;
    Json peer_results;
    std::string peer_text;
    if (!result->peer_buffers.empty()) compare_with_peer(*job, *args, result->peer_buffers, peer_results, peer_text, diags);
    const double ratio = result->ours.median() > 0 ? result->peer.median() / result->ours.median() : 0;
    if (line.json) {
      Json j{{"entry", entry}, {"grid", job->grid}, {"device", (*device)->facts().name}, {"uuid", (*device)->facts().uuid}, {"target", (*built)->target},
             {"linker", (*built)->linker}, {"cached", hit}, {"compile_s", compile_seconds}, {"threads", result->threads}, {"registers", result->registers},
             {"local_bytes", result->local_bytes}, {"shared_bytes", result->shared_bytes}, {"flushed", options.flush}, {"bytes", bytes}, {"flops", flops},
             {"ours", as_json(result->ours)}, {"copy", as_json(result->copy)}, {"copy_bytes", result->copy_bytes}};
      if (most.copy > 0 && seconds > 0) j["of_copy"] = bytes / seconds / most.copy;
      if (most.mma > 0) {
        j["mma"] = as_json(result->mma.timing);
        j["mma"]["unit"] = result->mma.unit;
        j["mma"]["flops"] = result->mma.flops;
        j["mma"]["tflops"] = most.mma * 1e-12;
        if (flops > 0 && seconds > 0) j["of_mma"] = flops / seconds / most.mma;
      }
      if (model) {
        j["model"] = as_json(*model, multiprocessors);
        if (const auto other = better_tiles(*model, multiprocessors)) j["model"]["better"] = as_json(*other, multiprocessors);
      }
      if (!result->peer.seconds.empty()) {
        j["peer"] = as_json(result->peer);
        j["peer_over_ours"] = ratio;
        j["peer_results"] = peer_results;
      }
      const std::string text = j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      std::printf("%s on %s, %u x %u x %u blocks of %u threads, %u registers, %u bytes of shared memory%s\n", entry.c_str(), (*device)->facts().name.c_str(), job->grid[0], job->grid[1],
                  job->grid[2], result->threads, result->registers, result->shared_bytes, result->local_bytes > 0 ? (", " + std::to_string(result->local_bytes) + " bytes spilled a thread").c_str() : "");
      std::string text = row("ours", result->ours, bytes, flops, most);
      if (!result->peer.seconds.empty()) text += row("peer", result->peer, bytes, flops, most);
      text += row("copy", result->copy, static_cast<double>(result->copy_bytes), 0, {});
      if (most.mma > 0) {
        text += row("mma", result->mma.timing, 0, result->mma.flops, {});
        text.insert(text.size() - 1, "  " + result->mma.unit);
      }
      if (model) text += model_row(*model, multiprocessors);
      std::fwrite(text.data(), 1, text.size(), stdout);
      if (!result->peer.seconds.empty()) std::printf("ratio   %.3f times as fast as the peer\n%s", ratio, peer_text.c_str());
      std::printf("rounds  %zu, %s\n", result->ours.seconds.size(), options.flush ? "L2 flushed" : "L2 not flushed");
    }
    return {};
  };
  (void)work().ok();
  return report(diags, line.common);
}

}  // namespace tile::cli

#endif
