// Whole files in and out: reading with a limit, and writing that leaves either the whole file or nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vm/base/diagnostics.h"

namespace tile {

/// A file opened for reading. Closes itself.
class InputFile {
 public:
  InputFile() = default;
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  /// E0901 where the file is missing, a folder, or must not be read.
  [[nodiscard]] static Result<InputFile> open(const std::string& path, Diagnostics& diags);

  /// Size of a regular file; -1 for pipes and devices, whose end shows only in reading.
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Reads up to `bytes`; less only at the end of the file. -1 after an error, which is reported.
  [[nodiscard]] int64_t read(void* to, size_t bytes, Diagnostics& diags);

 private:
  int fd_ = -1;
  int64_t size_ = -1;
  std::string path_;
};

inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;

/// The bytes of a whole file. E0901 as above; L0101 beyond `limit`, found before memory for it is taken.
[[nodiscard]] Result<std::vector<uint8_t>> read_file(const std::string& path, Diagnostics& diags,
                                                     uint64_t limit = kMaxFileBytes);

/// Says what write_file() would say (E0902), as far as that shows before there is anything to write.
[[nodiscard]] Status can_write_file(const std::string& path, Diagnostics& diags);

/// Writes the pieces, one behind the other, to a new file in the folder of `path`, flushes it to disk and renames it to
/// `path`. On failure (E0902) `path` is as it was and no other file is left; nor is one of a process that is ended meanwhile, where
/// the file system knows files without names. A link is followed; devices and pipes are written directly.
[[nodiscard]] Status write_file(const std::string& path, std::span<const std::span<const uint8_t>> pieces,
                                Diagnostics& diags);
[[nodiscard]] Status write_file(const std::string& path, std::span<const uint8_t> bytes, Diagnostics& diags);

}  // namespace tile
