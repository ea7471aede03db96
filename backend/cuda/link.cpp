// Finding ptxas, running it on files that exist in memory only, and lifting what it says.
#include "backend/cuda/link.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "backend/cuda/cache.h"

extern char** environ;

namespace tile::cuda {
namespace {

/// A file in memory. It has no name, so nothing of it is left however this process ends.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  /// One that does not grow beyond `most` bytes: writing fails then. What was written is what ends at the descriptor's position.
  MemoryFile(const char* name, off_t most) : fd_(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (fd_ >= 0 && (::ftruncate(fd_, most) != 0 || ::fcntl(fd_, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)) {
      ::close(fd_);
      fd_ = -1;
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool write(const std::string& text) const {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }
  template <class Bytes>
  [[nodiscard]] bool read(Bytes& to) const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0 || status.st_size < 0) return false;
    return read(to, static_cast<size_t>(status.st_size));
  }
  template <class Bytes>
  [[nodiscard]] bool read(Bytes& to, size_t bytes) const {
    to.resize(bytes);
    for (size_t done = 0; done < to.size();) {
      const ssize_t n = ::pread(fd_, to.data() + done, to.size() - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

std::vector<std::string> path_folders() {
  std::vector<std::string> out;
  const char* path = variable("PATH");
  if (!path) return out;
  const std::string all = path;
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(':', at), all.size());
    if (end > at) out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Folders of site-packages that belong to a Python of this prefix.
void add_pip_folders(const std::string& prefix, std::vector<std::string>& out) {
  std::error_code error;
  for (const char* lib : {"/lib", "/lib64", "/local/lib"}) {
    for (std::filesystem::directory_iterator it(prefix + lib, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (!name.starts_with("python3")) continue;
      for (const char* packages : {"/site-packages", "/dist-packages"})
        for (const char* package : {"/nvidia/cu13/bin", "/nvidia/cuda_nvcc/bin", "/nvidia/cuda_nvdisasm/bin", "/triton/backends/nvidia/bin"})
          out.push_back(it->path().string() + packages + package);
    }
    error.clear();
  }
}

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? std::string("/") : path.substr(0, slash);
}

std::string find_program(const std::string& name) {
  std::vector<std::string> folders = path_folders();
  std::string python;
  for (const std::string& folder : folders)
    if (python.empty() && is_program(folder + "/python3")) python = folder;
  for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = variable(home)) folders.push_back(std::string(value) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  if (const char* value = variable("VIRTUAL_ENV")) add_pip_folders(value, folders);
  if (!python.empty()) add_pip_folders(parent(python), folders);
  add_pip_folders("/usr/local", folders);
  if (const char* value = variable("HOME")) add_pip_folders(std::string(value) + "/.local", folders);
  for (const std::string& folder : folders)
    if (is_program(folder + "/" + name)) return folder + "/" + name;
  return {};
}

/// Where the version of an assembler is remembered; empty where it is not.
std::string memory_file(const std::string& path, const std::string& folder) {
  struct stat s {};
  if (folder.empty() || ::stat(path.c_str(), &s) != 0) return {};
  const std::string words = path + " " + std::to_string(s.st_size) + " " + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec) + " " + std::to_string(s.st_ino);
  return folder + "/assembler-" + hash_text(hash128({reinterpret_cast<const uint8_t*>(words.data()), words.size()}));
}

/// "ptxas V13.0.88"; empty where nothing, or something else, is written there.
std::string read_memory(const std::string& file) {
  std::FILE* in = file.empty() ? nullptr : std::fopen(file.c_str(), "rb");
  if (!in) return {};
  char text[64];
  const size_t n = std::fread(text, 1, sizeof text, in);
  std::fclose(in);
  const std::string version(text, n);
  constexpr std::string_view kStart = "ptxas V";
  const bool good = version.starts_with(kStart) && n > kStart.size() && n < sizeof text && version.find_first_not_of("0123456789.", kStart.size()) == std::string::npos;
  return good ? version : std::string();
}

/// Appears whole or not at all; that it cannot be written costs only time.
void write_memory(const std::string& file, const std::string& version) {
  if (file.empty()) return;
  const std::string unfinished = file + "." + std::to_string(::getpid());
  std::FILE* out = std::fopen(unfinished.c_str(), "wb");
  if (!out) return;
  const bool good = std::fwrite(version.data(), 1, version.size(), out) == version.size();
  if (std::fclose(out) != 0 || !good || ::rename(unfinished.c_str(), file.c_str()) != 0) (void)::unlink(unfinished.c_str());
}

constexpr size_t kMostSaid = 1000;  // of the words of a program that is none of NVIDIA's, in a message

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

/// 83 of ".version 8.3"; 0 where there is no such line.
unsigned ptx_version(const std::string& ptx) {
  const size_t at = ptx.find(".version ");
  if (at == std::string::npos) return 0;
  char* end = nullptr;
  const unsigned long major = std::strtoul(ptx.c_str() + at + 9, &end, 10), minor = *end == '.' ? std::strtoul(end + 1, nullptr, 10) : 0;
  return major < 100 && minor < 10 ? static_cast<unsigned>(major * 10 + minor) : 0;
}

std::string version_text(unsigned ptx) { return std::to_string(ptx / 10) + "." + std::to_string(ptx % 10); }

/// What a program writes to both its outputs, of bounded size: writing more fails.
class ToolOutput : public MemoryFile {
 public:
  ToolOutput() : MemoryFile("output", kMost) {}
  [[nodiscard]] bool read(std::string& to) const {
    const off_t written = ::lseek(fd(), 0, SEEK_CUR);  // the program's descriptors share the position
    return MemoryFile::read(to, static_cast<size_t>(std::clamp<off_t>(written, 0, kMost)));
  }

 private:
  static constexpr off_t kMost = 1 << 24;
};

/// Starts a program as run_tool() describes; it writes to `said`. -1 and an error number if it does not start.
pid_t start_tool(const std::string& path, const std::vector<std::string>& arguments, const std::vector<int>& descriptors, const ToolOutput& said, uint64_t memory_bytes, int& error) {
  // The limit must stand before the program begins, so that a shell sets it and becomes the program.
  const std::string kibibytes = std::to_string(memory_bytes >> 10), program = memory_bytes != 0 ? "/bin/sh" : path;
  std::vector<char*> argv;
  if (memory_bytes != 0)
    for (const char* word : {"sh", "-c", "ulimit -v \"$0\" && exec \"$@\"", kibibytes.c_str()}) argv.push_back(const_cast<char*>(word));
  argv.push_back(const_cast<char*>(path.c_str()));
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  // Copies above all targets, so that no dup2() overwrites a descriptor that a later one needs.
  std::vector<int> copies;
  error = 0;
  for (const int fd : descriptors) {
    copies.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, 64));
    if (copies.back() < 0) error = errno;
  }
  const int said_copy = ::fcntl(said.fd(), F_DUPFD_CLOEXEC, 64);
  if (said_copy < 0) error = errno;
  pid_t child = -1;
  if (!error) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, said_copy, 1);
    posix_spawn_file_actions_adddup2(&actions, said_copy, 2);
    for (size_t i = 0; i < copies.size(); ++i) posix_spawn_file_actions_adddup2(&actions, copies[i], static_cast<int>(3 + i));
    // ptxas touches megabytes of fresh memory; in large pages that takes a tenth of its time less.
    std::vector<char*> environment;
    for (char** e = environ; *e; ++e) environment.push_back(*e);
    std::string tunables = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432";
    if (memory_bytes == 0 && !variable("GLIBC_TUNABLES")) environment.push_back(tunables.data());
    environment.push_back(nullptr);
    error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
  }
  for (const int fd : copies)
    if (fd >= 0) ::close(fd);
  if (said_copy >= 0) ::close(said_copy);
  return error ? -1 : child;
}

int exit_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Takes its text from descriptor 3 and writes the cubin to descriptor 4.
std::vector<std::string> ptxas_arguments(const LinkRequest& request) {
  std::vector<std::string> arguments = {"-arch=" + request.target, "-O" + std::to_string(request.opt_level)};
  if (request.lineinfo) arguments.push_back("-lineinfo");
  if (request.verbose) arguments.push_back("-v");
  arguments.insert(arguments.end(), {"/proc/self/fd/3", "-o", "/proc/self/fd/4"});
  return arguments;
}

/// ptxas that reads its text from a pipe, so that its start lies beside the work that makes the text.
class BegunPtxas final : public Begun {
 public:
  BegunPtxas(const std::string& path, const LinkRequest& request) : out_("kernel.cubin") {
    int error = 0;
    if (out_.fd() < 0 || said_.fd() < 0 || ::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) return;
    // The program waits for its text, this process never waits for the program to take it.
    if (::fcntl(ends_[0], F_SETFL, 0) == 0) child_ = start_tool(path, ptxas_arguments(request), {ends_[0], out_.fd()}, said_, request.memory_bytes, error);
  }
  BegunPtxas(const BegunPtxas&) = delete;
  BegunPtxas& operator=(const BegunPtxas&) = delete;
  ~BegunPtxas() override {
    close_ends();
    if (child_ < 0) return;
    (void)::kill(child_, SIGKILL);
    int status = 0;
    (void)wait_for(child_, 0, status);
  }
  [[nodiscard]] bool runs() const { return child_ >= 0; }

