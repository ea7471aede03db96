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

/// Deterministic: equal modules give equal bytes. Debug locations are kept; positions in a text input are not.
[[nodiscard]] std::vector<uint8_t> encode_tilebc(const Module& m);

/// Decodes in the trust order size, identifier and version, FlatBuffers verifier, structure. The module is not validated.
/// @error E02xx, L0101
[[nodiscard]] Result<Module> decode_tilebc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags);

}  // namespace tile
