// Running one job and reporting on it.
#include "tools/cli_launch.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_files.h"
#include "vm/base/numeric.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/device.h"
#include "vm/runtime/npy.h"

namespace tile::cli {
namespace {

std::atomic<bool> interrupted{false};

void on_interrupt(int) { interrupted.store(true); }

/// While it lives, an interrupt stops the launch instead of the process.
class InterruptGuard {
 public:
  InterruptGuard() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// A line on a terminal that says how far a long grid is; silent elsewhere and on short runs.
class Progress {
 public:
  explicit Progress(bool enabled) : enabled_(enabled && is_terminal(STDERR_FILENO)) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void update(uint64_t done, uint64_t total) {
    if (!enabled_) return;
    const auto now = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    if (elapsed < 0.5 || std::chrono::duration<double>(now - last_).count() < 0.1) return;
    last_ = now;
    shown_ = true;
    const double rate = static_cast<double>(done) / elapsed;
    std::fprintf(stderr, "\r\033[K%3.0f %%  block %llu of %llu, %.0f blocks/s, %.0f s left", 100.0 * static_cast<double>(done) / static_cast<double>(total),
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(total), rate, static_cast<double>(total - done) / rate);
    std::fflush(stderr);
  }

 private:
  bool enabled_, shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_{};
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
  std::string prints, shown, entry;
  bool ran = false, expected_trap = false;
  size_t checks = 0;
};

bool only_differs(const Diagnostics& diags) {
  for (const Diagnostic& d : diags.all())
    if (d.code != Code::E0809 && code_info(d.code).cls != FailureClass::Warning) return false;
  return diags.has_errors();
}

/// The texts that the kernel had to print and did not.
void check_prints(const Job& job, const std::string& printed, Diagnostics& diags) {
  std::vector<std::string> lines;
  const auto split = [](const std::string& text, std::vector<std::string>& to) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      to.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  };
  split(printed, lines);
  std::vector<std::string> wanted;
  for (const std::string& text : job.prints) split(text, wanted);
  for (const std::string& line : wanted) {
    const auto it = std::find(lines.begin(), lines.end(), line);
    if (it == lines.end()) {
      Place place;
      place.file = job.file;
      (void)diags.error(Code::E0809, place, "the kernel did not print '" + line + "'");
    } else {
      lines.erase(it);
    }
  }
}

void execute(const Job& job, const LaunchSettings& s, const CommonOptions& common, Outcome& out) {
  auto loaded = load_module(job.kernel_path(), out.diags);
  if (!loaded) return;
  log(common, job.kernel_path() + ": " + kind_name(loaded->kind));
  auto valid = validate(std::move(loaded->module), out.diags);
  if (!valid) return;
  const auto module = std::make_shared<const ValidModule>(*std::move(valid));
  const auto entry = find_entry(**module, job.entry, out.diags);
  if (!entry) return;
  out.entry = (*module)->str((*entry)->name);
  const auto params = entry_params(**module, **entry);
  auto args = expand(job.args, params, {job.base_dir, out.entry, {}}, out.diags);
  if (!args) return;
  auto device = make_cpu_device(module, out.diags);
  if (!device) return;

  RunOptions options;
  options.threads = s.threads ? s.threads : job.threads;
  options.fuel = s.fuel;
  options.max_storage = s.max_memory;
  options.cancel = &interrupted;
  options.print = [&](const std::string& text) {
    out.prints += text;
    if (!s.json) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  };
  const InterruptGuard guard;
  Progress progress(!s.json && common.diagnostics == "text");
  options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  for (unsigned r = 0; r < s.repeat && !interrupted; ++r) {
    auto stats = (*device)->launch(**entry, job.grid, *args, options, out.diags);
    if (!stats) break;
    if (!out.ran || stats->seconds < out.stats.seconds) out.stats = *stats;
    out.ran = true;
  }
  if (interrupted) return;
  if (s.check && job.outcome) {
    const Diagnostic* first = out.diags.first_error();
    if (first && first->code == *job.outcome) {
      out.expected_trap = true;
      out.diags.clear();
    } else if (!first) {
      Place place;
      place.file = job.file;
      (void)out.diags.error(Code::E0809, place, std::string("the launch ended well, expected ") + code_info(*job.outcome).name + " (" + code_info(*job.outcome).meaning + ")");
    }
  }
  if (!out.ran || out.diags.has_errors()) return;
  if (s.check) {
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

int run_launch(const Job& job, const LaunchSettings& settings, const CommonOptions& common) {
  Outcome out;
  execute(job, settings, common, out);
  int status = report(out.diags, common);
  if (only_differs(out.diags)) status = kDiffers;
  if (interrupted) {
    std::fprintf(stderr, "%s: interrupted after %llu of %llu blocks; nothing was written\n", settings.program.c_str(),
                 static_cast<unsigned long long>(out.stats.blocks), static_cast<unsigned long long>(uint64_t{job.grid[0]} * job.grid[1] * job.grid[2]));
    return 130;
  }
  if (settings.json) {
    nlohmann::ordered_json j;
    j["entry"] = out.entry;
    j["grid"] = job.grid;
    j["status"] = status;
    j["result"] = status == 0 ? "ok" : status == kDiffers ? "differs" : class_name(code_info(out.diags.first_error()->code).cls);
    if (out.expected_trap) j["expected_trap"] = code_info(*job.outcome).name;
    if (out.ran) {
      j["blocks"] = out.stats.blocks;
      j["steps"] = out.stats.steps;
      j["seconds"] = out.stats.seconds;
      j["threads"] = out.stats.threads;
      j["storage_bytes"] = out.stats.storage_bytes;
    }
    j["checks"] = out.checks;
    j["prints"] = out.prints;
    if (!out.shown.empty()) j["shown"] = out.shown;
    j["diagnostics"] = nlohmann::ordered_json::parse(render_json(out.diags), nullptr, false);
    const std::string text = j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::fwrite(out.shown.data(), 1, out.shown.size(), stdout);
    if (status == 0 && out.checks > 0) std::fprintf(stderr, "%s: %zu check%s passed\n", settings.program.c_str(), out.checks, out.checks == 1 ? "" : "s");
    if (settings.stats && out.ran)
      std::fprintf(stderr, "entry    %s\nblocks   %llu (%u x %u x %u)\nsteps    %llu\nthreads  %u\nstorage  %llu bytes a thread\ntime     %.6f s\n", out.entry.c_str(),
                   static_cast<unsigned long long>(out.stats.blocks), job.grid[0], job.grid[1], job.grid[2], static_cast<unsigned long long>(out.stats.steps),
                   out.stats.threads, static_cast<unsigned long long>(out.stats.storage_bytes), out.stats.seconds);
  }
  return status;
}

}  // namespace tile::cli
