// Choosing which block goes on. Every choice follows from the seed and from what the blocks have done, so a launch can be repeated.
#include "vm/interp/interleaving.h"

#include "vm/interp/check_findings.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/fibers.h"
#include "vm/interp/seeded.h"
#include "vm/interp/weak_memory.h"

namespace tile {

struct Interleaving::State {
  State(const std::shared_ptr<const ValidModule>& module, const Plan& plan, uint64_t seed)
      : facts(module, plan), tokens(facts, findings), weak(facts, tokens, seed), numbers(seed) {
    change = static_cast<unsigned>(numbers.below(4));
    for (size_t s = 0; s < plan.steps().size(); ++s) {
      const InstId i = plan.steps()[s].inst;
      Events e;
      for (const InstId silent : facts.steps[s].silent)
        if (tokens.wants(silent)) e.silent.push_back(silent);
      if (!facts.steps[s].preparation && !facts.op(i).in_body) {
        e.memory = facts.op(i).memory;
        e.choice = e.memory || plan.function().insts[i].op == Opcode::PrintTko;
        e.tokens = tokens.wants(i) != CheckPart::kNever;
      }
      events.push_back(std::move(e));
    }
  }
  struct Events {
    std::vector<InstId> silent;
    bool memory = false, choice = false, tokens = false;
  };

  /// The fiber that goes on; kNone if all have ended.
  size_t choose() { return live.empty() ? Fibers::kNone : live[numbers.below(live.size())]; }

  CheckFacts facts;
  Findings findings;  // remarks about limits of the token graph; not reported: what is beyond them counts as ordered
  TokenTracker tokens;
  WeakMemory weak;
  SeededNumbers numbers;
  std::vector<Events> events;  // by step
  unsigned change = 0;         // another block goes on once in 2^change times
  std::vector<size_t> live;    // fibers that have blocks to run
  Fibers* fibers = nullptr;
};

Interleaving::Interleaving(const std::shared_ptr<const ValidModule>& module, const Plan& plan, uint64_t seed) : state_(std::make_unique<State>(module, plan, seed)) {}
Interleaving::~Interleaving() = default;

bool Interleaving::run(size_t fibers, uint64_t blocks, const std::function<uint64_t(uint64_t)>& block, const std::function<bool(size_t, uint64_t)>& run_block) {
  State& st = *state_;
  uint64_t begun = 0;
  Fibers all(fibers, [&](size_t me) {
    bool more = true;
    while (more && begun < blocks) more = run_block(me, block(begun++));
    st.live.erase(std::find(st.live.begin(), st.live.end(), me));
  });
  if (!all.ready()) return false;
  for (size_t k = 0; k < fibers; ++k) st.live.push_back(k);
  st.fibers = &all;
  all.run(st.choose(), [&st] { return st.choose(); });
  st.fibers = nullptr;
  st.weak.launch_end();
  return true;
}

void Interleaving::launch_begin(const Launch& launch) {
  state_->tokens.launch_begin(launch);
  state_->weak.launch_begin(launch);
}

void Interleaving::block_begin(Exec& x) {
  state_->tokens.block_begin(x);
  state_->weak.block_begin(x);
}

void Interleaving::block_end(Exec& x) { state_->weak.block_end(x); }

void Interleaving::before(Exec& x, const Step& s) {
  State& st = *state_;
  const State::Events& e = st.events[StepTable::index(x.plan, s)];
  if (e.choice) {
    st.weak.pass_time();
    if (st.numbers.once_in(st.change)) st.fibers->hand_over(st.choose());
  }
  if (!e.silent.empty()) st.tokens.silent(x, e.silent);
  if (e.tokens) st.tokens.before(x, s);
  if (!st.facts.op(s.inst).before.empty()) st.tokens.carry(x, st.facts.op(s.inst).before);
  if (e.memory) st.weak.before(x, s.inst);
}

void Interleaving::after(Exec& x, const Step& s) {
  State& st = *state_;
  if (st.events[StepTable::index(x.plan, s)].memory) st.weak.after(x, s);
  if (!st.facts.op(s.inst).after.empty()) st.tokens.carry(x, st.facts.op(s.inst).after);
}

void Interleaving::access(Exec& x, const Step& s, const MemoryAccess& a) { state_->weak.access(x, s.inst, a); }

}  // namespace tile
