// Renderings of a profile: a table, JSON, and a trace that Perfetto and chrome://tracing open. Described in
// spec/tools.md.
#pragma once

#include <string>

#include "vm/interp/profile.h"
#include "vm/runtime/launch_args.h"

namespace tile::cli {

struct ProfileTitle {
  std::string entry;
  LaunchGrid grid = {1, 1, 1};
};

/// Operations and lines, the longest first.
[[nodiscard]] std::string profile_table(const Profile& profile, const ProfileTitle& title);
[[nodiscard]] std::string profile_json(const Profile& profile, const ProfileTitle& title);
/// Trace-event JSON: one thread for each worker, blocks with the operations inside them.
[[nodiscard]] std::string profile_trace(const Profile& profile, const Module& module, const Function& entry,
                                        const ProfileTitle& title);

}  // namespace tile::cli
