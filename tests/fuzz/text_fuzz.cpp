// Any bytes as text: the parser must end in a module or in errors, and what it reads and is valid must print to text that
// reads back the same.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "assembler/assembler.h"
#include "tests/fuzz/budget.h"
#include "tests/fuzz/mutate.h"
#include "vm/ir/valid_module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  using fuzz::within;
  Diagnostics diags;
  Result<Module> module = within("parse_text", size, [&] {
    return parse_text(std::make_shared<Source>("fuzz", std::string(reinterpret_cast<const char*>(data), size)), diags);
  });
  if (!module) {
    if (!diags.has_errors()) std::abort();
    within("render", size, [&] { return render(diags); });
    return 0;
  }
  const PrintOptions options{.debug_info = true};
  const std::string printed = within("print_text", size, [&] { return print_text(*module, options); });
  diags.clear();
  const Result<ValidModule> valid = within("validate", size, [&] { return validate(std::move(*module), diags); });
  if (!valid && !diags.has_errors()) std::abort();
  within("render", size, [&] { return render(diags); });
  // A quarter of the inputs, for speed; the same ones always.
  if (std::hash<std::string>{}(printed) % 4 != 0) return 0;
  diags.clear();
  const Result<Module> again =
      within("parse_text of the printed text", printed.size(), [&] { return parse_text(std::make_shared<Source>("printed", printed), diags); });
  // A terminator that is missing, which only the generic form can say, comes back with the text.
  if (valid && (!again || within("print_text again", printed.size(), [&] { return print_text(*again, options); }) != printed)) std::abort();
  if (!again && !diags.has_errors()) std::abort();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tile::fuzz::mutate_text(data, size, max_size, seed);
}