  /// Its exit status, or kTimedOut; -1 if it cannot be given this text, or has failed for lack of a file.
  int finish(const LinkRequest& request, std::string& output, std::vector<uint8_t>& cubin) {
    // The reading end is still open here, so that a program that has ended makes no signal of this.
    const bool fits = request.ptx.size() <= kPipeBytes || ::fcntl(ends_[1], F_SETPIPE_SZ, static_cast<int>(std::min<size_t>(request.ptx.size(), INT_MAX))) >= 0;
    if (!fits || ::write(ends_[1], request.ptx.data(), request.ptx.size()) != static_cast<ssize_t>(request.ptx.size())) return -1;
    close_ends();
    int status = 0;
    const bool in_time = wait_for(child_, request.seconds, status);
    child_ = -1;
    if (!in_time) return kTimedOut;
    if (!said_.read(output) || !out_.read(cubin)) return -1;
    return exit_status(status);
  }

 private:
  static constexpr size_t kPipeBytes = 65536;  // of a new pipe
  void close_ends() {
    for (int& end : ends_) {
      if (end >= 0) ::close(end);
      end = -1;
    }
  }
  const MemoryFile out_;
  const ToolOutput said_;
  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

class Ptxas : public Linker {
 public:
  Ptxas(std::string path, std::string version) : path_(std::move(path)), version_(std::move(version)) {}
  [[nodiscard]] const std::string& version() const override { return version_; }

