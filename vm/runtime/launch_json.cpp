// The reader of flat launch descriptions, which becomes a job whose pointers lead into whole buffers.
#include <unistd.h>

#include <set>
#include <utility>

#include "vm/runtime/atomic_file.h"
#include "vm/runtime/job.h"
#include "vm/runtime/json_fields.h"
#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

struct BufferSpec {
  std::string name, file;
  ElementType type = ElementType::I8;
  std::optional<size_t> argument;  ///< that loads it
  Expectation expectation;
};

class LaunchReader {
 public:
  LaunchReader(std::shared_ptr<const Source> source, Diagnostics& diags)
      : fields_(std::move(source), diags), diags_(diags) {}

  Result<Job> read(const JsonValue& root) {
    const size_t before = diags_.error_count();
    if (!fields_.object(root, "the launch",
                        {"kernel", "entry", "what", "bytecode", "versions", "target", "grid", "params", "buffers",
                         "outcome", "prints", "inputs_sha256", "h200"})) {
      return Failed;
    }
    const JsonValue *bytecode = fields_.required(root, "bytecode"), *grid = fields_.required(root, "grid"),
                    *params = fields_.required(root, "params"), *buffers = fields_.required(root, "buffers");
    if (!bytecode || !grid || !params || !buffers) return Failed;
    if (const auto text = fields_.text(*bytecode, "bytecode")) job_.kernel = *text;
    if (const JsonValue* entry = root.find("entry")) {
      if (const auto text = fields_.text(*entry, "entry")) job_.entry = *text;
    }
    read_grid(*grid);
    if (const JsonValue* outcome = root.find("outcome")) {
      const auto word = fields_.text(*outcome, "outcome");
      if (word && *word == "assert") {
        job_.outcome = Code::T0102;
      } else if (word && *word != "ok") {
        (void)fields_.bad(*outcome, "outcome is " + describe(*outcome) + ", expected ok or assert");
      }
    }
    if (const JsonValue* prints = root.find("prints"); prints && fields_.is_list(*prints, "prints")) {
      for (const auto& item : prints->items) {
        if (const auto text = fields_.text(item, "an entry of prints")) job_.prints.push_back(*text);
      }
    }
    if (!fields_.is_list(*buffers, "buffers") || !fields_.is_list(*params, "params")) return Failed;
    if (params->items.size() > kMaxLaunchArguments || buffers->items.size() > kMaxLaunchArguments) {
      return fields_.bad(*params,
                         "more than " + std::to_string(kMaxLaunchArguments) + " parameters or buffers are given");
    }
    for (const auto& item : buffers->items) {
      if (!read_buffer(item)) return Failed;
    }
    name_buffers();
    for (const auto& item : params->items) {
      if (!read_param(item)) return Failed;
    }
    // A trap leaves the buffers unspecified. A buffer that no parameter leads to cannot change.
    for (auto& buffer : buffers_) {
      if (!buffer.argument || job_.outcome) continue;
      buffer.expectation.argument = *buffer.argument;
      job_.expectations.push_back(std::move(buffer.expectation));
    }
    if (diags_.error_count() != before) return Failed;
    return std::move(job_);
  }

 private:
  void read_grid(const JsonValue& grid) {
    if (!fields_.is_list(grid, "grid")) return;
    if (grid.items.size() != 3) {
      (void)diags_.error(Code::E0805, fields_.place(grid.begin),
                         "the grid has " + std::to_string(grid.items.size()) + " extents, expected 3");
      return;
    }
    for (size_t i = 0; i < 3; ++i) {
      const auto n = fields_.integer(grid.items[i], "an extent of the grid", INT64_MIN, INT64_MAX);
      if (n && check_grid_extent(*n, static_cast<int>(i), fields_.place(grid.items[i].begin), diags_)) {
        job_.grid[i] = static_cast<uint32_t>(*n);
      }
    }
  }

  std::optional<ElementType> type(const JsonValue& value, std::string_view word) {
    const auto found = element_type_named(word);
    if (!found)
      (void)fields_.bad(value, "there is no element type '" + std::string(word.substr(0, 60)) + "'",
                        suggest_type(word));
    return found;
  }

  bool read_buffer(const JsonValue& value) {
    if (!fields_.object(value, "the buffer",
                        {"name", "file", "dtype", "offset", "shape", "strides", "expected", "compare", "h200"})) {
      return false;
    }
    const JsonValue *file = fields_.required(value, "file"), *dtype = fields_.required(value, "dtype"),
                    *offset = fields_.required(value, "offset"), *shape = fields_.required(value, "shape"),
                    *strides = fields_.required(value, "strides");
    if (!file || !dtype || !offset || !shape || !strides) return false;
    const auto path = fields_.text(*file, "file");
    const auto word = fields_.text(*dtype, "dtype");
    const auto element = word ? type(*dtype, *word) : std::nullopt;
    const auto start = fields_.integer(*offset, "offset", 0, INT64_MAX);
    auto extents = fields_.integers(*shape, "shape", 0, INT64_MAX);
    auto steps = fields_.integers(*strides, "strides", 0, INT64_MAX);
    if (!path || !element || !start || !extents || !steps) return false;
    if (extents->size() != steps->size() || extents->size() > kMaxArrayRank) {
      (void)fields_.bad(*strides, std::to_string(steps->size()) + " strides and " + std::to_string(extents->size()) +
                                      " extents are given, expected equally many, at most " +
                                      std::to_string(kMaxArrayRank));
      return false;
    }
    BufferSpec buffer;
    buffer.file = *path;
    buffer.type = *element;
    if (const JsonValue* name = value.find("name")) {
      const auto text = fields_.text(*name, "name");
      if (!text) return false;
      buffer.name = *text;
    }
    Expectation& e = buffer.expectation;
    e.window = ArrayWindow{*start, std::move(*extents), std::move(*steps)};
    const JsonValue *expected = value.find("expected"), *compare = value.find("compare");
    if (expected == nullptr) {
      e.unchanged = true;
      e.rule.kind = CompareRule::Kind::Bits;
      if (compare) return (void)fields_.bad(*compare, "compare is given without expected"), false;
    } else {
      const auto text = fields_.text(*expected, "expected");
      if (!text) return false;
      e.source.path = *text;
      e.source.type = buffer.type;
      if (compare) {
        const auto rule = fields_.rule(*compare, e.bound_path);
        if (!rule) return false;
        e.rule = *rule;
      }
    }
    buffers_.push_back(std::move(buffer));
    return true;
  }

