// The CPU device: plans an entry on its first launch and runs it on the interpreter.
#include <map>

#include "vm/runtime/device.h"

namespace tile {
namespace {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(std::shared_ptr<const ValidModule> module) : module_(std::move(module)) {}

  [[nodiscard]] Status load(Diagnostics& diags) {
    // Globals live in memory of their own, so that launches with other arguments find them unchanged.
    auto bases = load_globals(**module_, globals_, diags);
    if (!bases) return Failed;
    for (const uint64_t base : *bases) global_memory_.push_back(*globals_.find(base));
    return {};
  }

  [[nodiscard]] Result<RunStats> launch(const Function& entry, const LaunchGrid& grid, LaunchArguments& args, const RunOptions& options,
                                        Diagnostics& diags) override {
    auto& plan = plans_[{&entry, options.numerics}];
    if (!plan) {
      auto made = Plan::make(module_, entry, diags, options.max_storage, options.numerics);
      if (!made) {
        plans_.erase({&entry, options.numerics});
        return Failed;
      }
      plan = *std::move(made);
    }
    constexpr unsigned __int128 kMaxBlocks = uint64_t{1} << 62;
    if (static_cast<unsigned __int128>(grid[0]) * grid[1] * grid[2] > kMaxBlocks)
      return diags.error(Code::E0805, Place{}, "the grid has more than 2^62 blocks");
    Memory memory;
    std::vector<uint64_t> buffers, globals, params;
    const auto add = [&](std::byte* data, uint64_t size, std::string name) {
      const uint64_t base = memory.add(data, size, std::move(name));
      if (base == 0) (void)diags.error(Code::L0103, Place{}, "an array of " + std::to_string(size) + " bytes is larger than the machine's limit");
      return base;
    };
    const auto names = buffer_names(args, entry_params(**module_, entry));
    for (size_t b = 0; b < args.buffers.size(); ++b)
      buffers.push_back(add(reinterpret_cast<std::byte*>(args.buffers[b].memory.data()), args.buffers[b].memory.size(), names[b]));
    for (const auto& g : global_memory_) globals.push_back(add(g.data, g.size, g.name));
    if (diags.has_errors()) return Failed;
    for (const FlatParam& p : args.params) params.push_back(p.buffer < 0 ? p.bits : buffers[static_cast<size_t>(p.buffer)] + p.byte_offset);
    return run_plan(*plan, memory, globals, {grid[0], grid[1], grid[2]}, params, options, diags);
  }

 private:
  std::shared_ptr<const ValidModule> module_;
  Memory globals_;
  std::vector<Memory::Allocation> global_memory_;
  std::map<std::pair<const Function*, Numerics>, std::shared_ptr<const Plan>> plans_;
};

}  // namespace

Result<const Function*> find_entry(const Module& module, std::string_view name, Diagnostics& diags) {
  Place place;
  place.file = module.file;
  std::string names;
  std::vector<std::string_view> candidates;
  for (const Function& f : module.functions) {
    candidates.push_back(module.str(f.name));
    names += (names.empty() ? "" : ", ") + std::string(candidates.back());
  }
  if (candidates.empty()) return diags.error(Code::E0801, place, "the module has no entry");
  if (name.empty()) {
    if (module.functions.size() == 1) return &module.functions[0];
    return diags.error(Code::E0801, place, "the module has " + std::to_string(candidates.size()) + " entries: " + names, "choose one with --entry NAME");
  }
  if (const Function* f = module.find_function(name)) return f;
  const std::string near = nearest(name, candidates);
  return diags.error(Code::E0801, place, "there is no entry '" + std::string(name) + "'; the module has " + names, near.empty() ? "" : "did you mean '" + near + "'?");
}

std::vector<ParamType> entry_params(const Module& module, const Function& entry) {
  std::vector<ParamType> out;
  for (uint32_t p = 0; p < entry.param_count; ++p) {
    ParamType t;
    t.element = module.types.element_of(entry.type(p));
    if (const TypeId pointee = module.types.pointee_of(entry.type(p)); pointee != kNone) t.pointee = module.types.element_of(pointee);
    if (p < entry.value_names.size()) t.name = module.str(entry.value_names[p]);
    out.push_back(std::move(t));
  }
  return out;
}

Result<std::unique_ptr<Device>> make_cpu_device(std::shared_ptr<const ValidModule> module, Diagnostics& diags) {
  auto device = std::make_unique<CpuDevice>(std::move(module));
  if (!device->load(diags)) return Failed;
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace tile
