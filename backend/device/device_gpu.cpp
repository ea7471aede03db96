// The GPU: builds an entry on its first launch, and runs it on copies of the arguments' buffers in device memory.
#include "backend/device/device_gpu.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "backend/device/launch_data.h"
#include "backend/cuda/tensor_map.h"
#include "backend/device/mailbox.h"
#include "backend/device/matrix_rate.h"
#include "backend/device/tensor_maps.h"
#include "backend/plan/target.h"

namespace tile {

using cuda::DeviceMemory;
using cuda::Gpu;
using cuda::LaunchParam;
using cuda::LaunchShape;

namespace {

uint32_t bytes_of(ElementType e) {
  if (e == ElementType::Ptr) return 8;
  return std::max<uint32_t>(1, info(e).storage);
}

}  // namespace

/// What a launch spends its time on. A phase that comes again adds to the first.
class Phases {
 public:
  void end(const char* name) {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    begin_ = now;
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& p) { return p.first == name; });
    if (at == all_.end())
      all_.emplace_back(name, seconds);
    else
      at->second += seconds;
  }
  void begin() { begin_ = Clock::now(); }
  [[nodiscard]] std::vector<std::pair<std::string, double>> take() { return std::exchange(all_, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  std::vector<std::pair<std::string, double>> all_;
};

class GpuDeviceImpl : public GpuDevice {
 public:
  GpuDeviceImpl(std::shared_ptr<const ValidModule> module, GpuOptions options, std::shared_ptr<Gpu> gpu, std::unique_ptr<cuda::Linker> linker, cuda::Cache cache, Phases phases)
      : module_(std::move(module)), options_(std::move(options)), gpu_(std::move(gpu)), linker_(std::move(linker)), cache_(std::move(cache)), phases_(std::move(phases)) {}

  /// Globals live as long as the device, so that they keep their values between launches.
  [[nodiscard]] Status load(Diagnostics& diags) {
    auto box = gpu_->allocate_shared(mailbox_size(**module_), diags);
    if (!box) return Failed;
    mailbox_ = *std::move(box);
    if (!(**module_).globals.empty() && !load_globals(diags)) return Failed;
    phases_.end("memory");
    return {};
  }

  [[nodiscard]] const cuda::DeviceFacts& facts() const override { return gpu_->facts(); }

  [[nodiscard]] Result<const BuiltKernel*> build(const Function& entry, Diagnostics& diags) override {
    const auto ready = prepare(entry, diags);
    if (!ready) return Failed;
    return static_cast<const BuiltKernel*>(&(*ready)->built);
  }

  [[nodiscard]] Result<RunStats> launch(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const RunOptions& options, Diagnostics& diags) override {
    phases_.begin();
    auto way = way_of(entry, grid, diags);
    if (!way) return Failed;
    phases_.end("plan");
    std::vector<DeviceMemory> buffers;
    if (!gpu_->enter(diags) || !upload(entry, args, buffers, diags)) return Failed;
    phases_.end("memory");
    DeviceMemory maps, local;
    const auto ready = prepare_for(entry, args, buffers, maps, *way, diags);
    if (!ready || !allocate_local(entry, **ready, grid, local, diags)) return Failed;
    const bool linear = *way != GridWay::Program;
    const auto parts = parts_of(grid, *way, **ready, diags);
    if (!parts) return Failed;
    phases_.end("memory");
    const auto box = mailbox_bytes();
    reset_mailbox(box);
    Diagnostics faults;
    Result<double> seconds = 0.0;
    for (const LaunchPart& part : *parts) {
      const auto params = words(args, buffers, maps, (*ready)->maps.size(), local, linear ? &grid : nullptr, part.first);
      const auto took = gpu_->launch((*ready)->loaded, shape((*ready)->built, part.grid), params, options.cancel, faults);
      seconds = seconds && took ? Result<double>(*seconds + *took) : Result<double>(Failed);
      // A trap in the mailbox says more than the error that the driver makes of it.
      const LinearGrid numbers{{grid[0], grid[1], grid[2]}, part.first};
      const bool trapped = report_trap(box, **module_, entry, diags, linear ? &numbers : nullptr);
      if (trapped) deliver_prints(box, **module_, entry, options.print, diags);
      if (trapped) return Failed;
      if (!seconds) break;
    }
    if (seconds) deliver_prints(box, **module_, entry, options.print, diags);
    for (const Diagnostic& d : faults.all()) {
      Diagnostic placed = d;
      if (placed.place.function.empty()) placed.place = (**module_).place(entry);
      (void)diags.error(std::move(placed));
    }
    if (!seconds) return Failed;
    phases_.end("launch");
    if (!download(args, buffers, diags)) return Failed;
    phases_.end("results");
    RunStats stats;
    stats.blocks = uint64_t{grid[0]} * grid[1] * grid[2];
    stats.seconds = *seconds;
    const auto phases = phases_.take();
    if (options_.launched) options_.launched(phases);
    if (options.progress) options.progress(stats.blocks, stats.blocks);
    return stats;
  }

  [[nodiscard]] Result<BenchResult> bench(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const BenchOptions& options, Diagnostics& diags) override;
  [[nodiscard]] Result<std::unique_ptr<PreparedLaunch>> prepare_launch(const Function& entry, const LaunchGrid& grid, std::span<const uint64_t> params, Diagnostics& diags) override;

 private:
  [[nodiscard]] Status load_globals(Diagnostics& diags) {
    Memory owner;  // making one takes a millisecond or two
    const auto globals = global_data(**module_, owner, diags);
    if (!globals) return Failed;
    for (const auto& g : *globals) {
      auto memory = gpu_->allocate(g.size, g.name, diags);
      if (!memory || !gpu_->upload(*memory, g.data, g.size, diags)) return Failed;
      globals_.push_back(*std::move(memory));
    }
    return {};
  }

  struct Ready {
    BuiltKernel built;
    cuda::LoadedKernel loaded;
    std::vector<TensorMapSpec> maps;
    uint64_t local_bytes_per_block = 0;
  };

  /// How a grid is launched: along x where it must be or is asked for, by blocks that loop where that pays.
  [[nodiscard]] Result<GridWay> way_of(const Function& entry, const LaunchGrid& grid, Diagnostics& diags) {
    const auto forced = options_.build.compile.plan.find("grid");
    if (needs_linear_grid(grid) || (forced != options_.build.compile.plan.end() && forced->second == "linear")) return GridWay::Linear;
    auto at = loop_pays_.find(&entry);
    if (at == loop_pays_.end()) {
      const auto needs = launch_needs(*module_, entry, options_.build.compile, diags);
      if (!needs) return Failed;
      at = loop_pays_.emplace(&entry, needs->loop_pays).first;
    }
    const bool chosen = forced == options_.build.compile.plan.end();
    if (!at->second || !can_loop(grid, chosen ? facts().sm_count : 0)) return GridWay::Program;
    if (!chosen || loop_fits_.contains(&entry)) return GridWay::Loop;
    // A block that loops keeps more in registers, and has fewer of them beside a producer. What it spills costs more than looping gains.
    const auto looping = prepare(entry, diags, BulkWay::All, GridWay::Loop);
    if (!looping) return Failed;
    if ((*looping)->loaded.local_bytes() > kFewSpills) {
      const auto plain = prepare(entry, diags);
      if (!plain) return Failed;
      if ((*plain)->loaded.local_bytes() < (*looping)->loaded.local_bytes()) {
        at->second = false;
        return GridWay::Program;
      }
    }
    loop_fits_.insert(&entry);
    return GridWay::Loop;
  }

  /// The entry built for one way of launching it.
  [[nodiscard]] Result<Ready*> prepare(const Function& entry, Diagnostics& diags, BulkWay bulk = BulkWay::All, GridWay way = GridWay::Program) {
    if (!gpu_->enter(diags)) return Failed;
    auto& slot = ready_[{&entry, bulk, way}];
    if (slot) return slot.get();
    BuildOptions options = options_.build;
    choose_ways(way, bulk, options.compile.plan);
    auto needs = launch_needs(*module_, entry, options.compile, diags);
    if (!needs) return Failed;
    phases_.end("plan");
    auto built = build_kernel(*module_, entry, options, *linker_, cache_, diags);
    if (!built) return Failed;
    phases_.end(built->use == cuda::CacheUse::Hit ? "cache" : "compile");
    auto ready = std::make_unique<Ready>();
    ready->built = *std::move(built);
    ready->maps = std::move(needs->maps);
    ready->local_bytes_per_block = local_memory(**module_, entry).bytes;
    if (options_.built) options_.built(entry, ready->built);
    auto loaded = gpu_->load(ready->built.kernel.cubin, ready->built.kernel.symbol, ready->built.kernel.shared_bytes, diags);
    if (!loaded) return Failed;
    ready->loaded = *std::move(loaded);
    phases_.end("load");
    if (auto& k = ready->built.kernel; k.cluster > 1 && !ready->loaded.holds_cluster(k.cluster, k.threads, k.shared_bytes)) {
      diags.warn((**module_).place(entry), gpu_->facts().name + " cannot hold " + std::to_string(k.cluster) + " blocks of the kernel as a cluster; it is launched without clusters");
      k.cluster = 1;
    }
    return (slot = std::move(ready)).get();
  }

  /// The kernel for this launch, and its tensor maps in device memory: with as many bulk copies as the driver encodes maps for these arrays.
  /// @param way  how it should be launched; how it is: blocks do not loop where that pays with bulk copies only
  [[nodiscard]] Result<Ready*> prepare_for(const Function& entry, const LaunchArguments& args, const std::vector<DeviceMemory>& buffers, DeviceMemory& maps, GridWay& way,
                                           Diagnostics& diags) {
    for (const BulkWay bulk : {BulkWay::All, BulkWay::Loads, BulkWay::None}) {
      if (bulk == BulkWay::None && way == GridWay::Loop && !options_.build.compile.plan.contains("grid")) {
        CompileOptions copies = options_.build.compile;
        choose_ways(GridWay::Program, bulk, copies.plan);
        const auto needs = launch_needs(*module_, entry, copies, diags);
        if (!needs) return Failed;
        if (!needs->loop_pays) way = GridWay::Program;
      }
      auto ready = prepare(entry, diags, bulk, way);
      if (!ready || (*ready)->maps.empty()) return ready;
      std::vector<cuda::TensorMap> encoded((*ready)->maps.size());
      bool all = true;
      for (size_t k = 0; k < encoded.size() && all; ++k) {
        const TensorMapSpec& spec = (*ready)->maps[k];
        TensorMapRequest r;
        const std::string why = tensor_map_request(spec, args, [&](const FlatParam& p) { return value(p, buffers); }, r);
        all = why.empty() &&
              cuda::encode_tensor_map(gpu_->driver(), {spec.element, r.address, r.rank, r.dims, r.strides, r.box, spec.swizzle, r.fill_nan, r.round_tf32}, encoded[k]);
      }
      if (!all) continue;
      auto memory = gpu_->allocate(encoded.size() * sizeof(cuda::TensorMap), "tensor maps", diags);
      if (!memory || !gpu_->upload(*memory, encoded.data(), encoded.size() * sizeof(cuda::TensorMap), diags)) return Failed;
      maps = *std::move(memory);
      return ready;
    }
    return diags.error(Code::I0001, (**module_).place(entry), "a kernel without bulk copies has tensor maps");
  }

  /// The launches of a grid by a kernel that is made for it.
  [[nodiscard]] Result<std::vector<LaunchPart>> parts_of(const LaunchGrid& grid, GridWay way, const Ready& ready, Diagnostics& diags) const {
    auto parts = launch_parts(grid, way != GridWay::Program, diags);
    if (!parts) return Failed;
    if (way == GridWay::Loop) {
      const unsigned on_sm = std::max(1u, ready.loaded.blocks_per_sm(ready.built.kernel.threads, ready.built.kernel.shared_bytes));
      for (LaunchPart& part : *parts) part.grid[0] = std::min(part.grid[0], facts().sm_count * on_sm);
    }
    for (const LaunchPart& part : *parts)
      if (!gpu_->check_grid(part.grid, diags)) return Failed;
    return parts;
  }

  [[nodiscard]] Status allocate_local(const Function& entry, const Ready& ready, const LaunchGrid& grid, DeviceMemory& local, Diagnostics& diags) const {
    if (ready.local_bytes_per_block == 0) return {};
    const auto bytes = local_bytes(**module_, entry, ready.local_bytes_per_block, grid, diags);
    if (!bytes) return Failed;
    auto memory = gpu_->allocate(*bytes, "the blocks' local memory", diags);
    if (!memory) return Failed;
    local = *std::move(memory);
    return {};
  }

  [[nodiscard]] std::span<std::byte> mailbox_bytes() const { return {mailbox_.data(), mailbox_.size()}; }

  [[nodiscard]] static LaunchShape shape(const BuiltKernel& built, const std::array<uint32_t, 3>& grid) {
    return {grid, built.kernel.threads, built.kernel.shared_bytes, built.kernel.cluster};
  }

  [[nodiscard]] Status upload(const Function& entry, const LaunchArguments& args, std::vector<DeviceMemory>& buffers, Diagnostics& diags) const {
    const auto names = buffer_names(args, entry_params(**module_, entry));
    for (size_t b = 0; b < args.buffers.size(); ++b) {
      const auto& host = args.buffers[b].memory;
      auto memory = gpu_->allocate(host.size(), names[b], diags);
      if (!memory || !gpu_->upload(*memory, host.data(), host.size(), diags)) return Failed;
      buffers.push_back(*std::move(memory));
    }
    return {};
  }
  [[nodiscard]] Status download(LaunchArguments& args, const std::vector<DeviceMemory>& buffers, Diagnostics& diags) const {
    for (size_t b = 0; b < args.buffers.size(); ++b)
      if (!gpu_->download(args.buffers[b].memory.data(), buffers[b], args.buffers[b].memory.size(), diags)) return Failed;
    return {};
  }

  static uint64_t value(const FlatParam& p, const std::vector<DeviceMemory>& buffers) {
    return p.buffer < 0 ? p.bits : buffers[static_cast<size_t>(p.buffer)].address() + p.byte_offset;
  }
  /// A kernel of ours: words of 64 bits, then the hidden ones.
  [[nodiscard]] std::vector<LaunchParam> words(const LaunchArguments& args, const std::vector<DeviceMemory>& buffers, const DeviceMemory& maps, size_t map_count,
                                               const DeviceMemory& local, const LaunchGrid* linear, uint64_t first, const cuda::SharedMemory* mailbox = nullptr) const {
    std::vector<LaunchParam> out;
    for (const FlatParam& p : args.params) out.push_back({value(p, buffers), 8});
    out.push_back({(mailbox ? *mailbox : mailbox_).address(), 8});
    for (const DeviceMemory& g : globals_) out.push_back({g.address(), 8});
    for (size_t k = 0; k < map_count; ++k) out.push_back({maps.address() + k * sizeof(cuda::TensorMap), 8});
    if (local.address() != 0) out.push_back({local.address(), 8});
    std::vector<uint64_t> numbers;
    if (linear) add_grid_words(*linear, first, numbers);
    for (const uint64_t n : numbers) out.push_back({n, 8});
    return out;
  }
  /// A kernel of another compiler: every parameter in its own size, nothing more.
  [[nodiscard]] static std::vector<LaunchParam> natural(const LaunchArguments& args, const std::vector<DeviceMemory>& buffers) {
    std::vector<LaunchParam> out;
    for (const FlatParam& p : args.params) out.push_back({value(p, buffers), p.buffer < 0 ? bytes_of(p.type) : 8});
    return out;
  }

  std::shared_ptr<const ValidModule> module_;
  GpuOptions options_;
  std::shared_ptr<Gpu> gpu_;
  std::unique_ptr<cuda::Linker> linker_;
  cuda::Cache cache_;
  Phases phases_;
  cuda::SharedMemory mailbox_;
  std::vector<DeviceMemory> globals_;
  std::map<std::tuple<const Function*, BulkWay, GridWay>, std::unique_ptr<Ready>> ready_;
  std::map<const Function*, bool> loop_pays_;
  std::set<const Function*> loop_fits_;    ///< their kernels that loop are in use
  /// Bytes of local memory a thread of a kernel that loops may have. 1,448 made a product of 128 x 256 with an epilogue a sixth slower on an H200, 8 did nothing.
  static constexpr unsigned kFewSpills = 64;
};

Result<BenchResult> GpuDeviceImpl::bench(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const BenchOptions& options, Diagnostics& diags) {
  auto way = way_of(entry, grid, diags);
  if (!way) return Failed;
  if (const auto all = launch_parts(grid, *way != GridWay::Program, diags); !all) {
    return Failed;
  } else if (all->size() != 1 || (needs_linear_grid(grid) && !options.peer_cubin.empty())) {
    return diags.error(Code::E0808, Place{}, "this grid takes several launches, or one that the peer cannot have; times would not compare", "use a smaller grid");
  }
  std::vector<DeviceMemory> buffers, peer_buffers;
  if (!gpu_->enter(diags) || !upload(entry, args, buffers, diags)) return Failed;
  DeviceMemory maps, local;
  const auto ready = prepare_for(entry, args, buffers, maps, *way, diags);
  if (!ready || !allocate_local(entry, **ready, grid, local, diags)) return Failed;
  const bool linear = *way != GridWay::Program;
  const auto parts = parts_of(grid, *way, **ready, diags);
  if (!parts) return Failed;
  const auto& ours = (*ready)->loaded;
  BenchResult result;
  result.registers = ours.registers();
  result.local_bytes = ours.local_bytes();
  result.shared_bytes = ours.static_shared_bytes() + (*ready)->built.kernel.shared_bytes;
  result.threads = (*ready)->built.kernel.threads;
  result.blocks_per_sm = ours.blocks_per_sm(result.threads, (*ready)->built.kernel.shared_bytes);
  const bool with_peer = !options.peer_cubin.empty();
  if (with_peer && !upload(entry, args, peer_buffers, diags)) return Failed;
  const LaunchShape our_shape = shape((*ready)->built, (*parts)[0].grid);
  // Kernels of NVIDIA's compiler know their own number of threads; they are launched with a block of one.
  const auto& other = options.peer_grid[0] != 0 ? options.peer_grid : grid;
  const LaunchShape peer_shape{{other[0], other[1], other[2]}, 1, 0, 1};
  const auto our_params = words(args, buffers, maps, (*ready)->maps.size(), local, linear ? &grid : nullptr, 0);
  const auto peer_params = with_peer ? natural(args, peer_buffers) : std::vector<LaunchParam>();
  cuda::LoadedKernel peer;
  if (with_peer) {
    auto loaded = gpu_->load(options.peer_cubin, options.peer_entry, 0, diags, "the peer's cubin");
    if (!loaded) return Failed;
    peer = *std::move(loaded);
  }
  reset_mailbox(mailbox_bytes());
  // First launches: their results are what is compared.
  Diagnostics faults;
  const auto first = gpu_->launch(ours, our_shape, our_params, nullptr, faults);
  if (report_trap(mailbox_bytes(), **module_, entry, diags)) return Failed;
  for (const Diagnostic& d : faults.all()) (void)diags.error(d);
  if (!first || !download(args, buffers, diags)) return Failed;
  if (with_peer) {
    if (!gpu_->launch(peer, peer_shape, peer_params, nullptr, diags)) {
      diags.warn(Place{}, "the error above is that of the peer's kernel");
      return Failed;
    }
    for (const DeviceMemory& b : peer_buffers) {
      std::vector<uint8_t> bytes(b.size());
      if (!gpu_->download(bytes.data(), b, bytes.size(), diags)) return Failed;
      result.peer_buffers.push_back(std::move(bytes));
    }
  }
  // Overwriting five times the L2 cache leaves nothing of the data in it. 256 MB is what others use on large GPUs.
  const size_t flush_bytes = options.flush ? std::max<size_t>(size_t{256} << 20, 5 * facts().l2_bytes) : 0;
  auto flush = gpu_->allocate(flush_bytes, "flushing the L2 cache", diags);
  const size_t copy_bytes = std::min<size_t>(size_t{512} << 20, facts().memory_bytes / 16);
  auto from = gpu_->allocate(copy_bytes, "measuring the copy rate", diags), to = gpu_->allocate(copy_bytes, "measuring the copy rate", diags);
  if (!flush || !from || !to) return Failed;
  if (!gpu_->fill(*from, 1, diags) || !gpu_->fill(*to, 2, diags) || !gpu_->synchronize(diags)) return Failed;
  result.copy_bytes = 2 * copy_bytes;
  constexpr unsigned kLeast = 10, kMost = 200, kCopyRounds = 20;
  constexpr double kWarmSeconds = 0.2, kMeasureSeconds = 0.5;
  // Warm clocks: launches without pause until the GPU has had time to raise them.
  double spent = 0;
  for (unsigned i = 0; spent < kWarmSeconds && i < 10000; ++i) {
    const auto t = gpu_->time_launch(ours, our_shape, our_params, DeviceMemory(), diags);
    if (!t) return Failed;
    spent += std::max(*t, 5e-6);
  }
  unsigned rounds = options.rounds;
  if (rounds == 0) rounds = static_cast<unsigned>(std::clamp(kMeasureSeconds / std::max(*first, 1e-5), double{kLeast}, double{kMost}));
  // In turn, so that a change of the clocks touches all alike.
  for (unsigned r = 0; r < rounds; ++r) {
    const auto a = gpu_->time_launch(ours, our_shape, our_params, *flush, diags);
    if (!a) return Failed;
    result.ours.seconds.push_back(*a);
    if (with_peer) {
      const auto b = gpu_->time_launch(peer, peer_shape, peer_params, *flush, diags);
      if (!b) return Failed;
      result.peer.seconds.push_back(*b);
    }
    if (r < kCopyRounds) {
      const auto c = gpu_->time_copy(*to, *from, copy_bytes, *flush, diags);
      if (!c) return Failed;
      result.copy.seconds.push_back(*c);
    }
  }
  if (report_trap(mailbox_bytes(), **module_, entry, diags)) return Failed;
  // Behind all other rounds: what it takes of the device's power would show in theirs.
  if (const auto type = product_type(**module_, entry)) {
    auto rate = measure_matrix_rate(*gpu_, *linker_, *type, (*ready)->built.target, *flush, diags);
    if (!rate) return Failed;
    result.mma = *std::move(rate);
  }
  return result;
}

Result<std::unique_ptr<PreparedLaunch>> GpuDeviceImpl::prepare_launch(const Function& entry, const LaunchGrid& grid, std::span<const uint64_t> params, Diagnostics& diags) {
  const auto types = entry_params(**module_, entry);
  if (params.size() != types.size())
    return diags.error(Code::E0802, (**module_).place(entry), std::to_string(params.size()) + " parameters are given, expected " + std::to_string(types.size()));
  LaunchArguments args;  // every value is known, so there are no buffers
  for (size_t p = 0; p < params.size(); ++p) args.params.push_back({types[p].element, params[p], -1, 0});
  auto launch = std::make_unique<PreparedLaunch>();
  auto way = way_of(entry, grid, diags);
  if (!way || !gpu_->enter(diags)) return Failed;
  const auto ready = prepare_for(entry, args, {}, launch->maps_, *way, diags);
  if (!ready || !allocate_local(entry, **ready, grid, launch->local_, diags)) return Failed;
  const bool linear = *way != GridWay::Program;
  const auto parts = parts_of(grid, *way, **ready, diags);
  if (!parts) return Failed;
  auto box = gpu_->allocate_shared(mailbox_size(**module_), diags);
  if (!box) return Failed;
  launch->mailbox_ = *std::move(box);
  reset_mailbox({launch->mailbox_.data(), launch->mailbox_.size()});
  launch->gpu_ = gpu_.get();
  launch->kernel_ = &(*ready)->loaded;
  launch->module_ = module_;
  launch->entry_ = &entry;
  launch->grid_ = grid;
  launch->linear_ = linear;
  const bool waits = std::any_of(entry.insts.begin(), entry.insts.end(), [](const Inst& i) { return i.op == Opcode::GdcWaitTko; });
  for (const LaunchPart& part : *parts) {
    PreparedLaunch::Part p{shape((*ready)->built, part.grid), {}, {}, part.first};
    p.shape.programmatic = waits;
    for (const LaunchParam& w : words(args, {}, launch->maps_, (*ready)->maps.size(), launch->local_, linear ? &grid : nullptr, part.first, &launch->mailbox_)) p.words.push_back(w.bits);
    for (uint64_t& w : p.words) p.pointers.push_back(&w);
    launch->parts_.push_back(std::move(p));  // moving a vector leaves its elements where they are
  }
  return launch;
}

double Timing::quantile(double q) const {
  if (seconds.empty()) return 0;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - std::floor(at));
}
double Timing::median() const { return quantile(0.5); }

