// The child compiles and leaves what came of it in a memory file; the parent waits for it, with a limit, and reads that.
#include "backend/device/guarded.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "backend/cuda/link.h"

namespace tile {
namespace {

constexpr int kDone = 0, kNoMemory = 77;

class Writer {
 public:
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(const T& v) {
    bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void add(const std::string& s) {
    add(uint64_t{s.size()});
    bytes += s;
  }
  template <class T>
  void add(const std::vector<T>& all) {
    add(uint64_t{all.size()});
    for (const T& v : all) add(v);
  }
  void add(const TensorMapSpec::Number& n) { add(n.constant), add(n.param); }
  std::string bytes;
};

/// Reads what a Writer of this same program wrote; a child that was cut short leaves too little, which is seen.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void get(T& v) {
    if (sizeof v > bytes_.size() - at_) return fail();
    std::memcpy(&v, bytes_.data() + at_, sizeof v);
    at_ += sizeof v;
  }
  void get(std::string& s) {
    uint64_t n = 0;
    get(n);
    if (n > bytes_.size() - at_) return fail();
    s.assign(bytes_, at_, n);
    at_ += n;
  }
  template <class T>
  void get(std::vector<T>& all) {
    uint64_t n = 0;
    get(n);
    if (n > bytes_.size()) return fail();
    all.resize(n);
    for (T& v : all) get(v);
  }
  void get(TensorMapSpec::Number& n) { get(n.constant), get(n.param); }
  [[nodiscard]] bool good() const { return ok_; }
  [[nodiscard]] bool ok() const { return ok_ && at_ == bytes_.size(); }  ///< all was read

 private:
  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }
  std::string bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

// Whoever adds a member to one of these structures adds it to write() and read() too.
struct LikeTensorMapSpec {
  uint32_t base;
  ElementType element;
  std::vector<int> dims, strides, box;
  unsigned swizzle;
  bool round_tf32;
};
struct LikeCompiledKernel {
  std::string entry, ptx, llvm, plan, target;
  uint32_t threads, shared_bytes, cluster;
  uint64_t local_bytes_per_block;
  bool linear_grid, loops;
  std::vector<int> maps, remarks;
};
static_assert(sizeof(CompiledKernel) == sizeof(LikeCompiledKernel) && sizeof(TensorMapSpec) == sizeof(LikeTensorMapSpec) && sizeof(Remark) == 16 + 2 * sizeof(std::string));

void write(Writer& w, const CompiledKernel& k) {
  w.add(k.entry), w.add(k.ptx), w.add(k.llvm), w.add(k.plan), w.add(k.target), w.add(k.threads), w.add(k.shared_bytes), w.add(k.cluster), w.add(k.local_bytes_per_block), w.add(k.linear_grid), w.add(k.loops);
  w.add(uint64_t{k.maps.size()});
  for (const TensorMapSpec& m : k.maps) w.add(m.base), w.add(m.element), w.add(m.dims), w.add(m.strides), w.add(m.box), w.add(m.swizzle), w.add(m.round_tf32);
  w.add(uint64_t{k.remarks.size()});
  for (const Remark& r : k.remarks) w.add(r.inst), w.add(r.what), w.add(r.why), w.add(r.stages);
}

void read(Reader& r, CompiledKernel& k) {
  r.get(k.entry), r.get(k.ptx), r.get(k.llvm), r.get(k.plan), r.get(k.target), r.get(k.threads), r.get(k.shared_bytes), r.get(k.cluster), r.get(k.local_bytes_per_block), r.get(k.linear_grid), r.get(k.loops);
  uint64_t n = 0;
  r.get(n);
  for (; n > 0 && r.good() && n <= 1024; --n) {
    TensorMapSpec& m = k.maps.emplace_back();
    r.get(m.base), r.get(m.element), r.get(m.dims), r.get(m.strides), r.get(m.box), r.get(m.swizzle), r.get(m.round_tf32);
  }
  r.get(n);
  for (; n > 0 && r.good() && n <= (uint64_t{1} << 24); --n) {
    Remark& x = k.remarks.emplace_back();
    r.get(x.inst), r.get(x.what), r.get(x.why), r.get(x.stages);
  }
}

/// A diagnostic without its place, which the parent makes anew from the instruction.
void write(Writer& w, const Diagnostics& diags) {
  w.add(uint64_t{diags.all().size()});
  for (const Diagnostic& d : diags.all()) w.add(d.code), w.add(code_info(d.code).cls == FailureClass::Warning), w.add(d.place.function), w.add(d.place.instruction), w.add(d.message), w.add(d.help), w.add(d.subclass);
}

void read(Reader& r, const Module& module, const Function& entry, Diagnostics& diags) {
  uint64_t n = 0;
  r.get(n);
  for (; n > 0 && r.good() && n <= (uint64_t{1} << 20); --n) {
    Code code{};
    bool warning = false;
    std::string function;
    int64_t instruction = -1;
    Diagnostic d{};
    r.get(code), r.get(warning), r.get(function), r.get(instruction), r.get(d.message), r.get(d.help), r.get(d.subclass);
    if (static_cast<size_t>(code) >= static_cast<size_t>(Code::kCount)) return;
    d.code = code;
    if (instruction >= 0 && static_cast<uint64_t>(instruction) < entry.insts.size())
      d.place = module.place(entry, static_cast<InstId>(instruction));
    else if (!function.empty())
      d.place = module.place(entry);
    if (warning)
      diags.warn(d.place, d.message);
    else
      (void)diags.error(std::move(d));
  }
}

/// In the child: the address space may grow by so many bytes.
void limit_memory(uint64_t more) {
  unsigned long pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%lu", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  const rlim_t limit = uint64_t{pages} * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit r{limit, limit};
  (void)::setrlimit(RLIMIT_AS, &r);
}

[[noreturn]] void child(int file, pid_t parent, const ValidModule& module, const Function& entry, const CompileOptions& options, const CompileLimits& limits) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // Pipes of this program's other threads end for their readers when all copies are closed. Kernels before 5.9 close nothing here.
  if (file > 3) (void)::syscall(SYS_close_range, 3u, static_cast<unsigned>(file - 1), 0u);
  (void)::syscall(SYS_close_range, static_cast<unsigned>(file + 1), ~0u, 0u);
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  for (const int s : {SIGINT, SIGTERM, SIGALRM}) ::signal(s, SIG_DFL);
  exit_without_memory(kNoMemory);
  if (limits.memory_bytes != 0) limit_memory(limits.memory_bytes);
  Diagnostics diags;
  const auto made = compile_ptx(module, entry, options, diags);
  Writer w;
  w.add(made.ok());
  if (made) write(w, *made);
  write(w, diags);
  for (size_t done = 0; done < w.bytes.size();) {
    const ssize_t n = ::write(file, w.bytes.data() + done, w.bytes.size() - done);
    if (n <= 0 && errno != EINTR) ::_exit(kNoMemory);
    if (n > 0) done += static_cast<size_t>(n);
  }
  ::_exit(kDone);  // nothing of the parent's is to be ended twice
}

