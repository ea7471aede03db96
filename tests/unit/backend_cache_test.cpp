// The cubin cache: what is read back, what is never read back, eviction, and folders that cannot be used.
#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/cuda/cache.h"
#include "temp_dir.h"

namespace {

using namespace tile;
using cuda::Cache;
using cuda::CachedKernel;
using cuda::CacheKey;
using cuda::CacheUse;

CacheKey key_of(const std::string& bytecode, const std::string& options = "O3", const std::string& kind = "sm_90a") {
  return {kind, {{"bytecode", bytecode}, {"entry", "k"}, {"options", options}, {"target", kind}, {"compiler", "test"}, {"linker", "none"}}};
}
CachedKernel kernel_of(size_t bytes, uint8_t value = 7) { return {"k", 256, 1024, 2, std::vector<uint8_t>(bytes, value)}; }
std::string path_of(const Cache& cache, const CacheKey& key) { return cache.root() + "/" + key.device_kind + "/" + key.text() + ".cubin"; }
std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }
void set_age(const std::string& path, long seconds) {
  timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("cubin cache: what was put is found, by its whole key only") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  Diagnostics diags;
  const CacheKey key = key_of("a");
  CHECK_FALSE(cache.find(key, diags));
  REQUIRE(cache.put(key, kernel_of(1000), diags));
  const auto found = cache.find(key, diags);
  REQUIRE(found);
  CHECK(found->symbol == "k");
  CHECK(found->threads == 256);
  CHECK(found->shared_bytes == 1024);
  CHECK(found->cluster == 2);
  CHECK(found->cubin == kernel_of(1000).cubin);
  for (size_t p = 0; p < key.parts.size(); ++p) {
    CacheKey other = key;
    other.parts[p].value += "x";
    CHECK(other.text() != key.text());
    CHECK_FALSE(cache.find(other, diags));
  }
  CHECK_FALSE(cache.find(key_of("a", "O3", "sm_80"), diags));
  // Lengths are part of the hash: parts cannot run into each other.
  CHECK(CacheKey{"d", {{"a", "bc"}}}.text() != CacheKey{"d", {{"ab", "c"}}}.text());
  CHECK(diags.all().empty());
}

TEST_CASE("cubin cache: an entry with any byte changed, or cut anywhere, is never used") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  Diagnostics diags;
  const CacheKey key = key_of("a");
  REQUIRE(cache.put(key, kernel_of(40), diags));
  const std::string path = path_of(cache, key), good = read(path);
  REQUIRE(good.size() > 96);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    write(path, bad);
    Diagnostics said;
    CHECK_FALSE(cache.find(key, said));
    CHECK(said.all().size() == 1);
    CHECK_FALSE(said.has_errors());
  }
  for (size_t n = 0; n < good.size(); ++n) {
    write(path, good.substr(0, n));
    Diagnostics said;
    CHECK_FALSE(cache.find(key, said));
    CHECK(said.all().size() == 1);
  }
  write(path, good + "x");
  CHECK_FALSE(cache.find(key, diags));
  // The next compilation mends it.
  int made = 0;
  CacheUse use{};
  const auto again = cache.get(key, [&]() -> Result<CachedKernel> { ++made; return kernel_of(40); }, diags, &use);
  CHECK(again.ok());
  CHECK(made == 1);
  CHECK(use == CacheUse::Made);
  CHECK(read(path) == good);
  // A good entry under another name or for another device is not used either.
  const CacheKey other = key_of("b"), device = key_of("a", "O3", "sm_80");
  write(path_of(cache, other), good);
  std::filesystem::create_directories(cache.root() + "/sm_80");
  write(path_of(cache, device), good);
  Diagnostics said;
  CHECK_FALSE(cache.find(other, said));
  CHECK_FALSE(cache.find(device, said));
  CHECK(said.all().size() == 2);
  const auto sweep = cache.sweep(1 << 20, true);
  CHECK(sweep.removed_entries == 2);
  CHECK(sweep.entries == 1);
}

TEST_CASE("cubin cache: beyond the limit what was used longest ago goes") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"), 3500);
  Diagnostics diags;
  for (const char* name : {"a", "b", "c"}) REQUIRE(cache.put(key_of(name), kernel_of(600), diags));
  long age = 300;
  for (const char* name : {"a", "b", "c"}) set_age(path_of(cache, key_of(name)), age -= 50);
  CHECK(cache.find(key_of("a"), diags));  // used now: b is the oldest
  REQUIRE(cache.put(key_of("d"), kernel_of(1200), diags));
  CHECK(cache.find(key_of("a"), diags));
  CHECK_FALSE(cache.find(key_of("b"), diags));
  CHECK(cache.find(key_of("d"), diags));
  uint64_t total = 0;
  for (const auto& e : cache.list(false)) total += e.bytes;
  CHECK(total <= 3500);
  CHECK(cache.sweep(0, false).entries == 0);
  CHECK(cache.list(true).empty());
  CHECK(diags.all().empty());
}

