// From arguments to the entry's parameters: loading, the calling convention, and the check against the parameter types.
#include <algorithm>
#include <optional>
#include <utility>

#include "vm/runtime/launch_args.h"
#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

Place place_of(size_t index, const ArgSpec& spec) {
  Place place;
  place.argument = argument_label(index, spec.name);
  return place;
}

std::string show_param_type(ElementType element, ElementType pointee) {
  const std::string name(info(element).name);
  return element == ElementType::Ptr ? name + "<" + std::string(info(pointee).name) + ">" : name;
}

/// What one parameter got, with the words for it.
struct Filled {
  size_t argument;
  ElementType element, pointee;
  std::string what;  ///< "base address", "size of dimension 0", "stride of dimension 0", "value"
};

class Expander {
 public:
  Expander(std::span<const ArgSpec> specs, std::span<const ParamType> params, const ExpandOptions& options,
           Diagnostics& diags)
      : specs_(specs), params_(params), options_(options), diags_(diags) {}

  Result<LaunchArguments> run() {
    if (!check_args(specs_, {}, diags_)) return Failed;
    if (!load()) return Failed;
    bool ok = true;
    for (size_t i = 0; i < specs_.size(); ++i) ok &= lay_out(i);
    if (!ok || !check()) return Failed;
    return std::move(out_);
  }

