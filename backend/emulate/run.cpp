// A launch: memory, worker threads, and the diagnostic of what failed.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "backend/emulate/block.h"
#include "backend/emulate/stacks.h"

namespace tile {

uint64_t EmulatedMemory::add(GlobalAllocation allocation) {
  if (table_.size() >= kMaxAllocations || allocation.size > kMaxBytes) return 0;
  table_.push_back(std::move(allocation));
  return (static_cast<uint64_t>(table_.size()) << kOffsetBits) + kMargin;
}

std::string EmulatedMemory::describe(uint64_t address) const {
  const GlobalAllocation* a = find(address);
  if (!a) return "no allocation";
  return "offset " + std::to_string(offset(address)) + " of " + a->name + ", which has " + std::to_string(a->size) +
         " bytes";
}

bool emulation_supported() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

std::vector<EmulationSymbol> emulation_symbols() {
  std::vector<EmulationSymbol> out;
  emu::add_memory_symbols(out);
  emu::add_warp_symbols(out);
  emu::add_math_symbols(out);
  emu::add_mbarrier_symbols(out);
  emu::add_bulk_symbols(out);
  emu::add_wgmma_symbols(out);
  emu::add_cluster_symbols(out);
  return out;
}

namespace {

using emu::Block;
using emu::Launch;

// What an operation needs of its fiber's stack beyond the kernel's frame. The deepest use seen is 7 kB, while a report
// is built, and 12 kB with AddressSanitizer, which also makes frames larger.
constexpr size_t kRuntimeStack = 24 * 1024;
// Each fiber's stack is two memory mappings, of which Linux allows a process 65,530.
constexpr size_t kMostFibers = 16384;

struct Shared {
  Launch launch;
  uint64_t blocks = 0;                       // or clusters
  std::atomic<uint64_t> next{0}, done{0}, operations{0}, switches{0};
  std::mutex mutex;                          // guards what follows
  bool failed = false, no_memory = false;
  emu::Failure failure;
  uint64_t failed_block = 0;
};

void work(Shared& s, bool report) {
  size_t bytes = s.launch.kernel->frame_bytes() + kRuntimeStack;
  auto stacks = emu::StackPool::instance().take(s.launch.all_threads(), bytes);
  if (stacks.empty()) {
    const std::lock_guard lock(s.mutex);
    s.no_memory = true;
    s.launch.stop.store(true);
    return;
  }
  try {
    Block block(s.launch, stacks, bytes);
    uint64_t at = 0;
    while (!s.launch.stop.load(std::memory_order_relaxed) && (at = s.next.fetch_add(1)) < s.blocks) {
      if (!block.run(at)) {
        s.launch.stop.store(true);
        if (!block.failed) break;
        const std::lock_guard lock(s.mutex);
        if (!s.failed || at < s.failed_block) s.failure = std::move(block.failure), s.failed_block = at;  // number of the cluster
        s.failed = true;
        break;
      }
      const uint64_t done = s.done.fetch_add(s.launch.cluster) + s.launch.cluster;
      if (report && s.launch.options->progress) s.launch.options->progress(done, s.blocks * s.launch.cluster);
    }
    s.operations += block.operations;
    s.switches += block.switches;
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(s.mutex);
    s.no_memory = true;
    s.launch.stop.store(true);
  }
  emu::StackPool::instance().give(std::move(stacks), bytes);
}

Place place_of(const Module* module, const Function* function, uint32_t site) {
  if (module && function && site < function->insts.size()) return module->place(*function, site);
  Place p;
  if (site != kNone) p.instruction = site;
  return p;
}

}  // namespace

Result<EmulateStats> run_emulated(const EmulatedKernel& kernel, std::array<uint32_t, 3> grid,
                                  std::span<const uint64_t> params, const EmulatedMemory& memory,
                                  const EmulateOptions& options, const Module* module, const Function* function,
                                  Diagnostics& diags) {
  if (!emulation_supported())
    return diags.error(Code::E0916, {}, "the emulation needs an x86-64 processor with AVX2, FMA and BMI2");
  const auto start = std::chrono::steady_clock::now();
  const CompiledKernel& k = kernel.kernel();
  Shared s;
  s.launch.kernel = &kernel;
  s.launch.grid = grid;
  s.launch.params = params.data();
  s.launch.memory = &memory;
  s.launch.options = &options;
  s.launch.threads = k.threads;
  s.launch.shared_bytes = k.shared_bytes;
  // As a launch does: a grid that the cluster does not divide has none.
  if (k.cluster > 1 && grid[0] % k.cluster == 0) s.launch.cluster = k.cluster;
  s.blocks = uint64_t{grid[0]} / s.launch.cluster * grid[1] * grid[2];
  if (s.launch.cluster > 16 || (s.launch.cluster > 1 && k.threads % 32 != 0))
    return diags.error(Code::I0001, {}, "a cluster of " + std::to_string(s.launch.cluster) + " blocks of " + std::to_string(k.threads) + " threads; 2 to 16 blocks of whole warps are possible");
  if (k.threads == 0 || k.threads > 1024)
    return diags.error(Code::I0001, {}, "a block of " + std::to_string(k.threads) + " threads; 1 to 1024 are possible");
  uint64_t workers = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  workers = std::max<uint64_t>(1, std::min({workers, s.blocks, uint64_t{kMostFibers / s.launch.all_threads()}}));
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < workers; ++i) {
    try {
      others.emplace_back([&s] { work(s, false); });
    } catch (const std::system_error&) {
      break;  // fewer workers do as well
    }
  }
  work(s, true);
  for (auto& t : others) t.join();

  if (s.failed) {
    const auto& f = s.failure;
    if (f.code == Code::E0903) return diags.error(f.code, {}, "no memory for the emulation");
    Diagnostic d{f.code, place_of(module, function, f.site), f.message, {}, {}, {}};
    if (options.trap_text && code_info(f.code).cls == FailureClass::Trap && f.trapped)
      d.message = options.trap_text(f.code, f.site);
    const uint64_t clusters = grid[0] / s.launch.cluster, row = s.failed_block / clusters;
    const uint64_t b = row * grid[0] + s.failed_block % clusters * s.launch.cluster + f.rank;
    const auto& g = options.shown_grid[0] ? options.shown_grid : grid;
    d.message += ", in block (" + std::to_string(b % g[0]) + ", " + std::to_string(b / g[0] % g[1]) + ", " +
                 std::to_string(b / g[0] / g[1]) + ")";
    for (const auto& [site, note] : f.notes) d.notes.push_back({place_of(module, function, site), note});
    return diags.error(std::move(d));
  }
  if (s.no_memory) return diags.error(Code::E0903, {}, "no memory for the fibers of a block");
  if (s.launch.stop.load()) return Failed;  // cancelled: who did it knows why
  EmulateStats stats;
  stats.blocks = s.done.load();
  stats.operations = s.operations.load();
  stats.switches = s.switches.load();
  stats.threads = static_cast<unsigned>(workers);
  stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return stats;
}

}  // namespace tile
