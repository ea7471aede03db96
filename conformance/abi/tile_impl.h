/* The C interface of an implementation of Tile IR under test: a shared library that exports these four functions.
 *
 *   python3 conformance/run.py --impl ./libmine.so
 *
 * protocol.md, section 7, has the order of the calls. Plain C99 without dependencies: copy it into your own sources. */
#ifndef TILE_IMPL_H
#define TILE_IMPL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TILE_IMPL_EXPORT __declspec(dllexport)
#else
#define TILE_IMPL_EXPORT __attribute__((visibility("default")))
#endif

/* Structures only grow at their end, and then this number does. */
#define TILE_IMPL_ABI 1

typedef enum {
  TILE_IMPL_OK = 0,
  TILE_IMPL_REJECTED = 1,    /* the program is not valid */
  TILE_IMPL_TRAP = 2,        /* the launch ended in a trap */
  TILE_IMPL_UNSUPPORTED = 3, /* cannot be done here */
  TILE_IMPL_CRASH = 4,       /* the engine behind the library broke; the library itself goes on */
  TILE_IMPL_HANG = 5         /* the same, but it did not end */
} tile_impl_status;

/* Filled by the implementation where the status is not TILE_IMPL_OK. The caller sets everything to 0 beforehand. Texts end with a 0. */
typedef struct {
  int32_t line;          /* of a rejection in a text, from 1; 0: not known */
  char class_name[28];   /* of a rejection or a trap, protocol.md section 2; empty: not known */
  char reason[992];      /* for people */
} tile_impl_report;

typedef struct {
  const char* form;      /* "text", "tilebc" or "tileirbc" */
  const char* version;   /* "13.1" to "13.5": of the bytecode, or the lowest that a text needs */
  const char* name;      /* of the case, for messages */
  const uint8_t* data;   /* ends with a 0 that `size` does not count */
  uint64_t size;
} tile_impl_kernel;

typedef struct {
  const char* type;      /* element type, such as "f16" */
  uint8_t* data;         /* little-endian, laid out as in a kernel's global memory, aligned to 256 bytes; changed in place */
  uint64_t size;         /* bytes */
} tile_impl_buffer;

typedef struct {
  const char* type;      /* of the scalar, or of what the pointer leads to */
  int32_t buffer;        /* index of a buffer, or -1: a scalar */
  int32_t reserved;      /* 0 */
  uint64_t value;        /* bits of the scalar, or the byte of the buffer that the pointer leads to */
} tile_impl_param;

typedef struct {
  const char* entry;
  uint32_t grid[3];
  uint32_t params_count, buffers_count;
  uint32_t timeout_ms;   /* the library is killed some seconds after this */
  const tile_impl_param* params;   /* of the entry, in order */
  tile_impl_buffer* buffers;
  void (*print)(void* user, const char* text, uint64_t size); /* takes what kernels print; from any thread, one call at a time */
  void* user;
} tile_impl_launch;

typedef struct tile_impl tile_impl;

/* Once a process, before everything else. `description` receives a JSON object as in section 3 of protocol.md, without "protocol" and
 * "batch"; it stays valid. Returns NULL if the implementation does not know `abi`, or cannot work here; description then says why, or is
 * NULL. */
TILE_IMPL_EXPORT tile_impl* tile_impl_open(uint32_t abi, const char** description);

/* Reads, checks and compiles a kernel as far as possible without a launch. Takes the place of the kernel before. */
TILE_IMPL_EXPORT int32_t tile_impl_load(tile_impl* impl, const tile_impl_kernel* kernel, tile_impl_report* report);

/* Launches an entry of the loaded kernel, returns when all blocks have ended. Globals start from their initial values. */
TILE_IMPL_EXPORT int32_t tile_impl_run(tile_impl* impl, const tile_impl_launch* launch, tile_impl_report* report);

TILE_IMPL_EXPORT void tile_impl_close(tile_impl* impl);

#ifdef __cplusplus
}
#endif
#endif
