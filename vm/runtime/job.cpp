// The reader of job files, and the checks and files that follow a launch.
#include "vm/runtime/job.h"

#include <utility>

#include "vm/runtime/atomic_file.h"
#include "vm/runtime/json_fields.h"
#include "vm/runtime/npy.h"
#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

class JobReader {
 public:
  JobReader(std::shared_ptr<const Source> source, Diagnostics& diags)
      : fields_(std::move(source), diags), diags_(diags) {}

  Result<Job> read(const JsonValue& root) {
    const size_t before = diags_.error_count();
    if (!fields_.object(root, "the job",
                        {"kernel", "entry", "grid", "args", "out", "expect", "outcome", "prints", "threads", "schedule",
                         "order", "numerics", "what"}) &&
        root.kind != JsonValue::Kind::Object) {
      return Failed;
    }
    if (const JsonValue* kernel = fields_.required(root, "kernel")) set(job_.kernel, fields_.text(*kernel, "kernel"));
    if (const JsonValue* entry = root.find("entry")) set(job_.entry, fields_.text(*entry, "entry"));
    if (const JsonValue* grid = root.find("grid")) read_grid(*grid);
    if (const JsonValue* threads = root.find("threads")) {
      const auto n = fields_.integer(*threads, "threads", 0, kMaxJobThreads);
      if (n) job_.threads = static_cast<uint32_t>(*n);
    }
    read_seed(root, "schedule", job_.freedom.schedule);
    read_seed(root, "order", job_.freedom.order);
    if (const JsonValue* numerics = root.find("numerics")) {
      const auto word = fields_.text(*numerics, "numerics");
      if (word && !(job_.freedom.numerics = parse_numerics(*word)))
        (void)fields_.bad(*numerics, "numerics is " + describe(*numerics) + ", expected exact or h200");
    }
    if (const JsonValue* outcome = root.find("outcome")) read_outcome(*outcome);
    if (const JsonValue* prints = root.find("prints"); prints && fields_.is_list(*prints, "prints")) {
      for (const auto& item : prints->items) {
        if (const auto text = fields_.text(item, "an entry of prints")) job_.prints.push_back(*text);
      }
    }
    // What follows refers to arguments: without them it would only repeat their errors.
    if (const JsonValue* args = root.find("args"); args && !read_args(*args)) return Failed;
    if (const JsonValue* out = root.find("out")) read_out(*out);
    if (const JsonValue* expect = root.find("expect"); expect && fields_.is_list(*expect, "expect")) {
      for (const auto& item : expect->items) read_expectation(item);
    }
    if (diags_.error_count() != before) return Failed;
    return std::move(job_);
  }

 private:
  template <class T>
  static void set(T& to, std::optional<T> value) {
    if (value) to = std::move(*value);
  }

  void read_grid(const JsonValue& value) {
    if (!fields_.is_list(value, "grid")) return;
    if (value.items.empty() || value.items.size() > 3) {
      (void)diags_.error(Code::E0805, fields_.place(value.begin),
                         "the grid has " + std::to_string(value.items.size()) + " extents, expected 1 to 3");
      return;
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      const auto n = fields_.integer(value.items[i], "an extent of the grid", INT64_MIN, INT64_MAX);
      if (n && check_grid_extent(*n, static_cast<int>(i), fields_.place(value.items[i].begin), diags_)) {
        job_.grid[i] = static_cast<uint32_t>(*n);
      }
    }
  }

  void read_seed(const JsonValue& root, const char* key, std::optional<SeedChoice>& to) {
    const JsonValue* value = root.find(key);
    if (value == nullptr) return;
    if (value->kind == JsonValue::Kind::Unsigned || value->kind == JsonValue::Kind::Integer || value->kind == JsonValue::Kind::String)
      to = parse_seed_choice(value->text);
    if (!to) (void)fields_.bad(*value, std::string(key) + " is " + describe(*value) + ", expected a seed such as 7, or a text such as \"explore:100\"");
  }

  void read_outcome(const JsonValue& value) {
    const auto word = fields_.text(value, "outcome");
    if (!word || *word == "ok") return;
    for (Code code : {Code::T0101, Code::T0102, Code::T0103, Code::T0104, Code::T0105}) {
      if (*word == code_info(code).name || (*word == "assert" && code == Code::T0102)) {
        job_.outcome = code;
        return;
      }
    }
    (void)fields_.bad(value,
                      "outcome is " + describe(value) + ", expected ok, assert, or the code of a trap such as T0101");
  }

