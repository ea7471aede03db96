// This project's CPU machine behind tile_impl.h: the suite without a process for each case.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "conformance/abi/tile_impl.h"
#include "vm/codec/tilebc.h"
#include "vm/runtime/device.h"

struct tile_impl {
  std::shared_ptr<const tile::ValidModule> module;
};

namespace tile {
namespace {

constexpr const char* kDescription =
    R"({"name": "libtilevm --cpu", "version": "interface 1", "forms": ["text", "tilebc", "tileirbc"], "profile": "tilevm",
        "classes": true, "lines": true, "prints": true})";

template <size_t N>
void put(char (&to)[N], const std::string& text) {
  std::snprintf(to, N, "%s", text.c_str());
}

/// The words of the protocol for the traps that the machine has without checkers.
std::string trap_class(const Diagnostic& d) {
  switch (d.code) {
    case Code::T0101: return "out_of_bounds";
    case Code::T0102: return "assert";
    case Code::T0103: return "assume";
    case Code::T0104: return "alloca";
    case Code::T0105: return "index";
    case Code::T0106: return "step";
    default: return code_info(d.code).subclass;
  }
}

/// What the first error stands for.
int32_t failed(const Diagnostics& diags, tile_impl_report* report) {
  const Diagnostic* d = diags.first_error();
  if (d == nullptr) {
    put(report->reason, "failed without a reason");
    return TILE_IMPL_CRASH;
  }
  const CodeInfo& code = code_info(d->code);
  put(report->reason, std::string(code.name) + ": " + d->message);
  if (d->place.source && d->place.span.valid()) report->line = static_cast<int32_t>(d->place.source->line_col(d->place.span.begin).line);
  switch (code.cls) {
    case FailureClass::Trap:
      put(report->class_name, trap_class(*d));
      return TILE_IMPL_TRAP;
    case FailureClass::Malformed:
    case FailureClass::Invalid:
    case FailureClass::Unsupported:
      if (d->code == Code::E0808) return TILE_IMPL_UNSUPPORTED;
      if (std::string_view(code.name).starts_with("E08")) return TILE_IMPL_CRASH;  // the launch was described wrongly
      [[fallthrough]];
    case FailureClass::Exhausted:
      put(report->class_name, class_name(code.cls));
      return TILE_IMPL_REJECTED;
    default:
      return TILE_IMPL_CRASH;
  }
}

Result<Module> read(const tile_impl_kernel& k, Diagnostics& diags) {
  const std::span<const uint8_t> bytes(k.data, k.size);
  const std::string_view form = k.form;
  if (form == "tileirbc") return read_tileirbc(bytes, k.name, diags, {});
  if (form == "tilebc") return decode_tilebc(bytes, k.name, diags);
  return parse_text(std::make_shared<const Source>(k.name, std::string(bytes.begin(), bytes.end())), diags);
}

/// An element type by its name; kCount for an unknown one.
ElementType element(std::string_view name) {
  size_t t = 0;
  while (t < kElementTypes && kElementInfo[t].name != name) ++t;
  return static_cast<ElementType>(t);
}

/// The launch's buffers and parameters in the form that a device takes; the memory is copied.
Result<LaunchArguments> arguments(const tile_impl_launch& l, Diagnostics& diags) {
  LaunchArguments out;
  for (uint32_t i = 0; i < l.buffers_count; ++i) {
    Array a;
    const ElementType type = element(l.buffers[i].type);
    auto memory = AlignedBytes::make(l.buffers[i].size);
    if (type == ElementType::kCount || !memory) return diags.error(Code::E0903, Place{}, "no memory for a buffer of type " + std::string(l.buffers[i].type));
    a.type = type;
    a.memory = *std::move(memory);
    if (l.buffers[i].size != 0) std::memcpy(a.memory.data(), l.buffers[i].data, l.buffers[i].size);
    out.buffers.push_back(std::move(a));
  }
  for (uint32_t i = 0; i < l.params_count; ++i) {
    const tile_impl_param& p = l.params[i];
    FlatParam flat;
    flat.buffer = p.buffer;
    flat.type = p.buffer < 0 ? element(p.type) : ElementType::Ptr;
    (p.buffer < 0 ? flat.bits : flat.byte_offset) = p.value;
    if (p.buffer >= static_cast<int64_t>(l.buffers_count)) return diags.error(Code::E0804, Place{}, "a parameter names a buffer that is not there");
    out.params.push_back(flat);
    out.bindings.push_back({i, 1, p.buffer});
  }
  return out;
}

int32_t run(tile_impl& impl, const tile_impl_launch& l, tile_impl_report* report) {
  Diagnostics diags;
  const auto entry = find_entry(**impl.module, l.entry, diags);
  auto device = make_cpu_device(impl.module, diags);
  auto args = arguments(l, diags);
  if (!entry || !device || !args) return failed(diags, report);
  if (entry_params(**impl.module, **entry).size() != args->params.size()) {
    (void)diags.error(Code::E0802, Place{}, "the entry takes another number of parameters");
    return failed(diags, report);
  }
  RunOptions options;
  options.threads = uint64_t{l.grid[0]} * l.grid[1] * l.grid[2] >= 8 ? 4 : 1;
  options.print = [&](const std::string& text) { l.print(l.user, text.data(), text.size()); };
  const auto stats = (*device)->launch(**entry, {l.grid[0], l.grid[1], l.grid[2]}, *args, options, diags);
  if (!stats) return failed(diags, report);
  for (uint32_t i = 0; i < l.buffers_count; ++i)
    if (l.buffers[i].size != 0) std::memcpy(l.buffers[i].data, args->buffers[i].memory.data(), l.buffers[i].size);
  return TILE_IMPL_OK;
}

}  // namespace
}  // namespace tile

tile_impl* tile_impl_open(uint32_t abi, const char** description) {
  *description = abi == TILE_IMPL_ABI ? tile::kDescription : "only interface 1 is known";
  return abi == TILE_IMPL_ABI ? new tile_impl : nullptr;
}

int32_t tile_impl_load(tile_impl* impl, const tile_impl_kernel* kernel, tile_impl_report* report) {
  tile::Diagnostics diags;
  impl->module.reset();
  auto module = tile::read(*kernel, diags);
  if (!module) return tile::failed(diags, report);
  auto valid = tile::validate(*std::move(module), diags);
  if (!valid) return tile::failed(diags, report);
  impl->module = std::make_shared<const tile::ValidModule>(*std::move(valid));
  return TILE_IMPL_OK;
}

int32_t tile_impl_run(tile_impl* impl, const tile_impl_launch* launch, tile_impl_report* report) {
  if (!impl->module) {
    std::snprintf(report->reason, sizeof report->reason, "no kernel is loaded");
    return TILE_IMPL_CRASH;
  }
  return tile::run(*impl, *launch, report);
}

void tile_impl_close(tile_impl* impl) {
  delete impl;
}
