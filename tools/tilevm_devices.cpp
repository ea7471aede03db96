// tilevm devices: what GPUs, driver, assembler and cache there are. And the disassembler of --emit sass.
#ifdef TILEVM_WITH_GPU

#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/cuda/link.h"
#include "tools/cli_docs.h"
#include "tools/tilevm_gpu_parts.h"

namespace tile::cli {

Result<std::string> disassemble(const std::vector<uint8_t>& cubin, Diagnostics& diags) {
  // Either does: nvdisasm shows labels, cuobjdump is in more packages.
  auto path = cuda::find_cuda_program("nvdisasm", "TILEVM_NVDISASM", diags);
  if (!path) return Failed;
  if (path->empty()) path = cuda::find_cuda_program("cuobjdump", "TILEVM_NVDISASM", diags);
  if (!path) return Failed;
  if (path->empty())
    return diags.error(Code::E0904, Place{}, "--emit sass needs nvdisasm or cuobjdump, which were not found", "TILEVM_NVDISASM names either; pip install nvidia-cuda-nvdisasm brings one");
  const bool cuobjdump = path->substr(path->rfind('/') + 1).starts_with("cuobjdump");
  const std::vector<std::string> arguments = cuobjdump ? std::vector<std::string>{"-sass", "/proc/self/fd/3"} : std::vector<std::string>{"-c", "-g", "/proc/self/fd/3"};
  const int fd = ::memfd_create("kernel.cubin", MFD_CLOEXEC);
  size_t done = 0;
  while (fd >= 0 && done < cubin.size()) {
    const ssize_t n = ::write(fd, cubin.data() + done, cubin.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  std::string output;
  const int status = done == cubin.size() && fd >= 0 ? cuda::run_tool(*path, arguments, {fd}, output) : -1;
  if (fd >= 0) ::close(fd);
  if (status != 0) return diags.error(Code::E0915, Place{}, *path + " ended with status " + std::to_string(status) + (output.empty() ? "" : ": " + output));
  return output;
}

int devices_command(int argc, const char* const* argv) {
  CommonOptions common;
  bool json = false;
  CLI::App app{"Show the GPUs, their driver, the assembler and the cache of compiled kernels", "tilevm devices"};
  use_help_text(app);
  app.footer("Environment:\n  TILEVM_DRIVER, TILEVM_DEVICE, TILEVM_PTXAS, TILEVM_CACHE and TILEVM_CACHE_SIZE choose others.\n\nExamples:\n  tilevm devices\n  tilevm devices --json");
  app.add_flag("--json", json, "Print JSON");
  add_common_options(app, common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  Diagnostics diags, assembler_diags;
  nlohmann::ordered_json j;
  j["devices"] = nlohmann::ordered_json::array();
  std::string text;
  const auto driver = cuda::Driver::load(diags);
  if (driver) {
    const cuda::Driver& d = **driver;
    const unsigned ptx = cuda::highest_ptx_version(d.version());
    const std::string ptx_text = std::to_string(ptx / 10) + "." + std::to_string(ptx % 10);
    j["driver"] = {{"cuda", d.version_text()}, {"version", d.kernel_module_version()}, {"library", d.path()}, {"highest_ptx", ptx_text}};
    text += "driver     CUDA " + d.version_text() + ", " + (d.kernel_module_version().empty() ? "version unknown" : d.kernel_module_version()) + ", PTX up to " + ptx_text + "\n";
    if (const auto devices = d.devices(diags))
      for (const auto& f : *devices) {
        const std::string target = target_for(f.sm);
        j["devices"].push_back({{"ordinal", f.ordinal}, {"name", f.name}, {"sm", f.sm}, {"target", target}, {"uuid", f.uuid}, {"sms", f.sm_count}, {"memory_bytes", f.memory_bytes},
                                {"l2_bytes", f.l2_bytes}, {"shared_bytes_per_block", f.max_shared}, {"shared_bytes_per_sm", f.shared_per_sm}, {"clock_khz", f.clock_khz},
                                {"peak_gbs", f.peak_gbs}});
        char line[512];
        std::snprintf(line, sizeof line,
                      "device %-3d %s, %s\n           sm_%u (target %s), %u SMs at %.0f MHz, %.1f GiB memory, %.0f MiB L2,\n           %u bytes of shared memory a block, %u an SM\n", f.ordinal,
                      f.name.c_str(), f.uuid.c_str(), f.sm, target.empty() ? "none" : target.c_str(), f.sm_count, f.clock_khz / 1000.0, static_cast<double>(f.memory_bytes) / (1 << 30),
                      static_cast<double>(f.l2_bytes) / (1 << 20), f.max_shared, f.shared_per_sm);
        text += line;
      }
  } else {
    j["driver"] = nullptr;
    text += "driver     none\n";
  }
  const auto path = cuda::find_ptxas(assembler_diags);
  std::string assembler = path && !path->empty() ? *path : driver ? "the driver's linker" : "none";
  if (path && !path->empty())
    if (const auto ptxas = cuda::make_ptxas(*path, assembler_diags)) assembler = (*ptxas)->version() + ", " + *path;
  j["assembler"] = assembler;
  const auto cache = cuda::Cache::standard(assembler_diags);
  j["cache"] = cache.root();
  text += "assembler  " + assembler + "\ncache      " + (cache.root().empty() ? "none" : cache.root()) + "\n";
  if (json) text = j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  (void)report(assembler_diags, common);
  return report(diags, common);
}

}  // namespace tile::cli

#endif
