// The commands of tileasm, apart from their command lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/assembler.h"
#include "tools/cli_files.h"
#include "tools/cli_options.h"

namespace tile::cli {

// Inputs are files of any form, folders, and "-". An empty output is the default of the command.

struct AsOptions {
  std::vector<std::string> inputs;
  std::string output;            ///< default: beside the input, with the form as ending
  std::string to = "tilebc";     ///< or tileirbc, tileirbc@13.2
  std::string bytecode_version;  ///< of tileirbc, "13.3"; empty: the lowest that can hold the module
  bool provisional = false;      ///< allow versions of tileirbc that may still change
  bool validate = true;
};
struct DisOptions {
  std::vector<std::string> inputs;
  std::string output;
  PrintOptions print;
  bool partial = false;  ///< decode what is known of a newer minor version
};
struct ConvertOptions {
  std::vector<std::string> inputs;
  std::string output;  ///< default: beside the input, with the form as ending; for text standard output
  std::string to;      ///< text, tilebc, tileirbc or tileirbc@13.2
  bool provisional = false;
};
struct StatsOptions {
  std::vector<std::string> inputs;
  bool json = false;
};
struct FmtOptions {
  std::vector<std::string> inputs;
  bool in_place = false, check = false;
};
struct RandomOptions {
  uint64_t seed = 1;
  unsigned size = 24;                   ///< actions; about three operations each
  bool exact = false;                   ///< every result is fixed in all bits
  std::vector<std::string> operations;  ///< mnemonics that are drawn often
  std::string output = "-";
  std::string job;                      ///< job file of its launch; empty: none
};
struct OpsOptions {
  std::vector<std::string> names;  ///< none: all operations
  std::string write_dir;
  bool json = false;
};

/// Each returns the exit status; errors are on standard error then. Of several inputs the worst status counts.
int run_as(const AsOptions& options, const CommonOptions& common);
int run_dis(const DisOptions& options, const CommonOptions& common);
/// Any form to any form.
int run_convert(const ConvertOptions& options, const CommonOptions& common);
/// Counts of what modules hold.
int run_stats(const StatsOptions& options, const CommonOptions& common);
/// Says where two modules, in any forms, mean something different: 0 equal, 5 different. Of two folders, the files with
/// one name apart from its ending are compared.
int run_diff(const std::string& a, const std::string& b, const CommonOptions& common);
/// `tileasm FILE`: assembles text and disassembles bytecode.
int run_short(const std::vector<std::string>& inputs, const std::string& output, const PrintOptions& print,
              const CommonOptions& common);
int run_check(const std::vector<std::string>& inputs, const CommonOptions& common);
int run_fmt(const FmtOptions& options, const CommonOptions& common);
int run_ops(const OpsOptions& options, const CommonOptions& common);
/// A valid module made from the operation table; equal options give equal modules.
int run_random(const RandomOptions& options, const CommonOptions& common);
int run_explain(const std::vector<std::string>& what, const CommonOptions& common);
/// Mnemonics of operations, and names of diagnostic codes.
[[nodiscard]] std::vector<std::string_view> mnemonics();
[[nodiscard]] std::vector<std::string_view> code_names();

/// Canonical text of a module that was read from text, with the comments and single blank lines of its source.
[[nodiscard]] std::string format_text(const Module& m);

}  // namespace tile::cli
