// The one in-memory form of Tile IR: a module of flat arrays. Says what the program is; legality is vm/validate's business.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/ir/attributes.h"
#include "vm/ir/ids.h"
#include "vm/ir/locations.h"
#include "vm/ir/strings.h"
#include "vm/ir/types.h"
#include "vm/ops/enums.h"
#include "vm/ops/op_table.h"

namespace tile {

struct TileirbcLayout;  // assembler/tileirbc/layout.h

/// One operation. Instructions of a function stand in pre-order: an operation, then the operations of its regions.
struct Inst {
  Opcode op{};
  uint32_t next = 0;           ///< index of the first instruction after this one and all it contains
  uint32_t word = 0;           ///< start in Function::words: segment counts (if any), operands, attributes
  uint32_t operand_count = 0;  ///< all groups together
  uint32_t result_count = 0;
  ValueId first_result = 0;    ///< results are consecutive values
  RegionId first_region = 0;   ///< as many consecutive regions as the row says
  LocId loc = kUnknownLoc;
};

/// A region: at most one block. `if` without else has a second region that is not present.
struct Region {
  InstId parent = kNone;       ///< kNone: the body of the function
  ValueId first_arg = 0;
  uint32_t arg_count = 0;
  InstId begin = 0, end = 0;   ///< walk: for (i = begin; i < end; i = insts[i].next)
  bool present = false;
};

/// An entry. Values are numbered: parameters, then in pre-order the results of an instruction, then for each of its regions
/// the block arguments and what the region contains.
struct Function {
  StringId name = kNone;
  LocId loc = kUnknownLoc;
  AttrId hints = kNone;        ///< Dictionary, or kNone
  AttrId arg_attrs = kNone;    ///< Array of Dictionary, or kNone (13.5)
  uint32_t param_count = 0;
  std::vector<Inst> insts;
  std::vector<Region> regions;       ///< regions[0] is the body; its arguments are the parameters
  std::vector<uint32_t> words;
  std::vector<TypeId> value_types;   ///< by ValueId
  std::vector<StringId> value_names; ///< by ValueId, kNone where nameless; may be shorter than value_types
  std::vector<std::pair<InstId, AttrId>> extra_attrs;  ///< uninterpreted dictionary entries, by ascending InstId

  // Positions in the text input; empty for binary inputs.
  std::vector<Span> inst_spans;      ///< mnemonic, by InstId
  std::vector<Span> word_spans;      ///< by index into words (operands and attributes)
  std::vector<Span> value_spans;     ///< definition, by ValueId
  Span name_span;

  [[nodiscard]] const OpDef& def(InstId i) const { return op_def(insts[i].op); }
  [[nodiscard]] uint32_t segment_words(InstId i) const { return has_segments(def(i)) ? static_cast<uint32_t>(def(i).operands.size()) : 0; }
  /// All operands, flattened in the order of the row.
  [[nodiscard]] std::span<const ValueId> operands(InstId i) const {
    return {words.data() + insts[i].word + segment_words(i), insts[i].operand_count};
  }
  [[nodiscard]] std::span<ValueId> operands(InstId i) {
    return {words.data() + insts[i].word + segment_words(i), insts[i].operand_count};
  }
  /// Operands of group `g` of the row (0, 1 or more values).
  [[nodiscard]] std::span<const ValueId> group(InstId i, size_t g) const;
  /// The operand of a group with at most one value; kNone if absent.
  [[nodiscard]] ValueId operand(InstId i, size_t g) const {
    const auto vs = group(i, g);
    return vs.empty() ? kNone : vs[0];
  }
  /// Row group and index inside it of flattened operand `k`.
  [[nodiscard]] std::pair<size_t, size_t> group_of(InstId i, size_t k) const;
  /// Word of attribute `a` of the row: enum, unit, bool: the value; String, Symbol: StringId; others (Int included): AttrId.
  /// kNone where an optional attribute is absent, and for `inbounds` with all values false.
  [[nodiscard]] uint32_t attr(InstId i, size_t a) const { return words[attr_word(i) + a]; }
  [[nodiscard]] uint32_t attr_word(InstId i) const { return insts[i].word + segment_words(i) + insts[i].operand_count; }
  [[nodiscard]] ValueId result(InstId i, size_t r = 0) const { return insts[i].first_result + static_cast<ValueId>(r); }
  [[nodiscard]] const Region& region(InstId i, size_t r = 0) const { return regions[insts[i].first_region + r]; }
  [[nodiscard]] TypeId type(ValueId v) const { return value_types[v]; }
  /// The last instruction directly inside a region; kNone if it is empty.
  [[nodiscard]] InstId last_of(const Region& r) const;
};

struct Global {
  StringId name = kNone;
  AttrId value = kNone;        ///< Dense, whose type is the global's
  uint64_t alignment = 0;
  uint32_t visibility = 0;
  bool constant = false;
  Span span;
};

struct Module {
  StringId name = kNone;
  StringId producer = kNone;
  std::optional<Version> version;      ///< of the file that it was read from
  StringTable strings;
  TypeTable types;
  AttrTable attrs;
  LocTable locs;
  std::vector<Global> globals;
  std::vector<Function> functions;
  std::vector<uint32_t> order;         ///< textual order: index into functions, or kGlobalBit | index into globals
  std::shared_ptr<const Source> source;  ///< text input, or null
  std::string file;                    ///< name of the input, for diagnostics
  std::shared_ptr<const TileirbcLayout> tileirbc_layout;  ///< how the file spelled what this form leaves open, or null

  static constexpr uint32_t kGlobalBit = 0x80000000u;

  [[nodiscard]] const Function* find_function(std::string_view name) const;
  [[nodiscard]] const Global* find_global(std::string_view name) const;
  [[nodiscard]] std::string_view str(StringId id) const { return id == kNone ? std::string_view() : strings.get(id); }
  /// Value of an Int attribute.
  [[nodiscard]] int64_t int_attr(const Function& f, InstId i, size_t a) const { return static_cast<int64_t>(attrs.get(f.attr(i, a)).bits); }

  /// Places for diagnostics: text position if the module has a source, else function and instruction.
  [[nodiscard]] Place place(const Function& f) const;
  [[nodiscard]] Place place(const Function& f, InstId i) const;
  [[nodiscard]] Place place_operand(const Function& f, InstId i, size_t flat_operand) const;
  [[nodiscard]] Place place_attr(const Function& f, InstId i, size_t attr) const;
  [[nodiscard]] Place place_value(const Function& f, ValueId v) const;  ///< where the value is defined
  [[nodiscard]] Place place(const Global& g) const;
  /// "file:line:col" of a debug location; empty if unknown.
  [[nodiscard]] std::string loc_text(LocId id) const;

  /// Prints an instruction for diagnostics of binary inputs; set by the assembler, which knows the text form.
  using InstPrinter = std::string (*)(const Module&, const Function&, InstId);
  static InstPrinter inst_printer;
};

/// The lowest version that can express the module: operations, types, attributes that differ from their defaults.
[[nodiscard]] Version required_version(const Module& m);

}  // namespace tile
