// The assembler: its messages as diagnostics, programs that do not run, and ptxas itself where it is installed.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "backend/cuda/driver.h"
#include "backend/cuda/link.h"
#include "backend/device/build.h"
#include "temp_dir.h"

namespace {

using namespace tile;

constexpr char kPtx[] =
    ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n  .reg .u64 %r;\n  ld.param.u64 %r, [a];\n  st.global.u32 [%r], 5;\n  ret;\n}\n";

size_t open_files() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

}  // namespace

TEST_CASE("assembler messages become diagnostics at the line of the PTX") {
  const cuda::LinkRequest request{"k", kPtx, "sm_90a"};
  cuda::Linked linked;
  Diagnostics diags;
  cuda::lift_messages("ptxas /proc/self/fd/3, line 8; error   : Unknown modifier '.globl'\nptxas fatal   : Ptx assembly aborted due to errors\n", request, true, linked, diags);
  REQUIRE(diags.all().size() == 1);
  const Diagnostic& d = diags.all()[0];
  CHECK(d.code == Code::E0915);
  CHECK(d.message == "the assembler rejects the code: Unknown modifier '.globl'");
  REQUIRE(d.place.source);
  CHECK(d.place.source->line_col(d.place.span.begin).line == 8);
  CHECK(d.place.source->name() == "k.ptx");
  // The driver's linker writes no file name; a line beyond the text has no place; a fatal message alone is the error.
  diags.clear();
  cuda::lift_messages("ptxas application ptx input, line 999; error : bad\n", request, true, linked, diags);
  REQUIRE(diags.all().size() == 1);
  CHECK_FALSE(diags.all()[0].place.source);
  diags.clear();
  cuda::lift_messages("ptxas fatal   : Unresolved extern function 'f'\n", request, true, linked, diags);
  REQUIRE(diags.error_count() == 1);
  CHECK(diags.all()[0].message.find("Unresolved extern") != std::string::npos);
  // Success: warnings, advice and information.
  diags.clear();
  cuda::LinkRequest verbose = request;
  verbose.verbose = true;
  cuda::lift_messages("ptxas warning : something\nptxas info    : (C7510) Potential Performance Loss: serialized\nptxas info    : Function properties for k\n    0 bytes stack frame\n", verbose, false, linked, diags);
  CHECK_FALSE(diags.has_errors());
  CHECK(diags.all().size() == 1);
  CHECK(linked.advice.size() == 1);
  CHECK(linked.info.size() == 3);
  // Any text is safe.
  diags.clear();
  constexpr char kNoise[] = "line ; error\nerror:\nline 0; error : x\nline 18446744073709551615; error : y\n\0\n\xff info :";
  cuda::lift_messages(std::string(kNoise, sizeof kNoise), request, true, linked, diags);
  CHECK(diags.error_count() >= 1);
}

TEST_CASE("programs run without a shell, and nothing of them is left") {
  const size_t before = open_files();
  std::string output;
  CHECK(cuda::run_tool("/bin/sh", {"-c", "echo out; echo err >&2; cat; exit 7"}, {}, output) == 7);
  CHECK(output == "out\nerr\n");
  CHECK(cuda::run_tool("/bin/sh", {"-c", "kill -9 $$"}, {}, output) == 128 + 9);
  CHECK(cuda::run_tool("/no/such/program", {}, {}, output) == -1);
  CHECK(output.find("No such file") != std::string::npos);
  CHECK(open_files() == before);
}

