// The decoder of tilebc as one object: the tables read so far, and a function for each kind of record. Runs on verified
// bytes.
#pragma once

#include <string>
#include <vector>

#include "tile_generated.h"
#include "vm/codec/tilebc_format.h"
#include "vm/ir/function_builder.h"
#include "vm/ir/module.h"

namespace tile {

class TilebcDecoder {
 public:
  TilebcDecoder(const bc::Module& root, size_t file_bytes, const std::string& name, Diagnostics& diags);
  Result<Module> run();

 private:
  template <class T>
  using Vector = flatbuffers::Vector<T>;
  using Ids = std::vector<uint32_t>;  // handle in the module by index in the file

  /// The words of a function, in order.
  struct Words {
    const Vector<uint32_t>* all;
    uint32_t at = 0;
    [[nodiscard]] uint32_t left() const { return (all ? all->size() : 0) - at; }
    uint32_t next() { return all->Get(at++); }
  };
  /// An operation whose regions are being read.
  struct Open {
    InstId inst;
    uint32_t limit;       ///< where the region around the operation ends
    uint32_t region_end;  ///< of the open region
    uint8_t regions_left;
    bool in_region;
  };

  // decode.cpp
  bool fail(Code code, const std::string& message);
  bool record_fault(Code code, const char* what, uint32_t index, const std::string& why) {
    return fail(code, std::string(what) + " " + std::to_string(index) + ": " + why);
  }
  /// Counts bytes that records share, so that a small file cannot stand for an enormous module.
  bool charge(uint64_t bytes);
  template <class V>
  bool charge_vector(const V* v, size_t element_bytes, uint64_t weight = 1) {
    return !v || charge(v->size() * element_bytes * weight);
  }
  /// Copies a vector of 64-bit numbers, whose alignment the FlatBuffers verifier does not check.
  bool numbers(const Vector<int64_t>* from, std::vector<int64_t>& to);
  /// The handle of entry `index` of a table; kNone stands for nothing where `optional`.
  bool find(uint32_t index, const Ids& ids, const char* what, uint32_t& out, bool optional = false);
  bool string(uint32_t index, const char* what, StringId& out, bool optional = false);
  bool type(uint32_t index, TypeId& out, bool optional = false) {
    return find(index, type_ids_, "type", out, optional);
  }
  bool use_attr(uint32_t index, const char* what, AttrId& out, bool optional = false);
  bool nested(uint32_t depth, const char* what);
  bool strings();
  bool globals();
  bool functions();
  bool function(const bc::Function& f);
  bool order();

  // decode_types.cpp
  bool types();
  bool type_record(const bc::Type& t, uint32_t index);
  bool inner_type(const bc::Type& t, uint32_t index, Type& out);

  // decode_attributes.cpp
  bool attributes();
  bool attribute(const bc::Attribute& a, uint32_t index);
  bool number(const bc::Attribute& a, Attr& out, const char*& fault);
  bool items(const bc::Attribute& a, uint32_t index, Attr& out, const char*& fault);
  const char* dense(const bc::Attribute& a, Attr& out);
  bool attr_word(const OpDef& d, const AttrDef& a, uint32_t& word);

  // decode_debug.cpp
  bool scopes();
  bool scope_record(const bc::Scope& s, uint32_t index);
  bool locs();
  bool loc_record(const bc::Loc& l, uint32_t index);

  // decode_body.cpp
  bool body(const bc::Function& f, Function& out);
  bool settle(const bc::Function& f, uint32_t inst, FunctionBuilder& builder);
  bool open_region(const bc::Function& f, uint32_t inst, FunctionBuilder& builder);
  bool instruction(const bc::Inst& inst, FunctionBuilder& builder);
  bool operand_groups(const OpDef& d, const bc::Inst& inst);
  bool result_count(const OpDef& d, const bc::Inst& inst);
  bool names_and_extras(const bc::Function& f, Function& out, FunctionBuilder& builder);

  const bc::Module& root_;
  Diagnostics& diags_;
  Version version_;
  uint64_t uses_left_;
  Module m_;
  Ids string_ids_, type_ids_, attr_ids_, scope_ids_, loc_ids_;
  std::vector<uint16_t> type_depth_, attr_depth_, scope_depth_, loc_depth_;  // by index in the file
  std::vector<uint64_t> attr_cost_;                                          // bytes of an attribute written out
  std::vector<uint32_t> loc_parts_;                                          // locations that a location stands for

  // Where the decoder is, for diagnostics.
  std::string function_;
  int64_t inst_ = -1;
  std::string_view op_;

  // Of the function that is being read.
  Words words_{nullptr};
  uint32_t next_region_ = 0;
  std::vector<Open> open_;
  // Of the operation that is being read.
  Ids segments_, operands_, attrs_, results_;
};

}  // namespace tile
