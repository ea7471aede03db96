// Making observers from options and writing what they saw.
#include "tools/cli_observe.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "tools/cli_break.h"
#include "tools/cli_files.h"
#include "tools/cli_profile.h"
#include "vm/interp/access_map.h"
#include "vm/interp/trace.h"

namespace tile::cli {
namespace {

constexpr size_t kMaxEvents = 500'000;  // of a profile trace; about 100 bytes each in the file

uint64_t linear_block(const Exec& x) {
  const Grid& g = x.launch.grid;
  return x.block[0] + uint64_t{g.x} * (x.block[1] + uint64_t{g.y} * x.block[2]);
}

/// Lines to a file as they come: what led to a fault or an endless loop is there afterwards.
class LineFile {
 public:
  ~LineFile() {
    if (owned_) ::close(fd_);
  }
  [[nodiscard]] Status open(const std::string& path, Diagnostics& diags) {
    path_ = path;
    if (path == "-") {
      fd_ = STDERR_FILENO;
      return {};
    }
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    owned_ = fd_ >= 0;
    return owned_ ? Status() : failed(errno, diags);
  }
  void write(std::string_view text) {
    while (!text.empty() && error_ == 0) {
      const ssize_t n = ::write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        error_ = errno;
        return;
      }
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  [[nodiscard]] Status finish(Diagnostics& diags) { return error_ == 0 ? Status() : failed(error_, diags); }

 private:
  Status failed(int error, Diagnostics& diags) {
    Place place;
    place.file = path_;
    return diags.error(Code::E0902, place, std::string("cannot write the trace: ") + std::strerror(error));
  }
  std::string path_;
  int fd_ = -1, error_ = 0;
  bool owned_ = false;
};

/// Holds prints back until all blocks with lower numbers have ended.
class OrderedPrints : public Observer {
 public:
  using Print = std::function<void(const std::string&)>;
  OrderedPrints(Print print, bool in_order, bool with_block)
      : print_(std::move(print)), in_order_(in_order), with_block_(with_block) {}

  void launch_begin(const Launch& launch) override {
    grid_ = launch.grid;
    next_ = 0;
  }
  void block_begin(Exec& x) override { current = linear_block(x); }
  void before(Exec& x, const Step&) override { current = linear_block(x); }  // interleaved blocks share a thread
  void block_end(Exec& x) override {
    if (!in_order_) return;
    const std::lock_guard lock(x.launch.mutex);
    ended_.insert(linear_block(x));
    while (!ended_.empty() && *ended_.begin() == next_) {
      ended_.erase(ended_.begin());
      flush_to(++next_);
    }
  }
  void launch_end(const Launch&) override {
    flush_to(UINT64_MAX);
    ended_.clear();
  }
  /// Called by the machine, one call at a time, from the thread that runs the block.
  void add(const std::string& text) {
    const std::string shown = with_block_ ? prefixed(text) : text;
    if (!in_order_ || current == next_) {
      print_(shown);
    } else {
      held_[current] += shown;
    }
  }

 private:
  std::string prefixed(const std::string& text) const {
    const std::string head = "[block " + std::to_string(current % grid_.x) + "," +
                             std::to_string(current / grid_.x % grid_.y) + "," +
                             std::to_string(current / grid_.x / grid_.y) + "] ";
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      out += head + text.substr(at, end - at);
      at = end;
    }
    return out;
  }
  // What a block held back also comes out once its turn begins, so that a long block does not keep its own prints.
  void flush_to(uint64_t last) {
    while (!held_.empty() && held_.begin()->first <= last) {
      print_(held_.begin()->second);
      held_.erase(held_.begin());
    }
  }

