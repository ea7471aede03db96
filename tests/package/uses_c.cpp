// A program that knows only tilevm/tilevm.h and libtilevm.
#include <tilevm/tilevm.h>

#include <cstdio>

int main() {
  const char kernel[] = "cuda_tile.module @m {\n  entry @k() {\n    return\n  }\n}\n";
  tilevm_module* module = nullptr;
  if (tilevm_open(kernel, sizeof kernel - 1, "k.tile", &module, nullptr) != TILEVM_OK) return 1;
  char* entries = tilevm_entries(module);
  std::printf("libtilevm %s: %s\n", tilevm_version(), entries);
  tilevm_free(entries);
  tilevm_close(module);
  return 0;
}
