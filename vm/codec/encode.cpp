// Module -> tilebc. Tables are renumbered by first use, so that equal programs give equal bytes whatever was interned
// before. Every offset is made in a statement of its own: the order in which arguments are evaluated differs between
// compilers.
#include <algorithm>
#include <utility>

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
  Encoder(const Module& m, Diagnostics& diags) : m_(m), diags_(diags), version_(required_version(m)) {
    string_slots_.resize(m.strings.size());
    type_slots_.resize(m.types.size());
    attr_slots_.resize(m.attrs.size());
    scope_slots_.resize(m.locs.scope_count());
    loc_slots_.resize(m.locs.size());
  }

  Result<std::vector<uint8_t>> run() {
    (void)loc(kUnknownLoc);
    const uint32_t name = string(m_.name);
    const uint32_t producer = string(m_.producer);
    std::vector<Offset<bc::GlobalData>> globals;
    for (const Global& g : m_.globals) {
      const uint32_t global_name = string(g.name);
      const uint32_t value = attr(g.value);
      globals.push_back(bc::CreateGlobalData(fbb_, global_name, value, g.alignment, g.visibility, g.constant));
    }
    std::vector<Offset<bc::Function>> functions;
    for (const Function& f : m_.functions) {
      if (failed_) return Failed;
      functions.push_back(function(f));
    }
    const auto strings = offsets(strings_);
    const auto types = offsets(types_);
    const auto attrs = offsets(attrs_);
    const auto scopes = offsets(scopes_);
    const auto locs = offsets(locs_);
    const auto global_vector = offsets(globals);
    const auto function_vector = offsets(functions);
    const auto order = default_order() ? 0 : vector(m_.order);
    const auto root = bc::CreateModule(fbb_, kTilebcMajor, kTilebcMinor, version_.minor, name, producer, strings, types,
                                       attrs, scopes, locs, global_vector, function_vector, order);
    if (failed_) return Failed;
    fbb_.Finish(root, bc::ModuleIdentifier());
    if (!room(0)) return Failed;
    return std::vector<uint8_t>(fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize());
  }

 private:
  /// What became of an entry of a table: its index in the file, and how deep it nests.
  struct Slot {
    uint32_t index = kNone;
    uint32_t depth = 0;
  };

  void fail(Code code, std::string message) {
    if (failed_) return;
    failed_ = true;
    Place place;
    place.file = m_.file;
    (void)diags_.error(code, std::move(place), std::move(message));
  }
  // The builder aborts where a buffer passes 2 GiB, so every large piece asks first.
  bool room(uint64_t bytes) {
    if (!failed_ && bytes + fbb_.GetSize() > kMaxTilebcBytes)
      fail(Code::L0101,
           "the encoded module has more than " + std::to_string(kMaxTilebcBytes) + " bytes, the limit of the format");
    return !failed_;
  }
  void too_deep(const char* what) {
    fail(Code::L0102, std::string(what) + " nest more than " + std::to_string(kMaxTilebcNesting) +
                          " levels deep, the limit of the format");
  }
  bool default_order() const {
    const size_t globals = m_.globals.size();
    for (size_t i = 0; i < m_.order.size(); ++i)
      if (m_.order[i] !=
          (i < globals ? Module::kGlobalBit | static_cast<uint32_t>(i) : static_cast<uint32_t>(i - globals)))
        return false;
    return true;
  }

  template <class T>
  Offset<flatbuffers::Vector<T>> vector(const std::vector<T>& v) {
    return v.empty() || !room(v.size() * sizeof(T)) ? 0 : fbb_.CreateVector(v);
  }
  template <class T>
  Offset<flatbuffers::Vector<Offset<T>>> offsets(const std::vector<Offset<T>>& v) {
    return v.empty() || !room(v.size() * sizeof(Offset<T>)) ? 0 : fbb_.CreateVector(v);
  }
  template <class T>
  Offset<flatbuffers::Vector<const T*>> structs(const std::vector<T>& v) {
    return v.empty() || !room(v.size() * sizeof(T)) ? 0 : fbb_.CreateVectorOfStructs(v);
  }

  uint32_t string(StringId id) {
    if (id == kNone) return kNone;
    Slot& slot = string_slots_[id];
    if (slot.index != kNone) return slot.index;
    const std::string_view s = m_.str(id);
    if (!room(s.size())) return kNone;
    strings_.push_back(fbb_.CreateString(s.data(), s.size()));
    return slot.index = static_cast<uint32_t>(strings_.size() - 1);
  }

  /// Index of an entry; `make(depth)` appends it to `table` after what it refers to, and raises `depth` to the deepest
  /// of that. Entries refer to earlier entries only, and recursion ends at the limit even where `depth` is not known
  /// yet.
  template <class T, class Make>
  uint32_t entry(uint32_t id, std::vector<Slot>& slots, std::vector<Offset<T>>& table, uint32_t* outer,
                 const char* what, Make make) {
    if (id == kNone || failed_) return kNone;
    Slot& slot = slots[id];
    if (slot.index == kNone) {
      uint32_t depth = 0;
      if (++open_ <= kMaxTilebcNesting) {
        const auto made = make(depth);
        table.push_back(made);
        slot = {static_cast<uint32_t>(table.size() - 1), depth + 1};
      }
      if (--open_ >= kMaxTilebcNesting || slot.depth > kMaxTilebcNesting) too_deep(what);
      (void)room(0);
    }
    if (outer) *outer = std::max(*outer, slot.depth);
    return slot.index;
  }

  uint32_t type(TypeId id, uint32_t* outer = nullptr) {
    return entry(id, type_slots_, types_, outer, "types", [&](uint32_t& depth) {
      const Type& t = m_.types.get(id);
      if (t.kind == TypeKind::Function) fail(Code::E0210, "a function type has no place in tilebc");
      const uint32_t inner = type(t.inner, &depth);
      const uint8_t element = t.kind == TypeKind::Element ? info(t.element).tag : 0;
      const auto shape = vector(t.shape);
      const auto strides = vector(t.strides);
      const auto dim_map = vector(t.dim_map);
      return bc::CreateType(fbb_, static_cast<uint8_t>(t.kind), element, inner, shape, strides, dim_map, t.padding,
                            t.sparse_dim, t.ptr_attr);
    });
  }

  uint32_t attr(AttrId id, uint32_t* outer = nullptr) {
    return entry(id, attr_slots_, attrs_, outer, "attributes", [&](uint32_t& depth) {
      const Attr& a = m_.attrs.get(id);
      std::vector<uint32_t> items;
      for (AttrId item : a.items) items.push_back(attr(item, &depth));
      std::vector<bc::Entry> entries;
      for (const auto& [key, value] : a.entries) {
        const uint32_t k = string(key);
        const uint32_t v = attr(value, &depth);
        entries.emplace_back(k, v);
      }
      // The nesting of types is their own affair: an attribute's depth counts attributes only.
      const uint32_t t = with_fresh_depth([&] { return type(a.type); });
      const uint32_t s = string(a.string);
      const auto ints = vector(a.ints);
      const auto item_vector = vector(items);
      const auto entry_vector = structs(entries);
      const bool has_bytes = !a.bytes.empty() && room(a.bytes.size());
      const auto bytes =
          has_bytes ? fbb_.CreateVector(reinterpret_cast<const uint8_t*>(a.bytes.data()), a.bytes.size()) : 0;
      return bc::CreateAttribute(fbb_, static_cast<uint8_t>(a.tag), t, a.bits, a.flags, s, ints, item_vector,
                                 entry_vector, bytes);
    });
  }

  uint32_t scope(ScopeId id, uint32_t* outer = nullptr) {
    return entry(id, scope_slots_, scopes_, outer, "debug scopes", [&](uint32_t& depth) {
      const DebugScope& s = m_.locs.scope(id);
      const uint32_t file = scope(s.file, &depth);
      const uint32_t around = scope(s.scope, &depth);
      const uint32_t unit = scope(s.compile_unit, &depth);
      const uint32_t name = string(s.name);
      const uint32_t directory = string(s.directory);
      const uint32_t linkage = string(s.linkage_name);
      return bc::CreateScope(fbb_, static_cast<uint8_t>(s.kind), name, directory, linkage, file, around, unit, s.line,
                             s.column, s.scope_line);
    });
  }

  uint32_t loc(LocId id, uint32_t* outer = nullptr) {
    return entry(id, loc_slots_, locs_, outer, "locations", [&](uint32_t& depth) {
      const Loc& l = m_.locs.get(id);
      const uint32_t file = string(l.file);
      const uint32_t at = with_fresh_depth([&] { return scope(l.scope); });
      const uint32_t callee = loc(l.callee, &depth);
      const uint32_t caller = loc(l.caller, &depth);
      std::vector<uint32_t> parts;
      for (LocId p : l.parts) parts.push_back(loc(p, &depth));
      const auto part_vector = vector(parts);
      return bc::CreateLoc(fbb_, static_cast<uint8_t>(l.kind), file, l.line, l.column, l.end_line, l.end_column, at,
                           callee, caller, part_vector);
    });
  }

  template <class Make>
  uint32_t with_fresh_depth(Make make) {
    const uint32_t outer = std::exchange(open_, 0);
    const uint32_t index = make();
    open_ = outer;
    return index;
  }

  uint32_t attr_word(const AttrDef& d, uint32_t w) {
    if (w == kNone) return kNone;
    switch (d.kind) {
      case AttrKind::Unit:
      case AttrKind::Enum:
      case AttrKind::Bool:
        return w;
      case AttrKind::String:
      case AttrKind::Symbol:
        return string(w);
      default:
        return attr(w);
    }
  }

  struct Body {
    std::vector<bc::Inst> insts;
    std::vector<bc::Region> regions;
    std::vector<uint32_t> words;
  };

  void instruction(const Function& f, InstId i, Body& out) {
    const Inst& inst = f.insts[i];
    const OpDef& d = f.def(i);
    out.insts.emplace_back(d.code, uint16_t{0}, inst.operand_count, inst.result_count);
    if (tilebc_segments(d, version_))
      for (size_t g = 0; g < d.operands.size(); ++g)
        if (tilebc_has(d.operands[g].since, version_)) out.words.push_back(static_cast<uint32_t>(f.group(i, g).size()));
    const auto operands = f.operands(i);
    out.words.insert(out.words.end(), operands.begin(), operands.end());
    for (size_t a = 0; a < d.attrs.size(); ++a)
      if (tilebc_has(d.attrs[a].since, version_)) out.words.push_back(attr_word(d.attrs[a], f.attr(i, a)));
    for (uint32_t r = 0; r < inst.result_count; ++r) out.words.push_back(type(f.type(f.result(i, r))));
    out.words.push_back(loc(inst.loc));
  }

  // Instructions stand in pre-order, so one pass over them suffices; the stack holds what a region's opening must wait
  // for.
  void body(const Function& f, Body& out) {
    struct Open {
      InstId inst;
      uint8_t next_region;
      InstId region_end;
    };
    std::vector<Open> open;
    const auto count = static_cast<InstId>(f.insts.size());
    for (InstId i = 0; i <= count && !failed_; ++i) {
      while (!open.empty() && i >= open.back().region_end) {
        Open& o = open.back();
        if (o.next_region == f.def(o.inst).regions) {
          open.pop_back();
          continue;
        }
        const Region& r = f.region(o.inst, o.next_region++);
        out.regions.emplace_back(r.end - r.begin, r.arg_count, r.present);
        for (uint32_t a = 0; a < r.arg_count; ++a) out.words.push_back(type(f.type(r.first_arg + a)));
        o.region_end = r.end;
      }
      if (i == count) break;
      instruction(f, i, out);
      if (f.def(i).regions == 0) continue;
      if (open.size() == kMaxTilebcNesting) too_deep("regions");
      open.push_back({i, 0, i + 1});
    }
  }

  Offset<bc::Function> function(const Function& f) {
    const uint32_t name = string(f.name);
    const uint32_t at = loc(f.loc);
    const uint32_t hints = attr(f.hints);
    const uint32_t arg_attrs = attr(f.arg_attrs);
    std::vector<uint32_t> params;
    for (uint32_t p = 0; p < f.param_count; ++p) params.push_back(type(f.type(p)));
    Body code;
    body(f, code);
    std::vector<bc::ValueName> names;
    for (ValueId v = 0; v < f.value_names.size(); ++v)
      if (f.value_names[v] != kNone) names.emplace_back(v, string(f.value_names[v]));
    std::vector<bc::Extra> extras;
    for (const auto& [inst, a] : f.extra_attrs) extras.emplace_back(inst, attr(a));
    const auto param_vector = vector(params);
    const auto insts = structs(code.insts);
    const auto words = vector(code.words);
    const auto regions = structs(code.regions);
    const auto name_vector = structs(names);
    const auto extra_vector = structs(extras);
    return bc::CreateFunction(fbb_, name, at, hints, arg_attrs, param_vector, insts, words, regions, name_vector,
                              extra_vector);
  }

  const Module& m_;
  Diagnostics& diags_;
  const Version version_;
  bool failed_ = false;
  uint32_t open_ = 0;  // entries of one table that are being made inside each other
  FlatBufferBuilder fbb_{1 << 16};
  std::vector<Offset<flatbuffers::String>> strings_;
  std::vector<Offset<bc::Type>> types_;
  std::vector<Offset<bc::Attribute>> attrs_;
  std::vector<Offset<bc::Scope>> scopes_;
  std::vector<Offset<bc::Loc>> locs_;
  std::vector<Slot> string_slots_, type_slots_, attr_slots_, scope_slots_, loc_slots_;
};

}  // namespace

Result<std::vector<uint8_t>> encode_tilebc(const Module& m, Diagnostics& diags) {
  return Encoder(m, diags).run();
}

std::vector<uint8_t> encode_tilebc(const Module& m) {
  Diagnostics ignored;
  auto bytes = encode_tilebc(m, ignored);
  return bytes ? std::move(bytes).value() : std::vector<uint8_t>();
}

}  // namespace tile
