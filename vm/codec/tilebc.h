// tilebc, this project's bytecode: a FlatBuffers container (schema/tile.fbs). Described in spec/bytecode.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/ir/module.h"

namespace tile {

[[nodiscard]] bool is_tilebc(std::span<const uint8_t> bytes);

/// Encodes any module, valid or not. Deterministic: equal modules give equal bytes, whatever else their tables hold and
/// in which order. Debug locations are kept; positions in a text input are not.
/// @error L0101 the file would be larger than decode_tilebc() accepts; L0102 the same for nesting
[[nodiscard]] Result<std::vector<uint8_t>> encode_tilebc(const Module& m, Diagnostics& diags);

/// The same for modules that are known to be within the limits; empty if this one is not.
[[nodiscard]] std::vector<uint8_t> encode_tilebc(const Module& m);

/// Decodes in the trust order size, identifier and version, FlatBuffers verifier, structure. The module is not
/// validated.
/// @param name  of the input, for diagnostics and Module::file
/// @error E02xx, L0101, L0102, L0103
[[nodiscard]] Result<Module> decode_tilebc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags);

}  // namespace tile
