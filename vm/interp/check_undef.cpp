// The check `undef`: unspecified values that are stored, printed, or decide an address, a mask, an index or a
// condition.
#include "vm/interp/check_undef.h"

#include <algorithm>

#include "vm/interp/check_init.h"

namespace tile {
namespace {

class UndefCheck : public CheckPart {
 public:
  UndefCheck(const CheckFacts& facts, Findings& findings, WrittenMemory& written, bool stop)
      : CheckPart(facts, findings), written_(written), flow_(facts), stop_(stop) {
    use_.resize(f.insts.size());
    for (InstId i = 0; i < f.insts.size(); ++i) {
      find_uses(i);
      makes_.push_back(flow_.makes(i));
      const auto& op = facts.op(i);
      outside_.push_back(op.loaded != kNone && op.view != kNone && facts.type(op.view).padding == kNone ? mark_of(i, Origin::OutsideArray) : 0);
    }
  }

  void launch_begin(const Launch& launch) override {
    workers_.resize(launch.threads);
    for (Worker& w : workers_) {
      w.values.resize(f.value_types.size());
      w.forget();
    }
  }
  void block_begin(Exec& x) override { workers_[x.worker].forget(); }
  unsigned wants(InstId i) const override {
    if (facts.op(i).in_body) return kNever;
    const auto& op = facts.op(i);
    if (op.memory) return op.loaded == kNone ? kBeforeAwake : kBefore | kAfter;
    const bool flows = f.insts[i].result_count > 0 && f.insts[i].operand_count > 0 && facts.is_tile(f.result(i)) &&
                       facts.is_tile(f.operands(i)[0]);
    if (makes_[i] && !op.control) return kBefore;
    return flows || !use_[i].empty() ? kBeforeAwake : kNever;
  }
  [[nodiscard]] const size_t* awake(unsigned worker) const override { return &workers_[worker].marked; }
  void silent(Exec& x, std::span<const InstId> insts) override {
    if (workers_[x.worker].marked == 0) return;
    for (const InstId i : insts) flow(x, i);
  }

  void before(Exec& x, const Step& s) override {
    Worker& w = workers_[x.worker];
    const auto& op = facts.op(s.inst);
    if (w.marked != 0) {
      for (const Use& u : use_[s.inst])
        if (const Marks& m = w.values[u.value])
          for (size_t e = 0; e < m->size(); ++e)
            if ((*m)[e]) {
              report(x, s.inst, u.what, u.value, e, (*m)[e]);
              break;
            }
    }
    if (op.memory) {
      begin_load(x, s.inst);
    } else if (!op.control) {
      flow(x, s.inst);
    }
  }
  [[nodiscard]] bool watches_memory() const override { return true; }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    Worker& w = workers_[x.worker];
    const auto& op = facts.op(s.inst);
    if (w.marked != 0) find_in_access(x, s, a);
    if (a.kind == MemoryAccess::Kind::Write || op.loaded == kNone) return;
    loaded(x, s, a);
  }
  void accesses(Exec& x, const Step& s, const MemoryRuns& all) override {
    Worker& w = workers_[x.worker];
    const auto& op = facts.op(s.inst);
    if (w.marked != 0 || written_.any()) return CheckPart::accesses(x, s, all);
    if (all.kind == MemoryAccess::Kind::Write || op.loaded == kNone) return;
    const size_t n = facts.count(op.loaded);
    w.covered += all.elements;
    if (!w.outside || all.elements == n) return;
    if (w.marks.empty()) w.marks.assign(n, w.outside);
    for (const MemoryRuns::Run& r : all.runs) std::fill_n(w.marks.begin() + r.first, r.n, Mark{0});
  }
  void after(Exec& x, const Step& s) override {
    const auto& op = facts.op(s.inst);
    Worker& w = workers_[x.worker];
    if (w.outside && w.covered < facts.count(op.loaded) && w.marks.empty())
      w.marks.assign(facts.count(op.loaded), w.outside);
    if (w.marked == 0 && w.marks.empty()) return;
    w.set(op.loaded, w.marks.empty() ? nullptr : std::make_shared<const std::vector<Mark>>(std::move(w.marks)));
    w.marks.clear();
  }
  void carry(Exec& x, std::span<const Carry> moves) override {
    Worker& w = workers_[x.worker];
    if (w.marked == 0) return;
    w.moved.clear();
    for (const Carry& m : moves) w.moved.push_back(w.values[m.from]);
    for (size_t k = 0; k < moves.size(); ++k) w.set(moves[k].to, std::move(w.moved[k]));
  }

 private:
  struct Use {
    ValueId value;
    const char* what;
  };
  struct Worker {
    std::vector<Marks> values;  // by value
    size_t marked = 0;          // values with marks
    void set(ValueId v, Marks m) {
      marked = marked + size_t{m != nullptr} - size_t{values[v] != nullptr};
      values[v] = std::move(m);
    }
    void forget() {
      if (marked == 0) return;
      for (Marks& m : values) m.reset();
      marked = 0;
    }
    std::vector<Marks> moved;
    // The load that runs.
    std::vector<Mark> marks;  // of its result; empty: none so far
    Mark outside = 0;         // of elements that no access touches
    size_t covered = 0;
  };

