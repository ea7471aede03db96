// Reading, writing and locking of cache entries.
#include "backend/cuda/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>

#include "backend/cuda/cache_file.h"

namespace tile::cuda {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) { return std::generic_category().message(error); }

Place place_of(const std::string& path) {
  Place place;
  place.file = path;
  return place;
}

/// A file that is opened and closed with this object.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int write_all(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

/// mkdir -p, for this user only: who can write here chooses what runs on the GPU.
int make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat status {};
      if (::stat(part.c_str(), &status) != 0) return error;
    }
    if (at == std::string::npos) return 0;
  }
}

/// The right to make one kernel. Held by an open file, so that it ends with its process however that ends.
class Lock {
 public:
  enum class State { Held, Busy, Impossible };
  explicit Lock(std::string path) : path_(std::move(path)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (fd_ < 0) return;
    ::unlink(path_.c_str());  // while it is held, so that nobody holds a file that has no name
    ::close(fd_);
  }
  State try_lock() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      File file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (file.fd() < 0) return State::Impossible;
      if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        return errno == EWOULDBLOCK ? State::Busy : State::Impossible;
      }
      // The one before may have removed the name between our open() and flock(): then others lock another file.
      struct stat ours {}, named {};
      if (::fstat(file.fd(), &ours) == 0 && ::stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
        fd_ = file.release();
        return State::Held;
      }
    }
    return State::Busy;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

struct Name {
  fs::path path;
  std::string kind, stem;
  struct stat status {};
};

/// The regular files of the device folders with this ending.
std::vector<Name> files_of(const std::string& root, std::string_view ending) {
  std::vector<Name> out;
  std::error_code error;
  for (fs::directory_iterator kind(root, error), end; !error && kind != end; kind.increment(error)) {
    std::error_code inner;
    if (!kind->is_directory(inner) || !kind->path().filename().string().starts_with("sm_")) continue;
    for (fs::directory_iterator file(kind->path(), inner); !inner && file != end; file.increment(inner)) {
      Name n{file->path(), kind->path().filename().string(), file->path().filename().string(), {}};
      if (!n.stem.ends_with(ending)) continue;
      n.stem.resize(n.stem.size() - ending.size());
      if (::lstat(n.path.c_str(), &n.status) == 0 && S_ISREG(n.status.st_mode)) out.push_back(std::move(n));
    }
  }
  return out;
}

constexpr char kHex[] = "0123456789abcdef";
constexpr char kSecond[] = ".2";  // of a lock's name

bool is_key(std::string_view name) { return name.size() == 32 && name.find_first_not_of(kHex) == std::string_view::npos; }

/// Of the names that put() gives: process, number, random digits, the key's first ones. The folder may hold files of others.
bool is_temporary(std::string_view name) {
  size_t dashes = 0;
  for (const char c : name) {
    if (c == '-') ++dashes;
    else if (std::string_view(kHex).find(c) == std::string_view::npos) return false;
  }
  return dashes >= 2 && name[0] >= '0' && name[0] <= '9';
}

std::vector<Name> entries_of(const std::string& root) {
  auto all = files_of(root, ".cubin");
  std::erase_if(all, [](const Name& n) { return !is_key(n.stem); });
  std::sort(all.begin(), all.end(), [](const Name& a, const Name& b) {
    const auto& x = a.status.st_mtim;
    const auto& y = b.status.st_mtim;
    return x.tv_sec != y.tv_sec ? x.tv_sec > y.tv_sec : x.tv_nsec != y.tv_nsec ? x.tv_nsec > y.tv_nsec : a.path < b.path;
  });
  return all;
}

}  // namespace

uint64_t parse_cache_size(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (errno != 0 || end == text.c_str() || text[0] == '-' || value > (uint64_t{1} << 40)) return 0;
  const std::string unit = end;
  for (const auto& [name, shift] : {std::pair{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}})
    if (unit == name) return value << shift;
  return 0;
}

Cache Cache::standard(Diagnostics& diags) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  uint64_t limit = kDefaultLimit;
  if (const std::string size = variable("TILEVM_CACHE_SIZE"); !size.empty()) {
    limit = parse_cache_size(size);
    if (limit == 0) {
      diags.warn(Place{}, "TILEVM_CACHE_SIZE=" + size + " is not a size; 1G is used");
      limit = kDefaultLimit;
    }
  }
  if (std::string root = variable("TILEVM_CACHE"); !root.empty()) return Cache(std::move(root), limit);
  if (const std::string root = variable("XDG_CACHE_HOME"); !root.empty() && root[0] == '/') return Cache(root + "/tilevm", limit);
  if (const std::string home = variable("HOME"); !home.empty()) return Cache(home + "/.cache/tilevm", limit);
  return Cache("", limit);
}

