// Operations of a function, laid out as the rows of the operation table say; nesting is kept on a stack of our own.
#include <algorithm>

#include "assembler/tileirbc/writer.h"

namespace tile::tileirbc {

void Writer::write_body(Bytes& out, const Function& f) {
  struct Open {
    InstId inst;       // kNone: the body
    uint8_t region;    // that is being written
    InstId at, end;    // next operation in it
    uint32_t outside;  // next number before its arguments
  };
  numbers_.assign(f.value_types.size(), kNone);
  used_.clear();
  for (next_number_ = 0; next_number_ < f.param_count; ++next_number_) numbers_[next_number_] = next_number_;
  std::vector<Open> open{{kNone, 0, f.regions[0].begin, f.regions[0].end, 0}};
  while (!open.empty()) {
    Open& o = open.back();
    if (o.at < o.end) {
      const InstId i = o.at;
      o.at = f.insts[i].next;
      inst_ = i;
      write_op(out, i);
      const OpDef& d = f.def(i);
      if (d.regions == 0) {
        number_results(i);
        continue;
      }
      out.varint(d.regions);
      const uint32_t outside = next_number_;
      const Region& r = f.region(i);
      open_region(out, i, r);
      open.push_back({i, 0, r.begin, r.end, outside});
      continue;
    }
    if (o.inst == kNone) break;
    next_number_ = o.outside;
    if (++o.region < f.def(o.inst).regions) {
      const Region& r = f.region(o.inst, o.region);
      open_region(out, o.inst, r);
      o.at = r.begin;
      o.end = r.end;
      continue;
    }
    number_results(o.inst);
    open.pop_back();
  }
}

void Writer::open_region(Bytes& out, InstId i, const Region& r) {
  const bool is_else = f_->insts[i].op == Opcode::If;
  if (!r.present && !is_else) {
    out.varint(0);
    return;
  }
  out.varint(1);
  out.varint(r.arg_count);
  for (uint32_t k = 0; k < r.arg_count; ++k) {
    out.varint(type(f_->type(r.first_arg + k)));
    numbers_[r.first_arg + k] = next_number_++;
  }
  if (!r.present) {
    // The form has no region without a block: the absent one becomes one that does nothing.
    out.varint(1);
    out.varint(static_cast<uint64_t>(Opcode::Yield));
    out.varint(0);
    out.varint(0);
    locations_.push_back(location(f_->insts[i].loc));
    return;
  }
  uint64_t ops = 0;
  for (InstId k = r.begin; k < r.end; k = f_->insts[k].next) ++ops;
  out.varint(ops);
}

void Writer::number_results(InstId i) {
  const Inst& inst = f_->insts[i];
  for (uint32_t k = 0; k < inst.result_count; ++k) numbers_[inst.first_result + k] = next_number_ + k;
  // Results that only the target has are numbered, those that it lacks are not: they are unused.
  next_number_ += static_cast<uint32_t>(results_in_target(f_->def(i), inst));
}

bool Writer::is_used(ValueId v) {
  if (used_.empty()) {
    used_.resize(f_->value_types.size());
    for (InstId i = 0; i < f_->insts.size(); ++i)
      for (ValueId o : f_->operands(i)) used_[o] = true;
  }
  return used_[v];
}

/// Results that the record has: those of the operation, more or fewer by what came with a version.
size_t Writer::results_in_target(const OpDef& d, const Inst& inst) const {
  size_t n = inst.result_count;
  for (size_t r = 0; r < d.results.size(); ++r) {
    if (d.results[r].since <= d.since) continue;
    if (d.results[r].since > target_) n = std::min(n, r);
    if (d.results[r].since <= target_) n = std::max(n, r + 1);
  }
  return n;
}

void Writer::write_results(Bytes& out, InstId i, const OpDef& d) {
  const Inst& inst = f_->insts[i];
  const size_t n = results_in_target(d, inst);
  if (counts_results(d)) out.varint(n);
  for (size_t k = 0; k < n; ++k) {
    if (k < inst.result_count) {
      out.varint(type(f_->type(inst.first_result + static_cast<ValueId>(k))));
    } else {
      // A file of an older version gave the operation no token.
      out.varint(any_type_of(Type{}));
    }
  }
  for (size_t k = n; k < inst.result_count; ++k)
    if (is_used(inst.first_result + static_cast<ValueId>(k))) {
      unsupported("result " + std::string(d.results[k].name) + " of " + std::string(d.name), d.results[k].since);
    }
}

void Writer::write_op(Bytes& out, InstId i) {
  const OpDef& d = f_->def(i);
  locations_.push_back(location(f_->insts[i].loc));
  if (d.since > target_) {
    unsupported(std::string(d.name), d.since);
    return;
  }
  for (size_t a = 0; a < d.attrs.size(); ++a)
    if (d.attrs[a].kind == AttrKind::Symbol) declare_global(f_->attr(i, a));
  out.varint(d.code);
  write_results(out, i, d);

  uint64_t flags = 0;
  bool has_flags = false;
  const auto bits = flag_bits(d);
  for (size_t b = 0; b < bits.size(); ++b) {
    const bool set = bits[b].is_operand                              ? !f_->group(i, bits[b].index).empty()
                     : d.attrs[bits[b].index].kind == AttrKind::Unit ? f_->attr(i, bits[b].index) == 1
                                                                     : f_->attr(i, bits[b].index) != kNone;
    if (bits[b].since <= target_) {
      has_flags = true;
      flags |= uint64_t{set} << b;
    } else if (set) {
      const std::string_view name = bits[b].is_operand ? d.operands[bits[b].index].name : d.attrs[bits[b].index].name;
      unsupported(std::string(name) + " of " + std::string(d.name), bits[b].since);
    }
  }
  if (has_flags) out.varint(flags);
  for (size_t a = 0; a < d.attrs.size(); ++a) write_attribute(out, i, d, a);
  write_operands(out, i, d);
}

void Writer::write_attribute(Bytes& out, InstId i, const OpDef& d, size_t a) {
  const AttrDef& def = d.attrs[a];
  const uint32_t word = f_->attr(i, a);
  if (def.kind == AttrKind::Unit || (def.optional && word == kNone)) return;
  const std::string name = std::string(def.name) + " of " + std::string(d.name);
  if (def.kind == AttrKind::Enum) {
    const auto values = enum_info(def.enum_kind).values;
    if (word < values.size() && values[word].since > target_) {
      return unsupported_attr(a, name + " with value " + std::string(values[word].word), values[word].since);
    }
  }
  if (def.since > target_) {
    const bool is_default = word == kNone || (def.kind == AttrKind::Enum && static_cast<int64_t>(word) == def.def);
    if (!is_default) unsupported_attr(a, name, def.since);
    return;
  }
  switch (def.kind) {
    case AttrKind::Unit:
      return;
    case AttrKind::Enum:
      out.varint(word);
      return;
    case AttrKind::Int:
      out.varint(m_.attrs.get(word).bits);
      return;
    case AttrKind::Bool:
      out.byte(word != 0);
      return;
    case AttrKind::String:
    case AttrKind::Symbol:
      out.varint(string(word));
      return;
    case AttrKind::Dense:
      out.varint(constant(word));
      return;
    case AttrKind::Hints:
      dictionary(out, m_.attrs.get(word));
      return;
    case AttrKind::Predicate:
      attribute(out, word);
      return;
    case AttrKind::I32Array: {
      const Attr& array = m_.attrs.get(word);
      out.varint(array.ints.size());
      for (int64_t x : array.ints) out.fixed(static_cast<uint64_t>(x), 4);
      return;
    }
    case AttrKind::BoolArray: {
      // All false is no array in a module, but one value for each index in a file.
      const int group = operand_index(d, "index");
      const size_t n = word != kNone ? m_.attrs.get(word).ints.size()
                       : group < 0   ? 0
                                     : f_->group(i, static_cast<size_t>(group)).size();
      out.varint(n);
      for (size_t k = 0; k < n; ++k) out.byte(word != kNone && m_.attrs.get(word).ints[k] != 0);
      return;
    }
    case AttrKind::AttrArray: {
      const Attr& array = m_.attrs.get(word);
      out.varint(array.items.size());
      for (AttrId item : array.items) attribute(out, item);
      return;
    }
  }
}

void Writer::write_operands(Bytes& out, InstId i, const OpDef& d) {
  const auto operand = [&](ValueId v) { out.varint(numbers_[v]); };
  if (!has_segments(d)) {
    if (variable_operands(d) == 1) out.varint(f_->insts[i].operand_count);
    for (ValueId v : f_->operands(i)) operand(v);
    return;
  }
  for (size_t g = 0; g < d.operands.size(); ++g) {
    const auto values = f_->group(i, g);
    if (d.operands[g].since > target_) continue;  // if there are any, the flags word has reported them
    if (d.operands[g].arity == Arity::Variadic) out.varint(values.size());
    for (ValueId v : values) operand(v);
  }
}

}  // namespace tile::tileirbc
