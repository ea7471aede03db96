// Access to the flat arrays, and places for diagnostics.
#include "vm/ir/module.h"

#include <algorithm>

namespace tile {

Module::InstPrinter Module::inst_printer = nullptr;

std::span<const ValueId> Function::group(InstId i, size_t g) const {
  const OpDef& d = def(i);
  const auto all = operands(i);
  size_t first = 0;
  if (has_segments(d)) {
    const uint32_t* seg = words.data() + insts[i].word;
    for (size_t k = 0; k < g; ++k) first += seg[k];
    return all.subspan(first, seg[g]);
  }
  // At most one variable group: it takes what the single ones leave.
  const size_t fixed = d.operands.size() - static_cast<size_t>(variable_operands(d));
  const size_t variable = all.size() - fixed;
  for (size_t k = 0; k < g; ++k) first += d.operands[k].arity == Arity::One ? 1 : variable;
  return all.subspan(first, d.operands[g].arity == Arity::One ? 1 : variable);
}

std::pair<size_t, size_t> Function::group_of(InstId i, size_t k) const {
  for (size_t g = 0; g < def(i).operands.size(); ++g) {
    const size_t n = group(i, g).size();
    if (k < n) return {g, k};
    k -= n;
  }
  return {0, 0};
}

InstId Function::last_of(const Region& r) const {
  InstId last = kNone;
  for (InstId i = r.begin; i < r.end; i = insts[i].next) last = i;
  return last;
}

const Function* Module::find_function(std::string_view n) const {
  for (const Function& f : functions)
    if (str(f.name) == n) return &f;
  return nullptr;
}

const Global* Module::find_global(std::string_view n) const {
  for (const Global& g : globals)
    if (str(g.name) == n) return &g;
  return nullptr;
}

Place Module::place(const Function& f) const {
  Place p;
  p.file = file;
  p.function = str(f.name);
  if (source && f.name_span.valid()) {
    p.source = source;
    p.span = f.name_span;
  }
  p.debug_loc = loc_text(f.loc);
  return p;
}

Place Module::place(const Function& f, InstId i) const {
  Place p = place(f);
  p.span = {};
  p.instruction = i;
  p.op = f.def(i).name;
  p.debug_loc = loc_text(f.insts[i].loc);
  if (source && i < f.inst_spans.size()) {
    p.source = source;
    p.span = f.inst_spans[i];
  } else if (inst_printer) {
    p.printed = inst_printer(*this, f, i);
  }
  return p;
}

Place Module::place_operand(const Function& f, InstId i, size_t k) const {
  Place p = place(f, i);
  p.operand = static_cast<int64_t>(k);
  if (k < f.operands(i).size()) p.operand_name = f.def(i).operands[f.group_of(i, k).first].name;
  const size_t w = f.insts[i].word + f.segment_words(i) + k;
  if (source && w < f.word_spans.size() && f.word_spans[w].valid()) p.span = f.word_spans[w];
  return p;
}

Place Module::place_attr(const Function& f, InstId i, size_t a) const {
  Place p = place(f, i);
  p.operand_name = f.def(i).attrs[a].name;
  const size_t w = f.attr_word(i) + a;
  if (source && w < f.word_spans.size() && f.word_spans[w].valid()) p.span = f.word_spans[w];
  return p;
}

Place Module::place_value(const Function& f, ValueId value) const {
  Place p = place(f);
  if (source && value < f.value_spans.size() && f.value_spans[value].valid()) {
    p.span = f.value_spans[value];
    return p;
  }
  for (InstId i = 0; i < f.insts.size(); ++i)
    if (value >= f.insts[i].first_result && value < f.insts[i].first_result + f.insts[i].result_count) return place(f, i);
  return p;
}

Place Module::place(const Global& g) const {
  Place p;
  p.file = file;
  if (source && g.span.valid()) {
    p.source = source;
    p.span = g.span;
  }
  return p;
}

std::string Module::loc_text(LocId id) const {
  const LocId line = locs.line_of(id);
  if (line == kNone) return {};
  const Loc& l = locs.get(line);
  return std::string(str(l.file)) + ":" + std::to_string(l.line) + ":" + std::to_string(l.column);
}

namespace {

void raise(Version& at, Version needed) { at = std::max(at, needed); }

Version type_version(const Module& m, TypeId id) {
  const Type& t = m.types.get(id);
  Version need = kOldestVersion;
  switch (t.kind) {
    case TypeKind::Element: need = info(t.element).since; break;
    case TypeKind::StridedView:
    case TypeKind::GatherScatterView: need = v(13, 3); break;
    default: break;
  }
  if (t.ptr_attr != kNone) raise(need, enum_info(EnumKind::PtrAttr).values[t.ptr_attr].since);
  if (t.inner != kNone) raise(need, type_version(m, t.inner));
  return need;
}

}  // namespace

Version required_version(const Module& m) {
  Version need = kOldestVersion;
  if (m.producer != kNone) raise(need, v(13, 3));
  for (const Global& g : m.globals) {
    if (g.visibility != 0 || g.constant) raise(need, v(13, 3));
    raise(need, type_version(m, m.attrs.get(g.value).type));
  }
  for (const Function& f : m.functions) {
    if (f.arg_attrs != kNone) raise(need, v(13, 5));
    for (TypeId t : f.value_types) raise(need, type_version(m, t));
    for (InstId i = 0; i < f.insts.size(); ++i) {
      const OpDef& d = f.def(i);
      raise(need, d.since);
      for (size_t a = 0; a < d.attrs.size(); ++a) {
        const AttrDef& ad = d.attrs[a];
        const uint32_t w = f.attr(i, a);
        const bool is_default = w == kNone || (ad.kind == AttrKind::Unit && w == 0) ||
                                (ad.kind == AttrKind::Enum && ad.def != kRequired && w == static_cast<uint32_t>(ad.def));
        if (!is_default) raise(need, ad.since);
        if (ad.kind == AttrKind::Enum && w != kNone && w < enum_info(ad.enum_kind).values.size()) raise(need, enum_info(ad.enum_kind).values[w].since);
      }
      for (size_t g = 0; g < d.operands.size(); ++g)
        if (d.operands[g].since > d.since && !f.group(i, g).empty()) raise(need, d.operands[g].since);
      for (size_t r = 0; r < d.results.size(); ++r)
        if (d.results[r].since > d.since && f.insts[i].result_count > r) raise(need, d.results[r].since);
    }
  }
  return need;
}

}  // namespace tile
