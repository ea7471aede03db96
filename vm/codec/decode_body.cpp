// Operations of a tilebc function. The order of words follows from the rows of the operation table; nesting is kept on
// a stack of our own.
#include "vm/codec/decoder.h"

namespace tile {
namespace {

uint32_t default_word(const AttrDef& a) {
  if (a.kind == AttrKind::Unit) return 0;
  const bool number = a.kind == AttrKind::Enum || a.kind == AttrKind::Bool;
  return number && !a.optional && a.def != kRequired ? static_cast<uint32_t>(a.def) : kNone;
}

}  // namespace

bool TilebcDecoder::body(const bc::Function& f, Function& out) {
  results_.clear();
  for (uint32_t p = 0; f.params() && p < f.params()->size(); ++p)
    if (!type(f.params()->Get(p), results_.emplace_back())) return false;
  FunctionBuilder builder(out, results_);
  words_ = {f.words()};
  next_region_ = 0;
  open_.clear();
  const uint32_t count = f.insts() ? f.insts()->size() : 0, regions = f.regions() ? f.regions()->size() : 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!settle(f, i, builder)) return false;
    inst_ = i;
    const bc::Inst& inst = *f.insts()->Get(i);
    if (!instruction(inst, builder)) return false;
    const uint8_t own = op_def(static_cast<Opcode>(inst.opcode())).regions;
    if (own == 0) continue;
    if (!nested(static_cast<uint32_t>(open_.size() + 1), "regions")) return false;
    open_.push_back({.inst = i,
                     .limit = open_.empty() ? count : open_.back().region_end,
                     .region_end = 0,
                     .regions_left = own,
                     .in_region = false});
  }
  if (!settle(f, count, builder)) return false;
  inst_ = -1;
  op_ = {};
  if (next_region_ != regions)
    return fail(Code::E0208, "the function has " + std::to_string(regions) + " regions, but its operations only " +
                                 std::to_string(next_region_));
  if (words_.left() != 0) return fail(Code::E0207, std::to_string(words_.left()) + " words are left over");
  builder.finish();
  return names_and_extras(f, out, builder);
}

/// Closes regions that end before instruction `inst` and opens those that come next.
bool TilebcDecoder::settle(const bc::Function& f, uint32_t inst, FunctionBuilder& builder) {
  while (!open_.empty()) {
    Open& o = open_.back();
    if (o.in_region) {
      if (inst < o.region_end) return true;
      builder.end_region();
      o.in_region = false;
    }
    if (o.regions_left == 0) {
      builder.end_op();
      open_.pop_back();
      continue;
    }
    --o.regions_left;
    inst_ = o.inst;
    op_ = builder.function().def(o.inst).name;
    if (!open_region(f, inst, builder)) return false;
  }
  return true;
}

bool TilebcDecoder::open_region(const bc::Function& f, uint32_t inst, FunctionBuilder& builder) {
  Open& o = open_.back();
  if (!f.regions() || next_region_ >= f.regions()->size())
    return fail(Code::E0208, "there is no record for a region of the operation");
  const bc::Region& r = *f.regions()->Get(next_region_++);
  if (!r.present()) {
    if (r.insts() != 0 || r.args() != 0)
      return fail(Code::E0208, "a region without a block has instructions or arguments");
    builder.absent_region();
    return true;
  }
  if (r.insts() > o.limit - inst) {
    return fail(Code::E0208, "a region has " + std::to_string(r.insts()) + " instructions, but only " +
                                 std::to_string(o.limit - inst) + " are left in what surrounds it");
  }
  if (r.args() > words_.left())
    return fail(Code::E0208, "a region has " + std::to_string(r.args()) + " arguments, but only " +
                                 std::to_string(words_.left()) + " words are left");
  results_.clear();
  for (uint32_t a = 0; a < r.args(); ++a)
    if (!type(words_.next(), results_.emplace_back())) return false;
  (void)builder.begin_region(results_);
  o.in_region = true;
  o.region_end = inst + r.insts();
  return true;
}

