// tilebc -> Module, in the trust order size, identifier and version, FlatBuffers verifier, structure.
// Every index is compared with its table and every count with what is left before it is used.
#include <algorithm>

#include "tile_generated.h"
#include "vm/codec/tilebc.h"
#include "vm/codec/tilebc_format.h"
#include "vm/ir/function_builder.h"

namespace tile {
namespace {

template <class T>
using Vector = flatbuffers::Vector<T>;

template <class V>
uint32_t size_of(const V* v) {
  return v ? v->size() : 0;
}

class Decoder {
 public:
  Decoder(const bc::Module& root, const std::string& name, Diagnostics& diags) : root_(root), diags_(diags) { m_.file = name; }

  Result<Module> run() {
    if (strings() && types() && attributes() && scopes() && locs() && globals() && functions() && order()) return std::move(m_);
    return Failed;
  }

 private:
  bool fail(Code code, const std::string& message) {
    Place p;
    p.file = m_.file;
    p.function = function_;
    p.instruction = inst_;
    (void)diags_.error(code, std::move(p), message);
    return false;
  }
  bool index(uint32_t i, size_t count, const char* what, bool optional = false) {
    if (i < count || (optional && i == kNone)) return true;
    return fail(Code::E0205, std::string(what) + " index " + std::to_string(i) + " is out of range, the table has " + std::to_string(count));
  }

  bool strings() {
    for (uint32_t i = 0; i < size_of(root_.strings()); ++i) {
      const auto* s = root_.strings()->Get(i);
      string_ids_.push_back(m_.strings.add({s->data(), s->size()}));
    }
    if (!index(root_.name(), string_ids_.size(), "module name", true) || !index(root_.producer(), string_ids_.size(), "producer", true)) return false;
    m_.name = string(root_.name());
    m_.producer = string(root_.producer());
    m_.version = Version{13, root_.version_minor()};
    return true;
  }
  StringId string(uint32_t i) const { return i == kNone ? kNone : string_ids_[i]; }

  bool types() {
    for (uint32_t i = 0; i < size_of(root_.types()); ++i) {
      const bc::Type& t = *root_.types()->Get(i);
      Type out;
      if (t.kind() > static_cast<uint8_t>(TypeKind::Function)) return fail(Code::E0210, "type " + std::to_string(i) + " has the unknown kind " + std::to_string(t.kind()));
      out.kind = static_cast<TypeKind>(t.kind());
      const auto broken = [&](const char* why) { return fail(Code::E0210, "type " + std::to_string(i) + ": " + why); };
      if (out.kind == TypeKind::Element) {
        const auto* e = std::find_if(kElementInfo.begin(), kElementInfo.end() - 1, [&](const ElementInfo& x) { return x.tag == t.element(); });
        if (e == kElementInfo.end() - 1) return broken("unknown element type tag");
        out.element = static_cast<ElementType>(e - kElementInfo.begin());
      }
      const bool has_inner = out.kind == TypeKind::Ptr || out.kind == TypeKind::Tile || out.kind == TypeKind::TensorView || out.kind == TypeKind::PartitionView ||
                             out.kind == TypeKind::StridedView || out.kind == TypeKind::GatherScatterView;
      if (has_inner) {
        if (t.inner() >= type_ids_.size()) return broken("its inner type is not an earlier type");
        out.inner = type_ids_[t.inner()];
        const TypeKind k = m_.types.get(out.inner).kind;
        const bool view = out.kind == TypeKind::PartitionView || out.kind == TypeKind::StridedView || out.kind == TypeKind::GatherScatterView;
        if (view ? k != TypeKind::TensorView : k != TypeKind::Element && !(k == TypeKind::Ptr && out.kind == TypeKind::Tile)) return broken("its inner type has the wrong kind");
        out.element = out.kind == TypeKind::Ptr ? ElementType::Ptr : m_.types.get(out.inner).element;
        if (view) out.element = ElementType::I32;  // views keep the default: their element is that of the tensor view
      }
      if (t.shape()) out.shape.assign(t.shape()->begin(), t.shape()->end());
      if (t.strides()) out.strides.assign(t.strides()->begin(), t.strides()->end());
      if (t.dim_map()) out.dim_map.assign(t.dim_map()->begin(), t.dim_map()->end());
      out.padding = t.padding();
      out.sparse_dim = t.sparse_dim();
      out.ptr_attr = t.ptr_attr();
      if (out.padding != kNone && out.padding >= enum_info(EnumKind::Padding).values.size()) return broken("unknown padding value");
      if (out.ptr_attr != kNone && out.ptr_attr >= enum_info(EnumKind::PtrAttr).values.size()) return broken("unknown pointer attribute");
      for (const auto* list : {t.params(), t.results()})
        for (uint32_t k = 0; k < size_of(list); ++k) {
          if (list->Get(k) >= type_ids_.size()) return broken("a parameter or result is not an earlier type");
          (list == t.params() ? out.params : out.results).push_back(type_ids_[list->Get(k)]);
        }
      type_ids_.push_back(m_.types.add(out));
    }
    return true;
  }
  bool type(uint32_t i, TypeId* out) {
    if (!index(i, type_ids_.size(), "type")) return false;
    *out = type_ids_[i];
    return true;
  }

