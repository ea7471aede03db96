// Commands of the stepping prompt.
#include "tools/cli_break.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "assembler/assembler.h"
#include "tools/cli_options.h"
#include "tools/cli_stop.h"
#include "vm/interp/exec.h"
#include "vm/interp/value_text.h"

namespace tile::cli {
namespace {

constexpr size_t kShort = 64, kLong = 65536;  // elements that print shows whole, and with `all`

constexpr const char* kHelp =
    "step (s)           run one operation\n"
    "next (n)           run one operation with everything inside it\n"
    "continue (c)       run to the next breakpoint\n"
    "print VALUE [all]  (p) show a value: %sum, sum or 12\n"
    "where (w)          show the block, the line and the regions around it\n"
    "list (l)           show the lines around this one\n"
    "break PLACE        (b) stop at OP, LINE or @X,Y,Z too\n"
    "delete             (d) remove all breakpoints\n"
    "quit (q)           end the launch; nothing is written\n"
    "An empty line repeats step or next.\n";

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  for (size_t at = line.find_first_not_of(" \t\r"); at != std::string::npos; at = line.find_first_not_of(" \t\r", at)) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

bool parse_u32(std::string_view text, uint32_t& value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && !text.empty();
}

std::string block_of(const Exec& x) {
  return std::to_string(x.block[0]) + "," + std::to_string(x.block[1]) + "," + std::to_string(x.block[2]);
}

}  // namespace

std::optional<std::array<uint32_t, 3>> parse_block(std::string_view text) {
  std::array<uint32_t, 3> out{};
  for (size_t d = 0; d < 3; ++d) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!parse_u32(text.substr(0, comma), out[d])) return std::nullopt;
    if (comma == text.size()) return out;
    text.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::optional<Breakpoint> parse_breakpoint(const std::string& text, std::string& why) {
  Breakpoint b;
  b.text = text;
  if (text.starts_with('@')) {
    b.block = parse_block(std::string_view(text).substr(1));
    if (!b.block) why = "'" + text + "' is not a block, expected @X, @X,Y or @X,Y,Z";
    return b.block ? std::optional(b) : std::nullopt;
  }
  if (parse_u32(text, b.line) && b.line > 0) return b;
  if (const OpDef* op = find_op(text)) {
    b.op = op->name;
    return b;
  }
  std::vector<std::string_view> names;
  for (const OpDef& op : op_rows()) names.push_back(op.name);
  const std::string near = nearest(text, names);
  why = "'" + text + "' is no operation, line or @block" + (near.empty() ? "" : "; did you mean " + near + "?");
  return std::nullopt;
}

Debugger::Debugger(std::shared_ptr<const ValidModule> module, const Function& entry,
                   std::vector<Breakpoint> breakpoints)
    : module_(std::move(module)),
      f_(entry),
      breakpoints_(std::move(breakpoints)),
      slots_(value_slots(module_, entry)),
      defined_by_(entry.value_types.size(), kNone) {
  for (InstId i = 0; i < f_.insts.size(); ++i)
    for (uint32_t k = 0; k < f_.insts[i].result_count; ++k) defined_by_[f_.result(i, k)] = i;
  for (const Region& r : f_.regions) {
    ValueId end = r.first_arg + r.arg_count;
    for (InstId i = r.begin; i < r.end; ++i) end = std::max(end, f_.insts[i].first_result + f_.insts[i].result_count);
    region_end_.push_back(end);
  }
}

void Debugger::launch_begin(const Launch& launch) {
  workers_.assign(launch.threads, {});
  if (plan_ == launch.plan) return;
  plan_ = launch.plan;
  table_ = StepTable(*plan_);
  has_step_.assign(f_.insts.size(), 0);
  for (const Step& s : plan_->steps()) has_step_[s.inst] = 1;
}

void Debugger::block_begin(Exec& x) {
  workers_[x.worker].values.clear();
  workers_[x.worker].block_start = true;
}

void Debugger::keep(const Exec& x, ValueId value) {
  const size_t size = value_bytes(**module_, f_.type(value));
  if (size == 0 || slots_[value] == kNoSlot) return;
  const std::byte* p = x.at<std::byte>(slots_[value]);
  workers_[x.worker].values[value].assign(p, p + size);
}

const Breakpoint* Debugger::hit(const Exec& x, const StepTable::Entry& e, InstId i) {
  const Breakpoint* first = nullptr;
  for (Breakpoint& b : breakpoints_) {
    const auto matches = [&](InstId k) {
      return b.line > 0 ? line_of(**module_, f_, k).line == b.line : f_.def(k).name == b.op;
    };
    // An operation without a step is reached with the one behind it.
    const bool here = b.block ? workers_[x.worker].block_start && std::equal(b.block->begin(), b.block->end(), x.block)
                              : matches(i) || std::any_of(e.silent.begin(), e.silent.end(), matches);
    if (!here) continue;
    b.reached = true;
    if (!first) first = &b;
  }
  return first;
}

std::vector<std::string> Debugger::unreached() const {
  std::vector<std::string> out;
  for (const Breakpoint& b : breakpoints_)
    if (!b.reached) out.push_back(b.text);
  return out;
}

void Debugger::before(Exec& x, const Step& s) {
  if (mode_ == Mode::Off) return;
  const StepTable::Entry& e = table_[StepTable::index(*plan_, s)];
  if (e.in_body) return;
  if (e.opens != kNone) {
    // A new iteration: what the last one defined is gone.
    const Region& r = f_.regions[e.opens];
    auto& values = workers_[x.worker].values;
    values.erase(values.lower_bound(r.first_arg), values.lower_bound(region_end_[e.opens]));
    for (uint32_t a = 0; a < r.arg_count; ++a) keep(x, r.first_arg + a);
  }
  if (e.preparation) return;
  const Breakpoint* b = hit(x, e, s.inst);
  bool& block_start = workers_[x.worker].block_start;
  const bool stepped = x.worker == follow_ && (mode_ == Mode::Step || (mode_ == Mode::Next && (block_start || e.depth <= depth_)));
  block_start = false;
  if (!b && !stepped) return;
  if (b && !stepped) say("breakpoint " + b->text + "\n");
  prompt(x, e, s.inst);
}

void Debugger::after(Exec& x, const Step& s) {
  if (mode_ == Mode::Off) return;
  const StepTable::Entry& e = table_[StepTable::index(*plan_, s)];
  if (e.in_body || e.preparation) return;
  for (uint32_t k = 0; k < f_.insts[s.inst].result_count; ++k) keep(x, f_.result(s.inst, k));
}

bool Debugger::read_line(std::string& line) {
  for (;;) {
    if (const size_t end = input_.find('\n'); end != std::string::npos) {
      line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return true;
    }
    // poll() comes back from a signal whatever its handler says about restarting, read() would not.
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (::poll(&wait, 1, -1) < 0) {
      if (errno != EINTR || stop_flag()) return false;
      continue;
    }
    char buffer[4096];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      line = std::move(input_);
      input_.clear();
      return !line.empty();
    }
    input_.append(buffer, static_cast<size_t>(n));
    if (input_.size() > (size_t{1} << 20)) return false;  // no command is that long
  }
}

