// Liveness and storage: one linear scan over the pre-order of instructions, with records of storage that values share in turn.
#include "vm/interp/plan_builder.h"

#include <algorithm>
#include <cstring>

#include "vm/base/check.h"
#include "vm/interp/fused.h"

namespace tile {
namespace {

constexpr size_t kAlign = 64;            // of every slot: a cache line and the widest vector
constexpr uint32_t kNoRecord = 0xFFFFFFFFu;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) & ~(kAlign - 1); }

// Results that are the same bytes as their operand.
bool is_alias(Opcode op) {
  switch (op) {
    case Opcode::Assume: case Opcode::Reshape: case Opcode::PtrToPtr: case Opcode::IntToPtr: case Opcode::PtrToInt: case Opcode::Bitcast:
    case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::MakeGatherScatterView: return true;
    default: return false;
  }
}

}  // namespace

PlanBuilder::PlanBuilder(std::shared_ptr<const ValidModule> module_ptr, const Function& function, Plan& plan, Diagnostics& diags, size_t max_bytes, Numerics numbers)
    : module(**module_ptr), f(function), numerics(numbers), plan_(plan), diags_(diags), max_bytes_(max_bytes) {
  slots_.assign(f.value_types.size(), kNoSlot);
  record_of_.assign(f.value_types.size(), kNoRecord);
  analyse();
}

InstId PlanBuilder::lifted(InstId use, RegionId home) const {
  while (region_of_[use] != home) use = f.regions[region_of_[use]].parent;
  return use;
}

void PlanBuilder::analyse() {
  region_of_.assign(f.insts.size(), 0);
  home_.assign(f.value_types.size(), 0);
  root_.resize(f.value_types.size());
  for (ValueId value = 0; value < root_.size(); ++value) root_[value] = value;
  last_use_.assign(f.value_types.size(), -1);
  for (RegionId r = 0; r < f.regions.size(); ++r) {
    const Region& region = f.regions[r];
    for (uint32_t a = 0; a < region.arg_count; ++a) home_[region.first_arg + a] = r;
    for (InstId i = region.begin; i < region.end; i = f.insts[i].next) {
      region_of_[i] = r;
      for (uint32_t k = 0; k < f.insts[i].result_count; ++k) home_[f.result(i, k)] = r;
    }
  }
  for (InstId i = 0; i < f.insts.size(); ++i)
    if (is_alias(f.insts[i].op)) root_[f.result(i)] = root_[f.operands(i)[0]];
  for (InstId i = 0; i < f.insts.size(); ++i)
    for (const ValueId value : f.operands(i)) {
      const ValueId root = root_[value];
      const InstId at = lifted(i, home_[root]);
      // Reductions read their operands while the body runs; loops and branches are done with theirs before.
      const bool during = f.insts[i].op == Opcode::Reduce || f.insts[i].op == Opcode::Scan;
      const int64_t until = at == i && !during ? i : static_cast<int64_t>(f.insts[at].next) - 1;
      last_use_[root] = std::max(last_use_[root], until);
    }
}

size_t PlanBuilder::count(ValueId value) const {
  const Type& t = type(value);
  size_t n = lanes_;
  for (int64_t d : t.shape) n *= static_cast<size_t>(d);
  return n;
}

size_t PlanBuilder::bytes(ValueId value) const {
  const Type& t = type(value);
  switch (t.kind) {
    case TypeKind::Tile: return count(value) * storage(value);
    case TypeKind::TensorView: return view_bytes(t.shape.size());
    case TypeKind::PartitionView: case TypeKind::StridedView: case TypeKind::GatherScatterView: return view_bytes(t.shape.size());
    default: return 0;
  }
}

Slot PlanBuilder::slot(ValueId value) const { return value == kNone ? kNoSlot : slots_[value]; }

// --- records ----------------------------------------------------------------

size_t PlanBuilder::allocate_bytes(size_t bytes) {
  bytes = aligned(std::max<size_t>(bytes, 1));
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    const size_t offset = it->first, left = it->second - bytes;
    free_.erase(it);
    if (left > 0) free_[offset + bytes] = left;
    return offset;
  }
  // Nothing fits: grow, beginning with a free piece at the very end.
  size_t offset = plan_.storage_bytes_;
  if (!free_.empty()) {
    const auto last = std::prev(free_.end());
    if (last->first + last->second == plan_.storage_bytes_) {
      offset = last->first;
      free_.erase(last);
    }
  }
  plan_.storage_bytes_ = offset + bytes;
  return offset;
}

