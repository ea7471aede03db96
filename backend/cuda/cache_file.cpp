// Encoding of cache entries, and decoding that trusts nothing.
#include "backend/cuda/cache_file.h"

#include <xxhash.h>

#include <cstring>

namespace tile::cuda {
namespace {

constexpr char kMagic[] = "TILEVMC1";
constexpr size_t kChecksumAt = 40;

Hash128 canonical(XXH128_hash_t hash) {
  XXH128_canonical_t text;
  XXH128_canonicalFromHash(&text, hash);
  Hash128 out;
  std::memcpy(out.data(), text.digest, out.size());
  return out;
}

void put32(std::vector<uint8_t>& to, uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) to.push_back(static_cast<uint8_t>(v >> (8 * i)));
}
void put64(std::vector<uint8_t>& to, uint64_t v) {
  put32(to, static_cast<uint32_t>(v));
  put32(to, static_cast<uint32_t>(v >> 32));
}
void put_string(std::vector<uint8_t>& to, const std::string& s) {
  put32(to, static_cast<uint32_t>(s.size()));
  to.insert(to.end(), s.begin(), s.end());
}
uint32_t get32(const uint8_t* p) { return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24; }
uint64_t get64(const uint8_t* p) { return get32(p) | uint64_t{get32(p + 4)} << 32; }

Hash128 checksum(std::span<const uint8_t> head, std::span<const uint8_t> metadata, std::span<const uint8_t> cubin) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, head.data(), head.size());
  XXH3_128bits_update(&state, metadata.data(), metadata.size());
  XXH3_128bits_update(&state, cubin.data(), cubin.size());
  return canonical(XXH3_128bits_digest(&state));
}

/// Reads the metadata's words and strings; `bad` once anything lies outside.
struct Reader {
  std::span<const uint8_t> bytes;
  bool bad = false;
  uint32_t word() {
    if (bytes.size() < 4) {
      bad = true;
      return 0;
    }
    const uint32_t v = get32(bytes.data());
    bytes = bytes.subspan(4);
    return v;
  }
  std::string string() {
    const uint32_t n = word();
    if (bad || n > bytes.size()) {
      bad = true;
      return {};
    }
    std::string s(reinterpret_cast<const char*>(bytes.data()), n);
    bytes = bytes.subspan(n);
    return s;
  }
};

}  // namespace

Hash128 hash128(std::span<const uint8_t> bytes) { return canonical(XXH3_128bits(bytes.data(), bytes.size())); }

std::string hash_text(const Hash128& hash) {
  std::string out;
  for (const uint8_t b : hash) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

Hash128 CacheKey::hash() const {
  std::vector<uint8_t> all;
  put_string(all, device_kind);
  for (const KeyPart& part : parts) {
    put_string(all, part.name);
    put_string(all, part.value);
  }
  return hash128(all);
}

std::vector<uint8_t> encode_entry(const CacheKey& key, const CachedKernel& kernel) {
  std::vector<uint8_t> metadata;
  put32(metadata, kernel.threads);
  put32(metadata, kernel.shared_bytes);
  put32(metadata, kernel.cluster);
  put_string(metadata, key.device_kind);
  put_string(metadata, kernel.symbol);
  for (const KeyPart& part : key.parts) {
    put_string(metadata, part.name);
    put_string(metadata, part.value);
  }
  std::vector<uint8_t> out;
  for (size_t i = 0; i < 8; ++i) out.push_back(static_cast<uint8_t>(kMagic[i]));
  put32(out, Cache::kVersion);
  put32(out, static_cast<uint32_t>(metadata.size()));
  put64(out, kernel.cubin.size());
  const Hash128 hash = key.hash();
  out.insert(out.end(), hash.begin(), hash.end());
  const Hash128 sum = checksum(out, metadata, kernel.cubin);
  out.insert(out.end(), sum.begin(), sum.end());
  out.insert(out.end(), metadata.begin(), metadata.end());
  return out;
}

std::optional<CacheEntry> decode_entry(std::span<const uint8_t> bytes, const std::string& device_kind, const Hash128* key, std::string& damage) {
  const auto bad = [&](const char* why) {
    damage = why;
    return std::nullopt;
  };
  if (bytes.size() < kEntryHeader) return bad("it is truncated");
  if (std::memcmp(bytes.data(), kMagic, 8) != 0) return bad("it is no entry of this cache");
  if (get32(&bytes[8]) != Cache::kVersion) return bad("it is of another version of the cache");
  const uint32_t metadata_bytes = get32(&bytes[12]);
  const uint64_t cubin_bytes = get64(&bytes[16]);
  if (metadata_bytes > kMaxMetadata || cubin_bytes > kMaxCubin) return bad("its sizes are impossible");
  const uint64_t size = kEntryHeader + metadata_bytes + cubin_bytes;
  if (bytes.size() < size) return bad("it is truncated");
  if (bytes.size() > size) return bad("bytes follow its end");
  const auto metadata = bytes.subspan(kEntryHeader, metadata_bytes), cubin = bytes.subspan(kEntryHeader + metadata_bytes);
  const Hash128 sum = checksum(bytes.first(kChecksumAt), metadata, cubin);
  if (std::memcmp(sum.data(), &bytes[kChecksumAt], sum.size()) != 0) return bad("its checksum is wrong");
  if (key && std::memcmp(key->data(), &bytes[24], key->size()) != 0) return bad("it belongs to another key");
  CacheEntry entry;
  Reader reader{metadata};
  entry.kernel.threads = reader.word();
  entry.kernel.shared_bytes = reader.word();
  entry.kernel.cluster = reader.word();
  entry.device_kind = reader.string();
  entry.kernel.symbol = reader.string();
  while (!reader.bad && !reader.bytes.empty()) {
    KeyPart part;
    part.name = reader.string();
    part.value = reader.string();
    entry.parts.push_back(std::move(part));
  }
  if (reader.bad) return bad("its metadata cannot be read");
  if (entry.device_kind != device_kind) return bad("it is for another kind of device");
  Hash128 own;
  std::memcpy(own.data(), &bytes[24], own.size());
  if (CacheKey{entry.device_kind, entry.parts}.hash() != own) return bad("its key does not fit its contents");
  entry.key = hash_text(own);
  entry.kernel.cubin.assign(cubin.begin(), cubin.end());
  entry.bytes = bytes.size();
  return entry;
}

}  // namespace tile::cuda
