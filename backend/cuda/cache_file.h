// The bytes of a cache entry. Little-endian:
//   0  magic "TILEVMC1"   8  u32 version   12  u32 bytes of metadata   16  u64 bytes of the cubin   24  key, 16 bytes
//   40 checksum, 16 bytes: XXH3-128 of bytes 0..39, the metadata and the cubin   56 metadata   then the cubin
// Metadata: u32 threads, shared bytes, cluster; then strings (u32 length, bytes): device kind, symbol, and for each part of the key
// its name and value. The file ends with the cubin's last byte.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/cache.h"

namespace tile::cuda {

inline constexpr size_t kEntryHeader = 56;
inline constexpr uint32_t kMaxMetadata = 1u << 20;
inline constexpr uint64_t kMaxCubin = uint64_t{1} << 30;

/// Header and metadata; the cubin follows in the file.
[[nodiscard]] std::vector<uint8_t> encode_entry(const CacheKey& key, const CachedKernel& kernel);
/// @param damage  why there is no result
[[nodiscard]] std::optional<CacheEntry> decode_entry(std::span<const uint8_t> bytes, const std::string& device_kind, const Hash128* key, std::string& damage);

}  // namespace tile::cuda
