// `tilevm conformance serve`: this program as an implementation under test (conformance/protocol.md), many cases in one process.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli_conformance.h"
#include "tools/cli_files.h"
#include "tools/cli_launch.h"
#include "tools/cli_options.h"
#include "tools/tilevm_gpu.h"
#include "vm/base/element_type.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/atomic_file.h"
#include "vm/runtime/device.h"

#ifdef TILEVM_WITH_GPU
#include "backend/cuda/launch.h"
#endif

namespace tile::cli {
namespace {

using nlohmann::ordered_json;

struct Server {
  GpuSettings gpu;
  LaunchSettings launch;
  std::shared_ptr<void> context;  ///< of the GPU, kept from case to case
  [[nodiscard]] bool on_gpu() const { return !gpu.gpu.empty() && !gpu.emulate(); }
};

/// "OutOfBounds" as the protocol writes it: "out_of_bounds".
std::string protocol_word(std::string_view subclass) {
  std::string out;
  for (const char c : subclass) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !out.empty()) out += '_';
    out += static_cast<char>(upper ? c - 'A' + 'a' : c);
  }
  return out;
}

/// What the first error stands for.
ordered_json failed(const Diagnostics& diags) {
  const Diagnostic* d = diags.first_error();
  if (d == nullptr) return {{"status", "crash"}, {"reason", "failed without a reason"}};
  const CodeInfo& code = code_info(d->code);
  ordered_json s;
  const auto is = [&](const char* status) { s["status"] = status; };
  is("crash");
  s["reason"] = std::string(code.name) + ": " + d->message;
  switch (code.cls) {
    case FailureClass::Trap:
      is("trap");
      s["class"] = protocol_word(d->subclass.empty() ? code.subclass : d->subclass);
      break;
    case FailureClass::Environment:
      // No GPU, driver or assembler: cannot be judged here. A call of the driver that fails is a failure of the launch.
      if (d->code == Code::E0910 || d->code == Code::E0911 || d->code == Code::E0912 || d->code == Code::E0916) is("unsupported");
      break;
    case FailureClass::Malformed:
    case FailureClass::Invalid:
    case FailureClass::Unsupported:
    case FailureClass::Exhausted:
      if (d->code == Code::E0808) {
        is("unsupported");
        break;
      }
      if (std::string_view(code.name).starts_with("E08")) break;  // the launch was described wrongly
      is("rejected");
      s["class"] = class_name(code.cls);
      if (d->place.source && d->place.span.valid()) s["line"] = d->place.source->line_col(d->place.span.begin).line;
      break;
    default: break;
  }
  return s;
}

/// An element type by its name; kCount for an unknown one.
ElementType element(std::string_view name) {
  size_t t = 0;
  while (t < kElementTypes && kElementInfo[t].name != name) ++t;
  return static_cast<ElementType>(t);
}

/// Calls work(byte of the buffer, byte of its file, bytes) for every piece; false if they do not fit into `memory` and `file` bytes.
template <class Work>
bool each_piece(const ordered_json& buffer, uint64_t memory, uint64_t file, Work&& work) {
  if (!buffer.contains("pieces")) {
    if (memory == file && memory != 0) work(0, 0, memory);
    return memory == file;
  }
  uint64_t from = 0;
  for (const auto& piece : buffer.at("pieces")) {
    const uint64_t at = piece.at(0).get<uint64_t>(), size = piece.at(1).get<uint64_t>();
    if (at > memory || size > memory - at || size > file - from) return false;
    work(at, from, size);
    from += size;
  }
  return from == file;
}