  bool attributes() {
    for (uint32_t i = 0; i < size_of(root_.attributes()); ++i) {
      const bc::Attribute& a = *root_.attributes()->Get(i);
      const auto broken = [&](const char* why) { return fail(Code::E0209, "attribute " + std::to_string(i) + ": " + why); };
      if (a.tag() > static_cast<uint8_t>(AttrTag::Opaque)) return broken("unknown tag");
      Attr out;
      out.tag = static_cast<AttrTag>(a.tag());
      if (!index(a.type(), type_ids_.size(), "type", true) || !index(a.string(), string_ids_.size(), "string", true)) return false;
      out.type = a.type() == kNone ? kNone : type_ids_[a.type()];
      out.string = string(a.string());
      out.bits = a.bits();
      out.flags = a.flags();
      if (a.ints()) out.ints.assign(a.ints()->begin(), a.ints()->end());
      for (uint32_t k = 0; k < size_of(a.items()); ++k) {
        if (a.items()->Get(k) >= attr_ids_.size()) return broken("an item is not an earlier attribute");
        out.items.push_back(attr_ids_[a.items()->Get(k)]);
      }
      for (uint32_t k = 0; k < size_of(a.entries()); ++k) {
        const bc::Entry& e = *a.entries()->Get(k);
        if (!index(e.key(), string_ids_.size(), "string")) return false;
        if (e.value() >= attr_ids_.size()) return broken("a value is not an earlier attribute");
        out.entries.emplace_back(string(e.key()), attr_ids_[e.value()]);
      }
      if (a.bytes()) out.bytes.assign(reinterpret_cast<const char*>(a.bytes()->data()), a.bytes()->size());
      if (const char* why = attribute_fault(out)) return broken(why);
      attr_ids_.push_back(m_.attrs.add(std::move(out)));
    }
    return true;
  }

  // What later passes rely on without asking; nullptr if all is well.
  const char* attribute_fault(const Attr& a) const {
    const TypeTable& types = m_.types;
    const auto element = [&] { return a.type != kNone && types.get(a.type).kind == TypeKind::Element; };
    switch (a.tag) {
      case AttrTag::Integer:
        if (!element() || !info(types.get(a.type).element).is_int) return "an integer needs an integer type";
        if (const unsigned bits = info(types.get(a.type).element).bits; bits < 64 && a.bits >> bits != 0) return "the value is wider than its type";
        return nullptr;
      case AttrTag::Float:
        if (!element() || !info(types.get(a.type).element).is_float) return "a float needs a float type";
        if (const unsigned bits = 8u * info(types.get(a.type).element).storage; bits < 64 && a.bits >> bits != 0) return "the value is wider than its type";
        return nullptr;
      case AttrTag::Bool: return a.bits > 1 ? "a bool is 0 or 1" : nullptr;
      case AttrTag::Type: return a.type == kNone ? "the type is missing" : nullptr;
      case AttrTag::String:
      case AttrTag::Opaque: return a.string == kNone ? "the string is missing" : nullptr;
      case AttrTag::DivBy: return a.ints.empty() || a.ints.size() == 2 ? nullptr : "div_by has every and along, or neither";
      case AttrTag::Bounded: return a.ints.size() == 2 && a.flags < 4 ? nullptr : "bounded needs two numbers and flags 0 to 3";
      case AttrTag::Dense: return dense_fault(a);
      case AttrTag::BoolArray:
        return std::all_of(a.ints.begin(), a.ints.end(), [](int64_t x) { return x == 0 || x == 1; }) ? nullptr : "a bool is 0 or 1";
      case AttrTag::I32Array:
        return std::all_of(a.ints.begin(), a.ints.end(), [](int64_t x) { return x >= INT32_MIN && x <= INT32_MAX; }) ? nullptr : "a number is beyond 32 bits";
      default: return nullptr;
    }
  }

