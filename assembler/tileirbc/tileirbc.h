// NVIDIA's public binary form, versions 13.1 to 13.5. Described in spec/tileirbc.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/ir/module.h"

namespace tile {

/// True if the bytes start with the magic number of the form.
[[nodiscard]] bool is_tileirbc(std::span<const uint8_t> bytes);

struct TileirbcReadOptions {
  /// Keep in Module::tileirbc_layout what the file chose where the form leaves a choice, for write_tileirbc().
  bool layout = true;
  /// Read a file of a version above kNewestVersion as if it were of that version. What cannot be read is left out with
  /// a warning that says where: the rest of a body, further functions, locations. The last operation before a gap in a
  /// body has the attribute `not_decoded`. Such a module is for looking at; it has no layout.
  bool partial = false;
};

/// Decodes a file. Everything that cannot be read is E01xx; what is readable but against the rules of the language is
/// left to validate(), except what a Module cannot hold at all.
/// @param name  of the input, for diagnostics and Module::file
/// @error E01xx, E0505, E0603, E0704, L0101, L0102, L0103
[[nodiscard]] Result<Module> read_tileirbc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags,
                                           TileirbcReadOptions options = {});

struct TileirbcOptions {
  bool provisional = false;  ///< write versions beyond kNewestStableVersion, whose layout may still change
};

/// Encodes a module that validate() has accepted. A module that was read from a file of the target version, and that
/// nobody changed, gives the bytes of that file (exceptions: spec/tileirbc.md "Layout"); else equal modules give equal
/// bytes. Not kept, because the form has no place for them: the module's name, value names, the order of globals among
/// entries, extra attributes, names and fusions of locations; and, with a warning, locations without a scope, which
/// other readers reject.
/// @param target  13.1 to 13.4, or 13.5 if options.provisional
/// @error E0607 the target lacks an operation, type, attribute or value, with its place and the first version that has
/// it; E0601
[[nodiscard]] Result<std::vector<uint8_t>> write_tileirbc(const Module& m, Version target, Diagnostics& diags,
                                                          TileirbcOptions options = {});

}  // namespace tile
