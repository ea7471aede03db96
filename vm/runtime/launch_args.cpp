// The text form of launch arguments.
#include "vm/runtime/launch_args.h"

#include <algorithm>
#include <utility>

#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

Place place_of(const Place& base, std::string argument) {
  Place place = base;
  place.argument = std::move(argument);
  return place;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 80)) + "'";
}

constexpr const char* kForms =
    "expected TYPE:VALUE (i32:128), ptr:FILE, array:FILE, or a generated array (array:f16[64,64]=zeros)";

Result<uint64_t> offset_behind(std::string_view& source, const Place& place, Diagnostics& diags) {
  // Only references take an offset: the name of a file or a number may hold a plus.
  const size_t at = source.find('@');
  const bool reference = at == 0 || (at != std::string_view::npos && at > 0 && source[at - 1] == ':' &&
                                     element_type_named(source.substr(0, at - 1)));
  const size_t plus = reference ? source.find('+') : std::string_view::npos;
  if (plus == std::string_view::npos) return uint64_t{0};
  const auto bytes = parse_unsigned(source.substr(plus + 1));
  if (!bytes) {
    return diags.error(Code::E0804, place,
                       quoted(source.substr(plus + 1)) + " is found behind '+', expected a number of bytes");
  }
  source = source.substr(0, plus);
  return *bytes;
}

FailedTag unknown_kind(std::string_view kind, std::string_view body, const Place& place, Diagnostics& diags) {
  if (kind == "list") {
    return diags.error(Code::E0804, place, "list arguments are not supported, " + std::string(kForms),
                       "pass the table of descriptors as ptr:i64[ITEMS,1+2*RANK]=... and the length as i32:ITEMS");
  }
  if (kind == "tuple" || kind == "const" || kind == "constant") {
    return diags.error(
        Code::E0804, place, std::string(kind) + " arguments do not exist, " + kForms,
        kind == "tuple" ? "give the items one by one" : "constants are part of the kernel and take no parameter");
  }
  if (body.empty() && kind.find('.') != std::string_view::npos) {
    return diags.error(Code::E0804, place, quoted(kind) + " does not say how the file is passed, " + kForms,
                       "did you mean array:" + std::string(kind) + "?");
  }
  static const std::vector<std::string_view> kinds = {"ptr", "array",    "array64", "i1",        "i8",       "i16",
                                                      "i32", "i64",      "f16",     "bf16",      "f32",      "tf32",
                                                      "f64", "f8E4M3FN", "f8E5M2",  "f8E8M0FNU", "f4E2M1FN", "i4"};
  std::string help = suggest_type(kind);
  if (const std::string near = nearest(kind, kinds); help.empty() && !near.empty()) help = "did you mean " + near + "?";
  return diags.error(Code::E0804, place, quoted(kind) + " is no kind of argument, " + std::string(kForms), help);
}

std::string known_names(std::span<const ArgSpec> specs) {
  std::string text;
  for (const auto& spec : specs) {
    if (!spec.name.empty()) text += (text.empty() ? "" : ", ") + spec.name;
  }
  return text;
}

size_t index_of_name(std::string_view name, std::span<const ArgSpec> specs) {
  size_t i = 0;
  while (i < specs.size() && specs[i].name != name) ++i;
  return i;
}

}  // namespace

std::string argument_label(size_t index, std::string_view name) {
  std::string text = "argument " + std::to_string(index);
  return name.empty() ? text : text + " (" + std::string(name) + ")";
}

Result<ArgSpec> parse_arg(std::string_view text, size_t index, const Place& place, Diagnostics& diags) {
  ArgSpec spec;
  spec.text = text;
  std::string_view rest = text;
  const size_t equals = rest.find('=');
  if (equals != std::string_view::npos && is_argument_name(rest.substr(0, equals))) {
    spec.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
  }
  const Place where = place_of(place, argument_label(index, spec.name));
  const size_t colon = rest.find(':');
  const std::string_view kind = rest.substr(0, colon);
  std::string_view body = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  if (const auto type = element_type_named(kind); type && *type != ElementType::Ptr) {
    if (colon == std::string_view::npos)
      return diags.error(Code::E0804, where, "the value is missing, " + std::string(kForms));
    spec.type = *type;
    const auto bits = parse_scalar(body, *type, where, diags);
    if (!bits) return Failed;
    spec.bits = *bits;
    return spec;
  }
  if (kind == "ptr") {
    spec.kind = ArgSpec::Kind::Pointer;
  } else if (kind == "array") {
    spec.kind = ArgSpec::Kind::Array;
  } else if (kind == "array64") {
    spec.kind = ArgSpec::Kind::Array64;
  } else {
    return unknown_kind(kind, body, where, diags);
  }
  if (spec.kind == ArgSpec::Kind::Pointer) {
    const auto offset = offset_behind(body, where, diags);
    if (!offset) return Failed;
    spec.byte_offset = *offset;
  }
  auto source = parse_array_source(body, where, diags);
  if (!source) return Failed;
  if (spec.kind != ArgSpec::Kind::Pointer && source->kind == ArraySource::Kind::Reference && source->type) {
    return diags.error(Code::E0804, where,
                       "an array that refers to another has its element type, expected @" + source->reference,
                       "ptr:" + std::string(body) + " passes the same memory with another type");
  }
  spec.source = std::move(*source);
  return spec;
}

Result<std::vector<ArgSpec>> parse_args(std::span<const std::string> texts, Diagnostics& diags) {
  if (texts.size() > kMaxLaunchArguments) {
    return diags.error(
        Code::E0802, {},
        std::to_string(texts.size()) + " arguments are given, the limit is " + std::to_string(kMaxLaunchArguments));
  }
  std::vector<ArgSpec> specs;
  bool ok = true;
  for (size_t i = 0; i < texts.size() && !diags.full(); ++i) {
    auto spec = parse_arg(texts[i], i, {}, diags);
    ok &= spec.ok();
    if (spec) specs.push_back(std::move(*spec));
  }
  if (!ok || specs.size() != texts.size() || !check_args(specs, {}, diags)) return Failed;
  return specs;
}

