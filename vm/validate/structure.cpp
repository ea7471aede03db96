// The walk over a function: nesting, terminators, what may stand where, and which values are visible. A loop with its
// own stack of open regions, so that depth costs no machine stack.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

/// Which terminators may end the region of an operation.
struct Ends {
  Opcode parent;
  std::initializer_list<Opcode> terminators;
  const char* words;
};
const Ends kEnds[] = {
    {Opcode::If, {Opcode::Yield, Opcode::Break, Opcode::Continue, Opcode::Return}, "yield, break, continue or return"},
    {Opcode::For, {Opcode::Continue}, "continue"},
    {Opcode::Loop, {Opcode::Continue, Opcode::Break, Opcode::Return}, "continue, break or return"},
    {Opcode::Reduce, {Opcode::Yield}, "yield"},
    {Opcode::Scan, {Opcode::Yield}, "yield"},
};
const Ends kBodyEnds = {Opcode::Entry, {Opcode::Return}, "return"};

const Ends& ends_of(const Frame& frame) {
  if (frame.op == kNone) return kBodyEnds;
  for (const Ends& e : kEnds)
    if (static_cast<uint16_t>(e.parent) == frame.row->def->code) return e;
  return kBodyEnds;
}

bool is(const Frame& frame, Opcode op) {
  return frame.op != kNone && frame.row->def->code == static_cast<uint16_t>(op);
}
bool combines(const Frame& frame) {
  return is(frame, Opcode::Reduce) || is(frame, Opcode::Scan);
}

}  // namespace

void Checker::define(ValueId first, uint32_t count, RegionId region) {
  for (uint32_t k = 0; k < count; ++k) region_of_[first + k] = region;
}

void Checker::walk(const Function& fn) {
  f = &fn;
  region_of_.assign(fn.value_types.size(), kNone);
  region_open_.assign(fn.regions.size(), 0);
  constants_.assign(fn.value_types.size(), kNone);
  assumed_bounds.clear();
  frames.clear();

  if (fn.regions.empty()) {
    diags.error(Code::E0701, m.place(fn), "entry @" + std::string(m.str(fn.name)) + ": it has no body");
    return;
  }
  Frame body;
  body.open = body.may_return = true;
  frames.push_back(body);
  region_open_[0] = 1;
  define(fn.regions[0].first_arg, fn.regions[0].arg_count, 0);

  InstId i = 0;
  while (!frames.empty()) {
    if (diags.full()) return;
    Frame& top = frames.back();
    if (i < fn.regions[top.region].end) {
      check_operation(i);
      check_placement();
      const Inst& at = fn.insts[i];
      if (at.op == Opcode::Constant && at.result_count == 1) constants_[at.first_result] = word(0);
      ++i;
      if (def().regions == 0) {
        define(at.first_result, at.result_count, top.region);
        continue;
      }
      Frame inner;
      inner.op = inst;
      inner.row = row;
      inner.wrong = wrong();
      const bool combiner = combines(inner);
      inner.in_combiner = top.in_combiner || combiner;
      inner.may_return = top.may_return && (is(inner, Opcode::If) || is(inner, Opcode::Loop));
      if (is(inner, Opcode::For) || is(inner, Opcode::Loop))
        inner.loop = static_cast<int32_t>(frames.size());
      else
        inner.loop = is(inner, Opcode::If) ? top.loop : -1;
      frames.push_back(inner);
    } else {
      close_region();
    }
    // Open the next region, or leave the operation when it has no more.
    while (!frames.empty() && !frames.back().open && !open_region()) {
      const Frame done = frames.back();
      frames.pop_back();
      if (done.op != kNone)
        define(fn.insts[done.op].first_result, fn.insts[done.op].result_count, frames.back().region);
    }
  }
}