Result<LaunchArguments> arguments(const ordered_json& m, std::span<const ParamType> wanted, const std::string& folder, Diagnostics& diags) {
  LaunchArguments out;
  if (m.at("params").size() != wanted.size()) return diags.error(Code::E0802, Place{}, "the entry takes another number of parameters");
  for (const auto& b : m.at("buffers")) {
    const auto bytes = read_file(folder + "/" + b.at("file").get<std::string>(), diags);
    if (!bytes) return Failed;
    Array a;
    a.type = element(b.at("type").get<std::string>());
    auto memory = AlignedBytes::make(b.at("bytes").get<uint64_t>());
    if (a.type == ElementType::kCount || !memory) return diags.error(Code::E0903, Place{}, "no memory for a buffer of type " + b.at("type").get<std::string>());
    a.memory = *std::move(memory);
    if (!each_piece(b, a.memory.size(), bytes->size(), [&](uint64_t at, uint64_t from, uint64_t size) { std::copy_n(bytes->data() + from, size, a.memory.data() + at); }))
      return diags.error(Code::E0804, Place{}, "a buffer's file and its size do not fit");
    out.buffers.push_back(std::move(a));
  }
  for (const auto& p : m.at("params")) {
    const ParamType& want = wanted[out.params.size()];
    const bool scalar = p.at("kind") == "scalar";
    if (scalar == (want.element == ElementType::Ptr)) return diags.error(Code::E0803, Place{}, "a parameter is not of the entry's type");
    FlatParam flat;
    flat.type = want.element;
    if (scalar) {
      flat.bits = std::stoull(p.at("bits").get<std::string>(), nullptr, 0);
    } else {
      flat.buffer = p.at("buffer").get<int32_t>();
      flat.byte_offset = p.at("offset").get<uint64_t>();
      if (flat.buffer < 0 || static_cast<size_t>(flat.buffer) >= out.buffers.size() || flat.byte_offset > out.buffers[static_cast<size_t>(flat.buffer)].memory.size())
        return diags.error(Code::E0804, Place{}, "a parameter leads to no place in a buffer");
    }
    out.bindings.push_back({out.params.size(), 1, flat.buffer});
    out.params.push_back(flat);
  }
  return out;
}

/// Runs the case in `folder` and leaves its memory there; the status. Throws what nlohmann::json throws for a bad manifest.
ordered_json answer(const Server& server, const std::string& folder) {
  Diagnostics diags;
  const auto text = read_file(folder + "/manifest.json", diags);
  if (!text) return failed(diags);
  const ordered_json m = ordered_json::parse(text->begin(), text->end());
  auto loaded = load_module(folder + "/" + m.at("kernel").get<std::string>(), diags);
  if (!loaded) return failed(diags);
  auto valid = validate(std::move(loaded->module), diags);
  if (!valid) return failed(diags);
  if (m.at("goal") == "check") return {{"status", "ok"}};
  const auto module = std::make_shared<const ValidModule>(*std::move(valid));
  const auto entry = find_entry(**module, m.at("entry").get<std::string>(), diags);
  if (!entry) return failed(diags);
  const LaunchGrid grid = m.at("grid").get<LaunchGrid>();
  for (int axis = 0; axis < 3; ++axis)
    if (!check_grid_extent(grid[static_cast<size_t>(axis)], axis, Place{}, diags)) return failed(diags);
  auto args = arguments(m, entry_params(**module, **entry), folder, diags);
  if (!args) return failed(diags);
  std::string name, prints;
  const auto device = server.launch.make_device ? server.launch.make_device(module, name, diags) : make_cpu_device(module, diags);
  if (!device) return failed(diags);
  RunOptions options;
  // One thread for small grids: starting others would take longer than the launch.
  options.threads = uint64_t{grid[0]} * grid[1] * grid[2] >= 8 ? 4 : 1;
  options.print = [&](const std::string& printed) { prints += printed; };
  if (!(*device)->launch(**entry, grid, *args, options, diags)) return failed(diags);
  for (size_t b = 0; b < args->buffers.size(); ++b) {
    const AlignedBytes& memory = args->buffers[b].memory;
    const auto& buffer = m.at("buffers")[b];
    std::vector<uint8_t> some;
    if (buffer.contains("pieces"))
      for (const auto& piece : buffer.at("pieces")) some.insert(some.end(), memory.data() + piece.at(0).get<uint64_t>(), memory.data() + piece.at(0).get<uint64_t>() + piece.at(1).get<uint64_t>());
    const std::span<const uint8_t> bytes = some.empty() ? std::span<const uint8_t>(memory.data(), memory.size()) : std::span<const uint8_t>(some);
    if (!write_file(folder + "/" + buffer.at("out").get<std::string>(), bytes, diags)) return failed(diags);
  }
  return {{"status", "ok"}, {"prints", prints}};
}

