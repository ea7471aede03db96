// Module -> tilebc. Tables are renumbered by first use, so that equal programs give equal bytes whatever was interned before.
#include <unordered_map>

#include "tile_generated.h"
#include "vm/codec/tilebc.h"
#include "vm/codec/tilebc_format.h"

namespace tile {
namespace {

template <class T>
using Offset = flatbuffers::Offset<T>;
using flatbuffers::FlatBufferBuilder;

class Encoder {
 public:
  explicit Encoder(const Module& m) : m_(m) {}

  std::vector<uint8_t> run() {
    (void)loc(kUnknownLoc);
    const uint32_t name = string(m_.name), producer = string(m_.producer);
    std::vector<Offset<bc::Global>> globals;
    std::vector<Offset<bc::Function>> functions;
    for (const Global& g : m_.globals) globals.push_back(bc::CreateGlobal(fbb_, string(g.name), attr(g.value), g.alignment, g.visibility, g.constant));
    for (const Function& f : m_.functions) functions.push_back(function(f));
    const auto root = bc::CreateModule(fbb_, kTilebcMajor, kTilebcMinor, required_version(m_).minor, name, producer, fbb_.CreateVector(strings_),
                                       fbb_.CreateVector(types_), fbb_.CreateVector(attrs_), fbb_.CreateVector(scopes_), fbb_.CreateVector(locs_),
                                       fbb_.CreateVector(globals), fbb_.CreateVector(functions), fbb_.CreateVector(m_.order));
    fbb_.Finish(root, bc::ModuleIdentifier());
    return {fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize()};
  }

 private:
  uint32_t string(StringId id) {
    if (id == kNone) return kNone;
    if (const auto it = string_ids_.find(id); it != string_ids_.end()) return it->second;
    const std::string_view s = m_.str(id);
    strings_.push_back(fbb_.CreateString(s.data(), s.size()));
    return string_ids_[id] = static_cast<uint32_t>(strings_.size() - 1);
  }

  template <class T>
  Offset<flatbuffers::Vector<T>> vector(const std::vector<T>& v) {
    return v.empty() ? 0 : fbb_.CreateVector(v);
  }

  uint32_t type(TypeId id) {
    if (id == kNone) return kNone;
    if (const auto it = type_ids_.find(id); it != type_ids_.end()) return it->second;
    const Type& t = m_.types.get(id);
    const uint32_t inner = type(t.inner);  // what a type needs comes before it
    std::vector<uint32_t> params, results;
    for (TypeId p : t.params) params.push_back(type(p));
    for (TypeId r : t.results) results.push_back(type(r));
    const uint8_t element = t.kind == TypeKind::Element ? info(t.element).tag : 0;
    types_.push_back(bc::CreateType(fbb_, static_cast<uint8_t>(t.kind), element, inner, vector(t.shape), vector(t.strides), vector(t.dim_map), t.padding,
                                    t.sparse_dim, t.ptr_attr, vector(params), vector(results)));
    return type_ids_[id] = static_cast<uint32_t>(types_.size() - 1);
  }

  uint32_t attr(AttrId id) {
    if (id == kNone) return kNone;
    if (const auto it = attr_ids_.find(id); it != attr_ids_.end()) return it->second;
    const Attr& a = m_.attrs.get(id);
    std::vector<uint32_t> items;
    for (AttrId item : a.items) items.push_back(attr(item));
    std::vector<bc::Entry> entries;
    for (const auto& [key, value] : a.entries) {
      const uint32_t k = string(key);
      entries.emplace_back(k, attr(value));
    }
    const uint32_t t = type(a.type), s = string(a.string);
    const auto entry_vector = entries.empty() ? 0 : fbb_.CreateVectorOfStructs(entries);
    const auto bytes = a.bytes.empty() ? 0 : fbb_.CreateVector(reinterpret_cast<const uint8_t*>(a.bytes.data()), a.bytes.size());
    attrs_.push_back(bc::CreateAttribute(fbb_, static_cast<uint8_t>(a.tag), t, a.bits, a.flags, s, vector(a.ints), vector(items), entry_vector, bytes));
    return attr_ids_[id] = static_cast<uint32_t>(attrs_.size() - 1);
  }

  uint32_t scope(ScopeId id) {
    if (id == kNone) return kNone;
    if (const auto it = scope_ids_.find(id); it != scope_ids_.end()) return it->second;
    const DebugScope& s = m_.locs.scope(id);
    const uint32_t file = scope(s.file), outer = scope(s.scope), unit = scope(s.compile_unit);
    const uint32_t name = string(s.name), directory = string(s.directory), linkage = string(s.linkage_name);
    scopes_.push_back(bc::CreateScope(fbb_, static_cast<uint8_t>(s.kind), name, directory, linkage, file, outer, unit, s.line, s.column, s.scope_line));
    return scope_ids_[id] = static_cast<uint32_t>(scopes_.size() - 1);
  }

