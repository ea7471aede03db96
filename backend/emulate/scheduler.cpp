// Fibers of a block: start, switch, end; and what happens when none can run.
#include <bit>
#include <cstring>

#include "backend/emulate/block.h"

#if defined(__SANITIZE_ADDRESS__)
#define TILE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILE_ASAN 1
#endif
#endif
#ifdef TILE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tile::emu {
namespace {

namespace fc = boost::context::detail;

// AddressSanitizer must hear of every switch of stacks.
#ifdef TILE_ASAN
thread_local const void* os_stack = nullptr;
thread_local size_t os_stack_size = 0;
void leave_stack(void** fake, const void* to, size_t size) { __sanitizer_start_switch_fiber(fake, to, size); }
void leave_to_scheduler(void** fake) { __sanitizer_start_switch_fiber(fake, os_stack, os_stack_size); }
void reach_fiber(void* fake) { __sanitizer_finish_switch_fiber(fake, &os_stack, &os_stack_size); }
void reach_scheduler(void* fake) { __sanitizer_finish_switch_fiber(fake, nullptr, nullptr); }
void forget_frames(char* stack, size_t size) {
  __asan_unpoison_memory_region(stack, size);
}  // dropped frames leave red zones
#else
void leave_stack(void**, const void*, size_t) {}
void leave_to_scheduler(void**) {}
void reach_fiber(void*) {}
void reach_scheduler(void*) {}
void forget_frames(char*, size_t) {}
#endif

using KernelCode = void (*)(Thread*, const uint64_t*);

void exit_thread(Block& b, Thread& t) { b.exit(t); }

void fiber_main(fc::transfer_t from) {
  auto& t = *static_cast<Thread*>(from.data);
  reach_fiber(nullptr);
  Block& b = *t.block;
  b.scheduler = from.fctx;
  reinterpret_cast<KernelCode>(b.launch.kernel->code())(&t, b.launch.params);
  Entry<DeviceOp::Exit, &exit_thread>::call(&t, t.site);
  b.leave(t);
}

/// Tops of stacks at equal offsets of their pages would all fall into the same few cache sets.
size_t stack_offset(uint32_t id) { return id * 320 % 4096; }

}  // namespace

const char* op_name(DeviceOp op) {
  static constexpr const char* kNames[] = {
#define X(name, text) text,
      TILE_DEVICE_OPS(X)
#undef X
  };
  return kNames[static_cast<size_t>(op)];
}

Block::Block(Launch& l, const std::vector<char*>& s, size_t bytes)
    : launch(l), options(*l.options), stacks(s), stack_bytes(bytes) {
  constexpr size_t kAlign = 1024;
  storage = std::make_unique<std::byte[]>(size_t{l.window()} * l.cluster + kAlign);
  shared =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(storage.get()) + kAlign - 1) & ~uintptr_t{kAlign - 1});
  threads.resize(l.all_threads());
  ready.resize(std::bit_ceil(l.all_threads()));
  meetings.resize((l.all_threads() + 31) / 32);
  barriers.resize(l.cluster);
  named.resize(size_t{16} * l.cluster);
}

