// Running one job and reporting on it.
#include "tools/cli_launch.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "tools/cli_compare.h"
#include "tools/cli_explore.h"
#include "tools/cli_files.h"
#include "tools/cli_stop.h"
#include "tools/cli_writer.h"
#include "vm/base/numeric.h"
#include "vm/runtime/atomic_file.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/atomic_file.h"
#include "vm/runtime/bundle.h"
#include "vm/runtime/device.h"
#include "vm/runtime/npy.h"

namespace tile::cli {
namespace {

/// "50 s", "2 min 05 s", "3 h 20 min"
std::string time_text(double seconds) {
  char buffer[48];
  const double s = std::ceil(seconds);
  if (s < 120) {
    std::snprintf(buffer, sizeof buffer, "%.0f s", s);
  } else if (s < 7200) {
    std::snprintf(buffer, sizeof buffer, "%.0f min %02.0f s", std::floor(s / 60), std::fmod(s, 60));
  } else {
    std::snprintf(buffer, sizeof buffer, "%.0f h %02.0f min", std::floor(s / 3600), std::floor(std::fmod(s, 3600) / 60));
  }
  return buffer;
}

/// A line on a terminal that says how far a long grid is; silent elsewhere and on short runs. Its members are never called together: the
/// machine does not say how far it is while it prints.
class Progress {
 public:
  explicit Progress(bool enabled) : enabled_(enabled && is_terminal(STDERR_FILENO)) {}
  ~Progress() { clear(); }
  /// Before something else is printed.
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }
  void update(uint64_t done, uint64_t total) {
    note_progress(done, total);
    const auto now = std::chrono::steady_clock::now();
    if (done < done_) start_ = now;  // another launch has begun
    done_ = done;
    // Of several launches, whole ones are counted once there are any.
    if (ended_ > 0) return show("launch", "launches", ended_, launches_, now, first_);
    show("block", "blocks", done, total, now, start_);
  }
  /// Of several launches one more has ended.
  void ended(uint64_t launches, uint64_t total) {
    ended_ = launches;
    launches_ = total;
    show("launch", "launches", ended_, launches_, std::chrono::steady_clock::now(), first_);
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr double kFirst = 0.5, kBetween = 0.1;  // seconds

  void show(const char* one, const char* many, uint64_t done, uint64_t total, Time now, Time since) {
    const double elapsed = std::chrono::duration<double>(now - since).count();
    if (!enabled_ || elapsed < kFirst || std::chrono::duration<double>(now - last_).count() < kBetween) return;
    last_ = now;
    shown_ = true;
    const double rate = static_cast<double>(done) / elapsed;
    std::string text = std::string(one) + " " + std::to_string(done) + " of " + std::to_string(total);
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, rate < 10 ? ", %.2f %s/s, " : ", %.0f %s/s, ", rate, many);
    if (done > 0) text += numbers + time_text(static_cast<double>(total - done) / rate) + " left";
    std::fprintf(stderr, "\r\033[K%3.0f %%  %s", 100.0 * static_cast<double>(done) / static_cast<double>(total), text.c_str());
    std::fflush(stderr);
  }

  bool enabled_, shown_ = false;
  uint64_t done_ = 0, ended_ = 0, launches_ = 0;
  const Time first_ = std::chrono::steady_clock::now();
  Time start_ = first_, last_{};
};

std::string value_text(ElementType e, uint64_t bits) {
  char buffer[64];
  const ElementInfo& t = info(e);
  if (t.is_float) {
    std::snprintf(buffer, sizeof buffer, "%.9g", decode(e, bits));
  } else {
    const unsigned shift = 64 - t.bits;
    const int64_t value = e == ElementType::I1 ? static_cast<int64_t>(bits & 1) : static_cast<int64_t>(bits << shift) >> shift;
    std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(value));
  }
  return buffer;
}

/// "a: f32[2, 3] = 1, 2, 3, ..." with at most 64 elements.
std::string show_array(const std::string& label, const ArrayView& a) {
  constexpr int64_t kMost = 64;
  std::string out = label + ": " + show_array_type(a) + " =";
  for_each_element(a, [&](int64_t linear, int64_t position) {
    if (linear >= kMost) return;
    out += (linear ? ", " : " ") + value_text(a.type, load_bits(a.data, a.type, position));
  });
  if (a.count() > kMost) out += ", ... (" + std::to_string(a.count()) + " elements)";
  return out + "\n";
}