 private:
  bool load() {
    out_.bindings.resize(specs_.size());
    bool ok = true;
    uint64_t left = options_.limits.bytes;
    for (size_t i = 0; i < specs_.size() && !diags_.full(); ++i) {
      const ArgSpec& spec = specs_[i];
      if (spec.kind == ArgSpec::Kind::Scalar || spec.source.kind == ArraySource::Kind::Reference) continue;
      ArrayLimits limits = options_.limits;
      limits.bytes = left;
      auto array = load_array(spec.source, options_.base_dir, limits, place_of(i, spec), diags_);
      if (!array) {
        ok = false;
        continue;
      }
      left -= std::min<uint64_t>(left, array->memory.size());
      out_.bindings[i].buffer = static_cast<int32_t>(out_.buffers.size());
      out_.buffers.push_back(std::move(*array));
    }
    if (!ok) return false;
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].kind != ArgSpec::Kind::Scalar) out_.bindings[i].buffer = out_.bindings[owner(i)].buffer;
    }
    return true;
  }

  size_t owner(size_t i) const { return owning_argument(specs_, i); }

  void add(size_t argument, FlatParam param, ElementType pointee, std::string what) {
    filled_.push_back({argument, param.type, pointee, std::move(what)});
    out_.params.push_back(param);
  }

  bool lay_out(size_t i) {
    const ArgSpec& spec = specs_[i];
    ArgBinding& binding = out_.bindings[i];
    binding.first = out_.params.size();
    binding.name = spec.name;
    bool ok = true;
    if (spec.kind == ArgSpec::Kind::Scalar) {
      add(i, {spec.type, spec.bits, -1, 0}, ElementType::I8, "value");
    } else {
      const Array& array = out_.buffers[static_cast<size_t>(binding.buffer)];
      if (spec.byte_offset > array.memory.size()) {
        (void)diags_.error(Code::E0803, place_of(i, spec),
                           "the offset is " + std::to_string(spec.byte_offset) + " bytes, the array has " +
                               std::to_string(array.memory.size()));
        ok = false;
      }
      add(i, {ElementType::Ptr, 0, binding.buffer, spec.byte_offset}, spec.source.type.value_or(array.type),
          "base address");
      if (spec.kind != ArgSpec::Kind::Pointer) ok &= lay_out_dimensions(i, array);
    }
    binding.count = out_.params.size() - binding.first;
    return ok;
  }

  bool lay_out_dimensions(size_t i, const Array& array) {
    const bool wide = specs_[i].kind == ArgSpec::Kind::Array64;
    const ElementType type = wide ? ElementType::I64 : ElementType::I32;
    bool ok = true;
    auto add_all = [&](const std::vector<int64_t>& values, const std::string& what) {
      for (size_t d = 0; d < values.size(); ++d) {
        if (!wide && values[d] > INT32_MAX) {
          ok = false;
          (void)diags_.error(Code::E0803, place_of(i, specs_[i]),
                             "the " + what + std::to_string(d) + " is " + std::to_string(values[d]) +
                                 ", expected at most " + std::to_string(INT32_MAX) + " for i32",
                             "array64: passes sizes and strides as i64, to a kernel that takes them so");
        }
        const uint64_t bits = wide ? static_cast<uint64_t>(values[d]) : static_cast<uint32_t>(values[d]);
        add(i, {type, bits, -1, 0}, ElementType::I8, what + std::to_string(d));
      }
    };
    add_all(array.shape, "size of dimension ");
    add_all(array.strides, "stride of dimension ");
    return ok;
  }

  std::string entry() const { return options_.entry.empty() ? "the entry" : "@" + options_.entry; }

  std::string parameter_label(size_t p) const {
    std::string text = "parameter " + std::to_string(p);
    return params_[p].name.empty() ? text : text + " (%" + params_[p].name + ")";
  }

  /// "parameters 3 to 7: ptr<f16>, i32, i32, i32, i32"
  std::vector<Note> expansion() const {
    std::vector<Note> notes;
    for (size_t i = 0; i < specs_.size(); ++i) {
      const ArgBinding& b = out_.bindings[i];
      std::string text = specs_[i].text.substr(0, 80) + " gives ";
      text += b.count == 1 ? "parameter " + std::to_string(b.first)
                           : "parameters " + std::to_string(b.first) + " to " + std::to_string(b.first + b.count - 1);
      for (size_t k = 0; k < b.count; ++k) {
        text += (k ? ", " : ": ") + show_param_type(filled_[b.first + k].element, filled_[b.first + k].pointee);
      }
      notes.push_back({place_of(i, specs_[i]), std::move(text)});
    }
    std::string text = entry() + " takes " + std::to_string(params_.size());
    for (size_t p = 0; p < params_.size(); ++p) {
      text += (p ? ", " : ": ") + show_param_type(params_[p].element, params_[p].pointee);
      if (!params_[p].name.empty()) text += " %" + params_[p].name;
    }
    notes.push_back({{}, std::move(text)});
    return notes;
  }

  bool matches(size_t p) const {
    const Filled& f = filled_[p];
    return f.element == params_[p].element && (f.element != ElementType::Ptr || f.pointee == params_[p].pointee);
  }

  /// The one change that makes parameter `p` fit, where there is one.
  std::string remedy(size_t p) const {
    const Filled& f = filled_[p];
    const ParamType& want = params_[p];
    const ArgSpec& spec = specs_[f.argument];
    const std::string wanted(info(want.element).name);
    if (spec.kind == ArgSpec::Kind::Scalar) {
      if (want.element == ElementType::Ptr) return "pass an array: ptr:FILE or array:FILE";
      const size_t colon = spec.text.find(':');
      return "write " + wanted + (colon == std::string::npos ? ":..." : spec.text.substr(colon, 80));
    }
    if (f.element == ElementType::Ptr && want.element == ElementType::Ptr) {
      const std::string pointee(info(want.pointee).name);
      if (spec.source.kind == ArraySource::Kind::File &&
          info(f.pointee).memory_bits == info(want.pointee).memory_bits) {
        return "if the file holds " + pointee + ", write the type before its name: " + pointee + ":" + spec.source.path;
      }
      if (spec.source.kind == ArraySource::Kind::Reference && spec.kind == ArgSpec::Kind::Pointer) {
        return "ptr:" + pointee + ":@" + spec.source.reference + " passes the same memory as " + pointee;
      }
      return "the array must have element type " + pointee;
    }
    if (f.element == ElementType::I32 && want.element == ElementType::I64)
      return "array64: passes sizes and strides as i64";
    if (f.element == ElementType::I64 && want.element == ElementType::I32)
      return "array: passes sizes and strides as i32";
    return {};
  }

  bool check() {
    const size_t common = std::min(filled_.size(), params_.size());
    size_t wrong = 0;
    while (wrong < common && matches(wrong)) ++wrong;
    if (filled_.size() != params_.size()) {
      Diagnostic d;
      d.code = Code::E0802;
      d.message = std::to_string(specs_.size()) + (specs_.size() == 1 ? " argument gives " : " arguments give ") +
                  std::to_string(filled_.size()) + (filled_.size() == 1 ? " parameter, " : " parameters, ") + entry() +
                  " takes " + std::to_string(params_.size());
      if (wrong < common) {
        const Filled& f = filled_[wrong];
        d.place = place_of(f.argument, specs_[f.argument]);
        d.message += "; the first that does not fit is " + parameter_label(wrong) + ": the " + f.what + " gives " +
                     show_param_type(f.element, f.pointee) + ", expected " +
                     show_param_type(params_[wrong].element, params_[wrong].pointee);
      }
      d.notes = expansion();
      (void)diags_.error(std::move(d));
      return false;
    }
    bool first = true;
    for (size_t p = wrong; p < common && !diags_.full(); ++p) {
      if (matches(p)) continue;
      const Filled& f = filled_[p];
      Diagnostic d;
      d.code = Code::E0803;
      d.place = place_of(f.argument, specs_[f.argument]);
      d.message = "the " + f.what + " gives " + show_param_type(f.element, f.pointee) + " for " + parameter_label(p) +
                  ", expected " + show_param_type(params_[p].element, params_[p].pointee);
      d.help = remedy(p);
      if (std::exchange(first, false)) d.notes = expansion();
      (void)diags_.error(std::move(d));
    }
    return first;
  }

  std::span<const ArgSpec> specs_;
  std::span<const ParamType> params_;
  const ExpandOptions& options_;
  Diagnostics& diags_;
  LaunchArguments out_;
  std::vector<Filled> filled_;
};

}  // namespace

Result<LaunchArguments> expand(std::span<const ArgSpec> specs, std::span<const ParamType> params,
                               const ExpandOptions& options, Diagnostics& diags) {
  return Expander(specs, params, options, diags).run();
}

std::vector<std::string> buffer_names(const LaunchArguments& args, std::span<const ParamType> params) {
  std::vector<std::string> names;
  for (size_t b = 0; b < args.buffers.size(); ++b) {
    names.push_back("buffer " + std::to_string(b));
    for (size_t a = 0; a < args.bindings.size(); ++a) {
      const ArgBinding& binding = args.bindings[a];
      if (binding.buffer != static_cast<int32_t>(b)) continue;
      const bool known = binding.first < params.size() && !params[binding.first].name.empty();
      names.back() = argument_label(a, known ? params[binding.first].name : binding.name);
      break;
    }
  }
  return names;
}

}  // namespace tile
