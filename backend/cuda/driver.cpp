// Finding and opening the driver, its errors as diagnostics, and the facts of its devices.
#include "backend/cuda/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>

namespace tile::cuda {
namespace {

struct PtxVersion {
  int driver;
  unsigned ptx;
};
constexpr PtxVersion kPtxVersions[] = {{11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76},
                                       {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
                                       {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};

std::string version_word(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

}  // namespace

unsigned highest_ptx_version(int driver_version) {
  unsigned best = 0;
  for (const PtxVersion& v : kPtxVersions)
    if (v.driver <= driver_version) best = v.ptx;
  return best;
}

int driver_for_ptx(unsigned version) {
  for (const PtxVersion& v : kPtxVersions)
    if (v.ptx >= version) return v.driver;
  return std::prev(std::end(kPtxVersions))->driver + 10;
}

Result<const Driver*> Driver::load(Diagnostics& diags) {
  // A driver that did not load is tried again: the cause may have been mended, and the reason must be reported each time.
  static std::mutex mutex;
  static Driver* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded) return static_cast<const Driver*>(loaded);
  const char* chosen = std::getenv("TILEVM_DRIVER");
  auto driver = std::make_unique<Driver>();
  if (!driver->open(chosen && *chosen ? chosen : "libcuda.so.1", chosen && *chosen, diags)) return Failed;
  loaded = driver.release();
  return static_cast<const Driver*>(loaded);
}

Status Driver::open(const std::string& path, bool chosen, Diagnostics& diags) {
  path_ = path;
  library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    const char* why = ::dlerror();
    return diags.error(Code::E0910, Place{}, "the CUDA driver cannot be loaded: " + std::string(why ? why : path),
                       chosen ? "TILEVM_DRIVER names this library" : "install NVIDIA's driver, or run with --gpu=emulate or --cpu");
  }
  const auto fail = [&](Code code, std::string message, std::string help) {
    ::dlclose(library_);
    return diags.error(code, Place{}, std::move(message), std::move(help));
  };
  const auto find = [&](const char* symbol) { return ::dlsym(library_, symbol); };
  const auto missing = [&](const char* symbol) {
    return fail(Code::E0911, path + " has no function " + symbol, "update NVIDIA's driver to one for CUDA " + version_word(kOldestDriver) + " or newer");
  };
#define TILE_X(member, symbol, parameters)                          \
  if (void* f = find(symbol))                                       \
    member = reinterpret_cast<decltype(member)>(f);                 \
  else                                                              \
    return missing(symbol);
  TILE_CUDA_FUNCTIONS(TILE_X)
#undef TILE_X
#define TILE_X(member, symbol, parameters) member = reinterpret_cast<decltype(member)>(find(symbol));
  TILE_CUDA_OPTIONAL_FUNCTIONS(TILE_X)
#undef TILE_X
  if (driver_version(&version_) != kSuccess || version_ < kOldestDriver)
    return fail(Code::E0911, "the driver is for CUDA " + version_word(version_) + ", expected " + version_word(kOldestDriver) + " or newer", "update NVIDIA's driver");
  if (const DriverStatus status = init(0); status != kSuccess) {
    if (status == kNoDevice) return fail(Code::E0912, "the CUDA driver finds no device", "CUDA_VISIBLE_DEVICES may hide it");
    if (status == kSystemDriverMismatch)
      return fail(Code::E0911, "the driver's library and kernel module are of different versions", "reboot, or load the module of the library's version");
    return fail(Code::E0913, "the CUDA driver does not start: " + describe(status), "nvidia-smi says more");
  }
  int count = 0;
  if (const DriverStatus status = device_count(&count); status != kSuccess) return fail(Code::E0913, "cuDeviceGetCount: " + describe(status), "");
  if (count < 1) return fail(Code::E0912, "the CUDA driver finds no device", "CUDA_VISIBLE_DEVICES may hide it");
  return {};
}

std::string Driver::version_text() const { return version_word(version_); }

std::string Driver::kernel_module_version() const {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ..." or "... Open Kernel Module for x86_64  580.95.05  ..."
  std::FILE* file = std::fopen("/proc/driver/nvidia/version", "re");
  if (!file) return {};
  char line[512] = {};
  const bool read = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  if (!read) return {};
  const std::string text = line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find_first_of(" \t\n", at);
    const std::string word = text.substr(at, end == std::string::npos ? end : end - at);
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return {};
}

std::string Driver::describe(DriverStatus status) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(status, &name) != kSuccess || !name) return "unknown error " + std::to_string(status);
  if (error_string(status, &text) != kSuccess || !text) text = "no description";
  return std::string(text) + " (" + name + ", " + std::to_string(status) + ")";
}

