// Walking of folders and planning of outputs.
#include "tools/tileasm_inputs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "assembler/lexer.h"

namespace tile::cli {
namespace {

namespace fs = std::filesystem;

Place file_place(const std::string& name) {
  Place place;
  place.file = name;
  return place;
}

FailedTag usage(Diagnostics& diags, const std::string& message, const std::string& help) {
  return diags.error(Code::U0001, file_place("tileasm"), message, help);
}

// What the first bytes say: a magic number, or behind blanks and comments the word that modules begin with.
bool begins_module(const std::string& path) {
  std::vector<uint8_t> bytes(4096);
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  if (recognise(bytes) != InputKind::Text) return true;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (;;) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (!text.substr(at).starts_with("//")) break;
    at = std::min(text.find('\n', at), text.size());
  }
  return text.substr(at).starts_with("cuda_tile.module");
}

bool is_module(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".tile" || ending == ".tilebc" || ending == ".tileirbc" || begins_module(path.string());
}

void walk(const std::string& folder, Inputs& out, Diagnostics& diags) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with('.')) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(ignored) && is_module(it->path())) {
      found.push_back(it->path().string());
    }
  }
  if (error) {
    (void)diags.error(Code::E0901, file_place(folder), "cannot read the folder: " + error.message());
  } else if (found.empty()) {
    (void)diags.error(Code::E0901, file_place(folder), "the folder holds no file of Tile IR",
                      "files in folders are known by the endings .tile, .tilebc, .tileirbc and by what they hold");
  }
  std::sort(found.begin(), found.end());
  for (const std::string& path : found) {
    const fs::path relative = fs::path(path).lexically_relative(folder);
    out.files.push_back({path, (relative.parent_path() / relative.stem()).string(), true});
  }
}

}  // namespace

Inputs expand_inputs(const std::vector<std::string>& arguments, Diagnostics& diags) {
  Inputs out;
  out.several = arguments.size() > 1;
  bool standard_input = false;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (argument == "-") {
      if (std::exchange(standard_input, true)) {
        (void)usage(diags, "standard input is named twice", "");
      } else {
        out.files.push_back({argument, "stdin", false});
      }
    } else if (fs::is_directory(argument, ignored)) {
      out.several = true;
      walk(argument, out, diags);
    } else {
      out.files.push_back({argument, fs::path(argument).stem().string(), false});
    }
  }
  return out;
}

bool Outputs::is_folder() const {
  std::error_code ignored;
  return output_ != "-" && (output_.ends_with('/') || (!output_.empty() && fs::is_directory(output_, ignored)));
}

Status Outputs::check(Diagnostics& diags) const {
  if (!several_ || is_folder()) return {};
  return usage(diags,
               output_.empty() ? "several inputs, but no -o" : "several inputs, but -o " + output_ + " is no folder",
               "name the folder for the outputs, as -o DIR/");
}

Result<std::string> Outputs::path(const Input& input, const std::string& ending, const std::string& otherwise,
                                  Diagnostics& diags) {
  if (output_.empty()) return otherwise;
  if (!is_folder()) return output_;
  const fs::path path = fs::path(output_) / (input.relative + "." + ending);
  std::error_code error;
  if (fs::equivalent(path, input.path, error))
    return usage(diags, path.string() + " is the input itself", "name another folder with -o");
  if (!given_.insert(path.string()).second)
    return usage(diags, input_name(input.path) + ": " + path.string() + " is the output of another input already", "");
  fs::create_directories(path.parent_path(), error);
  if (error)
    return diags.error(Code::E0902, file_place(path.parent_path().string()),
                       "cannot make the folder: " + error.message());
  return path.string();
}

int for_each_input(const std::vector<std::string>& arguments, const CommonOptions& common,
                   const std::function<int(const Input&)>& body) {
  Diagnostics diags;
  const Inputs inputs = expand_inputs(arguments, diags);
  int worst = report(diags, common);
  size_t failed = 0;
  for (const Input& input : inputs.files) {
    const int status = body(input);
    failed += status != kOk;
    worst = std::max(worst, status);
  }
  if (inputs.several && common.verbose)
    log(common, std::to_string(inputs.files.size()) + " files, " + std::to_string(failed) + " with errors");
  return worst;
}

int for_each_input(const std::vector<std::string>& arguments, const std::string& output, const CommonOptions& common,
                   const std::function<int(const Input&, Outputs&)>& body) {
  Diagnostics diags;
  // Folders are told from files before anything is read, so that a wrong -o costs nothing.
  std::error_code ignored;
  const bool several = arguments.size() > 1 || fs::is_directory(arguments[0], ignored);
  Outputs outputs(output, several);
  if (!outputs.check(diags)) return report(diags, common);
  return for_each_input(arguments, common, [&](const Input& input) { return body(input, outputs); });
}

}  // namespace tile::cli
