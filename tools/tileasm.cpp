// tileasm: translates, checks, formats and explains Tile IR. This file holds the command line only.
#include <CLI/CLI.hpp>
#include <charconv>
#include <system_error>

#include "assembler/printer.h"
#include "tools/cli_docs.h"
#include "tools/tileasm_commands.h"

namespace {

using namespace tile::cli;

constexpr char kAbout[] =
    "Assembler and disassembler of Tile IR\n"
    "Reads text, tilebc and tileirbc, recognised by content. Without a command, text is assembled (as)\n"
    "and bytecode is disassembled (dis).";

constexpr char kExamples[] = R"(Inputs:
  Files, folders, and - for standard input. Folders are walked for files that end in .tile, .tilebc
  or .tileirbc, and for others that begin like a module. Commands that write files need -o DIR/ for
  several inputs.

Examples:
  tileasm k.tile                     assembles k.tile to k.tilebc
  tileasm k.tile -o out.tilebc       the same, to another file
  tileasm --bare --no-names k.tilebc  prints the entries of bytecode, values numbered
  tileasm --debug-info k.tileirbc    with source locations
  tileasm as - -o - < k.tile | tileasm dis -
  tileasm as --to tileirbc@13.3 kernels/ -o build/
  tileasm check kernels/             validates; nothing is printed where all is well
  tileasm fmt -i kernels/            rewrites text in canonical form, comments kept
  tileasm diff k.tile k.tileirbc     first difference of each entry; exit 5 if there is one
  tileasm explain E0501              what a code means
  tileasm random --seed 7 -o x.tile  a valid module for tests of other programs
  tileasm --diagnostics json check k.tile
  tileasm --color always check k.tile 2>&1 | less -R
  tileasm -v check kernels/          says what is read and how large it is
  tileasm --version

Exit status:
  0 ok; 1 input rejected; 2 command line not understood; 3 file or memory; 5 modules differ;
  6 limit reached; 70 fault of this program. Of several inputs the greatest counts.)";

constexpr char kVersions[] = "Allow versions of tileirbc that may still change";
constexpr char kInputs[] = "Files of any form, folders, or - for standard input";

struct Settings {
  CommonOptions common;
  std::vector<std::string> short_inputs;
  std::string short_output;
  tile::PrintOptions short_print;
  AsOptions as;
  DisOptions dis;
  ConvertOptions convert;
  StatsOptions stats;
  std::string diff_a, diff_b;
  std::vector<std::string> check_inputs;
  FmtOptions fmt;
  OpsOptions ops;
  RandomOptions random;
  std::vector<std::string> what;
  std::string shell, docs_output = "-";
};

void add_print_options(CLI::App& app, tile::PrintOptions& print) {
  app.add_flag("--debug-info", print.debug_info, "Print debug locations");
  app.add_flag_callback(
      "--no-names", [&print] { print.pretty_names = false; }, "Number all values instead of keeping their names");
  app.add_flag_callback(
      "--bare", [&print] { print.module_wrapper = false; }, "Print the items without the module around them");
}

void add_inputs(CLI::App& app, std::vector<std::string>& inputs, const char* help = kInputs) {
  app.add_option("FILE", inputs, help)->required();
}

void add_output(CLI::App& app, std::string& output, const char* help) {
  app.add_option("-o,--output", output, help)->type_name("FILE|DIR/");
}

