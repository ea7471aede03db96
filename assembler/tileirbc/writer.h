// The writer of tileirbc as one object: the tables that fill while functions are encoded, and a function for each kind
// of record.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assembler/tileirbc/tileirbc.h"
#include "assembler/tileirbc/wire.h"

namespace tile::tileirbc {

/// Bytes under construction, with the primitive codings.
class Bytes {
 public:
  void byte(uint8_t b) { out_.push_back(b); }
  void varint(uint64_t x) {
    for (; x > 0x7F; x >>= 7) byte(static_cast<uint8_t>(x | 0x80));
    byte(static_cast<uint8_t>(x));
  }
  void zigzag(int64_t x) { varint((static_cast<uint64_t>(x) << 1) ^ static_cast<uint64_t>(x >> 63)); }
  void fixed(uint64_t x, size_t width) {
    for (size_t i = 0; i < width; ++i) byte(static_cast<uint8_t>(x >> (8 * i)));
  }
  void align(size_t alignment) {
    while (out_.size() % alignment != 0) byte(kPadding);
  }
  void append(const Bytes& o) { out_.insert(out_.end(), o.out_.begin(), o.out_.end()); }
  void append(std::string_view s) { out_.insert(out_.end(), s.begin(), s.end()); }
  template <class Tag>
  void tag(Tag t) {
    varint(static_cast<uint64_t>(t));
  }
  [[nodiscard]] size_t size() const { return out_.size(); }
  [[nodiscard]] std::string str() const { return {out_.begin(), out_.end()}; }
  [[nodiscard]] std::vector<uint8_t> take() { return std::move(out_); }

 private:
  std::vector<uint8_t> out_;
};

/// Records in the order of their first use; equal bytes are one record.
class RecordTable {
 public:
  uint32_t add(std::string record) {
    const auto [it, is_new] = index_.try_emplace(std::move(record), static_cast<uint32_t>(order_.size()));
    if (is_new) order_.push_back(&it->first);
    return it->second;
  }
  [[nodiscard]] bool empty() const { return order_.empty(); }
  void write(Bytes& out, size_t width) const;

 private:
  std::unordered_map<std::string, uint32_t> index_;
  std::vector<const std::string*> order_;  // the map's nodes do not move
};

class Writer {
 public:
  Writer(const Module& m, Version target, Diagnostics& diags) : m_(m), target_(target), diags_(diags) {}
  Result<std::vector<uint8_t>> write();

 private:
  // write_module.cpp
  void write_function(Bytes& out, const Function& f);
  void write_globals(Bytes& out);
  void declare_global(StringId name);
  void write_section(Bytes& out, Section s, const Bytes& payload);
  void unsupported(const std::string& what, Version since);
  void unsupported_attr(size_t attr, const std::string& what, Version since);
  [[nodiscard]] Place place() const;

  // write_tables.cpp
  uint32_t string(StringId s) { return strings_.add(std::string(m_.str(s))); }
  uint32_t type(TypeId t);
  void write_type(Bytes& out, const Type& t);
  uint32_t constant(AttrId dense);
  void attribute(Bytes& out, AttrId a);
  void dictionary(Bytes& out, const Attr& a);
  void number(Bytes& out, const Attr& a);

  // write_debug.cpp
  uint64_t location(LocId l);
  uint64_t scope(ScopeId s);
  void write_debug(Bytes& out) const;

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
  RecordTable strings_, types_, constants_, debug_;
  std::unordered_map<TypeId, uint32_t> type_index_;
  std::unordered_map<AttrId, uint32_t> constant_index_;
  std::unordered_map<LocId, uint64_t> location_ref_;
  std::unordered_map<ScopeId, uint64_t> scope_ref_;
  std::unordered_map<StringId, const Global*> globals_;  // by name; those not declared yet
  std::vector<std::vector<uint64_t>> debug_lists_;       // by function

  // What is being written, for places in diagnostics.
  const Function* f_ = nullptr;
  InstId inst_ = kNone;
  // Of the function that is being written.
  std::vector<uint32_t> numbers_;  // by ValueId: number in the file
  uint32_t next_number_ = 0;
  std::vector<bool> used_;  // by ValueId; made when first asked for
};

}  // namespace tile::tileirbc