  [[nodiscard]] std::unique_ptr<Begun> begin(const LinkRequest& request) const override {
    if (request.lineinfo) return nullptr;  // it reads the text twice then, the second time to copy it into the cubin
    auto begun = std::make_unique<BegunPtxas>(path_, request);
    if (!begun->runs()) return nullptr;
    return begun;
  }

  [[nodiscard]] Result<Linked> link(const LinkRequest& request, Diagnostics& diags, std::unique_ptr<Begun> begun) const override {
    if (const unsigned needed = ptx_version(request.ptx), most = ptx_of_assembler(version_); most != 0 && needed > most)
      return diags.error(Code::E0915, Place{}, "code for " + request.target + " is PTX " + version_text(needed) + "; " + version_ + " (" + path_ + ") takes PTX up to " + version_text(most),
                         "install a newer one (pip install nvidia-cuda-nvcc), or name it by TILEVM_PTXAS; TILEVM_PTXAS=driver takes the driver's linker");
    Linked linked;
    std::string output;
    int status = -1;
    if (auto* waiting = dynamic_cast<BegunPtxas*>(begun.get())) status = waiting->finish(request, output, linked.cubin);
    // What fails is assembled again from a file, and what is said of that counts.
    if (status != 0 && status != kTimedOut) {
      const MemoryFile in("kernel.ptx"), out("kernel.cubin");
      if (in.fd() < 0 || out.fd() < 0 || !in.write(request.ptx))
        return diags.error(Code::E0903, Place{}, "no memory for the files of ptxas: " + std::generic_category().message(errno));
      status = run_tool(path_, ptxas_arguments(request), {in.fd(), out.fd()}, output, request.seconds, request.memory_bytes);
      if (status == 0 && !out.read(linked.cubin)) linked.cubin.clear();
    }
    if (status == kTimedOut)
      return diags.error({Code::L0106, Place{}, path_ + " takes longer than " + seconds_text(request.seconds) + " for " + request.name, {}, "raise --compile-time-limit, or use -O1", "CompileTime"});
    // What ptxas does without memory differs from place to place, so with a limit all ends that are no rejection count as that.
    if (request.memory_bytes != 0 && status != 0 && output.find("error   :") == std::string::npos)
      return diags.error({Code::L0103, Place{}, path_ + " takes more memory than the limit of " + std::to_string(request.memory_bytes) + " bytes for " + request.name, {}, "raise --compile-max-memory, or use -O1", "CompileMemory"});
    if (status < 0) return diags.error(Code::E0915, Place{}, path_ + " does not run: " + output);
    const size_t before = diags.error_count();
    lift_messages(output, request, status != 0, linked, diags);
    if (status != 0) {
      if (diags.error_count() == before)
        (void)diags.error(Code::E0915, Place{}, path_ + " ended with status " + std::to_string(status) + (output.empty() ? "" : ": " + output.substr(0, kMostSaid)));
      return Failed;
    }
    if (linked.cubin.size() < 4 || std::memcmp(linked.cubin.data(), "\177ELF", 4) != 0)
      return diags.error(Code::E0915, Place{}, path_ + " reports success but wrote no cubin", "check that /proc is mounted");
    return linked;
  }