  bool read_args(const JsonValue& value) {
    if (!fields_.is_list(value, "args")) return false;
    if (value.items.size() > kMaxLaunchArguments) {
      (void)fields_.bad(value, std::to_string(value.items.size()) + " arguments are given, the limit is " +
                                   std::to_string(kMaxLaunchArguments));
      return false;
    }
    bool ok = true;
    for (size_t i = 0; i < value.items.size() && !diags_.full(); ++i) {
      auto spec = value.items[i].kind == JsonValue::Kind::String
                      ? parse_arg(value.items[i].text, i, fields_.place(value.items[i].begin), diags_)
                      : read_arg_object(value.items[i], i);
      ok &= spec.ok();
      if (spec) job_.args.push_back(std::move(*spec));
    }
    return ok && job_.args.size() == value.items.size() &&
           check_args(job_.args, fields_.place(value.begin), diags_).ok();
  }

  /// {"name": "x", "array": "f16[8]=zeros"}, {"ptr": "a.npy", "offset": 64}, {"i32": 5}
  Result<ArgSpec> read_arg_object(const JsonValue& value, size_t index) {
    if (value.kind != JsonValue::Kind::Object) {
      return fields_.bad(value,
                         "an argument is " + describe(value) + ", expected a text such as \"i32:128\" or an object");
    }
    if (!fields_.object(value, "the argument",
                        {"name", "offset",   "ptr",    "array",     "array64",  "i1",          "i8",
                         "i16",  "i32",      "i64",    "f16",       "bf16",     "f32",         "tf32",
                         "f64",  "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f4E2M1FN", "fnv8E5M3FNU", "i4"})) {
      return Failed;
    }
    const JsonValue* body = nullptr;
    std::string kind;
    for (size_t k = 0; k < value.keys.size(); ++k) {
      const std::string& key = value.keys[k].first;
      if (key == "name" || key == "offset") continue;
      if (body != nullptr)
        return fields_.bad(value, "the argument is both " + kind + " and " + key + ", expected one of them");
      kind = key;
      body = &value.items[k];
    }
    if (body == nullptr)
      return fields_.bad(value, "the argument has no value, expected a key such as i32, ptr or array");
    std::string text;
    if (const JsonValue* name = value.find("name")) {
      const auto word = fields_.text(*name, "name");
      if (!word) return Failed;
      if (!is_argument_name(*word)) {
        return fields_.bad(*name, "the name is " + describe(*name) +
                                      ", expected a letter or _, then letters, digits and _, at most 64");
      }
      text = *word + "=";
    }
    text += kind + ":";
    switch (body->kind) {
      case JsonValue::Kind::String:
      case JsonValue::Kind::Integer:
      case JsonValue::Kind::Unsigned:
      case JsonValue::Kind::Float:
        text += body->text;
        break;
      case JsonValue::Kind::Bool:
        text += body->boolean ? "true" : "false";
        break;
      default:
        return fields_.bad(*body, kind + " is " + describe(*body) + ", expected a number or a text");
    }
    auto spec = parse_arg(text, index, fields_.place(body->begin), diags_);
    const JsonValue* offset = value.find("offset");
    if (!spec || offset == nullptr) return spec;
    if (spec->kind != ArgSpec::Kind::Pointer || spec->byte_offset != 0) {
      return fields_.bad(
          *offset, spec->kind == ArgSpec::Kind::Pointer ? "the offset is given twice" : "only ptr takes an offset");
    }
    const auto bytes = fields_.integer(*offset, "offset", 0, INT64_MAX);
    if (!bytes) return Failed;
    spec->byte_offset = static_cast<uint64_t>(*bytes);
    return spec;
  }

  std::optional<size_t> array_argument(std::string_view word, const Place& place) {
    const auto i = find_argument(word, job_.args, place, diags_);
    if (!i) return std::nullopt;
    if (job_.args[*i].kind != ArgSpec::Kind::Scalar) return *i;
    (void)diags_.error(Code::E0807, place,
                       argument_label(*i, job_.args[*i].name) + " is a scalar, expected an array or a pointer");
    return std::nullopt;
  }

