// A tree built from nlohmann-json's events; an iterator that counts bytes gives each event its place.
#include "vm/runtime/json_tree.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tile {
namespace {

using nlohmann::json;

/// Reads the text and keeps, outside of itself, how far the furthest copy has come.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

class TreeBuilder final : public nlohmann::json_sax<json> {
 public:
  TreeBuilder(const std::shared_ptr<const Source>& source, Diagnostics& diags) : source_(source), diags_(diags) {}

  bool null() override { return add({}) != nullptr; }
  bool boolean(bool value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::Bool;
    v.boolean = value;
    return add(std::move(v)) != nullptr;
  }
  bool number_integer(int64_t value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::Integer;
    v.integer = value;
    v.text = std::to_string(value);
    return add(std::move(v)) != nullptr;
  }
  bool number_unsigned(uint64_t value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::Unsigned;
    v.integer = static_cast<int64_t>(value);
    v.text = std::to_string(value);
    return add(std::move(v)) != nullptr;
  }
  bool number_float(double value, const std::string& text) override {
    JsonValue v;
    v.kind = JsonValue::Kind::Float;
    v.number = value;
    v.text = text;
    return add(std::move(v)) != nullptr;
  }
  bool string(std::string& text) override {
    JsonValue v;
    v.kind = JsonValue::Kind::String;
    v.text = std::move(text);
    return add(std::move(v)) != nullptr;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(JsonValue::Kind::Object); }
  bool start_array(size_t) override { return open(JsonValue::Kind::Array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const auto begin = start_of_token();
    JsonValue& object = *open_.back();
    for (const auto& [known, at] : object.keys) {
      if (known != name) continue;
      Diagnostic d;
      d.code = Code::E0807;
      d.place = place(begin);
      d.message = "the key '" + name.substr(0, 60) + "' is given twice";
      d.notes.push_back({place(at), "it is given first here"});
      (void)diags_.error(std::move(d));
      return false;
    }
    // Comparing each key with all before it needs a bound; no object of these formats has as many.
    if (object.keys.size() >= 256) {
      (void)diags_.error(Code::E0807, place(begin), "the object has more than 256 keys");
      return false;
    }
    object.keys.emplace_back(name, begin);
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const json::exception& why) override {
    // The library's text reads "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
    // ... - reason".
    std::string text = why.what();
    const size_t dash = text.find(" - ");
    const size_t colon = text.find(": ");
    if (dash != std::string::npos) {
      text = text.substr(dash + 3);
    } else if (colon != std::string::npos) {
      text = text.substr(colon + 2);
    }
    if (const size_t last = text.find("; last read:"); last != std::string::npos) text = text.substr(0, last);
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';
    }
    (void)token;
    const size_t at = std::min(position == 0 ? 0 : position - 1, source_->text().size());
    (void)diags_.error(Code::E0807, place(static_cast<uint32_t>(at)), "this is not JSON: " + text.substr(0, 200));
    return false;
  }

  size_t* count() { return &count_; }
  JsonValue take() { return std::move(root_); }

 private:
  Place place(uint32_t begin) const {
    Place p;
    p.source = source_;
    p.span = {begin, 1};
    return p;
  }

  /// First byte behind the last token that belongs to the current one.
  uint32_t start_of_token() {
    const std::string_view text = source_->text();
    size_t at = std::min(last_end_, text.size());
    while (at < text.size() && std::string_view(" \t\r\n,:").find(text[at]) != std::string_view::npos) ++at;
    last_end_ = count_;
    return static_cast<uint32_t>(at);
  }

  JsonValue* add(JsonValue value) {
    value.begin = start_of_token();
    if (++values_ > kMaxJsonValues) {
      (void)diags_.error(Code::L0101, place(value.begin),
                         "the file holds more than " + std::to_string(kMaxJsonValues) + " values");
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    open_.back()->items.push_back(std::move(value));
    return &open_.back()->items.back();
  }

  bool open(JsonValue::Kind kind) {
    JsonValue value;
    value.kind = kind;
    JsonValue* added = add(std::move(value));
    if (added == nullptr) return false;
    if (open_.size() >= kMaxJsonDepth) {
      (void)diags_.error(Code::E0807, place(added->begin),
                         "the file nests deeper than " + std::to_string(kMaxJsonDepth) + " levels");
      return false;
    }
    // Pointers into open containers stay valid: only the innermost one grows.
    open_.push_back(added);
    return true;
  }

  bool close() {
    open_.pop_back();
    last_end_ = count_;
    return true;
  }

  const std::shared_ptr<const Source>& source_;
  Diagnostics& diags_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  size_t count_ = 0, last_end_ = 0, values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].first == key) return &items[i];
  }
  return nullptr;
}

std::string describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::Null:
      return "null";
    case JsonValue::Kind::Bool:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::Integer:
    case JsonValue::Kind::Unsigned:
    case JsonValue::Kind::Float:
      return "the number " + value.text.substr(0, 60);
    case JsonValue::Kind::String:
      return "the text '" + value.text.substr(0, 60) + "'";
    case JsonValue::Kind::Array:
      return "a list";
    case JsonValue::Kind::Object:
      return "an object";
  }
  return "a value";
}

Result<JsonValue> parse_json(const std::shared_ptr<const Source>& source, Diagnostics& diags) {
  const std::string_view text = source->text();
  if (text.size() > kMaxJsonBytes) {
    Place place;
    place.file = source->name();
    return diags.error(
        Code::L0101, std::move(place),
        "the file has " + std::to_string(text.size()) + " bytes, the limit is " + std::to_string(kMaxJsonBytes));
  }
  TreeBuilder builder(source, diags);
  const CountingIterator first(text.data(), builder.count()), last(text.data() + text.size(), builder.count());
  if (!json::sax_parse(first, last, &builder)) return Failed;
  return builder.take();
}

}  // namespace tile
