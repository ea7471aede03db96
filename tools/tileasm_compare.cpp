// diff and stats.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/tileasm_commands.h"
#include "tools/tileasm_inputs.h"
#include "vm/codec/tilebc.h"

namespace tile::cli {
namespace {

/// Hints without any target are none.
void drop_empty_hints(const Module& m, Function& f) {
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const OpDef& def = f.def(i);
    for (size_t a = 0; a < def.attrs.size(); ++a) {
      if (def.attrs[a].kind != AttrKind::Hints) continue;
      uint32_t& word = f.words[f.attr_word(i) + a];
      if (word < m.attrs.size() && m.attrs.get(word).tag == AttrTag::Dictionary && m.attrs.get(word).entries.empty()) word = kNone;
    }
  }
}

/// The lines of one item in canonical text without names, which two equal items share whatever form they came from.
std::vector<std::string> item_lines(const Module& m, uint32_t item) {
  Module one = m;
  const size_t index = item & ~Module::kGlobalBit;
  if (item & Module::kGlobalBit) {
    one.functions.clear();
    one.globals = {m.globals[index]};
  } else {
    one.globals.clear();
    one.functions = {m.functions[index]};
    drop_empty_hints(m, one.functions[0]);
  }
  one.order = {item & Module::kGlobalBit};
  PrintOptions print;
  print.pretty_names = false;
  print.module_wrapper = false;
  const std::string text = print_text(one, print);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    // tileirbc has no absent else: one that does nothing stands for it.
    if (!lines.empty() && line.ends_with('}') && lines.back() == line + " else {")
      lines.back() = std::move(line);
    else
      lines.push_back(std::move(line));
  }
  return lines;
}

std::map<std::string, uint32_t> items(const Module& m) {
  std::map<std::string, uint32_t> out;
  for (const uint32_t item : m.order)
    out[(item & Module::kGlobalBit) ? "global @" + std::string(m.str(m.globals[item & ~Module::kGlobalBit].name))
                                    : "entry @" + std::string(m.str(m.functions[item].name))] = item;
  return out;
}

/// Prints the first lines in which `a` and `b` differ; true if they do.
bool first_difference(const std::string& name, const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  if (at == a.size() && at == b.size()) return false;
  constexpr size_t kContext = 2;
  std::printf("%s, line %zu of its canonical text:\n", name.c_str(), at + 1);
  for (size_t k = at > kContext ? at - kContext : 0; k < at; ++k) std::printf("  %s\n", a[k].c_str());
  if (at < a.size()) std::printf("- %s\n", a[at].c_str());
  if (at < b.size()) std::printf("+ %s\n", b[at].c_str());
  return true;
}

int diff_files(const std::string& a, const std::string& b, const CommonOptions& common) {
  Diagnostics diags;
  const auto first = load_module(a, diags), second = load_module(b, diags);
  if (const int status = report(diags, common); status != kOk || !first || !second) return status;
  const Module &x = first->module, &y = second->module;
  const auto in_x = items(x), in_y = items(y);
  bool differ = false;
  for (const auto& [name, item] : in_x) {
    const auto other = in_y.find(name);
    if (other == in_y.end()) {
      std::printf("%s is only in %s\n", name.c_str(), input_name(a).c_str());
      differ = true;
    } else if (first_difference(name, item_lines(x, item), item_lines(y, other->second))) {
      differ = true;
    }
  }
  for (const auto& [name, item] : in_y)
    if (!in_x.contains(name)) {
      std::printf("%s is only in %s\n", name.c_str(), input_name(b).c_str());
      differ = true;
    }
  return differ ? kDiffers : kOk;
}

void print_stats(const std::string& file, const Loaded& loaded, bool json) {
  const Module& m = loaded.module;
  size_t instructions = 0, values = 0, regions = 0;
  std::map<std::string, size_t> by_op;
  for (const Function& f : m.functions) {
    instructions += f.insts.size();
    values += f.value_types.size();
    regions += f.regions.size();
    for (InstId i = 0; i < f.insts.size(); ++i) ++by_op[std::string(f.def(i).name)];
  }
  Diagnostics quiet;
  const auto encoded = encode_tilebc(m, quiet);
  const Version needs = required_version(m);
  if (json) {
    nlohmann::ordered_json j{{"file", file},
                             {"form", kind_name(loaded.kind)},
                             {"needs", "13." + std::to_string(needs.minor)},
                             {"entries", m.functions.size()},
                             {"globals", m.globals.size()},
                             {"instructions", instructions},
                             {"values", values},
                             {"regions", regions},
                             {"types", m.types.size()},
                             {"tilebc_bytes", encoded ? encoded->size() : 0},
                             {"operations", by_op}};
    std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf(
      "%s: %s, needs Tile IR 13.%d\n  entries %zu, globals %zu, instructions %zu, values %zu, regions %zu, types %zu, "
      "tilebc %zu bytes\n",
      file.c_str(), kind_name(loaded.kind), needs.minor, m.functions.size(), m.globals.size(), instructions, values,
      regions, m.types.size(), encoded ? encoded->size() : 0);
  std::vector<std::pair<size_t, std::string>> sorted;
  for (const auto& [name, n] : by_op) sorted.emplace_back(n, name);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& l, const auto& r) { return l.first != r.first ? l.first > r.first : l.second < r.second; });
  for (const auto& [n, name] : sorted) std::printf("  %6zu %s\n", n, name.c_str());
}

}  // namespace

int run_diff(const std::string& a, const std::string& b, const CommonOptions& common) {
  std::error_code ignored;
  const bool folders = std::filesystem::is_directory(a, ignored);
  if (folders != std::filesystem::is_directory(b, ignored))
    return usage_error("tileasm", (folders ? b : a) + " is no folder, but " + (folders ? a : b) + " is one", common,
                       "compare two files or two folders");
  if (!folders) return diff_files(a, b, common);
  Diagnostics diags;
  const Inputs in_a = expand_inputs({a}, diags), in_b = expand_inputs({b}, diags);
  int worst = report(diags, common);
  std::map<std::string, std::pair<std::string, std::string>> pairs;
  const auto place = [&](const Input& input, std::string& slot) {
    if (slot.empty()) {
      slot = input.path;
    } else {
      worst = std::max(worst, usage_error("tileasm", input.path + " and " + slot + " have one name", common,
                                          "keep one form of each module in a folder"));
    }
  };
  for (const Input& i : in_a.files) place(i, pairs[i.relative].first);
  for (const Input& i : in_b.files) place(i, pairs[i.relative].second);
  for (const auto& [name, pair] : pairs) {
    const auto& [first, second] = pair;
    if (first.empty() || second.empty()) {
      std::printf("%s is only in %s\n", name.c_str(), (first.empty() ? b : a).c_str());
      worst = std::max(worst, kDiffers);
      continue;
    }
    const int status = diff_files(first, second, common);
    if (status == kDiffers) std::printf("%s and %s differ\n", first.c_str(), second.c_str());
    worst = std::max(worst, status);
  }
  return worst;
}

int run_stats(const StatsOptions& options, const CommonOptions& common) {
  return for_each_input(options.inputs, common, [&](const Input& input) {
    Diagnostics diags;
    const auto loaded = load_module(input.path, diags);
    const int status = report(diags, common);
    if (loaded) print_stats(input_name(input.path), *loaded, options.json);
    return status;
  });
}

}  // namespace tile::cli
