// fmt: canonical text with the comments of the source. Comments are no part of a module, so they are put back by the
// places of the operations around them.
#include <algorithm>
#include <string_view>

#include "assembler/lexer.h"
#include "assembler/printer.h"
#include "tools/tileasm_commands.h"
#include "tools/tileasm_inputs.h"

namespace tile::cli {
namespace {

// What a formatter must keep besides operations. Offsets are of the source.
struct Extra {
  uint32_t at;
  std::string text;  ///< comment from `//` on; empty: a blank line
  bool behind;       ///< stands behind something on its line
};
struct Braces {
  uint32_t open, close;
};
struct Layout {
  std::vector<Extra> extras;
  std::vector<Braces> braces;
};

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

Layout scan(std::string_view text) {
  Layout found;
  std::vector<uint32_t> open;
  bool empty_line = true;
  for (size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size(); ++i) {
    const auto at = static_cast<uint32_t>(i);
    const char c = text[i];
    if (c == '\n') {
      if (empty_line && i > 0) found.extras.push_back({at, "", false});
      empty_line = true;
    } else if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      const size_t end = std::min(text.find('\n', i), text.size());
      found.extras.push_back({at, std::string(trimmed(text.substr(i, end - i))), !empty_line});
      i = end - 1;
      empty_line = false;
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      empty_line = false;
    } else if (c == '{') {
      open.push_back(at);
      empty_line = false;
    } else if (c == '}') {
      if (!open.empty()) {
        found.braces.push_back({open.back(), at});
        open.pop_back();
      }
      empty_line = false;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      empty_line = false;
    }
  }
  return found;
}

bool is_blank(std::string_view text, const Braces& b) {
  for (size_t i = b.open + 1; i < b.close; ++i) {
    if (text[i] == '/') i = std::min(text.find('\n', i), static_cast<size_t>(b.close));
    if (i < b.close && text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n') return false;
  }
  return true;
}

// Regions have operations in them or nothing at all; the braces of dictionaries have something else.
std::vector<Braces> regions(const Module& m, const Layout& layout) {
  std::vector<uint32_t> statements;
  for (const Function& f : m.functions) {
    statements.push_back(f.name_span.begin);
    for (const Span& s : f.inst_spans) statements.push_back(s.begin);
  }
  for (const Global& g : m.globals) statements.push_back(g.span.begin);
  std::sort(statements.begin(), statements.end());
  std::vector<Braces> found;
  for (const Braces& b : layout.braces) {
    const auto first = std::upper_bound(statements.begin(), statements.end(), b.open);
    if ((first != statements.end() && *first < b.close) || is_blank(m.source->text(), b)) found.push_back(b);
  }
  return found;
}

class Merger {
 public:
  Merger(const Module& m, std::string_view printed, const std::vector<Anchor>& anchors) {
    for (size_t at = 0; at < printed.size();) {
      const size_t end = std::min(printed.find('\n', at), printed.size());
      starts_.push_back(at);
      lines_.emplace_back(printed.substr(at, end - at));
      at = end + 1;
    }
    after_.resize(lines_.size() + 1);
    behind_.resize(lines_.size());
    for (const Anchor& a : anchors) {
      const size_t line =
          static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), a.output) - starts_.begin()) - 1;
      anchors_.push_back({a.source, line});
    }
    std::stable_sort(anchors_.begin(), anchors_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const Layout layout = scan(m.source->text());
    for (const Braces& b : regions(m, layout)) {
      first_region_ = std::min(first_region_, b.open);
      closes_.push_back(b.close);
    }
    std::sort(closes_.begin(), closes_.end());
    for (const Extra& e : layout.extras) place(e);
  }

  std::string text() const {
    std::string text;
    std::string_view last = "{";  // of the lines so far, without its comment
    bool blank = false;           // a blank line waits for what follows it
    const auto add = [&](std::string_view line, std::string_view comment) {
      if (line.empty() && comment.empty()) {
        blank = !last.ends_with("{");
        return;
      }
      if (blank && !trimmed(line).starts_with("}")) text += "\n";
      blank = false;
      last = comment.empty() || !line.empty() ? line : comment;
      text += line;
      if (!comment.empty()) text += line.empty() ? comment : "  " + std::string(comment);
      text += "\n";
    };
    for (const std::string& line : after_[0]) add({}, line);
    for (size_t l = 0; l < lines_.size(); ++l) {
      add(lines_[l], behind_[l]);
      for (const std::string& line : after_[l + 1]) add({}, line);
    }
    return text;
  }

