// Running steps, blocks and launches.
#include "vm/interp/exec.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <new>
#include <system_error>
#include <thread>

#include "vm/base/numeric.h"
#include "vm/interp/eval.h"
#include "vm/interp/fused.h"
#include "vm/interp/interleaving.h"
#include "vm/interp/seeded.h"
#include "vm/interp/stream.h"
#include "vm/interp/strided.h"
#include "vm/interp/worker_pool.h"

namespace tile {

std::string block_text(const Exec& x) {
  return "(" + std::to_string(x.block[0]) + ", " + std::to_string(x.block[1]) + ", " + std::to_string(x.block[2]) + ")";
}

template <bool kObserved>
Flow Exec::run_steps(uint32_t begin, uint32_t end) {
  const Step* all = plan.steps_.data();
  // Looked at before every step: one alone may take a second.
  const std::atomic<bool>* const cancel = launch.options->cancel;
  for (uint32_t i = begin; i < end;) {
    const Step& s = all[i];
    if (cancel && cancel->load(std::memory_order_relaxed)) {
      launch.stop.store(true);
      return Flow::Trap;
    }
    if constexpr (!kObserved)
      if (s.fused && fuel_left > s.fused->items.size()) {
        fuel_left -= s.fused->items.size();
        const Flow flow = run_fused(*this, *s.fused);
        if (flow != Flow::Next) return flow;
        i = s.fused->end;
        continue;
      }
    if (fuel_left-- == 0) {
      fuel_left = 0;
      return trap(Code::L0104, s, "the block took more than " + std::to_string(launch.options->fuel) + " steps", "raise --fuel if the loop is meant to be this long");
    }
    const unsigned told = told_ ? told_[i] : Observer::kTellBefore | Observer::kTellAfter;
    if constexpr (kObserved) {
      if (told & Observer::kTellBefore)
        for (Observer* o : launch.options->observers) o->before(*this, s);
      if (launch.stop.load(std::memory_order_relaxed)) return Flow::Trap;
    }
    const Flow flow = s.fn(*this, s);
    if (flow != Flow::Next) return flow;
    if constexpr (kObserved)
      if (told & Observer::kTellAfter)
        for (Observer* o : launch.options->observers) o->after(*this, s);
    i = s.next;
  }
  return Flow::Next;
}
template Flow Exec::run_steps<false>(uint32_t, uint32_t);
template Flow Exec::run_steps<true>(uint32_t, uint32_t);

void Exec::notify(const Step& step, const MemoryAccess& access) {
  for (Observer* o : launch.options->observers) o->access(*this, step, access);
}

bool Exec::notify(const Step& step, const MemoryRuns& accesses) { return launch.options->observers[0]->accesses(*this, step, accesses); }

Flow Exec::trap(Code code, const Step& step, std::string message, std::string help) {
  const std::lock_guard lock(launch.mutex);
  const bool first = !launch.stop.exchange(true);
  if (code == Code::T0102) launch.assert_failed = true;
  if (first) (void)launch.diags->error(code, plan.module().place(plan.function(), step.inst), message + ", in block " + block_text(*this), std::move(help));
  return Flow::Trap;
}

void Exec::print(const std::string& text) {
  const std::lock_guard lock(launch.mutex);
  if (launch.options->print) launch.options->print(text);
}

void Exec::unspecified(const Step& step, ElementType e, std::byte* out, size_t n, size_t first) const {
  const ElementInfo& t = info(e);
  const uint64_t mask = e == ElementType::TF32 ? 0xFFFFE000u : t.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << t.bits) - 1;
  switch (launch.options->unspecified) {
    case Filling::Zero: fill_elements(t.storage, out, 0, n); return;
    case Filling::NaN: fill_elements(t.storage, out, t.is_float ? canonical_nan(e) : mask, n); return;
    case Filling::Random: break;
  }
  const uint64_t base = launch.options->unspecified_seed + ((block[2] * uint64_t{launch.grid.y} + block[1]) * launch.grid.x + block[0]) * 0xD1342543DE82EF95u + step.inst * 0x2545F4914F6CDD1Du;
  for (size_t k = 0; k < n; ++k) write_bits(out, t.storage, SeededNumbers::mix(base + (first + k + 1) * SeededNumbers::kStep) & mask, k);
}