void Debugger::prompt(Exec& x, const StepTable::Entry& e, InstId i) {
  follow_ = x.worker;
  show_place(x, i);
  for (bool again = true; again && mode_ != Mode::Off;) {
    if (is_terminal(STDIN_FILENO)) say("(tilevm) ");
    std::string line;
    if (stop_flag() || !read_line(line)) {
      quit(x);
      return;
    }
    command(x, line, e, i, again);
  }
}

void Debugger::command(Exec& x, const std::string& line, const StepTable::Entry& e, InstId i, bool& again) {
  const std::vector<std::string> words = words_of(line);
  const std::string word = words.empty() ? last_ : words[0];
  const auto is = [&](const char* name) { return word == name || (word.size() == 1 && word[0] == name[0]); };
  if (is("step")) {
    mode_ = Mode::Step;
    last_ = "step";
    again = false;
  } else if (is("next")) {
    mode_ = Mode::Next;
    last_ = "next";
    depth_ = e.depth;
    again = false;
  } else if (is("continue")) {
    mode_ = Mode::Run;
    again = false;
  } else if (is("print")) {
    if (words.size() < 2) return say("print what? For example: print %sum\n");
    print(x, words[1], words.size() > 2 && words[2] == "all");
  } else if (is("where")) {
    where(x, i);
  } else if (is("list")) {
    list(i);
  } else if (is("break")) {
    std::string why;
    if (words.size() < 2) return say("break where? For example: break mmaf, break 12, break @1,0,0\n");
    const auto b = parse_breakpoint(words[1], why);
    if (!b) return say(why + "\n");
    breakpoints_.push_back(*b);
  } else if (is("delete")) {
    breakpoints_.clear();
  } else if (is("quit")) {
    quit(x);
  } else if (is("help")) {
    say(kHelp);
  } else {
    say("there is no command '" + word + "'; help lists them\n");
  }
}