  /// Names must be those of arguments and differ; others give way to the number of the buffer.
  void name_buffers() {
    std::set<std::string> taken;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      std::string& name = buffers_[i].name;
      if (!is_argument_name(name) || !taken.insert(name).second) {
        name = "buffer_" + std::to_string(i);
        while (!taken.insert(name).second) name += "_";
      }
    }
  }

  bool read_param(const JsonValue& value) {
    if (!fields_.object(value, "the parameter", {"kind", "type", "value", "bits", "buffer", "offset"})) return false;
    const JsonValue *kind = fields_.required(value, "kind"), *type_value = fields_.required(value, "type");
    if (!kind || !type_value) return false;
    const auto word = fields_.text(*kind, "kind"), type_word = fields_.text(*type_value, "type");
    if (!word || !type_word) return false;
    const Place place = fields_.place(value.begin);
    if (*word == "scalar") {
      const JsonValue* number = value.find("bits") ? value.find("bits") : fields_.required(value, "value");
      const auto element = number ? type(*type_value, *type_word) : std::nullopt;
      if (!element) return false;
      if (*element == ElementType::Ptr) return (void)fields_.bad(*type_value, "a scalar has the type ptr"), false;
      std::string text = number->text;
      if (number->kind == JsonValue::Kind::Bool) text = number->boolean ? "true" : "false";
      auto spec = parse_arg(*type_word + ":" + text, job_.args.size(), place, diags_);
      if (!spec) return false;
      job_.args.push_back(std::move(*spec));
      return true;
    }
    if (*word != "pointer") {
      (void)fields_.bad(*kind, "kind is " + describe(*kind) + ", expected scalar or pointer");
      return false;
    }
    const JsonValue *buffer = fields_.required(value, "buffer"), *offset = fields_.required(value, "offset");
    if (!buffer || !offset) return false;
    const auto index = fields_.integer(*buffer, "buffer", 0, static_cast<int64_t>(buffers_.size()) - 1);
    const auto bytes = fields_.integer(*offset, "offset", 0, INT64_MAX);
    if (!index || !bytes) return false;
    const std::string of_buffer = "ptr<" + std::string(info(buffers_[static_cast<size_t>(*index)].type).name) + ">";
    if (*type_word != of_buffer) {
      (void)fields_.bad(*type_value, "type is " + describe(*type_value) + ", expected " + of_buffer +
                                         " for a pointer into this buffer");
      return false;
    }
    add_pointer(buffers_[static_cast<size_t>(*index)], static_cast<uint64_t>(*bytes));
    return true;
  }

  void add_pointer(BufferSpec& buffer, uint64_t bytes) {
    ArgSpec spec;
    spec.kind = ArgSpec::Kind::Pointer;
    spec.byte_offset = bytes;
    if (buffer.argument) {
      spec.source.kind = ArraySource::Kind::Reference;
      spec.source.reference = buffer.name;
      spec.text = "ptr:@" + buffer.name;
    } else {
      buffer.argument = job_.args.size();
      spec.name = buffer.name;
      spec.source.path = buffer.file;
      spec.source.type = buffer.type;
      spec.text = buffer.name + "=ptr:" + std::string(info(buffer.type).name) + ":" + buffer.file;
    }
    job_.args.push_back(std::move(spec));
  }

  JsonFields fields_;
  Diagnostics& diags_;
  Job job_;
  std::vector<BufferSpec> buffers_;
};

}  // namespace

Result<Job> parse_launch_json(std::string text, const std::string& name, const std::string& base_dir,
                              Diagnostics& diags) {
  const auto source = std::make_shared<const Source>(name, std::move(text));
  const auto root = parse_json(source, diags);
  if (!root) return Failed;
  auto job = LaunchReader(source, diags).read(*root);
  if (!job) return Failed;
  job->file = name;
  job->base_dir = base_dir;
  return job;
}

Result<Job> read_launch_json(const std::string& path, Diagnostics& diags) {
  const auto bytes = read_file(path, diags, kMaxJsonBytes);
  if (!bytes) return Failed;
  auto job = parse_launch_json(std::string(bytes->begin(), bytes->end()), path, folder_of(path), diags);
  if (!job) return Failed;
  for (const char* up : {"", "../", "../../"}) {
    const std::string candidate = up + job->kernel;
    if (::access(path_in(job->base_dir, candidate).c_str(), F_OK) == 0) {
      job->kernel = candidate;
      break;
    }
  }
  return job;
}

}  // namespace tile