bool Block::run(uint64_t linear) {
  const std::array<uint32_t, 3> g = {launch.grid[0] / launch.cluster, launch.grid[1], launch.grid[2]};
  index[0] = static_cast<uint32_t>(linear % g[0]) * launch.cluster;
  index[1] = static_cast<uint32_t>(linear / g[0] % g[1]);
  index[2] = static_cast<uint32_t>(linear / g[0] / g[1]);
  random_state = (options.seed * 0x9E3779B97F4A7C15u + linear + 1) * 0xD1342543DE82EF95u | 1;
  fuel = options.fuel ? options.fuel * launch.cluster : ~uint64_t{0};
  std::memset(shared, 0xCD, size_t{launch.window()} * launch.cluster);
  if (options.hazards) {
    order.reset(launch.all_threads(), agents());
    shadow.reset(launch.window() * launch.cluster);
  }
  ready_head = ready_count = 0;
  for (uint32_t id = 0; id < launch.all_threads(); ++id) {
    Thread& t = threads[id];
    t.block = this;
    t.id = id;
    t.local = id % launch.threads;
    t.rank = id / launch.threads;
    t.base = t.rank * launch.window();
    t.rank_bits = t.rank << kEmulatedRankShift;
    t.cluster_phase = 0;
    t.cluster_arrived = false;
    t.site = kNone;
    t.op = DeviceOp::Start;
    t.done = false;
    t.cp_committed = 0;
    t.copies.clear();
    t.arrivals.clear();
    t.reset_matrix();
    char* stack = stacks[id];
    forget_frames(stack, stack_bytes);
    const size_t usable = stack_bytes - stack_offset(id);
    t.context = fc::make_fcontext(stack + usable, usable, fiber_main);
    wake(t);
  }
  for (auto& m : meetings) m.arrived = 0;
  for (auto& m : barriers) m.arrived = 0;
  reset_async();
  running = 0;
  live = cluster.missing = launch.all_threads();
  new_slice();

  while (live != 0) {
    if (failed || launch.stop.load(std::memory_order_relaxed)) return false;
    if (ready_count == 0) {
      if (finish_waking()) continue;
      if (!failed) deadlock();
      return false;
    }
    if (options.policy == EmulateOptions::Random && chance(8)) finish_something();
    if (failed) return false;
    const auto slot = [&](uint32_t i) -> uint32_t& { return ready[(ready_head + i) & (ready.size() - 1)]; };
    if (options.policy != EmulateOptions::Early)
      std::swap(slot(0), slot(static_cast<uint32_t>(random() % ready_count)));
    Thread& t = threads[running = slot(0)];
    ++ready_head;
    --ready_count;
    ++switches;
    void* fake = nullptr;
    leave_stack(&fake, stacks[t.id], stack_bytes);
    const fc::transfer_t back = fc::jump_fcontext(t.context, &t);
    reach_scheduler(fake);
    t.context = back.fctx;
  }
  operations += slice_length - slice;
  end_of_block();
  return !failed;
}

void Block::park(Thread& t, WaitFor why) {
  t.wait = why;
  void* fake = nullptr;
  leave_to_scheduler(&fake);
  const fc::transfer_t from = fc::jump_fcontext(scheduler, nullptr);
  reach_fiber(fake);
  scheduler = from.fctx;
}

void Block::leave(Thread& t) {
  t.wait = WaitFor::Nothing;
  leave_to_scheduler(nullptr);
  (void)fc::jump_fcontext(scheduler, nullptr);
  __builtin_unreachable();
}

void Block::new_slice() {
  uint64_t n = options.policy == EmulateOptions::Random ? 1 + random() % 64 : 1024;
  if (n > fuel) n = fuel;
  slice = slice_length = static_cast<uint32_t>(n);
}

void Block::slice_end(Thread& t) {
  operations += slice_length;
  fuel -= slice_length;
  slice_length = 0;
  if (options.cancel && options.cancel->load(std::memory_order_relaxed)) launch.stop.store(true);
  if (launch.stop.load(std::memory_order_relaxed)) throw Stop{};
  if (fuel == 0)
    fail({Code::L0104, t.site, text("the block took more than ", options.fuel, " device operations"), {}});
  new_slice();
  yield(t);
}

void Block::record(Failure f) {
  if (failed) return;
  failed = true;
  failure = std::move(f);
  failure.rank = threads[running].rank;
}

void Block::exit(Thread& t) {
  const Meeting& m = meetings[t.warp()];
  if (m.arrived != 0) {
    const Thread& other = threads[m.first];
    record(
        {Code::I0002,
         other.site,
         text(op_name(other.op), " by part of a warp: thread ", name(other), " waits here, thread ", name(t), " has ended"),
         {}});
    throw Stop{};
  }
  if (options.hazards && (!t.copies.empty() || !t.arrivals.empty()))
    fail({Code::I0002,
          t.copies.empty() ? t.arrivals.front().site : t.copies.front().site,
          text("cp.async by thread ", name(t), ": the thread ends without waiting for it"),
          {}});
  check_matrix_exit(t);
  t.done = true;
  --live;
  if (t.cluster_arrived && t.cluster_phase == cluster.phase) return;
  --cluster.missing;
  complete_cluster_barrier();
}

}  // namespace tile::emu
