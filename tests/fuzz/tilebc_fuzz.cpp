// Any bytes given to the tilebc decoder; what it accepts must print and validate, and come back from what it is encoded
// to.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "assembler/assembler.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tile;
  Diagnostics diags;
  auto module = decode_tilebc(std::span(data, size), "input", diags);
  if (!module) {
    if (!diags.has_errors()) std::abort();
    (void)render(diags);
    return 0;
  }
  const std::string text = print_text(*module, {.debug_info = true});
  const auto bytes = encode_tilebc(*module, diags);
  if (!bytes) std::abort();
  const auto again = decode_tilebc(*bytes, "again", diags);
  if (again) {
    const auto second = encode_tilebc(*again, diags);
    if (!second || *second != *bytes || print_text(*again, {.debug_info = true}) != text) std::abort();
  } else if (code_info(diags.first_error()->code).cls != FailureClass::Exhausted) {
    std::abort();  // writing merges equal records, so a module near the limit on shared use may pass it then
  }
  (void)validate(std::move(*module), diags);
  (void)render(diags);
  return 0;
}

// Bytes that libFuzzer changes at random rarely get past the FlatBuffers verifier. Half of the time one aligned number
// becomes a small one, a neighbour of itself or another number of the file, which keeps offsets whole and reaches the
// decoder.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  if (size < 16 || random() % 2 == 0) return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max_size) : size;
  const size_t words = size / 4;
  const auto at = [&](size_t word) { return data + 4 * word; };
  const size_t target = 2 + random() % (words - 2);
  uint32_t value;
  std::memcpy(&value, at(target), sizeof value);
  switch (random() % 4) {
    case 0:
      value = static_cast<uint32_t>(random() % 16);
      break;
    case 1:
      value += static_cast<uint32_t>(random() % 9) - 4;
      break;
    case 2:
      value = 0xFFFFFFFFu;
      break;
    default:
      std::memcpy(&value, at(random() % words), sizeof value);
  }
  std::memcpy(at(target), &value, sizeof value);
  return size;
}
