// Running groups of steps: addresses first, then chunks, then what could not be stored in place. Stores begin when all loads of the group
// are known; a load whose memory a store of the group may change is copied before, unless both walk the same memory in step.
#include "vm/interp/fused.h"

#include <algorithm>
#include <cstring>

#include "vm/interp/eval.h"

namespace tile {

bool MemoryRun::same_layout(const MemoryRun& o) const {
  if (host != o.host || length != o.length || outer != o.outer) return false;
  for (size_t d = 0; d < outer; ++d)
    if (dims[d].n != o.dims[d].n || dims[d].stride != o.dims[d].stride) return false;
  return true;
}

void Spread::write(size_t size, std::byte* out, const std::byte* source, size_t first, size_t count) const {
  const Dim inner = dims.back();
  const size_t n = static_cast<size_t>(inner.n);
  while (count > 0) {
    const size_t column = first % n, m = std::min(n - column, count);
    size_t row = first / n;
    int64_t offset = static_cast<int64_t>(column) * inner.stride;
    for (size_t d = dims.size() - 1; d-- > 0; row /= static_cast<size_t>(dims[d].n)) offset += static_cast<int64_t>(row % static_cast<size_t>(dims[d].n)) * dims[d].stride;
    const std::byte* from = source + static_cast<size_t>(offset) * size;
    if (inner.stride == 0) {
      const void* number[1] = {from};
      splat(out, number, m);
    } else {
      std::memcpy(out, from, m * size);
    }
    out += m * size;
    first += m;
    count -= m;
  }
}

namespace {

using Role = FusedGroup::Role;

/// Where a value lies while its group runs.
struct Spot {
  std::byte* base = nullptr;
  size_t advance = 0;              // bytes between elements; 0 for what every chunk reuses
  const MemoryRun* run = nullptr;  // rows in memory
};

void copy_out(std::byte* to, const MemoryRun& from, size_t n, size_t size) {
  for (size_t first = 0; first < n; first += from.length) std::memcpy(to + first * size, from.at(first, size), from.length * size);
}

}  // namespace

struct FusedState {
  Spot spots[FusedGroup::kMaxValues];
  MemoryRun runs[FusedGroup::kMaxItems];  // of the item
  bool computed[FusedGroup::kMaxItems];   // stores whose tile is computed where it goes
};

namespace {

class Running {
 public:
  Running(Exec& x, const FusedGroup& g, FusedState& state)
      : x_(x), g_(g), spots_(state.spots), runs_(state.runs), computed_(state.computed) {}

  Flow run() {
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const FusedGroup::Value& value = g_.values[v];
      if (value.buffer != ~size_t{0}) {
        spots_[v] = {x_.scratch + value.buffer, 0, nullptr};
      } else if (value.slot != kNoSlot) {
        in_slot(v);
      }
    }
    for (size_t i = 0; i < g_.items.size(); ++i) {
      const Flow flow = prepare(i);
      if (flow != Flow::Next) return flow;
    }
    separate();
    choose_targets();
    chunks();
    for (size_t i = 0; i < g_.items.size(); ++i)
      if (g_.items[i].role == Role::Store && i >= first_deferred_) {
        const Flow flow = step(i).fn(x_, step(i));
        if (flow != Flow::Next) return flow;
      }
    return Flow::Next;
  }

 private:
  [[nodiscard]] const Step& step(size_t item) const { return x_.plan.steps()[g_.items[item].step]; }
  void in_slot(size_t v) { spots_[v] = {x_.at<std::byte>(g_.values[v].slot), g_.values[v].advance, nullptr}; }

  Flow prepare(size_t i) {
    const FusedGroup::Item& item = g_.items[i];
    switch (item.role) {
      case Role::Setup: return step(i).fn(x_, step(i));
      case Role::Load:
        if (!g_.values[item.out].whole && find(i, MemoryAccess::Kind::Read)) {
          spots_[item.out] = {nullptr, 0, &runs_[i]};
          return Flow::Next;
        }
        in_slot(item.out);
        return step(i).fn(x_, step(i));
      case Role::Uniform: {
        const void* number[1] = {x_.at(g_.values[item.in[0]].slot)};
        item.spread.splat(spots_[item.out].base, number, g_.chunk);
        return Flow::Next;
      }
      case Role::Rows: {
        const size_t size = g_.values[item.out].size;
        MemoryRun& run = runs_[i];
        run.host = x_.at<std::byte>(g_.values[item.in[0]].slot);
        run.length = static_cast<size_t>(item.spread.dims.back().n);
        run.outer = item.spread.dims.size() - 1;
        for (size_t d = 0; d < run.outer; ++d) run.dims[d] = {item.spread.dims[d].n, item.spread.dims[d].stride * static_cast<int64_t>(size)};
        spots_[item.out] = {nullptr, 0, &run};
        return Flow::Next;
      }
      case Role::Store:
        computed_[i] = false;
        // What traps has to find the memory as the stores before it leave it: after the first store that waits, all wait.
        if (first_deferred_ > i && !find(i, MemoryAccess::Kind::Write)) first_deferred_ = i;
        return Flow::Next;
      default: return Flow::Next;
    }
  }