  static thread_local uint64_t current;
  Print print_;
  bool in_order_, with_block_;
  Grid grid_;
  uint64_t next_ = 0;         // the lowest block that has not ended
  std::set<uint64_t> ended_;  // beyond it
  std::map<uint64_t, std::string> held_;
};
thread_local uint64_t OrderedPrints::current = 0;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

void add_observe_options(CLI::App& app, ObserveSettings& s) {
  const char* group = "Seeing what happens (spec/tools.md)";
  app.add_flag(
         "--trace{-}", s.trace,
         "Tell every executed operation with its values, on standard error or in --trace=FILE; runs on one thread")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace-block", s.trace_block, "Trace this block only: X[,Y[,Z]]")->type_name("BLOCK")->group(group);
  app.add_option("--trace-op", s.trace_ops, "Trace these operations only: NAME[,NAME...]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES")
      ->group(group);
  app.add_option("--trace-line", s.trace_line,
                 "Trace this line only: of the text, or of the debug locations of bytecode")
      ->type_name("N")
      ->check(whole_number(1, UINT32_MAX))
      ->group(group);
  app.add_flag("--profile{-}", s.profile,
               "Print time, bytes and arithmetic of operations and lines; --profile=FILE writes them as JSON too")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--profile-trace", s.profile_trace,
                 "Write blocks and operations on a time line, for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--access-map", s.access_map,
                 "Draw which block touches which part of each array: FILE.svg or FILE.html")
      ->type_name("FILE")
      ->group(group);
  app.add_flag_callback("--print", [&s] { s.ordered_prints = s.print_blocks = true; },
                        "Show what blocks print, failed assertions too, in order and with the blocks: --ordered-prints and --print-blocks")
      ->group(group);
  app.add_flag("--ordered-prints", s.ordered_prints, "Show what blocks print in the order of their numbers")
      ->group(group);
  app.add_flag("--print-blocks", s.print_blocks, "Start every printed line with [block X,Y,Z]")->group(group);
  app.add_option(
         "--break", s.breaks,
         "Stop at an operation, a line or a block and ask what to do: OP, LINE or @X[,Y[,Z]]; runs on one thread")
      ->allow_extra_args(false)
      ->type_name("PLACE")
      ->group(group);
  app.add_option("--bundle", s.bundle,
                 "Write kernel, arguments, options and hashes of the results into one file, for tilevm replay FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--time-limit", s.time_limit, "Stop after so many seconds (exit 6); 0: no limit")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9) & CLI::Validator([](const std::string& text) { return text.find_first_of("nN") == std::string::npos ? "" : text + " is no number of seconds"; }, ""))
      ->group(group);
}

int check_observe_options(const ObserveSettings& s, const std::string& program, const std::string& kernel,
                          const CommonOptions& common) {
  if (s.trace.empty() && (!s.trace_block.empty() || !s.trace_ops.empty() || s.trace_line > 0))
    return usage_error(program, "--trace-block, --trace-op and --trace-line choose what --trace shows", common,
                       "add --trace");
  if (!s.trace_block.empty() && !parse_block(s.trace_block))
    return usage_error(program, "--trace-block: '" + s.trace_block + "' is not a block", common,
                       "write it as X, X,Y or X,Y,Z");
  for (const std::string& name : s.trace_ops) {
    if (find_op(name)) continue;
    std::vector<std::string_view> names;
    for (const OpDef& op : op_rows()) names.push_back(op.name);
    const std::string near = nearest(name, names);
    return usage_error(program, "--trace-op: there is no operation '" + name + "'", common,
                       near.empty() ? "tileasm ops lists them" : "did you mean '" + near + "'?");
  }
  if (!s.access_map.empty() && !ends_with(s.access_map, ".svg") && !ends_with(s.access_map, ".html"))
    return usage_error(program, "--access-map: '" + s.access_map + "' ends neither in .svg nor in .html", common);
  for (const std::string& text : s.breaks) {
    std::string why;
    if (!parse_breakpoint(text, why)) return usage_error(program, "--break: " + why, common);
  }
  if (!s.breaks.empty() && kernel == "-")
    return usage_error(program, "--break reads commands from standard input, where the kernel comes from", common);
  return 0;
}

/// Knows whether a launch began.
struct Beginning : Observer {
  void launch_begin(const Launch&) override { begun = true; }
  bool begun = false;
};

struct Watch::Parts {
  Beginning beginning;
  LineFile trace_file;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<Profile> profile;
  std::unique_ptr<AccessMap> map;
  std::unique_ptr<OrderedPrints> prints;
  std::unique_ptr<Debugger> debugger;
};

Watch::Watch(const ObserveSettings& settings, Watched launch)
    : settings_(settings), launch_(std::move(launch)), parts_(std::make_unique<Parts>()) {}
Watch::~Watch() = default;