  const char* dense_fault(const Attr& a) const {
    if (!m_.types.is_tile(a.type)) return "a dense constant needs a tile type";
    const ElementType e = m_.types.element_of(a.type);
    if (e == ElementType::Ptr) return "a dense constant of pointers";
    const uint64_t n = static_cast<uint64_t>(m_.types.element_count(a.type)), size = info(e).storage;
    if (a.bytes.size() != size && (n > a.bytes.size() || a.bytes.size() != n * size)) return "its bytes are neither one element nor all of them";
    const unsigned limit = e == ElementType::I1 ? 1 : e == ElementType::I4 || e == ElementType::F4E2M1FN ? 15 : 255;
    if (limit < 255 && std::any_of(a.bytes.begin(), a.bytes.end(), [&](char c) { return static_cast<uint8_t>(c) > limit; })) return "an element is wider than its type";
    if (e == ElementType::TF32)
      for (size_t k = 0; k + 1 < a.bytes.size(); k += 4)
        if (a.bytes[k] != 0 || (a.bytes[k + 1] & 0x1F) != 0) return "a tf32 element has bits below its mantissa";
    return nullptr;
  }

  bool scopes() {
    for (uint32_t i = 0; i < size_of(root_.scopes()); ++i) {
      const bc::Scope& s = *root_.scopes()->Get(i);
      if (s.kind() > static_cast<uint8_t>(DebugScope::Kind::Subprogram)) return fail(Code::E0205, "scope " + std::to_string(i) + " has an unknown kind");
      DebugScope out;
      out.kind = static_cast<DebugScope::Kind>(s.kind());
      for (const uint32_t id : {s.name(), s.directory(), s.linkage_name()})
        if (!index(id, string_ids_.size(), "string", true)) return false;
      for (const uint32_t id : {s.file(), s.scope(), s.compile_unit()})
        if (!index(id, scope_ids_.size(), "scope", true)) return false;
      const auto at = [&](uint32_t id) { return id == kNone ? kNone : scope_ids_[id]; };
      out.name = string(s.name());
      out.directory = string(s.directory());
      out.linkage_name = string(s.linkage_name());
      out.file = at(s.file());
      out.scope = at(s.scope());
      out.compile_unit = at(s.compile_unit());
      out.line = s.line();
      out.column = s.column();
      out.scope_line = s.scope_line();
      scope_ids_.push_back(m_.locs.add_scope(out));
    }
    return true;
  }

  bool locs() {
    for (uint32_t i = 0; i < size_of(root_.locs()); ++i) {
      const bc::Loc& l = *root_.locs()->Get(i);
      if (l.kind() > static_cast<uint8_t>(Loc::Kind::Fused)) return fail(Code::E0205, "location " + std::to_string(i) + " has an unknown kind");
      if (i == 0 && l.kind() != 0) return fail(Code::E0205, "location 0 is not the unknown location");
      Loc out;
      out.kind = static_cast<Loc::Kind>(l.kind());
      if (!index(l.file(), string_ids_.size(), "string", true) || !index(l.scope(), scope_ids_.size(), "scope", true) ||
          !index(l.callee(), loc_ids_.size(), "location", true) || !index(l.caller(), loc_ids_.size(), "location", true))
        return false;
      const bool named = out.kind == Loc::Kind::FileLineCol || out.kind == Loc::Kind::Scoped || out.kind == Loc::Kind::Named;
      if ((named && l.file() == kNone) || (out.kind == Loc::Kind::Scoped && l.scope() == kNone) ||
          (out.kind == Loc::Kind::CallSite && (l.callee() == kNone || l.caller() == kNone)))
        return fail(Code::E0205, "location " + std::to_string(i) + " lacks a part that its kind needs");
      out.file = string(l.file());
      out.line = l.line();
      out.column = l.column();
      out.end_line = l.end_line();
      out.end_column = l.end_column();
      out.scope = l.scope() == kNone ? kNone : scope_ids_[l.scope()];
      out.callee = l.callee() == kNone ? kNone : loc_ids_[l.callee()];
      out.caller = l.caller() == kNone ? kNone : loc_ids_[l.caller()];
      for (uint32_t k = 0; k < size_of(l.parts()); ++k) {
        if (!index(l.parts()->Get(k), loc_ids_.size(), "location")) return false;
        out.parts.push_back(loc_ids_[l.parts()->Get(k)]);
      }
      loc_ids_.push_back(m_.locs.add(std::move(out)));
    }
    if (loc_ids_.empty()) loc_ids_.push_back(kUnknownLoc);
    return true;
  }