 private:
  std::string path_, version_;
};

class DriverLinker : public Linker {
 public:
  DriverLinker(const Driver& driver, unsigned device_sm) : driver_(driver), device_sm_(device_sm) {
    const std::string module = driver.kernel_module_version();
    version_ = "driver " + driver.version_text() + (module.empty() ? "" : " " + module);
  }
  [[nodiscard]] const std::string& version() const override { return version_; }

  [[nodiscard]] Result<Linked> link(const LinkRequest& request, Diagnostics& diags, std::unique_ptr<Begun>) const override {
    if (const unsigned needed = ptx_version(request.ptx), most = highest_ptx_version(driver_.version()); needed > most) {
      const int driver = driver_for_ptx(needed);
      return diags.error(Code::E0911, Place{}, "code for " + request.target + " is PTX " + version_text(needed) + "; the driver for CUDA " + driver_.version_text() + " takes PTX up to " + version_text(most),
                         "update NVIDIA's driver to one for CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) + ", or install ptxas (pip install nvidia-cuda-nvcc)");
    }
    std::vector<char> info(1 << 16), errors(1 << 16);
    std::vector<JitOption> options;
    std::vector<void*> values;
    const auto add = [&](JitOption option, uintptr_t value) {
      options.push_back(option);
      values.push_back(reinterpret_cast<void*>(value));
    };
    add(JitOption::InfoLog, reinterpret_cast<uintptr_t>(info.data()));
    add(JitOption::InfoLogBytes, info.size() - 1);
    add(JitOption::ErrorLog, reinterpret_cast<uintptr_t>(errors.data()));
    add(JitOption::ErrorLogBytes, errors.size() - 1);
    add(JitOption::OptLevel, request.opt_level >= 3 ? 4 : request.opt_level);
    if (request.verbose) add(JitOption::LogVerbose, 1);
    if (request.lineinfo) add(JitOption::LineInfo, 1);
    // Without a target the driver takes the context's device. 0x10000 marks the architecture's own features ("a").
    const unsigned sm = static_cast<unsigned>(std::strtoul(request.target.c_str() + std::min<size_t>(3, request.target.size()), nullptr, 10));
    if (sm != device_sm_) add(JitOption::Target, sm | (request.target.ends_with('a') ? 0x10000u : 0u));
    LinkState state = nullptr;
    if (!driver_.check(driver_.link_create(static_cast<unsigned>(options.size()), options.data(), values.data(), &state), "cuLinkCreate", diags)) return Failed;
    Linked linked;
    const std::string name = request.name + ".ptx";
    const char* call = "cuLinkAddData";
    // The text's length counts its final zero.
    DriverStatus status = driver_.link_add(state, JitInput::Ptx, const_cast<char*>(request.ptx.c_str()), request.ptx.size() + 1, name.c_str(), 0, nullptr, nullptr);
    void* cubin = nullptr;
    size_t bytes = 0;
    if (status == kSuccess) {
      call = "cuLinkComplete";
      status = driver_.link_complete(state, &cubin, &bytes);
    }
    if (status == kSuccess && cubin) linked.cubin.assign(static_cast<const uint8_t*>(cubin), static_cast<const uint8_t*>(cubin) + bytes);
    (void)driver_.link_destroy(state);
    const size_t before = diags.error_count();
    lift_messages(std::string(info.data()) + "\n" + errors.data(), request, status != kSuccess, linked, diags);
    if (status != kSuccess) {
      if (diags.error_count() == before)
        (void)diags.error(Code::E0915, Place{}, "the driver's linker rejects the code: " + std::string(call) + ": " + driver_.describe(status),
                          status == kUnsupportedPtxVersion ? "update NVIDIA's driver, or install ptxas" : "");
      return Failed;
    }
    if (linked.cubin.empty()) return diags.error(Code::E0915, Place{}, "the driver's linker reports success but gave no cubin");
    return linked;
  }

 private:
  const Driver& driver_;
  unsigned device_sm_;
  std::string version_;
};

}  // namespace

bool wait_for(int child, double seconds, int& status) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  // Wakes at the child's end; kernels without this call leave it to the loop below.
  const int handle = seconds > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, child, 0)) : -1;
  if (handle >= 0) {
    pollfd ended{handle, POLLIN, 0};
    (void)::poll(&ended, 1, static_cast<int>(std::min(std::ceil(seconds * 1000), 1e9)));
    ::close(handle);
  }
  for (auto pause = std::chrono::microseconds(100);;) {
    const pid_t ended = ::waitpid(child, &status, seconds > 0 ? WNOHANG : 0);
    const bool late = seconds > 0 && std::chrono::duration<double>(Clock::now() - begin).count() > seconds;
    if (ended == child) return !late;  // whatever the system let this process sleep: the limit is the limit
    if (ended < 0 && errno != EINTR) {
      status = 0xFF00;  // somebody else has waited for it: status 255
      return true;
    }
    if (seconds <= 0) continue;
    if (late) {
      (void)::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return false;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

int run_tool(const std::string& path, const std::vector<std::string>& arguments, const std::vector<int>& descriptors, std::string& output, double seconds, uint64_t memory_bytes) {
  output.clear();
  const ToolOutput said;
  if (said.fd() < 0) {
    output = std::generic_category().message(errno);
    return -1;
  }
  int error = 0;
  const pid_t child = start_tool(path, arguments, descriptors, said, memory_bytes, error);
  if (child < 0) {
    output = std::generic_category().message(error);
    return -1;
  }
  int status = 0;
  if (!wait_for(child, seconds, status)) return kTimedOut;
  (void)said.read(output);
  return exit_status(status);
}

Result<std::string> find_cuda_program(const char* name, const char* variable_name, Diagnostics& diags) {
  if (const char* chosen = variable(variable_name)) {
    if (!is_program(chosen)) return diags.error(Code::E0915, Place{}, std::string(variable_name) + "=" + chosen + " names no program");
    return std::string(chosen);
  }
  return find_program(name);
}

Result<std::string> find_ptxas(Diagnostics& diags) {
  const char* chosen = variable("TILEVM_PTXAS");
  if (chosen && std::strcmp(chosen, "driver") == 0) return std::string();
  return find_cuda_program("ptxas", "TILEVM_PTXAS", diags);
}

unsigned ptx_of_assembler(const std::string& version) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "ptxas V%d.%d", &major, &minor) == 2 && major < 1000 ? highest_ptx_version(major * 1000 + minor * 10) : 0;
}