TEST_CASE("the version of an assembler is remembered as long as its file stays what it was") {
  const test::TempDir temporary;
  const std::string folder = temporary.path().string(), program = temporary.file("ptxas"), asked = temporary.file("asked");
  const auto write = [&](const std::string& version) {
    std::ofstream(program) << "#!/bin/sh\necho >> " << asked << "\necho 'Cuda compilation tools, release 13.0, " << version << "'\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  };
  const auto times_asked = [&] {
    std::ifstream in(asked);
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  const auto version = [&](const std::string& memory) {
    Diagnostics diags;
    const auto made = cuda::make_ptxas(program, diags, memory);
    REQUIRE_MESSAGE(made, render(diags));
    return (*made)->version();
  };
  write("V13.0.88");
  CHECK(version("") == "ptxas V13.0.88");
  CHECK(version("") == "ptxas V13.0.88");
  CHECK(times_asked() == 2);
  CHECK(version(folder) == "ptxas V13.0.88");
  CHECK(version(folder) == "ptxas V13.0.88");
  CHECK(times_asked() == 3);
  // Another file in its place, and a memory that holds something else.
  write("V13.0.123");
  CHECK(version(folder) == "ptxas V13.0.123");
  CHECK(times_asked() == 4);
  for (const auto& f : std::filesystem::directory_iterator(folder))
    if (f.path().filename().string().starts_with("assembler-")) std::ofstream(f.path()) << "ptxas V13; rm";
  CHECK(version(folder) == "ptxas V13.0.123");
  CHECK(times_asked() == 5);
  // A folder that is not there is no error.
  CHECK(version(folder + "/none") == "ptxas V13.0.123");
}

TEST_CASE("ptxas that is none is an error") {
  Diagnostics diags;
  ::setenv("TILEVM_PTXAS", "/no/such/ptxas", 1);
  CHECK_FALSE(cuda::find_ptxas(diags).ok());
  CHECK(diags.first_error()->code == Code::E0915);
  diags.clear();
  ::setenv("TILEVM_PTXAS", "driver", 1);
  const auto none = cuda::find_ptxas(diags);
  REQUIRE(none.ok());
  CHECK(none->empty());
  CHECK_FALSE(choose_linker(nullptr, 0, "sm_90a", diags).ok());
  ::unsetenv("TILEVM_PTXAS");
  diags.clear();
  CHECK_FALSE(cuda::make_ptxas("/bin/true", diags).ok());
  CHECK(diags.first_error()->code == Code::E0915);
}

TEST_CASE("assemblers that are too old, never answer, or say too much") {
  const test::TempDir temporary;
  const std::string program = temporary.file("ptxas");
  const auto write = [&](const std::string& text) {
    std::ofstream(program) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  };
  Diagnostics diags;
  write("exec sleep 20\n");
  CHECK_FALSE(cuda::make_ptxas(program, diags, {}, true, 0.05).ok());
  REQUIRE(diags.error_count() == 1);
  CHECK(diags.first_error()->message.ends_with(" does not tell its version in 0.05 s"));

  CHECK(cuda::ptx_of_assembler("ptxas V11.8.89") == 78);
  CHECK(cuda::ptx_of_assembler("ptxas V13.0.88") == 90);
  CHECK(cuda::ptx_of_assembler("ptxas V99.5.1") == 91);
  CHECK(cuda::ptx_of_assembler("ptxas") == 0);
  diags.clear();
  write("echo 'Cuda compilation tools, release 11.8, V11.8.89'; exit 3\n");
  CHECK_FALSE(cuda::make_ptxas(program, diags).ok());
  write("echo 'Cuda compilation tools, release 11.8, V11.8.89'\n");
  diags.clear();
  const auto old = cuda::make_ptxas(program, diags);
  REQUIRE(old.ok());
  CHECK_FALSE((*old)->link({"k", kPtx, "sm_90a"}, diags).ok());
  REQUIRE(diags.error_count() == 1);
  CHECK(diags.first_error()->message == "code for sm_90a is PTX 8.3; ptxas V11.8.89 (" + program + ") takes PTX up to 7.8");

  // Output without an end takes no more memory than this, and ends the program.
  std::string output;
  CHECK(cuda::run_tool("/usr/bin/yes", {"0123456"}, {}, output, 60) != 0);
  CHECK(output.size() == size_t{1} << 24);
  write("if [ \"$1\" = --version ]; then echo 'release 13.0, V13.0.88'; else exec yes 0123456; fi\n");
  diags.clear();
  const auto loud = cuda::make_ptxas(program, diags);
  REQUIRE(loud.ok());
  CHECK_FALSE((*loud)->link({"k", kPtx, "sm_90a"}, diags).ok());
  REQUIRE(diags.error_count() == 1);
  CHECK(diags.first_error()->message.size() < 1200);
}

namespace {

/// ptxas where it is installed; elsewhere nothing, and a message that the case is skipped.
std::string installed_ptxas(Diagnostics& diags) {
  const auto path = cuda::find_ptxas(diags);
  if (path && !path->empty()) return *path;
  MESSAGE("ptxas was not found: skipped (pip install nvidia-cuda-nvcc, or TILEVM_PTXAS)");
  return {};
}

}  // namespace

TEST_CASE("ptxas makes cubins and says what is wrong") {
  Diagnostics diags;
  const std::string path = installed_ptxas(diags);
  if (path.empty()) return;
  const size_t before = open_files();
  const auto ptxas = cuda::make_ptxas(path, diags);
  REQUIRE(ptxas.ok());
  CHECK((*ptxas)->version().starts_with("ptxas V"));
  cuda::LinkRequest request{"k", kPtx, "sm_90a"};
  request.verbose = request.lineinfo = true;
  const auto linked = (*ptxas)->link(request, diags);
  REQUIRE(linked.ok());
  CHECK(linked->cubin.size() > 500);
  CHECK(linked->cubin[0] == 0x7f);
  CHECK(linked->info.size() > 1);
  CHECK(diags.all().empty());
  request.ptx.replace(request.ptx.find("st.global"), 9, "st.globel");
  CHECK_FALSE((*ptxas)->link(request, diags).ok());
  REQUIRE(diags.error_count() == 1);
  CHECK(diags.all()[0].place.source->line_col(diags.all()[0].place.span.begin).line == 8);
  diags.clear();
  request.ptx = kPtx;
  request.target = "sm_80";
  CHECK_FALSE((*ptxas)->link(request, diags).ok());
  CHECK(diags.error_count() == 1);
  CHECK(open_files() == before);
}

TEST_CASE("ptxas that was begun before its text is there makes the same cubin, and says the same") {
  Diagnostics diags;
  const std::string path = installed_ptxas(diags);
  if (path.empty()) return;
  const size_t before = open_files();
  const auto ptxas = cuda::make_ptxas(path, diags);
  REQUIRE(ptxas.ok());
  cuda::LinkRequest request{"k", kPtx, "sm_90a"};
  const auto compare = [&] {
    auto begun = (*ptxas)->begin(request);
    REQUIRE(begun);
    Diagnostics of_file, of_pipe;
    const auto file = (*ptxas)->link(request, of_file), pipe = (*ptxas)->link(request, of_pipe, std::move(begun));
    CHECK(file.ok() == pipe.ok());
    if (file && pipe) CHECK(file->cubin == pipe->cubin);
    CHECK(render(of_file) == render(of_pipe));
    return file.ok();
  };
  CHECK(compare());
  // More than a new pipe holds, and more than any pipe of an ordinary user does.
  for (const size_t bytes : {size_t{100000}, size_t{3000000}}) {
    request.ptx = kPtx + std::string(bytes, '\n');
    CHECK(compare());
  }
  request.ptx = kPtx;
  request.memory_bytes = uint64_t{4} << 30;
  CHECK(compare());
  request.ptx.replace(request.ptx.find("st.global"), 9, "st.globel");
  CHECK_FALSE(compare());
  request.memory_bytes = 0;
  CHECK_FALSE(compare());
  // The cubin then holds the text, which takes a file.
  request.lineinfo = true;
  CHECK_FALSE((*ptxas)->begin(request));
  request.lineinfo = false;
  // One that nothing is linked with ends.
  CHECK((*ptxas)->begin(request));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(open_files() == before);
}

TEST_CASE("an assembler that ends, fails or lingers without its text is one that was not begun") {
  const test::TempDir temporary;
  const std::string program = temporary.file("ptxas");
  const auto with = [&](const std::string& lines) {
    std::ofstream(program) << "#!/bin/sh\nif [ -p /proc/self/fd/3 ]; then\n" << lines << "\nfi\nprintf '\\177ELF of a file' > /proc/self/fd/4\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    Diagnostics diags;
    const auto ptxas = cuda::make_ptxas(program, diags, {}, false);
    REQUIRE(ptxas.ok());
    cuda::LinkRequest request{"k", kPtx, "sm_90a"};
    request.seconds = 0.5;
    auto begun = (*ptxas)->begin(request);
    REQUIRE(begun);
    auto linked = (*ptxas)->link(request, diags, std::move(begun));
    if (!linked) return render(diags);
    return std::string(linked->cubin.begin(), linked->cubin.end());
  };
  CHECK(with("exit 3") == "\177ELF of a file");
  CHECK(with("kill -9 $$") == "\177ELF of a file");
  CHECK(with("cat <&3 > /dev/null; printf '\\177ELF of a pipe' > /proc/self/fd/4; exit 0") == "\177ELF of a pipe");
  CHECK(with("exec sleep 20").find("L0106") != std::string::npos);
}

TEST_CASE("targets of devices, and versions of drivers") {
  CHECK(target_for(75) == "sm_75");
  CHECK(target_for(80) == "sm_80");
  CHECK(target_for(87) == "sm_86");
  CHECK(target_for(90) == "sm_90a");
  CHECK(target_for(100) == "sm_100a");
  CHECK(target_for(101).empty());
  CHECK(target_for(121).empty());
  CHECK(target_for(70).empty());
  CHECK(runs_on("sm_80", 86));
  CHECK(runs_on("sm_90", 90));
  CHECK(runs_on("sm_90a", 90));
  CHECK_FALSE(runs_on("sm_90a", 100));
  CHECK_FALSE(runs_on("sm_86", 80));
  CHECK_FALSE(runs_on("sm_80", 90));
  CHECK(cuda::highest_ptx_version(13000) == 90);
  CHECK(cuda::highest_ptx_version(12060) == 85);
  CHECK(cuda::highest_ptx_version(12040) == 84);
  CHECK(cuda::highest_ptx_version(99990) == 91);
  CHECK(cuda::driver_for_ptx(83) == 12030);
  CHECK_FALSE(compiler_identity().empty());
}

TEST_CASE("programs that take too long or too much memory are ended") {
  std::string output;
  CHECK(cuda::run_tool("/bin/sleep", {"20"}, {}, output, 0.05) == cuda::kTimedOut);
  CHECK(cuda::run_tool("/bin/sleep", {"0"}, {}, output, 20) == 0);
  // dd asks for a buffer of 256 MiB.
  const std::vector<std::string> copy = {"if=/dev/zero", "of=/dev/null", "bs=268435456", "count=0"};
  CHECK(cuda::run_tool("/bin/dd", copy, {}, output, 20) == 0);
  const std::vector<std::string> large = {"if=/dev/zero", "of=/dev/null", "bs=268435456", "count=1"};
  CHECK(cuda::run_tool("/bin/dd", large, {}, output, 20, uint64_t{64} << 20) != 0);
}
