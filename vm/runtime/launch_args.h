// Launch arguments: their text form, and their expansion to the entry's parameters after the calling convention of
// spec/launch.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/runtime/array.h"
#include "vm/runtime/array_source.h"

namespace tile {

/// Number of tile blocks along x, y, z, each in 1..kMaxGridExtent.
using LaunchGrid = std::array<uint32_t, 3>;
inline constexpr uint32_t kMaxGridExtent = (1u << 24) - 1;
inline constexpr size_t kMaxLaunchArguments = 1024;
/// References of references that are followed; bounds the work and finds circles.
inline constexpr size_t kMaxReferenceSteps = 16;

/// One argument as the user gave it.
struct ArgSpec {
  enum class Kind : uint8_t { Scalar, Pointer, Array, Array64 };
  Kind kind = Kind::Scalar;
  std::string name;                     ///< empty where none was given
  std::string text;                     ///< as written, for messages
  ElementType type = ElementType::I32;  ///< Scalar
  uint64_t bits = 0;                    ///< Scalar: as load_bits() gives them
  ArraySource source;                   ///< the others
  uint64_t byte_offset = 0;             ///< Pointer: from the start of the array
};

/// A parameter of the entry, a rank-0 tile of `element`; `pointee` counts for ElementType::Ptr.
struct ParamType {
  ElementType element = ElementType::I32;
  ElementType pointee = ElementType::I8;
  std::string name;  ///< without %; may be empty
};

/// A parameter's value: bits of a scalar, or a place in one of the buffers.
struct FlatParam {
  ElementType type = ElementType::I32;
  uint64_t bits = 0;         ///< scalars
  int32_t buffer = -1;       ///< pointers: index into LaunchArguments::buffers
  uint64_t byte_offset = 0;  ///< pointers: from the start of the buffer's memory, at most its size
};

/// What one argument became.
struct ArgBinding {
  size_t first = 0, count = 0;  ///< range of the parameters
  int32_t buffer = -1;          ///< of pointers and arrays
  std::string name;             ///< as the user gave it; may be empty
};

struct LaunchArguments {
  std::vector<Array> buffers;
  std::vector<FlatParam> params;
  std::vector<ArgBinding> bindings;  ///< one per argument
};

struct ExpandOptions {
  std::string base_dir;  ///< where relative paths start; "" = the working folder
  std::string entry;     ///< name of the entry, for messages
  ArrayLimits limits;    ///< `bytes` bounds one array and all of them together
};

/// "argument 3 (c)"; `name` may be empty.
[[nodiscard]] std::string argument_label(size_t index, std::string_view name);

/// What messages call each buffer: the argument that it belongs to, with the name of the entry's parameter, or the user's where the entry has none:
/// "argument 0 (a)".
[[nodiscard]] std::vector<std::string> buffer_names(const LaunchArguments& args, std::span<const ParamType> params);

/// Reads one argument, [NAME=]TYPE:VALUE, ptr:SOURCE[+BYTES], array:SOURCE or array64:SOURCE. E0804.
[[nodiscard]] Result<ArgSpec> parse_arg(std::string_view text, size_t index, const Place& place, Diagnostics& diags);
/// Reads all of them and checks that names differ and references lead to an array. Reports every bad argument.
[[nodiscard]] Result<std::vector<ArgSpec>> parse_args(std::span<const std::string> texts, Diagnostics& diags);
/// The checks of parse_args() between arguments, for arguments that come from elsewhere. E0804.
[[nodiscard]] Status check_args(std::span<const ArgSpec> specs, const Place& place, Diagnostics& diags);

/// The argument whose array the one at `i` uses: itself, or where its references lead. check_args() must have accepted
/// `specs`.
[[nodiscard]] size_t owning_argument(std::span<const ArgSpec> specs, size_t i);

/// Loads and generates every array and lays the arguments out as the entry's parameters.
/// Arguments that name the same file get a buffer each; only references share one.
/// E0802 another number of parameters, E0803 another type, both with the parameters that every argument gives;
/// E0806, E0901, E0903, L0103 for arrays.
[[nodiscard]] Result<LaunchArguments> expand(std::span<const ArgSpec> specs, std::span<const ParamType> params,
                                             const ExpandOptions& options, Diagnostics& diags);

/// Index of the argument that `word` names: its name, or its number from 0. E0804 with the names there are.
[[nodiscard]] Result<size_t> find_argument(std::string_view word, std::span<const ArgSpec> specs, const Place& place,
                                           Diagnostics& diags);

/// Which argument's array is written where after the launch.
struct OutSpec {
  size_t argument = 0;
  std::string path;
};
/// Reads "ARG=FILE"; the argument must be a pointer or an array. E0804.
[[nodiscard]] Result<OutSpec> parse_out(std::string_view text, std::span<const ArgSpec> specs, Diagnostics& diags);

/// Reads "4", "4,2" or "4,2,1" ('x' is taken for ',' too). E0804 for other text, E0805 for extents
/// outside 1..kMaxGridExtent.
[[nodiscard]] Result<LaunchGrid> parse_grid(std::string_view text, Diagnostics& diags);
/// One extent of a grid, checked; `axis` 0 to 2. E0805.
[[nodiscard]] Status check_grid_extent(int64_t value, int axis, const Place& place, Diagnostics& diags);

}  // namespace tile