void PlanBuilder::free_bytes(size_t offset, size_t bytes) {
  bytes = aligned(std::max<size_t>(bytes, 1));
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto prev = std::prev(next);
    if (prev->first + prev->second == offset) {
      offset = prev->first;
      bytes += prev->second;
      free_.erase(prev);
    }
  }
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    free_.erase(next);
  }
  free_[offset] = bytes;
}

uint32_t PlanBuilder::add_record(size_t bytes, int64_t busy_until, int64_t lives_until) {
  const uint32_t id = static_cast<uint32_t>(records_.size());
  records_.push_back({allocate_bytes(bytes), bytes, busy_until, lives_until});
  expiring_[lives_until].push_back(id);
  record_at_[records_[id].offset] = id;
  return id;
}

void PlanBuilder::hold(ValueId value, uint32_t record, int64_t last) {
  Record& r = records_[record];
  r.busy_until = last;
  r.lives_until = std::max(r.lives_until, last);
  record_of_[value] = record;
  slots_[value] = r.offset;
}

bool PlanBuilder::reuse_record(ValueId value, ValueId operand, int64_t last) {
  const uint32_t record = record_of_[root_[operand]];
  if (record == kNoRecord) return false;
  const Record& r = records_[record];
  // The operand must be read for the last time here, must still own its storage, and the sizes must agree.
  if (r.busy_until != static_cast<int64_t>(current_) || last_use_[root_[operand]] != static_cast<int64_t>(current_)) return false;
  if (slots_[operand] != r.offset || r.bytes != bytes(value)) return false;
  hold(value, record, last);
  return true;
}

Slot PlanBuilder::define(ValueId value, std::span<const ValueId> reuse) {
  const size_t size = bytes(value);
  if (size == 0) return kNoSlot;
  const int64_t here = current_, last = std::max(last_use_[root_[value]], here);
  if (const auto it = preferred_.find(value); it != preferred_.end()) {
    const auto at = record_at_.find(it->second);
    if (at != record_at_.end()) {
      Record& r = records_[at->second];
      bool free = r.busy_until < here;
      if (r.busy_until == here)
        for (const ValueId o : reuse) free = free || (record_of_[root_[o]] == at->second && last_use_[root_[o]] == here);
      if (free && r.bytes == size) {
        hold(value, at->second, last);
        return slots_[value];
      }
    }
  }
  for (const ValueId o : reuse)
    if (o != kNone && reuse_record(value, o, last)) return slots_[value];
  hold(value, add_record(size, last, last), last);
  return slots_[value];
}

void PlanBuilder::alias(ValueId value, ValueId of) { slots_[value] = slots_[of]; }

Slot PlanBuilder::constant(ValueId value, const void* data, size_t size) {
  const size_t offset = aligned(plan_.constants_.size());
  plan_.constants_.resize(offset + size);
  std::memcpy(plan_.constants_.data() + offset, data, size);
  return slots_[value] = offset | kConstSlot;
}

void PlanBuilder::scratch(size_t bytes) { plan_.scratch_bytes_ = std::max(plan_.scratch_bytes_, bytes); }

Slot PlanBuilder::allocate(size_t bytes) { return allocate_bytes(bytes); }
void PlanBuilder::release(Slot s, size_t bytes) { free_bytes(s, bytes); }

Slot PlanBuilder::define_carried(ValueId arg, ValueId result, ValueId init, InstId loop) {
  const size_t size = bytes(arg);
  if (size == 0) return kNoSlot;
  const int64_t end = static_cast<int64_t>(f.insts[loop].next) - 1;
  const int64_t in_body = std::max<int64_t>(last_use_[root_[arg]], loop);
  uint32_t record = init == kNone ? kNoRecord : record_of_[root_[init]];
  const bool take = record != kNoRecord && records_[record].busy_until == static_cast<int64_t>(loop) && last_use_[root_[init]] == static_cast<int64_t>(loop) &&
                    slots_[init] == records_[record].offset && records_[record].bytes == size;
  if (take) {
    record_of_[root_[init]] = kNoRecord;  // the storage has a new owner: another argument with this initial value gets its own
  } else {
    record = add_record(size, in_body, end);
  }
  Record& r = records_[record];
  r.lives_until = std::max({r.lives_until, end, result == kNone ? end : last_use_[root_[result]]});
  r.busy_until = in_body;
  record_of_[arg] = record;
  slots_[arg] = r.offset;
  if (result != kNone) {
    record_of_[result] = record;
    slots_[result] = r.offset;
  }
  return r.offset;
}

