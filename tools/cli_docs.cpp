// Descriptions out of CLI11, and the help texts made from them.
#include "tools/cli_docs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace tile::cli {
namespace {

constexpr size_t kWidth = 100;      // of help texts
constexpr size_t kMostIndent = 30;  // of the explanations behind names

std::optional<DocCommand>* taken_description = nullptr;  // where the description that is asked for goes

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

DocOption option(const CLI::Option& o) {
  DocOption d;
  d.positional = o.get_positional();
  if (d.positional) {
    d.names.push_back(o.get_name(true));
  } else {
    for (const std::string& name : o.get_snames()) d.names.push_back("-" + name);
    for (const std::string& name : o.get_lnames()) d.names.push_back("--" + name);
  }
  d.group = o.get_group();
  d.help = o.get_description();
  d.required = o.get_required();
  const bool flag = o.get_items_expected_max() == 0;  // whose value, if it has a type, may stand behind '='
  if (!flag || !o.get_type_name().empty()) {
    // Type and checks in one: "TEXT:{auto,always,never}", "UINT:INT in [0 - 8]".
    const std::string type = o.get_type_name();
    const size_t colon = type.find(':');
    d.value = type.substr(0, colon);
    if (const size_t brace = type.find('{'); brace != std::string::npos) {
      std::string word;
      for (const char c : type.substr(brace + 1)) {
        if (c == ',' || c == '}') d.choices.push_back(std::exchange(word, ""));
        if (c == '}') break;
        if (c != ',') word += c;
      }
    }
    d.optional_value = flag || o.get_items_expected_min() == 0;
    d.several = o.get_items_expected_max() > 1;
    d.default_text = o.get_default_str();
  }
  if (d.positional) d.value.clear();
  return d;
}

std::vector<DocSection> sections(const std::string& footer) {
  std::vector<DocSection> found;
  for (const std::string& line : lines_of(footer)) {
    if (!line.empty() && line.front() != ' ' && line.back() == ':') {
      found.push_back({line.substr(0, line.size() - 1), {}});
    } else if (!found.empty()) {
      found.back().lines.push_back(line);
    } else if (!line.empty()) {
      found.push_back({"", {line}});
    }
  }
  for (DocSection& s : found)
    while (!s.lines.empty() && s.lines.back().empty()) s.lines.pop_back();
  return found;
}

// "-o, --output FILE"
std::string label(const DocOption& o) {
  std::string text;
  for (const std::string& name : o.names) text += (text.empty() ? "" : ", ") + name;
  if (o.positional || o.value.empty()) return text;
  return text + (o.optional_value ? "[=" + o.value + "]" : " " + o.value);
}

std::string explanation(const DocOption& o) {
  std::string text = o.help;
  if (!o.value.empty() && !o.choices.empty()) {
    text += text.empty() ? "(" : " (";
    for (size_t i = 0; i < o.choices.size(); ++i) text += (i ? ", " : "") + o.choices[i];
    text += ")";
  }
  if (!o.default_text.empty() && o.default_text != "\"\"" && o.default_text != "[]")
    text += " [" + o.default_text + "]";
  return text;
}

using Rows = std::vector<std::pair<std::string, std::string>>;

void add_table(std::string& out, const std::string& title, const Rows& rows, size_t indent) {
  if (rows.empty()) return;
  out += "\n" + title + ":\n";
  for (const auto& [left, right] : rows) {
    std::string line = "  " + left;
    if (line.size() + 2 > indent) {
      out += line + "\n";
      line.clear();
    }
    line.resize(indent, ' ');
    bool fresh = true;
    for (size_t at = 0; at < right.size();) {
      const size_t end = std::min(right.find(' ', at), right.size());
      if (!fresh && line.size() + 1 + end - at > kWidth) {
        out += line + "\n";
        line.assign(indent, ' ');
        fresh = true;
      }
      line += (fresh ? "" : " ") + right.substr(at, end - at);
      fresh = false;
      at = end + 1;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
}

class HelpText : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    return help_text(describe(*app), name.empty() ? app->get_name() : name);
  }
};

}  // namespace

DocCommand& DocCommand::command(const std::string& wanted) {
  return *std::find_if(commands.begin(), commands.end(), [&](const DocCommand& c) { return c.name == wanted; });
}

DocCommand describe(const CLI::App& app) {
  DocCommand d;
  d.name = app.get_name();
  d.about = app.get_description();
  for (const CLI::Option* o : app.get_options()) d.options.push_back(option(*o));
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* c : app.get_subcommands(all)) d.commands.push_back(describe(*c));
  d.sections = sections(app.get_footer());
  return d;
}

std::optional<DocCommand> describe_command(int (*command)(int, const char* const*), const char* name) {
  std::optional<DocCommand> taken;
  taken_description = &taken;
  (void)command(1, &name);
  taken_description = nullptr;
  return taken;
}

bool describing() {
  return taken_description != nullptr;
}

void take_description(const CLI::App& app) {
  *taken_description = describe(app);
}

void offer_words(DocCommand& command, const std::string& argument, std::vector<std::string> words) {
  for (DocOption& o : command.options)
    if (o.positional && o.names[0] == argument) o.choices = std::move(words);
}

void add_docs_commands(CLI::App& app, std::string& shell, std::string& output) {
  const std::string name = app.get_name();
  CLI::App* completions = app.add_subcommand("completions", "Print a completion script for a shell");
  completions->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completions->add_option("-o,--output", output, "Output, or - for standard output")->type_name("FILE");
  completions->footer("Examples:\n  eval \"$(" + name + " completions bash)\"\n  " + name +
                      " completions zsh -o ~/.zfunc/_" + name + "\n  " + name +
                      " completions fish -o ~/.config/fish/completions/" + name + ".fish");
  CLI::App* man = app.add_subcommand("man", "Print the manual page, for man(1)");
  man->add_option("-o,--output", output, "Output, or - for standard output")->type_name("FILE");
  man->footer("Examples:\n  " + name + " man | man -l -\n  " + name + " man -o " + name + ".1");
}

std::string help_text(const DocCommand& command, const std::string& name) {
  std::string out = command.about + "\n\nUsage: " + name + " [OPTIONS]";
  Rows commands, arguments;
  std::vector<std::pair<std::string, Rows>> groups;
  size_t indent = 0;
  const auto measure = [&](const std::string& left) {
    if (left.size() + 4 <= kMostIndent) indent = std::max(indent, left.size() + 4);
  };
  for (const DocOption& o : command.options) {
    measure(label(o));
    if (o.positional) {
      arguments.emplace_back(label(o), o.help);
      out += (o.required ? " " : " [") + o.names[0] + (o.several ? "..." : "") + (o.required ? "" : "]");
      continue;
    }
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == o.group; });
    Rows& rows = known == groups.end() ? groups.emplace_back(o.group, Rows{}).second : known->second;
    rows.emplace_back(label(o), explanation(o));
  }
  out += "\n";
  if (!command.commands.empty()) out += "       " + name + " COMMAND ...\n";
  for (const DocCommand& c : command.commands) {
    measure(c.name);
    commands.emplace_back(c.name, c.summary());
  }
  add_table(out, "Commands", commands, indent);
  add_table(out, "Arguments", arguments, indent);
  for (const auto& [title, rows] : groups) add_table(out, title, rows, indent);
  for (const DocSection& s : command.sections) {
    out += s.title.empty() ? "\n" : "\n" + s.title + ":\n";
    for (const std::string& line : s.lines) out += line + "\n";
  }
  return out;
}

void use_help_text(CLI::App& app) {
  app.formatter(std::make_shared<HelpText>());
}

}  // namespace tile::cli
