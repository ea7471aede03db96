// Collected diagnostics: what is wrong, where, and what would mend it. Rendering to text and JSON included.
// The library never prints; tools render what was collected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/result.h"

namespace tile {

/// How a failure is classed; decides the exit code of the tools.
enum class FailureClass : uint8_t {
  Malformed, Invalid, Unsupported, Trap, Exhausted, Environment, Internal, Usage, Warning
};

enum class Code : uint16_t {
#define TILE_CODE(code, cls, sub, text) code,
#include "vm/base/diag_codes.inc"
#undef TILE_CODE
  kCount
};

struct CodeInfo {
  const char* name;       ///< "E0101"
  FailureClass cls;
  const char* subclass;   ///< stable word, e.g. "Truncated"
  const char* meaning;
};
[[nodiscard]] const CodeInfo& code_info(Code code);
[[nodiscard]] const char* class_name(FailureClass cls);  ///< "malformed", "invalid", ...
/// Process exit code of a failure class: 1 input rejected, 2 usage, 3 environment, 4 trap, 6 exhausted, 70 internal.
[[nodiscard]] int exit_code(FailureClass cls);

/// A range of bytes in a text source. `length` 0 marks a position. `begin` == kNone: no text position.
struct Span {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  uint32_t begin = kNone;
  uint32_t length = 0;
  [[nodiscard]] bool valid() const { return begin != kNone; }
};

/// A named input text, with a line index made on first use.
class Source {
 public:
  Source(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  struct LineCol { uint32_t line, col; };          ///< both from 1; col counts bytes
  [[nodiscard]] LineCol line_col(uint32_t offset) const;
  [[nodiscard]] std::string_view line(uint32_t line) const;  ///< without its newline

 private:
  void index() const;
  std::string name_, text_;
  mutable std::vector<uint32_t> lines_;
};

/// Where a diagnostic belongs. Any part may be missing; text position wins over bytecode position when both are set.
struct Place {
  std::shared_ptr<const Source> source;  ///< text input
  Span span;
  std::string file;                      ///< name of a binary input, or of a file on disk
  int64_t byte_offset = -1;              ///< in `file`
  std::string function;                  ///< entry name without @
  int64_t instruction = -1;              ///< pre-order index inside the function
  std::string op;                        ///< mnemonic
  int64_t operand = -1;                  ///< flattened operand index
  std::string operand_name;              ///< role, e.g. "lhs"
  std::string printed;                   ///< the instruction as text, for binary inputs
  std::string argument;                  ///< launch argument, e.g. "argument 3 (%c)"
  std::string debug_loc;                 ///< source location carried by the bytecode, "k.py:12:4"
};

struct Note {
  Place place;
  std::string message;
};

struct Diagnostic {
  Code code;
  Place place;
  std::string message;  ///< lower case, no full stop; found before expected
  std::vector<Note> notes;
  std::string help;     ///< one certain remedy, or empty
  std::string subclass; ///< overrides the code's subclass when not empty
};

class Diagnostics {
 public:
  /// Reports; returns Failed so that failing and saying why is one statement.
  FailedTag error(Code code, Place place, std::string message, std::string help = {});
  FailedTag error(Diagnostic d);
  void warn(Place place, std::string message);

  [[nodiscard]] bool has_errors() const { return errors_ != 0; }
  [[nodiscard]] size_t error_count() const { return errors_; }
  [[nodiscard]] size_t warning_count() const { return warnings_; }
  [[nodiscard]] const std::vector<Diagnostic>& all() const { return all_; }
  /// The first error; the class of a failed run is that of its first error.
  [[nodiscard]] const Diagnostic* first_error() const;
  /// True once `limit` errors are collected: readers stop there.
  [[nodiscard]] bool full() const { return errors_ >= limit; }
  void clear() { all_.clear(); errors_ = warnings_ = 0; }

  size_t limit = 64;

 private:
  std::vector<Diagnostic> all_;
  size_t errors_ = 0, warnings_ = 0;  ///< reported, kept or not
};

/// Text form of one diagnostic, with the source line and a caret where there is one. Ends with a newline.
[[nodiscard]] std::string render(const Diagnostic& d, bool color = false);
[[nodiscard]] std::string render(const Diagnostics& d, bool color = false);
/// One JSON object per diagnostic: code, class, subclass, severity, message, file, line, column, function, instruction, operand, help, notes.
[[nodiscard]] std::string render_json(const Diagnostics& d);

/// The nearest of `candidates` to `word` (edit distance at most a third of its length), or empty.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace tile
