// The emulation of a GPU on the host as a machine: the same lowering as for the GPU, run by backend/emulate.
#include <algorithm>
#include <map>
#include <tuple>

#include "backend/device/device_gpu.h"
#include "backend/device/launch_data.h"
#include "backend/device/mailbox.h"
#include "backend/device/tensor_maps.h"
#include "backend/emulate/emulate.h"
#include "backend/plan/target.h"

namespace tile {
namespace {

class EmulatedDevice : public Device {
 public:
  EmulatedDevice(std::shared_ptr<const ValidModule> module, GpuOptions options) : module_(std::move(module)), options_(std::move(options)) {}

  [[nodiscard]] Status load(Diagnostics& diags) {
    auto globals = global_data(**module_, owner_, diags);
    if (!globals) return Failed;
    globals_ = *std::move(globals);
    auto box = AlignedBytes::make(sizeof(Mailbox) + kPrintRingBytes);
    if (!box) return diags.error(Code::E0903, Place{}, "no memory for the mailbox");
    mailbox_ = *std::move(box);
    return {};
  }

  [[nodiscard]] Result<RunStats> launch(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const RunOptions& options, Diagnostics& diags) override {
    EmulatedMemory memory;
    std::vector<uint64_t> buffers, params;
    const auto names = buffer_names(args, entry_params(**module_, entry));
    const auto add = [&](std::byte* data, uint64_t size, const std::string& name) {
      const uint64_t base = memory.add({data, size, name});
      if (base == 0) (void)diags.error(Code::L0103, Place{}, name + ": " + std::to_string(size) + " bytes are larger than the emulation's limit");
      return base;
    };
    for (size_t b = 0; b < args.buffers.size(); ++b)
      buffers.push_back(add(reinterpret_cast<std::byte*>(args.buffers[b].memory.data()), args.buffers[b].memory.size(), names[b]));
    for (const FlatParam& p : args.params) params.push_back(p.buffer < 0 ? p.bits : buffers[static_cast<size_t>(p.buffer)] + p.byte_offset);
    const std::span<std::byte> box{reinterpret_cast<std::byte*>(mailbox_.data()), mailbox_.size()};
    reset_mailbox(box);
    params.push_back(add(box.data(), box.size(), "the mailbox"));
    for (const auto& g : globals_) params.push_back(add(g.data, g.size, g.name));
    if (diags.has_errors()) return Failed;

    // A kernel with as many bulk copies as this launch's arrays allow.
    const auto way = way_of(entry, grid, diags);
    if (!way) return Failed;
    const EmulatedKernel* kernel = nullptr;
    std::vector<EmulatedTensorMap> maps;
    const auto address_of = [&](const FlatParam& p) { return p.buffer < 0 ? p.bits : buffers[static_cast<size_t>(p.buffer)] + p.byte_offset; };
    for (const BulkWay bulk : {BulkWay::All, BulkWay::Loads, BulkWay::None}) {
      kernel = prepare(entry, bulk, *way, diags);
      if (!kernel) return Failed;
      maps.resize(kernel->kernel().maps.size());
      bool all = true;
      for (size_t k = 0; k < maps.size() && all; ++k) {
        TensorMapRequest request;
        std::string why = tensor_map_request(kernel->kernel().maps[k], args, address_of, request);
        if (why.empty()) why = encode_tensor_map(request, maps[k]);
        all = why.empty();
      }
      if (all) break;
    }
    if (!maps.empty()) {
      const uint64_t first = add(reinterpret_cast<std::byte*>(maps.data()), maps.size() * sizeof(EmulatedTensorMap), "the tensor maps");
      for (size_t k = 0; k < maps.size(); ++k) params.push_back(first + k * sizeof(EmulatedTensorMap));
    }

    AlignedBytes local;
    if (const uint64_t per_block = kernel->kernel().local_bytes_per_block; per_block != 0) {
      const auto bytes = local_bytes(**module_, entry, per_block, grid, diags);
      if (!bytes) return Failed;
      auto memory_of_blocks = AlignedBytes::make(*bytes);
      if (!memory_of_blocks) return diags.error(Code::E0903, Place{}, "no memory for the blocks' local memory of " + std::to_string(*bytes) + " bytes");
      local = *std::move(memory_of_blocks);
      params.push_back(add(reinterpret_cast<std::byte*>(local.data()), local.size(), "the blocks' local memory"));
      if (diags.has_errors()) return Failed;
    }
    // Only on request: the emulation itself launches any grid.
    std::array<uint32_t, 3> launched = {grid[0], grid[1], grid[2]};
    if (kernel->kernel().linear_grid || kernel->kernel().loops) {
      const auto parts = launch_parts(grid, true, diags);
      if (!parts) return Failed;
      if (parts->size() != 1) return diags.error(Code::E0808, (**module_).place(entry), "the emulation launches a linear grid of at most " + std::to_string(kMostBlocks) + " blocks");
      launched = (*parts)[0].grid;
      const uint32_t cluster = kernel->kernel().cluster;
      if (kernel->kernel().loops) launched[0] = std::min(launched[0], std::max(cluster, kLoopingBlocks / cluster * cluster));
      add_grid_words(grid, 0, params);
    }

    EmulateOptions run;
    run.threads = options.threads;
    run.fuel = options.fuel;
    run.seed = options_.emulate_seed;
    run.policy = options_.emulate_policy == "early" ? EmulateOptions::Early : options_.emulate_policy == "late" ? EmulateOptions::Late : EmulateOptions::Random;
    run.trap_text = [&](Code code, InstId inst) { return inst < entry.insts.size() ? trap_words(code, **module_, entry, inst) : code_info(code).meaning; };
    if (kernel->kernel().linear_grid || kernel->kernel().loops) run.shown_grid = {grid[0], grid[1], grid[2]};
    run.cancel = options.cancel;
    run.progress = options.progress;
    const auto ran = run_emulated(*kernel, launched, params, memory, run, &**module_, &entry, diags);
    deliver_prints(box, **module_, entry, options.print, diags);
    if (diags.has_errors() || report_trap(box, **module_, entry, diags) || !ran) return Failed;
    RunStats stats;
    stats.blocks = ran->blocks;
    stats.steps = ran->operations;
    stats.seconds = ran->seconds;
    stats.threads = ran->threads;
    stats.storage_bytes = kernel->kernel().shared_bytes;
    return stats;
  }