  bool globals() {
    for (uint32_t i = 0; i < size_of(root_.globals()); ++i) {
      const bc::Global& g = *root_.globals()->Get(i);
      if (!index(g.name(), string_ids_.size(), "global name") || !index(g.value(), attr_ids_.size(), "global value")) return false;
      Global out;
      out.name = string(g.name());
      out.value = attr_ids_[g.value()];
      if (m_.attrs.get(out.value).tag != AttrTag::Dense) return fail(Code::E0209, "the value of global " + std::to_string(i) + " is not a dense constant");
      if (g.visibility() > 1) return fail(Code::E0209, "global " + std::to_string(i) + " has the unknown visibility " + std::to_string(g.visibility()));
      out.alignment = g.alignment();
      out.visibility = g.visibility();
      out.constant = g.constant();
      m_.globals.push_back(out);
    }
    return true;
  }

  bool functions() {
    m_.functions.reserve(size_of(root_.functions()));
    for (uint32_t i = 0; i < size_of(root_.functions()); ++i) {
      const bc::Function& f = *root_.functions()->Get(i);
      if (!index(f.name(), string_ids_.size(), "function name") || !index(f.loc(), loc_ids_.size(), "location") ||
          !index(f.hints(), attr_ids_.size(), "hints", true) || !index(f.arg_attrs(), attr_ids_.size(), "argument attributes", true))
        return false;
      Function& out = m_.functions.emplace_back();
      out.name = string(f.name());
      function_ = m_.str(out.name);
      out.loc = loc_ids_[f.loc()];
      out.hints = f.hints() == kNone ? kNone : attr_ids_[f.hints()];
      out.arg_attrs = f.arg_attrs() == kNone ? kNone : attr_ids_[f.arg_attrs()];
      if (out.hints != kNone && m_.attrs.get(out.hints).tag != AttrTag::Dictionary) return fail(Code::E0209, "the hints are no dictionary");
      if (out.arg_attrs != kNone && m_.attrs.get(out.arg_attrs).tag != AttrTag::Array) return fail(Code::E0209, "the argument attributes are no array");
      if (!body(f, out)) return false;
      function_.clear();
      inst_ = -1;
    }
    return true;
  }

  struct Words {
    const Vector<uint32_t>* all;
    uint32_t at = 0;
    [[nodiscard]] uint32_t left() const { return size_of(all) - at; }
    uint32_t next() { return all->Get(at++); }
  };

