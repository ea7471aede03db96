// Any bytes given to the tileirbc reader; what it accepts must print, and must be readable again after writing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  Diagnostics diags;
  const auto module = read_tileirbc(std::span(data, size), "input", diags);
  if (!module) {
    if (!diags.has_errors()) std::abort();
    (void)render(diags);
    return 0;
  }
  (void)print_text(*module, {.debug_info = true});
  const auto bytes = write_tileirbc(*module, kNewestVersion, diags, {.provisional = true});
  if (!bytes) return 0;
  const auto again = read_tileirbc(*bytes, "again", diags);
  if (!again) {
    // Writing merges equal records, so a module near the limit on shared use may pass it then.
    if (code_info(diags.first_error()->code).cls != FailureClass::Exhausted) std::abort();
    return 0;
  }
  const auto second = write_tileirbc(*again, kNewestVersion, diags, {.provisional = true});
  if (!second || *second != *bytes) std::abort();
  return 0;
}