std::string contents(int file) {
  struct stat status {};
  std::string bytes;
  if (::fstat(file, &status) != 0) return bytes;
  bytes.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0 && errno != EINTR) break;
    if (n > 0) done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

Result<CompiledKernel> compile_guarded(const ValidModule& module, const Function& entry, const CompileOptions& options, const CompileLimits& limits, Diagnostics& diags, const std::function<void()>& meanwhile) {
  const int file = ::memfd_create("compiled", MFD_CLOEXEC);
  const pid_t parent = ::getpid();
  const pid_t id = file < 0 ? -1 : ::fork();
  if (id == 0) child(file, parent, module, entry, options, limits);
  if (id < 0) {  // no process to be had: without a guard
    if (file >= 0) ::close(file);
    return compile_ptx(module, entry, options, diags);
  }
  if (meanwhile) meanwhile();
  int status = 0;
  const bool in_time = cuda::wait_for(id, limits.seconds, status);
  const std::string bytes = contents(file);
  ::close(file);
  const Place place = (*module).place(entry);
  const auto number = [](double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", s);
    return std::string(text);
  };
  if (!in_time)
    return diags.error({Code::L0106, place, "compiling for " + options.target + " takes longer than " + number(limits.seconds) + " s", {}, "raise --compile-time-limit, or use -O1", "CompileTime"});
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory)
    return diags.error({Code::L0103, place, "compiling for " + options.target + " takes more memory than " + (limits.memory_bytes ? "the limit of " + std::to_string(limits.memory_bytes) + " bytes" : std::string("there is")), {},
                        "raise --compile-max-memory, or use -O1", "CompileMemory"});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone)
    return diags.error(Code::I0001, place, WIFSIGNALED(status) ? "the compiler was ended by signal " + std::to_string(WTERMSIG(status)) : "the compiler ended with status " + std::to_string(WEXITSTATUS(status)));
  Reader reader(bytes);
  bool made = false;
  CompiledKernel kernel;
  reader.get(made);
  if (made) read(reader, kernel);
  read(reader, *module, entry, diags);
  if (!reader.ok()) return diags.error(Code::I0001, place, "the compiler left an incomplete result");
  if (!made) return diags.has_errors() ? Result<CompiledKernel>(Failed) : Result<CompiledKernel>(diags.error(Code::I0001, place, "the compiler failed without a reason"));
  return kernel;
}

}  // namespace tile
