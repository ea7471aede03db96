// Runs a kernel that was compiled for the host the way a GPU would run it: one fiber per GPU thread, with checks of
// every device operation. What a GPU run cannot show is found here in any schedule: races in shared memory, divergence,
// accesses outside their allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/compile.h"
#include "vm/base/diagnostics.h"
#include "vm/base/result.h"
#include "vm/ir/module.h"

namespace tile {

/// Device memory that the caller owns and keeps until the run is over. `data` should be aligned to 16 bytes: addresses
/// given out are multiples of 256, and atomics and untorn accesses need the host address aligned as the device address
/// is.
struct GlobalAllocation {
  std::byte* data = nullptr;
  uint64_t size = 0;                         ///< bytes
  std::string name;                          ///< for messages: "argument 0 (a)"
  bool read_only = false;
};

/// The device addresses of a launch. Address = number of the allocation and offset in one word, so that an address
/// computed past the end of one allocation names no other, and the search for the allocation is a shift.
class EmulatedMemory {
 public:
  static constexpr unsigned kOffsetBits = 40;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << (kOffsetBits - 1);  ///< of one allocation
  static constexpr size_t kMaxAllocations = size_t{1} << 22;

  /// Address of the first byte; 0 if there are too many allocations or this one is larger than kMaxBytes.
  uint64_t add(GlobalAllocation allocation);

  [[nodiscard]] const GlobalAllocation* find(uint64_t address) const {
    const uint64_t index = (address >> kOffsetBits) - 1;
    return index < table_.size() ? &table_[index] : nullptr;
  }
  /// Bytes from the allocation's start to `address`, negative before it.
  [[nodiscard]] static int64_t offset(uint64_t address) {
    return static_cast<int64_t>(address & ((uint64_t{1} << kOffsetBits) - 1)) - kMargin;
  }
  /// Host address of [address, address + bytes), or nullptr if that is not inside one allocation.
  [[nodiscard]] std::byte* resolve(uint64_t address, uint64_t bytes) const {
    const GlobalAllocation* a = find(address);
    const auto at = static_cast<uint64_t>(offset(address));  // far beyond every size if it is negative
    return a && at <= a->size && bytes <= a->size - at ? a->data + at : nullptr;
  }
  /// "offset 4096 of argument 0 (a), which has 4096 bytes".
  [[nodiscard]] std::string describe(uint64_t address) const;

 private:
  static constexpr int64_t kMargin = int64_t{1} << (kOffsetBits - 2);  // room for negative offsets
  std::vector<GlobalAllocation> table_;
};

/// Address of a block's first byte of shared memory. Not 0, so that a forgotten base address shows.
inline constexpr uint32_t kEmulatedSharedBase = 1024;
/// From this bit on, addresses of shared memory hold the number of the block in its cluster: mapa's, and, as on an H200, a block's own.
inline constexpr unsigned kEmulatedRankShift = 24;

struct EmulateOptions {
  /// When asynchronous copies happen and in which order threads run.
  enum Policy : uint8_t {
    Early,                                   ///< copies at issue; threads first come, first served
    Late,                                    ///< copies in the wait that covers them; threads in random order
    Random,                                  ///< anywhere between; threads also give way in the middle
  };
  unsigned threads = 0;                      ///< OS threads; 0: one per core
  uint64_t seed = 1;
  Policy policy = Random;
  bool hazards = true;                       ///< checks of ordering and initialisation of shared memory
  uint64_t fuel = 0;                         ///< device operations for each block; 0: unlimited
  std::function<std::string(Code, InstId)>
      trap_text;                             ///< words for a trap of the kernel itself; default: the code's meaning
  std::array<uint32_t, 3> shown_grid = {0, 0, 0};  ///< grid in which reports name blocks by number; zeros: that of the launch
  const std::atomic<bool>* cancel = nullptr; ///< set to true to stop early: Failed without an error
  std::function<void(uint64_t done, uint64_t total)> progress;  ///< blocks; called now and then from one of the threads
};

struct EmulateStats {
  uint64_t blocks = 0;
  uint64_t operations = 0;                   ///< device operations of all threads
  uint64_t switches = 0;                     ///< between fibers
  double seconds = 0;
  unsigned threads = 0;                      ///< OS threads
};

/// Runs the kernel once for each block of the grid.
/// @param params    the kernel's parameter words (compile.h), addresses from `memory`
/// @param module    for the places of diagnostics; may be null together with `function`
/// @error T01xx traps of the kernel and accesses out of bounds, I0002 a broken rule of the machine, L0104 fuel, E0903
/// no memory,
///        E0916 this processor lacks instructions
[[nodiscard]] Result<EmulateStats> run_emulated(const EmulatedKernel& kernel, std::array<uint32_t, 3> grid,
                                                std::span<const uint64_t> params, const EmulatedMemory& memory,
                                                const EmulateOptions& options, const Module* module,
                                                const Function* function, Diagnostics& diags);

/// Whether this processor can run code made for the emulation.
[[nodiscard]] bool emulation_supported();

/// Functions that compiled code calls, for the loader.
struct EmulationSymbol {
  const char* name;
  void* address;
};
[[nodiscard]] std::vector<EmulationSymbol> emulation_symbols();

}  // namespace tile