TEST_CASE("cubin cache: folders that cannot be used cost a warning, not the work") {
  const test::TempDir dir;
  write(dir.file("file"), "not a folder");
  const CacheKey key = key_of("a");
  for (const std::string& root : {dir.file("file"), dir.file("file") + "/below", std::string("/proc/no/such")}) {
    Diagnostics diags;
    CacheUse use{};
    const auto made = Cache(root).get(key, [&]() -> Result<CachedKernel> { return kernel_of(10); }, diags, &use);
    CHECK(made.ok());
    CHECK(use == CacheUse::Off);
    CHECK_FALSE(diags.has_errors());
    CHECK(diags.all().size() >= 1);
  }
  Diagnostics diags;
  CacheUse use{};
  CHECK(Cache("").get(key, [&]() -> Result<CachedKernel> { return kernel_of(10); }, diags, &use).ok());
  CHECK(use == CacheUse::Off);
  CHECK(diags.all().empty());
  // A compilation that fails keeps nothing and gives its own error.
  const Cache cache(dir.file("cache"));
  CHECK_FALSE(cache.get(key, [&]() -> Result<CachedKernel> { return diags.error(Code::E0808, Place{}, "no"); }, diags).ok());
  CHECK(diags.error_count() == 1);
  CHECK(cache.list(false).empty());
}

TEST_CASE("cubin cache: threads that ask for one kernel make it once") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  std::atomic<int> made{0}, right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      Diagnostics diags;
      const auto kernel = cache.get(key_of("a"), [&]() -> Result<CachedKernel> {
        ++made;
        ::usleep(50000);
        return kernel_of(5000);
      }, diags);
      right += kernel && kernel->cubin == kernel_of(5000).cubin && diags.all().empty();
    });
  for (std::thread& t : threads) t.join();
  CHECK(made == 1);
  CHECK(right == 8);
  // Nothing but the entry is left.
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(cache.root() + "/sm_90a")) ++files;
  CHECK(files == 1);
}

TEST_CASE("cubin cache: locks and temporary files of killed processes are no hindrance") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  Diagnostics diags;
  const CacheKey key = key_of("a");
  std::filesystem::create_directories(cache.root() + "/sm_90a");
  const std::string lock = cache.root() + "/sm_90a/" + key.text() + ".lock", leftover = cache.root() + "/sm_90a/1-0-abc.tmp", fresh = cache.root() + "/sm_90a/2-0-abc.tmp";
  for (const std::string& path : {lock, leftover, fresh}) write(path, "");
  set_age(leftover, 7200);
  CHECK(cache.get(key, [&]() -> Result<CachedKernel> { return kernel_of(10); }, diags).ok());
  CHECK_FALSE(std::filesystem::exists(lock));
  CHECK(cache.sweep(1 << 20, true).removed_leftovers == 1);
  CHECK_FALSE(std::filesystem::exists(leftover));
  CHECK(std::filesystem::exists(fresh));
  CHECK(cache.sweep(0, false).removed_leftovers == 1);
  CHECK(diags.all().empty());
}

TEST_CASE("cubin cache: of those that wait in vain one makes the kernel, too") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"), Cache::kDefaultLimit, 0);
  const CacheKey key = key_of("a");
  std::filesystem::create_directories(cache.root() + "/sm_90a");
  const std::string lock = cache.root() + "/sm_90a/" + key.text() + ".lock";
  const int held = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  std::atomic<int> made{0}, right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      Diagnostics diags;
      const auto kernel = cache.get(key, [&]() -> Result<CachedKernel> {
        ++made;
        ::usleep(200000);
        return kernel_of(5000);
      }, diags);
      right += kernel && kernel->cubin == kernel_of(5000).cubin && diags.all().empty();
    });
  for (std::thread& t : threads) t.join();
  ::close(held);
  CHECK(made == 1);
  CHECK(right == 8);
}

TEST_CASE("cubin cache: files of others are not touched") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  const std::string key = key_of("a").text();
  for (const char* folder : {"project", "sm_90a"}) {
    std::filesystem::create_directories(cache.root() + "/" + folder);
    for (const char* name : {"Cargo.lock", "draft.tmp", "a-b-c.tmp", "other.cubin"}) write(cache.root() + "/" + folder + "/" + name, "mine");
  }
  for (const std::string& name : {key + ".cubin", key + ".lock", std::string("1-0-abc.tmp")}) write(cache.root() + "/project/" + name, "mine");
  for (const std::string& name : {key + ".lock", key + ".2.lock", "1-0-0123456789abcdef-" + key.substr(0, 8) + ".tmp"}) write(cache.root() + "/sm_90a/" + name, "");
  CHECK(cache.list(true).empty());
  for (const bool check : {true, false}) {
    const auto swept = cache.sweep(0, check);
    CHECK(swept.removed_leftovers == (check ? 3 : 0));
    CHECK(swept.removed_entries == 0);
    CHECK(swept.failed == 0);
  }
  size_t files = 0;
  for (const auto& f : std::filesystem::recursive_directory_iterator(cache.root())) files += f.is_regular_file();
  CHECK(files == 11);
}

TEST_CASE("cubin cache: the nearest entry shows what differs") {
  const test::TempDir dir;
  const Cache cache(dir.file("cache"));
  Diagnostics diags;
  CHECK_FALSE(cache.nearest_entry(key_of("a")));
  REQUIRE(cache.put(key_of("a", "O0"), kernel_of(10), diags));
  REQUIRE(cache.put(key_of("z", "O0"), kernel_of(10), diags));
  const auto near = cache.nearest_entry(key_of("a", "O3"));
  REQUIRE(near);
  CHECK(near->key == key_of("a", "O0").text());
  CHECK(cache.find_prefix(near->key.substr(0, 8)).size() == 1);
  CHECK(cuda::parse_cache_size("512M") == uint64_t{512} << 20);
  CHECK(cuda::parse_cache_size("x") == 0);
  CHECK(cuda::parse_cache_size("-1") == 0);
}