/// Writes status.json; whether this process can run another case.
bool one(const Server& server, const std::string& folder) {
  ordered_json status;
  try {
    status = answer(server, folder);
  } catch (const std::exception& e) {
    status = {{"status", "crash"}, {"reason", std::string("manifest.json: ") + e.what()}};
  }
  const std::string text = status.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  Diagnostics diags;
  if (!write_file(folder + "/status.json", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, diags)) return false;
  // After a fault of a kernel the driver answers every call with the same error, to the end of the process.
  return !server.on_gpu() || status["status"] == "ok" || status["status"] == "rejected" || status["status"] == "unsupported";
}

void describe_server(const Server& server) {
  const bool cpu = server.gpu.gpu.empty();
  const std::string machine = cpu ? "--cpu" : "--gpu" + (server.gpu.gpu == "auto" ? "" : "=" + server.gpu.gpu);
  std::string version = version_text("tilevm");
  version.resize(std::min(version.size(), version.find('\n')));
  // A GPU's engine claims what the language promises, not the choices of the reference machine.
  const ordered_json j = {{"protocol", 1}, {"name", "tilevm " + machine}, {"version", version}, {"forms", {"text", "tilebc", "tileirbc"}},
                          {"batch", true}, {"profile", cpu ? "tilevm" : "language"}, {"pieces", true}, {"classes", true}, {"lines", true}, {"prints", true}};
  std::printf("%s\n", j.dump().c_str());
}

}  // namespace

int serve_command(int argc, const char* const* argv) {
  CommonOptions common;
  Server server;
  bool describe = false, batch = false, cpu = false;
  std::string folder;
  CLI::App app{"Be an implementation under test, as conformance/protocol.md says: one case, or a case a line of standard input", "tilevm conformance serve"};
  app.add_option("FOLDER", folder, "The case to run");
  app.add_flag("--describe", describe, "Print the description and end");
  app.add_flag("--batch", batch, "Read folders from standard input; a line of standard output for each: done, or end where the process ends after it");
  app.add_flag("--cpu", cpu, "Run on the exact reference interpreter (the default)");
  add_gpu_options(app, server.gpu);
  add_common_options(app, common);
  int status = 0;
  if (!parse_command_line(app, argc, argv, common, status)) return status;
  if (const int bad = finish_gpu(app, server.gpu, server.launch, "tilevm conformance serve", common)) return bad;
  if (int{describe} + int{batch} + int{!folder.empty()} != 1) return usage_error("tilevm conformance serve", "expected one of FOLDER, --describe and --batch", common);
  if (describe) {
    describe_server(server);
    return kOk;
  }
  if (!batch) {
    (void)one(server, folder);
    return kOk;
  }
#ifdef TILEVM_WITH_GPU
  if (server.on_gpu()) {
    // Without a GPU every case says so.
    Diagnostics silent;
    const int ordinal = server.gpu.gpu == "auto" ? -1 : std::atoi(server.gpu.gpu.c_str());
    if (auto opened = cuda::Gpu::open(silent, ordinal)) server.context = *std::move(opened);
  }
#endif
  for (std::string line; std::getline(std::cin, line);) {
    const bool more = one(server, line);
    std::printf("%s\n", more ? "done" : "end");
    std::fflush(stdout);
    if (!more) _exit(kOk);  // nothing of a lost context can be put away
  }
  return kOk;
}

}  // namespace tile::cli