  bool body(const bc::Function& f, Function& out) {
    std::vector<TypeId> types;
    for (uint32_t p = 0; p < size_of(f.params()); ++p) {
      TypeId t = kNone;
      if (!type(f.params()->Get(p), &t)) return false;
      types.push_back(t);
    }
    FunctionBuilder builder(out, types);
    Words words{f.words()};
    struct Frame {
      uint32_t end;           // first instruction after the open region
      uint32_t regions_left;  // of the operation that the region belongs to
    };
    std::vector<Frame> open;
    uint32_t region = 0;
    const uint32_t count = size_of(f.insts());
    // Closes regions that end before instruction `i` and opens those that come next.
    const auto settle = [&](uint32_t i) {
      while (!open.empty()) {
        Frame& frame = open.back();
        if (frame.end != UINT32_MAX) {
          if (i < frame.end) return true;
          builder.end_region();
          frame.end = UINT32_MAX;
        }
        if (frame.regions_left == 0) {
          builder.end_op();
          open.pop_back();
          continue;
        }
        --frame.regions_left;
        if (region >= size_of(f.regions())) return fail(Code::E0208, "the region table has too few entries");
        const bc::Region& r = *f.regions()->Get(region++);
        if (!r.present()) {
          if (r.insts() != 0 || r.args() != 0) return fail(Code::E0208, "a region without a block has instructions or arguments");
          builder.absent_region();
          continue;
        }
        const uint32_t limit = enclosing_end(open, count);
        if (r.insts() > limit - i) return fail(Code::E0208, "a region of " + std::to_string(r.insts()) + " instructions ends after what encloses it");
        if (r.args() > words.left()) return fail(Code::E0208, "a region has more arguments than the word pool has words");
        types.clear();
        for (uint32_t a = 0; a < r.args(); ++a) {
          TypeId t = kNone;
          if (!type(words.next(), &t)) return false;
          types.push_back(t);
        }
        (void)builder.begin_region(types);
        frame.end = i + r.insts();
      }
      return true;
    };
    for (uint32_t i = 0; i < count; ++i) {
      inst_ = i;
      if (!settle(i)) return false;
      if (!instruction(*f.insts()->Get(i), words, builder)) return false;
      if (const uint8_t regions = op_def(static_cast<Opcode>(f.insts()->Get(i)->opcode())).regions; regions > 0) {
        if (open.size() >= kMaxTilebcNesting) {
          Place p;
          p.file = m_.file;
          p.function = function_;
          p.instruction = inst_;
          (void)diags_.error(Code::L0102, std::move(p), "regions nest deeper than " + std::to_string(kMaxTilebcNesting));
          return false;
        }
        open.push_back({UINT32_MAX, regions});
      }
    }
    if (!settle(count)) return false;
    inst_ = -1;
    if (!open.empty()) return fail(Code::E0208, "a region ends after the last instruction");
    if (region != size_of(f.regions())) return fail(Code::E0208, "the region table has too many entries");
    if (words.left() != 0) return fail(Code::E0207, std::to_string(words.left()) + " words are left over");
    builder.finish();
    for (uint32_t k = 0; k < size_of(f.value_names()); ++k) {
      const bc::ValueName& n = *f.value_names()->Get(k);
      if (!index(n.value(), out.value_types.size(), "value") || !index(n.name(), string_ids_.size(), "string")) return false;
      builder.name_value(n.value(), string(n.name()));
    }
    for (uint32_t k = 0; k < size_of(f.extras()); ++k) {
      const bc::Extra& e = *f.extras()->Get(k);
      if (!index(e.inst(), out.insts.size(), "instruction") || !index(e.attr(), attr_ids_.size(), "attribute")) return false;
      if (m_.attrs.get(attr_ids_[e.attr()]).tag != AttrTag::Dictionary || (k > 0 && e.inst() <= f.extras()->Get(k - 1)->inst()))
        return fail(Code::E0209, "extra attributes are dictionaries in ascending order of instructions");
      out.extra_attrs.emplace_back(e.inst(), attr_ids_[e.attr()]);
    }
    return true;
  }

  template <class Frames>
  static uint32_t enclosing_end(const Frames& open, uint32_t count) {
    for (size_t k = open.size() - 1; k-- > 0;)
      if (open[k].end != UINT32_MAX) return open[k].end;
    return count;
  }

