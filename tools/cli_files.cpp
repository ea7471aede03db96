// Reading of modules and writing of results.
#include "tools/cli_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "vm/codec/tilebc.h"
#include "vm/runtime/atomic_file.h"

namespace tile::cli {
namespace {

Place file_place(const std::string& name) {
  Place place;
  place.file = name;
  return place;
}

Result<std::vector<uint8_t>> read_stdin(Diagnostics& diags) {
  std::vector<uint8_t> bytes;
  constexpr size_t kStep = size_t{1} << 16;
  for (;;) {
    if (bytes.size() > kMaxFileBytes) {
      return diags.error(Code::L0101, file_place("<stdin>"),
                         "the input is larger than " + std::to_string(kMaxFileBytes) + " bytes");
    }
    const size_t old = bytes.size();
    bytes.resize(old + kStep);
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + old, kStep);
    if (got < 0 && errno == EINTR) {
      bytes.resize(old);
      continue;
    }
    if (got < 0)
      return diags.error(Code::E0901, file_place("<stdin>"), std::string("cannot read: ") + std::strerror(errno));
    bytes.resize(old + static_cast<size_t>(got));
    if (got == 0) return bytes;
  }
}

}  // namespace

const char* kind_name(InputKind kind) {
  switch (kind) {
    case InputKind::Text:
      return "text";
    case InputKind::Tilebc:
      return "tilebc";
    case InputKind::Tileirbc:
      return "tileirbc";
  }
  return "";
}

std::string input_name(const std::string& path) {
  return path == "-" ? "<stdin>" : path;
}

Result<std::vector<uint8_t>> read_input(const std::string& path, Diagnostics& diags) {
  return path == "-" ? read_stdin(diags) : read_file(path, diags);
}

InputKind recognise(std::span<const uint8_t> bytes) {
  if (is_tileirbc(bytes)) return InputKind::Tileirbc;
  return is_tilebc(bytes) ? InputKind::Tilebc : InputKind::Text;
}

Result<Loaded> read_module(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags, bool partial) {
  if (bytes.empty()) {
    Place place;
    place.file = name;
    return diags.error(Code::E0101, std::move(place), "the input is empty", "expected text, tilebc or tileirbc");
  }
  const InputKind kind = recognise(bytes);
  Result<Module> module = [&]() -> Result<Module> {
    switch (kind) {
      case InputKind::Tileirbc:
        return read_tileirbc(bytes, name, diags, {.partial = partial});
      case InputKind::Tilebc:
        return decode_tilebc(bytes, name, diags);
      case InputKind::Text:
        break;
    }
    return parse_text(std::make_shared<const Source>(name, std::string(bytes.begin(), bytes.end())), diags);
  }();
  if (!module) return Failed;
  return Loaded{std::move(module.value()), kind};
}

Result<Loaded> load_module(const std::string& path, Diagnostics& diags, bool partial) {
  const auto bytes = read_input(path, diags);
  if (!bytes) return Failed;
  return read_module(*bytes, input_name(path), diags, partial);
}

Status write_output(const std::string& path, std::string_view bytes, Diagnostics& diags) {
  if (path != "-") return write_file(path, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, diags);
  while (!bytes.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      return diags.error(Code::E0902, file_place("<stdout>"), std::string("cannot write: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return {};
}

}  // namespace tile::cli