void add_translations(CLI::App& app, Settings& s) {
  CLI::App* as = app.add_subcommand("as", "Assemble: text, or any other form, to bytecode");
  add_inputs(*as, s.as.inputs);
  add_output(*as, s.as.output, "Output, or - for standard output; default: the input's name with the form as ending");
  as->add_option("--to,--emit", s.as.to, "tilebc, tileirbc, or a version of it such as tileirbc@13.2")
      ->type_name("FORM")
      ->capture_default_str();
  as->add_option("--bytecode-version", s.as.bytecode_version,
                 "Version of tileirbc; default: the lowest that can hold the module")
      ->type_name("VERSION")
      ->check(CLI::IsMember({"13.1", "13.2", "13.3", "13.4", "13.5"}));
  as->add_flag("--provisional", s.as.provisional, kVersions);
  as->add_flag_callback(
      "--no-validate", [&s] { s.as.validate = false; }, "Do not check the rules of the language");
  as->footer(R"(Examples:
  tileasm as k.tile                          k.tilebc
  tileasm as k.tile -o out/                  out/k.tilebc
  tileasm as k.tile --to tileirbc            k.tileirbc, of the lowest version that can hold it
  tileasm as k.tile --to tileirbc@13.2
  tileasm as k.tile --emit tileirbc --bytecode-version 13.3
  tileasm as k.tile --to tileirbc@13.5 --provisional
  tileasm as wrong.tile --no-validate        for tests of other readers
  tileasm as - -o - < k.tile > k.tilebc
  tileasm as kernels/ more.tile -o build/    every module of the folder, and one more)");

  CLI::App* dis = app.add_subcommand("dis", "Disassemble: any form to text");
  add_inputs(*dis, s.dis.inputs);
  add_output(*dis, s.dis.output, "Output; default: standard output");
  add_print_options(*dis, s.dis.print);
  dis->add_flag("--partial", s.dis.partial,
                "Of a newer minor version of tileirbc, print what is known and mark where that ends");
  dis->footer(R"(Examples:
  tileasm dis k.tilebc
  tileasm dis k.tilebc -o k.tile
  tileasm dis --debug-info k.tileirbc        with loc(...) where the file has locations
  tileasm dis --no-names --bare k.tilebc     as other disassemblers print
  tileasm dis --partial newer.tileirbc
  tileasm dis build/ -o text/                every module of the folder)");

  CLI::App* convert = app.add_subcommand("convert", "Translate between forms and versions");
  add_inputs(*convert, s.convert.inputs);
  convert->add_option("--to", s.convert.to, "text, tilebc, tileirbc, or a version of it such as tileirbc@13.2")
      ->type_name("FORM")
      ->required();
  add_output(*convert, s.convert.output,
             "Output; default: the input's name with the form as ending, for text standard output");
  convert->add_flag("--provisional", s.convert.provisional, kVersions);
  convert->footer(R"(Examples:
  tileasm convert k.tile --to tileirbc@13.2 -o old.tileirbc
  tileasm convert k.tileirbc --to tilebc
  tileasm convert k.tilebc --to text
  tileasm convert k.tile --to tileirbc@13.5 --provisional
  tileasm convert kernels/ --to tilebc -o build/)");
}

void add_views(CLI::App& app, Settings& s) {
  CLI::App* stats = app.add_subcommand("stats", "Count what modules hold");
  add_inputs(*stats, s.stats.inputs);
  stats->add_flag("--json", s.stats.json, "As JSON, one object a line");
  stats->footer("Examples:\n  tileasm stats k.tile\n  tileasm stats --json kernels/ | jq .instructions");

  CLI::App* diff = app.add_subcommand(
      "diff", "Say where two modules mean something different; forms, names and locations do not count");
  diff->add_option("A", s.diff_a, "First input, or a folder")->required();
  diff->add_option("B", s.diff_b, "Second input, or a folder")->required();
  diff->footer(R"(Examples:
  tileasm diff k.tile k.tilebc
  tileasm diff old.tilebc - < new.tilebc
  tileasm diff kernels/ build/               files with one name apart from its ending)");

  CLI::App* check = app.add_subcommand("check", "Read and validate files of any form");
  add_inputs(*check, s.check_inputs);
  check->footer("Examples:\n  tileasm check k.tile\n  tileasm check kernels/ build/*.tilebc");

  CLI::App* fmt = app.add_subcommand("fmt", "Print text in canonical form, with its comments");
  add_inputs(*fmt, s.fmt.inputs, "Text files, folders, or - for standard input");
  fmt->add_flag("-i,--in-place", s.fmt.in_place, "Rewrite the files");
  fmt->add_flag("--check", s.fmt.check,
                "Only name the files that are not in canonical form, and exit with 1 if there are any");
  fmt->footer("Examples:\n  tileasm fmt k.tile\n  tileasm fmt --in-place kernels/\n  tileasm fmt --check kernels/");
}