struct Outcome {
  Diagnostics diags;
  RunStats stats;
  std::string prints, shown, entry, replay, both, device = "cpu";
  FreedomChoice freedom;
  std::optional<Explored> explored;
  bool ran = false, expected_trap = false;
  size_t checks = 0;
  uint64_t launches = 0;  ///< of --repeat, that came to an end
};

bool only_differs(const Diagnostics& diags) {
  for (const Diagnostic& d : diags.all())
    if (d.code != Code::E0809 && code_info(d.code).cls != FailureClass::Warning) return false;
  return diags.has_errors();
}

/// What a launch starts from.
struct Input {
  std::shared_ptr<const ValidModule> module;
  const Function* entry = nullptr;
  LaunchArguments args;
};

Result<Input> prepare(const Job& job, Bundle* bundle, const LaunchSettings& s, const CommonOptions& common, Outcome& out) {
  Input in;
  Result<Module> module = [&]() -> Result<Module> {
    if (bundle) return decode_tilebc(bundle->kernel, job.file, out.diags);
    auto loaded = load_module(job.kernel_path(), out.diags);
    if (!loaded) return Failed;
    log(common, job.kernel_path() + ": " + kind_name(loaded->kind));
    return std::move(loaded->module);
  }();
  if (!module) return Failed;
  auto valid = validate(std::move(module.value()), out.diags);
  if (!valid) return Failed;
  in.module = std::make_shared<const ValidModule>(*std::move(valid));
  const auto entry = find_entry(**in.module, job.entry, out.diags);
  if (!entry) return Failed;
  in.entry = *entry;
  out.entry = (*in.module)->str(in.entry->name);
  const auto params = entry_params(**in.module, *in.entry);
  if (bundle) {
    if (!check_bundle(*bundle, params, out.diags)) return Failed;
    in.args = std::move(bundle->args);
    return in;
  }
  auto args = expand(job.args, params, {job.base_dir, out.entry, s.arrays}, out.diags);
  if (!args) return Failed;
  in.args = std::move(args.value());
  return in;
}

/// Says whether a repeated launch gave what the bundle recorded.
void compare_with_bundle(const Bundle& bundle, const BundleResult& now, Outcome& out) {
  if (!bundle.result) {
    out.replay = "the bundle has no results to compare with: its launch did not come to an end";
    return;
  }
  const BundleResult& then = *bundle.result;
  const auto differs = [&](const std::string& what) { (void)out.diags.error(Code::E0809, Place{}, "replay: " + what); };
  if (now.outcome != then.outcome) {
    differs("the launch ended with " + now.outcome + ", the recorded one with " + then.outcome);
    return;
  }
  if (now.outcome != "ok") {
    // Memory after a trap is unspecified; the same trap is the same result.
    out.diags.clear();
    out.replay = "the launch ended with " + now.outcome + ", as recorded";
    return;
  }
  for (size_t b = 0; b < now.outputs.size(); ++b) {
    if (now.outputs[b] == then.outputs[b]) continue;
    std::string name = "buffer " + std::to_string(b);
    for (size_t a = bundle.names.size(); a-- > 0;)
      if (bundle.args.bindings.size() > a && bundle.args.bindings[a].buffer == static_cast<int32_t>(b)) name = argument_label(a, bundle.names[a]);
    differs(name + " differs from the recorded result");
  }
  if (now.prints != then.prints) differs("the kernel printed other lines than the recorded launch");
  if (!out.diags.has_errors()) out.replay = "all outputs are bit-equal to the recorded ones";
}

/// The error that the time limit is.
Diagnostics time_limit_error(double seconds, const std::string& entry, const std::string& how_far) {
  Diagnostics diags;
  Place place;
  place.function = entry;
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g", seconds);
  (void)diags.error(Code::L0106, place, std::string("the launch takes longer than ") + limit + " s" + how_far, "raise --time-limit if it is meant to take this long");
  return diags;
}