  bool instruction(const bc::Inst& inst, Words& words, FunctionBuilder& builder) {
    const OpDef* d = find_op(uint32_t{inst.opcode()});
    if (!d) return fail(Code::E0206, "no version has opcode " + std::to_string(inst.opcode()));
    if (d->effect == Effect::Symbol) return fail(Code::E0206, std::string(d->name) + " cannot stand in a function");
    if (inst.reserved() != 0) return fail(Code::E0206, "the reserved half-word is not 0");
    const uint32_t segments = has_segments(*d) ? static_cast<uint32_t>(d->operands.size()) : 0;
    const uint64_t needed = uint64_t{segments} + inst.operands() + d->attrs.size() + inst.results() + 1;
    if (needed > words.left()) return fail(Code::E0207, std::string(d->name) + " needs " + std::to_string(needed) + " words, " + std::to_string(words.left()) + " are left");
    segments_.clear();
    operands_.clear();
    attrs_.clear();
    results_.clear();
    for (uint32_t k = 0; k < segments; ++k) segments_.push_back(words.next());
    if (!arity(*d, inst)) return false;
    for (uint32_t k = 0; k < inst.operands(); ++k) {
      operands_.push_back(words.next());
      if (!index(operands_.back(), builder.next_value(), "value")) return false;
    }
    for (const AttrDef& a : d->attrs) {
      uint32_t w = words.next();
      if (!attr_word(*d, a, &w)) return false;
      attrs_.push_back(w);
    }
    for (uint32_t k = 0; k < inst.results(); ++k) {
      TypeId t = kNone;
      if (!type(words.next(), &t)) return false;
      results_.push_back(t);
    }
    const uint32_t at = words.next();
    if (!index(at, loc_ids_.size(), "location")) return false;
    (void)builder.op({static_cast<Opcode>(inst.opcode()), operands_, segments_, attrs_, results_, loc_ids_[at]});
    return true;
  }

  bool arity(const OpDef& d, const bc::Inst& inst) {
    const auto wrong = [&](const char* what, uint32_t n) { return fail(Code::E0207, std::string(d.name) + " with " + std::to_string(n) + " " + what); };
    if (!segments_.empty()) {
      uint64_t sum = 0;
      for (size_t g = 0; g < segments_.size(); ++g) {
        sum += segments_[g];
        const Arity a = d.operands[g].arity;
        if ((a == Arity::One && segments_[g] != 1) || (a == Arity::Optional && segments_[g] > 1)) return wrong("values for one operand", segments_[g]);
      }
      if (sum != inst.operands()) return wrong("operands, but groups of another number", inst.operands());
    } else {
      const uint32_t variable = static_cast<uint32_t>(variable_operands(d)), fixed = static_cast<uint32_t>(d.operands.size()) - variable;
      bool variadic = false;
      for (const OperandDef& o : d.operands) variadic = variadic || o.arity == Arity::Variadic;
      if (inst.operands() < fixed || (!variadic && inst.operands() > fixed + variable)) return wrong("operands", inst.operands());
    }
    bool variadic = false;
    for (const ResultDef& r : d.results) variadic = variadic || r.arity == Arity::Variadic;
    const bool newer = !d.results.empty() && d.results[0].since > d.since;  // a result that older versions of the operation lack
    if (!variadic && inst.results() != d.results.size() && !(newer && inst.results() == 0)) return wrong("results", inst.results());
    return true;
  }

  bool attr_word(const OpDef& d, const AttrDef& a, uint32_t* w) {
    const auto wrong = [&](const std::string& why) { return fail(Code::E0209, std::string(d.name) + ": " + std::string(a.name) + " " + why); };
    if (*w == kNone) {
      if (a.optional || a.kind == AttrKind::BoolArray) return true;
      return wrong("is missing");
    }
    switch (a.kind) {
      case AttrKind::Unit: case AttrKind::Bool: return *w <= 1 || wrong("is neither 0 nor 1");
      case AttrKind::Enum: return *w < enum_info(a.enum_kind).values.size() || wrong("has the unknown value " + std::to_string(*w));
      case AttrKind::String: case AttrKind::Symbol:
        if (!index(*w, string_ids_.size(), "string")) return false;
        *w = string(*w);
        return true;
      default: break;
    }
    if (!index(*w, attr_ids_.size(), "attribute")) return false;
    *w = attr_ids_[*w];
    const AttrTag tag = m_.attrs.get(*w).tag;
    switch (a.kind) {
      case AttrKind::Int: return tag == AttrTag::Integer || wrong("is no integer");
      case AttrKind::Dense: return tag == AttrTag::Dense || wrong("is no dense constant");
      case AttrKind::I32Array: return tag == AttrTag::I32Array || wrong("is no array of numbers");
      case AttrKind::BoolArray: return tag == AttrTag::BoolArray || wrong("is no array of bools");
      case AttrKind::AttrArray: return tag == AttrTag::Array || wrong("is no array");
      case AttrKind::Hints: return tag == AttrTag::Dictionary || wrong("is no dictionary");
      default: return tag == AttrTag::DivBy || tag == AttrTag::SameElements || tag == AttrTag::Bounded || wrong("is no predicate");
    }
  }