Result<std::unique_ptr<GpuDevice>> make_gpu_device(std::shared_ptr<const ValidModule> module, GpuOptions options, Diagnostics& diags) {
  Phases phases;
  if (!cuda::Driver::load(diags)) return Failed;
  phases.end("driver");
  auto gpu = options.current_context ? Gpu::of_current_context(diags) : Gpu::open(diags, options.ordinal);
  if (!gpu) return Failed;
  phases.end("context");
  const cuda::DeviceFacts& facts = (*gpu)->facts();
  std::string& target = options.build.compile.target;
  if (target.empty()) {
    target = target_for(facts.sm);
    if (target.empty())
      return diags.error(Code::E0808, Place{}, facts.name + " has compute capability " + std::to_string(facts.sm / 10) + "." + std::to_string(facts.sm % 10) + ", which is none of the targets",
                         "the targets are " + target_names());
  }
  if (!find_target(target)) return diags.error(Code::E0808, Place{}, "there is no target '" + target + "'", "the targets are " + target_names());
  if (!runs_on(target, facts.sm))
    return diags.error(Code::E0808, Place{}, facts.name + " does not run code for " + target, "leave --target out, or write it together with --emit only");
  cuda::Cache cache = cuda::Cache::standard(diags);
  auto linker = choose_linker(&(*gpu)->driver(), facts.sm, target, diags, options.build.cache ? cache.root() : std::string());
  if (!linker) return Failed;
  phases.end("assembler");
  auto device = std::make_unique<GpuDeviceImpl>(std::move(module), std::move(options), *gpu, *std::move(linker), std::move(cache), std::move(phases));
  if (!device->load(diags)) return Failed;
  return std::unique_ptr<GpuDevice>(std::move(device));
}

}  // namespace tile
