// What a kernel left in its mailbox (compile.h), as diagnostics and text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backend/compile.h"
#include "vm/base/diagnostics.h"

namespace tile {

/// Bytes of the ring behind the mailbox that a launch of ours gives its prints.
inline constexpr uint32_t kPrintRingBytes = 4u << 20;

/// Bytes of the mailbox with its ring. Without prints in the module there is no ring: pinned memory takes a driver longer than a small launch.
[[nodiscard]] size_t mailbox_size(const Module& module);

/// Makes the mailbox empty; `memory` is the struct with its ring, zero or as a launch left it.
void reset_mailbox(std::span<std::byte> memory);

/// What a trap of the kernel is, in the words of the operation where it has some.
[[nodiscard]] std::string trap_words(Code code, const Module& module, const Function& entry, InstId inst);

/// The program's grid, and the number of the first block of the launch, of a kernel with a linear grid.
struct LinearGrid {
  uint32_t grid[3];
  uint64_t first;
};
/// Adds the trap that the mailbox holds, at its operation's place. False if it holds none.
/// @param linear  nullptr for a kernel whose blocks have the program's numbers
[[nodiscard]] bool report_trap(std::span<const std::byte> memory, const Module& module, const Function& entry, Diagnostics& diags, const LinearGrid* linear = nullptr);

/// A record of the print ring.
struct PrintRecord {
  uint32_t inst = 0;
  uint32_t block[3] = {0, 0, 0};
  std::span<const std::byte> payload;
};
/// The text of one record. The payload holds the elements of every operand in row-major order, each operand padded to 8 bytes
/// (backend/ptx/lower_print.cpp); a record of another form gives a line that says so.
[[nodiscard]] std::string format_print_record(const PrintRecord& record, const Module& module, const Function& entry);

/// Hands the texts of all records to `print`, in the order of the ring. Records that did not fit into it, and a ring that is damaged, are
/// warnings.
void deliver_prints(std::span<const std::byte> memory, const Module& module, const Function& entry, const std::function<void(const std::string&)>& print, Diagnostics& diags);

}  // namespace tile
