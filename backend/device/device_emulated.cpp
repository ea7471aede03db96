// The emulation of a GPU on the host as a machine: the same lowering as for the GPU, run by backend/emulate.
#include <map>

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

    // A kernel with bulk copies if this launch's arrays allow them, else one without.
    const EmulatedKernel* kernel = prepare(entry, true, diags);
    if (!kernel) return Failed;
    std::vector<EmulatedTensorMap> maps(kernel->kernel().maps.size());
    const auto address_of = [&](const FlatParam& p) { return p.buffer < 0 ? p.bits : buffers[static_cast<size_t>(p.buffer)] + p.byte_offset; };
    for (size_t k = 0; k < maps.size(); ++k) {
      TensorMapRequest request;
      std::string why = tensor_map_request(kernel->kernel().maps[k], args, address_of, request);
      if (why.empty()) why = encode_tensor_map(request, maps[k]);
      if (!why.empty()) {
        kernel = prepare(entry, false, diags);
        if (!kernel) return Failed;
        maps.clear();
      }
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
    if (kernel->kernel().linear_grid) {
      const auto parts = launch_parts(grid, true, diags);
      if (!parts) return Failed;
      if (parts->size() != 1) return diags.error(Code::E0808, (**module_).place(entry), "the emulation launches a linear grid of at most " + std::to_string(kMostBlocks) + " blocks");
      launched = (*parts)[0].grid;
      add_grid_words(grid, 0, params);
    }

    EmulateOptions run;
    run.threads = options.threads;
    run.fuel = options.fuel;
    run.seed = options_.emulate_seed;
    run.policy = options_.emulate_policy == "early" ? EmulateOptions::Early : options_.emulate_policy == "late" ? EmulateOptions::Late : EmulateOptions::Random;
    run.trap_text = [&](Code code, InstId inst) { return inst < entry.insts.size() ? trap_words(code, **module_, entry, inst) : code_info(code).meaning; };
    if (kernel->kernel().linear_grid) run.shown_grid = {grid[0], grid[1], grid[2]};
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
  /// The entry compiled with or without bulk copies; nullptr after an error.
  const EmulatedKernel* prepare(const Function& entry, bool bulk_copies, Diagnostics& diags) {
    auto& kernel = kernels_[{&entry, bulk_copies}];
    if (kernel) return kernel.get();
    CompileOptions options = options_.build.compile;
    if (!bulk_copies) options.plan["tma"] = "off";
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
  std::map<std::pair<const Function*, bool>, std::unique_ptr<EmulatedKernel>> kernels_;
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
