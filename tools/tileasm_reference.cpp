// ops and explain: the table and the codes for readers.
#include <cstdio>

#include "tools/tileasm_commands.h"
#include "vm/ops/export.h"

namespace tile::cli {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

const OpDef* find(const std::string& name) {
  const std::string_view plain =
      name.starts_with("cuda_tile.") ? std::string_view(name).substr(10) : std::string_view(name);
  if (const OpDef* op = find_op(plain)) return op;
  char* end = nullptr;
  const unsigned long code = std::strtoul(name.c_str(), &end, 0);
  return end != name.c_str() && *end == '\0' && code <= UINT16_MAX ? find_op(static_cast<uint32_t>(code)) : nullptr;
}

int unknown(const std::string& what, std::vector<std::string_view> candidates, const CommonOptions& common) {
  const std::string near = nearest(what, candidates);
  return usage_error("tileasm", "'" + what + "' is not known", common,
                     near.empty() ? "tileasm ops lists the operations" : "did you mean '" + near + "'?");
}

std::string table() {
  size_t widest = 0;
  for (const OpDef& op : op_rows()) widest = std::max(widest, op.name.size());
  std::string out;
  for (const OpDef& op : op_rows()) {
    char code[8];
    std::snprintf(code, sizeof code, "0x%02X", static_cast<unsigned>(op.code));
    out += std::string(op.name) + std::string(widest - op.name.size() + 2, ' ') + code + "  13." +
           std::to_string(op.since.minor) + "  " + std::string(op.summary) + "\n";
  }
  return out;
}

}  // namespace

std::vector<std::string_view> mnemonics() {
  std::vector<std::string_view> names;
  for (const OpDef& op : op_rows()) names.push_back(op.name);
  return names;
}

std::vector<std::string_view> code_names() {
  std::vector<std::string_view> names;
  for (size_t c = 0; c < static_cast<size_t>(Code::kCount); ++c) names.push_back(code_info(static_cast<Code>(c)).name);
  return names;
}

int run_ops(const OpsOptions& options, const CommonOptions& common) {
  if (!options.write_dir.empty()) {
    Diagnostics diags;
    const auto write = [&](const char* name, const std::string& text) {
      return write_output(options.write_dir + "/" + name, text, diags).ok();
    };
    (void)(write("ops.md", ops_markdown()) && write("ops.json", ops_json()) &&
           write("diagnostics.md", diagnostics_markdown()));
    return report(diags, common);
  }
  if (options.names.empty()) {
    print(options.json ? ops_json() : table());
    return kOk;
  }
  int worst = kOk;
  for (size_t i = 0; i < options.names.size(); ++i) {
    if (const OpDef* op = find(options.names[i])) {
      if (i > 0 && !options.json) print("\n");
      print(options.json ? op_json(*op) + "\n" : op_markdown(*op));
    } else {
      worst = unknown(options.names[i], mnemonics(), common);
    }
  }
  return worst;
}

int run_explain(const std::vector<std::string>& what, const CommonOptions& common) {
  std::vector<std::string_view> candidates = mnemonics();
  for (const std::string_view name : code_names()) candidates.push_back(name);
  int worst = kOk;
  for (size_t k = 0; k < what.size(); ++k) {
    const OpDef* op = find(what[k]);
    size_t c = 0;
    while (c < static_cast<size_t>(Code::kCount) && what[k] != code_info(static_cast<Code>(c)).name) ++c;
    if (k > 0) print("\n");
    if (c < static_cast<size_t>(Code::kCount)) {
      const CodeInfo& i = code_info(static_cast<Code>(c));
      print(std::string(i.name) + " " + i.subclass + " (" + class_name(i.cls) + ", exit status " +
            std::to_string(exit_code(i.cls)) + ")\n" + i.meaning + "\n");
      if (const std::string example = diagnostic_example(static_cast<Code>(c)); !example.empty()) print("for example: " + example + "\n");
    } else if (op) {
      print(op_markdown(*op));
    } else {
      worst = unknown(what[k], candidates, common);
    }
  }
  return worst;
}

}  // namespace tile::cli