  void read_out(const JsonValue& value) {
    if (value.kind != JsonValue::Kind::Object) {
      (void)fields_.bad(value, "out is " + describe(value) + ", expected an object such as {\"c\": \"c.npy\"}");
      return;
    }
    for (size_t k = 0; k < value.keys.size() && !diags_.full(); ++k) {
      const auto argument = array_argument(value.keys[k].first, fields_.place(value.keys[k].second));
      const auto path = fields_.text(value.items[k], "the file of an output");
      if (argument && path && path->empty()) (void)fields_.bad(value.items[k], "the file name is empty");
      if (argument && path) job_.outs.push_back({*argument, *path});
    }
  }

  void read_expectation(const JsonValue& value) {
    if (diags_.full() || !fields_.object(value, "the expectation", {"arg", "file", "generate", "unchanged", "compare"}))
      return;
    const JsonValue* arg = fields_.required(value, "arg");
    if (arg == nullptr) return;
    std::optional<size_t> argument;
    if (arg->kind == JsonValue::Kind::String || arg->kind == JsonValue::Kind::Unsigned) {
      argument = array_argument(arg->text, fields_.place(arg->begin));
    } else {
      (void)fields_.bad(*arg, "arg is " + describe(*arg) + ", expected the name or the number of an argument");
    }
    if (!argument) return;
    Expectation e;
    e.argument = *argument;
    const JsonValue *file = value.find("file"), *generate = value.find("generate"),
                    *unchanged = value.find("unchanged");
    if ((file != nullptr) + (generate != nullptr) + (unchanged != nullptr) != 1) {
      (void)fields_.bad(value, "the expectation needs one of file, generate and unchanged");
      return;
    }
    if (unchanged) {
      if (unchanged->kind != JsonValue::Kind::Bool || !unchanged->boolean) {
        (void)fields_.bad(*unchanged, "unchanged is " + describe(*unchanged) + ", expected true");
        return;
      }
      e.unchanged = true;
      e.rule.kind = CompareRule::Kind::Bits;
    } else if (!read_expected(file, generate, e)) {
      return;
    }
    if (const JsonValue* compare = value.find("compare")) {
      const auto rule = fields_.rule(*compare, e.bound_path);
      if (!rule) return;
      e.rule = *rule;
    }
    job_.expectations.push_back(std::move(e));
  }

  bool read_expected(const JsonValue* file, const JsonValue* generate, Expectation& e) {
    const JsonValue& given = file ? *file : *generate;
    const auto text = fields_.text(given, file ? "file" : "generate");
    if (!text) return false;
    // A generator alone takes type and shape from the argument, whose array is known only when it is loaded.
    const bool whole = file || text->find('[') != std::string::npos;
    if (!whole) {
      e.source.kind = ArraySource::Kind::Generated;
      e.source.path = *text;
      return check_generator(e, given);
    }
    auto source = parse_array_source(*text, fields_.place(given.begin), diags_);
    if (!source) return false;
    const auto wanted = file ? ArraySource::Kind::File : ArraySource::Kind::Generated;
    if (source->kind != wanted) {
      (void)fields_.bad(given, std::string(file ? "file" : "generate") + " is " + describe(given) + ", expected " +
                                   (file ? "the name of a .npy file" : "a generator such as zeros"));
      return false;
    }
    e.source = std::move(*source);
    return true;
  }

  /// Where the argument says its type, a wrong generator is found at once.
  bool check_generator(const Expectation& e, const JsonValue& at) {
    const auto type = job_.args[owning_argument(job_.args, e.argument)].source.type;
    return !type || parse_generator(e.source.path, *type, fields_.place(at.begin), diags_).ok();
  }

  JsonFields fields_;
  Diagnostics& diags_;
  Job job_;
};

Place argument_place(const Job& job, size_t argument) {
  Place place;
  place.argument = argument_label(argument, job.args[argument].name);
  return place;
}

