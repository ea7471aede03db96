// Writing results around the caches: a line that is written whole need not be read first, and what lies in the caches stays there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tile {

/// Copies `bytes` bytes; what is written becomes visible to other threads in order only after stream_end().
void stream_copy(std::byte* to, const std::byte* from, size_t bytes);
/// Orders what stream_copy() wrote on this thread before everything that the thread does next.
void stream_end();

/// Bytes of the last-level cache, or what is usual where the system does not say.
[[nodiscard]] uint64_t last_cache_bytes();

}  // namespace tile