void add_references(CLI::App& app, Settings& s) {
  CLI::App* ops = app.add_subcommand("ops", "List the operations, or show some in full");
  ops->add_option("NAME", s.ops.names, "Mnemonics or opcode numbers");
  ops->add_flag("--json", s.ops.json, "As JSON");
  ops->add_option("--write", s.ops.write_dir, "Write ops.md, ops.json and diagnostics.md to this folder")
      ->type_name("DIR");
  ops->footer(R"(Examples:
  tileasm ops                                all of them, a line each
  tileasm ops mmaf 0x49
  tileasm ops --json mmaf
  tileasm ops --write spec)");

  CLI::App* explain = app.add_subcommand("explain", "Say what a diagnostic code or an operation is");
  explain->add_option("WHAT", s.what, "Codes such as E0501, or mnemonics")->required();
  explain->footer("Examples:\n  tileasm explain E0501\n  tileasm explain mmaf");

  CLI::App* random = app.add_subcommand("random", "Make a valid module of random operations, for tests of other programs");
  random->add_option("--seed", s.random.seed, "Equal seeds and options give equal modules")
      ->check([](const std::string& word) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        return error == std::errc() && end == word.data() + word.size() ? "" : "'" + word + "' is no number from 0 to 2^64 - 1";
      })
      ->capture_default_str();
  random->add_option("--size", s.random.size, "How much it does; about three operations for each")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  random->add_flag("--exact", s.random.exact, "Only operations whose results are fixed in every bit");
  random->add_option("--op", s.random.operations, "Mnemonic of an operation to draw often; may be repeated")->type_name("NAME");
  random->add_option("-o,--output", s.random.output, "Text of the module; its first lines say how to launch it")
      ->type_name("FILE")
      ->capture_default_str();
  random->add_option("--job", s.random.job, "Write a job file for tilevm run, too")->type_name("FILE");
  random->footer(R"(Examples:
  tileasm random --seed 7 -o x.tile
  tileasm random --seed 7 --size 200 --exact -o x.tile --job x.json
  tileasm random --seed 3 --op mmaf --op reduce | tileasm as - -o x.tilebc)");
  add_docs_commands(app, s.shell, s.docs_output);
}

DocCommand describe_all(const CLI::App& app) {
  const auto words = [](const std::vector<std::string_view>& v) {
    return std::vector<std::string>(v.begin(), v.end());
  };
  DocCommand doc = describe(app);
  std::vector<std::string> both = words(code_names());
  const std::vector<std::string> names = words(mnemonics());
  both.insert(both.end(), names.begin(), names.end());
  offer_words(doc.command("ops"), "NAME", names);
  offer_words(doc.command("explain"), "WHAT", both);
  for (DocOption& o : doc.command("random").options)
    if (o.value == "NAME") o.choices = names;
  for (const char* command : {"as", "convert"})
    for (DocOption& o : doc.command(command).options)
      if (o.value == "FORM")
        o.choices = {"tilebc", "tileirbc", "tileirbc@13.1", "tileirbc@13.2", "tileirbc@13.3", "tileirbc@13.4"};
  for (DocOption& o : doc.command("convert").options)
    if (o.value == "FORM") o.choices.insert(o.choices.begin(), "text");
  return doc;
}

int run_command(const CLI::App& app, const std::string& command, const Settings& s) {
  if (command == "as") return run_as(s.as, s.common);
  if (command == "dis") return run_dis(s.dis, s.common);
  if (command == "convert") return run_convert(s.convert, s.common);
  if (command == "stats") return run_stats(s.stats, s.common);
  if (command == "diff") return run_diff(s.diff_a, s.diff_b, s.common);
  if (command == "check") return run_check(s.check_inputs, s.common);
  if (command == "fmt") return run_fmt(s.fmt, s.common);
  if (command == "ops") return run_ops(s.ops, s.common);
  if (command == "random") return run_random(s.random, s.common);
  if (command == "explain") return run_explain(s.what, s.common);
  const DocCommand doc = describe_all(app);
  tile::Diagnostics diags;
  (void)write_output(s.docs_output, command == "man" ? man_page(doc, build_version()) : completion_script(doc, s.shell),
                     diags)
      .ok();
  return report(diags, s.common);
}

int run(int argc, char** argv) {
  tile::install_inst_printer();
  Settings s;
  CLI::App app(kAbout, "tileasm");
  use_help_text(app);
  app.footer(kExamples);
  app.set_version_flag("--version", version_text("tileasm"), "Print version, forms and build");
  add_common_options(app, s.common);
  app.require_subcommand(0, 1);
  app.add_option("FILE", s.short_inputs, kInputs);
  add_output(app, s.short_output, "Output, or - for standard output");
  add_print_options(app, s.short_print);
  add_translations(app, s);
  add_views(app, s);
  add_references(app, s);

  int status = 0;
  if (!parse_command_line(app, argc, argv, s.common, status)) return status;
  const auto commands = app.get_subcommands();
  if (!commands.empty()) {
    // What a command does not take falls through to the program, which has no use for it then.
    const std::string command = commands[0]->get_name();
    for (const CLI::Option* o : app.get_options())
      if (o->count() > 0 && o->get_group() != kCommonGroup)
        return usage_error(
            "tileasm", command + ": '" + (o->get_positional() ? o->results()[0] : o->get_name()) + "' is not expected",
            s.common, "see tileasm " + command + " --help");
    return run_command(app, command, s);
  }
  if (s.short_inputs.empty()) {
    return usage_error("tileasm", "no input and no command", s.common,
                       "tileasm --help shows the commands, with examples");
  }
  return run_short(s.short_inputs, s.short_output, s.short_print, s.common);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("tileasm", [&] { return run(argc, argv); });
}
