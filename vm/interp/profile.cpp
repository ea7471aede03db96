// Time is charged at every event to the innermost open operation, so one reading of the clock serves the end of one
// step and the start of the next, and times of operations without those inside need no subtraction.
#include "vm/interp/profile.h"

#include "vm/interp/eval.h"

namespace tile {
namespace {

/// Width in memory of the elements that an operation moves through its view or pointers; 8 where it has none.
uint8_t accessed_bits(const Module& m, const Function& f, InstId i) {
  for (const ValueId v : f.operands(i)) {
    const TypeId type = f.type(v);
    if (m.types.is_view(type)) return info(m.types.element_of(type)).memory_bits;
    if (const TypeId pointee = m.types.pointee_of(type); pointee != kNone)
      return info(m.types.element_of(pointee)).memory_bits;
  }
  return 8;
}

uint64_t product(std::span<const int64_t> shape) {
  uint64_t n = 1;
  for (const int64_t d : shape) n *= static_cast<uint64_t>(d);
  return n;
}

}  // namespace

uint64_t flops_of(const Module& m, const Function& f, InstId i) {
  const auto operands = f.operands(i);
  const auto shape = [&](size_t k) { return m.types.shape_of(f.type(operands[k])); };
  switch (f.insts[i].op) {
    case Opcode::MmaF:
    case Opcode::MmaI:
    case Opcode::MmaFScaled: {
      const auto rhs = shape(1);
      return 2 * product(shape(0)) * static_cast<uint64_t>(rhs.back());  // batch * m * k, times n
    }
    case Opcode::Reduce:
    case Opcode::Scan: {
      // The body runs once less than there are elements along the dimension.
      const uint64_t n = product(shape(0)),
                     len = static_cast<uint64_t>(shape(0)[static_cast<size_t>(m.int_attr(f, i, 0))]);
      uint64_t each = 0;
      const Region& r = f.region(i);
      for (InstId b = r.begin; b < r.end; b = f.insts[b].next) each += flops_of(m, f, b);
      return each * (n - n / len);
    }
    default:
      break;
  }
  // Elementwise arithmetic gives the float type of its first operand; conversions, comparisons and selection do not.
  if (operands.empty() || compile_fn(f.insts[i].op) != compile_elementwise) return 0;
  const TypeId type = f.type(f.result(i));
  if (type != f.type(operands[0]) || !info(m.types.element_of(type)).is_float) return 0;
  return product(m.types.shape_of(type)) * (f.insts[i].op == Opcode::Fma ? 2 : 1);
}

ProfileCounts& ProfileCounts::operator+=(const ProfileCounts& o) {
  count += o.count;
  nanoseconds += o.nanoseconds;
  bytes_read += o.bytes_read;
  bytes_written += o.bytes_written;
  flops += o.flops;
  return *this;
}

void Profile::launch_begin(const Launch& launch) {
  if (plan_ != launch.plan) {
    plan_ = launch.plan;
    table_ = StepTable(*plan_);
    for (const Step& s : plan_->steps())
      element_bits_.push_back(accessed_bits(plan_->module(), plan_->function(), s.inst));
    start_ = std::chrono::steady_clock::now();
  }
  while (workers_.size() < launch.threads) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->counters.resize(plan_->steps().size());
  }
  events_each_ = max_events_ / workers_.size();
  launch_start_ = std::chrono::steady_clock::now();
}

void Profile::launch_end(const Launch&) {
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - launch_start_).count();
  ++launches_;
}

void Profile::charge(Worker& w, int64_t time) {
  if (!w.open.empty()) w.counters[w.open.back().step].nanoseconds += time - w.last;
  w.last = time;
}

void Profile::close(Worker& w, int64_t time) {
  const Open o = w.open.back();
  w.open.pop_back();
  if (events_each_ == 0 || table_[o.step].preparation) return;
  if (w.step_events < events_each_) {
    ++w.step_events;
    w.events.push_back({o.start, time - o.start, plan_->steps()[o.step].inst, w.block});
  } else {
    ++w.dropped;
  }
}

void Profile::block_begin(Exec& x) {
  Worker& w = *workers_[x.worker];
  w.open.clear();
  w.last = w.block_start = now();
  w.block = x.block[0] + uint64_t{x.launch.grid.x} * (x.block[1] + uint64_t{x.launch.grid.y} * x.block[2]);
  ++w.blocks;
}

void Profile::block_end(Exec& x) {
  Worker& w = *workers_[x.worker];
  const int64_t time = now();
  charge(w, time);
  while (!w.open.empty()) close(w, time);
  if (events_each_ == 0) return;
  if (w.block_events < events_each_) {
    ++w.block_events;
    w.events.push_back({w.block_start, time - w.block_start, kNone, w.block});
  } else {
    ++w.dropped;
  }
}

void Profile::before(Exec& x, const Step& s) {
  const size_t step = StepTable::index(*plan_, s);
  const StepTable::Entry& e = table_[step];
  if (e.in_body) return;
  Worker& w = *workers_[x.worker];
  const int64_t time = now();
  charge(w, time);
  while (!w.open.empty() && table_[w.open.back().step].terminator) close(w, time);
  w.open.push_back({step, time});
  if (!e.preparation) ++w.counters[step].count;
}

void Profile::after(Exec& x, const Step& s) {
  const size_t step = StepTable::index(*plan_, s);
  if (table_[step].in_body) return;
  Worker& w = *workers_[x.worker];
  const int64_t time = now();
  charge(w, time);
  // What left its region without coming here (break inside an if) lies above.
  while (!w.open.empty()) {
    const bool last = w.open.back().step == step;
    close(w, time);
    if (last) break;
  }
}

void Profile::access(Exec& x, const Step& s, const MemoryAccess& a) {
  const size_t step = StepTable::index(*plan_, s);
  uint64_t bits = element_bits_[step];
  for (size_t k = 0; k < a.rank; ++k) bits *= static_cast<uint64_t>(a.shape[k]);
  Counter& c = workers_[x.worker]->counters[step];
  if (a.kind != MemoryAccess::Kind::Write) c.bits_read += bits;
  if (a.kind != MemoryAccess::Kind::Read) c.bits_written += bits;
}

std::vector<ProfileRow> Profile::instructions() const {
  std::vector<ProfileRow> rows;
  if (!plan_) return rows;
  const Module& m = plan_->module();
  const Function& f = plan_->function();
  for (size_t step = 0; step < plan_->steps().size(); ++step) {
    if (table_[step].in_body) continue;
    const InstId inst = plan_->steps()[step].inst;
    Counter sum;
    for (const auto& w : workers_) {
      const Counter& c = w->counters[step];
      sum.count += c.count;
      sum.nanoseconds += c.nanoseconds;
      sum.bits_read += c.bits_read;
      sum.bits_written += c.bits_written;
    }
    if (rows.empty() || rows.back().inst != inst) {
      if (sum.count == 0 && sum.nanoseconds == 0) continue;
      rows.push_back({inst, std::string(f.def(inst).name), line_of(m, f, inst), {}});
    }
    rows.back().counts +=
        {sum.count, sum.nanoseconds, sum.bits_read / 8, sum.bits_written / 8, sum.count * flops_of(m, f, inst)};
  }
  return rows;
}

uint64_t Profile::dropped_events() const {
  uint64_t n = 0;
  for (const auto& w : workers_) n += w->dropped;
  return n;
}

uint64_t Profile::blocks() const {
  uint64_t n = 0;
  for (const auto& w : workers_) n += w->blocks;
  return n;
}

}  // namespace tile
