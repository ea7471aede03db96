// One run of the validator: what it knows of the module, of the function being walked and of the operation being
// checked, and the ways to report. The rules themselves stand in the other files of this folder.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "vm/ir/module.h"
#include "vm/validate/row_facts.h"

namespace tile::validation {

/// Encodings that rules name; the words stand in vm/ops/enums.cpp.
inline constexpr uint32_t kWeak = 0, kMulticast = 2, kPaddingZero = 0;

/// An operation whose region is being walked; the outermost one is the body of the function.
struct Frame {
  InstId op = kNone;  ///< kNone: the function
  const RowFacts* row = nullptr;
  RegionId region = 0;       ///< the open one
  uint32_t next_region = 0;  ///< number of the next region of the operation
  int32_t loop = -1;         ///< frame of the for or loop that continue and break mean, through `if`s only
  bool open = false;         ///< a region is open
  bool may_return = false;   ///< return is legal: only `if` and `loop` up to the function
  bool in_combiner = false;  ///< inside the body of a reduce or scan
  bool wrong = false;        ///< the operation itself has errors: its terminators are not compared with it
  bool ended = false;        ///< a terminator has been met in the open region
  bool unreachable = false;  ///< what follows the terminator has been reported
};

class Checker {
 public:
  Checker(Module& module, Diagnostics& diags);

  void check_module();

  Module& m;
  /// Version whose rules apply: that of the file; for text the newest stable one, or the one that the module needs. Few
  /// rules ask, and for text the answer costs a pass over the module.
  [[nodiscard]] Version version();

  // The operation being checked. Groups and results count as in its row.
  const Function* f = nullptr;
  InstId inst = kNone;
  const RowFacts* row = nullptr;
  std::vector<Frame> frames;

  [[nodiscard]] const OpDef& def() const { return *row->def; }
  [[nodiscard]] std::string name() const { return std::string(row->def->name); }
  /// Number of values of an operand group, and its values and types.
  [[nodiscard]] size_t count(size_t group) const { return first_[group + 1] - first_[group]; }
  [[nodiscard]] bool has(size_t group) const { return count(group) != 0; }
  [[nodiscard]] ValueId value(size_t group, size_t k = 0) const { return f->operands(inst)[first_[group] + k]; }
  [[nodiscard]] TypeId type_id(size_t group, size_t k = 0) const { return f->type(value(group, k)); }
  [[nodiscard]] const Type& type(size_t group, size_t k = 0) const { return m.types.get(type_id(group, k)); }
  [[nodiscard]] size_t result_count() const { return f->insts[inst].result_count; }
  [[nodiscard]] TypeId result_id(size_t r = 0) const { return f->type(f->result(inst, r)); }
  [[nodiscard]] const Type& result(size_t r = 0) const { return m.types.get(result_id(r)); }
  /// Groups and attributes by the names of the row.
  [[nodiscard]] size_t group(std::string_view group_name) const {
    return static_cast<size_t>(operand_index(def(), group_name));
  }
  [[nodiscard]] size_t attr(std::string_view attr_name) const {
    return static_cast<size_t>(attr_index(def(), attr_name));
  }
  [[nodiscard]] uint32_t word(size_t attr) const { return f->attr(inst, attr); }
  [[nodiscard]] const Attr& attr_value(size_t attr) const { return m.attrs.get(word(attr)); }
  /// Value of an Int attribute, sign-extended from its width.
  [[nodiscard]] int64_t int_attr(size_t attr) const;
  /// The Dense value of a value that a `constant` defines; nullptr for others.
  [[nodiscard]] const Attr* constant_of(ValueId value) const;
  /// What assumptions bound an integer value to, both inclusive: by value, of the function that is walked.
  std::unordered_map<ValueId, std::pair<int64_t, int64_t>> assumed_bounds;

  // Reports about the operation being checked. `what` goes behind "op: ". The operation counts as wrong afterwards.
  void error(Code code, const std::string& what, std::string help = {});
  void error_operand(Code code, size_t group, size_t k, const std::string& what, std::string help = {});
  void error_result(Code code, size_t r, const std::string& what, std::string help = {});
  void error_attr(Code code, size_t attr, const std::string& what, std::string help = {});
  /// The same with a note that points at another operation.
  void error_with(Code code, const std::string& what, InstId other, const std::string& note, std::string help = {});
  /// A remark at an attribute, with a note at the definition of a value. The operation stays right.
  void warn_attr(size_t attr, const std::string& what, ValueId defined);
  [[nodiscard]] bool wrong() const { return wrong_ != 0; }

