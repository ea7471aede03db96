// Changes of text, tilebc and tileirbc that keep what surrounds them whole.
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/tileirbc/tileirbc.h"
#include "assembler/tileirbc/wire.h"
#include "vm/base/element_type.h"
#include "vm/codec/tilebc.h"
#include "vm/ops/enums.h"
#include "vm/ops/op_table.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tile::fuzz {
namespace {

using Random = std::minstd_rand;
using Words = std::vector<std::string_view>;

size_t plain(uint8_t* data, size_t size, size_t max_size) {
  return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max_size) : size;
}

size_t give_back(const std::string& text, uint8_t* data, size_t max_size) {
  const size_t size = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), size);
  return size;
}

/// Lists of words that can stand for each other.
const std::vector<Words>& vocabulary() {
  static const std::vector<Words> lists = [] {
    std::vector<Words> all(2);
    for (const OpDef& op : op_rows()) {
      all[0].push_back(op.name);
      Words attributes;
      for (const AttrDef& attr : op.attrs) attributes.push_back(attr.name);
      if (attributes.size() > 1) all.push_back(attributes);
    }
    for (const ElementInfo& element : kElementInfo) all[1].push_back(element.name);
    for (int kind = 1; kind <= static_cast<int>(EnumKind::MultimemKind); ++kind) {
      Words words;
      for (const EnumValue& value : enum_info(static_cast<EnumKind>(kind)).values) words.push_back(value.word);
      all.push_back(words);
    }
    all.push_back({"tile", "ptr", "tensor_view", "partition_view", "strided_view", "gather_scatter_view", "token"});
    all.push_back({"div_by", "same_elements", "bounded"});
    return all;
  }();
  return lists;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string number(Random& random) {
  static constexpr const char* kNumbers[] = {"0", "1", "2", "3", "4", "8", "16", "64", "127", "128", "255", "1024", "65536",
                                             "16777216", "16777217", "2147483647", "2147483648", "4294967296",
                                             "9223372036854775807", "9223372036854775808", "18446744073709551616", "?"};
  return kNumbers[random() % std::size(kNumbers)];
}

/// Changes the word around `at`; false where there is none.
bool change_word(std::string& text, size_t at, Random& random) {
  while (at < text.size() && !is_word(text[at])) ++at;
  if (at == text.size()) return false;
  size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  while (at > 0 && is_word(text[at - 1])) --at;
  if (at > 0 && text[at - 1] == '%') {  // a value: another one of the text
    const size_t other = text.find('%', random() % text.size());
    if (other == std::string::npos) return false;
    size_t stop = other + 1;
    while (stop < text.size() && is_word(text[stop])) ++stop;
    const std::string name = text.substr(other + 1, stop - other - 1);
    text.replace(at, end - at, name);
    return true;
  }
  // A shape with its element, 4x8xf32: one of its parts.
  const std::string word = text.substr(at, end - at);
  if (is_digit(word[0])) {
    std::vector<size_t> starts = {0};
    for (size_t i = 0; i + 1 < word.size(); ++i)
      if (word[i] == 'x') starts.push_back(i + 1);
    const size_t part = starts[random() % starts.size()];
    size_t stop = word.find('x', part);
    if (stop == std::string::npos) stop = word.size();
    const Words& elements = vocabulary()[1];
    const std::string fresh =
        is_digit(word[part]) ? number(random) : std::string(elements[random() % elements.size()]);
    text.replace(at + part, stop - part, fresh);
    return true;
  }
  for (const Words& list : vocabulary()) {
    if (std::find(list.begin(), list.end(), word) == list.end()) continue;
    text.replace(at, end - at, list[random() % list.size()]);
    return true;
  }
  return false;
}

/// Drops, doubles or swaps lines.
void change_lines(std::string& text, Random& random) {
  const auto line_at = [&](size_t at) {
    size_t begin = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    begin = begin == std::string::npos ? 0 : begin + 1;
    const size_t end = text.find('\n', at);
    return std::pair(begin, end == std::string::npos ? text.size() : end + 1);
  };
  const auto [begin, end] = line_at(random() % text.size());
  const std::string line = text.substr(begin, end - begin);
  switch (random() % 3) {
    case 0:
      text.erase(begin, end - begin);
      break;
    case 1:
      text.insert(line_at(random() % text.size()).first, line);
      break;
    default:
      text.erase(begin, end - begin);
      if (!text.empty()) text.insert(line_at(random() % text.size()).first, line);
  }
}

/// A LEB128 number at `at`, of at most `left` bytes; its length, 0 where there is none.
size_t varint_at(const uint8_t* at, size_t left, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < std::min<size_t>(left, 10); ++i) {
    if (i < 9) value |= static_cast<uint64_t>(at[i] & 0x7F) << (7 * i);
    if (!(at[i] & 0x80)) return i + 1;
  }
  return 0;
}

