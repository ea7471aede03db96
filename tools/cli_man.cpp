// Manual pages in the man macros of roff.
#include <algorithm>
#include <cctype>

#include "tools/cli_docs.h"

namespace tile::cli {
namespace {

// Text that roff prints as it is: backslashes and dashes escaped, and no line that looks like a request.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// "\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR"
std::string label(const DocOption& o) {
  std::string out;
  for (const std::string& name : o.names)
    out += (out.empty() ? "" : ", ") + std::string(o.positional ? "\\fI" : "\\fB") + plain(name) + "\\fR";
  if (o.value.empty()) return out;
  return out + (o.optional_value ? "[=" : " ") + "\\fI" + plain(o.value) + "\\fR" + (o.optional_value ? "]" : "");
}

void add_options(std::string& out, const DocCommand& command) {
  for (const DocOption& o : command.options) {
    out += ".TP\n" + label(o) + "\n" + plain(o.help) + "\n";
    if (!o.positional && !o.choices.empty()) {
      out += "Values:";
      for (size_t i = 0; i < o.choices.size(); ++i) out += (i ? ", " : " ") + plain(o.choices[i]);
      out += ".\n";
    }
    if (!o.default_text.empty()) out += "Default: " + plain(o.default_text) + ".\n";
  }
}

void add_synopsis(std::string& out, const DocCommand& command, const std::string& name) {
  out += "\\fB" + plain(name) + "\\fR [\\fIOPTIONS\\fR]";
  for (const DocOption& o : command.options) {
    if (!o.positional) continue;
    out += std::string(o.required ? " " : " [") + "\\fI" + plain(o.names[0]) + "\\fR" + (o.several ? "..." : "") +
           (o.required ? "" : "]");
  }
  out += "\n";
}

void add_lines(std::string& out, const std::vector<std::string>& lines) {
  out += ".nf\n";
  for (const std::string& line : lines) out += plain(line) + "\n";
  out += ".fi\n";
}

}  // namespace

std::string man_page(const DocCommand& program, const std::string& version) {
  std::string out = ".\\\" Made by `" + program.name + " man`.\n.TH " + upper(program.name) + " 1 \"\" \"tilevm " +
                    plain(version) + "\" \"Tile IR\"\n";
  std::string summary = program.summary();
  if (summary.ends_with('.')) summary.pop_back();
  out += ".SH NAME\n" + program.name + " \\- " + plain(summary) + "\n.SH SYNOPSIS\n";
  add_synopsis(out, program, program.name);
  for (const DocCommand& c : program.commands) {
    out += ".br\n";
    add_synopsis(out, c, program.name + " " + c.name);
  }
  out += ".SH DESCRIPTION\n" + plain(program.about) + "\n.SH OPTIONS\n";
  add_options(out, program);
  if (!program.commands.empty()) out += ".SH COMMANDS\n";
  for (const DocCommand& c : program.commands) {
    out += ".SS " + plain(program.name + " " + c.name) + "\n" + plain(c.about) + "\n";
    add_options(out, c);
    for (const DocSection& s : c.sections) {
      out += ".PP\n" + (s.title.empty() ? "" : plain(s.title) + ":\n");
      add_lines(out, s.lines);
    }
  }
  for (const DocSection& s : program.sections) {
    out += ".SH " + (s.title.empty() ? "NOTES" : upper(plain(s.title))) + "\n";
    add_lines(out, s.lines);
  }
  out +=
      ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nNot empty: no colours, unless \\fB\\-\\-color=always\\fR is given.\n"
      ".TP\n\\fBCLICOLOR_FORCE\\fR\nNeither empty nor 0: colours even where standard error is no terminal.\n"
      ".TP\n\\fBCLICOLOR\\fR\n0: no colours.\n"
      ".TP\n\\fBTERM\\fR\n\"dumb\" or unset: no colours.\n";
  out += ".SH SEE ALSO\n" + std::string(program.name == "tileasm" ? "\\fBtilevm\\fR(1)" : "\\fBtileasm\\fR(1)") + "\n";
  return out;
}

}  // namespace tile::cli