// True if a region of the innermost operation was opened, false if it has none left.
bool Checker::open_region() {
  Frame& top = frames.back();
  if (top.op == kNone) return false;
  const Inst& at = f->insts[top.op];
  while (top.next_region < top.row->def->regions) {
    const RegionId id = at.first_region + top.next_region++;
    const Region& region = f->regions[id];
    if (!region.present) {
      if (is(top, Opcode::If) && top.next_region == 2) continue;  // no else
      Diagnostic d{
          Code::E0701, m.place(*f, top.op), std::string(top.row->def->name) + ": its region has no block", {}, {}, {}};
      diags.error(std::move(d));
      continue;
    }
    top.region = id;
    top.open = true;
    top.ended = top.unreachable = false;
    region_open_[id] = 1;
    define(region.first_arg, region.arg_count, id);
    return true;
  }
  return false;
}

void Checker::close_region() {
  Frame& top = frames.back();
  top.open = false;
  region_open_[top.region] = 0;
  if (top.ended) return;
  const std::string what = top.op == kNone ? "entry @" + std::string(m.str(f->name)) + ": its body"
                                           : std::string(top.row->def->name) + ": its region";
  diags.error(Code::E0701, top.op == kNone ? m.place(*f) : m.place(*f, top.op),
              what + " does not end with a terminator, expected " + ends_of(top).words);
}

// What the surroundings of an operation allow. Runs after its own check, which made it the current one.
void Checker::check_placement() {
  Frame& top = frames.back();
  if (top.ended && !top.unreachable) {
    top.unreachable = true;
    error(Code::E0707, "follows a terminator and is never reached");
  }
  if (def().effect == Effect::Symbol)
    error(Code::E0702, "belongs directly into a module, not into the body of an entry");
  if (def().terminator) {
    if (!top.ended) check_terminator_placement();
    top.ended = true;
    return;
  }
  // The rule of 13.3 is that bodies of reduce and scan are pure; 13.5 allows what may be undefined but touches no
  // memory, and branches and reductions of that. An assumption, and the terminators of loops, count as effects.
  if (!top.in_combiner) return;
  const Effect effect = def().effect;
  if (def().in_reduce || effect == Effect::Pure) return;
  if (version() >= v(13, 5)) {
    const Opcode op = f->insts[inst].op;
    if ((effect == Effect::NotSpeculatable && op != Opcode::Assume) || op == Opcode::If) return;
  } else if (!combines(top)) {
    return;  // the operation that brought the region in was reported
  }
  const Frame* combiner = &top;
  while (!combines(*combiner)) --combiner;
  error_with(Code::E0702,
             "is not allowed in the body of " + std::string(combiner->row->def->name) + ", which must be pure",
             combiner->op, "the body belongs to this operation");
}

void Checker::check_terminator_placement() {
  const Frame& top = frames.back();
  const Ends& ends = ends_of(top);
  const std::string parent =
      top.op == kNone ? "the body of an entry" : "the region of " + std::string(top.row->def->name);
  bool fits = false;
  for (const Opcode t : ends.terminators) fits = fits || static_cast<uint16_t>(t) == def().code;
  if (!fits) return error(Code::E0701, "ends " + parent + ", expected " + ends.words);
  const bool is_return = def().code == static_cast<uint16_t>(Opcode::Return);
  const bool is_break = def().code == static_cast<uint16_t>(Opcode::Break),
             is_continue = def().code == static_cast<uint16_t>(Opcode::Continue);
  if (is_return && !top.may_return) {
    const Frame* barrier = &top;
    while (is(*barrier, Opcode::If) || is(*barrier, Opcode::Loop)) --barrier;
    return error_with(Code::E0702, "cannot leave " + std::string(barrier->row->def->name), barrier->op,
                      "the operation that it would leave");
  }
  if ((is_break || is_continue) && top.loop < 0)
    return error(Code::E0702, is_break ? "there is no loop around it" : "there is no for or loop around it");
  if (is_break && is(frames[static_cast<size_t>(top.loop)], Opcode::For))
    return error_with(Code::E0702, "cannot leave for", frames[static_cast<size_t>(top.loop)].op,
                      "the operation that it would leave");
  if (!wrong()) check_handed_over(*this);
}

}  // namespace tile::validation
