// Files of the programs: modules in any form, recognised by content, and output that appears whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/ir/module.h"

namespace tile::cli {

enum class InputKind : uint8_t { Text, Tilebc, Tileirbc };
[[nodiscard]] const char* kind_name(InputKind kind);

struct Loaded {
  Module module;
  InputKind kind = InputKind::Text;
};

/// The bytes of a file, or of standard input for "-".
[[nodiscard]] Result<std::vector<uint8_t>> read_input(const std::string& path, Diagnostics& diags);
/// The form of some bytes: what has no known magic number is text.
[[nodiscard]] InputKind recognise(std::span<const uint8_t> bytes);
/// Reads a module of any form. It is not validated.
/// @param name     what diagnostics call the input
/// @param partial  tileirbc of a newer minor version: decode what is known, with warnings where that ends
[[nodiscard]] Result<Loaded> read_module(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags, bool partial = false);
[[nodiscard]] Result<Loaded> load_module(const std::string& path, Diagnostics& diags, bool partial = false);
/// What diagnostics call an input: its path, or "<stdin>".
[[nodiscard]] std::string input_name(const std::string& path);

/// Writes text or bytes to a file, or to standard output for "-".
[[nodiscard]] Status write_output(const std::string& path, std::string_view bytes, Diagnostics& diags);

}  // namespace tile::cli
