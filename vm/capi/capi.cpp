// The C interface of vm/include/tilevm/tilevm.h over Device and the readers.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "tilevm/tilevm.h"
#include "tilevm_build_info.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/device.h"

struct tilevm_module {
  std::shared_ptr<const tile::ValidModule> module;
};

namespace tile {
namespace {

char* copy_text(const std::string& text) {
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out != nullptr) std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

/// Runs `work`, hands out what it reported, and turns everything that can be thrown into a status.
template <class Work>
tilevm_status guarded(char** errors, Work&& work) {
  if (errors != nullptr) *errors = nullptr;
  try {
    Diagnostics diags;
    tilevm_status status = work(diags);
    if (const Diagnostic* first = diags.first_error()) status = static_cast<tilevm_status>(exit_code(code_info(first->code).cls));
    if (errors != nullptr && !diags.all().empty()) *errors = copy_text(render_json(diags));
    return status;
  } catch (const std::bad_alloc&) {
    return TILEVM_ENVIRONMENT;
  } catch (const std::exception&) {
    return TILEVM_INTERNAL;
  }
}

tilevm_status misused(Diagnostics& diags, const char* what) {
  (void)diags.error(Code::U0001, Place{}, what);
  return TILEVM_USAGE;
}

Result<Module> read(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags) {
  if (is_tilebc(bytes)) return decode_tilebc(bytes, name, diags);
  if (is_tileirbc(bytes)) return read_tileirbc(bytes, name, diags, {});
  return parse_text(std::make_shared<const Source>(name, std::string(bytes.begin(), bytes.end())), diags);
}

Result<LaunchArguments> arguments(const tilevm_launch& l, std::span<const ParamType> params, Diagnostics& diags) {
  LaunchArguments out;
  if (params.size() != l.argument_count)
    return diags.error(Code::E0802, Place{}, std::to_string(l.argument_count) + " arguments, the entry takes " + std::to_string(params.size()));
  for (uint32_t b = 0; b < l.buffer_count; ++b) {
    Array a;
    auto memory = AlignedBytes::make(l.buffers[b].size);
    if (!memory) return diags.error(Code::E0903, Place{}, "no memory for a buffer of " + std::to_string(l.buffers[b].size) + " bytes");
    a.memory = *std::move(memory);
    if (l.buffers[b].size != 0) std::memcpy(a.memory.data(), l.buffers[b].data, l.buffers[b].size);
    out.buffers.push_back(std::move(a));
  }
  for (uint32_t i = 0; i < l.argument_count; ++i) {
    const tilevm_argument& given = l.arguments[i];
    const ParamType& wanted = params[i];
    const bool pointer = wanted.element == ElementType::Ptr;
    Place place;
    place.argument = argument_label(i, wanted.name);
    if (pointer != (given.buffer >= 0)) return diags.error(Code::E0803, std::move(place), pointer ? "a scalar, expected a buffer" : "a buffer, expected a scalar");
    FlatParam flat;
    flat.type = wanted.element;
    flat.buffer = given.buffer;
    (pointer ? flat.byte_offset : flat.bits) = given.value;
    if (pointer) {
      if (static_cast<uint32_t>(given.buffer) >= l.buffer_count) return diags.error(Code::E0804, std::move(place), "there is no buffer " + std::to_string(given.buffer));
      Array& a = out.buffers[static_cast<size_t>(given.buffer)];
      if (given.value > a.memory.size()) return diags.error(Code::E0804, std::move(place), "the pointer leads beyond the end of its buffer");
      a.type = wanted.pointee;
    }
    out.params.push_back(flat);
    out.bindings.push_back({i, 1, given.buffer});
  }
  return out;
}

constexpr size_t kSizeOfVersion1 = offsetof(tilevm_launch, choices);
constexpr uint32_t kChoices = TILEVM_SCHEDULE | TILEVM_ORDER | TILEVM_NUMERICS_H200;

tilevm_status run(tilevm_module* module, const tilevm_launch* given, Diagnostics& diags) {
  if (module == nullptr || given == nullptr) return misused(diags, "tilevm_run: no module or no launch");
  if (given->struct_size < kSizeOfVersion1) return misused(diags, "tilevm_run: struct_size is smaller than any version's");
  tilevm_launch whole{};
  std::memcpy(&whole, given, std::min<uint64_t>(given->struct_size, sizeof whole));
  const tilevm_launch* const l = &whole;
  if ((l->choices & ~kChoices) != 0) return misused(diags, "tilevm_run: an unknown choice");
  if ((l->argument_count != 0 && l->arguments == nullptr) || (l->buffer_count != 0 && l->buffers == nullptr)) return misused(diags, "tilevm_run: arguments or buffers are missing");
  for (uint32_t b = 0; b < l->buffer_count; ++b)
    if (l->buffers[b].data == nullptr && l->buffers[b].size != 0) return misused(diags, "tilevm_run: a buffer has no data");
  const Module& m = **module->module;
  const auto entry = find_entry(m, l->entry == nullptr ? "" : l->entry, diags);
  if (!entry) return TILEVM_REJECTED;
  for (int axis = 0; axis < 3; ++axis)
    if (!check_grid_extent(l->grid[axis], axis, Place{}, diags)) return TILEVM_REJECTED;
  auto args = arguments(*l, entry_params(m, **entry), diags);
  auto device = make_cpu_device(module->module, diags);
  if (!args || !device) return TILEVM_REJECTED;
  RunOptions options;
  options.threads = l->threads;
  options.fuel = l->fuel;
  if (l->max_memory != 0) options.max_storage = l->max_memory;
  if (l->choices & TILEVM_SCHEDULE) options.schedule = l->schedule;
  if (l->choices & TILEVM_ORDER) options.order = l->order;
  if (l->choices & TILEVM_NUMERICS_H200) options.numerics = Numerics::H200;
  if (l->print != nullptr) options.print = [l](const std::string& text) { l->print(l->user, text.data(), text.size()); };
  if (!(*device)->launch(**entry, {l->grid[0], l->grid[1], l->grid[2]}, *args, options, diags)) return TILEVM_INTERNAL;
  for (uint32_t b = 0; b < l->buffer_count; ++b)
    if (l->buffers[b].size != 0) std::memcpy(l->buffers[b].data, args->buffers[b].memory.data(), l->buffers[b].size);
  return TILEVM_OK;
}

}  // namespace
}  // namespace tile

