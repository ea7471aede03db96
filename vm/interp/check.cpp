// One observer that hands the events of a launch to the checkers that were chosen.
#include "vm/interp/check.h"

#include "vm/interp/check_init.h"
#include "vm/interp/check_part.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/check_use.h"

namespace tile {
namespace {

class Checker : public Observer {
 public:
  Checker(std::shared_ptr<const ValidModule> module, CheckOptions options)
      : module_(std::move(module)), options_(std::move(options)) {}

  void launch_begin(const Launch& launch) override {
    findings_.launch_begin();
    prepare(*launch.plan);
    for (const auto& p : parts_) p->launch_begin(launch);
    watchers_.clear();
    for (const auto& p : parts_)
      if (p->watches_memory()) watchers_.push_back(p.get());
    awake_.clear();
    for (unsigned w = 0; w < launch.threads; ++w) awake_.push_back(sleeper_ ? sleeper_->awake(w) : nullptr);
  }
  [[nodiscard]] const uint8_t* told() const override { return told_.data(); }
  void launch_end(const Launch& launch) override { findings_.launch_end(launch); }
  void block_begin(Exec& x) override {
    for (const auto& p : parts_) p->block_begin(x);
  }
  void before(Exec& x, const Step& s) override {
    const StepPlan& plan = plans_[StepTable::index(x.plan, s)];
    for (const auto& [part, insts] : plan.silent) part->silent(x, insts);
    for (CheckPart* p : plan.before) p->before(x, s);
    if (plan.before_awake && *awake_[x.worker] != 0) sleeper_->before(x, s);
    if (plan.carry_before)
      for (CheckPart* p : carriers_) p->carry(x, facts_->op(s.inst).before);
  }
  void after(Exec& x, const Step& s) override {
    const StepPlan& plan = plans_[StepTable::index(x.plan, s)];
    for (CheckPart* p : plan.after) p->after(x, s);
    if (plan.carry_after)
      for (CheckPart* p : carriers_) p->carry(x, facts_->op(s.inst).after);
  }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (use_ && a.kind != MemoryAccess::Kind::Read) use_->wrote(x, a.address);
    if (use_ && a.rank != 0 && elements_of(a) * a.element_bytes >= kLarge && use_->order(x, a.address)) {
      for (CheckPart* p : watchers_) p->expect(x, a.address);
      fetch(x, a);
    }
    for (CheckPart* p : watchers_) p->access(x, s, a);
  }
  [[nodiscard]] bool takes_runs() const override { return true; }
  bool accesses(Exec& x, const Step& s, const MemoryRuns& all) override {
    for (CheckPart* p : watchers_)
      if (!p->takes(x, s, all)) return false;
    if (use_ && all.kind != MemoryAccess::Kind::Read) use_->wrote(x, all.begin);
    for (CheckPart* p : watchers_) p->accesses(x, s, all);
    return true;
  }

 private:
  struct StepPlan {
    std::vector<std::pair<CheckPart*, std::vector<InstId>>> silent;
    std::vector<CheckPart*> before, after;
    bool before_awake = false;  // of the part that sleeps
    bool carry_before = false, carry_after = false;
  };
  static constexpr uint64_t kLarge = 8192;  // bytes of an access that is worth fetching

  /// Lets the memory of an access come into the cache while the checkers look at it: without this, large arrays are
  /// waited for twice.
  static void fetch(const Exec& x, const MemoryAccess& a) {
    constexpr uint64_t kLine = 64, kMost = 64;  // bytes; lines of one access
    uint64_t lines = 0;
    for_each_run_until(a, [&](uint64_t address, uint64_t bytes) {
      const std::byte* host = x.memory.resolve(address, bytes);
      for (uint64_t at = 0; host && at < bytes && lines < kMost; at += kLine, ++lines) {
        if (a.kind == MemoryAccess::Kind::Read) {
          __builtin_prefetch(host + at, 0);
        } else {
          __builtin_prefetch(host + at, 1);
        }
      }
      return host && lines < kMost;
    });
  }