Status check_args(std::span<const ArgSpec> specs, const Place& place, Diagnostics& diags) {
  if (specs.size() > kMaxLaunchArguments) {
    return diags.error(
        Code::E0802, place,
        std::to_string(specs.size()) + " arguments are given, the limit is " + std::to_string(kMaxLaunchArguments));
  }
  bool ok = true;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Place where = place_of(place, argument_label(i, specs[i].name));
    if (!specs[i].name.empty()) {
      const size_t first = index_of_name(specs[i].name, specs);
      if (first != i) {
        ok = false;
        (void)diags.error(Code::E0804, where,
                          "the name " + specs[i].name + " is already that of argument " + std::to_string(first));
      }
    }
    size_t at = i, steps = 0;
    while (specs[at].kind != ArgSpec::Kind::Scalar && specs[at].source.kind == ArraySource::Kind::Reference) {
      const std::string& wanted = specs[at].source.reference;
      const size_t next = index_of_name(wanted, specs);
      std::string wrong;
      if (next == specs.size()) {
        const std::string names = known_names(specs);
        wrong = "there is no argument " + quoted(wanted) +
                (names.empty() ? ", no argument has a name" : ", expected one of " + names);
      } else if (specs[next].kind == ArgSpec::Kind::Scalar) {
        wrong = "the argument " + quoted(wanted) + " is a scalar, expected an array or a pointer";
      } else if (++steps > kMaxReferenceSteps) {
        wrong = "the argument refers to itself, or through more than " + std::to_string(kMaxReferenceSteps) + " others";
      }
      if (!wrong.empty()) {
        // A broken link further on is reported where it stands.
        if (at == i || steps > kMaxReferenceSteps) (void)diags.error(Code::E0804, where, wrong);
        ok = false;
        break;
      }
      at = next;
    }
    if (diags.full()) break;
  }
  if (!ok) return Failed;
  return {};
}

size_t owning_argument(std::span<const ArgSpec> specs, size_t i) {
  while (specs[i].kind != ArgSpec::Kind::Scalar && specs[i].source.kind == ArraySource::Kind::Reference) {
    i = index_of_name(specs[i].source.reference, specs);
  }
  return i;
}

Result<size_t> find_argument(std::string_view word, std::span<const ArgSpec> specs, const Place& place,
                             Diagnostics& diags) {
  if (is_argument_name(word)) {
    const size_t i = index_of_name(word, specs);
    if (i < specs.size()) return i;
    std::vector<std::string_view> names;
    for (const auto& spec : specs) {
      if (!spec.name.empty()) names.push_back(spec.name);
    }
    const std::string near = nearest(word, names), all = known_names(specs);
    return diags.error(Code::E0804, place,
                       "there is no argument " + quoted(word) +
                           (all.empty() ? ", no argument has a name" : ", expected one of " + all),
                       near.empty() ? "give it a name (" + std::string(word) + "=array:...) or use its number from 0"
                                    : "did you mean " + near + "?");
  }
  if (const auto number = parse_unsigned(word)) {
    if (*number < specs.size()) return static_cast<size_t>(*number);
    return diags.error(Code::E0804, place,
                       "there is no argument " + std::to_string(*number) + ", expected a number below " +
                           std::to_string(specs.size()) + "; they count from 0");
  }
  return diags.error(Code::E0804, place, quoted(word) + " is neither the name nor the number of an argument");
}

Result<OutSpec> parse_out(std::string_view text, std::span<const ArgSpec> specs, Diagnostics& diags) {
  Place place;
  place.argument = "--out " + std::string(text.substr(0, 80));
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    return diags.error(Code::E0804, place, "no file is given, expected ARG=FILE");
  }
  const auto argument = find_argument(text.substr(0, equals), specs, place, diags);
  if (!argument) return Failed;
  if (specs[*argument].kind == ArgSpec::Kind::Scalar) {
    return diags.error(
        Code::E0804, place,
        argument_label(*argument, specs[*argument].name) + " is a scalar, expected an array or a pointer");
  }
  return OutSpec{*argument, std::string(text.substr(equals + 1))};
}

Status check_grid_extent(int64_t value, int axis, const Place& place, Diagnostics& diags) {
  if (value >= 1 && value <= int64_t{kMaxGridExtent}) return {};
  return diags.error(Code::E0805, place,
                     std::string("the grid's extent along ") + "xyz"[axis] + " is " + std::to_string(value) +
                         ", expected 1 to " + std::to_string(kMaxGridExtent));
}

Result<LaunchGrid> parse_grid(std::string_view text, Diagnostics& diags) {
  Place place;
  place.argument = "--grid " + std::string(text.substr(0, 80));
  LaunchGrid grid = {1, 1, 1};
  std::string_view rest = text;
  bool ok = true;
  for (int axis = 0;; ++axis) {
    const size_t end = rest.find_first_of(",x");
    const std::string_view part = rest.substr(0, end);
    const auto value = parse_int(part);
    if (axis == 3 || !value) {
      return diags.error(Code::E0804, place,
                         axis == 3 ? "the grid has more than three extents"
                                   : quoted(part) + " is no extent of a grid, expected X, X,Y or X,Y,Z");
    }
    if (check_grid_extent(*value, axis, place, diags)) {
      grid[static_cast<size_t>(axis)] = static_cast<uint32_t>(*value);
    } else {
      ok = false;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (!ok) return Failed;
  return grid;
}

}  // namespace tile
