// `tilevm conformance`: the suite's own programs, which are Python, found and started; and launches taken apart for `record`.
#pragma once

namespace tile::cli {

/// argv[0] is "conformance". Returns the exit status of the suite's program; 2 usage, 3 where Python, numpy or the suite is missing.
[[nodiscard]] int conformance_command(int argc, const char* const* argv);

/// `tilevm conformance serve`; argv[0] is "serve". Only in tilevm.
[[nodiscard]] int serve_command(int argc, const char* const* argv);

}  // namespace tile::cli