Status Watch::begin(RunOptions& options, Diagnostics& diags) {
  const ObserveSettings& s = settings_;
  Parts& p = *parts_;
  if (s.ordered_prints || s.print_blocks) {
    p.prints = std::make_unique<OrderedPrints>(options.print, s.ordered_prints, s.print_blocks);
    options.print = [prints = p.prints.get()](const std::string& text) { prints->add(text); };
    options.observers.push_back(p.prints.get());
  }
  if (!s.trace.empty()) {
    if (!p.trace_file.open(s.trace, diags)) return Failed;
    TraceFilter filter;
    if (!s.trace_block.empty()) filter.block = parse_block(s.trace_block);
    for (const std::string& name : s.trace_ops) filter.ops.emplace_back(find_op(name)->name);
    filter.line = s.trace_line;
    p.trace = std::make_unique<Trace>(launch_.module, *launch_.entry, std::move(filter),
                                      [&p](std::string_view text) { p.trace_file.write(text); });
    options.observers.push_back(p.trace.get());
  }
  if (!s.access_map.empty()) {
    std::vector<MappedArray> arrays;
    std::set<int32_t> seen;
    for (size_t a = 0; a < launch_.args->bindings.size(); ++a) {
      const int32_t b = launch_.args->bindings[a].buffer;
      if (b < 0 || !seen.insert(b).second) continue;
      const Array& array = launch_.args->buffers[static_cast<size_t>(b)];
      // The CPU device adds buffers to its memory first and in order: their numbers are those of the allocations.
      arrays.push_back({argument_label(a, a < launch_.names.size() ? launch_.names[a] : ""), array.type, array.shape,
                        array.strides, array.offset, static_cast<uint64_t>(b)});
    }
    p.map = std::make_unique<AccessMap>(std::move(arrays));
    options.observers.push_back(p.map.get());
  }
  if (!s.breaks.empty()) {
    std::vector<Breakpoint> points;
    std::string why;
    for (const std::string& text : s.breaks) points.push_back(*parse_breakpoint(text, why));
    p.debugger = std::make_unique<Debugger>(launch_.module, *launch_.entry, std::move(points));
    options.observers.push_back(p.debugger.get());
  }
  if (p.trace || p.debugger) options.threads = 1;
  // Last, so that it measures as little as possible of the others.
  if (!s.profile.empty() || !s.profile_trace.empty()) {
    p.profile = std::make_unique<Profile>(s.profile_trace.empty() ? 0 : kMaxEvents);
    options.observers.push_back(p.profile.get());
  }
  if (p.map || p.profile) options.observers.insert(options.observers.begin(), &p.beginning);
  return {};
}

Status Watch::end(bool whole, Diagnostics& diags) {
  const ObserveSettings& s = settings_;
  Parts& p = *parts_;
  bool ok = true;
  if (p.trace) ok = p.trace_file.finish(diags).ok() && ok;
  Place entry;
  entry.function = (*launch_.module)->str(launch_.entry->name);
  if (whole && p.trace && !p.trace->wrote()) diags.warn(entry, "no operation is the one that --trace-block, --trace-op and --trace-line choose");
  if (whole && p.debugger)
    for (const std::string& place : p.debugger->unreached()) diags.warn(entry, "--break " + place + ": the launch did not come there");
  if (!p.beginning.begun) return ok ? Status() : Status(Failed);
  const ProfileTitle title{std::string((*launch_.module)->str(launch_.entry->name)), launch_.grid};
  if (p.profile) {
    if (!s.profile.empty()) {
      const std::string table = profile_table(*p.profile, title);
      std::fwrite(table.data(), 1, table.size(), stderr);
    }
    if (!s.profile.empty() && s.profile != "-")
      ok = write_output(s.profile, profile_json(*p.profile, title), diags).ok() && ok;
    if (!s.profile_trace.empty())
      ok = write_output(s.profile_trace, profile_trace(*p.profile, **launch_.module, *launch_.entry, title), diags)
               .ok() &&
           ok;
  }
  if (p.map) {
    const std::string name = "@" + title.entry;
    ok = write_output(s.access_map, ends_with(s.access_map, ".html") ? p.map->html(name) : p.map->svg(name), diags)
             .ok() &&
         ok;
  }
  return ok ? Status() : Status(Failed);
}

}  // namespace tile::cli
