// random: valid modules drawn from the operation table, for tests of readers and compilers.
#include <filesystem>

#include "tools/tileasm_commands.h"
#include "vm/ops/op_table.h"
#include "vm/random/random_program.h"

namespace tile::cli {
namespace {

std::string launch_words(const random_program::Program& program) {
  std::string out = "--grid " + std::to_string(program.grid[0]) + "," + std::to_string(program.grid[1]) + "," +
                    std::to_string(program.grid[2]);
  for (const std::string& arg : program.args) out += " --arg '" + arg + "'";
  return out;
}

/// The path by which a job file names its kernel.
std::string beside(const std::string& job, const std::string& kernel) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(job, error).parent_path();
  const auto path = std::filesystem::proximate(std::filesystem::absolute(kernel, error), folder, error);
  return error ? kernel : path.string();
}

}  // namespace

int run_random(const RandomOptions& options, const CommonOptions& common) {
  Diagnostics diags;
  random_program::Options wanted;
  wanted.seed = options.seed;
  wanted.size = options.size;
  wanted.exact = options.exact;
  for (const std::string& name : options.operations) {
    const OpDef* op = find_op(name);
    if (!op) {
      const std::string near = nearest(name, mnemonics());
      return usage_error("tileasm", "random: there is no operation '" + name + "'", common,
                         near.empty() ? "tileasm ops lists the operations" : "did you mean '" + near + "'?");
    }
    wanted.prefer.push_back(static_cast<Opcode>(op->code));
  }
  if (!options.job.empty() && options.output == "-")
    return usage_error("tileasm", "random: --job needs a file for the module", common, "add -o FILE");
  const random_program::Program program = random_program::make(wanted);
  // What is needed to launch it stands on top, as text has no place for it.
  const std::string text = "// tileasm random --seed " + std::to_string(options.seed) + " --size " + std::to_string(options.size) +
                           (options.exact ? " --exact" : "") + "\n// tilevm FILE " + launch_words(program) + "\n" +
                           print_text(program.module);
  if (write_output(options.output, text, diags) && !options.job.empty())
    (void)write_output(options.job, program.job(beside(options.job, options.output)), diags).ok();
  return report(diags, common);
}

}  // namespace tile::cli
