// as, dis, convert, check, and the short form of the first two.
#include <unistd.h>

#include <optional>

#include "assembler/tileirbc/tileirbc.h"
#include "tools/tileasm_commands.h"
#include "tools/tileasm_inputs.h"
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

// "tileirbc@13.2" and the like, in parts.
struct Form {
  std::string name, version;
};

std::optional<Form> parse_form(const std::string& text) {
  const size_t at = text.find('@');
  Form form{text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
  if (form.name != "text" && form.name != "tilebc" && form.name != "tileirbc") return std::nullopt;
  if (at == std::string::npos) return form;
  const bool known = form.version == "13.1" || form.version == "13.2" || form.version == "13.3" ||
                     form.version == "13.4" || form.version == "13.5";
  return form.name == "tileirbc" && known ? std::optional(form) : std::nullopt;
}

int unknown_form(const std::string& text, const CommonOptions& common) {
  return usage_error("tileasm", "--to " + text + ": no such form", common,
                     "forms are text, tilebc, tileirbc and tileirbc@13.1 to tileirbc@13.5");
}

struct Encoding {
  Form form;
  bool provisional = false, validate = true;
};

Result<std::vector<uint8_t>> encode(const Module& m, const Encoding& e, Diagnostics& diags) {
  if (e.form.name == "tilebc") return encode_tilebc(m, diags);
  Version target = required_version(m);
  if (!e.form.version.empty()) target.minor = static_cast<uint8_t>(e.form.version.back() - '0');
  return write_tileirbc(m, target, diags, {.provisional = e.provisional});
}

int assemble(Loaded loaded, const Input& input, Outputs& outputs, const Encoding& e, const CommonOptions& common) {
  Diagnostics diags;
  const auto output = outputs.path(input, e.form.name, default_output(input.path, e.form.name), diags);
  if (!output) return report(diags, common);
  if (output->empty()) {
    return usage_error("tileasm", "the input is named ." + e.form.name + " already", common, "name an output with -o");
  }
  if (*output == "-" && is_terminal(STDOUT_FILENO)) {
    return usage_error("tileasm", "bytecode is not written to a terminal", common,
                       "name an output with -o, or redirect standard output");
  }
  Module module = std::move(loaded.module);
  if (e.validate) {
    const auto valid = validate(std::move(module), diags);
    if (!valid) return report(diags, common);
    module = **valid;
  }
  const auto bytes = encode(module, e, diags);
  if (bytes && write_output(*output, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, diags)) {
    log(common, *output + ": " + e.form.name + ", " + std::to_string(bytes->size()) + " bytes written");
  }
  return report(diags, common);
}

int disassemble(const Module& m, const Input& input, Outputs& outputs, const PrintOptions& print,
                const CommonOptions& common) {
  Diagnostics diags;
  const auto output = outputs.path(input, "tile", "-", diags);
  if (output) (void)write_output(*output, print_text(m, print), diags).ok();
  return report(diags, common);
}

Result<Loaded> load(const std::string& input, const CommonOptions& common, Diagnostics& diags, bool partial = false) {
  auto loaded = load_module(input, diags, partial);
  if (loaded && common.verbose) log(common, input_name(input) + ": " + describe(*loaded));
  return loaded;
}

int assemble_all(const std::vector<std::string>& inputs, const std::string& output, const Encoding& e,
                 const CommonOptions& common) {
  return for_each_input(inputs, output, common, [&](const Input& input, Outputs& outputs) {
    Diagnostics diags;
    auto loaded = load(input.path, common, diags);
    const int status = report(diags, common);
    return loaded ? assemble(std::move(loaded.value()), input, outputs, e, common) : status;
  });
}

}  // namespace

int run_as(const AsOptions& options, const CommonOptions& common) {
  const auto form = parse_form(options.to);
  if (!form || form->name == "text") return unknown_form(options.to, common);
  Encoding e{*form, options.provisional, options.validate};
  if (!options.bytecode_version.empty()) {
    if (form->name != "tileirbc" || !form->version.empty())
      return usage_error("tileasm", "--bytecode-version is for --to tileirbc", common,
                         "write --to tileirbc@" + options.bytecode_version);
    e.form.version = options.bytecode_version;
  }
  return assemble_all(options.inputs, options.output, e, common);
}

int run_dis(const DisOptions& options, const CommonOptions& common) {
  return for_each_input(options.inputs, options.output, common, [&](const Input& input, Outputs& outputs) {
    Diagnostics diags;
    const auto loaded = load(input.path, common, diags, options.partial);
    const int status = report(diags, common);
    return loaded ? disassemble(loaded->module, input, outputs, options.print, common) : status;
  });
}

int run_convert(const ConvertOptions& options, const CommonOptions& common) {
  const auto form = parse_form(options.to);
  if (!form) return unknown_form(options.to, common);
  if (form->name == "text") {
    DisOptions dis;
    dis.inputs = options.inputs;
    dis.output = options.output;
    return run_dis(dis, common);
  }
  return assemble_all(options.inputs, options.output, {*form, options.provisional, true}, common);
}

int run_short(const std::vector<std::string>& inputs, const std::string& output, const PrintOptions& print,
              const CommonOptions& common) {
  return for_each_input(inputs, output, common, [&](const Input& input, Outputs& outputs) {
    Diagnostics diags;
    auto loaded = load(input.path, common, diags);
    const int status = report(diags, common);
    if (!loaded) return status;
    if (loaded->kind != InputKind::Text) return disassemble(loaded->module, input, outputs, print, common);
    return assemble(std::move(loaded.value()), input, outputs, {{"tilebc", ""}}, common);
  });
}

int run_check(const std::vector<std::string>& inputs, const CommonOptions& common) {
  return for_each_input(inputs, common, [&](const Input& input) {
    Diagnostics diags;
    auto loaded = load(input.path, common, diags);
    if (loaded && validate(std::move(loaded.value().module), diags) && common.verbose)
      log(common, input_name(input.path) + ": valid");
    return report(diags, common);
  });
}

}  // namespace tile::cli
