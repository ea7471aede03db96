// The check `undef`: unspecified values that are stored, printed, or decide an address, a mask, an index or a
// condition.
#include "vm/interp/check_undef.h"

#include <algorithm>
#include <cstring>

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
      kind_.push_back(kind_of(i));
      outside_.push_back(op.loaded != kNone && op.view != kNone && facts.type(op.view).padding == kNone ? mark_of(i, Origin::OutsideArray) : 0);
    }
  }

  void launch_begin(const Launch& launch) override {
    workers_.resize(launch.threads);
    for (Worker& w : workers_) {
      w.values.resize(f.value_types.size());
      w.listed.resize(f.value_types.size());
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
        if (w.values[u.value]) {
          const std::vector<Mark>& m = dense(w, u.value);
          const size_t e = static_cast<size_t>(std::find_if(m.begin(), m.end(), [](Mark mark) { return mark != 0; }) - m.begin());
          if (e < m.size()) report(x, s.inst, u.what, u.value, e, m[e]);
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
    start_marks(w, op.loaded);
    for (const MemoryRuns::Run& r : all.runs) std::fill_n(w.marks.begin() + r.first, r.n, Mark{0});
  }
  void after(Exec& x, const Step& s) override {
    const auto& op = facts.op(s.inst);
    Worker& w = workers_[x.worker];
    if (w.outside && w.covered == 0 && w.marks.empty() && facts.count(op.loaded) != 0) (void)w.margins.add({0, 0, w.outside});
    if (w.marked == 0 && w.marks.empty() && !w.margins) return;
    w.set(op.loaded, w.marks.empty() ? w.margins : Marks(std::make_shared<const std::vector<Mark>>(std::move(w.marks))));
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
      if (!m && !values[v]) return;
      marked = marked + size_t{static_cast<bool>(m)} - size_t{static_cast<bool>(values[v])};
      values[v] = std::move(m);
      if (listed[v]) return;
      listed[v] = 1;
      list.push_back(v);
    }
    void forget() {
      for (const ValueId v : list) {
        values[v] = {};
        listed[v] = 0;
      }
      list.clear();
      marked = 0;
    }
    std::vector<ValueId> list;    // values that have had marks
    std::vector<uint8_t> listed;  // by value
    std::vector<Marks> moved;
    // The load that runs.
    std::vector<Mark> marks;  // of its result; empty: none so far, or those of `margins`
    Marks margins;
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
      if (u.value == kNone || !w.values[u.value] || specified(w.values[u.value], u.value, a)) continue;
      const std::vector<Mark>& m = dense(w, u.value);
      bool done = false;
      for_each_element_of(a, [&](size_t e, uint64_t) {
        if (!done && m[e]) report(x, s.inst, u.what, u.value, e, m[e]);
        done = done || m[e];
      });
    }
  }

  /// True if margins alone tell that no element of the access is marked.
  [[nodiscard]] bool specified(const Marks& m, ValueId v, const MemoryAccess& a) const {
    const auto& shape = facts.type(v).shape;
    if (m.is_dense() || a.rank != shape.size()) return false;
    size_t stride = 1, first = a.first_element;
    for (size_t d = a.rank; d-- > 0; stride *= static_cast<size_t>(shape[d])) {
      if (a.tile_strides[d] != static_cast<int64_t>(stride) && a.shape[d] != 1) return false;
      const size_t from = first % static_cast<size_t>(shape[d]);
      first /= static_cast<size_t>(shape[d]);
      for (const Marks::Margin& one : m.margins())
        if (one.from == 0 || (one.dim == d && from + static_cast<size_t>(a.shape[d]) > one.from)) return false;
    }
    return true;
  }
  /// One mark for each element, from now on.
  const std::vector<Mark>& dense(Worker& w, ValueId v) const {
    if (!w.values[v].is_dense()) w.values[v] = Marks(w.values[v].dense(facts.type(v).shape));
    return *w.values[v].dense(facts.type(v).shape);
  }

  /// How marks of operands come to results.
  enum class Kind : uint8_t { None, Alias, Reshape, Compute };
  [[nodiscard]] Kind kind_of(InstId i) const {
    if (f.insts[i].result_count == 0 || f.insts[i].operand_count == 0 || !facts.is_tile(f.result(i)) || !facts.is_tile(facts.operands(i)[0])) return Kind::None;
    switch (f.insts[i].op) {
      case Opcode::Reshape:
        return Kind::Reshape;
      case Opcode::Assume:
      case Opcode::PtrToPtr:
      case Opcode::IntToPtr:
      case Opcode::PtrToInt:
      case Opcode::Bitcast:
        return Kind::Alias;
      default:
        return Kind::Compute;
    }
  }
  void flow(Exec& x, InstId i) {
    const Kind kind = kind_[i];
    if (kind == Kind::None) return;
    Worker& w = workers_[x.worker];
    const ValueId first = facts.operands(i)[0];
    Marks m = kind == Kind::Compute ? flow_.result(x, i, w.values) : w.values[first];
    if (kind == Kind::Reshape && m) m = reshaped(m, facts.type(first).shape, facts.type(f.result(i)).shape);
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k) w.set(f.result(i, k), m);
  }
  /// Margins stay where nothing but dimensions of one element come or go.
  static Marks reshaped(const Marks& m, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    if (m.is_dense()) return m;
    std::vector<uint32_t> where(from.size(), 0);
    size_t d = 0;
    for (size_t k = 0; k < from.size(); ++k) {
      if (from[k] == 1) continue;
      while (d < to.size() && to[d] == 1) ++d;
      if (d == to.size() || to[d] != from[k]) return Marks(m.dense(from));
      where[k] = static_cast<uint32_t>(d++);
    }
    Marks out;
    for (Marks::Margin one : m.margins()) {
      one.dim = one.from == 0 ? 0 : where[one.dim];
      (void)out.add(one);
    }
    return out;
  }

  /// Elements that the load or atomic will not touch.
  void begin_load(Exec& x, InstId i) {
    const auto& op = facts.op(i);
    Worker& w = workers_[x.worker];
    w.marks.clear();
    w.margins = {};
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
    if (!std::memchr(mask, 0, n)) return;
    const std::vector<Mark>* padding = op.padding != kNone ? &dense(w, op.padding) : nullptr;
    for (size_t e = 0; e < n; ++e) {
      if (mask[e]) continue;
      const Mark m =
          padding ? (*padding)[e] : mark_of(i, atomic ? Origin::MaskedAtomic : Origin::Masked);
      if (m == 0) continue;
      if (w.marks.empty()) w.marks.assign(n, 0);
      w.marks[e] = m;
    }
  }
  void loaded(Exec& x, const Step& s, const MemoryAccess& a) {
    Worker& w = workers_[x.worker];
    const size_t n = facts.count(facts.op(s.inst).loaded), here = elements_of(a);
    w.covered += here;
    if (w.outside && here < n && !edge(w, a, facts.type(facts.op(s.inst).loaded).shape)) {
      start_marks(w, facts.op(s.inst).loaded);
      for_each_element_of(a, [&](size_t e, uint64_t) { w.marks[e] = 0; });
    }
    if (!written_.any()) return;
    for_each_element_of(a, [&](size_t e, uint64_t address) {
      if (written_.first_unwritten(address, a.element_bytes) == address + a.element_bytes) return;
      if (w.marks.empty() && w.margins) start_marks(w, facts.op(s.inst).loaded);
      if (w.marks.empty()) w.marks.assign(n, 0);
      w.marks[e] = mark_of(s.inst, Origin::Unwritten);
    });
  }

  /// The first access of a load from a view, if it is the part of the tile that lies inside the array: elements behind it are outside.
  static bool edge(Worker& w, const MemoryAccess& a, const std::vector<int64_t>& shape) {
    if (a.rank == 0 || a.rank != shape.size() || a.first_element != 0 || !w.marks.empty() || w.margins || w.covered != elements_of(a)) return false;
    size_t stride = 1, margins = 0;
    for (size_t d = a.rank; d-- > 0; stride *= static_cast<size_t>(shape[d])) {
      if (a.tile_strides[d] != static_cast<int64_t>(stride)) return false;
      margins += a.shape[d] < shape[d] ? 1 : 0;
    }
    if (margins > Marks::kMost) return false;
    for (size_t d = 0; d < a.rank; ++d)
      if (a.shape[d] < shape[d]) (void)w.margins.add({static_cast<uint32_t>(d), static_cast<uint32_t>(a.shape[d]), w.outside});
    return true;
  }
  /// One mark for each element of the load that runs: those that it has, or that of elements outside.
  void start_marks(Worker& w, ValueId loaded) const {
    if (!w.marks.empty()) return;
    if (w.margins) {
      w.marks = *w.margins.dense(facts.type(loaded).shape);
      w.margins = {};
    } else {
      w.marks.assign(facts.count(loaded), w.outside);
    }
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
  std::vector<Kind> kind_;             // by instruction
  std::vector<Mark> outside_;          // by instruction: of elements outside the array that it loads from, 0 for none
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_undef_check(const CheckFacts& facts, Findings& findings, WrittenMemory& written,
                                            bool stop) {
  return std::make_unique<UndefCheck>(facts, findings, written, stop);
}

}  // namespace tile
