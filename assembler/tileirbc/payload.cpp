// Elements of constants: packed i1, three bytes for tf32, everything else as it is.
#include "assembler/tileirbc/payload.h"

#include "assembler/tileirbc/wire.h"
#include "vm/ir/attributes.h"

namespace tile::tileirbc {
namespace {

uint64_t load(std::string_view in, size_t at, size_t width) {
  uint64_t u = 0;
  for (size_t i = 0; i < width; ++i) u |= uint64_t{static_cast<uint8_t>(in[at + i])} << (8 * i);
  return u;
}

void append(std::string& out, uint64_t x, size_t width) {
  for (size_t i = 0; i < width; ++i) out += static_cast<char>(x >> (8 * i) & 0xFF);
}

}  // namespace

bool decode_payload(ElementType e, int64_t elements, std::string_view in, std::string& out) {
  const ElementInfo& info = tile::info(e);
  const auto expected = static_cast<uint64_t>(elements);
  out.clear();
  if (e == ElementType::I1) {
    const bool splat = in.size() == 1 && elements > kPackedByte;
    if (elements < 1 || (!splat && in.size() != (expected + 7) / 8)) return false;
    const size_t n = splat ? 1 : static_cast<size_t>(elements);
    out.resize(n);
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<char>(static_cast<uint8_t>(in[i / 8]) >> (i % 8) & 1);
  } else {
    const size_t width = payload_bytes(e);
    if (in.size() != width && (elements < 1 || in.size() % width != 0 || in.size() / width != expected)) return false;
    const size_t n = in.size() / width;
    if (e == ElementType::TF32) {
      for (size_t i = 0; i < n; ++i) append(out, load(in, i * width, width) << kTf32Shift & UINT32_MAX, info.storage);
    } else {
      out = in;
      if (info.bits == 4)
        for (char& c : out) c = static_cast<char>(c & 0xF);
    }
  }
  make_splat(out, info.storage);
  return true;
}

std::string encode_payload(ElementType e, std::string_view stored) {
  if (e == ElementType::I1) {
    if (stored.size() == 1) return std::string(1, stored[0] ? '\xFF' : '\0');
    std::string out((stored.size() + 7) / 8, '\0');
    for (size_t i = 0; i < stored.size(); ++i)
      if (stored[i]) out[i / 8] = static_cast<char>(static_cast<uint8_t>(out[i / 8]) | 1u << (i % 8));
    return out;
  }
  if (e != ElementType::TF32) return std::string(stored);
  std::string out;
  const size_t storage = tile::info(e).storage;
  for (size_t at = 0; at + storage <= stored.size(); at += storage)
    append(out, load(stored, at, storage) >> kTf32Shift, payload_bytes(e));
  return out;
}

}  // namespace tile::tileirbc