std::optional<CacheEntry> read_entry(const std::string& path, const std::string& device_kind, const Hash128* key, std::string& damage) {
  damage.clear();
  // The end of the name is a file of ours or nothing: no waiting for pipes.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) {
    if (errno != ENOENT) damage = "it cannot be read: " + reason(errno);
    return std::nullopt;
  }
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) {
    damage = "it is no file";
    return std::nullopt;
  }
  if (static_cast<uint64_t>(status.st_size) > kEntryHeader + kMaxMetadata + kMaxCubin) {
    damage = "its sizes are impossible";
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      bytes.resize(done);
      break;
    }
    done += static_cast<size_t>(n);
  }
  auto entry = decode_entry(bytes, device_kind, key, damage);
  if (entry) {
    entry->path = path;
    entry->used = status.st_mtim.tv_sec;
  }
  return entry;
}

std::optional<CachedKernel> Cache::find(const CacheKey& key, Diagnostics& diags) const {
  if (root_.empty()) return std::nullopt;
  const std::string path = entry_path(key);
  const Hash128 hash = key.hash();
  std::string damage;
  auto entry = read_entry(path, key.device_kind, &hash, damage);
  if (!entry) {
    if (!damage.empty()) diags.warn(place_of(path), "the cached kernel is not used and compiled anew: " + damage);
    return std::nullopt;
  }
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now; a cache that is read-only just cannot remember it
  return std::move(entry->kernel);
}

bool Cache::put(const CacheKey& key, const CachedKernel& kernel, Diagnostics& diags) const {
  if (root_.empty()) return false;
  static std::atomic<unsigned> counter{0};
  static const unsigned random = std::random_device()();  // processes of other containers have the same numbers
  const std::string path = entry_path(key);
  const auto failed = [&](int error) {
    diags.warn(place_of(path), "the compiled kernel is not kept: " + reason(error));
    return false;
  };
  if (const int error = make_folders(folder(key))) return failed(error);
  const std::vector<uint8_t> head = encode_entry(key, kernel);
  const std::string temporary = folder(key) + "/" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + "-" + std::to_string(random) + "-" + key.text().substr(0, 8) + ".tmp";
  int error = 0;
  {
    File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.fd() < 0) return failed(errno);
    error = write_all(file.fd(), head);
    if (!error) error = write_all(file.fd(), kernel.cubin);
    if (!error && ::fsync(file.fd()) != 0 && errno != EINVAL && errno != ENOTSUP) error = errno;
    if (::close(file.release()) != 0 && !error && errno != EINTR) error = errno;
  }
  if (!error && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) {
    ::unlink(temporary.c_str());
    return failed(error);
  }
  uint64_t total = 0;
  for (const Name& n : entries_of(root_)) total += static_cast<uint64_t>(n.status.st_size);
  // Down to nine tenths, so that a full cache is not swept at every kernel.
  if (total > limit_) (void)sweep(limit_ - limit_ / 10, false);
  return true;
}

Result<CachedKernel> Cache::get(const CacheKey& key, const std::function<Result<CachedKernel>()>& make, Diagnostics& diags, CacheUse* use) const {
  const auto used = [&](CacheUse how) {
    if (use) *use = how;
  };
  used(CacheUse::Off);
  if (root_.empty()) return make();
  used(CacheUse::Hit);
  if (auto found = find(key, diags)) return *std::move(found);
  // Damage has been told of; once is enough.
  Diagnostics silent;
  (void)make_folders(folder(key));
  Lock first(folder(key) + "/" + key.text() + ".lock"), second(folder(key) + "/" + key.text() + kSecond + ".lock");
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned round = 0;; ++round) {
    if (first.try_lock() != Lock::State::Busy) break;
    const auto waited = std::chrono::steady_clock::now() - begin;
    const auto patience = std::chrono::seconds(wait_seconds_);
    if (waited > patience && second.try_lock() != Lock::State::Busy) break;
    if (waited > 5 * std::max(patience, std::chrono::seconds(1))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(round < 20 ? 2 : 20));
    if (round % 8 == 7)
      if (auto found = find(key, silent)) return *std::move(found);
  }
  if (auto found = find(key, silent)) return *std::move(found);
  used(CacheUse::Off);
  auto made = make();
  if (!made) return Failed;
  if (put(key, *made, diags)) used(CacheUse::Made);
  return made;
}

