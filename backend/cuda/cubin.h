// What a cubin says of a kernel's needs, and how many of its blocks a multiprocessor holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tile::cuda {

struct KernelNeeds {
  unsigned registers = 0;      ///< of a thread
  unsigned frame_bytes = 0;    ///< of a thread's local memory: arrays with computed indices, and spills
};

/// Of the kernel `symbol`; none where the bytes are no cubin or do not say. Any bytes are safe.
[[nodiscard]] std::optional<KernelNeeds> kernel_needs(std::span<const uint8_t> cubin, const std::string& symbol);

/// Bytes that a thread stores to and loads from local memory for lack of registers, as ptxas and the driver's linker report it on request.
struct Spills {
  unsigned store_bytes = 0, load_bytes = 0;
};
[[nodiscard]] std::optional<Spills> spills(const std::vector<std::string>& assembler_info);

struct Occupancy {
  unsigned blocks = 0;         ///< of a multiprocessor at a time
  unsigned warps = 0, most_warps = 0;
  const char* limit = "";      ///< "registers", "shared memory", "warps" or "blocks"
};

/// @param sm  compute capability, 90 for 9.0
/// @return none for a compute capability that is not known
[[nodiscard]] std::optional<Occupancy> occupancy(unsigned sm, unsigned threads, unsigned registers, unsigned shared_bytes);

}  // namespace tile::cuda
