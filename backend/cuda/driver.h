// The CUDA driver, loaded at run time: our own declarations of what is used of its interface, and a table of its functions.
// Not a wrapper that hides it: launch.h and link.h call the table and pass every result through check().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"

namespace tile::cuda {

// Types and numbers of the driver's public interface (CUDA Driver API reference). The driver keeps them stable.
using DriverStatus = int;
inline constexpr DriverStatus kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kNoDevice = 100, kInvalidImage = 200,
                              kNoBinaryForGpu = 209, kInvalidPtx = 218, kUnsupportedPtxVersion = 222, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700,
                              kLaunchOutOfResources = 701, kLaunchTimeout = 702, kMisalignedAddress = 716, kInvalidAddressSpace = 717, kLaunchFailed = 719,
                              kSystemDriverMismatch = 803;

using DeviceOrdinal = int;
using DevicePtr = uint64_t;
using Context = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using LinkState = struct LinkStateTag*;

enum class DeviceAttribute : int {
  MaxSharedPerBlock = 8,
  ClockRate = 13,  ///< kHz
  SmCount = 16,
  CanMapHostMemory = 19,
  MemoryClockRate = 36,
  MemoryBusWidth = 37,
  L2Bytes = 38,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
  SharedPerSm = 81,
  MaxSharedPerBlockOptin = 97,
};
enum class FunctionAttribute : int { MaxThreads = 0, SharedBytes = 1, LocalBytes = 3, Registers = 4, MaxDynamicShared = 8, NonPortableCluster = 14 };
enum class JitOption : int { InfoLog = 3, InfoLogBytes = 4, ErrorLog = 5, ErrorLogBytes = 6, OptLevel = 7, Target = 9, LogVerbose = 12, LineInfo = 13 };
enum class JitInput : int { Cubin = 0, Ptx = 1 };
inline constexpr unsigned kHostAllocPortable = 1, kHostAllocMapped = 2;
inline constexpr unsigned kEventDefault = 0, kStreamNonBlocking = 1;

struct Uuid {
  unsigned char bytes[16];
};

struct LaunchAttribute {
  int id;  ///< 4: cluster dimension, 6: programmatic stream serialization
  int pad;
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
inline constexpr int kAttributeCluster = 4, kAttributeProgrammatic = 6;

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// X(member, symbol in the library, parameters); all return a DriverStatus. The symbols' _v2 forms are those that the driver's
// headers have named for more than ten years.
#define TILE_CUDA_FUNCTIONS(X)                                                                                   \
  X(init, "cuInit", (unsigned flags))                                                                            \
  X(driver_version, "cuDriverGetVersion", (int* version))                                                        \
  X(error_name, "cuGetErrorName", (DriverStatus status, const char** text))                                      \
  X(error_string, "cuGetErrorString", (DriverStatus status, const char** text))                                  \
  X(device_count, "cuDeviceGetCount", (int* count))                                                              \
  X(device_get, "cuDeviceGet", (DeviceOrdinal* device, int ordinal))                                             \
  X(device_name, "cuDeviceGetName", (char* name, int bytes, DeviceOrdinal device))                               \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, DeviceAttribute attribute, DeviceOrdinal device))     \
  X(device_uuid, "cuDeviceGetUuid", (Uuid* uuid, DeviceOrdinal device))                                          \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t* bytes, DeviceOrdinal device))                                 \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Context* context, DeviceOrdinal device))                        \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (DeviceOrdinal device))                                     \
  X(context_set, "cuCtxSetCurrent", (Context context))                                                           \
  X(context_get, "cuCtxGetCurrent", (Context* context))                                                          \
  X(context_device, "cuCtxGetDevice", (DeviceOrdinal* device))                                                   \
  X(module_load, "cuModuleLoadData", (ModuleHandle* module, const void* image))                                  \
  X(module_unload, "cuModuleUnload", (ModuleHandle module))                                                      \
  X(module_function, "cuModuleGetFunction", (FunctionHandle* function, ModuleHandle module, const char* name))   \
  X(function_set, "cuFuncSetAttribute", (FunctionHandle function, FunctionAttribute attribute, int value))       \
  X(function_get, "cuFuncGetAttribute", (int* value, FunctionAttribute attribute, FunctionHandle function))      \
  X(launch, "cuLaunchKernel",                                                                                    \
    (FunctionHandle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,      \
     unsigned shared_bytes, Stream stream, void** parameters, void** extra))                                     \
  X(memory_allocate, "cuMemAlloc_v2", (DevicePtr* pointer, size_t bytes))                                        \
  X(memory_free, "cuMemFree_v2", (DevicePtr pointer))                                                            \
  X(memory_info, "cuMemGetInfo_v2", (size_t* free, size_t* total))                                               \
  X(copy_to_device, "cuMemcpyHtoD_v2", (DevicePtr to, const void* from, size_t bytes))                           \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void* to, DevicePtr from, size_t bytes))                                   \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", (DevicePtr to, DevicePtr from, size_t bytes, Stream stream))         \
  X(memory_set, "cuMemsetD8Async", (DevicePtr to, unsigned char value, size_t bytes, Stream stream))             \
  X(host_allocate, "cuMemHostAlloc", (void** pointer, size_t bytes, unsigned flags))                             \
  X(host_free, "cuMemFreeHost", (void* pointer))                                                                 \
  X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (DevicePtr* pointer, void* host, unsigned flags))       \
  X(stream_create, "cuStreamCreate", (Stream* stream, unsigned flags))                                           \
  X(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                                       \
  X(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                                  \
  X(event_create, "cuEventCreate", (Event* event, unsigned flags))                                               \
  X(event_destroy, "cuEventDestroy_v2", (Event event))                                                           \
  X(event_record, "cuEventRecord", (Event event, Stream stream))                                                 \
  X(event_query, "cuEventQuery", (Event event))                                                                  \
  X(event_synchronize, "cuEventSynchronize", (Event event))                                                      \
  X(event_milliseconds, "cuEventElapsedTime", (float* milliseconds, Event from, Event to))                       \
  X(link_create, "cuLinkCreate_v2", (unsigned count, JitOption* options, void** values, LinkState* state))       \
  X(link_add, "cuLinkAddData_v2",                                                                                \
    (LinkState state, JitInput type, void* data, size_t bytes, const char* name, unsigned count,                 \
     JitOption* options, void** values))                                                                         \
  X(link_complete, "cuLinkComplete", (LinkState state, void** cubin, size_t* bytes))                             \
  X(link_destroy, "cuLinkDestroy", (LinkState state))