Result<std::unique_ptr<Linker>> make_ptxas(const std::string& path, Diagnostics& diags, const std::string& memory, bool ask, double seconds) {
  const std::string remembered = memory_file(path, memory);
  if (std::string version = read_memory(remembered); !version.empty()) return std::unique_ptr<Linker>(std::make_unique<Ptxas>(path, std::move(version)));
  if (!ask) return std::unique_ptr<Linker>(std::make_unique<Ptxas>(path, "ptxas"));
  std::string output;
  const int status = run_tool(path, {"--version"}, {}, output, seconds);
  if (status == kTimedOut) return diags.error(Code::E0915, Place{}, path + " does not tell its version in " + seconds_text(seconds), "TILEVM_PTXAS names another one");
  // "Cuda compilation tools, release 13.0, V13.0.88"
  const size_t at = output.rfind(", V");
  if (status != 0 || at == std::string::npos) return diags.error(Code::E0915, Place{}, path + " does not tell its version" + (output.empty() ? "" : ": " + output.substr(0, kMostSaid)));
  const size_t end = output.find_first_not_of("0123456789.", at + 3);
  const std::string version = "ptxas " + output.substr(at + 2, end == std::string::npos ? end : end - at - 2);
  write_memory(remembered, version);
  return std::unique_ptr<Linker>(std::make_unique<Ptxas>(path, version));
}