void Debugger::quit(Exec& x) {
  mode_ = Mode::Off;
  request_stop(StopReason::Quit);
  x.launch.stop.store(true);
}

void Debugger::show_place(const Exec& x, InstId i) const {
  const LineRef at = line_of(**module_, f_, i);
  say("[" + block_of(x) + "] " + (at.line ? at.text() + ": " : "") + print_inst(**module_, f_, i) + "\n");
}

void Debugger::where(const Exec& x, InstId i) const {
  const Grid& g = x.launch.grid;
  std::string out = "block " + block_of(x) + " of grid " + std::to_string(g.x) + "," + std::to_string(g.y) + "," +
                    std::to_string(g.z) + ", entry @" + std::string((*module_)->str(f_.name)) + "\n";
  const auto place = [&](InstId k) {
    const LineRef at = line_of(**module_, f_, k);
    return std::string(f_.def(k).name) + (at.line ? " at " + at.text() : "");
  };
  out += "  " + place(i) + "\n";
  for (RegionId r = table_.region_of(i); f_.regions[r].parent != kNone; r = table_.region_of(f_.regions[r].parent)) {
    out += "  in " + place(f_.regions[r].parent);
    for (uint32_t a = 0; a < f_.regions[r].arg_count; ++a) {
      const ValueId v = f_.regions[r].first_arg + a;
      if ((*module_)->types.is_scalar(f_.type(v)))
        out += ", " + value_name(**module_, f_, v) + " = " + text_of(x, v, kShort);
    }
    out += "\n";
  }
  say(out);
}

void Debugger::list(InstId i) const {
  const auto& source = (*module_)->source;
  const LineRef at = line_of(**module_, f_, i);
  if (!source || at.line == 0) return say("the source text is not at hand\n");
  const auto count = static_cast<uint32_t>(std::count(source->text().begin(), source->text().end(), '\n')) + 1;
  std::string out;
  for (uint32_t n = at.line > 4 ? at.line - 4 : 1; n <= std::min(at.line + 4, count); ++n)
    out += std::string(n == at.line ? "> " : "  ") + std::to_string(n) + "  " + std::string(source->line(n)) + "\n";
  say(out);
}

std::string Debugger::text_of(const Exec& x, ValueId value, size_t whole) const {
  const ValueStyle style{whole, std::min<size_t>(whole, 16)};
  const TypeId type = f_.type(value);
  if ((*module_)->types.is_token(type)) return "token";
  if (slots_[value] != kNoSlot && (slots_[value] & kConstSlot))
    return value_text(**module_, x.memory, type, x.at<std::byte>(slots_[value]), style);
  // A value without a step of its own is the bytes of its operand.
  for (ValueId v = value;;) {
    const auto& values = workers_[x.worker].values;
    if (const auto it = values.find(v); it != values.end())
      return value_text(**module_, x.memory, type, it->second.data(), style);
    const InstId by = defined_by_[v];
    if (by == kNone || has_step_[by] || f_.insts[by].operand_count == 0) return {};
    v = f_.operands(by)[0];
  }
}

void Debugger::print(const Exec& x, const std::string& name, bool all) const {
  const std::string wanted = name.starts_with('%') ? name : "%" + name;
  bool known = false;
  std::string found;
  for (ValueId v = 0; v < f_.value_types.size(); ++v) {
    if (value_name(**module_, f_, v) != wanted) continue;
    known = true;
    // Names may stand in several regions: the last one that has a value.
    const std::string text = text_of(x, v, all ? kLong : kShort);
    if (!text.empty()) found = wanted + " : " + (*module_)->types.print(f_.type(v)) + " = " + text + "\n";
  }
  if (known) return say(found.empty() ? wanted + " has no value here\n" : found);
  std::vector<std::string> names;
  for (ValueId v = 0; v < f_.value_types.size(); ++v) names.push_back(value_name(**module_, f_, v));
  const std::string near = nearest(wanted, std::vector<std::string_view>(names.begin(), names.end()));
  say("there is no value " + wanted + (near.empty() ? "" : "; did you mean " + near + "?") + "\n");
}

}  // namespace tile::cli
