// The cache of compiled kernels: one folder for each kind of device, one file for each kernel. Any number of processes may use it at
// once, may be killed at any moment, and may meet files that others damaged; the worst that follows is another compilation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"

namespace tile::cuda {

/// A hash of 128 bits (XXH3), as 32 hexadecimal digits where it is text.
using Hash128 = std::array<uint8_t, 16>;
[[nodiscard]] Hash128 hash128(std::span<const uint8_t> bytes);
[[nodiscard]] std::string hash_text(const Hash128& hash);

/// One thing that a compilation depends on.
struct KeyPart {
  std::string name;   ///< "bytecode", "entry", "options", "compiler", "target", "linker"
  std::string value;  ///< short: large things stand for themselves as a hash
  bool operator==(const KeyPart&) const = default;
};

/// Everything that a compilation depends on. Equal keys give equal cubins.
struct CacheKey {
  std::string device_kind;  ///< name of the folder; the target, "sm_90a"
  std::vector<KeyPart> parts;

  [[nodiscard]] Hash128 hash() const;
  [[nodiscard]] std::string text() const { return hash_text(hash()); }
};

/// What is kept of a compiled kernel.
struct CachedKernel {
  std::string symbol;  ///< of the entry in the cubin
  uint32_t threads = 0, shared_bytes = 0, cluster = 1;
  std::vector<uint8_t> cubin;
};

/// A file of the cache, as the listing commands see it.
struct CacheEntry {
  std::string device_kind, key;  ///< folder, and the file's name as 32 digits
  std::string path;
  uint64_t bytes = 0;
  int64_t used = 0;              ///< seconds since 1970
  std::string damage;            ///< empty: the entry is good (only filled by verify and show)
  std::vector<KeyPart> parts;
  CachedKernel kernel;           ///< cubin only if asked for
};

/// What a sweep did.
struct CacheSweep {
  uint64_t entries = 0, bytes = 0;                 ///< that stay
  uint64_t removed_entries = 0, removed_bytes = 0; ///< by size or because they were bad
  uint64_t removed_leftovers = 0;                  ///< temporary files and locks of processes that are gone
  uint64_t failed = 0;                             ///< files that could not be removed
  std::string failed_path, failed_reason;          ///< of the first of them
};

/// How a kernel was come by: made and not kept, found, made and kept.
enum class CacheUse : uint8_t { Off, Hit, Made };

class Cache {
 public:
  static constexpr uint64_t kDefaultLimit = uint64_t{1} << 30;
  static constexpr uint32_t kVersion = 1;  ///< of the files' format
  static constexpr unsigned kWaitSeconds = 120;

  /// A cache in this folder, which is made when something is put there. An empty path is a cache that keeps nothing.
  explicit Cache(std::string root, uint64_t limit = kDefaultLimit, unsigned wait_seconds = kWaitSeconds) : root_(std::move(root)), limit_(limit), wait_seconds_(wait_seconds) {}
  /// $TILEVM_CACHE, else $XDG_CACHE_HOME/tilevm, else ~/.cache/tilevm; of the size $TILEVM_CACHE_SIZE ("512M"). Without any of them
  /// a cache that keeps nothing; a size that cannot be read is a warning.
  [[nodiscard]] static Cache standard(Diagnostics& diags);

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] uint64_t limit() const { return limit_; }

  /// The kernel of this key: from the cache, or from `make`, which is then kept. Of many processes and threads that ask at once one
  /// makes it and the others wait. Where that takes longer than `wait_seconds`, one of the others makes it, too, and the rest waits for both, five times
  /// as long at most: compiling and assembling have limits that are shorter.
  /// Damaged entries are made again with a warning. A cache that cannot be written is a warning and the work goes on.
  [[nodiscard]] Result<CachedKernel> get(const CacheKey& key, const std::function<Result<CachedKernel>()>& make, Diagnostics& diags, CacheUse* use = nullptr) const;

  /// The good entry of this key. Damage is a warning.
  [[nodiscard]] std::optional<CachedKernel> find(const CacheKey& key, Diagnostics& diags) const;
  /// Keeps a kernel; false and a warning where that fails. Evicts what was used longest ago when the limit is passed.
  bool put(const CacheKey& key, const CachedKernel& kernel, Diagnostics& diags) const;

  /// All entries, the last used first. `read`: with parts and metadata, and damage noted.
  [[nodiscard]] std::vector<CacheEntry> list(bool read) const;
  /// The entries whose key begins with these digits.
  [[nodiscard]] std::vector<CacheEntry> find_prefix(std::string_view digits) const;
  /// The good entry, other than the key's own, that has the most parts in common with the key; ties: the last used.
  [[nodiscard]] std::optional<CacheEntry> nearest_entry(const CacheKey& key) const;
  /// Removes bad entries and leftovers, and entries until at most `limit` bytes stay. 0 removes all entries. Other files are not touched.
  [[nodiscard]] CacheSweep sweep(uint64_t limit, bool check_entries) const;

 private:
  [[nodiscard]] std::string folder(const CacheKey& key) const { return root_ + "/" + key.device_kind; }
  [[nodiscard]] std::string entry_path(const CacheKey& key) const { return folder(key) + "/" + key.text() + ".cubin"; }

  std::string root_;
  uint64_t limit_;
  unsigned wait_seconds_;
};

/// "512M" in bytes; 0 if it cannot be read.
[[nodiscard]] uint64_t parse_cache_size(const std::string& text);

/// Reads one entry file. Empty result: `damage` says why ("truncated", ...).
/// @param key  expected, or nullptr for any
[[nodiscard]] std::optional<CacheEntry> read_entry(const std::string& path, const std::string& device_kind, const Hash128* key, std::string& damage);

}  // namespace tile::cuda
