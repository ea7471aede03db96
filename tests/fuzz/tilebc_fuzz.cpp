// Any bytes given to the tilebc decoder; what it accepts must print and validate, and come back from what it is encoded
// to.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "assembler/assembler.h"
#include "tests/fuzz/budget.h"
#include "tests/fuzz/mutate.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  using fuzz::within;
  Diagnostics diags;
  auto module = within("decode_tilebc", size, [&] { return decode_tilebc(std::span(data, size), "input", diags); });
  if (!module) {
    if (!diags.has_errors()) std::abort();
    within("render", size, [&] { return render(diags); });
    return 0;
  }
  const std::string text = within("print_text", size, [&] { return print_text(*module, {.debug_info = true}); });
  const auto bytes = within("encode_tilebc", size, [&] { return encode_tilebc(*module, diags); });
  if (!bytes) std::abort();
  if (const auto again = within("decode_tilebc again", bytes->size(), [&] { return decode_tilebc(*bytes, "again", diags); })) {
    const auto second = within("encode_tilebc again", bytes->size(), [&] { return encode_tilebc(*again, diags); });
    const std::string printed = within("print_text again", bytes->size(), [&] { return print_text(*again, {.debug_info = true}); });
    if (!second || *second != *bytes || printed != text) std::abort();
  } else if (code_info(diags.first_error()->code).cls != FailureClass::Exhausted) {
    std::abort();  // writing merges equal records, so a module near the limit on shared use may pass it then
  }
  (void)within("validate", size, [&] { return validate(std::move(*module), diags); });
  within("render", size, [&] { return render(diags); });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tile::fuzz::mutate_tilebc(data, size, max_size, seed);
}