  uint32_t loc(LocId id) {
    if (id == kNone) return kNone;
    if (const auto it = loc_ids_.find(id); it != loc_ids_.end()) return it->second;
    const Loc& l = m_.locs.get(id);
    const uint32_t file = string(l.file), at = scope(l.scope), callee = loc(l.callee), caller = loc(l.caller);
    std::vector<uint32_t> parts;
    for (LocId p : l.parts) parts.push_back(loc(p));
    locs_.push_back(bc::CreateLoc(fbb_, static_cast<uint8_t>(l.kind), file, l.line, l.column, l.end_line, l.end_column, at, callee, caller, vector(parts)));
    return loc_ids_[id] = static_cast<uint32_t>(locs_.size() - 1);
  }

  uint32_t attr_word(const AttrDef& d, uint32_t w) {
    if (w == kNone) return kNone;
    switch (d.kind) {
      case AttrKind::Unit: case AttrKind::Enum: case AttrKind::Bool: return w;
      case AttrKind::String: case AttrKind::Symbol: return string(w);
      default: return attr(w);
    }
  }

  void region(const Function& f, const Region& r, std::vector<bc::Region>& regions, std::vector<bc::Inst>& insts, std::vector<uint32_t>& words) {
    regions.emplace_back(r.end - r.begin, r.arg_count, r.present);
    for (uint32_t a = 0; a < r.arg_count; ++a) words.push_back(type(f.type(r.first_arg + a)));
    block(f, r, regions, insts, words);
  }

  void block(const Function& f, const Region& r, std::vector<bc::Region>& regions, std::vector<bc::Inst>& insts, std::vector<uint32_t>& words) {
    for (InstId i = r.begin; i < r.end; i = f.insts[i].next) {
      const Inst& inst = f.insts[i];
      const OpDef& d = f.def(i);
      insts.emplace_back(d.code, uint16_t{0}, inst.operand_count, inst.result_count);
      const uint32_t first = inst.word, attrs = f.attr_word(i);
      words.insert(words.end(), f.words.begin() + first, f.words.begin() + attrs);  // segments and operands as they are
      for (size_t a = 0; a < d.attrs.size(); ++a) words.push_back(attr_word(d.attrs[a], f.attr(i, a)));
      for (uint32_t k = 0; k < inst.result_count; ++k) words.push_back(type(f.type(f.result(i, k))));
      words.push_back(loc(inst.loc));
      for (uint8_t k = 0; k < d.regions; ++k) region(f, f.region(i, k), regions, insts, words);
    }
  }

  Offset<bc::Function> function(const Function& f) {
    std::vector<uint32_t> params, words;
    for (uint32_t p = 0; p < f.param_count; ++p) params.push_back(type(f.type(p)));
    std::vector<bc::Inst> insts;
    std::vector<bc::Region> regions;
    block(f, f.regions[0], regions, insts, words);
    std::vector<bc::ValueName> names;
    for (ValueId v = 0; v < f.value_names.size(); ++v)
      if (f.value_names[v] != kNone) names.emplace_back(v, string(f.value_names[v]));
    std::vector<bc::Extra> extras;
    for (const auto& [inst, a] : f.extra_attrs) extras.emplace_back(inst, attr(a));
    const uint32_t name = string(f.name), at = loc(f.loc), hints = attr(f.hints), arg_attrs = attr(f.arg_attrs);
    const auto inst_vector = insts.empty() ? 0 : fbb_.CreateVectorOfStructs(insts);
    const auto region_vector = regions.empty() ? 0 : fbb_.CreateVectorOfStructs(regions);
    const auto name_vector = names.empty() ? 0 : fbb_.CreateVectorOfStructs(names);
    const auto extra_vector = extras.empty() ? 0 : fbb_.CreateVectorOfStructs(extras);
    return bc::CreateFunction(fbb_, name, at, hints, arg_attrs, vector(params), inst_vector, vector(words), region_vector, name_vector, extra_vector);
  }

  const Module& m_;
  FlatBufferBuilder fbb_{1 << 16};
  std::vector<Offset<flatbuffers::String>> strings_;
  std::vector<Offset<bc::Type>> types_;
  std::vector<Offset<bc::Attribute>> attrs_;
  std::vector<Offset<bc::Scope>> scopes_;
  std::vector<Offset<bc::Loc>> locs_;
  std::unordered_map<uint32_t, uint32_t> string_ids_, type_ids_, attr_ids_, scope_ids_, loc_ids_;
};

}  // namespace

std::vector<uint8_t> encode_tilebc(const Module& m) { return Encoder(m).run(); }

}  // namespace tile
