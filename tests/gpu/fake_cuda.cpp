// A CUDA driver for tests: devices whose memory is the host's and whose kernels do nothing. Calls are recorded; any can be made to
// fail. The environment says how it behaves:
//   FAKE_CUDA_LOG=FILE       one line for each call
//   FAKE_CUDA_FAIL=NAME:N    the function NAME gives the error N (several, separated by commas)
//   FAKE_CUDA_VERSION=13000  FAKE_CUDA_SM=90  FAKE_CUDA_COUNT=1
//   FAKE_CUDA_TRAP=CODE:INST launches report this trap in the mailbox, and the device fails from then on
//   FAKE_CUDA_LINK_LOG=TEXT  what the linker says as errors; {WORD} stands for the number of the first line of the PTX that has WORD
//   FAKE_CUDA_LINK_INFO=TEXT the same as information
//   FAKE_CUDA_CLUSTERS=N     so many clusters fit on the device
//   FAKE_CUDA_PARAMS=N       the log of a launch has its first N parameters
// Every device has one context. A stream belongs to the context that was current when it was made; a launch into another's is an error, and
// so is every call that a stream capture forbids while there is one.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace {

struct FakeContext {
  int device;
} contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local FakeContext* current = nullptr;
struct FakeStream {
  FakeContext* context;
};
std::atomic<int> capturing{0};
constexpr int kInvalidHandle = 400, kCaptureUnsupported = 900;

void* mailbox = nullptr;
bool broken = false;
char *link_error_log = nullptr, *link_info_log = nullptr;
unsigned char cubin[64] = {0x7f, 'E', 'L', 'F'};

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

