// Compiles kernels to PTX for many targets in one process: what each target makes of them, without the start of a program for each.
//   compile_many TARGET,TARGET < list of files, one a line
// Writes a line of JSON for each file and target: {"file", "target", "valid", "refused": {"code", "message"} or null, "units": [{"op", "unit"}],
// "instructions": number of PTX instructions that compute}. A file that is no valid module gets one line with "valid": false.
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backend/compile.h"
#include "tools/cli_files.h"
#include "vm/ir/valid_module.h"

namespace {
using namespace tile;
using Json = nlohmann::ordered_json;

/// Instructions of the kernel that are no loads, stores, moves, jumps or ends.
unsigned computing(const std::string& ptx) {
  unsigned n = 0;
  const size_t entry = ptx.find(".entry");
  for (size_t at = ptx.find('{', entry == std::string::npos ? 0 : entry); at != std::string::npos && at < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view line(ptx.data() + at, end - at);
    at = end + 1;
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first);
    const std::string_view word = line.substr(0, line.find_first_of(" \t;"));
    if (word.empty() || word[0] == '.' || word[0] == '/' || word[0] == '{' || word[0] == '}' || word[0] == '$' || word[0] == '@' || word.ends_with(':')) continue;
    const std::string_view name = word.substr(0, word.find('.'));
    if (name == "ld" || name == "st" || name == "mov" || name == "cvta" || name == "bra" || name == "ret") continue;
    ++n;
  }
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: compile_many TARGET,TARGET < files\n");
    return 2;
  }
  std::vector<std::string> targets;
  const std::string all = argv[1];
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find(',', at), all.size());
    targets.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  for (std::string path; std::getline(std::cin, path);) {
    Diagnostics diags;
    auto loaded = cli::load_module(path, diags);
    auto valid = loaded ? validate(std::move(loaded->module), diags) : Result<ValidModule>(Failed);
    if (!valid) {
      const Diagnostic* e = diags.first_error();
      std::printf("%s\n", Json{{"file", path}, {"valid", false}, {"why", e ? e->message : ""}}.dump().c_str());
      continue;
    }
    for (const std::string& target : targets)
      for (const Function& entry : (**valid).functions) {
        CompileOptions options;
        options.target = target;
        Diagnostics said;
        const auto made = compile_ptx(*valid, entry, options, said);
        Json j{{"file", path}, {"target", target}, {"valid", true}, {"refused", nullptr}};
        if (!made) {
          const Diagnostic* e = said.first_error();
          j["refused"] = {{"code", e ? code_info(e->code).name : ""}, {"message", e ? e->message : ""}};
        } else {
          j["units"] = Json::array();
          for (const Remark& r : made->remarks)
            if (r.inst < entry.insts.size()) j["units"].push_back({{"op", entry.def(r.inst).name}, {"unit", r.what}});
          j["instructions"] = computing(made->ptx);
        }
        std::printf("%s\n", j.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
        break;  // the first entry
      }
    std::fflush(stdout);
  }
  return 0;
}