bool TilebcDecoder::instruction(const bc::Inst& inst, FunctionBuilder& builder) {
  op_ = {};
  const OpDef* d = find_op(uint32_t{inst.opcode()});
  if (!d) return fail(Code::E0206, "unknown opcode " + std::to_string(inst.opcode()));
  op_ = d->name;
  if (d->effect == Effect::Symbol) return fail(Code::E0206, std::string(d->name) + " stands inside a function");
  if (inst.reserved() != 0)
    return fail(Code::E0206, "the reserved field is " + std::to_string(inst.reserved()) + ", expected 0");
  const bool segments = tilebc_segments(*d, version_);
  uint64_t needed = uint64_t{inst.operands()} + inst.results() + 1;  // the last word is the location
  for (const OperandDef& o : d->operands) needed += segments && tilebc_has(o.since, version_);
  for (const AttrDef& a : d->attrs) needed += tilebc_has(a.since, version_);
  if (needed > words_.left())
    return fail(Code::E0207, std::string(d->name) + " has " + std::to_string(needed) + " words, but only " +
                                 std::to_string(words_.left()) + " are left");
  if (!operand_groups(*d, inst) || !result_count(*d, inst)) return false;
  operands_.clear();
  for (uint32_t k = 0; k < inst.operands(); ++k) {
    operands_.push_back(words_.next());
    if (operands_.back() >= builder.next_value())
      return fail(Code::E0205, "operand " + std::to_string(k) + " is value " + std::to_string(operands_.back()) +
                                   ", but only " + std::to_string(builder.next_value()) + " are defined here");
  }
  attrs_.clear();
  for (const AttrDef& a : d->attrs) {
    uint32_t word = default_word(a);
    if (tilebc_has(a.since, version_)) {
      word = words_.next();
      if (!attr_word(*d, a, word)) return false;
    }
    attrs_.push_back(word);
  }
  results_.clear();
  for (uint32_t k = 0; k < inst.results(); ++k)
    if (!type(words_.next(), results_.emplace_back())) return false;
  LocId loc = kUnknownLoc;
  if (!find(words_.next(), loc_ids_, "location", loc)) return false;
  (void)builder.op({.op = static_cast<Opcode>(inst.opcode()),
                    .operands = operands_,
                    .segments = segments_,
                    .attrs = attrs_,
                    .result_types = results_,
                    .loc = loc});
  return true;
}

/// Fills segments_ as FunctionBuilder wants it: a count for each group of the row, those included that the file's
/// version lacks.
bool TilebcDecoder::operand_groups(const OpDef& d, const bc::Inst& inst) {
  segments_.clear();
  const auto wrong = [&](size_t group, uint32_t found) {
    return fail(Code::E0207, std::string(d.name) + ": " + std::string(d.operands[group].name) + " has " +
                                 std::to_string(found) + " values");
  };
  const auto wrong_total = [&] {
    return fail(Code::E0207, std::string(d.name) + " with " + std::to_string(inst.operands()) + " operands");
  };
  const auto fits = [](const OperandDef& o, uint32_t n) {
    return o.arity == Arity::Variadic || n == 1 || (n == 0 && o.arity == Arity::Optional);
  };
  uint64_t sum = 0;
  if (tilebc_segments(d, version_)) {
    for (size_t g = 0; g < d.operands.size(); ++g) {
      const bool here = tilebc_has(d.operands[g].since, version_);
      segments_.push_back(here ? words_.next() : 0);
      if (here && !fits(d.operands[g], segments_.back())) return wrong(g, segments_.back());
      sum += segments_.back();
    }
    return sum == inst.operands() || wrong_total();
  }
  // At most one variable group: it takes what the single ones leave.
  uint32_t fixed = 0;
  for (const OperandDef& o : d.operands) fixed += o.arity == Arity::One && tilebc_has(o.since, version_);
  if (inst.operands() < fixed) return wrong_total();
  for (size_t g = 0; g < d.operands.size(); ++g) {
    const OperandDef& o = d.operands[g];
    const bool here = tilebc_has(o.since, version_);
    const uint32_t n = !here ? 0 : o.arity == Arity::One ? 1 : inst.operands() - fixed;
    if (here && !fits(o, n)) return wrong(g, n);
    sum += n;
    segments_.push_back(n);
  }
  if (!has_segments(d)) segments_.clear();
  return sum == inst.operands() || wrong_total();
}

bool TilebcDecoder::result_count(const OpDef& d, const bc::Inst& inst) {
  uint32_t least = 0, most = 0;
  bool variadic = false;
  for (const ResultDef& r : d.results) {
    variadic |= r.arity == Arity::Variadic;
    least += r.arity == Arity::One && r.since <= d.since;
    most += r.arity != Arity::Variadic;
  }
  if (inst.results() >= least && (variadic || inst.results() <= most)) return true;
  return fail(Code::E0207, std::string(d.name) + " with " + std::to_string(inst.results()) + " results");
}

bool TilebcDecoder::names_and_extras(const bc::Function& f, Function& out, FunctionBuilder& builder) {
  for (uint32_t k = 0; f.value_names() && k < f.value_names()->size(); ++k) {
    const bc::ValueName& n = *f.value_names()->Get(k);
    StringId name = kNone;
    if (n.value() >= out.value_types.size())
      return fail(Code::E0205, "a name for value " + std::to_string(n.value()) + ", but there are only " +
                                   std::to_string(out.value_types.size()));
    if (!string(n.name(), "string", name)) return false;
    builder.name_value(n.value(), name);
  }
  for (uint32_t k = 0; f.extras() && k < f.extras()->size(); ++k) {
    const bc::Extra& e = *f.extras()->Get(k);
    AttrId attr = kNone;
    if (e.inst() >= out.insts.size())
      return fail(Code::E0205, "a dictionary for instruction " + std::to_string(e.inst()) + ", but there are only " +
                                   std::to_string(out.insts.size()));
    if (!use_attr(e.attr(), "attribute", attr)) return false;
    if (m_.attrs.get(attr).tag != AttrTag::Dictionary || (k > 0 && e.inst() <= f.extras()->Get(k - 1)->inst()))
      return fail(Code::E0209, "what instructions carry besides are dictionaries, in ascending order of instructions");
    out.extra_attrs.emplace_back(e.inst(), attr);
  }
  return true;
}

}  // namespace tile