  /// "%x" as the user wrote it, or its number.
  [[nodiscard]] std::string value_name(ValueId v) const;
  /// Text of a type, bounded for types that nest without sense.
  [[nodiscard]] std::string type_text(TypeId id) const;
  /// Role of an operand: "lhs", or "operands[2]" in a variadic group.
  [[nodiscard]] std::string role(size_t group, size_t k) const;

  /// True if the type is legal. Reports an illegal one the first time it is met.
  /// `place` is asked only then: it can take a search through the function.
  bool legal_type(TypeId id, const std::function<Place()>& place);
  /// The same for the type of a value, placed at its definition.
  bool legal_value(ValueId v);

  Diagnostics& diags;

  struct Symbol {
    const Function* entry = nullptr;
    const Global* global = nullptr;
  };
  std::unordered_map<StringId, Symbol> symbols;

 private:
  // Module level: module_rules.cpp, debug_scopes.cpp.
  void check_symbols();
  void check_global(const Global& g);
  void check_entry(const Function& fn);
  void check_hints(AttrId hints, const std::function<Place()>& place);
  void scan_scopes();
  void check_entry_scope(const Function& fn);
  void check_scope(InstId i);

  // One operation: operation.cpp, rules.cpp.
  void check_operation(InstId i);
  bool check_arity();
  void check_operands();
  void check_results();
  void check_attributes();
  void check_ordering();
  void check_rules();
  void check_rule(const RowRule& rule);
  void broken_rule(RuleKind kind, Position first, Position other);
  void check_value(const OperandDef& want, TypeId id, Position at, size_t k);
  bool check_dominance(size_t group, size_t k, ValueId v);

  // The walk: structure.cpp.
  void walk(const Function& fn);
  bool open_region();
  void close_region();
  void define(ValueId first, uint32_t count, RegionId region);
  void check_placement();
  void check_terminator_placement();

  // Positions of rules.
  [[nodiscard]] bool present(Position p) const { return p.is_result ? p.index < result_count() : has(p.index); }
  [[nodiscard]] bool is_wrong(Position p) const { return wrong_ >> bit(p) & 1; }
  [[nodiscard]] TypeId type_at(Position p) const { return p.is_result ? result_id(p.index) : type_id(p.index); }
  [[nodiscard]] std::string_view name_at(Position p) const {
    return p.is_result ? def().results[p.index].name : def().operands[p.index].name;
  }
  void error_at(Position p, Code code, const std::string& what, std::string help = {});
  static unsigned bit(Position p) { return p.is_result ? 8u + p.index : p.index; }
  static constexpr uint32_t kOtherBit = 1u << 31;

  void report(Code code, Place place, const std::string& what, std::string help, ValueId defined);

  std::optional<Version> version_;
  std::vector<uint8_t> type_state_;   // by TypeId: 0 not met, 1 legal, 2 illegal
  std::vector<uint8_t> hints_state_;  // by AttrId: 1 checked
  std::vector<ScopeId> loc_scope_;    // by LocId
  std::vector<ScopeId> subprogram_;   // by ScopeId

  std::vector<RegionId> region_of_;   // by ValueId: where it is defined; kNone before that
  std::vector<uint8_t> region_open_;  // by RegionId
  std::vector<AttrId> constants_;     // by ValueId: value of the `constant` that defines it, or kNone
  ScopeId entry_scope_ = kNone;
  bool scope_reported_ = false;

  uint32_t first_[8] = {};      // start of each operand group among the operands; one more than there are groups
  uint32_t wrong_ = 0;          // bits of wrong positions: operand groups, results from bit 8, the rest kOtherBit
  TypeId blamed_type_ = kNone;  // type of the last position of a wrong kind or element type
  OperandDef blamed_;           // and what was wanted there
};

/// Plural "s": "1 operand", "2 operands".
[[nodiscard]] std::string counted(size_t n, std::string_view noun);
/// "f16, bf16 or f32"; names for the sets that the reference names.
[[nodiscard]] std::string set_text(ElementSet set);
/// "[4, 8]"
[[nodiscard]] std::string shape_text(std::span<const int64_t> shape);

}  // namespace tile::validation
