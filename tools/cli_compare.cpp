// Copies of arguments and comparison of arrays.
#include "tools/cli_compare.h"

#include <algorithm>
#include <vector>

namespace tile::cli {

std::optional<LaunchArguments> copy_of(const LaunchArguments& args, const std::string& option, Diagnostics& diags) {
  LaunchArguments copy;
  copy.params = args.params;
  copy.bindings = args.bindings;
  for (const Array& a : args.buffers) {
    auto memory = AlignedBytes::make(a.memory.size());
    if (!memory) {
      (void)diags.error(Code::E0903, Place{}, option + ": no memory for a second copy of the arrays");
      return std::nullopt;
    }
    std::copy_n(a.memory.data(), a.memory.size(), memory->data());
    copy.buffers.push_back({a.type, a.shape, a.strides, a.offset, *std::move(memory)});
  }
  return copy;
}

void restore(LaunchArguments& args, const LaunchArguments& copy) {
  for (size_t b = 0; b < args.buffers.size(); ++b) std::copy_n(copy.buffers[b].memory.data(), copy.buffers[b].memory.size(), args.buffers[b].memory.data());
}

void compare_launches(const Job& job, const LaunchArguments& got, const LaunchArguments& reference, const std::string& who, bool skip_expected, Diagnostics& diags,
                      const std::function<std::optional<Note>(size_t, int64_t)>& note) {
  for (size_t b = 0; b < got.buffers.size(); ++b) {
    std::string name = "buffer " + std::to_string(b);
    CompareRule rule;
    bool expected = false;
    for (size_t a = job.args.size(); a-- > 0;) {
      if (got.bindings[a].buffer != static_cast<int32_t>(b)) continue;
      name = argument_label(a, job.args[a].name);
      for (const Expectation& e : job.expectations) {
        if (e.argument != a) continue;
        expected = true;
        if (!e.unchanged && !e.window && e.rule.kind != CompareRule::Kind::Bound) rule = e.rule;
      }
    }
    if (expected && skip_expected) continue;
    Place place;
    place.argument = name;
    const ArrayView one = got.buffers[b].view(), other = reference.buffers[b].view();
    const auto result = compare(one, other, rule, nullptr, place, diags);
    if (!result) return;
    if (!result->equal()) {
      Diagnostic d{Code::E0809, place, who + ": " + show_report(*result, other, rule), {}, {}, {}};
      if (note && !diags.has_errors() && result->first >= 0)
        if (auto said = note(b, other.position(result->first))) d.notes.push_back(*std::move(said));
      (void)diags.error(std::move(d));
    } else if (const auto outside = first_change_outside(one, other.data)) {
      (void)diags.error(Code::E0809, place, who + ": memory outside the array differs, first at element " + std::to_string(*outside));
    }
  }
}

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

void missing_trap(const Job& job, Diagnostics& diags) {
  Place place;
  place.file = job.file;
  (void)diags.error(Code::E0809, place, std::string("the launch ended well, expected ") + code_info(*job.outcome).name + " (" + code_info(*job.outcome).meaning + ")");
}

}  // namespace tile::cli
