// Options, reporting and the frame around main().
#include "tools/cli_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "tilevm_build_info.h"
#include "tools/cli_docs.h"
#include "vm/base/element_type.h"

namespace tile::cli {
namespace {

void put(FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The option decides, then https://no-color.org, then https://bixense.com/clicolors, then what standard error is.
bool color_wanted(const CommonOptions& options) {
  if (options.color == "always") return true;
  if (options.color == "never" || !variable("NO_COLOR").empty()) return false;
  if (const std::string_view force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  if (variable("CLICOLOR") == "0" || variable("TERM").empty() || variable("TERM") == "dumb") return false;
  return is_terminal(STDERR_FILENO);
}

// How errors are shown may be said behind the error that ended parsing.
void read_early(int argc, const char* const* argv, CommonOptions& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    for (const auto& [name, to] : {std::pair{"--diagnostics", &options.diagnostics}, {"--color", &options.color}}) {
      if (arg == name && i + 1 < argc) *to = argv[i + 1];
      if (arg.starts_with(std::string(name) + "=")) *to = arg.substr(arg.find('=') + 1);
    }
  }
}

/// The first option that was given with an empty value; empty if there is none.
std::string empty_option(const CLI::App& app) {
  for (const CLI::Option* o : app.get_options([](const CLI::Option* o) { return o->count() > 0 && !o->get_positional() && o->get_items_expected_min() > 0; }))
    for (const std::string& value : o->results())
      if (value.empty()) return o->get_name();
  for (const CLI::App* command : app.get_subcommands())
    if (std::string name = empty_option(*command); !name.empty()) return name;
  return {};
}

}  // namespace

bool is_terminal(int fd) {
  return isatty(fd) == 1;
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option("--diagnostics", options.diagnostics,
                 "How errors are written to standard error; json: one object a line")
      ->type_name("FORM")
      ->check(CLI::IsMember({"text", "json"}))
      ->group(kCommonGroup)
      ->capture_default_str();
  app.add_option("--color", options.color,
                 "Colours in errors; auto: on terminals, unless the environment says otherwise")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group(kCommonGroup)
      ->capture_default_str();
  app.add_flag("-v,--verbose", options.verbose, "Say on standard error what is done")->group(kCommonGroup);
  app.fallthrough();
}

int report(const Diagnostics& diags, const CommonOptions& options) {
  if (!describing()) put(stderr, options.diagnostics == "json" ? render_json(diags) : render(diags, color_wanted(options)));
  const Diagnostic* first = diags.first_error();
  return first ? exit_code(code_info(first->code).cls) : kOk;
}

int usage_error(const std::string& program, const std::string& message, const CommonOptions& options,
                const std::string& help) {
  Diagnostics diags;
  Place place;
  place.file = program;
  (void)diags.error(Code::U0001, std::move(place), message, help.empty() ? "see " + program + " --help" : help);
  return report(diags, options);
}

std::string version_text(const std::string& program) {
  const std::string git = build::kGit;
  return program + " " + build::kVersion + (git.empty() ? "" : " (" + git + ")") + "\n" +
         "forms: text; tilebc; tileirbc 13." + std::to_string(kOldestVersion.minor) + " to 13." +
         std::to_string(kNewestVersion.minor) + "\n" + "build: " + build::kCompiler + ", " + build::kTarget + ", " +
         build::kBuildType + ", " + build::kOptions;
}

std::string build_version() {
  return build::kVersion;
}

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        const bool hexadecimal = text.starts_with("0x");
        const char *begin = text.data() + (hexadecimal ? 2 : 0), *end = text.data() + text.size();
        uint64_t value = 0;
        const auto [stop, error] = std::from_chars(begin, end, value, hexadecimal ? 16 : 10);
        if (error == std::errc() && stop == end && value >= least && value <= most) return {};
        return "'" + text + "' is no whole number from " + std::to_string(least) + " to " + std::to_string(most);
      },
      "");
}

bool parse_command_line(CLI::App& app, int argc, const char* const* argv, CommonOptions& options, int& status) {
  if (describing()) {
    take_description(app);
    return false;
  }
  try {
    app.parse(argc, argv);
    const std::string empty = empty_option(app);
    if (empty.empty()) return true;
    status = usage_error(app.get_name(), empty + ": the value is empty", options);
    return false;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      status = app.exit(e);  // help or version, to standard output
    } else {
      read_early(argc, argv, options);
      status = usage_error(app.get_name(), e.what(), options);
    }
    return false;
  }
}

int run_program(const char* name, const std::function<int()>& body) {
  // A reader that has seen enough, such as head, ends this program and needs no message.
  std::signal(SIGPIPE, SIG_DFL);
  // A failed internal check says so and aborts: a fault of this program, with the status of one.
  std::signal(SIGABRT, [](int) { _exit(kInternal); });
  try {
    const int status = body();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    std::fprintf(stderr, "%s: error: standard output cannot be written [E0902]\n", name);
    return status == kOk ? exit_code(FailureClass::Environment) : status;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: error: not enough memory [E0903]\n", name);
    return exit_code(FailureClass::Environment);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: internal error: %s [I0001]\n", name, e.what());
    return kInternal;
  }
}

}  // namespace tile::cli
