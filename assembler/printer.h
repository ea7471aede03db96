// What users of the printer need beyond assembler.h: names of values, and printing of single instructions at little
// cost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assembler/assembler.h"

namespace tile {

/// The names under which the values of a function are printed, without the percent sign. Unique wherever the language
/// needs it: among all values that are visible at one place. A name of the input is kept where it is free, else it gets
/// a number behind it; characters that the text form has no place for become '_'. Values without a name, or whose name
/// is a number, get %0, %1, ... in order, nameless parameters %arg0, %arg1, ... and nameless loop indices %i.
class ValueNames {
 public:
  /// @param pretty  false: all values are numbered
  ValueNames(const Module& m, const Function& f, bool pretty = true);
  /// The name of a value; "?" and its number where the function has no such value.
  [[nodiscard]] std::string operator[](ValueId v) const {
    return v < names_.size() ? names_[v] : "?" + std::to_string(v);
  }

 private:
  std::vector<std::string> names_;
};

/// As print_inst of assembler.h, for callers that print many instructions of one function.
[[nodiscard]] std::string print_inst(const Module& m, const Function& f, InstId i, const ValueNames& names);

/// Where something of the input text stands in printed text: the byte offset of an operation, entry or global in the
/// module's source, and the offset of its first line in the output. Lets a formatter carry comments over.
struct Anchor {
  uint32_t source;
  size_t output;
};
/// As print_text of assembler.h; appends the anchors in the order of the output.
[[nodiscard]] std::string print_text(const Module& m, const PrintOptions& options, std::vector<Anchor>& anchors);

/// Lets Module::place() add the printed instruction to diagnostics of binary inputs. Programs call this once at the
/// start.
void install_inst_printer();

}  // namespace tile