/// Runs the launch on the interpreter too and reports every array in which the results differ.
void compare_with_cpu(const Job& job, const std::shared_ptr<const ValidModule>& module, const Function& entry, const LaunchArguments& got, LaunchArguments& reference,
                      RunOptions options, Outcome& out) {
  options.print = nullptr;
  const auto cpu = make_cpu_device(module, out.diags);
  if (!cpu || !(*cpu)->launch(entry, job.grid, reference, options, out.diags)) return;
  // A bundle's arguments are gone: expand() says so, and there is no note.
  const auto writer_note = [&](size_t buffer, int64_t position) -> std::optional<Note> {
    Diagnostics silent;
    auto again = expand(job.args, entry_params(**module, entry), {job.base_dir, out.entry, {}}, silent);
    if (!again) return std::nullopt;
    const auto writer = writer_of(module, entry, job.grid, *again, buffer, position, options);
    if (!writer) return Note{Place{}, "no block writes that element on the cpu"};
    const auto& [x, y, z] = writer->block;
    return Note{(**module).place(entry, writer->inst), "that element is written by block (" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")"};
  };
  compare_launches(job, got, reference, out.device + " against cpu", false, out.diags, writer_note);
  if (!out.diags.has_errors()) out.both = out.device + " and cpu agree in all arrays";
}

/// How far a launch came that was stopped, or how many of several.
std::string how_far(const Outcome& out, const Job& job, const LaunchSettings& s) {
  if (out.explored && out.explored->launches > 0) {
    const SeedChoice& seeds = *out.freedom.exploration();
    return "after " + std::to_string(out.explored->launches) + " of " + std::to_string(seeds.tries) + " seeds (" + std::to_string(seeds.seed) + " to " +
           std::to_string(seeds.seed + out.explored->launches - 1) + "), which gave the same result";
  }
  if (out.launches > 0) return "after " + std::to_string(out.launches) + " of " + std::to_string(s.repeat) + " launches";
  // Blocks that the stop cut short have been counted, one for each thread at most.
  const uint64_t done = out.stats.blocks > out.stats.threads ? out.stats.blocks - out.stats.threads : 0;
  return "after at least " + std::to_string(done) + " of " + std::to_string(uint64_t{job.grid[0]} * job.grid[1] * job.grid[2]) + " blocks";
}

BundleOptions bundle_options(const RunOptions& o, const CheckSettings& c) {
  return {o.threads, o.fuel, o.max_storage, c.checks, c.undef, c.undef_seed, c.uninitialised, o.schedule, o.order, o.numerics};
}

/// Whether every output can be written, as far as that shows now, to a file of its own that is not the kernel. U0001, E0902.
Status check_outputs(const Job& job, const LaunchSettings& s, Diagnostics& diags) {
  std::vector<std::pair<std::string, std::string>> files;  // what it is, path
  if (job.kernel != "-") files.emplace_back("the kernel", job.kernel_path());
  const size_t inputs = files.size();
  for (const OutSpec& o : job.outs) files.emplace_back("--out", path_in(job.base_dir, o.path));
  const ObserveSettings& w = s.observe;
  for (const auto& [name, path] : {std::pair{"--trace", &w.trace}, {"--profile", &w.profile}, {"--profile-trace", &w.profile_trace}, {"--access-map", &w.access_map}, {"--bundle", &w.bundle}})
    if (!path->empty() && *path != "-") files.emplace_back(name, *path);
  std::map<std::string, std::string> seen;  // by real path
  for (size_t k = 0; k < files.size(); ++k) {
    const auto& [name, path] = files[k];
    if (k >= inputs && !can_write_file(path, diags)) return Failed;
    std::error_code error;
    const std::filesystem::path real = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    if (error || (std::filesystem::exists(real, error) && !std::filesystem::is_regular_file(real, error))) continue;  // devices take everything
    if (const auto [at, added] = seen.emplace(real.string(), name); !added) {
      Place place;
      place.file = s.program;
      return diags.error(Code::U0001, place, name + " would write over " + (at->second == "the kernel" ? "the kernel" : "what " + at->second + " writes") + ": " + path,
                         "give each output a file of its own");
    }
  }
  return {};
}

