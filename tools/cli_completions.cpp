// Completion scripts. Each is complete in itself: completing a word starts no program.
#include <algorithm>
#include <string_view>

#include "tools/cli_docs.h"

namespace tile::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : std::string(between)) + w;
  return out;
}

std::vector<std::string> command_names(const DocCommand& d) {
  std::vector<std::string> names;
  for (const DocCommand& c : d.commands) names.push_back(c.name);
  return names;
}

// Options of a command and those of the program that every command takes.
std::vector<DocOption> options_of(const DocCommand& program, const DocCommand& command) {
  std::vector<DocOption> all;
  for (const DocOption& o : command.options)
    if (!o.positional) all.push_back(o);
  if (&program != &command)
    for (const DocOption& o : program.options)
      if (!o.positional && o.group == kCommonGroup &&
          std::none_of(all.begin(), all.end(), [&](const DocOption& have) { return have.names == o.names; }))
        all.push_back(o);
  return all;
}

std::vector<DocOption> positionals_of(const DocCommand& command) {
  std::vector<DocOption> all;
  for (const DocOption& o : command.options)
    if (o.positional) all.push_back(o);
  return all;
}

// 'text' with the quotes inside of it replaced.
std::string quoted(const std::string& text, const std::string& quote_escape) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? quote_escape : std::string(1, c);
  return out + "'";
}

// One case of the function for each command; `command` is empty where none has been typed.
std::string bash_case(const DocCommand& program, const DocCommand& c) {
  std::string out = "    " + (&program == &c ? "''" : c.name) + ")\n      case $prev in\n";
  std::vector<std::string> names;
  for (const DocOption& o : options_of(program, c)) {
    names.insert(names.end(), o.names.begin(), o.names.end());
    if (o.value.empty() || o.optional_value) continue;
    out += "        " + joined(o.names, "|") + ") ";
    out += !o.choices.empty() ? "words='" + joined(o.choices) + "'" : names_file(o) ? "files=1" : ":";
    out += " ;;\n";
  }
  out += "        *)\n          options='" + joined(names) + "'\n";
  std::vector<std::string> words;
  for (const DocOption& o : positionals_of(c)) {
    words.insert(words.end(), o.choices.begin(), o.choices.end());
    if (o.choices.empty()) out += "          files=1\n";
  }
  if (&program == &c) {
    const std::vector<std::string> commands = command_names(program);
    words.insert(words.end(), commands.begin(), commands.end());
  }
  if (!words.empty()) out += "          words='" + joined(words) + "'\n";
  return out + "          ;;\n      esac\n      ;;\n";
}

std::string bash(const DocCommand& program) {
  std::vector<std::string> with_value;
  for (const DocOption& o : program.options)
    if (!o.positional && !o.value.empty() && !o.optional_value)
      with_value.insert(with_value.end(), o.names.begin(), o.names.end());
  const std::string name = program.name;
  std::string out = "# bash completion of " + name + ", made by `" + name + " completions bash`\n_" + name +
                    "() {\n"
                    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "  local command= options= words= files= before= i\n"
                    "  COMPREPLY=()\n"
                    "  # bash makes three words of --name=value\n"
                    "  if [[ $cur == = ]]; then\n"
                    "    cur=\n"
                    "  elif [[ $prev == = && COMP_CWORD -gt 1 ]]; then\n"
                    "    prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                    "  fi\n"
                    "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
                    "    case $before in\n"
                    "      " +
                    joined(with_value, "|") +
                    ") ;;\n"
                    "      *)\n"
                    "        case ${COMP_WORDS[i]} in\n"
                    "          " +
                    joined(command_names(program), "|") +
                    ") command=${COMP_WORDS[i]}; break ;;\n"
                    "        esac\n"
                    "        ;;\n"
                    "    esac\n"
                    "    before=${COMP_WORDS[i]}\n"
                    "  done\n"
                    "  case $command in\n";
  out += bash_case(program, program);
  for (const DocCommand& c : program.commands) out += bash_case(program, c);
  out +=
      "  esac\n"
      "  if [[ $cur == -?* || ( $cur == - && -n $options ) ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
      "    return\n"
      "  fi\n"
      "  if [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "  fi\n"
      "  if [[ -n $files ]]; then\n"
      "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "    compopt -o filenames 2> /dev/null || :  # not while it is tested\n"
      "  fi\n"
      "}\n"
      "complete -F _" +
      name + " " + name + "\n";
  return out;
}

std::string zsh_action(const DocOption& o) {
  const std::string what = o.positional ? o.names[0] : o.value;
  if (!o.choices.empty()) return ":" + what + ":(" + joined(o.choices) + ")";
  return ":" + what + ":" + (names_file(o) ? "_files" : " ");
}

