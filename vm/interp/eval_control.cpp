// Control flow: loops, branches, terminators.
#include <algorithm>

#include "vm/interp/eval.h"

namespace tile {
namespace {

struct ForData : StepData {
  std::vector<Move> init;
  Slot init_temp = kNoSlot;
  unsigned bits = 32;
  size_t size = 4;
  bool is_unsigned = false;
};

struct MovesData : StepData {
  std::vector<Move> moves;
  Slot temp = kNoSlot;
};

Flow eval_for(Exec& x, const Step& s) {
  const auto& d = static_cast<const ForData&>(*s.data);
  const auto read = [&](Slot slot) {
    const uint64_t raw = read_bits(x.at(slot), d.size);
    return d.is_unsigned ? static_cast<__int128>(raw) : static_cast<__int128>(sign_extend(raw, d.bits));
  };
  // Read before the carried values are copied: they may take over the storage of what is read here.
  __int128 iv = read(s.in[0]);
  const __int128 upper = read(s.in[1]), step = read(s.in[2]);
  x.copy(d.init, d.init_temp);
  if (step <= 0 && iv < upper)
    return x.trap(Code::T0106, s, "for: the step is " + std::to_string(static_cast<int64_t>(step)) + ", expected a positive number");
  // Exact arithmetic: an induction variable that would wrap ends the loop.
  for (; iv < upper; iv += step) {
    write_bits(x.at(s.out[0]), d.size, static_cast<uint64_t>(iv));
    const Flow flow = x.run(s.body[0], s.body[1]);
    if (flow == Flow::Return || flow == Flow::Trap) return flow;
    if (x.launch.stop.load(std::memory_order_relaxed)) return Flow::Trap;
  }
  return Flow::Next;
}

Flow eval_loop(Exec& x, const Step& s) {
  const auto& d = static_cast<const MovesData&>(*s.data);
  x.copy(d.moves, d.temp);
  for (;;) {
    const Flow flow = x.run(s.body[0], s.body[1]);
    if (flow == Flow::Break) return Flow::Next;
    if (flow == Flow::Return || flow == Flow::Trap) return flow;
    if (x.launch.stop.load(std::memory_order_relaxed)) return Flow::Trap;
  }
}

Flow eval_if(Exec& x, const Step& s) {
  return *x.at<uint8_t>(s.in[0]) != 0 ? x.run(s.body[0], s.body[1]) : x.run(s.body[1], s.body[2]);
}

template <Flow kFlow>
Flow eval_terminator(Exec& x, const Step& s) {
  if (s.data) {
    const auto& d = static_cast<const MovesData&>(*s.data);
    x.copy(d.moves, d.temp);
  }
  return kFlow;
}

/// Lets the values that a region's own terminator hands on be computed where they go.
void prefer_targets(PlanBuilder& b, const Region& r, RegionId id, const std::vector<Slot>& targets, Opcode terminator) {
  const InstId last = b.f.last_of(r);
  if (last == kNone || b.f.insts[last].op != terminator) return;
  const auto operands = b.f.operands(last);
  for (size_t k = 0; k < operands.size() && k < targets.size(); ++k)
    if (targets[k] != kNoSlot && b.home(operands[k]) == id && std::count(operands.begin(), operands.end(), operands[k]) == 1)
      b.prefer(operands[k], targets[k]);
}

// The body of the loop `i`, whose step is number `at`, and the loop's end.
bool compile_body(PlanBuilder& b, InstId i, const Region& r, const PlanBuilder::LoopFrame& frame, uint32_t at) {
  prefer_targets(b, r, b.f.insts[i].first_region, frame.args, Opcode::Continue);
  b.loops.push_back(frame);
  if (!b.region(r)) return false;
  b.loops.pop_back();
  Step& s = b.step_at(at);
  s.body[0] = at + 1;
  s.body[1] = s.next = b.step_count();
  for (uint32_t k = 0; k < b.f.insts[i].result_count; ++k) b.settle(b.f.result(i, k));
  return true;
}

}  // namespace

bool compile_for(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const auto operands = f.operands(i);
  const Region& r = f.region(i);
  const Slot bounds[3] = {b.slot(operands[0]), b.slot(operands[1]), b.slot(operands[2])};
  ForData* d = b.data<ForData>();
  const ElementType e = b.element(operands[0]);
  d->bits = info(e).bits;
  d->size = info(e).storage;
  d->is_unsigned = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "unsignedCmp"))) != 0;
  PlanBuilder::LoopFrame frame{i, {}, {}};
  const auto inits = operands.subspan(3);
  std::vector<Slot> init_slots;
  for (const ValueId init : inits) init_slots.push_back(b.slot(init));
  for (uint32_t k = 0; k + 1 < r.arg_count; ++k) frame.args.push_back(b.define_carried(r.first_arg + 1 + k, f.result(i, k), inits[k], i));
  d->init = b.moves(inits, frame.args, &d->init_temp);
  const Slot iv = b.define_carried(r.first_arg, kNone, kNone, i);
  const uint32_t at = b.step_count();
  {
    Step& s = b.step(i, eval_for);
    std::copy(bounds, bounds + 3, s.in);
    s.out[0] = iv;
    s.data = d;
  }
  return compile_body(b, i, r, frame, at);
}

bool compile_loop(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const auto inits = f.operands(i);
  const Region& r = f.region(i);
  MovesData* d = b.data<MovesData>();
  PlanBuilder::LoopFrame frame{i, {}, {}};
  for (uint32_t k = 0; k < r.arg_count; ++k) frame.args.push_back(b.define_carried(r.first_arg + k, kNone, inits[k], i));
  d->moves = b.moves(inits, frame.args, &d->temp);
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k) frame.results.push_back(b.define_result(f.result(i, k), i));
  const uint32_t at = b.step_count();
  b.step(i, eval_loop).data = d;
  return compile_body(b, i, r, frame, at);
}

bool compile_if(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const Slot condition = b.slot(f.operands(i)[0]);
  PlanBuilder::LoopFrame frame{i, {}, {}};
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k) frame.results.push_back(b.define_result(f.result(i, k), i));
  const uint32_t at = b.step_count();
  b.step(i, eval_if).in[0] = condition;
  b.yields.push_back(frame);
  uint32_t ends[2];
  for (size_t k = 0; k < 2; ++k) {
    const Region& r = f.region(i, k);
    prefer_targets(b, r, f.insts[i].first_region + static_cast<RegionId>(k), frame.results, Opcode::Yield);
    if (r.present && !b.region(r)) return false;
    ends[k] = b.step_count();
  }
  b.yields.pop_back();
  Step& s = b.step_at(at);
  s.body[0] = at + 1;
  s.body[1] = ends[0];
  s.body[2] = s.next = ends[1];
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k) b.settle(f.result(i, k));
  return true;
}

bool compile_terminator(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const std::vector<Slot>* targets = nullptr;
  EvalFn fn = nullptr;
  switch (f.insts[i].op) {
    case Opcode::Break: targets = &b.loops.back().results; fn = eval_terminator<Flow::Break>; break;
    case Opcode::Continue: targets = &b.loops.back().args; fn = eval_terminator<Flow::Continue>; break;
    case Opcode::Yield: targets = &b.yields.back().results; fn = eval_terminator<Flow::Next>; break;
    default: fn = eval_terminator<Flow::Return>; break;
  }
  const MovesData* data = nullptr;
  if (targets && !targets->empty()) {
    MovesData* d = b.data<MovesData>();
    d->moves = b.moves(f.operands(i), *targets, &d->temp);
    data = d;
  }
  b.step(i, fn).data = data;
  return true;
}

}  // namespace tile
