// Names and globals.
#include "backend/device/launch_data.h"

#include "vm/interp/exec.h"

namespace tile {

std::vector<std::string> buffer_names(const LaunchArguments& args) {
  std::vector<std::string> names;
  for (size_t b = 0; b < args.buffers.size(); ++b) {
    names.push_back("buffer " + std::to_string(b));
    for (size_t a = 0; a < args.bindings.size(); ++a)
      if (args.bindings[a].buffer == static_cast<int32_t>(b)) {
        names.back() = argument_label(a, "");
        break;
      }
  }
  return names;
}

Result<std::vector<Memory::Allocation>> global_data(const Module& module, Memory& owner, Diagnostics& diags) {
  const auto bases = load_globals(module, owner, diags);
  if (!bases) return Failed;
  std::vector<Memory::Allocation> out;
  for (const uint64_t base : *bases) out.push_back(*owner.find(base));
  return out;
}

}  // namespace tile