  void prepare(const Plan& plan) {
    if (facts_ && plan_ == plan.steps().data() && &facts_->f == &plan.function()) return;
    plan_ = plan.steps().data();
    parts_.clear();
    carriers_.clear();
    sleeper_ = nullptr;
    plans_.clear();
    facts_ = std::make_unique<CheckFacts>(module_, plan);
    const CheckSet c = options_.checks;
    const auto add = [&](std::unique_ptr<CheckPart> p, bool carries = false) {
      parts_.push_back(std::move(p));
      if (carries) carriers_.push_back(parts_.back().get());
    };
    // Tokens come before those that ask for them. What has been written is marked after those that ask about reads.
    TokenTracker* tokens = nullptr;
    use_ = nullptr;
    if (c.has(Check::Order) || c.has(Check::Race)) {
      auto use = std::make_unique<ArrayUse>(*facts_, findings_);
      use_ = use.get();
      add(std::move(use));
      auto t = std::make_unique<TokenTracker>(*facts_, findings_);
      tokens = t.get();
      add(std::move(t), true);
    }
    if (c.has(Check::Bounds)) add(make_bounds_check(*facts_, findings_, options_));
    if (c.has(Check::Order)) add(make_order_check(*facts_, findings_, *tokens, *use_));
    if (c.has(Check::Race)) add(make_race_check(*facts_, findings_, *tokens, *use_));
    if (c.has(Check::Assume)) {
      add(make_assume_check(*facts_, findings_));
      add(make_overflow_check(*facts_, findings_));
    }
    if (c.has(Check::Nan)) add(make_nan_check(*facts_, findings_), true);
    if (c.has(Check::Init) || c.has(Check::Undef)) {
      auto written = std::make_unique<WrittenMemory>(*facts_, findings_, options_.uninitialised);
      if (c.has(Check::Init)) add(make_init_check(*facts_, findings_, *written));
      if (c.has(Check::Undef)) {
        add(make_undef_check(*facts_, findings_, *written, options_.stop_at_unspecified), true);
        sleeper_ = parts_.back().get();
      }
      add(std::move(written));
    }
    plans_.resize(plan.steps().size());
    told_.assign(plans_.size(), 0);
    for (size_t s = 0; s < plans_.size(); ++s) {
      const InstId i = plan.steps()[s].inst;
      const auto& op = facts_->op(i);
      for (const auto& p : parts_) {
        std::vector<InstId> silent;
        for (const InstId k : facts_->steps[s].silent)
          if (p->wants(k)) silent.push_back(k);
        if (!silent.empty()) plans_[s].silent.emplace_back(p.get(), std::move(silent));
        const unsigned wants = facts_->steps[s].preparation ? CheckPart::kNever : p->wants(i);
        if (wants & CheckPart::kBefore) plans_[s].before.push_back(p.get());
        if (wants & CheckPart::kAfter) plans_[s].after.push_back(p.get());
        plans_[s].before_awake = plans_[s].before_awake || (wants & CheckPart::kBeforeAwake) != 0;
      }
      plans_[s].carry_before = !op.before.empty();
      plans_[s].carry_after = !op.after.empty();
      const bool nothing_before = plans_[s].silent.empty() && plans_[s].before.empty() && !plans_[s].before_awake && !plans_[s].carry_before;
      const bool nothing_after = plans_[s].after.empty() && !plans_[s].carry_after;
      told_[s] = static_cast<uint8_t>((nothing_before ? 0 : kTellBefore) | (nothing_after ? 0 : kTellAfter));
    }
  }

  std::shared_ptr<const ValidModule> module_;
  CheckOptions options_;
  Findings findings_;
  const Step* plan_ = nullptr;  // the steps that the rest is about
  std::unique_ptr<CheckFacts> facts_;
  std::vector<std::unique_ptr<CheckPart>> parts_;
  std::vector<CheckPart*> carriers_;  // those that follow values through control flow
  std::vector<CheckPart*> watchers_;  // those that look at accesses
  CheckPart* sleeper_ = nullptr;      // the one that knows kBeforeAwake
  std::vector<const size_t*> awake_;  // of that one, by worker
  std::vector<StepPlan> plans_;       // by step
  std::vector<uint8_t> told_;         // by step
  ArrayUse* use_ = nullptr;           // where some checker compares accesses
};

constexpr const char* kNames[kChecks] = {"bounds", "init", "race", "order", "undef", "assume", "nan"};

}  // namespace

std::optional<CheckSet> parse_checks(std::string_view text) {
  CheckSet out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (word == "all") {
      out.add(CheckSet::all());
    } else if (word == "default") {
      out.add(CheckSet::usual());
    } else {
      size_t k = 0;
      while (k < kChecks && word != kNames[k]) ++k;
      if (k == kChecks) return std::nullopt;
      out.add(static_cast<Check>(k));
    }
    at = end + 1;
  }
  return out;
}

std::unique_ptr<Observer> make_checker(std::shared_ptr<const ValidModule> module, CheckOptions options) {
  return std::make_unique<Checker>(std::move(module), std::move(options));
}

}  // namespace tile