void execute(const Job& job, Bundle* bundle, const LaunchSettings& s, const CommonOptions& common, Outcome& out) {
  auto input = prepare(job, bundle, s, common, out);
  if (!input) return;
  const auto& module = input->module;
  const auto& entry = input->entry;
  LaunchArguments* args = &input->args;
  if (bundle) bundle->args.bindings = args->bindings;  // names of arguments in messages
  auto device = s.make_device ? s.make_device(module, out.device, out.diags) : make_cpu_device(module, out.diags);
  if (!device) return;
  std::optional<LaunchArguments> reference;
  out.freedom = s.freedom.choice;
  out.freedom.complete(job.freedom);
  const FreedomChoice& freedom = out.freedom;
  if (!check_freedom_partners(freedom, {s.threads, s.repeat, static_cast<bool>(s.make_device), s.both, &s.observe}, out.diags)) return;

  RunOptions options;
  options.threads = s.threads ? s.threads : job.threads;
  if (freedom.order && options.threads == 0) options.threads = 1;
  freedom.apply(options);
  options.fuel = s.fuel;
  options.max_storage = s.max_memory;
  options.cancel = &stop_flag();
  const bool others_on_stderr = s.observe.trace == "-" || !s.observe.breaks.empty();
  Progress progress(!s.json && common.diagnostics == "text" && !others_on_stderr);
  options.print = [&](const std::string& text) {
    out.prints += text;
    if (!s.json && !freedom.explored()) {
      progress.clear();
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  };
  options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  std::vector<std::string> names;
  for (const ArgSpec& a : job.args) names.push_back(a.name);
  if (!check_outputs(job, s, out.diags)) return;
  Watch watch(s.observe, {module, entry, job.grid, names, args});
  if (!watch.begin(options, out.diags)) return;
  const auto checker = begin_checks(s.checks, job, module, *args, options, out.diags);
  if (!checker) return;
  if (s.make_device && !options.observers.empty()) {
    (void)out.diags.error(Code::E0808, Place{}, "only the reference interpreter can be watched or checked step by step", "run with --cpu");
    return;
  }

  std::optional<BundleWriter> writer;
  std::optional<BundleResult> result;
  if (!s.observe.bundle.empty()) {
    auto kernel = encode_tilebc(**module, out.diags);
    if (!kernel) return;
    auto captured = BundleWriter::capture(build_version(), out.entry, job.grid, bundle_options(options, s.checks), *std::move(kernel), job.args, *args, out.diags);
    if (!captured) return;
    writer = *std::move(captured);
    // Written before the launch too: a launch that does not end, or ends this program, is the one to be looked at.
    if (!writer->write(s.observe.bundle, nullptr, out.diags)) return;
  }
  fill_uninitialised(s.checks, job, *args);
  if (s.both && !(reference = copy_of(*args, "--both", out.diags))) return;
  {
    const Diagnostics words = time_limit_error(s.observe.time_limit, out.entry, "");
    const StopGuard guard(s.observe.time_limit, s.program, common.diagnostics == "json" ? render_json(words) : render(words));
    if (freedom.explored()) {
      out.explored = explore({job, *entry, **device, *args, options, freedom, s.check, out.prints, [&](uint64_t n, uint64_t of) { progress.ended(n, of); }}, out.diags);
      out.stats = out.explored->stats;
      out.ran = !out.explored->seed && !out.explored->expected_trap;
      out.expected_trap = out.explored->expected_trap;
    }
    for (unsigned r = 0; r < s.repeat && !stop_flag() && !freedom.explored(); ++r) {
      auto stats = (*device)->launch(*entry, job.grid, *args, options, out.diags);
      if (stats && (!out.ran || stats->seconds < out.stats.seconds)) out.stats = *stats;
      out.ran = out.ran || stats.ok();
      if (stats && !stop_flag()) progress.ended(++out.launches, s.repeat);
      if (r == 0 && !stop_flag() && (writer || bundle)) result = bundle_result(*args, out.prints, out.diags.first_error());
      if (!stats && r == 0 && s.make_device && !writer && !bundle && compiler_failed(out.diags))
        keep_for_replay(*module, out.entry, job, *args, bundle_options(options, {}), out.diags);
      if (!stats) break;
    }
  }
  progress.clear();
  if (stop_reason() == StopReason::TimeLimit && !out.diags.has_errors())
    (void)out.diags.error(*time_limit_error(s.observe.time_limit, out.entry, ", " + how_far(out, job, s)).first_error());
  Diagnostics written;
  (void)watch.end(out.ran && !out.diags.has_errors() && stop_reason() == StopReason::None, written);
  if (writer && result) (void)writer->write(s.observe.bundle, &*result, written);
  if (bundle && result) compare_with_bundle(*bundle, *result, out);
  for (const Diagnostic& d : written.all()) (void)out.diags.error(d);
  if (stop_reason() != StopReason::None) return;
  if (reference && out.ran && !out.diags.has_errors()) compare_with_cpu(job, module, *entry, *args, *reference, options, out);
  if (out.explored && !s.json) std::fwrite(out.prints.data(), 1, out.prints.size(), stdout);
  if (s.check && job.outcome && !out.explored) {
    const Diagnostic* first = out.diags.first_error();
    if (first && first->code == *job.outcome) {
      out.expected_trap = true;
      out.diags.clear();
    } else if (!first) {
      missing_trap(job, out.diags);
    }
  }
  // What a replay gives instead is worth a look.
  if (!out.ran || (out.diags.has_errors() && !(bundle && only_differs(out.diags)))) return;
  if (s.check && !out.expected_trap) {
    out.checks = job.expectations.size() + job.prints.size();
    (void)check_expectations(job, *args, out.diags);
    check_prints(job, out.prints, out.diags);
  }
  for (const std::string& word : s.show) {
    const auto at = find_argument(word, job.args, Place{}, out.diags);
    if (!at) return;
    const int32_t buffer = args->bindings[*at].buffer;
    if (buffer < 0) {
      (void)out.diags.error(Code::E0804, Place{}, "--show " + word + ": the argument is a scalar, expected an array");
      return;
    }
    out.shown += show_array(job.args[*at].name.empty() ? argument_label(*at, "") : job.args[*at].name, args->buffers[static_cast<size_t>(buffer)].view());
  }
  if (out.diags.has_errors() && !only_differs(out.diags)) return;
  if (!write_outs(job, *args, out.diags)) return;
  if (!s.dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(s.dump, error);
    for (size_t b = 0; b < args->buffers.size(); ++b) {
      ArrayView whole = args->buffers[b].view();
      const int64_t bits = info(whole.type).memory_bits;
      whole.shape = {static_cast<int64_t>(whole.size) * 8 / bits};
      whole.strides = {1};
      whole.offset = 0;
      if (!save_npy(s.dump + "/buffer_" + std::to_string(b) + ".npy", whole, out.diags)) return;
    }
  }
}

}  // namespace