Result<Array> expected_array(const Job& job, const Expectation& e, const Array& got, const ArrayLimits& limits,
                             const Place& place, Diagnostics& diags) {
  if (e.unchanged) {
    return load_array(job.args[owning_argument(job.args, e.argument)].source, job.base_dir, limits, place, diags);
  }
  ArraySource source = e.source;
  if (source.kind == ArraySource::Kind::File) {
    if (!source.type) source.type = got.type;
    return load_array(source, job.base_dir, limits, place, diags);
  }
  if (!source.type) {
    const auto generator = parse_generator(source.path, got.type, place, diags);
    if (!generator) return Failed;
    source.generator = *generator;
    source.type = got.type;
    source.shape = got.shape;
    source.strides = row_major_strides(got.shape).value_or(got.strides);
  }
  return load_array(source, job.base_dir, limits, place, diags);
}

bool check_one(const Job& job, const Expectation& e, const Array& got, const ArrayLimits& limits, Diagnostics& diags) {
  const Place place = argument_place(job, e.argument);
  auto expected = expected_array(job, e, got, limits, place, diags);
  if (!expected) return false;
  std::optional<Array> bound;
  if (e.rule.kind == CompareRule::Kind::Bound) {
    auto loaded = load_npy(path_in(job.base_dir, e.bound_path), std::nullopt, place, diags, limits);
    if (!loaded) return false;
    bound = std::move(*loaded);
  }
  ArrayView x = got.view(), y = expected->view();
  if (e.window) {
    if (x.type != y.type || x.size != y.size) {
      (void)diags.error(Code::E0809, place, "the buffer is " + show_array_type(x) + ", expected " + show_array_type(y));
      return false;
    }
    for (ArrayView* v : {&x, &y}) {
      v->offset = e.window->offset;
      v->shape = e.window->shape;
      v->strides = e.window->strides;
    }
    if (!x.fits()) {
      (void)diags.error(Code::E0807, place,
                        "the window of shape " + show_list(x.shape) + " and strides " + show_list(x.strides) +
                            " at element " + std::to_string(x.offset) + " does not fit its buffer of " +
                            std::to_string(x.size) + " bytes");
      return false;
    }
    if (const auto at = first_change_outside(x, y.data)) {
      const uint64_t a = load_bits(x.data, x.type, *at), b = load_bits(y.data, y.type, *at);
      (void)diags.error(Code::E0809, place,
                        "memory outside of the array is changed, first element " + std::to_string(*at) +
                            " of the buffer: " + show_bits(x.type, a) + ", expected " + show_bits(x.type, b));
      return false;
    }
  }
  const ArrayView limits_view = bound ? bound->view() : ArrayView{};
  const auto report = compare(x, y, e.rule, bound ? &limits_view : nullptr, place, diags);
  if (!report) return false;
  if (report->equal()) return true;
  (void)diags.error(Code::E0809, place, show_report(*report, y, e.rule));
  return false;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

Result<Job> parse_job(std::string text, const std::string& name, const std::string& base_dir, Diagnostics& diags) {
  const auto source = std::make_shared<const Source>(name, std::move(text));
  const auto root = parse_json(source, diags);
  if (!root) return Failed;
  auto job = JobReader(source, diags).read(*root);
  if (!job) return Failed;
  job->file = name;
  job->base_dir = base_dir;
  return job;
}

Result<Job> read_job(const std::string& path, Diagnostics& diags) {
  const auto bytes = read_file(path, diags, kMaxJsonBytes);
  if (!bytes) return Failed;
  return parse_job(std::string(bytes->begin(), bytes->end()), path, folder_of(path), diags);
}

Status check_expectations(const Job& job, const LaunchArguments& after, Diagnostics& diags, const ArrayLimits& limits) {
  bool ok = true;
  for (const Expectation& e : job.expectations) {
    const int32_t buffer = after.bindings[e.argument].buffer;
    ok &= check_one(job, e, after.buffers[static_cast<size_t>(buffer)], limits, diags);
  }
  if (!ok) return Failed;
  return {};
}

Status write_outs(const Job& job, const LaunchArguments& after, Diagnostics& diags) {
  bool ok = true;
  for (const OutSpec& out : job.outs) {
    const int32_t buffer = after.bindings[out.argument].buffer;
    ok &= save_npy(path_in(job.base_dir, out.path), after.buffers[static_cast<size_t>(buffer)].view(), diags).ok();
  }
  if (!ok) return Failed;
  return {};
}

}  // namespace tile
