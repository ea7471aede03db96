// Files appear whole or not at all, and every way of failing to read or write one is reported.
#include "vm/runtime/atomic_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "temp_dir.h"

namespace tile {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string message(const Diagnostics& diags) {
  return diags.first_error() ? diags.first_error()->message : "";
}

size_t entries(const fs::path& folder) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++n;
  return n;
}

TEST_CASE("a file is written whole, in pieces, and read back") {
  const test::TempDir dir;
  Diagnostics diags;
  const auto a = bytes("ab"), b = bytes(std::string(200000, 'x'));
  const std::span<const uint8_t> pieces[] = {a, {}, b};
  REQUIRE(write_file(dir.file("f"), pieces, diags));
  const auto back = read_file(dir.file("f"), diags);
  REQUIRE(back);
  CHECK(back->size() == 200002);
  CHECK((*back)[1] == 'b');
  REQUIRE(write_file(dir.file("f"), bytes("short"), diags));
  CHECK(*read_file(dir.file("f"), diags) == bytes("short"));
  CHECK(entries(dir.path()) == 1);
  REQUIRE(write_file(dir.file("empty"), bytes(""), diags));
  CHECK(read_file(dir.file("empty"), diags)->empty());
}

TEST_CASE("failed writes leave nothing and change nothing") {
  const test::TempDir dir;
  Diagnostics diags;
  CHECK_FALSE(write_file(dir.file("missing/f"), bytes("x"), diags));
  CHECK(message(diags) == "cannot write: no such file or directory");
  CHECK(diags.first_error()->code == Code::E0902);
  CHECK(diags.first_error()->place.file == dir.file("missing/f"));
  diags.clear();
  fs::create_directory(dir.path() / "folder");
  CHECK_FALSE(write_file(dir.file("folder"), bytes("x"), diags));
  CHECK(message(diags) == "cannot write: it is a folder, expected a file");
  CHECK_FALSE(write_file("", bytes("x"), diags));
  CHECK_FALSE(write_file(std::string("a\0b", 3), bytes("x"), diags));
  CHECK(entries(dir.path()) == 1);
  if (::access("/dev/full", W_OK) == 0) {
    diags.clear();
    CHECK_FALSE(write_file("/dev/full", bytes("x"), diags));
    CHECK(message(diags) == "cannot write: no space left on device");
  }
}

TEST_CASE("of a process that ends while it writes nothing is left") {
  const test::TempDir dir;
  // Not every file system knows files without a name.
  const int nameless = ::open(dir.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (nameless < 0) return;
  ::close(nameless);
  Diagnostics diags;
  REQUIRE(write_file(dir.file("old"), bytes("as it was"), diags));
  for (const char* name : {"new", "old"}) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // The kernel ends it at the first byte beyond the limit.
      const struct rlimit none {0, 0}, mebibyte {1 << 20, 1 << 20};
      ::setrlimit(RLIMIT_CORE, &none);
      ::setrlimit(RLIMIT_FSIZE, &mebibyte);
      ::signal(SIGXFSZ, SIG_DFL);
      (void)write_file(dir.file(name), std::vector<uint8_t>(3 << 20), diags);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(entries(dir.path()) == 1);
    CHECK(*read_file(dir.file("old"), diags) == bytes("as it was"));
  }
}

TEST_CASE("what will not be written is known before") {
  const test::TempDir dir;
  fs::create_directory(dir.path() / "folder");
  REQUIRE(write_file(dir.file("file"), bytes("x"), *std::make_unique<Diagnostics>()));
  for (const std::string& path : {dir.file("missing/f"), dir.file("folder"), dir.file("file/f"), std::string()}) {
    Diagnostics before, after;
    CHECK_FALSE(can_write_file(path, before));
    CHECK_FALSE(write_file(path, bytes("x"), after));
    CHECK(message(before) == message(after));
    CHECK(before.first_error()->place.file == path);
  }
  Diagnostics diags;
  for (const std::string& path : {dir.file("file"), dir.file("new"), dir.file("folder/new"), std::string("/dev/null")}) CHECK(can_write_file(path, diags));
  CHECK(entries(dir.path()) == 2);
}

TEST_CASE("links are followed and permissions kept") {
  const test::TempDir dir;
  Diagnostics diags;
  REQUIRE(write_file(dir.file("real"), bytes("old"), diags));
  ::chmod(dir.file("real").c_str(), 0640);
  fs::create_symlink("real", dir.path() / "link");
  REQUIRE(write_file(dir.file("link"), bytes("new"), diags));
  CHECK(fs::is_symlink(dir.path() / "link"));
  CHECK(*read_file(dir.file("real"), diags) == bytes("new"));
  CHECK((fs::status(dir.path() / "real").permissions() & fs::perms::mask) == fs::perms(0640));
  CHECK(write_file("/dev/null", bytes("x"), diags));
}

TEST_CASE("what cannot be read says why") {
  const test::TempDir dir;
  Diagnostics diags;
  CHECK_FALSE(read_file(dir.file("none"), diags));
  CHECK(message(diags) == "cannot read: no such file or directory");
  CHECK(diags.first_error()->code == Code::E0901);
  diags.clear();
  CHECK_FALSE(read_file(dir.path().string(), diags));
  CHECK(message(diags) == "cannot read: it is a folder, expected a file");
  diags.clear();
  CHECK_FALSE(read_file("no-such-file-here", diags));
  CHECK(diags.first_error()->help.find("relative paths start at /") == 0);
  diags.clear();
  CHECK_FALSE(read_file("", diags));
  REQUIRE(write_file(dir.file("f"), bytes("12345"), diags));
  if (::geteuid() != 0) {
    ::chmod(dir.file("f").c_str(), 0);
    diags.clear();
    CHECK_FALSE(read_file(dir.file("f"), diags));
    CHECK(message(diags) == "cannot read: permission denied");
  }
}

TEST_CASE("the size limit is exact, for files whose size is known and for others") {
  const test::TempDir dir;
  Diagnostics diags;
  REQUIRE(write_file(dir.file("f"), bytes("12345"), diags));
  CHECK(read_file(dir.file("f"), diags, 5));
  CHECK_FALSE(read_file(dir.file("f"), diags, 4));
  CHECK(diags.first_error()->code == Code::L0101);
  diags.clear();
  if (::access("/dev/zero", R_OK) == 0) {
    CHECK_FALSE(read_file("/dev/zero", diags, 100000));
    CHECK(diags.first_error()->code == Code::L0101);
  }
}

}  // namespace
}  // namespace tile