  bool find(size_t i, MemoryAccess::Kind kind) {
    runs_[i].outer = 0;
    return static_cast<const AccessData&>(*step(i).data).in_place(x_, step(i), kind, runs_[i]) && runs_[i].length >= FusedGroup::kMinElements;
  }

  [[nodiscard]] bool stored_in_place(size_t i) const { return g_.items[i].role == Role::Store && i < first_deferred_; }

  /// Makes the memory of stores independent of each other and of what is read in place.
  void separate() {
    const size_t count = g_.items.size();
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < i && stored_in_place(i); ++k)
        if (stored_in_place(k) && runs_[k].overlaps(runs_[i])) {
          first_deferred_ = 0;
          return;
        }
    for (size_t i = 0; i < count; ++i) {
      if (g_.items[i].role != Role::Load || spots_[g_.items[i].out].run == nullptr) continue;
      const uint16_t v = g_.items[i].out;
      if (!g_.values[v].read) continue;
      const size_t size = g_.values[v].size;
      for (size_t k = 0; k < count; ++k) {
        if (!stored_in_place(k) || !runs_[k].overlaps(runs_[i])) continue;
        if (g_.values[g_.items[k].in[0]].size == size && runs_[k].same_layout(runs_[i]) && g_.values[v].last <= k) {
          crossed_ = true;
          continue;
        }
        in_slot(v);
        copy_out(spots_[v].base, runs_[i], g_.n, size);
        break;
      }
    }
  }

  void choose_targets() {
    for (size_t i = 0; i < g_.items.size(); ++i) {
      const FusedGroup::Item& item = g_.items[i];
      if (item.role != Role::Store) continue;
      const uint16_t v = item.in[0];
      if (!stored_in_place(i)) {
        // The step reads the slot.
        if (const MemoryRun* run = spots_[v].run) {
          in_slot(v);
          copy_out(spots_[v].base, *run, g_.n, g_.values[v].size);
        } else {
          in_slot(v);
        }
      } else if (item.sole && (item.adjacent || !crossed_)) {
        spots_[v] = {nullptr, 0, &runs_[i]};
        computed_[i] = true;
      }
    }
  }

  void chunks() {
    size_t chunk = std::min(g_.chunk, g_.n);
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (spots_[v].run) chunk = std::min(chunk, spots_[v].run->length);
    for (size_t i = 0; i < g_.items.size(); ++i)
      if (stored_in_place(i)) chunk = std::min(chunk, runs_[i].length);
    std::byte* at[FusedGroup::kMaxValues];
    for (size_t first = 0; first < g_.n; first += chunk) {
      for (size_t v = 0; v < g_.values.size(); ++v) {
        const Spot& p = spots_[v];
        at[v] = p.run ? p.run->at(first, g_.values[v].size) : p.base + first * p.advance;
      }
      for (size_t i = 0; i < g_.items.size(); ++i) {
        const FusedGroup::Item& item = g_.items[i];
        if (item.role == Role::Kernel) {
          const void* in[3];
          for (size_t k = 0; k < item.inputs; ++k) in[k] = at[item.in[k]];
          step(i).kernel(at[item.out], in, chunk);
        } else if (item.role == Role::Spread) {
          item.spread.write(g_.values[item.out].size, at[item.out], x_.at<std::byte>(g_.values[item.in[0]].slot), first, chunk);
        } else if (stored_in_place(i) && !computed_[i]) {
          const size_t size = g_.values[item.in[0]].size;
          std::memmove(runs_[i].at(first, size), at[item.in[0]], chunk * size);
        }
      }
    }
  }

  Exec& x_;
  const FusedGroup& g_;
  size_t first_deferred_ = FusedGroup::kMaxItems;  // stores from this item on are steps after the chunks
  bool crossed_ = false;                           // a store in place writes what a load in place reads
  Spot* const spots_;
  MemoryRun* const runs_;
  bool* const computed_;
};

}  // namespace

Flow run_fused(Exec& x, const FusedGroup& g) {
  if (!x.fused) x.fused = std::make_shared<FusedState>();
  return Running(x, g, *x.fused).run();
}

}  // namespace tile
