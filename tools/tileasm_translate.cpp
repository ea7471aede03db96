// as, dis, check and the short form of both.
#include <unistd.h>

#include "assembler/tileirbc/tileirbc.h"
#include "tools/tileasm_commands.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"

namespace tile::cli {
namespace {

std::string describe(const Loaded& l) {
  return std::string(kind_name(l.kind)) + ", " + std::to_string(l.module.functions.size()) + " entries, " +
         std::to_string(l.module.globals.size()) + " globals";
}

// `dir/k.tile` gives `dir/k.tilebc`; nothing where that would be the input itself.
std::string default_output(const std::string& input, const std::string& ending) {
  if (input == "-") return "-";
  const size_t slash = input.find_last_of('/') == std::string::npos ? 0 : input.find_last_of('/') + 1;
  const size_t dot = input.find_last_of('.');
  const std::string output = (dot == std::string::npos || dot <= slash ? input : input.substr(0, dot)) + "." + ending;
  return output == input ? "" : output;
}

Result<std::vector<uint8_t>> encode(const Module& m, const AsOptions& options, Diagnostics& diags) {
  if (options.emit == "tilebc") return encode_tilebc(m, diags);
  Version target = required_version(m);
  if (!options.bytecode_version.empty()) target.minor = static_cast<uint8_t>(options.bytecode_version.back() - '0');
  return write_tileirbc(m, target, diags, {.provisional = options.provisional});
}

int assemble(Loaded loaded, const AsOptions& options, const CommonOptions& common) {
  Diagnostics diags;
  const std::string output = options.output.empty() ? default_output(options.input, options.emit) : options.output;
  if (output.empty()) {
    return usage_error("tileasm", "the input is named ." + options.emit + " already", common, "name an output with -o");
  }
  if (output == "-" && is_terminal(STDOUT_FILENO)) {
    return usage_error("tileasm", "bytecode is not written to a terminal", common,
                       "name an output with -o, or redirect standard output");
  }
  Module module = std::move(loaded.module);
  if (options.validate) {
    const auto valid = validate(std::move(module), diags);
    if (!valid) return report(diags, common);
    module = **valid;
  }
  const auto bytes = encode(module, options, diags);
  if (bytes && write_output(output, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, diags)) {
    log(common, output + ": " + options.emit + ", " + std::to_string(bytes->size()) + " bytes written");
  }
  return report(diags, common);
}

int disassemble(const Module& m, const std::string& output, const PrintOptions& print, const CommonOptions& common) {
  Diagnostics diags;
  (void)write_output(output, print_text(m, print), diags).ok();
  return report(diags, common);
}

Result<Loaded> load(const std::string& input, const CommonOptions& common, Diagnostics& diags, bool partial = false) {
  auto loaded = load_module(input, diags, partial);
  if (loaded) log(common, input_name(input) + ": " + describe(*loaded));
  return loaded;
}

}  // namespace

int run_as(const AsOptions& options, const CommonOptions& common) {
  Diagnostics diags;
  auto loaded = load(options.input, common, diags);
  const int status = report(diags, common);
  return loaded ? assemble(std::move(loaded.value()), options, common) : status;
}

int run_dis(const DisOptions& options, const CommonOptions& common) {
  Diagnostics diags;
  const auto loaded = load(options.input, common, diags, options.partial);
  const int status = report(diags, common);
  return loaded ? disassemble(loaded->module, options.output, options.print, common) : status;
}

int run_convert(const ConvertOptions& options, const CommonOptions& common) {
  const size_t at = options.to.find('@');
  const std::string form = options.to.substr(0, at), version = at == std::string::npos ? "" : options.to.substr(at + 1);
  const bool known = version == "13.1" || version == "13.2" || version == "13.3" || version == "13.4" || version == "13.5";
  if ((form != "text" && form != "tilebc" && form != "tileirbc") || (at != std::string::npos && (form != "tileirbc" || !known)))
    return usage_error("tileasm", "--to " + options.to + ": no such form", common, "forms are text, tilebc, tileirbc and tileirbc@13.1 to tileirbc@13.5");
  if (form == "text") {
    DisOptions dis;
    dis.input = options.input;
    dis.output = options.output.empty() ? "-" : options.output;
    return run_dis(dis, common);
  }
  AsOptions as;
  as.input = options.input;
  as.output = options.output;
  as.emit = form;
  as.bytecode_version = version;
  as.provisional = options.provisional;
  return run_as(as, common);
}

int run_short(const std::string& input, const std::string& output, const PrintOptions& print,
              const CommonOptions& common) {
  Diagnostics diags;
  auto loaded = load(input, common, diags);
  const int status = report(diags, common);
  if (!loaded) return status;
  if (loaded->kind == InputKind::Text) {
    AsOptions options;
    options.input = input;
    options.output = output;
    return assemble(std::move(loaded.value()), options, common);
  }
  return disassemble(loaded->module, output.empty() ? "-" : output, print, common);
}

int run_check(const std::vector<std::string>& inputs, const CommonOptions& common) {
  int status = kOk;
  for (const std::string& input : inputs) {
    Diagnostics diags;
    auto loaded = load(input, common, diags);
    if (loaded && validate(std::move(loaded.value().module), diags)) log(common, input_name(input) + ": valid");
    const int one = report(diags, common);
    if (status == kOk) status = one;
  }
  return status;
}

}  // namespace tile::cli
