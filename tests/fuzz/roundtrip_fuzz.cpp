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

Result<Module> read(std::span<const uint8_t> bytes, Diagnostics& diags) {
  if (is_tileirbc(bytes)) return read_tileirbc(bytes, "input", diags);
  if (is_tilebc(bytes)) return decode_tilebc(bytes, "input", diags);
  return parse_text(std::make_shared<Source>("input", std::string(bytes.begin(), bytes.end())), diags);
}

std::string print(const Module& m) { return print_text(m, {.debug_info = true}); }

bool is_valid(const Module& m) {
  Diagnostics diags;
  const bool valid = bool{validate(m, diags)};
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
  const Result<Module> module = read(std::span(data, size), diags);
  if (!module) return 0;
  // What the language does not allow, text need not be able to say, and tileirbc is not written from.
  if (!is_valid(*module)) return 0;
  const std::string text = print(*module);

  diags.clear();
  const Result<Module> parsed = parse_text(std::make_shared<Source>("text", text), diags);
  if (!parsed) stop("own text is rejected");
  same("own text reads differently", text, print(*parsed));
  if (!is_valid(*parsed)) stop("own text is not valid");

  diags.clear();
  const auto tilebc = encode_tilebc(*parsed, diags);
  if (!tilebc && !exhausted(diags)) stop("tilebc cannot be written");
  if (!tilebc) return 0;
  const Result<Module> decoded = decode_tilebc(*tilebc, "tilebc", diags);
  if (!decoded && !exhausted(diags)) stop("own tilebc is rejected");
  if (!decoded) return 0;
  same("own tilebc reads differently", text, print(*decoded));
  if (!is_valid(*decoded)) stop("own tilebc is not valid");

  diags.clear();
  const auto first = write_tileirbc(*decoded, kNewestVersion, diags, {.provisional = true});
  if (!first && !diags.has_errors()) stop("tileirbc is not written, and no reason given");
  if (!first) return 0;
  const Result<Module> back = read_tileirbc(*first, "tileirbc", diags);
  if (!back && !exhausted(diags)) stop("own tileirbc is rejected");
  if (!back) return 0;
  if (!is_valid(*back)) stop("own tileirbc is not valid");
  const auto second = write_tileirbc(*back, kNewestVersion, diags, {.provisional = true});
  if (!second || *second != *first) stop("tileirbc changes when it is written again");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tile::fuzz::mutate_any(data, size, max_size, seed);
}
