// The reader of tileirbc as one object: what it has found so far, and a function for each kind of record.
// Tables are checked when they are found; their records are decoded when something first refers to them.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "assembler/tileirbc/cursor.h"
#include "assembler/tileirbc/layout.h"
#include "assembler/tileirbc/tileirbc.h"
#include "assembler/tileirbc/wire.h"
#include "vm/ir/function_builder.h"
#include "vm/ir/module.h"

namespace tile::tileirbc {

// Limits. Each is far beyond what compilers write and keeps the work in proportion to the file.
inline constexpr size_t kMaxFileBytes = size_t{1} << 28;
inline constexpr size_t kMaxRegionNesting = 400;  ///< levels that other readers of the format accept too
inline constexpr int kMaxTypeNesting = 16;
inline constexpr int kMaxAttrNesting = 32;
inline constexpr int kMaxDebugNesting = 256;  ///< lexical blocks and call sites inside each other
inline constexpr uint64_t kMaxRank = 64;
inline constexpr uint64_t kMaxParams = 4096;
/// Bytes that shared strings, constants and signatures may amount to when every use is counted: this plus kUsePerByte a
/// byte of the file.
inline constexpr uint64_t kUseFloor = uint64_t{1} << 26, kUsePerByte = 64;

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags, TileirbcReadOptions options);
  Result<Module> read();

 private:
  /// A table of records: `count` offsets of `width` bytes, then the data up to `end`.
  struct Table {
    uint64_t count = 0;
    size_t offsets = 0, data = 0, end = 0;
    size_t width = 4;
  };
  struct Payload {
    bool present = false;
    uint64_t alignment = 0;
    size_t at = 0, begin = 0, end = 0;  ///< `at`: offset of the id
  };
  /// An operation whose regions are being read.
  struct Open {
    InstId inst = 0;
    const OpDef* def = nullptr;
    uint8_t regions_left = 0;
    bool in_region = false;
    uint64_t ops_left = 0;      ///< in the open block
    size_t values_outside = 0;  ///< file numbers in use outside of the block
  };
  enum class RecordState : uint8_t { New, Active, Unknown, Scope, Location };
  struct Record {
    RecordState state = RecordState::New;
    uint32_t id = 0;
  };
  struct DebugInfo {
    bool found = false;
    uint64_t lists = 0, slots = 0;
    size_t starts_at = 0, slots_at = 0;
    Table table;
    std::vector<Record> records;
  };

  // read_container.cpp
  bool read_header(Cursor& c);
  bool find_sections(Cursor& c);
  bool check_sections();
  bool read_table(Cursor c, size_t origin, Section section, size_t width, Table& out);
  [[nodiscard]] Cursor record(const Table& t, uint64_t index);
  [[nodiscard]] Cursor payload(Section s);

  // read_module.cpp
  bool string(Cursor& c, StringId& out, const char* what);
  bool read_producer();
  bool read_globals();
  bool read_functions();
  bool read_function(Cursor& c);
  /// Counts bytes that an operation shares with others, so that a small file cannot stand for an enormous module.
  bool charge(uint64_t bytes, size_t at);
  bool fail(Code code, size_t at, std::string message) { return context_.fail(code, at, std::move(message)); }
  /// Runs `part`, a function; in a partial reading its failure becomes a warning, and `lost` says what is not decoded.
  template <class Part>
  bool attempt(const std::string& lost, Part part);
  void warn(const Diagnostic& d, const std::string& lost);

  // read_layout.cpp
  void keep_layout();
  bool keep_types();
  bool keep_debug();
  bool raw_debug(Cursor c, DebugRecord& out);
  void keep_uses();
  [[nodiscard]] UseStarts here() const;

  // read_types.cpp
  bool type(Cursor& c, TypeId& out, const char* what, int depth = 0);
  bool value_type(Cursor& c, TypeId& out, const char* what);
  bool decode_type(Cursor& c, Type& out, int depth);
  bool decode_view(Cursor& c, TypeTag tag, Type& out, int depth);
  bool inner_type(Cursor& c, Type& out, const char* what, int depth);
  bool tensor_view(Cursor& c, Type& out, int depth);
  bool type_list(Cursor& c, std::vector<TypeId>& out, const char* what, int depth);
  bool ints(Cursor& c, size_t width, std::vector<int64_t>& out, const char* what);
  bool dim_map(Cursor& c, Type& out);
  bool flag_bit0(Cursor& c, bool& out, const char* what);
  bool enum_value(Cursor& c, EnumKind kind, Code outside, uint32_t& out);

  // read_attributes.cpp
  bool attribute(Cursor& c, AttrId& out, int depth = 0);
  bool attribute_of(Cursor& c, AttrCode code, Attr& out, int depth);
  bool number_attribute(Cursor& c, bool is_float, Attr& out);
  bool predicate_attribute(Cursor& c, AttrCode code, Attr& out);
  bool array(Cursor& c, std::vector<AttrId>& out, int depth);
  bool dictionary(Cursor& c, AttrId& out, int depth = 0);
  bool dense(Cursor& c, TypeId tile_type, AttrId& out);
  bool decode_dense(uint64_t index, size_t at, TypeId tile_type, AttrId& out);
  /// The word of an operation's attribute as Function::attr() gives it. `tile_type`: of the first result, for
  /// constants.
  bool attribute_word(Cursor& c, const AttrDef& def, TypeId tile_type, uint32_t& out);
  [[nodiscard]] static uint32_t default_word(const AttrDef& def);

  // read_body.cpp
  bool read_body(Cursor& c, FunctionBuilder& b);
  bool read_op(Cursor& c, FunctionBuilder& b);
  bool read_results(Cursor& c, const OpDef& d);
  bool read_operands(Cursor& c, const OpDef& d, uint64_t flags);
  bool read_operand(Cursor& c);
  bool next_region(Cursor& c, FunctionBuilder& b);
  bool close_block(Cursor& c, FunctionBuilder& b);
  void abandon_body(FunctionBuilder& b, const Diagnostic& reason);
  void number_results(const Inst& inst);

  // read_debug.cpp
  bool read_debug();
  bool find_debug();
  bool list_bounds(uint64_t list, uint64_t& start, uint64_t& end);
  bool locations(Function& f, uint64_t list);
  bool debug_record(uint64_t index, size_t at, Record& out, int depth);
  bool decode_debug(Cursor c, Record& out, int depth);
  bool location(uint64_t reference, size_t at, LocId& out, int depth);
  bool scope_ref(Cursor& c, std::span<const DebugScope::Kind> kinds, const char* what, ScopeId& out, int depth);

  std::span<const uint8_t> bytes_;
  ReadContext context_;
  Diagnostics& warnings_;  // the caller's, while context_ may collect what is tried
  const TileirbcReadOptions options_;
  Version version_;       // whose rules are followed
  bool partial_ = false;  // the file is of a newer version
  std::array<Payload, kSections> sections_;
  Table strings_, types_, constants_;
  std::vector<StringId> string_ids_;                // by index in the file; kNone: not used yet
  std::vector<TypeId> type_ids_;                    // the same, or kActive while the record is being decoded
  std::unordered_map<uint64_t, AttrId> dense_ids_;  // by type and constant index
  uint64_t uses_left_ = 0;
  Module module_;
  std::vector<uint64_t> debug_lists_;  // by function: its location index
  DebugInfo debug_;
  std::vector<SectionChoice> section_order_;
  std::unique_ptr<TileirbcLayout> layout_;            // null: not kept
  bool raw_types_ = false;                            // types inside of types are given as indices and not looked at
  bool constants_differ_ = false;                     // some are not as the writer would write them
  std::unordered_map<AttrId, uint64_t> constant_of_;  // the constant that a value was decoded from
  size_t string_uses_end_ = 0;

  // Of the function that is being read.
  std::vector<ValueId> values_;  // by number in the file
  std::vector<Open> open_;
  bool last_is_terminator_ = false;
  // Of the operation that is being read.
  std::vector<TypeId> result_types_;
  std::vector<ValueId> operands_;
  std::vector<uint32_t> segments_, words_;
};

template <class Part>
bool Reader::attempt(const std::string& lost, Part part) {
  if (!partial_) return part();
  Diagnostics reasons;
  Diagnostics* const outer = std::exchange(context_.diags, &reasons);
  const bool done = part();
  context_.diags = outer;
  if (!done) warn(*reasons.first_error(), lost);
  return true;
}

}  // namespace tile::tileirbc
