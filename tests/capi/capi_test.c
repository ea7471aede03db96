/* The C interface as a C program uses it: modules in, JSON out, launches, and every way to call it wrongly. */
#include <tilevm/tilevm.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(what)                                                  \
  do {                                                               \
    if (!(what)) {                                                   \
      printf("FAILED, line %d: %s\n", __LINE__, #what);              \
      ++failures;                                                    \
    }                                                                \
  } while (0)

static const char kKernel[] =
    "cuda_tile.module @m {\n"
    "  entry @scale(%p: tile<ptr<i32>>, %n: tile<i32>) {\n"
    "    %b, %y, %z = get_tile_block_id : tile<i32>\n"
    "    %q = offset %p, %b : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n"
    "    %x, %t = load_ptr_tko weak %q : tile<ptr<i32>> -> tile<i32>, token\n"
    "    %r = muli %x, %n : tile<i32>\n"
    "    %u = store_ptr_tko weak %q, %r : tile<ptr<i32>>, tile<i32> -> token\n"
    "    return\n"
    "  }\n"
    "  entry @talk() {\n"
    "    %x = constant <i32: 7> : tile<i32>\n"
    "    %t = print_tko \"x = %d\\n\", %x : tile<i32> -> token\n"
    "    %f = constant <i1: false> : tile<i1>\n"
    "    assert %f, \"no\" : tile<i1>\n"
    "    return\n"
    "  }\n"
    "  entry @who() {\n"
    "    %b, %y, %z = get_tile_block_id : tile<i32>\n"
    "    %t = print_tko \"%d\", %b : tile<i32> -> token\n"
    "    return\n"
    "  }\n"
    "}\n";

static void print(void* user, const char* text, uint64_t size) {
  strncat((char*)user, text, size < 60 ? (size_t)size : 60);
}

/* Whether `errors` contains a text; frees it. */
static int says(char* errors, const char* text) {
  const int found = errors != NULL && strstr(errors, text) != NULL;
  if (!found) printf("expected %s in %s\n", text, errors == NULL ? "nothing" : errors);
  tilevm_free(errors);
  return found;
}

int main(void) {
  tilevm_module* m = NULL;
  char* errors = NULL;
  char printed[128] = "", before[128] = "";
  int32_t data[5] = {1, -2, 3, 4, 5};
  tilevm_buffer buffer;
  tilevm_argument arguments[2];
  tilevm_launch l;

  CHECK(strchr(tilevm_version(), '.') != NULL);
  CHECK(tilevm_open(kKernel, sizeof kKernel - 1, "k.tile", &m, &errors) == TILEVM_OK && m != NULL && errors == NULL);
  if (m == NULL) {
    printf("%s\n", errors);
    return 1;
  }
  errors = tilevm_entries(m);
  CHECK(says(errors, "{\"entries\":[{\"name\":\"scale\",\"params\":[{\"name\":\"p\",\"type\":\"ptr\",\"pointee\":\"i32\"},"
                     "{\"name\":\"n\",\"type\":\"i32\"}]},{\"name\":\"talk\",\"params\":[]},{\"name\":\"who\",\"params\":[]}]}"));

  memset(&l, 0, sizeof l);
  buffer.data = data;
  buffer.size = sizeof data;
  arguments[0].buffer = 0;
  arguments[0].value = 4; /* the second element */
  arguments[1].buffer = -1;
  arguments[1].value = 10;
  l.struct_size = sizeof l;
  l.entry = "scale";
  l.grid[0] = 3;
  l.grid[1] = l.grid[2] = 1;
  l.arguments = arguments;
  l.argument_count = 2;
  l.buffers = &buffer;
  l.buffer_count = 1;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_OK && errors == NULL);
  CHECK(data[0] == 1 && data[1] == -20 && data[2] == 30 && data[3] == 40 && data[4] == 5);

  /* A trap leaves the buffers as they were. */
  l.grid[0] = 5;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_TRAP);
  CHECK(says(errors, "\"T0101\""));
  CHECK(data[1] == -20);
  l.grid[0] = 1;
  l.fuel = 1;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_LIMIT && says(errors, "exhausted"));
  l.fuel = 0;

  /* Launches that do not fit. */
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK);
  l.argument_count = 1;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "E0802"));
  l.argument_count = 2;
  arguments[1].buffer = 0;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "E0803"));
  arguments[1].buffer = -1;
  arguments[0].buffer = 1;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "E0804"));
  arguments[0].buffer = 0;
  arguments[0].value = 21;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "beyond the end"));
  arguments[0].value = 0;
  l.grid[1] = 0;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "E0805"));
  l.grid[1] = 1;
  l.entry = NULL;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_REJECTED && says(errors, "E0801"));
  l.entry = "scale";

  /* Printing, and a failed assertion. */
  l.entry = "talk";
  l.argument_count = l.buffer_count = 0;
  l.print = print;
  l.user = printed;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_TRAP && says(errors, "\"T0102\""));
  CHECK(strncmp(printed, "x = 7\n", 6) == 0);

  /* Choices where the language leaves them: blocks in another order, the same one each time; a structure of version 1 has none. */
  l.entry = "who";
  l.grid[0] = 6;
  l.threads = 1;
  printed[0] = '\0';
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK && strcmp(printed, "012345") == 0);
  l.choices = TILEVM_ORDER;
  l.order = 1;
  printed[0] = '\0';
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK && strlen(printed) == 6 && strcmp(printed, "012345") != 0);
  strcpy(before, printed);
  l.choices = TILEVM_ORDER | TILEVM_SCHEDULE | TILEVM_NUMERICS_H200;
  l.schedule = 5;
  printed[0] = '\0';
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK && strlen(printed) == 6);
  strcpy(before, printed);
  printed[0] = '\0';
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK && strcmp(printed, before) == 0);
  l.choices = 0xF0;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_USAGE && says(errors, "choice"));
  l.struct_size = offsetof(tilevm_launch, choices);
  printed[0] = '\0';
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_OK && strcmp(printed, "012345") == 0);
  l.choices = 0;
  l.entry = "talk";

  /* Calls that are wrong. */
  l.struct_size = 8;
  CHECK(tilevm_run(m, &l, &errors) == TILEVM_USAGE && says(errors, "struct_size"));
  CHECK(tilevm_run(NULL, &l, NULL) == TILEVM_USAGE);
  CHECK(tilevm_run(m, NULL, NULL) == TILEVM_USAGE);
  l.struct_size = sizeof l;
  l.argument_count = 1;
  l.arguments = NULL;
  CHECK(tilevm_run(m, &l, NULL) == TILEVM_USAGE);
  tilevm_close(m);

  /* Inputs that are no modules, in each form; every shorter part of a module. */
  CHECK(tilevm_open("entry", 5, NULL, &m, &errors) == TILEVM_REJECTED && m == NULL && says(errors, "<memory>"));
  CHECK(tilevm_open("TILEBC\r\n\x1a\n\0\0", 12, "b", &m, &errors) == TILEVM_REJECTED && says(errors, "\"class\":\"malformed\""));
  CHECK(tilevm_open("\x7fTileIR", 7, "t", &m, &errors) == TILEVM_REJECTED && says(errors, "malformed"));
  CHECK(tilevm_open(NULL, 3, NULL, &m, NULL) == TILEVM_USAGE);
  CHECK(tilevm_open(kKernel, 3, NULL, NULL, NULL) == TILEVM_USAGE);
  for (uint64_t size = 0; size + 1 < sizeof kKernel - 1; ++size) {
    char* part = malloc(size + 1);
    memcpy(part, kKernel, size);
    if (tilevm_open(part, size, NULL, &m, NULL) == TILEVM_OK) tilevm_close(m);
    free(part);
  }
  tilevm_close(NULL);
  tilevm_free(NULL);
  CHECK(tilevm_entries(NULL) == NULL);
  printf(failures ? "%d checks failed\n" : "the C interface works\n", failures);
  return failures != 0;
}
