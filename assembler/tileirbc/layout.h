// What a tileirbc file chose where the form leaves a choice, so that its module can be written as it was read.
// Not what the module says: without it, or once the module differs from what was read, the writer makes its own
// choices.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/tileirbc/wire.h"
#include "vm/ir/module.h"

namespace tile {

namespace tileirbc {

// Limits. A file beyond them is read without a layout.
inline constexpr uint64_t kMaxLayoutTypes = uint64_t{1} << 16, kMaxLayoutDebugRecords = uint64_t{1} << 22;
inline constexpr uint64_t kMaxLayoutAlignment = 4096;  ///< of a section; a larger one is not kept

/// Byte strings one after another.
class ByteStrings {
 public:
  void add(std::string_view s) {
    bytes_ += s;
    ends_.push_back(bytes_.size());
  }
  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

/// A record of the debug table; `fields` as debug_fields(tag) lists them, references as in the file.
struct DebugRecord {
  static constexpr uint32_t kUnreadable = UINT32_MAX;  ///< tag of a record that cannot be read, and that nothing uses
  uint32_t tag = 0;
  std::array<uint32_t, kMaxDebugFields> fields{};
};

/// A location list of the debug section: `slots` from number `skipped` on. What is before them is as the module says.
struct LocationList {
  uint32_t skipped = 0;
  std::vector<uint32_t> slots;
};

/// Positions in the streams of TileirbcLayout where a part of the file starts.
struct UseStarts {
  size_t strings = 0, types = 0, constants = 0, bools = 0;
};

struct SectionChoice {
  Section section = Section::End;
  uint32_t alignment = 0;  ///< 0: none declared
};

struct FunctionChoice {
  uint64_t location = 0;  ///< as in its record: 0, or 1 + the index of its list
  UseStarts uses;
};

}  // namespace tileirbc

/// Tables are given by content, in the order of the file and with what nothing uses. Equal records may stand in a table
/// more than once: then a stream says which one each use names, in the order of reading. A stream is empty where there
/// is nothing to choose.
struct TileirbcLayout {
  Version version;
  uint64_t fingerprint = 0;  ///< of the module that was read
  uint8_t padding = tileirbc::kPadding;
  bool functions_padded = false;  ///< the function section is filled to a multiple of its alignment
  std::vector<tileirbc::SectionChoice> sections;

  tileirbc::ByteStrings strings;
  std::vector<std::optional<Type>> types;  ///< types inside are indices of this table; nothing: unused and not readable
  tileirbc::ByteStrings constants;         ///< payloads
  std::vector<tileirbc::DebugRecord> debug;
  std::vector<bool> string_used, type_used, debug_used;  ///< something names the record; shorter: nothing does
  std::vector<tileirbc::LocationList> lists;
  std::vector<tileirbc::FunctionChoice> functions;
  tileirbc::UseStarts globals;

  std::vector<uint32_t> string_uses, type_uses, constant_uses;
  std::vector<bool> bool_as_integer;  ///< truth values among attributes: written as an i1 integer
};

namespace tileirbc {

/// A number that depends on everything of a module that the form can hold.
[[nodiscard]] uint64_t fingerprint(const Module& m);

}  // namespace tileirbc
}  // namespace tile
