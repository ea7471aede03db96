// Lines of a trace: operands are read before the step runs, because its results may take over their storage.
#include "vm/interp/trace.h"

#include <algorithm>

#include "vm/interp/exec.h"

namespace tile {

Trace::Trace(std::shared_ptr<const ValidModule> module, const Function& entry, TraceFilter filter,
             std::function<void(std::string_view)> write)
    : module_(std::move(module)),
      f_(entry),
      filter_(std::move(filter)),
      write_(std::move(write)),
      slots_(value_slots(module_, entry)) {
  const Module& m = **module_;
  for (InstId i = 0; i < f_.insts.size(); ++i) {
    const LineRef at = line_of(m, f_, i);
    const auto name = f_.def(i).name;
    const bool op = filter_.ops.empty() || std::find(filter_.ops.begin(), filter_.ops.end(), name) != filter_.ops.end();
    wanted_.push_back(op && (filter_.line == 0 || filter_.line == at.line));
    places_.push_back(at.line ? at.text() : "@" + std::string(m.str(f_.name)) + "#" + std::to_string(i));
  }
}

void Trace::launch_begin(const Launch& launch) {
  workers_.assign(launch.threads, {});
  if (plan_ == launch.plan) return;
  plan_ = launch.plan;
  table_ = StepTable(*plan_);
}

void Trace::block_begin(Exec& x) {
  workers_[x.worker] = {!filter_.block || std::equal(filter_.block->begin(), filter_.block->end(), x.block), {}};
}

void Trace::block_end(Exec& x) {
  std::string& pending = workers_[x.worker].pending;
  if (!pending.empty()) line(std::move(pending) + " -> stopped");
  pending.clear();
}

void Trace::line(std::string text) {
  text += '\n';
  wrote_ = true;
  write_(text);
}

std::string Trace::head(const Exec& x, InstId i, uint32_t depth) const {
  std::string out = "[" + std::to_string(x.block[0]) + "," + std::to_string(x.block[1]) + "," +
                    std::to_string(x.block[2]) + "] " + places_[i] + ": ";
  out.append(size_t{2} * depth, ' ');
  out += f_.def(i).name;
  return out;
}

std::string Trace::named(const Exec& x, ValueId value) const {
  const Slot s = slots_[value];
  return value_name(**module_, f_, value) + " = " +
         value_text(**module_, x.memory, f_.type(value), s == kNoSlot ? nullptr : x.at<std::byte>(s));
}

std::string Trace::operands(const Exec& x, InstId i) const {
  std::string out;
  for (const ValueId v : f_.operands(i))
    if (!(*module_)->types.is_token(f_.type(v))) out += (out.empty() ? " " : ", ") + named(x, v);
  return out;
}

std::string Trace::results(const Exec& x, InstId i) const {
  std::string out;
  for (uint32_t k = 0; k < f_.insts[i].result_count; ++k)
    if (!(*module_)->types.is_token(f_.type(f_.result(i, k))))
      out += (out.empty() ? " -> " : ", ") + named(x, f_.result(i, k));
  return out;
}

void Trace::opened(const Exec& x, RegionId r, uint32_t depth) {
  const Region& region = f_.regions[r];
  if (region.parent == kNone) {
    if (filter_.line != 0 || !filter_.ops.empty()) return;
    std::string params;
    for (uint32_t p = 0; p < region.arg_count; ++p) params += (p ? ", " : " ") + named(x, p);
    line("[" + std::to_string(x.block[0]) + "," + std::to_string(x.block[1]) + "," + std::to_string(x.block[2]) +
         "] entry @" + std::string((*module_)->str(f_.name)) + params);
    return;
  }
  if (!wanted(region.parent)) return;
  const Opcode op = f_.insts[region.parent].op;
  std::string text = head(x, region.parent, depth - 1);
  if (op == Opcode::If) {
    text += r == f_.insts[region.parent].first_region ? " then" : " else";
  } else {
    text += " iteration";
  }
  for (uint32_t a = 0; a < region.arg_count; ++a)
    if (!(*module_)->types.is_token(f_.type(region.first_arg + a)))
      text += (a ? ", " : " ") + named(x, region.first_arg + a);
  line(std::move(text));
}

void Trace::before(Exec& x, const Step& s) {
  if (!workers_[x.worker].active) return;
  const StepTable::Entry& e = table_[StepTable::index(*plan_, s)];
  if (e.in_body) return;
  if (e.opens != kNone) opened(x, e.opens, e.depth);
  for (const InstId i : e.silent)
    if (wanted(i)) line(head(x, i, e.depth) + operands(x, i) + results(x, i));
  if (e.preparation || !wanted(s.inst)) return;
  std::string text = head(x, s.inst, e.depth) + operands(x, s.inst);
  const Opcode op = f_.insts[s.inst].op;
  const bool encloses = f_.def(s.inst).regions > 0 && op != Opcode::Reduce && op != Opcode::Scan;
  if (e.terminator || encloses) {
    line(std::move(text));
  } else {
    workers_[x.worker].pending = std::move(text);
  }
}

void Trace::after(Exec& x, const Step& s) {
  if (!workers_[x.worker].active) return;
  const StepTable::Entry& e = table_[StepTable::index(*plan_, s)];
  if (e.in_body || e.preparation || !wanted(s.inst)) return;
  if (e.terminator) return;  // yield
  std::string& pending = workers_[x.worker].pending;
  if (pending.empty()) {
    line(head(x, s.inst, e.depth) + " done" + results(x, s.inst));
  } else {
    line(std::move(pending) + results(x, s.inst));
    pending.clear();
  }
}

}  // namespace tile
