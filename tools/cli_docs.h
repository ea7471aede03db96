// What a command line accepts, as data: help texts, manual pages and shell completions are all made from it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace tile::cli {

struct DocOption {
  std::vector<std::string> names;  ///< "-o", "--output"; a positional argument has its one name without dashes
  std::string group;               ///< heading in the help
  std::string help;
  std::string value;  ///< what the help calls the value; empty: a flag
  std::string default_text;
  std::vector<std::string> choices;  ///< all values that are accepted, or those that a completion offers
  bool positional = false, required = false;
  bool several = false;         ///< any number of values or repetitions
  bool optional_value = false;  ///< --name or --name=VALUE
};

struct DocSection {
  std::string title;
  std::vector<std::string> lines;
};

struct DocCommand {
  std::string name;   ///< "as", or that of the program
  std::string about;  ///< the first line is the summary
  std::vector<DocOption> options;
  std::vector<DocCommand> commands;
  std::vector<DocSection> sections;  ///< of the footer

  [[nodiscard]] std::string summary() const { return about.substr(0, about.find('\n')); }
  [[nodiscard]] DocCommand& command(const std::string& wanted);
};

/// The group of options that every command of a program takes.
inline constexpr char kCommonGroup[] = "Common options";

/// Reads a description. In the footer, a line that starts at the margin and ends with a colon starts a section.
[[nodiscard]] DocCommand describe(const CLI::App& app);
/// What a command that calls parse_command_line() would accept; nothing if it does not get that far. It is not run.
[[nodiscard]] std::optional<DocCommand> describe_command(int (*command)(int argc, const char* const* argv),
                                                         const char* name);
/// True while describe_command() runs; parse_command_line() gives its description to it then, and errors are not shown.
[[nodiscard]] bool describing();
void take_description(const CLI::App& app);
/// Lets the positional argument `argument` of a command be completed from words.
void offer_words(DocCommand& command, const std::string& argument, std::vector<std::string> words);
/// Adds the commands `completions` and `man`, which run_docs() answers.
void add_docs_commands(CLI::App& app, std::string& shell, std::string& output);

/// The text of --help.
/// @param name  as typed: "tileasm as"
[[nodiscard]] std::string help_text(const DocCommand& command, const std::string& name);
/// Makes --help of `app`, and of commands that are added to it later, that text.
void use_help_text(CLI::App& app);

/// A manual page of section 1 for the whole program, in the man macros of roff.
[[nodiscard]] std::string man_page(const DocCommand& program, const std::string& version);

/// True if this word begins names of files: FILE, DIR, FILE.npy ...
[[nodiscard]] bool names_file(const DocOption& option);
/// A completion script for "bash", "zsh" or "fish".
[[nodiscard]] std::string completion_script(const DocCommand& program, const std::string& shell);

}  // namespace tile::cli
