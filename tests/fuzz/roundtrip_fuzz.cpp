// A valid module of any form, through every form and back: it must stay valid, and what it prints the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "tests/fuzz/budget.h"
#include "tests/fuzz/mutate.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"

namespace {

using namespace tile;
using fuzz::within;

Result<Module> read(std::span<const uint8_t> bytes, Diagnostics& diags) {
  if (is_tileirbc(bytes)) return read_tileirbc(bytes, "input", diags);
  if (is_tilebc(bytes)) return decode_tilebc(bytes, "input", diags);
  return parse_text(std::make_shared<Source>("input", std::string(bytes.begin(), bytes.end())), diags);
}

// Each step may take what its own input is worth: `size` is that of the form from which the module was read.
std::string print(const Module& m, size_t size) {
  return within("print_text", size, [&] { return print_text(m, {.debug_info = true}); });
}

bool is_valid(const Module& m, size_t size) {
  Diagnostics diags;
  const bool valid = within("validate", size, [&] { return bool{validate(m, diags)}; });
  if (valid == diags.has_errors()) std::abort();
  return valid;
}

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "round trip: %s\n", what);
  std::abort();
}

// The texts, from the first line in which they differ.
void same(const char* what, const std::string& a, const std::string& b) {
  if (a == b) return;
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t line = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
  std::fprintf(stderr, "before: %s\nafter:  %s\n", a.substr(line, 200).c_str(), b.substr(line, 200).c_str());
  stop(what);
}

bool exhausted(const Diagnostics& diags) {
  return diags.first_error() && code_info(diags.first_error()->code).cls == FailureClass::Exhausted;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Diagnostics diags;
  const Result<Module> module = within("read", size, [&] { return read(std::span(data, size), diags); });
  if (!module) return 0;
  // What the language does not allow, text need not be able to say, and tileirbc is not written from.
  if (!is_valid(*module, size)) return 0;
  const std::string text = print(*module, size);

  diags.clear();
  const Result<Module> parsed =
      within("parse_text", text.size(), [&] { return parse_text(std::make_shared<Source>("text", text), diags); });
  if (!parsed) stop("own text is rejected");
  same("own text reads differently", text, print(*parsed, text.size()));
  if (!is_valid(*parsed, text.size())) stop("own text is not valid");

  diags.clear();
  const auto tilebc = within("encode_tilebc", text.size(), [&] { return encode_tilebc(*parsed, diags); });
  if (!tilebc && !exhausted(diags)) stop("tilebc cannot be written");
  if (!tilebc) return 0;
  const Result<Module> decoded =
      within("decode_tilebc", tilebc->size(), [&] { return decode_tilebc(*tilebc, "tilebc", diags); });
  if (!decoded && !exhausted(diags)) stop("own tilebc is rejected");
  if (!decoded) return 0;
  same("own tilebc reads differently", text, print(*decoded, tilebc->size()));
  if (!is_valid(*decoded, tilebc->size())) stop("own tilebc is not valid");

  diags.clear();
  const auto write = [&](const Module& m, size_t module_size) {
    return within("write_tileirbc", module_size, [&] { return write_tileirbc(m, kNewestVersion, diags, {.provisional = true}); });
  };
  const auto first = write(*decoded, tilebc->size());
  if (!first && !diags.has_errors()) stop("tileirbc is not written, and no reason given");
  if (!first) return 0;
  const Result<Module> back =
      within("read_tileirbc", first->size(), [&] { return read_tileirbc(*first, "tileirbc", diags); });
  if (!back && !exhausted(diags)) stop("own tileirbc is rejected");
  if (!back) return 0;
  if (!is_valid(*back, first->size())) stop("own tileirbc is not valid");
  const auto second = write(*back, first->size());
  if (!second || *second != *first) stop("tileirbc changes when it is written again");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tile::fuzz::mutate_any(data, size, max_size, seed);
}