std::unique_ptr<Linker> make_driver_linker(const Driver& driver, unsigned device_sm) { return std::make_unique<DriverLinker>(driver, device_sm); }

void lift_messages(const std::string& output, const LinkRequest& request, bool failed, Linked& to, Diagnostics& diags) {
  std::shared_ptr<const Source> source;
  constexpr size_t kMostErrors = 8;  // the first says it all; the rest is often noise that follows from it
  size_t errors = 0;
  std::string final_words;
  for (size_t at = 0; at < output.size();) {
    const size_t end = std::min(output.find('\n', at), output.size());
    std::string line = output.substr(at, end - at);
    at = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    // "ptxas FILE, line 4; error   : TEXT", "ptxas warning : TEXT", "ptxas info    : TEXT", "ptxas fatal   : TEXT"; the driver's linker
    // leaves out "FILE, ". Anything else continues an info.
    const auto word_at = [&](const char* word) {
      const size_t found = line.find(word);
      if (found == std::string::npos || found > 512) return std::string::npos;
      const size_t colon = line.find_first_not_of(' ', found + std::strlen(word));
      return colon != std::string::npos && line[colon] == ':' ? found : std::string::npos;
    };
    const auto text_after = [&](size_t word) {
      const size_t text = line.find_first_not_of(' ', line.find(':', word) + 1);
      return text == std::string::npos ? std::string() : line.substr(text);
    };
    Place place;
    const auto locate = [&](size_t word) {
      const size_t mark = line.rfind("line ", word);
      if (mark == std::string::npos) return;
      const unsigned long number = std::strtoul(line.c_str() + mark + 5, nullptr, 10);
      if (number == 0) return;
      if (!source) source = std::make_shared<const Source>(request.name + ".ptx", request.ptx);
      size_t begin = 0;
      for (unsigned long n = 1; n < number; ++n) {
        begin = request.ptx.find('\n', begin);
        if (begin == std::string::npos) return;
        ++begin;
      }
      begin = std::min(request.ptx.find_first_not_of(" \t", begin), request.ptx.size());
      const size_t stop = std::min(request.ptx.find('\n', begin), request.ptx.size());
      place.source = source;
      place.span = {static_cast<uint32_t>(begin), static_cast<uint32_t>(stop - begin)};
    };
    if (const size_t word = word_at("error"); word != std::string::npos) {
      locate(word);
      if (failed && errors++ < kMostErrors) (void)diags.error(Code::E0915, place, "the assembler rejects the code: " + text_after(word));
    } else if (const size_t fatal = word_at("fatal"); fatal != std::string::npos) {
      final_words = text_after(fatal);
    } else if (const size_t warning = word_at("warning"); warning != std::string::npos) {
      locate(warning);
      diags.warn(place, "the assembler warns: " + text_after(warning));
    } else if (const size_t info = word_at("info"); info != std::string::npos) {
      const std::string text = text_after(info);
      if (text.starts_with("(C")) to.advice.push_back(text);
      if (request.verbose) to.info.push_back(text);
    } else if (request.verbose) {
      const size_t text = line.find_first_not_of(' ');
      to.info.push_back(line.substr(text));
    }
  }
  if (failed && errors == 0 && !final_words.empty()) (void)diags.error(Code::E0915, Place{}, "the assembler rejects the code: " + final_words);
}

}  // namespace tile::cuda