void Exec::copy(const std::vector<Move>& moves, Slot temp) const {
  if (temp == kNoSlot) {
    for (const Move& m : moves) std::memcpy(at<std::byte>(m.to), at<std::byte>(m.from), m.bytes);
    return;
  }
  const auto aligned = [](size_t n) { return (n + 63) & ~size_t{63}; };
  std::byte* t = at<std::byte>(temp);
  for (const Move& m : moves) {
    std::memcpy(t, at<std::byte>(m.from), m.bytes);
    t += aligned(m.bytes);
  }
  t = at<std::byte>(temp);
  for (const Move& m : moves) {
    std::memcpy(at<std::byte>(m.to), t, m.bytes);
    t += aligned(m.bytes);
  }
}

void Exec::copy_box(size_t size, std::byte* dst, std::span<const int64_t> dst_strides, const std::byte* src, std::span<const int64_t> src_strides,
                    std::span<const int64_t> shape) {
  size_t total = 1, outer = 0;
  for (const int64_t n : shape) total *= static_cast<size_t>(n);
  while (outer < shape.size() && shape[outer] == 1) ++outer;
  if (outer == shape.size() || total < 2 * kSplit || !launch.team) return strided_copy(size, dst, dst_strides, src, src_strides, shape);
  const size_t slices = static_cast<size_t>(shape[outer]), slice = total / slices;
  split(slices, (kSplit + slice - 1) / slice, [&](size_t begin, size_t end, std::byte*) {
    int64_t part[kMaxRank];
    std::copy(shape.begin(), shape.end(), part);
    part[outer] = static_cast<int64_t>(end - begin);
    const int64_t skip = static_cast<int64_t>(begin * size);
    strided_copy(size, dst + skip * dst_strides[outer], dst_strides, src + skip * src_strides[outer], src_strides, std::span(part, shape.size()));
  });
}

void Exec::run_block(uint64_t linear) {
  const Grid& g = launch.grid;
  if (linear != 0 && linear == last_block_ + 1) {  // the usual case, without divisions
    if (++block[0] == g.x) {
      block[0] = 0;
      if (++block[1] == g.y) {
        block[1] = 0;
        ++block[2];
      }
    }
  } else {
    block[0] = static_cast<uint32_t>(linear % g.x);
    block[1] = static_cast<uint32_t>(linear / g.x % g.y);
    block[2] = static_cast<uint32_t>(linear / g.x / g.y);
  }
  last_block_ = linear;
  const uint64_t fuel = launch.options->fuel;
  fuel_left = fuel ? fuel : ~uint64_t{0};
  const uint64_t before = fuel_left;
  for (Observer* o : launch.options->observers) o->block_begin(*this);
  (void)run(0, static_cast<uint32_t>(plan.steps_.size()));
  for (Observer* o : launch.options->observers) o->block_end(*this);
  steps += before - fuel_left;
}

namespace {

/// Storage of workers that have ended, for the next ones: fresh pages cost more than many a launch. What it holds does not matter, because
/// steps read only what steps before them wrote.
class StorageCache {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t size = 0;
  };

  Block take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      for (size_t k = blocks_.size(); k-- > 0;) {
        if (blocks_[k].size < size || blocks_[k].size / 2 > size) continue;  // not a large one for a small need
        Block found = std::move(blocks_[k]);
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(k));
        kept_ -= found.size;
        return found;
      }
    }
    return {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]()), size};
  }
  void give(Block block) {
    if (!block.data || block.size > kMost) return;
    const std::lock_guard lock(mutex_);
    while (!blocks_.empty() && kept_ + block.size > kMost) {
      kept_ -= blocks_.front().size;
      blocks_.erase(blocks_.begin());
    }
    kept_ += block.size;
    blocks_.push_back(std::move(block));
  }
  static StorageCache& instance() {
    static StorageCache cache;
    return cache;
  }

 private:
  static constexpr size_t kMost = size_t{32} << 20;  // bytes kept
  std::mutex mutex_;
  std::vector<Block> blocks_;                        // the last one given back is the last one here
  size_t kept_ = 0;
};

