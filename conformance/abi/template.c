/* A template for tile_impl.h: a library that can do nothing yet, and says so.
 *
 *   cc -shared -fPIC -I . -o libmine.so template.c && python3 ../run.py --impl ./libmine.so */
#include <tile_impl.h>

#include <stdio.h>
#include <stdlib.h>

struct tile_impl {
  int loaded; /* here goes what is needed to run the kernel that was loaded last */
};

tile_impl* tile_impl_open(uint32_t abi, const char** description) {
  if (abi != TILE_IMPL_ABI) return NULL;
  *description = "{\"name\": \"my implementation\", \"version\": \"0\", \"forms\": [\"tileirbc\"], \"profile\": \"language\"}";
  return (tile_impl*)calloc(1, sizeof(tile_impl));
}

int32_t tile_impl_load(tile_impl* impl, const tile_impl_kernel* kernel, tile_impl_report* report) {
  impl->loaded = 0;
  snprintf(report->reason, sizeof report->reason, "%s: %s kernels cannot be read yet", kernel->name, kernel->form);
  return TILE_IMPL_UNSUPPORTED;
}

int32_t tile_impl_run(tile_impl* impl, const tile_impl_launch* launch, tile_impl_report* report) {
  snprintf(report->reason, sizeof report->reason, "%s: nothing can be launched yet", impl->loaded ? launch->entry : "no kernel");
  return TILE_IMPL_UNSUPPORTED;
}

void tile_impl_close(tile_impl* impl) {
  free(impl);
}
