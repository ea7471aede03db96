// Entry points of the text form and of every form recognised by content.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vm/base/diagnostics.h"
#include "vm/ir/module.h"

namespace tile {

/// Reads text. Reports as many independent syntax and name errors as it can; the module is not validated.
/// A bare list of items without an enclosing module (as disassemblers print) is accepted; its module is named "kernels".
/// @error E03xx, E04xx, E0501 (written type differs from the value's), L0101, L0102
[[nodiscard]] Result<Module> parse_text(std::shared_ptr<const Source> source, Diagnostics& diags);

struct PrintOptions {
  bool debug_info = false;   ///< loc(...) on operations and the aliases they need
  bool pretty_names = true;  ///< keep value names of the input; else %0, %1, ...
  bool module_wrapper = true;///< `cuda_tile.module @name { ... }` around the items
};
/// Canonical text; parse_text(print_text(m)) gives an equal module, and printing that gives the same text.
[[nodiscard]] std::string print_text(const Module& m, const PrintOptions& options = {});
/// One instruction (without its regions), for diagnostics and traces.
[[nodiscard]] std::string print_inst(const Module& m, const Function& f, InstId i);
/// An attribute value in the spelling of text.
[[nodiscard]] std::string print_attr(const Module& m, AttrId id);

}  // namespace tile
