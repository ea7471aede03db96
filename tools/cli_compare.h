// Comparing what two launches of a job left in their arrays.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "vm/runtime/job.h"

namespace tile::cli {

/// The same arguments in memory of their own. E0903, naming the option that needs the copy.
[[nodiscard]] std::optional<LaunchArguments> copy_of(const LaunchArguments& args, const std::string& option, Diagnostics& diags);
/// Contents of arrays back to those of a copy.
void restore(LaunchArguments& args, const LaunchArguments& copy);

/// Reports every array in which two launches differ as E0809, by the job's rule for it where it has one, else bit for bit with any NaN equal to
/// any other.
/// @param who            "gpu against cpu", what the message begins with
/// @param skip_expected  leave out arrays that the job expects something of
/// @param note           what to say of the first element that differs, of the first array only (it may take another launch): a number in
///                       `buffers` and a position in its memory, in elements
void compare_launches(const Job& job, const LaunchArguments& got, const LaunchArguments& reference, const std::string& who, bool skip_expected, Diagnostics& diags,
                      const std::function<std::optional<Note>(size_t buffer, int64_t position)>& note = {});

/// The texts that the kernel had to print and did not: E0809.
void check_prints(const Job& job, const std::string& printed, Diagnostics& diags);
/// A launch ended well that should have ended with the job's trap: E0809.
void missing_trap(const Job& job, Diagnostics& diags);

}  // namespace tile::cli
