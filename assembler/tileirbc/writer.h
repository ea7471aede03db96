// The writer of tileirbc as one object: the tables that fill while functions are encoded, and a function for each kind
// of record.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "assembler/tileirbc/layout.h"
#include "assembler/tileirbc/record_table.h"
#include "assembler/tileirbc/tileirbc.h"
#include "assembler/tileirbc/wire.h"

namespace tile::tileirbc {

inline constexpr uint64_t kUnwritten = UINT64_MAX;

class Writer {
 public:
  Writer(const Module& m, Version target, Diagnostics& diags);
  Result<std::vector<uint8_t>> write();

 private:
  // write_module.cpp
  void write_function(Bytes& out, const Function& f);
  void write_globals(Bytes& out);
  void write_producer(Bytes& out);
  void declare_global(StringId name);
  void write_section(Bytes& out, Section s, uint32_t alignment, const Bytes& payload);
  void unsupported(const std::string& what, Version since);
  void unsupported_attr(size_t attr, const std::string& what, Version since);
  [[nodiscard]] Place place() const;

  // write_layout.cpp
  void place_records();
  uint32_t place_type(uint32_t i, int depth);
  uint64_t place_debug(uint32_t i, int depth);
  uint64_t place_list(size_t function, std::vector<uint64_t> list);
  void place_other_lists();
  [[nodiscard]] bool holds(uint32_t constant, AttrId dense);
  [[nodiscard]] bool had_section(Section s) const;
  [[nodiscard]] std::vector<SectionChoice> section_order(const std::array<Bytes, kSections>& payloads) const;

  // write_tables.cpp. What an operation or attribute refers to follows the layout's stream; the others give the record
  // that stands for all equal ones.
  uint32_t string(StringId s);
  uint32_t any_string(StringId s);
  uint32_t type(TypeId t) { return chosen(types_, any_type(t), layout_->type_uses, uses_.types); }
  uint32_t any_type(TypeId t);
  uint32_t type_of(const Type& t) { return chosen(types_, any_type_of(t), layout_->type_uses, uses_.types); }
  uint32_t any_type_of(const Type& t);
  void write_type(Bytes& out, const Type& t, const std::function<uint32_t(TypeId)>& index);
  uint32_t constant(AttrId dense);
  uint32_t any_constant(AttrId dense);
  [[nodiscard]] static uint32_t chosen(const RecordTable& table, uint32_t found, const std::vector<uint32_t>& stream,
                                       size_t& at) {
    return at < stream.size() ? table.choose(found, stream[at++]) : found;
  }
  void attribute(Bytes& out, AttrId a);
  void dictionary(Bytes& out, const Attr& a);
  void number(Bytes& out, const Attr& a);

  // write_debug.cpp
  uint64_t location(LocId l);
  uint64_t scope(ScopeId s);
  void write_debug(Bytes& out);

  // write_body.cpp
  void write_body(Bytes& out, const Function& f);
  void write_op(Bytes& out, InstId i);
  void write_results(Bytes& out, InstId i, const OpDef& d);
  void write_attribute(Bytes& out, InstId i, const OpDef& d, size_t a);
  void write_operands(Bytes& out, InstId i, const OpDef& d);
  void open_region(Bytes& out, InstId i, const Region& r);
  void number_results(InstId i);
  [[nodiscard]] bool is_used(ValueId v);
  [[nodiscard]] size_t results_in_target(const OpDef& d, const Inst& inst) const;

  const Module& m_;
  const Version target_;
  Diagnostics& diags_;
  const TileirbcLayout* layout_;  // an empty one if there is none to follow
  bool follows_ = false;
  bool warned_of_locations_ = false;
  UseStarts uses_;  // position in the layout's streams
  RecordTable strings_, types_, constants_, debug_;
  std::vector<uint32_t> string_index_, type_index_;  // by id; kNone if not asked for yet
  std::unordered_map<AttrId, uint32_t> constant_index_;
  std::unordered_map<uint64_t, bool> holds_;  // by constant and value
  std::vector<uint64_t> location_ref_;        // by LocId; kUnwritten if not asked for yet
  std::unordered_map<ScopeId, uint64_t> scope_ref_;
  std::vector<uint32_t> type_standard_;                  // by index in the layout; kNone if not placed yet
  std::vector<uint64_t> debug_standard_;                 // the same, as references
  std::unordered_map<StringId, const Global*> globals_;  // by name; those not declared yet
  std::vector<std::vector<uint64_t>> debug_lists_;
  std::vector<bool> list_written_;
  std::vector<uint64_t> locations_;  // of the function that is being written

  // What is being written, for places in diagnostics.
  const Function* f_ = nullptr;
  InstId inst_ = kNone;
  // Of the function that is being written.
  std::vector<uint32_t> numbers_;  // by ValueId: number in the file
  uint32_t next_number_ = 0;
  std::vector<bool> used_;  // by ValueId; made when first asked for
};

}  // namespace tile::tileirbc
