// Commands over several files and folders: which files those are, and where what is made of each goes.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/cli_files.h"
#include "tools/cli_options.h"

namespace tile::cli {

struct Input {
  std::string path;      ///< as it is opened; "-": standard input
  std::string relative;  ///< its place below an output folder, without ending: "sub/k"
  bool found = false;    ///< in a folder, not named on the command line
};

struct Inputs {
  std::vector<Input> files;
  bool several = false;  ///< more than one argument, or a folder
};

/// Replaces folders by the files below them, sorted by name: those that end in .tile, .tilebc or .tileirbc, and those
/// whose first bytes say what they are. Names that begin with a dot are left out, links to folders are not followed.
/// A folder without such a file is an error; the rest is listed all the same. U0001, E0901.
[[nodiscard]] Inputs expand_inputs(const std::vector<std::string>& arguments, Diagnostics& diags);

/// Where outputs go: to the one file that -o names, or, below a folder, to the place that the input has in its own.
class Outputs {
 public:
  Outputs(std::string output, bool several) : output_(std::move(output)), several_(several) {}
  /// U0001 if there are several inputs but -o names no folder.
  [[nodiscard]] Status check(Diagnostics& diags) const;
  /// @param ending    of the form that is written, without a dot
  /// @param otherwise  the path where -o was not given
  /// @error U0001 the path is that of an input or of another output; E0902
  [[nodiscard]] Result<std::string> path(const Input& input, const std::string& ending, const std::string& otherwise,
                                         Diagnostics& diags);

 private:
  [[nodiscard]] bool is_folder() const;
  std::string output_;
  bool several_;
  std::set<std::string> given_;
};

/// Does `body` for each input and returns the worst, that is the greatest, exit status.
int for_each_input(const std::vector<std::string>& arguments, const CommonOptions& common,
                   const std::function<int(const Input&)>& body);
/// The same for commands that write a file for each.
int for_each_input(const std::vector<std::string>& arguments, const std::string& output, const CommonOptions& common,
                   const std::function<int(const Input&, Outputs&)>& body);

}  // namespace tile::cli