Status Driver::check(DriverStatus status, const char* call, Diagnostics& diags) const {
  if (status == kSuccess) return {};
  if (status == kOutOfMemory) return diags.error(Code::E0914, Place{}, std::string("the device has not enough memory: ") + call + ": " + describe(status));
  return diags.error(Code::E0913, Place{}, std::string(call) + ": " + describe(status));
}

Result<DeviceFacts> Driver::device(int ordinal, Diagnostics& diags) const {
  int count = 0;
  if (!check(device_count(&count), "cuDeviceGetCount", diags)) return Failed;
  if (ordinal < 0 || ordinal >= count)
    return diags.error(Code::E0912, Place{}, "there is no device " + std::to_string(ordinal) + "; the driver has " + std::to_string(count), "TILEVM_DEVICE=N chooses one, from 0");
  DeviceOrdinal device = 0;
  if (!check(device_get(&device, ordinal), "cuDeviceGet", diags)) return Failed;
  DeviceFacts facts;
  facts.ordinal = ordinal;
  char name[256] = {};
  if (!check(device_name(name, sizeof name - 1, device), "cuDeviceGetName", diags)) return Failed;
  facts.name = name;
  Uuid uuid{};
  if (!check(device_uuid(&uuid, device), "cuDeviceGetUuid", diags)) return Failed;
  facts.uuid = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", uuid.bytes[i]);
    facts.uuid += hex;
    if (i == 3 || i == 5 || i == 7 || i == 9) facts.uuid += '-';
  }
  size_t bytes = 0;
  if (!check(device_memory(&bytes, device), "cuDeviceTotalMem", diags)) return Failed;
  facts.memory_bytes = bytes;
  bool ok = true;
  const auto attribute = [&](DeviceAttribute a, bool needed) {
    int value = 0;
    const DriverStatus status = device_attribute(&value, a, device);
    if (needed && ok) ok = check(status, "cuDeviceGetAttribute", diags).ok();
    return status == kSuccess && value > 0 ? static_cast<unsigned>(value) : 0u;
  };
  const unsigned major = attribute(DeviceAttribute::CapabilityMajor, true), minor = attribute(DeviceAttribute::CapabilityMinor, true);
  facts.sm = major * 10 + minor;
  facts.sm_count = attribute(DeviceAttribute::SmCount, true);
  facts.max_shared = attribute(DeviceAttribute::MaxSharedPerBlockOptin, true);
  facts.shared_per_sm = attribute(DeviceAttribute::SharedPerSm, false);
  facts.l2_bytes = attribute(DeviceAttribute::L2Bytes, false);
  facts.clock_khz = attribute(DeviceAttribute::ClockRate, false);
  // Two transfers a clock; kHz * bits -> GB/s.
  facts.peak_gbs = 2.0 * attribute(DeviceAttribute::MemoryClockRate, false) * attribute(DeviceAttribute::MemoryBusWidth, false) / 8 * 1e3 / 1e9;
  if (!ok) return Failed;
  return facts;
}

Result<std::vector<DeviceFacts>> Driver::devices(Diagnostics& diags) const {
  int count = 0;
  if (!check(device_count(&count), "cuDeviceGetCount", diags)) return Failed;
  std::vector<DeviceFacts> out;
  for (int i = 0; i < count; ++i) {
    auto facts = device(i, diags);
    if (!facts) return Failed;
    out.push_back(*std::move(facts));
  }
  return out;
}

}  // namespace tile::cuda
