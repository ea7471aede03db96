// The text form of array sources.
#include "vm/runtime/array_source.h"

#include <algorithm>
#include <utility>

#include "vm/runtime/npy.h"
#include "vm/runtime/scalar_text.h"

namespace tile {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Letters, digits and _ at the start of `text`.
std::string_view leading_word(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && (is_letter(text[n]) || is_digit(text[n]))) ++n;
  return text.substr(0, n);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 80)) + "'";
}

class SourceReader {
 public:
  SourceReader(const Place& place, Diagnostics& diags) : place_(place), diags_(diags) {}

  Result<ArraySource> read(std::string_view text) {
    text = trim(text);
    if (text.empty()) return bad("the array is missing, expected a .npy file, TYPE[SHAPE]=GENERATOR or @NAME");
    if (text[0] == '@') return reference(text.substr(1), std::nullopt);
    const std::string_view word = leading_word(text);
    const char next = word.size() < text.size() ? text[word.size()] : '\0';
    const auto type = element_type_named(word);
    if (next == '[' && (type || text.find('=') != std::string_view::npos)) {
      if (!type) return unknown_type(word);
      return generated(*type, text.substr(word.size() + 1));
    }
    if (next == ':' && !word.empty()) {
      // A colon can be part of a file's name, but then "./" in front says so.
      if (!type)
        return unknown_type(word, "write ./" + std::string(text.substr(0, 80)) + " if it is the name of a file");
      const std::string_view rest = text.substr(word.size() + 1);
      return !rest.empty() && rest[0] == '@' ? reference(rest.substr(1), type) : file(rest, type);
    }
    return file(text, std::nullopt);
  }

 private:
  FailedTag bad(std::string message, std::string help = {}) {
    return diags_.error(Code::E0804, place_, std::move(message), std::move(help));
  }

  FailedTag unknown_type(std::string_view word, const std::string& otherwise = {}) {
    const std::string near = suggest_type(word);
    return bad("there is no element type " + quoted(word), near.empty() ? otherwise : near);
  }

  Result<ArraySource> reference(std::string_view name, std::optional<ElementType> type) {
    if (!is_argument_name(name)) return bad(quoted(name) + " is not the name of an argument");
    if (type && (info(*type).memory_bits == 0 || *type == ElementType::Ptr)) return not_in_arrays(*type);
    ArraySource source;
    source.type = type;
    source.kind = ArraySource::Kind::Reference;
    source.reference = name;
    return source;
  }

  Result<ArraySource> file(std::string_view path, std::optional<ElementType> type) {
    if (path.empty()) return bad("the file name is missing");
    if (path.find('\0') != std::string_view::npos) return bad("the file name holds a zero byte");
    if (type && (info(*type).memory_bits == 0 || *type == ElementType::Ptr)) return not_in_arrays(*type);
    ArraySource source;
    source.path = path;
    source.type = type;
    return source;
  }

  FailedTag not_in_arrays(ElementType type) {
    return bad("element type " + std::string(info(type).name) + " cannot be in an array");
  }

  /// Numbers up to `close`, which is taken off `rest`.
  std::optional<std::vector<int64_t>> numbers(std::string_view& rest, char close, const char* what) {
    const size_t end = rest.find(close);
    if (end == std::string_view::npos) {
      (void)bad(std::string("the ") + what + " is not closed, expected '" + close + "'");
      return std::nullopt;
    }
    std::string_view inside = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    std::vector<int64_t> values;
    if (trim(inside).empty()) return values;
    for (;;) {
      const size_t comma = inside.find(',');
      const std::string_view part = trim(inside.substr(0, comma));
      const auto value = parse_int(part);
      if (!value || *value < 0) {
        (void)bad(quoted(part) + " is found in the " + what + ", expected a number from 0 to 2^63 - 1");
        return std::nullopt;
      }
      if (values.size() == kMaxArrayRank) {
        (void)bad(std::string("the ") + what + " has more than " + std::to_string(kMaxArrayRank) + " numbers");
        return std::nullopt;
      }
      values.push_back(*value);
      if (comma == std::string_view::npos) return values;
      inside.remove_prefix(comma + 1);
    }
  }

  Result<ArraySource> generated(ElementType type, std::string_view rest) {
    if (info(type).memory_bits == 0 || type == ElementType::Ptr) return not_in_arrays(type);
    ArraySource source;
    source.kind = ArraySource::Kind::Generated;
    source.type = type;
    auto shape = numbers(rest, ']', "shape");
    if (!shape) return Failed;
    source.shape = std::move(*shape);
    constexpr std::string_view kStrides = ":strides(";
    if (rest.substr(0, kStrides.size()) == kStrides) {
      rest.remove_prefix(kStrides.size());
      auto strides = numbers(rest, ')', "list of strides");
      if (!strides) return Failed;
      if (strides->size() != source.shape.size()) {
        return bad(std::to_string(strides->size()) + " strides are given, expected " +
                   std::to_string(source.shape.size()) + ", one per dimension");
      }
      source.strides = std::move(*strides);
    } else {
      auto strides = row_major_strides(source.shape);
      if (!strides) return bad("the shape " + show_list(source.shape) + " has more than 2^63 - 1 elements");
      source.strides = std::move(*strides);
    }
    if (rest.empty() || rest[0] != '=') {
      return bad((rest.empty() ? std::string("the argument ends") : quoted(rest) + " is found") +
                 " behind the shape, expected =GENERATOR or :strides(...)=GENERATOR");
    }
    const auto generator = parse_generator(rest.substr(1), type, place_, diags_);
    if (!generator) return Failed;
    source.generator = *generator;
    if (generator->kind == Generator::Kind::Eye && source.shape.size() != 2) {
      return bad("eye is given the shape " + show_list(source.shape) + ", expected two dimensions");
    }
    return source;
  }

  const Place& place_;
  Diagnostics& diags_;
};

}  // namespace

Result<ArraySource> parse_array_source(std::string_view text, const Place& place, Diagnostics& diags) {
  return SourceReader(place, diags).read(text);
}

Result<Array> load_array(const ArraySource& source, const std::string& base_dir, const ArrayLimits& limits,
                         const Place& place, Diagnostics& diags) {
  if (source.kind == ArraySource::Kind::File) {
    return load_npy(path_in(base_dir, source.path), source.type, place, diags, limits);
  }
  auto array = make_array(source.type.value_or(ElementType::I8), source.shape, source.strides, limits, place, diags);
  if (!array) return Failed;
  // Overlapping strides make many elements of little memory: the work is bounded like the memory.
  if (const auto count = element_count(source.shape); !count || static_cast<uint64_t>(*count) > limits.bytes) {
    return diags.error(Code::L0103, place,
                       "an array of shape " + show_list(source.shape) + " has more elements than the limit of " +
                           std::to_string(limits.bytes));
  }
  generate(source.generator, *array);
  return array;
}

std::string path_in(const std::string& base_dir, const std::string& path) {
  if (base_dir.empty() || (!path.empty() && path[0] == '/')) return path;
  return base_dir.back() == '/' ? base_dir + path : base_dir + "/" + path;
}

bool is_argument_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && is_letter(text[0]) && leading_word(text).size() == text.size();
}

std::string show_array_type(const ArrayView& a) {
  return std::string(info(a.type).name) + show_list(a.shape);
}

}  // namespace tile
