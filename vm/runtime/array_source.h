// Where an array comes from: a .npy file, a generator, or another argument; its text form and its loading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/runtime/array.h"
#include "vm/runtime/generate.h"

namespace tile {

struct ArraySource {
  enum class Kind : uint8_t { File, Generated, Reference };
  Kind kind = Kind::File;
  std::optional<ElementType> type;      ///< File, Reference: where it is written; Generated: always
  std::string path;                     ///< File: as written
  std::vector<int64_t> shape, strides;  ///< Generated
  Generator generator;                  ///< Generated
  std::string reference;                ///< Reference: name of the other argument
};

/// Reads "a.npy", "bf16:a.npy", "f16[512,512]=normal(seed=1)", "f16[8,4]:strides(1,8)=zeros", "@name"
/// or "i32:@name".
/// E0804 with what was found and expected.
[[nodiscard]] Result<ArraySource> parse_array_source(std::string_view text, const Place& place, Diagnostics& diags);

/// Loads a file or runs a generator; not for references. Relative paths start at `base_dir` ("" = the working folder).
/// E0806, E0901, E0903, L0103.
[[nodiscard]] Result<Array> load_array(const ArraySource& source, const std::string& base_dir,
                                       const ArrayLimits& limits, const Place& place, Diagnostics& diags);

/// `path` below `base_dir` where it is relative.
[[nodiscard]] std::string path_in(const std::string& base_dir, const std::string& path);

/// Whether `text` can be the name of an argument: a letter or _, then letters, digits and _; at most 64.
[[nodiscard]] bool is_argument_name(std::string_view text);

/// "f16[512, 512]", for messages.
[[nodiscard]] std::string show_array_type(const ArrayView& a);

}  // namespace tile
