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

std::vector<std::string_view> mnemonics() {
  std::vector<std::string_view> names;
  for (const OpDef& op : op_rows()) names.push_back(op.name);
  return names;
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
  if (options.name.empty()) {
    print(options.json ? ops_json() : table());
    return kOk;
  }
  const OpDef* op = find(options.name);
  if (!op) return unknown(options.name, mnemonics(), common);
  print(options.json ? op_json(*op) + "\n" : op_markdown(*op));
  return kOk;
}

int run_explain(const std::string& what, const CommonOptions& common) {
  std::vector<std::string_view> candidates = mnemonics();
  for (size_t c = 0; c < static_cast<size_t>(Code::kCount); ++c) {
    const CodeInfo& i = code_info(static_cast<Code>(c));
    candidates.push_back(i.name);
    if (what != i.name) continue;
    print(std::string(i.name) + " " + i.subclass + " (" + class_name(i.cls) + ", exit status " +
          std::to_string(exit_code(i.cls)) + ")\n" + i.meaning + "\n");
    return kOk;
  }
  if (const OpDef* op = find(what)) {
    print(op_markdown(*op));
    return kOk;
  }
  return unknown(what, candidates, common);
}

}  // namespace tile::cli
