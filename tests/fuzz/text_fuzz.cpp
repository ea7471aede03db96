// Any bytes as text: the parser must end in a module or in errors, and what it reads must print to text that reads back
// the same.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "assembler/assembler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  Diagnostics diags;
  const Result<Module> module =
      parse_text(std::make_shared<Source>("fuzz", std::string(reinterpret_cast<const char*>(data), size)), diags);
  if (!module) {
    if (!diags.has_errors()) std::abort();
    (void)render(diags);
    return 0;
  }
  const PrintOptions options{.debug_info = true};
  const std::string printed = print_text(*module, options);
  diags.clear();
  const Result<Module> again = parse_text(std::make_shared<Source>("printed", printed), diags);
  if (!again || print_text(*again, options) != printed) std::abort();
  return 0;
}
