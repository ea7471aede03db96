// tileasm: translates, checks, formats and explains Tile IR. This file holds the command line only.
#include <CLI/CLI.hpp>

#include "assembler/printer.h"
#include "tools/tileasm_commands.h"

namespace {

using namespace tile::cli;

constexpr char kAbout[] =
    "Assembler and disassembler of Tile IR: text, tilebc and tileirbc. Forms are recognised by content.\n"
    "Without a command, text is assembled (as) and bytecode is disassembled (dis).";

constexpr char kExamples[] =
    "\nExamples:\n"
    "  tileasm k.tile                    assembles k.tile to k.tilebc\n"
    "  tileasm k.tile -o out.tilebc      the same, to another file\n"
    "  tileasm as k.tile --emit tileirbc --bytecode-version 13.3\n"
    "  tileasm k.tilebc                  prints bytecode as text\n"
    "  tileasm dis --debug-info k.bin    with source locations\n"
    "  tileasm check *.tile *.tilebc     validates; nothing is printed where all is well\n"
    "  tileasm fmt -i k.tile             rewrites k.tile in canonical form, comments kept\n"
    "  tileasm as - -o - < k.tile | tileasm dis -\n"
    "  tileasm convert k.tile --to tileirbc@13.2 -o k.tileirbc\n"
    "  tileasm diff k.tile k.tileirbc    first difference of each entry; exit 5 if there is one\n"
    "  tileasm ops mmaf                  one operation in full; without a name, all of them\n"
    "  tileasm explain E0501             what a code means\n"
    "\n"
    "Exit status: 0 ok; 1 input rejected; 2 command line not understood; 3 file or memory; 5 modules differ; 6 limit reached; 70 fault "
    "of this program";

void add_print_options(CLI::App& app, tile::PrintOptions& print) {
  app.add_flag("--debug-info", print.debug_info, "Print debug locations");
  app.add_flag("!--no-names", print.pretty_names, "Number all values instead of keeping their names");
  app.add_flag("!--bare", print.module_wrapper, "Print the items without the module around them");
}

int run(int argc, char** argv) {
  tile::install_inst_printer();
  CLI::App app(kAbout, "tileasm");
  app.footer(kExamples);
  app.set_version_flag("--version", version_text("tileasm"), "Print version, forms and build");
  CommonOptions common;
  add_common_options(app, common);
  app.require_subcommand(0, 1);

  std::string input, output;
  tile::PrintOptions print;
  app.add_option("FILE", input, "Input, or - for standard input");
  app.add_option("-o,--output", output, "Output, or - for standard output");
  add_print_options(app, print);
  int status = 0;
  const auto on = [&](CLI::App* command, auto action) { command->callback([&status, action] { status = action(); }); };

  AsOptions as;
  CLI::App* as_command = app.add_subcommand("as", "Assemble: text (or any other form) to bytecode");
  as_command->add_option("FILE", as.input, "Input, or - for standard input")->required();
  as_command->add_option("-o,--output", as.output,
                         "Output, or - for standard output; default: the input's name with the form as ending");
  as_command->add_option("--emit", as.emit, "Form of the output")
      ->check(CLI::IsMember({"tilebc", "tileirbc"}))
      ->capture_default_str();
  as_command
      ->add_option("--bytecode-version", as.bytecode_version,
                   "Version of tileirbc; default: the lowest that can hold the module")
      ->check(CLI::IsMember({"13.1", "13.2", "13.3", "13.4", "13.5"}));
  as_command->add_flag("--provisional", as.provisional, "Allow versions of tileirbc that may still change");
  as_command->add_flag("!--no-validate", as.validate, "Do not check the rules of the language");

  DisOptions dis;
  CLI::App* dis_command = app.add_subcommand("dis", "Disassemble: any form to text");
  dis_command->add_option("FILE", dis.input, "Input, or - for standard input")->required();
  dis_command->add_option("-o,--output", dis.output, "Output, or - for standard output")->capture_default_str();
  add_print_options(*dis_command, dis.print);

  dis_command->add_flag("--partial", dis.partial, "Of a newer minor version of tileirbc, print what is known and mark where that ends");

  ConvertOptions convert;
  CLI::App* convert_command = app.add_subcommand("convert", "Translate between forms and versions");
  convert_command->add_option("FILE", convert.input, "Input, or - for standard input")->required();
  convert_command->add_option("--to", convert.to, "text, tilebc, tileirbc, or a version of it such as tileirbc@13.2")->required();
  convert_command->add_option("-o,--output", convert.output, "Output, or - for standard output");
  convert_command->add_flag("--provisional", convert.provisional, "Allow versions of tileirbc that may still change");

  StatsOptions stats;
  CLI::App* stats_command = app.add_subcommand("stats", "Count what modules hold");
  stats_command->add_option("FILE", stats.inputs, "Inputs; - for standard input")->required();
  stats_command->add_flag("--json", stats.json, "As JSON, one object a line");

  std::string diff_a, diff_b;
  CLI::App* diff_command = app.add_subcommand("diff", "Say where two modules mean something different; forms, names and locations do not count");
  diff_command->add_option("A", diff_a, "First input, or - for standard input")->required();
  diff_command->add_option("B", diff_b, "Second input")->required();

  std::vector<std::string> check_inputs;
  CLI::App* check_command = app.add_subcommand("check", "Read and validate files of any form");
  check_command->add_option("FILE", check_inputs, "Inputs; - for standard input")->required();

  FmtOptions fmt;
  CLI::App* fmt_command = app.add_subcommand("fmt", "Print text in canonical form, with its comments");
  fmt_command->add_option("FILE", fmt.inputs, "Text files; - for standard input")->required();
  fmt_command->add_flag("-i,--in-place", fmt.in_place, "Rewrite the files");
  fmt_command->add_flag("--check", fmt.check,
                        "Only name the files that are not in canonical form, and exit with 1 if there are any");

  OpsOptions ops;
  CLI::App* ops_command = app.add_subcommand("ops", "List the operations, or show one in full");
  ops_command->add_option("NAME", ops.name, "Mnemonic or opcode number");
  ops_command->add_flag("--json", ops.json, "As JSON");
  ops_command->add_option("--write", ops.write_dir, "Write ops.md, ops.json and diagnostics.md to this folder");

  std::string what;
  CLI::App* explain_command = app.add_subcommand("explain", "Say what a diagnostic code or an operation is");
  explain_command->add_option("WHAT", what, "Code such as E0501, or a mnemonic")->required();

  on(as_command, [&] { return run_as(as, common); });
  on(dis_command, [&] { return run_dis(dis, common); });
  on(convert_command, [&] { return run_convert(convert, common); });
  on(stats_command, [&] { return run_stats(stats, common); });
  on(diff_command, [&] { return run_diff(diff_a, diff_b, common); });
  on(check_command, [&] { return run_check(check_inputs, common); });
  on(fmt_command, [&] { return run_fmt(fmt, common); });
  on(ops_command, [&] { return run_ops(ops, common); });
  on(explain_command, [&] { return run_explain(what, common); });

  if (!parse_command_line(app, argc, argv, common, status)) return status;
  if (!app.get_subcommands().empty()) return status;
  if (input.empty()) {
    return usage_error("tileasm", "no input and no command", common,
                       "tileasm --help shows the commands, with examples");
  }
  return run_short(input, output, print, common);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("tileasm", [&] { return run(argc, argv); });
}
