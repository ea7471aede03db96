// Files of the corpus and small files made by hand, for the tests of tileirbc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "assembler/assembler.h"
#include "assembler/tileirbc/record_table.h"
#include "assembler/tileirbc/tileirbc.h"

namespace tile::tileirbc_test {

namespace fs = std::filesystem;
using File = std::vector<uint8_t>;

inline fs::path corpus(const std::string& folder) {
#ifdef TILE_TEST_SOURCE_DIR
  const fs::path root = TILE_TEST_SOURCE_DIR;
#else
  const char* root_name = std::getenv("TILE_TEST_SOURCE_DIR");
  const fs::path root = root_name != nullptr ? root_name : ".";
#endif
  return root / "tests" / "corpus" / folder;
}

inline File load(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<fs::path> files(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(corpus(folder)))
    if (entry.path().extension() == ".tileirbc") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

inline std::string name_of(const fs::path& p) {
  return p.filename().string();
}

inline std::string text_of(const Module& m) {
  return print_text(m, {.debug_info = true});
}

/// A file of functions without parameters, whose bodies are given; types and strings as given. The signature is type 0.
inline File small_file(const std::vector<std::string>& types, const std::vector<std::string>& bodies,
                       uint8_t minor = 4, uint64_t functions_alignment = 8, const tileirbc::Bytes* debug = nullptr) {
  tileirbc::RecordTable string_table;
  tileirbc::Bytes functions, type_bytes, string_bytes, out;
  functions.varint(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    functions.varint(string_table.add("f" + std::string(i, 'f')));
    for (uint64_t x : {0, 2, 0}) functions.varint(x);
    if (minor >= 5)
      for (uint64_t x : {11, 0, 6, 0}) functions.varint(x);  // no hints, no attributes of parameters
    functions.varint(bodies[i].size());
    functions.append(bodies[i]);
  }
  type_bytes.varint(types.size());
  type_bytes.align(4);
  size_t at = 0;
  for (const std::string& t : types) {
    type_bytes.fixed(at, 4);
    at += t.size();
  }
  for (const std::string& t : types) type_bytes.append(t);
  string_table.write(string_bytes, 4, tileirbc::kPadding);
  for (uint8_t b : tileirbc::kMagic) out.byte(b);
  for (uint8_t b : {uint8_t{13}, minor, uint8_t{0}, uint8_t{0}}) out.byte(b);
  const auto section = [&](uint8_t id, uint64_t alignment, const tileirbc::Bytes& payload) {
    out.byte(id | tileirbc::kHasAlignment);
    out.varint(payload.size());
    out.varint(alignment);
    out.align(alignment);
    out.append(payload);
  };
  section(2, functions_alignment, functions);
  if (debug) section(3, 8, *debug);
  section(5, 4, type_bytes);
  section(1, 4, string_bytes);
  out.byte(0);
  return out.take();
}
inline File small_file(const std::vector<std::string>& types, const std::string& body, uint8_t minor = 4) {
  return small_file(types, std::vector<std::string>{body}, minor);
}

inline const std::string kSignature("\x10\0\0", 3);
inline const std::string kReturn("\x5c\0\0", 3);

}  // namespace tile::tileirbc_test
