// What happens when a consistency check of this project fails: one line on stderr, then abort.
// This is the one place where the library writes or ends the process: the state is unknown, going on could corrupt
// results. Tools turn SIGABRT into exit code 70; fuzzers and debuggers see the abort itself.
#include "vm/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tile {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tilevm: internal error: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace tile
