// POSIX file access; every call that a signal can interrupt is repeated.
#include "vm/runtime/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace tile {
namespace {

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z' && !(text.size() > 1 && text[1] >= 'A' && text[1] <= 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

Place place_of(const std::string& path) {
  Place place;
  place.file = path;
  return place;
}

FailedTag cannot_read(const std::string& path, int error, Diagnostics& diags) {
  std::string help;
  if (error == ENOENT && path[0] != '/') {
    std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
    if (here) help = std::string("relative paths start at ") + here.get();
  }
  return diags.error(Code::E0901, place_of(path), "cannot read: " + reason(error), help);
}

/// A path with a NUL would silently name another file.
bool usable(const std::string& path) {
  return !path.empty() && path.find('\0') == std::string::npos;
}

int write_all(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

int write_pieces(int fd, std::span<const std::span<const uint8_t>> pieces) {
  for (const auto& piece : pieces) {
    if (const int error = write_all(fd, piece)) return error;
  }
  return 0;
}

/// close() reports write errors that network file systems delay; the descriptor is gone even then.
int close_checked(int fd) {
  return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
}

int write_directly(const std::string& path, std::span<const std::span<const uint8_t>> pieces) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write_pieces(fd, pieces);
  const int closed = close_checked(fd);
  return error ? error : closed;
}

/// Calls make(path) with names in a folder that nothing has yet; what it returns is 0, or an error.
template <class Make>
int with_new_name(const std::string& folder, std::string& path, Make make) {
  static std::atomic<unsigned> counter{0};
  // Names carry process and count, so a clash means a leftover of a killed process with the same id.
  int error = EEXIST;
  for (int attempt = 0; attempt < 100 && (error == EEXIST || error == EINTR); ++attempt) {
    path = folder + ".tile-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    error = make(path);
  }
  return error;
}

int fill(int fd, mode_t mode, bool keep_mode, std::span<const std::span<const uint8_t>> pieces) {
  if (const int error = write_pieces(fd, pieces)) return error;
  if (keep_mode && ::fchmod(fd, mode & 07777) != 0) return errno;
  return ::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

/// A file without a name: of a process that is ended while it writes, nothing is left.
/// @return an error; nothing where names are needed from the start (file systems without such files, no /proc)
std::optional<int> link_nameless(const std::string& folder, std::string& temporary, mode_t mode, bool keep_mode, std::span<const std::span<const uint8_t>> pieces) {
  const int fd = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (fd < 0) return std::nullopt;
  if (const int error = fill(fd, mode, keep_mode, pieces)) {
    ::close(fd);
    return error;
  }
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd);
  const int linked = with_new_name(folder, temporary, [&](const std::string& path) {
    return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
  });
  const int closed = close_checked(fd);
  if (linked) return std::nullopt;
  return closed;
}

int write_named(const std::string& folder, std::string& temporary, mode_t mode, bool keep_mode, std::span<const std::span<const uint8_t>> pieces) {
  int fd = -1;
  if (const int error = with_new_name(folder, temporary, [&](const std::string& path) {
        fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return fd < 0 ? errno : 0;
      })) {
    temporary.clear();
    return error;
  }
  const int error = fill(fd, mode, keep_mode, pieces);
  const int closed = close_checked(fd);
  return error ? error : closed;
}

int write_by_rename(const std::string& target, mode_t mode, bool keep_mode, std::span<const std::span<const uint8_t>> pieces) {
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "./" : target.substr(0, slash + 1);
  std::string temporary;
  const auto nameless = link_nameless(folder, temporary, mode, keep_mode, pieces);
  int error = nameless ? *nameless : write_named(folder, temporary, mode, keep_mode, pieces);
  if (!error && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error) {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    return error;
  }
  // The new name survives a crash only once its folder is on disk; file systems that refuse this keep the file all the
  // same.
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    (void)::fsync(directory);
    ::close(directory);
  }
  return 0;
}

}  // namespace

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), size_(other.size_), path_(std::move(other.path_)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<InputFile> InputFile::open(const std::string& path, Diagnostics& diags) {
  if (!usable(path))
    return diags.error(Code::E0901, place_of(path), "cannot read: the file name is empty or holds a zero byte");
  InputFile file;
  do {
    file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ < 0) return cannot_read(path, errno, diags);
  struct stat status {};
  if (::fstat(file.fd_, &status) != 0) return cannot_read(path, errno, diags);
  if (S_ISDIR(status.st_mode))
    return diags.error(Code::E0901, place_of(path), "cannot read: it is a folder, expected a file");
  // Files of /proc are regular with size 0; only a positive size is worth trusting.
  file.size_ = S_ISREG(status.st_mode) && status.st_size > 0 ? status.st_size : -1;
  file.path_ = path;
  return file;
}

int64_t InputFile::read(void* to, size_t bytes, Diagnostics& diags) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + done, std::min(bytes - done, size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      (void)cannot_read(path_, errno, diags);
      return -1;
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<int64_t>(done);
}

Result<std::vector<uint8_t>> read_file(const std::string& path, Diagnostics& diags, uint64_t limit) {
  auto file = InputFile::open(path, diags);
  if (!file) return Failed;
  auto too_large = [&] {
    return diags.error(Code::L0101, place_of(path),
                       "the file is larger than the limit of " + std::to_string(limit) + " bytes");
  };
  if (file->size() > 0 && static_cast<uint64_t>(file->size()) > limit) return too_large();
  std::vector<uint8_t> bytes;
  size_t step = file->size() > 0 ? static_cast<size_t>(file->size()) + 1 : size_t{1} << 16;
  for (;;) {
    const size_t old = bytes.size();
    bytes.resize(old + step);
    const int64_t n = file->read(bytes.data() + old, step, diags);
    if (n < 0) return Failed;
    bytes.resize(old + static_cast<size_t>(n));
    if (bytes.size() > limit) return too_large();
    if (static_cast<size_t>(n) < step) return bytes;
    step = std::max<size_t>(bytes.size(), size_t{1} << 16);
  }
}

Status can_write_file(const std::string& path, Diagnostics& diags) {
  auto failed = [&](const std::string& why) { return diags.error(Code::E0902, place_of(path), "cannot write: " + why); };
  if (!usable(path)) return failed("the file name is empty or holds a zero byte");
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return failed("it is a folder, expected a file");
    return ::access(path.c_str(), W_OK) == 0 ? Status() : failed(reason(errno));
  }
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (::stat(folder.c_str(), &status) != 0) return failed(reason(errno));
  if (!S_ISDIR(status.st_mode)) return failed(reason(ENOTDIR));
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? Status() : failed(reason(errno));
}

Status write_file(const std::string& path, std::span<const std::span<const uint8_t>> pieces, Diagnostics& diags) {
  auto failed = [&](const std::string& why) {
    return diags.error(Code::E0902, place_of(path), "cannot write: " + why);
  };
  if (!usable(path)) return failed("the file name is empty or holds a zero byte");
  std::string target = path;
  struct stat status {};
  bool exists = ::stat(path.c_str(), &status) == 0;
  int error = 0;
  if (exists && S_ISDIR(status.st_mode)) return failed("it is a folder, expected a file");
  if (exists && !S_ISREG(status.st_mode)) {
    error = write_directly(path, pieces);
  } else {
    if (exists) {
      // Renaming onto a link would replace the link; its file is meant. A file that must not be written must not be
      // replaced either.
      std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
      if (real) target = real.get();
      if (::access(target.c_str(), W_OK) != 0) return failed(reason(errno));
    }
    error = write_by_rename(target, status.st_mode, exists, pieces);
  }
  if (error) return failed(reason(error));
  return {};
}

Status write_file(const std::string& path, std::span<const uint8_t> bytes, Diagnostics& diags) {
  const std::span<const uint8_t> one[] = {bytes};
  return write_file(path, one, diags);
}

}  // namespace tile
