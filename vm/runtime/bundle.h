// One file that holds everything needed to repeat a launch: bytecode, arguments, options, and hashes of what came out.
// The form of the file is in spec/tools.md "Bundles".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/interp/exec.h"
#include "vm/ir/module.h"
#include "vm/runtime/launch_args.h"

namespace tile {

/// What a launch left behind.
struct BundleResult {
  std::string outcome = "ok";        ///< or the code that ended it, "T0101"
  std::vector<std::string> outputs;  ///< hash of each buffer's memory; empty unless the outcome is "ok"
  std::string prints;                ///< hash of the printed lines, sorted: their order depends on the machine

  bool operator==(const BundleResult&) const = default;
};
/// @param trap  what ended the launch; nullptr if it ended well
[[nodiscard]] BundleResult bundle_result(const LaunchArguments& after, std::string_view prints, const Diagnostic* trap);

/// Limits that a launch ran under, and what stood for unspecified elements.
struct BundleOptions {
  uint32_t threads = 0;
  uint64_t fuel = 0, max_storage = 0;
  std::string checks, undef;               ///< as on the command line
  uint64_t undef_seed = 0;
  std::vector<std::string> uninitialised;  ///< arguments, as on the command line
  std::optional<uint64_t> schedule, order; ///< seeds
  Numerics numerics = Numerics::Exact;
};

struct Bundle {
  std::string version;  ///< of the program that wrote it
  std::string entry;
  LaunchGrid grid = {1, 1, 1};
  BundleOptions options;
  std::vector<uint8_t> kernel;         ///< tilebc
  std::vector<std::string> names;      ///< of the arguments, empty where they have none
  LaunchArguments args;                ///< as before the launch
  std::optional<BundleResult> result;  ///< absent if the launch did not come to an end
};

/// Copies what a launch starts from, so that the file can be written before and after it.
class BundleWriter {
 public:
  /// @param kernel  tilebc
  /// @error E0903 no memory for compressed arrays; L0101 arrays beyond the limits of the format
  [[nodiscard]] static Result<BundleWriter> capture(std::string version, std::string entry, const LaunchGrid& grid,
                                                    const BundleOptions& options, std::vector<uint8_t> kernel,
                                                    std::span<const ArgSpec> specs, const LaunchArguments& args,
                                                    Diagnostics& diags);
  /// Writes the file, whole or not at all; equal launches give equal bytes. E0902.
  /// @param result  nullptr as long as the launch has not come to an end
  [[nodiscard]] Status write(const std::string& path, const BundleResult* result, Diagnostics& diags) const;

 private:
  struct Blob {
    std::vector<uint8_t> stored;  // zstd frame
    uint64_t size = 0;            // of its content
  };
  std::string header_;  // JSON object without its closing brace; the result follows
  std::vector<Blob> blobs_;
};

/// Any bytes are safe. Takes no memory for arrays before the checksum of the file has been found right.
/// @error E0810 damaged, not a bundle, or of an unknown version; L0103, E0903 memory
[[nodiscard]] Result<Bundle> read_bundle(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags,
                                         const ArrayLimits& limits = {});

/// Whether the parameters of a bundle are those of an entry. E0802, E0803.
[[nodiscard]] Status check_bundle(const Bundle& bundle, std::span<const ParamType> params, Diagnostics& diags);

}  // namespace tile