namespace {

int run(const Job& job, Bundle* bundle, const LaunchSettings& settings, const CommonOptions& common) {
  Outcome out;
  execute(job, bundle, settings, common, out);
  int status = report(out.diags, common);
  if (only_differs(out.diags)) status = kDiffers;
  if (stop_reason() == StopReason::Interrupt || stop_reason() == StopReason::Quit) {
    std::fprintf(stderr, "%s: %s %s; no results were written\n", settings.program.c_str(), stop_reason() == StopReason::Quit ? "ended at the prompt" : "interrupted",
                 how_far(out, job, settings).c_str());
    return 130;
  }
  if (settings.json) {
    nlohmann::ordered_json j;
    j["entry"] = out.entry;
    j["grid"] = job.grid;
    j["device"] = out.device;
    if (out.freedom.schedule) j["schedule"] = show(*out.freedom.schedule);
    if (out.freedom.order) j["order"] = show(*out.freedom.order);
    if (out.freedom.numerics) j["numerics"] = numerics_name(*out.freedom.numerics);
    j["status"] = status;
    j["result"] = status == 0 ? "ok" : status == kDiffers ? "differs" : class_name(code_info(out.diags.first_error()->code).cls);
    if (out.expected_trap) j["expected_trap"] = code_info(*job.outcome).name;
    if (out.ran) {
      j["blocks"] = out.stats.blocks;
      j["steps"] = out.stats.steps;
      j["seconds"] = out.stats.seconds;
      j["threads"] = out.stats.threads;
      j["storage_bytes"] = out.stats.storage_bytes;
      if (settings.phases)
        for (const auto& [name, seconds] : *settings.phases) j["phases"][name] = seconds;
    }
    j["checks"] = out.checks;
    j["prints"] = out.prints;
    if (!out.shown.empty()) j["shown"] = out.shown;
    if (!out.replay.empty()) j["replay"] = out.replay;
    if (!out.both.empty()) j["both"] = out.both;
    if (out.explored) {
      j["explored"] = {{"launches", out.explored->launches}};
      if (out.explored->seed) j["explored"]["found"] = *out.explored->seed;
    }
    j["diagnostics"] = nlohmann::ordered_json::array();
    std::istringstream lines(render_json(out.diags));  // one object a line
    for (std::string line; std::getline(lines, line);) j["diagnostics"].push_back(nlohmann::ordered_json::parse(line, nullptr, false));
    const std::string text = j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::fwrite(out.shown.data(), 1, out.shown.size(), stdout);
    if (status == 0 && !out.replay.empty()) std::fprintf(stderr, "%s: %s\n", settings.program.c_str(), out.replay.c_str());
    if (status == 0 && !out.both.empty()) std::fprintf(stderr, "%s: %s\n", settings.program.c_str(), out.both.c_str());
    if (status == 0 && out.explored) std::fprintf(stderr, "%s: %s\n", settings.program.c_str(), explored_text(out.freedom, *out.explored).c_str());
    if (status == 0 && out.checks > 0) std::fprintf(stderr, "%s: %zu check%s passed\n", settings.program.c_str(), out.checks, out.checks == 1 ? "" : "s");
    if (settings.stats && out.ran)
      std::fprintf(stderr, "entry    %s\nblocks   %llu (%u x %u x %u)\nsteps    %llu\nthreads  %u\nstorage  %llu bytes a thread\ntime     %.6f s\n", out.entry.c_str(),
                   static_cast<unsigned long long>(out.stats.blocks), job.grid[0], job.grid[1], job.grid[2], static_cast<unsigned long long>(out.stats.steps),
                   out.stats.threads, static_cast<unsigned long long>(out.stats.storage_bytes), out.stats.seconds);
  }
  return status;
}

}  // namespace

