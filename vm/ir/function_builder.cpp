// Layout of instructions, words and regions while they are appended.
#include "vm/ir/function_builder.h"

#include "vm/base/check.h"

namespace tile {

FunctionBuilder::FunctionBuilder(Function& function, std::span<const TypeId> params) : f_(function) {
  f_.param_count = static_cast<uint32_t>(params.size());
  f_.value_types.assign(params.begin(), params.end());
  f_.regions.push_back({.parent = kNone, .first_arg = 0, .arg_count = f_.param_count, .begin = 0, .end = 0, .present = true});
}

InstId FunctionBuilder::op(const OpInit& init, const OpSpans* spans) {
  const OpDef& d = op_def(init.op);
  TILE_CHECK(init.attrs.size() == d.attrs.size());
  TILE_CHECK(init.segments.size() == (has_segments(d) ? d.operands.size() : 0));
  const InstId id = static_cast<InstId>(f_.insts.size());
  Inst inst;
  inst.op = init.op;
  inst.next = id + 1;
  inst.word = static_cast<uint32_t>(f_.words.size());
  inst.operand_count = static_cast<uint32_t>(init.operands.size());
  inst.result_count = static_cast<uint32_t>(init.result_types.size());
  inst.first_result = next_value();
  inst.first_region = static_cast<RegionId>(f_.regions.size());
  inst.loc = init.loc;
  f_.words.insert(f_.words.end(), init.segments.begin(), init.segments.end());
  f_.words.insert(f_.words.end(), init.operands.begin(), init.operands.end());
  f_.words.insert(f_.words.end(), init.attrs.begin(), init.attrs.end());
  f_.value_types.insert(f_.value_types.end(), init.result_types.begin(), init.result_types.end());
  for (uint8_t r = 0; r < d.regions; ++r) f_.regions.push_back({.parent = id});
  f_.insts.push_back(inst);
  if (spans) {
    f_.inst_spans.resize(id);
    f_.inst_spans.push_back(spans->op);
    f_.word_spans.resize(inst.word + init.segments.size());
    for (size_t k = 0; k < init.operands.size(); ++k) f_.word_spans.push_back(k < spans->operands.size() ? spans->operands[k] : Span{});
    for (size_t k = 0; k < init.attrs.size(); ++k) f_.word_spans.push_back(k < spans->attrs.size() ? spans->attrs[k] : Span{});
    for (size_t k = 0; k < spans->results.size(); ++k) value_span(inst.first_result + static_cast<ValueId>(k), spans->results[k]);
  }
  if (d.regions > 0) open_.push_back({id, 0, false});
  return id;
}

RegionId FunctionBuilder::begin_region(std::span<const TypeId> arg_types) {
  TILE_CHECK(!open_.empty() && !open_.back().in_region);
  Open& o = open_.back();
  const RegionId r = f_.insts[o.inst].first_region + o.next_region++;
  o.in_region = true;
  Region& region = f_.regions[r];
  region.first_arg = next_value();
  region.arg_count = static_cast<uint32_t>(arg_types.size());
  region.begin = region.end = static_cast<InstId>(f_.insts.size());
  region.present = true;
  f_.value_types.insert(f_.value_types.end(), arg_types.begin(), arg_types.end());
  return r;
}

void FunctionBuilder::end_region() {
  TILE_CHECK(!open_.empty() && open_.back().in_region);
  Open& o = open_.back();
  f_.regions[f_.insts[o.inst].first_region + o.next_region - 1].end = static_cast<InstId>(f_.insts.size());
  o.in_region = false;
}

void FunctionBuilder::absent_region() {
  TILE_CHECK(!open_.empty() && !open_.back().in_region);
  Open& o = open_.back();
  Region& region = f_.regions[f_.insts[o.inst].first_region + o.next_region++];
  region.first_arg = next_value();
  region.begin = region.end = static_cast<InstId>(f_.insts.size());
}

void FunctionBuilder::end_op() {
  TILE_CHECK(!open_.empty() && !open_.back().in_region);
  f_.insts[open_.back().inst].next = static_cast<uint32_t>(f_.insts.size());
  open_.pop_back();
}

void FunctionBuilder::finish() {
  TILE_CHECK(open_.empty());
  f_.regions[0].end = static_cast<InstId>(f_.insts.size());
}

void FunctionBuilder::name_value(ValueId value, StringId name) {
  if (f_.value_names.size() <= value) f_.value_names.resize(value + 1, kNone);
  f_.value_names[value] = name;
}

void FunctionBuilder::value_span(ValueId value, Span span) {
  if (f_.value_spans.size() <= value) f_.value_spans.resize(value + 1);
  f_.value_spans[value] = span;
}

}  // namespace tile