  void find_uses(InstId i) {
    const auto operands = f.operands(i);
    const auto use_all = [&](const char* what) {
      for (const ValueId v : operands)
        if (facts.is_tile(v)) use_[i].push_back({v, what});
    };
    switch (f.insts[i].op) {
      case Opcode::If:
      case Opcode::Assert:
        use_[i].push_back({operands[0], "condition"});
        return;
      case Opcode::For:
        for (size_t k = 0; k < 3; ++k) use_[i].push_back({operands[k], "loop bound"});
        return;
      case Opcode::MakeTensorView:
        use_all("address or extent");
        return;
      case Opcode::PrintTko:
        use_all("printed value");
        return;
      case Opcode::Extract:
      case Opcode::Insert:
        for (size_t k = f.insts[i].op == Opcode::Insert ? 2 : 1; k < operands.size(); ++k)
          use_[i].push_back({operands[k], "index"});
        return;
      default:
        break;
    }
    if (!facts.op(i).memory) return;
    if (facts.op(i).mask != kNone) use_[i].push_back({facts.op(i).mask, "mask"});
    if (const int g = operand_index(f.def(i), "index"); g >= 0)
      for (const ValueId v : f.group(i, static_cast<size_t>(g))) use_[i].push_back({v, "index"});
    if (f.insts[i].op == Opcode::AtomicCASTko) use_[i].push_back({f.operand(i, 1), "compared value"});
  }

  /// Addresses and stored values of an access.
  void find_in_access(Exec& x, const Step& s, const MemoryAccess& a) {
    Worker& w = workers_[x.worker];
    const auto& op = facts.op(s.inst);
    for (const Use& u :
         {Use{op.pointers, "address"}, Use{a.kind == MemoryAccess::Kind::Read ? kNone : op.value, "stored value"}}) {
      if (u.value == kNone || !w.values[u.value]) continue;
      const std::vector<Mark>& m = *w.values[u.value];
      bool done = false;
      for_each_element_of(a, [&](size_t e, uint64_t) {
        if (!done && m[e]) report(x, s.inst, u.what, u.value, e, m[e]);
        done = done || m[e];
      });
    }
  }

  void flow(Exec& x, InstId i) {
    Worker& w = workers_[x.worker];
    if (f.insts[i].result_count == 0 || !facts.is_tile(f.result(i))) return;
    const ValueId first = facts.operands(i)[0];
    if (!facts.is_tile(first)) return;
    const Marks m = alias(i) ? w.values[first] : flow_.result(x, i, w.values);
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k) w.set(f.result(i, k), m);
  }
  [[nodiscard]] bool alias(InstId i) const {
    switch (f.insts[i].op) {
      case Opcode::Assume:
      case Opcode::Reshape:
      case Opcode::PtrToPtr:
      case Opcode::IntToPtr:
      case Opcode::PtrToInt:
      case Opcode::Bitcast:
        return true;
      default:
        return false;
    }
  }

  /// Elements that the load or atomic will not touch.
  void begin_load(Exec& x, InstId i) {
    const auto& op = facts.op(i);
    Worker& w = workers_[x.worker];
    w.marks.clear();
    w.outside = 0;
    w.covered = 0;
    if (op.view != kNone) {
      w.outside = outside_[i];
      return;
    }
    if (op.mask == kNone || op.loaded == kNone) return;
    const size_t n = facts.count(op.loaded);
    const bool atomic = op.writes;
    // A compare and swap gives masked elements the value to compare with.
    if (f.insts[i].op == Opcode::AtomicCASTko || (op.padding != kNone && !w.values[op.padding])) return;
    const uint8_t* mask = facts.data<uint8_t>(x, op.mask);
    for (size_t e = 0; e < n; ++e) {
      if (mask[e]) continue;
      const Mark m =
          op.padding != kNone ? (*w.values[op.padding])[e] : mark_of(i, atomic ? Origin::MaskedAtomic : Origin::Masked);
      if (m == 0) continue;
      if (w.marks.empty()) w.marks.assign(n, 0);
      w.marks[e] = m;
    }
  }
  void loaded(Exec& x, const Step& s, const MemoryAccess& a) {
    Worker& w = workers_[x.worker];
    const size_t n = facts.count(facts.op(s.inst).loaded), here = elements_of(a);
    w.covered += here;
    if (w.outside && here < n) {
      if (w.marks.empty()) w.marks.assign(n, w.outside);
      for_each_element_of(a, [&](size_t e, uint64_t) { w.marks[e] = 0; });
    }
    if (!written_.any()) return;
    for_each_element_of(a, [&](size_t e, uint64_t address) {
      if (written_.first_unwritten(address, a.element_bytes) == address + a.element_bytes) return;
      if (w.marks.empty()) w.marks.assign(n, 0);
      w.marks[e] = mark_of(s.inst, Origin::Unwritten);
    });
  }

  void report(Exec& x, InstId i, const char* what, ValueId value, size_t element, Mark m) {
    const InstId from = inst_of(m);
    if (findings.wanted(x, Code::T0116, i, from))
      findings.add(
          x, {Code::T0116,
              i,
              (facts.type(value).shape.empty() ? ""
                                               : "element " + element_name(facts.type(value).shape, element) + " of ") +
                  "the " + what + " " + facts.name(value) + " has no specified value",
              {{from, std::string("it comes from here: ") + origin_text(origin_of(m))}},
              {}});
    if (stop_) x.launch.stop.store(true);
  }

  WrittenMemory& written_;
  UndefFlow flow_;
  const bool stop_;
  std::vector<std::vector<Use>> use_;  // by instruction
  std::vector<uint8_t> makes_;         // by instruction: unspecified elements out of specified ones
  std::vector<Mark> outside_;          // by instruction: of elements outside the array that it loads from, 0 for none
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_undef_check(const CheckFacts& facts, Findings& findings, WrittenMemory& written,
                                            bool stop) {
  return std::make_unique<UndefCheck>(facts, findings, written, stop);
}

}  // namespace tile
