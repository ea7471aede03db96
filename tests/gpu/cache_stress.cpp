// What the tests of the cubin cache run in many processes at once: makers of one kernel, and writers that are killed.
//
//   cache_stress make DIR LOG     gets one key; whoever makes it adds a byte to LOG; 0 if the kernel is the right one
//   cache_stress kill DIR N SEED  kills a writer N times at random moments, and reads all entries after each time
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "backend/cuda/cache.h"

namespace {

using namespace tile;
using cuda::Cache;
using cuda::CachedKernel;
using cuda::CacheKey;

constexpr unsigned kKeys = 6;

CacheKey key_of(unsigned number) { return {"sm_90a", {{"bytecode", "stand-in " + std::to_string(number)}, {"linker", "none"}}}; }

/// A stand-in for a compiled kernel: its bytes follow from its number, so that a reader can tell whether they are all there.
CachedKernel kernel_of(unsigned number) {
  CachedKernel k{"kernel" + std::to_string(number), 128 + number, number * 16, 1, {}};
  std::minstd_rand random(number + 1);
  k.cubin.resize(20000 + 30000 * size_t{number});
  for (uint8_t& b : k.cubin) b = static_cast<uint8_t>(random() >> 8);
  return k;
}

bool same(const CachedKernel& a, const CachedKernel& b) {
  return a.symbol == b.symbol && a.threads == b.threads && a.shared_bytes == b.shared_bytes && a.cluster == b.cluster && a.cubin == b.cubin;
}

int make(const std::string& folder, const char* log) {
  Diagnostics diags;
  const auto made = Cache(folder).get(
      key_of(1),
      [&]() -> Result<CachedKernel> {
        const int fd = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd < 0 || ::write(fd, "x", 1) != 1) return Failed;
        ::close(fd);
        ::usleep(100000);
        return kernel_of(1);
      },
      diags);
  const bool right = made && same(*made, kernel_of(1)) && diags.all().empty();
  if (!right) std::fputs(render(diags).c_str(), stderr);
  return right ? 0 : 1;
}

int kill_writers(const std::string& folder, unsigned times, unsigned seed) {
  std::minstd_rand random(seed);
  const Cache cache(folder);
  unsigned found = 0, missing = 0, bad = 0;
  for (unsigned t = 0; t < times; ++t) {
    const pid_t child = ::fork();
    if (child < 0) return 2;
    if (child == 0) {
      Diagnostics ignored;
      for (unsigned n = t;; ++n) (void)cache.put(key_of(n % kKeys), kernel_of(n % kKeys), ignored);
    }
    ::usleep(random() % 3000);
    ::kill(child, SIGKILL);
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 2;
    for (unsigned n = 0; n < kKeys; ++n) {
      Diagnostics diags;
      const auto kernel = cache.find(key_of(n), diags);
      if (!diags.all().empty()) {
        ++bad;
        std::fputs(render(diags).c_str(), stderr);
      } else if (!kernel) {
        ++missing;
      } else if (same(*kernel, kernel_of(n))) {
        ++found;
      } else {
        ++bad;
      }
    }
  }
  std::printf("%u kills: %u good hits, %u misses, %u bad\n", times, found, missing, bad);
  return bad == 0 && found > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "make") == 0) return make(argv[2], argv[3]);
  if (argc == 5 && std::strcmp(argv[1], "kill") == 0) return kill_writers(argv[2], static_cast<unsigned>(std::atoi(argv[3])), static_cast<unsigned>(std::atoi(argv[4])));
  std::fputs("usage: cache_stress make DIR LOG | kill DIR N SEED\n", stderr);
  return 2;
}