// Functions that older drivers lack; nullptr there.
#define TILE_CUDA_OPTIONAL_FUNCTIONS(X)                                                                          \
  X(launch_ex, "cuLaunchKernelEx", (const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra)) \
  X(blocks_per_sm, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int* blocks, FunctionHandle function, int threads, size_t shared_bytes)) \
  X(active_clusters, "cuOccupancyMaxActiveClusters", (int* clusters, FunctionHandle function, const LaunchConfig* config)) \
  X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                                 \
    (void* map, int type, unsigned rank, DevicePtr address, const uint64_t* dims, const uint64_t* strides,       \
     const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion, int fill))

/// Facts of a device.
struct DeviceFacts {
  int ordinal = 0;
  std::string name;  ///< "NVIDIA H200"
  std::string uuid;  ///< "GPU-01234567-..."
  unsigned sm = 0;   ///< 90 for compute capability 9.0
  unsigned sm_count = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
  unsigned max_shared = 0;     ///< bytes that a block can have
  unsigned shared_per_sm = 0;
  unsigned clock_khz = 0;
  double peak_gbs = 0;         ///< from memory clock and bus width; 0 where the driver does not say
};

/// The loaded driver. One for the whole process; never unloaded.
class Driver {
 public:
  /// @param diags  E0910 no driver, E0911 it is too old or has no such function, E0912 no device, E0913 it does not start
  /// Reads TILEVM_DRIVER: the path of another library with the driver's functions.
  [[nodiscard]] static Result<const Driver*> load(Diagnostics& diags);

#define TILE_X(member, symbol, parameters) DriverStatus(*member) parameters = nullptr;
  TILE_CUDA_FUNCTIONS(TILE_X)
  TILE_CUDA_OPTIONAL_FUNCTIONS(TILE_X)
#undef TILE_X

  [[nodiscard]] int version() const { return version_; }           ///< of CUDA, 13000 for 13.0
  [[nodiscard]] std::string version_text() const;                  ///< "13.0"
  [[nodiscard]] std::string kernel_module_version() const;         ///< "580.95.05"; empty where it cannot be found out
  [[nodiscard]] const std::string& path() const { return path_; }
  /// "invalid device context (CUDA_ERROR_INVALID_CONTEXT, 201)"
  [[nodiscard]] std::string describe(DriverStatus status) const;
  /// Success, or the error E0913 with the function's name; E0914 where the device's memory is used up.
  [[nodiscard]] Status check(DriverStatus status, const char* call, Diagnostics& diags) const;
  [[nodiscard]] Result<std::vector<DeviceFacts>> devices(Diagnostics& diags) const;
  [[nodiscard]] Result<DeviceFacts> device(int ordinal, Diagnostics& diags) const;

 private:
  [[nodiscard]] Status open(const std::string& path, bool chosen, Diagnostics& diags);

  void* library_ = nullptr;
  std::string path_;
  int version_ = 0;
};

/// The oldest CUDA version of a driver that is used: 11.4, which knows every call of the table.
inline constexpr int kOldestDriver = 11040;

/// The highest PTX version that a driver of this CUDA version takes, times ten: 85 for PTX 8.5.
/// @source the release notes of the PTX ISA
[[nodiscard]] unsigned highest_ptx_version(int driver_version);
/// The same table from the other side: the oldest CUDA version that takes PTX `version` (times ten).
[[nodiscard]] int driver_for_ptx(unsigned version);

}  // namespace tile::cuda