/// Blocks that a worker has run, in a cache line of its own.
struct alignas(64) Ended {
  std::atomic<uint64_t> blocks{0};
};

struct Worker {
  StorageCache::Block block;
  std::byte *storage = nullptr, *scratch = nullptr;
  std::vector<uint64_t> allocas;

  Worker() = default;
  Worker(Worker&&) = default;
  Worker& operator=(Worker&&) = delete;
  ~Worker() { StorageCache::instance().give(std::move(block)); }

  [[nodiscard]] bool prepare(size_t storage_bytes, size_t scratch_bytes, std::span<const uint64_t> alloca_bytes, Memory& memory) {
    constexpr size_t kAlign = 64;
    storage_bytes = (storage_bytes + kAlign - 1) / kAlign * kAlign;
    block = StorageCache::instance().take(storage_bytes + scratch_bytes + 2 * kAlign);
    if (!block.data) return false;
    const auto address = reinterpret_cast<uintptr_t>(block.data.get());
    storage = block.data.get() + (kAlign - address % kAlign) % kAlign;
    scratch = storage + storage_bytes;
    for (const uint64_t bytes : alloca_bytes) {
      allocas.push_back(memory.allocate(bytes, "an alloca"));
      if (allocas.back() == 0) return false;
    }
    return true;
  }
};

void work(Launch& launch, Worker& w, Ended& count, unsigned number, std::span<const uint64_t> params, std::span<const std::pair<Slot, size_t>> param_slots) {
  Exec x(launch, w.storage, w.scratch, w.allocas);
  x.worker = number;
  const uint64_t total = launch.grid.blocks();
  const RunOptions& o = *launch.options;
  const SeededOrder order(o.order.value_or(0), total);
  x.put_off = !x.observed;
  const auto stopped = [&] {
    if (o.cancel && o.cancel->load(std::memory_order_relaxed)) launch.stop.store(true);
    return launch.stop.load(std::memory_order_relaxed);
  };
  // Each worker begins with its own stretch of blocks, the same in every launch, so that caches keep what belongs to it; then it helps the
  // others. Neighbouring blocks are taken together, fewer towards the end.
  constexpr uint64_t kMaxRun = 32;
  // A smaller part of a stretch than 1/32 is left to its worker, if that has begun: the pool does not start workers that nothing waits for.
  constexpr uint64_t kWorthHelping = 32;
  if (launch.team) launch.team->enter();
  launch.shares[number % launch.shares.size()].begun.store(true);
  uint64_t ended = 0;
  for (size_t k = 0; k < launch.shares.size() && !launch.stop.load(std::memory_order_relaxed); ++k) {
    Share& share = launch.shares[(number + k) % launch.shares.size()];
    for (;;) {
      const uint64_t seen = share.next.load(std::memory_order_relaxed);
      if (seen >= share.end || (k > 0 && share.begun.load() && (share.end - seen) * kWorthHelping < share.size)) break;
      const uint64_t run = std::clamp<uint64_t>((share.end - seen) / 8, 1, kMaxRun);
      const uint64_t first = share.next.fetch_add(run, std::memory_order_relaxed);
      if (first >= share.end) break;
      const uint64_t last = std::min(share.end, first + run);
      uint64_t linear = first;
      for (; linear < last && !stopped(); ++linear) {
        for (size_t p = 0; p < params.size(); ++p) write_bits(x.at(param_slots[p].first), param_slots[p].second, params[p]);
        x.run_block(o.order ? order(linear) : linear);
        count.blocks.store(++ended, std::memory_order_relaxed);
      }
      run_put_off(x);
      launch.done.fetch_add(linear - first, std::memory_order_relaxed);
      if (linear < last) break;
    }
  }
  launch.steps.fetch_add(x.steps, std::memory_order_relaxed);
  if (!launch.team) return;
  launch.team->leave();
  launch.team->help(number, w.scratch);
}

