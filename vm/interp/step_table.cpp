// Facts about steps, computed once for each watched launch.
#include "vm/interp/step_table.h"

#include "vm/base/check.h"
#include "vm/base/escape_text.h"
#include "vm/interp/plan_builder.h"

namespace tile {

LineRef line_of(const Module& module, const Function& function, InstId i) {
  if (module.source && i < function.inst_spans.size() && function.inst_spans[i].valid())
    return {module.source->name(), module.source->line_col(function.inst_spans[i].begin).line};
  const LocId at = module.locs.line_of(function.insts[i].loc);
  if (at == kNone) return {};
  const Loc& loc = module.locs.get(at);
  return {std::string(module.str(loc.file)), loc.line};
}

std::string LineRef::text() const { return line ? escape_hidden(file) + ":" + std::to_string(line) : std::string(); }

std::string value_name(const Module& module, const Function& function, ValueId value) {
  if (value < function.value_names.size() && function.value_names[value] != kNone)
    return "%" + std::string(module.str(function.value_names[value]));
  return "%" + std::to_string(value);
}

StepTable::StepTable(const Plan& plan) {
  const Function& f = plan.function();
  const auto& steps = plan.steps();
  entries_.resize(steps.size());
  region_of_.assign(f.insts.size(), 0);
  std::vector<uint32_t> depth(f.regions.size(), 0);
  std::vector<uint8_t> body(f.regions.size(), 0);
  for (RegionId r = 0; r < f.regions.size(); ++r) {  // pre-order: the parent of a region has been seen
    const Region& region = f.regions[r];
    if (region.parent != kNone) {
      const RegionId around = region_of_[region.parent];
      const Opcode op = f.insts[region.parent].op;
      depth[r] = depth[around] + 1;
      body[r] = body[around] || op == Opcode::Reduce || op == Opcode::Scan;
    }
    for (InstId i = region.begin; i < region.end; i = f.insts[i].next) region_of_[i] = r;
  }
  std::vector<size_t> first(f.insts.size(), SIZE_MAX), last(f.insts.size(), SIZE_MAX);
  for (size_t s = 0; s < steps.size(); ++s) {
    const InstId i = steps[s].inst;
    if (first[i] == SIZE_MAX) first[i] = s;
    last[i] = s;
    entries_[s].depth = depth[region_of_[i]];
    entries_[s].in_body = body[region_of_[i]] != 0;
    entries_[s].terminator = f.def(i).terminator;
  }
  for (size_t s = 0; s < steps.size(); ++s) entries_[s].preparation = last[steps[s].inst] != s;
  for (RegionId r = 0; r < f.regions.size(); ++r) {
    if (body[r]) continue;
    bool opened = false;
    std::vector<InstId> silent;
    for (InstId i = f.regions[r].begin; i < f.regions[r].end; i = f.insts[i].next) {
      if (first[i] == SIZE_MAX) {
        silent.push_back(i);
        continue;
      }
      entries_[first[i]].silent = std::move(silent);
      silent.clear();
      if (!opened) entries_[first[i]].opens = r;
      opened = true;
    }
  }
}

std::vector<Slot> value_slots(const std::shared_ptr<const ValidModule>& module, const Function& function) {
  Plan plan;
  Diagnostics diags;
  PlanBuilder builder(module, function, plan, diags, SIZE_MAX);
  TILE_CHECK(builder.build());
  std::vector<Slot> slots(function.value_types.size());
  for (ValueId value = 0; value < slots.size(); ++value) slots[value] = builder.slot(value);
  return slots;
}

}  // namespace tile
