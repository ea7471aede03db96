// A CUDA driver for tests: one device whose memory is the host's and whose kernels do nothing. Calls are recorded; any can be made to
// fail. The environment says how it behaves:
//   FAKE_CUDA_LOG=FILE       one line for each call
//   FAKE_CUDA_FAIL=NAME:N    the function NAME gives the error N (several, separated by commas)
//   FAKE_CUDA_VERSION=13000  FAKE_CUDA_SM=90  FAKE_CUDA_COUNT=1
//   FAKE_CUDA_TRAP=CODE:INST launches report this trap in the mailbox, and the device fails from then on
//   FAKE_CUDA_LINK_LOG=TEXT  what the linker says
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace {

void* mailbox = nullptr;
bool broken = false;
char* link_error_log = nullptr;
unsigned char cubin[64] = {0x7f, 'E', 'L', 'F'};

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

/// Records the call, and gives the error that it was told to give.
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
FAKE cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &broken;
  return call("cuDevicePrimaryCtxRetain");
}
FAKE cuDevicePrimaryCtxRelease_v2(int) { return call("cuDevicePrimaryCtxRelease_v2"); }
FAKE cuCtxSetCurrent(void*) { return call("cuCtxSetCurrent"); }
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
FAKE cuFuncGetAttribute(int* value, int, void*) {
  *value = 0;
  return call("cuFuncGetAttribute");
}
FAKE cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void*, void**, void**) {
  char text[128];
  std::snprintf(text, sizeof text, "grid %u %u %u block %u %u %u shared %u", gx, gy, gz, bx, by, bz, shared);
  const char* trap = std::getenv("FAKE_CUDA_TRAP");
  if (trap && mailbox) {
    const char* colon = std::strchr(trap, ':');
    const uint32_t words[6] = {1, static_cast<uint32_t>(std::atoi(trap)), static_cast<uint32_t>(colon ? std::atoi(colon + 1) : 0), 3, 2, 1};
    std::memcpy(mailbox, words, sizeof words);
    broken = true;
  }
  return call("cuLaunchKernel", text);
}
FAKE cuLaunchKernelEx(const void*, void*, void**, void**) { return call("cuLaunchKernelEx"); }
FAKE cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
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
  *stream = &broken;
  return call("cuStreamCreate");
}
FAKE cuStreamDestroy_v2(void*) { return call("cuStreamDestroy_v2"); }
FAKE cuStreamSynchronize(void*) { return broken ? 719 : call("cuStreamSynchronize"); }
FAKE cuEventCreate(void** event, unsigned) {
  *event = &broken;
  return call("cuEventCreate");
}
FAKE cuEventDestroy_v2(void*) { return call("cuEventDestroy_v2"); }
FAKE cuEventRecord(void*, void*) { return call("cuEventRecord"); }
FAKE cuEventQuery(void*) { return broken ? 719 : call("cuEventQuery"); }
FAKE cuEventSynchronize(void*) { return broken ? 719 : call("cuEventSynchronize"); }
FAKE cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0.25f;
  return call("cuEventElapsedTime");
}
FAKE cuLinkCreate_v2(unsigned count, int* options, void** values, void** state) {
  *state = &cubin;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 5) link_error_log = static_cast<char*>(values[i]);
  return call("cuLinkCreate_v2");
}
FAKE cuLinkAddData_v2(void*, int, void* data, size_t bytes, const char* name, unsigned, int*, void**) {
  const char* said = std::getenv("FAKE_CUDA_LINK_LOG");
  if (said && link_error_log) std::strcpy(link_error_log, said);
  if (bytes == 0 || static_cast<char*>(data)[bytes - 1] != 0) return 1;
  return call("cuLinkAddData_v2", name);
}
FAKE cuLinkComplete(void*, void** image, size_t* bytes) {
  *image = cubin;
  *bytes = sizeof cubin;
  return call("cuLinkComplete");
}
FAKE cuLinkDestroy(void*) { return call("cuLinkDestroy"); }