/// Blocks interleaved by a seed; false if there is no memory for them.
bool work_interleaved(Launch& launch, Interleaving& interleaving, std::span<Worker> workers, Ended& count, std::span<const uint64_t> params, std::span<const std::pair<Slot, size_t>> param_slots) {
  std::vector<Exec> execs;
  execs.reserve(workers.size());
  for (Worker& w : workers) {
    execs.emplace_back(launch, w.storage, w.scratch, w.allocas);
    execs.back().worker = static_cast<unsigned>(execs.size() - 1);
  }
  const RunOptions& o = *launch.options;
  const uint64_t total = launch.grid.blocks();
  // Which blocks are under way together is free too.
  const SeededOrder order(o.order.value_or(*o.schedule), total);
  const auto run_block = [&](size_t fiber, uint64_t linear) {
    if (o.cancel && o.cancel->load(std::memory_order_relaxed)) launch.stop.store(true);
    if (launch.stop.load(std::memory_order_relaxed)) return false;
    Exec& x = execs[fiber];
    for (size_t p = 0; p < params.size(); ++p) write_bits(x.at(param_slots[p].first), param_slots[p].second, params[p]);
    x.run_block(linear);
    count.blocks.store(launch.done.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  };
  if (!interleaving.run(workers.size(), total, [&](uint64_t k) { return order(k); }, run_block)) return false;
  for (const Exec& x : execs) launch.steps.fetch_add(x.steps, std::memory_order_relaxed);
  return true;
}

/// While it lives, a thread says every kPeriod how far the launch is: by time, however long a block takes.
class ProgressReports {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};

  ProgressReports(Launch& launch, const std::vector<Ended>& ended) : launch_(launch), ended_(ended) {
    if (!launch.options->progress) return;
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error&) {
      // No thread, no reports: the launch itself needs none.
    }
  }
  ProgressReports(const ProgressReports&) = delete;
  ProgressReports& operator=(const ProgressReports&) = delete;
  ~ProgressReports() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kPeriod, [this] { return over_; })) {
      uint64_t done = 0;
      for (const Ended& e : ended_) done += e.blocks.load(std::memory_order_relaxed);
      const std::lock_guard printing(launch_.mutex);
      launch_.options->progress(done, launch_.grid.blocks());
    }
  }
  Launch& launch_;
  const std::vector<Ended>& ended_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

