/* libtilevm: kernels of Tile IR checked and run inside a program of yours, on the exact reference machine. Plain C99.
 *
 *   tilevm_module* m;
 *   char* errors = NULL;
 *   if (tilevm_open(bytes, size, "add.tileirbc", &m, &errors) != TILEVM_OK) { puts(errors); tilevm_free(errors); return 1; }
 *   float c[64];
 *   tilevm_buffer buffers[] = {{c, sizeof c}};
 *   tilevm_argument arguments[] = {{0, 0}};
 *   tilevm_launch l = {.struct_size = sizeof l, .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 1, .buffers = buffers, .buffer_count = 1};
 *   if (tilevm_run(m, &l, &errors) != TILEVM_OK) { puts(errors); tilevm_free(errors); }
 *   tilevm_close(m);
 *
 * The library prints nothing, never ends the process, and lets no exception out. Functions may be called from any thread; one module is used by
 * one thread at a time. Texts that it returns are freed with tilevm_free(). */
#ifndef TILEVM_TILEVM_H
#define TILEVM_TILEVM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TILEVM_API __declspec(dllexport)
#else
#define TILEVM_API __attribute__((visibility("default")))
#endif

/* Structures only grow at their end, functions are only added, and then this number grows. */
#define TILEVM_API_VERSION 2

/* For tilevm_launch.choices: what of spec/machine.md "Freedom" is chosen. */
#define TILEVM_SCHEDULE 1u     /* blocks interleave by the seed `schedule`, on one thread */
#define TILEVM_ORDER 2u        /* blocks begin in an order that follows from the seed `order` */
#define TILEVM_NUMERICS_H200 4u /* numbers of NVIDIA's compiler on an H200 where the language leaves them open */

/* The exit statuses of the programs: spec/tools.md. */
typedef enum {
  TILEVM_OK = 0,
  TILEVM_REJECTED = 1,    /* the input is malformed or invalid, or the launch does not fit the kernel */
  TILEVM_USAGE = 2,       /* this function was called wrongly: a null pointer, a structure that is too small */
  TILEVM_ENVIRONMENT = 3, /* not enough memory */
  TILEVM_TRAP = 4,        /* the launch ended in a trap; the buffers are as before */
  TILEVM_LIMIT = 6,       /* fuel or memory limit, or a limit on the size of inputs */
  TILEVM_INTERNAL = 70    /* a fault of the library */
} tilevm_status;

typedef struct tilevm_module tilevm_module;

/* Memory of the program that a kernel gets as global memory: read and written back whole where the launch ends well. Any alignment; the kernel sees
 * a copy at a multiple of 256 bytes. */
typedef struct {
  void* data;
  uint64_t size; /* bytes */
} tilevm_buffer;

/* A parameter of the entry, in order. */
typedef struct {
  int32_t buffer; /* index of a buffer for pointers; -1 for scalars */
  uint64_t value; /* bits of the scalar; or the byte of the buffer that the pointer leads to */
} tilevm_argument;

typedef struct {
  uint64_t struct_size;   /* sizeof(tilevm_launch) */
  const char* entry;      /* NULL: the only one */
  uint32_t grid[3];       /* tile blocks along x, y, z, each at least 1 */
  uint32_t argument_count, buffer_count;
  const tilevm_argument* arguments;
  const tilevm_buffer* buffers;
  uint32_t threads;       /* 0: one for each core */
  uint64_t fuel;          /* steps of a block; 0: unlimited */
  uint64_t max_memory;    /* bytes that the tiles of one block may take; 0: 4 GiB */
  void (*print)(void* user, const char* text, uint64_t size); /* takes what kernels print; NULL: dropped. From any thread, one call at a time */
  void* user;
  /* Since version 2; a smaller struct_size leaves them out. */
  uint32_t choices;       /* TILEVM_SCHEDULE and others, joined by |; 0: none of them */
  uint64_t schedule, order; /* seeds */
} tilevm_launch;

/* "0.1.0"; stays valid. */
TILEVM_API const char* tilevm_version(void);

/* Reads text, tilebc or tileirbc, recognised by content, and checks it by all rules of the language. `bytes` is not needed afterwards.
 *
 * name: what messages call it; may be NULL.
 * errors: may be NULL. Otherwise it receives NULL, or what --diagnostics json prints, warnings too: an object a line, with code, class, subclass, severity,
 *   message, file, line, column, function, instruction. */
TILEVM_API tilevm_status tilevm_open(const void* bytes, uint64_t size, const char* name, tilevm_module** module, char** errors);

/* What is in a module, as JSON: {"entries": [{"name": "k", "params": [{"name": "a", "type": "ptr", "pointee": "f32"}, {"name": "n", "type": "i32"}]}]}.
 * NULL where memory runs out. */
TILEVM_API char* tilevm_entries(const tilevm_module* module);

/* Runs an entry over a grid, and returns when all blocks have ended. Globals of the module start from their initial values. After any other status
 * than TILEVM_OK the buffers are as before. errors: as above. */
TILEVM_API tilevm_status tilevm_run(tilevm_module* module, const tilevm_launch* launch, char** errors);

TILEVM_API void tilevm_close(tilevm_module* module); /* NULL is allowed, also below */
TILEVM_API void tilevm_free(char* text);

#ifdef __cplusplus
}
#endif
#endif