/// Writes the low bits of a number in exactly `length` bytes.
void put_varint(uint8_t* at, size_t length, uint64_t value) {
  for (size_t i = 0; i < length; ++i, value >>= 7)
    at[i] = static_cast<uint8_t>((value & 0x7F) | (i + 1 < length ? 0x80 : 0));
}

struct Payload {
  size_t header, begin, end;  ///< header: where the section's id stands
};

std::vector<Payload> sections(const uint8_t* data, size_t size) {
  std::vector<Payload> all;
  size_t at = tileirbc::kHeaderBytes;
  while (at < size && data[at] != 0) {
    const size_t header = at;
    const bool aligned = data[at++] & tileirbc::kHasAlignment;
    uint64_t length = 0, alignment = 1;
    size_t n = varint_at(data + at, size - at, length);
    if (n == 0) break;
    at += n;
    if (aligned) {
      n = varint_at(data + at, size - at, alignment);
      if (n == 0 || alignment == 0 || alignment > size) break;
      at += n;
      at = (at + alignment - 1) / alignment * alignment;
    }
    if (at > size || length > size - at) break;
    all.push_back({header, at, at + length});
    at += length;
  }
  return all;
}

/// Puts another payload in the place of a section's and lays the file out anew behind it.
std::string with_payload(const std::string& file, const std::vector<Payload>& all, size_t which, const std::string& payload) {
  std::string out = file.substr(0, all[which].header);
  for (size_t s = which; s < all.size(); ++s) {
    const std::string body = s == which ? payload : file.substr(all[s].begin, all[s].end - all[s].begin);
    const auto* header = reinterpret_cast<const uint8_t*>(file.data()) + all[s].header;
    out.push_back(file[all[s].header]);
    uint8_t length[5];
    size_t n = 1;
    while (n < 5 && body.size() >> (7 * n) != 0) ++n;
    put_varint(length, n, body.size());
    out.append(reinterpret_cast<const char*>(length), n);
    if (*header & tileirbc::kHasAlignment) {
      uint64_t ignored, alignment = 1;
      const size_t skip = 1 + varint_at(header + 1, file.size() - all[s].header - 1, ignored);
      const size_t width = varint_at(header + skip, file.size() - all[s].header - skip, alignment);
      out.append(file, all[s].header + skip, width);
      while (out.size() % alignment != 0) out.push_back(static_cast<char>(tileirbc::kPadding));
    }
    out += body;
  }
  return out + file.substr(all.back().end);
}

}  // namespace

size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  if (size < 8 || random() % 3 == 0) return plain(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  for (size_t edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
    if (random() % 4 == 0 || !change_word(text, random() % text.size(), random)) change_lines(text, random);
  }
  return give_back(text, data, max_size);
}

size_t mutate_tilebc(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  if (size < 16 || random() % 2 == 0) return plain(data, size, max_size);
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

size_t mutate_tileirbc(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  if (size <= tileirbc::kHeaderBytes || random() % 4 == 0) return plain(data, size, max_size);
  const std::vector<Payload> all = sections(data, size);
  if (all.empty()) return plain(data, size, max_size);
  const size_t which = random() % all.size();
  const Payload& payload = all[which];
  const size_t length = payload.end - payload.begin;
  if (random() % 3 == 0) {
    const std::string file(reinterpret_cast<const char*>(data), size);
    std::string body = file.substr(payload.begin, length);
    body.resize(length + 64);
    body.resize(plain(reinterpret_cast<uint8_t*>(body.data()), length, body.size()));
    return give_back(with_payload(file, all, which, body), data, max_size);
  }
  if (length == 0) return plain(data, size, max_size);
  for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
    const size_t at = payload.begin + random() % length;
    uint64_t value = 0, other = 0;
    const size_t n = varint_at(data + at, payload.end - at, value);
    if (n == 0) continue;
    const size_t from = payload.begin + random() % length;
    switch (random() % 4) {
      case 0:
        value = random() % 128;
        break;
      case 1:
        value += random() % 9 - 4;
        break;
      case 2:
        value ^= uint64_t{1} << random() % 64;
        break;
      default:
        if (varint_at(data + from, payload.end - from, other) != 0) value = other;
    }
    put_varint(data + at, n, value);
  }
  return size;
}

size_t mutate_any(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const std::span bytes(data, size);
  if (is_tileirbc(bytes)) return mutate_tileirbc(data, size, max_size, seed);
  if (is_tilebc(bytes)) return mutate_tilebc(data, size, max_size, seed);
  return mutate_text(data, size, max_size, seed);
}

}  // namespace tile::fuzz