/// Records the call, and gives the error that it was told to give. One write for each, so that threads do not mix their lines.
int call(const char* name, const char* details = "") {
  if (const char* log = std::getenv("FAKE_CUDA_LOG"))
    if (std::FILE* file = std::fopen(log, "a")) {
      std::fprintf(file, "%s%s%s\n", name, *details ? " " : "", details);
      std::fclose(file);
    }
  const char* fail = std::getenv("FAKE_CUDA_FAIL");
  const size_t length = std::strlen(name);
  while (fail && *fail) {
    if (std::strncmp(fail, name, length) == 0 && fail[length] == ':') return std::atoi(fail + length + 1);
    fail = std::strchr(fail, ',');
    if (fail) ++fail;
  }
  return 0;
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int

FAKE cuInit(unsigned) { return call("cuInit"); }
FAKE cuDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return call("cuDriverGetVersion");
}
FAKE cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return call("cuGetErrorName");
}
FAKE cuGetErrorString(int, const char** text) {
  *text = "an error made for tests";
  return call("cuGetErrorString");
}
FAKE cuDeviceGetCount(int* count) {
  *count = number("FAKE_CUDA_COUNT", 1);
  return call("cuDeviceGetCount");
}
FAKE cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return call("cuDeviceGet");
}
FAKE cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return call("cuDeviceGetName");
}
FAKE cuDeviceGetAttribute(int* value, int attribute, int) {
  const int sm = number("FAKE_CUDA_SM", 90);
  *value = attribute == 75 ? sm / 10 : attribute == 76 ? sm % 10 : attribute == 16 ? 132 : attribute == 97 ? 232448 : 1;
  return call("cuDeviceGetAttribute");
}
FAKE cuDeviceGetUuid(void* uuid, int) {
  std::memset(uuid, 0x5a, 16);
  return call("cuDeviceGetUuid");
}
FAKE cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{1} << 34;
  return call("cuDeviceTotalMem_v2");
}
FAKE cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[device & 7];
  return call("cuDevicePrimaryCtxRetain");
}
FAKE cuDevicePrimaryCtxRelease_v2(int) { return call("cuDevicePrimaryCtxRelease_v2"); }
FAKE cuCtxSetCurrent(void* context) {
  current = static_cast<FakeContext*>(context);
  return call("cuCtxSetCurrent");
}
FAKE cuCtxGetCurrent(void** context) {
  *context = current;
  return call("cuCtxGetCurrent");
}
FAKE cuCtxGetDevice(int* device) {
  if (!current) return 201;
  *device = current->device;
  return call("cuCtxGetDevice");
}
FAKE cuStreamBeginCapture_v2(void*, int) {
  capturing = 1;
  return call("cuStreamBeginCapture_v2");
}
FAKE cuStreamEndCapture(void*, void** graph) {
  *graph = &cubin;
  capturing = 0;
  return call("cuStreamEndCapture");
}
FAKE cuModuleLoadData(void** module, const void* image) {
  *module = &mailbox;
  return std::memcmp(image, "\177ELF", 4) == 0 ? call("cuModuleLoadData") : 200;
}
FAKE cuModuleUnload(void*) { return call("cuModuleUnload"); }
FAKE cuModuleGetFunction(void** function, void*, const char* name) {
  *function = &cubin;
  return call("cuModuleGetFunction", name);
}
FAKE cuFuncSetAttribute(void*, int attribute, int value) { return call("cuFuncSetAttribute", (std::to_string(attribute) + " " + std::to_string(value)).c_str()); }
// FAKE_CUDA_LOCAL: bytes of local memory of the functions, in the order in which they are asked for; 0 behind the last.
FAKE cuFuncGetAttribute(int* value, int attribute, void*) {
  *value = 0;
  constexpr int kLocalBytes = 3;
  if (static const char* next = std::getenv("FAKE_CUDA_LOCAL"); attribute == kLocalBytes && next && *next) {
    char* end = nullptr;
    *value = static_cast<int>(std::strtol(next, &end, 10));
    next = *end == ',' ? end + 1 : end;
  }
  return call("cuFuncGetAttribute");
}
FAKE cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** params, void**) {
  char text[512];
  int length = std::snprintf(text, sizeof text, "grid %u %u %u block %u %u %u shared %u", gx, gy, gz, bx, by, bz, shared);
  for (int n = 0; n < number("FAKE_CUDA_PARAMS", 0) && n < 20 && length < 440; ++n)
    length += std::snprintf(text + length, sizeof text - static_cast<size_t>(length), " %llx", static_cast<unsigned long long>(*static_cast<uint64_t*>(params[n])));
  if (!current || (stream && static_cast<FakeStream*>(stream)->context != current)) return kInvalidHandle;
  const char* trap = std::getenv("FAKE_CUDA_TRAP");
  if (trap && mailbox) {
    const char* colon = std::strchr(trap, ':');
    const uint32_t words[6] = {1, static_cast<uint32_t>(std::atoi(trap)), static_cast<uint32_t>(colon ? std::atoi(colon + 1) : 0), 3, 2, 1};
    std::memcpy(mailbox, words, sizeof words);
    broken = true;
  }
  return call("cuLaunchKernel", text);
}
FAKE cuLaunchKernelEx(const void* config, void*, void**, void**) {
  // Grid, block, shared bytes; then stream, attributes (72 bytes: id, 4 bytes nothing, value) and their number.
  unsigned grid[3];
  std::memcpy(grid, config, sizeof grid);
  const unsigned char* attributes = nullptr;
  unsigned count = 0;
  std::memcpy(&attributes, static_cast<const char*>(config) + 40, sizeof attributes);
  std::memcpy(&count, static_cast<const char*>(config) + 48, sizeof count);
  std::string text = "grid " + std::to_string(grid[0]) + " " + std::to_string(grid[1]) + " " + std::to_string(grid[2]);
  for (unsigned n = 0; n < count; ++n) {
    int id = 0, value = 0;
    std::memcpy(&id, attributes + n * 72, sizeof id);
    std::memcpy(&value, attributes + n * 72 + 8, sizeof value);
    text += " attribute " + std::to_string(id) + " " + std::to_string(value);
  }
  return call("cuLaunchKernelEx", text.c_str());
}
FAKE cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) {
  *blocks = 3;
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
FAKE cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  *clusters = number("FAKE_CUDA_CLUSTERS", 66);
  return call("cuOccupancyMaxActiveClusters");
}
FAKE cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  if (capturing) return kCaptureUnsupported;
  const int error = call("cuMemAlloc_v2", std::to_string(bytes).c_str());
  if (error) return error;
  *pointer = reinterpret_cast<uint64_t>(::operator new(bytes, std::nothrow));
  return *pointer ? 0 : 2;
}
FAKE cuMemFree_v2(uint64_t pointer) {
  ::operator delete(reinterpret_cast<void*>(pointer));
  return call("cuMemFree_v2");
}
FAKE cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 34;
  return call("cuMemGetInfo_v2");
}
FAKE cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return call("cuMemcpyHtoD_v2");
}
FAKE cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return call("cuMemcpyDtoH_v2");
}
FAKE cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void*) { return call("cuMemcpyDtoDAsync_v2"); }
FAKE cuMemsetD8Async(uint64_t, unsigned char, size_t, void*) { return call("cuMemsetD8Async"); }
FAKE cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  if (capturing) return kCaptureUnsupported;
  const int error = call("cuMemHostAlloc");
  if (error) return error;
  *pointer = mailbox = ::operator new(bytes, std::nothrow);
  return *pointer ? 0 : 2;
}
FAKE cuMemFreeHost(void* pointer) {
  ::operator delete(pointer);
  return call("cuMemFreeHost");
}
FAKE cuMemHostGetDevicePointer_v2(uint64_t* pointer, void* host, unsigned) {
  *pointer = reinterpret_cast<uint64_t>(host);
  return call("cuMemHostGetDevicePointer_v2");
}
FAKE cuStreamCreate(void** stream, unsigned) {
  if (!current) return 201;
  *stream = new FakeStream{current};
  return call("cuStreamCreate");
}
FAKE cuStreamDestroy_v2(void* stream) {
  delete static_cast<FakeStream*>(stream);
  return call("cuStreamDestroy_v2");
}
FAKE cuStreamSynchronize(void*) {
  if (capturing) return kCaptureUnsupported;
  return broken ? 719 : call("cuStreamSynchronize");
}
FAKE cuEventCreate(void** event, unsigned) {
  *event = &broken;
  return call("cuEventCreate");
}
FAKE cuEventDestroy_v2(void*) { return call("cuEventDestroy_v2"); }
FAKE cuEventRecord(void*, void*) { return call("cuEventRecord"); }
FAKE cuEventQuery(void*) { return broken ? 719 : call("cuEventQuery"); }
FAKE cuEventSynchronize(void*) {
  if (capturing) return kCaptureUnsupported;
  return broken ? 719 : call("cuEventSynchronize");
}
FAKE cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0.25f;
  return call("cuEventElapsedTime");
}
FAKE cuLinkCreate_v2(unsigned count, int* options, void** values, void** state) {
  *state = &cubin;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 5) link_error_log = static_cast<char*>(values[i]);
    else if (options[i] == 3) link_info_log = static_cast<char*>(values[i]);
  return call("cuLinkCreate_v2");
}
FAKE cuLinkAddData_v2(void*, int, void* data, size_t bytes, const char* name, unsigned, int*, void**) {
  for (const auto& [variable, to] : {std::pair{"FAKE_CUDA_LINK_LOG", link_error_log}, std::pair{"FAKE_CUDA_LINK_INFO", link_info_log}}) {
    const char* said = std::getenv(variable);
    if (!said || !to) continue;
    std::string text = said;
    const size_t open = text.find('{'), close = text.find('}');
    if (open != std::string::npos && close != std::string::npos && close > open) {
      const std::string ptx(static_cast<char*>(data), bytes);
      const size_t at = ptx.find(text.substr(open + 1, close - open - 1));
      size_t line = 1;
      for (size_t i = 0; i < at && i < ptx.size(); ++i) line += ptx[i] == '\n';
      text = text.substr(0, open) + std::to_string(line) + text.substr(close + 1);
    }
    std::strcpy(to, text.c_str());
  }
  if (bytes == 0 || static_cast<char*>(data)[bytes - 1] != 0) return 1;
  return call("cuLinkAddData_v2", name);
}
FAKE cuLinkComplete(void*, void** image, size_t* bytes) {
  *image = cubin;
  *bytes = sizeof cubin;
  return call("cuLinkComplete");
}
FAKE cuLinkDestroy(void*) { return call("cuLinkDestroy"); }