Slot PlanBuilder::define_result(ValueId result, InstId op) {
  const size_t size = bytes(result);
  if (size == 0) return kNoSlot;
  const int64_t end = static_cast<int64_t>(f.insts[op].next) - 1;
  const uint32_t record = add_record(size, -1, std::max(end, last_use_[root_[result]]));
  record_of_[result] = record;
  return slots_[result] = records_[record].offset;
}

void PlanBuilder::settle(ValueId result) {
  if (const uint32_t record = record_of_[result]; record != kNoRecord)
    records_[record].busy_until = std::max<int64_t>(last_use_[root_[result]], current_);
}

void PlanBuilder::release_up_to(int64_t position) {
  while (!expiring_.empty() && expiring_.begin()->first <= position) {
    const auto ids = std::move(expiring_.begin()->second);
    expiring_.erase(expiring_.begin());
    for (const uint32_t id : ids) {
      Record& r = records_[id];
      if (r.lives_until > position) {
        expiring_[r.lives_until].push_back(id);
        continue;
      }
      record_at_.erase(r.offset);
      free_bytes(r.offset, r.bytes);
    }
  }
}

// --- steps and regions ------------------------------------------------------

Step& PlanBuilder::step(InstId i, EvalFn fn) {
  Step s;
  s.fn = fn;
  s.inst = i;
  s.next = step_count() + 1;
  return plan_.steps_.emplace_back(s);
}

uint32_t PlanBuilder::add_alloca(uint64_t bytes) {
  plan_.alloca_bytes_.push_back(bytes);
  alloca_bytes_ += bytes;
  return static_cast<uint32_t>(plan_.alloca_bytes_.size() - 1);
}

std::vector<Move> PlanBuilder::moves(std::span<const ValueId> from, std::span<const Slot> to, Slot* temp) {
  std::vector<Move> out;
  size_t total = 0;
  for (size_t k = 0; k < from.size(); ++k) {
    const size_t size = bytes(from[k]);
    if (size == 0 || slots_[from[k]] == to[k]) continue;
    out.push_back({slots_[from[k]], to[k], size});
    total += aligned(size);
  }
  *temp = kNoSlot;
  const bool crossed = std::any_of(out.begin(), out.end(), [&](const Move& a) {
    return std::any_of(out.begin(), out.end(), [&](const Move& b) { return &a != &b && a.from == b.to; });
  });
  if (crossed) {
    *temp = allocate_bytes(total);
    free_bytes(*temp, total);  // free again for what comes later: the copy is over before that runs
  }
  return out;
}

bool PlanBuilder::region(const Region& r) {
  for (InstId i = r.begin; i < r.end; i = f.insts[i].next) {
    current_ = i;
    const CompileFn compile = compile_fn(f.insts[i].op);
    why.clear();
    if (!compile || !compile(*this, i)) {
      if (!diags_.has_errors()) {
        const std::string reason = why.empty() ? "" : ": " + why;
        (void)diags_.error(Code::E0808, module.place(f, i), std::string(f.def(i).name) + " is known but not executed by this machine" + reason);
      }
      return false;
    }
    current_ = i;
    release_up_to(static_cast<int64_t>(f.insts[i].next) - 1);
    if (plan_.storage_bytes_ > max_bytes_ || plan_.constants_.size() > max_bytes_ || alloca_bytes_ > max_bytes_) {
      (void)diags_.error(Code::L0103, module.place(f, i),
                         "one block needs more than " + std::to_string(max_bytes_ >> 20) + " MiB for its tiles or its allocas", "use smaller ones or raise --max-memory");
      return false;
    }
  }
  return true;
}

bool PlanBuilder::build() {
  for (ValueId p = 0; p < f.param_count; ++p) {
    const int64_t last = std::max<int64_t>(last_use_[p], 0);
    hold(p, add_record(bytes(p), last, last), last);
    plan_.params_.push_back(slots_[p]);
  }
  if (!region(f.regions[0])) return false;
  fuse_steps(*this);
  return true;
}

Result<std::shared_ptr<const Plan>> Plan::make(std::shared_ptr<const ValidModule> module, const Function& function, Diagnostics& diags, size_t max_bytes,
                                              Numerics numerics) {
  auto plan = std::make_shared<Plan>();
  plan->module_ = module;
  plan->function_ = &function;
  PlanBuilder builder(module, function, *plan, diags, max_bytes, numerics);
  if (!builder.build()) return Failed;
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace tile