 private:
  // The line of the output behind which something at `at` belongs; -1: in front of everything.
  std::ptrdiff_t line_before(uint32_t at) const {
    const auto next =
        std::upper_bound(anchors_.begin(), anchors_.end(), at, [](uint32_t x, const auto& a) { return x < a.first; });
    if (next == anchors_.begin() && at < first_region_) return -1;
    size_t line = 0;
    uint32_t from = 0;
    if (next != anchors_.begin()) {
      from = std::prev(next)->first;
      line = std::prev(next)->second;
      if (line + 1 < lines_.size() && trimmed(lines_[line + 1]).starts_with("("))
        ++line;  // the arguments of reduce and scan
    } else {
      while (line + 1 < lines_.size() && !lines_[line].ends_with("{")) ++line;  // the line of the module
    }
    // Each region that ends in between is a line with its brace.
    auto closed =
        std::lower_bound(closes_.begin(), closes_.end(), at) - std::lower_bound(closes_.begin(), closes_.end(), from);
    for (size_t l = line + 1; closed > 0 && l < lines_.size() && trimmed(lines_[l]).starts_with("}"); ++l, --closed)
      line = l;
    return static_cast<std::ptrdiff_t>(line);
  }

  void place(const Extra& e) {
    const std::ptrdiff_t line = line_before(e.at);
    if (line < 0) {
      after_[0].push_back(e.text);
      return;
    }
    const std::string& before = lines_[static_cast<size_t>(line)];
    if (e.behind) {
      std::string& comment = behind_[static_cast<size_t>(line)];
      comment += (comment.empty() ? "" : "  ") + e.text;
      return;
    }
    const size_t indent = std::min(before.find_first_not_of(' '), before.size()) + (before.ends_with("{") ? 2 : 0);
    after_[static_cast<size_t>(line) + 1].push_back(e.text.empty() ? "" : std::string(indent, ' ') + e.text);
  }

  std::vector<size_t> starts_;
  std::vector<std::string> lines_, behind_;           // as printed; comments behind them
  std::vector<std::vector<std::string>> after_;       // by line + 1; 0: in front
  std::vector<std::pair<uint32_t, size_t>> anchors_;  // offset in the source, line
  std::vector<uint32_t> closes_;
  uint32_t first_region_ = UINT32_MAX;
};

}  // namespace

std::string format_text(const Module& m) {
  std::vector<Anchor> anchors;
  PrintOptions print;
  print.debug_info = true;
  const std::string printed = print_text(m, print, anchors);
  return m.source ? Merger(m, printed, anchors).text() : printed;
}

int run_fmt(const FmtOptions& options, const CommonOptions& common) {
  return for_each_input(options.inputs, common, [&](const Input& input) {
    const std::string name = input_name(input.path);
    Diagnostics diags;
    const auto bytes = read_input(input.path, diags);
    if (bytes && input.found && recognise(*bytes) != InputKind::Text) return kOk;  // a folder may hold bytecode too
    const auto loaded = bytes ? read_module(*bytes, name, diags) : Result<Loaded>(Failed);
    if (!loaded) return report(diags, common);
    if (loaded->kind != InputKind::Text) {
      return usage_error("tileasm", name + " is " + kind_name(loaded->kind) + ", not text", common,
                         "tileasm dis prints bytecode as text");
    }
    const std::string text = format_text(loaded->module);
    const bool same = std::equal(text.begin(), text.end(), bytes->begin(), bytes->end(),
                                 [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
    bool named = false;
    if (options.check) {
      if (!same) (void)write_output("-", name + "\n", diags).ok();
      named = !same;
    } else if (!options.in_place || input.path == "-") {
      (void)write_output("-", text, diags).ok();
    } else if (!same && write_output(input.path, text, diags)) {
      log(common, name + ": rewritten");
    }
    return std::max(report(diags, common), named ? kRejected : kOk);
  });
}

}  // namespace tile::cli
