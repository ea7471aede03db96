// Any bytes given to the tileirbc reader; what it accepts must print, validate, and be readable again after writing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "tests/fuzz/budget.h"
#include "tests/fuzz/mutate.h"
#include "vm/ir/valid_module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  using fuzz::within;
  Diagnostics diags;
  auto module = within("read_tileirbc", size, [&] { return read_tileirbc(std::span(data, size), "input", diags); });
  if (!module) {
    if (!diags.has_errors()) std::abort();
    within("render", size, [&] { return render(diags); });
    // A tool may still look at such a file.
    diags.clear();
    (void)within("read_tileirbc partially", size,
                 [&] { return read_tileirbc(std::span(data, size), "input", diags, {.partial = true}); });
    return 0;
  }
  (void)within("print_text", size, [&] { return print_text(*module, {.debug_info = true}); });
  const auto bytes =
      within("write_tileirbc", size, [&] { return write_tileirbc(*module, kNewestVersion, diags, {.provisional = true}); });
  if (bytes) {
    if (const auto again = within("read_tileirbc again", bytes->size(), [&] { return read_tileirbc(*bytes, "again", diags); })) {
      const auto second = within("write_tileirbc again", bytes->size(),
                                 [&] { return write_tileirbc(*again, kNewestVersion, diags, {.provisional = true}); });
      if (!second || *second != *bytes) std::abort();
    } else if (code_info(diags.first_error()->code).cls != FailureClass::Exhausted) {
      std::abort();  // writing merges equal records, so a module near the limit on shared use may pass it then
    }
  }
  (void)within("validate", size, [&] { return validate(std::move(*module), diags); });
  within("render", size, [&] { return render(diags); });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tile::fuzz::mutate_tileirbc(data, size, max_size, seed);
}