bool compiler_failed(const Diagnostics& diags) {
  const Diagnostic* first = diags.first_error();
  return first && (first->code == Code::E0915 || first->code == Code::I0001 || first->subclass == "CompileTime" || first->subclass == "CompileMemory");
}

void keep_for_replay(const ValidModule& module, const std::string& entry, const Job& job, const LaunchArguments& args, const BundleOptions& options, Diagnostics& diags) {
  Diagnostics silent;
  auto kernel = encode_tilebc(*module, silent);
  if (!kernel) return;
  auto captured = BundleWriter::capture(build_version(), entry, job.grid, options, *std::move(kernel), job.args, args, silent);
  if (!captured) return;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* named = std::getenv("TMPDIR");
    folder = named && *named ? named : "/tmp";
  }
  const std::string path = (folder / ("tilevm-" + std::to_string(::getpid()) + ".tvb")).string();
  Diagnostics unwritten;
  const bool kept = captured->write(path, nullptr, unwritten).ok();
  const Diagnostic* why = unwritten.first_error();
  const std::string note = kept ? "tilevm replay " + path + " repeats it, with the same options" : "no bundle to replay: " + path + (why ? ": " + why->message : std::string());
  Diagnostics with_note;
  for (Diagnostic d : diags.all()) {
    if (code_info(d.code).cls == FailureClass::Warning) {
      with_note.warn(d.place, d.message);
      continue;
    }
    if (!with_note.has_errors()) d.notes.push_back({Place{}, note});
    (void)with_note.error(std::move(d));
  }
  diags = std::move(with_note);
}

int run_launch(const Job& job, const LaunchSettings& settings, const CommonOptions& common) { return run(job, nullptr, settings, common); }

int run_replay(const std::string& path, LaunchSettings settings, const CommonOptions& common) {
  Diagnostics diags;
  const auto bytes = read_file(path, diags);
  if (!bytes) return report(diags, common);
  auto bundle = read_bundle(*bytes, path, diags, settings.arrays);
  if (!bundle) return report(diags, common);
  log(common, path + ": written by tilevm " + bundle->version);
  Job job;
  job.file = path;
  job.entry = bundle->entry;
  job.grid = bundle->grid;
  job.threads = bundle->options.threads;
  for (const std::string& name : bundle->names) {
    ArgSpec a;
    a.name = name;
    job.args.push_back(std::move(a));
  }
  if (settings.fuel == 0) settings.fuel = bundle->options.fuel;
  if (settings.max_memory == 0) settings.max_memory = bundle->options.max_storage;
  const CheckSettings none;
  const BundleOptions& recorded = bundle->options;
  FreedomChoice then;
  if (recorded.schedule) then.schedule = SeedChoice{*recorded.schedule, 0};
  if (recorded.order) then.order = SeedChoice{*recorded.order, 0};
  if (recorded.numerics != Numerics::Exact) then.numerics = recorded.numerics;
  settings.freedom.choice.complete(then);
  if (settings.checks.checks.empty() && settings.checks.undef == none.undef && settings.checks.uninitialised.empty())
    settings.checks = {bundle->options.checks, bundle->options.undef, bundle->options.undef_seed, bundle->options.uninitialised};
  return run(job, &*bundle, settings, common);
}

}  // namespace tile::cli
