// Running groups of steps: addresses first, then chunks, then what could not be stored in place. Stores begin when all loads of the group
// are known; a load whose memory a store of the group may change is copied before, unless both walk the same memory in step.
#include "vm/interp/fused.h"

#include <algorithm>
#include <cstring>

#include "vm/interp/eval.h"
#include "vm/interp/stream.h"

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

constexpr size_t kStreamed = 4096;  // bytes that are computed before they are written around the caches
constexpr size_t kLine = 64;        // bytes of a cache line

/// Where a value lies while its group runs.
struct Spot {
  std::byte* base = nullptr;       // nullptr: in the scratch memory of each thread
  size_t advance = 0;              // bytes between elements; 0 for what every chunk reuses
  const MemoryRun* run = nullptr;  // rows in memory
};

void copy_out(std::byte* to, const MemoryRun& from, size_t n, size_t size) {
  for (size_t first = 0; first < n; first += from.length) std::memcpy(to + first * size, from.at(first, size), from.length * size);
}

}  // namespace

/// The end of a block that has been put off.
struct PutOff {
  std::byte* at[FusedGroup::kLastValues];  // first element of a value; nullptr: in scratch memory
  std::byte* to[FusedGroup::kLastStores];  // where stores go, in their order
};

struct FusedState {
  static constexpr size_t kMostPutOff = 16;
  const FusedGroup* group = nullptr;       // of those that have been put off
  size_t count = 0;
  PutOff put_off[kMostPutOff];
  Spot spots[FusedGroup::kMaxValues];
  MemoryRun runs[FusedGroup::kMaxItems];  // of the item
  bool computed[FusedGroup::kMaxItems];   // stores whose tile is computed where it goes
  bool streamed[FusedGroup::kMaxItems];   // kernels that compute it around the caches
};

namespace {

class Running {
 public:
  Running(Exec& x, const FusedGroup& g, FusedState& state)
      : x_(x), g_(g), state_(state), spots_(state.spots), runs_(state.runs), computed_(state.computed) {}

  Flow run() {
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const FusedGroup::Value& value = g_.values[v];
      if (value.buffer != ~size_t{0}) {
        spots_[v] = {};
      } else if (value.slot != kNoSlot) {
        in_slot(v);
      }
    }
    for (size_t i = 0; i < g_.items.size(); ++i) {
      state_.streamed[i] = false;
      const Flow flow = prepare(i);
      if (flow != Flow::Next) return flow;
    }
    separate();
    choose_targets();
    if (x_.put_off && g_.last && put_off()) return Flow::Next;
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
      case Role::Fold: {
        const auto& d = static_cast<const FoldData&>(*step(i).data);
        const uint16_t v = item.in[0];
        const size_t size = g_.values[v].size;
        if (const MemoryRun* run = spots_[v].run) {
          const bool gaps = run->outer == 1 && run->length == d.len && run->dims[0].stride % static_cast<int64_t>(size) == 0;
          if (run->outer == 0 || gaps) {
            d.fold(x_, x_.at<std::byte>(step(i).out[0]), run->host, gaps ? static_cast<size_t>(run->dims[0].stride) / size : d.len);
            return Flow::Next;
          }
          in_slot(v);
          copy_out(spots_[v].base, *run, g_.n, size);
        }
        return step(i).fn(x_, step(i));
      }
      case Role::Uniform: {
        const void* number[1] = {x_.at(g_.values[item.in[0]].slot)};
        item.spread.splat(x_.scratch + g_.values[item.out].buffer, number, g_.chunk);
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
      } else if (around_caches() ? item.maker != FusedGroup::kNone && lines(runs_[i]) : item.sole && (item.adjacent || !crossed_)) {
        spots_[v] = {nullptr, 0, &runs_[i]};
        computed_[i] = true;
        if (around_caches()) state_.streamed[item.maker] = true;
      }
    }
  }

  /// True if rows begin at cache lines (their length is a multiple of one).
  static bool lines(const MemoryRun& run) {
    bool all = reinterpret_cast<uintptr_t>(run.host) % kLine == 0;
    for (size_t d = 0; d < run.outer; ++d) all = all && run.dims[d].stride % static_cast<int64_t>(kLine) == 0;
    return all;
  }
  /// What the group has just read is in the caches.
  [[nodiscard]] bool around_caches() const { return x_.launch.around_caches && !crossed_; }

  /// Remembers where everything is, if that is all that has to be remembered.
  bool put_off() {
    if (crossed_ || first_deferred_ < FusedGroup::kMaxItems) return false;
    if (state_.count > 0 && state_.group != &g_) run_put_off(x_);
    PutOff& p = state_.put_off[state_.count];
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const Spot& spot = spots_[v];
      if (spot.run) {
        if (spot.run->outer > 0) return false;
        p.at[v] = spot.run->host;
      } else if (spot.base) {
        if (!(g_.values[v].slot & kConstSlot)) return false;
        p.at[v] = spot.base;
      } else {
        p.at[v] = nullptr;
      }
    }
    size_t stores = 0;
    for (size_t i = 0; i < g_.items.size(); ++i) {
      if (g_.items[i].role != Role::Store) continue;
      if (runs_[i].outer > 0) return false;
      p.to[stores++] = runs_[i].host;
    }
    state_.group = &g_;
    if (++state_.count == FusedState::kMostPutOff) run_put_off(x_);
    return true;
  }

  void chunks() {
    size_t chunk = std::min(g_.chunk, g_.n);
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (spots_[v].run) chunk = std::min(chunk, spots_[v].run->length);
    for (size_t i = 0; i < g_.items.size(); ++i) {
      if (!stored_in_place(i)) continue;
      chunk = std::min(chunk, runs_[i].length);
      if (around_caches() && !computed_[i]) chunk = std::min(chunk, std::max(FusedGroup::kMinElements, kStreamed / g_.values[g_.items[i].in[0]].size));
    }
    // Extents, and so all these numbers, are powers of two.
    x_.split(g_.n / chunk, std::max<size_t>(1, Exec::kSplit / chunk),
             [&](size_t begin, size_t end, std::byte* scratch) { chunks(begin * chunk, end * chunk, chunk, scratch); });
  }

  void chunks(size_t begin, size_t end, size_t chunk, std::byte* scratch) const {
    std::byte* at[FusedGroup::kMaxValues];
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (!spots_[v].run && !spots_[v].base && g_.values[v].buffer != ~size_t{0}) at[v] = scratch + g_.values[v].buffer;
    if (scratch != x_.scratch)  // a thread that helps: the slot of a repeated number may have another owner by now
      for (const FusedGroup::Item& item : g_.items)
        if (item.role == Role::Uniform) std::memcpy(at[item.out], x_.scratch + g_.values[item.out].buffer, chunk * g_.values[item.out].size);
    bool streamed = false;
    for (size_t first = begin; first < end; first += chunk) {
      for (size_t v = 0; v < g_.values.size(); ++v) {
        const Spot& p = spots_[v];
        if (p.run) {
          at[v] = p.run->at(first, g_.values[v].size);
        } else if (p.base) {
          at[v] = p.base + first * p.advance;
        }
      }
      for (size_t i = 0; i < g_.items.size(); ++i) {
        const FusedGroup::Item& item = g_.items[i];
        if (item.role == Role::Kernel) {
          const void* in[3];
          for (size_t k = 0; k < item.inputs; ++k) in[k] = at[item.in[k]];
          (state_.streamed[i] ? item.streamed : step(i).kernel)(at[item.out], in, chunk);
          streamed = streamed || state_.streamed[i];
        } else if (item.role == Role::Spread) {
          item.spread.write(g_.values[item.out].size, at[item.out], x_.at<std::byte>(g_.values[item.in[0]].slot), first, chunk);
        } else if (stored_in_place(i) && !computed_[i]) {
          const size_t size = g_.values[item.in[0]].size;
          if (around_caches()) {
            stream_copy(runs_[i].at(first, size), at[item.in[0]], chunk * size);
            streamed = true;
          } else {
            std::memmove(runs_[i].at(first, size), at[item.in[0]], chunk * size);
          }
        }
      }
    }
    if (streamed) stream_end();
  }

  Exec& x_;
  const FusedGroup& g_;
  size_t first_deferred_ = FusedGroup::kMaxItems;  // stores from this item on are steps after the chunks
  bool crossed_ = false;                           // a store in place writes what a load in place reads
  FusedState& state_;
  Spot* const spots_;
  MemoryRun* const runs_;
  bool* const computed_;
};

}  // namespace

