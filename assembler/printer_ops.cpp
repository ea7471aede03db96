// Walks the format of a row and prints an operation; regions, hidden terminators, dictionaries.
#include "assembler/printer_ops.h"

#include <algorithm>

namespace tile {
namespace {

constexpr int kMaxDepth = 2048;  // nested regions; readers stop earlier

// Attributes that a format does not name are printed in the dictionary when they differ from their default.
void mentioned_in(const std::vector<FormatNode>& nodes, uint32_t& bits) {
  for (const FormatNode& n : nodes) {
    if (n.kind == FormatNode::Kind::Attr) bits |= 1u << n.index;
    mentioned_in(n.children, bits);
  }
}

// The terminator that a region of `parent` ends with when its text shows none.
bool is_implicit(Opcode terminator, Opcode parent) {
  if (parent == Opcode::If) return terminator == Opcode::Yield;
  return (parent == Opcode::For || parent == Opcode::Loop) && terminator == Opcode::Continue;
}

}  // namespace

FunctionPrinter::Words FunctionPrinter::words(InstId i) const {
  const Inst& inst = f_.insts[i];
  Words w;
  w.op = find_op(static_cast<uint32_t>(inst.op));
  if (!w.op) return w;
  std::span<const uint32_t> rest(f_.words);
  rest = rest.subspan(std::min<size_t>(inst.word, rest.size()));
  const auto take = [&](size_t n) {
    const auto taken = rest.first(std::min(n, rest.size()));
    rest = rest.subspan(taken.size());
    return taken;
  };
  w.segments = take(has_segments(*w.op) ? w.op->operands.size() : 0);
  w.operands = take(inst.operand_count);
  w.attrs = take(w.op->attrs.size());
  return w;
}

std::span<const ValueId> FunctionPrinter::group(const Words& w, size_t g) const {
  const auto& defs = w.op->operands;
  const size_t variable_groups = static_cast<size_t>(variable_operands(*w.op));
  const size_t fixed = defs.size() - variable_groups;
  const size_t variable = w.operands.size() - std::min(fixed, w.operands.size());
  size_t first = 0, count = 0;
  for (size_t k = 0; k <= g; ++k) {
    first += count;
    if (variable_groups >= 2) {
      count = k < w.segments.size() ? w.segments[k] : 0;
    } else {
      count = defs[k].arity == Arity::One ? 1 : variable;
    }
  }
  if (first >= w.operands.size()) return {};
  return w.operands.subspan(first, std::min(count, w.operands.size() - first));
}

bool FunctionPrinter::differs(const Words& w, size_t a) const {
  const AttrDef& def = w.op->attrs[a];
  const uint32_t word = attr(w, a);
  if (word == kNone) return false;
  switch (def.kind) {
    case AttrKind::Unit:
      return word != 0;
    case AttrKind::Enum:
    case AttrKind::Bool:
      return def.def == kRequired || word != static_cast<uint32_t>(def.def);
    case AttrKind::Int:
      return def.def == kRequired || word >= m_.attrs.size() ||
             m_.attrs.get(word).bits != static_cast<uint64_t>(def.def);
    default:
      return true;
  }
}

const Region* FunctionPrinter::region(InstId i, size_t r) const {
  const size_t id = size_t{f_.insts[i].first_region} + r;
  return id < f_.regions.size() ? &f_.regions[id] : nullptr;
}

void FunctionPrinter::values(std::span<const ValueId> vs) {
  for (size_t k = 0; k < vs.size() && !c_.full(); ++k) {
    if (k) c_.out += ", ";
    value(vs[k]);
  }
}

void FunctionPrinter::types_of(std::span<const ValueId> vs) {
  for (size_t k = 0; k < vs.size() && !c_.full(); ++k) {
    if (k) c_.out += ", ";
    c_.out += c_.types[type_of(vs[k])];
  }
}

std::vector<ValueId> FunctionPrinter::result_values(const Inst& inst) const {
  std::vector<ValueId> vs;
  const size_t end = std::min(f_.value_types.size(), size_t{inst.first_result} + inst.result_count);
  for (size_t v = inst.first_result; v < end; ++v) vs.push_back(static_cast<ValueId>(v));
  return vs;
}

void FunctionPrinter::result_types(const Inst& inst) {
  types_of(result_values(inst));
}

void FunctionPrinter::results(const Inst& inst) {
  const auto vs = result_values(inst);
  if (vs.empty()) return;
  values(vs);
  c_.out += " = ";
}

// Formats.

void FunctionPrinter::blank(Line& l) {
  if (!l.glue) c_.out += ' ';
  l.glue = false;
}

void FunctionPrinter::literal(Line& l, const std::string& text) {
  const bool closes = text == "," || text == "]" || text == ">";
  const bool opens = text == "[" || text == "<";
  // Rows write `token=$token` or `token = $token`; both read the same, and NVIDIA prints them so.
  const bool tight =
      text == "=" && !l.last.empty() && l.w.op->format.find(std::string(l.last) + "=") != std::string_view::npos;
  if (!closes && !opens && !tight) blank(l);
  c_.out += text;
  l.glue = opens || tight;
  l.last = text;
}

TypeId FunctionPrinter::type_target(const Line& l, const FormatNode& n) const {
  const Inst& inst = f_.insts[l.id];
  for (const auto& target : n.targets) {
    const auto index = static_cast<size_t>(target.index);
    if (target.is_result) {
      if (index < inst.result_count) return type_of(inst.first_result + static_cast<ValueId>(index));
    } else if (const auto vs = group(l.w, index); !vs.empty()) {
      return type_of(vs[0]);
    }
  }
  return kNone;
}

bool FunctionPrinter::group_present(const Line& l, const FormatNode& n) const {
  using Kind = FormatNode::Kind;
  for (const FormatNode& child : n.children) {
    switch (child.kind) {
      case Kind::Operand:
      case Kind::Types:
      case Kind::IndexTypes:
        return !group(l.w, static_cast<size_t>(child.index)).empty();
      case Kind::Attr:
        return differs(l.w, static_cast<size_t>(child.index));
      case Kind::Type:
        return type_target(l, child) != kNone;
      default:
        break;
    }
  }
  return false;
}

void FunctionPrinter::attr_value(const OpDef& op, size_t a, uint32_t word) {
  const AttrDef& def = op.attrs[a];
  switch (def.kind) {
    case AttrKind::Unit:
      c_.out += def.name;
      break;
    case AttrKind::Enum:
      c_.out += enum_word(def.enum_kind, word);
      break;
    case AttrKind::Bool:
      c_.out += word ? "true" : "false";
      break;
    case AttrKind::Int:
      c_.out += word < m_.attrs.size() ? std::to_string(static_cast<int64_t>(m_.attrs.get(word).bits)) : "?";
      break;
    case AttrKind::String:
      put_string(c_.out, word < m_.strings.size() ? m_.strings.get(word) : std::string_view());
      break;
    case AttrKind::Symbol:
      put_symbol(c_.out, word < m_.strings.size() ? m_.strings.get(word) : std::string_view());
      break;
    case AttrKind::Hints:
      attrs_.hints(word);
      break;
    default:
      attrs_.in_format(word);
      break;
  }
}

void FunctionPrinter::dict(Line& l, bool with_keyword) {
  const auto found = std::lower_bound(f_.extra_attrs.begin(), f_.extra_attrs.end(), l.id,
                                      [](const auto& e, InstId i) { return e.first < i; });
  const Attr* extra = nullptr;
  if (found != f_.extra_attrs.end() && found->first == l.id && found->second < m_.attrs.size())
    extra = &m_.attrs.get(found->second);
  uint32_t mentioned = 0;
  mentioned_in(op_format(*l.w.op), mentioned);
  const bool by_hand = l.w.op->format == "@custom";

  bool first = true;
  const auto open = [&] {
    if (first) {
      blank(l);
      c_.out += with_keyword ? "attributes {" : "{";
    } else {
      c_.out += ", ";
    }
    first = false;
  };
  for (size_t a = 0; !by_hand && a < l.w.op->attrs.size(); ++a) {
    if (mentioned >> a & 1 || !differs(l.w, a)) continue;
    const AttrDef& def = l.w.op->attrs[a];
    open();
    c_.out += def.name;
    if (def.kind == AttrKind::Unit) continue;
    c_.out += " = ";
    if (def.kind == AttrKind::Enum) c_.out += "#cuda_tile." + std::string(enum_info(def.enum_kind).name) + "<";
    attr_value(*l.w.op, a, attr(l.w, a));
    if (def.kind == AttrKind::Enum) c_.out += ">";
  }
  if (extra && !extra->entries.empty()) {
    open();
    attrs_.entries(*extra);
  }
  if (!first) c_.out += "}";
}

void FunctionPrinter::node(Line& l, const std::vector<FormatNode>& nodes, size_t k) {
  using Kind = FormatNode::Kind;
  const FormatNode& n = nodes[k];
  const auto index = static_cast<size_t>(n.index);
  switch (n.kind) {
    case Kind::Literal: {
      // A result that this version of the operation does not have takes its arrow along.
      const bool arrow_to_nothing = n.text == "->" && k + 1 < nodes.size() && nodes[k + 1].kind == Kind::Type &&
                                    type_target(l, nodes[k + 1]) == kNone && f_.insts[l.id].result_count == 0;
      if (!arrow_to_nothing) literal(l, n.text);
      return;
    }
    case Kind::Operand: {
      const auto vs = group(l.w, index);
      if (vs.empty()) break;
      blank(l);
      values(vs);
      break;
    }
    case Kind::Attr: {
      const uint32_t word = attr(l.w, index);
      const bool nothing = l.w.op->attrs[index].kind == AttrKind::Unit ? !differs(l.w, index) : word == kNone;
      if (nothing) break;
      blank(l);
      attr_value(*l.w.op, index, word);
      break;
    }
    case Kind::Group:
      if (group_present(l, n)) walk(l, n.children);
      break;
    case Kind::Type: {
      const TypeId type = type_target(l, n);
      if (type == kNone && f_.insts[l.id].result_count == 0) break;
      blank(l);
      c_.out += c_.types[type];
      break;
    }
    case Kind::Types:
      blank(l);
      types_of(group(l.w, index));
      break;
    case Kind::IndexTypes: {
      const auto vs = group(l.w, index);
      if (vs.empty()) break;
      c_.out += ", ";
      const bool alike = std::all_of(vs.begin(), vs.end(), [&](ValueId v) { return type_of(v) == type_of(vs[0]); });
      types_of(alike ? vs.first(1) : vs);
      break;
    }
    case Kind::Dict:
      dict(l, false);
      break;
    case Kind::Attributes:
      dict(l, true);
      break;
    case Kind::Custom:
      custom(l);
      break;
  }
  l.last = {};
}

void FunctionPrinter::walk(Line& l, const std::vector<FormatNode>& nodes) {
  for (size_t k = 0; k < nodes.size() && !c_.full(); ++k) node(l, nodes, k);
}

void FunctionPrinter::inst(InstId i) {
  const Inst& inst = f_.insts[i];
  results(inst);
  Line l{i, words(i)};
  if (!l.w.op) {
    c_.out += "<operation " + std::to_string(static_cast<unsigned>(inst.op)) + ">";
    return;
  }
  // print_tko without its token is the print of the oldest version.
  const bool old = !l.w.op->alias.empty() && !l.w.op->results.empty() && inst.result_count == 0;
  c_.out += old ? l.w.op->alias : l.w.op->name;
  walk(l, op_format(*l.w.op));
}

// Regions.

bool FunctionPrinter::hidden(InstId i, Opcode parent) const {
  const Inst& inst = f_.insts[i];
  if (inst.operand_count != 0 || !is_implicit(inst.op, parent)) return false;
  if (c_.debug && inst.loc != kUnknownLoc) return false;
  return !std::binary_search(f_.extra_attrs.begin(), f_.extra_attrs.end(), std::pair<InstId, AttrId>(i, 0),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
}

void FunctionPrinter::body(const Region& r, Opcode parent, int indent, int depth) {
  c_.out += "{\n";
  const InstId end = std::min<InstId>(r.end, static_cast<InstId>(f_.insts.size()));
  for (InstId i = r.begin; i < end && !c_.full();) {
    const InstId next = std::max(f_.insts[i].next, i + 1);
    if (next < end || !hidden(i, parent)) line(i, indent + 2, depth);
    i = next;
  }
  c_.out.append(static_cast<size_t>(indent), ' ');
  c_.out += "}";
}

void FunctionPrinter::region_dict(InstId i) {
  Line l{i, words(i)};
  dict(l, false);
}

void FunctionPrinter::regions(InstId i, int indent, int depth) {
  const Opcode op = f_.insts[i].op;
  const OpDef* def = find_op(static_cast<uint32_t>(op));
  if (!def || def->regions == 0) return;
  for (size_t r = 0; r < def->regions; ++r) {
    const Region* sub = region(i, r);
    const bool present = sub && sub->present;
    if (!present && r > 0) continue;  // an else that is not there
    if (r > 0) c_.out += " else";
    c_.out += ' ';
    if (!present) {
      c_.out += "{ }";
    } else if (depth >= kMaxDepth) {
      c_.out += "{ ... }";
    } else {
      body(*sub, op, indent, depth + 1);
    }
  }
  // reduce and scan have their dictionary in front, like operations without regions.
  if (op != Opcode::Reduce && op != Opcode::Scan) region_dict(i);
}

void FunctionPrinter::line(InstId i, int indent, int depth) {
  const OpDef* def = find_op(static_cast<uint32_t>(f_.insts[i].op));
  if (i < f_.inst_spans.size()) c_.anchor(f_.inst_spans[i]);
  c_.out.append(static_cast<size_t>(indent), ' ');
  inst(i);
  if (def && (def->code == static_cast<uint16_t>(Opcode::Reduce) || def->code == static_cast<uint16_t>(Opcode::Scan))) {
    // The arguments of the body stand on a line of their own, in front of the brace.
    c_.out += "\n";
    c_.out.append(static_cast<size_t>(indent), ' ');
    c_.out += "(";
    if (const Region* r = region(i, 0)) {
      for (uint32_t a = 0; a < r->arg_count && !c_.full(); ++a) {
        if (a) c_.out += ", ";
        value(r->first_arg + a);
        c_.out += ": " + c_.types[type_of(r->first_arg + a)];
      }
    }
    c_.out += ")";
  }
  regions(i, indent, depth);
  if (c_.debug) c_.out += c_.debug->behind(f_.insts[i].loc);
  c_.out += "\n";
}

void FunctionPrinter::entry(int indent) {
  c_.anchor(f_.name_span);
  c_.out.append(static_cast<size_t>(indent), ' ');
  c_.out += "entry ";
  put_symbol(c_.out, f_.name < m_.strings.size() ? m_.strings.get(f_.name) : std::string_view());
  c_.out += "(";
  const Attr* dicts = f_.arg_attrs < m_.attrs.size() ? &m_.attrs.get(f_.arg_attrs) : nullptr;
  for (uint32_t p = 0; p < f_.param_count && p < f_.value_types.size() && !c_.full(); ++p) {
    if (p) c_.out += ", ";
    value(p);
    c_.out += ": " + c_.types[type_of(p)];
    if (!dicts || p >= dicts->items.size() || dicts->items[p] >= m_.attrs.size()) continue;
    const Attr& dict = m_.attrs.get(dicts->items[p]);
    if (dict.entries.empty()) continue;
    c_.out += " {";
    attrs_.entries(dict);
    c_.out += "}";
  }
  c_.out += ")";
  if (f_.hints < m_.attrs.size() && !m_.attrs.get(f_.hints).entries.empty()) {
    c_.out += " optimization_hints=";
    attrs_.hints(f_.hints);
  }
  c_.out += " ";
  Region whole;
  whole.end = static_cast<InstId>(f_.insts.size());
  body(f_.regions.empty() ? whole : f_.regions[0], Opcode::Entry, indent, 0);
  if (c_.debug) c_.out += c_.debug->behind(f_.loc);
  c_.out += "\n";
}

}  // namespace tile