/// Runs launches; a friend of Plan that keeps the set-up in one place.
class Launcher {
 public:
  static Result<RunStats> run(const Plan& plan, Memory& memory, std::span<const uint64_t> globals, Grid grid, std::span<const uint64_t> params,
                              const RunOptions& options, Diagnostics& diags) {
    Launch launch;
    launch.plan = &plan;
    launch.memory = &memory;
    launch.grid = grid;
    launch.options = &options;
    launch.globals = globals;
    launch.diags = &diags;
    // Asked for once: the C library reads a file for it, which takes as long as a small launch.
    static const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    unsigned threads = options.threads ? options.threads : processors;
    std::unique_ptr<Interleaving> interleaving;
    RunOptions interleaved;
    if (options.schedule) {
      interleaving = std::make_unique<Interleaving>(plan.module_, plan, *options.schedule);
      uint64_t each = plan.storage_bytes_ + plan.scratch_bytes_ + 1;
      for (const uint64_t bytes : plan.alloca_bytes_) each += bytes;
      const uint64_t fit = Interleaving::kMostStorage / each;
      threads = static_cast<unsigned>(std::clamp<uint64_t>(fit, 2, Interleaving::kMostBlocks));
      interleaved = options;
      interleaved.observers.insert(interleaved.observers.begin(), interleaving.get());  // it decides what the others see
      launch.options = &interleaved;
    }
    const std::vector<Observer*>& observers = launch.options->observers;
    // Threads beyond the number of blocks only help, and need no storage for tiles.
    unsigned all = std::min<unsigned>(threads, Team::kMostPieces);
    threads = static_cast<unsigned>(std::min<uint64_t>(threads, grid.blocks()));
    all = std::max(all, threads);
    std::optional<Team> team;
    if (!interleaving && all > 1 && plan.large()) launch.team = &team.emplace(threads, all);
    std::vector<Worker> workers(launch.team ? all : threads);
    for (size_t k = 0; k < workers.size(); ++k)
      if (!(k < threads ? workers[k].prepare(plan.storage_bytes_, plan.scratch_bytes_, plan.alloca_bytes_, memory) : workers[k].prepare(0, plan.scratch_bytes_, {}, memory))) {
        Place p;
        p.function = plan.module().str(plan.function().name);
        return diags.error(Code::E0903, p, "no memory for " + std::to_string(threads) + " workers of " + std::to_string(plan.storage_bytes_ + plan.scratch_bytes_) + " bytes",
                           "use fewer --threads");
      }
    launch.threads = threads;
    launch.allocas = plan.alloca_bytes_.size() * threads;
    launch.around_caches = options.around_caches.value_or(memory.bytes() > last_cache_bytes());
    std::vector<std::pair<Slot, size_t>> slots;
    for (uint32_t p = 0; p < plan.function().param_count; ++p)
      slots.emplace_back(plan.params_[p], info(plan.module().types.element_of(plan.function().type(p))).storage);
    launch.shares = std::vector<Share>(threads);
    for (unsigned t = 0; t < threads; ++t) {
      const auto border = [&](unsigned k) { return static_cast<uint64_t>(static_cast<unsigned __int128>(grid.blocks()) * k / threads); };
      launch.shares[t].next = border(t);
      launch.shares[t].end = border(t + 1);
      launch.shares[t].size = border(t + 1) - border(t);
    }
    std::vector<Ended> ended(threads);
    const ProgressReports reports(launch, ended);
    const auto start = std::chrono::steady_clock::now();
    for (Observer* o : observers) o->launch_begin(launch);
    if (!interleaving) {
      std::atomic<unsigned> come{1};
      run_workers(static_cast<unsigned>(workers.size()), [&](unsigned t) {
        // With a block for every thread each keeps its number, and so its part of the arrays from launch to launch; else this thread and
        // who comes first run.
        if (workers.size() > threads && t > 0) t = come.fetch_add(1);
        if (t < threads) {
          work(launch, workers[t], ended[t], t, params, slots);
        } else {
          launch.team->help(t, workers[t].scratch);
        }
      });
    } else if (!work_interleaved(launch, *interleaving, workers, ended[0], params, slots)) {
      (void)diags.error(Code::E0903, Place{}, "no memory for the stacks of " + std::to_string(threads) + " blocks");
    }
    for (Observer* o : observers) o->launch_end(launch);
    if (diags.has_errors()) return Failed;
    RunStats stats;
    stats.blocks = launch.done.load();
    stats.steps = launch.steps.load();
    stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    stats.threads = interleaving ? 1 : threads;
    stats.storage_bytes = plan.storage_bytes_ + plan.scratch_bytes_;
    if (team) stats.shared_steps = team->shared();
    return stats;
  }
};

Result<RunStats> run_plan(const Plan& plan, Memory& memory, std::span<const uint64_t> globals, Grid grid, std::span<const uint64_t> params,
                          const RunOptions& options, Diagnostics& diags) {
  return Launcher::run(plan, memory, globals, grid, params, options, diags);
}

Result<std::vector<uint64_t>> load_globals(const Module& module, Memory& memory, Diagnostics& diags) {
  std::vector<uint64_t> bases;
  for (const Global& g : module.globals) {
    const Attr& value = module.attrs.get(g.value);
    const ElementType e = module.types.element_of(value.type);
    const size_t n = static_cast<size_t>(module.types.element_count(value.type)), size = info(e).storage;
    const size_t bytes = (n * info(e).memory_bits + 7) / 8;
    const uint64_t base = memory.allocate(bytes, "global @" + std::string(module.str(g.name)));
    if (base == 0) return diags.error(Code::E0903, module.place(g), "no memory for global @" + std::string(module.str(g.name)));
    std::byte* to = memory.resolve(base, bytes);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t bits = read_bits(value.bytes.data(), size, value.bytes.size() == size ? 0 : i);
      if (info(e).memory_bits == 4) {
        to[i / 2] |= static_cast<std::byte>((bits & 15) << (i % 2 * 4));
      } else {
        write_bits(to, size, bits, i);
      }
    }
    bases.push_back(base);
  }
  return bases;
}

}  // namespace tile