const char* tilevm_version(void) { return tile::build::kVersion; }

tilevm_status tilevm_open(const void* bytes, uint64_t size, const char* name, tilevm_module** module, char** errors) {
  return tile::guarded(errors, [&](tile::Diagnostics& diags) {
    if (module == nullptr || (bytes == nullptr && size != 0)) return tile::misused(diags, "tilevm_open: no bytes, or no place for the module");
    *module = nullptr;
    auto read = tile::read({static_cast<const uint8_t*>(bytes), size}, name == nullptr ? "<memory>" : name, diags);
    if (!read) return TILEVM_REJECTED;
    auto valid = tile::validate(*std::move(read), diags);
    if (!valid) return TILEVM_REJECTED;
    *module = new tilevm_module{std::make_shared<const tile::ValidModule>(*std::move(valid))};
    return TILEVM_OK;
  });
}

char* tilevm_entries(const tilevm_module* module) {
  if (module == nullptr) return nullptr;
  try {
    const tile::Module& m = **module->module;
    nlohmann::ordered_json j = {{"entries", nlohmann::ordered_json::array()}};
    for (const tile::Function& f : m.functions) {
      nlohmann::ordered_json params = nlohmann::ordered_json::array();
      for (const tile::ParamType& p : tile::entry_params(m, f)) {
        nlohmann::ordered_json one = {{"name", p.name}, {"type", tile::info(p.element).name}};
        if (p.element == tile::ElementType::Ptr) one["pointee"] = tile::info(p.pointee).name;
        params.push_back(std::move(one));
      }
      j["entries"].push_back({{"name", m.str(f.name)}, {"params", std::move(params)}});
    }
    return tile::copy_text(j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } catch (const std::exception&) {
    return nullptr;
  }
}

tilevm_status tilevm_run(tilevm_module* module, const tilevm_launch* launch, char** errors) {
  return tile::guarded(errors, [&](tile::Diagnostics& diags) { return tile::run(module, launch, diags); });
}

void tilevm_close(tilevm_module* module) { delete module; }

void tilevm_free(char* text) { std::free(text); }