std::string zsh_spec(const DocOption& o) {
  std::string help;
  for (const char c : o.help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') help += '\\';
    help += c;
  }
  std::string names = o.several ? "'*'" : o.names.size() > 1 ? "'(" + joined(o.names) + ")'" : "";
  if (o.names.size() > 1) names += "{";
  for (size_t i = 0; i < o.names.size(); ++i) {
    const bool joins = !o.value.empty() && o.names[i].starts_with("--");
    names += (i ? "," : "") + o.names[i] + (o.optional_value ? "=-" : joins ? "=" : "");
  }
  if (o.names.size() > 1) names += "}";
  // An option whose value may be left out takes it only behind '='.
  std::string action = o.value.empty() ? "" : zsh_action(o);
  if (o.optional_value) action = ":" + action;
  return names + quoted("[" + help + "]" + action, "'\\''");
}

std::string zsh_arguments(const DocCommand& program, const DocCommand& c) {
  std::string out = "_arguments -s";
  for (const DocOption& o : options_of(program, c)) out += " \\\n        " + zsh_spec(o);
  return out;
}

std::string zsh(const DocCommand& program) {
  const std::string name = program.name;
  std::string out = "#compdef " + name + "\n# zsh completion of " + name + ", made by `" + name +
                    " completions zsh`\n_" + name +
                    "() {\n  local curcontext=$curcontext state line command= i\n  local -a commands\n  typeset -A "
                    "opt_args\n  commands=(\n";
  for (const DocCommand& c : program.commands) {
    std::string help;
    for (const char ch : c.summary()) help += ch == ':' ? "\\:" : std::string(1, ch);
    out += "    " + quoted(c.name + ":" + help, "'\\''") + "\n";
  }
  out += "  )\n  for ((i = 2; i < CURRENT; ++i)); do\n    case $words[i] in\n      " +
         joined(command_names(program), "|") +
         ")\n        command=$words[i]\n        words=(\"${(@)words[i,-1]}\")\n        ((CURRENT -= i - 1))\n"
         "        break\n        ;;\n    esac\n  done\n  case $command in\n";
  for (const DocCommand& c : program.commands) {
    out += "    " + c.name + ")\n      " + zsh_arguments(program, c);
    for (const DocOption& o : positionals_of(c))
      out += " \\\n        " + quoted((o.several ? "*" : "") + zsh_action(o), "'\\''");
    out += "\n      ;;\n";
  }
  out += "    *)\n      " + zsh_arguments(program, program) +
         " \\\n        '1: :->first' \\\n        '*:file:_files'\n"
         "      if [[ $state == first ]]; then\n        _describe -t commands command commands\n        _files\n      "
         "fi\n      ;;\n"
         "  esac\n}\nif [[ $funcstack[1] == _" +
         name + " ]]; then\n  _" + name + " \"$@\"\nelse\n  compdef _" + name + " " + name + "\nfi\n";
  return out;
}

std::string fish_option(const std::string& condition, const std::string& name, const DocOption& o) {
  std::string out = "complete -c " + name + condition;
  for (const std::string& n : o.names) out += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
  if (!o.value.empty() && !o.optional_value) out += names_file(o) ? " -r -F" : " -x";
  if (!o.choices.empty()) out += " -a " + quoted(joined(o.choices), "\\'");
  return out + " -d " + quoted(o.help, "\\'") + "\n";
}

std::string fish(const DocCommand& program) {
  const std::string name = program.name;
  std::string out = "# fish completion of " + name + ", made by `" + name + " completions fish`\n";
  for (const DocCommand& c : program.commands)
    out +=
        "complete -c " + name + " -n __fish_use_subcommand -a " + c.name + " -d " + quoted(c.summary(), "\\'") + "\n";
  const std::string no_command = " -n 'not __fish_seen_subcommand_from " + joined(command_names(program)) + "'";
  for (const DocOption& o : options_of(program, program))
    out += fish_option(o.group == kCommonGroup ? "" : no_command, name, o);
  for (const DocCommand& c : program.commands) {
    const std::string condition = " -n '__fish_seen_subcommand_from " + c.name + "'";
    for (const DocOption& o : c.options) {
      if (!o.positional && o.group == kCommonGroup) continue;
      if (!o.positional) {
        out += fish_option(condition, name, o);
      } else if (!o.choices.empty()) {
        out += "complete -c " + name + condition + " -f -a " + quoted(joined(o.choices), "\\'") + "\n";
      }
    }
  }
  return out;
}

}  // namespace

bool names_file(const DocOption& o) {
  static constexpr std::string_view kFiles[] = {"FILE", "DIR", "KERNEL", "JOB", "BUNDLE", "A", "B"};
  const std::string& word = o.positional ? o.names[0] : o.value;
  return std::any_of(std::begin(kFiles), std::end(kFiles), [&](std::string_view file) {
    return word == file || (file.size() > 1 && word.starts_with(file));
  });
}

std::string completion_script(const DocCommand& program, const std::string& shell) {
  return shell == "bash" ? bash(program) : shell == "zsh" ? zsh(program) : fish(program);
}

}  // namespace tile::cli