  bool order() {
    std::vector<bool> seen_f(m_.functions.size()), seen_g(m_.globals.size());
    for (uint32_t i = 0; i < size_of(root_.order()); ++i) {
      const uint32_t item = root_.order()->Get(i);
      const bool global = (item & Module::kGlobalBit) != 0;
      const uint32_t k = item & ~Module::kGlobalBit;
      if (!index(k, global ? m_.globals.size() : m_.functions.size(), "item")) return false;
      auto&& seen = global ? seen_g : seen_f;
      if (seen[k]) return fail(Code::E0205, "an item stands twice in the order of items");
      seen[k] = true;
      m_.order.push_back(item);
    }
    // Writers may leave the order out: globals first, then functions.
    if (m_.order.empty()) {
      for (uint32_t k = 0; k < m_.globals.size(); ++k) m_.order.push_back(k | Module::kGlobalBit);
      for (uint32_t k = 0; k < m_.functions.size(); ++k) m_.order.push_back(k);
    } else if (m_.order.size() != m_.globals.size() + m_.functions.size()) {
      return fail(Code::E0205, "the order of items leaves some out");
    }
    return true;
  }

  const bc::Module& root_;
  Diagnostics& diags_;
  Module m_;
  std::string function_;
  int64_t inst_ = -1;
  std::vector<StringId> string_ids_;
  std::vector<TypeId> type_ids_, results_;
  std::vector<AttrId> attr_ids_;
  std::vector<ScopeId> scope_ids_;
  std::vector<LocId> loc_ids_;
  std::vector<uint32_t> segments_, operands_, attrs_;
};

}  // namespace

bool is_tilebc(std::span<const uint8_t> bytes) { return bytes.size() >= 8 && flatbuffers::BufferHasIdentifier(bytes.data(), bc::ModuleIdentifier()); }

Result<Module> decode_tilebc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags) {
  Place place;
  place.file = name;
  place.byte_offset = 0;
  if (bytes.size() > kMaxTilebcBytes)
    return diags.error(Code::L0101, place, "the file has " + std::to_string(bytes.size()) + " bytes, the limit is " + std::to_string(kMaxTilebcBytes));
  if (bytes.size() < 8) return diags.error(Code::E0201, place, "the file has " + std::to_string(bytes.size()) + " bytes, expected at least 8");
  if (!is_tilebc(bytes)) return diags.error(Code::E0202, place, "bytes 4 to 7 are not the identifier TILE");
  // The verifier wants an aligned buffer; callers may hold any.
  std::vector<uint64_t> aligned;
  const uint8_t* data = bytes.data();
  if (reinterpret_cast<uintptr_t>(data) % alignof(uint64_t) != 0) {
    aligned.resize((bytes.size() + 7) / 8);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(aligned.data()));
    data = reinterpret_cast<const uint8_t*>(aligned.data());
  }
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxTilebcDepth, kMaxTilebcTables);
  if (!bc::VerifyModuleBuffer(verifier)) return diags.error(Code::E0204, place, "the FlatBuffers structure is damaged or the file is cut off");
  const bc::Module& root = *bc::GetModule(data);
  place.byte_offset = -1;
  if (root.format_major() != kTilebcMajor)
    return diags.error(Code::E0203, place, "the file is tilebc " + std::to_string(root.format_major()) + "." + std::to_string(root.format_minor()) +
                                               ", this program reads " + std::to_string(kTilebcMajor) + ".x");
  if (root.version_minor() < kOldestVersion.minor || root.version_minor() > kNewestVersion.minor)
    return diags.error(Code::E0203, place, "the program needs Tile IR 13." + std::to_string(root.version_minor()) + ", this program knows 13." +
                                               std::to_string(kOldestVersion.minor) + " to 13." + std::to_string(kNewestVersion.minor));
  return Decoder(root, name, diags).run();
}

}  // namespace tile