void run_put_off(Exec& x) {
  if (!x.fused || x.fused->count == 0) return;
  FusedState& state = *x.fused;
  const FusedGroup& g = *state.group;
  const bool around = x.launch.around_caches;
  for (size_t k = 0; k < state.count; ++k) {
    const PutOff& p = state.put_off[k];
    size_t chunk = std::min(g.chunk, g.n), stores = 0;
    bool direct[FusedGroup::kLastStores];  // the tile is computed where it goes, as choose_targets() has said
    ElementwiseFn kernels[FusedGroup::kMaxItems];
    for (size_t i = 0; i < g.items.size(); ++i) {
      const FusedGroup::Item& item = g.items[i];
      kernels[i] = x.plan.steps()[item.step].kernel;
      if (item.role != Role::Store) continue;
      const bool own = around ? item.maker != FusedGroup::kNone && reinterpret_cast<uintptr_t>(p.to[stores]) % kLine == 0 : item.sole;
      if (own && around) kernels[item.maker] = g.items[item.maker].streamed;
      if (!own && around) chunk = std::min(chunk, std::max(FusedGroup::kMinElements, kStreamed / g.values[item.in[0]].size));
      direct[stores++] = own;
    }
    for (size_t first = 0; first < g.n; first += chunk) {
      std::byte* at[FusedGroup::kLastValues];
      for (size_t v = 0; v < g.values.size(); ++v) {
        const FusedGroup::Value& value = g.values[v];
        at[v] = p.at[v] ? p.at[v] + first * (value.slot & kConstSlot ? value.advance : value.size) : x.scratch + value.buffer;
      }
      stores = 0;
      for (size_t i = 0; i < g.items.size(); ++i) {
        const FusedGroup::Item& item = g.items[i];
        if (item.role == Role::Kernel) {
          const void* in[3];
          for (size_t j = 0; j < item.inputs; ++j) in[j] = at[item.in[j]];
          kernels[i](at[item.out], in, chunk);
        } else if (item.role == Role::Store) {
          const size_t size = g.values[item.in[0]].size, store = stores++;
          if (direct[store]) continue;
          if (around) {
            stream_copy(p.to[store] + first * size, at[item.in[0]], chunk * size);
          } else {
            std::memmove(p.to[store] + first * size, at[item.in[0]], chunk * size);
          }
        }
      }
    }
  }
  if (around) stream_end();
  state.count = 0;
}

Flow run_fused(Exec& x, const FusedGroup& g) {
  if (!x.fused) x.fused = std::make_shared<FusedState>();
  return Running(x, g, *x.fused).run();
}

}  // namespace tile
