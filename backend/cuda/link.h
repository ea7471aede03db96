// PTX to a cubin: by NVIDIA's assembler ptxas where it is installed, else by the driver's own linker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/driver.h"
#include "vm/base/diagnostics.h"

namespace tile::cuda {

struct LinkRequest {
  std::string name;            ///< of the kernel, for messages
  std::string ptx;
  std::string target;          ///< "sm_90a"
  unsigned opt_level = 3;      ///< 0..3; the driver's 4 is the same as 3 of ptxas
  bool lineinfo = false;
  bool verbose = false;        ///< fill Linked::info with registers, spills and the like
  double seconds = 0;          ///< that ptxas may take; 0: any. The driver's linker runs in this process and cannot be limited
  uint64_t memory_bytes = 0;   ///< that ptxas may take; 0: any
};

struct Linked {
  std::vector<uint8_t> cubin;
  std::vector<std::string> info;       ///< lines about the code; only if asked for
  std::vector<std::string> advice;     ///< what the assembler says costs speed, e.g. "(C7510) ..."
};

/// An assembler that was started before there is a text for it. Ended with this object if nothing was linked with it.
class Begun {
 public:
  virtual ~Begun() = default;
};

class Linker {
 public:
  virtual ~Linker() = default;
  /// Part of the cache's key: "ptxas V13.0.88", "driver 13.0 580.95.05".
  [[nodiscard]] virtual const std::string& version() const = 0;
  /// Starts the assembler while the text is still being made, so that it waits for the text instead of the other way round; null where that gains
  /// nothing. Name and text of the request are not looked at.
  [[nodiscard]] virtual std::unique_ptr<Begun> begin(const LinkRequest&) const { return nullptr; }
  /// @param begun  what begin() gave for a request that differs in name and text only; or null
  /// @error E0915 with the line of the PTX; warnings are added as such
  [[nodiscard]] virtual Result<Linked> link(const LinkRequest& request, Diagnostics& diags, std::unique_ptr<Begun> begun = nullptr) const = 0;
};

/// Where ptxas is: TILEVM_PTXAS, then PATH, CUDA_HOME/bin, CUDA_PATH/bin, /usr/local/cuda/bin, and the folders of the pip packages
/// nvidia-cuda-nvcc beside the python3 of PATH and in VIRTUAL_ENV. Empty where there is none, or if TILEVM_PTXAS is "driver".
/// @error E0915 TILEVM_PTXAS names no program
[[nodiscard]] Result<std::string> find_ptxas(Diagnostics& diags);
/// The same search for another program of the toolkit, such as nvdisasm. `variable` is the environment variable that names it.
[[nodiscard]] Result<std::string> find_cuda_program(const char* name, const char* variable, Diagnostics& diags);

/// @param memory  folder in which the version of this very file (place, size, time, inode) is remembered, so that the program is not started for it;
///        empty: it is asked
/// @param ask  false: it is not started for that; where nothing is remembered, version() is then "ptxas"
/// @param seconds  that it may take to tell
/// @error E0915 the program does not run or tells no version
[[nodiscard]] Result<std::unique_ptr<Linker>> make_ptxas(const std::string& path, Diagnostics& diags, const std::string& memory = {}, bool ask = true, double seconds = 30);
/// The newest PTX (83 for 8.3) that an assembler of this version() takes; 0: not known.
[[nodiscard]] unsigned ptx_of_assembler(const std::string& version);
/// The driver's linker. Its context must be current in the thread that links.
/// @param device_sm  of the context's device
[[nodiscard]] std::unique_ptr<Linker> make_driver_linker(const Driver& driver, unsigned device_sm);

/// Turns the output of either assembler into diagnostics (errors only if `failed`), info lines and advice.
void lift_messages(const std::string& output, const LinkRequest& request, bool failed, Linked& to, Diagnostics& diags);

/// Runs a program with nothing on its standard input and gives what it wrote to both outputs, 16 MiB at most: writing more fails.
/// @param descriptors  open files that the program gets as 3, 4, ...
/// @param seconds  after which it is killed; 0: never
/// @param memory_bytes  of its address space; 0: any
/// @return its exit status, 128 + the signal that ended it; -1 and the reason in `output` if it did not start; kTimedOut
inline constexpr int kTimedOut = -2;
[[nodiscard]] int run_tool(const std::string& path, const std::vector<std::string>& arguments, const std::vector<int>& descriptors, std::string& output, double seconds = 0,
                           uint64_t memory_bytes = 0);

/// Waits for a child. False if it took longer than `seconds` (0: any time), where it is killed if it still runs.
[[nodiscard]] bool wait_for(int child, double seconds, int& status);

}  // namespace tile::cuda