std::vector<CacheEntry> Cache::list(bool read) const {
  std::vector<CacheEntry> out;
  for (const Name& n : entries_of(root_)) {
    CacheEntry entry;
    std::string damage;
    if (read) {
      if (auto found = read_entry(n.path.string(), n.kind, nullptr, damage)) {
        entry = *std::move(found);
        entry.kernel.cubin.clear();
        if (entry.key != n.stem) damage = "it belongs to another key";
      } else if (damage.empty()) {
        continue;  // gone since
      }
    }
    entry.device_kind = n.kind;
    entry.key = n.stem;
    entry.path = n.path.string();
    entry.bytes = static_cast<uint64_t>(n.status.st_size);
    entry.used = n.status.st_mtim.tv_sec;
    entry.damage = damage;
    out.push_back(std::move(entry));
  }
  return out;
}

std::vector<CacheEntry> Cache::find_prefix(std::string_view digits) const {
  auto all = list(false);
  std::erase_if(all, [&](const CacheEntry& e) { return !e.key.starts_with(digits); });
  std::vector<CacheEntry> out;
  for (CacheEntry& e : all) {
    std::string damage;
    if (auto found = read_entry(e.path, e.device_kind, nullptr, damage)) {
      e.parts = std::move(found->parts);
      e.kernel = std::move(found->kernel);
      if (found->key != e.key) damage = "it belongs to another key";
    }
    e.damage = damage;
    out.push_back(std::move(e));
  }
  return out;
}

std::optional<CacheEntry> Cache::nearest_entry(const CacheKey& key) const {
  const std::string own = key.text();
  std::optional<CacheEntry> best;
  size_t most = 0;
  for (CacheEntry& e : list(true)) {
    if (!e.damage.empty() || (e.key == own && e.device_kind == key.device_kind)) continue;
    size_t same = 0;
    for (const KeyPart& part : key.parts) same += static_cast<size_t>(std::count(e.parts.begin(), e.parts.end(), part));
    if (!best || same > most) {
      best = std::move(e);
      most = same;
    }
  }
  return best;
}

CacheSweep Cache::sweep(uint64_t limit, bool check_entries) const {
  CacheSweep result;
  if (root_.empty()) return result;
  // A writer needs seconds; what is older than an hour has no writer any more.
  constexpr int64_t kLeftoverAge = 3600;
  const int64_t now = static_cast<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  const auto removed = [&](const Name& n) {
    if (::unlink(n.path.c_str()) == 0) return true;
    if (errno != ENOENT && result.failed++ == 0) result.failed_reason = reason(errno), result.failed_path = n.path.string();
    return false;
  };
  for (const Name& n : files_of(root_, ".tmp"))
    if (is_temporary(n.stem) && (now - n.status.st_mtim.tv_sec > kLeftoverAge || limit == 0)) result.removed_leftovers += removed(n);
  for (const Name& n : files_of(root_, ".lock")) {
    // Only one that nobody holds: its owner's process was killed. Lock's destructor removes it while it is held.
    const std::string_view stem = n.stem;
    if (!is_key(stem.ends_with(kSecond) ? stem.substr(0, stem.size() - 2) : stem) || (now - n.status.st_mtim.tv_sec <= kLeftoverAge && limit != 0)) continue;
    Lock lock(n.path.string());
    result.removed_leftovers += lock.try_lock() == Lock::State::Held;
  }
  bool full = false;
  for (const Name& n : entries_of(root_)) {
    const uint64_t size = static_cast<uint64_t>(n.status.st_size);
    bool bad = false;
    if (check_entries) {
      std::string damage;
      const auto entry = read_entry(n.path.string(), n.kind, nullptr, damage);
      bad = entry ? entry->key != n.stem : !damage.empty();
    }
    full = full || (!bad && result.bytes + size > limit);  // then all that was used longer ago goes too
    if ((bad || full) && removed(n)) {
      ++result.removed_entries;
      result.removed_bytes += size;
    } else {
      ++result.entries;
      result.bytes += size;
    }
  }
  return result;
}

}  // namespace tile::cuda