 private:
  /// Blocks of a launch that loop over those of the grid: few, so that small grids show it.
  static constexpr uint32_t kLoopingBlocks = 3;

  /// How a grid is launched: as on a GPU, but along x on request only.
  [[nodiscard]] Result<GridWay> way_of(const Function& entry, const LaunchGrid& grid, Diagnostics& diags) {
    const auto& plan = options_.build.compile.plan;
    const auto forced = plan.find("grid");
    if (forced != plan.end() && forced->second == "linear") return GridWay::Linear;
    auto at = loop_pays_.find(&entry);
    if (at == loop_pays_.end()) {
      const auto needs = launch_needs(*module_, entry, options_.build.compile, diags);
      if (!needs) return Failed;
      at = loop_pays_.emplace(&entry, needs->loop_pays).first;
    }
    return at->second && can_loop(grid, forced == plan.end() ? kLoopingBlocks : 0) ? GridWay::Loop : GridWay::Program;
  }

  /// The entry compiled for one way of launching it; nullptr after an error.
  const EmulatedKernel* prepare(const Function& entry, BulkWay bulk, GridWay way, Diagnostics& diags) {
    auto& kernel = kernels_[{&entry, bulk, way}];
    if (kernel) return kernel.get();
    CompileOptions options = options_.build.compile;
    choose_ways(way, bulk, options.plan);
    auto made = compile_emulated(*module_, entry, options, diags);
    if (!made) return nullptr;
    kernel = *std::move(made);
    if (options_.built) {
      BuiltKernel built;
      built.compiled = kernel->kernel();
      options_.built(entry, built);
    }
    return kernel.get();
  }

  std::shared_ptr<const ValidModule> module_;
  GpuOptions options_;
  Memory owner_;
  std::vector<Memory::Allocation> globals_;
  AlignedBytes mailbox_;
  std::map<std::tuple<const Function*, BulkWay, GridWay>, std::unique_ptr<EmulatedKernel>> kernels_;
  std::map<const Function*, bool> loop_pays_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_emulated_device(std::shared_ptr<const ValidModule> module, GpuOptions options, Diagnostics& diags) {
  if (!emulation_supported())
    return diags.error(Code::E0916, Place{}, "this processor lacks instructions that emulated kernels use (x86-64-v3: AVX2, FMA, F16C)", "run with --cpu");
  std::string& target = options.build.compile.target;
  if (target.empty()) target = "sm_90a";
  if (!find_target(target)) return diags.error(Code::E0808, Place{}, "there is no target '" + target + "'", "the targets are " + target_names());
  auto device = std::make_unique<EmulatedDevice>(std::move(module), std::move(options));
  if (!device->load(diags)) return Failed;
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace tile
